//! The fake metrics API: metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io, served
//! for many scenarios at once, and their registration with the API server.

pub mod discovery;
pub(crate) mod expose;
pub mod groups;
pub(crate) mod handlers;
pub(crate) mod held_query;
pub mod hold;
pub mod json;
pub mod openapi;
pub mod query;
pub mod register;
pub mod response;
pub mod route;
pub mod server;
pub mod state;
