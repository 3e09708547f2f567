//! Scale targets: the targets of HPAs, and targets without pods.

use std::sync::Arc;

use super::cursor::{At, Problems};
use super::values::check_replicas;
use crate::error::suggest;
use crate::manifest::Reference;
use crate::raw::ScenarioFile;
use crate::resolved::{BUILT_IN, OtherTarget, ScalableKind, usual_plural};
use kube_autoscaler_models::selector::Selector;

/// A target as its reference describes it.
#[derive(Clone, Default, Debug)]
pub struct Target {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub resource: String,
    pub name: Arc<str>,
}

impl Target {
    /// Returns true if every cluster has the kind of the target.
    pub(super) fn is_built_in(&self) -> bool {
        BUILT_IN.iter().any(|known| known.kind == self.kind && known.group == self.group)
    }

    /// The target of an HPA.
    pub(super) fn of(reference: &Reference, at: At<'_>, problems: &mut Problems) -> Option<Target> {
        let (kind, name) = (reference.kind.as_deref()?, reference.name.as_deref()?);
        // The API server rejects it.
        if kind.is_empty() {
            return None;
        }
        if let Some(custom) = custom_resource(reference) {
            return Some(custom);
        }
        let Some(ScalableKind { group, version, resource, .. }) =
            BUILT_IN.into_iter().find(|known| known.kind == kind)
        else {
            unknown_kind(kind, at, problems);
            return None;
        };
        let expected =
            if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let found = reference.api_version.as_deref().unwrap_or_default();
        // The controller finds a scale by group and kind, so removed versions work as well.
        let older = group == "apps" && matches!(found, "apps/v1beta1" | "apps/v1beta2");
        if found != expected && !older {
            let what = match found {
                "" => format!("missing field `apiVersion` of the {kind}"),
                found => format!("a {kind} with apiVersion `{found}` is not supported"),
            };
            problems.hint(at.key("apiVersion"), what, format!("did you mean `{expected}`?"));
            return None;
        }
        let (group, version, resource) =
            (group.to_owned(), version.to_owned(), resource.to_owned());
        Some(Target { group, version, kind: kind.to_owned(), resource, name: name.into() })
    }
}

/// Returns true for a custom resource: its group is a domain name, which for built-in kinds ends
/// with `k8s.io`.
fn custom_resource(reference: &Reference) -> Option<Target> {
    let (group, version) = reference.api_version.as_deref()?.split_once('/')?;
    let (kind, name) = (reference.kind.as_deref()?, reference.name.as_deref()?);
    let ours = group.contains('.') && !group.ends_with(".k8s.io");
    (ours && !version.is_empty() && !version.contains('/') && !kind.is_empty()).then(|| Target {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        resource: usual_plural(kind),
        name: name.into(),
    })
}

/// The targets without pods.
pub(super) fn others(
    file: &ScenarioFile,
    at: At<'_>,
    workload: Option<&Target>,
    problems: &mut Problems,
) -> Vec<OtherTarget> {
    let mut targets: Vec<OtherTarget> = Vec::new();
    for (index, typed) in file.other_targets.iter().enumerate() {
        let at = at.index(index);
        if typed.scalable_kind().is_none() {
            unknown_kind(&typed.kind, at, problems);
            continue;
        }
        check_replicas(typed.replicas, at.key("replicas"), problems);
        let name = &*typed.name;
        if workload.is_some_and(|workload| *workload.name == *name) {
            let what = format!("`{name}` is the name of the workload");
            problems.hint(at.key("name"), what, "choose another name");
        }
        if targets.iter().any(|target| *target.name == *name) {
            problems.plain(at.key("name"), format!("duplicate target `{name}`"));
        }
        if let Some(text) = &typed.selector
            && let Err(error) = Selector::parse(text)
        {
            problems
                .plain(at.key("selector"), format!("{text:?} is not a valid selector: {error}"));
        }
        let selector = typed.selector.clone().filter(|it| *it != typed.default_selector());
        targets.push(OtherTarget { selector, ..typed.clone() });
    }
    targets
}

fn unknown_kind(kind: &str, at: At<'_>, problems: &mut Problems) {
    let known = BUILT_IN.map(|known| known.kind);
    let what = format!("targets of kind `{kind}` are not supported");
    problems.add(at.key("kind").problem(what, suggest(kind, known)));
}
