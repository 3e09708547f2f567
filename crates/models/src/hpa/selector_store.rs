//! The selectors of all HPAs, by which the controller finds HPAs that share pods.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::api::{Labels, Pod};
use crate::selector::{Matcher, Selector};
use crate::shared::Shared;
use crate::state::State;

/// The selectors of all HPAs that the controller knows, by key.
///
/// Upstream: hpa_selector_store.go, hpaSelectorStore. The older store, without the feature gate
/// HPAOptimizedSelectorStore, names all HPAs where the newer one stops at two.
#[derive(Clone, Debug, Default)]
pub(crate) struct HpaSelectorStore {
    selectors: Shared<BTreeMap<Arc<str>, Option<Arc<ParsedSelector>>>>,
    /// The orders in which upstream named HPAs with the same pods, for the next reconciles.
    observed_orders: VecDeque<Vec<String>>,
}

impl HpaSelectorStore {
    /// Registers an HPA; it selects nothing until its first reconcile.
    pub(crate) fn put_if_absent(&mut self, key: &Arc<str>) {
        self.selectors.entry(key.clone()).or_default();
    }

    /// Stores a selector; returns false if the HPA is not registered.
    pub(crate) fn put_if_present(&mut self, key: &str, selector: &Arc<ParsedSelector>) -> bool {
        let Some(stored) = self.selectors.get(key) else {
            return false;
        };
        if !stored.as_ref().is_some_and(|stored| Arc::ptr_eq(stored, selector)) {
            self.selectors.insert(key.into(), Some(selector.clone()));
        }
        true
    }

    pub(crate) fn delete(&mut self, key: &str) {
        self.selectors.remove(key);
    }

    /// The number of registered HPAs.
    pub(crate) fn len(&self) -> usize {
        self.selectors.len()
    }

    /// The keys of the registered HPAs, sorted.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.selectors.keys()
    }

    /// Adds the selectors.
    pub(crate) fn add_to(&self, state: &mut State) {
        state.count(self.selectors.len());
        for (key, selector) in self.selectors.iter() {
            state.text(key);
            state.text(selector.as_ref().map_or("", |selector| &selector.text));
        }
    }

    /// Sets the orders in which the next reconciles name HPAs with the same pods, where that is
    /// left to chance.
    pub(crate) fn follow_orders(&mut self, orders: impl IntoIterator<Item = Vec<String>>) {
        self.observed_orders = orders.into_iter().collect();
    }

    /// The same HPAs in the next observed order, or unchanged if it names other HPAs.
    pub(crate) fn in_observed_order(&mut self, hpas: Vec<Arc<str>>) -> Vec<Arc<str>> {
        let Some(order) = self.observed_orders.pop_front() else { return hpas };
        let place = |hpa: &Arc<str>| order.iter().position(|named| **named == **hpa);
        if order.len() != hpas.len() || hpas.iter().any(|hpa| place(hpa).is_none()) {
            return hpas;
        }
        let mut sorted = hpas;
        sorted.sort_by_key(place);
        sorted
    }

    /// The keys of the HPAs of the namespace that select one of these pods, at most `limit`. The
    /// order is random upstream; the host of upstream's code sorts them as well.
    ///
    /// Upstream: hpa_selector_store.go, HPAsMatchingPods
    pub(crate) fn hpas_matching_pods(
        &self,
        namespace: &str,
        pods: &[Arc<Pod>],
        selector: &Selector,
        limit: usize,
    ) -> Vec<Arc<str>> {
        if self.selectors.len() < 2 {
            return Vec::new();
        }
        let mut labels: Vec<&Labels> = Vec::new();
        let mut listed = Matcher::new(selector);
        for pod in pods.iter().filter(|pod| listed.matches(&pod.labels)) {
            if !labels.iter().any(|seen| Arc::ptr_eq(seen, &pod.labels)) {
                labels.push(&pod.labels);
            }
        }
        let is_in_namespace =
            |key: &str| key.split_once('/').is_some_and(|(ns, _)| ns == namespace);
        let selects = |selector: &Selector| labels.iter().any(|labels| selector.matches(labels));
        let matching = self.selectors.iter().filter(|(key, selector)| {
            is_in_namespace(key) && selector.as_ref().is_some_and(|it| selects(&it.selector))
        });
        matching.take(limit).map(|(key, _)| key.clone()).collect()
    }
}

/// A selector with its text, as in the scale's status and in queries.
#[derive(Debug)]
pub(crate) struct ParsedSelector {
    pub text: Arc<str>,
    pub selector: Selector,
    pub query: Arc<str>,
}
