//! The files that the command reads, and those that its options write: a file can't be both, and no
//! two options write the same file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::failure::Failure;
use kube_lockstep_engines::input_file;
use kube_lockstep_engines::input_file::InputError;

/// The files of this process, by their absolute paths.
static FILES: Mutex<Files> = Mutex::new(Files { read: Vec::new(), written: Vec::new() });

struct Files {
    read: Vec<PathBuf>,
    /// The files, each with the option that names it.
    written: Vec<(PathBuf, String)>,
}

fn files() -> MutexGuard<'static, Files> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a text file that the command line names.
pub(super) fn read(path: &Path) -> Result<String, InputError> {
    note_read(path);
    input_file::read(path)
}

/// Reads a text file that may be long: a file that a scenario or a load names, or results.
pub(super) fn read_long(path: &Path) -> Result<String, InputError> {
    note_read(path);
    input_file::read_long(path)
}

/// Notes that the command reads a file.
pub(super) fn note_read(path: &Path) {
    let mut files = files();
    if let Some(path) = identity(path)
        && !files.read.contains(&path)
    {
        files.read.push(path);
    }
}

/// Notes that an option writes a file. Fails if the command reads it, or if another option writes
/// it.
pub(super) fn claim(option: &str, path: &Path) -> Result<(), Failure> {
    check_unread(option, path)?;
    let Some(whole) = identity(path) else { return Ok(()) };
    let mut files = files();
    if let Some((_, other)) = files.written.iter().find(|(other, _)| *other == whole) {
        let what = match other == option {
            true => format!("{option} names the same file twice"),
            false => format!("{other} and {option} name the same file"),
        };
        return Err(Failure::usage(what).hint("use a different file for each"));
    }
    files.written.push((whole, option.to_owned()));
    Ok(())
}

/// Fails if the command reads the file that an option names.
pub(super) fn check_unread(option: &str, path: &Path) -> Result<(), Failure> {
    if identity(path).is_none_or(|whole| !files().read.contains(&whole)) {
        return Ok(());
    }
    let named = match option.contains('=') {
        true => option.to_owned(),
        false => format!("{option} {}", path.display()),
    };
    let what = format!("{named} is a file that this command reads");
    Err(Failure::usage(what).hint("choose another name"))
}

/// The absolute path of a regular file, or of one that does not exist yet. None: a device or a
/// pipe, or a path without a folder.
fn identity(path: &Path) -> Option<PathBuf> {
    if path.exists() {
        return fs::canonicalize(path).ok().filter(|whole| whole.is_file());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
    Some(folder.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_either_read_or_written_by_one_option() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("load.csv"), "time,value\n").expect("a file can be written");
        read(&path("load.csv")).expect("it can be read");
        let error =
            |option: &str, path: &Path| claim(option, path).expect_err("an error").problem.what;
        let read = error("--csv", &path("./load.csv"));
        assert!(read.ends_with("load.csv is a file that this command reads"), "{read}");
        claim("--html", &path("page.html")).expect("a new file");
        let same = error("--csv", &path("../").join(folder.path()).join("page.html"));
        assert_eq!(same, "--html and --csv name the same file");
        for option in ["--html", "--csv"] {
            claim(option, Path::new("/dev/null")).expect("a device");
        }
    }
}
