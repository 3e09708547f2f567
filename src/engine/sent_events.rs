//! The model of the requests that send a scenario's events to the API.

use std::borrow::Cow;

use crate::model::hpa::{Decision, EventCorrelator};
use crate::model::observation::Observation;
use crate::model::rules::Rules;
use crate::world::Change;

/// Predicts the requests that send events, in the order of the reconciles.
#[derive(Clone, Debug)]
pub struct SentEvents {
    rules: Rules,
    correlator: EventCorrelator,
}

impl SentEvents {
    /// For a controller that has recorded no event yet.
    #[must_use]
    pub fn new(rules: Rules) -> SentEvents {
        SentEvents { rules, correlator: EventCorrelator::new(rules.events) }
    }

    /// Notes a change between two reconciles: a new controller has not sent any event, and a new
    /// HPA has none.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::RestartController => *self = SentEvents::new(self.rules),
            Change::DeleteHpa { name } => self.correlator.hpa_deleted(name),
            _ => {}
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
        Cow::Owned(self.correlator.send(decision, observed))
    }
}
