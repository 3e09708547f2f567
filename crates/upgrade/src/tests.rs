//! Searches for known differences between releases.

use serde_json::Value;

use super::*;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::Time;
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
    Upgrade { from: release(from), to: release(to), ticks: 60_000, seed: 0 }
}

/// The changes that a search finds, each with its effect.
fn found(text: &str, from: &str, to: &str) -> Vec<(&'static str, Effect)> {
    let searched = upgrade(from, to).search(&parsed(text), false, &|| false);
    searched.differences.iter().map(|it| (it.change().what, it.effect)).collect()
}

const TOLERANCE: &str = "a ratio is compared with two tolerance bounds: 1.1 is now within 0.1";
const FIRST_RECONCILE: &str = "a new HPA is reconciled immediately";

#[test]
fn a_plain_hpa_differs_at_the_edge_of_the_tolerance_and_at_the_first_reconcile() {
    let all = found(PLAIN, "1.32", "1.37");
    assert!(all.contains(&(TOLERANCE, Effect::Replicas)), "{all:?}");
    assert!(all.contains(&(FIRST_RECONCILE, Effect::FirstReconcile)), "{all:?}");
    assert!(all.iter().all(|(what, effect)| *effect != Effect::Replicas || *what == TOLERANCE));
    // 75% of the request and 10% more is not a whole percentage, so no utilization is at the edge.
    let other = PLAIN.replace("averageUtilization: 80", "averageUtilization: 75");
    assert!(found(&other, "1.32", "1.36").iter().all(|(what, _)| *what != TOLERANCE));
    // A request of which no whole number of millicores is 88% has that utilization nevertheless.
    let odd = PLAIN.replace("cpu: 500m", "cpu: 333m");
    assert!(found(&odd, "1.32", "1.36").contains(&(TOLERANCE, Effect::Replicas)));
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
    assert!(all.contains(&(what, Effect::Replicas)), "{all:?}");
    assert!(found(PLAIN, "1.25", "1.26").iter().all(|(other, _)| *other != what));
}

#[test]
fn an_example_is_small_and_shows_the_difference() {
    let (scenario, upgrade) = (parsed(PLAIN), upgrade("1.32", "1.36"));
    let searched = upgrade.search(&scenario, false, &|| false);
    let of = |it: &&Difference| it.change().what == TOLERANCE;
    let difference = searched.differences.iter().find(of).expect("the difference");
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

#[test]
fn a_given_load_is_replayed() {
    let at_the_edge = parsed(&PLAIN.replace("perPod: 400m", "perPod: 440m"));
    let upgrade = Upgrade { ticks: 1, ..upgrade("1.32", "1.33") };
    let searched = upgrade.search(&at_the_edge, true, &|| false);
    let of = |it: &&Difference| it.change().what == TOLERANCE;
    let difference = searched.differences.iter().find(of).expect("the difference");
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
    let text = |jobs: usize, upgrade: Upgrade| {
        let results = upgrade.search_all(&subjects, jobs, &mut |_| true, &|| false);
        results.into_iter().flatten().map(|it| format!("{it:?}")).collect::<Vec<_>>()
    };
    assert_eq!(text(1, upgrade).len(), 4);
    assert_eq!(text(1, upgrade), text(3, upgrade));
    assert_ne!(text(1, upgrade), text(1, Upgrade { seed: 1, ..upgrade }));
    // If the search ends early, the other scenarios have no result.
    let results = upgrade.search_all(&subjects, 1, &mut |progress| progress.done < 2, &|| false);
    assert_eq!(results.iter().filter(|it| it.is_some()).count(), 2);
}

#[test]
fn changes_that_later_ones_revert_are_not_found() {
    let all = found(PLAIN, "1.6", "1.9");
    // 1.7 let the doubling limit take precedence over maxReplicas, and 1.8 ended that.
    let reverted = "if the doubling limit applies, maxReplicas does not";
    assert!(all.iter().all(|(what, _)| *what != reverted), "{all:?}");
}

#[test]
fn metrics_of_the_same_name_have_their_own_boundaries() {
    let container = "
      - type: ContainerResource
        containerResource:
          {name: cpu, container: app, target: {type: Utilization, averageUtilization: 95}}";
    let both = PLAIN.replace("Utilization: 80}}", &format!("Utilization: 50}}}}{container}"));
    let all = found(&both, "1.32", "1.36");
    assert!(all.contains(&(TOLERANCE, Effect::Replicas)), "{all:?}");
}
