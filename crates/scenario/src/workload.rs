//! Scale targets and their pods.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::kinds::{BUILT_IN, ScalableKind};
use super::podset::PodSet;
use super::text::{Amount, As, ByName, Duration, DurationOrNever};
use crate::hints::CorrectPlace;
use kube_autoscaler_models::api;
use kube_autoscaler_models::api::{PodSpec, Requests};
use kube_autoscaler_models::is_default::is_default;
use kube_autoscaler_models::time::Span;

/// The places of fields of the workload.
pub(crate) const PLACES: &[CorrectPlace] = &[
    CorrectPlace { place: "under `workload.startup`", fields: &["pending", "ready"] },
    CorrectPlace {
        place: "to a container, in the list `workload.containers`",
        fields: &["requests"],
    },
    CorrectPlace {
        place: "under `workload`",
        fields: &[
            "replicas",
            "quota",
            "containers",
            "labels",
            "selector",
            "age",
            "startup",
            "scaleDownOrder",
            "victims",
            "termination",
            "readyWhileTerminating",
        ],
    },
];

/// The scale target and its pods.
#[derive(Clone, Debug)]
pub struct Workload {
    /// API group of the target, empty for core.
    pub group: String,
    /// API version of the target.
    pub version: String,
    /// For example `Deployment`.
    pub kind: String,
    /// For example `deployments`.
    pub resource: String,
    /// The target's name.
    pub name: Arc<str>,
    /// `spec.replicas` at t=0.
    pub replicas: i32,
    /// The largest number of pods. None: unlimited.
    pub quota: Option<u32>,
    /// The text form of the target's selector, as in `status.selector` of its scale.
    pub selector: Arc<str>,
    /// Labels of the pods.
    pub labels: BTreeMap<String, String>,
    /// Containers and their requests.
    pub spec: Arc<PodSpec>,
    /// The age of the initial pods at t=0: the time since they were created, started and became
    /// ready.
    pub age: Span,
    /// The start-up of new pods.
    pub startup: Startup,
    /// `status.replicas` of the scale, if it is not the number of pods.
    pub status_replicas: Option<i32>,
    /// The order of deletion on a scale-down.
    pub scale_down_order: ScaleDownOrder,
    /// The pods that a scale-down deletes before all others.
    pub scale_down_first: Option<PodSet>,
    /// Pods that differ from the others; later entries take precedence.
    pub pods: Vec<PodsOfWorkload>,
    /// How a deleted pod ends. It does not delay its replacement.
    pub termination: Termination,
    /// What happens to its pods and their samples.
    pub rules: PodRules,
}

/// What happens to the pods of a workload and their samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PodRules {
    /// True if the workload's controller replaces pods that have ended. Otherwise, they count as
    /// replicas until the workload is scaled.
    pub replaces_ended: bool,
    /// True if a new pod has the lowest free name, as in a StatefulSet. Otherwise, no name is used
    /// again.
    pub reuses_names: bool,
    /// True if only existing pods have samples, none of which is older than its pod. Otherwise,
    /// `startup` determines when a pod has samples, and stale samples outlive their pods.
    pub samples_follow_pods: bool,
}

impl PodRules {
    /// The rules in a scenario with an HPA.
    pub const OF_HPA: PodRules =
        PodRules { replaces_ended: true, reuses_names: false, samples_follow_pods: false };
}

/// Pods that differ from the others of the workload.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a map, for example {pods: \"3\", startup: {ready: 2m}}")]
#[schemars(extend("minProperties" = 2))]
pub struct PodsOfWorkload {
    /// The pods.
    pub pods: PodSet,
    /// The age of initial pods.
    #[serde(default, with = "As::<Option<Duration>>", skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
    /// How new pods start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup: Option<Startup>,
    /// The age of their newest sample, in place of `metrics.sampling.lag`.
    #[serde(default, with = "As::<Option<Duration>>", skip_serializing_if = "Option::is_none")]
    pub sample_lag: Option<Span>,
}

/// How a deleted pod ends. The kubelet leaves a pod Ready until its containers have stopped or its
/// readiness probe fails, and then removes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Termination {
    /// How long the pod stays Terminating. Zero: it is removed immediately.
    pub duration: Span,
    /// How long it stays Ready, at most `duration`.
    pub ready: Span,
}

impl Termination {
    /// A pod that stays Ready until it is removed.
    #[must_use]
    pub fn lasting(duration: Span) -> Termination {
        Termination { duration, ready: duration }
    }
}

impl Workload {
    /// Returns true if there is no workload: the scenario has no HPA, and names no target.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.name.is_empty()
    }

    /// The last value that the entries of a pod set.
    fn own<T>(&self, ordinal: u32, value: impl Fn(&PodsOfWorkload) -> Option<T>) -> Option<T> {
        self.pods.iter().rev().filter(|of| of.pods.contains(ordinal)).find_map(value)
    }

    /// The age of an initial pod.
    #[must_use]
    pub fn age_of(&self, ordinal: u32) -> Span {
        self.own(ordinal, |of| of.age).unwrap_or(self.age)
    }

    /// The start-up of a new pod.
    #[must_use]
    pub fn startup_of(&self, ordinal: u32) -> Startup {
        self.own(ordinal, |of| of.startup).unwrap_or(self.startup)
    }

    /// The age of a pod's newest sample, if it is not that of the other pods.
    #[must_use]
    pub fn sample_lag_of(&self, ordinal: u32) -> Option<Span> {
        self.own(ordinal, |of| of.sample_lag)
    }

    /// Returns true if the resource is not the usual plural of the kind.
    #[must_use]
    pub(crate) fn has_unusual_plural(&self) -> bool {
        self.resource != usual_plural(&self.kind)
    }
}

/// A scale target without pods.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a target, for example {kind: Deployment, name: api, replicas: 3}")]
pub struct OtherTarget {
    /// Its kind, for example `Deployment`.
    pub kind: String,
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: Arc<str>,
    /// The initial replicas. `status.replicas` of its scale follows each change at once.
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// The selector in its scale, as text. Default `app=NAME`. It may select the workload's pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<Arc<str>>,
}

impl OtherTarget {
    /// Its kind as the API serves it; `None` if no API server does.
    #[must_use]
    pub fn scalable_kind(&self) -> Option<ScalableKind<'static>> {
        BUILT_IN.into_iter().find(|known| known.kind == self.kind)
    }

    /// The text form of its selector, as in `status.selector` of its scale.
    #[must_use]
    pub fn selector(&self) -> Arc<str> {
        self.selector.clone().unwrap_or_else(|| self.default_selector())
    }

    /// The selector of a target that gives none.
    pub(super) fn default_selector(&self) -> Arc<str> {
        format!("app={}", self.name).into()
    }
}

/// A container and its requests.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a container (a map)")]
pub struct Container {
    /// The container's name.
    #[schemars(length(min = 1))]
    pub name: Arc<str>,
    /// The requests of the container, for example `cpu: 500m`.
    #[serde(default, with = "As::<ByName<Amount>>", skip_serializing_if = "Requests::is_empty")]
    pub requests: Requests,
    /// The limits of the container. A resource without a request requests its limit.
    #[serde(default, with = "As::<ByName<Amount>>", skip_serializing_if = "Requests::is_empty")]
    pub limits: Requests,
}

impl Container {
    /// The container in a pod's spec. As in the API server, requests default to limits.
    #[must_use]
    pub fn to_api(&self) -> api::Container {
        let Container { name, mut requests, limits } = self.clone();
        for (resource, limit) in limits {
            requests.entry(resource).or_insert(limit);
        }
        api::Container { name, requests, sidecar: false }
    }
}

/// The usual plural of a kind.
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

/// The start-up of a new pod. Durations count from its creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "StartupFields", into = "StartupFields")]
pub struct Startup {
    /// The time that the pod is Pending, before `status.startTime` is set. None: forever.
    pub pending: Option<Span>,
    /// The time until the pod is ready. None: it never is.
    pub ready: Option<Span>,
    /// The time from its start until the pod has metrics.
    pub metrics: Span,
}

/// Immediately.
impl Default for Startup {
    fn default() -> Startup {
        let at_once = Some(Span::ZERO);
        Startup { pending: at_once, ready: at_once, metrics: Span::ZERO }
    }
}

/// How a new pod starts.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a map, for example {pending: 2s, ready: 10s}")]
#[schemars(rename = "Startup")]
struct StartupFields {
    /// How long the pod is Pending; `never` to stay Pending. Default 0s.
    #[serde(
        default,
        with = "As::<Option<DurationOrNever>>",
        skip_serializing_if = "Option::is_none"
    )]
    pending: Option<Option<Span>>,
    /// How long after its creation the pod becomes ready; or `never`. Default: as soon as it runs.
    #[serde(
        default,
        with = "As::<Option<DurationOrNever>>",
        skip_serializing_if = "Option::is_none"
    )]
    ready: Option<Option<Span>>,
    /// How long after its start the pod has metrics. Default 0s.
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

/// The order in which a scale-down deletes pods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ScaleDownOrder {
    /// Like a ReplicaSet: Pending before Running pods, unready before ready pods, then the newest.
    #[default]
    ReplicaSet,
    /// The newest pods first, like a StatefulSet.
    Newest,
    /// The oldest pods first.
    Oldest,
}
