//! What custom.metrics.k8s.io and external.metrics.k8s.io answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cursor::{At, Problems};
use super::metrics::exceptions;
use super::reach::Reach;
use super::values::{quantity, signal};
use crate::model::api::with_group;
use crate::model::time::Time;
use crate::scenario::raw::{self, Series as TypedSeries, Signal as TypedSignal};
use crate::scenario::resolved::{ExternalMetric, ObjectMetric, PodsMetric, Signal, UsageSource};
use crate::scenario::scalars::Entries;

/// Labels and values.
type Series = Vec<(BTreeMap<String, String>, Signal)>;

/// Metrics of the pods.
pub(super) fn pods(
    typed: &[raw::PodsMetric],
    reach: (Option<Reach>, Option<Time>),
    at: At<'_>,
    problems: &mut Problems,
) -> Vec<PodsMetric> {
    let mut metrics: Vec<PodsMetric> = Vec::with_capacity(typed.len());
    for (index, typed) in typed.iter().enumerate() {
        let at = at.index(index);
        named(&typed.name, at, problems);
        if metrics.iter().any(|other| *other.name == *typed.name) {
            let what = format!("the metric {} of the pods is given twice", typed.name);
            problems.plain(at.key("name"), what);
        }
        let source = source(typed, at, problems);
        let exceptions = exceptions(&typed.pods, reach, at.key("pods"), problems);
        let name: Arc<str> = typed.name.as_str().into();
        let labels = labels(&typed.labels);
        metrics.extend(source.map(|source| PodsMetric { name, labels, source, exceptions }));
    }
    metrics
}

fn source(typed: &raw::PodsMetric, at: At<'_>, problems: &mut Problems) -> Option<UsageSource> {
    // A metric may be negative, hence its limit, too.
    let limit = typed.limit.as_ref().map(|limit| quantity(limit, at.key("limit"), problems));
    if typed.limit.is_some() && typed.load.is_none() {
        problems.plain(at.key_position("limit"), "`limit` goes with `load` only");
    }
    match (&typed.per_pod, &typed.load) {
        (Some(typed), None) => signal(typed, at.key("perPod"), problems).map(UsageSource::PerPod),
        (None, Some(typed)) => signal(typed, at.key("load"), problems)
            .map(|total| UsageSource::Load { total, limit: limit.flatten() }),
        (per_pod, _) => {
            let found = if per_pod.is_some() { "both" } else { "none" };
            problems.plain(at, format!("expected exactly one of perPod and load, found {found}"));
            None
        }
    }
}

/// Metrics of other objects.
pub(super) fn objects(
    typed: &[raw::ObjectMetric],
    at: At<'_>,
    problems: &mut Problems,
) -> Vec<ObjectMetric> {
    let mut metrics: Vec<ObjectMetric> = Vec::with_capacity(typed.len());
    for (index, typed) in typed.iter().enumerate() {
        let at = at.index(index);
        named(&typed.name, at, problems);
        let kind = described_kind(&typed.object, at.key("object"), problems);
        let series = series(typed.value.as_ref(), &typed.series, at, problems);
        let (Some(kind), Some(series)) = (kind, series) else { continue };
        let metric = ObjectMetric {
            name: typed.name.as_str().into(),
            kind,
            object: typed.object.name.as_str().into(),
            series,
        };
        let same = |other: &ObjectMetric| {
            (&other.name, &other.kind, &other.object)
                == (&metric.name, &metric.kind, &metric.object)
        };
        if metrics.iter().any(same) {
            let ObjectMetric { name, kind, object, .. } = &metric;
            let what = format!("the metric {name} of {kind} {object} is given twice");
            problems.plain(at.key("name"), what);
        }
        metrics.push(metric);
    }
    metrics
}

/// Kind and group of the object.
fn described_kind(
    typed: &raw::DescribedObject,
    at: At<'_>,
    problems: &mut Problems,
) -> Option<Arc<str>> {
    let mut sound = true;
    for (field, text) in [("kind", &typed.kind), ("name", &typed.name)] {
        if text.is_empty() {
            problems.plain(at.key(field), format!("an empty {field} of an object"));
            sound = false;
        }
    }
    if typed.kind.contains('.') {
        let hint = "the group belongs to apiVersion, for instance networking.k8s.io/v1";
        problems.hint(at.key("kind"), format!("a kind has no dot: {}", typed.kind), hint);
        sound = false;
    }
    let version = typed.api_version.as_deref().unwrap_or("v1");
    let versioned = |version: &str| version.starts_with('v') && !version.contains(['/', '.']);
    let group = match version.split_once('/') {
        Some((group, version)) if versioned(version) && !group.is_empty() => group,
        None if versioned(version) => "",
        _ => {
            let hint = "for instance v1 or networking.k8s.io/v1";
            problems.hint(at.key("apiVersion"), format!("no apiVersion: {version:?}"), hint);
            return None;
        }
    };
    sound.then(|| with_group(&typed.kind, group).into())
}

/// Metrics from outside of the cluster.
pub(super) fn externals(
    typed: &[raw::ExternalMetric],
    at: At<'_>,
    problems: &mut Problems,
) -> Vec<ExternalMetric> {
    let mut metrics: Vec<ExternalMetric> = Vec::with_capacity(typed.len());
    for (index, typed) in typed.iter().enumerate() {
        let at = at.index(index);
        named(&typed.name, at, problems);
        if metrics.iter().any(|other| *other.name == *typed.name) {
            let what = format!("the external metric {} is given twice", typed.name);
            problems.hint(at.key("name"), what, "write its series into one `series`");
        }
        let series = series(typed.value.as_ref(), &typed.series, at, problems);
        let name: Arc<str> = typed.name.as_str().into();
        metrics.extend(series.map(|series| ExternalMetric { name, series }));
    }
    metrics
}

fn named(name: &str, at: At<'_>, problems: &mut Problems) {
    if name.is_empty() {
        problems.plain(at.key("name"), "an empty name of a metric");
    }
}

fn labels(typed: &Entries<String>) -> BTreeMap<String, String> {
    typed.0.iter().cloned().collect()
}

/// One value, or several by labels.
fn series(
    value: Option<&TypedSignal>,
    typed: &[TypedSeries],
    at: At<'_>,
    problems: &mut Problems,
) -> Option<Series> {
    match (value, at.key("series").node().is_some()) {
        (Some(value), false) => {
            let value = signal(value, at.key("value"), problems)?;
            return Some(vec![(BTreeMap::new(), value)]);
        }
        (None, true) => {}
        (value, _) => {
            let found = if value.is_some() { "both" } else { "none" };
            problems.plain(at, format!("expected exactly one of value and series, found {found}"));
            return None;
        }
    }
    let at = at.key("series");
    if typed.is_empty() {
        let hint = "an answer without series is `metricEmpty`, in the timeline";
        problems.hint(at, "an empty list of series", hint);
        return None;
    }
    let mut series: Series = Vec::with_capacity(typed.len());
    for (index, typed) in typed.iter().enumerate() {
        let at = at.index(index);
        let labels = labels(&typed.labels);
        if series.iter().any(|(other, _)| *other == labels) {
            problems.plain(at, "two series have the same labels");
        }
        series.extend(signal(&typed.value, at.key("value"), problems).map(|of| (labels, of)));
    }
    (series.len() == typed.len()).then_some(series)
}
