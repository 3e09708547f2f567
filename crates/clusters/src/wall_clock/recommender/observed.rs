//! The writes of a run of the recommender, in the form in which runs are compared.

use std::sync::Arc;

use jiff::Timestamp;

use crate::cluster::ObservedWrite;
use crate::cluster::tolerances::RECOMMENDER_CLOCK;
use kube_autoscaler_models::vpa::{GoTime, Run, RunAt, VpaCondition, Write};

/// The time in which a run may have read the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    from: GoTime,
    to: GoTime,
}

impl Window {
    /// The window of a run: from its query of samples to the end of its last write.
    pub(super) fn new(received: Timestamp, writes: &[ObservedWrite]) -> Window {
        let last = writes.iter().map(|write| write.answered).max().unwrap_or(received);
        let time = |at: Timestamp| GoTime::from_timestamp(at).truncate_to_second();
        let from = received.checked_sub(RECOMMENDER_CLOCK).unwrap_or(received);
        let to = last.checked_add(RECOMMENDER_CLOCK).unwrap_or(last);
        Window { from: time(from), to: time(to) }
    }

    /// The observed time, if both times may be the clock's; otherwise the predicted one.
    fn agree(self, predicted: GoTime, observed: GoTime) -> GoTime {
        let contains = |time: GoTime| self.from <= time && time <= self.to;
        if contains(predicted) && contains(observed) { observed } else { predicted }
    }
}

/// The observed run. The recommender's log can't be compared: it is not in the API.
///
/// # Errors
/// If the API server rejected a write.
pub(super) fn run(predicted: &RunAt, writes: Vec<ObservedWrite>) -> Result<RunAt, String> {
    let writes = writes.into_iter().map(|write| write.write).collect::<Result<_, _>>()?;
    let run = Run { writes, log: predicted.run.log.clone(), is_undetermined: false };
    Ok(RunAt { at: predicted.at, run })
}

/// Replaces predicted times by observed ones, if both are within the window in which the run may
/// have read the clock.
pub(super) fn adopt_clock(predicted: &mut RunAt, observed: &RunAt, window: Window) {
    for ours in &mut predicted.run.writes {
        for theirs in &observed.run.writes {
            adopt(ours, theirs, window);
        }
    }
}

fn adopt(ours: &mut Write, theirs: &Write, window: Window) {
    match (ours, theirs) {
        (Write::Status { vpa, status }, Write::Status { vpa: other, status: observed })
            if vpa == other =>
        {
            for condition in &mut Arc::make_mut(status).conditions {
                let is_it = |it: &&VpaCondition| it.type_ == condition.type_;
                if let Some(observed) = observed.conditions.iter().find(is_it) {
                    let time = &mut condition.last_transition_time;
                    *time = window.agree(*time, observed.last_transition_time);
                }
            }
        }
        (Write::Checkpoint { checkpoint, .. }, Write::Checkpoint { checkpoint: observed, .. })
            if checkpoint.metadata == observed.metadata =>
        {
            let time = &mut Arc::make_mut(checkpoint).status.last_update_time;
            // Predicted times are not truncated to the seconds of the API.
            *time = window.agree(time.truncate_to_second(), observed.status.last_update_time);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::api::ConditionStatus;
    use kube_autoscaler_models::time::{Span, Time};
    use kube_autoscaler_models::vpa::{ObjectName, VpaStatus};

    fn status(at: GoTime) -> RunAt {
        let condition = VpaCondition {
            type_: "RecommendationProvided".into(),
            status: ConditionStatus::True,
            last_transition_time: at,
            reason: "".into(),
            message: "".into(),
        };
        let status = VpaStatus { conditions: vec![condition], ..VpaStatus::default() };
        let vpa = ObjectName::new("shop", "web");
        let writes = vec![Write::Status { vpa, status: status.into() }];
        RunAt { at: Time::ZERO, run: Run { writes, ..Run::default() } }
    }

    #[test]
    fn only_times_of_the_run_may_differ() {
        let now = GoTime::from_unix(1_700_000_000);
        let received = Timestamp::from_second(1_700_000_000).expect("a time");
        let window = Window::new(received, &[]);
        let adopted = |predicted: GoTime, observed: GoTime| {
            let (mut ours, theirs) = (status(predicted), status(observed));
            adopt_clock(&mut ours, &theirs, window);
            ours == theirs
        };
        assert!(adopted(now, now.plus(Span::from_secs(1))));
        assert!(!adopted(now, now.plus(Span::from_secs(2))));
        assert!(!adopted(now.plus(Span::from_secs(-60)), now), "an older transition");
    }
}
