//! Connections to clusters by their kubeconfigs.

use std::net::IpAddr;
use std::path::PathBuf;

use axum::http::Uri;
use kube::Client;
use kube::config::{Kubeconfig, KubeconfigError};
use tokio::net::lookup_host;

use crate::cluster::access::client;
use crate::cluster::access::error::chain;
use kube_lockstep_engines::input_file::{InputError, check};

/// Reads a kubeconfig; by default, the files that `KUBECONFIG` names, or kubectl's default.
pub(crate) fn read(kubeconfig: Option<&PathBuf>) -> Result<Kubeconfig, String> {
    for path in files_of(kubeconfig) {
        // A missing file is reported below, unless `KUBECONFIG` names it: like other clients, the
        // library ignores it then.
        if let Err(error @ (InputError::NotAFile | InputError::TooLarge { .. })) = check(&path) {
            return Err(format!("the kubeconfig {} can't be read: {error}", path.display()));
        }
    }
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

/// The kubeconfigs that the caller or, without one, `KUBECONFIG` names.
fn files_of(kubeconfig: Option<&PathBuf>) -> Vec<PathBuf> {
    match (kubeconfig, std::env::var_os("KUBECONFIG")) {
        (Some(path), _) => vec![path.clone()],
        (None, Some(paths)) => std::env::split_paths(&paths).collect(),
        (None, None) => Vec::new(),
    }
}

/// A cluster with a client.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// The URL of the API server.
    server: Uri,
}

impl Connection {
    /// Connects to the cluster of a context; by default, of the current context.
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
        let mut found =
            found.map_err(|error| format!("the host {host} can't be resolved: {error}"))?;
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

    #[test]
    fn a_kubeconfig_without_an_end_is_refused() {
        let path = PathBuf::from("/dev/zero");
        let error = read(Some(&path)).expect_err("it has no end");
        let expected = "the kubeconfig /dev/zero can't be read: it is not a regular file; \
            save its content to a file first";
        assert_eq!(error, expected);
    }
}
