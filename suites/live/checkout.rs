//! A run on a local checkout of Kubernetes: the suite changes one line in a copy of the published
//! module, builds it, and finds that change and nothing else.
//!
//! Requires Go; without it, the test is reported as ignored.

use crate::support;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::trials::Suite;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_engines::upstream::build;
use libtest_mimic::Failed;
use serde_json::Value;

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    // The test builds a changed controller.
    suite.ignore_by_default();
    // The build fills Go's module cache.
    let upstream = suite.upstream(Release::NEWEST);
    suite.test_with(&upstream, "only_the_changed_line_of_the_controller_diverges", |_| {
        changed_line_diverges()
    });
}

/// The changed line and its replacement: a ratio at the upper edge is outside.
const LINE: (&str, &str) = ("usageRatio <= (1.0+t.scaleUp)", "usageRatio < (1.0+t.scaleUp)");
const FILE: &str = "pkg/controller/podautoscaler/replica_calculator.go";

/// Downloads a module, and returns its folder in Go's module cache.
fn module(name: &str, version: &str) -> Result<PathBuf, Failed> {
    // A folder outside any module, so that Go does not use a go.mod of this repository.
    let folder = tempfile::tempdir()?;
    let output = Command::new("go")
        .args(["mod", "download", "-json", &format!("{name}@{version}")])
        .envs([("GOWORK", "off"), ("GOFLAGS", "")])
        .current_dir(folder.path())
        .output()?;
    let module: Value = serde_json::from_slice(&output.stdout)?;
    let folder = module["Dir"].as_str().ok_or_else(|| format!("no {name}: {module}"))?;
    Ok(PathBuf::from(folder))
}

/// A checkout made from a published module, with two of the staging modules that it lacks. Its path
/// is always the same, because Go compiles everything again for another path.
struct Checkout {
    folder: PathBuf,
    cache: PathBuf,
}

impl Checkout {
    fn new() -> Result<Checkout, Failed> {
        let version = build::version(build::Artifact::Host, Release::NEWEST).ok_or("no version")?;
        let published = module("k8s.io/kubernetes", &version)?;
        let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let checkout = Checkout { folder: root.join("kubernetes"), cache: root.join("cache") };
        for part in ["go.mod", "go.sum", "pkg", "third_party", "CHANGELOG"] {
            fs::create_dir_all(&checkout.folder)?;
            support::copy(&published.join(part), &checkout.folder.join(part))?;
        }
        let staging = version.replacen("v1.", "v0.", 1);
        for part in ["k8s.io/component-base", "k8s.io/metrics"] {
            let published = module(part, &staging)?;
            support::copy(&published, &checkout.folder.join("staging/src").join(part))?;
        }
        Ok(checkout)
    }

    /// Changes a file.
    fn change(&self, file: &str, from: &str, to: &str) -> Result<(), Failed> {
        let path = self.folder.join(file);
        let text = fs::read_to_string(&path)?;
        assert_eq!(text.matches(from).count(), 1, "{file}: {from}");
        Ok(fs::write(path, text.replace(from, to))?)
    }

    /// Runs the command on the checkout.
    fn run(&self, arguments: &[&str]) -> Result<Output, Failed> {
        let output = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"))
            .args(arguments)
            .arg("--upstream-path")
            .arg(&self.folder)
            .current_dir(support::repository())
            .env("KUBE_LOCKSTEP_CACHE", &self.cache)
            .output()?;
        Ok(output)
    }

    /// Runs all fixtures on the checkout, and returns the JSON objects of the output.
    fn suite(&self, code: i32) -> Result<Vec<Value>, Failed> {
        let output = self.run(&["run", "--format", "json"])?;
        let lines = String::from_utf8(output.stdout)?;
        // An engine that can't be built, for example without disk space, is inconclusive.
        let reasons = lines.lines().filter(|line| line.contains(r#""verdict":"inconclusive""#));
        let reasons: Vec<&str> = reasons.take(3).collect();
        let errors = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(code), "{errors}{}", reasons.join("\n"));
        Ok(lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }

    /// The cached engines of the checkout.
    fn engines(&self) -> Result<Vec<PathBuf>, Failed> {
        let folders = fs::read_dir(self.cache.join("checkouts"))?;
        let folders: Vec<PathBuf> = folders.flatten().map(|entry| entry.path()).collect();
        let [folder] = folders.as_slice() else { return Err(format!("{folders:?}").into()) };
        let entries = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
        let is_engine = |path: &PathBuf| path.to_string_lossy().contains("/engine-");
        Ok(entries.filter(is_engine).collect())
    }
}

fn changed_line_diverges() -> Result<(), Failed> {
    let checkout = Checkout::new()?;
    let name = format!("upstream {}", checkout.folder.display());

    // The published code behaves like the release.
    let lines = checkout.suite(0)?;
    let summary = &lines[lines.len() - 1]["summary"];
    assert_eq!(summary["engine"], *name);
    assert_eq!(summary["release"], Release::NEWEST.to_string());
    assert_eq!(summary["upstreamPath"], *checkout.folder.to_string_lossy());
    let before = checkout.engines()?;
    assert_eq!(before.len(), 1, "{before:?}");

    // The changed line diverges wherever it matters, and nowhere else.
    checkout.change(FILE, LINE.0, LINE.1)?;
    let lines = checkout.suite(1)?;
    let diverging: Vec<&Value> =
        lines.iter().filter(|line| line["verdict"] == "diverges").collect();
    assert!(diverging.iter().any(|line| line["id"] == "tolerance/upper-edge-is-inclusive"));
    for line in &diverging {
        let why = line["divergence"]["why"].as_str().unwrap_or_default();
        assert!(why.contains("within tolerance"), "the divergence has another cause: {line}");
    }
    let count = |verdict: &str| lines.iter().filter(|line| line["verdict"] == verdict).count();
    assert_eq!(count("diverges") + count("conforms") + count("skipped"), lines.len() - 1);
    let after = checkout.engines()?;
    assert!(after.len() == 1 && after != before, "the new engine replaces the old one: {after:?}");
    run_other_commands(&checkout, &name)?;

    // A compile error is reported with Go's message, also for a staging module. With the changes
    // undone, the checkout conforms again and the engine is the same program.
    let staged = "staging/src/k8s.io/metrics/pkg/apis/metrics/v1beta1/types.go";
    for (file, place) in [(FILE, "replica_calculator.go:17:"), (staged, "types.go:17:")] {
        let package = fs::read_to_string(checkout.folder.join(file))?;
        let line = package.lines().position(|line| line.starts_with("package ")).ok_or("a file")?;
        let package = package.lines().nth(line).ok_or("a line")?.to_owned();
        checkout.change(file, &format!("{package}\n"), &format!("{package}; func broken\n"))?;
        let output = checkout.run(&["run", "tolerance"])?;
        let errors = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(3), "{errors}");
        assert!(errors.contains(&format!("the {name} engine failed: `go ")), "{errors}");
        assert!(errors.contains(place), "{errors}");
        checkout.change(file, &format!("{package}; func broken\n"), &format!("{package}\n"))?;
    }
    checkout.change(FILE, LINE.1, LINE.0)?;
    checkout.suite(0)?;
    assert_eq!(checkout.engines()?, before);
    Ok(())
}

/// Runs the other commands that take a checkout, on the checkout with the changed line.
fn run_other_commands(checkout: &Checkout, name: &str) -> Result<(), Failed> {
    let id = "tolerance/upper-edge-is-inclusive";
    let run = |arguments: &[&str], code: i32| -> Result<String, Failed> {
        let output = checkout.run(arguments)?;
        let errors = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(code), "{errors}");
        Ok(String::from_utf8(output.stdout)? + &errors)
    };
    let text = run(&["run", id], 1)?;
    // A long note is folded at the width of a terminal.
    let unfolded = text.replace("\n      ", " ");
    let folder = checkout.folder.display();
    let replay = format!("kube-lockstep run {id} --release 1.37 --upstream-path {folder}");
    for part in [
        &format!("1 scenario on {name} 1.37\n"),
        "note: the model follows the rules of 1.37, according to its staging/src/k8s.io/component-base/",
        &format!("model | {name}\n"),
        &replay,
    ] {
        assert!(unfolded.contains(part), "{part}\n{text}");
    }
    // The checkout does not follow the rules of another release, and diverges.
    let text = run(&["run", "limits", "--release", "1.36"], 1)?;
    let note = "note: the model follows the rules of 1.36, as requested, not of 1.37\n";
    assert!(text.contains(note), "{text}");

    let text = run(&["explain", id, "--tick", "1"], 0)?;
    assert!(text.contains(&format!("model | {name}\n")), "{text}");
    let conforming = "tolerance/lower-edge-is-inclusive";
    let text = run(&["explain", conforming, "--tick", "1"], 0)?;
    assert!(text.contains(&format!("\n{name} does the same up to this tick\n")), "{text}");

    let found = tempfile::tempdir()?;
    let save = found.path().to_string_lossy().into_owned();
    let options = ["--seed", "5", "--ticks", "20000", "--area", "ratios", "--save", &save];
    let text = run(&[&["fuzz"], &options[..]].concat(), 1)?;
    assert!(text.starts_with(&format!("fuzz: seed 5, release 1.37, engine {name}, ")), "{text}");
    let saved = fs::read_dir(found.path())?.count();
    assert!(saved > 0 && text.contains(&format!("--upstream-path {folder}\n")), "{text}");

    let text = run(&["run", "--engine", "recorded"], 2)?;
    assert!(text.contains("--upstream-path requires the upstream engine"), "{text}");
    let text = run(&["run", "--release", "1.36,1.37"], 2)?;
    assert!(text.contains("--upstream-path can't be combined with several releases"), "{text}");
    let text = run(&["run", "--program", "x"], 2)?;
    assert!(
        text.contains("--upstream-path and --program both replace the upstream engine"),
        "{text}"
    );
    Ok(())
}
