//! What differs between Kubernetes releases. The only file that names one.
//!
//! The algorithm matches on the fields of [`Rules`], never on a release. Each row of [`CHANGES`] is
//! one observable change, oldest first, with the release that brought it and where it was decided.
//! The model is complete for the releases of [`Release::supported`] only.

use std::fmt;
use std::str::FromStr;

use super::flags::Gate;
use super::quantity::Format;

/// A minor release of Kubernetes: 1.`minor`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Release {
    /// `37` in 1.37.
    pub minor: u32,
}

impl Release {
    /// Kubernetes 1.37.
    pub const V1_37: Release = Release { minor: 37 };

    /// The releases that the model is complete for, oldest first.
    #[must_use]
    pub fn supported() -> &'static [Release] {
        &[Release::V1_37]
    }

    /// The newest release that the model is complete for.
    #[must_use]
    pub fn newest() -> Release {
        Release::V1_37
    }
}

/// `1.37`.
impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.minor)
    }
}

/// Text that names no release.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReleaseError(String);

impl fmt::Display for ReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no release such as 1.37", self.0)
    }
}

impl std::error::Error for ReleaseError {}

/// Reads `1.37`, `v1.37` and, its patch release ignored, `v1.37.0`.
impl FromStr for Release {
    type Err = ReleaseError;
    fn from_str(text: &str) -> Result<Release, ReleaseError> {
        let error = || ReleaseError(text.to_owned());
        let number = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            if digits { part.parse::<u32>().ok() } else { None }
        };
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
        if parts.next() != Some("1") {
            return Err(error());
        }
        let minor = parts.next().and_then(number).ok_or_else(error)?;
        if parts.next().is_some_and(|patch| number(patch).is_none()) || parts.next().is_some() {
            return Err(error());
        }
        Ok(Release { minor })
    }
}

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

/// Every change that the model knows, oldest first. Before the first row: 1.32.
pub const CHANGES: &[Change] = &[
    change(
        33,
        "feature gate HPAConfigurableTolerance, off by default",
        "https://github.com/kubernetes/kubernetes/pull/130797",
        |rules| rules.gate(Gate::HpaConfigurableTolerance, GateRule::Default(false)),
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
        35,
        "feature gate HPAConfigurableTolerance is on by default",
        "https://github.com/kubernetes/kubernetes/pull/133128",
        |rules| rules.gate(Gate::HpaConfigurableTolerance, GateRule::Default(true)),
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
        "https://github.com/kubernetes/kubernetes/blob/v1.37.0/pkg/features/kube_features.go",
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
        let mut rules = Rules {
            feature_gates: [GateRule::Absent; Gate::ALL.len()],
            first_reconcile: FirstReconcile::AfterSyncPeriod,
            scale_update_attempts: 1,
            memory_status_format: Format::DecimalSI,
        };
        rules.gate(Gate::HpaScaleToZero, GateRule::Default(false));
        for change in CHANGES.iter().filter(|change| change.since <= release) {
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
    fn releases_are_read_with_or_without_v_and_patch() {
        for text in ["1.37", "v1.37", "v1.37.0", "1.37.2"] {
            assert_eq!(text.parse(), Ok(Release::V1_37), "{text}");
        }
        for text in ["", "37", "2.37", "1", "1.", "1.x", "1.37.x", "1.37.0.1", "1.+7"] {
            assert!(text.parse::<Release>().is_err(), "{text}");
        }
        assert_eq!(Release::V1_37.to_string(), "1.37");
    }

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
