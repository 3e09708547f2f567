//! The interface of the module: texts in its memory.
//!
//! The page allocates the text of a request, calls `answer`, reads the answer, and frees it. After
//! a panic, the instance is not used again; `panic_message` still returns the message.

#![allow(unsafe_code, reason = "texts pass through the memory of the module")]

use std::sync::Mutex;

use crate::Progress;

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Shows the progress of a search.
    safe fn progress(done: f64, most: f64);
}

/// The text of the last panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// A text in the memory of the module: its length in four bytes, then the text.
fn leak(text: &str) -> *mut u8 {
    let length = u32::try_from(text.len()).unwrap_or(0);
    let mut bytes = Vec::with_capacity(text.len() + 4);
    bytes.extend(length.to_le_bytes());
    bytes.extend(text.as_bytes());
    Box::into_raw(bytes.into_boxed_slice()).cast()
}

/// Sets up the module. The page calls it once, before everything else.
#[unsafe(no_mangle)]
extern "C" fn initialize() {
    std::panic::set_hook(Box::new(|info| {
        if let Ok(mut message) = PANIC.lock() {
            *message = info.to_string();
        }
    }));
}

/// Allocates memory for a text.
#[unsafe(no_mangle)]
extern "C" fn allocate(length: usize) -> *mut u8 {
    Box::into_raw(vec![0_u8; length].into_boxed_slice()).cast()
}

/// Frees memory.
///
/// # Safety
/// The memory was allocated with this length, and is not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn release_memory(start: *mut u8, length: usize) {
    let slice = std::ptr::slice_from_raw_parts_mut(start, length);
    // SAFETY: `allocate` and `leak` return boxed slices of this length.
    drop(unsafe { Box::from_raw(slice) });
}

/// Answers a request and frees its text.
///
/// # Safety
/// The request is a text that was written into memory from `allocate`, with the same length.
#[unsafe(no_mangle)]
unsafe extern "C" fn answer(request: *mut u8, length: usize) -> *mut u8 {
    let slice = std::ptr::slice_from_raw_parts_mut(request, length);
    // SAFETY: `allocate` returned a boxed slice of this length.
    let bytes = unsafe { Box::from_raw(slice) };
    let watch = |Progress { done, most }| progress(done as f64, most as f64);
    leak(&crate::answer(&String::from_utf8_lossy(&bytes), &watch))
}

/// The text of the panic that ended the last call.
#[unsafe(no_mangle)]
extern "C" fn panic_message() -> *mut u8 {
    leak(&PANIC.lock().map(|message| message.clone()).unwrap_or_default())
}
