#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]
//! Packs the fixtures, the recorded traces and the Go sources into a release.
//!
//! A development build of a checkout gets an empty archive: it reads the folders, so that a
//! changed file compiles nothing. See `src/data/mod.rs`.

#[cfg(feature = "engines")]
#[path = "src/data/files.rs"]
mod files;
#[cfg(feature = "engines")]
#[path = "src/data/pack.rs"]
mod pack;

use std::env;
use std::path::{Path, PathBuf};
use std::{fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/data");
    let data = if is_development_build() { Vec::new() } else { packed()? };
    let folder = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    fs::write(folder.join("data"), data)
}

/// Returns true in a checkout, unless this is a release. Only published packages contain the
/// original of their manifest.
fn is_development_build() -> bool {
    env::var("PROFILE").is_ok_and(|profile| profile == "debug")
        && !Path::new("Cargo.toml.orig").exists()
}

#[cfg(feature = "engines")]
fn packed() -> io::Result<Vec<u8>> {
    let mut files = Vec::new();
    for folder in ["upstream", "fixtures", "suites/recorded"] {
        println!("cargo::rerun-if-changed={folder}");
        for path in files::paths(Path::new(folder))? {
            let path = format!("{folder}/{path}");
            let content = fs::read(&path)?;
            files.push((path, content));
        }
    }
    Ok(pack::pack(&files))
}

/// Without engines, the library reads no data.
#[cfg(not(feature = "engines"))]
fn packed() -> io::Result<Vec<u8>> {
    Ok(Vec::new())
}
