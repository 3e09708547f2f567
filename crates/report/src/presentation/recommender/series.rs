//! The amounts and the usage of each container of a VPA over time.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Run, Timeline};
use crate::presentation::Value;
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{ContainerRecommendation, Resource, Snapshot};
use kube_lockstep_scenario::vpa::VpaValue;
use kube_lockstep_sim::run::recommender::PodUsage;

/// One resource of a container over time, in thousandths of a core or of a byte.
#[derive(Debug)]
pub(super) struct Amounts {
    pub container: Arc<str>,
    pub resource: Resource,
    /// The lowest usage of a pod.
    pub lowest: Vec<Value>,
    /// The highest usage of a pod.
    pub highest: Vec<Value>,
    pub lower: Vec<Value>,
    pub target: Vec<Value>,
    pub upper: Vec<Value>,
    /// The target without the policy. Empty if it is the target.
    pub uncapped: Vec<Value>,
    /// The target of the model where the recommender has another one. Empty if they agree.
    pub model: Vec<Value>,
    /// The request of new pods; with an HPA, that of pods whose requests the VPA changes as well.
    /// Empty without a request.
    pub request: Vec<Value>,
}

/// The series of a VPA, by container; cpu first.
pub(super) fn of(timeline: &Timeline<'_>) -> Vec<Amounts> {
    let snapshots = timeline.run.snapshots.iter();
    let recommended = snapshots
        .flat_map(|snapshot| containers(snapshot, timeline))
        .flat_map(|it| resources(it).map(|resource| (it.container_name.clone(), resource)));
    let used = timeline.run.model.usage.iter().flatten();
    let used = used.filter(|usage| usage.vpa == *timeline.vpa);
    let used = used.map(|usage| (usage.container.clone(), usage.resource));
    let keys: BTreeSet<(Arc<str>, Resource)> = recommended.chain(used).collect();
    keys.into_iter().map(|(container, resource)| one(timeline, container, resource)).collect()
}

fn containers<'s>(
    snapshot: &'s Snapshot,
    timeline: &Timeline<'_>,
) -> impl Iterator<Item = &'s ContainerRecommendation> {
    let status = snapshot.statuses.get(timeline.vpa);
    let recommendation = status.and_then(|status| status.recommendation.as_ref());
    recommendation.into_iter().flat_map(|it| &it.container_recommendations)
}

fn resources(container: &ContainerRecommendation) -> impl Iterator<Item = Resource> {
    let has = |resource: &Resource| {
        VpaValue::ALL.iter().any(|value| value.of(container).amount(resource.name()).is_some())
    };
    [Resource::Cpu, Resource::Memory].into_iter().filter(has)
}

/// An amount in thousandths.
fn milli(amount: &Quantity) -> f64 {
    amount.approx_f64() * 1000.0
}

fn one(timeline: &Timeline<'_>, container: Arc<str>, resource: Resource) -> Amounts {
    let run = &timeline.run;
    let value_in = |snapshot: &Snapshot, value: VpaValue| {
        let mut containers = containers(snapshot, timeline);
        let found = containers.find(|it| it.container_name == container)?;
        value.of(found).amount(resource.name()).map(milli)
    };
    let all = |value: VpaValue| -> Vec<Value> {
        run.snapshots.iter().map(|it| (it.at, value_in(it, value))).collect()
    };
    let (target, uncapped) = (all(VpaValue::Target), all(VpaValue::UncappedTarget));
    let uncapped = if target == uncapped { Vec::new() } else { uncapped };
    let mut model: Vec<Value> = Vec::new();
    if run.mark.is_some() {
        let differs =
            run.snapshots.iter().zip(&run.model.run.snapshots).map(|(observed, model)| {
                let target = value_in(model, VpaValue::Target);
                (model.at, target.filter(|_| target != value_in(observed, VpaValue::Target)))
            });
        model = differs.collect();
    }
    if model.iter().all(|(_, value)| value.is_none()) {
        model.clear();
    }
    let usage = |which: fn(&PodUsage) -> i64| -> Vec<Value> {
        let runs = run.model.usage.iter().zip(&run.model.run.snapshots);
        let at = |(usage, snapshot): (&Vec<PodUsage>, &Snapshot)| {
            let mut own = usage.iter().filter(|usage| usage.vpa == *timeline.vpa);
            let own = own.find(|it| it.container == container && it.resource == resource);
            // CPU is in thousandths already.
            let factor = if resource == Resource::Cpu { 1.0 } else { 1000.0 };
            (snapshot.at, own.map(|usage| which(usage) as f64 * factor))
        };
        runs.map(at).collect()
    };
    Amounts {
        lowest: usage(|usage| usage.lowest),
        highest: usage(|usage| usage.highest),
        lower: all(VpaValue::LowerBound),
        target,
        upper: all(VpaValue::UpperBound),
        uncapped,
        model,
        request: requests(run, &container, resource),
        container,
        resource,
    }
}

/// The request of a container: as written, and then of the last pod with a request by the VPA.
fn requests(run: &Run<'_>, container: &Arc<str>, resource: Resource) -> Vec<Value> {
    let mut written = run.scenario.workload.containers.iter().filter(|it| it.name == *container);
    let written = written.find_map(|it| it.requests.get(resource.name()));
    let changes = run.pod_changes.iter().flatten().filter_map(|change| {
        let container_requests = change.requests.iter().find(|(name, _)| name == container);
        Some((change.at, container_requests?.1.get(resource.name())?))
    });
    let first = written.map(|amount| (Time::ZERO, amount));
    let mut requests: Vec<Value> = Vec::new();
    for (at, amount) in first.into_iter().chain(changes) {
        let amount = Some(milli(amount));
        if requests.last().is_none_or(|(_, last)| *last != amount) {
            requests.push((at, amount));
        }
    }
    requests
}
