//! The state of the world, for searches that merge equal states.
//!
//! Published state is not part of it: the next reconcile publishes everything first. Neither is
//! anything that only notes and figures need.

use super::backlog::Backlog;
use super::driver::World;
use super::pods::{Deletion, SimPod};
use super::rollout::Update;
use super::simulation::{ScheduledEvent, WorldSimulation};
use kube_autoscaler_models::state::{Part, State};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::resolved::{Signal, TimelineEvent};

impl World {
    /// Lets everything happen before a time, for a state at that time.
    pub fn run_before(&mut self, at: Time) {
        self.simulation.run_until(at - Span(1));
    }

    /// Adds everything that the future of the world depends on. Returns false if it has parts that
    /// a state does not have: a VPA.
    #[must_use]
    pub fn add_to(&self, state: &mut State) -> bool {
        state.part(Part::Timeline);
        add_remaining(self.remaining_api_events(), state);
        self.simulation.add_to(state) && self.chosen_api.is_empty()
    }
}

/// Adds the number of the events that are still to come, and the time of the next one: that of the
/// others follows.
fn add_remaining(times: impl Iterator<Item = Time>, state: &mut State) {
    let mut times = times.filter(|at| *at != TimelineEvent::NEVER).peekable();
    state.optional_time(times.peek().copied());
    state.count(times.count());
}

impl WorldSimulation {
    fn add_to(&self, state: &mut State) -> bool {
        state.part(Part::Pods);
        for replicas in &self.replicas {
            state.number(*replicas);
        }
        self.add_timeline(state);
        self.add_signals(state);
        self.add_templates(state);
        if state.scope.ordinals {
            state.number(self.next_ordinal);
        }
        state.count(self.pods.len());
        let newest = self.templates.revision();
        let mut is_complete = self.vpa.is_none() && self.seen.is_none();
        for (ordinal, pod) in self.pods.iter() {
            if state.scope.ordinals {
                state.number(*ordinal);
            }
            state.number(newest - pod.revision);
            is_complete &= pod.add_to(state);
        }
        self.add_queue(state);
        is_complete
    }

    /// Adds the rest of the timeline, and the actions in effect.
    fn add_timeline(&self, state: &mut State) {
        state.part(Part::Timeline);
        let schedule = &self.schedule;
        let remaining = self.scenario.timeline[schedule.next_event..].iter().map(|event| event.at);
        add_remaining(remaining, state);
        for actions in [&schedule.disturbances, &schedule.holding_new_pods] {
            state.count(actions.len());
            actions.iter().for_each(|index| state.count(*index));
        }
    }

    /// Adds the time, as far as the values of metrics depend on it.
    fn add_signals(&self, state: &mut State) {
        state.part(Part::Metrics);
        let now = state.now();
        let changes = |signal: &Signal| match signal {
            Signal::Constant(_) => false,
            Signal::Steps(points) | Signal::Points(points) => {
                points.iter().any(|point| point.at > now && point.at != TimelineEvent::NEVER)
            }
            _ => true,
        };
        let metrics = &self.scenario.metrics;
        state.number(if metrics.signals().any(changes) { now.0 } else { -1 });
        for level in self.backlogs.all().map(Backlog::level) {
            // Not rounded: a smaller difference can decide when a backlog is empty.
            state.number((level >> 64) as i64);
            state.number(level as i64);
        }
        let step = metrics.sampling.resolution.map_or(1, |resolution| resolution.0.max(1));
        state.number(now.0.rem_euclid(step));
    }

    /// Adds the pod templates and the update to the newest one.
    fn add_templates(&self, state: &mut State) {
        state.part(Part::Pods);
        let templates = &self.templates;
        let differ = templates.specs.iter().any(|spec| *spec != templates.newest);
        // Templates with the same containers differ in their names only.
        state.number(if differ { i64::from(templates.revision()) } else { -1 });
        match &self.update {
            None => state.number(0),
            Some(Update::OneByOne) => state.number(1),
            Some(Update::Rolling(rollout)) => {
                state.number(2);
                rollout.add_to(state);
            }
        }
    }

    /// Adds the scheduled events that still have an effect.
    fn add_queue(&self, state: &mut State) {
        state.part(Part::Pods);
        let reuses_names = self.scenario.workload.rules.reuses_names;
        let place = |ordinal: u32| {
            let exists = self.pods.contains_key(&ordinal);
            let by_ordinal = state.scope.ordinals || reuses_names;
            match (by_ordinal, exists) {
                (true, _) => (exists || reuses_names).then_some(ordinal as usize),
                (false, true) => Some(self.pods.range(..ordinal).count()),
                (false, false) => None,
            }
        };
        let events = self.schedule.queue.iter().filter_map(|std::cmp::Reverse((at, event))| {
            let (kind, place) = match *event {
                ScheduledEvent::Begin(index) => (0, Some(index)),
                ScheduledEvent::Start(ordinal) => (1, place(ordinal)),
                ScheduledEvent::Warm(ordinal) => (2, place(ordinal)),
                ScheduledEvent::Reports(ordinal) => (3, place(ordinal)),
                ScheduledEvent::Terminates(ordinal) => (4, place(ordinal)),
                ScheduledEvent::End(index) => (5, Some(index)),
            };
            Some((*at, kind, place?))
        });
        let mut events: Vec<(Time, i64, usize)> = events.collect();
        events.sort_unstable();
        state.count(events.len());
        for (at, kind, place) in events {
            state.time(at);
            state.number(kind);
            state.count(place);
        }
    }
}

impl SimPod {
    /// Adds everything that the future of the pod depends on, apart from its revision.
    fn add_to(&self, state: &mut State) -> bool {
        let flags = [
            self.started.is_some(),
            self.warm,
            self.reports,
            self.orphan,
            self.deleted,
            self.keeps_place,
            self.serving(),
        ];
        let flags = flags.into_iter().fold(0, |bits, flag| bits << 1 | i64::from(flag));
        let ended = self.ended.map_or(0, |phase| 1 + phase as i64);
        let ready = self.ready.map_or(0, |(ready, _)| 1 + i64::from(ready));
        state.number(flags << 8 | ended << 4 | ready);
        state.part(Part::PodAges);
        self.add_ages(state);
        state.part(Part::Pods);
        state.number(self.deletion.is_some());
        if let Some(Deletion { due, unready }) = self.deletion {
            // All times in the past have the same effect.
            let past = state.now() - Span(1);
            state.time(due.max(past));
            state.time(unready.max(past));
        }
        state.count(self.holds.len());
        self.holds.iter().for_each(|index| state.count(*index));
        state.number(self.frozen.is_some());
        if let Some(frozen) = &self.frozen {
            state.time(frozen.timestamp);
            state.text(&format!("{:?}", frozen.containers));
        }
        self.edits.is_none() && self.sampled_from.is_none() && self.admitted.is_none()
    }

    /// Adds when the pod started, and when its readiness changed, as far as the controller still
    /// distinguishes these times: it compares the samples of a young pod with its readiness, and
    /// later only uses whether a pod that is not ready has ever been.
    ///
    /// Upstream: replica_calculator.go, groupPods
    fn add_ages(&self, state: &mut State) {
        let Some(started) = self.started.map(Time::truncate_to_second) else { return };
        let scope = state.scope;
        let changed = self.ready.map(|(_, since)| since.truncate_to_second());
        let settled = scope.initialization.max(scope.readiness_delay);
        let is_young = started + settled > state.now();
        state.number(is_young);
        if is_young {
            state.time(started);
            state.optional_time(changed);
        } else if let Some(changed) = changed {
            let is_ready = self.ready.is_some_and(|(ready, _)| ready);
            state.number(!is_ready && started + scope.readiness_delay > changed);
        }
    }
}
