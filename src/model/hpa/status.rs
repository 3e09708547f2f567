//! Conditions, events and the status: what a reconcile leaves behind besides the scale.

use std::borrow::Cow;
use std::fmt::{self, Write};

use smallvec::SmallVec;

use super::go_format::without_arguments;
use super::reconcile::Reconcile;
use super::through_v1::metrics_through_v1;
use crate::model::api::{Condition, ConditionType, HpaStatus, MetricStatus, Text};
use crate::model::flags::Gate;
use crate::model::observation::{Event, EventType, StatusWrite};
use crate::model::time::Time;

/// The status that is worked on. What does not change is not copied: on most ticks nothing does.
pub(super) struct WorkingStatus<'a> {
    observed_generation: Option<i64>,
    last_scale_time: Option<Time>,
    current_replicas: Option<i32>,
    desired_replicas: i32,
    /// The metrics as they are computed; they count once they are set.
    pub(super) metrics: SmallVec<[Cow<'a, MetricStatus>; 1]>,
    metrics_set: bool,
    /// There are four types of conditions.
    conditions: SmallVec<[WorkingCondition<'a>; 4]>,
}

struct WorkingCondition<'a> {
    type_: ConditionType,
    status: bool,
    reason: Cow<'a, Text>,
    message: Cow<'a, Text>,
    last_transition_time: Time,
}

impl<'a> WorkingStatus<'a> {
    #[inline]
    pub(super) fn of(status: &'a HpaStatus) -> WorkingStatus<'a> {
        let conditions = status.conditions.iter().map(|condition| WorkingCondition {
            type_: condition.type_,
            status: condition.status,
            reason: Cow::Borrowed(&condition.reason),
            message: Cow::Borrowed(&condition.message),
            last_transition_time: condition.last_transition_time,
        });
        WorkingStatus {
            observed_generation: status.observed_generation,
            last_scale_time: status.last_scale_time,
            current_replicas: status.current_replicas,
            desired_replicas: status.desired_replicas,
            metrics: SmallVec::new(),
            metrics_set: false,
            conditions: conditions.collect(),
        }
    }

    /// The condition with its new status and reason. Its time moves only when its status does.
    #[inline]
    fn condition(
        &mut self,
        type_: ConditionType,
        status: bool,
        reason: &'static str,
        now: Time,
    ) -> &mut WorkingCondition<'a> {
        let found = self.conditions.iter().position(|condition| condition.type_ == type_);
        let index = found.unwrap_or_else(|| {
            self.conditions.push(WorkingCondition {
                type_,
                status,
                reason: Cow::Owned(reason.into()),
                message: Cow::Owned("".into()),
                last_transition_time: now,
            });
            self.conditions.len() - 1
        });
        let condition = &mut self.conditions[index];
        if condition.status != status {
            condition.last_transition_time = now;
            condition.status = status;
        }
        condition.reason = Cow::Owned(reason.into());
        condition
    }

    /// Sets a condition whose message is there already.
    pub(super) fn set_text(
        &mut self,
        type_: ConditionType,
        status: bool,
        reason: &'static str,
        message: &Text,
        now: Time,
    ) {
        let condition = self.condition(type_, status, reason, now);
        if *condition.message != *message {
            condition.message = Cow::Owned(message.clone());
        }
    }

    /// Adds the status of a metric.
    pub(super) fn add_metric(&mut self, metric: MetricStatus) {
        self.metrics.push(Cow::Owned(metric));
    }

    fn same_metrics(&self, old: &[MetricStatus]) -> bool {
        old.len() == self.metrics.len()
            && self
                .metrics
                .iter()
                .zip(old)
                .all(|(new, old)| std::ptr::eq::<MetricStatus>(&**new, old) || **new == *old)
    }

    /// Whether nothing changed: absent and zero sizes are the same; times are compared exactly (a
    /// new one has fractions of a second, a stored one has none).
    ///
    /// Upstream: apimachinery, equality.Semantic.DeepEqual
    fn semantic_deep_equal(&self, old: &HpaStatus) -> bool {
        old.current_replicas.unwrap_or(0) == self.current_replicas.unwrap_or(0)
            && old.desired_replicas == self.desired_replicas
            && old.observed_generation == self.observed_generation
            && old.last_scale_time == self.last_scale_time
            && (!self.metrics_set || self.same_metrics(&old.current_metrics))
            && old.conditions.len() == self.conditions.len()
            && old.conditions.iter().zip(&self.conditions).all(|(old, new)| {
                old.type_ == new.type_
                    && old.status == new.status
                    && old.last_transition_time == new.last_transition_time
                    && old.reason == *new.reason
                    && old.message == *new.message
            })
    }

    /// The status as the API stores it: times cross it in whole seconds.
    fn store(&mut self, old: &HpaStatus) -> HpaStatus {
        let conditions = self.conditions.drain(..).map(|condition| Condition {
            type_: condition.type_,
            status: condition.status,
            reason: condition.reason.into_owned(),
            message: condition.message.into_owned(),
            last_transition_time: condition.last_transition_time.truncate_to_second(),
        });
        HpaStatus {
            observed_generation: self.observed_generation,
            last_scale_time: self.last_scale_time.map(Time::truncate_to_second),
            current_replicas: self.current_replicas,
            desired_replicas: self.desired_replicas,
            current_metrics: if self.metrics_set {
                self.metrics.iter().map(|metric| (**metric).clone()).collect()
            } else {
                old.current_metrics.clone()
            },
            conditions: conditions.collect(),
        }
    }
}

impl Reconcile<'_> {
    /// Records an event on the HPA.
    pub(super) fn event(&mut self, type_: EventType, reason: &'static str, message: Text) {
        self.observation.events.push(Event { type_, reason: reason.into(), message });
    }

    /// Sets a condition, at the present instant. The message is always overwritten; a text that is
    /// the same already is kept, as formatting is dear.
    ///
    /// Upstream: horizontal.go, setCondition and setConditionInList
    pub(super) fn set_condition(
        &mut self,
        type_: ConditionType,
        status: bool,
        reason: &'static str,
        message: fmt::Arguments<'_>,
    ) {
        if !self.config.rules.has_conditions {
            return;
        }
        let condition = self.status.condition(type_, status, reason, self.now);
        match message.as_str() {
            Some(literal) => condition.message = Cow::Owned(literal.into()),
            None if says(&condition.message, message) => {}
            None => condition.message = Cow::Owned(message.to_string().into()),
        }
    }

    /// Sets ScalingActive to false. Some releases take the message for a format.
    pub(super) fn set_inactive(
        &mut self,
        reason: &'static str,
        message: fmt::Arguments<'_>,
        is_format: bool,
    ) {
        let type_ = ConditionType::ScalingActive;
        if is_format {
            let message = without_arguments(&message.to_string());
            self.set_condition(type_, false, reason, format_args!("{message}"));
        } else {
            self.set_condition(type_, false, reason, message);
        }
    }

    /// Sets a condition whose message is there already.
    pub(super) fn set_text_condition(
        &mut self,
        type_: ConditionType,
        status: bool,
        reason: &'static str,
        message: &Text,
    ) {
        if self.config.rules.has_conditions {
            self.status.set_text(type_, status, reason, message, self.now);
        }
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
    pub(super) fn set_current_replicas_and_metrics_in_status(&mut self, current_replicas: i32) {
        let desired_replicas = self.status.desired_replicas;
        self.set_status(current_replicas, desired_replicas, false);
        self.status.metrics_set = !self.config.rules.failure_keeps_metrics;
    }

    /// Upstream: horizontal.go, setStatus
    pub(super) fn set_status(
        &mut self,
        current_replicas: i32,
        desired_replicas: i32,
        rescale: bool,
    ) {
        // The API leaves out a size of zero here.
        self.status.current_replicas = Some(current_replicas).filter(|replicas| *replicas != 0);
        self.status.desired_replicas = desired_replicas;
        self.status.metrics_set = true;
        let generation = self.hpa.generation;
        let generations = self.config.gates.enabled(Gate::HpaGeneration);
        self.status.observed_generation = generations.then_some(generation);
        if rescale {
            self.status.last_scale_time = Some(self.now);
        }
    }

    /// Writes the status if it changed. An error is what upstream's function returns.
    ///
    /// Upstream: horizontal.go, updateStatusIfNeeded
    pub(super) fn update_status_if_needed(&mut self) -> Result<(), Text> {
        if self.config.rules.absent_totals_are_zero {
            self.status.metrics.iter_mut().for_each(|metric| {
                metrics_through_v1(std::slice::from_mut(metric.to_mut()));
            });
        }
        let always = self.config.rules.status_is_always_written;
        if !always && self.status.semantic_deep_equal(&self.hpa.status) {
            return Ok(());
        }
        self.update_status()
    }

    /// Upstream: horizontal.go, updateStatus
    fn update_status(&mut self) -> Result<(), Text> {
        let refused = self.input.update_status;
        let mut status = self.status.store(&self.hpa.status);
        if self.config.rules.stored_as_v1 && (refused.is_none() || !self.config.rules.serves_v2) {
            metrics_through_v1(&mut status.current_metrics);
        }
        if !self.config.rules.serves_v2 {
            // Older versions write a size of zero.
            status.current_replicas.get_or_insert(0);
        }
        self.observation.status_write =
            Some(StatusWrite { status, error: refused.map(|error| error.message.clone()) });
        let Some(error) = refused else { return Ok(()) };
        self.event(EventType::Warning, "FailedUpdateStatus", Text::Shared(error.message.clone()));
        Err(format!("failed to update status for {}: {}", self.hpa.name, error.message).into())
    }
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
