#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]
//! Tells cargo about the folder that is embedded in the binary: the macro that embeds it notices
//! changed files, but not new ones.

fn main() {
    println!("cargo::rerun-if-changed=fixtures");
}
