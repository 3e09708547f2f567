//! Reconciles that wait: they are put aside, and executed again when the wait is over.

use super::Controller;
use crate::api::Hpa;
use crate::hpa::apimachinery::is_conflict;
use crate::hpa::decision::{Decision, WorkItemResult};
use crate::hpa::input::{Input, Interruption, OwnedInput, OwnedInterruption};
use crate::hpa::queue::{BlockedReconcile, Taken};
use crate::hpa::reconcile::Wait;
use crate::observation::Observation;
use crate::time::Time;
use std::sync::Arc;

impl Controller {
    /// Processes the key that is due at `input.now`, with interruptions in the middle of its
    /// reconcile. A reconcile that waits is blocked until the caller resumes it with
    /// [`Controller::resume`].
    pub fn process(
        &mut self,
        input: &Input<'_>,
        interruptions: &[Interruption<'_>],
    ) -> WorkItemResult {
        self.resync_until(input.now);
        let Some(taken) = self.queue.get(input.now) else { return WorkItemResult::Skipped };
        let may_wait = !interruptions.is_empty()
            || taken.again.is_some()
            || input.slow_metrics.is_some()
            || input.update_scale.is_some_and(is_conflict);
        if let Some(hpa) = input.hpa.filter(|_| may_wait) {
            let (hpa, selectors) = (hpa.clone(), self.selectors.clone());
            let (seen, until) = (vec![OwnedInput::new(input)], input.now);
            let Taken { key, counts, again } = taken;
            let decision = Box::default();
            let blocked = BlockedReconcile {
                key,
                counts,
                hpa,
                selectors,
                seen,
                interruptions: Vec::new(),
                until,
                decision,
            };
            self.queue.begin(&blocked.key, again);
            return self.advance(blocked, interruptions);
        }
        let mut decision = Box::default();
        match self.reconcile_key(taken, input, &[], &mut decision) {
            true => WorkItemResult::Reconciled(decision),
            false => WorkItemResult::Skipped,
        }
    }

    /// Resumes the reconcile whose wait is over (see [`Controller::next_to_resume`]), with
    /// interruptions after the wait.
    pub fn resume(
        &mut self,
        input: &Input<'_>,
        interruptions: &[Interruption<'_>],
    ) -> WorkItemResult {
        self.resync_until(input.now);
        let Some(index) = self.first_to_resume() else { return WorkItemResult::Skipped };
        let mut blocked = self.blocked.remove(index);
        blocked.seen.push(OwnedInput::new(input));
        self.advance(blocked, interruptions)
    }

    /// The blocked reconcile that resumes next, and the time. Of several at the same time, the
    /// first one by key.
    #[must_use]
    pub fn next_to_resume(&self) -> Option<(Time, &Arc<str>)> {
        let blocked = &self.blocked[self.first_to_resume()?];
        Some((blocked.until, &blocked.key))
    }

    /// Returns true if the reconcile of this HPA is blocked; without a key, if any reconcile is.
    #[must_use]
    pub fn is_blocked(&self, key: Option<&str>) -> bool {
        self.blocked.iter().any(|blocked| key.is_none_or(|key| *blocked.key == *key))
    }

    /// The blocked reconcile of an HPA: the HPA at its beginning, and its actions.
    pub fn blocked(&self, key: &str) -> Option<(&Hpa, &Observation)> {
        let blocked = self.blocked.iter().find(|blocked| *blocked.key == *key)?;
        Some((&blocked.hpa, &blocked.decision.observation))
    }

    /// The blocked reconciles up to their current waits, without derivations.
    pub fn unfinished(&self) -> impl Iterator<Item = &Decision> {
        self.blocked.iter().map(|blocked| &*blocked.decision)
    }

    fn first_to_resume(&self) -> Option<usize> {
        let order = |index: &usize| (self.blocked[*index].until, &self.blocked[*index].key);
        (0..self.blocked.len()).min_by(|a, b| order(a).cmp(&order(b)))
    }

    /// Executes a reconcile up to its next wait, or to its end.
    fn advance(
        &mut self,
        mut blocked: BlockedReconcile,
        interruptions: &[Interruption<'_>],
    ) -> WorkItemResult {
        let key = blocked.key.clone();
        blocked.interruptions.extend(interruptions.iter().map(OwnedInterruption::new));
        let mut memory = self.memory(&key).clone();
        let mut selectors = blocked.selectors.clone();
        let mut decision = Box::default();
        let result = self.replay(&blocked, &mut memory, &mut selectors, &mut decision);
        let begins = blocked.seen.len() == 1;
        if begins {
            // No other reconcile happens before the first wait.
            self.selectors = selectors;
        }
        self.hpas_changed(interruptions);
        if let Some(Wait { until, observation }) = result.blocked {
            blocked.until = until;
            decision.derivation.clear();
            // Keep only the events before the wait.
            decision.event_times.truncate(observation.events().count());
            decision.observation = observation;
            blocked.decision = decision;
            self.blocked.push(blocked);
            return WorkItemResult::Blocked;
        }
        *self.memory(&key) = memory;
        decision.committed = blocked.committed();
        let taken = Taken { key: key.clone(), counts: blocked.counts, again: None };
        self.record_own_metrics(&taken, &result, &mut decision);
        let end = result.end;
        if self.requeues(result.succeeded) {
            self.add_rate_limited(key.clone(), end);
        }
        self.queue.done(&key, end, self.workers());
        WorkItemResult::Reconciled(decision)
    }
}
