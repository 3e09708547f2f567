//! The data of kube-lockstep: fixtures, recorded traces, and the Go programs that host upstream's
//! code.
//!
//! A development build reads these files from the checkout, so that a changed file causes no
//! compilation. A release build, and every build of the published package, contains the files in
//! compressed form. `build.rs` selects the form. This crate has links to the folders, because
//! `cargo package` only includes files below the folder of the crate.

mod archive;
mod folder;
#[cfg(test)]
mod pack;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::LazyLock;

use archive::Archive;
use folder::Location;

/// The scenarios.
pub static FIXTURES: Folder = Folder::new(folder::FIXTURES, || SOURCE.files(&folder::FIXTURES));

/// The recorded traces of upstream's controllers.
pub static TRACES: Folder = Folder::new(folder::TRACES, || SOURCE.files(&folder::TRACES));

/// The Go sources of the programs that host upstream's code.
pub static UPSTREAM: Folder = Folder::new(folder::UPSTREAM, || SOURCE.files(&folder::UPSTREAM));

/// The files of the image of a control plane.
pub static IMAGE: Folder = Folder::new(folder::IMAGE, || SOURCE.files(&folder::IMAGE));

/// The source of this program's data.
static SOURCE: LazyLock<Source> =
    LazyLock::new(|| include!(concat!(env!("OUT_DIR"), "/source.rs")));

#[allow(dead_code, reason = "the build script selects one of them")]
enum Source {
    /// The root of the checkout that this program was compiled in.
    Checkout(&'static str),
    Archive(Archive),
}

impl Source {
    fn files(&self, location: &Location) -> Vec<String> {
        match self {
            Source::Checkout(root) => {
                let path = Path::new(root).join(location.in_checkout);
                folder::files(&path).unwrap_or_else(|error| {
                    panic!(
                        "this development build reads {}: {error}; move the checkout back, or \
                         build with `--release`, which embeds the files",
                        path.display()
                    )
                })
            }
            Source::Archive(archive) => archive.files(location.name),
        }
    }

    fn read(&self, location: &Location, path: &str) -> io::Result<Vec<u8>> {
        match self {
            Source::Checkout(root) => {
                fs::read(Path::new(root).join(location.in_checkout).join(path))
            }
            Source::Archive(archive) => archive.read(&format!("{}/{path}", location.name)),
        }
    }
}

/// A folder of data.
pub struct Folder {
    location: Location,
    paths: LazyLock<Vec<String>>,
}

impl Folder {
    const fn new(location: Location, paths: fn() -> Vec<String>) -> Folder {
        Folder { location, paths: LazyLock::new(paths) }
    }

    /// The paths of all files below the folder, with slashes: the files of a folder by name, then
    /// those of its subfolders. The folder is listed once.
    ///
    /// # Panics
    /// If this is a development build, and its checkout was moved or removed.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// The content of a file.
    ///
    /// # Errors
    /// If there is no such file, or it can't be read.
    pub fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        SOURCE.read(&self.location, path)
    }

    /// The content of a text file, if there is such a file.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<String> {
        String::from_utf8(self.read(path).ok()?).ok()
    }

    /// Writes all files to a folder.
    ///
    /// # Errors
    /// If a file can't be read or written.
    pub fn extract(&self, to: &Path) -> io::Result<()> {
        for path in self.paths() {
            let file = to.join(path);
            fs::create_dir_all(file.parent().unwrap_or(to))?;
            fs::write(file, self.read(path)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use pack::{FOLDERS, Packed};

    const ALL: [&Folder; 4] = [&FIXTURES, &TRACES, &UPSTREAM, &IMAGE];

    #[test]
    fn the_files_of_a_folder_precede_its_subfolders() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in ["b", "a/z", "a/b/c", "c.d/e"] {
            let file = folder.path().join(path);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, path).expect("a file");
        }
        let paths = folder::files(folder.path()).expect("paths");
        assert_eq!(paths, ["b", "a/z", "a/b/c", "c.d/e"]);
    }

    /// Packs the folders as the build script does for a release.
    #[test]
    fn an_archive_contains_all_files() {
        let mut packed = Packed::default();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for location in FOLDERS {
            packed.add(location.name, &root.join(location.name)).expect("it can be packed");
        }
        let archive = Archive::new(packed.bytes.leak(), packed.entries.leak());
        assert_eq!(FOLDERS.len(), ALL.len());
        for folder in ALL {
            let name = folder.location.name;
            assert_eq!(archive.files(name), folder.paths(), "{name}");
            for path in folder.paths() {
                let content = archive.read(&format!("{name}/{path}")).expect("a file");
                assert_eq!(content, folder.read(path).expect("a file"), "{name}/{path}");
            }
        }
        let missing = archive.read("fixtures/none").expect_err("there is no such file");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    /// In a release, too: `cargo test --release -p kube-lockstep-data`.
    #[test]
    fn a_program_has_the_files_that_it_requires() {
        for (folder, required) in [
            (&FIXTURES, &["divergences.yaml", "tolerance/upper-edge-is-inclusive.yaml"][..]),
            (&FIXTURES, &["recorded-metrics/load.csv", "vpa/runs/the-first-run.yaml"]),
            (&UPSTREAM, &["go.mod", "versions/v1.37.mod", "versions/v1.6.sum"]),
            (&UPSTREAM, &["virtual/host.go", "recommender/versions/v1.8.mod"]),
            (&IMAGE, &["Dockerfile"]),
        ] {
            for path in required {
                assert!(folder.paths().iter().any(|it| it == path), "{path}");
                assert!(folder.text(path).is_some_and(|text| !text.is_empty()), "{path}");
            }
        }
        let scenarios: BTreeSet<&str> =
            TRACES.paths().iter().map(|path| top_folder(path)).collect();
        assert!(scenarios.len() > 30, "{scenarios:?}");
        assert_eq!(FIXTURES.text("no such file"), None);
    }

    fn top_folder(path: &str) -> &str {
        path.split_once('/').map_or("", |(folder, _)| folder)
    }

    #[test]
    fn folders_are_extracted() {
        let folder = tempfile::tempdir().expect("a folder");
        UPSTREAM.extract(folder.path()).expect("the sources can be written");
        assert_eq!(folder::files(folder.path()).expect("paths"), UPSTREAM.paths());
    }
}
