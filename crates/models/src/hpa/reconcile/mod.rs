//! One reconcile of one HPA, from reading the scale to writing the status.

mod selectors;
mod status;

use std::sync::Arc;

pub use self::selectors::hpas_with_same_pods;
use super::apimachinery::{conflict, is_conflict, outdated, parse_group_version};
use super::decision::Decision;
use super::input::{HpaChange, Input, Interruption};
use super::memory::{Memory, TimestampedRecommendation};
use super::metric_name::MetricName;
use super::selector_store::HpaSelectorStore;
use crate::api::{ApiError, ConditionType, Hpa, HpaStatus, MetricSourceType, Scale, Text};
use crate::derivation::{Branch, Derivation, MetricDerivation};
use crate::flags::{FeatureGates, Flags, Gate};
use crate::observation::{
    ControllerAction, EventType, Observation, ScaleReplicas, ScaleWrite, SentScale,
};
use crate::rules::{AtZero, Rules, Windows};
use crate::time::{Span, Time};

/// The wait between attempts to update the scale. Upstream adds a random part of up to a tenth; the
/// virtual-time host of upstream's code removes that randomness.
///
/// Upstream: client-go, util/retry, DefaultRetry
pub const RETRY_WAIT: Span = Span::from_millis(10);

/// The configuration of the controller.
#[derive(Clone, Debug)]
pub(crate) struct ControllerConfig {
    pub rules: Rules,
    pub flags: Flags,
    pub gates: FeatureGates,
    /// True if the clock advances during a reconcile, if only slightly.
    pub wall_clock: bool,
    /// True if observations contain the metrics of the work queue.
    pub all_metrics: bool,
}

/// A queued HPA with the state that its reconcile reads and changes.
pub(crate) struct WorkItem<'a> {
    pub key: &'a str,
    pub hpa: &'a Hpa,
    /// The input at the beginning of the reconcile.
    pub input: &'a Input<'a>,
    /// The known inputs after each wait.
    pub later: &'a [Input<'a>],
    /// Other changes during the reconcile, in order.
    pub interruptions: &'a [Interruption<'a>],
    pub memory: &'a mut Memory,
    pub selectors: &'a mut HpaSelectorStore,
    /// An empty decision, which the reconcile fills.
    pub decision: &'a mut Decision,
}

/// A reconcile in progress.
pub(super) struct Reconcile<'a> {
    pub config: &'a ControllerConfig,
    pub memory: &'a mut Memory,
    pub selectors: &'a mut HpaSelectorStore,
    pub key: &'a str,
    pub input: &'a Input<'a>,
    pub hpa: &'a Hpa,
    pub now: Time,
    /// The known inputs after the first wait, after the second wait, and so on.
    pub later: &'a [Input<'a>],
    /// The interruptions that are still to come.
    interruptions: &'a [Interruption<'a>],
    /// The first wait whose input is not known yet.
    pub blocked: Option<Wait>,
    /// The status that is written at the end, with the metrics computed until now.
    pub status: HpaStatus,
    pub observation: &'a mut Observation,
    pub event_times: &'a mut Vec<Time>,
    pub derivation: &'a mut Derivation,
    /// The time of the first item in the last response of a metrics API.
    pub(crate) metric_timestamp: Option<Time>,
    monitored: Monitored,
}

/// The part of the controller's own Prometheus metrics that no other result shows.
#[derive(Clone, Copy)]
pub(crate) struct Monitored {
    /// The current replicas in the stored status, with which each proposal is compared.
    pub status_replicas: i32,
    /// True if the error is one of the HPA's spec.
    pub(crate) has_invalid_target: bool,
    /// The desired replicas, if the reconcile got that far.
    pub desired_replicas: Option<i32>,
}

/// The result of all metrics.
pub(super) struct Computed {
    /// The largest proposal.
    pub replicas: i32,
    /// The index of the metric that made the proposal.
    pub metric: Option<usize>,
    /// The timestamp of that metric.
    pub timestamp: Option<Time>,
    /// The error of the failed metrics, if the other metrics suffice.
    pub error: Option<Text>,
}

/// The result of a reconcile.
pub(crate) struct ReconcileResult {
    /// The time at its end.
    pub end: Time,
    pub succeeded: bool,
    pub(crate) monitored: Monitored,
    /// The first wait whose input is not known yet. If present, the decision is not final.
    pub blocked: Option<Wait>,
}

/// A wait in a reconcile.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    /// Its end.
    pub until: Time,
    /// The actions before it.
    pub observation: Observation,
}

/// The desired replicas and their reason.
struct Desired {
    replicas: i32,
    reason: Text,
    rescale: bool,
    error: Option<Text>,
}

impl<'a> Reconcile<'a> {
    /// Reconciles an HPA.
    pub(super) fn run(config: &'a ControllerConfig, item: WorkItem<'a>) -> ReconcileResult {
        let WorkItem { key, hpa, input, later, interruptions, memory, selectors, decision } = item;
        let Decision { observation, event_times, derivation, end, uid, .. } = decision;
        *uid = hpa.uid;
        observation.at = input.now;
        observation.hpa = hpa.name.clone();
        derivation.at = input.now;
        let mut reconcile = Reconcile {
            config,
            memory,
            selectors,
            key,
            input,
            hpa,
            now: input.now,
            later,
            interruptions,
            blocked: None,
            status: HpaStatus {
                current_metrics: Vec::new(),
                conditions: hpa.status.conditions.clone(),
                ..hpa.status
            },
            observation,
            event_times,
            derivation,
            metric_timestamp: None,
            monitored: Monitored {
                status_replicas: hpa.status.current_replicas.unwrap_or(0),
                has_invalid_target: false,
                desired_replicas: None,
            },
        };
        let result = reconcile.reconcile_autoscaler();
        let succeeded = result.is_ok();
        if let Err(error) = result {
            reconcile.handle_error(error);
        }
        reconcile.observation.took = reconcile.now - input.now;
        *end = reconcile.now;
        let Reconcile { monitored, blocked, .. } = reconcile;
        ReconcileResult { end: *end, succeeded, monitored, blocked }
    }

    /// Advances the clock. After the wait the controller sees the next input; if that is not known
    /// yet, it still sees the present one.
    pub(super) fn wait(&mut self, span: Span) {
        self.now = self.now + span;
        match self.later.split_first() {
            Some((input, later)) => {
                self.input = input;
                self.later = later;
            }
            None if self.blocked.is_none() => {
                self.blocked =
                    Some(Wait { until: self.now, observation: self.observation.clone() });
            }
            None => {}
        }
    }

    /// Waits for the response of a metrics API.
    pub(crate) fn await_metrics(&mut self) {
        if let Some(span) = self.input.slow_metrics {
            self.wait(span);
        }
    }

    /// Records a request. Returns true if something else happens right afterwards.
    #[inline]
    pub(super) fn record(&mut self, request: ControllerAction) -> bool {
        self.observation.push(request);
        self.is_interrupted()
    }

    /// Returns true if something else happens after the last request. The controller then sees the
    /// next input.
    #[inline]
    pub(crate) fn is_interrupted(&mut self) -> bool {
        !self.interruptions.is_empty() && self.is_next_interruption_due()
    }

    #[cold]
    fn is_next_interruption_due(&mut self) -> bool {
        let Some((next, later)) = self.interruptions.split_first() else { return false };
        if self.observation.requests().count() < next.after {
            return false;
        }
        self.input = &next.input;
        self.interruptions = later;
        for deleted in next.hpas.iter().filter(|it| it.change == HpaChange::Deleted) {
            self.selectors.delete(&deleted.key);
        }
        true
    }

    /// The derivation of the metric that is being computed.
    pub(super) fn metric(&mut self) -> Option<&mut MetricDerivation> {
        self.derivation.metrics.last_mut()
    }

    /// Writes an error to the error log.
    ///
    /// Upstream: apimachinery, util/runtime, HandleError
    fn handle_error(&mut self, error: Text) {
        self.observation.push(ControllerAction::Error { message: error });
    }

    /// `Deployment/default/web`.
    fn reference(&self) -> String {
        let target = &self.hpa.spec.scale_target_ref;
        format!("{}/{}/{}", target.kind, self.hpa.namespace, target.name)
    }

    /// Upstream: horizontal.go, reconcileAutoscaler
    fn reconcile_autoscaler(&mut self) -> Result<(), Text> {
        let scale = self.get_scale()?;
        self.set_condition(
            ConditionType::AbleToScale,
            true,
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        );
        let current_replicas = self.current_replicas(scale);
        if self.config.rules.normalization.windows == Windows::Recommendations {
            self.record_initial_recommendation(current_replicas);
        }
        let min_replicas = self.hpa.spec.min_replicas.unwrap_or(1);
        self.derivation.current_replicas = Some(current_replicas);
        self.derivation.min_replicas = min_replicas;
        self.derivation.max_replicas = self.hpa.spec.max_replicas;
        self.derivation.desired_replicas = current_replicas;

        let mut desired =
            Desired { replicas: 0, reason: Text::Static(""), rescale: true, error: None };
        self.desired_replicas(scale, min_replicas, &mut desired)?;
        if desired.rescale {
            self.rescale(scale, min_replicas, &desired)?;
        } else {
            desired.replicas = current_replicas;
        }
        self.derivation.desired_replicas = desired.replicas;
        self.derivation.rescaled = desired.rescale;
        self.set_status(current_replicas, desired.replicas, desired.rescale);
        self.monitored.desired_replicas = Some(desired.replicas);
        self.update_status_if_needed()?;
        desired.error.map_or(Ok(()), Err)
    }

    /// Reads the target's scale.
    ///
    /// Upstream: horizontal.go, reconcileAutoscaler (its first part) and scaleForResourceMappings
    fn get_scale(&mut self) -> Result<&'a Scale, Text> {
        // A scale that is looked up by kind alone requires neither a version nor a mapping.
        let mapped = !self.config.rules.scale.in_extensions;
        let version = self.hpa.spec.scale_target_ref.api_version.as_deref().unwrap_or_default();
        if mapped && let Err(error) = parse_group_version(version) {
            let text = format!("invalid API version in scale target reference: {error}");
            self.monitored.has_invalid_target = true;
            return Err(self.failed_get_scale(error.into(), text));
        }
        if let Some(error) = self.input.mapping_error {
            let text = format!("unable to determine resource for scale target reference: {error}");
            return Err(self.failed_get_scale(error.to_owned().into(), text));
        }
        self.read_scale().map_err(|error| {
            let what = "failed to query scale subresource for";
            let text = format!("{what} {}: {}", self.reference(), error.message);
            self.failed_get_scale(Text::Shared(error.message.clone()), text)
        })
    }

    /// The current replicas.
    pub(super) fn current_replicas(&self, scale: &Scale) -> i32 {
        match self.config.rules.scale.uses_spec_replicas {
            true => scale.replicas,
            false => scale.status_replicas,
        }
    }

    /// Requests the scale once with GET.
    fn read_scale(&mut self) -> Result<&'a Scale, &'a ApiError> {
        let scale = self.input.scale;
        let answer = match scale {
            Ok(&Scale { replicas, status_replicas, .. }) => {
                Ok(ScaleReplicas { replicas, status_replicas })
            }
            Err(error) => Err(error.message.clone()),
        };
        self.record(ControllerAction::GetScale {
            resource: self.input.scale_resource.clone(),
            name: self.hpa.spec.scale_target_ref.name.clone(),
            answer,
        });
        scale
    }

    fn failed_get_scale(&mut self, error: Text, text: String) -> Text {
        self.event(EventType::Warning, "FailedGetScale", error.clone());
        self.set_condition(
            ConditionType::AbleToScale,
            false,
            "FailedGetScale",
            format!("the HPA controller was unable to get the target's current scale: {error}"),
        );
        self.derivation.error = Some(error);
        if !self.config.rules.status.has_conditions {
            return text.into();
        }
        self.status.current_metrics.clone_from(&self.hpa.status.current_metrics);
        let written = self.update_status_if_needed();
        if let Err(error) = written
            && self.config.rules.status.scale_failure_reports_write_error
        {
            self.handle_error(error);
        }
        text.into()
    }

    /// Upstream: horizontal.go, recordInitialRecommendation
    fn record_initial_recommendation(&mut self, current_replicas: i32) {
        if self.memory.recommendations.is_empty() {
            // A wall clock is read again later in the reconcile, when a window of zero seconds has
            // already passed.
            let earlier = Span(i64::from(self.config.wall_clock));
            self.memory.recommendations.push(TimestampedRecommendation {
                recommendation: current_replicas,
                timestamp: self.now - earlier,
            });
        }
    }

    /// Upstream: horizontal.go, hasObjectOrExternalMetrics
    fn has_object_or_external_metrics(&self) -> bool {
        self.hpa.spec.metrics.iter().any(|metric| match metric.type_ {
            MetricSourceType::Object | MetricSourceType::External => true,
            MetricSourceType::Resource
            | MetricSourceType::ContainerResource
            | MetricSourceType::Pods => false,
        })
    }

    /// The part of reconcileAutoscaler that computes the desired replicas.
    fn desired_replicas(
        &mut self,
        scale: &Scale,
        min_replicas: i32,
        desired: &mut Desired,
    ) -> Result<(), Text> {
        let current_replicas = self.current_replicas(scale);
        let max_replicas = self.hpa.spec.max_replicas;
        let has_condition = self.config.rules.scale.at_zero == AtZero::DisabledUnlessScaledToZero;
        let zero_enabled = self.config.gates.enabled(Gate::HpaScaleToZero);
        let scaled_to_zero =
            has_condition && zero_enabled && self.get_scaled_to_zero_condition_status();
        if scale.replicas == 0 {
            // Upstream: horizontal.go, shouldComputeMetricsForZeroReplicas
            let computed = match self.config.rules.scale.at_zero {
                AtZero::Disabled => false,
                AtZero::DisabledUnlessMinIsZero => min_replicas == 0,
                AtZero::DisabledUnlessScaledToZero => {
                    scaled_to_zero && (min_replicas != 0 || self.has_object_or_external_metrics())
                }
            };
            if !computed {
                self.derivation.branch = Branch::Disabled;
                desired.rescale = false;
                self.set_condition(
                    ConditionType::ScalingActive,
                    false,
                    "ScalingDisabled",
                    "scaling is disabled since the replica count of the target is zero",
                );
                if has_condition && !zero_enabled {
                    self.remove_condition(ConditionType::ScaledToZero);
                }
                return Ok(());
            }
        } else if current_replicas > max_replicas {
            self.derivation.branch = Branch::AboveMax;
            desired.replicas = max_replicas;
            desired.reason = "Current number of replicas above Spec.MaxReplicas".into();
            return Ok(());
        } else if current_replicas < min_replicas {
            self.derivation.branch = Branch::BelowMin;
            desired.replicas = min_replicas;
            desired.reason = "Current number of replicas below Spec.MinReplicas".into();
            return Ok(());
        }
        self.desired_replicas_by_metrics(scale, min_replicas, scaled_to_zero, desired)
    }

    fn desired_replicas_by_metrics(
        &mut self,
        scale: &Scale,
        min_replicas: i32,
        scaled_to_zero: bool,
        desired: &mut Desired,
    ) -> Result<(), Text> {
        let current_replicas = self.current_replicas(scale);
        let began = self.now;
        self.derivation.branch = Branch::NoMetrics;
        let computed = match self.compute_replicas_for_metrics(scale) {
            Ok(computed) => computed,
            Err(error) => {
                return Err(self.failed_compute(current_replicas, error));
            }
        };
        self.derivation.branch = Branch::Metrics;
        desired.error = computed.error;
        let mut metric = None;
        let mut timestamp = began;
        if computed.replicas > desired.replicas {
            desired.replicas = computed.replicas;
            metric = computed.metric;
            timestamp = computed.timestamp.unwrap_or(began);
        }
        self.derivation.winner = metric;
        self.derivation.proposal = Some(desired.replicas);
        if desired.replicas > current_replicas {
            let metric = metric.and_then(|index| self.hpa.spec.metrics.get(index));
            let name = MetricName { metric, rules: &self.config.rules };
            desired.reason = format!("{name} above target").into();
        }
        if desired.replicas < current_replicas {
            desired.reason = "All metrics below target".into();
        }
        desired.replicas = match &self.hpa.spec.behavior {
            None => {
                self.normalize_desired_replicas(current_replicas, desired.replicas, min_replicas)
            }
            Some(behavior) => self.normalize_desired_replicas_with_behaviors(
                behavior,
                current_replicas,
                desired.replicas,
                min_replicas,
            ),
        };
        let revived = current_replicas == 0 && min_replicas != 0 && scaled_to_zero;
        if revived && desired.replicas < min_replicas {
            desired.replicas = min_replicas;
            if desired.reason.as_str().is_empty() {
                desired.reason = "Current number of replicas below Spec.MinReplicas".into();
            }
        }
        desired.rescale = match self.config.rules.normalization.windows {
            Windows::Forbidden => self.should_scale(current_replicas, desired.replicas, timestamp),
            Windows::Recommendations => desired.replicas != current_replicas,
        };
        Ok(())
    }

    fn failed_compute(&mut self, current_replicas: i32, error: Text) -> Text {
        self.set_current_replicas_and_metrics_in_status(current_replicas);
        if let Err(error) = self.update_status_if_needed() {
            self.handle_error(error);
        }
        self.event(EventType::Warning, "FailedComputeMetricsReplicas", error.clone());
        let what = "failed to compute desired number of replicas based on listed metrics for";
        let text = format!("{what} {}: {error}", self.reference());
        self.derivation.error = Some(error);
        text.into()
    }

    /// The part of reconcileAutoscaler that writes the scale.
    fn rescale(
        &mut self,
        scale: &'a Scale,
        min_replicas: i32,
        desired: &Desired,
    ) -> Result<(), Text> {
        let current_replicas = self.current_replicas(scale);
        let Desired { replicas, reason, .. } = desired;
        if let Err(error) = self.update_scale(scale, *replicas) {
            let message = format!("New size: {replicas}; reason: {reason}; error: {error}");
            self.event(EventType::Warning, "FailedRescale", message.into());
            self.set_condition(
                ConditionType::AbleToScale,
                false,
                "FailedUpdateScale",
                format!("the HPA controller was unable to update the target scale: {error}"),
            );
            if self.config.rules.status.has_conditions {
                self.set_current_replicas_and_metrics_in_status(current_replicas);
                if let Err(error) = self.update_status_if_needed() {
                    self.handle_error(error);
                }
            }
            self.derivation.desired_replicas = *replicas;
            self.derivation.error = Some(Text::Shared(error.clone()));
            return Err(format!("failed to rescale {}: {error}", self.reference()).into());
        }
        self.set_condition(
            ConditionType::AbleToScale,
            true,
            "SucceededRescale",
            format!("the HPA controller was able to update the target scale to {replicas}"),
        );
        let message = format!("New size: {replicas}; reason: {reason}");
        self.event(EventType::Normal, "SuccessfulRescale", message.into());
        self.store_scale_event(current_replicas, *replicas);
        if self.config.rules.scale.at_zero != AtZero::DisabledUnlessScaledToZero {
            return Ok(());
        }
        let to_zero = current_replicas > 0 && *replicas == 0 && min_replicas == 0;
        if !self.config.gates.enabled(Gate::HpaScaleToZero) {
            self.remove_condition(ConditionType::ScaledToZero);
        } else if to_zero && self.has_object_or_external_metrics() {
            let message = "the HPA controller scaled the workload to zero";
            self.set_condition(ConditionType::ScaledToZero, true, "ScaledToZero", message);
        } else {
            let message = "the HPA controller did not scale the workload to zero";
            self.set_condition(ConditionType::ScaledToZero, false, "NotScaledToZero", message);
        }
        Ok(())
    }

    /// Updates the scale. It is read again after each rejected update; a conflict is retried.
    fn update_scale(&mut self, mut scale: &'a Scale, replicas: i32) -> Result<(), Arc<str>> {
        let attempts = self.config.rules.scale.update_attempts;
        let version = match self.config.rules.scale.in_extensions {
            true => "extensions/v1beta1",
            false => "autoscaling/v1",
        };
        let mut attempt = 1;
        loop {
            let outdated = self.outdated_scale(scale);
            let refused = self.input.update_scale.or(outdated.as_ref());
            let error = refused.map(|error| error.message.clone());
            let is_conflict = refused.is_some_and(is_conflict);
            let sent = Some(SentScale {
                api_version: version.into(),
                status_replicas: scale.status_replicas,
                selector: scale.selector.clone(),
            });
            self.record(ControllerAction::UpdateScale(ScaleWrite {
                resource: self.input.scale_resource.clone(),
                name: self.hpa.spec.scale_target_ref.name.clone(),
                replicas,
                sent,
                error: error.clone(),
            }));
            let Some(error) = error else {
                return Ok(());
            };
            if attempts > 1 {
                match self.read_scale() {
                    Ok(latest) => scale = latest,
                    Err(error) => {
                        let reference = self.reference();
                        let what = format!("error getting latest scale for {reference}");
                        let text = format!("{what} during conflict retry: {}", error.message);
                        self.handle_error(text.into());
                    }
                }
            }
            if attempt >= attempts || !is_conflict {
                return Err(error);
            }
            attempt += 1;
            self.wait(RETRY_WAIT);
        }
    }

    /// The API server's error for a write of this scale, if the target has changed since it was
    /// read.
    ///
    /// Upstream: apiserver, pkg/registry/generic/registry/store.go, Update
    fn outdated_scale(&self, scale: &Scale) -> Option<ApiError> {
        let present = self.input.scale_version?;
        if present == scale.resource_version {
            return None;
        }
        let asked = &**self.input.scale_resource;
        let name = &self.hpa.spec.scale_target_ref.name;
        let extensions = self.config.rules.scale.conflicts_in_extensions;
        Some(match (asked, extensions) {
            ("replicationcontrollers.extensions", _) => {
                // The handler turns every error of the storage into a conflict.
                let stored = outdated("replicationcontrollers", name);
                conflict("replicationcontrollers/scale.extensions", name, &stored.message)
            }
            ("deployments.apps", true) => outdated("deployments.extensions", name),
            ("replicasets.apps", true) => outdated("replicasets.extensions", name),
            _ => outdated(asked, name),
        })
    }
}
