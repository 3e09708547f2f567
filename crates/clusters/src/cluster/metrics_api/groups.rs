//! The API groups that the fake metrics API serves, their paths, and the objects that register it.

use kube_lockstep_scenario::resolved::usual_plural;

/// The namespace of the Service that the API server proxies to.
pub(crate) const NAMESPACE: &str = "kube-lockstep-metrics";

/// The name of that Service.
pub(crate) const SERVICE: &str = "metrics";

/// A group without resources, for testing which routes work.
pub(crate) const PROBE: GroupVersion =
    GroupVersion { group: "probe.kube-lockstep.dev", version: "v1", priority: 1 };

/// The header of a response that names the server.
pub(crate) const SERVER_HEADER: &str = "x-kube-lockstep";

/// The group of the usage of pods and nodes.
pub(crate) const RESOURCE_METRICS: &str = "metrics.k8s.io";

/// The group of the metrics of pods and other objects.
pub(crate) const CUSTOM_METRICS: &str = "custom.metrics.k8s.io";

/// The group of metrics from outside the cluster.
pub(crate) const EXTERNAL_METRICS: &str = "external.metrics.k8s.io";

/// The groups, each with its versions, the preferred one first.
pub(crate) const GROUPS: [(&str, &[&str]); 3] = [
    (RESOURCE_METRICS, &["v1beta1"]),
    (CUSTOM_METRICS, &["v1beta2", "v1beta1"]),
    (EXTERNAL_METRICS, &["v1beta1"]),
];

/// A version of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupVersion {
    pub group: &'static str,
    pub version: &'static str,
    /// `versionPriority` of its APIService.
    pub priority: i32,
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
    pub group: &'static str,
    pub path: &'static str,
    pub endpoint: Endpoint,
}

const fn query(group: &'static str, path: &'static str, endpoint: Endpoint) -> QueryPath {
    QueryPath { group, path, endpoint }
}

/// All queries.
pub(crate) const QUERIES: [QueryPath; 8] = [
    query(RESOURCE_METRICS, "nodes", Endpoint::Nodes),
    query(RESOURCE_METRICS, "nodes/{name}", Endpoint::Nodes),
    query(RESOURCE_METRICS, "pods", Endpoint::PodsOfAllNamespaces),
    query(RESOURCE_METRICS, "namespaces/{namespace}/pods", Endpoint::Pods),
    query(RESOURCE_METRICS, "namespaces/{namespace}/pods/{name}", Endpoint::Pod),
    query(CUSTOM_METRICS, "namespaces/{namespace}/metrics/{metric}", Endpoint::NamespaceMetric),
    query(
        CUSTOM_METRICS,
        "namespaces/{namespace}/{resource}/{name}/{metric}",
        Endpoint::ObjectMetric,
    ),
    query(EXTERNAL_METRICS, "namespaces/{namespace}/{metric}", Endpoint::ExternalMetric),
];

/// The resource of a kind, both with their groups.
pub(crate) fn resource_of(kind: &str) -> String {
    match kind.split_once('.') {
        Some((kind, group)) => format!("{}.{group}", usual_plural(kind)),
        None => usual_plural(kind),
    }
}
