//! The VPA's updater and admission controller beside an HPA controller, in lockstep with their
//! models.

use std::sync::Arc;

use super::comparison::Comparison;
use crate::compare::{Controller, Divergence, FieldDifference, FieldPath};
use crate::engine::updater::{
    PodRequests, UpdaterAnswer, UpdaterStep, VpaUpdater, are_equal, requests_of, with_requests,
};
use crate::engine::{Engine, EngineError, Session};
use crate::world::{ManagedPods, UpdatedPod, World};
use kube_autoscaler_models::api::{PodSpec, Requests};
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::admission::recommended;
use kube_autoscaler_models::vpa::updater::PodUpdate;

/// An engine's updater and admission controller. What they decide happens in the world.
pub(super) struct UpdaterLockstep<'e> {
    session: Box<dyn Session<VpaUpdater> + 'e>,
    /// The name of the workload, which begins the names of its pods.
    workload: Arc<str>,
    /// The runs so far.
    runs: usize,
    /// The number of ticks of the HPA controller so far.
    pub(super) ticks_of_hpa: usize,
}

impl<'e> UpdaterLockstep<'e> {
    /// Starts the updater of an engine. None: the VPA is not applied.
    ///
    /// # Errors
    /// If the engine can't run.
    pub(super) fn open(
        engine: &'e mut dyn Engine<VpaUpdater>,
        world: &mut World,
    ) -> Result<Option<Self>, EngineError> {
        let Some(settings) = world.updater_settings() else { return Ok(None) };
        world.keep_admissions();
        let session = engine.open(&settings)?;
        Ok(Some(UpdaterLockstep { session, workload: world.workload(), runs: 0, ticks_of_hpa: 0 }))
    }

    /// Compares the pods that were created since the last call.
    ///
    /// # Errors
    /// If the engine is broken.
    pub(super) fn admit(
        &mut self,
        world: &mut World,
        comparison: &mut Comparison<'_>,
    ) -> Result<(), EngineError> {
        for admission in world.take_admissions() {
            let step = UpdaterStep::Admit(vec![admission.pod]);
            let answer = self.session.step(&step)?.pop().unwrap_or_default();
            let Some(pod) = step.pods().first().and_then(|it| it.pods.first()) else { continue };
            let Some(upstream) = answer.admitted.first() else { continue };
            let field = FieldPath::AdmittedRequests(self.name(pod.ordinal));
            let Some(difference) = requests(field, &admission.spec, upstream) else { continue };
            let why = || "the model applies the recommendation to the new pod".to_owned();
            self.found(admission.at, difference, comparison, why);
            world.admit_with(pod.ordinal, with_requests(&pod.spec, upstream));
        }
        Ok(())
    }

    /// Runs the updater if it is due, and compares what it does.
    ///
    /// # Errors
    /// If the engine is broken.
    pub(super) fn run(
        &mut self,
        world: &mut World,
        comparison: &mut Comparison<'_>,
    ) -> Result<(), EngineError> {
        let Some(pods) = world.due_update() else { return Ok(()) };
        let Some(settings) = world.updater_settings() else { return Ok(()) };
        self.runs += 1;
        let now = world.now();
        let decided = world.decide_updates(&pods);
        let updater = settings.updater(&pods, now);
        // Upstream's updater does not survive the run, and has no answer.
        if updater.crashes(&pods.pods) {
            return Ok(());
        }
        let may_do = |updates: &[PodUpdate]| updater.may_do(&pods.pods, updates);
        let step = UpdaterStep::Run(now, vec![pods.clone()]);
        let answer = self.session.step(&step)?.pop().unwrap_or_default();
        match self.difference(&pods, &decided, &answer, may_do) {
            // Upstream chooses at random between pods of equal priority. The world follows the
            // model's choice, so that each run of a scenario is the same.
            None => world.update_pods(decided),
            Some(difference) => {
                let why = || reasons(world);
                self.found(now, difference, comparison, why);
                world.update_pods(observed(&pods, &answer));
            }
        }
        Ok(())
    }

    /// Ends the updater.
    ///
    /// # Errors
    /// If the engine is broken.
    pub(super) fn close(self) -> Result<(), EngineError> {
        self.session.close()
    }

    fn name(&self, ordinal: u32) -> String {
        format!("{}-{ordinal}", self.workload)
    }

    fn found(
        &self,
        at: Time,
        difference: FieldDifference,
        comparison: &mut Comparison<'_>,
        why: impl FnOnce() -> String,
    ) {
        let found = Divergence::new(Controller::Updater, self.runs, at, vec![difference]);
        comparison.found(found.after_ticks_of_hpa(self.ticks_of_hpa), why);
    }

    /// The difference between a run of the model and one of the engine.
    fn difference(
        &self,
        of: &ManagedPods,
        decided: &[UpdatedPod],
        answer: &UpdaterAnswer,
        may_do: impl Fn(&[PodUpdate]) -> bool,
    ) -> Option<FieldDifference> {
        let model: Vec<PodUpdate> = decided.iter().map(UpdatedPod::update).collect();
        if model != answer.updates && !may_do(&answer.updates) {
            let [model, upstream] = [&model, &answer.updates].map(|it| self.texts(it));
            return Some(FieldDifference::new(FieldPath::UpdatedPods, model, upstream));
        }
        answer.updated_requests.iter().find_map(|(ordinal, found)| {
            let pod = of.pods.iter().find(|pod| pod.ordinal == *ordinal)?;
            let spec = recommended(&of.vpa, &pod.spec, &of.limits);
            requests(FieldPath::UpdatedRequests(self.name(*ordinal)), &spec, found)
        })
    }

    /// The changes of a run of the updater as one text: `evicts web-1, updates web-2`.
    fn texts(&self, updates: &[PodUpdate]) -> String {
        if updates.is_empty() {
            return "none".to_owned();
        }
        let texts = updates.iter().map(|update| match update {
            PodUpdate::Evict(ordinal) => format!("evicts {}", self.name(*ordinal)),
            PodUpdate::InPlace(ordinal) => format!("updates {}", self.name(*ordinal)),
        });
        texts.collect::<Vec<_>>().join(", ")
    }
}

/// Why the model treats each pod as it does in the last run, in one line.
fn reasons(world: &World) -> String {
    let pods = world.last_updater_report().into_iter().flat_map(|report| &report.pods);
    let reasons = pods.map(|(name, pod)| match &pod.reason {
        Ok((PodUpdate::Evict(_), why)) => format!("evicts {name}: {why}"),
        Ok((PodUpdate::InPlace(_), why)) => format!("updates {name}: {why}"),
        Err(why) => format!("leaves {name}: {why}"),
    });
    reasons.collect::<Vec<_>>().join("; ")
}

/// What an engine's updater does with pods.
fn observed(of: &ManagedPods, answer: &UpdaterAnswer) -> Vec<UpdatedPod> {
    let updated = |update: &PodUpdate| {
        let ordinal = update.ordinal();
        let spec = match update {
            PodUpdate::Evict(_) => None,
            PodUpdate::InPlace(_) => {
                let pod = of.pods.iter().find(|pod| pod.ordinal == ordinal)?;
                Some(with_requests(&pod.spec, answer.updated_requests.get(&ordinal)?))
            }
        };
        Some(UpdatedPod { ordinal, spec, why: None })
    };
    answer.updates.iter().filter_map(updated).collect()
}

/// The difference between the requests of a pod.
fn requests(field: FieldPath, model: &PodSpec, upstream: &PodRequests) -> Option<FieldDifference> {
    let requests = requests_of(model);
    (!are_equal(&requests, upstream))
        .then(|| FieldDifference::new(field, joined(model, &requests), joined(model, upstream)))
}

/// The requests of a pod as one text: `app: cpu 250m, memory 1Gi`.
fn joined(spec: &PodSpec, requests: &[Requests]) -> String {
    let containers = spec.containers.iter().zip(requests).map(|(container, requests)| {
        let amounts: Vec<String> =
            requests.iter().map(|(resource, amount)| format!("{resource} {amount}")).collect();
        format!("{}: {}", container.name, amounts.join(", "))
    });
    containers.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Divergence;
    use crate::engine::VpaEngines;
    use crate::engine::model::Model;
    use crate::run::{Outcome, Verdict, run_one};
    use crate::world::UpdaterSettings;
    use kube_autoscaler_models::quantity::Quantity;
    use kube_autoscaler_models::rules::{Release, VpaRelease};
    use kube_autoscaler_models::vpa::admission::admitted;
    use kube_lockstep_scenario::Scenario;
    use kube_lockstep_scenario::testing::scenario;

    /// The models, with an updater whose answers are altered.
    struct Altered {
        model: Model,
        alter: fn(&mut UpdaterAnswer),
    }

    impl Engine for Altered {
        fn name(&self) -> &'static str {
            "altered"
        }

        fn release(&self) -> Release {
            self.model.release()
        }

        fn vpa(&mut self, release: VpaRelease) -> Result<VpaEngines, EngineError> {
            let updater = Box::new(AlteredUpdater { release, alter: self.alter });
            Ok(VpaEngines { updater: Some(updater), ..self.model.vpa(release)? })
        }

        fn open<'a>(
            &'a mut self,
            scenario: &Scenario,
        ) -> Result<Box<dyn Session + 'a>, EngineError> {
            self.model.open(scenario)
        }
    }

    struct AlteredUpdater {
        release: VpaRelease,
        alter: fn(&mut UpdaterAnswer),
    }

    impl Engine<VpaUpdater> for AlteredUpdater {
        fn name(&self) -> &'static str {
            "altered"
        }

        fn release(&self) -> VpaRelease {
            self.release
        }

        fn open<'a>(
            &'a mut self,
            settings: &UpdaterSettings,
        ) -> Result<Box<dyn Session<VpaUpdater> + 'a>, EngineError> {
            let (settings, alter) = (settings.clone(), self.alter);
            Ok(Box::new(AlteredSession { settings, alter, answers: Vec::new() }))
        }
    }

    struct AlteredSession {
        settings: UpdaterSettings,
        alter: fn(&mut UpdaterAnswer),
        answers: Vec<Vec<UpdaterAnswer>>,
    }

    impl Session<VpaUpdater> for AlteredSession {
        fn send(&mut self, step: &UpdaterStep) -> Result<(), EngineError> {
            let answer = |of: &ManagedPods| {
                let admitted = of.pods.iter().map(|pod| {
                    let new = admitted(&of.vpa, &pod.spec, &of.limits);
                    requests_of(new.as_ref().unwrap_or(&pod.spec))
                });
                let mut answer =
                    UpdaterAnswer { admitted: admitted.collect(), ..UpdaterAnswer::default() };
                if let UpdaterStep::Run(now, _) = step {
                    answer.updates = self.settings.updater(of, *now).run_once(&of.pods);
                }
                (self.alter)(&mut answer);
                answer
            };
            self.answers.push(step.pods().iter().map(answer).collect());
            Ok(())
        }

        fn receive(&mut self) -> Result<Vec<UpdaterAnswer>, EngineError> {
            Ok(self.answers.remove(0))
        }

        fn close(self: Box<Self>) -> Result<(), EngineError> {
            Ok(())
        }
    }

    /// Pods that use three times their requests, with a VPA of this update mode. The first run of
    /// the updater evicts one of them. `utilization`: in the status of the HPA at 3m.
    fn run(mode: &str, utilization: i32, alter: fn(&mut UpdaterAnswer)) -> Outcome {
        let text = format!(
            "
apiVersion: kube-lockstep.dev/v1alpha1
kind: Scenario
requirement: The updater evicts one of two pods.
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {{name: web}}
  spec:
    scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
    minReplicas: 2
    maxReplicas: 2
    metrics:
      - type: Resource
        resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 50}}}}
vpa:
  apiVersion: autoscaling.k8s.io/v1
  kind: VerticalPodAutoscaler
  metadata: {{name: web}}
  spec:
    targetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
    updatePolicy: {{updateMode: {mode}}}
recommender:
  flags: {{storage: prometheus, confidence-interval-cpu: 10m, cpu-histogram-decay-half-life: 10m}}
workload:
  replicas: 2
  containers: [{{name: app, requests: {{cpu: 100m}}}}]
  startup: {{pending: 2s, ready: 20s}}
metrics:
  resource: [{{name: cpu, perPod: 300m}}]
until: 6m
expect: [{{at: 3m, metrics: [{{name: cpu, utilization: {utilization}}}]}}]
"
        );
        let model = Model::new(Release::NEWEST);
        run_one(&scenario(&text), &mut Altered { model, alter }, &[])
    }

    fn divergence(outcome: &Outcome) -> &Divergence {
        match &outcome.verdict {
            Verdict::Diverges(divergence) => divergence,
            verdict => panic!("{verdict:?}"),
        }
    }

    #[test]
    fn the_engine_decides_which_pods_are_evicted() {
        let faithful = run("Recreate", 85, |_| {});
        assert_eq!(faithful.verdict, Verdict::Conforms);
        let idle = run("Recreate", 300, |answer| answer.updates.clear());
        let found = divergence(&idle);
        assert_eq!((found.controller, found.tick), (Controller::Updater, 1));
        assert_eq!(found.at, Time::from_secs(60));
        assert_eq!(found.fields[0].field.to_string(), "updater: changes of pods");
        assert!(
            found.why.starts_with("evicts web-0: container app requests no memory;"),
            "{}",
            found.why
        );
        assert!(idle.not_compared > 0);

        // The HPA controller sees the cluster of an updater that evicts nothing.
        let trace = |outcome: &Outcome| outcome.hpa().map(|run| run.trace.ticks.clone());
        assert_eq!(trace(&idle), trace(&run("Initial", 300, |_| {})));
        assert_ne!(trace(&idle), trace(&faithful));
    }

    #[test]
    fn the_engine_decides_the_requests_of_new_pods() {
        let outcome = run("Recreate", 3, |answer| {
            for requests in answer.admitted.iter_mut().flatten() {
                requests.insert("cpu".into(), Quantity::parse("10").expect("a quantity"));
            }
        });
        let found = divergence(&outcome);
        assert_eq!(found.controller, Controller::Updater);
        assert!(
            found.fields[0].field.to_string().starts_with("admission: requests of the new pod")
        );
        // The new pod has 10 cores, of which it uses 0.3.
        assert_eq!(outcome.unmet, []);
    }
}
