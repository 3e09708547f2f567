//! A controller that has just started asks for much before its first decision: which kinds there
//! are, and which versions of the metrics APIs. One HPA of nobody's takes that upon itself, so that
//! no scenario has to.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant, timeout_at};

use super::client::{at_once, object};
use super::scene::Stage;

const NAMESPACE: &str = "kube-lockstep-warm-up";

/// What each of the metrics APIs is asked for.
const METRICS: [&str; 3] = ["listPodMetrics", "podsMetric", "externalMetric"];

/// Longer than a controller needs. One with a long sync period may not have begun by then: its
/// first decisions are then a little late.
const LIMIT: Duration = Duration::from_secs(5);

/// One of the user's own may first have to be compiled.
const OWN_LIMIT: Duration = Duration::from_secs(20);

/// How often it is looked whether the controller still runs.
const GLANCE: Duration = Duration::from_millis(100);

/// Lets the controller look at an HPA with a metric of each API, and waits until it has, or is
/// gone. One that is not upstream's may ask for less.
///
/// # Errors
/// If the API server refuses.
pub(crate) async fn warm_up(stage: &Stage, is_gone: &dyn Fn() -> bool) -> Result<(), String> {
    let (to, mut did) = unbounded_channel();
    stage.metrics.open(NAMESPACE, &NAMESPACE.into(), jiff::Timestamp::now(), to);
    let post = PostParams::default();
    let refused = |error: kube::Error| error.to_string();
    let namespaces: Api<Namespace> = Api::all(stage.client.clone());
    let namespace = object(json!({ "metadata": { "name": NAMESPACE } }))?;
    namespaces.create(&post, &namespace).await.map_err(refused)?;
    let deployments: Api<Deployment> = Api::namespaced(stage.client.clone(), NAMESPACE);
    let labels = json!({ "app": "warm-up" });
    let deployment = object(json!({
        "metadata": { "name": "warm-up" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "schedulerName": "kube-lockstep",
                    "containers": [{ "name": "app", "image": "none" }],
                },
            },
        },
    }))?;
    deployments.create(&post, &deployment).await.map_err(refused)?;
    let hpas: Api<HorizontalPodAutoscaler> = Api::namespaced(stage.client.clone(), NAMESPACE);
    let average = json!({ "type": "AverageValue", "averageValue": "1" });
    let hpa = object(json!({
        "metadata": { "name": "warm-up" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "warm-up" },
            "maxReplicas": 2,
            "metrics": [
                { "type": "Resource", "resource": { "name": "cpu", "target": average } },
                { "type": "Pods", "pods": { "metric": { "name": "none" }, "target": average } },
                {
                    "type": "External",
                    "external": { "metric": { "name": "none" }, "target": average },
                },
            ],
        },
    }))?;
    hpas.create(&post, &hpa).await.map_err(refused)?;
    let own = stage.said.is_some();
    let limit = Instant::now() + if own { OWN_LIMIT } else { LIMIT };
    let mut asked = Vec::new();
    let enough = |asked: &[&str]| match own {
        true => !asked.is_empty(),
        false => METRICS.iter().all(|metrics| asked.contains(metrics)),
    };
    while !enough(&asked) && !is_gone() && Instant::now() < limit {
        match timeout_at(Instant::now() + GLANCE, did.recv()).await {
            Ok(Some(did)) => asked.push(did.what),
            Ok(None) => break,
            Err(_) => {}
        }
    }
    stage.metrics.close(NAMESPACE);
    namespaces.delete(NAMESPACE, &at_once()).await.map(|_| ()).map_err(refused)
}
