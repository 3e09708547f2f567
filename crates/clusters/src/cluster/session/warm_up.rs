//! The warm-up: a controller that has just started first discovers resource kinds and the versions
//! of the metrics APIs. This happens with a temporary HPA, so that it does not delay a scenario.
//! The HPA also shows the sync period of the controller, if that is unknown.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout, timeout_at};

use crate::cluster::access::client::{at_once, object};
use crate::cluster::access::namespaces;
use crate::cluster::manifests::deployment;
use crate::cluster::metrics_api::groups::{CUSTOM_METRICS, GROUPS, RESOURCE_METRICS};
use crate::cluster::observe::action::ObservedAction;
use crate::cluster::session::context::ClusterContext;
use crate::cluster::settings::UPSTREAM_USER;
use crate::cluster::timeouts::{
    CUSTOM_WARM_UP_TIMEOUT, LONGEST_SYNC_PERIOD, OTHER_CONTROLLER_AFTER, POLL_INTERVAL,
    WARM_UP_TIMEOUT,
};
use crate::cluster::tolerances::{MAX_MEASURED_DELAY, MEASURED_DELAY_DIVISOR, SAME_RECONCILE};
use kube_autoscaler_models::observation::ControllerAction;
use kube_autoscaler_models::time::Span;

const NAMESPACE: &str = "kube-lockstep-warm-up";

/// The number of reconciles that the measurement of the sync period takes.
const RECONCILES: usize = 3;

/// Creates an HPA with a metric of each API, and waits until the controller has queried all of
/// them, or has exited. A custom controller may query fewer.
///
/// # Errors
/// If the API server rejects a request.
pub(crate) async fn warm_up(
    context: &ClusterContext,
    has_exited: &dyn Fn() -> bool,
) -> Result<(), String> {
    let mut receiver = begin(context, &GROUPS.map(|(group, _)| group)).await?;
    let is_custom = context.controller_log.is_some();
    let limit = Instant::now() + if is_custom { CUSTOM_WARM_UP_TIMEOUT } else { WARM_UP_TIMEOUT };
    let mut queries: Vec<ControllerAction> = Vec::new();
    let enough = |queries: &[ControllerAction]| match is_custom {
        true => !queries.is_empty(),
        false => {
            use ControllerAction::{ExternalMetric, ListPodMetrics, PodsMetric};
            queries.iter().any(|it| matches!(it, ListPodMetrics { .. }))
                && queries.iter().any(|it| matches!(it, PodsMetric { .. }))
                && queries.iter().any(|it| matches!(it, ExternalMetric { .. }))
        }
    };
    while !enough(&queries) && !has_exited() && Instant::now() < limit {
        match timeout_at(Instant::now() + POLL_INTERVAL, receiver.recv()).await {
            Ok(Some(query)) => {
                if is_upstream(&query.user) {
                    context.metrics.set_controller(&query.user);
                }
                queries.push(query.action);
            }
            Ok(None) => break,
            Err(_) => {}
        }
    }
    end(context).await
}

/// Measures the controller's sync period, with an HPA that has metrics of these groups.
///
/// # Errors
/// If the API server rejects a request, or if no controller queries the metrics.
pub(crate) async fn measure(context: &ClusterContext, groups: &[&str]) -> Result<Span, String> {
    let mut receiver = begin(context, groups).await?;
    let begin = Instant::now();
    let mut users: BTreeMap<String, Vec<Timestamp>> = BTreeMap::new();
    let controller = loop {
        let next = timeout(LONGEST_SYNC_PERIOD, receiver.recv()).await;
        let Ok(Some(ObservedAction { received, action, user, .. })) = next else { break None };
        if !action.is_metric_query() {
            continue;
        }
        let queries = users.entry(user.clone()).or_default();
        queries.push(received);
        let enough = reconciles(queries).len() >= RECONCILES;
        let others_only = !users.keys().any(|user| is_upstream(user));
        let is_late = begin.elapsed() > OTHER_CONTROLLER_AFTER;
        if enough && (is_upstream(&user) || others_only && is_late) {
            break Some(user);
        }
        if begin.elapsed() > LONGEST_SYNC_PERIOD * 3 {
            break None;
        }
    };
    end(context).await?;
    let Some(controller) = controller else {
        let most = users.values().map(|queries| reconciles(queries).len()).max();
        return Err(format!(
            "the sync period of the cluster's HPA controller can't be measured: it has reconciled \
             the HPA of {NAMESPACE} {} times within {} s; check that the kube-controller-manager \
             is running",
            most.unwrap_or_default(),
            begin.elapsed().as_secs()
        ));
    };
    context.metrics.set_controller(&controller);
    let began = reconciles(users.get(&controller).map_or(&[], Vec::as_slice));
    let periods = began.windows(2).filter_map(|it| match it {
        [one, next] => i64::try_from(next.duration_since(*one).as_nanos()).ok(),
        _ => None,
    });
    nominal(Span(periods.min().unwrap_or_default()))
}

/// Returns true if a user is upstream's HPA controller.
fn is_upstream(user: &str) -> bool {
    user == UPSTREAM_USER || user == "system:kube-controller-manager"
}

/// The times when the reconciles began that sent queries at these times.
fn reconciles(queries: &[Timestamp]) -> Vec<Timestamp> {
    let apart =
        |one: Timestamp, next: Timestamp| next.duration_since(one).unsigned_abs() > SAME_RECONCILE;
    let first = queries.first().copied();
    let others = queries.windows(2).filter_map(|it| match it {
        [one, next] => apart(*one, *next).then_some(*next),
        _ => None,
    });
    first.into_iter().chain(others).collect()
}

/// The sync period of the flag, from the time between two reconciles, which is slightly longer.
fn nominal(measured: Span) -> Result<Span, String> {
    let step = match measured.as_secs_f64() {
        ..0.8 => Span::from_millis(50),
        ..4.5 => Span::from_millis(500),
        _ => Span::from_secs(1),
    };
    let late = MAX_MEASURED_DELAY.0.min(step.0 / 2).max(measured.0 / MEASURED_DELAY_DIVISOR);
    let steps = (measured.0 + step.0 / 20) / step.0;
    let period = Span(steps * step.0);
    match period > Span::ZERO && measured.0 - period.0 <= late {
        true => Ok(period),
        false => Err(format!(
            "the measured sync period of the cluster is {measured}, which is not a usual value: \
             the times of reconciles can't be derived from it"
        )),
    }
}

/// Creates the HPA, and returns the receiver of its queries.
async fn begin(
    context: &ClusterContext,
    groups: &[&str],
) -> Result<UnboundedReceiver<ObservedAction>, String> {
    let (to, receiver) = unbounded_channel();
    context.metrics.open(NAMESPACE, &NAMESPACE.into(), Timestamp::now(), to);
    let post = PostParams::default();
    let refused = |error: kube::Error| error.to_string();
    let namespaces: Api<Namespace> = Api::all(context.client.clone());
    let namespace = namespaces::namespace(NAMESPACE);
    namespaces.create(&post, &namespace).await.map_err(refused)?;
    let deployments: Api<Deployment> = Api::namespaced(context.client.clone(), NAMESPACE);
    let deployment = deployment("warm-up", 1, "app=warm-up");
    deployments.create(&post, &deployment).await.map_err(refused)?;
    let hpas: Api<HorizontalPodAutoscaler> = Api::namespaced(context.client.clone(), NAMESPACE);
    let average = json!({ "type": "AverageValue", "averageValue": "1" });
    let metric = |group: &&str| match *group {
        RESOURCE_METRICS => {
            json!({ "type": "Resource", "resource": { "name": "cpu", "target": average } })
        }
        CUSTOM_METRICS => {
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
    Ok(receiver)
}

async fn end(context: &ClusterContext) -> Result<(), String> {
    context.metrics.close(NAMESPACE);
    let namespaces: Api<Namespace> = Api::all(context.client.clone());
    let deleted = namespaces.delete(NAMESPACE, &at_once()).await;
    deleted.map(|_| ()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_of_one_reconcile_are_grouped() {
        let at = |millis: i64| Timestamp::from_millisecond(millis).expect("a time");
        let queries = [0, 20, 1000, 1140, 2010].map(at);
        assert_eq!(reconciles(&queries), [0, 1000, 2010].map(at));
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
        for unusual in [0, 1200, 15_500, 15_700] {
            assert_eq!(of(unusual), None, "{unusual}");
        }
    }
}
