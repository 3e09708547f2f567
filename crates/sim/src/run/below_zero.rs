//! Usage that is below zero all the time: a mistake in a sum or in a factor.

use crate::world::{signal_at, signal_changes};
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_scenario::resolved::{Metrics, Modified, Modifier, Signal};

/// A note for each resource with computed usage that is below zero at all times up to `until`.
pub(super) fn notes(metrics: &Metrics, until: Time) -> Vec<Diagnostic> {
    let is_below = |signal: &Signal| is_computed(signal) && is_below_zero(signal, until);
    let resources = metrics.resources.iter().filter(|it| it.source.signals().any(is_below));
    let note =
        |name: &str| format!("the usage of {name} is below zero all the time, and counts as 0");
    resources.map(|usage| Diagnostic::new(note(&usage.name))).collect()
}

/// Returns true if the parts of a signal may be negative. Other usage is refused if it is.
fn is_computed(signal: &Signal) -> bool {
    match signal {
        Signal::Sum(_) | Signal::Modified(Modified { by: Modifier::Factor(_), .. }) => true,
        signal => signal.parts().into_iter().any(is_computed),
    }
}

fn is_below_zero(signal: &Signal, until: Time) -> bool {
    let is_below = |at: Time| signal_at(signal, at).is_none_or(|milli| milli < 0);
    // Almost all loads are above zero at the start, which ends the check.
    signal_at(signal, Time::ZERO).is_some_and(|milli| milli < 0)
        && signal_changes(signal, until).into_iter().all(is_below)
}
