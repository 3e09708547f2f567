//! A model that follows a real clock, and what it says of a reconcile at one moment or another.
//!
//! What it remembers has a time that is known only to within what a reconcile took. So a scenario
//! is followed by several of them, each as if everything had happened at another moment.

use crate::engine::cluster::Tick;
use crate::engine::model::Simulation;
use crate::model::api::Text;
use crate::model::hpa::Decision;
use crate::model::observation::Observation;
use crate::model::time::{Span, Time};
use crate::run::recorder::Recorder;
use crate::world::Change;

/// How many moments are tried of each reconcile, and how many lineages there are.
pub(super) const MOMENTS: usize = 3;

/// When a reconcile can have read the clock: in its middle, as early as it can be, and as late,
/// where something was held up for so long. It may have asked for all by then, and write nothing.
pub(super) fn moments(tick: &Tick, uncertainty: Span, stall: Span) -> [Time; MOMENTS] {
    let middle = Time(tick.began.0 + (tick.ended - tick.began).0 / 2);
    [middle, tick.began - uncertainty, tick.ended + uncertainty + stall]
}

/// A model, and what it remembers.
#[derive(Clone)]
pub(super) struct Lineage {
    pub(super) simulation: Simulation,
    pub(super) recorder: Recorder,
}

impl Lineage {
    /// What it says of a reconcile at an instant, whether it is due then or nearly.
    pub(super) fn at(&self, at: Time) -> Option<Candidate> {
        let mut lineage = self.clone();
        let decision = lineage.pass(at)?;
        Some(Candidate { lineage, decision })
    }

    /// Goes on as if a reconcile came at an instant. Also one of an HPA that is gone is done then.
    pub(super) fn pass(&mut self, at: Time) -> Option<Decision> {
        self.simulation.mark_ready(at);
        let mut decision = self.simulation.sync(at)?;
        self.recorder.record(&mut decision.observation, at);
        Some(decision)
    }
}

/// All of them hear of these changes.
pub(super) fn hear<'a>(
    lineages: &mut [Lineage],
    changes: impl IntoIterator<Item = &'a Change>,
    at: Time,
) {
    for change in changes {
        for lineage in &mut *lineages {
            lineage.simulation.apply(change, at);
        }
    }
}

/// What the model says of a reconcile at some instant.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) lineage: Lineage,
    pub(super) decision: Decision,
}

impl Candidate {
    /// What is only known to within the time that the reconcile took is as it was seen: when it
    /// began, and which whole second it was when a time was written. One that reads nothing is not
    /// seen to begin, but may be held up for so long before it writes.
    pub(super) fn normalize(
        &mut self,
        seen: &Observation,
        (pods, [_, early, late]): (&[String], [Time; MOMENTS]),
        unseen: Span,
    ) {
        let early = if seen.reads().next().is_none() { early - unseen } else { early };
        self.adopt_names(seen, pods);
        let own = self.decision.observation.at;
        let observation = &mut self.decision.observation;
        (observation.at, observation.took) = (seen.at, seen.took);
        let (Some(model), Some(seen)) = (observation.status_write_mut(), seen.status_write())
        else {
            return;
        };
        let second = own.truncate_to_second();
        let possible = early.truncate_to_second()..=late.truncate_to_second();
        let adopt = |model: &mut Time, seen: Time| {
            if *model == second && possible.contains(&seen) {
                *model = seen;
            }
        };
        if let (Some(model), Some(seen)) =
            (&mut model.status.last_scale_time, seen.status.last_scale_time)
        {
            adopt(model, seen);
        }
        for (model, seen) in model.status.conditions.iter_mut().zip(&seen.status.conditions) {
            adopt(&mut model.last_transition_time, seen.last_transition_time);
        }
    }

    /// Names of pods are as they were seen, where only they differ.
    fn adopt_names(&mut self, seen: &Observation, pods: &[String]) {
        let observation = &mut self.decision.observation;
        if let (Some(model), Some(seen)) = (observation.status_write_mut(), seen.status_write()) {
            for (model, seen) in model.status.conditions.iter_mut().zip(&seen.status.conditions) {
                adopt(&mut model.message, &seen.message, pods);
            }
        }
    }
}

/// Of several pods that are alike, the controller names the one that its cache has first, and that
/// is a matter of chance: what was seen is as right as what the model says.
pub(super) fn adopt(model: &mut Text, seen: &Text, pods: &[String]) {
    let masked = |text: &Text| {
        let mask = |text: String, pod: &String| text.replace(pod.as_str(), "?");
        // Names that begin like others come after them.
        pods.iter().rev().fold(text.as_str().to_owned(), mask)
    };
    if model != seen && masked(model) == masked(seen) {
        *model = seen.clone();
    }
}
