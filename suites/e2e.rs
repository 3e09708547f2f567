//! Every fixture that fits a wall clock, on real control planes: `cargo test --features e2e`.
//!
//! It runs on the newest release; on others if the environment variable KUBE_LOCKSTEP_E2E_RELEASES
//! says so, and then has to. What does not fit is named as ignored, and the reasons are told.
//!
//! This suite has a `main` of its own, since scenarios are played side by side on one cluster, and
//! since a control plane may first have to be built.

mod support;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use kube_lockstep::engine::{EngineError, embedded};
use kube_lockstep::model::rules::{Release, Releases};
use kube_lockstep::run::{Event, Outcome, SIDE_BY_SIDE, Verdict, run_all};
use libtest_mimic::{Arguments, Failed, Trial};

/// Names releases, in the form of `--release`.
const RELEASES: &str = "KUBE_LOCKSTEP_E2E_RELEASES";

fn say(line: &str) {
    // Nobody reads it: nothing to be done about it.
    drop(writeln!(std::io::stderr(), "e2e: {line}"));
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let named = std::env::var(RELEASES).ok();
    let releases = named.clone().unwrap_or_else(|| Release::newest().to_string());
    let releases = match releases.parse::<Releases>() {
        Ok(releases) => releases,
        Err(error) => {
            say(&format!("{RELEASES}: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let mut trials = Vec::new();
    for release in releases.iter() {
        let built = if arguments.list { Ok(()) } else { build(release) };
        // Who names releases wants them played.
        let missing = named.is_none() && support::is_missing(&built);
        if let Err(error) = &built {
            let becomes = if missing { "all is ignored" } else { "nothing can be played" };
            say(&format!("{release}: {becomes}: {error}"));
        }
        let played = built.and_then(|()| match arguments.list {
            true => Ok(BTreeMap::new()),
            false => play(release, arguments.filter.as_deref()),
        });
        trials.extend(support::fixtures().iter().map(|path| {
            let id = support::id_of(path);
            let outcome = match &played {
                Ok(outcomes) => outcomes.get(&id).cloned().ok_or("it was not played".to_owned()),
                Err(error) => Err(error.to_string()),
            };
            let skipped = matches!(&outcome, Ok(Outcome { verdict: Verdict::Skipped { .. }, .. }));
            let trial = Trial::test(format!("{release}/{id}"), move || verdict(outcome));
            trial.with_ignored_flag((skipped || missing) && !arguments.list)
        }));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn build(release: Release) -> Result<(), EngineError> {
    let mut last = String::new();
    let built = embedded::ensure(release, &AtomicBool::new(false), &mut |what, _| {
        let stage = what.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        if stage != last {
            say(&stage);
            last = stage;
        }
    });
    built.map(drop)
}

/// Plays all fixtures side by side.
fn play(release: Release, only: Option<&str>) -> Result<BTreeMap<String, Outcome>, EngineError> {
    let all = support::fixtures();
    let wanted = |path: &&PathBuf| {
        only.is_none_or(|only| format!("{release}/{}", support::id_of(path)).contains(only))
    };
    let scenarios = all.iter().filter(wanted).map(|path| support::load(path)).collect();
    let plan = support::on_a_control_plane(scenarios, release, SIDE_BY_SIDE);
    if plan.scenarios.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut outcomes = BTreeMap::new();
    let summary = run_all(&plan, &mut |event| {
        if let Event::Finished(outcome) = event {
            outcomes.insert(outcome.id.clone(), *outcome);
        }
    })?;
    say(&format!(
        "{release}: {} conform, {} diverge, {} without a verdict, {} skipped; {} ticks in {:.0} s, \
         {} of them on a boundary in time; {} scenarios were retried",
        summary.conforms,
        summary.diverges,
        summary.inconclusive,
        summary.skipped,
        summary.ticks,
        summary.elapsed.as_secs_f64(),
        summary.boundaries,
        summary.replayed
    ));
    tell_ignored(release, &outcomes);
    Ok(outcomes)
}

/// Says of all that does not fit why not, each reason once.
fn tell_ignored(release: Release, outcomes: &BTreeMap<String, Outcome>) {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (id, outcome) in outcomes {
        if let Verdict::Skipped { why } = &outcome.verdict {
            reasons.entry(why).or_default().push(id);
        }
    }
    for (why, ids) in reasons {
        match *ids {
            [id] => say(&format!("{release}: ignored: {id}: {why}")),
            _ => say(&format!("{release}: {} ignored: {why}", ids.len())),
        }
    }
}

fn verdict(outcome: Result<Outcome, String>) -> Result<(), Failed> {
    let outcome = outcome?;
    match outcome.verdict {
        Verdict::Conforms => Ok(()),
        verdict => Err(format!("{verdict:#?}").into()),
    }
}
