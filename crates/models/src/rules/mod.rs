//! The differences between Kubernetes releases; no other folder names a release. The algorithm
//! matches on the fields of [`Rules`], never on a release. Each row of [`CHANGES`] is one
//! observable change of [`Release::supported`], oldest first, with the release that introduced it
//! and its source.

mod admission;
mod any_release;
mod change_row;
mod changes;
mod controller_metrics;
mod events;
pub mod metrics;
mod minor_version;
mod normalization;
mod pods;
mod queue;
mod release;
mod scale;
mod status;
mod texts;
mod vpa;

pub use admission::{AdmissionRules, InvalidQuantities, MaxReplicasError};
pub use any_release::{AnyRelease, AnyReleases};
pub use change_row::ChangeRow;
pub use changes::{CHANGES, Change};
pub use controller_metrics::ControllerMetricRules;
pub use events::{EventLimit, EventRules};
pub use metrics::{MetricErrors, MetricRules, MetricsFrom, ObjectAverage, Within};
pub use minor_version::MinorVersion;
pub use normalization::{BehaviorWindows, LimitOrder, NormalizationRules, Windows};
pub use pods::{PodRules, Unready};
pub use queue::{FirstReconcile, QueueRules};
pub use release::{Release, ReleaseError, Releases};
pub use scale::{AtZero, MissingScale, ScaleRules};
pub use status::StatusRules;
pub use texts::{AmbiguousHpas, MissingRequest, ObjectError, TextRules};
pub use vpa::{
    CheckpointRules, InPlaceMode, InitContainers, OldestOom, OomUpdates, PolicyMemory, RemovedPods,
    VPA_CHANGES, VpaChange, VpaRelease, VpaRules, VpaTexts,
};

use super::flags::{FeatureGates, Flag, Flags, Gate, GateRule};
use super::time::Span;

/// The behavior of one release, where releases differ.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rules {
    /// The feature gates, in the order of [`Gate::ALL`].
    pub feature_gates: [GateRule; Gate::ALL.len()],
    /// The default values of the flags.
    pub default_flags: Flags,
    /// The flags that exist, in the order of [`Flag::ALL`].
    pub flags: [bool; Flag::ALL.len()],
    /// The rules by which the API server admits and stores HPAs.
    pub admission: AdmissionRules,
    /// The work queue.
    pub queue: QueueRules,
    /// The rules by which the controller reads and writes the replicas of the target.
    pub scale: ScaleRules,
    /// The rules by which metrics become a proposal.
    pub metrics: MetricRules,
    /// The rules by which pods count and are grouped.
    pub pods: PodRules,
    /// The rules by which a proposal becomes the desired replicas.
    pub normalization: NormalizationRules,
    /// The rules by which the status of an HPA is written.
    pub status: StatusRules,
    /// The rules by which client-go combines and limits events.
    pub events: EventRules,
    /// The controller's own Prometheus metrics.
    pub controller_metrics: ControllerMetricRules,
    /// The wording of errors and messages.
    pub texts: TextRules,
}

/// A feature gate that the HPA controller does not read, but that depends on a gate that it reads.
/// To disable the latter, this gate must be disabled as well.
///
/// Upstream: pkg/features/kube_features.go, defaultKubernetesFeatureGateDependencies
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dependent {
    /// Upstream's name.
    pub name: &'static str,
    /// The gate that this gate depends on.
    pub needs: Gate,
    /// The first release with the dependency.
    since: Release,
    /// The first release in which this gate is enabled by default.
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
    /// The dependent gates of a release.
    pub fn of(release: Release) -> impl Iterator<Item = Dependent> {
        DEPENDENTS.into_iter().filter(move |dependent| dependent.since <= release)
    }

    /// Returns true if this gate is enabled by default in a release.
    #[must_use]
    pub fn default_value(&self, release: Release) -> bool {
        self.on_since.is_some_and(|since| since <= release)
    }
}

impl Rules {
    /// The behavior of a release.
    #[must_use]
    pub fn of(release: Release) -> Rules {
        Rules::after(CHANGES.iter().take_while(|change| change.since <= release).count())
    }

    /// The behavior after the first `changes` rows of [`CHANGES`].
    #[must_use]
    pub fn after(changes: usize) -> Rules {
        Rules::by(CHANGES.iter().take(changes))
    }

    /// The behavior after some of the rows of [`CHANGES`], by their indices.
    #[must_use]
    pub fn after_rows(rows: impl Iterator<Item = usize>) -> Rules {
        Rules::by(rows.filter_map(|row| CHANGES.get(row)))
    }

    /// The behavior after the first `changes` rows of [`CHANGES`], but without the row `index`.
    #[must_use]
    pub fn without(index: usize, changes: usize) -> Rules {
        let others = CHANGES.iter().take(changes).enumerate().filter(|(other, _)| *other != index);
        Rules::by(others.map(|(_, change)| change))
    }

    fn by<'c>(rows: impl Iterator<Item = &'c Change>) -> Rules {
        let mut rules = Rules {
            feature_gates: [GateRule::Absent; Gate::ALL.len()],
            default_flags: Flags {
                concurrent_syncs: 1,
                sync_period: Span::from_secs(30),
                ..Flags::default()
            },
            flags: [true; Flag::ALL.len()],
            admission: AdmissionRules::OLDEST,
            queue: QueueRules::OLDEST,
            scale: ScaleRules::OLDEST,
            metrics: MetricRules::OLDEST,
            pods: PodRules::OLDEST,
            normalization: NormalizationRules::OLDEST,
            status: StatusRules::OLDEST,
            events: EventRules::OLDEST,
            controller_metrics: ControllerMetricRules::OLDEST,
            texts: TextRules::OLDEST,
        };
        for flag in [
            Flag::Tolerance,
            Flag::UpscaleDelay,
            Flag::DownscaleDelay,
            Flag::DownscaleStabilization,
            Flag::CpuInitializationPeriod,
            Flag::InitialReadinessDelay,
            Flag::ConcurrentSyncs,
        ] {
            rules.flag(flag, false);
        }
        for change in rows {
            (change.apply)(&mut rules);
        }
        rules
    }

    /// The default values of the feature gates.
    #[must_use]
    pub fn default_gates(&self) -> FeatureGates {
        FeatureGates::new(self.feature_gates)
    }

    fn gate(&mut self, gate: Gate, rule: GateRule) {
        self.feature_gates[gate as usize] = rule;
    }

    fn flag(&mut self, flag: Flag, exists: bool) {
        self.flags[flag as usize] = exists;
    }
}

/// The behavior of the newest release.
impl Default for Rules {
    fn default() -> Rules {
        Rules::of(Release::NEWEST)
    }
}

/// The default values of the gates in the newest release.
impl Default for FeatureGates {
    fn default() -> FeatureGates {
        Rules::default().default_gates()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Format;

    #[test]
    fn changes_are_in_order_and_add_up_to_the_newest_release() {
        assert!(CHANGES.is_sorted_by_key(|change| change.since));
        let rules = Rules::of(Release::NEWEST);
        assert_eq!(rules.queue.first_reconcile, FirstReconcile::Immediate);
        assert_eq!(rules.scale.update_attempts, 5);
        assert_eq!(rules.status.memory_format, Format::BinarySI);
        let tolerance = rules.feature_gates[Gate::HpaConfigurableTolerance as usize];
        assert_eq!(tolerance, GateRule::Locked(true));
        assert!(rules.feature_gates.iter().all(|gate| gate.default_value()));
        assert_eq!(Rules::of(Release { minor: 33 }).scale.update_attempts, 1);
    }
}
