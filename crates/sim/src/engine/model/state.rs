//! The state of the model in a run, for searches that merge equal states.

use super::Simulation;
use kube_autoscaler_models::api::{ConditionType, Hpa};
use kube_autoscaler_models::rules::Windows;
use kube_autoscaler_models::state::{Part, State};

impl Simulation {
    /// Adds everything that later reconciles depend on, apart from objects that the world publishes
    /// before each reconcile. Returns false if it has parts that a state does not have.
    #[must_use]
    pub fn add_to(&self, state: &mut State) -> bool {
        let spec = |key: &str| {
            let served = self.hpas.iter().find(|served| *served.key == *key)?;
            self.cluster.hpa(&served.name).map(|hpa| &*hpa.spec)
        };
        let is_complete = self.controller.add_to(spec, state) && self.caches.is_none();
        state.part(Part::Hpas);
        for served in &self.hpas {
            let hpa = self.cluster.hpa(&served.name);
            state.number(hpa.is_some());
            state.number(served.lossy.get());
            if let Some(hpa) = hpa {
                self.add_hpa(hpa, state);
            }
        }
        is_complete
    }

    fn add_hpa(&self, hpa: &Hpa, state: &mut State) {
        if state.scope.changing_hpas {
            state.text(&serde_json::to_string(&hpa.spec).unwrap_or_default());
            state.text(&self.cluster.hpa_metadata(&hpa.name).to_string());
        }
        let status = &hpa.status;
        if self.rules.normalization.windows == Windows::Forbidden {
            state.optional_time(status.last_scale_time);
        }
        // If a successful reconcile does not queue the next one, a written status does. In a sorted
        // list, it also changes the order of keys that wait for the same time.
        let queue = self.rules.queue;
        let writes_matter = !queue.success_requeues || queue.waiting_is_sorted;
        if state.scope.statuses || state.scope.changing_hpas || writes_matter {
            let mut status = status.clone();
            // A condition's time changes with its status only.
            let times = status.conditions.iter_mut().map(|it| &mut it.last_transition_time);
            times.for_each(|time| *time = state.now());
            status.last_scale_time = None;
            status.observed_generation = None;
            state.text(&format!("{status:?}"));
        } else {
            let to_zero =
                status.conditions.iter().find(|it| it.type_ == ConditionType::ScaledToZero);
            state.number(to_zero.map_or(0, |condition| 1 + i64::from(condition.status)));
        }
    }
}
