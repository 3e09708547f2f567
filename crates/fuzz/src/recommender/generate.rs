//! Generates the scenario of a seed and an index.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{events, objects, usage};
use crate::dice::Dice;
use crate::fuzzed::parse;
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::{GoTime, RecommenderFlags};
use kube_lockstep_scenario::AnyScenario;
use kube_lockstep_scenario::kinds::API_VERSION;
use kube_lockstep_scenario::vpa::VpaScenario;

/// The start of the year 2000 in seconds of Unix time: no scenario starts earlier.
const YEAR_2000: i64 = 946_684_800;

const DAY: i64 = 24 * 60 * 60;

/// The scenario with this index. It sets only flags that the release has.
///
/// # Panics
/// If the parser rejects the generated file.
#[must_use]
pub fn scenario(seed: u64, index: u64, release: VpaRelease) -> VpaScenario {
    let tree = tree(seed, index, release);
    match parse(&format!("fuzz/vpa-{seed}-{index}"), &tree) {
        Ok(AnyScenario::Vpa(scenario)) => *scenario,
        other => panic!("the generated file is not a valid scenario of a VPA: {other:?}"),
    }
}

/// The tree of the file of a scenario.
pub(crate) fn tree(seed: u64, index: u64, release: VpaRelease) -> Value {
    let mut dice = Dice::new(seed, index);
    let mut flags = objects::flags(&mut dice);
    flags.retain(|flag, _| VpaRelease::introducing(flag).is_none_or(|since| since <= release));
    let parsed = RecommenderFlags::parse(&flags).unwrap_or_default();
    let mut draft = Draft::new(dice, &parsed);
    let has_checkpoint = draft.dice.percent(10);
    let checkpoints: Vec<Value> =
        has_checkpoint.then(|| objects::checkpoint(&mut draft, Time::ZERO)).into_iter().collect();
    let mut vpas = vec![objects::vpa(&mut draft, 0)];
    if draft.dice.percent(20) {
        vpas.push(objects::vpa(&mut draft, 1));
    }
    draft.vpas = vec![true; vpas.len()];
    let workload = workload(&mut draft);
    let runs = draft.dice.between(50, 600);
    let length = Span(draft.interval.0 * runs);
    let metrics = usage::metrics(&mut draft, length);
    let has_history = !parsed.uses_checkpoints() && draft.dice.percent(80);
    let history = has_history.then(|| usage::history(&mut draft));
    (0..runs).for_each(|_| events::step(&mut draft));
    draft.timeline.sort_by_key(|(at, _)| *at);
    let last_event = draft.timeline.last().map_or(Time::ZERO, |(at, _)| *at);
    let timeline: Vec<Value> = draft.timeline.into_iter().map(|(_, event)| event).collect();
    let mut file = json!({
        "apiVersion": API_VERSION,
        "kind": "Scenario",
        "requirement": format!("Model and upstream agree (seed {seed}, scenario {index})."),
        "recommender": { "start": draft.start.to_string(), "flags": flags },
        "vpas": vpas,
        "checkpoints": checkpoints,
        "workload": workload,
        "metrics": metrics,
        "history": history,
        "timeline": timeline,
        "until": draft.now.max(last_event).to_string(),
    });
    let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    if let Some(fields) = file.as_object_mut() {
        fields.retain(|_, value| !is_empty(value));
    }
    file
}

/// The state of the scenario so far, for further draws.
pub(super) struct Draft {
    pub(super) dice: Dice,
    pub start: GoTime,
    pub interval: Span,
    /// True if policies may have the fields of the feature gate PerVPAConfig.
    pub per_vpa_config: bool,
    /// The kind of the workload.
    pub kind: &'static str,
    /// The names of the containers.
    pub containers: Vec<String>,
    pub init_containers: Vec<String>,
    /// True if pods have one of two sets of labels.
    pub has_tracks: bool,
    pub pods: Pods,
    /// The replicas at the start.
    pub replicas: usize,
    /// For each VPA, true if it exists at this time.
    pub vpas: Vec<bool>,
    /// The percentage of runs before which there is an unusual event.
    pub edges: u64,
    /// The time of the last run, or of a restart after it.
    pub now: Time,
    pub timeline: Vec<(Time, Value)>,
}

impl Draft {
    fn new(mut dice: Dice, flags: &RecommenderFlags) -> Draft {
        let start = GoTime::from_unix(YEAR_2000 + dice.between(0, 1000 * DAY));
        let most = dice.weighted(&[(15, 3), (1, 10)]);
        let containers = (0..dice.between(1, most)).map(|number| format!("c{number}"));
        let kind = dice.weighted(&[(3, "Deployment"), (1, "StatefulSet")]);
        let (init, has_tracks) = (dice.percent(15), dice.percent(10));
        let pods = Pods::new(kind, dice.percent(50), dice.between(1, 3));
        Draft {
            start,
            interval: flags.recommender_interval,
            per_vpa_config: flags.per_vpa_config,
            kind,
            containers: containers.collect(),
            init_containers: init.then(|| "init".to_owned()).into_iter().collect(),
            has_tracks,
            replicas: pods.count_running(),
            pods,
            vpas: Vec::new(),
            edges: dice.pick(&[0, 3, 10, 40]),
            now: Time::ZERO,
            timeline: Vec::new(),
            dice,
        }
    }

    /// Adds an event.
    pub(super) fn event(&mut self, at: Time, action: &str, argument: impl Into<Value>) {
        let event = json!({ "at": at.to_string(), action: argument.into() });
        self.timeline.push((at, event));
    }
}

/// The pods that exist. New pods have the ordinals that the world gives them.
pub(super) struct Pods {
    /// By ordinal; true for pods that have not ended.
    running: BTreeMap<u32, bool>,
    next: u32,
    reuses_names: bool,
    replaces_ended: bool,
}

impl Pods {
    fn new(kind: &str, replaces_ended: bool, replicas: i64) -> Pods {
        let reuses_names = kind == "StatefulSet";
        let mut pods = Pods { running: BTreeMap::new(), next: 0, reuses_names, replaces_ended };
        (0..replicas).for_each(|_| pods.create());
        pods
    }

    fn create(&mut self) {
        let ordinal = match self.reuses_names {
            true => (0..).find(|ordinal| !self.running.contains_key(ordinal)).unwrap_or(0),
            false => self.next,
        };
        self.next = self.next.max(ordinal + 1);
        self.running.insert(ordinal, true);
    }

    pub(super) fn any(&self, dice: &mut Dice) -> Option<u32> {
        let count = self.running.len() as u64;
        let index = (count > 0).then(|| dice.below(count) as usize)?;
        self.running.keys().nth(index).copied()
    }

    pub(super) fn replace(&mut self, ordinal: u32) {
        self.running.remove(&ordinal);
        self.create();
    }

    pub(super) fn end(&mut self, ordinal: u32) {
        let was_running = self.running.insert(ordinal, false) == Some(true);
        if was_running && self.replaces_ended {
            self.create();
        }
    }

    pub(super) fn count_running(&self) -> usize {
        self.running.values().filter(|runs| **runs).count()
    }

    pub(super) fn scale(&mut self, replicas: usize) {
        let running = self.running.iter().filter(|(_, runs)| **runs).map(|(ordinal, _)| *ordinal);
        let running: Vec<u32> = running.collect();
        for ordinal in running.iter().skip(replicas) {
            self.running.remove(ordinal);
        }
        (running.len()..replicas).for_each(|_| self.create());
    }
}

fn workload(draft: &mut Draft) -> Value {
    let requests = ["256Mi", "1Gi", "4Gi"];
    let containers = draft.containers.iter().map(|name| match draft.dice.percent(80) {
        true => json!({ "name": name, "requests": { "memory": draft.dice.pick(&requests) } }),
        false => json!({ "name": name }),
    });
    let containers: Vec<Value> = containers.collect();
    let mut workload = Map::new();
    let replicas = draft.replicas;
    workload.insert("replicas".to_owned(), replicas.into());
    workload.insert("labels".to_owned(), json!({ "app": "web" }));
    if !draft.pods.replaces_ended {
        workload.insert("replacesEndedPods".to_owned(), false.into());
    }
    if draft.has_tracks {
        workload.insert("podLabels".to_owned(), json!({ "track": "t0" }));
        // Both sets of labels are in use from the start.
        if replicas > 1 {
            draft.event(Time::ZERO, "relabel", json!({ "pods": "1", "labels": events::labels(1) }));
        }
    }
    workload.insert("containers".to_owned(), containers.into());
    if !draft.init_containers.is_empty() {
        workload.insert("initContainers".to_owned(), json!(draft.init_containers));
    }
    if draft.dice.percent(3) {
        workload.insert("owned".to_owned(), true.into());
    }
    workload.into()
}
