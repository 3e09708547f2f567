//! The routes by which an API server can reach a server outside of its cluster.
//!
//! An API server that routes by the addresses of Services (the default) proxies to a Service of
//! type ExternalName by name, which requires neither endpoints nor traffic inside the cluster. An
//! API server that routes to endpoints (`--enable-aggregator-routing`) refuses that type, and
//! requires addresses that are not loopback. A cluster IP is never used: if nothing routes it,
//! requests hang.

use std::fmt;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Service, ServicePort, ServiceSpec,
};
use k8s_openapi::api::discovery::v1::{
    Endpoint, EndpointConditions, EndpointPort as SlicePort, EndpointSlice,
};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Error};

use crate::cluster::metrics_api::groups::{NAMESPACE, SERVICE};

/// A route by which the API server may reach the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ServiceRoute {
    /// A Service of type ExternalName with this name or address.
    Name(String),
    /// A Service without selector, with endpoints at this address.
    Endpoints(IpAddr),
}

impl fmt::Display for ServiceRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServiceRoute::Name(name) => write!(f, "a Service of type ExternalName to {name}"),
            ServiceRoute::Endpoints(address) => {
                write!(f, "a Service with the endpoint {address}")
            }
        }
    }
}

impl ServiceRoute {
    /// All routes to a host, in the order in which they are tried.
    pub(crate) fn to(host: &str) -> Vec<ServiceRoute> {
        let mut routes = vec![ServiceRoute::Name(host.to_owned())];
        let address = host.parse().ok();
        // The API server refuses other addresses as endpoints.
        let fit = |it: &IpAddr| !it.is_loopback() && !it.is_unspecified() && !it.is_multicast();
        routes.extend(address.filter(fit).map(ServiceRoute::Endpoints));
        routes
    }
}

/// The name of the Service of the n-th route. Each route has its own, because an API server's view
/// of a Service may be outdated for a moment.
pub(crate) fn service_name(number: usize) -> String {
    match number {
        0 => SERVICE.to_owned(),
        _ => format!("{SERVICE}-{number}"),
    }
}

/// Creates the objects of the n-th route, in the namespace of the metrics API.
pub(crate) async fn create(
    client: &Client,
    route: &ServiceRoute,
    number: usize,
    port: u16,
) -> Result<(), String> {
    let name = service_name(number);
    let failed = |what: &str, error: Error| format!("{what} {NAMESPACE}/{name}: {error}");
    let post = PostParams::default();
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    let service = service(&name, route, port);
    services.create(&post, &service).await.map_err(|error| failed("service", error))?;
    let ServiceRoute::Endpoints(address) = route else { return Ok(()) };
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), NAMESPACE);
    let slice = slice(&name, *address, port);
    slices.create(&post, &slice).await.map_err(|error| failed("endpoint slice", error))?;
    // For older API servers, which do not read slices.
    let all: Api<Endpoints> = Api::namespaced(client.clone(), NAMESPACE);
    let endpoints = endpoints(&name, *address, port);
    all.create(&post, &endpoints).await.map_err(|error| failed("endpoints", error))?;
    Ok(())
}

fn metadata(name: &str, labels: &[(&str, &str)]) -> ObjectMeta {
    let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let labels = (labels.len() > 0).then(|| labels.collect());
    ObjectMeta { name: Some(name.to_owned()), labels, ..ObjectMeta::default() }
}

/// The name by which the API server finds the port of a Service in its endpoints.
const PORT_NAME: &str = "https";

fn service(name: &str, route: &ServiceRoute, port: u16) -> Service {
    let port = ServicePort {
        name: Some(PORT_NAME.to_owned()),
        port: port.into(),
        protocol: Some("TCP".to_owned()),
        ..ServicePort::default()
    };
    let (type_, external_name, cluster_ip) = match route {
        ServiceRoute::Name(to) => (Some("ExternalName".to_owned()), Some(to.clone()), None),
        // Headless: an API server that routes to cluster IPs then reports an error at once.
        ServiceRoute::Endpoints(_) => (None, None, Some("None".to_owned())),
    };
    let ports = Some(vec![port]);
    let spec = ServiceSpec { type_, external_name, cluster_ip, ports, ..ServiceSpec::default() };
    Service { metadata: metadata(name, &[]), spec: Some(spec), status: None }
}

fn slice(name: &str, address: IpAddr, port: u16) -> EndpointSlice {
    let labels = [
        ("kubernetes.io/service-name", name),
        // No controller of the cluster manages it.
        ("endpointslice.kubernetes.io/managed-by", "kube-lockstep"),
    ];
    let conditions = EndpointConditions { ready: Some(true), ..EndpointConditions::default() };
    EndpointSlice {
        metadata: metadata(name, &labels),
        address_type: if address.is_ipv4() { "IPv4" } else { "IPv6" }.to_owned(),
        endpoints: Some(vec![Endpoint {
            addresses: vec![address.to_string()],
            conditions: Some(conditions),
            ..Endpoint::default()
        }]),
        ports: Some(vec![SlicePort {
            name: Some(PORT_NAME.to_owned()),
            port: Some(port.into()),
            protocol: Some("TCP".to_owned()),
            ..SlicePort::default()
        }]),
    }
}

fn endpoints(name: &str, address: IpAddr, port: u16) -> Endpoints {
    let subset = EndpointSubset {
        addresses: Some(vec![EndpointAddress {
            ip: address.to_string(),
            ..EndpointAddress::default()
        }]),
        ports: Some(vec![EndpointPort {
            name: Some(PORT_NAME.to_owned()),
            port: port.into(),
            protocol: Some("TCP".to_owned()),
            ..EndpointPort::default()
        }]),
        ..EndpointSubset::default()
    };
    // The slice exists already.
    let labels = [("endpointslice.kubernetes.io/skip-mirror", "true")];
    Endpoints { metadata: metadata(name, &labels), subsets: Some(vec![subset]) }
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
        let routes = [name("172.17.0.1"), ServiceRoute::Endpoints(address)];
        assert_eq!(ServiceRoute::to("172.17.0.1"), routes);
        assert_eq!(ServiceRoute::to("host.docker.internal"), [name("host.docker.internal")]);
    }

    #[test]
    fn no_service_has_a_cluster_ip() {
        let address = IpAddr::from([172, 17, 0, 1]);
        let spec = |route| service("metrics", &route, 4443).spec.expect("a spec");
        let by_name = spec(ServiceRoute::Name("localhost".to_owned()));
        assert_eq!(by_name.type_.as_deref(), Some("ExternalName"));
        assert_eq!(by_name.external_name.as_deref(), Some("localhost"));
        let by_endpoints = spec(ServiceRoute::Endpoints(address));
        assert_eq!(by_endpoints.cluster_ip.as_deref(), Some("None"));
        assert_eq!(by_endpoints.selector, None);
        let slice = slice("metrics-1", address, 4443);
        assert_eq!(slice.address_type, "IPv4");
        let labels = slice.metadata.labels.unwrap_or_default();
        assert_eq!(labels["kubernetes.io/service-name"], "metrics-1");
        // The API server finds the endpoints by the name of the port.
        let service_port = by_endpoints.ports.unwrap_or_default().remove(0);
        let slice_port = slice.ports.unwrap_or_default().remove(0);
        assert_eq!(
            (service_port.name, Some(service_port.port)),
            (slice_port.name, slice_port.port)
        );
    }
}
