//! A cluster that is somebody's: what is known of it before anything is made there, and what is
//! removed afterwards.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use axum::http::Uri;
use jiff::SignedDuration;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tokio::net::lookup_host;

use super::metrics_api::GROUPS;
use super::registration::{self, Foreign, Refusal};
use super::route::{Route, own_address};
use super::{Reach, claim, client};
use crate::engine::EngineError;
use crate::model::rules::Release;
use crate::model::time::Span;

/// Farther from ours a cluster's clock must not be.
const FARTHEST: SignedDuration = SignedDuration::from_millis(500);

/// A context of a kubeconfig, and what may be done to its cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Given {
    /// The file; else those that `KUBECONFIG` names, or the usual one.
    pub kubeconfig: Option<PathBuf>,
    /// The context's name.
    pub context: String,
    /// Where the API server finds the metrics APIs; else it is guessed.
    pub metrics_address: Option<MetricsAddress>,
    /// Whether metrics APIs that the cluster has may be replaced meanwhile.
    pub replaces: bool,
}

/// An address under which the API server reaches this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetricsAddress {
    /// This machine's address.
    pub address: IpAddr,
    /// The port; 0: one that is free.
    pub port: u16,
}

impl FromStr for MetricsAddress {
    type Err = String;
    fn from_str(text: &str) -> Result<MetricsAddress, String> {
        let with_port = text.parse::<SocketAddr>().map(|it| (it.ip(), it.port()));
        let plain = || text.trim_matches(['[', ']']).parse::<IpAddr>().map(|it| (it, 0));
        let (address, port) = with_port
            .or_else(|_| plain())
            .map_err(|_| "it is IP or IP:PORT, for instance 192.168.1.20:4443".to_owned())?;
        match address.is_unspecified() || address.is_multicast() {
            true => Err(format!("{address} is no address of a machine")),
            false => Ok(MetricsAddress { address, port }),
        }
    }
}

/// What is known of a cluster before anything is made there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Look {
    /// Where its API server is.
    pub server: String,
    /// What it says that it is, for instance `v1.37.0`.
    pub version: String,
    /// The release whose rules it follows.
    pub release: Release,
    /// APIServices of metrics APIs that it has, each with what is behind it.
    pub metrics_apis: Vec<(String, String)>,
    /// How many HPAs it has.
    pub hpas: usize,
    /// What a run that had died had left there, and was removed now.
    pub cleaned: Vec<String>,
}

/// A cluster that can be asked.
pub(crate) struct Reached {
    pub(crate) client: Client,
    /// Where its API server is.
    pub(crate) server: Uri,
}

/// The contexts that there are, by name.
pub(crate) fn contexts(kubeconfig: Option<&PathBuf>) -> Result<Vec<String>, String> {
    Ok(read(kubeconfig)?.contexts.into_iter().map(|context| context.name).collect())
}

fn read(kubeconfig: Option<&PathBuf>) -> Result<Kubeconfig, String> {
    match kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    }
    .map_err(|error| chain(&error))
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

/// Makes a client of a context.
pub(crate) async fn reach(given: &Given) -> Result<Reached, String> {
    let config = read(given.kubeconfig.as_ref())?;
    let options = KubeConfigOptions { context: Some(given.context.clone()), ..Default::default() };
    let config = Config::from_custom_kubeconfig(config, &options).await;
    let config = config.map_err(|error| chain(&error))?;
    let server = config.cluster_url.clone();
    Ok(Reached { client: client::of(config)?, server })
}

/// Asks a cluster what it is and has, after removing what dead runs have left there.
pub(crate) async fn look(reached: &Reached) -> Result<Look, Refusal> {
    let Reached { client, server } = reached;
    // Also of what a dead run has replaced it is then known whose it is.
    let cleaned = clean(client).await.map_err(Refusal::Other)?;
    let other = |error: kube::Error| Refusal::Other(chain(&error));
    let info = client.apiserver_version().await.map_err(other)?;
    let release = release(&info.git_version).map_err(Refusal::Other)?;
    let hpas: Api<HorizontalPodAutoscaler> = Api::all(client.clone());
    let hpas = hpas.list_metadata(&ListParams::default()).await.map_err(other)?;
    let theirs = |namespace: Option<&String>| {
        namespace.is_none_or(|name| !name.starts_with("kube-lockstep-"))
    };
    let hpas = hpas.iter().filter(|it| theirs(it.metadata.namespace.as_ref())).count();
    let groups = GROUPS.map(|(group, _)| group);
    let foreign = registration::foreign(client, &groups).await?;
    let metrics_apis = foreign.into_iter().map(|Foreign { name, service }| (name, service));
    Ok(Look {
        server: server.to_string().trim_end_matches('/').to_owned(),
        version: info.git_version,
        release,
        metrics_apis: metrics_apis.collect(),
        hpas,
        cleaned,
    })
}

/// The release of what an API server says that it is: `v1.33.1-eks-1de2ab1`, `v1.31.4+k3s1`.
fn release(version: &str) -> Result<Release, String> {
    let end = version.find(['-', '+']).unwrap_or(version.len());
    let plain = version.get(..end).unwrap_or(version);
    Release::known(plain).map_err(|why| format!("the cluster says that it is {version}: {why}"))
}

/// How the API server is to find the metrics APIs.
pub(crate) async fn way(
    given: &Given,
    server: &Uri,
    groups: &[&'static str],
) -> Result<Reach, String> {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = server.port_u16().unwrap_or(443);
    let (address, port) = match given.metrics_address {
        Some(MetricsAddress { address, port }) => (address, port),
        None => {
            let found = lookup_host((host, port)).await;
            let found = found.map_err(|error| format!("{host} is not found: {error}"))?.next();
            let server = found.map(|it| it.ip());
            let own = match server.filter(IpAddr::is_loopback) {
                Some(loopback) => Some(loopback),
                None => own_address(server),
            };
            (own.ok_or("this machine has no address but loopback")?, 0)
        }
    };
    let host = if address.is_loopback() { "localhost".to_owned() } else { address.to_string() };
    // An address that is this machine's only for others, behind a router, is none to listen at.
    let is_own = TcpListener::bind((address, 0)).is_ok();
    let any: IpAddr = match address {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let listen = SocketAddr::new(if is_own { address } else { any }, port).to_string();
    let options = registration::Options {
        routes: Route::to(&host),
        groups: groups.to_vec(),
        replace: given.replaces,
    };
    Ok(Reach { listen, options })
}

/// How much later than here something may seem to be there: as far as the clocks are apart.
pub(crate) fn late(apart: SignedDuration) -> Result<Span, String> {
    if apart > FARTHEST {
        return Err(format!(
            "the cluster's clock and this machine's are {:.1} s apart: what is seen there at a \
             time can't be told; set them right",
            apart.as_secs_f64()
        ));
    }
    Ok(Span(i64::try_from(apart.as_nanos()).unwrap_or(i64::MAX)))
}

/// Why a cluster can't be used, and what to do about it.
pub(crate) fn explain(name: &Arc<str>, given: &Given, refusal: Refusal) -> EngineError {
    let hint = match &refusal {
        Refusal::Taken(_) => {
            "--replace-metrics-api puts this one in its place meanwhile, and restores it at the end"
                .to_owned()
        }
        Refusal::Served(..) => format!(
            "wait until that run has ended; if its machine is gone, `kube-lockstep cluster clean \
             --context {}` removes what it left",
            given.context
        ),
        Refusal::Unreached(_) => {
            "the API server must be able to connect to this machine: --metrics-address IP[:PORT] \
             says where, for instance the gateway of the network of a cluster in containers; or \
             run it on a machine that the API server reaches"
                .to_owned()
        }
        Refusal::Other(_) => {
            let (why, output) = (refusal.to_string(), String::new());
            return EngineError::Broken { engine: name.clone(), why, output };
        }
    };
    EngineError::Unavailable { engine: name.clone(), why: refusal.to_string(), hint }
}

/// What is still there, and what to do about it.
pub(crate) fn not_removed(given: &Given, left: &str) -> String {
    format!(
        "not all of it could be removed: {left}; `kube-lockstep cluster clean --context {}` tries \
         it again",
        given.context
    )
}

/// Removes what dead runs have left. Says what was done.
pub(crate) async fn clean(client: &Client) -> Result<Vec<String>, String> {
    // Which of them are alive is told by their metrics APIs, too.
    let left = claim::left(client).await?;
    let mut done = registration::clear(client).await?;
    claim::remove(client, &left).await?;
    done.extend(left.into_iter().map(|name| format!("namespace {name} is deleted")));
    Ok(done)
}

/// Removes all that this process has made: first what others may miss.
pub(crate) async fn leave(client: &Client) -> Result<(), String> {
    let restored = registration::remove_own(client).await.map(|_| ());
    let removed = match claim::own(client).await {
        Ok(own) => claim::remove(client, &own).await,
        Err(why) => Err(why),
    };
    restored.and(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_may_have_a_vendors_suffix() {
        for version in ["v1.33.1-eks-1de2ab1", "v1.33.4+k3s1", "v1.33.0", "v1.33.2-gke.1240000"] {
            assert_eq!(release(version), Ok(Release { minor: 33 }), "{version}");
        }
        let error = release("v1.99.0").expect_err("nobody knows it");
        assert!(error.contains("v1.99.0: the model does not know 1.99"), "{error}");
        assert!(release("v0.0.0-master").is_err());
    }

    #[test]
    fn an_address_may_have_a_port() {
        let of = |address: &str, port| {
            Ok(MetricsAddress { address: address.parse().expect("an address"), port })
        };
        assert_eq!("10.0.0.7".parse(), of("10.0.0.7", 0));
        assert_eq!("10.0.0.7:4443".parse(), of("10.0.0.7", 4443));
        assert_eq!("[fd00::7]:4443".parse(), of("fd00::7", 4443));
        assert_eq!("fd00::7".parse(), of("fd00::7", 0));
        for wrong in ["", "here", "0.0.0.0", "10.0.0.7:x", "10.0.0.7:99999"] {
            assert!(wrong.parse::<MetricsAddress>().is_err(), "{wrong}");
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_server_at_loopback_finds_us_there() {
        let uri = |text: &str| text.parse::<Uri>().expect("a URI");
        let groups = ["metrics.k8s.io"];
        let given = Given::default();
        let near = way(&given, &uri("https://127.0.0.1:6443/"), &groups).await.expect("a way");
        assert_eq!(near.listen, "127.0.0.1:0");
        assert_eq!(near.options.routes, [Route::Name("localhost".to_owned())]);
        assert!(!near.options.replace);
        // Nobody's: it can't be listened at, and is told to the API server all the same.
        let elsewhere = Given { metrics_address: "192.0.2.7:4443".parse().ok(), ..given };
        let far = way(&elsewhere, &uri("https://127.0.0.1:6443/"), &groups).await.expect("a way");
        assert_eq!(far.listen, "0.0.0.0:4443");
        assert_eq!(far.options.routes, Route::to("192.0.2.7"));
    }
}
