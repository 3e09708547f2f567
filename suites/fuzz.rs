//! The fuzzer: it finds planted faults, shrinks them, and finds the same with any number of jobs. A
//! short run on the real controller requires Go; without it, the test is reported as ignored.

mod support;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use kube_lockstep::engine::model::Model;
use kube_lockstep::engine::upstream::Upstream;
use kube_lockstep::engine::{CancellationToken, Engine, EngineError, Session, Step};
use kube_lockstep::fuzz::{self, Area, Coverage};
use kube_lockstep::model::api::ConditionStatus;
use kube_lockstep::model::rules::Release;
use kube_lockstep::model::time::Time;
use kube_lockstep::run::fuzzing::{
    Enough, Failure, Finding, FuzzEvent, FuzzPlan, FuzzSummary, fuzz as fuzzed,
};
use kube_lockstep::run::{Shard, Verdict, run_one, run_watched};
use kube_lockstep::scenario::{self, Scenario};
use kube_lockstep::trace::Stepped;
use kube_lockstep::world::Change;
use libtest_mimic::Failed;
use support::trials::Suite;

const RELEASE: Release = Release::NEWEST;

fn main() -> ExitCode {
    let mut suite = Suite::new("fuzz");
    suite.test("the_model_agrees_with_itself", the_model_agrees_with_itself);
    suite.test("coverage_names_branches_that_were_never_reached", names_what_was_never_reached);
    suite.test("any_number_of_jobs_finds_the_same", any_number_of_jobs_finds_the_same);
    suite.test("a_wrong_tolerance_is_found_and_shrunk", || {
        planted(|scenario| scenario.flags.tolerance += 0.05, &[])
    });
    suite.test("a_wrong_window_is_found_and_shrunk", || {
        planted(|scenario| scenario.flags.downscale_stabilization.0 += 1_000_000_000, &[])
    });
    suite.test("a_wrong_readiness_delay_is_found_and_shrunk", || {
        let areas = [Area::Readiness];
        planted(|scenario| scenario.flags.initial_readiness_delay.0 += 1_000_000_000, &areas)
    });
    for (name, bend) in [
        ("rounding", Bend { tells: rounds_otherwise, ..Bend::NONE }),
        ("instant", Bend { told: unready_an_instant_earlier, ..Bend::NONE }),
        ("message", Bend { tells: says_it_otherwise, ..Bend::NONE }),
    ] {
        suite.test(format!("a_wrong_{name}_is_found_and_shrunk"), move || bent(bend));
    }
    suite.test("a_panic_is_a_finding", a_panic_is_a_finding);
    let upstream = suite.upstream(RELEASE);
    suite.test_with(&upstream, "upstream_agrees_in_a_short_run", upstream_agrees);
    suite.run()
}

fn plan(ticks: usize, jobs: usize, areas: &[Area]) -> FuzzPlan {
    FuzzPlan {
        shard: Shard::WHOLE,
        seed: 20,
        enough: Enough::Ticks(ticks),
        release: RELEASE,
        jobs,
        areas: areas.to_vec(),
        most_findings: 1,
        shrinking: 3000,
        known: Vec::new(),
        stop: CancellationToken::new(),
    }
}

fn run(
    plan: &FuzzPlan,
    engine: &(dyn Fn() -> Box<dyn Engine> + Sync),
) -> (FuzzSummary, Vec<Finding>) {
    let mut found = Vec::new();
    let summary = fuzzed(plan, engine, &mut |event| {
        if let FuzzEvent::Found(finding) = event {
            found.push(*finding);
        }
    });
    (summary, found)
}

/// The model with something changed before it sees the scenario, as an engine.
struct Changed<C>(Model, C);

impl<C: Fn(&mut Scenario)> Engine for Changed<C> {
    fn name(&self) -> &str {
        "changed"
    }

    fn release(&self) -> Release {
        self.0.release()
    }

    fn open<'a>(&'a mut self, scenario: &Scenario) -> Result<Box<dyn Session + 'a>, EngineError> {
        let mut scenario = scenario.clone();
        (self.1)(&mut scenario);
        self.0.open(&scenario)
    }
}

/// The planted change of the model's input or output.
#[derive(Clone, Copy)]
struct Bend {
    told: fn(&Scenario, &mut Change),
    tells: fn(&Scenario, &mut Stepped),
}

impl Bend {
    const NONE: Bend = Bend { told: |_, _| {}, tells: |_, _| {} };
}

/// The model with a bend, as an engine.
struct Bent(Model, Bend);

impl Engine for Bent {
    fn name(&self) -> &str {
        "bent"
    }

    fn release(&self) -> Release {
        self.0.release()
    }

    fn open<'a>(&'a mut self, scenario: &Scenario) -> Result<Box<dyn Session + 'a>, EngineError> {
        let Bent(model, bend) = self;
        let session = model.open(scenario)?;
        Ok(Box::new(BentSession { session, bend: *bend, scenario: scenario.clone() }))
    }
}

struct BentSession<'a> {
    session: Box<dyn Session + 'a>,
    bend: Bend,
    scenario: Scenario,
}

impl Session for BentSession<'_> {
    fn send(&mut self, step: &Step) -> Result<(), EngineError> {
        let mut step = step.clone();
        step.apply.iter_mut().for_each(|change| (self.bend.told)(&self.scenario, change));
        self.session.send(&step)
    }

    fn receive(&mut self) -> Result<Stepped, EngineError> {
        let mut stepped = self.session.receive()?;
        (self.bend.tells)(&self.scenario, &mut stepped);
        Ok(stepped)
    }

    fn close(self: Box<Self>) -> Result<(), EngineError> {
        self.session.close()
    }
}

/// As if a percentage were added before it is divided by a hundred.
fn rounds_otherwise(scenario: &Scenario, stepped: &mut Stepped) {
    let policies = &scenario.hpas[0].manifest["spec"]["behavior"]["scaleUp"]["policies"];
    let Some([policy]) = policies.as_array().map(Vec::as_slice) else { return };
    let percent = policy["value"].as_f64().filter(|_| policy["type"] == "Percent");
    let Some(percent) = percent else { return };
    for tick in &mut stepped.ticks {
        let Some(written) = tick.status_write() else { continue };
        let size = f64::from(written.status.current_replicas.unwrap_or(0));
        let right = (size * (1.0 + percent / 100.0)).ceil() as i32;
        let wrong = (size * (100.0 + percent) / 100.0).ceil() as i32;
        let writes = tick.scale_writes_mut().filter(|write| write.replicas == right);
        writes.for_each(|write| write.replicas = wrong);
    }
}

/// As if a pod that loses its readiness at the very end of the delay had never been ready.
fn unready_an_instant_earlier(scenario: &Scenario, change: &mut Change) {
    let Change::SetPods(pods) = change else { return };
    for pod in pods {
        let (Some(started), Some(ready)) = (pod.start_time, &mut pod.ready) else { continue };
        let end = started + scenario.flags.initial_readiness_delay;
        if ready.status == ConditionStatus::False && ready.last_transition_time == end {
            ready.last_transition_time = Time(end.0 - 1);
        }
    }
}

fn says_it_otherwise(_: &Scenario, stepped: &mut Stepped) {
    for event in stepped.ticks.iter_mut().flat_map(|tick| tick.events_mut()) {
        let said =
            event.message.to_string().replace("matched known pods", "matched any known pods");
        event.message = said.into();
    }
}

fn the_model_agrees_with_itself() -> Result<(), Failed> {
    let (summary, found) = run(&plan(20_000, 2, &[]), &|| Box::new(Model::new(RELEASE)));
    assert_eq!((summary.divergences, summary.inconclusive, found.len()), (0, 0, 0));
    assert!(summary.ticks >= 20_000);
    let branches = summary.coverage.iter().find(|group| group.group == "branches");
    assert!(branches.is_some_and(|group| group.never.is_empty()), "{:#?}", summary.coverage);
    Ok(())
}

fn names_what_was_never_reached() -> Result<(), Failed> {
    let mut coverage = Coverage::default();
    let mut halves = [Coverage::default(), Coverage::default()];
    for index in 0..40 {
        let scenario = Arc::new(fuzz::scenario(3, index, RELEASE, &[]));
        let half = &mut halves[usize::from(index % 2 == 0)];
        coverage.begin(&scenario, RELEASE);
        half.begin(&scenario, RELEASE);
        run_watched(&scenario, &mut Model::new(RELEASE), &[], &mut |decision| {
            coverage.add(decision);
            half.add(decision);
        });
    }
    let groups = coverage.groups();
    let group = |name: &str| groups.iter().find(|group| group.group == name).expect("it is there");
    assert!(group("branches").reached.iter().any(|(name, _)| name == "Metrics"));
    assert!(group("conditions").never.contains(&"InvalidMetricSourceType".to_owned()));
    assert!(group("errors").reached.iter().any(|(name, _)| name == "invalid metrics ("));
    assert!(group("errors").never.contains(&"no metric source was set".to_owned()));
    assert!(group("kinds").reached.iter().any(|(name, _)| name == "custom resource"));
    assert!(group("versions").reached.iter().any(|(name, _)| name == "autoscaling/v1"));
    let gates = group("gates");
    let of = |name: &str| gates.reached.iter().find(|(it, _)| it == name).map(|(_, count)| *count);
    assert!(of("HPAScaleToZero=true") > of("HPAScaleToZero=false"), "{gates:?}");
    assert!(of("HPAConfigurableTolerance=false").is_none() && gates.never.len() < 5, "{gates:?}");
    let mut merged = Coverage::default();
    halves.iter().for_each(|half| merged.merge(half));
    assert_eq!(merged.groups(), groups);
    Ok(())
}

fn any_number_of_jobs_finds_the_same() -> Result<(), Failed> {
    let of = |jobs| {
        let change = |scenario: &mut Scenario| scenario.flags.tolerance += 0.01;
        let engine = move || Box::new(Changed(Model::new(RELEASE), change)) as Box<dyn Engine>;
        let plan = FuzzPlan { most_findings: 3, shrinking: 200, ..plan(30_000, jobs, &[]) };
        let (summary, found) = run(&plan, &engine);
        let found = found.iter().map(|found| {
            (found.index, found.times, found.kind.clone(), scenario::to_yaml(&found.scenario, None))
        });
        let found: Vec<_> = found.collect();
        (summary.scenarios, summary.ticks, summary.divergences, summary.coverage, found)
    };
    let one = of(1);
    assert!(!one.4.is_empty(), "nothing was found");
    assert_eq!(one, of(2));
    assert_eq!(one, of(7));
    Ok(())
}

/// A fault of the engine is found; the scenario that is left is small, can be read from its file,
/// and shows it there.
fn planted(
    change: impl Fn(&mut Scenario) + Copy + Send + Sync + 'static,
    areas: &[Area],
) -> Result<(), Failed> {
    let engine = move || Box::new(Changed(Model::new(RELEASE), change)) as Box<dyn Engine>;
    small(&engine, areas)
}

/// As [`planted`], in any area, with a fault that shows only where a decision turns.
fn bent(bend: Bend) -> Result<(), Failed> {
    small(&move || Box::new(Bent(Model::new(RELEASE), bend)) as Box<dyn Engine>, &[])
}

fn small(engine: &(dyn Fn() -> Box<dyn Engine> + Sync), areas: &[Area]) -> Result<(), Failed> {
    // Half of the default number of ticks.
    let (summary, found) = run(&plan(50_000, 2, areas), engine);
    let [finding] = found.as_slice() else {
        return Err(format!("{} findings in {} ticks", found.len(), summary.ticks).into());
    };
    let text = scenario::to_yaml(&finding.scenario, None);
    let Failure::Outcome(outcome) = &finding.failure else { return Err("it panicked".into()) };
    assert!(outcome.ticks <= 10, "{} ticks:\n{text}", outcome.ticks);
    assert!(text.lines().count() <= 45, "{text}");
    let read = scenario::parse("found.yaml", &text, &|_| Err("nothing".to_owned()))?;
    let again = run_one(&Arc::new(read), &mut *engine(), &[]);
    assert!(matches!(again.verdict, Verdict::Diverges(_)), "{:?}\n{text}", again.verdict);
    Ok(())
}

fn a_panic_is_a_finding() -> Result<(), Failed> {
    let change = |scenario: &mut Scenario| {
        if scenario.workload.replicas >= 9 {
            // As a panic, without its noise.
            std::panic::resume_unwind(Box::new("planted: too large".to_owned()));
        }
    };
    let engine = move || Box::new(Changed(Model::new(RELEASE), change)) as Box<dyn Engine>;
    let (summary, found) = run(&plan(200_000, 1, &[]), &engine);
    assert_eq!(summary.divergences, 1);
    let [finding] = found.as_slice() else { return Err("nothing was found".into()) };
    let Failure::Panic(message) = &finding.failure else { return Err("it did not panic".into()) };
    assert_eq!(message, "planted: too large");
    assert_eq!(finding.scenario.workload.replicas, 9);
    assert!(finding.scenario.timeline.is_empty());
    Ok(())
}

fn upstream_agrees(program: PathBuf) -> Result<(), Failed> {
    let engine = || Box::new(Upstream::new(program.clone(), RELEASE)) as Box<dyn Engine>;
    let (summary, found) = run(&plan(8_000, 2, &[]), &engine);
    assert_eq!(summary.inconclusive, 0);
    match found.as_slice() {
        [] => Ok(()),
        [first, ..] => {
            let text = scenario::to_yaml(&first.scenario, None);
            Err(format!("{}\n{text}\n{:#?}", first.kind, first.failure).into())
        }
    }
}
