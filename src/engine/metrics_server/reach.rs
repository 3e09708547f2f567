//! Which cluster is meant, and where it may find this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::str::FromStr;

use axum::http::Uri;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::lookup_host;

use super::{Told, Trouble};
use crate::engine::cluster::client;
use crate::engine::cluster::route::Route;

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

/// A cluster that can be asked.
pub(super) struct Reached {
    pub(super) client: Client,
    server: Uri,
}

impl Reached {
    pub(super) async fn by(which: &Which) -> Result<Reached, Trouble> {
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

    pub(super) async fn tell(&self, tell: &mut dyn FnMut(Told)) -> Result<(), Trouble> {
        let server = self.server.to_string().trim_end_matches('/').to_owned();
        let info = self.client.apiserver_version().await;
        let info = info.map_err(|error| Trouble::new(format!("{server}: {}", chain(&error))))?;
        tell(Told::Cluster { server, version: info.git_version });
        Ok(())
    }

    /// Where the API server is, as an address.
    pub(super) async fn address(&self) -> Result<Option<IpAddr>, Trouble> {
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
pub(super) struct Try {
    pub(super) listen: String,
    pub(super) routes: Vec<Route>,
}

impl Try {
    fn at(address: IpAddr, port: u16, routes: Vec<Route>) -> Try {
        Try { listen: SocketAddr::new(address, port).to_string(), routes }
    }

    /// All that there are, the first one to be tried first. An API server at loopback may be a
    /// process of this machine, or be in a container whose port is handed on.
    pub(super) fn all(
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
