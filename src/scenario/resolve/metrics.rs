//! What the metrics API metrics.k8s.io answers; the others' part is in `custom`.

use super::cursor::{At, Problems};
use super::custom;
use super::reach::{Reach, reachable};
use super::values::{amount, positive, resource, signal, span_or};
use super::workload::known_container;
use crate::model::time::Time;
use crate::scenario::raw::{
    Exception, ResourceUsage as TypedUsage, Sampling as TypedSampling, ScenarioFile,
    Workload as TypedWorkload,
};
use crate::scenario::resolved::{Metrics, PodSet, ResourceUsage, Sampling, Signal, UsageSource};

pub(super) fn resolve(
    file: &ScenarioFile,
    at: At<'_>,
    reach: (Option<Reach>, Option<Time>),
    problems: &mut Problems,
) -> Metrics {
    let Some(typed) = &file.metrics else {
        return Metrics::default();
    };
    let mut resources: Vec<ResourceUsage> = Vec::with_capacity(typed.resource.len());
    for (index, usage) in typed.resource.iter().enumerate() {
        let at = at.key("resource").index(index);
        resource(&usage.name, at.key("name"), problems);
        if resources.iter().any(|other| *other.name == *usage.name) {
            problems.plain(at.key("name"), format!("the usage of {} is given twice", usage.name));
        }
        resources.extend(usage_of(usage, &file.workload, reach, at, problems));
    }
    let sampling = sampling(typed.sampling.as_ref(), at.key("sampling"), problems);
    let pods = custom::pods(&typed.pods, reach, at.key("pods"), problems);
    let objects = custom::objects(&typed.object, at.key("object"), problems);
    let externals = custom::externals(&typed.external, at.key("external"), problems);
    Metrics { resources, pods, objects, externals, sampling }
}

fn usage_of(
    typed: &TypedUsage,
    workload: &TypedWorkload,
    reach: (Option<Reach>, Option<Time>),
    at: At<'_>,
    problems: &mut Problems,
) -> Option<ResourceUsage> {
    let limit = typed.limit.as_ref().map(|limit| amount(limit, at.key("limit"), problems));
    if typed.limit.is_some() && typed.load.is_none() {
        problems.plain(at.key_position("limit"), "`limit` goes with `load` only");
    }
    let given: Vec<&str> = ["perPod", "containers", "load"]
        .into_iter()
        .filter(|name| at.key(name).node().is_some())
        .collect();
    let source = match (given.as_slice(), &typed.per_pod, &typed.load) {
        (["perPod"], Some(typed), _) => {
            signal(typed, at.key("perPod"), problems).map(UsageSource::PerPod)
        }
        (["containers"], ..) => per_container(typed, workload, at.key("containers"), problems),
        (["load"], _, Some(typed)) => signal(typed, at.key("load"), problems)
            .map(|total| UsageSource::Load { total, limit: limit.flatten() }),
        _ => {
            let found = if given.is_empty() { "none".to_owned() } else { given.join(", ") };
            let what =
                format!("expected exactly one of perPod, containers and load, found {found}");
            problems.plain(at, what);
            None
        }
    };
    let exceptions = exceptions(&typed.pods, reach, at.key("pods"), problems);
    Some(ResourceUsage { name: typed.name.as_str().into(), source: source?, exceptions })
}

/// Pods that differ.
pub(super) fn exceptions(
    typed: &[Exception],
    reach: (Option<Reach>, Option<Time>),
    at: At<'_>,
    problems: &mut Problems,
) -> Vec<(PodSet, Signal)> {
    let mut exceptions = Vec::with_capacity(typed.len());
    for (index, exception) in typed.iter().enumerate() {
        let at = at.index(index);
        let set = reachable(&exception.pods, reach, at.key("pods"), problems);
        let value = signal(&exception.value, at.key("value"), problems);
        exceptions.extend(set.zip(value));
    }
    exceptions
}

fn per_container(
    typed: &TypedUsage,
    workload: &TypedWorkload,
    at: At<'_>,
    problems: &mut Problems,
) -> Option<UsageSource> {
    if typed.containers.is_empty() {
        problems.plain(at, "expected the usage of at least one container");
        return None;
    }
    let mut usages = Vec::with_capacity(typed.containers.0.len());
    for (name, typed) in &typed.containers.0 {
        known_container(name, workload, at.key_position(name), problems);
        let value = signal(typed, at.key(name), problems);
        usages.extend(value.map(|value| (name.as_str().into(), value)));
    }
    Some(UsageSource::PerContainer(usages))
}

fn sampling(typed: Option<&TypedSampling>, at: At<'_>, problems: &mut Problems) -> Sampling {
    let default = Sampling::default();
    let Some(typed) = typed else { return default };
    let resolution = typed.resolution.as_ref();
    Sampling {
        window: span_or(typed.window.as_ref(), default.window, at.key("window"), problems),
        lag: span_or(typed.lag.as_ref(), default.lag, at.key("lag"), problems),
        resolution: resolution.and_then(|text| positive(text, at.key("resolution"), problems)),
    }
}
