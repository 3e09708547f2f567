//! A run on a local checkout of the Vertical Pod Autoscaler: the suite changes one line in a copy
//! of the published module, builds it, and finds that change.
//!
//! `KUBE_LOCKSTEP_AUTOSCALER` names a clone of kubernetes/autoscaler, at any tag from 0.10 on: all
//! fixtures are then also run on it. Requires Go; without it, the tests are reported as ignored.

use crate::support;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::trials::Suite;
use kube_autoscaler_models::rules::VpaRelease;
use kube_lockstep_engines::upstream::{build, recommender};
use libtest_mimic::Failed;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The variable that names a clone of kubernetes/autoscaler.
const VARIABLE: &str = "KUBE_LOCKSTEP_AUTOSCALER";

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    // The tests build a changed recommender.
    suite.ignore_by_default();
    // The build fills Go's module cache.
    let newest = VpaRelease::NEWEST;
    let upstream =
        suite.require(move || recommender::ensure(newest, &CancellationToken::new(), &mut |_| {}));
    suite.test_with(&upstream, "a_changed_line_of_the_recommender_diverges", |_| {
        changed_line_diverges()
    });
    suite.test_with(&upstream, "scenarios_of_hpas_do_not_run_on_the_recommender", |_| {
        rejects_hpas()
    });
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let is_named = named.is_some();
    let has = suite.require_that(&format!("a checkout in {VARIABLE}"), move || is_named);
    let both = upstream.and(&has);
    suite.test_with(&both, "the_named_checkout_conforms", move |_| {
        let folder = named.clone().ok_or("no checkout")?;
        let output = run(&folder, &["run", "vpa/", "--format", "json"])?;
        let summary = summary(&output)?;
        assert_eq!(output.status.code(), Some(0), "{summary}");
        assert!(summary["conforms"].as_u64() > Some(50), "{summary}");
        Ok(())
    });
}

/// The changed line and its replacement: the minimum is twice as large.
const LINE: (&str, &str) = ("fraction := 1.0 / float64(", "fraction := 2.0 / float64(");
const FILE: &str = "pkg/recommender/logic/recommender.go";

/// A clone of kubernetes/autoscaler, made from the published module. Its path is always the same,
/// because Go compiles everything again for another path. Returns the root, and the folder of the
/// module.
fn clone() -> Result<(PathBuf, PathBuf), Failed> {
    let version = build::version(build::Artifact::Recommender, VpaRelease::NEWEST);
    let module = format!(
        "k8s.io/autoscaler/vertical-pod-autoscaler@{}",
        version.ok_or("the newest release has a version")?
    );
    // A folder outside any module, so that Go does not use a go.mod of this repository.
    let outside = tempfile::tempdir()?;
    let output = Command::new("go")
        .args(["mod", "download", "-json", &module])
        .envs([("GOWORK", "off"), ("GOFLAGS", "")])
        .current_dir(outside.path())
        .output()?;
    let found: Value = serde_json::from_slice(&output.stdout)?;
    let published = PathBuf::from(found["Dir"].as_str().ok_or("the module has a folder")?);
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("autoscaler");
    let folder = root.join("vertical-pod-autoscaler");
    fs::create_dir_all(&folder)?;
    for part in ["go.mod", "go.sum", "common", "pkg"] {
        support::copy(&published.join(part), &folder.join(part))?;
    }
    Ok((root, folder))
}

/// Runs the command on a checkout.
fn run(folder: &Path, arguments: &[&str]) -> Result<Output, Failed> {
    let output = Command::new(env!("CARGO_BIN_EXE_kube-lockstep"))
        .args(arguments)
        .arg("--upstream-path")
        .arg(folder)
        .current_dir(support::repository())
        .env("KUBE_LOCKSTEP_CACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("autoscaler-cache"))
        .output()?;
    Ok(output)
}

/// The summary of a run with JSON output.
fn summary(output: &Output) -> Result<Value, Failed> {
    let text = String::from_utf8(output.stdout.clone())?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let last: Value = serde_json::from_str(text.lines().last().ok_or(errors)?)?;
    Ok(last["summary"].clone())
}

fn changed_line_diverges() -> Result<(), Failed> {
    let (root, folder) = clone()?;
    let output = run(&root, &["run", "--format", "json"])?;
    let found = summary(&output)?;
    assert_eq!(output.status.code(), Some(0), "{found}");
    assert_eq!(found["engine"], format!("upstream {}", root.display()));
    assert_eq!(found["release"], VpaRelease::NEWEST.to_string());
    assert_eq!(found["diverges"], 0, "{found}");
    assert_eq!(found["scenarios"], support::vpa_fixtures().len(), "{found}");

    let explain = ["explain", "vpa/runs/the-first-run", "--tick", "2"];
    let text = String::from_utf8(run(&root, &explain)?.stdout)?;
    let same = format!("upstream {} does the same up to this tick", root.display());
    assert!(text.contains(&same), "{text}");

    let file = folder.join(FILE);
    let text = fs::read_to_string(&file)?;
    assert_eq!(text.matches(LINE.0).count(), 1, "{FILE}: {}", LINE.0);
    fs::write(&file, text.replace(LINE.0, LINE.1))?;
    let changed = (|| -> Result<(), Failed> {
        let id = "vpa/estimation/no-samples-give-the-minimum";
        let output = run(&folder, &["run", id])?;
        let text = String::from_utf8(output.stdout)?;
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(&format!("| upstream {} 50m", folder.display())), "{text}");
        assert!(text.contains(&format!("--upstream-path {}", folder.display())), "{text}");
        let output = run(&folder, &["explain", id, "--tick", "1"])?;
        let text = String::from_utf8(output.stdout)?;
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(text.contains(&format!("| upstream {} 50m", folder.display())), "{text}");
        let save = tempfile::tempdir()?;
        let save = save.path().to_string_lossy();
        let fuzz = ["fuzz", "--area", "vpa", "--seed", "1", "--ticks", "4000", "--save", &*save];
        let output = run(&folder, &fuzz)?;
        let text = String::from_utf8(output.stdout)?;
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(&format!("engine upstream {}", folder.display())), "{text}");
        Ok(())
    })();
    fs::write(&file, text)?;
    changed
}

fn rejects_hpas() -> Result<(), Failed> {
    let (root, folder) = clone()?;
    for (arguments, part) in [
        (&["run", "tolerance/"][..], "no selected scenario can run"),
        (&["run", "vpa/", "--release", "vpa-1.7,vpa-1.8"], "requires exactly one VPA release"),
        (&["run", "vpa/", "--release", "1.37"], "requires exactly one VPA release"),
        (&["fuzz", "--area", "ratios"], "it has no HPA controller"),
        (&["explain", "tolerance/upper-edge-is-inclusive", "--tick", "1"], "no HPA controller"),
    ] {
        let output = run(&root, arguments)?;
        let errors = String::from_utf8(output.stderr)?;
        assert!(errors.contains(part), "{arguments:?}: {errors}");
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
    }
    // Without the file that names the version, the release must be named.
    let version = folder.join("common/version.go");
    let text = fs::read_to_string(&version)?;
    fs::remove_file(&version)?;
    let output = run(&root, &["run", "vpa/"]);
    fs::write(&version, text)?;
    let errors = String::from_utf8(output?.stderr)?;
    assert!(errors.contains("the release of the checkout is unknown"), "{errors}");
    assert!(errors.contains("--release"), "{errors}");
    Ok(())
}
