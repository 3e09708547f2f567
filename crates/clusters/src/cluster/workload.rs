//! Scale targets in a cluster: their manifests, and the owner of their pods.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::cluster::manifests::required_labels;
use crate::cluster::resources;
use kube_lockstep_scenario::resolved::{BUILT_IN, ScalableKind, Workload};

/// The component that creates and deletes the pods of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PodOwner {
    /// The cluster's controller of this kind.
    Controller(&'static str),
    /// The harness, which also writes the status of the target: the kind has no controller.
    Harness,
}

impl PodOwner {
    /// The owner of the pods of a workload.
    pub(crate) fn new(workload: &Workload) -> PodOwner {
        let Workload { group, kind, .. } = workload;
        // Every built-in kind has a controller that creates pods.
        let built_in = BUILT_IN.iter().find(|known| known.group == group && known.kind == kind);
        built_in.map_or(PodOwner::Harness, |known| PodOwner::Controller(known.kind))
    }

    /// Returns true if new pods reuse the names of deleted pods.
    pub(crate) fn keeps_names(self) -> bool {
        self == PodOwner::Controller("StatefulSet")
    }

    /// The spec of a target.
    pub(crate) fn spec(self, replicas: i32, selector: &str, template: PodTemplateSpec) -> Value {
        let labels = required_labels(selector);
        match self {
            PodOwner::Harness => json!({ "replicas": replicas }),
            // Its selector is a map of labels.
            PodOwner::Controller("ReplicationController") => {
                json!({ "replicas": replicas, "selector": labels, "template": template })
            }
            PodOwner::Controller(kind) => {
                let selector = json!({ "matchLabels": labels });
                let mut spec =
                    json!({ "replicas": replicas, "selector": selector, "template": template });
                if kind == "Deployment" {
                    // Without a progress deadline, its controller writes its status less often.
                    spec["progressDeadlineSeconds"] = i32::MAX.into();
                }
                if kind == "StatefulSet" {
                    // As in the world, no pod waits until another is ready.
                    spec["podManagementPolicy"] = "Parallel".into();
                    spec["serviceName"] = "none".into();
                }
                spec
            }
        }
    }
}

/// The API resource of a workload.
pub(crate) fn resource_of(workload: &Workload) -> ApiResource {
    let Workload { group, version, kind, resource, .. } = workload;
    resources::scalable(&ScalableKind { group, version, kind, resource })
}

/// A kind of custom resources with a scale.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct CustomKind {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) version: String,
    kind: String,
}

impl CustomKind {
    /// The kind of a workload without a controller.
    pub(crate) fn from_workload(workload: &Workload) -> Option<CustomKind> {
        (PodOwner::new(workload) == PodOwner::Harness).then(|| CustomKind {
            group: workload.group.clone(),
            plural: workload.resource.clone(),
            version: workload.version.clone(),
            kind: workload.kind.clone(),
        })
    }

    /// The name of its CustomResourceDefinition.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Its CustomResourceDefinition with these versions, of which the first is stored.
    pub(crate) fn definition(&self, versions: &[&str]) -> Value {
        let integer = json!({ "type": "integer" });
        let version = |(index, version): (usize, &&str)| {
            json!({
                "name": version,
                "served": true,
                "storage": index == 0,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": { "type": "object", "properties": { "replicas": integer } },
                        "status": {
                            "type": "object",
                            "properties": {
                                "replicas": integer,
                                "selector": { "type": "string" },
                            },
                        },
                    },
                } },
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
            })
        };
        json!({
            "metadata": { "name": self.name() },
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {
                    "kind": self.kind,
                    "listKind": format!("{}List", self.kind),
                    "plural": self.plural,
                    "singular": self.kind.to_lowercase(),
                },
                "versions": versions.iter().enumerate().map(version).collect::<Vec<_>>(),
            },
        })
    }

    /// The permissions that scenarios require for it, as a rule of a role.
    pub(crate) fn rule(&self) -> Value {
        let of = |what: &str| format!("{}{what}", self.plural);
        json!({
            "apiGroups": [self.group],
            "resources": [self.plural, of("/scale"), of("/status")],
            "verbs": ["get", "list", "watch", "create", "patch", "delete"],
        })
    }
}
