//! The note on retries, for all controllers.

use crate::run::Outcome;

/// Notes the number of retries, and why the last attempt before had no verdict.
pub(super) fn note_retries(outcome: &mut Outcome, why: &str) {
    let times = match outcome.retries {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        many => format!("{many} times"),
    };
    outcome.note(format!("it was retried {times}; the last attempt without a verdict: {why}"));
}
