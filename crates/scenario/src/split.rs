//! Divides the file of a scenario with an HPA and a VPA into the parts of both, and rewrites their
//! errors for the whole file.

use super::action::{Action, TimelineEvent};
use super::error::{similar, suggest};
use super::event::{EventForm, variants};
use super::node::{Key, Node, NodeKind};
use super::vpa::{VpaAction, VpaTimelineEvent};
use crate::diagnostic::{Diagnostic, Hint, Kind};

/// The fields of a file that belong to the VPA.
pub(crate) const FIELDS: [&str; 6] =
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
const ACTIONS_WITHOUT_HPA: [&str; 3] = ["relabel", "editPods", "metricsLate"];
/// The fields and actions of the HPA's timeline that are not possible beside a VPA.
pub const EVENTS_WITHOUT_VPA: [&str; 3] = ["metricsSlow", "during", "cacheLag"];
/// The field of an event that names its VPA.
const VPA_OF_EVENT: &str = "vpa";
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
        part.push((key.clone(), Node { kind: NodeKind::Map(fields), ..node.clone() }));
    }
    if let NodeKind::Map(entries) = &mut root.kind {
        part.extend(entries.extract_if(.., |(key, _)| FIELDS.contains(&key.text.as_str())));
        let own: Vec<&str> = actions().into_iter().chain([VPA_OF_EVENT]).collect();
        part.extend(take_items(entries, "timeline", &own));
        part.extend(take_items(entries, "expect", &EXPECTED));
    }
    Node { kind: NodeKind::Map(part), ..root.clone() }
}

/// Rewrites an error of one of the parts, for a file with both.
pub(crate) fn explain(mut problem: Diagnostic, part: &Node) -> Diagnostic {
    if problem.file().is_some() {
        return problem;
    }
    let place = problem.place.clone();
    let events = match part.entry("timeline") {
        Some((_, Node { kind: NodeKind::List(events), .. })) => events.as_slice(),
        _ => &[],
    };
    let is_place = |line: usize, column: usize| {
        place.as_ref().is_some_and(|place| (line, column) == (place.line, place.column))
    };
    let Kind::UnknownField(name) = problem.kind.clone() else {
        let event = events.iter().find(|event| is_place(event.line, event.column));
        let lacks_action = event.is_some_and(|event| given_actions(event).is_empty());
        let is_of_vpa = part.entry("vpa").is_some() && problem.kind == Kind::Other;
        return if is_of_vpa && lacks_action {
            problem.hint(format!("add one of {}", actions().join(", ")))
        } else {
            problem
        };
    };
    let is_at =
        |node: &&Node| node.entry(&name).is_some_and(|(key, _)| is_place(key.line, key.column));
    if let Some(event) = events.iter().find(is_at) {
        explain_event(&mut problem, &name, event);
    } else if FIELDS_WITHOUT_HPA.contains(&&*name) && is_at(&part) {
        not_beside_an_hpa(&mut problem, &name);
    } else if let Some(all @ Hint::Values(_)) = &problem.hint
        && is_at(&part)
    {
        let fields: Vec<&str> = FIELDS.into_iter().filter(|name| *name != "vpas").collect();
        let both = format!("{all}; for the VPA: {}", fields.join(", "));
        let hint = similar(&name, fields).unwrap_or(both.into());
        return problem.hint(hint);
    }
    problem
}

fn not_beside_an_hpa(problem: &mut Diagnostic, name: &str) {
    problem.what = format!("`{name}` is not supported in a scenario with an HPA and a VPA");
    problem.hint = Some("remove it, or remove the HPA".into());
}

/// Rewrites the error for an unknown field of an event, which may belong to the other timeline.
fn explain_event(problem: &mut Diagnostic, name: &str, event: &Node) {
    let given = given_actions(event);
    let known = event_fields();
    if ACTIONS_WITHOUT_HPA.contains(&name) {
        not_beside_an_hpa(problem, name);
    } else if EVENTS_WITHOUT_VPA.contains(&name) {
        problem.what = format!("`{name}` is not supported in a scenario with a VPA");
        problem.hint = Some("remove it, or remove the VPA".into());
    } else if !known.contains(&name) {
        problem.hint = suggest(name, known);
    } else if given.len() > 1 {
        problem.what = format!("expected one action, found {}: {}", given.len(), given.join(", "));
        problem.hint = Some("write a separate event for each action".into());
    } else {
        let other = given.iter().find(|other| **other != name).copied().unwrap_or(VPA_OF_EVENT);
        problem.what = format!("`{name}` can't be combined with `{other}`");
        problem.hint = Some(format!("remove `{other}` or `{name}`").into());
    }
}

/// The actions of an event, of either timeline.
fn given_actions(event: &Node) -> Vec<&str> {
    let NodeKind::Map(entries) = &event.kind else { return Vec::new() };
    let is_action =
        |name: &&str| variants::<Action>().contains(name) || variants::<VpaAction>().contains(name);
    entries.iter().map(|(key, _)| &*key.text).filter(is_action).collect()
}

/// The fields of events, also those that are actions.
fn event_fields() -> Vec<&'static str> {
    let without = |name: &&str| !ACTIONS_WITHOUT_HPA.contains(name);
    let of_hpa = TimelineEvent::fields().iter().copied();
    let mut fields: Vec<&str> = of_hpa.filter(|name| !EVENTS_WITHOUT_VPA.contains(name)).collect();
    let of_vpa = VpaTimelineEvent::fields().iter().copied().filter(without);
    let more: Vec<&str> = of_vpa.filter(|name| !fields.contains(name)).collect();
    fields.extend(more);
    fields
}

/// The actions that belong to the VPA: those that the HPA's timeline does not have.
pub(crate) fn actions() -> Vec<&'static str> {
    let of_hpa = variants::<Action>();
    let is_own = |name: &&str| !of_hpa.contains(name) && !ACTIONS_WITHOUT_HPA.contains(name);
    variants::<VpaAction>().iter().copied().filter(is_own).collect()
}

/// The names of the init containers of the workload in the HPA part.
pub(crate) fn init_containers(root: &Node) -> Vec<String> {
    let list = root.entry("workload").and_then(|(_, node)| node.entry("initContainers"));
    let Some((_, Node { kind: NodeKind::List(items), .. })) = list else { return Vec::new() };
    let name = |item: &Node| item.entry("name")?.1.to_json().as_str().map(str::to_owned);
    items.iter().filter_map(name).collect()
}

/// Removes the elements of a list that have one of some fields.
fn take_items(entries: &mut [(Key, Node)], name: &str, fields: &[&str]) -> Option<(Key, Node)> {
    let (key, node) = entries.iter_mut().find(|(key, _)| key.text == name)?;
    let NodeKind::List(items) = &mut node.kind else { return None };
    let is_taken = |item: &mut Node| fields.iter().any(|field| item.entry(field).is_some());
    let taken: Vec<Node> = items.extract_if(.., is_taken).collect();
    let (line, column) = (node.line, node.column);
    Some((key.clone(), Node { line, column, kind: NodeKind::List(taken) }))
}
