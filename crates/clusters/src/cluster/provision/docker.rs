//! The Docker engine of this machine, and its images, through testcontainers.

use std::net::IpAddr;
use std::sync::Arc;

use testcontainers::bollard::Docker;
use testcontainers::bollard::errors::Error;
use testcontainers::bollard::query_parameters::InspectNetworkOptions;
use testcontainers::core::client::docker_client_instance;
use testcontainers::core::error::ClientError;
use testcontainers::runners::AsyncRunner;
use testcontainers::{GenericImage, TestcontainersError};
use tokio::time::timeout;

use crate::cluster::access::error;
use crate::cluster::timeouts::DOCKER_TIMEOUT;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::upstream::build;
use kube_lockstep_engines::upstream::build::Artifact;
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_sim::engine::EngineError;

/// The hint if Docker is missing.
const HINT: &str = "start Docker (for example with `dockerd`), or set DOCKER_HOST to its socket; \
                    `--engine embedded` requires no containers";

/// A client of the Docker engine that the environment names.
///
/// # Errors
/// If it can't be reached.
pub(crate) async fn connect(name: &Arc<str>) -> Result<Docker, EngineError> {
    let missing = |why: String| EngineError::Unavailable {
        engine: name.clone(),
        problem: Diagnostic::new(format!("no Docker engine can be reached: {why}")).hint(HINT),
    };
    let docker = docker_client_instance().await.map_err(|error| missing(chain(&error)))?;
    match timeout(DOCKER_TIMEOUT, docker.ping()).await {
        Ok(Ok(_)) => Ok(docker),
        Ok(Err(error)) => Err(missing(chain(&error))),
        Err(_) => Err(missing(format!("no answer within {} s", DOCKER_TIMEOUT.as_secs()))),
    }
}

/// The version of Docker.
///
/// # Errors
/// If it can't be reached.
pub(crate) async fn version(name: &Arc<str>) -> Result<String, EngineError> {
    let docker = connect(name).await?;
    let version = docker.version().await.ok().and_then(|it| it.version);
    Ok(version.unwrap_or_else(|| "of an unknown version".to_owned()))
}

/// The address of this machine as seen from containers on the default network.
///
/// # Errors
/// If Docker can't be reached.
pub(crate) async fn gateway(name: &Arc<str>) -> Result<Option<IpAddr>, EngineError> {
    let docker = connect(name).await?;
    let bridge = docker.inspect_network("bridge", None::<InspectNetworkOptions>).await.ok();
    let configs = bridge.and_then(|it| it.ipam?.config).unwrap_or_default();
    Ok(configs.into_iter().find_map(|it| it.gateway?.parse().ok()))
}

/// Returns true if Docker has an image.
///
/// # Errors
/// If Docker does not answer.
pub(crate) async fn has_image(docker: &Docker, image: &str) -> Result<bool, String> {
    match docker.inspect_image(image).await {
        Ok(_) => Ok(true),
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(false),
        Err(error) => Err(chain(&error)),
    }
}

/// The oldest release with autoscaling/v2, which scenarios require.
pub(crate) const OLDEST: Release = Release { minor: 23 };

/// The image of a release: the image of `--image`, else the default image for the patch version
/// that the upstream engine has.
///
/// # Errors
/// If the release is not supported.
pub(crate) fn image(
    name: &Arc<str>,
    release: Release,
    image: Option<String>,
    default_image: impl Fn(&str) -> String,
) -> Result<String, EngineError> {
    let unavailable = |why: String| EngineError::Unavailable {
        engine: name.clone(),
        problem: Diagnostic::new(why).hint(format!(
            "it supports {OLDEST} and newer releases; `--engine upstream` supports all"
        )),
    };
    if release < OLDEST {
        return Err(unavailable(format!("{release} has no autoscaling/v2")));
    }
    let version = || build::version(Artifact::Host, release);
    let default_image = || version().map(|version| default_image(&version));
    image
        .or_else(default_image)
        .ok_or_else(|| unavailable(format!("no default image is known for {release}")))
}

/// Pulls an image, unless Docker already has it.
///
/// # Errors
/// If it can't be pulled, with Docker's message.
pub(crate) async fn ensure(
    name: &Arc<str>,
    image: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<(), EngineError> {
    let docker = connect(name).await?;
    if has_image(&docker, image).await.is_ok_and(|exists| exists) {
        return Ok(());
    }
    progress(&format!("pulling the image {image}"));
    let (repository, tag) = split(image);
    let pulled = AsyncRunner::pull_image(GenericImage::new(repository, tag)).await;
    pulled.map(|_| ()).map_err(|error| EngineError::Unavailable {
        engine: name.clone(),
        problem: Diagnostic::new(format!(
            "the image {image} can't be pulled: {}",
            docker_message(&error)
        ))
        .hint("check it with `docker pull`, or set --image to another image"),
    })
}

/// The repository and the tag of an image's name.
pub(crate) fn split(image: &str) -> (&str, &str) {
    match image.rsplit_once(':') {
        // The port of a registry is not a tag.
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (image, "latest"),
    }
}

/// The message of an error, preferably Docker's.
pub(crate) fn docker_message(error: &TestcontainersError) -> String {
    match error {
        TestcontainersError::Client(
            ClientError::PullImage { err, .. }
            | ClientError::BuildImage { err, .. }
            | ClientError::CreateContainer(err)
            | ClientError::StartContainer(err),
        ) => chain(err),
        error => chain(error),
    }
}

/// An error with its causes.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(Error::DockerResponseServerError { message, .. }) = error.downcast_ref() {
        return message.trim().to_owned();
    }
    error::chain(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_supported_release_has_an_image() {
        let name: Arc<str> = "k3s".into();
        let default_image = |version: &str| format!("k3s:{version}-k3s1");
        for release in Release::supported() {
            let found = image(&name, release, None, default_image);
            assert_eq!(found.is_ok(), release >= OLDEST, "{found:?}");
            let Ok(found) = found else { continue };
            let start = format!("k3s:v{release}.");
            assert!(found.starts_with(&start) && found.ends_with("-k3s1"), "{found}");
        }
        let own = image(&name, OLDEST, Some("registry.test/k3s:mine".to_owned()), default_image);
        assert_eq!(own.as_deref(), Ok("registry.test/k3s:mine"));
    }

    #[test]
    fn a_port_is_not_a_tag() {
        assert_eq!(split("rancher/k3s:v1.37.0-k3s1"), ("rancher/k3s", "v1.37.0-k3s1"));
        assert_eq!(split("localhost:5000/k3s"), ("localhost:5000/k3s", "latest"));
        assert_eq!(split("localhost:5000/k3s:mine"), ("localhost:5000/k3s", "mine"));
    }
}
