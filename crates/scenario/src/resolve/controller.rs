//! Flags and feature gates of the kube-controller-manager.

use std::collections::BTreeMap;

use super::cursor::{At, Problems};
use crate::decode::{Nulls, decode};
use crate::diagnostic::Diagnostic;
use crate::error::suggest;
use crate::node::Node;
use crate::raw::{Flags as TypedFlags, ScenarioFile};
use crate::resolved::ReleaseRange;
use kube_autoscaler_models::flags::{FeatureGates, Flag, Flags, Gate, GateError};
use kube_autoscaler_models::rules::{Dependent, Release, Rules};
use kube_autoscaler_models::time::Span;

pub(super) fn resolve(
    file: &ScenarioFile,
    at: At<'_>,
    releases: ReleaseRange,
    problems: &mut Problems,
) -> (Flags, FeatureGates, BTreeMap<String, bool>) {
    // A gate must exist on the newest release to which the scenario applies.
    let newest = releases.to.unwrap_or(Release::NEWEST);
    let newest = newest.min(Release::NEWEST);
    let mut gates = Rules::of(newest).default_gates();
    let mut overrides = BTreeMap::new();
    let Some(controller) = &file.controller else { return (Flags::default(), gates, overrides) };
    let at = at.key("controller");
    let flags = controller.flags.as_ref();
    let flags =
        flags.map_or_else(Flags::default, |typed| flags_of(typed, at.key("flags"), problems));
    for (name, on) in &controller.feature_gates {
        let at = at.key("featureGates");
        if Dependent::of(newest).any(|dependent| dependent.name == name) {
            overrides.insert(name.clone(), *on);
            continue;
        }
        match gates.set(name, *on) {
            Ok(()) => {
                overrides.insert(name.clone(), *on);
            }
            Err(GateError::Unknown(_)) => {
                let dependents = Dependent::of(newest).map(|dependent| dependent.name);
                let known: Vec<_> =
                    Gate::ALL.into_iter().map(Gate::name).chain(dependents).collect();
                let what = format!("unknown feature gate `{name}`");
                problems.add(at.key_position(name).problem(what, suggest(name, known)));
            }
            Err(error @ GateError::Locked { .. }) => {
                let hint = format!("remove `{name}`");
                problems.hint(at.key(name), format!("{error} in {newest}"), hint);
            }
            Err(GateError::Absent(_)) => {
                let what = format!("feature gate `{name}` does not exist in {newest}");
                problems.plain(at.key_position(name), what);
            }
        }
    }
    // Upstream's message, for each gate that is still on.
    for dependent in Dependent::of(newest) {
        let given = overrides.get(dependent.name).copied();
        let on = given.unwrap_or_else(|| dependent.default_value(newest));
        if on && !gates.enabled(dependent.needs) {
            let (name, needs) = (dependent.name, dependent.needs.name());
            let what =
                format!("{name} is enabled, but depends on features that are disabled: [{needs}]");
            let at = at.key("featureGates");
            let at = if given.is_some() { at.key(name) } else { at.key(needs) };
            problems.hint(at, what, format!("add `{name}: false`"));
        }
    }
    (flags, gates, overrides)
}

/// The only field of `controller.flags`: a flag with the value of this text.
///
/// # Errors
/// If a scenario file can't have the value.
pub fn flag(flag: Flag, value: &str) -> Result<TypedFlags, Diagnostic> {
    let node = Node::field(flag.name(), value);
    let typed = decode(&node, Nulls::Refused)?;
    let mut problems = Problems::new(Vec::new());
    flags_of(&typed, At::root(&node), &mut problems);
    problems.into_result().map(|()| typed).map_err(|mut all| all.remove(0))
}

fn flags_of(typed: &TypedFlags, at: At<'_>, problems: &mut Problems) -> Flags {
    let mut flags = Flags::default();
    let name = "horizontal-pod-autoscaler-sync-period";
    if let Some(period) = typed.horizontal_pod_autoscaler_sync_period {
        if period < Span::from_millis(100) {
            let what = format!("a sync period of {period} is too short: the minimum is 100ms");
            problems.plain(at.key(name), what);
        }
        flags.sync_period = period;
    }
    let spans = [
        (
            typed.horizontal_pod_autoscaler_downscale_stabilization,
            &mut flags.downscale_stabilization,
        ),
        (
            typed.horizontal_pod_autoscaler_cpu_initialization_period,
            &mut flags.cpu_initialization_period,
        ),
        (
            typed.horizontal_pod_autoscaler_initial_readiness_delay,
            &mut flags.initial_readiness_delay,
        ),
        (typed.horizontal_pod_autoscaler_upscale_delay, &mut flags.upscale_delay),
        (typed.horizontal_pod_autoscaler_downscale_delay, &mut flags.downscale_delay),
    ];
    for (given, flag) in spans {
        *flag = given.unwrap_or(*flag);
    }
    if let Some(tolerance) = typed.horizontal_pod_autoscaler_tolerance {
        if tolerance < 0.0 {
            let at = at.key("horizontal-pod-autoscaler-tolerance");
            problems.plain(at, format!("expected a tolerance of 0 or more, found {tolerance}"));
        }
        flags.tolerance = tolerance;
    }
    if let Some(syncs) = typed.concurrent_horizontal_pod_autoscaler_syncs {
        if syncs < 1 {
            let at = at.key("concurrent-horizontal-pod-autoscaler-syncs");
            problems.plain(at, format!("expected at least 1 worker, found {syncs}"));
        }
        flags.concurrent_syncs = syncs;
    }
    flags
}

/// The flags that the file sets.
pub(super) fn given(file: &ScenarioFile) -> Vec<Flag> {
    let typed = file.controller.as_ref().and_then(|controller| controller.flags.as_ref());
    let typed = typed.map(|typed| serde_json::to_value(typed).unwrap_or_default());
    let given = |flag: &Flag| typed.as_ref().is_some_and(|it| it.get(flag.name()).is_some());
    Flag::ALL.into_iter().filter(given).collect()
}
