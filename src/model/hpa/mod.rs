//! The HPA controller: its queue, its memory, and what it does when an HPA's turn has come.
//!
//! One function here is one function of upstream's `pkg/controller/podautoscaler`, under the same
//! name; the parts of the algorithm are the files of this folder. [`Controller::sync`] is the door.
//!
//! Deliberately absent: informers and clients (what they would answer is [`Input`]), workers (see
//! the queue), controller metrics, log lines, and the guard against a stale cache
//! (`StaleControllerConsistencyHPA`): the caller's cache is never older than the last write.
//! docs/fuzz.md says why that can't be otherwise.

mod behavior;
mod by_key;
mod calculate;
mod conversion;
mod conversion_back;
mod custom_metrics;
mod defaults;
mod forbidden;
mod go_format;
mod group_pods;
mod heapster;
mod metric_name;
mod metrics_client;
mod normalize;
mod overwrite;
mod pod_requests;
mod queue;
mod reconcile;
mod replica_calculator;
mod requests;
mod resync;
mod selectors;
mod status;
mod through_v1;
mod validation;
mod validation_metrics;
mod validation_older;
mod waiting;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::api::{ApiError, CustomMetrics, Hpa, HpaSpec, Pod, PodMetrics, Scale, Text};
use super::derivation::Derivation;
use super::flags::{FeatureGates, Flags, Gate};
use super::observation::Observation;
use super::rules::{FirstReconcile, Rules};
use super::time::{Span, Time};

pub use conversion::{
    ApiVersion, ROUND_TRIP_ANNOTATIONS, decode_spec, drop_zero_totals, from_v2beta1,
};
pub use conversion_back::{metric_to_v2beta1, status_from_v2beta1};
pub use defaults::set_defaults;
pub use through_v1::{metrics_through_v1, spec_through_v1};
pub use validation::{
    FieldError, FieldErrorType, admit, drop_disabled_fields, invalid_message, validate,
    validate_update,
};
pub use waiting::WorkItemResult;

use by_key::ByKey;
use queue::Queue;
use reconcile::{ControllerConfig, Reconcile};
use resync::Resync;
use selectors::{HpaSelectorStore, ParsedSelector};
use waiting::Waiting;

/// How long a controller that has just started waits until its caches are synced: client-go looks
/// whether they are every 100 ms. Upstream: client-go, shared_informer.go, syncedPollPeriod
pub const CACHE_SYNC_POLL: Span = Span::from_millis(100);

/// The controller with all that it remembers between reconciles.
#[derive(Clone, Debug)]
pub struct Controller {
    rules: Rules,
    flags: Flags,
    gates: FeatureGates,
    /// Time passes during a reconcile, if only a little.
    wall_clock: bool,
    queue: Queue,
    resync: Resync,
    /// Until when resyncs have been looked at.
    resynced: Time,
    memory: ByKey<Memory>,
    selectors: HpaSelectorStore,
    /// Reconciles that wait, each with a worker of its own.
    waiting: Vec<Waiting>,
}

/// What the controller remembers of one HPA. Lost when it restarts, kept when the HPA is deleted
/// and made anew before its key was processed.
#[derive(Clone, Debug, Default)]
struct Memory {
    /// Proposals before normalising. Empty: there was none yet.
    recommendations: Vec<TimestampedRecommendation>,
    up_events: Vec<TimestampedScaleEvent>,
    down_events: Vec<TimestampedScaleEvent>,
    /// Not upstream's: what is the same on every tick, to be neither parsed nor copied again.
    cache: Cache,
}

#[derive(Clone, Debug, Default)]
struct Cache {
    selector: Option<Arc<ParsedSelector>>,
    target: Option<(Arc<HpaSpec>, Target)>,
    valid_metric: Option<(Arc<HpaSpec>, Option<usize>, Text)>,
}

/// What the spec says of the target.
#[derive(Clone, Debug)]
struct Target {
    name: Arc<str>,
    /// Why its apiVersion is unusable, if it is.
    api_version: Result<(), String>,
}

#[derive(Clone, Copy, Debug)]
struct TimestampedRecommendation {
    recommendation: i32,
    timestamp: Time,
}

#[derive(Clone, Copy, Debug)]
struct TimestampedScaleEvent {
    /// Not negative.
    replica_change: i32,
    timestamp: Time,
    outdated: bool,
}

/// What the controller sees when it reconciles an HPA.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The instant. Time stands still during a reconcile, except for its waits: for slow answers,
    /// and between attempts to update the scale.
    pub now: Time,
    /// The HPA as stored; absent if it is gone.
    pub hpa: Option<&'a Hpa>,
    /// The answer to a GET of the scale.
    pub scale: Result<&'a Scale, &'a ApiError>,
    /// The target's resource with its group: `deployments.apps`.
    pub scale_resource: &'a Arc<str>,
    /// Why the target's kind could not be mapped to a resource, if it could not.
    pub mapping_error: Option<&'a str>,
    /// All pods of the namespace, sorted by name.
    pub pods: &'a [Arc<Pod>],
    /// What metrics.k8s.io has of the namespace, sorted by name; the selector is applied here.
    pub pod_metrics: Result<&'a [PodMetrics], &'a ApiError>,
    /// What custom.metrics.k8s.io and external.metrics.k8s.io have; selectors are applied here.
    pub custom_metrics: &'a CustomMetrics,
    /// The error that an update of the scale meets.
    pub update_scale: Option<&'a ApiError>,
    /// The error that an update of the status meets.
    pub update_status: Option<&'a ApiError>,
    /// How long the metrics APIs take to answer, if that is not at once.
    pub slow_metrics: Option<Span>,
}

/// What the model says of one reconcile.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Decision {
    /// What will be observed.
    pub observation: Observation,
    /// Why.
    pub derivation: Derivation,
    /// When the reconcile ends: later than it began if it waited before it wrote the scale again.
    pub end: Time,
}

/// Keys are upstream's: `namespace/name`.
impl Controller {
    /// A controller that runs at t=0, without any HPA. When it was started can be told by its
    /// informer's resyncs: half a sync period lies between them and t=0.
    #[must_use]
    pub fn new(rules: Rules, flags: Flags, gates: FeatureGates) -> Controller {
        Controller {
            rules,
            flags,
            gates,
            wall_clock: false,
            queue: Queue::new(rules.waiting_is_sorted),
            resync: Resync::running(flags.sync_period),
            resynced: Time::ZERO,
            memory: ByKey::default(),
            selectors: HpaSelectorStore::default(),
            waiting: Vec::new(),
        }
    }

    /// The same with a clock that does not stand still during a reconcile.
    #[must_use]
    pub fn with_wall_clock(self) -> Controller {
        Controller { wall_clock: true, ..self }
    }

    /// An HPA has appeared.
    ///
    /// Upstream: horizontal.go, enqueueHPA
    pub fn hpa_added(&mut self, key: &Arc<str>, now: Time) {
        self.resync_until(now);
        self.selectors.put_if_absent(key);
        match self.rules.first_reconcile {
            FirstReconcile::Immediate => self.queue.add(key.clone(), now),
            FirstReconcile::AfterSyncPeriod => {
                self.queue.add_rate_limited(key.clone(), now, self.flags.sync_period);
            }
        }
    }

    /// An HPA has changed: its spec, by somebody, or its status, by the controller itself.
    ///
    /// Upstream: horizontal.go, updateHPA
    pub fn hpa_updated(&mut self, key: &Arc<str>, generation_changed: bool, now: Time) {
        self.resync_until(now);
        if generation_changed && self.gates.enabled(Gate::HpaGeneration) {
            self.hpa_added(key, now);
        } else {
            self.queue.add_rate_limited(key.clone(), now, self.flags.sync_period);
        }
    }

    /// An HPA is gone. What is remembered of it goes when its key is next processed.
    ///
    /// Upstream: horizontal.go, deleteHPA
    pub fn hpa_deleted(&mut self, key: &Arc<str>, now: Time) {
        self.resync_until(now);
        self.selectors.delete(key);
    }

    /// The controller was stopped and a new one was started: all that it remembered is lost. Its
    /// workers start when its caches are synced.
    ///
    /// Upstream: horizontal.go, Run
    pub fn restarted(&mut self, hpas: &[Arc<str>], now: Time) {
        let wall_clock = self.wall_clock;
        *self = Controller::new(self.rules, self.flags, self.gates);
        self.wall_clock = wall_clock;
        self.queue = Queue::starting_at(now + CACHE_SYNC_POLL, self.rules.waiting_is_sorted);
        self.resync = Resync::started(now, self.flags.sync_period);
        self.resynced = now;
        for key in hpas {
            self.hpa_added(key, now);
        }
    }

    /// When a key is next ready to be processed by a worker that is free.
    #[must_use]
    pub fn next_sync(&self) -> Option<Time> {
        if self.waiting.len() >= self.workers() {
            return None;
        }
        let queued = self.queue.next().map(|(at, _)| at);
        if self.rules.success_requeues {
            return queued;
        }
        queued.into_iter().chain(self.next_by_resync()).min()
    }

    /// A key that waits is ready by that instant: for callers that saw it processed.
    pub fn mark_ready(&mut self, key: &str, now: Time) {
        self.queue.mark_ready(key, now);
    }

    /// The key that is processed first at that instant, if one is due by then.
    pub fn peek(&mut self, now: Time) -> Option<&Arc<str>> {
        self.resync_until(now);
        self.queue.peek(now)
    }

    /// The key that is processed next, and when.
    #[must_use]
    pub fn due(&self) -> Option<(Time, Arc<str>)> {
        self.queue.next().map(|(at, key)| (at, key.clone()))
    }

    /// Processes the key that is due at `input.now`, and queues it again if the release does so.
    /// Nothing if no key is due, or if the HPA is gone (what was remembered of it is dropped then).
    ///
    /// Upstream: horizontal.go, processNextWorkItem and reconcileKey
    pub fn sync(&mut self, input: &Input<'_>) -> Option<Decision> {
        let mut decision = Decision::default();
        self.sync_into(input, &mut decision).then_some(decision)
    }

    /// [`Controller::sync`] for callers who keep no decision: one is overwritten, and its memory
    /// used again. False: nothing was decided.
    pub fn sync_into(&mut self, input: &Input<'_>, decision: &mut Decision) -> bool {
        self.resync_until(input.now);
        let key = self.queue.get(input.now);
        key.is_some_and(|key| self.reconcile_key(key, input, decision))
    }

    /// Processes this key at `input.now`, whichever is due: for callers that see in which order a
    /// real controller took keys that were ready at the same instant.
    pub fn sync_key(&mut self, key: &Arc<str>, input: &Input<'_>) -> Option<Decision> {
        self.queue.take(key, input.now);
        let mut decision = Decision::default();
        self.reconcile_key(key.clone(), input, &mut decision).then_some(decision)
    }

    fn reconcile_key(&mut self, key: Arc<str>, input: &Input<'_>, decision: &mut Decision) -> bool {
        let Some(hpa) = input.hpa else {
            self.memory.remove(&key);
            return false;
        };
        let memory = self.memory.get_or_default(&key);
        decision.clear();
        let config = ControllerConfig {
            rules: &self.rules,
            flags: &self.flags,
            gates: &self.gates,
            wall_clock: self.wall_clock,
        };
        let selectors = &mut self.selectors;
        let mut reconcile = Reconcile::new(config, memory, selectors, &key, (input, hpa), decision);
        let (end, succeeded) = reconcile.run();
        drop(reconcile);
        decision.end = end;
        self.queue_again(key, input.now, end, succeeded);
        true
    }

    /// Queues a key that was processed. An informer's resync meanwhile has done so before.
    fn queue_again(&mut self, key: Arc<str>, begin: Time, end: Time, succeeded: bool) {
        let resync = Some(self.resync.after(begin)).filter(|resync| *resync < end);
        self.resynced = end;
        if resync.is_some() || self.requeues(succeeded) {
            self.queue.add_rate_limited(key, resync.unwrap_or(end), self.flags.sync_period);
        }
    }

    /// Whether a reconcile that ended so queues the next one.
    fn requeues(&self, succeeded: bool) -> bool {
        self.rules.success_requeues || !succeeded
    }

    /// Whether the informer's resync comes at this very instant: whether before or after a key
    /// whose turn it is, is left to chance.
    #[must_use]
    pub fn resyncs_at(&self, instant: Time) -> bool {
        self.resync.is_at(instant)
    }
}

/// Go's conversion of a float to int32 on amd64: truncated; the smallest number if that does not
/// fit, or if there is none.
fn go_i32(value: f64) -> i32 {
    let truncated = value.trunc();
    if (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&truncated) {
        truncated as i32
    } else {
        i32::MIN
    }
}
