//! Checks of single values.

use super::cursor::{At, Problems};
use crate::error::suggest;
use crate::text::{AnyQuantity, Form};
use kube_autoscaler_models::time::Time;

/// The hint for times after the end of the scenario.
pub(super) const LATER_END: &str = "increase `until`";

/// Checks that a time is not after the end of the scenario.
pub(super) fn not_after_end(time: Time, until: Time, at: At<'_>, problems: &mut Problems) {
    if time > until {
        let what = format!("{time} is after the end of the scenario, {until}");
        problems.hint(at, what, LATER_END);
    }
}

/// Checks a number of replicas.
pub(super) fn check_replicas(replicas: i32, at: At<'_>, problems: &mut Problems) {
    if replicas < 0 {
        problems.plain(at, format!("expected 0 or more replicas, found {replicas}"));
    }
}

/// Checks that a resource is `cpu` or `memory`.
pub(super) fn resource(name: &str, at: At<'_>, problems: &mut Problems) {
    if !matches!(name, "cpu" | "memory") {
        let hint = suggest(name, ["cpu", "memory"]);
        problems.add(at.problem(format!("unknown resource `{name}`"), hint));
    }
}

/// Checks a quantity of a manifest, which keeps its text.
pub(super) fn quantity(text: &str, at: At<'_>, problems: &mut Problems) {
    if let Err(malformed) = AnyQuantity::read(text) {
        problems.add_at(at, malformed);
    }
}
