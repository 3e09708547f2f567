//! `kube-lockstep gate`.

mod version;

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use self::version::{EmptyFolder, Found, Version};
use super::args::{Format, OneRelease};
use super::exit;
use super::failure::Failure;
use super::manifests::{
    self, AutoscalerArgs, SkipArgs, ValueArgs, check_flags, missing_value, requires_values,
    separate,
};
use super::measure::{MeasureArgs, metrics};
use super::output::{columns, show, tell, unless_closed};
use super::reports::{ReportArg, ReportFile, ReportFormat, folders, job_summary};
use kube_lockstep_gate::{
    AmbiguousHpas, Gate, GateResult, Reason, Report, Scenarios, Subject, Verdict,
};
use kube_lockstep_manifests::{ChangedDraft, Draft, draft_versions};
use kube_lockstep_report::bound::Bounds;
use kube_lockstep_report::columns::COST;
use kube_lockstep_report::comparison::{ComparisonRow, SettingName};
use kube_lockstep_report::html::{Compared, Comparison};
use kube_lockstep_report::json;
use kube_lockstep_report::terminal::CountBar;
use kube_lockstep_scenario::{Hint, Scenario};
use kube_lockstep_sim::run::free_run;

const HELP: &str = "\
Figures of budgets: pod-hours, cost (with --price), missing, above, longest, changes, reversals,
excess, needed, peak and failed; for VPAs, cpu-requested, cpu-unused, cpu-short, memory-requested,
memory-unused, memory-short, short, oom-kills, evictions and resizes. `kube-lockstep compare
--help` explains them. A limit is a value (peak<=40, above<=5m), or a difference from the figure
before the change (missing<=+0, pod-hours<=+5%). Both versions are measured against the targets
before the change, or against --capacity.

Exit codes:
  0    every changed autoscaler keeps the budget, or none is changed
  1    an autoscaler exceeds the budget or no longer scales, its target is gone, or the API server
       rejects it
  2    an invalid command line or manifest, or a value that the prediction requires is missing
  3    the outcome of an autoscaler is not deterministic, or an output can't be written";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\n{HELP}", manifests::LOAD_HELP))]
pub(super) struct Args {
    /// The version before the change: a git revision, a folder, or a file with all manifests, such
    /// as the output of `helm template`
    // Options such as `--load` require the argument with the id `filename`, the manifests: that is
    // `--base` here.
    #[arg(long, value_name = "VERSION", id = "filename")]
    base: String,
    /// The version after the change: a git revision, a folder, or a file
    #[arg(long, value_name = "VERSION", default_value = ".")]
    head: String,
    /// The manifests of autoscalers and their targets in both versions: files and folders, relative
    /// to the version's folder; for a git revision, relative to the current folder [default: the
    /// folder itself]
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    paths: Vec<PathBuf>,
    /// Also read the subfolders of folders
    #[arg(short = 'R', long)]
    recursive: bool,
    /// The bounds that each changed autoscaler must keep, separated by commas: FIGURE<=LIMIT.
    /// Bounds on figures of HPAs do not apply to a VPA without an HPA, and bounds on figures of
    /// VPAs do not apply to an HPA without a VPA
    #[arg(long, value_name = "BOUNDS", default_value_t = Bounds::no_worse())]
    budget: Bounds,
    #[command(flatten)]
    measure: MeasureArgs,
    #[command(flatten)]
    release: OneRelease,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Also write a report; can be repeated: markdown=FILE (for a pull request), junit=FILE,
    /// html=FILE, or github (annotations at the changed lines, and the job summary)
    #[arg(long, value_name = "REPORT")]
    report: Vec<ReportArg>,
    #[command(flatten)]
    autoscalers: AutoscalerArgs,
    #[command(flatten)]
    skip: SkipArgs,
    #[command(flatten)]
    values: ValueArgs,
}

/// The result for an autoscaler, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'r> {
    verdict: &'static str,
    #[serde(flatten)]
    result: &'r GateResult,
}

/// The last line of the JSON output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'s> {
    base: &'s str,
    head: &'s str,
    release: &'s str,
    budget: String,
    over_budget: usize,
    within_budget: usize,
    not_measured: usize,
    not_checked: usize,
    unchanged: usize,
}

/// An autoscaler that changes.
struct Planned<'c> {
    change: &'c ChangedDraft,
    /// The result if it can't be measured.
    unmeasured: Option<GateResult>,
    /// Why the change stops it, if another HPA selects the same pods.
    ambiguous: Vec<Reason<'c>>,
    /// The scenarios to predict. Empty: it is not measured.
    scenarios: Scenarios,
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    if args.measure.price.is_none() && args.budget.0.iter().any(|it| it.column() == COST) {
        return Err(Failure::usage("--budget limits `cost`, which requires --price").into());
    }
    let base = Version::find("--base", &args.base)?;
    let head = Version::find("--head", &args.head)?;
    let mut reports = Reports::open(args)?;
    let versions = args.drafts(&base, &head)?;
    let ambiguous = AmbiguousHpas::new(&versions, args.release.release);
    let mut changes = versions.compared();
    changes.retain(|it| it.is_changed() || !ambiguous.reasons(it).is_empty());
    let names = |draft: &Draft| {
        let names = draft.names().into_iter();
        names.map(|name| format!("{} {name}", draft.kind)).collect::<Vec<_>>()
    };
    let changed: BTreeSet<String> = changes
        .iter()
        .filter(|it| it.is_changed())
        .filter_map(|it| it.head.as_ref())
        .flat_map(names)
        .collect();
    let all: BTreeSet<String> = versions.head.list.iter().flat_map(names).collect();
    let mut planned = args.plan(&changes, &ambiguous)?;
    args.add_scenarios(&mut planned)?;
    let results = args.measure(&planned)?;
    let release = args.release.release.to_string();
    let subject = Subject {
        base: base.to_string(),
        head: head.to_string(),
        release,
        budget: args.budget.clone(),
        unchanged: all.difference(&changed).count(),
    };
    let report = Report { subject: &subject, results: &results };
    args.print(&report)?;
    reports.write(&report, &planned, args)?;
    let is_random = results.iter().any(|result| result.is_random);
    Ok(match results.iter().any(|result| result.verdict() == Verdict::Broken) {
        true => exit::DIVERGES,
        false if is_random => exit::ENGINE,
        false => exit::CONFORMS,
    })
}

impl Args {
    /// The drafts of both versions.
    fn drafts(
        &self,
        base: &Version,
        head: &Version,
    ) -> Result<kube_lockstep_manifests::Versions, Failure> {
        let mut paths: Vec<PathBuf> = self.paths.iter().flat_map(|it| separate(it)).collect();
        let are_files = [base, head].into_iter().all(|version| matches!(version, Version::File(_)));
        if are_files && !paths.is_empty() {
            let what = "-f has no use: --base and --head are files with all manifests";
            return Err(Failure::usage(what).hint("leave it out"));
        }
        if paths.is_empty() {
            paths.push(".".into());
        }
        let base = base.read(&paths, self.recursive)?;
        let head = head.read(&paths, self.recursive)?;
        check_missing(&paths, &base, &head)?;
        for version in [&base, &head] {
            check_empty(version)?;
        }
        let selected = self.autoscalers.select().skipping(self.skip).applying_vpas();
        let options = self.values.options(selected, false);
        draft_versions(&base.files, &head.files, &options, &manifests::read_load)
            .map_err(|error| manifests::invalid_manifests(&self.paths, error))
    }

    /// Finds out which changes can be measured.
    fn plan<'c>(
        &self,
        changes: &'c [ChangedDraft],
        ambiguous: &'c AmbiguousHpas,
    ) -> Result<Vec<Planned<'c>>, Failure> {
        let (mut planned, mut missing) = (Vec::new(), Vec::new());
        for change in changes {
            let ambiguous = ambiguous.reasons(change);
            let others = ambiguous.iter().filter(|reason| !reason.is_predicted);
            let others = others.map(|reason| reason.text.to_owned());
            let effects: Vec<String> =
                change.unpredictable_effect().into_iter().chain(others).collect();
            let mut unmeasured = (!effects.is_empty()).then(|| GateResult::broken(change, effects));
            // Nothing is predicted without a version after the change.
            if unmeasured.is_none() && change.head.is_some() {
                let lacking: BTreeSet<String> =
                    change.missing().map(|(_, missing)| missing.to_string()).collect();
                let lacking = (!lacking.is_empty()).then(|| Vec::from_iter(lacking).join("; "));
                unmeasured = lacking.map(|why| GateResult::not_measured(change, why));
                if !self.skip.skip_missing {
                    let line = |(draft, missing)| missing_value(draft, missing, "");
                    let mut lines: Vec<String> = change.missing().map(line).collect();
                    // Both versions can lack the same value.
                    let mut known = BTreeSet::new();
                    lines.retain(|line| known.insert(line.clone()));
                    missing.extend(lines);
                }
            }
            let scenarios = Scenarios::default();
            planned.push(Planned { change, unmeasured, ambiguous, scenarios });
        }
        if missing.is_empty() {
            return Ok(planned);
        }
        let hint = "--skip-missing leaves out the autoscalers that lack values";
        Err(requires_values(&missing).with_hint(Some(Hint::from(hint))))
    }

    /// Adds the scenarios of those that are measured. They all end at the same time.
    fn add_scenarios(&self, planned: &mut [Planned<'_>]) -> Result<(), Failure> {
        let measured = || planned.iter().filter(|it| it.unmeasured.is_none());
        let drafts = measured()
            .flat_map(|it| it.change.comparable_base().into_iter().chain(&it.change.head));
        let until = drafts.map(Draft::until).max().unwrap_or_default();
        let scenario = |draft: Option<&Draft>| -> Result<Option<Arc<Scenario>>, Failure> {
            let Some(mut draft) = draft.cloned() else { return Ok(None) };
            draft.set_until(until);
            let scenario = manifests::applied(&draft)?;
            check_flags(&scenario, self.release.release)?;
            self.measure.check_price(&scenario)?;
            Ok(Some(scenario))
        };
        let mut names = BTreeSet::new();
        for it in planned.iter_mut().filter(|it| it.unmeasured.is_none()) {
            if it.change.head.is_none() {
                continue;
            }
            let (base, head) = (it.change.comparable_base(), it.change.head.as_ref());
            it.scenarios = Scenarios { base: scenario(base)?, head: scenario(head)? };
            names.extend(it.scenarios.both().flat_map(|scenario| metrics(scenario)));
        }
        match names.is_empty() {
            true => Ok(()),
            false => self.measure.check_used(&names),
        }
    }

    /// The results of all changes, in their order.
    fn measure(&self, planned: &[Planned<'_>]) -> Result<Vec<GateResult>, Failure> {
        let is_shown = io::stderr().is_terminal() && planned.len() > 1;
        let bar = is_shown.then(|| CountBar::new(planned.len(), "autoscalers"));
        let mut results = Vec::new();
        for Planned { change, unmeasured, ambiguous, scenarios } in planned {
            results.push(match unmeasured {
                Some(result) => result.clone(),
                None => {
                    let gate = Gate {
                        release: self.release.release,
                        budget: self.budget.clone(),
                        capacities: self.measure.capacities_of(scenarios.both()),
                        price: self.measure.price,
                    };
                    let result = gate.measure(change, scenarios, ambiguous);
                    result.map_err(|why| Failure::usage(format!("--capacity: {why}")))?
                }
            });
            bar.iter().for_each(|bar| bar.set(results.len()));
        }
        Ok(results)
    }

    fn print(&self, report: &Report<'_>) -> anyhow::Result<()> {
        match self.format {
            Format::Text => show(&report.text(columns()))?,
            Format::Json => {
                let mut out = io::stdout();
                for result in report.results {
                    let line = Line { verdict: result.verdict().text(), result };
                    unless_closed(json::line(&mut out, &line))?;
                }
                let of = |verdict: Verdict| {
                    report.results.iter().filter(|it| it.verdict() == verdict).count()
                };
                let Subject { base, head, release, budget, unchanged } = report.subject;
                let summary = Summary {
                    base,
                    head,
                    release,
                    budget: budget.to_string(),
                    over_budget: of(Verdict::Broken),
                    within_budget: of(Verdict::Kept),
                    not_measured: of(Verdict::NotMeasured),
                    not_checked: of(Verdict::NotChecked),
                    unchanged: *unchanged,
                };
                let line = serde_json::json!({ "summary": summary });
                unless_closed(json::line(&mut out, &line))?;
            }
        }
        Ok(())
    }
}

/// Fails if neither version has a path, and notes the paths that only one of them has.
fn check_missing(paths: &[PathBuf], base: &Found, head: &Found) -> Result<(), Failure> {
    for path in paths {
        let lacks = |found: &Found| found.missing.contains(path);
        let note = |version: &str, count_as: &str| {
            let name = match path == Path::new(".") {
                true => version::folder_name(path),
                false => path.display().to_string(),
            };
            let effect = format!("so its autoscalers count as {count_as}");
            tell(&format!("note: {version} does not have {name}, {effect}\n"));
        };
        let path = path.display();
        match (lacks(base), lacks(head)) {
            (true, true) => {
                let (base, head) = (&base.version, &head.version);
                let what = format!("-f {path}: neither {base} nor {head} has this file or folder");
                return Err(Failure::usage(what));
            }
            (true, false) => note(&base.version, "added"),
            (false, true) => note(&head.version, "removed"),
            (false, false) => {}
        }
    }
    Ok(())
}

/// Fails if a version has no manifests, or only in subfolders that are not read: otherwise, all its
/// autoscalers would seem to be added or removed. Notes other folders without manifests.
fn check_empty(version: &Found) -> Result<(), Failure> {
    for EmptyFolder { name, has_manifests_below } in &version.empty {
        let what = format!("there are no manifests in {name}");
        match has_manifests_below {
            true => return Err(Failure::usage(what).hint("-R also reads its subfolders")),
            false if version.files.is_empty() => return Err(Failure::usage(what)),
            false => tell(&format!("note: {what}\n")),
        }
    }
    Ok(())
}

/// The reports in addition to the one on standard output.
struct Reports {
    files: Vec<(ReportFormat, ReportFile)>,
    /// True for annotations.
    is_on_github: bool,
    summary: Option<ReportFile>,
}

impl Reports {
    fn open(args: &Args) -> Result<Reports, Failure> {
        let mut reports = Reports { files: Vec::new(), is_on_github: false, summary: None };
        for report in &args.report {
            let flag = format!("--report {report}");
            match report {
                ReportArg::Github => {
                    reports.is_on_github = true;
                    reports.summary = job_summary(&flag)?;
                }
                ReportArg::File(format, path) => {
                    reports.files.push((*format, ReportFile::open(&flag, path)?));
                }
            }
        }
        Ok(reports)
    }

    fn write(
        &mut self,
        report: &Report<'_>,
        planned: &[Planned<'_>],
        args: &Args,
    ) -> anyhow::Result<()> {
        for (format, file) in &mut self.files {
            let text = match format {
                ReportFormat::Html => page(report, planned, args),
                ReportFormat::Junit => report.junit()?,
                ReportFormat::Markdown => report.markdown(),
            };
            file.write_all(text.as_bytes())?;
        }
        if self.is_on_github {
            let folders = folders();
            let annotations =
                report.results.iter().flat_map(|it| it.annotations(&report.subject.budget));
            let mut text = String::new();
            for mut annotation in annotations {
                annotation.file = folders.relative(&annotation.file);
                text += &format!("{annotation}\n");
            }
            match args.format {
                Format::Text => unless_closed(io::stdout().write_all(text.as_bytes()))?,
                // Standard output contains only JSON.
                Format::Json => tell(&text),
            }
        }
        if let Some(file) = &mut self.summary {
            file.write_all(report.markdown().as_bytes())?;
        }
        Ok(())
    }
}

/// The page: the figures and the timelines before and after each change.
fn page(report: &Report<'_>, planned: &[Planned<'_>], args: &Args) -> String {
    let mut page = Comparison::new(2 * planned.len());
    let mut rows = Vec::new();
    for (Planned { change, scenarios, .. }, result) in planned.iter().zip(report.results) {
        let sides = [
            (&report.subject.base, &scenarios.base, result.base),
            (&report.subject.head, &scenarios.head, result.head),
        ];
        for (version, scenario, figures) in sides {
            let (Some(scenario), Some(figures)) = (scenario, figures) else { continue };
            let setting = SettingName {
                scenario: (planned.len() > 1).then(|| result.name.clone()),
                setting: Some(version.clone()),
                load_factor: None,
            };
            let run = free_run(scenario, args.release.release);
            let about = change.fields.iter().map(ToString::to_string).collect::<Vec<_>>();
            let about = about.join("; ");
            page.add(Compared { setting: &setting, about: &about, scenario, run: &run });
            rows.push(ComparisonRow {
                setting,
                namespace: scenario.namespace.to_string(),
                hpa: scenario.hpas.first().map(|hpa| hpa.name.to_string()),
                release: report.subject.release.clone(),
                figures: Some(figures),
                ..ComparisonRow::default()
            });
        }
    }
    page.page(&rows)
}
