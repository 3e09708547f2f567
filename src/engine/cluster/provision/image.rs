//! The control plane in a container: the program of a release in an image of nothing else, under
//! the same certificates and flags as where it runs on this machine itself.

use crate::engine::cluster::access::custom_resources;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use kube::Client;
use sha2::{Digest, Sha256};
use testcontainers::GenericBuildableImage;
use testcontainers::core::BuildImageOptions;
use testcontainers::runners::AsyncBuilder;
use tokio::io::DuplexStream;
use tokio::time::sleep;

use crate::engine::EngineError;
use crate::engine::cluster::access::client;
use crate::engine::cluster::access::pki::Authority;
use crate::engine::cluster::access::rbac::{revoke, silence};
use crate::engine::cluster::provision::args::{
    Files, api_server_args, controller_manager_args, etcd_args,
};
use crate::engine::cluster::provision::container::{Container, HELD, Program, Spec};
use crate::engine::cluster::provision::docker::{chain, connect, has_image, said};
use crate::engine::cluster::provision::embedded::{
    DRIVER, GLANCE, READY_LIMIT, broken, last_lines,
};
use crate::engine::cluster::provision::process::GARBAGE;
use crate::engine::cluster::settings::Settings;
use crate::engine::cluster::workload::CustomKind;
use crate::engine::upstream::build::{self, Artifact};
use crate::model::rules::Release;

/// What images of control planes are called, up to the tag.
pub(crate) const REPOSITORY: &str = "kube-lockstep/control-plane";

/// How they are built.
const DOCKERFILE: &str = include_str!("../../../../ci/image/Dockerfile");

/// Where its files are inside.
const FOLDER: &str = "/cluster";

/// Where it listens inside.
const ANYWHERE: &str = "0.0.0.0";
const PORT: u16 = 6443;
const HEALTHZ: u16 = 10257;

/// The name of the image of a program: another program has another one.
fn image_of(program: &Path, release: Release) -> String {
    let mut hash = Sha256::new();
    hash.update(program.file_name().unwrap_or_default().to_string_lossy().as_bytes());
    hash.update(DOCKERFILE);
    let hash: String = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let version = build::version(Artifact::ControlPlane, release).unwrap_or_default();
    format!("{REPOSITORY}:{}-{hash}", version.trim_start_matches('v'))
}

/// Puts a program into an image, unless Docker has that already. Gives the image's name.
///
/// # Errors
/// If Docker can't be reached, or fails to build it.
pub(crate) async fn ensure(
    name: &Arc<str>,
    program: &Path,
    release: Release,
    progress: &mut dyn FnMut(&str),
) -> Result<String, EngineError> {
    if !cfg!(target_os = "linux") {
        return Err(EngineError::Unavailable {
            engine: name.clone(),
            why: "the image holds a program for Linux, and this machine builds another one".into(),
            hint: "`--engine k3s` and `--engine kind` take images that others have built".into(),
        });
    }
    let image = image_of(program, release);
    let docker = connect(name).await?;
    let there = has_image(&docker, &image).await;
    if there.map_err(|why| broken(name, &format!("the image {image}: {why}"), ""))? {
        return Ok(image);
    }
    progress(&format!("building the image {image}"));
    let (repository, tag) = crate::engine::cluster::provision::docker::split(&image);
    let built = GenericBuildableImage::new(repository, tag)
        .with_dockerfile_string(DOCKERFILE)
        .with_file(program, "controlplane")
        .build_image_with(BuildImageOptions::new().with_skip_if_exists(true))
        .await;
    let why = |error| format!("the image {image} can't be built: {}", said(&error));
    drop(built.map_err(|error| broken(name, &why(error), ""))?);
    // A build that Docker says has gone well may still have failed.
    let there = has_image(&docker, &image).await;
    match there.map_err(|why| broken(name, &format!("the image {image}: {why}"), ""))? {
        true => Ok(image),
        false => Err(broken(name, &format!("the image {image} is not there after its build"), "")),
    }
}

/// A control plane in a container.
pub(crate) struct Boxed {
    name: Arc<str>,
    /// The kube-controller-manager's own server.
    controllers: Client,
    controller_manager: Program,
    container: Container,
}

impl Boxed {
    /// Starts one. Gives a client of who plays scenarios, and the API server's audit log.
    ///
    /// # Errors
    /// If one of its programs ends or does not answer in time, with the tail of what it wrote.
    pub(crate) async fn start(
        name: &Arc<str>,
        image: &str,
        settings: &Settings,
    ) -> Result<(Boxed, Client, DuplexStream), EngineError> {
        let begin = Instant::now();
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            broken(name, &format!("{what}: {error}"), "")
        };
        let authority = Authority::new().map_err(|error| failed("no certificates", &error))?;
        let inside = format!("https://127.0.0.1:{PORT}");
        let files = Files { folder: Path::new(FOLDER), server: &inside, authority: &authority };
        let spec = spec(image, &files, settings);
        let spec = spec.map_err(|error| failed("no certificates", &error))?;
        let (container, log) = Container::start(name, &spec).await?;
        let outside = format!("https://127.0.0.1:{}", container.port(PORT));
        let files = Files { server: &outside, ..files };
        let client = async |user: &str, group| {
            let config = files.client(user, group).map_err(|error| error.to_string())?;
            client::of_text(&config).await
        };
        let admin = client("admin", Some("system:masters")).await;
        let admin = admin.map_err(|why| failed("no client", &why))?;
        while !client::get(&admin, "/readyz").await.is_ok_and(|answer| answer == "ok") {
            container.check()?;
            if begin.elapsed() > READY_LIMIT {
                let why = format!("it was not ready within {} s", READY_LIMIT.as_secs());
                return Err(broken(name, &why, &container.tail()));
            }
            sleep(GLANCE).await;
        }
        let kinds = &settings.custom_kinds;
        client::grant(&admin, DRIVER, kinds.iter().map(CustomKind::rule).collect())
            .await
            .map_err(|error| failed("rights can't be granted", &error))?;
        let revoked = revoke(&admin).await;
        revoked.map_err(|error| failed("rights can't be revoked", &error))?;
        let silenced = silence(&admin).await;
        silenced.map_err(|error| failed("rights can't be revoked", &error))?;
        let installed = custom_resources::install(&admin, kinds).await;
        installed.map_err(|why| failed("custom resources", &why))?;
        let args = controller_manager_args(files.folder, (ANYWHERE, HEALTHZ), settings);
        let command = ["/controlplane", "kube-controller-manager"].map(str::to_owned);
        let command: Vec<String> = command.into_iter().chain(args).collect();
        let controller_manager = container.execute("kube-controller-manager", &command).await?;
        let health = format!("https://127.0.0.1:{}", container.port(HEALTHZ));
        let health = Files { server: &health, ..files };
        let health = health.client("admin", Some("system:masters"));
        let health = health.map_err(|error| failed("no certificates", &error))?;
        let health = client::of_text(&health).await.map_err(|why| failed("no client", &why))?;
        let name = name.clone();
        let boxed = Boxed { name, controllers: health, controller_manager, container };
        while !client::get(&boxed.controllers, "/healthz").await.is_ok_and(|answer| answer == "ok")
        {
            boxed.check()?;
            if begin.elapsed() > READY_LIMIT {
                let why = "the kube-controller-manager was not healthy in time";
                return Err(broken(&boxed.name, why, &boxed.controller_manager.tail()));
            }
            sleep(GLANCE).await;
        }
        let driver = client(DRIVER, None).await.map_err(|why| failed("no client", &why))?;
        Ok((boxed, driver, log))
    }

    /// A client of the kube-controller-manager's own server, which tells of its health.
    pub(crate) fn controllers(&self) -> Client {
        self.controllers.clone()
    }

    /// Its container.
    pub(crate) fn container(&self) -> &Container {
        &self.container
    }

    /// Whether all of it still runs.
    ///
    /// # Errors
    /// If not, with the tail of what the one wrote that does not.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        self.container.check()?;
        match self.controller_manager.ended() {
            Some((why, output)) => Err(broken(&self.name, &why, &output)),
            None => Ok(()),
        }
    }

    /// The last lines that its parts wrote.
    pub(crate) fn tail(&self) -> String {
        last_lines(&[
            ("etcd and kube-apiserver", self.container.tail()),
            ("kube-controller-manager", self.controller_manager.tail()),
        ])
    }

    /// Ends it, and waits until nothing of it is left.
    pub(crate) async fn stop(self) {
        self.container.stop().await;
    }
}

/// The container of etcd and the API server. The controller manager is started when that answers:
/// by itself, it would not wait for long.
fn spec(image: &str, files: &Files<'_>, settings: &Settings) -> std::io::Result<Spec> {
    let command = |name: &str, args: Vec<String>| {
        [name.to_owned()].into_iter().chain(args).collect::<Vec<String>>()
    };
    let all = vec![
        command("etcd", etcd_args(files.folder)),
        command("kube-apiserver", api_server_args(files.folder, (ANYWHERE, PORT), settings)),
    ];
    let list = format!("{FOLDER}/all.json");
    let texts = files.texts(settings)?;
    let texts = texts.into_iter().map(|(name, text)| (format!("{FOLDER}/{name}"), text));
    let all = (list.clone(), serde_json::to_string(&all).unwrap_or_default());
    Ok(Spec {
        image: image.to_owned(),
        entrypoint: None,
        args: vec!["all".to_owned(), list, HELD.to_owned()],
        files: texts.chain([all]).collect(),
        // There is no other folder.
        environment: [("TMPDIR", FOLDER)]
            .into_iter()
            .chain(GARBAGE)
            .map(|(name, value)| (name, value.to_owned()))
            .collect(),
        ports: vec![PORT, HEALTHZ],
        hold: ["/controlplane", "hold", HELD].map(str::to_owned).to_vec(),
    })
}

/// The images that this program has built, with their sizes.
///
/// # Errors
/// If Docker can't be asked.
pub(crate) async fn images(name: &Arc<str>) -> Result<Vec<(String, u64)>, EngineError> {
    use testcontainers::bollard::query_parameters::ListImagesOptionsBuilder;
    let docker = connect(name).await?;
    let only = std::collections::HashMap::from([("reference", vec![REPOSITORY])]);
    let options = ListImagesOptionsBuilder::new().filters(&only).build();
    let found = docker.list_images(Some(options)).await;
    let found = found.map_err(|error| broken(name, &chain(&error), ""))?;
    let sizes = found.into_iter().flat_map(|image| {
        let size = u64::try_from(image.size).unwrap_or_default();
        image.repo_tags.into_iter().map(move |tag| (tag, size))
    });
    Ok(sizes.collect())
}

/// Removes an image. Says whether it did: one of which a container runs is left.
///
/// # Errors
/// If Docker can't be reached, or fails at it.
pub(crate) async fn remove(name: &Arc<str>, image: &str) -> Result<bool, EngineError> {
    use testcontainers::bollard::errors::Error;
    use testcontainers::bollard::query_parameters::RemoveImageOptions;
    let docker = connect(name).await?;
    match docker.remove_image(image, None::<RemoveImageOptions>, None).await {
        // Somebody else may have been faster.
        Ok(_) | Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(true),
        Err(Error::DockerResponseServerError { status_code: 409, .. }) => Ok(false),
        Err(error) => Err(broken(name, &chain(&error), "")),
    }
}
