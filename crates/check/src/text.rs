//! The result of a search as sentences.

use super::check::{Checked, Counterexample, Outcome};
use kube_autoscaler_models::time::Time;
use kube_lockstep_report::{counted, thousands};

impl Checked {
    /// Returns what the search covered, its size, and what it could not try. `limit` names the
    /// largest number of states: `100,000 states, the limit of --states`.
    #[must_use]
    pub fn summary(&self, limit: &str) -> Vec<String> {
        let Checked { states, steps, widest, random, why_random, .. } = self;
        let at_once = match widest {
            0 => String::new(),
            widest => format!(", at most {} at one time", thousands(*widest)),
        };
        let (states, steps) = (counted(*states, "state"), counted(*steps as usize, "step"));
        let size = format!("size: {states}{at_once}; {steps}");
        let not_finished = why_random.as_ref().map(|why| {
            let runs = counted(*random, "step");
            format!("{runs} could not be finished, for example because {why}")
        });
        [self.coverage(limit), size].into_iter().chain(not_finished).collect()
    }

    /// Describes what the search covered.
    fn coverage(&self, limit: &str) -> String {
        let Checked { outcome, reached, random, .. } = self;
        let met = match random {
            0 => "all expectations are met with all choices",
            _ => {
                "no result: some choices could not be tried; all expectations are met with the \
                 others"
            }
        };
        match outcome {
            Outcome::Counterexample if *reached == Time::ZERO => {
                "searched: the choices at the start".to_owned()
            }
            Outcome::Counterexample => format!("searched: all choices before t={reached}"),
            Outcome::Holds => format!("{met} up to the end, t={reached}"),
            Outcome::AlwaysHolds => format!(
                "{met}, however long the scenario lasts: from t={reached} on, no new state can be \
                 reached"
            ),
            Outcome::TooManyStates => format!(
                "no result: there are more than {limit}; all expectations are met with all choices \
                 before t={reached}"
            ),
            Outcome::Interrupted => format!(
                "no result: interrupted; all expectations are met with all choices before \
                 t={reached}"
            ),
        }
    }
}

impl Counterexample {
    /// `the expectation on line 29 is not met with these choices:`.
    #[must_use]
    pub fn headline(&self) -> String {
        let when = match self.choices.is_empty() {
            true => ", even if nothing is chosen:",
            false => " with these choices:",
        };
        format!("the expectation on line {} is not met{when}", self.line)
    }
}
