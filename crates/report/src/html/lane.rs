//! A chart of a timeline with its caption and labels, and the axis of time below all charts.
//!
//! Lines are SVG that is stretched to the width of the page; all text is HTML on top of it, so that
//! it has the same size on every screen.

use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};

use super::path::{self, Point};
use crate::presentation::Value;
use crate::scale::{Label, TimeAxis, ValueAxis, WIDTH};
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::resolved::Timestamp;

/// The axis of time of charts, which are drawn in a number of columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChartAxis {
    time: TimeAxis,
    /// The maximum number of columns of dense lines and areas.
    pub columns: usize,
    /// The date of t=0, if it is known.
    zero: Option<Timestamp>,
}

impl ChartAxis {
    /// An axis that ends at a time.
    pub(super) fn until(end: Time, columns: usize) -> ChartAxis {
        ChartAxis { time: TimeAxis::until(end), columns, zero: None }
    }

    /// The axis with the date of t=0.
    pub(super) fn from(self, zero: Option<Timestamp>) -> ChartAxis {
        ChartAxis { zero, ..self }
    }

    /// The axis with another number of columns.
    pub(super) fn in_columns(self, columns: usize) -> ChartAxis {
        ChartAxis { columns, ..self }
    }

    /// The end, at least one second after the start.
    pub(super) fn end(self) -> Time {
        self.time.end
    }

    /// The place of a time, in percent of the width.
    pub(super) fn percent(self, at: Time) -> f64 {
        self.time.percent(at)
    }

    /// The coordinate of a time.
    pub(super) fn x(self, at: Time) -> f64 {
        self.time.x(at)
    }

    /// The labels, at multiples of a round duration.
    pub(super) fn labels(self) -> Vec<Label> {
        self.time.labels()
    }
}

/// A chart with its caption and the labels of its values.
pub(super) struct Lane<'a> {
    pub caption: Markup,
    /// The content of the chart for screen readers.
    pub about: &'a str,
    pub scale: &'a ValueAxis,
    /// The labels of the values.
    pub label: &'a dyn Fn(f64) -> String,
    pub lines: Markup,
    /// Text over the lines.
    pub overlay: Markup,
}

impl Lane<'_> {
    /// The chart as HTML. `grid`: the lines of [`grid`].
    pub(super) fn draw(&self, grid: &str) -> Markup {
        let height = self.scale.height;
        let view = format!("0 0 1000 {height:.0}");
        let mut rows = String::new();
        for value in self.scale.values() {
            let _ = write!(rows, "M0 {:.1}H1000", self.scale.y(value));
        }
        rows.push_str(&grid.replace("{}", &format!("{height:.0}")));
        html! {
            div.lane {
                div.cap { (self.caption) }
                div.plot style=(format!("height:{height:.0}px")) {
                    svg viewBox=(view) preserveAspectRatio="none" role="img"
                        aria-label=(self.about) {
                        path.g d=(rows) {}
                        (self.lines)
                    }
                    (self.overlay)
                    @for value in self.scale.values() {
                        @let top = self.scale.y(value) / height * 100.0;
                        span.y style=(format!("top:{top:.1}%")) { ((self.label)(value)) }
                    }
                }
            }
        }
    }
}

/// Vertical lines at the labels of the axis of time; each chart fills in its height.
pub(super) fn grid(labels: &[Label]) -> String {
    let inner = labels.iter().filter(|label| label.percent > 0.0 && label.percent < 100.0);
    let mut path = String::new();
    for label in inner {
        let _ = write!(path, "M{:.0} 0v{{}}", label.percent / 100.0 * WIDTH);
    }
    path
}

fn points(values: &[Value], axis: ChartAxis, scale: &ValueAxis) -> Vec<Point> {
    let point = |(at, value): &Value| Point { x: axis.x(*at), y: value.map(|it| scale.y(it)) };
    values.iter().map(point).collect()
}

/// A line of steps.
pub(super) fn line(values: &[Value], axis: ChartAxis, scale: &ValueAxis) -> String {
    path::steps(&points(values, axis, scale), axis.columns)
}

/// An area from the lowest to the highest value in each column.
pub(super) fn range(values: &[Value], axis: ChartAxis, scale: &ValueAxis) -> String {
    path::range(&points(values, axis, scale), axis.columns)
}

/// The mark of the first tick that differs, at a place in percent.
pub(super) fn flag(text: &str, marked: &Marked) -> Markup {
    let Marked { at, kind } = *marked;
    html! {
        @if at < 55.0 {
            span.flag.(kind) style=(format!("left:{at:.2}%")) { (text) }
        } @else {
            span.flag.r.(kind) style=(format!("right:{:.2}%", 100.0 - at)) { (text) }
        }
    }
}

/// The axis of time. With a date of t=0, each label has its time in UTC as well.
pub(super) fn time(axis: ChartAxis, labels: &[Label]) -> Markup {
    let dates = dates(axis, labels);
    html! {
        div.time.dated[!dates.is_empty()] aria-hidden="true" {
            @if !dates.is_empty() { i { "UTC" } }
            @for (index, label) in labels.iter().enumerate() {
                @let edge = if label.percent > 96.0 { "r" } else if index == 0 { "f" } else { "m" };
                @let every = if index % 2 == 1 { "odd" } else { "even" };
                @let style = format!("left:{:.2}%", label.percent);
                span.(edge).(every) style=(style) {
                    (label.text)
                    @if let Some(date) = dates.get(index) {
                        (PreEscaped("<br/>")) (date.time)
                        @if let Some(day) = &date.day { (PreEscaped("<br/>")) (day) }
                    }
                }
            }
        }
    }
}

/// The time of a label in UTC.
struct Date {
    /// `09:00`.
    time: String,
    /// `05-06`, below the time, so that it does not overlap the next label. Absent if the label
    /// before it has the same day.
    day: Option<String>,
}

/// The times of labels in UTC. A label repeats no day that it has in common with the label before
/// it. A narrow screen shows only every second label: those compare with the two labels before.
/// Empty without a date of t=0.
fn dates(axis: ChartAxis, labels: &[Label]) -> Vec<Date> {
    let Some(zero) = axis.zero else { return Vec::new() };
    let texts = labels.iter().map(|label| zero.plus(label.at.since_start()).day_and_time());
    let texts: Vec<String> = texts.collect();
    let is_whole = texts.iter().all(|text| text.ends_with(":00"));
    let day = |text: &str| text.split(' ').next().map(str::to_owned);
    let date = |(index, text): (usize, &String)| {
        let shown = text.strip_suffix(":00").filter(|_| is_whole).unwrap_or(text);
        let is_same = index
            .checked_sub(2 - index % 2)
            .is_some_and(|before| texts[before..index].iter().all(|other| day(other) == day(text)));
        let (day, time) = shown.split_once(' ').unwrap_or(("", shown));
        Date { time: time.to_owned(), day: (!is_same).then(|| day.to_owned()) }
    };
    texts.iter().enumerate().map(date).collect()
}

/// The place of a mark, in percent, and its kind: `diverges` or `changed`.
pub(super) struct Marked {
    pub at: f64,
    pub kind: &'static str,
}
