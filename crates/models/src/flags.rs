//! The configuration of the kube-controller-manager that the HPA controller reads: flags and
//! feature gates.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::time::Span;

/// Flags of the kube-controller-manager. `Default` gives the defaults of the newest release. The
/// JSON form belongs to the engine protocol.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Flags {
    /// `--horizontal-pod-autoscaler-sync-period`: the time between two reconciles of an HPA.
    pub sync_period: Span,
    /// `--horizontal-pod-autoscaler-downscale-stabilization`.
    pub downscale_stabilization: Span,
    /// `--horizontal-pod-autoscaler-tolerance`: the distance of a ratio from 1 that has no effect.
    pub tolerance: f64,
    /// `--horizontal-pod-autoscaler-cpu-initialization-period`.
    pub cpu_initialization_period: Span,
    /// `--horizontal-pod-autoscaler-initial-readiness-delay`.
    pub initial_readiness_delay: Span,
    /// `--horizontal-pod-autoscaler-upscale-delay`: the time after a change of the replicas in
    /// which the target is not scaled up. Only older releases use it; later ones accept and ignore
    /// it.
    pub upscale_delay: Span,
    /// `--horizontal-pod-autoscaler-downscale-delay`: the time after a change of the replicas in
    /// which the target is not scaled down. Only older releases use it.
    pub downscale_delay: Span,
    /// `--concurrent-horizontal-pod-autoscaler-syncs`: the number of workers. An HPA is never
    /// reconciled twice at the same time, so the number has no observable effect on a single HPA.
    #[serde(rename = "concurrent-horizontal-pod-autoscaler-syncs")]
    pub concurrent_syncs: i32,
}

impl Default for Flags {
    fn default() -> Flags {
        Flags {
            sync_period: Span::from_secs(15),
            downscale_stabilization: Span::from_mins(5),
            tolerance: 0.1,
            cpu_initialization_period: Span::from_mins(5),
            initial_readiness_delay: Span::from_secs(30),
            upscale_delay: Span::from_mins(3),
            downscale_delay: Span::from_mins(5),
            concurrent_syncs: 5,
        }
    }
}

/// A flag of the kube-controller-manager that the HPA controller reads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Flag {
    /// [`Flags::sync_period`].
    SyncPeriod,
    /// [`Flags::downscale_stabilization`].
    DownscaleStabilization,
    /// [`Flags::tolerance`].
    Tolerance,
    /// [`Flags::cpu_initialization_period`].
    CpuInitializationPeriod,
    /// [`Flags::initial_readiness_delay`].
    InitialReadinessDelay,
    /// [`Flags::upscale_delay`].
    UpscaleDelay,
    /// [`Flags::downscale_delay`].
    DownscaleDelay,
    /// [`Flags::concurrent_syncs`].
    ConcurrentSyncs,
}

impl Flag {
    /// All flags.
    pub const ALL: [Flag; 8] = [
        Flag::SyncPeriod,
        Flag::DownscaleStabilization,
        Flag::Tolerance,
        Flag::CpuInitializationPeriod,
        Flag::InitialReadinessDelay,
        Flag::UpscaleDelay,
        Flag::DownscaleDelay,
        Flag::ConcurrentSyncs,
    ];

    /// Upstream's name, without the leading dashes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Flag::SyncPeriod => "horizontal-pod-autoscaler-sync-period",
            Flag::DownscaleStabilization => "horizontal-pod-autoscaler-downscale-stabilization",
            Flag::Tolerance => "horizontal-pod-autoscaler-tolerance",
            Flag::CpuInitializationPeriod => "horizontal-pod-autoscaler-cpu-initialization-period",
            Flag::InitialReadinessDelay => "horizontal-pod-autoscaler-initial-readiness-delay",
            Flag::UpscaleDelay => "horizontal-pod-autoscaler-upscale-delay",
            Flag::DownscaleDelay => "horizontal-pod-autoscaler-downscale-delay",
            Flag::ConcurrentSyncs => "concurrent-horizontal-pod-autoscaler-syncs",
        }
    }
}

impl Flags {
    /// The flags that differ from `other`.
    #[must_use]
    pub fn differing(&self, other: &Flags) -> Vec<Flag> {
        let same = |flag: &Flag| self.with(*flag, other) == *self;
        Flag::ALL.into_iter().filter(|flag| !same(flag)).collect()
    }

    /// A copy of these flags with one flag taken from `other`.
    #[must_use]
    pub fn with(mut self, flag: Flag, other: &Flags) -> Flags {
        match flag {
            Flag::SyncPeriod => self.sync_period = other.sync_period,
            Flag::DownscaleStabilization => {
                self.downscale_stabilization = other.downscale_stabilization;
            }
            Flag::Tolerance => self.tolerance = other.tolerance,
            Flag::CpuInitializationPeriod => {
                self.cpu_initialization_period = other.cpu_initialization_period;
            }
            Flag::InitialReadinessDelay => {
                self.initial_readiness_delay = other.initial_readiness_delay;
            }
            Flag::UpscaleDelay => self.upscale_delay = other.upscale_delay,
            Flag::DownscaleDelay => self.downscale_delay = other.downscale_delay,
            Flag::ConcurrentSyncs => self.concurrent_syncs = other.concurrent_syncs,
        }
        self
    }
}

/// A feature gate that the HPA controller reads, or the API server on its behalf.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Gate {
    /// Allows `minReplicas: 0`.
    HpaScaleToZero,
    /// Enables `behavior.scaleUp.tolerance` and `behavior.scaleDown.tolerance`.
    HpaConfigurableTolerance,
    /// Gives HPAs generations; a change of the spec is reconciled immediately.
    HpaGeneration,
    /// Another store for the HPAs' selectors, with the same results.
    HpaOptimizedSelectorStore,
    /// A reconcile is skipped as long as the cache is older than the controller's last write.
    StaleControllerConsistencyHpa,
    /// Requests of the pod as a whole are supported.
    PodLevelResources,
    /// Allows metrics of single containers.
    HpaContainerMetrics,
}

impl Gate {
    /// All gates.
    pub const ALL: [Gate; 7] = [
        Gate::HpaScaleToZero,
        Gate::HpaConfigurableTolerance,
        Gate::HpaGeneration,
        Gate::HpaOptimizedSelectorStore,
        Gate::StaleControllerConsistencyHpa,
        Gate::PodLevelResources,
        Gate::HpaContainerMetrics,
    ];

    /// Upstream's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Gate::HpaScaleToZero => "HPAScaleToZero",
            Gate::HpaConfigurableTolerance => "HPAConfigurableTolerance",
            Gate::HpaGeneration => "HPAGeneration",
            Gate::HpaOptimizedSelectorStore => "HPAOptimizedSelectorStore",
            Gate::StaleControllerConsistencyHpa => "StaleControllerConsistencyHPA",
            Gate::PodLevelResources => "PodLevelResources",
            Gate::HpaContainerMetrics => "HPAContainerMetrics",
        }
    }
}

/// The state of a feature gate in one release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GateRule {
    /// Neither the gate nor its feature exists.
    Absent,
    /// The gate is on or off by default, and can be changed.
    Default(bool),
    /// The gate can no longer be changed.
    Locked(bool),
    /// The gate was removed: its feature is always on.
    Gone,
}

impl GateRule {
    /// Returns true if the gate is on by default.
    #[must_use]
    pub const fn default_value(self) -> bool {
        match self {
            GateRule::Absent => false,
            GateRule::Default(on) | GateRule::Locked(on) => on,
            GateRule::Gone => true,
        }
    }
}

/// The feature gates and whether they are enabled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeatureGates {
    rules: [GateRule; Gate::ALL.len()],
    on: [bool; Gate::ALL.len()],
}

/// The error for a feature gate that can't be set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GateError {
    /// The HPA controller reads no gate with this name.
    Unknown(String),
    /// The gate does not exist in this release.
    Absent(Gate),
    /// The gate can no longer be changed.
    Locked {
        /// The gate.
        gate: Gate,
        /// The value to which the gate is locked.
        value: bool,
    },
}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GateError::Unknown(name) => write!(f, "unrecognized feature gate: {name}"),
            GateError::Absent(gate) => {
                write!(f, "feature gate {} does not exist in this release", gate.name())
            }
            GateError::Locked { gate, value } => write!(
                f,
                "cannot set feature gate {} to {}, feature is locked to {value}",
                gate.name(),
                !value
            ),
        }
    }
}

impl std::error::Error for GateError {}

impl FeatureGates {
    /// The default values of the gates.
    #[must_use]
    pub fn new(rules: [GateRule; Gate::ALL.len()]) -> FeatureGates {
        FeatureGates { rules, on: rules.map(GateRule::default_value) }
    }

    /// Returns true if a gate is on.
    #[must_use]
    pub const fn enabled(&self, gate: Gate) -> bool {
        self.on[gate as usize]
    }

    /// Sets a gate by upstream's name.
    pub fn set(&mut self, name: &str, value: bool) -> Result<(), GateError> {
        let gate = Gate::ALL.into_iter().find(|gate| gate.name() == name);
        let gate = gate.ok_or_else(|| GateError::Unknown(name.to_owned()))?;
        match self.rules[gate as usize] {
            GateRule::Absent | GateRule::Gone => return Err(GateError::Absent(gate)),
            GateRule::Locked(locked) if locked != value => {
                return Err(GateError::Locked { gate, value: locked });
            }
            GateRule::Locked(_) | GateRule::Default(_) => {}
        }
        self.on[gate as usize] = value;
        Ok(())
    }

    /// The gates that can be set in this release, with their current values.
    pub fn iter(&self) -> impl Iterator<Item = (Gate, bool)> + '_ {
        let there = |gate: &Gate| {
            matches!(self.rules[*gate as usize], GateRule::Default(_) | GateRule::Locked(_))
        };
        Gate::ALL.into_iter().filter(there).map(|gate| (gate, self.enabled(gate)))
    }

    /// The gates that differ from the release's defaults.
    pub fn changed(&self) -> impl Iterator<Item = (Gate, bool)> + '_ {
        self.iter().filter(|(gate, on)| self.rules[*gate as usize].default_value() != *on)
    }
}

/// Feature gates in the form of the flag: `A=true,B=false`.
#[must_use]
pub fn gate_list(gates: &BTreeMap<String, bool>) -> String {
    gates.iter().map(|(gate, on)| format!("{gate}={on}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_switched_by_name() {
        let mut gates = FeatureGates::default();
        assert!(Gate::ALL.into_iter().all(|gate| gates.enabled(gate)));
        assert_eq!(gates.set("HPAScaleToZero", false), Ok(()));
        assert!(!gates.enabled(Gate::HpaScaleToZero));
        let changed: Vec<_> = gates.changed().collect();
        assert_eq!(changed, [(Gate::HpaScaleToZero, false)]);
    }

    #[test]
    fn unknown_and_locked_gates_are_refused() {
        let mut gates = FeatureGates::default();
        let unknown = gates.set("HPAScaleToOne", true).unwrap_err();
        assert_eq!(unknown.to_string(), "unrecognized feature gate: HPAScaleToOne");
        assert_eq!(gates.set("HPAConfigurableTolerance", true), Ok(()));
        let locked = gates.set("HPAConfigurableTolerance", false).unwrap_err();
        assert_eq!(
            locked.to_string(),
            "cannot set feature gate HPAConfigurableTolerance to false, feature is locked to true"
        );
    }
}
