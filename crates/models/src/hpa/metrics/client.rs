//! Queries of the metrics APIs and their responses.
//!
//! Selectors are applied here, as the metrics APIs do. A metric that the scenario does not define
//! is not found.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::group_pods::Groups;
use super::query::Query;
use crate::api::{CrossVersionObjectReference, PodMetrics, Series, SeriesAnswer, with_group};
use crate::hpa::apimachinery::parse_group_version;
use crate::hpa::reconcile::Reconcile;
use crate::observation::{ControllerAction, Items, SeriesValue, pod_kind};
use crate::rules::MetricsFrom;
use crate::selector::{Matcher, Selector};

/// The names of metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io in errors.
const RESOURCE_API: &str = "resource metrics API";
const CUSTOM_API: &str = "custom metrics API";
const EXTERNAL_API: &str = "external metrics API";

impl<'a> Reconcile<'a> {
    /// Queries metrics.k8s.io and groups the pods: grouping also counts the metrics in the
    /// response.
    ///
    /// Upstream: metrics/client.go, GetResourceMetric
    pub(super) fn get_resource_metric(
        &mut self,
        query: &Query<'_>,
        fallback_utilization: Option<i64>,
        groups: &mut Groups<'a>,
    ) -> Result<(), String> {
        self.await_metrics();
        self.metric_timestamp = None;
        let metrics = self.input.pod_metrics;
        if let Ok(metrics) = metrics {
            self.group_pods(query, metrics, fallback_utilization, groups);
        }
        self.metric_timestamp = groups.first_timestamp;
        let answer = match metrics {
            Ok(_) => Ok(Items { items: groups.items }),
            Err(error) => Err(error.message.clone()),
        };
        let selector = query.selector.query.clone();
        let interrupted = self.record(ControllerAction::ListPodMetrics { selector, answer });
        if interrupted && let Ok(metrics) = metrics {
            // The controller lists the pods afterwards.
            *groups = Groups::default();
            self.group_pods(query, metrics, fallback_utilization, groups);
        }
        let unable = format_args!("unable to get metrics for resource {}", query.resource);
        match metrics {
            Err(error) => {
                let error = match self.config.rules.metrics.from {
                    MetricsFrom::Heapster => {
                        format!("failed to get pod resource metrics: {}", error.message)
                    }
                    MetricsFrom::Apis => self.unable_to_fetch(RESOURCE_API, &error.message),
                };
                Err(format!("{unable}: {error}"))
            }
            Ok(_) if groups.items == 0 => {
                let named = self.config.rules.texts.metrics_api_is_named;
                let from = if named { RESOURCE_API } else { "heapster" };
                Err(format!("{unable}: {}", no_metrics(from)))
            }
            Ok(metrics) => match self.without_container(query, metrics) {
                Some(why) => Err(format!("{unable}: failed to get container metrics: {why}")),
                None => Ok(()),
            },
        }
    }

    /// The first pod whose metrics lack the container, if that is an error.
    ///
    /// Upstream: metrics/client.go, getContainerMetrics, up to Kubernetes 1.32
    fn without_container(&self, query: &Query<'_>, metrics: &[PodMetrics]) -> Option<String> {
        let container = query.container?;
        if !self.config.rules.pods.container_metrics_must_exist {
            return None;
        }
        let mut matcher = Matcher::new(&query.selector.selector);
        let has = |pod: &PodMetrics| pod.containers.iter().any(|it| *it.name == *container);
        for pod in metrics {
            if matcher.matches(&pod.labels) && !has(pod) {
                let (namespace, name) = (&self.hpa.namespace, &pod.name);
                let what = format!("container {container} not present in metrics");
                return Some(format!("{what} for pod {namespace}/{name}"));
            }
        }
        None
    }

    /// Queries custom.metrics.k8s.io for a metric of pods, and groups the pods by it.
    ///
    /// Upstream: metrics/client.go, GetRawMetric
    pub(super) fn get_raw_metric(
        &mut self,
        query: &Query<'_>,
        metric: &Arc<str>,
        metric_selector: &Selector,
        groups: &mut Groups<'a>,
    ) -> Result<(), String> {
        self.await_metrics();
        let answer = match self.input.custom_metrics.pods.get(metric) {
            None => Err(not_found(metric, Some("pods"))),
            Some(known) => match &known.error {
                Some(error) => Err(error.message.clone()),
                // The series of all pods have the same labels.
                None if !is_selected(metric_selector, &known.labels) => Ok(0),
                None => {
                    self.group_pods(query, &known.values, None, groups);
                    Ok(groups.items)
                }
            },
        };
        let read = ControllerAction::PodsMetric {
            metric: metric.clone(),
            kind: pod_kind(),
            selector: query.selector.query.clone(),
            metric_selector: metric_selector.to_string().into(),
            answer: answer.clone().map(|items| Items { items }),
        };
        let known = self.input.custom_metrics.pods.get(metric);
        if self.record(read)
            && groups.items > 0
            && let Some(known) = known
        {
            // The controller lists the pods afterwards.
            *groups = Groups::default();
            self.group_pods(query, &known.values, None, groups);
        }
        self.metric_timestamp = groups.first_timestamp;
        match answer {
            Err(error) => Err(self.unable_to_fetch(CUSTOM_API, &error)),
            Ok(0) => Err(no_metrics(CUSTOM_API)),
            Ok(_) => Ok(()),
        }
    }

    /// Queries custom.metrics.k8s.io for a metric of one object. An HPA can only read objects of
    /// its own namespace: the name of a described Namespace is ignored.
    ///
    /// Upstream: metrics/client.go, GetObjectMetric
    pub(super) fn get_object_metric(
        &mut self,
        metric: &Arc<str>,
        object: &CrossVersionObjectReference,
        metric_selector: &Selector,
    ) -> Result<i64, String> {
        if self.config.rules.metrics.from == MetricsFrom::Heapster {
            return Err("object metrics are not yet supported".to_owned());
        }
        let version = object.api_version.as_deref().unwrap_or_default();
        let kind: Arc<str> = match parse_group_version(version) {
            Ok((group, _)) if !group.is_empty() => with_group(&object.kind, group).into(),
            _ => object.kind.as_str().into(),
        };
        let is_namespace = *kind == *"Namespace";
        let name = if is_namespace { &self.hpa.namespace } else { &object.name }.clone();
        let key = (metric.clone(), kind.clone(), name.clone());
        self.await_metrics();
        let answer = match self.input.custom_metrics.objects.get(&key) {
            None => Err(not_found(metric, Some(&format!("{kind} {name}")))),
            Some(known) => only_series(known, metric_selector),
        };
        let read = ControllerAction::ObjectMetric {
            metric: metric.clone(),
            kind,
            name,
            metric_selector: metric_selector.to_string().into(),
            answer: answer
                .clone()
                .map(|series| SeriesValue { value: series.value.to_string().into() }),
        };
        match is_namespace {
            true => {
                self.observation.push_in("".into(), read);
                self.is_interrupted();
            }
            false => _ = self.record(read),
        }
        let series = answer.map_err(|error| self.unable_to_fetch(CUSTOM_API, &error))?;
        self.metric_timestamp = Some(series.timestamp);
        Ok(series.value.milli())
    }

    /// Queries external.metrics.k8s.io. Returns the values of the series in thousandths.
    ///
    /// Upstream: metrics/client.go, GetExternalMetric
    pub(super) fn get_external_metric(
        &mut self,
        metric: &Arc<str>,
        metric_selector: &Selector,
    ) -> Result<Vec<i64>, String> {
        self.await_metrics();
        let answer = match self.input.custom_metrics.externals.get(metric) {
            None => Err(not_found(metric, None)),
            Some(SeriesAnswer { error: Some(error), .. }) => Err(error.message.clone()),
            Some(known) => {
                let mut found = series(known, metric_selector).peekable();
                self.metric_timestamp = found.peek().map(|first| first.timestamp);
                Ok(found.map(|series| series.value.milli()).collect())
            }
        };
        let read = ControllerAction::ExternalMetric {
            metric: metric.clone(),
            metric_selector: metric_selector.to_string().into(),
            answer: answer
                .as_ref()
                .map(|values: &Vec<i64>| Items { items: values.len() as u32 })
                .map_err(Arc::clone),
        };
        self.record(read);
        let values = answer.map_err(|error| self.unable_to_fetch(EXTERNAL_API, &error))?;
        if values.is_empty() {
            return Err(no_metrics(EXTERNAL_API));
        }
        Ok(values)
    }

    fn unable_to_fetch(&self, api: &str, error: &str) -> String {
        let api = if self.config.rules.texts.metrics_api_is_named { api } else { "API" };
        format!("unable to fetch metrics from {api}: {error}")
    }
}

fn no_metrics(api: &str) -> String {
    format!("no metrics returned from {api}")
}

/// Returns true if a query with this selector finds a series with these labels. The query contains
/// the selector's text: a selector that matches nothing has an empty text, which matches
/// everything.
fn is_selected(selector: &Selector, labels: &BTreeMap<String, String>) -> bool {
    selector.is_without_requirements() || selector.matches(labels)
}

/// The series that a query finds.
fn series<'m>(
    answer: &'m SeriesAnswer,
    selector: &'m Selector,
) -> impl Iterator<Item = &'m Series> {
    answer.series.iter().filter(|series| is_selected(selector, &series.labels))
}

/// The one series of an object.
///
/// Upstream: k8s.io/metrics, custom_metrics/versioned_client.go, GetForObject
fn only_series<'m>(
    answer: &'m SeriesAnswer,
    selector: &'m Selector,
) -> Result<&'m Series, Arc<str>> {
    if let Some(error) = &answer.error {
        return Err(error.message.clone());
    }
    let found: Vec<&Series> = series(answer, selector).collect();
    match found.as_slice() {
        [single] => Ok(single),
        many => {
            let what = "the custom metrics API server returned";
            let count = many.len();
            Err(format!("{what} {count} results when we asked for exactly one").into())
        }
    }
}

/// The response of a metrics API that does not have the metric.
fn not_found(metric: &str, of: Option<&str>) -> Arc<str> {
    let what = format!("the server could not find the metric {metric}");
    match of {
        Some(of) => format!("{what} for {of}").into(),
        None => what.into(),
    }
}
