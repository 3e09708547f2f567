//! Resolves a raw scenario: parses values, fills in defaults, and rejects invalid combinations.
//! All problems of a file are reported at once, each with its position.

mod controller;
mod cursor;
mod expect;
mod hpa;
mod metadata;
mod metrics;
mod other_pods;
mod reach;
mod rolling_update;
mod served;
mod timeline;
mod values;
mod versions;
mod workload;

use self::cursor::{At, Problems};
use self::hpa::Hpas;
use self::reach::Reach;
use self::timeline::ResolveContext;
pub(super) use self::versions::served;
pub(super) use self::workload::{AGE, APP};
use super::decode::Decoded;
use super::error::{Problem, suggest};
use super::node::Node;
use super::raw::ScenarioFile;
use super::resolved::Scenario;
use super::{decode, hash};

/// What `apiVersion` must be.
const API_VERSION: &str = "kube-lockstep.dev/v1alpha1";

/// Reads other files: `hpa.file`.
pub(super) type Reader<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Resolves a file.
pub(super) fn resolve(path: &str, root: &Node, read: Reader<'_>) -> Result<Scenario, Vec<Problem>> {
    check_kind(root).map_err(|problem| vec![problem])?;
    let decoded = decode::decode_all(root, decode::Nulls::Refused);
    let Decoded { value: file, malformed } = decoded.map_err(|problem| vec![problem])?;
    let file: ScenarioFile = file;
    let mut problems = Problems::new(malformed);
    let at = At::root(root);
    head(&file, at, &mut problems);
    let (releases, until) = (file.releases, file.until);
    let flags_given = controller::given(&file);
    let (flags, gates, gate_overrides) = controller::resolve(&file, at, releases, &mut problems);
    let mut hpas = Hpas::resolve(&file, at, read, &gates, &mut problems);
    let target = hpas.as_ref().and_then(Hpas::target);
    let workload = workload::resolve(&file.workload, at.key("workload"), target, &mut problems);
    let others = hpa::other_targets(&file, at.key("otherTargets"), target, &mut problems);
    let other_pods = other_pods::resolve(&file, at.key("otherPods"), target, &mut problems);
    if let Some(hpas) = &mut hpas {
        hpas.find_targets(&others, &mut problems);
    }
    let max_replicas = hpas.as_ref().and_then(Hpas::max_replicas);
    let none = Hpas::default();
    let known = hpas.as_ref().unwrap_or(&none);
    let reach = Reach::of(&file, max_replicas, flags.sync_period);
    let before = problems.len();
    let metrics = metrics::resolve(&file, at.key("metrics"), reach, &mut problems);
    let metrics_are_sound = problems.len() == before;
    let scene = ResolveContext {
        file: &file,
        hpas: known,
        workload: workload.as_ref(),
        others: &others,
        reach,
        until,
    };
    let timeline = timeline::resolve(&scene, at.key("timeline"), &mut problems);
    let ticks = expect::most_ticks(&file, until, flags.sync_period);
    if let Some(ticks) = ticks.filter(|ticks| *ticks > MOST_TICKS) {
        let what = format!("that is {ticks} reconciles: at most {MOST_TICKS} are run");
        problems.hint(at.key("until"), what, "a shorter time, or a longer sync period");
    }
    let expect = expect::resolve(&file, known, at.key("expect"), ticks, &mut problems);
    let mut odd = Vec::new();
    if let Some(hpas) = &mut hpas
        && metrics_are_sound
    {
        let asked = hpas.asked();
        odd = served::check(asked, &metrics, &file.workload, &expect, &mut problems);
    }
    problems.into_result()?;
    let (Some(hpas), Some(workload)) = (hpas, workload) else {
        let what = "a problem without a message: please report this file";
        return Err(vec![at.problem(what, None)]);
    };
    let mut scenario = Scenario {
        id: path.to_owned(),
        path: path.to_owned(),
        requirement: file.requirement.trim().to_owned(),
        upstream: file.upstream.clone().unwrap_or_default(),
        covers: file.covers.clone(),
        releases,
        flags,
        flags_given,
        gate_overrides,
        namespace: hpas.namespace(),
        notes: hpas.notes().into_iter().chain(odd).collect(),
        hpas: hpas.into_autoscalers(),
        workload,
        other_targets: others,
        other_pods,
        metrics,
        timeline,
        until,
        expect,
        hash: String::new(),
        line: at.key_position(if file.hpa.is_some() { "hpa" } else { "hpas" }).line,
    };
    scenario.hash = hash::of(&scenario);
    Ok(scenario)
}

/// `apiVersion` and `kind`, before all else: another kind of file has other fields.
fn check_kind(root: &Node) -> Result<(), Problem> {
    let at = At::root(root);
    if !at.is_map() {
        let hint = format!("a scenario begins with `apiVersion: {API_VERSION}`");
        return Err(
            at.problem(format!("expected a scenario, found {}", root.describe()), Some(hint))
        );
    }
    for (field, wanted) in [("apiVersion", API_VERSION), ("kind", "Scenario")] {
        let Some((_, value)) = root.entry(field) else { continue };
        let found = value.to_json();
        if found.as_str() != Some(wanted) {
            let what = format!("expected {field} `{wanted}`, found {}", value.describe());
            let hint = match found.as_str() {
                Some("HorizontalPodAutoscaler" | "autoscaling/v2") => {
                    Some("a manifest belongs below `hpa:`".to_owned())
                }
                Some(found) => suggest(found, [wanted]).filter(|hint| hint.starts_with("did")),
                None => None,
            };
            return Err(at.key(field).problem(what, hint));
        }
    }
    Ok(())
}

fn head(file: &ScenarioFile, at: At<'_>, problems: &mut Problems) {
    if file.requirement.trim().is_empty() {
        let hint = "say in one sentence what must hold";
        problems.hint(at.key("requirement"), "an empty requirement", hint);
    }
    let Some(upstream) = &file.upstream else { return };
    let link = ["https://", "http://"].iter().find_map(|scheme| upstream.strip_prefix(scheme));
    if link.is_none_or(|link| link.is_empty() || link.contains(char::is_whitespace)) {
        let what = format!("expected a link, found {}", super::node::shorten(upstream));
        let hint = "link upstream's source, a KEP or an issue: https://…; or leave it out";
        problems.hint(at.key("upstream"), what, hint);
    }
}

/// More reconciles than this (a month of them, each 15 s) are a slip rather than a scenario.
const MOST_TICKS: usize = 200_000;
