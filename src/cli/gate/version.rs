//! A version of manifests: a git revision, a folder, or a file.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::failure::Failure;
use super::super::manifests::{has_manifests, read_manifests};
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
    /// The folders in which there are no manifests.
    pub(super) empty: Vec<EmptyFolder>,
}

/// A folder without manifests.
pub(super) struct EmptyFolder {
    /// The folder, for messages: `the folder deploy of main`.
    pub(super) name: String,
    /// True if its subfolders have manifests.
    pub(super) has_manifests_below: bool,
}

impl Version {
    /// Finds the version that an option names: a file or a folder, or else a git revision.
    pub(super) fn find(flag: &str, name: &str) -> Result<Version, Failure> {
        let path = Path::new(name);
        let commit = commit(name);
        if !path.exists() {
            let commit = commit.map_err(|why| {
                let what = format!("{flag} {name}: there is no such file or folder, and {why}");
                let failure = Failure::usage(what);
                let is_shallow = git(["rev-parse", "--is-shallow-repository"]);
                match is_shallow.is_ok_and(|text| text.starts_with(b"true")) {
                    true => failure.hint(format!(
                        "this clone is shallow: fetch {name}, or in GitHub Actions set \
                         `fetch-depth: 0` for actions/checkout"
                    )),
                    false => failure,
                }
            })?;
            return Ok(Version::Revision { name: name.to_owned(), commit });
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
        let version = self.to_string();
        let mut found =
            Found { version, files: Vec::new(), missing: Vec::new(), empty: Vec::new() };
        match self {
            Version::File(path) => {
                found.files = read_manifests(std::slice::from_ref(path), false)?;
            }
            Version::Folder(folder) => {
                let mut present = Vec::new();
                for path in paths {
                    let whole = joined_path(folder, path);
                    if has_manifests(&whole, recursive) {
                        present.push(whole);
                    } else if whole.exists() {
                        let (name, has_manifests_below) =
                            (folder_name(&whole), has_manifests(&whole, true));
                        found.empty.push(EmptyFolder { name, has_manifests_below });
                    } else {
                        found.missing.push(path.clone());
                    }
                }
                found.files = read_manifests(&present, recursive)?;
            }
            Version::Revision { name, commit } => {
                let revision = Revision { name, commit };
                for path in paths {
                    let Some(files) = revision.files(path, recursive)? else {
                        found.missing.push(path.clone());
                        continue;
                    };
                    if files.is_empty() {
                        let below = revision.files(path, true)?;
                        found.empty.push(EmptyFolder {
                            name: format!("{} of {name}", folder_name(path)),
                            has_manifests_below: below.is_some_and(|it| !it.is_empty()),
                        });
                    }
                    found.files.extend(files);
                }
            }
        }
        Ok(found)
    }
}

/// The name of a folder in messages.
pub(super) fn folder_name(path: &Path) -> String {
    match path == Path::new(".") {
        true => "the current folder".to_owned(),
        false => format!("the folder {}", path.display()),
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
    git(["rev-parse", "--git-dir"]).map_err(|why| match why.contains("not a git repository") {
        true => "this is not a git repository".to_owned(),
        false => why,
    })?;
    let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &revision];
    let commit = git(args).map_err(|_| "git knows no such revision here".to_owned())?;
    Ok(String::from_utf8_lossy(&commit).trim().to_owned())
}

/// A revision of the repository of the current folder.
struct Revision<'v> {
    name: &'v str,
    commit: &'v str,
}

/// An entry of a folder in a revision.
struct Entry {
    /// The path from the root of the repository.
    path: PathBuf,
    is_link: bool,
    is_folder: bool,
}

/// The most symbolic links on a path.
const MOST_LINKS: usize = 16;

impl Revision<'_> {
    /// The manifests at a path, which is relative to the current folder. None: the revision
    /// does not have the path.
    fn files(&self, path: &Path, recursive: bool) -> Result<Option<Vec<ManifestFile>>, Failure> {
        let prefix = git(["rev-parse", "--show-prefix"]).map_err(Failure::engine)?;
        let prefix = String::from_utf8_lossy(&prefix).trim_end_matches(['\n', '\r']).to_owned();
        let outside = || {
            let what = format!("-f {}: it is outside of the repository", path.display());
            Failure::usage(what).hint("name a path in the repository of the current folder")
        };
        let from_root = match path.is_absolute() {
            true => {
                let root = git(["rev-parse", "--show-toplevel"]).map_err(Failure::engine)?;
                let root = PathBuf::from(String::from_utf8_lossy(&root).trim_end().to_owned());
                path.strip_prefix(root).map_err(|_| outside())?.to_owned()
            }
            false => Path::new(&prefix).join(path),
        };
        let from_root = normalized(&from_root).ok_or_else(outside)?;
        let Some(found) = self.find(&from_root, MOST_LINKS)? else { return Ok(None) };
        if !found.is_folder {
            return Ok(Some(vec![self.file(&found.path, path, false)?]));
        }
        let mut files = Vec::new();
        for entry in self.list(&found.path, recursive)? {
            let extension = entry.path.extension().and_then(OsStr::to_str);
            if !matches!(extension, Some("yaml" | "yml" | "json")) {
                continue;
            }
            let shown = path.join(entry.path.strip_prefix(&found.path).unwrap_or(&entry.path));
            let target = match entry.is_link {
                true => self.find(&entry.path, MOST_LINKS)?.filter(|target| !target.is_folder),
                false => Some(entry),
            };
            if let Some(target) = target {
                files.push(self.file(&target.path, &shown, true)?);
            }
        }
        Ok(Some(files))
    }

    /// The entry at a path from the root of the repository. Symbolic links on the path are
    /// followed. None: there is nothing.
    fn find(&self, path: &Path, links: usize) -> Result<Option<Entry>, Failure> {
        let mut at = PathBuf::new();
        let parts: Vec<Component<'_>> = path.components().collect();
        for (index, part) in parts.iter().enumerate() {
            at.push(part);
            let Some(entry) = self.list_at(&at)? else { return Ok(None) };
            if entry.is_link {
                let target = self.blob(&at)?;
                let target = PathBuf::from(String::from_utf8_lossy(&target).into_owned());
                let rest: PathBuf = parts[index + 1..].iter().collect();
                let folder = at.parent().unwrap_or(Path::new(""));
                let target = normalized(&folder.join(target).join(rest));
                return match (target, links.checked_sub(1)) {
                    (Some(target), Some(links)) => self.find(&target, links),
                    _ => Ok(None),
                };
            }
            if index + 1 == parts.len() {
                return Ok(Some(entry));
            }
        }
        Ok(Some(Entry { path: at, is_link: false, is_folder: true }))
    }

    fn list_at(&self, path: &Path) -> Result<Option<Entry>, Failure> {
        let path = path.display().to_string();
        let args = ["ls-tree", "-z", "--full-tree", self.commit, "--", &path];
        let list = git(args).map_err(Failure::engine)?;
        Ok(String::from_utf8_lossy(&list).split('\0').find_map(|line| Entry::parse("", line)))
    }

    fn list(&self, folder: &Path, recursive: bool) -> Result<Vec<Entry>, Failure> {
        let object = format!("{}:{}", self.commit, folder.display());
        let mut args = vec!["ls-tree", "-z", "--full-tree"];
        args.extend(recursive.then_some("-r"));
        args.push(&object);
        let list = git(args).map_err(Failure::engine)?;
        let list = String::from_utf8_lossy(&list);
        let folder = folder.display().to_string();
        let entries = list.split('\0').filter_map(|line| Entry::parse(&folder, line));
        Ok(entries.filter(|entry| !entry.is_folder).collect())
    }

    fn blob(&self, path: &Path) -> Result<Vec<u8>, Failure> {
        let object = format!("{}:{}", self.commit, path.display());
        git(["cat-file", "blob", &object]).map_err(Failure::engine)
    }

    /// Reads a file. `shown`: its path as the user named it.
    fn file(&self, path: &Path, shown: &Path, lenient: bool) -> Result<ManifestFile, Failure> {
        let name = format!("{}:{}", self.name, shown.display());
        let text = String::from_utf8(self.blob(path)?)
            .map_err(|_| Failure::usage(format!("{name}: the file is not UTF-8")))?;
        Ok(ManifestFile { name, text, lenient })
    }
}

impl Entry {
    /// Reads `100644 blob OBJECT\tNAME`. None: it is neither a file, a link nor a folder.
    fn parse(folder: &str, line: &str) -> Option<Entry> {
        let (about, name) = line.split_once('\t')?;
        let (mode, rest) = about.split_once(' ')?;
        let is_folder = rest.starts_with("tree ");
        let is_known = is_folder || rest.starts_with("blob ");
        let path = Path::new(folder).join(name);
        is_known.then_some(Entry { path, is_link: mode == "120000", is_folder })
    }
}

/// A path without `.` and `..`. None: it leads out of its root.
fn normalized(path: &Path) -> Option<PathBuf> {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !normalized.pop() {
                    return None;
                }
            }
            Component::Normal(name) => normalized.push(name),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(normalized)
}

/// Runs git.
///
/// # Errors
/// If it can't be run, or fails: its last message.
fn git<'a>(args: impl IntoIterator<Item = &'a str>) -> Result<Vec<u8>, String> {
    let args: Vec<&str> = args.into_iter().collect();
    let output = Command::new("git").args(&args).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("git can't be run: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let last = message.lines().last().unwrap_or("it failed").to_owned();
    Err(format!("git {}: {last}", args[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_root() {
        let normal = |path: &str| normalized(Path::new(path));
        assert_eq!(normal("a/./b/../c"), Some("a/c".into()));
        assert_eq!(normal("a/.."), Some(PathBuf::new()));
        assert_eq!(normal("a/../.."), None);
    }
}
