//! Rejects sets of pods that can never exist, since they are mistakes.
//!
//! Ordinals count creations, so they are unlimited in principle: each increase of the replicas
//! creates new ones. The check uses an upper bound, not a forecast.

use super::cursor::{At, Problems};
use crate::node::NodeKind;
use crate::raw::ScenarioFile;
use crate::resolved::{Action, PodSet, TimelineEvent};
use kube_autoscaler_models::time::{Span, Time};

/// The parameters of the upper bound on created pods.
#[derive(Clone, Copy)]
pub(super) struct Reach {
    /// The number of initial pods.
    initial: u64,
    /// The largest replicas that the controller or a user can request.
    largest: u64,
    /// The number of events, which may replace pods, write replicas or cause a reconcile.
    events: u64,
    period: Span,
    hpas: u64,
}

impl Reach {
    /// Calculates the parameters. `max_replicas` is the largest maxReplicas of the manifests, if
    /// known.
    pub(super) fn new(
        file: &ScenarioFile,
        max_replicas: Option<i32>,
        period: Span,
    ) -> Option<Reach> {
        let initial = u64::try_from(file.workload.replicas()).unwrap_or(0);
        let replicas = file.timeline.iter().filter_map(requested_replicas);
        let replicas = replicas.chain([i64::from(max_replicas?)]);
        let largest =
            replicas.filter_map(|count| u64::try_from(count).ok()).fold(initial, u64::max);
        let events = u64::try_from(file.hpa_events().count()).unwrap_or(u64::MAX);
        let hpas = u64::try_from(file.hpas.len().max(1)).unwrap_or(u64::MAX);
        Some(Reach { initial, largest, events, period, hpas })
    }

    /// The upper bound on the number of pods that are created until `at`. At the start, only the
    /// initial pods exist.
    fn pods_at(&self, at: Time) -> u64 {
        if at <= Time::ZERO {
            return self.initial;
        }
        let periods = at.since_start().0.checked_div(self.period.0).unwrap_or(i64::MAX);
        // Each HPA is reconciled once per period and at each event; a restart counts twice.
        let reconciles = u64::try_from(periods).unwrap_or(0) + 2 + 2 * self.events;
        let reconciles = reconciles.saturating_mul(self.hpas);
        // Each event may replace all pods or write replicas; every other write is an increase.
        let upwards = (reconciles + self.events).div_ceil(2) + 1 + self.events;
        self.initial.saturating_add(upwards.saturating_mul(self.largest))
    }
}

/// The replicas that an event writes, or the limit that it sets.
fn requested_replicas(event: &TimelineEvent) -> Option<i64> {
    match &event.action {
        Action::Scale(replicas) => Some(i64::from(*replicas)),
        Action::EditHpa(patch) => {
            patch.pointer("/spec/maxReplicas")?.as_f64().map(|limit| limit as i64)
        }
        _ => None,
    }
}

/// Rejects a set of pods if none of them can exist at a time.
pub(super) fn check_reach(
    set: &PodSet,
    reach: Option<Reach>,
    until: Time,
    at: At<'_>,
    problems: &mut Problems,
) {
    let (Some(reach), PodSet::Ordinals(ranges)) = (reach, set) else { return };
    let first = ranges.first().map_or(0, |(first, _)| u64::from(*first));
    let most = reach.pods_at(until);
    if first < most {
        return;
    }
    let set = match at.node().map(|node| &node.kind) {
        Some(NodeKind::Scalar { text, .. }) => text.clone(),
        _ => set.to_string(),
    };
    let what = match (until, most) {
        (Time::ZERO, 0) => format!("pods {set:?} do not exist at the start: there are none"),
        (Time::ZERO, 1) => format!("pods {set:?} do not exist at the start: there is only pod 0"),
        (Time::ZERO, _) => {
            format!(
                "pods {set:?} do not exist at the start: the initial pods are 0 to {}",
                most - 1
            )
        }
        _ => format!("pods {set:?} never exist: at most {most} are created by {until}"),
    };
    problems.hint(at, what, "pods are numbered in the order of their creation, from 0");
}
