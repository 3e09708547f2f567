//! Manifests of VPAs and their checkpoints: the schema of the CRD (`api_schema`), the rules of
//! the VPA's admission webhook, and the values that this program requires.
//!
//! Upstream: `pkg/admission-controller/resource/vpa/validation.go`

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::super::Reader;
use super::super::cursor::{At, Problems};
use super::super::hpa::only_object;
use super::super::metadata::VALID_NAMESPACE;
use super::super::values::quantity;
use crate::api_schema::{Checked, check_vpa};
use crate::decode::{Decoded, Nulls, decode_all};
use crate::diagnostic::Diagnostic;
use crate::error::{suggest, unreadable};
use crate::node::{Key, Node, NodeKind};
use crate::vpa::manifest::{VpaContainerPolicy, VpaManifest, VpaObjectSpec};
use kube_autoscaler_models::api::CrossVersionObjectReference;
use kube_autoscaler_models::merge_patch::merge_patch;
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::selector::{is_dns1123_label, is_dns1123_subdomain};
use kube_autoscaler_models::vpa::{
    BUCKETS, Checkpoint, ControlledValues, ResourcePolicy, ScalingMode, UpdateMode,
    VerticalPodAutoscaler,
};

const VERSION: &str = "autoscaling.k8s.io/v1";
const KIND: &str = "VerticalPodAutoscaler";
const CHECKPOINT: &str = "VerticalPodAutoscalerCheckpoint";

/// A VPA of a scenario.
#[derive(Clone, Debug)]
pub(super) struct Vpa {
    /// The manifest, which edits change.
    pub manifest: Value,
    pub object: VerticalPodAutoscaler,
    /// The line in the scenario.
    pub line: usize,
}

impl Vpa {
    pub(super) fn name(&self) -> &Arc<str> {
        &self.object.metadata.name.name
    }
}

/// Resolves a manifest, inline or from a file. `gates`: those that are on.
pub(super) fn resolve(
    at: At<'_>,
    read: Reader<'_>,
    gates: Gates,
    problems: &mut Problems,
) -> Option<Vpa> {
    let (manifest, object) = inline_or_file(KIND, at, read, problems, |at, problems| {
        let object = checked(at, gates, problems)?;
        Some((at.node()?.to_json(), object))
    })?;
    Some(Vpa { manifest, object, line: at.line })
}

/// A VPA on its own, without a scenario.
#[derive(Clone, Debug)]
pub struct SingleVpa {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// The manifest as it was written, without `startupBoost`.
    pub manifest: Value,
    /// `spec.targetRef`.
    pub target: CrossVersionObjectReference,
    /// `spec.resourcePolicy`.
    pub policy: Option<ResourcePolicy>,
    /// `spec.updatePolicy.updateMode`.
    pub update_mode: Option<UpdateMode>,
    /// The feature gates without which it is not valid.
    pub gates: Gates,
}

/// The feature gates of the VPA's admission controller that allow fields.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Gates {
    /// `PerVPAConfig`, also of the recommender and the updater.
    pub per_vpa_config: bool,
    /// `CPUStartupBoost`, which changes the requests of pods, not their recommendation. Scenarios
    /// can't enable it.
    pub startup_boost: bool,
}

/// Checks a manifest on its own, with the feature gates that it requires.
pub fn single_vpa(node: &Node) -> Result<SingleVpa, Vec<Diagnostic>> {
    let check = |per_vpa_config: bool, startup_boost: bool| {
        let gates = Gates { per_vpa_config, startup_boost };
        let mut problems = Problems::new(Vec::new());
        let object = checked(At::root(node), gates, &mut problems);
        problems.into_result().map(|()| object)
    };
    let object = check(true, true)?;
    let gates = Gates {
        per_vpa_config: check(false, true).is_err(),
        startup_boost: check(true, false).is_err(),
    };
    let without_a_message = || {
        let what = "this manifest is not supported";
        vec![At::root(node).problem(what, None)]
    };
    let VerticalPodAutoscaler { metadata, spec, .. } = object.ok_or_else(without_a_message)?;
    Ok(SingleVpa {
        name: metadata.name.name,
        manifest: without_startup_boost(node.to_json()),
        target: spec.target_ref,
        policy: spec.resource_policy,
        update_mode: spec.update_policy.and_then(|policy| policy.update_mode),
        gates,
    })
}

/// A manifest without the boost of requests, which a scenario can't have.
fn without_startup_boost(mut manifest: Value) -> Value {
    let policies = manifest.pointer_mut("/spec/resourcePolicy/containerPolicies");
    let policies = policies.and_then(Value::as_array_mut).into_iter().flatten();
    for policy in policies.filter_map(Value::as_object_mut) {
        policy.remove(STARTUP_BOOST);
    }
    if let Some(spec) = manifest.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove(STARTUP_BOOST);
    }
    manifest
}

/// Resolves a checkpoint, inline or from a file.
pub(super) fn checkpoint(
    at: At<'_>,
    read: Reader<'_>,
    problems: &mut Problems,
) -> Option<Checkpoint> {
    inline_or_file(CHECKPOINT, at, read, problems, checked_checkpoint)
}

/// Calls `check` with the manifest, which may be in a file.
fn inline_or_file<T>(
    kind: &str,
    at: At<'_>,
    read: Reader<'_>,
    problems: &mut Problems,
    check: impl FnOnce(At<'_>, &mut Problems) -> Option<T>,
) -> Option<T> {
    let file = at.key("file");
    let Some(node) = file.node() else { return check(at, problems) };
    if at.node().is_some_and(|node| matches!(&node.kind, NodeKind::Map(fields) if fields.len() > 1))
    {
        let what = "expected either `file` or a manifest, found both";
        problems.plain(at.key_position("file"), what);
        return None;
    }
    let path = node.to_json();
    let Some(path) = path.as_str() else {
        problems.plain(file, format!("expected a path, found {}", node.describe()));
        return None;
    };
    let text = match read.read(path) {
        Ok(text) => text,
        Err(why) => {
            problems.add_at(file, unreadable(path, why, read.syntax));
            return None;
        }
    };
    let root = only_object(kind, path, &text, file, problems)?;
    let inside = problems.len();
    let checked = check(At::root(&root), problems);
    problems.in_file(inside, path);
    checked
}

/// Applies a JSON merge patch to a manifest, and checks the result. Problems are reported at the
/// patch.
pub(super) fn edited(
    vpa: &Vpa,
    patch: &Value,
    at: At<'_>,
    gates: Gates,
    problems: &mut Problems,
) -> Option<Vpa> {
    let mut manifest = vpa.manifest.clone();
    let spec = manifest.get("spec").cloned();
    merge_patch(&mut manifest, patch);
    let root = node(&manifest, at);
    let mut object = checked(At::root(&root), gates, problems)?;
    if object.metadata.name != vpa.object.metadata.name {
        problems.plain(at, "`editVpa` can't change the name and the namespace of a VPA");
        return None;
    }
    let generation = vpa.object.metadata.generation;
    object.metadata.generation = generation + i64::from(spec.as_ref() != manifest.get("spec"));
    Some(Vpa { manifest, object, line: vpa.line })
}

/// A tree of a value. Its parts have the positions of the same parts of the patch at `at`, or of
/// the patch itself.
fn node(value: &Value, at: At<'_>) -> Node {
    let (line, column) = (at.line, at.column);
    let kind = match value {
        Value::Array(items) => {
            let items = items.iter().enumerate();
            NodeKind::List(items.map(|(index, item)| node(item, at.index(index))).collect())
        }
        Value::Object(fields) => {
            let entry = |(text, value): (&String, &Value)| {
                let At { line, column, .. } = at.key_position(text);
                (Key { text: text.clone(), line, column }, node(value, at.key(text)))
            };
            NodeKind::Map(fields.iter().map(entry).collect())
        }
        Value::String(text) => NodeKind::Scalar { text: text.clone(), plain: false },
        scalar => NodeKind::Scalar { text: scalar.to_string(), plain: true },
    };
    Node { line, column, kind }
}

/// Checks a VPA.
fn checked(at: At<'_>, gates: Gates, problems: &mut Problems) -> Option<VerticalPodAutoscaler> {
    let before = problems.len();
    version_and_kind(KIND, at, problems);
    if problems.len() > before {
        return None;
    }
    let Checked { problems: rejected, valid } = check_vpa(at.node()?);
    let is_rejected = !rejected.is_empty();
    rejected.into_iter().for_each(|problem| problems.add(problem));
    let typed: VpaManifest = match decode_all(&valid?, Nulls::Absent) {
        Ok(Decoded { value, malformed }) => {
            malformed.into_iter().for_each(|problem| problems.add(problem));
            value
        }
        // Without the values that the API server rejects, the rest may not be complete.
        Err(_) if is_rejected => return None,
        Err(problem) => {
            problems.add(problem);
            return None;
        }
    };
    namespace(at, problems);
    if let Some(spec) = &typed.spec {
        check_spec(spec, at.key("spec"), gates, problems);
    }
    if problems.len() > before {
        return None;
    }
    let mut value = without_nulls(at.node()?.to_json());
    prepare(&mut value);
    match serde_json::from_value::<VerticalPodAutoscaler>(value) {
        Ok(object) => Some(object),
        Err(error) => {
            problems.plain(at, format!("the manifest can't be read: {error}"));
            None
        }
    }
}

/// Fills in the namespace and the generation, and removes the status.
fn prepare(value: &mut Value) {
    let Value::Object(fields) = value else { return };
    fields.remove("status");
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        metadata.entry("namespace").or_insert_with(|| "default".into());
        metadata.insert("generation".to_owned(), 1.into());
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            let fields = fields.map(|(name, value)| (name, without_nulls(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        scalar => scalar,
    }
}

fn version_and_kind(kind: &str, at: At<'_>, problems: &mut Problems) {
    for (field, wanted) in [("apiVersion", VERSION), ("kind", kind)] {
        let value = at.key(field);
        let Some(node) = value.node() else {
            problems.hint(at, format!("missing field `{field}`"), format!("`{field}: {wanted}`"));
            continue;
        };
        let found = node.to_json();
        if found.as_str() != Some(wanted) {
            let what = format!("expected {field} `{wanted}`, found {}", node.describe());
            problems.plain(value, what);
        }
    }
}

/// The text of a field, if it has one.
fn text(at: At<'_>, field: &str) -> Option<String> {
    at.key(field).node()?.to_json().as_str().map(str::to_owned)
}

fn name_and_namespace(at: At<'_>, problems: &mut Problems) {
    let metadata = at.key("metadata");
    match text(metadata, "name") {
        None => {
            let hint = "for example `metadata: {name: web}`";
            problems.hint(metadata, "missing field `metadata.name`", hint);
        }
        Some(name) => {
            if let Some(wrong) = is_dns1123_subdomain(&name, "name").into_iter().next() {
                let what = format!("{name:?} is not a valid name: {wrong}");
                problems.plain(metadata.key("name"), what);
            }
        }
    }
    namespace(at, problems);
}

fn namespace(at: At<'_>, problems: &mut Problems) {
    let metadata = at.key("metadata");
    if let Some(namespace) = text(metadata, "namespace")
        && !is_dns1123_label(&namespace).is_empty()
    {
        let what = format!("{namespace:?} is not a valid namespace");
        problems.hint(metadata.key("namespace"), what, VALID_NAMESPACE);
    }
}

fn check_spec(spec: &VpaObjectSpec, at: At<'_>, gates: Gates, problems: &mut Problems) {
    if let Some(reference) = &spec.target_ref {
        let at = at.key("targetRef");
        let fields = [
            ("apiVersion", &reference.api_version),
            ("kind", &reference.kind),
            ("name", &reference.name),
        ];
        for (field, value) in fields {
            // The API server accepts empty texts, and a reference without an apiVersion.
            let is_optional = field == "apiVersion" && !is_given(at, field);
            if value.as_ref().map_or(is_optional, String::is_empty) {
                let what = format!("missing field `targetRef.{field}`");
                let hint =
                    "an API server accepts this, but a scenario must name the workload fully";
                match field == "apiVersion" {
                    true => problems.hint(at, what, hint),
                    false => problems.plain(at, what),
                }
            }
        }
    }
    if let Some(policy) = &spec.update_policy {
        let at = at.key("updatePolicy");
        match policy.update_mode {
            None if !is_given(at, "updateMode") => {
                webhook(at, "missing field `updateMode`", problems);
            }
            Some(UpdateMode::InPlace) => {
                let what = "`updateMode: InPlace` requires the feature gate InPlace";
                webhook(at.key("updateMode"), what, problems);
            }
            Some(_) | None => {}
        }
        if policy.min_replicas.is_some_and(|replicas| replicas < 1) {
            webhook(at.key("minReplicas"), "`minReplicas` must be at least 1", problems);
        }
        if policy.evict_after_oom_seconds.is_some() && !gates.per_vpa_config {
            requires_gate("evictAfterOOMSeconds", at, problems);
        }
    }
    forbid_startup_boost(at, gates, problems);
    let recommenders = spec.recommenders.as_deref().unwrap_or_default();
    if recommenders.len() > 1 {
        let what = format!("expected at most one recommender, found {}", recommenders.len());
        webhook(at.key("recommenders"), &what, problems);
    }
    let policies = spec.resource_policy.as_ref().and_then(|it| it.container_policies.as_deref());
    for (index, policy) in policies.unwrap_or_default().iter().enumerate() {
        let at = at.key("resourcePolicy").key("containerPolicies").index(index);
        check_policy(policy, at, gates, problems);
    }
}

/// Returns true if a field is set, even to a value that the API server rejects.
fn is_given(at: At<'_>, field: &str) -> bool {
    at.key(field).node().is_some_and(|node| !node.is_null())
}

fn by_webhook(what: &str) -> String {
    format!("the VPA's admission webhook rejects this VPA: {what}")
}

/// Adds a problem that the VPA's admission webhook reports.
fn webhook(at: At<'_>, what: &str, problems: &mut Problems) {
    problems.plain(at, by_webhook(what));
}

fn requires_gate(field: &str, at: At<'_>, problems: &mut Problems) {
    let what = by_webhook(&format!("`{field}` requires the feature gate PerVPAConfig"));
    let hint = "add `feature-gates: PerVPAConfig=true` to `recommender.flags`";
    problems.hint(at.key_position(field), what, hint);
}

/// Rejects a boost of the requests at the start of pods without its feature gate.
fn forbid_startup_boost(at: At<'_>, gates: Gates, problems: &mut Problems) {
    if is_given(at, STARTUP_BOOST) && !gates.startup_boost {
        let what = by_webhook("`startupBoost` requires the feature gate CPUStartupBoost");
        let hint = "remove `startupBoost`: recommendations do not depend on it, and the higher \
                    requests of starting pods are not simulated";
        problems.hint(at.key_position(STARTUP_BOOST), what, hint);
    }
}

/// The field of a boost of the requests at the start of pods.
const STARTUP_BOOST: &str = "startupBoost";

fn check_policy(policy: &VpaContainerPolicy, at: At<'_>, gates: Gates, problems: &mut Problems) {
    let has_no_name = || !is_given(at, "containerName");
    if policy.container_name.as_ref().map_or_else(has_no_name, String::is_empty) {
        webhook(at, "missing field `containerName`", problems);
    }
    if policy.mode == Some(ScalingMode::Off)
        && policy.controlled_values == Some(ControlledValues::RequestsAndLimits)
    {
        let what = "`controlledValues: RequestsAndLimits` has no effect with `mode: Off`";
        webhook(at.key_position("controlledValues"), what, problems);
    }
    for (index, resource) in policy.controlled_resources.iter().flatten().enumerate() {
        if !matches!(resource.as_str(), "cpu" | "memory") {
            let at = at.key("controlledResources").index(index);
            let hint = suggest(resource, ["cpu", "memory"]);
            let what = by_webhook(&format!("unknown resource `{resource}`"));
            problems.add(at.problem(what, hint));
        }
    }
    let none = BTreeMap::new();
    let list = |list: &Option<crate::vpa::manifest::AllowedAmounts>| {
        list.as_ref().map_or(none.clone(), |list| list.0.clone())
    };
    let (min, max) = (list(&policy.min_allowed), list(&policy.max_allowed));
    for (field, list) in [("minAllowed", &min), ("maxAllowed", &max)] {
        for (resource, amount) in list {
            check_unit(resource, amount, at.key(field).key(resource), problems);
        }
    }
    for (resource, least) in &min {
        if let Some(most) = max.get(resource).filter(|most| most.compare(least).is_lt()) {
            let what =
                format!("`maxAllowed` of {resource}, {most}, is less than `minAllowed`, {least}");
            webhook(at.key("maxAllowed").key(resource), &what, problems);
        }
    }
    check_gated(policy, at, gates, problems);
    forbid_startup_boost(at, gates, problems);
}

/// Checks the fields that require the feature gate PerVPAConfig.
fn check_gated(policy: &VpaContainerPolicy, at: At<'_>, gates: Gates, problems: &mut Problems) {
    let fields = [
        "oomBumpUpRatio",
        "oomMinBumpUp",
        "memoryAggregationIntervalSeconds",
        "memoryAggregationIntervalCount",
    ];
    for field in at.given(&fields) {
        if !gates.per_vpa_config {
            requires_gate(field, at, problems);
        }
    }
    let amounts =
        [("oomBumpUpRatio", &policy.oom_bump_up_ratio), ("oomMinBumpUp", &policy.oom_min_bump_up)];
    for (field, text) in amounts {
        let Some(text) = text else { continue };
        quantity(text, at.key(field), problems);
        let Ok(amount) = Quantity::parse(text) else { continue };
        let least = if field == "oomBumpUpRatio" { 1000 } else { 0 };
        if amount.milli() < least {
            let what = format!("`{field}` must be at least {}, found {text}", least / 1000);
            webhook(at.key(field), &what, problems);
        }
    }
}

/// Checks that an amount is a whole number of milli-CPUs or bytes.
fn check_unit(resource: &str, amount: &Quantity, at: At<'_>, problems: &mut Problems) {
    let milli = Quantity::from_milli(amount.milli(), Format::DecimalSI);
    match resource {
        "cpu" if milli.compare(amount).is_ne() => {
            webhook(at, &format!("{amount} is not a whole number of millicores"), problems);
        }
        "memory" if amount.milli() % 1000 != 0 || milli.compare(amount).is_ne() => {
            webhook(at, &format!("{amount} is not a whole number of bytes"), problems);
        }
        "cpu" | "memory" => {}
        // Upstream accepts and ignores other resources; a name without a domain is a misspelling.
        _ if resource.contains('/') => {}
        _ => {
            let hint = suggest(resource, ["cpu", "memory"]);
            problems.add(at.problem(format!("unknown resource `{resource}`"), hint));
        }
    }
}

/// Checks a checkpoint.
fn checked_checkpoint(at: At<'_>, problems: &mut Problems) -> Option<Checkpoint> {
    let before = problems.len();
    version_and_kind(CHECKPOINT, at, problems);
    name_and_namespace(at, problems);
    for field in ["vpaObjectName", "containerName"] {
        if at.key("spec").key(field).node().is_none() {
            problems.plain(at.key("spec"), format!("missing field `spec.{field}`"));
        }
    }
    for histogram in ["cpuHistogram", "memoryHistogram"] {
        let weights = at.key("status").key(histogram).key("bucketWeights");
        let Some(NodeKind::Map(entries)) = weights.node().map(|node| &node.kind) else { continue };
        for (key, _) in entries {
            // An API server accepts any key, but the recommender can't read the checkpoint.
            if key.text.parse::<i32>().is_err() {
                let what =
                    format!("expected a bucket from 0 to {}, found {}", BUCKETS - 1, key.text);
                problems.plain(weights.key_position(&key.text), what);
            }
        }
    }
    if problems.len() > before {
        return None;
    }
    let mut value = without_nulls(at.node()?.to_json());
    if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
        metadata.entry("namespace").or_insert_with(|| "default".into());
    }
    match serde_json::from_value::<Checkpoint>(value) {
        Ok(checkpoint) => Some(checkpoint),
        Err(error) => {
            problems.plain(at.key("status"), format!("the checkpoint can't be read: {error}"));
            None
        }
    }
}
