//! The requirements of the wall-clock engines, and whether this machine meets them.

use std::io;

use super::{Check, State, program};
use crate::cli::output::PreparationLog;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_clusters::{containers, embedded, kubeconfig};
use kube_lockstep_engines::short_command::output_of;
use kube_lockstep_engines::upstream::build;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::Preparation;

/// The checks of Docker and of each wall-clock engine.
pub(super) fn checks(release: Release) -> (Option<Check>, Vec<Check>) {
    let docker = containers::docker_version();
    let no_docker = docker.is_err().then_some("Docker");
    let embedded = program(build::Artifact::ControlPlane, embedded::NAME, release);
    let image = image(release, no_docker, &embedded);
    let (k3s, kind) = (k3s(release, no_docker), kind(release, no_docker, kind_version()));
    (Some(docker_engine(&docker)), vec![embedded, image, k3s, kind, existing()])
}

/// Docker, which only clusters in containers require.
fn docker_engine(docker: &Result<String, EngineError>) -> Check {
    const NAME: &str = "Docker";
    match docker {
        Ok(version) => Check::new(State::Ok, NAME, version),
        Err(EngineError::Unavailable { problem, .. }) => {
            let found = format!("{problem} (only required by `--engine image`, `k3s` and `kind`)");
            Check { hint: problem.hint_text(), ..Check::new(State::Warning, NAME, found) }
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
    let name = format!("{} {release}", containers::IMAGE);
    let program = (embedded.state == State::Missing).then_some("the embedded engine");
    let there = "the embedded control plane in a Docker container";
    let check = requiring(name, there, no_docker.into_iter().chain(program));
    if check.state != State::Ok || embedded.state == State::Ok {
        return check;
    }
    let found = format!("{there}; the embedded engine is {}", embedded.found);
    Check { state: embedded.state, found, hint: embedded.hint.clone(), ..check }
}

fn k3s(release: Release, no_docker: Option<&'static str>) -> Check {
    let name = format!("{} {release}", containers::K3S);
    if release < containers::OLDEST {
        return unsupported(name);
    }
    let there = "Docker is available; it pulls the k3s image of the release, if there is one";
    requiring(name, there, no_docker)
}

/// Returns the first line of `kind version`.
///
/// # Errors
/// Returns the missing requirement.
fn kind_version() -> Result<String, &'static str> {
    // The same variable as the engine.
    let program = std::env::var("KUBE_LOCKSTEP_KIND").unwrap_or_else(|_| "kind".to_owned());
    let mut preparing = PreparationLog::default();
    let progress = &mut |what: &str| preparing.log(&Preparation::new(what));
    match output_of([&*program, "version"], "kind version", progress) {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Ok(text.lines().next().unwrap_or_default().to_owned())
        }
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(KIND_TIMED_OUT),
        _ => Err("the program `kind`"),
    }
}

/// The requirement if kind is installed, but does not respond.
const KIND_TIMED_OUT: &str = "a working `kind` (`kind version` timed out)";

fn kind(
    release: Release,
    no_docker: Option<&'static str>,
    version: Result<String, &'static str>,
) -> Check {
    let name = format!("{} {release}", containers::KIND);
    if release < containers::OLDEST {
        return unsupported(name);
    }
    let lacks = no_docker.into_iter().chain(version.as_ref().err().copied());
    let there = version.as_deref().unwrap_or_default();
    let check = requiring(name, &format!("{there}; it pulls the node image"), lacks);
    match version {
        Ok(_) => check,
        Err(KIND_TIMED_OUT) => check.hint("run `kind version` to see why it does not respond"),
        Err(_) => check.hint("install kind, or use `--engine kubeconfig` on any other cluster"),
    }
}

/// An engine that refuses the release.
fn unsupported(name: String) -> Check {
    let oldest = containers::OLDEST;
    let found = format!("not supported; the supported releases are {oldest} and newer");
    Check::new(State::Missing, name, found)
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

#[cfg(test)]
mod tests {
    use super::*;

    const NO_DOCKER: Option<&str> = Some("Docker");
    const TOO_OLD: Release = Release { minor: 22 };

    fn embedded(state: State) -> Check {
        Check::new(state, "embedded 1.37", "not built yet").hint("build it")
    }

    #[test]
    fn an_image_has_the_state_of_the_embedded_engine() {
        let of = |no_docker, state| image(Release::NEWEST, no_docker, &embedded(state));
        for state in [State::Ok, State::Unbuilt, State::Missing] {
            assert_eq!(of(None, state).state, state);
            assert_eq!(of(NO_DOCKER, state).state, State::Missing);
        }
        let unbuilt = of(None, State::Unbuilt);
        assert!(unbuilt.found.ends_with("the embedded engine is not built yet"));
        assert_eq!(unbuilt.hint.as_deref(), Some("build it"));
        assert_eq!(of(None, State::Missing).found, "requires the embedded engine");
        assert_eq!(of(NO_DOCKER, State::Unbuilt).found, "requires Docker");
        let both = "requires Docker and the embedded engine";
        assert_eq!(of(NO_DOCKER, State::Missing).found, both);
    }

    #[test]
    fn k3s_requires_docker_and_a_supported_release() {
        assert_eq!(k3s(containers::OLDEST, None).state, State::Ok);
        assert_eq!(k3s(containers::OLDEST, NO_DOCKER).found, "requires Docker");
        let old = k3s(TOO_OLD, None);
        assert_eq!(old.state, State::Missing);
        assert_eq!(old.found, "not supported; the supported releases are 1.23 and newer");
    }

    #[test]
    fn kind_requires_docker_its_program_and_a_supported_release() {
        let version = || Ok("kind v0.29.0".to_owned());
        let there = kind(containers::OLDEST, None, version());
        assert_eq!(there.state, State::Ok);
        assert_eq!(there.found, "kind v0.29.0; it pulls the node image");
        assert_eq!(kind(containers::OLDEST, NO_DOCKER, version()).found, "requires Docker");
        let lacks = kind(containers::OLDEST, NO_DOCKER, Err("the program `kind`"));
        assert_eq!(lacks.found, "requires Docker and the program `kind`");
        assert!(lacks.hint.is_some_and(|hint| hint.contains("install kind")));
        assert_eq!(kind(TOO_OLD, None, version()).state, State::Missing);
    }
}
