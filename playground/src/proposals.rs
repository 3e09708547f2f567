//! The proposals of the metrics, before stabilization and limits, for a line in the charts.

use std::sync::Arc;

use kube_autoscaler_models::time::Time;
use kube_lockstep_predict::Scenario;
use kube_lockstep_sim::run::FreeRun;
use serde::Serialize;

/// The proposals of one HPA.
#[derive(Debug, Serialize)]
pub(crate) struct Proposals {
    hpa: Arc<str>,
    /// The end of the axis of time, in seconds.
    end: f64,
    /// Seconds and replicas; no replicas where the metrics propose none.
    points: Vec<(f64, Option<i32>)>,
}

/// The proposals of each HPA that was reconciled, in the order of their timelines.
pub(crate) fn proposals(scenario: &Scenario, run: &FreeRun) -> Vec<Proposals> {
    let mut all: Vec<Proposals> = Vec::new();
    let mut names: Vec<&Arc<str>> = scenario.hpas.iter().map(|hpa| &hpa.name).collect();
    for tick in &run.ticks {
        if !names.contains(&&tick.observation.hpa) {
            names.push(&tick.observation.hpa);
        }
    }
    for hpa in names {
        let own = run.ticks.iter().filter(|tick| tick.observation.hpa == *hpa);
        let mut end = scenario.until.max(Time::from_secs(1));
        let mut points = Vec::new();
        for tick in own {
            end = end.max(tick.observation.end());
            let at = tick.observation.at.since_start().as_secs_f64();
            points.push((at, tick.derivation.proposal));
        }
        if !points.is_empty() {
            let end = end.since_start().as_secs_f64();
            all.push(Proposals { hpa: hpa.clone(), end, points });
        }
    }
    all
}
