//! What a search can choose, and when.

use std::ops::Add;
use std::sync::Arc;

use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::state::State;
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::{Action, Observed, Point, Search, Signal, TimelineEvent};

/// The times of a choice.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    first: Time,
    /// `None`: there is one time.
    every: Option<Span>,
    /// `None`: there is no last time.
    last: Option<Time>,
}

impl Schedule {
    /// The first time at or after a time.
    fn next(self, from: Time) -> Option<Time> {
        let Schedule { first, every, last } = self;
        let passed = (from - first).0.max(0);
        let next = match every {
            None => Some(first).filter(|first| *first >= from),
            Some(Span(every)) => {
                let steps = passed.div_euclid(every) + i64::from(passed % every != 0);
                Some(first + Span(steps * every))
            }
        };
        next.filter(|next| last.is_none_or(|last| *next <= last))
    }

    /// True if a time is one of them.
    fn is_due(self, at: Time) -> bool {
        self.next(at) == Some(at)
    }

    /// Adds the times that are still to come.
    fn add_to(self, state: &mut State) {
        let next = self.next(state.now());
        state.optional_time(next);
        state.optional_time(self.last.filter(|_| next.is_some()));
    }
}

/// A metric with an open value.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) metric: Arc<str>,
    /// The value before the first choice, then those that can be chosen.
    pub(crate) values: Vec<Quantity>,
    schedule: Schedule,
}

impl Open {
    /// True if two of the values, by their indices, are not equal.
    pub(crate) fn differs(&self, one: u8, other: u8) -> bool {
        self.values[usize::from(one)] != self.values[usize::from(other)]
    }
}

/// An event that may happen.
#[derive(Clone, Debug)]
struct OpenEvent {
    /// Its index in the timelines of the variants.
    index: usize,
    schedule: Schedule,
}

/// The choices of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    pub(crate) metrics: Vec<Open>,
    events: Vec<OpenEvent>,
    /// The largest number of events in a run.
    pub(crate) most_events: u32,
    /// The numbers of replicas to start with.
    pub(crate) replicas: Vec<i32>,
    /// The initial replicas of the scenario itself.
    default_replicas: i32,
    /// True if the workload may be created again, with the replicas of the start.
    pub(crate) creates_target: bool,
    until: Time,
}

/// The choices at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Chosen {
    /// The value of each metric, by its index in [`Open::values`].
    pub(crate) values: Vec<u8>,
    /// The event that happens, by its index in the timelines of the variants.
    pub(crate) event: Option<usize>,
}

/// The choices with which a run differs from one without choices. The first field matters most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Distance {
    /// The number of events.
    pub(crate) events: u32,
    /// The number of chosen values that differ from those of the scenario, with the initial
    /// replicas.
    pub(crate) values: u32,
    /// The number of chosen values that differ from the previous ones.
    pub(crate) changes: u32,
}

impl Add for Distance {
    type Output = Distance;

    fn add(self, other: Distance) -> Distance {
        Distance {
            events: self.events + other.events,
            values: self.values + other.values,
            changes: self.changes + other.changes,
        }
    }
}

impl Choices {
    pub(crate) fn new(scenario: &Scenario, search: &Search) -> Result<Choices, String> {
        if !search.is_small() {
            return Err("the search has too many values".to_owned());
        }
        let default = scenario.flags.sync_period;
        let base = |metric: &str| {
            let mut metrics = scenario.metrics.clone();
            let signal = metrics.named_mut(metric).next().cloned();
            match signal {
                Some(Signal::Constant(value)) => Ok(value),
                _ => Err(format!("the metric `{metric}` has no constant value")),
            }
        };
        let open = search.choose.iter().map(|open| {
            let schedule = Schedule {
                first: open.from.unwrap_or_default(),
                every: Some(open.every.unwrap_or(default)),
                last: open.to,
            };
            let chosen = open.values.iter().map(|value| value.0.clone());
            let values = std::iter::once(base(&open.metric)?).chain(chosen).collect();
            Ok(Open { metric: open.metric.clone(), values, schedule })
        });
        let metrics = open.collect::<Result<Vec<Open>, String>>()?;
        let events = search.events.iter().flat_map(|events| {
            let first = scenario.timeline.len();
            events.of.iter().enumerate().map(move |(index, event)| OpenEvent {
                index: first + index,
                schedule: Schedule { first: event.at, every: events.every, last: events.to },
            })
        });
        let replicas = match search.replicas.as_slice() {
            [] => vec![scenario.workload.replicas],
            replicas => replicas.to_vec(),
        };
        let of = search.events.iter().flat_map(|events| &events.of);
        let mut timeline = scenario.timeline.iter().chain(of);
        Ok(Choices {
            metrics,
            events: events.collect(),
            most_events: search.events.as_ref().map_or(0, |events| events.at_most),
            replicas,
            default_replicas: scenario.workload.replicas,
            creates_target: timeline.any(|event| matches!(event.action, Action::TargetDeleted(_))),
            until: scenario.until,
        })
    }

    /// The first time at or after a time at which there is a choice. `None`: there is none until
    /// the end.
    pub(crate) fn next(&self, from: Time) -> Option<Time> {
        let metrics = self.metrics.iter().map(|open| open.schedule);
        let events = self.events.iter().map(|event| event.schedule);
        let times = metrics.chain(events).filter_map(|schedule| schedule.next(from));
        times.min().filter(|at| *at <= self.until)
    }

    /// The choices at a time: `values` are the present ones, and `left` is the number of events
    /// that may still happen.
    pub(crate) fn at(&self, at: Time, values: &[u8], left: u32) -> Vec<Chosen> {
        let due = self.events.iter().filter(|event| left > 0 && event.schedule.is_due(at));
        let due: Vec<usize> = due.map(|event| event.index).collect();
        let mut all = vec![values.to_vec()];
        for (index, open) in self.metrics.iter().enumerate() {
            if open.schedule.is_due(at) {
                let each = |values: Vec<u8>| {
                    (1..open.values.len()).map(move |value| {
                        let mut values = values.clone();
                        values[index] = value as u8;
                        values
                    })
                };
                all = all.into_iter().flat_map(each).collect();
            }
        }
        let events = std::iter::once(None).chain(due.into_iter().map(Some));
        events
            .flat_map(|event| all.iter().map(move |it| Chosen { values: it.clone(), event }))
            .collect()
    }

    /// The distance of the initial replicas with an index.
    pub(crate) fn distance_of_replicas(&self, index: usize) -> Distance {
        let values = u32::from(self.replicas[index] != self.default_replicas);
        Distance { values, ..Distance::default() }
    }

    /// The distance of a choice at a time. `before`: the values up to it.
    pub(crate) fn distance(&self, at: Time, before: &[u8], chosen: &Chosen) -> Distance {
        let events = u32::from(chosen.event.is_some());
        let mut distance = Distance { events, ..Distance::default() };
        for ((open, before), value) in self.metrics.iter().zip(before).zip(&chosen.values) {
            if open.schedule.is_due(at) {
                distance.values += u32::from(open.differs(*value, 0));
                distance.changes += u32::from(open.differs(*value, *before));
            }
        }
        distance
    }

    /// Adds the choices that are still to come, and what they do not replace at once.
    pub(crate) fn add_to(&self, values: &[u8], left: u32, state: &mut State) {
        let now = state.now();
        for (open, value) in self.metrics.iter().zip(values) {
            open.schedule.add_to(state);
            state.number(if open.schedule.is_due(now) { 0 } else { i64::from(*value) });
        }
        let schedules = self.events.iter().map(|event| event.schedule);
        let is_over = left == 0 || schedules.clone().all(|it| it.next(now).is_none());
        state.number(if is_over { 0 } else { left });
        if !is_over {
            schedules.for_each(|schedule| schedule.add_to(state));
        }
    }

    /// The scenarios with each combination of replicas and values, in the order of
    /// [`Choices::variant`].
    pub(crate) fn variants(&self, scenario: &Scenario, search: &Search) -> Vec<Arc<Scenario>> {
        let mut base = scenario.clone();
        base.search = None;
        base.observed = Observed { sent_events: false, all_metrics: false };
        let open = search.events.iter().flat_map(|events| &events.of).cloned();
        base.timeline.extend(open.map(|event| TimelineEvent { at: TimelineEvent::NEVER, ..event }));
        let mut variants = Vec::new();
        for replicas in &self.replicas {
            base.workload.replicas = *replicas;
            let mut of = vec![base.clone()];
            for Open { metric, values, .. } in &self.metrics {
                let with = |scenario: Scenario| {
                    (0..values.len()).map(move |index| {
                        let mut scenario = scenario.clone();
                        let signal = always(values, index);
                        scenario.metrics.named_mut(metric).for_each(|it| it.clone_from(&signal));
                        scenario
                    })
                };
                of = of.into_iter().flat_map(with).collect();
            }
            variants.extend(of.into_iter().map(Arc::new));
        }
        variants
    }

    /// The index of a variant.
    pub(crate) fn variant(&self, replicas: usize, values: &[u8]) -> usize {
        let pairs = self.metrics.iter().zip(values);
        pairs.fold(replicas, |index, (open, value)| index * open.values.len() + usize::from(*value))
    }
}

/// A signal that always has one of the values. All signals of these values have the same ones at
/// the same index, so that the world notices when one replaces another.
fn always(values: &[Quantity], index: usize) -> Signal {
    let point = |(place, value): (usize, &Quantity)| {
        let at = if place <= index { Time(i64::MIN) } else { TimelineEvent::NEVER };
        Point { at, value: value.clone() }
    };
    Signal::Steps(values.iter().enumerate().map(point).collect())
}
