//! The number of a minor release of any upstream program.

use std::fmt;
use std::str::FromStr;

use super::{AnyRelease, Release, VpaRelease};

/// A minor release of an upstream program: `1.37` of Kubernetes, `0.14` of the Vertical Pod
/// Autoscaler.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MinorVersion {
    /// `0` in 0.14.
    pub major: u32,
    /// `14` in 0.14.
    pub minor: u32,
}

/// `0.14`.
impl fmt::Display for MinorVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Parses `0.14`.
impl FromStr for MinorVersion {
    type Err = String;
    fn from_str(text: &str) -> Result<MinorVersion, String> {
        let numbers = text.split_once('.').and_then(|(major, minor)| {
            Some(MinorVersion { major: number(major)?, minor: number(minor)? })
        });
        numbers.ok_or_else(|| format!("{text:?} is not a minor release such as 1.37"))
    }
}

fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl From<Release> for MinorVersion {
    fn from(release: Release) -> MinorVersion {
        MinorVersion { major: 1, minor: release.minor }
    }
}

impl From<VpaRelease> for MinorVersion {
    fn from(release: VpaRelease) -> MinorVersion {
        MinorVersion { major: release.major, minor: release.minor }
    }
}

impl From<AnyRelease> for MinorVersion {
    fn from(release: AnyRelease) -> MinorVersion {
        match release {
            AnyRelease::Kubernetes(release) => release.into(),
            AnyRelease::Vpa(release) => release.into(),
        }
    }
}

/// The release of Kubernetes with this number. All of them have the major version 1.
impl From<MinorVersion> for Release {
    fn from(version: MinorVersion) -> Release {
        Release { minor: version.minor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_printed_and_ordered() {
        let parse = |text: &str| text.parse::<MinorVersion>().expect(text);
        assert_eq!(parse("0.14").to_string(), "0.14");
        assert!(parse("0.9") < parse("0.10") && parse("0.14") < parse("1.0"));
        assert_eq!(MinorVersion::from(Release::NEWEST), parse("1.37"));
        for wrong in ["1", "1.", ".1", "1.2.3", "v1.2", "1.x", "1.+2", ""] {
            assert!(wrong.parse::<MinorVersion>().is_err(), "{wrong}");
        }
    }
}
