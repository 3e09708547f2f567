//! The API groups that the fake metrics API serves, their paths, and the objects that register it.

use crate::scenario::resolved::usual_plural;

/// The namespace of the Service that the API server proxies to.
pub(crate) const NAMESPACE: &str = "kube-lockstep-metrics";

/// The name of that Service.
pub(crate) const SERVICE: &str = "metrics";

/// A group without resources, for testing which routes work.
pub(crate) const PROBE: GroupVersion =
    GroupVersion { group: "probe.kube-lockstep.dev", version: "v1", priority: 1 };

/// The header of a response that names the server.
pub(crate) const SERVER_HEADER: &str = "x-kube-lockstep";

/// The groups, each with its versions, the preferred one first.
pub(crate) const GROUPS: [(&str, &[&str]); 3] = [
    ("metrics.k8s.io", &["v1beta1"]),
    ("custom.metrics.k8s.io", &["v1beta2", "v1beta1"]),
    ("external.metrics.k8s.io", &["v1beta1"]),
];

/// A version of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupVersion {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    /// `versionPriority` of its APIService.
    pub(crate) priority: i32,
}

impl GroupVersion {
    /// The name of its APIService.
    pub(crate) fn api_service(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }

    pub(crate) fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    pub(crate) fn path(&self) -> String {
        format!("/apis/{}", self.api_version())
    }
}

/// All versions that are served.
pub(crate) fn versions() -> impl Iterator<Item = GroupVersion> {
    GROUPS.into_iter().flat_map(|(group, versions)| {
        let priorities = (1..=100).rev();
        let version = move |(version, priority)| GroupVersion { group, version, priority };
        versions.iter().copied().zip(priorities).map(version)
    })
}

/// The versions of some of the groups.
pub(crate) fn versions_of(groups: &[&str]) -> Vec<GroupVersion> {
    versions().filter(|it| groups.contains(&it.group)).collect()
}

/// A query of the metrics APIs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Endpoint {
    Nodes,
    PodsOfAllNamespaces,
    Pods,
    Pod,
    NamespaceMetric,
    ObjectMetric,
    ExternalMetric,
    /// A path that does not exist in any metrics API.
    Unknown,
}

/// The path of a query below the version of its group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QueryPath {
    pub(crate) group: &'static str,
    pub(crate) path: &'static str,
    pub(crate) endpoint: Endpoint,
}

const fn query(group: &'static str, path: &'static str, endpoint: Endpoint) -> QueryPath {
    QueryPath { group, path, endpoint }
}

/// All queries.
pub(crate) const QUERIES: [QueryPath; 8] = [
    query("metrics.k8s.io", "nodes", Endpoint::Nodes),
    query("metrics.k8s.io", "nodes/{name}", Endpoint::Nodes),
    query("metrics.k8s.io", "pods", Endpoint::PodsOfAllNamespaces),
    query("metrics.k8s.io", "namespaces/{namespace}/pods", Endpoint::Pods),
    query("metrics.k8s.io", "namespaces/{namespace}/pods/{name}", Endpoint::Pod),
    query(
        "custom.metrics.k8s.io",
        "namespaces/{namespace}/metrics/{metric}",
        Endpoint::NamespaceMetric,
    ),
    query(
        "custom.metrics.k8s.io",
        "namespaces/{namespace}/{resource}/{name}/{metric}",
        Endpoint::ObjectMetric,
    ),
    query("external.metrics.k8s.io", "namespaces/{namespace}/{metric}", Endpoint::ExternalMetric),
];

/// The resource of a kind, both with their groups.
pub(crate) fn resource_of(kind: &str) -> String {
    match kind.split_once('.') {
        Some((kind, group)) => format!("{}.{group}", usual_plural(kind)),
        None => usual_plural(kind),
    }
}
