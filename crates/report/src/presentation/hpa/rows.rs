//! The ticks of HPAs as a table: their metrics, the replicas, and the reasons; and the selection of
//! ticks that change something.

use std::collections::{BTreeMap, BTreeSet};

use crate::presentation::rows::{Column, Emphasis, Row, TickRow, TickTable};
use crate::table::{self, Rows};
use kube_autoscaler_models::api::{ConditionStatus, HpaCondition, HpaStatus};
use kube_autoscaler_models::derivation::{Derivation, Limit, MetricDerivation, PodCounts, Target};
use kube_autoscaler_models::observation::Observation;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::{Action, TimelineEvent};
use kube_lockstep_sim::expect::{ExternalScale, Moment};
use kube_lockstep_sim::run::{FreeRun, FreeTick};
use kube_lockstep_sim::trace::{ApiAnswer, ApiOutcome};

/// The ticks of a run that a report contains, by index: with [`Rows::Changes`], those that change
/// the replicas or a condition, and those in which a write fails.
pub(crate) fn shown(rows: Rows, run: &FreeRun) -> Vec<bool> {
    changes(run).into_iter().map(|changed| rows == Rows::All || changed.is_eventful).collect()
}

/// The changes of a tick.
struct Changes {
    /// The conditions that changed since the previous tick of the HPA.
    conditions: Vec<String>,
    /// True if the replicas or a condition change, or a write fails.
    is_eventful: bool,
}

/// The changes of each tick.
fn changes(run: &FreeRun) -> Vec<Changes> {
    let mut statuses: BTreeMap<&str, &HpaStatus> = BTreeMap::new();
    let changes = run.ticks.iter().map(|tick| {
        let (observation, hpa) = (&tick.observation, &*tick.observation.hpa);
        let conditions = changed_conditions(observation, statuses.get(hpa).copied());
        if let Some(write) = observation.status_write() {
            statuses.insert(hpa, &write.status);
        }
        let is_eventful = tick.replicas_before != tick.replicas_after
            || observation.scale_writes().any(|write| write.error.is_some())
            || !conditions.is_empty();
        Changes { conditions, is_eventful }
    });
    changes.collect()
}

/// The table of the ticks of all HPAs.
pub(crate) fn table(scenario: &Scenario, run: &FreeRun, shown: Rows) -> TickTable {
    let several = scenario.has_several_hpas();
    let metrics = metric_columns(run, several);
    let mut rows = Vec::with_capacity(run.ticks.len());
    let mut notes = notes(scenario, run).into_iter().peekable();
    // The last cells of each HPA, and whether its tick was eventful.
    let mut last: BTreeMap<&str, (Vec<String>, bool)> = BTreeMap::new();
    for (index, (tick, changes)) in run.ticks.iter().zip(changes(run)).enumerate() {
        let count = rows.len();
        while let Some((_, _, text)) = notes.next_if(|(after, ..)| *after <= index) {
            rows.push(Row::Change(text));
        }
        let is_eventful = changes.is_eventful;
        if shown == Rows::Changes && !is_eventful {
            continue;
        }
        let observation = &tick.observation;
        let (at, hpa) = (observation.at, &*observation.hpa);
        let cells = cells(tick, &changes.conditions, metrics.len());
        let is_same = last
            .get(hpa)
            .is_some_and(|(known, was_eventful)| *known == cells && (several || !was_eventful));
        // A change between two ticks with the same result is not hidden.
        let repeats = is_same && !is_eventful && rows.len() == count;
        let mut line = vec![(index + 1).to_string(), table::short(at)];
        line.extend(scenario.clock.map(|zero| zero.plus(at.since_start()).day_and_time()));
        line.extend(several.then(|| hpa.to_owned()));
        line.extend(cells.iter().cloned());
        let emphasis = emphasis(tick);
        rows.push(Row::Tick(TickRow { at, lines: vec![line], emphasis, repeats }));
        last.insert(hpa, (cells, is_eventful));
    }
    rows.extend(notes.map(|(_, _, text)| Row::Change(text)));
    let head = [Column::number("tick"), Column::text("t")].into_iter();
    let head = head.chain(scenario.clock.map(|_| Column::text("UTC")));
    let head = head.chain(several.then(|| Column::text("hpa")));
    let head = head.chain(metrics.into_iter().map(Column::text));
    let end = [Column::text("counted"), Column::number("proposal"), Column::text("replicas")];
    let columns = head.chain(end).chain([Column::text("why")]).collect();
    TickTable { columns, rows, repeated: "the same result" }
}

/// Manual changes, answers of the API server, and restarts of the controller, in order, with the
/// number of preceding ticks.
fn notes(scenario: &Scenario, run: &FreeRun) -> Vec<(usize, Time, String)> {
    let initial = |target| scenario.targets().nth(target).map(|target| target.replicas);
    // The initial replicas are not a change.
    let is_change =
        |it: &&ExternalScale| it.at > Time::ZERO || Some(it.replicas) != initial(it.target);
    let between = |it: &&ExternalScale| it.moment == Moment::Before;
    let scales = run.external_scales.iter().filter(is_change).filter(between);
    let scales = scales.map(|ExternalScale { at, target, replicas, .. }| {
        let before = run.ticks.partition_point(|tick| tick.observation.at < *at);
        let target = scenario.other_targets.get(target.wrapping_sub(1));
        let target_name = target.map(|target| format!(" {}", target.name)).unwrap_or_default();
        (before, *at, format!("{at}: manual scale{target_name} to {replicas}"))
    });
    let mut seen = BTreeSet::new();
    let answers = run.trace.api.iter().filter_map(|(after, answer)| {
        let first = seen.insert(answer.outcome.name());
        let text = answered(answer, first)?;
        Some((*after, answer.at, text))
    });
    let restarts = run.restarts.iter();
    let restarts =
        restarts.map(|(after, at)| (*after, *at, format!("{at}: the controller restarts")));
    let last_tick = run.trace.ticks.last().map_or(Time::ZERO, |tick| tick.at);
    let during = run.ticks.iter().enumerate().flat_map(|(index, tick)| {
        let at = tick.observation.at;
        let during = tick.derivation.during.iter();
        during.map(move |event| (index + 1, at, format!("{at}: {event}")))
    });
    let between = |it: &&TimelineEvent| it.during.is_none() && !has_own_row(&it.action);
    let events = scenario.timeline.iter().filter(between).flat_map(|it| {
        let name = it.action.name();
        let end = it.lasts.map(|span| it.at + span);
        let end = end.map(|end| (end, format!("{end}: {name} ends")));
        std::iter::once((it.at, format!("{}: {name}", it.at))).chain(end)
    });
    let events = events
        .filter(|(at, _)| *at <= last_tick)
        .map(|(at, text)| (run.ticks.partition_point(|tick| tick.observation.at < at), at, text));
    let mut notes: Vec<_> =
        scales.chain(during).chain(answers).chain(restarts).chain(events).collect();
    notes.sort_by_key(|(after, at, _)| (*after, *at));
    notes
}

/// Returns true if the table shows the outcome of the action: new replicas, an answer of the API
/// server, or a restart.
fn has_own_row(action: &Action) -> bool {
    matches!(action, Action::Scale(_)) || action.is_api_event()
}

/// An answer of the API server, except the initial creation of the HPA.
fn answered(answer: &ApiAnswer, first: bool) -> Option<String> {
    let ApiAnswer { at, outcome } = answer;
    let name = outcome.name();
    Some(match outcome {
        ApiOutcome::Stored { .. } if first => return None,
        ApiOutcome::Stored { generation, .. } => {
            format!("{at}: {name} is stored, generation {generation}")
        }
        ApiOutcome::Refused { message, .. } => format!("{at}: refused: {message}"),
        ApiOutcome::Deleted { .. } => format!("{at}: {name} is deleted"),
        ApiOutcome::Write(write) => format!("{at}: {write}"),
    })
}

/// One column per metric, up to the maximum of a tick. Several HPAs have different metrics.
fn metric_columns(run: &FreeRun, several: bool) -> Vec<String> {
    let most = run.ticks.iter().max_by_key(|tick| tick.derivation.metrics.len());
    let metrics = most.map(|tick| tick.derivation.metrics.as_slice()).unwrap_or_default();
    let titles = metrics.iter().map(MetricDerivation::title).enumerate();
    let title = |(index, title)| if several { format!("metric {}", index + 1) } else { title };
    titles.map(title).collect()
}

/// The cells of a tick from its metrics on.
fn cells(tick: &FreeTick, changed: &[String], metrics: usize) -> Vec<String> {
    let (observation, derivation) = (&tick.observation, &tick.derivation);
    let mut cells: Vec<String> = (0..metrics)
        .map(|index| derivation.metrics.get(index).map(metric).unwrap_or_default())
        .collect();
    let winner = derivation.winner.unwrap_or(0);
    let pods = derivation.metrics.get(winner).map(|metric| metric.pods).unwrap_or_default();
    cells.push(counted_pods(pods, tick.replicas_before));
    cells.push(derivation.proposal.map(|replicas| replicas.to_string()).unwrap_or_default());
    cells.push(match (tick.replicas_before, tick.replicas_after) {
        (before, after) if before != after => format!("{before} → {after}"),
        (_, after) => after.to_string(),
    });
    cells.push(why(observation, derivation, changed));
    cells
}

fn emphasis(tick: &FreeTick) -> Emphasis {
    match tick.observation.errors().next() {
        Some(_) => Emphasis::Failure,
        None if tick.replicas_before != tick.replicas_after => Emphasis::Change,
        None => Emphasis::None,
    }
}

/// `88%/80%`, `440m/500m`, `failed`.
pub(crate) fn metric(metric: &MetricDerivation) -> String {
    let Some(usage) = metric.usage.filter(|_| metric.error.is_none()) else {
        return "failed".to_owned();
    };
    match metric.target {
        Target::Utilization(target) => {
            let seen = usage.utilization.map_or_else(|| "?".to_owned(), |seen| seen.to_string());
            format!("{seen}%/{target}%")
        }
        Target::AverageValue(target) => {
            format!("{}/{}", metric.amount(usage.average), metric.amount(target))
        }
        Target::Value(target) => {
            format!("{}/{}", metric.amount(usage.total), metric.amount(target))
        }
        Target::None => "no target".to_owned(),
    }
}

/// The number of pods whose metrics count, out of all pods; empty for metrics without pods.
fn counted_pods(pods: PodCounts, replicas: i32) -> String {
    if pods == PodCounts::default() { String::new() } else { format!("{}/{replicas}", pods.ready) }
}

/// The groups of pods that do not count; with the name of the metric if metrics differ.
fn excluded(metrics: &[MetricDerivation]) -> Vec<String> {
    let with_pods: Vec<&MetricDerivation> =
        metrics.iter().filter(|metric| metric.pods != PodCounts::default()).collect();
    let mut parts = Vec::new();
    for (index, group) in GROUPS.into_iter().enumerate() {
        let numbers: Vec<u32> = with_pods.iter().map(|metric| groups(metric.pods)[index]).collect();
        let same = numbers.iter().all(|number| *number == numbers[0]);
        for (metric, number) in with_pods.iter().zip(&numbers).filter(|(_, number)| **number > 0) {
            if same {
                parts.push(format!("{number} {group}"));
                break;
            }
            parts.push(format!("{number} {group} ({})", metric.title()));
        }
    }
    parts
}

/// The groups of pods that do not count.
const GROUPS: [&str; 3] = ["unready", "without metrics", "ignored"];

/// The number of pods in each of [`GROUPS`].
fn groups(pods: PodCounts) -> [u32; 3] {
    [pods.unready, pods.missing, pods.ignored]
}

/// The limit that applied, the pods that do not count, the events, and the changed conditions.
pub(crate) fn why(
    observation: &Observation,
    derivation: &Derivation,
    changed: &[String],
) -> String {
    let mut parts: Vec<String> = Vec::new();
    // The text omits the time, which would make every row different.
    parts.extend(derivation.held_by_window().map(|held| format!("stabilization holds {held}")));
    let limit = derivation.limited_by().filter(|limit| *limit != Limit::Stabilization);
    parts.extend(limit.map(|limit| limit.name().to_owned()));
    if observation.took != Span::ZERO {
        parts.push(format!("took {}", observation.took));
    }
    parts.extend(excluded(&derivation.metrics));
    for write in observation.scale_writes() {
        if let Some(error) = &write.error {
            parts.push(format!("scale to {} refused: {error}", write.replicas));
        }
    }
    for event in observation.events() {
        // A rescale has its own column; its message gives the reason.
        let message = event.message.as_str();
        parts.push(match message.split_once("; reason: ") {
            Some((_, reason)) if event.reason.as_str() == "SuccessfulRescale" => {
                without_selector(reason)
            }
            _ => format!("{}: {message}", event.reason),
        });
    }
    parts.retain(|part| !part.is_empty());
    if observation.events().next().is_none() {
        parts.extend(observation.errors().map(|error| format!("error: {error}")));
    }
    parts.extend(changed.iter().cloned());
    parts.join("; ")
}

/// The reason of a rescale without the selector of an external metric, which upstream prints in Go
/// syntax: `queue(&LabelSelector{…}) above target`.
fn without_selector(reason: &str) -> String {
    let selector = reason.find("(&LabelSelector{").zip(reason.rfind("})"));
    match selector.filter(|(begin, end)| begin < end) {
        Some((begin, end)) => format!("{}{}", &reason[..begin], &reason[end + 2..]),
        None => reason.to_owned(),
    }
}

/// Conditions whose status or reason changed since the previous tick: `ScalingLimited=True
/// (TooManyReplicas)`. For the first tick, only unusual conditions.
pub(crate) fn changed_conditions(
    observation: &Observation,
    before: Option<&HpaStatus>,
) -> Vec<String> {
    let Some(write) = observation.status_write() else { return Vec::new() };
    let mut changed = Vec::new();
    for condition in &write.status.conditions {
        let known = before.and_then(|status| same_type(&status.conditions, condition));
        let is_new = match known {
            Some(known) => (known.status, &known.reason) != (condition.status, &condition.reason),
            None => !is_ordinary(condition),
        };
        if is_new {
            let status = ConditionStatus::from(condition.status);
            changed.push(format!("{:?}={status} ({})", condition.type_, condition.reason));
        }
    }
    if let Some(error) = &write.error {
        changed.push(format!("status refused: {error}"));
    }
    changed
}

fn same_type<'a>(conditions: &'a [HpaCondition], like: &HpaCondition) -> Option<&'a HpaCondition> {
    conditions.iter().find(|condition| condition.type_ == like.type_)
}

/// Returns true for a condition of a healthy HPA.
fn is_ordinary(condition: &HpaCondition) -> bool {
    matches!(
        (condition.status, condition.reason.as_str()),
        (true, "SucceededGetScale" | "ReadyForNewScale" | "SucceededRescale" | "ValidMetricFound")
            | (false, "DesiredWithinRange" | "NotScaledToZero")
    )
}
