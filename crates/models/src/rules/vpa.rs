//! The differences between releases of the recommender of the Vertical Pod Autoscaler.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A minor release of the Vertical Pod Autoscaler.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VpaRelease {
    /// `1` in 1.8.
    pub major: u32,
    /// `8` in 1.8.
    pub minor: u32,
}

/// `1.minor`.
const fn v1(minor: u32) -> VpaRelease {
    VpaRelease { major: 1, minor }
}

/// `0.minor`.
const fn v0(minor: u32) -> VpaRelease {
    VpaRelease { major: 0, minor }
}

impl VpaRelease {
    /// The newest supported release.
    pub const NEWEST: VpaRelease = v1(8);

    /// The oldest supported release.
    pub const OLDEST: VpaRelease = v0(10);

    /// The supported releases, oldest first. 0.14 is followed by 1.0.
    pub fn supported() -> impl DoubleEndedIterator<Item = VpaRelease> {
        (VpaRelease::OLDEST.minor..=14).map(v0).chain((0..=VpaRelease::NEWEST.minor).map(v1))
    }
}

/// The support of a release for the update mode `InPlaceOrRecreate`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InPlaceMode {
    /// The API server rejects it.
    Rejected,
    /// The admission webhook requires a feature gate, which is off by default.
    Gated,
    /// It is accepted.
    Accepted,
}

impl VpaRelease {
    /// The first release that accepts the update mode `InPlaceOrRecreate` by default.
    pub const ACCEPTS_IN_PLACE: VpaRelease = v1(5);

    /// The first release whose updater and admission controller the simulation follows, and is
    /// compared with.
    pub const OLDEST_UPDATER: VpaRelease = v1(7);

    /// The support for the update mode `InPlaceOrRecreate`.
    #[must_use]
    pub fn in_place_mode(self) -> InPlaceMode {
        match self {
            _ if self >= VpaRelease::ACCEPTS_IN_PLACE => InPlaceMode::Accepted,
            _ if self >= v1(4) => InPlaceMode::Gated,
            _ => InPlaceMode::Rejected,
        }
    }
}

/// `vpa-1.8`.
impl fmt::Display for VpaRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vpa-{}.{}", self.major, self.minor)
    }
}

/// Parses `vpa-1.8`.
impl FromStr for VpaRelease {
    type Err = String;
    fn from_str(text: &str) -> Result<VpaRelease, String> {
        let release = VpaRelease::supported().find(|release| release.to_string() == text);
        release.ok_or_else(|| {
            let (oldest, newest) = (VpaRelease::OLDEST, VpaRelease::NEWEST);
            format!("{text:?} is not a supported release: expected {oldest} to {newest}")
        })
    }
}

/// The behavior of one release, where releases differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VpaRules {
    /// The time before which an OOM kill is too old.
    pub oldest_oom: OldestOom,
    /// The point of a run at which pods that no longer exist are forgotten.
    pub removed_pods: RemovedPods,
    /// The updates of a pod in which the recommender detects an OOM kill.
    pub oom_updates: OomUpdates,
    /// Whether the memory request in the status of a container precedes that of the specification.
    pub reads_requests_of_status: bool,
    /// Whether the status contains the observed generation.
    pub has_observed_generation: bool,
    /// The fields of container policies that change the aggregation of memory.
    pub policy_memory: PolicyMemory,
    /// Whether recommended memory is in binary units: `250Mi` instead of `262144k`.
    pub memory_is_binary: bool,
    /// The treatment of samples of init containers.
    pub init_containers: InitContainers,
    /// Whether containers without CPU samples get the minimum. If not, they are left out.
    pub recommends_without_samples: bool,
    /// Whether the containers of a recommendation are sorted. If not, their order is random, and is
    /// not compared; a status that differs only in the order is written.
    pub sorts_containers: bool,
    /// The rules for checkpoints.
    pub checkpoints: CheckpointRules,
    /// The texts of messages.
    pub texts: VpaTexts,
}

/// The time from which the age of an OOM kill is counted. It is too old if it happened more than
/// one memory aggregation interval before that time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OldestOom {
    /// The end of the current memory aggregation interval.
    WindowEnd,
    /// The last memory sample, if any.
    LastMemorySample,
}

/// The point of a run at which pods that no longer exist are forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemovedPods {
    /// Before samples and OOM kills are read, which are then lost.
    BeforeSamples,
    /// After samples and OOM kills are read.
    AfterOoms,
}

/// The updates of pods that show an OOM kill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OomUpdates {
    /// Updates that increase the restart count, if the last termination was an OOM kill.
    Restarts,
    /// Updates in which an OOM kill terminates a container, and updates that show it running again
    /// after one.
    Ends,
}

/// The treatment of samples of init containers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InitContainers {
    /// They are reported as errors.
    Reported,
    /// They are skipped, also those of a container that was an init container of the pod before.
    EverSkipped,
    /// They are skipped.
    Skipped,
}

/// The fields of container policies that change the aggregation of memory, if the feature gate
/// `PerVPAConfig` is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyMemory {
    /// None: the feature gate does not exist.
    Ignored,
    /// The ratio and the minimum of the increase after an OOM kill.
    OomBump,
    /// Also the aggregation interval and the number of intervals.
    All,
}

/// The rules for checkpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckpointRules {
    /// Whether the checkpoints of all namespaces are read once for each namespace with a VPA. If
    /// not, those of each namespace are read once.
    pub reads_all_per_namespace: bool,
    /// Whether bounds of a loaded histogram leave out buckets with a weight close to zero.
    pub trims_loaded: bool,
    /// Whether checkpoints of VPAs that the recommender does not handle are kept. If not, they are
    /// deleted, after the VPAs were loaded again.
    pub keeps_those_of_other_recommenders: bool,
    /// Whether checkpoints in ignored namespaces are never deleted.
    pub skips_ignored_namespaces: bool,
}

/// The texts of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VpaTexts {
    /// Whether the log has a message and its values. If not, the message contains the values.
    pub log_is_structured: bool,
    /// Whether the condition of an unsupported target names the target.
    pub names_unsupported_target: bool,
    /// Whether an error of a checkpoint shows the VPA as `namespace/name`.
    pub shows_vpa_as_path: bool,
    /// Whether errors of empty and negative checkpoints begin with a lowercase letter.
    pub lowercase_checkpoint_errors: bool,
    /// The same for errors of buckets.
    pub lowercase_bucket_errors: bool,
    /// The error for an unknown version of a checkpoint, without the version.
    pub unknown_checkpoint_version: &'static str,
}

/// One observable change of a release.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct VpaChange {
    /// The release that introduced the change.
    #[serde(skip)]
    pub since: VpaRelease,
    /// The change.
    pub what: &'static str,
    /// The pull request or issue.
    #[serde(rename = "link")]
    pub source: &'static str,
    /// The flags that the change introduced. Scenarios that set them are skipped on older releases.
    #[serde(skip)]
    pub flags: &'static [&'static str],
    #[serde(skip)]
    apply: fn(&mut VpaRules),
}

/// All changes, oldest first.
pub const VPA_CHANGES: &[VpaChange] = &[
    VpaChange {
        since: v0(12),
        what: "the containers of a recommendation are sorted by name; before, their order is \
               random",
        source: "https://github.com/kubernetes/autoscaler/pull/4979",
        flags: &[],
        apply: |rules| rules.sorts_containers = true,
    },
    VpaChange {
        since: v0(13),
        what: "containers without CPU samples get the minimum; before, they were left out",
        source: "https://github.com/kubernetes/autoscaler/pull/5326",
        flags: &[],
        apply: |rules| rules.recommends_without_samples = true,
    },
    VpaChange {
        since: v0(13),
        what: "flags for the name of the recommender and the percentile of the CPU target",
        source: "https://github.com/kubernetes/autoscaler/pull/4799",
        flags: &["recommender-name", "target-cpu-percentile"],
        apply: |_| {},
    },
    VpaChange {
        since: v0(13),
        what: "flags for the increase of memory after an OOM kill",
        source: "https://github.com/kubernetes/autoscaler/pull/5275",
        flags: &["oom-bump-up-ratio", "oom-min-bump-up-bytes"],
        apply: |_| {},
    },
    VpaChange {
        since: v0(13),
        what: "flag --cpu-integer-post-processor-enabled",
        source: "https://github.com/kubernetes/autoscaler/pull/5313",
        flags: &["cpu-integer-post-processor-enabled"],
        apply: |_| {},
    },
    VpaChange {
        since: v0(14),
        what: "the error for an unknown version of a checkpoint says \"unsupported\" instead of \
               \"unsuported\"",
        source: "https://github.com/kubernetes/autoscaler/pull/5613",
        flags: &[],
        apply: |rules| rules.texts.unknown_checkpoint_version = "unsupported checkpoint version",
    },
    VpaChange {
        since: v1(2),
        what: "flag --ignored-vpa-object-namespaces",
        source: "https://github.com/kubernetes/autoscaler/pull/6788",
        flags: &["ignored-vpa-object-namespaces"],
        apply: |_| {},
    },
    VpaChange {
        since: v1(2),
        what: "flags for all percentiles",
        source: "https://github.com/kubernetes/autoscaler/pull/6660",
        flags: &[
            "recommendation-lower-bound-cpu-percentile",
            "recommendation-lower-bound-memory-percentile",
            "recommendation-upper-bound-cpu-percentile",
            "recommendation-upper-bound-memory-percentile",
            "target-memory-percentile",
        ],
        apply: |_| {},
    },
    VpaChange {
        since: v1(2),
        what: "the errors of empty and negative checkpoints begin with a lowercase letter",
        source: "https://github.com/kubernetes/autoscaler/pull/6698",
        flags: &[],
        apply: |rules| rules.texts.lowercase_checkpoint_errors = true,
    },
    VpaChange {
        since: v1(2),
        what: "an error of a checkpoint shows the VPA as namespace/name",
        source: "https://github.com/kubernetes/autoscaler/pull/6909",
        flags: &[],
        apply: |rules| rules.texts.shows_vpa_as_path = true,
    },
    VpaChange {
        since: v1(3),
        what: "checkpoints of VPAs that another recommender handles are kept",
        source: "https://github.com/kubernetes/autoscaler/pull/6767",
        flags: &[],
        apply: |rules| rules.checkpoints.keeps_those_of_other_recommenders = true,
    },
    VpaChange {
        since: v1(3),
        what: "the log is structured: a message and its values instead of a formatted message",
        source: "https://github.com/kubernetes/autoscaler/pull/7290",
        flags: &[],
        apply: |rules| rules.texts.log_is_structured = true,
    },
    VpaChange {
        since: v1(3),
        what: "flag --humanize-memory",
        source: "https://github.com/kubernetes/autoscaler/pull/7428",
        flags: &["humanize-memory"],
        apply: |_| {},
    },
    VpaChange {
        since: v1(3),
        what: "a loaded checkpoint whose first bucket has a weight close to zero no longer counts \
               as empty (1.3.1)",
        source: "https://github.com/kubernetes/autoscaler/issues/7726",
        flags: &[],
        apply: |rules| rules.checkpoints.trims_loaded = true,
    },
    VpaChange {
        since: v1(4),
        what: "flags for the largest recommendation of containers",
        source: "https://github.com/kubernetes/autoscaler/pull/7560",
        flags: &[
            "container-recommendation-max-allowed-cpu",
            "container-recommendation-max-allowed-memory",
        ],
        apply: |_| {},
    },
    VpaChange {
        since: v1(4),
        what: "flag --round-cpu-millicores",
        source: "https://github.com/kubernetes/autoscaler/pull/7682",
        flags: &["round-cpu-millicores"],
        apply: |_| {},
    },
    VpaChange {
        since: v1(4),
        what: "checkpoints are deleted only in namespaces that the recommender does not ignore",
        source: "https://github.com/kubernetes/autoscaler/pull/7716",
        flags: &[],
        apply: |rules| rules.checkpoints.skips_ignored_namespaces = true,
    },
    VpaChange {
        since: v1(4),
        what: "flags for the confidence intervals",
        source: "https://github.com/kubernetes/autoscaler/pull/7843",
        flags: &["confidence-interval-cpu", "confidence-interval-memory"],
        apply: |_| {},
    },
    VpaChange {
        since: v1(4),
        what: "after an OOM kill, the memory request in the status of the container counts, not \
               that of the pod's specification",
        source: "https://github.com/kubernetes/autoscaler/pull/8004",
        flags: &[],
        apply: |rules| rules.reads_requests_of_status = true,
    },
    VpaChange {
        since: v1(4),
        what: "samples of init containers are skipped; before, they were reported as errors",
        source: "https://github.com/kubernetes/autoscaler/pull/8062",
        flags: &[],
        apply: |rules| rules.init_containers = InitContainers::EverSkipped,
    },
    VpaChange {
        since: v1(5),
        what: "recommended memory is in binary units: 250Mi instead of 262144k",
        source: "https://github.com/kubernetes/autoscaler/pull/8298",
        flags: &["round-memory-bytes"],
        apply: |rules| rules.memory_is_binary = true,
    },
    VpaChange {
        since: v1(5),
        what: "the condition of an unsupported target names the target",
        source: "https://github.com/kubernetes/autoscaler/pull/8299",
        flags: &[],
        apply: |rules| rules.texts.names_unsupported_target = true,
    },
    VpaChange {
        since: v1(5),
        what: "when the recommender starts, it reads the checkpoints of all namespaces once for \
               each namespace with a VPA, and reports the errors as often",
        source: "https://github.com/kubernetes/autoscaler/pull/8331",
        flags: &[],
        apply: |rules| rules.checkpoints.reads_all_per_namespace = true,
    },
    VpaChange {
        since: v1(5),
        what: "the errors of buckets of a checkpoint begin with a lowercase letter",
        source: "https://github.com/kubernetes/autoscaler/blob/vertical-pod-autoscaler-1.5.1/\
                 vertical-pod-autoscaler/pkg/recommender/util/histogram.go",
        flags: &[],
        apply: |rules| rules.texts.lowercase_bucket_errors = true,
    },
    VpaChange {
        since: v1(6),
        what: "policies change the increase of memory after an OOM kill: feature gate \
               PerVPAConfig, off by default",
        source: "https://github.com/kubernetes/autoscaler/pull/8012",
        flags: &["feature-gates"],
        apply: |rules| rules.policy_memory = PolicyMemory::OomBump,
    },
    VpaChange {
        since: v1(7),
        what: "policies change the memory aggregation interval and the number of intervals \
               (feature gate PerVPAConfig)",
        source: "https://github.com/kubernetes/autoscaler/pull/9317",
        flags: &[],
        apply: |rules| rules.policy_memory = PolicyMemory::All,
    },
    VpaChange {
        since: v1(7),
        what: "the status contains the observed generation",
        source: "https://github.com/kubernetes/autoscaler/pull/9524",
        flags: &[],
        apply: |rules| rules.has_observed_generation = true,
    },
    VpaChange {
        since: v1(7),
        what: "samples of a container count again if it is no longer an init container of its pod",
        source: "https://github.com/kubernetes/autoscaler/blob/vertical-pod-autoscaler-1.7.1/\
                 vertical-pod-autoscaler/pkg/recommender/model/cluster.go",
        flags: &[],
        apply: |rules| rules.init_containers = InitContainers::Skipped,
    },
    VpaChange {
        since: v1(7),
        what: "an OOM kill counts when the container ends; before, it counted after the restart",
        source: "https://github.com/kubernetes/autoscaler/pull/7955",
        flags: &[],
        apply: |rules| rules.oom_updates = OomUpdates::Ends,
    },
    VpaChange {
        since: v1(8),
        what: "an OOM kill is too old one memory aggregation interval before the last memory \
               sample, not before the end of the current interval",
        source: "https://github.com/kubernetes/autoscaler/issues/8548",
        flags: &[],
        apply: |rules| rules.oldest_oom = OldestOom::LastMemorySample,
    },
    VpaChange {
        since: v1(8),
        what: "OOM kills and samples of a pod that was deleted since the last run still count",
        source: "https://github.com/kubernetes/autoscaler/blob/vertical-pod-autoscaler-1.8.1/\
                 vertical-pod-autoscaler/pkg/recommender/input/cluster_feeder.go",
        flags: &[],
        apply: |rules| rules.removed_pods = RemovedPods::AfterOoms,
    },
];

/// The rules of the newest release.
impl Default for VpaRules {
    fn default() -> VpaRules {
        VpaRules::of(VpaRelease::NEWEST)
    }
}

impl VpaRules {
    /// The rules before all changes.
    const FIRST: VpaRules = VpaRules {
        oldest_oom: OldestOom::WindowEnd,
        removed_pods: RemovedPods::BeforeSamples,
        oom_updates: OomUpdates::Restarts,
        reads_requests_of_status: false,
        has_observed_generation: false,
        policy_memory: PolicyMemory::Ignored,
        memory_is_binary: false,
        init_containers: InitContainers::Reported,
        recommends_without_samples: false,
        sorts_containers: false,
        checkpoints: CheckpointRules {
            reads_all_per_namespace: false,
            trims_loaded: false,
            keeps_those_of_other_recommenders: false,
            skips_ignored_namespaces: false,
        },
        texts: VpaTexts {
            log_is_structured: false,
            names_unsupported_target: false,
            shows_vpa_as_path: false,
            lowercase_checkpoint_errors: false,
            lowercase_bucket_errors: false,
            unknown_checkpoint_version: "unsuported checkpoint version",
        },
    };

    /// The rules of a release.
    #[must_use]
    pub fn of(release: VpaRelease) -> VpaRules {
        VpaRules::by(VPA_CHANGES.iter().take_while(|change| change.since <= release))
    }

    /// The rules after the first `changes` rows of [`VPA_CHANGES`].
    #[must_use]
    pub fn after(changes: usize) -> VpaRules {
        VpaRules::by(VPA_CHANGES.iter().take(changes))
    }

    /// The rules after the first `changes` rows of [`VPA_CHANGES`], but without the row `index`.
    #[must_use]
    pub fn without(index: usize, changes: usize) -> VpaRules {
        let rows = VPA_CHANGES.iter().take(changes).enumerate();
        VpaRules::by(rows.filter(|(other, _)| *other != index).map(|(_, change)| change))
    }

    fn by<'c>(rows: impl Iterator<Item = &'c VpaChange>) -> VpaRules {
        let mut rules = VpaRules::FIRST;
        rows.for_each(|change| (change.apply)(&mut rules));
        rules
    }
}

impl VpaRelease {
    /// The release that introduced a flag of the recommender, unless all releases have it.
    #[must_use]
    pub fn of_flag(name: &str) -> Option<VpaRelease> {
        let row = VPA_CHANGES.iter().find(|change| change.flags.contains(&name));
        row.map(|change| change.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_the_vpa_are_parsed_and_printed() {
        assert_eq!("vpa-1.8".parse(), Ok(VpaRelease::NEWEST));
        assert_eq!(VpaRelease::OLDEST.to_string(), "vpa-0.10");
        assert!("vpa-0.14".parse::<VpaRelease>() < "vpa-1.0".parse());
        for text in ["1.8", "vpa-0.9", "vpa-0.15", "vpa-1.9", "vpa-1.8.1", ""] {
            let error = text.parse::<VpaRelease>().expect_err(text);
            assert!(error.ends_with("expected vpa-0.10 to vpa-1.8"), "{error}");
        }
        let all: Vec<VpaRelease> = VpaRelease::supported().collect();
        assert!(all.is_sorted() && all.first() == Some(&VpaRelease::OLDEST));
        assert_eq!(all.last(), Some(&VpaRelease::NEWEST));
    }

    #[test]
    fn each_change_has_an_effect() {
        assert!(VPA_CHANGES.is_sorted_by_key(|change| change.since));
        for change in VPA_CHANGES {
            let mut rules = VpaRules::FIRST;
            (change.apply)(&mut rules);
            let is_new_flag = !change.flags.is_empty();
            assert!(is_new_flag || rules != VpaRules::FIRST, "{}", change.what);
        }
        assert_eq!(VpaRules::of(VpaRelease::OLDEST), VpaRules::FIRST);
        assert_eq!(VpaRelease::of_flag("humanize-memory"), Some(v1(3)));
        assert_eq!(VpaRelease::of_flag("memory-saver"), None);
    }
}
