//! Pods that belong to no target.

use std::sync::Arc;

use super::cursor::{At, Problems};
use super::target::Target;
use super::values::resource;
use crate::model::api::{ConditionStatus, ContainerMetrics, PodPhase, PodSpec};
use crate::model::selector::is_dns1123_subdomain;
use crate::scenario::defaults::{AGE, APP};
use crate::scenario::raw::{self, Readiness, ScenarioFile};
use crate::scenario::resolved::{Container, OtherPods};

/// The largest number of identical pods in one entry.
const MOST: u32 = 1000;

pub(super) fn resolve(
    file: &ScenarioFile,
    at: At<'_>,
    workload: Option<&Target>,
    problems: &mut Problems,
) -> Vec<OtherPods> {
    let mut all: Vec<OtherPods> = Vec::new();
    for (index, typed) in file.other_pods.iter().enumerate() {
        let at = at.index(index);
        let name = typed.name.as_str();
        if let Some(error) = is_dns1123_subdomain(name, "characters").first() {
            problems
                .plain(at.key("name"), format!("{name:?} is not a valid name for pods: {error}"));
        }
        if workload.is_some_and(|workload| *workload.name == *name) {
            let what = format!("`{name}` is the workload, whose pods have such names");
            problems.hint(at.key("name"), what, "choose another name");
        }
        if all.iter().any(|pods| *pods.name == *name) {
            problems.plain(at.key("name"), format!("other pods are also named `{name}`"));
        }
        all.push(one(typed, at, problems));
    }
    all
}

fn one(typed: &raw::OtherPods, at: At<'_>, problems: &mut Problems) -> OtherPods {
    let count = typed.count.unwrap_or(1);
    if !(1..=MOST).contains(&count) {
        problems.plain(at.key("count"), format!("expected 1 to {MOST} pods, found {count}"));
    }
    if typed.labels.is_empty() {
        let hint = "use the labels of the workload's pods, for instance {app: web}";
        problems.hint(at.key("labels"), "no selector matches pods without labels", hint);
    }
    let name = typed.container.clone().unwrap_or_else(|| APP.to_owned());
    if name.is_empty() {
        problems.plain(at.key("container"), "the name of the container is empty");
    }
    let container = Container { name: name.into(), requests: typed.requests.clone() }.to_api();
    for name in typed.usage.keys() {
        resource(name, at.key("usage").key(name), problems);
    }
    let usage = typed.usage.iter().map(|(name, amount)| (name.clone(), amount.clone()));
    let metrics = ContainerMetrics { name: container.name.clone(), usage: usage.collect() };
    let metrics = (!metrics.usage.is_empty()).then_some(metrics);
    let phase = typed.phase.unwrap_or(PodPhase::Running);
    let ready = match (typed.ready, phase) {
        (None, PodPhase::Running) | (Some(Readiness::True), _) => Some(ConditionStatus::True),
        (None, PodPhase::Pending) | (Some(Readiness::Absent), _) => None,
        (Some(Readiness::Unknown), _) => Some(ConditionStatus::Unknown),
        (None, _) | (Some(Readiness::False), _) => Some(ConditionStatus::False),
    };
    OtherPods {
        name: typed.name.as_str().into(),
        count,
        labels: typed.labels.clone(),
        spec: Arc::new(PodSpec { containers: vec![container], ..PodSpec::default() }),
        usage: metrics.into_iter().collect(),
        phase,
        ready,
        started: typed.started.unwrap_or(phase != PodPhase::Pending),
        terminating: typed.terminating,
        age: typed.age.unwrap_or(AGE),
    }
}
