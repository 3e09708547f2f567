//! Scenarios of the VPA's recommender in the library.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::COLUMNS;
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::ContainerRecommendation;
use kube_lockstep_report as report;
use kube_lockstep_report::prediction::Predicted;
use kube_lockstep_report::table::Contents;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::expect::Unmet;
use kube_lockstep_sim::run::recommender::{FreeRecommenderRun, free_recommender_run};

/// Predicts a scenario of a VPA on the model alone: no cluster, no Go.
///
/// ```
/// # extern crate kube_lockstep_predict as kube_lockstep;
/// use std::time::Duration;
///
/// use kube_lockstep::{PredictVpa, VpaScenario};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scenario: VpaScenario = "
/// apiVersion: kube-lockstep.dev/v1alpha1
/// kind: Scenario
/// requirement: A usage of half a CPU is recommended with a margin.
/// vpa:
///   apiVersion: autoscaling.k8s.io/v1
///   kind: VerticalPodAutoscaler
///   metadata: {name: web}
///   spec:
///     targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
/// workload: {replicas: 2, containers: [{name: app}]}
/// metrics: {resource: [{name: cpu, perPod: 500m}, {name: memory, perPod: 300Mi}]}
/// until: 10m
/// ".parse()?;
/// let prediction = PredictVpa::new(scenario).run();
/// let app = prediction.recommendation_at(Duration::from_secs(300), "web", "app");
/// let cpu = app.and_then(|app| app.target.cpu.as_ref()).map(ToString::to_string);
/// assert_eq!(cpu.as_deref(), Some("587m"));
/// println!("{prediction}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is run before `run` is called"]
pub struct PredictVpa {
    scenario: Arc<VpaScenario>,
    release: VpaRelease,
}

impl PredictVpa {
    /// Creates a prediction for the newest release of the recommender.
    pub fn new(scenario: impl Into<Arc<VpaScenario>>) -> PredictVpa {
        PredictVpa { scenario: scenario.into(), release: VpaRelease::NEWEST }
    }

    /// Sets the release.
    pub fn release(mut self, release: VpaRelease) -> PredictVpa {
        self.release = release;
        self
    }

    /// Runs the model.
    #[must_use]
    pub fn run(self) -> VpaPrediction {
        let PredictVpa { scenario, release } = self;
        let mut run = free_recommender_run(&scenario, release, &|_| false);
        let is_supported = scenario.unsupported_on(release).is_none();
        if !is_supported {
            // Expectations do not apply to other releases.
            run.unmet.clear();
        }
        VpaPrediction { run, is_supported, scenario, release }
    }
}

/// The prediction of a scenario of a VPA. Its `Display` is the table of the command, without
/// colors.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VpaPrediction {
    /// The state after each run of the recommender.
    pub run: FreeRecommenderRun,
    is_supported: bool,
    scenario: Arc<VpaScenario>,
    release: VpaRelease,
}

impl VpaPrediction {
    /// Returns true if the scenario applies to the release and can run on it.
    #[must_use]
    pub fn is_supported(&self) -> bool {
        self.is_supported
    }

    /// The expectations that are not met.
    #[must_use]
    pub fn unmet(&self) -> &[Unmet] {
        &self.run.unmet
    }

    /// The recommendation for a container, at a time after the start of the scenario. None: the
    /// status of the VPA contains none.
    #[must_use]
    pub fn recommendation_at(
        &self,
        time: Duration,
        vpa: &str,
        container: &str,
    ) -> Option<&ContainerRecommendation> {
        let time = Time::ZERO + Span(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
        let snapshot = self.run.snapshots.iter().rfind(|snapshot| snapshot.at <= time)?;
        let recommendation = snapshot.status(vpa)?.recommendation.as_ref()?;
        let mut containers = recommendation.container_recommendations.iter();
        containers.find(|it| &*it.container_name == container)
    }
}

impl fmt::Display for VpaPrediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = Contents::all(COLUMNS);
        let text = Predicted::vpa(&self.scenario, &self.run, self.release).text(all);
        f.write_str(&report::plain(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_lockstep_data::FIXTURES;

    #[test]
    fn a_scenario_of_an_hpa_is_an_error() {
        let text = FIXTURES.text("tolerance/upper-edge-is-inclusive.yaml").expect("a fixture");
        let error = text.parse::<VpaScenario>().expect_err("it has no VPA").to_string();
        assert!(error.contains("this is an HPA scenario"), "{error}");
    }

    #[test]
    fn there_is_no_recommendation_before_the_first_run() {
        let text = FIXTURES.text("vpa/runs/the-first-run.yaml").expect("a fixture");
        let scenario: VpaScenario = text.parse().expect("a valid scenario");
        let prediction = PredictVpa::new(scenario).run();
        assert!(prediction.is_supported() && prediction.unmet().is_empty());
        let at = |seconds| {
            let time = Duration::from_secs(seconds);
            prediction.recommendation_at(time, "web", "app").is_some()
        };
        assert!(!at(59) && at(60));
        assert!(prediction.to_string().contains("587m"), "{prediction}");
    }
}
