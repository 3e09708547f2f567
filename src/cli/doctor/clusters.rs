//! The requirements of the wall-clock engines, and whether this machine meets them.

use std::process::Command;

use super::{Check, State, program};
use crate::engine::upstream::build;
use crate::engine::{EngineError, containers, embedded, kubeconfig};
use crate::model::rules::Release;

/// The checks of Docker and of each wall-clock engine.
pub(super) fn checks(release: Release) -> (Option<Check>, Vec<Check>) {
    let docker = containers::docker_version();
    let no_docker = docker.is_err().then_some("Docker");
    let embedded = program(build::Artifact::ControlPlane, embedded::NAME, release);
    let image = image(release, no_docker, &embedded);
    let engines =
        vec![embedded, image, k3s(release, no_docker), kind(release, no_docker), existing()];
    (Some(docker_engine(&docker)), engines)
}

/// Docker, which only clusters in containers require.
fn docker_engine(docker: &Result<String, EngineError>) -> Check {
    const NAME: &str = "Docker";
    match docker {
        Ok(version) => Check::new(State::Ok, NAME, version),
        Err(EngineError::Unavailable { why, hint, .. }) => {
            let found = format!("{why} (only required by `--engine image`, `k3s` and `kind`)");
            Check::new(State::Warning, NAME, found).hint(hint)
        }
        Err(error) => Check::missing(NAME, error.clone()),
    }
}

/// The check of an engine that requires other programs, some of which may be missing.
fn requiring(name: String, found: &str, missing: impl IntoIterator<Item = &'static str>) -> Check {
    let missing: Vec<&str> = missing.into_iter().collect();
    match missing.as_slice() {
        [] => Check::new(State::Ok, name, found),
        missing => Check::new(State::Missing, name, format!("requires {}", missing.join(" and "))),
    }
}

/// The control plane of the embedded engine in an image.
fn image(release: Release, no_docker: Option<&'static str>, embedded: &Check) -> Check {
    let program = (embedded.state == State::Missing).then_some("the embedded engine");
    let found = "the embedded control plane in a Docker container";
    requiring(
        format!("{} {release}", containers::IMAGE),
        found,
        no_docker.into_iter().chain(program),
    )
}

fn k3s(release: Release, no_docker: Option<&'static str>) -> Check {
    let found = "Docker is available; it pulls the k3s image of the release, if there is one";
    requiring(format!("{} {release}", containers::K3S), found, no_docker)
}

fn kind(release: Release, no_docker: Option<&'static str>) -> Check {
    let name = format!("{} {release}", containers::KIND);
    // The engine uses the same variable.
    let program = std::env::var("KUBE_LOCKSTEP_KIND").unwrap_or_else(|_| "kind".to_owned());
    let version = Command::new(program).arg("version").output();
    let version = version.ok().filter(|output| output.status.success());
    let missing = no_docker.into_iter().chain(version.is_none().then_some("the program kind"));
    let found = version.as_ref().map_or_else(String::new, |it| {
        String::from_utf8_lossy(&it.stdout).lines().next().unwrap_or_default().to_owned()
    });
    let check = requiring(name, &format!("{found}; it pulls the node image"), missing);
    match version {
        Some(_) => check,
        None => check.hint("install kind, or use `--engine kubeconfig` on any other cluster"),
    }
}

/// The contexts of the kubeconfig. The clusters are not contacted.
fn existing() -> Check {
    const NAME: &str = kubeconfig::NAME;
    let hint = "set KUBECONFIG or `--kubeconfig` to a file with contexts";
    match kubeconfig::contexts(None).as_deref() {
        Ok([]) => Check::new(State::Missing, NAME, "the kubeconfig has no contexts").hint(hint),
        Ok([one]) => Check::new(State::Ok, NAME, format!("one context, for --context {one}")),
        Ok(several) => {
            let found = format!("{} contexts; choose one with --context", several.len());
            Check::new(State::Ok, NAME, found)
        }
        Err(error) => Check::missing(NAME, error.clone()).hint(hint),
    }
}
