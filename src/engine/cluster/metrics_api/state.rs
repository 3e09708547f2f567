//! The metrics that the fake metrics API serves: one world for each namespace.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedSender;

use crate::engine::cluster::metrics_api::query::{Query, asking};
use crate::engine::cluster::observe::action::ObservedAction;
use crate::model::time::{Span, Time};
use crate::world::{Change, Cluster, Mirror, RealPod};

/// What is served in one namespace.
#[derive(Debug)]
pub(crate) struct ServedNamespace {
    pub(crate) cluster: Cluster,
    /// What the scenario calls it.
    pub(crate) called: Arc<str>,
    /// Which instant is t=0.
    epoch: Timestamp,
    /// The names that the scenario's pods have in the cluster.
    names: HashMap<Arc<str>, Arc<str>>,
    /// What goes on of itself, with the cluster's own pods.
    mirror: Option<Mirror>,
    log: Option<UnboundedSender<ObservedAction>>,
    /// Whose queries alone are told, where that is known.
    controller: Option<Arc<str>>,
}

impl ServedNamespace {
    fn new(called: &Arc<str>, epoch: Timestamp) -> ServedNamespace {
        ServedNamespace {
            cluster: Cluster::default(),
            called: called.clone(),
            epoch,
            names: HashMap::new(),
            mirror: None,
            log: None,
            controller: None,
        }
    }

    /// As it is now.
    pub(crate) fn now(&mut self) -> &ServedNamespace {
        let now = self.time(Timestamp::now());
        let changes = self.mirror.as_mut().map(|mirror| mirror.advance(now));
        for change in changes.into_iter().flatten() {
            // The world defines a template before it uses it.
            let _ = self.cluster.apply(&change, &|_, _| Ok(()));
        }
        self
    }

    fn time(&self, at: Timestamp) -> Time {
        let nanos = at.as_nanosecond() - self.epoch.as_nanosecond();
        Time(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    pub(crate) fn timestamp(&self, at: Time) -> String {
        let nanos = self.epoch.as_nanosecond() + i128::from(at.0);
        let at = Timestamp::from_nanosecond(nanos).unwrap_or(self.epoch);
        // Times cross the API in whole seconds.
        Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
    }

    /// A pod's name in the cluster. A sample may outlive its pod.
    pub(crate) fn name<'a>(&'a self, pod: &'a Arc<str>) -> &'a Arc<str> {
        self.names.get(pod).unwrap_or(pod)
    }

    /// Tells of a query. Others than the controller may look, too.
    pub(crate) fn tell(&self, did: ObservedAction) {
        let by = asking();
        if self.controller.as_ref().is_some_and(|it| **it != *by) {
            return;
        }
        if let Some(log) = &self.log {
            // Nobody listens any more when a scenario is over.
            let _ = log.send(ObservedAction { by, ..did });
        }
    }
}

/// What the server and those who tell it of changes share.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    namespaces: Mutex<HashMap<String, ServedNamespace>>,
    /// Who asks as the HPA controller, once that is known.
    controller: OnceLock<Arc<str>>,
    /// Who is told of all queries.
    queries: Option<UnboundedSender<Query>>,
    /// Nobody but the controller asks: what upstream's never asks for is told as well.
    is_private: bool,
}

impl Metrics {
    /// Of which all queries are told.
    pub(crate) fn told_to(queries: UnboundedSender<Query>) -> Metrics {
        Metrics { queries: Some(queries), ..Metrics::default() }
    }

    /// Which the controller alone asks, or others as well.
    pub(crate) fn of_cluster(is_private: bool) -> Metrics {
        Metrics { is_private, ..Metrics::default() }
    }

    pub(crate) fn is_private(&self) -> bool {
        self.is_private
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<String, ServedNamespace>> {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on a namespace is served. Queries are told to `log`.
    pub(crate) fn open(
        &self,
        namespace: &str,
        called: &Arc<str>,
        epoch: Timestamp,
        log: UnboundedSender<ObservedAction>,
    ) {
        let controller = self.controller.get().cloned();
        let served =
            ServedNamespace { log: Some(log), controller, ..ServedNamespace::new(called, epoch) };
        self.lock().insert(namespace.to_owned(), served);
    }

    /// From now on a namespace is served, of itself: t=0 is now. `pods` are those that there are,
    /// in the order of their creation; it is given which instant t=0 is.
    pub(crate) fn open_mirror(
        &self,
        namespace: &str,
        (called, mut mirror): (&Arc<str>, Mirror),
        pods: impl FnOnce(Timestamp) -> Vec<RealPod>,
    ) {
        let epoch = Timestamp::now();
        // What happens at t=0 happens to them.
        mirror.see(Time(-1), &pods(epoch));
        let served =
            ServedNamespace { mirror: Some(mirror), ..ServedNamespace::new(called, epoch) };
        self.lock().insert(namespace.to_owned(), served);
    }

    /// The pods of a namespace that is served of itself, as for [`Metrics::open_mirror`].
    pub(crate) fn see(&self, namespace: &str, pods: impl FnOnce(Timestamp) -> Vec<RealPod>) {
        if let Some(served) = self.lock().get_mut(namespace) {
            let now = served.time(Timestamp::now());
            let pods = pods(served.epoch);
            if let Some(mirror) = &mut served.mirror {
                mirror.see(now, &pods);
            }
        }
    }

    /// That user is the controller: of namespaces that are opened from now on, only what it asks is
    /// told.
    pub(crate) fn set_controller(&self, user: &str) {
        // Once is enough: it does not change.
        let _ = self.controller.set(user.into());
    }

    /// Its t=0 is another instant.
    pub(crate) fn begin_at(&self, namespace: &str, epoch: Timestamp) {
        if let Some(served) = self.lock().get_mut(namespace) {
            served.epoch = epoch;
        }
    }

    /// It no longer is.
    pub(crate) fn close(&self, namespace: &str) {
        self.lock().remove(namespace);
    }

    /// What a namespace's metrics APIs answer changes.
    pub(crate) fn apply(&self, namespace: &str, change: &Change) {
        if let Some(served) = self.lock().get_mut(namespace) {
            // The world defines a template before it uses it, and HPAs are not applied here.
            let _ = served.cluster.apply(change, &|_, _| Ok(()));
        }
    }

    /// The scenario's pods have these names in the cluster.
    pub(crate) fn rename(&self, namespace: &str, names: HashMap<Arc<str>, Arc<str>>) {
        if let Some(served) = self.lock().get_mut(namespace) {
            served.names = names;
        }
    }

    /// How long a query of a namespace that is served of itself takes now.
    pub(crate) fn slowness(&self, namespace: &str) -> Option<Span> {
        let mut namespaces = self.lock();
        let served = namespaces.get_mut(namespace).filter(|served| served.mirror.is_some())?;
        served.now().cluster.faults().slow_metrics
    }

    pub(crate) fn asked(&self, query: impl FnOnce() -> Query) {
        if let Some(queries) = &self.queries {
            // Nobody listens any more when all is over.
            let _ = queries.send(query());
        }
    }
}
