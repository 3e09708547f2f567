//! The house rules that a program can check: dependencies between modules, mentions of releases,
//! the length and parameters of functions, and the dependencies of the pure half.

#[path = "tidy/cycles.rs"]
mod cycles;
#[path = "tidy/functions.rs"]
mod functions;
#[path = "tidy/imports.rs"]
mod imports;
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use functions::Outline;
use imports::Sources;

/// A module at the top of the crate.
struct Module {
    name: &'static str,
    /// Its row in the code map of `src/lib.rs`, which is generated from here. Empty: no row.
    purpose: &'static str,
    /// The paths below `crate::` that it may use besides itself. `*` allows everything.
    may_use: &'static [&'static str],
}

const fn module(
    name: &'static str,
    purpose: &'static str,
    may_use: &'static [&'static str],
) -> Module {
    Module { name, purpose, may_use }
}

/// The modules.
const MODULES: &[Module] = &[
    module(
        "model",
        "the reference models of the HPA and of the VPA's recommender: pure, deterministic, fast",
        &[],
    ),
    module("scenario", "scenario files: parsing, validation, writing", &["model"]),
    module("world", "pods, workloads and metrics over time", &["model", "scenario", "trace"]),
    module("trace", "observations of a controller; their JSON and recorded forms", &["model"]),
    module("compare", "the comparison of observations", &["model", "trace"]),
    module("expect", "the expectations of scenarios", &["model", "scenario"]),
    module("fuzz", "generated scenarios, and shrinking", &["model", "scenario", "world"]),
    module("engine", "the engines that run scenarios", &["model", "scenario", "world", "trace"]),
    module(
        "run",
        "runs, verdicts and events",
        &["model", "scenario", "world", "trace", "compare", "expect", "fuzz", "engine"],
    ),
    module(
        "report",
        "reports as text, JSON, pages, and in the formats of CI systems",
        &["model", "trace", "compare", "expect", "run", "scenario", "fuzz"],
    ),
    module(
        "facade",
        "the main types of the library",
        &["model", "scenario", "expect", "engine", "run", "report"],
    ),
    module("cli", "the command, one file per subcommand", &["*"]),
    module("lib", "", &["*"]),
    module("main", "", &["*"]),
];

/// The longest function, in lines from its signature to its closing brace.
const FUNCTION_LINES: usize = 70;

/// Functions that are still longer, by name. An entry that is no longer needed fails the test.
const KNOWN_LONG_FUNCTIONS: &[&str] = &[];

/// Functions that still have a tuple parameter, by name. An entry that is no longer needed fails
/// the test.
const KNOWN_TUPLE_PARAMETERS: &[&str] = &[];

/// The parts of known dependency cycles: of each cycle that contains a folder, and of each cycle of
/// files below `engine`. An entry that is no longer needed fails the test.
const KNOWN_CYCLES: &[&str] = &[];

/// Names that the pure half must not contain.
const IMPURE: &[&str] =
    &["std::fs", "std::net", "std::process", "std::env", "SystemTime", "Instant::now", "tokio"];
const PURE: &[&str] = &["model", "scenario", "world", "trace", "compare", "expect", "fuzz"];

fn sources() -> Vec<(String, PathBuf, String)> {
    let found = sources_below("src");
    assert!(found.len() > 20, "no sources were found");
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
fn modules_use_only_permitted_modules() {
    let mut wrong = Vec::new();
    for source in Sources::read(&support::repository().join("src")).0 {
        let module = source.module.first().map_or("lib", String::as_str);
        let Some(row) = MODULES.iter().find(|row| row.name == module) else {
            wrong.push(format!("{module} is not in the table"));
            continue;
        };
        for used in &source.uses {
            let target = used.target.join("::");
            let is_below = |module: &str| {
                target.strip_prefix(module).is_some_and(|it| it.is_empty() || it.starts_with("::"))
            };
            if !is_below(row.name) && !row.may_use.iter().any(|may| *may == "*" || is_below(may)) {
                wrong.push(format!("{}: {module} uses {target}", show(&source.path, used.line)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn folders_and_cluster_files_have_no_dependency_cycles() {
    let sources = Sources::read(&support::repository().join("src"));
    let is_folder = |path: &str| {
        let path: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        let is_below = |source: &imports::Source| {
            source.module.len() > path.len() && source.module.iter().zip(&path).all(|(a, b)| a == b)
        };
        sources.0.iter().any(is_below)
    };
    let mut found = BTreeSet::new();
    for (folder, graph) in cycles::graphs(&sources) {
        for cycle in cycles::cycles(&graph) {
            let parts: Vec<String> = cycle.iter().map(|part| format!("{folder}/{part}")).collect();
            let is_checked = folder == "engine" || folder.starts_with("engine/");
            if is_checked || parts.iter().any(|part| is_folder(part)) {
                found.extend(parts);
            }
        }
    }
    let known: BTreeSet<String> = KNOWN_CYCLES.iter().map(|part| (*part).to_owned()).collect();
    let new: Vec<_> = found.difference(&known).collect();
    let stale: Vec<_> = known.difference(&found).collect();
    assert!(new.is_empty(), "parts of a dependency cycle: {new:#?}");
    assert!(stale.is_empty(), "no longer in a cycle, remove from KNOWN_CYCLES: {stale:#?}");
}

/// The crate has a cycle through `super::super`, a re-export and a macro.
#[test]
fn imports_are_read_as_the_compiler_reads_them() {
    let root = tempfile::tempdir().expect("a temporary folder");
    for (path, text) in [
        ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::Inner;\n"),
        ("a/mod.rs", "mod inner;\npub use inner::{Inner, other as renamed};\n"),
        ("a/inner.rs", "use super::super::b;\n#[cfg(test)]\nmod tests { use crate::c::C; }\n"),
        ("b.rs", "use crate::{c::C};\nfn f() { println!(\"{}\", crate::a::renamed()) }\n"),
        ("c.rs", "pub struct C;\n/// [`crate::b`]\nfn f() { \"crate::b\"; }\n"),
    ] {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
        fs::write(path, text).expect("a file can be written");
    }
    let sources = Sources::read(root.path());
    let graphs = cycles::graphs(&sources);
    let cycle = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
    assert_eq!(cycles::cycles(&graphs[""]), [cycle], "{graphs:?}");
    assert!(graphs[""]["b"].contains("c") && !graphs[""].contains_key("c"), "{graphs:?}");
    let split = |path: &str| path.split("::").map(str::to_owned).collect::<Vec<_>>();
    for path in ["Inner", "a::Inner", "a::renamed", "a::inner::other"] {
        assert_eq!(sources.module_of(&split(path)).module, ["a", "inner"], "{path}");
    }
}

#[test]
fn the_pure_half_uses_no_clock_no_files_and_no_processes() {
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
fn the_pure_half_and_its_pages_depend_on_nothing_that_does_io() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--no-default-features", "--features", "pages"])
        .args(["--edges", "normal", "--prefix", "none", "--manifest-path"])
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

/// The playground predicts the same as the program if both have the same dependencies.
#[test]
fn the_playground_has_the_dependencies_of_the_program() {
    let packages = |path: &str| {
        let text = fs::read_to_string(support::repository().join(path)).expect("a lock file");
        let blocks = text.split("[[package]]").skip(1);
        let head = |block: &str| block.trim().lines().take(2).collect::<Vec<_>>().join(" ");
        blocks.map(head).collect::<BTreeSet<String>>()
    };
    let (program, playground) = (packages("Cargo.lock"), packages("playground/Cargo.lock"));
    assert!(playground.len() > 40, "an empty list proves nothing");
    let own = |line: &&String| line.contains("\"kube-lockstep-playground\"");
    let other: Vec<&String> = playground.difference(&program).filter(|it| !own(it)).collect();
    assert!(
        other.is_empty(),
        "copy Cargo.lock to playground/ and run `cargo metadata` there: {other:#?}"
    );
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
        "dependencies that tests compile with more features; see \"shared with the tests\" in \
         Cargo.toml: {other:#?}"
    );
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
    for folder in ["src", "benches", "examples", "suites", "playground/src"] {
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
    let files = ["upstream", "ci", "suites"].into_iter().flat_map(|it| files_below(it, "go"));
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
    let of_product = functions.iter().filter(|function| !function.outline.is_test);
    let tuples = of_product.filter(|function| function.outline.tuple_parameters > 0);
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
    fn of_tests() {}
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
        ("of_tests", 14, 1, 0, true),
        ("no_body", 15, 1, 1, false),
        ("product", 18, 1, 0, false),
        ("a_test", 22, 1, 0, true),
        ("last", 24, 1, 0, false),
    ];
    assert_eq!(read, expected);
    let tests: Vec<_> = (1..=24).filter(|line| outline.is_test(*line)).collect();
    assert_eq!(tests, [10, 11, 13, 14, 19, 20, 21, 22, 23]);
}

/// The code map of `src/lib.rs` is generated from [`MODULES`].
#[test]
fn the_code_map_is_up_to_date() {
    let path = support::repository().join("src/lib.rs");
    let text = fs::read_to_string(&path).expect("src/lib.rs can be read");
    let head = "//! | module | purpose | may use |\n//! |---|---|---|\n";
    let (before, rest) = text.split_once(head).expect("the head of the code map");
    let after: Vec<&str> = rest.lines().skip_while(|line| line.starts_with("//! |")).collect();
    let mut rows = String::new();
    for module in MODULES.iter().filter(|module| !module.purpose.is_empty()) {
        let may_use: Vec<_> = module.may_use.iter().map(|name| format!("`{name}`")).collect();
        let may_use = match module.may_use {
            [] => "no other module".to_owned(),
            ["*"] => "everything".to_owned(),
            _ => may_use.join(", "),
        };
        // Documentation can't link to a private module.
        let name = match text.contains(&format!("\npub mod {};\n", module.name)) {
            true => format!("[`{}`]", module.name),
            false => format!("`{}`", module.name),
        };
        rows += &format!("//! | {name} | {} | {may_use} |\n", module.purpose);
    }
    let written = format!("{before}{head}{rows}{}\n", after.join("\n"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, written).expect("src/lib.rs can be written");
        return;
    }
    assert_eq!(text, written, "run `UPDATE_DOCS=1 cargo test --test tidy`");
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

/// The README and the pages of docs/.
fn documents() -> Vec<PathBuf> {
    let pages = files_below("docs", "md").into_iter().map(|(_, path, _)| path);
    pages.chain([support::repository().join("README.md")]).collect()
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
            wrong.extend(kube_lockstep::scenario::parse_any(&path, block, &no_files).err());
        }
    }
    assert!(checked >= 4, "only {checked} scenarios were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Links of the README and of docs/ that point into the repository.
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
        serde_json::from_str(&read("src/engine/cluster/access/role.json")).expect("JSON");
    assert_eq!(yaml(role), in_tests);
    assert_eq!(yaml(binding)["roleRef"]["name"], in_tests["metadata"]["name"]);
}
