//! Actions during a reconcile, right after a request of the controller, and caches that
//! lag behind the cluster.

use super::{Draft, several, timeline};
use crate::area::Area;
use kube_autoscaler_models::observation::Request;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::{
    Action, DuringReconcile, Empty, TargetDeletion, TimelineEvent,
};

/// The requests of most reconciles, with their weights. Metric queries depend on the HPA.
const REQUESTS: [(u64, Request); 7] = [
    (8, Request::GetScale),
    (4, Request::ListPodMetrics),
    (1, Request::PodsMetric),
    (1, Request::ObjectMetric),
    (1, Request::ExternalMetric),
    (5, Request::UpdateScale),
    (3, Request::UpdateStatus),
];

/// Adds actions in the middle of reconciles, or lets caches lag, if the scenario allows it: caches
/// can lag if it has one HPA. In the area of races, no metrics are slow.
pub(super) fn add(draft: &mut Draft, events: &mut Vec<TimelineEvent>) {
    let elsewhere = if draft.hpas.len() > 1 { 15 } else { 3 };
    if !draft.likely(Area::Races, elsewhere, 100) {
        return;
    }
    if draft.area == Area::Races {
        events.retain(|event| !is_slow(event));
    }
    if events.iter().any(is_slow) {
        return;
    }
    if draft.hpas.len() == 1 && draft.dice.percent(35) {
        return lag(draft, events);
    }
    for _ in 0..draft.dice.weighted(&[(4, 1), (2, 2), (1, 4)]) {
        let event = action(draft);
        let possible = !matches!(event.action, Action::RestartController(_)) && !is_slow(&event);
        if possible {
            events.push(TimelineEvent { during: Some(moment(draft)), ..at_a_time(draft, event) });
        }
    }
}

/// Lets the caches lag: usually a little, and sometimes longer than several reconciles.
fn lag(draft: &mut Draft, events: &mut Vec<TimelineEvent>) {
    for _ in 0..draft.dice.weighted(&[(3, 1), (1, 2)]) {
        let period = draft.flags.sync_period;
        let lag = match draft.dice.below(4) {
            0 => draft.span(),
            1 => Span(draft.dice.between(1, period.0 / 1_000_000) * 1_000_000),
            2 => Span(period.0 * draft.dice.between(1, 3)),
            _ => Span(period.0 + draft.dice.between(1, 1000) * 1_000_000),
        };
        let event = at_a_time(draft, Action::CacheLag(lag).into());
        events.push(event);
    }
}

fn is_slow(event: &TimelineEvent) -> bool {
    matches!(event.action, Action::MetricsSlow(_))
}

fn action(draft: &mut Draft) -> TimelineEvent {
    match draft.dice.below(12) {
        0..=4 => timeline::user_event(draft),
        5 | 6 => timeline::pod_action(draft).into(),
        7 | 8 => timeline::error_action(draft).into(),
        9 => {
            let hpa = timeline::one_of(draft);
            TimelineEvent { hpa, ..Action::DeleteHpa(Empty {}).into() }
        }
        10 => Action::TargetDeleted(TargetDeletion::default()).into(),
        _ => {
            let size = draft.dice.replicas(draft.min.max(1), draft.max.min(60) + 1);
            let other = draft.others > 0 && draft.dice.percent(50);
            let target =
                other.then(|| several::target_name(draft.dice.below(draft.others as u64)).into());
            TimelineEvent { target, ..Action::Scale(size).into() }
        }
    }
}

/// The first reconciles are the most likely to scale.
fn at_a_time(draft: &mut Draft, event: TimelineEvent) -> TimelineEvent {
    let at = if draft.dice.percent(40) { Time::ZERO } else { draft.instant() };
    let lasts = (event.action.can_end() && draft.dice.percent(85)).then(|| draft.span());
    TimelineEvent { at, lasts, ..event }
}

fn moment(draft: &mut Draft) -> DuringReconcile {
    let after = draft.dice.weighted(&REQUESTS);
    let nth = draft.dice.weighted(&[(9, 1), (2, 2), (1, 3)]);
    DuringReconcile { after, nth, hpa: timeline::one_of(draft) }
}
