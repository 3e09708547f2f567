//! Tests of drawing and shrinking disturbances, with the model as the controller.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use kube_autoscaler_models::observation::Observation;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::testing::{WEB, scenario};
use kube_lockstep_sim::engine::disturbance::{Watch, WatchEvent, WriteRequest};
use kube_lockstep_sim::engine::model::Model;
use kube_lockstep_sim::engine::{Session, Step};
use kube_lockstep_sim::trace::Stepped;

/// What a controller with a planted fault does.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Reaction {
    /// It does what the model does.
    Right,
    /// It does nothing.
    Nothing,
    /// It fails.
    Failure,
}

/// The reaction to disturbances.
type Fault = Arc<dyn Fn(&[Disturbance]) -> Reaction + Send + Sync>;

/// The model as a controller, with a planted fault that depends on the disturbances.
struct Planted {
    model: Model,
    fault: Fault,
    reaction: Reaction,
    disturbable: Disturbable,
}

struct PlantedSession<'a>(Box<dyn Session + 'a>, Reaction);

impl Engine for Planted {
    fn name(&self) -> &'static str {
        "planted"
    }

    fn release(&self) -> Release {
        self.model.release()
    }

    fn has_model(&self) -> bool {
        false
    }

    fn disturb(&mut self, disturbances: &[Disturbance]) -> Result<(), EngineError> {
        self.reaction = (self.fault)(disturbances);
        Ok(())
    }

    fn disturbable(&mut self) -> Option<Disturbable> {
        Some(self.disturbable.clone())
    }

    fn open<'s>(&'s mut self, scenario: &Scenario) -> Result<Box<dyn Session + 's>, EngineError> {
        Ok(Box::new(PlantedSession(self.model.open(scenario)?, self.reaction)))
    }
}

impl Session for PlantedSession<'_> {
    fn send(&mut self, step: &Step) -> Result<(), EngineError> {
        self.0.send(step)
    }

    fn receive(&mut self) -> Result<Stepped, EngineError> {
        let stepped = self.0.receive()?;
        match self.1 {
            Reaction::Right => Ok(stepped),
            Reaction::Nothing => Ok(Stepped { ticks: Vec::new(), ..stepped }),
            Reaction::Failure => Err(EngineError::Broken {
                engine: "planted".into(),
                why: "it never rests".to_owned(),
                output: String::new(),
            }),
        }
    }

    fn close(self: Box<Self>) -> Result<Vec<Observation>, EngineError> {
        self.0.close()
    }
}

/// Two watches with 3 and 4 events, and 3 writes.
fn disturbable() -> Disturbable {
    let at = Time::ZERO;
    let event = WatchEvent { at, kind: "MODIFIED".into(), name: "web".into() };
    let watch = |resource: &str, events| Watch {
        resource: resource.into(),
        controller: "planted".into(),
        events: vec![event.clone(); events],
    };
    let write = WriteRequest {
        at,
        controller: "planted".into(),
        verb: "update".into(),
        resource: "deployments.apps".into(),
        subresource: String::new(),
        name: "web".into(),
    };
    Disturbable {
        watches: vec![watch("deployments.apps", 3), watch("pods", 4)],
        writes: vec![write; 3],
    }
}

/// The model reconciles this scenario at 0s, and finds nothing to change.
fn expecting() -> Arc<Scenario> {
    scenario(&format!("{WEB}expect: [{{at: 1m, desiredReplicas: 2}}]\n"))
}

fn plan(runs: usize, jobs: usize) -> Exploration {
    let stop = CancellationToken::new();
    let kinds = DisturbanceKind::ALL.to_vec();
    Exploration { seed: 3, runs, kinds, given: Vec::new(), jobs, stop }
}

fn explored(plan: &Exploration, disturbable: &Disturbable, fault: Fault) -> Explored {
    let new = || -> Box<dyn Engine> {
        let model = Model::new(Release::NEWEST);
        let (fault, disturbable) = (fault.clone(), disturbable.clone());
        Box::new(Planted { model, fault, reaction: Reaction::Right, disturbable })
    };
    let mut runs = 0;
    let explored = explore(plan, &expecting(), &new, &mut |done, _| runs = done);
    let explored = explored.expect("the model can be disturbed");
    assert_eq!(explored.runs, runs);
    explored
}

/// The texts of the disturbances of each finding.
fn found(explored: &Explored) -> Vec<Vec<String>> {
    let texts = |it: &Finding| it.disturbances.iter().map(ToString::to_string).collect();
    explored.findings.iter().map(texts).collect()
}

/// The third event of the Deployment must be at least 100 ms late, and any write must conflict.
fn is_pair(set: &[Disturbance]) -> bool {
    let is_late = |it: &Disturbance| match it {
        Disturbance::Hold(hold) => {
            (&*hold.resource, hold.event) == ("deployments.apps", 3) && hold.delay >= DELAYS[2]
        }
        _ => false,
    };
    let conflicts =
        |it: &Disturbance| matches!(it, Disturbance::Answer { with: WriteError::Conflict, .. });
    set.iter().any(is_late) && set.iter().any(conflicts)
}

#[test]
fn the_disturbances_that_a_failure_requires_are_found_with_any_number_of_jobs() {
    let fault: Fault = Arc::new(|set| match is_pair(set) {
        true => Reaction::Nothing,
        false => Reaction::Right,
    });
    let results = [1, 3].map(|jobs| explored(&plan(1000, jobs), &disturbable(), fault.clone()));
    for explored in &results {
        assert_eq!(explored.undisturbed.verdict, Verdict::Conforms);
        let [finding] = explored.findings.as_slice() else { panic!("{:?}", explored.findings) };
        let [hold, answer] = finding.disturbances.as_slice() else { panic!("{finding:?}") };
        assert_eq!(hold.to_string(), "hold event 3 of deployments.apps for 100ms");
        assert!(answer.to_string().ends_with(" with conflict"), "{answer}");
        assert_eq!(finding.outcome.verdict, Verdict::Unmet);
        assert_eq!(explored.failed, finding.times);
        assert!(explored.tried_each && explored.unrepeated == 0 && !explored.interrupted);
    }
    assert_eq!(found(&results[0]), found(&results[1]));
    assert_eq!(results[0].failed, results[1].failed);
}

#[test]
fn each_kind_of_failure_is_a_finding() {
    let fault: Fault = Arc::new(|set| match set {
        [] => Reaction::Right,
        set if set.iter().any(|it| matches!(it, Disturbance::Crash { .. })) => Reaction::Failure,
        set if set.iter().any(|it| matches!(it, Disturbance::Hold(_))) => Reaction::Nothing,
        _ => Reaction::Right,
    });
    let explored = explored(&plan(300, 2), &disturbable(), fault);
    let found = found(&explored);
    let [hold, crash] = found.as_slice() else { panic!("{found:?}") };
    assert!(hold.len() == 1 && hold[0].starts_with("hold ") && hold[0].ends_with(" for 1ms"));
    assert!(crash.len() == 1 && crash[0].starts_with("crash "), "{crash:?}");
    let verdict = &explored.findings[1].outcome.verdict;
    assert!(matches!(verdict, Verdict::Inconclusive { why, .. } if why.contains("never rests")));
}

#[test]
fn a_scenario_that_fails_without_disturbances_is_not_disturbed() {
    let explored =
        explored(&plan(100, 1), &disturbable(), Arc::new(|_: &[Disturbance]| Reaction::Nothing));
    assert_eq!(explored.undisturbed.verdict, Verdict::Unmet);
    assert_eq!((explored.runs, explored.findings.len()), (0, 0));
}

#[test]
fn without_watches_and_writes_nothing_is_disturbed() {
    let right: Fault = Arc::new(|_: &[Disturbance]| Reaction::Right);
    let nothing = Disturbable::default();
    let explored = explored(&plan(100, 1), &nothing, right);
    assert!(explored.is_undisturbable && explored.runs == 0, "{explored:?}");
}

#[test]
fn only_some_kinds_are_drawn() {
    for kind in DisturbanceKind::ALL {
        let plan = Exploration { kinds: vec![kind], ..plan(200, 1) };
        let draws = Draws::new(&plan, disturbable());
        let sets = (0..200).map(|index| draws.set(index));
        assert!(sets.flatten().all(|it| it.kind() == kind), "{kind:?}");
    }
    let plan = Exploration { kinds: vec![DisturbanceKind::Crash], ..plan(200, 1) };
    let writes = Vec::new();
    assert_eq!(Draws::new(&plan, Disturbable { writes, ..disturbable() }).runs(), 0);
}

#[test]
fn a_failure_that_does_not_occur_again_is_counted() {
    let runs = AtomicUsize::new(0);
    let fault: Fault =
        Arc::new(move |_: &[Disturbance]| match runs.fetch_add(1, Ordering::Relaxed) {
            5 => Reaction::Nothing,
            _ => Reaction::Right,
        });
    let explored = explored(&plan(20, 1), &disturbable(), fault);
    assert_eq!((explored.failed, explored.unrepeated, explored.findings.len()), (1, 1, 0));
}

#[test]
fn given_disturbances_run_alone_and_are_not_shrunk() {
    let fault: Fault = Arc::new(|set| match set {
        [] => Reaction::Right,
        _ => Reaction::Nothing,
    });
    let texts = ["hold event 1 of pods for 7s", "crash after write 9"];
    let given = texts.iter().map(|text| text.parse().expect("a disturbance")).collect();
    let plan = Exploration { given, ..plan(100, 1) };
    let explored = explored(&plan, &disturbable(), fault);
    assert_eq!(found(&explored), [texts]);
    assert_eq!((explored.runs, explored.findings[0].tried), (1, 0));
}

#[test]
fn given_disturbances_that_do_not_happen_are_named() {
    for (text, why) in [
        ("hold event 3 of deployments.apps for 1ms", None),
        ("crash after write 3", None),
        ("hold event 99 of pods for 1ms", Some("the watch of pods has 4 events")),
        ("hold event 1 of nothing for 1ms", Some("the run has 0 watches of nothing")),
        ("crash before write 99", Some("the run has 3 writes")),
    ] {
        let given = vec![text.parse().expect("a disturbance")];
        let plan = Exploration { given, ..plan(100, 1) };
        let explored = explored(&plan, &disturbable(), Arc::new(|_: &[_]| Reaction::Right));
        let sentences = why.map(|why| format!("`{text}` did not happen: {why}"));
        assert_eq!(explored.missing, sentences.into_iter().collect::<Vec<_>>());
        assert_eq!(explored.is_conclusive(), why.is_none());
        let mut totals = report::Totals::default();
        totals.add(&explored);
        assert_eq!(totals.inconclusive, usize::from(why.is_some()));
    }
}

#[test]
fn a_stopped_exploration_ends() {
    let plan = plan(1_000_000, 2);
    let (stop, runs) = (plan.stop.clone(), AtomicUsize::new(0));
    let fault: Fault = Arc::new(move |set| {
        if runs.fetch_add(1, Ordering::Relaxed) == 50 {
            stop.cancel();
        }
        if set.len() > 1 { Reaction::Nothing } else { Reaction::Right }
    });
    let explored = explored(&plan, &disturbable(), fault);
    assert!(explored.interrupted && explored.runs < 1000, "{}", explored.runs);
    assert!(explored.findings.iter().all(|it| it.cut_short), "{explored:?}");
}

/// Whatever the sets are that fail: a shrunk set fails, and it does not without any one of its
/// disturbances, nor with a shorter delay.
#[test]
fn a_shrunk_set_can_not_be_shrunk_further() {
    let plan = plan(1000, 1);
    let draws = Draws::new(&plan, disturbable());
    for index in draws.singles.len()..500 {
        let mut set: Vec<_> = (index..index + 5).flat_map(|index| draws.set(index)).collect();
        let whole = set.clone();
        // A third of all sets fail, at random: leaving out more is not always worse.
        let fails = |set: &[Disturbance]| {
            let mut sum = index as u64;
            for byte in set.iter().flat_map(|it| it.to_string().into_bytes()) {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            set == whole || (!set.is_empty() && (sum >> 20).is_multiple_of(3))
        };
        shrink(&mut set, &mut |set| fails(set));
        assert!(fails(&set));
        for place in 0..set.len() {
            let mut other = set.clone();
            let left_out = other.remove(place);
            assert!(!fails(&other), "{index}: {left_out} of {set:?}");
            if let Disturbance::Hold(hold) = left_out {
                for delay in DELAYS.into_iter().filter(|delay| *delay < hold.delay) {
                    let shorter = Disturbance::Hold(Hold { delay, ..hold.clone() });
                    other.insert(place, shorter);
                    assert!(!fails(&other), "{index}: {delay} in {set:?}");
                    other.remove(place);
                }
            }
        }
    }
}

#[test]
fn a_seed_and_an_index_determine_the_disturbances() {
    let plans = [3, 3, 4].map(|seed| Exploration { seed, ..plan(1000, 1) });
    let sets = plans.each_ref().map(|plan| {
        let draws = Draws::new(plan, disturbable());
        (100..300).map(|index| draws.set(index)).collect::<Vec<_>>()
    });
    assert_eq!(sets[0], sets[1]);
    assert_ne!(sets[0], sets[2]);
    assert!(sets[0].iter().all(|set| (1..=4).contains(&set.len())));
    assert!(sets[0].iter().any(|set| set.len() == 4));
    let drawn: Vec<&Disturbance> = sets[0].iter().flatten().collect();
    let is_hold = |it: &&&Disturbance| matches!(it, Disturbance::Hold(_));
    let holds = drawn.iter().filter(is_hold).count();
    assert!(holds > drawn.len() / 2 && holds < drawn.len() * 3 / 4, "{holds} of {}", drawn.len());
}
