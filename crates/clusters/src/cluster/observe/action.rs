//! Requests of the controller, as they are observed in a cluster.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use kube_autoscaler_models::api::{HpaStatus, Text};
use kube_autoscaler_models::observation::{
    ControllerAction, Event, EventType, ScaleWrite, StatusWrite,
};

/// An action of the controller. Namespaces and pods have their names in the cluster.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ObservedAction {
    /// The time when the request arrived.
    pub received: Timestamp,
    /// The time when the request was answered.
    pub answered: Timestamp,
    pub(crate) action: ControllerAction,
    /// The user that queried a metric, if the API server named it.
    pub user: String,
    /// True if `spec.replicas` was written to the target itself, not to its scale subresource.
    pub direct: bool,
    /// The reason why the model can't represent the written status, which is then empty in
    /// `action`.
    pub unreadable: Option<String>,
}

impl ObservedAction {
    /// An action of an unknown user, on the scale subresource if it scales.
    pub(crate) fn new(
        received: Timestamp,
        answered: Timestamp,
        action: ControllerAction,
    ) -> ObservedAction {
        let user = String::new();
        ObservedAction { received, answered, action, user, direct: false, unreadable: None }
    }

    /// A write of an HPA's status, from the JSON of the API.
    pub(crate) fn status_write(
        received: Timestamp,
        answered: Timestamp,
        status: Option<&Value>,
        mut write: StatusWrite,
    ) -> ObservedAction {
        let read = status.map_or(Ok(HpaStatus::default()), HpaStatus::deserialize);
        let unreadable = read.as_ref().err().map(ToString::to_string);
        write.status = read.unwrap_or_default();
        let action = ControllerAction::UpdateStatus(Box::new(write));
        ObservedAction { unreadable, ..ObservedAction::new(received, answered, action) }
    }

    /// The write of a scale, if the action is one.
    pub(crate) fn scale_write(&self) -> Option<&ScaleWrite> {
        match &self.action {
            ControllerAction::UpdateScale(write) => Some(write),
            _ => None,
        }
    }

    pub(crate) fn is_scale_read(&self) -> bool {
        matches!(self.action, ControllerAction::GetScale { .. })
    }

    pub(crate) fn is_status_write(&self) -> bool {
        matches!(self.action, ControllerAction::UpdateStatus(_))
    }

    pub(crate) fn is_event(&self) -> bool {
        matches!(self.action, ControllerAction::Event(_))
    }

    /// Returns true if the API server accepted the request.
    pub(crate) fn succeeded(&self) -> bool {
        self.action.error().is_none()
    }

    /// Returns true if the request is a write of a scale that another client had changed since the
    /// controller read it.
    pub(crate) fn is_conflict(&self) -> bool {
        self.scale_write().is_some_and(ScaleWrite::is_conflict)
    }
}

/// An event of `v1` or `events.k8s.io`.
pub(crate) fn event(object: &Value) -> Option<ControllerAction> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Written {
        #[serde(alias = "regarding")]
        involved_object: Regarding,
        #[serde(rename = "type")]
        type_: EventType,
        reason: Text,
        #[serde(alias = "note")]
        message: Text,
    }
    #[derive(Deserialize)]
    struct Regarding {
        name: std::sync::Arc<str>,
    }
    let Written { involved_object, type_, reason, message } = Written::deserialize(object).ok()?;
    Some(ControllerAction::Event(Event { hpa: involved_object.name, type_, reason, message }))
}
