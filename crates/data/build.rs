//! Packs the data into the program, unless this is a development build in a checkout: such a
//! program reads the folders, so that a changed file causes no compilation.

#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

#[path = "src/archive.rs"]
#[allow(dead_code, reason = "only its entries are written here")]
mod archive;
#[path = "src/folder.rs"]
mod folder;
#[path = "src/pack.rs"]
mod pack;

use std::env;
use std::path::{Path, PathBuf};
use std::{fs, io};

use folder::Location;
use pack::{FOLDERS, Packed};

/// The root of the checkout, from this crate.
const CHECKOUT: &str = "../..";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src");
    // Only a published package contains the original of its manifest.
    let is_package = Path::new("Cargo.toml.orig").exists();
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let source = if is_package {
        archive(&out, |location| location.name.into())?
    } else if env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        format!("Source::Checkout({:?})", Path::new(CHECKOUT).canonicalize()?)
    } else {
        archive(&out, |location| Path::new(CHECKOUT).join(location.in_checkout))?
    };
    fs::write(out.join("source.rs"), source)
}

/// Writes the archive of all folders. Returns the expression for it.
fn archive(out: &Path, path: impl Fn(&Location) -> PathBuf) -> io::Result<String> {
    let mut packed = Packed::default();
    for location in FOLDERS {
        let path = path(&location);
        println!("cargo::rerun-if-changed={}", path.display());
        packed.add(location.name, &path)?;
    }
    fs::write(out.join("archive"), &packed.bytes)?;
    // An entry is printed as the code for it.
    let archive = format!("Archive::new(include_bytes!(\"archive\"), &{:?})", packed.entries);
    Ok(format!("{{ use archive::Entry; Source::Archive({archive}) }}"))
}
