//! The Docker engine of this machine, and images in it, by testcontainers.

use crate::engine::cluster::access::error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use testcontainers::bollard::Docker;
use testcontainers::bollard::errors::Error;
use testcontainers::bollard::query_parameters::InspectNetworkOptions;
use testcontainers::core::client::docker_client_instance;
use testcontainers::core::error::ClientError;
use testcontainers::runners::AsyncRunner;
use testcontainers::{GenericImage, TestcontainersError};
use tokio::time::timeout;

use crate::engine::EngineError;
use crate::engine::upstream::build::{self, Artifact};
use crate::model::rules::Release;

/// How long Docker may take to answer at all.
const LIMIT: Duration = Duration::from_secs(10);

/// What to do where there is none.
const HINT: &str = "start Docker (for instance with `dockerd`), or set DOCKER_HOST to where its \
                    socket is; `--engine embedded` needs no containers";

/// A client of the Docker engine that the environment names.
///
/// # Errors
/// If none can be reached.
pub(crate) async fn connect(name: &Arc<str>) -> Result<Docker, EngineError> {
    let missing = |why: String| EngineError::Unavailable {
        engine: name.clone(),
        why: format!("no Docker engine can be reached: {why}"),
        hint: HINT.to_owned(),
    };
    let docker = docker_client_instance().await.map_err(|error| missing(chain(&error)))?;
    match timeout(LIMIT, docker.ping()).await {
        Ok(Ok(_)) => Ok(docker),
        Ok(Err(error)) => Err(missing(chain(&error))),
        Err(_) => Err(missing(format!("it has not answered within {} s", LIMIT.as_secs()))),
    }
}

/// What Docker says of itself: its version.
///
/// # Errors
/// If it can't be reached.
pub(crate) async fn version(name: &Arc<str>) -> Result<String, EngineError> {
    let docker = connect(name).await?;
    let version = docker.version().await.ok().and_then(|it| it.version);
    Ok(version.unwrap_or_else(|| "of an unknown version".to_owned()))
}

/// This machine, as containers see it that are in no network of their own.
///
/// # Errors
/// If Docker can't be reached.
pub(crate) async fn gateway(name: &Arc<str>) -> Result<Option<IpAddr>, EngineError> {
    let docker = connect(name).await?;
    let bridge = docker.inspect_network("bridge", None::<InspectNetworkOptions>).await.ok();
    let configs = bridge.and_then(|it| it.ipam?.config).unwrap_or_default();
    Ok(configs.into_iter().find_map(|it| it.gateway?.parse().ok()))
}

/// Whether it has an image.
///
/// # Errors
/// If it can't be asked.
pub(crate) async fn has_image(docker: &Docker, image: &str) -> Result<bool, String> {
    match docker.inspect_image(image).await {
        Ok(_) => Ok(true),
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(false),
        Err(error) => Err(chain(&error)),
    }
}

/// The oldest release whose API has what scenarios are played with: autoscaling/v2.
const OLDEST: Release = Release { minor: 23 };

/// The image of a release: the one that is wanted, else the usual one, by the patch of which the
/// upstream engine is built.
///
/// # Errors
/// If the release can't be played on.
pub(crate) fn image(
    name: &Arc<str>,
    release: Release,
    wanted: Option<String>,
    usual: impl Fn(&str) -> String,
) -> Result<String, EngineError> {
    let unavailable = |why: String| EngineError::Unavailable {
        engine: name.clone(),
        why,
        hint: format!("it plays releases from {OLDEST} on; `--engine upstream` plays all"),
    };
    if release < OLDEST {
        return Err(unavailable(format!("{release} has no autoscaling/v2")));
    }
    let version = || build::version(Artifact::Host, release);
    let usual = || version().map(|version| usual(&version));
    wanted.or_else(usual).ok_or_else(|| unavailable(format!("no image of {release} is known")))
}

/// Fetches an image, unless Docker has it already.
///
/// # Errors
/// If it can't be had: what Docker says of that.
pub(crate) async fn ensure(
    name: &Arc<str>,
    image: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<(), EngineError> {
    let docker = connect(name).await?;
    if has_image(&docker, image).await.is_ok_and(|there| there) {
        return Ok(());
    }
    progress(&format!("fetching the image {image}"));
    let (repository, tag) = split(image);
    let pulled = AsyncRunner::pull_image(GenericImage::new(repository, tag)).await;
    pulled.map(|_| ()).map_err(|error| EngineError::Unavailable {
        engine: name.clone(),
        why: format!("the image {image} can't be had: {}", said(&error)),
        hint: "--image names another one; `docker pull` shows whether this machine gets it"
            .to_owned(),
    })
}

/// The repository and the tag of an image's name.
pub(crate) fn split(image: &str) -> (&str, &str) {
    match image.rsplit_once(':') {
        // A port of a registry is no tag.
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (image, "latest"),
    }
}

/// What went wrong, in Docker's own words where it has some.
pub(crate) fn said(error: &TestcontainersError) -> String {
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

/// An error, and what is behind it.
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
        let usual = |version: &str| format!("k3s:{version}-k3s1");
        for release in Release::supported() {
            let found = image(&name, release, None, usual);
            assert_eq!(found.is_ok(), release >= OLDEST, "{found:?}");
            let Ok(found) = found else { continue };
            let start = format!("k3s:v{release}.");
            assert!(found.starts_with(&start) && found.ends_with("-k3s1"), "{found}");
        }
        let own = image(&name, OLDEST, Some("registry.test/k3s:mine".to_owned()), usual);
        assert_eq!(own.as_deref(), Ok("registry.test/k3s:mine"));
    }

    #[test]
    fn a_port_is_no_tag() {
        assert_eq!(split("rancher/k3s:v1.37.0-k3s1"), ("rancher/k3s", "v1.37.0-k3s1"));
        assert_eq!(split("localhost:5000/k3s"), ("localhost:5000/k3s", "latest"));
        assert_eq!(split("localhost:5000/k3s:mine"), ("localhost:5000/k3s", "mine"));
    }
}
