//! The programs that are built from upstream's code, and their Go sources.

use std::collections::BTreeSet;
use std::path::Path;

use kube_autoscaler_models::rules::{MinorVersion, Release, VpaRelease};
use kube_lockstep_data::UPSTREAM;
use kube_lockstep_sim::run::Preparation;

/// The engine's name.
pub const NAME: &str = "upstream";

/// The package of the virtual-time host.
pub(super) const HOST: &str = "./virtual";

/// Receives the current step.
pub type Progress<'a> = &'a mut dyn FnMut(Preparation);

/// A program that is built from upstream's code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Artifact {
    /// The host of the HPA controller in virtual time.
    Host,
    /// etcd, kube-apiserver and kube-controller-manager in one program.
    ControlPlane,
    /// The host of the recommender of the Vertical Pod Autoscaler in virtual time. Its releases are
    /// those of the Vertical Pod Autoscaler, not of Kubernetes.
    Recommender,
    /// The recommender itself: the program that upstream releases, for control planes.
    RecommenderProgram,
    /// The host of the updater and the admission controller of the Vertical Pod Autoscaler in
    /// virtual time, with which their simulation is compared.
    Updater,
}

impl Artifact {
    pub(crate) const ALL: [Artifact; 5] = [
        Artifact::Host,
        Artifact::ControlPlane,
        Artifact::Recommender,
        Artifact::RecommenderProgram,
        Artifact::Updater,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Artifact::Host => NAME,
            Artifact::ControlPlane => "controlplane",
            Artifact::Recommender => "recommender",
            Artifact::RecommenderProgram => "vpa-recommender",
            Artifact::Updater => "updater",
        }
    }

    /// How long a build takes, without downloads.
    pub(super) fn build_time(self) -> &'static str {
        match self {
            Artifact::Host => "1 to 6 minutes on two cores",
            Artifact::ControlPlane => "5 to 10 minutes on two cores",
            Artifact::Recommender | Artifact::RecommenderProgram | Artifact::Updater => {
                "1 to 2 minutes on two cores"
            }
        }
    }

    /// The Go package.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Artifact::Host => HOST,
            Artifact::ControlPlane => "./controlplane",
            Artifact::Recommender => "./recommender",
            Artifact::RecommenderProgram => {
                "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender"
            }
            Artifact::Updater => "./updater",
        }
    }

    /// The folder of the mod files.
    fn mod_files(self) -> &'static str {
        match self {
            Artifact::Host => "versions",
            Artifact::ControlPlane => "controlplane/versions",
            Artifact::Recommender | Artifact::RecommenderProgram => "recommender/versions",
            Artifact::Updater => "updater/versions",
        }
    }

    /// The mod file for a release.
    pub(super) fn mod_file(self, release: MinorVersion) -> String {
        format!("{}/v{release}.mod", self.mod_files())
    }

    /// The module whose version is the version of the program.
    pub(crate) fn module(self) -> &'static str {
        match self {
            Artifact::Host | Artifact::ControlPlane => "k8s.io/kubernetes",
            Artifact::Recommender | Artifact::RecommenderProgram | Artifact::Updater => {
                "k8s.io/autoscaler/vertical-pod-autoscaler"
            }
        }
    }

    /// The build tags: one for each release up to the release whose Go API is used.
    pub(crate) fn tags(self, api: MinorVersion) -> Vec<String> {
        let is_older = |release: &MinorVersion| *release <= api;
        match self {
            Artifact::Host | Artifact::ControlPlane => {
                let all = Release::supported().map(MinorVersion::from).filter(is_older);
                all.map(|release| format!("k{release}")).collect()
            }
            Artifact::Recommender | Artifact::RecommenderProgram | Artifact::Updater => {
                let all = VpaRelease::supported().map(MinorVersion::from).filter(is_older);
                all.map(|release| format!("vpa{release}")).collect()
            }
        }
    }

    /// Returns true if the program is built from this source file.
    pub(super) fn includes(self, file: &Path) -> bool {
        let owners = [
            ("controlplane", Artifact::ControlPlane),
            ("recommender", Artifact::Recommender),
            ("updater", Artifact::Updater),
        ];
        let owner = owners.into_iter().find(|(owned, _)| file.starts_with(owned));
        let uses = match self {
            // It shares the mod files of the host, but is built without the host's code.
            Artifact::RecommenderProgram => Artifact::Recommender,
            other => other,
        };
        // All programs are built with the files in the top folder.
        file.components().count() == 1 || owner.map_or(Artifact::Host, |(_, owner)| owner) == uses
    }
}

/// Returns true if the sources in this program can build the release.
#[must_use]
pub fn supports(artifact: Artifact, release: impl Into<MinorVersion>) -> bool {
    UPSTREAM.paths().contains(&artifact.mod_file(release.into()))
}

/// The releases that the sources in this program can build, oldest first.
pub fn supported(artifact: Artifact) -> impl DoubleEndedIterator<Item = MinorVersion> {
    let paths = UPSTREAM.paths().iter();
    let below = paths.filter_map(|path| path.strip_prefix(artifact.mod_files()));
    let releases: BTreeSet<MinorVersion> = below
        .filter_map(|name| name.strip_prefix("/v")?.strip_suffix(".mod"))
        .filter_map(|release| release.parse().ok())
        .collect();
    releases.into_iter()
}

/// The version of upstream that is built for a release: `v1.36.3`. `None` if the release is
/// unknown.
#[must_use]
pub fn version(artifact: Artifact, release: impl Into<MinorVersion>) -> Option<String> {
    let text = UPSTREAM.text(&artifact.mod_file(release.into()))?;
    let version = text.lines().find_map(|line| {
        let module = line.trim_start_matches("require").trim();
        module.strip_prefix(artifact.module())?.strip_prefix(' ')
    });
    version.and_then(|version| version.split_whitespace().next()).map(str::to_owned)
}

/// A hash as it is written in names.
pub(super) fn hex(hash: &[u8]) -> String {
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// A path in the syntax of mod files.
pub(super) fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy().replace('\\', r"\\").replace('"', r#"\""#);
    format!("\"{path}\"")
}
