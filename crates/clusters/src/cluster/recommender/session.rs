//! One scenario of the recommender: its namespace, its objects and its recommender.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use jiff::Timestamp;
use kube::Error;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout, timeout_at};

use super::cluster::RecommenderCluster;
use super::process::{Process, command};
use super::requests::ObservedWrite;
use super::{objects, samples};
use crate::cluster::access::error::message;
use crate::cluster::access::{client, namespaces};
use crate::cluster::metrics_api::state::ServedSamples;
use crate::cluster::provision::bootstrap::broken;
use kube_autoscaler_models::time::Span;
use kube_autoscaler_models::vpa::{
    Checkpoint, ClusterChange, GoTime, ObjectName, ObservedOom, OomKill, Pod, PodMetrics, Target,
    VerticalPodAutoscaler, Write,
};
use kube_lockstep_sim::engine::EngineError;

/// A run of the recommender has read the samples.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct StartedRun {
    /// The time of its query.
    pub received: Timestamp,
    /// The samples, as they were served.
    pub samples: Result<Arc<Vec<PodMetrics>>, String>,
}

/// A scenario that runs on a control plane.
pub(crate) struct RecommenderSession<'c> {
    cluster: &'c RecommenderCluster,
    namespace: Arc<str>,
    epoch: GoTime,
    /// The command line of the recommender.
    command: String,
    process: Option<Process>,
    queries: UnboundedReceiver<ServedSamples>,
    writes: UnboundedReceiver<ObservedWrite>,
    /// Writes that were received, but not taken.
    pending: VecDeque<ObservedWrite>,
    pods: BTreeMap<ObjectName, Pod>,
    vpas: BTreeSet<ObjectName>,
    checkpoints: BTreeSet<ObjectName>,
    /// The pods whose samples are served.
    sampled: Vec<Arc<str>>,
}

impl<'c> RecommenderSession<'c> {
    /// Opens a scenario in a new namespace, with t=0 at the current second. The recommender is not
    /// started.
    ///
    /// # Errors
    /// If the API server rejects the namespace.
    pub(crate) async fn open(
        cluster: &'c RecommenderCluster,
        flags: &BTreeMap<String, String>,
        interval: Span,
    ) -> Result<RecommenderSession<'c>, EngineError> {
        let namespace = cluster.next_namespace();
        let now = Timestamp::now().as_second();
        let epoch = GoTime::from_unix(now);
        let (to_queries, queries) = unbounded_channel();
        let (to_writes, writes) = unbounded_channel();
        let start = Timestamp::from_second(now).unwrap_or_default();
        cluster.metrics.open_samples(&namespace, start, to_queries);
        cluster.dispatcher.open(&namespace, to_writes);
        let command = command(&cluster.program, &cluster.kubeconfig, &namespace, flags, interval);
        let session = RecommenderSession {
            cluster,
            namespace: namespace.clone().into(),
            epoch,
            command,
            process: None,
            queries,
            writes,
            pending: VecDeque::new(),
            pods: BTreeMap::new(),
            vpas: BTreeSet::new(),
            checkpoints: BTreeSet::new(),
            sampled: Vec::new(),
        };
        let object = namespaces::namespace(&namespace);
        session.send(Method::POST, "/api/v1/namespaces", &object).await?;
        Ok(session)
    }

    /// The name of the namespace.
    pub(crate) fn namespace(&self) -> &Arc<str> {
        &self.namespace
    }

    /// The instant of t=0.
    pub(crate) fn epoch(&self) -> GoTime {
        self.epoch
    }

    /// The error for a scenario without a verdict.
    pub(crate) fn broken(&self, why: &str) -> EngineError {
        let log = self.process.as_ref().map(Process::tail).unwrap_or_default();
        broken(&self.cluster.name, why, &log)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        object: &(impl Serialize + Sync),
    ) -> Result<Value, EngineError> {
        let sent = client::send(&self.cluster.client, method.clone(), path, object).await;
        sent.map_err(|error| self.rejected(&method, path, &error))
    }

    fn rejected(&self, method: &Method, path: &str, error: &Error) -> EngineError {
        self.broken(&format!("{method} {path}: {}", message(error)))
    }

    /// Makes a change. Returns it as the API server stored it.
    ///
    /// # Errors
    /// If the API server rejects it, or the recommender can't be started.
    pub(crate) async fn apply(
        &mut self,
        change: ClusterChange,
    ) -> Result<ClusterChange, EngineError> {
        match &change {
            ClusterChange::SetVpa(vpa) => {
                return self.set_vpa(vpa).await.map(ClusterChange::SetVpa);
            }
            ClusterChange::Evict(oom) => return self.evict(oom).await.map(ClusterChange::Evict),
            ClusterChange::SetPod(pod) => self.set_pod(pod).await?,
            ClusterChange::SetCheckpoint(checkpoint) => self.set_checkpoint(checkpoint).await?,
            ClusterChange::SetTarget(target) => self.set_target(target).await?,
            ClusterChange::DeleteVpa(name) => {
                self.vpas.remove(name);
                self.delete(&objects::vpas_path(&self.namespace), &name.name).await?;
            }
            ClusterChange::DeletePod(name) => {
                self.pods.remove(name);
                self.delete(&objects::pods_path(&self.namespace), &name.name).await?;
            }
            ClusterChange::DeleteCheckpoint(name) => {
                self.checkpoints.remove(name);
                self.delete(&objects::checkpoints_path(&self.namespace), &name.name).await?;
            }
            ClusterChange::DeleteTarget(target) => {
                self.delete(&objects::targets_path(target), &target.reference.name).await?;
            }
            ClusterChange::SetMetrics(metrics) => self.serve(metrics),
            ClusterChange::Restart => {
                self.stop_recommender().await;
                self.start_recommender()?;
            }
        }
        Ok(change)
    }

    async fn delete(&self, path: &str, name: &str) -> Result<(), EngineError> {
        let path = format!("{path}/{name}");
        self.send(Method::DELETE, &path, &client::at_once()).await.map(|_| ())
    }

    /// Replaces an existing object.
    async fn replace(&self, path: &str, mut object: Value) -> Result<Value, EngineError> {
        let current = client::get(&self.cluster.client, path).await;
        let current = current.map_err(|error| self.rejected(&Method::GET, path, &error))?;
        let current: Value = serde_json::from_str(&current).unwrap_or_default();
        object["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
        self.send(Method::PUT, path, &object).await
    }

    async fn set_vpa(
        &mut self,
        vpa: &VerticalPodAutoscaler,
    ) -> Result<VerticalPodAutoscaler, EngineError> {
        let path = objects::vpas_path(&self.namespace);
        let object = objects::vpa(vpa);
        let stored = if self.vpas.insert(vpa.metadata.name.clone()) {
            self.send(Method::POST, &path, &object).await?
        } else {
            self.replace(&format!("{path}/{}", vpa.metadata.name.name), object).await?
        };
        let stored = VerticalPodAutoscaler::deserialize(&stored)
            .map_err(|error| self.broken(&format!("the stored VPA can't be read: {error}")))?;
        Ok(VerticalPodAutoscaler { status: vpa.status.clone(), ..stored })
    }

    async fn set_pod(&mut self, pod: &Pod) -> Result<(), EngineError> {
        let all = objects::pods_path(&self.namespace);
        let path = format!("{all}/{}", pod.name.name);
        let before = self.pods.insert(pod.name.clone(), pod.clone());
        let Some(before) = before else {
            self.send(Method::POST, &all, &objects::pod(pod)).await?;
            return self.write_status(&path, pod).await;
        };
        if before.labels != pod.labels {
            self.send(Method::PATCH, &path, &objects::relabel(&before, pod)).await?;
        }
        if (before.phase, &before.statuses) != (pod.phase, &pod.statuses) {
            self.write_status(&path, pod).await?;
        }
        Ok(())
    }

    async fn write_status(&self, path: &str, pod: &Pod) -> Result<(), EngineError> {
        let path = format!("{path}/status");
        self.send(Method::PATCH, &path, &objects::pod_status(pod)).await.map(|_| ())
    }

    async fn set_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), EngineError> {
        let (all, object) =
            (objects::checkpoints_path(&self.namespace), objects::checkpoint(checkpoint));
        if self.checkpoints.insert(checkpoint.metadata.clone()) {
            return self.send(Method::POST, &all, &object).await.map(|_| ());
        }
        // A merge patch would keep buckets that the new checkpoint does not have.
        let path = format!("{all}/{}", checkpoint.metadata.name);
        self.replace(&path, object).await.map(|_| ())
    }

    async fn set_target(&self, target: &Target) -> Result<(), EngineError> {
        let path = objects::targets_path(target);
        self.send(Method::POST, &path, &objects::target(target)).await.map(|_| ())
    }

    /// Reports an eviction. Its time is that of the event's creation.
    async fn evict(&self, oom: &ObservedOom) -> Result<ObservedOom, EngineError> {
        let path = objects::events_path(&self.namespace);
        let stored = self.send(Method::POST, &path, &objects::eviction(oom)).await?;
        let created = Timestamp::deserialize(&stored["metadata"]["creationTimestamp"]);
        let created = created.map_err(|error| self.broken(&error.to_string()))?;
        let kill = OomKill { at: GoTime::from_timestamp(created), ..oom.kill };
        Ok(ObservedOom { kill, ..oom.clone() })
    }

    fn serve(&mut self, metrics: &Result<Arc<Vec<PodMetrics>>, String>) {
        let pods = metrics.iter().flat_map(|pods| pods.iter());
        let sampled = pods.map(|pod| pod.pod.name.clone()).collect();
        let before = std::mem::replace(&mut self.sampled, sampled);
        let (api, namespace) = (&self.cluster.metrics, &self.namespace);
        samples::serve(api, namespace, self.epoch, before, metrics);
    }

    /// Starts the recommender.
    ///
    /// # Errors
    /// If the process can't be started.
    pub(crate) fn start_recommender(&mut self) -> Result<(), EngineError> {
        let log = self.cluster.folder().join(format!("{}.log", self.namespace));
        let started = Process::start(&self.command, log);
        let started = started.map_err(|error| self.broken(&format!("the recommender: {error}")))?;
        self.process = Some(started);
        Ok(())
    }

    async fn stop_recommender(&mut self) {
        if let Some(process) = self.process.take() {
            process.stop().await;
        }
    }

    /// Waits until the recommender reads the samples.
    ///
    /// # Errors
    /// If it does not in time, or has exited.
    pub(crate) async fn next_run(&mut self, limit: Duration) -> Result<StartedRun, EngineError> {
        let query = timeout(limit, self.queries.recv()).await;
        if let Some(status) = self.process.as_mut().and_then(Process::exited) {
            return Err(self.broken(&format!("the recommender has exited ({status})")));
        }
        let ServedSamples { received, answer } = match query {
            Ok(Some(query)) => query,
            _ => {
                let limit = Span(i64::try_from(limit.as_nanos()).unwrap_or(i64::MAX));
                let why = format!("the recommender did not read samples within {limit}");
                return Err(self.broken(&why));
            }
        };
        let samples = match answer {
            Ok(answer) => Ok(Arc::new(samples::read(&answer))),
            Err(error) => Err(error.message.to_string()),
        };
        Ok(StartedRun { received, samples })
    }

    /// Returns true if the recommender has read the samples again.
    pub(crate) fn has_next_run(&self) -> bool {
        !self.queries.is_empty()
    }

    /// Waits until this many writes were observed and not taken, but not longer than `latest`.
    pub(crate) async fn wait_for_writes(&mut self, count: usize, latest: Instant) {
        while self.observed() < count
            && let Ok(Some(write)) = timeout_at(latest, self.writes.recv()).await
        {
            self.pending.push_back(write);
        }
    }

    /// The number of writes that were observed and not taken.
    pub(crate) fn observed(&mut self) -> usize {
        while let Ok(write) = self.writes.try_recv() {
            self.pending.push_back(write);
        }
        self.pending.len()
    }

    /// Takes the observed writes.
    pub(crate) fn take_writes(&mut self) -> Vec<ObservedWrite> {
        self.observed();
        let writes: Vec<ObservedWrite> = self.pending.drain(..).collect();
        for write in writes.iter().filter_map(|it| it.write.as_ref().ok()) {
            match write {
                Write::Checkpoint { checkpoint, .. } => {
                    self.checkpoints.insert(checkpoint.metadata.clone());
                }
                Write::DeleteCheckpoint(name) => drop(self.checkpoints.remove(name)),
                Write::Status { .. } => {}
            }
        }
        writes
    }

    /// Stops the recommender. The control plane is about to be removed with all objects.
    pub(crate) async fn close(mut self) {
        self.stop_recommender().await;
        self.cluster.metrics.close(&self.namespace);
        self.cluster.dispatcher.close(&self.namespace);
    }
}
