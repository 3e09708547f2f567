#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]
//! Tells cargo about the folders that are embedded in the binary: the macro that embeds them
//! notices changed files, but not new ones.

fn main() {
    for folder in ["upstream", "fixtures", "suites/recorded"] {
        println!("cargo::rerun-if-changed={folder}");
    }
}
