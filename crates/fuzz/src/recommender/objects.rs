//! Flags, VPAs and checkpoints of a generated scenario.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::generate::Draft;
use crate::dice::Dice;
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::BUCKETS;

const NAMESPACE: &str = "ns";

/// The name of the workload.
const TARGET: &str = "web";

/// The flags of a scenario, by their upstream names.
pub(super) fn flags(dice: &mut Dice) -> BTreeMap<String, String> {
    let mut flags = BTreeMap::new();
    let mut set = |dice: &mut Dice, percent: u64, name: &str, values: &[&str]| {
        if dice.percent(percent) {
            flags.insert(name.to_owned(), dice.pick(values).to_owned());
        }
    };
    let spans = ["30s", "10m", "1h", "6h", "168h"];
    set(dice, 40, "recommender-interval", &["30s", "5m", "1h", "6h"]);
    set(dice, 20, "cpu-histogram-decay-half-life", &spans);
    set(dice, 20, "memory-histogram-decay-half-life", &spans);
    set(dice, 25, "memory-aggregation-interval", &["5m", "1h", "7h13m"]);
    set(dice, 10, "memory-aggregation-interval-count", &["1", "3", "30"]);
    set(dice, 10, "confidence-interval-cpu", &["1h30m10s", "168h"]);
    set(dice, 10, "confidence-interval-memory", &["1h", "90s"]);
    set(dice, 10, "recommendation-margin-fraction", &["0", "0.3", "1.7"]);
    set(dice, 10, "target-cpu-percentile", &["0", "0.5", "0.99", "1"]);
    set(dice, 10, "target-memory-percentile", &["0.1", "0.5", "1"]);
    set(dice, 5, "recommendation-lower-bound-cpu-percentile", &["0.1", "0.9"]);
    set(dice, 5, "recommendation-upper-bound-cpu-percentile", &["0.5", "1"]);
    set(dice, 5, "recommendation-lower-bound-memory-percentile", &["0", "0.9"]);
    set(dice, 5, "recommendation-upper-bound-memory-percentile", &["0.5", "1"]);
    set(dice, 10, "pod-recommendation-min-cpu-millicores", &["0", "10", "33.3"]);
    set(dice, 10, "pod-recommendation-min-memory-mb", &["0", "100", "33.3"]);
    set(dice, 10, "round-cpu-millicores", &["7", "50", "0"]);
    set(dice, 10, "round-memory-bytes", &["1000", "33554432", "-3"]);
    set(dice, 10, "humanize-memory", &["true"]);
    set(dice, 10, "oom-bump-up-ratio", &["1", "1.5", "3.7"]);
    set(dice, 10, "oom-min-bump-up-bytes", &["0", "1e9"]);
    set(dice, 10, "container-recommendation-max-allowed-cpu", &["300m", "0", "1.5"]);
    set(dice, 10, "container-recommendation-max-allowed-memory", &["300Mi", "1G"]);
    set(dice, 15, "cpu-integer-post-processor-enabled", &["true"]);
    let gates = ["PerVPAConfig=true", "PerVPAConfig=true", "PerVPAConfig=false"];
    set(dice, 30, "feature-gates", &gates);
    set(dice, 10, "memory-saver", &["true"]);
    set(dice, 5, "recommender-name", &["other"]);
    set(dice, 5, "vpa-object-namespace", &[NAMESPACE, "other"]);
    set(dice, 5, "storage", &["prometheus"]);
    set(dice, 20, "checkpoints-gc-interval", &["1m", "1h"]);
    // The recommender does not start with both flags.
    if !flags.contains_key("vpa-object-namespace") && dice.percent(5) {
        let ignored = dice.pick(&["other", "other,ns"]);
        flags.insert("ignored-vpa-object-namespaces".to_owned(), ignored.to_owned());
    }
    flags
}

/// The names of VPAs, by index.
pub(super) const VPAS: [&str; 2] = ["app0", "app1"];

const API_VERSION: &str = "autoscaling.k8s.io/v1";

/// A VPA with random policies.
pub(super) fn vpa(draft: &mut Draft, index: usize) -> Value {
    // The workload is the target of the first VPA.
    let target = match index {
        0 => TARGET,
        _ => draft.dice.weighted(&[(2, TARGET), (1, "gone")]),
    };
    let mut spec = spec(draft);
    let mut annotations = annotations(draft);
    for fields in [&mut spec, &mut annotations] {
        fields.retain(|_, value| !value.is_null());
    }
    spec.insert(
        "targetRef".to_owned(),
        json!({ "apiVersion": "apps/v1", "kind": draft.kind, "name": target }),
    );
    json!({
        "apiVersion": API_VERSION,
        "kind": "VerticalPodAutoscaler",
        "metadata": { "name": VPAS[index], "namespace": NAMESPACE, "annotations": annotations },
        "spec": spec,
    })
}

/// A merge patch that replaces the policies of a VPA, or sometimes its target.
pub(super) fn edit(draft: &mut Draft) -> Value {
    if draft.dice.percent(10) {
        let target = draft.dice.weighted(&[(2, TARGET), (1, "gone")]);
        return json!({ "spec": { "targetRef": { "name": target } } });
    }
    let (spec, annotations) = (spec(draft), annotations(draft));
    json!({ "metadata": { "annotations": annotations }, "spec": spec })
}

/// The optional fields of a specification; null if they are not set.
fn spec(draft: &mut Draft) -> Map<String, Value> {
    let dice = &mut draft.dice;
    let mode = dice.pick(&["Off", "Initial", "Recreate"]);
    let update = dice.percent(50).then(|| json!({ "updateMode": mode }));
    let recommenders = match dice.below(20) {
        0 => Some(json!([{ "name": "other" }])),
        1 => Some(json!([{ "name": "default" }])),
        _ => None,
    };
    let policy = dice.percent(60).then(|| json!({ "containerPolicies": policies(draft) }));
    let fields =
        [("updatePolicy", update), ("resourcePolicy", policy), ("recommenders", recommenders)];
    fields.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

/// The annotations that round the CPU of a container up to whole cores; null if they are not set.
fn annotations(draft: &mut Draft) -> Map<String, Value> {
    let Draft { dice, containers, .. } = draft;
    let annotation = |container: &String| {
        let name = format!("vpa-post-processor.kubernetes.io/{container}_integerCPU");
        (name, json!(dice.percent(20).then_some("true")))
    };
    containers.iter().map(annotation).collect()
}

fn policies(draft: &mut Draft) -> Vec<Value> {
    let Draft { dice, containers, per_vpa_config, .. } = draft;
    let mut policies = Vec::new();
    for container in containers {
        if dice.percent(50) {
            policies.push(policy(dice, container, *per_vpa_config));
        }
    }
    if dice.percent(30) {
        policies.push(policy(dice, "*", *per_vpa_config));
    }
    policies
}

fn policy(dice: &mut Dice, container: &str, per_vpa_config: bool) -> Value {
    let mut policy = json!({ "containerName": container });
    if dice.percent(15) {
        policy["mode"] = dice.pick(&["Off", "Auto"]).into();
    }
    if dice.percent(20) {
        let lists = [json!([]), json!(["cpu"]), json!(["memory"]), json!(["cpu", "memory"])];
        policy["controlledResources"] = dice.pick(&lists);
    }
    // In the order of amounts: a maximum below the minimum would be rejected.
    let cpu = ["0", "50m", "100m", "0.3", "0.7", "1", "2"];
    let memory = ["0", "100Mi", "200Mi", "700M", "1e9", "1Gi", "1.5Gi"];
    let (has_min, has_max) = (dice.percent(40), dice.percent(40));
    for (resource, amounts) in [("cpu", cpu), ("memory", memory)] {
        let least = dice.below(amounts.len() as u64) as usize;
        let first = if has_min { least } else { 0 };
        if has_min && dice.percent(60) {
            policy["minAllowed"][resource] = amounts[least].into();
        }
        if has_max && dice.percent(60) {
            policy["maxAllowed"][resource] = dice.pick(&amounts[first..]).into();
        }
    }
    if per_vpa_config {
        let mut set = |name: &str, percent: u64, values: &[Value]| {
            if dice.percent(percent) {
                policy[name] = dice.pick(values);
            }
        };
        set("oomBumpUpRatio", 30, &[json!("1.537"), json!("2"), json!("1100m")]);
        set("oomMinBumpUp", 30, &[json!("50Mi"), json!("0"), json!("1G")]);
        set("memoryAggregationIntervalSeconds", 30, &[json!(60), json!(3600), json!(77)]);
        set("memoryAggregationIntervalCount", 15, &[json!(1), json!(3)]);
    }
    policy
}

/// The names of the VPA and of the checkpoint of one of its containers, which may not exist.
pub(super) fn checkpoint_name(dice: &mut Dice) -> (&'static str, &'static str, String) {
    let vpa = dice.pick(&[VPAS[0], VPAS[1], "gone"]);
    let container = dice.weighted(&[(5, "c0"), (3, "c1"), (1, "gone")]);
    (vpa, container, format!("{vpa}-{container}"))
}

/// A checkpoint that the recommender did not write. It may be invalid.
pub(super) fn checkpoint(draft: &mut Draft, at: Time) -> Value {
    let now = draft.start.plus(at.since_start());
    let dice = &mut draft.dice;
    let (vpa, container, name) = checkpoint_name(dice);
    let ago = |dice: &mut Dice, days: i64| {
        now.plus(Span::from_secs(-dice.between(0, days * 24 * 3600))).truncate_to_second()
    };
    let last = ago(dice, 10);
    let first = last.plus(Span::from_secs(-dice.between(0, 30 * 24 * 3600)));
    let totals = [(5, 37.25), (5, 1234.5), (2, 0.0), (1, 1e12), (1, -1.0)];
    let mut histogram = || {
        let mut weights: BTreeMap<String, u64> = (0..dice.below(5))
            .map(|_| (dice.below(BUCKETS as u64).to_string(), 1 + dice.below(10_000)))
            .collect();
        if dice.percent(5) {
            weights.insert(dice.pick(&[-1, BUCKETS as i64]).to_string(), 1);
        }
        json!({
            "referenceTimestamp": ago(dice, 10).to_string(),
            "bucketWeights": weights,
            "totalWeight": dice.weighted(&totals),
        })
    };
    let (cpu, memory) = (histogram(), histogram());
    json!({
        "apiVersion": API_VERSION,
        "kind": "VerticalPodAutoscalerCheckpoint",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": { "vpaObjectName": vpa, "containerName": container },
        "status": {
            "version": dice.weighted(&[(8, "v3"), (1, "v2"), (1, "")]),
            "lastUpdateTime": last.to_string(),
            "cpuHistogram": cpu,
            "memoryHistogram": memory,
            "firstSampleStart": first.to_string(),
            "lastSampleStart": last.to_string(),
            "totalSamplesCount": dice.weighted(&[(5, 1000), (1, 1), (1, 0)]),
        },
    })
}
