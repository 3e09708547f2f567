//! The steps of a scenario of the recommender, and the runs that follow each of them.

use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::{ClusterChange, Script};

/// A step of a scenario on a cluster.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Step<'s> {
    /// The changes, in order.
    pub changes: &'s [ClusterChange],
    /// The number of runs that see the changes before the next step.
    pub runs: usize,
}

/// The steps of a script. The recommender runs an interval after its start, and then at each
/// interval.
pub(super) fn steps(script: &Script, interval: Span) -> Vec<Step<'_>> {
    let (mut now, mut due) = (Time::ZERO, Time::ZERO + interval);
    let steps = script.steps.iter().map(|step| {
        if step.changes.contains(&ClusterChange::Restart) {
            due = now + interval;
        }
        let mut runs = 0;
        while due <= step.until {
            runs += 1;
            due = due + interval;
        }
        now = step.until;
        Step { changes: &step.changes, runs }
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::vpa::{ScriptStep, Start};

    #[test]
    fn a_restart_moves_the_runs() {
        let step = |changes: Vec<ClusterChange>, seconds: i64| ScriptStep {
            changes,
            until: Time::ZERO + Span::from_secs(seconds),
        };
        let script = Script {
            name: String::new(),
            flags: Default::default(),
            start: Start::default(),
            steps: vec![
                step(Vec::new(), 60),
                step(Vec::new(), 90),
                step(vec![ClusterChange::Restart], 120),
                step(Vec::new(), 150),
                step(Vec::new(), 270),
            ],
        };
        let runs: Vec<usize> =
            steps(&script, Span::from_mins(1)).iter().map(|step| step.runs).collect();
        assert_eq!(runs, [1, 0, 0, 1, 2]);
    }
}
