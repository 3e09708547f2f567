//! The address at which the metrics API is served, and how an API server reaches it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use kube::Client;

use crate::engine::cluster::access::local_address::is_own;
use crate::engine::cluster::metrics_api::groups::GROUPS;
use crate::engine::cluster::metrics_api::register::{Options, Registration, RegistrationError};
use crate::engine::cluster::metrics_api::route::ServiceRoute;
use crate::engine::cluster::metrics_api::server::Server;
use crate::engine::cluster::metrics_api::state::Metrics;
use crate::engine::options::HostPort;

/// Where to listen, and by which routes an API server may reach that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ListenRoute {
    pub(crate) listen: String,
    pub(crate) routes: Vec<ServiceRoute>,
}

impl ListenRoute {
    fn at(address: IpAddr, port: u16, host: &str) -> ListenRoute {
        ListenRoute {
            listen: SocketAddr::new(address, port).to_string(),
            routes: ServiceRoute::to(host),
        }
    }

    /// By loopback, for an API server that is a process of this machine.
    pub(crate) fn loopback() -> ListenRoute {
        ListenRoute::at(Ipv4Addr::LOCALHOST.into(), 0, "localhost")
    }

    /// For an API server that finds this machine at a place.
    pub(crate) fn to(HostPort { host, port }: &HostPort) -> ListenRoute {
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
        ListenRoute::at(listens.unwrap_or(any), *port, host)
    }

    /// All that there are for an API server at that address, the first one to be tried first. One
    /// at loopback may be a process of this machine, or be in a container whose port is handed on.
    pub(crate) fn all(
        place: Option<&HostPort>,
        server: Option<IpAddr>,
        own: impl FnOnce(Option<IpAddr>) -> Option<IpAddr>,
    ) -> Vec<ListenRoute> {
        if let Some(place) = place {
            return vec![ListenRoute::to(place)];
        }
        let near = server.is_some_and(|it| it.is_loopback()).then(ListenRoute::loopback);
        let far = own(server).map(|own| ListenRoute::at(own, 0, &own.to_string()));
        near.into_iter().chain(far).collect()
    }
}

/// How the metrics APIs are served, and made known to an API server.
pub(crate) struct Exposure {
    /// The first one that works is taken.
    pub(crate) ways: Vec<ListenRoute>,
    /// The groups, of those of [`GROUPS`].
    pub(crate) groups: Vec<&'static str>,
    /// Whether a metrics API that is there already may be replaced while this one is served.
    pub(crate) replace: bool,
}

impl Exposure {
    /// All groups by one way, where there is nothing to be replaced.
    pub(crate) fn all(way: ListenRoute) -> Exposure {
        let groups = GROUPS.iter().map(|(group, _)| *group).collect();
        Exposure { ways: vec![way], groups, replace: false }
    }

    /// Starts the server, and makes it known by the first way that works.
    pub(crate) async fn serve(
        &self,
        client: &Client,
        metrics: &Arc<Metrics>,
    ) -> Result<(Server, Registration), RegistrationError> {
        let mut tried = Vec::new();
        for ListenRoute { listen, routes } in &self.ways {
            let server =
                Server::start(metrics.clone(), listen).await.map_err(RegistrationError::Other)?;
            let (routes, groups) = (routes.clone(), self.groups.clone());
            let options = Options { routes, groups, replace: self.replace };
            match Registration::register(client, &server, &options).await {
                Ok(registered) => return Ok((server, registered)),
                Err(RegistrationError::Unreachable(why)) => tried.push(why),
                Err(refusal) => return Err(refusal),
            }
        }
        Err(RegistrationError::Unreachable(match tried.is_empty() {
            true => "this machine has no address but loopback".to_owned(),
            false => tried.join("; "),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loopback_server_may_run_in_a_container() {
        let near = IpAddr::from(Ipv4Addr::LOCALHOST);
        let (own, far) = (IpAddr::from([10, 0, 0, 7]), IpAddr::from([10, 0, 0, 1]));
        let ways = |server: IpAddr| ListenRoute::all(None, Some(server), |_| Some(own));
        let of_own =
            ListenRoute { listen: "10.0.0.7:0".to_owned(), routes: ServiceRoute::to("10.0.0.7") };
        let of_loopback = ListenRoute {
            listen: "127.0.0.1:0".to_owned(),
            routes: vec![ServiceRoute::Name("localhost".into())],
        };
        assert_eq!(ways(near), [of_loopback.clone(), of_own.clone()]);
        assert_eq!(ways(far), [of_own]);
        assert_eq!(ListenRoute::all(None, Some(near), |_| None), [of_loopback]);
        assert_eq!(ListenRoute::all(None, Some(far), |_| None), []);
    }

    #[test]
    fn the_server_listens_on_all_addresses_for_a_foreign_address() {
        let way = |host: &str| ListenRoute::to(&HostPort { host: host.to_owned(), port: 4443 });
        // Nobody's address.
        let elsewhere = ListenRoute {
            listen: "0.0.0.0:4443".to_owned(),
            routes: ServiceRoute::to("192.0.2.7"),
        };
        assert_eq!(way("192.0.2.7"), elsewhere);
        assert_eq!(way("127.0.0.1").listen, "127.0.0.1:4443");
        assert_eq!(way("127.0.0.1").routes, [ServiceRoute::Name("localhost".to_owned())]);
        assert_eq!(way("host.docker.internal").listen, "0.0.0.0:4443");
    }
}
