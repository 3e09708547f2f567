//! A folder of scenarios as a test.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fast_glob::glob_match;

use super::text_file::{self, is_scenario};
use super::{Engine, Error, Report};
use crate::model::rules::Release;
use crate::report::counted;
use crate::run::Verdict;
use crate::scenario::Scenario;

/// The environment variable that overrides the engine of all suites: `best`, `upstream` or `model`.
const ENGINE: &str = "KUBE_LOCKSTEP_ENGINE";

/// The scenarios that match a glob. [`suite!`](crate::suite) makes a test of them.
#[derive(Clone, Debug)]
#[must_use = "nothing is run before `run` or `assert_conforms` is called"]
pub struct Suite {
    root: PathBuf,
    glob: String,
    engine: Engine,
    release: Release,
}

impl Suite {
    /// Creates a suite of the scenarios below a folder whose paths match a glob. By default, it
    /// runs on the best available engine, on the newest release of Kubernetes.
    pub fn new(root: impl Into<PathBuf>, glob: impl Into<String>) -> Suite {
        let (root, glob) = (root.into(), glob.into());
        Suite { root, glob, engine: Engine::default(), release: Release::NEWEST }
    }

    /// Sets the engine. The environment variable `KUBE_LOCKSTEP_ENGINE` takes precedence.
    pub fn engine(mut self, engine: Engine) -> Suite {
        self.engine = engine;
        self
    }

    /// Sets the release of Kubernetes.
    pub fn release(mut self, release: Release) -> Suite {
        self.release = release;
        self
    }

    /// Runs all scenarios, in the order of their paths.
    ///
    /// # Errors
    /// If the glob matches no file, a file is not a valid scenario, or the engine is not available.
    pub fn run(&self) -> Result<Vec<Report>, Error> {
        let engine = match std::env::var(ENGINE) {
            Ok(name) => name.parse().map_err(Error::EngineName)?,
            Err(_) => self.engine.clone(),
        };
        let scenarios = self.scenarios()?;
        let mut ready = engine.prepare(self.release)?;
        Ok(scenarios.iter().map(|scenario| ready.run(scenario)).collect())
    }

    /// Prints the engine and the figures, and panics unless all scenarios conform. A scenario for
    /// other releases is skipped.
    ///
    /// # Panics
    /// If a scenario does not conform, with its report, or with the error of [`Suite::run`].
    #[track_caller]
    pub fn assert_conforms(&self) {
        let reports = self.run().unwrap_or_else(|error| panic!("{error}"));
        let skipped = |report: &&Report| matches!(report.outcome.verdict, Verdict::Skipped { .. });
        let failed: Vec<String> = reports
            .iter()
            .filter(|report| !report.conforms() && !skipped(report))
            .map(Report::to_string)
            .collect();
        let engine = reports.first().map_or("", |report| &report.outcome.engine);
        let (all, failures) = (reports.len(), failed.len());
        let skipped = reports.iter().filter(skipped).count();
        let conforming = all - failures - skipped;
        let mut summary = format!(
            "{} on {engine} {}: {conforming} conform, {failures} fail, {skipped} skipped",
            counted(all, "scenario"),
            self.release
        );
        if let Some(note) = reports.iter().find_map(|report| report.note.as_ref()) {
            summary += &format!(" ({note})");
        }
        // Written to stderr directly, because libtest hides the captured output of passing tests. A
        // failed write does not change the result.
        drop(writeln!(std::io::stderr(), "kube-lockstep: {}: {summary}", self.glob));
        assert!(failed.is_empty(), "{summary}\n\n{}", failed.join("\n\n"));
        assert!(conforming > 0, "{summary}: no scenario was run");
    }

    fn scenarios(&self) -> Result<Vec<Arc<Scenario>>, Error> {
        let mut paths = Vec::new();
        files(&self.folder(), &mut paths)?;
        let below = |path: &Path| path.strip_prefix(&self.root).unwrap_or(path).to_owned();
        paths.retain(|path| glob_match(&self.glob, &*slashes(below(path))));
        // A manifest that a scenario names is not a scenario. A file that can't be read gives an
        // error when it is parsed.
        paths.retain(|path| !text_file::read(path).is_ok_and(|text| !is_scenario(&text)));
        paths.sort();
        if paths.is_empty() {
            let why = format!("no file below {} matches", self.root.display());
            return Err(Error::Glob { glob: self.glob.clone(), why });
        }
        let read = |path: &PathBuf| {
            let scenario = Scenario::read(path)?;
            let path = slashes(below(path));
            Ok(Arc::new(Scenario { id: path.clone(), path, ..scenario }))
        };
        paths.iter().map(read).collect()
    }

    /// The folder of the glob: its components before the first wildcard.
    fn folder(&self) -> PathBuf {
        let components: Vec<&str> = self.glob.split('/').collect();
        let folders = components.iter().take(components.len() - 1);
        let fixed = folders.take_while(|name| !name.contains(['*', '?', '[', '{']));
        fixed.fold(self.root.clone(), |folder, name| folder.join(name))
    }
}

/// A relative path with slashes, on all platforms.
fn slashes(path: PathBuf) -> String {
    path.to_string_lossy().replace('\\', "/")
}

/// All files below a folder; none if it does not exist.
fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let error = |why: std::io::Error| Error::Io { path: folder.to_owned(), why: why.to_string() };
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(error)? {
        let entry = entry.map_err(error)?;
        if entry.file_type().map_err(error)?.is_dir() {
            files(&entry.path(), found)?;
        } else {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Makes a test of all scenarios whose paths match a glob, relative to the package.
///
/// In a file under `tests/`:
///
/// ```no_run
/// kube_lockstep::suite!("tests/hpa/**/*.yaml");
/// ```
///
/// The test is called `scenarios_conform`. It fails with the report of each scenario that does not
/// conform, and if the glob matches no file. Options are the methods of [`Suite`]:
///
/// ```no_run
/// use kube_lockstep::{Engine, Release};
///
/// kube_lockstep::suite!(
///     "tests/hpa/**/*.yaml",
///     engine = Engine::Upstream,
///     release = Release::NEWEST,
/// );
/// ```
///
/// For several suites in one file, put each into a separate module.
#[macro_export]
macro_rules! suite {
    ($glob:expr $(, $option:ident = $value:expr)* $(,)?) => {
        #[test]
        fn scenarios_conform() {
            $crate::Suite::new(::std::env!("CARGO_MANIFEST_DIR"), $glob)
                $(.$option($value))*
                .assert_conforms();
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(glob: &str) -> Suite {
        Suite::new(env!("CARGO_MANIFEST_DIR"), glob).engine(Engine::Model)
    }

    #[test]
    fn a_glob_selects_files_below_its_folder() {
        let ids = |glob: &str| -> Vec<String> {
            let scenarios = suite(glob).scenarios().expect("the fixtures are valid");
            scenarios.iter().map(|scenario| scenario.id.clone()).collect()
        };
        let upper = "fixtures/tolerance/upper-edge-is-inclusive.yaml";
        assert_eq!(ids(upper), [upper]);
        assert_eq!(ids("fixtures/tol*/upper-edge-*.yaml"), [upper]);
        assert!(ids("fixtures/**/*-inclusive.yaml").contains(&upper.to_owned()));
    }

    #[test]
    fn a_glob_without_files_is_an_error() {
        for glob in ["fixtures/*.yaml.none", "nowhere/**/*.yaml"] {
            let error =
                suite(glob).run().map(|reports| reports.len()).expect_err("no file matches");
            assert!(error.to_string().starts_with(&format!("{glob}: no file below ")), "{error}");
        }
    }

    #[test]
    #[should_panic(expected = ": 0 conform, 1 fail, 0 skipped")]
    fn an_unmet_expectation_fails_with_the_report() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let fixture = "fixtures/tolerance/upper-edge-is-inclusive.yaml";
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture);
        let text = fs::read_to_string(fixture).expect("the fixture can be read");
        let (text, _) = text.split_once("\nexpect:").expect("the fixture has expectations");
        let text = format!("{text}\nexpect:\n  - {{tick: 1, replicas: 99}}\n");
        fs::write(folder.path().join("wrong.yaml"), text).expect("a file can be written");
        Suite::new(folder.path(), "*.yaml").engine(Engine::Model).assert_conforms();
    }
}
