//! Custom metrics of pods and objects, and external metrics: the step from their APIs' responses to
//! a number of replicas and a status.

use super::group_pods::Groups;
use super::query::{CurrentScale, MetricFailure, Proposal, Query};
use crate::api::{
    ConditionStatus, CrossVersionObjectReference, ExternalMetricSource, ExternalMetricStatus,
    MetricIdentifier, MetricStatus, MetricTargetType, MetricValueStatus, ObjectMetricSource,
    ObjectMetricStatus, PodPhase, PodsMetricSource, PodsMetricStatus,
};
use crate::derivation::{Path, PodCounts, Source, Target, Usage};
use crate::hpa::go::{go_i32, go_i64};
use crate::hpa::metric_name::GoSelector;
use crate::hpa::reconcile::Reconcile;
use crate::hpa::selector_store::ParsedSelector;
use crate::quantity::{Format, Quantity};
use crate::rules::{MetricsFrom, ObjectAverage, ObjectError, Rules};
use crate::selector::Selector;

const OBJECT_FAILED: &str = "FailedGetObjectMetric";
const EXTERNAL_FAILED: &str = "FailedGetExternalMetric";

impl<'a> Reconcile<'a> {
    /// Upstream: horizontal.go, computeReplicasForMetric and computeStatusForPodsMetric
    pub(super) fn compute_status_for_pods_metric(
        &mut self,
        source: &PodsMetricSource,
        scaling: &CurrentScale<'_>,
    ) -> Result<i32, MetricFailure> {
        let query = self.custom_query(scaling);
        self.derive_metric(&source.metric.name, Source::Pods, query.tolerances);
        let computed = self.get_metric_replicas(source, &query);
        let proposal = computed.map_err(|error| {
            // The error of an invalid selector is the same in all releases.
            let selected = metric_selector(&self.config.rules, &source.metric).is_ok();
            let what = if selected { self.config.rules.texts.pods_metric } else { "pods" };
            let wrapped = format!("failed to get {what} metric value: {error}");
            self.unable_to_compute("FailedGetPodsMetric", error.into(), wrapped)
        })?;
        self.derive_proposal(&proposal);
        let average_value = Some(decimal(proposal.usage.average));
        let current = MetricValueStatus { average_value, ..MetricValueStatus::default() };
        let pods = PodsMetricStatus { metric: source.metric.clone(), current };
        self.status.current_metrics.push(MetricStatus::Pods { pods });
        Ok(proposal.replicas)
    }

    /// Upstream: replica_calculator.go, GetMetricReplicas
    fn get_metric_replicas(
        &mut self,
        source: &PodsMetricSource,
        query: &Query<'_>,
    ) -> Result<Proposal, String> {
        let selector = metric_selector(&self.config.rules, &source.metric)?;
        let Some(target) = &source.target.average_value else {
            // The API server does not store such a metric.
            return Err("no target average value was set".to_owned());
        };
        self.derive_target(Target::AverageValue(target.milli()));
        let name = &source.metric.name;
        let mut groups = Groups::default();
        let got = match self.config.rules.metrics.from {
            MetricsFrom::Heapster => self.get_raw_metric_of_heapster(query, name, &mut groups),
            MetricsFrom::Apis => self.get_raw_metric(query, name, &selector, &mut groups),
        };
        got.map_err(|error| format!("unable to get metric {name}: {error}"))?;
        self.calc_plain_metric_replicas(query, target.milli(), &groups)
    }

    /// The target's type selects one of the two targets. The API server does not check that the
    /// type matches the fields, so they may differ.
    ///
    /// Upstream: horizontal.go, computeReplicasForMetric and computeStatusForObjectMetric
    pub(super) fn compute_status_for_object_metric(
        &mut self,
        source: &ObjectMetricSource,
        scaling: &CurrentScale<'_>,
    ) -> Result<i32, MetricFailure> {
        let ObjectMetricSource { described_object, metric, target } = source;
        let query = self.custom_query(scaling);
        let object = Source::Object(described_object.clone());
        self.derive_metric(&metric.name, object, query.tolerances);
        let failed = |reconcile: &mut Reconcile<'_>, error: String, detail: &str| {
            let wrapped = format!("failed to get object metric value: {detail}{error}");
            reconcile.unable_to_compute(OBJECT_FAILED, error.into(), wrapped)
        };
        let selector =
            metric_selector(&self.config.rules, metric).map_err(|error| failed(self, error, ""))?;
        let (value, average_value) = (&target.value, &target.average_value);
        let type_ = match self.config.rules.metrics.object_average {
            ObjectAverage::Total => MetricTargetType::Value,
            ObjectAverage::ByNone | ObjectAverage::ByReplicas => target.type_,
        };
        let proposal = match (type_, value, average_value) {
            (MetricTargetType::Value, Some(value), _) => {
                self.derive_target(Target::Value(value.milli()));
                self.get_object_metric_replicas(source, &query, value.milli(), &selector)
                    .map_err(|error| failed(self, error, ""))?
            }
            (MetricTargetType::AverageValue, _, Some(value)) => {
                self.derive_target(Target::AverageValue(value.milli()));
                let detail = format!("failed to get {} object metric: ", metric.name);
                self.get_object_per_pod_metric_replicas(source, &query, value.milli(), &selector)
                    .map_err(|error| failed(self, error, &detail))?
            }
            _ => return Err(failed(self, neither("object"), "")),
        };
        self.derive_proposal(&proposal);
        let (value, average_value) = current(&proposal.usage);
        let named = value.is_some() || self.config.rules.status.object_average_names_object;
        let described_object = match named {
            true => described_object.clone(),
            false => Default::default(),
        };
        let current = MetricValueStatus { value, average_value, average_utilization: None };
        let object = ObjectMetricStatus { metric: metric.clone(), described_object, current };
        self.status.current_metrics.push(MetricStatus::Object { object });
        Ok(proposal.replicas)
    }

    /// Upstream: replica_calculator.go, GetObjectMetricReplicas
    fn get_object_metric_replicas(
        &mut self,
        source: &ObjectMetricSource,
        query: &Query<'_>,
        target_usage: i64,
        selector: &Selector,
    ) -> Result<Proposal, String> {
        let total = self.get_metric_on_object(source, selector)?;
        self.get_usage_ratio_replica_count(query, whole(total, target_usage))
    }

    /// Upstream: replica_calculator.go, GetObjectPerPodMetricReplicas
    fn get_object_per_pod_metric_replicas(
        &mut self,
        source: &ObjectMetricSource,
        query: &Query<'_>,
        target_average_usage: i64,
        selector: &Selector,
    ) -> Result<Proposal, String> {
        let total = self.get_metric_on_object(source, selector)?;
        let by_none = self.config.rules.metrics.object_average == ObjectAverage::ByNone;
        let replicas = if by_none { 0 } else { query.status_replicas };
        let mut proposal = per_pod(query, total, target_average_usage, replicas);
        if proposal.path == Path::Total {
            proposal.replicas = go_i32(ceil_quotient(total, target_average_usage));
        }
        proposal.usage.average = go_i64((total as f64 / f64::from(query.status_replicas)).ceil());
        Ok(proposal)
    }

    fn get_metric_on_object(
        &mut self,
        source: &ObjectMetricSource,
        selector: &Selector,
    ) -> Result<i64, String> {
        let name = &source.metric.name;
        let object: &CrossVersionObjectReference = &source.described_object;
        self.get_object_metric(name, object, selector).map_err(|error| {
            let CrossVersionObjectReference { kind, name: of, .. } = object;
            let namespace = &self.hpa.namespace;
            match self.config.rules.texts.object_error {
                ObjectError::InOrder => {
                    format!("unable to get metric {name} on {kind} {namespace}/{of}: {error}")
                }
                ObjectError::Shifted => {
                    format!("unable to get metric {name}: {kind} on {namespace} {of}/{error}")
                }
            }
        })
    }

    /// An average value takes precedence over a value; the target's type is ignored.
    ///
    /// Upstream: horizontal.go, computeReplicasForMetric and computeStatusForExternalMetric
    pub(super) fn compute_status_for_external_metric(
        &mut self,
        source: &ExternalMetricSource,
        scaling: &CurrentScale<'_>,
    ) -> Result<i32, MetricFailure> {
        let ExternalMetricSource { metric, target } = source;
        let name = &metric.name;
        let query = self.custom_query(scaling);
        self.derive_metric(name, Source::External, query.tolerances);
        let failed = |reconcile: &mut Reconcile<'_>, error: String, detail: String| {
            let wrapped = match reconcile.config.rules.texts.metric_is_named {
                true => format!("failed to get {name} external metric value: {detail}{error}"),
                false => format!("{detail}{error}"),
            };
            reconcile.unable_to_compute(EXTERNAL_FAILED, error.into(), wrapped)
        };
        let proposal = if let Some(value) = &target.average_value {
            self.derive_target(Target::AverageValue(value.milli()));
            let computed = self.get_external_per_pod_metric_replicas(metric, &query, value.milli());
            let detail = format!("failed to get {name} external metric: ");
            computed.map_err(|error| failed(self, error, detail))?
        } else if let Some(value) = &target.value {
            self.derive_target(Target::Value(value.milli()));
            let computed = self.get_external_metric_replicas(metric, &query, value.milli());
            let detail = format!("failed to get external metric {name}: ");
            computed.map_err(|error| failed(self, error, detail))?
        } else {
            return Err(failed(self, neither("external"), String::new()));
        };
        self.derive_proposal(&proposal);
        let (value, average_value) = current(&proposal.usage);
        let current = MetricValueStatus { value, average_value, average_utilization: None };
        let external = ExternalMetricStatus { metric: metric.clone(), current };
        self.status.current_metrics.push(MetricStatus::External { external });
        Ok(proposal.replicas)
    }

    /// Upstream: replica_calculator.go, GetExternalMetricReplicas
    fn get_external_metric_replicas(
        &mut self,
        metric: &MetricIdentifier,
        query: &Query<'_>,
        target_usage: i64,
    ) -> Result<Proposal, String> {
        let values = self.get_external_values(metric)?;
        let capped = self.config.rules.metrics.value_is_capped;
        let mut total = 0_i64;
        for value in &values {
            if capped && *value > 0 && total > i64::MAX - value {
                total = i64::MAX;
                break;
            }
            total = total.wrapping_add(*value);
        }
        let mut usage = whole(total, target_usage);
        usage.series = u32::try_from(values.len()).ok();
        let rules = &self.config.rules;
        if rules.metrics.external_counts_pods_first && rules.metrics.values_are_per_ready_pod {
            self.ready_pods(query)?;
        }
        self.get_usage_ratio_replica_count(query, usage)
    }

    /// Upstream: replica_calculator.go, GetExternalPerPodMetricReplicas
    fn get_external_per_pod_metric_replicas(
        &mut self,
        metric: &MetricIdentifier,
        query: &Query<'_>,
        target_usage_per_pod: i64,
    ) -> Result<Proposal, String> {
        let values = self.get_external_values(metric)?;
        let capped = self.config.rules.metrics.external_average_is_capped;
        let mut total = 0_i64;
        for value in &values {
            total = total.wrapping_add(*value);
            if capped && total < 0 {
                // Upstream treats a negative sum as an overflow.
                total = i64::MAX;
                break;
            }
        }
        let mut proposal = per_pod(query, total, target_usage_per_pod, query.status_replicas);
        if proposal.path == Path::Total {
            proposal.replicas = to_i32(ceil_quotient(total, target_usage_per_pod), capped);
        }
        proposal.usage.average = if capped && total as f64 >= i64::MAX as f64 {
            i64::MAX
        } else {
            go_i64((total as f64 / f64::from(query.status_replicas)).ceil())
        };
        proposal.usage.series = u32::try_from(values.len()).ok();
        Ok(proposal)
    }

    fn get_external_values(&mut self, metric: &MetricIdentifier) -> Result<Vec<i64>, String> {
        let selector = metric_selector(&self.config.rules, metric)?;
        self.get_external_metric(&metric.name, &selector).map_err(|error| {
            let (namespace, name) = (&self.hpa.namespace, &metric.name);
            let typed = self.config.rules.texts.expressions_are_typed;
            let selector = GoSelector { selector: metric.selector.as_ref(), typed };
            format!("unable to get external metric {namespace}/{name}/{selector}: {error}")
        })
    }

    fn ready_pods(&mut self, query: &Query<'_>) -> Result<u32, String> {
        self.get_ready_pods_count(query.selector)
            .map_err(|error| format!("unable to calculate ready pods: {error}"))
    }

    /// The proposal for a ratio of totals.
    ///
    /// Upstream: replica_calculator.go, getUsageRatioReplicaCount
    fn get_usage_ratio_replica_count(
        &mut self,
        query: &Query<'_>,
        usage: Usage,
    ) -> Result<Proposal, String> {
        let ratio = usage.ratio;
        if query.current_replicas == 0 {
            let replicas = go_i32(ratio.ceil());
            return Ok(Proposal { replicas, usage, path: Path::FromZero });
        }
        if query.tolerances.is_within(ratio) {
            let replicas = query.current_replicas;
            return Ok(Proposal { replicas, usage, path: Path::WithinTolerance });
        }
        if !self.config.rules.metrics.values_are_per_ready_pod {
            let replicas = go_i32((ratio * f64::from(query.current_replicas)).ceil());
            return Ok(Proposal { replicas, usage, path: Path::Replicas });
        }
        let ready = self.ready_pods(query)?;
        if let Some(metric) = self.metric() {
            metric.pods = PodCounts { ready, ..PodCounts::default() };
        }
        let capped = self.config.rules.metrics.value_is_capped;
        let replicas = to_i32((ratio * f64::from(ready)).ceil(), capped);
        Ok(Proposal { replicas, usage, path: Path::Ready })
    }

    /// Running and ready pods, including terminating ones.
    ///
    /// Upstream: replica_calculator.go, getReadyPodsCount
    fn get_ready_pods_count(&self, selector: &ParsedSelector) -> Result<u32, String> {
        let (mut listed, mut ready) = (0_u32, 0);
        for pod in self.input.pods.iter().filter(|pod| selector.selector.matches(&pod.labels)) {
            listed += 1;
            let is_ready = pod.ready.is_some_and(|it| it.status == ConditionStatus::True);
            ready += u32::from(pod.phase == PodPhase::Running && is_ready);
        }
        if listed == 0 {
            return Err("no pods returned by selector while calculating replica count".to_owned());
        }
        Ok(ready)
    }

    fn custom_query<'q>(&self, scaling: &CurrentScale<'q>) -> Query<'q> {
        Query {
            resource: "",
            container: None,
            current_replicas: scaling.current_replicas,
            status_replicas: scaling.status_replicas,
            tolerances: self.tolerances_for_hpa(),
            selector: scaling.selector,
        }
    }
}

/// Upstream: apimachinery, meta/v1/helpers.go, LabelSelectorAsSelector
fn metric_selector(rules: &Rules, metric: &MetricIdentifier) -> Result<Selector, String> {
    let format = rules.texts.wrong_number_of_values;
    Selector::from_label_selector(metric.selector.as_ref()).map_err(|error| error.in_format(format))
}

fn neither(kind: &str) -> String {
    let what = "neither a value target nor an average value target was set";
    format!("invalid {kind} metric source: {what}")
}

/// A total that is compared as a whole.
fn whole(total: i64, target: i64) -> Usage {
    let ratio = total as f64 / target as f64;
    Usage { total, average: total, ratio, ..Usage::default() }
}

/// A total that is divided by the current replicas. Within the tolerance, the proposal is the
/// divisor, even if `spec.replicas` differs.
fn per_pod(query: &Query<'_>, total: i64, target: i64, replicas: i32) -> Proposal {
    let ratio = total as f64 / (target as f64 * f64::from(replicas));
    let usage = Usage { total, ratio, status_replicas: Some(replicas), ..Usage::default() };
    let within = query.tolerances.is_not_beyond(ratio);
    Proposal { replicas, usage, path: if within { Path::WithinTolerance } else { Path::Total } }
}

fn ceil_quotient(total: i64, target: i64) -> f64 {
    (total as f64 / target as f64).ceil()
}

/// The value and the average value of a status: one of them is present.
fn current(usage: &Usage) -> (Option<Quantity>, Option<Quantity>) {
    let quantity = Some(decimal(usage.average));
    if usage.status_replicas.is_some() { (None, quantity) } else { (quantity, None) }
}

fn decimal(milli: i64) -> Quantity {
    Quantity::from_milli(milli, Format::DecimalSI)
}

/// A number of replicas as an integer. If capped, it is at most the largest integer.
fn to_i32(replicas: f64, capped: bool) -> i32 {
    if capped && replicas > f64::from(i32::MAX) { i32::MAX } else { go_i32(replicas) }
}
