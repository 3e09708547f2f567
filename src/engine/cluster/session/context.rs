//! The parts of a cluster that its scenarios share.

use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use tokio::time::{Instant, sleep};

use crate::engine::EngineError;
use crate::engine::cluster::load::probe::LatencyProbe;
use crate::engine::cluster::load::setup_queue::{SetupPermit, SetupQueue};
use crate::engine::cluster::metrics_api::state::Metrics;
use crate::engine::cluster::observe::dispatch::Dispatcher;
use crate::engine::cluster::observe::observability::Observability;
use crate::engine::cluster::provision::custom_controller::ProcessLog;
use crate::engine::cluster::session::pod_cache::PodCache;
use crate::engine::cluster::timeouts::{BUSY_TIMEOUT, HEALTH_POLL_INTERVAL};
use crate::model::time::Time;

/// With so many scenarios, a cluster is not busy.
const FEW: usize = 8;

/// The state that all scenarios of a cluster share.
pub(crate) struct ClusterContext {
    pub(crate) name: Arc<str>,
    pub(crate) client: Client,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) seen: Arc<PodCache>,
    pub(crate) probe: Arc<LatencyProbe>,
    /// The log of a custom controller.
    pub(crate) said: Option<ProcessLog>,
    pub(crate) observability: Observability,
    /// Whose objects are made: where all are made at once, none is done in time.
    pub(crate) setup_queue: SetupQueue,
    /// Each that is there has one of it.
    pub(crate) sessions: Arc<()>,
    /// The cluster does not outlive the run.
    pub(crate) is_disposable: bool,
}

impl ClusterContext {
    pub(crate) fn broken(&self, why: impl Into<String>) -> EngineError {
        EngineError::Broken { engine: self.name.clone(), why: why.into(), output: String::new() }
    }

    /// Waits until the objects of another scenario can be created without delaying running
    /// scenarios. The permit is held until they are created.
    pub(crate) async fn turn(&self, length: Time) -> Option<SetupPermit> {
        let turn = self.setup_queue.acquire(length).await;
        let begin = Instant::now();
        let are_many = || Arc::strong_count(&self.sessions) > FEW;
        while are_many() && !self.probe.is_idle(Timestamp::now()) && begin.elapsed() < BUSY_TIMEOUT
        {
            sleep(HEALTH_POLL_INTERVAL).await;
        }
        turn
    }
}
