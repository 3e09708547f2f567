//! A prediction from the manifest of an HPA, without a scenario file.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Predict, Prediction};
use crate::model::rules::Release;
use crate::model::time::Span;
use crate::scenario::{self, API_VERSION};

/// The name of the manifest in errors.
const MANIFEST: &str = "the manifest";
/// The name of everything else in errors.
const ARGUMENTS: &str = "the arguments";

/// The builder of a prediction from the manifest of an HPA. [`Predict::hpa`] creates it.
#[derive(Clone, Debug)]
#[must_use = "nothing is run before `run` is called"]
pub struct PredictHpa {
    manifest: String,
    replicas: i32,
    requests: BTreeMap<String, String>,
    loads: Vec<Value>,
    until: Duration,
    release: Release,
}

impl PredictHpa {
    pub(super) fn new(manifest: &str) -> PredictHpa {
        PredictHpa {
            manifest: manifest.to_owned(),
            replicas: 1,
            requests: BTreeMap::from([("cpu".to_owned(), "1".to_owned())]),
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

    /// The request of each pod for a resource, as a quantity (default: one CPU).
    pub fn request(mut self, resource: &str, quantity: impl Display) -> PredictHpa {
        self.requests.insert(resource.to_owned(), quantity.to_string());
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
    /// If the manifest is not a valid HPA, with line and column; or if a quantity can't be parsed.
    pub fn run(self) -> Result<Prediction, scenario::Error> {
        let text = scenario::tree_to_yaml(&self.scenario());
        let manifest = |_: &str| Ok(self.manifest.clone());
        let scenario = scenario::parse(ARGUMENTS, &text, &manifest);
        let scenario = scenario.map_err(|error| quote_lines(error, &text))?;
        Ok(Predict::new(scenario).release(self.release).run())
    }

    /// The scenario, which refers to the manifest as a file of its own: errors in it have the line
    /// and column of the manifest.
    fn scenario(&self) -> Value {
        json!({
            "apiVersion": API_VERSION,
            "kind": "Scenario",
            "requirement": "A prediction.",
            "hpa": { "file": MANIFEST },
            "workload": {
                "replicas": self.replicas,
                "containers": [{ "name": "app", "requests": self.requests }],
            },
            "metrics": { "resource": self.loads },
            "until": span(self.until),
        })
    }
}

/// Quotes the lines of the scenario in errors outside the manifest, since nobody has seen them.
fn quote_lines(mut error: scenario::Error, text: &str) -> scenario::Error {
    for problem in error.problems.iter_mut().filter(|problem| problem.file.is_none()) {
        let line = text.lines().nth(problem.line.saturating_sub(1)).unwrap_or_default();
        problem.what = format!("{}, in `{}`", problem.what, line.trim());
    }
    error
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
        let predict = Predict::hpa(HPA).replicas(4).request("cpu", "500m").load("cpu", steps);
        let prediction = predict.until(minutes(8)).run().expect("a valid manifest");
        assert_eq!(prediction.replicas_at(Duration::from_secs(45)), 4);
        assert_eq!(prediction.replicas_at(minutes(8)), 10);
    }

    #[test]
    fn an_invalid_manifest_is_an_error() {
        let error = Predict::hpa(&HPA.replace("maxReplicas", "maxReplica")).run();
        let error = error.expect_err("a misspelt field").to_string();
        assert!(error.contains("the manifest:7:3: "), "{error}");
        assert!(error.contains("maxReplicas"), "{error}");
        let error = Predict::hpa(&HPA.replace("{name: web}\n", "{name: web\n")).run();
        let error = error.expect_err("a brace is not closed").to_string();
        assert!(error.starts_with("the manifest:"), "{error}");
        assert!(error.contains("not valid YAML"), "{error}");
    }

    #[test]
    fn an_invalid_argument_is_an_error_that_quotes_it() {
        let error = Predict::hpa(HPA).request("cpu", "1 GB").run();
        let error = error.expect_err("no quantity").to_string();
        assert!(error.starts_with("the arguments:"), "{error}");
        assert!(
            error.contains(r#"in `containers: [{name: app, requests: {cpu: 1 GB}}]`"#),
            "{error}"
        );
    }

    #[test]
    fn pods_can_request_several_resources() {
        let memory = HPA.replace("name: cpu", "name: memory");
        let load = [(Duration::ZERO, "4Gi")];
        let predict = Predict::hpa(&memory).request("memory", "1Gi").load("memory", load);
        let prediction = predict.run().expect("a valid manifest");
        assert_eq!(prediction.replicas_at(Duration::from_secs(300)), 8);
    }
}
