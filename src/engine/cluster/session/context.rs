//! The parts of a cluster that its scenarios share.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::time::{Instant, sleep};

use crate::engine::EngineError;
use crate::engine::cluster::load::probe::LatencyProbe;
use crate::engine::cluster::load::setup_queue::{SetupPermit, SetupQueue};
use crate::engine::cluster::metrics_api::state::Metrics;
use crate::engine::cluster::observe::dispatch::Dispatcher;
use crate::engine::cluster::observe::observability::Observability;
use crate::engine::cluster::provision::custom_controller::Said;
use crate::engine::cluster::session::pod_cache::Seen;
use crate::model::time::Time;

/// So many are too few to keep a cluster busy.
const FEW: usize = 8;

/// How long a cluster that is busy is spared another scenario.
const MERCY: Duration = Duration::from_secs(4);

/// How often it is looked whether it still is.
const GLANCE: Duration = Duration::from_millis(20);

/// What all scenarios of a cluster share.
pub(crate) struct Stage {
    pub(crate) name: Arc<str>,
    pub(crate) client: Client,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) seen: Arc<Seen>,
    pub(crate) probe: Arc<LatencyProbe>,
    /// The controller, where it is not upstream's, and what it says.
    pub(crate) said: Option<Said>,
    pub(crate) observability: Observability,
    /// Whose objects are made: where all are made at once, none is done in time.
    pub(crate) setup_queue: SetupQueue,
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
    pub(crate) async fn turn(&self, length: Time) -> Option<SetupPermit> {
        let turn = self.setup_queue.acquire(length).await;
        let begin = Instant::now();
        let are_many = || Arc::strong_count(&self.scenes) > FEW;
        while are_many() && !self.probe.is_idle(Timestamp::now()) && begin.elapsed() < MERCY {
            sleep(GLANCE).await;
        }
        turn
    }
}
