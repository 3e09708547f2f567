//! One simulated pod: the actions on it, and the resulting status.
//!
//! - A Pending pod has neither `status.startTime` nor a condition Ready. Both appear when the pod
//!   starts; the condition is False unless the pod becomes ready at the same time.
//! - A deleted pod stays ready while its containers run, unless `termination` makes it unready
//!   earlier. Its `deletionTimestamp` is the end of its grace period, as the API server sets it.
//! - A deleted pod that has not started or has ended has no grace period; it is removed
//!   immediately.
//! - The stale sample of a removed pod remains until the action that made it stale ends, since the
//!   metrics API has not observed the removal.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::change::PodState;
use super::usage::{ClassKey, Hidden, Source};
use kube_autoscaler_models::api::{ConditionStatus, ContainerMetrics, PodPhase, PodReady};
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::{Labels, Terminated};
use kube_lockstep_scenario::resolved::{Action, Scenario, Termination, TimelineEvent, UsageSource};

/// A pod. Times are exact here; they are rounded down when they are published.
#[derive(Clone, Debug)]
pub(super) struct SimPod {
    pub name: Arc<str>,
    /// The pod template that the pod was created from, counted from 0.
    pub revision: u32,
    /// The template with recommended requests, by its index, if the pod has them.
    pub admitted: Option<usize>,
    /// The start time; None: Pending.
    pub started: Option<Time>,
    /// True if the startup is over.
    pub warm: bool,
    /// True if the pod has run for long enough to report metrics.
    pub reports: bool,
    /// The final phase: Failed or Succeeded.
    pub ended: Option<PodPhase>,
    pub deletion: Option<Deletion>,
    /// True if the pod was Terminating when its workload was created again. It is not counted.
    pub(super) orphan: bool,
    /// True if the object no longer exists; only its stale sample remains.
    pub deleted: bool,
    /// The condition Ready and its last transition time.
    pub ready: Option<(bool, Time)>,
    /// True if the pod receives a share of a load. Services leave out Terminating pods, even if
    /// they are ready. Part of the derived state.
    serves: bool,
    /// The events that hold the pod in a state, by their indices in the timeline.
    pub holds: Vec<usize>,
    /// The exceptions to the common source of each resource, if any.
    pub exceptions: Option<Box<[Box<[usize]>]>>,
    /// The time before which the pod has no samples.
    pub(super) sampled_from: Option<Time>,
    /// True if the pod has ended, and the workload's controller does not replace it.
    pub(super) keeps_place: bool,
    /// The changes that only the recommender sees, if any.
    pub(super) edits: Option<Box<PodEdits>>,
    /// The stale sample, if any.
    pub(super) frozen: Option<Frozen>,
}

/// The parts of a pod that differ from its template, or from those of a new pod.
#[derive(Clone, Debug, Default)]
pub(super) struct PodEdits {
    pub labels: Option<Labels>,
    /// The names of the init containers.
    pub init_containers: Option<Vec<Arc<str>>>,
    /// By name.
    pub containers: BTreeMap<Arc<str>, ContainerEdits>,
}

/// The status of a container, where it differs from that of a container that has always run.
#[derive(Clone, Debug, Default)]
pub(super) struct ContainerEdits {
    pub restarts: i32,
    /// The end of the container, if it has not been restarted.
    pub terminated: Option<Terminated>,
    /// The end of the previous instance.
    pub last: Option<Terminated>,
    pub memory_request: Option<i64>,
}

/// A sample that no longer changes.
#[derive(Clone, Debug)]
pub(super) struct Frozen {
    /// The timestamp, in whole seconds.
    pub timestamp: Time,
    /// None: the pod had no entry when it became stale.
    pub containers: Option<Arc<[ContainerMetrics]>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Deletion {
    /// The time at which the object is removed, unless an action holds it.
    pub due: Time,
    /// The time at which the pod becomes unready, at the latest.
    pub unready: Time,
}

/// The status of a pod in the API.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Status {
    phase: PodPhase,
    start_time: Option<Time>,
    ready: Option<PodReady>,
    deletion_timestamp: Option<Time>,
    /// Changes when a running pod gets other requests.
    admitted: Option<usize>,
}

impl SimPod {
    /// A pod that was just created.
    pub(super) fn new(
        name: Arc<str>,
        revision: u32,
        exceptions: Option<Box<[Box<[usize]>]>>,
    ) -> SimPod {
        SimPod {
            name,
            revision,
            admitted: None,
            started: None,
            warm: false,
            reports: false,
            ended: None,
            deletion: None,
            orphan: false,
            deleted: false,
            ready: None,
            serves: false,
            holds: Vec::new(),
            exceptions,
            sampled_from: None,
            keeps_place: false,
            edits: None,
            frozen: None,
        }
    }

    /// Returns true if the workload's controller counts the pod.
    pub(super) fn active(&self) -> bool {
        self.ended.is_none() && self.deletion.is_none()
    }

    /// The pod has been ready since `at`, before the scenario.
    pub(super) fn set_ready(&mut self, at: Time) {
        (self.ready, self.serves) = (Some((true, at)), true);
    }

    /// Returns true if the pod is ready.
    fn is_ready(&self) -> bool {
        self.ready.is_some_and(|(ready, _)| ready)
    }

    /// Returns true if the pod receives a share of a load.
    pub(super) fn serving(&self) -> bool {
        self.serves
    }

    /// Starts the containers, unless the pod has started, ended or been deleted.
    pub(super) fn start(&mut self, at: Time) -> bool {
        let starts = self.active() && self.started.is_none();
        if starts {
            self.started = Some(at);
        }
        starts
    }

    /// Ends the containers permanently.
    pub(super) fn end(&mut self, phase: PodPhase) {
        self.ended.get_or_insert(phase);
    }

    /// Deletes the pod.
    pub(super) fn delete(&mut self, at: Time, termination: Termination) {
        if self.deletion.is_none() {
            let graceful = self.started.is_some() && self.ended.is_none();
            let Termination { duration, ready } =
                if graceful { termination } else { Termination::default() };
            self.deletion = Some(Deletion { due: at + duration, unready: at + ready });
        }
    }

    /// Updates the derived state. Returns false if neither the pod nor a stale sample remains.
    pub(super) fn update_derived(&mut self, at: Time, timeline: &[TimelineEvent]) -> bool {
        let held = |is_action: fn(&Action) -> bool| {
            self.holds.iter().any(|&i| is_action(&timeline[i].action))
        };
        if !held(|action| matches!(action, Action::MetricsStale(_))) {
            self.frozen = None;
        }
        self.deleted |= self.deletion.is_some_and(|deletion| deletion.due <= at)
            && !held(|action| matches!(action, Action::PodsStuckTerminating(_)));
        if self.deleted {
            self.ready = None;
            self.serves = false;
            return self.frozen.as_ref().is_some_and(|sample| sample.containers.is_some());
        }
        let unready = held(|action| matches!(action, Action::PodsUnready(_)));
        if self.started.is_some() {
            // A Terminating pod does not become ready.
            let stays = |deletion: Deletion| self.is_ready() && at < deletion.unready;
            let may_be = self.ended.is_none() && self.deletion.is_none_or(stays);
            let ready = self.warm && may_be && !unready;
            if self.ready.is_none_or(|(old, _)| old != ready) {
                self.ready = Some((ready, at));
            }
        }
        self.serves = self.is_ready() && self.deletion.is_none();
        true
    }

    /// Returns true if metrics.k8s.io has an entry of the pod; a terminating pod still has one.
    fn has_entry(&self, timeline: &[TimelineEvent]) -> bool {
        let missing = |&i: &usize| matches!(timeline[i].action, Action::MetricsMissing(_));
        let runs = self.started.is_some() && self.ended.is_none();
        runs && self.reports && !self.holds.iter().any(missing)
    }

    /// The parts of the pod that events change.
    pub(super) fn edits(&mut self) -> &mut PodEdits {
        self.edits.get_or_insert_default()
    }

    /// The age of the pod's newest sample, if it is not that of the other pods.
    pub(super) fn sample_lag(&self, ordinal: u32, scenario: &Scenario) -> Option<Span> {
        let own = scenario.workload.sample_lag_of(ordinal);
        let late = self.holds.iter().rev().find_map(|&i| match &scenario.timeline[i].action {
            Action::MetricsLate(late) => Some(late.by),
            _ => None,
        });
        match late {
            Some(late) => Some(Span(own.unwrap_or(scenario.metrics.sampling.lag).0 + late.0)),
            None => own,
        }
    }

    /// Returns true if a sample of this time can exist.
    pub(super) fn is_sampled_at(&self, sampled: Time) -> bool {
        self.sampled_from.is_none_or(|from| from <= sampled)
    }

    /// The init containers of the workload that the pod does not have.
    fn missing_containers<'a>(
        &'a self,
        scenario: &'a Scenario,
    ) -> impl Iterator<Item = &'a Arc<str>> {
        let init = self.edits.as_ref().and_then(|edits| edits.init_containers.as_ref());
        let of_workload = scenario.workload.spec.init_containers.iter().map(|it| &it.name);
        init.into_iter()
            .flat_map(move |init| of_workload.clone().filter(move |name| !init.contains(name)))
    }

    /// The containers and resources without usage, sorted and without duplicates.
    pub(super) fn hidden(&self, scenario: &Scenario) -> Vec<Hidden> {
        let timeline = &scenario.timeline;
        let hidden = |&i: &usize| match &timeline[i].action {
            Action::ContainerMetricsMissing(part) => {
                Some(Hidden::Container(part.container.clone()))
            }
            Action::ResourceMissing(part) => Some(Hidden::Resource(part.resource.clone())),
            _ => None,
        };
        let missing = self.missing_containers(scenario).cloned().map(Hidden::Container);
        let mut hidden: Vec<Hidden> = self.holds.iter().filter_map(hidden).chain(missing).collect();
        hidden.sort_unstable();
        hidden.dedup();
        hidden
    }

    /// The class of the pod's usage; None: the pod has no entry.
    pub(super) fn class(&self, scenario: &Scenario) -> Option<ClassKey> {
        let resources = scenario.metrics.resources.iter().enumerate();
        self.has_entry(&scenario.timeline).then(|| ClassKey {
            sources: resources
                .map(|(index, resource)| {
                    self.source(index, matches!(resource.source, UsageSource::Load { .. }))
                })
                .collect(),
            hidden: self.hidden(scenario),
        })
    }

    /// The source of the pod's values of a resource.
    fn source(&self, resource: usize, shared: bool) -> Source {
        let own = self.exceptions.as_ref().map(|exceptions| &*exceptions[resource]);
        Source::of_pod(own, shared, self.serving())
    }

    /// The phase of the pod in the API.
    pub(super) fn phase(&self) -> PodPhase {
        match (self.ended, self.started) {
            (Some(ended), _) => ended,
            (None, Some(_)) => PodPhase::Running,
            (None, None) => PodPhase::Pending,
        }
    }

    /// The status of the pod in the API.
    pub(super) fn status(&self) -> Status {
        let phase = self.phase();
        let ready = self.ready.map(|(ready, since)| PodReady {
            status: if ready { ConditionStatus::True } else { ConditionStatus::False },
            last_transition_time: since.truncate_to_second(),
        });
        let start_time = self.started.map(Time::truncate_to_second);
        let deletion_timestamp = self.deletion.map(|deletion| deletion.due.truncate_to_second());
        Status { phase, start_time, ready, deletion_timestamp, admitted: self.admitted }
    }

    /// A status of the pod as a change.
    pub(super) fn state(&self, status: Status, template: &Arc<str>) -> PodState {
        PodState {
            name: self.name.clone(),
            template: template.clone(),
            phase: status.phase,
            start_time: status.start_time,
            ready: status.ready,
            deletion_timestamp: status.deletion_timestamp,
        }
    }
}
