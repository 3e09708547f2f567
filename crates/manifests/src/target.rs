//! The targets of autoscalers: their manifests, and the containers and requests of their pods.

use std::collections::BTreeSet;
use std::fmt;

use super::hpa::ValidHpa;
use super::load::{HpaName, Load, RequestOption};
use super::objects::Object;
use super::pods::{PodContainer, Pods};
use super::select::{ONE_OF_A_NAME, Values, among};
use super::{AutoscalerKind, Draft, DraftError, DraftOptions, Missing, MissingValue};
use super::{recommender, usage, validation};
use kube_autoscaler_models::api::MetricSpec;
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::time::Span;
use kube_lockstep_scenario::defaults::APP;
use kube_lockstep_scenario::diagnostic::Diagnostic;
use kube_lockstep_scenario::error::{Error, similar};
use kube_lockstep_scenario::kinds::BUILT_IN;

/// The target of a draft, for messages.
#[derive(Clone, Debug)]
pub(super) struct DraftTarget {
    pub(super) kind: String,
    pub(super) name: String,
    /// The namespace of the autoscaler.
    pub(super) namespace: Option<String>,
    /// Its containers. Empty: they are unknown, because the manifest is missing.
    pub(super) containers: Vec<String>,
    /// Its manifest.
    pub(super) object: Option<Object>,
}

/// `Deployment web`.
impl fmt::Display for DraftTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

impl Draft {
    /// If the target is missing, the message names the object that is probably meant.
    pub(super) fn suggest_target(&mut self, others: &[Object]) {
        let Draft { kind: of, missing, target, .. } = self;
        let is_target = |missing: &&mut Missing| missing.value == MissingValue::Target;
        if target.object.is_some() {
            return;
        }
        let Some(missing) = missing.iter_mut().find(is_target) else { return };
        let same_kind = || others.iter().filter(|object| object.kind() == target.kind);
        let same_name = same_kind().find(|object| object.name() == target.name);
        if let Some((object, namespace)) = same_name.zip(target.namespace.as_ref()) {
            let (other, place) = (object.namespace().unwrap_or_default(), object.place());
            missing.what = format!(
                "{target} is in namespace {other} ({place}), but the {of} is in {namespace}"
            );
            return;
        }
        let is_scalable = |kind: &str| BUILT_IN.iter().any(|known| known.kind == kind);
        let other_kind = others
            .iter()
            .find(|object| object.name() == target.name && is_scalable(&object.kind()));
        if let Some(other) = other_kind {
            let (kind, place) = (other.kind(), other.place());
            missing.what.push_str(&format!(": did you mean {kind} {} ({place})?", target.name));
            return;
        }
        let names: Vec<String> = same_kind().map(Object::name).collect();
        if let Some(hint) = similar(&target.name, names.iter().map(String::as_str)) {
            missing.what.push_str(&format!(": {hint}"));
        }
    }
}

/// The index of the target of an autoscaler among the other objects. A target in the namespace of
/// the autoscaler takes precedence over one whose manifest leaves the namespace open.
pub(super) fn find_target(
    objects: &[Object],
    namespace: Option<&String>,
    is_target: impl Fn(&Object) -> bool,
) -> Result<Option<usize>, DraftError> {
    let mut found: Vec<usize> =
        (0..objects.len()).filter(|index| is_target(&objects[*index])).collect();
    let is_exact = |index: &usize| objects[*index].namespace().as_ref() == namespace;
    if found.iter().any(is_exact) {
        found.retain(is_exact);
    }
    let [first, second, ..] = found[..] else { return Ok(found.first().copied()) };
    let (first, second) = (&objects[first], &objects[second]);
    let what = format!("{} {} is also in {}", second.kind(), second.full_name(), first.place());
    let hint = match first.namespace() == second.namespace() {
        true => ONE_OF_A_NAME,
        false => "set the namespace of the autoscaler, or leave out the other one",
    };
    let problem = Diagnostic::new(what).at_node(&second.node).hint(hint);
    Err(second.problems(vec![problem]).into())
}

/// Reads the pods of the target of an autoscaler of this kind. If the kind of the target is not
/// built in and its pods can't be read, the pods are unknown.
pub(super) fn read_target(target: &Object, of: AutoscalerKind) -> Result<Pods, Error> {
    validation::check(target)?;
    let (kind, is_vpa) = (target.kind(), of == AutoscalerKind::Vpa);
    let is_known = BUILT_IN.iter().any(|known| known.kind == kind) || is_vpa && kind == "CronJob";
    let pods = match of {
        AutoscalerKind::Hpa => Pods::read(target),
        AutoscalerKind::Vpa => Pods::read(&recommender::pods_owner(target)),
    };
    if is_known { pods } else { Ok(pods.unwrap_or_default()) }
}

/// The missing values if the target is missing. Missing requests become part of the target's entry,
/// because its manifest would contain them.
pub(super) fn missing_target(
    target: &DraftTarget,
    of: AutoscalerKind,
    missing_usage: Vec<Missing>,
) -> Vec<Missing> {
    let is_request = |missing: &Missing| {
        matches!(missing.value, MissingValue::Request { .. } | MissingValue::RequestOfLoad)
    };
    let (requests, others): (Vec<Missing>, Vec<Missing>) =
        missing_usage.into_iter().partition(is_request);
    let requests: BTreeSet<&str> = requests.iter().map(|request| &*request.flag).collect();
    let requests: String = requests.iter().map(|flag| format!(" {flag}")).collect();
    let (relation, replicas) = match of {
        AutoscalerKind::Hpa => ("which the HPA scales", "--replicas 3 (at the start)"),
        AutoscalerKind::Vpa => ("the target of the VPA", "--replicas 3"),
    };
    let what = format!("{target}, {relation}, is not in the manifests");
    let flag = format!("--filename with its manifest, or {replicas}{requests}");
    std::iter::once(Missing::target(what, flag)).chain(others).collect()
}

/// A note on a target without a namespace, which is assumed to be in that of the HPA.
pub(super) fn namespace_note(hpa: &ValidHpa, target: Option<&Object>) -> Option<String> {
    let namespaces = (hpa.name.namespace.as_ref(), target?.namespace());
    let (one, other) = (&hpa.hpa.name, &hpa.hpa.target.name);
    let kind = &hpa.hpa.target.kind;
    match namespaces {
        (Some(namespace), None) => Some(format!(
            "{kind} {other} sets no namespace, and is assumed to be in {namespace} like HPA {one}"
        )),
        (None, Some(namespace)) => Some(format!(
            "{kind} {other} is in namespace {namespace}; HPA {one} sets none, and is assumed to be \
             in the same one"
        )),
        _ => None,
    }
}

/// The time until a new pod is ready.
pub(super) fn startup(
    pods: &Pods,
    options: &DraftOptions,
    notes: &mut Vec<String>,
) -> Option<Span> {
    if options.startup.is_some() {
        return options.startup;
    }
    let Some((delay, source)) = &pods.delay else {
        let why = "no probe has initialDelaySeconds";
        notes.push(format!("new pods are ready at once ({why}); see --startup"));
        return None;
    };
    notes.push(format!("new pods are ready after {delay} ({source}); see --startup"));
    Some(*delay)
}

/// Checks that the containers of loads and requests of these autoscalers exist, if the manifest of
/// the target is known. Returns the containers.
pub(super) fn check_containers(
    pods: &Pods,
    target: &str,
    hpas: &[HpaName],
    values: &Values,
) -> Result<Vec<String>, DraftError> {
    let known: Vec<String> = pods.container_names().collect();
    if pods.containers.is_empty() {
        return Ok(Vec::new());
    }
    let subjects_of_hpas = values.subjects().filter(|it| it.hpa.is_some() && it.is_of(hpas));
    let mut named = subjects_of_hpas.filter_map(|subject| subject.container.as_deref());
    let all = [&known[..], &values.other_containers].concat();
    match named.find(|container| all.iter().all(|it| it != container)) {
        None => Ok(known),
        Some(unknown) => Err(no_container(unknown, target, &all)),
    }
}

fn no_container(unknown: &str, target: &str, known: &[String]) -> DraftError {
    let what = format!("{target} has no container {unknown}");
    let hint = among(unknown, "it has", known.iter().map(String::as_str));
    DraftError::Options(Diagnostic::new(what).with_hint(hint))
}

/// Checks that the containers of loads and requests of all autoscalers exist in one of the targets,
/// if all of these are known.
pub(super) fn check_containers_of_all(drafts: &[Draft], values: &Values) -> Result<(), DraftError> {
    if drafts.iter().any(|draft| draft.target.containers.is_empty()) {
        return Ok(());
    }
    let shared_subjects = values.subjects().filter(|subject| subject.hpa.is_none());
    let mut named = shared_subjects.filter_map(|subject| subject.container.as_deref());
    let own = drafts.iter().flat_map(|draft| &draft.target.containers);
    let exists =
        |container: &str| own.clone().chain(&values.other_containers).any(|it| it == container);
    let Some(unknown) = named.find(|container| !exists(container)) else { return Ok(()) };
    if let [only] = drafts {
        return Err(no_container(unknown, &only.target.to_string(), &only.target.containers));
    }
    let known: BTreeSet<&str> =
        drafts.iter().flat_map(|draft| &draft.target.containers).map(String::as_str).collect();
    let what = format!("no target has a container {unknown}");
    let hint = among(unknown, "the containers are", known);
    Err(DraftError::Options(Diagnostic::new(what).with_hint(hint)))
}

/// Rejects requests without a container if the pods have several: a VPA changes the request of each
/// container.
pub(super) fn check_requests_of_containers(
    pods: &Pods,
    autoscalers: &[HpaName],
    requests: &[RequestOption],
) -> Result<(), DraftError> {
    let mut running = pods.running();
    let (Some(first), Some(_)) = (running.next(), running.next()) else { return Ok(()) };
    let is_of_pod =
        |it: &&RequestOption| it.subject.is_of(autoscalers) && it.subject.container.is_none();
    let Some(RequestOption { subject, quantity }) = requests.iter().find(is_of_pod) else {
        return Ok(());
    };
    let what = format!(
        "--request {subject}={quantity} names no container, but the pods have several, and a VPA \
         changes the request of each"
    );
    let hint = format!("name the container: --request {subject}/{}={quantity}", first.name);
    Err(DraftError::Options(Diagnostic::new(what).hint(hint)))
}

/// The containers that loads name.
pub(super) fn named_containers(loads: &[Load]) -> Vec<PodContainer> {
    let mut containers: Vec<PodContainer> = Vec::new();
    for name in loads.iter().filter_map(|load| load.subject.container.as_deref()) {
        if !containers.iter().any(|it| *it.name == *name) {
            containers.push(PodContainer { name: name.into(), ..PodContainer::default() });
        }
    }
    containers
}

/// Sets the requests of the options. A request of a pod replaces those of all its containers.
pub(super) fn apply_requests(pods: &mut Pods, hpas: &[HpaName], requests: &[RequestOption]) {
    if pods.containers.is_empty() {
        pods.containers.push(PodContainer { name: APP.into(), ..PodContainer::default() });
    }
    for RequestOption { subject, quantity } in requests.iter().filter(|it| it.subject.is_of(hpas)) {
        // The text was checked when the option was read.
        let Ok(quantity) = Quantity::parse(quantity) else { continue };
        let all = pods.containers.iter_mut().chain(&mut pods.init_containers);
        match &subject.container {
            Some(name) => {
                for container in all.filter(|it| *it.name == **name) {
                    container.requests.insert((&*subject.name).into(), quantity.clone());
                }
            }
            None => {
                pods.requests.remove(&*subject.name);
                for (index, container) in all.enumerate() {
                    let zero = Quantity::from_milli(0, Format::DecimalSI);
                    let value = if index == 0 { quantity.clone() } else { zero };
                    container.requests.insert((&*subject.name).into(), value);
                }
            }
        }
    }
}

/// Adds requests for the metrics that need some: those of a container need only its own.
pub(super) fn fill_requests<'m>(
    pods: &mut Pods,
    metrics: impl Iterator<Item = &'m MetricSpec> + Clone,
) {
    let pod_targets = metrics.clone().filter_map(|it| it.resource.as_ref());
    let pod_targets = pod_targets.filter(|it| !pods.requests.contains_key(&it.name));
    let pod_targets = pod_targets.map(|it| (&it.name, &it.target, None));
    let container_targets = metrics.filter_map(|it| it.container_resource.as_ref());
    let container_targets = container_targets.map(|it| (&it.name, &it.target, Some(&it.container)));
    for (resource, target, only) in pod_targets.chain(container_targets) {
        let sidecars = pods.init_containers.iter_mut().filter(|init| init.sidecar);
        let containers = pods.containers.iter_mut().chain(sidecars);
        let is_needed = target.average_utilization.is_some();
        for it in containers.filter(|it| is_needed && only.is_none_or(|name| it.name == *name)) {
            let example = || usage::example_request(resource);
            it.requests.entry(resource.clone()).or_insert_with(example);
        }
    }
}
