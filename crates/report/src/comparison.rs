//! The comparison of several predictions: one row of figures for each.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::sync::Arc;

use anstyle::Style;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::capacity::Capacity;
use super::columns::{CAUSES, COLUMNS, Column, REQUESTS};
use super::figures::Figures;
use super::first_difference::{FirstDifference, first_differences};
use super::layout::{Align, Columns, hanging, width};
use super::limits::{LimitsByLoad, limits_table};
use super::style::DIM;
use kube_autoscaler_models::derivation::{MetricDerivation, Target};
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::SkipReason;
use kube_lockstep_scenario::load_factor::LoadFactor;
use kube_lockstep_sim::run::{FreeRun, FreeTick};

/// The explanation of the columns, for a terminal.
#[must_use]
pub fn columns_help(columns: usize) -> String {
    let list = |of: &[Column]| -> String {
        let longest = of.iter().map(|it| it.name.len()).max().unwrap_or_default();
        let line =
            |it: &Column| hanging(&format!("{:<longest$}  ", it.name), it.meaning, 2, columns);
        of.iter().map(line).collect()
    };
    let title = |title: &str| hanging("", title, 0, columns);
    let causes = "Causes of missing pod-hours, which add up to `missing`. Causes with 0.00 in all \
                  rows are left out:";
    let requests = "With a VPA, the requests of pods and the usage of their containers:";
    format!(
        "Columns:\n{}\n{}{}\n{}{}",
        list(&COLUMNS),
        title(causes),
        list(&CAUSES),
        title(requests),
        list(&REQUESTS).trim_end()
    )
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
    /// The namespace of the autoscalers.
    pub namespace: String,
    /// The name of the HPA, of the first one if the scenario has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hpa: Option<String>,
    /// The name of the VPA, if the scenario has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpa: Option<String>,
    /// The release of Kubernetes; without an HPA, that of the VPA.
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

    /// Returns true if the prediction computes no metric.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_hpa.is_empty()
    }

    /// The first metrics of an HPA, or of another one if the prediction does not have it.
    pub(super) fn first_metrics(&self, hpa: &str) -> &[MetricDerivation] {
        let targets = self.by_hpa.get(hpa).or_else(|| self.by_hpa.values().next());
        targets.and_then(|it| it.first()).map_or(&[], |it| &it.metrics)
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

/// The title of the table of causes.
const CAUSES_TITLE: &str = "missing by cause";

/// The tables of a comparison: the figures, the causes of missing pod-hours if there are any, and
/// the figures of the requests that a VPA sets.
pub fn tables(rows: &[ComparisonRow]) -> Vec<FiguresTable> {
    let is_shown = |column: &Column| {
        let figures = rows.iter().filter_map(|row| row.figures.as_ref());
        let mut shown = figures.filter_map(|it| column.figure(it));
        shown.any(|it| column.figure_text(it) != column.figure_text(0.0))
    };
    let causes: Vec<Column> = CAUSES.into_iter().filter(is_shown).collect();
    let (figures, requests) = (columns(rows, &COLUMNS), columns(rows, &REQUESTS));
    let tables = [("setting", figures), (CAUSES_TITLE, causes), ("requests", requests)];
    let tables = tables.into_iter().filter(|(_, columns)| !columns.is_empty());
    tables.map(|(title, columns)| FiguresTable::new(title, rows, &columns)).collect()
}

/// Those of some columns that apply to these rows.
pub(crate) fn columns(rows: &[ComparisonRow], of: &[Column]) -> Vec<Column> {
    let applies = |it: &&Column| {
        rows.iter().filter_map(|row| row.figures.as_ref()).any(|row| it.applies(row))
    };
    of.iter().filter(applies).copied().collect()
}

/// The columns that apply to these figures.
#[must_use]
pub fn figure_columns(figures: &[&Figures]) -> Vec<Column> {
    let applies = |column: &Column| figures.iter().any(|figures| column.applies(figures));
    COLUMNS.into_iter().chain(REQUESTS).filter(applies).collect()
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
                let text = |it: &Column| it.text(first);
                add(line(setting.to_string(), release, &text), false);
                continue;
            }
            let values = |it: &Column| -> Vec<f64> {
                all.iter().filter_map(|figures| it.figure(figures)).collect()
            };
            let of = |digits: usize, combine: fn(Vec<f64>) -> Option<f64>| {
                move |it: &Column| it.text_of(combine(values(it)), digits)
            };
            let mean = of(1, |values| {
                let count = values.len() as f64;
                values.into_iter().reduce(|sum, value| sum + value).map(|sum| sum / count)
            });
            let least = of(0, |values| values.into_iter().reduce(f64::min));
            let most = of(0, |values| values.into_iter().reduce(f64::max));
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

/// The figures of rows as tables, without the causes of missing pods. They are divided into parts
/// if they are wider than `most_columns`.
#[must_use]
pub fn figures_text(rows: &[ComparisonRow], most_columns: usize) -> String {
    let tables = tables(rows).into_iter().filter(|table| table.head[0] != CAUSES_TITLE);
    tables.map(|table| table.text(1, most_columns)).collect::<Vec<_>>().join("\n")
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
mod requests_by_hand;

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::api::PodSpec;
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
        assert_eq!((figures.scaling().changes, figures.scaling().direction_changes), (1, 0));
        assert_eq!((figures.peak_replicas, figures.scaling().excess_replicas), (4, 0));
        assert!((figures.scaling().above_target_seconds - 90.0).abs() < 1e-9, "{figures:?}");
        assert!(
            (figures.scaling().longest_above_target_seconds - 90.0).abs() < 1e-9,
            "{figures:?}"
        );
        assert!(
            figures.scaling().missing_pod_hours > 0.0 && figures.scaling().failed_seconds == 0.0,
            "{figures:?}"
        );
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
        assert_eq!(
            (own.scaling().above_target_seconds, own.scaling().missing_pod_hours),
            (0.0, 0.0)
        );
        let figures = Figures::new(&higher, &run, &reference);
        assert!((figures.scaling().above_target_seconds - 120.0).abs() < 1e-9, "{figures:?}");
        // Two pods stay, and 1.8 times as many, rounded up, would reach the first target.
        assert!(
            (figures.scaling().missing_pod_hours - 2.0 * 120.0 / 3600.0).abs() < 1e-9,
            "{figures:?}"
        );
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
            assert!(
                (figures.scaling().missing_pod_hours - 120.0 / 3600.0).abs() < 1e-9,
                "{figures:?}"
            );
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
        assert!((figures.scaling().failed_seconds - 60.0).abs() < 1e-9, "{figures:?}");
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
        assert!(
            old.scaling().above_target_seconds > 90.0 && old.scaling().missing_pod_hours > 0.04,
            "{old:?}"
        );
        assert!(
            figures("1.37").scaling().failed_seconds > 90.0,
            "ambiguous selectors: {:?}",
            figures("1.37")
        );
    }

    #[test]
    fn wide_tables_are_divided() {
        let scenario = scenario(WEB);
        let run = free_run(&scenario, Release::NEWEST);
        let figures = Figures::new(&scenario, &run, &Reference::new(&run))
            .at_price(&"pod=0.05".parse().expect("a price"), &PodSpec::default());
        let row = ComparisonRow {
            setting: SettingName::of_only_scenario("a setting with a long name"),
            namespace: "default".to_owned(),
            hpa: Some("web".to_owned()),
            vpa: None,
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

    /// A figure that a run does not have is not zero.
    #[test]
    fn the_mean_of_runs_leaves_out_missing_figures() {
        let row = |run: u32, cost: Option<f64>| ComparisonRow {
            setting: SettingName::of_only_scenario("web"),
            run: Some(run),
            figures: Some(Figures { pod_hours: 2.0, cost, ..Figures::default() }),
            ..ComparisonRow::default()
        };
        let cells = |rows: &[ComparisonRow], column: &str| -> Vec<String> {
            let table = FiguresTable::new("setting", rows, &[column.parse().expect("a column")]);
            table.lines.into_iter().map(|line| line.cells[1].clone()).collect()
        };
        let rows = [row(1, Some(3.0)), row(2, None), row(3, Some(5.0))];
        assert_eq!(cells(&rows, "cost"), ["4.00", "3.00", "5.00"]);
        assert_eq!(cells(&rows, "missing"), ["-", "-", "-"]);
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
        assert_eq!(one.0.scaling().missing_pod_hours, other.0.scaling().missing_pod_hours);
    }
}
