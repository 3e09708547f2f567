//! The runner: runs each release of a plan on its engine, in virtual time or on a cluster.

use std::time::Instant;

use super::executor::Executor;
use super::lockstep::unfinished;
use super::plan::{Plan, ReleasePlan};
use super::record::Record;
use super::{Event, Summary, Verdict, recommender_parts, virtual_time};
use crate::engine::EngineError;

/// Runs all scenarios of a plan and reports events to `sink`.
///
/// # Errors
/// If the engine of the only release can't be prepared. With several releases, the scenarios of a
/// release without an engine have no verdict. If an engine fails later, its scenario is
/// inconclusive.
pub fn run_all(plan: &Plan, sink: &mut dyn FnMut(Event)) -> Result<Summary, EngineError> {
    plan.engine.info().require()?;
    let parts = plan.parts();
    let mut record = Record::new(plan, sink);
    let hpa = |executor: &mut dyn Executor, record: &mut Record<'_>| {
        for part in &parts {
            let Some(engine) = executor.prepare(part, record)? else { break };
            let name = engine.name();
            record.start(name.clone(), engine.note());
            for scenario in &part.for_other_releases {
                let mut outcome = unfinished(scenario, &name, part.release);
                let why = format!(
                    "all its expectations are for releases other than {}: name one of them with \
                     --release",
                    part.release
                );
                outcome.verdict = Verdict::Skipped { why };
                record.finished(outcome);
            }
            // The first preparation of an engine is not part of the run.
            let begin = Instant::now();
            engine.run(part, record)?;
            record.end_release(part.release, begin.elapsed());
        }
        Ok(())
    };
    if !parts.is_empty() {
        with_executor(plan, &parts, |executor| hpa(executor, &mut record))?;
    }
    recommender_parts::run(plan, &mut record)?;
    Ok(record.end())
}

/// Calls `run` with the executor of a plan's engine.
fn with_executor(
    plan: &Plan,
    parts: &[ReleasePlan],
    run: impl FnOnce(&mut dyn Executor) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    #[cfg(feature = "clusters")]
    if plan.engine.is_wall_clock() {
        return run(&mut *super::wall_clock::executor(plan, parts)?);
    }
    virtual_time::with_engines(plan, parts, run)
}
