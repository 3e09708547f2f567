//! The metrics server: serves the metrics of scenarios for a cluster's own pods.
//!
//! It creates APIServices and one namespace in the cluster, and changes nothing else. All objects
//! are removed at the end. The objects of a killed process are removed by its guard, or by the next
//! start.

mod event;
mod selection;

use std::any::Any;
use std::ffi::OsString;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::cluster::access::connect::Connection;
use crate::cluster::access::local_address::own_address;
use crate::cluster::metrics_api::expose::{Exposure, ListenRoute};
use crate::cluster::metrics_api::groups;
use crate::cluster::metrics_api::groups::{
    CUSTOM_METRICS, EXTERNAL_METRICS, NAMESPACE, RESOURCE_METRICS,
};
use crate::cluster::metrics_api::register;
use crate::cluster::metrics_api::register::{ForeignApiService, Registration, RegistrationError};
use crate::cluster::metrics_api::server::Server;
use crate::cluster::metrics_api::state::Metrics;
use crate::cluster::session::live_pods::LivePods;
use kube_lockstep_engines::guard::cluster::Guard;
use kube_lockstep_engines::options::{HostPort, command_line};
use kube_lockstep_engines::runtime;
use kube_lockstep_engines::runtime::Threads;
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::world::Mirror;

pub use crate::cluster::metrics_api::query::Query;
pub use event::{ServerError, ServerEvent};
pub use selection::ClusterSelection;

/// The timeout for the initial list of pods.
const LIST_LIMIT: Duration = Duration::from_secs(20);

/// The time after which an abandoned request can no longer take effect.
const ABANDONED_REQUEST_TIMEOUT: Duration = Duration::from_millis(300);

/// A scenario, and the namespace whose pods get its metrics.
#[derive(Clone, Debug)]
pub struct ServedScenario {
    pub scenario: Arc<Scenario>,
    pub namespace: String,
}

/// The configuration of the server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The cluster.
    pub selection: ClusterSelection,
    /// The scenarios, each with a different namespace.
    pub scenarios: Vec<ServedScenario>,
    /// The speed of the scenarios' clocks.
    pub speed: NonZero<u32>,
    /// The address for the API server. Default: the first address that works.
    pub listen: Option<HostPort>,
    /// True if existing metrics APIs may be replaced.
    pub may_replace: bool,
    /// True if the server is registered in the cluster.
    pub register: bool,
    /// A command that removes the leftovers of dead processes, like [`remove`]. It runs when this
    /// process is killed. If it is empty, the next process removes the leftovers.
    pub cleanup_command: Vec<OsString>,
}

/// Serves until `stop` is set, and removes all created objects.
///
/// # Errors
/// If the server can't run, or some objects could not be removed.
pub fn serve(
    config: &ServerConfig,
    stop: &CancellationToken,
    report: &mut dyn FnMut(ServerEvent),
) -> Result<(), ServerError> {
    let runtime = runtime()?;
    let cluster = runtime.block_on(config.selection.connect())?;
    let guard = match config.register {
        true => runtime.block_on(async { Guard::running(&config.cleanup_command) }),
        false => Ok(None),
    };
    let guard =
        guard.map_err(|error| ServerError::new(format!("no guard can be started: {error}")))?;
    let mut is_served = false;
    let run = AssertUnwindSafe(|| {
        let mut report = |event: ServerEvent| {
            is_served |= matches!(event, ServerEvent::Serving { .. });
            report(event);
        };
        runtime.block_on(async {
            tokio::select! {
                ended = serving(config, &cluster, &mut report) => ended,
                () = stop.cancelled() => Ok(()),
            }
        })
    });
    let ended: Result<Result<(), ServerError>, Box<dyn Any + Send>> = catch_unwind(run);
    if config.register {
        let removed = runtime.block_on(async {
            let mut removed = register::remove_own(&cluster.client).await?;
            if !is_served {
                // A request that was in progress may have created another object.
                sleep(ABANDONED_REQUEST_TIMEOUT).await;
                removed.extend(register::remove_own(&cluster.client).await?);
            }
            Ok(removed)
        });
        match (&ended, removed) {
            (_, Ok(removed)) => {
                if let Some(guard) = guard {
                    runtime.block_on(guard.disarm());
                }
                if !removed.is_empty() {
                    report(ServerEvent::Removed { what: removed });
                }
            }
            (Ok(_), Err(why)) => return Err(not_removed(config, &ended, why)),
            (Err(_), Err(_)) => {}
        }
    }
    ended.unwrap_or_else(|panic| resume_unwind(panic))
}

fn not_removed<E>(
    config: &ServerConfig,
    ended: &Result<Result<(), ServerError>, E>,
    why: String,
) -> ServerError {
    let first = match ended {
        Ok(Err(error)) => format!("{error}; "),
        _ => String::new(),
    };
    let hint = format!("run `{}` to try again", command_line(&config.cleanup_command));
    let what = format!("{first}some objects could not be removed: {why}");
    ServerError::new(Diagnostic::new(what).hint(hint))
}

/// Removes the leftovers of dead processes from a cluster, and reports live processes.
///
/// # Errors
/// If the API server rejects a request.
pub fn remove(
    selection: &ClusterSelection,
    report: &mut dyn FnMut(ServerEvent),
) -> Result<(), ServerError> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let cluster = selection.connect().await?;
        selection::report(&cluster, report).await?;
        let removed =
            register::remove_leftovers(&cluster.client).await.map_err(ServerError::new)?;
        report(ServerEvent::Removed { what: removed });
        for left in register::leftovers(&cluster.client).await.map_err(ServerError::new)? {
            let (what, owner) = (left.what.join(", "), left.owner.describe());
            let note = format!("{what}: in use by {owner}, which is running");
            report(ServerEvent::Note { note });
        }
        Ok(())
    })
}

fn runtime() -> Result<Runtime, ServerError> {
    runtime::start(Threads::Background(2)).map_err(ServerError::new)
}

async fn serving(
    config: &ServerConfig,
    cluster: &Connection,
    report: &mut dyn FnMut(ServerEvent),
) -> Result<(), ServerError> {
    selection::report(cluster, report).await?;
    let groups = groups(&config.scenarios);
    if config.register {
        plan(config, cluster, &groups, report).await?;
    }
    let (queries, query_log) = unbounded_channel();
    let metrics = Arc::new(Metrics::with_query_log(queries));
    let (notes, noted) = unbounded_channel();
    let mut watching = JoinSet::new();
    let mut all = Vec::new();
    for served in &config.scenarios {
        let pods = Arc::new(LivePods::new(&served.namespace, &served.scenario.workload));
        let (ready, is_ready) = watch::channel(false);
        let (own, client) = (pods.clone(), cluster.client.clone());
        let (metrics, notes) = (metrics.clone(), notes.clone());
        watching.spawn(async move { own.watch(&client, &metrics, ready, notes).await });
        all.push((served, pods, is_ready));
    }
    let mut noted = noted;
    for (served, pods, ready) in &mut all {
        if timeout(LIST_LIMIT, ready.wait_for(|ready| *ready)).await.is_err() {
            let why = noted.try_recv().unwrap_or_else(|_| "no answer".to_owned());
            let what = format!("the pods of {} can't be watched: {why}", served.namespace);
            return Err(ServerError::new(what));
        }
        let note = format!("{}: {}", served.namespace, pods.describe());
        report(ServerEvent::Note { note });
    }
    let (server, registered) = start(config, cluster, &metrics, &groups).await?;
    let since = Timestamp::now();
    for (served, pods, _) in &all {
        let mirror = Mirror::new(&served.scenario, config.speed).map_err(ServerError::new)?;
        if !mirror.left_out().is_empty() {
            let what = mirror.left_out().join(", ");
            let (namespace, id) = (&served.namespace, &served.scenario.id);
            report(ServerEvent::Note {
                note: format!(
                    "{namespace}: ignoring actions of {id} that do not affect metrics: {what}"
                ),
            });
        }
        let name = &served.scenario.namespace;
        metrics.open_mirror(&served.namespace, name, mirror, |epoch| pods.pods(epoch));
        // A pod may have been created meanwhile.
        metrics.see(&served.namespace, |epoch| pods.pods(epoch));
    }
    report(ServerEvent::Serving {
        groups,
        address: server.address.to_string(),
        route: registered.map(|it| it.route.to_string()),
        since,
    });
    report_activity(query_log, noted, report).await;
    drop(server);
    Ok(())
}

/// The groups that the scenarios have metrics for.
fn groups(scenarios: &[ServedScenario]) -> Vec<&'static str> {
    let any = |has: fn(&Scenario) -> bool| scenarios.iter().any(|served| has(&served.scenario));
    let mut groups = Vec::new();
    if any(|it| !it.metrics.resources.is_empty()) {
        groups.push(RESOURCE_METRICS);
    }
    if any(|it| !it.metrics.pods.is_empty() || !it.metrics.objects.is_empty()) {
        groups.push(CUSTOM_METRICS);
    }
    if any(|it| !it.metrics.externals.is_empty()) {
        groups.push(EXTERNAL_METRICS);
    }
    groups
}

/// Inspects the cluster, and announces the objects to create.
async fn plan(
    config: &ServerConfig,
    cluster: &Connection,
    groups: &[&'static str],
    report: &mut dyn FnMut(ServerEvent),
) -> Result<(), ServerError> {
    let cleaned = register::remove_leftovers(&cluster.client).await.map_err(ServerError::new)?;
    if !cleaned.is_empty() {
        report(ServerEvent::Cleaned { what: cleaned });
    }
    let foreign = register::foreign(&cluster.client, groups).await?;
    if !foreign.is_empty() && !config.may_replace {
        return Err(RegistrationError::Taken(foreign).into());
    }
    let is_foreign = |name: &str| foreign.iter().any(|it| it.name == name);
    let names = groups::versions_of(groups).into_iter().map(|it| it.api_service());
    let own = names.filter(|name| !is_foreign(name)).map(|name| format!("APIService {name}"));
    let namespace = format!("namespace {NAMESPACE} with a Service");
    report(ServerEvent::Creates { what: std::iter::once(namespace).chain(own).collect() });
    if !foreign.is_empty() {
        let one = |it: &ForeignApiService| format!("APIService {} of {}", it.name, it.service);
        report(ServerEvent::Replaces { what: foreign.iter().map(one).collect() });
        let note = "until the end, only the served namespaces have these metrics: HPAs in other \
                    namespaces keep their replicas";
        report(ServerEvent::Note { note: note.to_owned() });
    }
    Ok(())
}

/// Starts the server, and registers it with the first route that works.
async fn start(
    config: &ServerConfig,
    cluster: &Connection,
    metrics: &Arc<Metrics>,
    groups: &[&'static str],
) -> Result<(Server, Option<Registration>), ServerError> {
    if !config.register {
        let way = config.listen.as_ref().map_or_else(ListenRoute::loopback, ListenRoute::to);
        let server = Server::start(metrics.clone(), &way.listen).await;
        let server = server.map_err(ServerError::with_port_hint)?;
        return Ok((server, None));
    }
    let server = cluster.address().await.map_err(ServerError::new)?;
    let reach = Exposure {
        addresses: ListenRoute::all(config.listen.as_ref(), server, own_address),
        groups: groups.to_vec(),
        replace: config.may_replace,
    };
    let (server, registered) = reach.serve(&cluster.client, metrics).await?;
    Ok((server, Some(registered)))
}

/// Reports queries and notes until the future is dropped.
async fn report_activity(
    mut query_log: UnboundedReceiver<Query>,
    mut noted: UnboundedReceiver<String>,
    report: &mut dyn FnMut(ServerEvent),
) {
    loop {
        tokio::select! {
            Some(query) = query_log.recv() => report(ServerEvent::Query(query)),
            Some(note) = noted.recv() => report(ServerEvent::Note { note }),
            else => std::future::pending::<()>().await,
        }
    }
}
