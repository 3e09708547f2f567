//! Utilization targets without requests.

use crate::context::{Context, HpaWithTarget, Metric, ResourceTarget};
use crate::{Evidence, Found, Level, Rule};
use kube_autoscaler_models::hpa::metrics::{NoRequest, RequestQuery};
use kube_lockstep_manifests::ValidWorkload;

pub(super) const RULE: Rule = Rule {
    id: "missing-request",
    level: Level::Error,
    summary: "An HPA scales on a utilization, but a container of the pods has no request.",
    reason: "A utilization is a percentage of the request. If one container of one pod has no \
             request of the resource, the metric fails, and the HPA can't scale on it.",
    link: "https://kubernetes.io/docs/concepts/workloads/autoscaling/\
           horizontal-pod-autoscale/#support-for-resource-metrics",
    check,
};

fn check(context: &Context<'_>) -> Vec<Found> {
    let of_hpa =
        |hpa| HpaWithTarget::metrics(hpa).filter_map(move |metric| finding(context, hpa, metric));
    context.hpas.iter().flat_map(of_hpa).collect()
}

fn finding(context: &Context<'_>, hpa: &HpaWithTarget<'_>, metric: Metric<'_>) -> Option<Found> {
    let of = metric.resource().filter(|it| it.target.average_utilization.is_some())?;
    let target = hpa.target.filter(|it| !it.pods.containers.is_empty())?;
    let ResourceTarget { resource, container, .. } = of;
    let query = RequestQuery {
        resource,
        container,
        pod_level_resources: context.has_pod_level_requests(),
        rules: &context.rules.pods,
    };
    let spec = target.pods.spec();
    let why = match query.of(&spec) {
        Ok(0) => return Some(request_of_zero(hpa, target, of)),
        request => request.err()?,
    };
    let namespace = target.object.namespace();
    let vpas = context.manifests.vpas.iter();
    let mut vpas = vpas.filter(|vpa| vpa.changes_pods() && vpa.has_target_of(hpa.hpa));
    let is_set_later = context.manifests.has_default_request(namespace.as_ref(), resource)
        || vpas.any(|vpa| vpa.controls_any(resource));
    let hpa_title = hpa.title();
    let fails = format!("{hpa_title} can't scale on the utilization of {resource}");
    match why {
        NoRequest::NotFound => {
            let name = container.unwrap_or_default();
            let what = format!(
                "{} has no container {name}; unless a webhook adds it, {fails}",
                target.title()
            );
            let hint = "name a container of the manifest";
            Some(Found::at(hpa.object(), &metric.path(), Evidence::Assumed, what).hint(hint))
        }
        _ if is_set_later => None,
        NoRequest::Container(index) => {
            let name = spec.running_containers().nth(index)?.name.to_string();
            let what = format!("container {name} requests no {resource}, so {fails}");
            let path = path_of(target, &name);
            let hint = format!(
                "set resources.requests.{resource} of the container; if a LimitRange does, add it \
                 to the files"
            );
            Some(Found::at(&target.object, &path, Evidence::Derived, what).hint(hint))
        }
        NoRequest::PodLevel => {
            let what = format!(
                "neither the pods of {} nor their containers request {resource}, so {fails}",
                target.title()
            );
            let path = "spec.template.spec.resources.requests";
            let hint = format!("set resources.requests.{resource} of the pods or a container");
            Some(Found::at(&target.object, path, Evidence::Derived, what).hint(hint))
        }
    }
}

/// A utilization can't be calculated with a request of 0.
fn request_of_zero(
    hpa: &HpaWithTarget<'_>,
    target: &ValidWorkload,
    of: ResourceTarget<'_>,
) -> Found {
    let ResourceTarget { resource, container, .. } = of;
    let whose = container.map(|name| format!("container {name} in ")).unwrap_or_default();
    let what = format!(
        "the {resource} request of {whose}the pods of {} is 0, so {} can't scale on {resource} \
         utilization",
        target.title(),
        hpa.title()
    );
    let user = if container.is_some() { "the container" } else { "a pod" };
    let hint = format!("set resources.requests.{resource} to the typical usage of {user}");
    let first = || "spec.template.spec.containers.0".to_owned();
    let field = container.map_or_else(first, |name| path_of(target, name));
    let path = format!("{field}.resources.requests");
    Found::at(&target.object, &path, Evidence::Derived, what).hint(hint)
}

/// The field of a container.
fn path_of(target: &ValidWorkload, name: &str) -> String {
    let at = |list: &str, index: usize| format!("spec.template.spec.{list}.{index}");
    let pods = &target.pods;
    let index = pods.containers.iter().position(|it| *it.name == *name);
    let of_init_container = || pods.init_containers.iter().position(|it| *it.name == *name);
    match index {
        Some(index) => at("containers", index),
        None => at("initContainers", of_init_container().unwrap_or_default()),
    }
}
