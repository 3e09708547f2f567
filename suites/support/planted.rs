//! Programs in place of built engines, which plant faults in upstream's components.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// Writes a shell script in place of an engine, with the checksum that a cache folder requires.
/// `script` precedes the call of the engine, which gets the arguments `"$@"`.
pub fn replace(folder: &Path, engine: &Path, script: &str) -> io::Result<()> {
    let name = engine.file_name().unwrap_or_default().to_string_lossy();
    let text = format!("#!/bin/sh\n{script}exec '{}' \"$@\"\n", engine.display());
    let path = folder.join(&*name);
    fs::write(&path, &text)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
    let hash = Sha256::digest(text.as_bytes());
    let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    // The size and time are not recorded, so the content is hashed.
    fs::write(folder.join(format!(".{name}.checksum")), format!("{hash}\n"))
}
