//! The pods that an HPA's target selects, and the other HPAs that select them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Reconcile;
use crate::model::api::{ConditionType, Labels, Pod, Text};
use crate::model::flags::Gate;
use crate::model::hpa::go::without_arguments;
use crate::model::observation::EventType;
use crate::model::rules::AmbiguousHpas;
use crate::model::selector::Selector;

const ORDER_OF_HPAS: &str = "the controller of this release names the HPAs with the same pods in \
                             the random order of a map, and writes a status when it changes";

/// The selectors of all HPAs that the controller knows, by key.
///
/// Upstream: hpa_selector_store.go, hpaSelectorStore. The older store, without the feature gate
/// HPAOptimizedSelectorStore, names all HPAs where the newer one stops at two.
#[derive(Clone, Debug, Default)]
pub(crate) struct HpaSelectorStore {
    selectors: BTreeMap<Arc<str>, Option<Arc<ParsedSelector>>>,
}

impl HpaSelectorStore {
    /// Registers an HPA; until its first reconcile it selects nothing.
    pub(crate) fn put_if_absent(&mut self, key: &Arc<str>) {
        self.selectors.entry(key.clone()).or_default();
    }

    /// Stores a selector; false if the HPA is not registered.
    fn put_if_present(&mut self, key: &str, selector: &Arc<ParsedSelector>) -> bool {
        let Some(stored) = self.selectors.get_mut(key) else {
            return false;
        };
        if !stored.as_ref().is_some_and(|stored| Arc::ptr_eq(stored, selector)) {
            *stored = Some(selector.clone());
        }
        true
    }

    pub(crate) fn delete(&mut self, key: &str) {
        self.selectors.remove(key);
    }

    /// The keys of the registered HPAs, sorted.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.selectors.keys()
    }

    /// The keys of the HPAs of the namespace that select one of these pods, at most `limit`. The
    /// order is random upstream; the host of upstream's code sorts them as well.
    ///
    /// Upstream: hpa_selector_store.go, HPAsMatchingPods
    fn hpas_matching_pods(
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
        let of_namespace = |key: &str| key.split_once('/').is_some_and(|(ns, _)| ns == namespace);
        let selects = |selector: &Selector| labels.iter().any(|labels| selector.matches(labels));
        let matching = self.selectors.iter().filter(|(key, selector)| {
            of_namespace(key) && selector.as_ref().is_some_and(|it| selects(&it.selector))
        });
        matching.take(limit).map(|(key, _)| key.clone()).collect()
    }
}

/// A selector with its text in the scale's status and in queries.
#[derive(Debug)]
pub(crate) struct ParsedSelector {
    text: Arc<str>,
    pub(crate) selector: Selector,
    pub(crate) query: Arc<str>,
}

/// Matches a selector against many objects in a row. Most share their labels with the object before
/// them, or with the one before that: pods and their metrics alternate. Without this cache, 10,000
/// pods whose metrics differ take 0.63 of the ticks/s.
pub(crate) struct Matcher<'a> {
    selector: &'a Selector,
    last: Option<&'a BTreeMap<String, String>>,
    matches: bool,
    before: Option<(&'a BTreeMap<String, String>, bool)>,
}

impl<'a> Matcher<'a> {
    pub(crate) fn new(selector: &'a Selector) -> Matcher<'a> {
        Matcher { selector, last: None, matches: false, before: None }
    }

    #[inline]
    pub(crate) fn matches(&mut self, labels: &'a Labels) -> bool {
        if !is_same(self.last, &**labels) {
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

/// Returns true if both are the same object.
#[inline]
pub(crate) fn is_same<T: ?Sized>(known: Option<&T>, it: &T) -> bool {
    known.is_some_and(|known| std::ptr::eq(known, it))
}

impl Reconcile<'_> {
    /// The selector of the scale, if it is valid and no other HPA selects the same pods.
    ///
    /// Upstream: horizontal.go, validateAndParseSelector
    pub(crate) fn validate_and_parse_selector(
        &mut self,
        text: &Arc<str>,
    ) -> Result<Arc<ParsedSelector>, Text> {
        if text.is_empty() {
            let error = Text::from("selector is required");
            self.event(EventType::Warning, "SelectorRequired", error.clone());
            let message = "the HPA target's scale is missing a selector";
            self.set_condition(ConditionType::ScalingActive, false, "InvalidSelector", message);
            return Err(error);
        }
        let parsed = match self.parse_selector(text) {
            Ok(parsed) => parsed,
            Err(error) => return Err(self.invalid_selector("InvalidSelector", error)),
        };
        let rules = &self.config.rules;
        if !self.selectors.put_if_present(self.key, &parsed) && rules.queue.deletion_ends_reconcile
        {
            let (namespace, name) = (&self.hpa.namespace, &self.hpa.name);
            let error = format!("HPA {namespace}/{name} was deleted during reconciliation");
            return Err(error.into());
        }
        if !rules.pods.ambiguous_selector_is_checked {
            return Ok(parsed);
        }
        let limit = match self.config.gates.enabled(Gate::HpaOptimizedSelectorStore) {
            true => 2,
            false => usize::MAX,
        };
        let (namespace, pods) = (&self.hpa.namespace, self.input.pods);
        let hpas = self.selectors.hpas_matching_pods(namespace, pods, &parsed.selector, limit);
        if hpas.len() > 1 {
            let hpas = hpas.join(" ");
            let error = match rules.texts.ambiguous_hpas {
                AmbiguousHpas::Example => format!(
                    "pods by selector {text} are controlled by more than one HPA (e.g. [{hpas}])"
                ),
                AmbiguousHpas::All => {
                    self.derivation.chance = Some(ORDER_OF_HPAS);
                    format!("pods by selector {text} are controlled by multiple HPAs: [{hpas}]")
                }
            };
            return Err(self.invalid_selector("AmbiguousSelector", error));
        }
        Ok(parsed)
    }

    fn invalid_selector(&mut self, reason: &'static str, error: String) -> Text {
        let error = Text::from(error);
        self.event(EventType::Warning, reason, error.clone());
        let is_format = self.config.rules.texts.selector_messages_are_formats;
        self.set_inactive(reason, error.to_string(), is_format);
        match is_format {
            true => without_arguments(error.as_str()).into(),
            false => error,
        }
    }

    /// Parses a selector, unless it is that of the last reconcile: parsing it each time takes 0.55
    /// of the ticks/s at 10 pods.
    fn parse_selector(&mut self, text: &Arc<str>) -> Result<Arc<ParsedSelector>, String> {
        if let Some(parsed) = self.memory.selector.as_ref().filter(|it| it.text == *text) {
            return Ok(parsed.clone());
        }
        let selector = Selector::parse(text).map_err(|error| {
            let what = "couldn't convert selector into a corresponding internal selector object";
            format!("{what}: {error}")
        })?;
        let query = selector.to_string().into();
        let parsed = Arc::new(ParsedSelector { text: text.clone(), selector, query });
        self.memory.selector = Some(parsed.clone());
        Ok(parsed)
    }
}
