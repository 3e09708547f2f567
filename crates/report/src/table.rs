//! The model's prediction as a table: one row per tick; ticks without changes are folded.

use super::unmet::UnmetOf;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anstyle::Style;

use super::layout::{Align, Columns, hanging};
use super::style::{BAD, DIM, GOOD, STRONG, paint};
use super::{counted, outcome, plot, recommender};
use kube_autoscaler_models::api::{ConditionStatus, HpaCondition, HpaStatus};
use kube_autoscaler_models::derivation::{Derivation, MetricDerivation, PodCounts, Target};
use kube_autoscaler_models::observation::Observation;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::{Action, TimelineEvent};
use kube_lockstep_sim::expect::{ExternalScale, Moment, Unmet};
use kube_lockstep_sim::run::{FreeRun, FreeTick};
use kube_lockstep_sim::trace::{ApiAnswer, ApiOutcome};

/// The minimum number of ticks to fold.
const FOLD: usize = 2;

/// A row of the table, before folding.
struct Row {
    at: Time,
    /// All cells except number and time.
    cells: Vec<String>,
    /// Whether the row must not be folded.
    eventful: bool,
    style: Style,
}

/// What the text of a prediction contains.
#[derive(Clone, Copy, Debug)]
pub struct Contents {
    /// The ticks in the table.
    pub rows: Rows,
    /// Whether charts precede the table.
    pub has_charts: bool,
    /// The width of the text.
    pub columns: usize,
}

impl Contents {
    /// Everything, in a text of this width.
    #[must_use]
    pub fn all(columns: usize) -> Contents {
        Contents { rows: Rows::All, has_charts: true, columns }
    }
}

/// The ticks that a report contains.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rows {
    /// All ticks.
    #[default]
    All,
    /// The ticks that change the replicas or a condition.
    Changes,
}

impl Rows {
    /// The ticks of a run that the report contains, by index.
    pub fn of(self, run: &FreeRun) -> Vec<bool> {
        let mut statuses: BTreeMap<&str, &HpaStatus> = BTreeMap::new();
        let mut contains = Vec::with_capacity(run.ticks.len());
        for tick in &run.ticks {
            let hpa = &*tick.observation.hpa;
            let before = statuses.get(hpa).copied();
            contains.push(self == Rows::All || is_eventful(tick, before));
            if let Some(write) = tick.observation.status_write() {
                statuses.insert(hpa, &write.status);
            }
        }
        contains
    }
}

/// Returns true if a tick changes the replicas or a condition, or a write fails.
fn is_eventful(tick: &FreeTick, before: Option<&HpaStatus>) -> bool {
    let observation = &tick.observation;
    tick.replicas_before != tick.replicas_after
        || observation.scale_writes().any(|write| write.error.is_some())
        || !changed_conditions(observation, before).is_empty()
}

/// The whole prediction: the scenario, charts of the replicas and metrics, the table, and the
/// summary.
#[must_use]
pub fn free_run(scenario: &Scenario, run: &FreeRun, release: &str, contents: Contents) -> String {
    let Contents { rows, has_charts, columns } = contents;
    let mut out = heading(scenario, release, columns);
    let rescales = run.ticks.iter().filter(|tick| tick.replicas_before != tick.replicas_after);
    let points = points(scenario, run, 0);
    if has_charts {
        out.push_str(&plot::all(scenario, run, columns));
    }
    out.push('\n');
    out.push_str(&ticks(scenario, run, rows, columns));
    let (least, most) = points
        .iter()
        .fold((i32::MAX, i32::MIN), |(least, most), (_, it)| (least.min(*it), most.max(*it)));
    let last = points.last().map_or(0, |(_, replicas)| *replicas);
    let changes = counted(rescales.count(), "change");
    let target = if scenario.other_targets.is_empty() {
        String::new()
    } else {
        format!(" of {}", scenario.workload.name)
    };
    let mut ending = format!(
        "{}, {changes} of replicas by the controller; replicas{target}: {last} at the end, {least} \
         to {most} overall",
        counted(run.ticks.len(), "tick"),
    );
    for (index, target) in scenario.targets().enumerate().skip(1) {
        let last = self::points(scenario, run, index).last().map_or(0, |(_, replicas)| *replicas);
        let _ = write!(ending, "; replicas of {}: {last} at the end", target.name);
    }
    out.push('\n');
    out.push_str(&hanging("", &ending, 0, columns));
    if let Some(vpa) = &run.vpa {
        out.push_str(&recommender::beside_hpa(vpa, contents));
    }
    for note in &run.notes {
        out.push_str(&outcome::note_line(&scenario.path, note, columns));
    }
    out
}

/// The replicas of a target over time.
pub fn points(scenario: &Scenario, run: &FreeRun, target: usize) -> Vec<(Time, i32)> {
    let initial = scenario.targets().nth(target).map(|target| (Time::ZERO, target.replicas));
    let mut points: Vec<(Time, i32)> = initial.into_iter().collect();
    // At the same time, manual changes precede the controller's, as in the world; the sort is
    // stable.
    let scales = run.external_scales.iter().filter(|scale| scale.target == target);
    points.extend(scales.map(|scale| (scale.at, scale.replicas)));
    let rescales = run.ticks.iter().filter(|tick| tick.replicas_before != tick.replicas_after);
    let rescales = rescales.filter(|tick| tick.target == target);
    points.extend(rescales.map(|tick| (tick.observation.at, tick.replicas_after)));
    points.sort_by_key(|(at, _)| *at);
    points
}

/// The id and the requirement of the scenario.
pub fn heading(scenario: &Scenario, release: &str, columns: usize) -> String {
    format!(
        "{}  {}\n{}",
        paint(STRONG, &scenario.id),
        paint(DIM, &format!("model of {release}")),
        hanging("", &scenario.requirement, 0, columns)
    )
}

/// A note that the scenario does not apply to this release.
#[must_use]
pub fn other_release(scenario: &Scenario, release: Release, columns: usize) -> String {
    outcome::note_text(&other_release_text(scenario, release), columns)
}

/// The text of [`other_release`].
#[must_use]
pub fn other_release_text(scenario: &Scenario, release: Release) -> String {
    match scenario.unsupported_on(release) {
        Some(why) if scenario.ignores_unsupported_fields(release) => format!(
            "{why}: the API server drops the field, and it has no effect in the prediction below"
        ),
        Some(why) if scenario.is_of_manifests => format!(
            "{why}, whose API server drops the field. The prediction below applies it anyway; to \
             predict what {release} does, remove it from the manifest"
        ),
        Some(why) => format!(
            "{why}: `run` skips this scenario. The prediction below applies the model's rules \
             anyway; the expectations are not checked"
        ),
        None => {
            let why = scenario.not_for(release).unwrap_or_default();
            format!("no expectation is checked: {why}")
        }
    }
}

/// The table of the ticks.
fn ticks(scenario: &Scenario, run: &FreeRun, shown: Rows, columns: usize) -> String {
    let several = scenario.has_several_hpas();
    let metrics = metric_columns(run, several);
    let mut align = vec![Align::Right, Align::Left];
    align.extend(scenario.clock.map(|_| Align::Left));
    align.extend(several.then_some(Align::Left));
    align.extend(metrics.iter().map(|_| Align::Left));
    align.extend([Align::Left, Align::Right, Align::Left, Align::Left]);
    let mut table = Columns::new(&align);
    let mut head = vec!["tick".to_owned(), "t".to_owned()];
    head.extend(scenario.clock.map(|_| "UTC".to_owned()));
    head.extend(several.then(|| "hpa".to_owned()));
    head.extend(metrics.iter().cloned());
    head.extend(["counted", "proposal", "replicas", "why"].map(str::to_owned));
    table.row(head, DIM);

    let mut notes = notes(scenario, run).into_iter().peekable();
    let mut statuses: BTreeMap<&str, &HpaStatus> = BTreeMap::new();
    let mut rows: Vec<Row> = Vec::with_capacity(run.ticks.len());
    for tick in &run.ticks {
        let hpa = &*tick.observation.hpa;
        let mut row = row(tick, statuses.get(hpa).copied(), metrics.len());
        if several {
            row.cells.insert(0, hpa.to_owned());
        }
        rows.push(row);
        if let Some(write) = tick.observation.status_write() {
            statuses.insert(hpa, &write.status);
        }
    }
    let hpa_of = |index: usize| &*run.ticks[index].observation.hpa;
    // The cells of the last row of each HPA.
    let mut last: BTreeMap<&str, &[String]> = BTreeMap::new();
    let mut index = 0;
    while let Some(row) = rows.get(index) {
        while let Some((_, _, text)) = notes.next_if(|(after, ..)| *after <= index) {
            table.row(vec![format!("      {text}")], BAD);
        }
        if shown == Rows::Changes && !row.eventful {
            index += 1;
            continue;
        }
        let mut cells = vec![(index + 1).to_string(), short(row.at)];
        cells.extend(scenario.clock.map(|zero| zero.plus(row.at.since_start()).of_day()));
        cells.extend(row.cells.iter().cloned());
        table.row(cells, row.style);
        last.insert(hpa_of(index), &row.cells);
        // Folding across a note would change its apparent order.
        let barrier = notes.peek().map_or(rows.len(), |(after, ..)| *after);
        let more = index + 1..barrier.clamp(index + 1, rows.len());
        let is_same = |next: &usize| {
            let row = &rows[*next];
            !row.eventful && last.get(hpa_of(*next)).is_some_and(|cells| *cells == row.cells)
        };
        let same = more.take_while(is_same).count();
        index += 1;
        if (several || !row.eventful) && same >= FOLD {
            let end = &rows[index + same - 1];
            let ticks = counted(same, "more tick");
            let text = format!("     … {ticks} with the same result, until {}", short(end.at));
            table.row(vec![text], DIM);
            index += same;
        }
    }
    for (_, _, text) in notes {
        table.row(vec![format!("      {text}")], BAD);
    }
    table.render(0, columns)
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

fn row(tick: &FreeTick, before: Option<&HpaStatus>, metrics: usize) -> Row {
    let (observation, derivation) = (&tick.observation, &tick.derivation);
    let mut cells: Vec<String> = (0..metrics)
        .map(|index| derivation.metrics.get(index).map(metric).unwrap_or_default())
        .collect();
    let winner = derivation.winner.unwrap_or(0);
    let pods = derivation.metrics.get(winner).map(|metric| metric.pods).unwrap_or_default();
    cells.push(counted_pods(pods, tick.replicas_before));
    cells.push(derivation.proposal.map(|replicas| replicas.to_string()).unwrap_or_default());
    let rescaled = tick.replicas_before != tick.replicas_after;
    cells.push(if rescaled {
        format!("{} → {}", tick.replicas_before, tick.replicas_after)
    } else {
        tick.replicas_after.to_string()
    });
    let changed = changed_conditions(observation, before);
    cells.push(why(observation, derivation, &changed));
    let failed = observation.errors().next().is_some();
    let style = match (rescaled, failed) {
        (_, true) => BAD,
        (true, false) => STRONG,
        (false, false) => Style::new(),
    };
    let eventful = is_eventful(tick, before);
    Row { at: observation.at, cells, eventful, style }
}

/// `88%/80%`, `440m/500m`, `failed`.
pub fn metric(metric: &MetricDerivation) -> String {
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

/// A time without the nanoseconds by which resyncs of the informer are late (see
/// `model::hpa::queue`), which are irrelevant to users.
fn short(at: Time) -> String {
    let nanos = at.since_start().0;
    Span(nanos - nanos % 1_000).to_string()
}

/// The groups of pods that do not count.
const GROUPS: [&str; 3] = ["unready", "without metrics", "ignored"];

/// The number of pods in each of [`GROUPS`].
fn groups(pods: PodCounts) -> [u32; 3] {
    [pods.unready, pods.missing, pods.ignored]
}

/// The limit that applied, the pods that do not count, the events, and the changed conditions.
pub fn why(observation: &Observation, derivation: &Derivation, changed: &[String]) -> String {
    let mut parts: Vec<String> = Vec::new();
    // The text omits the time, which would make every row different.
    parts.extend(derivation.held_by_window().map(|held| format!("stabilization holds {held}")));
    let limit = derivation.limited_by().filter(|limit| *limit != "stabilization");
    parts.extend(limit.map(str::to_owned));
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
pub(super) fn changed_conditions(
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

/// The expectations that are not met, or the number of expectations if all are met.
#[must_use]
pub fn expectations(of: UnmetOf<'_>, expected: usize, unmet: &[Unmet], columns: usize) -> String {
    if unmet.is_empty() {
        let met = if expected == 1 { "expectation is met" } else { "expectations are met" };
        return if expected == 0 {
            String::new()
        } else {
            format!("{}\n", paint(GOOD, &format!("{expected} {met}")))
        };
    }
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}",
        paint(BAD, &format!("{} of {} not met:", unmet.len(), counted(expected, "expectation")))
    );
    for unmet in unmet {
        out.push_str(&of.text(unmet, columns));
    }
    out
}
