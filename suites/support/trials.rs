//! Suites whose tests are known only at run time: they depend on the fixtures, on releases that an
//! environment variable names, or on programs that this machine may lack.
//!
//! A test that requires something that is not available is ignored, with the reason. The engines
//! are built before the tests run, since that takes minutes and must be visible.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use kube_autoscaler_models::rules::{AnyReleases, Release, Releases};
#[cfg(feature = "clusters")]
use kube_lockstep_clusters::embedded;
use kube_lockstep_engines::upstream::build;
use kube_lockstep_sim::engine::EngineError;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio_util::sync::CancellationToken;

/// A suite that collects its tests, and then runs them.
pub struct Suite {
    name: &'static str,
    arguments: Arguments,
    trials: Vec<Trial>,
}

/// Something that tests require.
#[derive(Clone)]
pub struct Requirement<T> {
    value: Result<T, String>,
    /// This machine lacks it: tests that require it are ignored. If it is broken, they fail.
    is_missing: bool,
}

impl<T> Requirement<T> {
    /// Whether this machine lacks it.
    pub fn is_missing(&self) -> bool {
        self.is_missing
    }

    /// Converts the value.
    pub fn map<U>(self, form: impl FnOnce(T) -> U) -> Requirement<U> {
        Requirement { value: self.value.map(form), is_missing: self.is_missing }
    }

    /// Combines two requirements.
    pub fn and<U>(self, other: Requirement<U>) -> Requirement<(T, U)> {
        let is_missing = self.is_missing || other.is_missing;
        let value = self.value.and_then(|value| other.value.map(|other| (value, other)));
        Requirement { value, is_missing }
    }

    /// Treats a missing value as broken.
    pub fn required(self) -> Requirement<T> {
        Requirement { is_missing: false, ..self }
    }

    /// The value, unless it is missing or broken.
    pub fn get(self) -> Result<T, Failed> {
        Ok(self.value?)
    }
}

impl Suite {
    /// A suite with the arguments of the command line.
    pub fn new(name: &'static str) -> Suite {
        Suite { name, arguments: Arguments::from_args(), trials: Vec::new() }
    }

    /// A suite that runs its tests one at a time: they share a cluster, or depend on real time.
    pub fn one_at_a_time(name: &'static str) -> Suite {
        let mut suite = Suite::new(name);
        suite.arguments.test_threads = Some(1);
        suite
    }

    /// The part of a name that selects tests.
    pub fn filter(&self) -> Option<&str> {
        self.arguments.filter.as_deref()
    }

    /// Writes a line to standard error.
    pub fn say(&self, line: &str) {
        say(self.name, line);
    }

    /// Provides a value that tests require. If tests are only listed, nothing is made or ignored.
    pub fn require<T>(
        &self,
        what: &str,
        make: impl FnOnce() -> Result<T, EngineError>,
    ) -> Requirement<T> {
        self.provide(what, make, |error| super::is_missing(&Err::<(), _>(error.clone())))
    }

    /// Like [`Suite::require`], for a value that this machine may lack even if it has Go.
    pub fn require_if_available<T>(
        &self,
        what: &str,
        make: impl FnOnce() -> Result<T, EngineError>,
    ) -> Requirement<T> {
        self.provide(what, make, |error| matches!(error, EngineError::Unavailable { .. }))
    }

    /// Requires that this machine has something.
    pub fn require_that(&self, what: &str, has: impl FnOnce() -> bool) -> Requirement<()> {
        if self.arguments.list || has() {
            return Requirement { value: Ok(()), is_missing: false };
        }
        self.say(&format!("tests that require {what} are ignored"));
        Requirement { value: Err(format!("this machine lacks {what}")), is_missing: true }
    }

    fn provide<T>(
        &self,
        what: &str,
        make: impl FnOnce() -> Result<T, EngineError>,
        is_missing: impl FnOnce(&EngineError) -> bool,
    ) -> Requirement<T> {
        if self.arguments.list {
            let value = Err("tests are only listed".to_owned());
            return Requirement { value, is_missing: false };
        }
        let made = make();
        let is_missing = made.as_ref().err().is_some_and(is_missing);
        if let Err(error) = &made {
            let effect = if is_missing { "are ignored" } else { "fail" };
            self.say(&format!("tests that require {what} {effect}: {error}"));
        }
        Requirement { value: made.map_err(|error| error.to_string()), is_missing }
    }

    /// Upstream's engine of a release in virtual time, built if necessary.
    pub fn upstream(&self, release: Release) -> Requirement<PathBuf> {
        self.require(&format!("upstream {release}"), || {
            build::ensure(
                build::Artifact::Host,
                release,
                &CancellationToken::new(),
                &mut self.stages(),
            )
        })
    }

    /// Upstream's engine of each of these releases, with the release.
    pub fn upstreams(
        &self,
        releases: impl Iterator<Item = Release>,
    ) -> Requirement<Vec<(Release, PathBuf)>> {
        let mut all = Requirement { value: Ok(Vec::new()), is_missing: false };
        for release in releases {
            let Requirement { value, is_missing } = self.upstream(release);
            all.is_missing |= is_missing;
            match (&mut all.value, value) {
                (Ok(programs), Ok(program)) => programs.push((release, program)),
                (Ok(_), Err(error)) => all.value = Err(error),
                (Err(_), _) => {}
            }
        }
        all
    }

    /// The program of a control plane, built if necessary.
    #[cfg(feature = "clusters")]
    pub fn control_plane(&self, release: Release) -> Requirement<PathBuf> {
        self.require(&format!("a control plane of {release}"), || {
            embedded::ensure(release, &CancellationToken::new(), &mut self.stages())
        })
    }

    /// Reports the progress of a build: each stage once, because the output is often a log.
    fn stages(&self) -> impl FnMut(&str, Option<f64>) {
        let (name, mut last) = (self.name, String::new());
        move |what: &str, _| {
            let stage = what.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
            if stage != last {
                say(name, &stage);
                last = stage;
            }
        }
    }

    /// Adds a test.
    pub fn test<F>(&mut self, name: impl Into<String>, test: F)
    where
        F: FnOnce() -> Result<(), Failed> + Send + 'static,
    {
        self.trials.push(Trial::test(name, test));
    }

    /// Adds a test, which is ignored if `is_ignored`.
    pub fn test_unless<F>(&mut self, is_ignored: bool, name: impl Into<String>, test: F)
    where
        F: FnOnce() -> Result<(), Failed> + Send + 'static,
    {
        let trial = Trial::test(name, test);
        self.trials.push(trial.with_ignored_flag(is_ignored && !self.arguments.list));
    }

    /// Adds a test that requires something.
    pub fn test_with<T, F>(&mut self, required: &Requirement<T>, name: impl Into<String>, test: F)
    where
        T: Clone + Send + 'static,
        F: FnOnce(T) -> Result<(), Failed> + Send + 'static,
    {
        let (is_missing, value) = (required.is_missing, required.value.clone());
        self.test_unless(is_missing, name, move || test(value?));
    }

    /// Runs the tests.
    pub fn run(self) -> ExitCode {
        libtest_mimic::run(&self.arguments, self.trials).exit_code()
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
