//! A run as JUnit's XML, which most CI systems read: one suite for each release, one test case for
//! each scenario.
//!
//! Divergences and unmet expectations are failures, scenarios without a verdict are errors. The
//! files follow the schema of Jenkins.

use std::io::{self, Write};
use std::time::Duration;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::{CutOff, Report, plain};
use kube_lockstep_sim::run::{Event, Outcome, Setting, Summary, Verdict};

/// The report as JUnit's XML. It is written at the end of the run.
#[derive(Debug)]
pub struct Junit<W> {
    out: W,
    setting: Option<Setting>,
    suites: Vec<TestSuite>,
}

/// The width of texts.
const COLUMNS: usize = 100;

impl<W: Write> Junit<W> {
    /// Creates a report that writes to `out`.
    pub fn new(out: W) -> Junit<W> {
        Junit { out, setting: None, suites: Vec::new() }
    }

    /// Returns the writer.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn add(&mut self, name: &str, case: TestCase) {
        match self.suites.iter_mut().find(|suite| suite.name.as_str() == name) {
            Some(suite) => {
                let (before, more) =
                    (suite.time.unwrap_or_default(), case.time.unwrap_or_default());
                suite.set_time(before.saturating_add(more));
                suite.add_test_case(case);
            }
            None => {
                let mut suite = TestSuite::new(name);
                suite.set_time(case.time.unwrap_or_default());
                suite.add_test_case(case);
                self.suites.push(suite);
            }
        }
    }

    /// Adds a failure or an error that belongs to no scenario.
    fn add_to_run(&mut self, kind: NonSuccessKind, name: &str, message: &str) {
        let mut status = TestCaseStatus::non_success(kind);
        status.set_type(name).set_message(message);
        let mut case = TestCase::new(name, status);
        case.set_classname("run");
        self.add("run", case);
    }

    fn write(&mut self, summary: Option<&Summary>) -> io::Result<()> {
        let mut report = quick_junit::Report::new("kube-lockstep");
        let times = || self.suites.iter().filter_map(|suite| suite.time);
        let all = || times().fold(Duration::ZERO, Duration::saturating_add);
        report.set_time(summary.map_or_else(all, |summary| summary.elapsed));
        report.add_test_suites(std::mem::take(&mut self.suites));
        self.out.write_all(document(&report)?.as_bytes())?;
        self.out.flush()
    }
}

/// A report as text that follows the schema of Jenkins.
///
/// # Errors
/// If the report can't be written as XML.
pub fn document(report: &quick_junit::Report) -> io::Result<String> {
    let text = report.to_string().map_err(io::Error::other)?;
    // Jenkins' schema allows this attribute on suites, but not on the root.
    let root_end = text.find("<testsuite ").unwrap_or(text.len());
    let (root, suites) = text.split_at(root_end);
    let root = root.replacen(&format!(" skipped=\"{}\"", report.skipped), "", 1);
    Ok(format!("{root}{suites}"))
}

impl<W: Write> Report for Junit<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Preparing(_) => Ok(()),
            Event::Started { setting, .. } => {
                self.setting = Some(setting.clone());
                Ok(())
            }
            Event::Finished(outcome) => {
                let suite = format!("{} {}", outcome.engine, outcome.release);
                let case = test_case(outcome, self.setting.as_ref());
                self.add(&suite, case);
                Ok(())
            }
            Event::Ended(summary) => {
                for entry in &summary.stale_known {
                    let message = format!("{entry} no longer disagrees");
                    self.add_to_run(NonSuccessKind::Failure, "divergences.yaml", &message);
                }
                for part in &summary.missing {
                    self.add_to_run(NonSuccessKind::Error, "missing", part);
                }
                self.write(Some(summary))
            }
        }
    }

    fn cut_off(&mut self, cause: CutOff<'_>) -> io::Result<()> {
        self.add_to_run(NonSuccessKind::Error, "incomplete", cause.why);
        self.write(None)
    }
}

fn test_case(outcome: &Outcome, setting: Option<&Setting>) -> TestCase {
    let mut case = TestCase::new(&*outcome.id, status(outcome, setting));
    case.set_classname(class_name(outcome));
    case.set_time(outcome.elapsed);
    let notes = outcome.notes.iter().filter(|note| !note.is_about_reading);
    let notes = notes.map(|note| format!("note: {}: {}\n", note.place(&outcome.path), note.what));
    let notes: String = notes.collect();
    if !notes.is_empty() {
        case.set_system_out(notes);
    }
    case
}

/// The folder of the scenario. CI systems group test cases by the class name, whose parts are
/// separated by dots.
fn class_name(outcome: &Outcome) -> String {
    let area = outcome.id.rsplit_once('/').map_or("", |(area, _)| area);
    let is_fixture = outcome.path.strip_prefix("fixtures/").is_some_and(|below| {
        below.strip_prefix(&*outcome.id).is_some_and(|extension| extension.starts_with('.'))
    });
    let folders = area.split('/').filter(|folder| !matches!(*folder, "" | "." | ".."));
    let folders: Vec<&str> = is_fixture.then_some("fixtures").into_iter().chain(folders).collect();
    if folders.is_empty() { "scenarios".to_owned() } else { folders.join(".") }
}

fn status(outcome: &Outcome, setting: Option<&Setting>) -> TestCaseStatus {
    let (kind, name, message) = match &outcome.verdict {
        Verdict::Conforms => return TestCaseStatus::success(),
        Verdict::Skipped { why } => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(why.to_string());
            return status;
        }
        Verdict::Diverges(_) | Verdict::Unmet => {
            (NonSuccessKind::Failure, outcome.verdict.name(), super::headline(outcome))
        }
        Verdict::Inconclusive { .. } => {
            (NonSuccessKind::Error, outcome.verdict.name(), super::headline(outcome))
        }
    };
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(name).set_message(message);
    let text = super::outcome::text(outcome, setting, COLUMNS).unwrap_or_default();
    status.set_description(plain(&text));
    status
}
