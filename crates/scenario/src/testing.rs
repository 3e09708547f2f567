//! A small scenario for tests.

use std::sync::Arc;

use super::Scenario;

/// A Deployment of two replicas whose pods use 500m of CPU each, which is the HPA's target.
pub const WEB: &str = "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Something holds.
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    maxReplicas: 10
    metrics:
    - type: Resource
      resource: {name: cpu, target: {type: AverageValue, averageValue: 500m}}
workload:
  replicas: 2
  containers: [{name: app, requests: {cpu: 1}}]
metrics:
  resource: [{name: cpu, perPod: 500m}]
until: 2m
";

/// Parses a scenario without references to other files.
pub fn scenario(text: &str) -> Arc<Scenario> {
    let none = |_: &str| Err("there is no other file".into());
    Arc::new(super::parse("x.yaml", text, &none).expect("a valid scenario"))
}
