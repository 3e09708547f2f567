//! The event recorder of client-go: it limits the rate of an object's events, and combines events
//! that differ only in their message.
//!
//! Upstream: client-go, tools/record/events_cache.go

use crate::model::observation::{ControllerAction, Event, EventType, Observation};
use crate::model::rules::Rules;
use crate::model::time::{Span, Time};

/// The burst of events for an object, and the interval after which one more is allowed.
const BURST: f64 = 25.0;
const REFILL: Span = Span::from_mins(5);

/// The prefix of the message of a combined event. The event's own message follows. The recorder's
/// cache evicts entries at random, so whether an event is combined is not predictable.
const COMBINED: &str = "(combined from similar events): ";

/// The recorder of one HPA's events.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    /// Whether warnings have a separate budget.
    by_type: bool,
    normal: Bucket,
    warning: Bucket,
}

impl Recorder {
    pub(super) fn new(rules: &Rules) -> Recorder {
        let by_type = rules.status.events_are_limited_by_type;
        Recorder { by_type, normal: Bucket::new(), warning: Bucket::new() }
    }

    /// Keeps only the events that reach the API server.
    pub(super) fn record(&mut self, observation: &mut Observation, now: Time) {
        observation.retain(|action| match action {
            ControllerAction::Event(event) => {
                let separate = self.by_type && event.type_ == EventType::Warning;
                if separate { &mut self.warning } else { &mut self.normal }.accept(now)
            }
            _ => true,
        });
    }
}

#[derive(Clone, Debug)]
struct Bucket {
    tokens: f64,
    refilled: Option<Time>,
}

impl Bucket {
    fn new() -> Bucket {
        Bucket { tokens: BURST, refilled: None }
    }

    /// Upstream: EventSourceObjectSpamFilter.Filter
    fn accept(&mut self, now: Time) -> bool {
        if let Some(refilled) = self.refilled {
            let passed = (now - refilled).0.max(0) as f64 / REFILL.0 as f64;
            self.tokens = (self.tokens + passed).min(BURST);
        }
        self.refilled = Some(now);
        let accepted = self.tokens >= 1.0;
        if accepted {
            self.tokens -= 1.0;
        }
        accepted
    }
}

/// Removes the prefix of a combined event's message.
pub(super) fn separate(event: &mut Event) {
    if let Some(message) = event.message.as_str().strip_prefix(COMBINED) {
        event.message = message.to_owned().into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rules::Release;

    fn events(type_: EventType, many: usize) -> Observation {
        let (reason, message) = ("SuccessfulRescale".into(), "New size: 2".into());
        let event = Event { hpa: "web".into(), type_, reason, message };
        Observation::default().with_events(vec![event; many])
    }

    #[test]
    fn a_burst_of_25_events_passes_and_then_one_every_five_minutes() {
        let mut recorder = Recorder::new(&Rules::of(Release::NEWEST));
        let mut at = |seconds: i64, many: usize| {
            let mut tick = events(EventType::Normal, many);
            recorder.record(&mut tick, Time::from_secs(seconds));
            tick.events().count()
        };
        assert_eq!((at(0, 20), at(1, 20)), (20, 5));
        assert_eq!((at(299, 1), at(302, 2), at(303, 1)), (0, 1, 0));
    }

    #[test]
    fn warnings_have_a_separate_budget_since_1_32() {
        let passed = |minor: u32| {
            let mut recorder = Recorder::new(&Rules::of(Release { minor }));
            let mut tick = events(EventType::Warning, 30);
            tick.push(events(EventType::Normal, 1).actions().next().unwrap().clone());
            recorder.record(&mut tick, Time::ZERO);
            tick.events().count()
        };
        assert_eq!((passed(31), passed(32)), (25, 26));
    }
}
