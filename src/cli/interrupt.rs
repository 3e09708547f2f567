//! What an interrupted run says before it ends.
//!
//! It ends by the signal itself, so that a shell or a script sees what happened. The engines' input
//! ends with it, and so do they.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Waits for Ctrl-C beside a run of so many scenarios. What is returned counts those that are done.
pub(super) fn listen(scenarios: usize) -> io::Result<Arc<AtomicUsize>> {
    let done = Arc::new(AtomicUsize::new(0));
    let count = done.clone();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let done = count.load(Ordering::Relaxed);
            let were = if scenarios == 1 { "scenario was" } else { "scenarios were" };
            // On a terminal, a progress bar stands in the line.
            let clear = if io::stderr().is_terminal() { "\r\u{1b}[K" } else { "" };
            let text = format!("{clear}interrupted: {done} of {scenarios} {were} done\n");
            // There is nobody left to tell if even this can't be written.
            let _ = anstream::stderr().write_all(text.as_bytes());
            // It returns only if the signal's own effect is none.
            let _ = emulate_default_handler(signal);
        }
    });
    Ok(done)
}
