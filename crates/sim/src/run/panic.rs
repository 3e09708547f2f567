//! Panics that become findings of the fuzzer.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static CATCHES_PANICS: Cell<bool> = const { Cell::new(false) };
}

/// Returns true if a panic of this thread becomes a finding.
#[must_use]
pub fn catches_panics() -> bool {
    CATCHES_PANICS.get()
}

/// Calls a function that may panic.
///
/// # Errors
/// The message of the panic.
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    CATCHES_PANICS.set(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    CATCHES_PANICS.set(false);
    result.map_err(|panic| message(&*panic))
}

/// The message of a panic.
pub fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "panic without a message".to_owned())
}
