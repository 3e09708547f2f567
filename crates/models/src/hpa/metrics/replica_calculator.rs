//! The step from the usage of pods to a number of replicas. See `custom` for metrics of objects and
//! external metrics.

use super::group_pods::{Groups, Sample};
use super::query::{Grouping, Proposal, Query};
use crate::derivation::{Filled, Path, SecondRatio, Usage};
use crate::flags::Gate;
use crate::hpa::go::go_i32;
use crate::hpa::reconcile::Reconcile;

/// The sums of a ratio.
#[derive(Clone, Copy, Debug)]
struct Sums {
    total: i64,
    requests: i64,
    /// The number of pods in the sums, for the average.
    entries: u32,
}

impl<'a> Reconcile<'a> {
    /// The proposal for a target utilization.
    ///
    /// Upstream: replica_calculator.go, GetResourceReplicas
    pub(super) fn get_resource_replicas(
        &mut self,
        query: &Query<'_>,
        target_utilization: i32,
    ) -> Result<Proposal, String> {
        let rules = &self.config.rules;
        let fallback = match rules.pods.missing_pods_count_their_target {
            true => i64::from(target_utilization.max(100)),
            false => 100,
        };
        let mut groups = Groups::default();
        self.get_resource_metric(query, Some(fallback), &mut groups)?;
        let namespace = &*self.hpa.namespace;
        let requests = |groups: &Groups<'_>| match groups.without_request {
            Some((pod, why)) => Err(why.error(namespace, pod, query, rules)),
            None => Ok(()),
        };
        if rules.metrics.metrics_before_requests {
            self.some_metrics_left(&groups, rules.texts.no_metrics)?;
            requests(&groups)?;
        } else {
            self.some_pods(&groups)?;
            requests(&groups)?;
            self.some_metrics_left(&groups, rules.texts.no_metrics)?;
        }
        let sums = Sums {
            total: groups.ready_value.wrapping_add(groups.ignored_value),
            requests: groups.ready_request.wrapping_add(groups.ignored_request),
            entries: groups.counts.ready + groups.ignored_metrics,
        };
        let usage = get_resource_utilization_ratio(&sums, target_utilization)?;
        let target = TargetRules {
            low_value: groups.missing_low_value,
            low: Filled::Percent(fallback),
            zeros_at_target: false,
            keeps_direction: rules.metrics.utilizations_keep_direction,
        };
        replicas(query, &groups, usage, target, |filled| {
            let mut sums = sums;
            sums.total = sums.total.wrapping_add(filled.value);
            if filled.missing {
                sums.requests = sums.requests.wrapping_add(groups.missing_request);
                sums.entries += groups.counts.missing;
            }
            if filled.unready {
                sums.requests = sums.requests.wrapping_add(groups.unready_request);
                sums.entries += groups.counts.unready;
            }
            get_resource_utilization_ratio(&sums, target_utilization).map(|usage| usage.ratio)
        })
    }

    /// The proposal for a target average.
    ///
    /// Upstream: replica_calculator.go, GetRawResourceReplicas
    pub(super) fn get_raw_resource_replicas(
        &mut self,
        query: &Query<'_>,
        target_usage: i64,
    ) -> Result<Proposal, String> {
        let mut groups = Groups::default();
        self.get_resource_metric(query, None, &mut groups)?;
        self.calc_plain_metric_replicas(query, target_usage, &groups)
    }

    /// The proposal for the target average of a resource or a metric of pods.
    ///
    /// Upstream: replica_calculator.go, calcPlainMetricReplicas
    pub(super) fn calc_plain_metric_replicas(
        &mut self,
        query: &Query<'_>,
        target_usage: i64,
        groups: &Groups<'_>,
    ) -> Result<Proposal, String> {
        self.some_metrics_left(groups, self.config.rules.texts.no_metrics_for_average)?;
        let sums = Sums {
            total: groups
                .ready_value
                .wrapping_add(groups.unknown_value)
                .wrapping_add(groups.ignored_value),
            requests: 0,
            entries: groups.metrics_left(),
        };
        let usage = get_metric_usage_ratio(&sums, target_usage);
        let target = TargetRules {
            low_value: target_usage.wrapping_mul(i64::from(groups.counts.missing)),
            low: Filled::Target,
            zeros_at_target: self.config.rules.pods.zeros_at_target,
            keeps_direction: self.config.rules.metrics.averages_keep_direction,
        };
        replicas(query, groups, usage, target, |filled| {
            let mut sums = sums;
            sums.total = sums.total.wrapping_add(filled.value);
            sums.entries += if filled.missing { groups.counts.missing } else { 0 };
            sums.entries += if filled.unready { groups.counts.unready } else { 0 };
            Ok(get_metric_usage_ratio(&sums, target_usage).ratio)
        })
    }

    /// Groups the pods by these metrics.
    ///
    /// Upstream: replica_calculator.go, groupPods and calculateRequests
    #[inline]
    pub(super) fn group_pods<M: Sample>(
        &self,
        query: &Query<'_>,
        metrics: &[M],
        fallback_utilization: Option<i64>,
        groups: &mut Groups<'a>,
    ) {
        let flags = &self.config.flags;
        let grouping = Grouping {
            resource: query.resource,
            container: query.container,
            rules: &self.config.rules.pods,
            pod_level_resources: self.config.gates.enabled(Gate::PodLevelResources),
            selector: &query.selector.selector,
            pods: self.input.pods,
            metrics,
            now: self.now,
            cpu_initialization_period: flags.cpu_initialization_period,
            delay_of_initial_readiness_status: flags.initial_readiness_delay,
            fallback_utilization,
        };
        grouping.group_pods(groups);
    }

    /// Fails if no pods are listed.
    fn some_pods(&mut self, groups: &Groups<'_>) -> Result<(), String> {
        if groups.listed == 0 {
            return Err("no pods returned by selector while calculating replica count".to_owned());
        }
        if let Some(metric) = self.metric() {
            metric.pods = groups.counts;
        }
        Ok(())
    }

    /// Fails if there is no metric for the calculation.
    fn some_metrics_left(&mut self, groups: &Groups<'_>, error: &str) -> Result<(), String> {
        self.some_pods(groups)?;
        if groups.metrics_left() == 0 {
            return Err(error.to_owned());
        }
        Ok(())
    }
}

/// The differences between utilization targets and average targets.
struct TargetRules {
    /// The assumed value of all missing pods for scaling down.
    low_value: i64,
    /// The assumed value of one missing pod for scaling down.
    low: Filled,
    /// True if missing pods count as zero even if the ratio is 1.
    zeros_at_target: bool,
    /// True if the replicas are kept when they would change in the opposite direction with all pods
    /// counted.
    keeps_direction: bool,
}

/// The pods that are added to the sums for the second ratio.
struct FilledPods {
    missing: bool,
    unready: bool,
    /// The value of the missing pods.
    value: i64,
}

/// The calculation that both kinds of targets share. `recompute` returns the ratio with missing and
/// unready pods filled in.
fn replicas(
    query: &Query<'_>,
    groups: &Groups<'_>,
    mut usage: Usage,
    target: TargetRules,
    recompute: impl FnOnce(FilledPods) -> Result<f64, String>,
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
        filled_value = target.low_value;
        missing_as = Some(target.low);
    } else if counts.missing > 0 && (usage_ratio > 1.0 || target.zeros_at_target) {
        missing_as = Some(Filled::Zero);
    }
    let ratio = recompute(FilledPods {
        missing: missing_as.is_some(),
        unready: scale_up_with_unready,
        value: filled_value,
    })?;
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
    } else if target.keeps_direction
        && ((ratio < 1.0 && proposal > current) || (ratio > 1.0 && proposal < current))
    {
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
    // Go's int32() keeps the low 32 bits.
    let utilization = sums.total.wrapping_mul(100).wrapping_div(sums.requests) as i32;
    Ok(Usage {
        total: sums.total,
        requests: sums.requests,
        utilization: Some(utilization),
        average: sums.total.wrapping_div(i64::from(sums.entries.max(1))),
        ratio: f64::from(utilization) / f64::from(target_utilization),
        ..Usage::default()
    })
}

/// Upstream: metrics/utilization.go, GetMetricUsageRatio
fn get_metric_usage_ratio(sums: &Sums, target_usage: i64) -> Usage {
    let average = sums.total / i64::from(sums.entries.max(1));
    Usage {
        total: sums.total,
        average,
        ratio: average as f64 / target_usage as f64,
        ..Usage::default()
    }
}
