//! The reference model of the HorizontalPodAutoscaler controller: what upstream must do, as pure
//! code.
//!
//! Given what the controller sees at one instant, [`hpa::Controller::sync`] says everything that
//! can be observed of its reconcile, and why. Deliberately no clock, no randomness, no I/O, and no
//! other module of this crate: time is an input, and so is every object of the cluster.

pub mod api;
mod api_metrics;
mod decimal;
pub mod derivation;
mod explain;
mod explain_metric;
pub mod flags;
pub mod hpa;
mod label_selector;
pub mod observation;
pub mod quantity;
pub mod rules;
pub mod selector;
pub mod time;
