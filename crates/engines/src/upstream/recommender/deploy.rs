//! The program and the manifests with which upstream deploys the recommender in a cluster.
//!
//! The manifests are read from the folder of the module in Go's module cache. Nothing is copied.

use std::fs;
use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use crate::upstream::artifact::{Artifact, NAME, Progress};
use crate::upstream::build::BuildOptions;
use crate::upstream::cache::{Scratch, cache_folder, not_usable};
use crate::upstream::{build, go};
use kube_autoscaler_models::rules::{MinorVersion, VpaRelease};
use kube_lockstep_data::UPSTREAM;
use kube_lockstep_sim::engine::EngineError;

/// The files that define the custom resources and the recommender's permissions.
const MANIFESTS: [&str; 2] = ["deploy/vpa-v1-crd-gen.yaml", "deploy/vpa-rbac.yaml"];

/// The recommender as a program, and what it requires of a cluster.
#[derive(Clone, Debug)]
pub struct Deployment {
    pub program: PathBuf,
    /// The texts of the manifests: YAML, with several documents each.
    pub manifests: Vec<String>,
}

impl Deployment {
    /// Builds the program of a release if necessary, and reads its manifests.
    ///
    /// # Errors
    /// If there is no Go, the build fails, or a manifest can't be read.
    pub fn prepare(
        release: VpaRelease,
        options: &BuildOptions,
        progress: Progress<'_>,
    ) -> Result<Deployment, EngineError> {
        let program = build::ensure(Artifact::RecommenderProgram, release, options, progress)?;
        let manifests = manifests(release, &options.stop)?;
        Ok(Deployment { program, manifests })
    }
}

/// The texts of upstream's manifests of a release.
///
/// # Errors
/// If there is no Go, or a manifest can't be read.
pub fn manifests(
    release: VpaRelease,
    stop: &CancellationToken,
) -> Result<Vec<String>, EngineError> {
    go::find_go(&mut |_| {})?;
    let cache = cache_folder()?;
    let failed = |problem: &str, error: &std::io::Error| not_usable(&cache, problem, error);
    let scratch = Scratch::new(&cache).map_err(|error| failed("no folder for sources", &error))?;
    UPSTREAM
        .extract(scratch.path())
        .map_err(|error| failed("sources can't be unpacked", &error))?;
    let artifact = Artifact::RecommenderProgram;
    let (sources, release) = (scratch.path(), MinorVersion::from(release));
    let build = go::Build {
        name: NAME,
        sources,
        scratch: sources,
        flags: vec![format!("-modfile={}", artifact.mod_file(release))],
        target: artifact.module(),
        stop,
    };
    let folder = go::module_folder(&build)?;
    let read = |name: &&str| {
        let path = folder.join(name);
        fs::read_to_string(&path)
            .map_err(|error| failed(&format!("{} can't be read", path.display()), &error))
    };
    MANIFESTS.iter().map(read).collect()
}
