//! The charts of a timeline, one below the other over a common axis of time.

use maud::{Markup, html};

use super::actions;
use super::detail::Detail;
use super::lane::{ChartAxis, Lane, amounts_up_to, flag, grid, largest, line, time, whole};
use super::path::{self, Bar};
use super::peak::{self, Divided};
use super::timeline::{Limited, Metric, Pods, Replicas, Timeline, Value};
use super::words;
use crate::metric::{Unit, unit};
use crate::scale::ValueAxis;
use kube_autoscaler_models::derivation::{MetricDerivation, PodCounts};
use kube_autoscaler_models::observation::EventType;
use kube_autoscaler_models::quantity::human;
use kube_autoscaler_models::time::Time;

pub(super) const REPLICAS_HEIGHT: f64 = 132.0;
const METRIC_HEIGHT: f64 = 84.0;
const PODS_HEIGHT: f64 = 56.0;

/// With more ticks, single values have no dots.
const MOST_DOTS: usize = 40;

/// The maximum number of columns of the small chart in a summary, which is 130 pixels wide.
pub(super) const SPARK_COLUMNS: usize = 65;

/// All charts of a timeline.
pub(super) fn all(timeline: &Timeline<'_>, detail: Detail) -> Markup {
    let axis = timeline.axis(detail.columns);
    let labels = axis.labels();
    let grid = &grid(&labels);
    html! {
        (replicas(timeline, axis, grid))
        @for metric in timeline.metrics() { (self::metric(&metric, axis, grid)) }
        (pods(&timeline.pods(), axis, grid))
        (limits(&timeline.limits(), axis))
        (events(timeline, axis))
        (actions::lane(&actions::of(timeline), axis))
        (time(axis, &labels))
    }
}

/// The replicas of the summary of a scenario, as one small line.
pub(super) fn sparkline(timeline: &Timeline<'_>) -> Markup {
    let axis = timeline.axis(SPARK_COLUMNS);
    let spec = timeline.replicas().spec;
    let values = ValueAxis::up_to(largest([&spec]), 24.0, 2, true);
    html! {
        svg.spark viewBox="0 0 1000 24" preserveAspectRatio="none" aria-hidden="true" {
            path.l.spec d=(line(&spec, axis, &values)) {}
        }
    }
}

fn replicas(timeline: &Timeline<'_>, axis: ChartAxis, grid: &str) -> Markup {
    let all = timeline.replicas();
    let seen = largest([&all.spec, &all.status, &all.desired, &all.model]);
    // A limit that is far away would flatten everything below it.
    let is_near = |(_, value): &&Value| value.is_some_and(|limit| limit <= seen * 2.0 + 2.0);
    let near: Vec<Value> = all.max.iter().filter(is_near).copied().collect();
    let top = largest([&near, &all.min]).max(seen);
    let scale = ValueAxis::up_to(top, REPLICAS_HEIGHT, 4, true);
    let is_inside = |value: &f64| *value <= scale.max;
    let max: Vec<Value> =
        all.max.iter().map(|(at, value)| (*at, value.filter(is_inside))).collect();
    let draw = |values: &[Value]| line(values, axis, &scale);
    let lines = html! {
        path.l.lim d=(draw(&all.min)) {}
        path.l.lim d=(draw(&max)) {}
        path.l.desired d=(draw(&all.desired)) {}
        path.l.status d=(draw(&all.status)) {}
        path.l.spec d=(draw(&all.spec)) {}
        @if !all.model.is_empty() {
            path.l.model d=(draw(&all.model)) {}
            path.dot.model d=(differing(&all.differing, axis, &scale)) {}
        }
    };
    let caption = html! {
        b { "Replicas" }
        @if timeline.scenario.has_several_hpas() { " of " (timeline.hpa) }
        span.k.spec { "spec" }
        @if !all.status.is_empty() { span.k.status { "status" } }
        @if !all.desired.is_empty() { span.k.desired { "desired" } }
        @if !all.model.is_empty() { span.k.model { "desired by the model" } }
        @if let Some(limits) = limits_text(&all, scale.max) { span.k.lim { (limits) } }
    };
    let about = format!("Replicas. {}", words::changes(&all.spec));
    Lane { caption, about, scale, label: whole, lines, overlay: mark(timeline, axis) }.draw(grid)
}

/// A dot at each value of the model that the controller did not write.
fn differing(values: &[(Time, f64)], axis: ChartAxis, scale: &ValueAxis) -> String {
    path::dots(values.iter().map(|(at, value)| (axis.x(*at), scale.y(*value))), axis.columns)
}

/// The mark of the first tick that differs, with both values if these are the desired replicas.
fn mark(timeline: &Timeline<'_>, axis: ChartAxis) -> Markup {
    let Some(mark) = &timeline.mark else { return html! {} };
    let desired = mark.desired_replicas();
    let text = desired.map_or_else(|| mark.word().to_owned(), |field| mark.values(field));
    flag(&text, &mark.on(axis))
}

/// `min 1, max 10`, as in force at the end.
fn limits_text(all: &Replicas, top: f64) -> Option<String> {
    let last = |values: &[Value]| values.last().and_then(|(_, value)| *value);
    let (min, max) = (last(&all.min)?, last(&all.max)?);
    let hidden = if max <= top { "" } else { " (above the chart)" };
    Some(format!("min {min:.0}, max {max:.0}{hidden}"))
}

fn metric(metric: &Metric<'_>, axis: ChartAxis, grid: &str) -> Markup {
    let scale = value_axis(metric.like, peak::top(metric));
    let divided = Divided::at(&metric.values, scale.max);
    let target = line(&metric.target, axis, &scale);
    let known = divided.inside.iter().filter_map(|(at, value)| Some((*at, (*value)?)));
    let dots = path::dots(known.map(|(at, value)| (axis.x(at), scale.y(value))), axis.columns);
    let failures = metric.failures.iter().map(|at| (axis.x(*at), scale.height - 4.0));
    let lines = html! {
        path.band.tolerated d=(band(metric, axis, &scale)) {}
        path.l.target d=(target) {}
        path.l.value d=(line(&divided.inside, axis, &scale)) {}
        @if !divided.edge.is_empty() { path.l.edge d=(line(&divided.edge, axis, &scale)) {} }
        @if metric.values.len() <= MOST_DOTS { path.dot.value d=(dots) {} }
        @if !metric.failures.is_empty() { path.dot.bad d=(path::dots(failures, axis.columns)) {} }
    };
    let text = |value: f64| words::value(metric.like, value);
    let edges = [&metric.target, &metric.lower, &metric.upper].map(|values| last(values));
    let caption = html! {
        b { (metric.like.title()) }
        @if metric.values.iter().any(|(_, value)| value.is_some()) {
            span.k.value { (words::unit(metric.like)) }
        } @else {
            span.hint { (words::unit(metric.like)) }
        }
        @if let [Some(target), Some(lower), Some(upper)] = edges {
            span.k.target { "target " (text(target)) }
            span.k.band { "tolerance " (text(lower)) " to " (text(upper)) }
        }
        @if !divided.peaks.is_empty() { span.hint { "▲ above the chart" } }
        @if !metric.failures.is_empty() { span.k.bad { "metric failed" } }
    };
    let about = words::about_metric(metric);
    let label = value_label(metric.like);
    let overlay = divided.arrows(&text, axis);
    Lane { caption, about, scale, label, lines, overlay }.draw(grid)
}

fn last(values: &[Value]) -> Option<f64> {
    values.last().and_then(|(_, value)| *value)
}

/// The label of a value of the metric.
pub(super) fn value_label(metric: &MetricDerivation) -> fn(f64) -> String {
    match (unit(metric), words::is_memory(metric)) {
        (Unit::Percent, _) => |value| format!("{value:.0}%"),
        (_, true) => human::bytes,
        (_, false) => words::milli,
    }
}

/// An axis with labels at round numbers in the unit of the labels.
pub(super) fn value_axis(metric: &MetricDerivation, largest: f64) -> ValueAxis {
    match words::is_memory(metric) {
        true => amounts_up_to(largest, METRIC_HEIGHT, true),
        false => {
            let is_whole = unit(metric) == Unit::Percent;
            ValueAxis::up_to(largest, METRIC_HEIGHT, 3, is_whole)
        }
    }
}

/// The tolerance around the target.
fn band(metric: &Metric<'_>, axis: ChartAxis, scale: &ValueAxis) -> String {
    let edges = metric.lower.iter().zip(&metric.upper);
    let ends = metric.lower.iter().skip(1).map(|(at, _)| *at).chain([axis.end()]);
    let bars = edges.zip(ends).filter_map(|(((at, lower), (_, upper)), end)| {
        let (from, to) = (axis.x(*at), axis.x(end));
        Some(Bar { from, to, top: scale.y((*upper)?), bottom: scale.y((*lower)?) })
    });
    path::area(bars, axis.columns)
}

/// The groups of pods, from the bottom to the top of their chart: class and name.
const GROUPS: [(&str, &str); 4] = [
    ("ready", "counted"),
    ("unready", "unready"),
    ("missing", "without metrics"),
    ("gone", "failed or terminating"),
];

fn group(counts: PodCounts, index: usize) -> u32 {
    [counts.ready, counts.unready, counts.missing, counts.ignored][index]
}

fn pods(pods: &[Pods], axis: ChartAxis, grid: &str) -> Markup {
    let total = |pods: &Pods, groups: usize| -> f64 {
        (0..groups).map(|index| f64::from(group(pods.counts, index))).sum()
    };
    let all = |pods: &Pods| total(pods, GROUPS.len()) + f64::from(pods.not_counted);
    let most = pods.iter().map(all).fold(0.0, f64::max);
    if most == 0.0 {
        return html! {};
    }
    let scale = ValueAxis::up_to(most, PODS_HEIGHT, 2, true);
    let stacked = |index: usize| {
        let bars = pods.iter().map(|pods| Bar {
            from: axis.x(pods.from),
            to: axis.x(pods.to),
            top: scale.y(total(pods, index + 1)),
            bottom: scale.y(total(pods, index)),
        });
        path::area(bars, axis.columns)
    };
    let seen = |index: &usize| pods.iter().any(|pods| group(pods.counts, *index) > 0);
    let shown: Vec<usize> = (0..GROUPS.len()).filter(seen).collect();
    let is_partial = pods.iter().any(|pods| pods.not_counted > 0);
    let outline: Vec<Value> = pods.iter().map(|pods| (pods.from, Some(all(pods)))).collect();
    let lines = html! {
        @for index in &shown { path.a.(GROUPS[*index].0) d=(stacked(*index)) {} }
        @if is_partial { path.l.total d=(line(&outline, axis, &scale)) {} }
    };
    let caption = html! {
        b { "Pods" }
        @for index in &shown { span.k.a.(GROUPS[*index].0) { (GROUPS[*index].1) } }
        @if is_partial {
            span.k.a.hatched title=(NOT_CLASSIFIED) { "not classified" }
            span.k.total { "total" }
        }
    };
    let names: Vec<&str> = shown.iter().map(|index| GROUPS[*index].1).collect();
    let about = format!("Pods by group: {}; at most {most:.0} pods", names.join(", "));
    let overlay = not_classified(pods, axis, &scale);
    Lane { caption, about, scale, label: whole, lines, overlay }.draw(grid)
}

/// The explanation of a hatched area.
const NOT_CLASSIFIED: &str = "In these ticks, the controller did not look at the pods: for \
     example, it could not read the scale or the metrics.";

/// The maximum number of hatched areas. Neighbors closer than their width are joined.
const MOST_HATCHED: i64 = 60;

/// The pods in ticks in which the controller did not count them, hatched.
fn not_classified(pods: &[Pods], axis: ChartAxis, scale: &ValueAxis) -> Markup {
    let close = axis.end().0 / MOST_HATCHED;
    let mut areas: Vec<Pods> = Vec::new();
    for pods in pods.iter().filter(|pods| pods.not_counted > 0) {
        match areas.last_mut() {
            Some(last)
                if last.to == pods.from && last.not_counted == pods.not_counted
                    || pods.to.0 - last.from.0 < close =>
            {
                last.to = pods.to;
                last.not_counted = last.not_counted.max(pods.not_counted);
            }
            _ => areas.push(*pods),
        }
    }
    html! {
        @for Pods { from, to, not_counted, .. } in &areas {
            @let (left, right) = (axis.percent(*from), axis.percent(*to));
            @let top = scale.y(f64::from(*not_counted));
            @let style = format!(
                "left:{left:.2}%;width:{:.2}%;top:{top:.1}px", right - left
            );
            span.hatched style=(style) {}
        }
    }
}

/// The intervals in which a window, a policy or a limit decided.
fn limits(limits: &[Limited], axis: ChartAxis) -> Markup {
    if limits.is_empty() {
        return html! {};
    }
    let kinds = kinds(limits);
    let limits = &joined(limits, axis);
    html! {
        div.lane {
            div.cap {
                b { "Limited by" }
                @for (class, names) in &kinds {
                    span.k.a.by.(class) { (names.join(", ")) }
                }
                span.hint { "why the replicas do not follow the metrics" }
            }
            div.strip {
                @for limit in limits {
                    @let (from, to) = (axis.percent(limit.from), axis.percent(limit.to));
                    @let title = words::limited(limit);
                    @let style = format!("left:{from:.2}%;width:{:.2}%", to - from);
                    span.seg.by.(words::limit_class(limit.by)) title=(title) style=(style) {
                        // No name fits into less.
                        @if to - from >= 2.0 { i { (limit.by) } }
                    }
                }
            }
        }
    }
}

/// The intervals, as they are drawn. Many intervals are drawn as columns of the same width, each
/// with the limit that decided for the longest time. An interval takes as many bytes of the page as
/// several columns of a line, so they are fewer.
fn joined(limits: &[Limited], axis: ChartAxis) -> Vec<Limited> {
    let most = axis.columns / 2;
    if limits.len() <= most {
        return limits.to_vec();
    }
    let width = axis.end().0 / most as i64 + 1;
    let column = |at: Time| at.0 / width;
    let mut joined: Vec<Limited> = Vec::new();
    let mut rest = limits;
    while let Some(first) = rest.first() {
        let here = column(first.from);
        let count = rest.iter().take_while(|limit| column(limit.from) == here).count();
        let (group, later) = rest.split_at(count);
        rest = later;
        let mut lengths: Vec<(&'static str, i64)> = Vec::new();
        for limit in group {
            match lengths.iter_mut().find(|(by, _)| *by == limit.by) {
                Some((_, length)) => *length += limit.to.0 - limit.from.0,
                None => lengths.push((limit.by, limit.to.0 - limit.from.0)),
            }
        }
        let longest = lengths.iter().max_by_key(|(_, length)| *length);
        let by = longest.map_or(first.by, |(by, _)| by);
        let ticks = group.iter().filter(|limit| limit.by == by).map(|limit| limit.ticks).sum();
        let to = group.last().map_or(first.to, |limit| limit.to);
        match joined.last_mut() {
            Some(last) if last.by == by && first.from.0 - last.to.0 < width => {
                last.to = to;
                last.ticks += ticks;
            }
            _ => joined.push(Limited { from: first.from, to, by, ticks }),
        }
    }
    joined
}

/// The kinds of limits with the names of the limits of each kind, in the order of their first
/// intervals.
fn kinds(limits: &[Limited]) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut kinds: Vec<(&'static str, Vec<&'static str>)> = Vec::new();
    for limit in limits {
        let kind = words::limit_class(limit.by);
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, names)) if names.contains(&limit.by) => {}
            Some((_, names)) => names.push(limit.by),
            None => kinds.push((kind, vec![limit.by])),
        }
    }
    kinds
}

/// The events that the controller recorded.
fn events(timeline: &Timeline<'_>, axis: ChartAxis) -> Markup {
    let of = |type_: EventType| {
        let ticks = timeline.ticks.iter().map(|tick| tick.observation);
        let with = ticks.filter(move |tick| tick.events().any(|event| event.type_ == type_));
        with.map(|tick| tick.at).collect::<Vec<Time>>()
    };
    let (normal, warning) = (of(EventType::Normal), of(EventType::Warning));
    if normal.is_empty() && warning.is_empty() {
        return html! {};
    }
    let dots = |times: &[Time]| path::dots(times.iter().map(|at| (axis.x(*at), 8.0)), axis.columns);
    let about = format!("Events: {} normal, {} warnings", normal.len(), warning.len());
    html! {
        div.lane {
            div.cap {
                b { "Events of the controller" }
                @if !normal.is_empty() { span.k.ev { "normal" } }
                @if !warning.is_empty() { span.k.bad { "warning" } }
            }
            div.plot style="height:16px" {
                svg viewBox="0 0 1000 16" preserveAspectRatio="none" role="img" aria-label=(about) {
                    path.g d="M0 8H1000" {}
                    @if !normal.is_empty() { path.dot.ev d=(dots(&normal)) {} }
                    @if !warning.is_empty() { path.dot.bad d=(dots(&warning)) {} }
                }
            }
        }
    }
}
