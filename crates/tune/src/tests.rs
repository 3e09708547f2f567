//! Searches of small grids, compared with every setting on its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::tuned::Without;
use crate::{Setting, Tune, Tuned, Vary};
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_autoscaler_models::time::Span;
use kube_lockstep_report::bound::Bounds;
use kube_lockstep_report::columns::Column;
use kube_lockstep_report::comparison::Reference;
use kube_lockstep_report::figures::Figures;
use kube_lockstep_report::price::Price;
use kube_lockstep_scenario::testing::scenario;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_scenario::{self as scenario, Scenario};
use kube_lockstep_sim::run::free_run;

/// A web shop whose load rises for some minutes.
const SHOP: &str = "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Something holds.
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    minReplicas: 4
    maxReplicas: 12
    behavior: {scaleDown: {stabilizationWindowSeconds: 300}}
    metrics:
    - type: Resource
      resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
workload:
  replicas: 4
  containers: [{name: app, requests: {cpu: 1}}]
  startup: {ready: 30s}
metrics:
  resource:
  - name: cpu
    load: {steps: [{at: 0s, value: 1}, {at: 5m, value: 7}, {at: 10m, value: 2}]}
until: 30m
";

const TARGET: &str = "spec.metrics.0.resource.target.averageUtilization";
const WINDOW: &str = "spec.behavior.scaleDown.stabilizationWindowSeconds";

fn vary(values: &[(&str, &str)]) -> Vec<Vary> {
    let vary = |(path, values): &(&str, &str)| format!("{path}={values}").parse();
    values.iter().map(vary).collect::<Result<_, _>>().expect("fields to vary")
}

fn bounds(text: &str) -> Bounds {
    text.parse().expect("bounds")
}

fn tune(text: &str) -> Tune {
    Tune::new(scenario(text))
}

/// The figures of a setting, from the text of its scenario.
fn figures(reference: &Reference, text: &str) -> Figures {
    let scenario: Arc<Scenario> = scenario(text);
    Figures::new(&scenario, &free_run(&scenario, Release::NEWEST), reference)
}

#[test]
fn the_front_is_that_of_every_setting_on_its_own() {
    let targets = [40, 50, 70, 90];
    let (windows, maximums) = ([0, 60, 300], [8, 12, 20]);
    let grid = [(TARGET, "40,70,90"), (WINDOW, "0,60"), ("spec.maxReplicas", "8,20")];
    let tuned = tune(SHOP).vary(vary(&grid)).objective(bounds("missing<=0.2")).run();
    let tuned = tuned.expect("a search");
    assert!(tuned.is_exhaustive && tuned.evaluated == 36, "{}", tuned.evaluated);

    let first = scenario(SHOP);
    let reference = Reference::new(&free_run(&first, Release::NEWEST));
    let mut all = Vec::new();
    for target in targets {
        for window in windows {
            for most in maximums {
                let text = SHOP
                    .replace("averageUtilization: 50", &format!("averageUtilization: {target}"))
                    .replace("Seconds: 300", &format!("Seconds: {window}"))
                    .replace("maxReplicas: 12", &format!("maxReplicas: {most}"));
                let it = figures(&reference, &text);
                all.push((it.pod_hours, it.scaling().missing_pod_hours));
            }
        }
    }
    let is_best = |(cost, missing): &&(f64, f64)| {
        let better = |it: &(f64, f64)| {
            it.0 <= *cost && it.1 <= *missing && (it.0, it.1) != (*cost, *missing)
        };
        !all.iter().any(better)
    };
    let mut front: Vec<(f64, f64)> = all.iter().filter(is_best).copied().collect();
    front.sort_by(|one, other| one.0.total_cmp(&other.0));
    front.dedup();
    let found =
        tuned.front.iter().map(|it| (it.figures.pod_hours, it.figures.scaling().missing_pod_hours));
    assert_eq!(found.collect::<Vec<_>>(), front);
    assert!(front.len() > 3, "{front:?}");

    let cheapest = all.iter().filter(|(_, missing)| *missing <= 0.2);
    let cheapest = cheapest.map(|(cost, _)| *cost).fold(f64::INFINITY, f64::min);
    let best = tuned.best.expect("a setting that meets the objective");
    assert_eq!(best.figures.pod_hours, cheapest);
    assert!(best.figures.scaling().missing_pod_hours <= 0.2, "{best:?}");
}

/// The parts of a result that must not depend on the number of threads.
fn comparable(tuned: &Tuned) -> String {
    serde_json::to_string(tuned).expect("JSON")
}

#[test]
fn the_result_does_not_depend_on_the_number_of_jobs() {
    let search = || tune(SHOP).objective(bounds("missing<=0.3")).settings(120);
    let one = search().run().expect("a search");
    // The last tenth is for settings with fewer changes.
    let evaluated = one.evaluated;
    assert!(!one.is_exhaustive && (108..=120).contains(&evaluated), "{evaluated}");
    let three = search().jobs(3).run().expect("a search");
    assert_eq!(comparable(&one), comparable(&three));
}

#[test]
fn a_local_search_finds_a_setting_that_is_better_than_the_current_one() {
    let tuned = tune(SHOP).settings(150).run().expect("a search");
    let best = tuned.best.as_ref().expect("a setting");
    assert!(best.figures.pod_hours < tuned.current.figures.pod_hours, "{}", tuned.headline());
    assert!(
        best.figures.scaling().missing_pod_hours
            <= tuned.current.figures.scaling().missing_pod_hours
    );
    assert!(
        best.figures.scaling().above_target_seconds
            <= tuned.current.figures.scaling().above_target_seconds
    );
    assert_eq!(tuned.contributions.len(), best.changes.len());
    assert_eq!(tuned.patches.len(), 1);
    // The patch is the difference between the manifests.
    let patched = &tuned.patches[0].manifest;
    assert_eq!(patched["spec"]["scaleTargetRef"]["name"], "web");
    let current = tune(SHOP).scenario_with(&tuned.current).expect("a scenario");
    assert_eq!(current.hpas[0].manifest["spec"]["maxReplicas"], 12);
    let changed = tune(SHOP).scenario_with(best).expect("a scenario");
    assert_eq!(changed.hpas[0].manifest, *patched);
}

/// Without any one of its changes, the best setting costs more, breaks the objective, or does not
/// pass the checks.
#[test]
fn each_change_of_the_best_setting_is_necessary() {
    let small = [("spec.maxReplicas", "8,9"), ("spec.minReplicas", "3,5,6"), (WINDOW, "0,60")];
    let waves = SHOP.replace(
        "{steps: [{at: 0s, value: 1}, {at: 5m, value: 7}, {at: 10m, value: 2}]}",
        "{noise: 20%, seed: 3, of: {sine: {mean: 4, amplitude: 3, period: 20m}}}",
    );
    let mut changes = 0;
    for (text, objective, minimized, fields) in [
        (SHOP, "missing<=0.4", "pod-hours", &[][..]),
        (SHOP, "missing<=2", "peak", &small),
        (&waves, "missing<=+0,above<=+0s", "pod-hours", &[]),
        (&waves, "missing<=+10%", "changes", &[]),
        (&waves, "missing<=+20%,pod-hours<=+20%", "reversals", &[]),
    ] {
        let minimized: Column = minimized.parse().expect("a column");
        for seed in 0..if fields.is_empty() { 2 } else { 1 } {
            let search = tune(text).objective(bounds(objective)).minimize(minimized);
            let search = search.settings(60).seed(seed).vary(vary(fields));
            let tuned = search.run().expect("a search");
            let best = tuned.best.as_ref().expect("a setting");
            changes += best.changes.len();
            for without in &tuned.contributions {
                let figure = |figures: &Figures| minimized.figure(figures);
                let is_worse = without.days_kept == 0
                    || without.figures.is_none_or(|it| figure(&it) > figure(&best.figures));
                let is_needed = is_worse || fails_a_check(&search, text, best, without);
                assert!(is_needed, "{minimized:?}: {}: {without:?}", best.text());
            }
        }
    }
    assert!(changes > 8, "{changes}");
}

/// Returns true if a setting without one of its changes does not keep the objective with another
/// start-up time.
fn fails_a_check(search: &Tune, text: &str, best: &Setting, without: &Without) -> bool {
    let mut simpler = best.clone();
    simpler.changes.retain(|change| *change != without.change);
    let simpler = search.scenario_with(&simpler).expect("a scenario");
    let first = scenario(text);
    let reference = Reference::new(&free_run(&first, Release::NEWEST));
    let figures = |scenario: &Arc<Scenario>, seconds: i64| {
        let mut scenario = (**scenario).clone();
        scenario.workload.startup.ready = Some(Span::from_secs(seconds));
        let scenario = Arc::new(scenario);
        Figures::new(&scenario, &free_run(&scenario, Release::NEWEST), &reference)
    };
    let objective = search.objective.clone().expect("an objective");
    [15, 60]
        .into_iter()
        .any(|seconds| !objective.are_kept(&figures(&simpler, seconds), &figures(&first, seconds)))
}

#[test]
fn an_objective_that_no_setting_keeps_has_no_best_setting() {
    let grid = [("spec.maxReplicas", "5,6")];
    let tuned = tune(SHOP).vary(vary(&grid)).objective(bounds("missing<=0")).run();
    let tuned = tuned.expect("a search");
    assert!(tuned.best.is_none() && tuned.patches.is_empty());
    assert!(tuned.headline().starts_with("No setting meets the objective missing<=0."));
}

#[test]
fn settings_that_an_api_server_rejects_count_as_invalid() {
    let grid = [("spec.minReplicas", "2,30"), ("spec.maxReplicas", "10,20")];
    let tuned = tune(SHOP).vary(vary(&grid)).run().expect("a search");
    // A minimum of 30 is above each maximum.
    assert_eq!((tuned.evaluated, tuned.invalid), (9, 3));
}

#[test]
fn a_capacity_replaces_the_target() {
    let grid = [(TARGET, "50,90")];
    let search = || tune(SHOP).vary(vary(&grid)).objective(bounds("missing<=0.3"));
    let by_target = search().run().expect("a search").best.expect("a setting");
    assert_eq!(by_target.changes, [], "a target of 90% lacks pods by its definition");
    let capacity = vec!["cpu=95%".parse().expect("a capacity")];
    let by_capacity = search().capacities(capacity).run().expect("a search").best;
    let by_capacity = by_capacity.expect("a setting");
    assert_eq!(by_capacity.changes[0].to, json!(90));
    let error = search().capacities(vec!["cpu=2".parse().expect("a capacity")]).run();
    assert!(error.expect_err("another unit").contains("must be in percent of the request"));
    let error = search().capacities(vec!["queue=2".parse().expect("a capacity")]).run();
    assert_eq!(error.expect_err("no such metric"), "no HPA scales on queue, which has a capacity");
}

#[test]
fn an_interrupted_search_has_the_result_so_far() {
    let left = AtomicUsize::new(20);
    let tuned = tune(SHOP).run_watched(&|_| left.fetch_sub(1, Ordering::Relaxed) > 1);
    let tuned = tuned.expect("a search");
    assert!(tuned.is_interrupted && tuned.evaluated == 20, "{}", tuned.evaluated);
    assert!(tuned.headline().contains("until the search was interrupted"));
}

/// Two days: the second one has the higher load.
fn two_days() -> String {
    let steps = "steps: [{at: 0s, value: 1}, {at: 6h, value: 3}, {at: 8h, value: 1}, \
                 {at: 30h, value: 9}, {at: 32h, value: 1}]";
    SHOP.replace("steps: [{at: 0s, value: 1}, {at: 5m, value: 7}, {at: 10m, value: 2}]", steps)
        .replace("until: 30m", "until: 48h")
        .replace("maxReplicas: 12", "maxReplicas: 30")
}

#[test]
fn a_setting_that_only_fits_the_days_of_the_search_is_noticed() {
    let grid = [("spec.maxReplicas", "7,8,20")];
    let search = |text: &str| {
        tune(text).vary(vary(&grid)).objective(bounds("missing<=0.3")).run().expect("a search")
    };
    let tuned = search(&two_days());
    assert_eq!(tuned.days, 2);
    // 8 replicas are enough on the first day only, and cost the same as 20 there.
    let best = tuned.best.as_ref().expect("a setting");
    assert_eq!(best.days_kept, 2, "{}", tuned.headline());
    let check = tuned.checks.iter().find(|check| check.condition == "day 2").expect("a check");
    assert_eq!(check.broken, Vec::<String>::new());
    // With only small maximums, the failed check is told.
    let small = two_days().replace("maxReplicas: 30", "maxReplicas: 9");
    let small =
        tune(&small).vary(vary(&[("spec.maxReplicas", "7,8")])).objective(bounds("missing<=0.3"));
    let small = small.run().expect("a search");
    assert!(!small.is_met() && small.headline().contains("on all days"), "{}", small.headline());
    let best = small.best.as_ref().expect("a setting for the first day");
    assert_eq!(best.days_kept, 1);
    let check = small.checks.iter().find(|check| check.condition == "day 2").expect("a check");
    assert!(check.broken[0].starts_with("missing ") && check.broken[0].ends_with("limit 0.3"));
}

/// The cost and the front are those of the whole load, with the days that only check.
#[test]
fn the_best_setting_of_several_days_is_the_cheapest_one_that_meets_the_objective_on_each() {
    let grid = [(TARGET, "40,60,70"), ("spec.maxReplicas", "7,14,20,30")];
    let tuned = tune(&two_days()).vary(vary(&grid)).objective(bounds("missing<=1")).run();
    let tuned = tuned.expect("a search");
    let met = tuned.all.iter().filter(|setting| setting.days_kept == tuned.days);
    let cheapest = met.map(|setting| setting.figures.pod_hours).fold(f64::INFINITY, f64::min);
    assert_eq!(tuned.best.as_ref().map(|best| best.figures.pod_hours), Some(cheapest));
    let front =
        tuned.front.iter().map(|it| (it.figures.pod_hours, it.figures.scaling().missing_pod_hours));
    let front: Vec<(f64, f64)> = front.collect();
    let falls = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 > pair[1].1;
    assert!(front.len() > 2 && front.windows(2).all(falls), "{front:?}");
}

/// Cheap settings that serve the load only if the pods start fast are often alike.
#[test]
fn a_setting_that_passes_the_checks_is_found_after_many_that_fail() {
    let steps = "load: {steps: [{at: 0s, value: 1}, {at: 5m, value: 7}, {at: 10m, value: 2}]}";
    let waves = |minutes: u32| {
        let sine = format!("load: {{sine: {{mean: 5, amplitude: 3, period: {minutes}m}}}}");
        SHOP.replace(steps, &sine)
    };
    let grid = [(TARGET, "40..60:1"), (WINDOW, "0,60,120,200"), ("spec.maxReplicas", "14..16")];
    let search = |text: &str, limit: f64| {
        tune(text).vary(vary(&grid)).objective(bounds(&format!("missing<={limit}")))
    };
    for (minutes, limit, is_cheapest) in [(7, 0.5, true), (12, 0.3, true), (7, 0.7, false)] {
        let text = waves(minutes);
        let search = search(&text, limit);
        let tuned = search.run().expect("a search");
        let reference = Reference::new(&free_run(&scenario(&text), Release::NEWEST));
        let passes = |setting: &Setting| {
            let varied = search.scenario_with(setting).expect("a scenario");
            [15, 60].into_iter().all(|seconds| {
                let mut varied = (*varied).clone();
                varied.workload.startup.ready = Some(Span::from_secs(seconds));
                let varied = Arc::new(varied);
                let run = free_run(&varied, Release::NEWEST);
                Figures::new(&varied, &run, &reference).scaling().missing_pod_hours <= limit
            })
        };
        let best = tuned.best.as_ref().expect("a setting");
        assert!(passes(best), "{}", tuned.headline());
        assert!(tuned.checks.iter().all(|check| check.broken.is_empty()), "{}", tuned.headline());
        let is_cheaper = |it: &&Setting| it.figures.pod_hours < best.figures.pod_hours;
        let cheaper = || tuned.all.iter().filter(|it| it.days_kept == 1).filter(is_cheaper);
        assert!(cheaper().count() > 8 && tuned.checked_settings > 8, "{}", tuned.headline());
        assert!(tuned.checked_settings <= 40, "{}", tuned.checked_settings);
        assert_eq!(is_cheapest, !cheaper().any(passes), "{minutes} {limit}");
    }
    let none = search(&waves(12), 0.2).run().expect("a search");
    let told = "but does not pass all checks; nor do the other 9 that meet it.";
    assert!(none.headline().contains(told), "{}", none.headline());
}

#[test]
fn hpas_that_the_controller_stops_get_no_recommendation() {
    let (before, after) = SHOP.split_once("hpa:\n").expect("an HPA");
    let (hpa, rest) = after.split_once("workload:").expect("a workload");
    let hpa = format!("- {}", hpa.trim_start());
    let other = hpa.replace("metadata: {name: web}", "metadata: {name: api}");
    let text = format!("{before}hpas:\n{hpa}{other}workload:{rest}");
    let search = |text: &str| tune(text).settings(20).objective(bounds("missing<=99"));
    let tuned = search(&text).run().expect("a search");
    assert!(tuned.best.is_none() && tuned.front.is_empty(), "{}", tuned.headline());
    let stopped = "The controller stops the HPAs of this workload, and no setting changes that";
    assert!(tuned.headline().starts_with(stopped), "{}", tuned.headline());
    assert!(tuned.headline().contains("more than one HPA"), "{}", tuned.headline());
    // Before 1.26, two HPAs overwrite each other's replicas.
    let before = search(&text).release("1.25".parse().expect("a release")).run();
    assert!(before.expect("a search").best.is_some());
    assert!(search(SHOP).run().expect("a search").stopped.is_none());
    // Without a request, the utilization fails; an average value does not.
    let without = SHOP.replace("requests: {cpu: 1}", "requests: {memory: 1Gi}");
    let tuned = search(&without).run().expect("a search");
    assert!(tuned.stopped.as_ref().is_some_and(|why| why.contains("missing request for cpu")));
    let average = r#"null,{"type":"AverageValue","averageValue":"1"}"#;
    let grid = [("spec.metrics.0.resource.target", average)];
    let tuned = search(&without).vary(vary(&grid)).run().expect("a search");
    assert!(tuned.stopped.is_none() && tuned.best.is_some(), "{}", tuned.headline());
}

#[test]
fn a_load_of_each_pod_is_told_first() {
    let headline = |text: &str| {
        let tuned = tune(text).vary(vary(&[(TARGET, "50,90")])).run();
        tuned.expect("a search").headline()
    };
    let each = SHOP.replace("    load: {steps", "    perPod: {steps");
    let told = "The load of cpu is per pod: it does not depend on the number of pods, so fewer \
                pods always look cheaper. Give it as a total: --load cpu=total:…";
    assert!(headline(&each).starts_with(told), "{}", headline(&each));
    assert!(!headline(SHOP).contains("per pod"));
    let memory = SHOP.replace("until", "  - {name: memory, perPod: 200Mi}\nuntil");
    assert!(!headline(&memory).contains("per pod"));
}

#[test]
fn many_more_reversals_are_told() {
    let waves = SHOP.replace(
        "{steps: [{at: 0s, value: 1}, {at: 5m, value: 7}, {at: 10m, value: 2}]}",
        "{sine: {mean: 5, amplitude: 3, period: 5m}}",
    );
    for (windows, is_told) in [("0,300", true), ("240,300", false)] {
        let tuned = tune(&waves).vary(vary(&[(WINDOW, windows)])).objective(bounds("missing<=9"));
        let tuned = tuned.run().expect("a search");
        let best = tuned.best.as_ref().expect("a setting");
        let reversals = |it: &Setting| it.figures.scaling().direction_changes;
        let (before, after) = (reversals(&tuned.current), reversals(best));
        let sentence = format!("more often: reversals {before} → {after}.");
        assert_eq!(tuned.headline().contains(&sentence), is_told, "{}", tuned.headline());
    }
}

#[test]
fn a_path_can_name_the_only_hpa_and_a_field_can_be_given_twice() {
    let grid = [("web/spec.maxReplicas", "8,20"), ("spec.maxReplicas", "20,30")];
    let tuned = tune(SHOP).vary(vary(&grid)).run().expect("a search");
    assert_eq!(tuned.varied.len(), 1);
    assert_eq!(json!(tuned.varied[0].values), json!([8, 12, 20, 30]));
    let unknown = tune(SHOP).vary(vary(&[("shop/spec.maxReplicas", "8")])).run();
    assert_eq!(unknown.expect_err("no such HPA"), "there is no HPA shop; the HPAs are web");
}

#[test]
fn a_field_without_a_valid_value_is_an_error() {
    let error = tune(SHOP).vary(vary(&[("spec.maxReplicass", "8,9")])).run();
    let error = error.expect_err("a misspelled field");
    assert!(error.contains("unknown field \"spec.maxReplicass\""), "{error}");
}

#[test]
fn noise_and_start_up_times_check_the_result() {
    let noisy = SHOP.replace(
        "load: {steps: [{at: 0s, value: 1}, {at: 5m, value: 7}, {at: 10m, value: 2}]}",
        "load: {noise: 10%, seed: 1, of: 6}",
    );
    let grid = [("spec.maxReplicas", "13,14")];
    let tuned = tune(&noisy).vary(vary(&grid)).objective(bounds("missing<=5")).runs(3).run();
    let conditions: Vec<String> =
        tuned.expect("a search").checks.into_iter().map(|it| it.condition).collect();
    let expected = ["noise of run 2", "noise of run 3", "start-up of 15s", "start-up of 1m"];
    assert_eq!(conditions, expected);
}

/// A VPA without policies whose pods use less than they request.
const VPA: &str = "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Something holds.
vpa:
  apiVersion: autoscaling.k8s.io/v1
  kind: VerticalPodAutoscaler
  metadata: {name: sizes}
  spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
workload:
  replicas: 3
  containers:
    - {name: app, requests: {cpu: 500m, memory: 1Gi}}
    - {name: log, requests: {cpu: 100m, memory: 100Mi}}
metrics:
  resource:
    - name: cpu
      containers: {app: {steps: [{at: 0s, value: 200m}, {at: 40m, value: 350m}]}, log: 20m}
    - {name: memory, containers: {app: 400Mi, log: 60Mi}}
until: 2h
";

fn applied(text: &str) -> Arc<Scenario> {
    let scenario: VpaScenario = text.parse().expect("a scenario");
    Arc::new(scenario.applied(VpaRelease::NEWEST).expect("a single VPA"))
}

fn tune_vpa() -> Tune {
    Tune::new(applied(VPA)).price("cpu=0.03,memory=0.004".parse().expect("prices"))
}

#[test]
fn the_front_of_a_vpa_is_that_of_every_setting_on_its_own() {
    let (minimum, margin) = (
        "spec.resourcePolicy.containerPolicies.0.minAllowed.cpu",
        "recommender.flags.recommendation-margin-fraction",
    );
    let grid = [(minimum, "250m,400m"), (margin, "0,0.15,0.5")];
    let tuned = tune_vpa().vary(vary(&grid)).objective(bounds("short<=1")).run();
    let tuned = tuned.expect("a search");
    assert!(tuned.is_exhaustive && tuned.evaluated == 12, "{}", tuned.evaluated);
    assert_eq!((tuned.minimized, tuned.risk), ("cost", "short"));
    let price: Price = "cpu=0.03,memory=0.004".parse().expect("prices");
    let mut all = Vec::new();
    for least in ["", "250m", "400m"] {
        for fraction in ["", "0", "0.15", "0.5"] {
            let mut text = VPA.to_owned();
            if !least.is_empty() {
                let policy = format!(
                    "name: web}}, resourcePolicy: {{containerPolicies: \
                     [{{containerName: app, minAllowed: {{cpu: {least}}}}}]}}}}"
                );
                text = text.replace("name: web}}", &policy);
            }
            if !fraction.is_empty() {
                let flags = "recommendation-margin-fraction";
                text += &format!("recommender: {{flags: {{{flags}: {fraction}}}}}\n");
            }
            let scenario = applied(&text);
            let run = free_run(&scenario, Release::NEWEST);
            let figures = Figures::new(&scenario, &run, &Reference::new(&run));
            let figures = figures.at_price(&price, &scenario.workload.spec);
            let requests = figures.requests.expect("a VPA");
            all.push((figures.cost.expect("a cost"), requests.short_pod_hours));
        }
    }
    let is_best = |(cost, short): &&(f64, f64)| {
        let better =
            |it: &(f64, f64)| it.0 <= *cost && it.1 <= *short && (it.0, it.1) != (*cost, *short);
        !all.iter().any(better)
    };
    let mut front: Vec<(f64, f64)> = all.iter().filter(is_best).copied().collect();
    front.sort_by(|one, other| one.0.total_cmp(&other.0));
    front.dedup();
    let figures = |it: &Setting| {
        let requests = it.figures.requests.expect("a VPA");
        (it.figures.cost.expect("a cost"), requests.short_pod_hours)
    };
    assert_eq!(tuned.front.iter().map(figures).collect::<Vec<_>>(), front);
    assert!(front.len() > 1, "{front:?}");
}

#[test]
fn a_vpa_without_policies_gets_one_for_each_container() {
    let tuned = tune_vpa().objective(bounds("oom-kills<=0")).settings(60).run();
    let tuned = tuned.expect("a search");
    let varied: Vec<&str> = tuned.varied.iter().map(|it| &*it.path).collect();
    assert_eq!(varied.len(), 8, "{varied:?}");
    let best = tuned.best.as_ref().expect("a setting");
    assert!(best.figures.cost < tuned.current.figures.cost, "{}", tuned.headline());
    let policies = &tuned.patches[0].patch["spec"]["resourcePolicy"]["containerPolicies"];
    let names: Vec<&str> = policies
        .as_array()
        .expect("policies")
        .iter()
        .filter_map(|it| it["containerName"].as_str())
        .collect();
    assert_eq!(names, ["app", "log"]);
    // The manifest is what the scenario of the setting has.
    let changed = tune_vpa().scenario_with(best).expect("a scenario");
    let written = scenario::to_manifests(&changed)["vpa"].clone();
    assert_eq!(written, tuned.patches[0].manifest);
}

#[test]
fn the_default_objective_of_a_vpa_limits_short_requests_and_oom_kills() {
    let grid = [("recommender.flags.recommendation-margin-fraction", "0,0.15")];
    let tuned = tune_vpa().vary(vary(&grid)).run().expect("a search");
    assert_eq!(tuned.objective, "cpu-short<=+0,memory-short<=+0,oom-kills<=+0");
    let error = Tune::new(applied(VPA)).run().expect_err("no prices");
    assert!(error.contains("requires prices"), "{error}");
    let memory = "memory-requested".parse().expect("a figure");
    let tuned = Tune::new(applied(VPA)).minimize(memory).vary(vary(&grid)).run();
    assert_eq!(tuned.expect("a search").minimized, "memory-requested");
}
