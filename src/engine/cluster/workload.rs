//! What targets are in a cluster: who makes their pods, and how they are written.

use std::collections::BTreeMap;

use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::model::selector::match_labels;
use crate::scenario::resolved::Workload;

/// Who makes the pods of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Maker {
    /// The cluster's controller of a kind.
    Controller(&'static str),
    /// Nobody in the cluster knows the kind: it is done from here, and so is its status.
    Driver,
}

/// The kinds whose controllers make pods.
const KINDS: [(&str, &str); 4] = [
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("", "ReplicationController"),
];

impl Maker {
    /// Who makes the pods of a workload.
    pub(crate) fn of(workload: &Workload) -> Maker {
        let own = (workload.group.as_str(), workload.kind.as_str());
        let known = KINDS.into_iter().find(|kind| *kind == own);
        known.map_or(Maker::Driver, |(_, kind)| Maker::Controller(kind))
    }

    /// Whether the names of pods are free only when the pods are gone.
    pub(crate) fn keeps_names(self) -> bool {
        self == Maker::Controller("StatefulSet")
    }

    /// The spec of a target with so many pods of a template.
    pub(crate) fn spec(self, replicas: i32, selector: &str, template: Value) -> Value {
        let labels: BTreeMap<&str, &str> =
            match_labels(selector).unwrap_or_default().into_iter().collect();
        match self {
            Maker::Driver => json!({ "replicas": replicas }),
            // Its selector has no expressions.
            Maker::Controller("ReplicationController") => {
                json!({ "replicas": replicas, "selector": labels, "template": template })
            }
            Maker::Controller(kind) => {
                let selector = json!({ "matchLabels": labels });
                let mut spec =
                    json!({ "replicas": replicas, "selector": selector, "template": template });
                if kind == "Deployment" {
                    // Nobody asks how its rollout goes on, and without a deadline its controller
                    // has less to write.
                    spec["progressDeadlineSeconds"] = i32::MAX.into();
                }
                if kind == "StatefulSet" {
                    // No pod waits for another one to be ready, as in the world.
                    spec["podManagementPolicy"] = "Parallel".into();
                    spec["serviceName"] = "none".into();
                }
                spec
            }
        }
    }
}

/// What the API has of a workload.
pub(crate) fn resource_of(workload: &Workload) -> ApiResource {
    let Workload { group, version, kind, resource, .. } = workload;
    let api_version = match group.is_empty() {
        true => version.clone(),
        false => format!("{group}/{version}"),
    };
    ApiResource {
        group: group.clone(),
        version: version.clone(),
        api_version,
        kind: kind.clone(),
        plural: resource.clone(),
    }
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
    /// The kind of a workload that no controller of a cluster knows.
    pub(crate) fn of(workload: &Workload) -> Option<CustomKind> {
        (Maker::of(workload) == Maker::Driver).then(|| CustomKind {
            group: workload.group.clone(),
            plural: workload.resource.clone(),
            version: workload.version.clone(),
            kind: workload.kind.clone(),
        })
    }

    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// What defines it, with all versions that are served; the first is the one that is stored.
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

    /// The rights that playing with it takes, as a rule of a role.
    pub(crate) fn rule(&self) -> Value {
        let of = |what: &str| format!("{}{what}", self.plural);
        json!({
            "apiGroups": [self.group],
            "resources": [self.plural, of("/scale"), of("/status")],
            "verbs": ["get", "list", "watch", "create", "patch", "delete"],
        })
    }
}
