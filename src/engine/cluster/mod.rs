//! Scenarios on real clusters, where time is real, too.
//!
//! A control plane (`control_plane`), or any other cluster, is driven from outside: the objects of
//! a scenario are made in a namespace of their own, pods get the status that a kubelet would give
//! them, and the metrics APIs are served from here. What the HPA controller asks for and writes is
//! what is observed. Deliberately no knowledge of what it should do.

mod audit;
pub(crate) mod client;
pub(crate) mod component;
pub(crate) mod control_plane;
mod fit;
pub(crate) mod kubeconfig;
mod metrics_api;
mod metrics_json;
mod own;
pub(crate) mod pki;
mod pods;
mod pulse;
mod registration;
mod scene;
mod targets;
mod warm_up;
mod watching;

use std::path::Path;
use std::process::id;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use tokio::process::ChildStdout;
use tokio::task::JoinSet;

pub(crate) use audit::{DIRECT, Did};
pub(crate) use fit::unfit;
pub(crate) use scene::{Scene, Tick};
pub(crate) use targets::CustomKind;

use super::EngineError;
use super::custom::USER;
use crate::scenario::Scenario;
use audit::Routes;
use control_plane::{ControlPlane, DRIVER, Settings};
use metrics_api::{Metrics, Server};
use own::Own;
use pulse::Pulse;
use scene::Stage;
use watching::Seen;

/// The user as whom upstream's own HPA controller asks and writes.
const UPSTREAM: &str = "system:serviceaccount:kube-system:horizontal-pod-autoscaler";

/// A cluster on which scenarios are played, several at a time.
pub(crate) struct Cluster {
    stage: Arc<Stage>,
    // Ended by `stop`; when it is only dropped, each part still ends.
    tasks: JoinSet<()>,
    server: Server,
    /// The user's own controller, if there is one.
    own: Mutex<Option<own::Running>>,
    ground: Mutex<Ground>,
    opened: AtomicUsize,
}

/// What a cluster is.
enum Ground {
    Embedded(ControlPlane),
}

impl Ground {
    fn check(&mut self) -> Result<(), EngineError> {
        match self {
            Ground::Embedded(control_plane) => control_plane.check(),
        }
    }

    async fn stop(self) {
        match self {
            Ground::Embedded(control_plane) => control_plane.stop().await,
        }
    }
}

/// How a cluster is reached, and what it tells of its controller.
struct Access {
    client: Client,
    /// The API server's audit log.
    log: Option<ChildStdout>,
    /// The controller manager, where it can be asked whether it is well.
    controllers: Option<Client>,
    /// A controller of the user's own that is to be started there.
    own: Option<Own>,
    /// The cluster does not outlive the run.
    is_disposable: bool,
}

impl Cluster {
    /// An embedded control plane, with the metrics APIs served.
    ///
    /// # Errors
    /// If a part of it can't be started.
    pub(crate) async fn embedded(
        name: &Arc<str>,
        program: &Path,
        mut settings: Settings,
    ) -> Result<Cluster, EngineError> {
        let user = if settings.controller.is_some() { USER } else { UPSTREAM };
        settings.observed = vec![user.to_owned()];
        let broken =
            |why: String| EngineError::Broken { engine: name.clone(), why, output: String::new() };
        let (control_plane, log) = ControlPlane::start(name, program, &settings).await?;
        let kubeconfig = control_plane.kubeconfig(DRIVER, None);
        let kubeconfig = kubeconfig.map_err(|error| broken(error.to_string()))?;
        let client = client::of_text(&kubeconfig).await.map_err(broken)?;
        let controllers = Some(control_plane.controllers());
        let own = Own::prepare(&control_plane, &settings).await.map_err(broken)?;
        let access = Access { client, log, controllers, own, is_disposable: true };
        Cluster::furnish(name, access, Ground::Embedded(control_plane)).await.map_err(broken)
    }

    /// Gives a cluster what scenarios need.
    async fn furnish(name: &Arc<str>, access: Access, ground: Ground) -> Result<Cluster, String> {
        let Access { client, log, controllers, own, is_disposable } = access;
        let (metrics, routes) = (Arc::new(Metrics::default()), Arc::new(Routes::default()));
        let server = Server::start(metrics.clone(), "127.0.0.1:0").await?;
        registration::register(&client, &server).await?;
        let mut tasks = JoinSet::new();
        if let Some(log) = log {
            tasks.spawn(routes.clone().read(log));
        }
        let seen = Arc::new(Seen::default());
        seen.watch(&client, &mut tasks);
        let pulse = Arc::new(Pulse::default());
        pulse.watch(("the API server", client.clone(), registration::PATH), &mut tasks);
        if let Some(controllers) = controllers {
            pulse.watch(("the kube-controller-manager", controllers, "/healthz"), &mut tasks);
        }
        let name = name.clone();
        let own = own.map(Own::start).transpose();
        let own = own.map_err(|error| format!("the controller can't be started: {error}"))?;
        let said = own.as_ref().map(|own| own.said().clone());
        let stage = Stage { name, client, metrics, routes, seen, pulse, said, is_disposable };
        let (stage, own) = (Arc::new(stage), Mutex::new(own));
        let (ground, opened) = (Mutex::new(ground), AtomicUsize::new(0));
        let cluster = Cluster { stage, tasks, server, own, ground, opened };
        warm_up::warm_up(&cluster.stage, &|| cluster.check().is_err()).await?;
        Ok(cluster)
    }

    /// Opens a scenario.
    ///
    /// # Errors
    /// If the API server refuses.
    pub(crate) async fn open(&self, scenario: &Scenario) -> Result<Scene, EngineError> {
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        Scene::open(&self.stage, format!("kube-lockstep-{}-{number}", id()), scenario).await
    }

    /// Whether all of it still runs.
    ///
    /// # Errors
    /// If not, with what the part said that does not.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        if let Some(why) = self.stage.routes.lost() {
            let why = format!("a line of the API server's audit log makes no sense: {why}");
            return Err(self.stage.broken(why));
        }
        self.ground.lock().unwrap_or_else(PoisonError::into_inner).check()?;
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.as_mut().map_or(Ok(()), |own| own.check(&self.stage.name))
    }

    /// Ends it, and waits until nothing of it is left.
    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
        if let Some(own) = self.own.into_inner().unwrap_or_else(PoisonError::into_inner) {
            own.stop().await;
        }
        drop(self.server);
        let ground = self.ground.into_inner();
        ground.unwrap_or_else(PoisonError::into_inner).stop().await;
    }
}
