//! Drafts of scenarios of VPAs: the pods of a VPA's target, and the usage of their containers over
//! days.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::group::recorded_end;
use super::hpa::{Hpa, metric_name};
use super::load::{AFTER_THE_LAST_CHANGE, HpaName, Load};
use super::objects::{Object, same_namespace, without_server_fields};
use super::pods::{PodContainer, Pods};
use super::target::{
    DraftTarget, apply_requests, check_containers, check_requests_of_containers, read_target,
};
use super::units::Loaded;
use super::usage::{only_one, replaced};
use super::{AutoscalerKind, Draft, DraftError, DraftOptions, Missing, MissingValue};
use kube_autoscaler_models::api::{
    MetricSourceType, MetricSpec, MetricTarget, MetricTargetType, ResourceMetricSource,
};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::time::{Span, Time};
use kube_autoscaler_models::vpa::{ResourcePolicy, ScalingMode, UpdateMode};
use kube_lockstep_scenario::entries::Entries;
use kube_lockstep_scenario::error::Error;
use kube_lockstep_scenario::kinds::API_VERSION;
use kube_lockstep_scenario::metrics::{ResourceUsage, Signal, UsageSource};
use kube_lockstep_scenario::node::Node;
use kube_lockstep_scenario::raw::Workload;
use kube_lockstep_scenario::resolve::{Reader, SingleVpa, single_vpa, usual_pod};
use kube_lockstep_scenario::vpa::VpaWorkload;
use kube_lockstep_scenario::vpa::raw::{AnyVpa, RecommenderSettings, VpaMetrics, VpaScenarioFile};
use kube_lockstep_scenario::with_vpa::VpaFields;
use kube_lockstep_scenario::write;

/// The length of a prediction without a recorded load: the recommender remembers about eight days.
pub(super) const DAYS: Span = Span::from_mins(8 * 24 * 60);

/// The length of a prediction of an HPA and a VPA without a recorded load.
const JOINT: Span = Span::from_mins(24 * 60);

/// The resources that the recommender knows.
const RESOURCES: [&str; 2] = ["cpu", "memory"];

/// A valid VPA.
pub(crate) struct Vpa {
    pub object: Object,
    pub namespace: Option<String>,
    pub vpa: SingleVpa,
    /// Whether the manifest has the status of a cluster.
    pub has_status: bool,
}

impl Vpa {
    /// Returns true if the object is the target.
    pub(crate) fn targets(&self, object: &Object) -> bool {
        let target = &self.vpa.target;
        same_namespace(self.namespace.as_ref(), object.namespace().as_ref())
            && object.kind() == target.kind
            && object.group() == self.group()
            && object.name() == *target.name
    }

    /// Returns true if its updater or its admission controller changes pods.
    fn changes_pods(&self) -> bool {
        self.vpa.update_mode != Some(UpdateMode::Off)
    }

    /// Returns true if an HPA has the same target.
    fn has_target_of(&self, hpa: &Hpa) -> bool {
        let (target, other) = (&self.vpa.target, &hpa.hpa.target);
        same_namespace(self.namespace.as_ref(), hpa.name.namespace.as_ref())
            && (&*other.kind, &*other.group, &*other.name)
                == (&*target.kind, self.group(), &*target.name)
    }

    /// The fields of a scenario that describe the VPA and its recommender.
    pub(crate) fn fields(&self) -> VpaFields {
        let gate = ("feature-gates".to_owned(), "PerVPAConfig=true".into());
        let flags = self.vpa.gates.per_vpa_config.then_some(gate).into_iter().collect();
        let recommender = RecommenderSettings { flags, start: None };
        let vpa = Some(AnyVpa(self.vpa.manifest.clone()));
        VpaFields { vpa, recommender, ..VpaFields::default() }
    }

    /// A metric for each resource whose usage the recommender reads, unless an HPA has that metric.
    pub(super) fn usage_metrics(&self, pods: &Pods, of_hpas: &[MetricSpec]) -> Vec<MetricSpec> {
        let is_of_an_hpa = |resource: &str| {
            of_hpas.iter().any(|metric| {
                let is_resource = metric.resource.is_some() || metric.container_resource.is_some();
                is_resource && metric_name(metric) == Some(resource)
            })
        };
        let is_read = |resource: &str| match pods.containers.as_slice() {
            [] => self.controls_any(resource) || resource == "cpu",
            containers => containers.iter().any(|it| self.reads(&it.name, resource)),
        };
        let resources = RESOURCES.into_iter().filter(|it| is_read(it) && !is_of_an_hpa(it));
        resources.map(usage_metric).collect()
    }

    /// Notes on a scenario with HPAs, these pods and loads.
    pub(super) fn joint_notes(&self, pods: &Pods, loads: &[&Load]) -> Vec<String> {
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
            let (value, _) = examples(resource);
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

    pub(crate) fn full_name(&self) -> HpaName {
        HpaName { namespace: self.namespace.clone(), name: self.vpa.name.to_string() }
    }

    /// Returns true if a container has a recommendation.
    fn is_on(&self, container: &str) -> bool {
        let policy = self.vpa.policy.as_ref().and_then(|policy| policy.of_container(container));
        policy.and_then(|policy| policy.mode) != Some(ScalingMode::Off)
    }

    /// Returns true if a container has a recommendation for a resource.
    fn controls(&self, container: &str, resource: &str) -> bool {
        let policy = self.vpa.policy.as_ref().and_then(|policy| policy.of_container(container));
        let controlled = policy.and_then(|policy| policy.controlled_resources.as_ref());
        self.is_on(container) && controlled.is_none_or(|it| it.iter().any(|it| it == resource))
    }

    /// Returns true if the recommendation depends on the usage. The confidence in memory is that of
    /// CPU, so CPU always counts.
    fn reads(&self, container: &str, resource: &str) -> bool {
        self.controls(container, resource) || resource == "cpu" && self.is_on(container)
    }
}

/// The end of the prediction of a VPA: that of its recorded loads, or [`DAYS`].
fn end(options: &DraftOptions, used: &[usize], read: Reader<'_>) -> Result<Span, DraftError> {
    if let Some(until) = options.until {
        return Ok(until);
    }
    let loads = || used.iter().map(|index| &options.loads[*index]);
    if let Some(end) = recorded_end(loads(), read)? {
        return Ok(end);
    }
    let end = loads().filter_map(Load::end).max().unwrap_or(DAYS);
    // A load that changes until the usual end needs no time after it.
    let is_later = end.0 > DAYS.0 + AFTER_THE_LAST_CHANGE.0;
    Ok(if is_later { end } else { DAYS })
}

/// Removes the VPA that changes the pods of these HPAs from a list, and returns it. If there are
/// several, which is a mistake, none is removed: a scenario with an HPA has at most one VPA.
pub(super) fn take_joint<'v>(group: &[Hpa], vpas: &mut Vec<&'v Vpa>) -> Option<&'v Vpa> {
    let joins = |vpa: &&&Vpa| {
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
pub(super) fn why_not_joint(vpa: &Vpa, hpas: &[&Hpa], vpas: &[Vpa]) -> Option<String> {
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
pub(super) fn read_vpa(object: &Object) -> Result<Vpa, Error> {
    let has_status = object.has_status();
    let mut object = object.clone();
    without_server_fields(&mut object.node);
    let vpa = single_vpa(&object.node).map_err(|problems| object.problems(problems))?;
    Ok(Vpa { namespace: object.namespace(), object, vpa, has_status })
}

/// The VPAs whose manifests are valid.
pub(crate) fn readable(objects: &[Object]) -> Vec<Vpa> {
    objects.iter().filter_map(|object| read_vpa(object).ok()).collect()
}

/// The note on an HPA that is predicted without a VPA that changes its pods.
pub(crate) fn left_out(vpa: &Vpa, hpa: &Hpa) -> Option<String> {
    let name = &vpa.vpa.name;
    (vpa.changes_pods() && vpa.has_target_of(hpa)).then(|| {
        format!(
            "this prediction does not include VPA {name}, which changes the requests of these \
             pods; to include it, add --vpa {name}"
        )
    })
}

/// The note on a VPA that is predicted without the HPA of its target.
pub(super) fn hpa_left_out(vpa: &Vpa, hpas: &[Hpa]) -> Option<String> {
    let hpa = hpas.iter().find(|hpa| vpa.changes_pods() && vpa.has_target_of(hpa))?;
    let name = &hpa.hpa.name;
    Some(format!(
        "this prediction does not include HPA {name}, which scales these pods; to include it, add \
         --hpa {name}"
    ))
}

/// The note on a VPA without an HPA.
fn keeps_requests(vpa: &Vpa) -> Option<String> {
    vpa.changes_pods().then(|| {
        "the pods keep their requests: the updater and the admission controller are predicted only \
         for a VPA and an HPA with the same target"
            .to_owned()
    })
}

/// The end of the prediction of an HPA and a VPA. `of_hpa`: the end of a prediction of the HPA
/// alone. By default, the prediction is long enough that the bounds of the recommendation become
/// narrow, and pods are evicted.
pub(super) fn joint_end(until: Option<Span>, loads: &[&Load], of_hpa: Span) -> Span {
    let has_own_end = until.is_some() || loads.iter().any(|load| load.recorded().is_some());
    if has_own_end { of_hpa } else { of_hpa.max(JOINT) }
}

/// Drafts the scenario of a VPA. `hpas` are the HPAs of the manifests.
pub(crate) fn of_vpa(
    vpa: &Vpa,
    target: Option<&Object>,
    hpas: &[Hpa],
    options: &DraftOptions,
    read: Reader<'_>,
) -> Result<Draft, DraftError> {
    let (kind, name) = (&*vpa.vpa.target.kind, &*vpa.vpa.target.name);
    let pods = target.map(|target| read_target(target, AutoscalerKind::Vpa)).transpose()?;
    let mut pods = pods.unwrap_or_default();
    let names = [vpa.full_name()];
    let containers = check_containers(&pods, &format!("{kind} {name}"), &names, options)?;
    if pods.containers.is_empty() {
        pods.containers = named_containers(&options.loads);
    }
    check_requests_of_containers(&pods, &names, &options.requests)?;
    apply_requests(&mut pods, &names, &options.requests);
    let (mut missing, mut notes) = (Vec::new(), Vec::new());
    let replicas = options.replicas.or(pods.replicas);
    let most_replicas = i64::from(replicas.unwrap_or(1));
    let without_request = &usual_pod;
    let loaded = Loaded { pods: &pods, autoscalers: &names, most_replicas, without_request };
    loaded.check_units(options)?;
    if target.is_none() && options.replicas.is_none() {
        let what = format!("{kind} {name}, the target of the VPA, is not in the manifests");
        let flag = "--filename with its manifest, or --replicas 3".to_owned();
        missing.push(Missing::target(what, flag));
    } else if replicas.is_none() {
        notes.push(without_replicas(kind, name));
    }
    notes.extend(notes_on_fields(vpa));
    notes.extend(feedback(vpa, hpas).or_else(|| keeps_requests(vpa)));
    let mut usage = Usage {
        vpa,
        pods: &pods,
        loads: &options.loads,
        examples: options.examples,
        used: Vec::new(),
        missing,
        notes,
    };
    let resource = RESOURCES.iter().filter_map(|it| usage.of(it)).collect();
    usage.leave_out_requests(target.is_none() && options.replicas.is_none());
    let Usage { used: used_loads, missing, notes, .. } = usage;
    let until = end(options, &used_loads, read)?;
    let metrics = VpaMetrics { resource, ..VpaMetrics::default() };
    let fields = fields_of(vpa, workload(&pods, name, replicas.unwrap_or(1)), metrics, until);
    Ok(Draft {
        kind: AutoscalerKind::Vpa,
        name: vpa.full_name().to_string(),
        file: vpa.object.file.clone(),
        line: vpa.object.node.line,
        notes,
        manifest_notes: Vec::new(),
        missing,
        fields,
        until,
        used_loads,
        hpas: Vec::new(),
        has_vpa: true,
        target: DraftTarget {
            kind: kind.to_owned(),
            name: name.to_owned(),
            namespace: vpa.namespace.clone(),
            containers,
            object: target.cloned(),
        },
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

/// Notes on the status, and on fields that require a feature gate or have no effect.
fn notes_on_fields(vpa: &Vpa) -> impl Iterator<Item = String> {
    let startup_boost = vpa.vpa.gates.startup_boost.then_some(
        "`startupBoost` is left out: it requires the feature gate CPUStartupBoost, and does not \
         change the recommendation",
    );
    let per_vpa_config = vpa.vpa.gates.per_vpa_config.then_some(
        "the manifest requires the feature gate PerVPAConfig, which is on in this prediction",
    );
    let of_gates = startup_boost.into_iter().chain(per_vpa_config).map(str::to_owned);
    let status = vpa.has_status.then(|| {
        let name = &vpa.vpa.name;
        format!("the status of VPA {name} is ignored: at the start, there is no recommendation")
    });
    let repeated = vpa.vpa.policy.iter().flat_map(ResourcePolicy::repeated_names);
    status.into_iter().chain(of_gates).chain(repeated.map(|name| {
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

/// The containers that loads name.
fn named_containers(loads: &[Load]) -> Vec<PodContainer> {
    let mut containers: Vec<PodContainer> = Vec::new();
    for name in loads.iter().filter_map(|load| load.subject.container.as_deref()) {
        if !containers.iter().any(|it| *it.name == *name) {
            containers.push(PodContainer { name: name.into(), ..PodContainer::default() });
        }
    }
    containers
}

fn workload(pods: &Pods, target: &str, replicas: i32) -> VpaWorkload {
    let Workload { containers, labels, .. } = pods.to_workload(target, replicas, false);
    VpaWorkload {
        replicas: u32::try_from(replicas).unwrap_or_default(),
        labels,
        containers,
        init_containers: pods.init_containers.iter().map(|it| it.name.clone()).collect(),
        ..VpaWorkload::default()
    }
}

/// The fields of the scenario.
fn fields_of(
    vpa: &Vpa,
    workload: VpaWorkload,
    metrics: VpaMetrics,
    until: Span,
) -> Map<String, Value> {
    let VpaFields { vpa: manifest, recommender, .. } = vpa.fields();
    let target = &vpa.vpa.target;
    let requirement = format!(
        "VPA {} recommends requests for the pods of {} {}.",
        vpa.vpa.name, target.kind, target.name
    );
    write::fields(&VpaScenarioFile {
        api_version: API_VERSION.to_owned(),
        kind: "Scenario".to_owned(),
        requirement,
        recommender,
        vpa: manifest,
        workload,
        metrics,
        until: Time::ZERO + until,
        ..VpaScenarioFile::default()
    })
}

/// The usage of the containers.
struct Usage<'a> {
    vpa: &'a Vpa,
    pods: &'a Pods,
    loads: &'a [Load],
    examples: bool,
    used: Vec<usize>,
    missing: Vec<Missing>,
    notes: Vec<String>,
}

impl Usage<'_> {
    /// The usage of a resource.
    fn of(&mut self, resource: &str) -> Option<ResourceUsage> {
        let names = [self.vpa.full_name()];
        let mut loads: Vec<usize> = (0..self.loads.len())
            .filter(|index| {
                let subject = &self.loads[*index].subject;
                subject.name == resource && subject.is_of(&names) && self.pods.have(subject)
            })
            .collect();
        self.used.extend(&loads);
        // The loads of one VPA take precedence over those of all.
        let is_of_one = |index: &usize| self.loads[*index].subject.hpa.is_some();
        if loads.iter().any(is_of_one) {
            loads.retain(is_of_one);
        }
        let source = match self.pods.containers.as_slice() {
            [only] => {
                let loads = self.without_replaced(loads);
                self.of_one(resource, &loads, &only.name)?
            }
            _ => match self.of_several(resource, &loads) {
                found if found.is_empty() => return None,
                found => UsageSource::PerContainer(Entries(found.into_iter().collect())),
            },
        };
        Some(ResourceUsage::new(resource, source))
    }

    /// Leaves out a load of the pod if its only container has a load of its own.
    fn without_replaced(&mut self, mut loads: Vec<usize>) -> Vec<usize> {
        let all = self.loads;
        let subject = |index: &usize| &all[*index].subject;
        let own = loads.iter().map(subject).find_map(|it| Some((it, it.container.as_ref()?)));
        let Some((own, container)) = own else { return loads };
        let is_replaced = |index: &usize| subject(index).container.is_none();
        let notes = loads.iter().filter(|index| is_replaced(index));
        self.notes.extend(notes.map(|index| replaced(subject(index), own, container)));
        self.used.retain(|index| !(loads.contains(index) && is_replaced(index)));
        loads.retain(|index| !is_replaced(index));
        loads
    }

    /// Asks for no requests if the containers are unknown, because their manifest is missing.
    fn leave_out_requests(&mut self, are_unknown: bool) {
        self.missing.retain(|it| !are_unknown || it.value != MissingValue::Request);
    }

    /// The usage of the only container of each pod.
    fn of_one(&mut self, resource: &str, loads: &[usize], container: &str) -> Option<UsageSource> {
        let Some(last) = loads.last() else {
            if !self.vpa.reads(container, resource) {
                return None;
            }
            let (value, total) = examples(resource);
            let flag = format!(
                "--load {resource}={value} (per pod) or --load {resource}=total:{total} (shared)"
            );
            self.missing.push(Missing::load(format!("there is no load of {resource}"), flag));
            let example = Signal::Constant(Quantity::as_written(value));
            return self.examples.then_some(UsageSource::PerPod(example));
        };
        let load = &self.loads[*last];
        if let [first, _, ..] = loads {
            self.missing.push(only_one(&self.loads[*first].subject, &load.subject));
        }
        let total = self.signal(resource, container, load);
        if !load.total {
            return Some(UsageSource::PerPod(total));
        }
        let limit = self.pods.limit(resource, None);
        let note = limit.iter().map(|it| format!("a pod uses at most its cpu limit, {it}"));
        self.notes.extend(note);
        Some(UsageSource::Load { total, limit })
    }

    /// The usage of several containers, by name. A load without a container is that of the only
    /// container without a load of its own.
    fn of_several(&mut self, resource: &str, loads: &[usize]) -> BTreeMap<Arc<str>, Signal> {
        let named = |index: &&usize| self.loads[**index].subject.container.is_some();
        let (named, others): (Vec<&usize>, Vec<&usize>) = loads.iter().partition(named);
        let mut found = BTreeMap::new();
        for index in named {
            let load = &self.loads[*index];
            let Some(container) = &load.subject.container else { continue };
            if self.is_divisible(resource, load) {
                let signal = self.signal(resource, container, load);
                let other = found.insert(Arc::from(container.as_str()), (signal, &load.subject));
                self.missing.extend(other.map(|(_, other)| only_one(other, &load.subject)));
            }
        }
        let mut found: BTreeMap<Arc<str>, Signal> =
            found.into_iter().map(|(name, (signal, _))| (name, signal)).collect();
        let containers = self.pods.containers.iter().map(|it| it.name.clone());
        let read = containers.filter(|name| self.vpa.reads(name, resource));
        let open: Vec<Arc<str>> = read.filter(|name| !found.contains_key(name)).collect();
        match (others.as_slice(), open.as_slice()) {
            ([], _) => self.missing_containers(resource, &open),
            ([only], [container]) => {
                let load = &self.loads[**only];
                if self.is_divisible(resource, load) {
                    let signal = self.signal(resource, container, load);
                    found.insert(container.clone(), signal);
                }
            }
            _ => {
                let names: Vec<&str> = self.pods.containers.iter().map(|it| &*it.name).collect();
                let (value, _) = examples(resource);
                let what = format!(
                    "the load of {resource} names no container, and the pods have {}",
                    names.join(", ")
                );
                let flags = names.iter().map(|name| format!("--load {resource}/{name}={value}"));
                let flag = flags.collect::<Vec<_>>().join(" ");
                self.missing.push(Missing::load(what, flag));
            }
        }
        for container in open.into_iter().filter(|_| self.examples) {
            let example = || Signal::Constant(Quantity::as_written(examples(resource).0));
            found.entry(container).or_insert_with(example);
        }
        found
    }

    fn missing_containers(&mut self, resource: &str, open: &[Arc<str>]) {
        let (value, _) = examples(resource);
        for container in open {
            let what = format!("there is no load of {resource} of container {container}");
            let flag = format!("--load {resource}/{container}={value}");
            self.missing.push(Missing::load(what, flag));
        }
    }

    /// Asks for another load if a total would have to be divided among containers.
    fn is_divisible(&mut self, resource: &str, load: &Load) -> bool {
        if load.total {
            let (value, _) = examples(resource);
            let container = load.subject.container.as_deref().unwrap_or("CONTAINER");
            let what =
                format!("a total of {resource} is not supported for pods with several containers");
            let flag = format!("--load {resource}/{container}={value}, the usage of each pod");
            self.missing.push(Missing::load(what, flag));
        }
        !load.total
    }

    fn signal(&mut self, resource: &str, container: &str, load: &Load) -> Signal {
        let request = self.pods.request(resource, Some(container));
        if load.is_relative() && request.is_none() {
            let what = format!(
                "the load of {resource} is in percent, but container {container} requests none"
            );
            let value = if resource == "cpu" { "500m" } else { "512Mi" };
            let flag = format!("--request {resource}/{container}={value}");
            self.missing.push(Missing::request(what, flag));
        }
        load.signal_of_whole(request)
    }
}

/// A metric without a target, for the usage of a resource.
fn usage_metric(resource: &str) -> MetricSpec {
    let target = MetricTarget {
        type_: MetricTargetType::AverageValue,
        value: None,
        average_value: None,
        average_utilization: None,
    };
    MetricSpec {
        type_: MetricSourceType::Resource,
        resource: Some(ResourceMetricSource { name: resource.into(), target }),
        container_resource: None,
        pods: None,
        object: None,
        external: None,
    }
}

/// Examples of the usage of a pod, and of all pods.
fn examples(resource: &str) -> (&'static str, &'static str) {
    if resource == "cpu" { ("300m", "8") } else { ("200Mi", "8Gi") }
}

/// A note if HPAs scale the pods on the resources whose requests the VPA changes.
fn feedback(vpa: &Vpa, hpas: &[Hpa]) -> Option<String> {
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
            .filter_map(metric_name)
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

impl Vpa {
    /// Returns true if the policy of any container includes the resource.
    fn controls_any(&self, resource: &str) -> bool {
        let policies = self.vpa.policy.as_ref().map_or(&[][..], |it| &it.container_policies);
        let named = policies.iter().any(|it| self.controls(&it.container_name, resource));
        named || self.controls("*", resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_joint_prediction_lasts_a_day_unless_its_end_is_given_or_recorded() {
        let (short, long) = (Span::from_mins(10), Span::from_mins(48 * 60));
        let load = |text: &str| text.parse::<Load>().expect("a load");
        let (constant, recorded) = (load("cpu=300m"), load("cpu=total:csv(load.csv)"));
        assert_eq!(joint_end(None, &[&constant], short), JOINT);
        assert_eq!(joint_end(None, &[&constant], long), long);
        assert_eq!(joint_end(None, &[&constant, &recorded], short), short);
        assert_eq!(joint_end(Some(short), &[&constant], short), short);
    }
}
