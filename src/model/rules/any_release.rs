//! A release of one of the autoscalers.

use std::fmt;
use std::str::FromStr;

use super::{Release, VpaRelease};

/// A release of Kubernetes, or of the Vertical Pod Autoscaler.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AnyRelease {
    /// `1.37`.
    Kubernetes(Release),
    /// `vpa-1.8`.
    Vpa(VpaRelease),
}

impl fmt::Display for AnyRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyRelease::Kubernetes(release) => release.fmt(f),
            AnyRelease::Vpa(release) => release.fmt(f),
        }
    }
}

impl FromStr for AnyRelease {
    type Err = String;
    fn from_str(text: &str) -> Result<AnyRelease, String> {
        if text.starts_with("vpa") {
            return text.parse().map(AnyRelease::Vpa);
        }
        text.parse().map(AnyRelease::Kubernetes).map_err(|error| format!("{error}"))
    }
}

impl From<Release> for AnyRelease {
    fn from(release: Release) -> AnyRelease {
        AnyRelease::Kubernetes(release)
    }
}

impl From<VpaRelease> for AnyRelease {
    fn from(release: VpaRelease) -> AnyRelease {
        AnyRelease::Vpa(release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_both_kinds_are_parsed_and_printed() {
        for text in ["1.37", "vpa-1.8"] {
            assert_eq!(text.parse::<AnyRelease>().map(|it| it.to_string()), Ok(text.to_owned()));
        }
        let older = "1.37".parse::<AnyRelease>();
        assert!(older < "vpa-1.7".parse());
        assert!("vpa-2".parse::<AnyRelease>().is_err());
    }
}
