//! The HPA controller and the admission of HPAs by the API server.
//!
//! Each function corresponds to the function of the same name in upstream's
//! `pkg/controller/podautoscaler`. [`Controller::sync`] is the entry point.
//!
//! Not covered: informers and clients (their responses are the [`Input`]) and log lines.

mod admission;
mod apimachinery;
mod controller;
mod decision;
mod event_correlator;
pub mod go;
mod input;
mod memory;
mod metric_name;
pub mod metrics;
mod normalization;
mod queue;
mod reconcile;
mod selector_store;
mod token_bucket;

#[cfg(test)]
mod tests;

pub use admission::validate_container_resource_name;
pub use admission::{
    ApiServer, ApiVersion, FieldError, FieldErrorType, ROUND_TRIP_ANNOTATIONS, admit, decode_spec,
    drop_disabled_fields, drop_zero_totals, from_v2beta1, metric_to_v2beta1, set_defaults,
    spec_through_v1, status_from_v2beta1, validate, validate_update,
};
pub use controller::Controller;
pub use decision::{Decision, WorkItemResult};
pub use event_correlator::EventCorrelator;
pub use input::{ChangedHpa, HpaChange, Input, Interruption};
pub use normalization::policy_limit;
pub use reconcile::{RETRY_WAIT, hpas_with_same_pods};
pub use token_bucket::TokenBucket;
