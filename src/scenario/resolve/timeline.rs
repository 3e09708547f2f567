//! Resolves the timeline, and sorts it by time.

use std::sync::Arc;

use super::cursor::{At, Problems};
use super::hpa::{Hpas, quantities};
use super::reach::{Reach, reachable};
use super::values::{positive, resource, time};
use super::workload::known_container;
use super::{metadata, rolling_update};
use crate::model::api;
use crate::model::time::{Span, Time};
use crate::scenario::decode::{Nulls, decode};
use crate::scenario::error::suggest;
use crate::scenario::manifest::Patch;
use crate::scenario::node::Kind;
use crate::scenario::raw::{ApiError, ScenarioFile, TimelineEvent as Typed};
use crate::scenario::resolved::{Action, OtherTarget, TimelineEvent, Workload};

/// All that an entry may speak of.
#[derive(Clone, Copy)]
pub(super) struct ResolveContext<'s> {
    pub(super) file: &'s ScenarioFile,
    pub(super) hpas: &'s Hpas,
    pub(super) workload: Option<&'s Workload>,
    pub(super) others: &'s [OtherTarget],
    pub(super) reach: Option<Reach>,
    pub(super) until: Option<Time>,
}

pub(super) fn resolve(
    scene: &ResolveContext<'_>,
    at: At<'_>,
    problems: &mut Problems,
) -> Vec<TimelineEvent> {
    let ResolveContext { file, reach, until, .. } = *scene;
    let mut happenings = Vec::with_capacity(file.timeline.len());
    for (index, typed) in file.timeline.iter().enumerate() {
        let at = at.index(index);
        let start = time(&typed.at, until, at.key("at"), problems);
        let lasts = typed.for_.as_ref().map(|text| positive(text, at.key("for"), problems));
        let what = what(scene, typed, (reach, start), at, problems);
        if let Some(what) = &what
            && lasts.is_some()
            && !what.can_end()
        {
            let hint = "leave `for` out: it happens at one instant";
            let name = actions(at).first().copied().unwrap_or_default();
            problems.hint(at.key_position("for"), format!("`{name}` has no end"), hint);
        }
        if let (Some(start), Some(what)) = (start, what) {
            happenings.push(TimelineEvent {
                at: start,
                lasts: lasts.flatten(),
                action: what,
                line: at.line,
            });
        }
    }
    happenings.sort_by_key(|happening| happening.at);
    hpa_is_there(&happenings, at, problems);
    restarts_are_apart(&happenings, at, problems);
    happenings
}

/// A controller that is stopped before its caches are synced never reconciled anything.
fn restarts_are_apart(happenings: &[TimelineEvent], at: At<'_>, problems: &mut Problems) {
    let restarts: Vec<Time> = happenings
        .iter()
        .filter(|happening| matches!(happening.action, Action::RestartController))
        .map(|happening| happening.at)
        .collect();
    for pair in restarts.windows(2).filter(|pair| pair[1] - pair[0] < Span::from_secs(1)) {
        let what = format!("the controller is restarted at {} and again at {}", pair[0], pair[1]);
        problems.hint(at, what, "a restart takes a moment: leave at least 1s between two");
    }
}

/// The fields that don't say what happens.
const BESIDES: [&str; 4] = ["at", "for", "hpa", "target"];

/// The fields that say what happens, in the order of the file.
fn actions(at: At<'_>) -> Vec<&str> {
    match at.node().map(|node| &node.kind) {
        Some(Kind::Map(entries)) => {
            let names = entries.iter().map(|(key, _)| key.text.as_str());
            names.filter(|name| !BESIDES.contains(name)).collect()
        }
        _ => Vec::new(),
    }
}

fn what(
    scene: &ResolveContext<'_>,
    typed: &Typed,
    reach: (Option<Reach>, Option<Time>),
    at: At<'_>,
    problems: &mut Problems,
) -> Option<Action> {
    let given = actions(at);
    let [name] = given.as_slice() else {
        let what = match given.as_slice() {
            [] => "nothing happens here: one field besides `at` and `for` is missing".to_owned(),
            more => {
                format!("expected one thing to happen, found {}: {}", more.len(), more.join(", "))
            }
        };
        let hint = "for instance {at: 60s, for: 2m, podsUnready: \"0-2\"}; see the reference";
        let hint = if given.is_empty() { hint } else { "write an entry for each of them" };
        problems.hint(at, what, hint);
        return None;
    };
    let value = at.key(name);
    let file = scene.file;
    let besides = [("hpa", OF_AN_HPA.as_slice()), ("target", OF_A_TARGET.as_slice())];
    for (field, goes_with) in besides {
        if at.key(field).node().is_some() && !goes_with.contains(name) {
            let what = format!("`{field}` does not go with `{name}`");
            let hint = format!("it goes with {}", goes_with.join(", "));
            problems.hint(at.key_position(field), what, hint);
        }
    }
    let sets = [
        (&typed.pods_unready, Action::PodsUnready as fn(_) -> _),
        (&typed.pods_failed, Action::PodsFailed),
        (&typed.pods_succeeded, Action::PodsSucceeded),
        (&typed.pods_deleted, Action::PodsDeleted),
        (&typed.pods_stuck_terminating, Action::PodsStuckTerminating),
        (&typed.metrics_missing, Action::MetricsMissing),
        (&typed.metrics_stale, Action::MetricsStale),
    ];
    if let Some((text, make)) = sets.iter().find_map(|(text, make)| text.as_ref().zip(Some(make))) {
        return reachable(text, reach, value, problems).map(make);
    }
    let errors = [
        (&typed.metrics_error, Action::MetricsError as fn(_) -> _),
        (&typed.get_scale_error, Action::GetScaleError),
        (&typed.update_scale_error, Action::UpdateScaleError),
        (&typed.update_status_error, Action::UpdateStatusError),
    ];
    if let Some((error, make)) =
        errors.iter().find_map(|(error, make)| error.as_ref().zip(Some(make)))
    {
        return api_error(error, value, problems).map(make);
    }
    if let Some(update) = &typed.rolling_update {
        return rolling_update::resolve(update, scene.workload, value, problems);
    }
    if let Some(replicas) = typed.scale {
        if replicas < 0 {
            problems.plain(value, format!("expected 0 or more replicas, found {replicas}"));
        }
        return scale(scene, typed, replicas, at.key("target"), problems);
    }
    if let Some(text) = &typed.metrics_slow {
        return positive(text, value, problems).map(Action::MetricsSlow);
    }
    if OF_AN_HPA.contains(name) {
        let hpa = hpa(scene, typed, at, problems);
        let patch = typed.edit_hpa.is_some().then(|| edit(value, problems));
        return match (patch, hpa) {
            (Some(patch), Some(hpa)) => Some(Action::EditHpa(hpa, patch?)),
            (None, Some(hpa)) if typed.delete_hpa.is_some() => Some(Action::DeleteHpa(hpa)),
            (None, Some(hpa)) => Some(Action::CreateHpa(hpa)),
            (_, None) => None,
        };
    }
    let simple = [
        (typed.metrics_empty, Action::MetricsEmpty),
        (typed.restart_controller, Action::RestartController),
        (typed.target_deleted, Action::TargetDeleted),
    ];
    if let Some(what) = simple.into_iter().find_map(|(given, what)| given.map(|_| what)) {
        return Some(what);
    }
    of_one_metric(file, typed, reach, value, problems)
        .unwrap_or_else(|| parts_of_pods(file, typed, reach, value, problems))
}

/// What is done to one HPA.
const OF_AN_HPA: [&str; 3] = ["editHpa", "deleteHpa", "createHpa"];
/// What is done to one target.
const OF_A_TARGET: [&str; 1] = ["scale"];

/// The HPA that an entry speaks of.
fn hpa(
    scene: &ResolveContext<'_>,
    typed: &Typed,
    at: At<'_>,
    problems: &mut Problems,
) -> Option<Arc<str>> {
    match &typed.hpa {
        Some(name) => scene.hpas.named(name, at.key("hpa"), problems),
        None if scene.hpas.names().is_empty() => None,
        None => scene.hpas.only().or_else(|| {
            let hint = format!("add `hpa: NAME`, one of {}", scene.hpas.names());
            problems.hint(at, "which HPA is meant? there are several", hint);
            None
        }),
    }
}

/// Somebody scales the workload, or another target.
fn scale(
    scene: &ResolveContext<'_>,
    typed: &Typed,
    replicas: i32,
    at: At<'_>,
    problems: &mut Problems,
) -> Option<Action> {
    let Some(name) = &typed.target else { return Some(Action::Scale(replicas)) };
    let workload = scene.hpas.target()?;
    if *workload.name == **name {
        return Some(Action::Scale(replicas));
    }
    let other = scene.others.iter().position(|target| *target.name == **name);
    if other.is_none() {
        let known = scene.others.iter().map(|target| &*target.name).chain([&*workload.name]);
        problems.add(at.problem(format!("there is no target `{name}`"), suggest(name, known)));
    }
    other.map(|other| Action::ScaleOther(other, replicas))
}

/// What happens to one custom or external metric. The outer None: it is something else.
fn of_one_metric(
    file: &ScenarioFile,
    typed: &Typed,
    reach: (Option<Reach>, Option<Time>),
    at: At<'_>,
    problems: &mut Problems,
) -> Option<Option<Action>> {
    let metrics = file.metrics.as_ref();
    let pods = metrics.into_iter().flat_map(|m| &m.pods).map(|metric| metric.name.as_str());
    let objects = metrics.into_iter().flat_map(|m| &m.object).map(|metric| metric.name.as_str());
    let externals =
        metrics.into_iter().flat_map(|m| &m.external).map(|metric| metric.name.as_str());
    if let Some(part) = &typed.metric_missing {
        let (name, others) = (part.metric.as_str(), objects.chain(externals));
        let hint = "of other metrics, `metricEmpty` takes all series away";
        known_metric(name, pods, others, hint, at.key("metric"), problems);
        let set = reachable(&part.pods, reach, at.key("pods"), problems);
        return Some(set.map(|set| Action::MetricMissing(name.into(), set)));
    }
    let known = pods.chain(objects).chain(externals);
    let resources = metrics.into_iter().flat_map(|m| &m.resource);
    let resources = resources.map(|usage| usage.name.as_str());
    if let Some(name) = &typed.metric_empty {
        let hint = "for cpu and memory use `metricsEmpty: {}`";
        known_metric(name, known, resources, hint, at, problems);
        return Some(Some(Action::MetricEmpty(name.as_str().into())));
    }
    let error = typed.metric_error.as_ref()?;
    let hint = "for cpu and memory use `metricsError`";
    known_metric(&error.metric, known, resources, hint, at.key("metric"), problems);
    let (code, reason, message) = (error.code, error.reason.clone(), error.message.clone());
    let answer = api_error(&ApiError { code, reason, message }, at, problems);
    Some(answer.map(|answer| Action::MetricError(error.metric.as_str().into(), answer)))
}

/// The metric must be one of those that this can happen to; `hint` tells what to do if it is one of
/// the others.
fn known_metric<'f>(
    name: &str,
    known: impl Iterator<Item = &'f str>,
    mut others: impl Iterator<Item = &'f str>,
    hint: &str,
    at: At<'_>,
    problems: &mut Problems,
) {
    let mut known: Vec<&str> = known.collect();
    if known.contains(&name) {
        return;
    }
    known.dedup();
    let what = format!("`metrics` has no such metric `{name}`");
    if others.any(|other| other == name) {
        problems.hint(at, what, hint);
    } else {
        problems.add(at.problem(what, suggest(name, known)));
    }
}

/// Containers and resources of pods.
fn parts_of_pods(
    file: &ScenarioFile,
    typed: &Typed,
    reach: (Option<Reach>, Option<Time>),
    at: At<'_>,
    problems: &mut Problems,
) -> Option<Action> {
    if let Some(part) = &typed.container_metrics_missing {
        known_container(&part.container, &file.workload, at.key("container"), problems);
        let set = reachable(&part.pods, reach, at.key("pods"), problems)?;
        return Some(Action::ContainerMetricsMissing(set, part.container.as_str().into()));
    }
    let part = typed.resource_missing.as_ref()?;
    resource(&part.resource, at.key("resource"), problems);
    let set = reachable(&part.pods, reach, at.key("pods"), problems)?;
    Some(Action::ResourceMissing(set, part.resource.as_str().into()))
}

/// The usual reasons of error answers.
fn usual_reason(code: u16) -> Option<&'static str> {
    Some(match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        409 => "Conflict",
        410 => "Gone",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => return None,
    })
}

fn api_error(typed: &ApiError, at: At<'_>, problems: &mut Problems) -> Option<api::ApiError> {
    if !(400..=599).contains(&typed.code) {
        let what = format!("{} is no status code of an error: expected 400 to 599", typed.code);
        problems.plain(at.key("code"), what);
        return None;
    }
    let usual = usual_reason(typed.code).map(str::to_owned);
    let Some(reason) = typed.reason.clone().or(usual) else {
        let what = format!("missing field `reason`: code {} has no usual one", typed.code);
        problems.plain(at, what);
        return None;
    };
    Some(api::ApiError { code: typed.code, reason, message: typed.message.as_str().into() })
}

/// A merge patch: its shape is checked, and that it leaves the name alone.
fn edit(at: At<'_>, problems: &mut Problems) -> Option<serde_json::Value> {
    let node = at.node()?;
    let patch: Patch = match decode(node, Nulls::Absent) {
        Ok(patch) => patch,
        Err(problem) => {
            problems.add(problem);
            return None;
        }
    };
    if matches!(&node.kind, Kind::Map(entries) if entries.is_empty()) {
        let hint = "for instance {spec: {maxReplicas: 20}}";
        problems.hint(at, "an empty edit", hint);
        return None;
    }
    let before = problems.len();
    if let Some(metadata) = &patch.metadata {
        metadata::of_an_edit(at.key("metadata"), metadata, problems);
    }
    if let Some(spec) = &patch.spec {
        quantities(at.key("spec"), spec, problems);
    }
    if problems.len() > before {
        return None;
    }
    Some(node.to_json())
}

/// Nobody can edit what is not there, or create what is.
fn hpa_is_there(happenings: &[TimelineEvent], timeline: At<'_>, problems: &mut Problems) {
    let mut gone: Vec<&Arc<str>> = Vec::new();
    for happening in happenings {
        let (hpa, wrong) = match &happening.action {
            Action::EditHpa(hpa, _) => (hpa, "there is no HPA to edit at"),
            Action::DeleteHpa(hpa) => (hpa, "there is no HPA to delete at"),
            Action::CreateHpa(hpa) => (hpa, "the HPA is there already at"),
            _ => continue,
        };
        let creates = matches!(happening.action, Action::CreateHpa(_));
        if gone.contains(&hpa) != creates {
            let entries = match timeline.node().map(|node| &node.kind) {
                Some(Kind::List(entries)) => entries.as_slice(),
                _ => &[],
            };
            let at = entries.iter().position(|entry| entry.line == happening.line);
            let at = at.map_or(timeline, |index| timeline.index(index));
            problems.plain(at, format!("{wrong} {}", happening.at));
        }
        match happening.action {
            Action::DeleteHpa(_) => gone.push(hpa),
            Action::CreateHpa(_) => gone.retain(|other| *other != hpa),
            _ => {}
        }
    }
}
