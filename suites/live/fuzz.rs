//! The fuzzer: it finds planted faults, shrinks them, and finds the same with any number of jobs. A
//! short run on the real controller requires Go; without it, the test is reported as ignored.

use std::path::Path;
use std::sync::Arc;

use crate::support::trials::Suite;
use kube_autoscaler_models::api::ConditionStatus;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::Time;
use kube_lockstep_engines::upstream::Upstream;
use kube_lockstep_fuzz as fuzz;
use kube_lockstep_fuzz::fuzzing::{
    Failure, Finding, FuzzEvent, FuzzPlan, FuzzSummary, RunLimit, fuzz as fuzzed,
};
use kube_lockstep_fuzz::{Area, Coverage};
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::model::Model;
use kube_lockstep_sim::engine::{Engine, EngineError, Session, Step};
use kube_lockstep_sim::run::{RandomCause, Verdict, run_one, run_watched};
use kube_lockstep_sim::trace::{Observation, Stepped};
use kube_lockstep_sim::world::Change;
use libtest_mimic::Failed;

const RELEASE: Release = Release::NEWEST;

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    suite.test("the_model_agrees_with_itself", the_model_agrees_with_itself);
    suite
        .test("coverage_names_branches_that_were_never_reached", coverage_names_unreached_branches);
    for release in BUDGET_RELEASES {
        suite.test(format!("few_scenarios_are_cut_short_on_{release}"), move || {
            few_are_cut_short(release)
        });
    }
    suite.test("any_number_of_jobs_finds_the_same", any_number_of_jobs_finds_the_same);
    suite.test("a_wrong_tolerance_is_found_and_shrunk", || {
        finds_change(|scenario| scenario.flags.tolerance += 0.05, &[])
    });
    suite.test("a_wrong_window_is_found_and_shrunk", || {
        finds_change(|scenario| scenario.flags.downscale_stabilization.0 += 1_000_000_000, &[])
    });
    suite.test("a_wrong_readiness_delay_is_found_and_shrunk", || {
        let areas = [Area::Readiness];
        finds_change(|scenario| scenario.flags.initial_readiness_delay.0 += 1_000_000_000, &areas)
    });
    for (name, fault) in [
        ("rounding", Fault { output: rounds_differently, ..Fault::NONE }),
        ("instant", Fault { input: unready_a_nanosecond_earlier, ..Fault::NONE }),
        ("message", Fault { output: changes_a_message, ..Fault::NONE }),
    ] {
        suite.test(format!("a_wrong_{name}_is_found_and_shrunk"), move || finds_fault(fault));
    }
    suite.test("a_panic_is_a_finding", a_panic_is_a_finding);
    let upstream = suite.upstream(RELEASE);
    suite.test_with(&upstream, "upstream_agrees_in_a_short_run", |program| {
        upstream_agrees(&program, &plan(8_000, 2, &[]))
    });
    suite.test_with(&upstream, "upstream_agrees_in_a_short_run_with_vpas", |program| {
        upstream_agrees(&program, &plan(2_000, 2, &[Area::HpaAndVpa]))
    });
}

fn plan(ticks: usize, jobs: usize, areas: &[Area]) -> FuzzPlan {
    let mut plan = FuzzPlan::new(20, RunLimit::Ticks(ticks), RELEASE);
    plan.jobs = jobs;
    plan.areas = areas.to_vec();
    plan.max_findings = 1;
    plan
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

/// The model as an engine that changes each scenario before it runs it.
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

/// A planted fault: a change of the model's input or output.
#[derive(Clone, Copy)]
struct Fault {
    input: fn(&Scenario, &mut Change),
    output: fn(&Scenario, &mut Stepped),
}

impl Fault {
    const NONE: Fault = Fault { input: |_, _| {}, output: |_, _| {} };
}

/// The model with a planted fault, as an engine.
struct FaultyModel(Model, Fault);

impl Engine for FaultyModel {
    fn name(&self) -> &str {
        "faulty"
    }

    fn release(&self) -> Release {
        self.0.release()
    }

    fn open<'a>(&'a mut self, scenario: &Scenario) -> Result<Box<dyn Session + 'a>, EngineError> {
        let FaultyModel(model, fault) = self;
        let session = model.open(scenario)?;
        Ok(Box::new(FaultySession { session, fault: *fault, scenario: scenario.clone() }))
    }
}

struct FaultySession<'a> {
    session: Box<dyn Session + 'a>,
    fault: Fault,
    scenario: Scenario,
}

impl Session for FaultySession<'_> {
    fn send(&mut self, step: &Step) -> Result<(), EngineError> {
        let mut step = step.clone();
        step.apply.iter_mut().for_each(|change| (self.fault.input)(&self.scenario, change));
        self.session.send(&step)
    }

    fn receive(&mut self) -> Result<Stepped, EngineError> {
        let mut stepped = self.session.receive()?;
        (self.fault.output)(&self.scenario, &mut stepped);
        Ok(stepped)
    }

    fn close(self: Box<Self>) -> Result<Vec<Observation>, EngineError> {
        self.session.close()
    }
}

/// Rounds as if the percentage were added before the division by a hundred.
fn rounds_differently(scenario: &Scenario, stepped: &mut Stepped) {
    let policies = &scenario.hpas[0].manifest["spec"]["behavior"]["scaleUp"]["policies"];
    let Some([policy]) = policies.as_array().map(Vec::as_slice) else { return };
    let percent = policy["value"].as_f64().filter(|_| policy["type"] == "Percent");
    let Some(percent) = percent else { return };
    for tick in &mut stepped.ticks {
        let Some(written) = tick.status_write() else { continue };
        let current = f64::from(written.status.current_replicas.unwrap_or(0));
        let right = (current * (1.0 + percent / 100.0)).ceil() as i32;
        let wrong = (current * (100.0 + percent) / 100.0).ceil() as i32;
        let writes = tick.scale_writes_mut().filter(|write| write.replicas == right);
        writes.for_each(|write| write.replicas = wrong);
    }
}

/// Treats a pod that becomes unready exactly at the end of the delay as if it had never been ready.
fn unready_a_nanosecond_earlier(scenario: &Scenario, change: &mut Change) {
    let Change::SetPods(pods) = change else { return };
    for pod in pods {
        let (Some(started), Some(ready)) = (pod.start_time, &mut pod.ready) else { continue };
        let end = started + scenario.flags.initial_readiness_delay;
        if ready.status == ConditionStatus::False && ready.last_transition_time == end {
            ready.last_transition_time = Time(end.0 - 1);
        }
    }
}

fn changes_a_message(_: &Scenario, stepped: &mut Stepped) {
    for event in stepped.ticks.iter_mut().flat_map(|tick| tick.events_mut()) {
        let message =
            event.message.to_string().replace("matched known pods", "matched any known pods");
        event.message = message.into();
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

/// The releases on which the scenarios that are cut short are counted.
const BUDGET_RELEASES: [&str; 3] = ["1.6", "1.22", "1.37"];

/// The maximum number of scenarios in 1,000 that are cut short, by cause. The fuzzer compares a
/// scenario only up to that point, so a limit that is too high can hide differences.
const BUDGET: &[(RandomCause, usize)] =
    &[(RandomCause::ActionDuringReconcile, 20), (RandomCause::CacheUpdate, 5)];

/// The maximum number of scenarios that the release does not support, per 1,000 others. They are of
/// areas of which older releases support little.
const SKIPPED: usize = 50;

/// Counts the scenarios that are cut short or skipped.
fn few_are_cut_short(release: &str) -> Result<(), Failed> {
    let release: Release = release.parse()?;
    let mut plan = plan(20_000, 2, &[]);
    plan.release = release;
    let (summary, _) = run(&plan, &|| Box::new(Model::new(release)));
    let (scenarios, skipped) = (summary.scenarios, summary.skipped.values().sum::<usize>());
    assert!(skipped * 1000 <= scenarios * SKIPPED, "{skipped}: {:?}", summary.skipped);
    for cause in RandomCause::ALL {
        let count = summary.undetermined.get(&cause).copied().unwrap_or_default();
        let budget = BUDGET.iter().find(|(it, _)| *it == cause).map_or(0, |(_, budget)| *budget);
        if count * 1000 > scenarios * budget {
            let what = format!("{cause}: {count} of {scenarios}, more than {budget} in 1,000");
            return Err(format!("{what}: {:?}", summary.undetermined).into());
        }
    }
    Ok(())
}

fn coverage_names_unreached_branches() -> Result<(), Failed> {
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
    let group =
        |name: &str| groups.iter().find(|group| group.group == name).expect("the group exists");
    assert!(group("branches").reached.iter().any(|(name, _)| name == "Metrics"));
    assert!(group("conditions").never.contains(&"InvalidMetricSourceType".to_owned()));
    assert!(group("errors").reached.iter().any(|(name, _)| name == "invalid metrics ("));
    assert!(group("errors").never.contains(&"no metric source was set".to_owned()));
    assert!(group("kinds").reached.iter().any(|(name, _)| name == "custom resource"));
    assert!(group("versions").reached.iter().any(|(name, _)| name == "autoscaling/v1"));
    let gates = group("gates");
    let count =
        |name: &str| gates.reached.iter().find(|(it, _)| it == name).map(|(_, count)| *count);
    assert!(count("HPAScaleToZero=true") > count("HPAScaleToZero=false"), "{gates:?}");
    assert!(
        count("HPAConfigurableTolerance=false").is_none() && gates.never.len() < 5,
        "{gates:?}"
    );
    let mut merged = Coverage::default();
    halves.iter().for_each(|half| merged.merge(half));
    assert_eq!(merged.groups(), groups);
    Ok(())
}

fn any_number_of_jobs_finds_the_same() -> Result<(), Failed> {
    let results = |jobs| {
        let change = |scenario: &mut Scenario| scenario.flags.tolerance += 0.01;
        let engine = move || Box::new(Changed(Model::new(RELEASE), change)) as Box<dyn Engine>;
        let mut plan = plan(30_000, jobs, &[]);
        plan.max_findings = 3;
        plan.shrinking = 200;
        let (summary, found) = run(&plan, &engine);
        let found = found.iter().map(|found| {
            (found.index, found.times, found.kind.clone(), scenario::to_yaml(&found.scenario, None))
        });
        let found: Vec<_> = found.collect();
        (summary.scenarios, summary.ticks, summary.divergences, summary.coverage, found)
    };
    let one = results(1);
    assert!(!one.4.is_empty(), "nothing was found");
    assert_eq!(one, results(2));
    assert_eq!(one, results(7));
    Ok(())
}

/// The fuzzer finds a fault of the engine. The shrunk scenario is small and valid, and still shows
/// the fault.
fn finds_change(
    change: impl Fn(&mut Scenario) + Copy + Send + Sync + 'static,
    areas: &[Area],
) -> Result<(), Failed> {
    let engine = move || Box::new(Changed(Model::new(RELEASE), change)) as Box<dyn Engine>;
    finds_and_shrinks(&engine, areas)
}

/// Like [`finds_change`], in any area, for a fault that affects only decisions at a boundary.
fn finds_fault(fault: Fault) -> Result<(), Failed> {
    finds_and_shrinks(
        &move || Box::new(FaultyModel(Model::new(RELEASE), fault)) as Box<dyn Engine>,
        &[],
    )
}

fn finds_and_shrinks(
    engine: &(dyn Fn() -> Box<dyn Engine> + Sync),
    areas: &[Area],
) -> Result<(), Failed> {
    // Half of the default number of ticks.
    let (summary, found) = run(&plan(50_000, 2, areas), engine);
    let [finding] = found.as_slice() else {
        return Err(format!("{} findings in {} ticks", found.len(), summary.ticks).into());
    };
    let text = scenario::to_yaml(&finding.scenario, None);
    let Failure::Outcome(outcome) = &finding.failure else { return Err("it panicked".into()) };
    assert!(outcome.ticks <= 10, "{} ticks:\n{text}", outcome.ticks);
    assert!(text.lines().count() <= 45, "{text}");
    let read = scenario::parse("found.yaml", &text, &|_| Err("no files".into()))?;
    let again = run_one(&Arc::new(read), &mut *engine(), &[]);
    assert!(matches!(again.verdict, Verdict::Diverges(_)), "{:?}\n{text}", again.verdict);
    Ok(())
}

fn a_panic_is_a_finding() -> Result<(), Failed> {
    let change = |scenario: &mut Scenario| {
        if scenario.workload.replicas >= 9 {
            // A panic without its message on standard error.
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

fn upstream_agrees(program: &Path, plan: &FuzzPlan) -> Result<(), Failed> {
    let engine = || Box::new(Upstream::new(program.to_owned(), RELEASE)) as Box<dyn Engine>;
    let (summary, found) = run(plan, &engine);
    assert_eq!(summary.inconclusive, 0);
    match found.as_slice() {
        [] => Ok(()),
        [first, ..] => {
            let text = scenario::to_yaml(&first.scenario, None);
            Err(format!("{}\n{text}\n{:#?}", first.kind, first.failure).into())
        }
    }
}
