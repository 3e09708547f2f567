//! The stored HPAs: created from manifests, edited by merge patches, deleted.
//!
//! Manifests that can't be decoded are rejected here. Defaulting and validation belong to the
//! caller's [`Admission`]: they are part of the model, and differ between releases.

use std::collections::BTreeMap;
use std::sync::Arc;

use educe::Educe;
use serde_json::{Map, Value};

use kube_autoscaler_models::api::{Hpa, HpaSpec, HpaStatus};
use kube_autoscaler_models::hpa::{ApiVersion, ROUND_TRIP_ANNOTATIONS, decode_spec};
use kube_autoscaler_models::merge_patch::merge_patch;
use kube_autoscaler_models::observation::ApiOutcome;
use kube_autoscaler_models::shared::Shared;

/// The API server's processing of the spec of a new or changed HPA: it sets defaults and may reject
/// the spec with a message. It depends on the version of the manifest.
pub type Admission<'a> = &'a dyn Fn(&mut HpaSpec, ApiVersion) -> Result<(), String>;

#[derive(Educe, Debug)]
#[educe(Clone)]
pub(super) struct Hpas {
    generations: bool,
    /// Sorted by name. A list, which a copy can overwrite without allocating.
    stored: Vec<Hpa>,
    /// Labels and annotations by HPA. The controller ignores them, but receives an event when they
    /// change.
    metadata: Shared<BTreeMap<Arc<str>, Value>>,
    /// The number of edits that changed an HPA, including edits of labels or annotations only.
    edits: u64,
    /// The resource version of the last change.
    version: u64,
    /// The number of HPAs that have been created.
    created: u64,
}

impl Default for Hpas {
    fn default() -> Hpas {
        Hpas::new(true)
    }
}

impl Hpas {
    pub(super) fn new(generations: bool) -> Hpas {
        Hpas {
            generations,
            stored: Vec::new(),
            metadata: Shared::default(),
            edits: 0,
            version: 1,
            created: 0,
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Hpa> {
        self.place(name).ok().map(|place| &self.stored[place])
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Hpa> {
        self.place(name).ok().map(|place| &mut self.stored[place])
    }

    /// The place of an HPA in the list, or where to insert it.
    fn place(&self, name: &str) -> Result<usize, usize> {
        self.stored.binary_search_by(|hpa| (*hpa.name).cmp(name))
    }

    /// The labels and annotations of an HPA.
    pub(super) fn metadata(&self, name: &str) -> &Value {
        self.metadata.get(name).unwrap_or(&Value::Null)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Hpa> {
        self.stored.iter()
    }

    /// Creates an HPA. The generation and the status in the manifest are ignored, as by the API
    /// server.
    pub(super) fn create(&mut self, manifest: &Value, admission: Admission<'_>) -> ApiOutcome {
        let metadata = |field: &str| manifest["metadata"][field].as_str();
        let name: Arc<str> = metadata("name").unwrap_or_default().into();
        let Err(place) = self.place(&name) else {
            return refused(&name, message(&name, "already exists"));
        };
        let spec = match admit(manifest, admission) {
            Ok(spec) => spec,
            Err(message) => return refused(&name, message),
        };
        let version = self.next_version();
        self.created += 1;
        let hpa = Hpa {
            namespace: metadata("namespace").unwrap_or("default").into(),
            name: name.clone(),
            generation: i64::from(self.generations),
            spec: Arc::new(spec),
            status: HpaStatus::default(),
            uid: self.created,
            resource_version: version,
        };
        let outcome = stored(&hpa);
        self.metadata.insert(name, editable(manifest));
        self.stored.insert(place, hpa);
        outcome
    }

    /// Merges the patch into the stored object, including its defaults; removed fields get their
    /// defaults again. The generation only counts changes of the spec.
    pub(super) fn patch(
        &mut self,
        name: &Arc<str>,
        patch: &Value,
        admission: Admission<'_>,
    ) -> ApiOutcome {
        let (edits, version) = (self.edits, self.version + 1);
        let Ok(place) = self.place(name) else {
            return refused(name, message(name, "not found"));
        };
        let hpa = &mut self.stored[place];
        let spec = match serde_json::to_value(&*hpa.spec) {
            Ok(spec) => spec,
            Err(error) => return refused(name, error.to_string()),
        };
        let before = spec.clone();
        let mut object = Value::Object(Map::from_iter([("spec".to_owned(), spec)]));
        merge_patch(&mut object, patch);
        let spec = match admit(&object, admission) {
            Ok(spec) => spec,
            Err(message) => return refused(name, message),
        };
        let metadata = self.metadata.entry(name.clone()).or_default();
        let mut edited = metadata.clone();
        merge_patch(&mut edited, &editable(patch));
        if spec != *hpa.spec {
            hpa.spec = Arc::new(spec);
            hpa.generation += i64::from(self.generations);
            self.edits += 1;
        } else if serde_json::to_value(&spec).is_ok_and(|spec| spec != before) {
            // Written differently, but equal: it is stored as written, and the generation stays.
            hpa.spec = Arc::new(spec);
            self.edits += 1;
        } else if edited != *metadata {
            self.edits += 1;
        }
        *metadata = edited;
        if self.edits != edits {
            (self.version, hpa.resource_version) = (version, version);
        }
        stored(hpa)
    }

    /// A resource version that is later than all others.
    pub(super) fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// The resource version of the last change.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Gives an HPA a new resource version.
    pub(super) fn touch(&mut self, name: &str) {
        if let Ok(place) = self.place(name) {
            self.stored[place].resource_version = self.next_version();
        }
    }

    /// The number of edits that changed an HPA, including edits of labels or annotations only.
    pub(super) fn edits(&self) -> u64 {
        self.edits
    }

    pub(super) fn delete(&mut self, name: &Arc<str>) -> ApiOutcome {
        match self.place(name) {
            Ok(place) => {
                self.stored.remove(place);
                self.version += 1;
                ApiOutcome::Deleted { name: name.clone() }
            }
            Err(_) => refused(name, message(name, "not found")),
        }
    }
}

/// Labels and annotations of a manifest or a patch, without the annotations that are never stored.
fn editable(object: &Value) -> Value {
    let part = |field: &str| Some((field.to_owned(), object["metadata"].get(field)?.clone()));
    let mut editable: Value = ["labels", "annotations"].into_iter().filter_map(part).collect();
    if let Some(annotations) = editable.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|name, _| !ROUND_TRIP_ANNOTATIONS.contains(&name.as_str()));
    }
    editable
}

fn admit(object: &Value, admission: Admission<'_>) -> Result<HpaSpec, String> {
    let (mut spec, version) = decode_spec(object)?;
    admission(&mut spec, version)?;
    Ok(spec)
}

fn stored(hpa: &Hpa) -> ApiOutcome {
    let Hpa { name, generation, spec, .. } = hpa;
    ApiOutcome::Stored { name: name.clone(), generation: *generation, spec: spec.clone() }
}

fn refused(name: &Arc<str>, message: String) -> ApiOutcome {
    ApiOutcome::Refused { name: name.clone(), message }
}

fn message(name: &str, reason: &str) -> String {
    format!("horizontalpodautoscalers.autoscaling \"{name}\" {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn defaulting(spec: &mut HpaSpec, _: ApiVersion) -> Result<(), String> {
        let min = *spec.min_replicas.get_or_insert(1);
        if min > spec.max_replicas { Err("max < min".to_owned()) } else { Ok(()) }
    }

    fn manifest() -> Value {
        json!({
            "metadata": {"name": "web", "namespace": "shop", "generation": 7},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "maxReplicas": 10,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target":
                    {"type": "Utilization", "averageUtilization": 50}}}]
            }
        })
    }

    fn created() -> Hpas {
        let mut hpas = Hpas::default();
        hpas.create(&manifest(), &defaulting);
        hpas
    }

    #[test]
    fn a_created_hpa_has_defaults_and_generation_1() {
        let hpas = created();
        let hpa = hpas.get("web").expect("stored");
        assert_eq!((&*hpa.namespace, hpa.generation), ("shop", 1));
        assert_eq!((hpa.spec.min_replicas, hpa.spec.max_replicas), (Some(1), 10));
        assert_eq!(hpa.status, HpaStatus::default());
    }

    #[test]
    fn without_the_feature_gate_generations_stay_0() {
        let mut hpas = Hpas::new(false);
        hpas.create(&manifest(), &defaulting);
        hpas.patch(&"web".into(), &json!({"spec": {"maxReplicas": 5}}), &defaulting);
        assert_eq!(
            hpas.get("web").map(|hpa| (hpa.generation, hpa.spec.max_replicas)),
            Some((0, 5))
        );
    }

    #[test]
    fn the_generation_counts_only_changes_of_the_spec() {
        for (patch, generation, min) in [
            (json!({"spec": {"maxReplicas": 20}}), 2, 1),
            (json!({"spec": {"minReplicas": 3}}), 2, 3),
            (json!({"spec": {"maxReplicas": 10}}), 1, 1),
            // The default of a removed field is restored.
            (json!({"spec": {"minReplicas": null}}), 1, 1),
            (json!({"metadata": {"labels": {"a": "b"}}}), 1, 1),
            (json!({"status": {"desiredReplicas": 4}}), 1, 1),
        ] {
            let mut hpas = created();
            let outcome = hpas.patch(&"web".into(), &patch, &defaulting);
            let hpa = hpas.get("web").expect("stored");
            assert_eq!(outcome, stored(hpa), "{patch}");
            assert_eq!((hpa.generation, hpa.spec.min_replicas), (generation, Some(min)), "{patch}");
        }
    }

    #[test]
    fn invalid_requests_are_rejected_and_change_nothing() {
        let mut hpas = created();
        let before = hpas.get("web").cloned();
        let name: Arc<str> = "web".into();
        let message = |outcome: ApiOutcome| match outcome {
            ApiOutcome::Refused { message, .. } => message,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            message(hpas.create(&manifest(), &defaulting)),
            "horizontalpodautoscalers.autoscaling \"web\" already exists"
        );
        let patch = json!({"spec": {"maxReplicas": "many"}});
        assert!(message(hpas.patch(&name, &patch, &defaulting)).starts_with("spec: invalid type"));
        let patch = json!({"spec": {"scaleTargetRef": null}});
        assert!(message(hpas.patch(&name, &patch, &defaulting)).contains("scaleTargetRef"));
        let patch = json!({"spec": {"minReplicas": 11}});
        assert_eq!(message(hpas.patch(&name, &patch, &defaulting)), "max < min");
        assert_eq!(hpas.get("web").cloned(), before);
        assert_eq!(hpas.delete(&name), ApiOutcome::Deleted { name: name.clone() });
        assert_eq!(
            message(hpas.delete(&name)),
            "horizontalpodautoscalers.autoscaling \"web\" not found"
        );
    }

    #[test]
    fn a_recreated_hpa_starts_without_a_status() {
        let mut hpas = created();
        let name: Arc<str> = "web".into();
        hpas.patch(&name, &json!({"spec": {"maxReplicas": 20}}), &defaulting);
        hpas.delete(&name);
        hpas.create(&manifest(), &defaulting);
        let hpa = hpas.get("web").expect("stored");
        assert_eq!((hpa.generation, hpa.spec.max_replicas), (1, 10));
    }
}
