//! Hands each action of the controller to the scenario in whose namespace it happened.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::UnboundedSender;

use crate::engine::cluster::observe::action::ObservedAction;

/// Hands on what is done in each namespace to the one who plays there.
#[derive(Debug, Default)]
pub(crate) struct Dispatcher {
    by_namespace: Mutex<HashMap<String, UnboundedSender<ObservedAction>>>,
    /// Why not all can be seen.
    lost: Mutex<Option<String>>,
    /// What the controller had no right to: the namespace, if it was of one, and what was said.
    refused: Mutex<BTreeSet<(Option<String>, String)>>,
}

/// So much of what was refused is kept: a controller may ask for it again and again.
const REFUSED: usize = 100;

impl Dispatcher {
    pub(crate) fn open(&self, namespace: &str, to: UnboundedSender<ObservedAction>) {
        let mut dispatcher = self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        dispatcher.insert(namespace.to_owned(), to);
    }

    pub(crate) fn close(&self, namespace: &str) {
        let mut dispatcher = self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        dispatcher.remove(namespace);
    }

    pub(crate) fn dispatch(&self, namespace: &str, did: ObservedAction) {
        let dispatcher = self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(to) = dispatcher.get(namespace) {
            // Nobody listens any more when a scenario is over.
            let _ = to.send(did);
        }
    }

    /// Tells all of them.
    pub(crate) fn dispatch_to_all(&self, did: &ObservedAction) {
        let dispatcher = self.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        dispatcher.values().for_each(|to| drop(to.send(did.clone())));
    }

    fn lock_lost(&self) -> MutexGuard<'_, Option<String>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on not all can be seen.
    pub(crate) fn mark_incomplete(&self, why: String) {
        self.lock_lost().get_or_insert(why);
    }

    /// Why something that was done may not have been handed on.
    pub(crate) fn incomplete(&self) -> Option<String> {
        self.lock_lost().clone()
    }

    /// What the controller had no right to, in a namespace or in all of the cluster.
    pub(crate) fn refused(&self, namespace: &str) -> Vec<String> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let of =
            |(of, _): &&(Option<String>, String)| of.as_deref().is_none_or(|of| of == namespace);
        refused.iter().filter(of).map(|(_, what)| what.clone()).collect()
    }

    /// Keeps the message of a refused request; without a namespace it concerns the whole cluster.
    pub(crate) fn keep_refusal(&self, namespace: Option<String>, message: String) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < REFUSED {
            refused.insert((namespace, message));
        }
    }
}
