//! How a load changes, in the short form of a command line: `300m`, `steps(0s:2,5m:8)`,
//! `2 * csv(FILE) + 1`.

use std::collections::BTreeMap;

use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::diagnostic::Hint;
use kube_lockstep_scenario::error::nearest;
use kube_lockstep_scenario::recorded::{DecimalMark, Recorded, RecordedSource};
use kube_lockstep_scenario::signal::{
    Backlog, Modified, Modifier, NOISE_INTERVAL, Noise, Point, Signal, Sine,
};
use kube_lockstep_scenario::syntax::Syntax;
use kube_lockstep_scenario::text::{
    Amount, AnyQuantity, Duration, Form, PercentText, PositiveDuration, SignedDuration,
    UNIT_EXAMPLES,
};

/// The time that a prediction lasts after the last change of a load.
pub(super) const AFTER_THE_LAST_CHANGE: Span = Span::from_secs(600);

/// The forms of a value, for messages.
const FORMS: &str = "a quantity such as 300m, a percentage of the request such as 60%, \
                     steps(0s:2,5m:8), ramp(0s:2,10m:8), sine(mean=4,amplitude=2,period=10m), \
                     csv(FILE), prometheus(FILE), openMetrics(FILE), noise(10%,VALUE), \
                     shift(1h,VALUE), repeat(24h,VALUE), backlog(VALUE), or a sum or product of \
                     values";

/// How deep values can be nested.
const DEEPEST: usize = 16;
/// The largest number of factors of a product, each of which is a level of the scenario.
const MOST_FACTORS: usize = 8;

/// How a load changes: a signal whose amounts can be percentages of a request.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Shape {
    Constant(LoadAmount),
    Steps(Vec<LoadStep>),
    Ramp(Vec<LoadStep>),
    Sine {
        mean: LoadAmount,
        amplitude: LoadAmount,
        period: Span,
        offset: Span,
    },
    Recorded(Box<Recorded>),
    Sum(Vec<Shape>),
    Modified(Modified<Shape>),
    /// Never a part of another shape.
    Backlog {
        arrivals: Box<Shape>,
        per_pod: Option<Quantity>,
        initial: Option<Quantity>,
    },
}

/// A value from a time on.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct LoadStep {
    pub at: Time,
    pub amount: LoadAmount,
}

/// A quantity, or a percentage of the request of a pod.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum LoadAmount {
    Quantity(String),
    Percent(f64),
}

/// The end of a prediction that shows a load. None: the load has no such part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct End {
    /// Ten minutes after the last change of the computed parts, or after two waves.
    pub computed: Option<Span>,
    /// The last sample of a recording.
    pub recorded: Option<Span>,
}

impl End {
    /// The later of two ends.
    pub(super) fn max(self, other: End) -> End {
        let computed = self.computed.max(other.computed);
        End { computed, recorded: self.recorded.max(other.recorded) }
    }

    fn later(self, by: Span) -> End {
        let later = |end: Span| plus(end, by);
        End { computed: self.computed.map(later), recorded: self.recorded.map(later) }
    }
}

fn plus(span: Span, other: Span) -> Span {
    Span(span.0.saturating_add(other.0))
}

/// The product of two values in milli-units.
fn times(factor: i64, milli: i64) -> i64 {
    let product = i128::from(factor) * i128::from(milli) / 1000;
    i64::try_from(product).unwrap_or(if product < 0 { i64::MIN } else { i64::MAX })
}

/// The least and the largest value of a load, in milli-units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueRange {
    pub least: i64,
    pub most: i64,
}

impl ValueRange {
    fn of(values: impl IntoIterator<Item = i64>) -> Option<ValueRange> {
        let range = |range: ValueRange, other: ValueRange| ValueRange {
            least: range.least.min(other.least),
            most: range.most.max(other.most),
        };
        values.into_iter().map(|value| ValueRange { least: value, most: value }).reduce(range)
    }

    /// The only value.
    pub(super) fn only(self) -> Option<i64> {
        (self.least == self.most).then_some(self.least)
    }

    fn plus(self, other: ValueRange) -> ValueRange {
        ValueRange {
            least: self.least.saturating_add(other.least),
            most: self.most.saturating_add(other.most),
        }
    }

    /// The range of the products of values of two ranges.
    fn times(self, factor: ValueRange) -> Option<ValueRange> {
        let products = |factor| [times(factor, self.least), times(factor, self.most)];
        ValueRange::of([products(factor.least), products(factor.most)].concat())
    }
}

impl Shape {
    /// The end of a prediction that shows the load. `length` is that of a recording.
    pub(super) fn end(&self, length: &dyn Fn(&Recorded) -> Span) -> End {
        let after =
            |span: Span| End { computed: Some(plus(span, AFTER_THE_LAST_CHANGE)), recorded: None };
        match self {
            Shape::Constant(_) => after(Span::ZERO),
            Shape::Steps(changes) | Shape::Ramp(changes) => {
                after(changes.last().map_or(Span::ZERO, |change| change.at.since_start()))
            }
            Shape::Sine { period, .. } => after(Span(period.0.saturating_mul(2))),
            Shape::Recorded(recorded) => End { computed: None, recorded: Some(length(recorded)) },
            Shape::Sum(_) | Shape::Modified(Modified { by: Modifier::Factor(_), .. }) => {
                // A constant part does not change, so it needs no time of its own.
                let is_constant = |part: &&Shape| matches!(part, Shape::Constant(_));
                let parts = self.parts().into_iter().filter(|part| !is_constant(part));
                parts.map(|part| part.end(length)).fold(End::default(), End::max)
            }
            Shape::Backlog { arrivals, .. } => arrivals.end(length),
            Shape::Modified(Modified { by, of }) => match by {
                Modifier::Shift(span) => of.end(length).later(*span),
                Modifier::Repeat(span) => after(Span(span.0.saturating_mul(2))),
                Modifier::Noise(_) | Modifier::Factor(_) => of.end(length),
            },
        }
    }

    /// The values that this one is calculated from.
    fn parts(&self) -> Vec<&Shape> {
        match self {
            Shape::Sum(parts) => parts.iter().collect(),
            Shape::Modified(modified) => modified.parts(),
            Shape::Backlog { arrivals, .. } => vec![arrivals],
            _ => Vec::new(),
        }
    }

    fn parts_mut(&mut self) -> Vec<&mut Shape> {
        match self {
            Shape::Sum(parts) => parts.iter_mut().collect(),
            Shape::Modified(modified) => modified.parts_mut(),
            Shape::Backlog { arrivals, .. } => vec![arrivals],
            _ => Vec::new(),
        }
    }

    /// The recordings that the load is calculated from.
    pub(super) fn recordings(&self) -> Vec<&Recorded> {
        match self {
            Shape::Recorded(recorded) => vec![recorded],
            shape => shape.parts().into_iter().flat_map(Shape::recordings).collect(),
        }
    }

    /// The recordings, mutable.
    pub(super) fn recordings_mut(&mut self) -> Vec<&mut Recorded> {
        match self {
            Shape::Recorded(recorded) => vec![recorded],
            shape => shape.parts_mut().into_iter().flat_map(Shape::recordings_mut).collect(),
        }
    }

    /// The period of a load that repeats. None: the load has another form.
    pub(super) fn period(&self) -> Option<Span> {
        match self {
            Shape::Sine { period, .. } => Some(*period),
            Shape::Modified(Modified { by: Modifier::Repeat(span), .. }) => Some(*span),
            shape => shape.changing_part()?.period(),
        }
    }

    /// The only part that changes over time, apart from noise.
    fn changing_part(&self) -> Option<&Shape> {
        let mut parts = self.parts().into_iter().filter(|part| part.constant().is_none());
        let only = parts.next().filter(|_| parts.next().is_none())?;
        (!matches!(self, Shape::Backlog { .. })).then_some(only)
    }

    /// The value in milli-units, if it never changes and is no percentage.
    fn constant(&self) -> Option<i64> {
        self.range(None)?.only()
    }

    /// The least and the largest value. None: they are not known. `request` is the request of a pod
    /// in milli-units.
    pub(super) fn range(&self, request: Option<i64>) -> Option<ValueRange> {
        let milli = |amount: &LoadAmount| match amount {
            LoadAmount::Percent(percent) => Some((request? as f64 * percent / 100.0) as i64),
            LoadAmount::Quantity(_) => amount.milli(),
        };
        match self {
            Shape::Constant(amount) => ValueRange::of(milli(amount)),
            Shape::Steps(changes) | Shape::Ramp(changes) => {
                let values: Option<Vec<i64>> = changes.iter().map(|it| milli(&it.amount)).collect();
                ValueRange::of(values?)
            }
            Shape::Sine { mean, amplitude, .. } => {
                let (mean, amplitude) = (milli(mean)?, milli(amplitude)?);
                let ends = [mean.saturating_sub(amplitude), mean.saturating_add(amplitude)];
                ValueRange::of(ends)
            }
            Shape::Sum(parts) => {
                let ranges = parts.iter().map(|part| part.range(request));
                ranges.reduce(|sum, range| Some(sum?.plus(range?)))?
            }
            Shape::Modified(Modified { by, of }) => {
                let range = of.range(request)?;
                match by {
                    Modifier::Shift(_) | Modifier::Repeat(_) => Some(range),
                    Modifier::Factor(factor) => range.times(factor.range(None)?),
                    Modifier::Noise(noise) => {
                        let percent = i64::from(noise.percent);
                        range.times(ValueRange {
                            least: (100 - percent) * 10,
                            most: (100 + percent) * 10,
                        })
                    }
                }
            }
            Shape::Recorded(_) | Shape::Backlog { .. } => None,
        }
    }

    /// The values in milli-units between which the load changes abruptly, in order. Empty: the load
    /// has another form.
    pub(super) fn step_values(&self) -> Vec<i64> {
        let constants = || self.parts().into_iter().filter_map(Shape::constant);
        match self {
            Shape::Steps(steps) => steps.iter().filter_map(|step| step.amount.milli()).collect(),
            shape => {
                let mut values = shape.changing_part().map(Shape::step_values).unwrap_or_default();
                match shape {
                    Shape::Sum(_) => {
                        let sum = constants().fold(0, i64::saturating_add);
                        values.iter_mut().for_each(|value| *value = value.saturating_add(sum));
                    }
                    Shape::Modified(Modified { by: Modifier::Factor(_), .. }) => {
                        let Some(factor) = constants().next() else { return Vec::new() };
                        values.iter_mut().for_each(|value| *value = times(factor, *value));
                    }
                    Shape::Modified(Modified { by: Modifier::Repeat(_), .. }) => {
                        values.extend(values.first().copied());
                    }
                    Shape::Modified(Modified { by: Modifier::Noise(_), .. }) => values.clear(),
                    _ => {}
                }
                values
            }
        }
    }

    /// The largest constant value in milli-units. None: the load is recorded or in percent, or one
    /// of its factors is.
    pub(super) fn peak(&self) -> Option<i64> {
        match self {
            Shape::Sum(parts) => parts.iter().filter_map(Shape::peak).reduce(i64::saturating_add),
            Shape::Modified(Modified { by: Modifier::Factor(factor), of }) => {
                Some(times(factor.peak()?, of.peak()?))
            }
            Shape::Modified(Modified { of, .. }) | Shape::Backlog { arrivals: of, .. } => of.peak(),
            shape => shape.amounts().into_iter().filter_map(LoadAmount::milli).max(),
        }
    }

    /// The amounts that the load is calculated from, apart from factors.
    pub(super) fn amounts(&self) -> Vec<&LoadAmount> {
        match self {
            Shape::Constant(amount) => vec![amount],
            Shape::Steps(changes) | Shape::Ramp(changes) => {
                changes.iter().map(|change| &change.amount).collect()
            }
            Shape::Sine { mean, amplitude, .. } => vec![mean, amplitude],
            Shape::Recorded(_) => Vec::new(),
            Shape::Sum(parts) => parts.iter().flat_map(Shape::amounts).collect(),
            Shape::Modified(modified) => modified.of.amounts(),
            Shape::Backlog { arrivals, .. } => arrivals.amounts(),
        }
    }

    /// Returns true for a wave that goes below zero. If only one of its amounts is a percentage,
    /// the request decides, which is not known here.
    pub(super) fn goes_below_zero(&self) -> bool {
        match self {
            Shape::Sine { mean, amplitude, .. } => match (mean, amplitude) {
                (LoadAmount::Percent(mean), LoadAmount::Percent(amplitude)) => mean < amplitude,
                _ => mean.milli() < amplitude.milli() && mean.milli().is_some(),
            },
            // The sum of a wave and another load can be positive.
            Shape::Modified(Modified { by: Modifier::Factor(_), .. }) => false,
            Shape::Modified(modified) => modified.of.goes_below_zero(),
            Shape::Backlog { arrivals, .. } => arrivals.goes_below_zero(),
            _ => false,
        }
    }

    /// Returns true if the load depends on the request of the pods.
    pub(super) fn is_relative(&self) -> bool {
        let is_percent = |amount: &&LoadAmount| matches!(amount, LoadAmount::Percent(_));
        self.recordings().iter().any(|recorded| recorded.percent.is_some())
            || self.amounts().iter().any(is_percent)
    }

    /// The signal. `keeps_percent`: a unit in percent of the request remains one.
    pub(super) fn signal(&self, resource: &str, request: i64, keeps_percent: bool) -> Signal {
        let value = |amount: &LoadAmount| amount.value(resource, request);
        let points = |changes: &[LoadStep]| -> Vec<Point> {
            let point = |change: &LoadStep| Point { at: change.at, value: value(&change.amount) };
            changes.iter().map(point).collect()
        };
        match self {
            Shape::Constant(amount) => Signal::Constant(value(amount)),
            Shape::Steps(changes) => Signal::Steps(points(changes)),
            Shape::Ramp(changes) => Signal::Points(points(changes)),
            Shape::Sine { mean, amplitude, period, offset } => {
                let (mean, amplitude) = (value(mean), value(amplitude));
                Signal::Sine(Sine { mean, amplitude, period: *period, offset: *offset })
            }
            Shape::Recorded(recorded) => {
                let unit = match recorded.percent {
                    None => recorded.unit.clone(),
                    // One percent is the unit of values with and without percent signs.
                    Some(percent) if keeps_percent && percent != 1.0 => {
                        Some(Quantity::as_written(&format!("{percent}%")))
                    }
                    Some(percent) => {
                        // Without a request, which is then missing, any unit is an example.
                        let request = if request > 0 { request } else { 1000 };
                        // A unit has all digits of a quantity.
                        let unit = request as f64 * percent / 100.0 / 1000.0;
                        Quantity::parse(&format!("{unit:.9}")).ok()
                    }
                };
                Signal::Recorded(Recorded { unit, ..(**recorded).clone() })
            }
            Shape::Sum(parts) => {
                let part = |part: &Shape| part.signal(resource, request, keeps_percent);
                Signal::Sum(parts.iter().map(part).collect())
            }
            Shape::Backlog { arrivals, per_pod, initial } => Signal::Backlog(Backlog {
                arrivals: Box::new(arrivals.signal(resource, request, keeps_percent)),
                per_pod: per_pod.clone(),
                initial: initial.clone(),
            }),
            Shape::Modified(Modified { by, of }) => {
                let signal =
                    |shape: &Shape| Box::new(shape.signal(resource, request, keeps_percent));
                let by = match by {
                    Modifier::Factor(factor) => Modifier::Factor(signal(factor)),
                    Modifier::Shift(span) => Modifier::Shift(*span),
                    Modifier::Repeat(span) => Modifier::Repeat(*span),
                    Modifier::Noise(noise) => Modifier::Noise(noise.clone()),
                };
                Signal::Modified(Modified { by, of: signal(of) })
            }
        }
    }
}

impl LoadAmount {
    /// The quantity in milli-units. None: it is a percentage.
    pub(super) fn milli(&self) -> Option<i64> {
        match self {
            LoadAmount::Quantity(text) => Some(Quantity::parse(text).ok()?.milli()),
            LoadAmount::Percent(_) => None,
        }
    }

    fn value(&self, resource: &str, request: i64) -> Quantity {
        match self {
            LoadAmount::Quantity(text) => Quantity::as_written(text),
            LoadAmount::Percent(percent) => {
                let milli = (request as f64 * percent / 100.0).round() as i64;
                match resource {
                    "memory" => whole_bytes(milli),
                    _ => Quantity::as_written(&format!("{milli}m")),
                }
            }
        }
    }
}

/// An amount of memory in whole bytes, from milli-units: readable, and as exact as usage is.
pub(super) fn whole_bytes(milli: i64) -> Quantity {
    Quantity::from_units(milli.saturating_add(500).div_euclid(1000), Format::BinarySI)
}

/// Reads a value.
pub(super) fn read_shape(text: &str) -> Result<Shape, String> {
    match text.strip_prefix("backlog(").and_then(|it| it.strip_suffix(')')) {
        Some(arguments) => backlog(arguments),
        None => sum(text, DEEPEST),
    }
}

/// Reads `perPod=5,initial=100,VALUE`.
fn backlog(text: &str) -> Result<Shape, String> {
    const EXAMPLE: &str = "for example backlog(csv(FILE)) for a load of cpu, or \
                           backlog(perPod=5,csv(FILE)) for a queue";
    let (mut per_pod, mut initial, mut rest) = (None, None, text.trim_start());
    while let Some((option, value)) = rest.split_once(',') {
        if let Some(text) = option.trim().strip_prefix("perPod=") {
            per_pod = Some(read_form::<Amount>(text)?).filter(|it| it.sign() > 0);
            per_pod.as_ref().ok_or("perPod=0: expected an amount per second greater than 0")?;
        } else if let Some(text) = option.trim().strip_prefix("initial=") {
            initial = Some(read_form::<Amount>(text)?);
        } else {
            break;
        }
        rest = value;
    }
    if rest.trim().is_empty() || rest.starts_with("perPod=") || rest.starts_with("initial=") {
        return Err(format!("the value of the backlog is missing, {EXAMPLE}"));
    }
    let arrivals = Box::new(sum(rest.trim(), DEEPEST)?);
    Ok(Shape::Backlog { arrivals, per_pod, initial })
}

/// Reads `VALUE + VALUE - VALUE`. `depth`: how deep further values can be nested.
fn sum(text: &str, depth: usize) -> Result<Shape, String> {
    let depth = depth.checked_sub(1).ok_or("parentheses are nested too deeply")?;
    let mut parts = Vec::new();
    for (operator, term) in terms(text, &['+', '-']) {
        let value = factors(term, depth)?;
        parts.push(match operator {
            Some('-') => multiplied(Shape::Constant(LoadAmount::Quantity("-1".to_owned())), value),
            _ => value,
        });
    }
    Ok(match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => Shape::Sum(parts.into_iter().chain(last).collect()),
    })
}

/// Reads `VALUE * VALUE`.
fn factors(text: &str, depth: usize) -> Result<Shape, String> {
    let factors = terms(text, &['*']);
    if factors.len() > MOST_FACTORS {
        return Err(format!(
            "a product has at most {MOST_FACTORS} factors, found {}",
            factors.len()
        ));
    }
    let mut factors: Vec<Shape> =
        factors.into_iter().map(|(_, factor)| single(factor, depth)).collect::<Result<_, _>>()?;
    // The load is the factor that changes most, or the last one of several.
    let rank = |index: &usize| match &factors[*index] {
        shape if shape.is_relative() => 3,
        shape if !shape.recordings().is_empty() => 2,
        Shape::Constant(_) => 0,
        _ => 1,
    };
    let load = (0..factors.len()).max_by_key(rank).unwrap_or(0);
    let load = factors.remove(load);
    if factors.iter().any(Shape::is_relative) {
        return Err(format!("{text}: only one factor can be a percentage of the request"));
    }
    Ok(factors.into_iter().rev().fold(load, |load, factor| multiplied(factor, load)))
}

fn multiplied(factor: Shape, load: Shape) -> Shape {
    Shape::Modified(Modified { by: Modifier::Factor(Box::new(factor)), of: Box::new(load) })
}

/// Splits a text at operators outside of parentheses and quotes. Each part has the operator before
/// it.
fn terms<'t>(text: &'t str, operators: &[char]) -> Vec<(Option<char>, &'t str)> {
    let (mut parts, mut start, mut operator) = (Vec::new(), 0, None);
    let (mut depth, mut quote, mut last) = (0, None, ' ');
    for (at, c) in text.char_indices() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) if matches!(last, ',' | '=' | '(') => quote = Some(c),
            ('(', None) => depth += 1,
            (')', None) => depth -= 1,
            _ if depth == 0 && operators.contains(&c) && is_operator(text, at) => {
                parts.push((operator, text[start..at].trim()));
                (start, operator) = (at + 1, Some(c));
            }
            _ => {}
        }
        last = if c.is_whitespace() { last } else { c };
    }
    parts.push((operator, text[start..].trim()));
    parts
}

/// Returns true if the character is an operator, not a part of a number such as `1e-3` or of a
/// file's name: an operator has spaces on both sides, or follows a parenthesis or a star.
fn is_operator(text: &str, at: usize) -> bool {
    let (before, after) = (&text[..at], &text[at + 1..]);
    let has_spaces =
        before.ends_with(char::is_whitespace) && after.starts_with(char::is_whitespace);
    has_spaces || before.trim_end().ends_with(')') || text[at..].starts_with('*')
}

/// Reads a value without operators outside of parentheses.
fn single(text: &str, depth: usize) -> Result<Shape, String> {
    if text.is_empty() {
        return Err("a value is missing, before or after an operator or in parentheses".to_owned());
    }
    if let Some((value, number)) = division(text) {
        return Err(format!(
            "{value}/{number}: `/` is not supported; multiply instead, for example 0.5 * VALUE"
        ));
    }
    let Some((name, arguments)) = text.split_once('(') else {
        return amount(text).map(Shape::Constant).map_err(|why| {
            match is_sum_without_spaces(text) {
                true => format!("{text}: put spaces around + and -"),
                false => why,
            }
        });
    };
    let Some(arguments) = arguments.strip_suffix(')') else {
        return Err(format!("{text}: a `)` is missing at the end"));
    };
    if let Some((factor, form)) = factor_before(name) {
        if factor.len() > 1 && factor.ends_with(['+', '-']) {
            return Err(format!("{text}: put spaces around + and -"));
        }
        let factor = if factor == "-" { "-1" } else { factor };
        return Err(format!("{text}: an operator is missing: {factor} * {form}(…)"));
    }
    match name {
        "" => sum(arguments, depth),
        "steps" => steps(arguments).map(Shape::Steps),
        "ramp" => changes(arguments).map(Shape::Ramp),
        "sine" => sine(arguments),
        "csv" => recorded(RecordedSource::Csv, arguments),
        "prometheus" => recorded(RecordedSource::Prometheus, arguments),
        "openMetrics" => recorded(RecordedSource::OpenMetrics, arguments),
        "noise" => noise(arguments, depth),
        "shift" => {
            let (by, of) = duration_and_value(arguments, "shift(1h,csv(FILE))", depth)?;
            Ok(Shape::Modified(Modified {
                by: Modifier::Shift(read_form::<SignedDuration>(by)?),
                of,
            }))
        }
        "repeat" => {
            let (by, of) = duration_and_value(arguments, "repeat(24h,csv(FILE))", depth)?;
            let by = Modifier::Repeat(read_form::<PositiveDuration>(by)?);
            Ok(Shape::Modified(Modified { by, of }))
        }
        "backlog" => {
            let what =
                "a backlog can't be part of another value: put the whole value in backlog(…)";
            Err(format!("{text}: {what}"))
        }
        _ => Err(match similar_form(name) {
            Some(form) if name.contains(char::is_whitespace) => {
                format!("{name}(…): an operator is missing, for example 2 * {form}(…)")
            }
            Some(form) => format!("{name}(…) is unknown: did you mean {form}(…)?"),
            None => format!("{name}(…) is unknown: expected {FORMS}"),
        }),
    }
}

/// The two parts of a quotient, which is not supported. A file's name can contain a slash.
fn division(text: &str) -> Option<(&str, &str)> {
    let (value, number) = text.rsplit_once('/')?;
    let is_value = value.trim_end().ends_with(')') || AnyQuantity::read(value.trim()).is_ok();
    (is_value && AnyQuantity::read(number.trim()).is_ok()).then_some((value, number))
}

/// Returns true for `2+3` and `2 -3`.
fn is_sum_without_spaces(text: &str) -> bool {
    text.match_indices(['+', '-']).any(|(at, _)| {
        let parts = [&text[..at], &text[at + 1..]];
        parts.iter().all(|part| AnyQuantity::read(part.trim()).is_ok())
    })
}

/// The sign or the number before the name of a form: `-csv`, `0.5csv`.
fn factor_before(name: &str) -> Option<(&str, &str)> {
    let end = name.find(|c: char| c.is_alphabetic())?;
    let (factor, form) = name.split_at(end);
    (!factor.trim().is_empty() && similar_form(form) == Some(form)).then(|| (factor.trim(), form))
}

/// Reads `1h,VALUE`.
fn duration_and_value<'t>(
    text: &'t str,
    example: &str,
    depth: usize,
) -> Result<(&'t str, Box<Shape>), String> {
    let (duration, value) = text
        .split_once(',')
        .ok_or_else(|| format!("{text}: expected a duration and a value, for example {example}"))?;
    Ok((duration.trim(), Box::new(sum(value.trim(), depth)?)))
}

/// The form that a user probably means.
fn similar_form(name: &str) -> Option<&'static str> {
    const NAMES: [&str; 10] = [
        "steps",
        "ramp",
        "sine",
        "csv",
        "prometheus",
        "openMetrics",
        "noise",
        "shift",
        "repeat",
        "backlog",
    ];
    let same = NAMES.into_iter().find(|known| known.eq_ignore_ascii_case(name));
    same.or_else(|| nearest(name, &NAMES))
}

/// Reads `0s:2,5m:8`, which begins at 0s.
fn steps(text: &str) -> Result<Vec<LoadStep>, String> {
    let steps = changes(text)?;
    match steps.first().filter(|first| first.at != Time::ZERO) {
        None => Ok(steps),
        Some(first) => Err(format!(
            "the first step is at {}: add the value before it, for example steps(0s:0,{text})",
            first.at
        )),
    }
}

/// Reads `0s:2,5m:8`.
fn changes(text: &str) -> Result<Vec<LoadStep>, String> {
    let change = |part: &str| {
        let (at, value) = part
            .split_once(':')
            .ok_or_else(|| format!("{part}: expected TIME:VALUE, for example 5m:8"))?;
        let at = Time::ZERO + span(at.trim())?;
        Ok(LoadStep { at, amount: amount(value.trim())? })
    };
    let changes: Vec<LoadStep> = text.split(',').map(change).collect::<Result<_, String>>()?;
    match changes.windows(2).find(|pair| pair[1].at <= pair[0].at) {
        Some(pair) => {
            let (last, time) = (pair[0].at, pair[1].at);
            Err(format!("{time} is not after {last}, the previous time"))
        }
        None => Ok(changes),
    }
}

fn sine(text: &str) -> Result<Shape, String> {
    const EXAMPLE: &str = "for example sine(mean=4,amplitude=2,period=10m)";
    let mut fields: BTreeMap<&str, &str> = BTreeMap::new();
    for part in text.split(',') {
        let (name, value) = part
            .split_once('=')
            .ok_or_else(|| format!("{part}: expected NAME=VALUE, {EXAMPLE}"))?;
        let name = name.trim();
        if !matches!(name, "mean" | "amplitude" | "period" | "offset") {
            return Err(format!(
                "{name} is unknown: a sine has mean, amplitude, period and offset"
            ));
        }
        fields.insert(name, value.trim());
    }
    let field = |name: &str| {
        let given = fields.get(name).copied();
        given.ok_or_else(|| format!("the {name} of the sine is missing, {EXAMPLE}"))
    };
    let period = field("period")?;
    Ok(Shape::Sine {
        mean: amount(field("mean")?)?,
        amplitude: amount(field("amplitude")?)?,
        period: read_form::<PositiveDuration>(period)?,
        offset: fields.get("offset").map_or(Ok(Span::ZERO), |offset| span(offset))?,
    })
}

/// Reads `10%,seed=7,every=15s,VALUE`.
fn noise(text: &str, depth: usize) -> Result<Shape, String> {
    const EXAMPLE: &str = "for example noise(10%,seed=7,steps(0s:2,5m:8))";
    let (percent, mut rest) = text
        .split_once(',')
        .ok_or_else(|| format!("the value of the noise is missing, {EXAMPLE}"))?;
    let percent = read_form::<PercentText>(percent.trim())?;
    let (mut seed, mut every) = (0, NOISE_INTERVAL);
    while let Some((option, value)) = rest.split_once(',') {
        if let Some(text) = option.trim().strip_prefix("seed=") {
            seed = text.parse().map_err(|_| format!("seed={text}: expected a number"))?;
        } else if let Some(text) = option.trim().strip_prefix("every=") {
            every = read_form::<PositiveDuration>(text)?;
        } else {
            break;
        }
        rest = value;
    }
    let of = Box::new(sum(rest.trim(), depth)?);
    if matches!(&*of, Shape::Modified(Modified { by: Modifier::Noise(_), .. })) {
        return Err("a load with noise can't have further noise".to_owned());
    }
    let by = Modifier::Noise(Noise { percent, every, seed });
    Ok(Shape::Modified(Modified { by, of }))
}

/// Reads `FILE,time=COLUMN,value=COLUMN,unit=1m,…`. Other names are labels of the series. Files and
/// values with a comma are in quotes.
fn recorded(source: fn(String) -> RecordedSource, text: &str) -> Result<Shape, String> {
    let mut parts = split(text).into_iter().map(str::trim);
    let file = parts.next().map(unquoted).filter(|file| !file.is_empty());
    let file = file.ok_or("the file is missing")?;
    let mut recorded = Recorded::new(source(file.to_owned()));
    recorded.syntax = Syntax::Flags;
    for part in parts {
        if part == "sum" {
            recorded.sum = true;
            continue;
        }
        let (name, value) = part.split_once('=').ok_or_else(|| {
            format!(
                "{part}: expected NAME=VALUE, for example value=cores; put a file or a value \
                     with a comma in quotes"
            )
        })?;
        let (name, value) = (name.trim(), unquoted(value.trim()));
        let text = || Some(value.to_owned());
        match name {
            "time" => recorded.time = text(),
            "value" => recorded.value = text(),
            "by" => recorded.by = text(),
            "start" => recorded.start = text(),
            "decimal" => recorded.decimal = Some(decimal_mark(value)?),
            "unit" => set_unit(&mut recorded, value)?,
            "hold" => recorded.hold = Some(read_form::<PositiveDuration>(value)?),
            label => drop(recorded.series.insert(label.to_owned(), value.to_owned())),
        }
    }
    Ok(Shape::Recorded(Box::new(recorded)))
}

/// Sets the unit of a recorded load, which can be a percentage of the request.
fn set_unit(recorded: &mut Recorded, text: &str) -> Result<(), String> {
    let (unit, percent) = match amount(text)? {
        LoadAmount::Quantity(unit) => (read_form::<AnyQuantity>(&unit)?, None),
        // The quantity depends on the request, which is not known here.
        LoadAmount::Percent(percent) => {
            (Quantity::from_milli(1000, Format::DecimalSI), Some(percent))
        }
    };
    if unit.sign() <= 0 || percent.is_some_and(|percent| percent <= 0.0) {
        return Err(format!("unit={text}: expected a unit greater than 0, {UNIT_EXAMPLES}"));
    }
    (recorded.unit, recorded.percent) = (Some(unit), percent);
    Ok(())
}

fn decimal_mark(text: &str) -> Result<DecimalMark, String> {
    match text {
        "comma" => Ok(DecimalMark::Comma),
        "point" => Ok(DecimalMark::Point),
        _ => Err(format!("decimal={text}: expected comma or point")),
    }
}

pub(super) fn read_form<F: Form>(text: &str) -> Result<F::Value, String> {
    F::read(text).map_err(|malformed| malformed.in_one_line(": "))
}

fn amount(text: &str) -> Result<LoadAmount, String> {
    if let Some(percent) = text.strip_suffix('%') {
        let percent = percent.parse().ok().filter(|it: &f64| it.is_finite() && *it >= 0.0);
        return percent.map(LoadAmount::Percent).ok_or_else(|| format!("{text}: expected {FORMS}"));
    }
    if let Some(instead) = instead_of_amount(text) {
        return Err(format!("{text}: did you mean {instead}?"));
    }
    match AnyQuantity::read(text) {
        Ok(_) => Ok(LoadAmount::Quantity(text.to_owned())),
        Err(malformed) => Err(match malformed.hint {
            Some(hint @ Hint::Meant(_)) => format!("{text}: {hint}"),
            _ => format!("{text}: expected {FORMS}"),
        }),
    }
}

/// A hint for text that is not an amount, or that is 0 as a quantity because its number is missing.
fn instead_of_amount(text: &str) -> Option<String> {
    let forms = [(".csv", "csv"), (".json", "prometheus"), (".txt", "openMetrics")];
    if let Some((_, form)) = forms.iter().find(|(end, _)| text.ends_with(end)) {
        // The name of the form may be there already: `csv load.csv`, `csv:load.csv`.
        let file =
            text.split_once([' ', ':', '=']).filter(|(name, _)| similar_form(name).is_some());
        let (form, file) = match file {
            Some((name, file)) => (similar_form(name).unwrap_or(form), file.trim()),
            None => (*form, text),
        };
        return Some(format!("{form}({file})"));
    }
    let is_quantity = |text: &str| AnyQuantity::read(text).is_ok();
    if !text.contains(|c: char| c.is_ascii_digit()) {
        return is_quantity(text).then(|| format!("1{text}"));
    }
    let without_spaces: String = text.split_whitespace().collect();
    (without_spaces != text && is_quantity(&without_spaces)).then_some(without_spaces)
}

fn span(text: &str) -> Result<Span, String> {
    read_form::<Duration>(text)
}

/// Splits at commas outside of quotes, which can be around a part or around a value after `=`.
pub(super) fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut quote, mut last) = (Vec::new(), 0, None, ',');
    for (at, c) in text.char_indices() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) if matches!(last, ',' | '=') => quote = Some(c),
            (',', None) => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        last = if c.is_whitespace() { last } else { c };
    }
    parts.push(&text[start..]);
    parts
}

/// A text without the quotes around it.
pub(super) fn unquoted(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}
