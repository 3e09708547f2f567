//! A cluster that runs several scenarios at a time.

use std::path::Path;
use std::pin::Pin;
use std::process::id;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;
use tokio::io::AsyncRead;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cluster::access::local_address::is_own;
use crate::cluster::access::{client, clock_skew, custom_resources};
use crate::cluster::load::probe::{Endpoint, LatencyProbe};
use crate::cluster::load::setup_queue::SetupQueue;
use crate::cluster::metrics_api::expose::{Exposure, ListenRoute};
use crate::cluster::metrics_api::groups::GROUPS;
use crate::cluster::metrics_api::register;
use crate::cluster::metrics_api::register::RegistrationError;
use crate::cluster::metrics_api::route::ServiceRoute;
use crate::cluster::metrics_api::server::Server;
use crate::cluster::metrics_api::state::Metrics;
use crate::cluster::observe::dispatch::Dispatcher;
use crate::cluster::observe::observability::Observability;
use crate::cluster::observe::{audit_log, watches};
use crate::cluster::provision::args::DRIVER;
use crate::cluster::provision::bootstrap::broken;
use crate::cluster::provision::container::RunningContainer;
use crate::cluster::provision::custom_controller;
use crate::cluster::provision::custom_controller::CustomController;
use crate::cluster::provision::embedded::ControlPlane;
use crate::cluster::provision::existing;
use crate::cluster::provision::image::ImageControlPlane;
use crate::cluster::provision::k3s::K3s;
use crate::cluster::provision::kind::KindCluster;
use crate::cluster::session::context::ClusterContext;
use crate::cluster::session::pod_cache::PodCache;
use crate::cluster::session::scenario_session::ScenarioSession;
use crate::cluster::session::warm_up;
use crate::cluster::settings::{Settings, UPSTREAM_USER};
use kube_autoscaler_models::time::Span;
use kube_lockstep_engines::custom::USER;
use kube_lockstep_engines::guard::cluster::Guard;
use kube_lockstep_engines::options::{ExistingCluster, HostPort};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::EngineError;

/// The number of scenarios that are set up at a time.
const CONCURRENT_SETUPS: usize = 3;

/// A cluster that runs several scenarios at a time.
pub(crate) struct Cluster {
    context: Arc<ClusterContext>,
    // `stop` ends the tasks; a drop also ends them, but does not wait.
    tasks: Mutex<JoinSet<()>>,
    server: Server,
    /// The custom controller, if there is one.
    custom: Mutex<Option<custom_controller::Running>>,
    control_plane_kind: Mutex<ControlPlaneKind>,
    opened: AtomicUsize,
    /// The settings that it was started with; `None` if they can't be changed.
    settings: Option<Settings>,
    /// The groups whose metrics it serves.
    groups: Vec<&'static str>,
    /// Removes the objects from an existing cluster if this process is killed.
    guard: Option<Guard>,
}

/// The component that provides the cluster.
enum ControlPlaneKind {
    Embedded(Box<ControlPlane>),
    Existing(Client),
    Image(ImageControlPlane),
    K3s(K3s),
    Kind(KindCluster),
}

impl ControlPlaneKind {
    fn check(&mut self) -> Result<(), EngineError> {
        match self {
            ControlPlaneKind::Embedded(control_plane) => control_plane.check(),
            // A failure is noticed when the API server does not respond.
            ControlPlaneKind::Existing(_) | ControlPlaneKind::Kind(_) => Ok(()),
            ControlPlaneKind::Image(control_plane) => control_plane.check(),
            ControlPlaneKind::K3s(k3s) => k3s.container().check(),
        }
    }

    /// The last log lines of its components, if they can be read.
    fn tail(&self) -> String {
        match self {
            ControlPlaneKind::Embedded(control_plane) => control_plane.tail(),
            ControlPlaneKind::Image(control_plane) => control_plane.tail(),
            ControlPlaneKind::K3s(k3s) => k3s.container().tail(),
            ControlPlaneKind::Existing(_) | ControlPlaneKind::Kind(_) => String::new(),
        }
    }

    async fn stop(self) {
        match self {
            ControlPlaneKind::Embedded(control_plane) => control_plane.stop().await,
            ControlPlaneKind::Existing(client) => drop(existing::clean_up(&client).await),
            ControlPlaneKind::Image(control_plane) => control_plane.stop().await,
            ControlPlaneKind::K3s(k3s) => k3s.stop().await,
            ControlPlaneKind::Kind(kind) => kind.stop().await,
        }
    }
}

/// The access to a cluster, and the sources of observations of its controller.
struct Access {
    client: Client,
    /// The API server's audit log. Without it, watches are used, which observe less.
    log: Option<Pin<Box<dyn AsyncRead + Send>>>,
    /// A client of the kube-controller-manager, if its health endpoint can be reached.
    controllers: Option<Client>,
    /// The uncertainty of observed times, due to the difference between the clocks.
    uncertainty: Span,
    /// The addresses and groups of the metrics APIs.
    exposure: Exposure,
    /// The custom controller to start.
    custom: Option<CustomController>,
    /// True if the cluster is removed after the run.
    is_disposable: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a guard, because the objects that it would remove are already removed.
async fn disarm(guard: Option<Guard>) {
    if let Some(guard) = guard {
        guard.disarm().await;
    }
}

/// Observes the controller by the audit log, or by watches if there is none.
fn observe(
    client: &Client,
    log: Option<Pin<Box<dyn AsyncRead + Send>>>,
    dispatcher: &Arc<Dispatcher>,
    tasks: &mut JoinSet<()>,
) -> Observability {
    match log {
        Some(log) => {
            tasks.spawn(audit_log::read(dispatcher.clone(), log));
            audit_log::OBSERVABILITY
        }
        None => {
            watches::start(client, dispatcher, tasks);
            watches::OBSERVABILITY
        }
    }
}

impl Access {
    /// The access to a cluster in a container.
    fn to_container(
        container: &RunningContainer,
        client: Client,
        log: impl AsyncRead + Send + 'static,
    ) -> Access {
        // If containers run in a virtual machine, their gateway is not an address of this machine.
        // Docker's name for this machine then leads to its loopback address.
        let gateway = container.gateway().filter(|gateway| is_own(*gateway));
        let listen = match gateway {
            Some(gateway) => ListenRoute::to(&HostPort { host: gateway.to_string(), port: 0 }),
            None => ListenRoute {
                routes: ServiceRoute::to("host.docker.internal"),
                ..ListenRoute::loopback()
            },
        };
        let exposure = Exposure::all(listen);
        let log = Some(Box::pin(log) as Pin<Box<_>>);
        Access {
            client,
            log,
            controllers: None,
            uncertainty: Span::ZERO,
            exposure,
            custom: None,
            is_disposable: true,
        }
    }
}

impl Cluster {
    /// Starts an embedded control plane, and serves the metrics APIs.
    ///
    /// # Errors
    /// If a component can't be started.
    pub(crate) async fn embedded(
        name: &Arc<str>,
        program: &Path,
        mut settings: Settings,
    ) -> Result<Cluster, EngineError> {
        let user = if settings.controller.is_some() { USER } else { UPSTREAM_USER };
        settings.observed = vec![user.to_owned()];
        let broken =
            |why: String| EngineError::Broken { engine: name.clone(), why, output: String::new() };
        let (control_plane, log) = ControlPlane::start(name, program, &settings).await?;
        let kubeconfig = control_plane.kubeconfig(DRIVER);
        let kubeconfig = kubeconfig.map_err(|error| broken(error.to_string()))?;
        let client = client::from_text(&kubeconfig).await.map_err(broken)?;
        let log = log.map(|log| Box::pin(log) as Pin<Box<_>>);
        let controllers = Some(control_plane.controllers());
        let custom = CustomController::prepare(&control_plane, &settings).await.map_err(broken)?;
        let (exposure, control_plane_kind) = (
            Exposure::all(ListenRoute::loopback()),
            ControlPlaneKind::Embedded(Box::new(control_plane)),
        );
        let uncertainty = Span::ZERO;
        let access =
            Access { client, log, controllers, custom, uncertainty, exposure, is_disposable: true };
        let prepared = Cluster::prepare(name, access, control_plane_kind).await;
        let cluster = prepared.map_err(|refusal| broken(refusal.to_string()))?;
        Ok(Cluster { settings: Some(settings), ..cluster })
    }

    /// Returns true if [`Cluster::change`] can give it these settings.
    pub(crate) fn can_become(&self, settings: &Settings) -> bool {
        self.settings.as_ref().is_some_and(|current| current.can_become(settings))
    }

    /// Restarts its controllers with other flags. No scenario may be running on it.
    ///
    /// # Errors
    /// If the controllers don't start. The cluster is then broken.
    pub(crate) async fn change(&mut self, settings: &Settings) -> Result<(), EngineError> {
        let control_plane_kind =
            self.control_plane_kind.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (ControlPlaneKind::Embedded(control_plane), Some(current)) =
            (control_plane_kind, &mut self.settings)
        else {
            return Err(self.context.broken("its flags can't be changed"));
        };
        current.flags = settings.flags;
        control_plane.change(current).await?;
        let is_gone = || self.check().is_err();
        let warm = warm_up::warm_up(&self.context, &is_gone).await;
        warm.map_err(|why| self.context.broken(why))
    }

    /// Connects to an existing cluster, and serves the metrics APIs of these groups. Also returns
    /// the sync period of its controller.
    ///
    /// # Errors
    /// If the cluster can't be used. No objects are left in it then.
    pub(crate) async fn connect(
        name: &Arc<str>,
        cluster: &ExistingCluster,
        groups: &[&'static str],
        stop: &CancellationToken,
        report: &mut dyn FnMut(&str),
    ) -> Result<(Cluster, Span), EngineError> {
        let broken =
            |why: String| EngineError::Broken { engine: name.clone(), why, output: String::new() };
        let connection = existing::connect(cluster).await.map_err(broken)?;
        let client = connection.client.clone();
        // The guard first, so that all created objects are removed in any case.
        let guard = Guard::running(&cluster.cleanup_command);
        let guard = guard.map_err(|error| broken(format!("no guard can be started: {error}")))?;
        let started = async {
            report("comparing the cluster's clock with this machine's");
            let skew = clock_skew::measure(&client).await.map_err(RegistrationError::Other)?;
            let uncertainty =
                existing::clock_uncertainty(skew).map_err(RegistrationError::Other)?;
            let exposure = existing::exposure(cluster, &connection, groups).await;
            let exposure = exposure.map_err(RegistrationError::Other)?;
            report("registering the metrics API");
            let client = client.clone();
            let control_plane_kind = ControlPlaneKind::Existing(client.clone());
            let (log, controllers, custom) = (None, None, None);
            let access = Access {
                client,
                log,
                controllers,
                custom,
                uncertainty,
                exposure,
                is_disposable: false,
            };
            let connected = Cluster::prepare(name, access, control_plane_kind).await?;
            report("measuring the cluster's sync period, which takes three sync periods");
            let period = warm_up::measure(&connected.context, groups).await;
            Ok::<_, RegistrationError>((connected, period.map_err(RegistrationError::Other)?))
        };
        let started = tokio::select! {
            started = started => {
                started.map_err(|refusal| existing::explain(name, cluster, refusal))
            }
            () = stop.cancelled() => Err(broken("it was interrupted".to_owned())),
        };
        match started {
            Ok((connected, period)) => Ok((Cluster { guard, ..connected }, period)),
            Err(error) => {
                let left = existing::clean_up(&client).await;
                left.map_err(|left| broken(existing::not_removed(cluster, &left)))?;
                disarm(guard).await;
                Err(error)
            }
        }
    }

    /// Starts a control plane in a container of an image, and serves the metrics APIs.
    ///
    /// # Errors
    /// If a component can't be started.
    pub(crate) async fn image(
        name: &Arc<str>,
        image: &str,
        mut settings: Settings,
    ) -> Result<Cluster, EngineError> {
        settings.observed = vec![UPSTREAM_USER.to_owned()];
        let (control_plane, client, log) = ImageControlPlane::start(name, image, &settings).await?;
        let access = Access {
            controllers: Some(control_plane.controllers()),
            ..Access::to_container(control_plane.container(), client, log)
        };
        let prepared = Cluster::prepare(name, access, ControlPlaneKind::Image(control_plane)).await;
        prepared.map_err(|refusal| broken(name, &refusal.to_string(), ""))
    }

    /// Starts k3s in a container of an image, and serves the metrics APIs.
    ///
    /// # Errors
    /// If it can't be started.
    pub(crate) async fn k3s(
        name: &Arc<str>,
        image: &str,
        mut settings: Settings,
    ) -> Result<Cluster, EngineError> {
        settings.observed = vec![UPSTREAM_USER.to_owned()];
        let (k3s, client, log) = K3s::start(name, image, &settings).await?;
        let installed = custom_resources::install(&client, &settings.custom_kinds).await;
        installed.map_err(|why| broken(name, &why, ""))?;
        let access = Access::to_container(k3s.container(), client, log);
        let prepared = Cluster::prepare(name, access, ControlPlaneKind::K3s(k3s)).await;
        prepared.map_err(|refusal| broken(name, &refusal.to_string(), ""))
    }

    /// Creates a kind cluster from a node image, and serves the metrics APIs.
    ///
    /// # Errors
    /// If it can't be created.
    pub(crate) async fn kind(
        name: &Arc<str>,
        image: &str,
        settings: &Settings,
    ) -> Result<Cluster, EngineError> {
        let broken = |why: String| broken(name, &why, "");
        let kind = KindCluster::create(name, image, settings).await?;
        let cluster = ExistingCluster {
            kubeconfig: Some(kind.kubeconfig()),
            context: kind.context(),
            metrics_address: existing::host_for_containers(),
            ..ExistingCluster::default()
        };
        let connection = existing::connect(&cluster).await.map_err(broken)?;
        let groups = GROUPS.map(|(group, _)| group);
        let exposure = existing::exposure(&cluster, &connection, &groups).await.map_err(broken)?;
        let (client, uncertainty) = (connection.client, Span::ZERO);
        custom_resources::install(&client, &settings.custom_kinds).await.map_err(broken)?;
        let (log, controllers) = (None, None);
        let access = Access {
            client,
            log,
            controllers,
            uncertainty,
            exposure,
            custom: None,
            is_disposable: true,
        };
        let prepared = Cluster::prepare(name, access, ControlPlaneKind::Kind(kind)).await;
        prepared.map_err(|refusal| broken(refusal.to_string()))
    }

    /// Sets up a cluster for scenarios.
    async fn prepare(
        name: &Arc<str>,
        access: Access,
        control_plane_kind: ControlPlaneKind,
    ) -> Result<Cluster, RegistrationError> {
        let Access { client, log, controllers, custom, uncertainty, exposure, is_disposable } =
            access;
        let metrics = Arc::new(Metrics::for_cluster(is_disposable));
        let dispatcher = Arc::new(Dispatcher::default());
        // The registration is removed with the cluster, or with all other objects.
        let (server, _) = exposure.serve(&client, &metrics).await?;
        let mut tasks = JoinSet::new();
        let mut observability = observe(&client, log, &dispatcher, &mut tasks);
        observability.uncertainty = Span(observability.uncertainty.0 + uncertainty.0);
        let pod_cache = PodCache::watching(&client, &dispatcher, &mut tasks);
        let probe = Arc::new(LatencyProbe::default());
        let (component, path) = ("the API server", register::PATH);
        probe.probe_endpoint(Endpoint { component, client: client.clone(), path }, &mut tasks);
        match controllers {
            Some(client) => {
                let (component, path) = ("the kube-controller-manager", "/healthz");
                probe.probe_endpoint(Endpoint { component, client, path }, &mut tasks);
            }
            None => {
                let probed = probe.probe_controllers(&client, &mut tasks).await;
                probed.map_err(RegistrationError::Other)?;
            }
        }
        let name = name.clone();
        let custom = custom.map(CustomController::start).transpose();
        let custom = custom.map_err(|error| format!("the controller can't be started: {error}"));
        let custom = custom.map_err(RegistrationError::Other)?;
        let controller_log = custom.as_ref().map(|it| it.log().clone());
        let setup_queue = SetupQueue::new(CONCURRENT_SETUPS);
        let context = ClusterContext {
            name,
            client,
            metrics,
            dispatcher,
            pod_cache,
            probe,
            controller_log,
            observability,
            setup_queue,
            sessions: Arc::default(),
            is_disposable,
        };
        let (context, custom, tasks) = (Arc::new(context), Mutex::new(custom), Mutex::new(tasks));
        let (control_plane_kind, opened) = (Mutex::new(control_plane_kind), AtomicUsize::new(0));
        let guard = None;
        let groups = exposure.groups;
        let settings = None;
        let cluster = Cluster {
            context,
            tasks,
            server,
            custom,
            control_plane_kind,
            opened,
            settings,
            groups,
            guard,
        };
        if is_disposable {
            let is_gone = || cluster.check().is_err();
            warm_up::warm_up(&cluster.context, &is_gone).await.map_err(RegistrationError::Other)?;
        }
        Ok(cluster)
    }

    /// The error for a scenario that did not finish because the run was interrupted.
    pub(crate) fn interrupted(&self) -> EngineError {
        self.context.broken("it was interrupted")
    }

    /// Waits for a setup permit, and opens a scenario. Returns `None` if `stop` is cancelled first.
    ///
    /// # Errors
    /// If the API server rejects a request.
    pub(crate) async fn open(
        &self,
        scenario: &Scenario,
        stop: &CancellationToken,
    ) -> Result<Option<ScenarioSession>, EngineError> {
        let permit = tokio::select! {
            permit = self.context.setup_permit(scenario.until) => permit,
            () = stop.cancelled() => return Ok(None),
        };
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("kube-lockstep-{}-{number}", id());
        ScenarioSession::open(&self.context, namespace, scenario, permit).await.map(Some)
    }

    /// The extent of observations of its controller.
    pub(crate) fn observability(&self) -> Observability {
        self.context.observability
    }

    /// Checks that all components are running, and that the observations are complete.
    ///
    /// # Errors
    /// If not. The error has the last log lines of a component that has exited.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let ended = lock(&self.tasks).try_join_next();
        if ended.is_some_and(|ended| ended.is_err_and(|error| error.is_panic())) {
            self.context
                .dispatcher
                .mark_incomplete("the harness panicked: its observations are incomplete".into());
        }
        if let Some(why) = self.context.dispatcher.incomplete() {
            return Err(self.context.broken(why));
        }
        lock(&self.control_plane_kind).check()?;
        lock(&self.custom).as_mut().map_or(Ok(()), |it| it.check(&self.context.name))
    }

    /// Adds the last log lines of the components to an error without output.
    pub(crate) fn with_tail(&self, error: EngineError) -> EngineError {
        match error {
            EngineError::Broken { engine, why, output } if output.is_empty() => {
                EngineError::Broken { engine, why, output: lock(&self.control_plane_kind).tail() }
            }
            error => error,
        }
    }

    /// The error for a registration that another client has changed or removed. In an existing
    /// cluster, an add-on manager may restore the original metrics API at any time.
    pub(crate) async fn registration_lost(&self) -> Option<EngineError> {
        let is_shared = !self.context.is_disposable;
        let why = match is_shared {
            true => register::registration_lost(&self.context.client, &self.groups).await?,
            false => return None,
        };
        Some(self.context.broken(why))
    }

    /// Removes all created objects from an existing cluster.
    ///
    /// # Errors
    /// If objects remain. The error names them, and how to remove them.
    pub(crate) async fn clean_up(mut self, cluster: &ExistingCluster) -> Result<(), EngineError> {
        self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner).shutdown().await;
        let left = existing::clean_up(&self.context.client).await;
        left.map_err(|left| self.context.broken(existing::not_removed(cluster, &left)))?;
        disarm(self.guard.take()).await;
        Ok(())
    }

    /// Stops the cluster, and waits until everything is removed.
    pub(crate) async fn stop(mut self) {
        self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner).shutdown().await;
        if let Some(custom) = self.custom.into_inner().unwrap_or_else(PoisonError::into_inner) {
            custom.stop().await;
        }
        drop(self.server);
        let control_plane_kind = self.control_plane_kind.into_inner();
        control_plane_kind.unwrap_or_else(PoisonError::into_inner).stop().await;
    }
}
