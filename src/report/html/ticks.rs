//! The ticks of a timeline for the panel below its charts.

use super::panels::{PanelTick, PanelTicks, TickKind};
use super::timeline::{Tick, Timeline};
use crate::model::api::HpaStatus;
use crate::model::observation::{EventVerb, SentEvent};
use crate::report::explain::delivery;
use crate::report::table;

/// The note of a panel on ticks without derivations. It follows their number.
pub(super) const LEFT_OUT: &str =
    "between these are left out here; kube-lockstep explain --at TIME shows each.";

/// The maximum number of characters of a summary.
const SUMMARY: usize = 240;

/// The ticks of a timeline: at most about `most`.
pub(super) fn of(timeline: &Timeline<'_>, most: usize) -> PanelTicks {
    let marked = timeline.marked_tick();
    let mut ticks = Vec::new();
    let mut before: Option<&HpaStatus> = None;
    let kept = kept(timeline, most);
    for (index, tick) in timeline.ticks.iter().enumerate() {
        let changed = table::changed_conditions(tick.observation, before);
        before = tick.observation.status_write().map(|write| &write.status).or(before);
        if !kept[index] {
            continue;
        }
        let mark = timeline.mark.as_ref().zip(marked);
        let kind = match mark.and_then(|(mark, marked)| mark.kind(index, marked)) {
            Some(kind) => kind,
            None if tick.observation.scaled_to().is_some() => TickKind::Change,
            None => TickKind::Other,
        };
        let differs = mark.filter(|(_, marked)| *marked == index).map(|(mark, _)| mark.fields());
        ticks.push(PanelTick {
            number: tick.number,
            at: tick.observation.at,
            result: replicas(tick),
            kind,
            summary: summary(tick, &changed),
            steps: steps(tick),
            writes: [differs.unwrap_or_default(), writes(tick, &changed)].concat(),
        });
    }
    let left_out = timeline.ticks.len() - ticks.len();
    let note = LEFT_OUT;
    PanelTicks { end: timeline.end(), ticks, left_out, note }
}

/// Whether each tick is part of the data: at most about `most` ticks. Half of them have events,
/// and half are at equal distances. If there are more ticks with events, these are at equal
/// distances as well.
fn kept(timeline: &Timeline<'_>, most: usize) -> Vec<bool> {
    let ticks = &timeline.ticks;
    if ticks.len() <= most {
        return vec![true; ticks.len()];
    }
    let half = most / 2;
    let has_event = |tick: &&Tick<'_>| tick.observation.events().next().is_some();
    let every = ticks.len().div_ceil(half);
    let every_eventful = ticks.iter().filter(has_event).count().div_ceil(half).max(1);
    let marked = timeline.marked_tick();
    let mut eventful = 0;
    let keep = ticks.iter().enumerate().map(|(index, tick)| {
        let has_event = has_event(&tick);
        let is_kept = has_event && eventful % every_eventful == 0;
        eventful += usize::from(has_event);
        is_kept || index.is_multiple_of(every) || Some(index) == marked
    });
    keep.collect()
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
            match why.char_indices().nth(SUMMARY) {
                Some((end, _)) => format!("{}…", &why[..end]),
                None => why,
            }
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
