//! A controller of the user's own beside a control plane: its rights, its process, and its end.
//!
//! It is a foreign program: it does not end with its input, and may start others. So a guard holds
//! it, in a process group of its own: when the guard's input ends, however that comes about, the
//! controller is asked to end, and then all of the group is killed.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use crate::engine::EngineError;
use crate::engine::cluster::access::client;
use crate::engine::cluster::access::client::object;
use crate::engine::cluster::provision::embedded::ControlPlane;
use crate::engine::cluster::provision::process::tail;
use crate::engine::cluster::settings::Settings;
use crate::engine::custom::{Controller, USER};

/// The rights that a controller of HPAs needs; `docs/engines/custom.md` lists them.
const ROLE: &str = include_str!("controller_role.json");

/// How long its end may take: the guard asks for a second, and then kills.
const GRACE: Duration = Duration::from_secs(5);

/// Runs a command, and ends as it ends. What is left of the group goes with the guard's input.
const GUARD: &str = r#"
exec 3<&0 </dev/null
sh -c "$1" 3<&- &
controller=$!
(
  cat <&3 >/dev/null
  kill -TERM "$controller" 2>/dev/null
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    kill -0 "$controller" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL 0
) &
exec 3<&-
wait "$controller"
"#;

/// A controller that is ready to be started.
pub(crate) struct Own {
    name: Arc<str>,
    command: String,
    environment: Vec<(String, String)>,
    log: PathBuf,
}

impl Own {
    /// Gives the controller of the settings a user, if there is one: its rights and its kubeconfig.
    ///
    /// # Errors
    /// If the API server refuses, or a file can't be written.
    pub(crate) async fn prepare(
        control_plane: &ControlPlane,
        settings: &Settings,
    ) -> Result<Option<Own>, String> {
        let Some(controller) = &settings.controller else { return Ok(None) };
        let text = |error: std::io::Error| error.to_string();
        let admin = control_plane.kubeconfig("admin", Some("system:masters")).map_err(text)?;
        let admin = client::of_text(&admin).await?;
        grant(&admin, controller).await?;
        let kubeconfig = control_plane.folder().join("controller.kubeconfig");
        let config = control_plane.kubeconfig(USER, None).map_err(text)?;
        fs::write(&kubeconfig, config).map_err(text)?;
        Ok(Some(Own {
            name: controller.name().into(),
            command: controller.filled(&kubeconfig, &settings.flags, &settings.gates),
            environment: controller.environment(&kubeconfig, &settings.flags, &settings.gates),
            log: control_plane.folder().join("controller.log"),
        }))
    }

    /// Starts it.
    ///
    /// # Errors
    /// If there is no shell, or its log can't be made.
    pub(crate) fn start(self) -> std::io::Result<Running> {
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.log)?;
        let mut guard = Command::new("sh")
            .args(["-c", GUARD, "guard", &self.command])
            .envs(self.environment)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Ctrl-C in a terminal is for the one who asked for it.
            .process_group(0)
            .spawn()?;
        let input = guard.stdin.take();
        Ok(Running { guard, input, said: Said { name: self.name, log: self.log } })
    }
}

/// Who a controller is, and where it writes what it says.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// Its name.
    pub(crate) name: Arc<str>,
    log: PathBuf,
}

impl Said {
    /// The last lines of it.
    pub(crate) fn tail(&self) -> String {
        tail(&self.log).unwrap_or_default()
    }
}

/// A controller that runs.
pub(crate) struct Running {
    guard: Child,
    /// When this is closed, however that comes about, all of it ends.
    input: Option<ChildStdin>,
    said: Said,
}

impl Running {
    /// Where it writes what it says.
    pub(crate) fn said(&self) -> &Said {
        &self.said
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// If not, with the last lines of what it wrote.
    pub(crate) fn check(&mut self, engine: &Arc<str>) -> Result<(), EngineError> {
        let Some(status) = self.guard.try_wait().ok().flatten() else { return Ok(()) };
        let name = &self.said.name;
        Err(EngineError::Broken {
            engine: engine.clone(),
            why: format!("{name} has ended ({status}); a controller runs until it is ended"),
            output: self.said.tail(),
        })
    }

    /// Ends it, and waits until it is gone.
    pub(crate) async fn stop(mut self) {
        drop(self.input.take());
        let _ = timeout(GRACE, self.guard.wait()).await;
    }
}

/// Lets the controller do what controllers of HPAs do, and what is asked for besides.
async fn grant(client: &kube::Client, controller: &Controller) -> Result<(), String> {
    let mut role: Value = serde_json::from_str(ROLE).map_err(|error| error.to_string())?;
    if let Some(rules) = role["rules"].as_array_mut() {
        rules.extend_from_slice(controller.rules());
    }
    let role: ClusterRole = object(role)?;
    let group = "rbac.authorization.k8s.io";
    let binding: ClusterRoleBinding = object(json!({
        "metadata": { "name": USER },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": role.metadata.name },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": USER }],
    }))?;
    let post = PostParams::default();
    let refused = |error: kube::Error| format!("the controller's rights can't be granted: {error}");
    Api::all(client.clone()).create(&post, &role).await.map_err(refused)?;
    Api::all(client.clone()).create(&post, &binding).await.map(|_| ()).map_err(refused)
}
