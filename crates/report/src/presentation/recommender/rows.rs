//! The runs of a recommender as a table: the amounts that it recommends for a VPA, and the
//! conditions of the VPA; and the selection of runs that change something.

use crate::presentation::rows::{Column, Emphasis, Row, TickRow, TickTable};
use crate::table::Rows;
use kube_autoscaler_models::api::ConditionStatus;
use kube_autoscaler_models::vpa::{LogLine, Resource, Snapshot, VpaStatus};
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::run::recommendation::{Amounts, amounts};

/// The relative change of a bound that is worth a row.
const CHANGE: f64 = 0.1;

/// The state of a run, as far as a later run with the same state needs no row.
struct Shown {
    targets: Vec<(String, Resource, String, String)>,
    bounds: Vec<f64>,
    conditions: Vec<String>,
}

impl Shown {
    fn new(amounts: &[Amounts], conditions: Vec<String>) -> Shown {
        let target = |it: &Amounts| {
            (it.container.clone(), it.resource, it.texts[0].clone(), it.texts[3].clone())
        };
        let bounds = amounts.iter().flat_map(|it| [it.values[1], it.values[2]]);
        Shown {
            targets: amounts.iter().map(target).collect(),
            bounds: bounds.collect(),
            conditions,
        }
    }

    /// Returns true if a later state is so similar that it has no row.
    fn covers(&self, later: &Shown) -> bool {
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= CHANGE * a.abs();
        (&self.targets, &self.conditions) == (&later.targets, &later.conditions)
            && self.bounds.iter().zip(&later.bounds).all(near)
    }
}

pub(crate) fn conditions(status: &VpaStatus) -> Vec<String> {
    let texts = status.conditions.iter().map(|it| match it.reason.is_empty() {
        true => format!("{}={}", it.type_, it.status),
        false => format!("{}={} ({})", it.type_, it.status, it.reason),
    });
    texts.collect()
}

/// The conditions that explain why there is no current recommendation, in one line.
pub(crate) fn problems(status: &VpaStatus) -> String {
    let found = status.conditions.iter().filter(|it| match &*it.type_ {
        "RecommendationProvided" => it.status == ConditionStatus::False,
        _ => it.status == ConditionStatus::True,
    });
    let texts = found.map(|it| match &*it.type_ {
        "RecommendationProvided" => "no recommendation".to_owned(),
        type_ => type_.to_owned(),
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// The names of the VPAs of a scenario.
pub(super) fn names(scenario: &VpaScenario) -> Vec<&str> {
    scenario.names().map(|name| &*name.name).collect()
}

/// The runs that a report contains, by index: with [`Rows::Changes`], those that change a target or
/// a condition of a VPA, and those with an error.
pub(crate) fn shown(rows: Rows, snapshots: &[Snapshot], vpas: &[&str]) -> Vec<bool> {
    let state = |snapshot: &Snapshot| {
        let of = |vpa: &&str| {
            let status = snapshot.status(vpa)?;
            Some((Shown::new(&amounts(status), Vec::new()).targets, conditions(status)))
        };
        vpas.iter().map(of).collect::<Vec<_>>()
    };
    let mut last = None;
    let shown = snapshots.iter().map(|snapshot| {
        if rows == Rows::All {
            return true;
        }
        let now = Some(state(snapshot));
        let is_changed = now != last;
        last = now;
        is_changed || !snapshot.log.is_empty()
    });
    shown.collect()
}

/// The table of the recommendations for a VPA.
pub(crate) fn table(snapshots: &[Snapshot], vpa: &str, selection: Rows) -> TickTable {
    let none = VpaStatus::default();
    // The uncapped target is shown if it differs from the target anywhere.
    let is_capped = snapshots.iter().any(|snapshot| {
        let amounts = amounts(snapshot.status(vpa).unwrap_or(&none));
        amounts.iter().any(Amounts::is_capped)
    });
    let is_shown = shown(selection, snapshots, &[vpa]);
    let mut last: Option<Shown> = None;
    let mut rows = Vec::new();
    for (index, snapshot) in snapshots.iter().enumerate().filter(|(index, _)| is_shown[*index]) {
        let status = snapshot.status(vpa).unwrap_or(&none);
        let amounts = amounts(status);
        let conditions = conditions(status);
        let now = Shown::new(&amounts, conditions.clone());
        let is_similar = selection == Rows::All && last.as_ref().is_some_and(|it| it.covers(&now));
        let repeats = is_similar && snapshot.log.is_empty() && index + 1 < snapshots.len();
        let changed = last.as_ref().is_none_or(|last| last.conditions != conditions);
        let mut notes = if changed { conditions } else { Vec::new() };
        notes.extend(counted_lines(&snapshot.log));
        let head = [(index + 1).to_string(), snapshot.at.to_string()];
        let lines = lines(head, &amounts, is_capped, &notes.join("; "));
        let (at, emphasis) = (snapshot.at, Emphasis::None);
        rows.push(Row::Tick(TickRow { at, lines, emphasis, repeats }));
        if !repeats {
            last = Some(now);
        }
    }
    let mut columns = vec![Column::number("tick")];
    columns.extend(["t", "container", "resource"].map(Column::text));
    columns.extend(["lower", "target", "upper"].map(Column::number));
    columns.extend(is_capped.then(|| Column::number("uncapped")));
    columns.push(Column::text("status"));
    TickTable { columns, rows, repeated: "similar results" }
}

/// The lines of a run: one for each resource of a container. The first one has the head and the
/// notes.
fn lines(head: [String; 2], amounts: &[Amounts], is_capped: bool, notes: &str) -> Vec<Vec<String>> {
    let width = 6 + usize::from(is_capped);
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut container = None;
    for amounts in amounts {
        let is_same = container == Some(&amounts.container);
        container = Some(&amounts.container);
        let name = if is_same { String::new() } else { amounts.container.clone() };
        let [target, lower, upper, uncapped] = cell_texts(amounts);
        let mut line = vec![name, amounts.resource.name().to_owned(), lower, target, upper];
        line.extend(is_capped.then_some(uncapped));
        lines.push(line);
    }
    if lines.is_empty() {
        lines.push(Vec::new());
    }
    for (index, line) in lines.iter_mut().enumerate() {
        let (head, notes) = if index == 0 { (head.clone(), notes) } else { Default::default() };
        line.resize(width - 1, String::new());
        line.push(notes.to_owned());
        line.splice(0..0, head);
    }
    lines
}

/// The target, the lower and upper bound, and the uncapped target, for people.
fn cell_texts(amounts: &Amounts) -> [String; 4] {
    let mut texts = amounts.texts.clone();
    for (text, bytes) in texts.iter_mut().zip(amounts.values) {
        if amounts.resource == Resource::Memory && !text.is_empty() {
            *text = Resource::Memory.text(bytes as i64);
        }
    }
    texts
}

/// Logged errors, equal ones once with their number.
fn counted_lines(log: &[LogLine]) -> Vec<String> {
    let mut lines: Vec<(String, usize)> = Vec::new();
    for text in log.iter().map(ToString::to_string) {
        match lines.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => lines.push((text, 1)),
        }
    }
    let text = |(text, count)| match count {
        1 => text,
        count => format!("{text} (×{count})"),
    };
    lines.into_iter().map(text).collect()
}
