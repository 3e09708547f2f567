//! The text of a prediction about the VPA: recommendations, and changes of pods.

use std::rc::Rc;

use super::{Run, rows, timelines};
use crate::counted;
use crate::presentation::Controller as _;
use crate::presentation::blocks::Block;
use crate::presentation::rows::Column;
use crate::table::Rows;
use kube_autoscaler_models::vpa::updater::PodUpdate;
use kube_autoscaler_models::vpa::{Snapshot, request_text};
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::run::recommender::FreeRecommenderRun;
use kube_lockstep_sim::run::{PodChange, PodChangeKind, UpdaterReport, VpaRun};

/// The recommender alone: a part for each VPA, and the summary.
pub(crate) fn alone(scenario: &VpaScenario, run: &FreeRecommenderRun, rows: Rows) -> Vec<Block> {
    let title = |vpa: &str| (scenario.vpas.len() > 1).then(|| Block::heading(format!("VPA {vpa}")));
    let mut blocks = parts(scenario, &run.snapshots, title, rows);
    let runs = counted(run.snapshots.len(), "tick");
    let legend = "lower, target and upper: lowerBound, target and upperBound of the recommendation";
    blocks.extend([Block::Space, Block::text(0, "", format!("{runs}; {legend}"))]);
    blocks
}

/// The VPA of a scenario with an HPA: recommendations, and changes of pods.
pub(crate) fn with_hpa(run: &VpaRun, rows: Rows) -> Vec<Block> {
    let about = format!("model of {}", run.release);
    let title = |vpa: &str| Some(Block::Heading(format!("VPA {vpa}"), about.clone()));
    let mut blocks = parts(&run.scenario, run.snapshots(), title, rows);
    blocks.push(Block::Space);
    blocks.extend(pod_changes(&run.pod_changes));
    let count = |kind| run.pod_changes.iter().filter(|it| it.kind == kind).count();
    let evicted = count(PodChangeKind::Evicted);
    let created = count(PodChangeKind::Created);
    let updated = count(PodChangeKind::Updated);
    let ending = format!(
        "{} of the recommender; {} evicted, {updated} updated in place, {created} created with \
         recommended requests",
        counted(run.snapshots().len(), "run"),
        counted(evicted, "pod"),
    );
    blocks.push(Block::text(0, "", ending));
    let unchanged = run.last_updater_report.as_ref().filter(|_| evicted + updated == 0);
    if let Some(report) = unchanged.filter(|report| !report.pods.is_empty()) {
        let why = format!("Why the updater changes no pods (its last run, t={}):", report.at);
        blocks.extend([Block::Space, Block::line(0, why)]);
        blocks.extend(updater_reasons(report));
    }
    blocks
}

/// The part of each VPA.
fn parts(
    scenario: &VpaScenario,
    snapshots: &[Snapshot],
    title: impl Fn(&str) -> Option<Block>,
    rows: Rows,
) -> Vec<Block> {
    let run = Rc::new(Run::from_statuses(scenario, snapshots));
    let count = scenario.names().count();
    let blocks = timelines(run).take(count).flat_map(|timeline| {
        let table = rows::table(snapshots, timeline.name(), rows);
        let charts = Block::Charts(timeline.charts(), scenario.until);
        let title = title(timeline.name());
        [Block::Space].into_iter().chain(title).chain([charts, Block::Ticks(table)])
    });
    blocks.collect()
}

/// The number of lines that state reasons of the updater.
const REASONS: usize = 5;

/// The treatment of each pod in a run of the updater, with the reason. Equal reasons share a line.
pub(super) fn updater_reasons(report: &UpdaterReport) -> Vec<Block> {
    let mut lines: Vec<(&str, String, Vec<&str>)> = Vec::new();
    for (pod, reason) in &report.pods {
        let (result, why) = match &reason.reason {
            Ok((PodUpdate::Evict(_), why)) => ("evicted", why.to_string()),
            Ok((PodUpdate::InPlace(_), why)) => ("updated", why.to_string()),
            Err(why) => ("unchanged", why.to_string()),
        };
        match lines.iter_mut().find(|(known, text, _)| *known == result && *text == why) {
            Some((_, _, pods)) => pods.push(pod),
            None => lines.push((result, why, vec![pod])),
        }
    }
    let shown = lines.iter().take(REASONS).map(|(result, why, pods)| {
        let names = match pods.as_slice() {
            [first, .., last] if pods.len() > 3 => format!("{first} … {last} ({})", pods.len()),
            few => few.join(", "),
        };
        Block::text(2, format!("{result:<9}  "), format!("{names}: {why}"))
    });
    let rest: usize = lines.iter().skip(REASONS).map(|(_, _, pods)| pods.len()).sum();
    let rest = (rest > 0).then(|| Block::line(2, format!("… and {}", counted(rest, "more pod"))));
    shown.chain(rest).collect()
}

/// The changes of pods as a table. Equal changes of one time have one row.
fn pod_changes(changes: &[PodChange]) -> Option<Block> {
    let is_same =
        |a: &PodChange, b: &PodChange| (a.at, a.kind, &a.requests) == (b.at, b.kind, &b.requests);
    let rows = changes.chunk_by(is_same).filter_map(|same| {
        let first = same.first()?;
        let pods = same.iter().map(|change| &*change.pod).collect::<Vec<_>>().join(", ");
        Some(vec![first.at.to_string(), pods, first.kind.name().to_owned(), requests(first)])
    });
    let mut columns = vec![Column::number("t")];
    columns.extend(["pods", "are", "requests"].map(Column::text));
    (!changes.is_empty()).then(|| Block::Table(0, columns, rows.collect()))
}

/// `app cpu=587m memory=250Mi; sidecar cpu=10m`.
fn requests(change: &PodChange) -> String {
    let containers = change.requests.iter().map(|(container, requests)| {
        let amounts = requests
            .iter()
            .map(|(resource, amount)| format!("{resource}={}", request_text(resource, amount)));
        format!("{container} {}", amounts.collect::<Vec<_>>().join(" "))
    });
    containers.collect::<Vec<_>>().join("; ")
}
