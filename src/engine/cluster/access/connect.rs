//! Clusters by their kubeconfigs, and where their API servers find this machine.

use crate::engine::cluster::access::error::chain;
use std::net::IpAddr;
use std::path::PathBuf;

use axum::http::Uri;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::lookup_host;

use crate::engine::cluster::access::client;

/// A kubeconfig: a file; else those that `KUBECONFIG` names, or the usual one.
pub(crate) fn read(kubeconfig: Option<&PathBuf>) -> Result<Kubeconfig, String> {
    let read = match kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    read.map_err(|error| chain(&error))
}

/// A cluster that can be asked.
pub(crate) struct Reached {
    pub(crate) client: Client,
    /// Where its API server is.
    server: Uri,
}

impl Reached {
    /// By a context; without one, by the current one.
    pub(crate) async fn by(config: Kubeconfig, context: Option<&str>) -> Result<Reached, String> {
        let context = context.map(str::to_owned);
        let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(config, &options).await;
        let config = config.map_err(|error| chain(&error))?;
        let server = config.cluster_url.clone();
        Ok(Reached { client: client::of(config)?, server })
    }

    /// Where its API server is, for people.
    pub(crate) fn server(&self) -> String {
        self.server.to_string().trim_end_matches('/').to_owned()
    }

    /// Where its API server is, as an address.
    pub(crate) async fn address(&self) -> Result<Option<IpAddr>, String> {
        let host = self.server.host().unwrap_or_default().trim_matches(['[', ']']);
        let found = lookup_host((host, self.server.port_u16().unwrap_or(443))).await;
        let mut found = found.map_err(|error| format!("{host} is not found: {error}"))?;
        Ok(found.next().map(|it| it.ip()))
    }
}
