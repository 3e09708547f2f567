//! Compares the flags that the source code of each release defines with those of the model's table.
//! Scenarios that set a flag are skipped on releases without it. The host can't show this: it calls
//! the controller's constructor, and only the kube-controller-manager reads flags.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kube_autoscaler_models::flags::Flag;
use kube_autoscaler_models::rules::{Release, Rules};
use kube_lockstep_engines::upstream::build;
use kube_lockstep_engines::upstream::build::Artifact;
use libtest_mimic::Failed;
use serde_json::Value;

/// The folders with the definitions of flags. A release may have only the first one.
const FOLDERS: [&str; 2] = ["cmd/kube-controller-manager/app", "cmd/controller-manager/app"];

/// Compares the flags that a release defines with the model's table.
pub(super) fn flags(release: Release) -> Result<(), Failed> {
    let version = build::version(Artifact::Host, release).ok_or("a release with an engine")?;
    let sources = download(&format!("k8s.io/kubernetes@{version}"))?;
    let mut files = Vec::new();
    for folder in FOLDERS.map(|folder| sources.join(folder)).iter().filter(|it| it.is_dir()) {
        add_sources(folder, &mut files)?;
    }
    let texts = files.iter().map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    let rules = Rules::of(release);
    for flag in Flag::ALL {
        let name = format!("\"{}\"", flag.name());
        let is_defined = texts.iter().any(|text| text.contains(&name));
        if is_defined != rules.flags[flag as usize] {
            let verb = if is_defined { "defines" } else { "does not define" };
            return Err(format!("Kubernetes {version} {verb} the flag {name}").into());
        }
    }
    Ok(())
}

/// Downloads a module with Go, unless Go has it. Returns its folder.
fn download(module: &str) -> Result<PathBuf, Failed> {
    let elsewhere = tempfile::tempdir()?;
    let output = Command::new("go")
        .args(["mod", "download", "-json", module])
        .current_dir(elsewhere.path())
        .envs([("GOWORK", "off"), ("GOFLAGS", "")])
        .output()?;
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    let folder = answer["Dir"].as_str().map(PathBuf::from);
    folder.ok_or_else(|| format!("{module}: {answer}").into())
}

/// Adds the sources in a folder and below, except tests.
fn add_sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failed> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_test = path.to_string_lossy().ends_with("_test.go");
        if path.is_dir() {
            add_sources(&path, files)?;
        } else if path.extension() == Some(OsStr::new("go")) && !is_test {
            files.push(path);
        }
    }
    Ok(())
}
