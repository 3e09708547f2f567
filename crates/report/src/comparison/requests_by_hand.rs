//! The figures of requests, by an independent calculation second by second.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::comparison::Reference;
use crate::figures::{Figures, RequestFigures};
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_data::FIXTURES;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_scenario::{AnyScenario, Scenario, parse_any};
use kube_lockstep_sim::run::{FreeRun, PodChangeKind, free_run};

/// Two pods that use more than they request. The updater applies recommendations after a
/// minute.
const VPA: &str = "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Something holds.
vpa:
  apiVersion: autoscaling.k8s.io/v1
  kind: VerticalPodAutoscaler
  metadata: {name: web}
  spec:
    targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    updatePolicy: {updateMode: MODE}
    resourcePolicy: {containerPolicies: [{containerName: app, controlledValues: VALUES}]}
workload:
  replicas: 2
  containers:
    - {name: app, requests: {cpu: 100m, memory: 100Mi}, limits: {memory: 200Mi}}
metrics:
  resource:
    - {name: cpu, perPod: {steps: [{at: 0s, value: 700m}, {at: 20m, value: 40m}]}}
    - {name: memory, perPod: {steps: [{at: 0s, value: 150Mi}, {at: 10m, value: 240Mi}]}}
until: 30m
";

fn scenario(mode: &str, values: &str) -> Arc<Scenario> {
    let text = VPA.replace("MODE", mode).replace("VALUES", values);
    let scenario: VpaScenario = text.parse().expect("a scenario");
    Arc::new(scenario.applied(VpaRelease::NEWEST).expect("a single VPA"))
}

fn run_of(scenario: &Arc<Scenario>) -> FreeRun {
    free_run(scenario, Release::NEWEST)
}

fn figures(scenario: &Arc<Scenario>, run: &FreeRun) -> RequestFigures {
    Figures::new(scenario, run, &Reference::default()).requests.expect("a VPA")
}

/// CPU in cores and memory in GiB.
type Amounts = [f64; 2];

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// The requests of each pod over time, by what the updater and the admission controller report.
/// Pods end at once, and their replacements start at once.
fn requests_at(run: &FreeRun, second: i64) -> BTreeMap<Arc<str>, Amounts> {
    let template = [0.1, 100.0 / 1024.0];
    let mut pods = BTreeMap::from(["web-0", "web-1"].map(|name| (Arc::from(name), template)));
    for change in &run.vpa.as_ref().expect("a VPA").pod_changes {
        if change.at > Time::ZERO + Span::from_secs(second) {
            break;
        }
        if change.kind == PodChangeKind::Evicted {
            pods.remove(&change.pod);
            continue;
        }
        let requests = &change.requests[0].1;
        let amount = |name: &str| requests[name].approx_f64();
        pods.insert(change.pod.clone(), [amount("cpu"), amount("memory") / GIB]);
    }
    pods
}

/// Requested, unused and short, each of CPU and memory, and the pod-hours of short pods.
fn by_hand(run: &FreeRun) -> ([[f64; 3]; 2], f64) {
    let (mut sums, mut short) = ([[0.0; 3]; 2], 0.0);
    for second in 0..30 * 60 {
        let cpu = if second < 20 * 60 { 0.7 } else { 0.04 };
        let memory = if second < 10 * 60 { 150.0 } else { 240.0 } / 1024.0;
        for requests in requests_at(run, second).values() {
            let usage = [cpu, memory];
            for (index, sum) in sums.iter_mut().enumerate() {
                let (request, used) = (requests[index], usage[index]);
                let amounts = [request, (request - used).max(0.0), (used - request).max(0.0)];
                sum.iter_mut().zip(amounts).for_each(|(sum, it)| *sum += it / 3600.0);
            }
            let is_short = (0..2).any(|index| usage[index] > requests[index] + 1e-9);
            short += f64::from(u8::from(is_short)) / 3600.0;
        }
    }
    (sums, short)
}

#[test]
fn requests_and_usage_are_added_up_by_container() {
    for mode in ["Recreate", "Initial", "\"Off\"", "InPlaceOrRecreate"] {
        let scenario = scenario(mode, "RequestsAndLimits");
        let run = run_of(&scenario);
        let found = figures(&scenario, &run);
        let (sums, short) = by_hand(&run);
        for (sum, found) in sums.iter().zip([found.cpu, found.memory]) {
            let found = [found.requested, found.unused, found.short];
            for (one, other) in sum.iter().zip(found) {
                assert!((one - other).abs() < 1e-6, "{mode}: {sums:?} {found:?}");
            }
        }
        assert!((short - found.short_pod_hours).abs() < 1e-6, "{mode}: {short} {found:?}");
        let changes = (found.evictions, found.resizes);
        assert_eq!(changes.0 > 0, mode == "Recreate", "{mode}");
        assert_eq!(changes.1 > 0, mode == "InPlaceOrRecreate", "{mode}");
    }
}

#[test]
fn a_container_above_its_memory_limit_is_an_oom_kill() {
    let kills = |mode: &str, values: &str| {
        let scenario = scenario(mode, values);
        figures(&scenario, &run_of(&scenario)).oom_kills
    };
    assert_eq!(kills("\"Off\"", "RequestsAndLimits"), 2, "240Mi of 200Mi");
    // 250Mi is the smallest recommendation, so the limit grows from 200Mi to 500Mi.
    assert_eq!(kills("Recreate", "RequestsAndLimits"), 0);
    assert_eq!(kills("InPlaceOrRecreate", "RequestsAndLimits"), 0);
    assert_eq!(kills("Recreate", "RequestsOnly"), 2, "requests stay within the limit of 200Mi");
}

#[test]
fn oom_kills_of_the_timeline_and_edited_policies_count() {
    let with = |timeline: &str| {
        let text = VPA.replace("MODE", "Recreate").replace("VALUES", "RequestsAndLimits");
        let scenario: VpaScenario = format!("{text}timeline:\n{timeline}").parse().expect(timeline);
        Arc::new(scenario.applied(VpaRelease::NEWEST).expect("a single VPA"))
    };
    let kills = |scenario: &Arc<Scenario>| figures(scenario, &run_of(scenario)).oom_kills;
    assert_eq!(kills(&with("  - {at: 5s, oomKill: {pods: 0-1}}\n")), 2);
    // Limits no longer follow the requests, so 240Mi are more than 200Mi.
    let edit = "{spec: {resourcePolicy: {containerPolicies: \
                [{containerName: app, controlledValues: RequestsOnly}]}}}";
    assert_eq!(kills(&with(&format!("  - {{at: 5s, editVpa: {edit}}}\n"))), 2);
    let none = with("  - {at: 20m, oomKill: {pods: 0-1}}\n");
    let notes = run_of(&none).notes;
    assert!(notes.iter().any(|note| note.what.contains("has no effect")), "{notes:?}");
}

#[test]
fn a_container_beside_others_uses_nothing_without_a_load() {
    let text = VPA.replace("MODE", "\"Off\"").replace("VALUES", "RequestsOnly");
    let other = "  containers:\n    - {name: log, requests: {cpu: 1}}\n";
    let (text, _) = text.split_once("metrics:").expect("metrics");
    let text = text.replace("  containers:\n", other);
    let text = format!(
        "{text}metrics: {{resource: [{{name: cpu, containers: {{app: 100m}}}}]}}\nuntil: 30m\n"
    );
    let scenario: VpaScenario = text.parse().expect("a scenario");
    let scenario = Arc::new(scenario.applied(VpaRelease::NEWEST).expect("a single VPA"));
    let cpu = figures(&scenario, &run_of(&scenario)).cpu;
    assert!((cpu.requested - 1.1).abs() < 1e-9, "two pods for half an hour: {cpu:?}");
    assert!((cpu.unused - 1.0).abs() < 1e-9, "{cpu:?}");
}

/// The folders of the fixtures whose parts are added up.
const FOLDERS: [&str; 4] = ["hpa-and-vpa/", "vpa/numbers/", "vpa/oom/", "vpa/samples/"];

/// The scenarios of fixtures with a VPA: those of a VPA alone are applied.
fn fixtures() -> impl Iterator<Item = Arc<Scenario>> {
    let files = FIXTURES.paths().iter().filter(|path| path.ends_with(".yaml"));
    let own = files.filter(|path| FOLDERS.iter().any(|folder| path.starts_with(folder)));
    own.filter_map(|path| {
        let text = FIXTURES.text(path)?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let read = |name: &str| {
            FIXTURES
                .text(&format!("{folder}/{name}"))
                .map(|it| it.to_string())
                .ok_or("missing".into())
        };
        Some(Arc::new(match parse_any(path, &text, &read).expect(path) {
            AnyScenario::Hpa(scenario) => *scenario,
            AnyScenario::Vpa(scenario) => scenario.applied(VpaRelease::NEWEST)?,
        }))
    })
}

#[test]
fn parts_of_requests_add_up() {
    let mut count = 0;
    for scenario in fixtures() {
        let run = run_of(&scenario);
        if run.undetermined.is_some() || run.refused().is_some() {
            continue;
        }
        count += 1;
        let middle = Time((scenario.until.0) / 2);
        let boundaries = [Time::ZERO, middle];
        let (whole, parts) = Figures::of_parts(&scenario, &run, &Reference::new(&run), &boundaries);
        let [one, other] = parts[..] else { panic!("two parts") };
        let (whole, joined) = (whole.requests, one.join(other).requests);
        let (whole, joined) = (whole.expect("a VPA"), joined.expect("a VPA"));
        for (whole, joined) in [(whole.cpu, joined.cpu), (whole.memory, joined.memory)] {
            let [whole, joined] = [whole, joined].map(|it| [it.requested, it.unused, it.short]);
            for (one, other) in whole.iter().zip(joined) {
                assert!((one - other).abs() < 1e-6, "{}: {whole:?} {joined:?}", scenario.id);
            }
            assert!(whole.iter().all(|amount| *amount >= 0.0), "{}", scenario.id);
            assert!(whole[1] <= whole[0] + 1e-9, "{}: {whole:?}", scenario.id);
        }
        let counts = |it: RequestFigures| [it.oom_kills, it.evictions, it.resizes];
        assert_eq!(counts(whole), counts(joined), "{}", scenario.id);
    }
    assert!(count > 40, "{count} fixtures");
}
