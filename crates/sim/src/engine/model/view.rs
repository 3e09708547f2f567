//! The cluster as the controller sees it in a reconcile of one HPA.

use std::cell::Cell;
use std::sync::Arc;

use super::caches::Caches;
use crate::world::Cluster;
use kube_autoscaler_models::api::{ApiError, Hpa, HpaSpec, Scale, with_group};
use kube_autoscaler_models::hpa::Input;
use kube_autoscaler_models::rules::{MissingScale, Rules};
use kube_autoscaler_models::time::Time;

/// An HPA of the scenario.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub key: Arc<str>,
    pub name: Arc<str>,
    /// True if the next write of the status also changes the spec: the conversion to the storage
    /// version `autoscaling/v1` loses a part of the spec that it could still read.
    pub(super) lossy: Cell<bool>,
    /// The last spec whose target was mapped to a resource, and the result.
    pub mapped: Option<(Arc<HpaSpec>, Mapped)>,
    /// The spec as another API server stored it before the scenario.
    pub stored: Option<Arc<HpaSpec>>,
}

/// The scale of a target, or the error of the mapping from kind to resource.
pub(super) type Mapped = Result<ScaleLocation, String>;

/// The resource of a scale.
#[derive(Clone, Debug)]
pub(super) struct ScaleLocation {
    /// The resource with its group, as the controller requests it.
    pub asked: Arc<str>,
    /// The resources that may have the object. If empty, the API server has no such scale.
    pub found: Arc<[Arc<str>]>,
}

/// An object with the scale subresource.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub group: String,
    pub kind: String,
    /// The resource with its group.
    pub resource: Arc<str>,
    pub name: Arc<str>,
}

/// An HPA during its reconcile.
#[derive(Clone, Copy)]
pub(super) struct Hpas<'a> {
    /// As it was in the controller's cache at the beginning, if it existed.
    pub reconciled: Option<&'a Hpa>,
    /// As it is stored now, if it exists.
    pub stored: Option<&'a Hpa>,
}

/// The responses of a cluster to the requests of a reconcile.
pub(super) struct View<'a> {
    cluster: &'a Cluster,
    hpa: Option<&'a Hpa>,
    hpa_version: Option<u64>,
    caches: Option<&'a Caches>,
    scale: Result<&'a Scale, ApiError>,
    scale_version: Option<u64>,
    update_error: Option<ApiError>,
    /// The resource that the controller requests.
    asked: &'a Arc<str>,
    mapping_error: Option<&'a str>,
    pods_are_cached: bool,
}

impl<'a> View<'a> {
    /// The view of the controller while it reconciles an HPA. `first` is the target if the HPA does
    /// not exist.
    pub(super) fn new(
        cluster: &'a Cluster,
        served: &'a Served,
        hpas: Hpas<'a>,
        first: &'a Target,
        rules: &Rules,
    ) -> View<'a> {
        let Hpas { reconciled, stored } = hpas;
        let hpa_version = stored.map(|hpa| hpa.resource_version);
        let mapped = served.mapped.as_ref().map(|(_, place)| place.as_ref());
        let (place, mapping_error) = match mapped {
            Some(Ok(place)) => (Some(place), None),
            Some(Err(error)) => (None, Some(error.as_str())),
            None => (None, None),
        };
        let asked = place.map_or(&first.resource, |place| &place.asked);
        let name = reconciled.map_or(&*first.name, |hpa| &hpa.spec.scale_target_ref.name);
        let found = place.map(|place| &*place.found).unwrap_or_default();
        let resource = match found {
            [only] => only,
            several => {
                let there = |resource: &&Arc<str>| cluster.scale(resource, name).exists();
                several.iter().find(there).unwrap_or(asked)
            }
        };
        let served = cluster.scale(resource, name);
        let scale = match place {
            Some(_) if found.is_empty() => Err(cluster.no_scale()),
            _ => served.get(|| missing_scale(rules.scale.missing_on_read, asked)),
        };
        View {
            cluster,
            hpa: reconciled,
            hpa_version,
            caches: None,
            scale,
            scale_version: served.version(),
            update_error: served
                .update_error(|| missing_scale(rules.scale.missing_on_write, asked)),
            asked,
            mapping_error,
            pods_are_cached: rules.pods.are_cached,
        }
    }

    /// The view of a controller with these caches.
    pub(super) fn with_caches(self, caches: Option<&'a Caches>) -> View<'a> {
        View { caches, ..self }
    }

    pub(super) fn input(&self, now: Time) -> Input<'_> {
        let faults = self.cluster.faults();
        let pods = self.caches.filter(|_| self.pods_are_cached).map(Caches::pods);
        Input {
            now,
            hpa: self.hpa,
            hpa_version: self.hpa_version,
            cache_version: self.caches.map(|caches| caches.hpa().version),
            scale: self.scale.as_ref().copied(),
            scale_resource: self.asked,
            mapping_error: self.mapping_error,
            pods: pods.unwrap_or_else(|| self.cluster.pods()),
            pod_metrics: self.cluster.pod_metrics(),
            custom_metrics: self.cluster.custom_metrics(),
            update_scale: self.update_error.as_ref(),
            scale_version: self.scale_version,
            update_status: faults.update_status.as_ref(),
            slow_metrics: faults.slow_metrics,
        }
    }
}

/// The API server's name for a missing scale that was requested as this resource.
///
/// Upstream: pkg/registry, ScaleREST of each kind
fn missing_scale(names: MissingScale, asked: &str) -> String {
    let (resource, group) = asked.split_once('.').unwrap_or((asked, ""));
    let own_group = match (names, resource, group) {
        (MissingScale::ByExtensions, "deployments" | "replicasets", "apps" | "extensions")
        | (MissingScale::ByExtensions, "replicationcontrollers", "extensions") => "extensions",
        (MissingScale::ByExtensions | MissingScale::ByApps, "replicationcontrollers", "") => {
            "autoscaling"
        }
        (MissingScale::ByApps | MissingScale::All, "deployments" | "replicasets", "apps")
        | (MissingScale::All, "statefulsets", "apps") => "apps",
        (MissingScale::All, "replicationcontrollers", "") => "",
        _ => return asked.to_owned(),
    };
    with_group(&format!("{resource}/scale"), own_group)
}
