//! The model's prediction of one reconcile.

use std::borrow::Cow;

use crate::derivation::Derivation;
use crate::observation::{Observation, order_of};
use crate::time::Time;

/// The model's prediction of one reconcile.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Decision {
    /// Everything that is observable.
    pub observation: Observation,
    /// The time of each of its events.
    pub event_times: Vec<Time>,
    /// The steps that led to the decision.
    pub derivation: Derivation,
    /// The end of the reconcile. It is later than the beginning if the reconcile waited.
    pub end: Time,
    /// The number of the HPA in the order of creation, from which its UID is derived.
    pub uid: u64,
    /// The number of requests before the last thing that happened during the reconcile.
    /// The cluster already contains their writes.
    pub committed: usize,
}

impl Decision {
    /// The decision with its events in the observed order. Returns the decision itself if the
    /// events are not the same, or already in this order.
    #[must_use]
    pub fn with_events_as(&self, observed: &Observation) -> Cow<'_, Decision> {
        let Some(order) = order_of(self.observation.events(), observed.events()) else {
            return Cow::Borrowed(self);
        };
        let mut decision = self.clone();
        decision.observation.order_events_as(observed);
        decision.event_times = order.into_iter().map(|index| self.event_times[index]).collect();
        Cow::Owned(decision)
    }

    /// Empties the decision, but keeps its memory.
    pub fn clear(&mut self) {
        self.observation.clear();
        self.event_times.clear();
        self.committed = 0;
        self.derivation.clear();
    }
}

/// The result of processing one item of the work queue.
#[derive(Clone, PartialEq, Debug)]
pub enum WorkItemResult {
    /// There was no item, or its HPA does not exist.
    Skipped,
    /// The reconcile is blocked until a response arrives or its next attempt is due.
    Blocked,
    /// The reconcile ended.
    Reconciled(Box<Decision>),
}

impl WorkItemResult {
    /// The decision of a reconcile that ended.
    #[must_use]
    pub fn decision(self) -> Option<Decision> {
        match self {
            WorkItemResult::Skipped | WorkItemResult::Blocked => None,
            WorkItemResult::Reconciled(decision) => Some(*decision),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Text;
    use crate::observation::{
        ControllerAction, Event, EventOrigin, EventTimes, EventType, EventVerb, SentEvent,
    };

    fn event(message: &'static str) -> Event {
        Event {
            hpa: "web".into(),
            type_: EventType::Warning,
            reason: "FailedGetScale".into(),
            message: Text::Static(message),
        }
    }

    fn observed(messages: &[&'static str]) -> Observation {
        let events = messages.iter().map(|message| ControllerAction::Event(event(message)));
        Observation::new(Time::ZERO, "web".into(), events)
    }

    fn messages(observation: &Observation) -> Vec<&str> {
        observation.events().map(|event| event.message.as_str()).collect()
    }

    #[test]
    fn events_take_the_observed_order_with_their_times() {
        let event_times = [1, 2, 3].map(Time::from_secs).to_vec();
        let observation = observed(&["a", "b", "a"]);
        let decision = Decision { observation, event_times, ..Decision::default() };
        let ordered = decision.with_events_as(&observed(&["b", "a", "a"]));
        assert_eq!(messages(&ordered.observation), ["b", "a", "a"]);
        assert_eq!(ordered.event_times, [2, 1, 3].map(Time::from_secs));
        for others in [&["a", "b", "a"][..], &["b", "a"], &["b", "b", "a"], &["b", "a", "a", "a"]] {
            let unchanged = decision.with_events_as(&observed(others));
            assert!(matches!(unchanged, Cow::Borrowed(_)), "{others:?}");
        }
    }

    #[test]
    fn requests_that_send_events_take_the_order_of_another_reconcile() {
        let of = |messages: &[&'static str]| {
            let mut observation = observed(messages);
            for message in messages {
                let event = event(message);
                let (origin, times) = (EventOrigin::default(), EventTimes::default());
                let sent = SentEvent { verb: EventVerb::Create, event, count: 1, origin, times };
                observation.push(ControllerAction::SendEvent(Box::new(sent)));
            }
            observation
        };
        let mut ordered = of(&["a", "b", "c"]);
        ordered.order_events_as(&of(&["c", "a", "b"]));
        assert_eq!(ordered, of(&["c", "a", "b"]));
    }
}
