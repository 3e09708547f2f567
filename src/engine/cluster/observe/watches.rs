//! What a controller does, where no audit log tells of its requests: by what becomes of them.
//!
//! Each write of an HPA's status, of a target's size and of an event makes a new version of an
//! object, of which a watch tells. What leaves no version can't be seen: reads of the scale, what
//! the API server refuses, and a write that changes nothing (the controller makes none). Queries of
//! the metrics APIs are known to who answers them.

use crate::engine::cluster::observe::action::GAP;
use std::collections::HashMap;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::compare::Scope;
use crate::engine::cluster::labels::{PLAYED, WRITER};
use crate::engine::cluster::observe::action::ObservedAction;
use crate::engine::cluster::observe::audit_log::event_entry;
use crate::engine::cluster::observe::dispatch::Dispatcher;
use crate::engine::cluster::observe::observability::Observability;
use crate::engine::cluster::observe::watch_retry::Refusals;
use crate::model::api::with_group;
use crate::model::time::Span;

/// What is seen so.
pub(crate) const OBSERVABILITY: Observability = Observability {
    scope: Scope { scale_reads: false, events: false, errors: false, ..Scope::ALL },
    // So much later than it was made a write is told of.
    uncertainty: Span::from_millis(25),
    // Each kind of object has a watch of its own.
    linger: Span::from_millis(50),
    events: Span::from_secs(30),
};

/// Events of HPAs alone.
const OF_HPAS: &str = "involvedObject.kind=HorizontalPodAutoscaler";

/// Begins to watch. Ends with the set.
pub(crate) fn watch(client: &Client, dispatcher: &Arc<Dispatcher>, tasks: &mut JoinSet<()>) {
    let any = watcher::Config::default();
    let hpas = GroupVersionKind::gvk("autoscaling", "v2", "HorizontalPodAutoscaler");
    tasks.spawn(follow(client, &hpas, any.clone(), dispatcher.clone(), status_write));
    let apps = ["Deployment", "ReplicaSet", "StatefulSet"];
    let apps = apps.map(|kind| GroupVersionKind::gvk("apps", "v1", kind));
    let core = GroupVersionKind::gvk("", "v1", "ReplicationController");
    for kind in apps.into_iter().chain([core]) {
        let config = any.clone().labels(PLAYED);
        tasks.spawn(follow(client, &kind, config, dispatcher.clone(), scale_write));
    }
    let events = GroupVersionKind::gvk("", "v1", "Event");
    tasks.spawn(follow(client, &events, any.fields(OF_HPAS), dispatcher.clone(), event));
}

/// What a version says that was done, beside the one before it (nothing of the first one); by the
/// name of its resource.
type Says = fn(Option<&Value>, &Value, &str) -> Option<(&'static str, Value)>;

/// Tells of each version of the objects of a kind.
fn follow(
    client: &Client,
    kind: &GroupVersionKind,
    config: watcher::Config,
    dispatcher: Arc<Dispatcher>,
    says: Says,
) -> impl Future<Output = ()> + 'static {
    let resource = ApiResource::from_gvk(kind);
    let named = with_group(&resource.plural, &resource.group);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut events: BoxStream<'static, Result<Event<DynamicObject>, watcher::Error>> =
        watcher(api, config).boxed();
    async move {
        let mut versions = Versions::default();
        let (mut begun, mut refusals) = (false, Refusals::default());
        loop {
            match events.try_next().await {
                Ok(Some(Event::Apply(object) | Event::InitApply(object))) => {
                    let namespace = object.metadata.namespace.clone().unwrap_or_default();
                    let object = serde_json::to_value(object).unwrap_or_default();
                    if let Some((what, entry)) = versions.next(object, &named, says) {
                        dispatcher.dispatch(&namespace, seen(what, entry));
                    }
                }
                Ok(Some(Event::Delete(object))) => {
                    versions.forget(&object.metadata.uid.unwrap_or_default());
                }
                // All is listed anew: the first time, and when the API server forgot where we were.
                Ok(Some(Event::Init)) => {
                    if std::mem::replace(&mut begun, true) {
                        dispatcher.dispatch_to_all(&seen(GAP, Value::Null));
                    }
                }
                Ok(Some(Event::InitDone)) => {}
                Ok(None) => return,
                Err(error) => refusals.wait_after(&error, &named, &dispatcher).await,
            }
        }
    }
}

/// Something that is seen now.
fn seen(what: &'static str, entry: Value) -> ObservedAction {
    let now = Timestamp::now();
    ObservedAction { at: now, done: now, what, entry, by: String::new() }
}

/// The last version of each object.
#[derive(Default)]
struct Versions {
    by_uid: HashMap<String, Value>,
}

impl Versions {
    fn next(&mut self, object: Value, resource: &str, says: Says) -> Option<(&'static str, Value)> {
        let of = |object: &Value, field: &str| {
            object["metadata"][field].as_str().unwrap_or_default().to_owned()
        };
        let uid = of(&object, "uid");
        let before = self.by_uid.get(&uid);
        let version = of(&object, "resourceVersion");
        // The same may be told twice, when all is listed anew.
        if before.is_some_and(|before| of(before, "resourceVersion") == version) {
            return None;
        }
        let said = says(before, &object, resource);
        self.by_uid.insert(uid, object);
        said
    }

    fn forget(&mut self, uid: &str) {
        self.by_uid.remove(uid);
    }
}

/// Nobody but the controller writes an HPA's status.
fn status_write(before: Option<&Value>, object: &Value, _: &str) -> Option<(&'static str, Value)> {
    let (before, status) = (&before?["status"], &object["status"]);
    (before != status).then(|| {
        let name = &object["metadata"]["name"];
        ("updateStatus", json!({ "name": name, "status": status, "error": null }))
    })
}

/// Other sizes than ours are the controller's. Those of a Deployment's own ReplicaSets are not.
fn scale_write(
    before: Option<&Value>,
    object: &Value,
    resource: &str,
) -> Option<(&'static str, Value)> {
    let replicas = |object: &Value| object["spec"]["replicas"].as_i64().unwrap_or(1);
    let (before, now) = (replicas(before?), replicas(object));
    let owners = object["metadata"]["ownerReferences"].as_array();
    if before == now || owners.is_some_and(|owners| !owners.is_empty()) || is_ours(object) {
        return None;
    }
    let entry = json!({
        "resource": resource,
        "name": object["metadata"]["name"],
        "replicas": now,
        "error": null,
    });
    Some(("updateScale", entry))
}

/// Whether the size is as we have written it.
fn is_ours(object: &Value) -> bool {
    let fields = object["metadata"]["managedFields"].as_array();
    fields
        .into_iter()
        .flatten()
        .any(|it| it["manager"] == WRITER && it["fieldsV1"]["f:spec"].get("f:replicas").is_some())
}

/// Each version of an event is one more time that it was recorded.
fn event(_: Option<&Value>, object: &Value, _: &str) -> Option<(&'static str, Value)> {
    Some(("event", event_entry(object)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hpa(version: u32, status: Value) -> Value {
        let metadata = json!({ "uid": "a", "name": "web", "resourceVersion": version.to_string() });
        json!({ "metadata": metadata, "status": status })
    }

    #[test]
    fn a_changed_status_is_a_write() {
        let mut versions = Versions::default();
        let mut next = |version, desired: i32| {
            versions.next(hpa(version, json!({ "desiredReplicas": desired })), "", status_write)
        };
        assert_eq!(next(1, 0), None, "as it was created");
        let (what, entry) = next(2, 3).expect("it is another");
        assert_eq!((what, &entry["status"]["desiredReplicas"]), ("updateStatus", &json!(3)));
        assert_eq!(entry["name"], "web");
        assert_eq!(next(3, 3), None, "the spec was edited");
        assert_eq!(next(3, 4), None, "the same version, told again");
    }

    #[test]
    fn replicas_that_we_did_not_write_are_the_controllers() {
        let of = |version: u32, replicas: i32, manager: &str| {
            let metadata = json!({
                "uid": "a",
                "name": "web",
                "resourceVersion": version.to_string(),
                "managedFields": [
                    { "manager": "other", "fieldsV1": { "f:status": {} } },
                    { "manager": manager, "fieldsV1": { "f:spec": { "f:replicas": {} } } },
                ],
            });
            json!({ "metadata": metadata, "spec": { "replicas": replicas } })
        };
        let mut versions = Versions::default();
        let mut next = |object: Value| versions.next(object, "deployments.apps", scale_write);
        assert_eq!(next(of(1, 3, WRITER)), None);
        assert_eq!(next(of(2, 5, WRITER)), None, "somebody scales it: that is us");
        let (what, entry) = next(of(3, 6, "kube-controller-manager")).expect("it was scaled");
        assert_eq!(what, "updateScale");
        let scaled = (&entry["resource"], &entry["name"], &entry["replicas"]);
        assert_eq!(scaled, (&json!("deployments.apps"), &json!("web"), &json!(6)));
        assert_eq!(next(of(4, 6, "kube-controller-manager")), None);
        let mut owned = of(5, 7, "kube-controller-manager");
        owned["metadata"]["ownerReferences"] = json!([{ "kind": "Deployment" }]);
        assert_eq!(next(owned), None, "a Deployment's own ReplicaSet");
    }
}
