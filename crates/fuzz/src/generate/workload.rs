//! The target and its pods: replicas at the limits, ages and startup at the boundaries of
//! readiness.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Draft, edge, numbers};
use crate::area::Area;
use kube_autoscaler_models::api::{Container, PodSpec, Requests};
use kube_autoscaler_models::time::Span;
use kube_lockstep_scenario::resolved::{
    BUILT_IN, PodRules, ScalableKind, ScaleDownOrder, Startup, Termination, Workload,
};

/// A custom resource with a scale.
const CUSTOM_KIND: ScalableKind<'static> =
    ScalableKind { group: "example.com", version: "v1", kind: "Proxy", resource: "proxies" };

/// The target's name.
pub(crate) const NAME: &str = "web";

pub(super) fn workload(draft: &mut Draft) -> Workload {
    set_replicas(draft);
    let [deployment, replica_set, stateful_set, replication_controller] = BUILT_IN;
    let ScalableKind { group, version, kind, resource } = draft.dice.weighted(&[
        (20, deployment),
        (1, replica_set),
        (3, stateful_set),
        (1, replication_controller),
        (3, CUSTOM_KIND),
    ]);
    draft.kind = match group {
        "" => (kind, "v1"),
        "apps" => (kind, "apps/v1"),
        _ => (kind, "example.com/v1"),
    };
    let spec = pod_spec(draft);
    draft.spec = spec.clone();
    let (labels, selector) = labels(draft);
    draft.labels.clone_from(&labels);
    let startup = startup(draft);
    Workload {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        resource: resource.to_owned(),
        name: Arc::from(NAME),
        replicas: draft.replicas,
        quota: draft.likely(Area::Pods, 3, 15).then(|| {
            let above = draft.dice.replicas(-2, 4);
            u32::try_from(draft.replicas + above).unwrap_or(0)
        }),
        selector,
        labels,
        spec: Arc::new(spec),
        age: age(draft),
        startup,
        status_replicas: (group == "example.com" && draft.dice.percent(30))
            .then(|| draft.dice.replicas(0, draft.replicas.max(0) + 2)),
        scale_down_first: None,
        pods: Vec::new(),
        scale_down_order: draft.dice.pick(&[
            ScaleDownOrder::ReplicaSet,
            ScaleDownOrder::Newest,
            ScaleDownOrder::Oldest,
        ]),
        termination: termination(draft),
        rules: PodRules::OF_HPA,
    }
}

fn termination(draft: &mut Draft) -> Termination {
    if !draft.likely(Area::Pods, 20, 60) {
        return Termination::default();
    }
    let duration = draft.span();
    let ready = match draft.dice.below(4) {
        0 => Span::ZERO,
        1 => draft.span().min(duration),
        _ => duration,
    };
    Termination { duration, ready }
}

/// Sets limits, and replicas at, close to or between them.
fn set_replicas(draft: &mut Draft) {
    let dice = &mut draft.dice;
    draft.min = dice.weighted(&[(8, 1), (3, 2), (2, 3), (1, 10)]);
    let room = dice.weighted(&[(1, 0), (1, 1), (6, 9), (4, 30), (2, 100), (1, 1000)]);
    draft.max = draft.min + dice.replicas(0, room);
    let between = dice.replicas(draft.min, draft.max.min(draft.min + 40));
    draft.replicas = dice.weighted(&[
        (12, between),
        (3, draft.min),
        (3, draft.max.min(60)),
        (1, (draft.max + 1).min(60)),
        (1, draft.min - 1),
        (1, 0),
    ]);
    edge::set_replicas(draft);
}

/// Containers; occasionally init containers, sidecars, requests of the pod, overhead.
fn pod_spec(draft: &mut Draft) -> PodSpec {
    let mut spec = PodSpec { containers: containers(draft), ..PodSpec::default() };
    if draft.likely(Area::Custom, 8, 20) {
        for (name, sidecar) in [("setup", false), ("mesh", true)] {
            if draft.dice.percent(60) {
                let (requests, _) = requests(draft);
                spec.init_containers.push(Container { name: Arc::from(name), requests, sidecar });
            }
        }
    }
    if draft.likely(Area::Custom, 8, 20) {
        let (requests, known) = requests(draft);
        let given = |index: usize| requests.contains_key(super::RESOURCES[index]);
        draft.pod_requests = [0, 1].map(|index| given(index).then_some(known[index]));
        spec.requests = Some(requests);
        if draft.dice.percent(45) {
            let resource = draft.dice.below(2) as usize;
            has_no_requests(draft, &mut spec, resource);
        }
    }
    if draft.dice.percent(5) {
        (spec.overhead, _) = requests(draft);
    }
    spec
}

/// Returns true if neither the pod nor any of its containers requests a resource.
fn has_no_requests(draft: &mut Draft, spec: &mut PodSpec, resource: usize) {
    let name = super::RESOURCES[resource];
    let own = spec.requests.iter_mut();
    let containers = spec.containers.iter_mut().chain(&mut spec.init_containers);
    own.chain(containers.map(|container| &mut container.requests)).for_each(|requests| {
        requests.remove(name);
    });
    draft.containers.iter_mut().for_each(|(_, known)| known[resource] = 0);
    draft.pod_requests[resource] = None;
}

/// The request of a container, as written and in milli-units.
pub(super) fn requests(draft: &mut Draft) -> (Requests, [i64; 2]) {
    let mut requests = Requests::new();
    let mut known = [0; 2];
    for (index, resource) in super::RESOURCES.into_iter().enumerate() {
        // Without a request, utilization fails, so this case is rare.
        if draft.dice.percent(3) {
            continue;
        }
        let milli = match index {
            0 => draft.dice.pick(&[1, 3, 7, 10, 100, 250, 300, 333, 500, 1000, 2000, 4000]),
            _ => draft.dice.pick(&[1, 128, 1000, 1 << 20, 100 << 20, 1 << 30]) * 1000,
        };
        let none = if draft.area == Area::Quantities { 8 } else { 3 };
        let quantity = match draft.dice.percent(none) {
            true => numbers::parsed("0"),
            false => numbers::positive(draft, milli),
        };
        known[index] = quantity.milli();
        requests.insert(Arc::from(resource), quantity);
    }
    (requests, known)
}

fn containers(draft: &mut Draft) -> Vec<Container> {
    let count = draft.dice.weighted(&[(8, 1), (3, 2), (1, 3)]);
    let names = ["app", "proxy", "log"];
    let mut containers = Vec::with_capacity(count);
    for name in names.into_iter().take(count) {
        let (requests, known) = requests(draft);
        draft.containers.push((Arc::from(name), known));
        containers.push(Container { name: Arc::from(name), requests, sidecar: false });
    }
    containers
}

/// The pods' labels, and the selector of the scale, which usually matches them.
fn labels(draft: &mut Draft) -> (BTreeMap<String, String>, Arc<str>) {
    let mut labels = BTreeMap::from([("app".to_owned(), NAME.to_owned())]);
    if draft.dice.percent(15) {
        labels.insert("tier".to_owned(), "front".to_owned());
    }
    let all: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let all = all.join(",");
    let selector = draft.dice.weighted(&[
        (80, all.as_str()),
        (2, "app in (web,api)"),
        (2, "app,!gone"),
        (2, "app!=api"),
        (1, ""),
        (1, "app=web,app=web"),
        (1, "app in"),
        (1, "a=b=c"),
    ]);
    let selector = Arc::from(selector);
    (labels, selector)
}

/// Pods that start around the controller's delays.
fn startup(draft: &mut Draft) -> Startup {
    let delay = draft.flags.initial_readiness_delay;
    let init = draft.flags.cpu_initialization_period;
    draft.spans.extend([delay, init].into_iter().filter(|span| *span > Span::ZERO));
    if !draft.likely(Area::Readiness, 35, 95) {
        return Startup { pending: Some(Span::ZERO), ready: Some(Span::ZERO), metrics: Span::ZERO };
    }
    let milli = Span::from_millis;
    let beside = draft.dice.weighted(&[(4, 0), (1, -1), (1, 1), (1, -1000), (1, 1000)]);
    let near = |span: Span, beside: i64| Span((span.0 + milli(beside).0).max(0));
    let few = Span::from_secs(draft.dice.between(0, 40));
    let pending = draft.dice.weighted(&[(4, Span::ZERO), (4, few), (1, near(delay, beside))]);
    let more = Span::from_secs(draft.dice.between(0, 120));
    let after = draft.dice.weighted(&[
        (2, Span::ZERO),
        (3, more),
        (3, near(delay, beside)),
        (2, near(init, beside)),
    ]);
    let ready = Span(pending.0 + after.0);
    draft.startup = (pending, ready);
    let never = draft.dice.below(20);
    let window = Span::from_secs(30);
    Startup {
        pending: (never != 0).then_some(pending),
        ready: (never > 1).then_some(ready),
        metrics: draft.dice.weighted(&[(4, Span::ZERO), (2, window), (1, few), (1, more)]),
    }
}

/// The age of the initial pods: usually longer than all delays.
fn age(draft: &mut Draft) -> Span {
    if let Some(age) = edge::age(draft) {
        return age;
    }
    let hour = Span::from_mins(60);
    if !draft.likely(Area::Readiness, 15, 70) {
        return hour;
    }
    // The pods cross a boundary at a reconcile, shortly before or shortly after it.
    let init = draft.flags.cpu_initialization_period;
    let ticks = draft.flags.sync_period.0 * draft.dice.between(0, draft.ticks.min(30));
    let beside = draft.dice.pick(&[0, -1_000_000, 1_000_000, -1_000_000_000, 1_000_000_000]);
    Span((init.0 - ticks + beside).max(0))
}
