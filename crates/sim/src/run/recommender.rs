//! The runs of the VPA's recommender in a scenario, and free runs of the model.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Note;
use super::below_zero;
use super::random::{RandomCause, RandomOutcome};
use super::recommendation::with_reasons;
use super::vpa::{RunningVpa, Started};
use crate::expect::Unmet;
use crate::expect::recommender::evaluate;
use crate::trace::recommender::{Entry, RecommenderTrace};
use crate::world::World;
use crate::world::recommender::script;
use kube_autoscaler_models::rules::{VpaRelease, VpaRules};
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{
    ClusterChange, Estimation, LogLine, ObjectName, Objects, Occurrence, PodMetrics, Resource,
    RunAt, Samples, ScriptStep, Session, Snapshot, Stepped,
};
use kube_lockstep_scenario::vpa::VpaScenario;

/// The name of the model in reports.
pub const MODEL: &str = crate::engine::model::NAME;

/// A run of a recommender in a scenario.
#[derive(Clone, Debug)]
pub struct RecommenderRun {
    /// The scenario.
    pub scenario: Arc<VpaScenario>,
    /// The runs, for recordings.
    pub trace: RecommenderTrace,
    /// The state after each run.
    pub snapshots: Vec<Snapshot>,
}

/// How the amounts of one VPA were derived, by container.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The VPA.
    pub vpa: ObjectName,
    /// The samples that count.
    pub samples: BTreeMap<Arc<str>, Samples>,
    /// The estimation of each amount.
    pub estimations: BTreeMap<Arc<str>, Vec<Estimation>>,
}

/// How the amounts of a run were derived.
#[derive(Clone, Debug)]
pub struct ExplainedRun {
    /// The derivations, by VPA.
    pub derived: Vec<Derived>,
    /// The errors that the recommender logged when it started, if it started since the run before.
    pub start_log: Vec<LogLine>,
    /// The samples and OOM kills that the recommender has read since the previous run.
    pub account: Vec<Occurrence>,
    /// The usage that the run read, or the error.
    pub usage: Result<Arc<Vec<PodMetrics>>, String>,
}

/// The result of a free run of the model.
#[derive(Clone, Debug, Default)]
pub struct FreeRecommenderRun {
    /// The state after each run.
    pub snapshots: Vec<Snapshot>,
    /// How the amounts of the runs that were asked for were derived, by index.
    pub explained: BTreeMap<usize, ExplainedRun>,
    /// The expectations that are not met.
    pub unmet: Vec<Unmet>,
    /// Notes for the author of the scenario. Empty in a scenario with an HPA, whose run has them.
    pub notes: Vec<Note>,
    /// The events whose actions found no pod, by their indices.
    pub unmatched: Vec<usize>,
    /// Why the scenario can't be run to its end, if it can't.
    pub undetermined: Option<RandomOutcome>,
}

/// The usage of one resource of a container in one run: of all pods of a VPA with a sample.
#[derive(Clone, PartialEq, Debug)]
pub struct PodUsage {
    /// The VPA.
    pub vpa: ObjectName,
    /// The container.
    pub container: Arc<str>,
    /// The resource.
    pub resource: Resource,
    /// The lowest usage of a pod, in millicores or bytes.
    pub lowest: i64,
    /// The highest usage of a pod, in millicores or bytes.
    pub highest: i64,
}

/// A free run of the model with the usage that each run read, for charts.
#[derive(Clone, Debug)]
pub struct ChartedRun {
    /// The run.
    pub run: FreeRecommenderRun,
    /// The usage, one list for each run.
    pub usage: Vec<Vec<PodUsage>>,
}

/// Runs the model alone. `is_explained` selects runs, by index, whose amounts are derived.
#[must_use]
pub fn free_recommender_run(
    scenario: &VpaScenario,
    release: VpaRelease,
    is_explained: &dyn Fn(usize) -> bool,
) -> FreeRecommenderRun {
    free_run(scenario, release, Keep { is_explained, usage: false }).run
}

/// The prediction of a scenario, with the reasons of unmet expectations.
#[must_use]
pub fn predicted_recommender_run(
    scenario: &VpaScenario,
    release: VpaRelease,
) -> FreeRecommenderRun {
    let mut run = free_recommender_run(scenario, release, &|_| false);
    run.unmet = with_reasons(scenario, run.unmet, |is_explained| {
        Some(free_recommender_run(scenario, release, is_explained))
    });
    run
}

/// Runs the model alone, and keeps the usage as well.
#[must_use]
pub fn charted_recommender_run(
    scenario: &VpaScenario,
    release: VpaRelease,
    is_explained: &dyn Fn(usize) -> bool,
) -> ChartedRun {
    free_run(scenario, release, Keep { is_explained, usage: true })
}

/// What is kept of each run of the model, in addition to the state after it.
#[derive(Clone, Copy)]
pub(super) struct Keep<'e> {
    /// Selects the runs, by index, whose amounts are derived.
    pub is_explained: &'e dyn Fn(usize) -> bool,
    /// True if the usage that each run reads is kept.
    pub usage: bool,
}

/// A free run of the model that has not ended.
pub(super) struct Predicting<'e> {
    /// The runs so far.
    pub charted: ChartedRun,
    pub keep: Keep<'e>,
    /// The errors that the recommender logged when it started, since the last run.
    start_log: Vec<LogLine>,
    with_contents: bool,
}

impl<'e> Predicting<'e> {
    /// A run that has started and logged some errors.
    pub(super) fn new(
        scenario: &VpaScenario,
        start_log: Vec<LogLine>,
        keep: Keep<'e>,
    ) -> Predicting<'e> {
        let charted = ChartedRun { run: FreeRecommenderRun::default(), usage: Vec::new() };
        Predicting { charted, keep, start_log, with_contents: scenario.expects_contents() }
    }

    /// Runs a step of the script.
    ///
    /// # Errors
    /// If the result of a run is random upstream.
    pub(super) fn step(
        &mut self,
        session: &mut Session,
        step: &ScriptStep,
    ) -> Result<Stepped, RandomOutcome> {
        let next = self.charted.run.snapshots.len();
        session.recommender().keep_account((self.keep.is_explained)(next));
        let stepped = session.step(&step.changes, step.until);
        self.start_log.extend(stepped.log.iter().cloned());
        for run in &stepped.runs {
            if run.run.is_undetermined {
                return Err(undetermined(run.at));
            }
            self.add(session, run);
        }
        Ok(stepped)
    }

    /// Adds the last run of a session.
    fn add(&mut self, session: &mut Session, last: &RunAt) {
        let ChartedRun { run, usage } = &mut self.charted;
        let index = run.snapshots.len();
        run.snapshots.push(Snapshot::new(session.objects(), last, self.with_contents));
        if self.keep.usage {
            usage.push(pod_usage(session.objects()));
        }
        let start_log = std::mem::take(&mut self.start_log);
        if (self.keep.is_explained)(index) {
            run.explained.insert(index, explained(session, start_log));
        }
    }
}

fn free_run(scenario: &VpaScenario, release: VpaRelease, keep: Keep<'_>) -> ChartedRun {
    let scenario = Arc::new(scenario.clone());
    let mut world = World::of_vpa(&scenario);
    let started = Started::alone(&scenario, release, &mut world);
    let mut vpa = RunningVpa::predicting(started, keep);
    let random = vpa.predict(&mut world, None);
    let mut charted = vpa.into_charted(&world);
    let run = &mut charted.run;
    run.notes = notes(&scenario, release, &run.unmatched);
    match random {
        Some(_) => run.undetermined = random,
        None => run.unmet = evaluate(&scenario, release, &run.snapshots),
    }
    charted
}

/// Notes for the author of a scenario. `unmatched`: the indices of the events whose actions
/// matched no existing pod.
pub fn notes(scenario: &VpaScenario, release: VpaRelease, unmatched: &[usize]) -> Vec<Note> {
    let below_zero = below_zero::notes(&scenario.metrics, scenario.until);
    let mut notes = Note::on_reading(&[&scenario.notes[..], &below_zero].concat(), scenario.line);
    notes.extend(without_effect(scenario, unmatched));
    let is_unchecked = scenario.all_expectations_are_for_others(release);
    notes.extend(is_unchecked.then(|| {
        let others: Vec<String> = scenario.checked().map(|it| it.to_string()).collect();
        Note::no_expectation_applies(scenario.line, &others.join(", "))
    }));
    notes
}

/// The notes on events, by their indices, whose actions found no pod.
pub(super) fn without_effect<'s>(
    scenario: &'s VpaScenario,
    unmatched: &'s [usize],
) -> impl Iterator<Item = Note> + 's {
    let events = unmatched.iter().filter_map(|index| scenario.timeline.get(*index));
    events.map(|event| Note::without_effect(event.at, event.line))
}

/// The usage of the pods of each VPA.
fn pod_usage(objects: &Objects) -> Vec<PodUsage> {
    let Ok(metrics) = &objects.metrics else { return Vec::new() };
    let mut all = Vec::new();
    for (vpa, object) in &objects.vpas {
        let Some(target) = objects.target(&vpa.namespace, &object.spec.target_ref) else {
            continue;
        };
        let is_own = |pod: &&PodMetrics| {
            let labels = objects.pods.get(&pod.pod).map(|pod| pod.labels.map());
            pod.pod.namespace == vpa.namespace
                && labels.is_some_and(|labels| target.selector.matches(labels))
        };
        let mut own: Vec<PodUsage> = Vec::new();
        for usage in metrics.iter().filter(is_own).flat_map(|pod| &pod.containers) {
            let amounts = [(Resource::Cpu, usage.cpu), (Resource::Memory, usage.memory)];
            for (resource, amount) in amounts {
                let Some(amount) = amount else { continue };
                let (vpa, container) = (vpa.clone(), usage.container.clone());
                add(
                    &mut own,
                    PodUsage { vpa, container, resource, lowest: amount, highest: amount },
                );
            }
        }
        all.extend(own);
    }
    all
}

/// Extends the range of a resource of a container.
fn add(ranges: &mut Vec<PodUsage>, usage: PodUsage) {
    let mut known = ranges.iter_mut();
    let is_same =
        |it: &&mut PodUsage| it.resource == usage.resource && it.container == usage.container;
    match known.find(is_same) {
        Some(known) => {
            known.lowest = known.lowest.min(usage.lowest);
            known.highest = known.highest.max(usage.highest);
        }
        None => ranges.push(usage),
    }
}

/// The predictions of the model by any set of rules.
#[must_use]
pub fn predicted(scenario: &VpaScenario, rules: VpaRules) -> Vec<Entry> {
    let script = script(scenario);
    let (mut session, log) = Session::open(&script.start, rules);
    let mut entries = vec![Entry::Start(log)];
    for step in &script.steps {
        let stepped = session.step(&step.changes, step.until);
        if step.changes.contains(&ClusterChange::Restart) {
            entries.push(Entry::Start(stepped.log));
        }
        entries.extend(stepped.runs.into_iter().map(Entry::Run));
    }
    entries
}

/// The derivations of the last run. `start_log`: the errors of starts since the run before.
pub fn explained(session: &mut Session, start_log: Vec<LogLine>) -> ExplainedRun {
    let (names, now) = (names(session), session.now());
    let usage = session.objects().metrics.clone();
    let recommender = session.recommender();
    let account = recommender.take_account();
    let derived = names.into_iter().map(|vpa| {
        let samples = recommender.samples(&vpa, now);
        let estimations = recommender.explain(&vpa, now);
        Derived { vpa, samples, estimations }
    });
    ExplainedRun { derived: derived.collect(), start_log, account, usage }
}

/// The names of the VPAs that exist now.
pub fn names(session: &Session) -> Vec<ObjectName> {
    session.objects().vpas.keys().cloned().collect()
}

/// The outcome of a run of the recommender whose result is random upstream.
pub fn undetermined(at: Time) -> RandomOutcome {
    let why = format!(
        "the result of the run at {at} is random upstream: it depends on the order in which \
         upstream merges the histograms of pods with different labels, subtracts their memory \
         peaks, applies the memory settings of several VPAs to new pods or, up to vpa-0.11, lists \
         containers"
    );
    RandomOutcome::new(RandomCause::RecommendationOrder, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by fuzzing. While the samples of one pod exist, merging them moves the empty
    /// histograms of the other pod in one of two orders. Afterwards, those are all that is left.
    const TWO_PODS: &str = r#"
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: Something holds.
recommender:
  flags: {memory-aggregation-interval: 1s, recommender-interval: 6h}
vpas:
  - apiVersion: autoscaling.k8s.io/v1
    kind: VerticalPodAutoscaler
    metadata: {name: app1}
    spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: gone}}
workload:
  replicas: 2
  labels: {app: web}
metrics:
  resource: [{name: memory, perPod: "0"}]
timeline:
  - {at: 0s, relabel: {pods: "0", labels: {app: web, track: t1}}}
  - {at: 0s, metricsStale: "1"}
  - {at: 9h, metricsStale: "0"}
until: 18h
"#;

    #[test]
    fn the_reference_time_of_histograms_that_outlive_others_is_random() {
        let scenario: VpaScenario = TWO_PODS.parse().expect("a scenario");
        let run = free_recommender_run(&scenario, VpaRelease::NEWEST, &|_| false);
        let random = run.undetermined.expect("a random result");
        assert!(random.why.contains("the result of the run at 18h is random"), "{}", random.why);
    }
}
