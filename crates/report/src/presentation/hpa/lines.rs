//! The ticks of HPAs as JSON: one line for each tick.

use std::io::{self, Write};

use serde::Serialize;

use crate::json::line;
use crate::presentation::hpa::rows::shown;
use crate::presentation::recommender::lines::write_with_hpa;
use crate::table::Rows;
use kube_autoscaler_models::api::{ConditionStatus, ConditionType, HpaCondition, Text};
use kube_autoscaler_models::derivation::{Limit, MetricDerivation, PodCounts, Source, Target};
use kube_autoscaler_models::observation::{Event, EventType, EventVerb, SentEvent};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::{FreeRun, FreeTick};

/// Writes the ticks of the HPAs and, if the scenario has a VPA, the part about the VPA.
pub(crate) fn write(
    out: &mut dyn Write,
    of: &Scenario,
    run: &FreeRun,
    rows: Rows,
    scenario: Option<&str>,
) -> io::Result<()> {
    let shown = shown(rows, run);
    for (index, tick) in run.ticks.iter().enumerate().filter(|(index, _)| shown[*index]) {
        line(out, &TickLine { scenario, ..TickLine::new(index + 1, tick, of) })?;
    }
    match &run.vpa {
        Some(vpa) => write_with_hpa(out, vpa, rows, scenario),
        None => Ok(()),
    }
}

/// A tick of an HPA.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TickLine<'a> {
    tick: usize,
    at: String,
    hpa: &'a str,
    replicas_before: i32,
    replicas_after: i32,
    proposal: Option<i32>,
    desired_replicas: i32,
    limited_by: Option<&'static str>,
    metrics: Vec<MetricLine<'a>>,
    why: String,
    events: Vec<EventLine<'a>>,
    /// Absent if the status was not written.
    conditions: Option<Vec<ConditionLine<'a>>>,
    errors: Vec<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<&'a str>,
    namespace: &'a str,
    /// The date and time, if the scenario has a clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
}

impl<'a> TickLine<'a> {
    fn new(number: usize, tick: &'a FreeTick, scenario: &'a Scenario) -> TickLine<'a> {
        let (observation, derivation) = (&tick.observation, &tick.derivation);
        let at = observation.at;
        let events = observation.deliveries().map(|(event, sent)| EventLine::new(event, sent));
        let conditions = observation.status_write().map(|write| &write.status.conditions);
        TickLine {
            tick: number,
            at: at.to_string(),
            hpa: &observation.hpa,
            replicas_before: tick.replicas_before,
            replicas_after: tick.replicas_after,
            proposal: derivation.proposal,
            desired_replicas: derivation.desired_replicas,
            limited_by: derivation.limited_by().map(Limit::name),
            metrics: derivation.metrics.iter().map(MetricLine::new).collect(),
            why: derivation.summary(),
            events: events.collect(),
            conditions: conditions.map(|all| all.iter().map(ConditionLine::new).collect()),
            errors: observation.errors().collect(),
            scenario: None,
            namespace: &scenario.namespace,
            time: scenario.clock.map(|zero| zero.plus(at.since_start()).to_string()),
        }
    }
}

/// An event, and the request that sends it.
#[derive(Serialize)]
struct EventLine<'a> {
    #[serde(rename = "type")]
    kind: EventType,
    reason: &'a Text,
    message: &'a Text,
    sent: Option<SentLine<'a>>,
}

/// A request that sends an event.
#[derive(Serialize)]
struct SentLine<'a> {
    verb: EventVerb,
    message: &'a Text,
    count: u32,
}

impl<'a> EventLine<'a> {
    fn new(event: &'a Event, sent: Option<&'a SentEvent>) -> EventLine<'a> {
        let sent = sent.map(|sent| SentLine {
            verb: sent.verb,
            message: &sent.event.message,
            count: sent.count,
        });
        let Event { type_, reason, message, .. } = event;
        EventLine { kind: *type_, reason, message, sent }
    }
}

/// A condition of the status.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConditionLine<'a> {
    #[serde(rename = "type")]
    kind: ConditionType,
    status: &'static str,
    reason: &'a Text,
    message: &'a Text,
    /// Since the start of the scenario.
    last_transition_time: String,
}

impl ConditionLine<'_> {
    fn new(condition: &HpaCondition) -> ConditionLine<'_> {
        let HpaCondition { type_, status, reason, message, last_transition_time } = condition;
        ConditionLine {
            kind: *type_,
            status: ConditionStatus::from(*status).name(),
            reason,
            message,
            last_transition_time: last_transition_time.to_string(),
        }
    }
}

/// A metric as the HPA saw it. Amounts are in cores, bytes or the unit of the metric.
#[derive(Serialize)]
struct MetricLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    proposal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<&'a str>,
    #[serde(flatten)]
    value: MetricValue,
    target: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pods: Option<PodsLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Text>,
}

/// The observed value, in the form of the target.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum MetricValue {
    Utilization(Option<i32>),
    AverageValue(Option<f64>),
    Value(Option<f64>),
}

/// A target.
#[derive(Serialize)]
#[serde(untagged)]
enum Number {
    Percent(i32),
    Amount(f64),
}

/// The number of pods in each group.
#[derive(Serialize)]
struct PodsLine {
    ready: u32,
    unready: u32,
    missing: u32,
    ignored: u32,
}

impl MetricLine<'_> {
    fn new(metric: &MetricDerivation) -> MetricLine<'_> {
        let amount = |milli: i64| milli as f64 / 1000.0;
        let (kind, container) = match &metric.source {
            Source::Resource => ("Resource", None),
            Source::ContainerResource(container) => ("ContainerResource", Some(&**container)),
            Source::Pods => ("Pods", None),
            Source::Object(_) => ("Object", None),
            Source::External => ("External", None),
        };
        let usage = metric.usage.filter(|_| metric.error.is_none());
        let total = MetricValue::Value(usage.map(|usage| amount(usage.total)));
        let (value, target) = match metric.target {
            Target::Utilization(target) => {
                let value = usage.and_then(|usage| usage.utilization);
                (MetricValue::Utilization(value), Some(Number::Percent(target)))
            }
            Target::AverageValue(target) => {
                let value = usage.map(|usage| amount(usage.average));
                (MetricValue::AverageValue(value), Some(Number::Amount(amount(target))))
            }
            Target::Value(target) => (total, Some(Number::Amount(amount(target)))),
            Target::None => (total, None),
        };
        let PodCounts { ready, unready, missing, ignored, unknown: _ } = metric.pods;
        let pods = PodsLine { ready, unready, missing, ignored };
        MetricLine {
            kind,
            name: &metric.name,
            proposal: metric.proposal,
            container,
            value,
            target,
            pods: (metric.pods != PodCounts::default()).then_some(pods),
            error: metric.error.as_ref(),
        }
    }
}
