//! The differences between releases of the recommender of the Vertical Pod Autoscaler.

use std::fmt;
use std::str::FromStr;

/// A minor release of the Vertical Pod Autoscaler: 1.`minor`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VpaRelease {
    /// `8` in 1.8.
    pub minor: u32,
}

impl VpaRelease {
    /// The newest supported release.
    pub const NEWEST: VpaRelease = VpaRelease { minor: 8 };

    /// The oldest supported release. Older ones are not published as Go modules.
    pub const OLDEST: VpaRelease = VpaRelease { minor: 7 };

    /// The supported releases, oldest first.
    pub fn supported() -> impl DoubleEndedIterator<Item = VpaRelease> {
        (VpaRelease::OLDEST.minor..=VpaRelease::NEWEST.minor).map(|minor| VpaRelease { minor })
    }
}

/// `vpa-1.8`.
impl fmt::Display for VpaRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vpa-1.{}", self.minor)
    }
}

/// Parses `vpa-1.8`.
impl FromStr for VpaRelease {
    type Err = String;
    fn from_str(text: &str) -> Result<VpaRelease, String> {
        let release = VpaRelease::supported().find(|release| release.to_string() == text);
        release.ok_or_else(|| {
            let supported: Vec<String> =
                VpaRelease::supported().map(|release| release.to_string()).collect();
            format!("{text:?} is not a supported release: expected {}", supported.join(" or "))
        })
    }
}

/// The behavior of one release, as far as releases differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VpaRules {
    /// The time before which an OOM kill is too old.
    pub oldest_oom: OldestOom,
    /// The point of a run at which pods that no longer exist are forgotten.
    pub removed_pods: RemovedPods,
}

/// The time from which the age of an OOM kill is counted. It is too old if it happened more than
/// one memory aggregation interval before that time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OldestOom {
    /// The end of the present memory aggregation interval.
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

/// One observable change of a release.
#[derive(Clone, Copy, Debug)]
pub struct VpaChange {
    /// The release that introduced the change.
    pub since: VpaRelease,
    /// The change.
    pub what: &'static str,
    /// The pull request or issue.
    pub source: &'static str,
    apply: fn(&mut VpaRules),
}

/// All changes, oldest first.
pub const VPA_CHANGES: &[VpaChange] = &[
    VpaChange {
        since: VpaRelease { minor: 8 },
        what: "an OOM kill is too old one memory aggregation interval before the last memory \
               sample, not before the end of the present interval",
        source: "https://github.com/kubernetes/autoscaler/issues/8548",
        apply: |rules| rules.oldest_oom = OldestOom::LastMemorySample,
    },
    VpaChange {
        since: VpaRelease { minor: 8 },
        what: "OOM kills and samples of a pod that was deleted since the last run still count",
        source: "https://github.com/kubernetes/autoscaler/blob/vertical-pod-autoscaler-1.8.1/\
                 vertical-pod-autoscaler/pkg/recommender/input/cluster_feeder.go",
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
    /// The rules of a release.
    #[must_use]
    pub fn of(release: VpaRelease) -> VpaRules {
        VpaRules::with(|change| change.since <= release)
    }

    /// The rules of a release without one of its changes.
    #[must_use]
    pub fn without(release: VpaRelease, left_out: &VpaChange) -> VpaRules {
        VpaRules::with(|change| change.since <= release && change.what != left_out.what)
    }

    fn with(applies: impl Fn(&VpaChange) -> bool) -> VpaRules {
        let mut rules =
            VpaRules { oldest_oom: OldestOom::WindowEnd, removed_pods: RemovedPods::BeforeSamples };
        let changes = VPA_CHANGES.iter().filter(|change| applies(change));
        changes.for_each(|change| (change.apply)(&mut rules));
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_the_vpa_are_parsed_and_printed() {
        assert_eq!("vpa-1.8".parse(), Ok(VpaRelease::NEWEST));
        assert_eq!(VpaRelease::OLDEST.to_string(), "vpa-1.7");
        for text in ["1.8", "vpa-1.6", "vpa-1.9", "vpa-1.8.1", ""] {
            let error = text.parse::<VpaRelease>().expect_err(text);
            assert!(error.ends_with("expected vpa-1.7 or vpa-1.8"), "{error}");
        }
    }

    #[test]
    fn each_change_has_an_effect() {
        for change in VPA_CHANGES {
            let mut rules = VpaRules::of(VpaRelease::OLDEST);
            (change.apply)(&mut rules);
            assert_ne!(rules, VpaRules::of(VpaRelease::OLDEST), "{}", change.what);
        }
    }
}
