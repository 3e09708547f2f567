//! The autoscalers and workloads of manifests, for commands that make no scenarios of them.

use std::collections::BTreeMap;

use super::hpa::{ValidHpa, subject_of};
use super::load::{HpaName, Load};
use super::objects::{ManifestFile, Object, Objects, same_namespace};
use super::pods::Pods;
use super::recommender::{ValidVpa, pods_owner, read_vpa};
use super::select::{Invalid, OtherNames, check_kinds, check_names, find_autoscalers};
use super::settings::unused;
use super::target::{find_target, read_target};
use super::units::Loaded;
use super::{AutoscalerKind, DraftError, DraftOptions};
use kube_autoscaler_models::api::MetricSpec;
use kube_autoscaler_models::selector::Selector;
use kube_lockstep_scenario::resolve::usual_pod;

/// The autoscalers and workloads of manifests, and the loads of the metrics.
#[derive(Clone, Debug)]
pub struct Manifests {
    /// The HPAs, in the order of the manifests.
    pub hpas: Vec<ValidHpa>,
    /// The VPAs, in the order of the manifests.
    pub vpas: Vec<ValidVpa>,
    /// The workloads, in the order of the manifests.
    pub workloads: Vec<ValidWorkload>,
    pub(super) limit_ranges: Vec<Object>,
    pub(super) loads: Vec<Load>,
}

/// An object with pods. Its manifest is only checked if an autoscaler scales it.
#[derive(Clone, Debug)]
pub struct ValidWorkload {
    /// The manifest.
    pub object: Object,
    /// Its pods.
    pub pods: Pods,
}

/// The kinds of objects with pods, apart from targets of other kinds, each with its API group.
const KINDS: [(&str, &str); 9] = [
    ("Deployment", "apps"),
    ("ReplicaSet", "apps"),
    ("StatefulSet", "apps"),
    ("DaemonSet", "apps"),
    ("ReplicationController", ""),
    ("Pod", ""),
    ("Job", "batch"),
    ("CronJob", "batch"),
    ("Rollout", "argoproj.io"),
];

impl Manifests {
    /// Reads manifests.
    ///
    /// # Errors
    /// If a manifest is invalid, there is no autoscaler, or none uses the metric of a load.
    pub fn read(files: &[ManifestFile], loads: &[Load]) -> Result<Manifests, DraftError> {
        let mut invalid = Invalid::default();
        let manifests = Manifests::of(&Objects::read(files)?, files, loads, &mut invalid);
        invalid.check()?;
        let manifests = manifests?;
        manifests.check_loads()?;
        manifests.check_units()?;
        Ok(manifests)
    }

    /// The manifests of objects that are read from files, without the invalid ones.
    pub(crate) fn of(
        objects: &Objects,
        files: &[ManifestFile],
        loads: &[Load],
        invalid: &mut Invalid,
    ) -> Result<Manifests, DraftError> {
        let options = DraftOptions { loads: loads.to_vec(), ..DraftOptions::default() };
        check_kinds(objects, files, &options)?;
        let hpas: Vec<&Object> = objects.hpas.iter().collect();
        let vpas: Vec<&Object> = objects.vpas.iter().collect();
        invalid.note(check_names(&hpas, AutoscalerKind::Hpa))?;
        invalid.note(check_names(&vpas, AutoscalerKind::Vpa))?;
        let hpas = invalid.valid(hpas, AutoscalerKind::Hpa, ValidHpa::read, &objects.others);
        let vpas = invalid.valid(vpas, AutoscalerKind::Vpa, read_vpa, &objects.others);
        let mut workloads = Vec::new();
        for object in &objects.others {
            let is_target = hpas.iter().any(|hpa| hpa.scales(object));
            let pods = match is_target {
                true => {
                    invalid.note(read_target(object, AutoscalerKind::Hpa).map_err(Into::into))?
                }
                false => pods_of(object),
            };
            workloads.extend(pods.map(|pods| ValidWorkload { object: object.clone(), pods }));
        }
        for hpa in &hpas {
            let namespace = hpa.name.namespace.as_ref();
            let target = find_target(&objects.others, namespace, |object| hpa.scales(object));
            invalid.note(target)?;
        }
        let values = find_autoscalers(&hpas, &vpas, &OtherNames::default(), objects, &options);
        let is_limit_range = |object: &&Object| object.kind() == "LimitRange";
        let limit_ranges = objects.others.iter().filter(is_limit_range).cloned().collect();
        Ok(Manifests { hpas, vpas, workloads, limit_ranges, loads: values?.loads })
    }

    /// The target of an HPA. One in its namespace takes precedence over one whose manifest leaves
    /// the namespace open.
    #[must_use]
    pub fn target(&self, hpa: &ValidHpa) -> Option<&ValidWorkload> {
        let targets = || self.workloads.iter().filter(|it| hpa.scales(&it.object));
        let mut exact = targets().filter(|it| it.object.namespace() == hpa.name.namespace);
        exact.next().or_else(|| targets().next())
    }

    /// The load of a metric of an HPA. A load that names the HPA, or the labels of the metric,
    /// takes precedence.
    #[must_use]
    pub fn load(&self, hpa: &ValidHpa, metric: &MetricSpec) -> Option<&Load> {
        let subject = subject_of(metric)?;
        let matches = |load: &&Load| {
            let of = &load.subject;
            of.is_of(std::slice::from_ref(&hpa.name))
                && (&of.name, &of.container) == (&subject.name, &subject.container)
                && (of.labels.is_empty() || of.labels == subject.labels)
        };
        let loads = self.loads.iter().filter(matches);
        loads.max_by_key(|load| (load.subject.hpa.is_some(), !load.subject.labels.is_empty()))
    }

    /// Returns true if a LimitRange gives containers in this namespace a request of a resource.
    #[must_use]
    pub fn has_default_request(&self, namespace: Option<&String>, resource: &str) -> bool {
        let gives = |range: &&Object| {
            let has = |index: usize, field: &str| {
                range.field(&format!("spec.limits.{index}.{field}.{resource}")).is_some()
            };
            let mut limits =
                (0..).take_while(|index| range.field(&format!("spec.limits.{index}")).is_some());
            same_namespace(namespace, range.namespace().as_ref())
                && limits.any(|index| has(index, "defaultRequest") || has(index, "default"))
        };
        self.limit_ranges.iter().any(|range| gives(&range))
    }

    /// Rejects loads whose unit seems to be wrong.
    fn check_units(&self) -> Result<(), DraftError> {
        for ValidWorkload { object, pods } in &self.workloads {
            let hpas = || self.hpas.iter().filter(|hpa| hpa.scales(object));
            let vpas = self.vpas.iter().filter(|vpa| vpa.targets(object));
            let most = hpas().map(|hpa| hpa.hpa.max_replicas).max();
            let most_replicas = i64::from(most.or(pods.replicas).unwrap_or(1));
            let names = hpas().map(|hpa| hpa.name.clone());
            let names: Vec<HpaName> = names.chain(vpas.map(ValidVpa::full_name)).collect();
            let without_request = |resource: &str| usual_pod(resource).filter(|_| most.is_none());
            if !names.is_empty() {
                let autoscalers = &names[..];
                Loaded { pods, autoscalers, most_replicas, without_request: &without_request }
                    .check_units(&self.loads)?;
            }
        }
        Ok(())
    }

    /// Rejects loads of metrics that no autoscaler has.
    fn check_loads(&self) -> Result<(), DraftError> {
        let has_vpa = !self.vpas.is_empty();
        let is_used = |load: &&Load| {
            let of = &load.subject;
            let hpas = self.hpas.iter().filter(|hpa| of.is_of(std::slice::from_ref(&hpa.name)));
            let mut metrics = hpas.flat_map(|hpa| &hpa.hpa.metrics);
            has_vpa && of.is_resource()
                || metrics.any(|metric| {
                    let labels = subject_of(metric).map(|it| it.labels).unwrap_or_default();
                    metric.name() == Some(&of.name) && (of.labels.is_empty() || of.labels == labels)
                })
        };
        match self.loads.iter().find(|load| !is_used(load)) {
            Some(load) => {
                let hpas: Vec<&ValidHpa> = self.hpas.iter().collect();
                Err(unused(&load.subject, &hpas, has_vpa, ""))
            }
            None => Ok(()),
        }
    }
}

impl ValidWorkload {
    /// The selector of its pods. None: it is unknown.
    #[must_use]
    pub fn selector(&self) -> Option<Selector> {
        let labels = || self.pods.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let all = || labels().collect::<Vec<_>>().join(",");
        let text = self.pods.selector.clone().unwrap_or_else(all);
        Selector::parse(&text).ok().filter(|_| !text.is_empty())
    }

    /// `Deployment web`.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.object.kind(), self.object.name())
    }
}

/// The pods of an object that no HPA scales. None: it has none, or they can't be read.
fn pods_of(object: &Object) -> Option<Pods> {
    let (kind, group) = (object.kind(), object.group());
    if !KINDS.contains(&(&*kind, &*group)) {
        return None;
    }
    match &*kind {
        "Pod" => Some(Pods { labels: object.labels(), ..Pods::default() }),
        _ => Pods::read(&pods_owner(object)).ok(),
    }
}

impl Object {
    /// `metadata.labels`.
    fn labels(&self) -> BTreeMap<String, String> {
        let labels = self.field("metadata.labels").map(|labels| labels.to_json());
        labels.and_then(|labels| serde_json::from_value(labels).ok()).unwrap_or_default()
    }
}
