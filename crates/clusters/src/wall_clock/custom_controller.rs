//! The comparison of a custom controller.
//!
//! Each request of upstream's reconcile is known. A custom controller may make other requests, in
//! another order and at another time within the sync period, and may write values that are already
//! stored. Only the effect of the requests between two pauses is compared.

use crate::cluster::ObservedAction;
use kube_autoscaler_models::hpa::Decision;
use kube_autoscaler_models::observation::{ControllerAction, Observation, StatusWrite};
use kube_lockstep_sim::compare::FieldDifference;
use kube_lockstep_sim::engine::model::Simulation;

/// The note on replicas that were written without the scale subresource.
pub(super) const WRITES_SPEC_REPLICAS: &str =
    "it wrote spec.replicas of its target instead of the scale subresource, which is equivalent";

/// The requests, without writes of replicas that are already stored.
pub(super) fn effective(
    actions: &[ObservedAction],
    target: &str,
    mut replicas: i32,
) -> Vec<ObservedAction> {
    let has_effect = |it: &&ObservedAction| match it.scale_write() {
        Some(write) if *write.name == *target && it.succeeded() => {
            std::mem::replace(&mut replicas, write.replicas) != write.replicas
        }
        _ => true,
    };
    actions.iter().filter(has_effect).cloned().collect()
}

/// Predicts a write of the stored status where upstream's controller writes none: a custom
/// controller may write the status in each reconcile.
pub(super) fn predict_stored_status(
    decision: &mut Decision,
    seen: &Observation,
    simulation: &Simulation,
) {
    let model = &mut decision.observation;
    if let (None, Some(StatusWrite { error: None, .. })) =
        (model.status_write(), seen.status_write())
        && let Some(hpa) = simulation.cluster().hpa(&seen.hpa)
    {
        let (name, status) = (seen.hpa.clone(), hpa.status.clone());
        let write = StatusWrite { name, status, ..StatusWrite::default() };
        model.push(ControllerAction::UpdateStatus(Box::new(write)));
    }
}

/// The difference for a status with conditions or metrics that upstream does not have.
pub(super) fn unread(why: String) -> FieldDifference {
    FieldDifference::new("status", "conditions and metrics that upstream knows", why)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use kube_autoscaler_models::observation::ScaleWrite;

    fn write(name: &str, replicas: i32, error: Option<&str>) -> ObservedAction {
        let (resource, name) = ("deployments.apps".into(), name.into());
        let write =
            ScaleWrite { resource, name, replicas, error: error.map(Into::into), sent: None };
        let at = Timestamp::UNIX_EPOCH;
        ObservedAction::new(at, at, ControllerAction::UpdateScale(write))
    }

    #[test]
    fn a_write_of_the_stored_replicas_does_not_count() {
        let replicas = |actions: &[ObservedAction]| -> Vec<i32> {
            let left = effective(actions, "web", 3);
            left.iter().filter_map(|it| it.scale_write()).map(|it| it.replicas).collect()
        };
        assert_eq!(replicas(&[write("web", 3, None)]), Vec::<i32>::new());
        assert_eq!(replicas(&[write("web", 6, None), write("web", 6, None)]), [6]);
        assert_eq!(replicas(&[write("web", 6, None), write("web", 3, None)]), [6, 3]);
        assert_eq!(replicas(&[write("web", 3, Some("no"))]), [3], "a refused attempt");
        assert_eq!(replicas(&[write("db", 3, None)]), [3], "another target");
    }
}
