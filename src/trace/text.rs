//! The form in which upstream's traces are recorded: one JSON line a tick, small enough to review.
//!
//! A line says only what is new: reads that are those of the HPA's tick before are left out, a
//! status is given by the fields that changed, and a tick that only repeats its predecessor is
//! counted.
//! What is written can be read back without loss; a test holds the two together.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::text_metrics::{MetricForm, metric_form, metric_of};
use super::{ApiAnswer, ApiOutcome, Trace};
use crate::model::api::{Condition, ConditionType, HpaSpec, HpaStatus, Text};
use crate::model::observation::{
    ControllerAction, Event, EventType, Items, Observation, ScaleReplicas, ScaleWrite, SeriesValue,
    StatusWrite,
};
use crate::model::time::{Span, Time};

/// Text that is no recorded trace.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TextError {
    /// From 1.
    pub line: usize,
    /// What is wrong, for people.
    pub what: String,
}

/// The first line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    scenario: String,
    hash: String,
    engine: String,
    release: String,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Again(AgainLine),
    Tick(Box<TickLine>),
    Api(ApiLine),
}

/// What the tick before did, its writes aside, so many times more, at equal distances.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgainLine {
    again: usize,
    every: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApiLine {
    api: String,
    hpa: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<Arc<HpaSpec>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TickLine {
    t: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    took: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hpa: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reads: Option<Vec<ReadForm>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scale: Vec<ScaleForm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<StatusForm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_error: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    events: Vec<(EventType, Text, Text)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Text>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum ReadForm {
    PodsMetric(PodsMetricForm),
    ObjectMetric(ObjectMetricForm),
    ExternalMetric(ExternalMetricForm),
    Scale { scale: Arc<str>, name: Arc<str>, replicas: (i32, i32) },
    ScaleError { scale: Arc<str>, name: Arc<str>, error: Arc<str> },
    Pods { pods: Arc<str>, items: u32 },
    PodsError { pods: Arc<str>, error: Arc<str> },
}

/// `series` is the selector of the series; absent: all.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PodsMetricForm {
    pods_metric: Arc<str>,
    pods: Arc<str>,
    #[serde(default, skip_serializing_if = "is_empty")]
    series: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Arc<str>>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ObjectMetricForm {
    object_metric: Arc<str>,
    kind: Arc<str>,
    name: Arc<str>,
    #[serde(default, skip_serializing_if = "is_empty")]
    series: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Arc<str>>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ExternalMetricForm {
    external_metric: Arc<str>,
    #[serde(default, skip_serializing_if = "is_empty")]
    series: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Arc<str>>,
}

/// The answer of a read: what was found, or else an error.
fn answer_of<T>(found: Option<T>, error: Option<Arc<str>>) -> Result<Result<T, Arc<str>>, String> {
    match (found, error) {
        (Some(found), None) => Ok(Ok(found)),
        (None, Some(error)) => Ok(Err(error)),
        _ => Err("a read has an answer or an error".to_owned()),
    }
}

fn is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum ScaleForm {
    Written(i32),
    Refused { replicas: i32, error: Arc<str> },
    Elsewhere(ElsewhereForm),
}

/// A write to something else than the target that the tick's reads tell of.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ElsewhereForm {
    scale: Arc<str>,
    name: Arc<str>,
    replicas: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Arc<str>>,
}

/// What changed of a status. A list is given whole if any of it changed, but for conditions, which
/// are given one by one; their order is that of their first appearance and never changes.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct StatusForm {
    /// Nothing was known before, or conditions vanished: the status is given whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    whole: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_replicas: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    desired_replicas: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_scale_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_metrics: Option<Vec<MetricForm>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<(ConditionType, bool, Text, Text, String)>,
}

/// Writes a trace in its recorded form.
///
/// # Errors
/// If a value cannot be written as JSON; none that a controller produces is.
pub fn write(trace: &Trace) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string(&Header {
        scenario: trace.scenario.clone(),
        hash: trace.hash.clone(),
        engine: trace.engine.clone(),
        release: trace.release.clone(),
    })?;
    text.push('\n');
    let mut api = trace.api.iter().peekable();
    let mut before: Option<&Observation> = None;
    let mut known: BTreeMap<&str, (&Observation, HpaStatus)> = BTreeMap::new();
    let mut index = 0;
    while index < trace.ticks.len() || api.peek().is_some() {
        if let Some((_, answer)) = api.next_if(|(after, _)| *after <= index) {
            push(&mut text, &Line::Api(api_line(answer)))?;
            continue;
        }
        let end = api.peek().map_or(trace.ticks.len(), |(after, _)| *after);
        let Some(tick) = trace.ticks.get(index) else { break };
        let repeats = repeats(&trace.ticks[index..end.min(trace.ticks.len())], before);
        if let Some((times, every)) = repeats {
            push(&mut text, &Line::Again(AgainLine { again: times, every: every.to_string() }))?;
            index += times;
        } else {
            let same_hpa = before.is_some_and(|before| before.hpa == tick.hpa);
            let known = known.entry(&tick.hpa);
            let line = match &known {
                Entry::Occupied(known) => tick_line(tick, Some(known.get()), same_hpa),
                Entry::Vacant(_) => tick_line(tick, None, same_hpa),
            };
            let of_hpa = known.or_insert_with(|| (tick, HpaStatus::default()));
            of_hpa.0 = tick;
            if let Some(write) = tick.status_write() {
                of_hpa.1 = write.status.clone();
            }
            push(&mut text, &Line::Tick(Box::new(line)))?;
            index += 1;
        }
        before = Some(&trace.ticks[index - 1]);
    }
    Ok(text)
}

fn push(text: &mut String, line: &Line) -> Result<(), serde_json::Error> {
    text.push_str(&serde_json::to_string(line)?);
    text.push('\n');
    Ok(())
}

/// How many ticks from here on only do what the one before did, its writes aside, and how far
/// apart they are.
fn repeats(ticks: &[Observation], before: Option<&Observation>) -> Option<(usize, Span)> {
    let before = before?;
    let every = ticks.first()?.at - before.at;
    let mut at = before.at;
    let same = |tick: &&Observation| {
        at = at + every;
        tick.at == at
            && (&tick.hpa, tick.took) == (&before.hpa, before.took)
            && tick.actions().iter().eq(before.actions().iter().filter(|it| !it.is_write()))
    };
    let times = ticks.iter().take_while(same).count();
    (times > 0).then_some((times, every))
}

fn api_line(answer: &ApiAnswer) -> ApiLine {
    let mut line = ApiLine {
        api: answer.at.to_string(),
        hpa: answer.outcome.name().clone(),
        generation: None,
        spec: None,
        refused: None,
    };
    match &answer.outcome {
        ApiOutcome::Stored { generation, spec, .. } => {
            line.generation = Some(*generation);
            line.spec = Some(spec.clone());
        }
        ApiOutcome::Refused { message, .. } => line.refused = Some(message.clone()),
        ApiOutcome::Deleted { .. } => {}
    }
    line
}

/// `known` is the HPA's tick before, and its status by then.
fn tick_line(
    tick: &Observation,
    known: Option<&(&Observation, HpaStatus)>,
    same_hpa: bool,
) -> TickLine {
    let same_reads = known.is_some_and(|(before, _)| before.reads().eq(tick.reads()));
    let write = tick.status_write();
    let form = write.map(|write| status_form(&write.status, known.map(|(_, status)| status)));
    TickLine {
        t: tick.at.to_string(),
        took: (tick.took != Span::ZERO).then(|| tick.took.to_string()),
        hpa: (!same_hpa).then(|| tick.hpa.clone()),
        reads: (!same_reads).then(|| tick.reads().filter_map(read_form).collect()),
        scale: tick.scale_writes().map(|write| scale_form(tick, write)).collect(),
        status: form,
        status_error: write.and_then(|write| write.error.clone()),
        events: tick
            .events()
            .map(|event| (event.type_, event.reason.clone(), event.message.clone()))
            .collect(),
        errors: tick.errors().cloned().collect(),
    }
}

fn read_form(read: &ControllerAction) -> Option<ReadForm> {
    Some(match read.clone() {
        ControllerAction::GetScale { resource, name, answer: Ok(found) } => {
            let replicas = (found.replicas, found.status_replicas);
            ReadForm::Scale { scale: resource, name, replicas }
        }
        ControllerAction::GetScale { resource, name, answer: Err(error) } => {
            ReadForm::ScaleError { scale: resource, name, error }
        }
        ControllerAction::ListPodMetrics { selector, answer: Ok(Items { items }) } => {
            ReadForm::Pods { pods: selector, items }
        }
        ControllerAction::ListPodMetrics { selector, answer: Err(error) } => {
            ReadForm::PodsError { pods: selector, error }
        }
        ControllerAction::PodsMetric { metric, selector, metric_selector, answer } => {
            ReadForm::PodsMetric(PodsMetricForm {
                pods_metric: metric,
                pods: selector,
                series: metric_selector,
                items: answer.as_ref().ok().map(|found| found.items),
                error: answer.err(),
            })
        }
        ControllerAction::ObjectMetric { metric, kind, name, metric_selector, answer } => {
            ReadForm::ObjectMetric(ObjectMetricForm {
                object_metric: metric,
                kind,
                name,
                series: metric_selector,
                value: answer.as_ref().ok().map(|found| found.value.clone()),
                error: answer.err(),
            })
        }
        ControllerAction::ExternalMetric { metric, metric_selector, answer } => {
            ReadForm::ExternalMetric(ExternalMetricForm {
                external_metric: metric,
                series: metric_selector,
                items: answer.as_ref().ok().map(|found| found.items),
                error: answer.err(),
            })
        }
        _ => return None,
    })
}

fn scale_form(tick: &Observation, write: &ScaleWrite) -> ScaleForm {
    let ScaleWrite { resource, name, replicas, error } = write.clone();
    match error {
        error if tick.target() != Some((&resource, &name)) => {
            ScaleForm::Elsewhere(ElsewhereForm { scale: resource, name, replicas, error })
        }
        None => ScaleForm::Written(replicas),
        Some(error) => ScaleForm::Refused { replicas, error },
    }
}

fn status_form(status: &HpaStatus, before: Option<&HpaStatus>) -> StatusForm {
    let kept = |before: &HpaStatus| {
        before.conditions.len() <= status.conditions.len()
            && before.conditions.iter().zip(&status.conditions).all(|(a, b)| a.type_ == b.type_)
            && (before.last_scale_time.is_none() || status.last_scale_time.is_some())
            && (before.observed_generation.is_none() || status.observed_generation.is_some())
            && (before.current_replicas.is_none() || status.current_replicas.is_some())
    };
    let Some(before) = before.filter(|before| kept(before)) else {
        return StatusForm { whole: true, ..status_form(status, Some(&HpaStatus::default())) };
    };
    StatusForm {
        whole: false,
        current_replicas: changed(status.current_replicas, before.current_replicas),
        desired_replicas: (status.desired_replicas != before.desired_replicas)
            .then_some(status.desired_replicas),
        last_scale_time: changed(status.last_scale_time, before.last_scale_time)
            .map(|time| time.to_string()),
        observed_generation: changed(status.observed_generation, before.observed_generation),
        current_metrics: (status.current_metrics != before.current_metrics)
            .then(|| status.current_metrics.iter().map(metric_form).collect()),
        conditions: status
            .conditions
            .iter()
            .enumerate()
            .filter(|(index, condition)| before.conditions.get(*index) != Some(condition))
            .map(|(_, condition)| condition_form(condition))
            .collect(),
    }
}

fn changed<T: PartialEq>(now: Option<T>, before: Option<T>) -> Option<T> {
    if now == before { None } else { now }
}

fn condition_form(condition: &Condition) -> (ConditionType, bool, Text, Text, String) {
    (
        condition.type_,
        condition.status,
        condition.reason.clone(),
        condition.message.clone(),
        condition.last_transition_time.to_string(),
    )
}

/// Reads a trace from its recorded form.
///
/// # Errors
/// If a line is not what [`write()`] writes.
pub fn read(text: &str) -> Result<Trace, TextError> {
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let fail = |line: usize, what: String| TextError { line, what };
    let Some((number, first)) = lines.next() else {
        return Err(fail(1, "an empty trace".to_owned()));
    };
    let header: Header =
        serde_json::from_str(first).map_err(|error| fail(number, error.to_string()))?;
    let mut trace = Trace {
        release: header.release,
        engine: header.engine,
        scenario: header.scenario,
        hash: header.hash,
        api: Vec::new(),
        ticks: Vec::new(),
    };
    let mut statuses = BTreeMap::new();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let line = serde_json::from_str(line).map_err(|error| fail(number, error.to_string()))?;
        read_line(&mut trace, &mut statuses, line).map_err(|what| fail(number, what))?;
    }
    Ok(trace)
}

/// The status of each HPA.
type Statuses = BTreeMap<Arc<str>, HpaStatus>;

fn read_line(trace: &mut Trace, statuses: &mut Statuses, line: Line) -> Result<(), String> {
    match line {
        Line::Api(line) => trace.api.push((trace.ticks.len(), read_api(line)?)),
        Line::Tick(line) => {
            let tick = read_tick(*line, &trace.ticks, statuses)?;
            trace.ticks.push(tick);
        }
        Line::Again(line) => {
            let every = span(&line.every)?;
            let last = trace.ticks.last().ok_or("nothing to repeat")?.clone();
            let mut at = last.at;
            for _ in 0..line.again {
                at = at + every;
                let mut tick = last.clone();
                tick.at = at;
                tick.retain(|action| !action.is_write());
                trace.ticks.push(tick);
            }
        }
    }
    Ok(())
}

fn span(text: &str) -> Result<Span, String> {
    text.parse().map_err(|error| format!("{text}: {error}"))
}

fn time(text: &str) -> Result<Time, String> {
    Ok(Time::ZERO + span(text)?)
}

fn read_api(line: ApiLine) -> Result<ApiAnswer, String> {
    let name = line.hpa;
    let outcome = match (line.spec, line.refused) {
        (Some(spec), None) => {
            ApiOutcome::Stored { name, generation: line.generation.unwrap_or_default(), spec }
        }
        (None, Some(message)) => ApiOutcome::Refused { name, message },
        (None, None) => ApiOutcome::Deleted { name },
        (Some(_), Some(_)) => return Err("both stored and refused".to_owned()),
    };
    Ok(ApiAnswer { at: time(&line.api)?, outcome })
}

fn read_tick(
    line: TickLine,
    ticks: &[Observation],
    statuses: &mut Statuses,
) -> Result<Observation, String> {
    let last = ticks.last().map(|last| last.hpa.clone());
    let hpa = line.hpa.or(last).unwrap_or_default();
    let before = ticks.iter().rev().find(|tick| tick.hpa == hpa);
    let status = statuses.entry(hpa.clone()).or_default();
    let reads: Vec<ControllerAction> = match line.reads {
        Some(reads) => reads.into_iter().map(read_of).collect::<Result<_, _>>()?,
        None => before.map(|before| before.reads().cloned().collect()).unwrap_or_default(),
    };
    let mut tick = Observation::new(time(&line.t)?, hpa.clone(), reads);
    tick.took = line.took.as_deref().map_or(Ok(Span::ZERO), span)?;
    for form in line.scale {
        tick.push(ControllerAction::UpdateScale(scale_of(&tick, form)?));
    }
    if let Some(form) = line.status {
        read_status(form, status)?;
        let (status, error) = (status.clone(), line.status_error);
        tick.push(ControllerAction::UpdateStatus(StatusWrite { name: hpa, status, error }));
    }
    for (type_, reason, message) in line.events {
        let event = Event { hpa: tick.hpa.clone(), type_, reason, message };
        tick.push(ControllerAction::Event(event));
    }
    for message in line.errors {
        tick.push(ControllerAction::Error { message });
    }
    Ok(tick)
}

fn read_of(form: ReadForm) -> Result<ControllerAction, String> {
    let items = |items: u32| Items { items };
    Ok(match form {
        ReadForm::Scale { scale, name, replicas: (replicas, status_replicas) } => {
            let answer = Ok(ScaleReplicas { replicas, status_replicas });
            ControllerAction::GetScale { resource: scale, name, answer }
        }
        ReadForm::ScaleError { scale, name, error } => {
            ControllerAction::GetScale { resource: scale, name, answer: Err(error) }
        }
        ReadForm::Pods { pods, items } => {
            ControllerAction::ListPodMetrics { selector: pods, answer: Ok(Items { items }) }
        }
        ReadForm::PodsError { pods, error } => {
            ControllerAction::ListPodMetrics { selector: pods, answer: Err(error) }
        }
        ReadForm::PodsMetric(form) => ControllerAction::PodsMetric {
            metric: form.pods_metric,
            selector: form.pods,
            metric_selector: form.series,
            answer: answer_of(form.items, form.error)?.map(items),
        },
        ReadForm::ObjectMetric(form) => ControllerAction::ObjectMetric {
            metric: form.object_metric,
            kind: form.kind,
            name: form.name,
            metric_selector: form.series,
            answer: answer_of(form.value, form.error)?.map(|value| SeriesValue { value }),
        },
        ReadForm::ExternalMetric(form) => ControllerAction::ExternalMetric {
            metric: form.external_metric,
            metric_selector: form.series,
            answer: answer_of(form.items, form.error)?.map(items),
        },
    })
}

fn scale_of(tick: &Observation, form: ScaleForm) -> Result<ScaleWrite, String> {
    let (replicas, error) = match form {
        ScaleForm::Written(replicas) => (replicas, None),
        ScaleForm::Refused { replicas, error } => (replicas, Some(error)),
        ScaleForm::Elsewhere(ElsewhereForm { scale, name, replicas, error }) => {
            return Ok(ScaleWrite { resource: scale, name, replicas, error });
        }
    };
    let (resource, name) = tick.target().ok_or("a write of a scale that was not read")?;
    Ok(ScaleWrite { resource: resource.clone(), name: name.clone(), replicas, error })
}

fn read_status(form: StatusForm, status: &mut HpaStatus) -> Result<(), String> {
    if form.whole {
        *status = HpaStatus::default();
    }
    status.current_replicas = form.current_replicas.or(status.current_replicas);
    status.desired_replicas = form.desired_replicas.unwrap_or(status.desired_replicas);
    status.observed_generation = form.observed_generation.or(status.observed_generation);
    if let Some(text) = form.last_scale_time {
        status.last_scale_time = Some(time(&text)?);
    }
    if let Some(metrics) = form.current_metrics {
        status.current_metrics = metrics.into_iter().map(metric_of).collect::<Result<_, _>>()?;
    }
    for (type_, on, reason, message, since) in form.conditions {
        let condition =
            Condition { type_, status: on, reason, message, last_transition_time: time(&since)? };
        match status.conditions.iter_mut().find(|known| known.type_ == type_) {
            Some(known) => *known = condition,
            None => status.conditions.push(condition),
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
