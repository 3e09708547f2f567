//! Tells cargo about the folders that are embedded in the binary: the macro that embeds them
//! notices changed files, but not new ones.

#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

fn main() {
    for folder in ["upstream", "suites/recorded"] {
        println!("cargo::rerun-if-changed=../../{folder}");
    }
}
