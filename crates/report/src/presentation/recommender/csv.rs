//! The runs of the VPA's recommender as CSV.

use std::collections::{BTreeMap, BTreeSet};

use crate::presentation::recommender::rows::{names, shown};
use crate::table::Rows;
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{ObjectName, Resource, Snapshot, VpaStatus};
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::run::VpaRun;
use kube_lockstep_sim::run::recommendation::{Amounts, amounts};
use kube_lockstep_sim::run::recommender::{ChartedRun, PodUsage, charted_recommender_run};

/// The columns of a prediction of the VPA's recommender.
const RECOMMENDATION: [&str; 11] = [
    "tick",
    "seconds",
    "vpa",
    "container",
    "resource",
    "usageLowest",
    "usageHighest",
    "lowerBound",
    "target",
    "upperBound",
    "uncappedTarget",
];

/// The runs of the VPA's recommender: a header, then one row for each run, VPA, container and
/// resource that has usage or a recommendation. Amounts are cores or bytes. The usage is that of
/// the pods with the lowest and the highest one.
pub(crate) fn recommendations(
    scenario: &VpaScenario,
    release: VpaRelease,
    rows: Rows,
) -> Vec<Vec<String>> {
    let ChartedRun { run, usage } = charted_recommender_run(scenario, release, &|_| false);
    let mut written = vec![RECOMMENDATION.map(str::to_owned).to_vec()];
    let shown = shown(rows, &run.snapshots, &names(scenario));
    let runs = run.snapshots.iter().zip(&usage).enumerate().filter(|(index, _)| shown[*index]);
    for (index, (snapshot, usage)) in runs {
        for (vpa, status) in &snapshot.statuses {
            for row in rows_of(vpa, status, usage) {
                let seconds = snapshot.at.since_start().as_secs_f64();
                let head = [(index + 1).to_string(), seconds.to_string(), vpa.name.to_string()];
                written.push(head.into_iter().chain(row).collect());
            }
        }
    }
    written
}

/// The cells of a VPA in one run for CSV, one row for each resource of a container: container,
/// resource, lowest and highest usage, lower bound, target, upper bound and uncapped target.
fn rows_of(vpa: &ObjectName, status: &VpaStatus, usage: &[PodUsage]) -> Vec<Vec<String>> {
    let amounts = amounts(status);
    let own = || usage.iter().filter(|usage| usage.vpa == *vpa);
    let mut keys: BTreeSet<(&str, Resource)> =
        amounts.iter().map(|it| (&*it.container, it.resource)).collect();
    keys.extend(own().map(|usage| (&*usage.container, usage.resource)));
    let rows = keys.into_iter().map(|(container, resource)| {
        let used = own().find(|it| *it.container == *container && it.resource == resource);
        let used = used.map_or([String::new(), String::new()], |used| {
            [used.lowest, used.highest].map(|amount| match resource {
                Resource::Cpu => (amount as f64 / 1000.0).to_string(),
                Resource::Memory => amount.to_string(),
            })
        });
        let mut amounts = amounts.iter();
        let recommended = amounts.find(|it| it.container == container && it.resource == resource);
        let value = |index: usize| recommended.map(|it| cell(it, index)).unwrap_or_default();
        let head = [container.to_owned(), resource.name().to_owned()];
        head.into_iter().chain(used).chain([1, 0, 2, 3].map(value)).collect()
    });
    rows.collect()
}

/// The recommendations with an HPA, by run of the recommender.
pub(crate) struct Recommended<'r> {
    vpa: Option<&'r VpaRun>,
    /// The amounts of each run, by container and resource.
    runs: Vec<BTreeMap<(String, &'static str), [String; 3]>>,
    /// The columns: each container and resource that has a recommendation in any run.
    columns: BTreeSet<(String, &'static str)>,
}

impl<'r> Recommended<'r> {
    pub(crate) fn new(vpa: Option<&'r VpaRun>) -> Recommended<'r> {
        let amounts =
            |snapshot: &Snapshot| snapshot.statuses.values().flat_map(bounds_of).collect();
        let snapshots = vpa.map_or(&[][..], VpaRun::snapshots);
        let runs: Vec<BTreeMap<_, _>> = snapshots.iter().map(amounts).collect();
        let columns = runs.iter().flat_map(BTreeMap::keys).cloned().collect();
        Recommended { vpa, runs, columns }
    }

    pub(crate) fn titles(&self) -> impl Iterator<Item = String> {
        self.columns.iter().flat_map(|(container, resource)| {
            ["lowerBound", "target", "upperBound"]
                .map(|bound| format!("vpa {container} {resource} {bound}"))
        })
    }

    /// The recommendations of the last run at or before a time.
    pub(crate) fn cells(&self, at: Time) -> impl Iterator<Item = String> {
        let run = self.vpa.and_then(|vpa| vpa.index_at(at)).and_then(|index| self.runs.get(index));
        self.columns.iter().flat_map(move |column| {
            run.and_then(|run| run.get(column)).cloned().unwrap_or_default()
        })
    }
}

/// The lower bound, the target and the upper bound of each container and resource, for CSV.
fn bounds_of(status: &VpaStatus) -> Vec<((String, &'static str), [String; 3])> {
    let amounts = amounts(status).into_iter();
    amounts
        .map(|it| {
            let cells = [1, 0, 2].map(|index| cell(&it, index));
            ((it.container, it.resource.name()), cells)
        })
        .collect()
}

/// An amount in cores or bytes. Empty: there is none.
fn cell(amounts: &Amounts, index: usize) -> String {
    match amounts.texts[index].is_empty() {
        true => String::new(),
        false => amounts.values[index].to_string(),
    }
}
