//! The controller's view of the cluster while it reconciles an HPA.

use std::sync::Arc;

use crate::api::{ApiError, CustomMetrics, Hpa, Pod, PodMetrics, Scale};
use crate::time::{Span, Time};

/// The view of the controller at one time.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The present time. It stands still during a reconcile, except for its waits: for slow
    /// responses, and between attempts to update the scale.
    pub now: Time,
    /// The HPA in the controller's cache, if it exists.
    pub hpa: Option<&'a Hpa>,
    /// The resource version of the stored HPA, if it exists.
    pub hpa_version: Option<u64>,
    /// The resource version of the last change that the cache of HPAs has received, if that may not
    /// be the last one.
    pub cache_version: Option<u64>,
    /// The response to a GET of the scale.
    pub scale: Result<&'a Scale, &'a ApiError>,
    /// The target's resource with its group: `deployments.apps`.
    pub scale_resource: &'a Arc<str>,
    /// The reason why the target's kind can't be mapped to a resource, if it can't.
    pub mapping_error: Option<&'a str>,
    /// All pods of the namespace, sorted by name.
    pub pods: &'a [Arc<Pod>],
    /// All pod metrics of the namespace, sorted by name. The model applies the selector.
    pub pod_metrics: Result<&'a [PodMetrics], &'a ApiError>,
    /// All custom and external metrics of the namespace. The model applies the selectors.
    pub custom_metrics: &'a CustomMetrics,
    /// The error of an update of the scale, apart from conflicts with a later version.
    pub update_scale: Option<&'a ApiError>,
    /// The resource version of the target, if it exists.
    pub scale_version: Option<u64>,
    /// The error of an update of the status.
    pub update_status: Option<&'a ApiError>,
    /// The response time of the metrics APIs, if they do not respond immediately.
    pub slow_metrics: Option<Span>,
}

/// Another change that happens during a reconcile.
#[derive(Clone, Debug)]
pub struct Interruption<'a> {
    /// The number of requests of the reconcile before it.
    pub after: usize,
    /// The view of the controller from then on.
    pub input: Input<'a>,
    /// The changes of HPAs, in order.
    pub hpas: Vec<ChangedHpa>,
}

/// An HPA that changed since the last input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangedHpa {
    /// Its key in the queue: `namespace/name`.
    pub key: Arc<str>,
    /// The change.
    pub change: HpaChange,
}

/// A change of an HPA, as the controller's informer reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HpaChange {
    /// The HPA was created.
    Added,
    /// The HPA was edited, or its status was written.
    Updated {
        /// True if its generation changed.
        generation: bool,
    },
    /// The HPA was deleted.
    Deleted,
}

/// An owned [`Input`].
#[derive(Clone, Debug)]
pub(crate) struct OwnedInput {
    now: Time,
    hpa_version: Option<u64>,
    scale: Result<Scale, ApiError>,
    scale_resource: Arc<str>,
    mapping_error: Option<String>,
    pods: Vec<Arc<Pod>>,
    pod_metrics: Result<Vec<PodMetrics>, ApiError>,
    custom_metrics: CustomMetrics,
    update_scale: Option<ApiError>,
    scale_version: Option<u64>,
    update_status: Option<ApiError>,
    slow_metrics: Option<Span>,
}

impl OwnedInput {
    pub(crate) fn new(input: &Input<'_>) -> OwnedInput {
        OwnedInput {
            now: input.now,
            hpa_version: input.hpa_version,
            scale: input.scale.cloned().map_err(Clone::clone),
            scale_resource: input.scale_resource.clone(),
            mapping_error: input.mapping_error.map(str::to_owned),
            pods: input.pods.to_vec(),
            pod_metrics: input.pod_metrics.map(<[_]>::to_vec).map_err(Clone::clone),
            custom_metrics: input.custom_metrics.clone(),
            update_scale: input.update_scale.cloned(),
            scale_version: input.scale_version,
            update_status: input.update_status.cloned(),
            slow_metrics: input.slow_metrics,
        }
    }

    pub(crate) fn input<'a>(&'a self, hpa: &'a Hpa) -> Input<'a> {
        Input {
            now: self.now,
            hpa: Some(hpa),
            hpa_version: self.hpa_version,
            cache_version: None,
            scale: self.scale.as_ref(),
            scale_resource: &self.scale_resource,
            mapping_error: self.mapping_error.as_deref(),
            pods: &self.pods,
            pod_metrics: self.pod_metrics.as_deref(),
            custom_metrics: &self.custom_metrics,
            update_scale: self.update_scale.as_ref(),
            scale_version: self.scale_version,
            update_status: self.update_status.as_ref(),
            slow_metrics: self.slow_metrics,
        }
    }
}

/// An owned [`Interruption`].
#[derive(Clone, Debug)]
pub(crate) struct OwnedInterruption {
    pub after: usize,
    input: OwnedInput,
    hpas: Vec<ChangedHpa>,
}

impl OwnedInterruption {
    pub(crate) fn new(interruption: &Interruption<'_>) -> OwnedInterruption {
        let Interruption { after, input, hpas } = interruption;
        OwnedInterruption { after: *after, input: OwnedInput::new(input), hpas: hpas.clone() }
    }

    pub(crate) fn interruption<'a>(&'a self, hpa: &'a Hpa) -> Interruption<'a> {
        let OwnedInterruption { after, input, hpas } = self;
        Interruption { after: *after, input: input.input(hpa), hpas: hpas.clone() }
    }
}
