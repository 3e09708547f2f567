//! What the wall-clock engines need, and whether it is here.

use std::process::Command;

use super::{Check, State, program};
use crate::engine::upstream::build;
use crate::engine::{EngineError, containers, embedded, kubeconfig};
use crate::model::rules::Release;

/// The checks of Docker and of each wall-clock engine.
pub(super) fn checks(release: Release) -> (Option<Check>, Vec<Check>) {
    let docker = containers::docker_version();
    let no_docker = docker.is_err().then_some("Docker");
    let embedded = program(build::What::ControlPlane, embedded::NAME, release);
    let image = image(release, no_docker, &embedded);
    let engines =
        vec![embedded, image, k3s(release, no_docker), kind(release, no_docker), existing()];
    (Some(docker_engine(&docker)), engines)
}

/// What only clusters in containers need.
fn docker_engine(docker: &Result<String, EngineError>) -> Check {
    const NAME: &str = "Docker";
    match docker {
        Ok(version) => Check::new(State::Ok, NAME, version),
        Err(EngineError::Unavailable { why, hint, .. }) => {
            let found = format!("{why} (only `--engine image`, `k3s` and `kind` need it)");
            Check::new(State::Warning, NAME, found).hint(hint)
        }
        Err(error) => Check::missing(NAME, error.clone()),
    }
}

/// An engine that needs what others make: what of that is there, or what is not.
fn needing(name: String, there: &str, lacks: impl IntoIterator<Item = &'static str>) -> Check {
    let lacks: Vec<&str> = lacks.into_iter().collect();
    match lacks.as_slice() {
        [] => Check::new(State::Ok, name, there),
        lacks => Check::new(State::Missing, name, format!("needs {}", lacks.join(", and "))),
    }
}

/// The control plane of the embedded engine in an image.
fn image(release: Release, no_docker: Option<&'static str>, embedded: &Check) -> Check {
    let program = (embedded.state == State::Missing).then_some("what the embedded engine lacks");
    let there = "the embedded control plane in a container of Docker's";
    needing(format!("{} {release}", containers::IMAGE), there, no_docker.into_iter().chain(program))
}

fn k3s(release: Release, no_docker: Option<&'static str>) -> Check {
    let there = "Docker is there; it fetches k3s's image, if there is one of the release";
    needing(format!("{} {release}", containers::K3S), there, no_docker)
}

fn kind(release: Release, no_docker: Option<&'static str>) -> Check {
    let name = format!("{} {release}", containers::KIND);
    // As the engine takes it.
    let program = std::env::var("KUBE_LOCKSTEP_KIND").unwrap_or_else(|_| "kind".to_owned());
    let version = Command::new(program).arg("version").output();
    let version = version.ok().filter(|output| output.status.success());
    let lacks = no_docker.into_iter().chain(version.is_none().then_some("the program kind"));
    let there = version.as_ref().map_or_else(String::new, |it| {
        String::from_utf8_lossy(&it.stdout).lines().next().unwrap_or_default().to_owned()
    });
    let check = needing(name, &format!("{there}; it fetches its image"), lacks);
    match version {
        Some(_) => check,
        None => check.hint("install kind, or use `--engine kubeconfig` on any other cluster"),
    }
}

/// The clusters of a kubeconfig. None of them is asked for anything.
fn existing() -> Check {
    const NAME: &str = kubeconfig::NAME;
    let hint = "KUBECONFIG, or `--kubeconfig`, names a file with the contexts of clusters";
    match kubeconfig::contexts(None).as_deref() {
        Ok([]) => Check::new(State::Missing, NAME, "the kubeconfig has no contexts").hint(hint),
        Ok([one]) => Check::new(State::Ok, NAME, format!("one context, for --context {one}")),
        Ok(several) => {
            let found = format!("{} contexts, of which --context names one", several.len());
            Check::new(State::Ok, NAME, found)
        }
        Err(error) => Check::missing(NAME, error.clone()).hint(hint),
    }
}
