//! What the API server tells of the controller's requests: its audit log, on its standard output.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::sync::mpsc::UnboundedSender;

use super::Sight;
use crate::compare::Scope;
use crate::model::time::Span;

/// What is seen so. The controller's error log is not told by any API, and events are written
/// later: they are compared when all is over.
pub(super) const SIGHT: Sight = Sight {
    scope: Scope { reads: true, scale_reads: true, events: false, errors: false },
    // Clocks of two processes of one machine, and the time from a clock's reading to a request.
    uncertainty: Span::from_millis(4),
    linger: Span::ZERO,
    events: Span::from_secs(5),
};

/// Something that the controller did, as the protocol writes it.
#[derive(Clone, Debug)]
pub(crate) struct Did {
    /// When its request came.
    pub(crate) at: Timestamp,
    /// When it was answered.
    pub(crate) done: Timestamp,
    /// What it was, and the protocol's name for it.
    pub(crate) what: &'static str,
    pub(crate) entry: Value,
}

/// Hands on what is done in each namespace to the one who plays there.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    by_namespace: Mutex<HashMap<String, UnboundedSender<Did>>>,
    /// Why a line of the log was not understood.
    lost: Mutex<Option<String>>,
}

impl Routes {
    pub(crate) fn open(&self, namespace: &str, to: UnboundedSender<Did>) {
        let mut routes = self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        routes.insert(namespace.to_owned(), to);
    }

    pub(crate) fn close(&self, namespace: &str) {
        let mut routes = self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        routes.remove(namespace);
    }

    pub(super) fn hand(&self, namespace: &str, did: Did) {
        let routes = self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(to) = routes.get(namespace) {
            // Nobody listens any more when a scenario is over.
            let _ = to.send(did);
        }
    }

    /// Tells all of them.
    pub(super) fn hand_all(&self, did: &Did) {
        let routes = self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        routes.values().for_each(|to| drop(to.send(did.clone())));
    }

    fn lock_lost(&self) -> MutexGuard<'_, Option<String>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why something that was done may not have been handed on.
    pub(crate) fn lost(&self) -> Option<String> {
        self.lock_lost().clone()
    }

    /// Reads the log to its end.
    pub(crate) async fn read(self: Arc<Routes>, log: impl AsyncRead + Unpin) {
        let mut lines = BufReader::new(log).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let event = match serde_json::from_str::<Event>(&line) {
                Ok(event) => event,
                Err(error) if line.starts_with('{') => {
                    // Without it a reconcile can't be told from another one.
                    let start: String = line.chars().take(200).collect();
                    *self.lock_lost() = Some(format!("{error}: {start}"));
                    continue;
                }
                // What the API server prints besides is not for us.
                Err(_) => continue,
            };
            let namespace = event.object_ref.as_ref().and_then(|of| of.namespace.clone());
            if let (Some(namespace), Some(did)) = (namespace, did(event)) {
                self.hand(&namespace, did);
            }
        }
    }
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

fn did(event: Event) -> Option<Did> {
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
        ("update", _, "scale") => (
            "updateScale",
            json!({
                "resource": resource,
                "name": of.name,
                "replicas": asked["spec"]["replicas"].as_i64().unwrap_or_default(),
                "error": failed,
            }),
        ),
        ("update", "horizontalpodautoscalers", "status") => {
            let stored = if failed.is_some() { &asked } else { &answer };
            let entry = json!({ "name": of.name, "status": stored["status"], "error": failed });
            ("updateStatus", entry)
        }
        ("create" | "patch", "events", _) if failed.is_none() => ("event", event_entry(&answer)),
        _ => return None,
    };
    let (at, done) = (event.request_received_timestamp, event.stage_timestamp);
    Some(Did { at, done, what, entry })
}

/// An event of either API.
pub(super) fn event_entry(event: &Value) -> Value {
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
