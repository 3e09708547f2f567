//! Builds the engine program of a release from the Go sources inside this binary, once.
//!
//! What is built lies in the cache folder under a name made of the sources, the release and the
//! version of Go, so that nothing stale is ever run and several builds can live side by side. Where
//! there is no Go (any more), one that any Go has built of the same sources is as good.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use etcetera::BaseStrategy;
use include_dir::{Dir, include_dir};
use sha2::{Digest, Sha256};

use super::NAME;
use crate::engine::EngineError;
use crate::model::rules::Release;

/// The Go sources of the hosts of upstream's code.
static SOURCES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/upstream");

/// The environment variable that names another cache folder.
pub const CACHE_VARIABLE: &str = "KUBE_LOCKSTEP_CACHE";

/// The oldest Go that builds the hosts: `testing/synctest` with timers in bubbles.
pub const OLDEST_GO: (u32, u32) = (1, 26);

/// What can be done without an engine of one's own, as a hint.
const WITHOUT: &str = "recorded traces (`--engine recorded`) and `predict` work without it";

/// Told what is being done, and which part of the whole is done if that is known.
pub type Progress<'a> = &'a mut dyn FnMut(&str, Option<f64>);

/// The cache folder: `$KUBE_LOCKSTEP_CACHE`, else `kube-lockstep` in the user's cache folder.
///
/// # Errors
/// If there is neither that variable nor a home.
pub fn cache_folder() -> Result<PathBuf, EngineError> {
    if let Some(folder) = std::env::var_os(CACHE_VARIABLE).filter(|folder| !folder.is_empty()) {
        return Ok(PathBuf::from(folder));
    }
    let strategy = etcetera::choose_base_strategy().map_err(|error| {
        let hint = format!("set {CACHE_VARIABLE} to a folder that can be written; {WITHOUT}");
        unavailable(format!("there is no cache folder: {error}"), hint)
    })?;
    Ok(strategy.cache_dir().join("kube-lockstep"))
}

/// The Go of this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Go {
    /// As it names itself: `go1.26.8`.
    pub version: String,
}

/// Looks for Go.
///
/// # Errors
/// If there is none, or only one that is too old; the error says what to do.
pub fn find_go() -> Result<Go, EngineError> {
    let (major, minor) = OLDEST_GO;
    let hint = format!("install Go {major}.{minor} or newer and put it on the PATH; {WITHOUT}");
    let output = Command::new("go").args(["env", "GOVERSION"]).output();
    let output = match output {
        Ok(output) if output.status.success() => output,
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(unavailable(format!("`go env` fails: {why}"), hint));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(unavailable("Go is not installed".to_owned(), hint));
        }
        Err(error) => return Err(unavailable(format!("Go can't be started: {error}"), hint)),
    };
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match go_version(&version) {
        Some(found) if found >= OLDEST_GO => Ok(Go { version }),
        Some(_) => Err(unavailable(format!("Go is too old: {version}"), hint)),
        None => Err(unavailable(format!("Go has an unknown version: {version:?}"), hint)),
    }
}

/// `go1.26.8`, `go1.27rc1`, `devel go1.28-…` → (1, 26), ….
fn go_version(text: &str) -> Option<(u32, u32)> {
    let numbers = &text[text.find("go")? + 2..];
    let mut parts = numbers.split('.');
    let number = |part: &str| {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..digits].parse().ok()
    };
    Some((number(parts.next()?)?, number(parts.next()?)?))
}

/// Whether the sources in this binary can build that release.
#[must_use]
pub fn supports(release: Release) -> bool {
    SOURCES.contains(mod_file(release))
}

/// The version of Kubernetes that is built for a release: `v1.36.3`. Nothing if none is known.
#[must_use]
pub fn version(release: Release) -> Option<String> {
    let text = SOURCES.get_file(mod_file(release))?.contents_utf8()?;
    let module = text.lines().find_map(|line| {
        line.trim_start_matches("require").trim().strip_prefix("k8s.io/kubernetes ")
    });
    module.and_then(|version| version.split_whitespace().next()).map(str::to_owned)
}

fn mod_file(release: Release) -> String {
    format!("versions/v{release}.mod")
}

/// The program of that release if it was built before.
///
/// # Errors
/// As [`cache_folder`]; and as [`find_go`] if it was not.
pub fn built(release: Release) -> Result<Option<PathBuf>, EngineError> {
    let cache = cache_folder()?;
    match find_go() {
        Ok(go) => Ok(Some(program(&cache, release, &go)).filter(|program| program.is_file())),
        Err(error) => built_before(&cache, release).map(Some).ok_or(error),
    }
}

/// The newest program that some Go has built of these sources.
fn built_before(cache: &Path, release: Release) -> Option<PathBuf> {
    let name = name(release);
    let entries = fs::read_dir(cache.join(ENGINES)).ok()?.flatten();
    let ours = entries.filter(|entry| {
        let file = entry.file_name();
        file.to_string_lossy().strip_prefix(&name).is_some_and(|rest| rest.starts_with('-'))
    });
    let modified = |entry: &fs::DirEntry| entry.metadata().and_then(|it| it.modified()).ok();
    let newest = ours.max_by_key(|entry| (modified(entry), entry.file_name()));
    newest.map(|entry| entry.path()).filter(|path| path.is_file())
}

/// The program of that release: built now if it was not built before. `stop` ends a build that is
/// under way.
///
/// # Errors
/// If there is no Go, the release is unknown, or the build fails (with what the compiler said).
pub fn ensure(
    release: Release,
    stop: &AtomicBool,
    progress: Progress<'_>,
) -> Result<PathBuf, EngineError> {
    if !supports(release) {
        return Err(unavailable(
            format!("upstream's code of release {release} is not known to it"),
            "`kube-lockstep doctor` lists the releases".to_owned(),
        ));
    }
    let cache = cache_folder()?;
    let go = match find_go() {
        Ok(go) => go,
        Err(error) => return built_before(&cache, release).ok_or(error),
    };
    let program = program(&cache, release, &go);
    if program.is_file() {
        return Ok(program);
    }
    let result = build(&cache, &program, release, stop, progress);
    result.map(|()| program)
}

fn program(cache: &Path, release: Release, go: &Go) -> PathBuf {
    // A Go from its own repository has spaces and the like in its version.
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
    let go: String = go.version.chars().map(plain).collect();
    cache.join(ENGINES).join(format!("{}-{go}", name(release)))
}

/// The name of what these sources build, up to the version of Go.
fn name(release: Release) -> String {
    let mut hash = Sha256::new();
    hash_folder(&SOURCES, release, &mut hash);
    let key: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("upstream-v{release}-{key}")
}

fn hash_folder(folder: &Dir<'_>, release: Release, hash: &mut Sha256) {
    for file in folder.files() {
        let path = file.path();
        let of_a_release = path.starts_with("versions");
        if of_a_release && path.file_stem() != Path::new(&mod_file(release)).file_stem() {
            continue;
        }
        hash.update(path.to_string_lossy().as_bytes());
        hash.update([0]);
        hash.update(file.contents());
        hash.update([0]);
    }
    for folder in folder.dirs() {
        hash_folder(folder, release, hash);
    }
}

fn build(
    cache: &Path,
    program: &Path,
    release: Release,
    stop: &AtomicBool,
    progress: Progress<'_>,
) -> Result<(), EngineError> {
    let failed = |what: &str, error: &io::Error| {
        unavailable(
            format!("{what}: {error}"),
            format!(
                "is {} writable, and is there space left? {CACHE_VARIABLE} names another folder; \
                 {WITHOUT}",
                cache.display()
            ),
        )
    };
    let engines = cache.join(ENGINES);
    fs::create_dir_all(&engines).map_err(|error| failed("no folder for engines", &error))?;
    // One build at a time for a cache: they would only slow each other down. The lock goes with
    // the process.
    let lock = File::create(engines.join(".lock")).map_err(|error| failed("no lock", &error))?;
    if lock.try_lock().is_err() {
        progress("waiting for another build", None);
        lock.lock().map_err(|error| failed("the lock can't be taken", &error))?;
        if program.is_file() {
            return Ok(());
        }
    }
    // Dropped, and so removed, also when the build fails. A name of its own is left only by a
    // `kill -9`, and the next build removes that.
    remove_leftovers(cache);
    let sources = tempfile::Builder::new()
        .prefix(LEFTOVER)
        .tempdir_in(cache)
        .map_err(|error| failed("no folder for sources", &error))?;
    SOURCES.extract(sources.path()).map_err(|error| failed("sources can't be unpacked", &error))?;
    compile(&Build { sources: sources.path(), stop }, release, progress)?;
    fs::rename(sources.path().join(OUTPUT), program)
        .map_err(|error| failed("the engine can't be put into place", &error))
}

/// Where engines lie in the cache folder.
const ENGINES: &str = "engines";
const LEFTOVER: &str = "build-";
const OUTPUT: &str = "engine";

fn remove_leftovers(cache: &Path) {
    let Ok(entries) = fs::read_dir(cache) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(LEFTOVER) {
            // Best effort: a folder that can't be removed does not keep a build from being made.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A build that is under way.
struct Build<'a> {
    sources: &'a Path,
    stop: &'a AtomicBool,
}

/// Compiles the host of a release. The packages first, one by one, since that tells the progress;
/// then the test binary, which `testing/synctest` asks for.
fn compile(build: &Build<'_>, release: Release, progress: Progress<'_>) -> Result<(), EngineError> {
    let modfile = format!("-modfile={}", mod_file(release));
    let tags = (6..=release.minor).map(|minor| format!("k1.{minor}")).collect::<Vec<_>>().join(",");
    let tags = format!("-tags={tags}");
    let common = ["-mod=readonly", &modfile, &tags];
    let label = format!("upstream v{release}");

    progress(&format!("{label}: resolving modules"), None);
    let mut packages = 0_usize;
    go(build, &["list", "-deps"], &common, &mut |line, out| {
        if out {
            packages += 1;
        } else if let Some(module) = line.strip_prefix("go: downloading ") {
            progress(&format!("{label}: downloading {module}"), None);
        }
    })?;
    let mut compiled = 0_usize;
    go(build, &["build", "-v"], &common, &mut |line, _| {
        if !line.starts_with("go: ") {
            compiled += 1;
        }
        let fraction = compiled as f64 / packages.max(1) as f64;
        progress(&format!("{label}: compiling {line}"), Some(fraction.min(0.99)));
    })?;
    progress(&format!("{label}: linking"), Some(0.99));
    let command = ["test", "-c", "-vet=off", "-ldflags=-s -w", "-o", OUTPUT];
    go(build, &command, &common, &mut |_, _| {})
}

/// Runs a command in a process group of its own that ends with its input: if this process is
/// killed, or lets go of the pipe, the whole group is ended and its folder removed, in which are
/// Go's own scratch files, too.
const GUARD: &str = r#"
folder=$1
shift
exec 3<&0
trap 'interrupted=1' TERM
( trap '' TERM; cat <&3 >/dev/null; kill -TERM 0; sleep 1; rm -rf -- "$folder" ) >/dev/null 2>&1 &
guard=$!
"$@" </dev/null 3<&-
status=$?
[ -n "$interrupted" ] || kill -KILL $guard
exit $status
"#;

/// How often a build looks whether it is to stop.
const GLANCE: Duration = Duration::from_millis(100);

/// A line of a child: of standard output (`true`) or of errors.
type Line = (String, bool);

/// Runs a command of Go's, handing on each line.
fn go(
    build: &Build<'_>,
    command: &[&str],
    common: &[&str],
    line: &mut dyn FnMut(&str, bool),
) -> Result<(), EngineError> {
    let failed = |why: String, output: &[String]| EngineError::Broken {
        engine: NAME.into(),
        why: format!("`go {}` {why}", command.join(" ")),
        output: output.join("\n"),
    };
    let mut child = Command::new("sh")
        .args(["-c", GUARD, "guard"])
        .arg(build.sources)
        .arg("go")
        .args(command)
        .args(common)
        .arg("./virtual")
        .current_dir(build.sources)
        .process_group(0)
        // A workspace or flags of the user's own project must not leak in.
        .env("GOWORK", "off")
        .env("GOFLAGS", "")
        .env("GOTMPDIR", build.sources)
        .env("CGO_ENABLED", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("can't be started: {error}"), &[]))?;
    let mut guard = child.stdin.take();
    let (sender, lines) = mpsc::channel();
    if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
        forward(stdout, true, sender.clone());
        forward(stderr, false, sender);
    }
    let mut errors: Vec<String> = Vec::new();
    loop {
        if build.stop.load(Ordering::Relaxed) {
            drop(guard.take());
        }
        match lines.recv_timeout(GLANCE) {
            Ok((text, out)) => {
                line(&text, out);
                if !out {
                    errors.push(text);
                }
                // The last lines say why; all of them could be thousands.
                if errors.len() > 40 {
                    errors.remove(0);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    match child.wait() {
        _ if build.stop.load(Ordering::Relaxed) => Err(failed("was interrupted".to_owned(), &[])),
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(match errors.iter().rev().find(|line| is_of_the_network(line)) {
            Some(line) => unavailable(
                format!("upstream's modules can't be downloaded: {}", line.trim()),
                format!("Go needs its module proxy (GOPROXY) for the first build; {WITHOUT}"),
            ),
            None => failed(format!("fails ({status})"), &errors),
        }),
        Err(error) => Err(failed(format!("can't be waited for: {error}"), &errors)),
    }
}

/// Whether Go says that it did not get at a module.
fn is_of_the_network(line: &str) -> bool {
    const WORDS: [&str; 8] = [
        "dial tcp",
        "no such host",
        "i/o timeout",
        "proxyconnect",
        "TLS handshake",
        "tls: failed",
        "connection reset by peer",
        "module lookup disabled by GOPROXY=off",
    ];
    WORDS.iter().any(|word| line.contains(word))
}

fn forward(pipe: impl io::Read + Send + 'static, out: bool, sender: mpsc::Sender<Line>) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            // Nobody listens any more: then nobody wants the rest.
            if sender.send((line, out)).is_err() {
                return;
            }
        }
    });
}

fn unavailable(why: String, hint: String) -> EngineError {
    EngineError::Unavailable { engine: NAME.into(), why, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_go_are_told_apart() {
        assert_eq!(go_version("go1.26.8"), Some((1, 26)));
        assert_eq!(go_version("go1.27rc1"), Some((1, 27)));
        assert_eq!(go_version("devel go1.28-abcdef Mon"), Some((1, 28)));
        assert_eq!(go_version("1.26"), None);
        assert!(go_version("go1.9.7") < Some(OLDEST_GO));
    }
}
