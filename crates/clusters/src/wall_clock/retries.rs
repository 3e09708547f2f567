//! Retries on a wall clock, for all controllers: a busy machine can prevent a verdict, or cause a
//! divergence.

use crate::cluster::tolerances::MAX_ATTEMPTS;
use kube_lockstep_sim::run::{Outcome, Verdict};

/// The attempts at a scenario that have ended.
#[derive(Debug)]
pub(super) struct Attempts {
    /// The number of attempts that must diverge before the verdict is `diverges`.
    required_divergences: usize,
    divergences: usize,
    /// The reasons for the retries, one for each attempt that has ended.
    reasons: Vec<String>,
}

impl Attempts {
    /// No attempts. `required_divergences`: the number of attempts that must diverge before the
    /// verdict is `diverges`.
    pub(super) fn new(required_divergences: usize) -> Attempts {
        Attempts { required_divergences, divergences: 0, reasons: Vec::new() }
    }

    /// Returns true if the next attempt is the first one.
    pub(super) fn is_first(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Returns true if no attempt may follow the next one.
    pub(super) fn is_last(&self) -> bool {
        self.reasons.len() + 1 >= MAX_ATTEMPTS
    }

    /// The number of retries before or in the next attempt.
    pub(super) fn retries(&self) -> usize {
        self.reasons.len()
    }

    /// Returns the outcome of a scenario with a note on its retries, or `None` if the scenario is
    /// to be retried.
    pub(super) fn ended(
        &mut self,
        mut outcome: Outcome,
        can_retry: impl FnOnce() -> bool,
    ) -> Option<Outcome> {
        outcome.retries = self.retries();
        let reason = self.reason_to_retry(&outcome);
        if let Some(reason) = reason.filter(|_| !self.is_last() && can_retry()) {
            self.reasons.push(reason);
            return None;
        }
        if let Some(why) = self.reasons.last() {
            note_retries(&mut outcome, why);
        }
        Some(outcome)
    }

    fn reason_to_retry(&mut self, outcome: &Outcome) -> Option<String> {
        match &outcome.verdict {
            // Another attempt would depend on the same chance.
            Verdict::Inconclusive { .. } if outcome.undetermined.is_some() => None,
            Verdict::Inconclusive { why, .. } => Some(why.clone()),
            Verdict::Diverges(_) => {
                self.divergences += 1;
                (self.divergences < self.required_divergences)
                    .then(|| "a single divergence".to_owned())
            }
            _ => None,
        }
    }
}

/// Notes the number of retries, and why the last attempt before had no verdict.
fn note_retries(outcome: &mut Outcome, why: &str) {
    let times = match outcome.retries {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        many => format!("{many} times"),
    };
    outcome.note(format!("it was retried {times}; the last attempt without a verdict: {why}"));
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use kube_autoscaler_models::rules::Release;
    use kube_autoscaler_models::time::Time;
    use kube_lockstep_sim::compare::{Controller, Divergence};
    use kube_lockstep_sim::run::RandomCause;
    use kube_lockstep_sim::run::lockstep::unfinished;

    /// Attempts that have failed this many times.
    pub(crate) fn failed(times: usize) -> Attempts {
        Attempts { reasons: vec![String::new(); times], ..Attempts::new(1) }
    }

    fn outcome(verdict: Verdict) -> Outcome {
        let id = "tolerance/just-above-the-upper-edge-scales-up";
        let scenario = super::super::preparation::tests::fixture(id);
        Outcome { verdict, ..unfinished(&scenario, &"embedded".into(), Release::NEWEST) }
    }

    fn no_verdict() -> Outcome {
        outcome(Verdict::Inconclusive { why: "too slow".to_owned(), output: String::new() })
    }

    fn diverges() -> Outcome {
        let divergence = Divergence::new(Controller::Hpa, 0, Time::ZERO, Vec::new());
        outcome(Verdict::Diverges(divergence))
    }

    #[test]
    fn a_scenario_without_a_verdict_is_retried_up_to_the_limit() {
        let mut attempts = Attempts::new(1);
        for _ in 1..MAX_ATTEMPTS {
            assert!(attempts.ended(no_verdict(), || true).is_none());
        }
        let last = attempts.ended(no_verdict(), || true).expect("no further retry");
        assert_eq!(last.retries, MAX_ATTEMPTS - 1);
        assert!(last.notes.iter().any(|note| note.what.contains("too slow")), "{:?}", last.notes);
        assert!(Attempts::new(1).ended(no_verdict(), || false).is_some(), "a broken cluster");
        let chance = Outcome { undetermined: Some(RandomCause::Resync), ..no_verdict() };
        assert!(Attempts::new(1).ended(chance, || true).is_some());
    }

    #[test]
    fn a_divergence_is_reported_after_the_required_number() {
        assert!(Attempts::new(1).ended(diverges(), || true).is_some());
        let mut attempts = Attempts::new(2);
        assert!(attempts.ended(diverges(), || true).is_none());
        assert!(attempts.ended(no_verdict(), || true).is_none());
        let second = attempts.ended(diverges(), || true).expect("the second divergence");
        assert_eq!((second.verdict.name(), second.retries), ("diverges", 2));
        let conforms = attempts.ended(outcome(Verdict::Conforms), || true).expect("a verdict");
        assert_eq!(conforms.verdict, Verdict::Conforms);
    }
}
