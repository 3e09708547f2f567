//! Defaults for both reading and writing a scenario.

use kube_autoscaler_models::time::Span;

/// The default age of the initial pods.
pub const AGE: Span = Span::from_mins(60);

/// The name of the container, if the scenario names none.
pub const APP: &str = "app";
