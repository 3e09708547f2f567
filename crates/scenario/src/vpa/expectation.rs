//! `expect` of a scenario of the recommender.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

use super::expected_checkpoint::{ApiTime, ExpectedCheckpoint};
use super::releases::VpaReleaseRange;
use crate::bounds::{AtLeastAtMost, Bounds};
use crate::diagnostic::Diagnostic;
use crate::expectation::Timing;
use crate::known_fields::FieldRule;
use crate::known_fields::Requirement::Never;
use crate::resolved::{Between, When};
use crate::text::{Amount, AnyQuantity, As, Duration, Form, Instant, Read, Status, TextOrMap};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::{ContainerRecommendation, GoTime, Resource, ResourceList};

/// An expectation: when (one of `tick`, `at`, `always`, `never` and `within`), and what.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "an expectation (a map)")]
pub struct VpaExpectation {
    /// The releases that the expectation applies to. Default: all.
    #[serde(default, skip_serializing_if = "VpaReleaseRange::is_all")]
    pub releases: VpaReleaseRange,
    /// The name of the VPA. Required if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpa: Option<Arc<str>>,
    /// The n-th run of the recommender, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub tick: Option<u32>,
    /// The last run at or before this time.
    #[serde(default, with = "As::<Option<Instant>>", skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// Every run in this span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always: Option<Between>,
    /// No run in this span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub never: Option<Between>,
    /// Some run within this duration.
    #[serde(default, with = "As::<Option<Duration>>", skip_serializing_if = "Option::is_none")]
    pub within: Option<Span>,
    /// With `within`: the beginning of the period. Default 0s.
    #[serde(default, with = "As::<Option<Instant>>", skip_serializing_if = "Option::is_none")]
    pub of: Option<Time>,
    /// The container that the expected amounts are for. Default: the only one of the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Arc<str>>,
    /// The recommended requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<ExpectedAmounts>,
    /// The lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower_bound: Option<ExpectedAmounts>,
    /// The upper bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper_bound: Option<ExpectedAmounts>,
    /// The target without the limits of the policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncapped_target: Option<ExpectedAmounts>,
    /// The names of the containers in the recommendation, sorted. `[]`: no recommendation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containers: Option<Vec<Arc<str>>>,
    /// Conditions that the status must contain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ExpectedVpaCondition>,
    /// Types of conditions that the status must not contain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_conditions: Vec<String>,
    /// `status.observedGeneration`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The names of the existing checkpoints of all VPAs, sorted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<Vec<Arc<str>>>,
    /// The total numbers of samples in checkpoints, by the names of the checkpoints.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub samples: BTreeMap<Arc<str>, i64>,
    /// Fields of the status of checkpoints, by the names of the checkpoints.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checkpoint_status: BTreeMap<Arc<str>, ExpectedCheckpoint>,
    /// A substring of an error that the run logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Line in the file, from 1.
    #[serde(skip)]
    pub line: usize,
}

/// A value of a recommendation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VpaValue {
    /// The recommended requests.
    Target,
    LowerBound,
    UpperBound,
    /// The target without the limits of the policies.
    UncappedTarget,
}

impl VpaValue {
    /// All values, in the order of the API.
    pub const ALL: [VpaValue; 4] =
        [VpaValue::Target, VpaValue::LowerBound, VpaValue::UpperBound, VpaValue::UncappedTarget];

    /// The name in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            VpaValue::Target => "target",
            VpaValue::LowerBound => "lowerBound",
            VpaValue::UpperBound => "upperBound",
            VpaValue::UncappedTarget => "uncappedTarget",
        }
    }

    /// The amounts in a recommendation.
    #[must_use]
    pub fn of(self, recommendation: &ContainerRecommendation) -> &ResourceList {
        match self {
            VpaValue::Target => &recommendation.target,
            VpaValue::LowerBound => &recommendation.lower_bound,
            VpaValue::UpperBound => &recommendation.upper_bound,
            VpaValue::UncappedTarget => &recommendation.uncapped_target,
        }
    }
}

impl VpaExpectation {
    pub(crate) const RULES: &'static [FieldRule] = &[
        FieldRule::new(Never, &["cpu", "memory"])
            .hint("did you mean `target: {cpu: …, memory: …}`?"),
        FieldRule::new(Never, &["replicas", "desiredReplicas", "currentReplicas"]).hint(
            "a VPA does not change the replicas: remove the field; if the scenario also has an \
             HPA, write a separate expectation for its replicas",
        ),
    ];

    /// The expected amounts.
    pub fn amounts(&self) -> impl Iterator<Item = (VpaValue, &ExpectedAmounts)> {
        let lists = [&self.target, &self.lower_bound, &self.upper_bound, &self.uncapped_target];
        let pairs = VpaValue::ALL.into_iter().zip(lists);
        pairs.filter_map(|(value, list)| Some((value, list.as_ref()?)))
    }

    /// The time of the expectation, in a scenario that ends at `until`.
    #[must_use]
    pub fn when(&self, until: Time) -> When {
        self.timing().when(until).unwrap_or(When::Whole)
    }

    /// The fields for the time.
    pub(crate) fn timing(&self) -> Timing<'_> {
        let VpaExpectation { tick, at, within, of, .. } = *self;
        Timing { tick, at, always: self.always.as_ref(), never: self.never.as_ref(), within, of }
    }
}

/// Expected amounts by resource.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "amounts, for example {cpu: 500m, memory: 250Mi}")]
#[schemars(extend("minProperties" = 1))]
pub struct ExpectedAmounts {
    /// CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<ExpectedAmount>,
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<ExpectedAmount>,
}

impl ExpectedAmounts {
    /// The ranges that are set.
    pub fn ranges(&self) -> impl Iterator<Item = (Resource, &ExpectedAmount)> {
        let pairs = [(Resource::Cpu, &self.cpu), (Resource::Memory, &self.memory)];
        pairs.into_iter().filter_map(|(resource, range)| Some((resource, range.as_ref()?)))
    }
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(from = "TextOrMap<ExpectedAmountText, AtLeastAtMost<Read<Amount>>>")]
pub enum ExpectedAmount {
    /// There is no amount.
    Absent,
    /// An amount in this range.
    In(Bounds<Quantity>),
}

impl ExpectedAmount {
    /// Returns true if an amount, or its absence, is as expected.
    #[must_use]
    pub fn contains(&self, amount: Option<&Quantity>) -> bool {
        match self {
            ExpectedAmount::Absent => amount.is_none(),
            ExpectedAmount::In(range) => amount.is_some_and(|amount| range.contains(amount)),
        }
    }
}

/// `500m`, `at least 1Gi`, `none`.
impl fmt::Display for ExpectedAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpectedAmount::Absent => f.write_str("none"),
            ExpectedAmount::In(range) => range.fmt(f),
        }
    }
}

impl From<TextOrMap<ExpectedAmountText, AtLeastAtMost<Read<Amount>>>> for ExpectedAmount {
    fn from(amount: TextOrMap<ExpectedAmountText, AtLeastAtMost<Read<Amount>>>) -> ExpectedAmount {
        match amount {
            TextOrMap::Text(None) => ExpectedAmount::Absent,
            TextOrMap::Text(Some(amount)) => ExpectedAmount::In(amount.into()),
            TextOrMap::Map(bounds) => ExpectedAmount::In(bounds.bounds()),
        }
    }
}

impl Serialize for ExpectedAmount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ExpectedAmount::Absent => serializer.serialize_str("none"),
            ExpectedAmount::In(range) => range.serialize(serializer),
        }
    }
}

impl JsonSchema for ExpectedAmount {
    fn schema_name() -> Cow<'static, str> {
        "ExpectedAmount".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let bounds = generator.subschema_for::<AtLeastAtMost<Read<Amount>>>();
        json_schema!({
            "description": "An amount, bounds on it, or `none`.",
            "anyOf": [AnyQuantity::schema(), {"const": "none"}, bounds],
        })
    }
}

/// A quantity, or `none`.
pub struct ExpectedAmountText;

impl Form for ExpectedAmountText {
    type Value = Option<Quantity>;
    const NAME: &'static str = "\0expected amount";
    const EXPECTED: &'static str = "a quantity such as 500m, none, or {atLeast: …, atMost: …}";
    const FALLBACK: &'static str = "0";
    const SCHEMA_NAME: &'static str = "ExpectedAmountText";
    const OR_MAP: bool = true;

    fn read(text: &str) -> Result<Option<Quantity>, Diagnostic> {
        if text == "none" {
            return Ok(None);
        }
        Amount::read(text).map(Some)
    }
    fn write(value: &Option<Quantity>) -> String {
        value.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string)
    }
    fn schema() -> Schema {
        AnyQuantity::schema()
    }
}

/// A condition of the VPA's status.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "VpaCondition")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a condition, for example {type: RecommendationProvided, status: \"True\"}")]
pub struct ExpectedVpaCondition {
    /// The condition's type.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["RecommendationProvided", "NoPodsMatched", "ConfigUnsupported"]))]
    pub type_: String,
    /// True or False.
    #[serde(default, with = "As::<Option<Status>>", skip_serializing_if = "Option::is_none")]
    pub status: Option<bool>,
    /// The condition's reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A substring of the condition's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The time at which the status of the condition last changed.
    #[serde(default, with = "As::<Option<ApiTime>>", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<GoTime>,
}
