//! A kind cluster that is deleted when this process exits.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::cluster::provision::bootstrap::broken;
use crate::cluster::provision::container::unique_name;
use crate::cluster::provision::process::Folder;
use crate::cluster::settings::{Settings, flags};
use crate::cluster::timeouts::KIND_READY_TIMEOUT;
use kube_lockstep_engines::guard::cluster::Guard;
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_sim::engine::EngineError;

/// The program, and the environment variable that replaces it.
const PROGRAM: &str = "kind";
const PROGRAM_VARIABLE: &str = "KUBE_LOCKSTEP_KIND";

/// The default node image of a version.
pub(crate) fn default_image(version: &str) -> String {
    format!("kindest/node:{version}")
}

/// The configuration of a new cluster.
fn config(image: &str, settings: &Settings) -> String {
    let flags: Vec<(String, String)> = flags(settings)
        .into_iter()
        .filter_map(|flag| {
            let (name, value) = flag.trim_start_matches('-').split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        })
        .collect();
    let by_name: serde_json::Map<String, Value> =
        flags.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let listed: Vec<Value> =
        flags.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    // kind applies the patch for the version of kubeadm's API that it uses.
    let patch = |version: &str, args: Value| {
        let patch = json!({
            "kind": "ClusterConfiguration",
            "apiVersion": format!("kubeadm.k8s.io/{version}"),
            "controllerManager": { "extraArgs": args },
        });
        format!("{patch:#}")
    };
    let config = json!({
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "featureGates": settings.gates,
        "nodes": [{ "role": "control-plane", "image": image }],
        "kubeadmConfigPatches": [patch("v1beta3", by_name.into()), patch("v1beta4", listed.into())],
    });
    format!("{config:#}\n")
}

/// A kind cluster that is deleted when this process exits.
#[derive(Debug)]
pub(crate) struct KindCluster {
    name: Arc<str>,
    cluster: String,
    folder: Folder,
    guard: Guard,
}

fn program() -> String {
    std::env::var(PROGRAM_VARIABLE).unwrap_or_else(|_| PROGRAM.to_owned())
}

/// Runs kind.
async fn run(name: &Arc<str>, args: &[&str], input: &str) -> Result<(), EngineError> {
    let program = program();
    let unavailable = |why: String, hint: &str| EngineError::Unavailable {
        engine: name.clone(),
        problem: Diagnostic::new(why).hint(hint),
    };
    let child = Command::new(&program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let mut child = child.map_err(|error| {
        let why = format!("the program {program} can't be run: {error}");
        unavailable(why, "install kind, or use `--engine kubeconfig` on any other cluster")
    })?;
    let failed = |error: std::io::Error| unavailable(format!("{program}: {error}"), "");
    if let Some(mut stdin) = child.stdin.take() {
        // If kind exits without reading its input, its output has the reason.
        let _ = stdin.write_all(input.as_bytes()).await;
    }
    let Output { status, stderr, .. } = child.wait_with_output().await.map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    let message = error_message(&String::from_utf8_lossy(&stderr));
    let why = format!("`{program} {}` failed ({status}): {message}", args.join(" "));
    Err(unavailable(why, "kind requires Docker, its image, and privileged containers"))
}

/// The error in the output of kind.
fn error_message(output: &str) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let errors = lines.iter().position(|line| line.starts_with("ERROR"));
    let from = errors.unwrap_or(lines.len().saturating_sub(3));
    lines.get(from..).unwrap_or_default().iter().take(6).copied().collect::<Vec<_>>().join("\n")
}

impl KindCluster {
    /// Creates a cluster.
    ///
    /// # Errors
    /// If kind is not installed or fails, with its message.
    pub(crate) async fn create(
        name: &Arc<str>,
        image: &str,
        settings: &Settings,
    ) -> Result<KindCluster, EngineError> {
        let failed = |what: &str, error| broken(name, &format!("{what}: {error}"), "");
        let folder = Folder::new().map_err(|error| failed("no folder", error))?;
        let cluster = unique_name();
        // The guard first, so that the cluster is deleted in any case.
        let guard = Guard::for_kind_cluster(&program(), &cluster);
        let guard = guard.map_err(|error| failed("no guard", error))?;
        let kind = KindCluster { name: name.clone(), cluster, folder, guard };
        // The user's kubeconfig is not changed.
        let own = kind.kubeconfig().display().to_string();
        let args = ["create", "cluster", "--name", &kind.cluster, "--config", "-"];
        let args = [&args[..], &["--kubeconfig", &own, "--wait", KIND_READY_TIMEOUT]].concat();
        match run(name, &args, &config(image, settings)).await {
            Ok(()) => Ok(kind),
            Err(error) => {
                // kind removes an incomplete cluster.
                kind.guard.disarm().await;
                Err(error)
            }
        }
    }

    /// Its kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Its context in the kubeconfig.
    pub(crate) fn context(&self) -> String {
        format!("kind-{}", self.cluster)
    }

    /// Deletes the cluster, and waits until it is deleted.
    pub(crate) async fn stop(self) {
        let args = ["delete", "cluster", "--name", &self.cluster];
        match run(&self.name, &args, "").await {
            Ok(()) => self.guard.disarm().await,
            // The guard tries again, even after this process has exited.
            Err(_) => drop(self.guard),
        }
        self.folder.close().await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use kube_autoscaler_models::flags::Flags;
    use kube_autoscaler_models::time::Span;

    #[test]
    fn the_configuration_matches_kind() {
        let flags = Flags { sync_period: Span::from_secs(1), ..Flags::default() };
        let gates = BTreeMap::from([("HPAConfigurableTolerance".to_owned(), true)]);
        let settings = Settings { gates, ..Settings::new(flags) };
        insta::assert_snapshot!(config(&default_image("v1.33.1"), &settings));
    }

    #[test]
    fn the_output_of_kind_is_shown_from_the_error_line() {
        let output = "Creating cluster ...\n \u{2022} Ensuring node image\nERROR: failed to create \
                    cluster: command failed\n\nCommand Output: denied\n";
        let why = "ERROR: failed to create cluster: command failed\nCommand Output: denied";
        assert_eq!(error_message(output), why);
        assert_eq!(error_message("one\ntwo\nthree\nfour\n"), "two\nthree\nfour");
    }
}
