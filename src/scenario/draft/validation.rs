//! Mistakes in the manifest of a workload for which an API server rejects it, in its words. Only
//! fields that matter to an HPA, or are often wrong, are checked.

use std::collections::BTreeMap;

use super::objects::Object;
use crate::model::api::LabelSelector;
use crate::model::quantity::Quantity;
use crate::model::selector::Selector;
use crate::scenario::decode::{Nulls, decode};
use crate::scenario::error::{Problem, suggest};
use crate::scenario::node::{Kind, Node};

/// The kinds whose manifests are checked.
const CHECKED: [&str; 3] = ["Deployment", "StatefulSet", "ReplicaSet"];

/// The fields of the objects in a manifest. A similar name is a mistake; other names may be of a
/// later release.
const OF_SPEC: [&str; 14] = [
    "minReadySeconds",
    "ordinals",
    "paused",
    "persistentVolumeClaimRetentionPolicy",
    "podManagementPolicy",
    "progressDeadlineSeconds",
    "replicas",
    "revisionHistoryLimit",
    "selector",
    "serviceName",
    "strategy",
    "template",
    "updateStrategy",
    "volumeClaimTemplates",
];
const OF_TEMPLATE: [&str; 2] = ["metadata", "spec"];
const OF_POD: [&str; 42] = [
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "containers",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "ephemeralContainers",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "hostname",
    "hostnameOverride",
    "imagePullSecrets",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "os",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "readinessGates",
    "resourceClaims",
    "resources",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "schedulingGates",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "subdomain",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
    "workloadRef",
];
const OF_CONTAINER: [&str; 25] = [
    "args",
    "command",
    "env",
    "envFrom",
    "image",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "name",
    "ports",
    "readinessProbe",
    "resizePolicy",
    "resources",
    "restartPolicy",
    "restartPolicyRules",
    "securityContext",
    "startupProbe",
    "stdin",
    "stdinOnce",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeDevices",
    "volumeMounts",
    "workingDir",
];
const OF_RESOURCES: [&str; 3] = ["claims", "limits", "requests"];

/// The problems of a workload's manifest.
pub(super) fn problems(object: &Object) -> Vec<Problem> {
    let kind = object.kind();
    if !CHECKED.contains(&&*kind) || object.group() != "apps" {
        return Vec::new();
    }
    let mut check = Check { kind, problems: Vec::new() };
    match object.node.entry("spec") {
        Some((_, spec)) if !spec.is_null() => check.spec(spec),
        _ => check.add(&object.node, "spec.selector: Required value"),
    }
    check.problems
}

struct Check {
    kind: String,
    problems: Vec<Problem>,
}

impl Check {
    fn add(&mut self, at: &Node, message: &str) {
        self.problems.push(Problem {
            file: None,
            line: at.line,
            column: at.column,
            what: format!("the API server rejects this {}: {message}", self.kind),
            hint: None,
        });
    }

    fn spec(&mut self, spec: &Node) {
        self.unknown_fields(spec, "spec", &OF_SPEC);
        if let Some(replicas) = field(spec, "replicas")
            && let Some(number) = replicas.to_json().as_i64().filter(|number| *number < 0)
        {
            let message = format!(
                "spec.replicas: Invalid value: {number}: must be greater than or equal to 0"
            );
            self.add(replicas, &message);
        }
        self.selector(spec);
        let Some(template) = field(spec, "template") else {
            return self.add(spec, "spec.template.spec.containers: Required value");
        };
        self.unknown_fields(template, "spec.template", &OF_TEMPLATE);
        match field(template, "spec") {
            Some(pod) => self.pod(pod),
            None => self.add(template, "spec.template.spec.containers: Required value"),
        }
    }

    /// Checks that the selector matches the labels of the template.
    fn selector(&mut self, spec: &Node) {
        let Some(node) = field(spec, "selector") else {
            return self.add(spec, "spec.selector: Required value");
        };
        // A malformed selector is reported when it is read.
        let Ok(selector) = decode::<LabelSelector>(node, Nulls::Absent) else { return };
        if selector.match_labels.is_empty() && selector.match_expressions.is_empty() {
            let kind = self.kind.to_lowercase();
            let message =
                format!("spec.selector: Invalid value: {{}}: empty selector is invalid for {kind}");
            return self.add(node, &message);
        }
        let labels = ["template", "metadata", "labels"]
            .into_iter()
            .try_fold(spec, |node, name| field(node, name));
        let known: BTreeMap<String, String> =
            labels.and_then(|labels| decode(labels, Nulls::Absent).ok()).unwrap_or_default();
        let parsed = Selector::of_label_selector(Some(&selector));
        if parsed.is_ok_and(|parsed| !parsed.matches(&known)) {
            let json = serde_json::to_string(&known).unwrap_or_default();
            let message = format!(
                "spec.template.metadata.labels: Invalid value: {json}: `selector` does not match \
                 template `labels`"
            );
            let at = labels.or(field(spec, "template")).unwrap_or(node);
            self.add(at, &message);
        }
    }

    fn pod(&mut self, pod: &Node) {
        self.unknown_fields(pod, "spec.template.spec", &OF_POD);
        let containers = field(pod, "containers");
        if containers.is_none_or(|list| list.item(0).is_none()) {
            let at = containers.unwrap_or(pod);
            self.add(at, "spec.template.spec.containers: Required value");
        }
        for list in ["containers", "initContainers"] {
            let Some(Kind::List(items)) = field(pod, list).map(|node| &node.kind) else { continue };
            for (index, container) in items.iter().enumerate() {
                self.container(container, &format!("spec.template.spec.{list}[{index}]"));
            }
        }
    }

    fn container(&mut self, container: &Node, path: &str) {
        self.unknown_fields(container, path, &OF_CONTAINER);
        let is_empty = |node: &Node| node.to_json().as_str().is_some_and(str::is_empty);
        if field(container, "image").is_none_or(is_empty) {
            self.add(container, &format!("{path}.image: Required value"));
        }
        let Some(resources) = field(container, "resources") else { return };
        self.unknown_fields(resources, &format!("{path}.resources"), &OF_RESOURCES);
        let (requests, limits) = (field(resources, "requests"), field(resources, "limits"));
        let (Some(requests), Some(limits)) = (requests, limits) else { return };
        for resource in ["cpu", "memory"] {
            let (request, limit) = (field(requests, resource), field(limits, resource));
            let (Some(request), Some(limit)) = (request, limit) else { continue };
            // A malformed quantity is reported when it is read.
            let (Some(asked), Some(most)) = (quantity(request), quantity(limit)) else { continue };
            if asked.milli() > most.milli() {
                let message = format!(
                    "{path}.resources.requests: Invalid value: \"{asked}\": must be less than or \
                     equal to {resource} limit of {most}"
                );
                self.add(request, &message);
            }
        }
    }

    /// Reports the fields that are similar to a known one.
    fn unknown_fields(&mut self, node: &Node, path: &str, known: &[&str]) {
        let Kind::Map(entries) = &node.kind else { return };
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&&*key.text)) {
            let hint = suggest(&key.text, known.iter().copied());
            if let Some(hint) = hint.filter(|hint| hint.starts_with("did you mean")) {
                self.problems.push(Problem {
                    file: None,
                    line: key.line,
                    column: key.column,
                    what: format!(
                        "the API server rejects this {}: strict decoding error: unknown field \
                         \"{path}.{}\"",
                        self.kind, key.text
                    ),
                    hint: Some(hint),
                });
            }
        }
    }
}

/// A field that is not null.
fn field<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    node.entry(name).map(|(_, value)| value).filter(|value| !value.is_null())
}

fn quantity(node: &Node) -> Option<Quantity> {
    match &node.kind {
        Kind::Scalar { text, .. } => Quantity::parse(text).ok(),
        Kind::List(_) | Kind::Map(_) => None,
    }
}
