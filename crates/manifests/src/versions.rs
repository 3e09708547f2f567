//! Two versions of manifests, and the autoscalers that differ between them.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::field::value_text;
use super::hpa::ValidHpa;
use super::load::HpaName;
use super::manifests::{Manifests, ValidWorkload};
use super::objects::{ManifestFile, Object, Objects, same_namespace};
use super::select::{Invalid, OtherNames, check_kinds, is_named};
use super::target::{DraftTarget, read_target};
use super::{AutoscalerKind, Draft, DraftError, DraftOptions, Drafts, Missing, MissingValue};
use super::{Selected, draft_objects};
use kube_autoscaler_models::api::{CrossVersionObjectReference, HpaSpec};
use kube_autoscaler_models::selector::Selector;
use kube_lockstep_scenario::diagnostic::{Diagnostic, Place};
use kube_lockstep_scenario::node::Node;
use kube_lockstep_scenario::resolve::{Reader, SingleHpa};
use kube_lockstep_scenario::syntax::Syntax;

/// The drafts of two versions of manifests.
#[derive(Clone, Debug)]
pub struct Versions {
    /// Those of the older version.
    pub base: Drafts,
    /// Those of the newer version.
    pub head: Drafts,
    /// All valid manifests of the older version. None: it has no autoscaler.
    pub base_manifests: Option<Manifests>,
    /// All valid manifests of the newer version. None: it has no autoscaler.
    pub head_manifests: Option<Manifests>,
    /// All autoscalers of the newer version, with those that are not selected.
    autoscalers: Vec<(AutoscalerKind, Object)>,
}

/// The autoscalers of a target in two versions.
#[derive(Clone, Debug, Default)]
pub struct ChangedDraft {
    /// Those of the older version. None: they are added.
    pub base: Option<Draft>,
    /// Those of the newer version. None: they are removed.
    pub head: Option<Draft>,
    /// The fields that differ, if both versions have the autoscalers; those of the target only if
    /// it is the same.
    pub fields: Vec<ChangedField>,
    /// The targets in the older version, as `KIND NAME`, that the newer one still has, but that no
    /// autoscaler of this kind has as its target any more.
    pub targets_without_autoscaler: Vec<String>,
    is_moved: bool,
}

impl ChangedDraft {
    /// Returns false if both versions have the same autoscalers.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.base.is_none() || self.head.is_none() || !self.fields.is_empty()
    }

    /// Returns true if the autoscalers have another target than before.
    #[must_use]
    pub fn is_moved(&self) -> bool {
        self.is_moved
    }

    /// The missing values of both versions, each with its draft, the newer version first; without
    /// those that are effects of the change.
    pub fn missing(&self) -> impl Iterator<Item = (&Draft, &Missing)> {
        let of = |draft| move |missing| (draft, missing);
        let head = self.head.iter().flat_map(move |it| it.missing.iter().map(of(it)));
        let base = self.comparable_base().into_iter();
        let base = base.flat_map(move |it| it.missing.iter().map(of(it)));
        head.filter(|(_, missing)| !self.is_effect(missing)).chain(base)
    }

    /// An effect of the change after which there is nothing to predict: the target is gone, the
    /// request that a load is in percent of, or the container that an HPA scales on.
    #[must_use]
    pub fn unpredictable_effect(&self) -> Option<String> {
        let has_figures = |it: &&Missing| it.value == MissingValue::Request { of_load: false };
        let mut missing = self.head.iter().flat_map(|draft| &draft.missing);
        let missing = missing.find(|it| self.is_effect(it) && !has_figures(it));
        let has_container =
            self.base.as_ref().is_none_or(|base| base.lacking_container().is_none());
        let container = || self.head.as_ref().filter(|_| has_container)?.lacking_container();
        missing.map(Missing::to_string).or_else(container)
    }

    /// Returns true if the change removes a required value, the target or the request of a
    /// container, and false if the older version already lacks it.
    fn is_effect(&self, missing: &Missing) -> bool {
        let has_target = |draft: &Option<Draft>| {
            draft.as_ref().is_some_and(|draft| draft.target.object.is_some())
        };
        let is_lacked_before =
            self.base.as_ref().is_some_and(|base| base.missing.contains(missing));
        match missing.value {
            MissingValue::Request { .. } => has_target(&self.head) && !is_lacked_before,
            MissingValue::Target => has_target(&self.base),
            MissingValue::RequestOfLoad | MissingValue::Load => false,
        }
    }

    /// The older version, if the newer one has the same target: the load of another one is not the
    /// same.
    #[must_use]
    pub fn comparable_base(&self) -> Option<&Draft> {
        self.base.as_ref().filter(|_| !self.is_moved())
    }
}

/// A field that differs between two versions.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ChangedField {
    /// The object: `HPA web`, `Deployment web`.
    pub object: String,
    /// The field, such as `spec.metrics[0].resource.target.averageUtilization`, in the newest API
    /// version.
    pub path: String,
    /// The value in the older version, or the default. None: it is not set.
    pub base: Option<Value>,
    /// The value in the newer version, or the default. None: it is not set.
    pub head: Option<Value>,
    base_is_default: bool,
    head_is_default: bool,
    /// The place in the newer version of the field, or of a field that contains it.
    pub place: Option<Place>,
}

/// `spec.maxReplicas: 10 → 20`, or `spec.minReplicas: unset (1) → 2` with a default.
impl fmt::Display for ChangedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Option<Value>, is_default: bool| match (value, is_default) {
            (Some(value), true) => format!("unset ({})", value_text(value)),
            (value, _) => value_text(value.as_ref().unwrap_or(&Value::Null)),
        };
        let base = text(&self.base, self.base_is_default);
        write!(f, "{}: {base} → {}", self.path, text(&self.head, self.head_is_default))
    }
}

/// Drafts the scenarios of two versions of manifests. An autoscaler that a load, a request or an
/// option names must exist in one of them.
///
/// # Errors
/// If a manifest is invalid, neither version has an autoscaler, or none uses the metric of a load.
pub fn draft_versions(
    base_files: &[ManifestFile],
    head_files: &[ManifestFile],
    options: &DraftOptions,
    read: &dyn Fn(&str) -> Result<String, Diagnostic>,
) -> Result<Versions, DraftError> {
    let (base_objects, head_objects) = (Objects::read(base_files)?, Objects::read(head_files)?);
    if check_kinds(&base_objects, base_files, options).is_err() {
        check_kinds(&head_objects, head_files, options)?;
    }
    let base = draft_version(&base_objects, &head_objects, options, read)?;
    let head = draft_version(&head_objects, &base_objects, options, read)?;
    head.check_loads(&base.list.iter().collect::<Vec<_>>(), ", in either version")?;
    // Problems of manifests that are not selected do not matter.
    let manifests = |objects: &Objects, files: &[ManifestFile]| {
        Manifests::of(objects, files, &[], &mut Invalid::default()).ok()
    };
    let base_manifests = manifests(&base_objects, base_files);
    let head_manifests = manifests(&head_objects, head_files);
    let all = [(AutoscalerKind::Hpa, head_objects.hpas), (AutoscalerKind::Vpa, head_objects.vpas)];
    let all = all.into_iter().flat_map(|(kind, all)| all.into_iter().map(move |it| (kind, it)));
    let autoscalers = all.collect();
    Ok(Versions { base, head, base_manifests, head_manifests, autoscalers })
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
    let drafts = draft_objects(own, &OtherNames::of(other), &options, read, &mut invalid);
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
    /// removed. An autoscaler with another name is the same one if it has the same target.
    #[must_use]
    pub fn changes(&self) -> Vec<ChangedDraft> {
        self.compared().into_iter().filter(ChangedDraft::is_changed).collect()
    }

    /// All autoscalers, as in [`Versions::changes`], with those that do not differ.
    #[must_use]
    pub fn compared(&self) -> Vec<ChangedDraft> {
        let Versions { base, head, .. } = self;
        let mut changes = Vec::new();
        let mut removed: Vec<&Draft> =
            base.list.iter().filter(|draft| !draft.is_in(&head.list)).collect();
        for draft in &head.list {
            let same = || base.list.iter().filter(|base| base.shares_autoscaler(draft));
            let before = same().find(|base| base.has_target_of(draft)).or_else(|| same().next());
            let before = before.or_else(|| {
                let exact = removed.iter().position(|base| base.has_target_of(draft));
                let renamed = exact
                    .or_else(|| removed.iter().position(|it| self.has_workload_of(it, draft)))?;
                Some(removed.remove(renamed))
            });
            match before {
                None => {
                    let head = Some(draft.clone());
                    changes.push(ChangedDraft { head, ..ChangedDraft::default() });
                }
                Some(before) => {
                    let fields = self.changed_fields(before, draft);
                    let (base, head) = (Some(before.clone()), Some(draft.clone()));
                    let targets_without_autoscaler = self.targets_without_autoscaler(draft);
                    let is_moved = !self.has_workload_of(before, draft);
                    changes.push(ChangedDraft {
                        base,
                        head,
                        fields,
                        targets_without_autoscaler,
                        is_moved,
                    });
                }
            }
        }
        let removed = removed.into_iter().cloned().map(Some);
        changes.extend(removed.map(|base| ChangedDraft { base, ..ChangedDraft::default() }));
        changes
    }

    /// Returns true if the target after the change is the one before it: it has the same name, and
    /// the same kind, or the newer version lacks the target of the old kind.
    fn has_workload_of(&self, base: &Draft, head: &Draft) -> bool {
        base.has_target_of(head)
            || base.has_target_name_of(head) && self.head.object(&base.target).is_none()
    }

    /// The targets that autoscalers had in the older version, and that now have none of this kind.
    fn targets_without_autoscaler(&self, autoscalers: &Draft) -> Vec<String> {
        let Versions { base, head, autoscalers: all, .. } = self;
        let before = base.list.iter().filter(|before| before.shares_autoscaler(autoscalers));
        let has_none = |target: &&DraftTarget| {
            let Some(object) = head.object(target) else { return false };
            !all.iter().any(|(kind, it)| *kind == autoscalers.kind && it.refers_to(*kind, object))
        };
        before.map(|it| &it.target).filter(has_none).map(DraftTarget::to_string).collect()
    }

    /// The fields that differ between two versions of autoscalers.
    fn changed_fields(&self, base: &Draft, head: &Draft) -> Vec<ChangedField> {
        let mut changed = Vec::new();
        let find = |drafts: &Drafts, name: &HpaName| {
            let mut hpas = drafts.list.iter().flat_map(|draft| &draft.hpas);
            hpas.find(|hpa| hpa.name.is_same(name)).cloned()
        };
        // A renamed HPA has no counterpart of its name.
        let renamed = match (base.hpas.as_slice(), head.hpas.as_slice()) {
            ([before], [after]) => Some((before, after)),
            _ => None,
        };
        let is_new = |hpa: &&ValidHpa| {
            !head.hpas.iter().any(|other| other.name.is_same(&hpa.name)) && renamed.is_none()
        };
        for hpa in head.hpas.iter().chain(base.hpas.iter().filter(is_new)) {
            let (before, after) = match renamed {
                Some((before, after)) => (Some(before.clone()), Some(after.clone())),
                None => (find(&self.base, &hpa.name), find(&self.head, &hpa.name)),
            };
            changed.extend(changed_in_hpa(&hpa.name.name, before.as_ref(), after.as_ref()));
        }
        if !self.has_workload_of(base, head) {
            return changed;
        }
        if base.target.object.is_some() && head.target.object.is_none() {
            let (object, base) = (base.target.to_string(), Some(base.target.name.clone().into()));
            let path = "metadata.name".to_owned();
            changed.push(ChangedField { object, path, base, ..ChangedField::default() });
            return changed;
        }
        let (before, after) = (base.other_fields(), head.other_fields());
        let mut different = Vec::new();
        differences(&before, &after, "", &mut different);
        changed.extend(different.into_iter().map(|it| head.changed_in_target(base, it)));
        changed.extend(head.selector_change(base));
        changed
    }
}

impl Drafts {
    /// The manifest of a target.
    fn object(&self, target: &DraftTarget) -> Option<&Object> {
        self.others.iter().find(|object| {
            object.kind() == target.kind
                && object.name() == target.name
                && same_namespace(object.namespace().as_ref(), target.namespace.as_ref())
        })
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

    /// A container that an HPA scales on, but the target does not have.
    fn lacking_container(&self) -> Option<String> {
        let DraftTarget { containers, .. } = &self.target;
        let metrics = |hpa: &'_ ValidHpa| hpa.hpa.metrics.clone();
        let metrics = self.hpas.iter().flat_map(metrics);
        let mut metrics = metrics.filter_map(|metric| metric.container_resource);
        let lacking = metrics.find(|it| containers.iter().all(|name| **name != *it.container));
        let lacking = lacking.filter(|_| !containers.is_empty())?;
        let (target, name) = (&self.target, lacking.container);
        Some(format!("{target} has no container {name}, on which the HPA scales"))
    }

    fn shares_autoscaler(&self, other: &Draft) -> bool {
        let names = other.hpa_names();
        let is_shared = |name: &HpaName| names.iter().any(|other| name.is_same(other));
        match self.kind {
            _ if self.kind != other.kind => false,
            AutoscalerKind::Hpa => self.hpa_names().iter().any(is_shared),
            AutoscalerKind::Vpa => self.name == other.name,
        }
    }

    fn is_in(&self, drafts: &[Draft]) -> bool {
        drafts.iter().any(|draft| self.shares_autoscaler(draft))
    }

    fn has_target_of(&self, other: &Draft) -> bool {
        self.target.kind == other.target.kind && self.has_target_name_of(other)
    }

    fn has_target_name_of(&self, other: &Draft) -> bool {
        let (one, other_target) = (&self.target, &other.target);
        self.kind == other.kind
            && one.name == other_target.name
            && same_namespace(one.namespace.as_ref(), other_target.namespace.as_ref())
    }

    /// The fields of the scenario that come from the target or from a VPA.
    fn other_fields(&self) -> Value {
        let mut fields = serde_json::Map::new();
        for name in ["workload", "vpa"] {
            fields.extend(self.fields.get(name).map(|value| (name.to_owned(), value.clone())));
        }
        if let Some(workload) = fields.get_mut("workload").and_then(Value::as_object_mut) {
            workload.remove("scaleDownOrder");
            // See `selector_change`.
            workload.remove("labels");
            workload.remove("selector");
        }
        // A load is the same in both versions, but not the limit of the pods that have it.
        let usage = self.fields.get("metrics").and_then(|metrics| metrics.get("resource"));
        for usage in usage.and_then(Value::as_array).into_iter().flatten() {
            let name = usage["name"].as_str().unwrap_or_default();
            let limit = usage.get("limit").cloned();
            fields.extend(limit.map(|limit| (format!("limits.{name}"), limit)));
        }
        Value::Object(fields)
    }

    /// The change of the selector of the target's pods, or of whether it matches them. Other
    /// changes of labels have no effect: a selector that is not set matches all labels of the
    /// template.
    fn selector_change(&self, older: &Draft) -> Option<ChangedField> {
        let workload = |draft: &Draft| {
            let object =
                draft.target.object.clone().filter(|_| draft.kind == AutoscalerKind::Hpa)?;
            let pods = read_target(&object, draft.kind).ok()?;
            let workload = ValidWorkload { object, pods };
            Some((workload.selector()?, workload))
        };
        let ((older_selector, before), (selector, after)) = (workload(older)?, workload(self)?);
        let is_set = before.pods.selector.is_some() || after.pods.selector.is_some();
        let texts = [&older_selector, &selector].map(ToString::to_string);
        let labels = [&before, &after].map(|it| serde_json::json!(it.pods.labels));
        let matches = |selector: &Selector, it: &ValidWorkload| selector.matches(&it.pods.labels);
        let (path, [base, head]) = match () {
            () if is_set && texts[0] != texts[1] => ("spec.selector", texts.map(Value::from)),
            () if matches(&older_selector, &before) != matches(&selector, &after) => {
                ("spec.template.metadata.labels", labels)
            }
            () => return None,
        };
        Some(ChangedField {
            object: self.target.to_string(),
            path: path.to_owned(),
            base: Some(base),
            head: Some(head),
            place: after.object.place_of(path),
            ..ChangedField::default()
        })
    }

    /// A difference in the target or in a VPA from an older version, with its path and its place in
    /// the manifest.
    fn changed_in_target(&self, older: &Draft, difference: Difference<'_>) -> ChangedField {
        let Difference { path, base, head } = difference;
        // An element of a list that is gone has its path in the older version, and the place of the
        // list in this one.
        let list = path.strip_suffix(']').filter(|_| head.is_none());
        let list = list.and_then(|path| Some(path.rsplit_once('[')?.0.to_owned()));
        let (base, head) = (base.cloned(), head.cloned());
        if path == "vpa" {
            // One version has no VPA, or one that does not change the pods.
            let name = base.as_ref().or(head.as_ref()).map(|vpa| &vpa["metadata"]["name"]);
            let object = format!("VPA {}", name.and_then(Value::as_str).unwrap_or_default());
            let mode = |vpa: Option<Value>| {
                let none = || "Off, or no VPA".into();
                let mode = |vpa: Value| vpa["spec"]["updatePolicy"]["updateMode"].clone();
                Some(vpa.map_or_else(none, mode)).filter(|mode: &Value| !mode.is_null())
            };
            let path = "spec.updatePolicy.updateMode".to_owned();
            let place = self.vpa.as_ref().and_then(|vpa| vpa.object.place_of(&path));
            let (base, head) = (mode(base), mode(head));
            return ChangedField { object, path, base, head, place, ..ChangedField::default() };
        }
        if let Some(path) = path.strip_prefix("vpa.") {
            let at = list.as_deref().and_then(|list| list.strip_prefix("vpa.")).unwrap_or(path);
            let place = self.vpa.as_ref().and_then(|vpa| vpa.object.place_of(at));
            let object = match &self.vpa {
                Some(vpa) => format!("VPA {}", vpa.full_name().name),
                None => format!("VPA of {}", self.target),
            };
            let path = path.to_owned();
            return ChangedField { object, path, base, head, place, ..ChangedField::default() };
        }
        let (shown, at) = match path.strip_prefix("workload.").unwrap_or(&path) {
            "replicas" => (REPLICAS.to_owned(), REPLICAS.to_owned()),
            path => {
                let owner = if list.is_some() { older } else { self };
                owner.path_of_container(path).unwrap_or_else(|| {
                    let shown = match path.starts_with("containers[") {
                        true => format!("{POD}.{path}"),
                        false => path.to_owned(),
                    };
                    (shown, self.path_of_limit(path).unwrap_or(format!("{POD}.containers")))
                })
            }
        };
        let at = match list {
            Some(list) => list.replace("workload", POD),
            None => at,
        };
        let place = self.target.object.as_ref().and_then(|object| object.place_of(&at));
        let is_default = |draft: &Draft| {
            let object = draft.target.object.as_ref();
            shown == REPLICAS && object.is_some_and(|it| it.field(REPLICAS).is_none())
        };
        let (base_is_default, head_is_default) = (is_default(older), is_default(self));
        let (object, path) = (self.target.to_string(), shown);
        ChangedField { object, path, base, head, base_is_default, head_is_default, place }
    }

    /// The path in the manifest of a container or of its request, as shown and with an index, for a
    /// path in the scenario: `containers[0].requests.cpu`.
    fn path_of_container(&self, path: &str) -> Option<(String, String)> {
        let (list, rest) = path.split_once('[')?;
        let (index, field) = rest.split_once(']')?;
        let index: usize = index.parse().ok()?;
        let container = self.fields.get("workload")?.get(list)?.get(index)?;
        let (name, list) = (container["name"].as_str()?, format!("{POD}.{list}"));
        let number = self.indices(&list).find(|number| {
            let found = self.target_field(&format!("{list}.{number}.name"));
            found.is_some_and(|found| found.to_json() == name)
        })?;
        let field = match field.strip_prefix('.') {
            None => String::new(),
            Some(field) if field.starts_with("requests") => format!(".resources.{field}"),
            Some(field) => format!(".{field}"),
        };
        Some((format!("{list}[{number}]{field}"), format!("{list}.{number}{field}")))
    }

    /// The path in the manifest of the first limit of a resource, for a path in the scenario:
    /// `limits.cpu`.
    fn path_of_limit(&self, path: &str) -> Option<String> {
        path.strip_prefix("limits.")?;
        let list = format!("{POD}.containers");
        let limit = |number: usize| format!("{list}.{number}.resources.{path}");
        self.indices(&list).map(limit).find(|limit| self.target_field(limit).is_some())
    }

    /// The indices of a list of containers in the manifest of the target.
    fn indices(&self, list: &str) -> impl Iterator<Item = usize> {
        (0..)
            .take_while(move |number| self.target_field(&format!("{list}.{number}.name")).is_some())
    }

    /// A field in the manifest of the target.
    fn target_field(&self, path: &str) -> Option<&Node> {
        self.target.object.as_ref()?.field(path)
    }
}

/// The path of the pod's spec in a target.
const POD: &str = "spec.template.spec";

/// The path of the replicas in a target.
const REPLICAS: &str = "spec.replicas";

impl Object {
    /// The place of a field, or of the innermost one of its parents that exists. Elements of lists
    /// can be written as `[0]`.
    fn place_of(&self, path: &str) -> Option<Place> {
        self.diagnostic(&node_path(path), "").place.map(|place| *place)
    }
}

/// A path whose elements of lists are written as `.0` in place of `[0]`.
fn node_path(path: &str) -> String {
    path.replace('[', ".").replace(']', "")
}

/// The settings of an HPA with defaults, in the form of the newest API version: notation makes no
/// difference.
fn settings_of(hpa: &ValidHpa) -> Value {
    let SingleHpa { name, target, min_replicas, max_replicas, metrics, behavior, .. } = &hpa.hpa;
    let target = [("kind", &*target.kind), ("name", &*target.name)];
    let spec = HpaSpec {
        scale_target_ref: CrossVersionObjectReference::default(),
        min_replicas: Some(*min_replicas),
        max_replicas: *max_replicas,
        metrics: metrics.clone(),
        behavior: behavior.clone(),
    };
    let mut spec = serde_json::to_value(spec).unwrap_or_default();
    spec["scaleTargetRef"] =
        target.into_iter().map(|(key, value)| (key, value.to_owned())).collect();
    serde_json::json!({ "metadata": { "name": &**name }, "spec": spec })
}

/// A value that differs, in the innermost field.
struct Difference<'v> {
    path: String,
    base: Option<&'v Value>,
    head: Option<&'v Value>,
}

/// The fields that differ between two versions of an HPA. None: a version does not have it.
fn changed_in_hpa(
    name: &str,
    before: Option<&ValidHpa>,
    after: Option<&ValidHpa>,
) -> Vec<ChangedField> {
    let settings = [before, after].map(|it| it.map(settings_of));
    let mut different = Vec::new();
    match &settings {
        [Some(before), Some(after)] => differences(before, after, "", &mut different),
        settings => {
            let path = "metadata.name".to_owned();
            let [base, head] =
                settings.each_ref().map(|it| it.as_ref().map(|it| &it["metadata"]["name"]));
            different.push(Difference { path, base, head });
        }
    }
    let changed = |it: Difference<'_>| {
        let Difference { path, base, head } = it;
        let is_default = |hpa: Option<&ValidHpa>| hpa.is_some_and(|hpa| has_default(hpa, &path));
        ChangedField {
            object: format!("HPA {name}"),
            base: base.cloned(),
            head: head.cloned(),
            base_is_default: is_default(before),
            head_is_default: is_default(after),
            place: after.and_then(|hpa| hpa.object.place_of(&path)),
            path,
        }
    };
    different.into_iter().flat_map(|it| of_set_fields(it, before, after)).map(changed).collect()
}

/// Returns true if a field of an HPA has its default, because the manifest does not set it.
fn has_default(hpa: &ValidHpa, path: &str) -> bool {
    // Older API versions have other fields for metrics, and an annotation for the behavior.
    let can_have = path == "spec.minReplicas"
        || path.starts_with("spec.behavior.") && hpa.object.field("spec.behavior").is_some();
    can_have && hpa.object.field(&node_path(path)).is_none()
}

/// If only one version has a behavior, the differences in the fields that its manifest sets,
/// without the defaults of the others.
fn of_set_fields<'v>(
    difference: Difference<'v>,
    before: Option<&ValidHpa>,
    after: Option<&ValidHpa>,
) -> Vec<Difference<'v>> {
    let (hpa, behavior) = match (difference.base, difference.head) {
        (Some(behavior), None) => (before, behavior),
        (None, Some(behavior)) => (after, behavior),
        _ => return vec![difference],
    };
    let Some(hpa) = hpa.filter(|_| difference.path == "spec.behavior") else {
        return vec![difference];
    };
    let mut fields = Vec::new();
    set_fields(&hpa.object, behavior, &difference.path, &mut fields);
    let is_new = difference.base.is_none();
    let of_field = |(path, value)| match is_new {
        true => Difference { path, base: None, head: Some(value) },
        false => Difference { path, base: Some(value), head: None },
    };
    match fields.is_empty() {
        true => vec![difference],
        false => fields.into_iter().map(of_field).collect(),
    }
}

/// Adds the innermost fields of a value that a manifest sets.
fn set_fields<'v>(
    object: &Object,
    value: &'v Value,
    path: &str,
    fields: &mut Vec<(String, &'v Value)>,
) {
    let Value::Object(children) = value else {
        fields.push((path.to_owned(), value));
        return;
    };
    for (name, value) in children {
        let path = format!("{path}.{name}");
        if object.field(&path).is_some() {
            set_fields(object, value, &path, fields);
        }
    }
}

/// The names of the elements of a list, such as containers and their policies. None: some have no
/// name of their own.
fn names(list: &[Value]) -> Option<Vec<&str>> {
    let named = list.iter().map(|it| it.get("name").or_else(|| it.get("containerName")));
    let names: Vec<&str> = named.map(|name| name?.as_str()).collect::<Option<_>>()?;
    (BTreeSet::from_iter(&names).len() == names.len()).then_some(names)
}

/// Adds each innermost value that differs. Elements of lists that have names are matched by them,
/// and others by their indices.
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
            let (Some(old_names), Some(new_names)) = (names(old), names(new)) else {
                for index in 0..old.len().max(new.len()) {
                    child(format!("{path}[{index}]"), old.get(index), new.get(index));
                }
                return;
            };
            for (index, (name, value)) in new_names.iter().zip(new).enumerate() {
                let before = old_names.iter().position(|it| it == name);
                child(format!("{path}[{index}]"), before.map(|at| &old[at]), Some(value));
            }
            for (index, (name, value)) in old_names.iter().zip(old).enumerate() {
                if !new_names.contains(name) {
                    child(format!("{path}[{index}]"), Some(value), None);
                }
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
