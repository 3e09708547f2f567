//! Reconciles in the middle of which something else happens.
//!
//! The controller's inputs after that moment depend on what happened, and on what the controller
//! wrote before. So a reconcile is executed from its beginning for each thing that happens, on a
//! copy of the state, with the inputs that are known so far.

use super::view::{Hpas, View};
use super::{Simulation, Written, seen_by_controller};
use crate::engine::During;
use crate::model::hpa::{Decision, HpaChange, Interruption, RETRY_WAIT};
use crate::model::observation::{ControllerAction, Observation, Request};
use crate::model::time::Time;
use crate::trace::ApiAnswer;
use crate::world::{Change, Cluster};

/// Changes of the cluster in the middle of a reconcile.
#[derive(Clone, PartialEq, Debug)]
pub struct ChangesDuringReconcile {
    /// The number of requests of the reconcile before it.
    pub after: usize,
    /// The changes.
    pub changes: Vec<Change>,
}

/// A reconcile, and the API server's answers to the changes in the middle of it.
#[derive(Clone, Debug, Default)]
pub struct Reconciled {
    /// The decision, if there was something to reconcile.
    pub decision: Option<Decision>,
    /// The answers.
    pub answers: Vec<ApiAnswer>,
}

impl ChangesDuringReconcile {
    /// The first of several changes during a reconcile, after its first `before` requests
    /// and after the `earlier` reconciles of the step.
    pub(super) fn first(
        during: &[During],
        earlier: &[Observation],
        decision: &Decision,
        before: usize,
    ) -> Option<ChangesDuringReconcile> {
        let count = |tick: &Observation, kind: Request| {
            tick.requests().filter(|it| it.request() == Some(kind)).count()
        };
        let place = |it: &During| {
            let past: usize = earlier.iter().map(|tick| count(tick, it.after)).sum();
            decision.observation.requests_until(it.after, it.number.checked_sub(past)?)
        };
        let after = during.iter().filter_map(place).filter(|after| *after > before).min()?;
        let same = during.iter().filter(|it| place(it) == Some(after));
        Some(ChangesDuringReconcile {
            after,
            changes: same.flat_map(|it| it.apply.clone()).collect(),
        })
    }

    /// The time of a request of a reconcile: each attempt to write the scale after the first one
    /// follows a wait.
    #[must_use]
    pub fn time(tick: &Observation, after: usize) -> Time {
        let before = tick.requests().take(after);
        let attempts = before.filter(|it| matches!(it, ControllerAction::UpdateScale(_))).count();
        (1..attempts).fold(tick.at, |at, _| at + RETRY_WAIT)
    }
}

/// The cluster after something has happened.
struct Moment {
    after: usize,
    at: Time,
    cluster: Cluster,
    hpa: Vec<HpaChange>,
}

impl Simulation {
    /// Runs one reconcile that is due at `now`, like [`Simulation::sync`]. `next` returns what
    /// happens next, given the decision if nothing more happens, and the number of requests before
    /// the last thing that happened. Afterwards, the cluster contains all these changes, and the
    /// writes of the reconcile before the last of them.
    pub fn sync_while(
        &mut self,
        now: Time,
        next: &mut dyn FnMut(&Decision, usize) -> Option<ChangesDuringReconcile>,
    ) -> Reconciled {
        let index = self.peek(now);
        if let Some(served) = self.hpas.get_mut(index) {
            let hpa = seen_by_controller(self.caches.as_ref(), self.cluster.hpa(&served.name));
            served.map_target(hpa, &self.kinds, &self.rules);
        }
        let before = self.clone();
        // Its cluster is the one in which the controller writes.
        let mut present = self.clone();
        let mut moments: Vec<Moment> = Vec::new();
        let mut answers = Vec::new();
        loop {
            *self = before.clone();
            let Some(mut decision) = self.sync_moments(now, index, &moments) else {
                return Reconciled::default();
            };
            let committed = moments.last().map_or(0, |moment| moment.after);
            let Some(ChangesDuringReconcile { after, changes }) = next(&decision, committed) else {
                self.cluster = present.cluster;
                self.hpas = present.hpas;
                decision.committed = committed;
                return Reconciled { decision: Some(decision), answers };
            };
            let at = ChangesDuringReconcile::time(&decision.observation, after);
            let tick = &decision.observation;
            let target = self.reconciled_target(&tick.hpa);
            let Written { status, .. } = present.write(tick, at, committed..after, target);
            let mut hpa: Vec<HpaChange> =
                status.map(|_| HpaChange::Updated { generation: false }).into_iter().collect();
            for change in &changes {
                let applied = present.apply_to_cluster(change);
                hpa.extend(applied.hpa.map(|(_, change)| change));
                answers.extend(applied.answer.map(|outcome| ApiAnswer { at, outcome }));
            }
            moments.push(Moment { after, at, cluster: present.cluster.clone(), hpa });
        }
    }

    fn sync_moments(&mut self, now: Time, index: usize, moments: &[Moment]) -> Option<Decision> {
        let served = self.hpas.get(index)?;
        let reconciled = self.cluster.hpa(&served.name);
        let (first, rules) = (&self.targets[0], &self.rules);
        let views: Vec<View<'_>> = moments
            .iter()
            .map(|Moment { cluster, .. }| {
                let stored = cluster.hpa(&served.name);
                View::of(cluster, served, Hpas { reconciled, stored }, first, rules)
            })
            .collect();
        let interruptions: Vec<Interruption<'_>> = moments
            .iter()
            .zip(&views)
            .map(|(Moment { after, at, hpa, .. }, view)| Interruption {
                after: *after,
                input: view.input(*at),
                hpa: hpa.clone(),
            })
            .collect();
        let hpas = Hpas { reconciled, stored: reconciled };
        let view = View::of(&self.cluster, served, hpas, first, rules);
        let mut decision = Decision::default();
        self.controller
            .sync_interrupted(&view.input(now), &interruptions, &mut decision)
            .then_some(decision)
    }
}
