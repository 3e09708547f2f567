//! The loads of a scenario as curves, to be shown and drawn.

use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::{Metrics, Modified, Modifier, Signal, UsageSource};
use kube_lockstep_sim::world::{signal_at, signal_changes};
use serde::Serialize;
use serde_json::{Value, json};

/// The number of intervals of a curve.
const INTERVALS: i64 = 240;

/// The value of a metric over time.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Curve {
    /// The metric, and what its values are: `cpu, shared by all pods`.
    title: String,
    /// The place of the signal in the scenario.
    path: Vec<Value>,
    /// Seconds and values; no value where a recorded signal has a gap. Values are in cores, bytes,
    /// or the unit of the metric.
    points: Vec<(f64, Option<f64>)>,
    /// The points of the signal under the noise, if it has noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_noise: Option<Vec<(f64, Option<f64>)>>,
}

/// The curves of all metrics. Values of single pods are left out.
pub(crate) fn curves(metrics: &Metrics, until: Time) -> Vec<Curve> {
    let mut curves = Vec::new();
    let mut add = |title: String, path: Vec<Value>, signal: &Signal| {
        let without_noise = match signal {
            Signal::Modified(Modified { by: Modifier::Noise(_), of }) => Some(points(of, until)),
            _ => None,
        };
        curves.push(Curve { title, path, points: points(signal, until), without_noise });
    };
    let resources = metrics.resources.iter().map(|it| ("resource", &*it.name, &it.source));
    let pods = metrics.pods.iter().map(|it| ("pods", &*it.name, &it.source));
    let mut list = ("", 0);
    for (kind, name, source) in resources.chain(pods) {
        list = if list.0 == kind { (kind, list.1 + 1) } else { (kind, 0) };
        let path = |field: &str| vec![json!("metrics"), json!(kind), json!(list.1), json!(field)];
        match source {
            UsageSource::Load { total, .. } => {
                add(format!("{name}, shared by the ready pods"), path("load"), total);
            }
            UsageSource::PerPod(signal) => {
                add(format!("{name} of each pod"), path("perPod"), signal)
            }
            UsageSource::PerContainer(containers) => {
                for (container, signal) in &containers.0 {
                    let mut path = path("containers");
                    path.push(json!(container));
                    add(format!("{name} of container {container} of each pod"), path, signal);
                }
            }
        }
    }
    let objects = metrics.objects.iter().map(|it| ("object", &it.name, &it.value, &it.series));
    let externals =
        metrics.externals.iter().map(|it| ("external", &it.name, &it.value, &it.series));
    for (kind, name, value, series) in objects.chain(externals) {
        list = if list.0 == kind { (kind, list.1 + 1) } else { (kind, 0) };
        let path = vec![json!("metrics"), json!(kind), json!(list.1)];
        let below = |more: &[Value]| [path.as_slice(), more].concat();
        if let Some(signal) = value {
            add(name.to_string(), below(&[json!("value")]), signal);
        }
        for (index, one) in series.iter().enumerate() {
            let labels = one.labels.iter().map(|(name, value)| format!("{name}={value}"));
            let title = format!("{name}{{{}}}", labels.collect::<Vec<_>>().join(", "));
            add(title, below(&[json!("series"), json!(index), json!("value")]), &one.value);
        }
    }
    curves
}

/// A signal at regular times, and shortly before and at each of its steps.
fn points(signal: &Signal, until: Time) -> Vec<(f64, Option<f64>)> {
    let end = until.since_start().0.max(1);
    let mut times: Vec<i64> = (0..=INTERVALS).map(|index| end / INTERVALS * index).collect();
    let mut add_steps = |steps: &mut dyn Iterator<Item = i64>| {
        let inside = steps.filter(|at| *at <= end);
        times.extend(inside.flat_map(|at| [(at - 1).max(0), at]));
    };
    let mut without_noise = signal;
    if let Signal::Modified(Modified { by: Modifier::Noise(noise), of }) = signal {
        without_noise = of;
        let every = noise.every.0.max(1);
        if end / every <= INTERVALS {
            add_steps(&mut (0..=end / every).map(|index| index * every));
        }
    }
    match without_noise {
        Signal::Steps(steps) | Signal::Points(steps) => {
            add_steps(&mut steps.iter().map(|step| step.at.since_start().0));
        }
        // A sum of steps, or a shifted one.
        Signal::Sum(_) | Signal::Modified(_) | Signal::Backlog(_) => {
            let changes = signal_changes(without_noise, until);
            if changes.len() as i64 <= INTERVALS {
                add_steps(&mut changes.iter().map(|at| at.since_start().0.max(0)));
            }
        }
        _ => {}
    }
    times.sort_unstable();
    times.dedup();
    let point = |nanos: i64| {
        let at = Time::ZERO + Span(nanos);
        let value = signal_at(signal, at).map(|milli| milli as f64 / 1000.0);
        (Span(nanos).as_secs_f64(), value)
    };
    times.into_iter().map(point).collect()
}
