//! Predictions on the model alone: [`Predict`] for HPAs, [`PredictVpa`] for VPAs. Without I/O.

#![warn(missing_docs)]

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_report as report;
use kube_lockstep_report::prediction::Predicted;
use kube_lockstep_report::table;
use kube_lockstep_report::table::Contents;
use kube_lockstep_sim::expect;
use kube_lockstep_sim::expect::{ScaleTargets, Unmet};
use kube_lockstep_sim::run::{FreeRun, free_run};

mod hpa;
mod vpa;

pub use hpa::PredictHpa;
pub use kube_autoscaler_models::rules::{Release, VpaRelease};
pub use kube_lockstep_scenario::Scenario;
pub use kube_lockstep_scenario::vpa::VpaScenario;
pub use vpa::{PredictVpa, VpaPrediction};

/// The width of reports.
#[doc(hidden)]
pub const COLUMNS: usize = 100;

/// Predicts a scenario on the model alone: no cluster, no Go.
///
/// ```
/// # extern crate kube_lockstep_predict as kube_lockstep;
/// use std::time::Duration;
///
/// use kube_lockstep::{Predict, Scenario};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scenario: Scenario = "
/// apiVersion: kube-lockstep.dev/v1alpha1
/// kind: Scenario
/// requirement: A load of five CPUs requires ten replicas at 50% of one CPU each.
/// hpa:
///   apiVersion: autoscaling/v2
///   kind: HorizontalPodAutoscaler
///   metadata: {name: web}
///   spec:
///     scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
///     maxReplicas: 20
///     metrics:
///       - type: Resource
///         resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
/// workload: {replicas: 8, containers: [{name: app, requests: {cpu: 1}}]}
/// metrics: {resource: [{name: cpu, load: 5}]}
/// until: 10m
/// ".parse()?;
/// let prediction = Predict::new(scenario).run();
/// assert_eq!(prediction.replicas_at(Duration::from_secs(300)), 10);
/// println!("{prediction}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is run before `run` is called"]
pub struct Predict {
    scenario: Arc<Scenario>,
    release: Release,
}

impl Predict {
    /// Creates a prediction from the manifest of an HPA, without a scenario.
    ///
    /// ```
    /// # extern crate kube_lockstep_predict as kube_lockstep;
    /// use std::time::Duration;
    ///
    /// use kube_lockstep::Predict;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let manifest = "
    /// apiVersion: autoscaling/v2
    /// kind: HorizontalPodAutoscaler
    /// metadata: {name: web}
    /// spec:
    ///   scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    ///   maxReplicas: 20
    ///   metrics:
    ///   - type: Resource
    ///     resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
    /// ";
    /// let minute = Duration::from_secs(60);
    /// let steps = [(Duration::ZERO, "1"), (minute, "5")];
    /// let prediction = Predict::hpa(manifest).replicas(2).load("cpu", steps).run()?;
    /// assert_eq!(prediction.replicas_at(8 * minute), 10);
    /// # Ok(())
    /// # }
    /// ```
    pub fn hpa(manifest: &str) -> PredictHpa {
        PredictHpa::new(manifest)
    }

    /// Creates a prediction for the newest release of Kubernetes.
    pub fn new(scenario: impl Into<Arc<Scenario>>) -> Predict {
        Predict { scenario: scenario.into(), release: Release::NEWEST }
    }

    /// Sets the release.
    pub fn release(mut self, release: Release) -> Predict {
        self.release = release;
        self
    }

    /// Runs the model.
    #[must_use]
    pub fn run(self) -> Prediction {
        let Predict { scenario, release } = self;
        let run = free_run(&scenario, release);
        // Expectations do not apply to other releases, or to a run that ends early.
        let applies = is_supported(&scenario, release) && run.undetermined.is_none();
        let expected = if applies { scenario.expect.as_slice() } else { &[] };
        let targets = ScaleTargets::new(&scenario);
        let unmet =
            expect::evaluate(expected, release, &run.trace.ticks, &targets, &run.external_scales);
        let why = |index: usize| Some(run.ticks.get(index)?.derivation.summary());
        let mut unmet: Vec<Unmet> = unmet.into_iter().map(|unmet| unmet.with_reason(why)).collect();
        if let Some(vpa) = run.vpa.as_ref().filter(|_| applies) {
            unmet.extend(vpa.unmet_with_reasons(&scenario, release));
        }
        Prediction { run, unmet, scenario, release }
    }
}

/// The prediction of a scenario. Its `Display` is the table of the command, without colors.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Prediction {
    /// Every reconcile, with its derivation.
    pub run: FreeRun,
    /// The expectations that are not met.
    pub unmet: Vec<Unmet>,
    scenario: Arc<Scenario>,
    release: Release,
}

fn is_supported(scenario: &Scenario, release: Release) -> bool {
    scenario.releases.contains(release) && scenario.unsupported_on(release).is_none()
}

impl Prediction {
    /// Returns true if the scenario applies to the release and can run on it.
    #[must_use]
    pub fn is_supported(&self) -> bool {
        is_supported(&self.scenario, self.release)
    }

    /// The replicas of the workload at a time after the start of the scenario.
    #[must_use]
    pub fn replicas_at(&self, time: Duration) -> i32 {
        let time = Time::ZERO + Span(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
        let points = table::points(&self.scenario, &self.run, 0);
        points.iter().rfind(|(at, _)| *at <= time).map_or(0, |(_, replicas)| *replicas)
    }
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let predicted = Predicted::hpa(&self.scenario, &self.run, &self.unmet);
        let text = predicted.text(Contents::all(COLUMNS));
        f.write_str(&report::plain(&text))
    }
}
