//! The prediction of a scenario of the VPA's recommender as a table, and the explanation of one
//! run.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anstyle::Style;

use super::layout::{Align, Columns, hanging};
use super::style::{DIM, STRONG, paint};
use super::table::{Contents, Rows};
use super::unmet::UnmetOf;
use super::{counted, outcome, plot};
#[cfg(feature = "pages")]
use kube_autoscaler_models::api::ConditionStatus;
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::updater::PodUpdate;
use kube_autoscaler_models::vpa::{
    Estimation, LogLine, ObjectName, Resource, Samples, Shares, Snapshot, VpaStatus, request_text,
};
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::expect::Unmet;
use kube_lockstep_sim::run::recommendation::{Amounts, Derivation, amounts, derivation_of};
use kube_lockstep_sim::run::recommender::{Derived, ExplainedRun, FreeRecommenderRun, PodUsage};
use kube_lockstep_sim::run::{PodChange, PodChangeKind, UpdaterReport, VpaRun};

/// The relative change of a bound that is worth a row.
const CHANGE: f64 = 0.1;

/// The smallest share of the samples that is not shown as 0.00%.
const SMALLEST_SHARE: f64 = 0.000_05;

/// The largest number of buckets of a histogram that are listed.
const BUCKETS: usize = 12;

/// The whole prediction: the scenario, a table for each VPA, and the notes.
#[must_use]
pub fn free_run(
    scenario: &VpaScenario,
    run: &FreeRecommenderRun,
    release: VpaRelease,
    contents: Contents,
) -> String {
    let columns = contents.columns;
    let mut out = heading(scenario, release, columns);
    for name in scenario.names() {
        out.push('\n');
        if scenario.vpas.len() > 1 {
            let _ = writeln!(out, "{}", paint(STRONG, &format!("VPA {}", name.name)));
        }
        let end = scenario.until;
        out.push_str(&charts_and_table(&run.snapshots, &name.name, end, contents));
    }
    let runs = counted(run.snapshots.len(), "tick");
    let legend = "lower, target and upper: lowerBound, target and upperBound of the recommendation";
    out.push('\n');
    out.push_str(&hanging("", &format!("{runs}; {legend}"), 0, columns));
    for note in &run.notes {
        out.push_str(&outcome::note_line(&scenario.path, note, columns));
    }
    out
}

/// The part of a prediction about the VPA beside an HPA: recommendations, and changes of pods.
#[must_use]
pub fn beside_hpa(run: &VpaRun, contents: Contents) -> String {
    let columns = contents.columns;
    let mut out = String::new();
    for name in run.scenario.names() {
        let title = format!("VPA {}", name.name);
        let about = format!("model of {}", run.release);
        let _ = writeln!(out, "\n{}  {}", paint(STRONG, &title), paint(DIM, &about));
        let end = run.scenario.until;
        out.push_str(&charts_and_table(run.snapshots(), &name.name, end, contents));
    }
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

/// The target, the lower and upper bound, and the uncapped target, for people.
fn cell_texts(amounts: &Amounts) -> [String; 4] {
    let mut texts = amounts.texts.clone();
    for (text, bytes) in texts.iter_mut().zip(amounts.values) {
        if amounts.resource == Resource::Memory && !text.is_empty() {
            *text = Resource::Memory.text(bytes as i64);
        }
    }
    texts
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

fn heading(scenario: &VpaScenario, release: VpaRelease, columns: usize) -> String {
    let mut out = format!("{}  model of {release}\n", paint(STRONG, &scenario.id));
    for line in hanging("", &scenario.requirement, 2, columns).lines() {
        let _ = writeln!(out, "{}", paint(DIM, line));
    }
    out
}

/// The state of a run, as far as a later run with the same state needs no row.
struct Shown {
    targets: Vec<(String, Resource, String, String)>,
    bounds: Vec<f64>,
    conditions: Vec<String>,
}

impl Shown {
    fn of(amounts: &[Amounts], conditions: Vec<String>) -> Shown {
        let target = |it: &Amounts| {
            (it.container.clone(), it.resource, it.texts[0].clone(), it.texts[3].clone())
        };
        let bounds = amounts.iter().flat_map(|it| [it.values[1], it.values[2]]);
        Shown {
            targets: amounts.iter().map(target).collect(),
            bounds: bounds.collect(),
            conditions,
        }
    }

    /// Returns true if a later state is so similar that it has no row.
    fn covers(&self, later: &Shown) -> bool {
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= CHANGE * a.abs();
        (&self.targets, &self.conditions) == (&later.targets, &later.conditions)
            && self.bounds.iter().zip(&later.bounds).all(near)
    }
}

pub(crate) fn conditions(status: &VpaStatus) -> Vec<String> {
    let texts = status.conditions.iter().map(|it| match it.reason.is_empty() {
        true => format!("{}={}", it.type_, it.status),
        false => format!("{}={} ({})", it.type_, it.status, it.reason),
    });
    texts.collect()
}

/// The conditions that explain why there is no current recommendation, in one line.
#[cfg(feature = "pages")]
pub fn problems(status: &VpaStatus) -> String {
    let found = status.conditions.iter().filter(|it| match &*it.type_ {
        "RecommendationProvided" => it.status == ConditionStatus::False,
        _ => it.status == ConditionStatus::True,
    });
    let texts = found.map(|it| match &*it.type_ {
        "RecommendationProvided" => "no recommendation".to_owned(),
        type_ => type_.to_owned(),
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// Charts of the targets, and the recommendations as a table.
fn charts_and_table(snapshots: &[Snapshot], vpa: &str, end: Time, contents: Contents) -> String {
    let Contents { rows, has_charts, columns } = contents;
    let table = table(snapshots, vpa, rows, columns);
    let charts = has_charts.then(|| plot::recommendations(snapshots, vpa, end, columns));
    match charts.as_deref().and_then(|charts| charts.strip_prefix('\n')) {
        Some(charts) => format!("{charts}\n{table}"),
        None => table,
    }
}

fn table(snapshots: &[Snapshot], vpa: &str, shown: Rows, columns: usize) -> String {
    use Align::{Left, Right};
    let none = VpaStatus::default();
    // The uncapped target is shown if it differs from the target anywhere.
    let is_capped = snapshots.iter().any(|snapshot| {
        let amounts = amounts(snapshot.status(vpa).unwrap_or(&none));
        amounts.iter().any(Amounts::is_capped)
    });
    let mut align = vec![Right, Left, Left, Left, Right, Right, Right];
    let mut header = vec!["tick", "t", "container", "resource", "lower", "target", "upper"];
    if is_capped {
        align.push(Right);
        header.push("uncapped");
    }
    align.push(Left);
    header.push("status");
    let mut table = Columns::new(&align);
    table.row(header.into_iter().map(str::to_owned).collect(), DIM);
    let is_shown = shown_runs(shown, snapshots, &[vpa]);
    let mut last: Option<Shown> = None;
    let mut folded: Option<(usize, &Snapshot)> = None;
    for (index, snapshot) in snapshots.iter().enumerate().filter(|(index, _)| is_shown[*index]) {
        let status = snapshot.status(vpa).unwrap_or(&none);
        let amounts = amounts(status);
        let conditions = conditions(status);
        let now = Shown::of(&amounts, conditions.clone());
        let is_end = index + 1 == snapshots.len();
        let is_same = shown == Rows::All && last.as_ref().is_some_and(|last| last.covers(&now));
        if is_same && snapshot.log.is_empty() && !is_end {
            folded = Some((folded.map_or(1, |(count, _)| count + 1), snapshot));
            continue;
        }
        fold(&mut table, folded.take());
        let changed = last.as_ref().is_none_or(|last| last.conditions != conditions);
        let mut notes = if changed { conditions } else { Vec::new() };
        notes.extend(counted_lines(&snapshot.log));
        let head = vec![(index + 1).to_string(), snapshot.at.to_string()];
        rows(&mut table, head, &amounts, is_capped, &notes.join("; "));
        last = Some(now);
    }
    table.render(0, columns)
}

/// The runs that a report contains, by index: with [`Rows::Changes`], those that change a target or
/// a condition of a VPA, and those with an error.
pub(super) fn shown_runs(rows: Rows, snapshots: &[Snapshot], vpas: &[&str]) -> Vec<bool> {
    let state = |snapshot: &Snapshot| {
        let of = |vpa: &&str| {
            let status = snapshot.status(vpa)?;
            Some((Shown::of(&amounts(status), Vec::new()).targets, conditions(status)))
        };
        vpas.iter().map(of).collect::<Vec<_>>()
    };
    let mut last = None;
    let shown = snapshots.iter().map(|snapshot| {
        if rows == Rows::All {
            return true;
        }
        let now = Some(state(snapshot));
        let is_changed = now != last;
        last = now;
        is_changed || !snapshot.log.is_empty()
    });
    shown.collect()
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

fn fold(table: &mut Columns, folded: Option<(usize, &Snapshot)>) {
    if let Some((count, last)) = folded {
        let ticks = counted(count, "more tick");
        table.row(vec![format!("     … {ticks} with similar results, until {}", last.at)], DIM);
    }
}

fn rows(
    table: &mut Columns,
    mut head: Vec<String>,
    amounts: &[Amounts],
    is_capped: bool,
    notes: &str,
) {
    if amounts.is_empty() {
        head.extend(std::iter::repeat_n(String::new(), 5 + usize::from(is_capped)));
        head.push(notes.to_owned());
        return table.row(head, Style::new());
    }
    let mut container = None;
    for (index, amounts) in amounts.iter().enumerate() {
        let mut cells = match index {
            0 => std::mem::take(&mut head),
            _ => vec![String::new(), String::new()],
        };
        let is_same = container == Some(&amounts.container);
        cells.push(if is_same { String::new() } else { amounts.container.clone() });
        container = Some(&amounts.container);
        cells.push(amounts.resource.name().to_owned());
        let [target, lower, upper, uncapped] = cell_texts(amounts);
        cells.extend([lower, target, upper]);
        cells.extend(is_capped.then_some(uncapped));
        cells.push(if index == 0 { notes.to_owned() } else { String::new() });
        match index {
            0 => table.row(cells, Style::new()),
            _ => table.continued(cells, Style::new()),
        }
    }
}

/// Logged errors, equal ones once with their number.
fn counted_lines(log: &[LogLine]) -> Vec<String> {
    let mut lines: Vec<(String, usize)> = Vec::new();
    for text in log.iter().map(ToString::to_string) {
        match lines.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => lines.push((text, 1)),
        }
    }
    let text = |(text, count)| match count {
        1 => text,
        count => format!("{text} (×{count})"),
    };
    lines.into_iter().map(text).collect()
}

/// The cells of a VPA in one run for CSV, one row for each resource of a container: container,
/// resource, lowest and highest usage, lower bound, target, upper bound and uncapped target.
pub(super) fn rows_of(
    vpa: &ObjectName,
    status: &VpaStatus,
    usage: &[PodUsage],
) -> Vec<Vec<String>> {
    let amounts = amounts(status);
    let own = || usage.iter().filter(|usage| usage.vpa == *vpa);
    let mut keys: BTreeSet<(&str, Resource)> =
        amounts.iter().map(|it| (&*it.container, it.resource)).collect();
    keys.extend(own().map(|usage| (&*usage.container, usage.resource)));
    let rows = keys.into_iter().map(|(container, resource)| {
        let used = own().find(|it| *it.container == *container && it.resource == resource);
        let used = used.map_or([String::new(), String::new()], |used| {
            [used.lowest, used.highest].map(|amount| match resource {
                Resource::Cpu => (amount as f64 / 1000.0).to_string(),
                Resource::Memory => amount.to_string(),
            })
        });
        let mut amounts = amounts.iter();
        let recommended = amounts.find(|it| it.container == container && it.resource == resource);
        let value = |index: usize| recommended.map(|it| cell(it, index)).unwrap_or_default();
        let head = [container.to_owned(), resource.name().to_owned()];
        head.into_iter().chain(used).chain([1, 0, 2, 3].map(value)).collect()
    });
    rows.collect()
}

/// The lower bound, the target and the upper bound of each container and resource, for CSV.
pub(super) fn bounds_of(status: &VpaStatus) -> Vec<((String, &'static str), [String; 3])> {
    let amounts = amounts(status).into_iter();
    amounts
        .map(|it| {
            let cells = [1, 0, 2].map(|index| cell(&it, index));
            ((it.container, it.resource.name()), cells)
        })
        .collect()
}

/// An amount in cores or bytes. Empty: there is none.
fn cell(amounts: &Amounts, index: usize) -> String {
    match amounts.texts[index].is_empty() {
        true => String::new(),
        false => amounts.values[index].to_string(),
    }
}

/// The text about expectations, as for scenarios of HPAs.
#[must_use]
pub fn expectations(
    scenario: &VpaScenario,
    release: VpaRelease,
    unmet: &[Unmet],
    columns: usize,
) -> String {
    let expected = scenario.expectations_on(release).count();
    let name = release.to_string();
    let of = UnmetOf { id: &scenario.id, path: &scenario.path, release: &name };
    super::table::expectations(of, expected, unmet, columns)
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
    let mut out = heading(scenario, release, columns);
    if let Some(snapshot) = run.snapshots.get(index) {
        let (number, runs) = (index + 1, run.snapshots.len());
        let _ = writeln!(out, "\ntick {number} of {runs}, t={}", snapshot.at);
        out.push_str(&explanation(run, index, columns));
    }
    out
}

/// The explanation of one run of the recommender beside an HPA.
#[must_use]
pub fn explain_beside_hpa(vpa: &VpaRun, index: usize, columns: usize) -> String {
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

/// How the amounts of a VPA were derived, for pages: one text for each amount. Amounts that a
/// recommendation does not contain are left out.
#[cfg(feature = "pages")]
pub fn derivations(status: &VpaStatus, derived: &Derived) -> Vec<String> {
    let recommended = amounts(status);
    let mut texts = Vec::new();
    for (container, estimations) in &derived.estimations {
        if let Some(samples) = derived.samples.get(container) {
            let Samples { count, first, last, .. } = samples;
            texts.push(match count {
                0 => format!("{container}: no cpu samples"),
                _ => {
                    let count = counted(usize::try_from(*count).unwrap_or(0), "cpu sample");
                    format!("{container}: {count} from {first} to {last}")
                }
            });
        }
        for estimation in estimations {
            let is_it =
                |it: &&Amounts| it.container == **container && it.resource == estimation.resource;
            let result = recommended.iter().find(is_it);
            if result.is_none() && !recommended.is_empty() {
                continue;
            }
            let Derivation { what, how } = derivation_of(estimation, result);
            texts.push(format!("{container} {what}: {how}"));
        }
    }
    texts
}
