//! Groups of pods by their effect on the calculation, and the sums of each group.
//!
//! Upstream keeps maps and sets of names. Here both lists are sorted by name and merged, and only
//! sums are kept: upstream uses its sets only for sums and counts. Addition wraps, as in Go.

use std::cmp::Ordering;
use std::ptr;
use std::sync::Arc;

use super::query::Grouping;
use super::requests::{NoRequest, Requests};
use crate::api::{
    ConditionStatus, ContainerMetrics, Labels, Pod, PodMetricValue, PodMetrics, PodPhase,
};
use crate::derivation::PodCounts;
use crate::rules::Unready;
use crate::selector::Matcher;
use crate::time::{Span, Time};

/// The window of a custom metric whose API does not report one.
///
/// Upstream: metrics/client.go, metricServerDefaultMetricWindow
const DEFAULT_METRIC_WINDOW: Span = Span::from_secs(60);

/// A pod's item in the response of a metrics API.
pub(super) trait Sample {
    fn name(&self) -> &Arc<str>;
    fn labels(&self) -> &Labels;
    fn timestamp(&self) -> Time;
    fn window(&self) -> Span;
    /// Returns true if both samples certainly have the same value, without calculating it.
    fn reports_as(&self, other: &Self) -> bool;
    /// The value in thousandths, if there is one.
    fn value(&self, resource: &str, container: Option<&str>) -> Option<i64>;
}

impl Sample for PodMetrics {
    #[inline]
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    #[inline]
    fn labels(&self) -> &Labels {
        &self.labels
    }

    #[inline]
    fn timestamp(&self) -> Time {
        self.timestamp
    }

    #[inline]
    fn window(&self) -> Span {
        self.window
    }

    #[inline]
    fn reports_as(&self, other: &PodMetrics) -> bool {
        ptr::eq(self.containers.as_ptr(), other.containers.as_ptr())
    }

    fn value(&self, resource: &str, container: Option<&str>) -> Option<i64> {
        match container {
            None => get_pod_metrics(&self.containers, resource),
            Some(container) => get_container_metrics(&self.containers, resource, container),
        }
    }
}

impl Sample for PodMetricValue {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn labels(&self) -> &Labels {
        &self.labels
    }

    fn timestamp(&self) -> Time {
        self.timestamp
    }

    fn window(&self) -> Span {
        self.window.unwrap_or(DEFAULT_METRIC_WINDOW)
    }

    fn reports_as(&self, other: &PodMetricValue) -> bool {
        self.value == other.value
    }

    fn value(&self, _resource: &str, _container: Option<&str>) -> Option<i64> {
        Some(self.value.milli())
    }
}

/// Sums and counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Groups<'a> {
    /// The pods by group.
    pub counts: PodCounts,
    /// The number of pods that the selector matches.
    pub listed: u32,
    /// The number of metrics that the selector matches.
    pub items: u32,
    /// The timestamp of the first of these metrics.
    pub(super) first_timestamp: Option<Time>,
    /// The sum of the metrics of ready pods.
    pub(super) ready_value: i64,
    /// The number of metrics of ignored pods, if they count.
    pub(super) ignored_metrics: u32,
    pub(super) ignored_value: i64,
    pub(super) ignored_request: i64,
    /// The sum of the metrics of pods that are not listed.
    pub(super) unknown_value: i64,
    /// The assumed value of missing pods for scaling down.
    pub(super) missing_low_value: i64,
    pub(super) ready_request: i64,
    pub(super) missing_request: i64,
    pub(super) unready_request: i64,
    /// The first pod without a request.
    pub without_request: Option<(&'a Pod, NoRequest)>,
}

/// A pod with its metrics.
struct Example<'e, M> {
    pod: &'e Pod,
    metric: &'e M,
}

#[derive(Clone, Copy)]
enum Group {
    Ignored,
    Unready,
    Missing,
    Ready,
}

impl<'a, M: Sample> Grouping<'a, '_, M> {
    /// Upstream: replica_calculator.go, groupPods and calculateRequests
    pub(super) fn group_pods(&self, groups: &mut Groups<'a>) {
        let mut matcher = Matcher::new(self.selector);
        let mut requests = Requests::new(self);
        let is_cpu = self.resource == "cpu";
        let (mut pods, mut metrics) = (self.pods, self.metrics);
        while let Some((pod, others)) = pods.split_first() {
            pods = others;
            if !matcher.matches(&pod.labels) {
                continue;
            }
            groups.listed += 1;
            let mut found = None;
            // Metrics whose names precede this pod's belong to pods that are not listed.
            while let Some((metric, rest)) = metrics.split_first() {
                let order = match Arc::ptr_eq(metric.name(), &pod.name) {
                    true => Ordering::Equal,
                    false => metric.name().cmp(&pod.name),
                };
                if order == Ordering::Greater {
                    break;
                }
                metrics = rest;
                let value = self.read(metric, &mut matcher, groups);
                if order == Ordering::Equal {
                    found = value.map(|value| (metric, value));
                    break;
                }
                groups.add_unknown(value);
            }
            let request = self.fallback_utilization.map(|fallback| (requests.of(pod), fallback));
            let group = self.group(pod, found.map(|(metric, _)| metric), is_cpu);
            groups.add(group, 1, found.map(|(_, value)| value), request);
            if let Some((metric, value)) = found {
                let alike = self.count_alike(Example { pod, metric }, pods, metrics, is_cpu);
                let count: u32 = alike.iter().map(|(_, count)| count).sum();
                (pods, metrics) = (&pods[count as usize..], &metrics[count as usize..]);
                groups.listed += count;
                groups.items += count;
                for (group, count) in alike {
                    groups.add(group, count, Some(value), request);
                }
            }
        }
        for metric in metrics {
            let value = self.read(metric, &mut matcher, groups);
            groups.add_unknown(value);
        }
        groups.without_request = requests.missing;
        if !self.rules.ignored_pods_are_measured {
            groups.ignored_metrics = 0;
            groups.ignored_value = 0;
            groups.ignored_request = 0;
        }
    }

    /// The value of a metric that the selector matches, if every container reports the resource.
    #[inline]
    fn read<'m>(
        &self,
        metric: &'m M,
        matcher: &mut Matcher<'m>,
        groups: &mut Groups<'_>,
    ) -> Option<i64> {
        if !matcher.matches(metric.labels()) {
            return None;
        }
        groups.items += 1;
        groups.first_timestamp.get_or_insert(metric.timestamp());
        metric.value(self.resource, self.container)
    }

    /// Counts, by group, the next pods with the same template and the same metrics as this one:
    /// only their conditions have to be read. Without this shortcut, 10,000 pods take 0.38 of the
    /// ticks/s.
    #[inline(never)]
    fn count_alike(
        &self,
        like: Example<'_, M>,
        pods: &[Arc<Pod>],
        metrics: &[M],
        is_cpu: bool,
    ) -> [(Group, u32); 3] {
        let Example { pod: first, metric: reported } = like;
        let (mut ready, mut unready, mut ignored) = (0, 0, 0);
        for (pod, metric) in pods.iter().zip(metrics) {
            let same = Arc::ptr_eq(&pod.labels, &first.labels)
                && Arc::ptr_eq(&pod.spec, &first.spec)
                && ptr::eq(metric.name().as_ptr(), pod.name.as_ptr())
                && Arc::ptr_eq(metric.labels(), reported.labels())
                && metric.reports_as(reported);
            if !same {
                break;
            }
            match self.group(pod, Some(metric), is_cpu) {
                Group::Ready => ready += 1,
                Group::Unready => unready += 1,
                Group::Ignored => ignored += 1,
                Group::Missing => break,
            }
        }
        [(Group::Ready, ready), (Group::Unready, unready), (Group::Ignored, ignored)]
    }

    /// The group of one pod.
    ///
    /// Upstream: replica_calculator.go, groupPods
    #[inline]
    fn group(&self, pod: &Pod, metric: Option<&M>, is_cpu: bool) -> Group {
        if let Unready::All { failed } = self.rules.unready {
            return self.group_by_readiness(pod, metric.is_some(), failed);
        }
        if self.rules.terminating_is_ignored
            && (pod.deletion_timestamp.is_some() || pod.phase == PodPhase::Failed)
        {
            return Group::Ignored;
        }
        if self.rules.pending_is_unready && pod.phase == PodPhase::Pending {
            return Group::Unready;
        }
        let Some(metric) = metric else {
            return Group::Missing;
        };
        if !is_cpu {
            return Group::Ready;
        }
        let (Some(condition), Some(start_time)) = (&pod.ready, pod.start_time) else {
            return Group::Unready;
        };
        let is_false = condition.status == ConditionStatus::False;
        let transition = condition.last_transition_time;
        let unready = if start_time + self.cpu_initialization_period > self.now {
            is_false || metric.timestamp() < transition + metric.window()
        } else {
            is_false && start_time + self.delay_of_initial_readiness_status > transition
        };
        if unready { Group::Unready } else { Group::Ready }
    }

    /// Upstream: replica_calculator.go, GetResourceReplicas and calcPlainMetricReplicas, up to
    /// Kubernetes 1.11
    fn group_by_readiness(&self, pod: &Pod, measured: bool, failed_is_unready: bool) -> Group {
        let ready = pod.ready.is_some_and(|it| it.status == ConditionStatus::True);
        if pod.phase == PodPhase::Running && ready {
            return if measured { Group::Ready } else { Group::Missing };
        }
        let uses_requests = self.fallback_utilization.is_some();
        if pod.phase == PodPhase::Failed && uses_requests && !failed_is_unready {
            return Group::Ignored;
        }
        Group::Unready
    }
}

impl Groups<'_> {
    /// The number of metrics, without the metrics of ignored and unready pods.
    pub(super) fn metrics_left(&self) -> u32 {
        self.counts.ready + self.counts.unknown + self.ignored_metrics
    }

    fn add_unknown(&mut self, value: Option<i64>) {
        let Some(value) = value else { return };
        self.counts.unknown += 1;
        self.unknown_value = self.unknown_value.wrapping_add(value);
    }

    /// Counts `count` similar pods.
    #[inline]
    fn add(&mut self, group: Group, count: u32, value: Option<i64>, request: Option<(i64, i64)>) {
        let (request, fallback) = request.unwrap_or_default();
        let times = i64::from(count);
        let add = |sum: &mut i64, each: i64| *sum = sum.wrapping_add(each.wrapping_mul(times));
        match group {
            Group::Ignored => {
                self.counts.ignored += count;
                if let Some(value) = value {
                    self.ignored_metrics += count;
                    add(&mut self.ignored_request, request);
                    add(&mut self.ignored_value, value);
                }
            }
            Group::Unready => {
                self.counts.unready += count;
                add(&mut self.unready_request, request);
            }
            Group::Missing => {
                self.counts.missing += count;
                add(&mut self.missing_request, request);
                add(&mut self.missing_low_value, request.wrapping_mul(fallback) / 100);
            }
            Group::Ready => {
                self.counts.ready += count;
                add(&mut self.ready_request, request);
                add(&mut self.ready_value, value.unwrap_or(0));
            }
        }
    }
}

/// The sum over the containers, if each of them reports the resource.
///
/// Upstream: metrics/client.go, getPodMetrics
fn get_pod_metrics(containers: &[ContainerMetrics], resource: &str) -> Option<i64> {
    let mut sum: Option<i64> = None;
    for container in containers {
        let (_, usage) = container.usage.iter().find(|(name, _)| **name == *resource)?;
        sum = Some(sum.unwrap_or(0).wrapping_add(usage.milli()));
    }
    sum
}

/// The usage of one container, if it reports the resource.
///
/// Upstream: metrics/client.go, getContainerMetrics
fn get_container_metrics(
    containers: &[ContainerMetrics],
    resource: &str,
    name: &str,
) -> Option<i64> {
    let container = containers.iter().find(|container| *container.name == *name)?;
    let (_, usage) = container.usage.iter().find(|(name, _)| **name == *resource)?;
    Some(usage.milli())
}
