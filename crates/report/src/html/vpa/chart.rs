//! The charts of a VPA, one below the other over a common axis of time.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use maud::{Markup, html};

use super::VpaTimeline;
use super::events::{self, Marks};
use super::series::Series;
use crate::html::actions;
use crate::html::lane::{ChartAxis, Lane, amounts_up_to, flag, grid, largest, line, time};
use crate::html::path;
use crate::html::path::Bar;
use crate::html::peak::Divided;
use crate::html::timeline::Value;
use crate::html::words;
use crate::recommender::problems;
use crate::scale::{ValueAxis, WIDTH};
use crate::{counted, thousands};
use kube_autoscaler_models::quantity::human;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::Resource;
use kube_lockstep_sim::compare::{AmountField, FieldDifference, FieldPath};

const HEIGHT: f64 = 120.0;

/// All charts of a VPA.
pub(super) fn all(timeline: &VpaTimeline<'_>) -> Markup {
    let axis = timeline.axis();
    let labels = axis.labels();
    let grid = &grid(&labels);
    let series = timeline.series();
    let marks = events::marks(timeline);
    let mut flags = flags(timeline, &series);
    html! {
        @for (index, series) in series.iter().enumerate() {
            (amounts(&Drawn { series, axis, marks: &marks, flag: flags.remove(&index) }, grid))
        }
        (conditions(timeline, axis))
        (errors(timeline, axis))
        (actions::lane(&events::of(timeline), axis))
        (time(axis, &labels))
    }
}

/// The target and the usage of the first container, as one small chart.
pub(super) fn sparkline(series: &Series, axis: ChartAxis) -> Markup {
    let top = largest([&series.target, &series.highest]);
    let values = ValueAxis::up_to(top, 24.0, 2, false);
    html! {
        svg.spark viewBox="0 0 1000 24" preserveAspectRatio="none" aria-hidden="true" {
            path.l.value d=(line(&series.highest, axis, &values)) {}
            path.l.target d=(line(&series.target, axis, &values)) {}
        }
    }
}

/// The marks of the first tick that differs, by the index of the chart. A difference of something
/// else is marked on the first chart.
fn flags(timeline: &VpaTimeline<'_>, series: &[Series]) -> BTreeMap<usize, String> {
    let mut flags = BTreeMap::new();
    let Some(mark) = &timeline.run.mark else { return flags };
    for (index, series) in series.iter().enumerate() {
        let value = |difference: &FieldDifference| match &difference.field {
            FieldPath::Amount(AmountField { vpa, container, value, resource })
                if vpa == timeline.vpa
                    && **container == *series.container
                    && *resource == series.resource =>
            {
                Some(value.name())
            }
            _ => None,
        };
        let found = mark.first.fields.iter().find_map(|it| Some((value(it)?, it)));
        if let Some((value, difference)) = found {
            let difference = with_units(difference, series.resource);
            flags.insert(index, format!("{value}: {}", mark.values(&difference)));
        }
    }
    if flags.is_empty() {
        flags.insert(0, mark.word().to_owned());
    }
    flags
}

/// The difference, with amounts of memory in the units of the axis; unchanged if both values would
/// then look the same.
fn with_units(difference: &FieldDifference, resource: Resource) -> FieldDifference {
    let bytes = |text: &str| {
        let bytes = text.parse::<f64>().ok().filter(|_| resource == Resource::Memory);
        bytes.map_or_else(|| text.to_owned(), |bytes| human::bytes(bytes * 1000.0))
    };
    let (model, upstream) = (bytes(&difference.model), bytes(&difference.upstream));
    match model == upstream {
        true => difference.clone(),
        false => FieldDifference { model, upstream, ..difference.clone() },
    }
}

/// The contents of one chart.
struct Drawn<'a> {
    series: &'a Series,
    axis: ChartAxis,
    marks: &'a Marks,
    /// The text of the mark.
    flag: Option<String>,
}

fn amounts(drawn: &Drawn<'_>, grid: &str) -> Markup {
    let Drawn { series, axis, marks, flag: flagged } = drawn;
    let axis = *axis;
    let is_memory = series.resource == Resource::Memory;
    let scale = amounts_up_to(top(series), HEIGHT, is_memory);
    let draw = |values: &[Value]| line(values, axis, &scale);
    let fits = |request: &f64| *request <= scale.max;
    let requested = series.request.iter().map(|(at, request)| (*at, request.filter(fits)));
    let requested: Vec<Value> = requested.collect();
    let kills = if is_memory { marks.kills_of(&series.container) } else { Vec::new() };
    let dots = path::dots(kills.iter().map(|at| (axis.x(*at), 5.0)), axis.columns);
    let lines = html! {
        path.band d=(ribbon(&series.lower, &series.upper, axis, &scale)) {}
        @if series.lowest != series.highest {
            path.used d=(ribbon(&series.lowest, &series.highest, axis, &scale)) {}
        }
        path.mark d=(vertical(&marks.changes, axis, scale.height)) {}
        @if requested.iter().any(|(_, it)| it.is_some()) { path.l.lim d=(draw(&requested)) {} }
        path.l.value d=(draw(&series.highest)) {}
        @if !series.uncapped.is_empty() { path.l.uncapped d=(draw(&series.uncapped)) {} }
        path.l.target d=(draw(&series.target)) {}
        @if !series.model.is_empty() {
            path.l.model d=(draw(&series.model)) {}
            path.dot.model d=(end(&series.model, axis, &scale)) {}
        }
        @if !kills.is_empty() { path.dot.bad d=(dots) {} }
    };
    let label: fn(f64) -> String = if is_memory { human::bytes } else { words::short_cores };
    let text: fn(f64) -> String = if is_memory { human::bytes } else { words::cores };
    // A bound that is cut is marked as a peak, without its value: the first ones mean nothing.
    let cut = Divided::at(&series.upper, scale.max);
    let overlay = html! {
        (cut.arrows(&|_| String::new(), axis))
        @if let (Some(text), Some(at)) = (flagged, &marks.first_difference) { (flag(text, at)) }
    };
    let caption = caption(series, &scale, text, marks, !kills.is_empty());
    let about = about(series, text);
    Lane { caption, about, scale, label, lines, overlay }.draw(grid)
}

fn caption(
    series: &Series,
    scale: &ValueAxis,
    label: fn(f64) -> String,
    marks: &Marks,
    has_kills: bool,
) -> Markup {
    let last = |values: &[Value]| {
        values.last().and_then(|(_, value)| *value).map(|value| (value, label(value)))
    };
    let above = |value: f64| if value > scale.max { " (above the chart)" } else { "" };
    let amounts = [&series.target, &series.lower, &series.upper, &series.uncapped, &series.request];
    let has_changed = amounts.iter().any(|values| has_several(values));
    let usage = if series.has_range { "highest usage of a pod" } else { "usage" };
    html! {
        b { (series.container) " " (series.resource.name()) }
        @if series.resource == Resource::Cpu { span.hint { "in cores" } }
        @if series.highest.iter().any(|(_, value)| value.is_some()) { span.k.value { (usage) } }
        @if series.has_range { span.k.used { "down to the lowest" } }
        @if has_changed { span.hint { "at the end:" } }
        @if let Some((_, target)) = last(&series.target) { span.k.target { "target " (target) } }
        @let bounds = (last(&series.lower), last(&series.upper));
        @if let (Some((_, lower)), Some((most, upper))) = bounds {
            span.k.band { "bounds " (lower) " to " (upper) (above(most)) }
        }
        @if let Some((most, uncapped)) = last(&series.uncapped) {
            span.k.uncapped { "uncapped target " (uncapped) (above(most)) }
        }
        @if let Some((request, text)) = last(&series.request) {
            @let of = if series.request.len() > 1 { "request of new pods" } else { "request" };
            span.k.lim { (of) " " (text) (above(request)) }
        }
        @if largest([&series.upper]) > scale.max { span.hint { "▲ bound above the chart" } }
        @if !series.model.is_empty() { span.k.model { "target of the model" } }
        @if has_kills { span.k.bad { "OOM kill" } }
        @if !marks.changes.is_empty() { span.k.mark { "restart or edit" } }
    }
}

/// A dot at the last value: the model's runs end at the first difference.
fn end(values: &[Value], axis: ChartAxis, scale: &ValueAxis) -> String {
    let known = values.iter().rev().find_map(|(at, value)| Some((*at, (*value)?)));
    let dot = known.map(|(at, value)| (axis.x(at), scale.y(value)));
    path::dots(dot, axis.columns)
}

/// Returns true if there are different values.
fn has_several(values: &[Value]) -> bool {
    let mut known = values.iter().filter_map(|(_, value)| *value);
    known.next().is_some_and(|first| known.any(|value| value != first))
}

/// The chart for screen readers: `app cpu: target 587m; usage from 100m to 300m`.
fn about(series: &Series, label: fn(f64) -> String) -> String {
    let range = |values: &[Value]| {
        let known = || values.iter().filter_map(|(_, value)| *value);
        match (known().reduce(f64::min), known().reduce(f64::max)) {
            (Some(least), Some(most)) if least < most => {
                format!("from {} to {}", label(least), label(most))
            }
            (Some(only), _) => label(only),
            (None, _) => "none".to_owned(),
        }
    };
    let usage: Vec<Value> = [series.lowest.clone(), series.highest.clone()].concat();
    let (container, resource) = (&series.container, series.resource.name());
    let (target, usage) = (range(&series.target), range(&usage));
    format!("{container} {resource}: target {target}; usage {usage}")
}

/// The largest value of a chart. The upper bound is far above all others at first: it must not
/// flatten them.
fn top(series: &Series) -> f64 {
    let near = largest([&series.target, &series.highest, &series.lower, &series.model]);
    let is_near = |value: &f64| *value <= near * 2.0;
    let last = series.upper.last().and_then(|(_, value)| *value);
    let more = [
        last.filter(is_near),
        Some(largest([&series.uncapped])).filter(is_near),
        Some(largest([&series.request])).filter(is_near),
    ];
    let top = more.into_iter().flatten().fold(near, f64::max);
    let upper = largest([&series.upper]);
    if upper > top * 1.2 { top * 1.2 } else { top.max(upper) }
}

/// The area between two lines. Half a pixel is not visible, so edges are rounded to it.
fn ribbon(lower: &[Value], upper: &[Value], axis: ChartAxis, scale: &ValueAxis) -> String {
    let ends = lower.iter().skip(1).map(|(at, _)| *at).chain([axis.end()]);
    let bars = lower.iter().zip(upper).zip(ends).filter_map(|(((at, lower), (_, upper)), end)| {
        let (from, to) = (axis.x(*at), axis.x(end));
        let half = |y: f64| (y * 2.0).round() / 2.0;
        let (top, bottom) = (half(scale.y((*upper)?)), half(scale.y((*lower)?)));
        (top < bottom).then_some(Bar { from, to, top, bottom })
    });
    path::ribbon(&bars.collect::<Vec<_>>())
}

fn vertical(times: &[Time], axis: ChartAxis, height: f64) -> String {
    let mut path = String::new();
    for at in times {
        let _ = write!(path, "M{:.0} 0v{height:.0}", axis.percent(*at) / 100.0 * WIDTH);
    }
    path
}

/// The intervals in which the conditions show a problem, or the VPA does not exist.
fn conditions(timeline: &VpaTimeline<'_>, axis: ChartAxis) -> Markup {
    let snapshots = timeline.run.snapshots;
    let ends = snapshots.iter().skip(1).map(|it| it.at).chain([axis.end()]);
    let states = snapshots.iter().zip(ends).map(|(snapshot, end)| {
        let status = snapshot.statuses.get(timeline.vpa);
        (status.map_or_else(|| "deleted".to_owned(), problems), snapshot.at, end)
    });
    let mut joined: Vec<(String, Time, Time)> = Vec::new();
    for (text, from, to) in states {
        match joined.last_mut() {
            Some(last) if last.0 == text => last.2 = to,
            _ => joined.push((text, from, to)),
        }
    }
    joined.retain(|(text, ..)| !text.is_empty());
    if joined.is_empty() {
        return html! {};
    }
    html! {
        div.lane {
            div.cap { b { "Conditions" } span.hint { "why there is no current recommendation" } }
            div.strip {
                @for (text, from, to) in &joined {
                    @let title = if *to < axis.end() {
                        format!("{from} to {to}: {text}")
                    } else {
                        format!("from {from}: {text}")
                    };
                    @let (left, right) = (axis.percent(*from), axis.percent(*to));
                    @let style = format!("left:{left:.2}%;width:{:.2}%", right - left);
                    span.seg.fail title=(title) style=(style) { i { (text) } }
                }
            }
        }
    }
}

/// The errors that the recommender logged.
fn errors(timeline: &VpaTimeline<'_>, axis: ChartAxis) -> Markup {
    let logs = timeline.run.snapshots.iter().filter(|snapshot| !snapshot.log.is_empty());
    let mut places: Vec<f64> = logs.map(|snapshot| axis.x(snapshot.at).round()).collect();
    places.dedup();
    if places.is_empty() {
        return html! {};
    }
    let count: usize = timeline.run.snapshots.iter().map(|it| it.log.len()).sum();
    let dots = path::dots(places.into_iter().map(|x| (x, 8.0)), axis.columns);
    let about = format!("{} of the recommender", counted(count, "error"));
    html! {
        div.lane {
            div.cap { b { "Errors of the recommender" } span.k.bad { (thousands(count)) } }
            div.plot style="height:16px" {
                svg viewBox="0 0 1000 16" preserveAspectRatio="none" role="img" aria-label=(about) {
                    path.g d="M0 8H1000" {}
                    path.dot.bad d=(dots) {}
                }
            }
        }
    }
}
