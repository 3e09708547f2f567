//! A run for GitHub Actions: an annotation at the line of each scenario that does not conform, and
//! a job summary.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::markdown::Markdown;
use super::{CutOff, Report, counted, headline};
use kube_lockstep_scenario::Diagnostic;
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
    #[must_use]
    pub fn relative(&self, path: &str) -> String {
        let Some(workspace) = &self.workspace else { return path.to_owned() };
        let absolute = self.current.join(path.strip_prefix("./").unwrap_or(path));
        let below: &Path = absolute.strip_prefix(workspace).unwrap_or(Path::new(path));
        below.to_string_lossy().into_owned()
    }
}

/// A message at a place in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Annotation {
    /// How serious it is.
    pub kind: AnnotationKind,
    /// The file, relative to the repository.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column, from 1.
    pub column: Option<usize>,
    /// The title.
    pub title: String,
    /// The text.
    pub message: String,
}

/// How serious an annotation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnnotationKind {
    /// An error.
    Error,
    /// A warning.
    Warning,
    /// A note.
    Notice,
}

/// The workflow command: `::error file=web.yaml,line=3,col=5,title=…::…`.
impl fmt::Display for Annotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Annotation { kind, file, line, column, title, message } = self;
        let kind = match kind {
            AnnotationKind::Error => "error",
            AnnotationKind::Warning => "warning",
            AnnotationKind::Notice => "notice",
        };
        write!(f, "::{kind} file={}", property(file))?;
        if let Some(line) = line {
            write!(f, ",line={line}")?;
        }
        if let Some(column) = column {
            write!(f, ",col={column}")?;
        }
        write!(f, ",title={}::{}", property(title), data(message))
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
            let annotation = Annotation {
                kind: AnnotationKind::Error,
                file: self.folders.relative(&outcome.path),
                line: Some(line),
                column: None,
                title: title.clone(),
                message: message.to_owned(),
            };
            writeln!(self.out, "{annotation}")
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
        let place = problem.place.as_deref();
        let annotation = Annotation {
            kind: AnnotationKind::Error,
            file: self.folders.relative(file),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            title: "invalid scenario".to_owned(),
            message: problem.in_one_line("\nhint: "),
        };
        writeln!(self.out, "{annotation}")
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
