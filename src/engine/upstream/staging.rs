//! Releases before 1.15 have no published modules for their libraries: these lie in a folder of the
//! `k8s.io/kubernetes` module, without a go.mod. The folder is used where it is, in Go's module
//! cache, whose content Go has checked against the release's sum file; the go.mod files that it
//! lacks are laid over it. Nothing is copied, and nothing of it is changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::build::{Progress, mod_file, not_usable, version};
use super::checkout::quoted;
use super::go::{Build, go};
use crate::engine::EngineError;
use crate::model::rules::Release;

/// What a mod file says of a library that lies there.
const MARK: &str = "./staging/";
/// The module that holds them.
const MODULE: &str = "k8s.io/kubernetes";
const OVERLAY: &str = "overlay.json";

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
    let version = version(release).unwrap_or_default();
    progress(&format!("upstream v{release}: downloading {MODULE} {version}"), None);
    let module = download(build, release, &version)?;
    let folder = link(cache, &version, &module.join("staging/src")).map_err(failed)?;
    let (text, overlay) = lay_over(&text, &folder, build.scratch).map_err(failed)?;
    fs::write(&file, text).map_err(failed)?;
    let path = build.scratch.join(OVERLAY);
    fs::write(&path, overlay.to_string()).map_err(failed)?;
    Ok(vec![format!("-overlay={}", path.display())])
}

/// Where the module lies when Go has downloaded and checked it.
fn download(build: &Build<'_>, release: Release, version: &str) -> Result<PathBuf, EngineError> {
    let failed = |error: io::Error| not_usable(build.scratch, "no mod file", &error);
    let sums = build.sources.join(mod_file(release)).with_extension("sum");
    fs::copy(sums, build.scratch.join("module.sum")).map_err(failed)?;
    let text = format!("module kube-lockstep.dev/upstream\n\nrequire {MODULE} {version}\n");
    fs::write(build.scratch.join("module.mod"), text).map_err(failed)?;
    let download = Build {
        flags: vec![format!("-modfile={}", build.scratch.join("module.mod").display())],
        of: MODULE,
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
        why: format!("`go mod download` does not say where {MODULE} {version} is"),
        output: json,
    })
}

/// A name for the folder outside of Go's module cache, in which nothing may be laid over, and the
/// same one for each build: Go compiles anew what has moved.
fn link(cache: &Path, version: &str, to: &Path) -> io::Result<PathBuf> {
    let links = cache.join("staging");
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

/// The mod file with the libraries' places, and the overlay that gives each of them a go.mod.
fn lay_over(text: &str, folder: &Path, scratch: &Path) -> io::Result<(String, Value)> {
    let mut replace = Map::new();
    let mut lines = Vec::new();
    for line in text.lines() {
        let staged = line.split_once(" => ").and_then(|(module, place)| {
            Some((module.trim(), folder.join(place.strip_prefix(MARK)?)))
        });
        let Some((module, place)) = staged else {
            lines.push(line.to_owned());
            continue;
        };
        let file = scratch.join(format!("{}.mod", module.replace('/', "_")));
        fs::write(&file, format!("module {module}\n"))?;
        let over = place.join("go.mod").display().to_string();
        replace.insert(over, json!(file.display().to_string()));
        lines.push(format!("\t{module} => {}", quoted(&place)));
    }
    Ok((lines.join("\n") + "\n", json!({ "Replace": replace })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_get_a_place_and_a_go_mod() {
        let scratch = std::env::temp_dir().join(format!("kube-lockstep-{}", std::process::id()));
        fs::create_dir_all(&scratch).expect("a folder");
        let text = "replace (\n\tk8s.io/api => ./staging/k8s.io/api\n\ta.b/c => d.e/f v1.0.0\n)\n";
        let (text, overlay) = lay_over(text, Path::new("/there"), &scratch).expect("it is written");
        let file = scratch.join("k8s.io_api.mod");
        let written = fs::read_to_string(&file);
        fs::remove_dir_all(&scratch).expect("it can go");
        assert_eq!(
            text,
            "replace (\n\tk8s.io/api => \"/there/k8s.io/api\"\n\ta.b/c => d.e/f v1.0.0\n)\n"
        );
        let file = file.display().to_string();
        assert_eq!(overlay, json!({ "Replace": { "/there/k8s.io/api/go.mod": file } }));
        assert_eq!(written.expect("it can be read"), "module k8s.io/api\n");
    }
}
