//! The version of scenarios, kinds of objects with a scale, and the API's data of scale targets.

use std::sync::Arc;

use kube_autoscaler_models::api::with_group;

/// The `apiVersion` of scenarios.
pub const API_VERSION: &str = "kube-lockstep.dev/v1alpha1";

/// A kind of objects, usually with a scale.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct ScalableKind<'a> {
    /// API group, empty for core.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The plural, as in paths.
    pub resource: &'a str,
}

impl ScalableKind<'_> {
    /// The resource with its group: `deployments.apps`, `replicationcontrollers`.
    #[must_use]
    pub fn group_resource(&self) -> String {
        with_group(self.resource, self.group)
    }
}

/// The kinds with a scale that every API server has.
pub const BUILT_IN: [ScalableKind<'static>; 4] = {
    const fn apps(kind: &'static str, resource: &'static str) -> ScalableKind<'static> {
        ScalableKind { group: "apps", version: "v1", kind, resource }
    }
    [
        apps("Deployment", "deployments"),
        apps("ReplicaSet", "replicasets"),
        apps("StatefulSet", "statefulsets"),
        ScalableKind {
            group: "",
            version: "v1",
            kind: "ReplicationController",
            resource: "replicationcontrollers",
        },
    ]
};

/// Kinds without a scale that may be mistaken for scale targets.
pub(crate) const WITHOUT_SCALE: [ScalableKind<'static>; 4] = {
    const fn v1(
        group: &'static str,
        kind: &'static str,
        resource: &'static str,
    ) -> ScalableKind<'static> {
        ScalableKind { group, version: "v1", kind, resource }
    }
    [
        v1("apps", "DaemonSet", "daemonsets"),
        v1("batch", "Job", "jobs"),
        v1("batch", "CronJob", "cronjobs"),
        v1("", "Pod", "pods"),
    ]
};

/// A scale target as the API serves it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// API group, empty for core.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// For example `Deployment`.
    pub kind: &'a str,
    /// For example `deployments`.
    pub resource: &'a str,
    /// The object's name.
    pub name: &'a Arc<str>,
    /// `spec.replicas` at t=0.
    pub replicas: i32,
}

impl Target<'_> {
    /// The resource with its group: `deployments.apps`, `replicationcontrollers`.
    #[must_use]
    pub fn group_resource(&self) -> String {
        with_group(self.resource, self.group)
    }
}
