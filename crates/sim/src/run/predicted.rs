//! A step of the model.

use crate::engine::Step;
use crate::trace::ApiAnswer;
use kube_autoscaler_models::hpa::Decision;

/// The model's prediction of a step.
pub struct Predicted {
    /// The step that the engine is sent.
    pub step: Step,
    /// What the API of the model answered.
    pub api: Vec<ApiAnswer>,
    /// The decisions of the model.
    pub decisions: Vec<Decision>,
}

impl Predicted {
    /// Returns true if upstream leaves a part of a decision to chance.
    pub(super) fn has_random_part(&self) -> bool {
        self.decisions.iter().any(|decision| decision.derivation.random_part.is_some())
    }
}

impl Predicted {
    /// The reconciles until `until` that require no further change.
    pub fn reconciles(until: kube_autoscaler_models::time::Time, decisions: Vec<Decision>) -> Self {
        Predicted { step: Step { until, ..Step::default() }, api: Vec::new(), decisions }
    }
}
