//! The findings of a run so far, tick by tick.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::Note;
use super::comparison::Comparison;
use super::predicted::Predicted;
use super::vpa::ObservedVpa;
use crate::compare::{self, ApiField, Controller, Divergence, FieldDifference, KnownDisagreement};
use crate::engine::sent_events::SentEvents;
use crate::expect::ExternalScale;
use crate::trace::{ApiAnswer, Observation, Scope, Stepped, Trace};
use kube_autoscaler_models::derivation::Derivation;
use kube_autoscaler_models::hpa::Decision;
use kube_autoscaler_models::rules::Rules;
use kube_autoscaler_models::time::Time;

/// The findings so far, tick by tick.
pub struct Findings<'k> {
    /// The differences from the model.
    pub comparison: Comparison<'k>,
    /// The reconciles so far, as the engine reported them.
    pub trace: Trace,
    pub(crate) derivations: Vec<Option<Derivation>>,
    /// Writes of replicas by others than the HPA.
    pub external_scales: Vec<ExternalScale>,
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
        Findings {
            comparison: Comparison::new(&trace.scenario, &trace.release, known),
            trace,
            derivations: Vec::new(),
            external_scales: Vec::new(),
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

    /// Adds differences of a tick of the HPA controller.
    pub fn found(&mut self, tick: usize, at: Time, fields: Vec<FieldDifference>) {
        let derivation =
            tick.checked_sub(1).and_then(|index| self.derivations.get(index)?.as_ref());
        let why = || derivation.map(Derivation::summary).unwrap_or_default();
        self.comparison.found(Divergence::new(Controller::Hpa, tick, at, fields), why);
    }

    /// Adds differences from a decision of the HPA controller.
    fn differs(
        &mut self,
        tick: usize,
        at: Time,
        fields: Vec<FieldDifference>,
        decision: Option<&Decision>,
    ) {
        let why = || decision.map(|it| it.derivation.summary()).unwrap_or_default();
        self.comparison.found(Divergence::new(Controller::Hpa, tick, at, fields), why);
    }

    /// How the model derived a reconcile, by its index, in one line.
    pub(crate) fn why(&self, index: usize) -> Option<String> {
        self.derivations.get(index)?.as_ref().map(Derivation::summary)
    }

    /// Removes the last tick, which agreed, because its reconcile was not over.
    pub fn take_back(&mut self) {
        self.trace.ticks.pop();
        self.derivations.pop();
        self.comparison.uncount_tick();
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
        let decided = decisions.iter().map(|it| &it.observation.hpa);
        let names: BTreeSet<Arc<str>> =
            decided.chain(seen.iter().map(|tick| &tick.hpa)).cloned().collect();
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
            self.differs(self.trace.ticks.len(), at, fields, decision.copied());
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
                (model, seen) => {
                    let text =
                        |answer: Option<&ApiAnswer>| answer.map_or("no answer", |_| "an answer");
                    vec![FieldDifference::new(ApiField::Outcome, text(model), text(seen))]
                }
            };
            self.differs(before, predicted.step.until, fields, None);
        }
        for index in 0..predicted.decisions.len().max(stepped.ticks.len()) {
            let decision = predicted.decisions.get(index);
            let seen = stepped.ticks.get(index);
            self.comparison.count_tick();
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
            self.differs(before + index + 1, at, fields, decision);
            if seen.is_some() {
                self.derivations.push(decision.map(|decision| decision.derivation.clone()));
            }
        }
        self.trace.extend(stepped);
    }
}
