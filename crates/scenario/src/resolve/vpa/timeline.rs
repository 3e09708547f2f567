//! Checks the events of the timeline, applies edits to manifests, and sorts the events by time.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::Reader;
use super::super::cursor::{At, Problems};
use super::super::values::{not_after_end, resource};
use super::manifest::{Gates, Vpa, checkpoint, edited};
use crate::error::suggest;
use crate::vpa::raw::VpaScenarioFile;
use crate::vpa::{OomKillOfPods, PodEviction, VpaAction, VpaTimelineEvent, VpaWorkload};
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{ClusterChange, ObjectName};

/// The parts of the scenario to which an event may refer.
pub(super) struct Context<'s> {
    pub vpas: &'s [Vpa],
    pub workload: &'s VpaWorkload,
    pub until: Time,
}

/// Resolves the timeline. `gates`: those that are on.
pub(super) fn resolve(
    context: &Context<'_>,
    file: &VpaScenarioFile,
    at: At<'_>,
    read: Reader<'_>,
    gates: Gates,
    problems: &mut Problems,
) -> Vec<VpaTimelineEvent> {
    let mut events: Vec<VpaTimelineEvent> = file.timeline.clone();
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.sort_by_key(|index| events[*index].at);
    let existing = context.vpas.iter().map(|vpa| (vpa.name().clone(), Some(vpa.clone())));
    let mut resolver = Events { context, read, gates, existing: existing.collect() };
    for index in order {
        let (event, at) = (&mut events[index], at.index(index));
        event.line = at.line;
        not_after_end(event.at, context.until, at.key("at"), problems);
        let name = event.action.name();
        if event.vpa.is_some() && !event.action.is_of_vpa() {
            let what = format!("`vpa` does not apply to `{name}`");
            problems.hint(at.key_position("vpa"), what, "remove `vpa`");
        }
        if event.lasts.is_some() && !event.action.can_end() {
            let what = format!("`for` does not apply to `{name}`");
            problems.hint(at.key_position("for"), what, "remove `for`: the action happens once");
        }
        resolver.check(&mut event.action, at.key(&name), problems);
        event.change = resolver.change(event, at, problems);
    }
    events.sort_by_key(|event| event.at);
    events
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
    fn check(&self, action: &mut VpaAction, at: At<'_>, problems: &mut Problems) {
        let workload = self.context.workload;
        match action {
            VpaAction::OomKill(OomKillOfPods { container: name, .. })
            | VpaAction::Evict(PodEviction { container: name, .. }) => {
                *name = container(name.take(), workload, at, problems);
            }
            VpaAction::EditPods(edit) => {
                if edit.init_containers.is_none() && edit.memory_in_status.is_empty() {
                    problems.plain(at, "expected initContainers, memoryInStatus or both");
                }
                for name in edit.memory_in_status.keys() {
                    container(Some(name.clone()), workload, at.key("memoryInStatus"), problems);
                }
            }
            VpaAction::ContainerMetricsMissing(of) => {
                container(Some(of.container.clone()), workload, at, problems);
            }
            VpaAction::ResourceMissing(of) => {
                resource(&of.resource, at.key("resource"), problems);
            }
            _ => {}
        }
    }

    /// The change of a VPA or a checkpoint.
    fn change(
        &mut self,
        event: &VpaTimelineEvent,
        at: At<'_>,
        problems: &mut Problems,
    ) -> Option<ClusterChange> {
        match &event.action {
            VpaAction::SetCheckpoint(_) => {
                let checkpoint = checkpoint(at.key(&event.action.name()), self.read, problems)?;
                Some(ClusterChange::SetCheckpoint(checkpoint))
            }
            VpaAction::DeleteCheckpoint(name) => {
                let namespace = self.context.vpas.first()?.object.metadata.name.namespace.clone();
                let name = name.clone();
                Some(ClusterChange::DeleteCheckpoint(ObjectName { namespace, name }))
            }
            action if action.is_of_vpa() => self.change_of_vpa(event, at, problems),
            _ => None,
        }
    }

    fn change_of_vpa(
        &mut self,
        event: &VpaTimelineEvent,
        at: At<'_>,
        problems: &mut Problems,
    ) -> Option<ClusterChange> {
        let original = named(event.vpa.as_ref(), self.context.vpas, at, problems)?;
        let name = original.name();
        let state = self.existing.get_mut(name)?;
        let field = event.action.name();
        let new = match (&event.action, state.as_ref()) {
            (VpaAction::CreateVpa(_), Some(_)) => {
                let what = format!("the VPA `{name}` already exists at {}", event.at);
                problems.hint(at.key_position(&field), what, "delete it first, with `deleteVpa`");
                return None;
            }
            (VpaAction::CreateVpa(_), None) => Some(original.clone()),
            (_, None) => {
                let what = format!("the VPA `{name}` does not exist at {}", event.at);
                let hint = "create it first, with `createVpa`, or remove the event";
                problems.hint(at.key_position(&field), what, hint);
                return None;
            }
            (VpaAction::EditVpa(patch), Some(vpa)) => {
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
