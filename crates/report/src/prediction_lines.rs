//! Predictions as JSON: one line for each tick, and the summary on the last line.

use std::io::{self, Write};

use serde::Serialize;

use super::json::line;
use super::prediction::Predicted;
use super::presentation::prediction::{Figures, Head};
use super::table::Rows;
use super::unmet::{UnmetLine, UnmetOf};
use kube_lockstep_scenario::SkipReason;
use kube_lockstep_sim::run::Note;
use kube_lockstep_sim::run::recommender::MODEL;

/// Writes a prediction. `several`: with the id of the scenario.
pub(super) fn write(
    out: &mut dyn Write,
    predicted: &Predicted<'_>,
    rows: Rows,
    several: bool,
) -> io::Result<()> {
    let prediction = predicted.prediction();
    let Head { id, path, ref release, notes, undetermined, .. } = prediction.head();
    let scenario = several.then_some(id);
    prediction.write_lines(out, rows, scenario)?;
    let Figures { ticks, rescales, vpa_release, skipped, refused } = prediction.figures();
    let summary = Summary {
        engine: MODEL,
        release,
        ticks,
        rescales,
        unmet: UnmetOf { id, path, release, is_without_model: false }.lines(predicted.unmet),
        scenario,
        vpa_release,
        skipped,
        refused,
        undetermined: undetermined.map(|random| &*random.why),
        notes,
    };
    line(out, &SummaryLine { summary })
}

/// The last line.
#[derive(Serialize)]
struct SummaryLine<'a> {
    summary: Summary<'a>,
}

/// The figures of a prediction.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    engine: &'a str,
    release: &'a str,
    ticks: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    rescales: Option<usize>,
    unmet: Vec<UnmetLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vpa_release: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<SkipReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undetermined: Option<&'a str>,
    #[serde(skip_serializing_if = "<[Note]>::is_empty")]
    notes: &'a [Note],
}
