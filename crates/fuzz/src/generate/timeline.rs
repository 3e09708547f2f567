//! Timeline actions, usually at a reconcile or the length of a window away from one.

use std::sync::Arc;

use serde_json::{Value, json};

use super::edge::Edge;
use super::{Draft, RESOURCES, Tolerances, behavior, edge, hpa, races, several, workload};
use crate::area::Area;
use kube_autoscaler_models::api::ApiError;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::{
    Action, Container, ContainerOfPods, Empty, MetricError, MetricOfPods, ResourceOfPods,
    RollingUpdate, Share, TargetDeletion, TimelineEvent,
};

/// Draws an action; its time is drawn afterwards.
type Draw = fn(&mut Draft) -> TimelineEvent;

pub(super) fn timeline(draft: &mut Draft) -> Vec<TimelineEvent> {
    let most = if draft.ticks > 1000 { 30 } else { 5 };
    let mut events = Vec::new();
    let themes: [(Area, u64, Draw); 3] = [
        (Area::Pods, 30, |draft| pod_action(draft).into()),
        (Area::Errors, 20, |draft| error_action(draft).into()),
        (Area::Edits, 25, user_event),
    ];
    for (area, elsewhere, what) in themes {
        if !draft.likely(area, elsewhere, 100) {
            continue;
        }
        for _ in 0..draft.dice.between(1, most) {
            let event = what(draft);
            let at = draft.instant();
            let lasts = (event.action.can_end() && draft.dice.percent(85)).then(|| draft.span());
            events.push(TimelineEvent { at, lasts, ..event });
        }
    }
    deletion(draft, &mut events);
    if draft.likely(Area::Edits, 2, 10) {
        let at = draft.instant();
        let lasts = draft.dice.percent(90).then(|| draft.span());
        let deleted = TimelineEvent::new(at, Action::TargetDeleted(TargetDeletion::default()));
        events.push(TimelineEvent { lasts, ..deleted });
    }
    events.extend(edge::event(draft));
    events.extend(between_attempts(draft));
    events.extend(longer_window(draft));
    events.extend(raised_minimum(draft));
    races::add(draft, &mut events);
    events.sort_by_key(|event| event.at);
    possible(events)
}

pub(super) fn pod_action(draft: &mut Draft) -> Action {
    let set = draft.pods();
    if draft.dice.percent(20) && !matches!(draft.kind.0, "ReplicaSet" | "ReplicationController") {
        return Action::RollingUpdate(rolling_update(draft));
    }
    match draft.dice.below(10) {
        0 => Action::PodsFailed(set),
        1 => Action::PodsDeleted(set),
        2 => Action::PodsStuckTerminating(set),
        3 => Action::MetricsMissing(set),
        4 => Action::MetricsStale(set),
        5 => {
            let containers: Vec<Arc<str>> =
                draft.containers.iter().map(|(name, _)| name.clone()).collect();
            let container = draft.dice.pick(&containers);
            Action::ContainerMetricsMissing(ContainerOfPods { pods: set, container })
        }
        6 => {
            let resource = Arc::from(draft.dice.pick(&RESOURCES));
            Action::ResourceMissing(ResourceOfPods { pods: set, resource })
        }
        7 => Action::PodsSucceeded(set),
        _ => Action::PodsUnready(set),
    }
}

/// A rolling update, sometimes with other requests.
fn rolling_update(draft: &mut Draft) -> RollingUpdate {
    let mut share = || match draft.dice.percent(50) {
        true => Share::Percent(draft.dice.pick(&[0, 1, 25, 25, 50, 100])),
        false => Share::Pods(draft.dice.pick(&[0, 1, 1, 2, 5])),
    };
    let (max_surge, mut max_unavailable) = (share(), share());
    let none = |share| matches!(share, Share::Pods(0) | Share::Percent(0));
    if none(max_surge) && none(max_unavailable) {
        max_unavailable = Share::Pods(1);
    }
    // Defaults are omitted.
    let one_by_one = draft.kind.0 == "StatefulSet";
    let given = |share| (!one_by_one && share != Share::DEFAULT).then_some(share);
    let (max_surge, max_unavailable) = (given(max_surge), given(max_unavailable));
    let mut containers = Vec::new();
    if draft.dice.percent(40) {
        for container in draft.spec.clone().containers {
            let requests = workload::requests(draft).0;
            containers.push(Container { name: container.name, requests, ..Container::default() });
        }
    }
    RollingUpdate { max_surge, max_unavailable, containers }
}

pub(super) fn error_action(draft: &mut Draft) -> Action {
    let error = error(draft);
    if draft.dice.percent(if draft.hpas.len() > 1 { 15 } else { 2 }) {
        let span = draft.span();
        return Action::MetricsSlow(span);
    }
    if !draft.names.is_empty() && draft.dice.percent(60) {
        let names = draft.names.clone();
        let name = draft.dice.pick(&names);
        let concerns_pods = name.starts_with("pods");
        return match draft.dice.below(4) {
            0 => Action::MetricEmpty(name),
            1 if concerns_pods => {
                let pods = draft.pods();
                Action::MetricMissing(MetricOfPods { metric: name, pods })
            }
            _ => Action::MetricError(MetricError { metric: name, error }),
        };
    }
    match draft.dice.below(6) {
        0 => Action::MetricsEmpty(Empty {}),
        1 => Action::GetScaleError(error),
        2 if draft.dice.percent(50) => Action::UpdateScaleError(conflict(error)),
        2 => Action::UpdateScaleError(error),
        3 => Action::UpdateStatusError(error),
        _ => Action::MetricsError(error.into()),
    }
}

/// Changes the error to a conflict, because only conflicts are retried.
fn conflict(error: ApiError) -> ApiError {
    ApiError { code: 409, reason: "Conflict".to_owned(), ..error }
}

/// Makes the target unreadable or deletes it between the read and the write of the scale, or during
/// a retry. Slow metrics provide the time for it.
fn between_attempts(draft: &mut Draft) -> Vec<TimelineEvent> {
    if !draft.likely(Area::Errors, 2, 20) {
        return Vec::new();
    }
    // The first reconcile is the most likely to scale.
    let tick = match draft.dice.percent(70) {
        true => 0,
        false => draft.flags.sync_period.0 * draft.dice.between(0, draft.ticks),
    };
    let (tick, until) = (Time(tick), draft.until());
    let mut events = Vec::new();
    let mut happen = |after: i64, lasts: Option<Span>, what: Action| {
        let at = (tick + Span::from_millis(after)).min(until);
        events.push(TimelineEvent { lasts, ..TimelineEvent::new(at, what) });
    };
    let slow = draft.dice.percent(70);
    if slow {
        happen(0, Some(Span::from_millis(50)), Action::MetricsSlow(Span::from_millis(100)));
    }
    let lasts = Some(draft.span());
    let gone = draft.dice.percent(30);
    let refusal = error(draft);
    if !gone || draft.dice.percent(30) {
        let refusal = if slow { refusal.clone() } else { conflict(refusal.clone()) };
        happen(0, lasts, Action::UpdateScaleError(refusal));
    }
    let after = draft.dice.pick(if slow { &[1, 50, 99] } else { &[1, 15, 40] });
    let failure = match gone {
        true => Action::TargetDeleted(TargetDeletion::default()),
        false => Action::GetScaleError(refusal),
    };
    happen(after, lasts, failure);
    events
}

/// Errors of API servers.
fn error(draft: &mut Draft) -> ApiError {
    let (code, reason) = draft.dice.pick(&[
        (400, "BadRequest"),
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (404, "NotFound"),
        (409, "Conflict"),
        (409, "Conflict"),
        (409, "AlreadyExists"),
        (410, "Gone"),
        (422, "Invalid"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
        (504, "Timeout"),
    ]);
    let messages = ["no", "the server is currently unable to handle the request", "a \"b\"; c\\d"];
    let message = Arc::from(draft.dice.pick(&messages));
    ApiError { code, reason: reason.to_owned(), message }
}

pub(super) fn user_event(draft: &mut Draft) -> TimelineEvent {
    match draft.dice.below(10) {
        0 | 1 => {
            let size = draft.dice.replicas(draft.min - 1, draft.max.min(60) + 1).max(0);
            let size = draft.dice.weighted(&[(6, size), (1, 0), (1, draft.replicas)]);
            match draft.others {
                others if others > 0 && draft.dice.percent(50) => {
                    let name = several::target_name(draft.dice.below(others as u64));
                    TimelineEvent { target: Some(name.into()), ..Action::Scale(size).into() }
                }
                _ => Action::Scale(size).into(),
            }
        }
        2 => Action::RestartController(Empty {}).into(),
        kind => {
            let hpa = one_of(draft);
            let patch = if kind < 5 { rejected(draft) } else { edit(draft) };
            TimelineEvent { hpa, ..Action::EditHpa(patch).into() }
        }
    }
}

/// One of the HPAs, by its name if there are several.
pub(super) fn one_of(draft: &mut Draft) -> Option<Arc<str>> {
    let hpas = draft.hpas.clone();
    let hpa = draft.dice.pick(&hpas);
    (hpas.len() > 1).then_some(hpa)
}

/// Makes a window or a period longer and changes the replicas shortly afterwards, so that what the
/// controller should have forgotten would show.
fn longer_window(draft: &mut Draft) -> Vec<TimelineEvent> {
    if !draft.likely(Area::Behavior, 2, 15) {
        return Vec::new();
    }
    let hpa = one_of(draft);
    let direction = draft.dice.pick(&["scaleUp", "scaleDown"]);
    let rules = match draft.dice.percent(50) {
        true => json!({ "stabilizationWindowSeconds": 3600 }),
        false => {
            let value = draft.dice.pick(&[1, 2, 5, 50]);
            let policy = json!({ "type": "Pods", "value": value, "periodSeconds": 1800 });
            json!({ "policies": [policy] })
        }
    };
    let patch = json!({ "spec": { "behavior": { direction: rules } } });
    let until = draft.until();
    let at = draft.instant();
    let edit = TimelineEvent::new(at, Action::EditHpa(patch));
    let size = draft.dice.replicas(draft.min.max(1), draft.max.min(60) + 1);
    let later = (at + Span::from_secs(draft.dice.between(1, 20))).min(until);
    vec![TimelineEvent { hpa, ..edit }, TimelineEvent::new(later, Action::Scale(size))]
}

/// Raises a minimum of zero, which restores a workload without replicas, and sometimes lowers it
/// again.
fn raised_minimum(draft: &mut Draft) -> Vec<TimelineEvent> {
    if draft.edge != Edge::Zero || !draft.dice.percent(60) {
        return Vec::new();
    }
    let hpa = one_of(draft);
    let count = draft.dice.weighted(&[(3, 1), (2, 2), (1, 4)]);
    let mut instants = draft.instants(count).into_iter();
    let mut raised = || {
        let at = instants.next()?;
        let min = draft.dice.weighted(&[(2, 1), (3, 3), (2, 0)]);
        let mut spec = json!({ "minReplicas": min });
        if min > 0 && draft.dice.percent(15) {
            let target = json!({ "type": "Utilization", "averageUtilization": 50 });
            let source = json!({ "name": "cpu", "target": target });
            spec["metrics"] = json!([{ "type": "Resource", "resource": source }]);
        }
        let edit = TimelineEvent::new(at, Action::EditHpa(json!({ "spec": spec })));
        Some(TimelineEvent { hpa: hpa.clone(), ..edit })
    };
    std::iter::from_fn(&mut raised).collect()
}

/// An edit that is usually valid.
fn edit(draft: &mut Draft) -> Value {
    match draft.dice.below(8) {
        0 | 1 => {
            let max = draft.dice.replicas(draft.min, draft.max.saturating_mul(2)).max(1);
            json!({ "spec": { "maxReplicas": max } })
        }
        2 => json!({ "spec": { "minReplicas": draft.dice.replicas(1, draft.max) } }),
        3 if draft.dice.percent(40) => {
            let target = json!({ "type": "AverageValue", "averageValue": "100m" });
            let target = match draft.dice.percent(60) {
                true => json!({ "type": "Utilization", "averageUtilization": 50 }),
                false => target,
            };
            let source = json!({ "name": "cpu", "container": "gone", "target": target });
            let metric = json!({ "type": "ContainerResource", "containerResource": source });
            json!({ "spec": { "metrics": [metric] } })
        }
        3 => {
            // Metrics other than cpu and memory do not exist: 404.
            let metric = hpa::metric(draft, Tolerances { down: 100, up: 100 });
            json!({ "spec": { "metrics": [metric] } })
        }
        4 | 5 => {
            let behavior = behavior::behavior(draft);
            json!({ "spec": { "behavior": behavior } })
        }
        6 => json!({ "metadata": { "labels": { "touched": "yes" } } }),
        _ => {
            let direction = draft.dice.pick(&["scaleUp", "scaleDown"]);
            let window = draft.dice.pick(&[0, 1, 15, 16, 60, 300, 3600]);
            let rules = json!({ "stabilizationWindowSeconds": window });
            json!({ "spec": { "behavior": { direction: rules } } })
        }
    }
}

/// An edit that the API server usually rejects.
fn rejected(draft: &mut Draft) -> Value {
    let spec = match draft.dice.below(12) {
        0 => json!({ "maxReplicas": draft.dice.pick(&[0, -1]) }),
        1 => json!({ "minReplicas": draft.dice.pick(&[0, -1]) }),
        2 => json!({ "minReplicas": draft.max + 1 }),
        3 => json!({ "maxReplicas": draft.min - 1 }),
        4 => json!({ "behavior": { "scaleDown": { "policies": [] } } }),
        5 => {
            let window = draft.dice.pick(&[-1, 3601]);
            json!({ "behavior": { "scaleUp": { "stabilizationWindowSeconds": window } } })
        }
        6 => {
            let (value, period) = draft.dice.pick(&[(0, 15), (1, 0), (-1, 1801), (0, 0)]);
            let policy = json!({ "type": "Pods", "value": value, "periodSeconds": period });
            json!({ "behavior": { "scaleUp": { "policies": [policy] } } })
        }
        7 => json!({ "behavior": { "scaleUp": { "tolerance": "-1m" } } }),
        8 => json!({ "scaleTargetRef": { "name": draft.dice.pick(&["gone", ".", "a/b"]) } }),
        9 => {
            let (kind, version) = draft.dice.pick(&[
                ("Gadget", "example.com/v1"),
                ("DaemonSet", "apps/v1"),
                ("CronJob", "batch/v1"),
                ("Pod", "v1"),
            ]);
            json!({ "scaleTargetRef": { "kind": kind, "apiVersion": version } })
        }
        10 => {
            let target = draft.dice.pick(&[
                json!({ "type": "Utilization", "averageUtilization": 0 }),
                json!({ "type": "AverageValue", "averageValue": "0" }),
                json!({ "type": "Utilization" }),
            ]);
            let source = json!({ "name": "cpu", "target": target });
            json!({ "metrics": [{ "type": "Resource", "resource": source }] })
        }
        _ => json!({ "metrics": [{ "type": "Resource" }] }),
    };
    json!({ "spec": spec })
}

/// Sometimes deletes the HPA, and usually re-creates it.
fn deletion(draft: &mut Draft, events: &mut Vec<TimelineEvent>) {
    let several = draft.hpas.len() > 1;
    if !draft.likely(Area::Edits, if several { 30 } else { 4 }, 25) {
        return;
    }
    let hpa = one_of(draft);
    let at = draft.instant();
    let until = draft.until();
    let deleted = TimelineEvent::new(at, Action::DeleteHpa(Empty {}));
    events.push(TimelineEvent { hpa: hpa.clone(), ..deleted });
    if draft.dice.percent(85) {
        let back = draft.dice.weighted(&[(2, Span::ZERO), (3, Span::from_secs(1))]);
        let back = if draft.dice.percent(40) { draft.span() } else { back };
        let at = Time((at + back).0.min(until.0));
        let created = TimelineEvent::new(at, Action::CreateHpa(Empty {}));
        events.push(TimelineEvent { hpa, ..created });
    }
}

/// Removes impossible actions: edits of a deleted HPA, restarts of a controller that has not
/// started yet.
fn possible(events: Vec<TimelineEvent>) -> Vec<TimelineEvent> {
    let mut gone: Vec<Option<Arc<str>>> = Vec::new();
    let mut restarted: Option<Time> = None;
    let keep = |event: &TimelineEvent| match &event.action {
        Action::EditHpa(_) => !gone.contains(&event.hpa),
        Action::DeleteHpa(_) => {
            let there = !gone.contains(&event.hpa);
            gone.extend(there.then(|| event.hpa.clone()));
            there
        }
        Action::CreateHpa(_) => {
            let before = gone.len();
            gone.retain(|other| *other != event.hpa);
            gone.len() < before
        }
        Action::RestartController(_) => {
            let apart = restarted.is_none_or(|at| event.at - at >= Span::from_secs(1));
            restarted = if apart { Some(event.at) } else { restarted };
            apart
        }
        _ => true,
    };
    let mut keep = keep;
    events.into_iter().filter(|event| keep(event)).collect()
}
