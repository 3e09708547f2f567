//! The objects as an API server stores them: the result of all [`Change`]s, from which the model
//! reads.
//!
//! Lists are sorted by name. Deliberately absent: label selection and validation, which belong to
//! the caller and to its [`Admission`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use educe::Educe;
use serde_json::Value;

use super::change::{
    Change, Faults, PodMetricsChange, PodState, PodValue, PodsMetricChange, Samples, ScaleTarget,
};
use super::hpas::{Admission, Hpas};
use kube_autoscaler_models::api::{
    ApiError, CustomMetrics, Hpa, HpaStatus, Labels, Pod, PodMetricValue, PodMetrics, PodSpec,
    PodsMetricAnswer, Scale, SeriesAnswer,
};
use kube_autoscaler_models::observation::ApiOutcome;
use kube_autoscaler_models::shared::Shared;
use kube_autoscaler_models::time::{Span, Time};

/// The objects of the API server and the metrics APIs.
#[derive(Educe, Debug, Default)]
#[educe(Clone)]
pub struct Cluster {
    templates: Shared<Templates>,
    pods: Shared<Vec<Arc<Pod>>>,
    pod_metrics: Vec<PodMetrics>,
    /// The pods whose samples do not have the common timestamp. Usually empty.
    own_timestamps: BTreeSet<Arc<str>>,
    timestamp: Time,
    window: Span,
    scales: Shared<Scales>,
    /// The resource version of the scale that changed last.
    scale_version: u64,
    custom_metrics: CustomMetrics,
    faults: Shared<Faults>,
    hpas: Hpas,
}

/// By resource with its group, then by name.
type Scales = BTreeMap<Arc<str>, BTreeMap<Arc<str>, Scale>>;

/// The labels and specs of pods, by the name of their template.
type Templates = BTreeMap<Arc<str>, (Labels, Arc<PodSpec>)>;

/// The error for a pod or sample that refers to an undefined template.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("pod template {0:?} is not defined")]
pub struct UnknownTemplate(pub Arc<str>);

impl Cluster {
    /// An empty cluster. `hpa_generations`: true if the API server counts `metadata.generation` of
    /// HPAs (feature gate HPAGeneration); otherwise it stays 0.
    #[must_use]
    pub fn new(hpa_generations: bool) -> Cluster {
        Cluster { hpas: Hpas::new(hpa_generations), ..Cluster::default() }
    }

    /// Applies a change. Returns the API server's response to changes of an HPA; `admission`
    /// processes the specs of created and edited HPAs. A restart of the controller has no effect
    /// here.
    ///
    /// # Errors
    /// If a pod or sample refers to an undefined template; the change is then not applied.
    pub fn apply(
        &mut self,
        change: &Change,
        admission: Admission<'_>,
    ) -> Result<Option<ApiOutcome>, UnknownTemplate> {
        match change {
            Change::CreateHpa(manifest) => return Ok(Some(self.hpas.create(manifest, admission))),
            Change::PatchHpa { name, patch } => {
                return Ok(Some(self.hpas.patch(name, patch, admission)));
            }
            Change::DeleteHpa { name } => return Ok(Some(self.hpas.delete(name))),
            Change::SetScale(target) => self.set_scale(target),
            Change::DeleteScale { resource, name } => {
                if let Some(names) = self.scales.get_mut(resource) {
                    names.remove(name);
                }
            }
            Change::PodTemplate { name, labels, spec } => {
                let template = (Arc::new(labels.clone()), Arc::new(spec.clone()));
                self.templates.insert(name.clone(), template);
            }
            Change::SetPods(pods) => self.set_pods(pods)?,
            Change::DeletePods(names) => delete(&mut self.pods, names, |pod| &pod.name),
            Change::PodMetrics(change) => self.change_pod_metrics(change)?,
            Change::PodsMetric(change) => self.set_pods_metric(change)?,
            Change::ObjectMetric(change) => {
                let key = (change.metric.clone(), change.kind.clone(), change.name.clone());
                let (series, error) = (change.series.clone(), change.error.clone());
                self.custom_metrics.objects.insert(key, SeriesAnswer { series, error });
            }
            Change::ExternalMetric(change) => {
                let (series, error) = (change.series.clone(), change.error.clone());
                let answer = SeriesAnswer { series, error };
                self.custom_metrics.externals.insert(change.metric.clone(), answer);
            }
            Change::Faults(faults) => self.faults = Shared::new(faults.clone()),
            // The HPA controller reads no other namespace, and no other objects.
            Change::RestartController
            | Change::InNamespace { .. }
            | Change::ApplyObject(_)
            | Change::PatchObject(_)
            | Change::DeleteObject(_) => {}
        }
        Ok(None)
    }

    /// All pods, sorted by name.
    #[must_use]
    pub fn pods(&self) -> &[Arc<Pod>] {
        &self.pods
    }

    /// The response of metrics.k8s.io: all samples, sorted by the pods' names.
    ///
    /// # Errors
    /// The fault, if one is in effect.
    pub fn pod_metrics(&self) -> Result<&[PodMetrics], &ApiError> {
        match &self.faults.list_pod_metrics {
            Some(error) => Err(error),
            None => Ok(&self.pod_metrics),
        }
    }

    /// The metrics of custom.metrics.k8s.io and external.metrics.k8s.io.
    #[must_use]
    pub fn custom_metrics(&self) -> &CustomMetrics {
        &self.custom_metrics
    }

    /// The scale of an object, which may not exist. The resource has its group: `deployments.apps`.
    #[must_use]
    pub fn scale<'a>(&'a self, resource: &str, name: &'a str) -> ServedScale<'a> {
        let stored = self.scales.get(resource).and_then(|names| names.get(name));
        ServedScale { name, stored, faults: &self.faults }
    }

    /// The response to a GET of the scale of a kind without scales: the fault, or the API server's
    /// error for an unknown path.
    ///
    /// Upstream: apiserver, pkg/server/handler.go, serviceErrorHandler
    #[must_use]
    pub fn no_scale(&self) -> ApiError {
        let unknown = || ApiError {
            code: 404,
            reason: "NotFound".to_owned(),
            message: "the server could not find the requested resource".into(),
        };
        self.faults.get_scale.clone().unwrap_or_else(unknown)
    }

    /// Stores successfully written replicas. Returns false if the object does not exist.
    pub fn write_scale(&mut self, resource: &str, name: &str, replicas: i32) -> bool {
        let scale = self.scales.get_mut(resource).and_then(|names| names.get_mut(name));
        let Some(scale) = scale else { return false };
        if scale.replicas != replicas {
            self.scale_version += 1;
            (scale.replicas, scale.resource_version) = (replicas, self.scale_version);
        }
        true
    }

    /// The requests that fail now.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The HPA with this name.
    #[must_use]
    pub fn hpa(&self, name: &str) -> Option<&Hpa> {
        self.hpas.get(name)
    }

    /// The number of edits that changed an HPA, including edits of labels or annotations only.
    #[must_use]
    pub fn hpa_edits(&self) -> u64 {
        self.hpas.edits()
    }

    /// The resource version of the last change of an HPA.
    #[must_use]
    pub fn hpa_version(&self) -> u64 {
        self.hpas.version()
    }

    /// Gives an HPA a new resource version: it is stored in another form.
    pub fn touch_hpa(&mut self, name: &str) {
        self.hpas.touch(name);
    }

    /// The labels and annotations of an HPA.
    #[must_use]
    pub(crate) fn hpa_metadata(&self, name: &str) -> &Value {
        self.hpas.metadata(name)
    }

    /// All HPAs, sorted by name.
    pub fn hpas(&self) -> impl Iterator<Item = &Hpa> {
        self.hpas.iter()
    }

    /// Stores a successfully written status. Returns false if the HPA does not exist or already has
    /// this status: an API server drops a write without a change.
    pub fn write_status(&mut self, name: &str, status: HpaStatus) -> bool {
        let Some(hpa) = self.hpas.get_mut(name) else { return false };
        // Zero replicas and absent replicas are equal.
        if hpa.status.current_replicas.unwrap_or(0) == status.current_replicas.unwrap_or(0) {
            hpa.status.current_replicas = status.current_replicas;
        }
        let changed = hpa.status != status;
        hpa.status = status;
        if changed {
            self.hpas.touch(name);
        }
        changed
    }

    fn set_scale(&mut self, target: &ScaleTarget) {
        let names = self.scales.entry(target.resource.clone()).or_default();
        let before = names.get(&target.name);
        let mut scale = Scale {
            replicas: target.replicas.or(before.map(|scale| scale.replicas)).unwrap_or(0),
            status_replicas: target.status_replicas,
            selector: target.selector.clone(),
            resource_version: before.map_or(0, |scale| scale.resource_version),
        };
        if before != Some(&scale) {
            self.scale_version += 1;
            scale.resource_version = self.scale_version;
            names.insert(target.name.clone(), scale);
        }
    }

    fn set_pods(&mut self, states: &[PodState]) -> Result<(), UnknownTemplate> {
        let pod = |state: &PodState| {
            let (labels, spec) = template(&self.templates, &state.template)?;
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

    fn set_pods_metric(&mut self, change: &PodsMetricChange) -> Result<(), UnknownTemplate> {
        let value = |value: &PodValue| {
            Ok(PodMetricValue {
                name: value.pod.clone(),
                labels: template(&self.templates, &value.template)?.0.clone(),
                value: value.value.clone(),
                timestamp: value.timestamp,
                window: value.window,
            })
        };
        let mut values: Vec<_> = change.values.iter().map(value).collect::<Result<_, _>>()?;
        values.sort_by(|a, b| a.name.cmp(&b.name));
        let (labels, error) = (change.labels.clone(), change.error.clone());
        let answer = PodsMetricAnswer { labels, values, error };
        self.custom_metrics.pods.insert(change.metric.clone(), answer);
        Ok(())
    }

    fn change_pod_metrics(&mut self, change: &PodMetricsChange) -> Result<(), UnknownTemplate> {
        let timestamp = change.timestamp.unwrap_or(self.timestamp);
        let window = change.window.unwrap_or(self.window);
        let Cluster { templates, pod_metrics, own_timestamps, .. } = self;
        let mut labels = Vec::with_capacity(change.set.len());
        for samples in &change.set {
            labels.push(&template(templates, &samples.template)?.0);
        }
        let (mut new, mut next) = (Vec::new(), 0);
        for (Samples { pods, timestamp: own, containers, .. }, labels) in
            change.set.iter().zip(labels)
        {
            let timestamp = own.unwrap_or(timestamp);
            for name in pods.iter() {
                if own.is_some() {
                    own_timestamps.insert(name.clone());
                } else if !own_timestamps.is_empty() {
                    own_timestamps.remove(name);
                }
                match find(pod_metrics, name, next, |sample| &sample.name) {
                    Ok(index) => {
                        let known = &mut pod_metrics[index];
                        if !Arc::ptr_eq(&known.labels, labels) {
                            known.labels = labels.clone();
                        }
                        known.containers = containers.clone();
                        (known.timestamp, known.window) = (timestamp, window);
                        next = index + 1;
                    }
                    Err(_) => new.push(PodMetrics {
                        name: name.clone(),
                        labels: labels.clone(),
                        timestamp,
                        window,
                        containers: containers.clone(),
                    }),
                }
            }
        }
        insert(pod_metrics, new, |sample| &sample.name);
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
            self.pod_metrics.iter_mut().for_each(|sample| sample.window = window);
        }
        Ok(())
    }
}

/// The scale of an object as the API server serves it. `missing` is the name of an absent scale in
/// the API server's error.
#[derive(Clone, Copy, Debug)]
pub struct ServedScale<'a> {
    name: &'a str,
    stored: Option<&'a Scale>,
    faults: &'a Faults,
}

impl<'a> ServedScale<'a> {
    /// Returns true if the object exists.
    #[must_use]
    pub fn exists(self) -> bool {
        self.stored.is_some()
    }

    /// The resource version of the object, if it exists.
    #[must_use]
    pub fn version(self) -> Option<u64> {
        self.stored.map(|scale| scale.resource_version)
    }

    /// The response to a GET of the scale.
    ///
    /// # Errors
    /// The fault, if one is in effect; otherwise NotFound if the object does not exist.
    pub fn get(self, missing: impl FnOnce() -> String) -> Result<&'a Scale, ApiError> {
        if let Some(error) = &self.faults.get_scale {
            return Err(error.clone());
        }
        self.stored.ok_or_else(|| not_found(&missing(), self.name))
    }

    /// The error of a PUT of the scale: the fault, or NotFound if the object does not exist.
    #[must_use]
    pub fn update_error(self, missing: impl FnOnce() -> String) -> Option<ApiError> {
        let not_found = || (!self.exists()).then(|| not_found(&missing(), self.name));
        self.faults.update_scale.clone().or_else(not_found)
    }
}

/// The API server's response to a request for an object that does not exist.
fn not_found(resource: &str, name: &str) -> ApiError {
    ApiError {
        code: 404,
        reason: "NotFound".to_owned(),
        message: format!("{resource} \"{name}\" not found").into(),
    }
}

fn template<'t>(
    templates: &'t Templates,
    name: &Arc<str>,
) -> Result<&'t (Labels, Arc<PodSpec>), UnknownTemplate> {
    templates.get(name).ok_or_else(|| UnknownTemplate(name.clone()))
}

/// Inserts items into a list that is sorted by name, or replaces them. Of two items with the same
/// name, the later one is kept.
fn upsert<T>(list: &mut Vec<T>, items: Vec<T>, name: impl Fn(&T) -> &Arc<str>) {
    let (mut new, mut next) = (Vec::new(), 0);
    for item in items {
        match find(list, name(&item), next, &name) {
            Ok(index) => (list[index], next) = (item, index + 1),
            Err(_) => new.push(item),
        }
    }
    insert(list, new, name);
}

/// The place of an item in a list that is sorted by name, or where to insert it. `next`: the place
/// after that of the previous item, where it mostly is.
fn find<T>(
    list: &[T],
    item: &Arc<str>,
    next: usize,
    name: impl Fn(&T) -> &Arc<str>,
) -> Result<usize, usize> {
    match list.get(next) {
        Some(other) if Arc::ptr_eq(name(other), item) => Ok(next),
        _ => list.binary_search_by(|other| name(other).cmp(item)),
    }
}

/// Inserts new items into a list that is sorted by name. Of two items with the same name, the later
/// one is kept.
fn insert<T>(list: &mut Vec<T>, mut new: Vec<T>, name: impl Fn(&T) -> &Arc<str>) {
    if new.is_empty() {
        return;
    }
    // Reversed and stable: of equal names, the later item comes first and is kept.
    new.reverse();
    new.sort_by(|a, b| name(a).cmp(name(b)));
    new.dedup_by(|later, earlier| name(later) == name(earlier));
    list.append(&mut new);
    // Two sorted runs: the sort detects and merges them in one pass.
    list.sort_by(|a, b| name(a).cmp(name(b)));
}

/// Removes items from a list that is sorted by name.
fn delete<T>(list: &mut Vec<T>, names: &[Arc<str>], name: impl Fn(&T) -> &Arc<str>) {
    match names {
        [] => {}
        [one] => {
            if let Ok(index) = list.binary_search_by(|item| name(item).cmp(one)) {
                list.remove(index);
            }
        }
        _ => {
            let names: BTreeSet<&Arc<str>> = names.iter().collect();
            list.retain(|item| !names.contains(name(item)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::api::PodPhase;
    use serde_json::json;

    fn apply(cluster: &mut Cluster, changes: &[Change]) {
        for change in changes {
            cluster.apply(change, &|_, _| Ok(())).expect("a template");
        }
    }

    fn template() -> Change {
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        Change::PodTemplate { name: "t0".into(), labels, spec: PodSpec::default() }
    }

    fn state(name: &str, phase: PodPhase) -> PodState {
        PodState {
            name: name.into(),
            template: "t0".into(),
            phase,
            start_time: None,
            ready: None,
            deletion_timestamp: None,
        }
    }

    fn sample(pod: &str, timestamp: Option<i64>) -> Samples {
        let timestamp = timestamp.map(Time::from_secs);
        let (pods, containers) = (Shared::new(vec![pod.into()]), Arc::new([]));
        Samples { pods, template: "t0".into(), timestamp, containers }
    }

    fn pods(cluster: &Cluster) -> Vec<(&str, PodPhase)> {
        cluster.pods().iter().map(|pod| (&*pod.name, pod.phase)).collect()
    }

    fn timestamps(cluster: &Cluster) -> Vec<(&str, i64)> {
        let samples = cluster.pod_metrics().expect("no fault").iter();
        samples.map(|sample| (&*sample.name, sample.timestamp.0 / 1_000_000_000)).collect()
    }

    #[test]
    fn pods_are_sorted_by_name() {
        use PodPhase::{Pending, Running};
        let mut cluster = Cluster::default();
        let states = [state("c", Running), state("a", Running), state("c", Pending)];
        apply(&mut cluster, &[template(), Change::SetPods(states.to_vec())]);
        assert_eq!(pods(&cluster), [("a", Running), ("c", Pending)]);
        assert_eq!(cluster.pods()[0].labels["app"], "web");
        let states = [state("d", Pending), state("b", Pending), state("a", Pending)];
        apply(&mut cluster, &[Change::SetPods(states.to_vec())]);
        assert_eq!(pods(&cluster), ["a", "b", "c", "d"].map(|name| (name, Pending)));
        apply(&mut cluster, &[Change::DeletePods(vec!["b".into()])]);
        assert_eq!(pods(&cluster), ["a", "c", "d"].map(|name| (name, Pending)));
        let names = ["d", "x", "a"].map(Into::into).to_vec();
        apply(&mut cluster, &[Change::DeletePods(names)]);
        assert_eq!(pods(&cluster), [("c", Pending)]);
    }

    #[test]
    fn samples_use_the_common_timestamp_unless_they_have_their_own() {
        let mut cluster = Cluster::default();
        let change = |timestamp: Option<i64>, set: &[Samples], delete: &[&str]| {
            Change::PodMetrics(PodMetricsChange {
                timestamp: timestamp.map(Time::from_secs),
                window: None,
                set: set.to_vec(),
                delete: delete.iter().map(|name| Arc::from(*name)).collect(),
            })
        };
        let set = [sample("b", None), sample("a", Some(3)), sample("c", None)];
        apply(&mut cluster, &[template(), change(Some(15), &set, &[])]);
        assert_eq!(timestamps(&cluster), [("a", 3), ("b", 15), ("c", 15)]);
        apply(&mut cluster, &[change(Some(30), &[], &[])]);
        assert_eq!(timestamps(&cluster), [("a", 3), ("b", 30), ("c", 30)]);
        // A sample that is set again replaces the old one; so does the sample of a recreated pod.
        let set = [sample("a", None), sample("b", Some(30))];
        apply(&mut cluster, &[change(None, &set, &["c"])]);
        assert_eq!(timestamps(&cluster), [("a", 30), ("b", 30)]);
        apply(&mut cluster, &[change(Some(45), &[], &["b"])]);
        apply(&mut cluster, &[change(None, &[sample("b", None)], &[])]);
        assert_eq!(timestamps(&cluster), [("a", 45), ("b", 45)]);
        apply(&mut cluster, &[change(Some(60), &[], &[])]);
        assert_eq!(timestamps(&cluster), [("a", 60), ("b", 60)]);
    }

    #[test]
    fn all_samples_share_one_window() {
        let mut cluster = Cluster::default();
        let window = |seconds| {
            Change::PodMetrics(PodMetricsChange {
                window: Some(Span::from_secs(seconds)),
                set: vec![sample("a", None)],
                ..PodMetricsChange::default()
            })
        };
        apply(&mut cluster, &[template(), window(30)]);
        let seen = |cluster: &Cluster| cluster.pod_metrics().ok().map(|samples| samples[0].window);
        assert_eq!(seen(&cluster), Some(Span::from_secs(30)));
        apply(&mut cluster, &[window(60)]);
        assert_eq!(seen(&cluster), Some(Span::from_secs(60)));
    }

    #[test]
    fn the_scale_keeps_its_replicas_until_a_write() {
        let mut cluster = Cluster::default();
        let scale = |replicas, status_replicas| {
            Change::SetScale(ScaleTarget {
                resource: "deployments.apps".into(),
                name: "web".into(),
                replicas,
                status_replicas,
                selector: "app=web".into(),
            })
        };
        let replicas = |cluster: &Cluster| {
            let scale = cluster.scale("deployments.apps", "web");
            scale
                .get(|| "deployments.apps".to_owned())
                .map(|scale| (scale.replicas, scale.status_replicas))
        };
        let error = cluster
            .scale("deployments.apps", "web")
            .get(|| "deployments.apps".to_owned())
            .expect_err("no scale yet");
        assert_eq!((error.code, &*error.reason), (404, "NotFound"));
        assert_eq!(&*error.message, "deployments.apps \"web\" not found");
        assert!(!cluster.write_scale("deployments.apps", "web", 5));
        apply(&mut cluster, &[scale(Some(3), 3)]);
        assert_eq!(replicas(&cluster), Ok((3, 3)));
        assert!(cluster.write_scale("deployments.apps", "web", 5));
        apply(&mut cluster, &[scale(None, 4)]);
        assert_eq!(replicas(&cluster), Ok((5, 4)));
        let fault = ApiError { code: 503, reason: "Down".to_owned(), message: "down".into() };
        let get_scale = Some(fault.clone());
        apply(&mut cluster, &[Change::Faults(Faults { get_scale, ..Faults::default() })]);
        assert_eq!(replicas(&cluster), Err(fault));
    }

    #[test]
    fn a_pod_template_must_be_defined_before_its_use() {
        let mut cluster = Cluster::default();
        let change = Change::SetPods(vec![state("a", PodPhase::Running)]);
        let error = cluster.apply(&change, &|_, _| Ok(())).expect_err("refused");
        assert_eq!(error.to_string(), "pod template \"t0\" is not defined");
        assert!(cluster.pods().is_empty());
    }

    #[test]
    fn a_status_survives_an_edit_and_ends_with_the_hpa() {
        let mut cluster = Cluster::default();
        let status = HpaStatus { desired_replicas: 4, ..HpaStatus::default() };
        assert!(!cluster.write_status("web", status.clone()));
        let spec = json!({"scaleTargetRef": {"kind": "Deployment", "name": "web"},
            "maxReplicas": 10});
        let create = Change::CreateHpa(json!({"metadata": {"name": "web"}, "spec": spec}));
        let patch = json!({"spec": {"maxReplicas": 5}});
        let name: Arc<str> = "web".into();
        apply(&mut cluster, std::slice::from_ref(&create));
        assert!(cluster.write_status("web", status.clone()));
        apply(&mut cluster, &[Change::PatchHpa { name: name.clone(), patch }]);
        let seen = |cluster: &Cluster| cluster.hpa("web").map(|h| (h.generation, h.status.clone()));
        assert_eq!(seen(&cluster), Some((2, status)));
        apply(&mut cluster, &[Change::DeleteHpa { name }]);
        assert_eq!(seen(&cluster), None);
        apply(&mut cluster, &[create]);
        assert_eq!(seen(&cluster), Some((1, HpaStatus::default())));
        assert_eq!(cluster.hpas().count(), 1);
    }
}
