//! One scenario on a cluster: its namespace, its objects, and the observed requests of its
//! controller.
//!
//! The cluster follows the simulated world: a real workload creates real pods, and each simulated
//! pod is assigned to one of them. The assignment changes if the workload's controller deletes a
//! different pod than the world did.

use std::sync::Arc;

use axum::http::Method;
use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Error};
use serde_json::Value;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;

use crate::cluster::access::client;
use crate::cluster::access::client::at_once;
use crate::cluster::access::error::message;
use crate::cluster::access::namespaces;
use crate::cluster::clock::ScenarioClock;
use crate::cluster::load::setup_queue::SetupPermit;
use crate::cluster::metrics_api::held_query::HeldQuery;
use crate::cluster::metrics_api::hold::Hold;
use crate::cluster::observe::reconcile::{ObservedReconcile, RequestStream, SettledState};
use crate::cluster::resources;
use crate::cluster::session::context::ClusterContext;
use crate::cluster::session::pods::PodDriver;
use crate::cluster::timeouts::{CLOSE_TIMEOUT, LEAD, LONGEST_LEAD};
use kube_autoscaler_models::api::HpaSpec;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::trace::{ApiAnswer, ApiOutcome};
use kube_lockstep_sim::world::Change;

/// A scenario that runs on a cluster.
pub(crate) struct ScenarioSession {
    context: Arc<ClusterContext>,
    namespace: String,
    /// The name of the namespace in the scenario.
    called: Arc<str>,
    hpas: Vec<Arc<str>>,
    clock: ScenarioClock,
    requests: RequestStream,
    pods: PodDriver,
    /// Held while its objects are created.
    permit: Option<SetupPermit>,
    /// `Dispatcher::gaps` at the start.
    gaps: usize,
    /// A reference that counts as one of [`ClusterContext::sessions`].
    _present: Arc<()>,
}

impl ScenarioSession {
    /// Opens a scenario in a new namespace.
    ///
    /// # Errors
    /// If the API server rejects the namespace.
    pub(crate) async fn open(
        context: &Arc<ClusterContext>,
        namespace: String,
        scenario: &Scenario,
        permit: Option<SetupPermit>,
    ) -> Result<ScenarioSession, EngineError> {
        let (to, requests) = unbounded_channel();
        let clock = ScenarioClock::after(LEAD);
        context.metrics.open(&namespace, &scenario.namespace, clock.epoch(), to.clone());
        context.dispatcher.open(&namespace, to);
        let pods = PodDriver::new(context, &namespace, scenario, clock);
        let requests = RequestStream::new(
            requests,
            pods.target(),
            clock,
            scenario.flags.sync_period,
            context.observability,
            context.probe.clone(),
        );
        let session = ScenarioSession {
            context: context.clone(),
            namespace,
            called: scenario.namespace.clone(),
            hpas: scenario.hpas.iter().map(|hpa| hpa.name.clone()).collect(),
            clock,
            requests,
            pods,
            permit,
            gaps: context.dispatcher.gaps(),
            _present: context.sessions.clone(),
        };
        let object = namespaces::namespace(&session.namespace);
        let namespaces: Api<Namespace> = Api::all(context.client.clone());
        let created = namespaces.create(&PostParams::default(), &object).await;
        created.map_err(|error| session.refused("namespace", &error))?;
        Ok(session)
    }

    /// The error for a scenario that has no verdict.
    pub(crate) fn broken(&self, why: String) -> EngineError {
        self.context.broken(why)
    }

    fn refused(&self, what: &str, error: &Error) -> EngineError {
        self.context.broken(format!("{what} of {}: {}", self.namespace, message(error)))
    }

    /// The time since the scenario's start.
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// The instant of t=0.
    pub(crate) fn epoch(&self) -> Timestamp {
        self.clock.epoch()
    }

    /// The state of the cluster now.
    pub(crate) fn state(&self) -> SettledState {
        let (settled, status_replicas) = (self.pods.settled(), self.pods.status_replicas());
        SettledState { settled, status_replicas }
    }

    /// Holds back the answer to a query of the controller until the hold is dropped.
    pub(crate) fn hold(&self, query: HeldQuery) -> Hold {
        Hold::new(&self.context.metrics, &self.namespace, query)
    }

    /// Waits until a time for the query of a hold. Returns true if it arrived.
    pub(crate) async fn is_held_by(&self, hold: &mut Hold, until: Time) -> bool {
        tokio::select! {
            arrived = hold.arrived() => arrived,
            () = self.clock.wait_until(until) => false,
        }
    }

    /// Returns true if the cluster is known to match the world.
    pub(crate) fn is_settled_by_now(&mut self) -> bool {
        !self.pods.is_superseded() && !self.requests.has_more()
    }

    /// The target's name, and its last known replicas.
    pub(crate) fn target(&self) -> (&str, i32) {
        (self.pods.name(), self.pods.replicas())
    }

    /// The requests of the controller.
    pub(crate) fn requests(&mut self) -> &mut RequestStream {
        &mut self.requests
    }

    /// The reason why a reconcile of upstream's controller can't be compared, if any. `before` is
    /// the state of the cluster at its beginning, and `conflicts` the number of conflicts that the
    /// model predicts.
    pub(crate) fn incomparable_reason(
        &self,
        tick: &ObservedReconcile,
        before: SettledState,
        conflicts: usize,
    ) -> Option<String> {
        self.requests.incomparable_reason(tick, before, conflicts)
    }

    /// The error for a custom controller that did nothing.
    pub(crate) fn idle(&self, period: Span) -> Option<EngineError> {
        let log = self.context.controller_log.as_ref()?;
        let mut why = format!(
            "{} did not act on the HPA, which it should reconcile every {period} \
             ({{sync-period}} in its command, or KUBE_LOCKSTEP_SYNC_PERIOD)",
            log.name
        );
        if let Some(refusal) = self.forbidden().first() {
            why.push_str(&format!("; the API server rejected a request: {refusal}"));
        }
        let (engine, output) = (self.context.name.clone(), log.tail());
        Some(EngineError::Broken { engine, why, output })
    }

    /// Returns true if an action of the controller may not have been observed.
    pub(crate) fn has_gap(&self) -> bool {
        self.context.dispatcher.gaps() > self.gaps
    }

    /// Messages of requests that the controller had no permission for.
    pub(crate) fn forbidden(&self) -> Vec<String> {
        self.context.dispatcher.forbidden(&self.namespace)
    }

    /// The longest time since `since` in which a component of the cluster did not respond.
    pub(crate) fn stall(&self, since: Time) -> Option<(&'static str, Span)> {
        self.requests.stall(since)
    }

    /// Waits until a time.
    pub(crate) async fn wait_until(&self, at: Time) {
        self.clock.wait_until(at).await;
    }

    /// Creates the initial objects, and waits until t=0.
    ///
    /// # Errors
    /// If the cluster does not match the world in time.
    pub(crate) async fn begin(&mut self, changes: &[Change]) -> Result<(), EngineError> {
        self.apply(changes).await?;
        let mut lead = LEAD;
        while self.clock.now() > Time::ZERO {
            // The creation took longer than the lead, so t=0 is moved.
            lead *= 2;
            if lead > LONGEST_LEAD {
                let why = "the initial objects could not be created in time".to_owned();
                return Err(self.context.broken(why));
            }
            self.clock = ScenarioClock::after(lead);
            self.context.metrics.begin_at(&self.namespace, self.clock.epoch());
            self.requests.set_clock(self.clock);
            self.pods.set_clock(self.clock);
            self.pods.wait_until_converged(&mut self.requests).await?;
        }
        self.permit = None;
        self.wait_until(Time::ZERO).await;
        Ok(())
    }

    /// Applies changes, and waits until the cluster matches the world.
    ///
    /// # Errors
    /// If it does not match in time.
    pub(crate) async fn apply(&mut self, changes: &[Change]) -> Result<(), EngineError> {
        // Metrics change first, because other changes take time.
        for change in changes.iter().filter(|change| !change.changes_workload()) {
            self.context.metrics.apply(&self.namespace, change);
        }
        self.pods.apply(changes, &mut self.requests).await
    }

    /// Records that the controller has scaled the target.
    pub(crate) fn scaled(&mut self, replicas: i32) {
        self.pods.scaled(replicas);
    }

    /// Creates, edits or deletes the HPA. Returns the API server's answer.
    ///
    /// # Errors
    /// If the API server does not respond.
    pub(crate) async fn act(&mut self, act: &Change) -> Result<Option<ApiAnswer>, EngineError> {
        let at = self.now();
        let Some(name) = act.hpa_name().map(Arc::<str>::from) else { return Ok(None) };
        let hpas: Api<HorizontalPodAutoscaler> =
            Api::namespaced(self.context.client.clone(), &self.namespace);
        let done: Result<Option<Value>, Error> = match act {
            Change::CreateHpa(manifest) => self.create_hpa(manifest).await.map(Some),
            Change::PatchHpa { patch, .. } => {
                let patch = Patch::Merge(patch.clone());
                let api = self.untyped_hpas();
                let patched = api.patch(&name, &PatchParams::default(), &patch).await;
                patched.map(|object| Some(serde_json::to_value(object).unwrap_or_default()))
            }
            Change::DeleteHpa { .. } => hpas.delete(&name, &at_once()).await.map(|_| None),
            _ => return Ok(None),
        };
        let outcome = match done {
            Ok(None) => ApiOutcome::Deleted { name },
            Ok(Some(object)) => {
                let spec: Result<HpaSpec, _> = serde_json::from_value(object["spec"].clone());
                let spec = spec.map_err(|error| self.context.broken(error.to_string()))?;
                let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
                ApiOutcome::Stored { name, generation, spec: Arc::new(spec) }
            }
            Err(Error::Api(status)) if status.code < 500 => {
                ApiOutcome::Refused { name, message: status.message.clone() }
            }
            Err(error) => return Err(self.refused("the HPA", &error)),
        };
        Ok(Some(ApiAnswer { at, outcome }))
    }

    /// The HPAs with all fields that the API server has, in the version of the controller.
    fn untyped_hpas(&self) -> Api<DynamicObject> {
        let resource = resources::hpas("v2");
        Api::namespaced_with(self.context.client.clone(), &self.namespace, &resource)
    }

    /// Creates the HPA from its manifest, and reads it in the version of the controller.
    async fn create_hpa(&self, manifest: &Value) -> Result<Value, Error> {
        let mut manifest = manifest.clone();
        manifest["metadata"]["namespace"] = self.namespace.as_str().into();
        let version = manifest["apiVersion"].as_str().unwrap_or_default();
        let version = version.strip_prefix("autoscaling/").unwrap_or("v2").to_owned();
        let path = format!(
            "/apis/autoscaling/{version}/namespaces/{}/horizontalpodautoscalers",
            self.namespace
        );
        let created = client::send(&self.context.client, Method::POST, &path, &manifest).await?;
        if version == "v2" {
            return Ok(created);
        }
        let name = created["metadata"]["name"].as_str().unwrap_or_default();
        let stored = self.untyped_hpas().get(name).await?;
        Ok(serde_json::to_value(stored).unwrap_or_default())
    }

    /// The names of the pods and the namespace in the cluster, with their names in the world.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pods.names().chain([(self.namespace.as_str(), &*self.called)])
    }

    /// Closes the scenario: deletes its namespace; or, if the cluster is about to be removed, only
    /// objects that would keep controllers busy.
    pub(crate) async fn close(mut self) {
        self.context.metrics.close(&self.namespace);
        self.context.dispatcher.close(&self.namespace);
        if self.context.is_disposable {
            let client = self.context.client.clone();
            let hpas: Api<HorizontalPodAutoscaler> = Api::namespaced(client, &self.namespace);
            for name in &self.hpas {
                let _ = timeout(CLOSE_TIMEOUT, hpas.delete(name, &at_once())).await;
            }
            if self.pods.is_creating_many() {
                let namespaces: Api<Namespace> = Api::all(self.context.client.clone());
                let params = at_once();
                let deleted = namespaces.delete(&self.namespace, &params);
                let _ = timeout(CLOSE_TIMEOUT, deleted).await;
            }
            return;
        }
        let client = &self.context.client;
        // Otherwise the controller would keep reconciling the HPA, and record failures.
        let hpas: Api<HorizontalPodAutoscaler> = Api::namespaced(client.clone(), &self.namespace);
        for name in &self.hpas {
            let _ = hpas.delete(name, &at_once()).await;
        }
        let namespaces: Api<Namespace> = Api::all(client.clone());
        // Leftovers are removed at the end of the run.
        let _ = namespaces.delete(&self.namespace, &at_once()).await;
        self.pods.release().await;
        self.context.pod_cache.forget(&self.namespace);
    }
}
