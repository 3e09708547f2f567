//! The selected cluster.

use std::path::PathBuf;

use crate::engine::cluster::access::connect;
use crate::engine::cluster::access::connect::Reached;
use crate::engine::cluster::access::error::chain;
use crate::engine::metrics_server::event::{Told, Trouble};

/// The selected cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Which {
    /// The kubeconfig. Default: `KUBECONFIG`, or kubectl's default.
    pub kubeconfig: Option<PathBuf>,
    /// The context. It is optional if a kubeconfig with a current context is named.
    pub context: Option<String>,
}

impl Which {
    pub(super) async fn reach(&self) -> Result<Reached, Trouble> {
        let config = connect::read(self.kubeconfig.as_ref()).map_err(|why| {
            let what = format!("the kubeconfig can't be read: {why}");
            Trouble::usage(what, "set --kubeconfig, and --context for a cluster in it")
        })?;
        let names: Vec<&str> = config.contexts.iter().map(|it| it.name.as_str()).collect();
        let hint = match names.is_empty() {
            true => "the kubeconfig has no contexts".to_owned(),
            false => format!("there are: {}", names.join(", ")),
        };
        match &self.context {
            None if self.kubeconfig.is_none() => {
                let what = "no cluster is named: set --context";
                return Err(Trouble::usage(what, hint));
            }
            None if config.current_context.is_none() => {
                let what = "the kubeconfig has no current context: set --context";
                return Err(Trouble::usage(what, hint));
            }
            Some(name) if !names.contains(&name.as_str()) => {
                let what = format!("the kubeconfig has no context `{name}`");
                return Err(Trouble::usage(what, hint));
            }
            _ => {}
        }
        Reached::by(config, self.context.as_deref()).await.map_err(Trouble::new)
    }
}

/// Reports the address and the version of the cluster.
pub(super) async fn tell(cluster: &Reached, tell: &mut dyn FnMut(Told)) -> Result<(), Trouble> {
    let server = cluster.server();
    let info = cluster.client.apiserver_version().await;
    let info = info.map_err(|error| Trouble::new(format!("{server}: {}", chain(&error))))?;
    tell(Told::Cluster { server, version: info.git_version });
    Ok(())
}
