//! Converts a resolved scenario back to a file in normal form. Fields with default values are
//! omitted, so that adding a field with a default changes no hash.

use std::collections::BTreeMap;

use serde_json::Value;

use super::defaults::AGE;
use super::expectation::AnyExpectation;
use super::flag_values::FlagValues;
use super::kinds::API_VERSION;
use super::object::{AnyObject, ObjectRef};
use super::raw::{
    AnyManifest, Controller, InitContainer, InitContainers, PodResources, RestartPolicy,
    ScenarioFile, ScenarioReleases, Workload,
};
use super::resolved::{self, Container, Scenario};
use kube_autoscaler_models::api;
use kube_autoscaler_models::flags::Flags;
use kube_autoscaler_models::time::Span;

/// The file as JSON, in the order in which fields are written.
pub(crate) fn to_value(scenario: &Scenario) -> Value {
    let mut file = file(scenario);
    match scenario.vpa.as_ref().map(|vpa| &vpa.recommender.file) {
        Some(given) if scenario.hpas.is_empty() => file.clone_from(given),
        Some(given) => add_vpa(&mut file, given),
        None => {}
    }
    serde_json::to_value(file).unwrap_or_default()
}

/// Adds the VPA as it was given, its events and the expectations on it.
fn add_vpa(file: &mut ScenarioFile, given: &ScenarioFile) {
    file.vpa.clone_from(&given.vpa);
    file.vpa_release = given.vpa_release;
    file.recommender.clone_from(&given.recommender);
    file.updater.clone_from(&given.updater);
    file.checkpoints.clone_from(&given.checkpoints);
    let events = given.timeline.iter().filter(|event| event.action.requires_vpa());
    file.timeline.extend(events.cloned());
    let expect = given.expect.iter().filter(|it| matches!(it, AnyExpectation::Vpa(_)));
    file.expect.extend(expect.cloned());
}

fn file(scenario: &Scenario) -> ScenarioFile {
    let controller = controller(scenario);
    ScenarioFile {
        api_version: API_VERSION.to_owned(),
        kind: "Scenario".to_owned(),
        requirement: scenario.requirement.clone(),
        upstream: (!scenario.upstream.is_empty()).then(|| scenario.upstream.clone()),
        covers: scenario.covers.clone(),
        releases: ScenarioReleases::Kubernetes(scenario.releases),
        controller: (controller != Controller::default()).then_some(controller),
        hpa: match scenario.hpas.as_slice() {
            [only] => Some(AnyManifest(only.manifest.clone())),
            _ => None,
        },
        hpas: match scenario.hpas.as_slice() {
            [_] => Vec::new(),
            several => several.iter().map(|hpa| AnyManifest(hpa.manifest.clone())).collect(),
        },
        objects: scenario.objects.as_ref().map(|all| all.iter().cloned().map(AnyObject).collect()),
        workload: with_limits(workload(scenario), scenario),
        other_targets: scenario.other_targets.clone(),
        other_pods: scenario.other_pods.clone(),
        other_namespaces: scenario.other_namespaces.clone(),
        metrics: scenario.metrics.clone(),
        timeline: scenario.timeline.clone(),
        until: scenario.until,
        expect: scenario.expect.iter().cloned().map(Box::new).map(AnyExpectation::Hpa).collect(),
        search: scenario.search.as_deref().cloned(),
        ..ScenarioFile::default()
    }
}

fn unless(value: Span, default: Span) -> Option<Span> {
    (value != default).then_some(value)
}

fn controller(scenario: &Scenario) -> Controller {
    let flags = &scenario.flags;
    let mut written = flags.differing(&Flags::default());
    written.extend(&scenario.explicit_flags);
    let values = FlagValues(written.iter().map(|flag| (*flag, flags.get(*flag))).collect());
    Controller {
        flags: (values != FlagValues::default()).then_some(values),
        feature_gates: scenario.gate_overrides.clone(),
    }
}

fn workload(scenario: &Scenario) -> Workload {
    let workload = &scenario.workload;
    if workload.is_absent() {
        return Workload::default();
    }
    let init_container = |container: &api::Container| InitContainer {
        name: container.name.to_string(),
        requests: container.requests.clone(),
        restart_policy: container.sidecar.then_some(RestartPolicy::Always),
    };
    let init_containers = workload.spec.init_containers.iter().map(init_container);
    let pod_level = workload.spec.requests.as_ref();
    let default_labels = BTreeMap::from([("app".to_owned(), workload.name.to_string())]);
    let labels =
        if workload.labels == default_labels { BTreeMap::new() } else { workload.labels.clone() };
    let all = workload.labels.iter().map(|(key, value)| format!("{key}={value}"));
    let all = all.collect::<Vec<_>>().join(",");
    Workload {
        target: scenario.hpas.is_empty().then(|| target(workload)),
        replicas: Some(workload.replicas),
        quota: workload.quota,
        containers: workload.spec.containers.iter().map(container).collect(),
        init_containers: InitContainers::Detailed(init_containers.collect()),
        resources: pod_level.map(|of| PodResources { requests: of.clone() }),
        overhead: workload.spec.overhead.clone(),
        labels,
        replaces_ended_pods: (!workload.rules.replaces_ended).then_some(false),
        selector: (*workload.selector != *all).then(|| workload.selector.to_string()),
        age: unless(workload.age, AGE),
        startup: workload.startup,
        plural: workload.has_unusual_plural().then(|| workload.resource.clone()),
        status_replicas: workload.status_replicas,
        scale_down_order: workload.scale_down_order,
        scale_down_first: workload.scale_down_first.clone(),
        pods: workload.pods.clone(),
        termination: unless(workload.termination.duration, Span::ZERO),
        ready_while_terminating: (workload.termination.duration > Span::ZERO)
            .then_some(workload.termination.ready),
        ..Workload::default()
    }
}

/// The object of a workload that is not the target of an HPA.
fn target(workload: &resolved::Workload) -> ObjectRef {
    let resolved::Workload { group, version, kind, name, .. } = workload;
    let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
    let (api_version, kind) = (api_version.into(), kind.as_str().into());
    ObjectRef { api_version, kind, name: name.clone(), namespace: None }
}

/// Adds the limits of containers, which matter only to a VPA.
fn with_limits(mut workload: Workload, scenario: &Scenario) -> Workload {
    let limits = scenario.vpa.as_ref().map(|vpa| vpa.limits()).unwrap_or_default();
    for container in &mut workload.containers {
        container.limits = limits.get(&container.name).cloned().unwrap_or_default();
    }
    workload
}

fn container(container: &api::Container) -> Container {
    let (name, requests) = (container.name.clone(), container.requests.clone());
    Container { name, requests, ..Container::default() }
}
