//! The figures against an independent calculation, second by second, and their properties.
//!
//! The calculation uses only the replicas of the prediction. It has its own pods and its own load,
//! and it finds the need by counting up.

use std::fmt::Write as _;

use super::{Figures, Reference};
use crate::missing::MissingByCause;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_scenario::testing::scenario;
use kube_lockstep_sim::run::{FreeRun, free_run};

/// A Deployment whose load changes at some times.
#[derive(Clone, Debug)]
struct Case {
    /// The target of one pod in millicores: its request is 1 core, and the target is a tenth of it
    /// in percent.
    target: i64,
    /// From a second on, the load in millicores.
    load: Vec<(i64, i64)>,
    replicas: i32,
    most: i32,
    /// In seconds.
    startup: i64,
    until: i64,
    /// Lines of the HPA's spec.
    behavior: &'static str,
}

/// The case of the issue: the load rises from 2.8 to 7.5 cores, and a pod serves 350m.
const RISING: Case = Case {
    target: 350,
    load: Vec::new(),
    replicas: 8,
    most: 30,
    startup: 0,
    until: 900,
    behavior: "",
};

fn rising() -> Case {
    Case { load: vec![(0, 2800), (60, 7500)], ..RISING }
}

const WAITING: &str = "behavior: {scaleUp: {stabilizationWindowSeconds: 120}}";
const SLOW: &str = "behavior: {scaleUp: {policies: [{type: Pods, value: 2, periodSeconds: 60}]}}";

impl Case {
    fn run(&self) -> (FreeRun, Figures) {
        let mut steps = String::new();
        for (at, load) in &self.load {
            let _ = write!(steps, "{{at: {at}s, value: {load}m}}, ");
        }
        let Case { replicas, most, startup, until, behavior, .. } = self;
        let percent = self.target / 10;
        let text = format!(
            "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Something holds.
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {{name: web}}
  spec:
    scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
    maxReplicas: {most}
    {behavior}
    metrics:
    - type: Resource
      resource: {{name: cpu, target: {{type: Utilization, averageUtilization: {percent}}}}}
workload:
  replicas: {replicas}
  containers: [{{name: app, requests: {{cpu: 1}}}}]
  startup: {{ready: {startup}s}}
metrics:
  resource: [{{name: cpu, load: {{steps: [{steps}]}}}}]
until: {until}s
"
        );
        let scenario = scenario(&text);
        let run = free_run(&scenario, Release::NEWEST);
        let figures = Figures::new(&scenario, &run, &Reference::new(&run));
        (run, figures)
    }
}

/// The figures in pod-seconds and seconds.
#[derive(PartialEq, Debug, Default)]
struct ByHand {
    pods: i64,
    missing: i64,
    without_pod: i64,
    beyond_the_most: i64,
    above: i64,
    excess: i64,
    needed: i64,
}

/// The replicas at a second.
fn replicas_at(case: &Case, run: &FreeRun, second: i64) -> i64 {
    let mut replicas = case.replicas;
    for tick in &run.ticks {
        if tick.observation.at.since_start().as_secs_f64() <= second as f64 {
            replicas = tick.replicas_after;
        }
    }
    i64::from(replicas)
}

fn by_hand(case: &Case, run: &FreeRun) -> ByHand {
    let mut hand = ByHand::default();
    // The seconds at which the pods become ready.
    let mut pods: Vec<i64> = vec![0; usize::try_from(case.replicas).expect("a count")];
    for second in 0..case.until {
        let replicas = replicas_at(case, run, second);
        while (pods.len() as i64) < replicas {
            pods.push(second + case.startup);
        }
        // A ReplicaSet deletes unready pods first, then the newest: the last ones in both cases.
        pods.truncate(usize::try_from(replicas).expect("a count"));
        let ready = pods.iter().filter(|ready| **ready <= second).count() as i64;
        let load = case.load.iter().rfind(|(from, _)| *from <= second).expect("a load").1;
        let mut needed = 0;
        while needed * case.target < load {
            needed += 1;
        }
        hand.pods += replicas;
        hand.missing += (needed - ready).max(0);
        hand.without_pod += (needed.min(replicas) - ready).max(0);
        hand.beyond_the_most += (needed - ready.max(replicas).max(i64::from(case.most))).max(0);
        let percent = load / 10 / ready.max(1);
        hand.above += i64::from(percent * 100 > case.target / 10 * 110);
        hand.excess = hand.excess.max(replicas - needed);
        hand.needed = hand.needed.max(needed);
    }
    hand
}

fn seconds(hours: f64) -> i64 {
    let seconds = (hours * 3600.0).round();
    assert!((hours * 3600.0 - seconds).abs() < 1e-6, "{hours} hours are not whole seconds");
    seconds as i64
}

fn sum(causes: &MissingByCause) -> f64 {
    let MissingByCause { maximum, policy, window, start_up, .. } = causes;
    let MissingByCause { sync_period, target, tolerance, other, .. } = causes;
    maximum + policy + window + start_up + sync_period + target + tolerance + other
}

/// Loads, start-up times, limits and policies, from a linear congruential generator.
fn cases() -> Vec<Case> {
    let mut state: u32 = 1;
    let mut next = move |below: i64| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        i64::from(state >> 8) % below
    };
    let mut cases =
        vec![rising(), Case { startup: 300, ..rising() }, Case { most: 16, ..rising() }];
    for _ in 0..60 {
        let target = [350, 500, 700][next(3) as usize];
        let mut at = 0;
        let mut load = Vec::new();
        for _ in 0..2 + next(5) {
            load.push((at, next(12_000)));
            at += 1 + next(400);
        }
        cases.push(Case {
            target,
            replicas: 1 + next(10) as i32,
            most: 10 + next(25) as i32,
            startup: [0, 7, 40, 310][next(4) as usize],
            until: at + 300,
            behavior: ["", WAITING, SLOW][next(3) as usize],
            load,
        });
    }
    cases
}

#[test]
fn the_figures_are_those_of_a_calculation_by_hand() {
    for case in cases() {
        let (run, figures) = case.run();
        let causes = figures.scaling().missing_pod_hours_by_cause;
        let measured = ByHand {
            pods: seconds(figures.pod_hours),
            missing: seconds(figures.scaling().missing_pod_hours),
            without_pod: seconds(causes.start_up),
            beyond_the_most: seconds(causes.maximum),
            above: figures.scaling().above_target_seconds as i64,
            excess: i64::from(figures.scaling().excess_replicas),
            needed: i64::from(figures.scaling().needed_peak_replicas),
        };
        assert_eq!(measured, by_hand(&case, &run), "{case:?}");
        assert!(
            (sum(&causes) - figures.scaling().missing_pod_hours).abs() < 1e-9,
            "{causes:?}: {case:?}"
        );
    }
}

/// At 1m, the load needs 22 pods. A scale-up from 8 pods is limited to 16, and the next one is 15
/// seconds later.
#[test]
fn a_load_that_rises_from_8_pods_to_22() {
    let by_policy = 6 * 15;
    let (_, at_once) = rising().run();
    assert_eq!((at_once.scaling().needed_peak_replicas, at_once.peak_replicas), (22, 22));
    assert_eq!(at_once.scaling().excess_replicas, 0);
    assert_eq!(seconds(at_once.scaling().missing_pod_hours), by_policy);
    assert_eq!(seconds(at_once.scaling().missing_pod_hours_by_cause.policy), by_policy);
    let (_, slow) = Case { startup: 300, ..rising() }.run();
    assert_eq!(
        seconds(slow.scaling().missing_pod_hours),
        by_policy + 14 * 300,
        "about 1.2 pod-hours"
    );
    assert_eq!(seconds(slow.scaling().missing_pod_hours_by_cause.policy), by_policy);
    assert_eq!(seconds(slow.scaling().missing_pod_hours_by_cause.start_up), 14 * 300);
    // Until the last 6 pods are ready, each of the other 16 uses 134% of the target.
    assert_eq!(seconds(slow.scaling().above_target_seconds / 3600.0), 300 + 15);
    let (_, low) = Case { most: 16, ..rising() }.run();
    assert_eq!(seconds(low.scaling().missing_pod_hours), 6 * (900 - 60));
    assert_eq!(seconds(low.scaling().missing_pod_hours_by_cause.maximum), 6 * (900 - 60));
    let (_, waiting) = Case { behavior: WAITING, ..rising() }.run();
    // The recommendation of 45s, 8, leaves the window at 2m45s. At 3m, the 8 new pods do not count
    // as ready yet, so that the proposal is 16, which the window holds until 5m.
    let causes = waiting.scaling().missing_pod_hours_by_cause;
    assert_eq!(seconds(causes.window), 14 * 105 + 6 * 105);
    assert_eq!((seconds(causes.policy), seconds(causes.other)), (6 * 15, 6 * 15));
    let load = vec![(0, 2800), (67, 7500)];
    let (_, between) = Case { load, ..rising() }.run();
    assert_eq!(seconds(between.scaling().missing_pod_hours_by_cause.sync_period), 14 * (75 - 67));
}

#[test]
fn a_load_of_k_times_the_target_needs_k_replicas() {
    for target in [350, 500, 700] {
        for k in 1..=30 {
            let load = vec![(0, i64::from(k) * target)];
            let (_, figures) = Case { target, load, replicas: k, until: 120, ..RISING }.run();
            assert_eq!(
                (figures.scaling().needed_peak_replicas, figures.scaling().excess_replicas),
                (k, 0),
                "{target}"
            );
            assert_eq!(
                (figures.scaling().missing_pod_hours, figures.scaling().changes),
                (0.0, 0),
                "{target}: {k}"
            );
        }
    }
}

/// The load rises once, from a state in which nothing is missing. With a window, the controller
/// may scale up earlier if pods start more slowly: then two predictions can't be compared.
#[test]
fn more_start_up_time_never_lowers_the_missing_pod_hours() {
    let mut compared = 0;
    for case in cases() {
        let (low, high) = (case.load[0].1.min(case.load[1].1), case.load[0].1.max(case.load[1].1));
        let replicas = i32::try_from(low / case.target + 1).expect("a count");
        let case = Case { load: vec![(0, low), (60, high)], replicas, until: 900, ..case };
        let most = case.most.max(replicas);
        let mut before: Option<(Vec<i32>, f64)> = None;
        for startup in [0, 1, 15, 40, 100, 300, 600] {
            let (run, figures) = Case { startup, most, ..case.clone() }.run();
            let replicas: Vec<i32> = run.ticks.iter().map(|tick| tick.replicas_after).collect();
            let missing = figures.scaling().missing_pod_hours;
            if let Some((same, less)) = before
                && (case.behavior != WAITING || same == replicas)
            {
                compared += 1;
                assert!(missing >= less - 1e-9, "{missing} after {less} at {startup}s: {case:?}");
            }
            before = Some((replicas, missing));
        }
    }
    assert!(compared > 200, "{compared}");
}

#[test]
fn a_maximum_that_meets_the_need_misses_nothing() {
    for case in cases() {
        let needed = case.run().1.scaling().needed_peak_replicas;
        let most = needed.max(case.replicas);
        let (_, figures) = Case { most, ..case.clone() }.run();
        assert_eq!(figures.scaling().missing_pod_hours_by_cause.maximum, 0.0, "{case:?}");
        if needed > case.replicas {
            let (_, figures) = Case { most: needed - 1, ..case.clone() }.run();
            assert!(figures.scaling().missing_pod_hours_by_cause.maximum > 0.0, "{case:?}");
        }
    }
}
