//! The events of a scenario of the recommender on the axis of time: OOM kills, restarts, edits,
//! problems with metrics.

use std::sync::Arc;

use super::series::Amounts;
use super::{Timeline, container_of};
use crate::counted;
use crate::presentation::{EventMark, Lasts, plain};
use kube_autoscaler_models::rules::VpaRules;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{ClusterChange, ObjectName, Objects, Resource, Script};
use kube_lockstep_scenario::resolved::PodSet;
use kube_lockstep_scenario::vpa::{VpaAction, VpaScenario, VpaTimelineEvent};
use kube_lockstep_sim::run::PodChange;

/// The times to mark in each chart.
pub(super) struct Marks {
    /// Restarts and edits.
    pub changes: Vec<Time>,
    kills: Vec<Kill>,
}

/// An OOM kill or an eviction.
struct Kill {
    at: Time,
    container: Option<Arc<str>>,
}

impl Marks {
    /// The times of the OOM kills of a container, for the chart of its memory.
    pub(super) fn kills_of(&self, amounts: &Amounts) -> Vec<Time> {
        let container = Some(&amounts.container).filter(|_| amounts.resource == Resource::Memory);
        let is_own = |kill: &&Kill| container.is_some() && kill.container.as_ref() == container;
        self.kills.iter().filter(is_own).map(|kill| kill.at).collect()
    }
}

/// The marks of a timeline.
pub(super) fn marks(timeline: &Timeline<'_>) -> Marks {
    const MOST: usize = 40;
    let scenario = timeline.run.scenario;
    let mut changes: Vec<Time> = events(timeline)
        .into_iter()
        .filter(|entry| entry.class == EDIT && entry.lasts == Lasts::Instant)
        .map(|entry| entry.at)
        .collect();
    changes.dedup();
    changes.truncate(MOST);
    let kills = match &scenario.script {
        Some(script) => script_kills(script, &timeline.run.rules),
        None => timeline.run.events().filter_map(|event| kill(event, scenario)).collect(),
    };
    Marks { changes, kills }
}

fn kill(event: &VpaTimelineEvent, scenario: &VpaScenario) -> Option<Kill> {
    let container = match &event.action {
        VpaAction::OomKill(kill) => kill.container.as_ref(),
        VpaAction::Evict(eviction) => eviction.container.as_ref(),
        _ => return None,
    };
    Some(Kill { at: event.at, container: container_of(scenario, container) })
}

/// The changes of a script, with their times.
fn script_changes(script: &Script) -> impl Iterator<Item = (Time, &ClusterChange)> {
    let starts = [Time::ZERO].into_iter().chain(script.steps.iter().map(|step| step.until));
    let steps = script.steps.iter().zip(starts);
    steps.flat_map(|(step, at)| step.changes.iter().map(move |change| (at, change)))
}

/// The OOM kills that a script shows.
fn script_kills(script: &Script, rules: &VpaRules) -> Vec<Kill> {
    let mut objects = Objects::default();
    for change in &script.start.objects {
        if let ClusterChange::SetPod(pod) = change {
            objects.set_pod(pod.clone(), rules);
        }
    }
    let mut kills = Vec::new();
    for (at, change) in script_changes(script) {
        let seen = match change {
            ClusterChange::SetPod(pod) => objects.set_pod(pod.clone(), rules),
            ClusterChange::Evict(oom) => vec![oom.clone()],
            _ => Vec::new(),
        };
        kills.extend(seen.into_iter().map(|oom| Kill { at, container: Some(oom.container) }));
    }
    kills
}

const PODS: &str = "pods";
const FAULT: &str = "fault";
const EDIT: &str = "edit";

/// The events that concern a VPA.
pub(super) fn events(timeline: &Timeline<'_>) -> Vec<EventMark> {
    let scenario = timeline.run.scenario;
    let Some(script) = &scenario.script else {
        let entries = timeline.run.events().filter_map(|event| {
            let text = text(event, timeline.vpa)?;
            let lasts = Lasts::from(event.at, event.action.can_end(), event.lasts);
            Some(EventMark { at: event.at, lasts, text, class: class(&event.action) })
        });
        let changes = timeline.run.pod_changes.as_deref().unwrap_or_default();
        let mut entries: Vec<EventMark> = entries.chain(pod_changes(changes)).collect();
        entries.sort_by_key(|entry| entry.at);
        return entries;
    };
    let entries = script_changes(script).filter_map(|(at, change)| {
        let (text, class) = change_text(change, timeline.vpa)?;
        Some(EventMark { at, lasts: Lasts::Instant, text, class })
    });
    let kills = script_kills(script, &timeline.run.rules).into_iter().map(|kill| {
        let container = kill.container.unwrap_or_default();
        let text = format!("OOM kill of {container}");
        EventMark { at: kill.at, lasts: Lasts::Instant, text, class: FAULT }
    });
    let mut entries: Vec<EventMark> = entries.chain(kills).collect();
    entries.sort_by_key(|entry| entry.at);
    entries
}

/// The changes of pods by the VPA: one event for each time.
fn pod_changes(changes: &[PodChange]) -> impl Iterator<Item = EventMark> {
    changes.chunk_by(|a, b| a.at == b.at).filter_map(|at_once| {
        let texts = at_once.chunk_by(|a, b| a.kind == b.kind).filter_map(|same| {
            let pods = match same {
                [one] => one.pod.to_string(),
                [one, other] => format!("{}, {}", one.pod, other.pod),
                more => counted(more.len(), "pod"),
            };
            Some(format!("{} {pods}", same.first()?.kind.name()))
        });
        let text = texts.collect::<Vec<_>>().join("; ");
        Some(EventMark { at: at_once.first()?.at, lasts: Lasts::Instant, text, class: PODS })
    })
}

fn class(action: &VpaAction) -> &'static str {
    match action {
        VpaAction::Scale(_)
        | VpaAction::PodsDeleted(_)
        | VpaAction::PodsSucceeded(_)
        | VpaAction::PodsFailed(_)
        | VpaAction::Relabel(_) => PODS,
        VpaAction::EditVpa(_)
        | VpaAction::DeleteVpa(_)
        | VpaAction::CreateVpa(_)
        | VpaAction::SetCheckpoint(_)
        | VpaAction::DeleteCheckpoint(_)
        | VpaAction::RestartRecommender(_) => EDIT,
        _ => FAULT,
    }
}

/// The action in plain words, in one line; `None` if it concerns another VPA.
fn text(event: &VpaTimelineEvent, vpa: &ObjectName) -> Option<String> {
    let is_own = match &event.change {
        Some(ClusterChange::SetVpa(set)) => set.metadata.name == *vpa,
        Some(ClusterChange::SetCheckpoint(it)) => it.spec.vpa_object_name == vpa.name,
        _ => true,
    };
    if !is_own {
        return None;
    }
    let of = |set: &PodSet, one: &str, several: &str| {
        format!("{} {}", plain::pods(set), plain::verb(set, one, several))
    };
    Some(match &event.action {
        VpaAction::OomKill(it) => {
            let what = container_in(it.container.as_ref());
            format!("OOM kill of {what}{}", plain::pods(&it.pods))
        }
        VpaAction::Evict(it) => {
            let what = container_in(it.container.as_ref());
            format!("eviction of {what}{}", plain::pods(&it.pods))
        }
        VpaAction::Scale(replicas) => {
            format!("the target is scaled to {}", counted(*replicas as usize, "replica"))
        }
        VpaAction::PodsDeleted(pods) => of(pods, "is deleted", "are deleted"),
        VpaAction::PodsSucceeded(pods) => of(pods, "completes", "complete"),
        VpaAction::PodsFailed(pods) => of(pods, "fails", "fail"),
        VpaAction::Relabel(it) => of(&it.pods, "gets other labels", "get other labels"),
        VpaAction::MetricsMissing(pods) => of(pods, "has no metrics", "have no metrics"),
        VpaAction::MetricsStale(pods) => of(pods, "has stale metrics", "have stale metrics"),
        VpaAction::MetricsLate(it) => {
            format!("metrics of {} are late by {}", plain::pods(&it.pods), it.by)
        }
        VpaAction::MetricsError(error) => format!("the metrics API fails: {error}"),
        VpaAction::ContainerMetricsMissing(it) => {
            let has = of(&it.pods, "has", "have");
            format!("{has} no metrics of container {}", it.container)
        }
        VpaAction::ResourceMissing(it) => {
            format!("{} no {} usage", of(&it.pods, "has", "have"), it.resource)
        }
        VpaAction::TargetDeleted(_) => "the target is deleted".to_owned(),
        VpaAction::EditVpa(_) => "the VPA is edited".to_owned(),
        VpaAction::CreateVpa(_) => "the VPA is created".to_owned(),
        VpaAction::DeleteVpa(_) | VpaAction::SetCheckpoint(_) | VpaAction::DeleteCheckpoint(_) => {
            let (text, _) = change_text(event.change.as_ref()?, vpa)?;
            text
        }
        VpaAction::RestartRecommender(_) => "the recommender restarts".to_owned(),
    })
}

/// `app in `; empty without a container.
fn container_in(container: Option<&Arc<str>>) -> String {
    container.map(|container| format!("{container} in ")).unwrap_or_default()
}

/// A change of the cluster in one line, and its class. `None` for pods and samples, and for
/// another VPA.
fn change_text(change: &ClusterChange, vpa: &ObjectName) -> Option<(String, &'static str)> {
    let is_own = |name: &ObjectName| name == vpa;
    let edit = |text: String| Some((text, EDIT));
    match change {
        ClusterChange::SetVpa(set) if is_own(&set.metadata.name) => {
            edit("the VPA is set".to_owned())
        }
        ClusterChange::DeleteVpa(name) if is_own(name) => edit("the VPA is deleted".to_owned()),
        ClusterChange::SetCheckpoint(it) => {
            edit(format!("checkpoint {} is written", it.metadata.name))
        }
        ClusterChange::DeleteCheckpoint(name) => {
            edit(format!("checkpoint {} is deleted", name.name))
        }
        ClusterChange::Restart => edit("the recommender restarts".to_owned()),
        ClusterChange::SetTarget(it) => {
            Some((format!("target {} is set", it.reference.name), FAULT))
        }
        ClusterChange::DeleteTarget(it) => {
            Some((format!("target {} is deleted", it.reference.name), FAULT))
        }
        _ => None,
    }
}
