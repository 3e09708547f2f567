//! A new cluster of the program `kind`, which goes with this process.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::engine::EngineError;
use crate::engine::cluster::provision::container::called;
use crate::engine::cluster::provision::embedded::broken;
use crate::engine::cluster::provision::guard::Guard;
use crate::engine::cluster::provision::process::Folder;
use crate::engine::cluster::settings::{Settings, flags};

/// The program; another one may take its place.
const PROGRAM: &str = "kind";
const PROGRAM_VARIABLE: &str = "KUBE_LOCKSTEP_KIND";

/// How long a new cluster may take until its node is ready, in kind's words.
const WAIT: &str = "3m";

/// Deletes a cluster that was made for a process that is gone; again and again, since kind may only
/// be making it, and goes on with that.
const GUARD: &str = r#"
cat >/dev/null
for pause in 0 5 15 60 180; do
  sleep "$pause"
  "$1" delete cluster --name "$2"
done
"#;

/// The usual image of a version's nodes.
pub(crate) fn usual(version: &str) -> String {
    format!("kindest/node:{version}")
}

/// What kind is told of a new cluster.
fn config(image: &str, settings: &Settings) -> String {
    let flags: Vec<(String, String)> = flags(&settings.flags)
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
    // A patch is of one version of kubeadm's API; kind takes the one of the version that it writes.
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

/// A cluster that was made, and is deleted with this process.
#[derive(Debug)]
pub(crate) struct Kind {
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
        why,
        hint: hint.to_owned(),
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
        // One that ends without reading says why.
        let _ = stdin.write_all(input.as_bytes()).await;
    }
    let Output { status, stderr, .. } = child.wait_with_output().await.map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&stderr);
    let why = format!("`{program} {}` failed ({status}): {}", args.join(" "), last(&said));
    Err(unavailable(why, "kind needs Docker, its image, and privileged containers"))
}

/// The lines that say why, of all that kind says.
fn last(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let errors = lines.iter().position(|line| line.starts_with("ERROR"));
    let from = errors.unwrap_or(lines.len().saturating_sub(3));
    lines.get(from..).unwrap_or_default().iter().take(6).copied().collect::<Vec<_>>().join("\n")
}

fn folder(name: &Arc<str>) -> Result<Folder, EngineError> {
    Folder::new().map_err(|error| broken(name, &format!("no folder: {error}"), ""))
}

impl Kind {
    /// Makes a new cluster.
    ///
    /// # Errors
    /// If there is no kind, or it fails: what it says of that.
    pub(crate) async fn create(
        name: &Arc<str>,
        image: &str,
        settings: &Settings,
    ) -> Result<Kind, EngineError> {
        let (cluster, folder) = (called(), folder(name)?);
        // First the one who deletes it.
        let guard = Guard::new(GUARD, &[program(), cluster.clone()]);
        let guard = guard.map_err(|error| broken(name, &format!("no guard: {error}"), ""))?;
        let kind = Kind { name: name.clone(), cluster, folder, guard };
        // The user's own kubeconfig is not to know of it.
        let own = kind.kubeconfig().display().to_string();
        let args = ["create", "cluster", "--name", &kind.cluster, "--config", "-"];
        let args = [&args[..], &["--kubeconfig", &own, "--wait", WAIT]].concat();
        match run(name, &args, &config(image, settings)).await {
            Ok(()) => Ok(kind),
            Err(error) => {
                // kind removes what it has begun.
                kind.guard.dismiss().await;
                Err(error)
            }
        }
    }

    /// Its kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// The context of it there.
    pub(crate) fn context(&self) -> String {
        format!("kind-{}", self.cluster)
    }

    /// Deletes it, and waits until it is gone.
    pub(crate) async fn stop(self) {
        let args = ["delete", "cluster", "--name", &self.cluster];
        match run(&self.name, &args, "").await {
            Ok(()) => self.guard.dismiss().await,
            // Left to the guard, which tries again, also when this process has ended.
            Err(_) => drop(self.guard),
        }
        self.folder.close().await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::flags::Flags;
    use crate::model::time::Span;

    #[test]
    fn the_configuration_matches_kind() {
        let flags = Flags { sync_period: Span::from_secs(1), ..Flags::default() };
        let gates = BTreeMap::from([("HPAConfigurableTolerance".to_owned(), true)]);
        let settings = Settings { gates, ..Settings::of(flags) };
        insta::assert_snapshot!(config(&usual("v1.33.1"), &settings));
    }

    #[test]
    fn the_output_of_kind_is_shown_from_its_error_on() {
        let said = "Creating cluster ...\n \u{2022} Ensuring node image\nERROR: failed to create \
                    cluster: command failed\n\nCommand Output: denied\n";
        let why = "ERROR: failed to create cluster: command failed\nCommand Output: denied";
        assert_eq!(last(said), why);
        assert_eq!(last("one\ntwo\nthree\nfour\n"), "two\nthree\nfour");
    }
}
