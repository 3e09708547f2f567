//! `kube-lockstep compare`.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use super::args::{self, Format, Source};
use super::exit;
use super::failure::Failure;
use super::fixtures::{Fixture, Fixtures};
use super::manifests::{self, Autoscalers, ManifestArgs, SkipArgs};
use super::output::{columns, show, unless_closed};
use super::reports::ReportFile;
use super::run::parse_each;
use super::setting::Setting;
use crate::model::rules::{Release, Releases};
use crate::model::time::Time;
use crate::report::comparison::{
    ComparisonRow, Figures, Reference, columns_help, comparison, not_compared,
};
use crate::report::html::{Compared, Comparison};
use crate::report::json;
use crate::report::outcome::{note_line, note_text};
use crate::run::{FreeRun, free_run};
use crate::scenario::{self, Problem, Scenario, on_a_command_line};

const HELP: &str = "\
Exit codes:
  0    the settings are compared
  2    an invalid command line, scenario or manifest, or a value that the prediction requires is
       missing
  3    a scenario can't be run to its end, because its outcome is not deterministic; the others are
       compared
  4    a folder or a glob contains no scenarios";

/// The name of the setting that the manifests or the scenario have.
const CURRENT: &str = "current";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\n{}\n\n{HELP}", columns_help(100), manifests::LOAD_HELP))]
#[command(group = clap::ArgGroup::new("what").required(true).args(["names", "filename"]))]
pub(super) struct Args {
    /// Scenarios: files, folders, globs, or ids of fixtures
    #[arg(value_name = "FILE")]
    names: Vec<String>,
    /// Another setting: fields of the HPA as PATH=VALUE, separated by commas, optionally after a
    /// name and a colon. For example
    /// fast:spec.behavior.scaleDown.stabilizationWindowSeconds=60,spec.maxReplicas=20. If several
    /// HPAs are predicted together, the path begins with the name of one: web/spec.maxReplicas=20.
    /// Values are YAML: spec.behavior.scaleUp.policies=[{type: Pods, value: 4, periodSeconds: 60}]
    #[arg(long, value_name = "[NAME:]PATH=VALUE,…")]
    set: Vec<Setting>,
    /// Another setting: the HPA in this manifest, in place of the one with the same name
    #[arg(long, value_name = "[NAME:]FILE", value_parser = Setting::of_manifest)]
    manifest: Vec<Setting>,
    /// Repeat each prediction with different noise of the loads, and show the mean, minimum and
    /// maximum of each figure. The first run uses the seeds of the loads, the second run the next
    /// seeds, and so on
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// The Kubernetes releases: one, several (`1.30,1.35-1.37`), or `all` [default: the newest]
    #[arg(long, value_name = "RELEASES", value_parser = args::releases)]
    release: Option<Releases>,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Also write the comparison as a page: the figures, the replicas of all settings in one chart,
    /// and the timeline of each setting
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    source: Source,
    /// Only this HPA of the manifests: NAME or NAMESPACE/NAME, in which `*` is any text; can be
    /// repeated
    #[arg(long, value_name = "NAME", requires = "filename")]
    hpa: Vec<String>,
    #[command(flatten)]
    skip: SkipArgs,
    #[command(flatten)]
    manifests: ManifestArgs,
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let (subjects, left_out) = subjects(args)?;
    let several = subjects.len() > 1;
    let is_only = subjects.iter().map(|subject| subject.scenario.hpas.len()).sum::<usize>() == 1;
    let settings: Vec<&Setting> = args.set.iter().chain(&args.manifest).collect();
    check_settings(&settings, &subjects)?;
    let file = args.html.as_deref().map(|path| ReportFile::open("--html", path)).transpose()?;
    let of = |subject: &Subject| {
        1 + settings.iter().filter(|setting| setting.is_for(&subject.scenario)).count()
    };
    let releases = args.release.as_ref().map_or(1, |releases| releases.iter().count());
    let count = releases * subjects.iter().map(of).sum::<usize>();
    let mut predictions = Predictions {
        page: file.is_some().then(|| Comparison::of(count)),
        ..Predictions::default()
    };
    if let Some(page) = &mut predictions.page {
        left_out.into_iter().for_each(|note| page.note(note));
    }
    for subject in &subjects {
        let name = |setting: &str| match several {
            true if settings.is_empty() => subject.scenario.id.clone(),
            true => format!("{}: {setting}", subject.scenario.id),
            false => setting.to_owned(),
        };
        let scenario = &subject.scenario;
        predictions.add(&name(CURRENT), &scenario.path, scenario, args)?;
        for setting in settings.iter().filter(|setting| setting.is_for(scenario)) {
            let scenario = subject.with(setting, is_only)?;
            predictions.add(&name(&setting.name), &setting.about, &scenario, args)?;
        }
    }
    let Predictions { rows, page, notes, is_undetermined, .. } = predictions;
    if rows.iter().all(|row| row.figures.is_none()) {
        let why = not_compared(&rows).collect::<Vec<_>>().join("\n");
        return Err(match is_undetermined {
            true => Failure::engine(why),
            false => Failure::usage(why).hint("choose another release with --release"),
        }
        .into());
    }
    if let (Some(mut file), Some(page)) = (file, page) {
        file.write_all(page.page(&rows).as_bytes())?;
    }
    match args.format {
        Format::Text => show(&comparison(&rows, columns()))?,
        Format::Json => {
            let mut out = io::stdout();
            for row in &rows {
                unless_closed(json::line(&mut out, row))?;
            }
        }
    }
    // A note that can't be written is ignored.
    let notes = notes.into_values().collect::<String>();
    let _ = anstream::stderr().write_all(notes.as_bytes());
    Ok(if is_undetermined { exit::ENGINE } else { exit::CONFORMS })
}

/// Fails if two settings have the same name, or if a setting is for no HPA.
fn check_settings(settings: &[&Setting], subjects: &[Subject]) -> Result<(), Failure> {
    let scenarios = || subjects.iter().map(|subject| &subject.scenario);
    for (index, setting) in settings.iter().enumerate() {
        let name = &setting.name;
        if name == CURRENT || settings[..index].iter().any(|other| other.name == *name) {
            let what = format!("{}: another setting is named `{name}`", setting.flag());
            return Err(Failure::usage(what).hint("begin it with another name and a colon"));
        }
        if !scenarios().any(|scenario| setting.is_for(scenario)) {
            let hpas = scenarios().flat_map(|scenario| &scenario.hpas);
            let names: Vec<&str> = hpas.map(|hpa| &*hpa.name).collect();
            let what = match setting.manifest_names().join(", ") {
                names if names.is_empty() => format!("{} {name}: no such HPA", setting.flag()),
                names => format!("{} {name}: no such HPA: it contains {names}", setting.flag()),
            };
            return Err(Failure::usage(what).hint(format!("the HPAs are {}", names.join(", "))));
        }
        let names = scenarios().flat_map(|scenario| &scenario.hpas).map(|hpa| &*hpa.name);
        setting.check_manifest(&names.collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Reads a file that a scenario names.
type ReadFile = Box<dyn Fn(&str) -> Result<String, String>>;

/// A scenario, with a way to read the files that it names.
struct Subject {
    scenario: Arc<Scenario>,
    read: ReadFile,
    /// Whether it is a draft from manifests, whose messages are in the syntax of `--load`.
    is_draft: bool,
}

impl Subject {
    /// The scenario with another setting. Messages name the HPA unless it is the only one.
    fn with(&self, setting: &Setting, is_only: bool) -> Result<Arc<Scenario>, Failure> {
        let invalid = |failure: Failure| {
            let (flag, name, what) = (setting.flag(), &setting.name, failure.what);
            let hpa = match *setting.changed(&self.scenario) {
                [name] if !is_only => format!("HPA {name}: "),
                _ => String::new(),
            };
            Failure { what: format!("{flag} {name}: {hpa}{what}"), ..failure }
        };
        let mut tree = scenario::to_tree(&self.scenario);
        setting.apply(&mut tree).map_err(invalid)?;
        let text = scenario::tree_to_yaml(&tree);
        let changed = scenario::parse(&self.scenario.path, &text, &self.read).map_err(|error| {
            let problem = error.problems.into_iter().next();
            let (what, hint) = problem.map(|it| (located(&it), it.hint)).unwrap_or_default();
            invalid(Failure { hint, ..Failure::usage(what) })
        })?;
        let mut notes = changed.notes;
        if self.is_draft {
            notes.iter_mut().for_each(|note| *note = on_a_command_line(note));
        }
        let Scenario { id, line, .. } = &*self.scenario;
        let is_of_manifests = self.is_draft;
        Ok(Arc::new(Scenario { id: id.clone(), line: *line, notes, is_of_manifests, ..changed }))
    }
}

/// The message of a problem, with its place if that is in a file of the user.
fn located(problem: &Problem) -> String {
    match &problem.file {
        Some(file) => format!("{file}:{}:{}: {}", problem.line, problem.column, problem.what),
        None => problem.what.clone(),
    }
}

/// The scenarios, and notes on those that are left out.
fn subjects(args: &Args) -> Result<(Vec<Subject>, Vec<String>), Failure> {
    let selected = Autoscalers::only_hpas(&args.hpa).skipping(args.skip);
    if !args.manifests.filename.is_empty() {
        let scenarios = args.manifests.hpa_scenarios(selected.clone())?;
        let read = || -> ReadFile { Box::new(manifests::read_load) };
        let subject = |scenario| Subject { scenario, read: read(), is_draft: true };
        return Ok((scenarios.into_iter().map(subject).collect(), selected.left_out()));
    }
    args.manifests.check_unused(&args.names)?;
    selected.check_unused(&args.names)?;
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    let found = fixtures.in_order(&args.names)?;
    // All errors are reported first.
    parse_each(&found)?;
    let subject = |fixture: Fixture| {
        let scenario = fixture.parse()?;
        let read = Box::new(move |path: &str| fixture.read_beside(path));
        Ok(Subject { scenario, read, is_draft: false })
    };
    Ok((found.into_iter().map(subject).collect::<Result<_, Failure>>()?, Vec::new()))
}

/// The scenario with the noise of a repeated run, which is counted from 0.
fn of_run(scenario: &Arc<Scenario>, name: &str, run: u32) -> Result<Arc<Scenario>, Failure> {
    if run == 0 {
        return Ok(scenario.clone());
    }
    let varied = scenario::with_noise_of_run(scenario, run);
    varied.map(Arc::new).ok_or_else(|| {
        let what = format!("{name}: no load has noise, so all runs are the same");
        Failure::usage(what).hint("add noise, for example --load 'cpu=total:noise(10%,8)'")
    })
}

/// The predictions of all settings.
#[derive(Default)]
struct Predictions {
    rows: Vec<ComparisonRow>,
    /// The page to write, if any.
    page: Option<Comparison>,
    /// The targets that all settings of a workload are measured against: those of the first one.
    references: Vec<(Workload, Reference)>,
    /// The notes on the scenarios, each text once.
    notes: BTreeMap<String, String>,
    /// True if a scenario can't be run to its end.
    is_undetermined: bool,
}

/// The time of the first reconcile on a release.
#[derive(Clone, Copy, Debug)]
struct Beginning {
    release: Release,
    at: Time,
}

/// A note on releases whose first reconciles are at different times.
fn note_on_beginnings(beginnings: &[Beginning]) -> Option<String> {
    let same: Vec<&[Beginning]> = beginnings.chunk_by(|one, other| one.at == other.at).collect();
    if same.len() < 2 {
        return None;
    }
    let part = |same: &&[Beginning]| match same {
        [only] => format!("{} on {}", only.at, only.release),
        [first, .., last] => format!("{} on {} to {}", first.at, first.release, last.release),
        [] => String::new(),
    };
    let parts: Vec<String> = same.iter().map(part).collect();
    Some(format!(
        "the first reconcile is at {}; all later ones follow at the same interval, so that figures \
         differ a little between these releases even if nothing else does",
        parts.join(", and at ")
    ))
}

/// The namespace, kind and name of the target of a scenario.
type Workload = [String; 3];

impl Predictions {
    /// Adds a scenario: one row for each release and run.
    fn add(
        &mut self,
        setting: &str,
        about: &str,
        scenario: &Arc<Scenario>,
        args: &Args,
    ) -> anyhow::Result<()> {
        let releases = args.release.clone().unwrap_or_else(|| Releases::only(Release::NEWEST));
        let mut beginnings = Vec::new();
        for release in releases.iter() {
            for number in 0..args.runs {
                let scenario = of_run(scenario, setting, number)?;
                let row = ComparisonRow {
                    setting: setting.to_owned(),
                    release: release.to_string(),
                    run: (args.runs > 1).then_some(number + 1),
                    figures: None,
                    not_compared: scenario.unsupported_on(release),
                };
                if row.not_compared.is_some() {
                    self.rows.push(row);
                    break;
                }
                let run = free_run(&scenario, release);
                if let Some(why) = run.refused() {
                    self.rows.push(ComparisonRow { not_compared: Some(why), ..row });
                    break;
                }
                if run.undetermined.is_some() {
                    self.is_undetermined = true;
                    self.rows.push(ComparisonRow { not_compared: run.undetermined, ..row });
                    break;
                }
                if let Some(page) = self.page.as_mut().filter(|_| number == 0) {
                    page.add(Compared { setting, about, scenario: &scenario, run: &run });
                }
                if let Some(first) = run.ticks.first().filter(|_| number == 0) {
                    beginnings.push(Beginning { release, at: first.observation.at });
                }
                self.note(&scenario, &run);
                let figures = Figures::of(&scenario, &run, self.reference(&scenario, &run));
                self.rows.push(ComparisonRow { figures: Some(figures), ..row });
            }
        }
        if let Some(note) = note_on_beginnings(&beginnings) {
            let lines = note_text(&note, columns());
            self.notes.insert(note, lines);
        }
        Ok(())
    }

    /// The targets that a scenario is measured against.
    fn reference(&mut self, scenario: &Scenario, run: &FreeRun) -> &Reference {
        let target = scenario.targets().next();
        let [kind, name] =
            target.map(|it| [it.kind.to_string(), it.name.to_string()]).unwrap_or_default();
        let workload = [scenario.namespace.to_string(), kind, name];
        let known = self.references.iter().position(|(other, _)| *other == workload);
        let index = known.unwrap_or_else(|| {
            self.references.push((workload, Reference::of(run)));
            self.references.len() - 1
        });
        &self.references[index].1
    }

    fn note(&mut self, scenario: &Scenario, run: &FreeRun) {
        for note in &run.notes {
            let line = || note_line(&scenario.path, note, columns());
            self.notes.entry(note.what.clone()).or_insert_with(line);
        }
    }
}
