//! The step from metrics to a proposal: the proposal of each metric, and the largest of them.

mod client;
mod custom;
mod group_pods;
mod heapster;
mod pod_requests;
mod query;
mod replica_calculator;
mod requests;

use std::sync::Arc;

pub use query::Tolerances;
use query::{CurrentScale, MetricFailure, Proposal, Query};
pub use requests::{NoRequest, RequestQuery};

use super::memory::ValidMetric;
use super::metric_name::MetricName;
use super::reconcile::{Computed, Reconcile};
use crate::api::{
    ConditionType, ContainerResourceMetricSource, ContainerResourceMetricStatus, MetricSourceType,
    MetricSpec, MetricStatus, MetricTarget, MetricValueStatus, ResourceMetricSource,
    ResourceMetricStatus, Scale, Text,
};
use crate::derivation::{MetricDerivation, Path, PodCounts, Source, Target};
use crate::observation::EventType;
use crate::quantity::{Format, Quantity};
use crate::rules::{MetricErrors, TextRules};
use crate::time::Span;

/// The usage of pods and the proposal for it.
struct ResourceUsage {
    replicas: i32,
    average_utilization: Option<i32>,
    average_value: Option<Quantity>,
}

impl Reconcile<'_> {
    /// The largest proposal of all metrics, and the statuses of all metrics. Fails if all metrics
    /// fail, or if one fails and the others would scale down.
    ///
    /// Upstream: horizontal.go, computeReplicasForMetrics
    pub(crate) fn compute_replicas_for_metrics(&mut self, scale: &Scale) -> Result<Computed, Text> {
        let selector = &*self.validate_and_parse_selector(&scale.selector)?;
        let specs = &self.hpa.spec.metrics;
        let scaling = CurrentScale {
            current_replicas: self.current_replicas(scale),
            status_replicas: scale.status_replicas,
            selector,
        };
        self.derivation.metrics.reserve_exact(specs.len());
        let mut computed = Computed { replicas: 0, metric: None, timestamp: None, error: None };
        let mut invalid_metrics_count = 0;
        let mut first: Option<MetricFailure> = None;
        for (index, spec) in specs.iter().enumerate() {
            let began = self.now;
            let proposal = self.compute_replicas_for_metric(spec, &scaling);
            let took = self.now - began;
            if let Some(metric) = self.metric() {
                metric.took = took;
            }
            match proposal {
                Ok(proposal) => {
                    if computed.replicas == 0 || proposal > computed.replicas {
                        computed.replicas = proposal;
                        computed.metric = Some(index);
                        computed.timestamp = self.metric_timestamp;
                    }
                }
                Err(failure) => {
                    self.status.current_metrics.push(MetricStatus::Empty {});
                    invalid_metrics_count += 1;
                    if self.config.rules.metrics.errors == MetricErrors::Ends {
                        self.set_metric_condition(&failure);
                        return Err(failure.wrapped.into());
                    }
                    if self.config.rules.metrics.errors == MetricErrors::Last {
                        self.set_metric_condition(&failure);
                        first = Some(failure);
                    } else {
                        first.get_or_insert(failure);
                    }
                }
            }
        }
        if let Some(failure) = &first {
            let (invalid, which) = match self.config.rules.metrics.errors {
                MetricErrors::First => ("invalid", "first error is"),
                MetricErrors::Last | MetricErrors::Ends => ("Invalid", "last error was"),
            };
            let text = format!(
                "{invalid} metrics ({invalid_metrics_count} invalid out of {}), {which}: {}",
                specs.len(),
                failure.wrapped
            );
            computed.error = Some(text.into());
        }
        let would_scale_down = self.config.rules.metrics.partial_failure_blocks_scale_down
            && invalid_metrics_count > 0
            && computed.replicas < self.current_replicas(scale);
        if invalid_metrics_count >= specs.len() || would_scale_down {
            return Err(self.no_valid_metric(first, computed.error));
        }
        if !self.config.rules.metrics.partial_failure_is_returned {
            computed.error = None;
        }
        self.valid_metric_found(computed.metric);
        Ok(computed)
    }

    /// Sets the condition that names the winning metric.
    fn valid_metric_found(&mut self, metric: Option<usize>) {
        let message = self.valid_metric_message(metric);
        self.set_condition(ConditionType::ScalingActive, true, "ValidMetricFound", message);
    }

    /// The message that names the winning metric. It is formatted only if the spec or the metric
    /// has changed: with formatting in each tick, the model runs 0.71 times as many ticks/s at 10
    /// pods.
    fn valid_metric_message(&mut self, metric: Option<usize>) -> Text {
        let spec = &self.hpa.spec;
        if let Some(last) = &self.memory.valid_metric
            && last.metric == metric
            && Arc::ptr_eq(&last.spec, spec)
        {
            return last.message.clone();
        }
        let rules = &self.config.rules;
        let how = rules.texts.successfully;
        let name = MetricName { metric: metric.and_then(|index| spec.metrics.get(index)), rules };
        let text = format!("the HPA was able to {how} calculate a replica count from {name}");
        let message = Text::from(text);
        let valid = ValidMetric { spec: spec.clone(), metric, message: message.clone() };
        self.memory.valid_metric = Some(valid);
        message
    }

    /// Sets the condition for the metric that failed first.
    fn no_valid_metric(&mut self, first: Option<MetricFailure>, error: Option<Text>) -> Text {
        // Without any metric, upstream sets an empty condition; the API server always adds a
        // metric.
        if let Some(failure) = first
            && self.config.rules.metrics.errors == MetricErrors::First
        {
            self.set_metric_condition(&failure);
        }
        error.unwrap_or_else(|| "".into())
    }

    /// Sets the condition for a metric that failed.
    fn set_metric_condition(&mut self, MetricFailure { reason, error, .. }: &MetricFailure) {
        let message = format!("the HPA was unable to compute the replica count: {error}");
        self.set_inactive(reason, message, self.config.rules.texts.metric_messages_are_formats);
    }

    /// Upstream: horizontal.go, computeReplicasForMetric
    fn compute_replicas_for_metric(
        &mut self,
        spec: &MetricSpec,
        scaling: &CurrentScale<'_>,
    ) -> Result<i32, MetricFailure> {
        match spec.type_ {
            MetricSourceType::Resource => {
                if let Some(source) = &spec.resource {
                    return self.compute_status_for_resource_metric(source, scaling);
                }
            }
            MetricSourceType::ContainerResource => {
                if let Some(source) = &spec.container_resource {
                    return self.compute_status_for_container_resource_metric(source, scaling);
                }
            }
            MetricSourceType::Pods => {
                if let Some(source) = &spec.pods {
                    return self.compute_status_for_pods_metric(source, scaling);
                }
            }
            MetricSourceType::Object => {
                if let Some(source) = &spec.object {
                    return self.compute_status_for_object_metric(source, scaling);
                }
            }
            MetricSourceType::External => {
                if let Some(source) = &spec.external {
                    return self.compute_status_for_external_metric(source, scaling);
                }
            }
        }
        Err(self.without_source())
    }

    /// Fails a metric without the source that its type names. The API server does not store one.
    #[cold]
    fn without_source(&mut self) -> MetricFailure {
        self.derive_metric(&"".into(), Source::Resource, self.tolerances_for_hpa());
        let error = "no metric source was set";
        self.unable_to_compute("InvalidMetricSourceType", error.into(), error.to_owned())
    }

    /// Records the event of a metric that failed. Its condition is set later, if it was the first.
    ///
    /// Upstream: horizontal.go, getUnableComputeReplicaCountCondition
    pub(crate) fn unable_to_compute(
        &mut self,
        reason: &'static str,
        error: Text,
        wrapped: String,
    ) -> MetricFailure {
        if let Some(metric) = self.metric() {
            metric.error = Some(error.clone());
        }
        self.event(EventType::Warning, reason, error.clone());
        MetricFailure { reason, error, wrapped }
    }

    /// Upstream: horizontal.go, computeStatusForResourceMetric
    fn compute_status_for_resource_metric(
        &mut self,
        source: &ResourceMetricSource,
        scaling: &CurrentScale<'_>,
    ) -> Result<i32, MetricFailure> {
        let ResourceMetricSource { name, target } = source;
        let computed = self.compute_status_for_resource_metric_generic(name, None, target, scaling);
        let usage = computed.map_err(|(bare, error)| {
            let texts = &self.config.rules.texts;
            let wrapped = match texts.metric_is_named {
                true => format!("failed to get {name} resource metric value: {error}"),
                false => error.to_string(),
            };
            let error = if texts.resource_is_named { error } else { bare };
            self.unable_to_compute("FailedGetResourceMetric", error, wrapped)
        })?;
        let ResourceUsage { replicas, average_utilization, average_value } = usage;
        let current = MetricValueStatus { value: None, average_value, average_utilization };
        let resource = ResourceMetricStatus { name: name.clone(), current };
        self.status.current_metrics.push(MetricStatus::Resource { resource });
        Ok(replicas)
    }

    /// Upstream: horizontal.go, computeStatusForContainerResourceMetric
    #[cold]
    fn compute_status_for_container_resource_metric(
        &mut self,
        source: &ContainerResourceMetricSource,
        scaling: &CurrentScale<'_>,
    ) -> Result<i32, MetricFailure> {
        let ContainerResourceMetricSource { name, container, target } = source;
        let computed =
            self.compute_status_for_resource_metric_generic(name, Some(container), target, scaling);
        let usage = computed.map_err(|(_, error)| {
            let wrapped = match self.config.rules.texts.metric_is_named {
                true => format!("failed to get {container} container metric value: {error}"),
                false => error.to_string(),
            };
            self.unable_to_compute("FailedGetContainerResourceMetric", error, wrapped)
        })?;
        let ResourceUsage { replicas, average_utilization, average_value } = usage;
        let container_resource = ContainerResourceMetricStatus {
            name: name.clone(),
            container: container.clone(),
            current: MetricValueStatus { value: None, average_value, average_utilization },
        };
        self.status.current_metrics.push(MetricStatus::ContainerResource { container_resource });
        Ok(replicas)
    }

    /// Returns an error twice: unchanged, and with the name of the unavailable value.
    ///
    /// Upstream: horizontal.go, computeStatusForResourceMetricGeneric
    fn compute_status_for_resource_metric_generic(
        &mut self,
        name: &Arc<str>,
        container: Option<&Arc<str>>,
        target: &MetricTarget,
        scaling: &CurrentScale<'_>,
    ) -> Result<ResourceUsage, (Text, Text)> {
        let tolerances = self.tolerances_for_hpa();
        let source = match container {
            None => Source::Resource,
            Some(container) => Source::ContainerResource(container.clone()),
        };
        self.derive_metric(name, source, tolerances);
        let query = Query {
            resource: name,
            container: container.map(|name| &**name),
            current_replicas: scaling.current_replicas,
            status_replicas: scaling.status_replicas,
            tolerances,
            selector: scaling.selector,
        };
        let TextRules { average, no_target, .. } = self.config.rules.texts;
        let named = |what: &str, error: String| {
            let text = format!("failed to get {name} {what}: {error}");
            (Text::from(error), Text::from(text))
        };
        let proposal = if let Some(value) = &target.average_value {
            self.derive_target(Target::AverageValue(value.milli()));
            self.get_raw_resource_replicas(&query, value.milli())
                .map_err(|error| named(average, error))?
        } else if let Some(utilization) = target.average_utilization {
            self.derive_target(Target::Utilization(utilization));
            self.get_resource_replicas(&query, utilization)
                .map_err(|error| named("utilization", error))?
        } else {
            let error = Text::from(format!("invalid resource metric source: {no_target}"));
            return Err((error.clone(), error));
        };
        self.derive_proposal(&proposal);
        Ok(ResourceUsage {
            replicas: proposal.replicas,
            average_utilization: proposal.usage.utilization,
            average_value: Some(self.build_quantity(name, proposal.usage.average)),
        })
    }

    /// Begins the derivation of a metric.
    fn derive_metric(&mut self, name: &Arc<str>, source: Source, tolerances: Tolerances) {
        self.derivation.metrics.push(MetricDerivation {
            name: name.clone(),
            source,
            target: Target::None,
            pods: PodCounts::default(),
            usage: None,
            path: Path::Failed,
            tolerances: (tolerances.scale_down, tolerances.scale_up),
            within: tolerances.within,
            proposal: None,
            error: None,
            took: Span::ZERO,
        });
    }

    fn derive_target(&mut self, target: Target) {
        if let Some(metric) = self.metric() {
            metric.target = target;
        }
    }

    fn derive_proposal(&mut self, proposal: &Proposal) {
        if let Some(metric) = self.metric() {
            metric.usage = Some(proposal.usage);
            metric.path = proposal.path;
            metric.proposal = Some(proposal.replicas);
        }
    }

    /// Upstream: horizontal.go, buildQuantity
    fn build_quantity(&self, resource: &str, raw_proposal: i64) -> Quantity {
        let format = match resource {
            "memory" => self.config.rules.status.memory_format,
            _ => Format::DecimalSI,
        };
        let quantity = Quantity::from_milli(raw_proposal, format);
        match format {
            // A value without a binary suffix is stored in decimal units.
            Format::BinarySI => quantity.read_again(),
            _ => quantity,
        }
    }

    /// Upstream: horizontal.go, tolerancesForHpa
    pub(crate) fn tolerances_for_hpa(&self) -> Tolerances {
        let config = &self.config;
        let behavior = self.hpa.spec.behavior.as_ref();
        Tolerances::for_hpa(behavior, config.flags.tolerance, &config.rules, &config.gates)
    }
}
