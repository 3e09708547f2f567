//! Recorded traces as text: a header line, then one JSON value per line in order of time.
//!
//! The values are the project's own types in the JSON of the API. Two rules keep the files small
//! and their diffs short: a status lists only the conditions that changed since the previous status
//! of the HPA, and reconciles that only repeat the previous one are counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::header::{Build, Header};
use super::{ApiAnswer, Trace};
use kube_autoscaler_models::api::{HpaCondition, HpaStatus};
use kube_autoscaler_models::as_text;
use kube_autoscaler_models::content_hash::content_hash;
use kube_autoscaler_models::observation::Observation;
use kube_autoscaler_models::time::Span;

/// A line after the header.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum Line {
    /// An answer of the API server.
    Api(ApiAnswer),
    Reconcile(Observation),
    /// A reconcile that had not ended at the end of the scenario.
    Unfinished(Observation),
    /// The previous reconcile is repeated without its writes and new values of gauges. Events that
    /// are patched count on.
    Repeat {
        times: usize,
        #[serde(with = "as_text")]
        every: Span,
    },
    /// The next status of the HPA lists all of its conditions, because some were removed or their
    /// order changed.
    ResetConditions {
        hpa: Arc<str>,
    },
}

/// The error for a text that is not a recorded trace.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TextError {
    /// The line, from 1.
    pub line: usize,
    /// The cause, for users.
    pub what: String,
}

/// Writes a trace in its recorded form, for the builds that were recorded with it.
///
/// # Errors
/// If a value cannot be written as JSON, for example a time beyond the year 9999.
pub fn write(trace: &Trace, builds: &[Build]) -> Result<String, serde_json::Error> {
    let mut body = String::new();
    for line in lines(trace) {
        body.push_str(&serde_json::to_string(&line)?);
        body.push('\n');
    }
    let header = Header {
        scenario: trace.scenario.clone(),
        hash: trace.hash.clone(),
        body: content_hash(&body),
        engine: trace.engine.clone(),
        builds: builds.to_vec(),
    };
    Ok(format!("{}\n{body}", serde_json::to_string(&header)?))
}

fn lines(trace: &Trace) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut conditions = Conditions::default();
    let mut api = trace.api.iter().peekable();
    let mut index = 0;
    loop {
        while let Some((_, answer)) = api.next_if(|(before, _)| *before <= index) {
            lines.push(Line::Api(answer.clone()));
        }
        let Some(tick) = trace.ticks.get(index) else { break };
        let end = api.peek().map_or(trace.ticks.len(), |(before, _)| *before);
        let ticks = &trace.ticks[index..end.min(trace.ticks.len())];
        let before = index.checked_sub(1).map(|before| &trace.ticks[before]);
        if let Some((times, every)) = before.and_then(|before| repeats(ticks, before)) {
            lines.push(Line::Repeat { times, every });
            index += times;
        } else {
            let mut tick = tick.clone();
            for write in tick.status_writes_mut() {
                if !conditions.shorten(&write.name, &mut write.status) {
                    lines.push(Line::ResetConditions { hpa: write.name.clone() });
                }
            }
            lines.push(Line::Reconcile(tick));
            index += 1;
        }
    }
    lines.extend(trace.unfinished.iter().cloned().map(Line::Unfinished));
    lines
}

/// The number of these reconciles that only repeat the previous one, and their interval.
fn repeats<'t>(ticks: &'t [Observation], before: &'t Observation) -> Option<(usize, Span)> {
    let every = ticks.first()?.at - before.at;
    let mut before = before;
    let mut same = |tick: &&'t Observation| {
        let at = before.at + every;
        let repeats = (tick.at, tick.took, &tick.hpa) == (at, before.took, &before.hpa)
            && tick.repeats(before);
        before = tick;
        repeats
    };
    let times = ticks.iter().take_while(|tick| same(tick)).count();
    (times > 0).then_some((times, every))
}

/// Reads the header of a recorded trace.
///
/// # Errors
/// If the first line is not a header.
pub fn read_header(text: &str) -> Result<Header, TextError> {
    let first = text.lines().next().unwrap_or_default();
    serde_json::from_str(first).map_err(|error| TextError { line: 1, what: error.to_string() })
}

/// The lines below the header.
#[must_use]
pub fn body(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, body)| body)
}

/// Checks that the lines below a header are those that were recorded.
pub fn verify(header: &Header, body: &str) -> Result<(), TextError> {
    let found = content_hash(body);
    if found == header.body {
        return Ok(());
    }
    let what = format!(
        "the trace was changed after it was recorded: the hash of its body is {found}, and its \
         header says {}; record it again with `cargo xtask record {}` (requires Go)",
        header.body, header.scenario
    );
    Err(TextError { line: 1, what })
}

/// Reads a trace from its recorded form. Its release is the newest one on which it was recorded.
///
/// # Errors
/// If the text is not in the form that [`write()`] writes, or was changed after it was written.
pub fn read(text: &str) -> Result<Trace, TextError> {
    let header = read_header(text)?;
    verify(&header, body(text))?;
    let release = header.newest().map(|newest| newest.to_string()).unwrap_or_default();
    let Header { scenario, hash, engine, .. } = header;
    let mut trace = Trace { release, engine, scenario, hash, ..Trace::default() };
    let mut conditions = Conditions::default();
    for (index, line) in text.lines().enumerate().skip(1) {
        let read = serde_json::from_str(line).map_err(|error| error.to_string());
        read.and_then(|line| read_line(&mut trace, &mut conditions, line))
            .map_err(|what| TextError { line: index + 1, what })?;
    }
    Ok(trace)
}

fn read_line(trace: &mut Trace, conditions: &mut Conditions, line: Line) -> Result<(), String> {
    match line {
        Line::Api(answer) => trace.api.push((trace.ticks.len(), answer)),
        Line::Reconcile(mut tick) => {
            for write in tick.status_writes_mut() {
                conditions.complete(&write.name, &mut write.status);
            }
            trace.ticks.push(tick);
        }
        Line::Unfinished(tick) => trace.unfinished.push(tick),
        Line::Repeat { times, every } => {
            for _ in 0..times {
                let before = trace.ticks.last().ok_or("there is no reconcile to repeat")?;
                let mut tick = before.repetition();
                tick.at = tick.at + every;
                trace.ticks.push(tick);
            }
        }
        Line::ResetConditions { hpa } => drop(conditions.0.remove(&hpa)),
    }
    Ok(())
}

/// The conditions of each HPA's last status.
#[derive(Default)]
struct Conditions(BTreeMap<Arc<str>, Vec<HpaCondition>>);

impl Conditions {
    /// Removes the conditions that did not change. If [`Conditions::complete`] could not restore
    /// the list, removes none and returns false.
    fn shorten(&mut self, hpa: &Arc<str>, status: &mut HpaStatus) -> bool {
        let all = status.conditions.clone();
        let known = self.0.entry(hpa.clone()).or_default();
        let is_kept = known.len() <= all.len()
            && known.iter().zip(&all).all(|(known, now)| known.type_ == now.type_);
        if is_kept {
            status.conditions.retain(|condition| !known.contains(condition));
        }
        *known = all;
        is_kept
    }

    /// Adds the conditions that did not change.
    fn complete(&mut self, hpa: &Arc<str>, status: &mut HpaStatus) {
        let known = self.0.entry(hpa.clone()).or_default();
        for condition in std::mem::take(&mut status.conditions) {
            match known.iter_mut().find(|known| known.type_ == condition.type_) {
                Some(known) => *known = condition,
                None => known.push(condition),
            }
        }
        status.conditions.clone_from(known);
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
