//! `kube-lockstep upgrade`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::args::{BuildArgs, WithMarkdown as Output, release, workers};
use super::confirmation::{Confirmed, UpstreamController, Wording};
use super::diff::in_order;
use super::exit;
use super::failure::Failure;
use super::feature_gates;
use super::fixtures::AnyFixture;
use super::interrupt;
use super::manifests::{self, HpaArgs, ManifestArgs};
use super::output::{columns, show, tell, unless_closed};
use super::reports::ReportFile;
use kube_autoscaler_models::flags::{ClusterGates, GateSetting};
use kube_autoscaler_models::rules::{Release, Rules};
use kube_lockstep_manifests::{Draft, Valid};
use kube_lockstep_report::change::Between;
use kube_lockstep_report::html::{self, ScenarioChange};
use kube_lockstep_report::terminal::CountBar;
use kube_lockstep_scenario::{Scenario, tree_to_yaml};
use kube_lockstep_sim::run::Verdict;
use kube_lockstep_upgrade::{
    Confirmation, Effect, Findings, Format, Group, Notes, Report, Searched, Subject, Upgrade,
};

const HELP: &str = "\
Exit codes:
    0    the search finds no HPA with other replicas, apart from the time of the first reconcile;
       HPAs that both releases reject do not count
  1    an HPA can have other replicas, one release rejects it or no longer serves the API version of
       its manifest, or upstream's controllers do not confirm an example
  2    an invalid command line, or no valid HPA
  3    an output can't be written
  130  interrupted (Ctrl-C); the result is that of the HPAs so far";

const UNTIL: &str = "\
    The end of the load of --load [default: that of a recorded load; otherwise 10 minutes after \
    the last change of the load]. Generated loads have their own ends";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\n{HELP}", manifests::LOAD_HELP))]
#[command(mut_arg("filename", |it| it.required(true)))]
#[command(mut_arg("until", |it| it.requires("load").help(UNTIL)))]
pub(super) struct Args {
    /// The release before the upgrade
    #[arg(long, value_name = "RELEASE", value_parser = release)]
    from: Release,
    /// The release after the upgrade
    #[arg(long, value_name = "RELEASE", default_value_t = Release::NEWEST, value_parser = release)]
    to: Release,
    #[command(flatten)]
    gates: GateArgs,
    /// The number of ticks to predict for each HPA on generated loads, on both releases and after
    /// each change between them together [default: 1000000, but fewer if there are more
    /// than ten HPAs: 10000000 in all, and at least 40000 each]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    ticks: Option<u64>,
    /// The seed of the generated loads
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// How many HPAs to search in parallel [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Output,
    /// Also write a page with the timelines of the examples on both releases
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write the scenario of each example to this folder, for `predict` and `explain`
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Do not run the examples on the upstream controllers
    #[arg(long)]
    no_confirm: bool,
    #[command(flatten)]
    build: BuildArgs,
    #[command(flatten)]
    hpas: HpaArgs,
    #[command(flatten)]
    manifests: ManifestArgs,
}

/// The feature gates of the control planes before and after the upgrade.
#[derive(clap::Args, Debug)]
struct GateArgs {
    /// Feature gates to set before and after the upgrade: GATE=true or GATE=false, or for one
    /// component kube-apiserver:GATE=true or kube-controller-manager:GATE=true
    #[arg(long, value_name = "GATES", value_delimiter = ',')]
    #[arg(value_parser = feature_gates::setting)]
    feature_gates: Vec<GateSetting>,
    /// Feature gates to set before the upgrade; they override --feature-gates
    #[arg(long, value_name = "GATES", value_delimiter = ',')]
    #[arg(value_parser = feature_gates::setting)]
    from_feature_gates: Vec<GateSetting>,
    /// Feature gates to set after the upgrade; they override --feature-gates
    #[arg(long, value_name = "GATES", value_delimiter = ',')]
    #[arg(value_parser = feature_gates::setting)]
    to_feature_gates: Vec<GateSetting>,
}

impl GateArgs {
    /// The settings of both control planes, and notes on those that only one release accepts.
    fn settings(
        &self,
        from: Release,
        to: Release,
    ) -> Result<([Vec<GateSetting>; 2], Vec<String>), Failure> {
        let error = |release: Release, setting: &GateSetting| {
            ClusterGates::from(Rules::of(release).default_gates()).set(setting).err()
        };
        let mut notes = Vec::new();
        for setting in &self.feature_gates {
            let GateSetting { name, on, .. } = setting;
            match [error(from, setting), error(to, setting)] {
                [None, None] => {}
                [Some(_), Some(error)] => {
                    return Err(feature_gates::failure("--feature-gates", to, &error));
                }
                [Some(_), None] => {
                    notes.push(format!(
                        "{name}={on} applies only to {to}: {from} does not accept it"
                    ));
                }
                [None, Some(error)] => notes.push(format!(
                    "the components of {to} do not start with {name}={on} ({error}): the search \
                     assumes that you remove this setting before the upgrade"
                )),
            }
        }
        let own = [
            ("--from-feature-gates", from, &self.from_feature_gates),
            ("--to-feature-gates", to, &self.to_feature_gates),
        ];
        for (option, release, settings) in own {
            if let Some(error) = settings.iter().find_map(|setting| error(release, setting)) {
                return Err(feature_gates::failure(option, release, &error));
            }
        }
        let all = own.map(|(_, _, settings)| [&self.feature_gates[..], settings].concat());
        Ok((all, notes))
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let ([from_gates, to_gates], general) = args.gates.settings(args.from, args.to)?;
    if args.from != args.to || from_gates == to_gates {
        let hint = "to compare a release with itself, set other feature gates with \
                    --to-feature-gates";
        let same = (args.from == args.to).then(|| hint.into());
        in_order(args.from, args.to).map_err(|failure| failure.with_hint(same))?;
    }
    let page = args.html.as_deref().map(|path| ReportFile::open("--html", path)).transpose()?;
    let Valid { valid: (mut drafts, manifests), problems } =
        args.manifests.valid_with_examples(args.hpas.select())?;
    let mut invalid: Vec<String> = problems.iter().map(|it| it.located("")).collect();
    let scenarios = valid_scenarios(&mut drafts, &mut invalid)?;
    let stop = CancellationToken::new();
    let message = "interrupted: printing the result of the HPAs so far; interrupt again to stop at \
                   once";
    let ending = interrupt::Ending::listen(&stop, message)?;
    let count = drafts.len() as u64;
    let ticks = args.ticks.unwrap_or((10_000_000 / count.max(1)).clamp(40_000, 1_000_000));
    let upgrade =
        Upgrade { from: args.from, to: args.to, from_gates, to_gates, ticks, seed: args.seed };
    let [before, after] = upgrade.control_planes();
    if before == after {
        let what = "the feature gates before and after the upgrade are the same";
        return Err(Failure::usage(what).into());
    }
    let findings = Findings::new(&manifests, &upgrade);
    let notes = drafts.iter().zip(&scenarios);
    let notes =
        notes.map(|(draft, it)| Notes::new(draft.hpas(), it, &findings, &upgrade)).collect();
    let subjects = args.search(&upgrade, &drafts, &scenarios, notes, &stop);
    let mut groups = Group::all(&upgrade, &subjects);
    for group in &mut groups {
        group.example = upgrade.example(&scenarios[group.example_of], &group.difference);
    }
    let is_confirmed = args.confirm(&upgrade, &mut groups, &stop);
    let report = Report {
        upgrade: &upgrade,
        subjects: &subjects,
        groups: &groups,
        general: &general,
        invalid: &invalid,
    };
    match args.format {
        Output::Text => show(&report.document(Format::Text(columns())))?,
        Output::Markdown => show(&report.document(Format::Markdown))?,
        Output::Json => unless_closed(report.write_json(&mut io::stdout()))?,
    }
    if let Some(mut page) = page {
        page.write_all(html_page(&report).as_bytes())?;
    }
    if let Some(folder) = &args.save {
        save(folder, &report)?;
    }
    ending.end_by_signal();
    let differs = |it: &Subject| it.effect() == Some(Effect::Replicas);
    let must_change = |it: &Subject| differs(it) || it.must_be_rewritten;
    let is_same = !subjects.iter().any(must_change) && is_confirmed;
    Ok(if is_same { exit::CONFORMS } else { exit::DIVERGES })
}

/// The scenarios of the drafts. Removes drafts that give no valid scenario, and adds the reasons.
fn valid_scenarios(
    drafts: &mut Vec<Draft>,
    invalid: &mut Vec<String>,
) -> Result<Vec<Arc<Scenario>>, Failure> {
    let (mut scenarios, mut failed) = (Vec::new(), None);
    drafts.retain(|draft| match scenario_of(draft) {
        Ok(scenario) => {
            scenarios.push(scenario);
            true
        }
        Err(failure) => {
            invalid.push(failure.problem.in_one_line("; "));
            failed.get_or_insert(failure);
            false
        }
    });
    failed.filter(|_| scenarios.is_empty()).map_or(Ok(scenarios), Err)
}

/// The scenario of a draft. Examples stand for values that are missing.
fn scenario_of(draft: &Draft) -> Result<Arc<Scenario>, Failure> {
    match manifests::parse(draft)? {
        AnyFixture::Hpa(scenario) => Ok(scenario),
        AnyFixture::Vpa(_) => Err(Failure::usage(format!("{}: VPAs are not compared", draft.name))),
    }
}

impl Args {
    fn search(
        &self,
        upgrade: &Upgrade,
        drafts: &[Draft],
        scenarios: &[Arc<Scenario>],
        notes: Vec<Notes>,
        stop: &CancellationToken,
    ) -> Vec<Subject> {
        let searched: Vec<usize> =
            (0..drafts.len()).filter(|index| notes[*index].can_be_searched()).collect();
        let to_search: Vec<(Arc<Scenario>, bool)> = searched
            .iter()
            .map(|index| (scenarios[*index].clone(), drafts[*index].missing.is_empty()))
            .collect();
        let is_shown = io::stderr().is_terminal();
        let bar = is_shown.then(|| CountBar::new(to_search.len(), "HPAs"));
        let results = upgrade.search_all(
            &to_search,
            workers(self.jobs),
            &mut |progress| {
                bar.iter().for_each(|bar| bar.set(progress.done));
                !stop.is_cancelled()
            },
            &|| stop.is_cancelled(),
        );
        let mut results: BTreeMap<usize, Searched> = searched
            .into_iter()
            .zip(results)
            .filter_map(|(index, result)| Some((index, result?)))
            .collect();
        let subject = |(index, (draft, notes)): (usize, (&Draft, Notes))| Subject {
            names: draft.names(),
            file: draft.file.clone(),
            line: draft.line,
            known: notes.effect(),
            must_be_rewritten: notes.must_be_rewritten(),
            notes: notes.all(),
            searched: results.remove(&index),
        };
        drafts.iter().zip(notes).enumerate().map(subject).collect()
    }

    /// Runs the examples on the upstream controllers of both releases. Returns false if one of them
    /// differs from the model.
    fn confirm(&self, upgrade: &Upgrade, groups: &mut [Group], stop: &CancellationToken) -> bool {
        if self.no_confirm || groups.is_empty() {
            return true;
        }
        let prepare = |release| {
            let controller = UpstreamController::prepare(release, &self.build, stop)?;
            Ok((release, controller))
        };
        let releases = [self.from, self.to].into_iter();
        let upstream = match releases.map(prepare).collect::<Result<Vec<_>, String>>() {
            Ok(upstream) => upstream,
            Err(why) => {
                let text = format!("Not confirmed by upstream controllers: {why}");
                let confirmation = Confirmation { is_confirmed: false, text };
                groups.iter_mut().for_each(|it| it.confirmed = Some(confirmation.clone()));
                return true;
            }
        };
        let mut is_confirmed = true;
        for group in groups {
            let Some(example) = &group.example else { continue };
            if stop.is_cancelled() {
                break;
            }
            let sides = upgrade.sides(&example.scenario);
            let differing =
                upstream.iter().zip(&sides).find_map(|((release, controller), side)| {
                    let (why, differs) =
                        why_not_confirmed(controller, side.as_ref().map_err(|why| *why))?;
                    Some((*release, why, differs))
                });
            is_confirmed &= !matches!(differing, Some((_, _, true)));
            let text = match &differing {
                None => format!(
                    "Confirmed: the upstream controllers of {} and {} do what the model predicts.",
                    self.from, self.to
                ),
                Some((release, why, _)) => {
                    format!("Not confirmed by the upstream controller of {release}: {why}")
                }
            };
            group.confirmed = Some(Confirmation { is_confirmed: differing.is_none(), text });
        }
        is_confirmed
    }
}

/// Why an example is not confirmed, and true if the controller differs from the model. None: it is
/// confirmed.
fn why_not_confirmed(
    controller: &UpstreamController,
    scenario: Result<&Arc<Scenario>, &'static str>,
) -> Option<(String, bool)> {
    let scenario = match scenario {
        Ok(scenario) => scenario,
        Err(why) => return Some((why.to_owned(), false)),
    };
    match controller.confirm(scenario, &Verdict::Conforms, Wording::default()) {
        Confirmed::Yes(_) | Confirmed::NotRun => None,
        Confirmed::Unavailable(why) => Some((why, false)),
        Confirmed::No(_) => Some(("it differs from the model".to_owned(), true)),
    }
}

/// The page with the examples.
fn html_page(report: &Report<'_>) -> String {
    let between = Between { from: report.upgrade.from, to: report.upgrade.to };
    let examples = report.groups.iter().filter_map(|it| Some((it.example.as_ref()?, &it.reason)));
    let examples: Vec<_> = examples.collect();
    let drawn = examples.iter().map(|(example, reason)| {
        let planes = report.upgrade.control_planes();
        let sides = [(between.from, planes[0]), (between.to, planes[1])];
        let runs = sides.map(|(release, plane)| {
            plane.run(&example.scenario, Some(&planes[0]), &release.to_string())
        });
        let change = ScenarioChange::of_runs(&example.scenario, between, &example.changed, runs);
        change.because(&reason.since.to_string(), &reason.what, reason.link)
    });
    let same = report.subjects.iter().filter(|it| it.searched.is_some() && it.effect().is_none());
    let refused = report.subjects.iter().filter(|it| it.searched.is_none());
    let skipped: Vec<(String, String)> =
        refused.map(|it| (it.names.join(", "), it.notes.join("; "))).collect();
    html::changes(between, drawn, same.count(), &skipped, Some(&report.overview()))
}

/// Writes the scenarios of the examples to a folder.
fn save(folder: &Path, report: &Report<'_>) -> Result<(), Failure> {
    let failed = |path: &Path, error: io::Error| {
        Failure::engine(format!("--save: {} can't be written: {error}", path.display()))
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for group in report.groups {
        for (name, tree) in group.example.iter().flat_map(|it| report.upgrade.files(it)) {
            let path = folder.join(format!("{name}.yaml"));
            fs::write(&path, tree_to_yaml(&tree)).map_err(|error| failed(&path, error))?;
            tell(&format!("note: {} shows: {}\n", path.display(), group.reason.what));
        }
    }
    Ok(())
}
