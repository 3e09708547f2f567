//! Another crate uses the library: offline, in a test of three
//! lines. The examples of `docs/library.md` compile there as tests.

use crate::support;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::trials::Suite;
use kube_lockstep::Release;
use libtest_mimic::Failed;

/// Adds the tests of this suite.
pub(crate) fn add_tests(suite: &mut Suite) {
    // They start cargo.
    suite.ignore_by_default();
    suite.test("three_lines_test_a_folder_of_scenarios", three_lines_test_a_folder_of_scenarios);
    suite.test(
        "the_examples_of_the_page_compile_as_tests",
        the_examples_of_the_page_compile_as_tests,
    );
}

/// A package that depends on this one. It is always in the same folder, so that cargo compiles it
/// once.
struct Package(PathBuf);

impl Package {
    fn new(folder: &str) -> Package {
        let package = Package(Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder));
        if package.0.exists() {
            fs::remove_dir_all(&package.0).expect("the package of an earlier run can be removed");
        }
        let repository = support::repository();
        // With the same settings for dependencies, so that they are not compiled again.
        let own = fs::read_to_string(repository.join("Cargo.toml")).expect("there is a manifest");
        let profiles = own.split("\n[profile.").filter(|it| it.starts_with("dev"));
        let profiles: String = profiles.map(|it| format!("[profile.{it}\n")).collect();
        assert!(profiles.contains("opt-level"), "{profiles}");
        let manifest = format!(
            "[package]\nname = \"uses-the-library\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
             [dev-dependencies.kube-lockstep]\npath = {:?}\n\n[workspace]\nresolver = \"1\"\n\n\
             {profiles}",
            repository.display()
        );
        package.write("Cargo.toml", &manifest);
        // The same versions, so that nothing is downloaded.
        let lock = fs::read_to_string(repository.join("Cargo.lock")).expect("there is a lock file");
        package.write("Cargo.lock", &lock);
        package.write("src/lib.rs", "");
        package
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
        fs::write(path, text).expect("a file can be written");
    }

    /// `cargo test`, on the model, which other suites compare with upstream.
    fn test(&self, options: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO"));
        command.args(["test", "--offline", "--quiet"]).args(options);
        command.current_dir(&self.0);
        // The target directory of the suites, so that shared dependencies are compiled once.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a target folder");
        command.env("CARGO_TARGET_DIR", target).env("KUBE_LOCKSTEP_ENGINE", "model");
        command.output().expect("cargo can be run")
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

/// The test of three lines.
const HPA: [&str; 2] = ["--test", "hpa"];

fn three_lines_test_a_folder_of_scenarios() -> Result<(), Failed> {
    let package = Package::new("library");
    package.write("tests/hpa.rs", "kube_lockstep::suite!(\"tests/hpa/**/*.yaml\");\n");
    let empty = package.test(&HPA);
    assert!(!empty.status.success(), "{}", text(&empty));
    assert!(text(&empty).contains("tests/hpa/**/*.yaml: no scenario below"), "{}", text(&empty));

    let fixture = support::repository().join("fixtures/tolerance/upper-edge-is-inclusive.yaml");
    let scenario = fs::read_to_string(fixture).expect("the fixture can be read");
    package.write("tests/hpa/tolerance/upper-edge.yaml", &scenario);
    let conforms = package.test(&HPA);
    assert!(conforms.status.success(), "{}", text(&conforms));
    let newest = Release::NEWEST;
    let summary =
        format!("tests/hpa/**/*.yaml: 1 scenario on model {newest}: 1 conform, 0 fail, 0 skipped");
    assert!(text(&conforms).contains(&summary), "{}", text(&conforms));

    let (before, _) = scenario.split_once("\nexpect:").expect("the fixture has expectations");
    let wrong = format!("{before}\nexpect:\n  - {{tick: 1, replicas: 99}}\n");
    package.write("tests/hpa/wrong.yaml", &wrong);
    let fails = package.test(&HPA);
    assert!(!fails.status.success(), "{}", text(&fails));
    for part in [
        &*format!("2 scenarios on model {newest}: 1 conform, 1 fail, 0 skipped"),
        "unmet  tests/hpa/wrong.yaml",
        "tests/hpa/wrong.yaml:",
        "expected 99",
    ] {
        assert!(text(&fails).contains(part), "no {part:?} in {}", text(&fails));
    }
    Ok(())
}

/// The examples in Rust of a page in Markdown.
fn examples(page: &str) -> Vec<&str> {
    let blocks = page.split("```rust\n").skip(1);
    blocks.map(|block| block.split_once("```").expect("the block ends").0).collect()
}

/// rustdoc would leave out functions with `#[test]`, and what `suite!` expands to.
fn the_examples_of_the_page_compile_as_tests() -> Result<(), Failed> {
    let page = support::repository().join("docs/library.md");
    let page = fs::read_to_string(page).expect("the page can be read");
    let examples = examples(&page);
    assert!(examples.len() >= 3, "{examples:#?}");
    let package = Package::new("library-page");
    let module = |(number, example)| format!("mod example_{number} {{\n{example}}}\n");
    let test: String = examples.iter().enumerate().map(module).collect();
    package.write("tests/page.rs", &test);
    package.write("tests/wrong.rs", &test.replace("replicas_at", "replicas_in"));
    let compiles = package.test(&["--no-run", "--test", "page"]);
    assert!(compiles.status.success(), "{}", text(&compiles));
    let fails = package.test(&["--no-run", "--test", "wrong"]);
    assert!(text(&fails).contains("no method named `replicas_in`"), "{}", text(&fails));
    Ok(())
}
