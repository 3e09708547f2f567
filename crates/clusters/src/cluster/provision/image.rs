//! The control plane in a container: an image that only contains the program of a release, with the
//! same certificates and flags as the embedded control plane.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use kube::Client;
use sha2::{Digest, Sha256};
use testcontainers::GenericBuildableImage;
use testcontainers::core::BuildImageOptions;
use testcontainers::runners::AsyncBuilder;
use tokio::io::DuplexStream;

use crate::cluster::access::client;
use crate::cluster::access::pki::Authority;
use crate::cluster::provision::args::{
    ADMIN, DRIVER, Files, User, api_server_args, controller_manager_args, etcd_args,
};
use crate::cluster::provision::bootstrap::{Bootstrap, StartError, broken, last_lines};
use crate::cluster::provision::container::{HELD, Program, RunningContainer, Spec};
use crate::cluster::provision::docker::{chain, connect, docker_message, has_image, split};
use crate::cluster::provision::process::GO_ENVIRONMENT;
use crate::cluster::settings::Settings;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_data::IMAGE;
use kube_lockstep_engines::upstream::build;
use kube_lockstep_engines::upstream::build::Artifact;
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_sim::engine::EngineError;

/// The repository of the images.
pub(crate) const REPOSITORY: &str = "kube-lockstep/control-plane";

/// The folder of the files in the container.
const FOLDER: &str = "/cluster";

/// The listen addresses in the container.
const ANY_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const PORT: u16 = 6443;
const HEALTH_PORT: u16 = 10257;

/// The name of the image of a program. Each program has a different name.
fn image_of(program: &Path, release: Release, dockerfile: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(program.file_name().unwrap_or_default().to_string_lossy().as_bytes());
    hash.update(dockerfile);
    let hash: String = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let version = build::version(Artifact::ControlPlane, release).unwrap_or_default();
    format!("{REPOSITORY}:{}-{hash}", version.trim_start_matches('v'))
}

/// Builds the image of a program, unless Docker already has it. Returns the name of the image.
///
/// # Errors
/// If Docker can't be reached, or the build fails.
pub(crate) async fn ensure(
    name: &Arc<str>,
    program: &Path,
    release: Release,
    progress: &mut dyn FnMut(&str),
) -> Result<String, EngineError> {
    if !cfg!(target_os = "linux") {
        return Err(EngineError::Unavailable {
            engine: name.clone(),
            problem: Diagnostic::new(
                "the image requires a program for Linux, which can't be built on this machine",
            )
            .hint("use `--engine k3s` or `--engine kind`, which pull images"),
        });
    }
    let dockerfile = IMAGE.text("Dockerfile");
    let dockerfile =
        dockerfile.ok_or_else(|| broken(name, "this program has no Dockerfile", ""))?;
    let image = image_of(program, release, &dockerfile);
    let docker = connect(name).await?;
    let exists = has_image(&docker, &image).await;
    if exists.map_err(|why| broken(name, &format!("the image {image}: {why}"), ""))? {
        return Ok(image);
    }
    progress(&format!("building the image {image}"));
    let (repository, tag) = split(&image);
    let built = GenericBuildableImage::new(repository, tag)
        .with_dockerfile_string(dockerfile)
        .with_file(program, "controlplane")
        .build_image_with(BuildImageOptions::new().with_skip_if_exists(true))
        .await;
    let why = |error| format!("the image {image} can't be built: {}", docker_message(&error));
    drop(built.map_err(|error| broken(name, &why(error), ""))?);
    // Docker may report success for a build that has failed.
    let exists = has_image(&docker, &image).await;
    match exists.map_err(|why| broken(name, &format!("the image {image}: {why}"), ""))? {
        true => Ok(image),
        false => Err(broken(name, &format!("the image {image} is missing after its build"), "")),
    }
}

/// A control plane in a container.
pub(crate) struct ImageControlPlane {
    name: Arc<str>,
    /// A client of the health endpoint of the kube-controller-manager.
    controllers: Client,
    controller_manager: Option<Program>,
    container: RunningContainer,
}

impl ImageControlPlane {
    /// Starts a control plane. Also returns a client of the user that runs scenarios, and the API
    /// server's audit log.
    ///
    /// # Errors
    /// If a component exits or is not ready in time, with the last lines of its log.
    pub(crate) async fn start(
        name: &Arc<str>,
        image: &str,
        settings: &Settings,
    ) -> Result<(ImageControlPlane, Client, DuplexStream), EngineError> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            broken(name, &format!("{what}: {error}"), "")
        };
        let authority = Authority::new().map_err(|error| failed("no certificates", &error))?;
        let inside = format!("https://127.0.0.1:{PORT}");
        let files = Files { folder: Path::new(FOLDER), server: &inside, authority: &authority };
        let spec = spec(image, &files, settings);
        let spec = spec.map_err(|error| failed("no certificates", &error))?;
        let (container, log) = RunningContainer::start(name, &spec).await?;
        let client = async |port: u16, user: User| {
            let server = format!("https://127.0.0.1:{}", container.port(port));
            let config = Files { server: &server, ..files }.kubeconfig(user);
            client::from_text(&config.map_err(|error| error.to_string())?).await
        };
        let client =
            async |port, user| client(port, user).await.map_err(|why| failed("no client", &why));
        let admin = client(PORT, ADMIN).await?;
        let controllers = client(HEALTH_PORT, ADMIN).await?;
        let driver = client(PORT, DRIVER).await?;
        let mut control_plane = ImageControlPlane {
            name: name.clone(),
            controllers: controllers.clone(),
            controller_manager: None,
            container,
        };
        let started = control_plane.bootstrap(&admin, &controllers, settings).await;
        started.map_err(|failed| failed.error)?;
        Ok((control_plane, driver, log))
    }

    /// A client of the health endpoint of the kube-controller-manager.
    pub(crate) fn controllers(&self) -> Client {
        self.controllers.clone()
    }

    /// Its container.
    pub(crate) fn container(&self) -> &RunningContainer {
        &self.container
    }

    /// Checks that all components are running.
    ///
    /// # Errors
    /// If a component has exited, with the last lines of its log.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        self.container.check()?;
        match self.controller_manager.as_ref().and_then(Program::ended) {
            Some((why, output)) => Err(broken(&self.name, &why, &output)),
            None => Ok(()),
        }
    }

    /// The last lines of the logs.
    pub(crate) fn tail(&self) -> String {
        Bootstrap::tail(self)
    }

    /// Stops it, and waits until everything is removed.
    pub(crate) async fn stop(self) {
        self.container.stop().await;
    }
}

impl Bootstrap for ImageControlPlane {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn check_components(&mut self) -> Result<(), StartError> {
        Ok(self.check()?)
    }

    fn tail(&self) -> String {
        let controller_manager = self.controller_manager.as_ref().map(Program::tail);
        last_lines(&[
            ("etcd and kube-apiserver", self.container.tail()),
            ("kube-controller-manager", controller_manager.unwrap_or_default()),
        ])
    }

    async fn start_controller_manager(&mut self, settings: &Settings) -> Result<(), StartError> {
        let name = "kube-controller-manager";
        let listen = SocketAddr::new(ANY_ADDRESS, HEALTH_PORT);
        let args = controller_manager_args(Path::new(FOLDER), listen, settings);
        let command = ["/controlplane", name].map(str::to_owned);
        let command: Vec<String> = command.into_iter().chain(args).collect();
        self.controller_manager = Some(self.container.execute(name, &command).await?);
        Ok(())
    }
}

/// The container of etcd and the API server. The kube-controller-manager is started once the API
/// server is ready, because it exits if it has to wait for long.
fn spec(image: &str, files: &Files<'_>, settings: &Settings) -> std::io::Result<Spec> {
    let command = |name: &str, args: Vec<String>| {
        [name.to_owned()].into_iter().chain(args).collect::<Vec<String>>()
    };
    let all = vec![
        command("etcd", etcd_args(files.folder)),
        command(
            "kube-apiserver",
            api_server_args(files.folder, SocketAddr::new(ANY_ADDRESS, PORT), settings),
        ),
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
        // The only folder in the image.
        environment: [("TMPDIR", FOLDER)]
            .into_iter()
            .chain(GO_ENVIRONMENT)
            .map(|(name, value)| (name, value.to_owned()))
            .collect(),
        ports: vec![PORT, HEALTH_PORT],
        hold: ["/controlplane", "hold", HELD].map(str::to_owned).to_vec(),
    })
}

/// The images that this program has built, with their sizes in bytes.
///
/// # Errors
/// If Docker can't be reached.
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

/// Removes an image. Returns false if a container uses it.
///
/// # Errors
/// If Docker can't be reached, or can't remove it.
pub(crate) async fn remove(name: &Arc<str>, image: &str) -> Result<bool, EngineError> {
    use testcontainers::bollard::errors::Error;
    use testcontainers::bollard::query_parameters::RemoveImageOptions;
    let docker = connect(name).await?;
    match docker.remove_image(image, None::<RemoveImageOptions>, None).await {
        // Another process may have removed it first.
        Ok(_) | Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(true),
        Err(Error::DockerResponseServerError { status_code: 409, .. }) => Ok(false),
        Err(error) => Err(broken(name, &chain(&error), "")),
    }
}
