//! Runs of controllers that no model predicts: only the expectations of the scenario are checked.
//!
//! The times of such a controller are not known in advance. The clock therefore advances in steps
//! that are short compared with the sync period, and the world reacts to a change of the replicas
//! at the end of the step.

use std::sync::Arc;

use super::Outcome;
use super::findings::Findings;
use super::lockstep::{HpaLockstep, conclude, inconclusive, trace_of, unfinished};
use super::{Note, Verdict, during};
use crate::engine::{Engine, EngineError, Step};
use crate::objects::{ObjectStore, reported};
use crate::trace::{ApiOutcome, Observation, Stepped, Trace};
use crate::world::Change;
use kube_autoscaler_models::rules::Rules;
use kube_autoscaler_models::time::Span;
use kube_lockstep_scenario::resolved::ObjectRef;
use kube_lockstep_scenario::{Scenario, SkipReason};

/// The number of steps in a sync period.
const STEPS: i64 = 15;

/// The shortest step.
const SHORTEST: Span = Span(1_000_000);

/// Runs a scenario on an engine whose controller has no model.
pub(super) fn run(scenario: &Arc<Scenario>, engine: &mut dyn Engine) -> Outcome {
    let (name, release) = (Arc::<str>::from(engine.name()), engine.release());
    let mut outcome = Outcome { is_without_model: true, ..unfinished(scenario, &name, release) };
    if let Some(why) = unsupported(scenario, engine) {
        outcome.verdict = Verdict::Skipped { why };
        return outcome;
    }
    let mut findings = Findings::new(trace_of(scenario, &name, &release.to_string()), &[]);
    match observe(scenario, engine, &mut findings) {
        Ok(()) => {
            let rejected = rejection(scenario, &findings.trace);
            findings.notes.extend(unknown_kinds(scenario, &findings.trace));
            findings.notes.extend(errors(scenario, &findings.trace));
            conclude(&mut outcome, scenario, release, findings);
            if outcome.verdict == Verdict::Unmet {
                let writes = outcome.hpa().map(|run| reported(&run.trace));
                outcome.writes = writes.unwrap_or_default();
            }
            if let Some(why) = rejected {
                outcome.verdict = Verdict::Inconclusive { why, output: String::new() };
            }
        }
        Err(error) => outcome.verdict = inconclusive(error),
    }
    outcome
}

/// The first change of an object in the timeline that the API server rejected: what the scenario
/// describes did not happen.
fn rejection(scenario: &Scenario, trace: &Trace) -> Option<String> {
    trace.api.iter().find_map(|(_, answer)| {
        let ApiOutcome::Write(write) = &answer.outcome else { return None };
        write.error.as_ref()?;
        let event = scenario.timeline.iter().find(|event| event.at == answer.at);
        let (path, line) = (&scenario.path, event.map_or(scenario.line, |event| event.line));
        let at = answer.at;
        Some(format!("{path}:{line}: the API server rejects the action at t={at}: {write}"))
    })
}

/// Notes on expectations on objects of kinds of which there was no object.
fn unknown_kinds(scenario: &Scenario, trace: &Trace) -> Vec<Note> {
    let objects = scenario.expect.iter().filter_map(|it| Some((it.line, it.object.as_ref()?)));
    let mut objects = objects.peekable();
    if objects.peek().is_none() {
        return Vec::new();
    }
    let store = ObjectStore::new(trace, scenario.namespace.clone());
    let unknown = objects.filter(|(_, object)| !store.has_kind(object));
    let note = |(line, object): (usize, &ObjectRef)| {
        let ObjectRef { api_version, kind, .. } = object;
        let what = format!(
            "no {kind} of {api_version} existed in the run: check the apiVersion and the kind"
        );
        Note { file: None, line, what, is_about_reading: false }
    };
    unknown.map(note).collect()
}

/// A note on the errors that the controller logged.
fn errors(scenario: &Scenario, trace: &Trace) -> Option<Note> {
    let mut errors = trace.ticks.iter().flat_map(|tick| tick.errors().map(|it| (tick.at, it)));
    let (at, first) = errors.next()?;
    let what = match errors.count() {
        0 => format!("the controller logged an error at t={at}: {first}"),
        more => {
            let all = more + 1;
            format!("the controller logged {all} errors, the first one at t={at}: {first}")
        }
    };
    Some(Note { file: None, line: scenario.line, what, is_about_reading: false })
}

/// Why a scenario says nothing about a controller without a model, or can't run on it.
fn unsupported(scenario: &Arc<Scenario>, engine: &mut dyn Engine) -> Option<SkipReason> {
    let release = engine.release();
    if let Some(why) = scenario.missing_on(release).or_else(|| engine.unsupported_reason(scenario))
    {
        return Some(why);
    }
    if !scenario.has_expectations() {
        return Some("it has no expectations, and nothing else is checked".into());
    }
    if scenario.all_expectations_are_for_others(release) {
        return Some(format!("none of its expectations applies to {release}").into());
    }
    if scenario.vpa.is_some() {
        return Some("--compare expectations does not support VPAs".into());
    }
    let interrupts = !during::pending(scenario).is_empty();
    interrupts.then(|| {
        "--compare expectations does not support events during a reconcile (`during`)".into()
    })
}

/// Runs the scenario, and adds what the controller did to the findings.
fn observe(
    scenario: &Arc<Scenario>,
    engine: &mut dyn Engine,
    findings: &mut Findings<'_>,
) -> Result<(), EngineError> {
    let mut run = HpaLockstep::new(scenario, Rules::of(engine.release()));
    let longest = Span(scenario.flags.sync_period.0 / STEPS).max(SHORTEST);
    let mut session = engine.open(scenario)?;
    while let Some(steps) = run.steps_without_model(longest) {
        for step in steps {
            let stepped = session.step(&step)?;
            run.follow(&stepped);
            stepped.ticks.iter().for_each(|_| findings.comparison.count_tick());
            findings.trace.extend(stepped);
        }
    }
    findings.trace.unfinished = session.close()?;
    run.close(findings);
    Ok(())
}

impl HpaLockstep<'_> {
    /// The next steps; `None` at the end of the scenario. A change of the cluster or of its metrics
    /// happens exactly at its time, before the controller acts at that time.
    fn steps_without_model(&mut self, longest: Span) -> Option<Vec<Step>> {
        if !self.start.is_empty() || !self.events.is_empty() {
            let mut apply = std::mem::take(&mut self.start);
            apply.extend(self.changes(self.now));
            apply.extend(self.events.pop_front());
            return Some(vec![self.step(apply)]);
        }
        let (now, end) = (self.now, self.scenario.until);
        let event = self.world.next_api_event(now);
        let stops = [Some(now + longest), self.world.next_change(), event, Some(end)];
        let until = stops.into_iter().flatten().filter(|at| *at > now).min()?;
        if until > end {
            return None;
        }
        let apply = self.changes(until);
        let mut steps = Vec::new();
        let before = until - Span(1);
        if !apply.is_empty() && before > now {
            self.now = before;
            steps.push(self.step(Vec::new()));
        }
        self.now = until;
        steps.push(self.step(apply));
        if event == Some(until) {
            self.events = self.world.api_events(until).into();
        }
        Some(steps)
    }

    /// The step to the present time, with changes at its beginning.
    fn step(&mut self, apply: Vec<Change>) -> Step {
        for change in &apply {
            self.simulation.apply(change, self.now);
        }
        Step { apply, until: self.now, ..Step::default() }
    }

    /// Applies what the controller wrote to the world.
    fn follow(&mut self, stepped: &Stepped) {
        for tick in &stepped.ticks {
            if self.scenario.hpas.is_empty() {
                self.follow_any_controller(tick);
            } else {
                self.apply_observed(tick, None);
            }
        }
    }

    /// Applies the replicas that a controller without HPAs wrote to the world.
    fn follow_any_controller(&mut self, tick: &Observation) {
        for (index, target) in self.scenario.targets().enumerate() {
            let written = tick.replicas_written_to(&target.group_resource(), target.name);
            if let Some(replicas) = written {
                self.world.scaled(tick.end(), index, replicas);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Session;
    use crate::engine::model::Model;
    use kube_autoscaler_models::rules::Release;
    use kube_lockstep_scenario::testing::scenario;

    /// The model, as a controller without a model.
    struct Unmodeled(Model);

    impl Engine for Unmodeled {
        fn name(&self) -> &'static str {
            "unmodeled"
        }

        fn release(&self) -> Release {
            self.0.release()
        }

        fn has_model(&self) -> bool {
            false
        }

        fn open<'a>(
            &'a mut self,
            scenario: &Scenario,
        ) -> Result<Box<dyn Session + 'a>, EngineError> {
            self.0.open(scenario)
        }
    }

    /// Two replicas start after 20 s, and the load doubles after a minute.
    fn run(expect: &str) -> Outcome {
        let text = format!(
            "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: The HPA follows the load.
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {{name: web}}
  spec:
    scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
    maxReplicas: 10
    metrics:
    - type: Resource
      resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 50}}}}
workload:
  replicas: 2
  containers: [{{name: app, requests: {{cpu: 1}}}}]
  startup: {{ready: 20s}}
metrics:
  resource:
    - {{name: cpu, load: {{steps: [{{at: 0s, value: 1}}, {{at: 1m, value: 2}}]}}}}
until: 3m
{expect}
"
        );
        super::run(&scenario(&text), &mut Unmodeled(Model::new(Release::NEWEST)))
    }

    #[test]
    fn the_controller_changes_the_cluster_that_it_sees() {
        // Twice the load on twice the pods: without an effect of its writes, it would scale on.
        let outcome = run("expect: [{at: 45s, replicas: 2}, {at: 3m, replicas: 4}]");
        assert_eq!(outcome.verdict, Verdict::Conforms);
        assert!(outcome.is_without_model);
        assert_eq!(outcome.ticks, 13);
        let run = outcome.hpa().expect("a run");
        assert!(run.trace.ticks.iter().all(|tick| tick.at.0 % 15_000_000_000 == 0));
        assert_eq!(run.derivations.len(), 0);
    }

    #[test]
    fn unmet_expectations_are_the_verdict() {
        let outcome = run("expect: [{always: {}, replicas: {atMost: 3}}]");
        assert_eq!((outcome.verdict, outcome.unmet.len()), (Verdict::Unmet, 1));
    }

    #[test]
    fn without_expectations_there_is_no_verdict() {
        assert!(matches!(run("").verdict, Verdict::Skipped { .. }));
        let older = run("expect: [{at: 45s, replicas: 2, releases: \"<=1.30\"}]");
        assert!(matches!(older.verdict, Verdict::Skipped { .. }));
    }
}
