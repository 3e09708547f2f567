//! A version of manifests: a git revision, a folder, or a file.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::failure::Failure;
use super::super::manifests::read_manifests;
use kube_lockstep_manifests::ManifestFile;

/// A version of manifests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Version {
    /// A file with all manifests, such as the output of `helm template`.
    File(PathBuf),
    /// A folder in which the manifests are.
    Folder(PathBuf),
    /// A commit of the repository of the current folder, with the name that the user gave.
    Revision { name: String, commit: String },
}

/// `main`, `deploy/old`, `the working tree`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Version::Folder(path) if path == Path::new(".") => f.write_str("the working tree"),
            Version::File(path) | Version::Folder(path) => path.display().fmt(f),
            Version::Revision { name, .. } => f.write_str(name),
        }
    }
}

/// The manifests of a version.
pub(super) struct Found {
    /// The name of the version.
    pub(super) version: String,
    pub(super) files: Vec<ManifestFile>,
    /// The paths that the version does not have.
    pub(super) missing: Vec<PathBuf>,
}

impl Version {
    /// Finds the version that an option names: a file or a folder, or else a git revision.
    pub(super) fn find(flag: &str, name: &str) -> Result<Version, Failure> {
        let path = Path::new(name);
        let commit = commit(name);
        if !path.exists() {
            return match commit {
                Ok(commit) => Ok(Version::Revision { name: name.to_owned(), commit }),
                Err(why) => {
                    let what =
                        format!("{flag} {name}: there is no such file, folder or revision ({why})");
                    Err(Failure::usage(what).hint(
                        "a shallow clone has only one revision: `git fetch origin main`, or in \
                         GitHub Actions `fetch-depth: 0` for actions/checkout",
                    ))
                }
            };
        }
        let is_plain = path.components().count() == 1 && !name.contains(['/', '.']);
        if commit.is_ok() && is_plain {
            let what = format!("{flag} {name} is both a git revision and a path");
            let hint = format!("name the path `./{name}`, or the revision `refs/heads/{name}`");
            return Err(Failure::usage(what).hint(hint));
        }
        Ok(match path.is_dir() {
            true => Version::Folder(path.to_owned()),
            false => Version::File(path.to_owned()),
        })
    }

    /// Reads the manifests at these paths, which are relative to a folder, and for a revision to
    /// the current folder. A file has only its own.
    pub(super) fn read(&self, paths: &[PathBuf], recursive: bool) -> Result<Found, Failure> {
        let mut found = Found { version: self.to_string(), files: Vec::new(), missing: Vec::new() };
        match self {
            Version::File(path) => {
                found.files = read_manifests(std::slice::from_ref(path), false)?;
            }
            Version::Folder(folder) => {
                let (present, missing): (Vec<&PathBuf>, Vec<&PathBuf>) =
                    paths.iter().partition(|path| folder.join(path).exists());
                found.missing = missing.into_iter().cloned().collect();
                let present = present.into_iter().map(|path| joined_path(folder, path));
                found.files = read_manifests(&present.collect::<Vec<_>>(), recursive)?;
            }
            Version::Revision { name, commit } => {
                for path in paths {
                    match in_revision(name, commit, path, recursive)? {
                        Some(files) => found.files.extend(files),
                        None => found.missing.push(path.clone()),
                    }
                }
            }
        }
        Ok(found)
    }
}

/// A path in a folder, without the name of the current folder.
fn joined_path(folder: &Path, path: &Path) -> PathBuf {
    let current = Path::new(".");
    match (folder == current, path == current) {
        (true, _) => path.to_owned(),
        (_, true) => folder.to_owned(),
        _ => folder.join(path),
    }
}

/// The commit of a revision.
fn commit(name: &str) -> Result<String, String> {
    let revision = format!("{name}^{{commit}}");
    let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &revision];
    match git(args)? {
        Some(commit) => Ok(String::from_utf8_lossy(&commit).trim().to_owned()),
        None => Err("git knows no such revision here".to_owned()),
    }
}

/// The manifests at a path in a revision. None: there is nothing at that path.
fn in_revision(
    name: &str,
    commit: &str,
    path: &Path,
    recursive: bool,
) -> Result<Option<Vec<ManifestFile>>, Failure> {
    if path.is_absolute() {
        let what = format!("-f {}: a revision has no absolute paths", path.display());
        return Err(Failure::usage(what).hint("name the path relative to the current folder"));
    }
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let path = parts.collect::<PathBuf>().display().to_string();
    // `./` makes it relative to the current folder.
    let object = match path.starts_with("..") {
        true => format!("{commit}:{path}"),
        false => format!("{commit}:./{path}"),
    };
    let kind = run(["cat-file", "-t", &object])?;
    let file = |path: &str, lenient: bool, object: &str| -> Result<ManifestFile, Failure> {
        let text = run(["cat-file", "blob", object])?.unwrap_or_default();
        let name = format!("{name}:{path}");
        let text = String::from_utf8(text)
            .map_err(|_| Failure::usage(format!("{name}: the file is not UTF-8")))?;
        Ok(ManifestFile { name, text, lenient })
    };
    match kind.as_deref().map(<[u8]>::trim_ascii) {
        Some(b"blob") => Ok(Some(vec![file(&path, false, &object)?])),
        Some(b"tree") => {
            let mut args = vec!["ls-tree", "-z", "--full-tree"];
            args.extend(recursive.then_some("-r"));
            args.push(&object);
            let list = run(args)?.unwrap_or_default();
            let list = String::from_utf8_lossy(&list);
            let mut files = Vec::new();
            for entry in list.split('\0').filter_map(Entry::parse) {
                let whole = Path::new(&path).join(entry.name).display().to_string();
                files.push(file(&whole, true, entry.object)?);
            }
            Ok(Some(files))
        }
        _ => Ok(None),
    }
}

/// A manifest in the listing of a folder.
struct Entry<'l> {
    object: &'l str,
    name: &'l str,
}

impl<'l> Entry<'l> {
    /// Reads `100644 blob OBJECT\tNAME`. None: it is no manifest.
    fn parse(line: &'l str) -> Option<Entry<'l>> {
        let (about, name) = line.split_once('\t')?;
        let mut about = about.split(' ');
        let (mode, kind, object) = (about.next()?, about.next()?, about.next()?);
        // A symbolic link has the mode 120000; its content is a path.
        let is_file = kind == "blob" && mode != "120000";
        let extension = Path::new(name).extension().and_then(OsStr::to_str);
        let is_manifest = matches!(extension, Some("yaml" | "yml" | "json"));
        (is_file && is_manifest).then_some(Entry { object, name })
    }
}

/// Runs git, like [`git`].
fn run<'a>(args: impl IntoIterator<Item = &'a str>) -> Result<Option<Vec<u8>>, Failure> {
    git(args).map_err(Failure::engine)
}

/// Runs git. None: it fails.
///
/// # Errors
/// If it can't be run.
fn git<'a>(args: impl IntoIterator<Item = &'a str>) -> Result<Option<Vec<u8>>, String> {
    let args: Vec<&str> = args.into_iter().collect();
    let mut command = Command::new("git");
    let output = command.args(&args).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.map_err(|error| format!("git can't be run: {error}"))?;
    Ok(output.status.success().then_some(output.stdout))
}
