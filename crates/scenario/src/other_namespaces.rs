//! Namespaces with objects that have the same names as those of the scenario.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::{Amount, As, ByName};
use kube_autoscaler_models::api::Requests;

/// A namespace with a scale target of the same kind and name as the workload, and pods with the
/// same names, labels and requests. They are running, ready and constant. The controller must not
/// use them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "another namespace, for example {name: staging, replicas: 7}")]
pub struct OtherNamespace {
    /// The namespace.
    #[schemars(length(min = 1))]
    pub name: Arc<str>,
    /// The replicas of the target, and the number of its pods. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub replicas: Option<u32>,
    /// The constant usage of the first container of each pod: `cpu`, `memory`. Default: the pods
    /// have no metrics in metrics.k8s.io.
    #[serde(default, with = "As::<ByName<Amount>>", skip_serializing_if = "Requests::is_empty")]
    pub usage: Requests,
}

impl OtherNamespace {
    /// The replicas of the target.
    #[must_use]
    pub fn replicas(&self) -> u32 {
        self.replicas.unwrap_or(1)
    }
}
