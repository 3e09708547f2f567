//! The events of a scenario of the recommender on the axis of time: OOM kills, restarts, edits,
//! problems with metrics.

use std::sync::Arc;

use super::series::Amounts;
use super::{Timeline, container_of};
use crate::counted;
use crate::presentation::{EventMark, Lasts, plain};
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{ClusterChange, ObjectName, Resource};
use kube_lockstep_scenario::resolved::{Action, ActionScope, TimelineEvent};
use kube_lockstep_scenario::vpa::VpaScenario;
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
    let kills = timeline.run.events().filter_map(|event| kill(event, scenario)).collect();
    Marks { changes, kills }
}

fn kill(event: &TimelineEvent, scenario: &VpaScenario) -> Option<Kill> {
    let container = match &event.action {
        Action::OomKill(kill) => kill.container.as_ref(),
        Action::Evict(eviction) => eviction.container.as_ref(),
        _ => return None,
    };
    Some(Kill { at: event.at, container: container_of(scenario, container) })
}

const PODS: &str = "pods";
const FAULT: &str = "fault";
const EDIT: &str = "edit";

/// The events that concern a VPA.
pub(super) fn events(timeline: &Timeline<'_>) -> Vec<EventMark> {
    let entries = timeline.run.events().filter_map(|event| {
        let text = text(event, timeline.vpa)?;
        let lasts = Lasts::from(event.at, event.action.can_end(), event.lasts);
        Some(EventMark { at: event.at, lasts, text, class: class(&event.action) })
    });
    let changes = timeline.run.pod_changes.as_deref().unwrap_or_default();
    let mut entries: Vec<EventMark> = entries.chain(pod_changes(changes)).collect();
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

fn class(action: &Action) -> &'static str {
    match action.scope() {
        ActionScope::Pods if !matches!(action, Action::OomKill(_) | Action::Evict(_)) => PODS,
        ActionScope::Target if action.sets_replicas() => PODS,
        ActionScope::Vpa | ActionScope::Recommender => EDIT,
        _ => FAULT,
    }
}

/// The action in plain words, in one line; `None` if it concerns another VPA.
fn text(event: &TimelineEvent, vpa: &ObjectName) -> Option<String> {
    let is_own = match &event.change {
        Some(ClusterChange::SetVpa(set)) => set.metadata.name == *vpa,
        Some(ClusterChange::DeleteVpa(name)) => name == vpa,
        Some(ClusterChange::SetCheckpoint(it)) => it.spec.vpa_object_name == vpa.name,
        _ => true,
    };
    if !is_own {
        return None;
    }
    Some(match &event.change {
        Some(ClusterChange::SetCheckpoint(it)) => {
            format!("checkpoint {} is written", it.metadata.name)
        }
        _ => plain::action(&event.action),
    })
}
