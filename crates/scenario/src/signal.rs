//! Signals: values of metrics over time, as scenarios describe them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::recorded::{DecimalMark, Recorded, RecordedSource};
use super::text::{
    Amount, AnyQuantity, As, Duration, Instant, PercentText, PositiveDuration, QuantityOrPercent,
    SignalText, SignedDuration, TextOrMap, UnitText,
};
use kube_autoscaler_models::is_default::is_default;
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::time::{Span, Time};

/// A value over time. Values are quantities; computed ones are rounded to a milli-unit (cpu, custom
/// and external metrics) or to a whole unit (memory). Computed usage is never negative; custom and
/// external metrics may be.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "TextOrMap<SignalText, SignalShape>")]
pub enum Signal {
    /// Steps: each value holds from its time on, and the first one also before it.
    Steps(Vec<Point>),
    /// Straight lines between points; constant before the first and after the last.
    Points(Vec<Point>),
    /// A wave.
    Sine(Sine),
    /// The sum of several signals. It has no sample where one of them has none.
    #[serde(rename = "add")]
    Sum(Vec<Signal>),
    /// Another signal with a modification.
    #[serde(untagged)]
    Modified(Modified),
    /// Work that is not done yet. Its value depends on the pods, so it is no part of other signals.
    #[serde(untagged)]
    Backlog(Backlog),
    /// A recorded series, which may have gaps.
    #[serde(untagged)]
    Recorded(Recorded),
    /// A constant value. The API returns the quantity as written.
    #[serde(untagged)]
    Constant(Quantity),
}

/// The number of items at or before a time. The items are sorted by time.
///
/// Most lists are evenly spaced, so the place is first guessed, which needs fewer reads of memory
/// than a binary search.
pub fn count_until<T>(items: &[T], at: Time, time: impl Fn(&T) -> Time) -> usize {
    let (Some(first), Some(last)) = (items.first().map(&time), items.last().map(&time)) else {
        return 0;
    };
    let is_after = |index: usize| items.get(index).is_none_or(|item| time(item) > at);
    if first < last {
        let part = (at.0 as f64 - first.0 as f64) / (last.0 as f64 - first.0 as f64);
        // Out of range, the conversion returns the nearest number.
        let guess = ((part * (items.len() - 1) as f64) as usize).min(items.len() - 1);
        for count in [guess + 1, guess, guess + 2] {
            if count <= items.len() && is_after(count) && (count == 0 || !is_after(count - 1)) {
                return count;
            }
        }
    }
    items.partition_point(|item| time(item) <= at)
}

impl Signal {
    /// A signal that is always zero.
    pub fn zero() -> Signal {
        Signal::Constant(Quantity::from_milli(0, Format::DecimalSI))
    }

    /// The recordings that the signal contains.
    pub fn recordings(&self) -> Vec<&Recorded> {
        match self {
            Signal::Recorded(recorded) => vec![recorded],
            signal => signal.parts().into_iter().flat_map(Signal::recordings).collect(),
        }
    }

    /// The recordings whose values are values of the signal or of a part of it: those that are not
    /// multiplied by a factor.
    pub fn unscaled_recordings(&self) -> Vec<&Recorded> {
        match self {
            Signal::Recorded(recorded) => vec![recorded],
            Signal::Modified(Modified { by: Modifier::Factor(_), .. }) => Vec::new(),
            signal => signal.parts().into_iter().flat_map(Signal::unscaled_recordings).collect(),
        }
    }

    /// The only recording whose values the signal has, possibly with noise or at other times.
    pub fn recorded(&self) -> Option<&Recorded> {
        match self {
            Signal::Sum(_) => None,
            signal => signal.unscaled_recordings().pop(),
        }
    }

    /// The recordings, mutable.
    pub fn recordings_mut(&mut self) -> Vec<&mut Recorded> {
        match self {
            Signal::Recorded(recorded) => vec![recorded],
            signal => signal.parts_mut().into_iter().flat_map(Signal::recordings_mut).collect(),
        }
    }

    /// The noise in the signal, mutable.
    pub(super) fn noise_mut(&mut self) -> Vec<&mut Noise> {
        match self {
            Signal::Modified(Modified { by: Modifier::Noise(noise), of }) => {
                let mut all = of.noise_mut();
                all.push(noise);
                all
            }
            signal => signal.parts_mut().into_iter().flat_map(Signal::noise_mut).collect(),
        }
    }

    /// The signals that this one is calculated from.
    pub fn parts(&self) -> Vec<&Signal> {
        match self {
            Signal::Sum(parts) => parts.iter().collect(),
            Signal::Modified(modified) => modified.parts(),
            Signal::Backlog(Backlog { arrivals, .. }) => vec![arrivals],
            _ => Vec::new(),
        }
    }

    /// The signals that this one is calculated from, mutable.
    pub(super) fn parts_mut(&mut self) -> Vec<&mut Signal> {
        match self {
            Signal::Sum(parts) => parts.iter_mut().collect(),
            Signal::Modified(modified) => modified.parts_mut(),
            Signal::Backlog(Backlog { arrivals, .. }) => vec![arrivals],
            _ => Vec::new(),
        }
    }
}

/// A modification of a signal. `S`: the type of the signals.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Modified<S = Signal> {
    /// The modification.
    #[serde(flatten)]
    pub by: Modifier<S>,
    /// The signal without it.
    pub of: Box<S>,
}

impl<S> Modified<S> {
    /// The signals that this one is calculated from.
    pub fn parts(&self) -> Vec<&S> {
        match &self.by {
            Modifier::Factor(factor) => vec![factor, &self.of],
            _ => vec![&self.of],
        }
    }

    /// The signals that this one is calculated from, mutable.
    pub fn parts_mut(&mut self) -> Vec<&mut S> {
        match &mut self.by {
            Modifier::Factor(factor) => vec![factor, &mut self.of],
            _ => vec![&mut self.of],
        }
    }
}

/// How a signal is modified.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Modifier<S = Signal> {
    /// Each value is multiplied by the value of another signal at that time.
    Factor(Box<S>),
    /// All values come later; earlier if the span is negative.
    Shift(#[serde(with = "As::<SignedDuration>")] Span),
    /// The first part of the signal, of this length, repeats.
    Repeat(#[serde(with = "As::<PositiveDuration>")] Span),
    /// Random differences.
    #[serde(untagged)]
    Noise(Noise),
}

/// Work that arrives and that the ready pods process. As a load: the pods process the part above
/// their limits later. As the value of a metric: the length of a queue.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Backlog {
    /// The load, or what arrives in the queue per second.
    #[serde(rename = "backlog")]
    pub arrivals: Box<Signal>,
    /// What each ready pod takes from the queue per second. None: the backlog is that of a load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_pod: Option<Quantity>,
    /// The work at the start. None: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<Quantity>,
}

/// Random noise on a signal, which is the same in every run with the same seed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Noise {
    /// The largest difference from the signal, in percent of its value.
    #[serde(rename = "noise")]
    pub percent: i32,
    /// How long a difference lasts.
    #[serde(with = "As::<PositiveDuration>", skip_serializing_if = "is_default_interval")]
    pub every: Span,
    /// The seed of the random numbers.
    #[serde(skip_serializing_if = "is_default")]
    pub seed: u32,
}

/// The default of `every`: the default sync period.
pub const NOISE_INTERVAL: Span = Span::from_secs(15);

fn is_default_interval(every: &Span) -> bool {
    *every == NOISE_INTERVAL
}

/// A value that changes: exactly one of steps, points, sine, add, backlog, noise, factor, shift,
/// repeat, csv, prometheus and openMetrics. The other fields belong to the last eight.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"required": ["steps"], "maxProperties": 1},
    {"required": ["points"], "maxProperties": 1},
    {"required": ["sine"], "maxProperties": 1},
    {"required": ["add"], "maxProperties": 1},
    {"required": ["backlog"], "propertyNames": {"enum": ["backlog", "perPod", "initial"]}},
    {"required": ["noise", "of"], "propertyNames": {"enum": ["noise", "every", "seed", "of"]}},
    {"required": ["factor", "of"], "maxProperties": 2},
    {"required": ["shift", "of"], "maxProperties": 2},
    {"required": ["repeat", "of"], "maxProperties": 2},
    {"required": ["csv"]},
    {"required": ["prometheus"], "not": {"anyOf": [
        {"required": ["time"]}, {"required": ["value"]}, {"required": ["decimal"]},
    ]}},
    {"required": ["openMetrics"], "not": {"anyOf": [
        {"required": ["time"]}, {"required": ["value"]}, {"required": ["decimal"]},
    ]}},
]))]
struct SignalShape {
    /// Steps: each value holds from its time on, and the first one also before it.
    #[serde(default)]
    #[schemars(length(min = 1))]
    steps: Vec<Point>,
    /// Straight lines from point to point; constant before the first and after the last.
    #[serde(default)]
    #[schemars(length(min = 1))]
    points: Vec<Point>,
    /// A wave.
    sine: Option<Sine>,
    /// Signals that are added up. Where one of them has no sample, the sum has none.
    #[schemars(length(min = 2))]
    add: Option<Vec<Signal>>,
    /// Work that waits for ready pods. In `load`: the load; the part above the `limit` of the ready
    /// pods is processed later. As the value of an object or external metric: the number of items
    /// that arrive in a queue per second; the value is the length of the queue.
    backlog: Option<Box<Signal>>,
    /// With `backlog` as a value: the number of items that each ready pod processes per second.
    #[serde(default, with = "As::<Option<Amount>>")]
    #[schemars(with = "Option<As<Amount>>")]
    per_pod: Option<Quantity>,
    /// With `backlog`: the work at the start. For a load of cpu, in core-seconds. Default 0.
    #[serde(default, with = "As::<Option<Amount>>")]
    #[schemars(with = "Option<As<Amount>>")]
    initial: Option<Quantity>,
    /// Multiplies the signal `of` by a number or by another signal. For example, {steps: …} that
    /// starts with 0 adds a load later, and {points: …} from 1 to 2 doubles it gradually.
    factor: Option<Box<Signal>>,
    /// Moves the signal `of` later by this duration, or earlier if it is negative.
    #[serde(default, with = "As::<Option<SignedDuration>>")]
    shift: Option<Span>,
    /// Repeats the first part of the signal `of`, with this length.
    #[serde(default, with = "As::<Option<PositiveDuration>>")]
    repeat: Option<Span>,
    /// Noise on the signal `of`: the largest difference, in percent of its value. All differences
    /// up to it are equally likely.
    #[serde(default, with = "As::<Option<PercentText>>")]
    #[schemars(with = "Option<As<PercentText>>")]
    noise: Option<i32>,
    /// With `noise`: how long a difference lasts. Default 15s.
    #[serde(default, with = "As::<Option<PositiveDuration>>")]
    every: Option<Span>,
    /// With `noise`: the seed of the random numbers. Signals with the same seed have the same
    /// differences. Default 0.
    seed: Option<u32>,
    /// With `noise`, `factor`, `shift` and `repeat`: the signal.
    of: Option<Box<Signal>>,
    /// A CSV file with a header, relative to the scenario.
    csv: Option<String>,
    /// A saved Prometheus response to a range query (`/api/v1/query_range`), relative to the
    /// scenario.
    prometheus: Option<String>,
    /// A file in OpenMetrics text format, with timestamps, relative to the scenario.
    open_metrics: Option<String>,
    /// With `csv`: the column of times. Default: the first column.
    time: Option<String>,
    /// With `csv`: the column of values. Default: the only other column. With `*` for any text,
    /// each column that matches is a series, whose labels are in its name: `{pod="web-0"}`.
    value: Option<String>,
    /// With `csv`: the decimal mark of the numbers. Default: the one that the numbers have.
    decimal: Option<DecimalMark>,
    /// With `perPod`, or for VPAs also with `containers`: the label or column that names the pods.
    /// Each pod has its own series.
    by: Option<String>,
    /// The labels of the series, or the values of other columns. Default: all.
    #[serde(default)]
    series: BTreeMap<String, String>,
    /// Add up the series. Default: there is only one.
    #[serde(default)]
    sum: bool,
    /// The unit of the values, for example 1m or 1Mi. Default 1. For usage of cpu and memory, also
    /// a percentage of the request: 1% for values from 0 to 100, 100% for values from 0 to 1.
    #[serde(default, with = "As::<Option<UnitText>>")]
    #[schemars(with = "Option<As<QuantityOrPercent>>")]
    unit: Option<(Quantity, Option<f64>)>,
    /// How long a value is valid if no other value follows. Default: one and a half times the
    /// median interval of its series.
    #[serde(default, with = "As::<Option<PositiveDuration>>")]
    hold: Option<Span>,
    /// The timestamp at t=0. Default: the first one of the file.
    #[schemars(extend("examples" = ["2025-05-06T09:00:00Z"]))]
    start: Option<String>,
}

impl SignalShape {
    /// The file of a recorded signal.
    fn source(&mut self) -> Option<RecordedSource> {
        let csv = self.csv.take().map(RecordedSource::Csv);
        let prometheus = self.prometheus.take().map(RecordedSource::Prometheus);
        csv.or(prometheus).or(self.open_metrics.take().map(RecordedSource::OpenMetrics))
    }

    /// The modification of another signal.
    fn modifier(&mut self) -> Option<Modifier> {
        if let Some(percent) = self.noise {
            let every = self.every.unwrap_or(NOISE_INTERVAL);
            let seed = self.seed.unwrap_or_default();
            return Some(Modifier::Noise(Noise { percent, every, seed }));
        }
        let factor = self.factor.take().map(Modifier::Factor);
        factor.or(self.shift.map(Modifier::Shift)).or(self.repeat.map(Modifier::Repeat))
    }
}

impl From<TextOrMap<SignalText, SignalShape>> for Signal {
    fn from(signal: TextOrMap<SignalText, SignalShape>) -> Signal {
        // The validation requires exactly one of the fields.
        let mut shape = match signal {
            TextOrMap::Text(quantity) => return Signal::Constant(quantity),
            TextOrMap::Map(shape) => shape,
        };
        if let Some(source) = shape.source() {
            let SignalShape { time, value, decimal, by, series, sum, unit, hold, start, .. } =
                shape;
            let empty = Recorded::new(source);
            let (unit, percent) = unit.map_or((None, None), |(unit, of)| (Some(unit), of));
            let columns = Recorded { time, value, decimal, percent, ..empty };
            return Signal::Recorded(Recorded { by, series, sum, unit, hold, start, ..columns });
        }
        if let Some(by) = shape.modifier() {
            let of = shape.of.unwrap_or_else(|| Box::new(Signal::zero()));
            return Signal::Modified(Modified { by, of });
        }
        match shape {
            SignalShape { sine: Some(sine), .. } => Signal::Sine(sine),
            SignalShape { add: Some(parts), .. } => Signal::Sum(parts),
            SignalShape { backlog: Some(arrivals), per_pod, initial, .. } => {
                Signal::Backlog(Backlog { arrivals, per_pod, initial })
            }
            SignalShape { steps, .. } if !steps.is_empty() => Signal::Steps(steps),
            SignalShape { points, .. } => Signal::Points(points),
        }
    }
}

impl JsonSchema for Signal {
    fn schema_name() -> Cow<'static, str> {
        "Signal".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let scalar = generator.subschema_for::<As<QuantityOrPercent>>();
        let map = generator.subschema_for::<SignalShape>();
        json_schema!({
            "description": "A value over time: a quantity that stays the same, or a map with \
                            exactly one of steps, points, sine, add, backlog, noise, \
                            factor, shift, repeat, csv, prometheus and openMetrics.",
            "anyOf": [scalar, map],
        })
    }
}

/// A value at a time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "{at: …, value: …}")]
pub struct Point {
    /// The time since the start.
    #[serde(with = "As::<Instant>")]
    pub at: Time,
    /// The value.
    #[serde(with = "As::<AnyQuantity>")]
    #[schemars(with = "As<QuantityOrPercent>")]
    pub value: Quantity,
}

/// `mean + amplitude * sin(2π (t - offset) / period)`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "{mean: …, amplitude: …, period: …}")]
pub struct Sine {
    /// The mean value.
    #[serde(with = "As::<AnyQuantity>")]
    #[schemars(with = "As<QuantityOrPercent>")]
    pub mean: Quantity,
    /// The largest difference from the mean.
    #[serde(with = "As::<AnyQuantity>")]
    #[schemars(with = "As<QuantityOrPercent>")]
    pub amplitude: Quantity,
    /// The duration of one wave.
    #[serde(with = "As::<PositiveDuration>")]
    pub period: Span,
    /// A time at which the value rises through the mean. Default 0s.
    #[serde(default, with = "As::<Duration>", skip_serializing_if = "is_default")]
    pub offset: Span,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn items_are_counted_as_by_a_binary_search(
            mut times in proptest::collection::vec(-20..200_i64, 0..12),
            is_even in any::<bool>(),
            never in any::<bool>(),
            at in prop_oneof![-30..210_i64, Just(i64::MIN), Just(i64::MAX)],
        ) {
            if is_even {
                times = (0..).map(|index| index * 15).take(times.len()).collect();
            }
            times.sort_unstable();
            times.extend(never.then_some(i64::MAX));
            let expected = times.partition_point(|time| *time <= at);
            prop_assert_eq!(count_until(&times, Time(at), |time| Time(*time)), expected);
        }
    }
}
