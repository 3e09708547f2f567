//! What the API server tells of the controller's requests: its audit log, on its standard output.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::compare::Scope;
use crate::engine::cluster::observe::action::{DIRECT, ObservedAction};
use crate::engine::cluster::observe::dispatch::Dispatcher;
use crate::engine::cluster::observe::observability::Observability;
use crate::model::time::Span;

/// What is seen so. The controller's error log is not told by any API, and events are written
/// later: they are compared when all is over.
pub(crate) const OBSERVABILITY: Observability = Observability {
    scope: Scope { events: false, errors: false, ..Scope::ALL },
    // Clocks of two processes of one machine, and the time from a clock's reading to a request.
    uncertainty: Span::from_millis(4),
    linger: Span::ZERO,
    // They are written one after the other, for all scenarios.
    events: Span::from_secs(20),
};

/// Reads the log to its end, and dispatches what the controller did.
pub(crate) async fn read(dispatcher: Arc<Dispatcher>, log: impl AsyncRead + Unpin) {
    let mut lines = BufReader::new(log).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let event = match serde_json::from_str::<Event>(&line) {
            Ok(event) => event,
            Err(error) if line.starts_with('{') => {
                // Without it a reconcile can't be told from another one.
                let start: String = line.chars().take(200).collect();
                dispatcher.mark_incomplete(format!(
                    "a line of the API server's audit log makes no sense: {error}: {start}"
                ));
                continue;
            }
            // What the API server prints besides is not for us.
            Err(_) => continue,
        };
        keep_refusal(&dispatcher, &event);
        let namespace = event.object_ref.as_ref().and_then(|of| of.namespace.clone());
        if let (Some(namespace), Some(did)) = (namespace, did(event)) {
            dispatcher.dispatch(&namespace, did);
        }
    }
}

fn keep_refusal(dispatcher: &Dispatcher, event: &Event) {
    let Some(status) = event.response_status.as_ref().filter(|it| it.code == 403) else { return };
    let namespace = event.object_ref.as_ref().and_then(|of| of.namespace.clone());
    let message = status.message.clone().unwrap_or_else(|| event.verb.clone());
    dispatcher.keep_refusal(namespace, message);
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    object_ref: Option<ObjectRef>,
    response_status: Option<Status>,
    request_object: Option<Value>,
    response_object: Option<Value>,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct ObjectRef {
    resource: String,
    namespace: Option<String>,
    name: String,
    api_group: String,
    subresource: String,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
struct Status {
    code: u16,
    message: Option<String>,
}

fn did(event: Event) -> Option<ObservedAction> {
    let of = event.object_ref?;
    let status = event.response_status.unwrap_or_default();
    let failed = (status.code >= 400).then(|| {
        let said = event.response_object.as_ref().and_then(|answer| answer["message"].as_str());
        status.message.or_else(|| said.map(str::to_owned)).unwrap_or_default()
    });
    let answer = event.response_object.unwrap_or_default();
    let asked = event.request_object.unwrap_or_default();
    let resource = crate::model::api::with_group(&of.resource, &of.api_group);
    let (what, entry) = match (event.verb.as_str(), &*of.resource, &*of.subresource) {
        ("get", _, "scale") => (
            "getScale",
            match failed {
                Some(error) => json!({ "resource": resource, "name": of.name, "error": error }),
                None => json!({
                    "resource": resource,
                    "name": of.name,
                    "replicas": answer["spec"]["replicas"].as_i64().unwrap_or_default(),
                    "statusReplicas": answer["status"]["replicas"].as_i64().unwrap_or_default(),
                }),
            },
        ),
        ("update" | "patch", _, "scale") => {
            ("updateScale", scale_entry((&resource, &of.name), (&asked, &answer), failed))
        }
        // Somebody may scale without the scale: what is written then is the same field.
        ("update" | "patch", _, "") if SCALED.contains(&&*resource) => {
            replicas(&asked)?;
            let mut entry = scale_entry((&resource, &of.name), (&asked, &answer), failed);
            entry[DIRECT] = true.into();
            ("updateScale", entry)
        }
        ("update" | "patch", "horizontalpodautoscalers", "status") => {
            // A patch is a part of what is stored then.
            let stored = if failed.is_some() { &asked } else { &answer };
            let status = stored.get("status").filter(|status| status.is_object());
            let status = status.cloned().unwrap_or_else(|| json!({}));
            ("updateStatus", json!({ "name": of.name, "status": status, "error": failed }))
        }
        ("create" | "patch", "events", _) if failed.is_none() => ("event", event_entry(&answer)),
        _ => return None,
    };
    let (at, done) = (event.request_received_timestamp, event.stage_timestamp);
    Some(ObservedAction { at, done, what, entry, by: String::new() })
}

/// What has `spec.replicas`, and a scale besides.
const SCALED: [&str; 4] =
    ["deployments.apps", "replicasets.apps", "statefulsets.apps", "replicationcontrollers"];

/// A write of a size: what was asked for, or, of a patch that says it in its own way, what came of
/// it.
fn scale_entry(
    (resource, name): (&str, &str),
    (asked, answer): (&Value, &Value),
    failed: Option<String>,
) -> Value {
    let replicas = replicas(asked).or(answer["spec"]["replicas"].as_i64()).unwrap_or_default();
    json!({ "resource": resource, "name": name, "replicas": replicas, "error": failed })
}

/// The `spec.replicas` of an object, of a merge patch or of what is to be applied, or of a JSON
/// patch.
fn replicas(asked: &Value) -> Option<i64> {
    let Some(steps) = asked.as_array() else { return asked["spec"]["replicas"].as_i64() };
    let last =
        steps.iter().rev().find(|step| step["path"] == "/spec/replicas" && step["op"] != "test");
    last?["value"].as_i64()
}

/// An event of either API.
pub(crate) fn event_entry(event: &Value) -> Value {
    let of = |one: &str, other: &str| match &event[one] {
        Value::Null => event[other].clone(),
        value => value.clone(),
    };
    json!({
        "hpa": of("involvedObject", "regarding")["name"],
        "type": event["type"],
        "reason": event["reason"],
        "message": of("message", "note"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event of the log, and what it says.
    fn heard(
        verb: &str,
        of: Value,
        (asked, answer): (Value, Value),
        code: u16,
    ) -> Option<ObservedAction> {
        let mut of_all = json!({ "namespace": "shop", "name": "web" });
        for (key, value) in of.as_object().expect("an object") {
            of_all[key] = value.clone();
        }
        let event = json!({
            "verb": verb,
            "objectRef": of_all,
            "responseStatus": { "code": code, "message": (code >= 400).then_some("no") },
            "requestObject": asked,
            "responseObject": answer,
            "requestReceivedTimestamp": "2026-01-02T03:04:05.000001Z",
            "stageTimestamp": "2026-01-02T03:04:05.000002Z",
        });
        did(serde_json::from_value(event).expect("an event"))
    }

    fn scale() -> Value {
        json!({ "resource": "deployments", "apiGroup": "apps", "subresource": "scale" })
    }

    #[test]
    fn replicas_are_read_from_each_form_of_a_request() {
        let answer = json!({ "spec": { "replicas": 7 } });
        let whole = json!({ "spec": { "replicas": 7 }, "metadata": {} });
        let merge = json!({ "spec": { "replicas": 7 } });
        let steps = json!([
            { "op": "test", "path": "/spec/replicas", "value": 3 },
            { "op": "replace", "path": "/spec/replicas", "value": 7 },
        ]);
        for (verb, asked) in [("update", &whole), ("patch", &merge), ("patch", &steps)] {
            let did = heard(verb, scale(), (asked.clone(), answer.clone()), 200).expect("a write");
            assert_eq!(did.what, "updateScale");
            assert_eq!(did.entry["replicas"], 7, "{asked}");
            assert_eq!(did.entry["resource"], "deployments.apps");
            assert_eq!(did.entry["error"], Value::Null);
            let failed = heard(verb, scale(), (asked.clone(), Value::Null), 409).expect("a write");
            assert_eq!(
                (&failed.entry["replicas"], &failed.entry["error"]),
                (&7.into(), &"no".into())
            );
        }
    }

    #[test]
    fn replicas_may_be_written_without_the_scale_subresource() {
        let deployment = || json!({ "resource": "deployments", "apiGroup": "apps" });
        let answer = || json!({ "spec": { "replicas": 7 } });
        let did = heard("patch", deployment(), (answer(), answer()), 200).expect("a write");
        assert_eq!((did.what, &did.entry[DIRECT]), ("updateScale", &true.into()));
        let labels = json!({ "metadata": { "labels": { "a": "b" } } });
        assert!(heard("patch", deployment(), (labels, answer()), 200).is_none());
        let pods = json!({ "resource": "pods" });
        assert!(heard("patch", pods, (answer(), answer()), 200).is_none());
    }

    #[test]
    fn a_status_patch_counts_as_the_stored_status() {
        let hpa = || {
            json!({
                "resource": "horizontalpodautoscalers",
                "apiGroup": "autoscaling",
                "subresource": "status",
            })
        };
        let stored = json!({ "status": { "desiredReplicas": 7, "currentReplicas": 3 } });
        let patch = json!({ "status": { "desiredReplicas": 7 } });
        let did = heard("patch", hpa(), (patch, stored.clone()), 200).expect("a write");
        assert_eq!((did.what, &did.entry["status"]), ("updateStatus", &stored["status"]));
        let steps = json!([{ "op": "add", "path": "/status/desiredReplicas", "value": 7 }]);
        let did = heard("patch", hpa(), (steps, Value::Null), 403).expect("a write");
        assert_eq!((&did.entry["status"], &did.entry["error"]), (&json!({}), &"no".into()));
    }

    #[test]
    fn forbidden_requests_are_recorded() {
        let dispatcher = Dispatcher::default();
        let refused = |namespace: Option<&str>, code: u16| {
            let event = json!({
                "verb": "list",
                "objectRef": { "resource": "pods", "namespace": namespace },
                "responseStatus": { "code": code, "message": "pods is forbidden" },
                "requestReceivedTimestamp": "2026-01-02T03:04:05.000001Z",
                "stageTimestamp": "2026-01-02T03:04:05.000002Z",
            });
            keep_refusal(&dispatcher, &serde_json::from_value(event).expect("an event"));
        };
        refused(Some("shop"), 404);
        assert_eq!(dispatcher.refused("shop"), Vec::<String>::new());
        refused(Some("shop"), 403);
        refused(Some("shop"), 403);
        assert_eq!(dispatcher.refused("shop").len(), 1);
        assert_eq!(dispatcher.refused("other").len(), 0);
        refused(None, 403);
        assert_eq!(dispatcher.refused("other").len(), 1);
    }
}
