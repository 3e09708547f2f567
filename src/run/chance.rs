//! What a controller that was held up unseen would have done as well: that has to be seen twice.

use crate::compare::{self, Scope};
use crate::engine::cluster::Tick;
use crate::model::observation::Observation;
use crate::model::time::{Span, Time};
use crate::run::lineage::Lineage;
use crate::run::lineage::moments;
use crate::run::own;

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
        is_first(self.text(), before).then(|| format!("{} at {at}", self.text()))
    }
}

/// Whether nothing had no verdict for that before.
fn is_first(text: &str, before: &[String]) -> bool {
    !before.iter().any(|why| why.contains(text))
}

/// Reconciles that need not have been seen as they were: a difference there, or later, may come of
/// that.
#[derive(Default)]
pub(super) struct Doubts {
    /// Of what is compared.
    of_it: Option<String>,
    /// Of what was compared before it: what that left may be otherwise.
    before_it: Option<String>,
}

/// What a reason begins with that is of an earlier reconcile.
const BEFORE_IT: &str = "before what differs";

impl Doubts {
    /// That of what is compared, and why.
    pub(super) fn set(&mut self, why: String) {
        self.of_it = Some(why);
    }

    /// What was compared last is before what comes.
    pub(super) fn go_on(&mut self) {
        self.before_it = self.of_it.take().or_else(|| self.before_it.take());
    }

    /// Why a difference is no verdict, if it is none. What an earlier reconcile left excuses one
    /// only if there was none before for this.
    pub(super) fn why(&self, before: &[String]) -> Option<String> {
        self.of_it.clone().or_else(|| {
            let why = self.before_it.as_ref()?;
            is_first(BEFORE_IT, before).then(|| format!("{BEFORE_IT} {why}"))
        })
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

    #[test]
    fn a_doubtful_reconcile_excuses_what_differs_in_it_always_and_what_differs_later_once() {
        let mut doubts = Doubts::default();
        assert_eq!(doubts.why(&[]), None);
        doubts.set("one began amid a change".to_owned());
        let own = doubts.why(&[]).expect("a reason");
        assert_eq!(
            doubts.why(std::slice::from_ref(&own)),
            Some(own.clone()),
            "it is no clearer than before"
        );
        doubts.go_on();
        let later = doubts.why(&[own]).expect("another reason");
        assert_eq!(later, "before what differs one began amid a change");
        doubts.go_on();
        assert_eq!(doubts.why(&[]), Some(later.clone()), "what it left stays");
        assert_eq!(doubts.why(&[later]), None);
        doubts.set("another one did".to_owned());
        doubts.go_on();
        assert_eq!(doubts.why(&[]).as_deref(), Some("before what differs another one did"));
    }
}
