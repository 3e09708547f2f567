//! Metrics of Heapster, which old releases query by default: time series of pods, queried by the
//! pods' names. Heapster has no metrics of objects.
//!
//! Upstream: metrics/legacy_metrics_client.go, up to Kubernetes 1.8 (where it is the default).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::group_pods::{Groups, Sample};
use super::query::Query;
use crate::api::{Labels, PodMetricValue};
use crate::hpa::go::go_i64;
use crate::hpa::reconcile::Reconcile;
use crate::observation::{ControllerAction, Items, pod_kind};
use crate::quantity::Quantity;
use crate::time::{Span, Time};

/// The age of the oldest samples in a query.
const QUERY_START: Span = Span::from_mins(5);

/// A pod's value in thousandths.
struct Collapsed {
    name: Arc<str>,
    labels: Labels,
    timestamp: Time,
    milli: i64,
}

impl Sample for Collapsed {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn labels(&self) -> &Labels {
        &self.labels
    }

    fn timestamp(&self) -> Time {
        self.timestamp
    }

    /// Only the metrics APIs report a window.
    fn window(&self) -> Span {
        Span::ZERO
    }

    fn reports_as(&self, other: &Collapsed) -> bool {
        self.milli == other.milli
    }

    fn value(&self, _resource: &str, _container: Option<&str>) -> Option<i64> {
        Some(self.milli)
    }
}

impl<'a> Reconcile<'a> {
    /// Queries a metric of the pods that the selector matches, and groups them by it. A pod without
    /// the metric has an empty series.
    ///
    /// Upstream: HeapsterMetricsClient.GetRawMetric
    pub(super) fn get_raw_metric_of_heapster(
        &mut self,
        query: &Query<'_>,
        metric: &Arc<str>,
        groups: &mut Groups<'a>,
    ) -> Result<(), String> {
        let selector = &query.selector.selector;
        let pods = self.input.pods.iter().filter(|pod| selector.matches(&pod.labels));
        let names: Vec<&str> = pods.clone().map(|pod| &*pod.name).collect();
        if names.is_empty() {
            return Err("no pods matched the provided selector".to_owned());
        }
        let requested: Arc<str> = names.join(",").into();
        // The query has whole seconds.
        let start = (self.now - QUERY_START).truncate_to_second();
        self.await_metrics();
        let known = self.input.custom_metrics.pods.get(metric);
        let error = known.and_then(|known| known.error.as_ref());
        let values: BTreeMap<&str, &PodMetricValue> =
            known.iter().flat_map(|known| &known.values).map(|it| (&*it.name, it)).collect();
        let collapsed: Vec<Collapsed> = pods
            .filter_map(|pod| {
                let sample = values.get(&*pod.name).filter(|it| it.timestamp >= start)?;
                Some(Collapsed {
                    name: pod.name.clone(),
                    labels: pod.labels.clone(),
                    timestamp: sample.timestamp,
                    milli: collapse_time_samples(&sample.value),
                })
            })
            .collect();
        let answer = match error {
            Some(error) => Err(error.message.clone()),
            None => Ok(Items { items: collapsed.len() as u32 }),
        };
        self.record(ControllerAction::PodsMetric {
            metric: metric.clone(),
            kind: pod_kind(),
            selector: requested,
            metric_selector: "".into(),
            answer,
        });
        if let Some(error) = error {
            return Err(format!("failed to get pod metrics: {}", error.message));
        }
        self.metric_timestamp = collapsed.iter().map(|pod| pod.timestamp).min();
        self.group_pods(query, &collapsed, None, groups);
        Ok(())
    }
}

/// One sample of Heapster: a whole number as an integer, any other as a float.
///
/// Upstream: collapseTimeSamples
fn collapse_time_samples(value: &Quantity) -> i64 {
    let mut dec = value.to_dec();
    let text = format!("{}e{}", dec.unscaled, i64::from(dec.scale).wrapping_neg());
    let whole = dec.round_up(0) && !dec.is_negative();
    match u64::try_from(&dec.unscaled) {
        Ok(integer) if whole => (integer as i64).wrapping_mul(1000),
        _ => go_i64(text.parse::<f64>().unwrap_or_default() * 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_integers_or_floats() {
        let collapsed = |text: &str| collapse_time_samples(&text.parse().expect("a quantity"));
        assert_eq!(collapsed("7"), 7_000);
        assert_eq!(collapsed("2k"), 2_000_000);
        assert_eq!(collapsed("1500m"), 1_500);
        // 1.001 times 1000 is slightly less than 1001, and the fraction is truncated.
        assert_eq!(collapsed("1001m"), 1_000);
        assert_eq!(collapsed("-2"), -2_000);
        // The value in thousandths overflows and is truncated to 64 bits.
        assert_eq!(collapsed("18446744073709551"), 18_446_744_073_709_551_i64.wrapping_mul(1000));
    }
}
