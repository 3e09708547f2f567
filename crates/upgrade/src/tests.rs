//! Searches for known differences between releases.

use std::sync::Arc;

use serde_json::Value;

use super::search::read;
use super::*;
use kube_autoscaler_models::flags::{Component, GateSetting};
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::testing::scenario as parsed;
use kube_lockstep_scenario::to_tree;
use kube_lockstep_sim::run::free_run;

const PLAIN: &str = "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: An HPA.
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    minReplicas: 2
    maxReplicas: 20
    metrics:
      - type: Resource
        resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}
workload: {replicas: 3, containers: [{name: app, requests: {cpu: 500m}}], startup: {ready: 20s}}
metrics: {resource: [{name: cpu, perPod: 400m}]}
until: 5m
";

fn upgrade(from: &str, to: &str) -> Upgrade {
    let release = |text: &str| text.parse::<Release>().expect("a release");
    let (from, to) = (release(from), release(to));
    Upgrade { from, to, from_gates: Vec::new(), to_gates: Vec::new(), ticks: 60_000, seed: 0 }
}

/// The setting of a gate in one component, or in both.
fn gate(component: Option<Component>, name: &str, on: bool) -> GateSetting {
    GateSetting { component, name: name.to_owned(), on }
}

/// The changes that a search finds, each with its effect.
fn found(text: &str, from: &str, to: &str) -> Vec<(String, Effect)> {
    found_by(&upgrade(from, to), text)
}

fn found_by(upgrade: &Upgrade, text: &str) -> Vec<(String, Effect)> {
    let searched = upgrade.search(&parsed(text), false, &|| false);
    let what = |it: &Difference| upgrade.reason(it.cause).what.into_owned();
    searched.differences.iter().map(|it| (what(it), it.effect)).collect()
}

/// The difference with this reason.
fn with_reason<'s>(upgrade: &Upgrade, searched: &'s Searched, what: &str) -> &'s Difference {
    let mut differences = searched.differences.iter();
    differences.find(|it| upgrade.reason(it.cause).what == what).expect("the difference")
}

const TOLERANCE: &str = "a ratio is compared with two tolerance bounds: 1.1 is now within 0.1";
const FIRST_RECONCILE: &str = "a new HPA is reconciled immediately";

#[test]
fn a_plain_hpa_differs_at_the_edge_of_the_tolerance_and_at_the_first_reconcile() {
    let all = found(PLAIN, "1.32", "1.37");
    assert!(all.contains(&(TOLERANCE.to_owned(), Effect::Replicas)), "{all:?}");
    assert!(all.contains(&(FIRST_RECONCILE.to_owned(), Effect::FirstReconcile)), "{all:?}");
    assert!(all.iter().all(|(what, effect)| *effect != Effect::Replicas || what == TOLERANCE));
    // 75% of the request and 10% more is not a whole percentage, so no utilization is at the edge.
    let other = PLAIN.replace("averageUtilization: 80", "averageUtilization: 75");
    assert!(found(&other, "1.32", "1.36").iter().all(|(what, _)| what != TOLERANCE));
    // A request of which no whole number of millicores is 88% has that utilization nevertheless.
    let odd = PLAIN.replace("cpu: 500m", "cpu: 333m");
    assert!(found(&odd, "1.32", "1.36").contains(&(TOLERANCE.to_owned(), Effect::Replicas)));
}

#[test]
fn a_long_given_load_takes_nothing_from_the_search() {
    let long = parsed(&PLAIN.replace("until: 5m", "until: 24h"));
    let upgrade = Upgrade { ticks: 5_000, ..upgrade("1.32", "1.34") };
    let [with, without] = [true, false].map(|has_load| upgrade.search(&long, has_load, &|| false));
    assert!(with.ticks > without.ticks + upgrade.ticks, "{} and {}", with.ticks, without.ticks);
    assert_eq!((with.scenarios, without.scenarios > 10), (without.scenarios, true));
}

#[test]
fn two_hpas_of_the_same_pods_differ_in_1_26() {
    let hpa = PLAIN.lines().skip_while(|line| *line != "hpa:").skip(1);
    let hpa: Vec<&str> = hpa.take_while(|line| !line.starts_with("workload")).collect();
    let item = |name: &str| {
        let text = hpa.join("\n").replace("name: web}\n  spec", &format!("name: {name}}}\n  spec"));
        text.replacen("  ", "  - ", 1).replace("\n  ", "\n    ")
    };
    let (start, end) = (PLAIN.find("hpa:").expect("an HPA"), PLAIN.find("workload").expect("pods"));
    let both = format!("{}hpas:\n{}\n{}\n{}", &PLAIN[..start], item("a"), item("b"), &PLAIN[end..]);
    let what = "HPAs that select the same pods fail: AmbiguousSelector";
    let all = found(&both, "1.25", "1.26");
    assert!(all.contains(&(what.to_owned(), Effect::Replicas)), "{all:?}");
    assert!(found(PLAIN, "1.25", "1.26").iter().all(|(other, _)| other != what));
}

#[test]
fn an_example_is_small_and_shows_the_difference() {
    let (scenario, upgrade) = (parsed(PLAIN), upgrade("1.32", "1.36"));
    let searched = upgrade.search(&scenario, false, &|| false);
    let difference = with_reason(&upgrade, &searched, TOLERANCE);
    let example = upgrade.example(&scenario, difference).expect("an example");
    assert_eq!(example.tree["metrics"]["resource"][0]["perPod"], "88%", "{}", example.tree);
    assert_eq!((example.at, &example.tree["timeline"]), (Time::from_secs(15), &Value::Null));
    let [before, after] = example.replicas.expect("other replicas");
    assert_eq!(
        (before, i64::from(after)),
        (after + 1, example.tree["workload"]["replicas"].as_i64().expect("replicas"))
    );
    // The manifest stays as it is.
    let hpa = &to_tree(&scenario)["hpa"];
    assert_eq!(&example.tree["hpa"], hpa);
    // The releases differ, not only the rules around the change.
    let run = |release: &str| {
        let run = free_run(&example.scenario, release.parse().expect("a release"));
        run.ticks.iter().map(|tick| tick.replicas_after).collect::<Vec<_>>()
    };
    assert_ne!(run("1.32"), run("1.36"));
}

/// The smaller trees of a load: without one step of a signal, or without one event.
fn without_one_part(tree: &Value) -> Vec<Value> {
    let lists = ["/timeline", "/metrics/resource/0/perPod/steps"];
    let smaller = lists.iter().flat_map(|list| {
        let length = tree.pointer(list).and_then(Value::as_array).map_or(0, Vec::len);
        (0..length).map(|index| {
            let mut smaller = tree.clone();
            let entries = smaller.pointer_mut(list).and_then(Value::as_array_mut);
            entries.into_iter().for_each(|entries| drop(entries.remove(index)));
            smaller
        })
    });
    smaller.collect()
}

#[test]
fn examples_are_minimal() {
    // Odd values, several events, and loads of which only a part shows the difference.
    for (text, from, to) in [
        (PLAIN.to_owned(), "1.32", "1.37"),
        (PLAIN.replace("averageUtilization: 80", "averageUtilization: 45"), "1.25", "1.37"),
        (PLAIN.replace("cpu: 500m", "cpu: 333m"), "1.11", "1.19"),
    ] {
        let (scenario, upgrade) = (parsed(&text), Upgrade { ticks: 12_000, ..upgrade(from, to) });
        let (plan, searched) = (upgrade.plan(), upgrade.search(&scenario, false, &|| false));
        for difference in &searched.differences {
            let example = upgrade.example(&scenario, difference).expect("an example");
            let shows = |scenario: &Arc<Scenario>| plan.shows(scenario, difference).is_some();
            assert!(shows(&example.scenario), "{}", example.tree);
            let replicas = example.tree["workload"]["replicas"].as_i64().expect("replicas");
            assert!(replicas >= 2, "below minReplicas: {}", example.tree);
            for smaller in without_one_part(&example.tree) {
                let smaller = read(&smaller).map(Arc::new);
                assert!(!smaller.is_some_and(|it| shows(&it)), "{}", example.tree);
            }
        }
    }
}

#[test]
fn well_known_changes_have_an_example_with_a_constant_load() {
    let (scenario, upgrade) = (parsed(PLAIN), upgrade("1.32", "1.37"));
    let searched = upgrade.search(&scenario, false, &|| false);
    for (what, load) in [(TOLERANCE, "88%"), (FIRST_RECONCILE, "90%")] {
        let difference = with_reason(&upgrade, &searched, what);
        let example = upgrade.example(&scenario, difference).expect("an example");
        assert_eq!(example.tree["timeline"], Value::Null, "{}", example.tree);
        assert_eq!(example.tree["metrics"]["resource"][0]["perPod"], load, "{}", example.tree);
        assert_eq!(example.tree["workload"]["replicas"], 2, "{}", example.tree);
    }
}

#[test]
fn a_given_load_is_replayed() {
    let at_the_edge = parsed(&PLAIN.replace("perPod: 400m", "perPod: 440m"));
    let upgrade = Upgrade { ticks: 1, ..upgrade("1.32", "1.33") };
    let searched = upgrade.search(&at_the_edge, true, &|| false);
    let difference = with_reason(&upgrade, &searched, TOLERANCE);
    assert!(difference.is_on_given_load);
    let example = upgrade.example(&at_the_edge, difference).expect("an example");
    assert_eq!(example.tree["metrics"], to_tree(&at_the_edge)["metrics"]);
    let elsewhere = upgrade.search(&parsed(PLAIN), true, &|| false);
    assert!(elsewhere.differences.iter().all(|it| !it.is_on_given_load));
}

#[test]
fn the_result_depends_on_the_seed_and_not_on_the_jobs() {
    let subjects: Vec<_> = [40, 55, 70, 80]
        .map(|target| PLAIN.replace("Utilization: 80", &format!("Utilization: {target}")))
        .iter()
        .map(|text| (parsed(text), false))
        .collect();
    let upgrade = Upgrade { ticks: 3000, ..upgrade("1.32", "1.36") };
    let text = |jobs: usize, upgrade: &Upgrade| {
        let results = upgrade.search_all(&subjects, jobs, &mut |_| true, &|| false);
        results.into_iter().flatten().map(|it| format!("{it:?}")).collect::<Vec<_>>()
    };
    assert_eq!(text(1, &upgrade).len(), 4);
    assert_eq!(text(1, &upgrade), text(3, &upgrade));
    assert_ne!(text(1, &upgrade), text(1, &Upgrade { seed: 1, ..upgrade.clone() }));
    // If the search ends early, the other scenarios have no result.
    let results = upgrade.search_all(&subjects, 1, &mut |progress| progress.done < 2, &|| false);
    assert_eq!(results.iter().filter(|it| it.is_some()).count(), 2);
}

#[test]
fn changes_that_later_ones_revert_are_not_found() {
    let all = found(PLAIN, "1.6", "1.9");
    // 1.7 let the doubling limit take precedence over maxReplicas, and 1.8 ended that.
    let reverted = "if the doubling limit applies, maxReplicas does not";
    assert!(all.iter().all(|(what, _)| what != reverted), "{all:?}");
}

#[test]
fn metrics_of_the_same_name_have_their_own_boundaries() {
    let container = "
      - type: ContainerResource
        containerResource:
          {name: cpu, container: app, target: {type: Utilization, averageUtilization: 95}}";
    let both = PLAIN.replace("Utilization: 80}}", &format!("Utilization: 50}}}}{container}"));
    let all = found(&both, "1.32", "1.36");
    assert!(all.contains(&(TOLERANCE.to_owned(), Effect::Replicas)), "{all:?}");
}

const TOLERANCE_GATE: &str = "feature gate HPAConfigurableTolerance is on by default";

/// The plain HPA with a tolerance of its own.
fn with_tolerance() -> Arc<Scenario> {
    let behavior = "maxReplicas: 20\n    behavior: {scaleUp: {tolerance: 20m}}";
    let mut scenario = parsed(&PLAIN.replace("maxReplicas: 20", behavior));
    Arc::make_mut(&mut scenario).is_of_manifests = true;
    scenario
}

#[test]
fn an_hpa_with_a_tolerance_is_searched_as_an_older_release_stores_it() {
    let scenario = with_tolerance();
    let upgrade = Upgrade { ticks: 8000, ..upgrade("1.32", "1.36") };
    assert_eq!(upgrade.rejections(&scenario), [None, None]);
    let searched = upgrade.search(&scenario, false, &|| false);
    let difference = with_reason(&upgrade, &searched, TOLERANCE_GATE);
    assert_eq!(difference.effect, Effect::Replicas);
    let [before, after] = upgrade.sides(&scenario).map(|side| side.expect("one set of gates"));
    assert_eq!(before.hpas[0].manifest["spec"]["behavior"]["scaleUp"], serde_json::json!({}));
    assert_eq!(after.hpas[0].manifest, scenario.hpas[0].manifest);
    assert_eq!(before.unsupported_on("1.32".parse().expect("a release")), None);
    assert!(upgrade.stores_tolerance_only_after(&scenario));
    let both = Upgrade { from: "1.35".parse().expect("a release"), ..upgrade };
    assert!(!both.stores_tolerance_only_after(&scenario));
}

#[test]
fn feature_gates_decide_when_a_field_has_an_effect() {
    let scenario = with_tolerance();
    let plain = Upgrade { ticks: 8000, ..upgrade("1.32", "1.36") };
    let differences = |upgrade: &Upgrade| -> Vec<(Cause, String)> {
        let searched = upgrade.search(&scenario, false, &|| false);
        let larger = searched.differences.iter().filter(|it| it.effect == Effect::Replicas);
        let reason = |it: &Difference| upgrade.reason(it.cause).what.into_owned();
        larger.map(|it| (it.cause, reason(it))).collect()
    };
    let has = |all: &[(Cause, String)], what: &str| all.iter().any(|(_, it)| it == what);
    let tolerance = |on| vec![gate(None, "HPAConfigurableTolerance", on)];
    // Off after the upgrade as well.
    let off = Upgrade { to_gates: tolerance(false), from_gates: tolerance(false), ..plain.clone() };
    assert!(!has(&differences(&off), TOLERANCE_GATE));
    // On after the upgrade to a release that has it off by default.
    let to = "1.33".parse().expect("a release");
    let on = Upgrade { to, to_gates: tolerance(true), ..plain.clone() };
    let all = differences(&on);
    assert!(has(&all, "the feature gate HPAConfigurableTolerance is now on"), "{all:?}");
    assert!(matches!(all.last(), Some((Cause::Gate(_), _))), "{all:?}");
    // A setting that the older release does not accept is new, too.
    let both = Upgrade { from_gates: tolerance(true), ..on.clone() };
    assert_eq!(differences(&both), all);
    // The API server drops the field, and without it the other component has nothing to apply.
    let controller = Some(Component::ControllerManager);
    let only = vec![gate(controller, "HPAConfigurableTolerance", true)];
    let dropped = Upgrade { to_gates: only, ..on };
    assert!(differences(&dropped).iter().all(|(cause, _)| !matches!(cause, Cause::Gate(_))));
    assert!(dropped.sides(&scenario)[1].is_err(), "a scenario has one set of gates");
}

#[test]
fn rejections_name_the_gate_that_is_off() {
    let container = PLAIN.replace("type: Resource\n        resource: {", CONTAINER);
    let scenario = parsed(&container);
    let of = |gates: &[GateSetting]| {
        let gates = gates.to_vec();
        let plain = upgrade("1.26", "1.27");
        Upgrade { from_gates: gates, ..plain }.rejections(&scenario)
    };
    let [before, after] = of(&[]);
    let before = before.expect("a rejection");
    assert!(before.contains("the API server of 1.26"), "{before}");
    assert!(before.ends_with("(the feature gate HPAContainerMetrics is off)"), "{before}");
    assert_eq!(after, None);
    assert_eq!(of(&[gate(None, "HPAContainerMetrics", true)]), [None, None]);
}

const CONTAINER: &str = "type: ContainerResource\n        containerResource: {container: app, ";

/// The replicas after each tick on a release.
fn replicas_on(scenario: &Arc<Scenario>, release: &str) -> Vec<(Time, i32)> {
    let run = free_run(scenario, release.parse().expect("a release"));
    let scaled = run.ticks.iter().filter(|tick| tick.replicas_after != tick.replicas_before);
    scaled.map(|tick| (tick.observation.at, tick.replicas_after)).collect()
}

#[test]
fn an_effect_on_the_status_has_an_example_with_the_same_replicas() {
    // 1.33 moves the edge of the tolerance of 0.1, and 1.35 replaces that tolerance.
    let behavior = "maxReplicas: 20\n    behavior: {scaleUp: {tolerance: 50m}, scaleDown: \
                    {tolerance: 200m}}";
    let text = PLAIN.replace("maxReplicas: 20", behavior);
    let mut scenario = parsed(&text.replace("averageUtilization: 80", "averageUtilization: 50"));
    Arc::make_mut(&mut scenario).is_of_manifests = true;
    for seed in 0..3 {
        let upgrade = Upgrade { seed, ticks: 20_000, ..upgrade("1.30", "1.36") };
        let searched = upgrade.search(&scenario, false, &|| false);
        let all: Vec<_> = searched
            .differences
            .iter()
            .filter(|it| it.effect == Effect::Replicas)
            .map(|it| upgrade.reason(it.cause).what.into_owned())
            .collect();
        assert_eq!(all, [TOLERANCE_GATE], "the seed {seed}");
        for difference in &searched.differences {
            let example = upgrade.example(&scenario, difference).expect("an example");
            let [old, new] = upgrade.sides(&example.scenario).map(|it| it.expect("a scenario"));
            let differs = replicas_on(&old, "1.30") != replicas_on(&new, "1.36");
            assert_eq!(differs, difference.effect == Effect::Replicas, "{}", example.tree);
            assert_eq!(example.replicas.is_some(), differs, "{}", example.tree);
        }
    }
}

const TO_ZERO: &str = "
      - type: External
        external: {metric: {name: queue}, target: {type: AverageValue, averageValue: 10}}";

/// An HPA of an external metric that scales to zero.
fn to_zero() -> Arc<Scenario> {
    let metrics = PLAIN.find("      - type: Resource").expect("a metric");
    let (hpa, rest) = (&PLAIN[..metrics], &PLAIN[PLAIN.find("workload").expect("pods")..]);
    let text = format!("{}{}\n{rest}", hpa.trim_end(), TO_ZERO)
        .replace("minReplicas: 2", "minReplicas: 0")
        .replace("resource: [{name: cpu, perPod: 400m}]", "external: [{name: queue, value: 30}]")
        .replace("until:", "controller: {featureGates: {HPAScaleToZero: true}}\nuntil:");
    let mut scenario = parsed(&text);
    Arc::make_mut(&mut scenario).gate_overrides.clear();
    scenario
}

#[test]
fn a_stored_minimum_of_zero_is_kept_without_its_gate() {
    let gates = vec![gate(None, "HPAScaleToZero", true)];
    let plain = Upgrade { ticks: 20_000, ..upgrade("1.35", "1.36") };
    let scenario = to_zero();
    // Without the gate, neither release stores it.
    let rejected = plain.rejections(&scenario).map(|it| it.is_some());
    assert_eq!((rejected, plain.rejection_as_new(&scenario)), ([true, true], None));
    // The older release stored it, and the newer one keeps it.
    let kept = Upgrade { from_gates: gates.clone(), ..plain.clone() };
    assert_eq!(kept.rejections(&scenario), [None, None]);
    let why = kept.rejection_as_new(&scenario).expect("a new HPA is rejected");
    assert!(why.contains("spec.minReplicas: Invalid value: 0"), "{why}");
    // From 1.36 on, a controller without the gate does not scale up from zero.
    let searched = kept.search(&scenario, false, &|| false);
    let difference = with_reason(&kept, &searched, "the feature gate HPAScaleToZero is now off");
    assert_eq!(difference.effect, Effect::Replicas);
    let [old, new] = kept.sides(&scenario);
    assert!(old.is_ok());
    assert!(new.is_err_and(|why| why.contains("none of them is already stored")));
    // With the gate on both, a new HPA is accepted as well.
    let both = Upgrade { to_gates: gates, ..kept };
    assert_eq!(both.rejection_as_new(&scenario), None);
    assert!(both.sides(&scenario).iter().all(Result::is_ok));
}

#[test]
fn a_stored_tolerance_is_kept_by_an_api_server_without_the_gate() {
    let gates = |component, on| gate(component, "HPAConfigurableTolerance", on);
    let plain = Upgrade { ticks: 20_000, ..upgrade("1.33", "1.34") };
    let controller = gates(Some(Component::ControllerManager), true);
    // The gate is off in the newer API server only.
    let kept = Upgrade { from_gates: vec![gates(None, true)], to_gates: vec![controller], ..plain };
    let searched = kept.search(&with_tolerance(), false, &|| false);
    assert!(searched.differences.iter().all(|it| it.effect != Effect::Replicas), "{searched:?}");
    // Without the gate before the upgrade, the field is not stored.
    let dropped = Upgrade { from_gates: Vec::new(), ..kept };
    let searched = dropped.search(&with_tolerance(), false, &|| false);
    assert!(searched.differences.iter().all(|it| it.effect != Effect::Replicas), "{searched:?}");
}

#[test]
fn a_difference_of_which_each_of_two_changes_suffices_is_found() {
    // 1.35 turns the gate on, and 1.37 locks it: the first one is the cause. Other changes of 1.37
    // always show in the status, and the first reconcile is earlier.
    let scenario = with_tolerance();
    for from in ["1.32", "1.34"] {
        let upgrade = Upgrade { ticks: 20_000, ..upgrade(from, "1.37") };
        let searched = upgrade.search(&scenario, false, &|| false);
        let difference = with_reason(&upgrade, &searched, TOLERANCE_GATE);
        assert_eq!(difference.effect, Effect::Replicas);
        let example = upgrade.example(&scenario, difference).expect("an example");
        assert!(example.replicas.is_some(), "{}", example.tree);
    }
}
