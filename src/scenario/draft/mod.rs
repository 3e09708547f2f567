//! Drafts of scenarios from manifests: an HPA or a VPA, its target, and loads in their short form.
//!
//! A draft is the text of a scenario, which a user can edit, and which [`parse`](super::parse)
//! reads like any other. Errors in manifests are found here, at their positions in the manifest.

mod load;
mod objects;
mod pods;
mod recommender;
mod usage;

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value, json};

use self::load::AFTER_THE_LAST_CHANGE;
pub use self::load::{Load, RequestOption, days_as_hours};
pub use self::objects::ManifestFile;
use self::objects::{Object, Objects, same_namespace, without_server_fields};
use self::pods::{PodContainer, Pods};
use self::recommender::Vpa;
use self::usage::Usage;
use super::defaults::APP;
use super::error::{Error, suggest};
use super::kinds::{API_VERSION, BUILT_IN};
use super::recording::RecordingError;
use super::resolve::{Reader, SingleHpa, single_hpa, single_vpa};
use super::write;
use crate::model::api::{MetricSpec, Requests};
use crate::model::quantity::Quantity;
use crate::model::time::Span;

/// What a user says in addition to the manifests.
#[derive(Clone, Debug, Default)]
pub struct DraftOptions {
    /// The HPAs to predict.
    pub hpas: Selected,
    /// The VPAs to predict.
    pub vpas: Selected,
    /// The loads.
    pub loads: Vec<Load>,
    /// Requests, in place of those in the manifests.
    pub requests: Vec<RequestOption>,
    /// The replicas at the start, in place of those of the target.
    pub replicas: Option<i32>,
    /// The time from the creation of a pod until it is ready.
    pub startup: Option<Span>,
    /// The end. None: the end of a recorded load; otherwise ten minutes after the last change of a
    /// load for HPAs, and eight days for VPAs.
    pub until: Option<Span>,
    /// Whether the draft contains examples in place of missing values, to be edited.
    pub examples: bool,
}

/// The autoscalers of one kind to predict.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Selected {
    /// All.
    #[default]
    All,
    /// The one with this name: `NAME` or `NAMESPACE/NAME`.
    Named(String),
    /// None, because one of another kind is named.
    None,
    /// None, because this kind is not supported.
    Unsupported,
}

/// The kind of an autoscaler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A HorizontalPodAutoscaler.
    Hpa,
    /// A VerticalPodAutoscaler.
    Vpa,
}

/// `HPA`, `VPA`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Hpa => "HPA",
            Kind::Vpa => "VPA",
        })
    }
}

/// The scenario of one HPA, of several HPAs that scale the same target, or of one VPA.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The kind of the autoscaler.
    pub kind: Kind,
    /// The name of the autoscaler, with its namespace if the manifest sets one.
    pub name: String,
    /// The file of the autoscaler.
    pub file: String,
    /// The line of the autoscaler in its file, from 1.
    pub line: usize,
    /// Assumptions that a reader should know.
    pub notes: Vec<String>,
    /// Values that the prediction depends on, and that neither manifests nor options contain.
    pub missing: Vec<Missing>,
    fields: Map<String, Value>,
    used_loads: Vec<usize>,
}

/// A missing value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Missing {
    /// The problem.
    pub what: String,
    /// The flag that gives the value.
    pub flag: String,
}

/// The drafts of all selected autoscalers.
#[derive(Clone, Debug)]
pub struct Drafts {
    /// The drafts, first those of HPAs, in the order of the manifests.
    pub list: Vec<Draft>,
    /// Objects that no autoscaler refers to, as `KIND NAME`.
    pub ignored: Vec<String>,
}

/// Why manifests give no scenario.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DraftError {
    /// A manifest is invalid.
    #[error(transparent)]
    Invalid(#[from] Error),
    /// The manifests do not fit the options.
    #[error("{what}")]
    Options {
        /// The problem.
        what: String,
        /// The solution.
        hint: Option<String>,
    },
}

impl Draft {
    /// The scenario as YAML.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        write::document(&self.fields)
    }
}

/// Drafts a scenario for each selected VPA, and for each selected HPA; HPAs of the same target
/// share a scenario. `read` reads the files of recorded loads.
///
/// # Errors
/// If a manifest is invalid, there is no such autoscaler, or none uses the metric of a load.
pub fn draft(
    files: &[ManifestFile],
    options: &DraftOptions,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Drafts, DraftError> {
    let objects = Objects::read(files)?;
    check_kinds(&objects, files, options)?;
    let (mut used_objects, mut list) = (BTreeSet::new(), Vec::new());
    let hpas = select(&objects.hpas, &options.hpas, Kind::Hpa)?;
    let hpas = hpas.into_iter().map(Hpa::read).collect::<Result<Vec<_>, _>>()?;
    let groups = by_target(hpas);
    let of_hpas = &DraftOptions { until: Some(end(options, read)?), ..options.clone() };
    for group in &groups {
        let target = objects.others.iter().position(|object| group[0].scales(object));
        used_objects.extend(target);
        list.push(of_group(group, target.map(|index| &objects.others[index]), of_hpas)?);
    }
    let vpas = select(&objects.vpas, &options.vpas, Kind::Vpa)?;
    if let (Some(_), true) = (options.startup, list.is_empty() && !vpas.is_empty()) {
        let what = "--startup is for HPAs: the recommender of VPAs ignores start-up".to_owned();
        return Err(DraftError::Options { what, hint: Some("leave it out".to_owned()) });
    }
    // HPAs that are not predicted matter for a note only, so errors in them are ignored.
    let all_hpas: Vec<Hpa> = objects.hpas.iter().filter_map(|it| Hpa::read(it).ok()).collect();
    for object in vpas {
        let vpa = read_vpa(object)?;
        let until = Some(recommender::end(options, read)?);
        let of_vpas = &DraftOptions { until, ..options.clone() };
        let target = objects.others.iter().position(|object| vpa.targets(object));
        used_objects.extend(target);
        let target = target.map(|index| &objects.others[index]);
        list.push(recommender::of_vpa(&vpa, target, &all_hpas, of_vpas)?);
    }
    check_loads(&list, &groups, options)?;
    let others = objects.others.iter().enumerate();
    let others = others.filter(|(index, _)| !used_objects.contains(index)).map(|(_, it)| it);
    let unsupported = objects.vpas.iter().filter(|_| options.vpas == Selected::Unsupported);
    let ignored = unsupported.chain(others);
    let ignored = ignored.map(|object| format!("{} {}", object.kind(), object.name())).collect();
    Ok(Drafts { list, ignored })
}

/// Rejects manifests without an autoscaler of a supported kind.
fn check_kinds(
    objects: &Objects,
    files: &[ManifestFile],
    options: &DraftOptions,
) -> Result<(), DraftError> {
    let supports_vpas = options.vpas != Selected::Unsupported;
    if !objects.hpas.is_empty() || (supports_vpas && !objects.vpas.is_empty()) {
        return Ok(());
    }
    let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
    let kinds = match supports_vpas {
        true => "HorizontalPodAutoscaler and no VerticalPodAutoscaler",
        false => "HorizontalPodAutoscaler",
    };
    let what = format!("there is no {kinds} in {}", names.join(", "));
    let hint = match (supports_vpas, objects.vpas.first()) {
        (false, Some(_)) => Some("VPAs are not supported here; `kube-lockstep predict` has them"),
        _ => None,
    };
    Err(DraftError::Options { what, hint: hint.map(str::to_owned) })
}

/// Groups HPAs of the same target.
fn by_target(hpas: Vec<Hpa>) -> Vec<Vec<Hpa>> {
    let mut groups: Vec<Vec<Hpa>> = Vec::new();
    for hpa in hpas {
        match groups.iter_mut().find(|group| group[0].has_same_target(&hpa)) {
            Some(group) => group.push(hpa),
            None => groups.push(vec![hpa]),
        }
    }
    groups
}

/// Reads the manifest of a VPA.
fn read_vpa(object: &Object) -> Result<Vpa, DraftError> {
    let mut object = object.clone();
    without_server_fields(&mut object.node);
    let vpa = single_vpa(&object.node).map_err(|problems| object.problems(problems))?;
    Ok(Vpa { namespace: object.namespace(), object, vpa })
}

/// A valid HPA.
struct Hpa {
    object: Object,
    namespace: Option<String>,
    hpa: SingleHpa,
}

impl Hpa {
    fn read(object: &Object) -> Result<Hpa, DraftError> {
        let mut object = object.clone();
        without_server_fields(&mut object.node);
        let hpa = single_hpa(&object.node).map_err(|problems| object.problems(problems))?;
        Ok(Hpa { namespace: object.namespace(), object, hpa })
    }

    fn has_same_target(&self, other: &Hpa) -> bool {
        let (one, other_target) = (&self.hpa.target, &other.hpa.target);
        self.namespace == other.namespace
            && (&one.kind, &one.group, &one.name)
                == (&other_target.kind, &other_target.group, &other_target.name)
    }

    fn scales(&self, object: &Object) -> bool {
        let target = &self.hpa.target;
        same_namespace(self.namespace.as_ref(), object.namespace().as_ref())
            && object.kind() == target.kind
            && object.group() == target.group
            && object.name() == *target.name
    }

    fn full_name(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.hpa.name),
            None => self.hpa.name.to_string(),
        }
    }
}

/// The selected autoscalers of a kind.
fn select<'o>(
    objects: &'o [Object],
    selected: &Selected,
    kind: Kind,
) -> Result<Vec<&'o Object>, DraftError> {
    let name = match selected {
        Selected::All => return Ok(objects.iter().collect()),
        Selected::None | Selected::Unsupported => return Ok(Vec::new()),
        Selected::Named(name) => name,
    };
    let matches = |object: &&Object| object.name() == *name || object.full_name() == *name;
    let found: Vec<&Object> = objects.iter().filter(matches).collect();
    let names: Vec<String> = objects.iter().map(Object::full_name).collect();
    if found.is_empty() {
        let hint = suggest(name, names.iter().map(String::as_str));
        return Err(DraftError::Options { what: format!("there is no {kind} {name}"), hint });
    }
    Ok(found)
}

/// Rejects loads that no autoscaler uses.
fn check_loads(
    drafts: &[Draft],
    groups: &[Vec<Hpa>],
    options: &DraftOptions,
) -> Result<(), DraftError> {
    let used: BTreeSet<usize> =
        drafts.iter().flat_map(|draft| draft.used_loads.iter().copied()).collect();
    let Some((_, load)) = options.loads.iter().enumerate().find(|(index, _)| !used.contains(index))
    else {
        return Ok(());
    };
    let metrics = groups.iter().flatten().flat_map(|hpa| &hpa.hpa.metrics);
    let mut names: BTreeSet<&str> = metrics.filter_map(metric_name).collect();
    let has_vpa = drafts.iter().any(|draft| draft.kind == Kind::Vpa);
    if has_vpa {
        names.extend(["cpu", "memory"]);
    }
    let subject = &load.subject;
    let what = if names.contains(&*subject.name) {
        format!("the labels of the load of {} match no metric of an HPA", subject.name)
    } else if groups.is_empty() {
        format!("a VPA has no use for {}, which has a load", subject.name)
    } else {
        format!("no HPA scales on {}, which has a load", subject.name)
    };
    Err(DraftError::Options { what, hint: suggest(&subject.name, names) })
}

fn metric_name(metric: &MetricSpec) -> Option<&str> {
    let resource = metric.resource.as_ref().map(|it| &*it.name);
    let container = metric.container_resource.as_ref().map(|it| &*it.name);
    let pods = metric.pods.as_ref().map(|it| &*it.metric.name);
    let object = metric.object.as_ref().map(|it| &*it.metric.name);
    let external = metric.external.as_ref().map(|it| &*it.metric.name);
    resource.or(container).or(pods).or(object).or(external)
}

/// Drafts the scenario of HPAs that scale the same target.
fn of_group(
    group: &[Hpa],
    target: Option<&Object>,
    options: &DraftOptions,
) -> Result<Draft, DraftError> {
    let first = &group[0];
    let (kind, name) = (&first.hpa.target.kind, &*first.hpa.target.name);
    let built_in = BUILT_IN.iter().any(|known| known.kind == *kind);
    let mut pods = match target.map(Pods::read) {
        Some(Err(error)) if built_in => return Err(error.into()),
        Some(Ok(pods)) => pods,
        Some(Err(_)) | None => Pods::default(),
    };
    let (mut missing, mut notes) = (Vec::new(), Vec::new());
    check_containers(&pods, kind, name, options)?;
    apply_requests(&mut pods, &options.requests);
    let metric_specs: Vec<_> = group.iter().flat_map(|hpa| hpa.hpa.metrics.clone()).collect();
    let mut usage = Usage::new(&options.loads, &mut pods, options.examples);
    let metrics = usage.of(&metric_specs);
    let used_loads = std::mem::take(&mut usage.used);
    let (of_usage, more_notes) = (std::mem::take(&mut usage.missing), usage.notes);
    let replicas = options.replicas.or(pods.replicas);
    if target.is_none() && options.replicas.is_none() {
        let what = format!("{kind} {name}, which the HPA scales, is not in the manifests");
        let flag = "--filename with its manifest, or --replicas 3 (at the start)".to_owned();
        missing.push(Missing { what, flag });
    } else if replicas.is_none() {
        notes.push(format!("{kind} {name} sets no replicas, so it starts with 1; see --replicas"));
    }
    missing.extend(of_usage);
    notes.extend(more_notes);
    let mut workload = Map::new();
    workload.insert("replicas".to_owned(), replicas.unwrap_or(1).into());
    let fields = pods.to_fields(name);
    workload.extend(fields.into_iter().map(|(name, value)| (name.to_owned(), value)));
    if let Some(ready) = startup(&pods, options, &mut notes) {
        workload.insert("startup".to_owned(), json!({ "ready": ready.to_string() }));
    }
    if kind == "StatefulSet" {
        workload.insert("scaleDownOrder".to_owned(), json!("newest"));
    }
    if options.examples {
        fill_requests(&mut workload, &metric_specs);
    }
    missing.dedup();
    Ok(Draft {
        kind: Kind::Hpa,
        name: first.full_name(),
        file: first.object.file.clone(),
        line: first.object.node.line,
        notes,
        missing,
        fields: fields_of(group, workload, metrics, options.until.unwrap_or_default()),
        used_loads,
    })
}

/// The fields of the scenario.
fn fields_of(
    group: &[Hpa],
    workload: Map<String, Value>,
    metrics: Value,
    until: Span,
) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("apiVersion", json!(API_VERSION));
    put("kind", json!("Scenario"));
    put("requirement", json!(requirement(group)));
    match group {
        [only] => put("hpa", only.hpa.manifest.clone()),
        several => put("hpas", several.iter().map(|hpa| hpa.hpa.manifest.clone()).collect()),
    };
    put("workload", workload.into());
    put("metrics", metrics);
    put("until", json!(until.to_string()));
    fields
}

/// `HPA web scales Deployment web from 2 to 10 replicas.`
fn requirement(group: &[Hpa]) -> String {
    let target = &group[0].hpa.target;
    let names: Vec<&str> = group.iter().map(|hpa| &*hpa.hpa.name).collect();
    let (subject, verb) = match names.as_slice() {
        [only] => (format!("HPA {only}"), "scales"),
        several => (format!("HPAs {}", several.join(", ")), "scale"),
    };
    let least = group.iter().map(|hpa| hpa.hpa.min_replicas).min().unwrap_or(1);
    let most = group.iter().map(|hpa| hpa.hpa.max_replicas).max().unwrap_or(1);
    format!("{subject} {verb} {} {} from {least} to {most} replicas.", target.kind, target.name)
}

/// The time until a new pod is ready.
fn startup(pods: &Pods, options: &DraftOptions, notes: &mut Vec<String>) -> Option<Span> {
    if options.startup.is_some() {
        return options.startup;
    }
    let (delay, source) = pods.delay.as_ref()?;
    notes.push(format!("new pods are ready after {delay} ({source}); see --startup"));
    Some(*delay)
}

fn end(options: &DraftOptions, read: Reader<'_>) -> Result<Span, DraftError> {
    if let Some(until) = options.until {
        return Ok(until);
    }
    let mut last = Span::ZERO;
    for load in &options.loads {
        last = last.max(end_of(load, read)?);
    }
    Ok(if last > Span::ZERO { last } else { AFTER_THE_LAST_CHANGE })
}

/// The end of a prediction of an HPA that shows the load.
fn end_of(load: &Load, read: Reader<'_>) -> Result<Span, DraftError> {
    load.end(read).map_err(|error| {
        let RecordingError { what, hint } = error;
        let hint = hint.map(|hint| hint.replace("to the scenario", "to the current folder"));
        DraftError::Options { what, hint }
    })
}

/// Checks that the containers of loads and requests exist, if the manifest of the target is known.
fn check_containers(
    pods: &Pods,
    kind: &str,
    name: &str,
    options: &DraftOptions,
) -> Result<(), DraftError> {
    if pods.containers.is_empty() {
        return Ok(());
    }
    let of_loads = options.loads.iter().map(|load| &load.subject);
    let of_requests = options.requests.iter().map(|request| &request.subject);
    let named = of_loads.chain(of_requests).filter_map(|subject| subject.container.as_deref());
    let known = || pods.containers.iter().chain(&pods.init_containers).map(|it| &*it.name);
    match named.into_iter().find(|container| known().all(|it| it != *container)) {
        None => Ok(()),
        Some(unknown) => {
            let what = format!("{kind} {name} has no container {unknown}");
            Err(DraftError::Options { what, hint: suggest(unknown, known()) })
        }
    }
}

/// Sets the requests of the options. A request of a pod replaces those of all its containers.
fn apply_requests(pods: &mut Pods, requests: &[RequestOption]) {
    if pods.containers.is_empty() {
        pods.containers.push(PodContainer {
            name: APP.into(),
            requests: Requests::new(),
            limits: Requests::new(),
            sidecar: false,
        });
    }
    for RequestOption { subject, quantity } in requests {
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
                    let value =
                        if index == 0 { Ok(quantity.clone()) } else { Quantity::parse("0") };
                    let Ok(value) = value else { continue };
                    container.requests.insert((&*subject.name).into(), value);
                }
            }
        }
    }
}

/// Adds requests for the metrics that need some.
fn fill_requests(workload: &mut Map<String, Value>, metrics: &[MetricSpec]) {
    let of_pod = metrics.iter().filter_map(|it| it.resource.as_ref());
    let of_pod = of_pod.map(|it| (&it.name, &it.target));
    let of_containers = metrics.iter().filter_map(|it| it.container_resource.as_ref());
    let all = of_pod.chain(of_containers.map(|it| (&it.name, &it.target)));
    let Some(Value::Array(containers)) = workload.get_mut("containers") else { return };
    for (resource, _) in all.filter(|(_, target)| target.average_utilization.is_some()) {
        let example = if &**resource == "cpu" { "1" } else { "1Gi" };
        for container in containers.iter_mut() {
            if container["requests"][&**resource].is_null() {
                container["requests"][&**resource] = json!(example);
            }
        }
    }
}

#[cfg(test)]
mod tests;
