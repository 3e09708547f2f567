//! What an interrupted run says and does before it ends.
//!
//! It ends by the signal itself, so that a shell or a script sees what happened. The engines' input
//! ends with it, and so do they.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
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
            say(&format!("interrupted: {done} of {scenarios} {were} done"));
            // It returns only if the signal's own effect is none.
            let _ = emulate_default_handler(signal);
        }
    });
    Ok(done)
}

/// Signals less than this apart are one.
const TWICE: Duration = Duration::from_millis(500);

/// A signal that a run ends by, once it has put away what it has.
pub(super) struct Ending(Arc<AtomicI32>);

impl Ending {
    /// Waits for Ctrl-C, which sets `stop` and is answered with `message`; a second one ends the
    /// program at once.
    pub(super) fn listen(stop: &Arc<AtomicBool>, message: &str) -> io::Result<Ending> {
        let caught = Arc::new(AtomicI32::new(0));
        let (catch, stop, message) = (caught.clone(), stop.clone(), message.to_owned());
        once(&[SIGINT, SIGTERM, SIGHUP], move |signal| {
            catch.store(signal, Ordering::Relaxed);
            stop.store(true, Ordering::Relaxed);
            say(&message);
        })?;
        Ok(Ending(caught))
    }

    /// Ends the program by the signal, if there was one.
    pub(super) fn follow(&self) {
        let signal = self.0.load(Ordering::Relaxed);
        if signal != 0 {
            // It returns only if the signal's own effect is none.
            let _ = emulate_default_handler(signal);
        }
    }
}

/// Waits for the usual end of what goes on until it is ended, and sets `stop`; a second signal ends
/// the program at once, whatever it leaves.
#[cfg(feature = "clusters")]
pub(super) fn ends(stop: &Arc<AtomicBool>) -> io::Result<()> {
    let stop = stop.clone();
    once(&[SIGINT, SIGTERM, SIGHUP], move |_| stop.store(true, Ordering::Relaxed))
}

/// Does something at a first signal; a second one ends the program.
fn once(signals: &[i32], first_time: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new(signals)?;
    std::thread::spawn(move || {
        let mut first: Option<Instant> = None;
        for signal in signals.forever() {
            match first {
                // Programs like timeout(1) send theirs twice, one right after the other.
                Some(first) if first.elapsed() < TWICE => continue,
                Some(_) => {
                    let _ = emulate_default_handler(signal);
                }
                None => first = Some(Instant::now()),
            }
            first_time(signal);
        }
    });
    Ok(())
}

/// A line of its own.
fn say(text: &str) {
    // On a terminal, progress stands in the line.
    let clear = if io::stderr().is_terminal() { "\r\u{1b}[K" } else { "" };
    // There is nobody left to tell if even this can't be written.
    let _ = anstream::stderr().write_all(format!("{clear}{text}\n").as_bytes());
}
