//! The parts of a cluster that its scenarios share.

use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use tokio::time::{Instant, sleep};

use crate::cluster::load::probe::LatencyProbe;
use crate::cluster::load::setup_queue::{SetupPermit, SetupQueue};
use crate::cluster::metrics_api::state::Metrics;
use crate::cluster::observe::dispatch::Dispatcher;
use crate::cluster::observe::observability::Observability;
use crate::cluster::provision::custom_controller::ProcessLog;
use crate::cluster::session::pod_cache::PodCache;
use crate::cluster::timeouts::{BUSY_TIMEOUT, HEALTH_POLL_INTERVAL};
use kube_autoscaler_models::time::Time;
use kube_lockstep_sim::engine::EngineError;

/// With fewer scenarios, a cluster does not count as busy.
const MANY_SESSIONS: usize = 8;

/// The state that all scenarios of a cluster share.
pub(crate) struct ClusterContext {
    pub name: Arc<str>,
    pub client: Client,
    pub metrics: Arc<Metrics>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) pod_cache: Arc<PodCache>,
    pub probe: Arc<LatencyProbe>,
    /// The log of a custom controller.
    pub(crate) controller_log: Option<ProcessLog>,
    pub(crate) observability: Observability,
    /// Limits the number of concurrent setups, because they would delay each other.
    pub(crate) setup_queue: SetupQueue,
    /// A reference count: each open session holds a reference.
    pub sessions: Arc<()>,
    /// True if the cluster is removed after the run.
    pub(crate) is_disposable: bool,
}

impl ClusterContext {
    pub(crate) fn broken(&self, why: impl Into<String>) -> EngineError {
        EngineError::Broken { engine: self.name.clone(), why: why.into(), output: String::new() }
    }

    /// Waits until the objects of another scenario can be created without delaying running
    /// scenarios. The permit is held until they are created.
    pub(crate) async fn setup_permit(&self, length: Time) -> Option<SetupPermit> {
        let permit = self.setup_queue.acquire(length).await;
        let begin = Instant::now();
        let are_many = || Arc::strong_count(&self.sessions) > MANY_SESSIONS;
        while are_many() && !self.probe.is_idle(Timestamp::now()) && begin.elapsed() < BUSY_TIMEOUT
        {
            sleep(HEALTH_POLL_INTERVAL).await;
        }
        permit
    }
}
