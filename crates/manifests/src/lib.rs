//! Drafts of scenarios from manifests: an HPA or a VPA, its target, and loads in their short form.
//!
//! A draft is the text of a scenario, which a user can edit, and which
//! [`parse`](kube_lockstep_scenario::parse) reads like any other. Errors in manifests are found
//! here, at their positions in the manifest.

mod controller_flags;
mod load;
mod objects;
mod pods;
mod recommender;
mod settings;
mod units;
mod usage;
mod validation;

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

pub use self::controller_flags::{ControllerFlags, FlagFields};
use self::load::{AFTER_THE_LAST_CHANGE, Subject};
pub use self::load::{HpaName, Load, RequestOption};
pub use self::objects::ManifestFile;
use self::objects::{Object, Objects, same_namespace, without_server_fields};
use self::pods::{PodContainer, Pods};
use self::recommender::Vpa;
use self::units::Loaded;
use self::usage::Usage;
use kube_autoscaler_models::api::MetricSpec;
use kube_autoscaler_models::quantity::{Format, Quantity};
use kube_autoscaler_models::time::{Span, Time};
use kube_lockstep_scenario::defaults::APP;
use kube_lockstep_scenario::diagnostic::{Diagnostic, Hint};
use kube_lockstep_scenario::error::{DistinctProblems, Error, similar};
use kube_lockstep_scenario::kinds::{API_VERSION, BUILT_IN};
use kube_lockstep_scenario::metrics::Metrics;
use kube_lockstep_scenario::raw::{AnyManifest, ScenarioFile, Workload};
use kube_lockstep_scenario::recording;
use kube_lockstep_scenario::recording::error_on_a_command_line;
use kube_lockstep_scenario::resolve::{Reader, SingleHpa, recorded_length, single_hpa, single_vpa};
pub use kube_lockstep_scenario::text::days_as_hours;
use kube_lockstep_scenario::workload::ScaleDownOrder;
use kube_lockstep_scenario::write;

/// The kinds of the autoscalers.
const KINDS: [&str; 2] = ["HorizontalPodAutoscaler", "VerticalPodAutoscaler"];

/// The user's options in addition to the manifests.
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
    /// load for HPAs, eight days for VPAs, and at least one day for an HPA and a VPA of the same
    /// pods.
    pub until: Option<Span>,
    /// Flags of the kube-controller-manager, for HPAs.
    pub flags: ControllerFlags,
    /// Whether the draft contains examples in place of missing values, to be edited.
    pub examples: bool,
}

/// The autoscalers of one kind to predict.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Selected {
    /// All.
    #[default]
    All,
    /// The HPAs with these names: `NAME` or `NAMESPACE/NAME`, in which `*` is any text.
    Named(Vec<String>),
    /// None, because one of another kind is named.
    None,
    /// None, because this kind is not supported.
    Unsupported,
}

/// The kind of an autoscaler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AutoscalerKind {
    /// A HorizontalPodAutoscaler.
    Hpa,
    /// A VerticalPodAutoscaler.
    Vpa,
}

/// `HPA`, `VPA`.
impl fmt::Display for AutoscalerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AutoscalerKind::Hpa => "HPA",
            AutoscalerKind::Vpa => "VPA",
        })
    }
}

/// The scenario of one HPA, of several HPAs that scale the same target, of one VPA, or of HPAs and
/// the VPA that changes the pods of their target.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The kind of the autoscaler; of an HPA and a VPA, the HPA.
    pub kind: AutoscalerKind,
    /// The name of the autoscaler, with its namespace if the manifest sets one.
    pub name: String,
    /// The file of the autoscaler.
    pub file: String,
    /// The line of the autoscaler in its file, from 1.
    pub line: usize,
    /// Assumptions that a reader should know.
    pub notes: Vec<String>,
    /// Assumptions about the manifest of the target.
    pub manifest_notes: Vec<Diagnostic>,
    /// Values that the prediction depends on, and that neither manifests nor options contain.
    pub missing: Vec<Missing>,
    fields: Map<String, Value>,
    until: Span,
    used_loads: Vec<usize>,
    /// The HPAs. Empty: it is the draft of a VPA.
    hpas: Vec<Hpa>,
    /// True if the scenario has a VPA.
    has_vpa: bool,
    target: DraftTarget,
}

/// The target of a draft, for messages.
#[derive(Clone, Debug)]
struct DraftTarget {
    kind: String,
    name: String,
    /// The namespace of the autoscaler.
    namespace: Option<String>,
    /// Its containers. Empty: they are unknown, because the manifest is missing.
    containers: Vec<String>,
    /// Its manifest.
    object: Option<Object>,
}

/// `Deployment web`.
impl fmt::Display for DraftTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// A missing value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Missing {
    /// The problem.
    pub what: String,
    /// The flag that gives the value.
    pub flag: String,
    /// The value that is missing.
    pub value: MissingValue,
}

/// A missing value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MissingValue {
    /// The target, with its replicas.
    Target,
    /// The request of a container.
    Request,
    /// The load of a metric.
    Load,
}

impl Missing {
    fn target(what: String, flag: String) -> Missing {
        Missing { what, flag, value: MissingValue::Target }
    }

    fn request(what: String, flag: String) -> Missing {
        Missing { what, flag, value: MissingValue::Request }
    }

    fn load(what: String, flag: String) -> Missing {
        Missing { what, flag, value: MissingValue::Load }
    }
}

/// The drafts of all selected autoscalers.
#[derive(Clone, Debug)]
pub struct Drafts {
    /// The drafts, first those of HPAs, in the order of the manifests.
    pub list: Vec<Draft>,
    /// Objects that no autoscaler refers to, as `KIND NAME`.
    pub ignored: Vec<String>,
    /// The options, in which the autoscalers of loads and requests are found.
    options: DraftOptions,
    /// The objects among which targets are, for suggestions.
    others: Vec<Object>,
    /// The names of VPAs that the options leave out.
    vpas_left_out: Vec<String>,
}

/// Why manifests give no scenario.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DraftError {
    /// A manifest is invalid.
    #[error(transparent)]
    Invalid(#[from] Error),
    /// The manifests do not fit the options.
    #[error(transparent)]
    Options(Diagnostic),
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
    read: &dyn Fn(&str) -> Result<String, Diagnostic>,
) -> Result<Drafts, DraftError> {
    let drafts = draft_with_settings(files, options, read)?;
    drafts.check_loads(&[])?;
    Ok(drafts)
}

/// Like [`draft`], for HPAs that are compared with other settings, which may use other loads:
/// [`Drafts::check_loads`] checks that all are used.
///
/// # Errors
/// If a manifest is invalid, or there is no such autoscaler.
pub fn draft_with_settings(
    files: &[ManifestFile],
    options: &DraftOptions,
    read: &dyn Fn(&str) -> Result<String, Diagnostic>,
) -> Result<Drafts, DraftError> {
    let objects = Objects::read(files)?;
    check_kinds(&objects, files, options)?;
    let mut invalid = Invalid::default();
    let drafts = draft_objects(&objects, options, read, &mut invalid);
    // Without an invalid autoscaler, its loads have no use: that error would be misleading.
    invalid.check()?;
    drafts
}

/// Drafts the scenarios of all valid objects.
fn draft_objects(
    objects: &Objects,
    options: &DraftOptions,
    read: Reader<'_>,
    invalid: &mut Invalid,
) -> Result<Drafts, DraftError> {
    let (mut used_objects, mut list) = (BTreeSet::new(), Vec::new());
    let hpas = select(&objects.hpas, &options.hpas, AutoscalerKind::Hpa)?;
    invalid.note(check_names(&hpas, AutoscalerKind::Hpa))?;
    let others = &objects.others;
    let hpas = invalid.valid(hpas, AutoscalerKind::Hpa, Hpa::read, others);
    let vpas = select(&objects.vpas, &options.vpas, AutoscalerKind::Vpa)?;
    invalid.note(check_names(&vpas, AutoscalerKind::Vpa))?;
    let vpas = invalid.valid(vpas, AutoscalerKind::Vpa, read_vpa, others);
    let left_out = match options.vpas {
        Selected::None => recommender::readable(&objects.vpas),
        _ => Vec::new(),
    };
    let options = &find_autoscalers(&hpas, &vpas, objects, options)?;
    let groups = by_target(hpas);
    let mut alone: Vec<&Vpa> = vpas.iter().collect();
    for group in &groups {
        let hpa = &group[0];
        let vpa = recommender::take_joint(group, &mut alone);
        let namespace = hpa.name.namespace.as_ref();
        let found = find_target(&objects.others, namespace, |object| hpa.scales(object));
        let Some(found) = invalid.note(found)? else { continue };
        used_objects.extend(found);
        let target = found.map(|index| &objects.others[index]);
        let group = Group { hpas: group, vpa };
        let Some(mut draft) = invalid.note(of_group(&group, target, options, read))? else {
            continue;
        };
        draft.notes.extend(left_out.iter().find_map(|vpa| recommender::left_out(vpa, hpa)));
        list.push(draft);
    }
    if groups.is_empty() && !vpas.is_empty() {
        check_options_of_vpas(options)?;
    }
    // HPAs that are not predicted matter for a note only, so errors in them are ignored.
    let all_hpas: Vec<Hpa> = objects.hpas.iter().filter_map(|it| Hpa::read(it).ok()).collect();
    let predicted: Vec<&Hpa> = groups.iter().flatten().collect();
    for vpa in alone {
        let namespace = vpa.namespace.as_ref();
        let target = find_target(&objects.others, namespace, |object| vpa.targets(object));
        let Some(target) = invalid.note(target)? else { continue };
        used_objects.extend(target);
        let target = target.map(|index| &objects.others[index]);
        let draft = invalid.note(recommender::of_vpa(vpa, target, &all_hpas, options, read))?;
        let Some(mut draft) = draft else { continue };
        let separate = recommender::why_not_joint(vpa, &predicted, &vpas);
        let note = separate.or_else(|| recommender::hpa_left_out(vpa, &all_hpas));
        draft.notes.extend(note);
        list.push(draft);
    }
    list.iter_mut().for_each(|draft| draft.suggest_target(&objects.others));
    check_containers_of_all(&list, options)?;
    note_on_repeated_totals(&mut list, &options.loads);
    let others = objects.others.iter().enumerate();
    let others = others.filter(|(index, _)| !used_objects.contains(index)).map(|(_, it)| it);
    let unsupported = objects.vpas.iter().filter(|_| options.vpas == Selected::Unsupported);
    let ignored = unsupported.chain(others);
    let named = |object: &Object| format!("{} {}", object.kind(), object.name());
    let ignored = ignored.map(|object| named(object).trim_end().to_owned()).collect();
    let (options, others) = (options.clone(), objects.others.clone());
    let vpas_left_out = left_out.iter().map(|vpa| vpa.full_name().to_string()).collect();
    Ok(Drafts { list, ignored, options, others, vpas_left_out })
}

/// Rejects options that are for HPAs only.
fn check_options_of_vpas(options: &DraftOptions) -> Result<(), DraftError> {
    let what = match (options.flags.first(), options.startup) {
        (Some(flag), _) => format!("--{flag} is for HPAs: a VPA has another controller"),
        (None, Some(_)) => {
            "--startup is for HPAs: the VPA recommender ignores startup times".to_owned()
        }
        (None, None) => return Ok(()),
    };
    Err(DraftError::Options(Diagnostic::new(what).hint("leave it out")))
}

/// Notes that each of several targets has a total in full, because the load names no HPA.
fn note_on_repeated_totals(list: &mut [Draft], loads: &[Load]) {
    for (index, load) in loads.iter().enumerate() {
        let uses = |draft: &&Draft| {
            let subject = &load.subject;
            load.total && subject.hpa.is_none() && draft.used_loads.contains(&index)
        };
        let targets: BTreeSet<(Option<&str>, &str, &str)> = list
            .iter()
            .filter(uses)
            .map(|Draft { target, .. }| (target.namespace.as_deref(), &*target.kind, &*target.name))
            .collect();
        if targets.len() < 2 {
            continue;
        }
        let namespaces: BTreeSet<Option<&str>> = targets.iter().map(|(it, ..)| *it).collect();
        let named = |(namespace, kind, name): &(Option<&str>, &str, &str)| match namespace {
            Some(namespace) if namespaces.len() > 1 => format!("{kind} {namespace}/{name}"),
            _ => format!("{kind} {name}"),
        };
        let names: Vec<String> = targets.iter().map(named).collect();
        let hpa = if namespaces.len() > 1 { "NAMESPACE/NAME" } else { "NAME" };
        let note = format!(
            "--load {subject}: {} each have the total in full; for the pods of one of them only, \
             put the name of its HPA first: --load {hpa}:{subject}=total:…",
            names.join(" and "),
            subject = load.subject,
        );
        if let Some(first) = list.iter_mut().find(|draft| uses(&&**draft)) {
            first.notes.push(note);
        }
    }
}

/// The problems of all invalid manifests, in the order in which they are found.
#[derive(Default)]
struct Invalid {
    problems: DistinctProblems,
}

impl Invalid {
    /// Adds the problems of a manifest, each with its file.
    fn add(&mut self, error: Error) {
        for problem in error.problems {
            // An HPA and a VPA can have the same target.
            self.problems.add(match problem.file() {
                Some(_) => problem,
                None => problem.in_file(&error.path),
            });
        }
    }

    /// The valid autoscalers of a kind. The target of an invalid one is checked too, so that all
    /// errors are reported at once.
    fn valid<T>(
        &mut self,
        autoscalers: Vec<&Object>,
        kind: AutoscalerKind,
        read: impl Fn(&Object) -> Result<T, Error>,
        others: &[Object],
    ) -> Vec<T> {
        let mut valid = Vec::new();
        for autoscaler in autoscalers {
            match read(autoscaler) {
                Ok(it) => valid.push(it),
                Err(error) => {
                    self.add(error);
                    let is_target = |object: &&Object| autoscaler.refers_to(kind, object);
                    let targets = others.iter().filter(is_target);
                    let errors = targets.filter_map(|target| read_target(target, kind).err());
                    errors.for_each(|error| self.add(error));
                }
            }
        }
        valid
    }

    /// A result, unless a manifest is invalid.
    ///
    /// # Errors
    /// If the manifests do not fit the options.
    fn note<T>(&mut self, result: Result<T, DraftError>) -> Result<Option<T>, DraftError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(DraftError::Invalid(error)) => {
                self.add(error);
                Ok(None)
            }
            Err(error @ DraftError::Options(_)) => Err(error),
        }
    }

    /// Fails if a manifest is invalid.
    fn check(self) -> Result<(), Error> {
        let problems = self.problems.into_list();
        match problems.first().and_then(Diagnostic::file).map(str::to_owned) {
            Some(path) => Err(Error { path, problems }),
            None => Ok(()),
        }
    }
}

impl Draft {
    /// If the target is missing, the message names the object that is probably meant.
    fn suggest_target(&mut self, others: &[Object]) {
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
        let of_other_kind = others
            .iter()
            .find(|object| object.name() == target.name && is_scalable(&object.kind()));
        if let Some(other) = of_other_kind {
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
    if let Some(what) = empty(objects, files) {
        return Err(DraftError::Options(Diagnostic::new(what).hint(PRINTS_MANIFESTS)));
    }
    let what = format!("there is no {kinds} in {}", names.join(", "));
    let hint = match (supports_vpas, objects.vpas.first()) {
        (false, Some(_)) => {
            Some("VPAs are not supported here; `kube-lockstep predict` supports them")
        }
        _ => None,
    };
    let hint = hint.map(Hint::from).or_else(|| kinds_hint(objects).map(Hint::from));
    Err(DraftError::Options(Diagnostic::new(what).with_hint(hint)))
}

/// The message that the files contain nothing but comments. None: they contain something.
fn empty(objects: &Objects, files: &[ManifestFile]) -> Option<String> {
    let is_content = |line: &str| !line.trim().is_empty() && !line.starts_with(['#', '-']);
    let has_content = |file: &ManifestFile| file.text.lines().any(is_content);
    if !objects.others.is_empty() || !objects.vpas.is_empty() || files.iter().any(has_content) {
        return None;
    }
    let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
    Some(format!("{} {} empty", names.join(", "), if names.len() == 1 { "is" } else { "are" }))
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
fn read_vpa(object: &Object) -> Result<Vpa, Error> {
    let has_status = object.has_status();
    let mut object = object.clone();
    without_server_fields(&mut object.node);
    let vpa = single_vpa(&object.node).map_err(|problems| object.problems(problems))?;
    Ok(Vpa { namespace: object.namespace(), object, vpa, has_status })
}

/// An HPA of a file with manifests, in place of another one.
#[derive(Clone, Debug)]
pub struct HpaManifest {
    object: Object,
}

impl HpaManifest {
    /// Finds the HPAs in a file, which may contain other objects.
    ///
    /// # Errors
    /// If the file contains anything but objects of the Kubernetes API.
    pub fn find(file: &ManifestFile) -> Result<Vec<HpaManifest>, Error> {
        let objects = Objects::read(std::slice::from_ref(file))?;
        Ok(objects.hpas.into_iter().map(|object| HpaManifest { object }).collect())
    }

    /// The name; empty if the manifest has none.
    #[must_use]
    pub fn name(&self) -> String {
        self.object.name()
    }

    /// The namespace. None: the manifest leaves it open.
    #[must_use]
    pub fn namespace(&self) -> Option<String> {
        self.object.namespace()
    }

    /// `NAMESPACE/NAME`, or the name if the manifest leaves the namespace open.
    #[must_use]
    pub fn full_name(&self) -> String {
        self.object.full_name()
    }

    /// The manifest, without the fields that an API server adds.
    ///
    /// # Errors
    /// If the manifest is invalid.
    pub fn manifest(&self) -> Result<Value, Error> {
        read_hpa(&self.object).map(|(_, hpa)| hpa.manifest)
    }
}

/// Reads the manifest of an HPA, without the fields that an API server adds.
fn read_hpa(object: &Object) -> Result<(Object, SingleHpa), Error> {
    let mut object = object.clone();
    without_server_fields(&mut object.node);
    let hpa = single_hpa(&object.node).map_err(|problems| object.problems(problems))?;
    Ok((object, hpa))
}

/// A valid HPA.
#[derive(Clone, Debug)]
struct Hpa {
    name: HpaName,
    object: Object,
    hpa: SingleHpa,
    /// Whether the manifest has the status of a cluster.
    has_status: bool,
}

impl Hpa {
    fn read(object: &Object) -> Result<Hpa, Error> {
        let has_status = object.has_status();
        let (object, hpa) = read_hpa(object)?;
        let name = HpaName { namespace: object.namespace(), name: hpa.name.to_string() };
        Ok(Hpa { name, object, hpa, has_status })
    }

    fn has_same_target(&self, other: &Hpa) -> bool {
        let (one, other_target) = (&self.hpa.target, &other.hpa.target);
        self.name.namespace == other.name.namespace
            && (&one.kind, &one.group, &one.name)
                == (&other_target.kind, &other_target.group, &other_target.name)
    }

    fn scales(&self, object: &Object) -> bool {
        let target = &self.hpa.target;
        same_namespace(self.name.namespace.as_ref(), object.namespace().as_ref())
            && object.kind() == target.kind
            && object.group() == target.group
            && object.name() == *target.name
    }
}

/// The selected autoscalers of a kind.
fn select<'o>(
    objects: &'o [Object],
    selected: &Selected,
    kind: AutoscalerKind,
) -> Result<Vec<&'o Object>, DraftError> {
    let patterns = match selected {
        Selected::All => return Ok(objects.iter().collect()),
        Selected::None | Selected::Unsupported => return Ok(Vec::new()),
        Selected::Named(patterns) => patterns,
    };
    let matches = |pattern: &str, object: &Object| {
        recording::matches(pattern, &object.name())
            || recording::matches(pattern, &object.full_name())
    };
    let is_unknown = |pattern: &&String| !objects.iter().any(|object| matches(pattern, object));
    if let Some(pattern) = patterns.iter().find(is_unknown) {
        let names: Vec<String> = objects.iter().map(Object::full_name).collect();
        let intro = format!("the {kind}s are");
        let hint = among(pattern, &intro, names.iter().map(String::as_str));
        let problem = Diagnostic::new(format!("there is no {kind} {pattern}")).with_hint(hint);
        return Err(DraftError::Options(problem));
    }
    let is_selected = |object: &&Object| patterns.iter().any(|pattern| matches(pattern, object));
    Ok(objects.iter().filter(is_selected).collect())
}

/// Rejects autoscalers of one name, of which only one can exist in a cluster.
fn check_names(objects: &[&Object], kind: AutoscalerKind) -> Result<(), DraftError> {
    for (index, object) in objects.iter().enumerate() {
        let is_same = |other: &&&Object| other.full_name() == object.full_name();
        let Some(first) = objects[..index].iter().find(is_same) else { continue };
        // Without a name, the manifest is invalid, which its own error says.
        if object.name().is_empty() {
            continue;
        }
        let what = format!("{kind} {} is also in {}", object.full_name(), first.place());
        let problem = Diagnostic::new(what).at_node(&object.node).hint(ONE_OF_A_NAME);
        return Err(object.problems(vec![problem]).into());
    }
    Ok(())
}

/// The hint for manifests of the same object.
const ONE_OF_A_NAME: &str = "a cluster has only one of them: leave out the other one, for example \
                             a base whose overlay is read as well";

/// The index of the target of an autoscaler among the other objects. A target in the namespace of
/// the autoscaler takes precedence over one whose manifest leaves the namespace open.
fn find_target(
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

/// The source of manifests, in hints.
const PRINTS_MANIFESTS: &str = "`kubectl get hpa,deployment -o yaml` prints some";

/// The kinds of the manifests if none is an HPA; one of them may be misspelled.
fn kinds_hint(objects: &Objects) -> Option<String> {
    let kinds: BTreeSet<String> = objects.others.iter().map(Object::kind).collect();
    if kinds.contains("Kustomization") {
        let build = "`kubectl kustomize DIR | kube-lockstep predict -f -`";
        return Some(format!("a Kustomization only names manifests: {build} reads its output"));
    }
    let misspelled = |object: &Object| {
        let (place, kind) = (object.place(), object.kind());
        let hint = similar(&kind, KINDS)?;
        Some(format!("{place}: the kind {kind} is unknown: {hint}"))
    };
    match objects.others.iter().find_map(misspelled) {
        Some(misspelled) => Some(misspelled),
        None if kinds.is_empty() => {
            Some(format!("there are no objects of the Kubernetes API; {PRINTS_MANIFESTS}"))
        }
        None => Some(format!("only these kinds were found: {}", Vec::from_iter(kinds).join(", "))),
    }
}

/// Finds the autoscalers of loads and requests (`web:cpu`). Colons in names of metrics are kept.
fn find_autoscalers(
    hpas: &[Hpa],
    vpas: &[Vpa],
    objects: &Objects,
    options: &DraftOptions,
) -> Result<DraftOptions, DraftError> {
    let mut options = options.clone();
    let known: Vec<HpaName> =
        hpas.iter().map(|it| it.name.clone()).chain(vpas.iter().map(Vpa::full_name)).collect();
    let metrics: BTreeSet<&str> =
        hpas.iter().flat_map(|hpa| &hpa.hpa.metrics).filter_map(metric_name).collect();
    let of_loads = options.loads.iter_mut().map(|load| ("--load", &mut load.subject));
    let of_requests = options.requests.iter_mut();
    let of_requests = of_requests.map(|request| ("--request", &mut request.subject));
    for (flag, subject) in of_loads.chain(of_requests) {
        let Some(hpa) = &subject.hpa else { continue };
        let whole = format!("{hpa}:{}", subject.name);
        let is_known = known.iter().any(|it| it.is(hpa));
        let not_selected = || objects.kind_of_autoscaler(hpa).filter(|_| !is_known);
        if metrics.contains(&*whole) {
            *subject = Subject { hpa: None, name: whole, ..subject.clone() };
        } else if let Some(kind) = not_selected() {
            let what = format!("{flag} {subject}: {kind} {hpa} is not selected");
            let select = format!("--{}", kind.to_string().to_lowercase());
            let hint = format!("leave out this {flag}, or add `{select} {hpa}`");
            return Err(DraftError::Options(Diagnostic::new(what).hint(hint)));
        } else if !is_known && !subject.is_resource() {
            *subject = Subject { hpa: None, name: whole, ..subject.clone() };
        } else if !is_known {
            let names: Vec<String> = known.iter().map(HpaName::to_string).collect();
            let hint = among(hpa, "the autoscalers are", names.iter().map(String::as_str));
            let kind = if vpas.is_empty() { "HPA" } else { "HPA or VPA" };
            let what = format!("{flag} {subject}: there is no {kind} {hpa}");
            return Err(DraftError::Options(Diagnostic::new(what).with_hint(hint)));
        }
    }
    for (index, load) in options.loads.iter().enumerate() {
        if options.loads[..index].iter().any(|other| other.subject == load.subject) {
            let what = format!("--load {} is given twice", load.subject);
            let hint = "each metric has one load: add the values up";
            return Err(DraftError::Options(Diagnostic::new(what).hint(hint)));
        }
    }
    Ok(options)
}

/// `did you mean …?`, or all names.
fn among<'n>(typed: &str, intro: &str, names: impl IntoIterator<Item = &'n str>) -> Option<Hint> {
    let names: Vec<&str> = names.into_iter().collect();
    let all = || (!names.is_empty()).then(|| format!("{intro} {}", names.join(", ")).into());
    similar(typed, names.iter().copied()).or_else(all)
}

/// The subject of a load for a metric.
fn subject_of(metric: &MetricSpec) -> Option<Subject> {
    let name = metric_name(metric)?.to_owned();
    let identifier = [
        metric.pods.as_ref().map(|it| &it.metric),
        metric.object.as_ref().map(|it| &it.metric),
        metric.external.as_ref().map(|it| &it.metric),
    ];
    let identifier = identifier.into_iter().flatten().next();
    let labels = identifier.map(|it| usage::required_labels(it.selector.as_ref()));
    let container = metric.container_resource.as_ref().map(|it| it.container.to_string());
    Some(Subject { hpa: None, name, container, labels: labels.unwrap_or_default() })
}

fn metric_name(metric: &MetricSpec) -> Option<&str> {
    let resource = metric.resource.as_ref().map(|it| &*it.name);
    let container = metric.container_resource.as_ref().map(|it| &*it.name);
    let pods = metric.pods.as_ref().map(|it| &*it.metric.name);
    let object = metric.object.as_ref().map(|it| &*it.metric.name);
    let external = metric.external.as_ref().map(|it| &*it.metric.name);
    resource.or(container).or(pods).or(object).or(external)
}

/// Reads the pods of the target of an autoscaler of this kind. If the kind of the target is not
/// built in and its pods can't be read, the pods are unknown.
fn read_target(target: &Object, of: AutoscalerKind) -> Result<Pods, Error> {
    validation::check(target)?;
    let (kind, is_vpa) = (target.kind(), of == AutoscalerKind::Vpa);
    let is_known = BUILT_IN.iter().any(|known| known.kind == kind) || is_vpa && kind == "CronJob";
    let pods = match of {
        AutoscalerKind::Hpa => Pods::read(target),
        AutoscalerKind::Vpa => Pods::read(&recommender::pods_owner(target)),
    };
    if is_known { pods } else { Ok(pods.unwrap_or_default()) }
}

/// The autoscalers of one target whose scenario has an HPA.
struct Group<'a> {
    /// The HPAs, at least one.
    hpas: &'a [Hpa],
    /// The VPA that changes the pods.
    vpa: Option<&'a Vpa>,
}

impl Group<'_> {
    fn names(&self) -> Vec<HpaName> {
        let of_hpas = self.hpas.iter().map(|hpa| hpa.name.clone());
        of_hpas.chain(self.vpa.map(Vpa::full_name)).collect()
    }

    /// The largest `maxReplicas`.
    fn most_replicas(&self) -> i64 {
        self.hpas.iter().map(|hpa| hpa.hpa.max_replicas).max().unwrap_or(1).into()
    }

    /// The metrics of the HPAs, and the usage that the recommender of the VPA reads.
    fn metrics(&self, pods: &Pods) -> Vec<MetricSpec> {
        let of_hpas = self.hpas.iter().flat_map(|hpa| hpa.hpa.metrics.clone());
        let of_hpas: Vec<MetricSpec> = of_hpas.collect();
        let of_vpa = self.vpa.map_or_else(Vec::new, |vpa| vpa.usage_metrics(pods, &of_hpas));
        of_hpas.into_iter().chain(of_vpa).collect()
    }

    /// The workload. `ready`: the time after which new pods are ready.
    fn workload(
        &self,
        mut pods: Pods,
        replicas: i32,
        ready: Option<Span>,
        options: &DraftOptions,
        metrics: &[MetricSpec],
    ) -> Workload {
        if options.examples {
            fill_requests(&mut pods, metrics);
        }
        let target = &self.hpas[0].hpa.target;
        // With a VPA, limits matter: its admission controller keeps requests within them, or
        // changes both in proportion.
        let mut workload = pods.to_workload(&target.name, replicas, self.vpa.is_some());
        if target.kind == "StatefulSet" {
            workload.scale_down_order = ScaleDownOrder::Newest;
        }
        workload.startup.ready = ready.or(workload.startup.ready);
        workload
    }

    /// The end of a prediction that shows the used loads.
    fn end(
        &self,
        options: &DraftOptions,
        used: &[usize],
        read: Reader<'_>,
    ) -> Result<Span, DraftError> {
        let of_hpas = end(options, used, read)?;
        let loads = used_loads(options, used);
        Ok(self.vpa.map_or(of_hpas, |_| recommender::joint_end(options.until, &loads, of_hpas)))
    }

    /// Notes on the target, and on the status of the objects.
    fn manifest_notes(
        &self,
        target: Option<&Object>,
        mut of_target: Vec<String>,
    ) -> Vec<Diagnostic> {
        let rollout = target.and_then(|it| Some((it.name(), it.rollout_strategy()?)));
        of_target.extend(rollout.map(|(name, strategy)| {
            format!(
                "the strategy `{strategy}` of Rollout {name} is ignored: the prediction assumes \
                 that no update is in progress, and that all pods are of one version"
            )
        }));
        let mut notes = target.map_or_else(Vec::new, |target| target.notes(of_target));
        notes.extend(self.hpas[0].object.notes(Vec::from_iter(self.status_note(target))));
        notes
    }

    /// A note on the status of the objects, as in a list that `kubectl get` prints.
    fn status_note(&self, target: Option<&Object>) -> Option<String> {
        let hpas = self
            .hpas
            .iter()
            .filter(|hpa| hpa.has_status)
            .map(|hpa| format!("HPA {}", hpa.hpa.name));
        let vpa = self.vpa.filter(|vpa| vpa.has_status).map(|vpa| format!("VPA {}", vpa.vpa.name));
        let target = target.filter(|it| it.has_status());
        let target = target.map(|it| format!("{} {}", it.kind(), it.name()));
        let names: Vec<String> = hpas.chain(vpa).chain(target).collect();
        (!names.is_empty()).then(|| {
            format!(
                "the status of {} is ignored: at the start, all pods are ready, and there are no \
                 earlier metrics and recommendations",
                names.join(", ")
            )
        })
    }

    /// Notes on a VPA in the same scenario.
    fn joint_notes(&self, pods: &Pods, options: &DraftOptions, used: &[usize]) -> Vec<String> {
        let loads = used_loads(options, used);
        self.vpa.map_or_else(Vec::new, |vpa| vpa.joint_notes(pods, &loads))
    }
}

/// Drafts the scenario of HPAs that scale the same target, and of the VPA that changes its pods.
fn of_group(
    group: &Group<'_>,
    target: Option<&Object>,
    options: &DraftOptions,
    read: Reader<'_>,
) -> Result<Draft, DraftError> {
    let first = &group.hpas[0];
    let (kind, name) = (&first.hpa.target.kind, &*first.hpa.target.name);
    let pods = target.map(|target| read_target(target, AutoscalerKind::Hpa)).transpose()?;
    let mut pods = pods.unwrap_or_default();
    let (mut missing, mut of_target) = (Vec::new(), Vec::new());
    let names = group.names();
    let containers = check_containers(&pods, &format!("{kind} {name}"), &names, options)?;
    if group.vpa.is_some() {
        check_requests_of_containers(&pods, &names, &options.requests)?;
    }
    apply_requests(&mut pods, &names, &options.requests);
    let (most_replicas, without_request) = (group.most_replicas(), &|_: &str| None);
    let loaded = Loaded { pods: &pods, autoscalers: &names, most_replicas, without_request };
    loaded.check_units(options)?;
    let metric_specs = group.metrics(&pods);
    let (hpas, has_target) = (&names[..], target.is_some());
    let examples = options.examples;
    let has_vpa = group.vpa.is_some();
    let context = usage::Context { hpas, has_vpa, has_target, containers: &containers, examples };
    let mut usage = Usage::new(&options.loads, &mut pods, context);
    let metrics = usage.of(&metric_specs);
    let used_loads = std::mem::take(&mut usage.used);
    let until = group.end(options, &used_loads, read)?;
    let (mut of_usage, mut notes) =
        (std::mem::take(&mut usage.missing), std::mem::take(&mut usage.notes));
    let more_notes = usage.of_target;
    let replicas = options.replicas.or(pods.replicas);
    if target.is_none() && options.replicas.is_none() {
        let what = format!("{kind} {name}, which the HPA scales, is not in the manifests");
        missing.push(missing_target(what, &mut of_usage));
    } else if replicas.is_none() {
        let what = format!("{kind} {name} sets no replicas, so it starts with 1; see --replicas");
        of_target.push(what);
    }
    missing.extend(of_usage);
    of_target.extend(namespace_note(first, target));
    of_target.extend(more_notes);
    notes.extend(group.joint_notes(&pods, options, &used_loads));
    let ready = startup(&pods, options, &mut of_target);
    let workload = group.workload(pods, replicas.unwrap_or(1), ready, options, &metric_specs);
    missing.dedup();
    Ok(Draft {
        kind: AutoscalerKind::Hpa,
        name: first.name.to_string(),
        file: first.object.file.clone(),
        line: first.object.node.line,
        notes,
        manifest_notes: group.manifest_notes(target, of_target),
        missing,
        fields: fields_of(group, options, workload, metrics, until),
        until,
        used_loads,
        hpas: group.hpas.to_vec(),
        has_vpa,
        target: DraftTarget {
            kind: kind.clone(),
            name: name.to_owned(),
            namespace: first.name.namespace.clone(),
            containers,
            object: target.cloned(),
        },
    })
}

/// A missing target, whose manifest would have the missing requests as well.
fn missing_target(what: String, of_usage: &mut Vec<Missing>) -> Missing {
    let is_request = |missing: &Missing| missing.value == MissingValue::Request;
    let (requests, others) = of_usage.drain(..).partition(is_request);
    *of_usage = others;
    let requests: Vec<Missing> = requests;
    let requests: BTreeSet<&str> = requests.iter().map(|request| &*request.flag).collect();
    let requests = requests.iter().map(|flag| format!(" {flag}"));
    let flags = format!("--replicas 3 (at the start){}", requests.collect::<String>());
    Missing::target(what, format!("--filename with its manifest, or {flags}"))
}

/// A note on a target without a namespace, which is assumed to be in that of the HPA.
fn namespace_note(hpa: &Hpa, target: Option<&Object>) -> Option<String> {
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

/// The fields of the scenario.
fn fields_of(
    group: &Group<'_>,
    options: &DraftOptions,
    workload: Workload,
    metrics: Metrics,
    until: Span,
) -> Map<String, Value> {
    let manifests = group.hpas.iter().map(|hpa| AnyManifest(hpa.hpa.manifest.clone()));
    let mut hpas: Vec<AnyManifest> = manifests.collect();
    let mut fields = write::fields(&ScenarioFile {
        api_version: API_VERSION.to_owned(),
        kind: "Scenario".to_owned(),
        requirement: requirement(group),
        controller: options.flags.field(),
        hpa: if hpas.len() == 1 { hpas.pop() } else { None },
        hpas,
        workload,
        metrics,
        until: Time::ZERO + until,
        ..ScenarioFile::default()
    });
    // The VPA follows the HPAs.
    let before = fields.keys().take_while(|name| *name != "workload").count();
    for (name, value) in group.vpa.iter().flat_map(|vpa| write::fields(&vpa.fields())) {
        fields.shift_insert(before, name, value);
    }
    fields
}

/// `HPA web scales Deployment web from 2 to 10 replicas.`
fn requirement(Group { hpas, vpa }: &Group<'_>) -> String {
    let target = &hpas[0].hpa.target;
    let names: Vec<&str> = hpas.iter().map(|hpa| &*hpa.hpa.name).collect();
    let (subject, verb) = match names.as_slice() {
        [only] => (format!("HPA {only}"), "scales"),
        several => (format!("HPAs {}", several.join(", ")), "scale"),
    };
    let least = hpas.iter().map(|hpa| hpa.hpa.min_replicas).min().unwrap_or(1);
    let most = hpas.iter().map(|hpa| hpa.hpa.max_replicas).max().unwrap_or(1);
    let of_vpa = vpa.map_or_else(String::new, |vpa| {
        format!(", and VPA {} sets the requests of its pods", vpa.vpa.name)
    });
    let (kind, name) = (&target.kind, &target.name);
    format!("{subject} {verb} {kind} {name} from {least} to {most} replicas{of_vpa}.")
}

/// The time until a new pod is ready.
fn startup(pods: &Pods, options: &DraftOptions, notes: &mut Vec<String>) -> Option<Span> {
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

/// The loads that a scenario uses.
fn used_loads<'o>(options: &'o DraftOptions, used: &[usize]) -> Vec<&'o Load> {
    used.iter().map(|index| &options.loads[*index]).collect()
}

/// The end of a prediction that shows the used loads.
fn end(options: &DraftOptions, used: &[usize], read: Reader<'_>) -> Result<Span, DraftError> {
    if let Some(until) = options.until {
        return Ok(until);
    }
    let loads = || used.iter().map(|index| &options.loads[*index]);
    let recorded = recorded_end(loads(), read)?;
    let last = loads().filter_map(Load::end).max().max(recorded);
    Ok(last.filter(|last| *last > Span::ZERO).unwrap_or(AFTER_THE_LAST_CHANGE))
}

/// The end of the recorded loads among some loads. None: none is recorded.
fn recorded_end<'l>(
    loads: impl Iterator<Item = &'l Load>,
    read: Reader<'_>,
) -> Result<Option<Span>, DraftError> {
    recorded_length(loads.filter_map(Load::recorded), read)
        .map_err(|error| DraftError::Options(error_on_a_command_line(error)))
}

/// Checks that the containers of loads and requests of these autoscalers exist, if the manifest of
/// the target is known. Returns the containers.
fn check_containers(
    pods: &Pods,
    target: &str,
    hpas: &[HpaName],
    options: &DraftOptions,
) -> Result<Vec<String>, DraftError> {
    let all = pods.containers.iter().chain(&pods.init_containers);
    let known: Vec<String> = all.map(|it| it.name.to_string()).collect();
    if pods.containers.is_empty() {
        return Ok(Vec::new());
    }
    let of_hpas = subjects_of(options).filter(|it| it.hpa.is_some() && it.is_of(hpas));
    let mut named = of_hpas.filter_map(|subject| subject.container.as_deref());
    match named.find(|container| known.iter().all(|it| it != container)) {
        None => Ok(known),
        Some(unknown) => Err(no_container(unknown, target, &known)),
    }
}

/// The subjects of loads and requests.
fn subjects_of(options: &DraftOptions) -> impl Iterator<Item = &Subject> {
    let of_loads = options.loads.iter().map(|load| &load.subject);
    of_loads.chain(options.requests.iter().map(|request| &request.subject))
}

fn no_container(unknown: &str, target: &str, known: &[String]) -> DraftError {
    let what = format!("{target} has no container {unknown}");
    let hint = among(unknown, "it has", known.iter().map(String::as_str));
    DraftError::Options(Diagnostic::new(what).with_hint(hint))
}

/// Checks that the containers of loads and requests of all autoscalers exist in one of the targets,
/// if all of these are known.
fn check_containers_of_all(drafts: &[Draft], options: &DraftOptions) -> Result<(), DraftError> {
    if drafts.iter().any(|draft| draft.target.containers.is_empty()) {
        return Ok(());
    }
    let of_all = subjects_of(options).filter(|subject| subject.hpa.is_none());
    let mut named = of_all.filter_map(|subject| subject.container.as_deref());
    let exists = |container: &str| {
        drafts.iter().any(|draft| draft.target.containers.iter().any(|it| it == container))
    };
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
fn check_requests_of_containers(
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

/// Sets the requests of the options. A request of a pod replaces those of all its containers.
fn apply_requests(pods: &mut Pods, hpas: &[HpaName], requests: &[RequestOption]) {
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
fn fill_requests(pods: &mut Pods, metrics: &[MetricSpec]) {
    let of_pod = metrics.iter().filter_map(|it| it.resource.as_ref());
    let of_pod = of_pod.filter(|it| !pods.requests.contains_key(&it.name));
    let of_pod = of_pod.map(|it| (&it.name, &it.target, None));
    let of_containers = metrics.iter().filter_map(|it| it.container_resource.as_ref());
    let of_containers = of_containers.map(|it| (&it.name, &it.target, Some(&it.container)));
    for (resource, target, only) in of_pod.chain(of_containers) {
        let sidecars = pods.init_containers.iter_mut().filter(|init| init.sidecar);
        let containers = pods.containers.iter_mut().chain(sidecars);
        let is_needed = target.average_utilization.is_some();
        for it in containers.filter(|it| is_needed && only.is_none_or(|name| it.name == *name)) {
            let example = || usage::example_request(resource);
            it.requests.entry(resource.clone()).or_insert_with(example);
        }
    }
}

#[cfg(test)]
mod tests;
