//! The selected cluster.

use std::path::PathBuf;

use crate::cluster::access::connect;
use crate::cluster::access::connect::Connection;
use crate::cluster::access::error::chain;
use crate::metrics_server::event::{ServerError, ServerEvent};

/// The selected cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClusterSelection {
    /// The kubeconfig. Default: `KUBECONFIG`, or kubectl's default.
    pub kubeconfig: Option<PathBuf>,
    /// The context. It is optional if the kubeconfig is set and has a current context.
    pub context: Option<String>,
}

impl ClusterSelection {
    pub(crate) async fn connect(&self) -> Result<Connection, ServerError> {
        let config = connect::read(self.kubeconfig.as_ref()).map_err(|why| {
            let what = format!("the kubeconfig can't be read: {why}");
            ServerError::usage(what, "set --kubeconfig, and --context for a cluster in it")
        })?;
        let names: Vec<&str> = config.contexts.iter().map(|it| it.name.as_str()).collect();
        let hint = match names.is_empty() {
            true => "the kubeconfig has no contexts".to_owned(),
            false => format!("there are: {}", names.join(", ")),
        };
        match &self.context {
            None if self.kubeconfig.is_none() => {
                let what = "no cluster is selected: set --context";
                return Err(ServerError::usage(what, hint));
            }
            None if config.current_context.is_none() => {
                let what = "the kubeconfig has no current context: set --context";
                return Err(ServerError::usage(what, hint));
            }
            Some(name) if !names.contains(&name.as_str()) => {
                let what = format!("the kubeconfig has no context `{name}`");
                return Err(ServerError::usage(what, hint));
            }
            _ => {}
        }
        Connection::by(config, self.context.as_deref()).await.map_err(ServerError::new)
    }
}

/// Reports the address and the version of the cluster.
pub(super) async fn report(
    cluster: &Connection,
    report: &mut dyn FnMut(ServerEvent),
) -> Result<(), ServerError> {
    let server = cluster.server();
    let info = cluster.client.apiserver_version().await;
    let info = info.map_err(|error| ServerError::new(format!("{server}: {}", chain(&error))))?;
    report(ServerEvent::Cluster { server, version: info.git_version });
    Ok(())
}
