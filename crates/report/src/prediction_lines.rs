//! Predictions as JSON: one line for each tick, for each run of the recommender and for each change
//! of a pod, and the summary on the last line.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::json::line;
use super::prediction::{Head, Predicted, PredictedRun};
use super::presentation::{hpa, recommender as vpa};
use super::recommender::names;
use super::table::Rows;
use super::unmet::{UnmetLine, UnmetOf};
use kube_autoscaler_models::api::{ConditionStatus, ConditionType, HpaCondition, Requests, Text};
use kube_autoscaler_models::derivation::{MetricDerivation, PodCounts, Source, Target};
use kube_autoscaler_models::observation::{Event, EventType, EventVerb, SentEvent};
use kube_autoscaler_models::vpa::{Snapshot, VpaStatus};
use kube_lockstep_scenario::{Scenario, SkipReason};
use kube_lockstep_sim::run::recommender::MODEL;
use kube_lockstep_sim::run::{FreeRun, FreeTick, Note, PodChange, VpaRun};

/// Writes a prediction. `several`: with the id of the scenario.
pub(super) fn write(
    out: &mut dyn Write,
    predicted: &Predicted<'_>,
    rows: Rows,
    several: bool,
) -> io::Result<()> {
    let Head { id, path, ref release, notes, undetermined, .. } = predicted.head();
    let scenario = several.then_some(id);
    let mut summary = Summary {
        engine: MODEL,
        release,
        ticks: 0,
        rescales: None,
        unmet: UnmetOf { id, path, release }.lines(predicted.unmet),
        scenario,
        vpa_release: None,
        skipped: None,
        refused: None,
        undetermined: undetermined.map(|random| &*random.why),
        notes,
    };
    match predicted.run {
        PredictedRun::Hpa(of, run) => {
            write_ticks(out, of, run, rows, scenario)?;
            let rescales = run.ticks.iter().filter(|it| it.replicas_before != it.replicas_after);
            summary.ticks = run.ticks.len();
            summary.rescales = Some(rescales.count());
            summary.vpa_release = run.vpa.as_ref().map(|vpa| vpa.release.to_string());
            summary.refused = run.refused();
            summary.skipped = release.parse().ok().and_then(|on| of.unsupported_on(on));
        }
        PredictedRun::Vpa(of, run, _) => {
            summary.ticks = run.snapshots.len();
            let shown = vpa::rows::shown(rows, &run.snapshots, &names(of));
            let runs = run.snapshots.iter().enumerate().filter(|(index, _)| shown[*index]);
            for (index, snapshot) in runs {
                line(out, &RunLine { scenario, ..RunLine::new(index + 1, snapshot) })?;
            }
        }
    }
    line(out, &SummaryLine { summary })
}

/// Writes the ticks of the HPAs, and the part about the VPA beside them.
fn write_ticks(
    out: &mut dyn Write,
    of: &Scenario,
    run: &FreeRun,
    rows: Rows,
    scenario: Option<&str>,
) -> io::Result<()> {
    let shown = hpa::rows::shown(rows, run);
    for (index, tick) in run.ticks.iter().enumerate().filter(|(index, _)| shown[*index]) {
        line(out, &TickLine { scenario, ..TickLine::new(index + 1, tick, of) })?;
    }
    match &run.vpa {
        Some(vpa) => with_hpa(out, vpa, rows, scenario),
        None => Ok(()),
    }
}

/// Writes the part about the VPA with an HPA.
fn with_hpa(
    out: &mut dyn Write,
    run: &VpaRun,
    rows: Rows,
    scenario: Option<&str>,
) -> io::Result<()> {
    let shown = vpa::rows::shown(rows, run.snapshots(), &names(&run.scenario));
    let runs = run.snapshots().iter().enumerate().filter(|(index, _)| shown[*index]);
    for (index, snapshot) in runs {
        line(out, &BesideHpa { recommender: RunLine::new(index + 1, snapshot), scenario })?;
    }
    for change in &run.pod_changes {
        line(out, &BesideHpaPod { pod: PodChangeLine::new(change), scenario })?;
    }
    Ok(())
}

/// The last line.
#[derive(Serialize)]
struct SummaryLine<'a> {
    summary: Summary<'a>,
}

/// The figures of a prediction.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    engine: &'a str,
    release: &'a str,
    ticks: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    rescales: Option<usize>,
    unmet: Vec<UnmetLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vpa_release: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<SkipReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undetermined: Option<&'a str>,
    #[serde(skip_serializing_if = "<[Note]>::is_empty")]
    notes: &'a [Note],
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
            limited_by: derivation.limited_by(),
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

/// The state after a run of the recommender.
#[derive(Serialize)]
struct RunLine<'a> {
    tick: usize,
    at: String,
    vpas: Vec<VpaLine<'a>>,
    checkpoints: &'a BTreeMap<Arc<str>, i64>,
    errors: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<&'a str>,
}

/// The status of a VPA, and its name.
#[derive(Serialize)]
struct VpaLine<'a> {
    #[serde(flatten)]
    status: &'a VpaStatus,
    vpa: &'a str,
    namespace: &'a str,
}

impl RunLine<'_> {
    fn new(number: usize, snapshot: &Snapshot) -> RunLine<'_> {
        let statuses = snapshot.statuses.iter();
        let vpas = statuses.map(|(name, status)| VpaLine {
            status,
            vpa: &name.name,
            namespace: &name.namespace,
        });
        RunLine {
            tick: number,
            at: snapshot.at.to_string(),
            vpas: vpas.collect(),
            checkpoints: &snapshot.checkpoints,
            errors: snapshot.log.iter().map(ToString::to_string).collect(),
            scenario: None,
        }
    }
}

/// A run of the recommender with an HPA.
#[derive(Serialize)]
struct BesideHpa<'a> {
    recommender: RunLine<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<&'a str>,
}

/// A change of a pod of an HPA.
#[derive(Serialize)]
struct BesideHpaPod<'a> {
    pod: PodChangeLine<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<&'a str>,
}

/// A change of a pod by the VPA.
#[derive(Serialize)]
struct PodChangeLine<'a> {
    at: String,
    pod: &'a str,
    change: &'static str,
    requests: RequestsLine<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// The requests of containers, by name.
struct RequestsLine<'a>(&'a [(Arc<str>, Requests)]);

impl Serialize for RequestsLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(container, requests)| (container, requests)))
    }
}

impl PodChangeLine<'_> {
    fn new(change: &PodChange) -> PodChangeLine<'_> {
        PodChangeLine {
            at: change.at.to_string(),
            pod: &change.pod,
            change: change.kind.name(),
            requests: RequestsLine(&change.requests),
            why: change.why.as_ref().map(ToString::to_string),
        }
    }
}
