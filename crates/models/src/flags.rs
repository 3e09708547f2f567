//! The configuration of the kube-controller-manager that the HPA controller reads: flags and
//! feature gates.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::time::Span;

/// Defines the flags of the kube-controller-manager that the HPA controller reads: for each flag
/// its description for users, its field with type and default, and upstream's name.
macro_rules! flags {
    ($(
        $(#[doc = $description:literal])+
        $flag:ident $(#[$serde:meta])? $field:ident: $type:ty = $default:expr, $name:literal;
    )+) => {
        /// Flags of the kube-controller-manager. `Default` gives the defaults of the newest
        /// release. The JSON form belongs to the engine protocol.
        #[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub struct Flags {
            $(
                #[doc = concat!("`--", $name, "`.")]
                $(#[doc = $description])+
                $(#[$serde])?
                pub $field: $type,
            )+
        }

        impl Default for Flags {
            fn default() -> Flags {
                Flags { $($field: $default,)+ }
            }
        }

        impl Flags {
            /// The value of a flag.
            #[must_use]
            pub fn get(&self, flag: Flag) -> FlagValue {
                match flag {
                    $(Flag::$flag => self.$field.into(),)+
                }
            }

            /// Sets a flag. Values of another type than the flag's are ignored.
            pub fn set(&mut self, flag: Flag, value: FlagValue) {
                match flag {
                    $(Flag::$flag => value.store(&mut self.$field),)+
                }
            }
        }

        /// A flag of the kube-controller-manager that the HPA controller reads.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Flag {
            $(
                #[doc = concat!("[`Flags::", stringify!($field), "`].")]
                $flag,
            )+
        }

        impl Flag {
            /// All flags.
            pub const ALL: [Flag; Flag::NAMES.len()] = [$(Flag::$flag),+];
            /// Upstream's names of all flags, without the leading dashes.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The meaning of the flag and its default, in one line.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self {
                    $(Flag::$flag => concat!($($description),+).trim_start(),)+
                }
            }
        }
    };
}

flags! {
    /// The time between two reconciles of an HPA. Default 15s; 30s up to Kubernetes 1.11.
    SyncPeriod
    sync_period: Span = Span::from_secs(15), "horizontal-pod-autoscaler-sync-period";
    /// How long a higher recommendation prevents a scale-down. Default 5m.
    DownscaleStabilization
    downscale_stabilization: Span = Span::from_mins(5),
    "horizontal-pod-autoscaler-downscale-stabilization";
    /// How far the ratio of usage to target may be from 1 without an effect. Default 0.1.
    Tolerance
    tolerance: f64 = 0.1, "horizontal-pod-autoscaler-tolerance";
    /// How long after its start a pod's cpu samples may be skipped. Default 5m.
    CpuInitializationPeriod
    cpu_initialization_period: Span = Span::from_mins(5),
    "horizontal-pod-autoscaler-cpu-initialization-period";
    /// How long after its start a change of readiness counts as the pod's first. Default 30s.
    InitialReadinessDelay
    initial_readiness_delay: Span = Span::from_secs(30),
    "horizontal-pod-autoscaler-initial-readiness-delay";
    /// How long after a change of the replicas the target is not scaled up. Without effect since
    /// Kubernetes 1.12, removed in 1.31. Default 3m.
    UpscaleDelay
    upscale_delay: Span = Span::from_mins(3), "horizontal-pod-autoscaler-upscale-delay";
    /// How long after a change of the replicas the target is not scaled down. Without effect since
    /// Kubernetes 1.12, removed in 1.31. Default 5m.
    DownscaleDelay
    downscale_delay: Span = Span::from_mins(5), "horizontal-pod-autoscaler-downscale-delay";
    /// The number of HPAs that are reconciled concurrently. Default 5.
    ConcurrentSyncs
    #[serde(rename = "concurrent-horizontal-pod-autoscaler-syncs")]
    concurrent_syncs: i32 = 5, "concurrent-horizontal-pod-autoscaler-syncs";
}

/// The value of a flag. `Display` writes it as the command line accepts it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FlagValue {
    /// A duration, in Go's format on the command line.
    Duration(Span),
    /// A number that may have a fraction, such as a tolerance of 0.1.
    Number(f64),
    /// A whole number.
    Count(i32),
}

impl fmt::Display for FlagValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlagValue::Duration(span) => span.fmt(f),
            FlagValue::Number(number) => number.fmt(f),
            FlagValue::Count(count) => count.fmt(f),
        }
    }
}

macro_rules! flag_types {
    ($($variant:ident: $type:ty;)+) => {
        $(impl From<$type> for FlagValue {
            fn from(value: $type) -> FlagValue {
                FlagValue::$variant(value)
            }
        }

        impl StoreFlagValue<$type> for FlagValue {
            fn store(self, field: &mut $type) {
                if let FlagValue::$variant(value) = self {
                    *field = value;
                }
            }
        })+
    };
}

/// Writes a value to the field of a flag.
trait StoreFlagValue<T> {
    fn store(self, field: &mut T);
}

flag_types! {
    Duration: Span;
    Number: f64;
    Count: i32;
}

impl Flag {
    /// Upstream's name, without the leading dashes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Flag::NAMES[self as usize]
    }

    /// The flag with upstream's name, without the leading dashes.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Flag> {
        Flag::ALL.into_iter().find(|flag| flag.name() == name)
    }
}

impl Flags {
    /// The flags that differ from `other`.
    #[must_use]
    pub fn differing(&self, other: &Flags) -> Vec<Flag> {
        Flag::ALL.into_iter().filter(|flag| self.get(*flag) != other.get(*flag)).collect()
    }

    /// A copy of these flags with one flag taken from `other`.
    #[must_use]
    pub fn with(mut self, flag: Flag, other: &Flags) -> Flags {
        self.set(flag, other.get(flag));
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
    pub(crate) fn new(rules: [GateRule; Gate::ALL.len()]) -> FeatureGates {
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

    /// A copy of these gates with one gate taken from `other`.
    #[must_use]
    pub fn with(mut self, gate: Gate, other: &FeatureGates) -> FeatureGates {
        self.on[gate as usize] = other.enabled(gate);
        self
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

/// A component of a cluster with feature gates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Component {
    /// The kube-apiserver.
    ApiServer,
    /// The kube-controller-manager.
    ControllerManager,
}

impl Component {
    /// All components.
    pub const ALL: [Component; 2] = [Component::ApiServer, Component::ControllerManager];

    /// Upstream's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Component::ApiServer => "kube-apiserver",
            Component::ControllerManager => "kube-controller-manager",
        }
    }
}

/// The feature gates of the components of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClusterGates {
    /// Those of the kube-apiserver.
    pub api_server: FeatureGates,
    /// Those of the kube-controller-manager.
    pub controller_manager: FeatureGates,
}

/// The same gates in both components.
impl From<FeatureGates> for ClusterGates {
    fn from(gates: FeatureGates) -> ClusterGates {
        ClusterGates { api_server: gates, controller_manager: gates }
    }
}

impl ClusterGates {
    /// The gates of a component.
    #[must_use]
    pub const fn of(&self, component: Component) -> &FeatureGates {
        match component {
            Component::ApiServer => &self.api_server,
            Component::ControllerManager => &self.controller_manager,
        }
    }

    /// A copy of these gates with one gate taken from `other`, in both components.
    #[must_use]
    pub fn with(self, gate: Gate, other: &ClusterGates) -> ClusterGates {
        ClusterGates {
            api_server: self.api_server.with(gate, &other.api_server),
            controller_manager: self.controller_manager.with(gate, &other.controller_manager),
        }
    }

    /// Sets a gate by upstream's name, in one component or in both.
    ///
    /// # Errors
    /// If the gate can't be set.
    pub fn set(&mut self, setting: &GateSetting) -> Result<(), GateError> {
        let GateSetting { component, name, on } = setting;
        if *component != Some(Component::ControllerManager) {
            self.api_server.set(name, *on)?;
        }
        if *component != Some(Component::ApiServer) {
            self.controller_manager.set(name, *on)?;
        }
        Ok(())
    }
}

/// The setting of a feature gate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GateSetting {
    /// The component. None: both.
    pub component: Option<Component>,
    /// Upstream's name of the gate.
    pub name: String,
    /// True if the gate is on.
    pub on: bool,
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
