//! Recorded usage in another unit: millicores in place of cores, or MiB in place of bytes.
//!
//! The check compares the usage with the request of a pod. It leaves out signals that set `unit`.

use super::cursor::{At, Problems};
use crate::model::api::PodSpec;
use crate::model::quantity::{Format, Quantity};
use crate::scenario::resolved::{Metrics, Recorded, UsageSource, Workload};

/// No pod uses more than this many times its request of cpu: 60 in place of 60% is more.
const MOST_CPU: i64 = 50;
/// The largest usage of memory is at least this part of the request: a count of MiB is less.
const LEAST_MEMORY: i64 = 10_000;

/// Checks the recorded usage of resources. `most_replicas` is the upper limit of the HPAs.
pub(super) fn check(
    metrics: &Metrics,
    workload: Option<&Workload>,
    most_replicas: Option<i32>,
    at: At<'_>,
    problems: &mut Problems,
) {
    let (Some(workload), Some(most_replicas)) = (workload, most_replicas) else { return };
    let pods = i64::from(most_replicas.max(workload.replicas).max(1));
    for (index, usage) in metrics.resources.iter().enumerate() {
        let (signal, field, pods) = match &usage.source {
            UsageSource::PerPod(signal) => (signal, "perPod", 1),
            UsageSource::Load { total, .. } => (total, "load", pods),
            UsageSource::PerContainer(_) => continue,
        };
        let Some(recorded) = signal.recorded().filter(|recorded| recorded.unit.is_none()) else {
            continue;
        };
        let Some(request) = request(&workload.spec, &usage.name) else { continue };
        let peak = peak(recorded) / pods;
        let shown = |milli: i64| Quantity::from_milli(milli, Format::DecimalSI);
        let each = if pods > 1 { format!(" for each of {pods} pods") } else { String::new() };
        let path = recorded.source.path();
        let (what, hint) = match &*usage.name {
            "cpu" if peak / MOST_CPU > request => (
                format!("up to {} cores{each}", shown(peak)),
                "set `unit` to 1m for millicores, or to 1 if the values really are cores",
            ),
            "memory" if peak > 0 && peak < request / LEAST_MEMORY => (
                format!("at most {} bytes{each}", shown(peak)),
                "set `unit` to 1Mi for MiB, or to 1 if the values really are bytes",
            ),
            _ => continue,
        };
        let what =
            format!("{path} may have another unit: {what}, but a pod requests {}", shown(request));
        problems.hint(at.key("resource").index(index).key(field), what, hint);
    }
}

/// The largest value of a recording, in milli-units.
fn peak(recorded: &Recorded) -> i64 {
    recorded.samples.iter().filter_map(|sample| sample.milli).max().unwrap_or(0)
}

/// The request of all containers of a pod, in milli-units.
fn request(spec: &PodSpec, resource: &str) -> Option<i64> {
    let requests = spec.running_containers().map(|it| it.requests.get(resource));
    let sum: i64 = requests.flatten().map(Quantity::milli).sum();
    (sum > 0).then_some(sum)
}
