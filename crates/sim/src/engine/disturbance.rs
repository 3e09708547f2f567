//! Disturbances: inputs of a run that a cluster leaves to chance.
//!
//! A [`Disturbance`] delays an event of a watch, makes a write fail, or stops the controller before
//! or after a write. The text of a disturbance can be parsed again.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use kube_autoscaler_models::time::{Span, Time};

/// An input of a run that a cluster leaves to chance.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Disturbance {
    /// An event of a watch is delivered late. The later events of the watch wait for it.
    Hold(Hold),
    /// A write is answered with an error.
    Answer {
        /// The number of the write request in the scenario, from 1.
        write: usize,
        /// The error.
        with: WriteError,
    },
    /// The controller is stopped, and starts again at once, with empty caches.
    Crash {
        /// The number of the write request in the scenario, from 1.
        write: usize,
        /// When it is stopped.
        when: CrashPoint,
    },
}

/// The kinds of disturbances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DisturbanceKind {
    /// [`Disturbance::Hold`].
    Hold,
    /// [`Disturbance::Answer`].
    Answer,
    /// [`Disturbance::Crash`].
    Crash,
}

/// An event of a watch that is delivered late.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// The resource, such as `deployments.apps`.
    pub resource: String,
    /// The number of the watch among those of the resource, from 1, in the order in which they
    /// began.
    pub watch: usize,
    /// The number of the event, from 1. The state at the beginning of a watch does not count.
    pub event: usize,
    /// The time from the change to the delivery.
    pub delay: Span,
}

/// An error with which a write is answered.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum WriteError {
    /// 409 Conflict; the write has no effect.
    Conflict,
    /// 500 Internal Server Error; the write has no effect.
    InternalError,
    /// 503 Service Unavailable; the write has no effect.
    Unavailable,
    /// 504 Gateway Timeout, although the write takes effect.
    Timeout,
}

/// When a controller is stopped.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum CrashPoint {
    /// Right before the write, which has no effect.
    Before,
    /// Right after the write has taken effect, before the controller gets the answer.
    After,
}

/// What can be disturbed in a run. Events and leases are left out.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disturbable {
    /// The watches, in the order in which they began.
    pub watches: Vec<Watch>,
    /// The write requests of all controllers that are disturbed, in order.
    pub writes: Vec<WriteRequest>,
}

/// A watch of a controller.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    /// The resource, such as `deployments.apps`.
    pub resource: String,
    /// The name of the controller.
    pub controller: String,
    /// Its events after the state at its beginning.
    pub events: Vec<WatchEvent>,
}

/// An event of a watch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatchEvent {
    /// The time of the change.
    pub at: Time,
    /// `ADDED`, `MODIFIED` or `DELETED`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The name of the object.
    pub name: String,
}

/// A write request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WriteRequest {
    /// Its time.
    pub at: Time,
    /// The name of the controller.
    pub controller: String,
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// The resource, such as `deployments.apps`.
    pub resource: String,
    /// The subresource. Empty: the object itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// The name of the object.
    pub name: String,
}

impl Disturbable {
    /// The watches, each with its number among those of its resource.
    pub fn numbered_watches(&self) -> impl Iterator<Item = (usize, &Watch)> {
        self.watches.iter().enumerate().map(|(index, watch)| {
            let earlier = self.watches[..index].iter();
            (earlier.filter(|it| it.resource == watch.resource).count() + 1, watch)
        })
    }

    /// The event that a disturbance holds.
    fn event(&self, hold: &Hold) -> Option<&WatchEvent> {
        let mut watches = self.numbered_watches();
        let (_, watch) = watches
            .find(|(number, watch)| (*number, &watch.resource) == (hold.watch, &hold.resource))?;
        watch.events.get(hold.event.checked_sub(1)?)
    }
}

impl fmt::Display for WriteRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WriteRequest { at, verb, resource, subresource, name, .. } = self;
        let slash = if subresource.is_empty() { "" } else { "/" };
        write!(f, "{verb} {resource} {name}{slash}{subresource} at t={at}")
    }
}

impl WriteError {
    /// All errors, with their names in texts.
    pub const ALL: [(WriteError, &'static str); 4] = [
        (WriteError::Conflict, "conflict"),
        (WriteError::InternalError, "internal-error"),
        (WriteError::Unavailable, "unavailable"),
        (WriteError::Timeout, "timeout"),
    ];

    fn name(self) -> &'static str {
        WriteError::ALL.iter().find(|(error, _)| *error == self).map_or("", |(_, name)| name)
    }
}

impl DisturbanceKind {
    /// All kinds.
    pub const ALL: [DisturbanceKind; 3] =
        [DisturbanceKind::Hold, DisturbanceKind::Answer, DisturbanceKind::Crash];
}

impl Disturbance {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> DisturbanceKind {
        match self {
            Disturbance::Hold(_) => DisturbanceKind::Hold,
            Disturbance::Answer { .. } => DisturbanceKind::Answer,
            Disturbance::Crash { .. } => DisturbanceKind::Crash,
        }
    }

    /// The disturbance in a sentence, with the event or the write that it concerns in a run.
    #[must_use]
    pub fn sentence(&self, run: &Disturbable) -> String {
        let write = |number: usize| {
            let write = number.checked_sub(1).and_then(|index| run.writes.get(index));
            let of =
                |controller: &str| match run.writes.iter().all(|it| it.controller == controller) {
                    true => String::new(),
                    false => format!(" by {controller}"),
                };
            let what = write.map(|write| format!(" ({write}{})", of(&write.controller)));
            format!("{} write{}", ordinal(number), what.unwrap_or_default())
        };
        match self {
            Disturbance::Hold(hold) => {
                let Hold { resource, watch, event, delay } = hold;
                let of = run.watches.iter().filter(|it| it.resource == *resource).count();
                let number = if of > 1 { format!("{} ", ordinal(*watch)) } else { String::new() };
                let what = run
                    .event(hold)
                    .map(|WatchEvent { at, kind, name }| format!(" ({kind} {name} at t={at})"));
                let (event, what) = (ordinal(*event), what.unwrap_or_default());
                format!(
                    "the {event} event of the {number}watch of {resource}{what} is delivered \
                     {delay} late"
                )
            }
            Disturbance::Answer { write: number, with } => {
                let (code, effect) = match with {
                    WriteError::Conflict => ("409 Conflict", "and has no effect"),
                    WriteError::InternalError => ("500 InternalError", "and has no effect"),
                    WriteError::Unavailable => ("503 ServiceUnavailable", "and has no effect"),
                    WriteError::Timeout => ("504 Timeout", "although it takes effect"),
                };
                format!("the {} is answered with {code}, {effect}", write(*number))
            }
            Disturbance::Crash { write: number, when } => {
                let (point, answer) = match when {
                    CrashPoint::Before => ("before", ""),
                    CrashPoint::After => ("after", ", before it gets the answer"),
                };
                let write = write(*number);
                format!(
                    "the controller crashes right {point} its {write}{answer}, and starts again"
                )
            }
        }
    }
}

/// `1st`, `2nd`, `3rd`, `4th`.
fn ordinal(number: usize) -> String {
    let suffix = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}

/// The text for a command line.
impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Disturbance::Hold(Hold { resource, watch: 1, event, delay }) => {
                write!(f, "hold event {event} of {resource} for {delay}")
            }
            Disturbance::Hold(Hold { resource, watch, event, delay }) => {
                write!(f, "hold event {event} of watch {watch} of {resource} for {delay}")
            }
            Disturbance::Answer { write, with } => {
                write!(f, "answer write {write} with {}", with.name())
            }
            Disturbance::Crash { write, when: CrashPoint::Before } => {
                write!(f, "crash before write {write}")
            }
            Disturbance::Crash { write, when: CrashPoint::After } => {
                write!(f, "crash after write {write}")
            }
        }
    }
}

/// The forms of the texts, for messages.
const FORMS: &str = "expected `hold event N of RESOURCE for DURATION`, `hold event N of watch N of \
                     RESOURCE for DURATION`, `answer write N with ERROR`, `crash before write N` \
                     or `crash after write N`";

impl FromStr for Disturbance {
    type Err = String;

    fn from_str(text: &str) -> Result<Disturbance, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["hold", "event", event, "of", resource, "for", delay] => {
                hold(event, "1", resource, delay)
            }
            ["hold", "event", event, "of", "watch", watch, "of", resource, "for", delay] => {
                hold(event, watch, resource, delay)
            }
            ["answer", "write", write, "with", name] => {
                let error = WriteError::ALL.iter().find(|(_, known)| known == name);
                let names = WriteError::ALL.map(|(_, name)| name).join(", ");
                let (with, _) =
                    *error.ok_or_else(|| format!("unknown error {name}; expected {names}"))?;
                Ok(Disturbance::Answer { write: count(write)?, with })
            }
            ["crash", "before", "write", write] => {
                Ok(Disturbance::Crash { write: count(write)?, when: CrashPoint::Before })
            }
            ["crash", "after", "write", write] => {
                Ok(Disturbance::Crash { write: count(write)?, when: CrashPoint::After })
            }
            _ => Err(FORMS.to_owned()),
        }
    }
}

fn hold(event: &str, watch: &str, resource: &str, delay: &str) -> Result<Disturbance, String> {
    let delay: Span = delay.parse().map_err(|error| format!("{delay} is {error}"))?;
    if delay <= Span(0) {
        return Err("the duration must be greater than 0".to_owned());
    }
    let (event, watch) = (count(event)?, count(watch)?);
    Ok(Disturbance::Hold(Hold { resource: resource.to_owned(), watch, event, delay }))
}

/// A number from 1.
fn count(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("{text} is not a number from 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_parsed_to_the_same_disturbance() {
        for text in [
            "hold event 3 of deployments.apps for 2ms",
            "hold event 3 of watch 2 of pods for 1.5s",
            "answer write 2 with conflict",
            "answer write 2 with internal-error",
            "answer write 2 with unavailable",
            "answer write 2 with timeout",
            "crash before write 12",
            "crash after write 1",
        ] {
            let disturbance: Disturbance = text.parse().expect(text);
            assert_eq!(disturbance.to_string(), text);
            let json = serde_json::to_string(&disturbance).expect("JSON");
            assert_eq!(serde_json::from_str::<Disturbance>(&json).expect("JSON"), disturbance);
        }
        for (text, why) in [
            ("hold event 0 of pods for 2ms", "0 is not a number from 1"),
            ("hold event 1 of pods for 0s", "must be greater than 0"),
            ("hold event 1 of pods for soon", "soon is not a duration"),
            ("answer write 1 with love", "expected conflict, internal-error,"),
            ("crash at write 1", "`crash before write N`"),
        ] {
            let error = text.parse::<Disturbance>().expect_err(text);
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn sentences_name_the_event_or_the_write() {
        let at = Time::from_secs(15);
        let event = WatchEvent { at, kind: "MODIFIED".into(), name: "web".into() };
        let watch = |resource: &str, count| Watch {
            resource: resource.into(),
            controller: "naive".into(),
            events: vec![event.clone(); count],
        };
        let run = Disturbable {
            watches: vec![watch("pods", 3), watch("deployments.apps", 1), watch("pods", 2)],
            writes: vec![WriteRequest {
                at,
                controller: "naive".into(),
                verb: "update".into(),
                resource: "deployments.apps".into(),
                subresource: "scale".into(),
                name: "web".into(),
            }],
        };
        for (text, sentence) in [
            (
                "hold event 1 of deployments.apps for 2ms",
                "the 1st event of the watch of deployments.apps (MODIFIED web at t=15s) is \
                 delivered 2ms late",
            ),
            (
                "hold event 3 of watch 2 of pods for 2ms",
                "the 3rd event of the 2nd watch of pods is delivered 2ms late",
            ),
            (
                "answer write 1 with timeout",
                "the 1st write (update deployments.apps web/scale at t=15s) is answered with 504 \
                 Timeout, although it takes effect",
            ),
            (
                "crash after write 11",
                "the controller crashes right after its 11th write, before it gets the answer, \
                 and starts again",
            ),
        ] {
            assert_eq!(text.parse::<Disturbance>().expect(text).sentence(&run), sentence);
        }
        let other = WriteRequest { controller: "other".into(), ..run.writes[0].clone() };
        let run = Disturbable { writes: vec![run.writes[0].clone(), other], ..run };
        let second: Disturbance = "crash before write 2".parse().expect("a disturbance");
        assert_eq!(
            second.sentence(&run),
            "the controller crashes right before its 2nd write (update deployments.apps web/scale \
             at t=15s by other), and starts again"
        );
    }
}
