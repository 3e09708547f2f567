//! Drafts of scenarios from manifests: an HPA or a VPA, its target, and loads in their short form.
//!
//! A draft is the text of a scenario, which a user can edit, and which
//! [`parse`](kube_lockstep_scenario::parse) reads like any other. Errors in manifests are found
//! here, at their positions in the manifest.

pub mod field;
mod group;
mod hpa;
mod load;
mod manifests;
mod objects;
mod of_scenario;
mod pods;
mod recommender;
mod select;
mod settings;
mod shape;
mod target;
mod units;
mod usage;
mod validation;
mod versions;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use self::group::{Group, Sources, draft_hpas};
pub use self::hpa::{HpaManifest, ValidHpa};
pub use self::load::{HpaName, Load, RequestOption};
pub use self::manifests::{Manifests, ValidWorkload};
use self::objects::Objects;
pub use self::objects::{ManifestFile, Object};
pub use self::pods::{PodContainer, Pods};
pub use self::recommender::ValidVpa;
use self::recommender::read_vpa;
use self::select::{
    Invalid, OtherNames, Values, check_kinds, check_names, find_autoscalers, select,
};
pub use self::settings::removed_versions;
pub use self::shape::ValueRange;
use self::target::{DraftTarget, check_containers_of_all, find_target};
pub use self::versions::{ChangedDraft, ChangedField, Versions, draft_versions};
use kube_autoscaler_models::api::PodSpec;
use kube_autoscaler_models::time::Span;
use kube_lockstep_scenario::diagnostic::Diagnostic;
use kube_lockstep_scenario::error::Error;
use kube_lockstep_scenario::resolve::Reader;
use kube_lockstep_scenario::syntax::Syntax;
pub use kube_lockstep_scenario::text::days_as_hours;
use kube_lockstep_scenario::write;
use kube_lockstep_scenario::{FlagValues, Scenario, to_manifests, with_manifests};

/// The user's options in addition to the manifests.
#[derive(Clone, Debug, Default)]
pub struct DraftOptions {
    /// The HPAs to predict.
    pub hpas: Selected,
    /// The VPAs to predict.
    pub vpas: Selected,
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
    pub flags: FlagValues,
    /// True if the recommendations of VPAs are applied to the pods. If HPAs are predicted as well,
    /// VPAs that change no pods are then left out, unless they are named.
    pub applies_vpas: bool,
    /// True if the draft contains examples in place of missing values, to be edited.
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AutoscalerKind {
    /// A HorizontalPodAutoscaler.
    Hpa,
    /// A VerticalPodAutoscaler.
    Vpa,
}

impl AutoscalerKind {
    /// All kinds.
    pub const ALL: [AutoscalerKind; 2] = [AutoscalerKind::Hpa, AutoscalerKind::Vpa];

    /// The word for it in paths and JSON: `hpa`, `vpa`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            AutoscalerKind::Hpa => "hpa",
            AutoscalerKind::Vpa => "vpa",
        }
    }
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
    pub notes: Vec<Diagnostic>,
    /// Assumptions of a prediction of the recommender alone.
    pub notes_on_recommender: Vec<Diagnostic>,
    /// Assumptions about the manifest of the target.
    pub manifest_notes: Vec<Diagnostic>,
    /// Values that the prediction depends on, and that neither manifests nor options contain.
    pub missing: Vec<Missing>,
    fields: Map<String, Value>,
    until: Span,
    used_loads: Vec<usize>,
    /// The HPAs. Empty: it is the draft of a VPA.
    hpas: Vec<ValidHpa>,
    /// The VPA, if the scenario has one.
    vpa: Option<ValidVpa>,
    target: DraftTarget,
    /// The parts of the pods that a scenario of a VPA alone does not have: init containers with
    /// their requests, pod-level requests and overhead.
    pod_spec: PodSpec,
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

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MissingValue {
    /// The target, with its replicas.
    Target,
    /// The request that an HPA calculates a utilization from. `of_load`: a load is in percent of it
    /// as well.
    Request { of_load: bool },
    /// The request that a load is in percent of.
    RequestOfLoad,
    /// The load of a metric.
    Load,
}

/// The problem, with the flag.
impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (add {})", self.what, self.flag)
    }
}

impl Missing {
    fn target(what: String, flag: String) -> Missing {
        Missing { what, flag, value: MissingValue::Target }
    }

    fn request(what: String, flag: String) -> Missing {
        Missing { what, flag, value: MissingValue::Request { of_load: false } }
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
    options: DraftOptions,
    values: Values,
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
    /// Adds what the file of a VPA alone does not have to a scenario in which its recommendations
    /// are applied: parts of the pods, and flags of the updater.
    ///
    /// # Errors
    /// The problems of the flags.
    pub fn complete(&self, mut scenario: Scenario) -> Result<Scenario, Vec<Diagnostic>> {
        if self.kind == AutoscalerKind::Hpa {
            return Ok(scenario);
        }
        let containers = scenario.workload.spec.containers.clone();
        scenario.workload.spec = Arc::new(PodSpec { containers, ..self.pod_spec.clone() });
        let Some(updater) = self.fields.get("updater") else { return Ok(scenario) };
        let mut manifests = to_manifests(&scenario);
        manifests["updater"] = updater.clone();
        with_manifests(&scenario, &manifests)
    }

    /// The scenario as YAML.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let mut fields = self.fields.clone();
        // Only the scenario in which recommendations are applied has an updater.
        if self.kind == AutoscalerKind::Vpa {
            fields.remove("updater");
        }
        write::document(&fields)
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
    drafts.check_loads(&[], "")?;
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
    let mut invalid = Invalid::default();
    let drafts = draft_read(&Objects::read(files)?, files, options, read, &mut invalid);
    // Without an invalid autoscaler, its loads have no use: that error would be misleading.
    invalid.check()?;
    drafts
}

/// The valid part of the manifests, and the problems of the invalid manifests, which are left out.
pub struct Valid<T> {
    pub valid: T,
    /// Each with its file and line.
    pub problems: Vec<Diagnostic>,
}

/// Like [`draft`], but leaves out autoscalers whose manifests, or whose targets, are invalid. Also
/// returns the valid manifests.
///
/// # Errors
/// If no autoscaler is valid, or there is no such autoscaler.
pub fn draft_valid(
    files: &[ManifestFile],
    options: &DraftOptions,
    read: &dyn Fn(&str) -> Result<String, Diagnostic>,
) -> Result<Valid<(Drafts, Manifests)>, DraftError> {
    let mut invalid = Invalid::default();
    let objects = Objects::read(files)?;
    let drafts = draft_read(&objects, files, options, read, &mut invalid);
    let problems = match drafts.as_ref().map_or(true, |drafts| drafts.list.is_empty()) {
        true => invalid.check().map(|()| Vec::new())?,
        false => invalid.into_problems(),
    };
    let drafts = drafts?;
    // The problems of the manifests are those of the drafts.
    let mut known = Invalid::default();
    let manifests = Manifests::of(&objects, files, &options.loads, &mut known)?;
    Ok(Valid { valid: (drafts, manifests), problems })
}

/// Drafts the scenarios of all valid objects, which are read from files.
fn draft_read(
    objects: &Objects,
    files: &[ManifestFile],
    options: &DraftOptions,
    read: &dyn Fn(&str) -> Result<String, Diagnostic>,
    invalid: &mut Invalid,
) -> Result<Drafts, DraftError> {
    check_kinds(objects, files, options)?;
    let read = Reader { file: read, syntax: Syntax::Flags };
    draft_objects(objects, &OtherNames::default(), options, read, invalid)
}

/// The names of the objects that no draft uses. `used`: the indices of the objects in use.
fn ignored_objects(
    objects: &Objects,
    options: &DraftOptions,
    used: &BTreeSet<usize>,
) -> Vec<String> {
    let others = objects.others.iter().enumerate();
    let others = others.filter(|(index, _)| !used.contains(index)).map(|(_, it)| it);
    let unsupported = objects.vpas.iter().filter(|_| options.vpas == Selected::Unsupported);
    let named = |object: &Object| format!("{} {}", object.kind(), object.name());
    unsupported.chain(others).map(|object| named(object).trim_end().to_owned()).collect()
}

/// Drafts the scenarios of all valid objects. `others`: names in other manifests, which loads and
/// requests may have.
fn draft_objects(
    objects: &Objects,
    others: &OtherNames,
    options: &DraftOptions,
    read: Reader<'_>,
    invalid: &mut Invalid,
) -> Result<Drafts, DraftError> {
    let (mut used_objects, mut list) = (BTreeSet::new(), Vec::new());
    let hpas = select(&objects.hpas, &options.hpas, AutoscalerKind::Hpa)?;
    invalid.note(check_names(&hpas, AutoscalerKind::Hpa))?;
    let targets = &objects.others;
    let hpas = invalid.valid(hpas, AutoscalerKind::Hpa, ValidHpa::read, targets);
    let vpas = select(&objects.vpas, &options.vpas, AutoscalerKind::Vpa)?;
    invalid.note(check_names(&vpas, AutoscalerKind::Vpa))?;
    let vpas = invalid.valid(vpas, AutoscalerKind::Vpa, read_vpa, targets);
    let left_out = recommender::unselected(&objects.vpas, options);
    let values = find_autoscalers(&hpas, &vpas, others, objects, options)?;
    let sources = Sources { options, values: &values, read };
    let groups = hpa::by_target(hpas);
    let mut alone: Vec<&ValidVpa> = vpas.iter().collect();
    for group in &groups {
        let hpa = &group[0];
        let vpa = recommender::take_vpa_with_hpas(group, &mut alone);
        let namespace = hpa.name.namespace.as_ref();
        let found = find_target(&objects.others, namespace, |object| hpa.scales(object));
        let Some(found) = invalid.note(found)? else { continue };
        used_objects.extend(found);
        let target = found.map(|index| &objects.others[index]);
        let group = Group { hpas: group, vpa };
        let Some(mut draft) = invalid.note(draft_hpas(&group, target, sources))? else {
            continue;
        };
        let note = left_out.iter().find_map(|vpa| recommender::left_out(vpa, hpa));
        draft.notes.extend(note.map(Diagnostic::from));
        list.push(draft);
    }
    if groups.is_empty() && !vpas.is_empty() {
        check_options_of_vpas(options)?;
    }
    // HPAs that are not predicted matter for a note only, so errors in them are ignored.
    let all_hpas = objects.hpas.iter().filter_map(|it| ValidHpa::read(it).ok());
    let all_hpas: Vec<ValidHpa> = all_hpas.collect();
    let all_vpas = recommender::readable(&objects.vpas);
    let predicted: Vec<&ValidHpa> = groups.iter().flatten().collect();
    let idle = recommender::leave_out_idle(&mut alone, !groups.is_empty(), options);
    for vpa in alone {
        let namespace = vpa.namespace.as_ref();
        let target = find_target(&objects.others, namespace, |object| vpa.targets(object));
        let Some(target) = invalid.note(target)? else { continue };
        used_objects.extend(target);
        let target = target.map(|index| &objects.others[index]);
        let draft = invalid.note(recommender::draft_vpa(vpa, target, &all_hpas, sources))?;
        let Some(mut draft) = draft else { continue };
        let separate = recommender::why_predicted_alone(vpa, &predicted, &vpas);
        let note = separate
            .or_else(|| recommender::hpa_left_out(vpa, &all_hpas))
            .or_else(|| recommender::competition(vpa, &all_vpas));
        draft.notes.extend(note.map(Diagnostic::from));
        list.push(draft);
    }
    list.iter_mut().for_each(|draft| draft.suggest_target(&objects.others));
    check_containers_of_all(&list, &values)?;
    note_on_repeated_totals(&mut list, &values.loads);
    let ignored = [idle, ignored_objects(objects, options, &used_objects)].concat();
    let (options, others) = (options.clone(), objects.others.clone());
    let vpas_left_out = left_out.iter().map(|vpa| vpa.full_name().to_string()).collect();
    Ok(Drafts { list, ignored, options, values, others, vpas_left_out })
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
            first.notes.push(note.into());
        }
    }
}

#[cfg(test)]
mod tests;
