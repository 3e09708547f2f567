//! The responses of custom.metrics.k8s.io and external.metrics.k8s.io.
//!
//! Samples have the same lag and the same timestamps as samples of resource usage. Each metric is
//! computed at each reconcile, and published as a whole if it has changed. Actions on the samples
//! of metrics.k8s.io (missing, stale, empty) do not affect these metrics, because a different
//! adapter serves them.

use std::collections::BTreeMap;

use super::backlog::Backlog;
use super::change::{Change, ExternalMetricChange, ObjectMetricChange, PodValue, PodsMetricChange};
use super::pods::SimPod;
use super::signal::{self, Grain};
use super::simulation::WorldSimulation;
use super::usage::{own_sampled_at, sampled_at};
use kube_autoscaler_models::api::{ApiError, Series};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::{Action, PodsMetric, Signal, TimelineEvent, UsageSource};

/// The last published metrics, each at its index in the scenario.
#[derive(Clone, Debug, Default)]
pub(super) struct PublishedCustom {
    pods: Vec<PodsMetricChange>,
    objects: Vec<ObjectMetricChange>,
    externals: Vec<ExternalMetricChange>,
}

/// The faults of one metric.
#[derive(Default)]
struct Disturbance {
    error: Option<ApiError>,
    empty: bool,
}

impl PublishedCustom {
    /// Publishes the changed metrics.
    pub(super) fn publish(
        &mut self,
        simulation: &WorldSimulation,
        query: Time,
        changes: &mut Vec<Change>,
    ) {
        let scenario = &simulation.scenario;
        let sampled = sampled_at(scenario.metrics.sampling, query);
        let backlogs = &simulation.backlogs;
        for (index, metric) in scenario.metrics.pods.iter().enumerate() {
            let backlog = backlogs.pods.get(index).and_then(Option::as_ref);
            let new = simulation.pods_metric(metric, backlog, query);
            if replace(&mut self.pods, index, &new) {
                changes.push(Change::PodsMetric(new));
            }
        }
        for (index, metric) in scenario.metrics.objects.iter().enumerate() {
            let backlogs = backlogs.objects.get(index).map_or(&[][..], Vec::as_slice);
            let all = metric.all_series();
            let (series, error) = simulation.series(&metric.name, all, backlogs, sampled);
            let new = ObjectMetricChange {
                metric: metric.name.clone(),
                kind: metric.object.group_kind(),
                name: metric.object.name.clone(),
                series,
                error,
            };
            if replace(&mut self.objects, index, &new) {
                changes.push(Change::ObjectMetric(new));
            }
        }
        for (index, metric) in scenario.metrics.externals.iter().enumerate() {
            let backlogs = backlogs.externals.get(index).map_or(&[][..], Vec::as_slice);
            let all = metric.all_series();
            let (series, error) = simulation.series(&metric.name, all, backlogs, sampled);
            let new = ExternalMetricChange { metric: metric.name.clone(), series, error };
            if replace(&mut self.externals, index, &new) {
                changes.push(Change::ExternalMetric(new));
            }
        }
    }
}

impl WorldSimulation {
    fn pods_metric(
        &self,
        metric: &PodsMetric,
        backlog: Option<&Backlog>,
        query: Time,
    ) -> PodsMetricChange {
        let sampled = sampled_at(self.scenario.metrics.sampling, query);
        let Disturbance { error, empty } = self.disturbance(&metric.name);
        let silent = empty || error.is_some();
        let window = whole_seconds(self.scenario.metrics.sampling.window);
        let common_at = |at: Time| common(&metric.source, backlog, at, self.serving);
        let common = common_at(sampled);
        let exceptions: Vec<Option<Quantity>> =
            metric.exceptions.iter().map(|other| value(&other.value, sampled)).collect();
        let value_of = |(ordinal, pod): (&u32, &SimPod)| {
            let lag = self.scenario.workload.sample_lag_of(*ordinal);
            let own = own_sampled_at(&self.scenario, lag, query);
            let exception =
                metric.exceptions.iter().rposition(|other| other.pods.contains(*ordinal));
            let shared = matches!(metric.source, UsageSource::Load { .. });
            // In a gap of a recorded signal, the pod has no value.
            let value = match exception {
                Some(exception) if own.is_none() => exceptions[exception].clone()?,
                Some(exception) => value(&metric.exceptions[exception].value, own?)?,
                None if shared && !pod.serving() && common.is_some() => Grain::Signed.quantity(0),
                None => match own {
                    Some(own) => common_at(own)?,
                    None => common.clone()?,
                },
            };
            let timestamp = own.unwrap_or(sampled).truncate_to_second();
            let template = self.templates.names[0].clone();
            let pod = pod.name.clone();
            Some(PodValue { pod, template, value, timestamp, window: Some(window) })
        };
        let timeline = &self.scenario.timeline;
        let pods = self.pods.iter().filter(|(_, pod)| pod.has_value(&metric.name, timeline));
        PodsMetricChange {
            metric: metric.name.clone(),
            labels: metric.labels.clone(),
            values: if silent { Vec::new() } else { pods.filter_map(value_of).collect() },
            error,
        }
    }

    fn series<'s>(
        &self,
        metric: &str,
        series: impl Iterator<Item = (&'s BTreeMap<String, String>, &'s Signal)>,
        backlogs: &[Option<Backlog>],
        sampled: Time,
    ) -> (Vec<Series>, Option<ApiError>) {
        let Disturbance { error, empty } = self.disturbance(metric);
        if empty || error.is_some() {
            return (Vec::new(), error);
        }
        let timestamp = sampled.truncate_to_second();
        let series = series.enumerate().filter_map(|(index, (labels, signal))| {
            let value = match backlogs.get(index).and_then(Option::as_ref) {
                Some(backlog) => Grain::Signed.quantity(backlog.at(sampled)),
                None => value(signal, sampled)?,
            };
            Some(Series { labels: labels.clone(), value, timestamp })
        });
        (series.collect(), None)
    }

    /// The current fault of a metric. If there are several errors, the last one to begin applies.
    fn disturbance(&self, metric: &str) -> Disturbance {
        let mut found = Disturbance::default();
        for action in self.disturbances() {
            match action {
                Action::MetricError(answer) if *answer.metric == *metric => {
                    found.error = Some(answer.error.clone());
                }
                Action::MetricEmpty(name) => found.empty |= **name == *metric,
                _ => {}
            }
        }
        found
    }
}

impl SimPod {
    /// Returns true if the custom metrics API has a value of the pod; a terminating pod still has
    /// one.
    fn has_value(&self, metric: &str, timeline: &[TimelineEvent]) -> bool {
        let missing = |&i: &usize| {
            let action = &timeline[i].action;
            matches!(action, Action::MetricMissing(part) if *part.metric == *metric)
        };
        let runs = self.started.is_some() && self.ended.is_none() && !self.deleted;
        runs && self.reports && !self.holds.iter().any(missing)
    }
}

/// Stores a metric at its index. Returns true if the metric changed.
fn replace<T: Clone + PartialEq>(published: &mut Vec<T>, index: usize, new: &T) -> bool {
    match published.get_mut(index) {
        Some(old) if old == new => return false,
        Some(old) => old.clone_from(new),
        None => published.push(new.clone()),
    }
    true
}

/// The value of each pod that is not an exception and that receives a share of the load. None:
/// there is no sample.
fn common(
    source: &UsageSource,
    backlog: Option<&Backlog>,
    sampled: Time,
    serving: usize,
) -> Option<Quantity> {
    match source {
        UsageSource::PerPod(signal) => value(signal, sampled),
        // A metric of pods has no containers.
        UsageSource::PerContainer(_) => Some(Grain::Signed.quantity(0)),
        UsageSource::Load { total, limit } => {
            let total = signal::milli(total, signal::read(total, sampled, Grain::Signed))?;
            let share = Grain::Signed.share(total, serving);
            let is_busy = backlog.is_some_and(|backlog| backlog.at(sampled) > 0);
            match limit {
                Some(limit) if share > limit.milli() || is_busy => Some(limit.clone()),
                _ => Some(Grain::Signed.quantity(share)),
            }
        }
    }
}

fn value(signal: &Signal, sampled: Time) -> Option<Quantity> {
    signal::quantity(signal, signal::read(signal, sampled, Grain::Signed), Grain::Signed)
}

/// A span in whole seconds, because `windowSeconds` is an integer.
fn whole_seconds(window: Span) -> Span {
    Span::from_secs(window.0 / 1_000_000_000)
}
