//! The load of the workload over time, and the replicas that it needs.
//!
//! The load is that of the scenario, and the pods that serve it are those of the simulated cluster.
//! What the controller observes, proposes and writes does not matter here. Exceptions are the
//! requests of the pods, and metrics whose series a selector chooses: they are known from
//! reconciles.

use std::cell::Cell;

use crate::world::backlog::{Backlog, Backlogs};
use crate::world::{ServingChange, signal_at, signal_changes};
use kube_autoscaler_models::api::PodSpec;
use kube_autoscaler_models::derivation::{MetricDerivation, Source, Target, Usage};
use kube_autoscaler_models::time::Time;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::{Exception, ObjectMetric, Signal, UsageSource};

/// The load of a workload, and the pods that serve it.
#[derive(Debug)]
pub struct Demand<'a> {
    scenario: &'a Scenario,
    /// In the order of `metrics.resource`.
    resources: Vec<PodUsage<'a>>,
    /// In the order of `metrics.pods`.
    pods: Vec<PodUsage<'a>>,
    /// The number of pods that serve the load.
    pub serving: usize,
    backlogs: Backlogs,
}

/// The usage of a resource, or the values of a metric, of the serving pods.
#[derive(Debug)]
struct PodUsage<'a> {
    source: &'a UsageSource,
    exceptions: &'a [Exception],
    /// The number of serving pods that have each exception.
    exceptional: Vec<usize>,
    /// The last time at which a common signal was read, and its value: it is read several times at
    /// one time.
    last: Cell<Option<(Time, Option<i64>)>>,
}

/// A metric of an HPA, and what its reconciles have shown of it.
#[derive(Clone, Debug)]
pub struct KnownMetric {
    /// The metric in the last reconcile.
    pub metric: MetricDerivation,
    request: Option<Request>,
    usage: Option<Usage>,
}

/// The request of one pod in thousandths: `total / pods`.
#[derive(Clone, Copy, Debug)]
struct Request {
    total: i64,
    pods: u32,
}

impl KnownMetric {
    /// What a reconcile shows of a metric.
    #[must_use]
    pub fn new(metric: &MetricDerivation) -> KnownMetric {
        let usage = metric.usage;
        // Older releases count ignored pods in the sums.
        let is_exact = metric.pods.ready > 0 && metric.pods.ignored == 0;
        let request = usage.filter(|usage| is_exact && usage.requests > 0);
        let request =
            request.map(|usage| Request { total: usage.requests, pods: metric.pods.ready });
        KnownMetric { metric: metric.clone(), request, usage }
    }

    /// Returns true if both are the same metric of the HPA.
    #[must_use]
    pub fn is_same(&self, other: &MetricDerivation) -> bool {
        (&self.metric.name, &self.metric.source) == (&other.name, &other.source)
    }

    /// Returns true if a reconcile has shown everything.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.usage.is_some()
            && (self.request.is_some() || !matches!(self.metric.target, Target::Utilization(_)))
    }

    /// The last total that the controller observed.
    fn observed(&self) -> Option<i64> {
        self.usage.map(|usage| usage.total)
    }

    /// Uses the initial request of a pod if no reconcile shows a request: the controller calculates
    /// none if a container lacks it.
    pub fn fill_in_request(&mut self, spec: &PodSpec) {
        let MetricDerivation { name, source, .. } = &self.metric;
        let only = match source {
            Source::ContainerResource(container) => Some(container),
            _ => None,
        };
        let of_pod = spec.requests.as_ref().filter(|_| only.is_none());
        let containers = spec.running_containers();
        let containers = containers.filter(|it| only.is_none_or(|name| it.name == *name));
        let of_containers = containers.filter_map(|it| it.requests.get(name));
        let total = match of_pod.and_then(|requests| requests.get(name)) {
            Some(request) => request.milli(),
            None => of_containers.fold(0, |sum: i64, it| sum.saturating_add(it.milli())),
        };
        self.request = self.request.or((total > 0).then_some(Request { total, pods: 1 }));
    }

    /// Takes over what is not known here.
    pub fn fill_in(&mut self, other: &KnownMetric) {
        self.request = self.request.or(other.request);
        self.usage = self.usage.or(other.usage);
    }
}

/// A load in relation to a target.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// The pods that the load fills at the target: `load / per_pod`.
    load: i128,
    per_pod: i128,
    /// The ratio of the usage of the serving pods to the target, rounded like the API's values.
    pub ratio: f64,
}

impl Need {
    /// The replicas that serve the load at the target.
    #[must_use]
    pub fn replicas(self) -> i32 {
        let Need { load, per_pod, .. } = self;
        let pods = load.max(0).saturating_add(per_pod - 1) / per_pod;
        i32::try_from(pods).unwrap_or(i32::MAX)
    }

    /// The need of a load in thousandths. None: the target or the request is not known.
    fn of(load: i64, target: Target, request: Option<Request>, serving: usize) -> Option<Need> {
        let (wide, serving) = (i128::from(load), i128::try_from(serving).ok()?);
        // The usage of each pod, and the total load that fills a pod.
        let per_pod = |usage: i128, per_pod: i128, target: i128| Need {
            load: usage,
            per_pod,
            ratio: match usage.checked_div(per_pod / target * serving) {
                Some(value) => value as f64 / target as f64,
                None if load > 0 => f64::INFINITY,
                None => 0.0,
            },
        };
        match target {
            Target::Utilization(percent) if percent > 0 => {
                let Request { total, pods } = request?;
                let usage = wide.saturating_mul(100 * i128::from(pods));
                let percent = i128::from(percent);
                Some(per_pod(usage, percent * i128::from(total), percent))
            }
            Target::AverageValue(value) if value > 0 => {
                Some(per_pod(wide, value.into(), value.into()))
            }
            // The value does not tell how much of it one pod serves. Like the controller, the
            // figures assume that it falls in proportion to the number of pods.
            Target::Value(value) if value > 0 => Some(Need {
                load: wide * serving,
                per_pod: value.into(),
                ratio: load as f64 / value as f64,
            }),
            _ => None,
        }
    }
}

impl<'a> Demand<'a> {
    /// The load of a scenario, without pods.
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> Demand<'a> {
        let metrics = &scenario.metrics;
        let resources = metrics.resources.iter();
        let pods = metrics.pods.iter();
        Demand {
            scenario,
            resources: resources.map(|it| PodUsage::new(&it.source, &it.exceptions)).collect(),
            pods: pods.map(|it| PodUsage::new(&it.source, &it.exceptions)).collect(),
            serving: 0,
            backlogs: Backlogs::new(scenario),
        }
    }

    /// The times up to the end of the scenario at which the load may change, in any order.
    pub fn changes(&self) -> impl Iterator<Item = Time> {
        let signals = self.scenario.metrics.signals();
        signals.flat_map(|signal| signal_changes(signal, self.scenario.until))
    }

    /// Continues to a time.
    pub fn advance(&mut self, to: Time) {
        self.backlogs.advance(to, self.serving);
    }

    /// A pod begins or ends to serve the load.
    pub fn apply(&mut self, change: ServingChange) {
        self.advance(change.at);
        let count = |count: &mut usize| {
            *count = if change.serves { *count + 1 } else { count.saturating_sub(1) };
        };
        count(&mut self.serving);
        for usage in self.resources.iter_mut().chain(&mut self.pods) {
            let own = usage.exceptions.iter().rposition(|it| it.pods.contains(change.ordinal));
            own.and_then(|own| usage.exceptional.get_mut(own)).map(count);
        }
    }

    /// The need of a metric at a time, in relation to this target. None: the load is not known.
    #[must_use]
    pub fn need(&self, known: &KnownMetric, target: Target, at: Time) -> Option<Need> {
        Need::of(self.load(known, at)?, target, known.request, self.serving)
    }

    /// The load in thousandths. None: it is not known, for example in a gap of a recording.
    fn load(&self, known: &KnownMetric, at: Time) -> Option<i64> {
        let metrics = &self.scenario.metrics;
        let name = &known.metric.name;
        match &known.metric.source {
            Source::Resource => self.usage(name, None, at),
            Source::ContainerResource(container) => self.usage(name, Some(container), at),
            Source::Pods => {
                let pods = metrics.pods.iter().zip(&self.pods).enumerate();
                match pods.filter(|(_, (it, _))| it.name == *name).collect::<Vec<_>>()[..] {
                    [(index, (_, only))] => {
                        let total = only.total(Part::ALL, self.serving, at);
                        self.with_backlog(total, self.backlogs.pods.get(index), at)
                    }
                    _ => known.observed(),
                }
            }
            Source::Object(object) => {
                let is_same = |it: &&ObjectMetric| {
                    it.name == *name
                        && (&*it.object.kind, &*it.object.name) == (&object.kind, &object.name)
                };
                let mut same = metrics.objects.iter().enumerate().filter(|(_, it)| is_same(it));
                let only = same.next().filter(|_| same.next().is_none());
                let Some((index, metric)) = only else { return known.observed() };
                match metric.all_series().collect::<Vec<_>>()[..] {
                    [(_, only)] => length(self.backlogs.objects.get(index), 0, only, at),
                    _ => known.observed(),
                }
            }
            Source::External => {
                let same = metrics.externals.iter().enumerate().filter(|(_, it)| it.name == *name);
                let series: Vec<_> = same
                    .flat_map(|(index, it)| {
                        let backlogs = self.backlogs.externals.get(index);
                        let series = it.all_series().enumerate();
                        series.map(move |(of, (_, signal))| length(backlogs, of, signal, at))
                    })
                    .collect();
                let selected = known.usage.and_then(|usage| usage.series);
                match selected.is_some_and(|count| count as usize == series.len()) {
                    true => sum(series.into_iter()),
                    false => known.observed(),
                }
            }
        }
    }

    /// The usage of a resource, of one container or of all.
    fn usage(&self, resource: &str, container: Option<&str>, at: Time) -> Option<i64> {
        let resources = &self.scenario.metrics.resources;
        let index = resources.iter().position(|it| *it.name == *resource)?;
        let first = self.scenario.workload.spec.running_containers().next();
        let has_first = container.is_none_or(|name| first.is_some_and(|it| *it.name == *name));
        let part = Part { container, has_first };
        let total = self.resources[index].total(part, self.serving, at).map(|usage| usage.max(0));
        match has_first {
            true => self.with_backlog(total, self.backlogs.resources.get(index), at),
            false => total,
        }
    }

    /// A load with its backlog: as long as there is one, all pods are at their limits.
    fn with_backlog(
        &self,
        load: Option<i64>,
        backlog: Option<&Option<Backlog>>,
        at: Time,
    ) -> Option<i64> {
        let busy = backlog.and_then(Option::as_ref).filter(|backlog| backlog.at(at) > 0);
        let usage = busy.map(|it| it.per_pod().saturating_mul(to_i64(self.serving)));
        Some(load?.max(usage.unwrap_or(i64::MIN)))
    }
}

/// The containers of a pod that a metric includes.
#[derive(Clone, Copy)]
struct Part<'a> {
    /// None: all.
    container: Option<&'a str>,
    /// True if the first container is among them. It has the usage that is not given by container.
    has_first: bool,
}

impl Part<'_> {
    const ALL: Part<'static> = Part { container: None, has_first: true };
}

impl<'a> PodUsage<'a> {
    fn new(source: &'a UsageSource, exceptions: &'a [Exception]) -> PodUsage<'a> {
        let exceptional = vec![0; exceptions.len()];
        PodUsage { source, exceptions, exceptional, last: Cell::new(None) }
    }

    /// The value of the signal of all pods that have no exception.
    fn common_at(&self, signal: &Signal, at: Time) -> Option<i64> {
        match self.last.get() {
            Some((time, value)) if time == at => value,
            _ => {
                let value = signal_at(signal, at);
                self.last.set(Some((at, value)));
                value
            }
        }
    }

    /// The load of the serving pods: a shared load as a whole, even beyond the limits of the pods;
    /// otherwise the usage of the pods. None: it is not known.
    fn total(&self, part: Part<'_>, serving: usize, at: Time) -> Option<i64> {
        let Part { container, has_first } = part;
        let exceptional: usize = self.exceptional.iter().sum();
        let common = serving.saturating_sub(exceptional);
        let times = |signal, count| Some(signal_at(signal, at)?.saturating_mul(to_i64(count)));
        if let UsageSource::PerContainer(signals) = self.source {
            let parts =
                signals.0.iter().filter(|(name, _)| container.is_none_or(|it| *it == **name));
            return sum(parts.map(|(_, signal)| times(signal, common)));
        }
        if !has_first {
            return Some(0);
        }
        let common_need = match self.source {
            UsageSource::Load { total, .. } if exceptional == 0 => self.common_at(total, at),
            UsageSource::Load { total, .. } => self
                .common_at(total, at)
                .map(|total| total.saturating_mul(to_i64(common)) / to_i64(serving.max(1))),
            UsageSource::PerPod(signal) => {
                self.common_at(signal, at).map(|value| value.saturating_mul(to_i64(common)))
            }
            UsageSource::PerContainer(_) => None,
        };
        let counted =
            self.exceptions.iter().zip(&self.exceptional).filter(|(_, count)| **count > 0);
        // If every pod has its own usage, the common one does not matter.
        let common_need = common_need.filter(|_| common > 0 || exceptional == 0);
        let own = counted.map(|(exception, count)| times(&exception.value, *count));
        sum(std::iter::once(common_need).chain(own))
    }
}

/// The value of a series, which can be the length of a queue.
fn length(
    backlogs: Option<&Vec<Option<Backlog>>>,
    series: usize,
    signal: &Signal,
    at: Time,
) -> Option<i64> {
    match backlogs.and_then(|all| all.get(series)?.as_ref()) {
        Some(backlog) => Some(backlog.at(at)),
        None => signal_at(signal, at),
    }
}

fn to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The sum of the values that exist. None: none exists.
fn sum(values: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    values.flatten().reduce(i64::saturating_add)
}
