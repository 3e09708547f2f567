//! Charts as SVG, and the lanes of intervals and moments below them.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::lane::{ChartAxis, Lane, Marked, flag, line};
use super::path::{self, Bar};
use super::peak::Divided;
use crate::counted;
use crate::presentation::{
    Chart, Interval, Intervals, Keep, Key, Moments, Series, Shape, Size, Stretch, Value, Values,
    largest,
};
use crate::scale::{ValueAxis, WIDTH};
use kube_autoscaler_models::time::Time;

/// With more ticks, single values have no dots.
const MOST_DOTS: usize = 40;

/// The maximum number of columns of the small chart in a summary, which is 130 pixels wide.
const SPARK_COLUMNS: usize = 65;

const SPARK: Size = Size { height: 24.0, labels: 2 };

/// The roles of the lines of the small chart.
const SPARK_ROLES: [&str; 3] = ["spec", "value", "target"];

/// A chart, with the mark of the first tick that differs. `grid`: the lines of
/// [`super::lane::grid`].
pub(super) fn draw(chart: &Chart, axis: ChartAxis, grid: &str, marked: Option<&Marked>) -> Markup {
    let scale = &chart.axis;
    let lines = html! { @for series in &chart.series { (drawn(series, axis, scale)) } };
    let overlay = html! {
        @for series in &chart.series {
            @match &series.shape {
                Shape::Peaked(values) => {
                    (Divided::at(values, scale.max).arrows(&|it| chart.unit.text(it), axis))
                }
                Shape::Peaks(values) => {
                    (Divided::at(values, scale.max).arrows(&|_| String::new(), axis))
                }
                Shape::Hatched(bars) => (hatched(bars, axis, scale)),
                _ => {}
            }
        }
        @if let (Some(text), Some(marked)) = (&chart.flag, marked) { (flag(text, marked)) }
    };
    let caption = html! {
        b { (chart.title) } (chart.owner)
        (keys(&chart.keys))
    };
    let label = |value| chart.unit.label(value);
    Lane { caption, about: &chart.about, scale, label: &label, lines, overlay }.draw(grid)
}

/// The chart in the summary of a scenario, as one small picture.
pub(super) fn sparkline(chart: &Chart, end: Time) -> Markup {
    let axis = ChartAxis::until(end, SPARK_COLUMNS);
    let is_shown = |series: &&Series| SPARK_ROLES.contains(&series.role);
    let lines: Vec<(&str, Vec<Value>)> = chart
        .series
        .iter()
        .filter(is_shown)
        .filter_map(|series| match &series.shape {
            Shape::Line(values) => Some((series.role, thinned(values, axis))),
            _ => None,
        })
        .collect();
    let top = lines.iter().map(|(_, values)| largest([values])).fold(0.0, f64::max);
    let scale = chart.unit.axis(top, SPARK);
    html! {
        svg.spark viewBox="0 0 1000 24" preserveAspectRatio="none" aria-hidden="true" {
            @for (role, values) in &lines { path.l.(role) d=(line(values, axis, &scale)) {} }
        }
    }
}

fn keys(keys: &[Key]) -> Markup {
    html! {
        @for Key { class, text, about } in keys {
            span class=(class) title=[(!about.is_empty()).then_some(about)] { (text) }
        }
    }
}

/// A series as paths.
fn drawn(series: &Series, axis: ChartAxis, scale: &ValueAxis) -> Markup {
    let role = series.role;
    let dots =
        |times: &[Time], y: f64| path::dots(times.iter().map(|at| (axis.x(*at), y)), axis.columns);
    html! {
        @match &series.shape {
            Shape::Line(values) => path.l.(role) d=(line(&thinned(values, axis), axis, scale)) {},
            Shape::Peaked(values) => (peaked(role, values, axis, scale)),
            Shape::Band { lower, upper } => {
                @let area = path::ribbon(bars(lower, upper, axis, scale), axis.columns);
                @if !area.is_empty() { path.(role) d=(area) {} }
            }
            Shape::Dots(values) => {
                @let dots = values.iter().map(|(at, value)| (axis.x(*at), scale.y(*value)));
                path.dot.(role) d=(path::dots(dots, axis.columns)) {}
            }
            Shape::Above(times) => path.dot.(role) d=(dots(times, 5.0)) {},
            Shape::Below(times) => path.dot.(role) d=(dots(times, scale.height - 4.0)) {},
            Shape::Verticals(times) => path.(role) d=(verticals(times, axis, scale.height)) {},
            Shape::Peaks(_) | Shape::Hatched(_) => {}
        }
    }
}

/// A line whose peaks are cut at the upper edge of its chart.
fn peaked(role: &str, values: &[Value], axis: ChartAxis, scale: &ValueAxis) -> Markup {
    let divided = Divided::at(values, scale.max);
    let known = divided.inside.iter().filter_map(|(at, value)| Some((*at, (*value)?)));
    let dots = known.map(|(at, value)| (axis.x(at), scale.y(value)));
    html! {
        path.l.(role) d=(line(&divided.inside, axis, scale)) {}
        @if !divided.edge.is_empty() { path.l.edge d=(line(&divided.edge, axis, scale)) {} }
        @if values.len() <= MOST_DOTS { path.dot.(role) d=(path::dots(dots, axis.columns)) {} }
    }
}

/// The area between two lines. Half a pixel is not visible, so edges are rounded to it.
fn bars(lower: &Values, upper: &Values, axis: ChartAxis, scale: &ValueAxis) -> Vec<Bar> {
    let half = |y: f64| (y * 2.0).round() / 2.0;
    let (lower, upper) = (thinned(lower, axis), thinned(upper, axis));
    let ends = lower.iter().skip(1).map(|(at, _)| *at).chain([axis.end()]);
    let bars = lower.iter().zip(&upper).zip(ends).filter_map(|(((at, lower), (_, upper)), end)| {
        let (from, to) = (axis.x(*at), axis.x(end));
        let (top, bottom) = (half(scale.y((*upper)?)), half(scale.y((*lower)?)));
        (top < bottom).then_some(Bar { from, to, top, bottom })
    });
    bars.collect()
}

fn verticals(times: &[Time], axis: ChartAxis, height: f64) -> String {
    let mut path = String::new();
    for at in times {
        let _ = write!(path, "M{:.0} 0v{height:.0}", axis.percent(*at) / 100.0 * WIDTH);
    }
    path
}

/// At most one value for each column of a chart, from the beginning of the column; all values of a
/// line that shows their range.
fn thinned(values: &Values, axis: ChartAxis) -> Vec<Value> {
    let columns = axis.columns;
    if values.keep == Keep::Range || values.all.len() <= columns {
        return values.all.clone();
    }
    let column = |at: Time| (axis.percent(at) / 100.0 * columns as f64) as usize;
    let groups = values.all.chunk_by(|one, other| column(one.0) == column(other.0));
    let kept = groups.map(|group| {
        let known = group.iter().filter_map(|(_, value)| *value);
        let value = match values.keep {
            Keep::Least => known.reduce(f64::min),
            Keep::Most => known.reduce(f64::max),
            Keep::Last | Keep::Range => group.last().and_then(|(_, value)| *value),
        };
        // Round coordinates are short.
        let begin = column(group[0].0) as f64 / columns as f64;
        (Time((axis.end().0 as f64 * begin) as i64), value)
    });
    kept.collect()
}

/// The maximum number of hatched areas. Neighbors closer than their width are joined.
const MOST_HATCHED: i64 = 60;

fn hatched(bars: &[Stretch], axis: ChartAxis, scale: &ValueAxis) -> Markup {
    let close = axis.end().0 / MOST_HATCHED;
    let mut areas: Vec<Stretch> = Vec::new();
    for bar in bars {
        match areas.last_mut() {
            Some(last)
                if last.to == bar.from && last.value == bar.value
                    || bar.to.0 - last.from.0 < close =>
            {
                last.to = bar.to;
                last.value = last.value.max(bar.value);
            }
            _ => areas.push(*bar),
        }
    }
    html! {
        @for Stretch { from, to, value } in &areas {
            @let (left, right) = (axis.percent(*from), axis.percent(*to));
            @let top = scale.y(*value);
            @let style = format!(
                "left:{left:.2}%;width:{:.2}%;top:{top:.1}px", right - left
            );
            span.hatched style=(style) {}
        }
    }
}

/// A strip of intervals.
pub(super) fn strip(intervals: &Intervals, axis: ChartAxis) -> Markup {
    html! {
        div.lane {
            div.cap { b { (intervals.title) } (keys(&intervals.keys)) }
            div.strip {
                @for interval in joined(&intervals.list, axis) {
                    @let (from, to) = (axis.percent(interval.from), axis.percent(interval.to));
                    @let style = format!("left:{from:.2}%;width:{:.2}%", to - from);
                    span.seg.by.(interval.reason.class) title=(title(&interval, axis))
                        style=(style) {
                        // No name fits into less.
                        @if to - from >= 2.0 { i { (interval.reason.text) } }
                    }
                }
            }
        }
    }
}

/// `10m15s to 14m45s: stabilization, 18 ticks`.
fn title(interval: &Interval, axis: ChartAxis) -> String {
    let Interval { from, to, reason, ticks } = interval;
    let ticks = counted(*ticks, "tick");
    match *to < axis.end() {
        true => format!("{from} to {to}: {}, {ticks}", reason.text),
        false => format!("from {from}: {}, {ticks}", reason.text),
    }
}

/// The intervals, as they are drawn. Many intervals are drawn as columns of the same width, each
/// with the reason that held for the longest time. An interval takes as many bytes of the page as
/// several columns of a line, so they are fewer.
fn joined(intervals: &[Interval], axis: ChartAxis) -> Vec<Interval> {
    let most = axis.columns / 2;
    if intervals.len() <= most {
        return intervals.to_vec();
    }
    let width = axis.end().0 / most as i64 + 1;
    let column = |at: Time| at.0 / width;
    let mut joined: Vec<Interval> = Vec::new();
    for group in intervals.chunk_by(|one, other| column(one.from) == column(other.from)) {
        let mut lengths: Vec<(&Interval, i64)> = Vec::new();
        for interval in group {
            let length = interval.to.0 - interval.from.0;
            match lengths.iter_mut().find(|(known, _)| known.reason == interval.reason) {
                Some((_, sum)) => *sum += length,
                None => lengths.push((interval, length)),
            }
        }
        let (first, last) = (&group[0], &group[group.len() - 1]);
        let longest = lengths.iter().max_by_key(|(_, length)| *length);
        let reason = longest.map_or(&first.reason, |(interval, _)| &interval.reason).clone();
        let ticks = group.iter().filter(|it| it.reason == reason).map(|it| it.ticks).sum();
        match joined.last_mut() {
            Some(before) if before.reason == reason && first.from.0 - before.to.0 < width => {
                before.to = last.to;
                before.ticks += ticks;
            }
            _ => joined.push(Interval { from: first.from, to: last.to, reason, ticks }),
        }
    }
    joined
}

/// A row of dots.
pub(super) fn moments(moments: &Moments, axis: ChartAxis) -> Markup {
    let dots = |times: &[Time]| path::dots(times.iter().map(|at| (axis.x(*at), 8.0)), axis.columns);
    html! {
        div.lane {
            div.cap { b { (moments.title) } (keys(&moments.keys)) }
            div.plot style="height:16px" {
                svg viewBox="0 0 1000 16" preserveAspectRatio="none" role="img"
                    aria-label=(moments.about) {
                    path.g d="M0 8H1000" {}
                    @for (role, times) in &moments.times { path.dot.(role) d=(dots(times)) {} }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_keeps_the_range_of_its_values() {
        let values: Vec<Value> =
            (0..100).map(|second| (Time::from_secs(second), Some((second % 10) as f64))).collect();
        let axis = ChartAxis::until(Time::from_secs(100), 10);
        let kept = |keep: Keep| -> Vec<f64> {
            let values = thinned(&keep.of(values.clone()), axis);
            values.into_iter().filter_map(|(_, value)| value).collect()
        };
        assert_eq!(kept(Keep::Least), [0.0; 10]);
        assert_eq!(kept(Keep::Most), [9.0; 10]);
        assert_eq!(kept(Keep::Last), [9.0; 10]);
        let wide = ChartAxis::until(Time::from_secs(100), 100);
        assert_eq!(thinned(&Keep::Most.of(values.clone()), wide), values);
    }
}
