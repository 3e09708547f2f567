//! Scenario files as serde reads them. The JSON Schema is generated from these types and their doc
//! comments, so authors of scenarios see these comments in their editors.
//!
//! These are plain structs with optional fields, so that error messages stay simple. The `resolve`
//! module checks which fields are required together and which values are allowed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::action::TimelineEvent;
use super::autoscalers::write_content;
use super::entries::Entries;
use super::event::EventSchema;
use super::expectation::AnyExpectation;
use super::flag_values::FlagValues;
use super::hints::CorrectPlace;
use super::kinds::API_VERSION;
use super::known_fields::FieldRule;
use super::known_fields::Requirement::{AVpa, AnHpa, Never, NoHpa, NoVpa};
use super::manifest::AnyVersion;
use super::metrics::Metrics;
use super::object::{AnyObject, ObjectRef};
use super::other_namespaces::OtherNamespace;
use super::other_pods::OtherPods;
use super::podset::PodSet;
use super::releases::ReleaseRange;
use super::search::Search;
use super::text::{Amount, As, ByName, Duration, End};
use super::vpa::raw::{AnyVpa, RecommenderSettings, UpdaterSettings, VpaReleaseText};
use super::vpa::{CheckpointManifest, History, VpaReleaseRange};
use super::workload::{Container, OtherTarget, PodsOfWorkload, ScaleDownOrder, Startup};
use kube_autoscaler_models::api::Requests;
use kube_autoscaler_models::flags::Gate;
use kube_autoscaler_models::is_default::is_default;
use kube_autoscaler_models::rules::{Dependent, Release, VpaRelease};
use kube_autoscaler_models::time::{Span, Time};

/// A scenario of kube-lockstep: HPAs, VPAs or both, their environment over time, and expectations.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a scenario (a map)")]
#[schemars(title = "kube-lockstep scenario")]
pub struct ScenarioFile {
    /// `kube-lockstep.dev/v1alpha1`.
    #[schemars(extend("const" = API_VERSION))]
    pub api_version: String,
    /// `Scenario`.
    #[schemars(extend("const" = "Scenario"))]
    pub kind: String,
    /// The requirement, in one sentence.
    #[schemars(length(min = 1))]
    pub requirement: String,
    /// The source of the requirement: a link to upstream's source, a KEP or an issue. Optional for
    /// your own scenarios.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^https?://"))]
    pub upstream: Option<String>,
    /// The ids of the rules that the scenario demonstrates, for a catalog of rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covers: Vec<String>,
    /// The releases that the requirement applies to: of Kubernetes or, without an HPA, of the VPA.
    /// Default: all.
    #[serde(default, skip_serializing_if = "ScenarioReleases::is_all")]
    pub releases: ScenarioReleases,
    /// The kube-controller-manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<Controller>,
    /// The HorizontalPodAutoscaler, a complete manifest; or `file`, the path of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hpa: Option<AnyManifest>,
    /// Several HPAs, in place of `hpa`. They are in one namespace and are created in this order.
    /// The first one scales the workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub hpas: Vec<AnyManifest>,
    /// Objects of any kind that exist at the start, for the controller of a program. Definitions of
    /// custom resources are created first. With `objects`, the scenario requires no HPA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<Vec<AnyObject>>,
    /// The recommender of the VPA.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recommender: RecommenderSettings,
    /// The VerticalPodAutoscaler, a complete manifest; or `file`, the path of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpa: Option<AnyVpa>,
    /// Several VPAs, in place of `vpa`. The target of the first one is the workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub vpas: Vec<AnyVpa>,
    /// The release of the VPA's recommender. Default: the newest.
    #[serde(
        default,
        with = "As::<Option<VpaReleaseText>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub vpa_release: Option<VpaRelease>,
    /// The VPA's updater, which is simulated.
    #[serde(default, skip_serializing_if = "is_default")]
    pub updater: UpdaterSettings,
    /// VerticalPodAutoscalerCheckpoints that exist at the start: manifests, or `file`, the path of
    /// one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<CheckpointManifest>,
    /// The target of the first autoscaler, and its pods. Required with an HPA.
    #[serde(default, skip_serializing_if = "is_default")]
    pub workload: Workload,
    /// Further scale targets. They have replicas and a selector, but no pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_targets: Vec<OtherTarget>,
    /// Pods that belong to no target, for example to a Job. The selector of a target may match
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_pods: Vec<OtherPods>,
    /// Other namespaces with a target and pods of the same names. The controller must not use them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_namespaces: Vec<OtherNamespace>,
    /// The responses of the metrics APIs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub metrics: Metrics,
    /// Samples before the start, which the recommender reads with `storage: prometheus`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// Events during the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<EventSchema>")]
    pub timeline: Vec<TimelineEvent>,
    /// The end of the scenario: reconciles, and runs of the recommender, up to and including this
    /// time count.
    #[serde(with = "As::<End>")]
    pub until: Time,
    /// The expected behavior of the controllers. Without expectations, a run only compares models
    /// and controllers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<AnyExpectation>,
    /// What is left open: `kube-lockstep check` searches for choices with which an expectation is
    /// not met. Other commands ignore it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
}

impl ScenarioFile {
    pub(crate) const RULES: &'static [FieldRule] = &[
        FieldRule::new(AVpa, &["vpaRelease", "recommender", "updater", "checkpoints"])
            .hint("the scenario has no VPA: add `vpa`, or remove the field"),
        FieldRule::new(AVpa, &["vpa", "vpas", "history"]),
        FieldRule::new(NoHpa, &["history"]),
        FieldRule::new(Never, &["script"]).hint(
            "earlier versions of `fuzz` saved scripts, which this version does not read; run the \
             file with the version of kube-lockstep that saved it",
        ),
        FieldRule::new(AnHpa, &["vpaRelease"]).hint(
            "remove the field, which requires an HPA and a VPA; `--release` selects the release of \
             the VPA, and `releases` limits the scenario to some releases",
        ),
        FieldRule::new(AnHpa, &["updater"])
            .hint("remove the field: without an HPA, only the recommender runs, and no updater"),
        FieldRule::new(AnHpa, &["scaleDownOrder", "victims"]).hint(
            "remove the field, which requires an HPA: a VPA does not change the number of replicas",
        ),
        FieldRule::new(
            AnHpa,
            &["controller", "hpa", "hpas", "otherTargets", "otherPods", "otherNamespaces"],
        ),
        FieldRule::new(AnHpa, &["search"])
            .hint("remove the field: a search requires an HPA, and does not support VPAs"),
        FieldRule::new(NoVpa, &["search", "objects"]),
    ];
    pub(crate) const PLACES: &'static [CorrectPlace] = &[CorrectPlace {
        place: "at the top of the scenario",
        fields: &["hpa", "workload", "timeline", "until", "expect"],
    }];

    /// The events of the HPAs: all but those that require a VPA.
    pub(crate) fn hpa_events(&self) -> impl Iterator<Item = &TimelineEvent> {
        self.timeline.iter().filter(|event| !event.action.requires_vpa())
    }
}

/// The releases that a scenario applies to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[schemars(untagged)]
pub enum ScenarioReleases {
    /// Of Kubernetes, in a scenario with an HPA.
    Kubernetes(ReleaseRange),
    /// Of the VPA, in a scenario without an HPA.
    Vpa(VpaReleaseRange),
}

write_content!(ScenarioReleases, Kubernetes, Vpa);

impl Default for ScenarioReleases {
    fn default() -> ScenarioReleases {
        ScenarioReleases::Kubernetes(ReleaseRange::default())
    }
}

impl ScenarioReleases {
    /// Returns true if the range contains all releases.
    #[must_use]
    pub(crate) fn is_all(&self) -> bool {
        self.kubernetes().is_all() && self.vpa().is_all()
    }

    /// The releases of Kubernetes.
    #[must_use]
    pub(crate) fn kubernetes(&self) -> ReleaseRange {
        if let ScenarioReleases::Kubernetes(range) = self {
            *range
        } else {
            ReleaseRange::default()
        }
    }

    /// The releases of the VPA.
    #[must_use]
    pub fn vpa(&self) -> VpaReleaseRange {
        if let ScenarioReleases::Vpa(range) = self { *range } else { VpaReleaseRange::default() }
    }
}

/// Any map: the manifest is checked separately.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AnyManifest(pub Value);

impl<'de> Deserialize<'de> for AnyManifest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AnyManifest, D::Error> {
        let expected = "a HorizontalPodAutoscaler, or {file: …} with the path of one";
        let entries = Entries::<Value>::read_type(deserializer, "AnyManifest", expected);
        entries.map(object).map(AnyManifest)
    }
}

impl JsonSchema for AnyManifest {
    fn inline_schema() -> bool {
        AnyVersion::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        AnyVersion::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        AnyVersion::json_schema(generator)
    }
}

fn object(entries: Entries<Value>) -> Value {
    Value::Object(entries.0.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}

/// The kube-controller-manager.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a map of flags and gates")]
pub struct Controller {
    /// Command-line flags, under upstream's names without the leading dashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flags: Option<FlagValues>,
    /// Feature gates of controller and API server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "feature_gates")]
    pub feature_gates: BTreeMap<String, bool>,
}

impl Controller {
    /// The settings with these flags and the default feature gates. Returns `None` if there is no
    /// flag.
    #[must_use]
    pub fn with_flags(flags: FlagValues) -> Option<Controller> {
        let is_given = flags != FlagValues::default();
        is_given.then(|| Controller { flags: Some(flags), ..Controller::default() })
    }

    pub(crate) const PLACE: CorrectPlace =
        CorrectPlace { place: "under `controller`", fields: &["flags", "featureGates"] };
}

/// The existing gates, for completion.
fn feature_gates(_: &mut SchemaGenerator) -> Schema {
    let gate = |name: &str| (name.to_owned(), serde_json::json!({ "type": "boolean" }));
    let dependents = Dependent::of(Release::NEWEST).map(|dependent| dependent.name);
    let names = Gate::ALL.into_iter().map(Gate::name).chain(dependents);
    let gates: serde_json::Map<String, Value> = names.map(gate).collect();
    json_schema!({ "type": "object", "additionalProperties": false, "properties": gates })
}

/// The target of the first HPA or VPA, and its pods.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a workload (a map)")]
pub struct Workload {
    /// The object whose pods they are. Required without an HPA or VPA, whose target it is
    /// otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<ObjectRef>,
    /// The initial replicas. Required with an HPA; otherwise, the default is that of the object
    /// among `objects`, or 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// The maximum number of pods, as under a ResourceQuota. Replicas above it get no pods.
    /// Default: no quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub quota: Option<u32>,
    /// The containers of each pod. Default: one container `app` without requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<Container>,
    /// The init containers of each pod; with `restartPolicy: Always` they are sidecars. Without an
    /// HPA: their names.
    #[serde(default, skip_serializing_if = "InitContainers::is_empty")]
    pub init_containers: InitContainers,
    /// Pod-level resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<PodResources>,
    /// The overhead of the pods' runtime class, for example `cpu: 100m`.
    #[serde(default, with = "As::<ByName<Amount>>", skip_serializing_if = "Requests::is_empty")]
    pub overhead: Requests,
    /// Labels of the pods. Without an HPA, they are also the selector of the workload. Default
    /// `app: NAME-OF-THE-TARGET`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Further labels of each pod, which the selector does not name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_labels: BTreeMap<String, String>,
    /// True if another controller owns the workload. A VPA then can't target it. Default false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub owned: bool,
    /// True if the workload's controller replaces pods that have failed or succeeded, as the
    /// controller of a Deployment does. Otherwise, they count as replicas until the workload is
    /// scaled. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces_ended_pods: Option<bool>,
    /// The selector in the target's scale, as text (`app=web,tier in (a,b)`). Default: all labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The age of the initial pods: how long before the start they were created, started and became
    /// ready. Default 1h.
    #[serde(default, with = "As::<Option<Duration>>", skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
    /// How new pods start. Default: they are ready immediately.
    #[serde(default, skip_serializing_if = "is_default")]
    pub startup: Startup,
    /// The plural of a custom resource's kind, for example `workers` for the kind Worker. Default:
    /// the usual plural of the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plural: Option<String>,
    /// `status.replicas` of the target's scale. Default: the number of its pods, as its controller
    /// counts them. Custom resources may report a different number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub status_replicas: Option<i32>,
    /// The order in which a scale-down deletes pods. Default: replicaSet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scale_down_order: ScaleDownOrder,
    /// Pods that a scale-down deletes before all others, as if they had the smallest
    /// pod-deletion-cost. Among them, `scaleDownOrder` applies. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_down_first: Option<PodSet>,
    /// Pods with a different age, startup or sample age. Later entries take precedence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<PodsOfWorkload>,
    /// How long a deleted pod stays Terminating. Default 0s: it is removed immediately.
    #[serde(default, with = "As::<Option<Duration>>", skip_serializing_if = "Option::is_none")]
    pub termination: Option<Span>,
    /// How long a Terminating pod stays Ready, at most `termination`. Default: until it is removed.
    #[serde(default, with = "As::<Option<Duration>>", skip_serializing_if = "Option::is_none")]
    pub ready_while_terminating: Option<Span>,
}

impl Workload {
    pub(crate) const RULES: &'static [FieldRule] = &[
        FieldRule::new(AnHpa, &["scaleDownOrder", "scaleDownFirst", "victims"]).hint(
            "a VPA does not change the replicas: remove the field, which only a scenario with an \
             HPA can have",
        ),
        FieldRule::new(AnHpa, &["quota", "resources", "overhead", "selector", "age", "startup"]),
        FieldRule::new(AnHpa, &["plural", "statusReplicas", "pods", "termination"]),
        FieldRule::new(AnHpa, &["readyWhileTerminating"]),
        FieldRule::new(NoVpa, &["target"]),
        FieldRule::new(AVpa, &["podLabels", "owned"]),
        FieldRule::new(NoHpa, &["podLabels", "owned"]),
    ];

    /// The initial replicas.
    #[must_use]
    pub fn replicas(&self) -> i32 {
        self.replicas.unwrap_or(1)
    }
}

/// The init containers of a workload.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[schemars(untagged)]
pub enum InitContainers {
    /// In a scenario with an HPA.
    Detailed(Vec<InitContainer>),
    /// In a scenario without an HPA.
    Names(Vec<Arc<str>>),
}

write_content!(InitContainers, Detailed, Names);

impl Default for InitContainers {
    fn default() -> InitContainers {
        InitContainers::Detailed(Vec::new())
    }
}

impl InitContainers {
    /// The containers, if the scenario has an HPA.
    #[must_use]
    pub(crate) fn detailed(&self) -> &[InitContainer] {
        if let InitContainers::Detailed(list) = self { list } else { &[] }
    }

    /// The names of the containers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = if let InitContainers::Names(names) = self { names.as_slice() } else { &[] };
        let detailed = self.detailed().iter().map(|container| container.name.as_str());
        detailed.chain(names.iter().map(|name| &**name))
    }

    fn is_empty(&self) -> bool {
        self.names().next().is_none()
    }
}

/// An init container and its requests.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an init container (a map)")]
pub struct InitContainer {
    /// The container's name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The requests of the container, for example `cpu: 500m`.
    #[serde(default, with = "As::<ByName<Amount>>", skip_serializing_if = "Requests::is_empty")]
    pub requests: Requests,
    /// `Always`: the container is a sidecar, which runs as long as the pod. Default: the container
    /// ends before the main containers start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<RestartPolicy>,
}

/// When an init container is started again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum RestartPolicy {
    /// The container is a sidecar.
    Always,
}

/// Resources of a pod as a whole.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a map, for example {requests: {cpu: \"2\"}}")]
pub struct PodResources {
    /// The requests of a pod, for example `cpu: 500m`.
    #[serde(default, with = "As::<ByName<Amount>>", skip_serializing_if = "Requests::is_empty")]
    pub requests: Requests,
}
