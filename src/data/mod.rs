//! The fixtures, the recorded traces and the Go sources.
//!
//! A development build reads them from their folders in the checkout, so that a changed file
//! compiles nothing. A release, and each build of a published package, contains them, compressed:
//! `build.rs` decides.

mod archive;
mod files;
#[cfg(test)]
mod pack;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use archive::Archive;

/// The archive that `build.rs` wrote. Empty if this program reads the folders.
static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/data"));

/// The archive, unless this program reads the folders.
static ARCHIVE: LazyLock<Option<io::Result<Archive>>> =
    LazyLock::new(|| (!PACKED.is_empty()).then(|| Archive::new(PACKED)));

/// The scenarios.
pub(crate) static FIXTURES: Folder = Folder::new("fixtures", || paths_below("fixtures"));

/// The recorded traces.
pub(crate) static TRACES: Folder =
    Folder::new("suites/recorded", || paths_below("suites/recorded"));

/// The Go sources of the programs that host upstream's code.
pub(crate) static SOURCES: Folder = Folder::new("upstream", || paths_below("upstream"));

/// A folder of the repository.
pub(crate) struct Folder {
    /// Its path in the repository.
    name: &'static str,
    /// The files when they were first needed.
    paths: LazyLock<Vec<String>>,
}

impl Folder {
    const fn new(name: &'static str, paths: fn() -> Vec<String>) -> Folder {
        Folder { name, paths: LazyLock::new(paths) }
    }

    /// The paths of all files below the folder, with slashes: the files of a folder by name, then
    /// those of its subfolders.
    pub(crate) fn paths(&self) -> &[String] {
        &self.paths
    }

    /// The content of a file.
    ///
    /// # Errors
    /// If there is no such file, or it can't be read.
    pub(crate) fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match &*ARCHIVE {
            None => fs::read(checkout().join(self.name).join(path)),
            Some(Ok(archive)) => archive.read(&format!("{}/{path}", self.name)),
            Some(Err(error)) => Err(io::Error::other(error.to_string())),
        }
    }

    /// The content of a text file, if there is such a file.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        String::from_utf8(self.read(path).ok()?).ok()
    }

    /// Writes all files to a folder.
    ///
    /// # Errors
    /// If a file can't be read or written.
    pub(crate) fn extract(&self, to: &Path) -> io::Result<()> {
        for path in self.paths() {
            let file = to.join(path);
            fs::create_dir_all(file.parent().unwrap_or(to))?;
            fs::write(file, self.read(path)?)?;
        }
        Ok(())
    }
}

/// The checkout that this program was compiled from.
fn checkout() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The files below a folder. There are none if the checkout of a development build is gone.
fn paths_below(folder: &str) -> Vec<String> {
    match &*ARCHIVE {
        None => files::paths(&checkout().join(folder)).unwrap_or_default(),
        Some(archive) => {
            let all = archive.iter().flat_map(|archive| archive.paths());
            let below = |path: &String| Some(path.strip_prefix(folder)?.strip_prefix('/')?.into());
            all.filter_map(below).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_files_in_their_order() {
        let files = [("b/c", "one"), ("b/a", ""), ("a", "two words\n\n")]
            .map(|(path, content)| (path.to_owned(), content.as_bytes().to_vec()));
        let archive = Archive::new(pack::pack(&files).leak()).expect("an archive");
        assert_eq!(archive.paths(), ["b/c", "b/a", "a"]);
        for (path, content) in &files {
            assert_eq!(archive.read(path).expect("a file"), *content);
        }
        assert_eq!(archive.read("c").expect_err("no file").kind(), io::ErrorKind::NotFound);
        for damaged in [&b"1 1 a"[..], b"1 1\n\n", b"2 1 a\n\nx", b"x 1 a\n\nx"] {
            assert!(Archive::new(damaged).is_err());
        }
    }

    #[test]
    fn the_files_of_a_folder_precede_its_subfolders() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in ["b", "a/z", "a/b/c", "c.d/e"] {
            let file = folder.path().join(path);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, path).expect("a file");
        }
        let paths = files::paths(folder.path()).expect("paths");
        assert_eq!(paths, ["b", "a/z", "a/b/c", "c.d/e"]);
    }

    #[test]
    fn folders_are_extracted() {
        let folder = tempfile::tempdir().expect("a folder");
        SOURCES.extract(folder.path()).expect("the sources can be written");
        assert_eq!(files::paths(folder.path()).expect("paths"), SOURCES.paths());
        assert!(SOURCES.text("virtual/host.go").is_some_and(|text| text.contains("package ")));
        for folder in [&FIXTURES, &TRACES] {
            assert!(!folder.paths().is_empty());
            assert!(folder.text("no such file").is_none());
        }
    }
}
