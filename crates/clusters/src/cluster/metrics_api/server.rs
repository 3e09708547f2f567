//! The server of the fake metrics API: metrics.k8s.io, custom.metrics.k8s.io and
//! external.metrics.k8s.io for many scenarios at once, each in its own namespace.
//!
//! `discovery` lists the groups, `handlers` answers queries, and `json` contains the objects of the
//! answers.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::http::HeaderValue;
use axum::middleware::map_response;
use axum::response::Response;
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;

use crate::cluster::access::pki::{Authority, Identity};
use crate::cluster::metrics_api::groups::{NAMESPACE, SERVER_HEADER, SERVICE};
use crate::cluster::metrics_api::response::{failure, not_found};
use crate::cluster::metrics_api::state::Metrics;
use crate::cluster::metrics_api::{discovery, handlers};

/// The server. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    /// The address at which it listens.
    pub address: SocketAddr,
    /// The certificate authority that the API server has to trust, as PEM.
    pub authority: String,
    /// Its name in [`SERVER_HEADER`].
    pub id: String,
    handle: Handle<SocketAddr>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.handle.shutdown();
    }
}

impl Server {
    /// Starts a server at an address. Port 0 means any free port.
    ///
    /// # Errors
    /// If it can't listen at the address, or a certificate can't be created.
    pub(crate) async fn start(metrics: Arc<Metrics>, address: &str) -> Result<Server, String> {
        let listener = TcpListener::bind(address)
            .map_err(|error| format!("the metrics API can't listen at {address}: {error}"))?;
        listener.set_nonblocking(true).map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let authority = Authority::new().map_err(|error| error.to_string())?;
        // The name of the Service by which the API server reaches it is not known yet.
        let name = format!("*.{NAMESPACE}.svc");
        let own = address.ip().to_string();
        let Identity { certificate, key } = authority
            .server(&format!("{SERVICE}.{NAMESPACE}.svc"), &[&name, "localhost", &own])
            .map_err(|error| error.to_string())?;
        let _ = rustls::crypto::ring::default_provider().install_default();
        let tls = RustlsConfig::from_pem(certificate.into_bytes(), key.into_bytes()).await;
        let tls = tls.map_err(|error| error.to_string())?;
        let handle = Handle::new();
        let server = axum_server::from_tcp_rustls(listener, tls)
            .map_err(|error| error.to_string())?
            .handle(handle.clone());
        let id = format!("{}-{}", std::process::id(), address.port());
        tokio::spawn(server.serve(router(metrics, &id).into_make_service()));
        Ok(Server { address, authority: authority.pem(), id, handle })
    }
}

fn router(metrics: Arc<Metrics>, id: &str) -> Router {
    let id = HeaderValue::from_str(id).unwrap_or(HeaderValue::from_static("kube-lockstep"));
    let signed = move |mut answer: Response| {
        answer.headers_mut().insert(SERVER_HEADER, id.clone());
        std::future::ready(answer)
    };
    let router = handlers::routes(discovery::routes(Router::new()));
    router
        .fallback(async || failure(&not_found("the server could not find this")))
        .layer(map_response(signed))
        .with_state(metrics)
}
