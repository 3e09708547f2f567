//! The figures of a prediction.

use serde::Serialize;

use super::comparison::Reference;
use super::measurement;
use super::missing::MissingByCause;
use super::price::Price;
use kube_autoscaler_models::api::PodSpec;
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::FreeRun;

/// The figures of a prediction, of the target of its first autoscaler.
///
/// Replicas are needed for the load and for the targets of the reference: so many that the load
/// per pod is at its target. Only ready pods serve the load.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// The integral of the replicas.
    pub pod_hours: f64,
    /// The price of the pod-hours, or of the requests that a VPA sets, in the unit of the given
    /// prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The largest number of replicas.
    pub peak_replicas: i32,
    /// How the replicas follow the load. None: there is no HPA.
    #[serde(flatten)]
    pub scaling: Option<Scaling>,
    /// How the requests follow the usage. None: there is no VPA.
    #[serde(flatten)]
    pub requests: Option<RequestFigures>,
}

/// How the replicas that HPAs set follow the load.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scaling {
    /// The integral of the needed replicas without a ready pod.
    pub missing_pod_hours: f64,
    /// Its parts.
    pub missing_pod_hours_by_cause: MissingByCause,
    /// The time during which the load per ready pod is above a target of the reference, in seconds.
    pub above_target_seconds: f64,
    /// The longest uninterrupted time above a target of the reference, in seconds.
    pub longest_above_target_seconds: f64,
    /// Changes of the replicas by the controller.
    pub changes: usize,
    /// Changes of the direction: up after down, or down after up.
    pub direction_changes: usize,
    /// The most replicas above those that are needed.
    pub excess_replicas: i32,
    /// The most replicas that are needed.
    pub needed_peak_replicas: i32,
    /// The total time from each reconcile that failed, or in which a metric failed, to the next
    /// one, in seconds.
    pub failed_seconds: f64,
}

/// How the requests that a VPA sets follow the usage of the containers.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestFigures {
    /// In core-hours.
    pub cpu: ResourceFigures,
    /// In GiB-hours.
    pub memory: ResourceFigures,
    /// The time of pods during which a container uses more of a resource than it requests.
    pub short_pod_hours: f64,
    /// How often the memory usage of a container rises above its limit.
    pub oom_kills: usize,
    /// The pods that the updater evicts.
    pub evictions: usize,
    /// The pods that the updater resizes in place.
    pub resizes: usize,
}

/// Requests of all pods for a resource, added up over time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceFigures {
    /// As the scheduler counts them.
    pub requested: f64,
    /// The part of the requests that containers do not use.
    pub unused: f64,
    /// The usage of containers above their requests.
    pub short: f64,
}

impl Scaling {
    fn join(self, other: Scaling) -> Scaling {
        let longest = self.longest_above_target_seconds;
        let missing = self.missing_pod_hours_by_cause.plus(other.missing_pod_hours_by_cause);
        Scaling {
            missing_pod_hours: self.missing_pod_hours + other.missing_pod_hours,
            missing_pod_hours_by_cause: missing,
            above_target_seconds: self.above_target_seconds + other.above_target_seconds,
            longest_above_target_seconds: longest.max(other.longest_above_target_seconds),
            changes: self.changes + other.changes,
            direction_changes: self.direction_changes + other.direction_changes,
            excess_replicas: self.excess_replicas.max(other.excess_replicas),
            needed_peak_replicas: self.needed_peak_replicas.max(other.needed_peak_replicas),
            failed_seconds: self.failed_seconds + other.failed_seconds,
        }
    }
}

impl RequestFigures {
    fn join(self, other: RequestFigures) -> RequestFigures {
        RequestFigures {
            cpu: self.cpu.join(other.cpu),
            memory: self.memory.join(other.memory),
            short_pod_hours: self.short_pod_hours + other.short_pod_hours,
            oom_kills: self.oom_kills + other.oom_kills,
            evictions: self.evictions + other.evictions,
            resizes: self.resizes + other.resizes,
        }
    }
}

impl ResourceFigures {
    fn join(self, other: ResourceFigures) -> ResourceFigures {
        ResourceFigures {
            requested: self.requested + other.requested,
            unused: self.unused + other.unused,
            short: self.short + other.short,
        }
    }
}

impl Figures {
    /// Calculates the figures of a run.
    #[must_use]
    pub fn new(scenario: &Scenario, run: &FreeRun, reference: &Reference) -> Figures {
        measurement::measure(scenario, run, reference, &[]).0
    }

    /// Calculates the figures of a run, and of its parts, which begin at these times. A part has
    /// only what is in it of a time above the target, and no change from the direction of the part
    /// before it.
    #[must_use]
    pub fn of_parts(
        scenario: &Scenario,
        run: &FreeRun,
        reference: &Reference,
        boundaries: &[Time],
    ) -> (Figures, Vec<Figures>) {
        measurement::measure(scenario, run, reference, boundaries)
    }

    /// The figures of two parts of a run together. A time above the target that continues in the
    /// next part counts as two, and a change of direction between them does not count.
    #[must_use]
    pub fn join(self, other: Figures) -> Figures {
        Figures {
            pod_hours: self.pod_hours + other.pod_hours,
            cost: self.cost.zip(other.cost).map(|(one, other)| one + other),
            peak_replicas: self.peak_replicas.max(other.peak_replicas),
            scaling: self.scaling.zip(other.scaling).map(|(one, other)| one.join(other)),
            requests: self.requests.zip(other.requests).map(|(one, other)| one.join(other)),
        }
    }

    /// How the replicas follow the load. Zeros: there is no HPA.
    #[must_use]
    pub fn scaling(&self) -> Scaling {
        self.scaling.unwrap_or_default()
    }

    /// Sets the cost: the price of the requests that a VPA sets, or that of pods with this spec.
    #[must_use]
    pub fn at_price(self, price: &Price, spec: &PodSpec) -> Figures {
        let cost = match &self.requests {
            Some(it) => price.of_hours(self.pod_hours, it.cpu.requested, it.memory.requested),
            None => self.pod_hours * price.of(spec),
        };
        Figures { cost: Some(cost), ..self }
    }
}
