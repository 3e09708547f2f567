//! The reference model of the HorizontalPodAutoscaler controller, as pure code. [`vpa`] is the
//! model of the recommender of the Vertical Pod Autoscaler.
//!
//! From the objects and metrics that the controller reads, [`hpa::Controller::sync`] predicts all
//! observable results of a reconcile, with their derivation. The model has no clock, no
//! randomness and no I/O, and uses no other module of this crate: time is an input, and so is every
//! object of the cluster.

#![warn(missing_docs)]

pub mod api;
pub mod as_text;
pub mod content_hash;
pub mod counted;
pub mod derivation;
mod event_metadata;
pub mod flags;
pub mod hpa;
pub mod is_default;
pub mod merge_patch;
pub mod object_write;
pub mod observation;
pub mod quantity;
pub mod rules;
pub mod selector;
pub mod series;
pub mod shared;
pub mod state;
pub mod tagged;
pub mod time;
pub mod vpa;
