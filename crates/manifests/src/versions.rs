//! Two versions of manifests, and the autoscalers that differ between them.

use std::fmt;

use serde_json::Value;

use super::field::value_text;
use super::hpa::ValidHpa;
use super::load::HpaName;
use super::objects::{ManifestFile, Object, Objects};
use super::select::{Invalid, check_kinds, is_named};
use super::{AutoscalerKind, Draft, DraftError, DraftOptions, Drafts, Selected, draft_objects};
use kube_lockstep_scenario::diagnostic::{Diagnostic, Place};
use kube_lockstep_scenario::resolve::Reader;
use kube_lockstep_scenario::syntax::Syntax;

/// The drafts of two versions of manifests.
#[derive(Clone, Debug)]
pub struct Versions {
    /// Those of the older version.
    pub base: Drafts,
    /// Those of the newer version.
    pub head: Drafts,
}

/// The autoscalers of a target that differ between two versions.
#[derive(Clone, Debug)]
pub struct ChangedDraft {
    /// Those of the older version. None: they are added.
    pub base: Option<Draft>,
    /// Those of the newer version. None: they are removed.
    pub head: Option<Draft>,
    /// The fields that differ, if both versions have the autoscalers.
    pub fields: Vec<ChangedField>,
}

/// A field that differs between two versions.
#[derive(Clone, PartialEq, Debug)]
pub struct ChangedField {
    /// The object: `HPA web`, `Deployment web`.
    pub object: String,
    /// The field of an HPA, such as `spec.metrics[0].resource.target.averageUtilization`; of a
    /// target, the field of the scenario that is made of it, such as `workload.replicas`.
    pub path: String,
    /// The value in the older version. None: it is not set.
    pub base: Option<Value>,
    /// The value in the newer version. None: it is not set.
    pub head: Option<Value>,
    /// The place in the newer version of the field, or of a field that contains it.
    pub place: Option<Place>,
}

/// `spec.maxReplicas: 10 → 20`.
impl fmt::Display for ChangedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Option<Value>| value_text(value.as_ref().unwrap_or(&Value::Null));
        write!(f, "{}: {} → {}", self.path, text(&self.base), text(&self.head))
    }
}

/// Drafts the scenarios of two versions of manifests. An autoscaler that a load, a request or an
/// option names must exist in one of them.
///
/// # Errors
/// If a manifest is invalid, neither version has an autoscaler, or none uses the metric of a load.
pub fn draft_versions(
    base: &[ManifestFile],
    head: &[ManifestFile],
    options: &DraftOptions,
    read: &dyn Fn(&str) -> Result<String, Diagnostic>,
) -> Result<Versions, DraftError> {
    let (base_objects, head_objects) = (Objects::read(base)?, Objects::read(head)?);
    if check_kinds(&base_objects, base, options).is_err() {
        check_kinds(&head_objects, head, options)?;
    }
    let base = draft_version(&base_objects, &head_objects, options, read)?;
    let head = draft_version(&head_objects, &base_objects, options, read)?;
    head.check_loads(&base.list.iter().collect::<Vec<_>>())?;
    Ok(Versions { base, head })
}

fn draft_version(
    own: &Objects,
    other: &Objects,
    options: &DraftOptions,
    read: &dyn Fn(&str) -> Result<String, Diagnostic>,
) -> Result<Drafts, DraftError> {
    let mut invalid = Invalid::default();
    let read = Reader { file: read, syntax: Syntax::Flags };
    let options = DraftOptions {
        hpas: own_names(&options.hpas, &own.hpas, &other.hpas),
        vpas: own_names(&options.vpas, &own.vpas, &other.vpas),
        ..options.clone()
    };
    let others = other.hpas.iter().chain(&other.vpas);
    let others: Vec<HpaName> = others
        .map(|object| HpaName { namespace: object.namespace(), name: object.name() })
        .collect();
    let drafts = draft_objects(own, &others, &options, read, &mut invalid);
    invalid.check()?;
    drafts
}

/// The selection without the names that only the other version has.
fn own_names(selected: &Selected, own: &[Object], other: &[Object]) -> Selected {
    let Selected::Named(patterns) = selected else { return selected.clone() };
    let is_in = |pattern: &str, objects: &[Object]| objects.iter().any(|it| is_named(pattern, it));
    let is_own = |pattern: &&String| is_in(pattern, own) || !is_in(pattern, other);
    Selected::Named(patterns.iter().filter(is_own).cloned().collect())
}

impl Versions {
    /// The autoscalers that differ: those of the newer version in their order, then those that are
    /// removed.
    #[must_use]
    pub fn changes(&self) -> Vec<ChangedDraft> {
        let Versions { base, head } = self;
        let mut changes = Vec::new();
        for head in &head.list {
            // HPAs that had separate targets can have the same one now.
            let same = || base.list.iter().filter(|base| base.shares_autoscaler(head));
            if same().next().is_none() {
                changes.push(ChangedDraft { base: None, head: Some(head.clone()), fields: vec![] });
            }
            for base in same() {
                let fields = changed_fields(base, head);
                if !fields.is_empty() {
                    let (base, head) = (Some(base.clone()), Some(head.clone()));
                    changes.push(ChangedDraft { base, head, fields });
                }
            }
        }
        let is_kept = |base: &Draft| head.list.iter().any(|head| base.shares_autoscaler(head));
        let removed = base.list.iter().filter(|base| !is_kept(base)).cloned();
        let removed = removed.map(|it| ChangedDraft { base: Some(it), head: None, fields: vec![] });
        changes.extend(removed);
        changes
    }
}

impl Draft {
    /// The names of the autoscalers.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match self.kind {
            AutoscalerKind::Hpa => self.hpa_names().iter().map(HpaName::to_string).collect(),
            AutoscalerKind::Vpa => vec![self.name.clone()],
        }
    }

    fn shares_autoscaler(&self, other: &Draft) -> bool {
        let names = other.names();
        self.kind == other.kind && self.names().iter().any(|name| names.contains(name))
    }

    /// The fields of the scenario that come from the target, from a VPA or from the loads.
    fn other_fields(&self) -> Value {
        const OF_HPAS: [&str; 6] = ["apiVersion", "kind", "requirement", "hpa", "hpas", "until"];
        let fields = self.fields.iter().filter(|(name, _)| !OF_HPAS.contains(&name.as_str()));
        Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// The place of a field of the scenario in the manifest of the target.
    fn place_in_target(&self, path: &str) -> Option<Place> {
        let in_manifest = match path {
            "workload.replicas" => "spec.replicas",
            _ => "spec.template.spec.containers",
        };
        self.target.object.as_ref()?.place_of(in_manifest)
    }
}

impl Object {
    /// The place of a field, or of the innermost one of its parents that exists.
    fn place_of(&self, path: &str) -> Option<Place> {
        self.diagnostic(path, "").place.map(|place| *place)
    }
}

/// The fields that differ between two versions of the same autoscalers.
fn changed_fields(base: &Draft, head: &Draft) -> Vec<ChangedField> {
    let mut changed = Vec::new();
    let find = |draft: &Draft, name: &HpaName| {
        draft.hpas.iter().find(|hpa| hpa.name == *name).map(settings_of)
    };
    let is_gone = |hpa: &&ValidHpa| find(head, &hpa.name).is_none();
    for hpa in head.hpas.iter().chain(base.hpas.iter().filter(is_gone)) {
        let (before, after) = (find(base, &hpa.name), find(head, &hpa.name));
        let mut different = Vec::new();
        match (&before, &after) {
            (Some(before), Some(after)) => differences(before, after, "", &mut different),
            (before, after) => {
                let path = "metadata.name".to_owned();
                let [base, head] = [before, after].map(|it| it.as_ref().map(|it| &it["name"]));
                different.push(Difference { path, base, head });
            }
        }
        let object = format!("HPA {}", hpa.name.name);
        changed.extend(different.into_iter().map(|it| {
            let place = hpa.object.place_of(&it.path.replace('[', ".").replace(']', ""));
            it.changed(object.clone(), place)
        }));
    }
    let (before, after) = (base.other_fields(), head.other_fields());
    let mut different = Vec::new();
    differences(&before, &after, "", &mut different);
    changed.extend(different.into_iter().map(|it| {
        let place = head.place_in_target(&it.path);
        it.changed(head.target.to_string(), place)
    }));
    changed
}

/// The parts of the manifest of an HPA that its behavior depends on.
fn settings_of(hpa: &ValidHpa) -> Value {
    let mut manifest = hpa.hpa.manifest.clone();
    let Some(fields) = manifest.as_object_mut() else { return manifest };
    // Old API versions keep newer fields in annotations.
    let is_setting = |name: &str| name.starts_with("autoscaling.alpha.kubernetes.io/");
    let annotations = fields.get("metadata").and_then(|it| it.get("annotations")).cloned();
    let annotations = annotations.and_then(|it| it.as_object().cloned()).unwrap_or_default();
    let settings: serde_json::Map<String, Value> =
        annotations.into_iter().filter(|(name, _)| is_setting(name)).collect();
    fields.remove("metadata");
    fields.insert("name".to_owned(), Value::from(&*hpa.name.name));
    if !settings.is_empty() {
        fields.insert("metadata".to_owned(), serde_json::json!({ "annotations": settings }));
    }
    manifest
}

/// A value that differs, in the innermost field.
struct Difference<'v> {
    path: String,
    base: Option<&'v Value>,
    head: Option<&'v Value>,
}

impl Difference<'_> {
    fn changed(self, object: String, place: Option<Place>) -> ChangedField {
        let Difference { path, base, head } = self;
        ChangedField { object, path, base: base.cloned(), head: head.cloned(), place }
    }
}

/// Adds each innermost value that differs.
fn differences<'v>(base: &'v Value, head: &'v Value, path: &str, found: &mut Vec<Difference<'v>>) {
    let mut child = |path: String, base: Option<&'v Value>, head: Option<&'v Value>| {
        let is_set = |value: &&Value| !value.is_null();
        match (base.filter(is_set), head.filter(is_set)) {
            (None, None) => {}
            (Some(base), Some(head)) => differences(base, head, &path, found),
            (base, head) => found.push(Difference { path, base, head }),
        }
    };
    match (base, head) {
        (Value::Object(old), Value::Object(new)) => {
            let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
            let dot = if path.is_empty() { "" } else { "." };
            for name in names {
                child(format!("{path}{dot}{name}"), old.get(name), new.get(name));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for index in 0..old.len().max(new.len()) {
                child(format!("{path}[{index}]"), old.get(index), new.get(index));
            }
        }
        _ if base == head => {}
        _ => {
            let (base, head) = (Some(base), Some(head));
            found.push(Difference { path: path.to_owned(), base, head });
        }
    }
}

#[cfg(test)]
mod tests;
