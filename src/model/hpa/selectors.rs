//! Which pods an HPA's target selects, and which other HPAs select them too.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::by_key::ByKey;
use super::reconcile::Reconcile;
use crate::model::api::{ConditionType, Labels, Pod, Text, same_text};
use crate::model::observation::EventType;
use crate::model::selector::Selector;

/// The selectors of all HPAs that the controller knows, by key.
///
/// Upstream: hpa_selector_store.go, hpaSelectorStore. The older store behind the feature gate
/// HPAOptimizedSelectorStore gives the same answers.
#[derive(Clone, Debug, Default)]
pub(super) struct HpaSelectorStore {
    selectors: ByKey<Option<Arc<ParsedSelector>>>,
}

impl HpaSelectorStore {
    /// Registers an HPA; until its own first pass it selects nothing.
    pub(super) fn put_if_absent(&mut self, key: &Arc<str>) {
        self.selectors.get_or_default(key);
    }

    /// Stores a selector; false if the HPA is not registered.
    fn put_if_present(&mut self, key: &str, selector: &Arc<ParsedSelector>) -> bool {
        let Some(stored) = self.selectors.get_mut(key) else {
            return false;
        };
        match stored {
            Some(stored) if Arc::ptr_eq(stored, selector) => {}
            stored => *stored = Some(selector.clone()),
        }
        true
    }

    pub(super) fn delete(&mut self, key: &str) {
        self.selectors.remove(key);
    }

    /// Up to two HPAs of the namespace that select one of these pods. Upstream names any two, in
    /// any order; here they are the first ones found, sorted by key.
    ///
    /// Upstream: hpa_selector_store.go, HPAsMatchingPods
    fn hpas_matching_pods(
        &self,
        namespace: &str,
        pods: &[Arc<Pod>],
        selector: &Selector,
    ) -> Vec<Arc<str>> {
        let mut hpas = Vec::new();
        let of_namespace = |key: &str| key.split_once('/').is_some_and(|(ns, _)| ns == namespace);
        if self.selectors.len() < 2 {
            return hpas;
        }
        let mut listed = Matcher::new(selector);
        let mut seen: Option<&Labels> = None;
        for pod in pods.iter().filter(|pod| listed.matches(&pod.labels)) {
            if seen.is_some_and(|seen| Arc::ptr_eq(seen, &pod.labels)) {
                continue;
            }
            seen = Some(&pod.labels);
            for (key, selector) in self.selectors.iter().filter(|(key, _)| of_namespace(key)) {
                let matches = selector.as_ref().is_some_and(|it| it.selector.matches(&pod.labels));
                if matches && !hpas.contains(key) {
                    hpas.push(key.clone());
                    if hpas.len() == 2 {
                        hpas.sort();
                        return hpas;
                    }
                }
            }
        }
        hpas
    }
}

/// A selector with its text: as in the scale's status, and as in queries.
#[derive(Debug)]
pub(super) struct ParsedSelector {
    text: Arc<str>,
    pub(super) selector: Selector,
    pub(super) query: Arc<str>,
}

/// Applies a selector to many objects in a row, of which most share their labels: those of pods,
/// and those of their metrics.
pub(super) struct Matcher<'a> {
    selector: &'a Selector,
    last: Option<&'a BTreeMap<String, String>>,
    matches: bool,
    before: Option<(&'a BTreeMap<String, String>, bool)>,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(selector: &'a Selector) -> Matcher<'a> {
        Matcher { selector, last: None, matches: false, before: None }
    }

    #[inline]
    pub(super) fn matches(&mut self, labels: &'a Labels) -> bool {
        if !is_at(self.last, &**labels) {
            self.match_others(labels);
        }
        self.matches
    }

    #[cold]
    fn match_others(&mut self, labels: &'a Labels) {
        let before = self.last.replace(labels).map(|last| (last, self.matches));
        self.matches = match std::mem::replace(&mut self.before, before) {
            Some((known, matches)) if std::ptr::eq(known, &**labels) => matches,
            _ => self.selector.matches(labels),
        };
    }
}

/// Whether that is the very thing.
#[inline]
pub(super) fn is_at<T: ?Sized>(known: Option<&T>, it: &T) -> bool {
    known.is_some_and(|known| std::ptr::eq(known, it))
}

impl Reconcile<'_> {
    /// The selector of the scale, if it is usable and no other HPA selects the same pods.
    ///
    /// Upstream: horizontal.go, validateAndParseSelector
    pub(super) fn validate_and_parse_selector(
        &mut self,
        text: &Arc<str>,
    ) -> Result<Arc<ParsedSelector>, Text> {
        if text.is_empty() {
            let error = Text::from("selector is required");
            self.event(EventType::Warning, "SelectorRequired", error.clone());
            let message = format_args!("the HPA target's scale is missing a selector");
            self.set_condition(ConditionType::ScalingActive, false, "InvalidSelector", message);
            return Err(error);
        }
        let parsed = match self.parse_selector(text) {
            Ok(parsed) => parsed,
            Err(error) => return Err(self.invalid_selector("InvalidSelector", error)),
        };
        if !self.selectors.put_if_present(self.key, &parsed) {
            let (namespace, name) = (&self.hpa.namespace, &self.hpa.name);
            let error = format!("HPA {namespace}/{name} was deleted during reconciliation");
            return Err(error.into());
        }
        let hpas = self.selectors.hpas_matching_pods(
            &self.hpa.namespace,
            self.input.pods,
            &parsed.selector,
        );
        if let [a, b] = hpas.as_slice() {
            let error = format!(
                "pods by selector {text} are controlled by more than one HPA (e.g. [{a} {b}])"
            );
            return Err(self.invalid_selector("AmbiguousSelector", error));
        }
        Ok(parsed)
    }

    fn invalid_selector(&mut self, reason: &'static str, error: String) -> Text {
        let error = Text::from(error);
        self.event(EventType::Warning, reason, error.clone());
        let message = format_args!("{error}");
        self.set_condition(ConditionType::ScalingActive, false, reason, message);
        error
    }

    fn parse_selector(&mut self, text: &Arc<str>) -> Result<Arc<ParsedSelector>, String> {
        // It is put back when the metrics are computed.
        let cached = self.memory.cache.selector.take();
        if let Some(cached) = cached.filter(|it| same_text(&it.text, text)) {
            return Ok(cached);
        }
        let selector = Selector::parse(text).map_err(|error| {
            let what = "couldn't convert selector into a corresponding internal selector object";
            format!("{what}: {error}")
        })?;
        let query = selector.to_string().into();
        Ok(Arc::new(ParsedSelector { text: text.clone(), selector, query }))
    }
}
