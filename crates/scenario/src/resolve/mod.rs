//! Resolves a raw scenario: parses values, fills in defaults, and rejects invalid combinations.
//! All problems of a file are reported at once, each with its position.

mod controller;
mod cursor;
mod expect;
mod expect_object;
mod hpa;
mod lenient;
mod metadata;
pub mod metrics;
mod objects;
mod other_namespaces;
mod other_pods;
mod reach;
mod recordings;
mod rolling_update;
mod search;
mod served;
mod target;
mod timeline;
mod units;
mod values;
mod versions;
mod vpa;
mod with_vpa;
pub mod workload;

use self::cursor::{At, Problems};
use self::hpa::Hpas;
pub use self::hpa::{SingleHpa, single_hpa};
use self::reach::Reach;
use self::recordings::Recordings;
pub use self::recordings::recorded_lengths;
use self::timeline::ResolveContext;
pub use self::units::{MOST_CPU, Usual, is_implausible, rounded, usual_pod};
pub(crate) use self::versions::not_yet_served;
pub use self::versions::{is_removed, served};
pub use self::vpa::{SingleVpa, single_vpa};
use super::autoscalers::Autoscalers;
use super::decode::{self, Decoded};
use super::error::{READS_MANIFESTS, similar};
use super::expectation::Expectation;
use super::kinds::API_VERSION;
use super::node::Node;
use super::raw::ScenarioFile;
use super::resolved::{Observed, Scenario};
use super::syntax::Syntax;
use super::{AnyScenario, deprecated, hash, percent};
use crate::diagnostic::Diagnostic;
use kube_autoscaler_models::time::Span;

/// Reads the files that a scenario names: `hpa.file`, and recorded signals.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// Reads a file.
    pub file: &'a dyn Fn(&str) -> Result<String, Diagnostic>,
    /// The syntax in which the user wrote the loads.
    pub syntax: Syntax,
}

impl Reader<'_> {
    /// Reads the file with this path.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn read(&self, path: &str) -> Result<String, Diagnostic> {
        (self.file)(path)
    }
}

/// Resolves a file.
pub fn resolve(
    path: &str,
    mut root: Node,
    read: Reader<'_>,
) -> Result<AnyScenario, Vec<Diagnostic>> {
    check_kind(&root).map_err(|problem| vec![problem])?;
    let autoscalers = Autoscalers::in_file(&root);
    let renamed = deprecated::rename_fields(&mut root, autoscalers);
    let notes = renamed.map_err(|problem| vec![problem])?;
    let percentage_problems = percent::replace(&mut root, autoscalers);
    let decoded = decode::decode_scenario::<ScenarioFile>(&root, autoscalers);
    let Decoded { value: file, malformed } = match decoded {
        Ok(decoded) => decoded,
        Err(problem) => {
            let mut problems = Problems::new(percentage_problems);
            problems.add(problem);
            return Err(problems.into_list());
        }
    };
    let mut problems = Problems::new([percentage_problems, malformed].concat());
    let at = At::root(&root);
    head(&file, at, &mut problems);
    let input = Input { path, file: &file, autoscalers, at, read };
    let scenario = match autoscalers {
        Autoscalers::Vpas => {
            vpa::scenario(input, &mut problems).map(Box::new).map(AnyScenario::Vpa)
        }
        Autoscalers::Hpas => scenario(input, &mut problems).map(Box::new).map(AnyScenario::Hpa),
        Autoscalers::HpasAndVpa => {
            with_vpa::scenario(input, &mut problems).map(Box::new).map(AnyScenario::Hpa)
        }
    };
    match (problems.into_list(), scenario) {
        (problems, Some(mut scenario)) if problems.is_empty() => {
            if let AnyScenario::Hpa(scenario) = &mut scenario {
                scenario.notes.extend(notes);
                scenario.hash = hash::of(scenario);
            }
            Ok(scenario)
        }
        (problems, None) if problems.is_empty() => {
            let what = "a problem without a message: please report this file";
            Err(vec![at.problem(what, None)])
        }
        (problems, _) => Err(problems),
    }
}

/// The file of a scenario.
#[derive(Clone, Copy)]
struct Input<'f> {
    path: &'f str,
    file: &'f ScenarioFile,
    autoscalers: Autoscalers,
    /// The root of the file.
    at: At<'f>,
    read: Reader<'f>,
}

/// Resolves the part of the HPAs. After problems, the result is absent or incomplete.
fn scenario(input: Input<'_>, problems: &mut Problems) -> Option<Scenario> {
    let Input { path, file, at, read, .. } = input;
    let releases = file.releases.kubernetes();
    let (flags, gates, gate_overrides) = controller::resolve(file, at, releases, problems);
    let mut hpas = Hpas::resolve(file, at, read, &gates, problems);
    let objects = objects::resolve(file, hpas.as_ref(), at, read, problems);
    let target = objects.target.as_ref();
    let workload = workload::resolve(&objects.workload, at.key("workload"), target, problems);
    let others = target::others(file, at.key("otherTargets"), target, problems);
    let other_pods = other_pods::resolve(file, at.key("otherPods"), target, problems);
    let other_namespaces = other_namespaces::resolve(file, at, hpas.as_ref(), problems);
    hpas.iter_mut().for_each(|hpas| hpas.find_targets(&others, problems));
    let none = Hpas::default();
    let known = hpas.as_ref().unwrap_or(&none);
    let reach = Reach::new(file, known.max_replicas(), flags.sync_period);
    let before = problems.len();
    let mut recordings = Recordings::new(read, file.until);
    let metrics = metrics::resolve(file, at.key("metrics"), reach, &mut recordings, problems);
    let metrics_are_sound = problems.len() == before;
    let unit_notes = units::check(&metrics, workload.as_ref(), known, at, problems);
    let context = ResolveContext {
        file,
        read,
        hpas: known,
        workload: workload.as_ref(),
        others: &others,
        reach,
        until: file.until,
    };
    let timeline = timeline::resolve(&context, at.key("timeline"), problems);
    let search = search::resolve(&context, &metrics, at, problems);
    let expect = expectations(file, known, flags.sync_period, at, problems);
    let mut notes = [plain(known.notes()), recordings.notes(), plain(unit_notes)].concat();
    if let Some(hpas) = hpas.as_mut().filter(|_| metrics_are_sound) {
        let unserved = served::check(hpas.asked(), &metrics, &file.workload, &expect, problems);
        notes.extend(plain(unserved));
    }
    let hpas = hpas?;
    Some(Scenario {
        id: path.to_owned(),
        path: path.to_owned(),
        requirement: file.requirement.trim().to_owned(),
        upstream: file.upstream.clone().unwrap_or_default(),
        covers: file.covers.clone(),
        releases,
        flags,
        explicit_flags: controller::given(file),
        gate_overrides,
        namespace: hpas.namespace(),
        objects: objects.manifests,
        notes,
        manifest_notes: Vec::new(),
        is_of_manifests: false,
        clock: recordings.clock(),
        hpas: hpas.into_autoscalers(),
        workload: workload?,
        other_targets: others,
        other_pods,
        other_namespaces,
        metrics,
        timeline,
        until: file.until,
        observed: Observed::ALL,
        vpa: None,
        expect,
        search,
        hash: String::new(),
        line: line(at),
    })
}

/// The line for messages about the whole scenario.
fn line(at: At<'_>) -> usize {
    let given = at.given(&["hpa", "hpas", "objects"]);
    at.key_position(given.first().copied().unwrap_or_default()).line
}

/// Notes that are not about one signal.
fn plain(notes: Vec<String>) -> Vec<Diagnostic> {
    notes.into_iter().map(Diagnostic::new).collect()
}

/// Resolves the expectations, after a check of the number of reconciles.
fn expectations(
    file: &ScenarioFile,
    hpas: &Hpas,
    sync_period: Span,
    at: At<'_>,
    problems: &mut Problems,
) -> Vec<Expectation> {
    let ticks = most_ticks(file, sync_period, at, problems);
    // Other controllers than an HPA's act at any time.
    let ticks = ticks.filter(|_| at.key("objects").node().is_none());
    expect::resolve(file, hpas, at.key("expect"), ticks, problems)
}

/// The largest possible number of reconciles.
fn most_ticks(
    file: &ScenarioFile,
    sync_period: Span,
    at: At<'_>,
    problems: &mut Problems,
) -> Option<usize> {
    let ticks = expect::most_ticks(file, file.until, sync_period)?;
    if ticks > MOST_TICKS {
        let what =
            format!("the scenario has {ticks} reconciles, more than the limit of {MOST_TICKS}");
        let hint = "decrease `until`, or increase `horizontal-pod-autoscaler-sync-period`";
        problems.hint(at.key("until"), what, hint);
    }
    Some(ticks)
}

/// Checks `apiVersion` and `kind` first, because another kind of file has other fields.
fn check_kind(root: &Node) -> Result<(), Diagnostic> {
    let at = At::root(root);
    let begin = format!("a scenario begins with `apiVersion: {API_VERSION}`");
    if !at.is_map() {
        let what = format!("expected a scenario, found {}", root.describe());
        return Err(at.problem(what, Some(begin.into())));
    }
    let kind = root.entry("kind").map(|(_, kind)| kind.to_json());
    let is_manifest = kind.is_none_or(|kind| kind != "Scenario");
    for (field, expected) in [("apiVersion", API_VERSION), ("kind", "Scenario")] {
        let Some((_, value)) = root.entry(field) else { continue };
        let found = value.to_json();
        if found.as_str() != Some(expected) {
            let what = format!("expected {field} `{expected}`, found {}", value.describe());
            let hint = match found.as_str() {
                Some("HorizontalPodAutoscaler" | "autoscaling/v2") => {
                    Some(format!("a manifest belongs under `hpa:`; {READS_MANIFESTS}").into())
                }
                Some(found) => {
                    let newer = "upgrade kube-lockstep if the file is for a newer version of it";
                    let newer = found.starts_with("kube-lockstep.dev/").then(|| newer.into());
                    let other = if is_manifest { READS_MANIFESTS.into() } else { begin.into() };
                    similar(found, [expected]).or(newer).or(Some(other))
                }
                None => None,
            };
            return Err(at.key(field).problem(what, hint));
        }
    }
    Ok(())
}

/// Adds a problem if a field is missing that only some scenarios require.
fn require(field: &'static str, at: At<'_>, problems: &mut Problems) {
    if at.key(field).node().is_none() {
        problems.add_at(at, serde::de::Error::missing_field(field));
    }
}

fn head(file: &ScenarioFile, at: At<'_>, problems: &mut Problems) {
    if file.requirement.trim().is_empty() {
        let hint = "state the requirement in one sentence";
        problems.hint(at.key("requirement"), "the requirement is empty", hint);
    }
    let Some(upstream) = &file.upstream else { return };
    let link = ["https://", "http://"].iter().find_map(|scheme| upstream.strip_prefix(scheme));
    if link.is_none_or(|link| link.is_empty() || link.contains(char::is_whitespace)) {
        let what = format!("expected a link, found {}", super::node::shorten(upstream));
        let hint = "link upstream's source, a KEP or an issue: https://…; or remove the field";
        problems.hint(at.key("upstream"), what, hint);
    }
}

/// A month of reconciles every 15 s. A longer scenario is probably a mistake.
const MOST_TICKS: usize = 200_000;
