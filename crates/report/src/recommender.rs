//! The prediction of a scenario of the VPA's recommender as a table, and the explanation of one
//! run.

use std::fmt::Write as _;
use std::rc::Rc;

use anstyle::Style;

use super::counted;
use super::layout::{Align, Columns, hanging};
use super::presentation::Controller as _;
use super::presentation::recommender as presentation;
use super::presentation::recommender::rows::{self, conditions};
use super::style::{DIM, STRONG, paint};
use super::table::{Contents, Part, heading};
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::vpa::updater::PodUpdate;
use kube_autoscaler_models::vpa::{
    Estimation, Resource, Samples, Shares, Snapshot, VpaStatus, request_text,
};
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::run::recommendation::{Amounts, Derivation, amounts, derivation_of};
use kube_lockstep_sim::run::recommender::{Derived, ExplainedRun, FreeRecommenderRun};
use kube_lockstep_sim::run::{PodChange, PodChangeKind, UpdaterReport, VpaRun};

/// The smallest share of the samples that is not shown as 0.00%.
const SMALLEST_SHARE: f64 = 0.000_05;

/// The largest number of buckets of a histogram that are listed.
const BUCKETS: usize = 12;

/// A prediction without its heading: a part for each VPA, and the summary.
pub(super) fn body(scenario: &VpaScenario, run: &FreeRecommenderRun, contents: Contents) -> String {
    let title = |vpa: &str| (scenario.vpas.len() > 1).then(|| paint(STRONG, &format!("VPA {vpa}")));
    let mut out = parts(scenario, &run.snapshots, title, contents);
    let runs = counted(run.snapshots.len(), "tick");
    let legend = "lower, target and upper: lowerBound, target and upperBound of the recommendation";
    out.push('\n');
    out.push_str(&hanging("", &format!("{runs}; {legend}"), 0, contents.columns));
    out
}

/// The part of a prediction about the VPA with an HPA: recommendations, and changes of pods.
pub(super) fn with_hpa(run: &VpaRun, contents: Contents) -> String {
    let columns = contents.columns;
    let about = format!("model of {}", run.release);
    let title = |vpa: &str| {
        Some(format!("{}  {}", paint(STRONG, &format!("VPA {vpa}")), paint(DIM, &about)))
    };
    let mut out = parts(&run.scenario, run.snapshots(), title, contents);
    out.push('\n');
    out.push_str(&pod_changes(&run.pod_changes, columns));
    let evicted = run.pod_changes.iter().filter(|it| it.kind == PodChangeKind::Evicted).count();
    let created = run.pod_changes.iter().filter(|it| it.kind == PodChangeKind::Created).count();
    let updated = run.pod_changes.iter().filter(|it| it.kind == PodChangeKind::Updated).count();
    let ending = format!(
        "{} of the recommender; {} evicted, {updated} updated in place, {created} created with \
         recommended requests",
        counted(run.snapshots().len(), "run"),
        counted(evicted, "pod"),
    );
    out.push_str(&hanging("", &ending, 0, columns));
    let unchanged = run.last_updater_report.as_ref().filter(|_| evicted + updated == 0);
    if let Some(report) = unchanged.filter(|report| !report.pods.is_empty()) {
        let _ = writeln!(out, "\nWhy the updater changes no pods (its last run, t={}):", report.at);
        out.push_str(&updater_reasons(report, columns));
    }
    out
}

/// The part of each VPA.
fn parts(
    scenario: &VpaScenario,
    snapshots: &[Snapshot],
    title: impl Fn(&str) -> Option<String>,
    contents: Contents,
) -> String {
    let run = Rc::new(presentation::Run::from_statuses(scenario, snapshots));
    let count = scenario.names().count();
    let texts = presentation::timelines(run).take(count).map(|timeline| {
        let part = Part {
            title: title(timeline.name()),
            charts: timeline.charts(),
            table: rows::table(snapshots, timeline.name(), contents.rows),
            end: scenario.until,
        };
        part.text(contents)
    });
    texts.collect()
}

/// The number of lines that state reasons of the updater.
const REASONS: usize = 5;

/// The treatment of each pod in a run of the updater, with the reason. Equal reasons share a line.
fn updater_reasons(report: &UpdaterReport, columns: usize) -> String {
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
    let mut out = String::new();
    for (result, why, pods) in lines.iter().take(REASONS) {
        let names = match pods.as_slice() {
            [first, .., last] if pods.len() > 3 => format!("{first} … {last} ({})", pods.len()),
            few => few.join(", "),
        };
        let text = format!("{names}: {why}");
        out.push_str(&hanging(&format!("{result:<9}  "), &text, 2, columns));
    }
    let rest: usize = lines.iter().skip(REASONS).map(|(_, _, pods)| pods.len()).sum();
    if rest > 0 {
        let _ = writeln!(out, "  … and {}", counted(rest, "more pod"));
    }
    out
}

/// The changes of pods as a table. Equal changes of one time have one row.
fn pod_changes(changes: &[PodChange], columns: usize) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let mut table = Columns::new(&[Align::Right, Align::Left, Align::Left, Align::Left]);
    let header = ["t", "pods", "are", "requests"];
    table.row(header.map(str::to_owned).to_vec(), DIM);
    let is_same =
        |a: &PodChange, b: &PodChange| (a.at, a.kind, &a.requests) == (b.at, b.kind, &b.requests);
    for same in changes.chunk_by(is_same) {
        let Some(first) = same.first() else { continue };
        let pods = same.iter().map(|change| &*change.pod).collect::<Vec<_>>().join(", ");
        let row = vec![first.at.to_string(), pods, first.kind.name().to_owned(), requests(first)];
        table.row(row, Style::new());
    }
    table.render(0, columns)
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

/// The index of the first run that recommends resources for one of these VPAs.
#[must_use]
pub fn first_recommendation(snapshots: &[Snapshot], vpas: &[&str]) -> Option<usize> {
    snapshots.iter().position(|snapshot| {
        vpas.iter().filter_map(|vpa| snapshot.status(vpa)).any(|status| !amounts(status).is_empty())
    })
}

/// The names of the VPAs of a scenario.
pub fn names(scenario: &VpaScenario) -> Vec<&str> {
    scenario.names().map(|name| &*name.name).collect()
}

/// The explanation of one run: its samples, and how each amount follows from them.
#[must_use]
pub fn explain(
    scenario: &VpaScenario,
    run: &FreeRecommenderRun,
    index: usize,
    release: VpaRelease,
    columns: usize,
) -> String {
    let (id, requirement) = (&scenario.id, &scenario.requirement);
    let mut out = heading(id, requirement, &release.to_string(), columns);
    if let Some(snapshot) = run.snapshots.get(index) {
        let (number, runs) = (index + 1, run.snapshots.len());
        let _ = writeln!(out, "\ntick {number} of {runs}, t={}", snapshot.at);
        out.push_str(&explanation(run, index, columns));
    }
    out
}

/// The explanation of one run of the recommender with an HPA.
#[must_use]
pub fn explain_with_hpa(vpa: &VpaRun, index: usize, columns: usize) -> String {
    let run = &vpa.charted.run;
    let Some(snapshot) = run.snapshots.get(index) else { return String::new() };
    let (number, runs) = (index + 1, run.snapshots.len());
    let title = format!("run {number} of {runs} of the recommender, t={}", snapshot.at);
    let about = format!("model of {}", vpa.release);
    let mut out = format!("{}  {}\n", paint(STRONG, &title), paint(DIM, &about));
    out.push_str(&explanation(run, index, columns));
    let last = vpa.updater_reports.len().checked_sub(1);
    for (index, report) in vpa.updater_reports.iter().enumerate() {
        let changes = report.pods.iter().any(|(_, it)| it.reason.is_ok());
        if (changes || Some(index) == last) && !report.pods.is_empty() {
            let title = format!("run of the updater, t={}", report.at);
            let _ = writeln!(out, "\n{}", paint(STRONG, &title));
            out.push_str(&updater_reasons(report, columns));
        }
    }
    out
}

/// The samples of a run, and how each amount follows from them.
fn explanation(run: &FreeRecommenderRun, index: usize, columns: usize) -> String {
    let mut out = String::new();
    let Some(snapshot) = run.snapshots.get(index) else { return out };
    let Some(explained) = run.explained.get(&index) else { return out };
    for log in &explained.start_log {
        out.push_str(&hanging("log of the start: ", &log.to_string(), 2, columns));
    }
    out.push_str(&usage(explained));
    for occurrence in &explained.account {
        out.push_str(&hanging("", &occurrence.to_string(), 2, columns));
    }
    for log in &snapshot.log {
        out.push_str(&hanging("log: ", &log.to_string(), 2, columns));
    }
    for (name, samples) in &snapshot.checkpoints {
        let samples = counted(usize::try_from(*samples).unwrap_or(0), "sample");
        let _ = writeln!(out, "  checkpoint {name}: {samples}");
    }
    let none = VpaStatus::default();
    for Derived { vpa, samples, estimations } in &explained.derived {
        let status = snapshot.statuses.get(vpa).unwrap_or(&none);
        let _ = writeln!(out, "\n{}", paint(STRONG, &format!("VPA {}", vpa.name)));
        for (condition, text) in status.conditions.iter().zip(conditions(status)) {
            let separator = if condition.message.is_empty() { "" } else { ": " };
            let text = format!("{text}{separator}{}", condition.message);
            out.push_str(&hanging("", &text, 2, columns));
        }
        if let Some(generation) = status.observed_generation {
            let _ = writeln!(out, "  observedGeneration={generation}");
        }
        let recommended = amounts(status);
        for (container, estimations) in estimations {
            let _ = writeln!(out, "  container {container}");
            if let Some(samples) = samples.get(container) {
                out.push_str(&describe(samples));
            }
            for estimation in estimations {
                let result = recommended
                    .iter()
                    .find(|it| it.container == **container && it.resource == estimation.resource);
                out.push_str(&derivation(estimation, result, columns));
            }
        }
    }
    out
}

/// The usage that the run read.
fn usage(run: &ExplainedRun) -> String {
    let items = match &run.usage {
        Ok(items) if items.is_empty() => {
            return "  the metrics API returns no samples\n".to_owned();
        }
        Ok(items) => items,
        Err(error) => return format!("  the metrics API fails: {error}\n"),
    };
    let mut out = String::new();
    for item in items.iter() {
        for container in &item.containers {
            let none = || "none, which counts as 0".to_owned();
            let text = |resource: Resource, amount: Option<i64>| {
                amount.map_or_else(none, |it| resource.exact(it))
            };
            let cpu = text(Resource::Cpu, container.cpu);
            let memory = text(Resource::Memory, container.memory);
            let _ = writeln!(
                out,
                "  sample of {} {} at {}: cpu {cpu}, memory {memory}",
                item.pod.name, container.container, item.timestamp
            );
        }
    }
    out
}

fn describe(samples: &Samples) -> String {
    let mut out = String::new();
    let Samples { count, first, last, cpu, memory } = samples;
    match count {
        0 => out.push_str("    no cpu samples\n"),
        _ => {
            let count = counted(usize::try_from(*count).unwrap_or(0), "cpu sample");
            let _ = writeln!(out, "    {count} from {first} to {last}");
        }
    }
    out.push_str(&distribution(Resource::Cpu, cpu));
    out.push_str(&distribution(Resource::Memory, memory));
    out
}

/// The buckets of a resource with their shares.
fn distribution(resource: Resource, shares: &Shares) -> String {
    let mut out = String::new();
    let Shares { buckets, lighter } = shares;
    let name = resource.name();
    if *lighter >= SMALLEST_SHARE {
        let share = percent(*lighter);
        let _ = writeln!(out, "    buckets of {name} that weigh less than 0.0001 each: {share}");
    }
    let skipped = buckets.len().saturating_sub(BUCKETS);
    let mut below: f64 = 0.0;
    for (index, bucket) in buckets.iter().enumerate() {
        below += bucket.share;
        if index < skipped {
            continue;
        }
        if index == skipped && skipped > 0 {
            let share = percent(below - bucket.share);
            let _ = writeln!(out, "    {skipped} lower buckets of {name}: {share}");
        }
        let sum = match index + 1 == buckets.len() {
            true => String::new(),
            false => format!(", {} up to here", percent(below)),
        };
        let (bucket, share) = (bucket.text(resource), percent(bucket.share));
        let _ = writeln!(out, "    {bucket}: {share}{sum}");
    }
    out
}

fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

/// `target.cpu: the 90th percentile is in bucket …`.
fn derivation(estimation: &Estimation, result: Option<&Amounts>, columns: usize) -> String {
    let Derivation { what, how } = derivation_of(estimation, result);
    hanging(&format!("{what}: "), &how, 4, columns)
}
