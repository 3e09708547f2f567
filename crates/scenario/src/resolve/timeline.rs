//! Checks the events of the timeline, and sorts them by time.

use std::sync::Arc;

use super::cursor::{At, Problems};
use super::hpa::{Hpas, quantities};
use super::reach::{Reach, check_reach};
use super::values::{check_replicas, not_after_end, resource};
use super::workload::known_container;
use super::{Reader, metadata, objects, rolling_update};
use crate::action::usual_reason;
use crate::autoscalers::Autoscalers;
use crate::decode::{Nulls, decode};
use crate::error::suggest;
use crate::manifest::Patch;
use crate::node::NodeKind;
use crate::raw::ScenarioFile;
use crate::resolved::{
    Action, ActionScope, Metrics, OtherTarget, QueryError, TimelineEvent, Workload,
};
use kube_autoscaler_models::api::ApiError;
use kube_autoscaler_models::time::{Span, Time};

/// The parts of the scenario that an event may refer to.
#[derive(Clone, Copy)]
pub(super) struct ResolveContext<'s> {
    pub file: &'s ScenarioFile,
    pub read: Reader<'s>,
    pub hpas: &'s Hpas,
    pub workload: Option<&'s Workload>,
    pub others: &'s [OtherTarget],
    pub reach: Option<Reach>,
    pub until: Time,
}

/// Resolves the events of HPAs and of what a VPA shares with them.
pub(super) fn resolve(
    context: &ResolveContext<'_>,
    at: At<'_>,
    problems: &mut Problems,
) -> Vec<TimelineEvent> {
    let mut events = resolve_each(context, at, problems);
    events.sort_by_key(|event| event.at);
    check_hpa_exists(&events, at, problems);
    restarts_are_apart(&events, at, problems);
    events
}

/// Resolves events separately, in the order of the file.
pub(super) fn resolve_each(
    context: &ResolveContext<'_>,
    at: At<'_>,
    problems: &mut Problems,
) -> Vec<TimelineEvent> {
    let mut events = Vec::new();
    for (index, event) in context.file.timeline.iter().enumerate() {
        if event.action.requires_vpa() {
            continue;
        }
        let (mut event, at) = (event.clone(), at.index(index));
        check_fields(&mut event, context.until, at, problems);
        if event.new_pods {
            check_new_pods(&event, Autoscalers::Hpas, at, problems);
        }
        if event.during.is_some() {
            check_during(context, &mut event, at, problems);
        }
        if matches!(event.action, Action::CacheLag(_)) {
            check_cache_lag(context, at.key_position("cacheLag"), problems);
        }
        check_hpa(context, &mut event, at, problems);
        check_target(context, &mut event, at, problems);
        let name = event.action.name();
        check_objects(context, &event, at, problems);
        check_action(context, &mut event, at.key(&name), problems);
        events.push(event);
    }
    events
}

/// Sets the line of an event, and checks its time and the fields that apply only to some actions.
pub(super) fn check_fields(
    event: &mut TimelineEvent,
    until: Time,
    at: At<'_>,
    problems: &mut Problems,
) {
    event.line = at.line;
    not_after_end(event.at, until, at.key("at"), problems);
    let scope = event.action.scope();
    let is_scaling = event.action.sets_replicas();
    for (field, is_given, applies, reason) in [
        ("for", event.lasts.is_some(), event.action.can_end(), "the action happens once"),
        (
            "hpa",
            event.hpa.is_some(),
            scope == ActionScope::Hpa,
            "it applies only to editHpa, deleteHpa and createHpa",
        ),
        (
            "vpa",
            event.vpa.is_some(),
            scope == ActionScope::Vpa,
            "it applies only to editVpa, deleteVpa and createVpa",
        ),
        ("target", event.target.is_some(), is_scaling, "it applies only to scale"),
    ] {
        if is_given && !applies {
            let what = format!("`{field}` does not apply to `{}`", event.action.name());
            let hint = format!("remove `{field}`: {reason}");
            problems.hint(at.key_position(field), what, hint);
        }
    }
}

/// Checks that restarts are at least 1 s apart. A controller that is stopped before its caches are
/// synced never reconciles anything.
fn restarts_are_apart(events: &[TimelineEvent], at: At<'_>, problems: &mut Problems) {
    let restarts: Vec<Time> = events
        .iter()
        .filter(|event| matches!(event.action, Action::RestartController(_)))
        .map(|event| event.at)
        .collect();
    for pair in restarts.windows(2).filter(|pair| pair[1] - pair[0] < Span::from_secs(1)) {
        let what = format!("the controller is restarted at {} and again at {}", pair[0], pair[1]);
        problems.hint(at, what, "leave at least 1s between two restarts");
    }
}

/// Checks `during`: no reconcile may wait for metrics, the action must be possible, and the HPA
/// that is reconciled must be known. Its name is removed if there is only one HPA.
fn check_during(
    context: &ResolveContext<'_>,
    event: &mut TimelineEvent,
    at: At<'_>,
    problems: &mut Problems,
) {
    let slow = |event: &TimelineEvent| matches!(event.action, Action::MetricsSlow(_));
    let position = at.key_position("during");
    match &event.action {
        Action::CreateHpa(_) => {
            let hint = "remove `during`: the controller does not reconcile an HPA that is absent";
            problems.hint(position, "`during` does not apply to `createHpa`", hint);
        }
        Action::RestartController(_) => {
            let hint = "remove `during`: a new controller begins a new reconcile";
            problems.hint(position, "`during` does not apply to `restartController`", hint);
        }
        _ if context.file.timeline.iter().any(slow) => {
            let hint = "use a separate scenario for each: a reconcile that waits for metrics reads \
                        the state after the wait";
            problems.hint(position, "`during` can't be combined with `metricsSlow`", hint);
        }
        _ => {}
    }
    let (hpas, at) = (context.hpas, at.key("during"));
    let Some(during) = &mut event.during else { return };
    if during.nth == 0 {
        let hint = "requests are counted from 1";
        problems.hint(at.key("nth"), "expected 1 or more, found 0", hint);
    }
    match &during.hpa {
        Some(name) => {
            hpas.named(name, at.key("hpa"), problems);
        }
        None if hpas.only().is_none() && !hpas.names().is_empty() => {
            let hint = format!("add `hpa: NAME` to `during`, one of {}", hpas.names());
            let what = "the reconcile is ambiguous: the scenario has several HPAs";
            problems.hint(position, what, hint);
        }
        None => {}
    }
    if hpas.only().is_some() {
        during.hpa = None;
    }
}

/// Checks `cacheLag`: the scenario must have one HPA, whose reconciles neither wait nor are
/// interrupted.
fn check_cache_lag(context: &ResolveContext<'_>, position: At<'_>, problems: &mut Problems) {
    let events = &context.file.timeline;
    let slow = |event: &TimelineEvent| matches!(event.action, Action::MetricsSlow(_));
    if context.hpas.only().is_none() && !context.hpas.names().is_empty() {
        let hint = "keep one HPA: the lag would delay the changes of all HPAs";
        problems.hint(position, "`cacheLag` requires a scenario with one HPA", hint);
    } else if events.iter().any(slow) {
        let hint = "use a separate scenario for each: the order of a change and a waiting \
                    reconcile would be random";
        problems.hint(position, "`cacheLag` can't be combined with `metricsSlow`", hint);
    } else if events.iter().any(|event| event.during.is_some()) {
        let hint = "use a separate scenario for each: with both, the controller reads outdated \
                    objects";
        problems.hint(position, "`cacheLag` can't be combined with `during`", hint);
    }
}

/// Checks `newPods`: the action must hold pods while it lasts.
pub(super) fn check_new_pods(
    event: &TimelineEvent,
    autoscalers: Autoscalers,
    at: At<'_>,
    problems: &mut Problems,
) {
    let what = format!("`newPods` does not apply to `{}`", event.action.name());
    let hint = match &event.action {
        Action::MetricsStale(_) => {
            "use `metricsMissing`: a new pod has no sample that could become stale"
        }
        Action::PodsStuckTerminating(_) => "remove `newPods`: new pods are not deleted",
        action if action.pods().is_some() && action.can_end() => return,
        _ if autoscalers == Autoscalers::Vpas => {
            "remove `newPods`: it applies only to metricsMissing, metricsLate, \
             containerMetricsMissing and resourceMissing"
        }
        _ => {
            "remove `newPods`: it applies only to podsUnready, metricsMissing, \
             containerMetricsMissing, resourceMissing and metricMissing"
        }
    };
    problems.hint(at.key_position("newPods"), what, hint);
}

/// Checks `hpa`, the name of the HPA that an action applies to. It is removed if there is only one
/// HPA.
fn check_hpa(
    context: &ResolveContext<'_>,
    event: &mut TimelineEvent,
    at: At<'_>,
    problems: &mut Problems,
) {
    let hpas = context.hpas;
    let acts_on_an_hpa = event.action.scope() == ActionScope::Hpa;
    match &event.hpa {
        Some(name) if acts_on_an_hpa => {
            hpas.named(name, at.key("hpa"), problems);
        }
        None if acts_on_an_hpa && hpas.only().is_none() && !hpas.names().is_empty() => {
            let hint = format!("add `hpa: NAME`, one of {}", hpas.names());
            problems.hint(at, "the HPA is ambiguous: the scenario has several", hint);
        }
        _ => {}
    }
    if hpas.only().is_some() {
        event.hpa = None;
    }
}

/// Checks `target`, the name of the scaled target. The workload's name is removed.
fn check_target(
    context: &ResolveContext<'_>,
    event: &mut TimelineEvent,
    at: At<'_>,
    problems: &mut Problems,
) {
    let Some(name) = event.target.as_ref().filter(|_| event.action.sets_replicas()) else { return };
    let Some(workload) = context.hpas.target() else { return };
    if workload.name == *name {
        event.target = None;
    } else if !context.others.iter().any(|target| target.name == *name) {
        let known = context.others.iter().map(|target| &*target.name).chain([&*workload.name]);
        let what = format!("the scenario has no target `{name}`");
        problems.add(at.key("target").problem(what, suggest(name, known)));
    }
}

/// Checks an action, and removes defaults. `at` is the position of its field.
fn check_action(
    context: &ResolveContext<'_>,
    event: &mut TimelineEvent,
    at: At<'_>,
    problems: &mut Problems,
) {
    if let Some(set) = event.action.pods() {
        let set_at = if at.is_map() { at.key("pods") } else { at };
        // With `newPods`, pods can be created until the end.
        let end = event.lasts.map_or(context.until, |lasts| event.at + lasts);
        let until = match event.during {
            Some(_) => context.until,
            None if event.new_pods => end,
            None => event.at,
        };
        check_reach(set, context.reach, until, set_at, problems);
    }
    match &mut event.action {
        Action::MetricsError(QueryError::Response(error))
        | Action::GetScaleError(error)
        | Action::UpdateScaleError(error)
        | Action::UpdateStatusError(error) => check_error(error, at, problems),
        Action::MetricError(error) => {
            check_metric(context.file, &error.metric, "metricsError", at.key("metric"), problems);
            check_error(&error.error, at, problems);
        }
        Action::MetricEmpty(metric) => {
            check_metric(context.file, metric, "metricsEmpty: {}", at, problems);
        }
        Action::MetricMissing(part) => {
            check_metric_of_pods(context.file, &part.metric, at.key("metric"), problems);
        }
        Action::ContainerMetricsMissing(part) => {
            let workload = &context.file.workload;
            known_container(&part.container, workload, at.key("container"), problems);
        }
        Action::ResourceMissing(part) => resource(&part.resource, at.key("resource"), problems),
        Action::RollingUpdate(update) => {
            rolling_update::check(update, context.workload, at, problems);
        }
        Action::Scale(replicas) => check_replicas(*replicas, at, problems),
        Action::EditHpa(_) => check_edit(at, problems),
        Action::ApplyObject(manifest) => {
            *manifest = objects::resolve_one(at, context.read, problems).unwrap_or_default();
        }
        Action::EditObject(edit) => objects::check_ref(&edit.object(), at, problems),
        Action::DeleteObject(object) => objects::check_ref(object, at, problems),
        _ => {}
    }
}

/// Checks that the scenario has the object of an action, in scenarios with and without `objects`.
fn check_objects(
    context: &ResolveContext<'_>,
    event: &TimelineEvent,
    at: At<'_>,
    problems: &mut Problems,
) {
    let ResolveContext { hpas, file, .. } = *context;
    let has_objects = file.objects.is_some();
    let has_target = !hpas.is_empty() || file.workload.target.is_some();
    let name = event.action.name();
    let missing = match event.action.scope() {
        ActionScope::Object if !has_objects => "`objects`, which may be an empty list",
        // Without `objects`, the missing HPA is already reported.
        _ if !has_objects => return,
        ActionScope::Hpa if hpas.is_empty() => "an HPA",
        ActionScope::Pods | ActionScope::Samples | ActionScope::Target if !has_target => {
            "a workload"
        }
        _ if matches!(event.action, Action::CacheLag(_) | Action::UpdateStatusError(_))
            && hpas.is_empty() =>
        {
            "an HPA"
        }
        _ => {
            if event.during.is_some() && hpas.is_empty() {
                let position = at.key_position("during");
                problems.hint(position, "`during` requires an HPA", "remove `during`");
            }
            return;
        }
    };
    let hint = "add it, or remove the event";
    problems.hint(at.key_position(&name), format!("`{name}` requires {missing}"), hint);
}

/// The names of the metrics of a file, by API.
struct MetricNames<'f> {
    resources: Vec<&'f str>,
    pods: Vec<&'f str>,
    objects_and_externals: Vec<&'f str>,
}

impl<'f> MetricNames<'f> {
    fn new(file: &'f ScenarioFile) -> MetricNames<'f> {
        let Metrics { resources, pods, objects, externals, .. } = &file.metrics;
        let objects = objects.iter().map(|metric| &*metric.name);
        let externals = externals.iter().map(|metric| &*metric.name);
        MetricNames {
            resources: resources.iter().map(|usage| &*usage.name).collect(),
            pods: pods.iter().map(|metric| &*metric.name).collect(),
            objects_and_externals: objects.chain(externals).collect(),
        }
    }
}

/// Checks the name of a custom or external metric. Other actions apply to cpu and memory.
fn check_metric(
    file: &ScenarioFile,
    name: &str,
    instead: &str,
    at: At<'_>,
    problems: &mut Problems,
) {
    let names = MetricNames::new(file);
    let known = [names.pods, names.objects_and_externals].concat();
    let hint = format!("for cpu and memory, use `{instead}`");
    known_metric(name, known, &names.resources, &hint, at, problems);
}

/// Returns true for the metrics of metrics.k8s.io, in any case.
fn is_resource(name: &str) -> bool {
    ["cpu", "memory"].iter().any(|resource| name.eq_ignore_ascii_case(resource))
}

fn check_metric_of_pods(file: &ScenarioFile, name: &str, at: At<'_>, problems: &mut Problems) {
    let names = MetricNames::new(file);
    if is_resource(name) && !names.pods.contains(&name) {
        let what =
            format!("`metricMissing` does not apply to `{name}`, a metric of metrics.k8s.io");
        let hint = "use `metricsMissing`, which removes pods from metrics.k8s.io, or \
                    `resourceMissing`, which removes one resource from their metrics";
        return problems.hint(at, what, hint);
    }
    let hint = "for object and external metrics, use `metricEmpty`, which removes all series";
    known_metric(name, names.pods, &names.objects_and_externals, hint, at, problems);
}

/// Checks that the action applies to the metric. `hint` is for other existing metrics.
fn known_metric(
    name: &str,
    mut known: Vec<&str>,
    others: &[&str],
    hint: &str,
    at: At<'_>,
    problems: &mut Problems,
) {
    if known.contains(&name) {
        return;
    }
    known.dedup();
    if others.contains(&name) {
        problems.hint(at, format!("the action does not apply to the metric `{name}`"), hint);
    } else {
        let what = format!("`metrics` has no metric `{name}`");
        problems.add(at.problem(what, suggest(name, known)));
    }
}

fn check_error(error: &ApiError, at: At<'_>, problems: &mut Problems) {
    let code = error.code;
    if !(400..=599).contains(&code) {
        let what = format!("{code} is not the status code of an error: expected 400 to 599");
        problems.plain(at.key("code"), what);
    } else if at.key("reason").node().is_none() && usual_reason(code).is_none() {
        let what = format!("missing field `reason`: code {code} has no usual reason");
        problems.plain(at, what);
    }
}

/// Checks the shape of a merge patch, and that it does not change the name.
fn check_edit(at: At<'_>, problems: &mut Problems) {
    let Some(node) = at.node() else { return };
    let patch: Patch = match decode(node, Nulls::Absent) {
        Ok(patch) => patch,
        Err(problem) => return problems.add(problem),
    };
    if matches!(&node.kind, NodeKind::Map(entries) if entries.is_empty()) {
        let hint = "for example {spec: {maxReplicas: 20}}";
        problems.hint(at, "the edit is empty", hint);
        return;
    }
    if patch.metadata.is_some() {
        metadata::check_edit(at.key("metadata"), problems);
    }
    if let Some(spec) = &patch.spec {
        quantities(at.key("spec"), spec, problems);
    }
}

/// The hint for events that edit or delete an absent HPA.
const ABSENT_HPA: &str = "create it first, with `createHpa`, or remove the event";

/// Checks that no event edits or deletes an absent HPA or creates an existing one.
fn check_hpa_exists(events: &[TimelineEvent], timeline: At<'_>, problems: &mut Problems) {
    let mut deleted: Vec<&Option<Arc<str>>> = Vec::new();
    for event in events {
        let (wrong, hint) = match &event.action {
            Action::EditHpa(_) | Action::DeleteHpa(_) => ("does not exist", ABSENT_HPA),
            Action::CreateHpa(_) => ("already exists", "delete it first, with `deleteHpa`"),
            _ => continue,
        };
        let creates = matches!(event.action, Action::CreateHpa(_));
        if deleted.contains(&&event.hpa) != creates {
            let entries = match timeline.node().map(|node| &node.kind) {
                Some(NodeKind::List(entries)) => entries.as_slice(),
                _ => &[],
            };
            let at = entries.iter().position(|entry| entry.line == event.line);
            let at = at.map_or(timeline, |index| timeline.index(index));
            let at = at.key_position(&event.action.name());
            let name = event.hpa.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
            problems.hint(at, format!("the HPA{name} {wrong} at {}", event.at), hint);
        }
        match event.action {
            Action::DeleteHpa(_) => deleted.push(&event.hpa),
            Action::CreateHpa(_) => deleted.retain(|other| **other != event.hpa),
            _ => {}
        }
    }
}
