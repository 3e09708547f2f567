//! A run of the fuzzer as text or JSON, and the fixture file of a finding.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::CoverageGroup;
use crate::fuzzing::{Failure, Finding, FuzzSummary};
use kube_lockstep_report::style::{BAD, DIM, GOOD, STRONG, WARN, paint};
use kube_lockstep_report::{counted, json as lines, layout, outcome, thousands};
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::resolved::Entries;
use kube_lockstep_sim::compare::FieldDifference;
use kube_lockstep_sim::expect::Unmet;
use kube_lockstep_sim::run::{RandomCause, Setting, Shard, Verdict};

/// The setting of a run of the fuzzer.
#[derive(Clone, Debug)]
pub struct FuzzSetting {
    /// Engine and release.
    pub setting: Setting,
    /// The seed of the generator.
    pub seed: u64,
    /// This program's version.
    pub version: &'static str,
    /// The requested areas.
    pub areas: Vec<String>,
    /// The number of workers.
    pub jobs: usize,
}

/// The first line: everything that is needed to repeat the run.
#[must_use]
pub fn first_line(setting: &FuzzSetting) -> String {
    let areas = match setting.areas.as_slice() {
        [] => String::new(),
        areas => format!(", areas {}", areas.join(", ")),
    };
    let shard = setting.setting.shard.map(|shard| format!(", shard {shard}")).unwrap_or_default();
    format!(
        "fuzz: seed {}, release {}, engine {}, kube-lockstep {}{areas}{shard}\n",
        setting.seed, setting.setting.release, setting.setting.engine, setting.version
    )
}

/// The first line of JSON: everything that is needed to repeat the run.
#[derive(Serialize, Deserialize)]
pub(super) struct FirstLine {
    pub fuzz: First,
}

/// The setting of a run of the fuzzer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct First {
    pub(crate) seed: u64,
    /// The release of the controller.
    pub release: String,
    pub(crate) engine: String,
    pub(crate) version: String,
    pub(crate) areas: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shard: Option<String>,
}

/// [`first_line`] for programs.
#[must_use]
pub fn first_json(setting: &FuzzSetting) -> Value {
    let fuzz = First {
        seed: setting.seed,
        release: setting.setting.release.clone(),
        engine: setting.setting.engine.to_string(),
        version: setting.version.to_owned(),
        areas: setting.areas.clone(),
        shard: setting.setting.shard.as_ref().map(Shard::to_string),
    };
    json!(FirstLine { fuzz })
}

/// The progress, in one line.
#[must_use]
pub fn progress(scenarios: usize, ticks: usize, elapsed: Duration) -> String {
    format!(
        "{}, {}, {}",
        counted(scenarios, "scenario"),
        counted(ticks, "tick"),
        speed(scenarios, ticks, elapsed)
    )
}

fn speed(scenarios: usize, ticks: usize, elapsed: Duration) -> String {
    let rate = |count: usize| {
        let rate = count as f64 / elapsed.as_secs_f64().max(1e-9);
        thousands(rate.round() as usize)
    };
    format!("{} ticks/s, {} scenarios/s", rate(ticks), rate(scenarios))
}

/// The first failure of a kind, reported immediately.
#[must_use]
pub fn failed(index: u64, kind: &str) -> String {
    format!("{}  scenario {index}: {kind}\n", paint(BAD, "failed"))
}

/// The fixture file of a finding.
#[derive(Clone, Debug)]
pub struct Saved {
    pub path: String,
    pub text: String,
}

/// A finding: the difference, and the file where it is saved.
#[must_use]
pub fn finding<S>(
    found: &Finding<S>,
    setting: &FuzzSetting,
    saved: &Saved,
    columns: usize,
) -> String {
    let Saved { path, text } = saved;
    let mut out = String::from("\n");
    match &found.failure {
        Failure::Outcome(failed) => {
            let mut shown = (**failed).clone();
            // The finding is replayed from its file.
            shown.id.clone_from(path);
            shown.path.clone_from(path);
            shown.line = autoscaler_line(text);
            out.push_str(
                &outcome::text(&shown, Some(&setting.setting), columns).unwrap_or_default(),
            );
        }
        Failure::Panic(message) => {
            let _ = writeln!(out, "{}  {}", paint(BAD, "panic"), paint(STRONG, path));
            out.push_str(&layout::hanging("", message, 2, columns));
            let _ =
                writeln!(out, "  replay: {}", kube_lockstep_report::replay(path, &setting.setting));
        }
    }
    let how = match (found.tried, found.cut_short) {
        (0, true) => "not shrunk".to_owned(),
        (0, false) => "as generated: the saved file does not fail".to_owned(),
        (tried, true) => format!("shrunk in {}, then interrupted", counted(tried, "run")),
        (tried, false) => format!("shrunk in {}", counted(tried, "run")),
    };
    let seen = counted(found.times, "scenario");
    let text = format!("  first in scenario {} of the seed, in {seen}; {how}", found.index);
    let _ = writeln!(out, "{}", paint(DIM, &text));
    out
}

/// The line of a finding in JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FindingLine {
    pub found: FindingFigures,
}

/// A finding: the kind of failure, its first scenario, and the file where it is saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FindingFigures {
    pub kind: String,
    index: u64,
    scenarios: usize,
    /// `None` after a panic.
    ticks: Option<usize>,
    pub file: String,
    cut_short: bool,
    pub replay: String,
    failure: Option<FailureFigures>,
}

/// How a scenario failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum FailureFigures {
    /// The model panicked.
    Panic { panic: String },
    /// There is no verdict.
    Inconclusive { inconclusive: String },
    /// Expectations are not met.
    Unmet { unmet: Vec<Unmet> },
    /// The model and the engine differ.
    Divergence {
        tick: usize,
        /// For example `1m30s`.
        at: String,
        fields: Vec<FieldDifference>,
        why: String,
    },
}

impl FailureFigures {
    fn new(failure: &Failure) -> Option<FailureFigures> {
        let failed = match failure {
            Failure::Panic(message) => {
                return Some(FailureFigures::Panic { panic: message.clone() });
            }
            Failure::Outcome(failed) => failed,
        };
        match &failed.verdict {
            Verdict::Diverges(divergence) => Some(FailureFigures::Divergence {
                tick: divergence.scenario_tick(),
                at: divergence.at.to_string(),
                fields: divergence.fields.clone(),
                why: divergence.why.clone(),
            }),
            Verdict::Inconclusive { why, .. } => {
                Some(FailureFigures::Inconclusive { inconclusive: why.clone() })
            }
            Verdict::Unmet => Some(FailureFigures::Unmet { unmet: failed.unmet.clone() }),
            _ => None,
        }
    }
}

/// A finding for programs.
#[must_use]
pub fn finding_json<S>(found: &Finding<S>, setting: &FuzzSetting, path: &str) -> Value {
    let found = FindingFigures {
        kind: found.kind.clone(),
        index: found.index,
        scenarios: found.times,
        ticks: ticks(found),
        file: path.to_owned(),
        cut_short: found.cut_short,
        replay: kube_lockstep_report::replay(path, &setting.setting),
        failure: FailureFigures::new(&found.failure),
    };
    json!(FindingLine { found })
}

fn ticks<S>(found: &Finding<S>) -> Option<usize> {
    match &found.failure {
        Failure::Outcome(outcome) => Some(outcome.ticks),
        Failure::Panic(_) => None,
    }
}

/// The fixture for a finding: the difference, the replay command, and the scenario.
#[must_use]
pub fn fixture<S>(found: &Finding<S>, setting: &FuzzSetting, path: &str) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "# Found by fuzzing: seed {}, scenario {}.", setting.seed, found.index);
    match &found.failure {
        Failure::Panic(message) => {
            let _ = writeln!(text, "# The model panicked: {}", message.replace('\n', " "));
        }
        Failure::Outcome(failed) => match &failed.verdict {
            Verdict::Diverges(divergence) => {
                let (tick, at) = (divergence.scenario_tick(), divergence.at);
                let engine = &setting.setting.engine;
                let width = engine.chars().count().max("model".len());
                let _ = writeln!(text, "# At tick {tick}, t={at}:");
                for difference in &divergence.fields {
                    let one_line = |text: &str| text.replace('\n', " ");
                    let _ = writeln!(text, "#   {}", difference.field);
                    let (model, seen) = (&difference.model, &difference.upstream);
                    let _ = writeln!(text, "#     {:width$}  {}", "model", one_line(model));
                    let _ = writeln!(text, "#     {engine:width$}  {}", one_line(seen));
                }
            }
            Verdict::Inconclusive { why, .. } => {
                let _ = writeln!(text, "# No verdict: {}", why.replace('\n', " "));
            }
            _ => {
                for unmet in &failed.unmet {
                    let what = unmet.what.replace('\n', " ");
                    let _ = writeln!(text, "# Expectation {}: {what}", unmet.number);
                }
            }
        },
    }
    let _ = writeln!(text, "# Replay: {}", kube_lockstep_report::replay(path, &setting.setting));
    text.push_str(&scenario::tree_to_yaml(&found.tree));
    text
}

/// The line of the HPA, or of the VPA if there is no HPA.
fn autoscaler_line(text: &str) -> usize {
    let line_of = |kind: &str| {
        let mut names = text.lines().map(|line| line.split(':').next().unwrap_or_default());
        names.position(|name| name.trim_end_matches('s') == kind)
    };
    line_of("hpa").or_else(|| line_of("vpa")).map_or(1, |index| index + 1)
}

/// The last lines: the figures and the coverage.
#[must_use]
pub fn summary(figures: &FuzzSummary, seed: u64, columns: usize) -> String {
    let mut out = String::from("\n");
    for group in figures.coverage.iter().filter(|_| figures.ticks > 0) {
        let all = group.reached.len() + group.never.len();
        let head = format!("{} of {all} {}: ", group.reached.len(), group.group);
        out.push_str(&layout::hanging(&head, &reached(group), 2, columns));
    }
    let interrupted = if figures.interrupted { "interrupted: " } else { "" };
    let failure = if figures.is_without_model { "failure" } else { "divergence" };
    let verdict = match (figures.divergences, figures.inconclusive) {
        _ if figures.ticks == 0 => paint(WARN, "no scenario reached a tick"),
        (0, 0) => paint(GOOD, &format!("no {failure}")),
        (0, _) => paint(WARN, &format!("no {failure}, but some scenarios have no verdict")),
        (count, _) => paint(BAD, &counted(count, failure)),
    };
    let inconclusive = match figures.inconclusive {
        0 => String::new(),
        count => format!(", {} without a verdict", thousands(count)),
    };
    let undetermined = match figures.undetermined.values().sum() {
        0 => String::new(),
        count => format!(
            ", {} cut short where the outcome is random ({})",
            thousands(count),
            by_reason(&figures.undetermined)
        ),
    };
    let skipped = match figures.skipped.values().sum() {
        0 => String::new(),
        count => format!(", {} not run ({})", thousands(count), by_reason(&figures.skipped)),
    };
    let _ = writeln!(
        out,
        "{interrupted}{verdict} in {}, {}{inconclusive}{undetermined}{skipped} (seed {seed}; {} in \
         {:.1}s)",
        counted(figures.scenarios, "scenario"),
        counted(figures.ticks, "tick"),
        speed(figures.scenarios, figures.ticks, figures.elapsed),
        figures.elapsed.as_secs_f64()
    );
    out
}

/// Counts by reason: `resync: 12; cache-update: 3`.
fn by_reason<K: Display>(counts: &BTreeMap<K, usize>) -> String {
    let entry = |(reason, count): (&K, &usize)| format!("{reason}: {}", thousands(*count));
    counts.iter().map(entry).collect::<Vec<_>>().join("; ")
}

fn reached(group: &CoverageGroup) -> String {
    let entry = |(name, count): &(String, u64)| {
        format!("{name} {}", thousands(usize::try_from(*count).unwrap_or(usize::MAX)))
    };
    let reached: Vec<String> = group.reached.iter().map(entry).collect();
    let reached = (!reached.is_empty()).then(|| reached.join(", "));
    let never = (!group.never.is_empty()).then(|| format!("never {}", group.never.join(", ")));
    reached.into_iter().chain(never).collect::<Vec<_>>().join("; ")
}

/// The last line of JSON.
#[derive(Serialize, Deserialize)]
pub struct SummaryLine {
    pub(crate) summary: SummaryFigures,
}

/// The figures of a run of the fuzzer.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryFigures {
    seed: u64,
    scenarios: usize,
    ticks: usize,
    divergences: usize,
    inconclusive: usize,
    /// The sum of `undetermined_by`.
    #[serde(alias = "unplayable")]
    undetermined: usize,
    #[serde(default)]
    undetermined_by: BTreeMap<RandomCause, usize>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    skipped: BTreeMap<String, usize>,
    interrupted: bool,
    /// True if only expectations were checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_without_model: bool,
    release: String,
    engine: String,
    version: String,
    pub(crate) jobs: usize,
    seconds: f64,
    coverage: Entries<Group>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) missing: Vec<String>,
}

/// One group of the coverage.
#[derive(Serialize, Deserialize)]
struct Group {
    reached: Entries<u64>,
    never: Vec<String>,
}

impl SummaryFigures {
    pub(crate) fn new(summary: &FuzzSummary, setting: &FuzzSetting) -> SummaryFigures {
        let group = |group: &CoverageGroup| {
            let reached = group.reached.iter().map(|(name, count)| (name.as_str().into(), *count));
            let reached = Entries(reached.collect());
            (group.group.as_str().into(), Group { reached, never: group.never.clone() })
        };
        SummaryFigures {
            seed: setting.seed,
            scenarios: summary.scenarios,
            ticks: summary.ticks,
            divergences: summary.divergences,
            inconclusive: summary.inconclusive,
            undetermined: summary.undetermined.values().sum(),
            undetermined_by: summary.undetermined.clone(),
            skipped: summary.skipped.clone(),
            interrupted: summary.interrupted,
            is_without_model: summary.is_without_model,
            release: setting.setting.release.clone(),
            engine: setting.setting.engine.to_string(),
            version: setting.version.to_owned(),
            jobs: setting.jobs,
            seconds: (summary.elapsed.as_secs_f64() * 1000.0).round() / 1000.0,
            coverage: Entries(summary.coverage.iter().map(group).collect()),
            missing: Vec::new(),
        }
    }

    pub(crate) fn read(self) -> FuzzSummary {
        let group = |(group, Group { reached, never }): (Arc<str>, Group)| {
            let reached = reached.0.into_iter().map(|(name, count)| (name.to_string(), count));
            CoverageGroup { group: group.to_string(), reached: reached.collect(), never }
        };
        FuzzSummary {
            scenarios: self.scenarios,
            ticks: self.ticks,
            divergences: self.divergences,
            inconclusive: self.inconclusive,
            undetermined: self.undetermined_by,
            skipped: self.skipped,
            interrupted: self.interrupted,
            is_without_model: self.is_without_model,
            coverage: self.coverage.0.into_iter().map(group).collect(),
            elapsed: Duration::try_from_secs_f64(self.seconds).unwrap_or_default(),
        }
    }
}

/// [`summary`] for programs.
#[must_use]
pub fn summary_json(figures: &FuzzSummary, setting: &FuzzSetting) -> Value {
    json!(SummaryLine { summary: SummaryFigures::new(figures, setting) })
}

/// Writes a value as a line.
///
/// # Errors
/// If writing fails.
pub fn json_line(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    lines::line(out, value)
}
