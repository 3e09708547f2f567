//! The tests that require only Rust: of the model against recorded traces, of scenario files,
//! reports and the command, and of the rules for code and documentation.

mod cli;
mod coverage;
mod faults;
mod invalid_fixtures;
mod parser;
mod recorded;
mod refused;
mod releases;
mod reports;
mod schema;
mod shards;
mod skips;
#[path = "../support/mod.rs"]
mod support;
mod tidy;
