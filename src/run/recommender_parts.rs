//! Prepares recommenders, and runs the scenarios of a plan on them.

use std::sync::Arc;
use std::time::Instant;

use super::in_order::in_order;
use super::plan::{Plan, RecommenderPart};
use super::recommender_lockstep::{run_recommender, unfinished};
use super::record::Record;
use super::{Outcome, Verdict};
use crate::compare::KnownDisagreement;
use crate::engine::registry::EngineChoice;
use crate::engine::source::{EngineFactory, EngineLimits, EngineSource};
use crate::engine::{Engine, EngineError, Vpa};

/// Runs the scenarios of the recommender.
///
/// # Errors
/// If the engine of the only release can't be prepared.
pub(super) fn run(plan: &Plan, record: &mut Record<'_>) -> Result<(), EngineError> {
    for part in plan.recommender_parts() {
        if plan.stop.is_cancelled() {
            break;
        }
        #[cfg(feature = "clusters")]
        if plan.engine == EngineChoice::Embedded {
            let begin = Instant::now();
            super::wall_clock::recommender::run(plan, &part, record)?;
            record.end_release(part.release, begin.elapsed());
            continue;
        }
        let (factory, note) = match choose(plan, &part, record) {
            Ok(choice) => choice,
            Err(error) if plan.used_releases().len() > 1 => {
                (EngineFactory::broken(part.release, &error), None)
            }
            Err(error) => return Err(error),
        };
        record.start(factory.name().clone(), note);
        let begin = Instant::now();
        run_part(plan, &part, &factory, record);
        record.end_release(part.release, begin.elapsed());
    }
    Ok(())
}

/// The engine, and a note about the choice for the report.
fn choose(
    plan: &Plan,
    part: &RecommenderPart,
    record: &mut Record<'_>,
) -> Result<(EngineFactory<Vpa>, Option<String>), EngineError> {
    let release = part.release;
    let limits = EngineLimits { answer: plan.time_limit, stop: plan.stop.clone() };
    let mut progress = |what: &str, fraction| record.preparing(what.to_owned(), fraction);
    let mut prepare = |source: EngineSource| source.prepare(release, &limits, &mut progress);
    let recorded = || EngineSource::Recorded(plan.traces.clone());
    if let Some(checkout) = &plan.checkout {
        let (rules, why) = checkout.vpa_rules();
        let note = match rules == release {
            true => format!("the model follows the rules of {rules}, {why}"),
            false => {
                format!("the model follows the rules of {release}, as requested, not of {rules}")
            }
        };
        return Ok((prepare(EngineSource::Checkout(checkout.clone()))?, Some(note)));
    }
    let upstream = match plan.engine {
        EngineChoice::Model => return Ok((prepare(EngineSource::Model)?, None)),
        EngineChoice::Recorded => return Ok((prepare(recorded())?, None)),
        _ => prepare(EngineSource::Upstream),
    };
    match (plan.engine, upstream) {
        // A missing engine is replaced by recorded traces. A broken one is reported.
        (EngineChoice::Best, Err(EngineError::Unavailable { why, hint, .. })) => {
            let note =
                format!("using recorded traces, because upstream can't run here: {why}; {hint}");
            Ok((prepare(recorded())?, Some(note)))
        }
        (_, upstream) => Ok((upstream?, None)),
    }
}

fn run_part(
    plan: &Plan,
    part: &RecommenderPart,
    factory: &EngineFactory<Vpa>,
    record: &mut Record<'_>,
) {
    let release = part.release;
    let name: Arc<str> = factory.name().clone();
    // Known disagreements of upstream do not apply to the model, which agrees with itself.
    let known: &[KnownDisagreement] =
        if plan.engine == EngineChoice::Model { &[] } else { &plan.known };
    let work = |engine: &mut Box<dyn Engine<Vpa>>, index: usize| {
        let scenario = part.scenarios.get(index)?;
        if plan.stop.is_cancelled() {
            return None;
        }
        let expected = &scenario.expect;
        if plan.releases_are_default
            && !expected.is_empty()
            && scenario.expectations_on(release).next().is_none()
        {
            let why = format!(
                "all its expectations are for releases other than {release}: name one of them with \
                 --release"
            );
            let skipped = unfinished(scenario, &name, release);
            return Some(Outcome { verdict: Verdict::Skipped { why }, ..skipped });
        }
        Some(run_recommender(scenario, &mut **engine, known))
    };
    let workers = plan.jobs.clamp(1, part.scenarios.len().max(1));
    in_order(workers, &|| factory.make(), &work, &mut |_, outcome| {
        record.finished_with_known(known, outcome);
        true
    });
}
