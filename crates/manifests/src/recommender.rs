//! Drafts of scenarios of VPAs: the pods of a VPA's target, and the usage of their containers over
//! days.

use serde_json::{Map, Value};

use super::group::{Group, Mapped, Sources};
use super::hpa::ValidHpa;
use super::load::{HpaName, Load};
use super::objects::{Object, same_namespace, without_server_fields};
use super::pods::Pods;
use super::usage::examples;
use super::{AutoscalerKind, Draft, DraftError, DraftOptions, Selected};
use kube_autoscaler_models::api::MetricSpec;
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::{ResourcePolicy, ScalingMode, UpdateMode};
use kube_lockstep_scenario::diagnostic::Diagnostic;
use kube_lockstep_scenario::error::Error;
use kube_lockstep_scenario::kinds::API_VERSION;
use kube_lockstep_scenario::node::Node;
use kube_lockstep_scenario::raw::{InitContainers, ScenarioFile, Workload};
use kube_lockstep_scenario::resolve::{SingleVpa, single_vpa};
use kube_lockstep_scenario::resolved::Metrics;
use kube_lockstep_scenario::vpa::raw::{AnyVpa, RecommenderSettings};
use kube_lockstep_scenario::write;

/// A valid VPA.
#[derive(Clone, Debug)]
pub struct ValidVpa {
    /// The manifest, without the fields that an API server adds.
    pub object: Object,
    /// The namespace. None: the manifest leaves it open.
    pub namespace: Option<String>,
    /// The values in the manifest.
    pub vpa: SingleVpa,
    /// True if the manifest has the status of a cluster.
    pub(crate) has_status: bool,
}

impl ValidVpa {
    /// Returns true if the object is the target.
    pub(crate) fn targets(&self, object: &Object) -> bool {
        let target = &self.vpa.target;
        same_namespace(self.namespace.as_ref(), object.namespace().as_ref())
            && object.kind() == target.kind
            && object.group() == self.group()
            && object.name() == *target.name
    }

    /// Returns true if its updater or its admission controller changes pods.
    #[must_use]
    pub fn changes_pods(&self) -> bool {
        self.vpa.update_mode != Some(UpdateMode::Off)
    }

    /// Returns true if an HPA has the same target.
    #[must_use]
    pub fn has_target_of(&self, hpa: &ValidHpa) -> bool {
        let (target, other) = (&self.vpa.target, &hpa.hpa.target);
        same_namespace(self.namespace.as_ref(), hpa.name.namespace.as_ref())
            && (&*other.kind, &*other.group, &*other.name)
                == (&*target.kind, self.group(), &*target.name)
    }

    /// Returns true if another VPA changes the same pods.
    fn competes_with(&self, other: &ValidVpa) -> bool {
        let (target, of_other) = (&self.vpa.target, &other.vpa.target);
        self.changes_pods()
            && other.changes_pods()
            && self.full_name() != other.full_name()
            && same_namespace(self.namespace.as_ref(), other.namespace.as_ref())
            && (&*target.kind, self.group(), &*target.name)
                == (&*of_other.kind, other.group(), &*of_other.name)
    }

    /// Adds the VPA and its recommender to a scenario.
    pub(crate) fn add_to(&self, file: &mut ScenarioFile) {
        let gate = ("feature-gates".to_owned(), "PerVPAConfig=true".into());
        let flags = self.vpa.gates.per_vpa_config.then_some(gate).into_iter().collect();
        file.recommender = RecommenderSettings { flags, start: None };
        file.vpa = Some(AnyVpa(self.vpa.manifest.clone()));
    }

    /// Returns true if the recommendation of any container depends on the usage of a resource.
    pub(super) fn reads_any(&self, pods: &Pods, resource: &str) -> bool {
        match pods.containers.as_slice() {
            [] => self.controls_any(resource) || resource == "cpu",
            containers => containers.iter().any(|it| self.reads(&it.name, resource)),
        }
    }

    /// Notes on a scenario with HPAs, these pods and loads.
    pub(super) fn notes_with_hpas(&self, pods: &Pods, loads: &[&Load]) -> Vec<String> {
        let note = format!(
            "the HPA and VPA {name} are predicted together, because the VPA changes the requests \
             of these pods; to predict one of them alone, pass --hpa NAME or --vpa {name}",
            name = self.vpa.name
        );
        let mut notes: Vec<String> = std::iter::once(note).chain(notes_on_fields(self)).collect();
        let (Some(main), Some(other)) = (pods.main_container(), pods.running().nth(1)) else {
            return notes;
        };
        let (first, second) = (&*main.name, &*other.name);
        let is_whole =
            |load: &&&Load| load.subject.is_resource() && load.subject.container.is_none();
        for load in loads.iter().filter(is_whole) {
            let resource = &load.subject.name;
            let value = examples(resource).each;
            // A total can't be combined with loads of containers.
            let instead = if load.total { "instead of the total, " } else { "" };
            notes.push(format!(
                "the load of {resource} names no container, so container {first} uses all of it, \
                 and the other containers use nothing; {instead}set a load for each container, as \
                 in --load {resource}/{first}={value} --load {resource}/{second}={value}"
            ));
        }
        notes
    }

    fn group(&self) -> &str {
        self.vpa.target.group()
    }

    /// The name and the namespace.
    #[must_use]
    pub fn full_name(&self) -> HpaName {
        HpaName { namespace: self.namespace.clone(), name: self.vpa.name.to_string() }
    }

    /// Returns true if a container has a recommendation.
    fn is_on(&self, container: &str) -> bool {
        let policy = self.vpa.policy.as_ref().and_then(|policy| policy.for_container(container));
        policy.and_then(|policy| policy.mode) != Some(ScalingMode::Off)
    }

    /// Returns true if a container has a recommendation for a resource.
    #[must_use]
    pub fn controls(&self, container: &str, resource: &str) -> bool {
        let policy = self.vpa.policy.as_ref().and_then(|policy| policy.for_container(container));
        let controlled = policy.and_then(|policy| policy.controlled_resources.as_ref());
        self.is_on(container) && controlled.is_none_or(|it| it.iter().any(|it| it == resource))
    }

    /// Returns true if the recommendation depends on the usage. The confidence in memory is that of
    /// CPU, so CPU always counts.
    pub(super) fn reads(&self, container: &str, resource: &str) -> bool {
        self.controls(container, resource) || resource == "cpu" && self.is_on(container)
    }
}

/// Removes the VPA that changes the pods of these HPAs from a list, and returns it. If there are
/// several, which is a mistake, none is removed: a scenario with an HPA has at most one VPA.
pub(super) fn take_vpa_with_hpas<'v>(
    group: &[ValidHpa],
    vpas: &mut Vec<&'v ValidVpa>,
) -> Option<&'v ValidVpa> {
    let joins = |vpa: &&&ValidVpa| {
        // Otherwise, the manifests of one scenario would be in several namespaces.
        vpa.namespace == group[0].name.namespace && vpa.has_target_of(&group[0])
    };
    let mut found = vpas.iter().enumerate().filter(|(_, vpa)| joins(vpa));
    match (found.next(), found.next()) {
        (Some((index, vpa)), None) if vpa.changes_pods() => Some(vpas.remove(index)),
        _ => None,
    }
}

/// The reason why a VPA is not in the scenario of a predicted HPA of its target, if there is one.
/// `vpas`: all that are predicted.
pub(super) fn why_predicted_alone(
    vpa: &ValidVpa,
    hpas: &[&ValidHpa],
    vpas: &[ValidVpa],
) -> Option<String> {
    let hpa = hpas.iter().find(|hpa| vpa.has_target_of(hpa))?;
    let name = &hpa.hpa.name;
    if !vpa.changes_pods() {
        return Some(format!(
            "HPA {name} has the same target, and is predicted separately: with updateMode Off, \
             the VPA does not change the requests of the pods"
        ));
    }
    if vpa.namespace != hpa.name.namespace {
        return Some(format!(
            "HPA {name} has the same target, but is predicted separately, because only one of the \
             two manifests sets a namespace: set it in both, or in neither"
        ));
    }
    let others = vpas.iter().filter(|other| other.has_target_of(hpa));
    let names: Vec<&str> = others.map(|other| &*other.vpa.name).collect();
    Some(format!(
        "HPA {name} has the same target, but is predicted separately, because several VPAs have \
         this target: {}. A target should have only one VPA; to predict one of them with the HPA, \
         pass --vpa NAME --hpa {name}",
        names.join(" and ")
    ))
}

/// Reads the manifest of a VPA.
pub(super) fn read_vpa(object: &Object) -> Result<ValidVpa, Error> {
    let has_status = object.has_status();
    let mut object = object.clone();
    without_server_fields(&mut object.node);
    let vpa = single_vpa(&object.node).map_err(|problems| object.problems(problems))?;
    Ok(ValidVpa { namespace: object.namespace(), object, vpa, has_status })
}

/// The VPAs whose manifests are valid.
pub(crate) fn readable(objects: &[Object]) -> Vec<ValidVpa> {
    objects.iter().filter_map(|object| read_vpa(object).ok()).collect()
}

/// The valid VPAs that are not predicted, because an HPA is named.
pub(crate) fn unselected(vpas: &[Object], options: &DraftOptions) -> Vec<ValidVpa> {
    if options.vpas == Selected::None { readable(vpas) } else { Vec::new() }
}

/// If recommendations are applied and no VPA is named, removes the VPAs that change no pods beside
/// HPAs, and returns their names.
pub(crate) fn leave_out_idle(
    alone: &mut Vec<&ValidVpa>,
    has_hpas: bool,
    options: &DraftOptions,
) -> Vec<String> {
    if !has_hpas || !options.applies_vpas || options.vpas != Selected::All {
        return Vec::new();
    }
    let idle = alone.extract_if(.., |vpa| !vpa.changes_pods());
    let named = |name: HpaName| {
        format!("VPA {name} with updateMode Off (to measure it, pass --vpa {name})")
    };
    idle.map(|vpa| named(vpa.full_name())).collect()
}

/// The note on an HPA that is predicted without a VPA that changes its pods.
pub(crate) fn left_out(vpa: &ValidVpa, hpa: &ValidHpa) -> Option<String> {
    let name = &vpa.vpa.name;
    (vpa.changes_pods() && vpa.has_target_of(hpa)).then(|| {
        format!(
            "this prediction does not include VPA {name}, which changes the requests of these \
             pods; to include it, add --vpa {name}"
        )
    })
}

/// The note on a VPA that is predicted without the HPA of its target.
pub(super) fn hpa_left_out(vpa: &ValidVpa, hpas: &[ValidHpa]) -> Option<String> {
    let hpa = hpas.iter().find(|hpa| vpa.changes_pods() && vpa.has_target_of(hpa))?;
    let name = &hpa.hpa.name;
    Some(format!(
        "this prediction does not include HPA {name}, which scales these pods; to include it, add \
         --hpa {name}"
    ))
}

/// The note on a VPA whose target has other VPAs. `vpas`: all of the manifests.
pub(super) fn competition(vpa: &ValidVpa, vpas: &[ValidVpa]) -> Option<String> {
    let others = vpas.iter().filter(|other| vpa.competes_with(other));
    let names: Vec<&str> = others.map(|other| &*other.vpa.name).collect();
    let have = if names.len() == 1 { "has" } else { "have" };
    (!names.is_empty()).then(|| {
        format!(
            "this prediction does not include VPA {}, which {have} the same target: of several \
             VPAs, a cluster uses the one that was created first; a target should have only one \
             VPA",
            names.join(" and VPA ")
        )
    })
}

/// The note on a VPA without an HPA.
fn keeps_requests(vpa: &ValidVpa) -> Option<String> {
    vpa.changes_pods().then(|| {
        "the pods keep their requests: for a VPA without an HPA, only `compare`, `tune` \
         and `gate` predict the updater and the admission controller"
            .to_owned()
    })
}

/// Drafts the scenario of a VPA. `hpas` are the HPAs of the manifests.
pub(crate) fn draft_vpa(
    vpa: &ValidVpa,
    target: Option<&Object>,
    hpas: &[ValidHpa],
    sources: Sources<'_>,
) -> Result<Draft, DraftError> {
    let (kind, name) = (&*vpa.vpa.target.kind, &*vpa.vpa.target.name);
    let mapped = Group { hpas: &[], vpa: Some(vpa) }.map(target, sources)?;
    let Mapped { target: found, pods, replicas, until, used_loads, missing, .. } = mapped;
    let mut notes = Vec::new();
    if replicas.is_none() && target.is_some() {
        notes.push(without_replicas(kind, name));
    }
    notes.extend(of_jobs(kind, name));
    notes.extend(notes_on_fields(vpa));
    let feedback = feedback(vpa, hpas);
    let keeps_requests = keeps_requests(vpa).filter(|_| feedback.is_none());
    notes.extend(feedback);
    notes.extend(mapped.notes.into_iter().chain(mapped.target_notes));
    let metrics = Metrics { resources: mapped.metrics.resources, ..Metrics::default() };
    let fields = fields_of(vpa, workload(&pods, name, replicas.unwrap_or(1)), metrics, until);
    Ok(Draft {
        kind: AutoscalerKind::Vpa,
        name: vpa.full_name().to_string(),
        file: vpa.object.file.clone(),
        line: vpa.object.node.line,
        notes: notes.into_iter().map(Diagnostic::from).collect(),
        notes_on_recommender: keeps_requests.into_iter().map(Diagnostic::from).collect(),
        manifest_notes: Vec::new(),
        missing,
        fields,
        until,
        used_loads,
        hpas: Vec::new(),
        vpa: Some(vpa.clone()),
        pod_spec: pods.spec(),
        target: found,
    })
}

/// The note on a target whose number of pods is not known.
fn without_replicas(kind: &str, name: &str) -> String {
    match kind {
        "DaemonSet" => format!(
            "DaemonSet {name} runs one pod per node, and the manifests do not contain the number \
             of nodes, so the scenario has 1 pod; set the number of pods with --replicas"
        ),
        _ => format!("{kind} {name} sets no replicas, so it has 1 pod; see --replicas"),
    }
}

/// The note on the pods of a Job or CronJob, which complete.
fn of_jobs(kind: &str, name: &str) -> Option<String> {
    let starts = match kind {
        "CronJob" => "the schedule starts no others",
        "Job" => "no others replace them",
        _ => return None,
    };
    Some(format!(
        "the pods of {kind} {name} run from the start to the end of the scenario: none of them \
         completes before the end, and {starts}"
    ))
}

/// Notes on the status, and on fields that require a feature gate or have no effect.
fn notes_on_fields(vpa: &ValidVpa) -> impl Iterator<Item = String> {
    let startup_boost = vpa.vpa.gates.startup_boost.then_some(
        "`startupBoost` is left out: it requires the feature gate CPUStartupBoost, and does not \
         change the recommendation",
    );
    let per_vpa_config = vpa.vpa.gates.per_vpa_config.then_some(
        "the manifest requires the feature gate PerVPAConfig, which is on in this prediction",
    );
    let ignored_by_gates = startup_boost.into_iter().chain(per_vpa_config).map(str::to_owned);
    let status = vpa.has_status.then(|| {
        let name = &vpa.vpa.name;
        format!("the status of VPA {name} is ignored: at the start, there is no recommendation")
    });
    let repeated = vpa.vpa.policy.iter().flat_map(ResourcePolicy::repeated_names);
    status.into_iter().chain(ignored_by_gates).chain(repeated.map(|name| {
        let used = if name == "*" { "last" } else { "first" };
        format!("`containerPolicies` contains several policies of {name}; the VPA uses the {used}")
    }))
}

/// The object with the template of the pods: of a CronJob, the template of its Jobs.
pub(super) fn pods_owner(target: &Object) -> Object {
    let spec = target.node.entry("spec").map(|(_, spec)| spec);
    let template: Option<&Node> =
        spec.and_then(|spec| spec.entry("jobTemplate")).map(|(_, template)| template);
    match template.filter(|_| target.kind() == "CronJob") {
        Some(template) => Object { file: target.file.clone(), node: template.clone() },
        None => target.clone(),
    }
}

fn workload(pods: &Pods, target: &str, replicas: i32) -> Workload {
    let Workload { replicas, containers, labels, .. } = pods.to_workload(target, replicas, true);
    let names = pods.init_containers.iter().map(|it| it.name.clone());
    let init_containers = InitContainers::Names(names.collect());
    Workload { replicas, labels, containers, init_containers, ..Workload::default() }
}

/// The fields of the scenario.
fn fields_of(
    vpa: &ValidVpa,
    workload: Workload,
    metrics: Metrics,
    until: Span,
) -> Map<String, Value> {
    let target = &vpa.vpa.target;
    let requirement = format!(
        "VPA {} recommends requests for the pods of {} {}.",
        vpa.vpa.name, target.kind, target.name
    );
    let mut file = ScenarioFile {
        api_version: API_VERSION.to_owned(),
        kind: "Scenario".to_owned(),
        requirement,
        workload,
        metrics,
        until: Time::ZERO + until,
        ..ScenarioFile::default()
    };
    vpa.add_to(&mut file);
    write::fields(&file)
}

/// A note if HPAs scale the pods on the resources whose requests the VPA changes.
fn feedback(vpa: &ValidVpa, hpas: &[ValidHpa]) -> Option<String> {
    if !vpa.changes_pods() {
        return None;
    }
    let mut texts = Vec::new();
    for hpa in hpas.iter().filter(|hpa| vpa.has_target_of(hpa)) {
        let mut common: Vec<&str> = hpa
            .hpa
            .metrics
            .iter()
            .filter(|metric| metric.resource.is_some() || metric.container_resource.is_some())
            .filter_map(MetricSpec::name)
            .filter(|resource| vpa.controls_any(resource))
            .collect();
        common.sort_unstable();
        common.dedup();
        if !common.is_empty() {
            texts.push(format!(
                "HPA {} scales the same pods on {}",
                hpa.hpa.name,
                common.join(" and ")
            ));
        }
    }
    if texts.is_empty() {
        return None;
    }
    let mode = vpa.vpa.update_mode.map_or("not set".to_owned(), |mode| format!("{mode:?}"));
    Some(format!(
        "{}, and the VPA changes their requests (updateMode is {mode}): each change of the \
         requests changes the utilization that the HPA reads, and each change of the replicas \
         changes the usage that the VPA reads. On a real cluster, use updateMode Off, or another \
         metric for the HPA",
        texts.join("; ")
    ))
}

impl ValidVpa {
    /// Returns true if the policy of any container includes the resource.
    #[must_use]
    pub fn controls_any(&self, resource: &str) -> bool {
        let policies = self.vpa.policy.as_ref().map_or(&[][..], |it| &it.container_policies);
        let named = policies.iter().any(|it| self.controls(&it.container_name, resource));
        named || self.controls("*", resource)
    }
}
