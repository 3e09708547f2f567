//! The ticks of a prediction as CSV, for spreadsheets and scripts.

use std::collections::{BTreeMap, BTreeSet};

use super::metric::{self, Unit};
use super::presentation::{hpa, recommender};
use super::table::Rows;
use kube_autoscaler_models::derivation::MetricDerivation;
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{ObjectName, Resource, Snapshot, VpaStatus};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::Timestamp;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::run::recommendation::{Amounts, amounts};
use kube_lockstep_sim::run::recommender::{ChartedRun, PodUsage, charted_recommender_run};
use kube_lockstep_sim::run::{FreeRun, FreeTick, VpaRun};

/// The columns beside those of the metrics.
const BEFORE: [&str; 3] = ["tick", "seconds", "hpa"];
const AFTER: [&str; 10] = [
    "ready",
    "unready",
    "missing",
    "ignored",
    "proposal",
    "desired",
    "replicasBefore",
    "replicasAfter",
    "limitedBy",
    "why",
];

/// The ticks of a run: a header, then one row for each tick. Each metric has two columns: its value
/// as the controller saw it, and its target. Both are percentages of the request for utilization,
/// and otherwise in the unit of the metric: cores, bytes, requests. A metric that failed has no
/// value. If the load is recorded with dates, each row has the time in UTC. With a VPA, the last
/// columns are the recommendations at that time: the lower bound, the target and the upper bound of
/// each resource of a container, in cores or bytes.
pub(super) fn ticks(scenario: &Scenario, run: &FreeRun, rows: Rows) -> Vec<Vec<String>> {
    let columns = metric_columns(run);
    let shown = hpa::rows::shown(rows, run);
    let mut before: Vec<&str> = BEFORE.to_vec();
    before.extend(scenario.clock.map(|_| "time"));
    let head = before.into_iter().map(str::to_owned);
    let metrics = columns.iter().flat_map(|title| [title.clone(), format!("{title} target")]);
    let head = head.chain(metrics).chain(AFTER.iter().map(|name| (*name).to_owned()));
    let recommended = Recommended::new(run);
    let mut rows = vec![head.chain(recommended.titles()).collect::<Vec<String>>()];
    let ticks = run.ticks.iter().enumerate().filter(|(index, _)| shown[*index]);
    rows.extend(ticks.map(|(index, tick)| {
        let mut row = row(index + 1, tick, scenario.clock, &columns);
        row.extend(recommended.cells(tick.observation.at));
        row
    }));
    rows
}

/// The recommendations with an HPA, by run of the recommender.
struct Recommended<'r> {
    vpa: Option<&'r VpaRun>,
    /// The amounts of each run, by container and resource.
    runs: Vec<BTreeMap<(String, &'static str), [String; 3]>>,
    /// The columns: each container and resource that has a recommendation in any run.
    columns: BTreeSet<(String, &'static str)>,
}

impl<'r> Recommended<'r> {
    fn new(run: &'r FreeRun) -> Recommended<'r> {
        let vpa = run.vpa.as_deref();
        let amounts =
            |snapshot: &Snapshot| snapshot.statuses.values().flat_map(bounds_of).collect();
        let snapshots = vpa.map_or(&[][..], VpaRun::snapshots);
        let runs: Vec<BTreeMap<_, _>> = snapshots.iter().map(amounts).collect();
        let columns = runs.iter().flat_map(BTreeMap::keys).cloned().collect();
        Recommended { vpa, runs, columns }
    }

    fn titles(&self) -> impl Iterator<Item = String> {
        self.columns.iter().flat_map(|(container, resource)| {
            ["lowerBound", "target", "upperBound"]
                .map(|bound| format!("vpa {container} {resource} {bound}"))
        })
    }

    /// The recommendations of the last run at or before a time.
    fn cells(&self, at: Time) -> impl Iterator<Item = String> {
        let run = self.vpa.and_then(|vpa| vpa.index_at(at)).and_then(|index| self.runs.get(index));
        self.columns.iter().flat_map(move |column| {
            run.and_then(|run| run.get(column)).cloned().unwrap_or_default()
        })
    }
}

/// Rows as CSV.
pub(super) fn written(rows: Vec<Vec<String>>) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    for row in rows {
        // Writing into memory does not fail.
        let _ = writer.write_record(row);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

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
pub(super) fn recommendations(
    scenario: &VpaScenario,
    release: VpaRelease,
    rows: Rows,
) -> Vec<Vec<String>> {
    let ChartedRun { run, usage } = charted_recommender_run(scenario, release, &|_| false);
    let mut written = vec![RECOMMENDATION.map(str::to_owned).to_vec()];
    let vpas: Vec<&str> = scenario.names().map(|name| &*name.name).collect();
    let shown = recommender::rows::shown(rows, &run.snapshots, &vpas);
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

/// The titles of all metrics, in the order in which they appear. Metrics with the same title share
/// a column.
fn metric_columns(run: &FreeRun) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for metric in run.ticks.iter().flat_map(|tick| &tick.derivation.metrics) {
        let title = metric.title();
        if !columns.contains(&title) {
            columns.push(title);
        }
    }
    columns
}

fn row(
    number: usize,
    tick: &FreeTick,
    clock: Option<Timestamp>,
    columns: &[String],
) -> Vec<String> {
    let (observation, derivation) = (&tick.observation, &tick.derivation);
    let seconds = observation.at.since_start().as_secs_f64();
    let mut cells = vec![number.to_string(), seconds.to_string(), observation.hpa.to_string()];
    cells.extend(clock.map(|zero| zero.plus(observation.at.since_start()).to_string()));
    for title in columns {
        let metric = derivation.metrics.iter().find(|metric| metric.title() == *title);
        cells.extend(metric.map_or([String::new(), String::new()], value_and_target));
    }
    let metric = derivation.metrics.get(derivation.winner.unwrap_or(0));
    let pods = metric.map(|metric| metric.pods).unwrap_or_default();
    cells.extend([pods.ready, pods.unready, pods.missing, pods.ignored].map(|it| it.to_string()));
    cells.push(derivation.proposal.map(|replicas| replicas.to_string()).unwrap_or_default());
    cells.push(derivation.desired_replicas.to_string());
    cells.push(tick.replicas_before.to_string());
    cells.push(tick.replicas_after.to_string());
    cells.push(derivation.limited_by().unwrap_or_default().to_owned());
    cells.push(hpa::rows::why(observation, derivation, &[]));
    cells
}

/// Percent, or whole units.
fn value_and_target(metric: &MetricDerivation) -> [String; 2] {
    [metric::value(metric), metric::target(metric)].map(|amount| {
        let amount = amount.map(|amount| match metric::unit(metric) {
            Unit::Percent => amount,
            Unit::Average | Unit::Total => amount / 1000.0,
        });
        amount.map(|amount| amount.to_string()).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use kube_autoscaler_models::rules::Release;
    use kube_lockstep_data::FIXTURES;
    use kube_lockstep_scenario as scenario;
    use kube_lockstep_sim::run::free_run;

    #[test]
    fn each_tick_is_a_row_with_its_metrics() {
        let text =
            FIXTURES.text("closed-loop/docs-walkthrough-php-apache.yaml").expect("a fixture");
        let no_files = |_: &str| Err("".into());
        let scenario = scenario::parse("walkthrough.yaml", &text, &no_files).expect("a scenario");
        let scenario = Arc::new(scenario);
        let run = free_run(&scenario, Release::NEWEST);
        let csv = written(ticks(&scenario, &run, Rows::All));
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), run.ticks.len() + 1);
        let head = "tick,seconds,hpa,cpu,cpu target,ready,unready,missing,ignored,proposal,desired,\
                    replicasBefore,replicasAfter,limitedBy,why";
        assert_eq!(lines[0], head);
        assert!(lines[1].starts_with("1,0,php-apache,305,50,1,0,0,0,7,4,1,4,scale-up"), "{csv}");
        let changes = ticks(&scenario, &run, Rows::Changes).len();
        assert!((3..lines.len() / 2).contains(&changes), "{changes} of {}", lines.len());
    }

    #[test]
    fn recommendations_with_an_hpa_are_columns() {
        let text = FIXTURES.text("hpa-and-vpa/both-on-cpu-feed-back.yaml").expect("a fixture");
        let no_files = |_: &str| Err("".into());
        let scenario = scenario::parse("both.yaml", &text, &no_files).expect("a scenario");
        let scenario = Arc::new(scenario);
        let run = free_run(&scenario, Release::NEWEST);
        let csv = written(ticks(&scenario, &run, Rows::All));
        let mut rows = csv.lines();
        let head: Vec<&str> = rows.next().unwrap().split(',').collect();
        let column = head.iter().position(|title| *title == "vpa app cpu target").unwrap();
        let last = |line: &str| line.rsplit(',').nth(head.len() - 1 - column).unwrap().to_owned();
        let targets: Vec<String> = rows.map(last).collect();
        assert_eq!(targets.first().unwrap(), "", "before the first run of the recommender");
        // At t=1m and t=6m, as the fixture expects.
        assert_eq!((targets[4].as_str(), targets[24].as_str()), ("0.296", "0.163"), "{csv}");
    }

    #[test]
    fn each_amount_of_a_recommendation_is_a_row() {
        let text = FIXTURES.text("vpa/oom/a-factor-of-1-2.yaml").expect("a fixture");
        let node = |text: &str| scenario::parse_any("oom.yaml", text, &|_| Err("".into()));
        let Ok(scenario::AnyScenario::Vpa(scenario)) = node(&text) else { panic!("a scenario") };
        let csv = written(recommendations(&scenario, VpaRelease::NEWEST, Rows::All));
        let lines: Vec<&str> = csv.lines().collect();
        // Five runs with cpu and memory.
        assert_eq!(lines.len(), 1 + 5 * 2, "{csv}");
        assert_eq!(lines[0], RECOMMENDATION.join(","));
        let after = lines[6].split(',').collect::<Vec<_>>();
        assert_eq!(&after[..7], ["3", "180", "web", "app", "memory", "314572800", "314572800"]);
        assert_eq!((after[8], after[10]), ("6117462922", "6117462922"), "{csv}");
    }
}
