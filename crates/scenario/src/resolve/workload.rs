//! The target and its pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cursor::{At, Problems};
use super::target::Target;
use super::values::check_replicas;
use crate::defaults::{AGE, APP};
use crate::error::suggest;
use crate::raw::Workload as TypedWorkload;
use crate::resolved::{
    Container as GivenContainer, PodRules, PodSet, Startup, Termination, Workload,
};
use kube_autoscaler_models::api::{Container, PodSpec, Requests};
use kube_autoscaler_models::selector::{Selector, is_dns1123_subdomain};

pub(super) fn resolve(
    typed: &TypedWorkload,
    at: At<'_>,
    target: Option<&Target>,
    problems: &mut Problems,
) -> Option<Workload> {
    check_replicas(typed.replicas(), at.key("replicas"), problems);
    let spec = pod_spec(typed, at, problems);
    let age = typed.age.unwrap_or(AGE);
    check_startup(typed.startup, at.key("startup"), problems);
    check_pods(typed, at.key("pods"), problems);
    check_replicas(typed.status_replicas.unwrap_or(0), at.key("statusReplicas"), problems);
    let target = with_plural(target?.clone(), typed.plural.as_deref(), at, problems);
    let mut labels = typed.labels.clone();
    if labels.is_empty() {
        labels.insert("app".to_owned(), target.name.to_string());
    }
    let selector = selector(typed.selector.as_deref(), &labels, at.key("selector"), problems);
    let Target { group, version, kind, resource, name } = target;
    Some(Workload {
        group,
        version,
        kind,
        resource,
        name,
        replicas: typed.replicas(),
        quota: typed.quota,
        selector,
        labels,
        spec: Arc::new(spec),
        age,
        startup: typed.startup,
        status_replicas: typed.status_replicas,
        scale_down_order: typed.scale_down_order,
        scale_down_first: typed.scale_down_first.clone(),
        pods: typed.pods.clone(),
        termination: termination(typed, at, problems),
        rules: PodRules {
            replaces_ended: typed.replaces_ended_pods.unwrap_or(true),
            ..PodRules::OF_HPA
        },
    })
}

fn termination(typed: &TypedWorkload, at: At<'_>, problems: &mut Problems) -> Termination {
    let duration = typed.termination.unwrap_or_default();
    let ready = typed.ready_while_terminating.unwrap_or(duration);
    if ready > duration {
        let what =
            format!("expected at most {duration}, the value of `termination`, found {ready}");
        problems.plain(at.key("readyWhileTerminating"), what);
    }
    Termination { duration, ready }
}

/// Sets the plural. Only kinds of custom resources may have an unusual plural.
fn with_plural(
    target: Target,
    plural: Option<&str>,
    at: At<'_>,
    problems: &mut Problems,
) -> Target {
    let Some(plural) = plural else { return target };
    let at = at.key("plural");
    if target.is_built_in() && plural != target.resource {
        let what = format!("the plural of {} is {}", target.kind, target.resource);
        problems.hint(at, what, "only custom resources can have another plural");
    } else if let Some(error) = is_dns1123_subdomain(plural, "characters").first() {
        problems.plain(at, format!("{plural:?} is not a valid plural of a kind: {error}"));
    }
    Target { resource: plural.to_owned(), ..target }
}

/// The containers with usage: the containers that run as long as the pod.
pub fn running(typed: &TypedWorkload) -> Vec<&str> {
    let sidecars =
        typed.init_containers.detailed().iter().filter(|init| init.restart_policy.is_some());
    let sidecars = sidecars.map(|init| init.name.as_str());
    match typed.containers.as_slice() {
        [] => std::iter::once(APP).chain(sidecars).collect(),
        given => given.iter().map(|container| &*container.name).chain(sidecars).collect(),
    }
}

/// Checks that a container exists and runs as long as the pod.
pub(super) fn known_container(
    name: &str,
    workload: &TypedWorkload,
    at: At<'_>,
    problems: &mut Problems,
) {
    let known = running(workload);
    if known.contains(&name) {
        return;
    }
    if workload.init_containers.detailed().iter().any(|init| init.name == name) {
        let what =
            format!("the init container `{name}` has no usage: it ends before the others start");
        let hint = "add `restartPolicy: Always` to the init container: a sidecar has usage";
        problems.hint(at, what, hint);
    } else {
        let what = format!("the workload has no container `{name}`");
        problems.add(at.problem(what, suggest(name, known)));
    }
}

fn pod_spec(typed: &TypedWorkload, at: At<'_>, problems: &mut Problems) -> PodSpec {
    let mut names: Vec<&str> = Vec::new();
    let mut containers = Vec::with_capacity(typed.containers.len().max(1));
    if typed.containers.is_empty() {
        if at.key("containers").node().is_some() {
            problems.plain(at.key("containers"), "expected at least one container");
        }
        names.push(APP);
        containers.push(Container { name: APP.into(), ..Container::default() });
    }
    for (index, container) in typed.containers.iter().enumerate() {
        let at = at.key("containers").index(index);
        name_of(&container.name, &mut names, at, problems);
        check_resources(container, at, problems);
        containers.push(container.to_api());
    }
    let mut init_containers = Vec::new();
    for (index, container) in typed.init_containers.detailed().iter().enumerate() {
        let at = at.key("initContainers").index(index);
        name_of(&container.name, &mut names, at, problems);
        check_names(&container.requests, at.key("requests"), problems);
        init_containers.push(Container {
            name: container.name.as_str().into(),
            requests: container.requests.clone(),
            sidecar: container.restart_policy.is_some(),
        });
    }
    let requests = typed.resources.as_ref().map(|resources| resources.requests.clone());
    if let Some(requests) = &requests {
        check_names(requests, at.key("resources").key("requests"), problems);
    }
    PodSpec { containers, init_containers, requests, overhead: typed.overhead.clone() }
}

/// Checks the names of the resources of a container, and that a request is at most the limit.
pub(super) fn check_resources(container: &GivenContainer, at: At<'_>, problems: &mut Problems) {
    check_names(&container.requests, at.key("requests"), problems);
    check_names(&container.limits, at.key("limits"), problems);
    let at = at.key("limits");
    for (resource, limit) in &container.limits {
        if let Some(request) = container.requests.get(resource)
            && request.compare(limit).is_gt()
        {
            let what = format!("the {resource} limit {limit} is less than the request {request}");
            let hint = "increase the limit: the API server rejects such pods";
            problems.hint(at.key(resource), what, hint);
        }
    }
}

/// Refuses unknown resources: an API server requires a domain in all other names.
///
/// Upstream: pkg/apis/core/validation/validation.go, validateContainerResourceName
fn check_names(resources: &Requests, at: At<'_>, problems: &mut Problems) {
    const KNOWN: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
    for name in resources.keys() {
        let is_known = KNOWN.contains(&&**name) || name.starts_with("hugepages-");
        if !is_known && !name.contains('/') {
            let hint = suggest(name, KNOWN);
            problems.add(at.key_position(name).problem(format!("unknown resource `{name}`"), hint));
        }
    }
}

fn name_of<'f>(name: &'f str, names: &mut Vec<&'f str>, at: At<'_>, problems: &mut Problems) {
    if name.is_empty() {
        problems.plain(at.key("name"), "the name of the container is empty");
    } else if names.contains(&name) {
        problems.plain(at.key("name"), format!("duplicate container `{name}`"));
    }
    names.push(name);
}

/// Checks the entries of pods that differ from the others.
fn check_pods(typed: &TypedWorkload, at: At<'_>, problems: &mut Problems) {
    for (index, of) in typed.pods.iter().enumerate() {
        let at = at.index(index);
        if at.given(&["age", "startup", "sampleLag"]).is_empty() {
            problems.plain(at, "expected at least one of age, startup and sampleLag");
        }
        if let Some(startup) = of.startup {
            check_startup(startup, at.key("startup"), problems);
        }
        let initial = u32::try_from(typed.replicas()).unwrap_or(0);
        if let (Some(_), PodSet::Ordinals(ranges)) = (of.age, &of.pods)
            && ranges.iter().any(|(_, last)| *last >= initial)
        {
            let what = format!(
                "`age` applies only to initial pods, but {:?} contains others",
                of.pods.to_string()
            );
            let hint = match initial {
                0 => "there are no initial pods".to_owned(),
                1 => "the only initial pod is 0".to_owned(),
                some => format!("the initial pods are 0 to {}", some - 1),
            };
            problems.hint(at.key("age"), what, hint);
        }
        if let (Some(_), PodSet::Ordinals(ranges)) = (of.startup, &of.pods)
            && ranges.iter().any(|(first, _)| *first < initial)
        {
            let what = format!(
                "`startup` applies only to new pods, but {:?} contains initial pods",
                of.pods.to_string()
            );
            let hint = format!(
                "new pods have the numbers from {initial} on; for the initial pods, use `age`"
            );
            problems.hint(at.key_position("startup"), what, hint);
        }
    }
}

fn check_startup(startup: Startup, at: At<'_>, problems: &mut Problems) {
    match (startup.pending, startup.ready) {
        (None, Some(_)) => problems.plain(at.key("ready"), "a Pending pod never becomes ready"),
        (Some(pending), Some(ready)) if ready < pending => {
            let what = format!("the pod is ready after {ready}, but pending for {pending}");
            problems.hint(at.key("ready"), what, "both times count from the creation of the pod");
        }
        _ => {}
    }
}

/// The selector in its text form: as written, otherwise of all labels.
fn selector(
    typed: Option<&str>,
    labels: &BTreeMap<String, String>,
    at: At<'_>,
    problems: &mut Problems,
) -> Arc<str> {
    let Some(text) = typed else {
        let parts: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        return parts.join(",").into();
    };
    // Empty or malformed selectors, and selectors that match other pods, are allowed: the
    // controller handles them.
    if let Ok(selector) = Selector::parse(text)
        && !text.is_empty()
        && !selector.matches(labels)
        && !labels.is_empty()
    {
        let labels: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let what = format!("the selector {text:?} does not match the pods' labels");
        problems.hint(at, what, format!("the pods have the labels {}", labels.join(",")));
    }
    text.into()
}
