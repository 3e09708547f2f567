//! A running `kube-lockstep metrics-server` and its responses.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::Duration;

use libtest_mimic::Failed;
use serde_json::Value;

use super::cluster::{POLL_INTERVAL, program, signal, wait};
use crate::support::place::children;

/// The served scenario: a load for three pods, and one metric of each other kind.
const SCENARIO: &str = r#"
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: A load of 1.2 cores at half a core each takes three pods.
upstream: https://github.com/kubernetes/metrics
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    maxReplicas: 5
    metrics:
      - type: Resource
        resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
workload:
  replicas: 2
  containers: [{name: app, requests: {cpu: "1"}}]
metrics:
  resource:
    - {name: cpu, load: "1200m"}
    - {name: memory, perPod: 64Mi}
  pods: [{name: jobs, perPod: "3", pods: [{pods: "0", value: "7"}]}]
  object: [{name: hits, object: {kind: Service, name: front}, value: 2k}]
  external: [{name: queue, series: [{labels: {of: a}, value: "30"}, {labels: {of: b}, value: "5"}]}]
timeline:
  - {at: 1h, podsUnready: "0"}
until: 2h
"#;

/// A running metrics server, and its events.
pub(super) struct Server {
    child: Child,
    events: Receiver<Value>,
    received: Vec<Value>,
    errors: tempfile::NamedTempFile,
}

impl Server {
    pub(super) fn start(kubeconfig: &Path, args: &[&str]) -> Result<Server, Failed> {
        let errors = tempfile::NamedTempFile::new()?;
        let mut child = program()
            .args(["metrics-server", "--format", "json", "--kubeconfig"])
            .arg(kubeconfig)
            .args(args)
            .stdout(Stdio::piped())
            .stderr(errors.reopen()?)
            .spawn()?;
        let (sender, events) = channel();
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        Ok(Server { child, events, received: Vec::new(), errors })
    }

    pub(super) fn stderr(&self) -> Result<String, Failed> {
        Ok(fs::read_to_string(self.errors.path())?)
    }

    pub(super) fn receive(&mut self) {
        self.received.extend(self.events.try_iter());
    }

    /// Waits for an event.
    pub(super) fn wait(&mut self, matches: impl Fn(&Value) -> bool) -> Result<Value, Failed> {
        wait("an event of the server", || {
            self.receive();
            if let Some(found) = self.received.iter().find(|event| matches(event)) {
                return Ok(Some(found.clone()));
            }
            match self.child.try_wait()? {
                Some(status) => {
                    Err(format!("the server has exited ({status}): {}", self.stderr()?).into())
                }
                None => Ok(None),
            }
        })
    }

    pub(super) fn serves(&mut self) -> Result<Value, Failed> {
        self.wait(|event| event["event"] == "serving")
    }

    /// Waits for the exit; returns the status, the events and the standard error.
    pub(super) fn wait_for_exit(mut self) -> Result<(ExitStatus, Vec<Value>, String), Failed> {
        let status = wait("the exit of the server", || Ok(self.child.try_wait()?))?;
        sleep(POLL_INTERVAL);
        self.receive();
        let stderr = self.stderr()?;
        Ok((status, std::mem::take(&mut self.received), stderr))
    }

    /// The guards of the server. A server that has just been started has none yet.
    pub(super) fn guards(&self) -> Result<String, Failed> {
        Ok(children(self.child.id())?)
    }

    /// Kills the server together with its guard, as if its machine failed.
    pub(super) fn kill_with_guard(self) -> Result<(), Failed> {
        for guard in self.guards()?.split_whitespace() {
            Command::new("kill").args(["-KILL", guard]).status()?;
        }
        self.stop("-KILL").map(drop)
    }

    pub(super) fn stop(self, name: &str) -> Result<(ExitStatus, Vec<Value>, String), Failed> {
        signal(&self.child, name)?;
        self.wait_for_exit()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Writes the scenario to a file, and returns the argument that serves it in a namespace.
pub(super) fn scenario(namespace: &str) -> Result<(tempfile::TempDir, String), Failed> {
    file(namespace, SCENARIO)
}

/// Like [`scenario`], with queries that take `delay`.
pub(super) fn slow_scenario(
    namespace: &str,
    delay: Duration,
) -> Result<(tempfile::TempDir, String), Failed> {
    let slow = format!("timeline:\n  - {{at: 0s, metricsSlow: {}s}}\n", delay.as_secs());
    file(namespace, &SCENARIO.replace("timeline:\n", &slow))
}

fn file(namespace: &str, scenario: &str) -> Result<(tempfile::TempDir, String), Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("web.yaml");
    fs::write(&path, scenario)?;
    let argument = format!("{}={namespace}", path.display());
    Ok((folder, argument))
}
