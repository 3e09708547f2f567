//! Drafts of scenarios from manifests: an HPA, its target, and loads in their short form.
//!
//! A draft is the text of a scenario, which a user can edit, and which [`parse`](super::parse)
//! reads like any other. Errors in manifests are found here, at their positions in the manifest.

mod load;
mod objects;
mod pods;
mod usage;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use self::load::AFTER_THE_LAST_CHANGE;
pub use self::load::{Load, RequestOption};
pub use self::objects::ManifestFile;
use self::objects::{Object, Objects, without_server_fields};
use self::pods::{PodContainer, Pods};
use self::usage::Usage;
use super::defaults::APP;
use super::error::{Error, suggest};
use super::kinds::{API_VERSION, BUILT_IN};
use super::recording::RecordingError;
use super::resolve::{Reader, SingleHpa, single_hpa};
use super::write;
use crate::model::api::{MetricSpec, Requests};
use crate::model::quantity::Quantity;
use crate::model::time::Span;

/// What a user says in addition to the manifests.
#[derive(Clone, Debug, Default)]
pub struct DraftOptions {
    /// The HPA: `NAME` or `NAMESPACE/NAME`. None: all.
    pub hpa: Option<String>,
    /// The loads.
    pub loads: Vec<Load>,
    /// Requests, in place of those in the manifests.
    pub requests: Vec<RequestOption>,
    /// The replicas at the start, in place of those of the target.
    pub replicas: Option<i32>,
    /// The time from the creation of a pod until it is ready.
    pub startup: Option<Span>,
    /// The end. None: ten minutes after the last change of a load, or the end of a recording.
    pub until: Option<Span>,
    /// Whether the draft contains examples in place of missing values, to be edited.
    pub examples: bool,
}

/// The scenario of one HPA, or of several HPAs that scale the same target.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The name of the HPA, with its namespace if the manifest sets one.
    pub name: String,
    /// The file of the HPA.
    pub file: String,
    /// The line of the HPA in its file, from 1.
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

/// The drafts of all selected HPAs.
#[derive(Clone, Debug)]
pub struct Drafts {
    /// The drafts, in the order of the manifests.
    pub list: Vec<Draft>,
    /// Objects that no HPA refers to, as `KIND NAME`.
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

/// Drafts a scenario for each selected HPA. HPAs of the same target share a scenario. `read` reads
/// the files of recorded loads.
///
/// # Errors
/// If a manifest is invalid, there is no such HPA, or no HPA scales on the metric of a load.
pub fn draft(
    files: &[ManifestFile],
    options: &DraftOptions,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Drafts, DraftError> {
    let options = &DraftOptions { until: Some(end(options, read)?), ..options.clone() };
    let objects = Objects::read(files)?;
    let mut hpas = Vec::new();
    for object in select(&objects.hpas, files, options.hpa.as_deref())? {
        let mut object = object.clone();
        without_server_fields(&mut object.node);
        let hpa = single_hpa(&object.node).map_err(|problems| object.problems(problems))?;
        hpas.push(Hpa { namespace: object.namespace(), object, hpa });
    }
    let mut groups: Vec<Vec<Hpa>> = Vec::new();
    for hpa in hpas {
        match groups.iter_mut().find(|group| group[0].has_same_target(&hpa)) {
            Some(group) => group.push(hpa),
            None => groups.push(vec![hpa]),
        }
    }
    let mut used_objects = BTreeSet::new();
    let mut list = Vec::new();
    for group in &groups {
        let target = objects.others.iter().position(|object| group[0].scales(object));
        used_objects.extend(target);
        list.push(of_group(group, target.map(|index| &objects.others[index]), options)?);
    }
    check_loads(&list, &groups, options)?;
    let others = objects.others.iter().enumerate();
    let ignored = others.filter(|(index, _)| !used_objects.contains(index));
    let ignored =
        ignored.map(|(_, object)| format!("{} {}", object.kind(), object.name())).collect();
    Ok(Drafts { list, ignored })
}

/// A valid HPA.
struct Hpa {
    object: Object,
    namespace: Option<String>,
    hpa: SingleHpa,
}

impl Hpa {
    fn has_same_target(&self, other: &Hpa) -> bool {
        let (one, other_target) = (&self.hpa.target, &other.hpa.target);
        self.namespace == other.namespace
            && (&one.kind, &one.group, &one.name)
                == (&other_target.kind, &other_target.group, &other_target.name)
    }

    fn scales(&self, object: &Object) -> bool {
        let target = &self.hpa.target;
        let namespaces = (&self.namespace, object.namespace());
        let same_namespace = match namespaces {
            (Some(one), Some(other)) => *one == other,
            _ => true,
        };
        same_namespace
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

/// The HPAs with a name, or all.
fn select<'o>(
    hpas: &'o [Object],
    files: &[ManifestFile],
    name: Option<&str>,
) -> Result<Vec<&'o Object>, DraftError> {
    if hpas.is_empty() {
        let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
        let what = format!("there is no HorizontalPodAutoscaler in {}", names.join(", "));
        return Err(DraftError::Options { what, hint: None });
    }
    let Some(name) = name else { return Ok(hpas.iter().collect()) };
    let full = |object: &Object| {
        let namespace = object.namespace().map(|namespace| namespace + "/");
        namespace.unwrap_or_default() + &object.name()
    };
    let matches = |object: &&Object| object.name() == name || full(object) == name;
    let found: Vec<&Object> = hpas.iter().filter(matches).collect();
    let names: Vec<String> = hpas.iter().map(full).collect();
    if found.is_empty() {
        let hint = suggest(name, names.iter().map(String::as_str));
        return Err(DraftError::Options { what: format!("there is no HPA {name}"), hint });
    }
    Ok(found)
}

/// Rejects loads that no HPA scales on.
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
    let names: BTreeSet<&str> = metrics.filter_map(metric_name).collect();
    let subject = &load.subject;
    let what = if names.contains(&*subject.name) {
        format!("the labels of the load of {} match no metric of an HPA", subject.name)
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
        let end = load.end(read).map_err(|error| {
            let RecordingError { what, hint } = error;
            let hint = hint.map(|hint| hint.replace("to the scenario", "to the current folder"));
            DraftError::Options { what, hint }
        })?;
        last = last.max(end);
    }
    Ok(if last > Span::ZERO { last } else { AFTER_THE_LAST_CHANGE })
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
