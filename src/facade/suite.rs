//! A folder of scenarios as a test.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fast_glob::glob_match;

use super::content::Content;
use super::lockstep::{Ready, read_any};
use super::{Engine, Error, Report};
use kube_autoscaler_models::rules::{Release, VpaRelease};
use kube_lockstep_engines::input_file;
use kube_lockstep_report::counted;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_scenario::{AnyScenario, Scenario};
use kube_lockstep_sim::engine::Vpa;
use kube_lockstep_sim::run::Verdict;

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
    vpa_release: VpaRelease,
}

/// The scenarios of a suite.
#[derive(Debug)]
enum Selected {
    Hpa(Arc<Scenario>),
    Vpa(Arc<VpaScenario>),
}

impl Suite {
    /// Creates a suite of the scenarios below a folder whose paths match a glob. By default, it
    /// runs on the best available engine, on the newest release of Kubernetes.
    pub fn new(root: impl Into<PathBuf>, glob: impl Into<String>) -> Suite {
        let (root, glob) = (root.into(), glob.into());
        let (engine, release) = (Engine::default(), Release::NEWEST);
        Suite { root, glob, engine, release, vpa_release: VpaRelease::NEWEST }
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

    /// Sets the release of the recommender, for scenarios of VPAs.
    pub fn vpa_release(mut self, release: VpaRelease) -> Suite {
        self.vpa_release = release;
        self
    }

    /// Runs all scenarios, in the order of their paths.
    ///
    /// # Errors
    /// If the glob matches no scenario, a scenario is not valid, or the engine is not available.
    pub fn run(&self) -> Result<Vec<Report>, Error> {
        let engine = match std::env::var(ENGINE) {
            Ok(name) => name.parse().map_err(Error::EngineName)?,
            Err(_) => self.engine.clone(),
        };
        let scenarios = self.scenarios()?;
        // Each engine is prepared only if there are scenarios for it.
        let (mut hpa, mut vpa): (Option<Ready>, Option<Ready<Vpa>>) = (None, None);
        let mut reports = Vec::new();
        for scenario in &scenarios {
            reports.push(match scenario {
                Selected::Hpa(scenario) => {
                    let ready = match &mut hpa {
                        Some(ready) => ready,
                        none => none.insert(engine.prepare(self.release)?),
                    };
                    ready.run(scenario)
                }
                Selected::Vpa(scenario) => {
                    let ready = match &mut vpa {
                        Some(ready) => ready,
                        none => none.insert(engine.prepare(self.vpa_release)?),
                    };
                    ready.run(scenario)
                }
            });
        }
        Ok(reports)
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
        let mut releases: Vec<&str> =
            reports.iter().map(|report| report.outcome.release.as_str()).collect();
        releases.sort_unstable();
        releases.dedup();
        let mut summary = format!(
            "{} on {engine} {}: {conforming} conform, {failures} fail, {skipped} skipped",
            counted(all, "scenario"),
            releases.join(", ")
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

    fn scenarios(&self) -> Result<Vec<Selected>, Error> {
        let mut paths = Vec::new();
        files(&self.folder(), &mut paths)?;
        let below = |path: &Path| path.strip_prefix(&self.root).unwrap_or(path).to_owned();
        paths.retain(|path| glob_match(&self.glob, &*slashes(below(path))));
        // A file that can't be read gives an error when it is parsed.
        paths.retain(|path| {
            input_file::read(path).map_or(true, |text| Content::detect(&text) == Content::Scenario)
        });
        paths.sort();
        if paths.is_empty() {
            let why = format!("no scenario below {} matches", self.root.display());
            return Err(Error::Glob { glob: self.glob.clone(), why });
        }
        let read = |path: &PathBuf| {
            let read = read_any(path)?;
            let path = slashes(below(path));
            Ok(match read {
                AnyScenario::Hpa(it) => {
                    Selected::Hpa(Arc::new(Scenario { id: path.clone(), path, ..*it }))
                }
                AnyScenario::Vpa(it) => {
                    Selected::Vpa(Arc::new(VpaScenario { id: path.clone(), path, ..*it }))
                }
            })
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
/// conform, and if the glob matches no scenario. Other YAML files, such as manifests, are skipped.
/// Options are the methods of [`Suite`]:
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
            let id = |scenario: &Selected| match scenario {
                Selected::Hpa(scenario) => scenario.id.clone(),
                Selected::Vpa(scenario) => scenario.id.clone(),
            };
            scenarios.iter().map(id).collect()
        };
        let upper = "fixtures/tolerance/upper-edge-is-inclusive.yaml";
        assert_eq!(ids(upper), [upper]);
        assert_eq!(ids("fixtures/tol*/upper-edge-*.yaml"), [upper]);
        assert!(ids("fixtures/**/*-inclusive.yaml").contains(&upper.to_owned()));
    }

    #[test]
    fn scenarios_of_both_kinds_can_be_in_one_folder() {
        let reports = suite("fixtures/{vpa/runs/the-first-run,tolerance/upper-edge-*}.yaml").run();
        let reports = reports.expect("the fixtures are valid");
        let releases: Vec<&str> = reports.iter().map(|it| it.outcome.release.as_str()).collect();
        assert_eq!(releases, [Release::NEWEST.to_string(), VpaRelease::NEWEST.to_string()]);
        assert!(reports.iter().all(Report::conforms));
    }

    #[test]
    fn files_of_other_tools_are_skipped_and_misspelled_scenarios_are_errors() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("a file can be written");
        };
        let fixture = "fixtures/tolerance/upper-edge-is-inclusive.yaml";
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture);
        let text = fs::read_to_string(fixture).expect("the fixture can be read");
        write("scenario.yaml", &text);
        write("workflow.yaml", "on: push\njobs: {}\n");
        write("service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n");
        let suite = Suite::new(folder.path(), "*.yaml").engine(Engine::Model);
        let reports = suite.run().expect("the other files are skipped");
        assert_eq!(reports.iter().map(|it| &*it.outcome.id).collect::<Vec<_>>(), ["scenario.yaml"]);
        write("misspelled.yaml", &text.replace("kind: Scenario", "kind: Scenaro"));
        let error = suite.run().map(|reports| reports.len()).expect_err("a misspelled scenario");
        assert!(error.to_string().contains("misspelled.yaml"), "{error}");
    }

    #[test]
    fn a_glob_without_files_is_an_error() {
        for glob in ["fixtures/*.yaml.none", "nowhere/**/*.yaml"] {
            let error =
                suite(glob).run().map(|reports| reports.len()).expect_err("no file matches");
            assert!(
                error.to_string().starts_with(&format!("{glob}: no scenario below ")),
                "{error}"
            );
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
