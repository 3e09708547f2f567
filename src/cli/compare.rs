//! `kube-lockstep compare`.

mod subjects;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use self::subjects::{Subject, Subjects, subjects};
use super::args::{self, Format, Source};
use super::exit;
use super::failure::Failure;
use super::manifests::{self, AutoscalerArgs, ManifestArgs, SkipArgs};
use super::measure::{MeasureArgs, note_on_cost};
use super::output::{columns, most_columns, show, tell, unless_closed};
use super::reports::ReportFile;
use super::setting::Setting;
use kube_autoscaler_models::rules::{
    AnyRelease, AnyReleases, Release, Releases, Rules, VpaRelease,
};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_report::comparison::{
    ComparisonRow, Reference, SettingName, columns_help, comparison, not_compared,
};
use kube_lockstep_report::figures::Figures;
use kube_lockstep_report::first_difference::FirstDifference;
use kube_lockstep_report::html::{Compared, Comparison};
use kube_lockstep_report::json;
use kube_lockstep_report::limits::{AppliedLimits, LimitsByLoad};
use kube_lockstep_report::outcome::{note_line, note_text};
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::load_factor::{LoadFactor, LoadFactors};
use kube_lockstep_scenario::{Scenario, SkipReason};
use kube_lockstep_sim::run::{FreeRun, free_run, free_run_by};

const HELP: &str = "\
Exit codes:
  0    the settings are compared
  2    an invalid command line, scenario or manifest, or a value that the prediction requires is
       missing
  3    a scenario can't be run to its end, because its outcome is not deterministic; the others are
       compared; or an output can't be written
  4    a folder or a glob contains no scenarios";

/// The help of an option that ends predictions of other commands earlier.
const UNTIL_HELP: &str = "\
The end of the prediction [default: the end of the recorded loads, or 10 minutes after the last \
change of another load of any setting if that is later]";

/// The name of the setting that the manifests or the scenario have.
const CURRENT: &str = "current";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\n{}\n\n{HELP}", columns_help(100), manifests::LOAD_HELP))]
#[command(mut_arg("until", |it| it.help(UNTIL_HELP)))]
#[command(group = clap::ArgGroup::new("what").required(true).args(["names", "filename"]))]
pub(super) struct Args {
    /// Scenarios: files, folders, globs, or ids of fixtures
    #[arg(value_name = "FILE")]
    names: Vec<String>,
    /// Another setting: fields of the HPA or VPA as PATH=VALUE, separated by commas, optionally
    /// after a name and a colon. For example
    /// fast:spec.behavior.scaleDown.stabilizationWindowSeconds=60,spec.maxReplicas=20. If several
    /// autoscalers are predicted together, the path begins with the name of one
    /// (web/spec.maxReplicas=20) or its kind (vpa/spec.updatePolicy.updateMode=Initial). Flags of
    /// the VPA's recommender and updater: recommender.flags.target-cpu-percentile=0.95,
    /// updater.flags.min-replicas=1. Values are YAML:
    /// spec.behavior.scaleUp.policies=[{type: Pods, value: 4, periodSeconds: 60}]
    #[arg(long, value_name = "[NAME:]PATH=VALUE,…")]
    set: Vec<Setting>,
    /// Another setting: the HPAs in this file, each in place of the one with its name and namespace
    #[arg(long, value_name = "[NAME:]FILE", value_parser = Setting::parse_manifest)]
    manifest: Vec<Setting>,
    /// Repeat each prediction with different noise of the loads, and show the mean, minimum and
    /// maximum of each figure. The first run uses the seeds of the loads, the second run the next
    /// seeds, and so on
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Predict each setting with its load multiplied by these factors, and show at which factors
    /// each limit applies: 1,2,4 or 0.5..4:0.5; for one metric, cpu=1,1.5,2. With factors other
    /// than 1, values are rounded
    #[arg(long, value_name = "[METRIC=]FACTORS")]
    load_factors: Option<LoadFactors>,
    #[command(flatten)]
    measure: MeasureArgs,
    /// The releases: of Kubernetes (`1.37`, `1.30,1.35-1.37`); for a VPA without an HPA, of the VPA
    /// (`vpa-1.8`, `vpa-1.6-1.8`); or `all` [default: the newest]
    #[arg(long, value_name = "RELEASES", value_parser = args::any_releases)]
    release: Option<AnyReleases>,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Also write the comparison as a page: the figures, the replicas of all settings in one chart,
    /// and the timeline of each setting
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    autoscalers: AutoscalerArgs,
    #[command(flatten)]
    skip: SkipArgs,
    #[command(flatten)]
    manifests: ManifestArgs,
}

impl Args {
    /// The releases on which a scenario is predicted: of the VPA if there is no HPA.
    fn releases(&self, scenario: &Scenario) -> Vec<AnyRelease> {
        let of = |kind: fn(&AnyReleases) -> Vec<AnyRelease>, newest: AnyRelease| {
            let named = self.release.as_ref().map(kind).unwrap_or_default();
            if named.is_empty() { vec![newest] } else { named }
        };
        match scenario.hpas.is_empty() {
            true => of(
                |it| it.vpa.iter().copied().map(AnyRelease::Vpa).collect(),
                AnyRelease::Vpa(VpaRelease::NEWEST),
            ),
            false => of(
                |it| {
                    it.kubernetes
                        .iter()
                        .flat_map(Releases::iter)
                        .map(AnyRelease::Kubernetes)
                        .collect()
                },
                AnyRelease::Kubernetes(Release::NEWEST),
            ),
        }
    }

    /// The number of predictions without repetitions.
    fn count(&self, subjects: &[Subject<'_>]) -> usize {
        let of_subject =
            |it: &Subject<'_>| (1 + it.settings.len()) * self.releases(&it.scenario).len();
        let factors = self.load_factors.as_ref().map_or(1, |it| it.factors.len());
        subjects.iter().map(of_subject).sum::<usize>() * factors
    }
}

/// The scenario on a release of the VPA or of Kubernetes, and the release of Kubernetes.
fn on_release(scenario: &Arc<Scenario>, release: AnyRelease) -> (Arc<Scenario>, Release) {
    match release {
        AnyRelease::Kubernetes(release) => (scenario.clone(), release),
        AnyRelease::Vpa(release) => (Arc::new(scenario.with_vpa_release(release)), Release::NEWEST),
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let settings: Vec<&Setting> = args.set.iter().chain(&args.manifest).collect();
    let Subjects { list: subjects, notes, left_out } = subjects(args, &settings)?;
    if let Some(named) = &args.release {
        let scenarios: Vec<_> = subjects.iter().map(|it| it.scenario.clone()).collect();
        args::check_releases(named, &scenarios)?;
    }
    let several = subjects.len() > 1;
    let file = args.html.as_deref().map(|path| ReportFile::open("--html", path)).transpose()?;
    let mut predictions = Predictions {
        page: file.is_some().then(|| Comparison::new(args.count(&subjects))),
        ..Predictions::default()
    };
    if let Some(page) = &mut predictions.page {
        left_out.into_iter().for_each(|note| page.note(note));
    }
    notes.iter().for_each(|note| predictions.add_note(note));
    for Subject { scenario, settings: others } in &subjects {
        let name = |setting: &str| SettingName {
            scenario: several.then(|| scenario.id.clone()),
            setting: (!several || !settings.is_empty()).then(|| setting.to_owned()),
            load_factor: None,
        };
        predictions.add_loads(&name(CURRENT), &scenario.path, scenario, args)?;
        for (setting, scenario) in others {
            predictions.add_loads(&name(&setting.name), &setting.about, scenario, args)?;
        }
    }
    let Predictions { rows, page, limits, notes, is_undetermined, capacities_used, .. } =
        predictions;
    args.measure.check_used(&capacities_used)?;
    if rows.iter().all(|row| row.figures.is_none()) {
        let why = not_compared(&rows).collect::<Vec<_>>().join("\n");
        return Err(match is_undetermined {
            true => Failure::engine(why),
            false => Failure::usage(why).hint("choose another release with --release"),
        }
        .into());
    }
    if let (Some(mut file), Some(mut page)) = (file, page) {
        page.add_limits(&limits);
        file.write_all(page.page(&rows).as_bytes())?;
    }
    match args.format {
        Format::Text => show(&comparison(&rows, &limits, columns(), most_columns()))?,
        Format::Json => {
            let mut out = io::stdout();
            for row in &rows {
                unless_closed(json::line(&mut out, row))?;
            }
            for limits in &limits {
                unless_closed(json::line(&mut out, limits))?;
            }
        }
    }
    tell(&notes.into_values().collect::<String>());
    Ok(if is_undetermined { exit::ENGINE } else { exit::CONFORMS })
}

/// The scenario with the noise of a repeated run, which is counted from 0.
fn with_noise_of_run(
    scenario: &Arc<Scenario>,
    name: &SettingName,
    run: u32,
) -> Result<Arc<Scenario>, Failure> {
    if run == 0 {
        return Ok(scenario.clone());
    }
    let varied = scenario::with_noise_of_run(scenario, run);
    varied.map(Arc::new).ok_or_else(|| without_noise(name))
}

/// The error of repeated runs without noise.
pub(super) fn without_noise(name: impl Display) -> Failure {
    let what = format!("{name}: no load has noise, so all runs are the same");
    Failure::usage(what).hint("add noise, for example --load 'cpu=total:noise(10%,8)'")
}

/// The predictions of all settings.
#[derive(Default)]
struct Predictions {
    rows: Vec<ComparisonRow>,
    /// The page to write, if any.
    page: Option<Comparison>,
    /// The limits by load factor, if there are any.
    limits: Vec<LimitsByLoad>,
    /// The limits that apply in the predictions of a setting.
    applied: Vec<Applied>,
    /// The targets that all settings of a workload are measured against: those of the first one.
    references: Vec<(Workload, Reference)>,
    /// The metrics whose capacities are used.
    capacities_used: BTreeSet<String>,
    /// The notes on the scenarios, each text once.
    notes: BTreeMap<String, String>,
    /// True if a scenario can't be run to its end.
    is_undetermined: bool,
}

/// The limits that apply in the first run of a setting, at a load factor on a release.
struct Applied {
    release: AnyRelease,
    factor: LoadFactor,
    limits: AppliedLimits,
}

/// The first run of a setting on the previous release.
struct Before {
    release: Release,
    run: FreeRun,
}

impl Before {
    /// The first difference of a run on the next release, whose number counts from 0. Only the
    /// first run is kept in memory: the others are predicted again.
    fn difference(
        &self,
        scenario: &Arc<Scenario>,
        number: u32,
        run: &FreeRun,
        release: Release,
    ) -> Option<FirstDifference> {
        let again = (number > 0).then(|| free_run(scenario, self.release));
        let before = again.as_ref().unwrap_or(&self.run);
        let difference = FirstDifference::between(scenario, before, run)?;
        let first_reconcile = Rules::of(self.release).queue.first_reconcile;
        let mut rules = Rules::of(release);
        if rules.queue.first_reconcile == first_reconcile {
            return Some(difference);
        }
        rules.queue.first_reconcile = first_reconcile;
        let aligned = free_run_by(scenario, rules, &release.to_string());
        Some(match aligned.undetermined {
            Some(_) => difference,
            None => {
                let remaining = FirstDifference::between(scenario, before, &aligned);
                difference.with_remaining(remaining)
            }
        })
    }
}

/// The times of the reconciles on a release.
#[derive(Clone, Copy, Debug)]
struct Reconciles {
    release: Release,
    /// The first one.
    first: Time,
    /// The interval of the first two.
    interval: Option<Span>,
}

impl Reconciles {
    fn new(release: Release, run: &FreeRun) -> Option<Reconciles> {
        let mut times = run.ticks.iter().map(|tick| tick.observation.at);
        let first = times.next()?;
        let interval = times.find(|at| *at > first).map(|next| next - first);
        Some(Reconciles { release, first, interval })
    }
}

/// A note on releases whose reconciles are at different times.
fn note_on_reconciles(reconciles: &[Reconciles]) -> Option<String> {
    let times = |it: &Reconciles| (it.first, it.interval);
    let same: Vec<&[Reconciles]> =
        reconciles.chunk_by(|one, other| times(one) == times(other)).collect();
    if same.len() < 2 {
        return None;
    }
    let releases = |same: &[Reconciles]| match same {
        [only] => only.release.to_string(),
        [first, .., last] => format!("{} to {}", first.release, last.release),
        [] => String::new(),
    };
    let interval = same[0][0].interval;
    if same.iter().all(|it| it[0].interval == interval) {
        let parts = same.iter().map(|it| format!("at {} on {}", it[0].first, releases(it)));
        return Some(format!(
            "the first reconcile is {}; all later ones follow at the same interval, so that \
             figures differ a little between these releases even if nothing else does",
            listed(parts.collect())
        ));
    }
    let parts = same.iter().map(|it| {
        let every = it[0].interval.map(|every| format!(" and then every {every}"));
        format!("at {}{} on {}", it[0].first, every.unwrap_or_default(), releases(it))
    });
    Some(format!(
        "the controller reconciles {}, so that figures differ between these releases even if \
         nothing else does; first differences compare reconciles at the same time",
        listed(parts.collect())
    ))
}

/// `a, b, and c`.
fn listed(mut parts: Vec<String>) -> String {
    let last = parts.pop().unwrap_or_default();
    match parts.is_empty() {
        true => last,
        false => format!("{}, and {last}", parts.join(", ")),
    }
}

/// A note on metrics of a setting that the first row has no target for.
fn note_on_metrics(setting: &SettingName, lacking: &[Arc<str>]) -> Option<String> {
    (!lacking.is_empty()).then(|| {
        format!(
            "{setting}: the first row has no comparable target for {}, so `missing`, `above`, \
             `longest`, `excess` and `needed` are measured against the target of this setting",
            lacking.join(", ")
        )
    })
}

/// The namespace, kind and name of the target of a scenario.
type Workload = [String; 3];

/// The scenario with a multiple of its load.
fn with_load_factor(
    scenario: &Scenario,
    factor: LoadFactor,
    metric: Option<&str>,
) -> Result<Arc<Scenario>, Failure> {
    scenario::load_factor::with_load_factor(scenario, factor, metric).map(Arc::new).ok_or_else(
        || {
            let what = match metric {
                Some(metric) => format!("--load-factors: the metric `{metric}` has no load"),
                None => "--load-factors: no metric has a load".to_owned(),
            };
            Failure::usage(format!("{}: {what}", scenario.path))
        },
    )
}

impl Predictions {
    /// Adds a scenario, for each load factor.
    fn add_loads(
        &mut self,
        setting: &SettingName,
        about: &str,
        scenario: &Arc<Scenario>,
        args: &Args,
    ) -> anyhow::Result<()> {
        let Some(LoadFactors { metric, factors }) = &args.load_factors else {
            return self.add(setting, about, scenario, args);
        };
        let multiplied = |factor| with_load_factor(scenario, factor, metric.as_deref());
        self.applied.clear();
        for factor in factors {
            let setting = SettingName { load_factor: Some(*factor), ..setting.clone() };
            self.add(&setting, about, &multiplied(*factor)?, args)?;
        }
        for named in args.releases(scenario) {
            let applied = self.applied.iter().filter(|applied| applied.release == named);
            let known: Vec<_> = applied.map(|it| (it.factor, it.limits)).collect();
            // A VPA has no limits of replicas.
            if known.len() == factors.len() && !scenario.hpas.is_empty() {
                let at = |factor| {
                    let (scenario, release) = on_release(&multiplied(factor).ok()?, named);
                    let run = free_run(&scenario, release);
                    run.undetermined.is_none().then(|| AppliedLimits::new(&run))
                };
                let (setting, release) = (setting.clone(), named.to_string());
                self.limits.push(LimitsByLoad::new(setting, release, known, at));
            }
        }
        Ok(())
    }

    /// The prediction of a scenario, or the reason why it can't be compared.
    fn predicted(
        &mut self,
        scenario: &Arc<Scenario>,
        release: Release,
    ) -> Result<FreeRun, SkipReason> {
        let unsupported = scenario.vpa.as_ref().and_then(|vpa| vpa.unsupported());
        if let Some(why) = scenario.unsupported_on(release).or(unsupported) {
            return Err(why);
        }
        let run = free_run(scenario, release);
        if let Some(why) = run.refused() {
            return Err(why.into());
        }
        match run.undetermined {
            None => Ok(run),
            Some(random) => {
                self.is_undetermined = true;
                Err(random.why.into())
            }
        }
    }

    /// Adds a scenario: one row for each release and run.
    fn add(
        &mut self,
        setting: &SettingName,
        about: &str,
        scenario: &Arc<Scenario>,
        args: &Args,
    ) -> anyhow::Result<()> {
        let mut reconciles = Vec::new();
        let mut before: Option<Before> = None;
        for named in args.releases(scenario) {
            let (scenario, release) = on_release(scenario, named);
            let mut here = None;
            for number in 0..args.runs {
                let scenario = with_noise_of_run(&scenario, setting, number)?;
                let row = ComparisonRow {
                    setting: setting.clone(),
                    namespace: scenario.namespace.to_string(),
                    hpa: scenario.hpas.first().map(|hpa| hpa.name.to_string()),
                    vpa: scenario.vpa_name().map(ToString::to_string),
                    release: named.to_string(),
                    run: (args.runs > 1).then_some(number + 1),
                    figures: None,
                    first_difference: None,
                    not_compared: None,
                };
                let run = match self.predicted(&scenario, release) {
                    Ok(run) => run,
                    Err(why) => {
                        self.rows.push(ComparisonRow { not_compared: Some(why), ..row });
                        break;
                    }
                };
                if let Some(page) = self.page.as_mut().filter(|_| number == 0) {
                    page.add(Compared { setting, about, scenario: &scenario, run: &run });
                }
                if number == 0 {
                    reconciles.extend(Reconciles::new(release, &run));
                    self.applied.extend(setting.load_factor.map(|factor| Applied {
                        release: named,
                        factor,
                        limits: AppliedLimits::new(&run),
                    }));
                }
                self.note(&scenario, &run);
                let reference = self.reference(&scenario, &run, &args.measure)?;
                let mut figures = Figures::new(&scenario, &run, reference);
                let lacking = reference.lacks(&run);
                args.measure.check_price(&scenario)?;
                if let Some(price) = args.measure.price {
                    figures = figures.at_price(&price, &scenario.workload.spec);
                }
                let note = note_on_cost(&figures).map(|note| format!("{setting}: {note}"));
                note.iter().for_each(|note| self.add_note(note));
                note_on_metrics(setting, &lacking).iter().for_each(|note| self.add_note(note));
                let before = before.as_ref();
                let first_difference =
                    before.and_then(|before| before.difference(&scenario, number, &run, release));
                if number == 0 {
                    here = Some(Before { release, run });
                }
                self.rows.push(ComparisonRow { figures: Some(figures), first_difference, ..row });
            }
            before = here.or(before);
        }
        note_on_reconciles(&reconciles).iter().for_each(|note| self.add_note(note));
        Ok(())
    }

    fn add_note(&mut self, note: &str) {
        self.notes.insert(note.to_owned(), note_text(note, columns()));
    }

    /// The targets or capacities that a scenario is measured against.
    fn reference(
        &mut self,
        scenario: &Scenario,
        run: &FreeRun,
        measure: &MeasureArgs,
    ) -> Result<&Reference, Failure> {
        let target = scenario.targets().next();
        let [kind, name] =
            target.map(|it| [it.kind.to_string(), it.name.to_string()]).unwrap_or_default();
        let workload = [scenario.namespace.to_string(), kind, name];
        let known = self.references.iter().position(|(other, _)| *other == workload);
        let index = known.unwrap_or(self.references.len());
        if known.is_none() {
            let mut reference = Reference::new(run);
            self.capacities_used.extend(measure.apply(&mut reference)?);
            self.references.push((workload, reference));
        }
        Ok(&self.references[index].1)
    }

    fn note(&mut self, scenario: &Scenario, run: &FreeRun) {
        for note in &run.notes {
            let line = || note_line(&scenario.path, note, columns());
            self.notes.entry(note.what.clone()).or_insert_with(line);
        }
    }
}
