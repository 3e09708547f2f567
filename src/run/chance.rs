//! What a controller that was held up unseen would have done as well: that has to be seen twice.

use super::lineage::{Lineage, moments};
use super::own;
use crate::compare::{self, Scope};
use crate::engine::cluster::Tick;
use crate::model::observation::Observation;
use crate::model::time::{Span, Time};

/// How chance can have brought a divergence about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Chance {
    /// A reconcile did not come when it was to, or came when it was not: HPAs wait for each other
    /// in the controller.
    Pace,
    /// It would have been right a moment earlier or later: between its requests, nobody sees when
    /// a reconcile reads the clock.
    Moment,
}

impl Chance {
    fn text(self) -> &'static str {
        match self {
            Chance::Pace => "no reconcile came that was due, or one too many,",
            Chance::Moment => "a reconcile would have been right a moment earlier or later",
        }
    }

    /// Whether it does for a controller of somebody's own: when that comes is compared otherwise.
    pub(super) fn counts(self, is_own: bool) -> bool {
        !is_own || self == Chance::Moment
    }

    /// Why there is no verdict, if there was none before for the same reason.
    pub(super) fn once(self, at: Time, before: &[String]) -> Option<String> {
        let is_first = !before.iter().any(|why| why.contains(self.text()));
        is_first.then(|| format!("{} at {at}", self.text()))
    }
}

/// Whether a reconcile is as one of the lineages would have it if it had been that much earlier or
/// later, or one that it remembers. Another controller may write what is stored already.
pub(super) fn is_a_matter_of(
    (moment, is_own): (Span, bool),
    lineages: &[Lineage],
    tick: &Tick,
    (seen, scope): (&Observation, Scope),
    pods: &[String],
) -> bool {
    let [middle, early, late] = moments(tick, moment, Span::ZERO);
    let each = lineages.iter().flat_map(|lineage| [early, late].map(|at| (lineage, at)));
    let mut candidates = each.filter_map(|(lineage, at)| Some((lineage, lineage.at(at)?)));
    candidates.any(|(lineage, mut it)| {
        if is_own {
            own::write_what_is_stored(&mut it.decision, seen, &lineage.simulation);
        }
        it.normalize(seen, (pods, [middle, early, late]), moment);
        compare::observations(&it.decision.observation, seen, scope).is_empty()
    })
}

/// What makes a reconcile doubtful that began before the cluster was as the world says.
pub(super) fn in_motion(began: Time, settled: Time) -> String {
    format!("a reconcile began at {began} while the cluster was changing until {settled}")
}

/// What a reason begins with that is of an earlier reconcile: what it remembers may be otherwise.
pub(super) const BEFORE_IT: &str = "before what differs";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_before_is_no_chance() {
        let at = Time::from_secs(3);
        let why = Chance::Moment.once(at, &[]).expect("a reason");
        let before = [format!("the embedded engine failed: {why}")];
        assert_eq!(Chance::Moment.once(at, &before), None);
        let other = Chance::Pace.once(at, &before);
        assert!(other.is_some_and(|why| why.ends_with("at 3s")), "another one is the first");
    }
}
