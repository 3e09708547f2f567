//! The state of the controller, for searches.

use super::Controller;
use crate::api::HpaSpec;
use crate::hpa::normalization::{add_memory, add_whole_memory};
use crate::state::{Part, State};

impl Controller {
    /// Adds everything that later reconciles depend on. `spec` returns the spec of an HPA by its
    /// key. Returns false if a reconcile is in progress: then the state is not complete.
    #[must_use]
    pub fn add_to<'a>(
        &self,
        spec: impl Fn(&str) -> Option<&'a HpaSpec>,
        state: &mut State,
    ) -> bool {
        state.part(Part::Queue);
        self.queue.add_to(state);
        state.part(Part::Hpas);
        self.selectors.add_to(state);
        state.part(Part::Queue);
        if state.scope.waits || !self.config.rules.queue.success_requeues {
            state.time(self.resynced);
            state.time(self.resync.after(self.resynced));
        }
        for (key, memory) in &self.memory {
            state.part(Part::Recommendations);
            state.text(key);
            match spec(key).filter(|_| !state.scope.changing_hpas) {
                Some(spec) => add_memory(memory, spec, &self.config, state),
                None => add_whole_memory(memory, state),
            }
        }
        self.blocked.is_empty()
    }
}
