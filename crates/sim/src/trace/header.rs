//! The first line of a recorded trace: the scenario, the builds of upstream that wrote the trace,
//! and the hash of the lines below.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use kube_autoscaler_models::as_text;
use kube_autoscaler_models::rules::{MinorVersion, Releases};

/// The first line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The scenario's id.
    pub scenario: String,
    /// The scenario's content hash.
    pub hash: String,
    /// The hash of the lines below the header.
    pub body: String,
    pub engine: String,
    /// The builds of the engine that were recorded with this trace, oldest release first.
    pub builds: Vec<Build>,
}

impl Header {
    /// The build of a release, if the trace was recorded on it.
    #[must_use]
    pub fn build_of(&self, release: impl Into<MinorVersion>) -> Option<&Build> {
        let release = release.into();
        self.builds.iter().find(|build| build.version.release == release)
    }

    /// The releases of Kubernetes on which the trace was recorded.
    #[must_use]
    pub fn releases(&self) -> Releases {
        self.builds.iter().map(|build| build.version.release.into()).collect()
    }

    /// The newest version with which the trace was recorded, if any.
    #[must_use]
    pub fn newest(&self) -> Option<Version> {
        self.builds.iter().map(|build| build.version).max()
    }
}

/// A build of an engine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// The version of Kubernetes, or of the Vertical Pod Autoscaler.
    #[serde(with = "as_text")]
    pub version: Version,
    /// The hash of the engine's sources, the versions of all modules included. It does not depend
    /// on the version of Go.
    pub sources: String,
}

/// A patch release of Kubernetes or of the Vertical Pod Autoscaler: `v1.36.3`, `vpa-1.8.0`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version {
    /// The project of the release.
    pub project: Project,
    /// `1.36` in `v1.36.3`.
    pub release: MinorVersion,
    /// `3` in `v1.36.3`.
    pub patch: u32,
}

/// A project with releases.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Project {
    Kubernetes,
    /// The Vertical Pod Autoscaler.
    Vpa,
}

impl Project {
    const ALL: [Project; 2] = [Project::Kubernetes, Project::Vpa];

    /// The text before the number in a version: `v` or `vpa-`.
    fn prefix(self) -> &'static str {
        match self {
            Project::Kubernetes => "v",
            Project::Vpa => "vpa-",
        }
    }
}

impl Version {
    /// The tag without the name of the project: `v1.8.0`.
    #[must_use]
    pub(crate) fn tag(self) -> String {
        format!("v{}.{}", self.release, self.patch)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}.{}", self.project.prefix(), self.release, self.patch)
    }
}

impl FromStr for Version {
    type Err = String;
    fn from_str(text: &str) -> Result<Version, String> {
        let version = Project::ALL.into_iter().find_map(|project| {
            let (release, patch) = text.strip_prefix(project.prefix())?.rsplit_once('.')?;
            Some(Version { project, release: release.parse().ok()?, patch: patch.parse().ok()? })
        });
        version.ok_or_else(|| "expected a patch release such as v1.37.0 or vpa-1.8.0".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_a_patch_release() {
        let version: Version = "v1.9.11".parse().expect("it is a version");
        assert_eq!((version.release.minor, version.patch), (9, 11));
        assert_eq!(version.to_string(), "v1.9.11");
        assert!("v1.10.0".parse::<Version>().expect("it is a version") > version);
        let vpa: Version = "vpa-1.8.0".parse().expect("it is a version of the VPA");
        assert_eq!((vpa.project, vpa.to_string()), (Project::Vpa, "vpa-1.8.0".to_owned()));
        assert_eq!(vpa.tag(), "v1.8.0");
        for wrong in ["vpa1.8.0", "vpa-1.8", "1.9.11", "v1.9", "v1.9.", "v1.9.x", "v1.9.1.1", ""] {
            assert!(wrong.parse::<Version>().is_err(), "{wrong}");
        }
    }
}
