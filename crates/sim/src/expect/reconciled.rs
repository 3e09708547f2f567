//! One reconcile of a run that goes on, for expectations that are checked reconcile by reconcile.

use super::tick::Tick;
use super::values::wrong_at;
use kube_autoscaler_models::api::HpaStatus;
use kube_autoscaler_models::observation::Observation;
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::resolved::Expectation;

/// A reconcile, with the state after it.
pub struct Reconciled<'a>(Tick<'a>);

impl<'a> Reconciled<'a> {
    /// A reconcile of a target with `before` replicas. `status` is the stored status of the HPA
    /// after it, if the HPA exists.
    #[must_use]
    pub fn new(
        observation: &'a Observation,
        before: i32,
        status: Option<&'a HpaStatus>,
    ) -> Reconciled<'a> {
        let replicas = observation.scaled_to().unwrap_or(before);
        // A status that has never been written is not shown.
        let status = status.filter(|status| **status != HpaStatus::default());
        let rescaled = before != replicas;
        Reconciled(Tick { number: 1, index: 0, observation, before, replicas, rescaled, status })
    }

    /// Its time.
    #[must_use]
    pub fn at(&self) -> Time {
        self.0.observation.at
    }

    /// The name of its HPA.
    #[must_use]
    pub fn hpa(&self) -> &str {
        &self.0.observation.hpa
    }

    /// The replicas of its target before it, and after it.
    #[must_use]
    pub fn replicas(&self) -> (i32, i32) {
        (self.0.before, self.0.replicas)
    }

    /// Returns true if all values are as expected.
    #[must_use]
    pub fn meets(&self, expected: &Expectation) -> bool {
        // The values that change most are compared first: most reconciles meet no `never`.
        expected.replicas.is_none_or(|range| range.contains(&self.0.replicas))
            && expected.rescaled.is_none_or(|rescaled| rescaled == self.0.rescaled)
            && wrong_at(&self.0, expected).is_none()
    }
}
