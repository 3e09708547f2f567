//! How much of a controller can be observed, and how exactly.

use crate::compare::Scope;
use crate::model::time::Span;

/// What can be seen of a cluster's controller, and how exactly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Observability {
    /// What can be seen at all.
    pub(crate) scope: Scope,
    /// How far from its time something may seem to be.
    pub(crate) uncertainty: Span,
    /// How long after the last request of a reconcile something of it may still be told.
    pub(crate) linger: Span,
    /// How long events may be on their way: controllers write them by the way, one by one.
    pub(crate) events: Span,
}
