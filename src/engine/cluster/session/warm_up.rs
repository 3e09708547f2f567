//! A controller that has just started asks for much before its first decision: which kinds there
//! are, and which versions of the metrics APIs. One HPA of nobody's takes that upon itself, so that
//! no scenario has to. It also shows how often a controller looks, where that is not known.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout, timeout_at};

use crate::engine::cluster::access::client::{at_once, object};
use crate::engine::cluster::access::namespaces;
use crate::engine::cluster::metrics_api::groups::GROUPS;
use crate::engine::cluster::metrics_api::handlers::is_query;
use crate::engine::cluster::observe::action::ObservedAction;
use crate::engine::cluster::session::context::Stage;
use crate::engine::cluster::settings::UPSTREAM_USER;
use crate::model::time::Span;

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

/// No controller is so slow.
const LONGEST_PERIOD: Duration = Duration::from_secs(150);

/// Who is not upstream's may be somebody's own controller, if upstream's has not asked by then.
const PATIENCE: Duration = Duration::from_secs(35);

/// So many reconciles are waited for to know the time between them.
const RECONCILES: usize = 3;

/// Less than this apart, queries are of one reconcile.
const APART: Duration = Duration::from_millis(150);

/// Lets the controller look at an HPA with a metric of each API, and waits until it has, or is
/// gone. One that is not upstream's may ask for less.
///
/// # Errors
/// If the API server refuses.
pub(crate) async fn warm_up(stage: &Stage, is_gone: &dyn Fn() -> bool) -> Result<(), String> {
    let mut did = begin(stage, &GROUPS.map(|(group, _)| group)).await?;
    let own = stage.said.is_some();
    let limit = Instant::now() + if own { OWN_LIMIT } else { LIMIT };
    let mut asked = Vec::new();
    let enough = |asked: &[&str]| match own {
        true => !asked.is_empty(),
        false => METRICS.iter().all(|metrics| asked.contains(metrics)),
    };
    while !enough(&asked) && !is_gone() && Instant::now() < limit {
        match timeout_at(Instant::now() + GLANCE, did.recv()).await {
            Ok(Some(did)) => {
                if is_upstream(&did.by) {
                    stage.metrics.set_controller(&did.by);
                }
                asked.push(did.what);
            }
            Ok(None) => break,
            Err(_) => {}
        }
    }
    end(stage).await
}

/// The same with metrics of these groups, for as long as it takes to know the controller's sync
/// period.
///
/// # Errors
/// If the API server refuses, or if no controller asks.
pub(crate) async fn measure(stage: &Stage, groups: &[&str]) -> Result<Span, String> {
    let mut did = begin(stage, groups).await?;
    let begin = Instant::now();
    let mut askers: BTreeMap<String, Vec<Timestamp>> = BTreeMap::new();
    let controller = loop {
        let next = timeout(LONGEST_PERIOD, did.recv()).await;
        let Ok(Some(ObservedAction { at, what, by, .. })) = next else { break None };
        // Watches tell of writes, too.
        if !is_query(what) {
            continue;
        }
        let asked = askers.entry(by.clone()).or_default();
        asked.push(at);
        let enough = reconciles(asked).len() >= RECONCILES;
        let others_only = !askers.keys().any(|user| is_upstream(user));
        if enough && (is_upstream(&by) || others_only && begin.elapsed() > PATIENCE) {
            break Some(by);
        }
        if begin.elapsed() > LONGEST_PERIOD * 3 {
            break None;
        }
    };
    end(stage).await?;
    let Some(controller) = controller else {
        let most = askers.values().map(|asked| reconciles(asked).len()).max();
        return Err(format!(
            "the cluster's HPA controller has looked {} times at an HPA of {NAMESPACE} within {} \
             s: its sync period can't be measured; does its kube-controller-manager run?",
            most.unwrap_or_default(),
            begin.elapsed().as_secs()
        ));
    };
    stage.metrics.set_controller(&controller);
    let began = reconciles(askers.get(&controller).map_or(&[], Vec::as_slice));
    let periods = began.windows(2).filter_map(|it| match it {
        [one, next] => i64::try_from(next.duration_since(*one).as_nanos()).ok(),
        _ => None,
    });
    nominal(Span(periods.min().unwrap_or_default()))
}

/// Whether upstream's HPA controller asks as that user.
fn is_upstream(user: &str) -> bool {
    user == UPSTREAM_USER || user == "system:kube-controller-manager"
}

/// When the reconciles began that have asked at these times.
fn reconciles(asked: &[Timestamp]) -> Vec<Timestamp> {
    let apart = |one: Timestamp, next: Timestamp| next.duration_since(one).unsigned_abs() > APART;
    let first = asked.first().copied();
    let others = asked.windows(2).filter_map(|it| match it {
        [one, next] => apart(*one, *next).then_some(*next),
        _ => None,
    });
    first.into_iter().chain(others).collect()
}

/// The period that a flag says, by the time between two reconciles, which is a little more.
fn nominal(measured: Span) -> Result<Span, String> {
    let step = match measured.as_secs_f64() {
        ..0.8 => Span::from_millis(50),
        ..4.5 => Span::from_millis(500),
        _ => Span::from_secs(1),
    };
    // What a reconcile takes, and how late a queue is.
    let late = Span::from_millis(60).0.min(step.0 / 2).max(measured.0 / 50);
    let steps = (measured.0 + step.0 / 20) / step.0;
    let period = Span(steps * step.0);
    match period > Span::ZERO && measured.0 - period.0 <= late {
        true => Ok(period),
        false => Err(format!(
            "the cluster's sync period seems to be {measured}, which is no usual one: what is due \
             when can't be told from that"
        )),
    }
}

/// Makes the HPA, and gives what is asked for it.
async fn begin(
    stage: &Stage,
    groups: &[&str],
) -> Result<UnboundedReceiver<ObservedAction>, String> {
    let (to, did) = unbounded_channel();
    stage.metrics.open(NAMESPACE, &NAMESPACE.into(), Timestamp::now(), to);
    let post = PostParams::default();
    let refused = |error: kube::Error| error.to_string();
    let namespaces: Api<Namespace> = Api::all(stage.client.clone());
    let namespace = namespaces::namespace(NAMESPACE)?;
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
    let metric = |group: &&str| match *group {
        "metrics.k8s.io" => {
            json!({ "type": "Resource", "resource": { "name": "cpu", "target": average } })
        }
        "custom.metrics.k8s.io" => {
            json!({ "type": "Pods", "pods": { "metric": { "name": "none" }, "target": average } })
        }
        _ => json!({
            "type": "External",
            "external": { "metric": { "name": "none" }, "target": average },
        }),
    };
    let metrics: Vec<Value> = groups.iter().map(metric).collect();
    let hpa = object(json!({
        "metadata": { "name": "warm-up" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "warm-up" },
            "maxReplicas": 2,
            "metrics": metrics,
        },
    }))?;
    hpas.create(&post, &hpa).await.map_err(refused)?;
    Ok(did)
}

async fn end(stage: &Stage) -> Result<(), String> {
    stage.metrics.close(NAMESPACE);
    let namespaces: Api<Namespace> = Api::all(stage.client.clone());
    let deleted = namespaces.delete(NAMESPACE, &at_once()).await;
    deleted.map(|_| ()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_of_one_reconcile_are_grouped() {
        let at = |millis: i64| Timestamp::from_millisecond(millis).expect("a time");
        let asked = [0, 20, 1000, 1140, 2010].map(at);
        assert_eq!(reconciles(&asked), [0, 1000, 2010].map(at));
        assert_eq!(reconciles(&[]), []);
    }

    #[test]
    fn measured_periods_are_rounded_to_a_flag() {
        let of = |millis: i64| nominal(Span::from_millis(millis)).ok();
        for (measured, flag) in [
            (205, 200),
            (1004, 1000),
            (1031, 1000),
            (1503, 1500),
            (15_020, 15_000),
            (15_190, 15_000),
            (30_400, 30_000),
            (60_100, 60_000),
        ] {
            assert_eq!(of(measured), Some(Span::from_millis(flag)), "{measured}");
        }
        for neither in [0, 1200, 15_500, 15_700] {
            assert_eq!(of(neither), None, "{neither}");
        }
    }
}
