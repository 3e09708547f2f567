//! The list of the files below a folder. The build script compiles this file as well.

use std::fs;
use std::io;
use std::path::Path;

/// The paths of all files below a folder, with slashes: the files of a folder by name, then those
/// of its subfolders by name.
///
/// # Errors
/// If a folder can't be read, or the name of a file is not UTF-8.
pub(super) fn paths(root: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    collect(root, "", &mut found)?;
    Ok(found)
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<String>) -> io::Result<()> {
    let mut folders = Vec::new();
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string();
        let name = name.map_err(|name| io::Error::other(format!("{name:?} is not UTF-8")))?;
        // Links are followed.
        let kind = if entry.path().is_dir() { &mut folders } else { &mut files };
        kind.push(name);
    }
    folders.sort_unstable();
    files.sort_unstable();
    found.extend(files.iter().map(|name| format!("{prefix}{name}")));
    for name in folders {
        collect(&folder.join(&name), &format!("{prefix}{name}/"), found)?;
    }
    Ok(())
}
