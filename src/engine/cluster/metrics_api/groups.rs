//! The API groups that the fake metrics API serves, and the names by which clusters know it.

use crate::scenario::resolved::usual_plural;

/// The names by which the API server knows it: those of a Service.
pub(crate) const NAMESPACE: &str = "kube-lockstep-metrics";

pub(crate) const SERVICE: &str = "metrics";

/// A group without resources, by which it is found out how an API server reaches the server.
pub(crate) const PROBE: (&str, &str) = ("probe.kube-lockstep.dev", "v1");

/// Says of each answer which server gave it.
pub(crate) const SERVER_HEADER: &str = "x-kube-lockstep";

/// The groups that it serves, each with its versions, the best first.
pub(crate) const GROUPS: [(&str, &[&str]); 3] = [
    ("metrics.k8s.io", &["v1beta1"]),
    ("custom.metrics.k8s.io", &["v1beta2", "v1beta1"]),
    ("external.metrics.k8s.io", &["v1beta1"]),
];

/// The names of the groups' APIServices, with group, version, and the version's priority.
pub(crate) fn api_services(
    groups: &[&str],
) -> impl Iterator<Item = (String, &'static str, &'static str, usize)> {
    let wanted: Vec<_> = GROUPS.into_iter().filter(|(group, _)| groups.contains(group)).collect();
    wanted.into_iter().flat_map(|(group, versions)| {
        versions.iter().enumerate().map(move |(index, version)| {
            (format!("{version}.{group}"), group, *version, 100 - index)
        })
    })
}

/// The resource of a kind, both with their groups.
pub(crate) fn resource_of(kind: &str) -> String {
    match kind.split_once('.') {
        Some((kind, group)) => format!("{}.{group}", usual_plural(kind)),
        None => usual_plural(kind),
    }
}
