//! The ticks of a VPA: its targets, and how they are derived.

use super::Timeline;
use super::rows::conditions;
use crate::counted;
use crate::presentation::ticks::Selection;
use crate::presentation::{Detail, Mark, Tick, TickKind, Ticks, Unit, ticks as selection};
use kube_autoscaler_models::vpa::{Resource, Samples, Snapshot, VpaStatus};
use kube_lockstep_sim::run::recommendation::{Amounts, Derivation, amounts, derivation_of};
use kube_lockstep_sim::run::recommender::Derived;

/// Selects the runs whose derivations are kept: all of a short run; otherwise those in which
/// something happens, and every n-th. `most` is the approximate number.
pub(super) fn kept(snapshots: &[Snapshot], most: usize, marked: Option<usize>) -> Vec<bool> {
    let happens: Vec<bool> = (0..snapshots.len()).map(|it| has_event(snapshots, it)).collect();
    selection::kept(most, marked, &happens)
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
            Some(format!("{} {}", resource.name(), Unit::for_resource(resource).text(milli)))
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

/// The ticks of a VPA: about as many as the detail has.
pub(super) fn select(timeline: &Timeline<'_>, detail: Detail) -> Ticks {
    let run = &timeline.run;
    let none = VpaStatus::default();
    let status = |index: usize| {
        run.snapshots.get(index).and_then(|it| it.statuses.get(timeline.vpa)).unwrap_or(&none)
    };
    let every = detail.every_value(run.snapshots.len());
    let mark = run.mark.as_ref().map(|mark| (mark, marked(mark)));
    Selection { kept: &run.kept, every, mark }.ticks(|index, has_steps| {
        let now = status(index);
        let before = index.checked_sub(1).map_or(&none, status);
        let (result, is_change) = (targets(now), targets(before) != targets(now));
        Tick {
            number: index + 1,
            at: run.snapshots[index].at,
            result: match result.is_empty() {
                true => "no recommendation".to_owned(),
                false => format!("target of {result}"),
            },
            kind: if is_change { TickKind::Change } else { TickKind::Other },
            limits: Vec::new(),
            summary: usage(timeline, index),
            steps: has_steps.then(|| steps(timeline, index)),
            writes: writes(timeline, index, before, now),
        }
    })
}

/// The usage that the run read.
fn usage(timeline: &Timeline<'_>, index: usize) -> String {
    let usage = timeline.run.model.usage.get(index).map_or(&[][..], Vec::as_slice);
    let texts = usage.iter().filter(|it| it.vpa == *timeline.vpa).map(|it| {
        let text = |amount: i64| match it.resource {
            Resource::Cpu => Unit::Cores.text(amount as f64),
            Resource::Memory => Unit::Bytes.text(amount as f64 * 1000.0),
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
fn steps(timeline: &Timeline<'_>, index: usize) -> Vec<String> {
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
    timeline: &Timeline<'_>,
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

/// How the amounts of a VPA were derived: one text for each amount. Amounts that a
/// recommendation does not contain are left out.
fn derivations(status: &VpaStatus, derived: &Derived) -> Vec<String> {
    let recommended = amounts(status);
    let mut texts = Vec::new();
    for (container, estimations) in &derived.estimations {
        if let Some(samples) = derived.samples.get(container) {
            let Samples { count, first, last, .. } = samples;
            texts.push(match count {
                0 => format!("{container}: no cpu samples"),
                _ => {
                    let count = counted(usize::try_from(*count).unwrap_or(0), "cpu sample");
                    format!("{container}: {count} from {first} to {last}")
                }
            });
        }
        for estimation in estimations {
            let is_it =
                |it: &&Amounts| it.container == **container && it.resource == estimation.resource;
            let result = recommended.iter().find(is_it);
            if result.is_none() && !recommended.is_empty() {
                continue;
            }
            let Derivation { what, how } = derivation_of(estimation, result);
            texts.push(format!("{container} {what}: {how}"));
        }
    }
    texts
}
