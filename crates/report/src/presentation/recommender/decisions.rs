//! The runs of the recommender that decide something new, for a list beside the charts.

use serde::Serialize;

use super::rows::conditions;
use super::ticks::targets;
use kube_autoscaler_models::vpa::{Snapshot, VpaStatus};
use kube_lockstep_sim::run::recommender::FreeRecommenderRun;

/// A run in which a target or a condition of a VPA changes, or an error is logged.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The number of the run, from 1.
    pub tick: usize,
    /// The time since the start.
    pub at: String,
    /// The name of the VPA.
    pub vpa: String,
    /// The targets: `app cpu 587m, memory 362.6Mi`. Empty without a recommendation.
    pub target: String,
    /// Changed conditions and errors.
    pub notes: Vec<String>,
}

/// The decisions of a run, in the order of time.
#[must_use]
pub fn decisions(run: &FreeRecommenderRun) -> Vec<Decision> {
    let none = VpaStatus::default();
    let mut before: Option<&Snapshot> = None;
    let mut found = Vec::new();
    for (index, snapshot) in run.snapshots.iter().enumerate() {
        for (position, (vpa, status)) in snapshot.statuses.iter().enumerate() {
            let last = before.and_then(|before| before.statuses.get(vpa)).unwrap_or(&none);
            let known = conditions(last);
            let changed = conditions(status).into_iter().filter(|it| !known.contains(it));
            // Errors are those of the whole run.
            let log = snapshot.log.iter().filter(|_| position == 0);
            let log = log.map(|log| format!("error: {log}"));
            let notes: Vec<String> = changed.chain(log).collect();
            let target = targets(status);
            if target != targets(last) || !notes.is_empty() {
                let (at, vpa) = (snapshot.at.to_string(), vpa.name.to_string());
                found.push(Decision { tick: index + 1, at, vpa, target, notes });
            }
        }
        before = Some(snapshot);
    }
    found
}
