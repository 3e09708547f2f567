//! Watches that are restarted after failures. If the API server keeps refusing a watch, the
//! observation is incomplete.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::Api;
use kube::core::Resource;
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use serde::de::DeserializeOwned;

use crate::cluster::observe::dispatch::Dispatcher;
use crate::cluster::timeouts::WATCH_RETRY_INTERVAL;

/// The number of refusals (three seconds) after which a watch counts as refused. Permissions that
/// were just granted take a moment to become effective.
const MAX_REFUSALS: u32 = 15;

/// Retries forever at [`WATCH_RETRY_INTERVAL`].
struct ConstantBackoff;

impl Iterator for ConstantBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(WATCH_RETRY_INTERVAL)
    }
}

impl Backoff for ConstantBackoff {
    fn reset(&mut self) {}
}

/// The events of a watch that is started again after each failure, which is passed to `failed`.
pub(crate) fn retried<K>(
    api: Api<K>,
    config: watcher::Config,
    mut failed: impl FnMut(watcher::Error) + Send,
) -> impl Stream<Item = Event<K>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let events = watcher(api, config).backoff(ConstantBackoff);
    events.filter_map(move |event| std::future::ready(event.map_err(&mut failed).ok()))
}

/// The events of a watch. `resource` names its objects in messages.
pub(crate) fn watch<K>(
    api: Api<K>,
    config: watcher::Config,
    resource: String,
    dispatcher: Arc<Dispatcher>,
) -> impl Stream<Item = Event<K>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut refusals = 0;
    retried(api, config, move |error| {
        if let Some(why) = refusal(&error) {
            refusals += 1;
            if refusals >= MAX_REFUSALS {
                dispatcher.mark_incomplete(format!("{resource} can't be watched: {why}"));
            }
        }
    })
}

/// The message of an API server that does not permit a watch, or does not serve the resource.
fn refusal(error: &watcher::Error) -> Option<&str> {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status,
        watcher::Error::WatchError(status) => status,
        _ => return None,
    };
    matches!(status.code, 401 | 403 | 404).then_some(&status.message)
}
