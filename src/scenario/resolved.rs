//! A resolved scenario: durations, quantities and pod sets are parsed, defaults are filled in, and
//! positions are kept where a later message may need them. The `resolve` module creates it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

pub use super::action::{
    Action, ActionScope, ContainerOfPods, Empty, MetricError, MetricOfPods, PodSet, ResourceOfPods,
    RollingUpdate, Share, Surge, TimelineEvent,
};
pub use super::autoscaler::Autoscaler;
pub use super::entries::Entries;
pub use super::expectation::{ExpectedCondition, ExpectedEvent, NumberRange};
pub use super::kinds::{BUILT_IN, ScalableKind, Target, WITHOUT_SCALE};
use super::metrics::is_default;
pub use super::metrics::{
    DescribedObject, Exception, ExternalMetric, Metrics, ObjectMetric, PodsMetric, Point,
    ResourceUsage, Sampling, Series, Signal, Sine, UsageSource,
};
pub use super::other_pods::OtherPods;
use super::text::{Amount, As, ByName, Duration, DurationOrNever};
use crate::model::api::{self, PodSpec, Requests};
use crate::model::flags::{Flag, Flags};
use crate::model::rules::Release;
use crate::model::time::{Span, Time};

/// A scenario, ready to be run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its path below `fixtures/` without the extension; for other files the path as given.
    pub id: String,
    /// The file as the user named it, for messages.
    pub path: String,
    /// One sentence: what must hold.
    pub requirement: String,
    /// A link to the source, KEP or issue; empty if the file has none.
    pub upstream: String,
    /// The ids of the rules that it shows.
    pub covers: Vec<String>,
    /// The releases on which it holds.
    pub releases: ReleaseRange,
    /// Flags of the kube-controller-manager; today's defaults where none are given.
    pub flags: Flags,
    /// The flags that are given, be it as they are by default.
    pub flags_given: Vec<Flag>,
    /// The feature gates of API server and controller that the file switches, by name.
    pub gate_overrides: BTreeMap<String, bool>,
    /// The namespace of everything.
    pub namespace: Arc<str>,
    /// The HPAs, in the order in which they are created at t=0. At least one.
    pub hpas: Vec<Autoscaler>,
    /// What the reader should know of how the file was understood.
    pub notes: Vec<String>,
    /// The scale target of the first HPA, and its pods.
    pub workload: Workload,
    /// Scale targets without pods.
    pub other_targets: Vec<OtherTarget>,
    /// Pods that no target makes.
    pub other_pods: Vec<OtherPods>,
    /// What the metrics APIs answer.
    pub metrics: Metrics,
    /// What happens, by time; stable for equal times.
    pub timeline: Vec<TimelineEvent>,
    /// When the scenario ends: the last reconcile that counts is the last one at or before it.
    pub until: Time,
    /// What the author expects.
    pub expect: Vec<Expectation>,
    /// Content hash of all that decides a run (not of comments or `expect`): 16 hex digits.
    pub hash: String,
    /// Line (from 1) of the most telling part for a divergence: `hpa`, or the file's first line.
    pub line: usize,
}

impl Scenario {
    /// The scale targets: the workload, then those without pods.
    pub fn targets(&self) -> impl Iterator<Item = Target<'_>> {
        let workload = &self.workload;
        let first = Target {
            group: &workload.group,
            version: &workload.version,
            kind: &workload.kind,
            resource: &workload.resource,
            name: &workload.name,
            replicas: workload.replicas,
        };
        let others = self.other_targets.iter().map(|other| Target {
            group: &other.group,
            version: &other.version,
            kind: &other.kind,
            resource: &other.resource,
            name: &other.name,
            replicas: other.replicas,
        });
        std::iter::once(first).chain(others)
    }

    /// The kinds that the API server serves with a scale, each once: those of the targets, and its
    /// own.
    #[must_use]
    pub fn kinds(&self) -> Vec<ScalableKind<'_>> {
        let of_targets = self.targets().map(|target| ScalableKind {
            group: target.group,
            version: target.version,
            kind: target.kind,
            resource: target.resource,
        });
        let mut kinds: Vec<ScalableKind<'_>> = Vec::new();
        for kind in of_targets.chain(BUILT_IN) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// Kinds that the API server knows and that have no scale: those of custom resources never are.
    #[must_use]
    pub fn kinds_without_scale(&self) -> Vec<ScalableKind<'static>> {
        let custom = |kind: &ScalableKind<'_>| {
            self.targets().any(|target| target.kind == kind.kind && target.group == kind.group)
        };
        WITHOUT_SCALE.into_iter().filter(|kind| !custom(kind)).collect()
    }

    /// The HPA that an event of the timeline is about, by its name.
    #[must_use]
    pub fn hpa_of<'a>(&'a self, event: &'a TimelineEvent) -> Option<&'a Arc<str>> {
        event.hpa.as_ref().or_else(|| self.hpas.first().map(|hpa| &hpa.name))
    }

    /// The target that an event of the timeline is about, by its index in [`Scenario::targets`].
    #[must_use]
    pub fn target_of(&self, event: &TimelineEvent) -> usize {
        let named =
            |name: &Arc<str>| self.other_targets.iter().position(|target| target.name == *name);
        event.target.as_ref().and_then(named).map_or(0, |other| other + 1)
    }

    /// Whether several reconciles may be due, or under way, at the same time.
    #[must_use]
    pub fn takes_turns(&self) -> bool {
        let slow = |happening: &TimelineEvent| matches!(happening.action, Action::MetricsSlow(_));
        self.has_several_hpas() || self.timeline.iter().any(slow)
    }

    /// Whether reports have to say which HPA they speak of.
    #[must_use]
    pub fn has_several_hpas(&self) -> bool {
        self.hpas.len() > 1
    }
}

/// A scale target that has no pods of its own: only its size is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherTarget {
    /// API group, empty for core.
    pub group: String,
    /// API version.
    pub version: String,
    /// For instance `Deployment`.
    pub kind: String,
    /// For instance `deployments`.
    pub resource: String,
    /// Its name.
    pub name: Arc<str>,
    /// `spec.replicas` at t=0; `status.replicas` follows at once.
    pub replicas: i32,
    /// The text form of its selector, as in `status.selector` of its scale.
    pub selector: Arc<str>,
}

/// The releases on which a scenario holds; both ends inclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReleaseRange {
    /// The oldest, or all.
    pub from: Option<Release>,
    /// The newest, or all.
    pub to: Option<Release>,
}

/// The scale target and the pods that it makes.
#[derive(Clone, Debug)]
pub struct Workload {
    /// API group of the target, empty for core.
    pub group: String,
    /// API version of the target.
    pub version: String,
    /// For instance `Deployment`.
    pub kind: String,
    /// For instance `deployments`.
    pub resource: String,
    /// The target's name.
    pub name: Arc<str>,
    /// `spec.replicas` at t=0.
    pub replicas: i32,
    /// No more pods than this are created. None: as many as wanted.
    pub quota: Option<u32>,
    /// The text form of the target's selector, as in `status.selector` of its scale.
    pub selector: Arc<str>,
    /// Labels of its pods.
    pub labels: BTreeMap<String, String>,
    /// Containers and their requests.
    pub spec: Arc<PodSpec>,
    /// The age of the initial pods at t=0: they were created, started and became ready then.
    pub age: Span,
    /// How new pods come up.
    pub startup: Startup,
    /// `status.replicas` of its scale, if it is not the number of its pods.
    pub status_replicas: Option<i32>,
    /// Which pods go first when the size shrinks.
    pub scale_down_order: ScaleDownOrder,
    /// How long a deleted pod stays Terminating (it is not ready meanwhile and has no replacement
    /// to wait for). Zero: it is gone at once.
    pub termination: Span,
}

/// A container and its requests.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a container (a map)")]
pub struct Container {
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: Arc<str>,
    /// What it requests of each resource, for instance `cpu: 500m`.
    #[serde(default, with = "As::<ByName<Amount>>", skip_serializing_if = "Requests::is_empty")]
    pub requests: Requests,
}

impl Container {
    /// The container of a pod that has it.
    #[must_use]
    pub fn to_api(&self) -> api::Container {
        let Container { name, requests } = self.clone();
        api::Container { name, requests, sidecar: false }
    }
}

impl Workload {
    /// Whether its resource is not what one would think of its kind.
    #[must_use]
    pub fn has_unusual_plural(&self) -> bool {
        self.resource != usual_plural(&self.kind)
    }
}

/// The plural of a kind as it usually is.
///
/// Upstream: apimachinery, pkg/api/meta/restmapper.go, UnsafeGuessKindToResource
#[must_use]
pub fn usual_plural(kind: &str) -> String {
    let singular = kind.to_lowercase();
    match singular.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if singular.ends_with('s') => format!("{singular}es"),
        None => format!("{singular}s"),
    }
}

/// How a new pod comes up, counted from its creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "StartupFields", into = "StartupFields")]
pub struct Startup {
    /// Pending for so long; `status.startTime` is set when it ends. None: for ever.
    pub pending: Option<Span>,
    /// Ready so long after its creation. None: never.
    pub ready: Option<Span>,
    /// It reports metrics so long after it started running.
    pub metrics: Span,
}

/// At once.
impl Default for Startup {
    fn default() -> Startup {
        let at_once = Some(Span::ZERO);
        Startup { pending: at_once, ready: at_once, metrics: Span::ZERO }
    }
}

/// How a new pod comes up.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a map, for instance {pending: 2s, ready: 10s}")]
#[schemars(rename = "Startup")]
struct StartupFields {
    /// For how long it is Pending; or `never` to leave that phase. Default 0s.
    #[serde(
        default,
        with = "As::<Option<DurationOrNever>>",
        skip_serializing_if = "Option::is_none"
    )]
    pending: Option<Option<Span>>,
    /// How long after its creation it is ready; or `never`. Default: as soon as it runs.
    #[serde(
        default,
        with = "As::<Option<DurationOrNever>>",
        skip_serializing_if = "Option::is_none"
    )]
    ready: Option<Option<Span>>,
    /// How long after its start it has metrics. Default 0s.
    #[serde(default, with = "As::<Duration>", skip_serializing_if = "is_default")]
    metrics: Span,
}

impl From<StartupFields> for Startup {
    fn from(fields: StartupFields) -> Startup {
        let StartupFields { pending, ready, metrics } = fields;
        let pending = pending.unwrap_or(Some(Span::ZERO));
        Startup { pending, ready: ready.unwrap_or(pending), metrics }
    }
}

impl From<Startup> for StartupFields {
    fn from(startup: Startup) -> StartupFields {
        let Startup { pending, ready, metrics } = startup;
        StartupFields {
            pending: (pending != Some(Span::ZERO)).then_some(pending),
            ready: (ready != pending).then_some(ready),
            metrics,
        }
    }
}

impl JsonSchema for Startup {
    fn schema_name() -> Cow<'static, str> {
        StartupFields::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        StartupFields::json_schema(generator)
    }
}

/// Which pods a scale-down deletes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ScaleDownOrder {
    /// As a ReplicaSet: Pending before Running, not ready before ready, then the newest.
    #[default]
    ReplicaSet,
    /// The newest, as a StatefulSet.
    Newest,
    /// The oldest.
    Oldest,
}

/// Something that the author expects of the controller.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// Line in the file, from 1.
    pub line: usize,
    /// The releases on which it is expected.
    pub releases: ReleaseRange,
    /// Only the reconciles of the HPA of that name are looked at; None: those of all.
    pub hpa: Option<Arc<str>>,
    /// When it must hold.
    pub when: When,
    /// What must hold.
    pub what: Expected,
}

/// When an expectation must hold.
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
    /// At some reconcile from a time on, at most so much later.
    Within {
        /// From when on.
        of: Time,
        /// How much later at most.
        span: Span,
    },
    /// Over the whole run (for counts).
    Whole,
}

/// What is expected. Absent fields are not looked at.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Expected {
    /// The target's size after the reconcile.
    pub replicas: Option<NumberRange>,
    /// `status.desiredReplicas`.
    pub desired_replicas: Option<NumberRange>,
    /// `status.currentReplicas`.
    pub current_replicas: Option<NumberRange>,
    /// Conditions that must be among the status's.
    pub conditions: Vec<ExpectedCondition>,
    /// Events that must be among the reconcile's.
    pub events: Vec<ExpectedEvent>,
    /// Whether the reconcile changed the size.
    pub rescaled: Option<bool>,
    /// A part of the error with which the reconcile ended.
    pub error: Option<String>,
    /// At most so many changes of direction (up after down, down after up) within any such span.
    pub at_most_direction_changes: Option<(u32, Option<Span>)>,
    /// At most so many changes of size within any such span.
    pub at_most_rescales: Option<(u32, Option<Span>)>,
}
