//! Converts a resolved scenario back to a file in normal form. Fields with default values are left
//! out, so that adding a field with a default changes no hash.

use std::collections::BTreeMap;

use serde_json::Value;

use super::expect_file::{
    AtLeastAtMost, AtMost, Between, Bounds, Condition, Event, Expect, Number,
};
use super::raw::{
    AnyManifest, Controller, DescribedObject, Exception, ExternalMetric, Flags, InitContainer,
    Metrics, ObjectMetric, OtherPods, OtherTarget, Phase, PodResources, PodsMetric, Point,
    Readiness, ResourceUsage, RestartPolicy, Sampling, ScaleDownOrder, ScenarioFile, Series,
    Signal, SignalShape, Sine, Startup, Workload,
};
use super::resolve::{AGE, APP};
use super::resolved::{self, Container, Expectation, NumberRange, Scenario, UsageSource, When};
use super::scalars::{
    Duration, DurationOrNever, Entries, PodSetText, QuantityText, ReleasesText, ScalarOr,
    StatusText,
};
use crate::model::api;
use crate::model::flags::{self, Flag};
use crate::model::quantity::Quantity;
use crate::model::time::{Span, Time};

/// The file as JSON, in the order in which fields are written.
pub(super) fn to_value(scenario: &Scenario) -> Value {
    serde_json::to_value(file(scenario)).unwrap_or_default()
}

fn file(scenario: &Scenario) -> ScenarioFile {
    let metrics = metrics(&scenario.metrics);
    let controller = controller(scenario);
    ScenarioFile {
        api_version: "kube-lockstep.dev/v1alpha1".to_owned(),
        kind: "Scenario".to_owned(),
        requirement: scenario.requirement.clone(),
        upstream: (!scenario.upstream.is_empty()).then(|| scenario.upstream.clone()),
        covers: scenario.covers.clone(),
        releases: (!scenario.releases.is_all())
            .then(|| ReleasesText(scenario.releases.to_string())),
        controller: (controller != Controller::default()).then_some(controller),
        hpa: match scenario.hpas.as_slice() {
            [only] => Some(AnyManifest(only.manifest.clone())),
            _ => None,
        },
        hpas: match scenario.hpas.as_slice() {
            [_] => Vec::new(),
            several => several.iter().map(|hpa| AnyManifest(hpa.manifest.clone())).collect(),
        },
        workload: workload(&scenario.workload),
        other_targets: scenario.other_targets.iter().map(other_target).collect(),
        other_pods: scenario.other_pods.iter().map(other_pods).collect(),
        metrics: (metrics != Metrics::default()).then_some(metrics),
        timeline: scenario.timeline.clone(),
        until: time(scenario.until),
        expect: scenario.expect.iter().map(|expected| expect(expected, scenario.until)).collect(),
    }
}

fn other_target(meant: &resolved::OtherTarget) -> OtherTarget {
    let by_default = format!("app={}", meant.name);
    OtherTarget {
        kind: meant.kind.clone(),
        name: meant.name.to_string(),
        replicas: meant.replicas,
        selector: (*meant.selector != *by_default).then(|| meant.selector.to_string()),
    }
}

fn other_pods(meant: &resolved::OtherPods) -> OtherPods {
    let container = meant.spec.containers.first().map(container).unwrap_or_default();
    let usage = meant.usage.iter().flat_map(|metrics| &metrics.usage);
    let (running, pending) = (api::PodPhase::Running, api::PodPhase::Pending);
    OtherPods {
        name: meant.name.to_string(),
        count: (meant.count != 1).then_some(meant.count),
        labels: labels(&meant.labels),
        container: (&*container.name != APP).then(|| container.name.to_string()),
        requests: container.requests,
        usage: usage.cloned().collect(),
        phase: match meant.phase {
            api::PodPhase::Running => None,
            api::PodPhase::Pending => Some(Phase::Pending),
            api::PodPhase::Succeeded => Some(Phase::Succeeded),
            api::PodPhase::Failed => Some(Phase::Failed),
            api::PodPhase::Unknown => Some(Phase::Unknown),
        },
        ready: match meant.ready {
            Some(api::ConditionStatus::True) if meant.phase == running => None,
            Some(api::ConditionStatus::True) => Some(Readiness::True),
            Some(api::ConditionStatus::False) if [running, pending].contains(&meant.phase) => {
                Some(Readiness::False)
            }
            Some(api::ConditionStatus::False) => None,
            Some(api::ConditionStatus::Unknown) => Some(Readiness::Unknown),
            None if meant.phase == pending => None,
            None => Some(Readiness::Absent),
        },
        started: (meant.started != (meant.phase != pending)).then_some(meant.started),
        terminating: meant.terminating,
        age: unless(meant.age, AGE),
    }
}

fn span(span: Span) -> Duration {
    Duration(span.to_string())
}

fn time(time: Time) -> Duration {
    Duration(time.to_string())
}

fn unless(value: Span, default: Span) -> Option<Duration> {
    (value != default).then(|| span(value))
}

fn quantity(quantity: &Quantity) -> QuantityText {
    QuantityText(quantity.to_string())
}

fn controller(scenario: &Scenario) -> Controller {
    let (flags, default) = (&scenario.flags, flags::Flags::default());
    let mut wanted = flags.differing(&default);
    wanted.extend(&scenario.flags_given);
    let given = |flag: Flag, value: Span| wanted.contains(&flag).then(|| span(value));
    let typed = Flags {
        horizontal_pod_autoscaler_sync_period: given(Flag::SyncPeriod, flags.sync_period),
        horizontal_pod_autoscaler_downscale_stabilization: given(
            Flag::DownscaleStabilization,
            flags.downscale_stabilization,
        ),
        horizontal_pod_autoscaler_tolerance: wanted
            .contains(&Flag::Tolerance)
            .then_some(flags.tolerance),
        horizontal_pod_autoscaler_cpu_initialization_period: given(
            Flag::CpuInitializationPeriod,
            flags.cpu_initialization_period,
        ),
        horizontal_pod_autoscaler_initial_readiness_delay: given(
            Flag::InitialReadinessDelay,
            flags.initial_readiness_delay,
        ),
        horizontal_pod_autoscaler_upscale_delay: given(Flag::UpscaleDelay, flags.upscale_delay),
        horizontal_pod_autoscaler_downscale_delay: given(
            Flag::DownscaleDelay,
            flags.downscale_delay,
        ),
        concurrent_horizontal_pod_autoscaler_syncs: wanted
            .contains(&Flag::ConcurrentSyncs)
            .then_some(flags.concurrent_syncs),
    };
    let overrides = &scenario.gate_overrides;
    Controller {
        flags: (typed != Flags::default()).then_some(typed),
        feature_gates: Entries(overrides.iter().map(|(name, on)| (name.clone(), *on)).collect()),
    }
}

fn workload(meant: &resolved::Workload) -> Workload {
    let init_container = |container: &api::Container| InitContainer {
        name: container.name.to_string(),
        requests: container.requests.clone(),
        restart_policy: container.sidecar.then_some(RestartPolicy::Always),
    };
    let pod_level = meant.spec.requests.as_ref();
    let default_labels = BTreeMap::from([("app".to_owned(), meant.name.to_string())]);
    let labels =
        if meant.labels == default_labels { BTreeMap::new() } else { meant.labels.clone() };
    let all = meant.labels.iter().map(|(key, value)| format!("{key}={value}"));
    let all = all.collect::<Vec<_>>().join(",");
    let startup = startup(meant.startup);
    Workload {
        replicas: meant.replicas,
        quota: meant.quota,
        containers: meant.spec.containers.iter().map(container).collect(),
        init_containers: meant.spec.init_containers.iter().map(init_container).collect(),
        resources: pod_level.map(|of| PodResources { requests: of.clone() }),
        overhead: meant.spec.overhead.clone(),
        labels: Entries(labels.into_iter().collect()),
        selector: (*meant.selector != *all).then(|| meant.selector.to_string()),
        age: unless(meant.age, AGE),
        startup: (startup != Startup::default()).then_some(startup),
        plural: meant.has_unusual_plural().then(|| meant.resource.clone()),
        status_replicas: meant.status_replicas,
        scale_down_order: match meant.scale_down_order {
            resolved::ScaleDownOrder::ReplicaSet => None,
            resolved::ScaleDownOrder::Newest => Some(ScaleDownOrder::Newest),
            resolved::ScaleDownOrder::Oldest => Some(ScaleDownOrder::Oldest),
        },
        termination: unless(meant.termination, Span::ZERO),
    }
}

fn container(container: &api::Container) -> Container {
    Container { name: container.name.clone(), requests: container.requests.clone() }
}

fn startup(meant: resolved::Startup) -> Startup {
    let or_never = |value: Option<Span>| {
        DurationOrNever(value.map_or_else(|| "never".to_owned(), |span| span.to_string()))
    };
    Startup {
        pending: (meant.pending != Some(Span::ZERO)).then(|| or_never(meant.pending)),
        ready: (meant.ready != meant.pending).then(|| or_never(meant.ready)),
        metrics: unless(meant.metrics, Span::ZERO),
    }
}

fn metrics(meant: &resolved::Metrics) -> Metrics {
    let default = resolved::Sampling::default();
    let sampling = Sampling {
        window: unless(meant.sampling.window, default.window),
        lag: unless(meant.sampling.lag, default.lag),
        resolution: meant.sampling.resolution.map(span),
    };
    Metrics {
        resource: meant.resources.iter().map(usage).collect(),
        pods: meant.pods.iter().map(pods_metric).collect(),
        object: meant.objects.iter().map(object_metric).collect(),
        external: meant.externals.iter().map(external_metric).collect(),
        sampling: (sampling != Sampling::default()).then_some(sampling),
    }
}

fn labels(meant: &BTreeMap<String, String>) -> Entries<String> {
    Entries(meant.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
}

fn exceptions(meant: &[(resolved::PodSet, resolved::Signal)]) -> Vec<Exception> {
    let exception = |(pods, value): &(resolved::PodSet, resolved::Signal)| Exception {
        pods: PodSetText(pods.to_string()),
        value: signal(value),
    };
    meant.iter().map(exception).collect()
}

fn pods_metric(meant: &resolved::PodsMetric) -> PodsMetric {
    let mut typed = PodsMetric {
        name: meant.name.to_string(),
        labels: labels(&meant.labels),
        pods: exceptions(&meant.exceptions),
        ..PodsMetric::default()
    };
    match &meant.source {
        UsageSource::PerPod(value) => typed.per_pod = Some(signal(value)),
        // A metric of pods has no containers; `resolve` never makes such a one.
        UsageSource::PerContainer(_) => {}
        UsageSource::Load { total, limit } => {
            typed.load = Some(signal(total));
            typed.limit = limit.as_ref().map(quantity);
        }
    }
    typed
}

fn object_metric(meant: &resolved::ObjectMetric) -> ObjectMetric {
    // Only the group is kept of the object's apiVersion; which version stands there is all the
    // same.
    let (kind, group) = meant.kind.split_once('.').unwrap_or((&meant.kind, ""));
    let object = DescribedObject {
        api_version: (!group.is_empty()).then(|| format!("{group}/v1")),
        kind: kind.to_owned(),
        name: meant.object.to_string(),
    };
    let (value, series) = value_or_series(&meant.series);
    ObjectMetric { name: meant.name.to_string(), object, value, series }
}

fn external_metric(meant: &resolved::ExternalMetric) -> ExternalMetric {
    let (value, series) = value_or_series(&meant.series);
    ExternalMetric { name: meant.name.to_string(), value, series }
}

/// One series without labels is just a value.
fn value_or_series(
    meant: &[(BTreeMap<String, String>, resolved::Signal)],
) -> (Option<Signal>, Vec<Series>) {
    match meant {
        [(labels, value)] if labels.is_empty() => (Some(signal(value)), Vec::new()),
        all => {
            let series =
                all.iter().map(|(of, value)| Series { labels: labels(of), value: signal(value) });
            (None, series.collect())
        }
    }
}

fn usage(meant: &resolved::ResourceUsage) -> ResourceUsage {
    let mut typed = ResourceUsage {
        name: meant.name.to_string(),
        pods: exceptions(&meant.exceptions),
        ..ResourceUsage::default()
    };
    match &meant.source {
        UsageSource::PerPod(value) => typed.per_pod = Some(signal(value)),
        UsageSource::PerContainer(values) => {
            let values = values.iter().map(|(name, value)| (name.to_string(), signal(value)));
            typed.containers = Entries(values.collect());
        }
        UsageSource::Load { total, limit } => {
            typed.load = Some(signal(total));
            typed.limit = limit.as_ref().map(quantity);
        }
    }
    typed
}

fn signal(meant: &resolved::Signal) -> Signal {
    let points = |points: &[(Time, Quantity)]| {
        let point =
            |(at, value): &(Time, Quantity)| Point { at: time(*at), value: quantity(value) };
        points.iter().map(point).collect()
    };
    let mut shape = SignalShape::default();
    match meant {
        resolved::Signal::Constant(value) => return Signal(ScalarOr::Scalar(quantity(value))),
        resolved::Signal::Steps(values) => shape.steps = points(values),
        resolved::Signal::Points(values) => shape.points = points(values),
        resolved::Signal::Sine { mean, amplitude, period, offset } => {
            shape.sine = Some(Sine {
                mean: quantity(mean),
                amplitude: quantity(amplitude),
                period: span(*period),
                offset: unless(*offset, Span::ZERO),
            });
        }
    }
    Signal(ScalarOr::Map(shape))
}

fn expect(meant: &Expectation, until: Time) -> Expect {
    let hpa = meant.hpa.as_ref().map(ToString::to_string);
    let releases = (!meant.releases.is_all()).then(|| ReleasesText(meant.releases.to_string()));
    let mut typed = Expect { releases, hpa, ..Expect::default() };
    let between = |from: Time, to: Time| Between {
        from: (from != Time::ZERO).then(|| time(from)),
        to: (to != until).then(|| time(to)),
    };
    match meant.when {
        When::Tick(tick) => typed.tick = u32::try_from(tick).ok(),
        When::At(at) => typed.at = Some(time(at)),
        When::Always(from, to) => typed.always = Some(between(from, to)),
        When::Never(from, to) => typed.never = Some(between(from, to)),
        When::Within { of, span: within } => {
            typed.within = Some(span(within));
            typed.of = (of != Time::ZERO).then(|| time(of));
        }
        When::Whole => {}
    }
    let what = &meant.what;
    let bound = |direction_changes, rescales, within: Option<Span>| {
        Some(AtMost { direction_changes, rescales, in_: within.map(span) })
    };
    if let Some((count, within)) = what.at_most_direction_changes {
        typed.at_most = bound(Some(count), None, within);
    } else if let Some((count, within)) = what.at_most_rescales {
        typed.at_most = bound(None, Some(count), within);
    }
    typed.replicas = what.replicas.map(bounds);
    typed.desired_replicas = what.desired_replicas.map(bounds);
    typed.current_replicas = what.current_replicas.map(bounds);
    typed.conditions = what.conditions.iter().map(condition).collect();
    let events = what.events.iter();
    typed.events = events
        .map(|event| Event { reason: event.reason.clone(), message: event.message.clone() })
        .collect();
    typed.rescaled = what.rescaled;
    typed.error.clone_from(&what.error);
    typed
}

fn condition(meant: &resolved::ExpectedCondition) -> Condition {
    let status = meant.status.map(|status| if status { "True" } else { "False" });
    Condition {
        type_: meant.type_.clone(),
        status: status.map(|status| StatusText(status.to_owned())),
        reason: meant.reason.clone(),
        message: meant.message.clone(),
    }
}

fn bounds(range: NumberRange) -> Bounds {
    Bounds(if range.min == range.max {
        ScalarOr::Scalar(Number(range.min.to_string()))
    } else {
        ScalarOr::Map(AtLeastAtMost {
            at_least: (range.min != 0 || range.max == i32::MAX).then_some(range.min),
            at_most: (range.max != i32::MAX).then_some(range.max),
        })
    })
}
