//! The controller's own Prometheus metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::durations::{Durations, seconds};
use crate::derivation::{MetricDerivation, Source};
use crate::hpa::decision::Decision;
use crate::hpa::queue::QueueCounts;
use crate::hpa::reconcile::{ControllerConfig, ReconcileResult};
use crate::observation::ControllerAction;
use crate::rules::ControllerMetricRules;
use crate::series::SeriesChange;
use crate::shared::Shared;
use crate::time::Span;

/// The gauges as they were last observed: after a reconcile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauges {
    hpas: usize,
    /// By the key of the HPA. Upstream keeps them when an HPA is deleted.
    desired_replicas: Shared<BTreeMap<Arc<str>, i32>>,
}

const OUTCOMES: usize = 4;
const TYPES: usize = 5;

/// The series of a counter of computations: by the labels `action` and `error`, and by the label
/// `metric_type`, in alphabetical order.
type ComputationSeries = [[&'static str; TYPES]; OUTCOMES];

macro_rules! computations {
    ($name:literal) => {
        [
            computations!($name, "action=none,error=internal"),
            computations!($name, "action=none,error=none"),
            computations!($name, "action=scale_down,error=none"),
            computations!($name, "action=scale_up,error=none"),
        ]
    };
    ($name:literal, $outcome:literal) => {
        [
            concat!($name, "{", $outcome, ",metric_type=ContainerResource}"),
            concat!($name, "{", $outcome, ",metric_type=External}"),
            concat!($name, "{", $outcome, ",metric_type=Object}"),
            concat!($name, "{", $outcome, ",metric_type=Pods}"),
            concat!($name, "{", $outcome, ",metric_type=Resource}"),
        ]
    };
}

const COMPUTATIONS: ComputationSeries = computations!("metric_computation_total");

/// The series of a counter of reconciles: by the label `action`, and by the label `error`.
macro_rules! reconciliations {
    ($name:literal) => {
        [
            reconciliations!($name, "none"),
            reconciliations!($name, "scale_down"),
            reconciliations!($name, "scale_up"),
        ]
    };
    ($name:literal, $action:literal) => {
        [
            concat!($name, "{action=", $action, ",error=internal}"),
            concat!($name, "{action=", $action, ",error=none}"),
            concat!($name, "{action=", $action, ",error=spec}"),
        ]
    };
}

const RECONCILIATIONS: [[&str; 3]; 3] = reconciliations!("reconciliations_total");

/// A reconcile that has ended.
pub(super) struct Ended<'a> {
    pub key: &'a Arc<str>,
    pub result: &'a ReconcileResult,
    /// The number of HPAs that the controller knows.
    pub(super) known_hpas: usize,
    /// The changes of the queue's counters up to the beginning of the reconcile.
    pub counts: &'a QueueCounts,
}

/// Adds the changes of the controller's own metrics to a reconcile, in order of their names.
///
/// Upstream: podautoscaler/monitor, and its calls in horizontal.go
pub(super) fn record(
    config: &ControllerConfig,
    gauges: &mut Gauges,
    decision: &mut Decision,
    ended: &Ended<'_>,
) {
    let rules = config.rules.controller_metrics;
    if is_observed(config) {
        record_controller(rules, gauges, decision, ended);
    }
    record_queue(config, decision, ended.counts);
}

/// The durations are not predictable on a wall clock, where no engine observes the metrics.
fn is_observed(config: &ControllerConfig) -> bool {
    config.rules.controller_metrics.has_counters && !config.wall_clock
}

fn record_controller(
    rules: ControllerMetricRules,
    gauges: &mut Gauges,
    decision: &mut Decision,
    ended: &Ended<'_>,
) {
    let Ended { key, result, known_hpas, .. } = *ended;
    let Decision { observation, derivation, .. } = decision;
    let mut push = |change| observation.push(ControllerAction::ControllerMetric(change));
    if let Some(replicas) = result.monitored.desired_replicas.filter(|_| rules.has_gauges)
        && gauges.desired_replicas.get(key) != Some(&replicas)
    {
        gauges.desired_replicas.insert(key.clone(), replicas);
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let series = format!("desired_replicas{{hpa_name={name},namespace={namespace}}}");
        push(SeriesChange::value(series, f64::from(replicas)));
    }
    record_computations(&derivation.metrics, result.monitored.status_replicas, &mut push);
    if rules.has_gauges && gauges.hpas != known_hpas {
        gauges.hpas = known_hpas;
        push(SeriesChange::value("num_horizontal_pod_autoscalers", known_hpas as f64));
    }
    let action = match derivation.current_replicas.filter(|_| derivation.rescaled) {
        None => 0,
        Some(current) if derivation.desired_replicas > current => 2,
        Some(_) => 1,
    };
    let error = match () {
        () if result.monitored.has_invalid_target => 2,
        () if result.succeeded => 1,
        () => 0,
    };
    let took = observation.took;
    let mut push = |change| observation.push(ControllerAction::ControllerMetric(change));
    let counter = RECONCILIATIONS[action][error];
    if took > Span::ZERO {
        let mut durations = Durations::new("reconciliation_duration_seconds");
        durations.observe(counter, took);
        durations.changes().for_each(&mut push);
    }
    push(SeriesChange::increase(counter, 1.0));
}

/// Adds the changes of the controller's own metrics to a reconcile that is skipped because of a
/// stale cache.
pub(super) fn record_skip(
    config: &ControllerConfig,
    gauges: &mut Gauges,
    decision: &mut Decision,
    known_hpas: usize,
    counts: &QueueCounts,
) {
    if is_observed(config) {
        let observation = &mut decision.observation;
        let mut push = |change| observation.push(ControllerAction::ControllerMetric(change));
        if config.rules.controller_metrics.has_gauges && gauges.hpas != known_hpas {
            gauges.hpas = known_hpas;
            push(SeriesChange::value("num_horizontal_pod_autoscalers", known_hpas as f64));
        }
        let skips = "stale_sync_skips_total{group=autoscaling,resource=horizontalpodautoscalers}";
        push(SeriesChange::increase(skips, 1.0));
    }
    record_queue(config, decision, counts);
}

/// Adds what the work queue counted from the beginning of the previous reconcile to that of this
/// one. What follows a reconcile is queued in the background, so that its time is left to chance.
///
/// Upstream: component-base, metrics/prometheus/workqueue; up to Kubernetes 1.13,
/// pkg/util/workqueue/prometheus
fn record_queue(config: &ControllerConfig, decision: &mut Decision, counts: &QueueCounts) {
    if !config.all_metrics || config.wall_clock {
        return;
    }
    let QueueCounts { adds, retries, waited, worked } = *counts;
    let is_exact = config.rules.controller_metrics.queue_durations_are_exact;
    let reported = |span: Span| if is_exact { span } else { Span(span.0 / 1000 * 1000) };
    let duration = |span| seconds(reported(span));
    let values = [adds as f64, duration(waited), retries as f64, duration(worked)];
    for (name, value) in QUEUE.into_iter().zip(values) {
        if value != 0.0 {
            let change = SeriesChange::increase(name, value);
            decision.observation.push(ControllerAction::ControllerMetric(change));
        }
    }
}

/// The series of the work queue, without the label `name`, in alphabetical order. Up to Kubernetes
/// 1.13, they have other names.
const QUEUE: [&str; 4] = [
    "workqueue_adds_total",
    "workqueue_queue_duration_seconds_sum",
    "workqueue_retries_total",
    "workqueue_work_duration_seconds_sum",
];

/// `status_replicas` are the replicas in the stored status of the HPA.
fn record_computations(
    metrics: &[MetricDerivation],
    status_replicas: i32,
    push: &mut impl FnMut(SeriesChange),
) {
    // Most HPAs have one metric: the series need not be sorted.
    if let [metric] = metrics
        && metric.took == Span::ZERO
    {
        let [outcome, type_] = computation(metric, status_replicas);
        return push(SeriesChange::increase(COMPUTATIONS[outcome][type_], 1.0));
    }
    let mut counts = [[0_u32; TYPES]; OUTCOMES];
    for metric in metrics {
        let [outcome, type_] = computation(metric, status_replicas);
        counts[outcome][type_] += 1;
    }
    if metrics.iter().any(|metric| metric.took > Span::ZERO) {
        record_durations(metrics, status_replicas, push);
    }
    for (series, count) in COMPUTATIONS.as_flattened().iter().zip(counts.as_flattened()) {
        if *count > 0 {
            push(SeriesChange::increase(*series, f64::from(*count)));
        }
    }
}

#[cold]
fn record_durations(
    metrics: &[MetricDerivation],
    status_replicas: i32,
    push: &mut impl FnMut(SeriesChange),
) {
    let mut durations = Durations::new("metric_computation_duration_seconds");
    for metric in metrics {
        let [outcome, type_] = computation(metric, status_replicas);
        durations.observe(COMPUTATIONS[outcome][type_], metric.took);
    }
    durations.changes().for_each(push);
}

/// The labels of a computation, as indexes of [`ComputationSeries`].
///
/// Upstream: horizontal.go, computeReplicasForMetric
fn computation(metric: &MetricDerivation, status_replicas: i32) -> [usize; 2] {
    let outcome = match metric.proposal.filter(|_| metric.error.is_none()) {
        None => 0,
        Some(proposal) if proposal < status_replicas => 2,
        Some(proposal) if proposal > status_replicas => 3,
        Some(_) => 1,
    };
    let type_ = match metric.source {
        Source::ContainerResource(_) => 0,
        Source::External => 1,
        Source::Object(_) => 2,
        Source::Pods => 3,
        Source::Resource => 4,
    };
    [outcome, type_]
}
