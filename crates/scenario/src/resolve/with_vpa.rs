//! Resolves the VPA of a scenario with an HPA.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::Input;
use super::cursor::{At, Problems};
use super::vpa::{self, Component};
use crate::diagnostic::Diagnostic;
use crate::node::{Node, NodeKind, Scalar};
use crate::raw::ScenarioFile;
use crate::resolved::{Scenario, Workload};
use crate::vpa::VpaScenario;
use crate::vpa::raw::AnyVpa;
use crate::with_vpa::{WithVpa, rejects_in_place};
use crate::yaml;
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::selector::Selector;
use kube_autoscaler_models::vpa::updater::UpdaterFlags;
use kube_autoscaler_models::vpa::{UpdateMode, VerticalPodAutoscaler};

/// Resolves a scenario with an HPA and a VPA.
pub(super) fn scenario(input: Input<'_>, problems: &mut Problems) -> Option<Scenario> {
    let scenario = super::scenario(input, problems);
    let vpa = resolve(input, problems);
    let (mut scenario, mut vpa) = (scenario?, vpa?);
    if problems.len() == 0 {
        check_target(&vpa.recommender, &scenario, input.at.key("vpa"), problems);
        check_edits_of_targets(input.at.key("timeline"), problems);
    }
    complete(&mut vpa, &scenario);
    scenario.notes.extend(vpa.recommender.notes.iter().cloned());
    scenario.vpa = Some(Arc::new(vpa));
    Some(scenario)
}

/// Resolves the VPA, its recommender and its updater.
fn resolve(input: Input<'_>, problems: &mut Problems) -> Option<WithVpa> {
    let Input { file, at, .. } = input;
    if !file.vpas.is_empty() {
        let what = "a scenario with an HPA can have only one VPA";
        problems.hint(at.key_position("vpas"), what, "replace `vpas` with `vpa`, for one VPA");
    }
    let release = file.vpa_release.unwrap_or(VpaRelease::NEWEST);
    let updater = updater(file, at, problems);
    let before = problems.len();
    let recommender = vpa::scenario(input, problems)?;
    if problems.len() == before {
        check_flags(&recommender, release, at, problems);
        check_modes(&recommender, release, at, problems);
        UPDATER.check_runs(recommender.until, updater.updater_interval, at, problems);
    }
    Some(WithVpa { recommender: Arc::new(recommender), release, updater })
}

impl WithVpa {
    /// Reads another manifest of the VPA and other flags of its components, which must keep its
    /// target. `tree` has the fields `vpa`, `recommender.flags` and `updater.flags`.
    pub(crate) fn with_manifest(&self, tree: &Value) -> Result<WithVpa, Vec<Diagnostic>> {
        // JSON is YAML.
        let mut nodes = yaml::manifests(&tree.to_string()).map_err(|problem| vec![problem])?;
        let root = nodes.pop().ok_or_else(|| vec!["there is no manifest".into()])?;
        let (at, mut problems) = (At::root(&root), Problems::new(Vec::new()));
        let before = &*self.recommender;
        let given = |component: &str| -> BTreeMap<String, Value> {
            let flags = tree[component]["flags"].as_object().into_iter().flatten();
            flags.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        let mut file = (*before.file).clone();
        file.vpa = Some(AnyVpa(tree["vpa"].clone()));
        file.recommender.flags = given("recommender");
        file.updater.flags = given("updater");
        let keeps_vpa = before.file.vpa == file.vpa;
        let changed = vpa::changed(before, file, at, keeps_vpa, &mut problems);
        let updater = updater(&changed.file, at, &mut problems);
        if problems.len() == 0 {
            check_flags(&changed, self.release, at, &mut problems);
            check_modes(&changed, self.release, at, &mut problems);
            UPDATER.check_runs(changed.until, updater.updater_interval, at, &mut problems);
        }
        match problems.into_list() {
            problems if problems.is_empty() => {
                Ok(WithVpa { recommender: Arc::new(changed), release: self.release, updater })
            }
            problems => Err(problems),
        }
    }
}

/// The flags of the updater.
fn updater(file: &ScenarioFile, at: At<'_>, problems: &mut Problems) -> UpdaterFlags {
    let mut updater = UpdaterFlags::default();
    let flags = at.key("updater").key("flags");
    UPDATER.set_flags(&file.updater.flags, flags, problems, |name, text| updater.set(name, &text));
    updater
}

/// Adds what the HPA's part of the scenario determines.
fn complete(with: &mut WithVpa, scenario: &Scenario) {
    let spec = &scenario.workload.spec;
    let recommender = Arc::make_mut(&mut with.recommender);
    recommender.workload.init_containers =
        spec.init_containers.iter().map(|container| container.name.clone()).collect();
    let notes = with.notes(&scenario.workload.kind);
    Arc::make_mut(&mut with.recommender).notes.extend(notes);
}

/// The release of the recommender must have the flags.
fn check_flags(
    recommender: &VpaScenario,
    release: VpaRelease,
    at: At<'_>,
    problems: &mut Problems,
) {
    let flags = at.follow("recommender.flags");
    for flag in recommender.flags.keys() {
        let Some(since) = VpaRelease::introducing(flag).filter(|since| release < *since) else {
            continue;
        };
        let what = format!("the recommender of {release} does not have the flag `{flag}`");
        let hint = format!("remove the flag, or set `vpaRelease: {since}` or later");
        problems.hint(flags.key_position(flag), what, hint);
    }
}

/// The release must accept the update mode of the VPA, at the start and in each edit.
fn check_modes(
    recommender: &VpaScenario,
    release: VpaRelease,
    at: At<'_>,
    problems: &mut Problems,
) {
    const NAME: &str = "InPlaceOrRecreate";
    let Some(what) = rejects_in_place(release) else { return };
    let mode = "spec.updatePolicy.updateMode";
    let is_in_place = |vpa: &VerticalPodAutoscaler| vpa.mode() == UpdateMode::InPlaceOrRecreate;
    let mut places = Vec::new();
    places.extend(recommender.vpas.iter().any(is_in_place).then(|| at.key("vpa").follow(mode)));
    if let Some(NodeKind::List(events)) = at.key("timeline").node().map(|node| &node.kind) {
        let edits = (0..events.len())
            .map(|index| at.key("timeline").index(index).key("editVpa").follow(mode));
        let is_edit =
            |edit: &At<'_>| matches!(edit.node().and_then(Node::scalar), Some(Scalar::Text(NAME)));
        places.extend(edits.filter(is_edit));
    }
    for place in places {
        let since = VpaRelease::ACCEPTS_IN_PLACE;
        let hint = format!("choose another mode, or set `vpaRelease: {since}` or later");
        problems.hint(place, what.clone(), hint);
    }
}

/// The VPA must have the workload of the HPA as its target.
fn check_target(
    recommender: &VpaScenario,
    scenario: &Scenario,
    at: At<'_>,
    problems: &mut Problems,
) {
    let Workload { group, kind, name, selector, .. } = &scenario.workload;
    let target = &recommender.target;
    let at_target = at.follow("spec.targetRef");
    if (&*target.kind, &*target.name, target.group()) != (kind.as_str(), &**name, group.as_str()) {
        let what = format!(
            "the VPA targets {} {}, but the HPA targets {kind} {name}",
            target.kind, target.name
        );
        problems.hint(at_target, what, "both must have the same target");
    } else if recommender.namespace != scenario.namespace {
        let what = format!(
            "the VPA is in the namespace `{}`, but the HPA is in `{}`",
            recommender.namespace, scenario.namespace
        );
        problems.hint(at.follow("metadata.namespace"), what, "both must be in the same namespace");
    }
    if Selector::parse(selector).is_err() {
        problems.plain(at_target, format!("the recommender can't use the selector {selector:?}"));
    }
}

/// The VPA must keep its target: the simulated updater and admission controller change the pods of
/// the workload only.
fn check_edits_of_targets(timeline: At<'_>, problems: &mut Problems) {
    let Some(NodeKind::List(events)) = timeline.node().map(|node| &node.kind) else { return };
    for index in 0..events.len() {
        let edit = timeline.index(index).key("editVpa").key("spec").key("targetRef");
        if edit.node().is_some() {
            let what = "the target of a VPA can't be edited in a scenario with an HPA";
            let hint = "remove `targetRef`, or write a scenario without an HPA";
            problems.hint(edit, what, hint);
        }
    }
}

const UPDATER: Component = Component {
    name: "updater",
    interval: "updater-interval",
    flags: &UpdaterFlags::NAMES,
    unsupported: UpdaterFlags::unsupported,
};
