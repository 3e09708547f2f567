//! Observation of a controller without an audit log, by the objects that it writes.
//!
//! Each write of an HPA's status, of a target's replicas and of an event creates a new version of
//! an object, which a watch reports. Other requests can't be observed: reads of the scale, rejected
//! requests, and writes without a change (upstream's controller sends none).
//! Queries of the metrics APIs are recorded by the server that answers them.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::cluster::labels::{SCENARIO_OBJECT, WRITER};
use crate::cluster::observe::action;
use crate::cluster::observe::action::ObservedAction;
use crate::cluster::observe::dispatch::Dispatcher;
use crate::cluster::observe::observability::Observability;
use crate::cluster::observe::watch_retry::watch;
use crate::cluster::resources;
use crate::cluster::tolerances::{WATCH_EVENT_DELAY, WATCH_LINGER, WATCH_UNCERTAINTY};
use kube_autoscaler_models::api::with_group;
use kube_autoscaler_models::observation::{ControllerAction, ScaleWrite, StatusWrite};
use kube_lockstep_scenario::resolved::BUILT_IN;
use kube_lockstep_sim::trace::Scope;

pub(crate) const OBSERVABILITY: Observability = Observability {
    scope: Scope {
        scale_reads: false,
        events: false,
        sent_events: false,
        errors: false,
        order: false,
        bodies: false,
        controller_metrics: false,
        ..Scope::ALL
    },
    uncertainty: WATCH_UNCERTAINTY,
    linger: WATCH_LINGER,
    events: WATCH_EVENT_DELAY,
};

/// Selects the events of HPAs.
const EVENTS_OF_HPAS: &str = "involvedObject.kind=HorizontalPodAutoscaler";

/// Starts the watches, which end with the set.
pub(crate) fn start(client: &Client, dispatcher: &Arc<Dispatcher>, tasks: &mut JoinSet<()>) {
    let mut observe = |resource, config, read| {
        tasks.spawn(follow(client.clone(), resource, config, dispatcher.clone(), read));
    };
    let any = watcher::Config::default();
    observe(resources::hpas("v2"), any.clone(), status_write as Read);
    for kind in &BUILT_IN {
        observe(resources::scalable(kind), any.clone().labels(SCENARIO_OBJECT), scale_write);
    }
    let events = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Event"));
    observe(events, any.fields(EVENTS_OF_HPAS), event);
}

/// A version of an object, and the one before it.
struct Versions<'a> {
    /// The resource with its group: `deployments.apps`.
    resource: &'a str,
    before: Option<&'a DynamicObject>,
    now: &'a DynamicObject,
}

/// Reads the controller's action from a new version of an object.
type Read = fn(&Versions<'_>) -> Option<ObservedAction>;

/// Watches the objects of a kind, and dispatches the controller's actions.
async fn follow(
    client: Client,
    resource: ApiResource,
    config: watcher::Config,
    dispatcher: Arc<Dispatcher>,
    read: Read,
) {
    let name = with_group(&resource.plural, &resource.group);
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let mut events = std::pin::pin!(watch(api, config, name.clone(), dispatcher.clone()));
    let mut history = History::default();
    let mut is_listed = false;
    while let Some(event) = events.next().await {
        match event {
            Event::Apply(object) | Event::InitApply(object) => {
                let namespace = object.namespace().unwrap_or_default();
                if let Some(action) = history.next(object, &name, read) {
                    dispatcher.dispatch(&namespace, action);
                }
            }
            Event::Delete(object) => history.forget(&object),
            // All objects are listed at the start, and when the API server no longer has the
            // changes since the last observed version.
            Event::Init if is_listed => dispatcher.add_gap(),
            Event::Init | Event::InitDone => is_listed = true,
        }
    }
}

/// The last version of each object, by UID.
#[derive(Default)]
struct History(HashMap<String, DynamicObject>);

impl History {
    fn next(
        &mut self,
        object: DynamicObject,
        resource: &str,
        read: Read,
    ) -> Option<ObservedAction> {
        let uid = object.uid().unwrap_or_default();
        let before = self.0.get(&uid);
        // A new list repeats known versions.
        if before.is_some_and(|before| before.resource_version() == object.resource_version()) {
            return None;
        }
        let action = read(&Versions { resource, before, now: &object });
        self.0.insert(uid, object);
        action
    }

    fn forget(&mut self, object: &DynamicObject) {
        self.0.remove(&object.uid().unwrap_or_default());
    }
}

/// Only the controller writes the status of an HPA.
fn status_write(versions: &Versions<'_>) -> Option<ObservedAction> {
    let status = |object: &'_ DynamicObject| object.data.get("status").cloned();
    let (before, now) = (status(versions.before?), status(versions.now));
    if before == now {
        return None;
    }
    let write = StatusWrite { name: versions.now.name_any().into(), ..StatusWrite::default() };
    let at = Timestamp::now();
    Some(ObservedAction::status_write(at, at, now.as_ref(), write))
}

/// The controller wrote all replicas that the harness did not write, except the replicas of the
/// ReplicaSets of a Deployment.
fn scale_write(versions: &Versions<'_>) -> Option<ObservedAction> {
    let replicas = |object: &DynamicObject| {
        let replicas = object.data["spec"]["replicas"].as_i64().unwrap_or(1);
        i32::try_from(replicas).ok()
    };
    let (before, now) = (replicas(versions.before?), replicas(versions.now)?);
    if before == Some(now) || !versions.now.owner_references().is_empty() || is_ours(versions.now) {
        return None;
    }
    let (resource, name) = (versions.resource.into(), versions.now.name_any().into());
    let write = ScaleWrite { resource, name, replicas: now, ..ScaleWrite::default() };
    Some(observed(ControllerAction::UpdateScale(write)))
}

/// Returns true if the harness last wrote the replicas.
fn is_ours(object: &DynamicObject) -> bool {
    object.managed_fields().iter().any(|entry| {
        let fields = entry.fields_v1.as_ref().map_or(&Value::Null, |fields| &fields.0);
        entry.manager.as_deref() == Some(WRITER) && fields["f:spec"].get("f:replicas").is_some()
    })
}

/// The controller writes a new version of an event when it records the event again.
fn event(versions: &Versions<'_>) -> Option<ObservedAction> {
    action::event(&versions.now.data).map(observed)
}

fn observed(action: ControllerAction) -> ObservedAction {
    let at = Timestamp::now();
    ObservedAction::new(at, at, action)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(version: u32, managers: &Value, data: Value) -> DynamicObject {
        let mut object = data;
        object["metadata"] = json!({
            "uid": "a",
            "name": "web",
            "resourceVersion": version.to_string(),
            "managedFields": managers,
        });
        serde_json::from_value(object).expect("an object")
    }

    #[test]
    fn a_changed_status_was_written() {
        let mut history = History::default();
        let mut next = |version, desired: i32| {
            let status = json!({ "status": { "desiredReplicas": desired } });
            let action = history.next(object(version, &json!([]), status), "", status_write)?;
            let ControllerAction::UpdateStatus(write) = action.action else {
                panic!("not a write of the status");
            };
            Some((write.name.to_string(), write.status.desired_replicas))
        };
        assert_eq!(next(1, 0), None, "the object was created");
        assert_eq!(next(2, 3), Some(("web".to_owned(), 3)));
        assert_eq!(next(3, 3), None, "the spec was edited");
        assert_eq!(next(3, 4), None, "the version is known");
    }

    #[test]
    fn replicas_that_the_harness_did_not_write_are_the_controllers() {
        let of = |version: u32, replicas: i32, manager: &str| {
            let managers = json!([
                { "manager": "other", "fieldsV1": { "f:status": {} } },
                { "manager": manager, "fieldsV1": { "f:spec": { "f:replicas": {} } } },
            ]);
            object(version, &managers, json!({ "spec": { "replicas": replicas } }))
        };
        let mut history = History::default();
        let mut next = |object| history.next(object, "deployments.apps", scale_write);
        let controller = "kube-controller-manager";
        assert_eq!(next(of(1, 3, WRITER)), None);
        assert_eq!(next(of(2, 5, WRITER)), None, "an action of the scenario");
        let action = next(of(3, 6, controller)).expect("the target was scaled");
        let (resource, name) = ("deployments.apps".into(), "web".into());
        let write = ScaleWrite { resource, name, replicas: 6, ..ScaleWrite::default() };
        assert_eq!(action.scale_write(), Some(&write));
        assert_eq!(next(of(4, 6, controller)), None);
        let mut owned = of(5, 7, controller);
        let owner = json!({ "apiVersion": "", "kind": "Deployment", "name": "web", "uid": "b" });
        owned.metadata.owner_references = Some(vec![serde_json::from_value(owner).unwrap()]);
        assert_eq!(next(owned), None, "a ReplicaSet of a Deployment");
    }
}
