//! The objects as an API server stores them: what [`Change`]s add up to, for the model to read.
//!
//! Lists are kept sorted by name and handed out as they are. Deliberately no label selection and no
//! validation: those belong to the one who asks, and to the API defaulting that is passed in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::change::{Change, Faults, PodMetricsChange, PodState, ScaleTarget};
use super::hpas::{Admission, HpaAnswer, Hpas};
use crate::model::api::{
    ApiError, Hpa, HpaStatus, Labels, Pod, PodMetrics, PodSpec, Scale,
};
use crate::model::time::{Span, Time};

/// What the API server and the metrics API have.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    templates: BTreeMap<Arc<str>, (Labels, Arc<PodSpec>)>,
    pods: Vec<Arc<Pod>>,
    pod_metrics: Vec<PodMetrics>,
    /// Pods whose samples don't follow the common timestamp. Usually there are none.
    own_timestamps: BTreeSet<Arc<str>>,
    timestamp: Time,
    window: Span,
    /// By resource with its group, then by name.
    scales: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Scale>>,
    faults: Faults,
    hpas: Hpas,
}

/// A pod or sample names a template that nobody defined.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("pod template {0:?} is not defined")]
pub struct UnknownTemplate(pub Arc<str>);

impl Cluster {
    /// A cluster with nothing in it. `hpa_generations`: whether the API server counts
    /// `metadata.generation` of HPAs (feature gate HPAGeneration); else it stays 0.
    #[must_use]
    pub fn new(hpa_generations: bool) -> Cluster {
        Cluster {
            hpas: Hpas::new(hpa_generations),
            ..Cluster::default()
        }
    }

    /// Applies a change. What is done to an HPA gets the API server's answer; `admission` is the
    /// API server's for HPAs. A restart of the controller changes nothing here.
    ///
    /// # Errors
    /// If a pod or sample names a template that nobody defined; the change is then not applied.
    pub fn apply(
        &mut self,
        change: &Change,
        admission: Admission<'_>,
    ) -> Result<Option<HpaAnswer>, UnknownTemplate> {
        match change {
            Change::CreateHpa(manifest) => return Ok(Some(self.hpas.create(manifest, admission))),
            Change::PatchHpa { name, patch } => {
                return Ok(Some(self.hpas.patch(name, patch, admission)));
            }
            Change::DeleteHpa { name } => return Ok(Some(self.hpas.delete(name))),
            Change::SetScale(target) => self.set_scale(target),
            Change::PodTemplate { name, labels, spec } => {
                let template = (Arc::new(labels.clone()), Arc::new(spec.clone()));
                self.templates.insert(name.clone(), template);
            }
            Change::SetPods(pods) => self.set_pods(pods)?,
            Change::DeletePods(names) => delete(&mut self.pods, names, |pod| &pod.name),
            Change::PodMetrics(change) => self.change_pod_metrics(change)?,
            Change::Faults(faults) => self.faults = faults.clone(),
            Change::RestartController => {}
        }
        Ok(None)
    }

    /// All pods, sorted by name.
    #[must_use]
    pub fn pods(&self) -> &[Arc<Pod>] {
        &self.pods
    }

    /// What metrics.k8s.io answers: all samples, sorted by the pods' names.
    ///
    /// # Errors
    /// The fault, if there is one.
    pub fn pod_metrics(&self) -> Result<&[PodMetrics], &ApiError> {
        match &self.faults.list_pod_metrics {
            Some(error) => Err(error),
            None => Ok(&self.pod_metrics),
        }
    }

    /// What a GET of the scale answers. The resource has its group: `deployments.apps`.
    ///
    /// # Errors
    /// The fault, if there is one; else NotFound if there is no such object.
    pub fn scale(&self, resource: &str, name: &str) -> Result<&Scale, ApiError> {
        if let Some(error) = &self.faults.get_scale {
            return Err(error.clone());
        }
        let scale = self.scales.get(resource).and_then(|names| names.get(name));
        scale.ok_or_else(|| not_found(resource, name))
    }

    /// Stores a size that was written with success. False: there is no such object.
    pub fn write_scale(&mut self, resource: &str, name: &str, replicas: i32) -> bool {
        let scale = self
            .scales
            .get_mut(resource)
            .and_then(|names| names.get_mut(name));
        scale.map(|scale| scale.replicas = replicas).is_some()
    }

    /// The requests that fail at present.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The HPA of that name.
    #[must_use]
    pub fn hpa(&self, name: &str) -> Option<&Hpa> {
        self.hpas.get(name)
    }

    /// All HPAs, sorted by name.
    pub fn hpas(&self) -> impl Iterator<Item = &Hpa> {
        self.hpas.iter()
    }

    /// Stores a status that was written with success. False: there is no such HPA.
    pub fn write_status(&mut self, name: &str, status: HpaStatus) -> bool {
        self.hpas
            .get_mut(name)
            .map(|hpa| hpa.status = status)
            .is_some()
    }

    /// Stores an HPA as another API server holds it, so that what follows can build upon it.
    pub fn store_hpa(&mut self, hpa: Hpa) {
        self.hpas.store(hpa);
    }

    fn set_scale(&mut self, target: &ScaleTarget) {
        let names = self.scales.entry(target.resource.clone()).or_default();
        let replicas = names.get(&target.name).map_or(0, |scale| scale.replicas);
        let scale = Scale {
            replicas: target.replicas.unwrap_or(replicas),
            status_replicas: target.status_replicas,
            selector: target.selector.clone(),
        };
        names.insert(target.name.clone(), scale);
    }

    fn template(&self, name: &Arc<str>) -> Result<&(Labels, Arc<PodSpec>), UnknownTemplate> {
        self.templates
            .get(name)
            .ok_or_else(|| UnknownTemplate(name.clone()))
    }

    fn set_pods(&mut self, states: &[PodState]) -> Result<(), UnknownTemplate> {
        let pod = |state: &PodState| {
            let (labels, spec) = self.template(&state.template)?;
            Ok(Arc::new(Pod {
                name: state.name.clone(),
                labels: labels.clone(),
                deletion_timestamp: state.deletion_timestamp,
                phase: state.phase,
                start_time: state.start_time,
                ready: state.ready,
                spec: spec.clone(),
            }))
        };
        let pods: Vec<Arc<Pod>> = states.iter().map(pod).collect::<Result<_, _>>()?;
        upsert(&mut self.pods, pods, |pod| &pod.name);
        Ok(())
    }

    fn change_pod_metrics(&mut self, change: &PodMetricsChange) -> Result<(), UnknownTemplate> {
        let timestamp = change.timestamp.unwrap_or(self.timestamp);
        let window = change.window.unwrap_or(self.window);
        let sample = |sample: &super::change::Sample| {
            Ok(PodMetrics {
                name: sample.pod.clone(),
                labels: self.template(&sample.template)?.0.clone(),
                timestamp: sample.timestamp.unwrap_or(timestamp),
                window,
                containers: sample.containers.clone(),
            })
        };
        let samples: Vec<PodMetrics> = change.set.iter().map(sample).collect::<Result<_, _>>()?;
        for sample in &change.set {
            if sample.timestamp.is_some() {
                self.own_timestamps.insert(sample.pod.clone());
            } else if !self.own_timestamps.is_empty() {
                self.own_timestamps.remove(&sample.pod);
            }
        }
        upsert(&mut self.pod_metrics, samples, |sample| &sample.name);
        delete(&mut self.pod_metrics, &change.delete, |sample| &sample.name);
        for name in &change.delete {
            self.own_timestamps.remove(name);
        }
        if timestamp != self.timestamp {
            self.timestamp = timestamp;
            let own = &self.own_timestamps;
            for sample in &mut self.pod_metrics {
                if own.is_empty() || !own.contains(&sample.name) {
                    sample.timestamp = timestamp;
                }
            }
        }
        if window != self.window {
            self.window = window;
            self.pod_metrics
                .iter_mut()
                .for_each(|sample| sample.window = window);
        }
        Ok(())
    }
}

/// The API server's answer to a request for an object that is not there.
fn not_found(resource: &str, name: &str) -> ApiError {
    ApiError {
        code: 404,
        reason: "NotFound".to_owned(),
        message: format!("{resource} \"{name}\" not found").into(),
    }
}

/// Puts items into a list that is sorted by name. Of two of the same name the later one stays.
fn upsert<T>(list: &mut Vec<T>, items: Vec<T>, name: impl Fn(&T) -> &Arc<str>) {
    let mut new = Vec::new();
    for item in items {
        match list.binary_search_by(|other| name(other).cmp(name(&item))) {
            Ok(place) => list[place] = item,
            Err(_) => new.push(item),
        }
    }
    if new.is_empty() {
        return;
    }
    // Reversed and stable: of equal names the later one comes first and is kept.
    new.reverse();
    new.sort_by(|a, b| name(a).cmp(name(b)));
    new.dedup_by(|later, earlier| name(later) == name(earlier));
    list.append(&mut new);
    // Two sorted runs: the sort finds and merges them in one pass.
    list.sort_by(|a, b| name(a).cmp(name(b)));
}

/// Takes items out of a list that is sorted by name.
fn delete<T>(list: &mut Vec<T>, names: &[Arc<str>], name: impl Fn(&T) -> &Arc<str>) {
    match names {
        [] => {}
        [one] => {
            if let Ok(place) = list.binary_search_by(|item| name(item).cmp(one)) {
                list.remove(place);
            }
        }
        _ => {
            let names: BTreeSet<&Arc<str>> = names.iter().collect();
            list.retain(|item| !names.contains(name(item)));
        }
    }
}
