//! A control plane with upstream's CRDs and permissions of the VPA, for several scenarios.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::Method;
use kube::{Client, Error};
use serde_json::Value;
use tokio::task::JoinSet;

use super::objects;
use super::requests::{self, ObservedWrite};
use crate::cluster::access::client;
use crate::cluster::access::error::message;
use crate::cluster::metrics_api::expose::{Exposure, ListenRoute};
use crate::cluster::metrics_api::server::Server;
use crate::cluster::metrics_api::state::Metrics;
use crate::cluster::observe::dispatch::Dispatcher;
use crate::cluster::provision::args::{ADMIN, User};
use crate::cluster::provision::bootstrap::broken;
use crate::cluster::provision::embedded::ControlPlane;
use crate::cluster::settings::Settings;
use kube_autoscaler_models::flags::Flags;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::upstream::recommender::deploy::Deployment;
use kube_lockstep_scenario as scenario;
use kube_lockstep_sim::engine::EngineError;

/// The user as which the recommender sends its requests: the service account that upstream's
/// manifests give permissions to.
const USER: User = User { name: "system:serviceaccount:kube-system:vpa-recommender", group: None };

/// The kinds of upstream's manifests that the recommender requires without leader election, with
/// the paths of their objects.
const KINDS: [(&str, &str); 3] = [
    ("CustomResourceDefinition", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
    ("ClusterRole", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
    ("ClusterRoleBinding", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"),
];

/// A control plane for scenarios of the recommender.
pub(crate) struct RecommenderCluster {
    /// The name of the engine.
    pub name: Arc<str>,
    pub(crate) client: Client,
    pub(crate) metrics: Arc<Metrics>,
    pub(super) dispatcher: Arc<Dispatcher<ObservedWrite>>,
    /// The recommender's program.
    pub program: PathBuf,
    /// The kubeconfig of the recommender.
    pub kubeconfig: PathBuf,
    opened: AtomicUsize,
    // `stop` ends the tasks; a drop also ends them, but does not wait.
    tasks: JoinSet<()>,
    server: Server,
    control_plane: Mutex<ControlPlane>,
}

impl RecommenderCluster {
    /// Starts a control plane of a release, and prepares it for a recommender.
    ///
    /// # Errors
    /// If a component can't be started, or the API server rejects one of upstream's manifests.
    pub(crate) async fn start(
        name: &Arc<str>,
        control_plane: &Path,
        release: Release,
        deployment: &Deployment,
    ) -> Result<RecommenderCluster, EngineError> {
        let broken = |why: String| broken(name, &why, "");
        let settings = Settings {
            release,
            hpa_controller: false,
            observed: vec![USER.name.to_owned()],
            ..Settings::new(Flags::default())
        };
        let (control_plane, log) = ControlPlane::start(name, control_plane, &settings).await?;
        let text = |error: std::io::Error| broken(error.to_string());
        let admin = control_plane.kubeconfig(ADMIN).map_err(text)?;
        let client = client::from_text(&admin).await.map_err(broken)?;
        let kubeconfig = control_plane.folder().join("recommender.kubeconfig");
        let config = control_plane.kubeconfig(USER).map_err(text)?;
        std::fs::write(&kubeconfig, config).map_err(text)?;
        install(&client, &deployment.manifests).await.map_err(broken)?;
        let (dispatcher, mut tasks) = (Arc::new(Dispatcher::default()), JoinSet::new());
        if let Some(log) = log {
            tasks.spawn(requests::read_log(dispatcher.clone(), log));
        }
        let metrics = Arc::new(Metrics::for_cluster(true));
        let exposure = Exposure::all(ListenRoute::loopback());
        let served = exposure.serve(&client, &metrics).await;
        // The registration is removed with the control plane.
        let (server, _) = served.map_err(|refusal| broken(refusal.to_string()))?;
        Ok(RecommenderCluster {
            name: name.clone(),
            client,
            metrics,
            dispatcher,
            program: deployment.program.clone(),
            kubeconfig,
            opened: AtomicUsize::new(0),
            tasks,
            server,
            control_plane: Mutex::new(control_plane),
        })
    }

    /// The name of the next namespace.
    pub(super) fn next_namespace(&self) -> String {
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        format!("kube-lockstep-{}-{number}", std::process::id())
    }

    /// The folder of its files.
    pub(crate) fn folder(&self) -> PathBuf {
        let control_plane = self.control_plane.lock().unwrap_or_else(PoisonError::into_inner);
        control_plane.folder().to_owned()
    }

    /// Checks that all components are running, and that the observations are complete.
    ///
    /// # Errors
    /// If not. The error has the last log lines of a component that has exited.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        if let Some(why) = self.dispatcher.incomplete() {
            return Err(broken(&self.name, &why, ""));
        }
        self.control_plane.lock().unwrap_or_else(PoisonError::into_inner).check()
    }

    /// Stops it, and waits until everything is removed.
    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
        drop(self.server);
        let control_plane = self.control_plane.into_inner();
        control_plane.unwrap_or_else(PoisonError::into_inner).stop().await;
    }
}

/// Creates the objects of upstream's manifests, and waits until VPAs are served.
async fn install(admin: &Client, manifests: &[String]) -> Result<(), String> {
    for text in manifests {
        let documents = scenario::manifests(text).map_err(|problem| problem.what)?;
        for object in documents {
            create(admin, &object).await?;
        }
    }
    for path in [objects::vpas_path("default"), objects::checkpoints_path("default")] {
        client::wait_until_served(admin, &path).await?;
    }
    Ok(())
}

async fn create(admin: &Client, object: &Value) -> Result<(), String> {
    let Some((_, path)) = KINDS.into_iter().find(|(kind, _)| object["kind"] == *kind) else {
        return Ok(());
    };
    let created = client::send(admin, Method::POST, path, object).await;
    created.map(|_| ()).map_err(|error: Error| {
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        format!("upstream's {kind} {name} can't be created: {}", message(&error))
    })
}
