//! Events of the timeline that happen in the middle of reconciles.

use super::Note;
use crate::engine::model::ChangesDuringReconcile;
use crate::engine::{During, Step};
use crate::expect::{ExternalScale, Moment};
use crate::model::derivation;
use crate::model::hpa::Decision;
use crate::model::observation::{ControllerAction, Observation};
use crate::model::time::Time;
use crate::scenario::Scenario;
use crate::scenario::resolved::TimelineEvent;
use crate::world::{Change, World};

/// The events of a timeline that happen in the middle of reconciles, by their index.
pub(super) fn pending(scenario: &Scenario) -> Vec<usize> {
    let events = scenario.timeline.iter().enumerate();
    events.filter(|(_, event)| event.during.is_some()).map(|(index, _)| index).collect()
}

/// The note for an event that has not happened by the end of the scenario.
pub(super) fn never(event: &TimelineEvent) -> Note {
    let request = event.during.map(|during| during.to_string()).unwrap_or_default();
    Note {
        line: event.line,
        file: None,
        what: format!(
            "the action during a reconcile has no effect: from t={} on, no reconcile sends \
             {request}",
            event.at
        ),
        is_about_reading: false,
    }
}

/// The events that can happen in the middle of one reconcile.
pub(super) struct EventsDuring<'a> {
    pub(super) scenario: &'a Scenario,
    /// The time of the reconcile.
    pub(super) due: Time,
    /// The index of the target of its HPA.
    pub(super) target: usize,
    /// The earlier reconciles of the step.
    pub(super) earlier: &'a [Decision],
    pub(super) world: &'a mut World,
    /// The events that have not happened yet.
    pub(super) pending: &'a mut Vec<usize>,
    pub(super) external_scales: &'a mut Vec<ExternalScale>,
    /// The step, to which the events are added.
    pub(super) step: &'a mut Step,
    /// The events that happened.
    pub(super) during: Vec<derivation::ActionDuringReconcile>,
}

impl EventsDuring<'_> {
    /// The next events that happen at the same moment, if there are any. `decision` is the
    /// reconcile if nothing more happens, and `before` the number of its requests before the last
    /// event.
    pub(super) fn next(
        &mut self,
        decision: &Decision,
        before: usize,
    ) -> Option<ChangesDuringReconcile> {
        let tick = &decision.observation;
        let place = |index: &usize| {
            let event = &self.scenario.timeline[*index];
            let during = event.during.filter(|_| event.at <= self.due)?;
            tick.requests_until(during.after, usize::try_from(during.nth).ok()?)
        };
        let after = self.pending.iter().filter_map(place).filter(|after| *after > before).min()?;
        let now: Vec<usize> =
            self.pending.iter().copied().filter(|index| place(index) == Some(after)).collect();
        self.pending.retain(|index| !now.contains(index));

        let at = ChangesDuringReconcile::time(tick, after);
        for request in tick.requests().take(after).skip(before) {
            if let Some(replicas) = scaled_to(tick, request) {
                self.world.scaled(at, self.target, replicas);
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
            self.note(event);
            changes.extend(new);
        }
        self.add_to_step(tick, after, &changes);
        Some(ChangesDuringReconcile { after, changes })
    }

    /// Adds changes to the step, right after a request of the reconcile.
    fn add_to_step(&mut self, tick: &Observation, after: usize, changes: &[Change]) {
        let request = tick.requests().nth(after - 1).and_then(ControllerAction::request);
        let Some(kind) = request else { return };
        let earlier = self.earlier.iter().flat_map(|decision| decision.observation.requests());
        let requests = earlier.chain(tick.requests().take(after));
        let number = requests.filter(|request| request.request() == Some(kind)).count();
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

    fn note(&mut self, event: &TimelineEvent) {
        let after = event.during.map(|during| during.to_string()).unwrap_or_default();
        self.during
            .push(derivation::ActionDuringReconcile { after, action: event.action.to_string() });
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
