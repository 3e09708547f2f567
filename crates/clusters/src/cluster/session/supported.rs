//! The scenarios that real clusters support.

use crate::cluster::workload::PodOwner;
use kube_autoscaler_models::api::{Container, MetricTargetType, PodSpec};
use kube_autoscaler_models::observation::Request;
use kube_autoscaler_models::selector::match_labels;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::{Action, DuringReconcile, ScaleDownOrder};

/// The maximum number of pods, because the harness writes the status of each pod.
const MAX_PODS: i32 = 200;

/// The reason why real clusters do not support a scenario, if any.
pub(crate) fn unsupported_reason(scenario: &Scenario) -> Option<String> {
    let workload = &scenario.workload;
    let is_custom = PodOwner::new(workload) == PodOwner::Harness;
    if scenario.has_objects() {
        return Some("objects of any kind, whose controller is a program".to_owned());
    }
    if scenario.vpa.is_some() {
        return Some("a VPA, whose updater and admission controller are simulated".to_owned());
    }
    if let Some(why) = needs_control(scenario) {
        return Some(why.to_owned());
    }
    if !is_custom && workload.version != "v1" {
        return Some(format!("{}s of {}", workload.kind, workload.version));
    }
    if is_custom && !workload.group.contains('.') {
        return Some(format!("a custom kind whose API group {:?} has no dot", workload.group));
    }
    if !scenario.other_targets.is_empty() {
        return Some("targets without pods".to_owned());
    }
    if !scenario.other_namespaces.is_empty() {
        return Some("objects in other namespaces".to_owned());
    }
    if !scenario.other_pods.is_empty() && !is_custom && workload.kind != "Deployment" {
        return Some(format!("pods without an owner, which a {} would adopt", workload.kind));
    }
    if workload.status_replicas.is_some() && !is_custom {
        return Some("a status.replicas that is not the number of pods".to_owned());
    }
    if workload.quota.is_some() && !is_custom {
        return Some("a pod quota".to_owned());
    }
    if workload.scale_down_order == ScaleDownOrder::Oldest && !is_custom {
        return Some("a scaleDownOrder other than replicaSet".to_owned());
    }
    if !workload.spec.overhead.is_empty() {
        return Some("pod overhead, which requires a RuntimeClass".to_owned());
    }
    if lacks_a_request(scenario) {
        let why = "containers without a request: the controller names a random pod in the status";
        return Some(why.to_owned());
    }
    if match_labels(&workload.selector).is_none() && !is_custom {
        return Some(format!(
            "the selector {:?}, which is not a list of labels",
            workload.selector
        ));
    }
    if workload.replicas > MAX_PODS {
        return Some(format!("more than {MAX_PODS} pods"));
    }
    metric_of_custom_kind(scenario).or_else(|| unsupported_action(scenario))
}

/// The reason why the controller can't resolve the object of an Object metric, if any: a cluster
/// only has the kinds of Kubernetes, and that of the workload.
fn metric_of_custom_kind(scenario: &Scenario) -> Option<String> {
    let metrics = scenario.hpas.iter().flat_map(|hpa| &hpa.spec.metrics);
    let objects = metrics.filter_map(|metric| Some(&metric.object.as_ref()?.described_object));
    let is_custom = |group: &str| {
        group.contains('.') && !group.ends_with(".k8s.io") && group != scenario.workload.group
    };
    let mut groups = objects.filter_map(|object| {
        let group = object.group();
        is_custom(group).then(|| format!("a metric of a {}.{group}, which has no CRD", object.kind))
    });
    groups.next()
}

/// The reason why real clusters do not support an action of the timeline, if any.
fn unsupported_action(scenario: &Scenario) -> Option<String> {
    let workload = &scenario.workload;
    let unsupported = scenario.timeline.iter().find_map(|event| match &event.action {
        Action::GetScaleError(_) | Action::UpdateScaleError(_) | Action::UpdateStatusError(_) => {
            Some("errors of the API server can't be injected")
        }
        Action::MetricsSlow(_) => Some(
            "after a slow response, the next reconcile follows a resync, which can't be observed",
        ),
        Action::RestartController(_) => {
            Some("all scenarios share the controller, so it can't be restarted")
        }
        Action::RollingUpdate(_) => {
            Some("the workload controller sets the order of a rolling update")
        }
        Action::TargetDeleted(_) => Some("the target can't be deleted and created again"),
        Action::Scale(replicas) if *replicas > MAX_PODS => Some("too many pods"),
        Action::PodsFailed(_) | Action::PodsSucceeded(_) if !workload.rules.replaces_ended => {
            Some("the workload controller replaces pods that have ended")
        }
        Action::PodsFailed(_) if workload.kind == "StatefulSet" => {
            Some("a StatefulSet replaces pods that have failed")
        }
        _ => None,
    });
    unsupported.map(str::to_owned)
}

/// Returns the reason why the scenario needs a controller whose reconciles can be distinguished and
/// paused, if any.
fn needs_control(scenario: &Scenario) -> Option<&'static str> {
    if scenario.has_several_hpas() {
        return Some("several HPAs, whose reconciles can't be distinguished");
    }
    if let Some(why) = unsupported_moment(scenario) {
        return Some(why);
    }
    scenario.has_cache_lag().then_some("caches that lag, which can't be delayed")
}

/// The reason why an action can't happen during a reconcile, if any: only the answer to a
/// query of metrics can be held back.
fn unsupported_moment(scenario: &Scenario) -> Option<&'static str> {
    let during: Vec<(&DuringReconcile, &Action)> =
        scenario.timeline.iter().filter_map(|it| Some((it.during.as_ref()?, &it.action))).collect();
    let all = during.iter().find_map(|(DuringReconcile { after, nth, .. }, action)| match after {
        Request::UpdateScale => {
            Some("an action after a write of the scale: the next request can't be held back")
        }
        Request::UpdateStatus => {
            Some("an action after a write of the status: the next request can't be held back")
        }
        Request::GetScale if *nth > 1 => {
            Some("an action before a retry of a write: the retry can't be held back")
        }
        // Between the read of the scale and the first query, the controller checks that the HPA
        // exists.
        Request::GetScale if matches!(action, Action::DeleteHpa(_)) => Some(
            "a deletion of the HPA after a read of the scale: the next request can't be held back",
        ),
        _ => None,
    });
    let several = during.windows(2).any(|pair| pair[0].0 != pair[1].0);
    all.or_else(|| {
        several.then_some(
            "actions at several moments of reconciles: only one answer to a query can be held back",
        )
    })
}

/// Returns true if a utilization metric applies to several pods whose containers have no request.
/// The controller names one of these pods in its status, and which one is random.
fn lacks_a_request(scenario: &Scenario) -> bool {
    let several = scenario.other_pods.iter().filter(|pods| pods.count() > 1);
    let specs = several.map(|pods| pods.spec().into()).chain([scenario.workload.spec.clone()]);
    let metrics = scenario.hpas.iter().flat_map(|hpa| &hpa.spec.metrics);
    let sources = metrics.filter_map(|metric| {
        let container = || metric.container_resource.as_ref().map(|it| (&*it.name, &it.target));
        metric.resource.as_ref().map(|it| (&*it.name, &it.target)).or_else(container)
    });
    let utilizations = sources.filter(|(_, target)| target.type_ == MetricTargetType::Utilization);
    let names: Vec<&str> = utilizations.map(|(name, _)| name).collect();
    let has = |container: &Container, name: &str| container.requests.contains_key(name);
    let lacks = |spec: &PodSpec, name: &str| {
        let set_for_pod =
            spec.requests.as_ref().is_some_and(|requests| requests.contains_key(name));
        !set_for_pod && spec.running_containers().any(|container| !has(container, name))
    };
    specs.into_iter().any(|spec| names.iter().any(|name| lacks(&spec, name)))
}
