//! The comparison of several predictions: one row of figures for each.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::str::FromStr;
use std::sync::Arc;

use anstyle::Style;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::bound::number;
use super::capacity::Capacity;
use super::first_difference::{FirstDifference, first_differences};
use super::layout::{Align, Columns, hanging, width};
use super::limits::{LimitsByLoad, limits_table};
use super::measurement;
use super::missing::MissingByCause;
use super::style::DIM;
use kube_autoscaler_models::derivation::{MetricDerivation, Target};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::error::similar;
use kube_lockstep_scenario::load_factor::LoadFactor;
use kube_lockstep_scenario::{Scenario, SkipReason};
use kube_lockstep_sim::run::{FreeRun, FreeTick};

/// A column of figures.
#[derive(Clone, Copy)]
pub struct Column {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    unit: Unit,
    figure: fn(&Figures) -> f64,
}

/// The unit of a figure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    PodHours,
    /// In seconds.
    Time,
    Count,
    /// In the unit of the prices.
    Money,
}

impl Unit {
    /// A figure as text. Counts have this number of digits after the point.
    fn text(self, figure: f64, digits: usize) -> String {
        match self {
            Unit::PodHours => format!("{figure:.2}"),
            // Prices of an hour can be far below 1.
            Unit::Money if figure.abs() < 1.0 => format!("{figure:.4}"),
            Unit::Money => format!("{figure:.2}"),
            Unit::Time => Span::from_secs(figure.round() as i64).to_string(),
            Unit::Count => format!("{figure:.digits$}"),
        }
    }
}

impl Column {
    /// The name of the column.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The figure, in pod-hours, seconds, or the unit of the prices.
    #[must_use]
    pub fn figure(&self, figures: &Figures) -> f64 {
        (self.figure)(figures)
    }

    /// The figure as text, for tables.
    #[must_use]
    pub fn text(&self, figures: &Figures) -> String {
        self.figure_text(self.figure(figures))
    }

    /// A figure of this column as text.
    pub(crate) fn figure_text(&self, figure: f64) -> String {
        self.unit.text(figure, 0)
    }

    /// The difference between two figures as text: `+5.3%`, `-2m`, `+3`. Empty: they are equal.
    #[must_use]
    pub fn difference_text(&self, base: &Figures, head: &Figures) -> String {
        let (from, to) = (self.figure(base), self.figure(head));
        let difference = to - from;
        if self.text(base) == self.text(head) {
            return String::new();
        }
        match self.unit {
            Unit::PodHours | Unit::Money if from != 0.0 => {
                format!("{:+.1}%", 100.0 * difference / from)
            }
            unit => {
                let sign = if difference < 0.0 { "-" } else { "+" };
                format!("{sign}{}", unit.text(difference.abs(), 0))
            }
        }
    }

    /// A figure as text that [`Column::parse`] reads, without rounding.
    pub(crate) fn exact_text(&self, figure: f64) -> String {
        match self.unit {
            Unit::PodHours | Unit::Money | Unit::Count => figure.to_string(),
            Unit::Time => Span((figure * 1e9).round() as i64).to_string(),
        }
    }

    /// A figure for messages.
    pub(crate) fn example(&self) -> f64 {
        match self.unit {
            Unit::PodHours | Unit::Money => 0.5,
            Unit::Time => 300.0,
            Unit::Count => 5.0,
        }
    }

    /// Reads a figure without a sign.
    pub(crate) fn parse(&self, text: &str) -> Option<f64> {
        match self.unit {
            Unit::PodHours | Unit::Money | Unit::Count => number(text),
            Unit::Time => {
                let span: Span = text.parse().ok()?;
                text.starts_with(|first: char| first.is_ascii_digit()).then(|| span.as_secs_f64())
            }
        }
    }
}

/// By its name.
impl FromStr for Column {
    type Err = String;

    fn from_str(name: &str) -> Result<Column, String> {
        COLUMNS.into_iter().find(|column| column.name == name).ok_or_else(|| {
            let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
            let hint = match similar(name, names.iter().copied()) {
                Some(hint) => hint.to_string(),
                None => format!("the figures are {}", names.join(", ")),
            };
            format!("there is no figure `{name}`; {hint}")
        })
    }
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! columns {
    ($($name:tt $unit:ident $figure:expr, $meaning:literal;)*) => {
        [$(Column { name: $name, meaning: $meaning, unit: Unit::$unit, figure: $figure }),*]
    };
}

/// The name of the column that requires prices.
pub const COST: &str = "cost";

/// The columns of the table.
pub const COLUMNS: [Column; 11] = columns![
    "pod-hours" PodHours |it| it.pod_hours,
        "the number of replicas, added up over time: the cost of the workload";
    COST Money |it| it.cost.unwrap_or_default(),
        "the price of these pod-hours, with --price";
    "missing" PodHours |it| it.missing_pod_hours,
        "pod-hours by which the ready pods are fewer than the load needs to be at the targets of \
         the first setting";
    "above" Time |it| it.above_target_seconds,
        "the time during which the load per ready pod is above a target of the first setting, \
         beyond the tolerance";
    "longest" Time |it| it.longest_above_target_seconds,
        "the longest such time without interruption: the time to recover";
    "changes" Count |it| it.changes as f64,
        "how often the controller changes the replicas";
    "reversals" Count |it| it.direction_changes as f64,
        "how often it changes the direction: up after down, or down after up";
    "excess" Count |it| it.excess_replicas.into(),
        "the largest number of replicas above what the load needs, for example while a \
         stabilization window holds them";
    "needed" Count |it| it.needed_peak_replicas.into(),
        "the largest number of replicas that the load needs to be at the targets of the first \
         setting";
    "peak" Count |it| it.peak_replicas.into(), "the largest number of replicas";
    "failed" Time |it| it.failed_seconds,
        "the total time from each reconcile that failed, or in which a metric failed, to the next \
         reconcile";
];

/// The causes of missing pod-hours: columns of a second table.
pub(super) const CAUSES: [Column; 8] = columns![
    "maximum" PodHours |it| it.missing_pod_hours_by_cause.maximum,
        "the load needs more than `maxReplicas`";
    "policy" PodHours |it| it.missing_pod_hours_by_cause.policy,
        "a policy limits the scale-up; without `behavior`, twice the replicas or 4";
    "window" PodHours |it| it.missing_pod_hours_by_cause.window,
        "a stabilization window delays the scale-up, or in old releases a forbidden window";
    "start-up" PodHours |it| it.missing_pod_hours_by_cause.start_up,
        "replicas have no ready pod: it starts, is replaced or has failed, or there is no room";
    "sync period" PodHours |it| it.missing_pod_hours_by_cause.sync_period,
        "the need has risen since the last reconcile";
    "target" PodHours |it| it.missing_pod_hours_by_cause.target,
        "the target of the setting is higher than that of the first one";
    "tolerance" PodHours |it| it.missing_pod_hours_by_cause.tolerance,
        "the metric is within the tolerance, so the controller changes nothing";
    "other" PodHours |it| it.missing_pod_hours_by_cause.other,
        "the controller proposes less than the load needs, because metrics are late, missing or \
         failed, or pods that are not ready count as zero; or it can't scale";
];

/// The explanation of the columns, for a terminal.
#[must_use]
pub fn columns_help(columns: usize) -> String {
    let list = |of: &[Column]| -> String {
        let line = |it: &Column| hanging(&format!("{:<11}  ", it.name), it.meaning, 2, columns);
        of.iter().map(line).collect()
    };
    let causes = "Causes of missing pod-hours, which add up to `missing`. Causes with 0.00 in all \
                  rows are left out:";
    let causes = hanging("", causes, 0, columns);
    format!("Columns:\n{}\n{causes}{}", list(&COLUMNS), list(&CAUSES).trim_end())
}

/// The name of a compared setting, in the form `shop/web: fast`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SettingName {
    /// The scenario, if several are compared.
    pub scenario: Option<String>,
    /// The setting; `None` if the scenario has only one.
    pub setting: Option<String>,
    /// The factor by which the load is multiplied, if there are several.
    pub load_factor: Option<LoadFactor>,
}

impl SettingName {
    /// The setting of the only scenario.
    #[must_use]
    pub fn of_only_scenario(setting: &str) -> SettingName {
        SettingName { setting: Some(setting.to_owned()), ..SettingName::default() }
    }

    /// The name without a load factor.
    fn name(&self) -> String {
        let parts = self.scenario.iter().chain(&self.setting);
        parts.map(String::as_str).collect::<Vec<_>>().join(": ")
    }
}

/// With a load factor: `shop/web: fast ×2`.
impl Display for SettingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())?;
        self.load_factor.map_or(Ok(()), |factor| write!(f, " ×{factor}"))
    }
}

/// As the fields `setting` and `loadFactor`.
impl Serialize for SettingName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("setting", &self.name())?;
        if let Some(factor) = self.load_factor {
            map.serialize_entry("loadFactor", &factor)?;
        }
        map.end()
    }
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComparisonRow {
    /// The name of the setting.
    #[serde(flatten)]
    pub setting: SettingName,
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
    pub not_compared: Option<SkipReason>,
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

/// What the figures measure a metric against.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeasuredAgainst {
    pub(super) target: Target,
    /// The tolerance upwards.
    pub(super) tolerance: f64,
    /// When the reference may change.
    pub(super) until: Time,
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
    pub fn new(run: &FreeRun) -> Reference {
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

    /// Measures a metric against the capacity of a pod, without a tolerance, in place of the
    /// target. Returns false if no HPA has the metric.
    ///
    /// # Errors
    /// If the target of the metric has another unit.
    pub fn measure_at(&mut self, capacity: &Capacity) -> Result<bool, String> {
        let targets = self.by_hpa.values_mut().flatten();
        let metrics = targets.flat_map(|it| &mut it.metrics);
        let mut has_metric = false;
        for metric in metrics.filter(|metric| *metric.name == *capacity.metric) {
            metric.target = capacity.in_unit_of(metric.target)?;
            metric.tolerances = (0.0, 0.0);
            has_metric = true;
        }
        Ok(has_metric)
    }

    /// The metric that an HPA's metric is measured against: that of the same name and source in the
    /// reference, with a target of the same type, of the HPA with the same name or, if that has
    /// none, of another HPA.
    pub(super) fn metric(
        &self,
        hpa: &str,
        at: Time,
        like: &MetricDerivation,
    ) -> Option<&MetricDerivation> {
        let find = |targets| TargetsFrom::metric(targets, at, like);
        let own_value = self.by_hpa.get(hpa).and_then(|it| find(it));
        let found = own_value.or_else(|| self.by_hpa.values().find_map(|it| find(it)));
        found.filter(|other| is_comparable(like.target, other.target))
    }

    /// What an HPA's metric is measured against at a time: without a counterpart, its own target.
    pub(super) fn against(
        &self,
        hpa: &str,
        at: Time,
        metric: &MetricDerivation,
    ) -> MeasuredAgainst {
        let other = self.metric(hpa, at, metric).unwrap_or(metric);
        let changes = self.by_hpa.values().flatten().map(|it| it.from).filter(|from| *from > at);
        MeasuredAgainst {
            target: other.target,
            tolerance: other.tolerances.1,
            until: changes.min().unwrap_or(Time(i64::MAX)),
        }
    }

    /// The names of those metrics of a prediction that have no counterpart, and are measured
    /// against their own targets.
    #[must_use]
    pub fn lacks(&self, run: &FreeRun) -> Vec<Arc<str>> {
        let mut names = Vec::new();
        for tick in ticks(run) {
            for metric in &tick.derivation.metrics {
                let other = self.metric(&tick.observation.hpa, tick.observation.at, metric);
                if other.is_none() && !names.contains(&metric.name) {
                    names.push(metric.name.clone());
                }
            }
        }
        names
    }
}

/// Returns true if both targets have the same unit.
fn is_comparable(target: Target, other: Target) -> bool {
    match (target, other) {
        (Target::Utilization(_), Target::Utilization(other)) => other != 0,
        (Target::AverageValue(_), Target::AverageValue(other))
        | (Target::Value(_), Target::Value(other)) => other != 0,
        _ => false,
    }
}

/// The ticks of the HPAs of the first target.
pub fn ticks(run: &FreeRun) -> impl Iterator<Item = &FreeTick> {
    run.ticks.iter().filter(|tick| tick.target == 0)
}

/// The figures of a prediction, of the target of its first HPA.
///
/// Replicas are needed for the load and for the targets of the reference: so many that the load
/// per pod is at its target. Only ready pods serve the load.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// The integral of the replicas.
    pub pod_hours: f64,
    /// The price of the pod-hours, in the unit of the given prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The integral of the needed replicas without a ready pod.
    pub missing_pod_hours: f64,
    /// Its parts.
    pub missing_pod_hours_by_cause: MissingByCause,
    /// The time during which the load per ready pod is above a target of the reference, in seconds.
    pub above_target_seconds: f64,
    /// The longest uninterrupted time above a target of the reference, in seconds.
    pub longest_above_target_seconds: f64,
    /// Changes of the replicas by the controller.
    pub changes: usize,
    pub direction_changes: usize,
    /// The most replicas above those that are needed.
    pub excess_replicas: i32,
    /// The most replicas that are needed.
    pub needed_peak_replicas: i32,
    /// The largest number of replicas.
    pub peak_replicas: i32,
    /// The total time from each reconcile that failed, or in which a metric failed, to the next
    /// one, in seconds.
    pub failed_seconds: f64,
}

impl Figures {
    /// Calculates the figures of a run.
    #[must_use]
    pub fn new(scenario: &Scenario, run: &FreeRun, reference: &Reference) -> Figures {
        measurement::measure(scenario, run, reference, &[]).0
    }

    /// Calculates the figures of a run, and of its parts, which begin at these times. A part has
    /// only what is in it of a time above the target, and no change from the direction of the part
    /// before it.
    #[must_use]
    pub fn of_parts(
        scenario: &Scenario,
        run: &FreeRun,
        reference: &Reference,
        boundaries: &[Time],
    ) -> (Figures, Vec<Figures>) {
        measurement::measure(scenario, run, reference, boundaries)
    }

    /// The figures of two parts of a run together. A time above the target that continues in the
    /// next part counts as two, and a change of direction between them does not count.
    #[must_use]
    pub fn join(self, other: Figures) -> Figures {
        let longest = self.longest_above_target_seconds;
        let missing = self.missing_pod_hours_by_cause.plus(other.missing_pod_hours_by_cause);
        Figures {
            pod_hours: self.pod_hours + other.pod_hours,
            cost: self.cost.zip(other.cost).map(|(one, other)| one + other),
            missing_pod_hours: self.missing_pod_hours + other.missing_pod_hours,
            missing_pod_hours_by_cause: missing,
            above_target_seconds: self.above_target_seconds + other.above_target_seconds,
            longest_above_target_seconds: longest.max(other.longest_above_target_seconds),
            changes: self.changes + other.changes,
            direction_changes: self.direction_changes + other.direction_changes,
            excess_replicas: self.excess_replicas.max(other.excess_replicas),
            needed_peak_replicas: self.needed_peak_replicas.max(other.needed_peak_replicas),
            peak_replicas: self.peak_replicas.max(other.peak_replicas),
            failed_seconds: self.failed_seconds + other.failed_seconds,
        }
    }

    /// Sets the cost, by the price of the hour of a pod.
    #[must_use]
    pub fn at_price(self, of_pod_hour: f64) -> Figures {
        Figures { cost: Some(self.pod_hours * of_pod_hour), ..self }
    }
}

/// A line of the table: a row, or the mean, the least and the most of repeated runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// The setting, the release if there are several, and the figures.
    pub cells: Vec<String>,
    /// True for the least and the most of repeated runs.
    pub(super) is_detail: bool,
}

#[derive(Debug)]
pub struct FiguresTable {
    pub(crate) head: Vec<&'static str>,
    pub(crate) lines: Vec<Line>,
}

/// The tables of a comparison: all figures, and the causes of missing pod-hours if there are any.
pub fn tables(rows: &[ComparisonRow]) -> Vec<FiguresTable> {
    let is_shown = |column: &Column| {
        let mut figures = rows.iter().filter_map(|row| row.figures.as_ref());
        figures.any(|it| column.unit.text((column.figure)(it), 0) != column.unit.text(0.0, 0))
    };
    let causes: Vec<Column> = CAUSES.into_iter().filter(is_shown).collect();
    let mut tables = vec![FiguresTable::new("setting", rows, &columns(rows))];
    if !causes.is_empty() {
        tables.push(FiguresTable::new("missing by cause", rows, &causes));
    }
    tables
}

/// The columns of these rows: the cost only if there are prices.
pub(crate) fn columns(rows: &[ComparisonRow]) -> Vec<Column> {
    figure_columns(&rows.iter().filter_map(|row| row.figures.as_ref()).collect::<Vec<_>>())
}

/// The columns of these figures: the cost only if there are prices.
#[must_use]
pub fn figure_columns(figures: &[&Figures]) -> Vec<Column> {
    let has_cost = figures.iter().any(|figures| figures.cost.is_some());
    COLUMNS.into_iter().filter(|column| has_cost || column.name != COST).collect()
}

fn has_several_releases(rows: &[ComparisonRow]) -> bool {
    rows.iter().any(|row| row.release != rows[0].release)
}

/// The rows of the runs of each setting on each release.
pub(super) fn by_runs(rows: &[ComparisonRow]) -> impl Iterator<Item = &[ComparisonRow]> {
    rows.chunk_by(|one, other| (&one.setting, &one.release) == (&other.setting, &other.release))
}

impl FiguresTable {
    fn new(title: &'static str, rows: &[ComparisonRow], columns: &[Column]) -> FiguresTable {
        let several_releases = has_several_releases(rows);
        let release = several_releases.then_some("release");
        let head = [title].into_iter().chain(release).chain(columns.iter().map(|it| it.name));
        let line = |setting: String, release: &str, figure: &dyn Fn(&Column) -> String| {
            let release = several_releases.then(|| release.to_owned());
            let cells = [setting].into_iter().chain(release);
            cells.chain(columns.iter().map(figure)).collect()
        };
        let mut lines = Vec::new();
        for runs in by_runs(rows) {
            let ComparisonRow { setting, release, run, .. } = &runs[0];
            let all: Vec<&Figures> = runs.iter().filter_map(|row| row.figures.as_ref()).collect();
            let Some(first) = all.first() else { continue };
            let mut add = |cells, is_detail| lines.push(Line { cells, is_detail });
            if run.is_none() {
                let text = |it: &Column| it.unit.text((it.figure)(first), 0);
                add(line(setting.to_string(), release, &text), false);
                continue;
            }
            let values = |it: &Column| all.iter().map(|figures| (it.figure)(figures)).collect();
            let of = |digits: usize, combine: fn(Vec<f64>) -> f64| {
                move |it: &Column| it.unit.text(combine(values(it)), digits)
            };
            let mean = of(1, |values| values.iter().sum::<f64>() / values.len() as f64);
            let least = of(0, |values| values.into_iter().fold(f64::INFINITY, f64::min));
            let most = of(0, |values| values.into_iter().fold(f64::NEG_INFINITY, f64::max));
            add(line(format!("{setting}: mean"), release, &mean), false);
            add(line("  min".to_owned(), "", &least), true);
            add(line("  max".to_owned(), "", &most), true);
        }
        FiguresTable { head: head.collect(), lines }
    }

    /// The table as text. If it is wider than `most_columns`, it is divided into parts.
    fn text(&self, keys: usize, most_columns: usize) -> String {
        let align = |index| if index < keys { Align::Left } else { Align::Right };
        let align = (0..self.head.len()).map(align).collect();
        let mut table = Table { keys, align, rows: Vec::new() };
        table.rows.push((self.head.iter().map(|name| (*name).to_owned()).collect(), DIM));
        for line in &self.lines {
            let style = if line.is_detail { DIM } else { Style::new() };
            table.rows.push((line.cells.clone(), style));
        }
        table.folded(most_columns)
    }
}

/// The figures of rows as a table, without the causes of missing pods. It is divided into parts if
/// it is wider than `most_columns`.
#[must_use]
pub fn figures_text(rows: &[ComparisonRow], most_columns: usize) -> String {
    FiguresTable::new("setting", rows, &columns(rows)).text(1, most_columns)
}

/// The rows as tables, with the limits by load factor, if there are any, and the first differences
/// between releases. A table that is wider than `most_columns` is divided into parts.
#[must_use]
pub fn comparison(
    rows: &[ComparisonRow],
    limits: &[LimitsByLoad],
    columns: usize,
    most_columns: usize,
) -> String {
    let keys = if has_several_releases(rows) { 2 } else { 1 };
    let mut tables = tables(rows);
    tables.extend(limits_table(limits));
    let tables: Vec<String> = tables.iter().map(|table| table.text(keys, most_columns)).collect();
    let mut out = tables.join("\n");
    let differences = first_differences(rows, columns);
    if tables.len() > 1 && !differences.is_empty() {
        out.push('\n');
    }
    out.push_str(&differences);
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
        let why = not_compared.as_ref()?.after_release();
        Some(format!("not compared: {setting} on {release}: {why}"))
    })
}

#[cfg(test)]
mod by_hand;
#[cfg(test)]
mod kinds_of_loads;

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
        let figures = Figures::new(&scenario, &run, &Reference::new(&run));
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
        let reference = Reference::new(&free_run(&first, Release::NEWEST));
        let higher = scenario(&text.replace("averageValue: 500m", "averageValue: 900m"));
        let run = free_run(&higher, Release::NEWEST);
        let own = Figures::new(&higher, &run, &Reference::new(&run));
        assert_eq!((own.above_target_seconds, own.missing_pod_hours), (0.0, 0.0));
        let figures = Figures::new(&higher, &run, &reference);
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
        let reference = Reference::new(&free_run(&first, Release::NEWEST));
        for target in ["750m", "600m", "500m", "450m"] {
            let scenario = with_target(&format!("averageValue: {target}"));
            let run = free_run(&scenario, Release::NEWEST);
            let figures = Figures::new(&scenario, &run, &reference);
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
        let figures = Figures::new(&scenario, &run, &Reference::new(&run));
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
            let reference = Reference::new(&run);
            assert_eq!(reference.lacks(&run), Vec::<Arc<str>>::new(), "{release}");
            Figures::new(&scenario, &run, &reference)
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
        let figures = Figures::new(&scenario, &run, &Reference::new(&run)).at_price(0.05);
        let row = ComparisonRow {
            setting: SettingName::of_only_scenario("a setting with a long name"),
            namespace: "default".to_owned(),
            hpa: "web".to_owned(),
            release: "1.37".to_owned(),
            run: None,
            figures: Some(figures),
            first_difference: None,
            not_compared: None,
        };
        let rows = [row];
        assert_eq!(comparison(&rows, &[], 100, 200).lines().count(), 2);
        let folded = crate::plain(&comparison(&rows, &[], 80, 80));
        assert!(folded.lines().all(|line| line.chars().count() <= 80), "{folded}");
        for column in COLUMNS {
            assert_eq!(folded.matches(column.name).count(), 1, "{}: {folded}", column.name);
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
        let reference = Reference::new(&free_run(&first, Release::NEWEST));
        let figures = |target: &str| {
            let scenario = scenario(&text.replace("averageValue: 500m", target));
            let run = free_run(&scenario, Release::NEWEST);
            let replicas: Vec<i32> = run.ticks.iter().map(|tick| tick.replicas_after).collect();
            (Figures::new(&scenario, &run, &reference), replicas)
        };
        let (one, other) = (figures("averageValue: 500m"), figures("averageValue: 495m"));
        assert_eq!(one.1, other.1, "the settings have the same replicas");
        assert!(one.1.iter().any(|replicas| *replicas > 2), "{:?}", one.1);
        assert_eq!(one.0.missing_pod_hours, other.0.missing_pod_hours);
    }
}
