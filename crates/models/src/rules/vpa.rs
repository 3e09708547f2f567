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
    /// True if the memory request in the status of a container precedes that of the specification.
    pub reads_requests_of_status: bool,
    /// True if the status contains the observed generation.
    pub has_observed_generation: bool,
    /// The fields of container policies that change the aggregation of memory.
    pub policy_memory: PolicyMemory,
    /// True if recommended memory is in binary units: `250Mi` instead of `262144k`.
    pub memory_is_binary: bool,
    /// The treatment of samples of init containers.
    pub init_containers: InitContainers,
    /// True if containers without CPU samples get the minimum. If not, they are left out.
    pub recommends_without_samples: bool,
    /// True if the containers of a recommendation are sorted. If not, their order is random, and is
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
    /// True if the checkpoints of all namespaces are read once for each namespace with a VPA. If
    /// not, those of each namespace are read once.
    pub reads_all_per_namespace: bool,
    /// True if bounds of a loaded histogram leave out buckets with a weight close to zero.
    pub trims_loaded: bool,
    /// True if checkpoints of VPAs that the recommender does not handle are kept. If not, they are
    /// deleted, after the VPAs were loaded again.
    pub keeps_those_of_other_recommenders: bool,
    /// True if checkpoints in ignored namespaces are never deleted.
    pub skips_ignored_namespaces: bool,
}

/// The texts of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VpaTexts {
    /// True if the log has a message and its values. If not, the message contains the values.
    pub log_is_structured: bool,
    /// True if the condition of an unsupported target names the target.
    pub names_unsupported_target: bool,
    /// True if an error of a checkpoint shows the VPA as `namespace/name`.
    pub shows_vpa_as_path: bool,
    /// True if errors of empty and negative checkpoints begin with a lowercase letter.
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

/// The link to a pull request.
macro_rules! pull {
    ($number:literal) => {
        concat!("https://github.com/kubernetes/autoscaler/pull/", $number)
    };
}

/// The link to an upstream file of the recommender.
macro_rules! source {
    ($version:literal, $path:literal) => {
        concat!(
            "https://github.com/kubernetes/autoscaler/blob/vertical-pod-autoscaler-",
            $version,
            "/vertical-pod-autoscaler/pkg/recommender/",
            $path
        )
    };
}

/// A table of changes. Each row holds the release, the change, its source, the new flags, if any,
/// and the effect on the rules, if any.
macro_rules! changes {
    (|$rules:ident| $(
        $since:expr, $what:literal, $source:expr
            $(, [$($flag:literal),* $(,)?])? $(=> $apply:expr)?;
    )*) => {
        &[$(VpaChange {
            since: $since,
            what: $what,
            source: $source,
            flags: &[$($($flag),*)?],
            apply: changes!(@apply $rules $($apply)?),
        }),*]
    };
    (@apply $rules:ident) => { |_| {} };
    (@apply $rules:ident $apply:expr) => { |$rules| $apply };
}

/// All changes, oldest first.
pub const VPA_CHANGES: &[VpaChange] = changes! { |rules|
    v0(12), "the containers of a recommendation are sorted by name; before, their order is random",
        pull!(4979) => rules.sorts_containers = true;
    v0(13), "containers without CPU samples get the minimum; before, they were left out",
        pull!(5326) => rules.recommends_without_samples = true;
    v0(13), "flags for the name of the recommender and the percentile of the CPU target",
        pull!(4799), ["recommender-name", "target-cpu-percentile"];
    v0(13), "flags for the increase of memory after an OOM kill",
        pull!(5275), ["oom-bump-up-ratio", "oom-min-bump-up-bytes"];
    v0(13), "flag --cpu-integer-post-processor-enabled",
        pull!(5313), ["cpu-integer-post-processor-enabled"];
    v0(14), "the error for an unknown version of a checkpoint says \"unsupported\" instead of \
        \"unsuported\"",
        pull!(5613) => rules.texts.unknown_checkpoint_version = "unsupported checkpoint version";
    v1(2), "flag --ignored-vpa-object-namespaces", pull!(6788), ["ignored-vpa-object-namespaces"];
    v1(2), "flags for all percentiles",
        pull!(6660), [
            "recommendation-lower-bound-cpu-percentile",
            "recommendation-lower-bound-memory-percentile",
            "recommendation-upper-bound-cpu-percentile",
            "recommendation-upper-bound-memory-percentile",
            "target-memory-percentile",
        ];
    v1(2), "the errors of empty and negative checkpoints begin with a lowercase letter",
        pull!(6698) => rules.texts.lowercase_checkpoint_errors = true;
    v1(2), "an error of a checkpoint shows the VPA as namespace/name",
        pull!(6909) => rules.texts.shows_vpa_as_path = true;
    v1(3), "checkpoints of VPAs that another recommender handles are kept",
        pull!(6767) => rules.checkpoints.keeps_those_of_other_recommenders = true;
    v1(3), "the log is structured: a message and its values instead of a formatted message",
        pull!(7290) => rules.texts.log_is_structured = true;
    v1(3), "flag --humanize-memory", pull!(7428), ["humanize-memory"];
    v1(3), "a loaded checkpoint whose first bucket has a weight close to zero no longer counts as \
        empty (1.3.1)",
        "https://github.com/kubernetes/autoscaler/issues/7726"
            => rules.checkpoints.trims_loaded = true;
    v1(4), "flags for the largest recommendation of containers",
        pull!(7560), [
            "container-recommendation-max-allowed-cpu",
            "container-recommendation-max-allowed-memory",
        ];
    v1(4), "flag --round-cpu-millicores", pull!(7682), ["round-cpu-millicores"];
    v1(4), "checkpoints are deleted only in namespaces that the recommender does not ignore",
        pull!(7716) => rules.checkpoints.skips_ignored_namespaces = true;
    v1(4), "flags for the confidence intervals",
        pull!(7843), ["confidence-interval-cpu", "confidence-interval-memory"];
    v1(4), "after an OOM kill, the memory request in the status of the container counts, not that \
        of the pod's specification",
        pull!(8004) => rules.reads_requests_of_status = true;
    v1(4), "samples of init containers are skipped; before, they were reported as errors",
        pull!(8062) => rules.init_containers = InitContainers::EverSkipped;
    v1(5), "recommended memory is in binary units: 250Mi instead of 262144k",
        pull!(8298), ["round-memory-bytes"] => rules.memory_is_binary = true;
    v1(5), "the condition of an unsupported target names the target",
        pull!(8299) => rules.texts.names_unsupported_target = true;
    v1(5), "when the recommender starts, it reads the checkpoints of all namespaces once for each \
        namespace with a VPA, and reports the errors as often",
        pull!(8331) => rules.checkpoints.reads_all_per_namespace = true;
    v1(5), "the errors of buckets of a checkpoint begin with a lowercase letter",
        source!("1.5.1", "util/histogram.go") => rules.texts.lowercase_bucket_errors = true;
    v1(6), "policies change the increase of memory after an OOM kill: feature gate PerVPAConfig, \
        off by default",
        pull!(8012), ["feature-gates"] => rules.policy_memory = PolicyMemory::OomBump;
    v1(7), "policies change the memory aggregation interval and the number of intervals (feature \
        gate PerVPAConfig)",
        pull!(9317) => rules.policy_memory = PolicyMemory::All;
    v1(7), "the status contains the observed generation",
        pull!(9524) => rules.has_observed_generation = true;
    v1(7), "samples of a container count again if it is no longer an init container of its pod",
        source!("1.7.1", "model/cluster.go") => rules.init_containers = InitContainers::Skipped;
    v1(7), "an OOM kill counts when the container ends; before, it counted after the restart",
        pull!(7955) => rules.oom_updates = OomUpdates::Ends;
    v1(8), "an OOM kill is too old one memory aggregation interval before the last memory sample, \
        not before the end of the current interval",
        "https://github.com/kubernetes/autoscaler/issues/8548"
            => rules.oldest_oom = OldestOom::LastMemorySample;
    v1(8), "OOM kills and samples of a pod that was deleted since the last run still count",
        source!("1.8.1", "input/cluster_feeder.go") => rules.removed_pods = RemovedPods::AfterOoms;
};

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
    pub fn introducing(name: &str) -> Option<VpaRelease> {
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
        assert_eq!(VpaRelease::introducing("humanize-memory"), Some(v1(3)));
        assert_eq!(VpaRelease::introducing("memory-saver"), None);
    }
}
