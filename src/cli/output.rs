//! Output that several commands share.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write};
use std::time::{Duration, Instant};

use super::plugin::commands_as_typed;
use kube_lockstep_sim::run::Preparation;

/// Logs the build of each engine and its progress, because it takes minutes. The first message of
/// a build says what is built, and how long it takes.
#[derive(Debug, Default)]
pub(super) struct PreparationLog {
    logged: BTreeMap<String, Instant>,
}

/// The minimum interval between lines about an engine.
const MIN_INTERVAL: Duration = Duration::from_secs(20);

impl PreparationLog {
    pub(super) fn log(&mut self, preparation: &Preparation) {
        if let Some(text) = self.line(preparation, Instant::now()) {
            tell(&text);
        }
    }

    fn line(&mut self, preparation: &Preparation, now: Instant) -> Option<String> {
        let engine = &preparation.subject;
        let text = match (self.logged.get(engine), preparation.fraction) {
            (None, _) => format!("note: {preparation}\n"),
            (Some(last), _) if now.duration_since(*last) < MIN_INTERVAL => return None,
            (Some(_), Some(done)) => format!("note: {engine}: {:.0}% compiled\n", done * 100.0),
            (Some(_), None) => format!("note: {preparation}\n"),
        };
        self.logged.insert(engine.to_owned(), now);
        Some(text)
    }
}

/// Prints text for people to standard output.
pub(super) fn show(text: &str) -> io::Result<()> {
    let mut out = Stdout;
    unless_closed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Prints text for people to standard error: errors, notes, progress. If it can't be written, there
/// is no other way to report it.
pub(super) fn tell(text: &str) {
    let mut err = anstream::stderr();
    let text = commands_as_typed(text);
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// Standard output for people: each write is a text of its own, whose commands have the name that
/// the user typed.
#[derive(Debug)]
pub(super) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        anstream::stdout().write_all(commands_as_typed(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        anstream::stdout().flush()
    }
}

/// The result of writing to standard output. A closed pipe (`head`) is not an error and does not
/// change the exit code.
pub(super) fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            Err(io::Error::new(error.kind(), format!("standard output can't be written: {error}")))
        }
        Ok(()) => Ok(()),
    }
}

/// The width of text: `COLUMNS`, otherwise the width of the terminal within limits, or 100 columns.
pub(super) fn columns() -> usize {
    let configured = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    if let Some(columns) = configured.filter(|columns: &usize| *columns > 0) {
        return columns.clamp(40, 1000);
    }
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0);
    width.map_or(100, |width| usize::from(width).clamp(40, 140))
}

/// The width up to which tables are not divided. In files and pipes, there is almost no limit.
pub(super) fn most_columns() -> usize {
    let is_limited = io::stdout().is_terminal() || std::env::var_os("COLUMNS").is_some();
    if is_limited { columns() } else { 10_000 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_of_an_engine_is_reported_from_time_to_time() {
        let mut preparing = PreparationLog::default();
        let begin = Instant::now();
        let mut line = |engine: &str, step: &str, fraction, seconds| {
            let preparation = Preparation { fraction, ..Preparation::step(engine, step) };
            preparing.line(&preparation, begin + Duration::from_secs(seconds))
        };
        let first = line("upstream v1.37", "building it", None, 0);
        assert_eq!(first.as_deref(), Some("note: upstream v1.37: building it\n"));
        assert_eq!(line("upstream v1.37", "compiling a", Some(0.1), 19), None);
        assert!(line("upstream v1.36", "resolving modules", None, 19).is_some(), "another engine");
        let later = line("upstream v1.37", "compiling b", Some(0.42), 20);
        assert_eq!(later.as_deref(), Some("note: upstream v1.37: 42% compiled\n"));
        assert_eq!(line("upstream v1.37", "compiling c", Some(0.43), 21), None);
    }
}
