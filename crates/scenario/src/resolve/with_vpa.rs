//! Resolves the VPA of a scenario with an HPA.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::Reader;
use super::cursor::{At, Problems};
use super::vpa::{Component, flag_text, resolve_with_file};
use crate::decode;
use crate::decode::Decoded;
use crate::diagnostic::Diagnostic;
use crate::node::{Node, NodeKind, Scalar};
use crate::resolved::{Scenario, Workload};
use crate::split;
use crate::vpa::VpaScenario;
use crate::with_vpa::{UpdaterSettings, VpaPart, WithVpa};
use kube_autoscaler_models::rules::{InPlaceMode, VpaRelease};
use kube_autoscaler_models::selector::Selector;
use kube_autoscaler_models::vpa::updater::UpdaterFlags;
use kube_autoscaler_models::vpa::{UpdateMode, VerticalPodAutoscaler};

/// The fields that a scenario of the recommender alone does not have.
const OWN: [&str; 2] = ["vpaRelease", "updater"];

/// Resolves the part that `split::take_vpa` returns. `init_containers`: those of the workload,
/// which the part does not contain.
pub fn resolve(
    path: &str,
    part: &Node,
    init_containers: &[String],
    read: Reader<'_>,
) -> Result<WithVpa, Vec<Diagnostic>> {
    let mut of_recommender = part.clone();
    if let NodeKind::Map(entries) = &mut of_recommender.kind {
        entries.retain(|(key, _)| !OWN.contains(&key.text.as_str()));
    }
    let at = At::root(part);
    let mut problems = Problems::new(Vec::new());
    if part.entry("vpas").is_some() {
        let what = "a scenario with an HPA can have only one VPA";
        problems.hint(at.key_position("vpas"), what, "replace `vpas` with `vpa`, for one VPA");
    }
    let given = release(at.key("vpaRelease"), &mut problems);
    let release = given.unwrap_or(VpaRelease::NEWEST);
    let settings = decoded::<UpdaterSettings>(at.key("updater"), &mut problems).unwrap_or_default();
    let updater = updater(&settings, at.key("updater").key("flags"), &mut problems);
    let resolved = resolve_with_file(path, &of_recommender, init_containers, read);
    if let Ok((recommender, _)) = &resolved {
        check_flags(recommender, release, at, &mut problems);
        check_modes(recommender, release, at, &mut problems);
        UPDATER.check_runs(recommender.until, updater.updater_interval, at, &mut problems);
    }
    let own = problems.into_result();
    match (own, resolved) {
        (Ok(()), Ok((recommender, file))) => Ok(WithVpa {
            recommender: Arc::new(recommender),
            release,
            updater,
            file: VpaPart::new(file, given, settings),
        }),
        (own, resolved) => Err(own.err().into_iter().chain(resolved.err()).flatten().collect()),
    }
}

/// Adds what the HPA's part of the scenario determines.
pub fn complete(with: &mut WithVpa, scenario: &Scenario) {
    let spec = &scenario.workload.spec;
    let recommender = Arc::make_mut(&mut with.recommender);
    recommender.workload.init_containers =
        spec.init_containers.iter().map(|container| container.name.clone()).collect();
    let changes_pods = recommender.vpas.iter().any(|vpa| vpa.mode() != UpdateMode::Off);
    if with.release < VpaRelease::OLDEST_UPDATER && changes_pods {
        let what = format!(
            "the updater and the admission controller are simulated as in {} and later, and are \
             not compared with those of {}",
            VpaRelease::OLDEST_UPDATER,
            with.release
        );
        recommender.notes.push(Diagnostic::new(what));
    }
    if scenario.workload.kind == "StatefulSet" {
        let what = "in this simulation, replacement pods of a StatefulSet get new names, so the \
                    recommender treats them as different pods; in a cluster, they keep their names";
        recommender.notes.push(Diagnostic::new(what));
    }
}

/// Checks the VPA against the HPA's part of the scenario: `of_hpa` and `of_vpa` are their files.
pub fn check(with: &WithVpa, scenario: &Scenario, of_hpa: &Node, of_vpa: &Node) -> Vec<Diagnostic> {
    let mut problems = Problems::new(Vec::new());
    let at = At::root(of_vpa);
    check_target(&with.recommender, scenario, at.key("vpa"), &mut problems);
    check_edits_of_targets(at.key("timeline"), &mut problems);
    if let Some((_, Node { kind: NodeKind::List(events), .. })) = of_hpa.entry("timeline") {
        let found = |event| split::EVENTS_WITHOUT_VPA.into_iter().map(move |name| (event, name));
        let found = events.iter().flat_map(found);
        for (event, name) in found.filter(|(event, name)| event.entry(name).is_some()) {
            let what = format!("`{name}` is not supported in a scenario with a VPA");
            let at = At::root(event).key_position(name);
            problems.hint(at, what, "remove the event, or the VPA");
        }
    }
    problems.into_result().err().unwrap_or_default()
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
        let Some(since) = VpaRelease::of_flag(flag).filter(|since| release < *since) else {
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
    let what = match release.in_place_mode() {
        InPlaceMode::Accepted => return,
        InPlaceMode::Gated => format!(
            "the admission webhook of {release} rejects this VPA: `updateMode: {NAME}` requires \
             the feature gate {NAME}"
        ),
        InPlaceMode::Rejected => format!(
            "the API of {release} rejects this VPA: spec.updatePolicy.updateMode: \
             Unsupported value: {NAME:?}: supported values: \"Off\", \"Initial\", \"Recreate\", \
             \"Auto\""
        ),
    };
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

/// The release of the recommender, if the file names one.
fn release(at: At<'_>, problems: &mut Problems) -> Option<VpaRelease> {
    let node = at.node()?;
    let text = if let NodeKind::Scalar { text, .. } = &node.kind { text.as_str() } else { "" };
    match text.parse::<VpaRelease>() {
        Ok(release) => Some(release),
        Err(why) => {
            let hint = match format!("vpa-{text}").parse::<VpaRelease>() {
                Ok(meant) => format!("did you mean {meant}?"),
                Err(_) => format!("for example {}", VpaRelease::NEWEST),
            };
            problems.hint(at, why, hint);
            None
        }
    }
}

const UPDATER: Component = Component {
    name: "updater",
    interval: "updater-interval",
    flags: &UpdaterFlags::NAMES,
    unsupported: UpdaterFlags::unsupported,
};

fn updater(settings: &UpdaterSettings, at: At<'_>, problems: &mut Problems) -> UpdaterFlags {
    let mut flags = UpdaterFlags::default();
    for (name, value) in &settings.flags {
        let Some(text) = flag_text(name, value, at, problems) else { continue };
        let known = name.trim_start_matches('-');
        match flags.set(known, &text) {
            Ok(()) => {}
            Err(_) if !UpdaterFlags::NAMES.contains(&known) => {
                problems.add(UPDATER.unknown_flag(known, at.key_position(name)));
            }
            Err(why) => problems.plain(at.key(name), why),
        }
    }
    flags
}

fn decoded<T: DeserializeOwned>(at: At<'_>, problems: &mut Problems) -> Option<T> {
    match decode::decode_all(at.node()?, decode::Nulls::Refused) {
        Ok(Decoded { value, malformed }) => {
            malformed.into_iter().for_each(|problem| problems.add(problem));
            Some(value)
        }
        Err(problem) => {
            problems.add(problem);
            None
        }
    }
}
