//! The tests that require only Rust: the model against recorded traces, scenario files, reports, the
//! command, and the rules of the house.

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
