//! The findings of a run so far, tick by tick.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::Note;
use super::observed_vpa::ObservedVpa;
use super::predicted::Predicted;
use super::random::RandomOutcome;
use crate::compare::{self, Divergence, FieldDifference, KnownDisagreement};
use crate::engine::sent_events::SentEvents;
use crate::expect::ExternalScale;
use crate::trace::{Observation, Scope, Stepped, Trace};
use kube_autoscaler_models::derivation::Derivation;
use kube_autoscaler_models::hpa::Decision;
use kube_autoscaler_models::rules::Rules;
use kube_autoscaler_models::time::Time;

/// The findings so far, tick by tick.
pub struct Findings<'k> {
    /// The reconciles so far, as the engine reported them.
    pub trace: Trace,
    pub(crate) why: Vec<String>,
    pub(crate) derivations: Vec<Option<Derivation>>,
    /// The known disagreements about this scenario and release.
    pub known: Vec<&'k KnownDisagreement>,
    pub(crate) hits: Vec<&'k KnownDisagreement>,
    /// The first difference from the model.
    pub divergence: Option<Divergence>,
    /// The first difference of the run that did not wait for the engine's answers. All other
    /// findings are those of its repetition, step by step.
    pub(super) not_repeated: Option<Divergence>,
    /// True if the divergence was found after all ticks had been compared.
    pub(super) is_found_after_the_run: bool,
    pub(crate) compared: usize,
    /// Writes of replicas by others than the HPA.
    pub external_scales: Vec<ExternalScale>,
    /// Why the rest of the run is left to chance, if it is.
    pub undetermined: Option<RandomOutcome>,
    pub(crate) notes: Vec<Note>,
    /// The actions of the VPA, if the scenario has one.
    pub(super) vpa: Option<Box<ObservedVpa>>,
    /// The rules of the release.
    rules: Rules,
    /// Predicts the requests that send events, if they are observed.
    sent_events: Option<SentEvents>,
}

impl<'k> Findings<'k> {
    /// No findings yet.
    pub fn new(trace: Trace, known: &'k [KnownDisagreement]) -> Findings<'k> {
        let known = known.iter().filter(|known| known.covers(&trace.scenario, &trace.release));
        let known = known.collect();
        Findings {
            trace,
            why: Vec::new(),
            derivations: Vec::new(),
            known,
            hits: Vec::new(),
            divergence: None,
            not_repeated: None,
            is_found_after_the_run: false,
            compared: 0,
            external_scales: Vec::new(),
            undetermined: None,
            notes: Vec::new(),
            vpa: None,
            rules: Rules::default(),
            sent_events: None,
        }
    }

    /// Compares by the rules of a release. The default is the newest one.
    pub(super) fn by_rules(mut self, rules: Rules) -> Findings<'k> {
        self.rules = rules;
        self
    }

    /// Predicts the requests that send events.
    pub(super) fn with_sent_events(mut self) -> Findings<'k> {
        self.sent_events = Some(SentEvents::new(self.rules));
        self
    }

    /// Adds a difference that was found after all ticks had been compared, at a time after `tick`
    /// ticks. `why` is the reason for what the model did.
    pub(super) fn found_after_the_run(
        &mut self,
        tick: usize,
        at: Time,
        field: FieldDifference,
        why: &str,
    ) {
        self.found(tick, at, vec![field]);
        self.is_found_after_the_run = self.divergence.is_some();
        let reason = tick.checked_sub(1).and_then(|index| self.why.get_mut(index));
        if let Some(reason) = reason.filter(|_| self.is_found_after_the_run) {
            why.clone_into(reason);
        }
    }

    /// Adds differences. Those that no known disagreement explains are a divergence.
    pub fn found(&mut self, tick: usize, at: Time, fields: Vec<FieldDifference>) {
        let mut open = Vec::new();
        for field in fields {
            match self.known.iter().find(|known| known.explains(&field)) {
                Some(known) if !self.hits.contains(known) => self.hits.push(known),
                Some(_) => {}
                None => open.push(field),
            }
        }
        if !open.is_empty() && self.divergence.is_none() {
            self.divergence = Some(Divergence { tick, at, fields: open });
        }
    }

    /// Removes the last tick, which agreed, because its reconcile was not over.
    pub fn take_back(&mut self) {
        self.trace.ticks.pop();
        self.why.pop();
        self.derivations.pop();
        self.compared = self.compared.saturating_sub(1);
    }

    /// The prediction of a reconcile, with the requests that send its events. The observed
    /// reconcile decides what upstream leaves to chance.
    fn expected<'d>(&mut self, decision: &'d Decision, seen: &Observation) -> Cow<'d, Observation> {
        let ordered = match self.rules.events.in_order {
            true => Cow::Borrowed(decision),
            false => decision.with_events_as(seen),
        };
        match (&mut self.sent_events, ordered) {
            (Some(sent), Cow::Borrowed(decision)) => sent.predict(decision, Some(seen)),
            (Some(sent), Cow::Owned(it)) => Cow::Owned(sent.predict(&it, Some(seen)).into_owned()),
            (None, Cow::Borrowed(decision)) => Cow::Borrowed(&decision.observation),
            (None, Cow::Owned(decision)) => Cow::Owned(decision.observation),
        }
    }

    /// Compares the reconciles that had not ended at the end of the scenario.
    pub(super) fn compare_unfinished(
        &mut self,
        decisions: &[&Decision],
        seen: Vec<Observation>,
        scope: Scope,
    ) {
        let of_decisions = decisions.iter().map(|it| &it.observation.hpa);
        let names: BTreeSet<Arc<str>> =
            of_decisions.chain(seen.iter().map(|tick| &tick.hpa)).cloned().collect();
        for name in names {
            let decision = decisions.iter().find(|it| it.observation.hpa == name);
            let tick = seen.iter().find(|tick| tick.hpa == name);
            let at = tick.or(decision.map(|it| &it.observation)).map_or(Time::ZERO, |it| it.at);
            let fields = match (decision, tick) {
                (Some(decision), Some(tick)) => {
                    compare::observations(&self.expected(decision, tick), tick, scope)
                }
                (decision, tick) => compare::unmatched(decision.map(|it| &it.observation), tick),
            };
            self.found(self.trace.ticks.len(), at, fields);
        }
        self.trace.unfinished = seen;
    }

    /// Compares one step, and adds its ticks to the trace.
    pub fn compare(&mut self, predicted: &Predicted, stepped: Stepped, scope: Scope) {
        let before = self.trace.ticks.len();
        if let Some(sent_events) = &mut self.sent_events {
            predicted.step.apply.iter().for_each(|change| sent_events.apply(change));
        }
        for index in 0..predicted.api.len().max(stepped.api.len()) {
            let fields = match (predicted.api.get(index), stepped.api.get(index)) {
                (Some(model), Some(seen)) => compare::api_answers(model, seen),
                (model, seen) => vec![FieldDifference {
                    field: "api".to_owned(),
                    model: model.map_or("no answer", |_| "an answer").to_owned(),
                    upstream: seen.map_or("no answer", |_| "an answer").to_owned(),
                }],
            };
            self.found(before, predicted.step.until, fields);
        }
        for index in 0..predicted.decisions.len().max(stepped.ticks.len()) {
            let decision = predicted.decisions.get(index);
            let seen = stepped.ticks.get(index);
            if self.divergence.is_none() {
                self.compared += 1;
            }
            let at = seen.or(decision.map(|decision| &decision.observation));
            let at = at.map_or(predicted.step.until, |tick| tick.at);
            let fields = match (decision, seen) {
                (Some(decision), Some(seen)) => {
                    let model = self.expected(decision, seen);
                    compare::observations(&model, seen, scope)
                }
                (decision, seen) => {
                    compare::unmatched(decision.map(|decision| &decision.observation), seen)
                }
            };
            self.found(before + index + 1, at, fields);
            if seen.is_some() {
                let why = decision.map(|decision| decision.derivation.summary());
                self.why.push(why.unwrap_or_default());
                self.derivations.push(decision.map(|decision| decision.derivation.clone()));
            }
        }
        self.trace.extend(stepped);
    }
}
