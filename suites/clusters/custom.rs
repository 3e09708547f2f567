//! Custom HPA controllers on a real control plane.
//!
//! Each omission of `examples/naive.rs` must diverge in the fixtures about it. The upstream
//! controller, started like a custom one, must conform. A controller that does nothing, exits or
//! does not terminate is inconclusive and leaves nothing behind.

use crate::support;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::place::{Workspace, signal};
use crate::support::trials::Suite;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::custom::Controller;
use kube_lockstep_engines::plan::{Compared, CustomController};
use kube_lockstep_report as report;
use kube_lockstep_sim::run::{Outcome, Setting, Verdict};
use libtest_mimic::Failed;

/// Fixtures in which only the ratio and the limits matter: a naive controller conforms.
const CONFORM: [&str; 6] = [
    "average-value/memory-scales-in-bytes",
    "limits/a-manual-scale-up-above-the-maximum-is-undone",
    "limits/a-maximum-of-twice-the-replicas-is-the-reported-limit",
    "tolerance/memory-exactly-on-target-stays",
    "utilization/half-the-target-halves-the-replicas",
    "utilization/memory-of-the-request",
];

/// Fixtures about a feature that the naive controller lacks, with the tick and the replicas that
/// reveal it. The model does not scale at this tick.
const DIVERGE: [(&str, usize, &str); 7] = [
    // No tolerance.
    ("tolerance/upper-edge-is-inclusive", 1, "11"),
    ("tolerance/utilization-is-truncated-before-the-ratio", 1, "12"),
    // No stabilization windows.
    ("stabilization/downscale-window-holds-the-highest", 1, "6"),
    ("stabilization/the-window-is-not-a-cool-down", 2, "9"),
    ("stabilization/up-window-waits-a-minute", 1, "8"),
    // No scaling policies.
    ("behavior/docs-disable-scale-down", 1, "1"),
    // No handling of pods that are not ready yet.
    ("tolerance/just-above-the-upper-edge-scales-up", 2, "14"),
];

fn all_fixtures() -> Vec<&'static str> {
    CONFORM.into_iter().chain(DIVERGE.map(|(id, ..)| id)).collect()
}

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    // Each test has a control plane and runs in real time.
    let program = suite.control_plane(Release::NEWEST);
    for (name, test) in TESTS {
        suite.test_with(&program, name, test);
    }
}

type Test = fn(PathBuf) -> Result<(), Failed>;

const TESTS: [(&str, Test); 6] = [
    ("a_naive_controller_diverges", naive),
    ("the_status_of_a_naive_controller_is_compared_on_request", naive_status),
    ("the_upstream_controller_conforms_as_a_custom_controller", upstream_controller),
    ("a_controller_that_does_nothing_is_inconclusive", idle),
    ("a_controller_that_exits_is_inconclusive_and_quoted", exits),
    ("a_controller_that_ignores_sigterm_is_killed", ignores_sigterm),
];

fn naive_command() -> Result<String, Failed> {
    let build = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--quiet", "--features", "e2e", "--example", "naive"])
        .current_dir(support::repository())
        .status()?;
    assert!(build.success(), "the example does not compile");
    // Cargo puts examples beside the programs of the tests.
    let program = PathBuf::from(env!("CARGO_BIN_EXE_kube-lockstep"));
    let program = program.with_file_name("examples").join("naive");
    Ok(format!("{} --sync-period {{sync-period}}", program.display()))
}

/// Runs fixtures, and returns their outcomes.
fn run_fixtures(
    ids: &[&str],
    controller: CustomController,
) -> Result<BTreeMap<String, Outcome>, Failed> {
    let path = |id: &&str| support::repository().join(format!("fixtures/{id}.yaml"));
    let scenarios = ids.iter().map(path).map(|path| support::load(&path)).collect();
    let mut plan = support::on_a_control_plane(scenarios, Release::NEWEST, 8);
    plan.cluster.controller = Some(controller);
    Ok(support::outcomes(&plan)?.0)
}

fn custom_controller(command: &str, compared: Compared) -> Result<CustomController, Failed> {
    Ok(CustomController::new(Controller::new(command)?, compared))
}

fn naive(_: PathBuf) -> Result<(), Failed> {
    let outcomes =
        run_fixtures(&all_fixtures(), custom_controller(&naive_command()?, Compared::Scale)?)?;
    let mut wrong = Vec::new();
    for id in CONFORM {
        let verdict = &outcomes[id].verdict;
        if *verdict != Verdict::Conforms {
            wrong.push(format!("{id} should conform: {verdict:#?}"));
        }
    }
    let field = "scale.spec.replicas[0]";
    for (id, tick, seen) in DIVERGE {
        let outcome = &outcomes[id];
        let first = match &outcome.verdict {
            Verdict::Diverges(divergence) if divergence.tick == tick => &divergence.fields[0],
            verdict => {
                wrong.push(format!("{id} should diverge at tick {tick}: {verdict:#?}"));
                continue;
            }
        };
        if (&*first.field.to_string(), &*first.model, &*first.upstream) != (field, "(none)", seen) {
            wrong.push(format!("{id} should diverge by {field}: {first:#?}"));
        }
        // The report for people.
        let text = report::outcome(outcome, &Setting::default(), 100).unwrap_or_default();
        let text = anstream::adapter::strip_str(&text).to_string();
        let expected = [
            format!("diverges  {id}   v{}   model | embedded + naive", Release::NEWEST),
            format!("{field}:  model (none) | embedded + naive {seen}"),
            "why the model said (none): ".to_owned(),
            "embedded + naive did:".to_owned(),
            format!("→ {seen}"),
        ];
        for part in expected.iter().filter(|part| !text.contains(*part)) {
            wrong.push(format!("the report of {id} does not say {part:?}:\n{text}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// The naive controller scales up correctly, but its status has no conditions.
fn naive_status(_: PathBuf) -> Result<(), Failed> {
    let [id, ..] = CONFORM;
    let outcomes = run_fixtures(&[id], custom_controller(&naive_command()?, Compared::Status)?)?;
    let Verdict::Diverges(divergence) = &outcomes[id].verdict else {
        return Err(format!("{:#?}", outcomes[id].verdict).into());
    };
    let fields: Vec<String> = divergence.fields.iter().map(|it| it.field.to_string()).collect();
    let contains = |name: &str| fields.iter().any(|it| it == name);
    assert!(contains("status.conditions"), "{fields:?}");
    assert!(contains("status.lastScaleTime"), "{fields:?}");
    assert!(!contains("status.desiredReplicas"), "{fields:?}");
    assert!(!fields.iter().any(|it| it.starts_with("scale") || it.starts_with("reads")));
    Ok(())
}

/// The controller manager of the control plane, as a custom controller. It exits at the end of its
/// input.
fn upstream_controller(program: PathBuf) -> Result<(), Failed> {
    let flags = ["sync-period", "downscale-stabilization", "tolerance"]
        .map(|flag| format!("--horizontal-pod-autoscaler-{flag}={{{flag}}}"));
    let command = format!(
        "sleep 1000 | {} kube-controller-manager --kubeconfig={{kubeconfig}} \
         --controllers=horizontal-pod-autoscaler-controller --leader-elect=false --secure-port=0 \
         --concurrent-horizontal-pod-autoscaler-syncs=20 {}",
        program.display(),
        flags.join(" ")
    );
    for compared in [Compared::Scale, Compared::Status, Compared::All] {
        let outcomes = run_fixtures(&all_fixtures(), custom_controller(&command, compared)?)?;
        let wrong = outcomes.values().filter(|it| it.verdict != Verdict::Conforms);
        let wrong: Vec<String> =
            wrong.map(|it| format!("{} ({compared:?}): {:#?}", it.id, it.verdict)).collect();
        if !wrong.is_empty() {
            return Err(wrong.join("\n").into());
        }
    }
    Ok(())
}

/// Runs one fixture with the command.
fn run(workspace: &Workspace, command: &str) -> Result<(Option<i32>, String), Failed> {
    let [id, ..] = CONFORM;
    let args = ["run", "--engine", "embedded", "--controller", command, id];
    let Output { status, stdout, stderr } =
        workspace.command(&args).current_dir(support::repository()).output()?;
    let printed = [stdout, stderr].concat();
    workspace.wait_until_empty()?;
    Ok((
        status.code(),
        String::from_utf8_lossy(&printed).split_whitespace().collect::<Vec<_>>().join(" "),
    ))
}

fn idle(_: PathBuf) -> Result<(), Failed> {
    let (code, printed) = run(&Workspace::new()?, "echo waiting for better times; sleep 1000")?;
    assert_eq!(code, Some(3), "{printed}");
    for part in [
        "on embedded + echo",
        "echo did not act on the HPA, which it should reconcile every 1s ({sync-period}",
        "| waiting for better times",
        "replay: kube-lockstep run average-value/memory-scales-in-bytes",
        "--engine embedded --controller 'echo waiting for better times; sleep 1000'",
    ] {
        assert!(printed.contains(part), "missing: {part}\n{printed}");
    }
    Ok(())
}

fn exits(_: PathBuf) -> Result<(), Failed> {
    let (code, printed) = run(&Workspace::new()?, "echo out of luck >&2; exit 7")?;
    assert_eq!(code, Some(3), "{printed}");
    for part in ["echo has exited (exit status: 7)", "| out of luck", "1 inconclusive"] {
        assert!(printed.contains(part), "missing: {part}\n{printed}");
    }
    Ok(())
}

/// The controller is killed when its run ends, and when the run is killed.
fn ignores_sigterm(_: PathBuf) -> Result<(), Failed> {
    let workspace = Workspace::new()?;
    // The controller ignores SIGTERM and starts a child process.
    let command = "trap '' TERM; (sleep 1000; : {kubeconfig}) & while :; do sleep 1; done";
    let (code, printed) = run(&workspace, command)?;
    assert_eq!(code, Some(3), "{printed}");
    let [id, ..] = CONFORM;
    let args = ["run", "--engine", "embedded", "--controller", command, id];
    let mut owner = workspace.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let begin = Instant::now();
    let pid = owner.id().to_string();
    while !workspace.processes().iter().any(|it| it.pid != pid && it.line.contains("trap ")) {
        assert!(begin.elapsed() < Duration::from_secs(60), "the controller does not start");
        sleep(Duration::from_millis(50));
    }
    signal("-9", &pid);
    owner.wait()?;
    workspace.wait_until_empty()?;
    Ok(())
}
