//! Signals: the report and the cleanup of an interrupted run.
//!
//! The process ends by the signal itself, so that the shell sees it. The standard input of engines
//! closes, which ends them.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use tokio_util::sync::CancellationToken;

use self::system::{END_SIGNALS, end_by, on_signals};
use super::output::tell;

/// Waits for Ctrl-C during a run. The returned counter is the number of finished scenarios.
/// `complete` completes the reports; its argument is the reason.
pub(super) fn listen(
    scenarios: usize,
    complete: impl Fn(&str) + Send + 'static,
) -> io::Result<Arc<AtomicUsize>> {
    let done = Arc::new(AtomicUsize::new(0));
    let count = done.clone();
    on_signals(&[SIGINT, SIGTERM], move |signal| {
        let done = count.load(Ordering::Relaxed);
        let were = if scenarios == 1 { "scenario was" } else { "scenarios were" };
        let text = format!("interrupted: {done} of {scenarios} {were} done");
        print_line(&text);
        complete(&text);
        end_by(signal);
    })?;
    Ok(done)
}

/// Signals within this interval count as one.
const REPEAT_INTERVAL: Duration = Duration::from_millis(500);

/// A signal that ends a run after it has cleaned up.
pub(super) struct Ending(Arc<AtomicI32>);

impl Ending {
    /// Waits for Ctrl-C, which sets `stop` and prints `message`. A second one ends the program
    /// immediately.
    pub(super) fn listen(stop: &CancellationToken, message: &str) -> io::Result<Ending> {
        let caught = Arc::new(AtomicI32::new(0));
        let (catch, stop, message) = (caught.clone(), stop.clone(), message.to_owned());
        once(move |signal| {
            catch.store(signal, Ordering::Relaxed);
            stop.cancel();
            print_line(&message);
        })?;
        Ok(Ending(caught))
    }

    /// Ends the program with the signal, if there was one.
    pub(super) fn end_by_signal(&self) {
        let signal = self.0.load(Ordering::Relaxed);
        if signal != 0 {
            end_by(signal);
        }
    }
}

/// Sets `stop` on the first signal. A second signal ends the program immediately, without cleanup.
#[cfg(feature = "clusters")]
pub(super) fn stop_on_signal(stop: &CancellationToken) -> io::Result<()> {
    let stop = stop.clone();
    once(move |_| stop.cancel())
}

/// Runs an action on the first signal; a second one ends the program.
fn once(first_time: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    let mut first: Option<Instant> = None;
    on_signals(&END_SIGNALS, move |signal| {
        match first {
            // Programs like timeout(1) send a signal twice in quick succession.
            Some(first) if first.elapsed() < REPEAT_INTERVAL => return,
            Some(_) => end_by(signal),
            None => first = Some(Instant::now()),
        }
        first_time(signal);
    })
}

#[cfg(unix)]
mod system {
    use std::io;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    /// The signals that end the program.
    pub(super) const END_SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

    /// Runs an action on each signal, in a thread of its own.
    pub(super) fn on_signals(
        signals: &[i32],
        mut action: impl FnMut(i32) + Send + 'static,
    ) -> io::Result<()> {
        let mut signals = Signals::new(signals)?;
        std::thread::spawn(move || signals.forever().for_each(&mut action));
        Ok(())
    }

    /// Ends the program by a signal.
    pub(super) fn end_by(signal: i32) {
        // Returns only if the signal has no default action.
        let _ = emulate_default_handler(signal);
    }
}

#[cfg(not(unix))]
mod system {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::flag;

    /// The signals that end the program.
    pub(super) const END_SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

    /// The interval at which signals are noticed.
    const POLL_INTERVAL: Duration = Duration::from_millis(50);

    /// Runs an action on each signal, in a thread of its own.
    pub(super) fn on_signals(
        signals: &[i32],
        mut action: impl FnMut(i32) + Send + 'static,
    ) -> io::Result<()> {
        let caught = Arc::new(AtomicUsize::new(0));
        for signal in signals {
            flag::register_usize(*signal, caught.clone(), *signal as usize)?;
        }
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(POLL_INTERVAL);
                match caught.swap(0, Ordering::Relaxed) {
                    0 => {}
                    signal => action(signal as i32),
                }
            }
        });
        Ok(())
    }

    /// Ends the program with the exit code of a signal.
    pub(super) fn end_by(signal: i32) {
        std::process::exit(128 + signal);
    }
}

/// Prints a separate line.
pub(super) fn print_line(text: &str) {
    // On a terminal, the line may contain progress.
    let clear = if io::stderr().is_terminal() { "\r\u{1b}[K" } else { "" };
    tell(&format!("{clear}{text}\n"));
}
