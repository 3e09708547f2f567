//! The cache folder: built engines, locks, and stale files.
//!
//! Several processes can use it at once. An engine is installed with a rename, protected by a
//! shared lock while a process runs it, and removed only under an exclusive lock. Locks are
//! released when their process ends.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, UNIX_EPOCH};

use etcetera::BaseStrategy;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use super::artifact::{Progress, hex};
use super::go::{WITHOUT, unavailable};
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::Preparation;

/// The environment variable that sets the cache folder.
pub const CACHE_VARIABLE: &str = "KUBE_LOCKSTEP_CACHE";

/// The subfolder of engines of releases.
pub(super) const ENGINES: &str = "engines";
/// The subfolder of links to modules without a go.mod.
pub(super) const STAGING: &str = "staging";
/// The subfolder of engines of local checkouts, each in its own folder.
pub(super) const CHECKOUTS: &str = "checkouts";
/// The file in this folder with the path of the checkout.
pub(super) const ORIGIN: &str = "origin";
/// The prefix of the folder of a build.
const BUILDING: &str = "building-";
/// The former prefix of folders of builds, and the former lock of builds.
const OLD_BUILDING: &str = "build-";
const OLD_LOCK: &str = "engines/.lock";

/// The interval at which a build checks whether it can begin: file locks have no notification.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The cache folder: `$KUBE_LOCKSTEP_CACHE`, else `kube-lockstep` in the user's cache folder.
///
/// # Errors
/// If there is neither that variable nor a home.
pub fn cache_folder() -> Result<PathBuf, EngineError> {
    if let Some(folder) = std::env::var_os(CACHE_VARIABLE).filter(|folder| !folder.is_empty()) {
        return Ok(PathBuf::from(folder));
    }
    let strategy = etcetera::choose_base_strategy().map_err(|error| {
        let hint = format!("set {CACHE_VARIABLE} to a writable folder; {WITHOUT}");
        unavailable(format!("there is no cache folder: {error}"), hint)
    })?;
    Ok(strategy.cache_dir().join("kube-lockstep"))
}

/// The error for an unusable cache folder.
pub(super) fn not_usable(cache: &Path, problem: &str, error: &io::Error) -> EngineError {
    unavailable(
        format!("{problem}: {error}"),
        format!(
            "check that {} is writable and has free space, or set {CACHE_VARIABLE} to another \
             folder; {WITHOUT}",
            cache.display()
        ),
    )
}

/// The engines that this process uses, locked until it ends.
static HELD: Mutex<BTreeMap<PathBuf, File>> = Mutex::new(BTreeMap::new());

/// Protects an engine from removal while this process runs. Returns true if the engine exists and
/// is undamaged.
pub(super) fn hold(program: &Path) -> bool {
    if !is_intact(program) {
        return false;
    }
    let Ok(file) = File::open(program) else { return false };
    // A file system without locks must not prevent runs.
    let _ = file.lock_shared();
    // It may have been removed before it was locked.
    let exists = program.is_file();
    if exists && let Ok(mut held) = HELD.lock() {
        held.insert(program.to_owned(), file);
    }
    exists
}

/// Returns true if an engine is the file that was installed, and can be executed. It is hashed
/// again only if its size or the time of its last change is not as recorded.
pub(super) fn is_intact(program: &Path) -> bool {
    let path = checksum_file(program);
    let Ok(recorded) = fs::read_to_string(&path) else { return false };
    let Ok(metadata) = fs::metadata(program) else { return false };
    let Some((hash, version)) = recorded.split_once('\n') else { return false };
    if !metadata.is_file() || !is_executable(&metadata) {
        return false;
    }
    if version == version_of(&metadata) {
        return true;
    }
    // A copied cache has the same files with other times.
    let intact = hash_of(program).is_ok_and(|current| current == hash);
    if intact {
        // Otherwise the next run hashes the file again.
        let _ = fs::write(path, checksum(hash, &metadata));
    }
    intact
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    true
}

/// Installs an engine, and records its checksum. Replaces a damaged engine.
pub(super) fn install(output: &Path, program: &Path) -> io::Result<()> {
    if program.is_dir() {
        fs::remove_dir_all(program)?;
    }
    // A process that ends in between leaves an engine that does not match, which is built again.
    fs::write(checksum_file(program), checksum(&hash_of(output)?, &fs::metadata(output)?))?;
    fs::rename(output, program)
}

/// The file with the checksum of an engine: the first bytes of its SHA-256, and its version.
fn checksum_file(program: &Path) -> PathBuf {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    program.with_file_name(format!(".{name}{CHECKSUM}"))
}

/// The end of the name of a file with a checksum.
const CHECKSUM: &str = ".checksum";

/// The content of a file with a checksum.
fn checksum(hash: &str, metadata: &fs::Metadata) -> String {
    format!("{hash}\n{}", version_of(metadata))
}

/// The size of a file, and the time of its last change.
fn version_of(metadata: &fs::Metadata) -> String {
    let modified = metadata.modified().ok();
    let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    format!("{} {}\n", metadata.len(), modified.unwrap_or_default().as_nanos())
}

fn hash_of(file: &Path) -> io::Result<String> {
    let (mut file, mut hash) = (File::open(file)?, Sha256::new());
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&buffer[..read]),
        }
    }
}

/// The folder of a build. It is removed after the build, even if the build fails; the next build
/// removes folders left by a `kill -9`.
pub(super) struct Scratch {
    folder: tempfile::TempDir,
    _lock: File,
}

impl Scratch {
    pub(super) fn new(cache: &Path) -> io::Result<Scratch> {
        // Held briefly, so that no process mistakes a folder that is not locked yet for a leftover.
        let all = File::create(cache.join(".lock"))?;
        all.lock()?;
        for left in leftover_builds(cache) {
            // Best effort: a folder that can't be removed does not prevent a build.
            let _ = fs::remove_dir_all(left);
        }
        let folder = tempfile::Builder::new().prefix(BUILDING).tempdir_in(cache)?;
        let lock = File::create(folder.path().join(".lock"))?;
        lock.lock()?;
        Ok(Scratch { folder, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Leftover folders of builds.
fn leftover_builds(cache: &Path) -> Vec<PathBuf> {
    let free = |lock: PathBuf| File::open(lock).map_or(true, |lock| lock.try_lock().is_ok());
    let is_leftover = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(BUILDING) {
            free(path.join(".lock"))
        } else {
            name.starts_with(OLD_BUILDING) && free(cache.join(OLD_LOCK))
        }
    };
    entries(cache).into_iter().filter(is_leftover).collect()
}

/// The entries of a folder, sorted; empty if it can't be read.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Takes the lock with this name; waits until it is free or `stop` is cancelled.
pub(super) fn lock(
    path: &Path,
    stop: &CancellationToken,
    progress: Progress<'_>,
) -> io::Result<Option<File>> {
    let file = File::create(path)?;
    let mut reported = false;
    while !stop.is_cancelled() {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => wait(&mut reported, progress),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// Takes one of the build slots; waits until one is free or `stop` is cancelled.
pub(super) fn build_slot(
    engines: &Path,
    slots: usize,
    stop: &CancellationToken,
    progress: Progress<'_>,
) -> io::Result<Option<File>> {
    let mut reported = false;
    while !stop.is_cancelled() {
        for slot in 1..=slots.max(1) {
            let file = File::create(engines.join(format!(".place-{slot}.lock")))?;
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        wait(&mut reported, progress);
    }
    Ok(None)
}

fn wait(reported: &mut bool, progress: Progress<'_>) {
    if !std::mem::replace(reported, true) {
        progress(Preparation::new("waiting for another build"));
    }
    std::thread::sleep(POLL_INTERVAL);
}

/// An entry of the cache folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The path of the file or folder.
    pub path: PathBuf,
    /// The size in bytes.
    pub bytes: u64,
    /// The reason why it is stale; `None` if it is in use by this version.
    pub stale: Option<&'static str>,
}

/// All entries of a cache folder. `is_current` decides whether this program would run the engine
/// with a file name.
pub(super) fn contents(cache: &Path, is_current: &dyn Fn(&str) -> bool) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut add = |path: PathBuf, stale| {
        let bytes = size(&path);
        found.push(Entry { path, bytes, stale });
    };
    for path in entries(&cache.join(ENGINES)) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            let stale = match is_current(&name) {
                true if path.is_file() && !is_intact(&path) => Some("damaged"),
                true => None,
                false => Some("from another version of kube-lockstep or Go"),
            };
            add(path, stale);
        } else if is_leftover_lock(&path, &name, is_current) {
            add(path, Some("the lock of a missing engine"));
        } else if let Some(engine) = name.strip_suffix(CHECKSUM).and_then(|it| it.strip_prefix('.'))
            && !path.with_file_name(engine).exists()
        {
            add(path, Some("the checksum of a missing engine"));
        }
    }
    let left = leftover_builds(cache);
    let is_build = |path: &PathBuf| starts_with(path, BUILDING) && !left.contains(path);
    // A running build may use a link at any time.
    if !entries(cache).iter().any(is_build) {
        let links = entries(&cache.join(STAGING)).into_iter().filter(|path| path.is_symlink());
        for path in links {
            let is_dead = !path.exists();
            add(path, is_dead.then_some("a dead link to Go's module cache"));
        }
    }
    for path in entries(&cache.join(CHECKOUTS)).into_iter().filter(|path| path.is_dir()) {
        let origin = fs::read_to_string(path.join(ORIGIN)).unwrap_or_default();
        let exists = !origin.is_empty() && Path::new(&origin).is_dir();
        add(path, (!exists).then_some("from a deleted checkout"));
    }
    for path in left {
        add(path, Some("left behind by a killed build"));
    }
    found
}

fn starts_with(path: &Path, begin: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(begin))
}

/// Returns true if it is the unused lock of an engine that is missing and would not be built again.
/// The locks of build slots are few, and always the same.
fn is_leftover_lock(path: &Path, name: &str, is_current: &dyn Fn(&str) -> bool) -> bool {
    let engine = name.strip_prefix('.').and_then(|name| name.strip_suffix(".lock"));
    let Some(engine) = engine.filter(|engine| !engine.starts_with("place-")) else { return false };
    let free = || File::open(path).is_ok_and(|file| file.try_lock().is_ok());
    !path.with_file_name(engine).exists() && !is_current(engine) && free()
}

/// Removes an entry from the cache folder. Returns false if it is in use.
pub(super) fn remove(entry: &Entry) -> io::Result<bool> {
    // Removes the link, not its target.
    if entry.path.is_symlink() {
        return fs::remove_file(&entry.path).map(|()| true);
    }
    if !entry.path.is_dir() {
        return remove_engine(&entry.path);
    }
    let lock = entry.path.join(".lock");
    let free = |path: &Path| match File::open(path) {
        Ok(file) => match file.try_lock() {
            Ok(()) => Some(Some(file)),
            Err(_) => None,
        },
        Err(_) => Some(None),
    };
    let inside = entries(&entry.path).into_iter().filter(|path| is_engine(path));
    let held: Option<Vec<Option<File>>> = inside.chain([lock]).map(|path| free(&path)).collect();
    match held {
        Some(_held) => fs::remove_dir_all(&entry.path).map(|()| true),
        None => Ok(false),
    }
}

/// Removes an engine unless it is in use.
pub(super) fn remove_engine(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        // Another process removed it first.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        other => other?,
    };
    match file.try_lock() {
        Ok(()) => {
            fs::remove_file(path)?;
            // An engine without a checksum is not run.
            let _ = fs::remove_file(checksum_file(path));
            // Also removes the engine's lock, unless the engine is being rebuilt.
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let lock = path.with_file_name(format!(".{name}.lock"));
            if File::open(&lock).is_ok_and(|file| file.try_lock().is_ok()) {
                let _ = fs::remove_file(lock);
            }
            Ok(true)
        }
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The prefix of the engines of a checkout.
pub(super) const ENGINE: &str = "engine-";

pub(super) fn is_engine(path: &Path) -> bool {
    starts_with(path, ENGINE)
}

/// The size of a file or a folder with its contents. Unreadable files count as 0; links are not
/// followed.
#[must_use]
pub fn size(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => entries(path).iter().map(|path| size(path)).sum(),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_parallel_builds_wait() {
        let folder = tempfile::tempdir().expect("a folder");
        let stop = CancellationToken::new();
        let take = |progress: Progress<'_>| build_slot(folder.path(), 2, &stop, progress);
        let first = take(&mut |it| panic!("{it}")).expect("a lock");
        let second = take(&mut |it| panic!("{it}")).expect("a lock");
        assert!(first.is_some() && second.is_some());
        std::thread::scope(|threads| {
            let (reported, hears) = std::sync::mpsc::channel();
            let third = threads.spawn(move || {
                take(&mut |it| reported.send(it.to_string()).expect("the receiver exists"))
            });
            assert_eq!(hears.recv().as_deref(), Ok("waiting for another build"));
            drop(first);
            assert!(third.join().expect("no panic").expect("a lock").is_some());
        });
        stop.cancel();
        assert!(take(&mut |_| {}).expect("no error").is_none(), "the wait was cancelled");
    }

    /// Writes a file that can be executed.
    fn write_program(path: &Path) {
        fs::write(path, "engine").expect("a file");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;

            let permissions = fs::Permissions::from_mode(0o755);
            fs::set_permissions(path, permissions).expect("the permissions can be set");
        }
    }

    #[test]
    fn entries_in_use_are_not_removed() {
        let cache = tempfile::tempdir().expect("a folder");
        let engines = cache.path().join(ENGINES);
        let checkout = cache.path().join(CHECKOUTS).join("0");
        for folder in [&engines, &checkout] {
            fs::create_dir_all(folder).expect("a folder");
        }
        for path in [engines.join("old"), checkout.join("engine-0")] {
            fs::write(path, "engine").expect("a file");
        }
        let output = cache.path().join("output");
        write_program(&output);
        install(&output, &engines.join("mine")).expect("the engine can be installed");
        let building = Scratch::new(cache.path()).expect("a folder");
        let left = cache.path().join("building-left");
        fs::create_dir(&left).expect("a folder");
        let found = contents(cache.path(), &|name| name == "mine");
        let names = |found: &[Entry]| {
            let names = found.iter().map(|entry| {
                let name = entry.path.file_name().expect("a name").to_string_lossy().into_owned();
                (name, entry.stale.is_some())
            });
            names.collect::<Vec<_>>()
        };
        let names = names(&found);
        assert!(names.contains(&("mine".to_owned(), false)), "{names:?}");
        for stale in ["old", "0", "building-left"] {
            assert!(names.contains(&(stale.to_owned(), true)), "{stale}: {names:?}");
        }
        assert_eq!(names.len(), 4, "the running build is not listed: {names:?}");
        // Locks the files, as another process would.
        let held = [engines.join("old"), checkout.join("engine-0")].map(|path| {
            let file = File::open(path).expect("a file");
            file.lock_shared().expect("a lock");
            file
        });
        let remove = |name: &str| {
            let entry =
                found.iter().find(|entry| entry.path.ends_with(name)).expect("the entry exists");
            remove(entry).expect("the entry can be removed")
        };
        assert!(!remove("old") && !remove("0"));
        drop(held);
        // A process that another test starts has the same files open until it has called exec.
        let removes = |name: &str| {
            (0..500).any(|_| {
                remove(name) || {
                    std::thread::sleep(Duration::from_millis(10));
                    false
                }
            })
        };
        assert!(removes("old") && removes("0") && removes("building-left"));
        assert!(!checkout.exists() && !left.exists() && building.path().exists());
        assert!(hold(&engines.join("mine")));
        assert!(!remove("mine"), "this process holds the engine");
        assert!(!hold(&engines.join("old")), "the engine was removed");
    }
}
