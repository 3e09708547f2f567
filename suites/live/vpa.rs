//! The recommender of the Vertical Pod Autoscaler: the model against the real recommender in virtual
//! time, run by run, for scripts that are generated from a seed.
//!
//! Requires Go; without it, the tests on the real recommender are ignored. The environment variables
//! KUBE_LOCKSTEP_VPA_RUNS, KUBE_LOCKSTEP_VPA_SEED and KUBE_LOCKSTEP_VPA_SCRIPT set the number of
//! runs per release, the seed, and the index of the only script.

use crate::support;
use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::recording::{self, Mode};
use crate::support::trace_file;
use crate::support::trials::{self, Suite};
use kube_autoscaler_models::rules::{OldestOom, VpaRelease, VpaRules};
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{ClusterChange, LogLine, Script, Session, Stepped, Write};
use kube_lockstep_engines::recorded::{FOLDER, RecordedRecommender, Traces};
use kube_lockstep_engines::upstream::build;
use kube_lockstep_engines::upstream::build::Artifact;
use kube_lockstep_engines::upstream::recommender;
use kube_lockstep_engines::upstream::recommender::{RecommenderHost, UpstreamRecommender};
use kube_lockstep_fuzz::CoverageGroup;
use kube_lockstep_fuzz::fuzzing::{Failure, Finding, FuzzSummary, RunLimit};
use kube_lockstep_fuzz::recommender::{script, shrink};
use kube_lockstep_fuzz::recommender_fuzzing::{RecommenderFuzzPlan, fuzz_recommender};
use kube_lockstep_scenario::vpa::{VpaScenario, script_to_yaml};
use kube_lockstep_scenario::{AnyScenario, parse_any};
use kube_lockstep_sim::compare::FieldDifference;
use kube_lockstep_sim::compare::recommender::{logs, runs};
use kube_lockstep_sim::engine::model_recommender::ModelRecommender;
use kube_lockstep_sim::engine::{Engine, EngineError, ScriptedScenario, Vpa};
use kube_lockstep_sim::run::recommender::predicted;
use kube_lockstep_sim::run::recommender_lockstep::run_recommender;
use kube_lockstep_sim::run::{Outcome, Verdict};
use kube_lockstep_sim::trace::header::Build;
use kube_lockstep_sim::trace::recommender::Entry;
use kube_lockstep_sim::world::recommender::script as recommender_script;
use libtest_mimic::Failed;
use tokio_util::sync::CancellationToken;

/// The number of runs per release in a test without settings.
const RUNS: usize = 4_000;

/// The number of runs of a script.
const RUNS_OF_A_SCRIPT: usize = 400;

/// Held while recorded traces are read and written.
static RECORDING: Mutex<()> = Mutex::new(());

/// The number of steps that are sent before the first answer is awaited.
const AHEAD: usize = 16;

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    suite.test("a_script_depends_only_on_seed_and_index", || {
        assert_eq!(newest(7, 3, 50), newest(7, 3, 50));
        assert_ne!(newest(7, 3, 50).steps, newest(7, 4, 50).steps);
        Ok(())
    });
    suite.test("a_saved_script_is_read_as_the_same_script", || {
        for index in 0..4 {
            let script = newest(3, index, 30);
            let text = script_to_yaml(&script, "It is read again.", "schema.json")?;
            let read = parse_any("saved.yaml", &text, &|_| Err("no files".into()));
            let AnyScenario::Vpa(scenario) = read.map_err(|error| error.to_string())? else {
                return Err("it is not a scenario of a VPA".into());
            };
            // As text: equal amounts can have different forms.
            let again = Script { name: script.name, ..recommender_script(&scenario) };
            assert_eq!(script_to_yaml(&again, "It is read again.", "schema.json")?, text);
        }
        Ok(())
    });
    suite.test("generated_scripts_reach_every_item_of_the_coverage", scripts_reach_everything);
    suite.test("a_wrong_half_life_is_found_and_shrunk", || {
        finds(|script| script.start.flags.cpu_histogram_decay_half_life.0 += 3_600_000_000_000)
    });
    suite.test("a_wrong_percentile_is_found_and_shrunk", || {
        finds(|script| script.start.flags.target_memory_percentile -= 0.3)
    });
    suite.test("a_wrong_oom_bump_is_found_and_shrunk", || {
        finds(|script| script.start.flags.oom_min_bump_up_bytes += 1e8)
    });
    suite.test("a_panic_of_the_model_is_found_and_shrunk", panics_are_found);
    add_fixtures(suite);
    let named = trials::named_releases("KUBE_LOCKSTEP_RELEASES").map(|named| named.vpa);
    let is_named = named.is_some();
    for release in named.unwrap_or_else(live_releases) {
        if release < VpaRelease::NEWEST && !is_named {
            suite.ignore_by_default();
        }
        let program = suite.require(move || {
            recommender::ensure(release, &CancellationToken::new(), &mut |_, _| {})
        });
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

/// Every item of the coverage is reached within 40,000 ticks (about 90 scripts), except for at most
/// three flags.
fn scripts_reach_everything() -> Result<(), Failed> {
    let run = |release: VpaRelease| {
        let mut plan = RecommenderFuzzPlan::new(20, RunLimit::Ticks(40_000), release);
        plan.jobs = 2;
        plan.max_findings = 1;
        let engine = || Box::new(ModelRecommender::new("model", release)) as Box<dyn Engine<Vpa>>;
        let (summary, findings) = fuzz_recommender(&plan, &engine, &mut |_| {});
        assert!(findings.is_empty() && summary.ticks >= 40_000, "{summary:?}");
        summary.coverage
    };
    let of_newest = run(VpaRelease::NEWEST);
    for CoverageGroup { group, reached, never } in &of_newest {
        let most = if group == "flags" { 3 } else { 0 };
        assert!(!reached.is_empty() && never.len() <= most, "{group}: {never:?}");
    }
    // The oldest release does not have all flags.
    let flags = |coverage: &[CoverageGroup]| {
        let group = coverage.iter().find(|group| group.group == "flags");
        group.map_or(0, |group| group.reached.len() + group.never.len())
    };
    assert!(flags(&run(VpaRelease::OLDEST)) < flags(&of_newest));
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

/// A difference, with the time of the run.
type Found = (Time, Vec<FieldDifference>);

/// The engine of a comparison.
trait Other {
    /// Returns the errors that the recommender logs while it starts.
    fn open(&mut self, script: &Script) -> Result<Vec<LogLine>, Failed>;
    fn send(&mut self, script: &Script, step: usize) -> Result<(), Failed>;
    fn receive(&mut self) -> Result<Stepped, Failed>;
    fn close(&mut self) -> Result<(), Failed>;
}

/// How long both sides took, and how many runs there were.
#[derive(Default)]
struct Speed {
    /// The runs that were compared.
    runs: usize,
    /// The scripts that ended early because upstream's result is random.
    undetermined: usize,
    model: Duration,
    total: Duration,
}

/// Runs a script with the model and another engine, up to the first difference. What the other
/// engine writes is the input of the model's next run.
fn run_both(
    script: &Script,
    rules: VpaRules,
    other: &mut dyn Other,
    speed: &mut Speed,
) -> Result<Option<Found>, Failed> {
    let began = Instant::now();
    let (mut session, log) = Session::open(&script.start, rules);
    let differences = logs(&log, &other.open(script)?);
    let mut found = (!differences.is_empty()).then_some((Time::ZERO, differences));
    let (mut sent, mut received) = (0, 0);
    for (index, step) in script.steps.iter().enumerate() {
        if found.is_some() {
            break;
        }
        while sent < script.steps.len().min(index + AHEAD) {
            other.send(script, sent)?;
            sent += 1;
        }
        let observed = other.receive()?;
        received += 1;
        let before = Instant::now();
        let predicted = session.step(&step.changes, step.until);
        speed.model += before.elapsed();
        if predicted.runs.iter().any(|run| run.run.is_undetermined) {
            // Upstream's result is random from here on.
            speed.undetermined += 1;
            break;
        }
        speed.runs += predicted.runs.len();
        found = difference(&predicted, &observed, step.until);
        for write in observed.runs.iter().flat_map(|run| &run.run.writes) {
            session.objects_mut().apply(write);
        }
    }
    for _ in received..sent {
        other.receive()?;
    }
    other.close()?;
    speed.total += began.elapsed();
    Ok(found)
}

fn difference(predicted: &Stepped, observed: &Stepped, until: Time) -> Option<Found> {
    let differences = logs(&predicted.log, &observed.log);
    if !differences.is_empty() {
        return Some((until, differences));
    }
    let times = |stepped: &Stepped| stepped.runs.iter().map(|run| run.at).collect::<Vec<_>>();
    let (ours, theirs) = (times(predicted), times(observed));
    if ours != theirs {
        let (model, observed) = (format!("{ours:?}"), format!("{theirs:?}"));
        return Some((until, vec![FieldDifference::new("times of runs", model, observed)]));
    }
    let mut pairs = predicted.runs.iter().zip(&observed.runs);
    pairs.find_map(|(ours, theirs)| {
        let differences = runs(&ours.run, &theirs.run);
        (!differences.is_empty()).then_some((ours.at, differences))
    })
}

/// The real recommender.
struct Upstream(RecommenderHost);

impl Other for Upstream {
    fn open(&mut self, script: &Script) -> Result<Vec<LogLine>, Failed> {
        Ok(self.0.open(&script.name, &script.start, &script.flags)?)
    }

    fn send(&mut self, script: &Script, step: usize) -> Result<(), Failed> {
        let step = &script.steps[step];
        Ok(self.0.send(&step.changes, step.until)?)
    }

    fn receive(&mut self) -> Result<Stepped, Failed> {
        Ok(self.0.receive()?)
    }

    fn close(&mut self) -> Result<(), Failed> {
        Ok(self.0.close()?)
    }
}

/// A model with a fault in its flags.
struct Faulty<'a> {
    fault: &'a dyn Fn(&mut Script),
    session: Option<Session>,
    answers: VecDeque<Stepped>,
}

impl Other for Faulty<'_> {
    fn open(&mut self, script: &Script) -> Result<Vec<LogLine>, Failed> {
        let mut script = script.clone();
        (self.fault)(&mut script);
        let (session, log) = Session::open(&script.start, VpaRules::of(VpaRelease::NEWEST));
        self.session = Some(session);
        Ok(log)
    }

    fn send(&mut self, script: &Script, step: usize) -> Result<(), Failed> {
        let step = &script.steps[step];
        let session = self.session.as_mut().ok_or("no scenario is open")?;
        self.answers.push_back(session.step(&step.changes, step.until));
        Ok(())
    }

    fn receive(&mut self) -> Result<Stepped, Failed> {
        Ok(self.answers.pop_front().ok_or("no step was sent")?)
    }

    fn close(&mut self) -> Result<(), Failed> {
        Ok(())
    }
}

/// A fault of the model is found by one of the first scripts, and remains in the shrunk one.
fn finds(fault: fn(&mut Script)) -> Result<(), Failed> {
    let rules = VpaRules::of(VpaRelease::NEWEST);
    let fails = |script: &Script| {
        let mut faulty = Faulty { fault: &fault, session: None, answers: VecDeque::new() };
        let found = run_both(script, rules, &mut faulty, &mut Speed::default());
        found.is_ok_and(|found| found.is_some())
    };
    // Other tests show that the model without the fault agrees with the fixtures.
    let scenarios = support::vpa_fixtures().into_iter().map(|path| support::load_vpa(&path));
    let on_newest = |it: &Arc<VpaScenario>| it.unsupported_on(VpaRelease::NEWEST).is_none();
    let mut fixtures = scenarios.filter(on_newest).map(|scenario| recommender_script(&scenario));
    assert!(fixtures.any(|script| fails(&script)), "no fixture finds it");
    let scripts = (0..40).map(|index| newest(1, index, 100));
    let failing = scripts.into_iter().find(|script| fails(script)).ok_or("no script finds it")?;
    let size = |script: &Script| {
        script.steps.iter().map(|step| step.changes.len()).sum::<usize>() + script.flags.len()
    };
    let before = size(&failing);
    let shrunk = shrink(failing, fails);
    assert!(fails(&shrunk), "the shrunk script does not fail");
    assert!(size(&shrunk) * 2 <= before, "{before} changes became {}", size(&shrunk));
    fuzzing_finds(fault)
}

/// The model of the newest release with a planted fault, as an engine.
struct FaultyEngine {
    model: ModelRecommender,
    fault: fn(&mut Script),
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
        scenario: &ScriptedScenario,
    ) -> Result<Box<dyn kube_lockstep_sim::engine::Session<Vpa> + 'a>, EngineError> {
        let mut scenario = scenario.clone();
        (self.fault)(&mut scenario.script);
        self.model.open(&scenario)
    }
}

/// `kube-lockstep fuzz --area vpa` finds a fault, and shrinks it.
fn fuzzing_finds(fault: fn(&mut Script)) -> Result<(), Failed> {
    let (summary, findings) = fuzzed(fault, 20_000);
    assert!(summary.divergences > 0 && summary.inconclusive == 0, "{summary:?}");
    let [finding] = findings.as_slice() else { return Err("nothing was found".into()) };
    let Failure::Outcome(outcome) = &finding.failure else { return Err("it panicked".into()) };
    assert!(matches!(outcome.verdict, Verdict::Diverges(_)), "{:?}", outcome.verdict);
    let runs = finding.scenario.steps.len();
    assert!(runs <= 40, "the shrunk script has {runs} steps");
    Ok(())
}

/// Runs the fuzzer on the model with a fault, until it has found one kind of failure.
fn fuzzed(fault: fn(&mut Script), ticks: usize) -> (FuzzSummary, Vec<Finding<Script>>) {
    let release = VpaRelease::NEWEST;
    let mut plan = RecommenderFuzzPlan::new(1, RunLimit::Ticks(ticks), release);
    plan.max_findings = 1;
    let engine = || {
        let model = ModelRecommender::new("faulty", release);
        Box::new(FaultyEngine { model, fault }) as Box<dyn Engine<Vpa>>
    };
    fuzz_recommender(&plan, &engine, &mut |_| {})
}

fn panics_are_found() -> Result<(), Failed> {
    let fault: fn(&mut Script) = |script| {
        let mut changes = script.steps.iter().flat_map(|step| &step.changes);
        if changes.any(|change| matches!(change, ClusterChange::Restart)) {
            // A panic without its message on standard error.
            std::panic::resume_unwind(Box::new("planted: a restart".to_owned()));
        }
    };
    let (summary, findings) = fuzzed(fault, 200_000);
    assert_eq!(summary.divergences, 1);
    let [finding] = findings.as_slice() else { return Err("nothing was found".into()) };
    let Failure::Panic(message) = &finding.failure else { return Err("it did not panic".into()) };
    assert_eq!(message, "planted: a restart");
    let changes = finding.scenario.steps.iter().flat_map(|step| &step.changes).count();
    assert!(changes <= 2, "{:?}", finding.scenario.steps);
    Ok(())
}

/// A script for the newest release.
fn newest(seed: u64, index: u64, runs: usize) -> Script {
    script(seed, index, runs, VpaRelease::NEWEST)
}

/// The scripts of a test.
fn scripts(release: VpaRelease) -> impl Iterator<Item = Script> {
    let runs = setting("KUBE_LOCKSTEP_VPA_RUNS").map_or(RUNS, |runs| runs as usize);
    let seed = setting("KUBE_LOCKSTEP_VPA_SEED").unwrap_or(1);
    let only = setting("KUBE_LOCKSTEP_VPA_SCRIPT");
    let count = runs.div_ceil(RUNS_OF_A_SCRIPT) as u64;
    let indexes = only.map_or(0..count, |index| index..index + 1);
    indexes.map(move |index| script(seed, index, RUNS_OF_A_SCRIPT, release))
}

/// The model predicts every run of the real recommender.
fn agrees(program: &Path, release: VpaRelease) -> Result<(), Failed> {
    let rules = VpaRules::of(release);
    let mut host = Upstream(RecommenderHost::start(program, release)?);
    let mut speed = Speed::default();
    for script in scripts(release) {
        let found = run_both(&script, rules, &mut host, &mut speed);
        let found = found.map_err(|error| format!("{}: {:?}", script.name, error.message()))?;
        let Some((at, differences)) = found else { continue };
        let shrunk = shrink(script.clone(), |script| {
            let found = run_both(script, rules, &mut host, &mut Speed::default());
            found.is_ok_and(|found| found.is_some())
        });
        let mut lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
        lines.truncate(10);
        return Err(format!(
            "{} of {release}, run at {at:?}:\n  {}\nshrunk:\n{shrunk:#?}",
            script.name,
            lines.join("\n  ")
        )
        .into());
    }
    let per_second = |time: Duration| speed.runs as f64 / time.as_secs_f64();
    trials::say(
        "vpa",
        &format!(
            "{release}: {} runs ({} scripts ended early), {:.0}/s in all, {:.0}/s of the model",
            speed.runs,
            speed.undetermined,
            per_second(speed.total),
            per_second(speed.model)
        ),
    );
    Ok(())
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
    let mut host = Upstream(RecommenderHost::start(program, release)?);
    for (name, rules) in wrong {
        let mut found = false;
        for index in 0..60 {
            let script = script(1, index, 100, release);
            if run_both(&script, rules, &mut host, &mut Speed::default())?.is_some() {
                found = true;
                break;
            }
        }
        assert!(found, "no script depends on {name}");
    }
    Ok(())
}

/// The answers of the real recommender to all steps of a script.
fn answers(script: &Script, host: &mut Upstream) -> Result<Vec<Stepped>, Failed> {
    host.open(script)?;
    let mut answers = Vec::new();
    for step in 0..script.steps.len() {
        host.send(script, step)?;
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
    let mut host = Upstream(RecommenderHost::start(program, release)?);
    let scripts = (0..300).map(|index| script(12, index, RUNS_OF_A_SCRIPT, release));
    for script in scripts.filter(|script| has_random_results(script, rules)) {
        let first = answers(&script, &mut host)?;
        for _ in 0..10 {
            let again = answers(&script, &mut host)?;
            let mut pairs = first.iter().zip(&again);
            if pairs.any(|(first, again)| difference(first, again, Time::ZERO).is_some()) {
                return Ok(());
            }
        }
    }
    Err("all runs of upstream were equal".into())
}
