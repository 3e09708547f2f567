//! The comparison of several predictions: one row of figures for each.

use anstyle::Style;
use serde::Serialize;

use super::layout::{Align, Columns, hanging};
use super::style::DIM;
use super::table;
use crate::model::derivation::Derivation;
use crate::model::time::{Span, Time};
use crate::run::FreeRun;
use crate::scenario::Scenario;

/// The columns of figures, and what they mean.
pub(super) const COLUMNS: [(&str, &str); 9] = [
    ("pod-hours", "the number of replicas, added up over time: the cost of the workload"),
    (
        "missing",
        "pod-hours by which the replicas are below the proposal of the metrics: the capacity that \
         is missing because of limits, policies or the time between reconciles",
    ),
    ("above", "the time during which a metric is above its target, beyond the tolerance"),
    ("longest", "the longest such time without interruption: the time to recover"),
    ("changes", "how often the controller changes the replicas"),
    ("turns", "how often it changes the direction: up after down, or down after up"),
    (
        "excess",
        "the largest number of replicas above the proposal of the metrics, for example while a \
         stabilization window holds them",
    ),
    ("most", "the largest number of replicas"),
    ("failed", "the time during which a metric fails"),
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
    /// The release of Kubernetes.
    pub release: String,
    /// The number of the run, from 1, if there are several with different noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The figures of a prediction, of the target of its first HPA.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// The integral of the replicas.
    pub pod_hours: f64,
    /// The integral of the replicas that are missing for the proposal of the metrics.
    pub missing_pod_hours: f64,
    /// The time above the target, in seconds.
    pub above_target_seconds: f64,
    /// The longest uninterrupted time above the target, in seconds.
    pub longest_above_target_seconds: f64,
    /// Changes of the replicas by the controller.
    pub changes: usize,
    /// Changes of the direction.
    pub direction_changes: usize,
    /// The most replicas above the proposal of the metrics.
    pub excess_replicas: i32,
    /// The largest number of replicas.
    pub most_replicas: i32,
    /// The time with a failing metric, in seconds.
    pub failed_seconds: f64,
}

impl Figures {
    /// Calculates the figures of a run.
    #[must_use]
    pub fn of(scenario: &Scenario, run: &FreeRun) -> Figures {
        let mut figures = Figures::default();
        let points = table::points(scenario, run, 0);
        for (index, (at, replicas)) in points.iter().enumerate() {
            let end = points.get(index + 1).map_or(scenario.until, |(next, _)| *next);
            figures.pod_hours += f64::from(*replicas) * hours(end - *at);
            figures.most_replicas = figures.most_replicas.max(*replicas);
        }
        figures.add_ticks(scenario, run);
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
            f64::from(self.most_replicas),
            self.failed_seconds,
        ]
    }

    /// Each reconcile stands for the time until the next one.
    fn add_ticks(&mut self, scenario: &Scenario, run: &FreeRun) {
        let ticks: Vec<_> = run.ticks.iter().filter(|tick| tick.target == 0).collect();
        let mut above_since: Option<Time> = None;
        for (index, tick) in ticks.iter().enumerate() {
            let at = tick.observation.at;
            let end = ticks.get(index + 1).map_or(scenario.until, |next| next.observation.at);
            let lasts = end - at;
            let derivation = &tick.derivation;
            if let Some(proposal) = derivation.proposal {
                let missing = proposal.saturating_sub(tick.replicas_after).max(0);
                self.missing_pod_hours += f64::from(missing) * hours(lasts);
                let excess = tick.replicas_after.saturating_sub(proposal);
                self.excess_replicas = self.excess_replicas.max(excess);
            }
            if derivation.metrics.iter().any(|metric| metric.error.is_some()) {
                self.failed_seconds += lasts.as_secs_f64();
            }
            if is_above_target(derivation) {
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
        let ticks = run.ticks.iter().filter(|tick| tick.target == 0);
        let changes = ticks.map(|tick| tick.replicas_after - tick.replicas_before);
        let changes: Vec<i32> = changes.filter(|change| *change != 0).collect();
        self.changes = changes.len();
        self.direction_changes =
            changes.windows(2).filter(|pair| pair[0].signum() != pair[1].signum()).count();
    }
}

fn is_above_target(derivation: &Derivation) -> bool {
    derivation.metrics.iter().any(|metric| {
        let (_, upwards) = metric.tolerances;
        metric.usage.as_ref().is_some_and(|usage| usage.ratio > 1.0 + upwards)
    })
}

fn hours(span: Span) -> f64 {
    span.as_secs_f64() / 3600.0
}

/// A line of the table: a row, or the mean, the least and the most of repeated runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Line {
    /// The setting, the release if there are several, and the figures.
    pub(super) cells: Vec<String>,
    /// True for the least and the most of repeated runs.
    pub(super) is_detail: bool,
}

/// The head of the table.
pub(super) fn head(rows: &[ComparisonRow]) -> Vec<&'static str> {
    let release = has_several_releases(rows).then_some("release");
    ["setting"].into_iter().chain(release).chain(COLUMNS.map(|(name, _)| name)).collect()
}

fn has_several_releases(rows: &[ComparisonRow]) -> bool {
    rows.iter().any(|row| row.release != rows[0].release)
}

/// The lines of the table.
pub(super) fn lines(rows: &[ComparisonRow]) -> Vec<Line> {
    let several_releases = has_several_releases(rows);
    let line = |setting: String, release: &str, values: [f64; 9], digits: usize| {
        let mut cells = vec![setting];
        cells.extend(several_releases.then(|| release.to_owned()));
        cells.extend(cells_of(values, digits));
        cells
    };
    let same = |one: &ComparisonRow, other: &ComparisonRow| {
        (&one.setting, &one.release) == (&other.setting, &other.release)
    };
    let mut lines = Vec::new();
    for runs in rows.chunk_by(same) {
        let ComparisonRow { setting, release, run, .. } = &runs[0];
        let all: Vec<[f64; 9]> = runs.iter().map(|row| row.figures.values()).collect();
        let of = |combine: &dyn Fn(Vec<f64>) -> f64| {
            std::array::from_fn(|column| combine(all.iter().map(|values| values[column]).collect()))
        };
        let mut add = |cells, is_detail| lines.push(Line { cells, is_detail });
        if run.is_none() {
            add(line(setting.clone(), release, all[0], 0), false);
            continue;
        }
        let mean = of(&|values| values.iter().sum::<f64>() / values.len() as f64);
        add(line(format!("{setting}: mean"), release, mean, 1), false);
        let least = of(&|values| values.into_iter().fold(f64::INFINITY, f64::min));
        add(line("  least".to_owned(), "", least, 0), true);
        let most = of(&|values| values.into_iter().fold(f64::NEG_INFINITY, f64::max));
        add(line("  most".to_owned(), "", most, 0), true);
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

/// The rows as a table.
#[must_use]
pub fn comparison(rows: &[ComparisonRow], columns: usize) -> String {
    let mut align = vec![Align::Left];
    align.extend(has_several_releases(rows).then_some(Align::Left));
    align.extend([Align::Right; 8]);
    align.push(Align::Left);
    let mut table = Columns::new(&align);
    table.row(head(rows).into_iter().map(str::to_owned).collect(), DIM);
    for line in lines(rows) {
        table.row(line.cells, if line.is_detail { DIM } else { Style::new() });
    }
    table.render(0, columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rules::Release;
    use crate::run::free_run;
    use crate::scenario::testing::{WEB, scenario};

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
        let figures = Figures::of(&scenario, &free_run(&scenario, Release::NEWEST));
        // 30 s with 2 pods, 90 s with 4 pods.
        assert!((figures.pod_hours - (30.0 * 2.0 + 90.0 * 4.0) / 3600.0).abs() < 1e-9);
        assert_eq!((figures.changes, figures.direction_changes), (1, 0));
        assert_eq!((figures.most_replicas, figures.excess_replicas), (4, 0));
        assert!((figures.above_target_seconds - 90.0).abs() < 1e-9, "{figures:?}");
        assert!((figures.longest_above_target_seconds - 90.0).abs() < 1e-9, "{figures:?}");
        assert!(figures.missing_pod_hours > 0.0 && figures.failed_seconds == 0.0, "{figures:?}");
    }
}
