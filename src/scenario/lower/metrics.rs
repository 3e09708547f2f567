//! What the metrics API answers.

use super::cursor::{At, Problems};
use super::reach::{Reach, reachable};
use super::values::{amount, positive, resource, signal, span_or};
use crate::model::time::Time;
use crate::scenario::error::suggest;
use crate::scenario::file::{File, ResourceUsage as TypedUsage, Sampling as TypedSampling};
use crate::scenario::meant::{Metrics, ResourceUsage, Sampling, UsageSource};

pub(super) fn lower(
    file: &File,
    at: At<'_>,
    reach: (Option<Reach>, Option<Time>),
    problems: &mut Problems,
) -> Metrics {
    let Some(typed) = &file.metrics else {
        return Metrics::default();
    };
    let containers: Vec<&str> = match file.workload.containers.as_slice() {
        [] => vec!["app"],
        given => given.iter().map(|container| container.name.as_str()).collect(),
    };
    let mut resources: Vec<ResourceUsage> = Vec::with_capacity(typed.resource.len());
    for (index, usage) in typed.resource.iter().enumerate() {
        let at = at.key("resource").index(index);
        resource(&usage.name, at.key("name"), problems);
        if resources.iter().any(|other| *other.name == *usage.name) {
            problems.plain(at.key("name"), format!("the usage of {} is given twice", usage.name));
        }
        resources.extend(usage_of(usage, &containers, reach, at, problems));
    }
    let sampling = sampling(typed.sampling.as_ref(), at.key("sampling"), problems);
    Metrics { resources, sampling, ..Metrics::default() }
}

fn usage_of(
    typed: &TypedUsage,
    containers: &[&str],
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
        (["containers"], ..) => per_container(typed, containers, at.key("containers"), problems),
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
    let mut exceptions = Vec::with_capacity(typed.pods.len());
    for (index, exception) in typed.pods.iter().enumerate() {
        let at = at.key("pods").index(index);
        let set = reachable(&exception.pods, reach, at.key("pods"), problems);
        let value = signal(&exception.value, at.key("value"), problems);
        exceptions.extend(set.zip(value));
    }
    Some(ResourceUsage { name: typed.name.as_str().into(), source: source?, exceptions })
}

fn per_container(
    typed: &TypedUsage,
    known: &[&str],
    at: At<'_>,
    problems: &mut Problems,
) -> Option<UsageSource> {
    if typed.containers.is_empty() {
        problems.plain(at, "expected the usage of at least one container");
        return None;
    }
    let mut usages = Vec::with_capacity(typed.containers.0.len());
    for (name, typed) in &typed.containers.0 {
        if !known.contains(&name.as_str()) {
            let what = format!("the workload has no container `{name}`");
            problems.add(at.key_position(name).problem(what, suggest(name, known.iter().copied())));
        }
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
