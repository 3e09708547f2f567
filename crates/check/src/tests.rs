//! Tests of searches, and of the states by which they merge runs.

use std::collections::HashMap;
use std::sync::Arc;

use super::check::{Check, Checked, Outcome};
use super::search::{Node, Search};
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::state::{Part, State};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::free_run;

/// A scenario of an HPA with a target of half a core, with these fields of its spec and of the
/// file.
fn scenario(spec: &str, fields: &str) -> Arc<Scenario> {
    with_load("1", spec, fields)
}

fn with_load(load: &str, spec: &str, fields: &str) -> Arc<Scenario> {
    let text = format!(
        "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: A test.
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {{name: web}}
  spec:
    scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
    minReplicas: 1
    maxReplicas: 6
    metrics:
    - type: Resource
      resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 50}}}}
{spec}
workload:
  replicas: 2
  containers: [{{name: app, requests: {{cpu: 1}}}}]
  startup: {{ready: 20s}}
metrics:
  resource: [{{name: cpu, load: {load}}}]
{fields}
"
    );
    Arc::new(text.parse().unwrap_or_else(|error| panic!("{error}\n{text}")))
}

const WINDOW: &str = "    behavior: {scaleDown: {stabilizationWindowSeconds: 60}}";
const REVERSALS: &str = "expect: [{atMost: {directionChanges: 0}}]";

fn check(scenario: &Arc<Scenario>) -> Checked {
    Check::new(scenario.clone()).run().expect("a result")
}

#[test]
fn the_shortest_counterexample_is_a_scenario_that_does_not_meet_its_expectation() {
    let scenario = scenario(
        WINDOW,
        &format!("until: 5m\nsearch: {{choose: [{{metric: cpu, values: [1, 2]}}]}}\n{REVERSALS}"),
    );
    let checked = check(&scenario);
    assert_eq!(checked.outcome, Outcome::Counterexample);
    let found = checked.counterexample.expect("a counterexample");
    // Up at t=0, and down when the recommendation of t=15s has left the window.
    assert_eq!((found.expectation, found.at), (1, Time::from_secs(75)));
    assert_eq!(
        found.what,
        "tick 6 (t=1m15s): changes of direction: expected at most 0, 4 -> 2 was number 1"
    );
    let text = kube_lockstep_scenario::to_yaml(&found.scenario, None);
    let again: Scenario = text.parse().expect("a scenario");
    assert_eq!((again.until, again.search.is_some()), (Time::from_secs(75), false));
    assert!(
        text.contains("load: {steps: [{at: 0s, value: \"2\"}, {at: 15s, value: \"1\"}]}"),
        "{text}"
    );
}

#[test]
fn a_long_window_makes_reversals_impossible_however_long_the_scenario_lasts() {
    let scenario = scenario(
        "    behavior: {scaleDown: {selectPolicy: Disabled}}",
        &format!("until: 1h\nsearch: {{choose: [{{metric: cpu, values: [1, 2]}}]}}\n{REVERSALS}"),
    );
    let checked = check(&scenario);
    assert_eq!(checked.outcome, Outcome::AlwaysHolds, "{checked:?}");
    assert!(checked.states < 300 && checked.reached < Time::from_secs(3600), "{checked:?}");
}

#[test]
fn a_search_ends_at_its_largest_number_of_states() {
    let scenario = scenario(
        WINDOW,
        "until: 1h
search: {choose: [{metric: cpu, values: [1, 2]}]}
expect: [{always: {}, replicas: {atLeast: 1, atMost: 6}}]",
    );
    let checked = Check::new(scenario.clone()).states(20).run().expect("a result");
    assert_eq!(checked.outcome, Outcome::TooManyStates);
    let stopped = Check::new(scenario).run_watched(&mut |_| false).expect("a result");
    assert_eq!(stopped.outcome, Outcome::Interrupted);
}

#[test]
fn events_and_initial_replicas_are_chosen() {
    let scenario = scenario(
        "",
        "until: 3m
search:
  replicas: [2, 3]
  events: {atMost: 1, every: 30s, of: [{at: 30s, podsDeleted: all}, {at: 45s, scale: 5}]}
expect: [{always: {}, replicas: {atMost: 4}}]",
    );
    let checked = check(&scenario);
    let found = checked.counterexample.expect("a counterexample");
    assert_eq!(found.at, Time::from_secs(45));
    let timeline = &found.scenario.timeline;
    assert_eq!(timeline.iter().map(|it| it.at).collect::<Vec<_>>(), [Time::from_secs(45)]);
}

/// What a run does up to the next choice, relative to the time of the choice.
type Effect = (Vec<(i64, i32, i32)>, Option<(i64, usize)>, Option<u128>);

/// Runs all choices without merging, and compares the effects of each choice on runs with equal
/// states. Returns the number of comparisons, or the first difference.
fn compare(search: &Search<'_>, mut state: State, depth: usize) -> Result<usize, String> {
    let mut effects: HashMap<(u128, u32), Effect> = HashMap::new();
    let (mut at, mut compared) = (Time::ZERO, 0);
    let mut layer: Vec<(Node<'_>, u128)> = search.first().into_iter().map(|it| (it, 0)).collect();
    for step in 0..depth {
        let Some(next) = search.choices.next(at + Span(1)) else { break };
        let mut following = Vec::new();
        for (node, before) in layer {
            let options = search.choices.at(at, &node.values, node.left);
            for (index, chosen) in (0..).zip(options) {
                let mut node = node.clone();
                let mut ticks = Vec::new();
                let mut each = |tick: &kube_lockstep_sim::expect::Reconciled<'_>| {
                    let (before, after) = tick.replicas();
                    ticks.push(((tick.at() - at).0, before, after));
                };
                let name = format!("{chosen:?} at {at}");
                let violation = search.advance(&mut node, at, Some(next), chosen, &mut each);
                let violation = violation.expect("nothing is left to chance");
                let after = violation.is_none().then(|| {
                    assert!(search.add_to(&mut node, next, &mut state), "the state is complete");
                    state.hash()
                });
                let violation = violation.map(|it| ((it.at - at).0, it.index));
                let effect = (ticks, violation, after);
                if step > 0 {
                    let known = effects.entry((before, index)).or_insert_with(|| effect.clone());
                    compared += 1;
                    if *known != effect {
                        return Err(format!("{name}: {known:?}, and {effect:?}"));
                    }
                }
                following.extend(after.map(|after| (node, after)));
            }
        }
        (layer, at) = (following, next);
    }
    Ok(compared)
}

/// Compares runs with equal states, of which a part may be left out.
fn compare_without(
    scenario: &Arc<Scenario>,
    depth: usize,
    part: Option<Part>,
) -> Result<usize, String> {
    let check = Check::new(scenario.clone());
    let compared = check.with_search(&mut |search, mut state| {
        state.left_out = part;
        compare(search, state, depth)
    });
    compared.expect("a search")
}

/// Scenarios with the number of times of choices that a comparison without merging can reach.
fn scenarios() -> Vec<(&'static str, Arc<Scenario>, usize)> {
    let loads = "until: 5m\nsearch: {choose: [{metric: cpu, values: [0.4, 1, 3]}]}\n";
    let always = "expect: [{always: {}, replicas: {atMost: 9}}]";
    let policies = "    behavior:
      scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 45}]}
      scaleDown: {stabilizationWindowSeconds: 30}";
    let pods = "until: 5m
search:
  choose: [{metric: cpu, values: [0.5, 2], every: 30s}]
  events:
    atMost: 2
    every: 15s
    of: [{at: 15s, podsUnready: all, for: 20s}, {at: 15s, podsDeleted: all}]
";
    let faults = "until: 5m
search:
  choose: [{metric: cpu, values: [0.5, 2], every: 45s}]
  events:
    atMost: 2
    every: 15s
    of:
    - {at: 20s, rollingUpdate: {}}
    - {at: 20s, editHpa: {spec: {maxReplicas: 3}}}
    - {at: 20s, restartController: {}}
    - {at: 20s, scale: 4}
    - {at: 20s, metricsMissing: all, for: 40s}
timeline: [{at: 70s, podsFailed: all}]
";
    let restart = "until: 5m
search:
  events:
    atMost: 2
    every: 10s
    of:
    - {at: 20s, restartController: {}}
    - {at: 20s, scale: 2}
    - {at: 20s, metricsError: {code: 503, message: down}}
";
    let steps = "{steps: [{at: 0s, value: 1}, {at: 70s, value: 3}]}";
    let backlog = "{backlog: 3, initial: 20}, limit: 1";
    let no_window = "    behavior: {scaleDown: {stabilizationWindowSeconds: 0}}";
    let limits = "expect:
- {atMost: {rescales: 2, in: 1m}}
- {within: 45s, of: 15s, replicas: {atLeast: 2, atMost: 4}}";
    let with = |fields: &str, expect: &str| format!("{fields}{expect}");
    vec![
        ("loads", scenario(WINDOW, &with(loads, always)), 7),
        ("policies", scenario(policies, &with(loads, always)), 7),
        ("limits", scenario(policies, &with(loads, limits)), 7),
        ("pods", scenario(WINDOW, &with(pods, always)), 6),
        ("faults", scenario(WINDOW, &with(faults, REVERSALS)), 7),
        ("restart", scenario(no_window, &with(restart, always)), 7),
        ("steps", with_load(steps, no_window, &with(restart, always)), 7),
        ("backlog", with_load(backlog, no_window, &with(restart, always)), 7),
    ]
}

#[test]
fn runs_with_equal_states_continue_in_the_same_way() {
    for (name, scenario, depth) in scenarios() {
        let compared = compare_without(&scenario, depth, None);
        let compared = compared.unwrap_or_else(|difference| panic!("{name}: {difference}"));
        assert!(compared > 150, "{name}: only {compared} comparisons");
    }
}

/// A planted fault: a part of the state is left out, so that runs are merged that continue
/// differently.
#[test]
fn a_state_without_one_of_its_parts_is_noticed() {
    let scenarios = scenarios();
    let is_noticed = |part: &Part| {
        let mut scenarios = scenarios.iter();
        scenarios
            .any(|(_, scenario, depth)| compare_without(scenario, *depth, Some(*part)).is_err())
    };
    let unnoticed: Vec<Part> = Part::ALL.into_iter().filter(|part| !is_noticed(part)).collect();
    assert_eq!(unnoticed, []);
}

#[test]
fn merging_changes_no_result() {
    for (name, scenario, _) in scenarios() {
        let mut short = (*scenario).clone();
        short.until = Time::from_secs(90);
        if let Some(search) = &mut short.search {
            search.choose.iter_mut().for_each(|open| open.to = None);
        }
        let check = Check::new(short);
        let merged = check.run().expect("a result");
        let all = check.without_merging().run().expect("a result");
        assert_eq!(
            merged.outcome == Outcome::Counterexample,
            all.outcome == Outcome::Counterexample
        );
        let at =
            |checked: &Checked| checked.counterexample.as_ref().map(|it| (it.at, it.expectation));
        assert_eq!(at(&merged), at(&all), "{name}");
        assert!(merged.states <= all.states, "{name}");
    }
}

/// The counterexamples of a search are those that whole runs have.
#[test]
fn expectations_are_watched_as_whole_runs_are_evaluated() {
    for (name, scenario, _) in scenarios() {
        let checked = Check::new(scenario).states(2_000).run().expect("a result");
        let Some(found) = checked.counterexample else { continue };
        let run = free_run(&found.scenario, Release::NEWEST);
        assert_eq!(run.trace.ticks.last().map(|tick| tick.at), Some(found.at), "{name}");
    }
}
