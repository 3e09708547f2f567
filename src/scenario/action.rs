//! The events of a scenario's timeline, and the actions that they perform: their types, their form
//! in scenario files, and what else must be known of an action.
//!
//! A new action is a variant of [`Action`] with its place in [`Action::scope`] and
//! [`Action::can_end`]. Beside this file, only the world and the engines act on it.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, LazyLock};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Unexpected, Visitor,
};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use super::manifest::Patch;
use super::podset::PodSet;
use super::text::{As, Form, Instant, Malformed, PositiveDuration, malformed, text_only};
use super::workload::Container;
use crate::model::api::ApiError;
use crate::model::time::{Span, Time};

/// Something that happens: `at`, maybe `for`, and exactly one other field.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct TimelineEvent {
    /// When, from the start.
    #[serde(with = "As::<Instant>")]
    pub at: Time,
    /// For how long. Default: until the end of the scenario.
    #[serde(
        rename = "for",
        default,
        with = "As::<Option<PositiveDuration>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub lasts: Option<Span>,
    /// Which HPA is edited, deleted or created, by its name. Needed if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hpa: Option<Arc<str>>,
    /// Which target is scaled, by its name. Default: the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Arc<str>>,
    /// What happens.
    #[serde(flatten)]
    #[schemars(skip)]
    pub action: Action,
    /// Line in the file, from 1.
    #[serde(skip)]
    pub line: usize,
}

/// What an event of the timeline does.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Pods lose readiness, and get it back when it ends.
    PodsUnready(PodSet),
    /// Pods go to phase Failed and are replaced, as evicted ones are.
    #[schemars(extend("for" = false))]
    PodsFailed(PodSet),
    /// Pods go to phase Succeeded and are replaced, as those whose containers have ended well.
    #[schemars(extend("for" = false))]
    PodsSucceeded(PodSet),
    /// Pods are deleted, and replaced.
    #[schemars(extend("for" = false))]
    PodsDeleted(PodSet),
    /// Pods are deleted but held by a finalizer: Terminating until it ends. They are replaced.
    PodsStuckTerminating(PodSet),
    /// Pods have no entry in metrics.k8s.io.
    MetricsMissing(PodSet),
    /// The samples of pods in metrics.k8s.io stay as they were, with their timestamps; also when
    /// the pods go.
    MetricsStale(PodSet),
    /// metrics.k8s.io answers with an error.
    MetricsError(#[serde(with = "ErrorAnswer")] ApiError),
    /// metrics.k8s.io answers with an empty list.
    MetricsEmpty(Empty),
    /// Each query of metrics.k8s.io and of the custom and external metrics APIs is answered only
    /// after so long, with what there is by then.
    MetricsSlow(#[serde(with = "As::<PositiveDuration>")] Span),
    /// One container of pods has no usage; the entry of the pod stays.
    ContainerMetricsMissing(ContainerOfPods),
    /// One resource of pods is not reported; the entry of the pod stays.
    ResourceMissing(ResourceOfPods),
    /// Queries of one custom or external metric are answered with an error.
    MetricError(#[schemars(with = "MetricErrorAnswer")] MetricError),
    /// Queries of one custom or external metric, by its name, are answered with an empty list.
    MetricEmpty(Arc<str>),
    /// Pods have no value of one of `metrics.pods`.
    MetricMissing(MetricOfPods),
    /// Reading the target's scale fails.
    GetScaleError(#[serde(with = "ErrorAnswer")] ApiError),
    /// Writing the target's scale fails.
    UpdateScaleError(#[serde(with = "ErrorAnswer")] ApiError),
    /// Writing the HPA's status fails.
    UpdateStatusError(#[serde(with = "ErrorAnswer")] ApiError),
    /// The pod template changes: all pods are replaced, a few at a time.
    #[schemars(extend("for" = false))]
    RollingUpdate(RollingUpdate),
    /// The workload is deleted with its pods; when it ends, it is created again, with the size of
    /// the start.
    TargetDeleted(Empty),
    /// Somebody scales the target to this size (`kubectl scale`).
    #[schemars(extend("for" = false))]
    Scale(#[schemars(range(min = 0))] i32),
    /// Somebody edits the HPA: a JSON merge patch, for instance `{spec: {maxReplicas: 20}}`.
    #[schemars(extend("for" = false))]
    EditHpa(
        #[serde(deserialize_with = "edit")]
        #[schemars(with = "Patch")]
        Value,
    ),
    /// Somebody deletes the HPA.
    #[schemars(extend("for" = false))]
    DeleteHpa(Empty),
    /// Somebody creates the HPA again, from the scenario's manifest.
    #[schemars(extend("for" = false))]
    CreateHpa(Empty),
    /// The controller is restarted: what it had in memory is gone.
    #[schemars(extend("for" = false))]
    RestartController(Empty),
}

/// What an action acts on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ActionScope {
    /// The pods of the workload.
    Pods,
    /// The samples that the metrics APIs have of some pods.
    Samples,
    /// The answers of the metrics APIs.
    MetricsApis,
    /// The answers to the controller's other requests.
    ApiServer,
    /// The workload, or another target.
    Target,
    /// One HPA.
    Hpa,
    /// The controller.
    Controller,
}

impl Action {
    /// The name of the action's field in a scenario file.
    #[must_use]
    pub fn name(&self) -> String {
        let fields = serde_json::to_value(self).unwrap_or_default();
        fields.as_object().and_then(|fields| fields.keys().next().cloned()).unwrap_or_default()
    }

    /// What it acts on.
    #[must_use]
    pub fn scope(&self) -> ActionScope {
        match self {
            Action::PodsUnready(_)
            | Action::PodsFailed(_)
            | Action::PodsSucceeded(_)
            | Action::PodsDeleted(_)
            | Action::PodsStuckTerminating(_) => ActionScope::Pods,
            Action::MetricsMissing(_)
            | Action::MetricsStale(_)
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
            | Action::UpdateStatusError(_) => ActionScope::ApiServer,
            Action::RollingUpdate(_) | Action::TargetDeleted(_) | Action::Scale(_) => {
                ActionScope::Target
            }
            Action::EditHpa(_) | Action::DeleteHpa(_) | Action::CreateHpa(_) => ActionScope::Hpa,
            Action::RestartController(_) => ActionScope::Controller,
        }
    }

    /// Returns true if the action lasts for some time, false if it happens once.
    #[must_use]
    pub fn can_end(&self) -> bool {
        match self.scope() {
            ActionScope::Samples | ActionScope::MetricsApis | ActionScope::ApiServer => true,
            ActionScope::Pods => {
                matches!(self, Action::PodsUnready(_) | Action::PodsStuckTerminating(_))
            }
            ActionScope::Target => matches!(self, Action::TargetDeleted(_)),
            ActionScope::Hpa | ActionScope::Controller => false,
        }
    }

    /// The pods that it acts on, if it acts on single pods or their samples.
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
            | Action::MetricMissing(MetricOfPods { pods, .. }) => Some(pods),
            _ => None,
        }
    }

    /// Whether the controller itself reacts to it at once: it is done to an HPA or to the
    /// controller. All else is seen at a reconcile only.
    #[must_use]
    pub fn is_api_event(&self) -> bool {
        matches!(self.scope(), ActionScope::Hpa | ActionScope::Controller)
    }

    /// Whether it changes only what the metrics APIs answer.
    #[must_use]
    pub fn is_of_metrics(&self) -> bool {
        matches!(self.scope(), ActionScope::Samples | ActionScope::MetricsApis)
    }
}

impl TimelineEvent {
    /// An event that does not end by itself.
    #[must_use]
    pub fn new(at: Time, action: Action) -> TimelineEvent {
        TimelineEvent { at, lasts: None, hpa: None, target: None, action, line: 0 }
    }
}

/// At the start, until something else is said.
impl From<Action> for TimelineEvent {
    fn from(action: Action) -> TimelineEvent {
        TimelineEvent::new(Time::ZERO, action)
    }
}

/// The fields of an event that do not say what happens.
pub(super) const EVENT_FIELDS: [&str; 4] = ["at", "for", "hpa", "target"];

/// All fields of an event: [`EVENT_FIELDS`], and the names of the actions.
static FIELDS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    /// Refuses to be read, but learns the names of the variants.
    struct Names<'a>(&'a Cell<&'static [&'static str]>);
    impl<'de> Deserializer<'de> for Names<'_> {
        type Error = serde::de::value::Error;
        fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            Err(Self::Error::invalid_type(Unexpected::Unit, &visitor))
        }
        fn deserialize_enum<V: Visitor<'de>>(
            self,
            _name: &'static str,
            variants: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            self.0.set(variants);
            self.deserialize_any(visitor)
        }
        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
        }
    }
    let names = Cell::new([].as_slice());
    let _ = Action::deserialize(Names(&names));
    EVENT_FIELDS.iter().chain(names.get()).copied().collect()
});

/// The name of a field of an event.
struct FieldName(String);

impl<'de> Deserialize<'de> for FieldName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FieldName, D::Error> {
        let name = String::deserialize(deserializer)?;
        if FIELDS.contains(&name.as_str()) {
            Ok(FieldName(name))
        } else {
            Err(D::Error::unknown_field(&name, &FIELDS))
        }
    }
}

/// The rest of a map, from a key on that was read already.
struct Rest<'a, A> {
    key: Option<&'a str>,
    map: &'a mut A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Rest<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        self.key.take().map(|key| seed.deserialize(StrDeserializer::new(key))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// By hand: a derived one would put the fields aside before it reads them, without their places.
impl<'de> Deserialize<'de> for TimelineEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TimelineEvent, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = TimelineEvent;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("something that happens, for instance {at: 60s, scale: 7}")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TimelineEvent, A::Error> {
                event(map)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

fn event<'de, A: MapAccess<'de>>(mut map: A) -> Result<TimelineEvent, A::Error> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct At(#[serde(with = "As::<Instant>")] Time);
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct For(#[serde(with = "As::<Option<PositiveDuration>>")] Option<Span>);

    let mut at = None;
    let mut event = TimelineEvent::new(Time::ZERO, Action::RestartController(Empty {}));
    let mut actions: Vec<String> = Vec::new();
    while let Some(FieldName(name)) = map.next_key()? {
        match name.as_str() {
            "at" => at = Some(map.next_value::<At>()?.0),
            "for" => event.lasts = map.next_value::<For>()?.0,
            "hpa" => event.hpa = map.next_value()?,
            "target" => event.target = map.next_value()?,
            _ => {
                if actions.is_empty() {
                    let rest = Rest { key: Some(&name), map: &mut map };
                    event.action = Action::deserialize(MapAccessDeserializer::new(rest))?;
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
                actions.push(name);
            }
        }
    }
    event.at = at.ok_or_else(|| A::Error::missing_field("at"))?;
    let wrong = match actions.as_slice() {
        [_] => return Ok(event),
        [] => "nothing happens here: one field besides `at` and `for` is missing\n\
             for instance {at: 60s, for: 2m, podsUnready: \"0-2\"}; see the reference"
            .to_owned(),
        several => format!(
            "expected one thing to happen, found {}: {}\nwrite an entry for each of them",
            several.len(),
            several.join(", ")
        ),
    };
    Err(A::Error::custom(wrong))
}

/// The JSON Schema of [`TimelineEvent`]: each action is a field with its own description.
pub(super) struct AnyTimelineEvent;

impl JsonSchema for AnyTimelineEvent {
    fn schema_name() -> Cow<'static, str> {
        "TimelineEvent".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut event = TimelineEvent::json_schema(generator);
        let actions = Action::json_schema(generator);
        let mut choices = Vec::new();
        for action in actions.get("oneOf").and_then(Value::as_array).into_iter().flatten() {
            let Some(Value::String(name)) = action.pointer("/required/0") else { continue };
            let mut field = action["properties"][name].clone();
            field["description"] = action["description"].clone();
            let mut choice = json!({ "required": [name] });
            if action.get("for").is_some() {
                choice["properties"] = json!({ "for": false });
            }
            choices.push(choice);
            if let Some(fields) = event.get_mut("properties").and_then(Value::as_object_mut) {
                fields.insert(name.clone(), field);
            }
        }
        event.insert("oneOf".to_owned(), choices.into());
        event
    }
}

/// Nothing more to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an empty map, {}")]
#[schemars(description = "Nothing more to say: `{}`.")]
pub struct Empty {}

/// A container of some pods.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "{pods: …, container: …}")]
pub struct ContainerOfPods {
    /// Which pods.
    pub pods: PodSet,
    /// The container's name.
    pub container: Arc<str>,
}

/// A resource of some pods.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "{pods: …, resource: …}")]
pub struct ResourceOfPods {
    /// Which pods.
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
    /// Which pods.
    pub pods: PodSet,
}

/// An error answer for one metric.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "MetricErrorAnswer")]
pub struct MetricError {
    /// The metric's name.
    pub metric: Arc<str>,
    /// The answer.
    #[serde(flatten)]
    pub error: ApiError,
}

/// An error answer of the API server.
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

/// An error answer for one metric.
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

/// Without a reason, and without a usual one for the code, the reason is empty.
fn api_error(code: u16, reason: Option<String>, message: Arc<str>) -> ApiError {
    let usual = || usual_reason(code).unwrap_or_default().to_owned();
    ApiError { code, reason: reason.unwrap_or_else(usual), message }
}

/// The usual reasons of error answers.
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
    let expected = "a patch of the HPA, for instance {spec: {maxReplicas: 20}}";
    super::entries::Entries::<Value>::read(deserializer, expected)
        .map(|fields| fields.0.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}

/// A rolling update: all pods are replaced by new ones, a few at a time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a rolling update, for instance {maxSurge: 25%, maxUnavailable: 0}")]
pub struct RollingUpdate {
    /// How many pods there may be above the size: a number, or percent of the size, rounded up.
    /// Default 25%. Not of StatefulSets, which replace one pod at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<Share>,
    /// How many pods may be missing from the size: a number, or percent of the size, rounded down.
    /// Default 25%. Not of StatefulSets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<Share>,
    /// The containers of the new pods with their requests. Default: as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<Container>,
}

impl RollingUpdate {
    /// How far the number of pods may be from the size, for workloads that replace several pods at
    /// a time.
    #[must_use]
    pub fn surge(&self) -> Surge {
        Surge {
            max_surge: self.max_surge.unwrap_or(Share::DEFAULT),
            max_unavailable: self.max_unavailable.unwrap_or(Share::DEFAULT),
        }
    }
}

/// How far the number of pods may be from the size during a rolling update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Surge {
    /// More pods than the size.
    pub max_surge: Share,
    /// Fewer available pods than the size.
    pub max_unavailable: Share,
}

/// A number of pods, or a part of the size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Share {
    /// So many pods.
    Pods(u32),
    /// So many percent of the size.
    Percent(u32),
}

impl Share {
    /// What a Deployment has if nothing else is said.
    pub const DEFAULT: Share = Share::Percent(25);
}

/// A number of pods, or percent of the size.
impl Form for Share {
    type Value = Share;
    const NAME: &'static str = "\0share";
    const EXPECTED: &'static str = "a number of pods, or percent such as 25%";
    const FALLBACK: &'static str = "1";
    const SCHEMA_NAME: &'static str = "ShareText";

    fn read(text: &str) -> Result<Share, Malformed> {
        let share = match text.strip_suffix('%') {
            Some(percent) => percent.parse().map(Share::Percent),
            None => text.parse().map(Share::Pods),
        };
        share.map_err(|_| {
            let what = format!("expected a number of pods, or percent, found {text:?}");
            malformed(what).hint("for instance 1 or 25%")
        })
    }
    fn write(value: &Share) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        json_schema!({
            "title": "number or percent",
            "description": "A number of pods, or percent of the size: 1, 25%.",
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
