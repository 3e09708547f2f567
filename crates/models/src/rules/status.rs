//! Rules of the HPA's status.

use crate::quantity::Format;

/// The rules by which the status of an HPA is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StatusRules {
    /// True if HPAs have conditions, and the status is written after the scale could not be read or
    /// written.
    pub has_conditions: bool,
    /// True if each reconcile writes the status, even if nothing changed.
    pub is_always_written: bool,
    /// True if a failure keeps the metrics of the last status.
    pub failure_keeps_metrics: bool,
    /// True if the error of a status write is reported after the scale could not be read.
    pub scale_failure_reports_write_error: bool,
    /// The format in which the average memory usage is printed.
    pub memory_format: Format,
    /// True if the status of an object's average names the object.
    pub object_average_names_object: bool,
    /// True if `lastScaleTime` is stored in whole seconds, like all other times.
    pub scale_times_are_whole: bool,
}

impl StatusRules {
    pub(crate) const OLDEST: StatusRules = StatusRules {
        has_conditions: false,
        is_always_written: true,
        failure_keeps_metrics: true,
        scale_failure_reports_write_error: false,
        memory_format: Format::DecimalSI,
        object_average_names_object: false,
        scale_times_are_whole: false,
    };
}
