//! The page of `compare --html`: the figures of all settings, their replicas and metrics in one
//! chart, and the timeline of each setting.

use std::rc::Rc;
use std::sync::Arc;

use maud::{Markup, html};

use super::front::front;
use super::lane::{self, ChartAxis, Lane};
use super::page;
use super::section::Section;
use super::share::Share;
use crate::columns::{CAUSES, COLUMNS, Column, REQUESTS};
use crate::comparison::{ComparisonRow, SettingName, columns, not_compared, tables};
use crate::counted;
use crate::first_difference::{Differing, differing};
use crate::front::FrontChart;
use crate::limits::{LimitsByLoad, limits_table};
use crate::prediction::Predicted;
use crate::presentation::{Chart, Controller, Unit, Value, hpa, largest, recommender, words};
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::Timestamp;
use kube_lockstep_sim::run::FreeRun;

/// The maximum number of points in time for which the page has values: for each setting, and in
/// total.
const MOST_TIMES: usize = 500;
const MOST_VALUES: usize = 2500;

/// The maximum number of columns of each line in the chart of all settings, and the sum of them.
const MOST_COLUMNS: usize = 500;
const ALL_COLUMNS: usize = 1500;

/// The number of columns of the first of many settings.
const FIRST_COLUMNS: usize = 320;

/// The size that the chart of all settings may have, in bytes.
const CHART: usize = 70_000;

/// The number of colors beside that of the first setting, and of patterns of dashes.
const COLORS: usize = 7;
const PATTERNS: usize = 4;

/// With more settings, only the first one and the selected ones are drawn strongly.
const MOST_STRONG: usize = 6;

/// A setting to compare.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// The name of the setting.
    pub setting: &'a SettingName,
    /// The difference from the other settings.
    pub about: &'a str,
    /// The scenario with this setting.
    pub scenario: &'a Arc<Scenario>,
    /// The prediction.
    pub run: &'a FreeRun,
}

/// The page of a comparison. It keeps only what its charts show, so that the predictions need not
/// be in memory together.
#[derive(Debug)]
pub struct Comparison {
    /// The settings of each autoscaler.
    groups: Vec<Group>,
    sections: Vec<Section>,
    share: Share,
    notes: Vec<String>,
    fronts: Vec<FrontChart>,
    limits: Vec<LimitsByLoad>,
}

/// The settings of one autoscaler, which share charts.
#[derive(Debug)]
struct Group {
    /// `hpa` or `vpa`.
    kind: &'static str,
    namespace: Arc<str>,
    name: String,
    settings: Vec<Series>,
}

/// The values of a setting: of an HPA and its target, or of a VPA.
#[derive(Debug)]
struct Series {
    name: SettingName,
    release: String,
    end: Time,
    zero: Option<Timestamp>,
    /// Of an HPA, the chart of the replicas, and those of the metrics; of a VPA, those of the
    /// recommended amounts.
    charts: Vec<Chart>,
}

/// Returns true if both charts show the same in the same unit, so that they can have the same axis.
fn is_same(one: &Chart, other: &Chart) -> bool {
    (&one.title, one.unit) == (&other.title, other.unit)
}

impl Series {
    /// The replicas over time.
    fn replicas(&self) -> &[Value] {
        self.charts.first().map(Chart::values).unwrap_or_default()
    }

    /// `4 replicas, cpu 62%`.
    fn at(&self, at: Time) -> String {
        let values = self.charts.iter().filter_map(|chart| {
            let value = value_at(chart.values(), at)?;
            Some(match chart.unit {
                Unit::Count => counted(value as usize, "replica"),
                unit => format!("{} {}", chart.title, unit.text(value)),
            })
        });
        values.collect::<Vec<_>>().join(", ")
    }
}

/// The value that holds at a time.
fn value_at(values: &[Value], at: Time) -> Option<f64> {
    let index = values.partition_point(|(from, _)| *from <= at);
    values.get(index.checked_sub(1)?)?.1
}

impl Comparison {
    /// Creates a page for a number of settings; on several releases, each counts several times.
    #[must_use]
    pub fn new(settings: usize) -> Comparison {
        let share = Share::beside(CHART, settings);
        let (groups, sections, notes, fronts, limits) = Default::default();
        Comparison { groups, sections, share, notes, fronts, limits }
    }

    /// Adds the limits of settings by load factor.
    pub fn add_limits(&mut self, limits: &[LimitsByLoad]) {
        self.limits.extend_from_slice(limits);
    }

    /// Adds a note on the whole comparison.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Adds a chart of settings by cost and missing pods.
    pub fn add_front(&mut self, front: FrontChart) {
        self.fronts.push(front);
    }

    /// Adds a setting.
    pub fn add(&mut self, compared: Compared<'_>) {
        let Compared { setting, about, scenario, run } = compared;
        let predicted = Predicted::hpa(scenario, run, &[]);
        let section = self.share.fit(|detail| Section::from_prediction(&predicted, detail));
        self.sections.push(section.named(&setting.to_string(), about));
        let drawn = hpa::Run::from_model(scenario, run, None);
        for timeline in drawn.iter().flat_map(hpa::Run::timelines) {
            self.add_series(&timeline, timeline.end, compared);
        }
        if let Some(vpa) = &run.vpa {
            let run = recommender::Run::from_statuses(&vpa.scenario, vpa.snapshots());
            for timeline in recommender::timelines(Rc::new(run)) {
                self.add_series(&timeline, scenario.until, compared);
            }
        }
    }

    fn add_series(&mut self, timeline: &dyn Controller, end: Time, compared: Compared<'_>) {
        let Compared { setting, scenario, run, .. } = compared;
        let (kind, name) = (timeline.kind(), timeline.name());
        let is_compared = |chart: &Chart| !chart.main.is_empty();
        let series = Series {
            name: setting.clone(),
            release: run.trace.release.clone(),
            end,
            zero: scenario.clock,
            charts: timeline.charts().into_iter().filter(is_compared).collect(),
        };
        let namespace = &scenario.namespace;
        let same = |group: &&mut Group| {
            group.kind == kind && group.namespace == *namespace && group.name == name
        };
        match self.groups.iter_mut().find(same) {
            Some(group) => group.settings.push(series),
            None => {
                let (namespace, name) = (namespace.clone(), name.to_owned());
                self.groups.push(Group { kind, namespace, name, settings: vec![series] });
            }
        }
    }

    /// The page, with the figures of all settings.
    #[must_use]
    pub fn page(self, rows: &[ComparisonRow]) -> String {
        let mut releases: Vec<&str> = rows.iter().map(|row| &*row.release).collect();
        releases.dedup();
        releases.sort_unstable();
        releases.dedup();
        let repeats = rows.iter().filter_map(|row| row.run).max();
        let mut notes = self.notes;
        notes.extend(
            repeats.map(|runs| {
                format!("The charts show the first of {runs} runs with different noise.")
            }),
        );
        let count = self.groups.iter().map(|group| group.settings.len()).sum();
        let is_one_of_several = self.groups.len() > 1;
        let drawn = self.groups.iter().map(|group| Drawn {
            group,
            names: group.names(releases.len() > 1, is_one_of_several),
            count,
            is_one_of_several,
        });
        let drawn: Vec<Drawn<'_>> = drawn.collect();
        let overview = html! {
            section.over {
                @for chart in &self.fronts { (front(chart)) }
                (figures(rows, &self.limits))
                @for drawn in &drawn { (drawn.chart()) }
            }
        };
        let values: Vec<Values> = drawn.iter().map(Drawn::values).collect();
        let values = serde_json::to_string(&values).unwrap_or_default();
        page::page(page::Contents {
            title: if self.fronts.is_empty() { "Comparison" } else { "Tuning" },
            subject: &format!("by the model of {}", releases.join(", ")),
            notes: &notes,
            overview: Some(overview),
            values: Some(values),
            noun: "setting",
            sections: self.sections,
        })
    }
}

impl Group {
    /// The names of the settings. Beside other HPAs, names lose a common beginning that names the
    /// scenario: `shop/web: fast`.
    fn names(&self, shows_release: bool, is_one_of_several: bool) -> Vec<String> {
        let first = self.settings.first().and_then(|it| it.name.scenario.as_ref());
        let is_common = first.is_some_and(|first| {
            let is_of_first = |it: &Series| it.name.scenario.as_ref() == Some(first);
            is_one_of_several && self.settings.iter().all(is_of_first)
        });
        let short = |it: &Series| match &it.name.setting {
            Some(_) if is_common => SettingName { scenario: None, ..it.name.clone() }.to_string(),
            _ => it.name.to_string(),
        };
        let name = |it: &Series| match shows_release {
            true => format!("{} on {}", short(it), it.release),
            false => short(it),
        };
        self.settings.iter().map(name).collect()
    }
}

/// The charts of the settings of an HPA.
struct Drawn<'a> {
    group: &'a Group,
    names: Vec<String>,
    /// The number of series of the page.
    count: usize,
    is_one_of_several: bool,
}

impl Drawn<'_> {
    /// The axis of time of all settings.
    fn axis(&self) -> ChartAxis {
        let settings = &self.group.settings;
        let end = settings.iter().map(|it| it.end).max().unwrap_or(Time::ZERO);
        let columns = (ALL_COLUMNS / self.count.max(1)).clamp(1, MOST_COLUMNS);
        ChartAxis::until(end, columns).from(settings.iter().find_map(|it| it.zero))
    }

    /// The axis for the lines of a setting. Of many settings, the first one is drawn in detail.
    fn axis_of(&self, index: usize) -> ChartAxis {
        let axis = self.axis();
        let is_first_of_many = index == 0 && self.group.settings.len() > MOST_STRONG;
        let columns = if is_first_of_many { axis.columns.max(FIRST_COLUMNS) } else { axis.columns };
        axis.in_columns(columns)
    }

    /// The replicas and metrics of all settings over a common axis of time.
    fn chart(&self) -> Markup {
        let axis = self.axis();
        let labels = axis.labels();
        let grid = lane::grid(&labels);
        let Group { kind, namespace, name, settings } = self.group;
        let label = format!("Comparison of the settings of {name}; arrow keys select a time");
        html! {
            @if self.is_one_of_several { h2 { (kind.to_uppercase()) " " (namespace) "/" (name) } }
            div.fig.compared.many[settings.len() > MOST_STRONG] {
                div.charts {
                    (self.replicas(&grid))
                    @for metric in self.metrics() { (self.metric(metric, axis, &grid)) }
                    (lane::time(axis, &labels))
                    div.cur role="slider" tabindex="0" aria-valuenow="0" aria-label=(label) {}
                }
                div.panel {}
            }
        }
    }

    fn replicas(&self, grid: &str) -> Markup {
        let settings = &self.group.settings;
        let Some(chart) = settings.first().and_then(|it| it.charts.first()) else {
            return html! {};
        };
        let most = settings.iter().map(|it| largest([it.replicas()])).fold(0.0, f64::max);
        let scale = chart.unit.axis(most, chart.size);
        // The first setting is drawn last, above the others.
        let lines = html! {
            @for (index, setting) in settings.iter().enumerate().rev() {
                @let axis = self.axis_of(index);
                path.l.(class(index)) d=(lane::line(setting.replicas(), axis, &scale))
                    data-i=(index) {}
            }
        };
        let caption = html! {
            b { (chart.title) }
            @if chart.unit != Unit::Count { span.hint { (unit_text(chart)) } }
            @for (index, name) in self.names.iter().enumerate() {
                span.k.(class(index)) data-i=(index) { (name) }
            }
        };
        let about = settings.iter().zip(&self.names).filter(|_| chart.unit == Unit::Count);
        let about = about.map(|(it, name)| format!("{name}: {}", words::changes(it.replicas())));
        let about = format!("{}. {}", chart.title, about.collect::<Vec<_>>().join(". "));
        let label = |value| chart.unit.label(value);
        let (about, scale, overlay) = (&*about, &scale, html! {});
        Lane { caption, about, scale, label: &label, lines, overlay }.draw(grid)
    }

    /// The first one of each metric.
    fn metrics(&self) -> Vec<&Chart> {
        let mut different: Vec<&Chart> = Vec::new();
        for metric in self.group.settings.iter().flat_map(|it| it.charts.iter().skip(1)) {
            if !different.iter().any(|it| is_same(it, metric)) {
                different.push(metric);
            }
        }
        different
    }

    fn metric(&self, metric: &Chart, axis: ChartAxis, grid: &str) -> Markup {
        let series = self.group.settings.iter().enumerate();
        let series: Vec<(usize, &Chart)> = series
            .filter_map(|(index, it)| {
                Some((index, it.charts.iter().find(|it| is_same(it, metric))?))
            })
            .collect();
        let most = series.iter().map(|(_, it)| largest([it.values(), it.targets()]));
        let scale = metric.unit.axis(most.fold(0.0, f64::max), metric.size);
        let is_dense = |index: usize, it: &Chart| it.values().len() > self.axis_of(index).columns;
        let lines = html! {
            @for (index, it) in series.iter().rev() {
                path.l.aim.(class(*index)) d=(lane::line(it.targets(), axis, &scale))
                    data-i=(index) {}
                @let axis = self.axis_of(*index);
                @if is_dense(*index, it) {
                    path.range.(class(*index)) d=(lane::range(it.values(), axis, &scale))
                        data-i=(index) {}
                } @else {
                    path.l.fine.(class(*index)) d=(lane::line(it.values(), axis, &scale))
                        data-i=(index) {}
                }
            }
        };
        let about = format!("{} of all settings", metric.title);
        let caption = html! {
            b { (metric.title) }
            span.hint {
                (unit_text(metric))
                @if series.iter().any(|(index, it)| is_dense(*index, it)) {
                    ", from the lowest to the highest value"
                }
                @if series.iter().any(|(_, it)| !it.targets().is_empty()) {
                    "; the dotted lines are the targets"
                }
            }
        };
        let label = |value| metric.unit.label(value);
        let (about, scale, overlay) = (&*about, &scale, html! {});
        Lane { caption, about, scale, label: &label, lines, overlay }.draw(grid)
    }

    /// The values of all settings at different times, for the script of the page.
    fn values(&self) -> Values {
        let axis = self.axis();
        let settings = &self.group.settings;
        let of = |at: Time| {
            let place = (axis.percent(at) * 100.0).round() / 100.0;
            let values = settings.iter().map(|setting| setting.at(at)).collect();
            ValuesAt(place, at.to_string(), values)
        };
        Values {
            names: self.names.clone(),
            classes: (0..settings.len()).map(class).collect(),
            zero: settings.iter().find_map(|it| it.zero).map(Timestamp::unix_millis),
            times: times(settings, self.count).into_iter().map(of).collect(),
        }
    }
}

/// What the values of a chart are.
fn unit_text(chart: &Chart) -> &str {
    match chart.main {
        "target" => "recommended",
        _ => chart.keys.first().map_or("", |unit| &unit.text),
    }
}

/// The classes of a line, which give it its color and its pattern. The first setting has a color of
/// its own.
fn class(index: usize) -> String {
    let Some(other) = index.checked_sub(1) else { return "c0".to_owned() };
    format!("c{} d{}", other % COLORS + 1, other / COLORS % PATTERNS)
}

/// The times at which the replicas of a setting change, and times of reconciles between them. The
/// page has this number of series.
fn times(settings: &[Series], count: usize) -> Vec<Time> {
    let most = (MOST_VALUES / count.max(1)).clamp(2, MOST_TIMES);
    let sorted = |mut times: Vec<Time>| {
        times.sort_unstable();
        times.dedup();
        times
    };
    let thinned = |times: Vec<Time>| {
        let every = times.len().div_ceil(most / 2).max(1);
        times.into_iter().step_by(every)
    };
    let changes = settings.iter().flat_map(|it| it.replicas().iter().map(|(at, _)| *at)).collect();
    let metrics = settings.iter().flat_map(|it| it.charts.get(1));
    let reconciles = metrics.flat_map(|it| it.values().iter().map(|(at, _)| *at)).collect();
    sorted(thinned(sorted(changes)).chain(thinned(sorted(reconciles))).collect())
}

/// The values for the script.
#[derive(serde::Serialize)]
struct Values {
    names: Vec<String>,
    classes: Vec<String>,
    /// The date of t=0, in milliseconds since 1970.
    zero: Option<i64>,
    times: Vec<ValuesAt>,
}

/// A place in percent, its time, and the values of the settings.
#[derive(serde::Serialize)]
struct ValuesAt(f64, String, Vec<String>);

/// The table of figures.
fn figures(rows: &[ComparisonRow], limits: &[LimitsByLoad]) -> Markup {
    html! {
        @for table in tables(rows).into_iter().chain(limits_table(limits)) {
            div.wide { table.figures {
                thead { tr { @for name in &table.head { th scope="col" { (name) } } } }
                tbody {
                    @for line in &table.lines {
                        tr.detail[line.is_detail] {
                            @for (index, cell) in line.cells.iter().enumerate() {
                                @if index == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                            }
                        }
                    }
                }
            } }
        }
        @for Differing { sentence, predicted } in differing(rows) {
            p.note {
                (sentence)
                @for predicted in predicted { br; b { (predicted.label()) " " } (predicted.step) }
            }
        }
        @for text in not_compared(rows) { p.note { (text) } }
        details.notes {
            summary { "What the columns mean" }
            (meanings(&columns(rows, &COLUMNS)))
            @let (causes, requests) = (columns(rows, &CAUSES), columns(rows, &REQUESTS));
            @if !causes.is_empty() {
                p { "The causes of missing pod-hours add up to “missing”:" }
                (meanings(&causes))
            }
            @if !requests.is_empty() {
                p { "The requests of pods, and the usage of their containers:" }
                (meanings(&requests))
            }
        }
    }
}

fn meanings(columns: &[Column]) -> Markup {
    html! {
        dl { @for column in columns { dt { (column.name) } dd { (column.meaning) } } }
    }
}
