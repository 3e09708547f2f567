//! The ticks of HPAs as CSV.

use crate::metric::{self, Unit};
use crate::presentation::hpa::rows::{shown, why};
use crate::presentation::recommender::csv::Recommended;
use crate::table::Rows;
use kube_autoscaler_models::derivation::{Limit, MetricDerivation};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::Timestamp;
use kube_lockstep_sim::run::{FreeRun, FreeTick};

/// The columns before and after the columns of the metrics.
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
pub(crate) fn ticks(scenario: &Scenario, run: &FreeRun, rows: Rows) -> Vec<Vec<String>> {
    let columns = metric_columns(run);
    let shown = shown(rows, run);
    let mut before: Vec<&str> = BEFORE.to_vec();
    before.extend(scenario.clock.map(|_| "time"));
    let head = before.into_iter().map(str::to_owned);
    let metrics = columns.iter().flat_map(|title| [title.clone(), format!("{title} target")]);
    let head = head.chain(metrics).chain(AFTER.iter().map(|name| (*name).to_owned()));
    let recommended = Recommended::new(run.vpa.as_deref());
    let mut rows = vec![head.chain(recommended.titles()).collect::<Vec<String>>()];
    let ticks = run.ticks.iter().enumerate().filter(|(index, _)| shown[*index]);
    rows.extend(ticks.map(|(index, tick)| {
        let mut row = row(index + 1, tick, scenario.clock, &columns);
        row.extend(recommended.cells(tick.observation.at));
        row
    }));
    rows
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
    cells.push(derivation.limited_by().map_or("", Limit::name).to_owned());
    cells.push(why(observation, derivation, &[]));
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
