//! Usage in another unit: millicores in place of cores, or MiB in place of bytes.
//!
//! The check of recordings compares the usage with the request of a pod or, without one, with the
//! amount that an HPA aims at; for a VPA, with that of a typical pod. It leaves out signals that
//! set `unit`. Drafts from manifests check constant loads in the same way.

use super::cursor::{At, Problems};
use super::hpa::Hpas;
use crate::resolved::{Container, Metrics, Recorded, ResourceUsage, Signal, UsageSource, Workload};
use crate::vpa::VpaWorkload;
use kube_autoscaler_models::api::PodSpec;
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::time::Time;

/// No pod uses more than this many times its request of cpu: 60 in place of 60% is more.
pub const MOST_CPU: i64 = 50;
/// Even at the maximum number of pods, no total of cpu exceeds this multiple of their request.
const MOST_TOTAL: i64 = 10;
/// Even at the maximum number of pods, the lowest total of cpu does not exceed this multiple of
/// their request: percentages are never small.
const MOST_LEAST_TOTAL: i64 = 2;
/// The largest usage of memory is at least this part of the request: a count of MiB is less.
const LEAST_MEMORY: i64 = 10_000;

/// An amount that usage is compared with, in milli-units, and a text: `a pod requests`.
pub type Usual = (i64, &'static str);

/// The pods that share a total.
struct Shared<'w> {
    spec: &'w PodSpec,
    replicas: i64,
    /// The upper limit.
    most: i64,
    /// The reference value of a resource's usage if the pods do not request it.
    without_request: &'w dyn Fn(&str) -> Option<Usual>,
}

/// A recorded signal, and the pods that use it.
struct Usage<'r> {
    recorded: &'r Recorded,
    resource: &'r str,
    /// The pods that share it. None: it is the usage of each pod.
    shared: Option<i64>,
    /// The request of one pod or of the container, or the target of the HPA, in milli-units.
    usual: i64,
    /// `a pod requests`, or `the target of the HPA is`.
    whose: String,
}

/// A problem of a unit.
struct Finding {
    usage: String,
    hint: String,
}

/// Checks the recorded usage of resources. Returns notes on usage that is suspicious but possible.
pub(super) fn check(
    metrics: &Metrics,
    workload: Option<&Workload>,
    hpas: &Hpas,
    at: At<'_>,
    problems: &mut Problems,
) -> Vec<String> {
    let (Some(workload), Some(most_replicas)) = (workload, hpas.max_replicas()) else {
        return Vec::new();
    };
    let target = |resource: &str| Some((hpas.average_value(resource)?, "the target of the HPA is"));
    let shared = Shared {
        spec: &workload.spec,
        replicas: i64::from(workload.replicas.max(1)),
        most: i64::from(most_replicas.max(workload.replicas).max(1)),
        without_request: &target,
    };
    shared.check_all(metrics, at.key("metrics"), problems)
}

/// Checks the recorded usage of the pods of a VPA, like [`check`].
pub(super) fn check_vpa(
    metrics: &Metrics,
    workload: &VpaWorkload,
    at: At<'_>,
    problems: &mut Problems,
) -> Vec<String> {
    let containers = workload.containers.iter().map(Container::to_api).collect();
    let replicas = i64::from(workload.replicas.max(1));
    let shared = Shared {
        spec: &PodSpec { containers, ..PodSpec::default() },
        replicas,
        most: replicas,
        without_request: &usual_pod,
    };
    shared.check_all(metrics, at, problems)
}

/// The usage of a typical pod, for pods without requests.
pub fn usual_pod(resource: &str) -> Option<Usual> {
    let usual = if resource == "cpu" { 2_000 } else { 10_000 << 20 };
    Some((usual, "a typical pod uses about"))
}

/// Returns true if the usage of a pod is implausible next to a usual amount, both in milli-units.
/// A pod uses at most `most_cpu` times the usual cpu.
pub fn is_implausible(resource: &str, peak: i64, usual: i64, most_cpu: i64) -> bool {
    match resource {
        "cpu" => peak / most_cpu > usual,
        "memory" => peak > 0 && peak < usual / LEAST_MEMORY,
        _ => false,
    }
}

/// Gives the usage that a recording is.
type UsageOf<'f, 'u> = &'f dyn Fn(&'u Recorded) -> Option<Usage<'u>>;

impl Shared<'_> {
    fn check_all(&self, metrics: &Metrics, at: At<'_>, problems: &mut Problems) -> Vec<String> {
        let mut notes = Vec::new();
        for (index, usage) in metrics.resources.iter().enumerate() {
            self.check(usage, at.key("resource").index(index), problems);
            notes.extend(self.note(usage));
        }
        notes
    }

    /// Checks all signals of a resource.
    fn check<'u>(&self, usage: &'u ResourceUsage, at: At<'_>, problems: &mut Problems) {
        let mut check = |signal: &'u Signal, usage_of: UsageOf<'_, 'u>, at: At<'_>| {
            for found in signal.unscaled_recordings().into_iter().filter_map(usage_of) {
                let Some(Finding { usage: shown, hint }) = found.finding() else { continue };
                let Usage { recorded, ref whose, usual, .. } = found;
                let (path, usual) = (recorded.source.path(), found.amount(usual));
                let what =
                    format!("the unit of {path} seems to be wrong: {shown}, but {whose} {usual}");
                problems.hint(at, what, hint);
            }
        };
        let of_pod = |recorded: &'u Recorded| self.pod_usage(usage, recorded, None);
        match &usage.source {
            UsageSource::PerPod(signal) => check(signal, &of_pod, at.key("perPod")),
            UsageSource::Load { total, .. } => {
                let shared = |recorded| self.pod_usage(usage, recorded, Some(self.most));
                check(total, &shared, at.key("load"));
            }
            UsageSource::PerContainer(containers) => {
                for (name, signal) in &containers.0 {
                    let of_container = |recorded| self.container_usage(usage, recorded, name);
                    check(signal, &of_container, at.key("containers").key(name));
                }
            }
        }
        let written = usage.exceptions.iter().filter(|exception| !exception.recorded);
        for (index, exception) in written.enumerate() {
            check(&exception.value, &of_pod, at.key("pods").index(index).key("value"));
        }
    }

    /// A note on a total that is too large for the pods at the start.
    fn note(&self, usage: &ResourceUsage) -> Option<String> {
        let UsageSource::Load { total, .. } = &usage.source else { return None };
        let replicas = self.replicas;
        let request = request(self.spec, &usage.name, None)?;
        let usage = self.pod_usage(usage, total.recorded()?, Some(replicas))?;
        let first = usage.recorded.at(Time::ZERO)? / replicas;
        (usage.resource == "cpu" && first / MOST_TOTAL > request).then(|| {
            let path = usage.recorded.source.path();
            let (first, request) = (rounded(first), quantity(request));
            let pods = if replicas == 1 { "the pod" } else { "each pod" };
            let unit = usage.recorded.syntax.pick("`unit`", "the unit (`unit=1m`)");
            format!(
                "{path}: at the start, {pods} has a load of {first} cores and requests {request}: \
                 check {unit}, and the replicas at the start"
            )
        })
    }

    fn pod_usage<'r>(
        &self,
        usage: &'r ResourceUsage,
        recorded: &'r Recorded,
        shared: Option<i64>,
    ) -> Option<Usage<'r>> {
        if recorded.unit.is_some() {
            return None;
        }
        let (usual, whose) = match request(self.spec, &usage.name, None) {
            Some(request) => (request, "a pod requests"),
            None => (self.without_request)(&usage.name)?,
        };
        let whose = whose.to_owned();
        Some(Usage { recorded, resource: &usage.name, shared, usual, whose })
    }

    fn container_usage<'r>(
        &self,
        usage: &'r ResourceUsage,
        recorded: &'r Recorded,
        name: &str,
    ) -> Option<Usage<'r>> {
        let (usual, whose) = match request(self.spec, &usage.name, Some(name)) {
            Some(request) => (request, format!("the container `{name}` requests")),
            None => {
                let (usual, whose) = (self.without_request)(&usage.name)
                    .filter(|_| request(self.spec, &usage.name, None).is_none())?;
                (usual, whose.to_owned())
            }
        };
        Some(Usage { usual, whose, ..self.pod_usage(usage, recorded, None)? })
    }
}

impl Usage<'_> {
    /// An amount of the resource for a message: `500m`, `128Mi`.
    fn amount(&self, milli: i64) -> Quantity {
        let format = if self.resource == "memory" { Format::BinarySI } else { Format::DecimalSI };
        Quantity::from_milli(milli, format)
    }

    fn finding(&self) -> Option<Finding> {
        let pods = self.shared.unwrap_or(1);
        let values = || self.recorded.samples.iter().filter_map(|sample| sample.milli);
        let peak = values().max().unwrap_or(0) / pods;
        let least = values().filter(|milli| *milli > 0).min().unwrap_or(0) / pods;
        let each = if pods > 1 { format!(" for each of {pods} pods") } else { String::new() };
        let most = if self.shared.is_some() { MOST_TOTAL } else { MOST_CPU };
        let usage = match self.resource {
            "cpu" if is_implausible("cpu", peak, self.usual, most) => {
                format!("up to {} cores{each}", rounded(peak))
            }
            "cpu" if self.shared.is_some() && least / MOST_LEAST_TOTAL > self.usual => {
                format!("at least {} cores{each}", rounded(least))
            }
            "memory" if is_implausible("memory", peak, self.usual, most) => {
                format!("up to {} bytes{each}", quantity(peak))
            }
            _ => return None,
        };
        Some(Finding { usage, hint: self.hint_on_units() })
    }

    fn hint_on_units(&self) -> String {
        let units = match (self.resource, self.shared) {
            ("memory", _) => vec![("1Mi", "for MiB"), ("1", "if the values really are bytes")],
            (_, shared) => {
                let mut units = vec![
                    ("1m", "for millicores"),
                    ("1%", "for percent of the request"),
                    ("10m", "for percent of a core"),
                    ("1", "if the values really are cores"),
                ];
                // A total has no request.
                units.retain(|(unit, _)| shared.is_none() || *unit != "1%");
                units
            }
        };
        self.recorded.syntax.set_one_of("unit", &units)
    }
}

fn quantity(milli: i64) -> Quantity {
    Quantity::from_milli(milli, Format::DecimalSI)
}

/// An amount of cpu for a message: from 10 cores on, in whole cores.
pub fn rounded(milli: i64) -> Quantity {
    quantity(if milli < 10_000 { milli } else { (milli + 500) / 1000 * 1000 })
}

/// The request of all containers of a pod, or of one, in milli-units.
fn request(spec: &PodSpec, resource: &str, container: Option<&str>) -> Option<i64> {
    let pod_requests = spec.requests.as_ref().filter(|_| container.is_none());
    if let Some(request) = pod_requests.and_then(|requests| requests.get(resource)) {
        return Some(request.milli()).filter(|milli| *milli > 0);
    }
    let running = spec.running_containers();
    let named = running.filter(|it| container.is_none_or(|name| *it.name == *name));
    let amounts = named.filter_map(|it| it.requests.get(resource)).map(Quantity::milli);
    let sum = amounts.fold(0, i64::saturating_add);
    (sum > 0).then_some(sum)
}
