//! Edge cases that scenarios are built around. They require a combination of flag, age, replicas
//! and load that independent random values would rarely produce.

use std::sync::LazyLock;

use super::Draft;
use crate::area::Area;
use crate::dice::Dice;
use kube_autoscaler_models::flags::Flags;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::{Action, PodSet, TimelineEvent};

/// An edge case of the algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Edge {
    /// No edge case: all values are drawn independently.
    None,
    /// Replicas for which the result of a policy depends on rounding.
    Percent { up: bool, percent: i32 },
    /// Pods that become unready at the age of the initial readiness delay.
    Delay,
    /// Pods that are unready at the end of the CPU initialization period.
    Initialization,
    /// Samples whose window begins when the pod became ready.
    Sample,
    /// Scaling to zero and back.
    Zero,
}

impl Edge {
    /// Returns true if the edge case requires a CPU metric.
    pub(super) fn requires_cpu(self) -> bool {
        matches!(self, Edge::Delay | Edge::Initialization | Edge::Sample)
    }
}

/// Replicas and percentages of scale-up policies whose result depends on the order of
/// multiplication and division.
static UP: LazyLock<Vec<(i32, i32)>> = LazyLock::new(|| {
    pairs(|size, percent| {
        let (one, other) = (size * (1.0 + percent / 100.0), size * (100.0 + percent) / 100.0);
        one.ceil() != other.ceil() && one < 130.0
    })
});

/// Replicas and percentages of scale-down policies whose result depends on the order of
/// multiplication and division.
static DOWN: LazyLock<Vec<(i32, i32)>> = LazyLock::new(|| {
    pairs(|size, percent| {
        let (one, other) = (size * (1.0 - percent / 100.0), size * (100.0 - percent) / 100.0);
        percent < 100.0 && one.trunc() != other.trunc()
    })
});

fn pairs(differs: impl Fn(f64, f64) -> bool) -> Vec<(i32, i32)> {
    let all = (1..=60).flat_map(|size| (1..=200).map(move |percent| (size, percent)));
    all.filter(|(size, percent)| differs(f64::from(*size), f64::from(*percent))).collect()
}

/// Draws an edge case; usually none in areas without edge cases.
pub(super) fn edge(dice: &mut Dice, area: Area) -> Edge {
    let (none, policy, readiness, zero) = match area {
        Area::Behavior => (50, 45, 4, 1),
        Area::Readiness => (50, 1, 48, 1),
        Area::Custom => (60, 5, 5, 30),
        Area::Days => (100, 0, 0, 0),
        _ => (78, 8, 10, 4),
    };
    let percent = Edge::Percent { up: dice.percent(60), percent: 100 };
    let readiness_edge =
        dice.weighted(&[(3, Edge::Delay), (1, Edge::Initialization), (1, Edge::Sample)]);
    let all = [(none, Edge::None), (policy, percent), (readiness, readiness_edge)];
    dice.weighted(&[all[0], all[1], all[2], (zero, Edge::Zero)])
}

/// Sets flags with which the edge case occurs early.
pub(super) fn flags(dice: &mut Dice, edge: Edge, flags: &mut Flags) {
    let seconds = Span::from_secs;
    let usual = Flags::default();
    match edge {
        Edge::Delay => {
            let periods = [(4, Span::ZERO), (2, seconds(30)), (1, seconds(60))];
            let [none, half, minute] = periods;
            let own = (1, usual.cpu_initialization_period);
            flags.cpu_initialization_period = dice.weighted(&[none, half, minute, own]);
            let own = (4, usual.initial_readiness_delay);
            let (short, long) = ((1, seconds(15)), (1, seconds(60)));
            flags.initial_readiness_delay = dice.weighted(&[own, (2, Span::ZERO), short, long]);
        }
        Edge::Initialization | Edge::Sample => {
            flags.cpu_initialization_period = usual.cpu_initialization_period;
        }
        Edge::Zero if dice.percent(60) => flags.downscale_stabilization = Span::ZERO,
        _ => {}
    }
}

/// Sets replicas and limits for the edge case of a policy, or for zero replicas.
pub(super) fn set_replicas(draft: &mut Draft) {
    match draft.edge {
        Edge::Percent { up, .. } => {
            let (replicas, percent) = draft.dice.pick(if up { &UP } else { &DOWN });
            draft.edge = Edge::Percent { up, percent };
            draft.replicas = replicas;
            draft.min = draft.dice.pick(&[1, 1, 1, 2.min(replicas)]);
            let room = if up { replicas.saturating_mul(2) } else { 0 };
            draft.max = replicas + room + draft.dice.replicas(1, 40);
        }
        Edge::Zero if draft.to_zero => {
            draft.min = 1;
            draft.max = draft.dice.replicas(2, 12);
            draft.replicas = draft.dice.replicas(0, draft.max.min(5));
        }
        _ => {}
    }
}

/// An age of the initial pods with which the edge case is at or close to a reconcile.
pub(super) fn age(draft: &mut Draft) -> Option<Span> {
    let period = draft.flags.sync_period.0.max(1);
    let delay = match draft.edge {
        Edge::Delay => draft.flags.initial_readiness_delay,
        Edge::Initialization => draft.flags.cpu_initialization_period,
        Edge::Sample => Span::from_secs(30),
        _ => return None,
    };
    let most = draft.ticks.min(delay.0 / period).min(12);
    let tick = draft.dice.between(0, most) * period;
    let age = Span((delay.0 - tick).max(0));
    let offset = draft.dice.weighted(&[(6, 0), (1, -1_000_000), (1, 1_000_000)]);
    match draft.edge {
        // The age of the pod equals the delay.
        Edge::Delay => draft.unready_at = Some(Time((delay.0 - age.0 + offset).max(0))),
        // The pod becomes unready before the period ends.
        Edge::Initialization => draft.unready_at = Some(Time(draft.dice.between(0, tick))),
        _ => return Some(Span((age.0 + offset).max(0))),
    }
    Some(age)
}

/// The actions that the edge case requires.
pub(super) fn event(draft: &mut Draft) -> Option<TimelineEvent> {
    let at = draft.unready_at?.min(draft.until());
    let at = Time(at.0 / 1_000_000 * 1_000_000);
    let pods = if draft.dice.percent(50) { PodSet::All } else { draft.pods() };
    let lasts = draft.dice.percent(30).then(|| Span::from_secs(draft.dice.between(30, 600)));
    Some(TimelineEvent { lasts, ..TimelineEvent::new(at, Action::PodsUnready(pods)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_visible_for_some_replicas() {
        assert!(UP.contains(&(50, 12)), "{UP:?}");
        assert!(DOWN.contains(&(10, 80)), "{DOWN:?}");
        assert!(UP.len() > 10 && DOWN.len() > 10, "{} {}", UP.len(), DOWN.len());
    }
}
