//! Divides the file of a scenario with an HPA and a VPA into the parts of both.

use super::action::Action;
use super::error::Problem;
use super::event::variants;
use super::node::{Key, Kind, Node};
use super::vpa::VpaAction;

/// The fields of a file that belong to the VPA.
pub(super) const FIELDS: [&str; 6] =
    ["vpa", "vpas", "vpaRelease", "recommender", "updater", "checkpoints"];
/// The fields of expectations that belong to the VPA.
pub(super) const EXPECTED: [&str; 13] = [
    "vpa",
    "container",
    "target",
    "lowerBound",
    "upperBound",
    "uncappedTarget",
    "containers",
    "noConditions",
    "observedGeneration",
    "checkpoints",
    "samples",
    "checkpointStatus",
    "log",
];
/// The actions of the recommender's timeline that are not possible beside an HPA, whose timeline
/// determines pods and metrics.
const ACTIONS_WITHOUT_HPA: [&str; 2] = ["relabel", "metricsLate"];
/// The fields of a scenario of the recommender that are not possible beside an HPA.
const FIELDS_WITHOUT_HPA: [&str; 1] = ["history"];
/// The fields of the workload that the recommender reads.
const WORKLOAD: [&str; 2] = ["containers", "labels"];
/// The fields that both parts have.
const COMMON: [&str; 4] = ["apiVersion", "kind", "requirement", "until"];

/// Returns true if a file has an HPA and a VPA.
pub(super) fn has_both(root: &Node) -> bool {
    let has = |names: [&str; 2]| names.into_iter().any(|name| root.entry(name).is_some());
    has(["hpa", "hpas"]) && has(["vpa", "vpas"])
}

/// Removes the part of the VPA from a file with both. The part is the file of a scenario of the
/// recommender, with the additional fields `vpaRelease` and `updater`.
pub(super) fn take_vpa(root: &mut Node) -> Node {
    let mut part = Vec::new();
    for name in COMMON {
        part.extend(root.entry(name).map(|(key, node)| (key.clone(), node.clone())));
    }
    if let Some((key, node)) = root.entry("workload") {
        let fields = WORKLOAD.into_iter().filter_map(|name| node.entry(name));
        let fields = fields.map(|(key, node)| (key.clone(), node.clone())).collect();
        part.push((key.clone(), Node { kind: Kind::Map(fields), ..node.clone() }));
    }
    if let Kind::Map(entries) = &mut root.kind {
        part.extend(entries.extract_if(.., |(key, _)| FIELDS.contains(&key.text.as_str())));
        part.extend(take_items(entries, "timeline", &actions()));
        part.extend(take_items(entries, "expect", &EXPECTED));
    }
    Node { kind: Kind::Map(part), ..root.clone() }
}

/// Rewrites an error of the HPA part, for a file with both parts. `root` is the HPA part.
pub(super) fn explain(mut problem: Problem, root: &Node) -> Problem {
    let place = (problem.line, problem.column);
    let is_at = |node: &Node, names: &[&str]| {
        let keys = names.iter().filter_map(|name| node.entry(name));
        keys.map(|(key, _)| (key.line, key.column)).any(|key| key == place)
    };
    let events = match root.entry("timeline") {
        Some((_, Node { kind: Kind::List(events), .. })) => events.as_slice(),
        _ => &[],
    };
    let is_unknown = problem.what.starts_with("unknown field `");
    let is_action = events.iter().any(|event| is_at(event, &ACTIONS_WITHOUT_HPA));
    if is_unknown && (is_at(root, &FIELDS_WITHOUT_HPA) || is_action) {
        let name = problem.what.split('`').nth(1).unwrap_or_default();
        problem.what = format!("`{name}` is not supported in a scenario with an HPA and a VPA");
        problem.hint = Some("remove it, or remove the HPA".to_owned());
    } else if let Some(hint) = problem.hint.as_mut().filter(|it| it.starts_with(ROOT_FIELDS)) {
        let fields: Vec<&str> = FIELDS.into_iter().filter(|name| *name != "vpas").collect();
        hint.push_str(&format!("; for the VPA: {}", fields.join(", ")));
    }
    problem
}

/// The beginning of the hint for an unknown field of a file.
const ROOT_FIELDS: &str = "expected one of apiVersion, kind, requirement, ";

/// The actions that belong to the VPA: those that the HPA's timeline does not have.
pub(super) fn actions() -> Vec<&'static str> {
    let of_hpa = variants::<Action>();
    let is_own = |name: &&str| !of_hpa.contains(name) && !ACTIONS_WITHOUT_HPA.contains(name);
    variants::<VpaAction>().iter().copied().filter(is_own).collect()
}

/// Removes the elements of a list that have one of some fields.
fn take_items(entries: &mut [(Key, Node)], name: &str, fields: &[&str]) -> Option<(Key, Node)> {
    let (key, node) = entries.iter_mut().find(|(key, _)| key.text == name)?;
    let Kind::List(items) = &mut node.kind else { return None };
    let is_taken = |item: &mut Node| fields.iter().any(|field| item.entry(field).is_some());
    let taken: Vec<Node> = items.extract_if(.., is_taken).collect();
    let (line, column) = (node.line, node.column);
    Some((key.clone(), Node { line, column, kind: Kind::List(taken) }))
}
