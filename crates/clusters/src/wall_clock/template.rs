//! The program or image from which new clusters are started.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::cluster::provision::{docker, image, k3s, kind};
use crate::cluster::settings::Settings;
use crate::embedded;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::plan::Plan;
use kube_lockstep_engines::record::Record;
use kube_lockstep_engines::registry::EngineChoice;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::Preparation;

/// The number of control planes that run at a time: each uses almost a gigabyte of memory.
const CLUSTERS: usize = 6;

/// The program or image from which the clusters of a release are started.
pub(super) enum ClusterTemplate {
    /// The program of a control plane.
    Embedded(PathBuf),
    /// An image with that program.
    Image(String),
    /// An image of k3s.
    K3s(String),
    /// An image of kind's nodes.
    Kind(String),
}

impl ClusterTemplate {
    /// The number of clusters that may run at a time.
    pub(super) fn at_once(&self, plan: &Plan) -> usize {
        match self {
            // A custom controller may require exclusive access to a resource, such as a port.
            ClusterTemplate::Embedded(_) | ClusterTemplate::Image(_)
                if plan.cluster.controller.is_none() =>
            {
                CLUSTERS
            }
            _ => 1,
        }
    }

    /// Builds or fetches the program or image for the clusters of the release.
    pub(super) async fn prepare(
        plan: &Plan,
        release: Release,
        record: &mut Record<'_>,
    ) -> Result<ClusterTemplate, EngineError> {
        let name = &plan.engine_name();
        let image = || plan.cluster.image.clone();
        match plan.engine {
            EngineChoice::K3s => {
                let image = docker::image(name, release, image(), k3s::default_image)?;
                docker::ensure(name, &image, &mut |what| record.preparing(Preparation::new(what)))
                    .await?;
                Ok(ClusterTemplate::K3s(image))
            }
            // kind pulls the image.
            EngineChoice::Kind => Ok(ClusterTemplate::Kind(docker::image(
                name,
                release,
                image(),
                kind::default_image,
            )?)),
            EngineChoice::Image => {
                // Fails before the build, which takes minutes, if Docker is not available.
                docker::connect(name).await?;
                if let Some(image) = image() {
                    let progress = &mut |what: &str| record.preparing(Preparation::new(what));
                    docker::ensure(name, &image, progress).await?;
                    return Ok(ClusterTemplate::Image(image));
                }
                let program = control_plane(plan, release, record)?;
                let progress = &mut |what: &str| record.preparing(Preparation::new(what));
                let image = image::ensure(name, &program, release, progress).await?;
                Ok(ClusterTemplate::Image(image))
            }
            _ => control_plane(plan, release, record).map(ClusterTemplate::Embedded),
        }
    }

    /// Starts a cluster with these settings.
    pub(super) async fn start(
        &self,
        name: &Arc<str>,
        settings: &Settings,
    ) -> Result<Cluster, EngineError> {
        let settings = settings.clone();
        match self {
            ClusterTemplate::Embedded(program) => Cluster::embedded(name, program, settings).await,
            ClusterTemplate::Image(image) => Cluster::image(name, image, settings).await,
            ClusterTemplate::K3s(image) => Cluster::k3s(name, image, settings).await,
            ClusterTemplate::Kind(image) => Cluster::kind(name, image, &settings).await,
        }
    }
}

/// The program of a control plane; builds it if necessary.
fn control_plane(
    plan: &Plan,
    release: Release,
    record: &mut Record<'_>,
) -> Result<PathBuf, EngineError> {
    embedded::ensure(release, plan.builds(), &mut |it| record.preparing(it))
}
