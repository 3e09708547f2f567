//! Mistakes in the manifest of a workload for which an API server rejects it, in its words: what it
//! can't decode, or else what its validation finds.
//!
//! Deliberately absent: the validation of fields that neither matter to an autoscaler nor are often
//! wrong, such as volumes, security contexts and affinities.
//!
//! Upstream: pkg/apis/apps/validation/validation.go, pkg/apis/core/validation/validation.go

use std::collections::BTreeMap;

use super::objects::Object;
use kube_autoscaler_models::api::LabelSelector;
use kube_autoscaler_models::hpa::{FieldError, FieldErrorType, validate_container_resource_name};
use kube_autoscaler_models::quantity::Quantity;
use kube_autoscaler_models::selector::{Selector, is_dns1123_label};
use kube_lockstep_scenario::api_schema::ApiObject;
use kube_lockstep_scenario::decode::{Nulls, decode};
use kube_lockstep_scenario::diagnostic::Diagnostic;
use kube_lockstep_scenario::error::{DistinctProblems, Error, rejection};
use kube_lockstep_scenario::node::{Node, NodeKind};
use kube_lockstep_scenario::object_meta;

/// Checks the manifest of a workload.
///
/// # Errors
/// If an API server would reject it.
pub(crate) fn check(object: &Object) -> Result<(), Error> {
    match problems(object) {
        problems if problems.is_empty() => Ok(()),
        problems => Err(object.problems(problems)),
    }
}

fn problems(object: &Object) -> Vec<Diagnostic> {
    let (kind, group) = (object.kind(), object.group());
    let is_known = match &*kind {
        "Deployment" | "StatefulSet" | "ReplicaSet" => group == "apps",
        "ReplicationController" => group.is_empty(),
        _ => false,
    };
    if !is_known {
        return Vec::new();
    }
    let type_name = format!("v1.{kind}");
    let wrong = ApiObject { name: &kind, type_name, node: &object.node }.problems();
    if !wrong.is_empty() {
        return wrong;
    }
    let mut check = Check { kind, problems: DistinctProblems::default() };
    object_meta::validate_name(&object.node, &mut |at, error| check.add(at, &error));
    if let Some(metadata) = field(&object.node, "metadata") {
        object_meta::validate(metadata, "metadata", &mut |at, error| check.add(at, &error));
    }
    check.spec(field(&object.node, "spec").unwrap_or(&object.node));
    check.problems.into_list()
}

struct Check {
    kind: String,
    /// A message of an API server lists equal errors once.
    problems: DistinctProblems,
}

impl Check {
    fn add(&mut self, at: &Node, error: &FieldError) {
        self.problems.add(Diagnostic::new(rejection(&self.kind, error)).at_node(at));
    }

    fn required(&mut self, at: &Node, path: &str) {
        self.add(at, &FieldError::new(path, FieldErrorType::Required, "", ""));
    }

    fn invalid(&mut self, at: &Node, path: &str, value: &str, detail: &str) {
        self.add(at, &FieldError::new(path, FieldErrorType::Invalid, value, detail));
    }

    /// Checks that a text is one of the supported ones, in upstream's order.
    fn supported(&mut self, node: &Node, name: &str, path: &str, supported: &[&str]) {
        let Some((at, text)) = field(node, name).and_then(|at| Some((at, text(at)?))) else {
            return;
        };
        if !supported.contains(&&*text) {
            let list: Vec<String> = supported.iter().map(|it| format!("{it:?}")).collect();
            let detail = format!("supported values: {}", list.join(", "));
            let (path, value) = (format!("{path}.{name}"), format!("{text:?}"));
            self.add(at, &FieldError::new(path, FieldErrorType::NotSupported, value, &detail));
        }
    }

    fn not_negative(&mut self, node: &Node, names: &[&str], path: &str) {
        for name in names {
            let Some(at) = field(node, name) else { continue };
            if let Some(number) = at.to_json().as_i64().filter(|number| *number < 0) {
                let path = format!("{path}.{name}");
                self.invalid(at, &path, &number.to_string(), NEGATIVE);
            }
        }
    }

    fn spec(&mut self, spec: &Node) {
        let numbers =
            ["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"];
        self.not_negative(spec, &numbers, "spec");
        self.selector(spec);
        let number = |name| field(spec, name).and_then(|node| node.to_json().as_i64());
        let (deadline, ready) = (number("progressDeadlineSeconds"), number("minReadySeconds"));
        if let Some(deadline) = deadline.filter(|it| *it <= ready.unwrap_or_default()) {
            let (path, at) = ("spec.progressDeadlineSeconds", "progressDeadlineSeconds");
            let at = field(spec, at).unwrap_or(spec);
            self.invalid(at, path, &deadline.to_string(), "must be greater than minReadySeconds");
        }
        let template = field(spec, "template").unwrap_or(spec);
        if let Some(metadata) = field(template, "metadata") {
            let path = "spec.template";
            object_meta::validate(metadata, path, &mut |at, error| self.add(at, &error));
        }
        let claims = field(spec, "volumeClaimTemplates").and_then(items).unwrap_or_default();
        let claims =
            claims.iter().filter_map(|claim| text(field(field(claim, "metadata")?, "name")?));
        let pod = field(spec, "template").and_then(|template| field(template, "spec"));
        match pod {
            Some(pod) => self.pod(pod, claims.collect()),
            None => self.required(template, "spec.template.spec.containers"),
        }
    }

    /// Checks that the selector matches the labels of the template.
    fn selector(&mut self, spec: &Node) {
        if self.kind == "ReplicationController" {
            return;
        }
        let selector = field(spec, "selector");
        let parsed = match selector {
            Some(node) => {
                // A malformed selector is reported when it is read.
                let Ok(parsed) = decode::<LabelSelector>(node, Nulls::Absent) else { return };
                if parsed.match_labels.is_empty() && parsed.match_expressions.is_empty() {
                    let kind =
                        if self.kind == "StatefulSet" { "statefulset" } else { "deployment" };
                    let detail = format!("empty selector is invalid for {kind}");
                    return self.invalid(node, "spec.selector", "{}", &detail);
                }
                Some(parsed)
            }
            None => {
                self.required(spec, "spec.selector");
                None
            }
        };
        let labels = ["template", "metadata", "labels"]
            .into_iter()
            .try_fold(spec, |node, name| field(node, name));
        let known: BTreeMap<String, String> =
            labels.and_then(|labels| decode(labels, Nulls::Absent).ok()).unwrap_or_default();
        let is_mismatch = match &parsed {
            // A missing selector selects nothing.
            None => true,
            Some(_) => Selector::from_label_selector(parsed.as_ref())
                .is_ok_and(|selector| !selector.matches(&known)),
        };
        if is_mismatch {
            let json = match labels {
                Some(_) => serde_json::to_string(&known).unwrap_or_default(),
                None => "null".to_owned(),
            };
            let at = labels.or(field(spec, "template")).or(selector).unwrap_or(spec);
            let detail = "`selector` does not match template `labels`";
            self.invalid(at, "spec.template.metadata.labels", &json, detail);
        }
    }

    /// Checks the spec of the pods. `claims`: the volumes that the workload adds.
    fn pod(&mut self, pod: &Node, claims: Vec<String>) {
        let path = "spec.template.spec";
        let restart = ["Always", "OnFailure", "Never"];
        self.supported(pod, "restartPolicy", path, &restart);
        self.supported(pod, "restartPolicy", path, &restart[..1]);
        let volume_name = |node: &Node| text(field(node, "name")?);
        let volumes = field(pod, "volumes").and_then(items).unwrap_or_default();
        let volumes = volumes.iter().filter_map(volume_name).chain(claims).collect();
        let mut known = Known { names: Vec::new(), volumes };
        let containers = field(pod, "containers");
        if containers.and_then(items).is_none_or(<[Node]>::is_empty) {
            self.required(containers.unwrap_or(pod), &format!("{path}.containers"));
        }
        for list in ["containers", "initContainers"] {
            for (index, container) in
                field(pod, list).and_then(items).unwrap_or_default().iter().enumerate()
            {
                let path = format!("{path}.{list}[{index}]");
                self.container(container, &path, &known);
                known.names.extend(field(container, "name").and_then(text));
            }
        }
    }

    fn container(&mut self, container: &Node, path: &str, known: &Known) {
        match field(container, "name").and_then(|at| Some((at, text(at)?))) {
            Some((at, name)) if !name.is_empty() => {
                let (path, value) = (format!("{path}.name"), format!("{name:?}"));
                for wrong in is_dns1123_label(&name) {
                    self.invalid(at, &path, &value, &wrong);
                }
                if known.names.contains(&name) {
                    self.add(at, &FieldError::new(path, FieldErrorType::Duplicate, value, ""));
                }
            }
            _ => self.required(container, &format!("{path}.name")),
        }
        if field(container, "image").and_then(text).is_none_or(|image| image.is_empty()) {
            self.required(container, &format!("{path}.image"));
        }
        let pull = ["Always", "IfNotPresent", "Never"];
        self.supported(container, "imagePullPolicy", path, &pull);
        let messages = ["File", "FallbackToLogsOnError"];
        self.supported(container, "terminationMessagePolicy", path, &messages);
        let restart = ["Always", "Never", "OnFailure"];
        self.supported(container, "restartPolicy", path, &restart);
        self.ports(container, path);
        self.mounts(container, path, known);
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            if let Some(node) = field(container, probe) {
                let path = format!("{path}.{probe}");
                self.not_negative(node, &PROBE, &path);
            }
        }
        if let Some(resources) = field(container, "resources") {
            self.resources(resources, &format!("{path}.resources"));
        }
    }

    fn ports(&mut self, container: &Node, path: &str) {
        let ports = field(container, "ports").and_then(items).unwrap_or_default();
        for (index, port) in ports.iter().enumerate() {
            let path = format!("{path}.ports[{index}]");
            let number = field(port, "containerPort").map(|at| (at, at.to_json()));
            match number.and_then(|(at, number)| Some((at, number.as_i64()?))) {
                None | Some((_, 0)) => self.required(port, &format!("{path}.containerPort")),
                Some((at, number)) if !(1..=65535).contains(&number) => {
                    let detail = "must be between 1 and 65535, inclusive";
                    self.invalid(at, &format!("{path}.containerPort"), &number.to_string(), detail);
                }
                Some(_) => {}
            }
            self.supported(port, "protocol", &path, &["SCTP", "TCP", "UDP"]);
        }
    }

    fn mounts(&mut self, container: &Node, path: &str, known: &Known) {
        let mounts = field(container, "volumeMounts").and_then(items).unwrap_or_default();
        for (index, mount) in mounts.iter().enumerate() {
            let path = format!("{path}.volumeMounts[{index}]");
            let Some(at) = field(mount, "name") else {
                self.required(mount, &format!("{path}.name"));
                continue;
            };
            let name = text(at).unwrap_or_default();
            if !known.volumes.contains(&name) {
                let (path, value) = (format!("{path}.name"), format!("{name:?}"));
                self.add(at, &FieldError::new(path, FieldErrorType::NotFound, value, ""));
            }
        }
    }

    fn resources(&mut self, resources: &Node, path: &str) {
        for list in ["limits", "requests"] {
            let Some(NodeKind::Map(entries)) = field(resources, list).map(|node| &node.kind) else {
                continue;
            };
            for (key, at) in entries {
                let path = format!("{path}.{list}[{}]", key.text);
                for wrong in validate_container_resource_name(&key.text) {
                    self.invalid(at, &path, &format!("{:?}", key.text), &wrong);
                }
                if let Some(amount) = quantity(at).filter(|amount| amount.sign() < 0) {
                    self.invalid(at, &path, &format!("\"{amount}\""), NEGATIVE);
                }
            }
        }
        let (requests, limits) = (field(resources, "requests"), field(resources, "limits"));
        let (Some(requests), Some(limits)) = (requests, limits) else { return };
        for resource in ["cpu", "memory", "ephemeral-storage"] {
            let (request, limit) = (field(requests, resource), field(limits, resource));
            let (Some(request), Some(limit)) = (request, limit) else { continue };
            let (Some(asked), Some(most)) = (quantity(request), quantity(limit)) else { continue };
            if asked.compare(&most).is_gt() {
                let detail = format!("must be less than or equal to {resource} limit of {most}");
                let path = format!("{path}.requests");
                self.invalid(request, &path, &format!("\"{asked}\""), &detail);
            }
        }
    }
}

/// The detail of an error about a negative number.
const NEGATIVE: &str = "must be greater than or equal to 0";

/// The numbers of a probe.
const PROBE: [&str; 5] = [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
];

/// The parts of a pod that a container may conflict with or refer to.
struct Known {
    /// The names of the containers before it.
    names: Vec<String>,
    volumes: Vec<String>,
}

/// A field that is not null.
fn field<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    node.entry(name).map(|(_, value)| value).filter(|value| !value.is_null())
}

fn items(node: &Node) -> Option<&[Node]> {
    match &node.kind {
        NodeKind::List(items) => Some(items),
        NodeKind::Map(_) | NodeKind::Scalar { .. } => None,
    }
}

fn text(node: &Node) -> Option<String> {
    match &node.kind {
        NodeKind::Scalar { text, .. } => Some(text.clone()),
        NodeKind::List(_) | NodeKind::Map(_) => None,
    }
}

fn quantity(node: &Node) -> Option<Quantity> {
    Quantity::parse(&text(node)?).ok()
}
