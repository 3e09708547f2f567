//! The HPA controller's part of a run: the ticks of one HPA with the reasons of the model, and the
//! series of replicas, metrics and pods that its charts show.

mod charts;
mod csv;
pub(crate) mod explanation;
mod lines;
pub(crate) mod prediction;
pub(crate) mod rows;
mod ticks;

use std::sync::Arc;

use super::{
    Chart, Controller, Detail, EventMark, Interval, Intervals, Key, Lasts, Mark, Moments, Reason,
    Ticks, Value, plain,
};
use crate::{counted, metric};
use kube_autoscaler_models::derivation::{Derivation, Limit, MetricDerivation, PodCounts};
use kube_autoscaler_models::observation::{
    ControllerAction, EventType, Observation, ScaleReplicas,
};
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::{Action, ActionScope, TimelineEvent};
use kube_lockstep_sim::compare::Controller as Diverging;
use kube_lockstep_sim::run::{FreeRun, HpaRun, Outcome, Verdict};

/// A run of the HPA controller.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub scenario: &'a Scenario,
    ticks: Vec<Tick<'a>>,
    /// The first tick that differs from another run, if any.
    mark: Option<Mark<'a>>,
    /// The end of the axis of time.
    pub end: Time,
}

/// A tick: what was observed, and why the model predicted what it predicted.
#[derive(Clone, Copy, Debug)]
struct Tick<'a> {
    /// The number in the run, from 1.
    pub number: usize,
    pub observation: &'a Observation,
    /// `None` if the model did not predict the tick.
    pub derivation: Option<&'a Derivation>,
}

impl<'a> Run<'a> {
    /// The run of an engine; `None` if the outcome has no scenario, no target or no tick.
    pub(super) fn from_outcome(outcome: &'a Outcome) -> Option<Run<'a>> {
        let HpaRun { scenario, trace, derivations } = outcome.hpa()?;
        // Without a target, there are no replicas to draw.
        scenario.targets().next()?;
        let derivations = derivations.iter().map(Option::as_ref);
        let derivations = derivations.chain(std::iter::repeat(None));
        let ticks = trace.ticks.iter().zip(derivations).enumerate();
        let ticks: Vec<Tick<'a>> = ticks
            .map(|(index, (observation, derivation))| Tick {
                number: index + 1,
                observation,
                derivation,
            })
            .collect();
        // A divergence of the recommender is shown beside the VPA.
        let mark = match &outcome.verdict {
            Verdict::Diverges(it) if it.controller != Diverging::Recommender => {
                Some(Mark::diverges(it, &outcome.engine))
            }
            _ => None,
        };
        Run::of(scenario, ticks, mark)
    }

    /// A run of the model alone; `None` if it has no tick.
    pub(crate) fn from_model(
        scenario: &'a Scenario,
        run: &'a FreeRun,
        mark: Option<Mark<'a>>,
    ) -> Option<Run<'a>> {
        let ticks = run.ticks.iter().enumerate().map(|(index, tick)| Tick {
            number: index + 1,
            observation: &tick.observation,
            derivation: Some(&tick.derivation),
        });
        Run::of(scenario, ticks.collect(), mark)
    }

    /// `None` without ticks. The end is one period after the last tick, whose result would have no
    /// width otherwise, or that of the scenario.
    fn of(scenario: &'a Scenario, ticks: Vec<Tick<'a>>, mark: Option<Mark<'a>>) -> Option<Run<'a>> {
        let last = ticks.iter().map(|tick| tick.observation.end()).max()?;
        let end = (last + scenario.flags.sync_period).max(scenario.until);
        Some(Run { scenario, ticks, mark, end })
    }

    /// The timeline of each HPA that was reconciled, in the order of the scenario.
    pub(crate) fn timelines(&self) -> Vec<Timeline<'a>> {
        let mut names: Vec<&Arc<str>> = self.scenario.hpas.iter().map(|hpa| &hpa.name).collect();
        for tick in &self.ticks {
            if !names.contains(&&tick.observation.hpa) {
                names.push(&tick.observation.hpa);
            }
        }
        let of = |name: &&Arc<str>| {
            let own = self.ticks.iter().filter(|tick| tick.observation.hpa == **name);
            let ticks: Vec<Tick<'a>> = own.copied().collect();
            let hpa = ticks.first()?.observation.hpa.clone();
            let Run { scenario, end, .. } = *self;
            Some(Timeline { scenario, hpa, ticks, mark: self.mark.clone(), end })
        };
        names.iter().filter_map(of).collect()
    }

    /// The numbers of ticks and of changes of replicas by the controller.
    pub(super) fn counts(&self) -> String {
        let rescales = self.ticks.iter().filter(|tick| tick.observation.scaled_to().is_some());
        let ticks = counted(self.ticks.len(), "tick");
        format!(" · {ticks} · {} of replicas", counted(rescales.count(), "change"))
    }
}

/// The timeline of one HPA.
#[derive(Debug)]
pub(crate) struct Timeline<'a> {
    scenario: &'a Scenario,
    hpa: Arc<str>,
    ticks: Vec<Tick<'a>>,
    mark: Option<Mark<'a>>,
    pub(crate) end: Time,
}

/// The replicas over time.
#[derive(Debug, Default)]
struct Replicas {
    /// `spec.replicas` of the target.
    pub spec: Vec<Value>,
    /// `status.replicas` of the target, as the controller read it.
    pub status: Vec<Value>,
    /// `status.desiredReplicas` of the HPA.
    pub desired: Vec<Value>,
    /// The model's desired replicas. Empty if the controller always wrote the same.
    pub model: Vec<Value>,
    /// The times and values at which the controller wrote others.
    pub differing: Vec<(Time, f64)>,
    /// The lower limit.
    pub min: Vec<Value>,
    /// The upper limit.
    pub max: Vec<Value>,
}

/// One metric over time, in the unit of its target.
#[derive(Debug)]
struct Metric<'a> {
    /// Name, unit and target.
    pub like: &'a MetricDerivation,
    /// One value for each tick.
    pub values: Vec<Value>,
    pub target: Vec<Value>,
    /// The edges of the tolerance around the target.
    pub lower: Vec<Value>,
    pub upper: Vec<Value>,
    /// The times at which the metric failed.
    pub failures: Vec<Time>,
}

/// The pods of a tick, as the controller counted them.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Pods {
    from: Time,
    to: Time,
    counts: PodCounts,
    /// The number of pods in a tick in which the controller did not count them; otherwise 0.
    not_counted: u32,
}

impl<'a> Timeline<'a> {
    /// Returns true up to the first tick that differs. Later ticks are not compared.
    fn is_compared(&self, tick: &Tick<'_>) -> bool {
        self.mark.as_ref().is_none_or(|mark| tick.number <= mark.first.scenario_tick())
    }

    /// The index of the marked tick, if it belongs to this HPA.
    fn marked_tick(&self) -> Option<usize> {
        let mark = self.mark.as_ref()?;
        self.ticks.iter().position(|tick| tick.number == mark.first.scenario_tick())
    }

    /// The events of the scenario that concern this HPA.
    fn actions(&self) -> impl Iterator<Item = &'a TimelineEvent> {
        let scenario = self.scenario;
        let hpa = self.hpa.clone();
        let target = scenario.hpas.iter().find(|it| it.name == hpa).map_or(0, |it| it.target);
        scenario.timeline.iter().filter(move |event| match event.action {
            Action::EditHpa(_) | Action::DeleteHpa(_) | Action::CreateHpa(_) => {
                scenario.hpa_of(event).is_some_and(|name| *name == hpa)
            }
            Action::Scale(_) => scenario.target_of(event) == target,
            _ => true,
        })
    }

    /// Each tick with the time of the next one, or with the end.
    fn ticks_with_ends(&self) -> impl Iterator<Item = (&Tick<'a>, Time)> {
        let starts = self.ticks.iter().skip(1).map(|tick| tick.observation.at);
        self.ticks.iter().zip(starts.chain([self.end]))
    }

    /// The replicas of the target at the start.
    fn initial(&self) -> Option<i32> {
        let hpa = self.scenario.hpas.iter().find(|hpa| hpa.name == self.hpa);
        let target = hpa.map_or(0, |hpa| hpa.target);
        self.scenario.targets().nth(target).map(|target| target.replicas)
    }

    /// The replicas over time.
    fn replicas(&self) -> Replicas {
        let mut all = Replicas::default();
        all.spec.extend(self.initial().map(|replicas| (Time::ZERO, Some(f64::from(replicas)))));
        let mut scales = self.actions().filter_map(|event| match event.action {
            Action::Scale(replicas) => Some((event.at, Some(f64::from(replicas)))),
            _ => None,
        });
        let mut scale = scales.next();
        for tick in &self.ticks {
            let at = tick.observation.at;
            while let Some(value) = scale.filter(|(when, _)| *when <= at) {
                all.spec.push(value);
                scale = scales.next();
            }
            all.add(tick, self.is_compared(tick));
        }
        all.spec.extend(scale.into_iter().chain(scales));
        if all.differing.is_empty() {
            all.model.clear();
        }
        all
    }

    /// The metrics, in the order of the HPA's spec. A metric that an edit changes to another one is
    /// another metric.
    fn metrics(&self) -> Vec<Metric<'a>> {
        let mut metrics: Vec<Metric<'a>> = Vec::new();
        for (index, tick) in self.ticks.iter().enumerate() {
            let at = tick.observation.at;
            let seen = tick.derivation.map(|it| it.metrics.as_slice()).unwrap_or_default();
            for like in seen {
                let same = |metric: &Metric<'_>| metric::is_same(metric.like, like);
                let known = metrics.iter().position(same).unwrap_or_else(|| {
                    let before = self.ticks[..index].iter();
                    let values = before.map(|tick| (tick.observation.at, None)).collect();
                    metrics.push(Metric::new(like, values));
                    metrics.len() - 1
                });
                metrics[known].add(at, like);
            }
            for metric in metrics.iter_mut().filter(|metric| metric.values.len() <= index) {
                metric.values.push((at, None));
            }
        }
        metrics
    }

    /// The pods as the controller counted them, for the metric with the largest proposal or
    /// another one. Empty if it never counts pods.
    fn pods(&self) -> Vec<Pods> {
        let counts = |tick: &Tick<'_>| {
            let derivation = tick.derivation?;
            let winner = derivation.winner.and_then(|winner| derivation.metrics.get(winner));
            let metrics = winner.into_iter().chain(&derivation.metrics);
            metrics.map(|metric| metric.pods).find(|counts| *counts != PodCounts::default())
        };
        let mut replicas = self.initial().unwrap_or(0);
        let pods = self.ticks_with_ends().map(|(tick, to)| {
            let from = tick.observation.at;
            replicas = tick.read().map_or(replicas, |read| read.status_replicas);
            match counts(tick) {
                Some(counts) => Pods { from, to, counts, not_counted: 0 },
                None => {
                    let not_counted = u32::try_from(replicas).unwrap_or(0);
                    Pods { from, to, counts: PodCounts::default(), not_counted }
                }
            }
        });
        let pods: Vec<Pods> = pods.collect();
        let is_counted = pods.iter().any(|pods| pods.counts != PodCounts::default());
        if is_counted { pods } else { Vec::new() }
    }
}

impl Controller for Timeline<'_> {
    fn kind(&self) -> &'static str {
        "hpa"
    }

    fn name(&self) -> &str {
        &self.hpa
    }

    fn heading(&self) -> Option<String> {
        None
    }

    fn columns(&self, detail: Detail) -> usize {
        detail.columns
    }

    fn charts(&self) -> Vec<Chart> {
        charts::all(self)
    }

    /// The intervals in which the replicas do not follow the metrics.
    fn intervals(&self) -> Option<Intervals> {
        let limits = self.ticks.iter().map(|tick| (tick.observation.at, tick.limits().pop()));
        let list = Interval::join(&limits.collect::<Vec<_>>(), self.end);
        let mut keys = legend(&list);
        keys.push(Key::hint("why the replicas do not follow the metrics"));
        (!list.is_empty()).then_some(Intervals { title: "Limited by", keys, list })
    }

    /// The events that the controller recorded.
    fn moments(&self) -> Option<Moments> {
        let times = |type_: EventType| {
            let ticks = self.ticks.iter().map(|tick| tick.observation);
            let with = ticks.filter(move |tick| tick.events().any(|event| event.type_ == type_));
            with.map(|tick| tick.at).collect::<Vec<Time>>()
        };
        let (normal, warning) = (times(EventType::Normal), times(EventType::Warning));
        let about = format!("Events: {} normal, {} warnings", normal.len(), warning.len());
        let kinds = [(normal, "ev", "k ev", "normal"), (warning, "bad", "k bad", "warning")];
        let (mut keys, mut times) = (Vec::new(), Vec::new());
        for (at, role, class, name) in kinds.into_iter().filter(|(at, ..)| !at.is_empty()) {
            keys.push(Key::new(class, name));
            times.push((role, at));
        }
        let title = "Events of the controller";
        (!times.is_empty()).then_some(Moments { title, keys, about, times })
    }

    fn events(&self) -> Vec<EventMark> {
        let entry = |event: &TimelineEvent| EventMark {
            at: event.at,
            lasts: Lasts::from(event.at, event.action.can_end(), event.lasts),
            text: plain::event_in_words(event),
            class: match event.action.scope() {
                ActionScope::Pods => "pods",
                ActionScope::Samples | ActionScope::MetricsApis | ActionScope::ApiServer => "fault",
                ActionScope::Target
                | ActionScope::Hpa
                | ActionScope::Controller
                | ActionScope::Object
                | ActionScope::Vpa
                | ActionScope::Recommender => "edit",
            },
        };
        self.actions().map(entry).collect()
    }

    fn mark(&self) -> Option<&Mark<'_>> {
        self.mark.as_ref()
    }

    fn ticks(&self, detail: Detail) -> Ticks {
        ticks::select(self, detail)
    }
}

/// A limit, with its kind, which has a color and a pattern of its own.
fn limit(by: Limit) -> Reason {
    let class = match by {
        Limit::Stabilization | Limit::ForbiddenWindow => "window",
        Limit::Max | Limit::Min => "bound",
        Limit::Tolerance => "tol",
        Limit::Pods => "pods",
        Limit::ScaleUpPolicy | Limit::ScaleUpLimit | Limit::ScaleDownPolicy => "rate",
        Limit::NoScale
        | Limit::StaleCache
        | Limit::NoReplicas
        | Limit::Selector
        | Limit::MetricsFailed
        | Limit::ScaleNotWritten => "fail",
    };
    Reason { text: by.name().into(), class }
}

/// The kinds of limits with the names of the limits of each kind, in the order of their first
/// intervals.
fn legend(limits: &[Interval]) -> Vec<Key> {
    let mut kinds: Vec<(&'static str, Vec<&str>)> = Vec::new();
    for Reason { text, class } in limits.iter().map(|it| &it.reason) {
        match kinds.iter_mut().find(|(known, _)| known == class) {
            Some((_, names)) if names.contains(&&**text) => {}
            Some((_, names)) => names.push(text),
            None => kinds.push((class, vec![text])),
        }
    }
    let key =
        |(class, names): (&str, Vec<&str>)| Key::new(format!("k a by {class}"), names.join(", "));
    kinds.into_iter().map(key).collect()
}

impl Tick<'_> {
    /// The replicas that the controller read from the scale.
    fn read(&self) -> Option<ScaleReplicas> {
        self.observation.reads().find_map(|read| match read {
            ControllerAction::GetScale { answer, .. } => answer.as_ref().ok().copied(),
            _ => None,
        })
    }

    /// `spec.replicas` before the tick, and after it.
    fn change(&self) -> Option<(i32, i32)> {
        let before = self.read().map(|read| read.replicas);
        // On a cluster, reads are not observed. The status after a failed read is out of date.
        let has_scale = self.derivation.is_none_or(|it| it.current_replicas.is_some());
        let status = self.observation.status_write().filter(|_| has_scale);
        let before = before.or_else(|| status?.status.current_replicas)?;
        Some((before, self.observation.scaled_to().unwrap_or(before)))
    }

    /// Returns true if the controller changed the replicas, or tried to.
    fn is_change(&self) -> bool {
        self.observation.scale_writes().next().is_some()
    }

    /// All limits that applied, in their order. The last one decided.
    fn limits(&self) -> Vec<Reason> {
        self.derivation.into_iter().flat_map(Derivation::applied_limits).map(limit).collect()
    }

    /// The desired replicas in the status that the controller wrote.
    fn desired(&self) -> Option<i32> {
        self.observation.status_write().map(|write| write.status.desired_replicas)
    }
}

impl Replicas {
    /// Adds a tick. `is_compared`: with the values of the model.
    fn add(&mut self, tick: &Tick<'_>, is_compared: bool) {
        let at = tick.observation.at;
        let push = |values: &mut Vec<Value>, at: Time, value: i32| {
            values.push((at, Some(f64::from(value))));
        };
        if let Some(read) = tick.read() {
            push(&mut self.status, at, read.status_replicas);
        }
        if let Some((before, after)) = tick.change() {
            // A change by a user that the scenario does not name is first seen here.
            if self.spec.last().is_none_or(|(_, last)| *last != Some(f64::from(before))) {
                push(&mut self.spec, at, before);
            }
            if after != before {
                push(&mut self.spec, tick.observation.end(), after);
            }
        }
        if let Some(desired) = tick.desired() {
            push(&mut self.desired, at, desired);
        }
        let derivation = tick.derivation.filter(|it| it.current_replicas.is_some());
        if derivation.is_none() {
            self.model.push((at, None));
        }
        if let Some(derivation) = derivation {
            let model = derivation.desired_replicas;
            let written = self.desired.last().and_then(|(_, desired)| *desired);
            let differs =
                is_compared && derivation.error.is_none() && written != Some(f64::from(model));
            self.model.push((at, Some(f64::from(model)).filter(|_| is_compared)));
            if differs {
                self.differing.push((at, f64::from(model)));
            }
            push(&mut self.min, at, derivation.min_replicas);
            push(&mut self.max, at, derivation.max_replicas);
        }
    }
}

impl<'a> Metric<'a> {
    fn new(like: &'a MetricDerivation, values: Vec<Value>) -> Metric<'a> {
        Metric {
            like,
            values,
            target: Vec::new(),
            lower: Vec::new(),
            upper: Vec::new(),
            failures: Vec::new(),
        }
    }

    fn add(&mut self, at: Time, metric: &MetricDerivation) {
        let value = metric::value(metric);
        self.values.push((at, value));
        if value.is_none() {
            self.failures.push(at);
        }
        let target = metric::target(metric);
        let (down, up) = metric.tolerances;
        self.target.push((at, target));
        self.lower.push((at, target.map(|target| target * (1.0 - down))));
        self.upper.push((at, target.map(|target| target * (1.0 + up))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::rules::Release;
    use kube_lockstep_data::FIXTURES;
    use kube_lockstep_sim::run::free_run;

    #[test]
    fn replicas_stay_when_their_scale_is_not_read() {
        for (id, end) in [
            ("targets/a-daemon-set-has-no-scale", 6.0),
            ("errors/a-failing-status-write-adds-its-event-to-each-failure", 4.0),
        ] {
            let text = FIXTURES.text(&format!("{id}.yaml")).expect("a fixture");
            let scenario = kube_lockstep_scenario::parse("x.yaml", &text, &|_| Err("".into()));
            let scenario = Arc::new(scenario.expect("a scenario"));
            let free = free_run(&scenario, Release::NEWEST);
            let run = Run::from_model(&scenario, &free, None).expect("a run");
            let charts = run.timelines()[0].charts();
            // The status that is written then still has the replicas of an earlier reconcile.
            assert_eq!(super::super::last(charts[0].values()), Some(end), "{id}");
        }
    }
}
