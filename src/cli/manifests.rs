//! Scenarios from manifests: `--filename`, `--load` and the options beside them, for all commands
//! that predict.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::controller_flags::ControllerFlagArgs;
use super::failure::Failure;
use super::files;
use super::fixtures::{AnyFixture, Fixtures, are_manifests};
use super::output::tell;
use super::problems::folded;
use super::run::parse_modeled;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::Span;
use kube_lockstep_engines::input_file;
use kube_lockstep_engines::input_file::InputError;
use kube_lockstep_lint as lint;
use kube_lockstep_lint::{AMBIGUOUS_SELECTOR, ObjectName};
use kube_lockstep_manifests::{
    AutoscalerKind, Draft, DraftError, DraftOptions, Drafts, Load, ManifestFile, Manifests,
    Missing, RequestOption, Selected, Valid, days_as_hours, draft, draft_valid,
    draft_with_settings,
};
use kube_lockstep_report::style::{WARN, paint};
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_scenario::{AnyScenario, Diagnostic, Hint, Scenario};

/// The name of standard input in messages.
const STDIN: &str = "<stdin>";

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
  cpu=total:2 * csv(FILE)        twice a load; the factor can be a load as well
  cpu=total:csv(A) + csv(B)      the sum of two loads. To add B after 10 minutes:
                                 csv(A) + steps(0s:0,10m:1) * csv(B)
  cpu=total:shift(1h,VALUE)      the load one hour later; with -1h, one hour earlier
  cpu=total:repeat(24h,VALUE)    the first 24 hours of the load, repeated
  cpu=total:backlog(VALUE)       load above the cpu limits is not lost, but processed later
  queue=backlog(perPod=5,VALUE)  the length of a queue: VALUE items arrive per second, and each
                                 ready pod processes 5 per second. Before VALUE: initial=100,
                                 the length at the start
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
    /// Also read the subfolders of the folders that --filename names
    #[arg(short = 'R', long, requires = "filename")]
    recursive: bool,
    #[command(flatten)]
    values: ValueArgs,
}

/// Values that manifests do not contain. The options require the argument with the id `filename`.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct ValueArgs {
    /// The load of a metric, as NAME=VALUE or NAME=total:VALUE; see below
    #[arg(long, value_name = "LOAD", requires = "filename")]
    load: Vec<Load>,
    /// The request of each pod, instead of that in the manifest: cpu=500m, or cpu/CONTAINER=500m;
    /// for one HPA only: web:cpu=500m
    #[arg(long, value_name = "REQUEST", requires = "filename")]
    request: Vec<RequestOption>,
    /// The replicas at the start [default: those of the target]
    #[arg(long, value_name = "N", requires = "filename", allow_negative_numbers = true)]
    #[arg(value_parser = replicas)]
    replicas: Option<i32>,
    /// How long a new pod takes to become ready, for HPAs [default: the initialDelaySeconds of its
    /// probes]
    #[arg(long, value_name = "DURATION", requires = "filename", value_parser = duration)]
    startup: Option<Span>,
    /// The end of the prediction [default: that of a recorded load; otherwise 10 minutes after the
    /// last change of a load for HPAs, 8 days for VPAs, and at least 1 day for an HPA and a VPA of
    /// the same pods]
    #[arg(long, value_name = "DURATION", requires = "filename", value_parser = duration)]
    until: Option<Span>,
    #[command(flatten)]
    controller: ControllerFlagArgs,
}

/// The autoscalers of the manifests that a command is about.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct AutoscalerArgs {
    /// Only this HPA of the manifests: NAME or NAMESPACE/NAME, in which `*` is any text; can be
    /// repeated
    #[arg(long, value_name = "NAME", requires = "filename")]
    hpa: Vec<String>,
    /// Only this VPA of the manifests: NAME or NAMESPACE/NAME, in which `*` is any text; can be
    /// repeated
    #[arg(long, value_name = "NAME", requires = "filename")]
    vpa: Vec<String>,
}

impl AutoscalerArgs {
    /// The autoscalers that `--hpa` and `--vpa` name.
    pub(super) fn select(&self) -> Autoscalers {
        Autoscalers::named(&self.hpa, &self.vpa)
    }
}

/// The autoscalers that are left out.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(super) struct SkipArgs {
    /// Leave out the autoscalers of the manifests whose prediction requires a value that is
    /// missing, such as the load of a metric, and name them. Without this option, a missing value
    /// is an error
    #[arg(long, requires = "filename")]
    pub(super) skip_missing: bool,
}

/// The HPAs of the manifests that a command is about, if it does not support VPAs.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct HpaArgs {
    /// Only this HPA of the manifests: NAME or NAMESPACE/NAME, in which `*` is any text; can be
    /// repeated
    #[arg(long, value_name = "NAME", requires = "filename")]
    hpa: Vec<String>,
}

impl HpaArgs {
    /// The HPAs that `--hpa` names, or all.
    pub(super) fn select(&self) -> Autoscalers {
        let hpas = match self.hpa.as_slice() {
            [] => Selected::All,
            names => Selected::Named(names.to_vec()),
        };
        Autoscalers { hpas, vpas: Selected::Unsupported, skip_missing: None, applies_vpas: false }
    }
}

/// The autoscalers of the manifests that are predicted.
#[derive(Clone, Debug)]
pub(super) struct Autoscalers {
    hpas: Selected,
    vpas: Selected,
    /// True if `--skip-missing` is given. None: the command does not have it.
    skip_missing: Option<bool>,
    /// True if the recommendations of VPAs are applied to the pods.
    applies_vpas: bool,
}

/// The scenarios that a command predicts.
pub(super) struct FoundScenarios {
    pub(super) scenarios: Vec<AnyFixture>,
    /// A note for each autoscaler that is left out, which was already printed: `HPA shop/mail is
    /// left out: …`.
    pub(super) left_out: Vec<String>,
}

impl Autoscalers {
    /// All of them, or those with these names: with a name of one kind, none of the other kind.
    pub(super) fn named(hpas: &[String], vpas: &[String]) -> Autoscalers {
        let of = |names: &[String]| match names {
            [] if hpas.is_empty() && vpas.is_empty() => Selected::All,
            [] => Selected::None,
            _ => Selected::Named(names.to_vec()),
        };
        Autoscalers { hpas: of(hpas), vpas: of(vpas), skip_missing: None, applies_vpas: false }
    }

    /// Fails if autoscalers of manifests are selected, but a scenario is given.
    pub(super) fn check_unused(&self, names: &[String]) -> Result<(), Failure> {
        let is_named = |selected: &Selected| matches!(selected, Selected::Named(_));
        let given = [
            ("--hpa", is_named(&self.hpas)),
            ("--vpa", is_named(&self.vpas)),
            (SKIP_MISSING, self.skips_missing()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((flag, _)) => Err(requires_manifests(flag, names)),
        }
    }

    /// Leaves out those whose prediction requires a missing value, if the option is given.
    pub(super) fn skipping(self, SkipArgs { skip_missing }: SkipArgs) -> Autoscalers {
        Autoscalers { skip_missing: Some(skip_missing), ..self }
    }

    /// Applies the recommendations of VPAs to the pods.
    pub(super) fn applying_vpas(self) -> Autoscalers {
        Autoscalers { applies_vpas: true, ..self }
    }

    /// Returns true if those whose prediction requires a missing value are left out.
    pub(super) fn skips_missing(&self) -> bool {
        self.skip_missing == Some(true)
    }

    /// The hint if several of these kinds lack values: the flags that are not given yet. None: all
    /// of them are given.
    pub(super) fn hint_on_missing(&self, kinds: &[AutoscalerKind]) -> Option<String> {
        let is_open = |kind: &&AutoscalerKind| match kind {
            AutoscalerKind::Hpa => matches!(self.hpas, Selected::All),
            AutoscalerKind::Vpa => matches!(self.vpas, Selected::All),
        };
        let open: Vec<&AutoscalerKind> = kinds.iter().filter(is_open).collect();
        let select = |flags: &str, kinds: &str| format!("{flags} selects {kinds}");
        let select = match open.as_slice() {
            [] => None,
            [AutoscalerKind::Hpa] => Some(select("--hpa NAME", "HPAs")),
            [AutoscalerKind::Vpa] => Some(select("--vpa NAME", "VPAs")),
            _ => Some(select("--hpa NAME or --vpa NAME", "HPAs or VPAs")),
        };
        let all = kinds.iter().map(|kind| format!("{kind}s")).collect::<Vec<_>>().join(" and ");
        let skip = (self.skip_missing == Some(false))
            .then(|| format!("{SKIP_MISSING} leaves out the {all} that lack values"));
        let hints: Vec<String> = select.into_iter().chain(skip).collect();
        (!hints.is_empty()).then(|| hints.join("; "))
    }
}

/// The flag that leaves out autoscalers.
const SKIP_MISSING: &str = "--skip-missing";

/// Parses a number of replicas.
fn replicas(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number: &i32| *number >= 0);
    number.ok_or_else(|| format!("expected a whole number from 0 to {}", i32::MAX))
}

/// The files of an option `--filename`. Like kubectl, it accepts several, separated by commas,
/// unless there is a file with commas in its name.
pub(super) fn separate(path: &Path) -> Vec<PathBuf> {
    let names = path.to_str().filter(|names| names.contains(',') && !path.exists());
    names.map_or_else(|| vec![path.to_owned()], |it| it.split(',').map(PathBuf::from).collect())
}

/// Parses a duration that is not negative.
fn duration(text: &str) -> Result<Span, String> {
    let span: Span = days_as_hours(text).parse().map_err(|error| format!("{error}"))?;
    if span < Span::ZERO { Err("the value can't be negative".to_owned()) } else { Ok(span) }
}

impl ValueArgs {
    pub(super) fn options(&self, of: Autoscalers, examples: bool) -> DraftOptions {
        DraftOptions {
            hpas: of.hpas,
            vpas: of.vpas,
            applies_vpas: of.applies_vpas,
            loads: self.load.clone(),
            requests: self.request.clone(),
            replicas: self.replicas,
            startup: self.startup,
            until: self.until,
            flags: self.controller.flags.clone(),
            examples,
        }
    }
}

impl ManifestArgs {
    /// Fails if options for manifests are given with a scenario, which has its own values. clap
    /// does not check `requires` if the required argument conflicts with a given one.
    pub(super) fn check_unused(&self, names: &[String]) -> Result<(), Failure> {
        let ValueArgs { load, request, replicas, startup, until, controller } = &self.values;
        let given = [
            ("--load", !load.is_empty()),
            ("--request", !request.is_empty()),
            ("--replicas", replicas.is_some()),
            ("--startup", startup.is_some()),
            ("--until", until.is_some()),
        ];
        let given = given.into_iter().find_map(|(flag, given)| given.then(|| flag.to_owned()));
        let own_flag = || Some(format!("--{}", controller.flags.first()?));
        match given.or_else(own_flag) {
            None => Ok(()),
            Some(flag) => Err(requires_manifests(&flag, names)),
        }
    }

    /// The drafts of scenarios. Objects that are ignored are named in a note on standard error.
    fn drafts(&self, of: Autoscalers, examples: bool) -> Result<Vec<Draft>, Failure> {
        let files = self.read()?;
        let Drafts { mut list, ignored, .. } = self.draft(&files, of, examples, &read_load)?;
        note_ignored(&ignored);
        note_stopped(&mut list, &files);
        Ok(list)
    }

    /// The drafts of the valid autoscalers, with examples of missing values, and the objects that
    /// they are made of; and the problems of the invalid manifests.
    pub(super) fn valid_with_examples(
        &self,
        of: Autoscalers,
    ) -> Result<Valid<(Vec<Draft>, Manifests)>, Failure> {
        let files = self.read()?;
        let found = draft_valid(&files, &self.values.options(of, true), &read_load);
        let Valid { valid: (drafts, manifests), problems } =
            found.map_err(|error| self.failure(error))?;
        drafts.check_loads(&[], "").map_err(|error| self.failure(error))?;
        note_ignored(&drafts.ignored);
        Ok(Valid { valid: (drafts.list, manifests), problems })
    }

    /// The scenario of one autoscaler with examples of missing values, for a file in a folder, to
    /// which the paths of recorded loads are relative.
    pub(super) fn example_in(&self, folder: &Path, of: Autoscalers) -> Result<Draft, Failure> {
        let files = self.read()?;
        let Drafts { list, ignored, .. } = self.draft(&files, of.clone(), true, &read_load)?;
        note_ignored(&ignored);
        let [draft] = list.as_slice() else {
            let names = list.iter().map(|draft| format!("{} {}", draft.kind, draft.name));
            return Err(several(names.collect()));
        };
        // An invalid draft would leave the user with a file that can't be run.
        parse(draft)?;
        let moved = self.relative_to(folder);
        let read = |path: &str| read_load(&folder.join(path).display().to_string());
        let mut list = moved.draft(&files, of, true, &read)?.list;
        Ok(list.pop().unwrap_or_else(|| draft.clone()))
    }

    /// The drafts of HPAs that are compared with other settings.
    pub(super) fn drafts_with_settings(&self, of: Autoscalers) -> Result<Drafts, Failure> {
        let options = self.values.options(of, false);
        let files = self.read()?;
        let drafts = draft_with_settings(&files, &options, &read_load);
        let mut drafts = drafts.map_err(|error| self.failure(error))?;
        note_ignored(&drafts.ignored);
        note_stopped(&mut drafts.list, &files);
        Ok(drafts)
    }

    fn draft(
        &self,
        files: &[ManifestFile],
        of: Autoscalers,
        examples: bool,
        read: &dyn Fn(&str) -> Result<String, Diagnostic>,
    ) -> Result<Drafts, Failure> {
        draft(files, &self.values.options(of, examples), read).map_err(|error| self.failure(error))
    }

    fn failure(&self, error: DraftError) -> Failure {
        invalid_manifests(&self.filename, error)
    }

    /// Returns the options with the paths of recorded loads relative to a folder.
    fn relative_to(&self, folder: &Path) -> ManifestArgs {
        let mut moved = self.clone();
        // A folder that does not exist gives an error when the scenario is written.
        let Ok(folder) = fs::canonicalize(folder) else { return moved };
        let recordings = moved.values.load.iter_mut().flat_map(Load::recordings_mut);
        let paths = recordings.map(|recorded| recorded.source.path_mut());
        for path in paths.filter(|path| Path::new(path).is_relative()) {
            if let Ok(whole) = fs::canonicalize(&*path) {
                *path = relative(&whole, &folder).unwrap_or(whole).display().to_string();
            }
        }
        moved
    }

    /// The path of a recorded load that is relative to the current folder. None: there is none.
    pub(super) fn relative_path(&self) -> Option<String> {
        let recordings = self.values.load.iter().flat_map(Load::recordings);
        let mut paths = recordings.map(|recorded| recorded.source.path());
        paths.find(|path| Path::new(path).is_relative()).map(str::to_owned)
    }

    /// The scenarios of the manifests.
    pub(super) fn scenarios(&self, of: Autoscalers) -> Result<FoundScenarios, Failure> {
        let (drafts, left_out) = self.complete_drafts(&of)?;
        let scenarios = drafts.iter().map(parse).collect::<Result<_, _>>()?;
        Ok(FoundScenarios { scenarios, left_out })
    }

    /// The drafts, which have all values, and notes on those that are left out.
    fn complete_drafts(&self, of: &Autoscalers) -> Result<(Vec<Draft>, Vec<String>), Failure> {
        let mut left_out = Vec::new();
        let mut drafts = self.drafts(of.clone(), false)?;
        if of.skips_missing() && drafts.iter().any(|draft| draft.missing.is_empty()) {
            drafts.retain(|draft| {
                left_out.extend(note_missing(draft, ""));
                draft.missing.is_empty()
            });
        }
        require_all_values(&drafts, of)?;
        Ok((drafts, left_out))
    }

    fn read(&self) -> Result<Vec<ManifestFile>, Failure> {
        read_manifests(&self.filename, self.recursive)
    }
}

/// Reads manifests, each file once, by whatever path and folder it is named.
pub(super) fn read_manifests(
    filename: &[PathBuf],
    recursive: bool,
) -> Result<Vec<ManifestFile>, Failure> {
    let mut files = Vec::new();
    let mut seen = BTreeSet::new();
    for path in filename.iter().flat_map(|path| separate(path)) {
        let is_stdin = path == Path::new("-");
        let is_folder = !is_stdin && path.is_dir();
        let paths = match is_folder {
            true => folder(&path, recursive)?,
            false => vec![path.clone()],
        };
        for path in paths {
            // A file that can't be found gives an error when it is read.
            let whole = fs::canonicalize(&path).ok().filter(|_| !is_stdin);
            if !seen.insert(whole.unwrap_or_else(|| path.clone())) {
                continue;
            }
            files.push(if is_stdin { standard_input()? } else { file(&path, is_folder)? });
        }
    }
    Ok(files)
}

/// The error of manifests in these files. Those that Kustomize builds are not complete in them.
pub(super) fn invalid_manifests(filename: &[PathBuf], error: DraftError) -> Failure {
    let is_invalid = matches!(error, DraftError::Invalid(_));
    let failure = failure(error);
    match filename.iter().find_map(|path| kustomized(path)) {
        Some(folder) if is_invalid => {
            let build = format!("kubectl kustomize {folder} | kube-lockstep predict -f -");
            failure.hint(format!("{folder} has a kustomization, which `{build}` builds"))
        }
        _ => failure,
    }
}

/// The error of an option for manifests that is given with a scenario.
fn requires_manifests(flag: &str, names: &[String]) -> Failure {
    let what = format!("{flag} requires manifests, which --filename (-f) names");
    Failure::usage(what).hint(match names.iter().find(|it| are_manifests(it)) {
        Some(name) => format!("{name} contains manifests: name it with `-f {name}`"),
        None if matches!(flag, "--hpa" | "--vpa" | SKIP_MISSING) => format!("leave out {flag}"),
        None => "a scenario file contains this value: edit it".to_owned(),
    })
}

/// Fails if a release lacks a flag of the controller that is given with manifests.
pub(super) fn check_flags(scenario: &Scenario, release: Release) -> Result<(), Failure> {
    let missing = scenario.missing_flag_on(release).filter(|_| scenario.is_of_manifests);
    missing.map_or(Ok(()), |what| {
        let hint = "leave the flag out, or choose another release with --release";
        Err(Failure::usage(what.to_string()).hint(hint))
    })
}

/// The scenarios that a command names, of HPAs and VPAs: files, folders, globs or ids, or
/// manifests.
pub(super) fn any_scenarios(
    names: &[String],
    manifests: &ManifestArgs,
    autoscalers: Autoscalers,
    fixtures: Option<&Path>,
) -> Result<FoundScenarios, Failure> {
    if !manifests.filename.is_empty() {
        return manifests.scenarios(autoscalers);
    }
    manifests.check_unused(names)?;
    autoscalers.check_unused(names)?;
    let fixtures = Fixtures::find(fixtures)?;
    let scenarios = parse_modeled(&fixtures.in_order(names)?)?;
    Ok(FoundScenarios { scenarios, left_out: Vec::new() })
}

/// Notes HPAs that the controller stops, because an HPA of another target selects the same pods. A
/// prediction has one target, so it does not show that.
fn note_stopped(drafts: &mut [Draft], files: &[ManifestFile]) {
    // Invalid manifests are reported elsewhere.
    let Ok(manifests) = Manifests::read(files, &[]) else { return };
    let options = lint::Options::of(Release::NEWEST);
    for finding in lint::check(&manifests, &options, &[AMBIGUOUS_SELECTOR]) {
        let Some(other) = &finding.other else { continue };
        for draft in &mut *drafts {
            let has = |object: &ObjectName| {
                let name = (&object.namespace, &object.name);
                draft.hpas().iter().any(|hpa| (&hpa.name.namespace, &hpa.name.name) == name)
            };
            if has(&finding.object) != has(other) {
                let what = format!(
                    "{} from Kubernetes 1.26 on; the prediction does not show this",
                    finding.diagnostic.what
                );
                draft.notes.push(Diagnostic::new(what));
            }
        }
    }
}

/// Reads a draft as a scenario.
pub(super) fn parse(draft: &Draft) -> Result<AnyFixture, Failure> {
    let parsed = scenario::parse_draft(&draft.file, &draft.to_yaml(), &read_load);
    let scenario = parsed.map_err(|error| invalid(draft, error))?;
    let (id, line) = (draft.name.clone(), draft.line);
    // The user never sees the text of a draft, so its line numbers are left out.
    let notes = |reading_notes: &[Diagnostic]| {
        let reading_notes = reading_notes.iter().map(|note| Diagnostic::new(&*note.what));
        draft.notes.iter().cloned().chain(reading_notes).collect()
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
            let notes = [draft.notes_on_recommender.clone(), notes(&scenario.notes)].concat();
            AnyFixture::Vpa(Arc::new(VpaScenario { id, line, notes, ..*scenario }))
        }
    })
}

/// Reads a draft as a scenario in which all autoscalers change the workload.
pub(super) fn applied(draft: &Draft) -> Result<Arc<Scenario>, Failure> {
    let mut draft = draft.clone();
    draft.notes_on_recommender.clear();
    let scenario = Arc::unwrap_or_clone(parse(&draft)?.applied()?);
    let complete = draft.complete(scenario).map(Arc::new);
    complete
        .map_err(|problems| invalid(&draft, scenario::Error { path: draft.file.clone(), problems }))
}

/// The scenarios that a command names, as [`any_scenarios`] finds them, in which all autoscalers
/// change the workload.
pub(super) fn applied_scenarios(
    names: &[String],
    manifests: &ManifestArgs,
    autoscalers: Autoscalers,
    fixtures: Option<&Path>,
) -> Result<(Vec<Arc<Scenario>>, Vec<String>), Failure> {
    if !manifests.filename.is_empty() {
        let (drafts, left_out) = manifests.complete_drafts(&autoscalers)?;
        return Ok((drafts.iter().map(applied).collect::<Result<_, _>>()?, left_out));
    }
    let found = any_scenarios(names, manifests, autoscalers, fixtures)?;
    let scenarios = found.scenarios.into_iter().map(AnyFixture::applied);
    Ok((scenarios.collect::<Result<_, _>>()?, found.left_out))
}

/// The error of an invalid draft. A hint that all problems share is shown once.
fn invalid(draft: &Draft, error: scenario::Error) -> Failure {
    let hints: BTreeSet<Option<String>> =
        error.problems.iter().map(|problem| problem.hint_text().map(with_flags)).collect();
    let shared = hints.first().filter(|_| hints.len() == 1).cloned().flatten();
    let text = |problem: &Diagnostic| match problem.hint_text().map(with_flags) {
        Some(hint) if shared.is_none() => format!("{} ({hint})", problem.what),
        _ => problem.what.clone(),
    };
    let what: Vec<String> = error.problems.iter().map(text).collect();
    let what = what.join("; ");
    let what = format!("{}: {} {}: {what}", draft.file, draft.kind, draft.name);
    Failure::usage(what).with_hint(shared.map(Hint::from))
}

/// A hint on fields of a scenario, with the flags that set these fields.
fn with_flags(hint: String) -> String {
    hint.replace("`until`", "`--until`").replace("`horizontal-pod-", "`--horizontal-pod-")
}

/// Fails if a prediction depends on a value that is missing.
fn require_all_values(drafts: &[Draft], of: &Autoscalers) -> Result<(), Failure> {
    const EXAMPLES: &str =
        "`kube-lockstep init -f …` writes a scenario with examples of these values";
    let missing: Vec<String> = drafts.iter().flat_map(|draft| missing_values(draft, "")).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let has = |kind: &AutoscalerKind| drafts.iter().any(|draft| draft.kind == *kind);
    let kinds: Vec<AutoscalerKind> = AutoscalerKind::ALL.into_iter().filter(has).collect();
    let hint = match drafts {
        [_] => Some(EXAMPLES.to_owned()),
        _ => of.hint_on_missing(&kinds),
    };
    Err(requires_values(&missing).with_hint(hint.map(Hint::from)))
}

/// The values that a draft lacks, each with the flag that gives it. `setting`: the setting of the
/// autoscaler, after its name.
pub(super) fn missing_values(draft: &Draft, setting: &str) -> Vec<String> {
    draft.missing.iter().map(|missing| missing_value(draft, missing, setting)).collect()
}

/// A value that a draft lacks, with the flag that gives it.
pub(super) fn missing_value(
    Draft { kind, name, .. }: &Draft,
    Missing { what, flag, .. }: &Missing,
    setting: &str,
) -> String {
    format!("  {kind} {name}{setting}: {what}\n    add {flag}")
}

/// The error of missing values.
pub(super) fn requires_values(missing: &[String]) -> Failure {
    let missing = missing.join("\n");
    Failure::usage(format!("the manifests lack values that the prediction requires\n{missing}"))
}

/// Names an autoscaler that is left out, and what it requires, on standard error. `setting`: the
/// setting of the autoscaler, after its name. Returns the note, for pages.
pub(super) fn note_missing(
    Draft { kind, name, missing, .. }: &Draft,
    setting: &str,
) -> Option<String> {
    let parts: Vec<String> = missing.iter().map(Missing::to_string).collect();
    if parts.is_empty() {
        return None;
    }
    let text = format!("{kind} {name}{setting} is left out: {}", parts.join("; "));
    let line = format!("{} {text}\n", paint(WARN, "note:"));
    tell(&line);
    Some(text)
}

/// The error of a command that is about one autoscaler. `names` have kinds: `HPA web`.
pub(super) fn several(names: Vec<String>) -> Failure {
    let what = format!("the manifests contain {} autoscalers: {}", names.len(), names.join(", "));
    Failure::usage(what).hint("select one of them with --hpa or --vpa")
}

pub(super) fn failure(error: DraftError) -> Failure {
    match error {
        DraftError::Invalid(error) => Failure::usage(folded(&[error])),
        DraftError::Options(problem) => Failure::usage(problem),
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
    tell(&text);
}

/// The path relative to a folder, both absolute. None: they share no folder but the root.
pub(super) fn relative(path: &Path, folder: &Path) -> Option<PathBuf> {
    let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_));
    let both = path.components().zip(folder.components());
    let common = both.take_while(|(one, other)| one == other).count();
    if !path.components().take(common).any(|part| is_name(&part)) {
        return None;
    }
    let up = folder.components().skip(common).map(|_| Component::ParentDir);
    Some(up.chain(path.components().skip(common)).collect())
}

/// Reads the file of a recorded load, relative to the current folder.
pub(super) fn read_load(name: &str) -> Result<String, Diagnostic> {
    files::read_long(Path::new(name)).map_err(Diagnostic::from)
}

/// The folder of a file, or the folder itself, if Kustomize builds it.
fn kustomized(path: &Path) -> Option<String> {
    const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
    let folder = match path.is_dir() {
        true => path,
        false => path.parent().filter(|_| path != Path::new("-"))?,
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let is_kustomized = NAMES.iter().any(|name| folder.join(name).is_file());
    is_kustomized.then(|| folder.display().to_string())
}

fn file(path: &Path, lenient: bool) -> Result<ManifestFile, Failure> {
    let name = path.display().to_string();
    if name.starts_with("https://") || name.starts_with("http://") {
        let what = format!("{name}: manifests are not read from URLs");
        let hint = format!("`curl -fsSL {name} | kube-lockstep predict -f - …`");
        return Err(Failure::usage(what).hint(hint));
    }
    let text = files::read(path).map_err(|error| Failure::unreadable(&name, &error))?;
    Ok(ManifestFile { name, text, lenient })
}

/// The files in a folder, as with kubectl: with the folders in it only if `recursive`.
fn folder(path: &Path, recursive: bool) -> Result<Vec<PathBuf>, Failure> {
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
    Ok(paths)
}

/// Returns true if a path is a file, or a folder with manifests.
pub(super) fn has_manifests(path: &Path, recursive: bool) -> bool {
    if !path.is_dir() {
        return path.exists();
    }
    let mut paths = Vec::new();
    let folders = list(path, &mut paths).unwrap_or_default();
    !paths.is_empty() || recursive && folders.iter().any(|folder| has_manifests(folder, true))
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
    let text = input_file::read_stdin().map_err(|error| {
        let failure = Failure::unreadable(STDIN, &error);
        match error {
            InputError::TooLarge { .. } => failure.hint(
                "pipe fewer manifests, for example those of one namespace: `kubectl get hpa,deploy \
                 -o yaml -n NAMESPACE | …`",
            ),
            _ => failure,
        }
    })?;
    if text.trim().is_empty() {
        let hint = "pipe manifests to it: `kubectl get hpa,deploy -o yaml | kube-lockstep predict \
                    -f - …`; if you do, check that the first command prints some";
        return Err(Failure::usage(format!("{STDIN}: it is empty")).hint(hint));
    }
    Ok(ManifestFile { name: STDIN.to_owned(), text, lenient: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_can_be_separated_by_commas() {
        let found = separate(Path::new("missing-a.yaml,missing-b.yaml"));
        assert_eq!(found, ["missing-a.yaml", "missing-b.yaml"].map(PathBuf::from));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a,b.yaml");
        fs::write(&path, "").expect("a file can be written");
        assert_eq!(separate(&path), [path]);
    }

    #[test]
    fn a_path_is_relative_to_a_folder_unless_they_share_none() {
        for (path, folder, expected) in [
            ("/home/a/load.csv", "/home/a", Some("load.csv")),
            ("/home/a/data/load.csv", "/home/a/tests", Some("../data/load.csv")),
            ("/home/load.csv", "/home/a/b", Some("../../load.csv")),
            ("/tmp/load.csv", "/home/a", None),
        ] {
            let found = relative(Path::new(path), Path::new(folder));
            assert_eq!(found.as_deref(), expected.map(Path::new), "{path} from {folder}");
        }
    }
}
