//! Conditions, events and the status: all writes of a reconcile apart from the scale.

use super::Reconcile;
use crate::api::{ApiError, ConditionType, HpaCondition, HpaStatus, Text};
use crate::flags::Gate;
use crate::hpa::admission::metrics_through_v1;
use crate::hpa::apimachinery::outdated;
use crate::hpa::go::without_arguments;
use crate::observation::{ControllerAction, Event, EventType, StatusWrite};
use crate::time::Time;

/// Sets a condition in a list. Its time changes only if its status changes.
///
/// Upstream: horizontal.go, setConditionInList
fn set_condition_in_list(
    conditions: &mut Vec<HpaCondition>,
    type_: ConditionType,
    status: bool,
    reason: &'static str,
    message: Text,
    now: Time,
) {
    let reason = reason.into();
    let Some(condition) = conditions.iter_mut().find(|condition| condition.type_ == type_) else {
        conditions.push(HpaCondition { type_, status, reason, message, last_transition_time: now });
        return;
    };
    if condition.status != status {
        condition.last_transition_time = now;
    }
    condition.status = status;
    condition.reason = reason;
    condition.message = message;
}

/// Returns true if nothing changed. Absent and zero replicas are equal. Times are compared exactly:
/// a new time has fractions of a second, a stored one does not.
///
/// Upstream: apimachinery, equality.Semantic.DeepEqual
fn semantic_deep_equal(old: &HpaStatus, new: &HpaStatus) -> bool {
    old.current_replicas.unwrap_or(0) == new.current_replicas.unwrap_or(0)
        && old.desired_replicas == new.desired_replicas
        && old.observed_generation == new.observed_generation
        && old.last_scale_time == new.last_scale_time
        && old.current_metrics == new.current_metrics
        && old.conditions == new.conditions
}

/// The status as the API stores it, with times in whole seconds.
fn stored(status: &HpaStatus) -> HpaStatus {
    let mut status = status.clone();
    status.last_scale_time = status.last_scale_time.map(Time::truncate_to_second);
    for condition in &mut status.conditions {
        condition.last_transition_time = condition.last_transition_time.truncate_to_second();
    }
    status
}

impl Reconcile<'_> {
    /// Records an event on the HPA.
    pub(crate) fn event(&mut self, type_: EventType, reason: &'static str, message: Text) {
        let event = Event { hpa: self.hpa.name.clone(), type_, reason: reason.into(), message };
        self.observation.push(ControllerAction::Event(event));
        self.event_times.push(self.now);
    }

    /// Sets a condition.
    ///
    /// Upstream: horizontal.go, setCondition
    pub(crate) fn set_condition(
        &mut self,
        type_: ConditionType,
        status: bool,
        reason: &'static str,
        message: impl Into<Text>,
    ) {
        if self.config.rules.status.has_conditions {
            let conditions = &mut self.status.conditions;
            set_condition_in_list(conditions, type_, status, reason, message.into(), self.now);
        }
    }

    /// Sets ScalingActive to false. Some releases use the message as a format string.
    pub(crate) fn set_inactive(&mut self, reason: &'static str, message: String, is_format: bool) {
        let message = if is_format { without_arguments(&message) } else { message };
        self.set_condition(ConditionType::ScalingActive, false, reason, message);
    }

    /// Upstream: horizontal.go, removeCondition
    pub(crate) fn remove_condition(&mut self, type_: ConditionType) {
        self.status.conditions.retain(|condition| condition.type_ != type_);
    }

    /// Upstream: horizontal.go, getScaledToZeroConditionStatus
    pub(crate) fn get_scaled_to_zero_condition_status(&self) -> bool {
        let conditions = &self.status.conditions;
        let found = conditions.iter().find(|it| it.type_ == ConditionType::ScaledToZero);
        found.is_some_and(|condition| condition.status)
    }

    /// Sets the status of a reconcile that failed.
    ///
    /// Upstream: horizontal.go, setCurrentReplicasAndMetricsInStatus
    pub(crate) fn set_current_replicas_and_metrics_in_status(&mut self, current_replicas: i32) {
        if self.config.rules.status.failure_keeps_metrics {
            self.status.current_metrics.clone_from(&self.hpa.status.current_metrics);
        }
        self.set_status(current_replicas, self.status.desired_replicas, false);
    }

    /// Upstream: horizontal.go, setStatus
    pub(crate) fn set_status(
        &mut self,
        current_replicas: i32,
        desired_replicas: i32,
        rescale: bool,
    ) {
        // The API omits zero replicas.
        self.status.current_replicas = Some(current_replicas).filter(|replicas| *replicas != 0);
        self.status.desired_replicas = desired_replicas;
        if self.config.rules.metrics.absent_totals_are_zero {
            metrics_through_v1(&mut self.status.current_metrics);
        }
        let has_generation = self.config.gates.enabled(Gate::HpaGeneration);
        self.status.observed_generation = has_generation.then_some(self.hpa.generation);
        if rescale {
            self.status.last_scale_time = Some(self.now);
        }
    }

    /// Writes the status if it changed. Returns the error that upstream's function returns.
    ///
    /// Upstream: horizontal.go, updateStatusIfNeeded
    pub(crate) fn update_status_if_needed(&mut self) -> Result<(), Text> {
        let always = self.config.rules.status.is_always_written;
        if !always && semantic_deep_equal(&self.hpa.status, &self.status) {
            return Ok(());
        }
        self.update_status()
    }

    /// Upstream: horizontal.go, updateStatus
    fn update_status(&mut self) -> Result<(), Text> {
        let admission = &self.config.rules.admission;
        let outdated = self.outdated_hpa();
        let refused = self.input.update_status.or(outdated.as_ref());
        let mut status = stored(&self.status);
        if admission.stored_as_v1 && (refused.is_none() || !admission.serves_v2) {
            metrics_through_v1(&mut status.current_metrics);
        }
        if !admission.serves_v2 {
            // Older versions of the API write zero replicas.
            status.current_replicas.get_or_insert(0);
        }
        let error = refused.map(|error| error.message.clone());
        let version = if admission.serves_v2 { "autoscaling/v2" } else { "autoscaling/v1" };
        let api_version = Some(version.into());
        let write = StatusWrite { name: self.hpa.name.clone(), api_version, status, error };
        let error = write.error.clone();
        self.record(ControllerAction::UpdateStatus(Box::new(write)));
        let Some(error) = error else { return Ok(()) };
        let text = format!("failed to update status for {}: {error}", self.hpa.name);
        self.event(EventType::Warning, "FailedUpdateStatus", Text::Shared(error));
        Err(text.into())
    }

    /// The API server's error for a write of the HPA's status, if the HPA has changed or is gone
    /// since the reconcile began.
    fn outdated_hpa(&self) -> Option<ApiError> {
        const RESOURCE: &str = "horizontalpodautoscalers.autoscaling";
        let name = &self.hpa.name;
        match self.input.hpa_version {
            None => Some(ApiError {
                code: 404,
                reason: "NotFound".to_owned(),
                message: format!("{RESOURCE} {name:?} not found").into(),
            }),
            Some(present) if present != self.hpa.resource_version => Some(outdated(RESOURCE, name)),
            Some(_) => None,
        }
    }
}
