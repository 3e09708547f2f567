//! The address at which the metrics API is served, and how an API server reaches it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use kube::Client;

use crate::engine::cluster::access::local_address::is_own;
use crate::engine::cluster::metrics_api::groups::GROUPS;
use crate::engine::cluster::metrics_api::register::{Options, Refusal, Registration};
use crate::engine::cluster::metrics_api::route::Route;
use crate::engine::cluster::metrics_api::server::Server;
use crate::engine::cluster::metrics_api::state::Metrics;
use crate::engine::options::HostPort;

/// Where to listen, and by which routes an API server may reach that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Way {
    pub(crate) listen: String,
    pub(crate) routes: Vec<Route>,
}

impl Way {
    fn at(address: IpAddr, port: u16, host: &str) -> Way {
        Way { listen: SocketAddr::new(address, port).to_string(), routes: Route::to(host) }
    }

    /// By loopback, for an API server that is a process of this machine.
    pub(crate) fn loopback() -> Way {
        Way::at(Ipv4Addr::LOCALHOST.into(), 0, "localhost")
    }

    /// For an API server that finds this machine at a place.
    pub(crate) fn to(HostPort { host, port }: &HostPort) -> Way {
        let address = match host.as_str() {
            "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
            host => host.parse::<IpAddr>().ok(),
        };
        // Behind a router, or in another network, it is this machine's only for others.
        let listens = address.filter(|it| is_own(*it));
        let any = match address {
            Some(IpAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
            _ => Ipv4Addr::UNSPECIFIED.into(),
        };
        let host = if address.is_some_and(|it| it.is_loopback()) { "localhost" } else { host };
        Way::at(listens.unwrap_or(any), *port, host)
    }

    /// All that there are for an API server at that address, the first one to be tried first. One
    /// at loopback may be a process of this machine, or be in a container whose port is handed on.
    pub(crate) fn all(
        place: Option<&HostPort>,
        server: Option<IpAddr>,
        own: impl FnOnce(Option<IpAddr>) -> Option<IpAddr>,
    ) -> Vec<Way> {
        if let Some(place) = place {
            return vec![Way::to(place)];
        }
        let near = server.is_some_and(|it| it.is_loopback()).then(Way::loopback);
        let far = own(server).map(|own| Way::at(own, 0, &own.to_string()));
        near.into_iter().chain(far).collect()
    }
}

/// How the metrics APIs are served, and made known to an API server.
pub(crate) struct Reach {
    /// The first one that works is taken.
    pub(crate) ways: Vec<Way>,
    /// The groups, of those of [`GROUPS`].
    pub(crate) groups: Vec<&'static str>,
    /// Whether a metrics API that is there already may be replaced while this one is served.
    pub(crate) replace: bool,
}

impl Reach {
    /// All groups by one way, where there is nothing to be replaced.
    pub(crate) fn all(way: Way) -> Reach {
        let groups = GROUPS.iter().map(|(group, _)| *group).collect();
        Reach { ways: vec![way], groups, replace: false }
    }

    /// Starts the server, and makes it known by the first way that works.
    pub(crate) async fn serve(
        &self,
        client: &Client,
        metrics: &Arc<Metrics>,
    ) -> Result<(Server, Registration), Refusal> {
        let mut tried = Vec::new();
        for Way { listen, routes } in &self.ways {
            let server = Server::start(metrics.clone(), listen).await.map_err(Refusal::Other)?;
            let (routes, groups) = (routes.clone(), self.groups.clone());
            let options = Options { routes, groups, replace: self.replace };
            match Registration::register(client, &server, &options).await {
                Ok(registered) => return Ok((server, registered)),
                Err(Refusal::Unreached(why)) => tried.push(why),
                Err(refusal) => return Err(refusal),
            }
        }
        Err(Refusal::Unreached(match tried.is_empty() {
            true => "this machine has no address but loopback".to_owned(),
            false => tried.join("; "),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_at_loopback_may_also_be_in_a_container() {
        let near = IpAddr::from(Ipv4Addr::LOCALHOST);
        let (own, far) = (IpAddr::from([10, 0, 0, 7]), IpAddr::from([10, 0, 0, 1]));
        let ways = |server: IpAddr| Way::all(None, Some(server), |_| Some(own));
        let of_own = Way { listen: "10.0.0.7:0".to_owned(), routes: Route::to("10.0.0.7") };
        let of_loopback =
            Way { listen: "127.0.0.1:0".to_owned(), routes: vec![Route::Name("localhost".into())] };
        assert_eq!(ways(near), [of_loopback.clone(), of_own.clone()]);
        assert_eq!(ways(far), [of_own]);
        assert_eq!(Way::all(None, Some(near), |_| None), [of_loopback]);
        assert_eq!(Way::all(None, Some(far), |_| None), []);
    }

    #[test]
    fn a_place_that_is_only_others_is_listened_for_everywhere() {
        let way = |host: &str| Way::to(&HostPort { host: host.to_owned(), port: 4443 });
        // Nobody's address.
        let elsewhere = Way { listen: "0.0.0.0:4443".to_owned(), routes: Route::to("192.0.2.7") };
        assert_eq!(way("192.0.2.7"), elsewhere);
        assert_eq!(way("127.0.0.1").listen, "127.0.0.1:4443");
        assert_eq!(way("127.0.0.1").routes, [Route::Name("localhost".to_owned())]);
        assert_eq!(way("host.docker.internal").listen, "0.0.0.0:4443");
    }
}
