//! The folders of data. The build script compiles this file as well.

use std::fs;
use std::io;
use std::path::Path;

/// The locations of a folder.
pub(crate) struct Location {
    /// Its name in this crate: in an archive, and in a published package.
    pub(crate) name: &'static str,
    /// Its path in a checkout.
    pub(crate) in_checkout: &'static str,
}

pub(crate) const FIXTURES: Location = Location { name: "fixtures", in_checkout: "fixtures" };
pub(crate) const TRACES: Location = Location { name: "recorded", in_checkout: "suites/recorded" };
pub(crate) const UPSTREAM: Location = Location { name: "upstream", in_checkout: "upstream" };
pub(crate) const IMAGE: Location = Location { name: "image", in_checkout: "ci/image" };

/// The paths of all files below a folder, with slashes: the files of a folder by name, then those
/// of its subfolders by name.
///
/// # Errors
/// If a folder can't be read, or the name of a file is not UTF-8.
pub(crate) fn files(root: &Path) -> io::Result<Vec<String>> {
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
        let kind = if entry.file_type()?.is_dir() { &mut folders } else { &mut files };
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
