//! A prediction from the manifest of an HPA, without a scenario file.

use std::fmt::Display;
use std::time::Duration;

use super::{Predict, Prediction};
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_manifests::{
    Draft, DraftError, DraftOptions, Load, ManifestFile, Selected, draft,
};
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::Diagnostic;

/// The name of the manifest in errors.
const MANIFEST: &str = "the manifest";
/// The name of everything else in errors.
const ARGUMENTS: &str = "the arguments";

/// The builder of a prediction from the manifest of an HPA. [`Predict::hpa`] creates it.
#[derive(Clone, Debug)]
#[must_use = "nothing is run before `run` is called"]
pub struct PredictHpa {
    manifest: String,
    options: DraftOptions,
    /// The requests of each pod, as `RESOURCE` and quantity.
    requests: Vec<Request>,
    /// The loads, or why one is invalid.
    loads: Vec<Result<Load, String>>,
    release: Release,
}

/// The request of each pod for a resource.
#[derive(Clone, Debug)]
struct Request {
    resource: String,
    quantity: String,
}

impl PredictHpa {
    pub(super) fn new(manifest: &str) -> PredictHpa {
        PredictHpa {
            manifest: manifest.to_owned(),
            options: DraftOptions {
                replicas: Some(1),
                until: Some(Span::from_secs(600)),
                ..DraftOptions::default()
            },
            requests: vec![Request { resource: "cpu".to_owned(), quantity: "1".to_owned() }],
            loads: Vec::new(),
            release: Release::NEWEST,
        }
    }

    /// Sets the replicas of the workload at the start (default: 1).
    pub fn replicas(mut self, replicas: i32) -> PredictHpa {
        self.options.replicas = Some(replicas);
        self
    }

    /// The request of each pod for a resource, as a quantity (default: one CPU).
    pub fn request(mut self, resource: &str, quantity: impl Display) -> PredictHpa {
        self.requests.retain(|request| request.resource != resource);
        let (resource, quantity) = (resource.to_owned(), quantity.to_string());
        self.requests.push(Request { resource, quantity });
        self
    }

    /// Sets the total usage of a resource by all pods: quantities, each from a time after the
    /// start.
    pub fn load<Q: Display>(
        mut self,
        resource: &str,
        steps: impl IntoIterator<Item = (Duration, Q)>,
    ) -> PredictHpa {
        let step = |(at, value): (Duration, Q)| (Time::ZERO + span(at), value.to_string());
        self.loads.push(Load::total_steps(resource, steps.into_iter().map(step)));
        self
    }

    /// Sets the end of the prediction (default: 10 minutes after the start).
    pub fn until(mut self, until: Duration) -> PredictHpa {
        self.options.until = Some(span(until));
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
        let draft = self.draft()?;
        let text = draft.to_yaml();
        let scenario = scenario::parse(ARGUMENTS, &text, &no_files);
        let scenario = scenario.map_err(|error| quote_lines(error, &text))?;
        Ok(Predict::new(scenario).release(self.release).run())
    }

    fn draft(&self) -> Result<Draft, scenario::Error> {
        let mut options = DraftOptions { vpas: Selected::Unsupported, ..self.options.clone() };
        for load in &self.loads {
            options.loads.push(load.clone().map_err(|why| invalid(ARGUMENTS, why))?);
        }
        for Request { resource, quantity } in &self.requests {
            let request = format!("{resource}={quantity}").parse();
            options.requests.push(request.map_err(|why: String| invalid(ARGUMENTS, why))?);
        }
        let (name, text) = (MANIFEST.to_owned(), self.manifest.clone());
        let file = ManifestFile { name, text, lenient: false };
        let drafts = draft(&[file], &options, &no_files).map_err(|error| match error {
            DraftError::Invalid(error) => error,
            DraftError::Options(problem) => invalid(MANIFEST, problem.what),
        })?;
        let count = drafts.list.len();
        let mut list = drafts.list.into_iter();
        let only = list.next().filter(|_| count == 1);
        only.ok_or_else(|| invalid(MANIFEST, format!("expected one HPA, found {count}")))
    }
}

fn no_files(_: &str) -> Result<String, Diagnostic> {
    Err("there is no other file".into())
}

/// An error without a position of its own.
fn invalid(path: &str, what: String) -> scenario::Error {
    scenario::Error::new(path, vec![Diagnostic::new(what).at(1, 1)])
}

/// Quotes the lines of the scenario in errors, since nobody has seen them.
fn quote_lines(mut error: scenario::Error, text: &str) -> scenario::Error {
    for problem in &mut error.problems {
        let line = problem.line().unwrap_or(1).saturating_sub(1);
        let line = text.lines().nth(line).unwrap_or_default();
        problem.what = format!("{}, in `{}`", problem.what, line.trim());
    }
    error
}

fn span(duration: Duration) -> Span {
    Span(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
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
        let error = error.expect_err("a misspelled field").to_string();
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
        assert!(error.contains(r#"found "1 GB""#), "{error}");
        for wrong in ["fast", ""] {
            let error = Predict::hpa(HPA).load("cpu", [(Duration::ZERO, wrong)]).run();
            let error = error.expect_err("no quantity").to_string();
            assert!(error.starts_with("the arguments:"), "{error}");
            assert!(error.contains("the load of cpu at 0s: expected a quantity"), "{error}");
            assert!(error.contains(&format!("{wrong:?}")), "{error}");
        }
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
