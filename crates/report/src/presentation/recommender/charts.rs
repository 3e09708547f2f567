//! The charts of a VPA: the amounts of each resource of a container, over its usage.

use std::collections::BTreeMap;

use super::Timeline;
use super::events::{self, Marks};
use super::series::{self, Amounts};
use crate::presentation::{
    Chart, Keep, Key, Series, Shape, Size, Unit, Value, largest, last, words,
};
use crate::scale::ValueAxis;
use kube_autoscaler_models::vpa::Resource;
use kube_lockstep_sim::compare::{AmountField, FieldDifference, FieldPath};

const SIZE: Size = Size { height: 120.0, labels: 3 };

/// A chart for each resource of a container.
pub(super) fn all(timeline: &Timeline<'_>) -> Vec<Chart> {
    let all = series::of(timeline);
    let marks = events::marks(timeline);
    let mut flags = flags(timeline, &all);
    let charts = all.into_iter().enumerate();
    charts.map(|(index, amounts)| chart(amounts, &marks, flags.remove(&index))).collect()
}

/// The marks of the first tick that differs, by the index of the chart. A difference of something
/// else is marked on the first chart.
fn flags(timeline: &Timeline<'_>, all: &[Amounts]) -> BTreeMap<usize, String> {
    let mut flags = BTreeMap::new();
    let Some(mark) = &timeline.run.mark else { return flags };
    for (index, amounts) in all.iter().enumerate() {
        let value = |difference: &FieldDifference| match difference.field.without_run() {
            FieldPath::Amount(AmountField { vpa, container, value, resource })
                if vpa == timeline.vpa
                    && **container == *amounts.container
                    && *resource == amounts.resource =>
            {
                Some(value.name())
            }
            _ => None,
        };
        let found = mark.first.fields.iter().find_map(|it| Some((value(it)?, it)));
        if let Some((value, difference)) = found {
            let difference = with_units(difference, amounts.resource);
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
        bytes.map_or_else(|| text.to_owned(), |bytes| Unit::Bytes.text(bytes * 1000.0))
    };
    let (model, upstream) = (bytes(&difference.model), bytes(&difference.upstream));
    match model == upstream {
        true => difference.clone(),
        false => FieldDifference { model, upstream, ..difference.clone() },
    }
}

fn chart(amounts: Amounts, marks: &Marks, flag: Option<String>) -> Chart {
    let unit = Unit::for_resource(amounts.resource);
    let axis = unit.axis(top(&amounts), SIZE);
    let keys = keys(&amounts, unit, &axis, marks);
    let about = about(&amounts, unit);
    let kills = marks.kills_of(&amounts);
    let Amounts { container, resource, lowest, highest, .. } = amounts;
    let Amounts { lower, target, upper, uncapped, model, request, .. } = amounts;
    let fits = |request: &f64| *request <= axis.max;
    let request: Vec<Value> = request.iter().map(|(at, it)| (*at, it.filter(fits))).collect();
    let band = |lower, upper| Shape::Band { lower, upper };
    let bounds = band(Keep::Last.of(lower), Keep::Last.of(upper.clone()));
    let used = band(Keep::Least.of(lowest), Keep::Most.of(highest.clone()));
    let mut series =
        vec![Series { role: "band", shape: bounds }, Series { role: "used", shape: used }];
    series.push(Series { role: "mark", shape: Shape::Verticals(marks.changes.clone()) });
    if request.iter().any(|(_, it)| it.is_some()) {
        series.push(Series::line("lim", request));
    }
    series.push(Series::line("value", Keep::Most.of(highest)));
    if !uncapped.is_empty() {
        series.push(Series::line("uncapped", Keep::Last.of(uncapped)));
    }
    series.push(Series::line("target", Keep::Last.of(target)));
    if !model.is_empty() {
        // A dot at the last value: the model's runs end at the first difference.
        let end = model.iter().rev().find_map(|(at, value)| Some((*at, (*value)?)));
        series.push(Series::line("model", Keep::Last.of(model)));
        series.push(Series { role: "model", shape: Shape::Dots(end.into_iter().collect()) });
    }
    if !kills.is_empty() {
        series.push(Series { role: "bad", shape: Shape::Above(kills) });
    }
    // A bound that is cut is marked as a peak, without its value: the first ones mean nothing.
    series.push(Series { role: "band", shape: Shape::Peaks(upper) });
    Chart {
        title: format!("{container} {}", resource.name()),
        owner: String::new(),
        keys,
        about,
        unit,
        size: SIZE,
        axis,
        series,
        main: "target",
        line_title: format!("{} target of container {container}", resource.name()),
        flag,
    }
}

fn keys(amounts: &Amounts, unit: Unit, axis: &ValueAxis, marks: &Marks) -> Vec<Key> {
    let Amounts { lower, target, upper, uncapped, request, lowest, highest, .. } = amounts;
    let above = |value: f64| if value > axis.max { " (above the chart)" } else { "" };
    // The value at the end, with a note if it is above the chart.
    let end = |values: &[Value]| {
        last(values).map(|value| format!("{}{}", unit.text(value), above(value)))
    };
    let has_changed =
        [target, lower, upper, uncapped, request].into_iter().any(|values| has_several(values));
    let has_range = lowest != highest;
    let usage = if has_range { "highest usage of a pod" } else { "usage" };
    let requests = if request.len() > 1 { "request of new pods" } else { "request" };
    let is_used = highest.iter().any(|(_, value)| value.is_some());
    let bounds = last(lower).zip(end(upper));
    let is_cut = largest([upper]) > axis.max;
    let keys = [
        (amounts.resource == Resource::Cpu).then(|| Key::hint("in cores")),
        is_used.then(|| Key::new("k value", usage)),
        has_range.then(|| Key::new("k used", "down to the lowest")),
        has_changed.then(|| Key::hint("at the end:")),
        last(target).map(|it| Key::new("k target", format!("target {}", unit.text(it)))),
        bounds.map(|(lower, upper)| {
            Key::new("k band", format!("bounds {} to {upper}", unit.text(lower)))
        }),
        end(uncapped).map(|it| Key::new("k uncapped", format!("uncapped target {it}"))),
        end(request).map(|it| Key::new("k lim", format!("{requests} {it}"))),
        is_cut.then(|| Key::hint("▲ bound above the chart")),
        (!amounts.model.is_empty()).then(|| Key::new("k model", "target of the model")),
        (!marks.kills_of(amounts).is_empty()).then(|| Key::new("k bad", "OOM kill")),
        (!marks.changes.is_empty()).then(|| Key::new("k mark", "restart or edit")),
    ];
    keys.into_iter().flatten().collect()
}

/// Returns true if there are different values.
fn has_several(values: &[Value]) -> bool {
    let mut known = values.iter().filter_map(|(_, value)| *value);
    known.next().is_some_and(|first| known.any(|value| value != first))
}

/// The chart for screen readers: `app cpu: target 587m; usage from 100m to 300m`.
fn about(amounts: &Amounts, unit: Unit) -> String {
    let Amounts { container, resource, lowest, highest, target, .. } = amounts;
    let target = words::range(target.iter(), unit);
    let usage = words::range(lowest.iter().chain(highest), unit);
    format!("{container} {}: target {target}; usage {usage}", resource.name())
}

/// The largest value of a chart. The upper bound is far above all others at first: it must not
/// flatten them.
fn top(amounts: &Amounts) -> f64 {
    let Amounts { lower, target, upper, uncapped, model, request, highest, .. } = amounts;
    let near = largest([target, highest, lower, model]);
    let is_near = |value: &f64| *value <= near * 2.0;
    let more = [
        last(upper).filter(is_near),
        Some(largest([uncapped])).filter(is_near),
        Some(largest([request])).filter(is_near),
    ];
    let top = more.into_iter().flatten().fold(near, f64::max);
    let upper = largest([upper]);
    if upper > top * 1.2 { top * 1.2 } else { top.max(upper) }
}
