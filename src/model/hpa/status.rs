//! Conditions, events and the status: what a reconcile leaves behind besides the scale.

use std::fmt::{self, Write};

use super::reconcile::Reconcile;
use crate::model::api::{Condition, ConditionType, HpaStatus, MetricStatus, Text};
use crate::model::flags::Gate;
use crate::model::observation::{Event, EventType, StatusWrite};
use crate::model::time::Time;

impl Reconcile<'_> {
    /// Records an event on the HPA.
    pub(super) fn event(&mut self, type_: EventType, reason: &'static str, message: Text) {
        self.observation.events.push(Event { type_, reason: reason.into(), message });
    }

    /// Sets a condition, at the present instant.
    ///
    /// Upstream: horizontal.go, setCondition
    pub(super) fn set_condition(
        &mut self,
        type_: ConditionType,
        status: bool,
        reason: &'static str,
        message: fmt::Arguments<'_>,
    ) {
        let conditions = &mut self.status.conditions;
        set_condition_in_list(conditions, type_, status, reason, message, self.now);
    }

    /// Sets a condition whose message is there already.
    pub(super) fn set_text_condition(
        &mut self,
        type_: ConditionType,
        status: bool,
        reason: &'static str,
        message: Text,
    ) {
        let conditions = &mut self.status.conditions;
        condition_in_list(conditions, type_, status, reason, self.now).message = message;
    }

    /// Upstream: horizontal.go, removeCondition
    pub(super) fn remove_condition(&mut self, type_: ConditionType) {
        self.status.conditions.retain(|condition| condition.type_ != type_);
    }

    /// Upstream: horizontal.go, getScaledToZeroConditionStatus
    pub(super) fn get_scaled_to_zero_condition_status(&self) -> bool {
        let conditions = &self.status.conditions;
        let found = conditions.iter().find(|it| it.type_ == ConditionType::ScaledToZero);
        found.is_some_and(|condition| condition.status)
    }

    /// Upstream: horizontal.go, setCurrentReplicasAndMetricsInStatus
    pub(super) fn set_current_replicas_and_metrics_in_status(
        &mut self,
        current_replicas: i32,
        metrics: Vec<MetricStatus>,
    ) {
        let desired_replicas = self.status.desired_replicas;
        self.set_status(current_replicas, desired_replicas, metrics, false);
    }

    /// Upstream: horizontal.go, setStatus
    pub(super) fn set_status(
        &mut self,
        current_replicas: i32,
        desired_replicas: i32,
        metrics: Vec<MetricStatus>,
        rescale: bool,
    ) {
        // The API leaves out a size of zero here.
        self.status.current_replicas = Some(current_replicas).filter(|replicas| *replicas != 0);
        self.status.desired_replicas = desired_replicas;
        self.metrics = Some(metrics);
        let generation = self.hpa.generation;
        let generations = self.knobs.gates.enabled(Gate::HpaGeneration);
        self.status.observed_generation = generations.then_some(generation);
        if rescale {
            self.status.last_scale_time = Some(self.now);
        }
    }

    /// Writes the status if it changed. An error is what upstream's function returns.
    ///
    /// Upstream: horizontal.go, updateStatusIfNeeded
    pub(super) fn update_status_if_needed(&mut self) -> Result<(), Text> {
        let old = &self.hpa.status;
        let same_metrics = self.metrics.as_ref().is_none_or(|new| *new == old.current_metrics);
        if same_metrics && semantic_deep_equal(old, &self.status) {
            return Ok(());
        }
        let metrics = self.metrics.take();
        self.status.current_metrics = metrics.unwrap_or_else(|| old.current_metrics.clone());
        self.update_status()
    }

    /// Upstream: horizontal.go, updateStatus
    fn update_status(&mut self) -> Result<(), Text> {
        let refused = self.input.update_status;
        self.observation.status_write = Some(StatusWrite {
            status: as_stored(std::mem::take(&mut self.status)),
            error: refused.map(|error| error.message.clone()),
        });
        let Some(error) = refused else { return Ok(()) };
        self.event(EventType::Warning, "FailedUpdateStatus", Text::Shared(error.message.clone()));
        Err(format!("failed to update status for {}: {}", self.hpa.name, error.message).into())
    }
}

/// Times cross the API in whole seconds.
fn as_stored(mut status: HpaStatus) -> HpaStatus {
    status.last_scale_time = status.last_scale_time.map(Time::truncate_to_second);
    for condition in &mut status.conditions {
        condition.last_transition_time = condition.last_transition_time.truncate_to_second();
    }
    status
}

/// Whether nothing but the metrics changed (those the caller compares): absent and zero sizes are
/// the same; times are compared exactly (a new one has fractions of a second, a stored one has
/// none).
///
/// Upstream: apimachinery, equality.Semantic.DeepEqual
fn semantic_deep_equal(old: &HpaStatus, new: &HpaStatus) -> bool {
    old.current_replicas.unwrap_or(0) == new.current_replicas.unwrap_or(0)
        && old.desired_replicas == new.desired_replicas
        && old.observed_generation == new.observed_generation
        && old.last_scale_time == new.last_scale_time
        && old.conditions == new.conditions
}

/// The message is always overwritten; a text that is the same already is kept, as formatting is
/// dear.
///
/// Upstream: horizontal.go, setConditionInList
fn set_condition_in_list(
    conditions: &mut Vec<Condition>,
    type_: ConditionType,
    status: bool,
    reason: &'static str,
    message: fmt::Arguments<'_>,
    now: Time,
) {
    let condition = condition_in_list(conditions, type_, status, reason, now);
    match message.as_str() {
        Some(literal) => condition.message = literal.into(),
        None if says(&condition.message, message) => {}
        None => condition.message = message.to_string().into(),
    }
}

/// The condition with its new status and reason. Its time moves only when its status does.
fn condition_in_list<'a>(
    conditions: &'a mut Vec<Condition>,
    type_: ConditionType,
    status: bool,
    reason: &'static str,
    now: Time,
) -> &'a mut Condition {
    let found = conditions.iter().position(|condition| condition.type_ == type_);
    let index = found.unwrap_or_else(|| {
        let (reason, message) = (reason.into(), "".into());
        conditions.push(Condition { type_, status, reason, message, last_transition_time: now });
        conditions.len() - 1
    });
    let condition = &mut conditions[index];
    if condition.status != status {
        condition.last_transition_time = now;
        condition.status = status;
    }
    condition.reason = reason.into();
    condition
}

/// Whether a text is what this formats to, without formatting it.
fn says(text: &Text, message: fmt::Arguments<'_>) -> bool {
    struct Expected<'a>(&'a str);
    impl Write for Expected<'_> {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            self.0 = self.0.strip_prefix(part).ok_or(fmt::Error)?;
            Ok(())
        }
    }
    let mut expected = Expected(text.as_str());
    expected.write_fmt(message).is_ok() && expected.0.is_empty()
}
