//! The ways by which an API server can reach a server outside of its cluster.
//!
//! An API server that routes by Services' own addresses (the default) proxies to a Service of the
//! type ExternalName by name: that needs neither endpoints nor traffic of the cluster. One that
//! routes to endpoints (`--enable-aggregator-routing`) refuses that type, and wants addresses that
//! are not loopback. A Service's address in the cluster is never used: where nothing routes it,
//! calls hang.

use std::fmt;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::PostParams;
use kube::{Api, Client, Error};
use serde_json::{Value, json};

use crate::engine::cluster::access::client::object;
use crate::engine::cluster::metrics_api::groups::{NAMESPACE, SERVICE};

/// A way by which the API server may reach the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ServiceRoute {
    /// A Service of the type ExternalName, by this name or address.
    Name(String),
    /// A Service without selector, with endpoints at this address.
    Endpoints(IpAddr),
}

impl fmt::Display for ServiceRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServiceRoute::Name(name) => write!(f, "a Service of type ExternalName to {name}"),
            ServiceRoute::Endpoints(address) => write!(f, "a Service with the endpoint {address}"),
        }
    }
}

impl ServiceRoute {
    /// All ways to a host, the first one to be tried first.
    pub(crate) fn to(host: &str) -> Vec<ServiceRoute> {
        let mut routes = vec![ServiceRoute::Name(host.to_owned())];
        let address = host.parse().ok();
        // The API server refuses others as endpoints.
        let fit = |it: &IpAddr| !it.is_loopback() && !it.is_unspecified() && !it.is_multicast();
        routes.extend(address.filter(fit).map(ServiceRoute::Endpoints));
        routes
    }
}

/// The name of the Service of the n-th way: each has its own, since what an API server knows of one
/// may be a moment old.
pub(crate) fn service_name(number: usize) -> String {
    match number {
        0 => SERVICE.to_owned(),
        _ => format!("{SERVICE}-{number}"),
    }
}

/// Makes what a way needs, in the namespace of the metrics API.
pub(crate) async fn create(
    client: &Client,
    route: &ServiceRoute,
    (number, port): (usize, u16),
) -> Result<(), String> {
    let name = service_name(number);
    let failed = |what: &str, error: Error| format!("{what} {NAMESPACE}/{name}: {error}");
    let post = PostParams::default();
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    let service = object(service(&name, route, port))?;
    services.create(&post, &service).await.map_err(|error| failed("service", error))?;
    let ServiceRoute::Endpoints(address) = route else { return Ok(()) };
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), NAMESPACE);
    let slice = object(slice(&name, *address, port))?;
    slices.create(&post, &slice).await.map_err(|error| failed("endpoint slice", error))?;
    // What older API servers look at.
    let all: Api<Endpoints> = Api::namespaced(client.clone(), NAMESPACE);
    let endpoints = object(endpoints(&name, *address, port))?;
    all.create(&post, &endpoints).await.map_err(|error| failed("endpoints", error))?;
    Ok(())
}

fn service(name: &str, route: &ServiceRoute, port: u16) -> Value {
    let ports = json!([{ "name": "https", "port": port, "protocol": "TCP" }]);
    let spec = match route {
        ServiceRoute::Name(to) => {
            json!({ "type": "ExternalName", "externalName": to, "ports": ports })
        }
        // Without an address in the cluster: an API server that would use it says so at once.
        ServiceRoute::Endpoints(_) => json!({ "clusterIP": "None", "ports": ports }),
    };
    json!({ "metadata": { "name": name }, "spec": spec })
}

fn slice(name: &str, address: IpAddr, port: u16) -> Value {
    json!({
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/service-name": name,
                // No controller of the cluster looks after it.
                "endpointslice.kubernetes.io/managed-by": "kube-lockstep",
            },
        },
        "addressType": if address.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{ "addresses": [address.to_string()], "conditions": { "ready": true } }],
        "ports": [{ "name": "https", "port": port, "protocol": "TCP" }],
    })
}

fn endpoints(name: &str, address: IpAddr, port: u16) -> Value {
    json!({
        "metadata": {
            "name": name,
            // There is a slice already.
            "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" },
        },
        "subsets": [{
            "addresses": [{ "ip": address.to_string() }],
            "ports": [{ "name": "https", "port": port, "protocol": "TCP" }],
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_never_at_loopback() {
        let name = |host: &str| ServiceRoute::Name(host.to_owned());
        assert_eq!(ServiceRoute::to("localhost"), [name("localhost")]);
        assert_eq!(ServiceRoute::to("127.0.0.1"), [name("127.0.0.1")]);
        assert_eq!(ServiceRoute::to("::1"), [name("::1")]);
        assert_eq!(ServiceRoute::to("0.0.0.0"), [name("0.0.0.0")]);
        let address = IpAddr::from([172, 17, 0, 1]);
        assert_eq!(
            ServiceRoute::to("172.17.0.1"),
            [name("172.17.0.1"), ServiceRoute::Endpoints(address)]
        );
        assert_eq!(ServiceRoute::to("host.docker.internal"), [name("host.docker.internal")]);
    }

    #[test]
    fn no_service_has_an_address_in_the_cluster() {
        let address = IpAddr::from([172, 17, 0, 1]);
        let by_name = service("metrics", &ServiceRoute::Name("localhost".to_owned()), 4443);
        assert_eq!(by_name["spec"]["type"], "ExternalName");
        assert_eq!(by_name["spec"]["externalName"], "localhost");
        let by_endpoints = service("metrics", &ServiceRoute::Endpoints(address), 4443);
        assert_eq!(by_endpoints["spec"]["clusterIP"], "None");
        assert_eq!(by_endpoints["spec"].get("selector"), None);
        let slice = slice("metrics-1", address, 4443);
        assert_eq!(slice["addressType"], "IPv4");
        assert_eq!(slice["metadata"]["labels"]["kubernetes.io/service-name"], "metrics-1");
        // They are found by the port's name.
        for ports in [&by_endpoints["spec"]["ports"], &slice["ports"]] {
            assert_eq!((&ports[0]["name"], &ports[0]["port"]), (&json!("https"), &json!(4443)));
        }
    }
}
