//! The load of the workload over time, and the replicas that it needs.
//!
//! The load is that of the scenario, and the pods that serve it are those of the simulated cluster.
//! What the controller observes, proposes and writes does not matter here. Exceptions are the
//! requests of the pods, and metrics whose series a selector chooses: they are known from
//! reconciles.

use crate::model::derivation::{MetricDerivation, Source, Target, Usage};
use crate::model::time::Time;
use crate::run::ServingChange;
use crate::scenario::Scenario;
use crate::scenario::resolved::{Exception, ExternalMetric, ObjectMetric, UsageSource};
use crate::world::signal_at;

/// The load of a workload, and the pods that serve it.
pub(super) struct Demand<'a> {
    scenario: &'a Scenario,
    /// In the order of `metrics.resource`.
    resources: Vec<PodUsage<'a>>,
    /// In the order of `metrics.pods`.
    pods: Vec<PodUsage<'a>>,
    /// The number of pods that serve the load.
    pub(super) serving: usize,
}

/// The usage of a resource, or the values of a metric, of the serving pods.
struct PodUsage<'a> {
    source: &'a UsageSource,
    exceptions: &'a [Exception],
    /// The number of serving pods that have each exception.
    exceptional: Vec<usize>,
}

/// A metric of an HPA, and what its reconciles have shown of it.
#[derive(Clone, Debug)]
pub(super) struct KnownMetric {
    pub(super) metric: MetricDerivation,
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
    pub(super) fn new(metric: &MetricDerivation) -> KnownMetric {
        let usage = metric.usage;
        // Older releases count ignored pods in the sums.
        let is_exact = metric.pods.ready > 0 && metric.pods.ignored == 0;
        let request = usage.filter(|usage| is_exact && usage.requests > 0);
        let request =
            request.map(|usage| Request { total: usage.requests, pods: metric.pods.ready });
        KnownMetric { metric: metric.clone(), request, usage }
    }

    /// Returns true if both are the same metric of the HPA.
    pub(super) fn is_same(&self, other: &MetricDerivation) -> bool {
        (&self.metric.name, &self.metric.source) == (&other.name, &other.source)
    }

    /// Returns true if a reconcile has shown everything.
    pub(super) fn is_complete(&self) -> bool {
        self.usage.is_some()
            && (self.request.is_some() || !matches!(self.metric.target, Target::Utilization(_)))
    }

    /// The last total that the controller observed.
    fn observed(&self) -> Option<i64> {
        self.usage.map(|usage| usage.total)
    }

    /// Takes over what is not known here.
    pub(super) fn fill_in(&mut self, other: &KnownMetric) {
        self.request = self.request.or(other.request);
        self.usage = self.usage.or(other.usage);
    }
}

/// A load in relation to a target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// The pods that the load fills at the target: `load / per_pod`.
    load: i128,
    per_pod: i128,
    /// The ratio of the usage of the serving pods to the target, rounded like the API's values.
    pub(super) ratio: f64,
}

impl Need {
    /// The replicas that serve the load at the target.
    pub(super) fn replicas(self) -> i32 {
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
    pub(super) fn new(scenario: &'a Scenario) -> Demand<'a> {
        let metrics = &scenario.metrics;
        let resources = metrics.resources.iter();
        let pods = metrics.pods.iter();
        Demand {
            scenario,
            resources: resources.map(|it| PodUsage::new(&it.source, &it.exceptions)).collect(),
            pods: pods.map(|it| PodUsage::new(&it.source, &it.exceptions)).collect(),
            serving: 0,
        }
    }

    /// A pod begins or ends to serve the load.
    pub(super) fn apply(&mut self, change: ServingChange) {
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
    pub(super) fn need(&self, known: &KnownMetric, target: Target, at: Time) -> Option<Need> {
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
                let same = metrics.pods.iter().zip(&self.pods).filter(|(it, _)| it.name == *name);
                match same.collect::<Vec<_>>()[..] {
                    [(_, only)] => only.total(Part::ALL, self.serving, at),
                    _ => known.observed(),
                }
            }
            Source::Object(object) => {
                let is_same = |it: &&ObjectMetric| {
                    it.name == *name
                        && (&*it.object.kind, &*it.object.name) == (&object.kind, &object.name)
                };
                let same = metrics.objects.iter().filter(is_same);
                match same.flat_map(ObjectMetric::all_series).collect::<Vec<_>>()[..] {
                    [(_, only)] => signal_at(only, at),
                    _ => known.observed(),
                }
            }
            Source::External => {
                let same = metrics.externals.iter().filter(|it| it.name == *name);
                let series: Vec<_> = same.flat_map(ExternalMetric::all_series).collect();
                let selected = known.usage.and_then(|usage| usage.series);
                match selected.is_some_and(|count| count as usize == series.len()) {
                    true => sum(series.iter().map(|(_, signal)| signal_at(signal, at))),
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
        self.resources[index].total(part, self.serving, at).map(|usage| usage.max(0))
    }
}

/// The containers of a pod that a metric includes.
#[derive(Clone, Copy)]
struct Part<'a> {
    /// None: all.
    container: Option<&'a str>,
    /// Whether the first container is among them. It has the usage that is not given by container.
    has_first: bool,
}

impl Part<'_> {
    const ALL: Part<'static> = Part { container: None, has_first: true };
}

impl<'a> PodUsage<'a> {
    fn new(source: &'a UsageSource, exceptions: &'a [Exception]) -> PodUsage<'a> {
        PodUsage { source, exceptions, exceptional: vec![0; exceptions.len()] }
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
        let of_common = match self.source {
            UsageSource::Load { total, .. } if exceptional == 0 => signal_at(total, at),
            UsageSource::Load { total, .. } => {
                times(total, common).map(|total| total / to_i64(serving.max(1)))
            }
            UsageSource::PerPod(signal) => times(signal, common),
            UsageSource::PerContainer(_) => None,
        };
        let counted =
            self.exceptions.iter().zip(&self.exceptional).filter(|(_, count)| **count > 0);
        // If every pod has its own usage, the common one does not matter.
        let of_common = of_common.filter(|_| common > 0 || exceptional == 0);
        let own = counted.map(|(exception, count)| times(&exception.value, *count));
        sum(std::iter::once(of_common).chain(own))
    }
}

fn to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The sum of the values that exist. None: none exists.
fn sum(values: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    values.flatten().reduce(i64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::model::rules::Release;
    use crate::report::comparison::{Figures, Reference};
    use crate::run::free_run;
    use crate::scenario::testing::{WEB, scenario};
    use crate::scenario::{Scenario, parse};

    const CPU: &str = "- type: Resource
      resource: {name: cpu, target: {type: AverageValue, averageValue: 500m}}";
    const USAGE: &str = "resource: [{name: cpu, perPod: 500m}]";

    /// Two pods that stay two, with a metric of the HPA and the responses of the metrics APIs.
    fn stays(metric: &str, metrics: &str) -> Arc<Scenario> {
        let text = WEB.replace("maxReplicas: 10", "minReplicas: 2\n    maxReplicas: 2");
        scenario(&text.replace(CPU, metric).replace(USAGE, metrics))
    }

    fn figures(scenario: &Arc<Scenario>) -> Figures {
        let run = free_run(scenario, Release::NEWEST);
        Figures::of(scenario, &run, &Reference::of(&run))
    }

    fn needed(metric: &str, metrics: &str) -> i32 {
        let figures = figures(&stays(metric, metrics));
        let missing = f64::from((figures.needed_peak_replicas - 2).max(0)) * 120.0 / 3600.0;
        assert!((figures.missing_pod_hours - missing).abs() < 1e-9, "{metrics}: {figures:?}");
        figures.needed_peak_replicas
    }

    #[test]
    fn the_usage_of_all_ready_pods_is_the_load() {
        assert_eq!(needed(CPU, "resource: [{name: cpu, perPod: 900m}]"), 4);
        let own = "resource: [{name: cpu, perPod: 500m, pods: [{pods: \"1\", value: 2100m}]}]";
        assert_eq!(needed(CPU, own), 6, "500m + 2100m");
    }

    #[test]
    fn the_usage_of_a_container_is_its_load() {
        let text = WEB.replace("maxReplicas: 10", "minReplicas: 2\n    maxReplicas: 2");
        let containers = "[{name: app, requests: {cpu: 1}}, {name: log, requests: {cpu: 200m}}]";
        let text = text.replace("[{name: app, requests: {cpu: 1}}]", containers);
        let needed = |container: &str, usage: &str| {
            let metric = format!(
                "- type: ContainerResource
      containerResource: {{name: cpu, container: {container}, \
                 target: {{type: Utilization, averageUtilization: 10}}}}"
            );
            let usage = format!("resource: [{{name: cpu, {usage}}}]");
            let scenario = scenario(&text.replace(CPU, &metric).replace(USAGE, &usage));
            figures(&scenario).needed_peak_replicas
        };
        let usage = "containers: {app: 3, log: 400m}";
        assert_eq!(needed("app", usage), 60, "2 × 3 / (10% of 1)");
        assert_eq!(needed("log", usage), 40, "2 × 0.4 / (10% of 0.2)");
        assert_eq!((needed("app", "load: 3"), needed("log", "load: 3")), (30, 0));
    }

    #[test]
    fn a_load_above_the_limits_of_the_pods_counts() {
        assert_eq!(needed(CPU, "resource: [{name: cpu, load: 5, limit: 1}]"), 10);
    }

    #[test]
    fn each_kind_of_metric_has_its_need() {
        let pods = "- type: Pods
      pods: {metric: {name: rps}, target: {type: AverageValue, averageValue: 10}}";
        assert_eq!(needed(pods, "pods: [{name: rps, load: 71}]"), 8);
        let external = |target: &str, selector: &str| {
            format!(
                "- type: External
      external: {{metric: {{name: queue{selector}}}, target: {{{target}}}}}"
            )
        };
        let average = "type: AverageValue, averageValue: 30";
        let several = "external: [{name: queue, series: \
                       [{labels: {q: a}, value: 100}, {labels: {q: b}, value: 50}]}]";
        assert_eq!(needed(&external(average, ""), several), 5);
        let only = external(average, ", selector: {matchLabels: {q: a}}");
        assert_eq!(needed(&only, several), 4, "as observed");
        // With 2 pods, the value is 2.5 times the target.
        let value = external("type: Value, value: 60", "");
        assert_eq!(needed(&value, several), 5);
        let object = "- type: Object
      object: {metric: {name: rps}, describedObject: {apiVersion: v1, kind: Service, name: web},
        target: {type: AverageValue, averageValue: 10}}";
        let served = "object: [{name: rps, object: {kind: Service, name: web}, value: 35}]";
        assert_eq!(needed(object, served), 4);
    }

    #[test]
    fn the_largest_need_of_several_metrics_counts() {
        let memory = "- type: Resource
      resource: {name: memory, target: {type: AverageValue, averageValue: 100Mi}}";
        let both = format!("{CPU}\n    {memory}");
        let usage = |memory: &str| {
            format!("resource: [{{name: cpu, load: 2}}, {{name: memory, load: {memory}}}]")
        };
        assert_eq!(needed(&both, &usage("50Mi")), 4);
        assert_eq!(needed(&both, &usage("701Mi")), 8);
    }

    /// At 30s, the recording has no sample.
    #[test]
    fn nothing_is_needed_in_a_gap_of_a_recording() {
        let usage = "resource: [{name: cpu, load: {csv: load.csv, hold: 30s}}]";
        let text = WEB
            .replace("maxReplicas: 10", "minReplicas: 2\n    maxReplicas: 2")
            .replace(USAGE, usage);
        let load = "t,cores\n0,2\n60,2\n90,2\n";
        let read = |_: &str| Ok(load.to_owned());
        let scenario = Arc::new(parse("x.yaml", &text, &read).expect("a valid scenario"));
        let figures = figures(&scenario);
        assert_eq!((figures.needed_peak_replicas, figures.excess_replicas), (4, 0));
        assert!((figures.missing_pod_hours - 2.0 * 90.0 / 3600.0).abs() < 1e-9, "{figures:?}");
    }

    /// The metrics are missing for a minute, but the load is known.
    #[test]
    fn the_load_does_not_depend_on_the_metrics() {
        let text = WEB.replace(
            USAGE,
            "resource: [{name: cpu, load: {steps: [{at: 0s, value: 1}, {at: 30s, value: 2}]}}]",
        );
        let text = format!("{text}timeline:\n- {{at: 30s, for: 1m, metricsEmpty: {{}}}}\n");
        let figures = figures(&scenario(&text));
        let causes = figures.missing_pod_hours_by_cause;
        assert!((causes.other - 2.0 * 60.0 / 3600.0).abs() < 1e-9, "{figures:?}");
        assert_eq!((figures.missing_pod_hours, figures.failed_seconds), (causes.other, 60.0));
    }

    #[test]
    fn a_higher_target_and_the_tolerance_are_causes() {
        let text = WEB.replace(USAGE, "resource: [{name: cpu, load: 2180m}]");
        let text = text.replace("replicas: 2", "replicas: 4");
        let first = scenario(&text);
        let run = free_run(&first, Release::NEWEST);
        let reference = Reference::of(&run);
        let figures = Figures::of(&first, &run, &reference);
        let hours = |pods: f64| pods * 120.0 / 3600.0;
        assert!((figures.missing_pod_hours_by_cause.tolerance - hours(1.0)).abs() < 1e-9);
        let higher = scenario(&text.replace("averageValue: 500m", "averageValue: 700m"));
        let figures = Figures::of(&higher, &free_run(&higher, Release::NEWEST), &reference);
        assert!((figures.missing_pod_hours_by_cause.target - hours(1.0)).abs() < 1e-9);
        assert!((figures.missing_pod_hours - hours(1.0)).abs() < 1e-9, "{figures:?}");
    }
}
