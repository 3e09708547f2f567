//! Events of the timeline that happen in the middle of reconciles.

use std::sync::Arc;

use super::Note;
use crate::engine::model::{ChangesDuringReconcile, InterruptedReconcile};
use crate::engine::{During, Step};
use crate::expect::{ExternalScale, Moment};
use crate::world::{Change, World};
use kube_autoscaler_models::derivation::ActionDuringReconcile;
use kube_autoscaler_models::hpa::Decision;
use kube_autoscaler_models::observation::{ControllerAction, Observation};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::TimelineEvent;

/// The events of a timeline that happen in the middle of reconciles, by their index.
pub fn pending(scenario: &Scenario) -> Vec<usize> {
    let events = scenario.timeline.iter().enumerate();
    events.filter(|(_, event)| event.during.is_some()).map(|(index, _)| index).collect()
}

/// The note for an event that has not happened by the end of the scenario.
pub fn never(event: &TimelineEvent) -> Note {
    let request = event.during.as_ref().map(ToString::to_string).unwrap_or_default();
    let hpa = event.during.as_ref().and_then(|during| during.hpa.as_ref());
    let of = hpa.map(|hpa| format!(" of {hpa}")).unwrap_or_default();
    Note {
        line: event.line,
        file: None,
        what: format!(
            "the action during a reconcile has no effect: from t={} on, no reconcile{of} sends \
             {request}",
            event.at
        ),
        is_about_reading: false,
    }
}

/// The reconciles of a step before the current one.
#[derive(Clone, Copy)]
pub(super) struct EarlierReconciles<'a> {
    /// The reconciles in progress at the beginning of the step, up to their waits.
    pub begun: &'a [Observation],
    /// The reconciles that ended in the step.
    pub ended: &'a [Decision],
}

/// The events that can happen in the middle of one reconcile.
pub(super) struct EventsDuring<'a> {
    pub scenario: &'a Scenario,
    pub earlier: EarlierReconciles<'a>,
    pub world: &'a mut World,
    /// The events that have not happened yet.
    pub pending: &'a mut Vec<usize>,
    pub external_scales: &'a mut Vec<ExternalScale>,
    /// The step, to which the events are added.
    pub step: &'a mut Step,
    /// The events that happened, each with the HPA that was reconciled.
    pub happened: &'a mut Vec<Happened>,
    /// The first event that changes an HPA whose own reconcile waits, by its index.
    pub overlap: Option<usize>,
}

/// An event that happened during a reconcile that has not ended.
#[derive(Clone)]
pub(super) struct Happened {
    /// The HPA that is reconciled.
    hpa: Arc<str>,
    action: ActionDuringReconcile,
}

/// Moves the events during a reconcile to its derivation.
pub(super) fn attach(happened: &mut Vec<Happened>, decision: &mut Decision) {
    let Decision { observation, derivation, .. } = decision;
    let changes = happened.extract_if(.., |it| it.hpa == observation.hpa);
    derivation.during.extend(changes.map(|it| it.action));
}

impl EventsDuring<'_> {
    /// The next events that happen at the same moment of the reconcile, if there are any.
    pub(super) fn next(
        &mut self,
        reconcile: &InterruptedReconcile<'_>,
    ) -> Option<ChangesDuringReconcile> {
        let InterruptedReconcile { tick, before, target, others } = *reconcile;
        let place = |index: &usize| {
            let event = &self.scenario.timeline[*index];
            let during = event.during.as_ref().filter(|_| event.at <= tick.at)?;
            let is_of_hpa = during.hpa.as_ref().is_none_or(|hpa| *hpa == tick.hpa);
            let nth = usize::try_from(during.nth).ok().filter(|_| is_of_hpa)?;
            tick.requests_until(during.after, nth)
        };
        let after = self.pending.iter().filter_map(place).filter(|after| *after > before).min()?;
        let now: Vec<usize> =
            self.pending.iter().copied().filter(|index| place(index) == Some(after)).collect();
        self.pending.retain(|index| !now.contains(index));

        let at = ChangesDuringReconcile::time(tick, after);
        for request in tick.requests().take(after).skip(before) {
            if let Some(replicas) = scaled_to(tick, request) {
                self.world.scaled(at, target.unwrap_or(0), replicas);
            }
        }
        let is_after_write =
            tick.requests().take(after).any(|request| scaled_to(tick, request).is_some());
        let moment = if is_after_write { Moment::AfterWrite } else { Moment::BeforeWrite };
        let mut changes = Vec::new();
        for index in now {
            let event = &self.scenario.timeline[index];
            let new = self.world.happens(index, at);
            self.note_scales(event, &new, ExternalScale { at, target: 0, replicas: 0, moment });
            self.note(event, tick);
            let waits = |change: &Change| {
                change.hpa_name().is_some_and(|name| others.iter().any(|it| *it.hpa == *name))
            };
            if new.iter().any(waits) {
                self.overlap.get_or_insert(index);
            }
            changes.extend(new);
        }
        self.add_to_step(reconcile, after, &changes);
        Some(ChangesDuringReconcile { after, changes })
    }

    /// Adds changes to the step, right after a request of the reconcile.
    fn add_to_step(
        &mut self,
        reconcile: &InterruptedReconcile<'_>,
        after: usize,
        changes: &[Change],
    ) {
        let InterruptedReconcile { tick, others, .. } = *reconcile;
        let request = tick.requests().nth(after - 1).and_then(ControllerAction::request);
        let Some(kind) = request else { return };
        let EarlierReconciles { begun, ended } = self.earlier;
        let earlier = ended.iter().map(|decision| &decision.observation);
        let sent = earlier.chain(others).flat_map(Observation::requests);
        let sent = sent.chain(tick.requests().take(after));
        let sent = sent.filter(|it| it.request() == Some(kind)).count();
        // They were sent in earlier steps.
        let begun = begun.iter().flat_map(Observation::requests);
        let begun = begun.filter(|it| it.request() == Some(kind)).count();
        let number = sent - begun;
        self.step.during.push(During { after: kind, number, apply: changes.to_vec() });
    }

    /// Notes the replicas that an event set on a target.
    fn note_scales(&mut self, event: &TimelineEvent, changes: &[Change], scale: ExternalScale) {
        let target = self.scenario.target_of(event);
        let replicas = self.world.replicas(target);
        let is_set = |change: &Change| match change {
            Change::SetScale(set) => set.replicas == Some(replicas),
            _ => false,
        };
        if event.action.sets_replicas() && changes.iter().any(is_set) {
            self.external_scales.push(ExternalScale { target, replicas, ..scale });
        }
    }

    fn note(&mut self, event: &TimelineEvent, tick: &Observation) {
        let after = event.during.as_ref().map(ToString::to_string).unwrap_or_default();
        let action = ActionDuringReconcile { after, action: event.action.to_string() };
        self.happened.push(Happened { hpa: tick.hpa.clone(), action });
    }
}

/// The replicas that a request wrote to the target of its reconcile, if it did.
fn scaled_to(tick: &Observation, request: &ControllerAction) -> Option<i32> {
    match request {
        ControllerAction::UpdateScale(write)
            if write.error.is_none() && !tick.is_elsewhere(write) =>
        {
            Some(write.replicas)
        }
        _ => None,
    }
}
