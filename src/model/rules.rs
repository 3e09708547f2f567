//! What differs between Kubernetes releases. The only file that names one.
//!
//! The algorithm matches on the fields of [`Rules`], never on a release. Each row of [`CHANGES`] is
//! one observable change, oldest first, with the release that brought it and where it was decided.
//! The model is complete for the releases of [`Release::supported`] only.

mod release;

pub use release::{Release, ReleaseError, Releases};

use super::flags::Gate;
use super::quantity::Format;

/// A feature gate in one release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GateRule {
    /// It does not exist, and what it guards is not there.
    Absent,
    /// It is on or off by default, and can be switched.
    Default(bool),
    /// It can't be changed any more.
    Locked(bool),
}

impl GateRule {
    /// Whether the gate is on unless somebody says otherwise.
    #[must_use]
    pub const fn default_value(self) -> bool {
        match self {
            GateRule::Absent => false,
            GateRule::Default(on) | GateRule::Locked(on) => on,
        }
    }
}

/// When a new HPA is reconciled for the first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstReconcile {
    /// At once.
    Immediate,
    /// After one sync period.
    AfterSyncPeriod,
}

/// What a size of zero means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtZero {
    /// Scaling is disabled, unless `minReplicas` is 0, too.
    DisabledUnlessMinIsZero,
    /// Scaling is disabled, unless the condition ScaledToZero says that the controller did it.
    DisabledUnlessScaledToZero,
}

/// When a ratio is within the tolerance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Within {
    /// Its distance from 1 is not more than the tolerance: `|1 - r| <= t`.
    Distance,
    /// It lies between two bounds: `1 - t <= r <= 1 + t`.
    Bounds,
}

/// What the API server says of `maxReplicas: 0`, or less.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MaxReplicasError {
    /// That it is invalid.
    Invalid,
    /// That it is required, if it is 0.
    Required,
}

/// How the API server names a quantity that it refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidQuantities {
    /// As Go prints what it is made of.
    GoSyntax,
    /// As in JSON.
    Json,
}

/// How an error says which HPAs select the same pods.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AmbiguousHpas {
    /// All of them, in an order that is left to chance.
    All,
    /// Two of them, as an example.
    Example,
}

/// How an error names the object whose metric can't be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectError {
    /// Each word one place too far to the right: `unable to get metric M: KIND on NS NAME/ERROR`.
    Shifted,
    /// `unable to get metric M on KIND NS/NAME: ERROR`.
    InOrder,
}

/// The behaviour of one release, as far as releases differ.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rules {
    /// The feature gates, in the order of [`Gate::ALL`].
    pub feature_gates: [GateRule; Gate::ALL.len()],
    /// When a new HPA is reconciled for the first time.
    pub first_reconcile: FirstReconcile,
    /// How often an update of the scale is tried that meets a conflict.
    pub scale_update_attempts: u32,
    /// How the average memory use is printed in the status.
    pub memory_status_format: Format,
    /// Whether the sum and the proposal of an external metric's average are held within bounds.
    pub external_average_is_capped: bool,
    /// Whether the sum of an external metric's value, and the proposal of any value, are.
    pub value_is_capped: bool,
    /// Whether a pod without the container of a ContainerResource metric is an error.
    pub container_must_exist: bool,
    /// When a ratio is within the tolerance.
    pub within_tolerance: Within,
    /// Whether HPAs have a field for the tolerance.
    pub has_tolerance: bool,
    /// Whether a pod whose metrics lack the container of a ContainerResource metric fails it. If
    /// not, the pod is one without metrics.
    pub container_metrics_must_exist: bool,
    /// Whether the status of an object's average names the object.
    pub object_average_names_object: bool,
    /// Whether the API server looks at the apiVersion of references.
    pub api_version_is_checked: bool,
    /// What the API server says of `maxReplicas: 0`, or less.
    pub max_replicas_error: MaxReplicasError,
    /// How the API server names a quantity that it refuses.
    pub invalid_quantities: InvalidQuantities,
    /// Whether a zero total beside the average of an object's metric stands for none, in versions
    /// of the API in which it can't be left out.
    pub zero_total_is_none: bool,
    /// Whether checks that are generated from types take the place of hand-written ones.
    pub generated_validation: bool,
    /// What a size of zero means.
    pub at_zero: AtZero,
    /// How an error says which HPAs select the same pods.
    pub ambiguous_hpas: AmbiguousHpas,
    /// How an error names the object whose metric can't be had.
    pub object_error: ObjectError,
    /// Whether a reconcile of an HPA that is deleted meanwhile ends at its selector.
    pub deletion_ends_reconcile: bool,
}

/// One observable change between two releases.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The release that brought it.
    pub since: Release,
    /// What changed, in one line.
    pub what: &'static str,
    /// Where it was decided.
    pub link: &'static str,
    apply: fn(&mut Rules),
}

const fn change(
    minor: u32,
    what: &'static str,
    link: &'static str,
    apply: fn(&mut Rules),
) -> Change {
    Change { since: Release { minor }, what, link, apply }
}

/// A link to a file of upstream's.
macro_rules! source {
    ($version:literal, $path:literal) => {
        concat!("https://github.com/kubernetes/kubernetes/blob/", $version, "/", $path)
    };
}

/// Every change that the model knows, oldest first. Before the first row: 1.30.
pub const CHANGES: &[Change] = &[
    change(
        33,
        "feature gate HPAConfigurableTolerance, off by default",
        "https://github.com/kubernetes/kubernetes/pull/130797",
        |rules| rules.gate(Gate::HpaConfigurableTolerance, GateRule::Default(false)),
    ),
    change(
        33,
        "a ratio is within the tolerance if it lies between two bounds: 1.1 now does, by 0.1",
        "https://github.com/kubernetes/kubernetes/pull/130797",
        |rules| rules.within_tolerance = Within::Bounds,
    ),
    change(
        33,
        "an HPA has a tolerance for each direction of its own",
        "https://github.com/kubernetes/kubernetes/pull/130797",
        |rules| rules.has_tolerance = true,
    ),
    change(
        33,
        "a pod whose metrics lack the container of a ContainerResource metric counts as missing",
        "https://github.com/kubernetes/kubernetes/pull/127193",
        |rules| rules.container_metrics_must_exist = false,
    ),
    change(
        33,
        "the status of an average of an object's metric names the object",
        "https://github.com/kubernetes/kubernetes/pull/124555",
        |rules| rules.object_average_names_object = true,
    ),
    change(
        34,
        "the apiVersion of the target and of described objects must have a group",
        "https://github.com/kubernetes/kubernetes/pull/132537",
        |rules| rules.api_version_is_checked = true,
    ),
    change(
        34,
        "a quantity that is refused is named as it was written",
        source!("v1.34.0", "staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go"),
        |rules| rules.invalid_quantities = InvalidQuantities::Json,
    ),
    change(
        34,
        "average memory use is printed in binary units in the status",
        "https://github.com/kubernetes/kubernetes/pull/132351",
        |rules| rules.memory_status_format = Format::BinarySI,
    ),
    change(
        34,
        "a conflict on the update of the scale is retried, four times",
        "https://github.com/kubernetes/kubernetes/pull/132007",
        |rules| rules.scale_update_attempts = 5,
    ),
    change(
        34,
        "feature gate PodLevelResources, on by default",
        "https://github.com/kubernetes/kubernetes/pull/132430",
        |rules| rules.gate(Gate::PodLevelResources, GateRule::Default(true)),
    ),
    change(
        34,
        "an external metric's average does not overflow any more",
        "https://github.com/kubernetes/kubernetes/pull/127050",
        |rules| rules.external_average_is_capped = true,
    ),
    change(
        35,
        "a metric of an object, or from outside, proposes no more than 2147483647 by its value",
        "https://github.com/kubernetes/kubernetes/pull/126979",
        |rules| rules.value_is_capped = true,
    ),
    change(
        35,
        "a pod without the container of a ContainerResource metric is an error",
        "https://github.com/kubernetes/kubernetes/pull/133415",
        |rules| rules.container_must_exist = true,
    ),
    change(
        35,
        "feature gate HPAConfigurableTolerance is on by default",
        "https://github.com/kubernetes/kubernetes/pull/133128",
        |rules| rules.gate(Gate::HpaConfigurableTolerance, GateRule::Default(true)),
    ),
    change(
        36,
        "at size zero, scaling is disabled unless the controller has scaled to zero",
        "https://github.com/kubernetes/kubernetes/pull/135118",
        |rules| rules.at_zero = AtZero::DisabledUnlessScaledToZero,
    ),
    change(
        36,
        "an average of an object's metric can be written as autoscaling/v1",
        source!("v1.36.3", "pkg/apis/autoscaling/v1/conversion.go"),
        |rules| rules.zero_total_is_none = true,
    ),
    change(
        36,
        "maxReplicas: 0 is refused as missing",
        source!("v1.36.3", "pkg/apis/autoscaling/validation/validation.go"),
        |rules| rules.max_replicas_error = MaxReplicasError::Required,
    ),
    change(
        37,
        "what is wrong with minReplicas and maxReplicas is told last",
        source!("v1.37.0", "pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go"),
        |rules| rules.generated_validation = true,
    ),
    change(
        37,
        "feature gate HPAScaleToZero is on by default",
        "https://github.com/kubernetes/kubernetes/pull/139648",
        |rules| rules.gate(Gate::HpaScaleToZero, GateRule::Default(true)),
    ),
    change(
        37,
        "a new HPA is reconciled at once",
        "https://github.com/kubernetes/kubernetes/pull/138294",
        |rules| rules.first_reconcile = FirstReconcile::Immediate,
    ),
    change(
        37,
        "generation and observedGeneration: feature gate HPAGeneration, on by default",
        "https://github.com/kubernetes/kubernetes/pull/138228",
        |rules| rules.gate(Gate::HpaGeneration, GateRule::Default(true)),
    ),
    change(
        37,
        "feature gate HPAOptimizedSelectorStore, on by default",
        source!("v1.37.0", "pkg/features/kube_features.go"),
        |rules| rules.gate(Gate::HpaOptimizedSelectorStore, GateRule::Default(true)),
    ),
    change(
        37,
        "a stale cache skips a reconcile: gate StaleControllerConsistencyHPA, on by default",
        "https://github.com/kubernetes/kubernetes/pull/139025",
        |rules| rules.gate(Gate::StaleControllerConsistencyHpa, GateRule::Default(true)),
    ),
    change(
        37,
        "an ambiguous selector names two of the HPAs, and a deleted HPA ends its reconcile",
        source!("v1.37.0", "pkg/controller/podautoscaler/horizontal.go"),
        |rules| {
            rules.ambiguous_hpas = AmbiguousHpas::Example;
            rules.deletion_ends_reconcile = true;
        },
    ),
    change(
        37,
        "the error of an object's metric has its words in order",
        "https://github.com/kubernetes/kubernetes/pull/139029",
        |rules| rules.object_error = ObjectError::InOrder,
    ),
    change(
        37,
        "tolerance per HPA is final: feature gate HPAConfigurableTolerance is locked",
        "https://github.com/kubernetes/kubernetes/pull/140107",
        |rules| rules.gate(Gate::HpaConfigurableTolerance, GateRule::Locked(true)),
    ),
];

/// A feature gate that says nothing to the HPA controller, but can't be on without one that does:
/// whoever switches that one off has to switch this one off, too.
///
/// Upstream: pkg/features/kube_features.go, defaultKubernetesFeatureGateDependencies
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dependent {
    /// Upstream's name.
    pub name: &'static str,
    /// What it can't be on without.
    pub needs: Gate,
    /// The first release in which it depends on that.
    since: Release,
    /// The first release in which it is on by default.
    on_since: Option<Release>,
}

const fn dependent(name: &'static str, since: u32, on_since: Option<u32>) -> Dependent {
    let on_since = match on_since {
        Some(minor) => Some(Release { minor }),
        None => None,
    };
    Dependent { name, needs: Gate::PodLevelResources, since: Release { minor: since }, on_since }
}

const DEPENDENTS: [Dependent; 4] = [
    dependent("InPlacePodLevelResourcesVerticalScaling", 35, Some(36)),
    dependent("PodLevelResourceManagers", 36, None),
    dependent("PodLevelResourcesFixDefaulting", 37, Some(37)),
    dependent("PodLevelResourcesFixKubeletQOSClass", 37, Some(37)),
];

impl Dependent {
    /// Those of a release.
    pub fn of(release: Release) -> impl Iterator<Item = Dependent> {
        DEPENDENTS.into_iter().filter(move |dependent| dependent.since <= release)
    }

    /// Whether it is on by default in a release.
    #[must_use]
    pub fn default_value(&self, release: Release) -> bool {
        self.on_since.is_some_and(|since| since <= release)
    }
}

impl Rules {
    /// The behaviour of a release.
    #[must_use]
    pub fn of(release: Release) -> Rules {
        Rules::after(CHANGES.iter().take_while(|change| change.since <= release).count())
    }

    /// The behaviour after so many of [`CHANGES`].
    #[must_use]
    pub fn after(changes: usize) -> Rules {
        let mut rules = Rules {
            feature_gates: [GateRule::Absent; Gate::ALL.len()],
            first_reconcile: FirstReconcile::AfterSyncPeriod,
            scale_update_attempts: 1,
            memory_status_format: Format::DecimalSI,
            external_average_is_capped: false,
            value_is_capped: false,
            container_must_exist: false,
            within_tolerance: Within::Distance,
            has_tolerance: false,
            container_metrics_must_exist: true,
            object_average_names_object: false,
            api_version_is_checked: false,
            max_replicas_error: MaxReplicasError::Invalid,
            invalid_quantities: InvalidQuantities::GoSyntax,
            zero_total_is_none: false,
            generated_validation: false,
            at_zero: AtZero::DisabledUnlessMinIsZero,
            ambiguous_hpas: AmbiguousHpas::All,
            object_error: ObjectError::Shifted,
            deletion_ends_reconcile: false,
        };
        rules.gate(Gate::HpaScaleToZero, GateRule::Default(false));
        for change in CHANGES.iter().take(changes) {
            (change.apply)(&mut rules);
        }
        rules
    }

    fn gate(&mut self, gate: Gate, rule: GateRule) {
        self.feature_gates[gate as usize] = rule;
    }
}

/// The behaviour of the newest release.
impl Default for Rules {
    fn default() -> Rules {
        Rules::of(Release::newest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_in_order_and_add_up_to_the_newest_release() {
        assert!(CHANGES.is_sorted_by_key(|change| change.since));
        let rules = Rules::of(Release::V1_37);
        assert_eq!(rules.first_reconcile, FirstReconcile::Immediate);
        assert_eq!(rules.scale_update_attempts, 5);
        assert_eq!(rules.memory_status_format, Format::BinarySI);
        let tolerance = rules.feature_gates[Gate::HpaConfigurableTolerance as usize];
        assert_eq!(tolerance, GateRule::Locked(true));
        assert!(rules.feature_gates.iter().all(|gate| gate.default_value()));
        assert_eq!(Rules::of(Release { minor: 33 }).scale_update_attempts, 1);
    }
}
