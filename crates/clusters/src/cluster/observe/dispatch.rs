//! Dispatches what a controller does to the scenario of its namespace.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::mpsc::UnboundedSender;

use crate::cluster::observe::action::ObservedAction;

/// Sends the actions in each namespace to the scenario that runs there.
#[derive(Debug)]
pub(crate) struct Dispatcher<T = ObservedAction> {
    by_namespace: Mutex<HashMap<String, UnboundedSender<T>>>,
    /// The reason why actions can no longer be observed completely.
    incomplete: OnceLock<String>,
    /// The number of times that a watch listed its objects again: versions in between may be
    /// missing.
    gaps: AtomicUsize,
    /// Forbidden requests of the controller.
    forbidden: Mutex<BTreeSet<Forbidden>>,
}

/// A request that the controller has no permission for.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Forbidden {
    /// `None`: the request concerns the whole cluster.
    namespace: Option<String>,
    message: String,
}

/// The maximum number of stored messages: a controller may repeat a forbidden request forever.
const MAX_FORBIDDEN: usize = 100;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// Derived, it would require `T: Default`.
impl<T> Default for Dispatcher<T> {
    fn default() -> Dispatcher<T> {
        Dispatcher {
            by_namespace: Mutex::default(),
            incomplete: OnceLock::new(),
            gaps: AtomicUsize::new(0),
            forbidden: Mutex::default(),
        }
    }
}

impl<T> Dispatcher<T> {
    pub(crate) fn open(&self, namespace: &str, to: UnboundedSender<T>) {
        lock(&self.by_namespace).insert(namespace.to_owned(), to);
    }

    pub(crate) fn close(&self, namespace: &str) {
        lock(&self.by_namespace).remove(namespace);
    }

    pub(crate) fn dispatch(&self, namespace: &str, action: T) {
        if let Some(to) = lock(&self.by_namespace).get(namespace) {
            // The receiver is dropped when the scenario is over.
            let _ = to.send(action);
        }
    }

    pub(crate) fn add_gap(&self) {
        self.gaps.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn gaps(&self) -> usize {
        self.gaps.load(Ordering::Relaxed)
    }

    /// Records that actions can no longer be observed completely.
    pub(crate) fn mark_incomplete(&self, why: String) {
        // Only the first reason is kept.
        let _ = self.incomplete.set(why);
    }

    /// The reason why actions can no longer be observed completely, if any.
    pub(crate) fn incomplete(&self) -> Option<String> {
        self.incomplete.get().cloned()
    }

    /// The messages of forbidden requests that concern a namespace or the whole cluster.
    pub(crate) fn forbidden(&self, namespace: &str) -> Vec<String> {
        let forbidden = lock(&self.forbidden);
        let concerns = |it: &&Forbidden| it.namespace.as_deref().is_none_or(|it| it == namespace);
        forbidden.iter().filter(concerns).map(|it| it.message.clone()).collect()
    }

    pub(crate) fn add_forbidden(&self, namespace: Option<String>, message: String) {
        let mut forbidden = lock(&self.forbidden);
        if forbidden.len() < MAX_FORBIDDEN {
            forbidden.insert(Forbidden { namespace, message });
        }
    }
}
