//! The reference model as an engine: a cluster of simulated objects with the model's controller.
//!
//! [`Simulation`] is also the predictor of a lockstep run. There its cluster follows the engine:
//! the engine's observed writes are committed to it, not the model's own decisions.

use std::cell::Cell;
use std::sync::Arc;

use super::model_recommender::ModelRecommender;
use super::sent_events::SentEvents;
use super::{Engine, EngineError, RecommenderEngine, Session, Step};
use crate::model::api::{CrossVersionObjectReference, HpaSpec, with_group};
use crate::model::flags::{FeatureGates, Gate};
use crate::model::hpa::{self, ApiServer, ApiVersion, Controller, Decision, Input};
use crate::model::observation::Observation;
use crate::model::rules::{MissingScale, Release, Rules, VpaRelease};
use crate::model::time::Time;
use crate::scenario::Scenario;
use crate::scenario::resolved::{ScalableKind, usual_plural};
use crate::trace::{ApiAnswer, Stepped};
use crate::world::{Change, Cluster};

/// The engine's name.
pub const NAME: &str = "model";

/// A cluster and the model's controller on it.
#[derive(Clone, Debug)]
pub struct Simulation {
    cluster: Cluster,
    controller: Controller,
    rules: Rules,
    gates: FeatureGates,
    /// Every HPA that exists at any time of the scenario.
    hpas: Vec<Served>,
    targets: Vec<Target>,
    kinds: Vec<Kind>,
    /// Whether several reconciles can be due, or in progress, at the same time.
    concurrent: bool,
}

/// An HPA of the scenario.
#[derive(Clone, Debug)]
struct Served {
    key: Arc<str>,
    name: Arc<str>,
    /// Whether the next write of the status also changes the spec, because the conversion to the
    /// storage version `autoscaling/v1` loses a part of the spec that it could still read.
    lossy: Cell<bool>,
    /// The last spec whose target was mapped to a resource, and the result.
    mapped: Option<(Arc<HpaSpec>, Mapped)>,
}

/// The scale of a target, or the error of the mapping from kind to resource.
type Mapped = Result<ScaleLocation, String>;

/// The resource of a scale.
#[derive(Clone, Debug)]
struct ScaleLocation {
    /// The resource with its group, as the controller requests it.
    asked: Arc<str>,
    /// The resources that may have the object. If empty, the API server has no such scale.
    found: Vec<Arc<str>>,
}

/// A kind that the API server serves, and its resource with its group.
#[derive(Clone, Debug)]
struct Kind {
    group: String,
    kind: String,
    resource: Arc<str>,
    /// Whether the kind has the scale subresource.
    scales: bool,
}

/// An object with the scale subresource.
#[derive(Clone, Debug)]
struct Target {
    group: String,
    kind: String,
    /// The resource with its group.
    resource: Arc<str>,
    name: Arc<str>,
}

impl Simulation {
    /// A cluster without objects, with a running controller.
    #[must_use]
    pub fn new(scenario: &Scenario, rules: Rules) -> Simulation {
        let gates = scenario.gates_by(&rules);
        let hpas = scenario.hpas.iter().map(|hpa| Served {
            key: format!("{}/{}", scenario.namespace, hpa.name).into(),
            name: hpa.name.clone(),
            lossy: Cell::new(false),
            mapped: None,
        });
        let targets = scenario.targets().map(|target| Target {
            group: target.group.to_owned(),
            kind: target.kind.to_owned(),
            resource: target.group_resource().into(),
            name: target.name.clone(),
        });
        let served = |kind: &ScalableKind<'_>, scales: bool| Kind {
            group: kind.group.to_owned(),
            kind: kind.kind.to_owned(),
            resource: kind.group_resource().into(),
            scales,
        };
        let with_scale = scenario.kinds();
        let with_scale = with_scale.iter().map(|kind| served(kind, true));
        let without = scenario.kinds_without_scale();
        let without = without.iter().map(|kind| served(kind, false));
        let kinds = with_scale.chain(without);
        Simulation {
            cluster: Cluster::new(gates.enabled(Gate::HpaGeneration)),
            controller: Controller::new(rules, scenario.flags_by(&rules), gates),
            rules,
            gates,
            hpas: hpas.collect(),
            targets: targets.collect(),
            kinds: kinds.collect(),
            concurrent: scenario.may_interleave(),
        }
    }

    /// Makes the controller use a clock that advances during a reconcile.
    #[must_use]
    pub fn with_wall_clock(mut self) -> Simulation {
        self.controller = self.controller.with_wall_clock();
        self
    }

    /// Applies a change and notifies the controller as its informers would.
    ///
    /// # Panics
    /// If a pod names a template that was not defined before; the world always defines it first.
    pub fn apply(&mut self, change: &Change, now: Time) -> Option<ApiAnswer> {
        let of = change.hpa_name().and_then(|name| self.hpas.iter().find(|hpa| *hpa.name == *name));
        let name = of.map(|hpa| hpa.name.clone());
        let before = name.as_ref().and_then(|name| self.cluster.hpa(name));
        let before = before.map(|hpa| (hpa.generation, hpa.spec.clone()));
        let (rules, gates) = (self.rules, self.gates);
        let server = ApiServer { rules: &rules, gates: &gates };
        let lossy = Cell::new(false);
        let admission = |spec: &mut HpaSpec, version: ApiVersion| {
            let name = name.as_deref().unwrap_or_default();
            let old = before.as_ref().map(|(_, spec)| &**spec);
            if version == ApiVersion::V1 && rules.admission.zero_total_is_none {
                hpa::drop_zero_totals(spec);
            }
            hpa::drop_disabled_fields(spec, old, &gates);
            // Admission applies the defaults of the submitted version; the remaining ones are
            // applied when the object is read from storage.
            if version == ApiVersion::V2 {
                hpa::set_defaults(spec);
            }
            hpa::admit(name, spec, old, server)?;
            if rules.admission.stored_as_v1 {
                hpa::spec_through_v1(spec, rules.admission.all_percentages_are_kept);
                if !rules.admission.serves_v2 {
                    // The controller reads it as v1 as well.
                    let once = spec.clone();
                    hpa::spec_through_v1(spec, rules.admission.all_percentages_are_kept);
                    lossy.set(once != *spec);
                }
            } else {
                hpa::set_defaults(spec);
            }
            Ok(())
        };
        let edits = self.cluster.hpa_edits();
        let answer = self.cluster.apply(change, &admission);
        let answer = answer.expect("the world defines a template before a pod uses it");
        if let Some(Served { key, name, lossy: was_lossy, .. }) = of {
            let after = self.cluster.hpa(name).map(|hpa| hpa.generation);
            if before.is_none() || self.cluster.hpa_edits() != edits {
                was_lossy.set(lossy.get());
            }
            match (before, after) {
                (None, Some(_)) => self.controller.hpa_added(key, now),
                (Some(_), None) => self.controller.hpa_deleted(key, now),
                (Some((before, _)), Some(after)) if self.cluster.hpa_edits() != edits => {
                    self.controller.hpa_updated(key, before != after, now);
                }
                _ => {}
            }
        }
        if matches!(change, Change::RestartController) {
            // The new controller lists the HPAs by name.
            let existing = self.cluster.hpas();
            let served = existing.filter_map(|hpa| self.hpas.iter().find(|it| it.name == hpa.name));
            let keys: Vec<Arc<str>> = served.map(|served| served.key.clone()).collect();
            self.controller.restarted(&keys, now);
        }
        answer.map(|outcome| ApiAnswer { at: now, outcome })
    }

    /// The time when the controller next starts a reconcile or resumes a blocked reconcile.
    #[must_use]
    pub fn next_sync(&self) -> Option<Time> {
        let next = self.controller.next_sync();
        if !self.concurrent {
            return next;
        }
        let resume = self.controller.next_to_resume().map(|(at, _)| at);
        next.into_iter().chain(resume).min()
    }

    /// Returns true if the reconcile of this HPA is blocked; without a name, if any reconcile is.
    #[must_use]
    pub fn is_blocked(&self, hpa: Option<&str>) -> bool {
        let key = hpa.and_then(|name| self.hpas.iter().find(|served| *served.name == *name));
        self.controller.is_blocked(key.map(|served| &*served.key))
    }

    /// Returns true if the controller's informer resyncs at exactly this time.
    #[must_use]
    pub fn resyncs_at(&self, instant: Time) -> bool {
        self.controller.resyncs_at(instant)
    }

    /// Makes the pending reconciles due at `now` unless a reconcile is already due: on a real
    /// clock, a reconcile can begin slightly before its predicted time.
    pub fn mark_ready(&mut self, now: Time) {
        if self.next_sync().is_some_and(|due| due <= now) {
            return;
        }
        for served in &self.hpas {
            self.controller.mark_ready(&served.key, now);
        }
    }

    /// Runs one reconcile that is due at `now`. Returns `None` if there is nothing to reconcile or
    /// if the reconcile is blocked. Does not change the cluster: see [`Simulation::commit`].
    pub fn sync(&mut self, now: Time) -> Option<Decision> {
        let mut decision = Decision::default();
        self.sync_into(now, &mut decision).then_some(decision)
    }

    /// Like [`Simulation::sync`], but reuses `decision`. Returns false if there is no decision.
    pub fn sync_into(&mut self, now: Time, decision: &mut Decision) -> bool {
        let resumes = self.concurrent && self.resumes(now);
        let index = if resumes { self.resuming() } else { self.peek(now) };
        self.map_target(index);
        let Some(served) = self.hpas.get(index) else { return false };
        let hpa = self.cluster.hpa(&served.name);
        let first = &self.targets[0];
        let mapped = served.mapped.as_ref().map(|(_, place)| place.as_ref());
        let (place, mapping_error) = match mapped {
            Some(Ok(place)) => (Some(place), None),
            Some(Err(error)) => (None, Some(error.as_str())),
            None => (None, None),
        };
        let asked = place.map_or(&first.resource, |place| &place.asked);
        let name = hpa.map_or(&*first.name, |hpa| &hpa.spec.scale_target_ref.name);
        let found = place.map(|place| place.found.as_slice()).unwrap_or_default();
        let resource = match found {
            [only] => only,
            several => {
                let there = |resource: &&Arc<str>| self.cluster.has_scale(resource, name);
                several.iter().find(there).unwrap_or(asked)
            }
        };
        let scale = match place {
            Some(_) if found.is_empty() => Err(self.cluster.no_scale()),
            _ => self.cluster.scale(
                resource,
                || missing_scale(self.rules.scale.missing_on_read, asked),
                name,
            ),
        };
        let faults = self.cluster.faults();
        let missing = || missing_scale(self.rules.scale.missing_on_write, asked);
        let update_error = self.cluster.scale_update_error(resource, missing, name);
        let input = Input {
            now,
            hpa,
            scale: scale.as_ref().copied(),
            scale_resource: asked,
            mapping_error,
            pods: self.cluster.pods(),
            pod_metrics: self.cluster.pod_metrics(),
            custom_metrics: self.cluster.custom_metrics(),
            update_scale: update_error.as_ref(),
            update_status: faults.update_status.as_ref(),
            slow_metrics: faults.slow_metrics,
        };
        if !self.concurrent {
            return self.controller.sync_into(&input, decision);
        }
        let result = match resumes {
            true => self.controller.resume(&input),
            false => self.controller.process(&input),
        };
        let reconciled = result.decision();
        let decided = reconciled.is_some();
        *decision = reconciled.unwrap_or_default();
        decided
    }

    /// Maps the target of an HPA to its resource, unless its spec has not changed since the last
    /// mapping.
    fn map_target(&mut self, index: usize) {
        let Some(served) = self.hpas.get_mut(index) else { return };
        let hpa = self.cluster.hpa(&served.name);
        if let Some(hpa) = hpa
            && !served.mapped.as_ref().is_some_and(|(spec, _)| Arc::ptr_eq(spec, &hpa.spec))
        {
            let reference = &hpa.spec.scale_target_ref;
            let location = match self.rules.scale.in_extensions {
                true => Ok(of_extensions(&self.kinds, &reference.kind)),
                false => {
                    let quoted = self.rules.texts.unknown_kind_is_quoted;
                    map_to_resource(&self.kinds, reference, quoted)
                }
            };
            served.mapped = Some((hpa.spec.clone(), location));
        }
    }

    /// Returns true if a blocked reconcile can resume; it does so before a new one begins.
    fn resumes(&self, now: Time) -> bool {
        self.controller.next_to_resume().is_some_and(|(at, _)| at <= now)
    }

    /// The index of the HPA whose reconcile resumes next.
    fn resuming(&self) -> usize {
        let key = self.controller.next_to_resume().map(|(_, key)| key);
        let served = |hpa: &Served| key.is_some_and(|key| hpa.key == *key);
        self.hpas.iter().position(served).unwrap_or(usize::MAX)
    }

    /// The index of the HPA that is reconciled next.
    fn peek(&mut self, now: Time) -> usize {
        if self.hpas.len() == 1 {
            return 0;
        }
        let Some(key) = self.controller.peek(now) else { return usize::MAX };
        self.hpas.iter().position(|hpa| hpa.key == *key).unwrap_or(usize::MAX)
    }

    /// See [`Controller::follow_orders`].
    pub fn follow_orders(&mut self, orders: impl IntoIterator<Item = Vec<String>>) {
        self.controller.follow_orders(orders);
    }

    /// Commits the writes of a reconcile to the cluster: the scale and the HPA's status. `end` is
    /// the end of the reconcile, when the status is written. Returns the index of the target that
    /// was scaled, and its new replicas.
    pub fn commit(&mut self, tick: &Observation, end: Time) -> Option<(usize, i32)> {
        let scaled = tick.scaled_to().and_then(|replicas| {
            let target = self.target_of(&tick.hpa)?;
            let Target { resource, name, .. } = &self.targets[target];
            self.cluster.write_scale(resource, name, replicas);
            Some((target, replicas))
        });
        if let Some(write) = tick.status_write().filter(|write| write.error.is_none())
            && let Some(served) = self.hpas.iter().find(|hpa| hpa.name == tick.hpa)
        {
            let mut status = write.status.clone();
            if !self.rules.status.scale_times_are_whole {
                // The API shows it in whole seconds, but stores it exactly.
                let old = self.cluster.hpa(&served.name).map(|hpa| hpa.status.last_scale_time);
                let rescaled = tick.scaled_to().is_some();
                status.last_scale_time = if rescaled { Some(end) } else { old.flatten() };
            }
            let lost = served.lossy.take();
            if self.cluster.write_status(&served.name, status) || lost {
                self.controller.hpa_updated(&served.key, false, end);
            }
        }
        scaled
    }

    /// Returns true if the cluster has a pod of this name.
    #[must_use]
    pub fn has_pod(&self, name: &str) -> bool {
        self.cluster.pods().iter().any(|pod| *pod.name == *name)
    }

    /// The index of the target of a stored HPA.
    #[must_use]
    pub fn target_of(&self, hpa: &str) -> Option<usize> {
        let reference = &self.cluster.hpa(hpa)?.spec.scale_target_ref;
        let group = group_of(reference);
        self.targets.iter().position(|target| {
            *target.name == *reference.name
                && target.kind == reference.kind
                && (target.group == group || self.rules.scale.in_extensions)
        })
    }

    /// The cluster in its present state.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }
}

fn group_of(target: &CrossVersionObjectReference) -> &str {
    let version = target.api_version.as_deref().unwrap_or_default();
    version.split_once('/').map_or("", |(group, _)| group)
}

/// Maps a kind to its resource. Custom kinds are served only if they are targets.
///
/// Upstream: apimachinery, pkg/api/meta, NoKindMatchError
fn map_to_resource(
    kinds: &[Kind],
    reference: &CrossVersionObjectReference,
    quoted: bool,
) -> Result<ScaleLocation, String> {
    let (group, kind) = (group_of(reference), &reference.kind);
    let mut same = kinds.iter().filter(|known| known.group == group && known.kind == *kind);
    let known = same.next().map(|known| ScaleLocation {
        asked: known.resource.clone(),
        found: known.scales.then(|| known.resource.clone()).into_iter().collect(),
    });
    known.ok_or_else(|| match quoted {
        true => format!("no matches for kind {kind:?} in group {group:?}"),
        false => format!("no matches for {group}/, Kind={kind}"),
    })
}

/// Old releases request the scale of any kind in the group `extensions`. It serves the scales of
/// three resources, which are the same objects as in their own groups.
///
/// Upstream: client-go, kubernetes/typed/extensions/v1beta1/scale_expansion.go; apimachinery,
/// pkg/api/meta, KindToResource (until Kubernetes 1.8)
fn of_extensions(kinds: &[Kind], kind: &str) -> ScaleLocation {
    const SERVED: [&str; 3] = ["deployments", "replicasets", "replicationcontrollers"];
    let plural = usual_plural(kind);
    let served = SERVED.contains(&plural.as_str());
    let own = |known: &&Kind| {
        let (resource, group) = known.resource.split_once('.').unwrap_or((&known.resource, ""));
        served && resource == plural && matches!(group, "" | "apps" | "extensions")
    };
    let found = kinds.iter().filter(own).map(|known| known.resource.clone()).collect();
    ScaleLocation { asked: format!("{plural}.extensions").into(), found }
}

/// The API server's name for a missing scale that was requested as this resource.
///
/// Upstream: pkg/registry, ScaleREST of each kind
fn missing_scale(names: MissingScale, asked: &str) -> String {
    let (resource, group) = asked.split_once('.').unwrap_or((asked, ""));
    let own_group = match (names, resource, group) {
        (MissingScale::ByExtensions, "deployments" | "replicasets", "apps" | "extensions")
        | (MissingScale::ByExtensions, "replicationcontrollers", "extensions") => "extensions",
        (MissingScale::ByExtensions | MissingScale::ByApps, "replicationcontrollers", "") => {
            "autoscaling"
        }
        (MissingScale::ByApps | MissingScale::All, "deployments" | "replicasets", "apps")
        | (MissingScale::All, "statefulsets", "apps") => "apps",
        (MissingScale::All, "replicationcontrollers", "") => "",
        _ => return asked.to_owned(),
    };
    with_group(&format!("{resource}/scale"), own_group)
}

/// The reference model of one release.
#[derive(Clone, Debug)]
pub struct Model {
    release: Release,
}

impl Model {
    /// Creates the model of a release.
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

    fn recommender(
        &mut self,
        release: VpaRelease,
    ) -> Result<Box<dyn RecommenderEngine>, EngineError> {
        Ok(Box::new(ModelRecommender::new(NAME, release)))
    }

    fn open<'a>(&'a mut self, scenario: &Scenario) -> Result<Box<dyn Session + 'a>, EngineError> {
        let rules = Rules::of(self.release);
        Ok(Box::new(ModelSession {
            simulation: Simulation::new(scenario, rules),
            sent_events: SentEvents::new(rules),
            now: Time::ZERO,
            answers: Vec::new(),
        }))
    }
}

struct ModelSession {
    simulation: Simulation,
    sent_events: SentEvents,
    now: Time,
    answers: Vec<Stepped>,
}

impl ModelSession {
    /// Runs every reconcile that is due by this time.
    fn reconcile(&mut self, until: Time, stepped: &mut Stepped) {
        while let Some(due) = self.simulation.next_sync().filter(|due| *due <= until) {
            let Some(decision) = self.simulation.sync(due) else { continue };
            self.simulation.commit(&decision.observation, decision.end);
            stepped.ticks.push(self.sent_events.predict(&decision, None).into_owned());
        }
    }
}

impl Session for ModelSession {
    fn send(&mut self, step: &Step) -> Result<(), EngineError> {
        let mut stepped = Stepped { now: step.until, ..Stepped::default() };
        for change in &step.apply {
            stepped.api.extend(self.simulation.apply(change, self.now));
            self.sent_events.apply(change);
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
                why: "no step was sent".to_owned(),
                output: String::new(),
            });
        }
        Ok(self.answers.remove(0))
    }

    fn close(self: Box<Self>) -> Result<(), EngineError> {
        Ok(())
    }
}
