//! What the cluster has of the scenarios' pods and targets, kept up to date by watches.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DynamicObject;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource, ResourceExt};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::engine::cluster::labels::PLAYED;
use crate::engine::cluster::observe::dispatch::Dispatcher;
use crate::engine::cluster::observe::watch_retry::watch;
use crate::engine::cluster::resources;
use crate::scenario::resolved::{BUILT_IN, ScalableKind};

/// A pod of the cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct CachedPod {
    /// It is being deleted.
    pub(crate) deleting: bool,
    /// It has failed or succeeded: no controller counts it.
    pub(crate) over: bool,
}

impl CachedPod {
    /// Returns true if a ReplicaSet counts it.
    pub(crate) fn is_active(&self) -> bool {
        !self.deleting && !self.over
    }
}

/// The pods and targets of a namespace.
#[derive(Debug, Default)]
struct Namespace {
    pods: BTreeMap<String, CachedPod>,
    /// `status.replicas` of targets, by kind and name.
    replicas: HashMap<(&'static str, String), i32>,
    changed: Arc<Notify>,
}

/// The pods and targets of all namespaces.
#[derive(Debug, Default)]
pub(crate) struct PodCache {
    namespaces: Mutex<HashMap<String, Namespace>>,
}

impl PodCache {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Namespace>> {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, namespace: Option<String>, change: impl FnOnce(&mut Namespace)) {
        let mut namespaces = self.lock();
        let namespace = namespaces.entry(namespace.unwrap_or_default()).or_default();
        change(namespace);
        namespace.changed.notify_waiters();
    }

    /// The pods of a namespace.
    pub(crate) fn pods(&self, namespace: &str) -> BTreeMap<String, CachedPod> {
        self.lock().get(namespace).map(|it| it.pods.clone()).unwrap_or_default()
    }

    /// `status.replicas` of a target.
    pub(crate) fn replicas(&self, namespace: &str, kind: &'static str, name: &str) -> Option<i32> {
        let namespaces = self.lock();
        namespaces.get(namespace)?.replicas.get(&(kind, name.to_owned())).copied()
    }

    /// Told when something of a namespace changes.
    pub(crate) fn changed(&self, namespace: &str) -> Arc<Notify> {
        self.lock().entry(namespace.to_owned()).or_default().changed.clone()
    }

    pub(crate) fn forget(&self, namespace: &str) {
        self.lock().remove(namespace);
    }

    /// Starts the watches, which end with the set.
    pub(crate) fn watch(
        self: &Arc<PodCache>,
        client: &Client,
        dispatcher: &Arc<Dispatcher>,
        tasks: &mut JoinSet<()>,
    ) {
        let (api, config) = (Api::<Pod>::all(client.clone()), Config::default().labels(PLAYED));
        let pods = watch(api, config, Pod::plural(&()).into(), dispatcher.clone());
        let seen = self.clone();
        tasks.spawn(follow(pods, move |pod, exists| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            let real = CachedPod {
                deleting: pod.metadata.deletion_timestamp.is_some(),
                over: matches!(phase, Some("Failed" | "Succeeded")),
            };
            let name = pod.name_any();
            seen.change(pod.namespace(), |namespace| {
                match exists {
                    true => namespace.pods.insert(name, real),
                    false => namespace.pods.remove(&name),
                };
            });
        }));
        for kind in &BUILT_IN {
            tasks.spawn(self.targets(client, dispatcher, kind));
        }
    }

    /// Watches targets of a kind for their `status.replicas`.
    fn targets(
        self: &Arc<PodCache>,
        client: &Client,
        dispatcher: &Arc<Dispatcher>,
        kind: &'static ScalableKind<'static>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resources::scalable(kind));
        let targets = watch(api, Config::default(), kind.resource.into(), dispatcher.clone());
        let seen = self.clone();
        follow(targets, move |target, exists| {
            let key = (kind.kind, target.name_any());
            let replicas = target.data["status"]["replicas"].as_i64().unwrap_or_default();
            let replicas = i32::try_from(replicas).unwrap_or_default();
            seen.change(target.namespace(), |namespace| {
                match exists {
                    true => namespace.replicas.insert(key, replicas),
                    false => namespace.replicas.remove(&key),
                };
            });
        })
    }
}

/// Passes on each object of a watch, and whether it exists.
async fn follow<K>(objects: impl Stream<Item = Event<K>>, mut pass: impl FnMut(K, bool)) {
    let mut objects = std::pin::pin!(objects);
    while let Some(event) = objects.next().await {
        match event {
            Event::Apply(object) | Event::InitApply(object) => pass(object, true),
            Event::Delete(object) => pass(object, false),
            Event::Init | Event::InitDone => {}
        }
    }
}
