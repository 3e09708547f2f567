//! Builds the engine program of a release, once, from the Go sources built into this program.
//!
//! Engines are stored in the cache folder under a name derived from the sources, the release and
//! the version of Go, so that stale engines are never run and several versions can coexist. Without
//! Go, an engine built from the same sources with any version of Go is used.

use std::fs;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;

use include_dir::{Dir, include_dir};
use sha2::{Digest, Sha256};

use super::NAME;
use super::cache::{self, ENGINES, Scratch};
pub use super::cache::{CACHE_VARIABLE, Entry, cache_folder, size};
use super::go::{self, WITHOUT, go, unavailable};
pub use super::go::{Go, OLDEST_GO, find_go};
use super::staging;
use crate::engine::EngineError;
use crate::model::rules::Release;

/// The Go sources of the hosts of upstream's code.
pub(super) static SOURCES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/upstream");

/// The environment variable that sets the number of parallel builds.
pub const BUILDS_VARIABLE: &str = "KUBE_LOCKSTEP_BUILDS";

/// The number of cores that one build uses: the dependency chain of Kubernetes packages and the
/// linker leave other cores idle.
const CORES_OF_A_BUILD: usize = 2;

/// An artifact that is built from upstream's code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// The host of the HPA controller in virtual time.
    Host,
    /// etcd, kube-apiserver and kube-controller-manager in one program.
    ControlPlane,
}

impl What {
    const ALL: [What; 2] = [What::Host, What::ControlPlane];

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            What::Host => NAME,
            What::ControlPlane => "controlplane",
        }
    }

    /// The folder of the package.
    fn package(self) -> &'static str {
        match self {
            What::Host => HOST,
            What::ControlPlane => "./controlplane",
        }
    }

    /// The mod file for a release.
    pub(super) fn mod_file(self, release: Release) -> String {
        match self {
            What::Host => mod_file(release),
            What::ControlPlane => format!("controlplane/{}", mod_file(release)),
        }
    }

    /// Returns true if a folder of the sources belongs to it.
    fn needs(self, folder: &Path) -> bool {
        let own = folder.starts_with("controlplane");
        match self {
            What::Host => !own,
            What::ControlPlane => own,
        }
    }
}

/// Receives the current step, and the completed fraction if known.
pub type Progress<'a> = &'a mut dyn FnMut(&str, Option<f64>);

/// The number of parallel builds on this machine: `$KUBE_LOCKSTEP_BUILDS`, or one per two cores.
/// Builds of other processes with the same cache folder count.
#[must_use]
pub fn builds_at_a_time() -> usize {
    let wanted = std::env::var(BUILDS_VARIABLE).ok().and_then(|it| it.trim().parse().ok());
    wanted.map_or_else(|| (cores() / CORES_OF_A_BUILD).max(1), NonZero::<usize>::get)
}

fn cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// Returns true if the sources in this program can build the release.
#[must_use]
pub fn supports(what: What, release: Release) -> bool {
    SOURCES.contains(what.mod_file(release))
}

/// The releases that the sources in this program can build, oldest first.
pub fn supported(what: What) -> impl DoubleEndedIterator<Item = Release> {
    let folder = match what {
        What::Host => "versions",
        What::ControlPlane => "controlplane/versions",
    };
    let minors: std::collections::BTreeSet<u32> = (SOURCES.get_dir(folder).into_iter())
        .flat_map(|versions| versions.files())
        .filter_map(|file| {
            file.path().file_name()?.to_str()?.strip_prefix("v1.")?.strip_suffix(".mod")
        })
        .filter_map(|minor| minor.parse().ok())
        .collect();
    minors.into_iter().map(|minor| Release { minor })
}

/// The version of Kubernetes that is built for a release: `v1.36.3`. `None` if the release is
/// unknown.
#[must_use]
pub fn version(what: What, release: Release) -> Option<String> {
    let text = SOURCES.get_file(what.mod_file(release))?.contents_utf8()?;
    let module = text.lines().find_map(|line| {
        line.trim_start_matches("require").trim().strip_prefix("k8s.io/kubernetes ")
    });
    module.and_then(|version| version.split_whitespace().next()).map(str::to_owned)
}

pub(super) fn mod_file(release: Release) -> String {
    format!("versions/v{release}.mod")
}

/// The program of a release, if it is already built.
///
/// # Errors
/// As [`cache_folder`]; and as [`find_go`] if it was not.
pub fn built(what: What, release: Release) -> Result<Option<PathBuf>, EngineError> {
    let cache = cache_folder()?;
    match find_go() {
        Ok(go) => {
            Ok(Some(program(&cache, what, release, &go)).filter(|program| cache::hold(program)))
        }
        Err(error) => built_before(&cache, what, release).map(Some).ok_or(error),
    }
}

/// The newest program built from these sources with any version of Go.
fn built_before(cache: &Path, what: What, release: Release) -> Option<PathBuf> {
    let name = name(what, release);
    let entries = fs::read_dir(cache.join(ENGINES)).ok()?.flatten();
    let ours = entries.filter(|entry| is_of(&entry.file_name().to_string_lossy(), &name));
    let modified = |entry: &fs::DirEntry| entry.metadata().and_then(|it| it.modified()).ok();
    let newest = ours.max_by_key(|entry| (modified(entry), entry.file_name()));
    newest.map(|entry| entry.path()).filter(|path| path.is_file() && cache::hold(path))
}

/// Returns true if a file is the named program, built with any version of Go.
fn is_of(file: &str, name: &str) -> bool {
    file.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
}

/// All entries of the cache folder.
///
/// # Errors
/// As [`cache_folder`].
pub fn contents() -> Result<Vec<Entry>, EngineError> {
    let cache = cache_folder()?;
    let go = find_go().ok();
    let all = What::ALL.into_iter();
    let all = all.flat_map(|what| supported(what).map(move |release| (what, release)));
    let names: Vec<(String, Option<String>)> = all
        .map(|(what, release)| {
            let exact = go.as_ref().map(|go| program(&cache, what, release, go));
            let exact = exact.filter(|program| program.is_file());
            let file = |path: PathBuf| path.file_name().map(|it| it.to_string_lossy().into_owned());
            (name(what, release), exact.and_then(file))
        })
        .collect();
    // One that another Go has built is of use as long as this Go has built none.
    let is_current = |file: &str| {
        names.iter().any(|(name, exact)| match exact {
            Some(exact) => file == exact,
            None => is_of(file, name),
        })
    };
    Ok(cache::contents(&cache, &is_current))
}

/// Removes an entry from the cache folder. Returns false if a running process uses it.
///
/// # Errors
/// If it can't be removed.
pub fn remove(entry: &Entry) -> io::Result<bool> {
    cache::remove(entry)
}

/// The program of a release; builds it if necessary. `stop` stops the build.
///
/// # Errors
/// If there is no Go, the release is unknown, or the build fails (with what the compiler said).
pub fn ensure(
    what: What,
    release: Release,
    stop: &AtomicBool,
    progress: Progress<'_>,
) -> Result<PathBuf, EngineError> {
    if !supports(what, release) {
        let name = match what {
            What::Host => super::NAME,
            What::ControlPlane => "embedded",
        };
        return Err(EngineError::Unavailable {
            engine: name.into(),
            why: format!("this program can't build release {release}"),
            hint: match what {
                What::Host => "`kube-lockstep doctor` lists the releases".to_owned(),
                What::ControlPlane => {
                    let releases: Vec<String> =
                        supported(what).map(|release| release.to_string()).collect();
                    format!("the releases with a control plane are {}", releases.join(", "))
                }
            },
        });
    }
    let cache = cache_folder()?;
    let go = match find_go() {
        Ok(go) => go,
        Err(error) => return built_before(&cache, what, release).ok_or(error),
    };
    let program = program(&cache, what, release, &go);
    while !cache::hold(&program) {
        build((&cache, &program), (what, release), stop, progress)?;
    }
    Ok(program)
}

fn program(cache: &Path, what: What, release: Release, go: &Go) -> PathBuf {
    // A Go from its own repository has spaces and the like in its version.
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
    let go: String = go.version.chars().map(plain).collect();
    cache.join(ENGINES).join(format!("{}-{go}", name(what, release)))
}

/// The prefix of the name of the engine, without the version of Go.
fn name(what: What, release: Release) -> String {
    let mut hash = Sha256::new();
    hash_folder(&SOURCES, (what, release), &mut hash);
    format!("{}-v{release}-{}", what.name(), hex(&hash.finalize()))
}

/// The length of hashes in names.
pub(super) fn hex(hash: &[u8]) -> String {
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn hash_folder(folder: &Dir<'_>, (what, release): (What, Release), hash: &mut Sha256) {
    for file in folder.files() {
        let path = file.path();
        let of_a_release = path.components().any(|part| part.as_os_str() == "versions");
        if of_a_release && path.file_stem() != Path::new(&mod_file(release)).file_stem() {
            continue;
        }
        hash.update(path.to_string_lossy().as_bytes());
        hash.update([0]);
        hash.update(file.contents());
        hash.update([0]);
    }
    for folder in folder.dirs().filter(|folder| what.needs(folder.path())) {
        hash_folder(folder, (what, release), hash);
    }
}

/// The error for an unusable cache folder.
pub(super) fn not_usable(cache: &Path, what: &str, error: &io::Error) -> EngineError {
    unavailable(
        format!("{what}: {error}"),
        format!(
            "check that {} is writable and has free space, or set {CACHE_VARIABLE} to another \
             folder; {WITHOUT}",
            cache.display()
        ),
    )
}

/// The error for a build that was stopped.
pub(super) fn interrupted() -> EngineError {
    let (why, output) = ("its build was interrupted".to_owned(), String::new());
    EngineError::Broken { engine: NAME.into(), why, output }
}

fn build(
    (cache, program): (&Path, &Path),
    (what, release): (What, Release),
    stop: &AtomicBool,
    progress: Progress<'_>,
) -> Result<(), EngineError> {
    let failed = |what: &str, error: &io::Error| not_usable(cache, what, error);
    let engines = cache.join(ENGINES);
    fs::create_dir_all(&engines).map_err(|error| failed("no folder for engines", &error))?;
    // The same engine is not built twice, and no more of them at a time than the machine has room
    // for: more would only slow each other down.
    let file = program.file_name().unwrap_or_default().to_string_lossy();
    let own = engines.join(format!(".{file}.lock"));
    let own = cache::lock(&own, stop, progress).map_err(|error| failed("no lock", &error))?;
    let _own = own.ok_or_else(interrupted)?;
    if program.is_file() {
        return Ok(());
    }
    let places = builds_at_a_time();
    let place = cache::place(&engines, places, stop, progress);
    let _place = place.map_err(|error| failed("no lock", &error))?.ok_or_else(interrupted)?;
    let scratch = Scratch::new(cache).map_err(|error| failed("no folder for sources", &error))?;
    SOURCES.extract(scratch.path()).map_err(|error| failed("sources can't be unpacked", &error))?;
    let mut build = go::Build {
        name: NAME,
        sources: scratch.path(),
        scratch: scratch.path(),
        flags: flags(&what.mod_file(release), release, places, "readonly"),
        of: what.package(),
        stop,
    };
    let output = scratch.path().join(OUTPUT);
    let label = format!("{} v{release}", what.name());
    match what {
        What::Host => {
            let modules = staging::modules(cache, &build, release, progress)?;
            build.flags.extend(modules);
            compile(&build, &label, &output, progress)?;
        }
        What::ControlPlane => {
            let version = version(what, release).unwrap_or_default();
            compile_control_plane(&build, &label, (&version, &output), progress)?;
        }
    }
    fs::rename(output, program)
        .map_err(|error| failed("the engine can't be put into place", &error))
}

const OUTPUT: &str = "engine";

/// The package of the host.
pub(super) const HOST: &str = "./virtual";

/// What the commands of a build have in common: the mod file, the tags of all releases up to the
/// one whose Go API is meant, and the share of the cores.
pub(super) fn flags(modfile: &str, api: Release, builds: usize, mode: &str) -> Vec<String> {
    let tags = (6..=api.minor).map(|minor| format!("k1.{minor}")).collect::<Vec<_>>().join(",");
    vec![
        format!("-mod={mode}"),
        format!("-modfile={modfile}"),
        format!("-tags={tags}"),
        format!("-p={}", (cores() / builds.max(1)).max(1)),
    ]
}

/// Compiles a host: first the packages one by one, which shows the progress, then the test binary,
/// which `testing/synctest` requires.
pub(super) fn compile(
    build: &go::Build<'_>,
    label: &str,
    output: &Path,
    progress: Progress<'_>,
) -> Result<(), EngineError> {
    compile_packages(build, label, &["build", "-v"], progress)?;
    let output = output.to_string_lossy();
    let command = ["test", "-c", "-vet=off", "-ldflags=-s -w", "-o", &*output];
    go(build, &command, &mut |_, _| {})
}

/// Compiles a control plane that reports this version: clients can't parse the default.
fn compile_control_plane(
    build: &go::Build<'_>,
    label: &str,
    (version, output): (&str, &Path),
    progress: Progress<'_>,
) -> Result<(), EngineError> {
    let output = output.to_string_lossy();
    let says = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];
    let says = says.map(|package| format!("-X {package}.gitVersion={version}"));
    let flags = format!("-ldflags=-s -w {}", says.join(" "));
    compile_packages(build, label, &["build", "-v", &*flags, "-o", &*output], progress)
}

/// Compiles all packages one by one, which shows the progress.
fn compile_packages(
    build: &go::Build<'_>,
    label: &str,
    command: &[&str],
    progress: Progress<'_>,
) -> Result<(), EngineError> {
    progress(&format!("{label}: resolving modules"), None);
    let mut packages = 0_usize;
    go(build, &["list", "-deps"], &mut |line, out| {
        if out {
            packages += 1;
        } else if let Some(module) = line.strip_prefix("go: downloading ") {
            progress(&format!("{label}: downloading {module}"), None);
        }
    })?;
    let mut compiled = 0_usize;
    go(build, command, &mut |line, _| {
        if !line.starts_with("go: ") {
            compiled += 1;
        }
        let fraction = compiled as f64 / packages.max(1) as f64;
        progress(&format!("{label}: compiling {line}"), Some(fraction.min(0.99)));
    })?;
    progress(&format!("{label}: linking"), Some(0.99));
    Ok(())
}
