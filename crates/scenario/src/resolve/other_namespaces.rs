//! Checks the namespaces with objects of the same names.

use super::cursor::{At, Problems};
use super::hpa::Hpas;
use super::metadata::VALID_NAMESPACE;
use super::values::resource;
use crate::other_namespaces::OtherNamespace;
use crate::raw::ScenarioFile;
use kube_autoscaler_models::selector::is_dns1123_label;

/// The largest number of pods in one namespace.
const MOST: u32 = 1000;

pub(super) fn resolve(
    file: &ScenarioFile,
    at: At<'_>,
    hpas: Option<&Hpas>,
    problems: &mut Problems,
) -> Vec<OtherNamespace> {
    let own = hpas.map(Hpas::namespace);
    let at = at.key("otherNamespaces");
    let mut all: Vec<OtherNamespace> = Vec::new();
    for (index, typed) in file.other_namespaces.iter().enumerate() {
        let at = at.index(index);
        let name = &*typed.name;
        if !is_dns1123_label(name).is_empty() {
            let what = format!("{name:?} is not a valid namespace");
            problems.hint(at.key("name"), what, VALID_NAMESPACE);
        }
        if own.as_deref() == Some(name) {
            let what = format!("`{name}` is the namespace of the HPA");
            problems.hint(at.key("name"), what, "choose another namespace");
        }
        if all.iter().any(|other| *other.name == *name) {
            problems.plain(at.key("name"), format!("duplicate namespace `{name}`"));
        }
        if typed.replicas() > MOST {
            let what = format!("expected at most {MOST} replicas, found {}", typed.replicas());
            problems.plain(at.key("replicas"), what);
        }
        for name in typed.usage.keys() {
            resource(name, at.key("usage").key(name), problems);
        }
        let replicas = typed.replicas.filter(|replicas| *replicas != 1);
        all.push(OtherNamespace { replicas, ..typed.clone() });
    }
    all
}
