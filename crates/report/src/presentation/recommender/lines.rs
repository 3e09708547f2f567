//! The runs of the VPA's recommender as JSON: one line for each run, and for each change of a pod
//! with an HPA.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::json::line;
use crate::presentation::recommender::rows::{names, shown};
use crate::table::Rows;
use kube_autoscaler_models::api::Requests;
use kube_autoscaler_models::vpa::{Snapshot, VpaStatus};
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::run::{PodChange, VpaRun};

/// Writes the runs. `scenario`: the id of the scenario, if each line has it.
pub(crate) fn write(
    out: &mut dyn Write,
    of: &VpaScenario,
    snapshots: &[Snapshot],
    rows: Rows,
    scenario: Option<&str>,
) -> io::Result<()> {
    let shown = shown(rows, snapshots, &names(of));
    let runs = snapshots.iter().enumerate().filter(|(index, _)| shown[*index]);
    for (index, snapshot) in runs {
        line(out, &RunLine { scenario, ..RunLine::new(index + 1, snapshot) })?;
    }
    Ok(())
}

/// Writes the part about the VPA, in a scenario with an HPA.
pub(crate) fn write_with_hpa(
    out: &mut dyn Write,
    run: &VpaRun,
    rows: Rows,
    scenario: Option<&str>,
) -> io::Result<()> {
    let shown = shown(rows, run.snapshots(), &names(&run.scenario));
    let runs = run.snapshots().iter().enumerate().filter(|(index, _)| shown[*index]);
    for (index, snapshot) in runs {
        line(out, &RunWithHpa { recommender: RunLine::new(index + 1, snapshot), scenario })?;
    }
    for change in &run.pod_changes {
        line(out, &PodWithHpa { pod: PodChangeLine::new(change), scenario })?;
    }
    Ok(())
}

/// The state after a run of the recommender.
#[derive(Serialize)]
struct RunLine<'a> {
    tick: usize,
    at: String,
    vpas: Vec<VpaLine<'a>>,
    checkpoints: &'a BTreeMap<Arc<str>, i64>,
    errors: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<&'a str>,
}

/// The status of a VPA, and its name.
#[derive(Serialize)]
struct VpaLine<'a> {
    #[serde(flatten)]
    status: &'a VpaStatus,
    vpa: &'a str,
    namespace: &'a str,
}

impl RunLine<'_> {
    fn new(number: usize, snapshot: &Snapshot) -> RunLine<'_> {
        let statuses = snapshot.statuses.iter();
        let vpas = statuses.map(|(name, status)| VpaLine {
            status,
            vpa: &name.name,
            namespace: &name.namespace,
        });
        RunLine {
            tick: number,
            at: snapshot.at.to_string(),
            vpas: vpas.collect(),
            checkpoints: &snapshot.checkpoints,
            errors: snapshot.log.iter().map(ToString::to_string).collect(),
            scenario: None,
        }
    }
}

/// A run of the recommender with an HPA.
#[derive(Serialize)]
struct RunWithHpa<'a> {
    recommender: RunLine<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<&'a str>,
}

/// A change of a pod of an HPA.
#[derive(Serialize)]
struct PodWithHpa<'a> {
    pod: PodChangeLine<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<&'a str>,
}

/// A change of a pod by the VPA.
#[derive(Serialize)]
struct PodChangeLine<'a> {
    at: String,
    pod: &'a str,
    change: &'static str,
    requests: RequestsLine<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// The requests of containers, by name.
struct RequestsLine<'a>(&'a [(Arc<str>, Requests)]);

impl Serialize for RequestsLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(container, requests)| (container, requests)))
    }
}

impl PodChangeLine<'_> {
    fn new(change: &PodChange) -> PodChangeLine<'_> {
        PodChangeLine {
            at: change.at.to_string(),
            pod: &change.pod,
            change: change.kind.name(),
            requests: RequestsLine(&change.requests),
            why: change.why.as_ref().map(ToString::to_string),
        }
    }
}
