//! Reconciles during which an action of the scenario happens.
//!
//! The controller's inputs after that moment depend on what happened, and on what the controller
//! wrote before. So a reconcile is executed from its beginning for each thing that happens, on a
//! copy of the state, with the inputs that are known so far.

use std::ops::Range;

use super::view::{Hpas, View};
use super::{DueReconcile, Simulation, Written};
use crate::engine::{During, Step};
use crate::trace::ApiAnswer;
use crate::world::{Change, Cluster};
use kube_autoscaler_models::hpa::{
    ChangedHpa, Decision, HpaChange, Interruption, RETRY_WAIT, WorkItemResult,
};
use kube_autoscaler_models::observation::{ControllerAction, Observation, Request};
use kube_autoscaler_models::time::Time;

/// Changes of the cluster during a reconcile.
#[derive(Clone, PartialEq, Debug)]
pub struct ChangesDuringReconcile {
    /// The number of requests of the reconcile before the changes.
    pub after: usize,
    pub changes: Vec<Change>,
}

impl ChangesDuringReconcile {
    /// The time after the first `after` requests of a reconcile: each attempt to write the scale
    /// except the first one follows a wait.
    #[must_use]
    pub(crate) fn time(tick: &Observation, after: usize) -> Time {
        let before = tick.requests().take(after);
        let attempts = before.filter(|it| matches!(it, ControllerAction::UpdateScale(_))).count();
        (1..attempts).fold(tick.at, |at, _| at + RETRY_WAIT)
    }
}

/// A reconcile in the middle of which something can happen.
#[derive(Clone, Copy, Debug)]
pub struct InterruptedReconcile<'a> {
    /// The reconcile if nothing more happens. If it has to wait, only the part before the wait.
    pub tick: &'a Observation,
    /// The number of its requests before the last changes, or before its last wait. Further changes
    /// can only happen after later requests.
    pub before: usize,
    /// The index of the target of its HPA.
    pub target: Option<usize>,
    /// The other reconciles that have begun and not ended, up to their current waits.
    pub others: &'a [Observation],
}

/// A reconcile, and the API server's answers to the changes in the middle of it.
#[derive(Clone, Debug, Default)]
pub struct Reconciled {
    /// The decision, if there was something to reconcile, and the reconcile is not blocked.
    pub decision: Option<Decision>,
    pub answers: Vec<ApiAnswer>,
}

/// The requests of a step, which determine when changes in the middle of its reconciles happen.
#[derive(Clone, Debug)]
pub struct StepRequests<'a> {
    /// The changes.
    pub during: &'a [During],
    /// The reconciles in progress at the beginning of the step.
    begun: Vec<Observation>,
}

impl<'a> StepRequests<'a> {
    /// The requests of a step that begins now.
    #[must_use]
    pub(crate) fn new(step: &'a Step, simulation: &Simulation) -> StepRequests<'a> {
        let begun =
            if step.during.is_empty() { Vec::new() } else { simulation.unfinished_observations() };
        StepRequests { during: &step.during, begun }
    }

    /// The next changes during a reconcile. `earlier`: the reconciles of the step that have ended.
    pub(super) fn first_changes(
        &self,
        earlier: &[Observation],
        reconcile: &InterruptedReconcile<'_>,
    ) -> Option<ChangesDuringReconcile> {
        let InterruptedReconcile { tick, before, others, .. } = *reconcile;
        let place = |it: &During| {
            let past = count(earlier, it.after) + count(others, it.after);
            let nth = (it.number + count(&self.begun, it.after)).checked_sub(past)?;
            tick.requests_until(it.after, nth)
        };
        let after = self.during.iter().filter_map(place).filter(|after| *after > before).min()?;
        let same = self.during.iter().filter(|it| place(it) == Some(after));
        Some(ChangesDuringReconcile {
            after,
            changes: same.flat_map(|it| it.apply.clone()).collect(),
        })
    }
}

/// The number of requests of a kind in some reconciles.
fn count<'a>(ticks: impl IntoIterator<Item = &'a Observation>, kind: Request) -> usize {
    let requests = ticks.into_iter().flat_map(Observation::requests);
    requests.filter(|it| it.request() == Some(kind)).count()
}

/// The cluster after changes during a reconcile.
struct Moment {
    after: usize,
    at: Time,
    cluster: Cluster,
    hpas: Vec<ChangedHpa>,
}

/// The progress of a reconcile.
enum Progress {
    Ended(Box<Decision>),
    /// It waits, after these actions.
    Blocked(Observation),
}

impl Progress {
    fn tick(&self) -> &Observation {
        match self {
            Progress::Ended(decision) => &decision.observation,
            Progress::Blocked(observation) => observation,
        }
    }
}

impl Simulation {
    /// Runs one reconcile that is due at `now`, like [`Simulation::sync`]. `next` returns what
    /// happens next, given the reconcile if nothing more happens. Afterwards, the cluster contains
    /// all these changes, and the writes of the reconcile before the last of them.
    pub fn sync_while(
        &mut self,
        now: Time,
        next: &mut dyn FnMut(&InterruptedReconcile<'_>) -> Option<ChangesDuringReconcile>,
    ) -> Reconciled {
        let Some(due) = self.due_reconcile(now) else { return Reconciled::default() };
        self.map_target(due);
        let served = &self.hpas[due.index];
        let blocked = self.controller.blocked(&served.key).filter(|_| due.resumes);
        let past = blocked.map_or(0, |(_, observation)| observation.requests().count());
        let others = self.controller.unfinished().map(|decision| &decision.observation);
        let others: Vec<Observation> =
            others.filter(|tick| tick.hpa != served.name).cloned().collect();
        let before = self.clone();
        // Its cluster is the one in which the controller writes.
        let mut present = self.clone();
        let mut moments: Vec<Moment> = Vec::new();
        let mut answers = Vec::new();
        loop {
            *self = before.clone();
            let Some(progress) = self.sync_moments(now, due, &moments) else {
                return Reconciled::default();
            };
            let committed = moments.last().map_or(past, |moment| moment.after);
            let tick = progress.tick();
            let target = self.reconciled_target(&tick.hpa);
            let reconcile =
                InterruptedReconcile { tick, before: committed, target, others: &others };
            let Some(ChangesDuringReconcile { after, changes }) = next(&reconcile) else {
                self.cluster = present.cluster;
                self.hpas = present.hpas;
                let decision = match progress {
                    Progress::Blocked(_) => None,
                    Progress::Ended(decision) => Some(*decision),
                };
                return Reconciled { decision, answers };
            };
            let at = ChangesDuringReconcile::time(tick, after);
            let mut hpas = present.write_before(tick, at, committed..after, target);
            for change in &changes {
                let applied = present.apply_to_cluster(change);
                hpas.extend(applied.hpa.map(|(index, change)| present.changed(index, change)));
                answers.extend(applied.answer.map(|outcome| ApiAnswer { at, outcome }));
            }
            moments.push(Moment { after, at, cluster: present.cluster.clone(), hpas });
        }
    }

    fn changed(&self, index: usize, change: HpaChange) -> ChangedHpa {
        ChangedHpa { key: self.hpas[index].key.clone(), change }
    }

    /// Stores the writes among some requests of a reconcile. Returns the HPA if it changed.
    fn write_before(
        &mut self,
        tick: &Observation,
        at: Time,
        requests: Range<usize>,
        target: Option<usize>,
    ) -> Vec<ChangedHpa> {
        let Written { status, .. } = self.write(tick, at, requests, target);
        let updated = HpaChange::Updated { generation: false };
        status.map(|index| self.changed(index, updated)).into_iter().collect()
    }

    /// Runs the reconcile up to its next wait, or to its end, with the changes in the middle of it.
    fn sync_moments(
        &mut self,
        now: Time,
        due: DueReconcile,
        moments: &[Moment],
    ) -> Option<Progress> {
        let served = &self.hpas[due.index];
        let stored = self.cluster.hpa(&served.name);
        let blocked = self.controller.blocked(&served.key).filter(|_| due.resumes);
        let blocked = blocked.map(|(hpa, _)| hpa.clone());
        let reconciled = blocked.as_ref().or(stored);
        let (first, rules) = (&self.targets[0], &self.rules);
        let views: Vec<View<'_>> = moments
            .iter()
            .map(|Moment { cluster, .. }| {
                let stored = cluster.hpa(&served.name);
                View::new(cluster, served, Hpas { reconciled, stored }, first, rules)
            })
            .collect();
        let interruptions: Vec<Interruption<'_>> = moments
            .iter()
            .zip(&views)
            .map(|(Moment { after, at, hpas, .. }, view)| Interruption {
                after: *after,
                input: view.input(*at),
                hpas: hpas.clone(),
            })
            .collect();
        let view = View::new(&self.cluster, served, Hpas { reconciled, stored }, first, rules);
        let input = view.input(now);
        let controller = &mut self.controller;
        if !self.concurrent {
            let mut decision = Box::<Decision>::default();
            let decided = controller.sync_interrupted(&input, &interruptions, &mut decision);
            decision.committed = moments.last().map_or(0, |moment| moment.after);
            return decided.then_some(Progress::Ended(decision));
        }
        let result = match due.resumes {
            true => controller.resume(&input, &interruptions),
            false => controller.process(&input, &interruptions),
        };
        match result {
            WorkItemResult::Skipped => None,
            WorkItemResult::Reconciled(decision) => Some(Progress::Ended(decision)),
            WorkItemResult::Blocked => {
                let (_, observation) = controller.blocked(&served.key)?;
                Some(Progress::Blocked(observation.clone()))
            }
        }
    }
}
