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

use super::cluster::{GLANCE, program, signal, wait};
use super::support::place::children;

/// What is served: a load that two pods can't carry, and one metric of each other kind.
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

/// A metrics server that runs, and what it tells.
pub(super) struct Server {
    child: Child,
    told: Receiver<Value>,
    seen: Vec<Value>,
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
        let (to, told) = channel();
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if to.send(value).is_err() {
                    return;
                }
            }
        });
        Ok(Server { child, told, seen: Vec::new(), errors })
    }

    pub(super) fn said(&self) -> Result<String, Failed> {
        Ok(fs::read_to_string(self.errors.path())?)
    }

    pub(super) fn hear(&mut self) {
        self.seen.extend(self.told.try_iter());
    }

    /// Waits until something is told.
    pub(super) fn wait(&mut self, is: impl Fn(&Value) -> bool) -> Result<Value, Failed> {
        wait("what the server should tell", || {
            self.hear();
            if let Some(found) = self.seen.iter().find(|told| is(told)) {
                return Ok(Some(found.clone()));
            }
            match self.child.try_wait()? {
                Some(status) => Err(format!("it has ended ({status}): {}", self.said()?).into()),
                None => Ok(None),
            }
        })
    }

    pub(super) fn serves(&mut self) -> Result<Value, Failed> {
        self.wait(|told| told["event"] == "serving")
    }

    /// Waits for its end. What it has told, and how it ended.
    pub(super) fn ended(mut self) -> Result<(ExitStatus, Vec<Value>, String), Failed> {
        let status = wait("the server's end", || Ok(self.child.try_wait()?))?;
        sleep(GLANCE);
        self.hear();
        let said = self.said()?;
        Ok((status, std::mem::take(&mut self.seen), said))
    }

    /// Who looks whether it is killed: nobody yet, where it has just been started.
    pub(super) fn guards(&self) -> Result<String, Failed> {
        Ok(children(self.child.id())?)
    }

    /// Ends it together with its guard, as when its machine is lost.
    pub(super) fn lose(self) -> Result<(), Failed> {
        for guard in self.guards()?.split_whitespace() {
            Command::new("kill").args(["-KILL", guard]).status()?;
        }
        self.end("-KILL").map(drop)
    }

    pub(super) fn end(self, with: &str) -> Result<(ExitStatus, Vec<Value>, String), Failed> {
        signal(&self.child, with)?;
        self.ended()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The scenario as a file, and as an argument for a namespace.
pub(super) fn scenario(namespace: &str) -> Result<(tempfile::TempDir, String), Failed> {
    file(namespace, SCENARIO)
}

/// The same, but each query takes so long.
pub(super) fn slow_scenario(
    namespace: &str,
    by: Duration,
) -> Result<(tempfile::TempDir, String), Failed> {
    let slow = format!("timeline:\n  - {{at: 0s, metricsSlow: {}s}}\n", by.as_secs());
    file(namespace, &SCENARIO.replace("timeline:\n", &slow))
}

fn file(namespace: &str, scenario: &str) -> Result<(tempfile::TempDir, String), Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("web.yaml");
    fs::write(&path, scenario)?;
    let argument = format!("{}={namespace}", path.display());
    Ok((folder, argument))
}
