//! The observable fields of a controller, and the accuracy of the observations.

use kube_autoscaler_models::time::Span;
use kube_lockstep_sim::trace::Scope;

/// The extent and the accuracy of a source of observations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Observability {
    /// The fields that can be observed at all.
    pub scope: Scope,
    /// The error of an observed time.
    pub(crate) uncertainty: Span,
    /// The maximum delay of the report of another request after the last request of a reconcile.
    pub(crate) linger: Span,
    /// How long an event may take to be reported: controllers write them in the background, one by
    /// one.
    pub events: Span,
}
