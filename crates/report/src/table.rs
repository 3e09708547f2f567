//! Predictions as text: for each controller its charts, and a table with one row per tick. Ticks
//! with the result of an earlier one are folded.

use std::fmt::Write as _;

use super::layout::{Columns, hanging};
use super::presentation::rows::{Column, Emphasis, Row, TickTable};
use super::style::{BAD, DIM, GOOD, STRONG, paint};
use super::unmet::UnmetOf;
use super::{counted, outcome};
use anstyle::Style;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::expect::Unmet;
use kube_lockstep_sim::run::FreeRun;

/// The minimum number of lines to fold.
const FOLD: usize = 2;

/// What the text of a prediction contains.
#[derive(Clone, Copy, Debug)]
pub struct Contents {
    /// The ticks in the table.
    pub rows: Rows,
    /// True if charts precede the table.
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

/// The rows of a table, repeated ones folded.
pub(super) fn ticks(table: &TickTable, columns: usize) -> String {
    let mut out = Columns::new(&table.columns.iter().map(Column::align).collect::<Vec<_>>());
    out.row(table.columns.iter().map(|column| column.title.clone()).collect(), DIM);
    let repeats = |row: &&Row| matches!(row, Row::Tick(tick) if tick.repeats);
    let mut rest = table.rows.as_slice();
    while let Some(row) = rest.first() {
        let same = rest.iter().take_while(repeats).count();
        let lines = |row: &Row| if let Row::Tick(tick) = row { tick.lines.len() } else { 1 };
        if rest[..same].iter().map(lines).sum::<usize>() >= FOLD
            && let Row::Tick(last) = &rest[same - 1]
        {
            let (ticks, with) = (counted(same, "more tick"), table.repeated);
            let until = short(last.at);
            out.row(vec![format!("     … {ticks} with {with}, until {until}")], DIM);
            rest = &rest[same..];
            continue;
        }
        rest = &rest[1..];
        match row {
            Row::Change(text) => out.row(vec![format!("      {text}")], BAD),
            Row::Tick(tick) => {
                let style = match tick.emphasis {
                    Emphasis::None => Style::new(),
                    Emphasis::Change => STRONG,
                    Emphasis::Failure => BAD,
                };
                let mut lines = tick.lines.iter().cloned();
                lines.by_ref().take(1).for_each(|line| out.row(line, style));
                lines.for_each(|line| out.continued(line, style));
            }
        }
    }
    out.render(0, columns)
}

/// A time without the nanoseconds by which resyncs of the informer are late (see
/// `model::hpa::queue`), which are irrelevant to users.
pub(super) fn short(at: Time) -> String {
    let nanos = at.since_start().0;
    Span(nanos - nanos % 1_000).to_string()
}

/// The id and the requirement of the scenario.
pub(super) fn heading(id: &str, requirement: &str, release: &str, columns: usize) -> String {
    format!(
        "{}  {}\n{}",
        paint(STRONG, id),
        paint(DIM, &format!("model of {release}")),
        hanging("", requirement, 0, columns)
    )
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

/// A note that the scenario does not apply to this release.
#[must_use]
pub fn other_release(scenario: &Scenario, release: Release, columns: usize) -> String {
    outcome::note_text(&other_release_text(scenario, release), columns)
}

/// The text of [`other_release`].
#[must_use]
pub(crate) fn other_release_text(scenario: &Scenario, release: Release) -> String {
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
            let why = scenario.not_for(release).map(|why| why.to_string());
            format!("no expectation is checked: {}", why.unwrap_or_default())
        }
    }
}

/// The expectations that are not met, or the number of expectations if all are met.
pub(super) fn expectations(
    of: UnmetOf<'_>,
    expected: usize,
    unmet: &[Unmet],
    columns: usize,
) -> String {
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
