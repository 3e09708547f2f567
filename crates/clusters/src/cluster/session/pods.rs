//! Makes the scenario's pods in the cluster match the simulated world.
//!
//! The workload's controller creates and deletes pods. This module assigns a simulated pod to each
//! of them, and writes the status that a kubelet would write.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Error, ResourceExt};
use serde_json::{Value, json};
use tokio::select;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::cluster::access::client::{at_once, object};
use crate::cluster::access::error::message;
use crate::cluster::access::namespaces::remove_finalizers;
use crate::cluster::clock::ScenarioClock;
use crate::cluster::labels::{HOLD, SCENARIO_OBJECT, WRITER};
use crate::cluster::manifests::pod_spec;
use crate::cluster::observe::reconcile::{RequestStream, TargetName};
use crate::cluster::session::context::ClusterContext;
use crate::cluster::session::pod_cache::CachedPod;
use crate::cluster::timeouts::{CONVERGENCE_TIMEOUT, REPORT_TIMEOUT};
use crate::cluster::tolerances::CACHE_LAG;
use crate::cluster::workload::{PodOwner, resource_of};
use kube_autoscaler_models::api::{PodPhase, PodSpec, with_group};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::Action;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::world::{Change, PodState, ScaleTarget};

/// With fewer missing pods, the workload's controller finishes before it could be stopped.
const MANY_MISSING: usize = 50;

/// The number of concurrent requests.
const CONCURRENT_REQUESTS: usize = 16;

/// A request for a pod or the target.
enum PodAction {
    /// Remove the finalizer of a pod that is being deleted.
    RemoveFinalizer(String),
    Delete(String),
    /// Create a pod that no controller creates.
    Create(Box<Pod>),
    WriteStatus(String, Value),
    /// Write `status.replicas` of a target without a controller.
    WriteTargetStatus(i32),
}

impl PodAction {
    /// Returns true if the cache has the result of the action. The status is not cached.
    fn is_reported(&self, pods: &BTreeMap<String, CachedPod>) -> bool {
        match self {
            PodAction::RemoveFinalizer(name) => !pods.contains_key(name),
            PodAction::Delete(name) => pods.get(name).is_none_or(|pod| pod.deleting),
            PodAction::Create(pod) => pods.contains_key(&pod.name_any()),
            // It was rejected: the pod was deleted.
            PodAction::WriteStatus(name, _) => !pods.contains_key(name),
            PodAction::WriteTargetStatus(_) => false,
        }
    }
}

/// Returns true if a ReplicaSet would count it.
fn is_active(pod: &PodState) -> bool {
    pod.deletion_timestamp.is_none() && !matches!(pod.phase, PodPhase::Failed | PodPhase::Succeeded)
}

/// Makes the target and its pods in the cluster match the simulated world.
pub(crate) struct PodDriver {
    context: Arc<ClusterContext>,
    namespace: String,
    clock: ScenarioClock,
    /// The component that creates the target's pods.
    pod_owner: PodOwner,
    resource: ApiResource,
    /// The target's selector, as text.
    selector: Arc<str>,
    /// The target's name.
    name: Arc<str>,
    /// True if pods have a finalizer, so that they stay Terminating.
    holds: bool,
    /// The name of the template of the target's pods in the world.
    template: Option<Arc<str>>,
    /// Labels and specs of pods, by template.
    templates: HashMap<Arc<str>, (BTreeMap<String, String>, PodSpec)>,
    /// The world's pods of the target.
    desired: BTreeMap<Arc<str>, PodState>,
    /// The world's other pods, which have the same names in the cluster.
    others: BTreeMap<Arc<str>, PodState>,
    /// The world's pods and the names of their pods in the cluster.
    assigned: BTreeMap<Arc<str>, String>,
    /// The world's pods that had a pod in the cluster at any time.
    was_assigned: BTreeSet<Arc<str>>,
    /// The last status that was written for each pod.
    written: HashMap<String, Value>,
    /// The last `status.replicas` that was written, if the target has no controller.
    written_replicas: Option<i32>,
    /// True if the target was created.
    is_created: bool,
    replicas: i32,
    status_replicas: i32,
    /// The time when the cluster last matched the world.
    settled: Time,
    /// True if the controller scaled the target before the cluster matched the world.
    superseded: bool,
    /// The time when the world last set the replicas of the target.
    scaled_at: Time,
}

impl PodDriver {
    pub(crate) fn new(
        context: &Arc<ClusterContext>,
        namespace: &str,
        scenario: &Scenario,
        clock: ScenarioClock,
    ) -> PodDriver {
        let workload = &scenario.workload;
        let stuck = |what: &Action| matches!(what, Action::PodsStuckTerminating(_));
        PodDriver {
            context: context.clone(),
            namespace: namespace.to_owned(),
            clock,
            pod_owner: PodOwner::new(workload),
            resource: resource_of(workload),
            selector: workload.selector.clone(),
            name: workload.name.clone(),
            holds: workload.termination.duration > Span::ZERO
                || scenario.timeline.iter().any(|event| stuck(&event.action))
                || scenario.other_pods.iter().any(|pods| pods.terminating),
            template: None,
            templates: HashMap::new(),
            desired: BTreeMap::new(),
            others: BTreeMap::new(),
            assigned: BTreeMap::new(),
            was_assigned: BTreeSet::new(),
            written: HashMap::new(),
            written_replicas: None,
            is_created: false,
            replicas: 0,
            status_replicas: 0,
            settled: Time(i64::MIN),
            superseded: false,
            scaled_at: Time(i64::MIN),
        }
    }

    /// Moves the start of the scenario, which changes the times in statuses.
    pub(crate) fn set_clock(&mut self, clock: ScenarioClock) {
        self.clock = clock;
        self.written.clear();
    }

    /// The target's name and resource.
    pub(crate) fn target(&self) -> TargetName {
        let resource = with_group(&self.resource.plural, &self.resource.group);
        TargetName { name: self.name.clone(), resource }
    }

    /// The target's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The target's last known replicas.
    pub(crate) fn replicas(&self) -> i32 {
        self.replicas
    }

    /// The target's `status.replicas` in the world.
    pub(crate) fn status_replicas(&self) -> i32 {
        self.status_replicas
    }

    /// The time when the cluster last matched the world.
    pub(crate) fn settled(&self) -> Time {
        self.settled
    }

    /// Returns true if the controller scaled the target before the cluster matched the world.
    pub(crate) fn is_superseded(&self) -> bool {
        self.superseded
    }

    /// Records that the controller has scaled the target.
    pub(crate) fn scaled(&mut self, replicas: i32) {
        self.replicas = replicas;
    }

    /// The names of pods in the cluster and in the world.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        let pods = self.assigned.iter().map(|(world, real)| (real.as_str(), &**world));
        pods.chain(self.others.keys().map(|name| (&**name, &**name)))
    }

    /// Applies changes of the workload, and waits until the cluster matches the world.
    ///
    /// # Errors
    /// If it does not match in time.
    pub(crate) async fn apply(
        &mut self,
        changes: &[Change],
        requests: &mut RequestStream,
    ) -> Result<(), EngineError> {
        let mut changed = self.superseded;
        for change in changes {
            match change {
                Change::SetScale(target) => {
                    changed = true;
                    self.set_scale(target).await?;
                }
                Change::SetPods(pods) => {
                    changed = true;
                    for pod in pods {
                        let is_of_target = self.template.as_ref() == Some(&pod.template);
                        let all = if is_of_target { &mut self.desired } else { &mut self.others };
                        all.insert(pod.name.clone(), pod.clone());
                    }
                }
                Change::DeletePods(names) => {
                    changed = true;
                    names.iter().for_each(|name| drop(self.desired.remove(name)));
                }
                Change::PodTemplate { name, labels, spec } => {
                    // The first template belongs to the target.
                    self.template.get_or_insert_with(|| name.clone());
                    self.templates.insert(name.clone(), (labels.clone(), spec.clone()));
                }
                _ => {}
            }
        }
        if changed {
            self.wait_until_converged(requests).await?;
        }
        Ok(())
    }

    fn is_superseded_by(&self, requests: &mut RequestStream) -> bool {
        let replicas = requests.replicas_since(self.scaled_at);
        replicas.is_some_and(|replicas| replicas != self.replicas)
    }

    fn refused(&self, what: &str, error: &Error) -> EngineError {
        self.context.broken(format!("{what} of {}: {}", self.namespace, message(error)))
    }

    async fn set_scale(&mut self, target: &ScaleTarget) -> Result<(), EngineError> {
        self.status_replicas = target.status_replicas;
        let Some(replicas) = target.replicas else { return Ok(()) };
        let api = self.targets();
        let done = if self.is_created {
            let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
            let params =
                PatchParams { field_manager: Some(WRITER.to_owned()), ..PatchParams::default() };
            api.patch_scale(&self.name, &params, &patch).await.map(|_| ())
        } else {
            let object = object(self.manifest(replicas, &target.selector));
            let object: DynamicObject = object.map_err(|why| self.context.broken(why))?;
            api.create(&PostParams::default(), &object).await.map(|_| ())
        };
        done.map_err(|error| self.refused("the target", &error))?;
        (self.is_created, self.replicas, self.scaled_at) = (true, replicas, self.clock.now());
        Ok(())
    }

    /// The manifest of the target.
    fn manifest(&self, replicas: i32, selector: &str) -> Value {
        json!({
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": { "name": self.name, "labels": { SCENARIO_OBJECT: "true" } },
            "spec": self.pod_owner.spec(replicas, selector, self.template(self.template.as_ref())),
        })
    }

    /// The API of the target.
    fn targets(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.context.client.clone(), &self.namespace, &self.resource)
    }

    /// Removes the finalizers of all pods.
    pub(crate) async fn release(&mut self) {
        if self.holds {
            let todo = self
                .context
                .pod_cache
                .pods(&self.namespace)
                .into_keys()
                .map(PodAction::RemoveFinalizer);
            let _ = self.perform(todo.collect()).await;
        }
    }

    /// Returns true if the workload's controller is still creating many pods.
    pub(crate) fn is_creating_many(&self) -> bool {
        let existing = self.context.pod_cache.pods(&self.namespace).len();
        matches!(self.pod_owner, PodOwner::Controller(_))
            && usize::try_from(self.replicas).is_ok_and(|wanted| wanted > existing + MANY_MISSING)
    }

    /// Acts as the kubelet until the cluster matches the world.
    pub(crate) async fn wait_until_converged(
        &mut self,
        requests: &mut RequestStream,
    ) -> Result<(), EngineError> {
        let deadline = Instant::now() + CONVERGENCE_TIMEOUT;
        let changed = self.context.pod_cache.changed(&self.namespace);
        loop {
            let notified = changed.notified();
            let todo = self.actions();
            self.rename();
            // There is nothing to wait for if the controller has scaled the target meanwhile.
            self.superseded = self.is_superseded_by(requests);
            if self.superseded || todo.is_empty() && self.is_settled() {
                break;
            }
            if todo.is_empty() {
                let next = async {
                    select! {
                        () = notified => {}
                        () = requests.arrived() => {}
                    }
                };
                // The deadline is checked below.
                let _ = timeout_at(deadline, next).await;
            } else {
                let done = self.perform(todo).await?;
                self.wait_until_reported(&done).await;
            }
            if Instant::now() >= deadline {
                let why = format!(
                    "the cluster did not match the scenario within {} s: {}",
                    CONVERGENCE_TIMEOUT.as_secs(),
                    self.state()
                );
                return Err(self.context.broken(why));
            }
        }
        sleep(CACHE_LAG).await;
        self.settled = self.clock.now();
        Ok(())
    }

    /// Waits until the watch has reported the results of actions, so that they are not repeated.
    async fn wait_until_reported(&self, done: &[PodAction]) {
        let changed = self.context.pod_cache.changed(&self.namespace);
        let reported = async {
            loop {
                let notified = changed.notified();
                let pods = self.context.pod_cache.pods(&self.namespace);
                if done.iter().all(|action| action.is_reported(&pods)) {
                    return;
                }
                notified.await;
            }
        };
        // Those that are not reported in time are repeated, which does no harm.
        let _ = timeout(REPORT_TIMEOUT, reported).await;
    }

    /// Tells the metrics API the names of the pods in the cluster.
    fn rename(&self) {
        let names = self.assigned.iter().map(|(world, real)| (world.clone(), real.as_str().into()));
        self.context.metrics.rename(&self.namespace, names.collect());
    }

    fn state(&self) -> String {
        let (real, _) = self.real_pods();
        let active = real.values().filter(|pod| pod.is_active()).count();
        let status = self.known_status_replicas();
        format!(
            "expected {} pods, found {}, of which {active} are active; spec.replicas is {}, \
             status.replicas is {status:?}, expected {}",
            self.desired.len(),
            real.len(),
            self.replicas,
            self.status_replicas
        )
    }

    /// Assigns pods, and returns the next actions.
    fn actions(&mut self) -> Vec<PodAction> {
        let (real, others) = self.real_pods();
        self.assign(&real);
        let mut todo = self.actions_for_others(&others);
        let is_idle = self.is_controller_idle(&real);
        if self.pod_owner == PodOwner::Harness {
            let missing = self.desired.keys().filter(|name| !real.contains_key(&***name));
            let pod = |name: &Arc<str>| self.pod(name, self.template.as_ref());
            todo.extend(missing.map(|name| PodAction::Create(pod(name))));
            if self.is_created && self.written_replicas != Some(self.status_replicas) {
                todo.push(PodAction::WriteTargetStatus(self.status_replicas));
            }
        }
        let worlds: HashMap<&str, &Arc<str>> =
            self.assigned.iter().map(|(world, real)| (real.as_str(), world)).collect();
        for (name, pod) in &real {
            let desired = worlds.get(name.as_str()).and_then(|world| self.desired.get(*world));
            match desired {
                // The pod is terminating, and does not exist in the world.
                None if pod.deleting && self.holds => {
                    todo.push(PodAction::RemoveFinalizer(name.clone()))
                }
                None if pod.deleting => {}
                // The pod does not exist in the world, and no controller will delete it.
                None if is_idle && worlds.contains_key(name.as_str()) => {
                    todo.push(PodAction::Delete(name.clone()));
                }
                None => {}
                Some(wanted) => {
                    if wanted.deletion_timestamp.is_some() && !pod.deleting && is_idle {
                        todo.push(PodAction::Delete(name.clone()));
                    }
                    let status = self.status(wanted);
                    if self.written.get(name) != Some(&status) {
                        todo.push(PodAction::WriteStatus(name.clone(), status));
                    }
                }
            }
        }
        todo
    }

    /// The next actions for pods that do not belong to the target.
    fn actions_for_others(&self, real: &BTreeMap<String, CachedPod>) -> Vec<PodAction> {
        let mut todo = Vec::new();
        for wanted in self.others.values() {
            let name = wanted.name.to_string();
            let Some(pod) = real.get(&name) else {
                todo.push(PodAction::Create(self.pod(&name, Some(&wanted.template))));
                continue;
            };
            let status = self.status(wanted);
            if self.written.get(&name) != Some(&status) {
                todo.push(PodAction::WriteStatus(name, status));
            } else if wanted.deletion_timestamp.is_some() && !pod.deleting {
                todo.push(PodAction::Delete(name));
            }
        }
        todo
    }

    /// The cluster's pods: the target's pods, and the others.
    fn real_pods(&self) -> (BTreeMap<String, CachedPod>, BTreeMap<String, CachedPod>) {
        let all = self.context.pod_cache.pods(&self.namespace);
        all.into_iter().partition(|(name, _)| !self.others.contains_key(&**name))
    }

    /// Returns true if the workload's controller has no more pods to create or delete.
    fn is_controller_idle(&self, real: &BTreeMap<String, CachedPod>) -> bool {
        let PodOwner::Controller(_) = self.pod_owner else { return true };
        let active = real.values().filter(|pod| pod.is_active()).count();
        let wanted = usize::try_from(self.replicas).unwrap_or_default();
        if !self.pod_owner.keeps_names() {
            return active == wanted;
        }
        // A pod keeps its ordinal until it is removed.
        let ordinal = |name: &str| name.rsplit_once('-')?.1.parse::<usize>().ok();
        let taken = real.iter().filter(|(name, pod)| {
            pod.deleting && ordinal(name).is_some_and(|ordinal| ordinal < wanted)
        });
        active + taken.count() == wanted
    }

    /// The last known `status.replicas` of the target.
    fn known_status_replicas(&self) -> Option<i32> {
        match self.pod_owner {
            PodOwner::Harness => self.written_replicas,
            PodOwner::Controller(kind) => {
                self.context.pod_cache.replicas(&self.namespace, kind, &self.name)
            }
        }
    }

    /// Assigns a pod of the cluster to each of the world's pods, once the workload's controller is
    /// idle. Pods that were created at the same time are assigned in the order of their names.
    fn assign(&mut self, real: &BTreeMap<String, CachedPod>) {
        let is_idle = self.is_controller_idle(real);
        let PodDriver { assigned, desired, others, written, was_assigned, .. } = self;
        assigned.retain(|_, name| real.contains_key(name));
        written.retain(|name, _| real.contains_key(name) || others.contains_key(&**name));
        if self.pod_owner == PodOwner::Harness {
            let existing = desired.keys().filter(|name| real.contains_key(&***name));
            assigned.extend(existing.map(|name| (name.clone(), name.to_string())));
            return;
        }
        if !is_idle {
            return;
        }
        let is_alive = |name: &String| real.get(name).is_some_and(CachedPod::is_active);
        let taken: BTreeSet<String> = assigned.values().cloned().collect();
        let others = real.iter().filter(|(name, _)| !taken.contains(*name));
        let free = others.clone().filter(|(_, pod)| pod.is_active());
        let mut free: VecDeque<String> = free.map(|(name, _)| name.clone()).collect();
        let leaving = others.filter(|(_, pod)| pod.deleting);
        let mut leaving: VecDeque<String> = leaving.map(|(name, _)| name.clone()).collect();
        // Pods that terminate or fail in the world take active pods, because others replace them.
        for pod in desired.values().filter(|pod| !is_active(pod)) {
            if assigned.contains_key(&pod.name) {
                continue;
            }
            let mut deleted = || leaving.pop_front().filter(|_| pod.deletion_timestamp.is_some());
            if let Some(name) = deleted().or_else(|| free.pop_front()) {
                assigned.insert(pod.name.clone(), name);
            }
        }
        // Deleted pods of the world whose pod in the cluster is active, because the controller
        // deleted a different one. Failed pods are excluded: only the harness marks pods as Failed.
        let is_spared = |world: &Arc<str>, name: &String| {
            let wanted = desired.get(world);
            is_alive(name) && wanted.is_none_or(|pod| pod.deletion_timestamp.is_some())
        };
        for pod in desired.values().filter(|pod| is_active(pod)) {
            if assigned.get(&pod.name).is_some_and(is_alive) {
                continue;
            }
            if let Some(name) = free.pop_front() {
                assigned.insert(pod.name.clone(), name);
                continue;
            }
            if !was_assigned.contains(&pod.name) {
                continue;
            }
            let other = assigned.iter().find(|(world, name)| is_spared(world, name));
            let Some((other, name)) = other.map(|(world, name)| (world.clone(), name.clone()))
            else {
                continue;
            };
            assigned.remove(&other);
            if let Some(own) = assigned.insert(pod.name.clone(), name) {
                assigned.insert(other, own);
            }
        }
        was_assigned.extend(assigned.keys().cloned());
    }

    /// Returns true if the cluster matches the world.
    fn is_settled(&self) -> bool {
        let (real, others) = self.real_pods();
        let matches = |real: Option<&CachedPod>, pod: &PodState| {
            real.is_some_and(|real| {
                let over = matches!(pod.phase, PodPhase::Failed | PodPhase::Succeeded);
                real.deleting == pod.deletion_timestamp.is_some() && real.over == over
            })
        };
        let is_matched = |pod: &PodState| {
            matches(self.assigned.get(&pod.name).and_then(|name| real.get(name)), pod)
        };
        let status = self.known_status_replicas();
        real.len() == self.desired.len()
            && self.desired.values().all(is_matched)
            && self.others.values().all(|pod| matches(others.get(&*pod.name), pod))
            && (!self.is_created || status == Some(self.status_replicas))
    }

    /// The labels, the finalizers and the specification of pods with a template of the world.
    fn template(&self, name: Option<&Arc<str>>) -> PodTemplateSpec {
        let template = name.and_then(|name| self.templates.get(name));
        let (mut labels, spec) = template.cloned().unwrap_or_default();
        labels.insert(SCENARIO_OBJECT.to_owned(), "true".to_owned());
        let finalizers = self.holds.then(|| vec![HOLD.to_owned()]);
        let metadata = ObjectMeta { labels: Some(labels), finalizers, ..ObjectMeta::default() };
        PodTemplateSpec { metadata: Some(metadata), spec: Some(pod_spec(&spec)) }
    }

    /// The manifest of a pod.
    fn pod(&self, name: &str, template: Option<&Arc<str>>) -> Box<Pod> {
        let PodTemplateSpec { metadata, spec } = self.template(template);
        let name = Some(name.to_owned());
        let metadata = ObjectMeta { name, ..metadata.unwrap_or_default() };
        Box::new(Pod { metadata, spec, status: None })
    }

    /// Performs actions. Returns those whose results the watch will report.
    async fn perform(&mut self, todo: Vec<PodAction>) -> Result<Vec<PodAction>, EngineError> {
        let pods: Api<Pod> = Api::namespaced(self.context.client.clone(), &self.namespace);
        let (targets, name, selector) = (self.targets(), self.name.clone(), self.selector.clone());
        let done = stream::iter(todo).map(|todo| {
            let (pods, targets) = (pods.clone(), targets.clone());
            let (target, selector) = (name.clone(), selector.clone());
            async move {
                let params = PatchParams::default();
                let done = match &todo {
                    PodAction::RemoveFinalizer(name) => remove_finalizers(&pods, name).await,
                    PodAction::Delete(name) => pods.delete(name, &at_once()).await.map(|_| ()),
                    PodAction::Create(pod) => {
                        pods.create(&PostParams::default(), pod).await.map(|_| ())
                    }
                    PodAction::WriteTargetStatus(replicas) => {
                        let status = json!({ "replicas": replicas, "selector": selector });
                        let patch = Patch::Merge(json!({ "status": status }));
                        targets.patch_status(&target, &params, &patch).await.map(|_| ())
                    }
                    PodAction::WriteStatus(name, status) => {
                        let patch = Patch::Merge(json!({ "status": status }));
                        pods.patch_status(name, &params, &patch).await.map(|_| ())
                    }
                };
                (todo, done)
            }
        });
        let mut done = done.buffer_unordered(CONCURRENT_REQUESTS);
        let mut unreported = Vec::new();
        while let Some((todo, done)) = done.next().await {
            match (todo, done) {
                (PodAction::WriteStatus(name, status), Ok(())) => {
                    self.written.insert(name, status);
                }
                (PodAction::WriteTargetStatus(replicas), Ok(())) => {
                    self.written_replicas = Some(replicas)
                }
                // It is gone or exists already, which the watch will report.
                (todo, Err(Error::Api(status))) if matches!(status.code, 404 | 409) => {
                    unreported.push(todo);
                }
                (_, Err(error)) => {
                    let why = format!("a pod of {}: {}", self.namespace, message(&error));
                    return Err(self.context.broken(why));
                }
                (todo, Ok(())) => unreported.push(todo),
            }
        }
        Ok(unreported)
    }

    /// The status that a kubelet would write for a pod.
    fn status(&self, pod: &PodState) -> Value {
        let conditions = pod.ready.map(|ready| {
            let since = self.timestamp(ready.last_transition_time);
            json!([{ "type": "Ready", "status": ready.status, "lastTransitionTime": since }])
        });
        json!({
            "phase": pod.phase,
            "startTime": pod.start_time.map(|start| self.timestamp(start)),
            "conditions": conditions,
        })
    }

    fn timestamp(&self, at: Time) -> String {
        self.clock.instant(at.truncate_to_second()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_reported_when_the_cache_has_its_result() {
        let pod = |deleting| CachedPod { deleting, over: false };
        let pods = [("active", pod(false)), ("leaving", pod(true))];
        let pods = pods.map(|(name, pod)| (name.to_owned(), pod)).into();
        let reported = |action: fn(String) -> PodAction| {
            ["active", "leaving", "gone"].map(|name| action(name.to_owned()).is_reported(&pods))
        };
        let create = |name| {
            let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
            PodAction::Create(Box::new(Pod { metadata, ..Pod::default() }))
        };
        assert_eq!(reported(create), [true, true, false]);
        assert_eq!(reported(PodAction::Delete), [false, true, true]);
        assert_eq!(reported(PodAction::RemoveFinalizer), [false, false, true]);
        let refused = reported(|name| PodAction::WriteStatus(name, json!({})));
        assert_eq!(refused, [false, false, true]);
    }
}
