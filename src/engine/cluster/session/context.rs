//! The parts of a cluster that its scenarios share.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::time::{Instant, sleep};

use crate::engine::EngineError;
use crate::engine::cluster::load::probe::Pulse;
use crate::engine::cluster::load::setup_queue::{Opening, Openings};
use crate::engine::cluster::metrics_api::state::Metrics;
use crate::engine::cluster::observe::dispatch::Routes;
use crate::engine::cluster::observe::observability::Sight;
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
