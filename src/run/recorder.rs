//! What becomes of a controller's events on their way to the API server: client-go drops those of
//! an object that come too fast, and joins those that differ in nothing but their message.
//!
//! Upstream: client-go, tools/record/events_cache.go

use crate::model::observation::Event;
use crate::model::time::{Span, Time};

/// So many events of an object may come at once, and one more after each interval.
const BURST: f64 = 25.0;
const REFILL: Span = Span::from_mins(5);

/// How the message of an event begins that was joined with others. Of ten different messages one
/// is forgotten by chance, so nobody can say of which event it is; what follows it is its own.
pub(super) const COMBINED: &str = "(combined from similar events): ";

/// The recorder of one HPA's events.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    tokens: f64,
    refilled: Option<Time>,
}

impl Recorder {
    pub(super) fn new() -> Recorder {
        Recorder { tokens: BURST, refilled: None }
    }

    /// Which of these events reach the API server.
    pub(super) fn record(&mut self, events: &mut Vec<Event>, now: Time) {
        events.retain(|_| self.accept(now));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::observation::EventType;

    #[test]
    fn of_events_in_a_row_25_come_through_and_then_one_in_five_minutes() {
        let event = Event {
            type_: EventType::Normal,
            reason: "SuccessfulRescale".into(),
            message: "New size: 2".into(),
        };
        let mut recorder = Recorder::new();
        let mut at = |seconds: i64, many: usize| {
            let mut events = vec![event.clone(); many];
            recorder.record(&mut events, Time::from_secs(seconds));
            events.len()
        };
        assert_eq!((at(0, 20), at(1, 20)), (20, 5));
        assert_eq!((at(299, 1), at(302, 2), at(303, 1)), (0, 1, 0));
    }
}
