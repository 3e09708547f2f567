//! One simulated pod: the actions on it, and the status that they result in.
//!
//! - A Pending pod has neither `status.startTime` nor a condition Ready. When it starts, both
//!   appear, the condition as False unless the pod is ready at that very instant.
//! - A deleted pod loses its readiness at once, as if its containers had got the signal to stop.
//!   Its `deletionTimestamp` is when its grace period ends, as the API server sets it.
//! - A deleted pod that has not started, or that has ended, needs no grace and is gone at once.
//! - Of a pod that goes while its sample is stale, the sample stays until that ends: the metrics
//!   API has not noticed yet.

use std::sync::Arc;

use super::change::PodState;
use super::usage::{ClassKey, Hidden, Source};
use crate::model::api::{ConditionStatus, ContainerMetrics, PodPhase, PodReady};
use crate::model::time::{Span, Time};
use crate::scenario::resolved::{Action, Scenario, TimelineEvent, UsageSource};

/// A pod. Times are exact here; they are rounded down when they are published.
#[derive(Clone, Debug)]
pub(super) struct SimPod {
    pub(super) name: Arc<str>,
    /// The pod template that it was made from, counted from 0.
    pub(super) revision: u32,
    /// When it started; None: Pending.
    pub(super) started: Option<Time>,
    /// Whether its start-up is over.
    pub(super) warm: bool,
    /// Whether it has run for long enough to report metrics.
    pub(super) reports: bool,
    /// The phase that it has ended with: Failed or Succeeded.
    pub(super) ended: Option<PodPhase>,
    pub(super) deletion: Option<Deletion>,
    /// Its workload was deleted.
    pub(super) orphan: bool,
    /// The object is gone; only its stale sample is left.
    pub(super) gone: bool,
    /// The condition Ready and since when.
    pub(super) ready: Option<(bool, Time)>,
    /// The events that hold it in some state, by their place in the timeline.
    pub(super) holds: Vec<usize>,
    /// The exception to each resource's common source, if there is any.
    pub(super) exceptions: Option<Box<[Option<usize>]>>,
    /// The stale sample, while there is one.
    pub(super) frozen: Option<Frozen>,
}

/// A sample that does not change any more.
#[derive(Clone, Debug)]
pub(super) struct Frozen {
    /// Its timestamp, in whole seconds.
    pub(super) timestamp: Time,
    /// None: the pod had no entry then.
    pub(super) containers: Option<Arc<[ContainerMetrics]>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Deletion {
    /// When the object goes, unless it is held.
    pub(super) due: Time,
}

/// A pod's status as the API shows it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Status {
    phase: PodPhase,
    start_time: Option<Time>,
    ready: Option<PodReady>,
    deletion_timestamp: Option<Time>,
}

impl SimPod {
    /// A pod that was just created.
    pub(super) fn new(
        name: Arc<str>,
        revision: u32,
        exceptions: Option<Box<[Option<usize>]>>,
    ) -> SimPod {
        SimPod {
            name,
            revision,
            started: None,
            warm: false,
            reports: false,
            ended: None,
            deletion: None,
            orphan: false,
            gone: false,
            ready: None,
            holds: Vec::new(),
            exceptions,
            frozen: None,
        }
    }

    /// Returns true if the workload's controller counts it.
    pub(super) fn active(&self) -> bool {
        self.ended.is_none() && self.deletion.is_none()
    }

    /// Returns true if it takes its share of a load.
    pub(super) fn serving(&self) -> bool {
        self.ready.is_some_and(|(ready, _)| ready)
    }

    /// The kubelet starts its containers, unless it is too late for that.
    pub(super) fn start(&mut self, at: Time) -> bool {
        let starts = self.active() && self.started.is_none();
        if starts {
            self.started = Some(at);
        }
        starts
    }

    /// Its containers end, for ever.
    pub(super) fn end(&mut self, phase: PodPhase) {
        self.ended.get_or_insert(phase);
    }

    /// Deletes the pod.
    pub(super) fn delete(&mut self, at: Time, termination: Span) {
        if self.deletion.is_none() {
            let graceful = self.started.is_some() && self.ended.is_none();
            let due = if graceful { at + termination } else { at };
            self.deletion = Some(Deletion { due });
        }
    }

    /// Updates the derived state. Returns false if the pod and its sample are gone.
    pub(super) fn update_derived(&mut self, at: Time, timeline: &[TimelineEvent]) -> bool {
        let held =
            |what: fn(&Action) -> bool| self.holds.iter().any(|&i| what(&timeline[i].action));
        if !held(|what| matches!(what, Action::MetricsStale(_))) {
            self.frozen = None;
        }
        self.gone |= self.deletion.is_some_and(|deletion| deletion.due <= at)
            && !held(|what| matches!(what, Action::PodsStuckTerminating(_)));
        if self.gone {
            self.ready = None;
            return self.frozen.as_ref().is_some_and(|sample| sample.containers.is_some());
        }
        let unready = held(|what| matches!(what, Action::PodsUnready(_)));
        if self.started.is_some() {
            let ready = self.warm && self.active() && !unready;
            if self.ready.is_none_or(|(old, _)| old != ready) {
                self.ready = Some((ready, at));
            }
        }
        true
    }

    /// Returns true if metrics.k8s.io has an entry of it; a terminating pod still has one.
    fn has_entry(&self, timeline: &[TimelineEvent]) -> bool {
        let missing = |&i: &usize| matches!(timeline[i].action, Action::MetricsMissing(_));
        let runs = self.started.is_some() && self.ended.is_none();
        runs && self.reports && !self.holds.iter().any(missing)
    }

    /// The containers and resources without usage: sorted, each once.
    pub(super) fn hidden(&self, timeline: &[TimelineEvent]) -> Vec<Hidden> {
        let hidden = |&i: &usize| match &timeline[i].action {
            Action::ContainerMetricsMissing(part) => {
                Some(Hidden::Container(part.container.clone()))
            }
            Action::ResourceMissing(part) => Some(Hidden::Resource(part.resource.clone())),
            _ => None,
        };
        let mut hidden: Vec<Hidden> = self.holds.iter().filter_map(hidden).collect();
        hidden.sort_unstable();
        hidden.dedup();
        hidden
    }

    /// The class of its usage; None: it has no entry.
    pub(super) fn class(&self, scenario: &Scenario) -> Option<ClassKey> {
        let resources = scenario.metrics.resources.iter().enumerate();
        self.has_entry(&scenario.timeline).then(|| ClassKey {
            sources: resources
                .map(|(index, resource)| {
                    self.source(index, matches!(resource.source, UsageSource::Load { .. }))
                })
                .collect(),
            hidden: self.hidden(&scenario.timeline),
        })
    }

    /// The source of its values of a resource.
    fn source(&self, resource: usize, shared: bool) -> Source {
        match self.exceptions.as_ref().and_then(|exceptions| exceptions[resource]) {
            Some(exception) => Source::Exception(exception),
            None if shared && !self.serving() => Source::Idle,
            None => Source::Common,
        }
    }

    /// Its status as the API shows it.
    pub(super) fn status(&self) -> Status {
        let phase = match (self.ended, self.started) {
            (Some(ended), _) => ended,
            (None, Some(_)) => PodPhase::Running,
            (None, None) => PodPhase::Pending,
        };
        let ready = self.ready.map(|(ready, since)| PodReady {
            status: if ready { ConditionStatus::True } else { ConditionStatus::False },
            last_transition_time: since.truncate_to_second(),
        });
        let start_time = self.started.map(Time::truncate_to_second);
        let deletion_timestamp = self.deletion.map(|deletion| deletion.due.truncate_to_second());
        Status { phase, start_time, ready, deletion_timestamp }
    }

    /// A status of it as a change.
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
