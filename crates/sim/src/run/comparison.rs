//! The comparison of a run with the model, over all controllers of a scenario.

use super::random::RandomOutcome;
use super::{KnownHit, Outcome, Verdict};
use crate::compare::{Divergence, KnownDisagreement};

/// The differences between a run and the model, of any controller.
pub struct Comparison<'k> {
    /// The known disagreements about this scenario and release.
    pub known: Vec<&'k KnownDisagreement>,
    /// The known disagreements that were met.
    hits: Vec<&'k KnownDisagreement>,
    /// The first difference from the model that is not known.
    pub divergence: Option<Divergence>,
    /// The first difference in the run that did not wait for the engine's answers. The other fields
    /// are about the repetition of this run, step by step.
    pub(super) not_repeated: Option<Divergence>,
    /// The ticks that were compared, up to and including the first divergence.
    compared: usize,
    /// Why the rest of the run is random, if it is.
    pub undetermined: Option<RandomOutcome>,
}

impl<'k> Comparison<'k> {
    /// Starts a comparison, in which only disagreements about this scenario and release are known.
    #[must_use]
    pub fn new(scenario: &str, release: &str, known: &'k [KnownDisagreement]) -> Comparison<'k> {
        Comparison {
            known: known.iter().filter(|known| known.covers(scenario, release)).collect(),
            hits: Vec::new(),
            divergence: None,
            not_repeated: None,
            compared: 0,
            undetermined: None,
        }
    }

    /// Returns true if the run is as predicted so far, without known disagreements.
    pub(super) fn is_as_predicted(&self) -> bool {
        self.divergence.is_none() && self.hits.is_empty()
    }

    /// Counts a compared tick, unless the run has already diverged.
    pub(super) fn count_tick(&mut self) {
        self.compared += usize::from(self.divergence.is_none());
    }

    /// Reverts the last [`count_tick`](Self::count_tick), of a tick that agreed.
    pub(super) fn uncount_tick(&mut self) {
        self.compared = self.compared.saturating_sub(1);
    }

    /// Adds the differences of a tick. The divergence consists of the first differences that no
    /// known disagreement explains. `why` returns how the model derived its values.
    pub fn found(&mut self, mut found: Divergence, why: impl FnOnce() -> String) {
        found.fields.retain(|field| {
            let known = self.known.iter().find(|known| known.explains(field));
            if let Some(known) = known.filter(|known| !self.hits.contains(known)) {
                self.hits.push(known);
            }
            known.is_none()
        });
        if !found.fields.is_empty() && self.divergence.is_none() {
            self.divergence = Some(Divergence { why: why(), ..found });
        }
    }

    /// Sets the verdict. The outcome must already contain the unmet expectations.
    pub(super) fn conclude(self, outcome: &mut Outcome) {
        let hits = self.hits.iter().map(|hit| KnownHit {
            field: hit.field.clone(),
            reason: hit.reason.clone(),
            link: hit.link.clone(),
        });
        outcome.known = hits.collect();
        outcome.ticks = self.compared;
        let undetermined = self.undetermined.filter(|_| self.divergence.is_none());
        outcome.undetermined = undetermined.as_ref().map(|random| random.cause);
        // A known disagreement in the repetition may be the same difference.
        let not_repeated = self.not_repeated.filter(|_| self.hits.is_empty());
        let inconclusive = |why| Verdict::Inconclusive { why, output: String::new() };
        outcome.verdict = match (self.divergence, undetermined, not_repeated) {
            (Some(divergence), ..) => Verdict::Diverges(divergence),
            (None, Some(random), _) => inconclusive(random.why),
            (None, None, Some(first)) => inconclusive(first.not_repeated()),
            (None, None, None) if !outcome.unmet.is_empty() => Verdict::Unmet,
            (None, None, None) => Verdict::Conforms,
        };
    }
}
