//! One reconcile of one HPA, from reading the scale to writing the status.

use std::sync::Arc;

use super::metric_name::MetricName;
use super::overwrite::Written;
use super::selectors::HpaSelectorStore;
use super::status::WorkingStatus;
use super::{Decision, Input, Memory, Target, TimestampedRecommendation};
use crate::model::api::{ApiError, ConditionType, Hpa, MetricSourceType, Scale, Text};
use crate::model::derivation::{Branch, Derivation};
use crate::model::flags::{FeatureGates, Flags, Gate};
use crate::model::observation::{EventType, Observation, Read, ScaleWrite};
use crate::model::rules::{AtZero, Rules, Windows};
use crate::model::time::{Span, Time};

/// The wait between attempts to update the scale. Upstream adds up to a tenth at random; the host
/// of upstream's code takes that chance out.
/// Upstream: client-go, util/retry, DefaultRetry
const RETRY_WAIT: Span = Span::from_millis(10);

/// How the controller is set up.
#[derive(Clone, Copy)]
pub(super) struct ControllerConfig<'a> {
    pub(super) rules: &'a Rules,
    pub(super) flags: &'a Flags,
    pub(super) gates: &'a FeatureGates,
    pub(super) wall_clock: bool,
}

/// One reconcile, as it goes on.
pub(super) struct Reconcile<'a> {
    pub(super) config: ControllerConfig<'a>,
    pub(super) memory: &'a mut Memory,
    pub(super) selectors: &'a mut HpaSelectorStore,
    pub(super) key: &'a str,
    pub(super) input: &'a Input<'a>,
    pub(super) hpa: &'a Hpa,
    pub(super) now: Time,
    /// What it sees after its first wait, after its second, and so on, as far as that is known.
    pub(super) later: &'a [Input<'a>],
    /// The end of the first wait after which it is not known what it sees.
    pub(super) waits_until: Option<Time>,
    pub(super) status: WorkingStatus<'a>,
    pub(super) observation: &'a mut Observation,
    pub(super) derivation: &'a mut Derivation,
    pub(super) written: Written,
    /// The time of the first item of the last answer of a metrics API.
    pub(super) metric_timestamp: Option<Time>,
}

/// What the metrics made of the size.
pub(super) struct Computed {
    /// The largest proposal.
    pub(super) replicas: i32,
    /// The metric that made it, by its index.
    pub(super) metric: Option<usize>,
    /// When that metric was taken.
    pub(super) timestamp: Option<Time>,
    /// Some metrics failed, but the others were good enough.
    pub(super) error: Option<Text>,
}

/// A size and why.
struct Desired {
    replicas: i32,
    reason: Text,
    rescale: bool,
    error: Option<Text>,
}

impl<'a> Reconcile<'a> {
    #[inline]
    pub(super) fn new(
        config: ControllerConfig<'a>,
        memory: &'a mut Memory,
        selectors: &'a mut HpaSelectorStore,
        key: &'a str,
        (input, hpa): (&'a Input<'a>, &'a Hpa),
        decision: &'a mut Decision,
    ) -> Reconcile<'a> {
        let Decision { observation, derivation, .. } = decision;
        observation.at = input.now;
        if !Arc::ptr_eq(&observation.hpa, &hpa.name) {
            observation.hpa = hpa.name.clone();
        }
        derivation.at = input.now;
        Reconcile {
            config,
            memory,
            selectors,
            key,
            input,
            hpa,
            now: input.now,
            later: &[],
            waits_until: None,
            status: WorkingStatus::of(&hpa.status),
            observation,
            derivation,
            written: Written::default(),
            metric_timestamp: None,
        }
    }

    /// Reconciles, and hands the error that it ends with to the error log. Gives the instant at
    /// which it ends, and whether it succeeded.
    pub(super) fn run(&mut self) -> (Time, bool) {
        let result = self.reconcile_autoscaler();
        let succeeded = result.is_ok();
        if let Err(error) = result {
            self.handle_error(error);
        }
        self.forget_the_rest();
        self.observation.took = self.now - self.observation.at;
        (self.now, succeeded)
    }

    /// Time passes. What is seen then is what is known of it, or else what was seen before.
    pub(super) fn wait(&mut self, span: Span) {
        self.now = self.now + span;
        match self.later.split_first() {
            Some((input, later)) => {
                self.input = input;
                self.later = later;
            }
            None => _ = self.waits_until.get_or_insert(self.now),
        }
    }

    /// A metrics API is asked, and answers when it does.
    pub(super) fn await_metrics(&mut self) {
        if let Some(span) = self.input.slow_metrics {
            self.wait(span);
        }
    }

    fn handle_error(&mut self, error: Text) {
        self.observation.errors.push(error);
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
            format_args!("the HPA controller was able to get the target's current scale"),
        );
        let current_replicas = self.current_replicas(scale);
        if self.config.rules.windows == Windows::Recommendations {
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
            self.rescale(current_replicas, min_replicas, &desired)?;
        } else {
            desired.replicas = current_replicas;
        }
        self.derivation.desired_replicas = desired.replicas;
        self.derivation.rescaled = desired.rescale;
        self.set_status(current_replicas, desired.replicas, desired.rescale);
        self.update_status_if_needed()?;
        desired.error.map_or(Ok(()), Err)
    }

    /// Reads the target's scale.
    ///
    /// Upstream: horizontal.go, reconcileAutoscaler (its first part) and scaleForResourceMappings
    fn get_scale(&mut self) -> Result<&'a Scale, Text> {
        // By its kind alone, a scale is looked for without a version or a mapping.
        let mapped = !self.config.rules.scales_of_extensions;
        if mapped && let Err(error) = self.target().api_version.clone() {
            let text = format!("invalid API version in scale target reference: {error}");
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

    /// The size that counts.
    pub(super) fn current_replicas(&self, scale: &Scale) -> i32 {
        match self.config.rules.uses_spec_replicas {
            true => scale.replicas,
            false => scale.status_replicas,
        }
    }

    /// What the spec says of the target; parsed once.
    fn target(&mut self) -> &Target {
        let spec = &self.hpa.spec;
        let cache = &mut self.memory.cache.target;
        if cache.as_ref().is_some_and(|(of, _)| !Arc::ptr_eq(of, spec)) {
            *cache = None;
        }
        let (_, target) = cache.get_or_insert_with(|| {
            let target = &spec.scale_target_ref;
            let api_version = parse_group_version(target.api_version.as_deref().unwrap_or(""));
            let name = target.name.as_str().into();
            (spec.clone(), Target { name, api_version: api_version.map(|_| ()) })
        });
        target
    }

    /// One GET of the scale.
    fn read_scale(&mut self) -> Result<&'a Scale, &'a ApiError> {
        let answer = match self.input.scale {
            Ok(scale) => Ok((scale.replicas, scale.status_replicas)),
            Err(error) => Err(error.message.clone()),
        };
        let resource = self.input.scale_resource;
        let name = Arc::as_ptr(&self.target().name);
        match self.last_read() {
            Some(Read::Scale { resource: of, name: named, answer: last })
                if Arc::ptr_eq(of, resource) && std::ptr::eq(Arc::as_ptr(named), name) =>
            {
                *last = answer;
                self.keep_read();
            }
            _ => {
                let name = self.target().name.clone();
                self.record(Read::Scale { resource: resource.clone(), name, answer });
            }
        }
        self.input.scale
    }

    fn failed_get_scale(&mut self, error: Text, text: String) -> Text {
        self.event(EventType::Warning, "FailedGetScale", error.clone());
        self.set_condition(
            ConditionType::AbleToScale,
            false,
            "FailedGetScale",
            format_args!(
                "the HPA controller was unable to get the target's current scale: {error}"
            ),
        );
        self.derivation.error = Some(error);
        if !self.config.rules.has_conditions {
            return text.into();
        }
        let written = self.update_status_if_needed();
        if let Err(error) = written
            && self.config.rules.scale_failure_tells_status_error
        {
            self.handle_error(error);
        }
        text.into()
    }

    /// Upstream: horizontal.go, recordInitialRecommendation
    fn record_initial_recommendation(&mut self, current_replicas: i32) {
        if self.memory.recommendations.is_empty() {
            // A real clock is read again later in the reconcile, and a window of no time has then
            // passed already.
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

    /// The part of reconcileAutoscaler that decides on a size.
    fn desired_replicas(
        &mut self,
        scale: &Scale,
        min_replicas: i32,
        desired: &mut Desired,
    ) -> Result<(), Text> {
        let current_replicas = self.current_replicas(scale);
        let max_replicas = self.hpa.spec.max_replicas;
        let told = self.config.rules.at_zero == AtZero::DisabledUnlessScaledToZero;
        let zero_enabled = self.config.gates.enabled(Gate::HpaScaleToZero);
        let scaled_to_zero = told && zero_enabled && self.get_scaled_to_zero_condition_status();
        if scale.replicas == 0 {
            // Upstream: horizontal.go, shouldComputeMetricsForZeroReplicas
            let computed = match self.config.rules.at_zero {
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
                    format_args!(
                        "scaling is disabled since the replica count of the target is zero"
                    ),
                );
                if told && !zero_enabled {
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
            desired.reason = match metric {
                Some(metric) => {
                    let name = MetricName { metric, rules: self.config.rules };
                    format!("{name} above target").into()
                }
                None => " above target".into(),
            };
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
        desired.rescale = match self.config.rules.windows {
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

    /// The part of reconcileAutoscaler that changes the size.
    fn rescale(
        &mut self,
        current_replicas: i32,
        min_replicas: i32,
        desired: &Desired,
    ) -> Result<(), Text> {
        let Desired { replicas, reason, .. } = desired;
        if let Err(error) = self.update_scale(*replicas) {
            let message = format!("New size: {replicas}; reason: {reason}; error: {error}");
            self.event(EventType::Warning, "FailedRescale", message.into());
            self.set_condition(
                ConditionType::AbleToScale,
                false,
                "FailedUpdateScale",
                format_args!("the HPA controller was unable to update the target scale: {error}"),
            );
            if self.config.rules.has_conditions {
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
            format_args!("the HPA controller was able to update the target scale to {replicas}"),
        );
        let message = format!("New size: {replicas}; reason: {reason}");
        self.event(EventType::Normal, "SuccessfulRescale", message.into());
        self.store_scale_event(current_replicas, *replicas);
        if self.config.rules.at_zero != AtZero::DisabledUnlessScaledToZero {
            return Ok(());
        }
        let to_zero = current_replicas > 0 && *replicas == 0 && min_replicas == 0;
        if !self.config.gates.enabled(Gate::HpaScaleToZero) {
            self.remove_condition(ConditionType::ScaledToZero);
        } else if to_zero && self.has_object_or_external_metrics() {
            let message = format_args!("the HPA controller scaled the workload to zero");
            self.set_condition(ConditionType::ScaledToZero, true, "ScaledToZero", message);
        } else {
            let message = format_args!("the HPA controller did not scale the workload to zero");
            self.set_condition(ConditionType::ScaledToZero, false, "NotScaledToZero", message);
        }
        Ok(())
    }

    /// Updates the scale, and reads it anew after each refusal; a conflict is tried again.
    fn update_scale(&mut self, replicas: i32) -> Result<(), Arc<str>> {
        let attempts = self.config.rules.scale_update_attempts;
        let mut attempt = 1;
        loop {
            let refused = self.input.update_scale;
            let error = refused.map(|error| error.message.clone());
            let (resource, name) = (self.input.scale_resource.clone(), self.target().name.clone());
            self.observation.scale_writes.push(ScaleWrite { resource, name, replicas, error });
            let Some(refused) = refused else {
                return Ok(());
            };
            if attempts > 1
                && let Err(error) = self.read_scale()
            {
                let reference = self.reference();
                let what = format!("error getting latest scale for {reference}");
                let text = format!("{what} during conflict retry: {}", error.message);
                self.handle_error(text.into());
            }
            if attempt >= attempts || !is_conflict(refused) {
                return Err(refused.message.clone());
            }
            attempt += 1;
            self.wait(RETRY_WAIT);
        }
    }
}

/// Group and version, of which only the error matters here: the caller knows the resource.
///
/// Upstream: apimachinery, pkg/runtime/schema, ParseGroupVersion
pub(super) fn parse_group_version(text: &str) -> Result<(&str, &str), String> {
    match text.split_once('/') {
        None => Ok(("", text)),
        Some((_, version)) if version.contains('/') => {
            Err(format!("unexpected GroupVersion string: {text}"))
        }
        Some(parts) => Ok(parts),
    }
}

/// Upstream: apimachinery, pkg/api/errors, IsConflict
pub(super) fn is_conflict(error: &ApiError) -> bool {
    const KNOWN: [&str; 18] = [
        "NotFound",
        "Unauthorized",
        "Forbidden",
        "AlreadyExists",
        "Gone",
        "Invalid",
        "ServerTimeout",
        "StoreReadError",
        "Timeout",
        "TooManyRequests",
        "BadRequest",
        "MethodNotAllowed",
        "NotAcceptable",
        "RequestEntityTooLarge",
        "UnsupportedMediaType",
        "InternalError",
        "Expired",
        "ServiceUnavailable",
    ];
    error.reason == "Conflict" || (error.code == 409 && !KNOWN.contains(&error.reason.as_str()))
}
