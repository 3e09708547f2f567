//! The house rules that a program can check and the compiler doesn't: mentions of releases, the
//! length and parameters of functions, and the dependencies of the crates without I/O.

mod functions;

use crate::support;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use functions::Outline;

/// The longest function, in lines from its signature to its closing brace.
const FUNCTION_LINES: usize = 70;

/// Functions that are still longer, by name. An entry that is no longer needed fails the test.
const KNOWN_LONG_FUNCTIONS: &[&str] = &[];

/// Functions that still have a tuple parameter, by name. An entry that is no longer needed fails
/// the test.
const KNOWN_TUPLE_PARAMETERS: &[&str] = &[];

/// Names that the crates without I/O must not contain.
const IMPURE: &[&str] =
    &["std::fs", "std::net", "std::process", "std::env", "SystemTime", "Instant::now", "tokio"];
/// The crates without I/O, which also run in the browser.
const PURE: &[&str] =
    &["gate", "lint", "manifests", "models", "predict", "report", "scenario", "sim", "tune"];

/// The Rust sources of all crates, each with the name of its crate; those of the facade and the
/// command are in `src`.
fn sources() -> Vec<(String, PathBuf, String)> {
    let facade = sources_below("src").into_iter().map(|(_, path, text)| ("src".into(), path, text));
    let found: Vec<_> = facade.chain(sources_below("crates")).collect();
    assert!(found.len() > 400, "only {} sources were found", found.len());
    found
}

/// The Rust sources in a folder of the repository, each with the name of its top module.
fn sources_below(folder: &str) -> Vec<(String, PathBuf, String)> {
    files_below(folder, "rs")
}

/// The files in a folder of the repository with this extension, each with the name of its top
/// subfolder, or with its own name if it is directly in the folder.
fn files_below(folder: &str, extension: &str) -> Vec<(String, PathBuf, String)> {
    let root = support::repository().join(folder);
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == extension) {
                let below = path.strip_prefix(&root).expect("below its folder");
                let module = Path::new(below.iter().next().expect("a path")).with_extension("");
                let module = module.to_string_lossy().into_owned();
                let text = fs::read_to_string(&path).expect("a source can be read");
                found.push((module, path, text));
            }
        }
    }
    found.sort();
    found
}

/// The numbered lines of a source that are code of the product: no tests and no comments.
fn code(text: &str) -> Vec<(usize, &str)> {
    let outline = Outline::read(text);
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    numbered
        .filter(|(number, line)| !outline.is_test(*number) && !line.trim_start().starts_with("//"))
        .collect()
}

fn show(path: &Path, line: usize) -> String {
    let path = path.strip_prefix(support::repository()).unwrap_or(path);
    format!("{}:{line}", path.display())
}

#[test]
fn the_crates_without_io_name_no_clock_no_files_and_no_processes() {
    let mut wrong = Vec::new();
    for (crate_, path, text) in sources().iter().filter(|(it, ..)| PURE.contains(&it.as_str())) {
        for (line, code) in code(text) {
            for word in IMPURE.iter().filter(|word| code.contains(*word)) {
                wrong.push(format!("{}: {crate_} names {word}", show(path, line)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_crates_without_io_depend_on_nothing_that_does_io() {
    for crate_ in PURE {
        let manifest = support::repository().join("crates").join(crate_).join("Cargo.toml");
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--locked", "--all-features"])
            .args(["--edges", "normal", "--prefix", "none", "--manifest-path"])
            .arg(manifest)
            .output()
            .expect("cargo tree can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let tree = String::from_utf8_lossy(&output.stdout);
        assert!(tree.contains("serde"), "an empty tree proves nothing");
        for name in ["tokio", "kube", "k8s-openapi", "mio", "hyper", "clap", "anyhow"] {
            let found = tree.lines().find(|line| line.split(' ').next() == Some(name));
            assert_eq!(found, None, "the crate in crates/{crate_} depends on {name}");
        }
    }
}

/// The packages of the default build with their features, also those that run during the build.
fn packages(edges: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--edges", edges, "--prefix", "none"])
        .args(["--format", "{p} with {f}", "--manifest-path"])
        .arg(support::repository().join("Cargo.toml"))
        .output()
        .expect("cargo tree can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout);
    // A package that was shown before ends with a mark.
    tree.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

/// Otherwise `cargo test` after `cargo run` compiles the package, and all that depend on it, again.
#[test]
fn tests_enable_no_other_features_of_dependencies_than_the_default_build() {
    let (default, tests) = (packages("normal,build"), packages("normal,build,dev"));
    assert!(default.len() > 50 && tests.len() > default.len(), "{default:#?}");
    let other: Vec<&String> = default.difference(&tests).collect();
    assert!(
        other.is_empty(),
        "dependencies that tests compile with more features; see `resolver` in Cargo.toml: {other:#?}"
    );
}

/// Rule 4 of the house style: releases differ by rows of one table.
#[test]
fn only_the_rules_branch_on_a_release() {
    let mut wrong = Vec::new();
    for (_, path, text) in sources() {
        let below = path.strip_prefix(support::repository()).expect("a path in the repository");
        let is_checked = ["crates/models/src", "crates/sim/src/world", "crates/sim/src/compare"]
            .iter()
            .any(|folder| below.starts_with(folder));
        if !is_checked || below.starts_with("crates/models/src/rules") {
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
fn files_state_their_purpose_in_lines_of_at_most_100_columns() {
    let mut wrong = Vec::new();
    for (_, path, text) in sources() {
        if !text.starts_with("//!") {
            wrong.push(format!("{} has no module documentation", show(&path, 1)));
        }
        for (index, line) in text.lines().enumerate() {
            // A row of a Markdown table can't be wrapped.
            if line.chars().count() > 100 && !line.starts_with("//! |") {
                wrong.push(format!("{} is over 100 columns", show(&path, index + 1)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A function, with the file and line of its signature.
struct Function {
    outline: functions::Function,
    place: String,
}

/// The functions of the product, its tests, benchmarks, examples and suites.
fn functions() -> Vec<Function> {
    let mut found = Vec::new();
    for folder in ["src", "crates", "benches", "examples", "suites", "playground/src"] {
        for (_, path, text) in sources_below(folder) {
            found.extend(Outline::read(&text).functions.into_iter().map(|outline| {
                let place = show(&path, outline.line);
                Function { outline, place }
            }));
        }
    }
    assert!(found.len() > 500, "only {} functions were found", found.len());
    found
}

/// Fails unless the offending functions are exactly the known ones.
fn assert_only_known(offending: &[&Function], reason: &str, known: &[&str]) {
    let mut known = known.to_vec();
    let mut wrong = Vec::new();
    for Function { outline, place } in offending {
        match known.iter().position(|name| *name == outline.name) {
            Some(index) => drop(known.swap_remove(index)),
            None => wrong.push(format!("{place}: {} {reason}", outline.name)),
        }
    }
    wrong.extend(
        known.iter().map(|name| format!("{name}: remove it from the list of known functions")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn functions_have_at_most_70_lines() {
    let functions = functions();
    let long = functions.iter().filter(|function| function.outline.lines > FUNCTION_LINES);
    assert_only_known(&long.collect::<Vec<_>>(), "has over 70 lines", KNOWN_LONG_FUNCTIONS);
}

/// Tests are exempt: most of their lines are tables.
#[test]
fn go_functions_have_at_most_70_lines() {
    let mut functions = 0;
    let mut wrong = Vec::new();
    let files =
        ["upstream", "ci", "suites", "sdk"].into_iter().flat_map(|it| files_below(it, "go"));
    let is_product = |path: &Path| !path.to_string_lossy().ends_with("_test.go");
    for (_, path, text) in files.filter(|(_, path, _)| is_product(path)) {
        let mut begin = None;
        for (index, line) in text.lines().enumerate() {
            // gofmt puts only the first and the last line of a function in the first column.
            if line.starts_with("func ") && !line.ends_with('}') {
                begin = Some(index);
            } else if line == "}"
                && let Some(begin) = begin.take()
            {
                functions += 1;
                if index - begin + 1 > FUNCTION_LINES {
                    wrong.push(format!("{} has over 70 lines", show(&path, begin + 1)));
                }
            }
        }
    }
    assert!(functions > 200, "only {functions} functions were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Parameters that belong together are a struct with names: a tuple hides the names from the
/// caller.
#[test]
fn functions_have_no_tuple_parameters() {
    let functions = functions();
    let product = functions.iter().filter(|function| !function.outline.is_test);
    let tuples = product.filter(|function| function.outline.tuple_parameters > 0);
    assert_only_known(&tuples.collect::<Vec<_>>(), "has a tuple parameter", KNOWN_TUPLE_PARAMETERS);
}

#[test]
fn functions_and_tests_are_distinguished() {
    let text = "\
fn first((a, b): (u8, u8), c: &(u8, u8), (): ()) {
    fn inner(_: (u8,)) {}
}
trait T {
    fn no_body(_: (u8, u8));
    fn body() {
        let closure = |(a, b): (u8, u8)| a + b;
    }
}
#[cfg(test)]
fn helper() {}
impl T for u8 {
    #[cfg(test)]
    fn in_tests() {}
    fn no_body(_: (u8, u8)) {}
}
#[cfg(not(test))]
fn product() {}
#[cfg(test)]
mod tests {
    #[test]
    fn a_test() {}
}
fn last() {}
";
    let outline = Outline::read(text);
    let read = outline.functions.iter();
    let read = read.map(|it| (&*it.name, it.line, it.lines, it.tuple_parameters, it.is_test));
    let read: Vec<_> = read.collect();
    let expected = [
        ("first", 1, 3, 2, false),
        ("inner", 2, 1, 1, false),
        ("body", 6, 3, 0, false),
        ("helper", 11, 1, 0, true),
        ("in_tests", 14, 1, 0, true),
        ("no_body", 15, 1, 1, false),
        ("product", 18, 1, 0, false),
        ("a_test", 22, 1, 0, true),
        ("last", 24, 1, 0, false),
    ];
    assert_eq!(read, expected);
    let tests: Vec<_> = (1..=24).filter(|line| outline.is_test(*line)).collect();
    assert_eq!(tests, [10, 11, 13, 14, 19, 20, 21, 22, 23]);
}

/// The page of the crate has a row for each crate, with the crates that its manifest names.
#[test]
fn the_code_map_is_up_to_date() {
    let page = fs::read_to_string(support::repository().join("src/lib.rs")).expect("src/lib.rs");
    let manifests: Vec<_> = files_below("crates", "toml");
    assert!(manifests.len() >= 9, "only {} manifests were found", manifests.len());
    let mut wrong = Vec::new();
    for (crate_, _, manifest) in &manifests {
        let dependencies = manifest.split("[dependencies]").nth(1).expect("dependencies");
        let dependencies = dependencies.split("\n[").next().expect("a text");
        let names = dependencies.lines().filter_map(|line| line.split(['.', ' ']).next());
        let own = names.filter_map(|name| match name {
            "kube-autoscaler-models" => Some("models"),
            name => name.strip_prefix("kube-lockstep-"),
        });
        let own: Vec<String> = own.map(|name| format!("`{name}`")).collect();
        let uses = if own.is_empty() { "no other crate".to_owned() } else { own.join(", ") };
        let is_row = |line: &str| {
            line.starts_with(&format!("//! | `{crate_}` |"))
                && line.ends_with(&format!("| {uses} |"))
        };
        if !page.lines().any(is_row) {
            wrong.push(format!("no row `{crate_}` that ends with \"{uses}\""));
        }
    }
    assert!(wrong.is_empty(), "the code map of src/lib.rs: {}", wrong.join("\n"));
}

/// Returns true if the file of a link exists and, in a Markdown file, the heading of its anchor.
fn has_target(document: &Path, link: &str) -> bool {
    let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match target {
        "" => document.to_owned(),
        target => document.parent().expect("a folder").join(target),
    };
    if anchor.is_empty() || target.extension().is_none_or(|extension| extension != "md") {
        return target.exists();
    }
    let Ok(text) = fs::read_to_string(&target) else { return false };
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(anchor_of).any(|heading| heading == anchor)
}

/// The anchor that GitHub gives to a heading.
fn anchor_of(heading: &str) -> String {
    let title = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = title.chars().filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'));
    kept.map(|it| if it == ' ' { '-' } else { it }).collect()
}

#[test]
fn anchors_match_the_headings() {
    assert_eq!(anchor_of("## Read `run --json`, step by step"), "read-run---json-step-by-step");
    let readme = support::repository().join("README.md");
    assert!(has_target(&readme, "#get-started"));
    assert!(has_target(&readme, "docs/cli.md"));
    assert!(!has_target(&readme, "#no-such-heading"));
    assert!(!has_target(&readme, "docs/no-such-file.md"));
}

/// The pages of docs/, and those of the top folder.
fn documents() -> Vec<PathBuf> {
    let pages = files_below("docs", "md").into_iter().map(|(_, path, _)| path);
    let top = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"];
    pages.chain(top.map(|name| support::repository().join(name))).collect()
}

#[test]
fn scenarios_in_the_documents_are_valid() {
    let no_files = |path: &str| Err(format!("{path} is not in the document").into());
    let mut checked = 0;
    let mut wrong = Vec::new();
    for document in &documents() {
        let text = fs::read_to_string(document).expect("a document can be read");
        let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
        for block in blocks.filter(|block| block.contains("kind: Scenario\n")) {
            checked += 1;
            let path = show(document, 1 + text[..text.find(block).unwrap_or(0)].lines().count());
            wrong.extend(kube_lockstep_scenario::parse_any(&path, block, &no_files).err());
        }
    }
    assert!(checked >= 4, "only {checked} scenarios were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Links that point into the repository.
#[test]
fn links_in_the_documents_have_targets() {
    let mut wrong = Vec::new();
    for document in &documents() {
        let text = fs::read_to_string(document).expect("a document can be read");
        for (index, line) in text.lines().enumerate() {
            for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                if !link.contains("://") && !has_target(document, link) {
                    wrong.push(format!("{}: {link}", show(document, index + 1)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The tests on clusters use exactly the documented permissions.
#[test]
fn the_permissions_in_the_docs_match_the_tests() {
    let read = |path: &str| {
        fs::read_to_string(support::repository().join(path)).expect("the permissions can be read")
    };
    let in_docs = read("docs/engines/kubeconfig-rbac.yaml");
    let (role, binding) = in_docs.split_once("\n---\n").expect("a role and its binding");
    let yaml = |text: &str| serde_yaml::from_str::<serde_json::Value>(text).expect("YAML");
    let in_tests: serde_json::Value =
        serde_json::from_str(&read("crates/clusters/src/cluster/access/role.json")).expect("JSON");
    assert_eq!(yaml(role), in_tests);
    assert_eq!(yaml(binding)["roleRef"]["name"], in_tests["metadata"]["name"]);
}
