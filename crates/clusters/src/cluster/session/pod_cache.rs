//! A cache of the scenarios' pods and targets in the cluster, kept up to date by watches.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, Resource, ResourceExt};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::cluster::labels::SCENARIO_OBJECT;
use crate::cluster::observe::dispatch::Dispatcher;
use crate::cluster::observe::watch_retry::watch;
use crate::cluster::resources;
use kube_lockstep_scenario::resolved::BUILT_IN;

/// A pod of the cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct CachedPod {
    /// True if it is being deleted.
    pub deleting: bool,
    /// True if it has failed or succeeded: no controller counts it.
    pub over: bool,
}

impl CachedPod {
    fn new(pod: &Pod) -> CachedPod {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        CachedPod {
            deleting: pod.metadata.deletion_timestamp.is_some(),
            over: matches!(phase, Some("Failed" | "Succeeded")),
        }
    }

    /// Returns true if a ReplicaSet counts it.
    pub(crate) fn is_active(&self) -> bool {
        !self.deleting && !self.over
    }
}

/// The pods of a namespace.
#[derive(Debug, Default)]
struct Namespace {
    pods: Writer<Pod>,
    changed: Arc<Notify>,
}

/// The targets of a kind, in all namespaces.
#[derive(Debug)]
struct Targets {
    resource: ApiResource,
    store: Store<DynamicObject>,
}

/// The pods and targets of all namespaces.
#[derive(Debug, Default)]
pub(crate) struct PodCache {
    namespaces: Mutex<HashMap<String, Namespace>>,
    /// By kind.
    targets: HashMap<&'static str, Targets>,
}

impl PodCache {
    /// A cache that watches a cluster. The watches end with the set.
    pub(crate) fn watching(
        client: &Client,
        dispatcher: &Arc<Dispatcher>,
        tasks: &mut JoinSet<()>,
    ) -> Arc<PodCache> {
        let (mut cache, mut writers) = (PodCache::default(), Vec::new());
        for known in BUILT_IN {
            let resource = resources::scalable(&known);
            writers.push((resource.clone(), cache.add_kind(known.kind, resource)));
        }
        let cache = Arc::new(cache);
        for (resource, writer) in writers {
            let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
            let name = resource.plural;
            let targets = watch(api, Config::default(), name, dispatcher.clone());
            tasks.spawn(cache.clone().follow_targets(writer, targets));
        }
        let (api, config) =
            (Api::<Pod>::all(client.clone()), Config::default().labels(SCENARIO_OBJECT));
        let pods = watch(api, config, Pod::plural(&()).into(), dispatcher.clone());
        tasks.spawn(cache.clone().follow_pods(pods));
        cache
    }

    /// Adds a kind of targets. Returns the writer of their store.
    fn add_kind(&mut self, kind: &'static str, resource: ApiResource) -> Writer<DynamicObject> {
        let writer = Writer::new(resource.clone());
        self.targets.insert(kind, Targets { resource, store: writer.as_reader() });
        writer
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Namespace>> {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pods of a namespace.
    pub(crate) fn pods(&self, namespace: &str) -> BTreeMap<String, CachedPod> {
        let namespaces = self.lock();
        let pods = namespaces.get(namespace).map(|it| it.pods.as_reader().state());
        let pods = pods.into_iter().flatten();
        pods.map(|pod| (pod.name_any(), CachedPod::new(&pod))).collect()
    }

    /// `status.replicas` of a target.
    pub(crate) fn replicas(&self, namespace: &str, kind: &'static str, name: &str) -> Option<i32> {
        let Targets { resource, store } = self.targets.get(kind)?;
        let target = store.get(&ObjectRef::new_with(name, resource.clone()).within(namespace))?;
        let replicas = target.data["status"]["replicas"].as_i64().unwrap_or_default();
        i32::try_from(replicas).ok()
    }

    /// Notified when a pod or target of a namespace changes.
    pub(crate) fn changed(&self, namespace: &str) -> Arc<Notify> {
        self.lock().entry(namespace.to_owned()).or_default().changed.clone()
    }

    pub(crate) fn forget(&self, namespace: &str) {
        self.lock().remove(namespace);
    }

    async fn follow_pods(self: Arc<PodCache>, events: impl Stream<Item = Event<Pod>>) {
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            // Only what is read is kept.
            let event = event.modify(|pod| (pod.metadata.managed_fields, pod.spec) = (None, None));
            let mut namespaces = self.lock();
            match &event {
                Event::Apply(pod) | Event::Delete(pod) | Event::InitApply(pod) => {
                    let namespace = pod.namespace().unwrap_or_default();
                    let namespace = namespaces.entry(namespace).or_default();
                    namespace.pods.apply_watcher_event(&event);
                    namespace.changed.notify_waiters();
                }
                // A new list replaces the pods of every namespace.
                Event::Init | Event::InitDone => {
                    for namespace in namespaces.values_mut() {
                        namespace.pods.apply_watcher_event(&event);
                        namespace.changed.notify_waiters();
                    }
                }
            }
        }
    }

    async fn follow_targets(
        self: Arc<PodCache>,
        mut writer: Writer<DynamicObject>,
        events: impl Stream<Item = Event<DynamicObject>>,
    ) {
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            let event = event.modify(|target| {
                target.metadata.managed_fields = None;
                target.data["spec"].take();
            });
            writer.apply_watcher_event(&event);
            let namespaces = self.lock();
            match event {
                Event::Apply(target) | Event::Delete(target) => {
                    let namespace = namespaces.get(&target.namespace().unwrap_or_default());
                    namespace.inspect(|it| it.changed.notify_waiters());
                }
                Event::InitDone => {
                    namespaces.values().for_each(|it| it.changed.notify_waiters());
                }
                Event::Init | Event::InitApply(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::stream;
    use serde_json::{Value, json};

    use super::*;

    fn pod(namespace: &str, name: &str) -> Pod {
        let metadata = json!({ "namespace": namespace, "name": name });
        serde_json::from_value(json!({ "metadata": metadata })).expect("a pod")
    }

    fn names(cache: &PodCache, namespace: &str) -> Vec<String> {
        cache.pods(namespace).into_keys().collect()
    }

    /// The events of a list.
    fn listed<K>(objects: impl IntoIterator<Item = K>) -> Vec<Event<K>> {
        let objects = objects.into_iter().map(Event::InitApply);
        [Event::Init].into_iter().chain(objects).chain([Event::InitDone]).collect()
    }

    #[tokio::test]
    async fn pods_that_were_deleted_before_a_new_list_are_removed() {
        let cache = Arc::new(PodCache::default());
        let follow = |events| cache.clone().follow_pods(stream::iter(events));
        follow(listed([pod("shop", "web-1"), pod("shop", "web-2"), pod("db", "db-1")])).await;
        assert_eq!(names(&cache, "shop"), ["web-1", "web-2"]);
        follow(vec![Event::Apply(pod("shop", "web-3")), Event::Delete(pod("shop", "web-1"))]).await;
        assert_eq!(names(&cache, "shop"), ["web-2", "web-3"]);
        let (shop_changed, db_changed) = (cache.changed("shop"), cache.changed("db"));
        let (shop, db) = (shop_changed.notified(), db_changed.notified());
        follow(listed([pod("shop", "web-3"), pod("other", "other-1")])).await;
        assert_eq!(names(&cache, "shop"), ["web-3"]);
        assert_eq!(names(&cache, "other"), ["other-1"]);
        assert_eq!(names(&cache, "db"), Vec::<String>::new());
        assert!(shop.now_or_never().is_some() && db.now_or_never().is_some(), "both are notified");
    }

    #[tokio::test]
    async fn pods_stay_until_a_new_list_is_complete() {
        let cache = Arc::new(PodCache::default());
        let follow = |events| cache.clone().follow_pods(stream::iter(events));
        follow(listed([pod("shop", "web-1")])).await;
        follow(vec![Event::Init, Event::InitApply(pod("shop", "web-2"))]).await;
        assert_eq!(names(&cache, "shop"), ["web-1"], "the list may fail, and be started again");
        follow(listed([pod("shop", "web-3")])).await;
        assert_eq!(names(&cache, "shop"), ["web-3"]);
    }

    #[tokio::test]
    async fn targets_that_were_deleted_before_a_new_list_are_removed() {
        let [deployments, ..] = BUILT_IN;
        let mut cache = PodCache::default();
        let writer = cache.add_kind(deployments.kind, resources::scalable(&deployments));
        let cache = Arc::new(cache);
        let target = |name: &str, status: Value| -> DynamicObject {
            let metadata = json!({ "namespace": "shop", "name": name });
            serde_json::from_value(json!({ "metadata": metadata, "status": status }))
                .expect("a target")
        };
        let changed = cache.changed("shop");
        let notified = changed.notified();
        let mut events = listed([
            target("web", json!({ "replicas": 3 })),
            target("db", json!({ "replicas": 1 })),
            target("new", json!({})),
        ]);
        events.extend(listed([target("web", json!({ "replicas": 4 })), target("new", json!({}))]));
        cache.clone().follow_targets(writer, stream::iter(events)).await;
        let replicas = |name: &str| cache.replicas("shop", "Deployment", name);
        assert_eq!([replicas("web"), replicas("new"), replicas("db")], [Some(4), Some(0), None]);
        assert_eq!(cache.replicas("other", "Deployment", "web"), None);
        assert_eq!(cache.replicas("shop", "StatefulSet", "web"), None);
        assert!(notified.now_or_never().is_some());
    }
}
