//! Libraries of releases before 1.15, which are not published as modules: they are in a folder of
//! the `k8s.io/kubernetes` module, without a go.mod. The folder is used in Go's module cache, whose
//! content Go has checked against the release's sum file; an overlay adds the missing go.mod files.
//! Nothing is copied or changed.
//!
//! Files of other modules that are incompatible are replaced in the same way. The replacements are
//! in `upstream/stand-ins`, by module, and each states its reason.

use std::fs;
use std::io;
#[cfg(unix)]
use std::os::unix::fs::symlink;
#[cfg(windows)]
use std::os::windows::fs::symlink_dir as symlink;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::artifact::{Artifact, NAME, Progress, quoted, version};
use super::cache::{STAGING, not_usable};
use super::go::{Build, module_folder};
use kube_autoscaler_models::rules::MinorVersion;
use kube_lockstep_data::UPSTREAM;
use kube_lockstep_sim::engine::EngineError;
use kube_lockstep_sim::run::Preparation;

/// The replacement of a library in a mod file.
const MARK: &str = "./staging/";
/// The module that contains the libraries.
const MODULE: &str = "k8s.io/kubernetes";
/// The replacement of another module with an overlay: its path and version follow.
const MODULES: &str = "./modules/";
/// The folder of the replacement files in the sources.
const STAND_INS: &str = "stand-ins";
const OVERLAY: &str = "overlay.json";

/// One or more modules that an overlay completes.
struct Overlay {
    /// The name of the module in a mod file; with a slash at the end, the prefix of several names.
    mark: String,
    folder: PathBuf,
    /// Files of the modules, each with its replacement.
    files: Vec<(PathBuf, PathBuf)>,
}

impl Overlay {
    /// The folder of a module, by its name in the mod file.
    fn folder_of(&self, name: &str) -> Option<PathBuf> {
        match name.strip_prefix(&self.mark)? {
            "" => Some(self.folder.clone()),
            library if self.mark.ends_with('/') => Some(self.folder.join(library)),
            _ => None,
        }
    }
}

/// Makes the libraries of a release available to Go, if they are not published as modules. Returns
/// the flags that Go commands then require.
pub(super) fn modules(
    cache: &Path,
    build: &Build<'_>,
    release: MinorVersion,
    progress: Progress<'_>,
) -> Result<Vec<String>, EngineError> {
    let failed =
        |error: io::Error| not_usable(cache, "the overlay of libraries can't be written", &error);
    let file = build.sources.join(Artifact::Host.mod_file(release));
    let text = fs::read_to_string(&file).map_err(failed)?;
    if !text.contains(MARK) {
        return Ok(Vec::new());
    }
    let version = version(Artifact::Host, release).unwrap_or_default();
    let subject = format!("{NAME} v{release}");
    progress(Preparation::step(&subject, format!("downloading {MODULE} {version}")));
    let tree = download(build, release, MODULE, &version)?.join("staging/src");
    let folder = link(cache, &version, &tree).map_err(failed)?;
    let mut overlays = vec![Overlay { mark: MARK.to_owned(), folder, files: Vec::new() }];
    for (module, version) in overlaid_modules(&text) {
        let there = download(build, release, module, version)?;
        let name = format!("{module}@{version}");
        let folder = link(cache, &name.replace('/', "_"), &there).map_err(failed)?;
        let files = stand_ins(module);
        let files = files.map(|(file, ours)| (file, build.sources.join(ours))).collect();
        overlays.push(Overlay { mark: format!("{MODULES}{name}"), folder, files });
    }
    let (text, overlay) = write_overlay(&text, &overlays, build.scratch).map_err(failed)?;
    fs::write(&file, text).map_err(failed)?;
    let path = build.scratch.join(OVERLAY);
    fs::write(&path, overlay.to_string()).map_err(failed)?;
    Ok(vec![format!("-overlay={}", path.display())])
}

/// The modules, and their versions, that require an overlay according to a mod file.
fn overlaid_modules(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let replacements = text.lines().filter_map(|line| line.split_once(" => "));
    replacements.filter_map(|(_, by)| by.strip_prefix(MODULES)?.split_once('@'))
}

/// The replaced files of a module, each with its replacement in the sources.
fn stand_ins(module: &str) -> impl Iterator<Item = (PathBuf, PathBuf)> {
    let folder = Path::new(STAND_INS).join(module);
    UPSTREAM.paths().iter().map(Path::new).filter_map(move |file| {
        Some((file.strip_prefix(&folder).ok()?.to_owned(), file.to_owned()))
    })
}

/// Downloads and checks a module with Go. Returns its folder.
fn download(
    build: &Build<'_>,
    release: MinorVersion,
    module: &str,
    version: &str,
) -> Result<PathBuf, EngineError> {
    let failed = |error: io::Error| not_usable(build.scratch, "no mod file", &error);
    let sums = build.sources.join(Artifact::Host.mod_file(release)).with_extension("sum");
    fs::copy(sums, build.scratch.join("module.sum")).map_err(failed)?;
    let text = format!("module kube-lockstep.dev/upstream\n\nrequire {module} {version}\n");
    fs::write(build.scratch.join("module.mod"), text).map_err(failed)?;
    let download = Build {
        flags: vec![format!("-modfile={}", build.scratch.join("module.mod").display())],
        target: module,
        ..*build
    };
    module_folder(&download)
}

/// Creates a link to a folder in Go's module cache, because Go allows no overlays in the cache
/// itself. The link is the same for each build, because Go recompiles packages that have moved.
fn link(cache: &Path, version: &str, to: &Path) -> io::Result<PathBuf> {
    let links = cache.join(STAGING);
    fs::create_dir_all(&links)?;
    let link = links.join(version);
    if fs::read_link(&link).is_ok_and(|now| now == to) {
        return Ok(link);
    }
    // Another build may do the same concurrently: renaming replaces its link.
    let own = links.join(format!(".{version}-{}", std::process::id()));
    symlink(to, &own)?;
    fs::rename(&own, &link)?;
    Ok(link)
}

/// The mod file with the folders of the modules, and the overlay that adds a go.mod and the
/// replaced files to each.
fn write_overlay(text: &str, overlays: &[Overlay], scratch: &Path) -> io::Result<(String, Value)> {
    let mut replace = Map::new();
    let mut add = |path: PathBuf, file: &Path| {
        replace.insert(path.display().to_string(), json!(file.display().to_string()));
    };
    let mut lines = Vec::new();
    for line in text.lines() {
        let replaced = line.split_once(" => ").and_then(|(module, name)| {
            let found =
                overlays.iter().find_map(|overlay| Some((overlay.folder_of(name)?, overlay)));
            found.map(|(folder, overlay)| (module.trim(), folder, overlay))
        });
        let Some((module, folder, overlay)) = replaced else {
            lines.push(line.to_owned());
            continue;
        };
        let file = scratch.join(format!("{}.mod", module.replace('/', "_")));
        fs::write(&file, format!("module {module}\n"))?;
        add(folder.join("go.mod"), &file);
        for (path, file) in &overlay.files {
            add(folder.join(path), file);
        }
        lines.push(format!("\t{module} => {}", quoted(&folder)));
    }
    Ok((lines.join("\n") + "\n", json!({ "Replace": replace })))
}

#[cfg(test)]
mod tests {
    use super::super::artifact::supported;
    use super::*;

    #[test]
    fn modules_get_a_folder_and_files() {
        let scratch = std::env::temp_dir().join(format!("kube-lockstep-{}", std::process::id()));
        fs::create_dir_all(&scratch).expect("a folder");
        let text = "replace (\n\tk8s.io/api => ./staging/k8s.io/api\n\ta.b/c => d.e/f v1.0.0\n\
                    \tg.h/i => ./modules/g.h/i@v1\n\tg.h/j => ./stand-ins/g.h/j\n)\n";
        let overlay = |mark: &str, folder: &str, files: &[(&str, &str)]| Overlay {
            mark: mark.to_owned(),
            folder: PathBuf::from(folder),
            files: files.iter().map(|(over, file)| (over.into(), file.into())).collect(),
        };
        let overlays = [
            overlay("./staging/", "/there", &[]),
            overlay("./modules/g.h/i@v1", "/i", &[("k/l.go", "/ours/l.go")]),
        ];
        let (text, overlay) = write_overlay(text, &overlays, &scratch).expect("an overlay");
        let (api, i) = (scratch.join("k8s.io_api.mod"), scratch.join("g.h_i.mod"));
        let written = [fs::read_to_string(&api), fs::read_to_string(&i)];
        fs::remove_dir_all(&scratch).expect("the folder can be removed");
        assert_eq!(
            text,
            "replace (\n\tk8s.io/api => \"/there/k8s.io/api\"\n\ta.b/c => d.e/f v1.0.0\n\
             \tg.h/i => \"/i\"\n\tg.h/j => ./stand-ins/g.h/j\n)\n"
        );
        let (api, i) = (api.display().to_string(), i.display().to_string());
        let files = json!({
            "/there/k8s.io/api/go.mod": api, "/i/go.mod": i, "/i/k/l.go": "/ours/l.go",
        });
        assert_eq!(overlay, json!({ "Replace": files }));
        let written = written.map(|text| text.expect("the file can be read"));
        assert_eq!(written, ["module k8s.io/api\n", "module g.h/i\n"]);
    }

    #[test]
    fn overlaid_files_exist() {
        let mut modules = 0;
        for release in supported(Artifact::Host) {
            let text = UPSTREAM.text(&Artifact::Host.mod_file(release)).expect("a mod file");
            for (module, _) in overlaid_modules(&text) {
                assert_ne!(stand_ins(module).count(), 0, "{release}: {module}");
                modules += 1;
            }
        }
        assert_ne!(modules, 0, "no mod file requires an overlay");
    }
}
