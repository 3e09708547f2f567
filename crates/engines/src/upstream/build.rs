//! Builds the engine program of a release, once, from the Go sources built into this program.
//!
//! Engines are stored in the cache folder under a name derived from the sources, the release and
//! the version of Go, so that stale engines are never run and several versions can coexist. Without
//! Go, an engine built from the same sources with any version of Go is used.

use std::fs;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

pub use super::artifact::{Artifact, Progress, supported, supports, version};
use super::artifact::{NAME, hex};
use super::cache::{self, ENGINES, Scratch, not_usable};
pub use super::cache::{CACHE_VARIABLE, Entry, cache_folder, size};
use super::go::{self, WITHOUT, go, interrupted, unavailable};
pub use super::go::{Go, OLDEST_GO, find_go};
use super::staging;
use kube_autoscaler_models::rules::MinorVersion;
use kube_lockstep_data::UPSTREAM;
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::Preparation;

/// The settings of builds, and the way to stop them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct BuildOptions {
    /// Cancelled to stop a build.
    pub stop: CancellationToken,
    /// True if a program that is not in the cache folder is an error.
    pub only_cached: bool,
}

impl BuildOptions {
    /// Builds that this token stops, unless only programs in the cache folder may be used.
    #[must_use]
    pub fn new(stop: CancellationToken, only_cached: bool) -> BuildOptions {
        BuildOptions { stop, only_cached }
    }
}

/// Programs are built.
impl From<&CancellationToken> for BuildOptions {
    fn from(stop: &CancellationToken) -> BuildOptions {
        BuildOptions { stop: stop.clone(), only_cached: false }
    }
}

impl From<&BuildOptions> for BuildOptions {
    fn from(options: &BuildOptions) -> BuildOptions {
        options.clone()
    }
}

/// The environment variable that sets the number of parallel builds.
pub(crate) const BUILDS_VARIABLE: &str = "KUBE_LOCKSTEP_BUILDS";

/// The number of cores that one build uses: the dependency chain of Kubernetes packages and the
/// linker leave other cores idle.
const CORES_OF_A_BUILD: usize = 2;

/// The number of parallel builds on this machine: `$KUBE_LOCKSTEP_BUILDS`, or one per two cores.
/// Builds of other processes with the same cache folder count.
#[must_use]
pub(crate) fn builds_at_a_time() -> usize {
    let configured = std::env::var(BUILDS_VARIABLE).ok().and_then(|it| it.trim().parse().ok());
    configured.map_or_else(|| (cores() / CORES_OF_A_BUILD).max(1), NonZero::<usize>::get)
}

fn cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// The program of a release, if it is already built.
///
/// # Errors
/// As [`cache_folder`]; and as [`find_go`] if the program is not built.
pub fn built(
    artifact: Artifact,
    release: impl Into<MinorVersion>,
) -> Result<Option<PathBuf>, EngineError> {
    let release = release.into();
    let cache = cache_folder()?;
    match find_go(&mut |_| {}) {
        Ok(go) => {
            Ok(Some(program(&cache, artifact, release, &go)).filter(|program| cache::hold(program)))
        }
        Err(error) => built_before(&cache, artifact, release).map(Some).ok_or(error),
    }
}

/// Returns true if the program of a release is in the cache, but is not the file that was built.
#[must_use]
pub fn is_damaged(artifact: Artifact, release: impl Into<MinorVersion>) -> bool {
    let release = release.into();
    let Ok((cache, go)) = cache_folder().and_then(|cache| Ok((cache, find_go(&mut |_| {})?)))
    else {
        return false;
    };
    let program = program(&cache, artifact, release, &go);
    program.exists() && !cache::is_intact(&program)
}

/// The newest program built from these sources with any version of Go.
fn built_before(cache: &Path, artifact: Artifact, release: MinorVersion) -> Option<PathBuf> {
    let name = name(artifact, release);
    let entries = fs::read_dir(cache.join(ENGINES)).ok()?.flatten();
    let ours = entries.filter(|entry| is_build_of(&entry.file_name().to_string_lossy(), &name));
    let modified = |entry: &fs::DirEntry| entry.metadata().and_then(|it| it.modified()).ok();
    let newest = ours.max_by_key(|entry| (modified(entry), entry.file_name()));
    newest.map(|entry| entry.path()).filter(|path| path.is_file() && cache::hold(path))
}

/// Returns true if a file is the named program, built with any version of Go.
fn is_build_of(file: &str, name: &str) -> bool {
    file.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
}

/// All entries of the cache folder.
///
/// # Errors
/// As [`cache_folder`].
pub fn contents() -> Result<Vec<Entry>, EngineError> {
    let cache = cache_folder()?;
    let go = find_go(&mut |_| {}).ok();
    let all = Artifact::ALL.into_iter();
    let all = all.flat_map(|artifact| supported(artifact).map(move |release| (artifact, release)));
    let names: Vec<(String, Option<String>)> = all
        .map(|(artifact, release)| {
            let exact = go.as_ref().map(|go| program(&cache, artifact, release, go));
            let exact = exact.filter(|program| program.is_file());
            let file = |path: PathBuf| path.file_name().map(|it| it.to_string_lossy().into_owned());
            (name(artifact, release), exact.and_then(file))
        })
        .collect();
    // An engine that another version of Go built is used until this version has built one.
    let is_current = |file: &str| {
        names.iter().any(|(name, exact)| match exact {
            Some(exact) => file == exact,
            None => is_build_of(file, name),
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

/// The program of a release; builds it if necessary and allowed.
///
/// # Errors
/// If there is no Go, the release is unknown, or the build fails (with the compiler's output).
pub fn ensure(
    artifact: Artifact,
    release: impl Into<MinorVersion>,
    options: impl Into<BuildOptions>,
    progress: Progress<'_>,
) -> Result<PathBuf, EngineError> {
    let (release, options) = (release.into(), options.into());
    if !supports(artifact, release) {
        let name = match artifact {
            Artifact::Host => NAME,
            Artifact::ControlPlane | Artifact::RecommenderProgram => "embedded",
            Artifact::Recommender | Artifact::Updater => artifact.name(),
        };
        return Err(EngineError::Unavailable {
            engine: name.into(),
            problem: Diagnostic::new(format!("this program can't build release {release}")).hint(
                match artifact {
                    Artifact::Host => "`kube-lockstep doctor` lists the releases".to_owned(),
                    Artifact::ControlPlane => {
                        format!("the releases with a control plane are {}", list_of(artifact))
                    }
                    Artifact::Recommender | Artifact::RecommenderProgram => {
                        format!("the releases of the recommender are {}", list_of(artifact))
                    }
                    Artifact::Updater => {
                        format!("the releases of the updater are {}", list_of(artifact))
                    }
                },
            ),
        });
    }
    let cache = cache_folder()?;
    let go = match find_go(progress) {
        Ok(go) => go,
        Err(error) => return built_before(&cache, artifact, release).ok_or(error),
    };
    let program = program(&cache, artifact, release, &go);
    while !cache::hold(&program) {
        if options.only_cached {
            // As without Go.
            let other = built_before(&cache, artifact, release);
            return other.ok_or_else(|| not_built(artifact, release));
        }
        build(&cache, &program, artifact, release, &options.stop, progress)?;
    }
    Ok(program)
}

/// The error for a program that is not built, and may not be.
fn not_built(artifact: Artifact, release: MinorVersion) -> EngineError {
    let (name, time) = (artifact.name(), artifact.build_time());
    let why =
        format!("{name} v{release} is not in the cache folder, and --no-build forbids building it");
    unavailable(why, format!("leave out --no-build: the build takes {time}; {WITHOUT}"))
}

/// The releases that can be built, as text.
fn list_of(artifact: Artifact) -> String {
    let releases: Vec<String> = supported(artifact).map(|release| release.to_string()).collect();
    releases.join(", ")
}

fn program(cache: &Path, artifact: Artifact, release: MinorVersion, go: &Go) -> PathBuf {
    // The version of an unreleased Go contains spaces.
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
    let go: String = go.version.chars().map(plain).collect();
    cache.join(ENGINES).join(format!("{}-{go}", name(artifact, release)))
}

/// The prefix of the name of the engine, without the version of Go.
fn name(artifact: Artifact, release: MinorVersion) -> String {
    format!("{}-v{release}-{}", artifact.name(), sources_hash(artifact, release))
}

/// The hash of the sources of a release's program: the Go files, and the versions and checksums of
/// all modules. It identifies the program, whatever version of Go compiles it.
#[must_use]
pub fn sources_hash(artifact: Artifact, release: impl Into<MinorVersion>) -> String {
    let release = release.into();
    let mut hash = Sha256::new();
    let version = format!("v{release}");
    for path in UPSTREAM.paths() {
        let file = Path::new(path);
        let is_versioned = file.components().any(|part| part.as_os_str() == "versions");
        let is_of_release = file.file_stem().is_some_and(|stem| stem == version.as_str());
        if !artifact.includes(file) || (is_versioned && !is_of_release) {
            continue;
        }
        hash.update(path.as_bytes());
        hash.update([0]);
        // The build reports a file that can't be read.
        hash.update(UPSTREAM.read(path).unwrap_or_default());
        hash.update([0]);
    }
    hex(&hash.finalize())
}

fn build(
    cache: &Path,
    program: &Path,
    artifact: Artifact,
    release: MinorVersion,
    stop: &CancellationToken,
    progress: Progress<'_>,
) -> Result<(), EngineError> {
    let failed = |problem: &str, error: &io::Error| not_usable(cache, problem, error);
    let engines = cache.join(ENGINES);
    fs::create_dir_all(&engines).map_err(|error| failed("no folder for engines", &error))?;
    // Locks prevent concurrent builds of one engine, and more parallel builds than the cores allow.
    let file = program.file_name().unwrap_or_default().to_string_lossy();
    let lock = engines.join(format!(".{file}.lock"));
    let lock = cache::lock(&lock, stop, progress).map_err(|error| failed("no lock", &error))?;
    let _lock = lock.ok_or_else(interrupted)?;
    if cache::is_intact(program) {
        return Ok(());
    }
    let label = format!("{} v{release}", artifact.name());
    let why = match program.exists() {
        true => "the cached engine is damaged",
        false => "it is not in the cache folder",
    };
    let time = artifact.build_time();
    progress(Preparation::step(&label, format!("building it, because {why}; this takes {time}")));
    let builds = builds_at_a_time();
    let slot = cache::build_slot(&engines, builds, stop, progress);
    let _slot = slot.map_err(|error| failed("no lock", &error))?.ok_or_else(interrupted)?;
    let scratch = Scratch::new(cache).map_err(|error| failed("no folder for sources", &error))?;
    UPSTREAM
        .extract(scratch.path())
        .map_err(|error| failed("sources can't be unpacked", &error))?;
    let mut build = go::Build {
        name: NAME,
        sources: scratch.path(),
        scratch: scratch.path(),
        flags: flags(artifact, &artifact.mod_file(release), release, builds, "readonly"),
        target: artifact.package(),
        stop,
    };
    let output = scratch.path().join(OUTPUT);
    match artifact {
        Artifact::Host => {
            let modules = staging::modules(cache, &build, release, progress)?;
            build.flags.extend(modules);
            compile(&build, &label, &output, progress)?;
        }
        Artifact::ControlPlane => {
            let version = version(artifact, release).unwrap_or_default();
            compile_control_plane(&build, &label, &version, &output, progress)?;
        }
        Artifact::Recommender | Artifact::Updater => {
            compile(&build, &label, &output, progress)?;
        }
        Artifact::RecommenderProgram => {
            let output = output.to_string_lossy();
            let command = ["build", "-v", "-ldflags=-s -w", "-o", &*output];
            compile_packages(&build, &label, &command, progress)?;
        }
    }
    cache::install(&output, program)
        .map_err(|error| failed("the engine can't be installed", &error))
}

const OUTPUT: &str = "engine";

/// The flags that the commands of a build share: the mod file, the tags of all releases up to the
/// release whose Go API is used, and the share of the cores.
pub fn flags(
    artifact: Artifact,
    modfile: &str,
    api: MinorVersion,
    builds: usize,
    mode: &str,
) -> Vec<String> {
    let tags = artifact.tags(api).join(",");
    vec![
        format!("-mod={mode}"),
        format!("-modfile={modfile}"),
        format!("-tags={tags}"),
        format!("-p={}", (cores() / builds.max(1)).max(1)),
    ]
}

/// Compiles a host: first the packages one by one, which shows the progress, then the test binary,
/// which `testing/synctest` requires.
pub fn compile(
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
    version: &str,
    output: &Path,
    progress: Progress<'_>,
) -> Result<(), EngineError> {
    let output = output.to_string_lossy();
    let packages = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];
    let variables = packages.map(|package| format!("-X {package}.gitVersion={version}"));
    let flags = format!("-ldflags=-s -w {}", variables.join(" "));
    compile_packages(build, label, &["build", "-v", &*flags, "-o", &*output], progress)
}

/// Compiles all packages one by one, which shows the progress.
fn compile_packages(
    build: &go::Build<'_>,
    label: &str,
    command: &[&str],
    progress: Progress<'_>,
) -> Result<(), EngineError> {
    progress(Preparation::step(label, "resolving modules"));
    let mut packages = 0_usize;
    go(build, &["list", "-deps"], &mut |line, out| {
        if out {
            packages += 1;
        } else if let Some(module) = line.strip_prefix("go: downloading ") {
            progress(Preparation::step(label, format!("downloading {module}")));
        }
    })?;
    let compiling = |step: String, fraction: f64| Preparation {
        fraction: Some(fraction),
        ..Preparation::step(label, step)
    };
    let mut compiled = 0_usize;
    go(build, command, &mut |line, _| {
        if !line.starts_with("go: ") {
            compiled += 1;
        }
        let fraction = compiled as f64 / packages.max(1) as f64;
        progress(compiling(format!("compiling {line}"), fraction.min(0.99)));
    })?;
    progress(compiling("linking".to_owned(), 0.99));
    Ok(())
}
