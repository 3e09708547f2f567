//! The objects of `autoscaling.k8s.io/v1`, in the JSON form of the API.
//!
//! Upstream: `pkg/apis/autoscaling.k8s.io/v1/types.go`

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checkpoint::CheckpointStatus;
use crate::api::{ConditionStatus, CrossVersionObjectReference};
use crate::quantity::Quantity;

/// The namespace and the name of an object.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ObjectName {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
}

impl ObjectName {
    /// A name in a namespace.
    #[must_use]
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> ObjectName {
        ObjectName { namespace: namespace.into(), name: name.into() }
    }
}

/// By namespace, then by name. Most names that are looked up share the text of the key.
impl Ord for ObjectName {
    fn cmp(&self, other: &ObjectName) -> Ordering {
        let compare = |ours: &Arc<str>, theirs: &Arc<str>| match Arc::ptr_eq(ours, theirs) {
            true => Ordering::Equal,
            false => ours.cmp(theirs),
        };
        compare(&self.namespace, &other.namespace).then_with(|| compare(&self.name, &other.name))
    }
}

impl PartialOrd for ObjectName {
    fn partial_cmp(&self, other: &ObjectName) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `namespace/name`.
impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A VerticalPodAutoscaler.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerticalPodAutoscaler {
    /// Name, annotations and generation.
    pub metadata: VpaMetadata,
    /// The specification.
    pub spec: VpaSpec,
    /// The status, which the recommender writes.
    #[serde(default)]
    pub status: Arc<VpaStatus>,
}

/// The metadata of a VPA that the recommender reads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VpaMetadata {
    /// Namespace and name.
    #[serde(flatten)]
    pub name: ObjectName,
    /// Annotations, which select the containers of the integer CPU post-processor.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The generation, which the status repeats.
    #[serde(default)]
    pub generation: i64,
}

/// The part of a VPA's specification that the recommender reads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VpaSpec {
    /// The controller of the pods.
    pub target_ref: CrossVersionObjectReference,
    /// How recommendations are applied. The recommender ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_policy: Option<UpdatePolicy>,
    /// The constraints of the recommendation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_policy: Option<ResourcePolicy>,
    /// The recommenders that handle the VPA; none means the default one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recommenders: Vec<RecommenderSelector>,
}

/// How recommendations are applied to pods.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdatePolicy {
    /// The mode. `None` means `Recreate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_mode: Option<UpdateMode>,
    /// The smallest number of live pods with which the updater acts, in place of its flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// Conditions for updates of pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub eviction_requirements: Vec<EvictionRequirement>,
    /// In place of a flag of the updater. Requires the feature gate `PerVPAConfig`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "evictAfterOOMSeconds")]
    pub evict_after_oom_seconds: Option<i32>,
}

/// How recommendations are applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum UpdateMode {
    /// Not at all.
    Off,
    /// When a pod is created.
    Initial,
    /// When a pod is created; pods are evicted for it.
    Recreate,
    /// In running pods where possible, otherwise as `Recreate`.
    InPlaceOrRecreate,
    /// In running pods only. Requires the feature gate InPlace.
    InPlace,
    /// As `Recreate`; deprecated.
    Auto,
}

/// A condition for updates of pods.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictionRequirement {
    /// The names of the resources, at least one of which must change as required.
    #[serde(default)]
    pub resources: Vec<String>,
    /// How the target must differ from the requests.
    pub change_requirement: ChangeRequirement,
}

/// How a recommendation must differ from the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum ChangeRequirement {
    /// It is higher.
    TargetHigherThanRequests,
    /// It is lower.
    TargetLowerThanRequests,
}

/// The name of a recommender.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecommenderSelector {
    /// The value of the recommender's flag `--recommender-name`.
    pub name: String,
}

/// The policies of the containers.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcePolicy {
    /// One policy per container, or for all others with the name `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub container_policies: Vec<ContainerPolicy>,
}

impl ResourcePolicy {
    /// The policy of a container: the first with its name, else the last for `*`.
    ///
    /// Upstream: pkg/utils/vpa/api.go, GetContainerResourcePolicy
    #[must_use]
    pub fn for_container(&self, name: &str) -> Option<&ContainerPolicy> {
        let own = self.container_policies.iter().find(|policy| policy.container_name == name);
        own.or_else(|| self.container_policies.iter().rev().find(|it| it.container_name == "*"))
    }

    /// The names with several policies, of which [`Self::for_container`] ignores all but one.
    pub fn repeated_names(&self) -> impl Iterator<Item = &str> {
        let policies = &self.container_policies;
        let names = policies.iter().map(|policy| &*policy.container_name);
        names.enumerate().filter_map(|(index, name)| {
            let earlier = policies[..index].iter().filter(|it| it.container_name == name).count();
            (earlier == 1).then_some(name)
        })
    }
}

/// The policy for one container, or for all containers without their own policy.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerPolicy {
    /// The name of the container, or `*`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub container_name: String,
    /// Whether the container has a recommendation. `None` means `Auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ScalingMode>,
    /// The smallest recommendation.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "stored")]
    pub min_allowed: Option<BTreeMap<String, Quantity>>,
    /// The largest recommendation.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "stored")]
    pub max_allowed: Option<BTreeMap<String, Quantity>>,
    /// The resources with a recommendation. `None` means `cpu` and `memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controlled_resources: Option<Vec<String>>,
    /// The values that the admission controller sets. `None` means `RequestsAndLimits`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controlled_values: Option<ControlledValues>,
    /// The factor of memory after an OOM kill. Requires the feature gate `PerVPAConfig`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "oomBumpUpRatio")]
    pub oom_bump_up_ratio: Option<Quantity>,
    /// The smallest increase of memory after an OOM kill. Requires `PerVPAConfig`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "oomMinBumpUp")]
    pub oom_min_bump_up: Option<Quantity>,
    /// The length of an interval with one memory peak. Requires `PerVPAConfig`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_aggregation_interval_seconds: Option<i32>,
    /// The number of intervals after which samples expire. Requires `PerVPAConfig`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_aggregation_interval_count: Option<i64>,
}

/// The values that the admission controller sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum ControlledValues {
    /// Requests, and limits in proportion.
    RequestsAndLimits,
    /// Only requests.
    RequestsOnly,
}

/// Whether a container has a recommendation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "VpaScalingMode")]
pub enum ScalingMode {
    /// It has.
    Auto,
    /// It has none.
    Off,
}

/// Quantities of a custom resource, which the API server stores as text.
mod stored {
    use std::collections::BTreeMap;

    use serde::de::{Deserialize, Deserializer, Error as _};
    use serde::ser::{Serialize, Serializer};
    use serde_json::Value;

    use crate::quantity::Quantity;

    pub(super) fn serialize<S: Serializer>(
        list: &Option<BTreeMap<String, Quantity>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        list.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<BTreeMap<String, Quantity>>, D::Error> {
        let Some(texts) = Option::<BTreeMap<String, Value>>::deserialize(deserializer)? else {
            return Ok(None);
        };
        let quantities = texts.into_iter().map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let quantity = Quantity::parse_stored(&text);
            quantity.map(|quantity| (name, quantity)).map_err(D::Error::custom)
        });
        quantities.collect::<Result<_, _>>().map(Some)
    }

    /// Reads a quantity that keeps its text.
    pub(super) fn verbatim<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Quantity>, D::Error> {
        let text = String::deserialize(deserializer)?;
        Quantity::parse_verbatim(&text).map(Some).map_err(D::Error::custom)
    }
}

/// The status that the recommender writes.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VpaStatus {
    /// The recommendation, if there ever was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<Recommendation>,
    /// The conditions, sorted by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<VpaCondition>,
    /// The generation that the recommender has seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl VpaStatus {
    /// The recommendations of the containers. Empty without a recommendation.
    #[must_use]
    pub fn containers(&self) -> &[ContainerRecommendation] {
        self.recommendation.as_ref().map_or(&[], |it| &it.container_recommendations)
    }
}

/// The recommendation for the pods of a VPA.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recommendation {
    /// The recommendations of the containers, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub container_recommendations: Vec<ContainerRecommendation>,
}

/// The recommendation for a container.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRecommendation {
    /// The name of the container.
    pub container_name: Arc<str>,
    /// The recommended requests.
    pub target: ResourceList,
    /// Requests below these cause an update.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub lower_bound: ResourceList,
    /// Requests above these cause an update.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub upper_bound: ResourceList,
    /// The target without the constraints of the policies.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub uncapped_target: ResourceList,
}

/// The amounts of the resources that the recommender knows.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct ResourceList {
    /// CPU in cores.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "stored::verbatim"
    )]
    pub cpu: Option<Quantity>,
    /// Memory in bytes.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "stored::verbatim"
    )]
    pub memory: Option<Quantity>,
}

impl ResourceList {
    /// The amounts that exist, by the names of their resources.
    pub fn amounts(&self) -> impl Iterator<Item = (&'static str, &Quantity)> {
        let cpu = self.cpu.as_ref().map(|amount| ("cpu", amount));
        cpu.into_iter().chain(self.memory.as_ref().map(|amount| ("memory", amount)))
    }

    /// The amount of a resource.
    #[must_use]
    pub fn amount(&self, resource: &str) -> Option<&Quantity> {
        self.amounts().find(|(name, _)| *name == resource).map(|(_, amount)| amount)
    }

    /// Returns true if there is no amount.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cpu.is_none() && self.memory.is_none()
    }
}

/// A condition of a VPA.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VpaCondition {
    /// `RecommendationProvided`, `NoPodsMatched`, ….
    #[serde(rename = "type")]
    pub type_: Cow<'static, str>,
    /// `True` or `False`.
    pub status: ConditionStatus,
    /// The time of the last change of the status.
    #[serde(default, with = "super::checkpoint::api_time")]
    pub last_transition_time: super::time::GoTime,
    /// The reason.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub reason: Cow<'static, str>,
    /// The message.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub message: Cow<'static, str>,
}

/// A VerticalPodAutoscalerCheckpoint.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Namespace and name.
    pub metadata: ObjectName,
    /// The VPA and the container.
    pub spec: CheckpointSpec,
    /// The content.
    pub status: CheckpointStatus,
}

impl Checkpoint {
    /// The VPA whose aggregate the checkpoint stores.
    pub fn vpa(&self) -> ObjectName {
        ObjectName {
            namespace: self.metadata.namespace.clone(),
            name: self.spec.vpa_object_name.clone(),
        }
    }
}

/// The VPA and the container of a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CheckpointSpec {
    /// The name of the VPA, in the namespace of the checkpoint.
    #[serde(rename = "vpaObjectName")]
    pub vpa_object_name: Arc<str>,
    /// The name of the container.
    #[serde(rename = "containerName")]
    pub container_name: Arc<str>,
}
