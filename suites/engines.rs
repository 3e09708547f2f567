//! The same smoke test for every engine, and what becomes of engines that break.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube_lockstep::engine::model::Model;
use kube_lockstep::engine::recorded::{FOLDER, Recorded, Traces};
use kube_lockstep::engine::upstream::Upstream;
use kube_lockstep::engine::{Engine, Step};
use kube_lockstep::model::rules::Release;
use kube_lockstep::model::time::Time;
use kube_lockstep::run::{Outcome, Verdict, run_one};
use kube_lockstep::scenario::Scenario;
use kube_lockstep::world::World;
use rstest::rstest;

fn a_fixture() -> Arc<Scenario> {
    support::load(&support::repository().join("fixtures/tolerance/upper-edge-is-inclusive.yaml"))
}

fn engine(name: &str) -> Box<dyn Engine> {
    match name {
        "model" => Box::new(Model::new(Release::V1_37)),
        "recorded" => {
            let traces = Traces::Folder(support::repository().join(FOLDER));
            Box::new(Recorded::new(Release::V1_37, traces))
        }
        other => panic!("no engine {other}"),
    }
}

/// Upstream's own smoke test is every test of `suites/live.rs`, where Go is.
#[rstest]
fn every_engine_reconciles_at_the_start_and_again(#[values("model", "recorded")] name: &str) {
    let scenario = a_fixture();
    let mut engine = engine(name);
    assert_eq!(engine.name(), name);
    // Twice: nothing of the first run may be left in the second.
    for _ in 0..2 {
        let mut world = World::new(&scenario);
        let mut session = engine.open(&scenario).expect("it opens");
        let mut apply = world.advance(Time::ZERO);
        apply.extend(world.api_events(Time::ZERO));
        let first = session.step(&Step { apply, until: Time::ZERO }).expect("a step");
        assert_eq!(first.api.len(), 1, "the HPA is stored");
        assert_eq!(first.ticks.len(), 1, "a new HPA is reconciled at once");
        assert_eq!(first.ticks[0].at, Time::ZERO);
        let period = Time::ZERO + scenario.flags.sync_period;
        let second = Step { apply: world.advance(period), until: period };
        let second = session.step(&second).expect("a second step");
        assert_eq!(second.ticks.len(), 1, "and again after the sync period");
        assert_eq!(second.ticks[0].at, period);
        session.close().expect("it closes");
    }
}

/// A program in place of an engine.
struct Fake {
    _folder: tempfile::TempDir,
    program: PathBuf,
}

fn fake(script: &str) -> Fake {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("engine");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it can be run");
    Fake { _folder: folder, program }
}

const HELLO: &str =
    r#"echo '{"hello":{"protocol":1,"engine":"fake","release":"v1.37.0"}}'; read -r line"#;
const OPENED: &str = r#"echo '{"opened":{"epoch":"2000-01-01T00:01:00Z"}}'; read -r line"#;

fn run_on(fake: &Fake, limit: Duration) -> Outcome {
    let mut engine = Upstream::new(fake.program.clone(), Release::V1_37).with_time_limit(limit);
    run_one(&a_fixture(), &mut engine, &[])
}

#[rstest]
#[case::dies_at_once("echo a panic >&2; exit 2", "ended before it answered", "a panic")]
#[case::dies_later("HELLO; OPENED; echo fatal >&2; exit 3", "exit status: 3", "fatal")]
#[case::talks_nonsense("echo hello", "was not understood", "")]
#[case::speaks_another_protocol(
    r#"echo '{"hello":{"protocol":9,"engine":"fake","release":"v1.37.0"}}'; cat >/dev/null"#,
    "speaks protocol 9",
    ""
)]
#[case::is_another_release(
    r#"echo '{"hello":{"protocol":1,"engine":"fake","release":"v1.36.3"}}'; cat >/dev/null"#,
    "it is release v1.36.3, not 1.37",
    ""
)]
#[case::says_that_it_failed(
    r#"HELLO; echo '{"failed":{"why":"no luck"}}'; cat >/dev/null"#,
    "no luck",
    ""
)]
fn an_engine_that_breaks_gives_no_verdict(
    #[case] script: &str,
    #[case] why_part: &str,
    #[case] output_part: &str,
) {
    let script = script.replace("HELLO", HELLO).replace("OPENED", OPENED);
    let outcome = run_on(&fake(&script), Duration::from_secs(20));
    let Verdict::Inconclusive { why, output } = outcome.verdict else {
        panic!("{:?}", outcome.verdict)
    };
    assert!(why.contains(why_part), "{why}");
    assert!(output.contains(output_part), "{output}");
}

/// Whether a process with that mark in its command line is still there.
fn runs(mark: &str) -> bool {
    let output = Command::new("ps").args(["-eo", "args"]).output().expect("ps can be run");
    String::from_utf8_lossy(&output.stdout).contains(mark)
}

#[test]
fn an_engine_that_hangs_is_ended_within_its_time_limit() {
    let fake = fake(&format!("{HELLO}\n{OPENED}\nwhile :; do :; done"));
    let begin = Instant::now();
    let outcome = run_on(&fake, Duration::from_millis(300));
    let Verdict::Inconclusive { why, .. } = outcome.verdict else {
        panic!("{:?}", outcome.verdict)
    };
    assert!(why.contains("did not answer within 0.3 s"), "{why}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    let program = fake.program.to_string_lossy().into_owned();
    assert!(!runs(&program), "{program} is still running");
}

/// A broken scenario must not cost the ones behind it.
#[test]
fn after_a_failure_the_next_scenario_gets_a_new_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = folder.path().join("count");
    let script = format!("echo started >> {}\n{HELLO}\nexit 1", count.display());
    let fake = fake(&script);
    let mut engine = Upstream::new(fake.program.clone(), Release::V1_37);
    for _ in 0..3 {
        let outcome = run_one(&a_fixture(), &mut engine, &[]);
        assert!(matches!(outcome.verdict, Verdict::Inconclusive { .. }));
    }
    assert_eq!(fs::read_to_string(&count).expect("a count").lines().count(), 3);
}
