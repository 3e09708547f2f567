//! The fake metrics API for any cluster: the metric signals of scenarios, for the cluster's own
//! pods, and for as long as somebody wants them.
//!
//! It is known to the cluster by APIServices and one namespace, and nothing else of the cluster is
//! touched. All of it goes at the end; what is left of a process that was killed is removed by the
//! next one.

use std::any::Any;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::Uri;
use jiff::Timestamp;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::lookup_host;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::cluster::client;
use super::cluster::metrics_api::{Metrics, NAMESPACE, Server};
pub use super::cluster::queries::Query;
use super::cluster::real_pods::RealPods;
use super::cluster::registration::{self, Foreign, Options, Refusal, Registration};
use super::cluster::route::{Route, own_address};
use crate::scenario::Scenario;
use crate::world::Mirror;

/// How often it is looked whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);

/// How long it may take until all pods were seen.
const LIST_LIMIT: Duration = Duration::from_secs(20);

/// So long a request that nobody waits for any more may still have its effect.
const AFTERMATH: Duration = Duration::from_millis(300);

/// Which cluster is meant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Which {
    /// The file; else those that `KUBECONFIG` names, or the usual one.
    pub kubeconfig: Option<PathBuf>,
    /// The context. Without one, a file that is named explicitly has to have a current one.
    pub context: Option<String>,
}

/// Where the API server finds the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// A name or an address of this machine.
    pub host: String,
    /// The port; 0: one that is free.
    pub port: u16,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let wrong = || "it is HOST or HOST:PORT, for instance 192.168.1.20:4443".to_owned();
        let (host, port) = match text.rsplit_once(':') {
            // An address of version 6 alone.
            _ if text.parse::<Ipv6Addr>().is_ok() => (text, 0),
            Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
            None => (text, 0),
        };
        let host = host.trim_matches(['[', ']']);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
        if host.is_empty() || !host.chars().all(plain) {
            return Err(wrong());
        }
        if host.parse::<IpAddr>().is_ok_and(|it| it.is_unspecified() || it.is_multicast()) {
            return Err(format!("{host} is no address of a machine"));
        }
        Ok(Place { host: host.to_owned(), port })
    }
}

/// A scenario, and the namespace whose pods have its metrics.
#[derive(Clone, Debug)]
pub struct Part {
    /// The scenario.
    pub scenario: Arc<Scenario>,
    /// The namespace.
    pub namespace: String,
}

/// What is to be served.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Where.
    pub which: Which,
    /// Each namespace once.
    pub parts: Vec<Part>,
    /// How many times as fast as it is written.
    pub speed: NonZero<u32>,
    /// Where the API server finds it; else it is tried out.
    pub place: Option<Place>,
    /// Whether metrics APIs that the cluster has may be replaced meanwhile.
    pub replaces: bool,
    /// Whether the cluster is told of it at all.
    pub registers: bool,
}

/// What is told while it is served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// Which cluster it is.
    Cluster {
        /// Where its API server is.
        server: String,
        /// What it says that it is.
        version: String,
    },
    /// What a process that had died had left there, and was removed now.
    Cleaned(Vec<String>),
    /// What is going to be made there.
    Creates(Vec<String>),
    /// What is going to be replaced there, and restored.
    Replaces(Vec<String>),
    /// Something that one should know.
    Note(String),
    /// From now on it is served.
    Serving {
        /// The groups.
        groups: Vec<&'static str>,
        /// Where it listens.
        address: String,
        /// How the API server reaches it, if it is registered.
        route: Option<String>,
        /// Which instant is t=0.
        since: Timestamp,
    },
    /// It was asked.
    Query(Query),
    /// What was removed at the end.
    Removed(Vec<String>),
}

/// Why it can't be served, or not all was removed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Whether the one who asked for it can ask otherwise.
    pub of_usage: bool,
}

impl Trouble {
    fn new(what: impl Into<String>) -> Trouble {
        Trouble { what: what.into(), hint: None, of_usage: false }
    }

    fn usage(what: impl Into<String>, hint: impl Into<String>) -> Trouble {
        Trouble { what: what.into(), hint: Some(hint.into()), of_usage: true }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Trouble {}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Trouble {
        let what = refusal.to_string();
        match refusal {
            Refusal::Taken(_) => Trouble::usage(
                what,
                "--replace-metrics-api puts this one in its place while it runs, and restores it",
            ),
            Refusal::Served(..) => Trouble::usage(what, "end that one first"),
            Refusal::Unreached(_) => Trouble {
                hint: Some(
                    "--metrics-address HOST[:PORT] says where the API server finds this machine, \
                     for instance the gateway of the network of a cluster in containers"
                        .to_owned(),
                ),
                ..Trouble::new(what)
            },
            Refusal::Other(_) => Trouble::new(what),
        }
    }
}

/// Serves until it is told to stop, and removes all that it has made.
///
/// # Errors
/// If it can't be served, or not all of it could be removed.
pub fn serve(
    wanted: &Wanted,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Told),
) -> Result<(), Trouble> {
    let runtime = runtime()?;
    let cluster = runtime.block_on(Reached::by(&wanted.which))?;
    let run = AssertUnwindSafe(|| {
        runtime.block_on(async {
            tokio::select! {
                ended = serving(wanted, &cluster, tell) => ended,
                () = until(stop) => Ok(()),
            }
        })
    });
    let ended: Result<Result<(), Trouble>, Box<dyn Any + Send>> = catch_unwind(run);
    if wanted.registers {
        let removed = runtime.block_on(async {
            let mut removed = registration::remove_own(&cluster.client).await?;
            // What was being made when it was told to stop.
            sleep(AFTERMATH).await;
            removed.extend(registration::remove_own(&cluster.client).await?);
            Ok(removed)
        });
        match (&ended, removed) {
            (_, Ok(removed)) if removed.is_empty() => {}
            (_, Ok(removed)) => tell(Told::Removed(removed)),
            (Ok(_), Err(why)) => return Err(not_removed(&ended, why)),
            (Err(_), Err(_)) => {}
        }
    }
    ended.unwrap_or_else(|panic| resume_unwind(panic))
}

fn not_removed<E>(ended: &Result<Result<(), Trouble>, E>, why: String) -> Trouble {
    let first = match ended {
        Ok(Err(trouble)) => format!("{trouble}; "),
        _ => String::new(),
    };
    Trouble {
        hint: Some("`kube-lockstep metrics-server --remove` tries it again".to_owned()),
        ..Trouble::new(format!("{first}not all of it could be removed: {why}"))
    }
}

/// Removes what dead processes have left in a cluster. Those that live are told of.
///
/// # Errors
/// If the API server refuses.
pub fn remove(which: &Which, tell: &mut dyn FnMut(Told)) -> Result<(), Trouble> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let cluster = Reached::by(which).await?;
        cluster.tell(tell).await?;
        let removed = registration::clear(&cluster.client).await.map_err(Trouble::new)?;
        tell(Told::Removed(removed));
        for left in registration::leftovers(&cluster.client).await.map_err(Trouble::new)? {
            let (what, owner) = (left.what.join(", "), left.owner.told());
            tell(Told::Note(format!("{what}: in use by {owner}, which lives")));
        }
        Ok(())
    })
}

fn runtime() -> Result<Runtime, Trouble> {
    let runtime = Builder::new_multi_thread().enable_all().worker_threads(2).build();
    runtime.map_err(|error| Trouble::new(format!("no thread can be started: {error}")))
}

async fn until(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        sleep(GLANCE).await;
    }
}

/// A cluster that can be asked.
struct Reached {
    client: Client,
    server: Uri,
}

impl Reached {
    async fn by(which: &Which) -> Result<Reached, Trouble> {
        let read = match &which.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        let config = read.map_err(|error| {
            let what = format!("no kubeconfig can be read: {}", chain(&error));
            Trouble::usage(what, "--kubeconfig names one, and --context a cluster of it")
        })?;
        let names: Vec<&str> = config.contexts.iter().map(|it| it.name.as_str()).collect();
        let hint = match names.is_empty() {
            true => "the kubeconfig has no contexts".to_owned(),
            false => format!("there are: {}", names.join(", ")),
        };
        match &which.context {
            None if which.kubeconfig.is_none() => {
                let what = "it is not said which cluster is meant: --context names it";
                return Err(Trouble::usage(what, hint));
            }
            None if config.current_context.is_none() => {
                let what = "the kubeconfig has no current context: --context names one";
                return Err(Trouble::usage(what, hint));
            }
            Some(name) if !names.contains(&name.as_str()) => {
                let what = format!("the kubeconfig has no context `{name}`");
                return Err(Trouble::usage(what, hint));
            }
            _ => {}
        }
        let options = KubeConfigOptions { context: which.context.clone(), ..Default::default() };
        let config = Config::from_custom_kubeconfig(config, &options).await;
        let config = config.map_err(|error| Trouble::new(chain(&error)))?;
        let server = config.cluster_url.clone();
        Ok(Reached { client: client::of(config).map_err(Trouble::new)?, server })
    }

    async fn tell(&self, tell: &mut dyn FnMut(Told)) -> Result<(), Trouble> {
        let server = self.server.to_string().trim_end_matches('/').to_owned();
        let info = self.client.apiserver_version().await;
        let info = info.map_err(|error| Trouble::new(format!("{server}: {}", chain(&error))))?;
        tell(Told::Cluster { server, version: info.git_version });
        Ok(())
    }

    /// Where the API server is, as an address.
    async fn address(&self) -> Result<Option<IpAddr>, Trouble> {
        let host = self.server.host().unwrap_or_default().trim_matches(['[', ']']);
        let found = lookup_host((host, self.server.port_u16().unwrap_or(443))).await;
        let found =
            found.map_err(|error| Trouble::new(format!("{host} is not found: {error}")))?.next();
        Ok(found.map(|it| it.ip()))
    }
}

/// An error with what it comes from.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let why = error.to_string();
        if !text.contains(&why) {
            text = format!("{text}: {why}");
        }
        source = error.source();
    }
    text
}

/// Where to listen, and by which ways the API server may reach that.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Try {
    listen: String,
    routes: Vec<Route>,
}

impl Try {
    fn at(address: IpAddr, port: u16, routes: Vec<Route>) -> Try {
        Try { listen: std::net::SocketAddr::new(address, port).to_string(), routes }
    }

    /// All that there are, the first one to be tried first. An API server at loopback may be a
    /// process of this machine, or be in a container whose port is handed on.
    fn all(
        place: Option<&Place>,
        server: Option<IpAddr>,
        own: impl FnOnce(Option<IpAddr>) -> Option<IpAddr>,
    ) -> Vec<Try> {
        let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
        if let Some(Place { host, port }) = place {
            let address = match host.as_str() {
                "localhost" => Some(loopback),
                host => host.parse::<IpAddr>().ok(),
            };
            // Behind a router, or in another network, it is this machine's only for others.
            let listens = address.filter(|it| TcpListener::bind((*it, 0)).is_ok());
            let any = match address {
                Some(IpAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
                _ => Ipv4Addr::UNSPECIFIED.into(),
            };
            return vec![Try::at(listens.unwrap_or(any), *port, Route::to(host))];
        }
        let mut all = Vec::new();
        if server.is_some_and(|it| it.is_loopback()) {
            all.push(Try::at(loopback, 0, Route::to("localhost")));
        }
        all.extend(own(server).map(|own| Try::at(own, 0, Route::to(&own.to_string()))));
        all
    }
}

async fn serving(
    wanted: &Wanted,
    cluster: &Reached,
    tell: &mut dyn FnMut(Told),
) -> Result<(), Trouble> {
    cluster.tell(tell).await?;
    let groups = groups(&wanted.parts);
    if wanted.registers {
        plan(wanted, cluster, &groups, tell).await?;
    }
    let (queries, asked) = unbounded_channel();
    let metrics = Arc::new(Metrics::told_to(queries));
    let (notes, noted) = unbounded_channel();
    let mut watching = JoinSet::new();
    let mut all = Vec::new();
    for part in &wanted.parts {
        let pods = Arc::new(RealPods::new(&part.namespace, &part.scenario.workload));
        let (ready, is_ready) = watch::channel(false);
        let (own, client) = (pods.clone(), cluster.client.clone());
        let (metrics, notes) = (metrics.clone(), notes.clone());
        watching.spawn(async move { own.watch(&client, &metrics, ready, notes).await });
        all.push((part, pods, is_ready));
    }
    let mut noted = noted;
    for (part, pods, ready) in &mut all {
        if timeout(LIST_LIMIT, ready.wait_for(|ready| *ready)).await.is_err() {
            let why = noted.try_recv().unwrap_or_else(|_| "no answer".to_owned());
            let what = format!("the pods of {} can't be watched: {why}", part.namespace);
            return Err(Trouble::new(what));
        }
        tell(Told::Note(format!("{}: {}", part.namespace, pods.told())));
    }
    let (server, registered) = start(wanted, cluster, (&metrics, &groups)).await?;
    let since = Timestamp::now();
    for (part, pods, _) in &all {
        let mirror = Mirror::new(&part.scenario, wanted.speed).map_err(Trouble::new)?;
        if !mirror.left_out().is_empty() {
            let what = mirror.left_out().join(", ");
            let (namespace, id) = (&part.namespace, &part.scenario.id);
            tell(Told::Note(format!("{namespace}: not of metrics, left out of {id}: {what}")));
        }
        let called = &part.scenario.namespace;
        metrics.open_mirror(&part.namespace, (called, mirror), |epoch| pods.pods(epoch));
        // One may have come meanwhile.
        metrics.see(&part.namespace, |epoch| pods.pods(epoch));
    }
    tell(Told::Serving {
        groups,
        address: server.address.to_string(),
        route: registered.map(|it| it.route.to_string()),
        since,
    });
    hand_on(asked, noted, tell).await;
    drop(server);
    Ok(())
}

/// The groups that the scenarios have metrics for.
fn groups(parts: &[Part]) -> Vec<&'static str> {
    let any = |has: fn(&Scenario) -> bool| parts.iter().any(|part| has(&part.scenario));
    let mut groups = Vec::new();
    if any(|it| !it.metrics.resources.is_empty()) {
        groups.push("metrics.k8s.io");
    }
    if any(|it| !it.metrics.pods.is_empty() || !it.metrics.objects.is_empty()) {
        groups.push("custom.metrics.k8s.io");
    }
    if any(|it| !it.metrics.externals.is_empty()) {
        groups.push("external.metrics.k8s.io");
    }
    groups
}

/// Looks what there is, and tells what is going to be made.
async fn plan(
    wanted: &Wanted,
    cluster: &Reached,
    groups: &[&'static str],
    tell: &mut dyn FnMut(Told),
) -> Result<(), Trouble> {
    let cleaned = registration::clear(&cluster.client).await.map_err(Trouble::new)?;
    if !cleaned.is_empty() {
        tell(Told::Cleaned(cleaned));
    }
    let foreign = registration::foreign(&cluster.client, groups).await?;
    if !foreign.is_empty() && !wanted.replaces {
        return Err(Refusal::Taken(foreign).into());
    }
    let of_others = |name: &str| foreign.iter().any(|it| it.name == name);
    let names = registration::api_services(groups).map(|(name, ..)| name);
    let own = names.filter(|name| !of_others(name)).map(|name| format!("APIService {name}"));
    let namespace = format!("namespace {NAMESPACE} with a Service");
    tell(Told::Creates(std::iter::once(namespace).chain(own).collect()));
    if !foreign.is_empty() {
        let one = |it: &Foreign| format!("APIService {} of {}", it.name, it.service);
        tell(Told::Replaces(foreign.iter().map(one).collect()));
        tell(Told::Note(
            "meanwhile only the namespaces that are served have these metrics: HPAs of others \
             stay at their size"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Starts the server, and makes it known by the first way that works.
async fn start(
    wanted: &Wanted,
    cluster: &Reached,
    (metrics, groups): (&Arc<Metrics>, &[&'static str]),
) -> Result<(Server, Option<Registration>), Trouble> {
    if !wanted.registers {
        let place = Place { host: "localhost".to_owned(), port: 0 };
        let place = wanted.place.as_ref().unwrap_or(&place);
        let to = Try::all(Some(place), None, |_| None);
        let listen = to.first().map_or("127.0.0.1:0", |to| &to.listen);
        let server = Server::start(metrics.clone(), listen).await.map_err(Trouble::new)?;
        return Ok((server, None));
    }
    let mut tried = Vec::new();
    for to in Try::all(wanted.place.as_ref(), cluster.address().await?, own_address) {
        let server = Server::start(metrics.clone(), &to.listen).await.map_err(Trouble::new)?;
        let options =
            Options { routes: to.routes, groups: groups.to_vec(), replace: wanted.replaces };
        match Registration::register(&cluster.client, &server, &options).await {
            Ok(registered) => return Ok((server, Some(registered))),
            Err(Refusal::Unreached(why)) => tried.push(why),
            Err(refusal) => return Err(refusal.into()),
        }
    }
    let why = match tried.is_empty() {
        true => "this machine has no address but loopback".to_owned(),
        false => tried.join("; "),
    };
    Err(Refusal::Unreached(why).into())
}

/// Tells of queries and of what changes, for ever.
async fn hand_on(
    mut asked: UnboundedReceiver<Query>,
    mut noted: UnboundedReceiver<String>,
    tell: &mut dyn FnMut(Told),
) {
    loop {
        tokio::select! {
            Some(query) = asked.recv() => tell(Told::Query(query)),
            Some(note) = noted.recv() => tell(Told::Note(note)),
            else => std::future::pending::<()>().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_host_and_maybe_a_port() {
        let of = |host: &str, port| Ok(Place { host: host.to_owned(), port });
        assert_eq!("10.0.0.7".parse(), of("10.0.0.7", 0));
        assert_eq!("10.0.0.7:4443".parse(), of("10.0.0.7", 4443));
        assert_eq!("[fd00::7]:4443".parse(), of("fd00::7", 4443));
        assert_eq!("fd00::7".parse(), of("fd00::7", 0));
        assert_eq!("host.docker.internal:1".parse(), of("host.docker.internal", 1));
        for wrong in ["", ":1", "0.0.0.0", "a:x", "10.0.0.7:99999", "a b", "https://a"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_server_at_loopback_may_also_be_in_a_container() {
        let near = IpAddr::from(Ipv4Addr::LOCALHOST);
        let (own, far) = (IpAddr::from([10, 0, 0, 7]), IpAddr::from([10, 0, 0, 1]));
        let tries = |server: IpAddr| Try::all(None, Some(server), |_| Some(own));
        let of_own = Try { listen: "10.0.0.7:0".to_owned(), routes: Route::to("10.0.0.7") };
        let of_loopback =
            Try { listen: "127.0.0.1:0".to_owned(), routes: vec![Route::Name("localhost".into())] };
        assert_eq!(tries(near), [of_loopback.clone(), of_own.clone()]);
        assert_eq!(tries(far), [of_own]);
        assert_eq!(Try::all(None, Some(near), |_| None), [of_loopback]);
        assert_eq!(Try::all(None, Some(far), |_| None), []);
    }

    #[test]
    fn a_place_that_is_only_others_is_listened_for_everywhere() {
        let tries = |host: &str| {
            let place = Place { host: host.to_owned(), port: 4443 };
            Try::all(Some(&place), None, |_| None)
        };
        // Nobody's address.
        let elsewhere = Try { listen: "0.0.0.0:4443".to_owned(), routes: Route::to("192.0.2.7") };
        assert_eq!(tries("192.0.2.7"), [elsewhere]);
        assert_eq!(tries("127.0.0.1")[0].listen, "127.0.0.1:4443");
        assert_eq!(tries("host.docker.internal")[0].listen, "0.0.0.0:4443");
    }
}
