//! The events of a scenario's timeline and their actions: types, form in scenario files, and static
//! properties.
//!
//! A new action is a variant of [`Action`] with an arm in [`Action::scope`] and
//! [`Action::can_end`]; `HPA_ACTIONS`, `VPA_ACTIONS` or `RULES` names it if only some scenarios can
//! have it. Apart from this file, the world, the engines and the sentences of reports
//! (`report/presentation/plain.rs`) handle it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, json_schema};
use serde::de::Deserializer;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::autoscalers::write_content;
use super::entries::read_object;
use super::event;
use super::known_fields::FieldRule;
use super::known_fields::Requirement::{AVpa, AnHpa, NoHpa, NoVpa};
use super::manifest::Patch;
use super::object::{AnyObject, ObjectEdit, ObjectRef};
use super::podset::PodSet;
use super::text::{
    Amount, As, ByName, Duration, Form, Instant, PositiveDuration, malformed, text_only,
};
use super::vpa::CheckpointManifest;
use super::workload::Container;
use crate::diagnostic::Diagnostic;
use kube_autoscaler_models::api::{ApiError, Requests};
use kube_autoscaler_models::is_default::is_default;
use kube_autoscaler_models::observation::Request;
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::ClusterChange;

/// An event: `at`, optionally `for`, and exactly one action.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct TimelineEvent {
    /// The time since the start.
    #[serde(with = "As::<Instant>")]
    pub at: Time,
    /// The request of the controller after which it happens, during a reconcile.
    /// Default: it happens between reconciles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during: Option<DuringReconcile>,
    /// The duration. Default: until the end of the scenario.
    #[serde(
        rename = "for",
        default,
        with = "As::<Option<PositiveDuration>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub lasts: Option<Span>,
    /// The name of the HPA that is edited, deleted or created. Required if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hpa: Option<Arc<str>>,
    /// The name of the VPA that is edited, deleted or created. Required if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpa: Option<Arc<str>>,
    /// The name of the target that is scaled. Default: the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Arc<str>>,
    /// True if the action also applies to pods of its set that are created while it lasts.
    /// Default: only to the pods that exist at `at`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub new_pods: bool,
    /// The action.
    #[serde(flatten)]
    #[schemars(skip)]
    pub action: Action,
    /// The change of a VPA or a checkpoint that the action makes. `None` for other actions, and
    /// before the event is resolved.
    #[serde(skip)]
    pub change: Option<ClusterChange>,
    /// Line in the file, from 1.
    #[serde(skip)]
    pub line: usize,
}

/// The actions that only a scenario with an HPA can have.
const HPA_ACTIONS: &[&str] = &[
    "podsUnready",
    "podsStuckTerminating",
    "metricsEmpty",
    "metricsSlow",
    "metricError",
    "metricEmpty",
    "metricMissing",
    "getScaleError",
    "updateScaleError",
    "updateStatusError",
    "cacheLag",
    "rollingUpdate",
    "editHpa",
    "deleteHpa",
    "createHpa",
    "restartController",
];

/// The actions that only a scenario with a VPA can have.
const VPA_ACTIONS: &[&str] = &[
    "oomKill",
    "evict",
    "relabel",
    "editPods",
    "metricsLate",
    "editVpa",
    "deleteVpa",
    "createVpa",
    "setCheckpoint",
    "deleteCheckpoint",
    "restartRecommender",
];

/// The fields of events, and the actions, that a scenario with a VPA can't have.
pub const EVENTS_WITHOUT_VPA: &[&str] =
    &["metricsSlow", "during", "cacheLag", "applyObject", "editObject", "deleteObject"];

impl TimelineEvent {
    /// The time of an event that only a search makes happen, at times that it chooses.
    pub const NEVER: Time = Time(i64::MAX);

    pub(crate) const RULES: &'static [FieldRule] = &[
        FieldRule::new(AnHpa, HPA_ACTIONS).hint("remove the event: this action requires an HPA"),
        FieldRule::new(AnHpa, &["during", "hpa", "target"]),
        FieldRule::new(NoVpa, EVENTS_WITHOUT_VPA).hint("remove the event, or the VPA"),
        FieldRule::new(AVpa, VPA_ACTIONS)
            .hint("the scenario has no VPA: add `vpa`, or remove the event"),
        FieldRule::new(AVpa, &["vpa"]),
        // With an HPA, its timeline determines the pods and the metrics.
        FieldRule::new(NoHpa, &["relabel", "editPods", "metricsLate"]),
    ];
}

/// The action of an event in the timeline.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Pods are unready until the action ends.
    PodsUnready(PodSet),
    /// Pods change to phase Failed, like evicted pods. They no longer have usage, and are
    /// replaced unless `workload` has `replacesEndedPods: false`.
    #[schemars(extend("for" = false))]
    PodsFailed(PodSet),
    /// Pods change to phase Succeeded, like pods whose containers have completed. They no longer
    /// have usage, and are replaced unless `workload` has `replacesEndedPods: false`.
    #[schemars(extend("for" = false))]
    PodsSucceeded(PodSet),
    /// Pods are deleted and replaced.
    #[schemars(extend("for" = false))]
    PodsDeleted(PodSet),
    /// Pods are deleted but held by a finalizer: they are Terminating until the action ends. They
    /// are replaced immediately.
    PodsStuckTerminating(PodSet),
    /// Pods have no entry in metrics.k8s.io.
    MetricsMissing(PodSet),
    /// The samples of pods in metrics.k8s.io keep their values and timestamps, with an HPA even
    /// after the pods are deleted.
    MetricsStale(PodSet),
    /// Queries of metrics.k8s.io fail: with this response or, without an HPA, with an error of this
    /// text.
    MetricsError(QueryError),
    /// Queries of metrics.k8s.io return an empty list.
    MetricsEmpty(Empty),
    /// Responses of metrics.k8s.io and of the custom and external metrics APIs are delayed by this
    /// duration. They contain the values at the end of the delay.
    MetricsSlow(#[serde(with = "As::<PositiveDuration>")] Span),
    /// One container of pods has no usage. The pods still have metrics.
    ContainerMetricsMissing(ContainerOfPods),
    /// One resource of pods has no usage. The pods still have metrics.
    ResourceMissing(ResourceOfPods),
    /// Queries of one custom or external metric fail.
    MetricError(#[schemars(with = "MetricErrorAnswer")] MetricError),
    /// Queries of one custom or external metric, by its name, return an empty list.
    MetricEmpty(Arc<str>),
    /// Pods have no value of one of `metrics.pods`.
    MetricMissing(MetricOfPods),
    /// Reads of the target's scale fail.
    GetScaleError(#[serde(with = "ErrorAnswer")] ApiError),
    /// Writes of the target's scale fail.
    UpdateScaleError(#[serde(with = "ErrorAnswer")] ApiError),
    /// Writes of the HPA's status fail.
    UpdateStatusError(#[serde(with = "ErrorAnswer")] ApiError),
    /// The controller's caches of HPAs and pods receive changes later by this duration. Requests to
    /// the API server see the current state.
    CacheLag(#[serde(with = "As::<PositiveDuration>")] Span),
    /// The pod template changes: all pods are replaced, a few at a time.
    #[schemars(extend("for" = false))]
    RollingUpdate(RollingUpdate),
    /// The workload is deleted, and so are its pods, unless `orphan` is true. When the action ends,
    /// the workload is created again with its initial replicas. Until then, `scale` and
    /// `rollingUpdate` have no effect on it.
    TargetDeleted(TargetDeletion),
    /// The target is scaled to this number of replicas, as by `kubectl scale`.
    #[schemars(extend("for" = false))]
    Scale(#[schemars(range(min = 0))] i32),
    /// The HPA is edited by a JSON merge patch, for example `{spec: {maxReplicas: 20}}`.
    #[schemars(extend("for" = false))]
    EditHpa(
        #[serde(deserialize_with = "edit")]
        #[schemars(with = "Patch")]
        Value,
    ),
    /// The HPA is deleted.
    #[schemars(extend("for" = false))]
    DeleteHpa(Empty),
    /// The HPA is created again from the scenario's manifest.
    #[schemars(extend("for" = false))]
    CreateHpa(Empty),
    /// The controller is restarted and loses its memory.
    #[schemars(extend("for" = false))]
    RestartController(Empty),
    /// An object of any kind is created or changed as by `kubectl apply`, from its manifest or from
    /// `file`, the path of it. A `status` in the manifest is stored, too.
    #[schemars(extend("for" = false))]
    ApplyObject(
        #[serde(deserialize_with = "manifest")]
        #[schemars(with = "AnyObject")]
        Value,
    ),
    /// An object of any kind is edited by a JSON merge patch.
    #[schemars(extend("for" = false))]
    EditObject(ObjectEdit),
    /// An object of any kind is deleted. It stays as long as it has finalizers.
    #[schemars(extend("for" = false))]
    DeleteObject(ObjectRef),
    /// A container of pods is killed, because it uses more memory than its limit.
    #[schemars(extend("for" = false))]
    OomKill(OomKillOfPods),
    /// The kubelet evicts pods because the node has no memory left. The pods stay; `podsDeleted`
    /// removes them.
    #[schemars(extend("for" = false))]
    Evict(PodEviction),
    /// The labels of pods change.
    #[schemars(extend("for" = false))]
    Relabel(Relabel),
    /// Pods have other init containers, or other requests in their status.
    #[schemars(extend("for" = false))]
    EditPods(PodsEdit),
    /// The samples of pods are older than usual.
    MetricsLate(LateMetrics),
    /// The VPA is edited by a JSON merge patch, for example `{spec: {recommenders: [{name: a}]}}`.
    #[schemars(extend("for" = false))]
    EditVpa(
        #[serde(deserialize_with = "edit_vpa")]
        #[schemars(with = "BTreeMap<String, Value>")]
        Value,
    ),
    /// The VPA is deleted.
    #[schemars(extend("for" = false))]
    DeleteVpa(Empty),
    /// The VPA is created from the scenario's manifest: again, or for the first time if it is
    /// deleted at the start.
    #[schemars(extend("for" = false))]
    CreateVpa(Empty),
    /// A checkpoint is created or replaced.
    #[schemars(extend("for" = false))]
    SetCheckpoint(CheckpointManifest),
    /// The checkpoint with this name is deleted.
    #[schemars(extend("for" = false))]
    DeleteCheckpoint(Arc<str>),
    /// The recommender is restarted: it reads its checkpoints, or the history.
    #[schemars(extend("for" = false))]
    RestartRecommender(Empty),
}

/// The object that an action changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ActionScope {
    /// The pods of the workload.
    Pods,
    /// The samples of some pods in the metrics APIs.
    Samples,
    /// The responses of the metrics APIs.
    MetricsApis,
    /// The responses to the controller's other requests.
    ApiServer,
    /// The workload, or another target.
    Target,
    /// One HPA.
    Hpa,
    Controller,
    /// An object of any kind.
    Object,
    /// One VPA.
    Vpa,
    /// The VPA's recommender and its checkpoints.
    Recommender,
}

impl Action {
    /// The name of the action's field in a scenario file.
    #[must_use]
    pub fn name(&self) -> String {
        event::variant(self)
    }

    /// The object of the action.
    #[must_use]
    pub fn scope(&self) -> ActionScope {
        match self {
            Action::PodsUnready(_)
            | Action::PodsFailed(_)
            | Action::PodsSucceeded(_)
            | Action::PodsDeleted(_)
            | Action::PodsStuckTerminating(_)
            | Action::OomKill(_)
            | Action::Evict(_)
            | Action::Relabel(_)
            | Action::EditPods(_) => ActionScope::Pods,
            Action::MetricsMissing(_)
            | Action::MetricsStale(_)
            | Action::MetricsLate(_)
            | Action::ContainerMetricsMissing(_)
            | Action::ResourceMissing(_)
            | Action::MetricMissing(_) => ActionScope::Samples,
            Action::MetricsError(_)
            | Action::MetricsEmpty(_)
            | Action::MetricsSlow(_)
            | Action::MetricError(_)
            | Action::MetricEmpty(_) => ActionScope::MetricsApis,
            Action::GetScaleError(_)
            | Action::UpdateScaleError(_)
            | Action::UpdateStatusError(_)
            | Action::CacheLag(_) => ActionScope::ApiServer,
            Action::RollingUpdate(_) | Action::TargetDeleted(_) | Action::Scale(_) => {
                ActionScope::Target
            }
            Action::EditHpa(_) | Action::DeleteHpa(_) | Action::CreateHpa(_) => ActionScope::Hpa,
            Action::RestartController(_) => ActionScope::Controller,
            Action::ApplyObject(_) | Action::EditObject(_) | Action::DeleteObject(_) => {
                ActionScope::Object
            }
            Action::EditVpa(_) | Action::DeleteVpa(_) | Action::CreateVpa(_) => ActionScope::Vpa,
            Action::SetCheckpoint(_)
            | Action::DeleteCheckpoint(_)
            | Action::RestartRecommender(_) => ActionScope::Recommender,
        }
    }

    /// Returns true if the action lasts for some time, false if it is instantaneous.
    #[must_use]
    pub fn can_end(&self) -> bool {
        match self.scope() {
            ActionScope::Samples | ActionScope::MetricsApis | ActionScope::ApiServer => true,
            ActionScope::Pods => {
                matches!(self, Action::PodsUnready(_) | Action::PodsStuckTerminating(_))
            }
            ActionScope::Target => matches!(self, Action::TargetDeleted(_)),
            ActionScope::Hpa
            | ActionScope::Controller
            | ActionScope::Object
            | ActionScope::Vpa
            | ActionScope::Recommender => false,
        }
    }

    /// Returns true for the actions that only a scenario with a VPA can have.
    #[must_use]
    pub(crate) fn requires_vpa(&self) -> bool {
        VPA_ACTIONS.contains(&self.name().as_str())
    }

    /// The pods of the action, if it concerns single pods or their samples.
    #[must_use]
    pub fn pods(&self) -> Option<&PodSet> {
        match self {
            Action::PodsUnready(pods)
            | Action::PodsFailed(pods)
            | Action::PodsSucceeded(pods)
            | Action::PodsDeleted(pods)
            | Action::PodsStuckTerminating(pods)
            | Action::MetricsMissing(pods)
            | Action::MetricsStale(pods)
            | Action::ContainerMetricsMissing(ContainerOfPods { pods, .. })
            | Action::ResourceMissing(ResourceOfPods { pods, .. })
            | Action::MetricMissing(MetricOfPods { pods, .. })
            | Action::OomKill(OomKillOfPods { pods, .. })
            | Action::Evict(PodEviction { pods, .. })
            | Action::Relabel(Relabel { pods, .. })
            | Action::EditPods(PodsEdit { pods, .. })
            | Action::MetricsLate(LateMetrics { pods, .. }) => Some(pods),
            _ => None,
        }
    }

    /// The pods that the action changes. None for other actions, and for problems with metrics.
    #[must_use]
    pub fn changed_pods(&self) -> Option<&PodSet> {
        self.pods().filter(|_| self.scope() == ActionScope::Pods)
    }

    /// Returns true if the action changes containers or labels of pods, which only the recommender
    /// of a VPA sees.
    #[must_use]
    pub fn changes_containers(&self) -> bool {
        matches!(
            self,
            Action::OomKill(_) | Action::Evict(_) | Action::Relabel(_) | Action::EditPods(_)
        )
    }

    /// Returns true if the controller reacts to the action immediately, because it changes an HPA,
    /// an object of any kind, or the controller. Others have an effect at the next reconcile.
    #[must_use]
    pub fn is_api_event(&self) -> bool {
        matches!(self.scope(), ActionScope::Hpa | ActionScope::Controller | ActionScope::Object)
    }

    /// Returns true if the action sets the replicas of a target.
    #[must_use]
    pub fn sets_replicas(&self) -> bool {
        matches!(self, Action::Scale(_))
    }

    /// Returns true if the action only changes the responses of the metrics APIs.
    #[must_use]
    pub fn changes_only_metrics(&self) -> bool {
        matches!(self.scope(), ActionScope::Samples | ActionScope::MetricsApis)
    }
}

/// As in a scenario file, in one line and without punctuation: `podsUnready 0-2`.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = serde_json::to_value(self).unwrap_or_default();
        let field = fields.as_object().and_then(|fields| fields.iter().next());
        let Some((name, value)) = field else { return Ok(()) };
        f.write_str(name)?;
        match value {
            Value::String(text) => write!(f, " {text}"),
            Value::Object(fields) if fields.is_empty() => Ok(()),
            other => {
                let text = other.to_string().replace('"', "");
                write!(f, " {}", text.replace(':', ": ").replace(',', ", "))
            }
        }
    }
}

impl TimelineEvent {
    /// An event without a duration.
    #[must_use]
    pub fn new(at: Time, action: Action) -> TimelineEvent {
        TimelineEvent {
            at,
            during: None,
            lasts: None,
            hpa: None,
            vpa: None,
            target: None,
            new_pods: false,
            action,
            change: None,
            line: 0,
        }
    }

    /// Returns true if an action with a duration is in effect.
    #[must_use]
    pub fn is_active(&self, at: Time) -> bool {
        self.at <= at && self.lasts.is_none_or(|lasts| at < self.at + lasts)
    }
}

/// A moment during a reconcile: right after the response to a request of the controller,
/// before its next request. It is in the first reconcile from `at` on that sends the request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a request of the controller, for example {after: getScale}")]
pub struct DuringReconcile {
    /// The kind of request.
    pub after: Request,
    /// The number of the request among those of its kind in the reconcile, from 1. Default: 1.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    #[schemars(range(min = 1))]
    pub nth: u32,
    /// The name of the HPA that is reconciled. Required if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hpa: Option<Arc<str>>,
}

fn first() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
fn is_first(nth: &u32) -> bool {
    *nth == 1
}

/// `updateScale`, or `the 2nd updateScale`.
impl fmt::Display for DuringReconcile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.after.name();
        let suffix = match (self.nth % 10, self.nth % 100) {
            _ if self.nth == 1 => return f.write_str(name),
            (1, tens) if tens != 11 => "st",
            (2, tens) if tens != 12 => "nd",
            (3, tens) if tens != 13 => "rd",
            _ => "th",
        };
        write!(f, "the {}{suffix} {name}", self.nth)
    }
}

/// An event at the start without a duration.
impl From<Action> for TimelineEvent {
    fn from(action: Action) -> TimelineEvent {
        TimelineEvent::new(Time::ZERO, action)
    }
}

/// An action without parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an empty map, {}")]
#[schemars(description = "An empty map: `{}`.")]
pub struct Empty {}

/// How a workload is deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "{} or {orphan: true}")]
pub struct TargetDeletion {
    /// If true, the pods stay, as after `kubectl delete --cascade=orphan`. The ReplicaSets of a
    /// Deployment still replace their pods. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphan: Option<bool>,
}

impl TargetDeletion {
    /// Returns true if the pods stay.
    #[must_use]
    pub fn keeps_pods(self) -> bool {
        self.orphan == Some(true)
    }
}

/// A container of some pods.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "{pods: …, container: …}")]
pub struct ContainerOfPods {
    /// The pods.
    pub pods: PodSet,
    /// The container's name.
    pub container: Arc<str>,
}

/// A resource of some pods.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "{pods: …, resource: …}")]
pub struct ResourceOfPods {
    /// The pods.
    pub pods: PodSet,
    /// `cpu` or `memory`.
    pub resource: Arc<str>,
}

/// A metric of some pods.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "{metric: …, pods: …}")]
pub struct MetricOfPods {
    /// The metric's name, one of `metrics.pods`.
    pub metric: Arc<str>,
    /// The pods.
    pub pods: PodSet,
}

/// The failure of queries of metrics.k8s.io.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[schemars(untagged)]
pub enum QueryError {
    /// A response, in a scenario with an HPA.
    Response(
        #[serde(with = "ErrorAnswer")]
        #[schemars(with = "ErrorAnswer")]
        ApiError,
    ),
    /// The text of an error, in a scenario without an HPA.
    Text(Arc<str>),
}

write_content!(QueryError, Response, Text);

impl From<ApiError> for QueryError {
    fn from(error: ApiError) -> QueryError {
        QueryError::Response(error)
    }
}

/// An error response for one metric.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "MetricErrorAnswer")]
pub struct MetricError {
    /// The metric's name.
    pub metric: Arc<str>,
    #[serde(flatten)]
    pub error: ApiError,
}

/// An error response of the API server.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "{code: …, reason: …, message: …}")]
#[schemars(rename = "ApiError")]
struct ErrorAnswer {
    /// The HTTP status code.
    #[schemars(range(min = 400, max = 599))]
    code: u16,
    /// The reason of the Status object. Default: the usual one for the code.
    reason: Option<String>,
    /// The message, which the controller quotes.
    message: Arc<str>,
}

impl ErrorAnswer {
    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ApiError, D::Error> {
        let ErrorAnswer { code, reason, message } = Deserialize::deserialize(deserializer)?;
        Ok(api_error(code, reason, message))
    }

    fn serialize<S: Serializer>(error: &ApiError, serializer: S) -> Result<S::Ok, S::Error> {
        error.serialize(serializer)
    }
}

/// An error response for one metric.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "{metric: …, code: …, reason: …, message: …}")]
#[schemars(rename = "MetricError")]
struct MetricErrorAnswer {
    /// The metric's name.
    metric: Arc<str>,
    /// The HTTP status code.
    #[schemars(range(min = 400, max = 599))]
    code: u16,
    /// The reason of the Status object. Default: the usual one for the code.
    reason: Option<String>,
    /// The message, which the controller quotes.
    message: Arc<str>,
}

impl From<MetricErrorAnswer> for MetricError {
    fn from(answer: MetricErrorAnswer) -> MetricError {
        let MetricErrorAnswer { metric, code, reason, message } = answer;
        MetricError { metric, error: api_error(code, reason, message) }
    }
}

/// Creates an error. Without a given or a usual reason, the reason is empty.
fn api_error(code: u16, reason: Option<String>, message: Arc<str>) -> ApiError {
    let usual = || usual_reason(code).unwrap_or_default().to_owned();
    ApiError { code, reason: reason.unwrap_or_else(usual), message }
}

/// The usual reasons of error responses.
pub(super) fn usual_reason(code: u16) -> Option<&'static str> {
    Some(match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        409 => "Conflict",
        410 => "Gone",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => return None,
    })
}

fn edit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    read_object(deserializer, "a patch of the HPA, for example {spec: {maxReplicas: 20}}")
}

fn manifest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    AnyObject::deserialize(deserializer).map(|object| object.0)
}

fn edit_vpa<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let expected = "a patch of the VPA, for example {metadata: {annotations: {a: b}}}";
    read_object(deserializer, expected)
}

/// A rolling update: all pods are replaced, a few at a time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a rolling update, for example {maxSurge: 25%, maxUnavailable: 0}")]
pub struct RollingUpdate {
    /// The largest number of pods above the replicas: a number, or a percentage of the replicas,
    /// rounded up. Default 25%. Not for StatefulSets, which replace one pod at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<Share>,
    /// The largest number of pods missing from the replicas: a number, or a percentage of the
    /// replicas, rounded down. Default 25%. Not for StatefulSets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<Share>,
    /// The containers of the new pods with their requests. Default: no change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<Container>,
}

impl RollingUpdate {
    /// The limits on the number of pods, for workloads that replace several pods at a time.
    #[must_use]
    pub fn surge(&self) -> Surge {
        Surge {
            max_surge: self.max_surge.unwrap_or(Share::DEFAULT),
            max_unavailable: self.max_unavailable.unwrap_or(Share::DEFAULT),
        }
    }
}

/// The limits on the number of pods during a rolling update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Surge {
    /// The largest number of pods above the replicas.
    pub max_surge: Share,
    /// The largest number of available pods missing from the replicas.
    pub max_unavailable: Share,
}

/// A number of pods, or a percentage of the replicas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Share {
    /// A number of pods.
    Pods(u32),
    /// A percentage of the replicas.
    Percent(u32),
}

impl Share {
    /// The default of a Deployment.
    pub const DEFAULT: Share = Share::Percent(25);
}

/// A number of pods, or a percentage of the replicas.
impl Form for Share {
    type Value = Share;
    const NAME: &'static str = "\0share";
    const EXPECTED: &'static str = "a number of pods, or a percentage such as 25%";
    const FALLBACK: &'static str = "1";
    const SCHEMA_NAME: &'static str = "ShareText";

    fn read(text: &str) -> Result<Share, Diagnostic> {
        let share = match text.strip_suffix('%') {
            Some(percent) => percent.parse().map(Share::Percent),
            None => text.parse().map(Share::Pods),
        };
        share.map_err(|_| {
            let what = format!("expected a number of pods or a percentage, found {text:?}");
            malformed(what).hint("for example 1 or 25%")
        })
    }
    fn write(value: &Share) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        json_schema!({
            "title": "number or percentage",
            "description": "A number of pods, or a percentage of the replicas: 1, 25%.",
            "type": ["string", "integer"],
            "pattern": r"^[0-9]+%?$",
            "minimum": 0,
            "examples": ["25%", 1],
        })
    }
}

text_only!(Share);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Share::Pods(pods) => write!(f, "{pods}"),
            Share::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// An OOM kill of a container.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "an OOM kill, for example {pods: 0, container: app}")]
pub struct OomKillOfPods {
    /// The pods.
    pub pods: PodSet,
    /// The container's name. Default: the only one of the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Arc<str>>,
    /// The state of the container in the update of the pod. Default: `restarted`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shown: OomSeen,
    /// How long before the update the container was killed. Default 0s.
    #[serde(default, with = "As::<Duration>", skip_serializing_if = "is_default")]
    pub age: Span,
}

/// The state of a container in the update of its pod after an OOM kill.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OomSeen {
    /// The container runs again, with one more restart.
    #[default]
    Restarted,
    /// The container is terminated.
    Terminated,
}

/// An eviction because of memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "an eviction, for example {pods: 0, container: app, usage: 1Gi}")]
pub struct PodEviction {
    /// The pods.
    pub pods: PodSet,
    /// The container that uses more than it requests. Default: the only one of the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Arc<str>>,
    /// The memory that the container uses.
    #[serde(with = "As::<Amount>")]
    pub usage: Quantity,
}

/// A change of labels.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "{pods: …, labels: {…}}")]
pub struct Relabel {
    /// The pods.
    pub pods: PodSet,
    /// All their new labels.
    pub labels: BTreeMap<String, String>,
}

/// A change of pods other than of their labels.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a change of pods, for example {pods: 0, memoryInStatus: {app: 4Gi}}")]
#[schemars(extend("minProperties" = 2))]
pub struct PodsEdit {
    /// The pods.
    pub pods: PodSet,
    /// The names of all init containers from now on, in place of those of the workload, as if each
    /// pod had been replaced between two runs by one with the same name and another template. A
    /// container of the workload with one of these names is not an ordinary container of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init_containers: Option<Vec<Arc<str>>>,
    /// The memory requests of containers in the status of the pods, which differ from those of
    /// their specification while the pods are resized.
    #[serde(default, with = "As::<ByName<Amount>>", skip_serializing_if = "Requests::is_empty")]
    pub memory_in_status: Requests,
}

/// Samples that are older than usual.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "{pods: …, by: 5m}")]
pub struct LateMetrics {
    /// The pods.
    pub pods: PodSet,
    /// The additional age of the newest sample: of its timestamp and its usage.
    #[serde(with = "As::<PositiveDuration>")]
    pub by: Span,
}
