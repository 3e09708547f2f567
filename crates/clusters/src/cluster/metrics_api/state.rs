//! The metrics that the fake metrics API serves: one world for each namespace.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedSender;

use crate::cluster::metrics_api::held_query::{HeldAnswer, HeldQuery, PendingHold};
use crate::cluster::metrics_api::json::PodSample;
use crate::cluster::metrics_api::query::Query;
use crate::cluster::observe::action::ObservedAction;
use kube_autoscaler_models::api::ApiError;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_sim::world::{Change, Cluster, Mirror, RealPod};

/// The answer to a query of the samples of a namespace.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ServedSamples {
    /// The time when the query arrived.
    pub received: Timestamp,
    /// The samples that it selects, in the form of the API.
    pub answer: Result<Vec<PodSample>, ApiError>,
}

/// The metrics of one namespace.
#[derive(Debug)]
pub(crate) struct ServedNamespace {
    pub cluster: Cluster,
    /// The namespace's name in the scenario.
    pub(crate) scenario_name: Arc<str>,
    /// The instant of t=0.
    epoch: Timestamp,
    /// The names of the scenario's pods in the cluster.
    names: HashMap<Arc<str>, Arc<str>>,
    /// The world of a namespace in live mode, with the pods of the cluster.
    mirror: Option<Mirror>,
    /// The channel for reports of queries to the scenario.
    log: Option<UnboundedSender<ObservedAction>>,
    /// The channel for reports of answered samples, as they were served.
    samples: Option<UnboundedSender<ServedSamples>>,
    /// Only queries of this user are reported. `None`: all queries.
    controller: Option<Arc<str>>,
    /// A query of the controller whose answer is held back.
    pub hold: Option<PendingHold>,
}

impl ServedNamespace {
    fn new(scenario_name: &Arc<str>, epoch: Timestamp) -> ServedNamespace {
        ServedNamespace {
            cluster: Cluster::default(),
            scenario_name: scenario_name.clone(),
            epoch,
            names: HashMap::new(),
            mirror: None,
            log: None,
            samples: None,
            controller: None,
            hold: None,
        }
    }

    fn is_controller(&self, user: &str) -> bool {
        self.controller.as_ref().is_none_or(|it| **it == *user)
    }

    /// Updates it to the current time.
    pub(crate) fn now(&mut self) -> &ServedNamespace {
        let now = self.time(Timestamp::now());
        let changes = self.mirror.as_mut().map(|mirror| mirror.advance(now));
        for change in changes.into_iter().flatten() {
            // Cannot fail: the world defines a template before it uses it.
            let _ = self.cluster.apply(&change, &|_, _| Ok(()));
        }
        self
    }

    fn time(&self, at: Timestamp) -> Time {
        let nanos = at.as_nanosecond() - self.epoch.as_nanosecond();
        Time(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    pub(crate) fn timestamp(&self, at: Time) -> Timestamp {
        let nanos = self.epoch.as_nanosecond() + i128::from(at.0);
        let at = Timestamp::from_nanosecond(nanos).unwrap_or(self.epoch);
        // Times cross the API in whole seconds.
        Timestamp::from_second(at.as_second()).unwrap_or(at)
    }

    /// A pod's name in the cluster. A sample may outlive its pod.
    pub(crate) fn name<'a>(&'a self, pod: &'a Arc<str>) -> &'a Arc<str> {
        self.names.get(pod).unwrap_or(pod)
    }

    /// Reports the answer to a query of samples.
    pub(crate) fn report_samples(
        &self,
        received: Timestamp,
        answer: &Result<Vec<PodSample>, ApiError>,
    ) {
        if let Some(samples) = &self.samples {
            // The receiver is dropped when the scenario is over.
            let _ = samples.send(ServedSamples { received, answer: answer.clone() });
        }
    }

    /// Reports a query to the scenario, unless it comes from a client other than the controller.
    pub(crate) fn report(&self, action: ObservedAction) {
        if !self.is_controller(&action.user) {
            return;
        }
        if let Some(log) = &self.log {
            // The receiver is dropped when the scenario is over.
            let _ = log.send(action);
        }
    }
}

/// The metrics of all namespaces, shared by the server and the scenarios.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    namespaces: Mutex<HashMap<String, ServedNamespace>>,
    /// The user name of the HPA controller, once it is known.
    controller: OnceLock<Arc<str>>,
    /// The receiver of the records of all queries.
    queries: Option<UnboundedSender<Query>>,
    /// True if only the controller queries the metrics. Every query is then reported, including
    /// queries that upstream's controller never sends.
    is_private: bool,
}

impl Metrics {
    /// Sends the records of all queries to a receiver.
    pub(crate) fn with_query_log(queries: UnboundedSender<Query>) -> Metrics {
        Metrics { queries: Some(queries), ..Metrics::default() }
    }

    /// The metrics of a cluster. `is_private`: only the controller queries them.
    pub(crate) fn for_cluster(is_private: bool) -> Metrics {
        Metrics { is_private, ..Metrics::default() }
    }

    pub(crate) fn is_private(&self) -> bool {
        self.is_private
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<String, ServedNamespace>> {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to serve a namespace. Queries are reported to `log`.
    pub(crate) fn open(
        &self,
        namespace: &str,
        scenario_name: &Arc<str>,
        epoch: Timestamp,
        log: UnboundedSender<ObservedAction>,
    ) {
        let controller = self.controller.get().cloned();
        let served = ServedNamespace {
            log: Some(log),
            controller,
            ..ServedNamespace::new(scenario_name, epoch)
        };
        self.lock().insert(namespace.to_owned(), served);
    }

    /// Starts to serve a namespace whose answered samples are reported.
    pub(crate) fn open_samples(
        &self,
        namespace: &str,
        epoch: Timestamp,
        samples: UnboundedSender<ServedSamples>,
    ) {
        let served = ServedNamespace {
            samples: Some(samples),
            ..ServedNamespace::new(&namespace.into(), epoch)
        };
        self.lock().insert(namespace.to_owned(), served);
    }

    /// Starts to serve a namespace in live mode, with t=0 at the current time. `pods` returns the
    /// existing pods in the order of their creation, for the instant of t=0.
    pub(crate) fn open_mirror(
        &self,
        namespace: &str,
        scenario_name: &Arc<str>,
        mut mirror: Mirror,
        pods: impl FnOnce(Timestamp) -> Vec<RealPod>,
    ) {
        let epoch = Timestamp::now();
        // Actions at t=0 apply to these pods.
        mirror.see(Time(-1), &pods(epoch));
        let served =
            ServedNamespace { mirror: Some(mirror), ..ServedNamespace::new(scenario_name, epoch) };
        self.lock().insert(namespace.to_owned(), served);
    }

    /// Updates the pods of a namespace, as for [`Metrics::open_mirror`].
    pub(crate) fn see(&self, namespace: &str, pods: impl FnOnce(Timestamp) -> Vec<RealPod>) {
        if let Some(served) = self.lock().get_mut(namespace) {
            let now = served.time(Timestamp::now());
            let pods = pods(served.epoch);
            if let Some(mirror) = &mut served.mirror {
                mirror.see(now, &pods);
            }
        }
    }

    /// Sets the user name of the controller: only its queries are reported in namespaces that are
    /// opened from now on.
    pub(crate) fn set_controller(&self, user: &str) {
        // The name does not change.
        let _ = self.controller.set(user.into());
    }

    /// Changes the instant of t=0 of a namespace.
    pub(crate) fn begin_at(&self, namespace: &str, epoch: Timestamp) {
        if let Some(served) = self.lock().get_mut(namespace) {
            served.epoch = epoch;
        }
    }

    /// Stops to serve a namespace.
    pub(crate) fn close(&self, namespace: &str) {
        self.lock().remove(namespace);
    }

    /// Changes the metrics of a namespace.
    pub(crate) fn apply(&self, namespace: &str, change: &Change) {
        if let Some(served) = self.lock().get_mut(namespace) {
            // Cannot fail: the world defines a template before it uses it, and HPAs are not applied
            // here.
            let _ = served.cluster.apply(change, &|_, _| Ok(()));
        }
    }

    /// Sets the names of the scenario's pods in the cluster.
    pub(crate) fn rename(&self, namespace: &str, names: HashMap<Arc<str>, Arc<str>>) {
        if let Some(served) = self.lock().get_mut(namespace) {
            served.names = names;
        }
    }

    /// Counts a query of a user. Returns the hold of its answer, if it is to be held back.
    pub(crate) fn held(&self, namespace: &str, user: &str) -> Option<(HeldQuery, HeldAnswer)> {
        let mut namespaces = self.lock();
        let served = namespaces.get_mut(namespace).filter(|served| served.is_controller(user))?;
        PendingHold::query(&mut served.hold)
    }

    /// The current delay of queries in a namespace in live mode.
    pub(crate) fn slowness(&self, namespace: &str) -> Option<Span> {
        let mut namespaces = self.lock();
        let served = namespaces.get_mut(namespace).filter(|served| served.mirror.is_some())?;
        served.now().cluster.faults().slow_metrics
    }

    /// Passes on the record of a query, if there is a receiver.
    pub(crate) fn record(&self, query: impl FnOnce() -> Query) {
        if let Some(queries) = &self.queries {
            // The receiver is dropped when the server is about to end.
            let _ = queries.send(query());
        }
    }
}
