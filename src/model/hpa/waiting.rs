//! Reconciles that wait: for a slow answer, or before another attempt to update the scale.
//!
//! What a reconcile reads after a wait is the world of then, which is not known when it begins. So
//! one that may wait is worked out up to its first wait, put aside, and worked out anew from its
//! beginning when that wait is over: on a copy of what the controller remembers, with what it saw
//! before as it was. Deliberately slow; one that can't wait is worked out in place.

use std::sync::Arc;

use super::reconcile::{ControllerConfig, Reconcile, is_conflict};
use super::selectors::HpaSelectorStore;
use super::{Controller, Decision, Input};
use crate::model::api::{ApiError, CustomMetrics, Hpa, Pod, PodMetrics, Scale};
use crate::model::time::{Span, Time};

/// The result of processing one item of the work queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkItemResult {
    /// There was no item, or its HPA does not exist.
    Skipped,
    /// The reconcile is blocked: it waits for an answer or for its next attempt.
    Blocked,
    /// The reconcile ended.
    Reconciled,
}

/// A reconcile that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    key: Arc<str>,
    /// As it was when the reconcile began: upstream works on a copy.
    hpa: Hpa,
    /// As they were then.
    selectors: HpaSelectorStore,
    /// What it saw when it began, and after each wait.
    seen: Vec<Seen>,
    /// When its wait is over.
    until: Time,
}

/// [`Input`], kept.
#[derive(Clone, Debug)]
struct Seen {
    now: Time,
    scale: Result<Scale, ApiError>,
    scale_resource: Arc<str>,
    mapping_error: Option<String>,
    pods: Vec<Arc<Pod>>,
    pod_metrics: Result<Vec<PodMetrics>, ApiError>,
    custom_metrics: CustomMetrics,
    update_scale: Option<ApiError>,
    update_status: Option<ApiError>,
    slow_metrics: Option<Span>,
}

impl Seen {
    fn of(input: &Input<'_>) -> Seen {
        Seen {
            now: input.now,
            scale: input.scale.cloned().map_err(Clone::clone),
            scale_resource: input.scale_resource.clone(),
            mapping_error: input.mapping_error.map(str::to_owned),
            pods: input.pods.to_vec(),
            pod_metrics: input.pod_metrics.map(<[_]>::to_vec).map_err(Clone::clone),
            custom_metrics: input.custom_metrics.clone(),
            update_scale: input.update_scale.cloned(),
            update_status: input.update_status.cloned(),
            slow_metrics: input.slow_metrics,
        }
    }

    fn input<'a>(&'a self, hpa: &'a Hpa) -> Input<'a> {
        Input {
            now: self.now,
            hpa: Some(hpa),
            scale: self.scale.as_ref(),
            scale_resource: &self.scale_resource,
            mapping_error: self.mapping_error.as_deref(),
            pods: &self.pods,
            pod_metrics: self.pod_metrics.as_deref(),
            custom_metrics: &self.custom_metrics,
            update_scale: self.update_scale.as_ref(),
            update_status: self.update_status.as_ref(),
            slow_metrics: self.slow_metrics,
        }
    }
}

impl Controller {
    /// Lets the key that is due take its turn: as [`Controller::sync_into`], but a reconcile that
    /// waits is put aside until [`Controller::resume_into`].
    pub fn process_into(&mut self, input: &Input<'_>, decision: &mut Decision) -> WorkItemResult {
        self.resync_until(input.now);
        let Some(key) = self.queue.get(input.now) else { return WorkItemResult::Skipped };
        let may_wait = input.slow_metrics.is_some() || input.update_scale.is_some_and(is_conflict);
        match input.hpa.filter(|_| may_wait) {
            Some(hpa) => {
                let (hpa, selectors) = (hpa.clone(), self.selectors.clone());
                let seen = vec![Seen::of(input)];
                let waiting = Waiting { key, hpa, selectors, seen, until: input.now };
                self.work_out(waiting, decision)
            }
            None if self.reconcile_key(key, input, decision) => WorkItemResult::Reconciled,
            None => WorkItemResult::Skipped,
        }
    }

    /// Goes on with the reconcile whose wait is over, see [`Controller::next_to_resume`].
    pub fn resume_into(&mut self, input: &Input<'_>, decision: &mut Decision) -> WorkItemResult {
        self.resync_until(input.now);
        let Some(index) = self.first_to_resume() else { return WorkItemResult::Skipped };
        let mut waiting = self.waiting.remove(index);
        waiting.seen.push(Seen::of(input));
        self.work_out(waiting, decision)
    }

    /// The reconcile whose wait is over next, and when. Of several, the first one by key.
    #[must_use]
    pub fn next_to_resume(&self) -> Option<(Time, &Arc<str>)> {
        let waiting = &self.waiting[self.first_to_resume()?];
        Some((waiting.until, &waiting.key))
    }

    /// Whether an HPA's reconcile waits; without a key, whether any does.
    #[must_use]
    pub fn is_blocked(&self, key: Option<&str>) -> bool {
        self.waiting.iter().any(|waiting| key.is_none_or(|key| *waiting.key == *key))
    }

    fn first_to_resume(&self) -> Option<usize> {
        let waiting = |index: &usize| (self.waiting[*index].until, &self.waiting[*index].key);
        (0..self.waiting.len()).min_by(|a, b| waiting(a).cmp(&waiting(b)))
    }

    fn work_out(&mut self, mut waiting: Waiting, decision: &mut Decision) -> WorkItemResult {
        let inputs: Vec<Input<'_>> =
            waiting.seen.iter().map(|seen| seen.input(&waiting.hpa)).collect();
        let key = waiting.key.clone();
        let mut memory = self.memory.get_or_default(&key).clone();
        let mut selectors = waiting.selectors.clone();
        decision.clear();
        let config = ControllerConfig {
            rules: &self.rules,
            flags: &self.flags,
            gates: &self.gates,
            wall_clock: self.wall_clock,
        };
        let of = (&inputs[0], &waiting.hpa);
        let mut reconcile = Reconcile::new(config, &mut memory, &mut selectors, &key, of, decision);
        reconcile.later = &inputs[1..];
        let (end, succeeded) = reconcile.run();
        let waits_until = reconcile.waits_until;
        drop(reconcile);
        let began = waiting.seen.len() == 1;
        if began {
            // Nothing else has its turn before the first wait.
            self.selectors = selectors;
        }
        if let Some(until) = waits_until {
            if began {
                self.queue.begin(&key);
            }
            waiting.until = until;
            self.waiting.push(waiting);
            return WorkItemResult::Blocked;
        }
        *self.memory.get_or_default(&key) = memory;
        decision.end = end;
        if self.requeues(succeeded) {
            self.queue.add_rate_limited(key.clone(), end, self.flags.sync_period);
        }
        if !began {
            self.queue.done(&key, end, self.workers());
        }
        WorkItemResult::Reconciled
    }

    /// The informer's resyncs up to an instant. Where each reconcile queues the next one, only
    /// those count that come while a reconcile waits: they queue its key, and those for which there
    /// is no worker. They queue all keys, of which the others wait for an earlier turn. Upstream in
    /// no certain order; by name is one.
    pub(super) fn resync_until(&mut self, now: Time) {
        while !self.rules.success_requeues || !self.waiting.is_empty() {
            let at = self.resync.after(self.resynced);
            if at > now {
                break;
            }
            self.resynced = at;
            let keys: Vec<Arc<str>> = self.selectors.keys().cloned().collect();
            for key in keys {
                self.queue.add_rate_limited(key, at, self.flags.sync_period);
            }
        }
        self.resynced = now;
    }

    /// When a key has its turn that nothing but the informer's next resync will queue.
    pub(super) fn next_by_resync(&self) -> Option<Time> {
        let idle = self.selectors.keys().any(|key| !self.queue.holds(key));
        idle.then(|| self.resync.after(self.resynced) + self.flags.sync_period)
    }

    /// How many HPAs are reconciled at once.
    pub(super) fn workers(&self) -> usize {
        usize::try_from(self.flags.concurrent_syncs).unwrap_or(1).max(1)
    }
}
