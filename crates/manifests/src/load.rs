//! Loads in the short form of a command line: `cpu=300m`, `cpu=total:steps(0s:2,5m:8)`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::diagnostic::Hint;
use kube_lockstep_scenario::error::nearest;
use kube_lockstep_scenario::metrics::{NOISE_INTERVAL, Noise, Point, Signal, Sine};
use kube_lockstep_scenario::recorded::{DecimalMark, Recorded, RecordedSource};
use kube_lockstep_scenario::syntax::Syntax;
use kube_lockstep_scenario::text::{
    Amount as PositiveQuantity, AnyQuantity, Duration, Form, PercentText, PositiveDuration,
    UNIT_EXAMPLES,
};

/// The time that a prediction lasts after the last change of a load.
pub(super) const AFTER_THE_LAST_CHANGE: Span = Span::from_secs(600);

/// The forms of a value, for messages.
const FORMS: &str = "a quantity such as 300m, a percentage of the request such as 60%, \
                     steps(0s:2,5m:8), ramp(0s:2,10m:8), sine(mean=4,amplitude=2,period=10m), \
                     csv(FILE), prometheus(FILE), openMetrics(FILE) or noise(10%,VALUE)";

/// The name of a metric, and the part of it that a load or a request is for:
/// `cpu`, `cpu/CONTAINER`, `queue{queue=orders}`, each possibly of one HPA: `web:cpu`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Subject {
    /// The HPA: `NAME` or `NAMESPACE/NAME`. None: all HPAs.
    pub hpa: Option<String>,
    pub name: String,
    /// The container, for cpu and memory.
    pub container: Option<String>,
    /// The labels of the series. Empty: all series of the metric.
    pub labels: BTreeMap<String, String>,
}

/// The values of a metric over time, for all HPAs that scale on it.
#[derive(Clone, PartialEq, Debug)]
pub struct Load {
    pub(crate) subject: Subject,
    /// The pods share the value; otherwise each pod has it.
    pub total: bool,
    pub(crate) shape: Shape,
}

/// How a load changes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Shape {
    Constant(LoadAmount),
    Steps(Vec<LoadStep>),
    Ramp(Vec<LoadStep>),
    Sine { mean: LoadAmount, amplitude: LoadAmount, period: Span, offset: Span },
    Recorded(Box<Recorded>),
    Noisy { percent: i32, every: Span, seed: u32, of: Box<Shape> },
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

/// The request of each pod for a resource: `cpu=500m`, or of a container: `cpu/app=500m`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestOption {
    pub(crate) subject: Subject,
    pub(crate) quantity: String,
}

impl Load {
    /// Checks that a recording by pod is the usage of each pod.
    fn check_by(&self) -> Result<(), String> {
        let Some(by) = self.recorded().and_then(|recorded| recorded.by.as_ref()) else {
            return Ok(());
        };
        if !self.total {
            return Ok(());
        }
        Err(format!(
            "by={by} gives each pod its own series: leave out `total:`, or add up the series with \
             `sum` in place of by={by}"
        ))
    }

    /// Returns the load of a resource, as a total: each quantity applies from its time on.
    ///
    /// # Errors
    /// If a text is not a quantity.
    pub fn total_steps(
        resource: &str,
        steps: impl IntoIterator<Item = (Time, String)>,
    ) -> Result<Load, String> {
        let change = |(at, value): (Time, String)| match read_form::<AnyQuantity>(&value) {
            Ok(_) => Ok(LoadStep { at, amount: LoadAmount::Quantity(value) }),
            Err(why) => Err(format!("the load of {resource} at {}: {why}", at.since_start())),
        };
        let changes = steps.into_iter().map(change).collect::<Result<_, _>>()?;
        let subject = Subject { name: resource.to_owned(), ..Subject::default() };
        Ok(Load { subject, total: true, shape: Shape::Steps(changes) })
    }

    /// The end of a prediction that shows the load: ten minutes after its last change, or after two
    /// waves. None: the load is recorded.
    pub fn end(&self) -> Option<Span> {
        self.shape.end()
    }

    /// The recorded signal. None: the load is not recorded.
    pub fn recorded(&self) -> Option<&Recorded> {
        match self.shape.without_noise() {
            Shape::Recorded(recorded) => Some(recorded),
            _ => None,
        }
    }

    /// The usage of each pod as written, if it never changes: `300m of cpu`.
    pub(crate) fn constant(&self) -> Option<String> {
        let resource = &self.subject.name;
        match &self.shape {
            _ if self.total => None,
            Shape::Constant(LoadAmount::Quantity(text)) => Some(format!("{text} of {resource}")),
            Shape::Constant(LoadAmount::Percent(percent)) => {
                Some(format!("{percent}% of its {resource} request"))
            }
            _ => None,
        }
    }

    /// The value of each pod in milli-units, if it never changes and is known. `request` is the
    /// request of a pod in milli-units.
    #[must_use]
    pub fn constant_of_each(&self, request: Option<i64>) -> Option<i64> {
        match &self.shape {
            _ if self.total => None,
            Shape::Constant(LoadAmount::Percent(percent)) => {
                Some((request? as f64 * percent / 100.0) as i64)
            }
            Shape::Constant(amount) => amount.milli(),
            _ => None,
        }
    }

    /// The period of a wave. None: the load has another form.
    #[must_use]
    pub fn period(&self) -> Option<Span> {
        match self.shape.without_noise() {
            Shape::Sine { period, .. } => Some(*period),
            _ => None,
        }
    }

    /// The values in milli-units between which the load changes abruptly, in order. Empty: the load
    /// has another form.
    #[must_use]
    pub fn step_values(&self) -> Vec<i64> {
        match &self.shape {
            Shape::Steps(steps) => steps.iter().filter_map(|step| step.amount.milli()).collect(),
            _ => Vec::new(),
        }
    }

    /// A total in place of a load of each pod, for hints: `cpu/app=total:…`.
    pub(super) fn total_of(resource: &str, container: Option<&str>) -> String {
        let container = container.map(|name| format!("/{name}")).unwrap_or_default();
        format!("{resource}{container}=total:…")
    }

    /// The largest constant value in milli-units. None: the load is recorded or in percent.
    pub fn peak(&self) -> Option<i64> {
        let amounts = self.shape.amounts();
        amounts.iter().filter_map(|amount| amount.milli()).max()
    }

    /// The path of the recorded load, to be changed. None: it is not recorded.
    pub fn path_mut(&mut self) -> Option<&mut String> {
        self.shape.path_mut()
    }

    /// Returns true if the load depends on the request of the pods.
    pub fn is_relative(&self) -> bool {
        self.shape.is_relative()
    }

    /// The signal of the usage of whole pods, or of one container that the scenario names. A unit
    /// in percent of the request is kept: the values can have percent signs.
    pub(super) fn signal_of_whole(&self, request: Option<i64>) -> Signal {
        self.shape.signal(&self.subject.name, request.unwrap_or(0), request.is_some())
    }

    /// The signal in the form of scenarios. `request` is the request of a pod in milli-units.
    pub fn signal(&self, request: i64) -> Signal {
        self.shape.signal(&self.subject.name, request, false)
    }
}

impl Shape {
    /// The end of a prediction that shows the load.
    fn end(&self) -> Option<Span> {
        let after = |span: Span| Some(Span(span.0.saturating_add(AFTER_THE_LAST_CHANGE.0)));
        match self {
            Shape::Constant(_) => Some(AFTER_THE_LAST_CHANGE),
            Shape::Steps(changes) | Shape::Ramp(changes) => {
                after(changes.last().map_or(Span::ZERO, |change| change.at.since_start()))
            }
            Shape::Sine { period, .. } => after(Span(period.0.saturating_mul(2))),
            Shape::Recorded(_) => None,
            Shape::Noisy { of, .. } => of.end(),
        }
    }

    fn without_noise(&self) -> &Shape {
        match self {
            Shape::Noisy { of, .. } => of,
            shape => shape,
        }
    }

    /// The amounts that the load is given by.
    fn amounts(&self) -> Vec<&LoadAmount> {
        match self {
            Shape::Constant(amount) => vec![amount],
            Shape::Steps(changes) | Shape::Ramp(changes) => {
                changes.iter().map(|change| &change.amount).collect()
            }
            Shape::Sine { mean, amplitude, .. } => vec![mean, amplitude],
            Shape::Recorded(_) => Vec::new(),
            Shape::Noisy { of, .. } => of.amounts(),
        }
    }

    /// Returns true for a wave that goes below zero. If only one of its amounts is a percentage,
    /// the request decides, which is not known here.
    fn goes_below_zero(&self) -> bool {
        let Shape::Sine { mean, amplitude, .. } = self.without_noise() else { return false };
        match (mean, amplitude) {
            (LoadAmount::Percent(mean), LoadAmount::Percent(amplitude)) => mean < amplitude,
            _ => mean.milli() < amplitude.milli() && mean.milli().is_some(),
        }
    }

    fn path_mut(&mut self) -> Option<&mut String> {
        match self {
            Shape::Recorded(recorded) => Some(recorded.source.path_mut()),
            Shape::Noisy { of, .. } => of.path_mut(),
            _ => None,
        }
    }

    fn is_relative(&self) -> bool {
        let in_percent = match self.without_noise() {
            Shape::Recorded(recorded) => recorded.percent.is_some(),
            _ => false,
        };
        in_percent || self.amounts().iter().any(|amount| matches!(amount, LoadAmount::Percent(_)))
    }

    /// The signal. `keeps_percent`: a unit in percent of the request remains one.
    fn signal(&self, resource: &str, request: i64, keeps_percent: bool) -> Signal {
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
            Shape::Noisy { percent, every, seed, of } => {
                let of = Box::new(of.signal(resource, request, keeps_percent));
                Signal::Noisy(Noise { percent: *percent, every: *every, seed: *seed, of })
            }
        }
    }
}

impl LoadAmount {
    /// The quantity in milli-units. None: it is a percentage.
    fn milli(&self) -> Option<i64> {
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

impl FromStr for Load {
    type Err = String;

    /// Reads `NAME=VALUE` or `NAME=total:VALUE`.
    fn from_str(text: &str) -> Result<Load, String> {
        let (subject, value) = assignment(text, "cpu=300m")?;
        let (total, value) = match value.strip_prefix("total:") {
            Some(value) => (true, value),
            None => (false, value),
        };
        let load = Load { subject, total, shape: shape(value)? };
        if total && load.is_relative() {
            return Err(format!(
                "{value}: a percentage refers to the request of a pod, not to a total: leave out \
                 `total:`, or write an amount"
            ));
        }
        if load.is_relative() && !load.subject.is_resource() {
            let lowercase = load.subject.name.to_lowercase();
            let instead = match &*lowercase {
                "cpu" | "memory" => format!("did you mean {lowercase}?"),
                _ => "write an amount".to_owned(),
            };
            return Err(format!("{value}: only cpu and memory have requests: {instead}"));
        }
        let negative = |amount: &&LoadAmount| amount.milli().is_some_and(|milli| milli < 0);
        if load.subject.is_resource() && load.shape.amounts().iter().any(negative) {
            return Err(format!("{value}: usage can't be negative"));
        }
        if load.subject.is_resource() && load.shape.goes_below_zero() {
            return Err(format!(
                "{value}: usage can't be negative: the amplitude is larger than the mean"
            ));
        }
        load.check_by()?;
        Ok(load)
    }
}

impl FromStr for RequestOption {
    type Err = String;

    /// Reads `RESOURCE=QUANTITY` or `RESOURCE/CONTAINER=QUANTITY`.
    fn from_str(text: &str) -> Result<RequestOption, String> {
        let (subject, value) = assignment(text, "cpu=500m")?;
        if !subject.is_resource() {
            return Err(format!("{}: expected cpu or memory", subject.name));
        }
        if read_form::<PositiveQuantity>(value)?.sign() == 0 {
            let example = if subject.name == "cpu" { "500m" } else { "512Mi" };
            return Err(format!("expected a request greater than 0, such as {example}"));
        }
        Ok(RequestOption { subject, quantity: value.to_owned() })
    }
}

impl Subject {
    pub(crate) fn is_resource(&self) -> bool {
        matches!(&*self.name, "cpu" | "memory")
    }

    /// Returns true if the subject applies to all HPAs, or to one of these.
    pub(crate) fn is_of(&self, hpas: &[HpaName]) -> bool {
        self.hpa.as_ref().is_none_or(|hpa| hpas.iter().any(|it| it.is(hpa)))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(hpa) = &self.hpa {
            write!(f, "{hpa}:")?;
        }
        f.write_str(&self.name)?;
        if let Some(container) = &self.container {
            write!(f, "/{container}")?;
        }
        if !self.labels.is_empty() {
            let labels = self.labels.iter().map(|(name, value)| format!("{name}={value}"));
            write!(f, "{{{}}}", labels.collect::<Vec<_>>().join(","))?;
        }
        Ok(())
    }
}

/// The name of an HPA in the manifests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HpaName {
    /// The namespace. None: the manifest leaves it open.
    pub namespace: Option<String>,
    pub name: String,
}

impl HpaName {
    /// Returns true if a user means this HPA by `NAME` or `NAMESPACE/NAME`.
    pub fn is(&self, text: &str) -> bool {
        *text == self.name || text == self.to_string()
    }
}

impl fmt::Display for HpaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Splits `NAME=VALUE`, `NAME/CONTAINER=VALUE` or `NAME{LABEL=VALUE,…}=VALUE`.
fn assignment<'t>(text: &'t str, example: &str) -> Result<(Subject, &'t str), String> {
    let expected = || format!("expected NAME=VALUE, for example {example}");
    let labelled = text.find('{').filter(|brace| *brace < text.find('=').unwrap_or(text.len()));
    let (name, labels, value) = match labelled {
        Some(open) => {
            let close = open + text[open..].find('}').ok_or("a `}` is missing after the labels")?;
            let value = text[close + 1..].strip_prefix('=').ok_or_else(expected)?;
            (&text[..open], label_values(&text[open + 1..close])?, value)
        }
        None => {
            let (name, value) = text.split_once('=').ok_or_else(expected)?;
            (name, BTreeMap::new(), value)
        }
    };
    if name.is_empty() || value.is_empty() {
        return Err(expected());
    }
    // The name of a metric can contain a colon as well: it is compared with the metrics of HPAs.
    let (hpa, name) = match name.split_once(':') {
        Some((hpa, name)) if !hpa.is_empty() && !name.is_empty() => (Some(hpa.to_owned()), name),
        _ => (None, name),
    };
    let (name, container) = match name.split_once('/') {
        Some((resource @ ("cpu" | "memory"), container)) if !container.is_empty() => {
            (resource, Some(container.to_owned()))
        }
        _ => (name, None),
    };
    Ok((Subject { hpa, name: name.to_owned(), container, labels }, value))
}

fn label_values(text: &str) -> Result<BTreeMap<String, String>, String> {
    let label = |part: &str| {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| format!("{part}: expected LABEL=VALUE, for example queue=orders"))?;
        Ok((key.trim().to_owned(), unquoted(value.trim()).to_owned()))
    };
    split(text).into_iter().map(label).collect()
}

/// Splits at commas outside of quotes, which can be around a part or around a value after `=`.
fn split(text: &str) -> Vec<&str> {
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
fn unquoted(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

fn shape(text: &str) -> Result<Shape, String> {
    let Some((name, arguments)) = text.split_once('(') else {
        return amount(text).map(Shape::Constant);
    };
    let Some(arguments) = arguments.strip_suffix(')') else {
        return Err(format!("{text}: a `)` is missing at the end"));
    };
    match name {
        "steps" => steps(arguments).map(Shape::Steps),
        "ramp" => changes(arguments).map(Shape::Ramp),
        "sine" => sine(arguments),
        "csv" => recorded(RecordedSource::Csv, arguments),
        "prometheus" => recorded(RecordedSource::Prometheus, arguments),
        "openMetrics" => recorded(RecordedSource::OpenMetrics, arguments),
        "noise" => noise(arguments),
        _ => Err(match similar_form(name) {
            Some(form) => format!("{name}(…) is unknown: did you mean {form}(…)?"),
            None => format!("{name}(…) is unknown: expected {FORMS}"),
        }),
    }
}

/// The form that a user probably means.
fn similar_form(name: &str) -> Option<&'static str> {
    const NAMES: [&str; 7] = ["steps", "ramp", "sine", "csv", "prometheus", "openMetrics", "noise"];
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
fn noise(text: &str) -> Result<Shape, String> {
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
    match shape(rest.trim())? {
        Shape::Noisy { .. } => Err("a load with noise can't have further noise".to_owned()),
        of => Ok(Shape::Noisy { percent, every, seed, of: Box::new(of) }),
    }
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

fn read_form<F: Form>(text: &str) -> Result<F::Value, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_recorded_signals() {
        let text = "cpu=total:csv(a.csv,time=t,value=cores,unit=1m,hold=1m,sum,pod=web-0)";
        assert_eq!(
            signal(text),
            "total {\"csv\":\"a.csv\",\"time\":\"t\",\"value\":\"cores\",\"series\":{\"pod\":\
             \"web-0\"},\"sum\":true,\"unit\":\"1m\",\"hold\":\"1m\"}"
        );
        assert_eq!(signal("rps=openMetrics(a.txt)"), r#"pod {"openMetrics":"a.txt"}"#);
        assert_eq!(
            signal("cpu=csv(\"a, b.csv\",value='x,y',pod=\"it's 1\",zone=a'b)"),
            "pod {\"csv\":\"a, b.csv\",\"value\":\"x,y\",\"series\":{\"pod\":\"it's 1\",\
             \"zone\":\"a'b\"}}"
        );
        for (text, expected) in [
            ("cpu=csv()", "the file is missing"),
            ("cpu=csv(\"\",sum)", "the file is missing"),
            ("cpu=csv(a,b.csv)", "put a file or a value with a comma in quotes"),
            ("cpu=csv(a.csv,cores)", "cores: expected NAME=VALUE"),
            ("cpu=prometheus(a.json,unit=x)", "expected a quantity"),
        ] {
            let error = text.parse::<Load>().expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    fn signal(text: &str) -> String {
        let load: Load = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        let signal = serde_json::json!(load.signal(500));
        format!("{} {signal}", if load.total { "total" } else { "pod" })
    }

    #[test]
    fn each_form_becomes_a_signal() {
        for (text, expected) in [
            ("cpu=300m", r#"pod "300m""#),
            ("cpu=60%", r#"pod "300m""#),
            ("cpu=total:8", r#"total "8""#),
            (
                "cpu=total:steps(0s:2, 5m:8)",
                r#"total {"steps":[{"at":"0s","value":"2"},{"at":"5m","value":"8"}]}"#,
            ),
            (
                "rps=ramp(0s:10,1m:50)",
                r#"pod {"points":[{"at":"0s","value":"10"},{"at":"1m","value":"50"}]}"#,
            ),
            (
                "cpu=sine(mean=50%,amplitude=100m,period=10m,offset=30s)",
                "pod {\"sine\":{\"mean\":\"250m\",\"amplitude\":\"100m\",\"period\":\"10m\",\
                 \"offset\":\"30s\"}}",
            ),
        ] {
            assert_eq!(signal(text), expected, "{text}");
        }
    }

    #[test]
    fn a_command_line_has_days() {
        use kube_lockstep_scenario::text::days_as_hours;

        for (text, hours) in [("8d", "192h"), ("1d12h", "24h12h"), ("5m", "5m"), ("d", "d")] {
            assert_eq!(days_as_hours(text), hours);
        }
        assert_eq!(days_as_hours("-1d"), "-1d");
        let load: Load = "cpu=steps(0s:2,2d1h:8)".parse().expect("a load");
        let Signal::Steps(steps) = load.signal(0) else { panic!("steps") };
        assert_eq!(steps[1].at, Time::from_secs(49 * 60 * 60));
    }

    #[test]
    fn names_have_containers_and_labels() {
        let subject = |text: &str| text.parse::<Load>().expect("a load").subject;
        let app = subject("cpu/app=1");
        assert_eq!((&*app.name, app.container.as_deref()), ("cpu", Some("app")));
        let web = subject("shop/web:cpu/app=1");
        assert_eq!((web.hpa.as_deref(), &*web.name), (Some("shop/web"), "cpu"));
        assert_eq!(web.to_string(), "shop/web:cpu/app");
        assert_eq!(subject("web:cpu=60%").hpa.as_deref(), Some("web"));
        let queue = subject("queue/length{queue=orders,zone=\"a\"}=30");
        assert_eq!(queue.name, "queue/length");
        let labels = [("queue", "orders"), ("zone", "a")];
        assert_eq!(queue.labels, labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    }

    #[test]
    fn malformed_loads_have_a_message() {
        for (text, expected) in [
            ("cpu", "expected NAME=VALUE, for example cpu=300m"),
            ("=3", "expected NAME=VALUE, for example cpu=300m"),
            ("cpu=3 GB", "did you mean 3G, or 3Gi?"),
            ("cpu=fast", "fast: expected a quantity such as 300m"),
            ("cpu=m", "m: did you mean 1m?"),
            ("cpu=300 m", "300 m: did you mean 300m?"),
            ("cpu=total:load.csv", "did you mean csv(load.csv)?"),
            ("cpu=total:csv load.csv", "did you mean csv(load.csv)?"),
            ("cpu=total:my load.csv", "did you mean csv(my load.csv)?"),
            ("cpu=csv(load.csv,unit=0)", "expected a unit greater than 0"),
            ("cpu=csv(load.csv,unit=0%)", "expected a unit greater than 0"),
            ("cpu=csv(a.csv,unit=m)", "m: did you mean 1m?"),
            ("CPU=60%", "only cpu and memory have requests: did you mean cpu?"),
            ("cpu=total:60%", "leave out `total:`"),
            ("rps=60%", "only cpu and memory have requests"),
            ("cpu=steps(0s:1", "a `)` is missing"),
            ("cpu=steps(1)", "expected TIME:VALUE"),
            ("cpu=steps(5m:1,1m:2)", "1m is not after 5m, the previous time"),
            ("cpu=steps(5:1)", "did you mean 5s?"),
            ("cpu=wave(1)", "wave(…) is unknown: expected a quantity"),
            ("cpu=openmetrics(a.txt)", "did you mean openMetrics(…)?"),
            ("cpu=CSV(a.csv)", "did you mean csv(…)?"),
            ("cpu=total:step(0s:1)", "did you mean steps(…)?"),
            ("cpu=sine(mean=1,period=1m)", "the amplitude of the sine is missing"),
            ("cpu=sine(1,2)", "expected NAME=VALUE"),
            ("cpu=sine(mean=1,amplitud=2)", "amplitud is unknown"),
            ("cpu=steps(5m:8)", "add the value before it, for example steps(0s:0,5m:8)"),
            ("cpu=-300m", "-300m: usage can't be negative"),
            ("memory=total:steps(0s:1Gi,1m:-1Gi)", "usage can't be negative"),
            (
                "cpu=total:sine(mean=1,amplitude=2,period=1m)",
                "the amplitude is larger than the mea",
            ),
            ("cpu=noise(5%,sine(mean=10%,amplitude=20%,period=1m))", "usage can't be negative"),
            ("cpu=total:csv(a.csv,by=pod)", "by=pod gives each pod its own series: leave out `tot"),
            ("queue{a=b=3", "a `}` is missing"),
            ("queue{a}=3", "a: expected LABEL=VALUE"),
        ] {
            let error = text.parse::<Load>().expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn requests_are_quantities_of_resources() {
        let request: RequestOption = "cpu/app=500m".parse().expect("a request");
        assert_eq!(
            (request.subject.container.as_deref(), &*request.quantity),
            (Some("app"), "500m")
        );
        for (text, expected) in [
            ("gpu=1", "gpu: expected cpu or memory"),
            ("cpu=-1", "expected a quantity of 0 or more, found -1"),
            ("cpu=0", "expected a request greater than 0"),
            ("cpu", "NAME"),
        ] {
            let error = text.parse::<RequestOption>().expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
