//! Which pods an HPA's target selects, and which other HPAs select them too.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::by_key::ByKey;
use super::go_format::without_arguments;
use super::reconcile::Reconcile;
use crate::model::api::{ConditionType, Labels, Pod, Text, same_text};
use crate::model::flags::Gate;
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

    /// The HPAs that there are, sorted.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.selectors.iter().map(|(key, _)| key)
    }

    /// HPAs of the namespace that select one of these pods, by key: two at most, or all. Which
    /// two, and in which order, is up to chance upstream; the host of upstream's code sorts them,
    /// too.
    ///
    /// Upstream: hpa_selector_store.go, HPAsMatchingPods
    fn hpas_matching_pods(
        &self,
        namespace: &str,
        pods: &[Arc<Pod>],
        (selector, all): (&Selector, bool),
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
        let limit = if all { usize::MAX } else { 2 };
        matching.take(limit).map(|(key, _)| key.clone()).collect()
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
        let rules = self.config.rules;
        if !self.selectors.put_if_present(self.key, &parsed) && rules.deletion_ends_reconcile {
            let (namespace, name) = (&self.hpa.namespace, &self.hpa.name);
            let error = format!("HPA {namespace}/{name} was deleted during reconciliation");
            return Err(error.into());
        }
        if !rules.ambiguous_selector_is_checked {
            return Ok(parsed);
        }
        let hpas = self.selectors.hpas_matching_pods(
            &self.hpa.namespace,
            self.input.pods,
            (&parsed.selector, !self.config.gates.enabled(Gate::HpaOptimizedSelectorStore)),
        );
        if hpas.len() > 1 {
            let hpas = hpas.join(" ");
            let error = match rules.ambiguous_hpas {
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
        let is_format = self.config.rules.selector_messages_are_formats;
        self.set_inactive(reason, format_args!("{error}"), is_format);
        match is_format {
            true => without_arguments(error.as_str()).into(),
            false => error,
        }
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
