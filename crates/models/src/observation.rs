//! The actions of a controller in a reconcile, in the JSON of the engine protocol: the same types
//! for the model's prediction and for the requests of the real controller. The two are compared
//! field by field.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::api::{HpaSpec, HpaStatus, Text};
use super::as_text;
pub use super::event_metadata::{EventOrigin, EventTimes};
use super::is_default::is_default;
pub use super::object_write::{ObjectVerb, ObjectWrite};
use super::series::{Amount, SeriesChange};
use super::time::{Span, Time};

/// All observable actions of one reconcile ("tick") of one HPA.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// The time at which the reconcile began.
    #[serde(with = "as_text")]
    pub at: Time,
    /// The duration: the time spent waiting for slow responses or before another attempt.
    #[serde(default, skip_serializing_if = "is_default", with = "as_text")]
    pub took: Span,
    /// The HPA's name.
    pub hpa: Arc<str>,
    /// In the order in which the controller took them, except that events come last, and the
    /// requests that send them after all others: the controller does both in the background, so
    /// their place among its requests is left to chance.
    #[serde(deserialize_with = "canonical")]
    actions: Vec<Entry>,
}

/// An action of a reconcile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Entry {
    /// The namespace of a request, if it is not the HPA's. Empty: the request names no namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<Arc<str>>,
    #[serde(flatten)]
    action: ControllerAction,
}

impl Entry {
    /// The same action once more.
    fn repetition(&self) -> Cow<'_, Entry> {
        match &self.action {
            ControllerAction::SendEvent(sent) if sent.verb == EventVerb::Patch => {
                let mut next = sent.clone();
                next.count = sent.count.saturating_add(1);
                let action = ControllerAction::SendEvent(next);
                Cow::Owned(Entry { namespace: self.namespace.clone(), action })
            }
            _ => Cow::Borrowed(self),
        }
    }
}

fn canonical<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Entry>, D::Error> {
    let entries: Vec<Entry> = Deserialize::deserialize(deserializer)?;
    let mut observation = Observation::default();
    entries.into_iter().for_each(|Entry { namespace, action }| observation.add(namespace, action));
    Ok(observation.actions)
}

/// One action of a controller in a reconcile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ControllerAction {
    /// GET of the scale subresource.
    GetScale {
        /// `deployments.apps`.
        resource: Arc<str>,
        /// The target's name.
        name: Arc<str>,
        /// The replicas, or an error.
        #[serde(flatten, with = "answer")]
        #[schemars(with = "answer::Members<ScaleReplicas>")]
        answer: Answer<ScaleReplicas>,
    },
    /// List of metrics.k8s.io pods.
    ListPodMetrics {
        /// The label selector of the query.
        selector: Arc<str>,
        /// The number of pods, or an error.
        #[serde(flatten, with = "answer")]
        #[schemars(with = "answer::Members<Items>")]
        answer: Answer<Items>,
    },
    /// A query of custom.metrics.k8s.io for a metric of pods.
    PodsMetric {
        /// The metric's name.
        metric: Arc<str>,
        /// The kind of the objects. Default: `Pod`, also for queries of Heapster, which name no
        /// kind.
        #[serde(default = "pod_kind", skip_serializing_if = "is_pod_kind")]
        kind: Cow<'static, str>,
        /// The label selector of the pods.
        selector: Arc<str>,
        /// The selector of the series; empty: all series.
        metric_selector: Arc<str>,
        /// The number of values, or an error.
        #[serde(flatten, with = "answer")]
        #[schemars(with = "answer::Members<Items>")]
        answer: Answer<Items>,
    },
    /// A query of custom.metrics.k8s.io for a metric of one object.
    ObjectMetric {
        /// The metric's name.
        metric: Arc<str>,
        /// Kind and group: `Ingress.networking.k8s.io`, `Service`.
        kind: Arc<str>,
        /// The object's name.
        name: Arc<str>,
        /// The selector of the series; empty: all series.
        metric_selector: Arc<str>,
        /// The value, or an error.
        #[serde(flatten, with = "answer")]
        #[schemars(with = "answer::Members<SeriesValue>")]
        answer: Answer<SeriesValue>,
    },
    /// A query of external.metrics.k8s.io.
    ExternalMetric {
        /// The metric's name.
        metric: Arc<str>,
        /// The selector of the series; empty: all series.
        metric_selector: Arc<str>,
        /// The number of series, or an error.
        #[serde(flatten, with = "answer")]
        #[schemars(with = "answer::Members<Items>")]
        answer: Answer<Items>,
    },
    /// An attempt to write the scale subresource.
    UpdateScale(ScaleWrite),
    /// An attempt to write the HPA's status.
    UpdateStatus(Box<StatusWrite>),
    /// An event on the HPA, as the controller recorded it.
    Event(Event),
    /// The request that sends an event to the API, after client-go has combined and limited events.
    SendEvent(Box<SentEvent>),
    /// A write of any object, in scenarios with `objects`.
    Write(Box<ObjectWrite>),
    /// An error in the controller's error log: during the reconcile (a failed status write), or at
    /// its end.
    Error {
        /// The error.
        #[schemars(with = "String")]
        message: Text,
    },
    /// A change of the controller's own Prometheus metrics, after the reconcile. The changes are in
    /// order of their series. Those of the work queue are what has changed from the beginning of
    /// the previous reconcile to that of this one.
    ControllerMetric(SeriesChange),
    /// Only in logs: the actions that follow belong to the reconcile of this HPA.
    Reconcile {
        /// The HPA's name.
        hpa: Arc<str>,
    },
    /// Only in logs: the reconcile of this HPA is over.
    Reconciled {
        /// The HPA's name.
        hpa: Arc<str>,
    },
}

/// A kind of request that a reconcile sends, by its name in the engine protocol.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Request {
    /// GET of the scale subresource.
    GetScale,
    /// List of metrics.k8s.io pods.
    ListPodMetrics,
    /// A query of custom.metrics.k8s.io for a metric of pods.
    PodsMetric,
    /// A query of custom.metrics.k8s.io for a metric of one object.
    ObjectMetric,
    /// A query of external.metrics.k8s.io.
    ExternalMetric,
    /// PUT of the scale subresource.
    UpdateScale,
    /// PUT of the HPA's status.
    UpdateStatus,
}

impl Request {
    /// All kinds of requests.
    pub const ALL: [Request; 7] = [
        Request::GetScale,
        Request::ListPodMetrics,
        Request::PodsMetric,
        Request::ObjectMetric,
        Request::ExternalMetric,
        Request::UpdateScale,
        Request::UpdateStatus,
    ];

    /// The name in the JSON of the protocol.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Request::GetScale => "getScale",
            Request::ListPodMetrics => "listPodMetrics",
            Request::PodsMetric => "podsMetric",
            Request::ObjectMetric => "objectMetric",
            Request::ExternalMetric => "externalMetric",
            Request::UpdateScale => "updateScale",
            Request::UpdateStatus => "updateStatus",
        }
    }
}

/// The response to a query, or the message of an error.
pub type Answer<T> = Result<T, Arc<str>>;

/// The replicas in a scale subresource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleReplicas {
    /// `spec.replicas`.
    pub replicas: i32,
    /// `status.replicas`.
    pub status_replicas: i32,
}

/// The length of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Items {
    /// The number of items.
    pub items: u32,
}

/// The value of a series.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SeriesValue {
    /// The value in the API's format.
    pub value: Arc<str>,
}

/// An attempt to write the scale.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleWrite {
    /// `deployments.apps`.
    pub resource: Arc<str>,
    /// The name of the scaled object.
    pub name: Arc<str>,
    /// The written `spec.replicas`.
    pub replicas: i32,
    /// The rest of the object that was sent, if it was observed.
    #[serde(flatten)]
    pub sent: Option<SentScale>,
    /// The error message of the API, if it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
}

impl ScaleWrite {
    /// Returns true if another client had changed the object since the controller read its scale.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        let error = self.error.as_ref();
        error.is_some_and(|error| error.contains("the object has been modified"))
    }
}

/// The object of a scale write, apart from its name and `spec.replicas`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SentScale {
    /// `autoscaling/v1`; up to Kubernetes 1.8 `extensions/v1beta1`.
    pub api_version: Arc<str>,
    /// `status.replicas`.
    pub status_replicas: i32,
    /// `status.selector` as text.
    pub selector: Arc<str>,
}

/// An attempt to write the HPA's status.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusWrite {
    /// The HPA's name.
    pub name: Arc<str>,
    /// The version of the API that the request uses, if it was observed: `autoscaling/v2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<Arc<str>>,
    /// The status; times as the API stores them.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub status: HpaStatus,
    /// The error message of the API, if the request was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
}

/// The beginning of the message of a combined event.
pub const COMBINED: &str = "(combined from similar events): ";

/// The whole message of a combined event on the oldest releases.
pub(crate) const COMBINED_WITHOUT_MESSAGE: &str = "(events with common reason combined)";

/// An event on the HPA.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The HPA's name.
    pub hpa: Arc<str>,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub type_: EventType,
    /// CamelCase.
    #[schemars(with = "String")]
    pub reason: Text,
    /// A text for users.
    #[schemars(with = "String")]
    pub message: Text,
}

impl Event {
    /// Returns true if two events differ at most in their message.
    #[must_use]
    pub(crate) fn is_similar(&self, other: &Event) -> bool {
        (&self.hpa, self.type_, &self.reason) == (&other.hpa, other.type_, &other.reason)
    }
}

/// A request that writes an event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SentEvent {
    /// The kind of request.
    pub verb: EventVerb,
    /// The event. If it is combined from several events, its message says so.
    #[serde(flatten)]
    pub event: Event,
    /// How often the event has occurred.
    pub count: u32,
    /// The object that the event is about, and its source.
    #[serde(flatten)]
    pub origin: EventOrigin,
    /// The name and the times of the event.
    #[serde(flatten)]
    pub times: EventTimes,
}

/// The kind of the objects that a metric of pods describes.
pub fn pod_kind() -> Cow<'static, str> {
    Cow::Borrowed("Pod")
}

fn is_pod_kind(kind: &str) -> bool {
    kind == pod_kind()
}

impl SentEvent {
    /// Returns true if the request can be the one that sends this event.
    #[must_use]
    pub(crate) fn delivers(&self, event: &Event) -> bool {
        self.event.is_similar(event) && (self.event.message == event.message || self.is_combined())
    }

    /// Returns true if the request shows nothing but this event: it is sent for the first time, and
    /// its other fields have their defaults.
    #[must_use]
    pub fn only_shows(&self, event: &Event) -> bool {
        let SentEvent { verb, event: sent, count, origin, times } = self;
        (*verb, *count) == (EventVerb::Create, 1)
            && (sent.type_, &sent.reason, &sent.message)
                == (event.type_, &event.reason, &event.message)
            && *origin == EventOrigin::default()
            && *times == EventTimes::default()
    }

    /// The request without the fields that engines report since version 5 of the protocol.
    #[must_use]
    pub fn for_older_protocol(&self) -> SentEvent {
        let origin = self.origin.for_older_protocol();
        SentEvent { origin, times: EventTimes::default(), ..self.clone() }
    }

    /// Returns true if the event is combined from several events.
    #[must_use]
    pub fn is_combined(&self) -> bool {
        let message = self.event.message.as_str();
        message.starts_with(COMBINED) || message == COMBINED_WITHOUT_MESSAGE
    }
}

/// A kind of request that writes an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum EventVerb {
    /// POST: the first occurrence of an event.
    Create,
    /// PATCH: a further occurrence, with another count and perhaps another message.
    Patch,
}

/// The type of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum EventType {
    /// An expected occurrence.
    Normal,
    /// A problem.
    Warning,
}

/// The API server's response to a request to create, edit or delete an HPA.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ApiAnswer {
    /// The time of the request.
    #[serde(with = "as_text")]
    pub at: Time,
    /// The outcome of the request.
    #[serde(flatten)]
    pub outcome: ApiOutcome,
}

/// The outcome of a request to create, edit or delete an HPA or another object, in the JSON of the
/// engine protocol.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApiOutcome {
    /// The HPA is stored, with all defaults.
    Stored {
        /// The HPA's name.
        name: Arc<str>,
        /// `metadata.generation`.
        generation: i64,
        /// The complete spec.
        #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
        spec: Arc<HpaSpec>,
    },
    /// The API server rejected the request.
    Refused {
        /// The HPA's name.
        name: Arc<str>,
        /// The API server's message.
        message: String,
    },
    /// The HPA is deleted.
    Deleted {
        /// The HPA's name.
        name: Arc<str>,
    },
    /// The result of `applyObject`, `patchObject` or `deleteObject`.
    Write(Box<ObjectWrite>),
}

impl ApiOutcome {
    /// The HPA's name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        match self {
            ApiOutcome::Stored { name, .. }
            | ApiOutcome::Refused { name, .. }
            | ApiOutcome::Deleted { name } => name,
            ApiOutcome::Write(write) => &write.name,
        }
    }
}

/// The members of a response, or `error` in their place.
mod answer {
    use std::sync::Arc;

    use serde::de::{Deserialize, Deserializer, Error as _};
    use serde::ser::{Serialize, Serializer};

    use super::Answer;

    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub(super) struct Members<T> {
        #[serde(flatten)]
        found: Option<T>,
        /// The message of an error, in place of the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Arc<str>>,
    }

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        answer: &Answer<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let (found, error) = match answer {
            Ok(found) => (Some(found), None),
            Err(error) => (None, Some(error.clone())),
        };
        Members { found, error }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Answer<T>, D::Error> {
        match Members::deserialize(deserializer)? {
            Members { found: Some(found), error: None } => Ok(Ok(found)),
            Members { found: None, error: Some(error) } => Ok(Err(error)),
            _ => Err(D::Error::custom("a query requires either an answer or an error")),
        }
    }
}

impl ControllerAction {
    /// The name of the action in the JSON of the protocol.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            ControllerAction::GetScale { .. } => "getScale",
            ControllerAction::ListPodMetrics { .. } => "listPodMetrics",
            ControllerAction::PodsMetric { .. } => "podsMetric",
            ControllerAction::ObjectMetric { .. } => "objectMetric",
            ControllerAction::ExternalMetric { .. } => "externalMetric",
            ControllerAction::UpdateScale(_) => "updateScale",
            ControllerAction::UpdateStatus(_) => "updateStatus",
            ControllerAction::Event(_) => "event",
            ControllerAction::SendEvent(_) => "sendEvent",
            ControllerAction::Write(_) => "write",
            ControllerAction::Error { .. } => "error",
            ControllerAction::ControllerMetric(_) => "controllerMetric",
            ControllerAction::Reconcile { .. } => "reconcile",
            ControllerAction::Reconciled { .. } => "reconciled",
        }
    }

    /// The kind of request, if the action is one of a reconcile: not one that sends an event.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        Some(match self {
            ControllerAction::GetScale { .. } => Request::GetScale,
            ControllerAction::ListPodMetrics { .. } => Request::ListPodMetrics,
            ControllerAction::PodsMetric { .. } => Request::PodsMetric,
            ControllerAction::ObjectMetric { .. } => Request::ObjectMetric,
            ControllerAction::ExternalMetric { .. } => Request::ExternalMetric,
            ControllerAction::UpdateScale(_) => Request::UpdateScale,
            ControllerAction::UpdateStatus(_) => Request::UpdateStatus,
            ControllerAction::Event(_)
            | ControllerAction::SendEvent(_)
            | ControllerAction::Write(_)
            | ControllerAction::Error { .. }
            | ControllerAction::ControllerMetric(_)
            | ControllerAction::Reconcile { .. }
            | ControllerAction::Reconciled { .. } => return None,
        })
    }

    /// Returns true if it is a query of the scale or of a metric.
    #[must_use]
    pub fn is_read(&self) -> bool {
        matches!(self, ControllerAction::GetScale { .. }) || self.is_metric_query()
    }

    /// Returns true if the action is a query of a metric.
    #[must_use]
    pub fn is_metric_query(&self) -> bool {
        match self {
            ControllerAction::ListPodMetrics { .. }
            | ControllerAction::PodsMetric { .. }
            | ControllerAction::ObjectMetric { .. }
            | ControllerAction::ExternalMetric { .. } => true,
            ControllerAction::GetScale { .. }
            | ControllerAction::UpdateScale(_)
            | ControllerAction::UpdateStatus(_)
            | ControllerAction::Event(_)
            | ControllerAction::SendEvent(_)
            | ControllerAction::Write(_)
            | ControllerAction::Error { .. }
            | ControllerAction::ControllerMetric(_)
            | ControllerAction::Reconcile { .. }
            | ControllerAction::Reconciled { .. } => false,
        }
    }

    /// Returns true if the action is a request to an API.
    #[must_use]
    pub fn is_request(&self) -> bool {
        self.is_read() || self.is_write() || matches!(self, ControllerAction::SendEvent(_))
    }

    /// The place among the actions of a reconcile: events are recorded and sent in the background,
    /// so their place among the other actions is left to chance.
    fn place(&self) -> u8 {
        match self {
            ControllerAction::SendEvent(_) => 2,
            ControllerAction::Event(_) => 1,
            _ => 0,
        }
    }

    /// Returns true if the action is an attempt to write the scale or the status.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(self, ControllerAction::UpdateScale(_) | ControllerAction::UpdateStatus(_))
    }

    /// Returns true if the next reconcile takes the same action if nothing changes: it is neither a
    /// write nor the new value of a gauge.
    #[must_use]
    pub(crate) fn can_be_repeated(&self) -> bool {
        let is_new_value = |change: &SeriesChange| matches!(change.change, Amount::Value(_));
        match self {
            ControllerAction::ControllerMetric(change) => !is_new_value(change),
            ControllerAction::Write(_) => false,
            action => !action.is_write(),
        }
    }

    /// The error message, if the request was rejected.
    #[must_use]
    pub fn error(&self) -> Option<&Arc<str>> {
        match self {
            ControllerAction::GetScale { answer, .. } => answer.as_ref().err(),
            ControllerAction::ListPodMetrics { answer, .. }
            | ControllerAction::PodsMetric { answer, .. }
            | ControllerAction::ExternalMetric { answer, .. } => answer.as_ref().err(),
            ControllerAction::ObjectMetric { answer, .. } => answer.as_ref().err(),
            ControllerAction::UpdateScale(write) => write.error.as_ref(),
            ControllerAction::UpdateStatus(write) => write.error.as_ref(),
            ControllerAction::Write(write) => write.error.as_ref(),
            ControllerAction::Event(_)
            | ControllerAction::SendEvent(_)
            | ControllerAction::Error { .. }
            | ControllerAction::ControllerMetric(_)
            | ControllerAction::Reconcile { .. }
            | ControllerAction::Reconciled { .. } => None,
        }
    }
}

impl Observation {
    /// The reconcile of an HPA with these actions.
    #[must_use]
    pub fn new(
        at: Time,
        hpa: Arc<str>,
        actions: impl IntoIterator<Item = ControllerAction>,
    ) -> Observation {
        let mut observation = Observation { at, hpa, ..Observation::default() };
        actions.into_iter().for_each(|action| observation.push(action));
        observation
    }

    /// Adds the next action of the controller; a request is one in the HPA's namespace.
    #[inline]
    pub fn push(&mut self, action: ControllerAction) {
        self.add(None, action);
    }

    /// Adds a request in another namespace than the HPA's, or in none if it is empty.
    pub fn push_in(&mut self, namespace: Arc<str>, action: ControllerAction) {
        self.add(Some(namespace), action);
    }

    #[inline]
    fn add(&mut self, namespace: Option<Arc<str>>, action: ControllerAction) {
        let place = action.place();
        let precedes = |entry: &Entry| entry.action.place() <= place;
        let is_in_place = self.actions.last().is_none_or(precedes);
        self.actions.push(Entry { namespace, action });
        if !is_in_place {
            self.move_last_to_its_place();
        }
    }

    /// Moves the last action to its position in the order, after the actions that sort equally.
    #[cold]
    fn move_last_to_its_place(&mut self) {
        let Some((last, others)) = self.actions.split_last() else { return };
        let precedes = |entry: &Entry| entry.action.place() <= last.action.place();
        let before = others.iter().rposition(precedes).map_or(0, |last| last + 1);
        self.actions[before..].rotate_right(1);
    }

    /// The observation with other events.
    #[must_use]
    pub fn with_events(mut self, events: impl IntoIterator<Item = Event>) -> Observation {
        self.retain(|action| !matches!(action, ControllerAction::Event(_)));
        events.into_iter().for_each(|event| self.push(ControllerAction::Event(event)));
        self
    }

    /// Keeps the actions that fulfil a condition.
    pub fn retain(&mut self, mut keep: impl FnMut(&ControllerAction) -> bool) {
        self.actions.retain(|entry| keep(&entry.action));
    }

    /// All actions.
    pub fn actions(&self) -> impl DoubleEndedIterator<Item = &ControllerAction> + Clone {
        self.actions.iter().map(|entry| &entry.action)
    }

    fn actions_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut ControllerAction> {
        self.actions.iter_mut().map(|entry| &mut entry.action)
    }

    /// The requests in other namespaces than the HPA's: each with its index among all actions, and
    /// its namespace, which is empty if the request names none.
    pub fn in_other_namespaces(&self) -> impl Iterator<Item = (usize, &Arc<str>)> {
        let entries = self.actions.iter().enumerate();
        entries.filter_map(|(index, entry)| Some((index, entry.namespace.as_ref()?)))
    }

    /// The requests of the reconcile, in order: reads and writes.
    pub fn requests(&self) -> impl Iterator<Item = &ControllerAction> + Clone {
        self.actions().filter(|action| action.request().is_some())
    }

    /// The number of requests up to and including the n-th of a kind, if there are as many.
    #[must_use]
    pub fn requests_until(&self, kind: Request, nth: usize) -> Option<usize> {
        let mut same = self.requests().enumerate().filter(|(_, it)| it.request() == Some(kind));
        same.nth(nth.checked_sub(1)?).map(|(index, _)| index + 1)
    }

    /// Queries, in the order in which the controller made them.
    pub fn reads(&self) -> impl DoubleEndedIterator<Item = &ControllerAction> + Clone {
        self.actions().filter(|action| action.is_read())
    }

    /// Attempts to write the scale subresource, in order. Empty if the controller did not scale.
    pub fn scale_writes(&self) -> impl DoubleEndedIterator<Item = &ScaleWrite> + Clone {
        self.actions().filter_map(|action| match action {
            ControllerAction::UpdateScale(write) => Some(write),
            _ => None,
        })
    }

    /// [`Observation::scale_writes`], mutable.
    pub fn scale_writes_mut(&mut self) -> impl Iterator<Item = &mut ScaleWrite> {
        self.actions_mut().filter_map(|action| match action {
            ControllerAction::UpdateScale(write) => Some(write),
            _ => None,
        })
    }

    /// Attempts to write the status, in order. Empty if the status did not change.
    pub fn status_writes(&self) -> impl DoubleEndedIterator<Item = &StatusWrite> + Clone {
        self.actions().filter_map(|action| match action {
            ControllerAction::UpdateStatus(write) => Some(&**write),
            _ => None,
        })
    }

    /// [`Observation::status_writes`], to be changed.
    pub fn status_writes_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut StatusWrite> {
        self.actions_mut().filter_map(|action| match action {
            ControllerAction::UpdateStatus(write) => Some(&mut **write),
            _ => None,
        })
    }

    /// The last write of the status, if there was one: the controller skips it if nothing changed.
    #[must_use]
    pub fn status_write(&self) -> Option<&StatusWrite> {
        self.status_writes().next_back()
    }

    /// [`Observation::status_write`], to be changed.
    pub fn status_write_mut(&mut self) -> Option<&mut StatusWrite> {
        self.status_writes_mut().next_back()
    }

    /// Writes of objects, in order, including those of the cluster itself.
    pub fn object_writes(&self) -> impl DoubleEndedIterator<Item = &ObjectWrite> + Clone {
        self.actions().filter_map(|action| match action {
            ControllerAction::Write(write) => Some(&**write),
            _ => None,
        })
    }

    /// Events, in the order in which the controller recorded them.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> + Clone {
        self.actions().filter_map(|action| match action {
            ControllerAction::Event(event) => Some(event),
            _ => None,
        })
    }

    /// Puts the events, and the requests that send them, into the order of another reconcile. Has
    /// no effect on events if the other reconcile does not have the same ones, and likewise on
    /// requests.
    pub fn order_events_as(&mut self, other: &Observation) {
        if let Some(order) = order_of(self.events(), other.events()) {
            let events: Vec<Event> = self.events().cloned().collect();
            let ordered = order.into_iter().map(|index| events[index].clone());
            self.events_mut().zip(ordered).for_each(|(event, ordered)| *event = ordered);
        }
        if let Some(order) = order_of(self.sent_events(), other.sent_events()) {
            let sent: Vec<SentEvent> = self.sent_events().cloned().collect();
            let requests = self.actions_mut().filter_map(|action| match action {
                ControllerAction::SendEvent(request) => Some(&mut **request),
                _ => None,
            });
            let ordered = order.into_iter().map(|index| sent[index].clone());
            requests.zip(ordered).for_each(|(request, ordered)| *request = ordered);
        }
    }

    /// The requests that send events, in order.
    pub fn sent_events(&self) -> impl DoubleEndedIterator<Item = &SentEvent> + Clone {
        self.actions().filter_map(|action| match action {
            ControllerAction::SendEvent(sent) => Some(&**sent),
            _ => None,
        })
    }

    /// Each event with the request that sends it, if it is sent.
    pub fn deliveries(&self) -> impl Iterator<Item = (&Event, Option<&SentEvent>)> {
        let mut sent = self.sent_events().peekable();
        self.events().map(move |event| (event, sent.next_if(|sent| sent.delivers(event))))
    }

    /// [`Observation::events`], mutable.
    pub fn events_mut(&mut self) -> impl Iterator<Item = &mut Event> {
        self.actions_mut().filter_map(|action| match action {
            ControllerAction::Event(event) => Some(event),
            _ => None,
        })
    }

    /// Errors, in the order of the controller's error log.
    pub fn errors(&self) -> impl DoubleEndedIterator<Item = &Text> + Clone {
        self.actions().filter_map(|action| match action {
            ControllerAction::Error { message } => Some(message),
            _ => None,
        })
    }

    /// Changes of the controller's own metrics, in order of their series.
    pub fn controller_metrics(&self) -> impl Iterator<Item = &SeriesChange> + Clone {
        self.actions().filter_map(|action| match action {
            ControllerAction::ControllerMetric(change) => Some(change),
            _ => None,
        })
    }

    /// Returns true if it is the [repetition](Observation::repetition) of another reconcile.
    #[must_use]
    pub fn repeats(&self, other: &Observation) -> bool {
        let others = other.actions.iter().filter(|entry| entry.action.can_be_repeated());
        let mut others = others.map(Entry::repetition);
        self.actions.iter().all(|entry| others.next().is_some_and(|other| *entry == *other))
            && others.next().is_none()
    }

    /// The same reconcile once more: the actions that can be repeated. Events that are patched have
    /// the next count.
    #[must_use]
    pub fn repetition(&self) -> Observation {
        let repeated = self.actions.iter().filter(|entry| entry.action.can_be_repeated());
        let actions = repeated.map(|entry| entry.repetition().into_owned()).collect();
        Observation { at: self.at, took: self.took, hpa: self.hpa.clone(), actions }
    }

    /// Empties the observation, but keeps its memory.
    pub fn clear(&mut self) {
        self.actions.clear();
    }

    /// The same reconcile without its actions.
    #[must_use]
    pub fn without_actions(&self) -> Observation {
        let Observation { at, took, ref hpa, .. } = *self;
        Observation { at, took, hpa: hpa.clone(), actions: Vec::new() }
    }

    /// The end of the reconcile.
    #[must_use]
    pub fn end(&self) -> Time {
        self.at + self.took
    }

    /// The replicas that were successfully written to the target in this reconcile.
    #[must_use]
    pub fn scaled_to(&self) -> Option<i32> {
        let mut writes = self.scale_writes().rev();
        let scaled = writes.find(|write| write.error.is_none() && !self.is_elsewhere(write));
        scaled.map(|write| write.replicas)
    }

    /// The replicas that were last written successfully to a target, in the HPA's namespace.
    #[must_use]
    pub fn replicas_written_to(&self, resource: &str, name: &str) -> Option<i32> {
        let own = self.actions.iter().rev().filter(|entry| entry.namespace.is_none());
        own.filter_map(|entry| match &entry.action {
            ControllerAction::UpdateScale(write) if write.error.is_none() => Some(write),
            _ => None,
        })
        .find(|write| *write.resource == *resource && *write.name == *name)
        .map(|write| write.replicas)
    }

    /// Resource and name of the target: the first scale that was read.
    #[must_use]
    pub fn target(&self) -> Option<(&Arc<str>, &Arc<str>)> {
        self.reads().find_map(|read| match read {
            ControllerAction::GetScale { resource, name, .. } => Some((resource, name)),
            _ => None,
        })
    }

    /// Returns true if this reconcile wrote the scale of an object other than its target.
    #[must_use]
    pub fn is_elsewhere(&self, write: &ScaleWrite) -> bool {
        self.target().is_some_and(|target| target != (&write.resource, &write.name))
    }
}

/// A read request and its answer, as text for users.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadText {
    /// The request: `pod metrics of app=web`.
    pub query: String,
    /// The answer: `3 items`.
    pub answer: String,
}

impl ControllerAction {
    /// The read request as text for users; `None` for other actions.
    #[must_use]
    pub fn read_text(&self) -> Option<ReadText> {
        let (query, answer) = match self {
            ControllerAction::GetScale { resource, name, answer } => {
                let answer = match answer {
                    Ok(ScaleReplicas { replicas, status_replicas }) => {
                        format!("spec {replicas}, status {status_replicas}")
                    }
                    Err(error) => error.to_string(),
                };
                (format!("scale of {resource}/{name}"), answer)
            }
            ControllerAction::ListPodMetrics { selector, answer } => {
                (format!("pod metrics of {selector}"), Found(answer, "items").to_string())
            }
            ControllerAction::PodsMetric { metric, kind, selector, metric_selector, answer } => {
                let series = SeriesSelector(metric_selector);
                let kind = if is_pod_kind(kind) { "pods" } else { &**kind };
                let query = format!("metric {metric}{series} of {kind} {selector}");
                (query, Found(answer, "items").to_string())
            }
            ControllerAction::ObjectMetric { metric, kind, name, metric_selector, answer } => {
                let series = SeriesSelector(metric_selector);
                let answer = answer.as_ref().map_or_else(|error| error, |found| &found.value);
                (format!("metric {metric}{series} of {kind} {name}"), answer.to_string())
            }
            ControllerAction::ExternalMetric { metric, metric_selector, answer } => {
                let series = SeriesSelector(metric_selector);
                (format!("external metric {metric}{series}"), Found(answer, "series").to_string())
            }
            _ => return None,
        };
        Some(ReadText { query, answer })
    }
}

/// One line, for users.
impl fmt::Display for ControllerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ReadText { query, answer }) = self.read_text() {
            return write!(f, "{query}: {answer}");
        }
        match self {
            ControllerAction::GetScale { .. }
            | ControllerAction::ListPodMetrics { .. }
            | ControllerAction::PodsMetric { .. }
            | ControllerAction::ObjectMetric { .. }
            | ControllerAction::ExternalMetric { .. } => Ok(()),
            ControllerAction::UpdateScale(ScaleWrite {
                resource, name, replicas, error, ..
            }) => {
                write!(f, "scale of {resource}/{name} to {replicas}{}", Refusal(error.as_deref()))
            }
            ControllerAction::UpdateStatus(write) => {
                let StatusWrite { status, error, .. } = &**write;
                write!(f, "status: {status}{}", Refusal(error.as_deref()))
            }
            ControllerAction::Event(event) => event.fmt(f),
            ControllerAction::SendEvent(sent) => sent.fmt(f),
            ControllerAction::Error { message } => write!(f, "error: {message}"),
            ControllerAction::ControllerMetric(change) => write!(f, "metric {change}"),
            ControllerAction::Reconcile { hpa } => write!(f, "reconcile of {hpa}"),
            ControllerAction::Write(write) => write!(f, "{write}"),
            ControllerAction::Reconciled { hpa } => write!(f, "end of the reconcile of {hpa}"),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}: {}", self.type_, self.reason, self.message)
    }
}

/// `patch with count 2: Normal SuccessfulRescale: New size: 3`
impl fmt::Display for SentEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SentEvent { verb, event, count, origin, times } = self;
        write!(f, "{verb} with count {count}: {event}{origin}{times}")
    }
}

impl fmt::Display for EventVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EventVerb::Create => "create",
            EventVerb::Patch => "patch",
        })
    }
}

impl fmt::Display for SentScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SentScale { api_version, status_replicas, selector } = self;
        write!(f, "{api_version}, status {status_replicas}, selector {selector:?}")
    }
}

/// A number of things, or an error.
struct Found<'a>(&'a Answer<Items>, &'a str);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ok(Items { items }) => write!(f, "{items} {}", self.1),
            Err(error) => f.write_str(error),
        }
    }
}

/// `{verb=GET}`, or an empty text for all series of a metric.
struct SeriesSelector<'a>(&'a str);

impl fmt::Display for SeriesSelector<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "{{{}}}", self.0) }
    }
}

/// ` (refused: …)`, for a rejected request.
struct Refusal<'a>(Option<&'a str>);

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |error| write!(f, " (refused: {error})"))
    }
}
/// For each of their items, the index of an equal one of ours. Returns `None` if the items are not
/// the same, or already in the same order.
pub(crate) fn order_of<'i, T: PartialEq + 'i>(
    ours: impl Iterator<Item = &'i T>,
    theirs: impl Iterator<Item = &'i T>,
) -> Option<Vec<usize>> {
    let mut ours: Vec<Option<&T>> = ours.map(Some).collect();
    let mut order = Vec::with_capacity(ours.len());
    for item in theirs {
        let index = ours.iter().position(|it| *it == Some(item))?;
        ours[index] = None;
        order.push(index);
    }
    (order.len() == ours.len() && !order.is_sorted()).then_some(order)
}
