//! A resolved scenario: durations, quantities and pod sets are parsed, defaults are filled in, and
//! positions are kept for later messages. The `resolve` module creates it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub use super::action::{
    Action, ActionScope, ContainerOfPods, DuringReconcile, Empty, LateMetrics, MetricError,
    MetricOfPods, OomKillOfPods, OomSeen, PodEviction, PodsEdit, QueryError, Relabel,
    ResourceOfPods, RollingUpdate, Share, Surge, TargetDeletion, TimelineEvent,
};
pub use super::autoscaler::Autoscaler;
pub use super::bounds::Bounds;
pub use super::entries::Entries;
pub use super::expectation::{
    AtMost, Between, Expectation, ExpectedCondition, ExpectedEvent, ExpectedSeries, Rests, Since,
    When,
};
pub use super::expected_metric::ExpectedMetric;
pub use super::kinds::{BUILT_IN, ScalableKind, Target};
pub use super::metrics::{
    DescribedObject, Exception, ExternalMetric, Metrics, ObjectMetric, PodsMetric, ResourceUsage,
    Sampling, Series, UsageSource,
};
pub use super::object::{ExpectedFields, ExpectedValue, ObjectEdit, ObjectRef, Subresource};
pub use super::other_namespaces::OtherNamespace;
pub use super::other_pods::{OtherPods, Readiness};
pub use super::podset::PodSet;
pub use super::recorded::{Recorded, RecordedSample, RecordedSource};
pub use super::recording::Timestamp;
pub use super::releases::ReleaseRange;
pub use super::search::{OpenEvents, OpenMetric, OpenValue, Search};
pub use super::signal::{Backlog, Modified, Modifier, Noise, Point, Signal, Sine};
pub use super::with_vpa::WithVpa;
pub use super::workload::{
    Container, OtherTarget, PodRules, PodsOfWorkload, ScaleDownOrder, Startup, Termination,
    Workload, usual_plural,
};
use crate::diagnostic::Diagnostic;
use crate::kinds::WITHOUT_SCALE;
use kube_autoscaler_models::flags::{Flag, Flags};
use kube_autoscaler_models::time::Time;

/// A scenario that is ready to run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The path below `fixtures/` without the extension; for other files, the path as given.
    pub id: String,
    /// The file as the user named it, for messages.
    pub path: String,
    /// The requirement, in one sentence.
    pub requirement: String,
    /// A link to the source, KEP or issue; empty if the file has none.
    pub upstream: String,
    /// The ids of the rules that the scenario shows.
    pub covers: Vec<String>,
    /// The releases that the scenario applies to.
    pub releases: ReleaseRange,
    /// Flags of the kube-controller-manager. Flags that are not set have the defaults of the newest
    /// release.
    pub flags: Flags,
    /// The flags that are set, even to their defaults.
    pub explicit_flags: Vec<Flag>,
    /// The feature gates of API server and controller that the file switches, by name.
    pub gate_overrides: BTreeMap<String, bool>,
    /// The namespace of all objects.
    pub namespace: Arc<str>,
    /// The HPAs, in the order in which they are created at t=0. Without `objects`, at least one.
    pub hpas: Vec<Autoscaler>,
    /// The manifests of other objects, in the order in which they are created at t=0. `None`: the
    /// scenario is about HPAs only.
    pub objects: Option<Vec<Value>>,
    /// Notes on how the file was read.
    pub notes: Vec<Diagnostic>,
    /// Notes about manifests that the scenario was drafted from.
    pub manifest_notes: Vec<Diagnostic>,
    /// True if the scenario was drafted from manifests, not written as a file.
    pub is_of_manifests: bool,
    /// The date and time at t=0, if the load is recorded with dates.
    pub clock: Option<Timestamp>,
    /// The scale target of the first HPA, and its pods. With `objects`, it may be
    /// [absent](Workload::is_absent).
    pub workload: Workload,
    /// Scale targets without pods.
    pub other_targets: Vec<OtherTarget>,
    /// Pods that belong to no target.
    pub other_pods: Vec<OtherPods>,
    /// Namespaces with objects of the same names.
    pub other_namespaces: Vec<OtherNamespace>,
    /// The responses of the metrics APIs.
    pub metrics: Metrics,
    /// The events, sorted by time; events of equal times keep the order of the file.
    pub timeline: Vec<TimelineEvent>,
    /// The end of the scenario: the last reconcile at or before this time is included.
    pub until: Time,
    /// The effects that are observed: all, except that the fuzzer saves their time in a part of its
    /// scenarios.
    pub observed: Observed,
    /// The VPA of the workload, if there is one.
    pub vpa: Option<Arc<WithVpa>>,
    /// The expectations.
    pub expect: Vec<Expectation>,
    /// What is left open for a search. A run ignores it.
    pub search: Option<Box<Search>>,
    /// The hash of everything that affects a run (not comments or `expect`): 16 hex digits.
    pub hash: String,
    /// The line of `hpa`, `hpas` or `objects` (from 1), for divergences.
    pub line: usize,
}

/// Effects of a controller that take much time to observe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Observed {
    /// The requests that send events.
    pub sent_events: bool,
    /// The metrics of the work queue.
    pub all_metrics: bool,
}

impl Observed {
    /// All effects.
    pub const ALL: Observed = Observed { sent_events: true, all_metrics: true };
}

impl Scenario {
    /// The scale targets: the workload, then the targets without pods.
    pub fn targets(&self) -> impl Iterator<Item = Target<'_>> {
        let workload = &self.workload;
        let first = Target {
            group: &workload.group,
            version: &workload.version,
            kind: &workload.kind,
            resource: &workload.resource,
            name: &workload.name,
            replicas: workload.replicas,
        };
        let others = self.other_targets.iter().filter_map(|other| {
            let ScalableKind { group, version, kind, resource } = other.scalable_kind()?;
            let (name, replicas) = (&other.name, other.replicas);
            Some(Target { group, version, kind, resource, name, replicas })
        });
        let first = (!workload.is_absent()).then_some(first);
        first.into_iter().chain(others)
    }

    /// Returns true if the scenario has objects of any kind. No model predicts what a controller
    /// does with them.
    #[must_use]
    pub fn has_objects(&self) -> bool {
        self.objects.is_some()
    }

    /// The kinds that the API server serves with a scale, without duplicates: the kinds of the
    /// targets, and the built-in kinds.
    #[must_use]
    pub fn kinds(&self) -> Vec<ScalableKind<'_>> {
        let targets = self.targets().map(|target| ScalableKind {
            group: target.group,
            version: target.version,
            kind: target.kind,
            resource: target.resource,
        });
        let mut kinds: Vec<ScalableKind<'_>> = Vec::new();
        for kind in targets.chain(BUILT_IN) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// Kinds that the API server serves without a scale, except for custom resources of the
    /// targets.
    #[must_use]
    pub fn kinds_without_scale(&self) -> Vec<ScalableKind<'static>> {
        let custom = |kind: &ScalableKind<'_>| {
            self.targets().any(|target| target.kind == kind.kind && target.group == kind.group)
        };
        WITHOUT_SCALE.into_iter().filter(|kind| !custom(kind)).collect()
    }

    /// The name of the HPA that an event of the timeline changes.
    #[must_use]
    pub fn hpa_of<'a>(&'a self, event: &'a TimelineEvent) -> Option<&'a Arc<str>> {
        event.hpa.as_ref().or_else(|| self.hpas.first().map(|hpa| &hpa.name))
    }

    /// The target that an event of the timeline changes, by its index in [`Scenario::targets`].
    #[must_use]
    pub fn target_of(&self, event: &TimelineEvent) -> usize {
        let named =
            |name: &Arc<str>| self.other_targets.iter().position(|target| target.name == *name);
        event.target.as_ref().and_then(named).map_or(0, |other| other + 1)
    }

    /// Returns true if something happens during a reconcile.
    #[must_use]
    pub fn interrupts_reconciles(&self) -> bool {
        self.timeline.iter().any(|event| event.during.is_some())
    }

    /// Returns true if the controller's caches can lag behind the cluster.
    #[must_use]
    pub fn has_cache_lag(&self) -> bool {
        self.timeline.iter().any(|event| matches!(event.action, Action::CacheLag(_)))
    }

    /// Returns true if several reconciles may be due, or in progress, at the same time.
    #[must_use]
    pub fn may_interleave(&self) -> bool {
        let slow = |event: &TimelineEvent| matches!(event.action, Action::MetricsSlow(_));
        self.has_several_hpas() || self.timeline.iter().any(slow)
    }

    /// Returns true if reports must name the HPA.
    #[must_use]
    pub fn has_several_hpas(&self) -> bool {
        self.hpas.len() > 1
    }
}
