//! The controller's memory of an HPA between reconciles.

use std::sync::Arc;

use super::selector_store::ParsedSelector;
use crate::api::{HpaSpec, Text};
use crate::derivation::HeldBy;
use crate::time::Time;

/// The controller's memory of one HPA. It is lost when the controller restarts, and kept when the
/// HPA is deleted and created again before its key is processed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// Recommendations before normalization. Empty before the first one.
    pub(crate) recommendations: Vec<TimestampedRecommendation>,
    pub(crate) up_events: Vec<TimestampedScaleEvent>,
    pub(crate) down_events: Vec<TimestampedScaleEvent>,
    /// The selector that was parsed last. Upstream parses it each time.
    pub(crate) selector: Option<Arc<ParsedSelector>>,
    /// The last message of the condition ValidMetricFound. Upstream formats it each time.
    pub(crate) valid_metric: Option<ValidMetric>,
}

/// A message of the condition ValidMetricFound, with everything that it depends on.
#[derive(Clone, Debug)]
pub(crate) struct ValidMetric {
    pub spec: Arc<HpaSpec>,
    /// The index of the winning metric.
    pub metric: Option<usize>,
    pub message: Text,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TimestampedRecommendation {
    pub recommendation: i32,
    pub timestamp: Time,
}

impl TimestampedRecommendation {
    pub(crate) fn held(&self, now: Time, up: bool) -> HeldBy {
        HeldBy { replicas: self.recommendation, at: self.timestamp, age: now - self.timestamp, up }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TimestampedScaleEvent {
    /// Not negative.
    pub(crate) replica_change: i32,
    pub timestamp: Time,
    pub outdated: bool,
}
