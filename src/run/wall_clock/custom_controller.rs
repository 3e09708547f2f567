//! The comparison of a custom controller.
//!
//! Upstream's reconcile is known request by request. A custom controller may make other requests,
//! in another order and at another time within the sync period, and may write values that are
//! stored already. Only the effect of the requests between two pauses is compared.

use serde_json::{Value, json};

use crate::compare::{FieldDifference, Scope};
use crate::engine::cluster::ObservedAction;
use crate::engine::model::Simulation;
use crate::model::hpa::Decision;
use crate::model::observation::{ControllerAction, Observation, StatusWrite};
use crate::model::time::Time;
use crate::run::plan::{Compared, CustomController};

impl Compared {
    /// The fields to compare; none if everything is compared, as for upstream's controller.
    pub(super) fn scope(self) -> Option<Scope> {
        let status = match self {
            Compared::All => return None,
            Compared::Status => true,
            Compared::Scale => false,
        };
        Some(Scope {
            reads: false,
            events: false,
            errors: false,
            status,
            messages: false,
            ..Scope::ALL
        })
    }

    fn words(self) -> &'static str {
        match self {
            Compared::Scale => "scale decisions only (--compare scale)",
            Compared::Status => {
                "scale decisions and the status without messages (--compare status)"
            }
            Compared::All => "all requests (--compare all)",
        }
    }
}

impl CustomController {
    /// What is compared, for the head of a report.
    pub(in crate::run) fn note(&self) -> String {
        format!("comparing {}", self.compared.words())
    }
}

/// The note on replicas that were written without the scale subresource.
pub(super) const PAST_THE_SCALE: &str =
    "it wrote spec.replicas of its target, not the scale subresource; both count as the same";

/// The requests without writes of replicas that are stored already.
pub(super) fn effective(
    did: &[ObservedAction],
    target: &str,
    mut size: i32,
) -> Vec<ObservedAction> {
    let mut changes = |did: &&ObservedAction| {
        let of_target = did.what == "updateScale" && did.entry["name"] == target;
        if !of_target || !did.entry["error"].is_null() {
            return true;
        }
        let before = i64::from(size);
        let now = did.entry["replicas"].as_i64().unwrap_or(before);
        size = i32::try_from(now).unwrap_or(size);
        now != before
    };
    did.iter().filter(|did| changes(did)).cloned().collect()
}

/// Marks all entries of a log as one reconcile.
pub(super) fn mark(log: &mut Vec<Value>, at: Time, hpa: &str) {
    let mark = |what: &str| json!({ "at": at, what: { "hpa": hpa } });
    log.insert(0, mark("reconcile"));
    log.push(mark("reconciled"));
}

/// Predicts a write of the stored status where upstream's controller writes none: a custom
/// controller may write the status in each reconcile.
pub(super) fn write_what_is_stored(
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
        let write = StatusWrite { name, status, error: None };
        model.push(ControllerAction::UpdateStatus(write));
    }
}

/// The difference for a status that is not in upstream's terms.
pub(super) fn unread(why: String) -> FieldDifference {
    FieldDifference {
        field: "status".to_owned(),
        model: "conditions and metrics that upstream knows".to_owned(),
        upstream: why,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn write(name: &str, replicas: i32, error: Option<&str>) -> ObservedAction {
        let (at, what) = (Timestamp::UNIX_EPOCH, "updateScale");
        let entry = json!({ "name": name, "replicas": replicas, "error": error });
        ObservedAction { at, done: at, what, entry, by: String::new() }
    }

    #[test]
    fn a_write_of_the_stored_replicas_does_not_count() {
        let sizes = |did: &[ObservedAction]| -> Vec<i64> {
            let left = effective(did, "web", 3);
            left.iter().filter_map(|did| did.entry["replicas"].as_i64()).collect()
        };
        assert_eq!(sizes(&[write("web", 3, None)]), Vec::<i64>::new());
        assert_eq!(sizes(&[write("web", 6, None), write("web", 6, None)]), [6]);
        assert_eq!(sizes(&[write("web", 6, None), write("web", 3, None)]), [6, 3]);
        assert_eq!(sizes(&[write("web", 3, Some("no"))]), [3], "it was tried");
        assert_eq!(sizes(&[write("db", 3, None)]), [3], "it is another target");
    }

    #[test]
    fn the_compare_flag_only_narrows() {
        assert_eq!(Compared::All.scope(), None);
        let [scale, status] = [Compared::Scale, Compared::Status].map(|it| it.scope().unwrap());
        assert_eq!(Scope { status: true, ..scale }, status);
        assert!(!status.messages && !status.reads && !status.events && !status.errors);
    }
}
