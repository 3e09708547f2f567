//! Checks the responses of the metrics APIs, and removes defaults.

use std::collections::BTreeMap;

use super::cursor::{At, Problems};
use super::reach::{Reach, check_reach};
use super::recordings::Recordings;
use super::values::resource;
use super::workload::known_container;
use crate::raw::{ScenarioFile, Workload};
use crate::resolved::{
    Backlog, DescribedObject, Exception, Metrics, Modified, Modifier, ObjectMetric, Point,
    Recorded, ResourceUsage, Signal, Sine, UsageSource,
};
use crate::text::UNIT_EXAMPLES;
use kube_autoscaler_models::counted::listed;
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::Time;

/// The context that all parts of the metrics share.
struct Context<'f> {
    workload: &'f Workload,
    reach: Option<Reach>,
    until: Time,
}

pub(super) fn resolve(
    file: &ScenarioFile,
    at: At<'_>,
    reach: Option<Reach>,
    recordings: &mut Recordings<'_>,
    problems: &mut Problems,
) -> Metrics {
    let context = Context { workload: &file.workload, reach, until: file.until };
    resolve_metrics(file.metrics.clone(), &context, at, recordings, problems)
}

/// Checks the usage of a workload's pods, and reads its recordings.
pub(super) fn usage(
    metrics: Metrics,
    workload: &Workload,
    until: Time,
    at: At<'_>,
    recordings: &mut Recordings<'_>,
    problems: &mut Problems,
) -> Metrics {
    let context = Context { workload, reach: None, until };
    resolve_metrics(metrics, &context, at, recordings, problems)
}

fn resolve_metrics(
    mut metrics: Metrics,
    context: &Context<'_>,
    at: At<'_>,
    recordings: &mut Recordings<'_>,
    problems: &mut Problems,
) -> Metrics {
    let before = problems.len();
    check(&mut metrics, context, at, problems);
    if problems.len() == before {
        recordings.fill(&mut metrics, at, problems);
    }
    metrics
}

/// Checks the metrics, without the files of recorded signals.
fn check(metrics: &mut Metrics, context: &Context<'_>, at: At<'_>, problems: &mut Problems) {
    for (index, usage) in metrics.resources.iter().enumerate() {
        let at = at.key("resource").index(index);
        resource(&usage.name, at.key("name"), problems);
        if metrics.resources[..index].iter().any(|other| other.name == usage.name) {
            problems.plain(at.key("name"), format!("duplicate usage of `{}`", usage.name));
        }
        context.check_usage(usage, at, problems);
    }
    for (index, metric) in metrics.pods.iter().enumerate() {
        let at = at.key("pods").index(index);
        check_name(&metric.name, at, problems);
        if metrics.pods[..index].iter().any(|other| other.name == metric.name) {
            let what = format!("duplicate pods metric `{}`", metric.name);
            problems.plain(at.key("name"), what);
        }
        context.check_source(&metric.source, &["perPod", "load"], at, problems);
        context.check_exceptions(&metric.exceptions, at.key("pods"), problems);
    }
    check_objects(&mut metrics.objects, at.key("object"), problems);
    for (index, metric) in metrics.externals.iter_mut().enumerate() {
        let at = at.key("external").index(index);
        check_name(&metric.name, at, problems);
        check_series(metric.all_series().collect(), at, problems);
        metric.normalize_series();
    }
    for (index, metric) in metrics.externals.iter().enumerate() {
        if metrics.externals[..index].iter().any(|other| other.name == metric.name) {
            let what = format!("duplicate external metric `{}`", metric.name);
            let at = at.key("external").index(index).key("name");
            problems.hint(at, what, "list all series of the metric in one `series`");
        }
    }
}

impl Context<'_> {
    fn check_usage(&self, usage: &ResourceUsage, at: At<'_>, problems: &mut Problems) {
        self.check_source(&usage.source, &["perPod", "containers", "load"], at, problems);
        if let UsageSource::PerContainer(containers) = &usage.source {
            let at = at.key("containers");
            for (name, signal) in &containers.0 {
                known_container(name, self.workload, at.key_position(name), problems);
                check_signal(signal, at.key(name), problems);
            }
        }
        self.check_exceptions(&usage.exceptions, at.key("pods"), problems);
        match &usage.source {
            UsageSource::PerPod(signal) => refuse_negative(signal, at.key("perPod"), problems),
            UsageSource::Load { total, .. } => refuse_negative(total, at.key("load"), problems),
            UsageSource::PerContainer(containers) => {
                for (name, signal) in &containers.0 {
                    refuse_negative(signal, at.key("containers").key(name), problems);
                }
            }
        }
        for (index, exception) in usage.exceptions.iter().enumerate() {
            let at = at.key("pods").index(index).key("value");
            refuse_negative(&exception.value, at, problems);
        }
    }

    fn check_source(
        &self,
        source: &UsageSource,
        names: &[&str],
        at: At<'_>,
        problems: &mut Problems,
    ) {
        let given = at.given(names);
        if at.key("limit").node().is_some() && !given.contains(&"load") {
            problems.plain(at.key_position("limit"), "`limit` requires `load`");
        }
        let &[name] = given.as_slice() else {
            problems.plain(at, one_of(names, &given));
            return;
        };
        match source {
            UsageSource::PerPod(_) if name == "containers" => {
                problems.plain(at.key(name), "expected the usage of at least one container");
            }
            UsageSource::PerPod(signal) => check_signal(signal, at.key(name), problems),
            UsageSource::Load { total: Signal::Backlog(backlog), limit } => {
                check_backlog_of_load(backlog, limit.is_some(), at.key(name), problems);
            }
            UsageSource::Load { total, .. } => check_signal(total, at.key(name), problems),
            UsageSource::PerContainer(_) => {}
        }
    }

    fn check_exceptions(&self, exceptions: &[Exception], at: At<'_>, problems: &mut Problems) {
        for (index, Exception { pods, value, .. }) in exceptions.iter().enumerate() {
            let at = at.index(index);
            check_reach(pods, self.reach, self.until, at.key("pods"), problems);
            check_signal(value, at.key("value"), problems);
        }
    }
}

/// The message for fields of which exactly one must be set.
fn one_of(names: &[&str], given: &[&str]) -> String {
    let found = match given {
        [] => "none".to_owned(),
        [_, _] if names.len() == 2 => "both".to_owned(),
        several => several.join(", "),
    };
    format!("expected exactly one of {}, found {found}", listed(names, "and"))
}

/// The fields of a signal that decide its shape.
const SHAPES: [&str; 12] = [
    "steps",
    "points",
    "sine",
    "add",
    "backlog",
    "noise",
    "factor",
    "shift",
    "repeat",
    "csv",
    "prometheus",
    "openMetrics",
];

/// The shapes with a field `of`.
const MODIFIERS: [&str; 4] = ["noise", "factor", "shift", "repeat"];

/// The shapes that require each of the other fields.
const OTHER_FIELDS: [(&[&str], &[&str]); 5] = [
    (&["by", "series", "sum", "unit", "hold", "start"], &["csv", "prometheus", "openMetrics"]),
    (&["time", "value", "decimal"], &["csv"]),
    (&["every", "seed"], &["noise"]),
    (&["of"], &MODIFIERS),
    (&["perPod", "initial"], &["backlog"]),
];

fn check_signal(signal: &Signal, at: At<'_>, problems: &mut Problems) {
    if matches!(signal, Signal::Constant(_)) || !at.is_map() {
        return;
    }
    if let Some(name) = check_fields(at, problems) {
        check_shape(signal, name, at, problems);
    }
}

/// Checks the fields of a signal. Returns the one that decides its shape.
fn check_fields(at: At<'_>, problems: &mut Problems) -> Option<&'static str> {
    let given = at.given(&SHAPES);
    let &[name] = given.as_slice() else {
        let what = match given.as_slice() {
            [] => {
                let shapes = listed(&SHAPES, "and");
                format!("the signal is empty: expected exactly one of {shapes}")
            }
            several => one_of(&SHAPES, several),
        };
        problems.plain(at, what);
        return None;
    };
    let wrong = OTHER_FIELDS.iter().filter(|(_, shapes)| !shapes.contains(&name));
    let mut wrong = wrong.flat_map(|(fields, shapes)| fields.iter().map(move |it| (it, shapes)));
    if let Some((field, shapes)) = wrong.find(|(field, _)| at.key(field).node().is_some()) {
        let shapes: Vec<String> = shapes.iter().map(|name| format!("`{name}`")).collect();
        let shapes: Vec<&str> = shapes.iter().map(String::as_str).collect();
        let shapes = listed(&shapes, "or");
        problems.plain(at.key_position(field), format!("`{field}` requires {shapes}"));
    }
    Some(name)
}

/// Checks a signal whose field `name` decides its shape.
fn check_shape(signal: &Signal, name: &str, at: At<'_>, problems: &mut Problems) {
    match signal {
        Signal::Steps(points) | Signal::Points(points) => {
            check_points(points, at.key(name), problems);
        }
        Signal::Sum(parts) => {
            if parts.len() < 2 {
                let what = "expected at least two signals to add up";
                problems.hint(at.key(name), what, "for example [{csv: a.csv}, {csv: b.csv}]");
            }
            for (index, part) in parts.iter().enumerate() {
                check_signal(part, at.key(name).index(index), problems);
            }
        }
        Signal::Modified(modified) => check_modified(modified, name, at, problems),
        Signal::Backlog(_) => {
            let what = "a backlog must be a `load`, or the value of an object or external metric";
            problems.hint(
                at.key_position(name),
                what,
                "put the other signals in `backlog`, for example {backlog: {factor: 2, of: …}}",
            );
        }
        Signal::Recorded(Recorded { unit: Some(unit), .. }) if unit.sign() <= 0 => {
            let what = format!("expected a unit greater than 0, found {unit}");
            problems.hint(at.key("unit"), what, UNIT_EXAMPLES);
        }
        _ => {}
    }
}

/// Checks the backlog of a load.
fn check_backlog_of_load(backlog: &Backlog, has_limit: bool, at: At<'_>, problems: &mut Problems) {
    if check_fields(at, problems).is_none() {
        return;
    }
    if backlog.per_pod.is_some() {
        let what = "`perPod` is only for queues: for a load, each pod processes up to its `limit`";
        problems.plain(at.key_position("perPod"), what);
    }
    if !has_limit {
        let hint = "add `limit`, the largest usage of a pod, next to `load`";
        problems.hint(at, "a backlog of a load requires `limit`", hint);
    }
    check_signal(&backlog.arrivals, at.key("backlog"), problems);
}

/// Checks the value of a metric, which can be the length of a queue.
fn check_value(signal: &Signal, at: At<'_>, problems: &mut Problems) {
    let Signal::Backlog(backlog) = signal else { return check_signal(signal, at, problems) };
    if check_fields(at, problems).is_none() {
        return;
    }
    match &backlog.per_pod {
        None => {
            let hint = "for example {backlog: \"20\", perPod: \"5\"}";
            problems.hint(
                at,
                "a queue requires `perPod`, the number of items that each pod processes per second",
                hint,
            );
        }
        Some(per_pod) if per_pod.sign() == 0 => {
            problems.plain(at.key("perPod"), "expected a quantity greater than 0, found 0");
        }
        Some(_) => {}
    }
    check_signal(&backlog.arrivals, at.key("backlog"), problems);
}

/// Refuses negative usage. That of recordings is refused when they are read, and values of custom
/// and external metrics may be negative.
fn refuse_negative(signal: &Signal, at: At<'_>, problems: &mut Problems) {
    let mut refuse = |value: &Quantity, at: At<'_>| {
        if value.sign() < 0 {
            problems.plain(at, format!("usage can't be negative, found {value}"));
        }
    };
    match signal {
        Signal::Constant(value) => refuse(value, at),
        Signal::Steps(points) | Signal::Points(points) => {
            let name = if matches!(signal, Signal::Steps(_)) { "steps" } else { "points" };
            for (index, point) in points.iter().enumerate() {
                refuse(&point.value, at.key(name).index(index).key("value"));
            }
        }
        Signal::Sine(Sine { mean, amplitude, .. }) => {
            if mean.milli() < amplitude.milli().saturating_abs() {
                let what = format!(
                    "usage can't be negative: the amplitude {amplitude} is larger than the mean \
                     {mean}"
                );
                problems.plain(at.key("sine").key("amplitude"), what);
            }
        }
        // A product or a sum can be positive although a part of it is negative. Computed usage is
        // never negative.
        Signal::Modified(Modified { by: Modifier::Factor(_), .. }) | Signal::Sum(_) => {}
        Signal::Modified(modified) => refuse_negative(&modified.of, at.key("of"), problems),
        Signal::Backlog(it) => refuse_negative(&it.arrivals, at.key("backlog"), problems),
        Signal::Recorded(_) => {}
    }
}

/// Checks a signal that modifies another one by the field `name`.
fn check_modified(modified: &Modified, name: &str, at: At<'_>, problems: &mut Problems) {
    let Modified { by, of: signal } = modified;
    let example = match by {
        Modifier::Noise(noise) => {
            if !(1..=100).contains(&noise.percent) {
                let what = format!("expected noise from 1% to 100%, found {}%", noise.percent);
                problems.plain(at.key(name), what);
            }
            "noise: 10%"
        }
        Modifier::Factor(factor) => {
            check_signal(factor, at.key(name), problems);
            "factor: 2"
        }
        Modifier::Shift(_) => "shift: 1h",
        Modifier::Repeat(_) => "repeat: 24h",
    };
    let of = at.key("of");
    let noise = |by: &Modifier| matches!(by, Modifier::Noise(_));
    let is_noise = |signal: &Signal| matches!(signal, Signal::Modified(it) if noise(&it.by));
    if of.node().is_none() {
        let hint = format!("for example {{{example}, of: {{sine: …}}}}");
        problems.hint(at, format!("`{name}` requires `of`, the signal"), hint);
    } else if noise(by) && is_noise(signal) {
        problems.hint(of, "a signal with noise can't have further noise", "remove one `noise`");
    } else {
        check_signal(signal, of, problems);
    }
}

fn check_points(points: &[Point], at: At<'_>, problems: &mut Problems) {
    if points.is_empty() {
        problems.hint(at, "the list of values is empty", "for example [{at: 0s, value: 500m}]");
    }
    for (index, pair) in points.windows(2).enumerate() {
        let (last, time) = (pair[0].at, pair[1].at);
        if time <= last {
            let at = at.index(index + 1).key("at");
            let what = format!("{time} is not after {last}, the previous time");
            problems.hint(at, what, "sort the values by time");
        }
    }
}

fn check_name(name: &str, at: At<'_>, problems: &mut Problems) {
    if name.is_empty() {
        problems.plain(at.key("name"), "the name of the metric is empty");
    }
}

fn check_objects(metrics: &mut [ObjectMetric], at: At<'_>, problems: &mut Problems) {
    for (index, metric) in metrics.iter_mut().enumerate() {
        let at = at.index(index);
        check_name(&metric.name, at, problems);
        check_object(&metric.object, at.key("object"), problems);
        // Only the group of the object's apiVersion matters.
        let group = metric.object.group();
        metric.object.api_version = (!group.is_empty()).then(|| format!("{group}/v1").into());
        check_series(metric.all_series().collect(), at, problems);
        metric.normalize_series();
    }
    for (index, metric) in metrics.iter().enumerate() {
        let same =
            |other: &ObjectMetric| other.name == metric.name && other.object == metric.object;
        if metrics[..index].iter().any(same) {
            let ObjectMetric { name, object, .. } = metric;
            let (kind, object) = (object.group_kind(), &object.name);
            let what = format!("duplicate metric `{name}` of {kind} {object}");
            problems.plain(at.index(index).key("name"), what);
        }
    }
}

fn check_object(object: &DescribedObject, at: At<'_>, problems: &mut Problems) {
    for (field, text) in [("kind", &object.kind), ("name", &object.name)] {
        if text.is_empty() {
            problems.plain(at.key(field), format!("the {field} of the object is empty"));
        }
    }
    if object.kind.contains('.') {
        let hint = "write the group in `apiVersion`, for example networking.k8s.io/v1";
        let what = format!("{:?} is not a valid kind: a kind can't contain a dot", object.kind);
        problems.hint(at.key("kind"), what, hint);
    }
    let version = object.api_version.as_deref().unwrap_or("v1");
    let versioned = |version: &str| version.starts_with('v') && !version.contains(['/', '.']);
    let is_sound = match version.split_once('/') {
        Some((group, version)) => versioned(version) && !group.is_empty(),
        None => versioned(version),
    };
    if !is_sound {
        let hint = "for example v1 or networking.k8s.io/v1";
        let what = format!("{version:?} is not a valid apiVersion");
        problems.hint(at.key("apiVersion"), what, hint);
    }
}

/// Checks that a metric has exactly one of a value and series with different labels.
fn check_series(
    series: Vec<(&BTreeMap<String, String>, &Signal)>,
    at: At<'_>,
    problems: &mut Problems,
) {
    let fields = ["value", "series"];
    match at.given(&fields).as_slice() {
        ["value"] => {
            for (_, signal) in series {
                check_value(signal, at.key("value"), problems);
            }
        }
        ["series"] if series.is_empty() => {
            let hint = "for an empty response, use `metricEmpty` in the timeline";
            problems.hint(at.key("series"), "the list of series is empty", hint);
        }
        ["series"] => {
            for (index, (labels, signal)) in series.iter().enumerate() {
                let at = at.key("series").index(index);
                if series[..index].iter().any(|(other, _)| other == labels) {
                    let hint = "change the labels, or remove one of the series";
                    problems.hint(at, "another series has the same labels", hint);
                }
                check_value(signal, at.key("value"), problems);
            }
        }
        given => problems.plain(at, one_of(&fields, given)),
    }
}
