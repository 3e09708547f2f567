//! The ticks of a timeline for the panel below its charts.

use super::detail::Detail;
use super::panels::{Kept, PanelTick, PanelTicks, TickKind};
use super::timeline::{Tick, Timeline};
use super::words;
use crate::explain::delivery;
use crate::table;
use kube_autoscaler_models::api::HpaStatus;
use kube_autoscaler_models::observation::{EventVerb, SentEvent};

/// The note of a panel on ticks without derivations. It follows their number.
pub(super) const LEFT_OUT: &str =
    "of this timeline are left out here; kube-lockstep explain --at TIME shows each.";

/// The maximum number of characters of a summary.
const SUMMARY: usize = 240;

/// The ticks of a timeline: about as many as the detail has.
pub(super) fn of(timeline: &Timeline<'_>, detail: Detail) -> PanelTicks {
    let marked = timeline.marked_tick();
    let mut ticks = Vec::new();
    let mut before: Option<&HpaStatus> = None;
    let count = timeline.ticks.len();
    let changed: Vec<Vec<String>> = timeline
        .ticks
        .iter()
        .map(|tick| {
            let changed = table::changed_conditions(tick.observation, before);
            before = tick.observation.status_write().map(|write| &write.status).or(before);
            changed
        })
        .collect();
    let happens = timeline.ticks.iter().zip(&changed).map(|(tick, changed)| {
        let observation = tick.observation;
        !changed.is_empty() || observation.events().next().is_some() || tick.is_change()
    });
    let happens: Vec<bool> = happens.collect();
    let kept = Kept { most: detail.ticks, marked }.of(&happens);
    let every = detail.every_value(count);
    for (index, tick) in timeline.ticks.iter().enumerate() {
        let has_values = every.is_some_and(|every| index.is_multiple_of(every));
        if !kept[index] && !has_values {
            continue;
        }
        let changed = &changed[index];
        let mark = timeline.mark.as_ref().zip(marked);
        let kind = match mark.and_then(|(mark, marked)| mark.kind(index, marked)) {
            Some(kind) => kind,
            None if tick.observation.scaled_to().is_some() => TickKind::Change,
            None => TickKind::Other,
        };
        let differs = mark.filter(|(_, marked)| *marked == index).map(|(mark, _)| mark.fields());
        let why = summary(tick, changed);
        ticks.push(PanelTick {
            number: tick.number,
            at: tick.observation.at,
            result: replicas(tick),
            kind,
            limits: tick.limits(),
            summary: if kept[index] { why } else { values(tick, &why) },
            steps: kept[index].then(|| steps(tick)),
            writes: [differs.unwrap_or_default(), writes(tick, changed)].concat(),
        });
    }
    let left_out = count - ticks.len();
    PanelTicks { end: timeline.end(), zero: timeline.zero(), ticks, left_out, note: LEFT_OUT }
}

/// The metrics and the reason of a tick, in one line: `cpu 88%/80%. stabilization holds 7`.
fn values(tick: &Tick<'_>, why: &str) -> String {
    let metrics = tick.derivation.map_or(&[][..], |derivation| &derivation.metrics);
    let metrics = metrics.iter().map(|it| format!("{} {}", it.title(), table::metric(it)));
    let metrics = metrics.collect::<Vec<_>>().join(", ");
    let texts = [metrics.as_str(), why].into_iter().filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join("; ")
}

/// `replicas 4 → 7`, or `7 replicas`.
fn replicas(tick: &Tick<'_>) -> String {
    match tick.change() {
        Some((before, after)) if before != after => format!("replicas {before} → {after}"),
        Some((_, 1)) => "1 replica".to_owned(),
        Some((_, after)) => format!("{after} replicas"),
        None => String::new(),
    }
}

/// Why, in one line. The whole messages of events are in the list below it.
fn summary(tick: &Tick<'_>, changed: &[String]) -> String {
    match tick.derivation {
        Some(derivation) => {
            let why = table::why(tick.observation, derivation, changed);
            words::cut(&why, SUMMARY)
        }
        None => "the model predicted no reconcile at this time".to_owned(),
    }
}

fn steps(tick: &Tick<'_>) -> Vec<String> {
    tick.derivation.map(|derivation| derivation.explain()).unwrap_or_default()
}

/// Refused writes, events, errors and changed conditions.
fn writes(tick: &Tick<'_>, changed: &[String]) -> Vec<String> {
    let observation = tick.observation;
    let refused = observation.scale_writes().filter_map(|write| {
        let error = write.error.as_ref()?;
        Some(format!("scale to {} refused: {error}", write.replicas))
    });
    let is_sent = observation.sent_events().next().is_some();
    let events = observation.deliveries().map(|(event, sent)| match sent {
        Some(SentEvent { verb: EventVerb::Create, .. }) => event.to_string(),
        // On a cluster, the requests are not observed.
        None if !is_sent => event.to_string(),
        sent => format!("{event} ({})", delivery(sent)),
    });
    let errors = observation.errors().map(|error| format!("error: {error}"));
    refused.chain(events).chain(errors).chain(changed.iter().cloned()).collect()
}
