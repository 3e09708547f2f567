//! Checks the pods that belong to no target.

use super::cursor::{At, Problems};
use super::target::Target;
use super::values::resource;
use crate::raw::ScenarioFile;
use crate::resolved::OtherPods;
use kube_autoscaler_models::selector::is_dns1123_subdomain;

/// The largest number of identical pods in one entry.
const MOST: u32 = 1000;

pub(super) fn resolve(
    file: &ScenarioFile,
    at: At<'_>,
    workload: Option<&Target>,
    problems: &mut Problems,
) -> Vec<OtherPods> {
    let mut all: Vec<OtherPods> = Vec::new();
    for (index, typed) in file.other_pods.iter().enumerate() {
        let at = at.index(index);
        let name = &*typed.name;
        if let Some(error) = is_dns1123_subdomain(name, "characters").first() {
            problems
                .plain(at.key("name"), format!("{name:?} is not a valid name for pods: {error}"));
        }
        if workload.is_some_and(|workload| *workload.name == *name) {
            let what = format!("`{name}` is the name of the workload");
            problems.hint(at.key("name"), what, "choose another name");
        }
        if all.iter().any(|pods| *pods.name == *name) {
            problems.plain(at.key("name"), format!("duplicate name `{name}`"));
        }
        check(typed, at, problems);
        all.push(typed.clone().without_defaults());
    }
    all
}

fn check(pods: &OtherPods, at: At<'_>, problems: &mut Problems) {
    let count = pods.count();
    if !(1..=MOST).contains(&count) {
        problems.plain(at.key("count"), format!("expected 1 to {MOST} pods, found {count}"));
    }
    if pods.labels.is_empty() {
        let hint = "use the labels of the workload's pods, for example {app: web}";
        problems.hint(at.key("labels"), "no selector matches pods without labels", hint);
    }
    if pods.container().is_empty() {
        problems.plain(at.key("container"), "the name of the container is empty");
    }
    for name in pods.usage.keys() {
        resource(name, at.key("usage").key(name), problems);
    }
}
