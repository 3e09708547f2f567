//! The containers of a scenario, and notes on parts of VPAs that have no effect.

use super::super::cursor::At;
use super::manifest::Vpa;
use crate::autoscalers::Autoscalers;
use crate::diagnostic::Diagnostic;
use crate::raw::ScenarioFile;
use crate::resolved::{Action, ActionScope, PodSet, ResourceUsage, TimelineEvent};
use crate::vpa::VpaWorkload;
use kube_autoscaler_models::api::CrossVersionObjectReference;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{BUCKETS, Checkpoint, ClusterChange, HistogramCheckpoint};

/// The policy of all containers without their own.
const ALL: &str = "*";

/// The sources of the names of containers.
pub(super) struct Containers<'s> {
    pub file: &'s ScenarioFile,
    pub workload: &'s VpaWorkload,
    pub vpas: &'s [Vpa],
}

impl<'s> Containers<'s> {
    /// The containers that exist at some time: those of pods and checkpoints. A container that no
    /// longer exists can have a recommendation.
    fn existing(&self, checkpoints: &'s [Checkpoint], events: &'s [TimelineEvent]) -> Vec<&'s str> {
        let set = events.iter().filter_map(|event| match &event.change {
            Some(ClusterChange::SetCheckpoint(checkpoint)) => Some(checkpoint),
            _ => None,
        });
        let of_pods = self.workload.containers.iter().map(|container| &*container.name);
        let init = self.file.workload.init_containers.names();
        let of_checkpoints = checkpoints.iter().chain(set).map(|it| &*it.spec.container_name);
        of_pods.chain(init).chain(of_checkpoints).collect()
    }

    /// The names that an expectation can contain: also those of policies, without duplicates.
    pub(super) fn names(
        &self,
        checkpoints: &'s [Checkpoint],
        events: &'s [TimelineEvent],
    ) -> Vec<&'s str> {
        let mut names: Vec<&str> = Vec::new();
        let policies = self.vpas.iter().flat_map(policies).filter(|name| *name != ALL);
        for name in self.existing(checkpoints, events).into_iter().chain(policies) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Notes on policies of containers that do not exist, and on VPAs without pods.
    pub(super) fn notes(
        &self,
        checkpoints: &[Checkpoint],
        events: &[TimelineEvent],
        at: At<'_>,
    ) -> Vec<Diagnostic> {
        let existing = Containers { ..*self }.existing(checkpoints, events);
        let mut notes = Vec::new();
        let Some(first) = self.vpas.first() else { return notes };
        for (index, vpa) in self.vpas.iter().enumerate() {
            let at = match at.key("vpa").node() {
                Some(_) => at.key("vpa"),
                None => at.key("vpas").index(index),
            };
            if !has_same_target(vpa, first) {
                let CrossVersionObjectReference { kind, name, .. } = &vpa.object.spec.target_ref;
                let what = format!(
                    "the target of VPA {}, {kind} {name}, has no pods in this scenario: only the \
                     target of the first VPA has pods",
                    vpa.name()
                );
                notes.push(at.note(what));
                continue;
            }
            // Manifests without the target do not contain the names of its containers.
            if self.file.workload.containers.is_empty() {
                continue;
            }
            for (index, name) in policies(vpa).enumerate() {
                if name == ALL || existing.contains(&name) {
                    continue;
                }
                let path = format!("spec.resourcePolicy.containerPolicies[{index}]");
                let what = format!(
                    "the policy of VPA {} for container {name} has no effect: the pods have no \
                     container with this name",
                    vpa.name()
                );
                notes.push(at.follow(&path).note(what));
            }
        }
        notes
    }
}

/// The note on a restart that reads a history.
pub(super) fn on_restarts(file: &ScenarioFile, at: At<'_>) -> Vec<Diagnostic> {
    let is_restart = |event: &TimelineEvent| matches!(event.action, Action::RestartRecommender(_));
    let index = file.timeline.iter().position(is_restart).filter(|_| file.history.is_some());
    let note = |index| {
        at.key("timeline").index(index).note(
            "after a restart, the recommender reads only `history`; a Prometheus server would \
             also return the usage since the start of the scenario",
        )
    };
    index.map(note).into_iter().collect()
}

/// Notes on actions that had another meaning without an HPA in older versions. `kind` is the kind
/// of the workload.
pub(super) fn on_changes(
    file: &ScenarioFile,
    autoscalers: Autoscalers,
    kind: &str,
    at: At<'_>,
) -> Vec<Diagnostic> {
    if autoscalers != Autoscalers::Vpas {
        return Vec::new();
    }
    let notes = on_ended_pods(file, at).into_iter().chain(on_deleted_target(file, at));
    let notes = notes.chain(on_exceptions(file, at));
    notes.chain(on_new_pods(file, kind, at)).collect()
}

/// The note on pods that end and are replaced. Without an HPA, they used not to be replaced.
fn on_ended_pods(file: &ScenarioFile, at: At<'_>) -> Option<Diagnostic> {
    let index = file.timeline.iter().position(|event| ends_pods(&event.action))?;
    let is_open = file.workload.replaces_ended_pods.is_none();
    let name = file.timeline[index].action.name();
    is_open.then(|| {
        at.key("timeline").index(index).note(format!(
            "pods that `{name}` ends are replaced: to keep them, set `replacesEndedPods: false` in \
             `workload`"
        ))
    })
}

/// The note on pods that are deleted with the workload. Without an HPA, they used to stay.
fn on_deleted_target(file: &ScenarioFile, at: At<'_>) -> Option<Diagnostic> {
    let is_open = |event: &TimelineEvent| match event.action {
        Action::TargetDeleted(deletion) => deletion.orphan.is_none(),
        _ => false,
    };
    let index = file.timeline.iter().position(is_open)?;
    Some(at.key("timeline").index(index).note(
        "`targetDeleted` also deletes the pods: to keep them, use `targetDeleted: {orphan: true}`. \
         In both cases, `scale` has no effect until the workload is created again, with its \
         initial replicas",
    ))
}

/// The note on exceptions to the usage of pods with several containers. Without an HPA, only the
/// first container used to be an exception.
fn on_exceptions(file: &ScenarioFile, at: At<'_>) -> Option<Diagnostic> {
    let has_several = file.workload.containers.len() > 1;
    let is_exception = |usage: &ResourceUsage| has_several && !usage.exceptions.is_empty();
    let index = file.metrics.resources.iter().position(is_exception)?;
    let at = at.key("metrics").key("resource").index(index).key("pods");
    Some(at.note(
        "in the pods of an exception, the first container uses the value, and the other \
         containers use nothing",
    ))
}

fn ends_pods(action: &Action) -> bool {
    matches!(action, Action::PodsFailed(_) | Action::PodsSucceeded(_))
}

/// Notes on problems with metrics during which pods are created. Without an HPA, they used to apply
/// to these pods as well.
fn on_new_pods(file: &ScenarioFile, kind: &str, at: At<'_>) -> Vec<Diagnostic> {
    let replicas_before = |at: Time| {
        let scaled = file.timeline.iter().filter_map(|event| match event.action {
            Action::Scale(replicas) if event.at < at => Some((event.at, replicas)),
            _ => None,
        });
        scaled.max_by_key(|(at, _)| *at).map_or(file.workload.replicas(), |(_, replicas)| replicas)
    };
    let replaces_ended = file.workload.replaces_ended_pods != Some(false);
    let ends = |event: &TimelineEvent| ends_pods(&event.action);
    // Scaling replaces ended pods that were not replaced.
    let can_replace = !replaces_ended && file.timeline.iter().any(ends);
    let creates = |event: &TimelineEvent| match event.action {
        Action::PodsDeleted(_) => true,
        Action::Scale(replicas) => can_replace || replicas > replicas_before(event.at),
        _ => replaces_ended && ends(event),
    };
    // Only a StatefulSet uses the ordinals of deleted pods again.
    let initial = u32::try_from(file.workload.replicas()).unwrap_or(0);
    let first_new = if kind == "StatefulSet" { 0 } else { initial };
    let can_name_new_pods = |pods: &PodSet| match pods {
        PodSet::All => true,
        PodSet::Ordinals(ranges) => ranges.iter().any(|(_, last)| *last >= first_new),
    };
    let leaves_out_pods = |event: &TimelineEvent| {
        let is_problem = event.action.scope() == ActionScope::Samples && !event.new_pods;
        is_problem
            && event.action.pods().is_some_and(can_name_new_pods)
            && file.timeline.iter().any(|it| creates(it) && event.is_active(it.at))
    };
    let events = file.timeline.iter().enumerate();
    let note = |index: usize, event: &TimelineEvent| {
        let advice = match event.action {
            Action::MetricsStale(_) => "for these pods, use `metricsMissing` with `newPods: true`",
            _ => "add `newPods: true` to include these pods",
        };
        let name = event.action.name();
        let what =
            format!("`{name}` does not apply to pods that are created while it lasts: {advice}");
        at.key("timeline").index(index).note(what)
    };
    events.filter(|(_, it)| leaves_out_pods(it)).map(|(index, it)| note(index, it)).collect()
}

/// Notes on checkpoints with buckets that the recommender does not have.
pub(super) fn on_buckets(checkpoints: &[Checkpoint], at: At<'_>) -> Vec<Diagnostic> {
    let places = checkpoints.iter().enumerate().map(|(index, it)| (&it.status, at.index(index)));
    let histograms =
        places.flat_map(|(status, at)| [(&status.cpu, at), (&*status.memory, at)].into_iter());
    let note = |(histogram, at): (&HistogramCheckpoint, At<'_>)| {
        let buckets = 0..BUCKETS as i64;
        let mut weights = histogram.weights.iter();
        let wrong = weights.find(|it| !buckets.contains(&it.bucket))?.bucket;
        let last = BUCKETS - 1;
        let what = format!(
            "the recommender does not read this checkpoint: its buckets are 0 to {last}, and the \
             checkpoint has bucket {wrong}"
        );
        Some(at.note(what))
    };
    histograms.filter_map(note).collect()
}

/// The names of the containers in the policies of a VPA.
fn policies(vpa: &Vpa) -> impl Iterator<Item = &str> {
    let policies = vpa.object.spec.resource_policy.iter().flat_map(|it| &it.container_policies);
    policies.map(|policy| &*policy.container_name)
}

/// Returns true if two VPAs have the same target.
fn has_same_target(vpa: &Vpa, other: &Vpa) -> bool {
    let key = |vpa: &Vpa| {
        let target = &vpa.object.spec.target_ref;
        let namespace = vpa.object.metadata.name.namespace.clone();
        (namespace, target.group().to_owned(), target.kind.clone(), target.name.clone())
    };
    key(vpa) == key(other)
}
