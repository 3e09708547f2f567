//! The same smoke test for every engine, and the handling of failing engines.
//!
//! Without Go, the tests that require it are reported as ignored.

use crate::support;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::trials::Suite;
use kube_autoscaler_models::rules::Release;
use kube_autoscaler_models::time::Time;
use kube_lockstep_engines::recorded::{FOLDER, Recorded, Traces};
use kube_lockstep_engines::upstream::{Upstream, build};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::engine::model::Model;
use kube_lockstep_sim::engine::{Engine, Step};
use kube_lockstep_sim::run::{Outcome, Verdict, run_one};
use kube_lockstep_sim::world::World;
use libtest_mimic::Failed;

fn a_fixture() -> Arc<Scenario> {
    support::load(&support::repository().join("fixtures/tolerance/upper-edge-is-inclusive.yaml"))
}

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    let (newest, traces) = (Release::NEWEST, support::repository().join(FOLDER));
    suite.test("model_reconciles_at_the_start_and_again", move || smoke(&mut Model::new(newest)));
    suite.test("recorded_reconciles_at_the_start_and_again", move || {
        smoke(&mut Recorded::new(newest, Traces::Folder(traces)))
    });
    let upstream = suite.upstream(newest);
    suite.test_with(&upstream, "upstream_reconciles_at_the_start_and_again", move |program| {
        smoke(&mut Upstream::new(program, newest))
    });
    let name = "upstream_meets_the_expectations_of_the_fixtures_without_a_model";
    suite.test_with(&upstream, name, move |program| {
        meets_expectations(Upstream::new(program, newest).without_model())
    });
    for case in FAILING_ENGINES {
        suite.test(format!("an_engine_that_{}_is_inconclusive", case.name), || {
            is_inconclusive(case)
        });
    }
    let go = suite.require(|| build::find_go(&mut |_| {}).map(drop));
    suite.test_with(&go, "a_go_program_that_panics_is_inconclusive", panics);
    suite.test("an_engine_that_hangs_is_killed_after_its_time_limit", hangs);
    suite.test("an_engine_that_logs_without_end_is_killed_after_its_time_limit", logs_without_end);
    suite.test_with(&upstream, "an_engine_may_log_without_end", may_log);
    suite.test_with(&upstream, "upstream_confirms_each_change_between_two_releases", |_| {
        confirms_each_change()
    });
    suite.test_with(&upstream, "upstream_confirms_the_best_setting_of_the_example", |_| {
        confirms_the_best_setting()
    });
    suite.test_with(&upstream, "upstream_confirms_the_counterexamples_of_searches", |_| {
        confirms_counterexamples()
    });
    suite.test("the_children_of_an_engine_that_exits_are_killed", leaves_a_child);
    suite.test("a_new_process_is_started_after_a_failure", a_new_process);
    suite.test("a_scenario_that_an_engine_does_not_support_is_skipped", skips_unsupported);
    suite.test("an_engine_receives_steps_before_its_answers_are_awaited", receives_steps_early);
}

/// The smoke test of the built-in engines.
fn smoke(engine: &mut dyn Engine) -> Result<(), Failed> {
    let scenario = a_fixture();
    // Twice: no state of the first run may affect the second.
    for _ in 0..2 {
        let mut world = World::new(&scenario);
        let mut session = engine.open(&scenario)?;
        let mut apply = world.advance(Time::ZERO);
        apply.extend(world.api_events(Time::ZERO));
        let first = session.step(&Step { apply, ..Step::default() })?;
        assert_eq!(first.api.len(), 1, "the HPA is stored");
        assert_eq!(first.ticks.len(), 1, "a new HPA is reconciled immediately");
        assert_eq!(first.ticks[0].at, Time::ZERO);
        let period = Time::ZERO + scenario.flags.sync_period;
        let second = Step { apply: world.advance(period), until: period, ..Step::default() };
        let second = session.step(&second)?;
        assert_eq!(second.ticks.len(), 1, "the HPA is reconciled again after the sync period");
        assert_eq!(second.ticks[0].at, period);
        session.close()?;
    }
    Ok(())
}

/// Without a model, a reconcile consists of the actions in one step. These fixtures expect something
/// of a reconcile that takes longer.
const LONG_RECONCILES: [&str; 2] = [
    "errors/a-conflict-on-the-scale-is-tried-five-times",
    "restart/the-resync-counts-from-the-restart",
];

/// Runs all fixtures on a controller without a model. The timing of the steps differs from that of a
/// run with the model.
fn meets_expectations(mut engine: Upstream) -> Result<(), Failed> {
    let (mut met, mut wrong) = (0, Vec::new());
    for path in support::fixtures() {
        let outcome = run_one(&support::load(&path), &mut engine, &[]);
        match &outcome.verdict {
            Verdict::Conforms => met += 1,
            Verdict::Skipped { .. } => {}
            Verdict::Unmet if LONG_RECONCILES.contains(&&*outcome.id) => {}
            verdict => wrong.push(format!("{}: {verdict:?} {:?}", outcome.id, outcome.unmet)),
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert!(met > 250, "only {met} fixtures have expectations for this release");
    Ok(())
}

/// A program that replaces an engine.
struct Fake {
    _folder: tempfile::TempDir,
    program: PathBuf,
}

fn fake(script: &str) -> Fake {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("engine");
    support::write_program(&program, &format!("#!/bin/sh\n{script}\n")).expect("a program");
    Fake { _folder: folder, program }
}

fn skips_unsupported() -> Result<(), Failed> {
    let script = r#"HELLO; OPENED; echo '{"failed":{"why":"no luck","unsupported":true}}'; cat"#;
    let fake = fake(&script.replace("HELLO", HELLO).replace("OPENED", OPENED));
    match run_on(&fake, Duration::from_secs(60)).verdict {
        Verdict::Skipped { why } if why.to_string() == "no luck" => Ok(()),
        verdict => Err(format!("{verdict:?}").into()),
    }
}

const HELLO: &str =
    r#"echo '{"hello":{"protocol":2,"engine":"fake","release":"v1.37.0"}}'; read -r line"#;
const OPENED: &str = r#"echo '{"opened":{"epoch":"2000-01-01T00:01:00Z"}}'; read -r line"#;

fn run_on(fake: &Fake, limit: Duration) -> Outcome {
    let mut engine = Upstream::new(fake.program.clone(), Release::NEWEST).with_time_limit(limit);
    run_one(&a_fixture(), &mut engine, &[])
}

/// A failing program: its script, and parts of the message and of its output.
struct FailingEngine {
    name: &'static str,
    script: &'static str,
    why: &'static str,
    output: &'static str,
}

const FAILING_ENGINES: &[FailingEngine] = &[
    FailingEngine {
        name: "exits_immediately",
        script: "echo a panic >&2; exit 2",
        why: "exited before it answered",
        output: "a panic",
    },
    FailingEngine {
        name: "exits_later",
        script: "HELLO; OPENED; echo fatal >&2; exit 3",
        why: "exit status: 3",
        output: "fatal",
    },
    FailingEngine {
        name: "writes_invalid_json",
        script: "echo hello",
        why: "could not be parsed",
        output: "",
    },
    FailingEngine {
        name: "uses_another_protocol_version",
        script: r#"echo '{"hello":{"protocol":9,"engine":"fake","release":"v1.37.0"}}'; cat >/dev/null"#,
        why: "uses protocol version 9",
        output: "",
    },
    FailingEngine {
        name: "has_another_release",
        script: r#"echo '{"hello":{"protocol":2,"engine":"fake","release":"v1.36.3"}}'; cat >/dev/null"#,
        why: "it is release v1.36.3, not 1.37",
        output: "",
    },
    FailingEngine {
        name: "reports_a_failure",
        script: r#"HELLO; echo '{"failed":{"why":"no luck"}}'; cat >/dev/null"#,
        why: "no luck",
        output: "",
    },
    FailingEngine {
        name: "reports_a_failure_of_megabytes",
        script: r#"HELLO; printf '{"failed":{"why":"no luck: '; XS; echo ' at last"}}'; cat"#,
        why: "no luck: x",
        output: "",
    },
    FailingEngine {
        name: "has_the_end_of_a_failure_of_megabytes",
        script: r#"HELLO; printf '{"failed":{"why":"'; XS; echo ' at last"}}'; cat >/dev/null"#,
        why: "x at last",
        output: "",
    },
    FailingEngine {
        name: "sends_an_unknown_answer_of_megabytes",
        script: r#"HELLO; printf '{"'; XS; echo '":{}}'; cat >/dev/null"#,
        why: "bytes omitted: ",
        output: "",
    },
    FailingEngine {
        name: "answers_without_end",
        script: "HELLO; OPENED; tr '\\0' x < /dev/zero",
        why: "an answer is longer than 16 MiB",
        output: "",
    },
    FailingEngine {
        name: "ends_a_step_at_another_time",
        script: r#"HELLO; OPENED; echo '{"stepped":{"now":7,"api":[API]}}'; cat >/dev/null"#,
        why: "it ended a step at 0.000000007s, not at 0s",
        output: "",
    },
    FailingEngine {
        name: "omits_the_answer_of_the_api_server",
        script: r#"HELLO; OPENED; echo '{"stepped":{"now":0}}'; cat >/dev/null"#,
        why: "it returned 0 `api` answers to a step with 1 changes to HPAs",
        output: "",
    },
    FailingEngine {
        name: "acts_after_the_end_of_a_step",
        script: r#"HELLO; OPENED; echo '{"stepped":{"now":0,"api":[API],"log":[LATE]}}'; cat >/dev/null"#,
        why: "it ended a step at 0s, with the entry error at 1s",
        output: "",
    },
    FailingEngine {
        name: "acts_before_the_begin_of_a_step",
        script: r#"HELLO; OPENED; echo '{"stepped":{"now":0,"api":[API],"log":[EARLY]}}'; cat >/dev/null"#,
        why: "the times of its log are not in order: the entry error at -0.000000005s follows 0s",
        output: "",
    },
    FailingEngine {
        name: "hides_an_action_behind_another",
        script: r#"HELLO; OPENED; echo '{"stepped":{"now":0,"api":[API],"log":[TWO]}}'; cat >/dev/null"#,
        why: "a log entry has two actions, `error` and `updateScale`",
        output: "",
    },
    FailingEngine {
        name: "sends_numbers_of_megabytes",
        script: r#"HELLO; OPENED; printf %s '{"stepped":{"now":0,"api":[HUGE]}}'; cat >/dev/null"#,
        why: "a quantity of more than 4000 digits",
        output: "",
    },
];

const API: &str = r#"{"deleted":{"name":"web"}}"#;
const LATE: &str = r#"{"at":1000000000,"error":{"message":"late"}}"#;
const EARLY: &str = r#"{"at":-5,"error":{"message":"early"}}"#;
const TWO: &str = r#"{"at":0,"error":{"message":"no"},"updateScale":{"replicas":9}}"#;
/// A stored HPA with a target of millions of digits.
const HUGE: &str = concat!(
    r#"{"stored":{"name":"web","generation":1,"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","#,
    r#""kind":"Deployment","name":"web"},"maxReplicas":9,"metrics":[{"type":"Resource","#,
    r#""resource":{"name":"cpu","target":{"type":"AverageValue","averageValue":""#,
    r#"'; head -c 3000000 /dev/zero | tr '\0' 9; echo '"}}}]}}}"#,
);

/// Writes three million letters.
const XS: &str = r"head -c 3000000 /dev/zero | tr '\0' x";

fn is_inconclusive(case: &FailingEngine) -> Result<(), Failed> {
    let words = [
        ("HELLO", HELLO),
        ("OPENED", OPENED),
        ("API", API),
        ("LATE", LATE),
        ("EARLY", EARLY),
        ("TWO", TWO),
        ("HUGE", HUGE),
        ("XS", XS),
    ];
    let script =
        words.iter().fold(case.script.to_owned(), |it, (name, text)| it.replace(name, text));
    let outcome = run_on(&fake(&script), Duration::from_secs(20));
    let (why, output) = no_verdict(outcome)?;
    assert!(why.contains(case.why), "{why}");
    assert!(output.contains(case.output), "{output}");
    assert!(why.len() < 4000 && output.len() < 10_000, "{} and {}", why.len(), output.len());
    Ok(())
}

fn no_verdict(outcome: Outcome) -> Result<(String, String), Failed> {
    match outcome.verdict {
        Verdict::Inconclusive { why, output } => Ok((why, output)),
        verdict => Err(format!("{verdict:?}").into()),
    }
}

/// Go's message for a panic contains its location.
fn panics((): ()) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let source = folder.path().join("panics.go");
    fs::write(&source, include_str!("engines/panics.go"))?;
    let built = Command::new("go")
        .args(["build", "-o", "engine", "panics.go"])
        .current_dir(folder.path())
        .envs([("GOWORK", "off"), ("GOFLAGS", ""), ("CGO_ENABLED", "0")])
        .output()?;
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut engine = Upstream::new(folder.path().join("engine"), Release::NEWEST);
    let (why, output) = no_verdict(run_one(&a_fixture(), &mut engine, &[]))?;
    assert!(why.contains("it exited before it answered (exit status: 2)"), "{why}");
    for part in ["panic: assignment to entry in nil map", "main.reconcile", "panics.go:"] {
        assert!(output.contains(part), "{part}: {output}");
    }
    Ok(())
}

/// Returns true if the command line of a running process contains `mark`.
fn is_running(mark: &str) -> bool {
    let output = Command::new("ps").args(["-eo", "args"]).output().expect("ps can be run");
    String::from_utf8_lossy(&output.stdout).contains(mark)
}

fn hangs() -> Result<(), Failed> {
    let fake = fake(&format!("{HELLO}\n{OPENED}\nwhile :; do :; done"));
    let begin = Instant::now();
    let outcome = run_on(&fake, Duration::from_millis(300));
    let (why, _) = no_verdict(outcome)?;
    assert!(why.contains("did not answer within 0.3 s"), "{why}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    let program = fake.program.to_string_lossy().into_owned();
    assert!(!is_running(&program), "{program} is still running");
    Ok(())
}

/// An engine that writes to standard error without end fills neither the memory nor the disk: the
/// size of the files that it may write is limited.
fn logs_without_end() -> Result<(), Failed> {
    let flood = "ulimit -f 2048; echo the first >&2; yes 'the next' | head -n 5000000 >&2";
    let fake = fake(&format!("{HELLO}\n{flood}; echo the last >&2\nwhile :; do sleep 1; done"));
    let outcome = run_on(&fake, Duration::from_secs(10));
    let (why, output) = no_verdict(outcome)?;
    assert!(why.contains("did not answer within 10 s"), "{why}");
    assert!(output.starts_with("the first\nthe next\n"), "{output}");
    assert!(output.ends_with("the next\nthe last\n"), "{output}");
    assert!(output.contains("… (bytes omitted: 4"), "{output}");
    assert!(output.len() < 10_000, "{}", output.len());
    Ok(())
}

/// An engine is not stopped because of its standard error.
fn may_log(engine: PathBuf) -> Result<(), Failed> {
    let fake = fake(&format!("yes message >&2 &\nexec '{}'", engine.display()));
    match run_on(&fake, Duration::from_secs(60)).verdict {
        Verdict::Conforms => Ok(()),
        verdict => Err(format!("{verdict:?}").into()),
    }
}

/// An HPA with the API version that all releases serve.
const PLAIN: &str = "\
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: plain}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: plain}
  minReplicas: 2
  maxReplicas: 20
  targetCPUUtilizationPercentage: 80
";

/// `upgrade` finds many changes between the oldest and the newest release, and both upstream
/// controllers do what the model predicts for each of them.
fn confirms_each_change() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let manifest = folder.path().join("plain.yaml");
    fs::write(&manifest, PLAIN)?;
    let output = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"))
        .current_dir(support::repository())
        .args(["upgrade", "--from", "1.6", "--to", "1.37", "--ticks", "40000", "--format", "json"])
        .arg("-f")
        .arg(&manifest)
        .output()?;
    let lines = String::from_utf8(output.stdout)?;
    let lines: Vec<serde_json::Value> =
        lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let changes = lines.iter().filter_map(|line| line.get("change"));
    let changes: Vec<&serde_json::Value> = changes.collect();
    assert!(changes.len() > 20, "{} changes", changes.len());
    for change in changes {
        assert_eq!(change["confirmed"], true, "{change}");
    }
    Ok(())
}

/// `tune` finds a setting that costs less and lacks fewer pods than the current one, and the
/// upstream controller does what the model predicts.
fn confirms_the_best_setting() -> Result<(), Failed> {
    let load = "cpu=total:prometheus(examples/shop/tuesday.json,container=checkout)";
    let window = "spec.behavior.scaleDown.stabilizationWindowSeconds=60,300";
    let output = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"))
        .current_dir(support::repository())
        .args(["tune", "-f", "examples/shop", "--hpa", "checkout", "--load", load])
        .args(["--capacity", "cpu=85%", "--vary", window, "--format", "json"])
        .output()?;
    let line: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(line["confirmed"], true, "{}", String::from_utf8_lossy(&output.stderr));
    let figure = |setting: &str, name: &str| line[setting][name].as_f64();
    assert!(figure("best", "podHours") < figure("current", "podHours"), "{line}");
    assert!(figure("best", "missingPodHours") < figure("current", "missingPodHours"), "{line}");
    assert!(output.status.success(), "{}", output.status);
    Ok(())
}

/// `check` finds a counterexample in each of the fixtures for it, except the one whose expectation
/// always holds, and the upstream controller does what the model predicts.
fn confirms_counterexamples() -> Result<(), Failed> {
    let output = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"))
        .current_dir(support::repository())
        .args(["check", "search", "--format", "json"])
        .output()?;
    let lines = String::from_utf8(output.stdout)?;
    let mut outcomes = Vec::new();
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line)?;
        let of = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let is_found = line["outcome"] == "counterexample";
        assert_eq!(line["confirmed"].as_bool(), is_found.then_some(true), "{line}");
        outcomes.push(format!("{}: {}", of("scenario"), of("outcome")));
    }
    assert_eq!(
        outcomes,
        [
            "search/a-window-prevents-reversals: alwaysHolds",
            "search/rollouts-ratchet-upwards: counterexample",
            "search/two-hpas-fight: counterexample",
            "search/two-metrics-oscillate: counterexample",
        ]
    );
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// A program that exits may leave children that hold its output open. Its exit is noticed before
/// the timeout.
fn leaves_a_child() -> Result<(), Failed> {
    // No other run of this suite has the same child.
    let child = format!("sleep {}", 1_000_000 + std::process::id());
    let fake = fake(&format!("{HELLO}\n{OPENED}\n{child} & exit 4"));
    let begin = Instant::now();
    let (why, _) = no_verdict(run_on(&fake, Duration::from_secs(60)))?;
    assert!(why.contains("it exited before it answered (exit status: 4)"), "{why}");
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    assert!(!is_running(&child), "a child is still running");
    Ok(())
}

/// The engine works while the next steps are predicted.
fn receives_steps_early() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let received = folder.path().join("received");
    let write = format!("echo \"$line\" >'{}'; cat >/dev/null", received.display());
    let fake = fake(&format!("{HELLO}\n{OPENED}\n{write}"));
    let mut engine = Upstream::new(fake.program.clone(), Release::NEWEST);
    let mut session = engine.open(&a_fixture())?;
    for seconds in 0..500 {
        session.send(&Step { until: Time::from_secs(seconds), ..Step::default() })?;
    }
    let begin = Instant::now();
    while !received.exists() {
        assert!(begin.elapsed() < Duration::from_secs(20), "no step was received");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// A failure in one scenario must not affect the next ones.
fn a_new_process() -> Result<(), Failed> {
    let folder = tempfile::tempdir().expect("a folder");
    let count = folder.path().join("count");
    let script = format!("echo started >> {}\n{HELLO}\nexit 1", count.display());
    let fake = fake(&script);
    let mut engine = Upstream::new(fake.program.clone(), Release::NEWEST);
    for _ in 0..3 {
        let outcome = run_one(&a_fixture(), &mut engine, &[]);
        no_verdict(outcome)?;
    }
    assert_eq!(fs::read_to_string(&count).expect("a count").lines().count(), 3);
    Ok(())
}
