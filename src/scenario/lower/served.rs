//! Whether the metrics that the HPA asks for are there: a metric without an entry is answered with
//! 404, which its author has mostly just forgotten. Where that is the point, the scenario expects
//! the failure by its reason, and nothing is said.

use super::cursor::{At, Problems};
use super::workload::running;
use crate::model::api::{HpaSpec, MetricSourceType, MetricSpec, with_group};
use crate::scenario::error::{Problem, suggest};
use crate::scenario::file::Workload;
use crate::scenario::meant::{Expectation, Metrics, When};

/// A metric that the HPA asks for, and where it does.
pub(super) struct Asked {
    metric: MetricSpec,
    place: Problem,
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
        Asked { metric: metric.clone(), place: at.problem("", None) }
    });
    asked.collect()
}

impl Asked {
    /// The manifest stands in another file.
    pub(super) fn in_file(&mut self, file: &str) {
        self.place.file = Some(file.to_owned());
    }
}

/// Says which metrics are not there.
pub(super) fn check(
    asked: Vec<Asked>,
    metrics: &Metrics,
    workload: &Workload,
    expect: &[Expectation],
    problems: &mut Problems,
) {
    for Asked { metric, place } in asked {
        let Some((reason, what, hint)) = missing(&metric, metrics, workload) else { continue };
        if !is_meant(reason, expect) {
            let or = format!("if that is the point, expect {reason}");
            let hint = Some(match hint.strip_suffix('?') {
                Some(_) => format!("{hint} Or, {or}"),
                None => format!("{hint}; or, {or}"),
            });
            problems.add(Problem { what, hint, ..place });
        }
    }
}

/// Whether the author expects that a metric fails.
fn is_meant(reason: &str, expect: &[Expectation]) -> bool {
    expect.iter().filter(|expected| !matches!(expected.when, When::Never(..))).any(|expected| {
        let what = &expected.what;
        what.conditions.iter().any(|condition| condition.reason.as_deref() == Some(reason))
            || what.events.iter().any(|event| event.reason == reason)
    })
}

/// The reason with which a metric fails that is not there, what is wrong, and what to do.
fn missing(
    metric: &MetricSpec,
    metrics: &Metrics,
    workload: &Workload,
) -> Option<(&'static str, String, String)> {
    if let Some(source) = &metric.container_resource {
        let (container, known) = (&*source.container, running(workload));
        let what = format!("the HPA scales on container `{container}`, which no pod has");
        let hint = suggest(container, known.iter().copied()).unwrap_or_default();
        let there = known.contains(&container);
        return (!there).then_some(("FailedGetContainerResourceMetric", what, hint));
    }
    if let Some(source) = &metric.pods {
        let names = || metrics.pods.iter().map(|metric| &*metric.name);
        let name = &*source.metric.name;
        let entry = format!("add {{name: {name}, perPod: …}} to it");
        let there = names().any(|known| known == name);
        let what = no_entry("metrics.pods", &format!("`{name}`"));
        return (!there).then(|| ("FailedGetPodsMetric", what, near(name, names(), entry)));
    }
    if let Some(source) = &metric.object {
        let (name, object) = (&*source.metric.name, &source.described_object);
        let version = object.api_version.as_deref().unwrap_or_default();
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let kind = with_group(&object.kind, group);
        let same = metrics.objects.iter().filter(|metric| *metric.name == *name);
        let there = same.clone().any(|of| (&*of.kind, &*of.object) == (&kind, &object.name));
        let entry = format!("add {{name: {name}, object: …, value: …}} to it");
        let others: Vec<String> =
            same.map(|metric| format!("{} {}", metric.kind, metric.object)).collect();
        let hint = if others.is_empty() {
            near(name, metrics.objects.iter().map(|metric| &*metric.name), entry)
        } else {
            format!("it is there of {}", others.join(", "))
        };
        let what = no_entry("metrics.object", &format!("`{name}` of {kind} {}", object.name));
        return (!there).then_some(("FailedGetObjectMetric", what, hint));
    }
    let source = metric.external.as_ref()?;
    let names = || metrics.externals.iter().map(|metric| &*metric.name);
    let name = &*source.metric.name;
    let entry = format!("add {{name: {name}, value: …}} to it");
    let there = names().any(|known| known == name);
    let what = no_entry("metrics.external", &format!("`{name}`"));
    (!there).then(|| ("FailedGetExternalMetric", what, near(name, names(), entry)))
}

fn no_entry(list: &str, metric: &str) -> String {
    format!("the HPA scales on {metric}, which `{list}` does not have: the API answers 404")
}

/// What was probably meant; else how to add it.
fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>, entry: String) -> String {
    suggest(name, known).filter(|hint| hint.starts_with("did")).unwrap_or(entry)
}
