//! Tests of searches, and of the states by which they merge runs.

use std::collections::HashMap;
use std::sync::Arc;

use super::check::{Check, Checked, Outcome};
use super::choices::Chosen;
use super::search::{End, Found, Node, Search};
use super::watch::Violation;
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
                let violation = search.advance(&mut node, at, Some(next), &chosen, &mut each);
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

/// Scenarios with counterexamples of different sizes, which are small enough to try all runs.
fn scenarios_with_counterexamples() -> Vec<(&'static str, Arc<Scenario>)> {
    let no_window = "    behavior: {scaleDown: {stabilizationWindowSeconds: 0}}";
    let with = |search: &str, expect: &str| {
        scenario(no_window, &format!("until: 2m\nsearch: {search}\nexpect: [{expect}]"))
    };
    let loads = "{choose: [{metric: cpu, values: [3, 1]}]}";
    let others = "{choose: [{metric: cpu, values: [0.4, 3]}]}";
    let events = "{at: 15s, podsDeleted: all}, {at: 15s, scale: 5}, {at: 15s, scale: 1}";
    let both = format!(
        "{{choose: [{{metric: cpu, values: [2, 1], every: 30s}}], \
          events: {{atMost: 2, every: 15s, of: [{events}]}}}}"
    );
    let sizes = "{replicas: [5, 2, 4], choose: [{metric: cpu, values: [2, 1], every: 20s}]}";
    vec![
        ("peak", with(loads, "{always: {from: 45s}, replicas: {atMost: 5}}")),
        ("turns", with(loads, "{atMost: {directionChanges: 2}}")),
        ("others", with(others, "{atMost: {rescales: 2, in: 1m}}")),
        ("within", with(loads, "{within: 30s, of: 30s, replicas: 2}")),
        ("both", with(&both, "{never: {from: 40s}, replicas: 5}")),
        ("two events", with(&both, "{atMost: {rescales: 2}}")),
        ("sizes", with(sizes, "{always: {from: 30s}, replicas: {atMost: 3}}")),
    ]
}

/// True if a metric is chosen at a time.
fn is_chosen(scenario: &Scenario, metric: usize, at: Time) -> bool {
    let open = &scenario.search.as_ref().expect("a search").choose[metric];
    at.0 % open.every.unwrap_or(Span::from_secs(15)).0 == 0
}

/// The numbers of events and of values in a choice that differ from those of the scenario.
fn sizes(scenario: &Scenario, search: &Search<'_>, at: Time, chosen: &Chosen) -> [usize; 2] {
    let metrics = search.choices.metrics.iter().zip(&chosen.values).enumerate();
    let different = metrics.filter(|(metric, (open, value))| {
        is_chosen(scenario, *metric, at) && open.values[usize::from(**value)] != open.values[0]
    });
    [usize::from(chosen.event.is_some()), different.count()]
}

/// The time of the earliest violation of all runs, and its fewest events and values.
fn smallest(scenario: &Scenario, search: &Search<'_>) -> Option<(Time, [usize; 2])> {
    let mut at = Time::ZERO;
    let first = search.first().into_iter().zip(&search.choices.replicas);
    let mut layer: Vec<(Node<'_>, [usize; 2])> = first
        .map(|(node, replicas)| (node, [0, usize::from(*replicas != scenario.workload.replicas)]))
        .collect();
    loop {
        let next = search.choices.next(at + Span(1));
        let (mut following, mut best) = (Vec::new(), None);
        for (node, [events, values]) in layer {
            for chosen in search.choices.at(at, &node.values, node.left) {
                let [more_events, more_values] = sizes(scenario, search, at, &chosen);
                let size = [events + more_events, values + more_values];
                let mut node = node.clone();
                let violation = search.advance(&mut node, at, next, &chosen, &mut |_| {});
                match violation.expect("nothing is left to chance") {
                    None => following.push((node, size)),
                    Some(Violation { at, .. }) => {
                        let other = best.filter(|best| *best <= (at, size));
                        best = other.or(Some((at, size)));
                    }
                }
            }
        }
        if best.is_some() {
            return best;
        }
        (layer, at) = (following, next?);
    }
}

/// The first violation of a run with these choices.
fn violation(search: &Search<'_>, replicas: i32, path: &[(Time, Chosen)]) -> Option<Violation> {
    let index = search.choices.replicas.iter().position(|known| *known == replicas);
    let mut node = search.first().swap_remove(index.expect("initial replicas"));
    path.iter().find_map(|(at, chosen)| {
        let next = search.choices.next(*at + Span(1));
        let violation = search.advance(&mut node, *at, next, chosen, &mut |_| {});
        violation.expect("nothing is left to chance")
    })
}

/// The paths in which one choice is as in the scenario.
fn paths_without_one_choice(
    scenario: &Scenario,
    search: &Search<'_>,
    path: &[(Time, Chosen)],
) -> Vec<Vec<(Time, Chosen)>> {
    let mut paths = Vec::new();
    for (index, (at, chosen)) in path.iter().enumerate() {
        if chosen.event.is_some() {
            let mut without = path.to_vec();
            without[index].1.event = None;
            paths.push(without);
        }
        for (metric, open) in search.choices.metrics.iter().enumerate() {
            let default = (1..open.values.len()).find(|it| open.values[*it] == open.values[0]);
            let Some(default) = default.filter(|_| is_chosen(scenario, metric, *at)) else {
                continue;
            };
            let is_default = !open.differs(chosen.values[metric], 0);
            let mut without = path.to_vec();
            for (later, chosen) in &mut without[index..] {
                if later == at || !is_chosen(scenario, metric, *later) {
                    chosen.values[metric] = default as u8;
                } else {
                    break;
                }
            }
            paths.extend((!is_default).then_some(without));
        }
    }
    paths
}

/// Of the shortest counterexamples, a search finds one with the fewest events and, with these, the
/// fewest values that differ from the scenario, whether or not it merges. Each choice is necessary.
#[test]
fn a_counterexample_has_no_choice_that_it_does_not_need() {
    for (name, scenario) in scenarios_with_counterexamples() {
        let check = Check::new(scenario.clone());
        for check in [check.clone(), check.without_merging()] {
            let check_one = &mut |search: &Search<'_>, state: State| {
                let End::Found(found) = search.run(state, &mut |_| true).end else {
                    panic!("{name}: no counterexample");
                };
                let Found { violation: first, replicas, path } = *found;
                let mut size = [0, usize::from(replicas != scenario.workload.replicas)];
                for (at, chosen) in &path {
                    let more = sizes(&scenario, search, *at, chosen);
                    size = [size[0] + more[0], size[1] + more[1]];
                }
                assert_eq!(smallest(&scenario, search), Some((first.at, size)), "{name}");
                assert_eq!(violation(search, replicas, &path), Some(first), "{name}");
                for path in paths_without_one_choice(&scenario, search, &path) {
                    let other = violation(search, replicas, &path);
                    assert!(other.is_none_or(|it| it.at > first.at), "{name}: {path:?}");
                }
                size
            };
            let size = check.with_search(check_one).expect("a search");
            assert_ne!(size, [0, 0], "{name}: nothing was chosen");
        }
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
