//! The reference model as an engine: a cluster of simulated objects with the model's controller.
//!
//! [`Simulation`] is also the predictor of a lockstep run. There its cluster follows the engine:
//! the engine's observed writes are committed to it, not the model's own decisions.

mod caches;
mod interrupted;
mod state;
mod view;

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use caches::{Caches, HpaState};
use educe::Educe;
pub use interrupted::{ChangesDuringReconcile, InterruptedReconcile, Reconciled, StepRequests};
use view::{Hpas, ScaleLocation, Served, Target, View};

use super::model_recommender::ModelRecommender;
use super::sent_events::SentEvents;
use super::{Engine, EngineError, Session, Step, VpaEngines};
use crate::trace::{ApiAnswer, Stepped};
use crate::world::{Change, Cluster};
use kube_autoscaler_models::api::{CrossVersionObjectReference, Hpa, HpaSpec};
use kube_autoscaler_models::flags::{ClusterGates, Gate};
use kube_autoscaler_models::hpa;
use kube_autoscaler_models::hpa::{ApiServer, ApiVersion, Controller, Decision, HpaChange};
use kube_autoscaler_models::observation::{ApiOutcome, ControllerAction, Observation, StatusWrite};
use kube_autoscaler_models::rules::{Release, Rules, VpaRelease};
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::{ScalableKind, usual_plural};

/// The engine's name.
pub const NAME: &str = "model";

/// A cluster and the model's controller on it.
#[derive(Educe, Debug)]
#[educe(Clone)]
pub struct Simulation {
    cluster: Cluster,
    controller: Controller,
    rules: Rules,
    gates: ClusterGates,
    /// Every HPA that exists at any time of the scenario.
    hpas: Vec<Served>,
    targets: Arc<[Target]>,
    kinds: Arc<[ServedKind]>,
    /// True if several reconciles can be due, or in progress, at the same time.
    concurrent: bool,
    /// The controller's caches, if they can lag behind the cluster.
    caches: Option<Box<Caches>>,
}

/// A kind that the API server serves, and its resource with its group.
#[derive(Clone, Debug)]
struct ServedKind {
    group: String,
    kind: String,
    resource: Arc<str>,
    /// True if the kind has the scale subresource.
    scales: bool,
}

/// A reconcile that begins or resumes.
#[derive(Clone, Copy, Debug)]
struct DueReconcile {
    /// The index of its HPA.
    index: usize,
    resumes: bool,
}

/// The objects that a reconcile wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Written {
    /// The index of the target that was scaled, and its new replicas.
    scaled: Option<(usize, i32)>,
    /// The index of the HPA whose status changed.
    status: Option<usize>,
}

/// The effects of a change of the cluster.
struct Applied {
    /// The API server's response, to a change of an HPA.
    answer: Option<ApiOutcome>,
    /// The HPA that changed, by its index.
    hpa: Option<(usize, HpaChange)>,
}

/// Applies defaults and validation to the spec of a new or changed HPA, as an API server does.
/// Returns true if the next write of the status also changes the spec: see [`Served::lossy`].
fn admit(
    name: &str,
    spec: &mut HpaSpec,
    version: ApiVersion,
    old: Option<&HpaSpec>,
    server: ApiServer<'_>,
) -> Result<bool, String> {
    let admission = &server.rules.admission;
    if version == ApiVersion::V1 && admission.zero_total_is_none {
        hpa::drop_zero_totals(spec);
    }
    hpa::drop_disabled_fields(spec, old, server.gates);
    // Admission applies the defaults of the submitted version; the remaining ones are applied when
    // the object is read from storage.
    let lacks_defaults = version == ApiVersion::V2
        && admission.stores_without_defaults
        && (spec.min_replicas.is_none() || spec.metrics.is_empty());
    if version == ApiVersion::V2 {
        hpa::set_defaults(spec);
    }
    hpa::admit(name, spec, old, server)?;
    if !admission.stored_as_v1 {
        hpa::set_defaults(spec);
        return Ok(false);
    }
    hpa::spec_through_v1(spec, admission.all_percentages_are_kept);
    if admission.serves_v2 {
        return Ok(false);
    }
    // The controller reads it as v1 as well.
    let once = spec.clone();
    hpa::spec_through_v1(spec, admission.all_percentages_are_kept);
    Ok(once != *spec || lacks_defaults)
}

impl Simulation {
    /// A cluster without objects, with a running controller.
    #[must_use]
    pub fn new(scenario: &Scenario, rules: Rules) -> Simulation {
        Simulation::with_gates(scenario, rules, scenario.gates_by(&rules).into())
    }

    /// Like [`Simulation::new`], with these feature gates in place of those of the scenario.
    #[must_use]
    pub fn with_gates(scenario: &Scenario, rules: Rules, gates: ClusterGates) -> Simulation {
        let hpas = scenario.hpas.iter().map(|hpa| Served {
            key: format!("{}/{}", scenario.namespace, hpa.name).into(),
            name: hpa.name.clone(),
            lossy: Cell::new(false),
            mapped: None,
            stored: None,
        });
        let targets = scenario.targets().map(|target| Target {
            group: target.group.to_owned(),
            kind: target.kind.to_owned(),
            resource: target.group_resource().into(),
            name: target.name.clone(),
        });
        let served = |kind: &ScalableKind<'_>, scales: bool| ServedKind {
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
            cluster: Cluster::new(gates.api_server.enabled(Gate::HpaGeneration)),
            controller: Controller::new(rules, scenario.flags_by(&rules), gates.controller_manager)
                .with_all_metrics(scenario.observed.all_metrics),
            rules,
            gates,
            hpas: hpas.collect(),
            targets: targets.collect(),
            kinds: kinds.collect(),
            concurrent: scenario.may_interleave(),
            caches: scenario.has_cache_lag().then(|| Box::new(Caches::new())),
        }
    }

    /// Treats the HPAs of a scenario as already stored by the API server `by`: submitting them is
    /// an update, so they keep values that are allowed only in a stored HPA. HPAs that `by` rejects
    /// are created instead.
    #[must_use]
    pub fn with_stored_hpas(mut self, scenario: &Scenario, by: &ApiServer<'_>) -> Simulation {
        for (served, hpa) in self.hpas.iter_mut().zip(&scenario.hpas) {
            let stored = hpa::decode_spec(&hpa.manifest).and_then(|(mut spec, version)| {
                admit(&served.name, &mut spec, version, None, *by)?;
                Ok(Arc::new(spec))
            });
            served.stored = stored.ok();
        }
        self
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
        self.receive(now);
        let Applied { answer, hpa } = self.apply_to_cluster(change);
        if let Some((index, change)) = hpa {
            self.notify(index, change, now);
        }
        self.change_caches(change, now);
        if matches!(change, Change::RestartController) {
            // The new controller lists the HPAs by name.
            let existing = self.cluster.hpas();
            let served = existing.filter_map(|hpa| self.hpas.iter().find(|it| it.name == hpa.name));
            let keys: Vec<Arc<str>> = served.map(|served| served.key.clone()).collect();
            self.controller.restarted(&keys, now);
        }
        answer.map(|outcome| ApiAnswer { at: now, outcome })
    }

    /// Lets the controller's informer receive a change of an HPA that happens at `now`.
    fn notify(&mut self, index: usize, change: HpaChange, now: Time) {
        let Served { key, name, .. } = &self.hpas[index];
        match &mut self.caches {
            None => self.controller.hpa_changed(key, change, now),
            Some(caches) => {
                caches.hpa_changed(HpaState::new(&self.cluster, name, Some(change)), now);
                self.receive(now);
            }
        }
    }

    /// Updates the caches, or their lag, after a change that does not concern an HPA.
    fn change_caches(&mut self, change: &Change, now: Time) {
        let Some(caches) = &mut self.caches else { return };
        match change {
            Change::SetPods(_) | Change::DeletePods(_) => caches.pods_changed(&self.cluster, now),
            Change::Faults(faults) => caches.set_lag(faults.cache_lag),
            Change::RestartController => {
                let name = &self.hpas[0].name;
                caches.restarted(&self.cluster, HpaState::new(&self.cluster, name, None));
            }
            _ => {}
        }
    }

    /// Lets the controller's informers receive the changes that arrive at or before `now`.
    fn receive(&mut self, now: Time) {
        let Some(caches) = &mut self.caches else { return };
        caches.receive_pods(now);
        while let Some((at, change)) = caches.receive_hpa(now) {
            self.controller.hpa_changed(&self.hpas[0].key, change, at);
        }
    }

    /// The time when the controller's caches next receive a change of the HPA.
    #[must_use]
    pub(crate) fn next_late_change(&self) -> Option<Time> {
        self.caches.as_ref()?.next()
    }

    /// Returns true if the controller's caches receive a change exactly when a reconcile is due.
    #[must_use]
    pub(crate) fn receives_when_due(&self, due: Time) -> bool {
        let arrives = self.caches.as_ref().is_some_and(|caches| caches.arrives_at(due));
        arrives && self.controller.next_sync() == Some(due)
    }

    /// Applies a change to the cluster only.
    fn apply_to_cluster(&mut self, change: &Change) -> Applied {
        let of = change.hpa_name();
        let of = of.and_then(|name| self.hpas.iter().position(|hpa| *hpa.name == *name));
        let name = of.map(|index| self.hpas[index].name.clone());
        let before = name.as_ref().and_then(|name| self.cluster.hpa(name));
        let before = before.map(|hpa| (hpa.generation, hpa.spec.clone()));
        // A stored HPA that is deleted is new when it is created again.
        let stored = of.and_then(|index| self.hpas[index].stored.take());
        let old = before.as_ref().map(|(_, spec)| spec.clone()).or(stored);
        let (rules, gates) = (self.rules, self.gates.api_server);
        let server = ApiServer { rules: &rules, gates: &gates };
        let lossy = Cell::new(false);
        let admission = |spec: &mut HpaSpec, version: ApiVersion| {
            let name = name.as_deref().unwrap_or_default();
            lossy.set(admit(name, spec, version, old.as_deref(), server)?);
            Ok(())
        };
        let edits = self.cluster.hpa_edits();
        let answer = self.cluster.apply(change, &admission);
        let answer = answer.expect("the world defines a template before a pod uses it");
        let hpa = of.and_then(|index| {
            let Served { name, lossy: was_lossy, .. } = &self.hpas[index];
            let after = self.cluster.hpa(name).map(|hpa| hpa.generation);
            let mut edited = self.cluster.hpa_edits() != edits;
            let is_stored = matches!(answer, Some(ApiOutcome::Stored { .. }));
            if before.is_some() && is_stored && !edited && was_lossy.take() {
                // What the conversion loses is stored even if the edit changes nothing.
                self.cluster.touch_hpa(name);
                edited = true;
            }
            if before.is_none() || edited {
                was_lossy.set(lossy.get());
            }
            let change = match (before, after) {
                (None, Some(_)) => HpaChange::Added,
                (Some(_), None) => HpaChange::Deleted,
                (Some((before, _)), Some(after)) if edited => {
                    HpaChange::Updated { generation: before != after }
                }
                _ => return None,
            };
            Some((index, change))
        });
        Applied { answer, hpa }
    }

    /// The time when the controller next starts a reconcile or resumes a blocked reconcile.
    #[must_use]
    pub fn next_sync(&self) -> Option<Time> {
        let next = self.controller.next_sync();
        if !self.concurrent {
            // A late change of the HPA can queue its key.
            return next.into_iter().chain(self.next_late_change()).min();
        }
        let resume = self.controller.next_to_resume().map(|(at, _)| at);
        next.into_iter().chain(resume).min()
    }

    /// Returns true if the reconcile of this HPA is blocked; without a name, if any reconcile is.
    #[must_use]
    pub(crate) fn is_blocked(&self, hpa: Option<&str>) -> bool {
        let key = hpa.and_then(|name| self.hpas.iter().find(|served| *served.name == *name));
        self.controller.is_blocked(key.map(|served| &*served.key))
    }

    /// The reconciles that have begun and not ended, up to their current waits, by the names of
    /// their HPAs.
    #[must_use]
    pub fn unfinished(&self) -> Vec<&Decision> {
        let mut unfinished: Vec<&Decision> = self.controller.unfinished().collect();
        unfinished.sort_by(|a, b| a.observation.hpa.cmp(&b.observation.hpa));
        unfinished
    }

    /// The observations of [`Simulation::unfinished`].
    #[must_use]
    pub(crate) fn unfinished_observations(&self) -> Vec<Observation> {
        self.unfinished().into_iter().map(|decision| decision.observation.clone()).collect()
    }

    /// Returns true if the controller's informer resyncs at exactly this time.
    #[must_use]
    pub(crate) fn resyncs_at(&self, instant: Time) -> bool {
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
        self.receive(now);
        let Some(DueReconcile { index, resumes }) = self.due_reconcile(now) else { return false };
        let blocked = self.map_target(DueReconcile { index, resumes });
        let served = &self.hpas[index];
        let stored = self.cluster.hpa(&served.name);
        let seen = seen_by_controller(self.caches.as_deref(), stored);
        let hpas = Hpas { reconciled: blocked.as_ref().or(seen), stored };
        let view = View::new(&self.cluster, served, hpas, &self.targets[0], &self.rules);
        let view = view.with_caches(self.caches.as_deref());
        let input = view.input(now);
        if !self.concurrent {
            return self.controller.sync_into(&input, decision);
        }
        let result = match resumes {
            true => self.controller.resume(&input, &[]),
            false => self.controller.process(&input, &[]),
        };
        let reconciled = result.decision();
        let decided = reconciled.is_some();
        *decision = reconciled.unwrap_or_default();
        decided
    }

    /// The HPA whose reconcile begins or resumes next, if its key is due at `now`.
    fn due_reconcile(&mut self, now: Time) -> Option<DueReconcile> {
        let resumes = self.concurrent && self.resumes(now);
        let index = if resumes { self.resuming() } else { self.peek(now) };
        (index < self.hpas.len()).then_some(DueReconcile { index, resumes })
    }

    /// Maps the target of an HPA at the beginning of its reconcile. If the reconcile was blocked,
    /// returns the HPA as of that time: it may have changed in the meantime.
    fn map_target(&mut self, due: DueReconcile) -> Option<Hpa> {
        let served = &mut self.hpas[due.index];
        let blocked = self.controller.blocked(&served.key).filter(|_| due.resumes);
        let blocked = blocked.map(|(hpa, _)| hpa.clone());
        let seen = seen_by_controller(self.caches.as_deref(), self.cluster.hpa(&served.name));
        served.map_target(blocked.as_ref().or(seen), &self.kinds, &self.rules);
        blocked
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

    /// Commits the writes of a reconcile to the cluster, apart from the first `committed` requests:
    /// the scale and the HPA's status. `end` is the end of the reconcile, when the status is
    /// written. Returns the index of the target that was scaled, and its new replicas.
    pub fn commit(
        &mut self,
        tick: &Observation,
        end: Time,
        committed: usize,
    ) -> Option<(usize, i32)> {
        if !tick.actions().any(ControllerAction::is_write) {
            return None;
        }
        let target = match committed {
            0 if self.caches.is_none() => self.target_of(&tick.hpa),
            // The HPA may have changed in the meantime.
            _ => self.reconciled_target(&tick.hpa),
        };
        let Written { scaled, status } = self.write(tick, end, committed..usize::MAX, target);
        if let Some(index) = status {
            self.notify(index, HpaChange::Updated { generation: false }, end);
        }
        let is_stored = |write: &StatusWrite| write.error.is_none();
        if self.caches.is_some() && tick.status_write().is_some_and(is_stored) {
            self.controller.wrote(&self.hpas[0].key, self.cluster.hpa_version());
        }
        scaled
    }

    /// Stores the writes among some requests of a reconcile of this target.
    fn write(
        &mut self,
        tick: &Observation,
        end: Time,
        requests: Range<usize>,
        target: Option<usize>,
    ) -> Written {
        let mut written = Written::default();
        for (index, request) in tick.requests().enumerate() {
            match request {
                _ if !requests.contains(&index) || request.error().is_some() => {}
                ControllerAction::UpdateScale(write) if !tick.is_elsewhere(write) => {
                    if let Some(target) = target {
                        let Target { resource, name, .. } = &self.targets[target];
                        self.cluster.write_scale(resource, name, write.replicas);
                        written.scaled = Some((target, write.replicas));
                    }
                }
                ControllerAction::UpdateStatus(write) => {
                    written.status = self.write_status(tick, write, end);
                }
                _ => {}
            }
        }
        written
    }

    /// Stores a status. Returns the index of the HPA if it changed.
    fn write_status(
        &mut self,
        tick: &Observation,
        write: &StatusWrite,
        end: Time,
    ) -> Option<usize> {
        let index = self.hpas.iter().position(|hpa| hpa.name == tick.hpa)?;
        let served = &self.hpas[index];
        let mut status = write.status.clone();
        if !self.rules.status.scale_times_are_whole {
            // The API shows it in whole seconds, but stores it exactly.
            let old = self.cluster.hpa(&served.name).map(|hpa| hpa.status.last_scale_time);
            let rescaled = tick.scaled_to().is_some();
            status.last_scale_time = if rescaled { Some(end) } else { old.flatten() };
        }
        let lost = served.lossy.take();
        let mut changed = self.cluster.write_status(&served.name, status);
        if lost && !changed {
            self.cluster.touch_hpa(&served.name);
            changed = true;
        }
        changed.then_some(index)
    }

    /// Returns true if the cluster has a pod of this name.
    #[must_use]
    pub fn has_pod(&self, name: &str) -> bool {
        self.cluster.pods().iter().any(|pod| *pod.name == *name)
    }

    /// The index of the target of a stored HPA.
    #[must_use]
    pub fn target_of(&self, hpa: &str) -> Option<usize> {
        self.target_in(&self.cluster.hpa(hpa)?.spec)
    }

    /// The index of the target that an HPA had when its last reconcile began.
    #[must_use]
    pub(crate) fn reconciled_target(&self, hpa: &str) -> Option<usize> {
        let served = self.hpas.iter().find(|served| *served.name == *hpa)?;
        self.target_in(&served.mapped.as_ref()?.0)
    }

    fn target_in(&self, spec: &HpaSpec) -> Option<usize> {
        let reference = &spec.scale_target_ref;
        let group = reference.group();
        self.targets.iter().position(|target| {
            *target.name == *reference.name
                && target.kind == reference.kind
                && (target.group == group || self.rules.scale.in_extensions)
        })
    }

    /// The cluster in its current state.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }
}

/// The HPA in the controller's cache, if it has one, or else the stored HPA.
fn seen_by_controller<'a>(caches: Option<&'a Caches>, stored: Option<&'a Hpa>) -> Option<&'a Hpa> {
    caches.map_or(stored, |caches| caches.hpa().hpa.as_ref())
}

impl Served {
    /// Maps the target of the HPA to its resource, unless its spec has not changed since the last
    /// mapping.
    fn map_target(&mut self, hpa: Option<&Hpa>, kinds: &[ServedKind], rules: &Rules) {
        if let Some(hpa) = hpa
            && !self.mapped.as_ref().is_some_and(|(spec, _)| Arc::ptr_eq(spec, &hpa.spec))
        {
            let reference = &hpa.spec.scale_target_ref;
            let location = match rules.scale.in_extensions {
                true => Ok(location_in_extensions(kinds, &reference.kind)),
                false => map_to_resource(kinds, reference, rules.texts.unknown_kind_is_quoted),
            };
            self.mapped = Some((hpa.spec.clone(), location));
        }
    }
}

/// Maps a kind to its resource. Custom kinds are served only if they are targets.
///
/// Upstream: apimachinery, pkg/api/meta, NoKindMatchError
fn map_to_resource(
    kinds: &[ServedKind],
    reference: &CrossVersionObjectReference,
    quoted: bool,
) -> Result<ScaleLocation, String> {
    let (group, kind) = (reference.group(), &reference.kind);
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
fn location_in_extensions(kinds: &[ServedKind], kind: &str) -> ScaleLocation {
    const SERVED: [&str; 3] = ["deployments", "replicasets", "replicationcontrollers"];
    let plural = usual_plural(kind);
    let served = SERVED.contains(&plural.as_str());
    let own = |known: &&ServedKind| {
        let (resource, group) = known.resource.split_once('.').unwrap_or((&known.resource, ""));
        served && resource == plural && matches!(group, "" | "apps" | "extensions")
    };
    let found = kinds.iter().filter(own).map(|known| known.resource.clone()).collect();
    ScaleLocation { asked: format!("{plural}.extensions").into(), found }
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

    fn vpa(&mut self, release: VpaRelease) -> Result<VpaEngines, EngineError> {
        let recommender = Box::new(ModelRecommender::new(NAME, release));
        Ok(VpaEngines { recommender, updater: None })
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
    fn reconcile(&mut self, until: Time, requests: &StepRequests<'_>, stepped: &mut Stepped) {
        while let Some(due) = self.simulation.next_sync().filter(|due| *due <= until) {
            let earlier = &stepped.ticks;
            let reconciled = match requests.during {
                [] => Reconciled { decision: self.simulation.sync(due), answers: Vec::new() },
                _ => self
                    .simulation
                    .sync_while(due, &mut |reconcile| requests.first_changes(earlier, reconcile)),
            };
            stepped.api.extend(reconciled.answers);
            let Some(decision) = reconciled.decision else { continue };
            self.simulation.commit(&decision.observation, decision.end, decision.committed);
            stepped.ticks.push(self.sent_events.predict(&decision, None).into_owned());
        }
    }
}

impl Session for ModelSession {
    fn send(&mut self, step: &Step) -> Result<(), EngineError> {
        let mut stepped = Stepped { now: step.until, ..Stepped::default() };
        let requests = StepRequests::new(step, &self.simulation);
        for change in &step.apply {
            stepped.api.extend(self.simulation.apply(change, self.now));
            self.sent_events.apply(change);
            self.reconcile(self.now, &requests, &mut stepped);
        }
        self.reconcile(step.until, &requests, &mut stepped);
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

    fn close(self: Box<Self>) -> Result<Vec<Observation>, EngineError> {
        Ok(self.simulation.unfinished_observations())
    }
}
