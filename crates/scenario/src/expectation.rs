//! The expectations of scenarios, and their form in scenario files.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::autoscalers::write_content;
use super::bounds::Bounds;
use super::entries::Entries;
use super::event::names;
use super::expected_metric::ExpectedMetric;
use super::known_fields::FieldRule;
use super::known_fields::Requirement::{Never, NoVpa};
use super::node::{Node, NodeKind};
use super::object::{ExpectedFields, ObjectRef};
use super::releases::ReleaseRange;
use super::text::{As, Duration, Instant, PositiveDuration, Status};
use super::vpa::VpaExpectation;
use kube_autoscaler_models::is_default::is_default;
use kube_autoscaler_models::time::{Span, Time};

/// An expectation of a scenario file. In a scenario with an HPA and a VPA, its fields determine the
/// controller: an expectation that could be about either is about the HPA.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[schemars(untagged)]
pub enum AnyExpectation {
    /// The expected behavior of the HPA controller.
    Hpa(Box<Expectation>),
    /// The expected behavior of the VPA's recommender.
    Vpa(Box<VpaExpectation>),
}

impl AnyExpectation {
    /// Returns true if an expectation has a field that only those on VPAs have.
    pub(crate) fn is_on_a_vpa(node: &Node) -> bool {
        let NodeKind::Map(entries) = &node.kind else { return false };
        let mut given = entries.iter().map(|(key, _)| key.text.as_str());
        given.any(|name| {
            names::<VpaExpectation>().contains(&name) && !names::<Expectation>().contains(&name)
        })
    }
}

write_content!(AnyExpectation, Hpa, Vpa);

/// An expectation: a time (exactly one of `tick`, `at`, `always`, `never`, `within`) and the
/// expected values; or one of `atMost`, `series`, `sequence` and `rests` alone.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "an expectation, for example {tick: 1, replicas: 6}")]
#[schemars(rename = "Expect")]
#[schemars(extend(
    "oneOf" = [
        {"required": ["tick"]},
        {"required": ["at"]},
        {"required": ["always"]},
        {"required": ["never"]},
        {"required": ["within"]},
        {"required": ["atMost"]},
        {"required": ["series"]},
        {"required": ["sequence"]},
        {"required": ["rests"]},
    ],
    "anyOf" = [
        {"required": ["atMost"]},
        {"required": ["rests"]},
        {"required": ["series"]},
        {"required": ["sequence"]},
        {"required": ["replicas"]},
        {"required": ["desiredReplicas"]},
        {"required": ["currentReplicas"]},
        {"required": ["metrics"]},
        {"required": ["conditions"]},
        {"required": ["events"]},
        {"required": ["rescaled"]},
        {"required": ["error"]},
        {"required": ["object"]},
    ],
))]
pub struct Expectation {
    /// The releases that the expectation applies to. Default: all releases of the scenario.
    #[serde(default, skip_serializing_if = "ReleaseRange::is_all")]
    pub releases: ReleaseRange,
    /// Restricts the expectation, and the count of reconciles, to the HPA of this name. Default:
    /// all HPAs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hpa: Option<Arc<str>>,
    /// At the n-th reconcile, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub tick: Option<u32>,
    /// At the last reconcile at or before this time.
    #[serde(default, with = "As::<Option<Instant>>", skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// At every reconcile between two times; `{}`: in the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always: Option<Between>,
    /// At no reconcile between two times; `{}`: in the whole run. If several values
    /// are given, they do not all hold at the same reconcile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub never: Option<Between>,
    /// At some reconcile at most this long after `of`.
    #[serde(default, with = "As::<Option<Duration>>", skip_serializing_if = "Option::is_none")]
    pub within: Option<Span>,
    /// With `within`: the beginning of the period. Default 0s.
    #[serde(default, with = "As::<Option<Instant>>", skip_serializing_if = "Option::is_none")]
    pub of: Option<Time>,
    /// The time from which `at`, `always`, `never`, `within` and `series` count. Default: the start
    /// of the scenario. The first reconcile is one sync period later in releases before 1.37.
    #[serde(default, skip_serializing_if = "is_default")]
    pub since: Since,
    /// A limit on the number of changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<AtMost>,
    /// The target's replicas at regular times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<ExpectedSeries>,
    /// All numbers of replicas of the target in the whole run, in order, from the initial number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), inner(range(min = 0)))]
    pub sequence: Option<Vec<i32>>,
    /// The controller comes to rest after the last change from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rests: Option<Rests>,
    /// With `tick`, `at` or `series`: the values may also be those of a reconcile up to this many
    /// ticks earlier or later. Default 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tolerance_ticks: u32,
    /// The object that `exists` and `fields` are about: its state at that time, or between two
    /// times. States that last for no time do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// With `object`: true if it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
    /// With `object`: the values of its fields, by their JSON paths (RFC 9535), for example
    /// `spec.replicas: 3` or `status.conditions[?(@.type=='Ready')].status: "True"`. If a path
    /// selects several values, each of them must be as expected.
    #[serde(default, skip_serializing_if = "Entries::is_empty")]
    pub fields: ExpectedFields,
    /// The target's replicas after the reconcile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<Bounds<i32>>,
    /// `status.desiredReplicas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_replicas: Option<Bounds<i32>>,
    /// `status.currentReplicas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_replicas: Option<Bounds<i32>>,
    /// Values that `status.currentMetrics` must contain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<ExpectedMetric>,
    /// Conditions that the status must contain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ExpectedCondition>,
    /// Events that the reconcile must record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<ExpectedEvent>,
    /// True if the reconcile changed the replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rescaled: Option<bool>,
    /// A substring of the reconcile's error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Line in the file, from 1.
    #[serde(skip)]
    pub line: usize,
}

impl Expectation {
    pub(crate) const RULES: &'static [FieldRule] = &[
        FieldRule::new(NoVpa, &["object", "exists", "fields", "rests"]),
        FieldRule::new(Never, &["tolerance"]).hint("did you mean `toleranceTicks`?"),
        FieldRule::new(Never, &["utilization", "averageUtilization"])
            .hint("did you mean `metrics: [{name: cpu, utilization: 80}]`?"),
        FieldRule::new(Never, &["averageValue"])
            .hint("did you mean `metrics: [{name: cpu, averageValue: 500m}]`?"),
    ];

    /// The time of the expectation, in a scenario that ends at `until`.
    #[must_use]
    pub fn when(&self, until: Time) -> When {
        if let Some(when) = self.timing().when(until) {
            when
        } else if let Some(series) = &self.series {
            When::Series(series.clone())
        } else if let Some(replicas) = &self.sequence {
            When::Sequence(replicas.clone())
        } else {
            When::Whole
        }
    }

    /// Returns true if it applies to the whole run of any scenario, with any HPAs and times.
    #[must_use]
    pub fn holds_at_any_time(&self) -> bool {
        let is_whole =
            |period: &Option<Between>| period.as_ref().is_some_and(|it| *it == Between::default());
        let is_about_whole =
            is_whole(&self.always) || is_whole(&self.never) || self.at_most.is_some();
        is_about_whole && self.hpa.is_none() && self.rests.is_none()
    }

    /// Returns true if it limits the writes of objects in the whole run.
    #[must_use]
    pub fn is_on_writes(&self) -> bool {
        self.rests.is_some() || self.at_most.as_ref().is_some_and(AtMost::is_on_writes)
    }

    /// The fields for the time, except `atMost`, `series`, `sequence` and `rests`.
    pub(crate) fn timing(&self) -> Timing<'_> {
        let Expectation { tick, at, within, of, .. } = *self;
        Timing { tick, at, always: self.always.as_ref(), never: self.never.as_ref(), within, of }
    }
}

/// The fields that set the time of an expectation for an HPA or a VPA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing<'a> {
    /// The number of a reconcile, or of a run of the recommender, from 1.
    pub tick: Option<u32>,
    /// Selects the last tick at or before this time.
    pub at: Option<Time>,
    /// Selects every tick in this period.
    pub always: Option<&'a Between>,
    /// Requires that no tick in this period matches.
    pub never: Option<&'a Between>,
    /// Requires a matching tick in a period of this length.
    pub within: Option<Span>,
    /// With `within`: the beginning of the period.
    pub of: Option<Time>,
}

impl Timing<'_> {
    /// The time, in a scenario that ends at `until`. `None`: no field is set.
    pub(crate) fn when(self, until: Time) -> Option<When> {
        let ends =
            |between: &Between| (between.from.unwrap_or_default(), between.to.unwrap_or(until));
        Some(if let Some(tick) = self.tick {
            When::Tick(usize::try_from(tick).unwrap_or(usize::MAX))
        } else if let Some(at) = self.at {
            When::At(at)
        } else if let Some((from, to)) = self.always.map(ends) {
            When::Always(from, to)
        } else if let Some((from, to)) = self.never.map(ends) {
            When::Never(from, to)
        } else {
            When::Within { of: self.of.unwrap_or_default(), span: self.within? }
        })
    }
}

/// The time from which the times of an expectation count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Since {
    /// The start of the scenario.
    #[default]
    Start,
    /// The first reconcile of the run, or of the expectation's HPA.
    FirstReconcile,
}

/// A span of the run, both ends included.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a map: {from: …, to: …}, or {} for the whole run")]
pub struct Between {
    /// Default: the start.
    #[serde(default, with = "As::<Option<Instant>>", skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// Default: the end.
    #[serde(default, with = "As::<Option<Instant>>", skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
}

/// A limit on the number of changes: exactly one of `directionChanges`, `rescales`, `writes`,
/// `writesWithoutChange` and `writersPerField`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a map such as {rescales: 1, in: 10m}")]
#[schemars(extend("oneOf" = [
    {"required": ["directionChanges"]},
    {"required": ["rescales"]},
    {"required": ["writes"]},
    {"required": ["writesWithoutChange"]},
    {"required": ["writersPerField"]},
]))]
pub struct AtMost {
    /// Changes of direction: up after down, down after up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction_changes: Option<u32>,
    /// Changes of the replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rescales: Option<u32>,
    /// Writes of objects by controllers, also rejected ones. Leases and events do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<u32>,
    /// Writes of objects by controllers that store what was already stored. Leases and events do
    /// not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes_without_change: Option<u32>,
    /// Controllers that change the same field of the same object in the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writers_per_field: Option<u32>,
    /// Within any period of this length. Default: in the whole run.
    #[serde(
        rename = "in",
        default,
        with = "As::<Option<PositiveDuration>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub in_: Option<Span>,
}

impl AtMost {
    /// The limits by name, in the order of the fields.
    pub(crate) fn limits(&self) -> [Option<u32>; 5] {
        [
            self.direction_changes,
            self.rescales,
            self.writes,
            self.writes_without_change,
            self.writers_per_field,
        ]
    }

    /// Returns true if it limits the writes of objects.
    pub(crate) fn is_on_writes(&self) -> bool {
        self.limits()[2..].iter().any(Option::is_some)
    }
}

/// How a controller comes to rest.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a map such as {writes: 20, for: 1m}, or {}")]
pub struct Rests {
    /// The largest number of writes of objects by controllers after the last change from outside: a
    /// change in the timeline, or of simulated pods. Leases and events do not count. Default: any
    /// number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<u32>,
    /// The time without a write at the end of the scenario. Default: the sync period.
    #[serde(
        rename = "for",
        default,
        with = "As::<Option<PositiveDuration>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub lasts: Option<Span>,
}

/// The target's replicas at regular times.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a map such as {every: 1m, from: 5m, replicas: [4, 6, 6]}")]
pub struct ExpectedSeries {
    /// The time between two values.
    #[serde(with = "As::<PositiveDuration>")]
    pub every: Span,
    /// The time of the first value. Default: the start.
    #[serde(default, with = "As::<Option<Instant>>", skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// The replicas after the last reconcile at or before each time.
    #[schemars(length(min = 1))]
    pub replicas: Vec<Bounds<i32>>,
}

impl ExpectedSeries {
    pub(crate) const RULES: &'static [FieldRule] =
        &[FieldRule::new(Never, &["tolerance", "toleranceTicks"])
            .hint("did you mean `toleranceTicks`? It belongs next to `series`")];

    /// The values with their times.
    pub fn values(&self) -> impl Iterator<Item = (Time, Bounds<i32>)> {
        let mut next = self.from.unwrap_or_default();
        self.replicas.iter().map(move |replicas| {
            let at = next;
            next = next + self.every;
            (at, *replicas)
        })
    }
}

/// A condition of the HPA's status.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Condition")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a condition, for example {type: ScalingActive, status: \"True\"}")]
pub struct ExpectedCondition {
    /// The condition's type.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["AbleToScale", "ScalingActive", "ScalingLimited", "ScaledToZero"]))]
    pub type_: String,
    /// True or False.
    #[serde(default, with = "As::<Option<Status>>", skip_serializing_if = "Option::is_none")]
    pub status: Option<bool>,
    /// The condition's reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [
        "ReadyForNewScale", "SucceededRescale", "SucceededGetScale", "ScaleDownStabilized",
        "ScaleUpStabilized", "FailedGetScale", "FailedUpdateScale", "ValidMetricFound",
        "ScalingDisabled", "FailedGetResourceMetric", "InvalidSelector", "DesiredWithinRange",
        "TooFewReplicas", "TooManyReplicas", "ScaleUpLimit", "ScaleDownLimit",
    ]))]
    pub reason: Option<String>,
    /// A substring of the condition's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// An event on the HPA.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Event")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "an event, for example {reason: SuccessfulRescale}")]
pub struct ExpectedEvent {
    /// The event's reason.
    #[schemars(extend("examples" = [
        "SuccessfulRescale", "FailedRescale", "FailedGetScale", "FailedGetResourceMetric",
        "FailedComputeMetricsReplicas", "FailedUpdateStatus", "SelectorRequired",
    ]))]
    pub reason: String,
    /// A substring of the event's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl When {
    /// The time, later by a span. The number of a reconcile does not change.
    #[must_use]
    pub fn later(self, span: Span) -> When {
        match self {
            When::At(at) => When::At(at + span),
            When::Always(from, to) => When::Always(from + span, to + span),
            When::Never(from, to) => When::Never(from + span, to + span),
            When::Within { of, span: length } => When::Within { of: of + span, span: length },
            When::Series(series) => {
                let from = Some(series.from.unwrap_or_default() + span);
                When::Series(ExpectedSeries { from, ..series })
            }
            other @ (When::Tick(_) | When::Sequence(_) | When::Whole) => other,
        }
    }
}

/// The time of an expectation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum When {
    /// At the n-th reconcile, from 1.
    Tick(usize),
    /// At the last reconcile at or before this time.
    At(Time),
    /// At every reconcile between two times (inclusive).
    Always(Time, Time),
    /// At no reconcile between two times (inclusive).
    Never(Time, Time),
    /// At some reconcile in a period.
    Within {
        /// The start of the period.
        of: Time,
        /// The length of the period.
        span: Span,
    },
    /// At regular times.
    Series(ExpectedSeries),
    /// In the whole run, in this order.
    Sequence(Vec<i32>),
    /// Over the whole run (for counts).
    Whole,
}
