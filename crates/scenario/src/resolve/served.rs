//! Checks that the scenario serves the metrics that the HPA scales on. The API responds with 404
//! for a metric without an entry, which is usually a mistake. If the scenario expects the failure
//! by its reason, the metric is not reported.

use std::collections::BTreeMap;

use super::cursor::{At, Problems};
use super::workload::running;
use crate::diagnostic::{Diagnostic, Hint, Place};
use crate::error::{similar, suggest};
use crate::raw::Workload;
use crate::resolved::{Expectation, Metrics, ObjectMetric};
use kube_autoscaler_models::api::{
    CrossVersionObjectReference, HpaSpec, MetricIdentifier, MetricSourceType, MetricSpec,
    ObjectMetricSource, with_group,
};
use kube_autoscaler_models::selector::Selector;

/// A metric that the HPA scales on, and its position in the file.
pub(super) struct Asked {
    metric: MetricSpec,
    place: Place,
}

impl Asked {
    /// The type of the metric.
    pub(super) fn source_type(&self) -> MetricSourceType {
        self.metric.type_
    }

    /// The metric's name, and its container if it has one.
    pub(super) fn name(&self) -> (&str, Option<&str>) {
        let MetricSpec { resource, container_resource, pods, object, external, .. } = &self.metric;
        let named = [
            pods.as_ref().map(|it| &it.metric.name),
            object.as_ref().map(|it| &it.metric.name),
            external.as_ref().map(|it| &it.metric.name),
            resource.as_ref().map(|it| &it.name),
            container_resource.as_ref().map(|it| &it.name),
        ];
        let name = named.into_iter().flatten().next().map_or("", |name| &**name);
        (name, container_resource.as_ref().map(|it| &*it.container))
    }
}

/// The metrics of a manifest.
pub(super) fn asked(spec: &HpaSpec, at: At<'_>) -> Vec<Asked> {
    let metrics = spec.metrics.iter().enumerate();
    let asked = metrics.map(|(index, metric)| {
        let at = at.key("metrics").index(index);
        let at = match metric.type_ {
            MetricSourceType::Resource => at.key("resource").key("name"),
            MetricSourceType::ContainerResource => at.key("containerResource").key("container"),
            MetricSourceType::Pods => at.key("pods").key("metric").key("name"),
            MetricSourceType::Object => at.key("object").key("metric").key("name"),
            MetricSourceType::External => at.key("external").key("metric").key("name"),
        };
        Asked { metric: metric.clone(), place: at.place() }
    });
    asked.collect()
}

impl Asked {
    /// The metric.
    pub(super) fn into_metric(self) -> MetricSpec {
        self.metric
    }

    /// Sets the file of the manifest, if it is not the scenario.
    pub(super) fn in_file(&mut self, file: &str) {
        self.place.file = Some(file.to_owned());
    }
}

/// Rejects metrics without an entry. Metrics with an entry that never has a value get a note,
/// because this is unusual and may be intended.
pub(super) fn check(
    asked: Vec<Asked>,
    metrics: &Metrics,
    workload: &Workload,
    expect: &[Expectation],
    problems: &mut Problems,
) -> Vec<String> {
    let mut notes = Vec::new();
    for Asked { metric, place } in asked {
        if let Some((reason, what, hint)) = never_available(&metric, metrics, workload)
            && !is_intended(reason, expect)
        {
            notes.push(format!("{what}; {hint}"));
        }
        let Some((reason, what, hint)) = missing(&metric, metrics, workload) else { continue };
        if !is_intended(reason, expect) {
            let or = format!("if this is intended, expect the reason {reason}");
            let hint = match hint {
                Hint::Similar(_) => format!("{hint} Or, {or}"),
                _ => format!("{hint}; or, {or}"),
            };
            problems.add(Diagnostic::new(what).hint(hint).at_place(place));
        }
    }
    notes
}

/// Returns true if the author expects that a metric fails.
fn is_intended(reason: &str, expect: &[Expectation]) -> bool {
    expect.iter().filter(|expected| expected.never.is_none()).any(|expected| {
        expected.conditions.iter().any(|condition| condition.reason.as_deref() == Some(reason))
            || expected.events.iter().any(|event| event.reason == reason)
    })
}

/// The reason of the failure of an absent metric, the problem, and the solution.
type Missing = (&'static str, String, Hint);

fn missing(metric: &MetricSpec, metrics: &Metrics, workload: &Workload) -> Option<Missing> {
    if let Some(source) = &metric.container_resource {
        let (container, known) = (&*source.container, running(workload));
        let what = format!("the HPA scales on the container `{container}`, which no pod has");
        let hint = suggest(container, known.iter().copied())?;
        let there = known.contains(&container);
        return (!there).then_some(("FailedGetContainerResourceMetric", what, hint));
    }
    if let Some(source) = &metric.pods {
        let names = || metrics.pods.iter().map(|metric| &*metric.name);
        let name = &*source.metric.name;
        let labels = required_labels(&source.metric).map(|labels| format!("labels: {labels}, "));
        let labels = labels.unwrap_or_default();
        let entry = format!("add {{name: {name}, {labels}perPod: …}} to `metrics.pods`");
        let there = names().any(|known| known == name);
        let what = no_entry("metrics.pods", &format!("`{name}`"));
        return (!there).then(|| ("FailedGetPodsMetric", what, near(name, names(), entry)));
    }
    if let Some(source) = &metric.object {
        let (name, kind) = (&*source.metric.name, kind_of(&source.described_object));
        let same = metrics.objects.iter().filter(|metric| *metric.name == *name);
        let there = object_metric(source, metrics).is_some();
        let value = example_value(&source.metric);
        let entry = format!("add {{name: {name}, object: …, {value}}} to `metrics.object`");
        let others: Vec<String> = same
            .map(|metric| format!("{} {}", metric.object.group_kind(), metric.object.name))
            .collect();
        let hint = if others.is_empty() {
            near(name, metrics.objects.iter().map(|metric| &*metric.name), entry)
        } else {
            let others = others.join(", ");
            format!("`metrics.object` has this metric for {others}: correct `object` of the entry")
                .into()
        };
        let object = &source.described_object.name;
        let what = no_entry("metrics.object", &format!("`{name}` of {kind} {object}"));
        return (!there).then_some(("FailedGetObjectMetric", what, hint));
    }
    let source = metric.external.as_ref()?;
    let names = || metrics.externals.iter().map(|metric| &*metric.name);
    let name = &*source.metric.name;
    let value = example_value(&source.metric);
    let entry = format!("add {{name: {name}, {value}}} to `metrics.external`");
    let there = names().any(|known| known == name);
    let what = no_entry("metrics.external", &format!("`{name}`"));
    (!there).then(|| ("FailedGetExternalMetric", what, near(name, names(), entry)))
}

/// `Ingress.networking.k8s.io`.
fn kind_of(object: &CrossVersionObjectReference) -> String {
    with_group(&object.kind, object.group())
}

fn object_metric<'m>(
    source: &ObjectMetricSource,
    metrics: &'m Metrics,
) -> Option<&'m ObjectMetric> {
    let kind = kind_of(&source.described_object);
    metrics.objects.iter().find(|metric| {
        *metric.name == *source.metric.name
            && *metric.object.group_kind() == *kind
            && *metric.object.name == *source.described_object.name
    })
}

/// The reason of the permanent failure of an existing metric, and the note.
fn never_available(metric: &MetricSpec, metrics: &Metrics, workload: &Workload) -> Option<Missing> {
    if let Some(source) = &metric.resource {
        let reason = "FailedGetResourceMetric";
        let is_utilization = source.target.average_utilization.is_some();
        let request = || is_utilization.then(|| no_request(&source.name, reason, workload));
        return no_usage(&source.name, reason, metrics).or_else(|| request().flatten());
    }
    if let Some(source) = &metric.container_resource {
        return no_usage(&source.name, "FailedGetContainerResourceMetric", metrics);
    }
    if let Some(source) = &metric.pods {
        let found = metrics.pods.iter().find(|metric| *metric.name == *source.metric.name)?;
        return not_selected(&source.metric, "FailedGetPodsMetric", &[&found.labels]);
    }
    if let Some(source) = &metric.object {
        let found = object_metric(source, metrics)?;
        let labels: Vec<_> = found.all_series().map(|(labels, _)| labels).collect();
        return not_selected(&source.metric, "FailedGetObjectMetric", &labels);
    }
    let source = metric.external.as_ref()?;
    let found = metrics.externals.iter().find(|metric| *metric.name == *source.metric.name)?;
    let labels: Vec<_> = found.all_series().map(|(labels, _)| labels).collect();
    not_selected(&source.metric, "FailedGetExternalMetric", &labels)
}

/// Checks that the scenario has usage of a resource.
fn no_usage(name: &str, reason: &'static str, metrics: &Metrics) -> Option<Missing> {
    let names = || metrics.resources.iter().map(|metric| &*metric.name);
    if names().any(|known| known == name) {
        return None;
    }
    let what = format!(
        "the HPA scales on `{name}`, which `metrics.resource` does not contain: no pod has a value"
    );
    let entry = format!("add {{name: {name}, perPod: …}} to `metrics.resource`");
    Some((reason, what, near(name, names(), entry)))
}

/// Checks that a container, or the pod as a whole, requests a resource.
fn no_request(name: &str, reason: &'static str, workload: &Workload) -> Option<Missing> {
    let pod_requests = workload.resources.iter().map(|resources| &resources.requests);
    let init = workload.init_containers.detailed().iter().map(|container| &container.requests);
    let requests = workload.containers.iter().map(|container| &container.requests);
    if requests.chain(init).chain(pod_requests).any(|requests| requests.contains_key(name)) {
        return None;
    }
    let what = format!("the HPA targets a utilization of `{name}`, but no container requests it");
    let hint = format!("add `requests: {{{name}: …}}` to a container");
    Some((reason, what, hint.into()))
}

/// Checks that the selector matches at least one of the series.
fn not_selected(
    metric: &MetricIdentifier,
    reason: &'static str,
    series: &[&BTreeMap<String, String>],
) -> Option<Missing> {
    let selector = Selector::from_label_selector(metric.selector.as_ref()).ok()?;
    if metric.selector.is_none() || series.iter().any(|labels| selector.matches(labels)) {
        return None;
    }
    let name = &metric.name;
    let what = format!("the HPA selects series of `{name}` with {selector}, which matches none");
    let mut known: Vec<String> = series.iter().map(|labels| flow(labels.iter())).collect();
    known.dedup();
    let hint = match known.as_slice() {
        [] => format!("add `{}` to the metric", example_value(metric)),
        known => format!("the series have the labels {}", known.join(", ")),
    };
    Some((reason, what, hint.into()))
}

/// An example of a value that the selector matches.
fn example_value(metric: &MetricIdentifier) -> String {
    match required_labels(metric) {
        Some(labels) => format!("series: [{{labels: {labels}, value: …}}]"),
        None => "value: …".to_owned(),
    }
}

/// The labels that the selector requires, if they are known.
fn required_labels(metric: &MetricIdentifier) -> Option<String> {
    let labels = &metric.selector.as_ref()?.match_labels;
    (!labels.is_empty()).then(|| flow(labels.iter()))
}

/// `{queue: orders}`.
fn flow<'a>(labels: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    let entries: Vec<String> = labels.map(|(key, value)| format!("{key}: {value}")).collect();
    format!("{{{}}}", entries.join(", "))
}

fn no_entry(list: &str, metric: &str) -> String {
    format!(
        "the HPA scales on {metric}, which `{list}` does not contain: the API responds with 404"
    )
}

/// A hint with a similar name, or else with the entry to add.
fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>, entry: String) -> Hint {
    similar(name, known).unwrap_or(entry.into())
}
