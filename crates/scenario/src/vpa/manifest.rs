//! VerticalPodAutoscaler manifests in the form of users: every field of the API, so that misspelled
//! fields are rejected and editors complete the others.
//!
//! The types of `model::vpa` can't take their place, although they share its words: they require
//! fields, while the checks of the webhook continue without those that are missing or that the API
//! server rejects. They also ignore fields that the recommender does not read.
//! `api_schema` knows the CRD's fields and limits, but returns no values, and has no texts for
//! editors.
//!
//! Upstream: `pkg/apis/autoscaling.k8s.io/v1/types.go`

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::entries::Entries;
use crate::manifest::{Reference, maps};
use crate::text::{AnyQuantity, As, QuantityText};
use kube_autoscaler_models::vpa::{ChangeRequirement, ControlledValues, ScalingMode, UpdateMode};

maps! {
    /// A VerticalPodAutoscaler manifest as for `kubectl apply`; or `file`, the path of such a
    /// manifest relative to the scenario.
    #[schemars(extend("anyOf" = [
        {"required": ["apiVersion", "kind", "metadata", "spec"]},
        {"required": ["file"], "maxProperties": 1},
    ]))]
    VpaManifest, "a VerticalPodAutoscaler manifest (a map)" {
        /// The path of your own manifest, relative to the scenario, in place of all other fields.
        /// The file may contain other documents beside one VerticalPodAutoscaler.
        file: String,
        /// `autoscaling.k8s.io/v1`.
        #[schemars(extend("const" = "autoscaling.k8s.io/v1"))]
        api_version: String,
        /// `VerticalPodAutoscaler`.
        #[schemars(extend("const" = "VerticalPodAutoscaler"))]
        kind: String,
        /// The object's metadata.
        #[schemars(extend("required" = ["name"]))]
        metadata: VpaObjectMetadata,
        /// The desired behavior.
        #[schemars(extend("required" = ["targetRef"]))]
        spec: VpaObjectSpec,
        /// Ignored at the start.
        status: Value,
    }

    /// The object's metadata.
    VpaObjectMetadata, "metadata (a map)" {
        /// The VPA's name.
        name: String,
        /// The namespace of the VPA and its target. Default `default`.
        namespace: String,
        /// Labels.
        labels: Entries<String>,
        /// Annotations, for example `vpa-post-processor.kubernetes.io/app_integerCPU: "true"`.
        annotations: Entries<String>,
        /// Set by the API server.
        uid: Value,
        /// Set by the API server.
        resource_version: Value,
        /// Set by the API server.
        generation: Value,
        /// Set by the API server.
        creation_timestamp: Value,
        /// Set by the API server.
        managed_fields: Value,
    }

    /// The desired behavior of the autoscaler.
    VpaObjectSpec, "a spec (a map)" {
        /// The controller of the pods.
        #[schemars(extend("required" = ["apiVersion", "kind", "name"]))]
        target_ref: Reference,
        /// How recommendations are applied. The recommender ignores it.
        update_policy: VpaUpdatePolicy,
        /// The limits of the recommendation, by container.
        resource_policy: VpaResourcePolicy,
        /// The recommender that handles the VPA. Default: the one with the name `default`.
        #[schemars(length(max = 1))]
        recommenders: Vec<VpaRecommender>,
        /// More CPU while a pod starts. The recommender ignores it.
        startup_boost: Value,
    }

    /// How recommendations are applied.
    #[schemars(extend("required" = ["updateMode"]))]
    VpaUpdatePolicy, "an update policy (a map)" {
        /// The mode.
        update_mode: UpdateMode,
        /// The smallest number of live pods with which the updater evicts one.
        #[schemars(range(min = 1))]
        min_replicas: i32,
        /// Conditions for evictions.
        eviction_requirements: Vec<EvictionRequirement>,
        /// The time after which a container that is killed again is evicted.
        #[schemars(range(min = 1))]
        #[serde(rename = "evictAfterOOMSeconds")]
        evict_after_oom_seconds: i32,
    }

    /// A condition for evictions.
    EvictionRequirement, "an eviction requirement (a map)" {
        /// The resources.
        resources: Vec<String>,
        /// How the recommendation must differ from the requests.
        change_requirement: ChangeRequirement,
    }

    /// The limits of the recommendation.
    VpaResourcePolicy, "a resource policy (a map)" {
        /// The policies of containers, and `*` for all others.
        container_policies: Vec<VpaContainerPolicy>,
    }

    /// The policy of a container.
    #[schemars(extend("required" = ["containerName"]))]
    VpaContainerPolicy, "a container policy (a map)" {
        /// The name of the container, or `*` for all others.
        container_name: String,
        /// Whether the container has a recommendation. Default: Auto.
        mode: ScalingMode,
        /// The smallest recommendation.
        min_allowed: AllowedAmounts,
        /// The largest recommendation.
        max_allowed: AllowedAmounts,
        /// The resources with a recommendation. Default: cpu and memory.
        #[schemars(extend("items" = {"enum": ["cpu", "memory"]}))]
        controlled_resources: Vec<String>,
        /// Whether the admission controller sets limits as well. The recommender ignores it.
        controlled_values: ControlledValues,
        /// The factor of memory after an OOM kill. Requires the feature gate PerVPAConfig.
        #[serde(rename = "oomBumpUpRatio", with = "As::<Option<QuantityText>>")]
        oom_bump_up_ratio: String,
        /// The smallest increase of memory after an OOM kill. Requires PerVPAConfig.
        #[serde(rename = "oomMinBumpUp", with = "As::<Option<QuantityText>>")]
        oom_min_bump_up: String,
        /// The length of an interval with one memory peak. Requires PerVPAConfig.
        #[schemars(range(min = 1))]
        memory_aggregation_interval_seconds: i32,
        /// The number of intervals after which samples expire. Requires PerVPAConfig.
        #[schemars(range(min = 1))]
        memory_aggregation_interval_count: i64,
        /// More CPU while a pod starts. The recommender ignores it.
        startup_boost: Value,
    }

    /// The name of a recommender.
    VpaRecommender, "a recommender, for example {name: own}" {
        /// The name.
        name: String,
    }
}

/// Amounts by resource.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct AllowedAmounts(
    #[serde(with = "As::<crate::text::ByName<AnyQuantity>>")]
    pub  BTreeMap<Arc<str>, kube_autoscaler_models::quantity::Quantity>,
);
