//! The HPA controller: its queue, its memory, and the processing of a queued HPA.

mod blocked;
mod durations;
mod own_metrics;
mod state;

use std::collections::BTreeMap;
use std::sync::Arc;

use educe::Educe;
use own_metrics::{Ended, Gauges};

use super::decision::Decision;
use super::input::{ChangedHpa, HpaChange, Input, Interruption};
use super::memory::Memory;
use super::queue::{BlockedReconcile, Resync, Taken, WorkQueue};
use super::reconcile::{ControllerConfig, Reconcile, ReconcileResult, WorkItem};
use super::selector_store::HpaSelectorStore;
use crate::api::Text;
use crate::derivation::Branch;
use crate::flags::{FeatureGates, Flags, Gate};
use crate::observation::ControllerAction;
use crate::rules::{FirstReconcile, Rules};
use crate::shared::Shared;
use crate::time::{Span, Time};

/// The minimum time that the workers of a new controller wait for its caches: client-go checks
/// every 100 ms if the caches are synced.
///
/// Upstream: client-go, shared_informer.go, syncedPollPeriod
pub(crate) const CACHE_SYNC_POLL: Span = Span::from_millis(100);

/// The controller with its state. Keys are upstream's: `namespace/name`.
#[derive(Educe, Debug)]
#[educe(Clone)]
pub struct Controller {
    config: Shared<ControllerConfig>,
    pub(crate) queue: WorkQueue,
    pub(crate) resync: Resync,
    /// The time up to which resyncs were processed.
    pub(crate) resynced: Time,
    /// The time up to which resyncs were counted.
    resyncs_counted: Time,
    memory: BTreeMap<Arc<str>, Box<Memory>>,
    pub(crate) selectors: HpaSelectorStore,
    /// Blocked reconciles, each with its own worker.
    pub blocked: Vec<BlockedReconcile>,
    gauges: Gauges,
    /// The resource version of the last write of each HPA's status that the cache may lack.
    written: BTreeMap<Arc<str>, u64>,
}

impl Controller {
    /// A controller that runs at t=0, without any HPA. It was started half a sync period before a
    /// resync of its informer at t=0 would be due, so that resyncs and reconciles do not coincide.
    #[must_use]
    pub fn new(rules: Rules, flags: Flags, gates: FeatureGates) -> Controller {
        let (wall_clock, all_metrics) = (false, false);
        let config = ControllerConfig { rules, flags, gates, wall_clock, all_metrics };
        Controller {
            config: Shared::new(config),
            queue: WorkQueue::new(rules.queue.waiting_is_sorted),
            resync: Resync::running(flags.sync_period),
            resynced: Time::ZERO,
            resyncs_counted: Time::ZERO,
            memory: BTreeMap::new(),
            selectors: HpaSelectorStore::default(),
            blocked: Vec::new(),
            gauges: Gauges::default(),
            written: BTreeMap::new(),
        }
    }

    /// Makes the controller use a clock that advances during a reconcile.
    #[must_use]
    pub fn with_wall_clock(mut self) -> Controller {
        self.config.wall_clock = true;
        self
    }

    /// Makes the controller report the metrics of its work queue.
    #[must_use]
    pub fn with_all_metrics(mut self, all_metrics: bool) -> Controller {
        self.config.all_metrics = all_metrics;
        self
    }

    /// Handles the creation of an HPA.
    ///
    /// Upstream: horizontal.go, enqueueHPA
    pub fn hpa_added(&mut self, key: &Arc<str>, now: Time) {
        self.resync_until(now);
        self.selectors.put_if_absent(key);
        match self.config.rules.queue.first_reconcile {
            FirstReconcile::Immediate => self.queue.add(key.clone(), now),
            FirstReconcile::AfterSyncPeriod => self.add_rate_limited(key.clone(), now),
        }
    }

    /// Handles a change of an HPA's spec or status. The controller's own writes count as well.
    ///
    /// Upstream: horizontal.go, updateHPA
    pub(crate) fn hpa_updated(&mut self, key: &Arc<str>, generation_changed: bool, now: Time) {
        self.resync_until(now);
        if generation_changed && self.config.gates.enabled(Gate::HpaGeneration) {
            self.hpa_added(key, now);
        } else {
            self.add_rate_limited(key.clone(), now);
        }
    }

    /// Records the deletion of an HPA. The controller forgets it when its key is next processed.
    ///
    /// Upstream: horizontal.go, deleteHPA
    pub fn hpa_deleted(&mut self, key: &Arc<str>, now: Time) {
        self.resync_until(now);
        self.selectors.delete(key);
        self.written.remove(key);
    }

    /// Replaces the controller by a new one without any memory. Its workers start when its caches
    /// are synced.
    ///
    /// Upstream: horizontal.go, Run
    pub fn restarted(&mut self, hpas: &[Arc<str>], now: Time) {
        let config = self.config.clone();
        let ControllerConfig { rules, flags, gates, .. } = *config;
        *self = Controller::new(rules, flags, gates);
        self.config = config;
        let workers_start = now + CACHE_SYNC_POLL;
        self.queue = WorkQueue::starting_at(workers_start, rules.queue.waiting_is_sorted);
        self.resync = Resync::started(now, flags.sync_period);
        (self.resynced, self.resyncs_counted) = (now, now);
        for key in hpas {
            self.hpa_added(key, now);
        }
    }

    /// The time at which a key is next ready to be processed by an idle worker.
    #[must_use]
    pub fn next_sync(&self) -> Option<Time> {
        if self.blocked.len() >= self.workers() {
            return None;
        }
        let queued = self.queue.next().map(|(at, _)| at);
        if self.config.rules.queue.success_requeues {
            return queued;
        }
        queued.into_iter().chain(self.next_by_resync()).min()
    }

    /// Makes a waiting key ready at `now`, for callers that observed its reconcile.
    pub fn mark_ready(&mut self, key: &str, now: Time) {
        self.queue.mark_ready(key, now);
    }

    /// The key that the controller processes next at `now`, if one is due.
    pub fn peek(&mut self, now: Time) -> Option<&Arc<str>> {
        self.resync_until(now);
        self.queue.peek(now)
    }

    /// The key that the controller processes next, and the time.
    #[must_use]
    pub fn due(&self) -> Option<(Time, Arc<str>)> {
        self.queue.next().map(|(at, key)| (at, key.clone()))
    }

    /// Processes the key that is due at `input.now`. Returns `None` if no key is due or if its HPA
    /// does not exist. A reconcile that waits sees the same input after its wait.
    ///
    /// Upstream: horizontal.go, processNextWorkItem
    pub fn sync(&mut self, input: &Input<'_>) -> Option<Decision> {
        let mut decision = Decision::default();
        self.sync_into(input, &mut decision).then_some(decision)
    }

    /// [`Controller::sync`] into a decision whose memory is reused; returns false if there is none.
    /// A new decision in each tick takes 0.7 of the ticks/s at 10 pods.
    pub fn sync_into(&mut self, input: &Input<'_>, decision: &mut Decision) -> bool {
        self.resync_until(input.now);
        decision.clear();
        let taken = self.queue.get(input.now);
        taken.is_some_and(|taken| self.reconcile_key(taken, input, &[], decision))
    }

    /// Like [`Controller::sync_into`], with interruptions during the reconcile. Changes
    /// of HPAs add their keys to the queue, as the informer's events do.
    pub fn sync_interrupted(
        &mut self,
        input: &Input<'_>,
        interruptions: &[Interruption<'_>],
        decision: &mut Decision,
    ) -> bool {
        self.resync_until(input.now);
        decision.clear();
        let Some(taken) = self.queue.get(input.now) else { return false };
        let key = taken.key.clone();
        self.queue.begin(&key, taken.again);
        let reconciled = self.reconcile_key(taken, input, interruptions, decision);
        self.hpas_changed(interruptions);
        let end = if reconciled { decision.end } else { input.now };
        self.queue.done(&key, end, self.workers());
        reconciled
    }

    /// Handles the changes of HPAs during a reconcile.
    pub(crate) fn hpas_changed(&mut self, interruptions: &[Interruption<'_>]) {
        for Interruption { input, hpas, .. } in interruptions {
            self.queue.is_held(input.now, self.workers());
            for ChangedHpa { key, change } in hpas {
                self.hpa_changed(key, *change, input.now);
            }
        }
        self.queue.proceeds();
    }

    /// Handles a change of an HPA.
    pub fn hpa_changed(&mut self, key: &Arc<str>, change: HpaChange, now: Time) {
        match change {
            HpaChange::Added => self.hpa_added(key, now),
            HpaChange::Updated { generation } => self.hpa_updated(key, generation, now),
            HpaChange::Deleted => self.hpa_deleted(key, now),
        }
    }

    /// Upstream: horizontal.go, reconcileKey
    pub(crate) fn reconcile_key(
        &mut self,
        taken: Taken,
        input: &Input<'_>,
        interruptions: &[Interruption<'_>],
        decision: &mut Decision,
    ) -> bool {
        if let Some(error) = self.stale_cache(&taken.key, input) {
            self.skip(taken, error, input, decision);
            return true;
        }
        let key = taken.key.clone();
        let Some(hpa) = input.hpa else {
            self.memory.remove(&key);
            return false;
        };
        let memory = self.memory.entry(key.clone()).or_default();
        let selectors = &mut self.selectors;
        let item = WorkItem {
            key: &key,
            hpa,
            input,
            later: &[],
            interruptions,
            memory,
            selectors,
            decision,
        };
        let result = Reconcile::run(&self.config, item);
        self.record_own_metrics(&taken, &result, decision);
        let end = result.end;
        let resync = Some(self.resync.after(input.now)).filter(|resync| *resync < end);
        self.resynced = end;
        let requeues = self.requeues(result.succeeded);
        match resync {
            // It has queued the key already, and is counted with the other resyncs.
            Some(at) => {
                self.queue.add_after(key, at, self.config.flags.sync_period);
                self.queue.count_retries(u64::from(requeues));
            }
            None if requeues => self.add_rate_limited(key, end),
            None => {}
        }
        true
    }

    /// Remembers the resource version with which the status of an HPA was written.
    ///
    /// Upstream: util/consistency, RealConsistencyStore.WroteAt
    pub fn wrote(&mut self, key: &Arc<str>, version: u64) {
        if self.config.gates.enabled(Gate::StaleControllerConsistencyHpa) {
            self.written.insert(key.clone(), version);
        }
    }

    /// The error of a reconcile whose cache is older than the last write of the HPA's status.
    ///
    /// Upstream: util/consistency, RealConsistencyStore.EnsureReady
    fn stale_cache(&mut self, key: &str, input: &Input<'_>) -> Option<Text> {
        let (wrote, read) = (*self.written.get(key)?, input.cache_version?);
        if wrote <= read {
            self.written.remove(key);
            return None;
        }
        let text = format!(
            "read version: {read} is not as new as written version: {wrote} for group resource \
             horizontalpodautoscalers.autoscaling"
        );
        Some(text.into())
    }

    /// Skips a reconcile because of a stale cache.
    ///
    /// Upstream: horizontal.go, reconcileKey
    fn skip(&mut self, taken: Taken, error: Text, input: &Input<'_>, decision: &mut Decision) {
        let Taken { key, counts, .. } = taken;
        let Decision { observation, derivation, end, .. } = decision;
        observation.at = input.now;
        observation.hpa = key.split_once('/').map_or(&*key, |(_, name)| name).into();
        observation.push(ControllerAction::Error { message: error.clone() });
        derivation.at = input.now;
        derivation.branch = Branch::Skipped;
        derivation.error = Some(error);
        *end = input.now;
        let known_hpas = self.selectors.len();
        own_metrics::record_skip(&self.config, &mut self.gauges, decision, known_hpas, &counts);
        self.add_rate_limited(key, input.now);
    }

    /// Executes a blocked reconcile from its beginning with the inputs that are known so far, on
    /// copies of the memory and the selectors. The caller stores the copies if necessary.
    pub(crate) fn replay(
        &self,
        blocked: &BlockedReconcile,
        memory: &mut Memory,
        selectors: &mut HpaSelectorStore,
        decision: &mut Decision,
    ) -> ReconcileResult {
        let inputs = blocked.inputs();
        let (input, later) = (&inputs[0], &inputs[1..]);
        let interruptions = &blocked.interruptions();
        let (key, hpa) = (&*blocked.key, &blocked.hpa);
        let item = WorkItem { key, hpa, input, later, interruptions, memory, selectors, decision };
        Reconcile::run(&self.config, item)
    }

    /// Adds the changes of the controller's own metrics to a reconcile that has ended.
    pub(crate) fn record_own_metrics(
        &mut self,
        taken: &Taken,
        result: &ReconcileResult,
        decision: &mut Decision,
    ) {
        let Taken { key, counts, .. } = taken;
        let ended = Ended { key, result, known_hpas: self.selectors.len(), counts };
        own_metrics::record(&self.config, &mut self.gauges, decision, &ended);
        self.queue.count_work(decision.observation.took);
    }

    /// The memory of an HPA.
    pub(crate) fn memory(&mut self, key: &Arc<str>) -> &mut Memory {
        self.memory.entry(key.clone()).or_default()
    }

    /// Returns true if a reconcile queues the next one.
    pub(crate) fn requeues(&self, succeeded: bool) -> bool {
        self.config.rules.queue.success_requeues || !succeeded
    }

    /// Queues a key for one sync period after `now`.
    pub(crate) fn add_rate_limited(&mut self, key: Arc<str>, now: Time) {
        self.queue.add_rate_limited(key, now, self.config.flags.sync_period);
    }

    /// Returns true if the informer resyncs at exactly this time. Whether it does so before or
    /// after a key that is due at the same time is random.
    #[must_use]
    pub fn resyncs_at(&self, instant: Time) -> bool {
        self.resync.is_at(instant)
    }

    /// Processes the informer's resyncs up to a time. If each reconcile queues the next one, only
    /// resyncs while a reconcile is blocked matter: they queue its key, and the keys that wait for
    /// a worker. They queue the keys of all HPAs, but the others already wait for an earlier time.
    /// Upstream's order is random; the model's is by name.
    pub(crate) fn resync_until(&mut self, now: Time) {
        if self.config.all_metrics && now > self.resyncs_counted {
            let resyncs = self.resync.count(self.resyncs_counted, now);
            self.queue.count_retries(resyncs * self.selectors.len() as u64);
            self.resyncs_counted = now;
        }
        while !self.config.rules.queue.success_requeues || !self.blocked.is_empty() {
            let at = self.resync.after(self.resynced);
            if at > now {
                break;
            }
            self.resynced = at;
            let keys: Vec<Arc<str>> = self.selectors.keys().cloned().collect();
            for key in keys {
                self.queue.add_after(key, at, self.config.flags.sync_period);
            }
        }
        self.resynced = now;
    }

    /// The due time of a key that only the informer's next resync will queue.
    fn next_by_resync(&self) -> Option<Time> {
        let idle = self.selectors.keys().any(|key| !self.queue.holds(key));
        idle.then(|| self.resync.after(self.resynced) + self.config.flags.sync_period)
    }

    /// Sets the orders in which the next reconciles name HPAs with the same pods, where that is
    /// left to chance: those that were observed. Each has the keys of the HPAs.
    pub fn follow_orders(&mut self, orders: impl IntoIterator<Item = Vec<String>>) {
        self.selectors.follow_orders(orders);
    }

    /// The number of HPAs that are reconciled concurrently.
    pub(crate) fn workers(&self) -> usize {
        usize::try_from(self.config.flags.concurrent_syncs).unwrap_or(1).max(1)
    }
}
