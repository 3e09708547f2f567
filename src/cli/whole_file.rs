//! Files that are written completely or not at all.

use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

/// Whether an existing file is kept or replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Existing {
    /// It is kept, and writing fails.
    Keep,
    /// It is replaced.
    #[cfg_attr(not(feature = "prometheus"), allow(dead_code, reason = "another build uses it"))]
    Replace,
}

/// Writes a file under another name in its folder, and renames it at the end.
pub(super) fn write_whole(path: &Path, text: &str, existing: Existing) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(folder(path))?;
    file.write_all(text.as_bytes())?;
    make_readable(&file)?;
    let written = match existing {
        Existing::Keep => file.persist_noclobber(path),
        Existing::Replace => file.persist(path),
    };
    written.map(drop).map_err(|error| error.error)
}

/// The folder of a file.
pub(super) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Temporary files are readable only by their owner; this one is an ordinary file.
#[cfg(unix)]
fn make_readable(file: &NamedTempFile) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn make_readable(_: &NamedTempFile) -> io::Result<()> {
    Ok(())
}
