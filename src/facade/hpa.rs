//! A prediction from the manifest of an HPA, without a scenario file.

use std::fmt::Display;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Predict, Prediction};
use crate::model::rules::Release;
use crate::model::time::Span;
use crate::scenario::{self, Scenario};

/// The builder of a prediction from the manifest of an HPA. [`Predict::hpa`] creates it.
#[derive(Clone, Debug)]
#[must_use = "nothing is run before `run` is called"]
pub struct PredictHpa {
    manifest: String,
    replicas: i32,
    cpu_request: String,
    loads: Vec<Value>,
    until: Duration,
    release: Release,
}

impl PredictHpa {
    pub(super) fn new(manifest: &str) -> PredictHpa {
        PredictHpa {
            manifest: manifest.to_owned(),
            replicas: 1,
            cpu_request: "1".to_owned(),
            loads: Vec::new(),
            until: Duration::from_secs(600),
            release: Release::NEWEST,
        }
    }

    /// Sets the replicas of the workload at the start (default: 1).
    pub fn replicas(mut self, replicas: i32) -> PredictHpa {
        self.replicas = replicas;
        self
    }

    /// Sets the CPU request of each pod, as a quantity (default: `1`).
    pub fn cpu_request(mut self, quantity: impl Display) -> PredictHpa {
        self.cpu_request = quantity.to_string();
        self
    }

    /// Sets the total usage of a resource by all pods: quantities, each from a time after the
    /// start.
    pub fn load<Q: Display>(
        mut self,
        resource: &str,
        steps: impl IntoIterator<Item = (Duration, Q)>,
    ) -> PredictHpa {
        let step =
            |(at, value): (Duration, Q)| json!({ "at": span(at), "value": value.to_string() });
        let steps: Vec<Value> = steps.into_iter().map(step).collect();
        self.loads.push(json!({ "name": resource, "load": { "steps": steps } }));
        self
    }

    /// Sets the end of the prediction (default: 10 minutes after the start).
    pub fn until(mut self, until: Duration) -> PredictHpa {
        self.until = until;
        self
    }

    /// Sets the release of Kubernetes.
    pub fn release(mut self, release: Release) -> PredictHpa {
        self.release = release;
        self
    }

    /// Runs the model.
    ///
    /// # Errors
    /// If the manifest is not a valid HPA, or a quantity can't be parsed.
    pub fn run(self) -> Result<Prediction, scenario::Error> {
        let scenario: Scenario = self.text().parse()?;
        Ok(Predict::new(scenario).release(self.release).run())
    }

    fn text(&self) -> String {
        let manifest = self.manifest.trim_start_matches("---\n").trim_matches('\n');
        let manifest: Vec<String> = manifest.lines().map(|line| format!("  {line}")).collect();
        let containers = json!([{ "name": "app", "requests": { "cpu": self.cpu_request } }]);
        let workload = json!({ "replicas": self.replicas, "containers": containers });
        format!(
            "apiVersion: kube-lockstep.dev/v1alpha1\nkind: Scenario\nrequirement: A prediction.\n\
             hpa:\n{}\nworkload: {workload}\nmetrics: {}\nuntil: {}\n",
            manifest.join("\n"),
            json!({ "resource": self.loads }),
            span(self.until)
        )
    }
}

fn span(duration: Duration) -> String {
    Span(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HPA: &str = "---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 20
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
";

    #[test]
    fn the_load_decides_the_replicas() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let steps = [(minutes(0), "1"), (minutes(1), "2500m")];
        let predict = Predict::hpa(HPA).replicas(4).cpu_request("500m").load("cpu", steps);
        let prediction = predict.until(minutes(8)).run().expect("a valid manifest");
        assert_eq!(prediction.replicas_at(Duration::from_secs(45)), 4);
        assert_eq!(prediction.replicas_at(minutes(8)), 10);
    }

    #[test]
    fn an_invalid_manifest_is_an_error() {
        let error = Predict::hpa(&HPA.replace("maxReplicas", "maxReplica")).run();
        let error = error.expect_err("a misspelt field").to_string();
        assert!(error.contains("maxReplicas"), "{error}");
    }
}
