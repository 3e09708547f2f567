//! Builds the engine program of a local checkout of Kubernetes, or of the Vertical Pod Autoscaler,
//! so that developers of the controllers can run scenarios on their working tree.
//!
//! The checkout and its staging modules replace the published modules in a mod file that is written
//! for it. Go resolves the rest, and recompiles only changed packages. The programs are in a folder
//! of the checkout, never among the engines of releases.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::artifact::{Artifact, NAME, Progress, hex, quoted, supported};
use super::build::{BuildOptions, builds_at_a_time, compile, flags};
use super::cache::{self, CHECKOUTS, ENGINE, ORIGIN, Scratch, cache_folder, not_usable};
use super::go::{self, find_go, interrupted};
use crate::input_file;
use crate::input_file::InputError;
use kube_autoscaler_models::rules::{MinorVersion, Release, VpaRelease};
use kube_lockstep_data::UPSTREAM;
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::Preparation;

/// The package of the HPA controller.
const CONTROLLER: &str = "pkg/controller/podautoscaler";
/// The folder of the Vertical Pod Autoscaler in a clone of kubernetes/autoscaler.
const VPA_FOLDER: &str = "vertical-pod-autoscaler";
/// The file that names the version of the Vertical Pod Autoscaler.
const VPA_VERSION: &str = "common/version.go";
/// The file that names the release of a tree since 1.31.
const BASE: &str = "staging/src/k8s.io/component-base/version/base.go";

/// A local checkout of Kubernetes, or of the Vertical Pod Autoscaler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkout {
    /// The path as given by the user.
    pub path: PathBuf,
    /// The canonical path of the Go module.
    folder: PathBuf,
    /// The program that is built from it: the host of the HPA controller, or of the recommender.
    artifact: Artifact,
    /// The release, and the file that names it, if any.
    found: Option<(MinorVersion, String)>,
    /// The release whose Go API is used: its own, or the closest known one.
    api: MinorVersion,
}

impl Checkout {
    /// Opens a folder.
    ///
    /// # Errors
    /// If the folder is not a checkout of Kubernetes or of kubernetes/autoscaler, or too old.
    pub fn open(path: &Path) -> Result<Checkout, Diagnostic> {
        let error = |why: String, hint: &str| {
            Diagnostic::new(format!("{}: {why}", path.display())).hint(hint)
        };
        let folder = fs::canonicalize(path).map_err(|it| error(it.to_string(), ROOT))?;
        let vpa = [folder.clone(), folder.join(VPA_FOLDER)];
        let is_vpa = |it: &PathBuf| module(it).as_deref() == Some(Artifact::Recommender.module());
        let (artifact, folder) = match vpa.into_iter().find(is_vpa) {
            Some(folder) => (Artifact::Recommender, folder),
            None => {
                check_kubernetes(&folder).map_err(|(why, hint)| error(why, &hint))?;
                (Artifact::Host, folder)
            }
        };
        let found = match artifact {
            Artifact::Recommender | Artifact::RecommenderProgram | Artifact::Updater => {
                vpa_release(&folder)
            }
            Artifact::Host | Artifact::ControlPlane => release(&folder),
        };
        let newest = newest(artifact);
        let api = match &found {
            Some((release, _)) if *release < newest => *release,
            _ => newest,
        };
        if !supported(artifact).any(|release| release == api) {
            let says = found.map(|(_, file)| format!(" according to {file}")).unwrap_or_default();
            return Err(error(format!("release {api}{says}, can't be built"), &builds(artifact)));
        }
        Ok(Checkout { path: path.to_owned(), folder, artifact, found, api })
    }

    /// Returns true if it is a checkout of the Vertical Pod Autoscaler.
    #[must_use]
    pub fn has_recommender(&self) -> bool {
        self.artifact == Artifact::Recommender
    }

    /// Returns true if a file of the checkout names its release.
    #[must_use]
    pub fn is_release_known(&self) -> bool {
        self.found.is_some()
    }

    /// The same checkout with the Go API of a release, if its own release is not known.
    #[must_use]
    pub(crate) fn with_release(self, release: impl Into<MinorVersion>) -> Checkout {
        match self.found {
            Some(_) => self,
            None => Checkout { api: release.into(), ..self },
        }
    }

    /// The name of the engine, which is different from `upstream` in reports.
    #[must_use]
    pub fn name(&self) -> String {
        // A path of dots only is not a useful name.
        let named = self.path.file_name().is_some();
        let path = if named { &self.path } else { &self.folder };
        format!("{NAME} {}", path.display())
    }

    /// The release of Kubernetes whose rules the model follows by default, and the reason.
    #[must_use]
    pub fn rules(&self) -> (Release, String) {
        let (release, why) = self.rules_up_to(Release::NEWEST.into());
        (release.into(), why)
    }

    /// The release of the Vertical Pod Autoscaler whose rules the model follows by default, and the
    /// reason.
    #[must_use]
    pub fn vpa_rules(&self) -> (VpaRelease, String) {
        let (MinorVersion { major, minor }, why) = self.rules_up_to(VpaRelease::NEWEST.into());
        (VpaRelease { major, minor }, why)
    }

    fn rules_up_to(&self, newest: MinorVersion) -> (MinorVersion, String) {
        match &self.found {
            Some((release, file)) if *release <= newest => {
                (*release, format!("according to its {file}"))
            }
            Some((release, file)) => {
                let why = "the newest known release";
                (newest, format!("{why}; the checkout is {release} according to its {file}"))
            }
            None => (newest, "the newest release, because the checkout names none".to_owned()),
        }
    }

    /// Builds the program of the checkout in its current state. Unchanged packages are not
    /// recompiled.
    ///
    /// # Errors
    /// If there is no Go, or the build fails (with the compiler's output).
    pub fn build(
        &self,
        options: impl Into<BuildOptions>,
        progress: Progress<'_>,
    ) -> Result<PathBuf, EngineError> {
        let BuildOptions { stop, only_cached } = &options.into();
        if *only_cached {
            return Err(EngineError::Unavailable {
                engine: self.name().into(),
                problem: Diagnostic::new("--no-build forbids building the checkout")
                    .hint("leave out --no-build"),
            });
        }
        let cache = cache_folder()?;
        find_go(progress)?;
        let (name, time) = (self.name(), self.artifact.build_time());
        progress(Preparation::step(
            &name,
            format!("building it; the first time, this takes {time}"),
        ));
        let failed = |error: io::Error| not_usable(&cache, "no folder for the checkout", &error);
        let own = hex(&Sha256::digest(self.folder.as_os_str().as_encoded_bytes()));
        let own = cache.join(CHECKOUTS).join(own);
        fs::create_dir_all(&own).map_err(failed)?;
        let lock = cache::lock(&own.join(".lock"), stop, progress).map_err(failed)?;
        let _lock = lock.ok_or_else(interrupted)?;
        let scratch = Scratch::new(&cache).map_err(failed)?;
        let inputs = self.write_sources(&own).map_err(failed)?;
        let mut build = go::Build {
            name: &name,
            sources: &own,
            scratch: scratch.path(),
            flags: self.flags("mod"),
            target: self.artifact.package(),
            stop,
        };
        // Go adds further requirements to the mod file, and later builds use them.
        go::go(&build, &["list", "-deps", "-test"], &mut |line, _| {
            if let Some(module) = line.strip_prefix("go: downloading ") {
                progress(Preparation::step(build.name, format!("downloading {module}")));
            }
        })?;
        fs::write(own.join(INPUTS), inputs).map_err(failed)?;
        build.flags = self.flags("readonly");
        let output = scratch.path().join("engine");
        compile(&build, build.name, &output, progress)?;
        keep(&own, &output).map_err(failed)
    }

    fn flags(&self, mode: &str) -> Vec<String> {
        flags(self.artifact, MOD, self.api, builds_at_a_time(), mode)
    }

    /// Writes the sources of the host, and the mod file, to the folder of the checkout. Returns the
    /// inputs of the mod file, which are written there once Go has resolved it.
    fn write_sources(&self, own: &Path) -> io::Result<String> {
        fs::write(own.join(ORIGIN), self.folder.as_os_str().as_encoded_bytes())?;
        // Files that were removed from the sources must not remain.
        for sources in ["virtual", "recommender"].map(|folder| own.join(folder)) {
            if sources.exists() {
                fs::remove_dir_all(&sources)?;
            }
        }
        UPSTREAM.extract(own)?;
        let theirs = read(&self.folder.join("go.mod"))?;
        let released = embedded(&self.artifact.mod_file(self.api));
        let (module, sums) = (self.mod_file(&theirs, &released), self.sums()?);
        // The additions of Go are kept as long as the inputs are the same.
        let inputs_now = format!("{module}\n{sums}");
        let inputs = own.join(INPUTS);
        match fs::read_to_string(&inputs) {
            Ok(before) if before == inputs_now => return Ok(inputs_now),
            Ok(_) => fs::remove_file(&inputs)?,
            Err(_) => {}
        }
        fs::write(own.join(MOD), module)?;
        fs::write(own.join(SUM), sums)?;
        Ok(inputs_now)
    }

    /// The mod file: the checkout and its staging modules replace the published modules. Staging
    /// modules that are not on disk, as in a published module, come from a release.
    fn mod_file(&self, theirs: &str, released: &str) -> String {
        let own = self.artifact.module();
        let mut text =
            format!("module kube-lockstep.dev/upstream\n\ngo 1.26.0\n\nrequire {own} v0.0.0\n");
        // Modules that only the host requires: without a version, Go would use the newest one.
        let known = |module: &str| requirements(theirs).any(|(known, _)| known == module);
        for (module, version) in requirements(released) {
            // The host of the recommender requires a newer klog than old releases.
            let is_ours = (!known(module) && !module.starts_with("k8s.io/"))
                || (self.has_recommender() && module == KLOG);
            if is_ours {
                let _ = writeln!(text, "require {module} {version}");
            }
        }
        let _ = write!(text, "\nreplace (\n\t{own} => {}\n", quoted(&self.folder));
        let versions: Vec<(&str, &str)> = replacements(released).collect();
        for (module, by) in replacements(theirs) {
            let by = match by.strip_prefix("./") {
                None => by.to_owned(),
                Some(below) if self.folder.join(below).join("go.mod").is_file() => {
                    quoted(&self.folder.join(below))
                }
                Some(_) => match versions.iter().find(|(name, _)| *name == module) {
                    Some((_, version)) => (*version).to_owned(),
                    None => continue,
                },
            };
            let _ = writeln!(text, "\t{module} => {by}");
        }
        text.push_str(")\n");
        text
    }

    /// The checksums of the modules, from the release and from the checkout.
    fn sums(&self) -> io::Result<String> {
        let theirs = read(&self.folder.join("go.sum"))?;
        let ours = self.artifact.mod_file(self.api).replace(".mod", ".sum");
        let ours = embedded(&ours);
        let lines: BTreeSet<&str> = ours.lines().chain(theirs.lines()).collect();
        Ok(lines.into_iter().map(|line| format!("{line}\n")).collect())
    }
}

/// The log of Kubernetes.
const KLOG: &str = "k8s.io/klog/v2";

const MOD: &str = "checkout.mod";
const SUM: &str = "checkout.sum";
const INPUTS: &str = "made-of";

/// Installs an engine under a name derived from its content, because other engines of the same
/// checkout may be running. Removes the engines that are not running.
fn keep(own: &Path, output: &Path) -> io::Result<PathBuf> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(output)?, &mut HashWriter(&mut hash))?;
    let program = own.join(format!("{ENGINE}{}", hex(&hash.finalize())));
    fs::rename(output, &program)?;
    cache::hold(&program);
    let others = cache::entries(own).into_iter().filter(|path| cache::is_engine(path));
    for other in others.filter(|path| *path != program) {
        // Best effort: the next build tries again.
        let _ = cache::remove_engine(&other);
    }
    Ok(program)
}

struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn embedded(path: &str) -> String {
    UPSTREAM.text(path).unwrap_or_default()
}

/// The newest release that can be built.
fn newest(artifact: Artifact) -> MinorVersion {
    supported(artifact).next_back().unwrap_or_else(|| Release::NEWEST.into())
}

/// The hint that lists the supported releases.
fn builds(artifact: Artifact) -> String {
    let newest = newest(artifact);
    let oldest = supported(artifact).next().unwrap_or(newest);
    format!(
        "checkouts of {oldest} to {newest} can be built, and newer ones as long as they are \
             compatible"
    )
}

/// The hint for a folder that is not a checkout.
const ROOT: &str =
    "name the root folder of a clone of kubernetes/kubernetes or kubernetes/autoscaler";

/// Checks that a folder is a checkout of Kubernetes.
///
/// # Errors
/// The problem and a hint, if it is not one, or too old.
fn check_kubernetes(folder: &Path) -> Result<(), (String, String)> {
    let root = || ROOT.to_owned();
    let kubernetes = Artifact::Host.module();
    match module(folder) {
        Some(it) if it == kubernetes && folder.join(CONTROLLER).is_dir() => Ok(()),
        Some(it) if it == kubernetes => Err((format!("it has no {CONTROLLER}"), root())),
        None if folder.join(CONTROLLER).is_dir() => {
            let why = "its release is older than 1.15: it has no go.mod";
            Err((why.to_owned(), builds(Artifact::Host)))
        }
        other => {
            let known = [kubernetes, Artifact::Recommender.module()];
            let is_known = |it: &&Path| module(it).is_some_and(|it| known.contains(&&*it));
            let above = folder.ancestors().find(is_known);
            let above = above.map(|above| format!("did you mean {}?", above.display()));
            let neither = "it is neither a Kubernetes checkout nor one of kubernetes/autoscaler";
            let why = match other {
                Some(module) => format!("{neither}: its module is {module}"),
                None => format!("{neither}: it has no go.mod"),
            };
            Err((why, above.unwrap_or_else(root)))
        }
    }
}

/// Reads a file of a checkout.
fn read(path: &Path) -> io::Result<String> {
    input_file::read(path).map_err(|error| match error {
        InputError::Io(error) => error,
        error => io::Error::other(error),
    })
}

/// The module of a folder.
fn module(folder: &Path) -> Option<String> {
    let text = read(&folder.join("go.mod")).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("module "))?;
    Some(name.trim().trim_matches('"').to_owned())
}

/// The direct requirements of a mod file: modules and versions.
fn requirements(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().filter(|line| !line.contains("// indirect"));
    lines.filter_map(|line| {
        let mut words = line.trim().trim_start_matches("require ").split_whitespace();
        let (module, version) = (words.next()?, words.next()?);
        let is_version = version.starts_with('v') && !line.contains("=>");
        is_version.then_some((module, version))
    })
}

/// The replacements of a mod file: modules and their replacements.
fn replacements(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let pairs =
        lines.filter_map(|line| line.trim().trim_start_matches("replace ").split_once("=>"));
    pairs.map(|(module, by)| (module.trim(), by.trim()))
}

/// The release of a checkout of the Vertical Pod Autoscaler, and the file that names it.
fn vpa_release(folder: &Path) -> Option<(MinorVersion, String)> {
    let text = read(&folder.join(VPA_VERSION)).ok()?;
    let version = text.split('"').skip(1).step_by(2).find_map(|text| {
        let mut parts = text.splitn(3, '.');
        let (major, minor, patch) = (parts.next()?, parts.next()?, parts.next()?);
        let release = format!("{major}.{minor}").parse().ok();
        release.filter(|_| patch.starts_with(|it: char| it.is_ascii_digit()))
    });
    Some((version?, VPA_VERSION.to_owned()))
}

/// The release of a Kubernetes checkout and the file that names it: the version of its binaries,
/// else its newest changelog.
fn release(folder: &Path) -> Option<(MinorVersion, String)> {
    if let Ok(text) = read(&folder.join(BASE)) {
        let line = text.lines().find(|line| line.trim().starts_with("DefaultKubeBinaryVersion"));
        let version = line.and_then(|line| line.split('"').nth(1));
        let release = version.and_then(|version| version.parse::<Release>().ok());
        if let Some(release) = release {
            return Some((release.into(), BASE.to_owned()));
        }
    }
    let names = cache::entries(&folder.join("CHANGELOG"));
    let releases = names.iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?;
        name.strip_prefix("CHANGELOG-")?.strip_suffix(".md")?.parse::<Release>().ok()
    });
    let newest = releases.max()?;
    Some((newest.into(), format!("CHANGELOG/CHANGELOG-{newest}.md")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with these files.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        folder
    }

    const GO_MOD: (&str, &str) = (
        "go.mod",
        "module k8s.io/kubernetes\n\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api // here\n\
         \tk8s.io/metrics => ./staging/src/k8s.io/metrics\n\
         \texample.org/a => example.org/b v1.2.3\n)\n",
    );
    const SOURCE: (&str, &str) = ("pkg/controller/podautoscaler/horizontal.go", "package p\n");

    #[test]
    fn modules_on_disk_replace_published_ones() {
        let folder =
            folder(&[GO_MOD, SOURCE, ("staging/src/k8s.io/api/go.mod", "module k8s.io/api\n")]);
        let checkout = Checkout::open(folder.path()).expect("a checkout");
        let released = "require (\n\texample.org/c v1.0.0\n\texample.org/d v2.0.0 // indirect\n\
                        \tk8s.io/api v0.9.1\n)\n\
                        replace (\n\tk8s.io/api => k8s.io/api v0.9.1\n\
                        \tk8s.io/metrics => k8s.io/metrics v0.9.1\n)\n";
        let root = fs::canonicalize(folder.path()).expect("a folder");
        let root = root.display();
        let text = checkout.mod_file(GO_MOD.1, released);
        let (required, replaced) = text.split_once("replace (\n").expect("replacements");
        assert!(required.ends_with("v0.0.0\nrequire example.org/c v1.0.0\n\n"), "{required}");
        assert_eq!(
            replaced,
            format!(
                "\tk8s.io/kubernetes => \"{root}\"\n\
                 \tk8s.io/api => \"{root}/staging/src/k8s.io/api\"\n\
                 \tk8s.io/metrics => k8s.io/metrics v0.9.1\n\
                 \texample.org/a => example.org/b v1.2.3\n)\n"
            )
        );
    }

    #[test]
    fn the_release_comes_from_the_tree_else_from_the_changelog() {
        let base = "const (\n\tDefaultKubeBinaryVersion = \"1.36\"\n)\n";
        let changelogs = [("CHANGELOG/CHANGELOG-1.9.md", ""), ("CHANGELOG/CHANGELOG-1.35.md", "")];
        let rules = |files: &[(&str, &str)]| {
            let folder = folder(&[&[GO_MOD, SOURCE], files].concat());
            let checkout = Checkout::open(folder.path())?;
            Ok::<_, Diagnostic>((checkout.rules().0.to_string(), checkout.rules().1))
        };
        let (release, why) = rules(&[&changelogs[..], &[(BASE, base)]].concat()).expect("known");
        assert_eq!((&*release, why), ("1.36", format!("according to its {BASE}")));
        let (release, why) = rules(&changelogs).expect("known");
        assert_eq!((&*release, &*why), ("1.35", "according to its CHANGELOG/CHANGELOG-1.35.md"));
        let newest = Release::NEWEST.to_string();
        let (release, why) = rules(&[]).expect("the newest");
        assert_eq!(
            (release, &*why),
            (newest.clone(), "the newest release, because the checkout names none")
        );
        let (release, why) = rules(&[("CHANGELOG/CHANGELOG-1.99.md", "")]).expect("newer");
        assert_eq!(release, newest);
        assert!(
            why.starts_with("the newest known release; the checkout is 1.99 according to its "),
            "{why}"
        );
        let error = rules(&[("CHANGELOG/CHANGELOG-1.5.md", "")]).expect_err("too old");
        assert!(error.what.contains(": release 1.5 according to CHANGELOG/"), "{error}");
    }

    #[test]
    fn a_folder_that_is_not_a_checkout_gets_a_hint() {
        let open = |files: &[(&str, &str)], below: &str| {
            let folder = folder(files);
            let error = Checkout::open(&folder.path().join(below)).expect_err("none");
            let hint = error.hint_text().unwrap_or_default();
            let (_, why) = error.what.split_once(": ").expect("the path is named");
            (why.to_owned(), hint.replace(&*folder.path().to_string_lossy(), "FOLDER"))
        };
        let neither = "it is neither a Kubernetes checkout nor one of kubernetes/autoscaler";
        let no_file = format!("{neither}: it has no go.mod");
        let (why, hint) = open(&[("README.md", "")], "");
        assert_eq!((&*why, &*hint), (&*no_file, ROOT));
        let (why, _) = open(&[("go.mod", "module example.org/mine\n")], "");
        assert_eq!(why, format!("{neither}: its module is example.org/mine"));
        let (why, hint) = open(&[GO_MOD, SOURCE], "pkg/controller");
        assert_eq!(why, no_file);
        assert!(hint.starts_with("did you mean ") && hint.ends_with('?'), "{hint}");
        assert_eq!(open(&[GO_MOD], "").0, "it has no pkg/controller/podautoscaler");
        assert_eq!(open(&[SOURCE], "").0, "its release is older than 1.15: it has no go.mod");
        assert!(open(&[], "gone").0.contains("No such file"));
    }

    #[test]
    fn a_checkout_of_the_autoscaler_names_its_release() {
        let module = "module k8s.io/autoscaler/vertical-pod-autoscaler\n\nrequire (\n\t\
                      k8s.io/klog/v2 v2.9.0\n)\n";
        let open = |version: &str, root: &str, below: &str| {
            let folder = folder(&[
                (&format!("{root}go.mod"), module),
                (&format!("{root}{VPA_VERSION}"), version),
            ]);
            Checkout::open(&folder.path().join(below))
        };
        let old = "const VerticalPodAutoscalerVersion = \"0.10.0\"\n";
        for (root, below) in [("", ""), ("vertical-pod-autoscaler/", "")] {
            let checkout = open(old, root, below).expect("a checkout");
            assert!(checkout.has_recommender());
            let (release, why) = checkout.vpa_rules();
            assert_eq!(release.to_string(), "vpa-0.10");
            assert_eq!(why, "according to its common/version.go");
            let released = "require (\n\tk8s.io/api v0.18.3\n\tk8s.io/klog/v2 v2.70.1\n)\n";
            let text = checkout.mod_file(module, released);
            assert!(text.contains("\nrequire k8s.io/klog/v2 v2.70.1\n"), "{text}");
            assert!(!text.contains("k8s.io/api"), "{text}");
        }
        let newer = open("var versionCore = \"1.99.0-alpha.1\"\n", "", "").expect("a checkout");
        assert_eq!(newer.vpa_rules().0, VpaRelease::NEWEST);
        assert!(newer.vpa_rules().1.contains("the checkout is 1.99 according to"));
        let unknown = open("package common\n", "", "").expect("a checkout");
        assert_eq!(unknown.clone().with_release(VpaRelease::OLDEST).api.to_string(), "0.10");
        assert_eq!(unknown.api, VpaRelease::NEWEST.into());
        let error = open("const version = \"0.9.2\"\n", "", "").expect_err("too old");
        assert!(error.what.contains(": release 0.9 according to common/version.go"), "{error}");
        let hint = error.hint_text().unwrap_or_default();
        assert!(hint.starts_with("checkouts of 0.10 to "), "{hint}");
    }
}
