//! The recommender of the Vertical Pod Autoscaler: the model against the real recommender in virtual
//! time, run by run, for fixtures and for scenarios that are generated from a seed.
//!
//! Requires Go; without it, the tests on the real recommender are ignored. The environment variables
//! KUBE_LOCKSTEP_VPA_RUNS and KUBE_LOCKSTEP_VPA_SEED set the number of runs per release and the
//! seed.

use crate::support;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::support::recording::{self, Mode};
use crate::support::trace_file;
use crate::support::trials::{self, Suite};
use kube_autoscaler_models::rules::{OldestOom, VpaRelease, VpaRules};
use kube_autoscaler_models::vpa::{Script, Session, Start, Stepped, Write};
use kube_lockstep_engines::recorded::{FOLDER, RecordedRecommender, Traces};
use kube_lockstep_engines::upstream::build;
use kube_lockstep_engines::upstream::build::Artifact;
use kube_lockstep_engines::upstream::recommender;
use kube_lockstep_engines::upstream::recommender::{RecommenderHost, UpstreamRecommender};
use kube_lockstep_fuzz::CoverageGroup;
use kube_lockstep_fuzz::fuzzing::{
    Failure, Finding, FuzzEvent, FuzzPlan, FuzzSummary, NewEngine, RunLimit, fuzz,
};
use kube_lockstep_fuzz::recommender::scenario as generated;
use kube_lockstep_scenario::resolved::Action;
use kube_lockstep_scenario::tree_to_yaml;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_sim::compare::recommender::{logs, runs};
use kube_lockstep_sim::engine::model_recommender::ModelRecommender;
use kube_lockstep_sim::engine::{Engine, EngineError, RecommenderOpening, Vpa};
use kube_lockstep_sim::run::recommender::predicted;
use kube_lockstep_sim::run::recommender_lockstep::run_recommender;
use kube_lockstep_sim::run::{Outcome, Verdict};
use kube_lockstep_sim::trace::header::Build;
use kube_lockstep_sim::trace::recommender::Entry;
use kube_lockstep_sim::world::recommender::script;
use libtest_mimic::Failed;
use tokio_util::sync::CancellationToken;

/// The number of runs per release in a test without settings.
const RUNS: usize = 4_000;

/// Held while recorded traces are read and written.
static RECORDING: Mutex<()> = Mutex::new(());

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    suite.test("generated_scenarios_reach_every_item_of_the_coverage", scenarios_reach_everything);
    suite.test("a_wrong_half_life_is_found_and_shrunk", || {
        finds(|_, start| start.flags.cpu_histogram_decay_half_life.0 += 3_600_000_000_000)
    });
    suite.test("a_wrong_percentile_is_found_and_shrunk", || {
        finds(|_, start| start.flags.target_memory_percentile -= 0.3)
    });
    suite.test("a_wrong_oom_bump_is_found_and_shrunk", || {
        finds(|_, start| start.flags.oom_min_bump_up_bytes += 1e8)
    });
    suite.test("a_panic_of_the_model_is_found_and_shrunk", panics_are_found);
    add_fixtures(suite);
    let named = trials::named_releases("KUBE_LOCKSTEP_RELEASES").map(|named| named.vpa);
    let is_named = named.is_some();
    for release in named.unwrap_or_else(live_releases) {
        if release < VpaRelease::NEWEST && !is_named {
            suite.ignore_by_default();
        }
        let program = suite
            .require(move || recommender::ensure(release, &CancellationToken::new(), &mut |_| {}));
        for path in support::vpa_fixtures() {
            let name = format!("live {} {release}", support::id_of(&path));
            suite.test_with(&program, name, move |program| live(&path, program, release));
        }
        let name = format!("{release}_agrees_with_the_model");
        suite.test_with(&program, name, move |program| agrees(&program, release));
        let name = format!("{release}_is_random_where_the_model_says_so");
        suite.test_with(&program, name, move |program| is_random(&program, release));
        let name = format!("{release}_rejects_the_rules_of_another_release");
        suite.test_with(&program, name, move |program| rejects_other_rules(&program, release));
    }
}

/// Every item of the coverage is reached within 40,000 ticks (about 120 scenarios), except for at
/// most three flags.
fn scenarios_reach_everything() -> Result<(), Failed> {
    let run = |release: VpaRelease| {
        let mut plan = FuzzPlan::<Vpa>::new(20, RunLimit::Ticks(40_000), release);
        plan.jobs = 2;
        plan.max_findings = 1;
        let engine = || Box::new(ModelRecommender::new("model", release)) as Box<dyn Engine<Vpa>>;
        let (summary, findings) = fuzzed(&plan, &engine);
        assert!(findings.is_empty() && summary.ticks >= 40_000, "{summary:?}");
        summary.coverage
    };
    let newest = run(VpaRelease::NEWEST);
    for CoverageGroup { group, reached, never } in &newest {
        let most = if group == "flags" { 3 } else { 0 };
        assert!(!reached.is_empty() && never.len() <= most, "{group}: {never:?}");
    }
    // The oldest release does not have all flags.
    let flags = |coverage: &[CoverageGroup]| {
        let group = coverage.iter().find(|group| group.group == "flags");
        group.map_or(0, |group| group.reached.len() + group.never.len())
    };
    assert!(flags(&run(VpaRelease::OLDEST)) < flags(&newest));
    Ok(())
}

/// The releases with tests on the real recommender, unless `KUBE_LOCKSTEP_RELEASES` names others:
/// the two newest and the oldest, because building a recommender takes minutes.
fn live_releases() -> Vec<VpaRelease> {
    VpaRelease::supported().rev().take(2).chain([VpaRelease::OLDEST]).collect()
}

/// The tests of fixtures against recorded traces.
fn add_fixtures(suite: &mut Suite) {
    for path in support::vpa_fixtures() {
        let name = format!("recorded {}", support::id_of(&path));
        suite.test(name, move || as_recorded(&path));
    }
    suite.test("each_recorded_trace_belongs_to_a_fixture", || {
        let ids: BTreeSet<String> =
            support::vpa_fixtures().iter().map(|path| support::id_of(path)).collect();
        let folder = support::repository().join(FOLDER);
        let mut folders = vec![folder.join("vpa")];
        while let Some(below) = folders.pop() {
            for entry in std::fs::read_dir(&below)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let below = path.strip_prefix(&folder)?.to_string_lossy().into_owned();
                let id =
                    below.strip_suffix(".trace").ok_or_else(|| format!("{below} is no trace"))?;
                assert!(ids.contains(id), "{below}: there is no such fixture");
                let recordings = Traces::Folder(folder.clone()).read(id)?;
                let is_as_written = fs::read_to_string(&path)? == trace_file::write(&recordings);
                assert!(is_as_written, "{below} was edited; run `cargo xtask record {id}`");
                for recording in &recordings {
                    recording.recommender_trace()?;
                }
            }
        }
        Ok(())
    });
}

/// A fixture conforms on each release on which its requirement holds.
fn as_recorded(path: &Path) -> Result<(), Failed> {
    let scenario = support::load_vpa(path);
    let traces = Traces::Folder(support::repository().join(FOLDER));
    for release in VpaRelease::supported() {
        conforms(&scenario, &mut RecordedRecommender::new(traces.clone(), release))?;
    }
    Ok(())
}

fn conforms(scenario: &Arc<VpaScenario>, engine: &mut dyn Engine<Vpa>) -> Result<Outcome, Failed> {
    let (known, release) = (support::known(), engine.release());
    let outcome = run_recommender(scenario, engine, &known);
    support::still_disagrees(&outcome, &known)?;
    match &outcome.verdict {
        Verdict::Conforms if outcome.ticks > 0 => Ok(outcome),
        Verdict::Skipped { .. } if scenario.unsupported_on(release).is_some() => Ok(outcome),
        verdict => Err(format!("{release}: {verdict:#?}\nunmet: {:#?}", outcome.unmet).into()),
    }
}

/// The real recommender is as predicted and as recorded, or is recorded.
fn live(path: &Path, program: PathBuf, release: VpaRelease) -> Result<(), Failed> {
    let scenario = support::load_vpa(path);
    let mut engine = UpstreamRecommender::new(program, release);
    let known = support::known();
    let outcome = run_recommender(&scenario, &mut engine, &known);
    if !matches!(outcome.verdict, Verdict::Inconclusive { .. }) {
        let version = build::version(Artifact::Recommender, release).ok_or("no such release")?;
        let build = Build {
            version: version.replacen('v', "vpa-", 1).parse()?,
            sources: build::sources_hash(Artifact::Recommender, release),
        };
        let trace = outcome.recommender().map(|run| &run.trace);
        let folder = support::repository().join(FOLDER);
        let entries = predicted(&scenario, VpaRules::of(release));
        let mut writes = entries.iter().flat_map(writes);
        // Another run has other bits, so a recorded trace stays as long as it conforms.
        let keeps = writes.any(is_random_in_its_bits)
            && (Mode::get() != Mode::Record || is_recorded(&scenario, release));
        let trace = trace.filter(|_| !keeps);
        if trace.is_none() && outcome.recommender().is_some() {
            return conforms(&scenario, &mut engine).map(drop);
        }
        // The releases of a fixture share files.
        let _guard = RECORDING.lock();
        recording::compare_recommender(&folder, &scenario, &build, trace, Mode::get())?;
    }
    conforms(&scenario, &mut engine).map(drop)
}

fn writes(entry: &Entry) -> impl Iterator<Item = &Write> {
    let run = if let Entry::Run(run) = entry { Some(run) } else { None };
    run.into_iter().flat_map(|run| &run.run.writes)
}

/// Returns true if the last bits of some weights depend on upstream's random order.
fn is_random_in_its_bits(write: &Write) -> bool {
    matches!(write, Write::Checkpoint { tolerances, .. } if tolerances.is_random())
}

/// Returns true if there is a recorded trace of the scenario, and it conforms.
fn is_recorded(scenario: &Arc<VpaScenario>, release: VpaRelease) -> bool {
    let traces = Traces::Folder(support::repository().join(FOLDER));
    conforms(scenario, &mut RecordedRecommender::new(traces, release)).is_ok()
}

/// The value of an environment variable.
fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|error| panic!("{name}: {error}")))
}

/// Runs the fuzzer, and collects what it finds.
fn fuzzed(
    plan: &FuzzPlan<Vpa>,
    engine: NewEngine<'_, Vpa>,
) -> (FuzzSummary, Vec<Finding<VpaScenario>>) {
    let mut found = Vec::new();
    let summary = fuzz(plan, engine, &mut |event| {
        if let FuzzEvent::Found(finding) = event {
            found.push(*finding);
        }
    });
    (summary, found)
}

/// A fault of the model is found by a fixture and by the fuzzer, which shrinks the scenario.
fn finds(fault: Fault) -> Result<(), Failed> {
    let mut faulty = FaultyEngine::new(fault);
    // Other tests show that the model without the fault agrees with the fixtures.
    let mut fixtures = support::vpa_fixtures().into_iter().map(|path| support::load_vpa(&path));
    let diverges = |scenario: &Arc<VpaScenario>, engine: &mut FaultyEngine| {
        matches!(run_recommender(scenario, engine, &[]).verdict, Verdict::Diverges(_))
    };
    assert!(fixtures.any(|scenario| diverges(&scenario, &mut faulty)), "no fixture finds it");
    let (summary, findings) = fuzzed_with(fault, 20_000);
    assert!(summary.divergences > 0 && summary.inconclusive == 0, "{summary:?}");
    let [finding] = findings.as_slice() else { return Err("nothing was found".into()) };
    let Failure::Outcome(outcome) = &finding.failure else { return Err("it panicked".into()) };
    let text = tree_to_yaml(&finding.tree);
    assert!(outcome.ticks <= 40, "{} runs:\n{text}", outcome.ticks);
    assert!(text.lines().count() <= 60, "{text}");
    let again = Arc::new(text.parse::<VpaScenario>()?);
    assert!(diverges(&again, &mut faulty), "the saved file does not fail:\n{text}");
    Ok(())
}

/// Changes the start of a scenario.
type Fault = fn(&VpaScenario, &mut Start);

/// The model of the newest release with a planted fault, as an engine.
struct FaultyEngine {
    model: ModelRecommender,
    fault: Fault,
}

impl FaultyEngine {
    fn new(fault: Fault) -> FaultyEngine {
        FaultyEngine { model: ModelRecommender::new("faulty", VpaRelease::NEWEST), fault }
    }
}

impl Engine<Vpa> for FaultyEngine {
    fn name(&self) -> &str {
        "faulty"
    }

    fn release(&self) -> VpaRelease {
        self.model.release()
    }

    fn open<'a>(
        &'a mut self,
        RecommenderOpening { scenario, start }: RecommenderOpening<'_>,
    ) -> Result<Box<dyn kube_lockstep_sim::engine::Session<Vpa> + 'a>, EngineError> {
        let mut start = start.clone();
        (self.fault)(scenario, &mut start);
        self.model.open(RecommenderOpening { scenario, start: &start })
    }
}

/// Runs the fuzzer on the model with a fault, until it has found one kind of failure.
fn fuzzed_with(fault: Fault, ticks: usize) -> (FuzzSummary, Vec<Finding<VpaScenario>>) {
    let mut plan = FuzzPlan::<Vpa>::new(1, RunLimit::Ticks(ticks), VpaRelease::NEWEST);
    plan.max_findings = 1;
    fuzzed(&plan, &|| Box::new(FaultyEngine::new(fault)) as Box<dyn Engine<Vpa>>)
}

fn panics_are_found() -> Result<(), Failed> {
    let fault: Fault = |scenario, _| {
        let mut actions = scenario.timeline.iter().map(|event| &event.action);
        if actions.any(|action| matches!(action, Action::RestartRecommender(_))) {
            // A panic without its message on standard error.
            std::panic::resume_unwind(Box::new("planted: a restart".to_owned()));
        }
    };
    let (summary, findings) = fuzzed_with(fault, 200_000);
    assert_eq!(summary.divergences, 1);
    let [finding] = findings.as_slice() else { return Err("nothing was found".into()) };
    let Failure::Panic(message) = &finding.failure else { return Err("it did not panic".into()) };
    assert_eq!(message, "planted: a restart");
    assert_eq!(finding.scenario.timeline.len(), 1, "{}", tree_to_yaml(&finding.tree));
    Ok(())
}

/// The model predicts every run of the real recommender.
fn agrees(program: &Path, release: VpaRelease) -> Result<(), Failed> {
    let runs = setting("KUBE_LOCKSTEP_VPA_RUNS").map_or(RUNS, |runs| runs as usize);
    let seed = setting("KUBE_LOCKSTEP_VPA_SEED").unwrap_or(1);
    let mut plan = FuzzPlan::<Vpa>::new(seed, RunLimit::Ticks(runs), release);
    plan.max_findings = 1;
    let new = || UpstreamRecommender::new(program.to_owned(), release);
    let (summary, findings) = fuzzed(&plan, &|| Box::new(new()) as Box<dyn Engine<Vpa>>);
    if let Some(Finding { kind, failure, tree, .. }) = findings.first() {
        return Err(format!("{release}: {kind}\n{}\n{failure:#?}", tree_to_yaml(tree)).into());
    }
    assert_eq!(summary.inconclusive, 0, "{summary:?}");
    let FuzzSummary { ticks, undetermined, elapsed, .. } = summary;
    let cut_short: usize = undetermined.values().sum();
    let per_second = ticks as f64 / elapsed.as_secs_f64();
    let text = format!("{release}: {ticks} runs ({cut_short} cut short), {per_second:.0}/s");
    trials::say("vpa", &text);
    Ok(())
}

/// The changes of the cluster in a generated scenario.
fn generated_script(seed: u64, index: u64, release: VpaRelease) -> Script {
    script(&generated(seed, index, release))
}

/// The comparison notices each difference between releases: with the rules of another release, the
/// model disagrees.
fn rejects_other_rules(program: &Path, release: VpaRelease) -> Result<(), Failed> {
    let own = VpaRules::of(release);
    let other = match own.oldest_oom {
        OldestOom::WindowEnd => VpaRules::of(VpaRelease::NEWEST),
        OldestOom::LastMemorySample => VpaRules::of(VpaRelease::OLDEST),
    };
    let wrong = [
        ("oldest_oom", VpaRules { oldest_oom: other.oldest_oom, ..own }),
        ("removed_pods", VpaRules { removed_pods: other.removed_pods, ..own }),
        ("oom_updates", VpaRules { oom_updates: other.oom_updates, ..own }),
    ];
    let wrong = wrong.into_iter().filter(|(_, rules)| *rules != own);
    let mut host = RecommenderHost::start(program, release)?;
    for (name, rules) in wrong {
        let mut found = false;
        for index in 0..60 {
            let script = generated_script(1, index, release);
            found = is_refuted(&script, rules, &answers(&script, &mut host)?);
            if found {
                break;
            }
        }
        assert!(found, "no scenario depends on {name}");
    }
    Ok(())
}

/// Returns true if the model with some rules differs from observed answers. What was observed is
/// the input of the model's next run.
fn is_refuted(script: &Script, rules: VpaRules, observed: &[Stepped]) -> bool {
    let (mut session, _) = Session::open(&script.start, rules);
    for (step, observed) in script.steps.iter().zip(observed) {
        let predicted = session.step(&step.changes, step.until);
        if predicted.runs.iter().any(|run| run.run.is_undetermined) {
            return false;
        }
        if differs(&predicted, observed) {
            return true;
        }
        for write in observed.runs.iter().flat_map(|run| &run.run.writes) {
            session.objects_mut().apply(write);
        }
    }
    false
}

fn differs(one: &Stepped, other: &Stepped) -> bool {
    let times = |stepped: &Stepped| stepped.runs.iter().map(|run| run.at).collect::<Vec<_>>();
    let mut pairs = one.runs.iter().zip(&other.runs);
    !logs(&one.log, &other.log).is_empty()
        || times(one) != times(other)
        || pairs.any(|(one, other)| !runs(&one.run, &other.run).is_empty())
}

/// The answers of the real recommender to all steps of a script.
fn answers(script: &Script, host: &mut RecommenderHost) -> Result<Vec<Stepped>, Failed> {
    host.open(&script.name, &script.start, &script.flags)?;
    let mut answers = Vec::new();
    for step in &script.steps {
        host.send(&step.changes, step.until)?;
        answers.push(host.receive()?);
    }
    host.close()?;
    Ok(answers)
}

/// Returns true if the model says that the result of a script is random, at least in some bits.
fn has_random_results(script: &Script, rules: VpaRules) -> bool {
    let (mut session, _) = Session::open(&script.start, rules);
    script.steps.iter().any(|step| {
        let stepped = session.step(&step.changes, step.until);
        let mut runs = stepped.runs.iter();
        runs.any(|run| run.run.is_undetermined || run.run.writes.iter().any(is_random_in_its_bits))
    })
}

/// Checks that identical runs of upstream differ in a script whose results are random, at least in
/// their last bits.
fn is_random(program: &Path, release: VpaRelease) -> Result<(), Failed> {
    let rules = VpaRules::of(release);
    let mut host = RecommenderHost::start(program, release)?;
    let scripts = (0..300).map(|index| generated_script(12, index, release));
    for script in scripts.filter(|script| has_random_results(script, rules)) {
        let first = answers(&script, &mut host)?;
        for _ in 0..10 {
            let again = answers(&script, &mut host)?;
            let mut pairs = first.iter().zip(&again);
            if pairs.any(|(first, again)| differs(first, again)) {
                return Ok(());
            }
        }
    }
    Err("all runs of upstream were equal".into())
}
