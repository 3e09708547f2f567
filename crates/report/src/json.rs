//! A run as JSON: one object per line, and the summary on the last line.
//!
//! Times are durations since the start of the scenario in Go's format (`1m30s`).

use super::unmet::{UnmetLine, UnmetOf};
use std::io::{self, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Report;
use kube_autoscaler_models::is_default::is_default;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_sim::compare::{Controller, Divergence, FieldDifference};
use kube_lockstep_sim::objects::ReportedWrite;
use kube_lockstep_sim::run::{Event, KnownHit, Note, Outcome, Setting, Shard, Summary, Verdict};

/// The report for programs.
#[derive(Debug)]
pub struct Json<W> {
    out: W,
    run: Option<Setting>,
}

impl<W: Write> Json<W> {
    /// Creates a report that writes to `out`.
    pub fn new(out: W) -> Json<W> {
        Json { out, run: None }
    }

    /// Returns the writer.
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> Report for Json<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Preparing(_) => Ok(()),
            Event::Started { setting, .. } => {
                self.run = Some(setting.clone());
                Ok(())
            }
            Event::Finished(outcome) => line(&mut self.out, &ScenarioLine::new(outcome)),
            Event::Ended(summary) => {
                let summary = SummaryFigures::new(summary, self.run.as_ref());
                line(&mut self.out, &SummaryLine { summary })
            }
        }
    }
}

/// The line of a scenario, as part of another object.
#[must_use]
pub fn scenario_line(outcome: &Outcome) -> impl Serialize + use<> {
    ScenarioLine::new(outcome)
}

/// The version of the JSON output. It changes if a field is renamed or removed, or changes its
/// meaning; additional fields do not change it.
pub const FORMAT_VERSION: u32 = 1;

/// An object of the output, with the version of its format.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Versioned<'a, T> {
    format_version: u32,
    #[serde(flatten)]
    object: &'a T,
}

/// Writes an object as one line, with the version of the format.
///
/// # Errors
/// If writing fails, or if the value is not an object.
pub fn line(out: &mut dyn Write, object: &impl Serialize) -> io::Result<()> {
    let versioned = Versioned { format_version: FORMAT_VERSION, object };
    let mut text = serde_json::to_string(&versioned)?;
    text.push('\n');
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The fields that tell the kinds of lines apart.
#[derive(Default, Deserialize)]
pub struct LineKind {
    /// The last line of results, of `run` and of `fuzz`.
    pub summary: Option<serde::de::IgnoredAny>,
    /// The first line of results of `fuzz`.
    pub fuzz: Option<serde::de::IgnoredAny>,
}

impl LineKind {
    /// The kind of a line. A line that is not JSON has neither field.
    pub fn new(line: &str) -> LineKind {
        serde_json::from_str(line).unwrap_or_default()
    }
}

/// The line of one scenario, which [`super::results`] reads.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScenarioLine {
    pub id: String,
    pub path: String,
    pub line: usize,
    /// Present if the scenario diverges or an expectation is not met.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub requirement: String,
    pub engine: String,
    pub release: String,
    /// The release of the VPA with an HPA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vpa_release: Option<String>,
    pub verdict: VerdictName,
    pub ticks: usize,
    #[serde(alias = "poisoned")]
    pub not_compared: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergence: Option<DivergenceLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<UnmetLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<ReportedWrite>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<KnownHit>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    #[serde(default, alias = "boundaries", skip_serializing_if = "is_default")]
    pub ambiguous_ticks: usize,
    #[serde(default, alias = "replays", skip_serializing_if = "is_default")]
    pub retries: usize,
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_without_model: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    pub(super) elapsed_ms: f64,
}

/// The name of a verdict.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum VerdictName {
    Conforms,
    Diverges,
    /// Version 1 of the JSON output calls it `unexpected`.
    #[serde(rename = "unexpected", alias = "unmet")]
    Unmet,
    Inconclusive,
    Skipped,
}

/// The first tick that diverges.
#[derive(Serialize, Deserialize)]
pub(super) struct DivergenceLine {
    /// The controller, if it is not the HPA controller.
    #[serde(default, skip_serializing_if = "is_default")]
    pub controller: Controller,
    /// The number of the tick of the recommender or the updater, in a scenario with an HPA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<usize>,
    pub tick: usize,
    pub at: String,
    pub fields: Vec<FieldDifference>,
    pub why: String,
}

impl ScenarioLine {
    fn new(outcome: &Outcome) -> ScenarioLine {
        let (verdict, why, output) = match &outcome.verdict {
            Verdict::Conforms => (VerdictName::Conforms, None, ""),
            Verdict::Diverges(_) => (VerdictName::Diverges, None, ""),
            Verdict::Unmet => (VerdictName::Unmet, None, ""),
            Verdict::Inconclusive { why, output } => {
                (VerdictName::Inconclusive, Some(why.clone()), output.as_str())
            }
            Verdict::Skipped { why } => (VerdictName::Skipped, Some(why.to_string()), ""),
        };
        let explained = matches!(verdict, VerdictName::Diverges | VerdictName::Unmet);
        ScenarioLine {
            id: outcome.id.clone(),
            path: outcome.path.clone(),
            line: outcome.line,
            requirement: if explained { outcome.requirement.clone() } else { String::new() },
            engine: outcome.engine.to_string(),
            release: outcome.release.clone(),
            vpa_release: outcome.vpa_release.map(|release| release.to_string()),
            verdict,
            ticks: outcome.ticks,
            not_compared: outcome.not_compared,
            divergence: match &outcome.verdict {
                Verdict::Diverges(divergence) => Some(DivergenceLine::new(divergence)),
                _ => None,
            },
            unmet: UnmetOf::outcome(outcome).lines(&outcome.unmet),
            writes: outcome.writes.clone(),
            known: outcome.known.clone(),
            notes: outcome.notes.clone(),
            ambiguous_ticks: outcome.ambiguous_ticks,
            retries: outcome.retries,
            is_without_model: outcome.is_without_model,
            why,
            output: output.to_owned(),
            elapsed_ms: (outcome.elapsed.as_secs_f64() * 1e6).round() / 1e3,
        }
    }
}

impl DivergenceLine {
    fn new(divergence: &Divergence) -> DivergenceLine {
        DivergenceLine {
            controller: divergence.controller,
            run: divergence.ticks_of_hpa.map(|_| divergence.tick),
            tick: divergence.scenario_tick(),
            at: divergence.at.to_string(),
            fields: divergence.fields.clone(),
            why: divergence.why.clone(),
        }
    }

    /// The divergence that this line describes. Its fields are only known by their names.
    pub(super) fn read(self) -> Result<Divergence, String> {
        let DivergenceLine { controller, run, tick, at, fields, why } = self;
        let at = Time::ZERO + at.parse::<Span>().map_err(|error| error.to_string())?;
        Ok(Divergence {
            ticks_of_hpa: run.map(|_| tick),
            why,
            ..Divergence::new(controller, run.unwrap_or(tick), at, fields)
        })
    }
}

/// The last line of a run.
#[derive(Serialize, Deserialize)]
pub struct SummaryLine {
    pub(crate) summary: SummaryFigures,
}

/// The figures of a run, and its setting.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryFigures {
    pub(crate) version: String,
    pub(crate) engine: Option<String>,
    /// The release; absent if the run had several.
    pub release: Option<String>,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    pub(crate) seconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) program: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_path: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time_limit: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) arguments: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shard: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) plan: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) releases: Vec<ReleaseFigures>,
    #[serde(default, alias = "boundaries", skip_serializing_if = "is_default")]
    pub(crate) ambiguous_ticks: usize,
    #[serde(default, alias = "replayed", skip_serializing_if = "is_default")]
    pub(crate) retried: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) stale_known: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) missing: Vec<String>,
}

/// The number of scenarios by verdict.
#[derive(Serialize, Deserialize)]
pub struct Counts {
    pub scenarios: usize,
    conforms: usize,
    diverges: usize,
    /// The scenarios with the verdict [`VerdictName::Unmet`].
    unmet: usize,
    inconclusive: usize,
    skipped: usize,
    ticks: usize,
}

/// The figures of one of several releases.
#[derive(Serialize, Deserialize)]
pub(super) struct ReleaseFigures {
    pub release: String,
    #[serde(flatten)]
    counts: Counts,
}

impl Counts {
    fn new(summary: &Summary) -> Counts {
        Counts {
            scenarios: summary.scenarios,
            conforms: summary.conforms,
            diverges: summary.diverges,
            unmet: summary.unmet,
            inconclusive: summary.inconclusive,
            skipped: summary.skipped,
            ticks: summary.ticks,
        }
    }
}

impl SummaryFigures {
    fn new(summary: &Summary, run: Option<&Setting>) -> SummaryFigures {
        let setting = run.cloned().unwrap_or_default();
        let limit = setting.time_limit.map(|limit| i64::try_from(limit.as_nanos()));
        let releases = summary.releases.iter().map(|(release, summary)| ReleaseFigures {
            release: release.to_string(),
            counts: Counts::new(summary),
        });
        SummaryFigures {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: run.map(|run| run.engine.to_string()),
            release: run.map(|run| run.release.clone()),
            counts: Counts::new(summary),
            seconds: (summary.elapsed.as_secs_f64() * 1e3).round() / 1e3,
            program: setting.program,
            upstream_path: setting.checkout,
            time_limit: limit.map(|limit| Span(limit.unwrap_or(i64::MAX)).to_string()),
            arguments: setting.replay_args,
            shard: setting.shard.as_ref().map(Shard::to_string),
            plan: setting.plan,
            releases: releases.collect(),
            ambiguous_ticks: summary.ambiguous_ticks,
            retried: summary.retried,
            stale_known: summary.stale_known.clone(),
            missing: summary.missing.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::vpa::{ObjectName, Resource};
    use kube_lockstep_scenario::vpa::VpaValue;
    use kube_lockstep_sim::compare::{AmountField, FieldPath};

    #[test]
    fn a_divergence_of_a_recommender_with_an_hpa_is_read_as_it_was_written() {
        let target = FieldPath::Amount(AmountField {
            vpa: ObjectName::new("default", "web"),
            container: "app".into(),
            value: VpaValue::Target,
            resource: Resource::Cpu,
        });
        let at = Time::ZERO + Span::from_secs(180);
        let fields = vec![FieldDifference::new(target, "296m", "300m")];
        let divergence = Divergence::new(Controller::Recommender, 3, at, fields);
        let divergence = divergence.after_ticks_of_hpa(12);
        let written = serde_json::to_string(&DivergenceLine::new(&divergence)).expect("it is JSON");
        assert_eq!(
            written,
            concat!(
                r#"{"controller":"recommender","run":3,"tick":12,"at":"3m","fields":[{"field":"#,
                r#""run 3 of the recommender: default/web target.cpu of app","#,
                r#""model":"296m","upstream":"300m"}],"why":""}"#
            )
        );
        let line: DivergenceLine = serde_json::from_str(&written).expect("it is read");
        let read = line.read().expect("it is valid");
        let again = serde_json::to_string(&DivergenceLine::new(&read)).expect("it is JSON");
        assert_eq!(again, written);
    }
}
