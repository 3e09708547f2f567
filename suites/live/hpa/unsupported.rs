//! Upstream shows that a release does not support what the model calls unsupported. Such scenarios
//! are skipped, so recorded traces can't show it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use kube_autoscaler_models::observation::ApiOutcome;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::Time;
use kube_lockstep_engines::upstream::Upstream;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::{Engine as _, EngineError, Step};
use kube_lockstep_sim::trace::header::Build;
use kube_lockstep_sim::world::World;
use libtest_mimic::Failed;

use super::support;

/// Something that a release can lack.
struct UnsupportedFeature {
    /// A part of the model's reason.
    why: &'static str,
    evidence: Evidence,
}

/// How upstream shows that it lacks something.
enum Evidence {
    /// The API server refuses the HPA, or drops the field with this key.
    Field(&'static str),
    /// Upstream's feature gates refuse the setting, so that the controller does not start.
    Gates,
    /// The controller panics.
    Panic,
    /// The controller can't show it. The host calls the controller's constructor, which has no
    /// parameter for a flag of another release; only the kube-controller-manager, which the host
    /// does not run, rejects the flag. `flags.rs` shows it with the source code of the release.
    Sources,
}

const UNSUPPORTED_FEATURES: &[UnsupportedFeature] = &[
    UnsupportedFeature { why: "feature gate", evidence: Evidence::Gates },
    UnsupportedFeature { why: "`behavior`", evidence: Evidence::Field("behavior") },
    UnsupportedFeature { why: "`tolerance`", evidence: Evidence::Field("tolerance") },
    UnsupportedFeature { why: "external metrics", evidence: Evidence::Field("external") },
    UnsupportedFeature { why: "container metrics", evidence: Evidence::Field("containerResource") },
    UnsupportedFeature { why: "metric selectors", evidence: Evidence::Field("selector") },
    UnsupportedFeature {
        why: "averages of object metrics",
        evidence: Evidence::Field("averageValue"),
    },
    UnsupportedFeature { why: "crashes the controller", evidence: Evidence::Panic },
    UnsupportedFeature { why: "has no flag", evidence: Evidence::Sources },
];

/// The last release on which the host refuses all feature gates: none concerns the controller.
const LAST_WITHOUT_GATES: &str = "1.10";

/// For each reason why the model calls fixtures unsupported on a release, upstream shows it with at
/// least one of these fixtures.
pub(super) fn unsupported(build: &Build, program: PathBuf) -> Result<(), Failed> {
    let release = Release::from(build.version.release);
    let mut engine = Upstream::new(program, release);
    let mut by_feature: BTreeMap<usize, Vec<Arc<Scenario>>> = BTreeMap::new();
    for scenario in support::fixtures().iter().map(|path| support::load(path)) {
        let Some(why) = scenario.unsupported_on(release) else { continue };
        let why = why.to_string();
        let index = UNSUPPORTED_FEATURES.iter().position(|feature| why.contains(feature.why));
        let missing = || format!("add to UNSUPPORTED_FEATURES how upstream shows: {why}");
        by_feature.entry(index.ok_or_else(missing)?).or_default().push(scenario);
    }
    for (index, scenarios) in by_feature {
        let UnsupportedFeature { why, evidence } = &UNSUPPORTED_FEATURES[index];
        let mut problems = Vec::new();
        let is_shown = scenarios.iter().any(|scenario| {
            let shown = is_shown(evidence, scenario, &mut engine);
            shown.map_err(|error| problems.push(format!("{}: {error}", scenario.id))).is_ok()
        });
        if !is_shown {
            return Err(format!("{release}: {why}:\n{}", problems.join("\n")).into());
        }
    }
    Ok(())
}

/// Checks that upstream shows that its release lacks something.
///
/// # Errors
/// Upstream's behavior instead.
fn is_shown(
    evidence: &Evidence,
    scenario: &Arc<Scenario>,
    engine: &mut Upstream,
) -> Result<(), String> {
    let release = engine.release();
    match (evidence, answers(scenario, engine)) {
        (Evidence::Sources, _) => Ok(()),
        (Evidence::Gates, Err(error)) => {
            let error = full_text(&error);
            let last = LAST_WITHOUT_GATES.parse::<Release>().map_err(|error| error.to_string())?;
            let is_named = scenario.gate_overrides.keys().any(|gate| error.contains(&**gate));
            if is_named || release <= last { Ok(()) } else { Err(error) }
        }
        (Evidence::Panic, Err(error)) => {
            let error = full_text(&error);
            if error.contains("panic") { Ok(()) } else { Err(error) }
        }
        (Evidence::Field(key), Ok(answers)) => lacks_field(key, &answers),
        (_, Err(error)) => Err(full_text(&error)),
        (_, Ok(_)) => Err("the controller runs".to_owned()),
    }
}

/// An error with the output of the engine.
fn full_text(error: &EngineError) -> String {
    match error {
        EngineError::Broken { output, .. } => format!("{error}\n{output}"),
        _ => error.to_string(),
    }
}

/// A manifest with the answer of the API server.
struct Answered {
    manifest: String,
    outcome: ApiOutcome,
}

/// Checks that the API server refuses the first HPA that has a field, or drops the field.
///
/// # Errors
/// If no manifest has the field, or the API server stores it.
fn lacks_field(key: &str, answers: &[Answered]) -> Result<(), String> {
    let key = format!("\"{key}\":");
    let mut with_field = answers.iter().filter(|answered| answered.manifest.contains(&key));
    let first = with_field.next().ok_or("no manifest has the field at the start")?;
    match &first.outcome {
        ApiOutcome::Stored { spec, .. } => {
            let spec = serde_json::to_string(&**spec).map_err(|error| error.to_string())?;
            if spec.contains(&key) { Err(format!("it is stored: {spec}")) } else { Ok(()) }
        }
        ApiOutcome::Refused { .. } => Ok(()),
        ApiOutcome::Deleted { .. } => Err("the HPA was deleted".to_owned()),
        ApiOutcome::Write(write) => Err(write.to_string()),
    }
}

/// Creates the objects of the start, whatever the model says about the release, and lets the
/// controller run to the end of the scenario.
fn answers(scenario: &Arc<Scenario>, engine: &mut Upstream) -> Result<Vec<Answered>, EngineError> {
    let mut world = World::new(scenario);
    let mut apply = world.advance(Time::ZERO);
    let mut session = engine.open(scenario)?;
    let mut answers = Vec::new();
    for event in world.api_events(Time::ZERO) {
        let manifest = event.is_hpa_request().then(|| format!("{event:?}"));
        apply.push(event);
        let step = Step { apply: std::mem::take(&mut apply), ..Step::default() };
        let answered = session.step(&step)?.api.into_iter();
        answers.extend(
            answered
                .zip(manifest)
                .map(|(answer, manifest)| Answered { manifest, outcome: answer.outcome }),
        );
    }
    session.step(&Step { until: scenario.until, apply, ..Step::default() })?;
    session.close()?;
    Ok(answers)
}
