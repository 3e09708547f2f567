//! The engines in virtual time that do I/O, and the runner: upstream's controllers in child
//! processes, recorded traces, and the plan of a run on each release.

pub mod custom;
pub mod executor;
pub mod guard;
pub mod input_file;
pub mod kind;
pub mod options;
pub mod plan;
pub mod process_group;
pub mod record;
pub mod recorded;
pub mod registry;
pub mod runner;
pub mod runtime;
pub mod short_command;
pub mod snapshots;
pub mod source;
pub mod upstream;
mod virtual_time;
