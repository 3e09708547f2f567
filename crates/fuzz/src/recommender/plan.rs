//! The parts of a generated script: flags, VPAs with policies, and pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::dice::Dice;
use kube_autoscaler_models::api::{CrossVersionObjectReference, PodPhase};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::selector::Selector;
use kube_autoscaler_models::vpa::{
    ContainerPolicy, ContainerState, ContainerStatus, Labels, ObjectName, Pod, PodContainer,
    RecommenderSelector, ResourcePolicy, ScalingMode, Target, Terminated, UpdateMode, UpdatePolicy,
    VerticalPodAutoscaler, VpaMetadata, VpaSpec,
};

/// The namespace of all objects.
pub(super) const NAMESPACE: &str = "ns";

const GIBIBYTE: i64 = 1 << 30;

/// The flags of a script, by their upstream names.
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
    set(dice, 20, "feature-gates", &["PerVPAConfig=true", "PerVPAConfig=false"]);
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

/// A VPA and its workload.
#[derive(Debug)]
pub(super) struct Workload {
    /// The name of the VPA, of its target and of the label of its pods.
    pub name: String,
    /// The names of the containers.
    pub containers: Vec<Arc<str>>,
    /// Whether pods have one of two sets of labels.
    pub(super) has_tracks: bool,
    pub pods: Vec<PodPlan>,
}

/// A pod.
#[derive(Clone, Debug)]
pub(super) struct PodPlan {
    pub name: ObjectName,
    /// The index of the set of labels.
    pub track: usize,
    pub restarts: i32,
}

impl Workload {
    pub(super) fn new(dice: &mut Dice, index: usize) -> Workload {
        let most = dice.weighted(&[(15, 3), (1, 10)]);
        let containers = dice.between(1, most);
        let pods = dice.between(1, 3) as usize;
        let mut workload = Workload {
            name: format!("app{index}"),
            containers: (0..containers).map(|it| format!("c{it}").into()).collect(),
            has_tracks: pods > 1 && dice.percent(15),
            pods: Vec::new(),
        };
        for number in 0..pods {
            // Both sets of labels are in use from the start.
            let track = if workload.has_tracks { number % 2 } else { 0 };
            workload.add_pod(number, track);
        }
        workload
    }

    /// Adds a pod and returns its index.
    pub(super) fn add_pod(&mut self, number: usize, track: usize) -> usize {
        let name = ObjectName::new(NAMESPACE, format!("{}-{number}", self.name));
        self.pods.push(PodPlan { name, track, restarts: 0 });
        self.pods.len() - 1
    }

    /// The object of a pod that runs.
    pub(super) fn pod(&self, plan: &PodPlan) -> Pod {
        let mut labels = BTreeMap::from([("app".to_owned(), self.name.clone())]);
        if self.has_tracks {
            labels.insert("track".to_owned(), format!("t{}", plan.track));
        }
        let containers = self.containers.iter();
        let statuses = containers.clone().map(|name| ContainerStatus {
            name: name.clone(),
            restart_count: plan.restarts,
            state: ContainerState::Running,
            last_terminated: None,
            memory_request: None,
        });
        Pod {
            name: plan.name.clone(),
            labels: Labels::new(labels),
            phase: PodPhase::Running,
            containers: containers
                .map(|name| PodContainer { name: name.clone(), memory_request: GIBIBYTE / 4 })
                .collect(),
            init_containers: Vec::new(),
            statuses: statuses.collect(),
        }
    }

    /// The target of the VPA.
    pub(super) fn target(&self) -> Target {
        let selector = Selector::parse(&format!("app={}", self.name));
        Target {
            namespace: NAMESPACE.into(),
            reference: self.reference(),
            selector: selector.unwrap_or_else(|_| Selector::nothing()),
            has_parent: false,
            error: None,
        }
    }

    fn reference(&self) -> CrossVersionObjectReference {
        CrossVersionObjectReference::new("apps/v1", "Deployment", self.name.as_str())
    }

    /// The VPA with random policies.
    pub(super) fn vpa(&self, dice: &mut Dice, generation: i64) -> VerticalPodAutoscaler {
        let annotations = self.containers.iter().filter(|_| dice.percent(20)).map(|container| {
            let name = format!("vpa-post-processor.kubernetes.io/{container}_integerCPU");
            (name, "true".to_owned())
        });
        let metadata = VpaMetadata {
            name: ObjectName::new(NAMESPACE, self.name.clone()),
            annotations: annotations.collect(),
            generation,
        };
        let mode = dice.pick(&[UpdateMode::Off, UpdateMode::Initial, UpdateMode::Recreate]);
        let recommenders = match dice.below(20) {
            0 => vec!["other"],
            1 => vec!["default"],
            _ => vec![],
        };
        let recommenders = recommenders.into_iter();
        let spec = VpaSpec {
            target_ref: self.reference(),
            update_policy: dice
                .percent(50)
                .then(|| UpdatePolicy { update_mode: Some(mode), ..UpdatePolicy::default() }),
            resource_policy: dice.percent(60).then(|| self.policy(dice)),
            recommenders: recommenders
                .map(|name| RecommenderSelector { name: name.to_owned() })
                .collect(),
        };
        VerticalPodAutoscaler { metadata, spec, status: Arc::default() }
    }

    fn policy(&self, dice: &mut Dice) -> ResourcePolicy {
        let mut policies = Vec::new();
        for container in &self.containers {
            if dice.percent(50) {
                policies.push(container_policy(dice, container));
            }
        }
        if dice.percent(30) {
            policies.push(container_policy(dice, "*"));
        }
        ResourcePolicy { container_policies: policies }
    }
}

fn container_policy(dice: &mut Dice, container: &str) -> ContainerPolicy {
    let list = |dice: &mut Dice, cpu: &[&str], memory: &[&str]| {
        let mut list = BTreeMap::new();
        for (name, values) in [("cpu", cpu), ("memory", memory)] {
            if dice.percent(60)
                && let Ok(quantity) = Quantity::parse_stored(dice.pick(values))
            {
                list.insert(name.to_owned(), quantity);
            }
        }
        list
    };
    let lists: [&[&str]; 4] = [&[], &["cpu"], &["memory"], &["cpu", "memory"]];
    let controlled = dice
        .percent(20)
        .then(|| dice.pick(&lists).iter().map(|name| (*name).to_owned()).collect::<Vec<String>>());
    let quantity = |dice: &mut Dice, values: &[&str]| {
        let text = dice.percent(20).then(|| dice.pick(values));
        text.and_then(|text| Quantity::parse_stored(text).ok())
    };
    let mode = dice.percent(15).then(|| dice.pick(&[ScalingMode::Off, ScalingMode::Auto]));
    ContainerPolicy {
        controlled_values: None,
        container_name: container.to_owned(),
        mode,
        min_allowed: dice
            .percent(40)
            .then(|| list(dice, &["50m", "0.3", "2", "0"], &["100Mi", "1.5Gi", "700M", "0"])),
        max_allowed: dice
            .percent(40)
            .then(|| list(dice, &["100m", "0.7", "1", "0"], &["200Mi", "1Gi", "1e9", "0"])),
        controlled_resources: controlled,
        oom_bump_up_ratio: quantity(dice, &["1.537", "2", "1100m"]),
        oom_min_bump_up: quantity(dice, &["50Mi", "0", "1G"]),
        memory_aggregation_interval_seconds: dice.percent(20).then(|| dice.pick(&[60, 3600, 77])),
        memory_aggregation_interval_count: dice.percent(10).then(|| dice.pick(&[1, 3])),
    }
}

/// The end of a container's instance by an OOM kill.
pub(super) fn oom_killed(finished_at: kube_autoscaler_models::vpa::GoTime) -> Terminated {
    Terminated { reason: "OOMKilled".to_owned(), finished_at }
}
