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
use crate::model::api::Text;
use crate::model::observation::{
    COMBINED, COMBINED_WITHOUT_MESSAGE, ControllerAction, Event, EventType, EventVerb, Observation,
    SentEvent,
};
use crate::model::rules::EventRules;
use crate::model::time::{Span, Time};

/// Events are combined when this many different messages are known.
const MAX_MESSAGES: usize = 10;

/// The messages are forgotten if no similar event has occurred for longer than this.
const INTERVAL: Span = Span::from_mins(10);

/// The correlator of one controller: a new controller has a new one.
#[derive(Clone, Debug)]
pub struct EventCorrelator {
    rules: EventRules,
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
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    least: u32,
    most: u32,
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
    pub fn new(rules: EventRules) -> EventCorrelator {
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
        for (event, at) in decision.observation.events().zip(&decision.event_times) {
            let known = match &mut requests {
                Some(requests) => Known::Request(requests.peek().copied()),
                None => Known::Nothing,
            };
            if let Some(request) = self.correlate(event, *at, known) {
                sent.push(ControllerAction::SendEvent(request));
                requests.as_mut().and_then(Iterator::next);
            }
        }
        sent
    }

    /// The request that sends an event, unless the limit is reached.
    ///
    /// Upstream: EventCorrelator.EventCorrelate
    fn correlate(&mut self, event: &Event, at: Time, known: Known<'_>) -> Option<SentEvent> {
        let events = self.hpas.entry(event.hpa.clone()).or_default();
        let bucket = match event.type_ {
            EventType::Warning if self.rules.limited_by_type => &mut events.warning,
            EventType::Warning | EventType::Normal => &mut events.normal,
        };
        let limit = self.rules.limit;
        let accepted = bucket.get_or_insert_with(|| TokenBucket::new(limit, at)).try_accept(at);
        let known = match known {
            Known::Request(_) if !accepted => Known::Request(None),
            known => known,
        };
        let combined_message = match self.rules.combined_has_message {
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
                    group.record_unknown(event.message.as_str());
                    return None;
                }
                (None, _) => false,
            },
        };
        let count = group.record(event.message.as_str(), is_combined);
        let count = count.increase(observed.map(|request| request.count));
        let message = if is_combined { combined_message } else { event.message.clone() };
        let verb = if count > 1 { EventVerb::Patch } else { EventVerb::Create };
        let event = Event { message, ..event.clone() };
        accepted.then_some(SentEvent { verb, event, count })
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
    /// Whether an event with this message is combined with others; `None` if it is left to chance.
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
    fn record_unknown(&mut self, message: &str) {
        self.messages.record(message, true);
        self.combined.most += 1;
        self.counts.entry(message.to_owned()).or_default().most += 1;
    }
}

impl Count {
    /// Counts one more request. If the observed count is possible, it is the true one.
    fn increase(&mut self, observed: Option<u32>) -> u32 {
        let possible = self.least + 1..=self.most + 1;
        let count = observed.filter(|count| possible.contains(count)).unwrap_or(*possible.start());
        *self = Count { least: count, most: count };
        count
    }
}

impl KeptMessages {
    /// Whether a message is kept; `None` if it is unknown.
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
