//! k3s in a container: its own image, as a control plane without an agent.
//!
//! Without one there is no kubelet, and so no need of a privileged container. What it shows is what
//! the embedded control plane shows: it takes the same flags of upstream's programs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use kube::config::Kubeconfig;
use tokio::io::DuplexStream;
use tokio::time::sleep;

use crate::engine::EngineError;
use crate::engine::cluster::access::client;
use crate::engine::cluster::access::local_address::is_own;
use crate::engine::cluster::provision::args::audit_policy;
use crate::engine::cluster::provision::container::{Container, HELD, Spec};
use crate::engine::cluster::provision::docker;
use crate::engine::cluster::provision::embedded::{GLANCE, broken};
use crate::engine::cluster::settings::{Settings, flags, gates};

/// How long it may take until its API server answers.
const READY_LIMIT: Duration = Duration::from_secs(180);

/// Where k3s listens, and where it writes how it is reached.
const PORT: u16 = 6443;
const KUBECONFIG: &str = "/etc/rancher/k3s/k3s.yaml";

/// Where its audit policy is.
const POLICY: &str = "/etc/kube-lockstep/audit-policy.yaml";

/// Its first process: waits until it is held, and ends with k3s or when it is told to.
const FIRST: &str = r#"
trap 'exit 0' TERM
n=0
until [ -e "$0" ]; do
  n=$((n + 1))
  [ "$n" -lt 300 ] || { echo "nobody holds this container" >&2; exit 2; }
  sleep 0.1
done
k3s "$@" &
wait "$!"
"#;

/// What holds it.
const HOLD: &str = r#": >"$0"; cat >/dev/null; kill -TERM 1"#;

/// The usual image of a version.
pub(crate) fn usual(version: &str) -> String {
    format!("rancher/k3s:{version}-k3s1")
}

/// The arguments of k3s. Its API server routes to endpoints, unless there is no address that they
/// could have.
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
        // No pod ever runs, and none needs a token.
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
    args.extend(flags(&settings.flags).into_iter().chain(gates(&settings.gates)).map(manager));
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
    container: Container,
}

impl K3s {
    /// Starts one. Gives a client of its administrator, and the API server's audit log.
    ///
    /// # Errors
    /// If it ends or does not answer in time, with the tail of what it wrote.
    pub(crate) async fn start(
        name: &Arc<str>,
        image: &str,
        settings: &Settings,
    ) -> Result<(K3s, Client, DuplexStream), EngineError> {
        let begin = Instant::now();
        // Where containers are in a machine of their own, they find this one only by a name.
        let routes = docker::gateway(name).await?.is_some_and(is_own);
        let spec = spec(image, settings, routes);
        let (container, log) = Container::start(name, &spec).await?;
        let wait = async || {
            container.check()?;
            if begin.elapsed() > READY_LIMIT {
                let why = format!("k3s was not ready within {} s", READY_LIMIT.as_secs());
                return Err(broken(name, &why, &container.tail()));
            }
            sleep(GLANCE).await;
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
        let config = moved(config, &format!("https://127.0.0.1:{}", container.port(PORT)));
        let client = client::of_config(config).await;
        let client = client.map_err(|why| broken(name, &format!("k3s.yaml: {why}"), ""))?;
        while !client::get(&client, "/readyz").await.is_ok_and(|answer| answer == "ok") {
            wait().await?;
        }
        Ok((K3s { container }, client, log))
    }

    /// Its container.
    pub(crate) fn container(&self) -> &Container {
        &self.container
    }

    /// Ends it, and waits until nothing of it is left.
    pub(crate) async fn stop(self) {
        self.container.stop().await;
    }
}

/// The same with the server elsewhere.
fn moved(mut config: Kubeconfig, server: &str) -> Kubeconfig {
    for cluster in config.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.server = Some(server.to_owned());
    }
    config
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::flags::Flags;
    use crate::model::time::Span;

    #[test]
    fn the_arguments_match_k3s() {
        let flags = Flags { sync_period: Span::from_secs(1), ..Flags::default() };
        let settings = Settings {
            gates: BTreeMap::from([("HPAConfigurableTolerance".to_owned(), true)]),
            observed: vec!["somebody".to_owned()],
            ..Settings::of(flags)
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
        let moved = moved(config, "https://127.0.0.1:33001");
        let server = moved.clusters[0].cluster.as_ref().and_then(|it| it.server.clone());
        assert_eq!(server.as_deref(), Some("https://127.0.0.1:33001"));
    }
}
