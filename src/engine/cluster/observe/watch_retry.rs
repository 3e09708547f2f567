//! Watches that are restarted after failures; one that the API server keeps refusing makes the
//! observation incomplete.

use std::fmt::Debug;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use kube::Api;
use kube::core::Resource;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use serde::de::DeserializeOwned;

use crate::engine::cluster::observe::dispatch::Dispatcher;

/// A watch that was refused this often stays refused. With the default backoff that is after at
/// least five seconds: permissions that were just granted take a moment to become effective.
const MAX_REFUSALS: u32 = 4;

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
    let events = watcher(api, config).default_backoff();
    events.filter_map(move |event| {
        if let Some(why) = event.as_ref().err().and_then(refusal) {
            refusals += 1;
            if refusals >= MAX_REFUSALS {
                dispatcher.mark_incomplete(format!("{resource} can't be watched: {why}"));
            }
        }
        std::future::ready(event.ok())
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
