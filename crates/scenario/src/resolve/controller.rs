//! Flags and feature gates of the kube-controller-manager.

use std::collections::BTreeMap;

use super::cursor::{At, Problems};
use crate::decode::{Nulls, decode};
use crate::diagnostic::Diagnostic;
use crate::error::suggest;
use crate::flag_values::FlagValues;
use crate::node::Node;
use crate::raw::ScenarioFile;
use crate::resolved::ReleaseRange;
use kube_autoscaler_models::flags::{FeatureGates, Flag, FlagValue, Flags, Gate, GateError};
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
    let values = controller.flags.clone().unwrap_or_default();
    values.check(at.key("flags"), problems);
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
    (values.flags(), gates, overrides)
}

impl FlagValues {
    /// Reads a flag with the value of a text.
    ///
    /// # Errors
    /// The problem that a file with this value has.
    pub fn parse(flag: Flag, value: &str) -> Result<FlagValues, Diagnostic> {
        let node = Node::field(flag.name(), value);
        let values: FlagValues = decode(&node, Nulls::Refused)?;
        let mut problems = Problems::new(Vec::new());
        values.check(At::root(&node), &mut problems);
        problems.into_result().map(|()| values).map_err(|mut all| all.remove(0))
    }

    /// Checks the ranges of the values.
    fn check(&self, at: At<'_>, problems: &mut Problems) {
        for (flag, value) in &self.0 {
            let what = match (flag, value) {
                (Flag::SyncPeriod, FlagValue::Duration(period))
                    if *period < Span::from_millis(100) =>
                {
                    format!("a sync period of {period} is too short: the minimum is 100ms")
                }
                (Flag::Tolerance, FlagValue::Number(tolerance)) if *tolerance < 0.0 => {
                    format!("expected a tolerance of 0 or more, found {tolerance}")
                }
                (Flag::ConcurrentSyncs, FlagValue::Count(syncs)) if *syncs < 1 => {
                    format!("expected at least 1 worker, found {syncs}")
                }
                _ => continue,
            };
            problems.plain(at.key(flag.name()), what);
        }
    }
}

/// The flags that the file sets.
pub(super) fn given(file: &ScenarioFile) -> Vec<Flag> {
    let flags = file.controller.as_ref().and_then(|controller| controller.flags.as_ref());
    flags.into_iter().flat_map(|flags| flags.0.keys().copied()).collect()
}
