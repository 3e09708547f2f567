//! The restoration of replaced APIServices.

use serde_json::json;

use super::*;
use crate::cluster::access::client::object;

/// A foreign APIService that was replaced.
fn replaced(namespace: &str) -> APIService {
    let was = json!({
        "group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 7,
        "versionPriority": 9, "service": { "namespace": "kube-system", "name": "theirs" },
    });
    object(json!({
        "metadata": {
            "name": "v1beta1.metrics.k8s.io",
            "labels": { "k8s-app": "theirs", METRICS_API: "true" },
            "annotations": { OWNER: "{}", REPLACED: was.to_string(), "of": "theirs" },
        },
        "spec": {
            "group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100,
            "versionPriority": 100, "service": { "namespace": namespace, "name": "metrics" },
        },
    }))
    .expect("an APIService")
}

fn service(api: &APIService) -> Option<&str> {
    api.spec.as_ref()?.service.as_ref()?.name.as_deref()
}

#[test]
fn a_replaced_api_service_is_restored() {
    let mut api = replaced(NAMESPACE);
    restore(&mut api);
    let spec = api.spec.as_ref().expect("a spec");
    assert_eq!((service(&api), spec.group_priority_minimum), (Some("theirs"), 7));
    assert_eq!(api.annotations().iter().collect::<Vec<_>>(), [(&"of".into(), &"theirs".into())]);
    assert_eq!(api.labels().keys().collect::<Vec<_>>(), ["k8s-app"]);
}

#[test]
fn changes_by_other_clients_are_kept() {
    let mut api = replaced("elsewhere");
    restore(&mut api);
    assert_eq!(service(&api), Some("metrics"));
    assert!(!api.annotations().contains_key(REPLACED) && !api.labels().contains_key(METRICS_API));
}

#[test]
fn only_the_requested_groups_have_api_services() {
    let names = |groups: &[&str]| {
        versions_of(groups).iter().map(GroupVersion::api_service).collect::<Vec<_>>()
    };
    assert_eq!(names(&["external.metrics.k8s.io"]), ["v1beta1.external.metrics.k8s.io"]);
    assert_eq!(
        names(&["custom.metrics.k8s.io"]),
        ["v1beta2.custom.metrics.k8s.io", "v1beta1.custom.metrics.k8s.io"]
    );
    assert!(names(&[]).is_empty());
}
