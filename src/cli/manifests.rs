//! Scenarios from manifests: `--filename`, `--load` and the options beside them, for all commands
//! that predict.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::failure::Failure;
use super::fixtures::{AnyFixture, Fixtures, are_manifests};
use super::run::parse_each;
use crate::facade::text_file;
use crate::model::time::Span;
use crate::report::style::{WARN, paint};
use crate::scenario::draft::{
    Draft, DraftError, DraftOptions, Drafts, Kind, Load, ManifestFile, RequestOption, Selected,
    days_as_hours, draft,
};
use crate::scenario::vpa::VpaScenario;
use crate::scenario::{self, AnyScenario, Problem, Scenario, on_a_command_line};

/// The name of standard input in messages.
const STDIN: &str = "<stdin>";
/// The largest standard input, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The explanation of `--load` in the help.
pub(super) const LOAD_HELP: &str = "\
Loads:
  cpu=300m                       each pod uses 300m; cpu=60%: each pod uses 60% of its request
  cpu=total:8                    8 in total, shared by the ready pods
  cpu=total:steps(0s:2,5m:8)     2 from the start, 8 after 5 minutes
  cpu=total:ramp(0s:2,10m:8)     a linear increase from 2 to 8 over 10 minutes
  cpu=total:sine(mean=4,amplitude=2,period=1h)
                                 a wave from 2 to 6; `offset` is a time at which it rises through 4
  cpu=total:csv(FILE)            recorded values: a CSV file with the columns time and value; also
                                 prometheus(FILE), a saved response to a range query, and
                                 openMetrics(FILE). Options follow the file: time=COLUMN,
                                 value=COLUMN (value=*: all other columns, one for each pod with
                                 by=pod, or added up with sum), decimal=comma, unit=1m, hold=5m,
                                 start=TIME, by=LABEL (one series for each pod), sum (add up the
                                 series), LABEL=VALUE
  cpu=total:noise(10%,VALUE)     any of these values with random noise of up to 10%; before VALUE:
                                 seed=N, every=15s (how long a difference lasts)
  cpu/app=300m                   the usage of one container of each pod
  requests_per_second=120        a metric of type Pods, Object or External, by its name
  'queue{queue=orders}=30'       the series with these labels
  web:cpu=70%                    the load of one HPA only: NAME or NAMESPACE/NAME";

/// Manifests in place of a scenario, and what they leave open.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Manifests in place of a scenario")]
pub(super) struct ManifestArgs {
    /// Manifests of HPAs, VPAs and their targets: files, folders, or `-` for standard input; as for
    /// `kubectl apply`, or as `kubectl get -o yaml` prints them. Objects of other kinds are ignored
    #[arg(short = 'f', long, value_name = "FILE")]
    pub(super) filename: Vec<PathBuf>,
    /// Also read the folders in the folders that --filename names
    #[arg(short = 'R', long, requires = "filename")]
    recursive: bool,
    /// The load of a metric, as NAME=VALUE or NAME=total:VALUE; see below
    #[arg(long, value_name = "LOAD", requires = "filename")]
    load: Vec<Load>,
    /// The request of each pod, in place of those in the manifest: cpu=500m, or cpu/CONTAINER=500m;
    /// of one HPA: web:cpu=500m
    #[arg(long, value_name = "REQUEST", requires = "filename")]
    request: Vec<RequestOption>,
    /// The replicas at the start [default: those of the target]
    #[arg(long, value_name = "N", requires = "filename")]
    #[arg(value_parser = clap::value_parser!(i32).range(0..))]
    replicas: Option<i32>,
    /// How long a new pod takes to become ready, for HPAs [default: the initialDelaySeconds of its
    /// probes]
    #[arg(long, value_name = "DURATION", requires = "filename", value_parser = duration)]
    startup: Option<Span>,
    /// The end of the prediction [default: that of a recorded load; otherwise 10 minutes after the
    /// last change of a load for HPAs, and 8 days for VPAs]
    #[arg(long, value_name = "DURATION", requires = "filename", value_parser = duration)]
    until: Option<Span>,
}

/// The autoscalers of the manifests that a command is about.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct AutoscalerArgs {
    /// Only this HPA of the manifests: NAME or NAMESPACE/NAME
    #[arg(long, value_name = "NAME", requires = "filename")]
    hpa: Option<String>,
    /// Only this VPA of the manifests: NAME or NAMESPACE/NAME
    #[arg(long, value_name = "NAME", requires = "filename")]
    vpa: Option<String>,
}

impl AutoscalerArgs {
    /// The autoscalers that `--hpa` and `--vpa` name.
    pub(super) fn select(&self) -> Autoscalers {
        Autoscalers::named(self.hpa.as_deref(), self.vpa.as_deref())
    }
}

/// The autoscalers of the manifests that are predicted.
#[derive(Clone, Debug)]
pub(super) struct Autoscalers {
    hpas: Selected,
    vpas: Selected,
}

impl Autoscalers {
    /// All of them, or those with these names: with a name of one kind, none of the other kind.
    pub(super) fn named(hpa: Option<&str>, vpa: Option<&str>) -> Autoscalers {
        let of = |name: Option<&str>| match name {
            Some(name) => Selected::Named(name.to_owned()),
            None if hpa.is_none() && vpa.is_none() => Selected::All,
            None => Selected::None,
        };
        Autoscalers { hpas: of(hpa), vpas: of(vpa) }
    }

    /// HPAs only, for commands that do not support VPAs.
    pub(super) fn only_hpas(hpa: Option<&str>) -> Autoscalers {
        let hpas = hpa.map_or(Selected::All, |name| Selected::Named(name.to_owned()));
        Autoscalers { hpas, vpas: Selected::Unsupported }
    }
}

/// Parses a duration that is not negative.
fn duration(text: &str) -> Result<Span, String> {
    let span: Span = days_as_hours(text).parse().map_err(|error| format!("{error}"))?;
    if span < Span::ZERO { Err("the value can't be negative".to_owned()) } else { Ok(span) }
}

impl ManifestArgs {
    /// Fails if options for manifests are given with a scenario, which has its own values. clap
    /// does not check `requires` if the required argument conflicts with a given one.
    pub(super) fn check_unused(&self, names: &[String]) -> Result<(), Failure> {
        let given = [
            ("--load", !self.load.is_empty()),
            ("--request", !self.request.is_empty()),
            ("--replicas", self.replicas.is_some()),
            ("--startup", self.startup.is_some()),
            ("--until", self.until.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((flag, _)) => {
                let what = format!("{flag} requires manifests, which --filename (-f) names");
                Err(Failure::usage(what).hint(match names.iter().find(|it| are_manifests(it)) {
                    Some(name) => format!("{name} contains manifests: name it with `-f {name}`"),
                    None => "a scenario file contains this value: edit it".to_owned(),
                }))
            }
        }
    }

    /// The drafts of scenarios. Objects that are ignored are named in a note on standard error.
    pub(super) fn drafts(&self, of: Autoscalers, examples: bool) -> Result<Vec<Draft>, Failure> {
        let options = DraftOptions {
            hpas: of.hpas,
            vpas: of.vpas,
            loads: self.load.clone(),
            requests: self.request.clone(),
            replicas: self.replicas,
            startup: self.startup,
            until: self.until,
            examples,
        };
        let Drafts { list, ignored } =
            draft(&self.read()?, &options, &read_load).map_err(failure)?;
        note_ignored(&ignored);
        Ok(list)
    }

    /// Makes the paths of recorded loads absolute, for a scenario in another folder.
    pub(super) fn make_paths_absolute(&mut self) {
        for path in self.load.iter_mut().filter_map(Load::path_mut) {
            // A file that does not exist gives an error when it is read.
            if let Ok(absolute) = fs::canonicalize(&*path) {
                *path = absolute.display().to_string();
            }
        }
    }

    /// The path of a recorded load that is relative to the current folder. None: there is none.
    pub(super) fn relative_path(&self) -> Option<String> {
        let mut loads = self.load.clone();
        let mut paths = loads.iter_mut().filter_map(Load::path_mut);
        paths.find(|path| Path::new(path).is_relative()).cloned()
    }

    /// The scenarios of the manifests.
    pub(super) fn scenarios(&self, of: Autoscalers) -> Result<Vec<AnyFixture>, Failure> {
        let drafts = self.drafts(of, false)?;
        require_all_values(&drafts)?;
        drafts.iter().map(parse).collect()
    }

    /// The scenarios of HPAs of the manifests.
    pub(super) fn hpa_scenarios(&self, hpa: Option<&str>) -> Result<Vec<Arc<Scenario>>, Failure> {
        let scenarios = self.scenarios(Autoscalers::only_hpas(hpa))?.into_iter();
        let only = |scenario| match scenario {
            AnyFixture::Hpa(scenario) => Some(scenario),
            AnyFixture::Vpa(_) => None,
        };
        Ok(scenarios.filter_map(only).collect())
    }

    fn read(&self) -> Result<Vec<ManifestFile>, Failure> {
        let mut files = Vec::new();
        let mut seen = BTreeSet::new();
        for path in &self.filename {
            if !seen.insert(path) {
                continue;
            }
            if path == Path::new("-") {
                files.push(standard_input()?);
            } else if path.is_dir() {
                files.extend(folder(path, self.recursive)?);
            } else {
                files.push(file(path, false)?);
            }
        }
        Ok(files)
    }
}

/// The scenarios that a command names, of HPAs and VPAs: files, folders, globs or ids, or
/// manifests.
pub(super) fn any_scenarios(
    names: &[String],
    manifests: &ManifestArgs,
    autoscalers: Autoscalers,
    fixtures: Option<&Path>,
) -> Result<Vec<AnyFixture>, Failure> {
    if !manifests.filename.is_empty() {
        return manifests.scenarios(autoscalers);
    }
    manifests.check_unused(names)?;
    let fixtures = Fixtures::find(fixtures)?;
    parse_each(&fixtures.in_order(names)?)
}

/// Reads a draft as a scenario.
pub(super) fn parse(draft: &Draft) -> Result<AnyFixture, Failure> {
    let loads = RefCell::new(Vec::new());
    let read = |path: &str| {
        loads.borrow_mut().push(path.to_owned());
        read_load(path)
    };
    let parsed = scenario::parse_any(&draft.file, &draft.to_yaml(), &read);
    let scenario = parsed.map_err(|error| invalid(draft, error, &loads.borrow()))?;
    let (id, line) = (draft.name.clone(), draft.line);
    let notes = |of_scenario: &[String]| {
        let of_scenario = of_scenario.iter().map(|note| on_a_command_line(note));
        draft.notes.iter().cloned().chain(of_scenario).collect()
    };
    Ok(match scenario {
        AnyScenario::Hpa(scenario) => {
            let notes = notes(&scenario.notes);
            let manifest_notes = draft.manifest_notes.clone();
            let is_of_manifests = true;
            let scenario =
                Scenario { id, line, notes, manifest_notes, is_of_manifests, ..*scenario };
            AnyFixture::Hpa(Arc::new(scenario))
        }
        AnyScenario::Vpa(scenario) => {
            let notes = notes(&scenario.notes);
            AnyFixture::Vpa(Arc::new(VpaScenario { id, line, notes, ..*scenario }))
        }
    })
}

/// The error of an invalid draft, which reads these recorded loads.
fn invalid(draft: &Draft, error: scenario::Error, loads: &[String]) -> Failure {
    let hints: BTreeSet<&str> =
        error.problems.iter().filter_map(|problem| problem.hint.as_deref()).collect();
    let hint = hints.first().filter(|_| hints.len() == 1).map(|hint| on_a_command_line(hint));
    // The scenario has the same files: to edit it does not mend them.
    let is_of_a_load =
        |problem: &Problem| loads.iter().any(|path| problem.what.starts_with(path.as_str()));
    let hint = hint.or_else(|| {
        let hint = "`kube-lockstep init` with the same options writes the scenario to a file for \
                    editing";
        (!error.problems.iter().all(is_of_a_load)).then(|| hint.to_owned())
    });
    let what = error.problems.iter().map(|problem| on_a_command_line(&problem.what));
    let what = what.collect::<Vec<_>>().join("; ");
    let what = format!("{}: {} {}: {what}", draft.file, draft.kind, draft.name);
    Failure { hint, ..Failure::usage(what) }
}

/// Fails if a prediction depends on a value that is missing.
fn require_all_values(drafts: &[Draft]) -> Result<(), Failure> {
    let mut missing: Vec<String> = Vec::new();
    for draft in drafts {
        for it in &draft.missing {
            let (kind, name) = (draft.kind, &draft.name);
            missing.push(format!("  {kind} {name}: {}\n    add {}", it.what, it.flag));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let what = format!("the prediction requires more than the manifests\n{}", missing.join("\n"));
    let hint = match drafts.len() {
        1 => "`kube-lockstep init -f …` writes a scenario with examples of these values",
        _ if drafts.iter().all(|draft| draft.kind == drafts[0].kind) => match drafts[0].kind {
            Kind::Hpa => "--hpa NAME selects one of the HPAs",
            Kind::Vpa => "--vpa NAME selects one of the VPAs",
        },
        _ => "--hpa NAME or --vpa NAME selects one of them",
    };
    Err(Failure::usage(what).hint(hint))
}

/// The error of a command that is about one autoscaler. `names` have kinds: `HPA web`.
pub(super) fn several(names: Vec<String>) -> Failure {
    let what = format!("the manifests contain {} autoscalers: {}", names.len(), names.join(", "));
    Failure::usage(what).hint("select one of them with --hpa or --vpa")
}

fn failure(error: DraftError) -> Failure {
    match error {
        DraftError::Invalid(error) => Failure::usage(error.to_string()),
        DraftError::Options { what, hint: Some(hint) } => Failure::usage(what).hint(hint),
        DraftError::Options { what, hint: None } => Failure::usage(what),
    }
}

/// Names the ignored objects on standard error.
fn note_ignored(ignored: &[String]) {
    const MOST: usize = 8;
    if ignored.is_empty() {
        return;
    }
    let mut names = ignored.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    if let Some(more) = ignored.len().checked_sub(MOST).filter(|more| *more > 0) {
        names.push_str(&format!(" and {more} more"));
    }
    let text = format!("{} ignored: {names}\n", paint(WARN, "note:"));
    // A note that can't be written is ignored.
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// Reads the file of a recorded load, relative to the current folder.
pub(super) fn read_load(name: &str) -> Result<String, String> {
    text_file::read_named(Path::new(name)).map_err(|error| error.to_string())
}

fn file(path: &Path, lenient: bool) -> Result<ManifestFile, Failure> {
    let name = path.display().to_string();
    let text = text_file::read(path).map_err(|error| Failure::usage(error.in_file(&name)))?;
    Ok(ManifestFile { name, text, lenient })
}

/// The manifests of a folder, as with kubectl: with the folders in it only if `recursive`.
fn folder(path: &Path, recursive: bool) -> Result<Vec<ManifestFile>, Failure> {
    let (mut paths, mut has_folders) = (Vec::new(), false);
    let mut open = vec![path.to_path_buf()];
    while let Some(folder) = open.pop() {
        let folders = list(&folder, &mut paths)?;
        has_folders |= !folders.is_empty();
        open.extend(folders.into_iter().filter(|_| recursive));
    }
    if paths.is_empty() {
        let what = format!("{} contains no files *.yaml, *.yml or *.json", path.display());
        let failure = Failure::usage(what);
        return Err(match has_folders && !recursive {
            true => failure.hint("--recursive (-R) also reads the folders in it"),
            false => failure,
        });
    }
    paths.sort();
    paths.iter().map(|path| file(path, true)).collect()
}

/// Adds the manifests in a folder to `paths`, and returns the folders in it.
fn list(path: &Path, paths: &mut Vec<PathBuf>) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: io::Error| Failure::usage(format!("{}: {error}", path.display()));
    let mut folders = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        // A link to a folder could lead back to it.
        if entry.file_type().map_err(failed)?.is_dir() {
            folders.push(path);
            continue;
        }
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_file() && matches!(extension, Some("yaml" | "yml" | "json")) {
            paths.push(path);
        }
    }
    Ok(folders)
}

fn standard_input() -> Result<ManifestFile, Failure> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::usage(format!("{STDIN}: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        let what = format!("{STDIN}: it is larger than {} MiB", MAX_BYTES >> 20);
        return Err(Failure::usage(what));
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| Failure::usage(format!("{STDIN}: it is not UTF-8 text: {error}")))?;
    if text.trim().is_empty() {
        let hint = "pipe manifests to it: `kubectl get hpa,deploy -o yaml | kube-lockstep predict \
                    -f - …`; if you do, check that the first command prints some";
        return Err(Failure::usage(format!("{STDIN}: it is empty")).hint(hint));
    }
    Ok(ManifestFile { name: STDIN.to_owned(), text, lenient: false })
}
