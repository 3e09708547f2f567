//! Uncertainties: reasons why a difference does not lead to a verdict on the controller.

use std::fmt::{self, Display, Formatter};

use kube_autoscaler_models::time::{Span, Time};

/// A reason for having no verdict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Uncertainty {
    /// A component of the cluster was unresponsive for longer than a reconcile may be delayed.
    Stalled {
        component: &'static str,
        /// The duration.
        length: Span,
    },
    /// The controller's behavior is not deterministic. Counts for the first attempt only.
    Nondeterminism(Nondeterminism, Time),
    /// The reconcile overlapped a change of the cluster, and matches no intermediate state.
    ChangeInFlight {
        /// When the reconcile began.
        began: Time,
        /// When the change was complete.
        settled: Time,
    },
    /// Requests continued a reconcile that seemed to be over.
    Resumed(String),
    /// An earlier reconcile was uncertain, and so is the state after it. Counts for the first
    /// attempt only.
    Earlier(Box<Uncertainty>),
    /// The reconcile matches the HPA before an edit.
    EditNotObserved {
        /// When the reconcile began.
        began: Time,
        /// When the edit was complete.
        edited: Time,
    },
    /// A watch of the API server was interrupted.
    WatchInterrupted,
    /// Too few reconciles happened; a note with their number.
    TooFewReconciles(String),
    /// The requests of a reconcile cannot be compared.
    NotComparable(String),
}

impl Display for Uncertainty {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Uncertainty::Stalled { component, length } => {
                write!(f, "{component} did not respond for {length} when a reconcile was due")
            }
            Uncertainty::Nondeterminism(Nondeterminism::Pace, at) => {
                write!(f, "a reconcile was missing or extra at {at}")
            }
            Uncertainty::Nondeterminism(Nondeterminism::ClockReading, at) => {
                write!(f, "a reconcile at {at} matches a slightly earlier or later time")
            }
            Uncertainty::ChangeInFlight { began, settled } => write!(
                f,
                "a reconcile began at {began} while the cluster was changing until {settled}"
            ),
            Uncertainty::Earlier(earlier) => write!(f, "before the difference, {earlier}"),
            Uncertainty::EditNotObserved { began, edited } => write!(
                f,
                "a reconcile at {began} had not yet observed the edit of the HPA at {edited}"
            ),
            Uncertainty::WatchInterrupted => {
                f.write_str("a watch on the API server was interrupted and may have missed a write")
            }
            Uncertainty::Resumed(why)
            | Uncertainty::TooFewReconciles(why)
            | Uncertainty::NotComparable(why) => f.write_str(why),
        }
    }
}

/// Behavior of the controller that depends on unobservable timing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nondeterminism {
    /// A reconcile is missing, or is an extra one: HPAs wait for each other in the work queue.
    Pace,
    /// The reconcile would agree for a slightly earlier or later clock reading: the time between
    /// its requests cannot be observed.
    ClockReading,
}

/// The reasons why earlier attempts at a scenario had no verdict.
#[derive(Debug, Default)]
pub(super) struct History(Vec<Uncertainty>);

impl History {
    /// Records a reason for the next attempt.
    pub(super) fn add(&mut self, uncertainty: &Uncertainty) {
        self.0.push(uncertainty.clone());
    }

    fn has(&self, kind: Nondeterminism) -> bool {
        self.0.iter().any(|it| matches!(it, Uncertainty::Nondeterminism(it, _) if *it == kind))
    }

    fn has_earlier(&self) -> bool {
        self.0.iter().any(|it| matches!(it, Uncertainty::Earlier(_)))
    }
}

/// The uncertainties that apply to the current comparison.
#[derive(Clone, Debug, Default)]
pub(super) struct Uncertainties {
    /// True if the comparison depends on time; that of the API server's answers does not.
    timed: bool,
    /// The nondeterminism that would explain the difference.
    pub(super) nondeterminism: Option<Nondeterminism>,
    /// The uncertainty of the reconcile that is compared.
    current: Option<Uncertainty>,
    /// The uncertainty of an earlier reconcile.
    earlier: Option<Uncertainty>,
    /// The due times of the previous and the current reconcile.
    since: [Time; 2],
}

impl Uncertainties {
    /// Begins the reconcile that is due at `now`.
    pub(super) fn next(&mut self, now: Time) {
        self.since = [self.since[1], now];
        (self.timed, self.nondeterminism) = (true, None);
        self.close();
    }

    /// Ends the current reconcile. If it was uncertain, so is the state after it.
    pub(super) fn close(&mut self) {
        self.earlier = self.current.take().or_else(|| self.earlier.take());
    }

    /// Begins the comparison of the whole scenario.
    pub(super) fn whole_scenario(&mut self) {
        (self.timed, self.nondeterminism, self.since) = (true, None, [Time::ZERO; 2]);
        self.close();
    }

    /// Begins the comparison of an answer of the API server.
    pub(super) fn api_answer(&mut self) {
        self.timed = false;
    }

    /// Marks the current reconcile as uncertain. The first reason counts.
    pub(super) fn set(&mut self, uncertainty: Uncertainty) {
        self.current.get_or_insert(uncertainty);
    }

    /// The due time of the previous reconcile: a stall since then may have delayed both.
    pub(super) fn since_previous(&self) -> Time {
        self.since[0]
    }

    /// The due time of the current reconcile.
    pub(super) fn since_current(&self) -> Time {
        self.since[1]
    }

    /// Why a difference is not a verdict, if that is the case. `slack` is the tolerated delay of a
    /// reconcile, and `stall` the longest time for which a component was unresponsive.
    pub(super) fn reason(
        &self,
        slack: Span,
        stall: Option<(&'static str, Span)>,
        history: &History,
    ) -> Option<Uncertainty> {
        if !self.timed {
            return None;
        }
        // With many requests at a time, short delays can add up to a long one.
        let longest = if self.nondeterminism.is_some() { Span::ZERO } else { slack };
        let stalled = stall.filter(|(_, length)| *length > longest);
        let stalled = stalled.map(|(component, length)| Uncertainty::Stalled { component, length });
        let first = self.nondeterminism.filter(|kind| !history.has(*kind));
        let once = first.map(|kind| Uncertainty::Nondeterminism(kind, self.since[1]));
        stalled.or(once).or_else(|| self.remaining(history))
    }

    /// The uncertainty of the current reconcile, or, in the first attempt that has one, of an
    /// earlier reconcile.
    pub(super) fn remaining(&self, history: &History) -> Option<Uncertainty> {
        self.current.clone().or_else(|| {
            let earlier = self.earlier.clone().filter(|_| !history.has_earlier())?;
            Some(Uncertainty::Earlier(Box::new(earlier)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLACK: Span = Span::from_millis(333);

    fn uncertainties(nondeterminism: Option<Nondeterminism>) -> Uncertainties {
        let mut it = Uncertainties::default();
        it.next(Time::from_secs(3));
        it.nondeterminism = nondeterminism;
        it
    }

    #[test]
    fn nondeterminism_counts_for_the_first_attempt() {
        let it = uncertainties(Some(Nondeterminism::ClockReading));
        let mut history = History::default();
        let why = it.reason(SLACK, None, &history).expect("a reason");
        assert!(why.to_string().contains("at 3s"), "{why}");
        history.add(&why);
        assert_eq!(it.reason(SLACK, None, &history), None);
        let other = uncertainties(Some(Nondeterminism::Pace));
        assert!(other.reason(SLACK, None, &history).is_some(), "another kind is the first");
    }

    #[test]
    fn a_stall_counts_if_it_is_longer_than_a_reconcile_may_be_late() {
        let history = History::default();
        let stall = |millis| Some(("kube-apiserver", Span::from_millis(millis)));
        let reason = |it: &Uncertainties, millis| it.reason(SLACK, stall(millis), &history);
        let it = uncertainties(None);
        assert_eq!(reason(&it, 333), None);
        assert!(matches!(reason(&it, 334), Some(Uncertainty::Stalled { .. })));
        let pace = uncertainties(Some(Nondeterminism::Pace));
        assert!(matches!(reason(&pace, 60), Some(Uncertainty::Stalled { .. })), "any delay counts");
        let mut answer = it.clone();
        answer.api_answer();
        assert_eq!(reason(&answer, 5000), None, "the API server's answers depend on no clock");
    }

    #[test]
    fn an_uncertain_reconcile_always_counts_and_an_earlier_one_for_the_first_attempt() {
        let overlap = |seconds| Uncertainty::ChangeInFlight {
            began: Time::from_secs(seconds),
            settled: Time::from_secs(seconds + 1),
        };
        let (mut it, mut history) = (Uncertainties::default(), History::default());
        assert_eq!(it.remaining(&history), None);
        it.set(overlap(1));
        history.add(&overlap(1));
        assert_eq!(it.remaining(&history), Some(overlap(1)), "in each attempt");
        it.close();
        let later = it.remaining(&history).expect("another reason");
        assert_eq!(later, Uncertainty::Earlier(Box::new(overlap(1))));
        it.close();
        assert_eq!(it.remaining(&history), Some(later.clone()), "the state stays uncertain");
        history.add(&later);
        assert_eq!(it.remaining(&history), None);
        it.set(overlap(5));
        it.close();
        let now = it.remaining(&History::default());
        assert_eq!(now, Some(Uncertainty::Earlier(Box::new(overlap(5)))));
    }
}
