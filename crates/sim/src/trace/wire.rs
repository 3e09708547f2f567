//! The answers of the engine protocol (`docs/protocol.md`).
//!
//! The log of a step is a flat list of actions. [`Log`] divides it into reconciles, each an
//! [`Observation`].

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::members::KnownMembers;
use super::{ApiAnswer, ApiOutcome, Stepped};
use crate::engine::disturbance::Disturbable;
use kube_autoscaler_models::observation::{
    ControllerAction, Event, ObjectWrite, Observation, Request, SentEvent,
};
use kube_autoscaler_models::tagged::{MemberName, Tagged};
use kube_autoscaler_models::time::{Span, Time, rfc3339};

/// The version of the protocol that this program speaks.
pub const PROTOCOL: u32 = 5;

/// The first version with the buckets of histograms, and with the names and times of events and the
/// API versions and UIDs of their objects.
pub const DETAILS: u32 = 5;

/// The members of `sendEvent` that an engine must report since version [`DETAILS`]. In traces and
/// in older versions, they have defaults.
const EVENT_METADATA: [&str; 7] = [
    "objectKind",
    "objectApiVersion",
    "objectUid",
    "component",
    "eventName",
    "firstTimestamp",
    "lastTimestamp",
];

/// The first version with metrics of the work queue.
pub const ALL_METRICS: u32 = 4;

/// The first version with changes in the middle of reconciles and with caches that lag.
pub const DURING: u32 = 3;

/// The oldest version of the protocol that an engine may speak.
pub const OLDEST_PROTOCOL: u32 = 2;

/// A line that an engine writes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// The first line.
    Hello(Hello),
    /// A scenario is open.
    Opened {
        /// The time of the engine's clock at t=0.
        #[serde(with = "rfc3339")]
        #[schemars(with = "String")]
        epoch: Time,
    },
    /// The answer to a step.
    Stepped(SteppedJson),
    /// The scenario is closed.
    Closed {
        /// What could be disturbed. Required if `open` had `disturbances`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disturbable: Option<Box<Disturbable>>,
    },
    /// The engine cannot continue.
    Failed {
        /// The reason, for users.
        why: String,
        /// True if the engine works, but cannot run this scenario, which is then skipped.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unsupported: bool,
    },
}

/// The name and versions of an engine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// The version of the protocol.
    pub protocol: u32,
    /// The engine, for example `upstream`.
    pub engine: String,
    /// The release, for example `v1.37.0`.
    pub release: String,
    /// The optional parts of the protocol that the engine supports. Scenarios that require others
    /// are skipped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supports: Vec<Feature>,
}

/// An optional part of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Feature {
    /// `disturbances` in `open`, and `disturbable` in `closed`.
    Disturbances,
    /// Scenarios with objects of any kind: `open.objects`, the changes `applyObject`, `patchObject`
    /// and `deleteObject`, and the entry `write` of the log.
    Objects,
    /// A part that this version does not know.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// The answer to a step.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Stepped")]
pub struct SteppedJson {
    /// The time that the engine has reached.
    now: Time,
    /// The answers to changes of HPAs and other objects, in order.
    #[serde(default)]
    api: Vec<ApiOutcome>,
    /// The actions of the controller, in order.
    #[serde(default)]
    log: Vec<LogEntry>,
}

/// An entry of the log.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct LogEntry {
    /// The time of the action.
    at: Time,
    /// The namespace of a request. Empty: the request names none.
    #[serde(default)]
    namespace: Option<Arc<str>>,
    #[serde(flatten)]
    action: ControllerAction,
    /// The members of [`EVENT_METADATA`] that a request that sends an event does not have.
    #[serde(skip)]
    missing: Vec<&'static str>,
}

/// A derived implementation would ignore all fields after the first action: an engine could hide an
/// action behind another.
impl<'de> Deserialize<'de> for LogEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LogEntry, D::Error> {
        struct Entry;

        impl<'de> Visitor<'de> for Entry {
            type Value = LogEntry;

            fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
                text.write_str("an entry with `at` and one action")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LogEntry, A::Error> {
                let (mut at, mut namespace, mut action) = (None, None, None::<ControllerAction>);
                let mut missing = Vec::new();
                while let Some(MemberName(name)) = map.next_key()? {
                    match &*name {
                        "at" if at.is_some() => return Err(A::Error::duplicate_field("at")),
                        "at" => at = Some(map.next_value()?),
                        "namespace" if namespace.is_some() => {
                            return Err(A::Error::duplicate_field("namespace"));
                        }
                        "namespace" => namespace = Some(map.next_value()?),
                        second if let Some(first) = &action => {
                            let first = first.name();
                            let why =
                                format!("a log entry has two actions, `{first}` and `{second}`");
                            return Err(A::Error::custom(why));
                        }
                        name => {
                            if name == "sendEvent" {
                                missing.extend(EVENT_METADATA);
                            }
                            let seed = Tagged::new(name);
                            let missing = &mut missing;
                            let members = KnownMembers { action: name, seed, missing };
                            action = Some(map.next_value_seed(members)?);
                        }
                    }
                }
                Ok(LogEntry {
                    at: at.ok_or_else(|| A::Error::missing_field("at"))?,
                    namespace,
                    action: action.ok_or_else(|| A::Error::custom("an entry has no action"))?,
                    missing,
                })
            }
        }

        deserializer.deserialize_map(Entry)
    }
}

/// The properties of the last entry that decide where a reconcile begins.
#[derive(Debug)]
struct Last {
    at: Time,
    failed_scale_write: bool,
}

/// Divides the logs of a scenario into reconciles.
#[derive(Debug)]
pub struct Log {
    /// The time of t=0 in statuses.
    epoch: Time,
    /// The namespace of the scenario's HPAs.
    namespace: Arc<str>,
    /// The names of the scenario's HPAs.
    hpas: Vec<Arc<str>>,
    /// True if several reconciles may be in progress. The log then names the HPA of each action.
    interleaved: bool,
    /// True if requests that send events must have all of [`EVENT_METADATA`].
    requires_metadata: bool,
    /// Reconciles that have ended and are not yet returned.
    ticks: Vec<Observation>,
    /// Reconciles in progress with actions, if the log marks their ends.
    open: Vec<Observation>,
    /// The HPAs of reconciles in progress, if the log names them.
    begun: Vec<Arc<str>>,
    /// The HPA of the next actions, if the log names it.
    current: Option<Arc<str>>,
    last: Option<Last>,
    /// The changes of objects that the cluster itself made, outside of reconciles.
    changed: Vec<ApiAnswer>,
    /// The number of answers to changes in the last step.
    answers: usize,
    /// True if each instant at which the controller acts is a reconcile of its own.
    by_instant: bool,
    /// The requests of the step at which changes were applied.
    answered: Vec<Answered>,
}

/// The changes of HPAs that were applied at one time: right after a request of the step.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    /// The kind of request.
    pub after: Request,
    /// The number of the request among all of its kind that are still to come.
    pub number: usize,
    /// The number of changes of HPAs, each of which has an answer.
    pub answers: usize,
    /// The time of the request, once it was sent.
    pub at: Option<Time>,
}

impl Log {
    /// Creates the log of a scenario with these HPAs in this namespace. With `interleaved`, several
    /// reconciles may be in progress.
    #[must_use]
    pub fn new(
        epoch: Time,
        namespace: Arc<str>,
        hpas: impl Iterator<Item = Arc<str>>,
        interleaved: bool,
    ) -> Log {
        Log {
            epoch,
            namespace,
            hpas: hpas.collect(),
            interleaved,
            requires_metadata: false,
            ticks: Vec::new(),
            open: Vec::new(),
            begun: Vec::new(),
            current: None,
            last: None,
            changed: Vec::new(),
            answers: 0,
            by_instant: false,
            answered: Vec::new(),
        }
    }

    /// Treats each instant at which the controller acts as a reconcile: it is any controller, not
    /// one of HPAs.
    #[must_use]
    pub fn by_instant(mut self, by_instant: bool) -> Log {
        self.by_instant = by_instant;
        self
    }

    /// The number of answers to changes in the last step.
    #[must_use]
    pub fn answers(&self) -> usize {
        self.answers
    }

    /// Sets the time of t=0 in statuses.
    pub fn starts_at(&mut self, epoch: Time) {
        self.epoch = epoch;
    }

    /// Requires what an engine reports that speaks this version of the protocol.
    #[must_use]
    pub fn for_protocol(mut self, protocol: u32) -> Log {
        self.requires_metadata = protocol >= DETAILS;
        self
    }

    /// Reads an engine's answer to a step whose changes were applied at `applied`, or `during` its
    /// reconciles.
    ///
    /// # Errors
    /// A message for users, if the entries of the log belong to no reconcile of the scenario, or
    /// their times are not in order.
    pub fn stepped(
        &mut self,
        answer: SteppedJson,
        applied: Time,
        during: Vec<Answered>,
    ) -> Result<Stepped, String> {
        self.last = None;
        self.answered = during;
        let mut previous = applied;
        for entry in answer.log {
            check_time(&entry, previous, answer.now)?;
            previous = entry.at;
            match entry {
                LogEntry { at, action: ControllerAction::Write(write), .. }
                    if self.is_outside_of_reconciles(&write, at) =>
                {
                    self.changed.push(ApiAnswer { at, outcome: ApiOutcome::Write(write) });
                }
                entry => self.entry(entry)?,
            }
        }
        self.answers = answer.api.len();
        let before = answer.api.len().saturating_sub(self.answers_during());
        let during = self.answered.iter();
        let during =
            during.filter_map(|it| Some(std::iter::repeat_n(it.at?, it.answers))).flatten();
        let times = std::iter::repeat_n(applied, before).chain(during);
        let answers = answer.api.into_iter().zip(times);
        let answers = answers.map(|(outcome, at)| ApiAnswer { at, outcome });
        let api = answers.chain(self.changed.drain(..)).collect();
        let mut ticks = std::mem::take(&mut self.ticks);
        if let [only] = self.hpas.as_slice() {
            // A reconcile without a status write or an event does not name its HPA.
            for tick in ticks.iter_mut().filter(|tick| tick.hpa.is_empty()) {
                tick.hpa = only.clone();
            }
        }
        Ok(Stepped { now: answer.now, api, ticks })
    }

    /// The number of answers to changes in the middle of the last step's reconciles. Changes whose
    /// request the controller did not send were not applied, and have no answers.
    #[must_use]
    pub fn answers_during(&self) -> usize {
        let applied = self.answered.iter().filter(|it| it.at.is_some());
        applied.map(|it| it.answers).sum()
    }

    /// The reconciles that have not ended, by the names of their HPAs.
    #[must_use]
    pub fn unfinished(&self) -> Vec<Observation> {
        let mut unfinished = self.open.clone();
        unfinished.iter_mut().for_each(|tick| tick.took = Span(0));
        unfinished.sort_by(|a, b| a.hpa.cmp(&b.hpa));
        unfinished
    }

    fn entry(&mut self, entry: LogEntry) -> Result<(), String> {
        let LogEntry { at, namespace, mut action, missing } = entry;
        if let Some(member) = missing.first().filter(|_| self.requires_metadata) {
            let name = action.name();
            return Err(format!(
                "the entry {name} at {at} has no member `{member}`, which version {DETAILS} of the \
                 protocol requires"
            ));
        }
        if namespace.is_none() && action.is_request() {
            return Err(format!("the entry {} at {at} has no namespace", action.name()));
        }
        for answered in self.answered.iter_mut().filter(|it| action.request() == Some(it.after)) {
            answered.number = answered.number.saturating_sub(1);
            if answered.number == 0 {
                answered.at.get_or_insert(at);
            }
        }
        let elsewhere = namespace.filter(|namespace| *namespace != self.namespace);
        match &mut action {
            ControllerAction::UpdateStatus(write) => write.status.start_at(self.epoch),
            ControllerAction::SendEvent(sent) => sent.times.start_at(self.epoch),
            _ => {}
        }
        let tick = match &action {
            ControllerAction::Reconcile { hpa } => {
                let hpa = self.known_hpa(hpa.clone())?;
                if !self.begun.contains(&hpa) {
                    self.begun.push(hpa.clone());
                }
                self.current = Some(hpa);
                return Ok(());
            }
            ControllerAction::Reconciled { hpa } => {
                return self.end_reconcile(hpa, at);
            }
            ControllerAction::Event(event) if self.interleaved => {
                self.reconcile_of_event(event.hpa.clone(), at)?
            }
            ControllerAction::SendEvent(sent) if self.interleaved => {
                self.reconcile_of_event(sent.event.hpa.clone(), at)?
            }
            action => match self.current.clone() {
                Some(hpa) => self.open_reconcile(hpa, at),
                None if self.interleaved => {
                    let why = "several reconciles may be in progress, and the log does not say \
                               which HPA an entry belongs to: it requires `reconcile` and \
                               `reconciled`";
                    return Err(why.to_owned());
                }
                None => self.reconcile_of_only_hpa(action, at)?,
            },
        };
        tick.took = tick.took.max(at - tick.at);
        match &mut action {
            ControllerAction::UpdateStatus(write) => tick.hpa = write.name.clone(),
            ControllerAction::Event(Event { hpa, .. }) => tick.hpa = hpa.clone(),
            ControllerAction::SendEvent(sent) => {
                let SentEvent { event: Event { hpa, .. }, times, .. } = &mut **sent;
                tick.hpa = hpa.clone();
                times.relative_to(hpa, tick.at);
            }
            _ => {}
        }
        match elsewhere {
            Some(namespace) => tick.push_in(namespace, action),
            None => tick.push(action),
        }
        Ok(())
    }

    /// Returns true if the cluster itself made a change before the controller acted at this time.
    /// Later ones can be its effects, and stay in their order among its writes.
    fn is_outside_of_reconciles(&self, write: &ObjectWrite, at: Time) -> bool {
        !write.is_of_controller() && self.last.as_ref().is_none_or(|last| last.at < at)
    }

    /// Ends the reconcile of an HPA that is in progress.
    fn end_reconcile(&mut self, hpa: &Arc<str>, at: Time) -> Result<(), String> {
        self.current = None;
        let Some(index) = self.begun.iter().position(|begun| begun == hpa) else {
            return Err(format!(
                "the entry `reconciled` at {at} names {hpa}, which has no reconcile in progress"
            ));
        };
        self.begun.remove(index);
        let ended = self.open.iter().position(|tick| tick.hpa == *hpa);
        self.ticks.extend(ended.map(|index| self.open.remove(index)));
        Ok(())
    }

    fn known_hpa(&self, hpa: Arc<str>) -> Result<Arc<str>, String> {
        let known = self.hpas.iter().find(|known| **known == hpa).cloned();
        known
            .ok_or_else(|| format!("the log names the HPA {hpa}, which the scenario does not have"))
    }

    /// The reconcile of an HPA that is in progress. Begins one if there is none.
    fn open_reconcile(&mut self, hpa: Arc<str>, at: Time) -> &mut Observation {
        let index = self.open.iter().position(|tick| tick.hpa == hpa).unwrap_or_else(|| {
            self.open.push(Observation::new(at, hpa, []));
            self.open.len() - 1
        });
        &mut self.open[index]
    }

    /// The reconcile that an event belongs to. It has usually ended when the event is recorded, but
    /// the event may be the first entry of a reconcile that queries nothing.
    fn reconcile_of_event(&mut self, hpa: Arc<str>, at: Time) -> Result<&mut Observation, String> {
        if self.current.as_ref() == Some(&hpa) {
            return Ok(self.open_reconcile(hpa, at));
        }
        let open = self.open.iter_mut().find(|tick| tick.hpa == hpa);
        let ended = self.ticks.iter_mut().rev().find(|tick| tick.hpa == hpa);
        open.or(ended).ok_or_else(|| format!("an event of {hpa}, which was not reconciled"))
    }

    fn reconcile_of_only_hpa(
        &mut self,
        action: &ControllerAction,
        at: Time,
    ) -> Result<&mut Observation, String> {
        if self.begins_tick(action, at) {
            self.ticks.push(Observation::new(at, "".into(), []));
        }
        let writes_scale = matches!(action, ControllerAction::UpdateScale(_));
        let failed_scale_write = writes_scale && action.error().is_some();
        self.last = Some(Last { at, failed_scale_write });
        self.ticks.last_mut().ok_or_else(|| "the log does not begin with a reconcile".to_owned())
    }

    /// A reconcile begins with a read of the scale or, if its target can't be resolved, with the
    /// first entry of a new instant. A read that follows a refused write of the scale belongs to
    /// upstream's retry. Writes of the scale may be later than the start of their reconcile.
    fn begins_tick(&self, action: &ControllerAction, at: Time) -> bool {
        let Some(last) = &self.last else { return true };
        match action {
            _ if self.by_instant => at > last.at,
            ControllerAction::UpdateScale(_) => false,
            _ if last.failed_scale_write => false,
            ControllerAction::GetScale { .. } => true,
            _ => at > last.at,
        }
    }
}

/// Checks that an entry is not before the previous one, or before its step, nor after its step.
fn check_time(entry: &LogEntry, previous: Time, end: Time) -> Result<(), String> {
    let LogEntry { at, action, .. } = entry;
    let name = action.name();
    if *at < previous {
        return Err(format!(
            "the times of its log are not in order: the entry {name} at {at} follows {previous}"
        ));
    }
    if *at > end {
        return Err(format!("it ended a step at {end}, with the entry {name} at {at}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The protocol promises the order of the log, and that its times are within the step.
    #[test]
    fn times_that_are_not_in_order_break_the_protocol() {
        let read = |times: [i64; 2], begin: i64| {
            let entry = |at| {
                format!(
                    r#"{{"at":{at},"namespace":"default","getScale":{{"resource":"deployments.apps",
                    "name":"web","replicas":3,"statusReplicas":3}}}}"#
                )
            };
            let entries = times.map(entry).join(",");
            let answer = format!(r#"{{"now":9,"log":[{entries}]}}"#);
            let mut log =
                Log::new(Time::ZERO, "default".into(), [Arc::from("web")].into_iter(), false);
            let answer = serde_json::from_str(&answer).unwrap();
            log.stepped(answer, Time::ZERO + Span(begin), Vec::new())
        };
        assert_eq!(read([3, 9], 3).unwrap().ticks.len(), 2);
        for (times, begin) in [([-5, 0], 0), ([2, 3], 3), ([5, 4], 0), ([5, 10], 0)] {
            assert!(read(times, begin).is_err(), "{times:?} in a step that begins at {begin}");
        }
    }

    /// A change after a request that the controller does not send is not applied.
    #[test]
    fn only_changes_after_a_sent_request_have_answers() {
        let answers_during = |after: Request, number: usize| {
            let answer = r#"{"now":5,"api":[],"log":[{"at":3,"namespace":"default","getScale":
                {"resource":"deployments.apps","name":"web","replicas":3,"statusReplicas":3}}]}"#;
            let mut log =
                Log::new(Time::ZERO, "default".into(), [Arc::from("web")].into_iter(), false);
            let answered = Answered { after, number, answers: 2, at: None };
            let answer = serde_json::from_str(answer).expect("an answer");
            log.stepped(answer, Time::ZERO, vec![answered]).expect("a step");
            log.answers_during()
        };
        assert_eq!(answers_during(Request::GetScale, 1), 2);
        assert_eq!(answers_during(Request::GetScale, 2), 0);
        assert_eq!(answers_during(Request::UpdateStatus, 1), 0);
    }

    /// An entry with a second or unknown action is an error.
    #[test]
    fn an_entry_has_one_action() {
        let read = |text: &str| serde_json::from_str::<LogEntry>(text).map_err(|e| e.to_string());
        let error = r#""error":{"message":"no"}"#;
        assert!(read(&format!(r#"{{{error},"at":3,"namespace":"default"}}"#)).is_ok());
        for (text, why) in [
            (format!(r#"{{"at":3,{error},"event":{{}}}}"#), "two actions, `error` and `event`"),
            (format!(r#"{{"at":3,"fired":true,{error}}}"#), "unknown variant `fired`"),
            (format!("{{{error}}}"), "missing field `at`"),
            (r#"{"at":3}"#.to_owned(), "an entry has no action"),
            (format!(r#"{{"at":3,"at":4,{error}}}"#), "duplicate field `at`"),
            (
                format!(r#"{{"at":3,"namespace":"a","namespace":"b",{error}}}"#),
                "duplicate field `namespace`",
            ),
        ] {
            let found = read(&text).expect_err(&text);
            assert!(found.contains(why), "{found}");
        }
    }

    #[test]
    fn a_scale_write_names_its_resource() {
        let answer = r#"{"now":0,"log":[
            {"at":0,"namespace":"default",
                "getScale":{"resource":"deployments.apps","name":"web","replicas":3,
                "statusReplicas":3}},
            {"at":0,"namespace":"default",
                "updateScale":{"resource":"statefulsets.apps","name":"db","replicas":6}}]}"#;
        let step = |text: &str| {
            let mut log =
                Log::new(Time::ZERO, "default".into(), [Arc::from("web")].into_iter(), false);
            log.stepped(serde_json::from_str(text).unwrap(), Time::ZERO, Vec::new())
        };
        let ticks = step(answer).unwrap().ticks;
        let [tick] = ticks.as_slice() else { panic!("not one tick: {ticks:?}") };
        let writes: Vec<_> = tick.scale_writes().collect();
        let [write] = writes.as_slice() else { panic!("not one write: {tick:?}") };
        assert_eq!((&*write.resource, &*write.name), ("statefulsets.apps", "db"));
        assert_eq!(tick.scaled_to(), None, "the target keeps its replicas");
        let same_target = answer.replace("statefulsets", "deployments").replace("db", "web");
        assert_eq!(step(&same_target).unwrap().ticks[0].scaled_to(), Some(6));
        let nameless = answer.replace(r#""name":"db","#, "");
        assert!(serde_json::from_str::<SteppedJson>(&nameless).is_err());
    }

    /// What the cluster itself does before the controller acts belongs to no reconcile. Later
    /// changes at the same time can be effects of the controller's writes.
    #[test]
    fn changes_by_the_cluster_are_no_reconciles() {
        let write = |at: u32, controller: &str| {
            format!(
                r#"{{"at":{at},"write":{{"verb":"update",{controller}"apiVersion":"v1",
                "kind":"ConfigMap","resource":"configmaps","name":"a","changed":true}}}}"#
            )
        };
        let own = r#""controller":"c","#;
        let entries = [write(0, ""), write(3, own), write(3, ""), write(4, own), write(7, "")];
        let answer = format!(
            r#"{{"now":9,"api":[{{"deleted":{{"name":"web"}}}}],"log":[{}]}}"#,
            entries.join(",")
        );
        let mut log = Log::new(Time::ZERO, "default".into(), std::iter::empty(), false);
        log = log.by_instant(true);
        let answer = serde_json::from_str(&answer).expect("an answer");
        let stepped = log.stepped(answer, Time::ZERO, Vec::new()).expect("a step");
        let times = |ticks: &[Observation]| -> Vec<(Time, usize)> {
            ticks.iter().map(|tick| (tick.at, tick.object_writes().count())).collect()
        };
        assert_eq!(times(&stepped.ticks), [(Time(3), 2), (Time(4), 1)]);
        let api: Vec<Time> = stepped.api.iter().map(|answer| answer.at).collect();
        assert_eq!((api, log.answers()), (vec![Time(0), Time(0), Time(7)], 1));
    }

    /// A harness ignores the parts of the protocol that it does not know.
    #[test]
    fn unknown_parts_of_the_protocol_are_ignored() {
        let hello = r#"{"protocol":5,"engine":"e","release":"v1.37.0","supports":["x","objects"]}"#;
        let hello: Hello = serde_json::from_str(hello).expect("a hello");
        assert_eq!(hello.supports, [Feature::Unknown, Feature::Objects]);
    }

    /// Events are asynchronous: an event may precede the other entries of its reconcile.
    #[test]
    fn an_event_may_start_a_reconcile() {
        let answer = r#"{"now":0,"log":[{"at":0,"reconcile":{"hpa":"web"}},
            {"at":0,"event":{"hpa":"web","type":"Warning","reason":"FailedGetScale","message":""}},
            {"at":0,"error":{"message":"no"}},{"at":0,"reconciled":{"hpa":"web"}}]}"#;
        let mut log = Log::new(Time::ZERO, "default".into(), [Arc::from("web")].into_iter(), true);
        let ticks = log
            .stepped(serde_json::from_str(answer).unwrap(), Time::ZERO, Vec::new())
            .unwrap()
            .ticks;
        let [tick] = ticks.as_slice() else { panic!("not one tick: {ticks:?}") };
        assert_eq!((tick.events().count(), tick.errors().count()), (1, 1));
    }
}
