#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]
//! Makes cargo look at the folders that are embedded in the binary: the macro that embeds them sees
//! files that change, but not files that are new.

fn main() {
    for folder in ["upstream", "fixtures", "suites/recorded"] {
        println!("cargo::rerun-if-changed={folder}");
    }
}
