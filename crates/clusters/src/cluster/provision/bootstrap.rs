//! The start sequence of control planes, which is the same for processes and containers.

use std::sync::Arc;

use kube::Client;
use tokio::time::{Instant, sleep};

use crate::cluster::access::{client, custom_resources, rbac};
use crate::cluster::provision::args::DRIVER;
use crate::cluster::settings::Settings;
use crate::cluster::timeouts::{HEALTH_POLL_INTERVAL, READY_TIMEOUT};
use crate::cluster::workload::CustomKind;
use kube_lockstep_sim::engine::EngineError;

/// The number of log lines of each component that errors show if the cause is unknown.
const LOG_LINES: usize = 5;

/// The error of a failed start.
pub(crate) struct StartError {
    pub error: EngineError,
    /// Another process has taken a port.
    pub(crate) is_port_taken: bool,
}

impl From<EngineError> for StartError {
    fn from(error: EngineError) -> StartError {
        StartError { error, is_port_taken: false }
    }
}

/// A control plane whose etcd and API server have started.
pub(crate) trait Bootstrap {
    /// The engine's name.
    fn name(&self) -> &Arc<str>;

    /// Fails if a component has exited.
    fn check_components(&mut self) -> Result<(), StartError>;

    /// The last lines of the logs.
    fn tail(&self) -> String;

    async fn start_controller_manager(&mut self, settings: &Settings) -> Result<(), StartError>;

    /// Waits until the API server is ready, sets it up, starts the kube-controller-manager, and
    /// waits until that is healthy.
    async fn bootstrap(
        &mut self,
        admin: &Client,
        controllers: &Client,
        settings: &Settings,
    ) -> Result<(), StartError> {
        self.wait_until_ok("the API server", admin, "/readyz").await?;
        let set_up = set_up_api_server(admin, settings).await;
        set_up.map_err(|why| broken(self.name(), &why, ""))?;
        self.start_controller_manager(settings).await?;
        self.wait_until_healthy(controllers).await
    }

    /// Waits until the kube-controller-manager is healthy.
    async fn wait_until_healthy(&mut self, controllers: &Client) -> Result<(), StartError> {
        self.wait_until_ok("the kube-controller-manager", controllers, "/healthz").await
    }

    async fn wait_until_ok(
        &mut self,
        component: &str,
        client: &Client,
        path: &str,
    ) -> Result<(), StartError> {
        let deadline = Instant::now() + READY_TIMEOUT;
        while !is_ok(client, path).await {
            self.check_components()?;
            if Instant::now() > deadline {
                let why = format!("{component} was not ready within {} s", READY_TIMEOUT.as_secs());
                return Err(broken(self.name(), &why, &self.tail()).into());
            }
            sleep(HEALTH_POLL_INTERVAL).await;
        }
        Ok(())
    }
}

/// Returns true if a health endpoint reports that its server is healthy.
pub(crate) async fn is_ok(client: &Client, path: &str) -> bool {
    client::get(client, path).await.is_ok_and(|answer| answer == "ok")
}

/// Grants and revokes permissions, and defines the custom resources of the scenarios.
async fn set_up_api_server(admin: &Client, settings: &Settings) -> Result<(), String> {
    let kinds = &settings.custom_kinds;
    let rules = kinds.iter().map(CustomKind::rule).collect();
    rbac::grant(admin, client::ROLE, rules, DRIVER.name).await?;
    let revoked = rbac::revoke_anonymous(admin).await;
    revoked.map_err(|error| format!("permissions can't be revoked: {error}"))?;
    if !settings.observed.is_empty() {
        let denied = rbac::deny_event_writes(admin).await;
        denied.map_err(|error| format!("permissions can't be revoked: {error}"))?;
    }
    custom_resources::install(admin, kinds).await
}

/// The last log lines of each component, under its name.
pub(crate) fn last_lines(components: &[(&str, String)]) -> String {
    let logs = components.iter().filter(|(_, tail)| !tail.trim().is_empty());
    let last = logs.map(|(name, tail)| {
        let lines: Vec<&str> = tail.trim_end().lines().collect();
        let last = lines.get(lines.len().saturating_sub(LOG_LINES)..).unwrap_or_default();
        format!("{name}:\n{}\n", last.join("\n"))
    });
    last.collect()
}

/// The error of a broken engine.
pub(crate) fn broken(name: &Arc<str>, why: &str, output: &str) -> EngineError {
    EngineError::Broken { engine: name.clone(), why: why.to_owned(), output: output.to_owned() }
}
