//! The results of an exploration as text or JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::{Explored, Finding};
use kube_lockstep_report::json::scenario_line;
use kube_lockstep_report::style::{BAD, DIM, GOOD, STRONG, WARN, paint};
use kube_lockstep_report::{counted, layout, outcome as outcomes, thousands};
use kube_lockstep_sim::engine::disturbance::{Disturbable, Disturbance};
use kube_lockstep_sim::run::{Outcome, Setting, Verdict, shell_word};

/// The options of an exploration, to repeat it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExploreSetting {
    /// The seed of the disturbances.
    pub seed: u64,
    /// The number of disturbed runs of a scenario.
    pub runs: usize,
    /// The release that the engine has.
    pub release: String,
    /// The engine's name.
    pub engine: String,
    /// The file of the engine.
    pub program: String,
    /// The version of kube-lockstep.
    pub version: &'static str,
    /// Further arguments that repeat the exploration.
    pub arguments: Vec<String>,
    /// True if the disturbances are given.
    pub is_replay: bool,
}

impl ExploreSetting {
    /// The setting of a run without disturbances.
    fn undisturbed(&self) -> Setting {
        let program = ["--program", &self.program, "--compare", "expectations"];
        let arguments = program.into_iter().map(str::to_owned).chain(self.arguments.clone());
        Setting { replay_args: arguments.collect(), ..Setting::default() }
    }
}

/// The figures of an exploration.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// All scenarios.
    pub scenarios: usize,
    /// The scenarios that conform without disturbances, and fail with some.
    pub failing: usize,
    /// The scenarios that conform in all runs.
    pub conforming: usize,
    /// The scenarios with an expectation that is not met without disturbances, either.
    pub unmet: usize,
    /// The scenarios without a verdict.
    pub inconclusive: usize,
    /// The scenarios that were not run.
    pub skipped: usize,
    /// The disturbed runs.
    pub runs: usize,
    /// True if the exploration was interrupted.
    pub interrupted: bool,
}

impl Totals {
    /// Counts a scenario.
    pub fn add(&mut self, explored: &Explored) {
        self.scenarios += 1;
        self.runs += explored.runs;
        self.interrupted |= explored.interrupted;
        let count = match explored.undisturbed.verdict {
            Verdict::Skipped { .. } => &mut self.skipped,
            Verdict::Inconclusive { .. } => &mut self.inconclusive,
            Verdict::Unmet | Verdict::Diverges(_) => &mut self.unmet,
            Verdict::Conforms if !explored.findings.is_empty() => &mut self.failing,
            Verdict::Conforms if !explored.is_conclusive() => &mut self.inconclusive,
            Verdict::Conforms => &mut self.conforming,
        };
        *count += 1;
    }
}

/// The first line: everything that is needed to repeat the exploration.
#[must_use]
pub fn first_line(setting: &ExploreSetting) -> String {
    let ExploreSetting { seed, runs, release, engine, version, is_replay, .. } = setting;
    let runs = match is_replay {
        true => String::new(),
        false => format!("seed {seed}, {} of each scenario, ", counted(*runs, "run")),
    };
    format!("explore: {runs}release {release}, engine {engine}, kube-lockstep {version}\n")
}

/// The result for a scenario.
#[must_use]
pub fn text(explored: &Explored, setting: &ExploreSetting, columns: usize) -> String {
    let undisturbed = &explored.undisturbed;
    if undisturbed.verdict != Verdict::Conforms {
        let run = setting.undisturbed();
        let mut text = outcomes::text(undisturbed, Some(&run), columns).unwrap_or_default();
        if !matches!(undisturbed.verdict, Verdict::Skipped { .. }) {
            let note = "it was not disturbed, because it does not conform without disturbances";
            text.push_str(&layout::hanging("", note, 2, columns));
        }
        return text;
    }
    let mut text = String::new();
    for finding in &explored.findings {
        text.push_str(&finding_text(explored, finding, setting, columns));
    }
    if explored.findings.is_empty() {
        let (word, style) = match explored.is_conclusive() {
            true => ("conforms", GOOD),
            false => ("inconclusive", WARN),
        };
        text.push_str(&outcomes::line(word, style, &undisturbed.id, &how(explored), columns));
    }
    for sentence in &explored.missing {
        let note = format!("{}: {sentence}", undisturbed.id);
        text.push_str(&outcomes::note_text(&note, columns));
    }
    if explored.unrepeated > 0 {
        let note = format!(
            "{}: a run failed, and did not fail again with the same disturbances: the engine is \
             not deterministic",
            undisturbed.id
        );
        text.push_str(&outcomes::note_text(&note, columns));
    }
    if explored.is_undisturbable {
        let note = format!("{}: the controller does nothing that can be disturbed", undisturbed.id);
        text.push_str(&outcomes::note_text(&note, columns));
    }
    text
}

/// How many runs there were.
fn how(explored: &Explored) -> String {
    let runs = counted(explored.runs, "disturbed run");
    let each = if explored.tried_each && !explored.is_undisturbable {
        ", with each disturbance on its own among them"
    } else {
        ""
    };
    let interrupted = if explored.interrupted { ", then interrupted" } else { "" };
    format!("{runs}{each}{interrupted}")
}

fn finding_text(
    explored: &Explored,
    finding: &Finding,
    setting: &ExploreSetting,
    columns: usize,
) -> String {
    let Finding { outcome, disturbances, disturbable, .. } = finding;
    let mut out = format!(
        "{}  {}   v{}   {} fails when it is disturbed\n",
        paint(BAD, "fails"),
        paint(STRONG, &outcome.id),
        outcome.release,
        outcome.engine
    );
    for line in layout::hanging("", &outcome.requirement, 2, columns).lines() {
        let _ = writeln!(out, "{}", paint(DIM, line));
    }
    let these = if disturbances.len() == 1 { "this one" } else { "these together" };
    let _ = writeln!(out, "  It conforms without disturbances, and fails with {these}:");
    for disturbance in disturbances {
        out.push_str(&layout::hanging("- ", &disturbance.sentence(disturbable), 4, columns));
    }
    out.push_str(&outcomes::failure(outcome, columns));
    let failures = format!(
        "{} of {}, first run {}",
        thousands(finding.times),
        counted(explored.runs, "run"),
        finding.run
    );
    let shrunk = match (finding.tried, finding.cut_short) {
        (tried, true) => format!("; shrunk in {}, then interrupted", counted(tried, "run")),
        (tried, false) => format!("; shrunk in {}", counted(tried, "run")),
    };
    if !setting.is_replay {
        let _ = writeln!(out, "  {}", paint(DIM, &format!("failed in {failures}{shrunk}")));
    }
    let _ = writeln!(out, "  replay: {}", paint(STRONG, &replay(outcome, disturbances, setting)));
    out
}

/// The command that runs a scenario with these disturbances.
fn replay(outcome: &Outcome, set: &[Disturbance], setting: &ExploreSetting) -> String {
    let ExploreSetting { release, program, arguments, .. } = setting;
    let mut command = format!(
        "kube-lockstep explore {} --release {release} --program {}",
        shell_word(&outcome.id),
        shell_word(program)
    );
    for argument in arguments {
        let _ = write!(command, " {}", shell_word(argument));
    }
    for disturbance in set {
        let _ = write!(command, " --disturb {}", shell_word(&disturbance.to_string()));
    }
    outcomes::with_folder(outcome, command)
}

/// The last line.
#[must_use]
pub fn summary(totals: &Totals, setting: &ExploreSetting, seconds: f64) -> String {
    let Totals { scenarios, failing, conforming, unmet, inconclusive, skipped, runs, .. } = *totals;
    let interrupted = if totals.interrupted { "interrupted: " } else { "" };
    let style = match (failing + unmet, inconclusive) {
        (0, 0) => GOOD,
        (0, _) => WARN,
        _ => BAD,
    };
    let mut counts =
        vec![format!("{failing} fail when disturbed"), format!("{conforming} conform")];
    let others = [
        (unmet, "unmet without disturbances"),
        (inconclusive, "inconclusive"),
        (skipped, "skipped"),
    ];
    counts.extend(
        others
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}")),
    );
    let seed = if setting.is_replay { String::new() } else { format!("; seed {}", setting.seed) };
    format!(
        "{interrupted}{}: {} ({} in {seconds:.1}s{seed})\n",
        counted(scenarios, "scenario"),
        paint(style, &counts.join(", ")),
        counted(runs, "disturbed run")
    )
}

/// The first line for programs.
#[must_use]
pub fn first_json(setting: &ExploreSetting) -> impl Serialize {
    #[derive(Serialize)]
    struct First<'a> {
        explore: &'a ExploreSetting,
    }
    First { explore: setting }
}

/// The line of a scenario.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a, S: Serialize> {
    /// The run without disturbances.
    #[serde(flatten)]
    undisturbed: S,
    runs: usize,
    failed: usize,
    tried_each: bool,
    unrepeated: usize,
    missing: &'a [String],
    is_conclusive: bool,
    findings: Vec<FindingLine<S>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FindingLine<S: Serialize> {
    disturbances: Vec<DisturbanceLine>,
    /// The run with the disturbances.
    outcome: S,
    run: usize,
    times: usize,
    tried: usize,
    cut_short: bool,
    replay: String,
}

#[derive(Serialize)]
struct DisturbanceLine {
    /// The text for `--disturb`.
    text: String,
    sentence: String,
}

impl DisturbanceLine {
    fn new(disturbance: &Disturbance, run: &Disturbable) -> DisturbanceLine {
        DisturbanceLine { text: disturbance.to_string(), sentence: disturbance.sentence(run) }
    }
}

/// [`text`] for programs.
#[must_use]
pub fn json(explored: &Explored, setting: &ExploreSetting) -> impl Serialize {
    let finding = |finding: &Finding| FindingLine {
        disturbances: finding
            .disturbances
            .iter()
            .map(|it| DisturbanceLine::new(it, &finding.disturbable))
            .collect(),
        outcome: scenario_line(&finding.outcome),
        run: finding.run,
        times: finding.times,
        tried: finding.tried,
        cut_short: finding.cut_short,
        replay: replay(&finding.outcome, &finding.disturbances, setting),
    };
    Line {
        undisturbed: scenario_line(&explored.undisturbed),
        runs: explored.runs,
        failed: explored.failed,
        tried_each: explored.tried_each,
        unrepeated: explored.unrepeated,
        missing: &explored.missing,
        is_conclusive: explored.is_conclusive(),
        findings: explored.findings.iter().map(finding).collect(),
    }
}

/// [`summary`] for programs.
#[must_use]
pub fn summary_json(totals: &Totals) -> impl Serialize {
    #[derive(Serialize)]
    struct Last {
        summary: Totals,
    }
    Last { summary: *totals }
}
