//! The simulated cluster of kube-lockstep: the world of a scenario, the engine of the reference
//! model, lockstep runs of model and engine, and their verdicts.
//!
//! Pure: no files, no clock, no processes.

pub mod compare;
pub mod engine;
pub mod expect;
pub mod objects;
pub mod run;
pub mod trace;
pub mod world;
