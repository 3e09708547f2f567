//! Blocked reconciles: they wait for a slow response, or for another attempt to update the scale.
//!
//! What a reconcile reads after a wait is not known when it begins. So a reconcile that may wait is
//! worked out up to its first wait and put aside. When the wait is over, it is worked out again
//! from its beginning, with the inputs that were recorded. This is slow, but rare; other reconciles
//! are worked out at once.

use std::sync::Arc;

use crate::model::api::{ApiError, CustomMetrics, Hpa, Pod, PodMetrics, Scale};
use crate::model::hpa::controller::{Controller, Input, WorkItemResult};
use crate::model::hpa::reconcile::{HpaSelectorStore, is_conflict};
use crate::model::time::{Span, Time};

/// A blocked reconcile.
#[derive(Clone, Debug)]
pub(crate) struct BlockedReconcile {
    pub(crate) key: Arc<str>,
    /// The HPA at the beginning of the reconcile: upstream works on a copy.
    pub(crate) hpa: Hpa,
    /// The selectors at the beginning.
    selectors: HpaSelectorStore,
    /// The inputs at the beginning and after each wait.
    seen: Vec<Seen>,
    /// The end of its wait.
    until: Time,
}

impl BlockedReconcile {
    /// The inputs at the beginning and after each wait.
    pub(crate) fn inputs(&self) -> Vec<Input<'_>> {
        self.seen.iter().map(|seen| seen.input(&self.hpa)).collect()
    }
}

/// An owned [`Input`].
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
    /// Processes the key that is due at `input.now`. A reconcile that waits is blocked until
    /// [`Controller::resume`].
    pub fn process(&mut self, input: &Input<'_>) -> WorkItemResult {
        self.resync_until(input.now);
        let Some(key) = self.queue.get(input.now) else { return WorkItemResult::Skipped };
        let may_wait = input.slow_metrics.is_some() || input.update_scale.is_some_and(is_conflict);
        if let Some(hpa) = input.hpa.filter(|_| may_wait) {
            let (hpa, selectors) = (hpa.clone(), self.selectors.clone());
            let seen = vec![Seen::of(input)];
            return self.advance(BlockedReconcile { key, hpa, selectors, seen, until: input.now });
        }
        let mut decision = Box::default();
        match self.reconcile_key(key, input, &mut decision) {
            true => WorkItemResult::Reconciled(decision),
            false => WorkItemResult::Skipped,
        }
    }

    /// Resumes the reconcile whose wait is over, see [`Controller::next_to_resume`].
    pub fn resume(&mut self, input: &Input<'_>) -> WorkItemResult {
        self.resync_until(input.now);
        let Some(index) = self.first_to_resume() else { return WorkItemResult::Skipped };
        let mut blocked = self.blocked.remove(index);
        blocked.seen.push(Seen::of(input));
        self.advance(blocked)
    }

    /// The blocked reconcile that resumes next, and when. Of several at the same time, the first
    /// one by key.
    #[must_use]
    pub fn next_to_resume(&self) -> Option<(Time, &Arc<str>)> {
        let blocked = &self.blocked[self.first_to_resume()?];
        Some((blocked.until, &blocked.key))
    }

    /// Returns true if the reconcile of this HPA is blocked; without a key, if any is.
    #[must_use]
    pub fn is_blocked(&self, key: Option<&str>) -> bool {
        self.blocked.iter().any(|blocked| key.is_none_or(|key| *blocked.key == *key))
    }

    fn first_to_resume(&self) -> Option<usize> {
        let order = |index: &usize| (self.blocked[*index].until, &self.blocked[*index].key);
        (0..self.blocked.len()).min_by(|a, b| order(a).cmp(&order(b)))
    }

    /// Works out a reconcile up to its next wait, or to its end.
    fn advance(&mut self, mut blocked: BlockedReconcile) -> WorkItemResult {
        let key = blocked.key.clone();
        let mut memory = self.memory(&key).clone();
        let mut selectors = blocked.selectors.clone();
        let mut decision = Box::default();
        let result = self.replay(&blocked, &mut memory, &mut selectors, &mut decision);
        let begins = blocked.seen.len() == 1;
        if begins {
            // No other reconcile comes before the first wait.
            self.selectors = selectors;
        }
        if let Some(until) = result.blocked_until {
            if begins {
                self.queue.begin(&key);
            }
            blocked.until = until;
            self.blocked.push(blocked);
            return WorkItemResult::Blocked;
        }
        *self.memory(&key) = memory;
        let end = result.end;
        if self.requeues(result.succeeded) {
            self.add_rate_limited(key.clone(), end);
        }
        if !begins {
            self.queue.done(&key, end, self.workers());
        }
        WorkItemResult::Reconciled(decision)
    }
}
