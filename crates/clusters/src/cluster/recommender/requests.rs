//! The writes of recommenders, from the audit log of the API server.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::AsyncRead;

use crate::cluster::observe::audit_log;
use crate::cluster::observe::audit_log::AuditEvent;
use crate::cluster::observe::dispatch::Dispatcher;
use kube_autoscaler_models::vpa::{
    Checkpoint, CheckpointSpec, CheckpointStatus, ObjectName, Tolerances, Write,
};

/// A write of the recommender.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ObservedWrite {
    /// The time when the request arrived.
    pub received: Timestamp,
    /// The time when it was answered.
    pub answered: Timestamp,
    /// The write as the API server stored it, or why it can't be compared.
    pub write: Result<Write, String>,
}

/// Reads the log to its end, and dispatches the writes to the scenarios of their namespaces.
pub(super) async fn read_log(
    dispatcher: Arc<Dispatcher<ObservedWrite>>,
    log: impl AsyncRead + Unpin,
) {
    audit_log::read_events(log, |event| match event {
        Ok(event) => {
            if let (Some(namespace), Some(write)) = (namespace(&event), observed(&event)) {
                dispatcher.dispatch(namespace, write);
            }
        }
        Err(why) => dispatcher.mark_incomplete(why),
    })
    .await;
}

fn namespace(event: &AuditEvent) -> Option<&str> {
    event.object_ref.as_ref()?.namespace.as_deref()
}

/// The write of a request, if it is one.
fn observed(event: &AuditEvent) -> Option<ObservedWrite> {
    let of = event.object_ref.as_ref()?;
    let is_new = event.verb == "create";
    let object = &event.response_object;
    // The API server chooses no names here, but the reference of a create request has none.
    let name = match of.name.as_str() {
        "" => object["metadata"]["name"].as_str().unwrap_or_default(),
        name => name,
    };
    let name = ObjectName::new(of.namespace.as_deref().unwrap_or_default(), name);
    let error = event.error();
    let write = match (event.verb.as_str(), of.resource.as_str()) {
        // The recommender patches a checkpoint in order to see whether it has to create it.
        ("patch", "verticalpodautoscalercheckpoints") if event.is_not_found() => return None,
        ("create" | "patch" | "update" | "delete", _) if error.is_some() => {
            Err(format!("{} {name}: {}", event.verb, error.unwrap_or_default()))
        }
        ("patch" | "update", "verticalpodautoscalers") => status(name, object),
        ("create" | "patch" | "update", "verticalpodautoscalercheckpoints") => {
            checkpoint(name, object, is_new)
        }
        ("delete", "verticalpodautoscalercheckpoints") => Ok(Write::DeleteCheckpoint(name)),
        _ => return None,
    };
    let (received, answered) = (event.request_received_timestamp, event.stage_timestamp);
    Some(ObservedWrite { received, answered, write })
}

fn status(vpa: ObjectName, object: &Value) -> Result<Write, String> {
    let status = read(&vpa, &object["status"])?;
    Ok(Write::observed_status(vpa, status))
}

fn checkpoint(name: ObjectName, object: &Value, is_new: bool) -> Result<Write, String> {
    let spec: CheckpointSpec = read(&name, &object["spec"])?;
    let status: CheckpointStatus = read(&name, &object["status"])?;
    let checkpoint = Arc::new(Checkpoint { metadata: name, spec, status });
    Ok(Write::Checkpoint { checkpoint, is_new, tolerances: Tolerances::default() })
}

fn read<T: for<'de> Deserialize<'de>>(name: &ObjectName, value: &Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| format!("{name} can't be read: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(verb: &str, resource: &str, code: u16, response: Value) -> Option<ObservedWrite> {
        let event = json!({
            "verb": verb,
            "objectRef": { "resource": resource, "namespace": "shop", "name": "web" },
            "responseStatus": { "code": code, "message": (code >= 400).then_some("no") },
            "responseObject": response,
            "requestReceivedTimestamp": "2026-01-02T03:04:05.000001Z",
            "stageTimestamp": "2026-01-02T03:04:05.000002Z",
        });
        observed(&serde_json::from_value(event).expect("an event"))
    }

    #[test]
    fn writes_are_read_as_they_were_stored() {
        let status = json!({ "status": {
            "recommendation": { "containerRecommendations": [
                { "containerName": "b", "target": { "cpu": "25m" } },
                { "containerName": "a", "target": { "cpu": "1" } },
            ] },
            "conditions": [{
                "type": "RecommendationProvided", "status": "True",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }],
        } });
        let write = event("patch", "verticalpodautoscalers", 200, status).expect("a write").write;
        let Ok(Write::Status { vpa, status }) = write else { panic!("{write:?}") };
        assert_eq!(vpa, ObjectName::new("shop", "web"));
        let recommendation = status.recommendation.as_ref().expect("it has one");
        let containers = &recommendation.container_recommendations;
        let names: Vec<&str> = containers.iter().map(|it| &*it.container_name).collect();
        assert_eq!(names, ["a", "b"]);
        let checkpoint = json!({
            "spec": { "vpaObjectName": "web", "containerName": "app" },
            "status": { "version": "v3", "totalSamplesCount": 7 },
        });
        let write = event("create", "verticalpodautoscalercheckpoints", 201, checkpoint);
        let write = write.expect("a write").write;
        let Ok(Write::Checkpoint { checkpoint, is_new: true, .. }) = write else {
            panic!("{write:?}")
        };
        assert_eq!(checkpoint.status.total_samples_count, 7);
    }

    #[test]
    fn only_a_patch_of_a_missing_checkpoint_may_fail() {
        let missing = event("patch", "verticalpodautoscalercheckpoints", 404, Value::Null);
        assert_eq!(missing, None);
        let failed = event("patch", "verticalpodautoscalers", 409, Value::Null).expect("a write");
        assert_eq!(failed.write, Err("patch shop/web: no".to_owned()));
        assert_eq!(event("get", "deployments", 200, Value::Null), None);
    }
}
