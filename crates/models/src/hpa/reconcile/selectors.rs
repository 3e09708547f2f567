//! The pods that an HPA's target selects, and the other HPAs that select them.

use std::sync::Arc;

use super::Reconcile;
use crate::api::{ConditionType, Text};
use crate::flags::Gate;
use crate::hpa::go::without_arguments;
use crate::hpa::selector_store::ParsedSelector;
use crate::observation::{Event, EventType};
use crate::rules::AmbiguousHpas;
use crate::selector::Selector;

const ORDER_OF_HPAS: &str = "the controller of this release names the HPAs with the same pods in \
                             the random order of a map";

/// The reason of the event about other HPAs with the same pods.
const AMBIGUOUS_SELECTOR: &str = "AmbiguousSelector";

/// The text before the names of those HPAs, if the event names all of them.
const MULTIPLE_HPAS: &str = "multiple HPAs: [";

/// The HPAs with the same pods, in the order in which an observed event names them. Upstream uses a
/// random order, which only the message of the event shows. `None` for other events.
#[must_use]
pub fn hpas_with_same_pods(event: &Event) -> Option<Vec<String>> {
    if event.reason.as_str() != AMBIGUOUS_SELECTOR {
        return None;
    }
    let names = event.message.as_str().split_once(MULTIPLE_HPAS).map(|(_, names)| names);
    let names = names.and_then(|names| names.strip_suffix(']')).unwrap_or_default();
    Some(names.split(' ').map(str::to_owned).collect())
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
            let error = match rules.texts.ambiguous_hpas {
                AmbiguousHpas::Example => format!(
                    "pods by selector {text} are controlled by more than one HPA (e.g. [{}])",
                    hpas.join(" ")
                ),
                AmbiguousHpas::All => {
                    self.derivation.random_part = Some(ORDER_OF_HPAS);
                    let hpas = self.selectors.in_observed_order(hpas).join(" ");
                    format!("pods by selector {text} are controlled by {MULTIPLE_HPAS}{hpas}]")
                }
            };
            return Err(self.invalid_selector(AMBIGUOUS_SELECTOR, error));
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

    /// Parses a selector, unless it equals the selector of the last reconcile: parsing it each time
    /// reduces the ticks/s at 10 pods to 0.55 of the value.
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
