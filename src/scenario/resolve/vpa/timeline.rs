//! Checks the events of the timeline, applies edits to manifests, and sorts the events by time.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::Reader;
use super::super::cursor::{At, Problems};
use super::super::values::{not_after_end, resource};
use super::manifest::{Gates, Vpa, checkpoint, edited};
use crate::model::time::Time;
use crate::model::vpa::ObjectName;
use crate::scenario::action::{NO_ACTION, SEVERAL_ACTIONS, several_actions};
use crate::scenario::error::suggest;
use crate::scenario::vpa::raw::VpaScenarioFile;
use crate::scenario::vpa::timeline::ACTIONS;
use crate::scenario::vpa::{VpaAction, VpaEvent, VpaTimelineEvent, VpaWorkload};

/// The parts of the scenario to which an event may refer.
pub(super) struct Context<'s> {
    pub(super) vpas: &'s [Vpa],
    pub(super) workload: &'s VpaWorkload,
    pub(super) until: Time,
}

/// Resolves the timeline. `gates`: those that are on.
pub(super) fn resolve(
    context: &Context<'_>,
    file: &VpaScenarioFile,
    at: At<'_>,
    read: Reader<'_>,
    gates: Gates,
    problems: &mut Problems,
) -> Vec<VpaEvent> {
    let mut order: Vec<usize> = (0..file.timeline.len()).collect();
    order.sort_by_key(|index| file.timeline[*index].at);
    let existing = context.vpas.iter().map(|vpa| (vpa.name().clone(), Some(vpa.clone())));
    let mut events = Events { context, read, gates, existing: existing.collect() };
    let resolved = order.into_iter().filter_map(|index| {
        let (event, at) = (&file.timeline[index], at.index(index));
        not_after_end(event.at, context.until, at.key("at"), problems);
        let &[name] = at.given(&ACTIONS).as_slice() else {
            match at.given(&ACTIONS).as_slice() {
                [] => {
                    let hint = format!("add one of {}", ACTIONS.join(", "));
                    problems.hint(at, NO_ACTION, hint);
                }
                several => {
                    let what = several_actions(several);
                    problems.hint(at, what, SEVERAL_ACTIONS);
                }
            }
            return None;
        };
        let action = events.action(event, name, at, problems)?;
        if event.lasts.is_some() && !action.can_end() {
            let what = format!("`for` does not apply to `{name}`");
            problems.hint(at.key_position("for"), what, "remove `for`: the action happens once");
        }
        Some(VpaEvent { at: event.at, lasts: event.lasts, action, line: at.line })
    });
    resolved.collect()
}

struct Events<'s> {
    context: &'s Context<'s>,
    read: Reader<'s>,
    gates: Gates,
    /// The VPAs by name, as edited so far; `None` if deleted.
    existing: BTreeMap<Arc<str>, Option<Vpa>>,
}

impl Events<'_> {
    fn action(
        &mut self,
        event: &VpaTimelineEvent,
        name: &str,
        at: At<'_>,
        problems: &mut Problems,
    ) -> Option<VpaAction> {
        let of_vpa = matches!(name, "editVpa" | "deleteVpa" | "createVpa");
        if event.vpa.is_some() && !of_vpa {
            let what = format!("`vpa` does not apply to `{name}`");
            problems.hint(at.key_position("vpa"), what, "remove `vpa`");
        }
        if of_vpa {
            return self.of_vpa(event, name, at, problems);
        }
        let here = at.key(name);
        Some(match name {
            "oomKill" => {
                let mut kill = event.oom_kill.clone()?;
                kill.container = Some(self.container(kill.container, here, problems)?);
                VpaAction::OomKill(kill)
            }
            "evict" => {
                let mut eviction = event.evict.clone()?;
                eviction.container = Some(self.container(eviction.container, here, problems)?);
                VpaAction::Evict(eviction)
            }
            "scale" => VpaAction::Scale(event.scale?),
            "podsDeleted" => VpaAction::PodsDeleted(event.pods_deleted.clone()?),
            "podsSucceeded" => VpaAction::PodsSucceeded(event.pods_succeeded.clone()?),
            "podsFailed" => VpaAction::PodsFailed(event.pods_failed.clone()?),
            "relabel" => VpaAction::Relabel(event.relabel.clone()?),
            "metricsMissing" => VpaAction::MetricsMissing(event.metrics_missing.clone()?),
            "metricsStale" => VpaAction::MetricsStale(event.metrics_stale.clone()?),
            "metricsLate" => VpaAction::MetricsLate(event.metrics_late.clone()?),
            "metricsError" => VpaAction::MetricsError(event.metrics_error.clone()?),
            "containerMetricsMissing" => {
                let of = event.container_metrics_missing.clone()?;
                self.container(Some(of.container.clone()), here, problems)?;
                VpaAction::ContainerMetricsMissing(of)
            }
            "resourceMissing" => {
                let of = event.resource_missing.clone()?;
                resource(&of.resource, here.key("resource"), problems);
                VpaAction::ResourceMissing(of)
            }
            "targetDeleted" => VpaAction::TargetDeleted,
            "setCheckpoint" => {
                let checkpoint = checkpoint(here, self.read, problems)?;
                VpaAction::SetCheckpoint(Box::new(checkpoint))
            }
            "deleteCheckpoint" => {
                let namespace = self.context.vpas.first()?.object.metadata.name.namespace.clone();
                let name = event.delete_checkpoint.clone()?;
                VpaAction::DeleteCheckpoint(ObjectName { namespace, name })
            }
            _ => VpaAction::RestartRecommender,
        })
    }

    /// The named container, or the only one of the workload.
    fn container(
        &self,
        name: Option<Arc<str>>,
        at: At<'_>,
        problems: &mut Problems,
    ) -> Option<Arc<str>> {
        container(name, self.context.workload, at, problems)
    }

    fn of_vpa(
        &mut self,
        event: &VpaTimelineEvent,
        action: &str,
        at: At<'_>,
        problems: &mut Problems,
    ) -> Option<VpaAction> {
        let vpa = named(event.vpa.as_ref(), self.context.vpas, at, problems)?;
        let name = vpa.name().clone();
        let object = vpa.object.metadata.name.clone();
        let original = vpa.clone();
        let state = self.existing.get_mut(&name)?;
        match (action, &state) {
            ("createVpa", Some(_)) => {
                let what = format!("the VPA `{name}` already exists at {}", event.at);
                problems.hint(at.key_position(action), what, "delete it first, with `deleteVpa`");
                None
            }
            ("createVpa", None) => {
                *state = Some(original.clone());
                Some(VpaAction::SetVpa(Box::new(original.object)))
            }
            (_, None) => {
                let what = format!("the VPA `{name}` does not exist at {}", event.at);
                let hint = "create it first, with `createVpa`, or remove the event";
                problems.hint(at.key_position(action), what, hint);
                None
            }
            ("deleteVpa", Some(_)) => {
                *state = None;
                Some(VpaAction::DeleteVpa(object))
            }
            (_, Some(vpa)) => {
                let patch = event.edit_vpa.as_ref()?;
                let edited = edited(vpa, patch, at.key(action), self.gates, problems)?;
                let object = edited.object.clone();
                *state = Some(edited);
                Some(VpaAction::SetVpa(Box::new(object)))
            }
        }
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
