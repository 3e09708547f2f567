//! A typical metrics API that another component registered in a cluster.

use serde_json::{Value, json};

/// A Service and its APIService, for a server at a port of loopback.
pub fn metrics_server(port: u16) -> [Value; 2] {
    let service = json!({
        "metadata": { "name": "metrics-server", "namespace": "kube-system" },
        "spec": {
            "type": "ExternalName", "externalName": "localhost", "ports": [{ "port": port }],
        },
    });
    let api = json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {
            "name": "v1beta1.metrics.k8s.io",
            "labels": { "k8s-app": "metrics-server" },
            "annotations": { "owner": "example" },
        },
        "spec": {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": true,
            "service": { "namespace": "kube-system", "name": "metrics-server", "port": port },
        },
    });
    [service, api]
}
