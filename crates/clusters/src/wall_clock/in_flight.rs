//! Changes of the cluster that a reconcile may observe only in part.
//!
//! The workload controller creates and deletes pods one after the other, and the harness writes
//! their statuses one after the other. It cannot be observed which of these writes the caches of
//! the HPA controller contain when it reconciles, so each intermediate state is a hypothesis.
//! Metrics change at once, but a reconcile may have queried them before.

use super::hypotheses::{Hypotheses, Reconcile};
use crate::cluster::tolerances::MAX_IN_FLIGHT_STATES;
use kube_autoscaler_models::api::PodPhase;
use kube_autoscaler_models::observation::{ControllerAction, Observation, ScaleReplicas};
use kube_autoscaler_models::time::Time;
use kube_lockstep_sim::world::{Change, PodState, ScaleTarget};

/// A change of the cluster, and the hypotheses without it.
pub(super) struct InFlightChange {
    before: Hypotheses,
    changes: Vec<Change>,
    /// The time of the last changes that take effect at once, such as metrics.
    since: Time,
}

impl InFlightChange {
    pub(super) fn new(before: Hypotheses, changes: Vec<Change>, since: Time) -> InFlightChange {
        InFlightChange { before, changes, since }
    }

    /// Adds changes that begin before a reconcile has observed all of the previous ones.
    pub(super) fn extend(&mut self, changes: &[Change], since: Time) {
        self.changes.extend_from_slice(changes);
        self.since = since;
    }

    /// Applies an edit of the HPA in the meantime.
    pub(super) fn edit(&mut self, event: &Change, at: Time) {
        self.before.apply(event, at);
    }

    /// Completes the change after a reconcile that observed only a part of it. The next reconcile
    /// may observe only a part as well.
    pub(super) fn after(mut self, hypotheses: &mut Hypotheses, seen: &Observation) -> Self {
        self.before = hypotheses.clone();
        if seen.scaled_to().is_some() {
            // The write of the reconcile replaces the replicas of the change.
            for change in &mut self.changes {
                if let Change::SetScale(target) = change {
                    target.replicas = None;
                }
            }
        }
        apply(hypotheses, &self.changes);
        self
    }

    /// The first result that `test` gives for the hypotheses at an intermediate state.
    pub(super) fn find<T>(
        &self,
        reconcile: &Reconcile,
        mut test: impl FnMut(&Hypotheses) -> Option<T>,
    ) -> Option<T> {
        let orders = self.orders();
        let at_once = self.changes.iter().filter(|change| !change.changes_workload());
        let at_once: Vec<Change> = at_once.cloned().collect();
        let mut begins = Vec::new();
        for scale in self.scales(&reconcile.seen) {
            begins.push([&*scale, &*at_once].concat());
            if reconcile.began < self.since && !at_once.is_empty() {
                begins.push(scale);
            }
        }
        begins.iter().find_map(|begin| {
            let mut before = self.before.clone();
            apply(&mut before, begin);
            test(&before).or_else(|| {
                orders.iter().find_map(|steps| {
                    let mut state = before.clone();
                    let step = steps.len().div_ceil(MAX_IN_FLIGHT_STATES).max(1);
                    steps.chunks(step).find_map(|steps| {
                        apply(&mut state, steps);
                        test(&state)
                    })
                })
            })
        })
    }

    /// The result that `test` gives for the hypotheses without the last changes that take effect at
    /// once. `None` if there are none, or if the reconcile began after them: it began at `began` or
    /// later.
    pub(super) fn before_the_last<T>(
        &self,
        began: Time,
        test: impl FnOnce(&Hypotheses) -> Option<T>,
    ) -> Option<T> {
        let (workload, at_once): (Vec<&Change>, Vec<&Change>) =
            self.changes.iter().partition(|change| change.changes_workload());
        if at_once.is_empty() || began >= self.since {
            return None;
        }
        let mut before = self.before.clone();
        apply(&mut before, workload);
        test(&before)
    }

    /// The possible scales of the targets: as the reconcile read them, otherwise before or after
    /// the change.
    fn scales(&self, seen: &Observation) -> Vec<Vec<Change>> {
        let targets = self.changes.iter().filter_map(|change| match change {
            Change::SetScale(target) => Some(target),
            _ => None,
        });
        let read = targets.clone().map(|target| read_of(seen, target).map(Change::SetScale));
        match read.collect() {
            Some(read) => vec![read],
            None => vec![Vec::new(), targets.cloned().map(Change::SetScale).collect()],
        }
    }

    /// The orders in which pods may be created and deleted and their statuses written.
    fn orders(&self) -> Vec<Vec<Change>> {
        let before = &self.before.first().simulation;
        let (mut created, mut deleted, mut written) = (Vec::new(), Vec::new(), Vec::new());
        for (index, change) in self.changes.iter().enumerate() {
            let later = self.changes.get(index..).unwrap_or_default();
            let is_deleted = |pod: &PodState| {
                later.iter().any(|change| match change {
                    Change::DeletePods(names) => names.contains(&pod.name),
                    _ => false,
                })
            };
            match change {
                Change::SetPods(pods) => {
                    let pods = pods.iter().filter(|pod| !is_deleted(pod));
                    let new = pods.clone().filter(|pod| !before.has_pod(&pod.name));
                    created.extend(new.map(|pod| Change::SetPods(vec![unwritten(pod)])));
                    written.extend(pods.map(|pod| Change::SetPods(vec![pod.clone()])));
                }
                Change::DeletePods(names) => {
                    deleted.extend(names.iter().map(|name| Change::DeletePods(vec![name.clone()])));
                }
                _ => {}
            }
        }
        if deleted.is_empty() || written.is_empty() {
            return vec![[created, deleted, written].concat()];
        }
        vec![[&*created, &*deleted, &*written].concat(), [created, written, deleted].concat()]
    }
}

/// A pod before the kubelet writes its status.
fn unwritten(pod: &PodState) -> PodState {
    PodState {
        phase: PodPhase::Pending,
        start_time: None,
        ready: None,
        deletion_timestamp: None,
        ..pod.clone()
    }
}

/// A target as a reconcile read it.
fn read_of(seen: &Observation, target: &ScaleTarget) -> Option<ScaleTarget> {
    seen.reads().find_map(|read| match read {
        ControllerAction::GetScale { resource, name, answer: Ok(found) }
            if (resource, name) == (&target.resource, &target.name) =>
        {
            // A field that the change does not set stays unset.
            let ScaleReplicas { replicas, status_replicas } = *found;
            let replicas = target.replicas.map(|_| replicas);
            Some(ScaleTarget { replicas, status_replicas, ..target.clone() })
        }
        _ => None,
    })
}

fn apply<'a>(hypotheses: &mut Hypotheses, changes: impl IntoIterator<Item = &'a Change>) {
    // The time matters only for changes of HPAs, and these changes have none.
    hypotheses.apply_all(changes, Time::ZERO);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use kube_autoscaler_models::observation::ScaleWrite;
    use kube_autoscaler_models::rules::{Release, Rules};
    use kube_autoscaler_models::time::Span;
    use kube_lockstep_scenario::testing::{WEB, scenario};
    use kube_lockstep_sim::trace::Scope;
    use kube_lockstep_sim::world::World;

    /// A change of the replicas from two to five.
    fn in_flight() -> InFlightChange {
        let scenario = scenario(&format!("{WEB}timeline: [{{at: 10s, scale: 5}}]\n"));
        let mut before = Hypotheses::new(&scenario, Rules::of(Release::NEWEST));
        let mut world = World::new(&scenario);
        apply(&mut before, &world.advance(Time::ZERO));
        apply(&mut before, &world.api_events(Time::ZERO));
        let at = Time::from_secs(10);
        world.api_events(at);
        let changes = world.advance(at);
        assert!(changes.iter().any(|change| matches!(change, Change::SetScale(_))), "{changes:?}");
        InFlightChange::new(before, changes, at)
    }

    /// A reconcile that read these replicas.
    fn seen(scale: Option<(i32, i32)>) -> Observation {
        let (resource, name) = ("deployments.apps".into(), "web".into());
        let read = scale.map(|(replicas, status_replicas)| {
            let answer = Ok(ScaleReplicas { replicas, status_replicas });
            ControllerAction::GetScale { resource, name, answer }
        });
        Observation::new(Time::from_secs(10), "web".into(), read)
    }

    /// An observation, in the form that the checker gets.
    fn reconcile(seen: Observation) -> Reconcile {
        let at = seen.at;
        let (pods, stall) = (Vec::new(), Span::ZERO);
        Reconcile {
            due: at,
            began: at,
            ended: at,
            seen,
            scope: Scope::ALL,
            pods,
            stall,
            settled: at,
            during: None,
        }
    }

    /// The replicas in spec and status, and the number of pods, in a model state.
    fn state(hypotheses: &Hypotheses) -> (Option<(i32, i32)>, usize) {
        let decision = hypotheses.predict(Time::from_secs(15), None);
        let observation = decision.map(|it| it.observation).unwrap_or_default();
        let scale = observation.reads().find_map(|read| match read {
            ControllerAction::GetScale { answer: Ok(found), .. } => {
                Some((found.replicas, found.status_replicas))
            }
            _ => None,
        });
        let simulation = &hypotheses.first().simulation;
        let pods = (0..10).filter(|pod| simulation.has_pod(&format!("web-{pod}")));
        (scale, pods.count())
    }

    /// The intermediate states of the change, for a reconcile that read these replicas.
    fn states(scale: Option<(i32, i32)>) -> Vec<(Option<(i32, i32)>, usize)> {
        let mut states = Vec::new();
        let none: Option<()> = in_flight().find(&reconcile(seen(scale)), |hypotheses| {
            states.push(state(hypotheses));
            None
        });
        assert_eq!(none, None, "no state was accepted");
        states
    }

    #[test]
    fn each_part_of_a_change_may_be_observed_before_the_others() {
        let states = states(None);
        for scale in [(2, 2), (5, 5)] {
            for pods in 2..=5 {
                assert!(states.contains(&(Some(scale), pods)), "{scale:?} {pods} in {states:?}");
            }
        }
    }

    #[test]
    fn the_replicas_match_the_read_scale() {
        let states = states(Some((5, 3)));
        let are_read = states.iter().all(|(scale, _)| *scale == Some((5, 3)));
        assert!(!states.is_empty() && are_read, "{states:?}");
    }

    #[test]
    fn the_change_completes_and_the_next_reconcile_may_observe_a_part_again() {
        let in_flight = in_flight();
        let read = reconcile(seen(None));
        let with = |pods: usize| move |it: &Hypotheses| (state(it).1 == pods).then(|| it.clone());
        let mut hypotheses = in_flight.find(&read, with(3)).expect("a state with three pods");
        let in_flight = in_flight.after(&mut hypotheses, &read.seen);
        assert_eq!(state(&hypotheses), (Some((5, 5)), 5));
        assert!(in_flight.find(&read, with(4)).is_some());
    }

    #[test]
    fn replicas_that_the_controller_wrote_in_the_meantime_stay() {
        let in_flight = in_flight();
        let mut hypotheses = in_flight.before.clone();
        let (resource, name): (Arc<str>, Arc<str>) = ("deployments.apps".into(), "web".into());
        let write = ScaleWrite { resource, name, replicas: 7, ..ScaleWrite::default() };
        let mut tick = seen(Some((2, 2)));
        tick.push(ControllerAction::UpdateScale(write));
        hypotheses.commit(&tick, Time::from_secs(10), 0);
        in_flight.after(&mut hypotheses, &tick);
        assert_eq!(state(&hypotheses), (Some((7, 5)), 5));
    }
}
