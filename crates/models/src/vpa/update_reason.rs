//! Why the VPA's updater changes a pod, or leaves it as it is.

use std::fmt;
use std::sync::Arc;

use super::api::UpdateMode;
use super::estimation::request_text;
use crate::quantity::Quantity;
use crate::time::{Span, Time};

/// Why the updater changes a pod.
#[derive(Clone, PartialEq, Debug)]
pub enum UpdateReason {
    /// A container has no request of a recommended resource.
    NoRequest {
        /// The container.
        container: Arc<str>,
        /// The resource.
        resource: &'static str,
    },
    /// A request is outside the recommended bounds.
    OutsideBounds {
        /// The container.
        container: Arc<str>,
        /// The resource.
        resource: &'static str,
        /// The request.
        request: Quantity,
        /// The bound that the request is below or above.
        bound: Quantity,
        /// True if the request is below the lower bound.
        is_below: bool,
    },
    /// A container was killed because of its memory soon after it had started.
    QuickOom {
        /// The container.
        container: Arc<str>,
        /// The end of the container.
        finished_at: Time,
    },
    /// The pod is old, and the change is large enough.
    Old {
        /// The age of the pod.
        age: Span,
        /// The age from which pods within the bounds are changed.
        from: Span,
        /// The relative change of the requests.
        change: f64,
        /// The smallest relative change for which the pod is changed.
        threshold: f64,
    },
}

/// Why the updater leaves a pod as it is.
#[derive(Clone, PartialEq, Debug)]
pub enum KeepReason {
    /// The update mode permits no changes of existing pods.
    Mode(UpdateMode),
    /// The VPA has no recommendation.
    NoRecommendation,
    /// The updater crashes in this run.
    Crash,
    /// The controller of the pod has no replicas.
    NoReplicas,
    /// The workload has fewer live pods than required.
    TooFewPods {
        /// The live pods.
        live: i64,
        /// The required number.
        required: i32,
    },
    /// Pods that do not run yet can't be updated in place.
    Pending,
    /// Too many replicas are missing.
    Budget {
        /// The replicas that run and are not changed in this run.
        running: i64,
        /// The configured replicas.
        configured: i64,
        /// The replicas that may be missing.
        tolerance: i64,
    },
    /// The requests are within the bounds, and the pod has not started yet.
    NotStarted,
    /// The requests are within the bounds, and the pod is younger than the age from which it would
    /// be changed nevertheless.
    Young {
        /// The age of the pod.
        age: Span,
        /// The age from which pods within the bounds are changed.
        from: Span,
    },
    /// The requests are within the bounds, and the relative change is too small.
    SmallChange {
        /// The relative change of the requests.
        change: f64,
        /// The smallest relative change for which a pod is changed.
        threshold: f64,
    },
    /// A container was killed because of its memory, but the requests are as recommended.
    AsRecommended,
    /// The change does not meet the VPA's `evictionRequirements`.
    Requirements,
}

/// The reason as a sentence without a full stop, in lower case.
impl fmt::Display for UpdateReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpdateReason::NoRequest { container, resource } => {
                write!(f, "container {container} requests no {resource}")
            }
            UpdateReason::OutsideBounds { container, resource, request, bound, is_below } => {
                let side = if *is_below { "below the lower" } else { "above the upper" };
                let request = request_text(resource, request);
                let bound = request_text(resource, bound);
                write!(
                    f,
                    "the {resource} request of container {container}, {request}, is {side} bound, \
                     {bound}"
                )
            }
            UpdateReason::QuickOom { container, finished_at } => write!(
                f,
                "container {container} was OOM-killed soon after its start, at t={finished_at} \
                 (evict-after-oom-threshold)"
            ),
            UpdateReason::Old { age, from, change, threshold } => write!(
                f,
                "the requests are within the bounds, but the age, {age}, is at least {from} \
                 ({LIFETIME}), and the change, {}, is at least {} (pod-update-threshold)",
                percent(*change),
                percent(*threshold)
            ),
        }
    }
}

/// The reason as a sentence without a full stop, in lower case.
impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeepReason::Mode(mode) => {
                write!(f, "the update mode {mode:?} changes no existing pods")
            }
            KeepReason::NoRecommendation => f.write_str("the VPA has no recommendation"),
            KeepReason::Crash => f.write_str("the updater crashes: there is no recommendation"),
            KeepReason::NoReplicas => f.write_str("the controller of the pod has no replicas"),
            KeepReason::TooFewPods { live, required } => {
                let pods = if *live == 1 { "pod" } else { "pods" };
                write!(
                    f,
                    "the workload has {live} live {pods}, and the updater requires {required} \
                     (minReplicas in the VPA's updatePolicy, or min-replicas)"
                )
            }
            KeepReason::Pending => f.write_str("pods that do not run yet are not updated in place"),
            KeepReason::Budget { running, configured, tolerance } => write!(
                f,
                "{running} of {configured} replicas run and are not being changed, and at most \
                 {tolerance} may be missing (eviction-tolerance)"
            ),
            KeepReason::NotStarted => {
                f.write_str("the requests are within the bounds, and the pod has not started")
            }
            KeepReason::Young { age, from } => write!(
                f,
                "the requests are within the bounds, and the age, {age}, is less than {from} \
                 ({LIFETIME})"
            ),
            KeepReason::SmallChange { change, threshold } => write!(
                f,
                "the requests are within the bounds, and the change would be {}, less than {} \
                 (pod-update-threshold)",
                percent(*change),
                percent(*threshold)
            ),
            KeepReason::AsRecommended => {
                f.write_str("a container was OOM-killed, but the requests are as recommended")
            }
            KeepReason::Requirements => {
                f.write_str("the change does not meet the VPA's evictionRequirements")
            }
        }
    }
}

/// The flag for the age from which pods within the bounds are changed.
const LIFETIME: &str = "in-recommendation-bounds-eviction-lifetime-threshold";

fn percent(ratio: f64) -> String {
    let text = format!("{:.1}", ratio * 100.0);
    format!("{}%", text.strip_suffix(".0").unwrap_or(&text))
}
