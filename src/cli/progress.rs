//! Progress on standard error.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use super::output::tell;

/// The interval between lines of progress in a log.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The progress on standard error: one line that is overwritten on a terminal, or occasional lines
/// in a log.
pub(super) struct Progress {
    terminal: bool,
    last: Option<Instant>,
    shown: bool,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress { terminal: io::stderr().is_terminal(), last: None, shown: false }
    }

    pub(super) fn update(&mut self, text: impl FnOnce() -> String) {
        let interval = if self.terminal { Duration::from_millis(200) } else { LOG_INTERVAL };
        let last = *self.last.get_or_insert_with(Instant::now);
        if last.elapsed() < interval {
            return;
        }
        self.last = Some(Instant::now());
        let text = text();
        let text = match self.terminal {
            true => format!("\r\u{1b}[K{text}"),
            false => format!("{text}\n"),
        };
        self.shown = self.terminal;
        tell(&text);
    }

    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            tell("\r\u{1b}[K");
        }
    }
}
