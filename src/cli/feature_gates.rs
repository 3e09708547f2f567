//! Feature gates on the command line, of one component or of both.

use super::failure::Failure;
use kube_autoscaler_models::flags::{Component, Gate, GateError, GateSetting};
use kube_autoscaler_models::rules::Release;
use kube_lockstep_scenario::error::similar;

/// Parses `GATE=true`, or with a component `kube-apiserver:GATE=true`.
pub(super) fn setting(text: &str) -> Result<GateSetting, String> {
    let (component, gate) = match text.split_once(':') {
        None => (None, text),
        Some((name, gate)) => {
            let known = Component::ALL.into_iter().find(|component| component.name() == name);
            let component = known.ok_or_else(|| {
                let hint = similar(name, Component::ALL.map(Component::name));
                let hint = hint.map(|hint| format!(": {hint}")).unwrap_or_default();
                format!("no component {name}{hint}")
            })?;
            (Some(component), gate)
        }
    };
    let (name, on) = gate.split_once('=').unwrap_or((gate, ""));
    let on = on.parse().map_err(|_| format!("expected {name}=true or {name}=false"))?;
    Ok(GateSetting { component, name: name.to_owned(), on })
}

/// The error of a gate that an option can't set for a release.
pub(super) fn failure(option: &str, release: Release, error: &GateError) -> Failure {
    let what = match error {
        GateError::Unknown(_) => error.to_string(),
        GateError::Absent(gate) => {
            format!("feature gate {} does not exist in Kubernetes {release}", gate.name())
        }
        GateError::Locked { .. } => format!("{error} in Kubernetes {release}"),
    };
    let failure = Failure::usage(format!("{option}: {what}"));
    match error {
        GateError::Unknown(name) => match similar(name, Gate::ALL.map(Gate::name)) {
            Some(hint) => failure.hint(hint),
            None => failure.hint("leave it out: no HPA depends on it"),
        },
        GateError::Absent(_) | GateError::Locked { .. } => failure,
    }
}
