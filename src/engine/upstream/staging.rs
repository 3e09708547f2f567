//! Releases before 1.15 have no published modules for their libraries: these lie in a folder of the
//! `k8s.io/kubernetes` module, without a go.mod. The folder is used where it is, in Go's module
//! cache, whose content Go has checked against the release's sum file; the go.mod files that it
//! lacks are laid over it. Nothing is copied, and nothing of it is changed.
//!
//! The same is done with other modules of which some files do not fit: ours are laid over these, or
//! come to them. They are in `upstream/stand-ins`, by module, and each says why.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use include_dir::Dir;
use serde_json::{Map, Value, json};

use super::build::{Progress, SOURCES, What, mod_file, not_usable, version};
use super::cache::STAGING;
use super::checkout::quoted;
use super::go::{Build, go};
use crate::engine::EngineError;
use crate::model::rules::Release;

/// The replacement of a library in a mod file.
const MARK: &str = "./staging/";
/// The module that holds them.
const MODULE: &str = "k8s.io/kubernetes";
/// What it says of another module over which files are laid: its path and version follow.
const MODULES: &str = "./modules/";
/// Where these files are, in the sources.
const STAND_INS: &str = "stand-ins";
const OVERLAY: &str = "overlay.json";

/// Modules without a go.mod that a mod file names.
struct Place {
    /// How it names them: each of them if this ends with a slash, else one.
    mark: String,
    folder: PathBuf,
    /// Files that are laid over its own, and ours.
    files: Vec<(PathBuf, PathBuf)>,
}

impl Place {
    /// The folder of a module that is named so.
    fn of(&self, name: &str) -> Option<PathBuf> {
        match name.strip_prefix(&self.mark)? {
            "" => Some(self.folder.clone()),
            library if self.mark.ends_with('/') => Some(self.folder.join(library)),
            _ => None,
        }
    }
}

/// Makes the libraries of a release known to Go, if they are not modules of their own. Gives the
/// flags that its commands then need.
pub(super) fn modules(
    cache: &Path,
    build: &Build<'_>,
    release: Release,
    progress: Progress<'_>,
) -> Result<Vec<String>, EngineError> {
    let failed = |error: io::Error| not_usable(cache, "libraries can't be laid out", &error);
    let file = build.sources.join(mod_file(release));
    let text = fs::read_to_string(&file).map_err(failed)?;
    if !text.contains(MARK) {
        return Ok(Vec::new());
    }
    let version = version(What::Host, release).unwrap_or_default();
    progress(&format!("upstream v{release}: downloading {MODULE} {version}"), None);
    let tree = download(build, release, MODULE, &version)?.join("staging/src");
    let folder = link(cache, &version, &tree).map_err(failed)?;
    let mut places = vec![Place { mark: MARK.to_owned(), folder, files: Vec::new() }];
    for (module, version) in laid_over(&text) {
        let there = download(build, release, module, version)?;
        let name = format!("{module}@{version}");
        let folder = link(cache, &name.replace('/', "_"), &there).map_err(failed)?;
        let files = stand_ins(module);
        let files = files.map(|(file, ours)| (file, build.sources.join(ours))).collect();
        places.push(Place { mark: format!("{MODULES}{name}"), folder, files });
    }
    let (text, overlay) = lay_over(&text, &places, build.scratch).map_err(failed)?;
    fs::write(&file, text).map_err(failed)?;
    let path = build.scratch.join(OVERLAY);
    fs::write(&path, overlay.to_string()).map_err(failed)?;
    Ok(vec![format!("-overlay={}", path.display())])
}

/// The modules, and their versions, over which a mod file has files laid.
fn laid_over(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let places = text.lines().filter_map(|line| line.split_once(" => "));
    places.filter_map(|(_, place)| place.strip_prefix(MODULES)?.split_once('@'))
}

/// The files that are laid over those of a module, and where they are in the sources.
fn stand_ins(module: &str) -> impl Iterator<Item = (PathBuf, PathBuf)> {
    let folder = Path::new(STAND_INS).join(module);
    let files = SOURCES.get_dir(&folder).map(all_files).unwrap_or_default();
    files.into_iter().filter_map(move |file| {
        Some((file.strip_prefix(&folder).ok()?.to_owned(), file.to_owned()))
    })
}

fn all_files(folder: &Dir<'static>) -> Vec<&'static Path> {
    let below = folder.dirs().flat_map(all_files);
    folder.files().map(|file| file.path()).chain(below).collect()
}

/// Where a module lies when Go has downloaded and checked it.
fn download(
    build: &Build<'_>,
    release: Release,
    module: &str,
    version: &str,
) -> Result<PathBuf, EngineError> {
    let failed = |error: io::Error| not_usable(build.scratch, "no mod file", &error);
    let sums = build.sources.join(mod_file(release)).with_extension("sum");
    fs::copy(sums, build.scratch.join("module.sum")).map_err(failed)?;
    let text = format!("module kube-lockstep.dev/upstream\n\nrequire {module} {version}\n");
    fs::write(build.scratch.join("module.mod"), text).map_err(failed)?;
    let download = Build {
        flags: vec![format!("-modfile={}", build.scratch.join("module.mod").display())],
        of: module,
        ..*build
    };
    let mut json = String::new();
    go(&download, &["mod", "download", "-json"], &mut |line, out| {
        if out {
            json.push_str(line);
        }
    })?;
    let answer: Value = serde_json::from_str(&json).unwrap_or_default();
    let folder = answer["Dir"].as_str().map(PathBuf::from);
    folder.ok_or_else(|| EngineError::Broken {
        engine: build.name.into(),
        why: format!("`go mod download` does not say where {module} {version} is"),
        output: json,
    })
}

/// A name for the folder outside of Go's module cache, in which nothing may be laid over, and the
/// same one for each build: Go compiles anew what has moved.
fn link(cache: &Path, version: &str, to: &Path) -> io::Result<PathBuf> {
    let links = cache.join(STAGING);
    fs::create_dir_all(&links)?;
    let link = links.join(version);
    if fs::read_link(&link).is_ok_and(|now| now == to) {
        return Ok(link);
    }
    // Another build may do the same at this time: renaming replaces its link.
    let own = links.join(format!(".{version}-{}", std::process::id()));
    std::os::unix::fs::symlink(to, &own)?;
    fs::rename(&own, &link)?;
    Ok(link)
}

/// The mod file with the modules' places, and the overlay that gives each of them a go.mod and its
/// other files.
fn lay_over(text: &str, places: &[Place], scratch: &Path) -> io::Result<(String, Value)> {
    let mut replace = Map::new();
    let mut lay = |over: PathBuf, file: &Path| {
        replace.insert(over.display().to_string(), json!(file.display().to_string()));
    };
    let mut lines = Vec::new();
    for line in text.lines() {
        let placed = line.split_once(" => ").and_then(|(module, name)| {
            let found = places.iter().find_map(|place| Some((place.of(name)?, place)));
            found.map(|(folder, place)| (module.trim(), folder, place))
        });
        let Some((module, folder, place)) = placed else {
            lines.push(line.to_owned());
            continue;
        };
        let file = scratch.join(format!("{}.mod", module.replace('/', "_")));
        fs::write(&file, format!("module {module}\n"))?;
        lay(folder.join("go.mod"), &file);
        for (over, file) in &place.files {
            lay(folder.join(over), file);
        }
        lines.push(format!("\t{module} => {}", quoted(&folder)));
    }
    Ok((lines.join("\n") + "\n", json!({ "Replace": replace })))
}

#[cfg(test)]
mod tests {
    use super::super::build::{What, supported};
    use super::*;

    #[test]
    fn modules_get_a_place_and_files() {
        let scratch = std::env::temp_dir().join(format!("kube-lockstep-{}", std::process::id()));
        fs::create_dir_all(&scratch).expect("a folder");
        let text = "replace (\n\tk8s.io/api => ./staging/k8s.io/api\n\ta.b/c => d.e/f v1.0.0\n\
                    \tg.h/i => ./modules/g.h/i@v1\n\tg.h/j => ./stand-ins/g.h/j\n)\n";
        let place = |mark: &str, folder: &str, files: &[(&str, &str)]| Place {
            mark: mark.to_owned(),
            folder: PathBuf::from(folder),
            files: files.iter().map(|(over, file)| (over.into(), file.into())).collect(),
        };
        let places = [
            place("./staging/", "/there", &[]),
            place("./modules/g.h/i@v1", "/i", &[("k/l.go", "/ours/l.go")]),
        ];
        let (text, overlay) = lay_over(text, &places, &scratch).expect("it is written");
        let (api, i) = (scratch.join("k8s.io_api.mod"), scratch.join("g.h_i.mod"));
        let written = [fs::read_to_string(&api), fs::read_to_string(&i)];
        fs::remove_dir_all(&scratch).expect("it can go");
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
        let written = written.map(|text| text.expect("it can be read"));
        assert_eq!(written, ["module k8s.io/api\n", "module g.h/i\n"]);
    }

    #[test]
    fn overlaid_files_exist() {
        let mut modules = 0;
        for release in supported(What::Host) {
            let file = SOURCES.get_file(mod_file(release)).expect("a mod file");
            for (module, _) in laid_over(file.contents_utf8().expect("text")) {
                assert_ne!(stand_ins(module).count(), 0, "{release}: {module}");
                modules += 1;
            }
        }
        assert_ne!(modules, 0, "no mod file has files laid over");
    }
}
