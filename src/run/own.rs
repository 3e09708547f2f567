//! A controller of the user's own on a cluster: what of it is compared, and how what it does is
//! understood.
//!
//! Upstream's reconcile is known request by request. Another controller may ask for more or for
//! less, in another order, at another moment of its period, or write what is there already. What
//! counts is what comes of it: between two silences it did what the model says, or it did not.

use serde_json::{Value, json};

use super::plan::{Compared, CustomController};
use crate::compare::{FieldDifference, Scope};
use crate::engine::cluster::Did;
use crate::engine::model::Simulation;
use crate::model::hpa::Decision;
use crate::model::observation::{ControllerAction, Observation, StatusWrite};
use crate::model::time::Time;

impl Compared {
    /// Nothing: as of upstream's own.
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
            Compared::Scale => "when it scales, and to what size (--compare)",
            Compared::Status => "the scale, and the status without its messages (--compare)",
            Compared::All => "all that it does (--compare)",
        }
    }
}

impl CustomController {
    /// What is compared, for the head of a report.
    pub(super) fn note(&self) -> String {
        format!("compared is {}", self.compared.words())
    }
}

/// For a note: a size that was not written by way of the scale.
pub(super) const PAST_THE_SCALE: &str =
    "it wrote spec.replicas of its target itself, not its scale: that was taken for the same";

/// What it did, without the writes of a size that is there already.
pub(super) fn effective(did: &[Did], (target, mut size): (&str, i32)) -> Vec<Did> {
    let mut changes = |did: &&Did| {
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

/// Marks all of it as one reconcile.
pub(super) fn mark(log: &mut Vec<Value>, at: Time, hpa: &str) {
    let mark = |what: &str| json!({ "at": at, what: { "hpa": hpa } });
    log.insert(0, mark("reconcile"));
    log.push(mark("reconciled"));
}

/// One that writes the status each time writes what is stored where upstream's does not write.
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

/// A status that no controller of upstream's writes.
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

    fn write(name: &str, replicas: i32, error: Option<&str>) -> Did {
        let (at, what) = (Timestamp::UNIX_EPOCH, "updateScale");
        let entry = json!({ "name": name, "replicas": replicas, "error": error });
        Did { at, done: at, what, entry, by: String::new() }
    }

    #[test]
    fn a_size_that_is_there_already_is_not_written() {
        let sizes = |did: &[Did]| -> Vec<i64> {
            let left = effective(did, ("web", 3));
            left.iter().filter_map(|did| did.entry["replicas"].as_i64()).collect()
        };
        assert_eq!(sizes(&[write("web", 3, None)]), Vec::<i64>::new());
        assert_eq!(sizes(&[write("web", 6, None), write("web", 6, None)]), [6]);
        assert_eq!(sizes(&[write("web", 6, None), write("web", 3, None)]), [6, 3]);
        assert_eq!(sizes(&[write("web", 3, Some("no"))]), [3], "it was tried");
        assert_eq!(sizes(&[write("db", 3, None)]), [3], "it is of something else");
    }

    #[test]
    fn what_is_compared_only_narrows() {
        assert_eq!(Compared::All.scope(), None);
        let [scale, status] = [Compared::Scale, Compared::Status].map(|it| it.scope().unwrap());
        assert_eq!(Scope { status: true, ..scale }, status);
        assert!(!status.messages && !status.reads && !status.events && !status.errors);
    }
}
