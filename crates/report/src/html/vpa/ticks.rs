//! The ticks of a VPA for the panel below its charts.

use super::VpaTimeline;
use crate::html::mark::Mark;
use crate::html::panels::{Kept, PanelTick, PanelTicks, TickKind};
use crate::html::ticks::LEFT_OUT;
use crate::html::words;
use crate::recommender::{conditions, derivations};
use kube_autoscaler_models::quantity::human;
use kube_autoscaler_models::vpa::{Resource, Snapshot, VpaStatus};

/// The indices of the runs whose derivations are kept, sorted: all of a short run; otherwise those
/// in which something happens, and every n-th. `most` is the approximate number.
pub(super) fn kept(snapshots: &[Snapshot], most: usize, marked: Option<usize>) -> Vec<usize> {
    let happens: Vec<bool> = (0..snapshots.len()).map(|it| has_event(snapshots, it)).collect();
    let kept = Kept { most, marked }.of(&happens);
    (0..snapshots.len()).filter(|index| kept[*index]).collect()
}

/// Returns true if a target or a condition changes, or an error is logged.
fn has_event(snapshots: &[Snapshot], index: usize) -> bool {
    let now = &snapshots[index];
    let before = index.checked_sub(1).map(|before| &snapshots[before]);
    let same = |(name, status): (&_, &VpaStatus)| {
        let before = before.and_then(|before| before.statuses.get(name));
        before.is_some_and(|before| {
            targets(before) == targets(status) && conditions(before) == conditions(status)
        })
    };
    !now.log.is_empty() || !now.statuses.iter().all(same)
}

/// `app cpu 587m, memory 362.6Mi`.
pub(super) fn targets(status: &VpaStatus) -> String {
    let containers = status.containers();
    let texts = containers.iter().filter_map(|container| {
        let of = |resource: Resource| {
            let milli = container.target.amount(resource.name())?.approx_f64() * 1000.0;
            let text = match resource {
                Resource::Cpu => words::cores(milli),
                Resource::Memory => human::bytes(milli),
            };
            Some(format!("{} {text}", resource.name()))
        };
        let amounts: Vec<String> =
            [Resource::Cpu, Resource::Memory].into_iter().filter_map(of).collect();
        let name = &container.container_name;
        (!amounts.is_empty()).then(|| format!("{name} {}", amounts.join(", ")))
    });
    texts.collect::<Vec<_>>().join("; ")
}

/// The index of the marked run.
pub(super) fn marked(mark: &Mark<'_>) -> usize {
    mark.first.tick.saturating_sub(1)
}

/// The ticks of a VPA.
pub(super) fn of(timeline: &VpaTimeline<'_>) -> PanelTicks {
    let run = timeline.run;
    let none = VpaStatus::default();
    let status = |index: usize| {
        run.snapshots.get(index).and_then(|it| it.statuses.get(timeline.vpa)).unwrap_or(&none)
    };
    let mark = run.mark.as_ref();
    let count = run.snapshots.len();
    let every = run.detail.every_value(count);
    let has_steps = |index: usize| run.kept.binary_search(&index).is_ok();
    let has_values = |index: usize| every.is_some_and(|every| index.is_multiple_of(every));
    let shown = (0..count).filter(|index| has_steps(*index) || has_values(*index));
    let ticks = shown.map(|index| {
        let now = status(index);
        let before = index.checked_sub(1).map_or(&none, status);
        let marked = mark.map(marked);
        let kind = match mark.zip(marked).and_then(|(mark, marked)| mark.kind(index, marked)) {
            Some(kind) => kind,
            None if targets(before) != targets(now) => TickKind::Change,
            None => TickKind::Other,
        };
        let differs = mark.filter(|_| marked == Some(index)).map(Mark::fields);
        let differs = differs.unwrap_or_default();
        PanelTick {
            number: index + 1,
            at: run.snapshots[index].at,
            result: match targets(now) {
                text if text.is_empty() => "no recommendation".to_owned(),
                text => format!("target of {text}"),
            },
            kind,
            limits: Vec::new(),
            summary: usage(timeline, index),
            steps: has_steps(index).then(|| steps(timeline, index)),
            writes: [differs, writes(timeline, index, before, now)].concat(),
        }
    });
    let ticks: Vec<_> = ticks.collect();
    let left_out = count - ticks.len();
    PanelTicks { end: run.end, zero: run.zero, ticks, left_out, note: LEFT_OUT }
}

/// The usage that the run read.
fn usage(timeline: &VpaTimeline<'_>, index: usize) -> String {
    let usage = timeline.run.model.usage.get(index).map_or(&[][..], Vec::as_slice);
    let texts = usage.iter().filter(|it| it.vpa == *timeline.vpa).map(|it| {
        let text = |amount: i64| match it.resource {
            Resource::Cpu => words::cores(amount as f64),
            Resource::Memory => human::bytes(amount as f64 * 1000.0),
        };
        let amount = match it.lowest == it.highest {
            true => text(it.lowest),
            false => format!("{} to {}", text(it.lowest), text(it.highest)),
        };
        format!("{} {} {amount}", it.container, it.resource.name())
    });
    let texts: Vec<String> = texts.collect();
    match texts.is_empty() {
        true => "No usage of its pods.".to_owned(),
        false => format!("Usage: {}", texts.join("; ")),
    }
}

/// The derivations of the model.
fn steps(timeline: &VpaTimeline<'_>, index: usize) -> Vec<String> {
    let model = &timeline.run.model.run;
    let explained = model.explained.get(&index);
    let derived = explained.and_then(|it| it.derived.iter().find(|it| it.vpa == *timeline.vpa));
    let snapshot = model.snapshots.get(index);
    let status = snapshot.and_then(|snapshot| snapshot.statuses.get(timeline.vpa));
    match (status, derived) {
        (Some(status), Some(derived)) => derivations(status, derived),
        _ => Vec::new(),
    }
}

/// Changed conditions, and errors.
fn writes(
    timeline: &VpaTimeline<'_>,
    index: usize,
    before: &VpaStatus,
    now: &VpaStatus,
) -> Vec<String> {
    let known = conditions(before);
    let changed = conditions(now).into_iter().filter(|condition| !known.contains(condition));
    let logs = timeline.run.snapshots[index].log.iter();
    let logs = logs.map(|log| format!("error: {log}"));
    changed.chain(logs).collect()
}
