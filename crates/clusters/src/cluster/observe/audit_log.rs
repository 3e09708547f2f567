//! Reads the API server's audit log from its standard output.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::cluster::observe::action;
use crate::cluster::observe::action::ObservedAction;
use crate::cluster::observe::dispatch::Dispatcher;
use crate::cluster::observe::observability::Observability;
use crate::cluster::tolerances::{AUDIT_LOG_EVENT_DELAY, AUDIT_LOG_UNCERTAINTY};
use kube_autoscaler_models::api::with_group;
use kube_autoscaler_models::observation::{
    ControllerAction, ScaleReplicas, ScaleWrite, StatusWrite,
};
use kube_autoscaler_models::time::Span;
use kube_lockstep_scenario::resolved::BUILT_IN;
use kube_lockstep_sim::trace::Scope;

/// The controller's error log can't be observed, because it is not in the API. Events are written
/// later: they are compared at the end of a scenario.
pub(crate) const OBSERVABILITY: Observability = Observability {
    scope: Scope {
        events: false,
        sent_events: false,
        errors: false,
        bodies: false,
        controller_metrics: false,
        ..Scope::ALL
    },
    uncertainty: AUDIT_LOG_UNCERTAINTY,
    linger: Span::ZERO,
    events: AUDIT_LOG_EVENT_DELAY,
};

/// Reads the log to its end, and dispatches the actions of the controller.
pub(crate) async fn read(dispatcher: Arc<Dispatcher>, log: impl AsyncRead + Unpin) {
    read_events(log, |event| {
        let event: AuditEvent = match event {
            Ok(event) => event,
            // Without this line, reconciles can't be distinguished.
            Err(why) => return dispatcher.mark_incomplete(why),
        };
        let namespace = event.object_ref.as_ref().and_then(|it| it.namespace.clone());
        if let Some(message) = event.forbidden() {
            dispatcher.add_forbidden(namespace.clone(), message);
        }
        if let (Some(namespace), Some(action)) = (namespace, event.action()) {
            dispatcher.dispatch(&namespace, action);
        }
    })
    .await;
}

/// Reads the log to its end. A line that can't be parsed is an error.
pub(crate) async fn read_events(
    log: impl AsyncRead + Unpin,
    mut found: impl FnMut(Result<AuditEvent, String>),
) {
    let mut lines = BufReader::new(log).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match serde_json::from_str(&line) {
            Ok(event) => found(Ok(event)),
            Err(error) if line.starts_with('{') => {
                let start: String = line.chars().take(200).collect();
                found(Err(format!(
                    "a line of the API server's audit log can't be parsed: {error}: {start}"
                )));
            }
            // Other output of the API server.
            Err(_) => {}
        }
    }
}

/// An `audit.k8s.io/v1` Event, with the fields that are used.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditEvent {
    pub verb: String,
    pub(crate) object_ref: Option<ObjectRef>,
    #[serde(default)]
    response_status: Status,
    #[serde(default)]
    request_object: Value,
    #[serde(default)]
    pub(crate) response_object: Value,
    pub(crate) request_received_timestamp: Timestamp,
    pub(crate) stage_timestamp: Timestamp,
}

#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ObjectRef {
    pub resource: String,
    pub namespace: Option<String>,
    pub name: String,
    api_group: String,
    subresource: String,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
struct Status {
    code: u16,
    message: Option<String>,
}

/// Returns true if a resource has `spec.replicas` besides its scale subresource.
fn has_replicas(resource: &str) -> bool {
    BUILT_IN.iter().any(|kind| kind.group_resource() == resource)
}

impl AuditEvent {
    /// The message of a request that was forbidden.
    fn forbidden(&self) -> Option<String> {
        let message = || self.response_status.message.as_ref().unwrap_or(&self.verb).clone();
        (self.response_status.code == 403).then(message)
    }

    /// Returns true if the object of the request did not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        self.response_status.code == 404
    }

    /// The message of a request that failed.
    pub(crate) fn error(&self) -> Option<Arc<str>> {
        let Status { code, message } = &self.response_status;
        let body_message = || self.response_object["message"].as_str();
        (*code >= 400).then(|| message.as_deref().or_else(body_message).unwrap_or_default().into())
    }

    /// The controller's action, if the request is relevant.
    fn action(self) -> Option<ObservedAction> {
        let error = self.error();
        let (received, answered) = (self.request_received_timestamp, self.stage_timestamp);
        let observed = |action| ObservedAction::new(received, answered, action);
        let ObjectRef { resource: plural, name, api_group, subresource, .. } =
            self.object_ref.as_ref()?;
        let resource: Arc<str> = with_group(plural, api_group).into();
        let name: Arc<str> = name.as_str().into();
        match (self.verb.as_str(), plural.as_str(), subresource.as_str()) {
            ("get", _, "scale") => {
                let answer = match error {
                    Some(error) => Err(error),
                    None => Ok(scale_replicas(&self.response_object)),
                };
                Some(observed(ControllerAction::GetScale { resource, name, answer }))
            }
            ("update" | "patch", _, "scale") => {
                // If the form of a patch is unknown, the result of the patch is used.
                let written = written_replicas(&self.request_object);
                let replicas =
                    written.unwrap_or_else(|| scale_replicas(&self.response_object).replicas);
                let write = ScaleWrite { resource, name, replicas, error, sent: None };
                Some(observed(ControllerAction::UpdateScale(write)))
            }
            ("update" | "patch", _, "") if has_replicas(&resource) => {
                let replicas = written_replicas(&self.request_object)?;
                let write = ScaleWrite { resource, name, replicas, error, sent: None };
                let action = observed(ControllerAction::UpdateScale(write));
                Some(ObservedAction { direct: true, ..action })
            }
            ("update" | "patch", "horizontalpodautoscalers", "status") => {
                // A patch is only part of the status that is stored.
                let object =
                    if error.is_some() { &self.request_object } else { &self.response_object };
                let status = object.get("status").filter(|status| status.is_object());
                let write = StatusWrite { name, error, ..StatusWrite::default() };
                Some(ObservedAction::status_write(received, answered, status, write))
            }
            ("create" | "patch", "events", _) if error.is_none() => {
                action::event(&self.response_object).map(observed)
            }
            _ => None,
        }
    }
}

/// The replicas of a Scale of any version.
fn scale_replicas(scale: &Value) -> ScaleReplicas {
    let replicas = |of: &str| i32::deserialize(&scale[of]["replicas"]).unwrap_or_default();
    ScaleReplicas { replicas: replicas("spec"), status_replicas: replicas("status") }
}

/// The `spec.replicas` of an object, of a merge patch, of a server-side apply, or of a JSON patch.
fn written_replicas(request: &Value) -> Option<i32> {
    let replicas = match request.as_array() {
        None => &request["spec"]["replicas"],
        Some(operations) => {
            let is_write = |it: &&Value| it["path"] == "/spec/replicas" && it["op"] != "test";
            &operations.iter().rfind(is_write)?["value"]
        }
    };
    i32::deserialize(replicas).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kube_autoscaler_models::api::HpaStatus;

    /// A request, and the answer to it.
    struct Request {
        verb: &'static str,
        object: Value,
        request: Value,
        response: Value,
        code: u16,
    }

    impl Request {
        fn read(self) -> Option<ObservedAction> {
            let mut object_ref = json!({ "namespace": "shop", "name": "web" });
            for (key, value) in self.object.as_object().expect("an object") {
                object_ref[key] = value.clone();
            }
            let event = json!({
                "verb": self.verb,
                "objectRef": object_ref,
                "responseStatus": {
                    "code": self.code,
                    "message": (self.code >= 400).then_some("no"),
                },
                "requestObject": self.request,
                "responseObject": self.response,
                "requestReceivedTimestamp": "2026-01-02T03:04:05.000001Z",
                "stageTimestamp": "2026-01-02T03:04:05.000002Z",
            });
            serde_json::from_value::<AuditEvent>(event).expect("an event").action()
        }
    }

    fn write(replicas: i32, error: Option<&str>) -> ScaleWrite {
        let (resource, name) = ("deployments.apps".into(), "web".into());
        ScaleWrite { resource, name, replicas, error: error.map(Into::into), sent: None }
    }

    #[test]
    fn replicas_are_read_from_every_form_of_a_write() {
        let scale =
            json!({ "resource": "deployments", "apiGroup": "apps", "subresource": "scale" });
        let response = json!({ "spec": { "replicas": 7 } });
        let whole = json!({ "spec": { "replicas": 7 }, "metadata": {} });
        let merge = json!({ "spec": { "replicas": 7 } });
        let operations = json!([
            { "op": "test", "path": "/spec/replicas", "value": 3 },
            { "op": "replace", "path": "/spec/replicas", "value": 7 },
        ]);
        for (verb, request) in [("update", &whole), ("patch", &merge), ("patch", &operations)] {
            let send = |response: Value, code| {
                let (object, request) = (scale.clone(), request.clone());
                Request { verb, object, request, response, code }.read().expect("a write")
            };
            let accepted = send(response.clone(), 200);
            assert_eq!(accepted.scale_write(), Some(&write(7, None)), "{request}");
            assert!(!accepted.direct);
            assert_eq!(send(Value::Null, 409).scale_write(), Some(&write(7, Some("no"))));
        }
    }

    #[test]
    fn replicas_may_be_written_to_the_target_itself() {
        let send = |resource: &str, request: Value| {
            let object = json!({ "resource": resource, "apiGroup": "apps" });
            let response = json!({ "spec": { "replicas": 7 } });
            Request { verb: "patch", object, request, response, code: 200 }.read()
        };
        let replicas = json!({ "spec": { "replicas": 7 } });
        let action = send("deployments", replicas.clone()).expect("a write");
        assert_eq!((action.scale_write(), action.direct), (Some(&write(7, None)), true));
        let labels = json!({ "metadata": { "labels": { "a": "b" } } });
        assert_eq!(send("deployments", labels), None);
        assert_eq!(send("daemonsets", replicas), None);
    }

    #[test]
    fn a_patch_of_the_status_is_read_from_the_stored_status() {
        let send = |request: Value, response: Value, code| {
            let object = json!({
                "resource": "horizontalpodautoscalers",
                "apiGroup": "autoscaling",
                "subresource": "status",
            });
            let action = Request { verb: "patch", object, request, response, code }.read();
            let ControllerAction::UpdateStatus(write) = action.expect("a write").action else {
                panic!("not a write of the status");
            };
            write
        };
        let stored = json!({ "status": { "desiredReplicas": 7, "currentReplicas": 3 } });
        let write = send(json!({ "status": { "desiredReplicas": 7 } }), stored, 200);
        assert_eq!((write.status.desired_replicas, write.status.current_replicas), (7, Some(3)));
        let operations = json!([{ "op": "add", "path": "/status/desiredReplicas", "value": 7 }]);
        let write = send(operations, Value::Null, 403);
        assert_eq!((write.status, write.error.as_deref()), (HpaStatus::default(), Some("no")));
    }

    #[test]
    fn a_status_that_the_model_cannot_represent_is_reported_with_the_reason() {
        let conditions = json!([{ "type": "Paused", "status": "True" }]);
        let action = Request {
            verb: "update",
            object: json!({ "resource": "horizontalpodautoscalers", "subresource": "status" }),
            request: Value::Null,
            response: json!({ "status": { "conditions": conditions } }),
            code: 200,
        };
        let unreadable = action.read().and_then(|action| action.unreadable).expect("a reason");
        assert!(unreadable.contains("Paused"), "{unreadable}");
    }

    #[tokio::test]
    async fn messages_of_forbidden_requests_are_kept() {
        let dispatcher = Arc::new(Dispatcher::default());
        let line = |namespace: Option<&str>, code: u16| {
            let event = json!({
                "verb": "list",
                "objectRef": { "resource": "pods", "namespace": namespace },
                "responseStatus": { "code": code, "message": "pods is forbidden" },
                "requestReceivedTimestamp": "2026-01-02T03:04:05.000001Z",
                "stageTimestamp": "2026-01-02T03:04:05.000002Z",
            });
            format!("{event}\n")
        };
        read(dispatcher.clone(), line(Some("shop"), 404).as_bytes()).await;
        assert_eq!(dispatcher.forbidden("shop"), Vec::<String>::new());
        let twice = line(Some("shop"), 403).repeat(2);
        read(dispatcher.clone(), twice.as_bytes()).await;
        assert_eq!(dispatcher.forbidden("shop").len(), 1);
        assert_eq!(dispatcher.forbidden("other").len(), 0);
        read(dispatcher.clone(), line(None, 403).as_bytes()).await;
        assert_eq!(dispatcher.forbidden("other").len(), 1);
    }
}
