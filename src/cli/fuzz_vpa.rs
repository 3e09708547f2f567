//! `kube-lockstep fuzz --area vpa`.

use std::io;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::args::{Format, workers};
use super::doctor::check_writable;
use super::failure::Failure;
use super::fuzz::{Args, INTERRUPTED, MOST_FINDINGS, Progress, not_saved, random_seed};
use super::output::{PreparationLog, columns, show, unless_closed};
use super::{exit, interrupt};
use crate::engine::recommender::RecommenderSource;
use crate::engine::upstream::checkout::Checkout;
use crate::report::{self, counted, json};
use crate::run::fuzzing::RunLimit;
use crate::run::recommender_fuzzing::{
    RecommenderFinding, RecommenderFuzzPlan, RecommenderFuzzSummary, fuzz_recommender,
};
use crate::run::{Setting, Shard};
use crate::scenario::vpa::script_to_yaml;

/// The schema, relative to a folder beside the repository's other folders.
const SCHEMA: &str = "../schema/scenario.schema.json";

/// Runs generated scripts on the recommender.
pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let checkout = checkout(args)?;
    let release = args.release.vpa_release(checkout.as_ref())?;
    let stop = CancellationToken::new();
    let mut preparing = PreparationLog::default();
    let mut progress = |what: &str, done| preparing.log(what, done);
    let source = match &checkout {
        _ if args.is_on_model() => Ok(RecommenderSource::Model(release)),
        None => RecommenderSource::upstream(release, &stop, &mut progress),
        Some(checkout) => RecommenderSource::checkout(checkout, release, &stop, &mut progress),
    };
    let source = source.map_err(Failure::from)?;
    let ticks = args.ticks.unwrap_or(100_000) as usize;
    let plan = RecommenderFuzzPlan {
        seed: args.seed.unwrap_or_else(random_seed),
        limit: args.time.map_or(RunLimit::Ticks(ticks), RunLimit::Time),
        shard: args.part.shard.unwrap_or(Shard::WHOLE),
        release,
        source,
        jobs: workers(args.jobs),
        max_findings: MOST_FINDINGS,
        stop,
    };
    check_writable(&args.save).map_err(|error| not_saved(&args.save, &error))?;
    let ending = interrupt::Ending::listen(&plan.stop, INTERRUPTED)?;
    let is_json = args.format == Format::Json;
    print_settings(&plan, is_json)?;
    let mut progress = Progress::new();
    let (summary, findings) = fuzz_recommender(&plan, &mut |summary| {
        progress.update(summary.scripts, summary.ticks, summary.elapsed);
    });
    progress.clear();
    for finding in &findings {
        let path = save(args, &plan, finding)?;
        let seed = plan.seed;
        match is_json {
            true => line(&json!({"finding": {
                "index": finding.index, "times": finding.times, "fixture": path,
                "steps": finding.script.steps.len(), "verdict": finding.outcome.verdict.name(),
            }}))?,
            false => show(&text(finding, &path, seed, checkout.as_ref()))?,
        }
    }
    print_summary(&summary, plan.seed, is_json)?;
    ending.end_by_signal();
    Ok(match (summary.divergences, summary.inconclusive) {
        (0, 0) => exit::CONFORMS,
        (0, _) => exit::ENGINE,
        _ => exit::DIVERGES,
    })
}

/// The checkout whose recommender is run, if one is named.
fn checkout(args: &Args) -> Result<Option<Checkout>, Failure> {
    if args.program.is_some() {
        let what = "--program does not apply to the recommender";
        return Err(Failure::usage(what).hint("leave out --program"));
    }
    let checkout = args.release.local.open(args.is_on_model(), false)?;
    match checkout.as_ref().filter(|checkout| !checkout.has_recommender()) {
        None => Ok(checkout),
        Some(other) => {
            let what = format!("--upstream-path {}: it has no recommender", other.path.display());
            Err(Failure::usage(what).hint("name a checkout of kubernetes/autoscaler"))
        }
    }
}

fn print_settings(plan: &RecommenderFuzzPlan, is_json: bool) -> io::Result<()> {
    let RecommenderFuzzPlan { seed, release, .. } = plan;
    let (engine, version) = (plan.source.name(), env!("CARGO_PKG_VERSION"));
    match is_json {
        true => line(&json!({"fuzz": {
            "seed": seed, "release": release.to_string(), "engine": engine,
            "version": version, "areas": ["vpa"],
        }})),
        false => show(&format!(
            "fuzz: seed {seed}, release {release}, engine {engine}, kube-lockstep {version}, \
             areas vpa\n"
        )),
    }
}

fn line(value: &serde_json::Value) -> io::Result<()> {
    unless_closed(json::line(&mut io::stdout(), value))
}

fn text(
    finding: &RecommenderFinding,
    path: &str,
    seed: u64,
    checkout: Option<&Checkout>,
) -> String {
    let local = checkout.map(|checkout| format!(" --upstream-path {}", checkout.path.display()));
    let local = local.unwrap_or_default();
    let setting = Setting { replay_args: Vec::new(), ..Setting::default() };
    let RecommenderFinding { index, times, script, outcome } = finding;
    let changes: usize = script.steps.iter().map(|step| step.changes.len()).sum();
    let text = report::outcome(outcome, &setting, columns()).unwrap_or_default();
    // The replay command of the outcome names no file.
    let lines = text.lines().filter(|line| {
        !["  replay:", "  full derivation"].iter().any(|start| line.contains(start.trim()))
    });
    let text: Vec<&str> = lines.collect();
    format!(
        "{}\n  shrunk to {} with {}; {} of this kind, the first one with index {index} of seed \
         {seed}\n  saved as {path}\n  replay: kube-lockstep run {path} --release {}{local}\n\n",
        text.join("\n"),
        counted(script.steps.len(), "step"),
        counted(changes, "change"),
        counted(*times, "script"),
        outcome.release,
    )
}

fn save(
    args: &Args,
    plan: &RecommenderFuzzPlan,
    finding: &RecommenderFinding,
) -> anyhow::Result<String> {
    let failed = |error: io::Error| not_saved(&args.save, &error);
    std::fs::create_dir_all(&args.save).map_err(failed)?;
    let path = args.save.join(format!("vpa-{}-{}.yaml", plan.seed, finding.index));
    let requirement = format!(
        "Found by `kube-lockstep fuzz --area vpa --seed {}` on {}, script {}.",
        plan.seed, plan.release, finding.index
    );
    let text = script_to_yaml(&finding.script, &requirement, SCHEMA)?;
    std::fs::write(&path, text).map_err(failed)?;
    Ok(path.to_string_lossy().replace('\\', "/"))
}

fn print_summary(summary: &RecommenderFuzzSummary, seed: u64, json: bool) -> io::Result<()> {
    let RecommenderFuzzSummary { scripts, ticks, divergences, inconclusive, .. } = *summary;
    let seconds = summary.elapsed.as_secs_f64();
    if json {
        return line(&json!({"summary": {
            "seed": seed, "scenarios": scripts, "ticks": ticks, "divergences": divergences,
            "inconclusive": inconclusive, "undetermined": summary.undetermined,
            "seconds": seconds,
        }}));
    }
    let rate = if seconds > 0.0 { ticks as f64 / seconds } else { 0.0 };
    show(&format!(
        "{}, {} compared in {seconds:.1} s ({rate:.0} ticks/s): {}, {inconclusive} inconclusive; \
         {} until upstream's result is random; seed {seed}\n",
        counted(scripts, "scenario"),
        counted(ticks, "tick"),
        counted(divergences, "divergence"),
        counted(summary.undetermined, "scenario"),
    ))
}
