//! The page of `compare --html`: the figures of all settings, their replicas and metrics in one
//! chart, and the timeline of each setting.

use std::sync::Arc;

use maud::{Markup, html};

use super::chart;
use super::lane::{self, ChartAxis, Lane};
use super::section::Section;
use super::share::Share;
use super::timeline::{Run, Timeline, Value, unit};
use super::{page, words};
use crate::model::derivation::MetricDerivation;
use crate::model::time::Time;
use crate::report::comparison::{COLUMNS, ComparisonRow, head, lines, not_compared};
use crate::report::counted;
use crate::report::scale::ValueAxis;
use crate::run::FreeRun;
use crate::scenario::Scenario;

/// The maximum number of times of which the page has values, and the sum of them over the settings.
const MOST_TIMES: usize = 500;
const MOST_VALUES: usize = 2500;

/// The maximum number of columns of each line in the chart of all settings, and the sum of them.
const MOST_COLUMNS: usize = 500;
const ALL_COLUMNS: usize = 1500;

/// The size that the chart of all settings may have, in bytes.
const CHART: usize = 70_000;

/// The number of colors. Further lines have the same colors and are dashed.
const COLORS: usize = 8;

/// A setting to compare.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// The name of the setting.
    pub setting: &'a str,
    /// What distinguishes it from the others.
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
    settings: Vec<Series>,
    sections: Vec<Section>,
    share: Share,
}

/// The values of a setting: of the first HPA of its scenario, and of the target of that.
#[derive(Debug)]
struct Series {
    name: String,
    release: String,
    end: Time,
    replicas: Vec<Value>,
    metrics: Vec<MetricSeries>,
}

/// The values of a metric.
#[derive(Debug)]
struct MetricSeries {
    /// Name, unit and target.
    like: MetricDerivation,
    values: Vec<Value>,
    target: Vec<Value>,
}

impl MetricSeries {
    /// Returns true if the other one is the same metric in the same unit, so that both can have the
    /// same axis.
    fn fits(&self, other: &MetricSeries) -> bool {
        let key =
            |it: &MetricSeries| (it.like.name.clone(), it.like.source.clone(), unit(&it.like));
        key(self) == key(other)
    }
}

impl Series {
    fn of(setting: &str, release: &str, timeline: &Timeline<'_>) -> Series {
        let metrics = timeline.metrics().into_iter().map(|metric| MetricSeries {
            like: metric.like.clone(),
            values: metric.values,
            target: metric.target,
        });
        Series {
            name: setting.to_owned(),
            release: release.to_owned(),
            end: timeline.end(),
            replicas: timeline.replicas().spec,
            metrics: metrics.collect(),
        }
    }

    /// `4 replicas, cpu 62%`.
    fn at(&self, at: Time) -> String {
        let replicas = value_at(&self.replicas, at);
        let replicas = replicas.map(|count| counted(count as usize, "replica"));
        let metrics = self.metrics.iter().filter_map(|metric| {
            let value = value_at(&metric.values, at)?;
            Some(format!("{} {}", metric.like.name, words::value(&metric.like, value)))
        });
        replicas.into_iter().chain(metrics).collect::<Vec<_>>().join(", ")
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
    pub fn of(settings: usize) -> Comparison {
        let share = Share::beside(CHART, settings);
        Comparison { settings: Vec::new(), sections: Vec::new(), share }
    }

    /// Adds a setting.
    pub fn add(&mut self, compared: Compared<'_>) {
        let Compared { setting, about, scenario, run } = compared;
        let section = self.share.fit(|detail| Section::of_model(scenario, run, &[], detail));
        self.sections.push(section.named(setting, about));
        let release = &run.trace.release;
        let drawn = Run::of_model(scenario, run);
        if let Some(timeline) = drawn.as_ref().and_then(|run| run.timelines().into_iter().next()) {
            self.settings.push(Series::of(setting, release, &timeline));
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
        let notes = repeats
            .map(|runs| format!("The charts show the first of {runs} runs with different noise."));
        let is_on_several = releases.len() > 1;
        let names: Vec<String> = self.settings.iter().map(|it| it.name(is_on_several)).collect();
        let overview = html! {
            section.over {
                (figures(rows))
                (self.chart(&names))
            }
        };
        page::page(page::Contents {
            title: "Comparison",
            subject: &format!("by the model of {}", releases.join(", ")),
            notes: &notes.into_iter().collect::<Vec<_>>(),
            overview: Some(overview),
            values: Some(serde_json::to_string(&self.values(names)).unwrap_or_default()),
            noun: "setting",
            sections: self.sections,
        })
    }

    /// The axis of time of all settings.
    fn axis(&self) -> ChartAxis {
        let end = self.settings.iter().map(|it| it.end).max().unwrap_or(Time::ZERO);
        let columns = (ALL_COLUMNS / self.settings.len().max(1)).clamp(1, MOST_COLUMNS);
        ChartAxis::until(end, columns)
    }

    /// The replicas and metrics of all settings over a common axis of time.
    fn chart(&self, names: &[String]) -> Markup {
        if self.settings.is_empty() {
            return html! {};
        }
        let axis = self.axis();
        let labels = axis.labels();
        let grid = lane::grid(&labels);
        html! {
            div.fig.compared {
                div.charts {
                    (self.replicas(axis, &grid, names))
                    @for metric in self.metrics() { (self.metric(metric, axis, &grid)) }
                    (lane::time(&labels))
                    div.cur role="slider" tabindex="0" aria-valuenow="0"
                        aria-label="Comparison of settings; arrow keys select a time" {}
                }
                div.panel {}
            }
        }
    }

    fn replicas(&self, axis: ChartAxis, grid: &str, names: &[String]) -> Markup {
        let most = self.settings.iter().map(|it| lane::largest([&it.replicas]));
        let most = most.fold(0.0, f64::max);
        let scale = ValueAxis::up_to(most, chart::REPLICAS_HEIGHT, 4, true);
        let lines = html! {
            @for (index, setting) in self.settings.iter().enumerate() {
                path.l.(class(index)) d=(lane::line(&setting.replicas, axis, &scale)) {}
            }
        };
        let caption = html! {
            b { "Replicas" }
            @for (index, name) in names.iter().enumerate() { span.k.(class(index)) { (name) } }
        };
        let about = self.settings.iter().zip(names);
        let about = about.map(|(it, name)| format!("{name}: {}", words::changes(&it.replicas)));
        let about = format!("Replicas. {}", about.collect::<Vec<_>>().join(". "));
        Lane { caption, about, scale, label: lane::whole, lines, overlay: html! {} }.draw(grid)
    }

    /// The first one of each metric.
    fn metrics(&self) -> Vec<&MetricSeries> {
        let mut different: Vec<&MetricSeries> = Vec::new();
        for metric in self.settings.iter().flat_map(|it| &it.metrics) {
            if !different.iter().any(|it| it.fits(metric)) {
                different.push(metric);
            }
        }
        different
    }

    fn metric(&self, metric: &MetricSeries, axis: ChartAxis, grid: &str) -> Markup {
        let of = |setting: &'_ Series| setting.metrics.iter().position(|it| it.fits(metric));
        let series = self.settings.iter().enumerate();
        let series: Vec<(usize, &MetricSeries)> = series
            .filter_map(|(index, setting)| Some((index, &setting.metrics[of(setting)?])))
            .collect();
        let most = series.iter().map(|(_, it)| lane::largest([&it.values, &it.target]));
        let scale = chart::value_axis(&metric.like, most.fold(0.0, f64::max));
        let lines = html! {
            @for (index, it) in &series {
                path.l.aim.(class(*index)) d=(lane::line(&it.target, axis, &scale)) {}
                path.l.(class(*index)) d=(lane::line(&it.values, axis, &scale)) {}
            }
        };
        let caption = html! {
            b { (metric.like.title()) }
            span.hint { (words::unit(&metric.like)) "; the dotted lines are the targets" }
        };
        let about = format!("{} of all settings", metric.like.title());
        let label = chart::value_label(&metric.like);
        Lane { caption, about, scale, label, lines, overlay: html! {} }.draw(grid)
    }

    /// The values of all settings at different times, for the script of the page.
    fn values(&self, names: Vec<String>) -> Values {
        let axis = self.axis();
        let of = |at: Time| {
            let place = (axis.percent(at) * 100.0).round() / 100.0;
            let values = self.settings.iter().map(|setting| setting.at(at)).collect();
            ValuesAt(place, at.to_string(), values)
        };
        let classes = (0..self.settings.len()).map(class).collect();
        let times = times(&self.settings).into_iter().map(of).collect();
        Values { names, classes, times }
    }
}

impl Series {
    fn name(&self, shows_release: bool) -> String {
        match shows_release {
            true => format!("{} on {}", self.name, self.release),
            false => self.name.clone(),
        }
    }
}

/// The class of a line, which gives it its color.
fn class(index: usize) -> String {
    let dashed = if index < COLORS { "" } else { " dashed" };
    format!("c{}{dashed}", index % COLORS)
}

/// The times at which the replicas of a setting change, and times of reconciles between them.
fn times(settings: &[Series]) -> Vec<Time> {
    let most = (MOST_VALUES / settings.len().max(1)).clamp(2, MOST_TIMES);
    let sorted = |mut times: Vec<Time>| {
        times.sort_unstable();
        times.dedup();
        times
    };
    let thinned = |times: Vec<Time>| {
        let every = times.len().div_ceil(most / 2).max(1);
        times.into_iter().step_by(every)
    };
    let changes = settings.iter().flat_map(|it| it.replicas.iter().map(|(at, _)| *at)).collect();
    let metrics = settings.iter().flat_map(|it| it.metrics.first());
    let reconciles = metrics.flat_map(|it| it.values.iter().map(|(at, _)| *at)).collect();
    sorted(thinned(sorted(changes)).chain(thinned(sorted(reconciles))).collect())
}

/// The values for the script.
#[derive(serde::Serialize)]
struct Values {
    names: Vec<String>,
    classes: Vec<String>,
    times: Vec<ValuesAt>,
}

/// A place in percent, its time, and the values of the settings.
#[derive(serde::Serialize)]
struct ValuesAt(f64, String, Vec<String>);

/// The table of figures.
fn figures(rows: &[ComparisonRow]) -> Markup {
    html! {
        div.wide { table.figures {
            thead { tr { @for name in head(rows) { th scope="col" { (name) } } } }
            tbody {
                @for line in lines(rows) {
                    tr.detail[line.is_detail] {
                        @for (index, cell) in line.cells.iter().enumerate() {
                            @if index == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                        }
                    }
                }
            }
        } }
        @for text in not_compared(rows) { p.note { (text) } }
        details.notes {
            summary { "What the columns mean" }
            dl {
                @for (name, meaning) in COLUMNS {
                    dt { (name) } dd { (meaning) }
                }
            }
        }
    }
}
