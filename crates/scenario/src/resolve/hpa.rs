//! The HPA's manifest: kept verbatim, and validated as by the API server.

use std::sync::Arc;

use serde_json::Value;

use super::cursor::{At, Problems};
use super::served::{self, Asked};
use super::target::Target;
use super::values::quantity;
use super::versions::Shaped;
use super::{Reader, metadata, versions};
use crate::decode::fraction;
use crate::diagnostic::{Diagnostic, Place};
use crate::error::{rejection, similar, suggest, unreadable};
use crate::manifest::{Manifest, Spec, Target as MetricTarget};
use crate::node::{Node, NodeKind};
use crate::raw::ScenarioFile;
use crate::resolved::{Autoscaler, OtherTarget};
use crate::yaml;
use kube_autoscaler_models::api::{Behavior, HpaSpec, MetricSpec};
use kube_autoscaler_models::flags::FeatureGates;
use kube_autoscaler_models::hpa::{
    ApiServer, ApiVersion, FieldError, FieldErrorType, drop_zero_totals, set_defaults, validate,
};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::rules::Rules;

/// The data of an HPA from its manifest.
struct ResolvedHpa {
    namespace: Arc<str>,
    name: Arc<str>,
    /// The HPA for the API server. None: the manifest is invalid.
    autoscaler: Option<Autoscaler>,
    /// Notes for the reader.
    note: Option<String>,
    target: Target,
    /// The index of the target among the targets of the scenario.
    target_index: usize,
    max_replicas: i32,
    /// The metrics that the HPA scales on.
    asked: Vec<Asked>,
}

/// The HPAs of a scenario.
#[derive(Default)]
pub(super) struct Hpas {
    list: Vec<ResolvedHpa>,
    /// The position of each HPA in the file.
    places: Vec<Place>,
}

impl Hpas {
    /// Resolves `hpa`, or each of `hpas`.
    pub(super) fn resolve(
        file: &ScenarioFile,
        at: At<'_>,
        read: Reader<'_>,
        gates: &FeatureGates,
        problems: &mut Problems,
    ) -> Option<Hpas> {
        let several = at.key("hpas");
        let places: Vec<At<'_>> = match (&file.hpa, several.node()) {
            (Some(_), None) => vec![at.key("hpa")],
            (None, Some(_)) => (0..file.hpas.len()).map(|index| several.index(index)).collect(),
            (Some(_), Some(_)) => {
                let what = "expected either `hpa` or `hpas`, found both";
                problems.hint(at.key_position("hpas"), what, "list all HPAs in `hpas`");
                return None;
            }
            (None, None) if at.key("objects").node().is_some() => return Some(Hpas::default()),
            (None, None) => {
                let hint = "set `hpa`, `hpas` for several HPAs, `vpa`, or `objects` for any other \
                            controller";
                problems.hint(at, "missing field `hpa`", hint);
                return None;
            }
        };
        if places.is_empty() {
            problems.plain(at.key("hpas"), "expected at least one HPA");
        }
        let mut hpas = Hpas::default();
        for at in &places {
            if let Some(hpa) = resolve(*at, read, gates, problems) {
                hpas.list.push(hpa);
                hpas.places.push(at.place());
            }
        }
        if hpas.list.len() < places.len() || places.is_empty() {
            return None;
        }
        hpas.check_names(problems);
        Some(hpas)
    }

    /// Checks that the HPAs have different names and the same namespace.
    fn check_names(&self, problems: &mut Problems) {
        for (index, (hpa, place)) in self.list.iter().zip(&self.places).enumerate().skip(1) {
            let before = &self.list[..index];
            if before.iter().any(|other| other.name == hpa.name) {
                let what = format!("duplicate HPA `{}`", hpa.name);
                let problem = Diagnostic::new(what).hint("rename or remove one of them");
                problems.add(problem.at_place(place.clone()));
            }
            let first = &self.list[0].namespace;
            if hpa.namespace != *first {
                let what = format!("expected namespace `{first}`, found `{}`", hpa.namespace);
                let hint = "all HPAs of a scenario must have the same namespace";
                let problem = Diagnostic::new(what).hint(hint);
                problems.add(problem.at_place(place.clone()));
            }
        }
    }

    /// Finds the target of each HPA. The target of the first HPA is the workload.
    pub(super) fn find_targets(&mut self, others: &[OtherTarget], problems: &mut Problems) {
        let Some(workload) = self.list.first().map(|hpa| hpa.target.clone()) else { return };
        for (hpa, place) in self.list.iter_mut().zip(&self.places) {
            let Target { kind, name, .. } = &hpa.target;
            let same = |of: &str, it: &Arc<str>| of == kind && it == name;
            hpa.target_index = if same(&workload.kind, &workload.name) {
                0
            } else if let Some(index) = others.iter().position(|it| same(&it.kind, &it.name)) {
                index + 1
            } else {
                let what = format!(
                    "the HPA `{}` scales {kind} {name}, which is neither the workload nor among \
                     `otherTargets`",
                    hpa.name
                );
                let entry = format!("{{kind: {kind}, name: {name}, replicas: …}}");
                let problem = Diagnostic::new(what).hint(format!("add {entry} to `otherTargets`"));
                problems.add(problem.at_place(place.clone()));
                continue;
            };
        }
    }

    /// The HPA with this name.
    pub(super) fn named(
        &self,
        name: &str,
        at: At<'_>,
        problems: &mut Problems,
    ) -> Option<Arc<str>> {
        let known = self.list.iter().find(|hpa| *hpa.name == *name);
        if known.is_none() && !self.list.is_empty() {
            let names = self.list.iter().map(|hpa| &*hpa.name);
            let what = format!("the scenario has no HPA `{name}`");
            problems.add(at.problem(what, suggest(name, names)));
        }
        known.map(|hpa| hpa.name.clone())
    }

    /// The name of the HPA, if there is only one.
    pub(super) fn only(&self) -> Option<Arc<str>> {
        if let [only] = self.list.as_slice() { Some(only.name.clone()) } else { None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The names of the HPAs, for messages.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.list.iter().map(|hpa| &*hpa.name).collect();
        names.join(", ")
    }

    /// Returns true if the HPAs have more than one target.
    pub(super) fn scale_different_targets(&self) -> bool {
        let first = self.list.first().map(|hpa| hpa.target_index);
        self.list.iter().any(|hpa| Some(hpa.target_index) != first)
    }

    /// The target of the first HPA.
    pub(super) fn target(&self) -> Option<&Target> {
        self.list.first().map(|hpa| &hpa.target)
    }

    pub(super) fn namespace(&self) -> Arc<str> {
        self.list.first().map_or_else(|| "default".into(), |hpa| hpa.namespace.clone())
    }

    /// Notes for the reader.
    pub(super) fn notes(&self) -> Vec<String> {
        self.list.iter().filter_map(|hpa| hpa.note.clone()).collect()
    }

    pub(super) fn max_replicas(&self) -> Option<i32> {
        self.list.iter().map(|hpa| hpa.max_replicas).max()
    }

    /// The average usage of a resource that an HPA aims at, in milli-units. None: no HPA has one.
    pub(super) fn average_value(&self, resource: &str) -> Option<i64> {
        let specs = self.list.iter().filter_map(|hpa| hpa.autoscaler.as_ref());
        let metrics = specs.flat_map(|autoscaler| autoscaler.spec.metrics.iter());
        let sources = metrics.filter_map(|metric| metric.resource.as_ref());
        let mut targets = sources.filter(|source| *source.name == *resource);
        let value = targets.find_map(|source| source.target.average_value.as_ref());
        value.map(Quantity::milli).filter(|milli| *milli > 0)
    }

    /// The metrics that the HPAs scale on.
    pub(super) fn asked(&mut self) -> Vec<Asked> {
        self.list.iter_mut().flat_map(|hpa| std::mem::take(&mut hpa.asked)).collect()
    }

    /// The metrics of all HPAs, or of one.
    pub(super) fn asked_of(&self, of: Option<&str>) -> Vec<&Asked> {
        let hpas = self.list.iter().filter(|hpa| of.is_none_or(|of| *hpa.name == *of));
        hpas.flat_map(|hpa| &hpa.asked).collect()
    }

    /// The valid HPAs.
    pub(super) fn into_autoscalers(self) -> Vec<Autoscaler> {
        let autoscaler =
            |hpa: ResolvedHpa| Some(Autoscaler { target: hpa.target_index, ..hpa.autoscaler? });
        self.list.into_iter().filter_map(autoscaler).collect()
    }
}

/// An HPA on its own, without a scenario.
#[derive(Clone, Debug)]
pub struct SingleHpa {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// The manifest as it was written.
    pub manifest: Value,
    /// The target that it scales.
    pub target: Target,
    /// `spec.minReplicas`, with its default.
    pub min_replicas: i32,
    /// `spec.maxReplicas`.
    pub max_replicas: i32,
    /// The metrics that it scales on, with defaults.
    pub metrics: Vec<MetricSpec>,
    /// `spec.behavior`, with defaults.
    pub behavior: Option<Behavior>,
}

/// Checks a manifest on its own, with the feature gates of the newest release.
pub fn single_hpa(node: &Node) -> Result<SingleHpa, Vec<Diagnostic>> {
    let (hpa, autoscaler) = alone(node, &Rules::default().default_gates())?;
    let mut spec = HpaSpec::clone(&autoscaler.spec);
    set_defaults(&mut spec);
    Ok(SingleHpa {
        name: hpa.name,
        manifest: node.to_json(),
        target: hpa.target,
        min_replicas: spec.min_replicas.unwrap_or(1),
        max_replicas: hpa.max_replicas,
        metrics: hpa.asked.into_iter().map(Asked::into_metric).collect(),
        behavior: spec.behavior,
    })
}

/// Reads an HPA without its scenario.
fn alone(node: &Node, gates: &FeatureGates) -> Result<(ResolvedHpa, Autoscaler), Vec<Diagnostic>> {
    let mut problems = Problems::new(Vec::new());
    let at = At::root(node);
    let hpa = versions::shape(at, &mut problems)
        .and_then(|shaped| manifest(at, &shaped, gates, &mut problems));
    problems.into_result()?;
    let without_a_message = || vec![at.problem("this manifest is not supported", None)];
    let mut hpa = hpa.ok_or_else(without_a_message)?;
    let autoscaler = hpa.autoscaler.take().ok_or_else(without_a_message)?;
    Ok((hpa, autoscaler))
}

impl Autoscaler {
    /// Reads another manifest of the HPA, which must keep its target.
    pub(crate) fn with_manifest(
        &self,
        manifest: &Value,
        gates: &FeatureGates,
    ) -> Result<Autoscaler, Vec<Diagnostic>> {
        // JSON is YAML.
        let mut nodes = yaml::manifests(&manifest.to_string()).map_err(|problem| vec![problem])?;
        let node = nodes.pop().ok_or_else(|| vec!["there is no manifest".into()])?;
        let (_, autoscaler) = alone(&node, gates)?;
        Ok(Autoscaler { target: self.target, ..autoscaler })
    }
}

/// Resolves the manifest, inline or from the file that `hpa.file` names.
fn resolve(
    at: At<'_>,
    read: Reader<'_>,
    gates: &FeatureGates,
    problems: &mut Problems,
) -> Option<ResolvedHpa> {
    let shaped = versions::shape(at, problems)?;
    let Some(path) = &shaped.typed.file else { return manifest(at, &shaped, gates, problems) };
    if let Some(NodeKind::Map(entries)) = at.node().map(|node| &node.kind)
        && entries.len() > 1
    {
        let what = "expected either `file` or a manifest, found both";
        problems.plain(at.key_position("file"), what);
        return None;
    }
    let at = at.key("file");
    let text = match read.read(path) {
        Ok(text) => text,
        Err(why) => {
            problems.add_at(at, unreadable(path, why, read.syntax));
            return None;
        }
    };
    let before = problems.len();
    let hpa = only_object(KIND, path, &text, at, problems).and_then(|root| {
        let inside = problems.len();
        let at = At::root(&root);
        let hpa =
            versions::shape(at, problems).and_then(|shaped| manifest(at, &shaped, gates, problems));
        problems.in_file(inside, path);
        hpa
    });
    let mut hpa = if problems.len() == before { hpa? } else { return None };
    hpa.asked.iter_mut().for_each(|asked| asked.in_file(path));
    Some(hpa)
}

const KIND: &str = "HorizontalPodAutoscaler";

/// The only object of a kind among the documents of a file.
pub(super) fn only_object(
    kind: &str,
    path: &str,
    text: &str,
    at: At<'_>,
    problems: &mut Problems,
) -> Option<Node> {
    let documents = match yaml::manifests(text) {
        Ok(documents) => documents,
        Err(problem) => {
            problems.add(problem.in_file(path));
            return None;
        }
    };
    if let [only] = documents.as_slice()
        && !is_list(only)
    {
        return documents.into_iter().next();
    }
    let is_one = |node: &Node| {
        node.entry("kind").is_some_and(|(_, found)| found.to_json().as_str() == Some(kind))
    };
    let mut found: Vec<Node> = documents.into_iter().flat_map(objects).filter(is_one).collect();
    if found.len() != 1 {
        let what = format!("expected one {kind} in {path}, found {}", found.len());
        problems.plain(at, what);
        return None;
    }
    found.pop()
}

/// Returns true for a list, the format in which `kubectl get` prints several objects.
fn is_list(node: &Node) -> bool {
    node.entry("kind").is_some_and(|(_, kind)| kind.to_json() == "List")
}

/// The objects of a document: the items of a list, or the document itself.
fn objects(document: Node) -> Vec<Node> {
    if !is_list(&document) {
        return vec![document];
    }
    let NodeKind::Map(entries) = document.kind else { return Vec::new() };
    match entries.into_iter().find(|(key, _)| key.text == "items") {
        Some((_, Node { kind: NodeKind::List(items), .. })) => items,
        _ => Vec::new(),
    }
}

fn manifest(
    at: At<'_>,
    shaped: &Shaped,
    gates: &FeatureGates,
    problems: &mut Problems,
) -> Option<ResolvedHpa> {
    let (before, typed) = (problems.len(), &shaped.typed);
    required(at, typed, problems);
    if typed.kind.as_deref().is_some_and(|kind| kind != KIND) {
        let found = typed.kind.as_deref().unwrap_or_default();
        problems.plain(at.key("kind"), format!("expected kind `{KIND}`, found {found:?}"));
    }
    if let Some(metadata) = &typed.metadata {
        metadata::check_manifest(at.key("metadata"), metadata, problems);
    }
    let (spec, api_version) = (typed.spec.as_ref()?, typed.api_version.as_deref()?);
    let represented = shaped.node.to_json();
    let (given, note) = versions::for_api_server(represented, at, problems)?;
    let target_at = at.key("spec").key("scaleTargetRef");
    let before_target = problems.len();
    let target = spec.scale_target_ref.as_ref().and_then(|it| Target::of(it, target_at, problems));
    let is_reported = problems.len() > before_target;
    let autoscaler = decoded(at, given, api_version, problems)?;
    let asked = valid(at, &autoscaler, gates, is_reported, problems);
    for error in &shaped.errors {
        rejected(at, error, problems);
    }
    if problems.len() > before {
        return None;
    }
    let metadata = typed.metadata.as_ref()?;
    Some(ResolvedHpa {
        namespace: metadata.namespace.as_deref().unwrap_or("default").into(),
        name: metadata.name.as_deref()?.into(),
        autoscaler: Some(autoscaler),
        note,
        target: target?,
        target_index: 0,
        max_replicas: spec.max_replicas?,
        asked,
    })
}

/// Checks the fields without which no API server knows the object.
fn required(at: At<'_>, typed: &Manifest, problems: &mut Problems) {
    if typed.api_version.is_none() {
        let hint = "for example `apiVersion: autoscaling/v2`";
        problems.hint(at, "missing field `apiVersion` of the HPA", hint);
    }
    if typed.kind.is_none() {
        problems.hint(at, "missing field `kind` of the HPA", format!("`kind: {KIND}`"));
    }
}

/// Checks the quantities of an edit.
pub(super) fn quantities(at: At<'_>, spec: &Spec, problems: &mut Problems) {
    for (index, metric) in spec.metrics.iter().flatten().enumerate() {
        for (source, target) in metric.targets() {
            let at = at.key("metrics").index(index).key(source).key("target");
            let is_resource = matches!(source, "resource" | "containerResource");
            target_quantities(at, target, is_resource, problems);
        }
    }
    let Some(behavior) = &spec.behavior else { return };
    for (name, rules) in [("scaleUp", &behavior.scale_up), ("scaleDown", &behavior.scale_down)] {
        if let Some(text) = rules.as_ref().and_then(|rules| rules.tolerance.as_ref()) {
            tolerance(text, at.key("behavior").key(name).key("tolerance"), problems);
        }
    }
}

fn target_quantities(
    at: At<'_>,
    target: &MetricTarget,
    is_resource: bool,
    problems: &mut Problems,
) {
    let values = [("averageValue", &target.average_value), ("value", &target.value)];
    for (name, text) in values {
        let Some(text) = text else { continue };
        let percent = text.strip_suffix('%').filter(|percent| percent.parse::<u32>().is_ok());
        match percent.filter(|_| is_resource) {
            None => quantity(text, at.key(name), problems),
            Some(percent) => {
                let what = format!("expected a quantity, found {:?}", text);
                let meant = format!("{{type: Utilization, averageUtilization: {percent}}}");
                problems.hint(at.key(name), what, format!("did you mean {meant}?"));
            }
        }
    }
}

/// Checks a tolerance. It is a fraction, which users often write as a percentage.
fn tolerance(text: &str, at: At<'_>, problems: &mut Problems) {
    match text.strip_suffix('%').and_then(|percent| fraction(percent.trim_end())) {
        None => quantity(text, at, problems),
        Some(fraction) => {
            let what = format!("expected a tolerance as a fraction, found {:?}", text);
            problems.hint(at, what, format!("did you mean {fraction}?"));
        }
    }
}

/// Decodes the manifest as the API server does.
fn decoded(
    at: At<'_>,
    manifest: Value,
    api_version: &str,
    problems: &mut Problems,
) -> Option<Autoscaler> {
    let decoded = Autoscaler::new(manifest, api_version);
    if let Err(why) = &decoded {
        let at = at.key("metadata").key("annotations");
        problems.plain(at, rejection("HPA", why));
    }
    decoded.ok()
}

/// Validates the HPA as the API server does, and returns its metrics. `is_reported`: its target is.
fn valid(
    at: At<'_>,
    hpa: &Autoscaler,
    gates: &FeatureGates,
    is_reported: bool,
    problems: &mut Problems,
) -> Vec<Asked> {
    let mut spec = (*hpa.spec).clone();
    match hpa.version {
        ApiVersion::V2 => set_defaults(&mut spec),
        ApiVersion::V1 => drop_zero_totals(&mut spec),
    }
    let server = ApiServer { rules: &Rules::default(), gates };
    let errors = validate(&hpa.name, &spec, server);
    let asked = if errors.is_empty() { served::asked(&spec, at.key("spec")) } else { Vec::new() };
    for error in errors {
        if !(is_reported && error.field.starts_with("spec.scaleTargetRef")) {
            rejected(at, &error, problems);
        }
    }
    asked
}

/// Adds an error with which the API server rejects the HPA.
fn rejected(at: At<'_>, error: &FieldError, problems: &mut Problems) {
    let hint = match (error.type_, &*error.field) {
        (FieldErrorType::Required, "metadata.name" | "spec.scaleTargetRef.name") => {
            Some("for example `name: web`".into())
        }
        (FieldErrorType::Required, "spec.maxReplicas") => {
            Some("for example `maxReplicas: 10`".into())
        }
        (FieldErrorType::Required, "spec.scaleTargetRef.kind") => {
            Some("for example `kind: Deployment`".into())
        }
        (FieldErrorType::NotSupported, _) => {
            // Quoted texts alternate with others.
            let known = error.detail.split('"').skip(1).step_by(2);
            similar(error.value.trim_matches('"'), known)
        }
        _ => None,
    };
    let what = rejection("HPA", error);
    problems.add(place(at, &error.field).problem(what, hint));
}

/// The position of a field. In v1, annotations stand for the metrics and the behavior.
fn place<'n>(at: At<'n>, field: &str) -> At<'n> {
    let name = field.strip_prefix("spec.").unwrap_or_default();
    let name = name.split(['.', '[']).next().unwrap_or_default();
    let annotation = format!("autoscaling.alpha.kubernetes.io/{name}");
    let annotation = at.key("metadata").key("annotations").key(&annotation);
    let is_field = at.key("spec").key(name).node().is_some();
    if annotation.node().is_some() && !is_field { annotation } else { at.follow(field) }
}
