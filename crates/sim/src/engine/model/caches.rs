//! The controller's caches of HPAs and pods, which can lag behind the cluster.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::world::Cluster;
use kube_autoscaler_models::api::{Hpa, Pod};
use kube_autoscaler_models::hpa::HpaChange;
use kube_autoscaler_models::time::{Span, Time};

/// The additional delay of each late change, so that no change arrives exactly when a reconcile is
/// due that began with an earlier change.
const LATE: Span = Span(2);

/// The least time between late changes of an HPA: the controller reacts to each of them.
const APART: Span = Span(1);

/// The caches of a controller in a cluster with one HPA.
#[derive(Clone, Debug)]
pub(super) struct Caches {
    lag: Span,
    hpa: Cache<HpaState>,
    pods: Cache<Vec<Arc<Pod>>>,
}

/// An HPA in the cache, and what the cache has seen.
#[derive(Clone, Debug, Default)]
pub(super) struct HpaState {
    /// The HPA, if it exists.
    pub hpa: Option<Hpa>,
    /// The resource version of the last change of any HPA.
    pub version: u64,
    change: Option<HpaChange>,
}

/// A cache of one resource.
#[derive(Clone, Debug, Default)]
struct Cache<T> {
    present: T,
    /// The states that have not arrived yet, in order. `None` stands for a state that a new
    /// controller has already listed: it changes nothing, but later states still follow it.
    late: VecDeque<(Time, Option<T>)>,
    /// When all states will have arrived.
    due: Time,
}

impl<T> Cache<T> {
    /// Sends the current state, which arrives after the lag, and at least `apart` after the
    /// previous state.
    fn send(&mut self, state: T, now: Time, lag: Span, apart: Span) {
        let apart = if self.late.is_empty() { Span::ZERO } else { apart };
        self.due = (self.due + apart).max(now + lag);
        self.late.push_back((self.due, Some(state)));
    }

    /// A new controller lists the current state.
    fn listed(&mut self, state: T) {
        self.late.iter_mut().for_each(|(_, state)| *state = None);
        self.present = state;
    }

    /// The time of the next state.
    fn next(&self) -> Option<Time> {
        self.late.iter().find(|(_, state)| state.is_some()).map(|(due, _)| *due)
    }

    /// The next state, if it arrives at or before `now`.
    fn arrived(&mut self, now: Time) -> Option<(Time, T)> {
        loop {
            let (at, state) = self.late.pop_front_if(|(due, _)| *due <= now)?;
            if let Some(state) = state {
                return Some((at, state));
            }
        }
    }
}

impl Caches {
    pub(super) fn new() -> Caches {
        let (hpa, pods) = (Cache::default(), Cache::default());
        Caches { lag: Span::ZERO, hpa, pods }
    }

    /// Sets how late the caches receive later changes.
    pub(super) fn set_lag(&mut self, lag: Option<Span>) {
        self.lag = lag.map_or(Span::ZERO, |lag| Span(lag.0.saturating_add(LATE.0)));
    }

    /// Pods have changed.
    pub(super) fn pods_changed(&mut self, cluster: &Cluster, now: Time) {
        self.pods.send(cluster.pods().to_vec(), now, self.lag, Span::ZERO);
        self.receive_pods(now);
    }

    /// The HPA has changed.
    pub(super) fn hpa_changed(&mut self, state: HpaState, now: Time) {
        self.hpa.send(state, now, self.lag, APART);
    }

    /// A new controller reads the current state.
    pub(super) fn restarted(&mut self, cluster: &Cluster, state: HpaState) {
        self.hpa.listed(state);
        self.pods.listed(cluster.pods().to_vec());
    }

    /// The time of the next change of the HPA that arrives.
    pub(super) fn next(&self) -> Option<Time> {
        self.hpa.next()
    }

    /// Returns true if a change arrives at exactly this time.
    pub(super) fn arrives_at(&self, instant: Time) -> bool {
        self.hpa.next() == Some(instant) || self.pods.next() == Some(instant)
    }

    /// Receives the next change of the HPA that arrives at or before `now`. Returns the time.
    pub(super) fn receive_hpa(&mut self, now: Time) -> Option<(Time, HpaChange)> {
        let (at, state) = self.hpa.arrived(now)?;
        let change = state.change;
        self.hpa.present = state;
        change.map(|change| (at, change))
    }

    /// Receives the changes of pods that arrive at or before `now`.
    pub(super) fn receive_pods(&mut self, now: Time) {
        while let Some((_, pods)) = self.pods.arrived(now) {
            self.pods.present = pods;
        }
    }

    pub(super) fn hpa(&self) -> &HpaState {
        &self.hpa.present
    }

    pub(super) fn pods(&self) -> &[Arc<Pod>] {
        &self.pods.present
    }
}

impl HpaState {
    /// The current state of an HPA in a cluster, after a change.
    pub(super) fn new(cluster: &Cluster, name: &str, change: Option<HpaChange>) -> HpaState {
        HpaState { hpa: cluster.hpa(name).cloned(), version: cluster.hpa_version(), change }
    }
}
