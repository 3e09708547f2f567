//! One scenario on the cluster: its namespace, its objects, and what is seen of its controller.
//!
//! What the world says becomes so in the cluster: a real workload makes real pods, and each pod of
//! the world is one of these. Which one is decided anew when the workload's controller deletes
//! another than the world did: a pod is what its status says, and that is written here.

use crate::engine::cluster::labels::{FIELD_MANAGER, PLAYED_LABEL};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::{Api, Client, Error};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep, timeout};

use crate::engine::EngineError;
use crate::engine::cluster::Sight;
use crate::engine::cluster::access::client::{at_once, object, told};
use crate::engine::cluster::access::namespaces;
use crate::engine::cluster::custom_controller::Said;
use crate::engine::cluster::load::probe::Pulse;
use crate::engine::cluster::load::setup_queue::{Opening, Openings};
use crate::engine::cluster::metrics_api::state::Metrics;
use crate::engine::cluster::observe::audit_log::{Did, Routes};
use crate::engine::cluster::session::pod_cache::Seen;
use crate::engine::cluster::session::pods::Todo;
use crate::engine::cluster::session::workload;
use crate::engine::cluster::session::workload::Maker;
use crate::model::api::{HpaSpec, PodSpec};
use crate::model::time::{Span, Time};
use crate::scenario::Scenario;
use crate::scenario::resolved::Action;
use crate::trace::{ApiAnswer, ApiOutcome};
use crate::world::{Change, PodState, ScaleTarget};

/// How long before t=0 its objects are made.
const LEAD: SignedDuration = SignedDuration::from_secs(2);

/// It is doubled when it was not enough, up to this.
const LONGEST_LEAD: SignedDuration = SignedDuration::from_secs(32);

/// So many are too few to keep a cluster busy.
const FEW: usize = 8;

/// How long a cluster that is busy is spared another scenario.
const MERCY: Duration = Duration::from_secs(4);

/// How often it is looked whether it still is.
const GLANCE: Duration = Duration::from_millis(20);

/// Fewer pods than this are made before anybody could hinder it.
const MANY: usize = 50;

/// How long an API server that will end soon is asked to be rid of an HPA.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// What all scenarios of a cluster share.
pub(crate) struct Stage {
    pub(crate) name: Arc<str>,
    pub(crate) client: Client,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) routes: Arc<Routes>,
    pub(crate) seen: Arc<Seen>,
    pub(crate) pulse: Arc<Pulse>,
    /// The controller, where it is not upstream's, and what it says.
    pub(crate) said: Option<Said>,
    pub(crate) sight: Sight,
    /// Whose objects are made: where all are made at once, none is done in time.
    pub(crate) opening: Openings,
    /// Each that is there has one of it.
    pub(crate) scenes: Arc<()>,
    /// The cluster does not outlive the run.
    pub(crate) is_disposable: bool,
}

impl Stage {
    pub(crate) fn broken(&self, why: impl Into<String>) -> EngineError {
        EngineError::Broken { engine: self.name.clone(), why: why.into(), output: String::new() }
    }

    /// Waits until another scenario's objects can be made without making those late that are being
    /// played. What comes of it is held until they are made.
    pub(crate) async fn turn(&self, length: Time) -> Option<Opening> {
        let turn = self.opening.turn(length).await;
        let begin = Instant::now();
        let are_many = || Arc::strong_count(&self.scenes) > FEW;
        while are_many() && !self.pulse.is_calm(Timestamp::now()) && begin.elapsed() < MERCY {
            sleep(GLANCE).await;
        }
        turn
    }
}

/// A scenario that is being played.
pub(crate) struct Scene {
    pub(crate) stage: Arc<Stage>,
    pub(crate) namespace: String,
    /// What the scenario calls it.
    pub(crate) called: Arc<str>,
    /// Who makes the target's pods, and what its API calls it.
    pub(crate) maker: Maker,
    pub(crate) resource: ApiResource,
    /// The target's selector, as text.
    pub(crate) selector: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) hpas: Vec<Arc<str>>,
    pub(crate) holds: bool,
    /// While its objects are made.
    pub(crate) opening: Option<Opening>,
    /// One of [`Stage::scenes`].
    _present: Arc<()>,
    pub(crate) epoch: Timestamp,
    /// How long a reconcile may be silent before it counts as over.
    pub(crate) quiet: Duration,
    pub(crate) did: UnboundedReceiver<Did>,
    /// More than this lies between two reconciles, and less between two requests of one.
    pub(crate) apart: Span,
    /// Whether something may have been missed.
    pub(crate) gap: bool,
    /// What was told too early, and events so far.
    pub(crate) ahead: VecDeque<Did>,
    pub(crate) events: Vec<Did>,
    /// What the world calls the template of the target's pods.
    pub(crate) template: Option<Arc<str>>,
    /// Labels and specs of pods, by template.
    pub(crate) templates: HashMap<Arc<str>, (BTreeMap<String, String>, PodSpec)>,
    /// The world's pods, and the names that they have in the cluster.
    pub(crate) desired: BTreeMap<Arc<str>, PodState>,
    /// Those of them that no target makes; they are made here, and have the same names there.
    pub(crate) others: BTreeMap<Arc<str>, PodState>,
    pub(crate) assigned: BTreeMap<Arc<str>, String>,
    /// Those that once had one.
    pub(crate) played: BTreeSet<Arc<str>>,
    /// The statuses that were written.
    pub(crate) written: HashMap<String, Value>,
    /// The `status.replicas` that was written, where the driver does that.
    pub(crate) told: Option<i32>,
    pub(crate) there: bool,
    pub(crate) replicas: i32,
    pub(crate) status_replicas: i32,
    /// When the cluster was last changed, and had settled.
    pub(crate) settled: Time,
    /// It was not waited for, since the controller had made it something else.
    pub(crate) overtaken: bool,
    /// When the target was last given a size that the world says.
    pub(crate) sized: Time,
}

impl Scene {
    /// Opens a scenario in a namespace of that name.
    ///
    /// # Errors
    /// If the API server refuses.
    pub(crate) async fn open(
        stage: &Arc<Stage>,
        namespace: String,
        scenario: &Scenario,
        opening: Option<Opening>,
    ) -> Result<Scene, EngineError> {
        let (to, did) = unbounded_channel();
        let epoch = start(LEAD);
        stage.metrics.open(&namespace, &scenario.namespace, epoch, to.clone());
        stage.routes.open(&namespace, to);
        let stuck = |what: &Action| matches!(what, Action::PodsStuckTerminating(_));
        let period = Duration::from_nanos(scenario.flags.sync_period.0.unsigned_abs());
        let scene = Scene {
            stage: stage.clone(),
            called: scenario.namespace.clone(),
            maker: Maker::of(&scenario.workload),
            resource: workload::resource_of(&scenario.workload),
            selector: scenario.workload.selector.clone(),
            name: scenario.workload.name.clone(),
            hpas: scenario.hpas.iter().map(|hpa| hpa.name.clone()).collect(),
            holds: scenario.workload.termination > Span::ZERO
                || scenario.timeline.iter().any(|happening| stuck(&happening.action))
                || scenario.other_pods.iter().any(|pods| pods.terminating),
            opening,
            _present: stage.scenes.clone(),
            epoch,
            quiet: (period / 5).clamp(Duration::from_millis(50), Duration::from_millis(500)),
            did,
            apart: Span(scenario.flags.sync_period.0 / 2),
            gap: false,
            ahead: VecDeque::new(),
            events: Vec::new(),
            template: None,
            templates: HashMap::new(),
            desired: BTreeMap::new(),
            others: BTreeMap::new(),
            assigned: BTreeMap::new(),
            played: BTreeSet::new(),
            written: HashMap::new(),
            told: None,
            there: false,
            replicas: 0,
            status_replicas: 0,
            settled: Time(i64::MIN),
            overtaken: false,
            sized: Time(i64::MIN),
            namespace,
        };
        let object = namespaces::namespace(&scene.namespace).map_err(|why| stage.broken(why))?;
        let namespaces: Api<Namespace> = Api::all(stage.client.clone());
        let created = namespaces.create(&PostParams::default(), &object).await;
        created.map_err(|error| scene.refused("namespace", &error))?;
        Ok(scene)
    }

    /// That no verdict can be had, and why.
    pub(crate) fn broken(&self, why: String) -> EngineError {
        self.stage.broken(why)
    }

    fn refused(&self, what: &str, error: &Error) -> EngineError {
        self.stage.broken(format!("{what} of {}: {}", self.namespace, told(error)))
    }

    /// The time, in the scenario's terms.
    pub(crate) fn now(&self) -> Time {
        self.time(Timestamp::now())
    }

    pub(crate) fn time(&self, at: Timestamp) -> Time {
        let nanos = at.as_nanosecond() - self.epoch.as_nanosecond();
        Time(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    /// Which instant is t=0.
    pub(crate) fn epoch(&self) -> Timestamp {
        self.epoch
    }

    /// When the cluster had last become what the world says.
    pub(crate) fn settled(&self) -> Time {
        self.settled
    }

    /// Whether it has become that by now, as far as is known.
    pub(crate) fn is_settled_by_now(&mut self) -> bool {
        !self.overtaken && !self.has_more()
    }

    /// The target's name, and the size that it has as far as is known here.
    pub(crate) fn target(&self) -> (&str, i32) {
        (&self.name, self.replicas)
    }

    /// That nothing was seen of the user's own controller, if it is one, and why that may be.
    pub(crate) fn idle(&self, period: Span) -> Option<EngineError> {
        let said = self.stage.said.as_ref()?;
        let mut why = format!(
            "{} did nothing with the HPA, which it should reconcile every {period}: so \
             {{sync-period}} in its command or KUBE_LOCKSTEP_SYNC_PERIOD tells it",
            said.name
        );
        if let Some(refusal) = self.forbidden().first() {
            why.push_str(&format!("; what it asked for was refused: {refusal}"));
        }
        let (engine, output) = (self.stage.name.clone(), said.tail());
        Some(EngineError::Broken { engine, why, output })
    }

    /// What the controller had no right to.
    pub(crate) fn forbidden(&self) -> Vec<String> {
        self.stage.routes.refused(&self.namespace)
    }

    /// The longest time since an instant in which a part of the cluster gave no answer, and which.
    pub(crate) fn stall(&self, since: Time) -> Option<(&'static str, Span)> {
        let now = Timestamp::now();
        let since = SignedDuration::from_nanos(since.0);
        let stall = self.stage.pulse.longest(self.epoch + since, now)?;
        let length = i64::try_from(stall.length(now).as_nanos()).unwrap_or(i64::MAX);
        Some((stall.of, Span(length)))
    }

    /// Waits until an instant.
    pub(crate) async fn wait_until(&self, at: Time) {
        let left = at - self.now();
        if left > Span::ZERO {
            sleep(Duration::from_nanos(left.0.unsigned_abs())).await;
        }
    }

    /// Makes what there is before t=0, and waits until t=0.
    ///
    /// # Errors
    /// If the cluster does not become what the world says.
    pub(crate) async fn begin(&mut self, changes: &[Change]) -> Result<(), EngineError> {
        self.apply(changes).await?;
        let mut lead = LEAD;
        while self.now() > Time::ZERO {
            // It took longer: everything happens that much later.
            lead *= 2;
            if lead > LONGEST_LEAD {
                let why = "the objects of its start could not be made in time".to_owned();
                return Err(self.stage.broken(why));
            }
            self.epoch = start(lead);
            self.stage.metrics.begin_at(&self.namespace, self.epoch);
            self.written.clear();
            self.settle().await?;
        }
        self.opening = None;
        self.wait_until(Time::ZERO).await;
        Ok(())
    }

    /// Makes these changes, and waits until the cluster is what the world says.
    ///
    /// # Errors
    /// If it does not become so in time.
    pub(crate) async fn apply(&mut self, changes: &[Change]) -> Result<(), EngineError> {
        let mut moved = self.overtaken;
        // Metrics are other ones at once, whatever else takes longer.
        for change in changes.iter().filter(|change| !change.is_of_workload()) {
            self.stage.metrics.apply(&self.namespace, change);
        }
        for change in changes {
            match change {
                Change::SetScale(target) => {
                    moved = true;
                    self.set_scale(target).await?;
                }
                Change::SetPods(pods) => {
                    moved = true;
                    for pod in pods {
                        let of_target = self.template.as_ref() == Some(&pod.template);
                        let all = if of_target { &mut self.desired } else { &mut self.others };
                        all.insert(pod.name.clone(), pod.clone());
                    }
                }
                Change::DeletePods(names) => {
                    moved = true;
                    names.iter().for_each(|name| drop(self.desired.remove(name)));
                }
                Change::PodTemplate { name, labels, spec } => {
                    // The target's is told first.
                    self.template.get_or_insert_with(|| name.clone());
                    self.templates.insert(name.clone(), (labels.clone(), spec.clone()));
                }
                _ => {}
            }
        }
        if moved {
            self.settle().await?;
        }
        Ok(())
    }

    /// The controller has scaled the target.
    pub(crate) fn scaled(&mut self, replicas: i32) {
        self.replicas = replicas;
    }

    async fn set_scale(&mut self, target: &ScaleTarget) -> Result<(), EngineError> {
        self.status_replicas = target.status_replicas;
        let Some(replicas) = target.replicas else { return Ok(()) };
        let api = self.targets();
        let done = if self.there {
            let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
            let params = PatchParams {
                field_manager: Some(FIELD_MANAGER.to_owned()),
                ..PatchParams::default()
            };
            api.patch_scale(&self.name, &params, &patch).await.map(|_| ())
        } else {
            let object = object(self.manifest(replicas, &target.selector));
            let object: DynamicObject = object.map_err(|why| self.stage.broken(why))?;
            api.create(&PostParams::default(), &object).await.map(|_| ())
        };
        done.map_err(|error| self.refused("the target", &error))?;
        (self.there, self.replicas, self.sized) = (true, replicas, self.now());
        Ok(())
    }

    /// The target.
    fn manifest(&self, replicas: i32, selector: &str) -> Value {
        json!({
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": { "name": self.name, "labels": { PLAYED_LABEL: "true" } },
            "spec": self.maker.spec(replicas, selector, self.pod(self.template.as_ref())),
        })
    }

    /// The target's objects of the API.
    pub(crate) fn targets(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.stage.client.clone(), &self.namespace, &self.resource)
    }

    /// Does what somebody does to the HPA. Gives the API server's answer.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) async fn act(&mut self, act: &Change) -> Result<Option<ApiAnswer>, EngineError> {
        let at = self.now();
        let Some(name) = act.hpa_name().map(Arc::<str>::from) else { return Ok(None) };
        let hpas: Api<HorizontalPodAutoscaler> =
            Api::namespaced(self.stage.client.clone(), &self.namespace);
        let done: Result<Option<Value>, Error> = match act {
            Change::CreateHpa(manifest) => self.create_hpa(manifest).await.map(Some),
            Change::PatchHpa { patch, .. } => {
                let patch = Patch::Merge(patch.clone());
                let gvk = GroupVersionKind::gvk("autoscaling", "v2", "HorizontalPodAutoscaler");
                let resource = ApiResource::from_gvk(&gvk);
                let api: Api<DynamicObject> =
                    Api::namespaced_with(self.stage.client.clone(), &self.namespace, &resource);
                let patched = api.patch(&name, &PatchParams::default(), &patch).await;
                patched.map(|object| Some(serde_json::to_value(object).unwrap_or_default()))
            }
            Change::DeleteHpa { .. } => hpas.delete(&name, &at_once()).await.map(|_| None),
            _ => return Ok(None),
        };
        let outcome = match done {
            Ok(None) => ApiOutcome::Deleted,
            Ok(Some(object)) => {
                let spec: Result<HpaSpec, _> = serde_json::from_value(object["spec"].clone());
                let spec = spec.map_err(|error| self.stage.broken(error.to_string()))?;
                let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
                ApiOutcome::Stored { generation, spec: Box::new(spec) }
            }
            Err(Error::Api(status)) if status.code < 500 => {
                ApiOutcome::Refused(status.message.clone())
            }
            Err(error) => return Err(self.refused("the HPA", &error)),
        };
        Ok(Some(ApiAnswer { at, name, outcome }))
    }

    /// Creates the HPA as it is given, and reads it as the controller does.
    async fn create_hpa(&self, manifest: &Value) -> Result<Value, Error> {
        let mut manifest = manifest.clone();
        manifest["metadata"]["namespace"] = self.namespace.as_str().into();
        let version = manifest["apiVersion"].as_str().unwrap_or_default();
        let version = version.strip_prefix("autoscaling/").unwrap_or("v2").to_owned();
        let of = |version: &str| {
            let gvk = GroupVersionKind::gvk("autoscaling", version, "HorizontalPodAutoscaler");
            let resource = ApiResource::from_gvk(&gvk);
            Api::<DynamicObject>::namespaced_with(
                self.stage.client.clone(),
                &self.namespace,
                &resource,
            )
        };
        let path = format!(
            "/apis/autoscaling/{version}/namespaces/{}/horizontalpodautoscalers",
            self.namespace
        );
        let body = serde_json::to_vec(&manifest).map_err(Error::SerdeError)?;
        let request = axum::http::Request::post(path).header("Content-Type", "application/json");
        let request = request.body(body).map_err(Error::HttpError)?;
        let created: Value = self.stage.client.request(request).await?;
        if version == "v2" {
            return Ok(created);
        }
        let name = created["metadata"]["name"].as_str().unwrap_or_default();
        let stored = of("v2").get(name).await?;
        Ok(serde_json::to_value(stored).unwrap_or_default())
    }

    /// The names of pods and of the namespace in the cluster, and those that the world has for
    /// them.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        let pods = self.assigned.iter().map(|(world, real)| (real.as_str(), &**world));
        let others = self.others.keys().map(|name| (&**name, &**name));
        pods.chain(others).chain([(self.namespace.as_str(), &*self.called)])
    }

    /// Whether many pods are being made that nobody will look at.
    fn wants_many(&self) -> bool {
        let there = self.stage.seen.pods(&self.namespace).len();
        matches!(self.maker, Maker::Controller(_))
            && usize::try_from(self.replicas).is_ok_and(|wanted| wanted > there + MANY)
    }

    /// Ends it: the namespace goes, and all that is in it; or, where all of the cluster will go
    /// soon, only what would go on working there.
    pub(crate) async fn close(self) {
        self.stage.metrics.close(&self.namespace);
        self.stage.routes.close(&self.namespace);
        if self.stage.is_disposable {
            let client = self.stage.client.clone();
            let hpas: Api<HorizontalPodAutoscaler> = Api::namespaced(client, &self.namespace);
            for name in &self.hpas {
                let _ = timeout(CLOSE_LIMIT, hpas.delete(name, &at_once())).await;
            }
            if self.wants_many() {
                let namespaces: Api<Namespace> = Api::all(self.stage.client.clone());
                let params = at_once();
                let gone = namespaces.delete(&self.namespace, &params);
                let _ = timeout(CLOSE_LIMIT, gone).await;
            }
            return;
        }
        let client = &self.stage.client;
        // What would go on working in a namespace that is going would only write of its failures.
        let hpas: Api<HorizontalPodAutoscaler> = Api::namespaced(client.clone(), &self.namespace);
        for name in &self.hpas {
            let _ = hpas.delete(name, &at_once()).await;
        }
        let _ = self.targets().delete(&self.name, &DeleteParams::background()).await;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        // A cluster that is gone has no namespaces either.
        let _ = namespaces.delete(&self.namespace, &at_once()).await;
        if self.holds {
            let todo = self.stage.seen.pods(&self.namespace).into_keys().map(Todo::Release);
            let mut scene = self;
            let _ = scene.carry_out(todo.collect()).await;
            scene.stage.seen.forget(&scene.namespace);
        } else {
            self.stage.seen.forget(&self.namespace);
        }
    }
}

/// The next whole second that leaves time for what comes before it.
fn start(lead: SignedDuration) -> Timestamp {
    let at = Timestamp::now() + lead;
    Timestamp::from_second(at.as_second() + 1).unwrap_or(at)
}
