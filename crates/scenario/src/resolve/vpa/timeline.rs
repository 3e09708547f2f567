//! Checks the events of the timeline, applies edits to manifests, and sorts the events by time.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::Reader;
use super::super::cursor::{At, Problems};
use super::super::timeline::{check_fields, check_new_pods};
use super::super::values::{check_replicas, resource};
use super::manifest::{Gates, Vpa, checkpoint, edited};
use crate::autoscalers::Autoscalers;
use crate::error::suggest;
use crate::raw::ScenarioFile;
use crate::resolved::{Action, ActionScope, OomKillOfPods, PodEviction, TimelineEvent};
use crate::vpa::VpaWorkload;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{ClusterChange, ObjectName};

/// The parts of the scenario to which an event may refer.
pub(super) struct Context<'s> {
    pub vpas: &'s [Vpa],
    pub workload: &'s VpaWorkload,
    pub until: Time,
    pub autoscalers: Autoscalers,
}

/// Resolves the events that concern the VPA or its recommender. `gates`: those that are on.
pub(super) fn resolve(
    context: &Context<'_>,
    file: &ScenarioFile,
    at: At<'_>,
    read: Reader<'_>,
    gates: Gates,
    problems: &mut Problems,
) -> Vec<TimelineEvent> {
    let mut events: Vec<(At<'_>, TimelineEvent)> = file
        .timeline
        .iter()
        .enumerate()
        .filter(|(_, event)| context.autoscalers.recommender_sees(&event.action))
        .map(|(index, event)| (at.index(index), event.clone()))
        .collect();
    events.sort_by_key(|(_, event)| event.at);
    let existing = context.vpas.iter().map(|vpa| (vpa.name().clone(), Some(vpa.clone())));
    let mut resolver = Events { context, read, gates, existing: existing.collect() };
    for (at, event) in &mut events {
        check_fields(event, context.until, *at, problems);
        if event.new_pods {
            check_new_pods(event, context.autoscalers, *at, problems);
        }
        let name = event.action.name();
        resolver.check(&mut event.action, at.key(&name), problems);
        event.change = resolver.change(event, *at, problems);
    }
    events.into_iter().map(|(_, event)| event).collect()
}

struct Events<'s> {
    context: &'s Context<'s>,
    read: Reader<'s>,
    gates: Gates,
    /// The VPAs by name, as edited so far; `None` if deleted.
    existing: BTreeMap<Arc<str>, Option<Vpa>>,
}

impl Events<'_> {
    /// Checks the parameters of an action, and sets the default container.
    fn check(&self, action: &mut Action, at: At<'_>, problems: &mut Problems) {
        let workload = self.context.workload;
        match action {
            Action::OomKill(OomKillOfPods { container: name, .. })
            | Action::Evict(PodEviction { container: name, .. }) => {
                *name = container(name.take(), workload, at, problems);
            }
            Action::EditPods(edit) => {
                if edit.init_containers.is_none() && edit.memory_in_status.is_empty() {
                    problems.plain(at, "expected `initContainers`, `memoryInStatus` or both");
                }
                for name in edit.memory_in_status.keys() {
                    container(Some(name.clone()), workload, at.key("memoryInStatus"), problems);
                }
            }
            Action::ContainerMetricsMissing(of) => {
                container(Some(of.container.clone()), workload, at, problems);
            }
            Action::ResourceMissing(of) => {
                resource(&of.resource, at.key("resource"), problems);
            }
            Action::Scale(replicas) => check_replicas(*replicas, at, problems),
            _ => {}
        }
    }

    /// The change of a VPA or a checkpoint.
    fn change(
        &mut self,
        event: &TimelineEvent,
        at: At<'_>,
        problems: &mut Problems,
    ) -> Option<ClusterChange> {
        match &event.action {
            Action::SetCheckpoint(_) => {
                let checkpoint = checkpoint(at.key(&event.action.name()), self.read, problems)?;
                Some(ClusterChange::SetCheckpoint(checkpoint))
            }
            Action::DeleteCheckpoint(name) => {
                let namespace = self.context.vpas.first()?.object.metadata.name.namespace.clone();
                let name = name.clone();
                Some(ClusterChange::DeleteCheckpoint(ObjectName { namespace, name }))
            }
            action if action.scope() == ActionScope::Vpa => self.change_of_vpa(event, at, problems),
            _ => None,
        }
    }

    fn change_of_vpa(
        &mut self,
        event: &TimelineEvent,
        at: At<'_>,
        problems: &mut Problems,
    ) -> Option<ClusterChange> {
        let original = named(event.vpa.as_ref(), self.context.vpas, at, problems)?;
        let name = original.name();
        let state = self.existing.get_mut(name)?;
        let field = event.action.name();
        let new = match (&event.action, state.as_ref()) {
            (Action::CreateVpa(_), Some(_)) => {
                let what = format!("the VPA `{name}` already exists at {}", event.at);
                problems.hint(at.key_position(&field), what, "delete it first, with `deleteVpa`");
                return None;
            }
            (Action::CreateVpa(_), None) => Some(original.clone()),
            (_, None) => {
                let what = format!("the VPA `{name}` does not exist at {}", event.at);
                let hint = "create it first, with `createVpa`, or remove the event";
                problems.hint(at.key_position(&field), what, hint);
                return None;
            }
            (Action::EditVpa(patch), Some(vpa)) => {
                Some(edited(vpa, patch, at.key(&field), self.gates, problems)?)
            }
            (_, Some(_)) => None,
        };
        let change = match &new {
            Some(vpa) => ClusterChange::SetVpa(vpa.object.clone()),
            None => ClusterChange::DeleteVpa(original.object.metadata.name.clone()),
        };
        *state = new;
        Some(change)
    }
}

/// The named container of the workload, or the only one.
pub(super) fn container(
    name: Option<Arc<str>>,
    workload: &VpaWorkload,
    at: At<'_>,
    problems: &mut Problems,
) -> Option<Arc<str>> {
    let known = workload.containers.iter().map(|container| &*container.name);
    match name {
        Some(name) => {
            if !known.clone().any(|known| *known == *name) {
                let what = format!("the workload has no container `{name}`");
                problems.add(at.key("container").problem(what, suggest(&name, known)));
                return None;
            }
            Some(name)
        }
        None => match workload.containers.as_slice() {
            [only] => Some(only.name.clone()),
            _ => {
                let names = known.collect::<Vec<_>>().join(", ");
                let hint = format!("add `container: NAME`, one of {names}");
                let what = "the container is ambiguous: the workload has several";
                problems.hint(at, what, hint);
                None
            }
        },
    }
}

/// The named VPA, or the only one.
pub(super) fn named<'s>(
    name: Option<&Arc<str>>,
    vpas: &'s [Vpa],
    at: At<'_>,
    problems: &mut Problems,
) -> Option<&'s Vpa> {
    let names = || vpas.iter().map(|vpa| &**vpa.name());
    match (name, vpas) {
        (_, []) => None,
        (None, [only]) => Some(only),
        (None, _) => {
            let names = names().collect::<Vec<_>>().join(", ");
            let hint = format!("add `vpa: NAME`, one of {names}");
            problems.hint(at, "the VPA is ambiguous: the scenario has several", hint);
            None
        }
        (Some(name), _) => {
            let found = vpas.iter().find(|vpa| vpa.name() == name);
            if found.is_none() {
                let what = format!("the scenario has no VPA `{name}`");
                problems.add(at.key("vpa").problem(what, suggest(name, names())));
            }
            found
        }
    }
}
