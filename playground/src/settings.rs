//! The settings of HPAs that the page has fields for: which of them a release has, and the values
//! that apply without them.

use kube_autoscaler_models::api::{Behavior, HpaSpec};
use kube_autoscaler_models::flags::Gate;
use kube_autoscaler_models::hpa::set_defaults;
use kube_autoscaler_models::rules::{Release, Rules};
use kube_lockstep_predict::Scenario;
use serde::Serialize;

/// The settings that a release has.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Settings {
    /// True if HPAs have `behavior`.
    behavior: bool,
    /// True if `behavior` has a tolerance, and the feature is enabled.
    tolerance: bool,
    defaults: Defaults,
}

/// The values that apply to an HPA that does not set them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Defaults {
    min_replicas: Option<i32>,
    /// The target of an HPA without metrics, in percent of the request.
    cpu_utilization: Option<i32>,
    /// Seconds.
    scale_up_window: Option<i32>,
    /// Seconds.
    scale_down_window: f64,
    tolerance: f64,
}

impl Settings {
    /// The settings of a scenario on a release.
    pub(crate) fn new(scenario: &Scenario, release: Release) -> Settings {
        let rules = Rules::of(release);
        let flags = scenario.flags_by(&rules);
        let mut spec = HpaSpec { behavior: Some(Behavior::default()), ..HpaSpec::default() };
        set_defaults(&mut spec);
        let scale_up = spec.behavior.and_then(|behavior| behavior.scale_up);
        let cpu = spec.metrics.first().and_then(|metric| metric.resource.as_ref());
        let has_gate = scenario.gates_by(&rules).enabled(Gate::HpaConfigurableTolerance);
        Settings {
            behavior: rules.admission.has_behavior,
            tolerance: rules.admission.has_tolerance && has_gate,
            defaults: Defaults {
                min_replicas: spec.min_replicas,
                cpu_utilization: cpu.and_then(|cpu| cpu.target.average_utilization),
                scale_up_window: scale_up.and_then(|rules| rules.stabilization_window_seconds),
                scale_down_window: flags.downscale_stabilization.as_secs_f64(),
                tolerance: flags.tolerance,
            },
        }
    }
}
