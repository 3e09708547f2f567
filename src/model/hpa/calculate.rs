//! From metrics to one proposal: each metric's own, and the largest of them.

use std::fmt;
use std::sync::Arc;

use super::reconcile::{Computed, Reconcile};
use super::replica_calculator::{Proposal, ResourceQuery};
use super::selectors::ParsedSelector;
use crate::model::api::{
    ConditionType, MetricSourceType, MetricSpec, MetricStatus, ResourceMetricSource, Scale, Text,
};
use crate::model::derivation::{MetricDerivation, Path, PodCounts, Target};
use crate::model::flags::Gate;
use crate::model::observation::EventType;
use crate::model::quantity::{Format, Quantity};

/// What a metric is called in conditions and events.
pub(super) struct MetricName<'a>(pub(super) &'a MetricSpec);

impl fmt::Display for MetricName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.type_, &self.0.resource) {
            (MetricSourceType::Resource, Some(resource)) => {
                f.write_str(&resource.name)?;
                f.write_str(match resource.target.average_value {
                    Some(_) => " resource",
                    None => " resource utilization (percentage of request)",
                })
            }
            (MetricSourceType::Resource, None) => Ok(()),
            _ => todo!("issue 4"),
        }
    }
}

/// How far from 1 a ratio may be without effect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tolerances {
    pub(super) scale_down: f64,
    pub(super) scale_up: f64,
}

impl Tolerances {
    /// Both ends belong to it.
    ///
    /// Upstream: replica_calculator.go, Tolerances.isWithin
    pub(super) fn is_within(self, usage_ratio: f64) -> bool {
        (1.0 - self.scale_down) <= usage_ratio && usage_ratio <= (1.0 + self.scale_up)
    }
}

/// Why a metric gave nothing.
struct MetricFailure {
    /// The condition's and the event's reason.
    reason: &'static str,
    /// The event's message.
    error: Text,
    /// The error that the reconcile goes on with.
    wrapped: String,
}

impl Reconcile<'_> {
    /// The largest proposal of all metrics, and the statuses of all of them. It fails if all
    /// metrics do, or if one does and the others would scale down.
    ///
    /// Upstream: horizontal.go, computeReplicasForMetrics
    pub(super) fn compute_replicas_for_metrics(
        &mut self,
        scale: &Scale,
        statuses: &mut Vec<MetricStatus>,
    ) -> Result<Computed, Text> {
        let selector = self.validate_and_parse_selector(&scale.selector)?;
        let specs = &self.hpa.spec.metrics;
        statuses.reserve_exact(specs.len());
        self.derivation.metrics.reserve_exact(specs.len());
        let mut computed = Computed { replicas: 0, metric: None, error: None };
        let mut invalid_metrics_count = 0;
        let mut first: Option<MetricFailure> = None;
        for (index, spec) in specs.iter().enumerate() {
            match self.compute_replicas_for_metric(spec, scale.replicas, &selector, statuses) {
                Ok(proposal) => {
                    if computed.replicas == 0 || proposal > computed.replicas {
                        computed.replicas = proposal;
                        computed.metric = Some(index);
                    }
                }
                Err(failure) => {
                    statuses.push(MetricStatus::Empty);
                    invalid_metrics_count += 1;
                    first.get_or_insert(failure);
                }
            }
        }
        if let Some(failure) = &first {
            let text = format!(
                "invalid metrics ({invalid_metrics_count} invalid out of {}), first error is: {}",
                specs.len(),
                failure.wrapped
            );
            computed.error = Some(text.into());
        }
        let would_scale_down = invalid_metrics_count > 0 && computed.replicas < scale.replicas;
        if invalid_metrics_count >= specs.len() || would_scale_down {
            return Err(self.no_valid_metric(first, computed.error));
        }
        self.valid_metric_found(computed.metric);
        Ok(computed)
    }

    /// The condition that names the winning metric: its message is mostly that of the last tick.
    fn valid_metric_found(&mut self, metric: Option<usize>) {
        let spec = &self.hpa.spec;
        let cache = &mut self.memory.cache.valid_metric;
        let known =
            cache.take().filter(|(of, winner, _)| Arc::ptr_eq(of, spec) && *winner == metric);
        let (_, _, message) = cache.insert(known.unwrap_or_else(|| {
            let what = "the HPA was able to successfully calculate a replica count from";
            let text = match metric.and_then(|index| spec.metrics.get(index)) {
                Some(metric) => format!("{what} {}", MetricName(metric)),
                None => format!("{what} "),
            };
            (spec.clone(), metric, text.into())
        }));
        let type_ = ConditionType::ScalingActive;
        self.status.set_text(type_, true, "ValidMetricFound", message, self.now);
    }

    /// Tells in the condition which metric failed first.
    fn no_valid_metric(&mut self, first: Option<MetricFailure>, error: Option<Text>) -> Text {
        // Without any metric upstream sets an empty condition; the API server always fills in one.
        if let Some(MetricFailure { reason, error, .. }) = first {
            self.set_condition(
                ConditionType::ScalingActive,
                false,
                reason,
                format_args!("the HPA was unable to compute the replica count: {error}"),
            );
        }
        error.unwrap_or_else(|| "".into())
    }

    /// Upstream: horizontal.go, computeReplicasForMetric
    fn compute_replicas_for_metric(
        &mut self,
        spec: &MetricSpec,
        current_replicas: i32,
        selector: &ParsedSelector,
        statuses: &mut Vec<MetricStatus>,
    ) -> Result<i32, MetricFailure> {
        match (&spec.type_, &spec.resource) {
            (MetricSourceType::Resource, Some(resource)) => self
                .compute_status_for_resource_metric(resource, current_replicas, selector, statuses),
            (MetricSourceType::Resource, None) => {
                let error = Text::from("no resource metric source was set");
                let wrapped = format!("failed to get resource metric value: {error}");
                Err(self.unable_to_compute("FailedGetResourceMetric", error, wrapped))
            }
            _ => todo!("issue 4"),
        }
    }

    /// The event of a metric that failed; its condition is set later, if it was the first.
    ///
    /// Upstream: horizontal.go, getUnableComputeReplicaCountCondition
    fn unable_to_compute(
        &mut self,
        reason: &'static str,
        error: Text,
        wrapped: String,
    ) -> MetricFailure {
        self.event(EventType::Warning, reason, error.clone());
        MetricFailure { reason, error, wrapped }
    }

    /// Upstream: horizontal.go, computeStatusForResourceMetric
    fn compute_status_for_resource_metric(
        &mut self,
        source: &ResourceMetricSource,
        current_replicas: i32,
        selector: &ParsedSelector,
        statuses: &mut Vec<MetricStatus>,
    ) -> Result<i32, MetricFailure> {
        let computed = self.compute_status_for_resource_metric_generic(
            source,
            current_replicas,
            selector,
            statuses,
        );
        computed.map_err(|error| {
            if let Some(metric) = self.derivation.metrics.last_mut() {
                metric.error = Some(error.clone());
            }
            let wrapped = format!("failed to get {} resource metric value: {error}", source.name);
            self.unable_to_compute("FailedGetResourceMetric", error, wrapped)
        })
    }

    /// Upstream: horizontal.go, computeStatusForResourceMetricGeneric
    fn compute_status_for_resource_metric_generic(
        &mut self,
        source: &ResourceMetricSource,
        current_replicas: i32,
        selector: &ParsedSelector,
        statuses: &mut Vec<MetricStatus>,
    ) -> Result<i32, Text> {
        let (name, target) = (&source.name, &source.target);
        let tolerances = self.tolerances_for_hpa();
        self.derivation.metrics.push(MetricDerivation {
            resource: name.clone(),
            target: Target::None,
            pods: PodCounts::default(),
            usage: None,
            path: Path::Failed,
            tolerances: (tolerances.scale_down, tolerances.scale_up),
            proposal: None,
            error: None,
        });
        let query = ResourceQuery { resource: name, current_replicas, tolerances, selector };
        let average_utilization;
        let proposal = if let Some(value) = &target.average_value {
            self.derive_target(Target::AverageValue(value.milli()));
            average_utilization = None;
            self.get_raw_resource_replicas(&query, value.milli())
                .map_err(|error| Text::from(format!("failed to get {name} usage: {error}")))?
        } else if let Some(utilization) = target.average_utilization {
            self.derive_target(Target::Utilization(utilization));
            let proposal = self.get_resource_replicas(&query, utilization);
            let proposal = proposal.map_err(|error| {
                Text::from(format!("failed to get {name} utilization: {error}"))
            })?;
            average_utilization = proposal.usage.utilization;
            proposal
        } else {
            let what = "neither an average utilization target nor an average value (usage) target";
            return Err(format!("invalid resource metric source: {what} was set").into());
        };
        let Proposal { replicas, usage, path, .. } = proposal;
        if let Some(metric) = self.derivation.metrics.last_mut() {
            metric.usage = Some(usage);
            metric.path = path;
            metric.proposal = Some(replicas);
        }
        let average_value = Some(self.build_quantity(name, usage.average));
        let name = name.clone();
        statuses.push(MetricStatus::Resource { name, average_utilization, average_value });
        Ok(replicas)
    }

    fn derive_target(&mut self, target: Target) {
        if let Some(metric) = self.derivation.metrics.last_mut() {
            metric.target = target;
        }
    }

    /// Upstream: horizontal.go, buildQuantity
    fn build_quantity(&self, resource: &str, raw_proposal: i64) -> Quantity {
        let format = match resource {
            "memory" => self.knobs.rules.memory_status_format,
            _ => Format::DecimalSI,
        };
        let quantity = Quantity::from_milli(raw_proposal, format);
        match format {
            // What is stored is the text, read again: one without a binary suffix comes back in
            // decimal units.
            Format::BinarySI => Quantity::parse(&quantity.to_string()).unwrap_or(quantity),
            _ => quantity,
        }
    }

    /// Upstream: horizontal.go, tolerancesForHpa
    fn tolerances_for_hpa(&self) -> Tolerances {
        let tolerance = self.knobs.flags.tolerance;
        let mut tolerances = Tolerances { scale_down: tolerance, scale_up: tolerance };
        let Some(behavior) = &self.hpa.spec.behavior else {
            return tolerances;
        };
        if !self.knobs.gates.enabled(Gate::HpaConfigurableTolerance) {
            return tolerances;
        }
        let down = behavior.scale_down.as_ref().and_then(|rules| rules.tolerance.as_ref());
        let up = behavior.scale_up.as_ref().and_then(|rules| rules.tolerance.as_ref());
        tolerances.scale_down = down.map_or(tolerance, Quantity::approx_f64);
        tolerances.scale_up = up.map_or(tolerance, Quantity::approx_f64);
        tolerances
    }
}
