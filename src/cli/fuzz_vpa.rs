//! `kube-lockstep fuzz --area vpa`.

use tokio_util::sync::CancellationToken;

use super::args::workers;
use super::doctor::check_writable;
use super::failure::Failure;
use super::fuzz::{Args, INTERRUPTED, Progress, Results, not_saved, random_seed};
use super::output::PreparationLog;
use super::{exit, interrupt};
use kube_lockstep_engines::source::{EngineFactory, EngineSource};
use kube_lockstep_engines::upstream::checkout::Checkout;
use kube_lockstep_fuzz::fuzzing::RunLimit;
use kube_lockstep_fuzz::recommender_fuzzing::{RecommenderFuzzPlan, fuzz_recommender};
use kube_lockstep_fuzz::report::FuzzSetting;
use kube_lockstep_scenario::vpa::script_to_yaml;
use kube_lockstep_sim::engine::Vpa;
use kube_lockstep_sim::run::{Setting, Shard};

/// The schema, relative to a folder beside the repository's other folders.
const SCHEMA: &str = "../schema/scenario.schema.json";

/// Runs generated scripts on the recommender.
pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let checkout = checkout(args)?;
    let release = args.release.vpa_release(checkout.as_ref())?;
    let stop = CancellationToken::new();
    let source = match &checkout {
        _ if args.is_on_model() => EngineSource::Model,
        None => EngineSource::Upstream,
        Some(checkout) => EngineSource::Checkout(checkout.clone()),
    };
    let mut preparing = PreparationLog::default();
    let limits = args.release.local.build.limits(&stop);
    let mut progress = |what: &str, done| preparing.log(what, done);
    let engine: EngineFactory<Vpa> =
        source.prepare(release, &limits, &mut progress).map_err(Failure::from)?;
    let ticks = args.ticks.unwrap_or(100_000) as usize;
    let seed = args.seed.unwrap_or_else(random_seed);
    let limit = args.time.map_or(RunLimit::Ticks(ticks), RunLimit::Time);
    let plan = RecommenderFuzzPlan {
        shard: args.part.shard.unwrap_or(Shard::WHOLE),
        jobs: workers(args.jobs),
        stop,
        ..RecommenderFuzzPlan::new(seed, limit, release)
    };
    let setting = FuzzSetting {
        setting: Setting {
            engine: engine.name().clone(),
            release: release.to_string(),
            checkout: checkout.map(|checkout| checkout.path),
            shard: args.part.shard,
            ..Setting::default()
        },
        seed: plan.seed,
        version: env!("CARGO_PKG_VERSION"),
        areas: vec!["vpa".to_owned()],
        jobs: plan.jobs,
    };
    check_writable(&args.save).map_err(|error| not_saved(&args.save, &error))?;
    let ending = interrupt::Ending::listen(&plan.stop, INTERRUPTED)?;
    let results = Results { setting: &setting, folder: &args.save, format: args.format };
    results.begin()?;
    let mut progress = Progress::new();
    let (summary, findings) = fuzz_recommender(&plan, &|| engine.make(), &mut |summary| {
        progress.update(summary.scenarios, summary.ticks, summary.elapsed);
    });
    progress.clear();
    for found in &findings {
        let name = format!("vpa-{}-{}.yaml", plan.seed, found.index);
        results.finding(found, &name, |_| {
            let requirement = format!(
                "Found by `kube-lockstep fuzz --area vpa --seed {}` on {release}: scenario {}.",
                plan.seed, found.index
            );
            Ok(script_to_yaml(&found.scenario, &requirement, SCHEMA)?)
        })?;
    }
    results.end(&summary)?;
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
