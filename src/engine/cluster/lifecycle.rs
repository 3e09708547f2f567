//! A cluster on which scenarios are played, several at a time.

use crate::engine::cluster::access::custom_resources;
use crate::engine::cluster::metrics_api::groups::GROUPS;
use crate::engine::cluster::observe::observability::Observability;
use std::path::Path;
use std::pin::Pin;
use std::process::id;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;
use tokio::io::AsyncRead;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::engine::EngineError;
use crate::engine::cluster::access::local_address::is_own;
use crate::engine::cluster::access::{client, clock_skew};
use crate::engine::cluster::load::probe::{Endpoint, LatencyProbe};
use crate::engine::cluster::load::setup_queue::SetupQueue;
use crate::engine::cluster::metrics_api::expose::{Exposure, ListenRoute};
use crate::engine::cluster::metrics_api::register;
use crate::engine::cluster::metrics_api::register::RegistrationError;
use crate::engine::cluster::metrics_api::route::ServiceRoute;
use crate::engine::cluster::metrics_api::server::Server;
use crate::engine::cluster::metrics_api::state::Metrics;
use crate::engine::cluster::observe::dispatch::Dispatcher;
use crate::engine::cluster::observe::{audit_log, watches};
use crate::engine::cluster::provision::args::DRIVER;
use crate::engine::cluster::provision::bootstrap::broken;
use crate::engine::cluster::provision::container::Container;
use crate::engine::cluster::provision::custom_controller::{self, CustomController};
use crate::engine::cluster::provision::embedded::ControlPlane;
use crate::engine::cluster::provision::existing;
use crate::engine::cluster::provision::guard::Guard;
use crate::engine::cluster::provision::image::ImageControlPlane;
use crate::engine::cluster::provision::k3s::K3s;
use crate::engine::cluster::provision::kind::Kind;
use crate::engine::cluster::session::context::ClusterContext;
use crate::engine::cluster::session::pod_cache::PodCache;
use crate::engine::cluster::session::scenario_session::ScenarioSession;
use crate::engine::cluster::session::warm_up;
use crate::engine::cluster::settings::{Settings, UPSTREAM_USER};
use crate::engine::custom::USER;
use crate::engine::options::{ExistingCluster, HostPort};
use crate::model::time::Span;
use crate::scenario::Scenario;

/// How many scenarios have their objects made at a time.
const OPENING: usize = 3;

/// A cluster on which scenarios are played, several at a time.
pub(crate) struct Cluster {
    context: Arc<ClusterContext>,
    // Ended by `stop`; when it is only dropped, each part still ends.
    tasks: Mutex<JoinSet<()>>,
    server: Server,
    /// The user's own controller, if there is one.
    own: Mutex<Option<custom_controller::Running>>,
    control_plane_kind: Mutex<ControlPlaneKind>,
    opened: AtomicUsize,
    /// The settings that it was started with; `None` if they cannot be changed.
    settings: Option<Settings>,
    /// Whose metrics it serves.
    groups: Vec<&'static str>,
    /// Removes what was made on somebody's cluster if this process is killed.
    guard: Option<Guard>,
}

/// The component that provides the cluster.
enum ControlPlaneKind {
    Embedded(Box<ControlPlane>),
    Given(Client),
    Image(ImageControlPlane),
    K3s(K3s),
    Kind(Kind),
}

impl ControlPlaneKind {
    fn check(&mut self) -> Result<(), EngineError> {
        match self {
            ControlPlaneKind::Embedded(control_plane) => control_plane.check(),
            // A failure shows when it does not answer.
            ControlPlaneKind::Given(_) | ControlPlaneKind::Kind(_) => Ok(()),
            ControlPlaneKind::Image(boxed) => boxed.check(),
            ControlPlaneKind::K3s(k3s) => k3s.container().check(),
        }
    }

    /// The last lines of what its parts wrote, where they can be read.
    fn tail(&self) -> String {
        match self {
            ControlPlaneKind::Embedded(control_plane) => control_plane.tail(),
            ControlPlaneKind::Image(boxed) => boxed.tail(),
            ControlPlaneKind::K3s(k3s) => k3s.container().tail(),
            ControlPlaneKind::Given(_) | ControlPlaneKind::Kind(_) => String::new(),
        }
    }

    async fn stop(self) {
        match self {
            ControlPlaneKind::Embedded(control_plane) => control_plane.stop().await,
            ControlPlaneKind::Given(client) => drop(existing::clean_up(&client).await),
            ControlPlaneKind::Image(boxed) => boxed.stop().await,
            ControlPlaneKind::K3s(k3s) => k3s.stop().await,
            ControlPlaneKind::Kind(kind) => kind.stop().await,
        }
    }
}

/// How a cluster is reached, and what it tells of its controller.
struct Access {
    client: Client,
    /// The API server's audit log. Without it, watches tell less.
    log: Option<Pin<Box<dyn AsyncRead + Send>>>,
    /// The controller manager, where it can be asked whether it is well.
    controllers: Option<Client>,
    /// How much later than on this machine something may seem to be there.
    late: Span,
    /// How the metrics APIs are found.
    exposure: Exposure,
    /// A controller of the user's own that is to be started there.
    own: Option<CustomController>,
    /// The cluster does not outlive the run.
    is_disposable: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// There is nothing left that a guard would have to remove.
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
    /// To a cluster in a container.
    fn to_container(
        container: &Container,
        client: Client,
        log: impl AsyncRead + Send + 'static,
    ) -> Access {
        // Where containers are in a machine of their own, its gateway is not of this one; what
        // such an engine calls this machine leads to its loopback.
        let own = container.gateway().filter(|gateway| is_own(*gateway));
        let way = match own {
            Some(gateway) => ListenRoute::to(&HostPort { host: gateway.to_string(), port: 0 }),
            None => ListenRoute {
                routes: ServiceRoute::to("host.docker.internal"),
                ..ListenRoute::loopback()
            },
        };
        let exposure = Exposure::all(way);
        let log = Some(Box::pin(log) as Pin<Box<_>>);
        Access {
            client,
            log,
            controllers: None,
            late: Span::ZERO,
            exposure,
            own: None,
            is_disposable: true,
        }
    }
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
        let user = if settings.controller.is_some() { USER } else { UPSTREAM_USER };
        settings.observed = vec![user.to_owned()];
        let broken =
            |why: String| EngineError::Broken { engine: name.clone(), why, output: String::new() };
        let (control_plane, log) = ControlPlane::start(name, program, &settings).await?;
        let kubeconfig = control_plane.kubeconfig(DRIVER);
        let kubeconfig = kubeconfig.map_err(|error| broken(error.to_string()))?;
        let client = client::of_text(&kubeconfig).await.map_err(broken)?;
        let log = log.map(|log| Box::pin(log) as Pin<Box<_>>);
        let controllers = Some(control_plane.controllers());
        let own = CustomController::prepare(&control_plane, &settings).await.map_err(broken)?;
        let (exposure, control_plane_kind) = (
            Exposure::all(ListenRoute::loopback()),
            ControlPlaneKind::Embedded(Box::new(control_plane)),
        );
        let late = Span::ZERO;
        let access = Access { client, log, controllers, own, late, exposure, is_disposable: true };
        let furnished = Cluster::prepare(name, access, control_plane_kind).await;
        let cluster = furnished.map_err(|refusal| broken(refusal.to_string()))?;
        Ok(Cluster { settings: Some(settings), ..cluster })
    }

    /// Returns true if [`Cluster::change`] can give it these settings.
    pub(crate) fn can_become(&self, settings: &Settings) -> bool {
        self.settings.as_ref().is_some_and(|own| own.can_become(settings))
    }

    /// Gives its controllers other flags. Nobody may be playing on it.
    ///
    /// # Errors
    /// If they don't start with these; it is broken then.
    pub(crate) async fn change(&mut self, settings: &Settings) -> Result<(), EngineError> {
        let control_plane_kind =
            self.control_plane_kind.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (ControlPlaneKind::Embedded(control_plane), Some(own)) =
            (control_plane_kind, &mut self.settings)
        else {
            return Err(self.context.broken("it takes no other flags"));
        };
        own.flags = settings.flags;
        control_plane.change(own).await?;
        let is_gone = || self.check().is_err();
        let warm = warm_up::warm_up(&self.context, &is_gone).await;
        warm.map_err(|why| self.context.broken(why))
    }

    /// Somebody's cluster, with the metrics APIs of these groups served, and the sync period of its
    /// controller.
    ///
    /// # Errors
    /// If it can't be used; nothing is left there then.
    pub(crate) async fn given(
        name: &Arc<str>,
        given: &ExistingCluster,
        groups: &[&'static str],
        stop: &CancellationToken,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(Cluster, Span), EngineError> {
        let broken =
            |why: String| EngineError::Broken { engine: name.clone(), why, output: String::new() };
        let reached = existing::reach(given).await.map_err(broken)?;
        let client = reached.client.clone();
        // First the one who removes what is made.
        let guard = Guard::running(&given.cleans);
        let guard = guard.map_err(|error| broken(format!("no guard can be started: {error}")))?;
        let begun = async {
            tell("comparing the cluster's clock with this machine's");
            let skew = clock_skew::measure(&client).await.map_err(RegistrationError::Other)?;
            let late = existing::clock_uncertainty(skew).map_err(RegistrationError::Other)?;
            let exposure = existing::ways(given, &reached, groups).await;
            let exposure = exposure.map_err(RegistrationError::Other)?;
            tell("registering the metrics API");
            let client = client.clone();
            let control_plane_kind = ControlPlaneKind::Given(client.clone());
            let (log, controllers, own) = (None, None, None);
            let access =
                Access { client, log, controllers, own, late, exposure, is_disposable: false };
            let cluster = Cluster::prepare(name, access, control_plane_kind).await?;
            tell("measuring the cluster's sync period, which takes three of them");
            let period = warm_up::measure(&cluster.context, groups).await;
            Ok::<_, RegistrationError>((cluster, period.map_err(RegistrationError::Other)?))
        };
        let begun = tokio::select! {
            begun = begun => begun.map_err(|refusal| existing::explain(name, given, refusal)),
            () = stop.cancelled() => Err(broken("it was interrupted".to_owned())),
        };
        match begun {
            Ok((cluster, period)) => Ok((Cluster { guard, ..cluster }, period)),
            Err(error) => {
                let left = existing::clean_up(&client).await;
                left.map_err(|left| broken(existing::not_removed(given, &left)))?;
                disarm(guard).await;
                Err(error)
            }
        }
    }

    /// A control plane in a container of that image, with the metrics APIs served.
    ///
    /// # Errors
    /// If a part of it can't be started.
    pub(crate) async fn image(
        name: &Arc<str>,
        image: &str,
        mut settings: Settings,
    ) -> Result<Cluster, EngineError> {
        settings.observed = vec![UPSTREAM_USER.to_owned()];
        let (boxed, client, log) = ImageControlPlane::start(name, image, &settings).await?;
        let access = Access {
            controllers: Some(boxed.controllers()),
            ..Access::to_container(boxed.container(), client, log)
        };
        let made = Cluster::prepare(name, access, ControlPlaneKind::Image(boxed)).await;
        made.map_err(|refusal| broken(name, &refusal.to_string(), ""))
    }

    /// k3s in a container of that image, with the metrics APIs served.
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
        let made = Cluster::prepare(name, access, ControlPlaneKind::K3s(k3s)).await;
        made.map_err(|refusal| broken(name, &refusal.to_string(), ""))
    }

    /// A new cluster of kind's of that image, with the metrics APIs served.
    ///
    /// # Errors
    /// If it can't be made.
    pub(crate) async fn kind(
        name: &Arc<str>,
        image: &str,
        settings: &Settings,
    ) -> Result<Cluster, EngineError> {
        let broken = |why: String| broken(name, &why, "");
        let kind = Kind::create(name, image, settings).await?;
        let given = ExistingCluster {
            kubeconfig: Some(kind.kubeconfig()),
            context: kind.context(),
            metrics_address: existing::beside_containers(),
            ..ExistingCluster::default()
        };
        let reached = existing::reach(&given).await.map_err(broken)?;
        let groups = GROUPS.map(|(group, _)| group);
        let exposure = existing::ways(&given, &reached, &groups).await.map_err(broken)?;
        let (client, late) = (reached.client, Span::ZERO);
        custom_resources::install(&client, &settings.custom_kinds).await.map_err(broken)?;
        let (log, controllers) = (None, None);
        let access =
            Access { client, log, controllers, late, exposure, own: None, is_disposable: true };
        let made = Cluster::prepare(name, access, ControlPlaneKind::Kind(kind)).await;
        made.map_err(|refusal| broken(refusal.to_string()))
    }

    /// Gives a cluster what scenarios need.
    async fn prepare(
        name: &Arc<str>,
        access: Access,
        control_plane_kind: ControlPlaneKind,
    ) -> Result<Cluster, RegistrationError> {
        let Access { client, log, controllers, own, late, exposure, is_disposable } = access;
        let metrics = Arc::new(Metrics::of_cluster(is_disposable));
        let dispatcher = Arc::new(Dispatcher::default());
        // Its registration goes with the cluster, or is removed with all else.
        let (server, _) = exposure.serve(&client, &metrics).await?;
        let mut tasks = JoinSet::new();
        let mut observability = observe(&client, log, &dispatcher, &mut tasks);
        observability.uncertainty = Span(observability.uncertainty.0 + late.0);
        let seen = PodCache::watching(&client, &dispatcher, &mut tasks);
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
        let own = own.map(CustomController::start).transpose();
        let own = own.map_err(|error| format!("the controller can't be started: {error}"));
        let own = own.map_err(RegistrationError::Other)?;
        let said = own.as_ref().map(|own| own.log().clone());
        let setup_queue = SetupQueue::new(OPENING);
        let context = ClusterContext {
            name,
            client,
            metrics,
            dispatcher,
            seen,
            probe,
            said,
            observability,
            setup_queue,
            sessions: Arc::default(),
            is_disposable,
        };
        let (context, own, tasks) = (Arc::new(context), Mutex::new(own), Mutex::new(tasks));
        let (control_plane_kind, opened) = (Mutex::new(control_plane_kind), AtomicUsize::new(0));
        let guard = None;
        let groups = exposure.groups;
        let settings = None;
        let cluster = Cluster {
            context,
            tasks,
            server,
            own,
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

    /// The error of a scenario that did not finish because the run was interrupted.
    pub(crate) fn interrupted(&self) -> EngineError {
        self.context.broken("it was interrupted")
    }

    /// Opens a scenario when its turn has come. Nothing if it is to stop before that.
    ///
    /// # Errors
    /// If the API server refuses.
    pub(crate) async fn open(
        &self,
        scenario: &Scenario,
        stop: &CancellationToken,
    ) -> Result<Option<ScenarioSession>, EngineError> {
        let turn = tokio::select! {
            turn = self.context.turn(scenario.until) => turn,
            () = stop.cancelled() => return Ok(None),
        };
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("kube-lockstep-{}-{number}", id());
        ScenarioSession::open(&self.context, namespace, scenario, turn).await.map(Some)
    }

    /// The extent of observations of its controller.
    pub(crate) fn observability(&self) -> Observability {
        self.context.observability
    }

    /// Returns true if all of it still runs.
    ///
    /// # Errors
    /// If not, with what the part said that does not.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let ended = lock(&self.tasks).try_join_next();
        if ended.is_some_and(|ended| ended.is_err_and(|error| error.is_panic())) {
            self.context
                .dispatcher
                .mark_incomplete("the harness panicked: it does not see all any more".into());
        }
        if let Some(why) = self.context.dispatcher.incomplete() {
            return Err(self.context.broken(why));
        }
        lock(&self.control_plane_kind).check()?;
        lock(&self.own).as_mut().map_or(Ok(()), |own| own.check(&self.context.name))
    }

    /// The same, with the last lines of what its parts wrote where it has none.
    pub(crate) fn with_tail(&self, error: EngineError) -> EngineError {
        match error {
            EngineError::Broken { engine, why, output } if output.is_empty() => {
                EngineError::Broken { engine, why, output: lock(&self.control_plane_kind).tail() }
            }
            error => error,
        }
    }

    /// Why its controller may have seen no metrics, where others have a say: an add-on manager may
    /// put the cluster's own metrics API back at any time.
    pub(crate) async fn registration_lost(&self) -> Option<EngineError> {
        let is_shared = !self.context.is_disposable;
        let why = match is_shared {
            true => register::registration_lost(&self.context.client, &self.groups).await?,
            false => return None,
        };
        Some(self.context.broken(why))
    }

    /// Removes all that was made on somebody's cluster.
    ///
    /// # Errors
    /// Removes what was created. The error names what is left, and how to remove it.
    pub(crate) async fn leave(mut self, given: &ExistingCluster) -> Result<(), EngineError> {
        self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner).shutdown().await;
        let left = existing::clean_up(&self.context.client).await;
        left.map_err(|left| self.context.broken(existing::not_removed(given, &left)))?;
        disarm(self.guard.take()).await;
        Ok(())
    }

    /// Ends it, and waits until nothing of it is left.
    pub(crate) async fn stop(mut self) {
        self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner).shutdown().await;
        if let Some(own) = self.own.into_inner().unwrap_or_else(PoisonError::into_inner) {
            own.stop().await;
        }
        drop(self.server);
        let control_plane_kind = self.control_plane_kind.into_inner();
        control_plane_kind.unwrap_or_else(PoisonError::into_inner).stop().await;
    }
}
