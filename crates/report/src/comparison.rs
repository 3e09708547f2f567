//! The comparison of several predictions: one row of figures for each.

use std::collections::BTreeMap;
use std::sync::Arc;

use anstyle::Style;
use serde::Serialize;

use super::first_difference::{FirstDifference, first_differences};
use super::layout::{Align, Columns, hanging, width};
use super::style::DIM;
use super::table;
use kube_autoscaler_models::derivation::{MetricDerivation, Target};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::{FreeRun, FreeTick};

/// The columns of figures, and what they mean.
pub const COLUMNS: [(&str, &str); 9] = [
    ("pod-hours", "the number of replicas, added up over time: the cost of the workload"),
    (
        "missing",
        "pod-hours by which the replicas are below what the metrics require to reach the targets \
         of the first setting: the capacity that is missing because of other targets, limits, \
         policies or the time between reconciles",
    ),
    (
        "above",
        "the time during which a metric is above its target in the first setting, beyond the \
         tolerance",
    ),
    ("longest", "the longest such time without interruption: the time to recover"),
    ("changes", "how often the controller changes the replicas"),
    ("reversals", "how often it changes the direction: up after down, or down after up"),
    (
        "excess",
        "the largest number of replicas above what the targets of the first setting require, for \
         example while a stabilization window holds them",
    ),
    ("peak", "the largest number of replicas"),
    (
        "failed",
        "the total time from each reconcile that failed, or in which a metric failed, to the next \
         reconcile",
    ),
];

/// The explanation of the columns, for a terminal.
#[must_use]
pub fn columns_help(columns: usize) -> String {
    let lines =
        COLUMNS.map(|(name, meaning)| hanging(&format!("{name:<11}  "), meaning, 2, columns));
    format!("Columns:\n{}", lines.concat().trim_end())
}

/// A row of the comparison.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComparisonRow {
    /// The name of the setting.
    pub setting: String,
    /// The namespace of the HPA.
    pub namespace: String,
    /// The name of the HPA, of the first one if the scenario has several.
    pub hpa: String,
    /// The release of Kubernetes.
    pub release: String,
    /// The number of the run, from 1, if there are several with different noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// The figures; absent if the release can't run the setting.
    #[serde(flatten)]
    pub figures: Option<Figures>,
    /// The first difference from the same run of the setting on the previous release that has
    /// figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_difference: Option<FirstDifference>,
    /// Why there are no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
}

/// The targets that the figures of all settings are measured against: those of one prediction.
/// Otherwise, a setting with a higher target would seem to miss less.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    /// The targets of each HPA, by its name.
    by_hpa: BTreeMap<Arc<str>, Vec<TargetsFrom>>,
}

/// The targets of an HPA from a time on.
#[derive(Clone, Debug)]
struct TargetsFrom {
    from: Time,
    metrics: Vec<MetricDerivation>,
}

impl TargetsFrom {
    /// The metric of the same name and source, as of a time.
    fn metric<'t>(
        targets: &'t [TargetsFrom],
        at: Time,
        like: &MetricDerivation,
    ) -> Option<&'t MetricDerivation> {
        let index = targets.partition_point(|it| it.from <= at).saturating_sub(1);
        let mut metrics = targets.get(index)?.metrics.iter();
        metrics.find(|it| (&it.name, &it.source) == (&like.name, &like.source))
    }
}

impl Reference {
    /// The targets of a prediction, of its first target.
    #[must_use]
    pub fn of(run: &FreeRun) -> Reference {
        let mut by_hpa: BTreeMap<Arc<str>, Vec<TargetsFrom>> = BTreeMap::new();
        for tick in ticks(run).filter(|tick| !tick.derivation.metrics.is_empty()) {
            let metrics = &tick.derivation.metrics;
            let targets = by_hpa.entry(tick.observation.hpa.clone()).or_default();
            let same = targets.last().is_some_and(|last| {
                let key = |it: &MetricDerivation| (it.name.clone(), it.source.clone(), it.target);
                last.metrics.iter().map(key).eq(metrics.iter().map(key))
            });
            if !same {
                let metrics = metrics.clone();
                targets.push(TargetsFrom { from: tick.observation.at, metrics });
            }
        }
        Reference { by_hpa }
    }

    /// The metric of the same name and source in the reference: of the HPA with the same name or,
    /// if that has none, of another HPA.
    fn metric(&self, tick: &FreeTick, like: &MetricDerivation) -> Option<&MetricDerivation> {
        let find = |targets| TargetsFrom::metric(targets, tick.observation.at, like);
        let of_hpa = self.by_hpa.get(&tick.observation.hpa);
        of_hpa.and_then(|it| find(it)).or_else(|| self.by_hpa.values().find_map(|it| find(it)))
    }

    /// The names of those metrics of a prediction that have no counterpart, and are measured
    /// against their own targets.
    #[must_use]
    pub fn lacks(&self, run: &FreeRun) -> Vec<Arc<str>> {
        let mut names = Vec::new();
        for tick in ticks(run) {
            for metric in &tick.derivation.metrics {
                let other = self.metric(tick, metric);
                let is_comparable =
                    other.is_some_and(|other| Rescale::of(metric.target, other.target).is_some());
                if !is_comparable && !names.contains(&metric.name) {
                    names.push(metric.name.clone());
                }
            }
        }
        names
    }

    /// The state of a metric. A metric without a counterpart is measured against its own target.
    fn measure(&self, tick: &FreeTick, metric: &MetricDerivation) -> Option<Measured> {
        let usage = metric.usage.filter(|_| metric.error.is_none())?;
        let other = self.metric(tick, metric).unwrap_or(metric);
        let rescale = Rescale::of(metric.target, other.target);
        let ratio = rescale.map_or(usage.ratio, |rescale| rescale.ratio(usage.ratio));
        let (downwards, upwards) = other.tolerances;
        let is_within = |ratio: f64| (1.0 - downwards..=1.0 + upwards).contains(&ratio);
        let required = match rescale.filter(|it| it.target != it.other) {
            None => metric.proposal?,
            Some(_) if is_within(ratio) => tick.replicas_before,
            Some(rescale) => match (usage.second, usage.status_replicas) {
                (Some(second), _) => {
                    let second_ratio = rescale.ratio(second.ratio);
                    let pods = ceil(second_ratio * f64::from(second.pods));
                    // As the controller: missing and unready pods don't change the direction.
                    let turns = (ratio > 1.0) != (second_ratio > 1.0)
                        || (pods > tick.replicas_before) != (second_ratio > 1.0);
                    if is_within(second_ratio) || turns { tick.replicas_before } else { pods }
                }
                (None, Some(replicas)) => ceil(ratio * f64::from(replicas)),
                (None, None) => ceil(ratio * f64::from(metric.pods.ready)),
            },
        };
        Some(Measured { is_above: ratio > 1.0 + upwards, required })
    }
}

fn ceil(replicas: f64) -> i32 {
    replicas.ceil() as i32
}

/// The result of the last reconcile of an HPA.
#[derive(Clone, Copy, Debug)]
struct HpaState {
    /// The most replicas that a metric requires; absent if no metric has a value.
    required: Option<i32>,
    /// A metric is above its target.
    is_above: bool,
    /// A metric, or the reconcile as a whole, failed.
    has_failed: bool,
}

impl HpaState {
    fn after(tick: &FreeTick, reference: &Reference) -> HpaState {
        let metrics = &tick.derivation.metrics;
        let measured = metrics.iter().filter_map(|metric| reference.measure(tick, metric));
        let measured: Vec<Measured> = measured.collect();
        HpaState {
            required: measured.iter().map(|it| it.required).max(),
            is_above: measured.iter().any(|it| it.is_above),
            has_failed: tick.derivation.error.is_some()
                || metrics.iter().any(|metric| metric.error.is_some()),
        }
    }
}

/// A metric, measured against the reference.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Above the target, beyond the tolerance.
    is_above: bool,
    /// The replicas that reach the target.
    required: i32,
}

/// Two targets of the same unit.
#[derive(Clone, Copy, Debug)]
struct Rescale {
    target: f64,
    other: f64,
}

impl Rescale {
    fn of(target: Target, other: Target) -> Option<Rescale> {
        let (target, other): (i64, i64) = match (target, other) {
            (Target::Utilization(target), Target::Utilization(other)) => {
                (target.into(), other.into())
            }
            (Target::AverageValue(target), Target::AverageValue(other))
            | (Target::Value(target), Target::Value(other)) => (target, other),
            _ => return None,
        };
        (other != 0).then_some(Rescale { target: target as f64, other: other as f64 })
    }

    /// The ratio of a usage to the other target, from its ratio to the target. The usage is a whole
    /// number: without rounding, `(90 / 60) * (60 / 75)` would be above `90 / 75`.
    fn ratio(self, ratio: f64) -> f64 {
        (ratio * self.target).round() / self.other
    }
}

/// The ticks of the HPAs of the first target.
pub fn ticks(run: &FreeRun) -> impl Iterator<Item = &FreeTick> {
    run.ticks.iter().filter(|tick| tick.target == 0)
}

/// The figures of a prediction, of the target of its first HPA.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// The integral of the replicas.
    pub pod_hours: f64,
    /// The integral of the replicas that are missing to reach the targets of the reference.
    pub missing_pod_hours: f64,
    /// The time above a target of the reference, in seconds.
    pub above_target_seconds: f64,
    /// The longest uninterrupted time above a target of the reference, in seconds.
    pub longest_above_target_seconds: f64,
    /// Changes of the replicas by the controller.
    pub changes: usize,
    /// Changes of the direction.
    pub direction_changes: usize,
    /// The most replicas above those that reach the targets of the reference.
    pub excess_replicas: i32,
    /// The largest number of replicas.
    pub peak_replicas: i32,
    /// The total time from each reconcile that failed, or in which a metric failed, to the next
    /// one, in seconds.
    pub failed_seconds: f64,
}

impl Figures {
    /// Calculates the figures of a run.
    #[must_use]
    pub fn of(scenario: &Scenario, run: &FreeRun, reference: &Reference) -> Figures {
        let mut figures = Figures::default();
        let points = table::points(scenario, run, 0);
        for (index, (at, replicas)) in points.iter().enumerate() {
            let end = points.get(index + 1).map_or(scenario.until, |(next, _)| *next);
            figures.pod_hours += f64::from(*replicas) * hours(end - *at);
            figures.peak_replicas = figures.peak_replicas.max(*replicas);
        }
        figures.add_ticks(scenario, run, reference);
        figures.add_changes(run);
        figures
    }

    /// The figures in the order of the columns.
    fn values(&self) -> [f64; 9] {
        [
            self.pod_hours,
            self.missing_pod_hours,
            self.above_target_seconds,
            self.longest_above_target_seconds,
            self.changes as f64,
            self.direction_changes as f64,
            f64::from(self.excess_replicas),
            f64::from(self.peak_replicas),
            self.failed_seconds,
        ]
    }

    /// Each reconcile stands for the time until the next one of the same HPA. If several HPAs scale
    /// the target, missing and excess replicas are those of the HPA that requires the most, and it
    /// is enough that one HPA is above a target or has failed.
    fn add_ticks(&mut self, scenario: &Scenario, run: &FreeRun, reference: &Reference) {
        let ticks: Vec<_> = ticks(run).collect();
        let instants: Vec<_> =
            ticks.chunk_by(|one, next| one.observation.at == next.observation.at).collect();
        let mut hpas: BTreeMap<&str, HpaState> = BTreeMap::new();
        let mut above_since: Option<Time> = None;
        for (index, instant) in instants.iter().enumerate() {
            for tick in *instant {
                hpas.insert(&tick.observation.hpa, HpaState::after(tick, reference));
            }
            let Some(last) = instant.last() else { continue };
            let (at, replicas) = (last.observation.at, last.replicas_after);
            let end = instants.get(index + 1).map_or(scenario.until, |next| next[0].observation.at);
            let lasts = end - at;
            if let Some(required) = hpas.values().filter_map(|hpa| hpa.required).max() {
                let missing = required.saturating_sub(replicas).max(0);
                self.missing_pod_hours += f64::from(missing) * hours(lasts);
                let excess = replicas.saturating_sub(required);
                self.excess_replicas = self.excess_replicas.max(excess);
            }
            if hpas.values().any(|hpa| hpa.has_failed) {
                self.failed_seconds += lasts.as_secs_f64();
            }
            if hpas.values().any(|hpa| hpa.is_above) {
                self.above_target_seconds += lasts.as_secs_f64();
                let since = *above_since.get_or_insert(at);
                self.longest_above_target_seconds =
                    self.longest_above_target_seconds.max((end - since).as_secs_f64());
            } else {
                above_since = None;
            }
        }
    }

    fn add_changes(&mut self, run: &FreeRun) {
        let changes = ticks(run).map(|tick| tick.replicas_after - tick.replicas_before);
        let changes: Vec<i32> = changes.filter(|change| *change != 0).collect();
        self.changes = changes.len();
        self.direction_changes =
            changes.windows(2).filter(|pair| pair[0].signum() != pair[1].signum()).count();
    }
}

fn hours(span: Span) -> f64 {
    span.as_secs_f64() / 3600.0
}

/// A line of the table: a row, or the mean, the least and the most of repeated runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// The setting, the release if there are several, and the figures.
    pub cells: Vec<String>,
    /// True for the least and the most of repeated runs.
    pub(super) is_detail: bool,
}

/// The head of the table.
pub fn head(rows: &[ComparisonRow]) -> Vec<&'static str> {
    let release = has_several_releases(rows).then_some("release");
    ["setting"].into_iter().chain(release).chain(COLUMNS.map(|(name, _)| name)).collect()
}

fn has_several_releases(rows: &[ComparisonRow]) -> bool {
    rows.iter().any(|row| row.release != rows[0].release)
}

/// The rows of the runs of each setting on each release.
pub(super) fn by_runs(rows: &[ComparisonRow]) -> impl Iterator<Item = &[ComparisonRow]> {
    rows.chunk_by(|one, other| (&one.setting, &one.release) == (&other.setting, &other.release))
}

/// The lines of the table.
pub fn lines(rows: &[ComparisonRow]) -> Vec<Line> {
    let several_releases = has_several_releases(rows);
    let line = |setting: String, release: &str, values: [f64; 9], digits: usize| {
        let mut cells = vec![setting];
        cells.extend(several_releases.then(|| release.to_owned()));
        cells.extend(cells_of(values, digits));
        cells
    };
    let mut lines = Vec::new();
    for runs in by_runs(rows) {
        let ComparisonRow { setting, release, run, .. } = &runs[0];
        let figures = runs.iter().filter_map(|row| row.figures.as_ref());
        let all: Vec<[f64; 9]> = figures.map(Figures::values).collect();
        let Some(first) = all.first() else { continue };
        let of = |combine: &dyn Fn(Vec<f64>) -> f64| {
            std::array::from_fn(|column| combine(all.iter().map(|values| values[column]).collect()))
        };
        let mut add = |cells, is_detail| lines.push(Line { cells, is_detail });
        if run.is_none() {
            add(line(setting.clone(), release, *first, 0), false);
            continue;
        }
        let mean = of(&|values| values.iter().sum::<f64>() / values.len() as f64);
        add(line(format!("{setting}: mean"), release, mean, 1), false);
        let least = of(&|values| values.into_iter().fold(f64::INFINITY, f64::min));
        add(line("  min".to_owned(), "", least, 0), true);
        let most = of(&|values| values.into_iter().fold(f64::NEG_INFINITY, f64::max));
        add(line("  max".to_owned(), "", most, 0), true);
    }
    lines
}

/// The figures as text. Counts have this number of digits after the point.
fn cells_of(values: [f64; 9], digits: usize) -> [String; 9] {
    let [pod_hours, missing, above, longest, changes, turns, excess, most, failed] = values;
    let time = |seconds: f64| Span::from_secs(seconds.round() as i64).to_string();
    let count = |count: f64| format!("{count:.digits$}");
    [
        format!("{pod_hours:.2}"),
        format!("{missing:.2}"),
        time(above),
        time(longest),
        count(changes),
        count(turns),
        count(excess),
        count(most),
        time(failed),
    ]
}

/// The rows as a table. If it is wider than `most_columns`, it is divided into parts.
#[must_use]
pub fn comparison(rows: &[ComparisonRow], columns: usize, most_columns: usize) -> String {
    let mut align = vec![Align::Left];
    align.extend(has_several_releases(rows).then_some(Align::Left));
    align.extend([Align::Right; 8]);
    align.push(Align::Left);
    let mut table = Table { keys: align.len() - COLUMNS.len(), align, rows: Vec::new() };
    table.rows.push((head(rows).into_iter().map(str::to_owned).collect(), DIM));
    for line in lines(rows) {
        table.rows.push((line.cells, if line.is_detail { DIM } else { Style::new() }));
    }
    let mut out = table.folded(most_columns);
    out.push_str(&first_differences(rows, columns));
    for text in not_compared(rows) {
        out.push_str(&hanging("", &text, 0, columns));
    }
    out
}

/// A table that is divided into parts if it is wider than the terminal.
struct Table {
    align: Vec<Align>,
    /// The number of first columns, which each part repeats.
    keys: usize,
    rows: Vec<(Vec<String>, Style)>,
}

impl Table {
    fn folded(&self, columns: usize) -> String {
        let widths: Vec<usize> = (0..self.align.len())
            .map(|index| {
                let cells = self.rows.iter().filter_map(|(cells, _)| cells.get(index));
                cells.map(|cell| width(cell) + 2).max().unwrap_or(0)
            })
            .collect();
        let keys: usize = widths[..self.keys].iter().sum();
        let mut parts: Vec<Vec<usize>> = Vec::new();
        let mut room = 0;
        for (index, width) in widths.iter().enumerate().skip(self.keys) {
            match parts.last_mut().filter(|_| *width <= room) {
                Some(part) => part.push(index),
                None => {
                    parts.push(vec![index]);
                    // The last column of a part is not followed by spaces.
                    room = (columns + 2).saturating_sub(keys);
                }
            }
            room = room.saturating_sub(*width);
        }
        let parts: Vec<String> = parts.iter().map(|part| self.part(part, columns)).collect();
        parts.join("\n")
    }

    fn part(&self, figures: &[usize], columns: usize) -> String {
        let indices: Vec<usize> = (0..self.keys).chain(figures.iter().copied()).collect();
        let mut align: Vec<Align> = indices.iter().map(|index| self.align[*index]).collect();
        // `Columns` renders the last column as text, aligned to the left. An empty one follows the
        // figures.
        align.push(Align::Left);
        let mut table = Columns::new(&align);
        for (cells, style) in &self.rows {
            let cells = indices.iter().map(|index| cells[*index].clone());
            table.row(cells.chain([String::new()]).collect(), *style);
        }
        table.render(0, columns)
    }
}

/// The rows without figures, each with the reason.
pub fn not_compared(rows: &[ComparisonRow]) -> impl Iterator<Item = String> {
    rows.iter().filter_map(|ComparisonRow { setting, release, not_compared, .. }| {
        let why = not_compared.as_ref()?;
        let why = why.strip_prefix(&format!("on {release}: ")).unwrap_or(why);
        Some(format!("not compared: {setting} on {release}: {why}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::rules::Release;
    use kube_lockstep_scenario::testing::{WEB, scenario};
    use kube_lockstep_sim::run::free_run;

    #[test]
    fn figures_are_integrals_over_the_run() {
        // Twice the target from 30s on: two pods become four, which stay above the target.
        let text = WEB
            .replace(
                "perPod: 500m",
                "perPod: {steps: [{at: 0s, value: 500m}, {at: 30s, value: 1}]}",
            )
            .replace("maxReplicas: 10", "maxReplicas: 4");
        let scenario = scenario(&text);
        let run = free_run(&scenario, Release::NEWEST);
        let figures = Figures::of(&scenario, &run, &Reference::of(&run));
        // 30 s with 2 pods, 90 s with 4 pods.
        assert!((figures.pod_hours - (30.0 * 2.0 + 90.0 * 4.0) / 3600.0).abs() < 1e-9);
        assert_eq!((figures.changes, figures.direction_changes), (1, 0));
        assert_eq!((figures.peak_replicas, figures.excess_replicas), (4, 0));
        assert!((figures.above_target_seconds - 90.0).abs() < 1e-9, "{figures:?}");
        assert!((figures.longest_above_target_seconds - 90.0).abs() < 1e-9, "{figures:?}");
        assert!(figures.missing_pod_hours > 0.0 && figures.failed_seconds == 0.0, "{figures:?}");
    }

    #[test]
    fn settings_are_measured_against_the_same_targets() {
        // 900m per pod from the start: the first setting has a target of 500m.
        let text = WEB.replace("perPod: 500m", "perPod: 900m");
        let first = scenario(&text);
        let reference = Reference::of(&free_run(&first, Release::NEWEST));
        let higher = scenario(&text.replace("averageValue: 500m", "averageValue: 900m"));
        let run = free_run(&higher, Release::NEWEST);
        let own = Figures::of(&higher, &run, &Reference::of(&run));
        assert_eq!((own.above_target_seconds, own.missing_pod_hours), (0.0, 0.0));
        let figures = Figures::of(&higher, &run, &reference);
        assert!((figures.above_target_seconds - 120.0).abs() < 1e-9, "{figures:?}");
        // Two pods stay, and 1.8 times as many, rounded up, would reach the first target.
        assert!((figures.missing_pod_hours - 2.0 * 120.0 / 3600.0).abs() < 1e-9, "{figures:?}");
    }

    #[test]
    fn the_required_replicas_are_exact() {
        // 900m per pod against 750m: 1.2 × 5 = 6 pods, although 900 / 600 × (600 / 750) > 1.2.
        let text =
            WEB.replace("perPod: 500m", "perPod: 900m").replace("replicas: 2", "replicas: 5");
        let text = text.replace("maxReplicas: 10", "minReplicas: 5\n    maxReplicas: 5");
        let with_target = |target: &str| scenario(&text.replace("averageValue: 500m", target));
        let first = with_target("averageValue: 750m");
        let reference = Reference::of(&free_run(&first, Release::NEWEST));
        for target in ["750m", "600m", "500m", "450m"] {
            let scenario = with_target(&format!("averageValue: {target}"));
            let run = free_run(&scenario, Release::NEWEST);
            let figures = Figures::of(&scenario, &run, &reference);
            assert!((figures.missing_pod_hours - 120.0 / 3600.0).abs() < 1e-9, "{figures:?}");
        }
    }

    #[test]
    fn reconciles_without_a_scale_have_failed() {
        let text = format!(
            "{WEB}timeline:\n- {{at: 30s, for: 60s, getScaleError: {{code: 500, message: slow}}}}\n"
        );
        let scenario = scenario(&text);
        let run = free_run(&scenario, Release::NEWEST);
        let figures = Figures::of(&scenario, &run, &Reference::of(&run));
        assert!((figures.failed_seconds - 60.0).abs() < 1e-9, "{figures:?}");
    }

    #[test]
    fn all_hpas_of_a_target_count() {
        // Before 1.26, both HPAs reconcile. Only the first one is above its target.
        let (hpa, rest) = WEB.split_once("workload:").expect("a workload");
        let (head, hpa) = hpa.split_once("hpa:\n").expect("an HPA");
        let list = |hpa: &str| hpa.replacen("  ", "- ", 1);
        let other = hpa
            .replace("name: web}", "name: other}")
            .replace("averageValue: 500m", "averageValue: 1");
        let other = other.replace("name: other}\n    maxReplicas", "name: web}\n    maxReplicas");
        let text = format!("{head}hpas:\n{}{}workload:{rest}", list(hpa), list(&other));
        let text = text
            .replace("perPod: 500m", "perPod: 900m")
            .replace("maxReplicas: 10", "maxReplicas: 2");
        let scenario = scenario(&text);
        let figures = |release: &str| {
            let run = free_run(&scenario, release.parse().expect("a release"));
            let reference = Reference::of(&run);
            assert_eq!(reference.lacks(&run), Vec::<Arc<str>>::new(), "{release}");
            Figures::of(&scenario, &run, &reference)
        };
        let old = figures("1.24");
        assert!(old.above_target_seconds > 90.0 && old.missing_pod_hours > 0.04, "{old:?}");
        assert!(
            figures("1.37").failed_seconds > 90.0,
            "ambiguous selectors: {:?}",
            figures("1.37")
        );
    }

    #[test]
    fn wide_tables_are_divided() {
        let scenario = scenario(WEB);
        let run = free_run(&scenario, Release::NEWEST);
        let figures = Figures::of(&scenario, &run, &Reference::of(&run));
        let row = ComparisonRow {
            setting: "a setting with a long name".to_owned(),
            namespace: "default".to_owned(),
            hpa: "web".to_owned(),
            release: "1.37".to_owned(),
            run: None,
            figures: Some(figures),
            first_difference: None,
            not_compared: None,
        };
        let rows = [row];
        assert_eq!(comparison(&rows, 100, 200).lines().count(), 2);
        let folded = comparison(&rows, 80, 80);
        assert!(folded.lines().all(|line| line.chars().count() <= 80), "{folded}");
        for (name, _) in COLUMNS {
            assert_eq!(folded.matches(name).count(), 1, "{name}: {folded}");
        }
        assert_eq!(folded.matches("a setting with a long name").count(), 2, "{folded}");
    }

    /// Two settings with the same replicas miss the same capacity, also while pods are unready.
    #[test]
    fn unready_pods_count_the_same_for_all_settings() {
        let text = WEB
            .replace("perPod: 500m", "load: {steps: [{at: 0s, value: 1}, {at: 1m, value: 5900m}]}")
            .replace("replicas: 2", "replicas: 2\n  startup: {ready: 10m}")
            .replace("maxReplicas: 10", "maxReplicas: 30")
            .replace("until: 2m", "until: 9m");
        let first = scenario(&text);
        let reference = Reference::of(&free_run(&first, Release::NEWEST));
        let figures = |target: &str| {
            let scenario = scenario(&text.replace("averageValue: 500m", target));
            let run = free_run(&scenario, Release::NEWEST);
            let replicas: Vec<i32> = run.ticks.iter().map(|tick| tick.replicas_after).collect();
            (Figures::of(&scenario, &run, &reference), replicas)
        };
        let (one, other) = (figures("averageValue: 500m"), figures("averageValue: 495m"));
        assert_eq!(one.1, other.1, "the settings have the same replicas");
        assert!(one.1.iter().any(|replicas| *replicas > 2), "{:?}", one.1);
        assert_eq!(one.0.missing_pod_hours, other.0.missing_pod_hours);
    }
}
