//! What the cluster has of the scenarios' pods and targets, kept up to date by watches.

use crate::engine::cluster::labels::PLAYED;
use crate::engine::cluster::observe::watch_retry::Refusals;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::TryStreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::engine::cluster::observe::dispatch::Dispatcher;

/// A pod of the cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct RealPod {
    /// It is being deleted.
    pub(crate) deleting: bool,
    /// It has failed or succeeded: no controller counts it.
    pub(crate) over: bool,
}

impl RealPod {
    /// Whether a ReplicaSet counts it.
    pub(crate) fn is_active(&self) -> bool {
        !self.deleting && !self.over
    }
}

/// What a namespace has.
#[derive(Debug, Default)]
struct Namespace {
    pods: BTreeMap<String, RealPod>,
    /// `status.replicas` of targets, by kind and name.
    replicas: HashMap<(&'static str, String), i32>,
    changed: Arc<Notify>,
}

/// What is known of all namespaces.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    namespaces: Mutex<HashMap<String, Namespace>>,
}

impl Seen {
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
    pub(crate) fn pods(&self, namespace: &str) -> BTreeMap<String, RealPod> {
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

    /// Begins to watch. Ends with the set.
    pub(crate) fn watch(
        self: &Arc<Seen>,
        client: &Client,
        dispatcher: &Arc<Dispatcher>,
        tasks: &mut JoinSet<()>,
    ) {
        let with = (client, dispatcher);
        let (pods, seen) = (events::<Pod>(client, Some(PLAYED)), self.clone());
        tasks.spawn(follow(pods, dispatcher.clone(), move |pod, there| {
            let status = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            let real = RealPod {
                deleting: pod.metadata.deletion_timestamp.is_some(),
                over: matches!(status, Some("Failed" | "Succeeded")),
            };
            let name = pod.name_any();
            seen.change(pod.namespace(), |namespace| {
                match there {
                    true => namespace.pods.insert(name, real),
                    false => namespace.pods.remove(&name),
                };
            });
        }));
        let status = |status: Option<i32>| status.unwrap_or_default();
        self.watch_targets::<Deployment>(
            with,
            tasks,
            ("Deployment", move |it| status(it.status.as_ref().and_then(|status| status.replicas))),
        );
        self.watch_targets::<ReplicaSet>(
            with,
            tasks,
            ("ReplicaSet", move |it| status(it.status.as_ref().map(|status| status.replicas))),
        );
        self.watch_targets::<StatefulSet>(
            with,
            tasks,
            ("StatefulSet", move |it| status(it.status.as_ref().map(|status| status.replicas))),
        );
        let kind = "ReplicationController";
        self.watch_targets::<ReplicationController>(
            with,
            tasks,
            (kind, move |it| status(it.status.as_ref().map(|status| status.replicas))),
        );
    }

    /// Watches targets of a kind, whose `status.replicas` is what is given of each.
    fn watch_targets<K>(
        self: &Arc<Seen>,
        (client, dispatcher): (&Client, &Arc<Dispatcher>),
        tasks: &mut JoinSet<()>,
        (kind, replicas): (&'static str, impl Fn(&K) -> i32 + Send + 'static),
    ) where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
    {
        let (objects, seen) = (events::<K>(client, None), self.clone());
        tasks.spawn(follow(objects, dispatcher.clone(), move |object, there| {
            let key = (kind, object.name_any());
            let replicas = replicas(&object);
            seen.change(object.namespace(), |namespace| {
                match there {
                    true => namespace.replicas.insert(key, replicas),
                    false => namespace.replicas.remove(&key),
                };
            });
        }));
    }
}

type Events<K> = BoxStream<'static, Result<Event<K>, watcher::Error>>;

fn events<K>(client: &Client, label: Option<&str>) -> Events<K>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let config = watcher::Config::default();
    let config = match label {
        Some(label) => config.labels(label),
        None => config,
    };
    Box::pin(watcher(Api::<K>::all(client.clone()), config))
}

/// Hands on each object, and whether it is there.
async fn follow<K>(
    mut events: Events<K>,
    dispatcher: Arc<Dispatcher>,
    mut hand: impl FnMut(K, bool),
) where
    K: Resource<DynamicType = ()>,
{
    let mut refusals = Refusals::default();
    loop {
        match events.try_next().await {
            Ok(Some(Event::Apply(object) | Event::InitApply(object))) => hand(object, true),
            Ok(Some(Event::Delete(object))) => hand(object, false),
            Ok(Some(Event::Init | Event::InitDone)) => {}
            Ok(None) => return,
            Err(error) => refusals.wait_after(&error, &K::plural(&()), &dispatcher).await,
        }
    }
}
