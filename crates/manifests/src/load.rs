//! Loads in the short form of a command line: `cpu=300m`, `cpu=total:steps(0s:2,5m:8)`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::recorded::Recorded;
use kube_lockstep_scenario::signal::Signal;
use kube_lockstep_scenario::text::{Amount as PositiveQuantity, AnyQuantity};

use super::shape::{
    LoadAmount, LoadStep, Shape, ValueRange, read_form, read_shape, split, unquoted,
};

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

/// The request of each pod for a resource: `cpu=500m`, or of a container: `cpu/app=500m`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestOption {
    pub(crate) subject: Subject,
    pub(crate) quantity: String,
}

impl Load {
    /// Checks that a recording by pod is the usage of each pod.
    fn check_by(&self) -> Result<(), String> {
        let by = self.recordings().into_iter().find_map(|recorded| recorded.by.as_ref());
        let Some(by) = by.filter(|_| self.total) else { return Ok(()) };
        Err(format!(
            "by={by} gives each pod its own series: leave out `total:`, or add up the series with \
             `sum` in place of by={by}"
        ))
    }

    /// Checks that a backlog is that of a total, or of a queue.
    fn check_backlog(&self) -> Result<(), String> {
        let Shape::Backlog { per_pod, .. } = &self.shape else { return Ok(()) };
        let name = &self.subject.name;
        if !self.subject.is_resource() {
            return per_pod.as_ref().map(|_| ()).ok_or_else(|| {
                format!(
                    "the backlog of {name} requires perPod=, the number of items that each pod \
                     processes per second, for example backlog(perPod=5,…)"
                )
            });
        }
        match (self.total, per_pod) {
            (false, _) => {
                Err(format!("a backlog of {name} requires `total:`: {name}=total:backlog(…)"))
            }
            (true, Some(_)) => Err(format!(
                "perPod= is for queues: a pod uses at most the {name} limit of its containers"
            )),
            (true, None) => Ok(()),
        }
    }

    /// Returns true if the load is a backlog.
    pub(crate) fn is_backlog(&self) -> bool {
        matches!(self.shape, Shape::Backlog { .. })
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

    /// The recordings that the load is calculated from.
    pub fn recordings(&self) -> Vec<&Recorded> {
        self.shape.recordings()
    }

    /// The recordings, mutable.
    pub fn recordings_mut(&mut self) -> Vec<&mut Recorded> {
        self.shape.recordings_mut()
    }

    /// Returns true if each pod has its own recorded series.
    pub(crate) fn is_by_pod(&self) -> bool {
        self.recordings().iter().any(|recorded| recorded.by.is_some())
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
        self.range_of_each(request)?.only()
    }

    /// The least and the largest value of each pod, if they are known.
    #[must_use]
    pub fn range_of_each(&self, request: Option<i64>) -> Option<ValueRange> {
        self.shape.range(request).filter(|_| !self.total)
    }

    /// The least and the largest value, of each pod or in total, if they are known.
    #[must_use]
    pub fn range(&self, request: Option<i64>) -> Option<ValueRange> {
        self.shape.range(request)
    }

    /// The period of a load that repeats. None: the load has another form.
    #[must_use]
    pub fn period(&self) -> Option<Span> {
        self.shape.period()
    }

    /// The values in milli-units between which the load changes abruptly, in order. Empty: the load
    /// has another form.
    #[must_use]
    pub fn step_values(&self) -> Vec<i64> {
        self.shape.step_values()
    }

    /// A total in place of a load of each pod, for hints: `cpu/app=total:…`.
    pub(super) fn total_of(resource: &str, container: Option<&str>) -> String {
        let container = container.map(|name| format!("/{name}")).unwrap_or_default();
        format!("{resource}{container}=total:…")
    }

    /// The largest constant value in milli-units. None: the load is recorded or in percent, or one
    /// of its factors is.
    pub fn peak(&self) -> Option<i64> {
        self.shape.peak()
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

impl FromStr for Load {
    type Err = String;

    /// Reads `NAME=VALUE` or `NAME=total:VALUE`.
    fn from_str(text: &str) -> Result<Load, String> {
        let (subject, value) = assignment(text, "cpu=300m")?;
        let (total, value) = match value.strip_prefix("total:") {
            Some(value) => (true, value),
            None => (false, value),
        };
        let load = Load { subject, total, shape: read_shape(value)? };
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
        load.check_backlog()?;
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

    /// Returns true if both are names of the same HPA. The default namespace can be left out.
    #[must_use]
    pub fn is_same(&self, other: &HpaName) -> bool {
        let namespace = |name: &HpaName| name.namespace.as_deref().unwrap_or("default").to_owned();
        self.name == other.name && namespace(self) == namespace(other)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::End;
    use kube_autoscaler_models::time::Span;

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
    fn sums_and_products_become_signals() {
        let csv = |file: &str| format!("{{\"csv\":\"{file}\"}}");
        let (a, b) = (csv("a.csv"), csv("b-2.csv"));
        let times = |factor: &str, of: &str| format!("{{\"factor\":{factor},\"of\":{of}}}");
        let add = |parts: &[&str]| format!("{{\"add\":[{}]}}", parts.join(","));
        let from_ten = "{\"steps\":[{\"at\":\"0s\",\"value\":\"0\"},{\"at\":\"10m\",\
                        \"value\":\"1\"}]}";
        let noisy_shift = format!("{{\"noise\":5,\"of\":{{\"shift\":\"-1h\",\"of\":{a}}}}}");
        for (text, expected) in [
            ("total:2 * csv(a.csv)", times("\"2\"", &a)),
            ("total:csv(a.csv)*1.5", times("\"1.5\"", &a)),
            ("total:csv(a.csv) + csv(b-2.csv)", add(&[&a, &b])),
            ("total:csv(a.csv)+csv(b-2.csv)", add(&[&a, &b])),
            ("total:csv(a.csv) - 1e+3", add(&[&a, &times("\"-1\"", "\"1e+3\"")])),
            ("total:2 * (csv(a.csv) + 1)", times("\"2\"", &add(&[&a, "\"1\""]))),
            (
                "total:csv(a.csv) + steps(0s:0,10m:1) * csv(b-2.csv)",
                add(&[&a, &times(from_ten, &b)]),
            ),
            ("total:csv(b-2.csv) * steps(0s:0,10m:1)", times(from_ten, &b)),
            ("total:repeat(1d,csv(a.csv))", format!("{{\"repeat\":\"24h\",\"of\":{a}}}")),
            ("total:noise(5%,shift(-1h,csv(a.csv)))", noisy_shift),
            ("total:backlog(2 * csv(a.csv))", format!("{{\"backlog\":{}}}", times("\"2\"", &a))),
            ("1.5 * 60%", times("\"1.5\"", "\"300m\"")),
            ("csv(a.csv,by=pod) * 2", times("\"2\"", "{\"csv\":\"a.csv\",\"by\":\"pod\"}")),
            ("total:csv(\"a (1.csv\") + 1", add(&["{\"csv\":\"a (1.csv\"}", "\"1\""])),
        ] {
            let found = signal(&format!("cpu={text}"));
            let kind = if text.starts_with("total:") { "total" } else { "pod" };
            assert_eq!(found, format!("{kind} {expected}"), "{text}");
        }
    }

    #[test]
    fn calculated_loads_have_ranges_periods_and_steps() {
        let load = |text: &str| -> Load { format!("queue={text}").parse().expect(text) };
        for (text, range) in [
            ("2 * 400", Some((800_000, 800_000))),
            ("100 + 700", Some((800_000, 800_000))),
            ("noise(1%,800)", Some((792_000, 808_000))),
            ("-1 * steps(0s:1,1m:3)", Some((-3000, -1000))),
            ("shift(1h,sine(mean=4,amplitude=1,period=1h)) - 1", Some((2000, 4000))),
            ("csv(a.csv)", None),
            ("60% * 2", None),
        ] {
            let found = load_or_percent(text).range(None);
            assert_eq!(found.map(|it| (it.least, it.most)), range, "{text}");
        }
        let range = load_or_percent("60% * 2").range(Some(500));
        assert_eq!(range.and_then(ValueRange::only), Some(600));
        let minutes = |text: &str| load(text).period().map(|span| span.as_secs_f64() / 60.0);
        let wave = "sine(mean=4,amplitude=1,period=10m)";
        for text in ["WAVE", "2 * WAVE", "WAVE + 100m", "noise(3%,shift(1m,WAVE))"] {
            assert_eq!(minutes(&text.replace("WAVE", wave)), Some(10.0), "{text}");
        }
        assert_eq!(minutes(&format!("{wave} + steps(0s:1,1m:2)")), None);
        assert_eq!(minutes("repeat(5m,csv(a.csv))"), Some(5.0));
        for (text, steps) in [
            ("steps(0s:20,5m:22)", vec![20_000, 22_000]),
            ("2 * steps(0s:10,5m:11)", vec![20_000, 22_000]),
            ("steps(0s:300,5m:320) + 1", vec![301_000, 321_000]),
            ("repeat(10m,steps(0s:1,5m:2))", vec![1000, 2000, 1000]),
            ("noise(5%,steps(0s:1,5m:2))", vec![]),
            ("7", vec![]),
        ] {
            assert_eq!(load(text).step_values(), steps, "{text}");
        }
    }

    fn load_or_percent(text: &str) -> Load {
        let name = if text.contains("60%") { "cpu" } else { "queue" };
        format!("{name}={text}").parse().expect(text)
    }

    #[test]
    fn a_queue_has_a_rate_of_each_pod() {
        assert_eq!(
            signal("queue=backlog(perPod=5, initial=100, ramp(0s:1,1h:40))"),
            "pod {\"backlog\":{\"points\":[{\"at\":\"0s\",\"value\":\"1\"},{\"at\":\"1h\",\
             \"value\":\"40\"}]},\"perPod\":\"5\",\"initial\":\"100\"}"
        );
    }

    #[test]
    fn a_prediction_shows_a_calculated_load() {
        let end = |text: &str| {
            let load: Load = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            let End { computed, recorded } = load.shape.end(&|_| Span::from_secs(60));
            (computed.map(Span::as_secs_f64), recorded.map(Span::as_secs_f64))
        };
        assert_eq!(end("cpu=2 * csv(a.csv)"), (None, Some(60.0)));
        assert_eq!(end("cpu=shift(1h,csv(a.csv))"), (None, Some(3660.0)));
        assert_eq!(end("cpu=shift(-40s,csv(a.csv))"), (None, Some(20.0)));
        assert_eq!(end("cpu=repeat(1h,csv(a.csv))"), (Some(7800.0), None));
        assert_eq!(end("cpu=steps(0s:1,1m:2) + 3"), (Some(660.0), None));
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
    fn malformed_calculations_have_a_message() {
        for (text, expected) in [
            ("cpu=csv(a.csv) +", "a value is missing, before or after an operator"),
            ("cpu=csv(a.csv) + + 1", "a value is missing, before or after an operator"),
            ("cpu=total:()", "a value is missing"),
            ("cpu=csv(a.csv) / 2", "`/` is not supported; multiply"),
            ("cpu=2+3", "put spaces around + and -"),
            ("cpu=1+csv(a.csv)", "put spaces around + and -"),
            ("cpu=2 -3", "put spaces around + and -"),
            ("cpu=-csv(a.csv)", "an operator is missing: -1 * csv(…)"),
            ("cpu=0.5csv(a.csv)", "an operator is missing: 0.5 * csv(…)"),
            ("cpu=1 * 1 * 1 * 1 * 1 * 1 * 1 * 1 * 1", "at most 8 factors, found 9"),
            ("cpu=* 2", "a value is missing, before or after an operator"),
            ("cpu=50% * 60%", "only one factor can be a percentage of the request"),
            ("cpu=total:2 * 60%", "leave out `total:`"),
            ("cpu=total:2 * csv(a.csv,by=pod)", "by=pod gives each pod its own series"),
            ("cpu=shift(1h)", "expected a duration and a value, for example shift(1h,csv(FILE))"),
            ("cpu=repeat(0s,1)", "more than 0s"),
            ("cpu=repeat(1,csv(a.csv))", "did you mean 1s?"),
            ("cpu=shfit(1h,2)", "did you mean shift(…)?"),
            ("cpu=2 * wave(1)", "wave(…) is unknown"),
            ("cpu=2 x csv(a.csv)", "an operator is missing, for example 2 * csv(…)"),
            ("cpu=noise(5%,noise(5%,1))", "can't have further noise"),
            ("cpu=backlog(2)", "a backlog of cpu requires `total:`: cpu=total:backlog(…)"),
            ("cpu=total:backlog(perPod=1,2)", "perPod= is for queues"),
            ("queue=backlog(2)", "the backlog of queue requires perPod="),
            ("queue=backlog(perPod=0,2)", "greater than 0"),
            ("queue=backlog(perPod=5)", "the value of the backlog is missing"),
            ("queue=2 * backlog(perPod=5,1)", "a backlog can't be part of another value"),
            ("queue=backlogs(perPod=5,1)", "did you mean backlog(…)?"),
        ] {
            let error = text.parse::<Load>().expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn values_have_a_limited_depth() {
        let nested = |depth: usize| format!("cpu={}1{}", "(".repeat(depth), ")".repeat(depth));
        assert!(nested(15).parse::<Load>().is_ok());
        let error = nested(100_000).parse::<Load>().expect_err("too deep");
        assert!(error.contains("parentheses are nested too deeply"), "{error}");
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
