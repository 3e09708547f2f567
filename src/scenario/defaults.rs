//! Defaults that both the way from a file and the way back know.

use crate::model::time::Span;

/// The default age of the initial pods.
pub(super) const AGE: Span = Span::from_mins(60);

/// The name of the only container, if the scenario names none.
pub(super) const APP: &str = "app";
