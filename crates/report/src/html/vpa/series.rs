//! The amounts and the usage of each container of a VPA over time.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{VpaRun, VpaTimeline};
use crate::html::lane::ChartAxis;
use crate::html::timeline::Value;
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{ContainerRecommendation, Resource, Snapshot};
use kube_lockstep_scenario::vpa::VpaValue;
use kube_lockstep_sim::run::recommender::PodUsage;

/// One resource of a container over time, in thousandths of a core or of a byte.
#[derive(Debug)]
pub(super) struct Series {
    pub container: Arc<str>,
    pub resource: Resource,
    /// Whether pods have different usage at the same time.
    pub(super) has_range: bool,
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
pub(super) fn of(timeline: &VpaTimeline<'_>) -> Vec<Series> {
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
    timeline: &VpaTimeline<'_>,
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

fn one(timeline: &VpaTimeline<'_>, container: Arc<str>, resource: Resource) -> Series {
    let run = timeline.run;
    let thinned = |values: Vec<Value>, keep: Keep| thin(values, timeline.axis(), keep);
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
    let (lowest, highest) = (usage(|usage| usage.lowest), usage(|usage| usage.highest));
    let has_range = lowest != highest;
    let (lowest, highest) = (thinned(lowest, Keep::Least), thinned(highest, Keep::Most));
    let request = requests(run, &container, resource);
    Series {
        has_range,
        lowest,
        highest,
        lower: thinned(all(VpaValue::LowerBound), Keep::Last),
        target: thinned(target, Keep::Last),
        upper: thinned(all(VpaValue::UpperBound), Keep::Last),
        uncapped: thinned(uncapped, Keep::Last),
        model: thinned(model, Keep::Last),
        request,
        container,
        resource,
    }
}

/// The request of a container: as written, and then of the last pod with a request by the VPA.
fn requests(run: &VpaRun<'_>, container: &Arc<str>, resource: Resource) -> Vec<Value> {
    let mut written = run.scenario.workload.containers.iter().filter(|it| it.name == *container);
    let written = written.find_map(|it| it.requests.get(resource.name()));
    let changes = run.pod_changes.iter().flatten().filter_map(|change| {
        let of_container = change.requests.iter().find(|(name, _)| name == container);
        Some((change.at, of_container?.1.get(resource.name())?))
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

/// The value to keep of several in a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Keep {
    Least,
    Most,
    Last,
}

/// At most one value for each column of a chart, from the beginning of the column.
fn thin(values: Vec<Value>, axis: ChartAxis, keep: Keep) -> Vec<Value> {
    let columns = axis.columns;
    if values.len() <= columns {
        return values;
    }
    let column = |at: Time| (axis.percent(at) / 100.0 * columns as f64) as usize;
    let mut thinned: Vec<Value> = Vec::new();
    for group in values.chunk_by(|one, other| column(one.0) == column(other.0)) {
        let known = group.iter().filter_map(|(_, value)| *value);
        let value = match keep {
            Keep::Least => known.reduce(f64::min),
            Keep::Most => known.reduce(f64::max),
            Keep::Last => group.last().and_then(|(_, value)| *value),
        };
        // Round coordinates are short.
        let begin = column(group[0].0) as f64 / columns as f64;
        thinned.push((Time((axis.end().0 as f64 * begin) as i64), value));
    }
    thinned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_keeps_the_range_of_its_values() {
        let values: Vec<Value> =
            (0..100).map(|second| (Time::from_secs(second), Some((second % 10) as f64))).collect();
        let axis = ChartAxis::until(Time::from_secs(100), 10);
        let thinned = |keep| -> Vec<f64> {
            let values = thin(values.clone(), axis, keep);
            values.into_iter().filter_map(|(_, value)| value).collect()
        };
        assert_eq!(thinned(Keep::Least), [0.0; 10]);
        assert_eq!(thinned(Keep::Most), [9.0; 10]);
        assert_eq!(thinned(Keep::Last), [9.0; 10]);
        let wide = ChartAxis::until(Time::from_secs(100), 100);
        assert_eq!(thin(values.clone(), wide, Keep::Most), values);
    }
}
