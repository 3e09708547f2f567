//! The house rules that a program can check: who may import whom, where releases are named, how
//! long files may be, and what the pure half depends on.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What each module may name of this crate. `*` stands for everything.
const MAY_USE: &[(&str, &[&str])] = &[
    ("model", &["model"]),
    ("scenario", &["scenario", "model", "compare"]),
    ("world", &["world", "model", "scenario", "trace"]),
    ("trace", &["trace", "model"]),
    ("compare", &["compare", "model", "trace"]),
    ("expect", &["expect", "model", "scenario"]),
    ("fuzz", &["fuzz", "model", "scenario", "world"]),
    ("engine", &["engine", "model", "scenario", "world", "trace", "compare::Scope"]),
    ("run", &["run", "model", "scenario", "world", "trace", "compare", "expect", "fuzz", "engine"]),
    ("report", &["report", "model", "trace", "compare", "expect", "run", "scenario", "fuzz"]),
    ("cli", &["*"]),
    ("lib", &["*"]),
    ("main", &["*"]),
];

/// What the pure half must not even name.
const IMPURE: &[&str] =
    &["std::fs", "std::net", "std::process", "std::env", "SystemTime", "Instant::now", "tokio"];
const PURE: &[&str] = &["model", "scenario", "world", "trace", "compare", "expect", "fuzz"];

fn sources() -> Vec<(String, PathBuf, String)> {
    let root = support::repository().join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("src/ can be listed") {
            let path = entry.expect("src/ can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let below = path.strip_prefix(&root).expect("below src/");
                let module = below.components().next().expect("a path").as_os_str();
                let module = module.to_string_lossy().trim_end_matches(".rs").to_owned();
                let text = fs::read_to_string(&path).expect("a source can be read");
                found.push((module, path, text));
            }
        }
    }
    assert!(found.len() > 20, "no sources were found");
    found.sort();
    found
}

/// The lines of a file that are code of the product: up to its tests, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| *line != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(index, line)| (index + 1, line))
}

fn show(path: &Path, line: usize) -> String {
    let path = path.strip_prefix(support::repository()).unwrap_or(path);
    format!("{}:{line}", path.display())
}

#[test]
fn modules_use_only_what_they_may() {
    let mut wrong = Vec::new();
    for (module, path, text) in sources() {
        let Some((_, may)) = MAY_USE.iter().find(|(name, _)| *name == module) else {
            wrong.push(format!("{module} is not in the table"));
            continue;
        };
        for (line, code) in code(&text) {
            for used in code.split("crate::").skip(1) {
                let allowed = may.iter().any(|may| *may == "*" || used.starts_with(may));
                if !allowed {
                    wrong.push(format!("{}: {module} uses crate::{used}", show(&path, line)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_pure_half_has_no_clock_no_files_and_no_processes() {
    let mut wrong = Vec::new();
    for (module, path, text) in sources().iter().filter(|(m, ..)| PURE.contains(&m.as_str())) {
        for (line, code) in code(text) {
            for word in IMPURE.iter().filter(|word| code.contains(*word)) {
                wrong.push(format!("{}: {module} names {word}", show(path, line)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_pure_half_depends_on_nothing_that_does_io() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--no-default-features", "--edges", "normal"])
        .args(["--prefix", "none", "--manifest-path"])
        .arg(support::repository().join("Cargo.toml"))
        .output()
        .expect("cargo tree can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout);
    assert!(tree.contains("serde"), "an empty tree proves nothing");
    for name in ["tokio", "kube", "k8s-openapi", "mio", "hyper", "clap", "anyhow"] {
        let found = tree.lines().find(|line| line.split(' ').next() == Some(name));
        assert_eq!(found, None, "the pure half depends on {name}");
    }
}

/// Rule 4 of the house style: releases differ by rows of one table.
#[test]
fn only_the_rules_branch_on_a_release() {
    let mut wrong = Vec::new();
    for (module, path, text) in sources() {
        if !matches!(module.as_str(), "model" | "world" | "compare")
            || path.to_string_lossy().contains("model/rules")
        {
            continue;
        }
        for (line, code) in code(&text) {
            if code.contains("Release::") || code.contains(".minor") {
                wrong.push(format!("{}: {}", show(&path, line), code.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    let mut wrong = Vec::new();
    for (_, path, text) in sources() {
        let lines = text.lines().count();
        if lines > 600 {
            wrong.push(format!("{} has {lines} lines; find a seam", show(&path, 1)));
        }
        if !text.starts_with("//!") {
            wrong.push(format!("{} does not say what it is for", show(&path, 1)));
        }
        for (index, line) in text.lines().enumerate() {
            if line.chars().count() > 100 {
                wrong.push(format!("{} is over 100 columns", show(&path, index + 1)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Links of the README and of docs/ that point into the repository.
#[test]
fn links_in_the_documents_lead_somewhere() {
    let mut documents = vec![support::repository().join("README.md")];
    for folder in ["docs", "docs/engines"] {
        let docs = fs::read_dir(support::repository().join(folder)).expect("docs/ can be listed");
        documents.extend(docs.map(|entry| entry.expect("docs/ can be listed").path()));
    }
    let mut wrong = Vec::new();
    for document in documents.iter().filter(|path| path.extension().is_some_and(|e| e == "md")) {
        let text = fs::read_to_string(document).expect("a document can be read");
        for (index, line) in text.lines().enumerate() {
            for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                let target = link.split('#').next().unwrap_or_default();
                if target.is_empty() || target.contains("://") {
                    continue;
                }
                if !document.parent().expect("a folder").join(target).exists() {
                    wrong.push(format!("{}: {link}", show(document, index + 1)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The rights in the docs are those with which the tests on clusters run.
#[test]
fn the_rights_in_the_docs_suffice_and_are_no_more() {
    let read = |path: &str| {
        fs::read_to_string(support::repository().join(path)).expect("the rights can be read")
    };
    let in_docs = read("docs/engines/kubeconfig-rbac.yaml");
    let (role, binding) = in_docs.split_once("\n---\n").expect("a role and its binding");
    let yaml = |text: &str| serde_yaml::from_str::<serde_json::Value>(text).expect("YAML");
    let in_tests: serde_json::Value =
        serde_json::from_str(&read("src/engine/cluster/role.json")).expect("JSON");
    assert_eq!(yaml(role), in_tests);
    assert_eq!(yaml(binding)["roleRef"]["name"], in_tests["metadata"]["name"]);
}
