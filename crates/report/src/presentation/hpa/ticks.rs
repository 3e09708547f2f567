//! The ticks of an HPA: their changes of replicas, and the reasons.

use super::explanation::delivery;
use super::{Timeline, rows};
use crate::presentation::ticks::{Selection, kept};
use crate::presentation::{Detail, Tick, TickKind, Ticks, words};
use kube_autoscaler_models::api::HpaStatus;
use kube_autoscaler_models::observation::{EventVerb, SentEvent};

/// The maximum number of characters of a summary.
const SUMMARY: usize = 240;

/// The ticks of a timeline: about as many as the detail has.
pub(super) fn select(timeline: &Timeline<'_>, detail: Detail) -> Ticks {
    let marked = timeline.marked_tick();
    let mut before: Option<&HpaStatus> = None;
    let changed = timeline.ticks.iter().map(|tick| {
        let changed = rows::changed_conditions(tick.observation, before);
        before = tick.observation.status_write().map(|write| &write.status).or(before);
        changed
    });
    let changed: Vec<Vec<String>> = changed.collect();
    let happens = timeline.ticks.iter().zip(&changed).map(|(tick, changed)| {
        let has_event = tick.observation.events().next().is_some();
        !changed.is_empty() || has_event || tick.is_change()
    });
    let kept = kept(detail.ticks, marked, &happens.collect::<Vec<bool>>());
    let every = detail.every_value(timeline.ticks.len());
    let mark = timeline.mark.as_ref().zip(marked);
    Selection { kept: &kept, every, mark }.ticks(|index, has_steps| {
        let (tick, changed) = (&timeline.ticks[index], &changed[index]);
        let why = summary(tick, changed);
        let is_change = tick.observation.scaled_to().is_some();
        Tick {
            number: tick.number,
            at: tick.observation.at,
            result: replicas(tick),
            kind: if is_change { TickKind::Change } else { TickKind::Other },
            limits: tick.limits(),
            summary: if has_steps { why } else { values(tick, &why) },
            steps: has_steps.then(|| steps(tick)),
            writes: writes(tick, changed),
        }
    })
}
/// The metrics and the reason of a tick, in one line: `cpu 88%/80%. stabilization holds 7`.
fn values(tick: &super::Tick<'_>, why: &str) -> String {
    let metrics = tick.derivation.map_or(&[][..], |derivation| &derivation.metrics);
    let metrics = metrics.iter().map(|it| format!("{} {}", it.title(), rows::metric(it)));
    let metrics = metrics.collect::<Vec<_>>().join(", ");
    let texts = [metrics.as_str(), why].into_iter().filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join("; ")
}

/// `replicas 4 → 7`, or `7 replicas`.
fn replicas(tick: &super::Tick<'_>) -> String {
    match tick.change() {
        Some((before, after)) if before != after => format!("replicas {before} → {after}"),
        Some((_, 1)) => "1 replica".to_owned(),
        Some((_, after)) => format!("{after} replicas"),
        None => String::new(),
    }
}

/// Why, in one line. The whole messages of events are in the list below it.
fn summary(tick: &super::Tick<'_>, changed: &[String]) -> String {
    match tick.derivation {
        Some(derivation) => {
            let why = rows::why(tick.observation, derivation, changed);
            words::cut(&why, SUMMARY)
        }
        None => "the model predicted no reconcile at this time".to_owned(),
    }
}

fn steps(tick: &super::Tick<'_>) -> Vec<String> {
    tick.derivation.map(|derivation| derivation.explain()).unwrap_or_default()
}

/// Refused writes, events, errors and changed conditions.
fn writes(tick: &super::Tick<'_>, changed: &[String]) -> Vec<String> {
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
