//! The fake metrics API: metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io, served
//! for many scenarios at once, and their registration with the API server.

pub(crate) mod discovery;
pub(crate) mod expose;
pub(crate) mod groups;
pub(crate) mod handlers;
pub(crate) mod held_query;
pub(crate) mod hold;
pub(crate) mod json;
pub(crate) mod openapi;
pub(crate) mod query;
pub(crate) mod register;
pub(crate) mod response;
pub(crate) mod route;
pub(crate) mod server;
pub(crate) mod state;
