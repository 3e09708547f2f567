//! A run for GitHub Actions: an annotation at the line of each scenario that does not conform, and
//! a job summary.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::markdown::Markdown;
use super::{CutOff, Report, counted, headline};
use kube_lockstep_scenario::{Diagnostic, Place};
use kube_lockstep_sim::run::{Event, Outcome, Verdict};

/// The report for GitHub Actions.
#[derive(Debug)]
pub struct Github<W, S> {
    out: W,
    /// The job summary.
    summary: Option<Markdown<S>>,
    folders: Folders,
}

/// The folders that make the paths of annotations relative to the repository.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Folders {
    /// The repository's folder.
    pub workspace: Option<PathBuf>,
    /// The current folder.
    pub current: PathBuf,
}

impl Folders {
    /// The path of a file, relative to the repository if it is there.
    fn relative(&self, path: &str) -> String {
        let Some(workspace) = &self.workspace else { return path.to_owned() };
        let absolute = self.current.join(path.strip_prefix("./").unwrap_or(path));
        let below: &Path = absolute.strip_prefix(workspace).unwrap_or(Path::new(path));
        below.to_string_lossy().into_owned()
    }
}

impl<W: Write, S: Write> Github<W, S> {
    /// Creates a report that writes annotations to `out`, and the job summary to `summary`.
    pub fn new(out: W, summary: Option<S>, folders: Folders) -> Github<W, S> {
        Github { out, summary: summary.map(Markdown::new), folders }
    }

    /// Returns the writers.
    pub fn into_inner(self) -> (W, Option<S>) {
        (self.out, self.summary.map(Markdown::into_inner))
    }

    fn annotate(&mut self, outcome: &Outcome) -> io::Result<()> {
        let title = format!("{} {}: {}", outcome.verdict.name(), outcome.release, outcome.id);
        let mut annotate = |line: usize, message: &str| {
            let file = property(&self.folders.relative(&outcome.path));
            let (title, message) = (property(&title), data(message));
            writeln!(self.out, "::error file={file},line={line},title={title}::{message}")
        };
        match &outcome.verdict {
            Verdict::Conforms | Verdict::Skipped { .. } => {}
            Verdict::Diverges(_) | Verdict::Inconclusive { .. } => {
                annotate(outcome.line, &headline(outcome))?;
            }
            Verdict::Unmet => {}
        }
        if matches!(outcome.verdict, Verdict::Diverges(_) | Verdict::Unmet) {
            for unmet in &outcome.unmet {
                annotate(unmet.line, &unmet.what)?;
            }
        }
        Ok(())
    }

    /// An annotation at an error of a scenario file.
    fn invalid(&mut self, file: &str, problem: &Diagnostic) -> io::Result<()> {
        let file = property(&self.folders.relative(file));
        let message = data(&problem.in_one_line("\nhint: "));
        write!(self.out, "::error file={file}")?;
        if let Some(Place { line, column, .. }) = problem.place.as_deref() {
            write!(self.out, ",line={line},col={column}")?;
        }
        writeln!(self.out, ",title=invalid scenario::{message}")
    }

    fn general(&mut self, message: &str) -> io::Result<()> {
        writeln!(self.out, "::error title=kube-lockstep::{}", data(message))
    }
}

impl<W: Write, S: Write> Report for Github<W, S> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Preparing(_) | Event::Started { .. } => {}
            Event::Finished(outcome) => self.annotate(outcome)?,
            Event::Ended(summary) => {
                for entry in &summary.stale_known {
                    self.general(&format!("{entry} no longer disagrees"))?;
                }
                if !summary.missing.is_empty() {
                    let parts = counted(summary.missing.len(), "part");
                    let list = summary.missing.join("\n");
                    self.general(&format!("{parts} of the run missing:\n{list}"))?;
                }
                self.out.flush()?;
            }
        }
        self.summary.as_mut().map_or(Ok(()), |summary| summary.event(event))
    }

    fn cut_off(&mut self, cause: CutOff<'_>) -> io::Result<()> {
        for error in cause.invalid {
            for problem in &error.problems {
                self.invalid(problem.file().unwrap_or(&error.path), problem)?;
            }
        }
        if cause.invalid.is_empty() {
            self.general(&format!("the run did not finish: {}", cause.why))?;
        }
        self.out.flush()?;
        self.summary.as_mut().map_or(Ok(()), |summary| summary.cut_off(cause))
    }
}

/// The message of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_escaped() {
        assert_eq!(data("50%\nof: a, b"), "50%25%0Aof: a, b");
        assert_eq!(property("a:1, b"), "a%3A1%2C b");
    }

    #[test]
    fn files_are_named_from_the_root_of_the_repository() {
        let folders = |workspace: &str, current: &str| Folders {
            workspace: Some(workspace.into()),
            current: current.into(),
        };
        assert_eq!(folders("/w", "/w/app").relative("hpa/a.yaml"), "app/hpa/a.yaml");
        assert_eq!(folders("/w", "/w").relative("./a.yaml"), "a.yaml");
        assert_eq!(folders("/w", "/elsewhere").relative("a.yaml"), "a.yaml");
        assert_eq!(folders("/w", "/w").relative("/w/b/a.yaml"), "b/a.yaml");
        assert_eq!(Folders::default().relative("a.yaml"), "a.yaml");
    }
}
