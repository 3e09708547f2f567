//! k3s in a container, from its own image, as a control plane without an agent.
//!
//! Without an agent there is no kubelet, so the container does not have to be privileged. The
//! observation is the same as with the embedded control plane, because k3s accepts the flags of
//! upstream's components.

use std::sync::Arc;
use std::time::Instant;

use kube::Client;
use kube::config::Kubeconfig;
use tokio::io::DuplexStream;
use tokio::time::sleep;

use crate::cluster::access::client;
use crate::cluster::access::local_address::is_own;
use crate::cluster::provision::args::audit_policy;
use crate::cluster::provision::bootstrap::{broken, is_ok};
use crate::cluster::provision::container::{HELD, RunningContainer, Spec};
use crate::cluster::provision::docker;
use crate::cluster::settings::{Settings, flags, gates};
use crate::cluster::timeouts::{HEALTH_POLL_INTERVAL, K3S_READY_TIMEOUT};
use kube_lockstep_sim::engine::EngineError;

/// The port of k3s, and its kubeconfig.
const PORT: u16 = 6443;
const KUBECONFIG: &str = "/etc/rancher/k3s/k3s.yaml";

/// The audit policy.
const POLICY: &str = "/etc/kube-lockstep/audit-policy.yaml";

/// The first process: waits for the file [`HELD`], and exits with k3s or on a signal.
const FIRST: &str = r#"
trap 'exit 0' TERM
n=0
until [ -e "$0" ]; do
  n=$((n + 1))
  [ "$n" -lt 300 ] || { echo "nothing holds this container" >&2; exit 2; }
  sleep 0.1
done
k3s "$@" &
wait "$!"
"#;

/// The command that keeps the container running until its input ends.
const HOLD: &str = r#": >"$0"; cat >/dev/null; kill -TERM 1"#;

/// The default image of a version.
pub(crate) fn default_image(version: &str) -> String {
    format!("rancher/k3s:{version}-k3s1")
}

/// The arguments of k3s. Its API server routes to endpoints if containers can reach an address of
/// this machine (`routes`).
fn args(settings: &Settings, routes: bool) -> Vec<String> {
    let mut args: Vec<String> = [
        "server",
        "--disable=coredns,local-storage,metrics-server,servicelb,traefik",
        "--disable-agent",
        "--disable-cloud-controller",
        "--disable-helm-controller",
        "--disable-kube-proxy",
        "--disable-network-policy",
        "--disable-scheduler",
        "--egress-selector-mode=disabled",
        "--flannel-backend=none",
        "--tls-san=127.0.0.1",
        // No pod ever runs, so tokens are not required.
        "--kube-apiserver-arg=disable-admission-plugins=ServiceAccount",
        "--kube-apiserver-arg=enable-priority-and-fairness=false",
        "--kube-apiserver-arg=max-requests-inflight=0",
        "--kube-apiserver-arg=max-mutating-requests-inflight=0",
        "--kube-controller-manager-arg=kube-api-qps=2000",
        "--kube-controller-manager-arg=kube-api-burst=4000",
    ]
    .map(str::to_owned)
    .to_vec();
    args.push(format!("--kube-apiserver-arg=enable-aggregator-routing={routes}"));
    if !settings.observed.is_empty() {
        args.push(format!("--kube-apiserver-arg=audit-policy-file={POLICY}"));
        args.push("--kube-apiserver-arg=audit-log-path=-".to_owned());
        args.push("--kube-apiserver-arg=audit-log-mode=blocking".to_owned());
    }
    let passed = |to: &str, flag: String| format!("--{to}-arg={}", flag.trim_start_matches('-'));
    let manager = |flag| passed("kube-controller-manager", flag);
    args.extend(flags(settings).into_iter().chain(gates(&settings.gates)).map(manager));
    args.extend(gates(&settings.gates).map(|flag| passed("kube-apiserver", flag)));
    args
}

fn spec(image: &str, settings: &Settings, routes: bool) -> Spec {
    let first = ["-c", FIRST, HELD].map(str::to_owned);
    Spec {
        image: image.to_owned(),
        entrypoint: Some("sh"),
        args: first.into_iter().chain(args(settings, routes)).collect(),
        files: vec![(POLICY.to_owned(), audit_policy(settings))],
        environment: Vec::new(),
        ports: vec![PORT],
        hold: ["sh", "-c", HOLD, HELD].map(str::to_owned).to_vec(),
    }
}

/// k3s in a container.
pub(crate) struct K3s {
    container: RunningContainer,
}

impl K3s {
    /// Starts k3s. Also returns a client of its administrator, and the API server's audit log.
    ///
    /// # Errors
    /// If it exits or is not ready in time, with the last lines of its log.
    pub(crate) async fn start(
        name: &Arc<str>,
        image: &str,
        settings: &Settings,
    ) -> Result<(K3s, Client, DuplexStream), EngineError> {
        // In a virtual machine, containers can reach this machine only by a host name.
        let routes = docker::gateway(name).await?.is_some_and(is_own);
        let spec = spec(image, settings, routes);
        let (container, log) = RunningContainer::start(name, &spec).await?;
        let deadline = Instant::now() + K3S_READY_TIMEOUT;
        let wait = async || {
            container.check()?;
            if Instant::now() > deadline {
                let why = format!("k3s was not ready within {} s", K3S_READY_TIMEOUT.as_secs());
                return Err(broken(name, &why, &container.tail()));
            }
            sleep(HEALTH_POLL_INTERVAL).await;
            Ok(())
        };
        let config = loop {
            if let Some(text) = container.read(KUBECONFIG).await
                && let Ok(config) = Kubeconfig::from_yaml(&text)
                && !config.clusters.is_empty()
            {
                break config;
            }
            wait().await?;
        };
        let server = format!("https://127.0.0.1:{}", container.port(PORT));
        let client = client::from_config(with_server(config, &server)).await;
        let client = client.map_err(|why| broken(name, &format!("k3s.yaml: {why}"), ""))?;
        while !is_ok(&client, "/readyz").await {
            wait().await?;
        }
        Ok((K3s { container }, client, log))
    }

    /// Its container.
    pub(crate) fn container(&self) -> &RunningContainer {
        &self.container
    }

    /// Stops it, and waits until it is removed.
    pub(crate) async fn stop(self) {
        self.container.stop().await;
    }
}

/// The kubeconfig with another server URL.
fn with_server(mut config: Kubeconfig, server: &str) -> Kubeconfig {
    for cluster in config.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.server = Some(server.to_owned());
    }
    config
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use kube_autoscaler_models::flags::Flags;
    use kube_autoscaler_models::time::Span;

    #[test]
    fn the_arguments_match_k3s() {
        let flags = Flags { sync_period: Span::from_secs(1), ..Flags::default() };
        let settings = Settings {
            gates: BTreeMap::from([("HPAConfigurableTolerance".to_owned(), true)]),
            observed: vec!["someone-else".to_owned()],
            ..Settings::new(flags)
        };
        insta::assert_snapshot!(args(&settings, true).join("\n"));
        let spec = spec("rancher/k3s:v1.33.1-k3s1", &settings, true);
        assert_eq!(spec.entrypoint, Some("sh"));
        assert_eq!(spec.args.get(2).map(String::as_str), Some(HELD));
    }

    #[test]
    fn the_kubeconfig_uses_the_mapped_port() {
        let text = "clusters:\n- name: default\n  cluster:\n    server: https://127.0.0.1:6443\n";
        let config = Kubeconfig::from_yaml(text).expect("a kubeconfig");
        let config = with_server(config, "https://127.0.0.1:33001");
        let server = config.clusters[0].cluster.as_ref().and_then(|it| it.server.clone());
        assert_eq!(server.as_deref(), Some("https://127.0.0.1:33001"));
    }
}
