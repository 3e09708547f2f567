//! The content of reports on a run, without a medium: for each controller its charts, the intervals
//! and events on their axis of time, and its ticks.
//!
//! A [`Controller`] fills these types: [`hpa`] for each HPA, [`recommender`] for each VPA. A
//! [`Prediction`](prediction::Prediction) adds the rows and texts of all of them. Both modules also
//! explain a single tick, as [`blocks`] of text. The renderers do not depend on controllers.

pub(crate) mod blocks;
pub(crate) mod detail;
pub(crate) mod hpa;
mod mark;
mod plain;
pub(crate) mod prediction;
pub(crate) mod recommender;
pub(crate) mod rows;
mod ticks;
mod unit;
pub(crate) mod words;

use std::borrow::Cow;
use std::rc::Rc;

pub(crate) use self::detail::Detail;
pub(crate) use self::mark::Mark;
pub use self::plain::event_in_words;
pub(crate) use self::ticks::{Tick, TickKind, Ticks};
pub(crate) use self::unit::{Size, Unit};
use crate::scale::ValueAxis;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::Timestamp;
use kube_lockstep_sim::run::Outcome;

/// A value from a time on; `None` if there is none.
pub(crate) type Value = (Time, Option<f64>);

/// The largest value of several series; 0 without values.
pub(crate) fn largest<const N: usize>(series: [&[Value]; N]) -> f64 {
    let values = series.into_iter().flatten().filter_map(|(_, value)| *value);
    values.fold(0.0, f64::max)
}

/// The value at the end.
pub(crate) fn last(values: &[Value]) -> Option<f64> {
    values.last().and_then(|(_, value)| *value)
}

/// The controllers of a scenario, which share an axis of time.
pub(crate) struct Presentation<'a> {
    pub controllers: Vec<Box<dyn Controller + 'a>>,
    /// The numbers of ticks and changes: ` · 65 ticks · 4 changes of replicas`.
    pub counts: String,
    /// The end of the axis of time.
    pub end: Time,
    /// The date of t=0, if the load is recorded with dates.
    pub zero: Option<Timestamp>,
}

impl<'a> Presentation<'a> {
    /// A run of an engine.
    pub(crate) fn from_outcome(outcome: &'a Outcome, detail: Detail) -> Presentation<'a> {
        let vpa = recommender::Run::from_outcome(outcome, detail);
        Presentation::new(hpa::Run::from_outcome(outcome), vpa)
    }

    /// The HPAs, and the VPAs.
    fn new(hpa: Option<hpa::Run<'a>>, vpa: Option<recommender::Run<'a>>) -> Presentation<'a> {
        let ends = hpa.iter().map(|run| run.end).chain(vpa.iter().map(|run| run.end));
        let end = ends.max().unwrap_or(Time::ZERO);
        let zero = hpa.as_ref().and_then(|run| run.scenario.clock);
        let mut controllers: Vec<Box<dyn Controller + 'a>> = Vec::new();
        let mut counts = String::new();
        if let Some(mut run) = hpa {
            run.end = end;
            counts += &run.counts();
            let timelines = run.timelines().into_iter();
            controllers.extend(timelines.map(|it| Box::new(it) as Box<dyn Controller + 'a>));
        }
        if let Some(mut run) = vpa {
            run.end = end;
            counts += &run.counts();
            let timelines = recommender::timelines(Rc::new(run));
            controllers.extend(timelines.map(|it| Box::new(it) as Box<dyn Controller + 'a>));
        }
        Presentation { controllers, counts, end, zero }
    }
}

/// A controller's part of a run: what it did for one object. Each part is made when a report needs
/// it.
pub(crate) trait Controller {
    /// The kind of the object: `hpa` or `vpa`.
    fn kind(&self) -> &'static str;

    /// The name of the object.
    fn name(&self) -> &str;

    /// The heading of its charts, if they need one.
    fn heading(&self) -> Option<String>;

    /// The columns that its charts may have in a detail.
    fn columns(&self, detail: Detail) -> usize;

    /// The charts, from the top to the bottom.
    fn charts(&self) -> Vec<Chart>;

    /// The intervals that explain the charts, if there are any.
    fn intervals(&self) -> Option<Intervals>;

    /// The times at which the controller reported something, if there are any.
    fn moments(&self) -> Option<Moments>;

    /// The events of the scenario.
    fn events(&self) -> Vec<EventMark>;

    /// The first tick that differs from another run.
    fn mark(&self) -> Option<&Mark<'_>>;

    /// The ticks, with about as many derivations as the detail has.
    fn ticks(&self, detail: Detail) -> Ticks;
}

/// A chart of values over time.
#[derive(Debug)]
pub(crate) struct Chart {
    pub title: String,
    /// The object, if there are several: ` of web`.
    pub owner: String,
    /// The legend, and values at the end.
    pub keys: Vec<Key>,
    /// The content for screen readers.
    pub about: String,
    pub unit: Unit,
    pub size: Size,
    pub axis: ValueAxis,
    /// The series, from the back to the front.
    pub series: Vec<Series>,
    /// The role of the series that a chart with a single line shows. Empty: there is no such chart.
    pub main: &'static str,
    /// The title of a chart with a single line.
    pub line_title: String,
    /// The text of the mark of the first tick that differs, if this chart has the mark.
    pub flag: Option<String>,
}

impl Chart {
    /// The values of the line that a chart with a single line shows.
    pub(crate) fn values(&self) -> &[Value] {
        self.line(self.main)
    }

    /// The target of that line. Empty if there is none.
    pub(crate) fn targets(&self) -> &[Value] {
        if self.main == "target" { &[] } else { self.line("target") }
    }

    /// The values of the line with a role. Empty if there is no such line.
    pub(crate) fn line(&self, role: &str) -> &[Value] {
        let line = self.series.iter().find_map(|series| match &series.shape {
            Shape::Line(values) if series.role == role => Some(&*values.all),
            Shape::Peaked(values) if series.role == role => Some(values.as_slice()),
            _ => None,
        });
        line.unwrap_or_default()
    }
}

/// An entry of a legend.
#[derive(Debug)]
pub(crate) struct Key {
    /// The class of the style sheet, which draws the sample before the text.
    pub class: Cow<'static, str>,
    pub text: String,
    /// The explanation; may be empty.
    pub about: &'static str,
}

impl Key {
    pub(crate) fn new(class: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Key {
        Key { class: class.into(), text: text.into(), about: "" }
    }

    /// A text without a sample.
    pub(crate) fn hint(text: impl Into<String>) -> Key {
        Key::new("hint", text)
    }
}

/// A part of a chart. The role gives it its color.
#[derive(Debug)]
pub(crate) struct Series {
    pub role: &'static str,
    pub shape: Shape,
}

impl Series {
    /// A line of steps.
    pub(crate) fn line(role: &'static str, values: impl Into<Values>) -> Series {
        Series { role, shape: Shape::Line(values.into()) }
    }
}

/// The shape of a series.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A line of steps.
    Line(Values),
    /// A line of steps with peaks that are cut at the upper edge. The highest one has its value.
    Peaked(Vec<Value>),
    /// Arrows where the values are above the chart.
    Peaks(Vec<Value>),
    /// The area between two lines.
    Band { lower: Values, upper: Values },
    /// A dot at each value.
    Dots(Vec<(Time, f64)>),
    /// Dots at the upper edge.
    Above(Vec<Time>),
    /// Dots at the lower edge.
    Below(Vec<Time>),
    /// Vertical lines.
    Verticals(Vec<Time>),
    /// Hatched bars, from the lower edge to their values.
    Hatched(Vec<Stretch>),
}

/// A value between two times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub from: Time,
    pub to: Time,
    pub value: f64,
}

/// The values of a line, in order.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Values {
    pub all: Vec<Value>,
    pub keep: Keep,
}

impl From<Vec<Value>> for Values {
    fn from(all: Vec<Value>) -> Values {
        Values { all, keep: Keep::Range }
    }
}

/// The value that a chart shows of several in one column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keep {
    /// From the lowest to the highest.
    Range,
    Least,
    Most,
    Last,
}

impl Keep {
    pub(crate) fn of(self, all: Vec<Value>) -> Values {
        Values { all, keep: self }
    }
}

/// Intervals with a description each.
#[derive(Debug)]
pub(crate) struct Intervals {
    pub title: &'static str,
    pub keys: Vec<Key>,
    pub list: Vec<Interval>,
}

/// Why the result of a tick is not the one that the values in the charts suggest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reason {
    /// The reason, for users.
    pub text: Cow<'static, str>,
    /// The class of the style sheet.
    pub class: &'static str,
}

/// Ticks one after the other with the same reason.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Interval {
    pub from: Time,
    pub to: Time,
    pub reason: Reason,
    pub ticks: usize,
}

impl Interval {
    /// The intervals of ticks, each of which lasts until the next one, or until `end`.
    pub(crate) fn join(ticks: &[(Time, Option<Reason>)], end: Time) -> Vec<Interval> {
        let ends = ticks.iter().skip(1).map(|(at, _)| *at).chain([end]);
        let mut list: Vec<Interval> = Vec::new();
        for ((from, reason), to) in ticks.iter().zip(ends) {
            let Some(reason) = reason else { continue };
            match list.last_mut().filter(|last| last.to == *from && last.reason == *reason) {
                Some(last) => {
                    last.to = to;
                    last.ticks += 1;
                }
                None => list.push(Interval { from: *from, to, reason: reason.clone(), ticks: 1 }),
            }
        }
        list
    }
}

/// Times at which a controller reported something.
#[derive(Debug)]
pub(crate) struct Moments {
    pub title: &'static str,
    pub keys: Vec<Key>,
    /// The content for screen readers.
    pub about: String,
    /// The times, by role.
    pub times: Vec<(&'static str, Vec<Time>)>,
}

/// An event of a scenario: a fault, an edit, a change of pods.
pub(crate) struct EventMark {
    pub at: Time,
    pub lasts: Lasts,
    /// The description, in one line.
    pub text: String,
    /// The class of its bar.
    pub class: &'static str,
}

/// The time until which an event lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lasts {
    /// It is a change at one time.
    Instant,
    /// A given time.
    Until(Time),
    /// The end of the scenario.
    ToTheEnd,
}

impl Lasts {
    /// The end of an event at a time. `can_end`: it is not a change.
    pub(crate) fn from(at: Time, can_end: bool, span: Option<Span>) -> Lasts {
        match (can_end, span) {
            (false, _) => Lasts::Instant,
            (true, Some(span)) => Lasts::Until(at + span),
            (true, None) => Lasts::ToTheEnd,
        }
    }
}
