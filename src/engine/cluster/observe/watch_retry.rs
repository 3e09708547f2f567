//! Watches that fail are started again; a watch that the API server keeps refusing ends the run.

use std::time::Duration;

use kube::runtime::watcher;
use tokio::time::sleep;

use crate::engine::cluster::observe::dispatch::Dispatcher;

/// Before a watch that has failed is begun again.
const PAUSE: Duration = Duration::from_millis(200);

/// So often one may be refused: rights that were just given take a moment.
const PATIENCE: u32 = 15;

/// How often a watch was refused.
#[derive(Default)]
pub(crate) struct Refusals(u32);

impl Refusals {
    /// Waits before a watch that has failed is begun again. One that is refused again and again
    /// will not be any better; a cluster that is gone is told by others.
    pub(crate) async fn wait_after(
        &mut self,
        error: &watcher::Error,
        of: &str,
        dispatcher: &Dispatcher,
    ) {
        if let Some(why) = refused(error) {
            self.0 += 1;
            if self.0 >= PATIENCE {
                dispatcher.mark_incomplete(format!("{of} can't be watched: {why}"));
            }
        }
        sleep(PAUSE).await;
    }
}

/// What the API server says to a watch that nobody has the right to, or that is of nothing.
fn refused(error: &watcher::Error) -> Option<&str> {
    let said = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(said))
        | watcher::Error::WatchStartFailed(kube::Error::Api(said)) => said,
        watcher::Error::WatchError(said) => said,
        _ => return None,
    };
    matches!(said.code, 401 | 403 | 404).then_some(&said.message)
}
