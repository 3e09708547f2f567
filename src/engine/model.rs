//! The reference model as an engine: a cluster of the world's objects with the model's controller.
//!
//! [`Simulation`] is also the predictor of a lockstep run: there, what an engine was seen to do is
//! what happens to its cluster, not what the model would have done.

use std::sync::Arc;

use super::{Engine, EngineError, Session, Step};
use crate::model::api::{CrossVersionObjectReference, HpaSpec, with_group};
use crate::model::flags::{FeatureGates, Gate};
use crate::model::hpa::{self, ApiVersion, Controller, Decision, Input};
use crate::model::observation::Observation;
use crate::model::rules::{Release, Rules};
use crate::model::time::Time;
use crate::scenario::Scenario;
use crate::trace::{ApiAnswer, ApiOutcome, Stepped};
use crate::world::{Change, Cluster, HpaAnswer, HpaOutcome};

/// The engine's name.
pub const NAME: &str = "model";

/// A cluster and the model's controller on it.
#[derive(Clone, Debug)]
pub struct Simulation {
    cluster: Cluster,
    controller: Controller,
    gates: FeatureGates,
    key: Arc<str>,
    name: Arc<str>,
    resource: Arc<str>,
    target: Arc<str>,
    group: String,
    kind: String,
    /// Why the target of this spec can't be mapped to a resource, if it can't.
    mapped: Option<(Arc<HpaSpec>, Option<String>)>,
}

impl Simulation {
    /// A cluster without objects, with a running controller.
    #[must_use]
    pub fn new(scenario: &Scenario, release: Release) -> Simulation {
        let rules = Rules::of(release);
        let workload = &scenario.workload;
        Simulation {
            cluster: Cluster::new(scenario.gates.enabled(Gate::HpaGeneration)),
            controller: Controller::new(rules, scenario.flags, scenario.gates),
            gates: scenario.gates,
            key: format!("{}/{}", scenario.namespace, scenario.hpa_name).into(),
            name: scenario.hpa_name.clone(),
            resource: with_group(&workload.resource, &workload.group).into(),
            target: workload.name.clone(),
            group: workload.group.clone(),
            kind: workload.kind.clone(),
            mapped: None,
        }
    }

    /// Applies a change; the controller hears of it as its informers would tell it.
    ///
    /// # Panics
    /// If a pod names a template that was not defined before: the world always defines it.
    pub fn apply(&mut self, change: &Change, now: Time) -> Option<ApiAnswer> {
        let before = self.cluster.hpa(&self.name).map(|hpa| hpa.generation);
        let spec_before = self.cluster.hpa(&self.name).map(|hpa| hpa.spec.clone());
        let (name, gates) = (self.name.clone(), self.gates);
        let admission = |spec: &mut HpaSpec, version: ApiVersion| {
            // Defaults are those of the version in which it is given; the others come when the
            // object is read from the storage.
            if version == ApiVersion::V2 {
                hpa::set_defaults(spec);
            }
            let errors = match &spec_before {
                None => hpa::validate(&name, spec, &gates),
                Some(before) => hpa::validate_update(spec, before, &gates),
            };
            hpa::set_defaults(spec);
            if errors.is_empty() { Ok(()) } else { Err(hpa::invalid_message(&name, &errors)) }
        };
        let edits = self.cluster.hpa_edits();
        let answer = self.cluster.apply(change, &admission);
        let answer = answer.expect("the world defines a template before it uses it");
        let after = self.cluster.hpa(&self.name).map(|hpa| hpa.generation);
        match (before, after) {
            (None, Some(_)) => self.controller.hpa_added(&self.key, now),
            (Some(_), None) => self.controller.hpa_deleted(&self.key, now),
            (Some(before), Some(after)) if self.cluster.hpa_edits() != edits => {
                self.controller.hpa_updated(&self.key, before != after, now);
            }
            _ => {}
        }
        if matches!(change, Change::RestartController) {
            let hpas: Vec<Arc<str>> = after.iter().map(|_| self.key.clone()).collect();
            self.controller.restarted(&hpas, now);
        }
        answer.map(|answer| api_answer(answer, now))
    }

    /// When the controller next reconciles.
    #[must_use]
    pub fn next_sync(&self) -> Option<Time> {
        self.controller.next_sync()
    }

    /// Reconciles what is due at this instant. The cluster is not changed by it: see
    /// [`Simulation::settle`].
    pub fn sync(&mut self, now: Time) -> Option<Decision> {
        let mut decision = Decision::default();
        self.sync_into(now, &mut decision).then_some(decision)
    }

    /// [`Simulation::sync`] for callers who keep no decision: this one is overwritten. False:
    /// nothing was decided.
    pub fn sync_into(&mut self, now: Time, decision: &mut Decision) -> bool {
        let faults = self.cluster.faults();
        let hpa = self.cluster.hpa(&self.name);
        let target = hpa.map(|hpa| &hpa.spec.scale_target_ref);
        if let Some(hpa) = hpa
            && !self.mapped.as_ref().is_some_and(|(spec, _)| Arc::ptr_eq(spec, &hpa.spec))
        {
            let error = self.mapping_error(&hpa.spec.scale_target_ref);
            self.mapped = Some((hpa.spec.clone(), error));
        }
        let mapping_error = self.mapped.as_ref().and_then(|(_, error)| error.as_deref());
        let name = target.map_or(&*self.target, |target| &target.name);
        let scale = self.cluster.scale(&self.resource, name);
        let input = Input {
            now,
            hpa,
            scale: scale.as_ref().copied(),
            scale_resource: &self.resource,
            mapping_error,
            pods: self.cluster.pods(),
            pod_metrics: self.cluster.pod_metrics(),
            custom_metrics: self.cluster.custom_metrics(),
            update_scale: faults.update_scale.as_ref(),
            update_status: faults.update_status.as_ref(),
        };
        self.controller.sync_into(&input, decision)
    }

    /// Only the workload's kind has a resource here. An HPA that was turned to another kind meets
    /// what the API server's discovery has of it: nothing.
    ///
    /// Upstream: apimachinery, pkg/api/meta, NoKindMatchError
    fn mapping_error(&self, target: &CrossVersionObjectReference) -> Option<String> {
        let version = target.api_version.as_deref().unwrap_or_default();
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let known = group == self.group && target.kind == self.kind;
        let kind = &target.kind;
        (!known).then(|| format!("no matches for kind {kind:?} in group {group:?}"))
    }

    /// Lets what a reconcile wrote come about: the scale and the HPA's status.
    /// `end` is when the reconcile ended: its last write is the status.
    pub fn settle(&mut self, tick: &Observation, end: Time) {
        if let Some(replicas) = tick.scaled_to() {
            let hpa = self.cluster.hpa(&self.name);
            let name = hpa.map(|hpa| hpa.spec.scale_target_ref.name.clone());
            let name = name.as_deref().unwrap_or(&self.target);
            self.cluster.write_scale(&self.resource, name, replicas);
        }
        if let Some(write) = tick.status_write.as_ref().filter(|write| write.error.is_none())
            && self.cluster.write_status(&self.name, write.status.clone())
        {
            self.controller.hpa_updated(&self.key, false, end);
        }
    }

    /// The cluster as it is.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }
}

fn api_answer(answer: HpaAnswer, at: Time) -> ApiAnswer {
    let outcome = match answer.outcome {
        HpaOutcome::Stored { generation, spec } => {
            ApiOutcome::Stored { generation, spec: Box::new(Arc::unwrap_or_clone(spec)) }
        }
        HpaOutcome::Refused(message) => ApiOutcome::Refused(message),
        HpaOutcome::Deleted => ApiOutcome::Deleted,
    };
    ApiAnswer { at, name: answer.name, outcome }
}

/// The reference model of one release.
#[derive(Clone, Debug)]
pub struct Model {
    release: Release,
}

impl Model {
    /// The model of that release.
    #[must_use]
    pub fn new(release: Release) -> Model {
        Model { release }
    }
}

impl Engine for Model {
    fn name(&self) -> &str {
        NAME
    }

    fn release(&self) -> Release {
        self.release
    }

    fn open<'a>(&'a mut self, scenario: &Scenario) -> Result<Box<dyn Session + 'a>, EngineError> {
        let simulation = Simulation::new(scenario, self.release);
        Ok(Box::new(ModelSession { simulation, now: Time::ZERO, answers: Vec::new() }))
    }
}

struct ModelSession {
    simulation: Simulation,
    now: Time,
    answers: Vec<Stepped>,
}

impl ModelSession {
    /// Reconciles whatever is due by then.
    fn reconcile(&mut self, until: Time, stepped: &mut Stepped) {
        while let Some(due) = self.simulation.next_sync().filter(|due| *due <= until) {
            let Some(decision) = self.simulation.sync(due) else { continue };
            self.simulation.settle(&decision.observation, decision.end);
            stepped.ticks.push(decision.observation);
        }
    }
}

impl Session for ModelSession {
    fn send(&mut self, step: &Step) -> Result<(), EngineError> {
        let mut stepped = Stepped { now: step.until, ..Stepped::default() };
        for change in &step.apply {
            stepped.api.extend(self.simulation.apply(change, self.now));
            self.reconcile(self.now, &mut stepped);
        }
        self.reconcile(step.until, &mut stepped);
        self.now = step.until;
        self.answers.push(stepped);
        Ok(())
    }

    fn receive(&mut self) -> Result<Stepped, EngineError> {
        if self.answers.is_empty() {
            return Err(EngineError::Broken {
                engine: NAME.into(),
                why: "no step was handed over".to_owned(),
                output: String::new(),
            });
        }
        Ok(self.answers.remove(0))
    }

    fn close(self: Box<Self>) -> Result<(), EngineError> {
        Ok(())
    }
}
