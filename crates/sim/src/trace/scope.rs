//! The part of observations that an engine shows.

use std::borrow::Cow;

use kube_autoscaler_models::observation::{ControllerAction, Observation, SentEvent};
use kube_autoscaler_models::series::SeriesChange;

/// The fields that an engine can observe. Default: all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scope {
    /// Queries made by the controller.
    pub reads: bool,
    pub scale_reads: bool,
    /// Events as recorded.
    pub events: bool,
    /// Requests that send events to the API.
    pub sent_events: bool,
    /// Errors at the end of reconciles.
    pub errors: bool,
    /// The status of the HPA.
    pub status: bool,
    /// The messages of its conditions.
    pub messages: bool,
    /// The order of actions of different kinds.
    pub order: bool,
    /// The bodies of writes, apart from the values that are stored, and the API versions.
    pub bodies: bool,
    /// The controller's own Prometheus metrics.
    pub controller_metrics: bool,
    /// The Prometheus metrics of its work queue. They require `controller_metrics`.
    pub all_metrics: bool,
    /// The buckets of its histograms, the names and times of events that are sent, and the API
    /// versions and UIDs of their objects. They require `controller_metrics` and `sent_events`.
    pub details: bool,
}

impl Scope {
    /// All fields.
    pub const ALL: Scope = Scope {
        reads: true,
        scale_reads: true,
        events: true,
        sent_events: true,
        errors: true,
        status: true,
        messages: true,
        order: true,
        bodies: true,
        controller_metrics: true,
        all_metrics: true,
        details: true,
    };

    /// The intersection of two scopes.
    #[must_use]
    pub fn and(self, other: Scope) -> Scope {
        Scope {
            reads: self.reads && other.reads,
            scale_reads: self.scale_reads && other.scale_reads,
            events: self.events && other.events,
            sent_events: self.sent_events && other.sent_events,
            errors: self.errors && other.errors,
            status: self.status && other.status,
            messages: self.messages && other.messages,
            order: self.order && other.order,
            bodies: self.bodies && other.bodies,
            controller_metrics: self.controller_metrics && other.controller_metrics,
            all_metrics: self.all_metrics && other.all_metrics,
            details: self.details && other.details,
        }
    }

    /// Returns true if an action can be observed.
    pub(crate) fn shows(self, action: &ControllerAction) -> bool {
        match action {
            ControllerAction::GetScale { .. } => self.reads && self.scale_reads,
            ControllerAction::ListPodMetrics { .. }
            | ControllerAction::PodsMetric { .. }
            | ControllerAction::ObjectMetric { .. }
            | ControllerAction::ExternalMetric { .. } => self.reads,
            ControllerAction::UpdateScale(_) => true,
            ControllerAction::UpdateStatus(_) => self.status,
            ControllerAction::Event(_) => self.events,
            ControllerAction::SendEvent(_) => self.sent_events,
            ControllerAction::Error { .. } => self.errors,
            ControllerAction::ControllerMetric(change) => self.shows_series(change),
            // No model predicts it.
            ControllerAction::Write(_)
            | ControllerAction::Reconcile { .. }
            | ControllerAction::Reconciled { .. } => false,
        }
    }

    /// Returns true if nothing in a tick is excluded.
    pub(crate) fn is_all_of(self, tick: &Observation) -> bool {
        Scope { all_metrics: true, ..self } == Scope::ALL
            && tick.controller_metrics().all(|change| self.shows_series(change))
    }

    fn shows_series(self, change: &SeriesChange) -> bool {
        self.controller_metrics
            && (self.all_metrics || !change.is_of_work_queue())
            && (self.details || !change.is_bucket())
    }

    /// The observable changes of metrics in a tick.
    pub fn series(self, tick: &Observation) -> impl Iterator<Item = &SeriesChange> + Clone {
        tick.controller_metrics().filter(move |change| self.shows_series(change))
    }

    /// The observable part of a request that sends an event.
    pub(crate) fn sent(self, request: &SentEvent) -> Cow<'_, SentEvent> {
        match self.details {
            true => Cow::Borrowed(request),
            false => Cow::Owned(request.for_older_protocol()),
        }
    }

    /// The observable queries of a tick.
    #[must_use]
    pub fn visible(self, tick: &Observation) -> Vec<&ControllerAction> {
        tick.reads().filter(|read| self.shows(read)).collect()
    }
}
