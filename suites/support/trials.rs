//! Test programs whose tests are known only at run time: the tests depend on the fixtures, on the
//! releases that an environment variable names, or on programs that this machine may lack.
//!
//! A program has several suites, and the name of a test begins with the name of its suite. A
//! requirement of tests is made when the first of them runs, so a filter builds nothing in vain. A
//! test is ignored, with the reason, if this machine lacks one of its requirements.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, LazyLock};

use kube_autoscaler_models::rules::{AnyReleases, Release, Releases};
#[cfg(feature = "clusters")]
use kube_lockstep_clusters::embedded;
use kube_lockstep_engines::upstream::build;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::Preparation;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio_util::sync::CancellationToken;

/// When the tests of a suite run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Together with those of other suites.
    Together,
    /// Concurrently, but not with those of other suites: they depend on real time.
    Alone,
    /// One at a time: they share a cluster, or depend on real time.
    OneAtATime,
}

/// The name of a suite, when its tests run, and the function that adds them.
pub type Entry = (&'static str, Order, fn(&mut Suite));

/// A suite, to which the tests are added.
pub struct Suite {
    name: &'static str,
    arguments: Arguments,
    trials: Vec<Trial>,
    /// True if the next tests are ignored without `--include-ignored`.
    is_ignored: bool,
    at_end: fn(),
}

/// Runs the selected tests of these suites.
pub fn run(suites: &[Entry]) -> ExitCode {
    let arguments = Arguments::from_args();
    let mut together = Vec::new();
    let mut separate = Vec::new();
    for &(name, order, add_tests) in suites {
        let arguments = arguments.clone();
        let mut suite =
            Suite { name, arguments, trials: Vec::new(), is_ignored: false, at_end: || {} };
        add_tests(&mut suite);
        assert_unique(&suite.trials);
        if order == Order::Together || suite.arguments.list {
            together.append(&mut suite.trials);
        } else {
            separate.push((order, suite));
        }
    }
    let mut has_failed = libtest_mimic::run(&arguments, together).has_failed();
    for (order, mut suite) in separate {
        if order == Order::OneAtATime {
            suite.arguments.test_threads = Some(1);
        }
        suite.trials.retain(|trial| !suite.arguments.is_filtered_out(trial));
        if !suite.trials.is_empty() {
            has_failed |= libtest_mimic::run(&suite.arguments, suite.trials).has_failed();
            (suite.at_end)();
        }
    }
    if has_failed { ExitCode::from(101) } else { ExitCode::SUCCESS }
}

/// A filter could not select one of two tests with the same name.
fn assert_unique(trials: &[Trial]) {
    let mut names = BTreeSet::new();
    for trial in trials {
        assert!(names.insert(trial.name()), "two tests have the name {}", trial.name());
    }
}

/// Why something is not available.
#[derive(Clone)]
enum Absence {
    /// This machine lacks it: tests that require it are ignored.
    Missing(String),
    /// It can't be made: tests that require it fail.
    Broken(String),
}

/// The function that makes a value.
type Make<T> = Box<dyn FnOnce() -> Result<T, Absence> + Send>;

/// Something that tests require, which is made when the first test asks for it.
#[derive(Clone)]
pub struct Requirement<T>(Arc<LazyLock<Result<T, Absence>, Make<T>>>);

impl<T: Clone + Send + Sync + 'static> Requirement<T> {
    fn new(make: impl FnOnce() -> Result<T, Absence> + Send + 'static) -> Requirement<T> {
        Requirement(Arc::new(LazyLock::new(Box::new(make))))
    }

    fn get(&self) -> Result<T, Absence> {
        LazyLock::force(&self.0).clone()
    }

    /// Makes a value from this one. If that fails, the tests that require the new value fail.
    pub fn and_then<U: Clone + Send + Sync + 'static>(
        &self,
        make: impl FnOnce(T) -> Result<U, String> + Send + 'static,
    ) -> Requirement<U> {
        let this = self.clone();
        Requirement::new(move || make(this.get()?).map_err(Absence::Broken))
    }

    /// Converts the value.
    pub fn map<U: Clone + Send + Sync + 'static>(
        &self,
        form: impl FnOnce(T) -> U + Send + 'static,
    ) -> Requirement<U> {
        self.and_then(|value| Ok(form(value)))
    }

    /// Combines two requirements.
    pub fn and<U: Clone + Send + Sync + 'static>(
        &self,
        other: &Requirement<U>,
    ) -> Requirement<(T, U)> {
        let (this, other) = (self.clone(), other.clone());
        Requirement::new(move || Ok((this.get()?, other.get()?)))
    }

    /// Treats a missing value as broken.
    pub fn required(&self) -> Requirement<T> {
        let this = self.clone();
        Requirement::new(move || match this.get() {
            Err(Absence::Missing(why)) => Err(Absence::Broken(why)),
            other => other,
        })
    }
}

impl Suite {
    /// Ignores the tests that are added from here on, except with `--include-ignored`. For tests
    /// that start cargo or a browser, or build older releases.
    pub fn ignore_by_default(&mut self) {
        self.is_ignored = true;
    }

    /// Sets a function that is called after the last test.
    pub fn at_end(&mut self, at_end: fn()) {
        self.at_end = at_end;
    }

    /// Returns true if the command line selects a test.
    pub fn selects(&self, name: &str) -> bool {
        !self.arguments.is_filtered_out(&Trial::test(self.full_name(name), || Ok(())))
    }

    fn full_name(&self, name: &str) -> String {
        format!("{}::{name}", self.name)
    }

    /// A value that tests require. It is missing if this machine has no Go to build it.
    pub fn require<T: Clone + Send + Sync + 'static>(
        &self,
        make: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
    ) -> Requirement<T> {
        provide(make, |error| super::is_missing(&Err::<(), _>(error.clone())))
    }

    /// Like [`Suite::require`], for a value that this machine may lack even if it has Go.
    pub fn require_if_available<T: Clone + Send + Sync + 'static>(
        &self,
        make: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
    ) -> Requirement<T> {
        provide(make, |error| matches!(error, EngineError::Unavailable { .. }))
    }

    /// Requires that this machine has something.
    pub fn require_that(
        &self,
        what: &str,
        has: impl FnOnce() -> bool + Send + 'static,
    ) -> Requirement<()> {
        let missing = Absence::Missing(format!("requires {what}"));
        Requirement::new(move || if has() { Ok(()) } else { Err(missing) })
    }

    /// Upstream's engine of a release in virtual time, built if necessary.
    pub fn upstream(&self, release: Release) -> Requirement<PathBuf> {
        let mut stages = stages(self.name);
        self.require(move || {
            build::ensure(build::Artifact::Host, release, &CancellationToken::new(), &mut stages)
        })
    }

    /// Upstream's engine of each of these releases, with the release.
    pub fn upstreams(
        &self,
        releases: impl Iterator<Item = Release>,
    ) -> Requirement<Vec<(Release, PathBuf)>> {
        let all: Vec<_> = releases.map(|release| (release, self.upstream(release))).collect();
        Requirement::new(move || {
            all.into_iter().map(|(release, program)| Ok((release, program.get()?))).collect()
        })
    }

    /// The program of a control plane, built if necessary.
    #[cfg(feature = "clusters")]
    pub fn control_plane(&self, release: Release) -> Requirement<PathBuf> {
        let mut stages = stages(self.name);
        self.require(move || embedded::ensure(release, &CancellationToken::new(), &mut stages))
    }

    /// Adds a test.
    pub fn test<F>(&mut self, name: impl Into<String>, test: F)
    where
        F: FnOnce() -> Result<(), Failed> + Send + 'static,
    {
        self.add(name.into(), || test().map(|()| Completion::Completed));
    }

    /// Adds a test that requires something.
    pub fn test_with<T, F>(&mut self, required: &Requirement<T>, name: impl Into<String>, test: F)
    where
        T: Clone + Send + Sync + 'static,
        F: FnOnce(T) -> Result<(), Failed> + Send + 'static,
    {
        self.test_or_ignore(required, name, |value| test(value).map(|()| Completion::Completed));
    }

    /// Adds a test that requires something, and that can be ignored for other reasons, too.
    pub fn test_or_ignore<T, F>(
        &mut self,
        required: &Requirement<T>,
        name: impl Into<String>,
        test: F,
    ) where
        T: Clone + Send + Sync + 'static,
        F: FnOnce(T) -> Result<Completion, Failed> + Send + 'static,
    {
        let required = required.clone();
        self.add(name.into(), move || match required.get() {
            Ok(value) => test(value),
            Err(Absence::Missing(why)) => Ok(Completion::ignored_with(why)),
            Err(Absence::Broken(why)) => Err(why.into()),
        });
    }

    fn add<F>(&mut self, name: String, test: F)
    where
        F: FnOnce() -> Result<Completion, Failed> + Send + 'static,
    {
        let trial = Trial::ignorable_test(self.full_name(&name), test);
        self.trials.push(trial.with_ignored_flag(self.is_ignored));
    }
}

fn provide<T: Clone + Send + Sync + 'static>(
    make: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
    is_missing: impl FnOnce(&EngineError) -> bool + Send + 'static,
) -> Requirement<T> {
    Requirement::new(|| {
        make().map_err(|error| {
            let absence = if is_missing(&error) { Absence::Missing } else { Absence::Broken };
            absence(error.to_string())
        })
    })
}

/// Reports the progress of a build: each stage once, because the output is often a log.
fn stages(suite: &'static str) -> impl FnMut(Preparation) {
    let mut last = String::new();
    move |preparation| {
        let text = preparation.to_string();
        let stage = text.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        if stage != last {
            say(suite, &stage);
            last = stage;
        }
    }
}

/// The releases of Kubernetes that an environment variable names, in the form of `--release`. If it
/// is not set, or names only releases of the VPA: the newest release.
pub fn releases(variable: &str) -> Releases {
    let named = named_releases(variable).and_then(|named| named.kubernetes);
    named.unwrap_or_else(|| Releases::only(Release::NEWEST))
}

/// The releases of Kubernetes and of the VPA that an environment variable names, if it is set.
pub fn named_releases(variable: &str) -> Option<AnyReleases> {
    let text = std::env::var(variable).ok()?;
    let parsed = AnyReleases::parse(&text, Release::known);
    Some(parsed.unwrap_or_else(|error| panic!("{variable}: {error}")))
}

/// Writes a line to standard error.
pub fn say(suite: &str, line: &str) {
    // A closed output is ignored.
    drop(writeln!(std::io::stderr(), "{suite}: {line}"));
}
