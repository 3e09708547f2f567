//! The way of an event from the controller to the API server: client-go combines events that differ
//! only in their message, counts events that occur again, and limits their rate.
//!
//! Upstream's caches keep 4096 entries each. They are unbounded here: a scenario has fewer.
//!
//! Upstream: client-go, tools/record/events_cache.go

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::decision::Decision;
use super::token_bucket::TokenBucket;
use crate::api::Text;
use crate::observation::{
    COMBINED, COMBINED_WITHOUT_MESSAGE, ControllerAction, Event, EventOrigin, EventTimes,
    EventType, EventVerb, Observation, SentEvent,
};
use crate::rules::Rules;
use crate::time::{Span, Time};

/// Events are combined when this many different messages are known.
const MAX_MESSAGES: usize = 10;

/// The messages are forgotten if no similar event has occurred for longer than this.
const INTERVAL: Span = Span::from_mins(10);

/// The correlator of one controller: a new controller has a new one.
#[derive(Clone, Debug)]
pub struct EventCorrelator {
    rules: Rules,
    hpas: BTreeMap<Arc<str>, HpaEvents>,
}

/// The events of one HPA.
#[derive(Clone, Debug, Default)]
struct HpaEvents {
    normal: Option<TokenBucket>,
    warning: Option<TokenBucket>,
    groups: Vec<SimilarEvents>,
}

/// Events that differ only in their message.
#[derive(Clone, Debug)]
struct SimilarEvents {
    type_: EventType,
    reason: Text,
    last: Time,
    messages: KeptMessages,
    /// By message.
    counts: BTreeMap<String, Count>,
    combined: Count,
}

/// The number of requests that wrote an event, as far as it is known.
#[derive(Clone, Debug, Default)]
struct Count {
    least: u32,
    most: u32,
    /// The times at which the event may have been sent first, in order. It was sent at the last of
    /// them, unless `least` is 0.
    first: Vec<Time>,
}

/// An event that occurs in a reconcile.
struct Occurrence<'a> {
    event: &'a Event,
    at: Time,
    /// The beginning of the reconcile.
    began: Time,
}

impl Occurrence<'_> {
    /// The name and the times of the event that is written, if it occurred first at `first`.
    fn times(&self, first: Time) -> EventTimes {
        EventTimes::new(&self.event.hpa, first, self.at, self.began)
    }
}

/// The different messages that upstream's aggregator keeps. When it combines events, it forgets an
/// arbitrary one, so it may be unknown whether a message is kept.
#[derive(Clone, Debug, Default)]
struct KeptMessages {
    certain: BTreeSet<String>,
    possible: BTreeSet<String>,
    /// The number of messages that are kept.
    size: usize,
}

/// The request that is known to have been sent for an event.
#[derive(Clone, Copy)]
enum Known<'a> {
    /// Nothing is observed: the more probable case is assumed.
    Nothing,
    /// The next request of the same HPA, if there is one.
    Request(Option<&'a SentEvent>),
}

impl EventCorrelator {
    /// Creates the correlator of a new controller.
    #[must_use]
    pub fn new(rules: Rules) -> EventCorrelator {
        EventCorrelator { rules, hpas: BTreeMap::new() }
    }

    /// Forgets the events of a deleted HPA: an HPA that is created again has another UID.
    pub fn hpa_deleted(&mut self, hpa: &str) {
        self.hpas.remove(hpa);
    }

    /// Adds the requests that send the events of a reconcile. The observed reconcile decides what
    /// upstream leaves to chance: whether it still has a message when it has combined events.
    /// Without it, the more probable case is assumed.
    #[must_use]
    pub fn send(&mut self, decision: &Decision, observed: Option<&Observation>) -> Observation {
        let mut sent = decision.observation.clone();
        let mut requests = observed.map(|observed| observed.sent_events().peekable());
        let began = decision.observation.at;
        let version = self.rules.admission.controller_version();
        let origin = EventOrigin::for_hpa(version, decision.uid);
        for (event, at) in decision.observation.events().zip(&decision.event_times) {
            let known = match &mut requests {
                Some(requests) => Known::Request(requests.peek().copied()),
                None => Known::Nothing,
            };
            let occurrence = Occurrence { event, at: *at, began };
            if let Some(request) = self.correlate(&occurrence, known) {
                let request = SentEvent { origin: origin.clone(), ..request };
                sent.push(ControllerAction::SendEvent(Box::new(request)));
                requests.as_mut().and_then(Iterator::next);
            }
        }
        sent
    }

    /// The request that sends an event, unless the limit is reached.
    ///
    /// Upstream: EventCorrelator.EventCorrelate
    fn correlate(&mut self, occurrence: &Occurrence<'_>, known: Known<'_>) -> Option<SentEvent> {
        let Occurrence { event, at, .. } = *occurrence;
        let rules = self.rules.events;
        let events = self.hpas.entry(event.hpa.clone()).or_default();
        let bucket = match event.type_ {
            EventType::Warning if rules.limited_by_type => &mut events.warning,
            EventType::Warning | EventType::Normal => &mut events.normal,
        };
        let limited = || TokenBucket::new(rules.limit, at);
        let accepted = bucket.get_or_insert_with(limited).try_accept(at);
        let known = match known {
            Known::Request(_) if !accepted => Known::Request(None),
            known => known,
        };
        let combined_message = match rules.combined_has_message {
            true => format!("{COMBINED}{}", event.message).into(),
            false => Text::Static(COMBINED_WITHOUT_MESSAGE),
        };
        let observed = match known {
            Known::Request(Some(request)) if request.event.is_similar(event) => Some(request),
            Known::Request(_) | Known::Nothing => None,
        };
        let group = events.similar(event, at);
        let is_combined = match group.is_combined(event.message.as_str(), at) {
            Some(certain) => certain,
            None => match (observed, known) {
                (Some(request), _) => request.event.message == combined_message,
                // A request that is not sent shows nothing.
                (None, Known::Request(_)) if !accepted => {
                    group.record_unknown(event.message.as_str(), at);
                    return None;
                }
                (None, _) => false,
            },
        };
        let count = group.record(event.message.as_str(), is_combined);
        let count = count.increase(occurrence, observed);
        let (times, count) = (occurrence.times(count.first()), count.least);
        let message = if is_combined { combined_message } else { event.message.clone() };
        let verb = if count > 1 { EventVerb::Patch } else { EventVerb::Create };
        let event = Event { message, ..event.clone() };
        let origin = EventOrigin::default();
        accepted.then_some(SentEvent { verb, event, count, origin, times })
    }
}

impl HpaEvents {
    fn similar(&mut self, event: &Event, at: Time) -> &mut SimilarEvents {
        let is_similar =
            |group: &SimilarEvents| group.type_ == event.type_ && group.reason == event.reason;
        let index = self.groups.iter().position(is_similar).unwrap_or_else(|| {
            self.groups.push(SimilarEvents {
                type_: event.type_,
                reason: event.reason.clone(),
                last: at,
                messages: KeptMessages::default(),
                counts: BTreeMap::new(),
                combined: Count::default(),
            });
            self.groups.len() - 1
        });
        &mut self.groups[index]
    }
}

impl SimilarEvents {
    /// Returns true if an event with this message is combined with others, or `None` if that is
    /// random.
    ///
    /// Upstream: EventAggregator.EventAggregate
    fn is_combined(&mut self, message: &str, at: Time) -> Option<bool> {
        if at - self.last > INTERVAL {
            self.messages = KeptMessages::default();
        }
        self.last = at;
        let is_kept = self.messages.keeps(message)?;
        Some(!is_kept && self.messages.size + 1 >= MAX_MESSAGES)
    }

    /// Records an event with this message, and returns the count of the event that is written.
    fn record(&mut self, message: &str, is_combined: bool) -> &mut Count {
        self.messages.record(message, is_combined);
        match is_combined {
            true => &mut self.combined,
            false => self.counts.entry(message.to_owned()).or_default(),
        }
    }

    /// Records an event of which nobody knows whether it was combined.
    fn record_unknown(&mut self, message: &str, at: Time) {
        self.messages.record(message, true);
        self.combined.maybe_increase(at);
        self.counts.entry(message.to_owned()).or_default().maybe_increase(at);
    }
}

impl Count {
    /// Counts one more request that may have been sent.
    fn maybe_increase(&mut self, at: Time) {
        self.most += 1;
        if self.least == 0 {
            self.first.push(at);
        }
    }

    /// Counts one more request. An observed request with a possible count determines the count, and
    /// which request was the first.
    fn increase(&mut self, occurrence: &Occurrence<'_>, observed: Option<&SentEvent>) -> &Count {
        if self.least == 0 {
            self.first.push(occurrence.at);
        }
        (self.least, self.most) = (self.least + 1, self.most + 1);
        let is_possible = |request: &&SentEvent| (self.least..=self.most).contains(&request.count);
        if let Some(request) = observed.filter(is_possible) {
            self.narrow(request.count);
            let name = &request.times.event_name;
            let is_first = |first: &&Time| occurrence.times(**first).event_name == *name;
            let first = self.first.iter().find(is_first).copied().unwrap_or_else(|| self.first());
            self.first = vec![first];
        }
        self
    }

    /// Sets the number of requests, and discards the times that are no longer possible for the
    /// first one.
    fn narrow(&mut self, count: u32) {
        let (sent, possible) = (count - self.least, self.most - self.least);
        let earlier = self.first.len().saturating_sub(1);
        if sent == 0 {
            self.first.drain(..earlier);
        } else {
            let later = (possible as usize).saturating_sub(earlier);
            let earliest_sent = (sent as usize).saturating_sub(later).min(earlier);
            self.first.truncate(earlier + 1 - earliest_sent);
        }
        (self.least, self.most) = (count, count);
    }

    /// The time of the first occurrence: the latest possible one.
    fn first(&self) -> Time {
        self.first.last().copied().unwrap_or_default()
    }
}

impl KeptMessages {
    /// Returns true if a message is kept, or `None` if it is unknown.
    fn keeps(&self, message: &str) -> Option<bool> {
        let is_known = self.certain.len() >= self.size || !self.possible.contains(message);
        if self.certain.contains(message) {
            Some(true)
        } else if is_known {
            Some(false)
        } else {
            None
        }
    }

    /// Adds a message. If it is combined with others, an arbitrary message is forgotten.
    fn record(&mut self, message: &str, is_combined: bool) {
        if is_combined {
            self.possible.append(&mut self.certain);
            self.possible.insert(message.to_owned());
            self.size = MAX_MESSAGES - 1;
        } else {
            let was_possible = self.possible.remove(message);
            if self.certain.insert(message.to_owned()) && !was_possible {
                self.size += 1;
            }
        }
        if self.certain.len() >= self.size {
            self.possible.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{EventLimit, Release, Rules};

    fn decision(at: Time, messages: &[&str]) -> Decision {
        let event = |message: &&str| Event {
            hpa: "web".into(),
            type_: EventType::Warning,
            reason: "FailedGetScale".into(),
            message: (*message).to_owned().into(),
        };
        let events = messages.iter().map(|message| ControllerAction::Event(event(message)));
        Decision {
            observation: Observation::new(at, "web".into(), events),
            event_times: vec![at; messages.len()],
            ..Decision::default()
        }
    }

    fn texts(observation: &Observation) -> Vec<String> {
        let sent = observation.sent_events();
        sent.map(|sent| format!("{} {} {}", sent.verb, sent.count, sent.event.message)).collect()
    }

    fn unlimited() -> EventCorrelator {
        let mut rules = Rules::default();
        rules.events.limit = EventLimit::Unlimited;
        EventCorrelator::new(rules)
    }

    /// A correlator that has combined an event: it has forgotten one of ten messages.
    fn combining() -> EventCorrelator {
        let mut correlator = unlimited();
        let messages = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        let sent = correlator.send(&decision(Time::ZERO, &messages), None);
        assert_eq!(texts(&sent)[8..], ["create 1 8", "create 1 (combined from similar events): 9"]);
        correlator
    }

    /// An event that was observed instead of a predicted one.
    fn observed(verb: EventVerb, count: u32, message: &str) -> Observation {
        let tick = decision(Time::ZERO, &[message]);
        let event = tick.observation.events().next().unwrap().clone();
        let (origin, times) = (EventOrigin::default(), EventTimes::default());
        let sent = Box::new(SentEvent { verb, event, count, origin, times });
        Observation::new(Time::ZERO, "web".into(), [ControllerAction::SendEvent(sent)])
    }

    #[test]
    fn either_outcome_is_accepted_if_it_is_left_to_chance() {
        let combined = format!("{COMBINED}3");
        for (count, message) in [(2, "3"), (2, &*combined)] {
            let mut correlator = combining();
            let seen = observed(EventVerb::Patch, count, message);
            let sent = correlator.send(&decision(Time::ZERO, &["3"]), Some(&seen));
            assert_eq!(texts(&sent), texts(&seen));
        }
        let mut correlator = combining();
        let seen = observed(EventVerb::Patch, 3, "3");
        let sent = correlator.send(&decision(Time::ZERO, &["3"]), Some(&seen));
        assert_eq!(texts(&sent), ["patch 2 3"], "this count is impossible");
    }

    #[test]
    fn certain_outcomes_are_not_left_to_the_observation() {
        let mut correlator = combining();
        // A new message is certainly combined.
        let seen = observed(EventVerb::Create, 1, "new");
        let sent = correlator.send(&decision(Time::ZERO, &["new"]), Some(&seen));
        assert_eq!(texts(&sent), ["patch 2 (combined from similar events): new"]);
        // A message that was kept is still kept if no other one has occurred.
        let seen = observed(EventVerb::Patch, 2, "3");
        let _ = correlator.send(&decision(Time::ZERO, &["3"]), Some(&seen));
        let seen = observed(EventVerb::Patch, 3, &format!("{COMBINED}3"));
        let sent = correlator.send(&decision(Time::ZERO, &["3"]), Some(&seen));
        assert_eq!(texts(&sent), ["patch 3 3"]);
    }

    #[test]
    fn the_last_unknown_message_is_known_by_exclusion() {
        let mut correlator = combining();
        for message in ["0", "1", "2", "3", "4", "5", "6", "7", "8"] {
            let seen = observed(EventVerb::Patch, 2, message);
            let sent = correlator.send(&decision(Time::ZERO, &[message]), Some(&seen));
            assert_eq!(texts(&sent), texts(&seen));
        }
        // So it was the tenth that was forgotten.
        let seen = observed(EventVerb::Create, 1, "9");
        let sent = correlator.send(&decision(Time::ZERO, &["9"]), Some(&seen));
        assert_eq!(texts(&sent), ["patch 2 (combined from similar events): 9"]);
    }

    #[test]
    fn an_unsent_event_leaves_a_range_of_counts() {
        let mut correlator = EventCorrelator::new(Rules::default());
        let messages = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        let _ = correlator.send(&decision(Time::ZERO, &messages), None);
        let nothing = Observation::default();
        let fifteen: Vec<String> = (10..25).map(|number| number.to_string()).collect();
        let fifteen: Vec<&str> = fifteen.iter().map(String::as_str).collect();
        let _ = correlator.send(&decision(Time::ZERO, &fifteen), Some(&nothing));
        let sent = correlator.send(&decision(Time::ZERO, &["3", "3"]), Some(&nothing));
        assert_eq!(texts(&sent), Vec::<String>::new(), "the limit is reached");
        for (count, expected) in [(2, 2), (4, 4), (5, 2)] {
            let seen = observed(EventVerb::Patch, count, "3");
            let later = Time::from_secs(400);
            let sent = correlator.clone().send(&decision(later, &["3"]), Some(&seen));
            assert_eq!(texts(&sent), [format!("patch {expected} 3")]);
        }
    }

    #[test]
    fn an_unsent_event_keeps_the_range_of_its_count() {
        let mut correlator = EventCorrelator::new(Rules::default());
        let messages = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        let _ = correlator.send(&decision(Time::ZERO, &messages), None);
        let fifteen: Vec<String> = (10..25).map(|number| number.to_string()).collect();
        let fifteen: Vec<&str> = fifteen.iter().map(String::as_str).collect();
        let nothing = Observation::default();
        let _ = correlator.send(&decision(Time::ZERO, &fifteen), Some(&nothing));
        // The limit is reached. It is unknown whether "3" is combined; a new message certainly is.
        let _ = correlator.send(&decision(Time::ZERO, &["3", "new"]), Some(&nothing));
        for (count, expected) in [(18, 18), (19, 19), (20, 18)] {
            let seen = observed(EventVerb::Patch, count, &format!("{COMBINED}newer"));
            let later = Time::from_secs(400);
            let sent = correlator.clone().send(&decision(later, &["newer"]), Some(&seen));
            let text = format!("patch {expected} (combined from similar events): newer");
            assert_eq!(texts(&sent), [text]);
        }
    }

    #[test]
    fn an_event_keeps_the_name_of_its_first_occurrence() {
        let mut correlator = unlimited();
        let mut name_at = |seconds, message: &str| {
            let sent = correlator.send(&decision(Time::from_secs(seconds), &[message]), None);
            let sent = sent.sent_events().next().cloned().unwrap();
            assert_eq!((sent.times.first_timestamp, sent.times.last_timestamp), (None, None));
            sent.times.event_name
        };
        assert_eq!(name_at(15, "a"), None, "it follows from the time of the reconcile");
        assert_eq!(name_at(30, "a").as_deref(), Some("web.15s"));
        assert_eq!(name_at(45, "b"), None);
        assert_eq!(name_at(60, "a").as_deref(), Some("web.15s"));
    }

    /// If it is unknown which of the unsent events were combined, several may be the first one.
    #[test]
    fn the_number_of_requests_limits_which_one_was_the_first() {
        let mut correlator = EventCorrelator::new(Rules::default());
        let messages: Vec<String> = (0..25).map(|number| number.to_string()).collect();
        let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
        let nothing = Observation::default();
        let _ = correlator.send(&decision(Time::ZERO, &messages), Some(&nothing));
        for seconds in [1, 2] {
            let unsent = decision(Time::from_secs(seconds), &["24"]);
            let sent = correlator.send(&unsent, Some(&nothing));
            assert_eq!(texts(&sent), Vec::<String>::new(), "the limit is reached");
        }
        for (count, seen, expected) in [
            (1, None, None),
            (1, Some("web.1s"), None),
            (2, Some("web.1s"), Some("web.1s")),
            (2, Some("web.2s"), Some("web.2s")),
            (2, None, Some("web.2s")),
            (3, Some("web.1s"), Some("web.1s")),
            (3, Some("web.2s"), Some("web.1s")),
        ] {
            let verb = if count == 1 { EventVerb::Create } else { EventVerb::Patch };
            let mut request = observed(verb, count, "24").sent_events().next().cloned().unwrap();
            request.times.event_name = seen.map(Arc::from);
            let request = ControllerAction::SendEvent(Box::new(request));
            let request = Observation::new(Time::ZERO, "web".into(), [request]);
            let later = decision(Time::from_secs(400), &["24"]);
            let sent = correlator.clone().send(&later, Some(&request));
            let sent = sent.sent_events().next().cloned().unwrap();
            assert_eq!((sent.count, sent.times.event_name.as_deref()), (count, expected));
        }
    }

    #[test]
    fn messages_are_forgotten_after_more_than_ten_minutes() {
        for (seconds, message) in [(600, "(combined from similar events): x"), (601, "x")] {
            let mut correlator = combining();
            let sent = correlator.send(&decision(Time::from_secs(seconds), &["x"]), None);
            assert!(texts(&sent)[0].ends_with(message), "{sent:?}");
        }
    }

    #[test]
    fn the_limit_differs_between_releases() {
        let sent_at = |minor: u32, seconds: &[i64]| {
            let mut correlator = EventCorrelator::new(Rules::of(Release { minor }));
            let many = ["same"; 30];
            let count = |at: &i64| {
                let sent = correlator.send(&decision(Time::from_secs(*at), &many), None);
                sent.sent_events().count()
            };
            seconds.iter().map(count).collect::<Vec<_>>()
        };
        assert_eq!(sent_at(7, &[0, 1]), [30, 30]);
        assert_eq!(sent_at(8, &[0, 299, 300, 450, 600]), [25, 0, 1, 0, 1]);
        assert_eq!(sent_at(10, &[0, 299, 300, 599, 600]), [25, 0, 1, 0, 1]);
    }
}
