//! Connections to clusters by their kubeconfigs.

use std::net::IpAddr;
use std::path::PathBuf;

use axum::http::Uri;
use kube::Client;
use kube::config::{Kubeconfig, KubeconfigError};
use tokio::net::lookup_host;

use crate::engine::cluster::access::client;
use crate::engine::cluster::access::error::chain;

/// Reads a kubeconfig; by default, the files that `KUBECONFIG` names, or kubectl's default.
pub(crate) fn read(kubeconfig: Option<&PathBuf>) -> Result<Kubeconfig, String> {
    let read = match kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    read.map_err(|error| match error {
        // Its own text quotes the path twice.
        KubeconfigError::ReadConfig(why, path) => {
            format!("the kubeconfig {} can't be read: {why}", path.display())
        }
        error => chain(&error),
    })
}

/// A cluster with a client.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// The URL of the API server.
    server: Uri,
}

impl Connection {
    /// Connects to the cluster of a context, by default of the current context.
    pub(crate) async fn by(
        config: Kubeconfig,
        context: Option<&str>,
    ) -> Result<Connection, String> {
        let config = client::config_of(config, context).await?;
        let server = config.cluster_url.clone();
        Ok(Connection { client: client::of(config)?, server })
    }

    /// The URL of the API server.
    pub(crate) fn server(&self) -> String {
        self.server.to_string().trim_end_matches('/').to_owned()
    }

    /// The IP address of the API server.
    pub(crate) async fn address(&self) -> Result<Option<IpAddr>, String> {
        let host = self.server.host().unwrap_or_default().trim_matches(['[', ']']);
        let found = lookup_host((host, self.server.port_u16().unwrap_or(443))).await;
        let mut found = found.map_err(|error| format!("the host {host} is not found: {error}"))?;
        Ok(found.next().map(|it| it.ip()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_kubeconfig_is_named() {
        let path = PathBuf::from("/nowhere/config");
        let error = read(Some(&path)).expect_err("there is no such file");
        assert!(error.starts_with("the kubeconfig /nowhere/config can't be read: "), "{error}");
    }
}
