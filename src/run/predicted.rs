//! A step of the model.

use crate::engine::Step;
use crate::model::hpa::Decision;
use crate::trace::ApiAnswer;

/// The model's prediction of a step.
pub(super) struct Predicted {
    pub(super) step: Step,
    pub(super) api: Vec<ApiAnswer>,
    pub(super) decisions: Vec<Decision>,
}

impl Predicted {
    /// Returns true if upstream leaves a part of a decision to chance.
    pub(super) fn has_random_part(&self) -> bool {
        self.decisions.iter().any(|decision| decision.derivation.random_part.is_some())
    }
}

#[cfg(feature = "clusters")]
impl Predicted {
    /// The reconciles until `until` that require no further change.
    pub(super) fn reconciles(until: crate::model::time::Time, decisions: Vec<Decision>) -> Self {
        Predicted { step: Step { until, ..Step::default() }, api: Vec::new(), decisions }
    }
}
