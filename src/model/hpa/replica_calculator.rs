//! From the usage of pods to a number of replicas.

use std::sync::Arc;

use super::calculate::Tolerances;
use super::go_i32;
use super::group_pods::{Grouping, Groups};
use super::reconcile::Reconcile;
use super::selectors::ParsedSelector;
use crate::model::derivation::{Filled, Path, SecondRatio, Usage};
use crate::model::observation::Read;

/// What is asked for one resource metric.
pub(super) struct ResourceQuery<'a> {
    pub(super) resource: &'a Arc<str>,
    pub(super) current_replicas: i32,
    pub(super) tolerances: Tolerances,
    pub(super) selector: &'a ParsedSelector,
}

/// A number of replicas, and what it is made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proposal {
    pub(super) replicas: i32,
    pub(super) usage: Usage,
    pub(super) path: Path,
}

/// The sums that a ratio is made from.
#[derive(Clone, Copy, Debug)]
struct Sums {
    total: i64,
    requests: i64,
    /// How many pods the sums are of, for the average.
    entries: u32,
}

impl<'a> Reconcile<'a> {
    /// The proposal for a target in percent of the request.
    ///
    /// Upstream: replica_calculator.go, GetResourceReplicas
    pub(super) fn get_resource_replicas(
        &mut self,
        query: &ResourceQuery<'_>,
        target_utilization: i32,
    ) -> Result<Proposal, String> {
        let fallback = i64::from(target_utilization.max(100));
        let mut groups = Groups::default();
        self.group_pods(query, Some(fallback), &mut groups)?;
        if let Some((pod, container)) = groups.without_request {
            let container = pod.spec.containers.get(container).map_or("", |it| &it.name);
            return Err(format!(
                "missing request for {} in container {container} of Pod {}",
                query.resource, pod.name
            ));
        }
        let sums = Sums {
            total: groups.ready_value,
            requests: groups.ready_request,
            entries: groups.counts.ready,
        };
        let usage = get_resource_utilization_ratio(&sums, target_utilization)?;
        let low = (groups.missing_low_value, Filled::Percent(fallback));
        replicas(query, &groups, usage, low, |(missing, unready), filled_value| {
            let mut sums = sums;
            sums.total = sums.total.wrapping_add(filled_value);
            if missing {
                sums.requests = sums.requests.wrapping_add(groups.missing_request);
                sums.entries += groups.counts.missing;
            }
            if unready {
                sums.requests = sums.requests.wrapping_add(groups.unready_request);
                sums.entries += groups.counts.unready;
            }
            get_resource_utilization_ratio(&sums, target_utilization).map(|usage| usage.ratio)
        })
    }

    /// The proposal for a target per pod.
    ///
    /// Upstream: replica_calculator.go, GetRawResourceReplicas and calcPlainMetricReplicas
    pub(super) fn get_raw_resource_replicas(
        &mut self,
        query: &ResourceQuery<'_>,
        target_usage: i64,
    ) -> Result<Proposal, String> {
        let mut groups = Groups::default();
        self.group_pods(query, None, &mut groups)?;
        let sums = Sums {
            total: groups.ready_value.wrapping_add(groups.unknown_value),
            requests: 0,
            entries: groups.metrics_left(),
        };
        let usage = get_metric_usage_ratio(&sums, target_usage);
        let low_value = target_usage.wrapping_mul(i64::from(groups.counts.missing));
        let low = (low_value, Filled::Target);
        replicas(query, &groups, usage, low, |(missing, unready), filled_value| {
            let mut sums = sums;
            sums.total = sums.total.wrapping_add(filled_value);
            sums.entries += if missing { groups.counts.missing } else { 0 };
            sums.entries += if unready { groups.counts.unready } else { 0 };
            Ok(get_metric_usage_ratio(&sums, target_usage).ratio)
        })
    }

    /// Queries the metrics and groups the pods; fails if nothing is left to calculate with.
    fn group_pods(
        &mut self,
        query: &ResourceQuery<'_>,
        fallback_utilization: Option<i64>,
        groups: &mut Groups<'a>,
    ) -> Result<(), String> {
        self.get_resource_metric(query, fallback_utilization, groups)?;
        if groups.listed == 0 {
            return Err("no pods returned by selector while calculating replica count".to_owned());
        }
        if let Some(metric) = self.derivation.metrics.last_mut() {
            metric.pods = groups.counts;
        }
        if groups.metrics_left() == 0 {
            let error = "did not receive metrics for targeted pods (pods might be unready)";
            return Err(error.to_owned());
        }
        Ok(())
    }

    /// Queries metrics.k8s.io. Pods are grouped on the way: how many metrics the answer has is
    /// known only then.
    ///
    /// Upstream: metrics/client.go, GetResourceMetric
    fn get_resource_metric(
        &mut self,
        query: &ResourceQuery<'_>,
        fallback_utilization: Option<i64>,
        groups: &mut Groups<'a>,
    ) -> Result<(), String> {
        let input = self.input;
        let flags = self.knobs.flags;
        let selector = query.selector.query.clone();
        if let Ok(metrics) = input.pod_metrics {
            let grouping = Grouping {
                resource: query.resource,
                selector: &query.selector.selector,
                pods: input.pods,
                metrics,
                now: self.now,
                cpu_initialization_period: flags.cpu_initialization_period,
                delay_of_initial_readiness_status: flags.initial_readiness_delay,
                fallback_utilization,
            };
            grouping.group_pods(groups);
        }
        let answer = match input.pod_metrics {
            Ok(_) => Ok(groups.items),
            Err(error) => Err(error.message.clone()),
        };
        self.observation.reads.push(Read::PodMetrics { selector, answer });
        let unable = format_args!("unable to get metrics for resource {}", query.resource);
        match input.pod_metrics {
            Err(error) => {
                let what = "unable to fetch metrics from resource metrics API";
                Err(format!("{unable}: {what}: {}", error.message))
            }
            Ok(_) if groups.items == 0 => {
                Err(format!("{unable}: no metrics returned from resource metrics API"))
            }
            Ok(_) => Ok(()),
        }
    }
}

/// What is the same for both kinds of targets. `recompute` gives the ratio with missing and unready
/// pods filled in: whether each of the two is, and by what the sum of usage grows.
fn replicas(
    query: &ResourceQuery<'_>,
    groups: &Groups<'_>,
    mut usage: Usage,
    low: (i64, Filled),
    recompute: impl FnOnce((bool, bool), i64) -> Result<f64, String>,
) -> Result<Proposal, String> {
    let current = query.current_replicas;
    let usage_ratio = usage.ratio;
    let counts = groups.counts;
    let scale_up_with_unready = counts.unready > 0 && usage_ratio > 1.0;
    if !scale_up_with_unready && counts.missing == 0 {
        if query.tolerances.is_within(usage_ratio) {
            return Ok(Proposal { replicas: current, usage, path: Path::WithinTolerance });
        }
        let replicas = go_i32((usage_ratio * f64::from(counts.ready)).ceil());
        return Ok(Proposal { replicas, usage, path: Path::Ready });
    }
    let mut filled_value = 0;
    let mut missing_as = None;
    if counts.missing > 0 && usage_ratio < 1.0 {
        filled_value = low.0;
        missing_as = Some(low.1);
    } else if counts.missing > 0 && usage_ratio > 1.0 {
        missing_as = Some(Filled::Zero);
    }
    let ratio = recompute((missing_as.is_some(), scale_up_with_unready), filled_value)?;
    let mut pods = groups.metrics_left();
    pods += if missing_as.is_some() { counts.missing } else { 0 };
    pods += if scale_up_with_unready { counts.unready } else { 0 };
    let proposal = go_i32((ratio * f64::from(pods)).ceil());
    usage.second = Some(SecondRatio {
        ratio,
        pods,
        missing_as,
        unready_as_zero: scale_up_with_unready,
        proposal,
    });
    let path = if query.tolerances.is_within(ratio) {
        Path::SecondWithinTolerance
    } else if (usage_ratio < 1.0 && ratio > 1.0) || (usage_ratio > 1.0 && ratio < 1.0) {
        Path::SecondReversed
    } else if (ratio < 1.0 && proposal > current) || (ratio > 1.0 && proposal < current) {
        Path::CountReversed
    } else {
        Path::Second
    };
    let replicas = if path == Path::Second { proposal } else { current };
    Ok(Proposal { replicas, usage, path })
}

/// Upstream: metrics/utilization.go, GetResourceUtilizationRatio
fn get_resource_utilization_ratio(sums: &Sums, target_utilization: i32) -> Result<Usage, String> {
    if sums.requests == 0 {
        return Err("no metrics returned matched known pods".to_owned());
    }
    // Go's int32(): the low 32 bits.
    let utilization = sums.total.wrapping_mul(100).wrapping_div(sums.requests) as i32;
    Ok(Usage {
        total: sums.total,
        requests: sums.requests,
        utilization: Some(utilization),
        average: sums.total.wrapping_div(i64::from(sums.entries.max(1))),
        ratio: f64::from(utilization) / f64::from(target_utilization),
        second: None,
    })
}

/// Upstream: metrics/utilization.go, GetMetricUsageRatio
fn get_metric_usage_ratio(sums: &Sums, target_usage: i64) -> Usage {
    let average = sums.total / i64::from(sums.entries.max(1));
    Usage {
        total: sums.total,
        requests: 0,
        utilization: None,
        average,
        ratio: average as f64 / target_usage as f64,
        second: None,
    }
}
