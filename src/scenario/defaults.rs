//! Defaults for both reading and writing a scenario.

use crate::model::time::Span;

/// The default age of the initial pods.
pub(super) const AGE: Span = Span::from_mins(60);

/// The name of the container, if the scenario names none.
pub(super) const APP: &str = "app";
