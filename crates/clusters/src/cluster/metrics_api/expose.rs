//! The addresses at which the metrics API can be served, and the routes of an API server to them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use kube::Client;

use crate::cluster::access::local_address::is_own;
use crate::cluster::metrics_api::groups::GROUPS;
use crate::cluster::metrics_api::register::{Options, Registration, RegistrationError};
use crate::cluster::metrics_api::route::ServiceRoute;
use crate::cluster::metrics_api::server::Server;
use crate::cluster::metrics_api::state::Metrics;
use kube_lockstep_engines::options::HostPort;

/// An address to listen at, and the routes by which an API server may reach it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ListenRoute {
    pub listen: String,
    pub(crate) routes: Vec<ServiceRoute>,
}

impl ListenRoute {
    fn at(address: IpAddr, port: u16, host: &str) -> ListenRoute {
        ListenRoute {
            listen: SocketAddr::new(address, port).to_string(),
            routes: ServiceRoute::to(host),
        }
    }

    /// Loopback, for an API server that is a process of this machine.
    pub(crate) fn loopback() -> ListenRoute {
        ListenRoute::at(Ipv4Addr::LOCALHOST.into(), 0, "localhost")
    }

    /// For an API server that reaches this machine at this address.
    pub(crate) fn to(HostPort { host, port }: &HostPort) -> ListenRoute {
        let address = match host.as_str() {
            "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
            host => host.parse::<IpAddr>().ok(),
        };
        // The address may belong to a router: then it is not an address of this machine.
        let listens = address.filter(|it| is_own(*it));
        let any = match address {
            Some(IpAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
            _ => Ipv4Addr::UNSPECIFIED.into(),
        };
        let host = if address.is_some_and(|it| it.is_loopback()) { "localhost" } else { host };
        ListenRoute::at(listens.unwrap_or(any), *port, host)
    }

    /// All addresses for an API server at `server`, in the order in which they are tried. An API
    /// server at loopback may be a process of this machine, or run in a container whose port is
    /// forwarded.
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

/// The addresses and groups of the metrics APIs, and the options of their registration.
pub(crate) struct Exposure {
    /// The first address that works is used.
    pub addresses: Vec<ListenRoute>,
    /// Some of the groups of [`GROUPS`].
    pub groups: Vec<&'static str>,
    /// True if a metrics API of the cluster may be replaced while this one is served.
    pub replace: bool,
}

impl Exposure {
    /// All groups at one address, in a cluster without a metrics API.
    pub(crate) fn all(address: ListenRoute) -> Exposure {
        let groups = GROUPS.iter().map(|(group, _)| *group).collect();
        Exposure { addresses: vec![address], groups, replace: false }
    }

    /// Starts the server, and registers it with the first address that works.
    pub(crate) async fn serve(
        &self,
        client: &Client,
        metrics: &Arc<Metrics>,
    ) -> Result<(Server, Registration), RegistrationError> {
        let mut tried = Vec::new();
        for ListenRoute { listen, routes } in &self.addresses {
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
            true => "this machine has only loopback addresses".to_owned(),
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
        let addresses = |server: IpAddr| ListenRoute::all(None, Some(server), |_| Some(own));
        let own_route =
            ListenRoute { listen: "10.0.0.7:0".to_owned(), routes: ServiceRoute::to("10.0.0.7") };
        let loopback_route = ListenRoute {
            listen: "127.0.0.1:0".to_owned(),
            routes: vec![ServiceRoute::Name("localhost".into())],
        };
        assert_eq!(addresses(near), [loopback_route.clone(), own_route.clone()]);
        assert_eq!(addresses(far), [own_route]);
        assert_eq!(ListenRoute::all(None, Some(near), |_| None), [loopback_route]);
        assert_eq!(ListenRoute::all(None, Some(far), |_| None), []);
    }

    #[test]
    fn for_an_address_of_another_machine_the_server_listens_at_all_addresses() {
        let address = |host: &str| ListenRoute::to(&HostPort { host: host.to_owned(), port: 4443 });
        // An address that is reserved for documentation.
        let elsewhere = ListenRoute {
            listen: "0.0.0.0:4443".to_owned(),
            routes: ServiceRoute::to("192.0.2.7"),
        };
        assert_eq!(address("192.0.2.7"), elsewhere);
        assert_eq!(address("127.0.0.1").listen, "127.0.0.1:4443");
        assert_eq!(address("127.0.0.1").routes, [ServiceRoute::Name("localhost".to_owned())]);
        assert_eq!(address("host.docker.internal").listen, "0.0.0.0:4443");
    }
}
