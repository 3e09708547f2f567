//! What a scenario leaves open for a search: values of metrics, events, and the replicas at the
//! start.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::action::TimelineEvent;
use super::event::EventSchema;
use super::metrics::{Metrics, UsageSource};
use super::signal::Signal;
use super::text::{AnyQuantity, As, Instant, PositiveDuration};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::{Span, Time};

/// The largest number of values of a metric.
pub(crate) const MOST_VALUES: usize = 254;

/// The largest number of combinations of initial replicas and values of metrics.
pub(crate) const MOST_COMBINATIONS: usize = 10_000;

/// What `kube-lockstep check` may choose. The expectations must hold for all choices.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a search, for example {choose: [{metric: cpu, values: [1, 4]}]}")]
#[schemars(extend("minProperties" = 1))]
pub struct Search {
    /// The initial replicas of the workload. Default: those of `workload`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1), inner(range(min = 0)))]
    pub replicas: Vec<i32>,
    /// The metrics with an open value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub choose: Vec<OpenMetric>,
    /// The events that may happen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<OpenEvents>,
    /// Line in the file, from 1.
    #[serde(skip)]
    pub line: usize,
}

/// A metric with an open value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "a metric with values, for example {metric: cpu, values: [1, 4]}")]
pub struct OpenMetric {
    /// The name of a metric of `metrics`, which has a constant value there: the value up to the
    /// first choice.
    #[schemars(length(min = 1))]
    pub metric: Arc<str>,
    /// The values to choose from, at most 254.
    #[schemars(length(min = 1, max = MOST_VALUES))]
    pub values: Vec<OpenValue>,
    /// The time between two choices. Default: the sync period of the controller.
    #[serde(
        default,
        with = "As::<Option<PositiveDuration>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub every: Option<Span>,
    /// The time of the first choice. Default 0s.
    #[serde(default, with = "As::<Option<Instant>>", skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// The time of the last choice, at the latest. Default: the end of the scenario.
    #[serde(default, with = "As::<Option<Instant>>", skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
}

/// A value that a metric may have.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct OpenValue(#[serde(with = "As::<AnyQuantity>")] pub Quantity);

/// Events that may happen.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(expecting = "events, for example {atMost: 1, of: [{at: 1m, podsFailed: all}]}")]
pub struct OpenEvents {
    /// The largest number of events in a run. At each time, at most one of them happens.
    #[schemars(range(min = 1))]
    pub at_most: u32,
    /// The events. Each may happen at its time.
    #[schemars(with = "Vec<EventSchema>", length(min = 1))]
    pub of: Vec<TimelineEvent>,
    /// Each event may also happen later, after each multiple of this duration, and several times.
    #[serde(
        default,
        with = "As::<Option<PositiveDuration>>",
        skip_serializing_if = "Option::is_none"
    )]
    pub every: Option<Span>,
    /// With `every`: the last time, at the latest. Default: the end of the scenario.
    #[serde(default, with = "As::<Option<Instant>>", skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
}

impl Search {
    /// The number of combinations of initial replicas and values of metrics. Each metric also has
    /// a value up to the first choice.
    #[must_use]
    pub fn combinations(&self) -> usize {
        let of_metrics = self.choose.iter().map(|open| open.values.len() + 1);
        of_metrics.fold(self.replicas.len().max(1), usize::saturating_mul)
    }

    /// Returns true if no limit is exceeded.
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.combinations() <= MOST_COMBINATIONS
            && self.choose.iter().all(|open| open.values.len() <= MOST_VALUES)
    }
}

impl Metrics {
    /// The signals of the metrics with a name, if the same value applies to all their pods, objects
    /// or series.
    pub fn named_mut<'m>(&'m mut self, name: &'m str) -> impl Iterator<Item = &'m mut Signal> {
        let signal = |source: &'m mut UsageSource| match source {
            UsageSource::PerPod(signal) | UsageSource::Load { total: signal, .. } => Some(signal),
            UsageSource::PerContainer(_) => None,
        };
        let Metrics { resources, pods, objects, externals, .. } = self;
        let resources = resources.iter_mut().filter(|it| *it.name == *name);
        let pods = pods.iter_mut().filter(|it| *it.name == *name);
        let sources = resources.map(|it| &mut it.source).chain(pods.map(|it| &mut it.source));
        let objects = objects.iter_mut().filter(|it| *it.name == *name);
        let externals = externals.iter_mut().filter(|it| *it.name == *name);
        let values = objects.map(|it| &mut it.value).chain(externals.map(|it| &mut it.value));
        sources.filter_map(signal).chain(values.filter_map(Option::as_mut))
    }

    /// The names of all metrics.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let resources = self.resources.iter().map(|it| &it.name);
        let pods = self.pods.iter().map(|it| &it.name);
        let objects = self.objects.iter().map(|it| &it.name);
        let externals = self.externals.iter().map(|it| &it.name);
        resources.chain(pods).chain(objects).chain(externals).map(|name| &**name)
    }
}
