//! HPAs in manifests.

use serde_json::Value;

use super::load::{HpaName, Subject};
use super::objects::{ManifestFile, Object, Objects, same_namespace, without_server_fields};
use super::usage;
use kube_autoscaler_models::api::MetricSpec;
use kube_lockstep_scenario::error::Error;
use kube_lockstep_scenario::resolve::{SingleHpa, single_hpa};

/// An HPA of a file with manifests, in place of another one.
#[derive(Clone, Debug)]
pub struct HpaManifest {
    object: Object,
}

impl HpaManifest {
    /// Finds the HPAs in a file, which may contain other objects.
    ///
    /// # Errors
    /// If the file contains anything but objects of the Kubernetes API.
    pub fn find(file: &ManifestFile) -> Result<Vec<HpaManifest>, Error> {
        let objects = Objects::read(std::slice::from_ref(file))?;
        Ok(objects.hpas.into_iter().map(|object| HpaManifest { object }).collect())
    }

    /// The name; empty if the manifest has none.
    #[must_use]
    pub fn name(&self) -> String {
        self.object.name()
    }

    /// The namespace. None: the manifest leaves it open.
    #[must_use]
    pub fn namespace(&self) -> Option<String> {
        self.object.namespace()
    }

    /// `NAMESPACE/NAME`, or the name if the manifest leaves the namespace open.
    #[must_use]
    pub fn full_name(&self) -> String {
        self.object.full_name()
    }

    /// The manifest, without the fields that an API server adds.
    ///
    /// # Errors
    /// If the manifest is invalid.
    pub fn manifest(&self) -> Result<Value, Error> {
        read_hpa(&self.object).map(|(_, hpa)| hpa.manifest)
    }
}

/// Reads the manifest of an HPA, without the fields that an API server adds.
fn read_hpa(object: &Object) -> Result<(Object, SingleHpa), Error> {
    let mut object = object.clone();
    without_server_fields(&mut object.node);
    let hpa = single_hpa(&object.node).map_err(|problems| object.problems(problems))?;
    Ok((object, hpa))
}

/// A valid HPA.
#[derive(Clone, Debug)]
pub struct ValidHpa {
    /// The name and the namespace.
    pub name: HpaName,
    /// The manifest, without the fields that an API server adds.
    pub object: Object,
    /// The values in the manifest, with defaults.
    pub hpa: SingleHpa,
    /// True if an API server has stored it.
    pub is_stored: bool,
    /// True if the manifest has the status of a cluster.
    pub(super) has_status: bool,
}

impl ValidHpa {
    pub(super) fn read(object: &Object) -> Result<ValidHpa, Error> {
        let (is_stored, has_status) = (object.is_stored(), object.has_status());
        let (object, hpa) = read_hpa(object)?;
        let name = HpaName { namespace: object.namespace(), name: hpa.name.to_string() };
        Ok(ValidHpa { name, object, hpa, is_stored, has_status })
    }

    /// Returns true if both HPAs scale the same object.
    #[must_use]
    pub fn has_same_target(&self, other: &ValidHpa) -> bool {
        let (one, other_target) = (&self.hpa.target, &other.hpa.target);
        self.name.namespace == other.name.namespace
            && (&one.kind, &one.group, &one.name)
                == (&other_target.kind, &other_target.group, &other_target.name)
    }

    pub(super) fn scales(&self, object: &Object) -> bool {
        let target = &self.hpa.target;
        same_namespace(self.name.namespace.as_ref(), object.namespace().as_ref())
            && object.kind() == target.kind
            && object.group() == target.group
            && object.name() == *target.name
    }
}

/// Groups HPAs of the same target.
pub(super) fn by_target(hpas: Vec<ValidHpa>) -> Vec<Vec<ValidHpa>> {
    let mut groups: Vec<Vec<ValidHpa>> = Vec::new();
    for hpa in hpas {
        match groups.iter_mut().find(|group| group[0].has_same_target(&hpa)) {
            Some(group) => group.push(hpa),
            None => groups.push(vec![hpa]),
        }
    }
    groups
}

/// The subject of a load for a metric.
pub(super) fn subject_of(metric: &MetricSpec) -> Option<Subject> {
    let name = metric.name()?.to_owned();
    let identifier = [
        metric.pods.as_ref().map(|it| &it.metric),
        metric.object.as_ref().map(|it| &it.metric),
        metric.external.as_ref().map(|it| &it.metric),
    ];
    let identifier = identifier.into_iter().flatten().next();
    let labels = identifier.map(|it| usage::required_labels(it.selector.as_ref()));
    let container = metric.container_resource.as_ref().map(|it| it.container.to_string());
    Some(Subject { hpa: None, name, container, labels: labels.unwrap_or_default() })
}
