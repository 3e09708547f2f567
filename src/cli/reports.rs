//! `--report`: reports in files, in addition to the one on standard output. All of them read the
//! same events.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::args::Format;
use super::failure::Failure;
use super::files;
use kube_lockstep_report::github::{Folders, Github};
use kube_lockstep_report::html::Html;
use kube_lockstep_report::junit::Junit;
use kube_lockstep_report::markdown::Markdown;
use kube_lockstep_report::{CutOff, Report};
use kube_lockstep_sim::run::Event;

/// A report, as named on the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ReportArg {
    /// A report in a file.
    File(ReportFormat, PathBuf),
    /// Annotations, and the job summary of GitHub Actions.
    Github,
}

/// The format of a report in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReportFormat {
    Html,
    Junit,
    Markdown,
}

/// The formats of files, by name.
const KINDS: [(&str, ReportFormat); 3] = [
    ("html", ReportFormat::Html),
    ("junit", ReportFormat::Junit),
    ("markdown", ReportFormat::Markdown),
];

/// The name of the report for GitHub Actions.
const GITHUB: &str = "github";

/// The beginnings of the values of `--report`: `html=`, `github`.
pub(super) fn report_names() -> impl Iterator<Item = String> {
    let files = KINDS.into_iter().map(|(name, _)| format!("{name}="));
    files.chain([GITHUB.to_owned()])
}

impl FromStr for ReportArg {
    type Err = String;

    fn from_str(text: &str) -> Result<ReportArg, String> {
        let (name, path) = match text.split_once('=') {
            Some((name, path)) => (name, Some(path)),
            None => (text, None),
        };
        if name == GITHUB {
            let no_file = "github has no file: it writes annotations and the job summary";
            return if path.is_none() { Ok(ReportArg::Github) } else { Err(no_file.to_owned()) };
        }
        let Some((_, kind)) = KINDS.into_iter().find(|(known, _)| *known == name) else {
            let names = KINDS.map(|(name, _)| format!("{name}=FILE")).join(", ");
            return Err(format!("expected {names} or {GITHUB}"));
        };
        match path {
            Some(path) if !path.is_empty() => Ok(ReportArg::File(kind, path.into())),
            _ => Err(format!("the file is missing: {name}=FILE")),
        }
    }
}

/// A file that is opened before the run, so that a wrong path is an error at the start. Its old
/// contents are kept until the report is written. A new file is removed if no report is written.
#[derive(Debug)]
pub(super) struct ReportFile {
    /// The option that names it.
    flag: String,
    path: PathBuf,
    file: File,
    /// True if the old contents were removed, or are to be kept.
    is_emptied: bool,
    /// True if the file did not exist before.
    is_new: bool,
}

impl ReportFile {
    /// Opens a file for a report. `flag` names it in errors.
    pub(super) fn open(flag: &str, path: &Path) -> Result<ReportFile, Failure> {
        files::claim(flag, path)?;
        ReportFile::open_with(OpenOptions::new().write(true).truncate(false), flag, path)
    }

    /// Opens a file to which a report is added.
    fn append(flag: &str, path: &Path) -> Result<ReportFile, Failure> {
        let mut file = ReportFile::open_with(OpenOptions::new().append(true), flag, path)?;
        file.is_emptied = true;
        Ok(file)
    }

    fn open_with(
        options: &mut OpenOptions,
        flag: &str,
        path: &Path,
    ) -> Result<ReportFile, Failure> {
        if path == Path::new("-") {
            let what = format!("{flag}: `-` is not a file, and standard output has other contents");
            return Err(Failure::usage(what).hint("name a file"));
        }
        let is_new = !path.exists();
        let opened = options.create(true).open(path);
        let file = opened.map_err(|error| {
            let what = format!("{flag}: {} can't be written: {error}", path.display());
            Failure::engine(what).hint("name a file in an existing folder that you can write to")
        })?;
        let (flag, path) = (flag.to_owned(), path.to_owned());
        Ok(ReportFile { flag, path, file, is_emptied: false, is_new })
    }

    fn named(&self, error: io::Error) -> io::Error {
        io::Error::other(format!("{} can't be written: {error}", self.path.display()))
    }
}

impl Write for ReportFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !std::mem::replace(&mut self.is_emptied, true)
            && self.file.metadata().is_ok_and(|it| it.is_file())
        {
            // A file that was read after this one was opened.
            files::check_unread(&self.flag, &self.path).map_err(io::Error::other)?;
            let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
            emptied.map_err(|error| self.named(error))?;
        }
        self.file.write(bytes).map_err(|error| self.named(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| self.named(error))
    }
}

impl Drop for ReportFile {
    fn drop(&mut self) {
        if self.is_new && !self.is_emptied {
            // A file that can't be removed stays empty.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// All reports of a run.
pub(super) struct Reports {
    /// The report on standard output.
    pub(super) console: Box<dyn Report + Send>,
    pub(super) files: ReportFiles,
}

/// The reports in files. A signal completes them from another thread.
#[derive(Clone)]
pub(super) struct ReportFiles(Arc<Mutex<Inner>>);

struct Inner {
    reports: Vec<Box<dyn Report + Send>>,
    is_complete: bool,
}

/// How long a signal waits for a report that is being written.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

impl Reports {
    /// Opens the files of the reports. `format` is the format of the report on standard output.
    pub(super) fn open(
        console: Box<dyn Report + Send>,
        named: &[ReportArg],
        format: Format,
    ) -> Result<Reports, Failure> {
        let mut reports: Vec<Box<dyn Report + Send>> = Vec::new();
        for (index, report) in named.iter().enumerate() {
            if named[..index].contains(report) {
                let what = format!("--report {report} is given twice");
                return Err(Failure::usage(what).hint("leave out one of them"));
            }
            reports.push(report.open(format)?);
        }
        let files = ReportFiles(Arc::new(Mutex::new(Inner { reports, is_complete: false })));
        Ok(Reports { console, files })
    }
}

impl ReportFiles {
    /// Passes an event to all reports, and returns the first error.
    pub(super) fn event(&self, event: &Event) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.is_complete |= matches!(event, Event::Ended(_));
        inner.each(|report| report.event(event))
    }

    /// Completes the reports of a run that did not reach its end.
    pub(super) fn cut_off(&self, cause: CutOff<'_>) -> io::Result<()> {
        let begin = Instant::now();
        let mut inner = loop {
            match self.0.try_lock() {
                Ok(inner) => break inner,
                Err(TryLockError::Poisoned(error)) => break error.into_inner(),
                // The reader of a pipe may have stopped.
                Err(TryLockError::WouldBlock) if begin.elapsed() > LOCK_TIMEOUT => return Ok(()),
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        match std::mem::replace(&mut inner.is_complete, true) {
            true => Ok(()),
            false => inner.each(|report| report.cut_off(cause)),
        }
    }
}

impl Inner {
    /// Does the same to all reports, and returns the first error.
    fn each(&mut self, act: impl Fn(&mut dyn Report) -> io::Result<()>) -> io::Result<()> {
        let results: Vec<_> = self.reports.iter_mut().map(|report| act(&mut **report)).collect();
        results.into_iter().collect()
    }
}

impl fmt::Display for ReportArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReportArg::File(kind, path) = self else { return f.write_str(GITHUB) };
        let name = KINDS.iter().find(|(_, it)| it == kind).map_or("", |(name, _)| *name);
        write!(f, "{name}={}", path.display())
    }
}

impl ReportArg {
    fn open(&self, format: Format) -> Result<Box<dyn Report + Send>, Failure> {
        let flag = format!("--report {self}");
        Ok(match self {
            ReportArg::Github => github(&flag, format)?,
            ReportArg::File(kind, path) => {
                let file = ReportFile::open(&flag, path)?;
                match kind {
                    ReportFormat::Html => Box::new(Html::new(file)),
                    ReportFormat::Junit => Box::new(Junit::new(file)),
                    ReportFormat::Markdown => Box::new(Markdown::new(file)),
                }
            }
        })
    }
}

/// The report for GitHub Actions, which reads annotations from both outputs of a step.
fn github(flag: &str, format: Format) -> Result<Box<dyn Report + Send>, Failure> {
    let summary = job_summary(flag)?;
    Ok(match format {
        Format::Text => Box::new(Github::new(io::stdout(), summary, folders())),
        // Standard output contains only JSON.
        Format::Json => Box::new(Github::new(io::stderr(), summary, folders())),
    })
}

/// The job summary of GitHub Actions, to which a report is added. None: there is none.
pub(super) fn job_summary(flag: &str) -> Result<Option<ReportFile>, Failure> {
    let path = variable("GITHUB_STEP_SUMMARY");
    path.map(|path| ReportFile::append(flag, &path)).transpose()
}

/// The folders that make paths relative to the repository.
pub(super) fn folders() -> Folders {
    Folders {
        workspace: variable("GITHUB_WORKSPACE"),
        current: std::env::current_dir().unwrap_or_default(),
    }
}

/// A path in an environment variable that is set.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from)
}
