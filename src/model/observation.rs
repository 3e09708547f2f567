//! What can be observed of one reconcile ("tick"): the same type for the model's prediction and for
//! what an engine saw the real controller do. The two are compared field by field.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::api::{HpaStatus, Text};
use super::time::{Span, Time};

/// Everything observable of one reconcile of one HPA.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Observation {
    /// When the reconcile began.
    pub at: Time,
    /// How long it took: for as long as it waited, for slow answers or before another attempt.
    pub took: Span,
    /// The HPA's name.
    pub hpa: Arc<str>,
    /// Queries, in the order in which the controller made them.
    pub reads: Vec<Read>,
    /// Attempts to write the scale subresource, in order. Empty: the controller kept the size.
    pub scale_writes: Vec<ScaleWrite>,
    /// The status that was written, if one was: the controller skips the write if nothing changed.
    pub status_write: Option<StatusWrite>,
    /// Events, in the order in which the controller recorded them (before aggregation).
    pub events: Vec<Event>,
    /// Errors as the controller hands them to its error log, in order: those that it handles on the
    /// way (a status write that failed) and the one that the reconcile ends with.
    pub errors: Vec<Text>,
}

/// A query by the controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Read {
    /// GET of the scale subresource.
    Scale {
        /// `deployments.apps`.
        resource: Arc<str>,
        /// The target's name.
        name: Arc<str>,
        /// What was answered: `spec.replicas` and `status.replicas`; or an error message.
        answer: Result<(i32, i32), Arc<str>>,
    },
    /// List of metrics.k8s.io pods.
    PodMetrics {
        /// The label selector of the query.
        selector: Arc<str>,
        /// How many pods were in the answer; or an error message.
        answer: Result<u32, Arc<str>>,
    },
    /// A query of custom.metrics.k8s.io for a metric of pods.
    PodsMetric {
        /// The metric's name.
        metric: Arc<str>,
        /// The label selector of the pods.
        selector: Arc<str>,
        /// The selector of the series; empty: all.
        metric_selector: Arc<str>,
        /// How many values were in the answer; or an error message.
        answer: Result<u32, Arc<str>>,
    },
    /// A query of custom.metrics.k8s.io for a metric of one object.
    ObjectMetric {
        /// The metric's name.
        metric: Arc<str>,
        /// Kind and group: `Ingress.networking.k8s.io`, `Service`.
        kind: Arc<str>,
        /// The object's name.
        name: Arc<str>,
        /// The selector of the series; empty: all.
        metric_selector: Arc<str>,
        /// The value as the API writes it; or an error message.
        answer: Result<Arc<str>, Arc<str>>,
    },
    /// A query of external.metrics.k8s.io.
    ExternalMetric {
        /// The metric's name.
        metric: Arc<str>,
        /// The selector of the series; empty: all.
        metric_selector: Arc<str>,
        /// How many series were in the answer; or an error message.
        answer: Result<u32, Arc<str>>,
    },
}

/// An attempt to write the scale.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScaleWrite {
    /// `deployments.apps`.
    pub resource: Arc<str>,
    /// The name of what was scaled.
    pub name: Arc<str>,
    /// `spec.replicas` as written.
    pub replicas: i32,
    /// The error message of the API, if it was refused.
    pub error: Option<Arc<str>>,
}

/// A write of the HPA's status.
#[derive(Clone, PartialEq, Debug)]
pub struct StatusWrite {
    /// What was written; times as the API stores them.
    pub status: HpaStatus,
    /// The error message of the API, if it was refused.
    pub error: Option<Arc<str>>,
}

/// An event on the HPA.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// `Normal` or `Warning`.
    pub type_: EventType,
    /// CamelCase.
    pub reason: Text,
    /// For people.
    pub message: Text,
}

/// The type of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum EventType {
    /// Something that is meant to happen.
    Normal,
    /// Something that is not.
    Warning,
}

impl Observation {
    /// When the reconcile was over.
    #[must_use]
    pub fn end(&self) -> Time {
        self.at + self.took
    }

    /// The size that was successfully written in this reconcile, if any. What was written to
    /// another object is none of the target's.
    #[must_use]
    pub fn scaled_to(&self) -> Option<i32> {
        let mut writes = self.scale_writes.iter().rev();
        let scaled = writes.find(|write| write.error.is_none() && !self.is_elsewhere(write));
        scaled.map(|write| write.replicas)
    }

    /// Resource and name of the target: that of which the scale was read first.
    #[must_use]
    pub fn target(&self) -> Option<(&Arc<str>, &Arc<str>)> {
        self.reads.iter().find_map(|read| match read {
            Read::Scale { resource, name, .. } => Some((resource, name)),
            _ => None,
        })
    }

    /// Whether a write of this reconcile was to something else than its target.
    #[must_use]
    pub fn is_elsewhere(&self, write: &ScaleWrite) -> bool {
        self.target().is_some_and(|target| target != (&write.resource, &write.name))
    }
}
