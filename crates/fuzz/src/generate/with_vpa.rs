//! Adds a VPA to a generated scenario of an HPA.
//!
//! The VPA is added to the file of the scenario, so that the parser checks whether both fit.

use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::fuzzed::Fuzzed;
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::{
    Action, Empty, OomKillOfPods, OomSeen, PodEviction, PodSet, TimelineEvent,
};
use kube_lockstep_sim::engine::Hpa;

/// One MiB in thousandths of a byte.
const MEBIBYTE_IN_MILLI: i64 = 1000 << 20;

/// The scenario with a VPA, if it can have one.
pub(crate) fn add(dice: &mut Dice, hpa_scenario: &Scenario) -> Option<Scenario> {
    let hpa_scenario = Scenario { requirement: "Generated.".to_owned(), ..hpa_scenario.clone() };
    let mut tree = scenario::to_tree(&hpa_scenario);
    let containers: Vec<String> =
        hpa_scenario.workload.spec.containers.iter().map(|it| it.name.to_string()).collect();
    let recommender = recommender_flags(dice);
    tree["vpa"] = manifest(dice, &hpa_scenario, &containers);
    tree["vpaRelease"] = VpaRelease::NEWEST.to_string().into();
    tree["recommender"] = json!({ "flags": recommender });
    tree["updater"] = json!({ "flags": updater_flags(dice) });
    let mut timeline = match tree["timeline"].take() {
        Value::Array(events) => events,
        _ => Vec::new(),
    };
    timeline
        .retain(|event| scenario::EVENTS_WITHOUT_VPA.iter().all(|name| event.get(*name).is_none()));
    timeline.extend(events(dice, hpa_scenario.until, &containers).iter().map(|event| json!(event)));
    tree["timeline"] = timeline.into();
    <Hpa as Fuzzed>::read("generated", &tree)
}

fn manifest(dice: &mut Dice, hpa_scenario: &Scenario, containers: &[String]) -> Value {
    let workload = &hpa_scenario.workload;
    let api_version = match workload.group.as_str() {
        "" => workload.version.clone(),
        group => format!("{group}/{}", workload.version),
    };
    let modes = [
        (1, None),
        (1, Some("Off")),
        (2, Some("Initial")),
        (6, Some("Recreate")),
        (1, Some("Auto")),
        (5, Some("InPlaceOrRecreate")),
    ];
    let mut policy = Map::new();
    policy.extend(dice.weighted(&modes).map(|mode| ("updateMode".to_owned(), json!(mode))));
    if dice.percent(40) {
        policy.insert("minReplicas".to_owned(), json!(dice.between(1, 3)));
    }
    if dice.percent(20) {
        let change = dice.pick(&["TargetHigherThanRequests", "TargetLowerThanRequests"]);
        let resources = dice.pick(&[json!(["cpu"]), json!(["memory"]), json!(["cpu", "memory"])]);
        let requirement = json!({ "resources": resources, "changeRequirement": change });
        policy.insert("evictionRequirements".to_owned(), json!([requirement]));
    }
    let mut spec = json!({ "targetRef": {
        "apiVersion": api_version, "kind": workload.kind, "name": workload.name,
    } });
    if !policy.is_empty() {
        spec["updatePolicy"] = policy.into();
    }
    if dice.percent(60) {
        let all = containers.iter().map(String::as_str).chain(["*"]);
        let all: Vec<&str> = all.collect();
        let name = dice.pick(&all);
        spec["resourcePolicy"] = json!({ "containerPolicies": [container_policy(dice, name)] });
    }
    json!({
        "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
        "metadata": { "name": "web" },
        "spec": spec,
    })
}

fn container_policy(dice: &mut Dice, name: &str) -> Value {
    let mut policy = json!({ "containerName": name });
    if dice.percent(15) {
        policy["mode"] = "Off".into();
        return policy;
    }
    if dice.percent(40) {
        policy["controlledResources"] = dice.pick(&[json!(["cpu"]), json!(["memory"])]);
    }
    if dice.percent(30) {
        policy["controlledValues"] = dice.pick(&["RequestsOnly", "RequestsAndLimits"]).into();
    }
    let cpu = ["10m", "100m", "333m", "1", "2500m"];
    let memory = ["10Mi", "100Mi", "256Mi", "1Gi"];
    if dice.percent(40) {
        policy["minAllowed"] = json!({ "cpu": dice.pick(&cpu), "memory": dice.pick(&memory) });
    }
    if dice.percent(50) {
        policy["maxAllowed"] = json!({ "cpu": dice.pick(&cpu), "memory": dice.pick(&memory) });
    }
    policy
}

fn recommender_flags(dice: &mut Dice) -> Map<String, Value> {
    let mut flags = Map::new();
    let mut set = |dice: &mut Dice, percent: u64, name: &str, values: &[&str]| {
        if dice.percent(percent) {
            flags.insert(name.to_owned(), dice.pick(values).into());
        }
    };
    // With checkpoints, the last bits of weights are random for pods of several ages.
    set(dice, 85, "storage", &["prometheus"]);
    set(dice, 60, "recommender-interval", &["15s", "20s", "30s", "2m"]);
    set(dice, 20, "cpu-histogram-decay-half-life", &["30s", "10m", "1h"]);
    set(dice, 20, "memory-histogram-decay-half-life", &["30s", "10m", "1h"]);
    set(dice, 30, "memory-aggregation-interval", &["1m", "5m", "1h"]);
    set(dice, 30, "confidence-interval-cpu", &["1m", "5m", "1h"]);
    set(dice, 30, "confidence-interval-memory", &["1m", "5m", "1h"]);
    set(dice, 20, "recommendation-margin-fraction", &["0", "0.3", "1.7"]);
    set(dice, 10, "target-cpu-percentile", &["0.5", "0.99"]);
    set(dice, 20, "pod-recommendation-min-cpu-millicores", &["0", "10"]);
    set(dice, 20, "pod-recommendation-min-memory-mb", &["0", "10"]);
    set(dice, 10, "oom-bump-up-ratio", &["1.5", "3.7"]);
    flags
}

fn updater_flags(dice: &mut Dice) -> Map<String, Value> {
    let mut flags = Map::new();
    let mut set = |dice: &mut Dice, percent: u64, name: &str, values: &[&str]| {
        if dice.percent(percent) {
            flags.insert(name.to_owned(), dice.pick(values).into());
        }
    };
    set(dice, 60, "updater-interval", &["15s", "20s", "30s", "2m"]);
    set(dice, 40, "min-replicas", &["1", "3"]);
    set(dice, 30, "eviction-tolerance", &["0", "0.25", "1"]);
    set(dice, 30, "pod-update-threshold", &["0", "0.05", "0.5"]);
    let lifetime = "in-recommendation-bounds-eviction-lifetime-threshold";
    set(dice, 30, lifetime, &["1m", "2m", "10m"]);
    set(dice, 20, "evict-after-oom-threshold", &["1m", "5m"]);
    set(dice, 20, "in-place-skip-disruption-budget", &["true"]);
    flags
}

/// Events of the VPA.
fn events(dice: &mut Dice, until: Time, containers: &[String]) -> Vec<TimelineEvent> {
    let mut events = Vec::new();
    for _ in 0..dice.weighted(&[(3, 0), (4, 1), (2, 2), (1, 4)]) {
        let seconds = until.since_start().0 / Span::from_secs(1).0;
        let at = Time::from_secs(dice.between(0, seconds));
        let pods = dice.pick(&[
            PodSet::Ordinals(vec![(0, 0)]),
            PodSet::Ordinals(vec![(1, 1)]),
            PodSet::Ordinals(vec![(0, 2)]),
            PodSet::All,
        ]);
        let container = Some(dice.pick(containers).into());
        let action = match dice.below(7) {
            0..=2 => Action::OomKill(OomKillOfPods {
                pods,
                container,
                shown: OomSeen::default(),
                age: Span::ZERO,
            }),
            3 => {
                let usage = dice.pick(&[300, 2048]) * MEBIBYTE_IN_MILLI;
                let usage = Quantity::from_milli(usage, Format::BinarySI);
                Action::Evict(PodEviction { pods, container, usage })
            }
            4 => Action::RestartRecommender(Empty {}),
            5 => {
                let mode = dice.pick(&["Off", "Initial", "Recreate", "InPlaceOrRecreate"]);
                let policy = json!({ "updatePolicy": { "updateMode": mode } });
                Action::EditVpa(json!({ "spec": policy }))
            }
            _ => Action::DeleteVpa(Empty {}),
        };
        events.push(TimelineEvent::new(at, action));
    }
    events
}
