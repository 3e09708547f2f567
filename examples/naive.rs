//! A naive HPA controller: every sync period, it sets the replicas to
//! ceil(current × utilization / target), within the limits.
//!
//! It ignores tolerance, stabilization windows, policies, the readiness of pods, and all metrics
//! but the first. `docs/engines/custom.md` shows how kube-lockstep finds these faults:
//!
//! ```sh
//! cargo build --features clusters --example naive
//! kube-lockstep run --engine embedded \
//!     --controller 'target/debug/examples/naive --sync-period {sync-period}' tolerance
//! ```
//!
//! `$KUBECONFIG` names its kubeconfig.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::autoscaling::v2::{HorizontalPodAutoscaler as Hpa, MetricSpec};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let period = period(std::env::args().skip(1))?;
    // The only provider that is compiled in.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::try_from(Config::infer().await?)?;
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        if let Err(error) = sync_all(&client).await {
            log(&format!("HPAs can't be listed: {error}"));
        }
    }
}

/// The value of `--sync-period`, 15s by default.
fn period(mut args: impl Iterator<Item = String>) -> Result<Duration, Error> {
    let mut period = Duration::from_secs(15);
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--sync-period", Some(text)) => {
                period = Duration::try_from(text.parse::<jiff::SignedDuration>()?)?;
            }
            _ => return Err(format!("usage: naive [--sync-period DURATION], not {arg}").into()),
        }
    }
    Ok(period)
}

fn log(line: &str) {
    use std::io::Write as _;
    // A closed standard error does not stop the controller.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Reconciles all HPAs concurrently.
async fn sync_all(client: &Client) -> Result<(), Error> {
    let hpas = Api::<Hpa>::all(client.clone()).list(&ListParams::default()).await?;
    let sync = async |hpa: Hpa| {
        if let Err(error) = sync(client, &hpa).await {
            let namespace = hpa.namespace().unwrap_or_default();
            log(&format!("{namespace}/{}: {error}", hpa.name_any()));
        }
    };
    join_all(hpas.items.into_iter().map(sync)).await;
    Ok(())
}

/// Reconciles one HPA.
async fn sync(client: &Client, hpa: &Hpa) -> Result<(), Error> {
    let namespace = hpa.namespace().unwrap_or_default();
    let target = &hpa.spec.scale_target_ref;
    let version = target.api_version.as_deref().unwrap_or("v1");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &target.kind));
    let targets: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &resource);
    let scale: Scale = targets.get_scale(&target.name).await?;
    let current = scale.spec.and_then(|spec| spec.replicas).unwrap_or_default();
    let selector = scale.status.and_then(|status| status.selector).unwrap_or_default();
    let Some(metric) = hpa.spec.metrics.iter().flatten().next() else { return Ok(()) };
    let Some(ratio) = ratio(client, &namespace, &selector, metric).await? else { return Ok(()) };
    let (min, max) = (hpa.spec.min_replicas.unwrap_or(1), hpa.spec.max_replicas);
    // Replicas are far below the limits of a float.
    let desired = ((f64::from(current) * ratio).ceil() as i32).clamp(min, max);
    let patch = PatchParams::default();
    if desired != current {
        let scale = json!({ "spec": { "replicas": desired } });
        targets.patch_scale(&target.name, &patch, &Patch::Merge(scale)).await?;
    }
    let status = json!({
        "status": { "currentReplicas": current, "desiredReplicas": desired },
    });
    let hpas: Api<Hpa> = Api::namespaced(client.clone(), &namespace);
    hpas.patch_status(&hpa.name_any(), &patch, &Patch::Merge(status)).await?;
    Ok(())
}

/// The ratio of a resource metric to its target; `None` for other metrics.
async fn ratio(
    client: &Client,
    namespace: &str,
    selector: &str,
    metric: &MetricSpec,
) -> Result<Option<f64>, Error> {
    let Some(metric) = &metric.resource else { return Ok(None) };
    let usage = usage(client, namespace, selector, &metric.name).await?;
    if usage.is_empty() {
        return Err("there are no metrics".into());
    }
    let sum: f64 = usage.values().sum();
    if let Some(target) = &metric.target.average_value {
        return Ok(Some(sum / usage.len() as f64 / number(target)?));
    }
    let requests = requests(client, namespace, selector, &metric.name).await?;
    let requested: f64 = usage.keys().filter_map(|pod| requests.get(pod)).sum();
    if requested == 0.0 {
        return Err(format!("no request for {}", metric.name).into());
    }
    let target = f64::from(metric.target.average_utilization.unwrap_or(80));
    Ok(Some(100.0 * sum / requested / target))
}

/// The usage of each pod.
async fn usage(
    client: &Client,
    namespace: &str,
    selector: &str,
    name: &str,
) -> Result<BTreeMap<String, f64>, Error> {
    let kind = GroupVersionKind::gvk("metrics.k8s.io", "v1beta1", "PodMetrics");
    let resource = ApiResource::from_gvk_with_plural(&kind, "pods");
    let metrics: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let pods = metrics.list(&ListParams::default().labels(selector)).await?;
    let mut usage = BTreeMap::new();
    for pod in pods {
        let containers = pod.data["containers"].as_array().cloned().unwrap_or_default();
        let mut sum = 0.0;
        for container in &containers {
            if let Value::String(text) = &container["usage"][name] {
                sum += number(&Quantity(text.clone()))?;
            }
        }
        usage.insert(pod.name_any(), sum);
    }
    Ok(usage)
}

/// The request of each pod.
async fn requests(
    client: &Client,
    namespace: &str,
    selector: &str,
    name: &str,
) -> Result<BTreeMap<String, f64>, Error> {
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let pods = pods.list(&ListParams::default().labels(selector)).await?;
    let mut requests = BTreeMap::new();
    for pod in pods {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let mut sum = 0.0;
        for container in containers {
            let requested = container.resources.as_ref().and_then(|it| it.requests.as_ref());
            sum += requested.and_then(|requested| requested.get(name)).map_or(Ok(0.0), number)?;
        }
        requests.insert(pod.name_any(), sum);
    }
    Ok(requests)
}

/// A quantity in thousandths: `250m`, `2`, `64Mi`.
fn number(quantity: &Quantity) -> Result<f64, Error> {
    const UNITS: [(&str, f64); 10] = [
        ("Ki", 1024.0 * 1e3),
        ("Mi", 1_048_576.0 * 1e3),
        ("Gi", 1_073_741_824.0 * 1e3),
        ("Ti", 1_099_511_627_776.0 * 1e3),
        ("n", 1e-6),
        ("u", 1e-3),
        ("m", 1.0),
        ("k", 1e6),
        ("M", 1e9),
        ("G", 1e12),
    ];
    let text = quantity.0.as_str();
    let unit =
        UNITS.into_iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (number, factor) = unit.unwrap_or((text, 1e3));
    Ok(number.parse::<f64>()? * factor)
}
