//! A reconcile that falls into a change of the cluster sees some part of it.
//!
//! The workload's controller makes and deletes pods one after the other, and what a kubelet would
//! say is written of one after the other. Which of it a controller has heard of when it begins, no
//! one sees: each of these is right, as both outcomes are at a boundary.

use super::lineage::{Lineage, MOMENTS, hear};
use crate::model::api::PodPhase;
use crate::model::observation::{ControllerAction, Observation, ScaleReplicas};
use crate::model::time::Time;
use crate::world::{Change, PodState, ScaleTarget};

/// A change of the cluster, and the model without it.
pub(super) struct Motion {
    before: [Lineage; MOMENTS],
    changes: Vec<Change>,
    /// When what is changed at once was changed last.
    since: Time,
}

/// No more stages than about these are asked of, however many pods change.
const STAGES: usize = 128;

impl Motion {
    pub(super) fn new(before: [Lineage; MOMENTS], changes: Vec<Change>, since: Time) -> Motion {
        Motion { before, changes, since }
    }

    /// More of the cluster changes, before a reconcile came after all of it.
    pub(super) fn goes_on(&mut self, changes: &[Change], since: Time) {
        self.changes.extend_from_slice(changes);
        self.since = since;
    }

    /// Somebody does something to an HPA meanwhile.
    pub(super) fn hear(&mut self, event: &Change, at: Time) {
        hear(&mut self.before, [event], at);
    }

    /// Lets the model have all of the change after a reconcile that need not have seen it. The next
    /// one need not either.
    pub(super) fn after(
        mut self,
        lineages: &mut [Lineage; MOMENTS],
        tick: Option<&Observation>,
    ) -> Motion {
        self.before = lineages.clone();
        if tick.and_then(Observation::scaled_to).is_some() {
            // Whatever anybody wrote before that.
            for change in &mut self.changes {
                if let Change::SetScale(target) = change {
                    target.replicas = None;
                }
            }
        }
        apply(lineages, &self.changes);
        self
    }

    /// The first answer that there is for the model at some stage of the change, and what it comes
    /// with.
    pub(super) fn find<T>(
        &self,
        (began, seen): (Time, &Observation),
        mut ask: impl FnMut([Lineage; MOMENTS]) -> Option<T>,
    ) -> Option<T> {
        let orders = self.orders();
        let at_once = self.changes.iter().filter(|change| !change.is_of_workload());
        let at_once: Vec<Change> = at_once.cloned().collect();
        let mut begins = Vec::new();
        for size in self.sizes(seen) {
            begins.push([&*size, &*at_once].concat());
            if began < self.since && !at_once.is_empty() {
                begins.push(size);
            }
        }
        begins.iter().find_map(|begin| {
            let mut before = self.before.clone();
            apply(&mut before, begin);
            ask(before.clone()).or_else(|| {
                orders.iter().find_map(|steps| {
                    let mut lineages = before.clone();
                    let some = steps.len().div_ceil(STAGES).max(1);
                    steps.chunks(some).find_map(|steps| {
                        apply(&mut lineages, steps);
                        ask(lineages.clone())
                    })
                })
            })
        })
    }

    /// What targets may have told of their sizes: what was read, or else either.
    fn sizes(&self, seen: &Observation) -> Vec<Vec<Change>> {
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

    /// Pods as they come, go and are written of, one by one: in one order or another.
    fn orders(&self) -> Vec<Vec<Change>> {
        let [before, ..] = &self.before;
        let (mut come, mut go, mut written) = (Vec::new(), Vec::new(), Vec::new());
        for (index, change) in self.changes.iter().enumerate() {
            let later = self.changes.get(index..).unwrap_or_default();
            let is_gone = |pod: &PodState| {
                later.iter().any(|change| match change {
                    Change::DeletePods(names) => names.contains(&pod.name),
                    _ => false,
                })
            };
            match change {
                Change::SetPods(pods) => {
                    let pods = pods.iter().filter(|pod| !is_gone(pod));
                    let new = pods.clone().filter(|pod| !before.simulation.has_pod(&pod.name));
                    come.extend(new.map(|pod| Change::SetPods(vec![unwritten(pod)])));
                    written.extend(pods.map(|pod| Change::SetPods(vec![pod.clone()])));
                }
                Change::DeletePods(names) => {
                    go.extend(names.iter().map(|name| Change::DeletePods(vec![name.clone()])));
                }
                _ => {}
            }
        }
        if go.is_empty() || written.is_empty() {
            return vec![[come, go, written].concat()];
        }
        vec![[&*come, &*go, &*written].concat(), [come, written, go].concat()]
    }
}

/// A pod of which no kubelet has said anything yet.
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
            // What nobody wrote is as before.
            let ScaleReplicas { replicas, status_replicas } = *found;
            let replicas = target.replicas.map(|_| replicas);
            Some(ScaleTarget { replicas, status_replicas, ..target.clone() })
        }
        _ => None,
    })
}

fn apply<'a>(lineages: &mut [Lineage; MOMENTS], changes: impl IntoIterator<Item = &'a Change>) {
    // When is a matter of HPAs only, and none is among them.
    hear(lineages, changes, Time::ZERO);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::model::Simulation;
    use crate::model::observation::ScaleWrite;
    use crate::model::rules::{Release, Rules};
    use crate::run::recorder::Recorder;
    use crate::scenario::Scenario;
    use crate::world::World;

    const TEXT: &str = "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Something holds.
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    minReplicas: 1
    maxReplicas: 10
    metrics:
    - type: Resource
      resource: {name: cpu, target: {type: AverageValue, averageValue: 500m}}
workload:
  replicas: 2
  containers: [{name: app, requests: {cpu: 1}}]
metrics:
  resource: [{name: cpu, perPod: 500m}]
timeline:
- {at: 10s, scale: 5}
until: 1m
";

    /// A person's change of the size, which was two, to five; and what came before it.
    fn motion() -> Motion {
        let none = |_: &str| Err("there is none".to_owned());
        let scenario: Arc<Scenario> =
            Arc::new(crate::scenario::parse("x.yaml", TEXT, &none).expect("it makes sense"));
        let rules = Rules::of(Release::NEWEST);
        let recorder = Recorder::new(&rules);
        let simulation = Simulation::new(&scenario, rules).with_wall_clock();
        let lineage = Lineage { simulation, recorder };
        let mut before = [lineage.clone(), lineage.clone(), lineage];
        let mut world = World::new(&scenario);
        apply(&mut before, &world.advance(Time::ZERO));
        apply(&mut before, &world.api_events(Time::ZERO));
        let at = Time::from_secs(10);
        world.api_events(at);
        let changes = world.advance(at);
        assert!(changes.iter().any(|change| matches!(change, Change::SetScale(_))), "{changes:?}");
        Motion::new(before, changes, at)
    }

    /// A reconcile that read these sizes.
    fn seen(sizes: Option<(i32, i32)>) -> Observation {
        let (resource, name) = ("deployments.apps".into(), "web".into());
        let read = sizes.map(|(replicas, status_replicas)| {
            let answer = Ok(ScaleReplicas { replicas, status_replicas });
            ControllerAction::GetScale { resource, name, answer }
        });
        Observation::new(Time::from_secs(10), "web".into(), read)
    }

    fn came(seen: &Observation) -> (Time, &Observation) {
        (seen.at, seen)
    }

    /// The sizes and the number of pods that a model has.
    fn has([lineage, ..]: &[Lineage; MOMENTS]) -> (Option<(i32, i32)>, usize) {
        let mut lineage = lineage.clone();
        let decision = lineage.pass(Time::from_secs(15));
        let observation = decision.map(|it| it.observation).unwrap_or_default();
        let sizes = observation.reads().find_map(|read| match read {
            ControllerAction::GetScale { answer: Ok(found), .. } => {
                Some((found.replicas, found.status_replicas))
            }
            _ => None,
        });
        let pods = (0..10).filter(|pod| lineage.simulation.has_pod(&format!("web-{pod}")));
        (sizes, pods.count())
    }

    /// What a model has at each stage of the change, for a reconcile that read these sizes.
    fn stages(sizes: Option<(i32, i32)>) -> Vec<(Option<(i32, i32)>, usize)> {
        let mut stages = Vec::new();
        let none: Option<()> = motion().find(came(&seen(sizes)), |lineages| {
            stages.push(has(&lineages));
            None
        });
        assert_eq!(none, None, "none of them was right");
        stages
    }

    #[test]
    fn each_part_of_a_change_may_have_come_before_the_others() {
        let stages = stages(None);
        for sizes in [(2, 2), (5, 5)] {
            for pods in 2..=5 {
                assert!(stages.contains(&(Some(sizes), pods)), "{sizes:?} {pods} in {stages:?}");
            }
        }
    }

    #[test]
    fn a_size_that_was_read_is_no_other() {
        let stages = stages(Some((5, 3)));
        let are_read = stages.iter().all(|(sizes, _)| *sizes == Some((5, 3)));
        assert!(!stages.is_empty() && are_read, "{stages:?}");
    }

    #[test]
    fn afterwards_all_of_the_change_has_come_and_the_next_one_need_not_have_seen_it() {
        let motion = motion();
        let three = |lineages: [Lineage; MOMENTS]| (has(&lineages).1 == 3).then_some(lineages);
        let mut lineages = motion.find(came(&seen(None)), three).expect("a stage with three");
        let motion = motion.after(&mut lineages, Some(&seen(None)));
        assert_eq!(has(&lineages), (Some((5, 5)), 5));
        let mut four = |lineages: [Lineage; MOMENTS]| (has(&lineages).1 == 4).then_some(());
        assert!(motion.find(came(&seen(None)), &mut four).is_some());
    }

    #[test]
    fn a_size_that_the_controller_wrote_meanwhile_stays() {
        let motion = motion();
        let mut lineages = motion.before.clone();
        let (resource, name): (Arc<str>, Arc<str>) = ("deployments.apps".into(), "web".into());
        let write = ScaleWrite { resource, name, replicas: 7, error: None };
        let mut tick = seen(Some((2, 2)));
        tick.push(ControllerAction::UpdateScale(write));
        for lineage in &mut lineages {
            lineage.simulation.commit(&tick, Time::from_secs(10));
        }
        motion.after(&mut lineages, Some(&tick));
        assert_eq!(has(&lineages), (Some((7, 5)), 5));
    }
}
