//! The part of the controller's memory that can still have an effect, for searches.
//!
//! The memory grows with each reconcile. Of the recommendations in a window, only those matter that
//! can become its highest or lowest one; of the scale events, only those that a policy still
//! counts.

use super::behavior::{Direction, get_longest_policy_period};
use super::{Memory, TimestampedRecommendation, TimestampedScaleEvent};
use crate::api::{Behavior, HpaSpec};
use crate::hpa::go::go_i32;
use crate::hpa::reconcile::ControllerConfig;
use crate::state::{Part, State};
use crate::time::{Span, Time};

/// Adds the whole memory, for an HPA whose spec may change.
pub(crate) fn add_whole_memory(memory: &Memory, state: &mut State) {
    state.count(memory.recommendations.len());
    for TimestampedRecommendation { recommendation, timestamp } in &memory.recommendations {
        state.number(*recommendation);
        state.time(*timestamp);
    }
    add_whole_events(memory, state);
}

/// Adds the memory of an HPA whose spec does not change.
pub(crate) fn add_memory(
    memory: &Memory,
    spec: &HpaSpec,
    config: &ControllerConfig,
    state: &mut State,
) {
    let flag = config.flags.downscale_stabilization;
    let recommendations = &memory.recommendations;
    // The first recommendation is the current number of replicas.
    state.number(recommendations.is_empty());
    let Some(behavior) = &spec.behavior else {
        // The window includes its beginning.
        let oldest = state.now() - flag;
        add_extremes(recommendations, false, |at| at >= oldest, state);
        return add_whole_events(memory, state);
    };
    let down_window = go_i32(flag.as_secs_f64());
    for (up, rules, default) in
        [(true, &behavior.scale_up, 0), (false, &behavior.scale_down, down_window)]
    {
        let cutoff = state.now() - Direction::new(rules.as_ref(), default).window;
        add_extremes(recommendations, up, |at| at > cutoff, state);
    }
    add_events(memory, behavior, config.rules.normalization.changes_are_netted, state);
}

fn add_whole_events(memory: &Memory, state: &mut State) {
    state.part(Part::ScaleEvents);
    add_all_events(&memory.up_events, state);
    add_all_events(&memory.down_events, state);
}

/// Adds the recommendations of a window that are lower (`lowest`) or higher than all later ones.
/// The others can't become the lowest or highest one of the window any more.
fn add_extremes(
    recommendations: &[TimestampedRecommendation],
    lowest: bool,
    is_within: impl Fn(Time) -> bool,
    state: &mut State,
) {
    let rank = |it: &TimestampedRecommendation| {
        let replicas = i64::from(it.recommendation);
        if lowest { -replicas } else { replicas }
    };
    let mut sorted: Vec<_> = recommendations.iter().filter(|it| is_within(it.timestamp)).collect();
    sorted
        .sort_unstable_by_key(|it| (std::cmp::Reverse(it.timestamp), std::cmp::Reverse(rank(it))));
    let mut highest = i64::MIN;
    for it in sorted {
        if rank(it) > highest {
            highest = rank(it);
            state.number(it.recommendation);
            state.time(it.timestamp);
        }
    }
    // Ends the list: no recommendation has this value.
    state.number(i64::MIN);
}

/// Adds the scale events that a policy can count.
fn add_events(memory: &Memory, behavior: &Behavior, netted: bool, state: &mut State) {
    let up = get_longest_policy_period(behavior.scale_up.as_ref());
    let down = get_longest_policy_period(behavior.scale_down.as_ref());
    if netted && up != down {
        // The longer period may still count events that a new event of the other direction
        // replaces, in the order of the list.
        return add_whole_events(memory, state);
    }
    state.part(Part::ScaleEvents);
    for (events, period) in [(&memory.up_events, up), (&memory.down_events, down)] {
        let cutoff = state.now() - Span::from_secs(i64::from(period));
        let mut counted: Vec<_> = events.iter().filter(|it| it.timestamp > cutoff).collect();
        counted.sort_unstable_by_key(|it| it.timestamp);
        state.count(counted.len());
        for event in counted {
            state.number(event.replica_change);
            state.time(event.timestamp);
        }
    }
}

fn add_all_events(events: &[TimestampedScaleEvent], state: &mut State) {
    state.count(events.len());
    for TimestampedScaleEvent { replica_change, timestamp, outdated } in events {
        state.number(*replica_change);
        state.time(*timestamp);
        state.number(*outdated);
    }
}
