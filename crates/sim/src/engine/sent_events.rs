//! The model of the requests that send a scenario's events to the API.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::world::Change;
use kube_autoscaler_models::hpa::{Decision, EventCorrelator};
use kube_autoscaler_models::observation::Observation;
use kube_autoscaler_models::rules::Rules;

/// Predicts the requests that send events, in the order of the reconciles.
#[derive(Clone, Debug)]
pub struct SentEvents {
    rules: Rules,
    correlator: EventCorrelator,
    /// The UIDs of the HPAs with events.
    uids: BTreeMap<Arc<str>, u64>,
}

impl SentEvents {
    /// For a controller that has recorded no event yet.
    #[must_use]
    pub(crate) fn new(rules: Rules) -> SentEvents {
        let (correlator, uids) = (EventCorrelator::new(rules), BTreeMap::new());
        SentEvents { rules, correlator, uids }
    }

    /// Notes a change between two reconciles: a new controller has not sent any event.
    pub fn apply(&mut self, change: &Change) {
        if matches!(change, Change::RestartController) {
            *self = SentEvents::new(self.rules);
        }
    }

    /// The prediction of a reconcile, with the requests that send its events; see
    /// [`EventCorrelator::send`].
    #[must_use]
    pub fn predict<'d>(
        &mut self,
        decision: &'d Decision,
        observed: Option<&Observation>,
    ) -> Cow<'d, Observation> {
        if decision.event_times.is_empty() {
            return Cow::Borrowed(&decision.observation);
        }
        let hpa = &decision.observation.hpa;
        // An HPA that was created again has no events yet.
        if self.uids.insert(hpa.clone(), decision.uid) != Some(decision.uid) {
            self.correlator.hpa_deleted(hpa);
        }
        Cow::Owned(self.correlator.send(decision, observed))
    }
}
