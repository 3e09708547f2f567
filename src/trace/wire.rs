//! The answers of the engine protocol (`docs/protocol.md`) as types, and what they mean.
//!
//! The log of a step is flat; here it is cut into reconciles and turned into [`Observation`]s.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ApiAnswer, ApiOutcome, Stepped};
use crate::model::api::{
    Condition, ConditionType, CrossVersionObjectReference, HpaSpec, HpaStatus, MetricIdentifier,
    MetricStatus, Text,
};
use crate::model::observation::{Event, EventType, Observation, Read, ScaleWrite, StatusWrite};
use crate::model::quantity::Quantity;
use crate::model::time::Time;

/// The version of the protocol that this program speaks.
pub const PROTOCOL: u32 = 1;

/// One line of an engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// The first line.
    Hello(Hello),
    /// A scenario is open.
    Opened {
        /// Which instant is t=0, RFC 3339.
        epoch: Timestamp,
    },
    /// A step was made.
    Stepped(SteppedJson),
    /// The scenario is closed.
    Closed {},
    /// The engine cannot go on.
    Failed {
        /// Why, for people.
        why: String,
    },
}

/// What an engine says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// The version of the protocol.
    pub protocol: u32,
    /// For instance `upstream`.
    pub engine: String,
    /// For instance `v1.37.0`.
    pub release: String,
}

/// The answer to a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SteppedJson {
    now: Time,
    #[serde(default)]
    api: Vec<ApiJson>,
    #[serde(default)]
    log: Vec<LogEntry>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ApiJson {
    Stored { name: Arc<str>, generation: i64, spec: Box<HpaSpec> },
    Refused { name: Arc<str>, message: String },
    Deleted { name: Arc<str> },
}

/// One entry of the log: exactly one of the optional fields is there.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LogEntry {
    at: Time,
    get_scale: Option<GetScale>,
    list_pod_metrics: Option<ListPodMetrics>,
    pods_metric: Option<PodsMetric>,
    object_metric: Option<ObjectMetric>,
    external_metric: Option<ExternalMetric>,
    update_scale: Option<UpdateScale>,
    update_status: Option<UpdateStatus>,
    event: Option<EventJson>,
    error: Option<ErrorJson>,
    reconcile: Option<ReconcileJson>,
    reconciled: Option<ReconcileJson>,
}

/// Whose turn it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ReconcileJson {
    hpa: Arc<str>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GetScale {
    resource: Arc<str>,
    name: Arc<str>,
    #[serde(default)]
    replicas: i32,
    #[serde(default)]
    status_replicas: i32,
    error: Option<Arc<str>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ListPodMetrics {
    selector: Arc<str>,
    #[serde(default)]
    items: u32,
    error: Option<Arc<str>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodsMetric {
    metric: Arc<str>,
    selector: Arc<str>,
    metric_selector: Arc<str>,
    #[serde(default)]
    items: u32,
    error: Option<Arc<str>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectMetric {
    metric: Arc<str>,
    kind: Arc<str>,
    name: Arc<str>,
    metric_selector: Arc<str>,
    #[serde(default)]
    value: Arc<str>,
    error: Option<Arc<str>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExternalMetric {
    metric: Arc<str>,
    metric_selector: Arc<str>,
    #[serde(default)]
    items: u32,
    error: Option<Arc<str>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct UpdateScale {
    resource: Arc<str>,
    name: Arc<str>,
    replicas: i32,
    error: Option<Arc<str>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct UpdateStatus {
    name: Arc<str>,
    status: StatusJson,
    error: Option<Arc<str>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct EventJson {
    hpa: Arc<str>,
    #[serde(rename = "type")]
    type_: EventType,
    reason: Arc<str>,
    message: Arc<str>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ErrorJson {
    message: Arc<str>,
}

/// `status` of an `autoscaling/v2` HPA in the API's own JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StatusJson {
    observed_generation: Option<i64>,
    last_scale_time: Option<Timestamp>,
    current_replicas: Option<i32>,
    #[serde(default)]
    desired_replicas: i32,
    #[serde(default)]
    current_metrics: Option<Vec<MetricStatusJson>>,
    #[serde(default)]
    conditions: Option<Vec<ConditionJson>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MetricStatusJson {
    #[serde(rename = "type")]
    type_: String,
    resource: Option<ResourceStatusJson>,
    container_resource: Option<ContainerResourceStatusJson>,
    pods: Option<CustomStatusJson>,
    object: Option<ObjectStatusJson>,
    external: Option<CustomStatusJson>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResourceStatusJson {
    name: Arc<str>,
    current: CurrentJson,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ContainerResourceStatusJson {
    name: Arc<str>,
    container: Arc<str>,
    current: CurrentJson,
}

/// Of the types Pods and External.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CustomStatusJson {
    metric: Arc<MetricIdentifier>,
    current: CurrentJson,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ObjectStatusJson {
    metric: Arc<MetricIdentifier>,
    described_object: Arc<CrossVersionObjectReference>,
    current: CurrentJson,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CurrentJson {
    value: Option<Quantity>,
    average_utilization: Option<i32>,
    average_value: Option<Quantity>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConditionJson {
    #[serde(rename = "type")]
    type_: ConditionType,
    status: ConditionStatusJson,
    reason: Text,
    message: Text,
    last_transition_time: Timestamp,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum ConditionStatusJson {
    True,
    False,
}

fn api_answer(answer: ApiJson, at: Time) -> ApiAnswer {
    let (name, outcome) = match answer {
        ApiJson::Stored { name, generation, spec } => {
            (name, ApiOutcome::Stored { generation, spec })
        }
        ApiJson::Refused { name, message } => (name, ApiOutcome::Refused(message)),
        ApiJson::Deleted { name } => (name, ApiOutcome::Deleted),
    };
    ApiAnswer { at, name, outcome }
}

#[derive(Clone, Copy, Debug)]
struct Clock {
    epoch: Timestamp,
}

impl Clock {
    fn time(self, timestamp: Timestamp) -> Result<Time, String> {
        let nanos = timestamp.as_nanosecond() - self.epoch.as_nanosecond();
        i64::try_from(nanos).map(Time).map_err(|_| format!("{timestamp} is out of range"))
    }
}

/// What the last entry was, as far as it decides where a reconcile begins.
#[derive(Debug)]
struct Last {
    at: Time,
    failed_scale_write: bool,
}

/// Cuts the logs of a scenario into reconciles.
#[derive(Debug)]
pub struct Log {
    clock: Clock,
    /// The HPAs that there can be.
    hpas: Vec<Arc<str>>,
    /// Several reconciles may be under way, and the log says whose turn it is.
    turns: bool,
    /// Reconciles that are over, and not yet handed out.
    ticks: Vec<Observation>,
    /// Reconciles that have begun, where the log says when they end.
    open: Vec<Observation>,
    /// The HPA whose turn it is, where the log says so.
    turn: Option<Arc<str>>,
    last: Option<Last>,
}

impl Log {
    /// The log of a scenario with these HPAs, of which several reconciles may be under way.
    #[must_use]
    pub fn new(epoch: Timestamp, hpas: impl Iterator<Item = Arc<str>>, turns: bool) -> Log {
        Log {
            clock: Clock { epoch },
            hpas: hpas.collect(),
            turns,
            ticks: Vec::new(),
            open: Vec::new(),
            turn: None,
            last: None,
        }
    }

    /// Reads what an engine answered to a step whose changes were applied at `applied`.
    ///
    /// # Errors
    /// A message for people, if the answer has something that no known controller says.
    pub fn stepped(&mut self, answer: SteppedJson, applied: Time) -> Result<Stepped, String> {
        let api = answer.api.into_iter().map(|api| api_answer(api, applied)).collect();
        self.last = None;
        for entry in answer.log {
            self.entry(entry)?;
        }
        let mut ticks = std::mem::take(&mut self.ticks);
        if let [only] = self.hpas.as_slice() {
            // A reconcile that wrote and recorded nothing does not say whose it was.
            for tick in ticks.iter_mut().filter(|tick| tick.hpa.is_empty()) {
                tick.hpa = only.clone();
            }
        }
        Ok(Stepped { now: answer.now, api, ticks })
    }

    fn entry(&mut self, mut entry: LogEntry) -> Result<(), String> {
        if let Some(mark) = entry.reconcile.take() {
            self.turn = Some(self.known(mark.hpa)?);
            return Ok(());
        }
        if let Some(mark) = entry.reconciled.take() {
            self.turn = None;
            let over = self.open.iter().position(|tick| tick.hpa == mark.hpa);
            self.ticks.extend(over.map(|index| self.open.remove(index)));
            return Ok(());
        }
        let clock = self.clock;
        let tick = if let Some(event) = entry.event.as_ref().filter(|_| self.turns) {
            self.of_event(event.hpa.clone(), entry.at)?
        } else if let Some(hpa) = self.turn.clone() {
            self.begun(hpa, entry.at)
        } else if self.turns {
            let why = "several reconciles may be under way, and the log does not say whose turn it \
                       is: it needs `reconcile` and `reconciled`";
            return Err(why.to_owned());
        } else {
            self.of_the_only_hpa(&entry)?
        };
        add(tick, entry, clock)
    }

    fn known(&self, hpa: Arc<str>) -> Result<Arc<str>, String> {
        let known = self.hpas.iter().find(|known| **known == hpa).cloned();
        known.ok_or_else(|| format!("the log speaks of an HPA {hpa}, which is not the scenario's"))
    }

    /// The reconcile of an HPA that goes on; it begins with what it does first.
    fn begun(&mut self, hpa: Arc<str>, at: Time) -> &mut Observation {
        let index = self.open.iter().position(|tick| tick.hpa == hpa).unwrap_or_else(|| {
            self.open.push(Observation { at, hpa, ..Observation::default() });
            self.open.len() - 1
        });
        &mut self.open[index]
    }

    /// The reconcile that an event belongs to. Mostly it is over when the event is recorded, but
    /// one that asks for nothing may have said nothing else before.
    fn of_event(&mut self, hpa: Arc<str>, at: Time) -> Result<&mut Observation, String> {
        if self.turn.as_ref() == Some(&hpa) {
            return Ok(self.begun(hpa, at));
        }
        let open = self.open.iter_mut().find(|tick| tick.hpa == hpa);
        let over = self.ticks.iter_mut().rev().find(|tick| tick.hpa == hpa);
        open.or(over).ok_or_else(|| format!("an event of {hpa}, which was not reconciled"))
    }

    fn of_the_only_hpa(&mut self, entry: &LogEntry) -> Result<&mut Observation, String> {
        if self.begins_tick(entry) {
            self.ticks.push(Observation { at: entry.at, ..Observation::default() });
        }
        let failed_scale_write =
            entry.update_scale.as_ref().is_some_and(|write| write.error.is_some());
        self.last = Some(Last { at: entry.at, failed_scale_write });
        self.ticks.last_mut().ok_or_else(|| "the log has no reconcile".to_owned())
    }

    /// A reconcile begins with a read of the scale, or, if its target can't even be named, with
    /// whatever comes first at a new instant. The read that follows a refused write of the scale is
    /// upstream's retry, and writes of the scale may come later than their reconcile began.
    fn begins_tick(&self, entry: &LogEntry) -> bool {
        let Some(last) = &self.last else { return true };
        if entry.update_scale.is_some() || last.failed_scale_write {
            return false;
        }
        entry.get_scale.is_some() || entry.at > last.at
    }
}

fn add(tick: &mut Observation, entry: LogEntry, clock: Clock) -> Result<(), String> {
    tick.took = tick.took.max(entry.at - tick.at);
    if let Some(read) = entry.get_scale {
        tick.reads.push(Read::Scale {
            resource: read.resource,
            name: read.name,
            answer: read.error.map_or(Ok((read.replicas, read.status_replicas)), Err),
        });
    }
    if let Some(list) = entry.list_pod_metrics {
        tick.reads.push(Read::PodMetrics {
            selector: list.selector,
            answer: list.error.map_or(Ok(list.items), Err),
        });
    }
    tick.reads.extend(entry.pods_metric.map(|read| Read::PodsMetric {
        metric: read.metric,
        selector: read.selector,
        metric_selector: read.metric_selector,
        answer: read.error.map_or(Ok(read.items), Err),
    }));
    tick.reads.extend(entry.object_metric.map(|read| Read::ObjectMetric {
        metric: read.metric,
        kind: read.kind,
        name: read.name,
        metric_selector: read.metric_selector,
        answer: read.error.map_or(Ok(read.value), Err),
    }));
    tick.reads.extend(entry.external_metric.map(|read| Read::ExternalMetric {
        metric: read.metric,
        metric_selector: read.metric_selector,
        answer: read.error.map_or(Ok(read.items), Err),
    }));
    if let Some(write) = entry.update_scale {
        let UpdateScale { resource, name, replicas, error } = write;
        tick.scale_writes.push(ScaleWrite { resource, name, replicas, error });
    }
    if let Some(write) = entry.update_status {
        tick.hpa = write.name;
        let status = status(write.status, clock)?;
        tick.status_write = Some(StatusWrite { status, error: write.error });
    }
    if let Some(event) = entry.event {
        tick.hpa = event.hpa;
        tick.events.push(Event {
            type_: event.type_,
            reason: Text::Shared(event.reason),
            message: Text::Shared(event.message),
        });
    }
    if let Some(error) = entry.error {
        tick.errors.push(Text::Shared(error.message));
    }
    Ok(())
}

fn status(json: StatusJson, clock: Clock) -> Result<HpaStatus, String> {
    let metrics = json.current_metrics.unwrap_or_default();
    let conditions = json.conditions.unwrap_or_default();
    Ok(HpaStatus {
        observed_generation: json.observed_generation,
        last_scale_time: json.last_scale_time.map(|time| clock.time(time)).transpose()?,
        current_replicas: json.current_replicas,
        desired_replicas: json.desired_replicas,
        current_metrics: metrics.into_iter().map(metric).collect::<Result<_, _>>()?,
        conditions: conditions
            .into_iter()
            .map(|condition| {
                Ok(Condition {
                    type_: condition.type_,
                    status: condition.status == ConditionStatusJson::True,
                    reason: condition.reason,
                    message: condition.message,
                    last_transition_time: clock.time(condition.last_transition_time)?,
                })
            })
            .collect::<Result<_, String>>()?,
    })
}

/// A metric's status: just the fields that its type has.
fn metric(json: MetricStatusJson) -> Result<MetricStatus, String> {
    let MetricStatusJson { type_, resource, container_resource, pods, object, external } = json;
    let unknown = || format!("a status of a metric of type {type_:?} is not understood");
    let status = match (resource, container_resource, pods, object, external) {
        (None, None, None, None, None) if type_.is_empty() => return Ok(MetricStatus::Empty),
        (Some(json), None, None, None, None) if type_ == "Resource" => {
            let (value, average_utilization, average_value) = json.current.parts();
            let name = json.name;
            (value, MetricStatus::Resource { name, average_utilization, average_value })
        }
        (None, Some(json), None, None, None) if type_ == "ContainerResource" => {
            let (value, average_utilization, average_value) = json.current.parts();
            let (name, container) = (json.name, json.container);
            let status = MetricStatus::ContainerResource {
                name,
                container,
                average_utilization,
                average_value,
            };
            (value, status)
        }
        (None, None, Some(json), None, None) if type_ == "Pods" => {
            let (value, _, average_value) = json.current.without_utilization(unknown)?;
            (value, MetricStatus::Pods { metric: json.metric, average_value })
        }
        (None, None, None, Some(json), None) if type_ == "Object" => {
            let (value, _, average_value) = json.current.without_utilization(unknown)?;
            let (metric, described_object) = (json.metric, json.described_object);
            let status = MetricStatus::Object { metric, described_object, value, average_value };
            (None, status)
        }
        (None, None, None, None, Some(json)) if type_ == "External" => {
            let (value, _, average_value) = json.current.without_utilization(unknown)?;
            let metric = json.metric;
            (None, MetricStatus::External { metric, value, average_value })
        }
        _ => return Err(unknown()),
    };
    match status {
        // A total where there are only averages.
        (Some(_), _) => Err(unknown()),
        (None, status) => Ok(status),
    }
}

type Parts = (Option<Quantity>, Option<i32>, Option<Quantity>);

impl CurrentJson {
    /// Value, average utilization, average value.
    fn parts(self) -> Parts {
        (self.value, self.average_utilization, self.average_value)
    }

    fn without_utilization(self, unknown: impl Fn() -> String) -> Result<Parts, String> {
        if self.average_utilization.is_some() { Err(unknown()) } else { Ok(self.parts()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_of_a_scale_says_of_what() {
        let answer = r#"{"now":0,"log":[
            {"at":0,"getScale":{"resource":"deployments.apps","name":"web","replicas":3}},
            {"at":0,"updateScale":{"resource":"statefulsets.apps","name":"db","replicas":6}}]}"#;
        let step = |text: &str| {
            let mut log = Log::new(Timestamp::UNIX_EPOCH, std::iter::once(Arc::from("web")), false);
            log.stepped(serde_json::from_str(text).unwrap(), Time::ZERO)
        };
        let ticks = step(answer).unwrap().ticks;
        let [tick] = ticks.as_slice() else { panic!("not one tick: {ticks:?}") };
        let [write] = tick.scale_writes.as_slice() else { panic!("not one write: {tick:?}") };
        assert_eq!((&*write.resource, &*write.name), ("statefulsets.apps", "db"));
        assert_eq!(tick.scaled_to(), None, "the target keeps its size");
        let own = answer.replace("statefulsets", "deployments").replace("db", "web");
        assert_eq!(step(&own).unwrap().ticks[0].scaled_to(), Some(6));
        let nameless = answer.replace(r#""name":"db","#, "");
        assert!(serde_json::from_str::<SteppedJson>(&nameless).is_err());
    }

    /// Chance decides whether it overtakes what is said in the same turn.
    #[test]
    fn an_event_may_be_the_first_that_is_heard_of_a_turn() {
        let answer = r#"{"now":0,"log":[{"at":0,"reconcile":{"hpa":"web"}},
            {"at":0,"event":{"hpa":"web","type":"Warning","reason":"FailedGetScale","message":""}},
            {"at":0,"error":{"message":"no"}},{"at":0,"reconciled":{"hpa":"web"}}]}"#;
        let mut log = Log::new(Timestamp::UNIX_EPOCH, std::iter::once(Arc::from("web")), true);
        let ticks = log.stepped(serde_json::from_str(answer).unwrap(), Time::ZERO).unwrap().ticks;
        let [tick] = ticks.as_slice() else { panic!("not one tick: {ticks:?}") };
        assert_eq!((tick.events.len(), tick.errors.len()), (1, 1));
    }
}
