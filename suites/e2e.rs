//! Every fixture that fits a wall clock, on real control planes: `cargo test --features e2e`.
//!
//! It runs on the newest release; on others if the environment variable KUBE_LOCKSTEP_E2E_RELEASES
//! says so. What does not fit is named as ignored, with the reason. Besides, that nothing is left of
//! a control plane, however its owner ends.
//!
//! This suite has a `main` of its own, since scenarios are played side by side on one cluster, and
//! since a control plane may first have to be built.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use kube_lockstep::engine::recorded::Traces;
use kube_lockstep::engine::upstream::TIME_LIMIT;
use kube_lockstep::engine::{EngineError, embedded};
use kube_lockstep::model::rules::{Release, Releases};
use kube_lockstep::run::{EngineChoice, Event, Outcome, Pace, Plan, Verdict, run_all};
use libtest_mimic::{Arguments, Failed, Trial};

/// Names releases, in the form of `--release`.
const RELEASES: &str = "KUBE_LOCKSTEP_E2E_RELEASES";

/// How often a control plane's owner is killed, each time at another moment of its start.
const KILLS: u64 = 50;

/// How long it may take until nothing is left of it.
const GONE_LIMIT: Duration = Duration::from_secs(15);

fn say(line: &str) {
    // Nobody reads it: nothing to be done about it.
    drop(writeln!(std::io::stderr(), "e2e: {line}"));
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let releases = std::env::var(RELEASES).unwrap_or_else(|_| Release::newest().to_string());
    let releases = match releases.parse::<Releases>() {
        Ok(releases) => releases,
        Err(error) => {
            say(&format!("{RELEASES}: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let built = if arguments.list { Ok(()) } else { build(&releases) };
    let missing = support::is_missing(&built);
    if let Err(error) = &built {
        say(&format!("what needs a control plane is ignored: {error}"));
    }
    let mut trials = Vec::new();
    for release in releases.iter() {
        let played = match (&built, arguments.list) {
            (Ok(()), false) => play(release, arguments.filter.as_deref()),
            _ => Ok(BTreeMap::new()),
        };
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
    for (name, test) in LEAKS {
        trials.push(Trial::test(name, test).with_ignored_flag(missing));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn build(releases: &Releases) -> Result<(), EngineError> {
    let mut last = String::new();
    for release in releases.iter() {
        embedded::ensure(release, &AtomicBool::new(false), &mut |what, _| {
            let stage = what.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
            if stage != last {
                say(&stage);
                last = stage;
            }
        })?;
    }
    Ok(())
}

/// Plays all fixtures side by side.
fn play(release: Release, only: Option<&str>) -> Result<BTreeMap<String, Outcome>, EngineError> {
    let all = support::fixtures();
    let wanted = |path: &&PathBuf| {
        only.is_none_or(|only| format!("{release}/{}", support::id_of(path)).contains(only))
    };
    let plan = Plan {
        scenarios: all.iter().filter(wanted).map(|path| support::load(path)).collect(),
        engine: EngineChoice::Embedded,
        releases: Releases::only(release),
        jobs: 32,
        known: support::known(),
        traces: Traces::Embedded,
        program: None,
        checkout: None,
        shard: None,
        time_limit: TIME_LIMIT,
        pace: Pace::default(),
        stop: Arc::new(AtomicBool::new(false)),
    };
    if plan.scenarios.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut outcomes = BTreeMap::new();
    let summary = run_all(&plan, &mut |event| {
        if let Event::Finished(outcome) = event {
            outcomes.insert(outcome.id.clone(), *outcome);
        }
    })?;
    let boundaries: usize =
        outcomes.values().map(|it| it.notes.iter().filter(|it| !it.of_reading).count()).sum();
    say(&format!(
        "{release}: {} conform, {} diverge, {} without a verdict, {} skipped; {} ticks in {:.0} s; \
         {boundaries} scenarios with notes",
        summary.conforms,
        summary.diverges,
        summary.inconclusive,
        summary.skipped,
        summary.ticks,
        summary.elapsed.as_secs_f64()
    ));
    Ok(outcomes)
}

fn verdict(outcome: Result<Outcome, String>) -> Result<(), Failed> {
    let outcome = outcome?;
    match outcome.verdict {
        Verdict::Conforms => Ok(()),
        verdict => Err(format!("{verdict:#?}").into()),
    }
}

type Test = fn() -> Result<(), Failed>;

const LEAKS: [(&str, Test); 3] = [
    ("a_cluster_that_is_stopped_leaves_nothing", stopped),
    ("a_cluster_whose_owner_is_killed_leaves_nothing", killed),
    ("a_cluster_that_has_lost_its_api_server_ends", broken),
];

/// A folder for what is temporary, by which all of a cluster can be found.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> std::io::Result<Place> {
        tempfile::Builder::new().prefix("kl-").tempdir().map(Place)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"));
        command.args(args).env("TMPDIR", self.path()).stdin(Stdio::null());
        command
    }

    /// Processes whose command lines name the folder.
    fn processes(&self) -> Vec<String> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        let ours = self.path().to_string_lossy().into_owned();
        lines.filter(|line| line.contains(&ours)).collect()
    }

    fn left(&self) -> Vec<String> {
        let files = fs::read_dir(self.path()).into_iter().flatten().flatten();
        let files = files.map(|file| file.path().display().to_string());
        self.processes().into_iter().chain(files).collect()
    }

    /// Waits until nothing is left.
    fn is_empty(&self) -> Result<(), String> {
        let begin = Instant::now();
        while !self.left().is_empty() {
            if begin.elapsed() > GONE_LIMIT {
                return Err(format!("left: {:#?}", self.left()));
            }
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

fn stopped() -> Result<(), Failed> {
    let place = Place::new()?;
    let run = |args: &[&str]| {
        let output = place.command(args).output()?;
        let said = [output.stdout, output.stderr].concat();
        Ok::<_, Failed>((output.status.code(), String::from_utf8_lossy(&said).into_owned()))
    };
    let named = ["--name", "e2e-stopped"];
    let (code, said) = run(&["cluster", "start", named[0], named[1]])?;
    assert_eq!(code, Some(0), "{said}");
    let (code, config) = run(&["cluster", "kubeconfig", named[0], named[1]])?;
    assert_eq!(code, Some(0), "{config}");
    assert!(fs::read_to_string(config.trim())?.contains("https://127.0.0.1:"));
    let (code, said) = run(&["cluster", "start", named[0], named[1]])?;
    assert_eq!(code, Some(2), "it runs already: {said}");
    assert_ne!(place.left(), Vec::<String>::new(), "nothing was started");
    let (code, said) = run(&["cluster", "stop", named[0], named[1]])?;
    assert_eq!(code, Some(0), "{said}");
    place.is_empty()?;
    let (code, said) = run(&["cluster", "stop", named[0], named[1]])?;
    assert_eq!(code, Some(4), "there is none: {said}");
    assert!(!Path::new(config.trim()).exists());
    Ok(())
}

/// From before anything is started to when all of it runs.
fn killed() -> Result<(), Failed> {
    let place = Place::new()?;
    for number in 0..KILLS {
        let name = format!("e2e-killed-{}", number % 2);
        let mut owner = place
            .command(&["cluster", "start", "--foreground", "--name", &name])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        // Some moments are denser at the beginning, when most is done.
        sleep(Duration::from_millis(number * number * 2 % 3500));
        owner.kill()?;
        owner.wait()?;
        place.is_empty().map_err(|left| format!("kill {number}: {left}"))?;
    }
    Ok(())
}

fn broken() -> Result<(), Failed> {
    let place = Place::new()?;
    let named = ["--name", "e2e-broken"];
    let args = ["cluster", "start", "--foreground", named[0], named[1]];
    let owner = place.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let begin = Instant::now();
    let api_server = loop {
        let started = place.processes().iter().any(|line| line.contains("kube-controller-manager"));
        let of_api_server = fs::read_dir("/proc")?.flatten().find_map(|entry| {
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let ours = line.contains(&*place.path().to_string_lossy());
            let is_it = ours && line.contains(" kube-apiserver ");
            is_it.then(|| entry.file_name().to_string_lossy().into_owned())
        });
        if let (true, Some(pid)) = (started, of_api_server) {
            break pid;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not start");
        sleep(Duration::from_millis(50));
    };
    assert!(Command::new("kill").args(["-9", &api_server]).status()?.success());
    let output = owner.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    // A controller manager that was only starting gives up by itself, and may be seen first.
    assert!(said.contains(" has ended ("), "{said}");
    place.is_empty()?;
    Ok(())
}
