//! `kube-lockstep doctor`.

#[cfg(feature = "clusters")]
mod clusters;

use std::fmt::{Display, Write as _};
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::Path;

use super::args::{OneRelease, Source};
use super::exit;
use super::fixtures::{AnyFixture, Fixtures};
use super::output::PreparationLog;
use super::prune::size;
use kube_autoscaler_models::rules::{MinorVersion, Release, VpaRelease};
use kube_lockstep_engines::recorded::Traces;
use kube_lockstep_engines::upstream::build;
use kube_lockstep_engines::{recorded, upstream};
use kube_lockstep_report::style::{BAD, DIM, GOOD, STRONG, WARN, paint};
use kube_lockstep_sim::engine::{EngineError, model};

const HELP: &str = "\
Exit codes:
  0    the upstream controller can run here
  2    an invalid command line
  3    it cannot run here";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(super) struct Args {
    #[command(flatten)]
    release: OneRelease,
    #[command(flatten)]
    source: Source,
}

/// The free space to recommend for the first build of an engine, including Go's caches.
const MIN_DISK_SPACE: u64 = 4 << 30;

/// The free space to recommend for the files of parallel control planes.
const MIN_TEMPORARY_SPACE: u64 = 1 << 30;

/// The free memory to recommend for building and running a control plane.
const MIN_MEMORY: u64 = 3 << 30;

/// The maximum length of the folder's path: the path of a socket has at most 107 bytes, of which
/// etcd's socket requires 40 below the folder.
const MAX_FOLDER_LENGTH: usize = 60;

/// The checks in a build without wall-clock engines.
#[cfg(not(feature = "clusters"))]
mod clusters {
    use super::{Check, State};
    use kube_autoscaler_models::rules::Release;
    use kube_lockstep_engines::registry::{Clock, ENGINES, EngineInfo, feature_hint};

    pub(super) fn checks(_: Release) -> (Option<Check>, Vec<Check>) {
        let check = |engine: &EngineInfo| {
            let feature = engine.missing_feature(kube_lockstep::HAS_CLUSTERS)?;
            let found = format!("requires a build with `--features {feature}`");
            Some(Check::new(State::Missing, engine.name, found).hint(feature_hint(feature)))
        };
        let wall_clock = ENGINES.iter().filter(|engine| engine.clock == Clock::Wall);
        (None, wall_clock.filter_map(check).collect())
    }
}

/// The result of one check.
#[derive(Clone)]
struct Check {
    state: State,
    name: String,
    found: String,
    hint: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Ok,
    /// The engine can run here, but must be built first.
    Unbuilt,
    Warning,
    Missing,
}

impl Check {
    fn new(state: State, name: impl Into<String>, found: impl Into<String>) -> Check {
        Check { state, name: name.into(), found: found.into(), hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> Check {
        Check { hint: Some(hint.into()), ..self }
    }

    /// A check that failed with the error of an engine.
    fn missing(name: impl Into<String>, error: EngineError) -> Check {
        match error {
            EngineError::Unavailable { problem, .. } => {
                let hint = problem.hint_text();
                Check { hint, ..Check::new(State::Missing, name, problem.what) }
            }
            EngineError::Unsupported { why, .. } | EngineError::Broken { why, .. } => {
                Check::new(State::Missing, name, why)
            }
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let release = args.release.release;
    let fixtures = Fixtures::find(args.source.fixtures.as_deref())?;
    let (docker, wall_clock) = clusters::checks(release);
    let machine = [
        go(),
        cache_folder(),
        space(),
        temporary_folder(),
        memory(),
        loopback(),
        docker,
        scenarios(&fixtures),
    ];
    let upstream = program(build::Artifact::Host, upstream::NAME, release);
    let best = upstream.state != State::Missing;
    let read = fixtures.all().iter().map(|it| Some((it.id.as_str(), it.parse_any().ok()?)));
    let all: Vec<(&str, AnyFixture)> = read.flatten().collect();
    let traces = fixtures.traces();
    let recorded = recorded_engine(
        &traces,
        &all,
        release,
        |any| matches!(any, AnyFixture::Hpa(hpa) if hpa.unsupported_on(release).is_none()),
    );
    let vpa = VpaRelease::NEWEST;
    let recorded_vpas = recorded_engine(
        &traces,
        &all,
        vpa,
        |any| matches!(any, AnyFixture::Vpa(scenario) if scenario.unsupported_on(vpa).is_none()),
    );
    let recommender = recommender_engine(vpa);
    let virtual_time = vec![upstream, recorded, model_engine(release), recommender, recorded_vpas];
    let engines = [virtual_time, wall_clock].concat();
    let mut text = format!("{}\n", paint(STRONG, "this machine"));
    let all = || machine.iter().flatten().chain(&engines);
    let fill = all().map(|check| check.name.len()).max().unwrap_or(0);
    machine.iter().flatten().for_each(|check| show(&mut text, check, fill));
    let _ = writeln!(text, "{}", paint(STRONG, "engines"));
    engines.iter().for_each(|check| show(&mut text, check, fill));
    let takes = if best { upstream::NAME } else { recorded::NAME };
    let _ = writeln!(text, "other problems and their causes: docs/troubleshooting.md");
    let _ = writeln!(text, "`kube-lockstep run` uses {}", paint(STRONG, takes));
    super::output::show(&text)?;
    Ok(if best { exit::CONFORMS } else { exit::ENGINE })
}

fn show(text: &mut String, check: &Check, fill: usize) {
    let (word, style) = match check.state {
        State::Ok => ("ok     ", GOOD),
        State::Unbuilt => ("unbuilt", WARN),
        State::Warning => ("warning", WARN),
        State::Missing => ("missing", BAD),
    };
    let _ = writeln!(text, "  {}  {:fill$}  {}", paint(style, word), check.name, check.found);
    if let Some(hint) = &check.hint {
        let _ = writeln!(text, "           {:fill$}  {}", "", paint(DIM, hint));
    }
}

fn go() -> Option<Check> {
    let (major, minor) = build::OLDEST_GO;
    let mut preparing = PreparationLog::default();
    Some(match build::find_go(&mut |it| preparing.log(&it)) {
        Ok(go) => {
            let found = format!("{} ({major}.{minor} or newer is required)", go.version);
            Check::new(State::Ok, "Go", found)
        }
        Err(error) => Check::missing("Go", error),
    })
}

fn cache_folder() -> Option<Check> {
    const NAME: &str = "cache folder";
    let folder = match build::cache_folder() {
        Ok(folder) => folder,
        Err(error) => return Some(Check::missing(NAME, error)),
    };
    let shown = folder.display();
    if let Err(error) = check_writable(&folder) {
        let check = Check::new(State::Missing, NAME, format!("{shown} is not writable: {error}"));
        let hint = format!(
            "set {} to a writable folder; engines that are already built can be used",
            build::CACHE_VARIABLE
        );
        return Some(check.hint(hint));
    }
    if !folder.exists() {
        let found = format!("{shown}, created when an engine is built");
        return Some(Check::new(State::Ok, NAME, found));
    }
    let all = format!("{shown}, {}", size(build::size(&folder)));
    let stale = build::contents().unwrap_or_default();
    let stale: u64 = stale.iter().filter(|it| it.stale.is_some()).map(|it| it.bytes).sum();
    if stale == 0 {
        return Some(Check::new(State::Ok, NAME, all));
    }
    let check = Check::new(State::Ok, NAME, format!("{all}, of which {} stale", size(stale)));
    Some(check.hint("`kube-lockstep prune` removes stale files"))
}

/// Checks that the folder is writable, or can be created.
pub(super) fn check_writable(folder: &Path) -> io::Result<()> {
    let existing = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    // Creating a temporary file is the only reliable check.
    tempfile::tempfile_in(existing).map(drop)
}

/// The free space in a folder, if it is known.
#[cfg(unix)]
fn free_in(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free_in(_: &Path) -> Option<u64> {
    None
}

/// The free space in the cache folder.
fn space() -> Option<Check> {
    let mut folder = build::cache_folder().ok()?;
    while !folder.exists() {
        folder = folder.parent()?.to_owned();
    }
    let free = free_in(&folder)?;
    let found = format!("{} free", size(free));
    Some(if free < MIN_DISK_SPACE {
        let hint = "the first build of an engine requires a few GB, including Go's caches";
        Check::new(State::Warning, "disk space", found).hint(hint)
    } else {
        Check::new(State::Ok, "disk space", found)
    })
}

fn scenarios(fixtures: &Fixtures) -> Option<Check> {
    let (count, origin) = (fixtures.all().len(), fixtures.origin());
    let state = if count == 0 { State::Missing } else { State::Ok };
    Some(Check::new(state, "scenarios", format!("{count} in {origin}")))
}

/// The folder of the files of control planes, including sockets, whose paths must be short.
fn temporary_folder() -> Option<Check> {
    const NAME: &str = "temporary folder";
    let folder = std::env::temp_dir();
    let shown = folder.display();
    if let Err(error) = check_writable(&folder) {
        let check = Check::new(State::Missing, NAME, format!("{shown} is not writable: {error}"));
        return Some(check.hint("set TMPDIR to a writable folder"));
    }
    if folder.as_os_str().len() > MAX_FOLDER_LENGTH {
        let found = format!("{shown}: the path is too long for the sockets of control planes");
        let check = Check::new(State::Warning, NAME, found);
        return Some(check.hint("set TMPDIR to a folder with a shorter path"));
    }
    if let Some(free) = free_in(&folder).filter(|free| *free < MIN_TEMPORARY_SPACE) {
        let check = Check::new(State::Warning, NAME, format!("{shown}, {} free", size(free)));
        let hint = "each of up to six parallel control planes requires 0.2 GB there: set TMPDIR to \
                    another folder";
        return Some(check.hint(hint));
    }
    Some(Check::new(State::Ok, NAME, shown.to_string()))
}

/// The free memory; `None` on systems without `/proc/meminfo`.
fn memory() -> Option<Check> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    let free = kibibytes.saturating_mul(1024);
    let found = format!("{} free", size(free));
    Some(if free < MIN_MEMORY {
        let hint = "each of up to six parallel control planes requires 0.7 GB, and building one \
                    requires 2 GB";
        Check::new(State::Warning, "memory", found).hint(hint)
    } else {
        Check::new(State::Ok, "memory", found)
    })
}

/// Checks that a control plane can listen on loopback.
fn loopback() -> Option<Check> {
    Some(match TcpListener::bind(("127.0.0.1", 0)) {
        Ok(_) => Check::new(State::Ok, "loopback", "127.0.0.1 accepts listeners"),
        Err(error) => Check::new(State::Missing, "loopback", format!("127.0.0.1: {error}"))
            .hint("control planes and the metrics API listen there"),
    })
}

/// An engine that is built from upstream's code.
fn program(what: build::Artifact, name: &str, release: impl Into<MinorVersion> + Display) -> Check {
    let text = release.to_string();
    let builds = format!("`kube-lockstep run --engine {name} --release {text}`");
    let name = format!("{name} {text}");
    let release = release.into();
    if !build::supports(what, release) {
        let all: Vec<String> = build::supported(what).map(|it| it.to_string()).collect();
        let found = format!("not supported; the supported releases are {}", all.join(", "));
        return Check::new(State::Missing, name, found);
    }
    match build::built(what, release) {
        Ok(Some(program)) => {
            let bytes = fs::metadata(&program).map_or(0, |metadata| metadata.len());
            Check::new(State::Ok, name, format!("built, {}", size(bytes)))
        }
        Ok(None) if build::is_damaged(what, release) => {
            let found = "the built engine is damaged; the next run builds it again";
            Check::new(State::Warning, name, found).hint(format!("build it with {builds}"))
        }
        Ok(None) => match build::cache_folder().map(|folder| check_writable(&folder)) {
            Ok(Ok(())) => Check::new(State::Unbuilt, name, "not built yet")
                .hint(format!("build it with {builds}, which takes minutes")),
            Ok(Err(_)) => {
                Check::new(State::Missing, name, "not built yet, and cannot be built: see above")
            }
            Err(error) => Check::missing(name, error),
        },
        Err(error) => Check::missing(name, error),
    }
}

/// The host of the VPA's recommender.
fn recommender_engine(release: VpaRelease) -> Check {
    program(build::Artifact::Recommender, upstream::NAME, release)
}

/// The recorded traces of one kind of scenarios on a release. `supports` returns false for the
/// other kind, and for scenarios that the release does not support: they require no trace.
fn recorded_engine(
    traces: &Traces,
    scenarios: &[(&str, AnyFixture)],
    release: impl Copy + Display + Into<MinorVersion>,
    supports: impl Fn(&AnyFixture) -> bool,
) -> Check {
    let name = format!("{} {release}", recorded::NAME);
    let supported = scenarios.iter().filter(|(_, any)| supports(any));
    let all: Vec<&str> = supported.map(|(id, _)| *id).collect();
    let has = |id: &&&str| matches!(traces.find(id, release), Ok(Some(_)));
    let count = all.iter().filter(has).count();
    let found = format!("traces of {count} of {} scenarios", all.len());
    match count {
        0 => Check::new(State::Missing, name, found)
            .hint("record them with `cargo xtask record` (requires Go)"),
        _ if count < all.len() => Check::new(State::Warning, name, found)
            .hint("record the others with `cargo xtask record` (requires Go)"),
        _ => Check::new(State::Ok, name, found),
    }
}

fn model_engine(release: Release) -> Check {
    let found = "requires nothing; checks a scenario's expectations, not upstream";
    Check::new(State::Ok, format!("{} {release}", model::NAME), found)
}
