//! The event recorder of client-go: it limits the rate of an object's events, and combines events
//! that differ only in their message.
//!
//! Upstream: client-go, tools/record/events_cache.go

use kube_autoscaler_models::hpa::TokenBucket;
use kube_autoscaler_models::observation::{
    COMBINED, ControllerAction, Event, EventType, Observation,
};
use kube_autoscaler_models::rules::{EventRules, Rules};
use kube_autoscaler_models::time::Time;

/// The recorder of one HPA's events.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    rules: EventRules,
    normal: Option<TokenBucket>,
    warning: Option<TokenBucket>,
}

impl Recorder {
    pub(super) fn new(rules: &Rules) -> Recorder {
        Recorder { rules: rules.events, normal: None, warning: None }
    }

    /// Keeps only the events that reach the API server.
    pub(super) fn record(&mut self, observation: &mut Observation, now: Time) {
        observation.retain(|action| match action {
            ControllerAction::Event(event) => {
                let EventRules { limit, limited_by_type, .. } = self.rules;
                let separate = limited_by_type && event.type_ == EventType::Warning;
                let bucket = if separate { &mut self.warning } else { &mut self.normal };
                bucket.get_or_insert_with(|| TokenBucket::new(limit, now)).try_accept(now)
            }
            _ => true,
        });
    }
}

/// Removes the prefix of a combined event's message. Whether an event is combined is not compared
/// on a cluster: client-go forgets a random message when it combines events.
pub(super) fn separate(event: &mut Event) {
    if let Some(message) = event.message.as_str().strip_prefix(COMBINED) {
        event.message = message.to_owned().into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::rules::Release;

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
