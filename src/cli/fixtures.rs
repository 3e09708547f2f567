//! The sources of scenarios (a folder of fixtures, the fixtures built into this program, or files),
//! and their selection by ids and globs.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use fast_glob::glob_match;

use super::exit;
use super::failure::Failure;
use super::files;
use kube_autoscaler_models::rules::VpaRelease;
use kube_lockstep::Content;
use kube_lockstep_data::FIXTURES;
use kube_lockstep_engines::input_file;
use kube_lockstep_engines::input_file::InputError;
use kube_lockstep_engines::recorded;
use kube_lockstep_engines::recorded::Traces;
use kube_lockstep_scenario as scenario;
use kube_lockstep_scenario::vpa::VpaScenario;
use kube_lockstep_scenario::{AnyScenario, Diagnostic, READS_MANIFESTS, Scenario};
use kube_lockstep_sim::compare::{Known, KnownDisagreement};

/// The folder of fixtures, in the repository and in the current folder.
const FOLDER: &str = "fixtures";
/// The file of known disagreements, in a folder of fixtures.
const KNOWN: &str = "divergences.yaml";
/// The special characters of globs.
const GLOB: [char; 4] = ['*', '?', '[', '{'];
/// The folder of invalid files.
const INVALID: &str = "invalid";

/// A set of scenario files.
#[derive(Clone, Debug)]
pub(super) struct Fixtures {
    root: Root,
    /// Sorted by id.
    files: Vec<Fixture>,
}

#[derive(Clone, Debug)]
enum Root {
    Folder(PathBuf),
    Embedded,
}

/// A scenario file that is not read yet.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Fixture {
    /// The path below the fixtures without extension; for other files, the path.
    pub(super) id: String,
    /// The path for messages.
    pub(super) path: String,
    text: Text,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Text {
    OnDisk(PathBuf),
    Embedded(Arc<str>),
}

/// The scenario of a fixture.
#[derive(Clone, Debug)]
pub(super) enum AnyFixture {
    Hpa(Arc<Scenario>),
    Vpa(Arc<VpaScenario>),
}

impl AnyFixture {
    /// The scenario, if a model predicts its controller.
    pub(super) fn with_model(self) -> Result<AnyFixture, Failure> {
        match &self {
            AnyFixture::Hpa(scenario) if scenario.has_objects() => {
                let path = &scenario.path;
                let what =
                    format!("{path}: no model predicts what a controller does with `objects`");
                let run = format!("kube-lockstep run --program FILE --compare expectations {path}");
                Err(Failure::usage(what).hint(format!("run your controller: `{run}`")))
            }
            _ => Ok(self),
        }
    }

    /// The scenario in which all autoscalers change the workload, so that it can be measured.
    pub(super) fn applied(self) -> Result<Arc<Scenario>, Failure> {
        let scenario = match self {
            AnyFixture::Hpa(scenario) => return Ok(scenario),
            AnyFixture::Vpa(scenario) => scenario,
        };
        scenario.applied(VpaRelease::NEWEST).map(Arc::new).ok_or_else(|| {
            let what = format!("{}: a scenario with several VPAs can't be measured", scenario.path);
            Failure::usage(what).hint("write a scenario for each VPA")
        })
    }
}

impl Fixtures {
    /// The ids, sorted.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.id.as_str())
    }

    /// Finds the fixtures in a folder. By default, uses `./fixtures` if it contains scenarios,
    /// otherwise the fixtures built into this program.
    pub(super) fn find(named: Option<&Path>) -> Result<Fixtures, Failure> {
        if let Some(folder) = named {
            let files = files_below(folder).map_err(|error| {
                Failure::usage(format!("{}: {error}", folder.display()))
                    .hint("set --fixtures to a folder with scenario files")
            })?;
            check_unique_ids(&files)?;
            return Ok(Fixtures { root: Root::Folder(folder.to_owned()), files });
        }
        match files_below(Path::new(FOLDER)) {
            Ok(files) if !files.is_empty() => {
                check_unique_ids(&files)?;
                Ok(Fixtures { root: Root::Folder(PathBuf::from(FOLDER)), files })
            }
            _ => Ok(Fixtures { root: Root::Embedded, files: embedded() }),
        }
    }

    /// The source of the fixtures, as text.
    pub(super) fn origin(&self) -> String {
        match &self.root {
            Root::Folder(folder) => format!("{}/", folder.display()),
            Root::Embedded => "the fixtures built into this program".to_owned(),
        }
    }

    /// Returns true if the fixtures are built into this program.
    pub(super) fn are_embedded(&self) -> bool {
        matches!(self.root, Root::Embedded)
    }

    /// All fixtures.
    pub(super) fn all(&self) -> &[Fixture] {
        &self.files
    }

    /// Selects scenarios by id, folder of ids (`tolerance`), glob (`**/*window*`), or file, folder
    /// or glob on disk. Without names, selects all fixtures. The result has no duplicates and is
    /// sorted by id, with files that are not fixtures last. It is an error if there are none.
    pub(super) fn select(&self, names: &[String]) -> Result<Vec<Fixture>, Failure> {
        if names.is_empty() && self.files.is_empty() {
            return Err(Failure::nothing(format!("{} contains no scenarios", self.origin())));
        }
        if names.is_empty() {
            return Ok(self.files.clone());
        }
        let mut selected = Vec::new();
        let mut others: Vec<Fixture> = Vec::new();
        for name in names {
            let found = self.named(name)?;
            let on_disk = if !found.is_empty() {
                selected.extend(found);
                continue;
            } else if Path::new(name).is_file() {
                vec![self.file(name)]
            } else {
                self.on_disk(name)?
            };
            for file in on_disk {
                if !others.iter().any(|other| other.id == file.id) {
                    others.push(file);
                }
            }
        }
        selected.sort();
        selected.dedup();
        others.retain(|other| !selected.iter().any(|fixture| fixture.id == other.id));
        selected.extend(others);
        Ok(selected)
    }

    /// Selects scenarios in the order of the names: each is an id, a file, or the folder or glob of
    /// several.
    pub(super) fn in_order(&self, names: &[String]) -> Result<Vec<Fixture>, Failure> {
        let mut selected: Vec<Fixture> = Vec::new();
        for name in names {
            let one = self.files.iter().find(|fixture| fixture.id == *name);
            let found = match one {
                Some(fixture) => vec![fixture.clone()],
                None => match self.named(name)? {
                    found if !found.is_empty() => found,
                    _ if Path::new(name).is_file() => vec![self.file(name)],
                    _ => self.on_disk(name)?,
                },
            };
            for fixture in found {
                if !selected.iter().any(|other| other.id == fixture.id) {
                    selected.push(fixture);
                }
            }
        }
        Ok(selected)
    }

    /// The scenario files on disk in a folder, or that match a glob. Fixtures keep their ids.
    fn on_disk(&self, name: &str) -> Result<Vec<Fixture>, Failure> {
        if Path::new(name).is_dir() {
            return self.folder(name);
        }
        let found = if is_glob(name) { glob(name) } else { Vec::new() };
        if found.is_empty() {
            return Err(self.not_found(name, true));
        }
        Ok(found.iter().map(|path| self.file(path)).collect())
    }

    /// Selects a single scenario: an id or a file.
    pub(super) fn one(&self, name: &str) -> Result<Fixture, Failure> {
        if let Some(fixture) = self.files.iter().find(|fixture| fixture.id == name) {
            return Ok(fixture.clone());
        }
        if Path::new(name).is_file() {
            return Ok(self.file(name));
        }
        if self.named(name)?.is_empty() && Path::new(name).is_dir() {
            let first = &self.folder(name)?[0];
            let what = format!("{name:?} is a folder, but this command requires a single scenario");
            let hint = format!(
                "for example {}; to run all of them: `kube-lockstep run --engine model {name}`",
                first.path
            );
            return Err(Failure::usage(what).hint(hint));
        }
        Err(Failure { code: exit::USAGE, ..self.not_found(name, false) })
    }

    fn named(&self, name: &str) -> Result<Vec<Fixture>, Failure> {
        let is_glob = is_glob(name);
        if is_glob && let Some(bracket) = unclosed(name) {
            let what = format!("{name:?} is not a valid glob: {bracket} is not closed");
            return Err(Failure::usage(what));
        }
        let folder = format!("{}/", name.trim_end_matches('/'));
        let matches = |fixture: &&Fixture| match is_glob {
            true => glob_match(name, &*fixture.id) || glob_match(name, &*fixture.path),
            // Paths of folders also match fixtures built into this program.
            false => {
                fixture.id == name
                    || fixture.id.starts_with(&folder)
                    || fixture.path.starts_with(&folder)
            }
        };
        Ok(self.files.iter().filter(matches).cloned().collect())
    }

    /// A file on disk. A fixture keeps its id.
    fn file(&self, name: &str) -> Fixture {
        let path = PathBuf::from(name);
        let same = |fixture: &&Fixture| match (&fixture.text, fs::canonicalize(&path)) {
            (Text::OnDisk(other), Ok(path)) => fs::canonicalize(other).is_ok_and(|it| it == path),
            _ => false,
        };
        match self.files.iter().find(same) {
            Some(fixture) => Fixture { path: name.to_owned(), ..fixture.clone() },
            None => {
                Fixture { id: name.to_owned(), path: name.to_owned(), text: Text::OnDisk(path) }
            }
        }
    }

    /// The scenario files of a folder on disk. Fixtures keep their ids.
    fn folder(&self, name: &str) -> Result<Vec<Fixture>, Failure> {
        let found = files_below(Path::new(name))
            .map_err(|error| Failure::usage(format!("{name}: {error}")))?;
        if found.is_empty() {
            let hint = format!("if it contains manifests, name it with -f: `predict -f {name}`");
            return Err(Failure::nothing(format!("{name} contains no scenarios")).hint(hint));
        }
        Ok(found.iter().map(|fixture| self.file(&fixture.path)).collect())
    }

    /// The error for a name that matches no scenario, or too many. `folders`: true if the name of a
    /// folder is allowed.
    fn not_found(&self, name: &str, folders: bool) -> Failure {
        let origin = self.origin();
        if let Ok([first, ..]) = self.named(name).as_deref() {
            return Failure::usage(format!("{name:?} matches several scenarios"))
                .hint(format!("name one of them, for example {:?}", first.id));
        }
        let failure = if is_glob(name) {
            Failure::nothing(format!("no scenario in {origin} and no file matches {name:?}"))
        } else {
            Failure::usage(format!("{name:?} is neither a scenario in {origin} nor a file"))
        };
        let mut candidates: BTreeSet<&str> =
            self.files.iter().map(|fixture| fixture.id.as_str()).collect();
        if folders {
            let ids = candidates.clone().into_iter();
            candidates.extend(ids.filter_map(|id| id.rsplit_once('/').map(|(folder, _)| folder)));
        }
        match nearest(name.trim_end_matches('/'), candidates.into_iter()) {
            Some(id) => failure.hint(format!("did you mean {id:?}?")),
            None => {
                failure.hint(format!("`kube-lockstep list` shows all scenarios; {READS_MANIFESTS}"))
            }
        }
    }

    /// The known disagreements of these fixtures.
    pub(super) fn known(&self) -> Result<Vec<KnownDisagreement>, Failure> {
        let (path, text) = match &self.root {
            Root::Folder(folder) => {
                let path = folder.join(KNOWN);
                match files::read(&path) {
                    Ok(text) => (path.display().to_string(), text),
                    Err(InputError::Io(error)) if error.kind() == ErrorKind::NotFound => {
                        return Ok(Vec::new());
                    }
                    Err(error) => {
                        return Err(Failure::unreadable(&path.display().to_string(), &error));
                    }
                }
            }
            Root::Embedded => {
                (format!("{FOLDER}/{KNOWN}"), FIXTURES.text(KNOWN).unwrap_or_default())
            }
        };
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let known = scenario::decode_file(&path, &text, Known::flaw);
        let known = known.map_err(|error| Failure::usage(error.to_string()))?.divergences;
        for entry in &known {
            if !self.files.iter().any(|fixture| fixture.id == entry.scenario) {
                let what = format!("{path}: there is no scenario {}", entry.scenario);
                return Err(Failure::usage(what).hint("remove the entry"));
            }
        }
        Ok(known)
    }

    /// The recorded traces of these fixtures: next to the folder in a repository, otherwise those
    /// built into this program.
    pub(super) fn traces(&self) -> Traces {
        if let Root::Folder(folder) = &self.root {
            let traces = folder.parent().unwrap_or(Path::new("")).join(recorded::FOLDER);
            if traces.is_dir() {
                return Traces::Folder(traces);
            }
        }
        Traces::Embedded
    }
}

impl Fixture {
    /// The text of the file.
    pub(super) fn read(&self) -> Result<String, Failure> {
        match &self.text {
            Text::OnDisk(path) => {
                files::read(path).map_err(|error| Failure::unreadable(&self.path, &error))
            }
            Text::Embedded(text) => Ok(text.to_string()),
        }
    }

    /// The scenario of an HPA in the file.
    #[cfg(feature = "clusters")]
    pub(super) fn parse(&self) -> Result<Arc<Scenario>, Failure> {
        match self.parse_any()?.with_model()? {
            AnyFixture::Hpa(scenario) => Ok(scenario),
            AnyFixture::Vpa(_) => {
                let what = format!("{} is a VPA scenario", self.path);
                Err(Failure::usage(what).hint("this command requires an HPA scenario"))
            }
        }
    }

    /// The scenario in the file.
    pub(super) fn parse_any(&self) -> Result<AnyFixture, Failure> {
        let text = self.read()?;
        self.parse_text(&text).map_err(|error| Failure::usage(error.to_string()))
    }

    /// The scenario in the text of the file.
    pub(super) fn parse_text(&self, text: &str) -> Result<AnyFixture, scenario::Error> {
        let read = |name: &str| self.read_relative(name);
        let id = self.id.clone();
        Ok(match scenario::parse_any(&self.path, text, &read)? {
            AnyScenario::Hpa(it) => AnyFixture::Hpa(Arc::new(Scenario { id, ..*it })),
            AnyScenario::Vpa(it) => AnyFixture::Vpa(Arc::new(VpaScenario { id, ..*it })),
        })
    }

    /// A file that the scenario names, relative to its own folder.
    pub(super) fn read_relative(&self, name: &str) -> Result<String, Diagnostic> {
        match &self.text {
            Text::OnDisk(path) => {
                let path = path.parent().unwrap_or(Path::new("")).join(name);
                files::read_long(&path).map_err(Diagnostic::from)
            }
            Text::Embedded(_) => {
                let folder = Path::new(&self.id).parent().unwrap_or(Path::new(""));
                let path = without_dots(&folder.join(name));
                let text = path.to_str().and_then(|path| FIXTURES.text(path));
                text.ok_or_else(|| "no such file in this program".into())
            }
        }
    }
}

/// Returns true if a name is a glob.
fn is_glob(name: &str) -> bool {
    name.contains(GLOB)
}

/// The scenario files that match a glob, sorted.
fn glob(name: &str) -> Vec<String> {
    let name = name.strip_prefix("./").unwrap_or(name);
    let fixed = name.find(GLOB).and_then(|special| name[..special].rfind('/'));
    // The folder above the first special character; files above it can't match.
    let folder = fixed.map_or(".", |end| if end == 0 { "/" } else { &name[..end] });
    let below = files_below(Path::new(folder)).unwrap_or_default();
    let paths = below.into_iter().map(|fixture| match fixture.path.strip_prefix("./") {
        Some(path) => path.to_owned(),
        None => fixture.path,
    });
    paths.filter(|path| glob_match(name, path.as_str())).collect()
}

/// The path without `.` and `..`, which embedded files do not support.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// The scenario files below a folder.
fn files_below(root: &Path) -> std::io::Result<Vec<Fixture>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let Ok(below) = path.strip_prefix(root) else { continue };
            if path.is_dir() {
                let is_hidden =
                    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
                if below != Path::new(INVALID) && !is_hidden {
                    folders.push(path);
                }
            } else if (is_yaml(&path) || is_json(&path)) && below != Path::new(KNOWN) {
                let is_scenario = match input_file::read(&path) {
                    Ok(text) => Content::detect(&text) == Content::Scenario,
                    // A file that can't be read gives an error when it is parsed. One in JSON can
                    // also be a recorded load, which may be long.
                    Err(_) => is_yaml(&path),
                };
                if !is_scenario {
                    continue;
                }
                let id = id_of(below);
                let shown = path.display().to_string();
                found.push(Fixture { id, path: shown, text: Text::OnDisk(path) });
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Returns true if a name is that of manifests: of a YAML file with objects of the Kubernetes API,
/// or of a folder without scenarios.
pub(super) fn are_manifests(name: &str) -> bool {
    let path = Path::new(name);
    match path.is_dir() {
        true => files_below(path).is_ok_and(|found| found.is_empty()),
        false => {
            let is_manifest = |text: String| Content::detect(&text) == Content::Manifest;
            is_yaml(path) && input_file::read(path).is_ok_and(is_manifest)
        }
    }
}

/// Checks that no two files have the same id.
fn check_unique_ids(files: &[Fixture]) -> Result<(), Failure> {
    match files.windows(2).find(|pair| pair[0].id == pair[1].id) {
        None => Ok(()),
        Some(pair) => {
            let (one, other) = (&pair[0].path, &pair[1].path);
            let what = format!("{one} and {other} both have the scenario id {:?}", pair[0].id);
            Err(Failure::usage(what).hint("rename one of them"))
        }
    }
}

fn embedded() -> Vec<Fixture> {
    let mut found = Vec::new();
    for path in FIXTURES.paths() {
        let below = Path::new(path);
        if !is_yaml(below) || below.starts_with(INVALID) || path == KNOWN {
            continue;
        }
        let Some(text) = FIXTURES.text(path) else { continue };
        if Content::detect(&text) == Content::Scenario {
            let (id, path) = (id_of(below), format!("{FOLDER}/{path}"));
            found.push(Fixture { id, path, text: Text::Embedded(text.into()) });
        }
    }
    found.sort();
    found
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

fn id_of(below: &Path) -> String {
    below.with_extension("").to_string_lossy().replace('\\', "/")
}

/// The closest name, by the whole id or by its last part.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let last = |text: &str| text.rsplit('/').next().unwrap_or_default().to_owned();
    let likeness = |candidate: &str| {
        // A prefix is an unfinished name.
        let begins = |text: &str| !name.is_empty() && text.starts_with(name);
        if begins(candidate) || begins(&last(candidate)) {
            return 1.0;
        }
        let whole = strsim::normalized_damerau_levenshtein(name, candidate);
        let tail = strsim::normalized_damerau_levenshtein(&last(name), &last(candidate));
        whole.max(tail)
    };
    candidates
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness >= 0.6)
        // The first one, if several are equally close.
        .max_by(|one, other| one.0.total_cmp(&other.0).then_with(|| other.1.cmp(one.1)))
        .map(|(_, candidate)| candidate)
}

/// A bracket of a glob that is never closed.
fn unclosed(glob: &str) -> Option<char> {
    let mut open: Vec<char> = Vec::new();
    let mut chars = glob.chars();
    while let Some(c) = chars.next() {
        match (open.last(), c) {
            (_, '\\') => drop(chars.next()),
            (Some('['), ']') | (Some('{'), '}') => drop(open.pop()),
            (Some('['), _) => {}
            (_, '[' | '{') => open.push(c),
            _ => {}
        }
    }
    open.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_of_a_glob_must_be_closed() {
        for glob in ["**/*edge*", "{limits,tolerance}/*", "[!a-c]*", "[[]x", r"\{*"] {
            assert_eq!(unclosed(glob), None, "{glob}");
        }
        assert_eq!(unclosed("tolerance/[a-"), Some('['));
        assert_eq!(unclosed("{limits,tolerance/*"), Some('{'));
    }

    #[test]
    fn only_similar_names_are_suggested() {
        let ids = ["tolerance/upper-edge", "tolerance/lower-edge", "limits/max"];
        let nearest = |name| nearest(name, ids.into_iter());
        assert_eq!(nearest("tolerance/uper-edge"), Some("tolerance/upper-edge"));
        assert_eq!(nearest("lower-edge"), Some("tolerance/lower-edge"));
        assert_eq!(nearest("something-else-entirely"), None);
        assert_eq!(nearest("tolerance/lo"), Some("tolerance/lower-edge"));
        assert_eq!(nearest("up"), Some("tolerance/upper-edge"));
        assert_eq!(nearest("tolerance/"), Some("tolerance/lower-edge"), "the first of both");
        assert_eq!(nearest(""), None);
    }
}
