//! The wording of errors and messages.

use crate::selector::WrongNumberFormat;

/// The HPAs that the error about a shared selector names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AmbiguousHpas {
    /// All HPAs, in a random order.
    All,
    /// Two HPAs, as an example.
    Example,
}

/// The order of words in the error of an object's metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectError {
    /// Each argument one position too late: `unable to get metric M: KIND on NS NAME/ERROR`.
    Shifted,
    /// `unable to get metric M on KIND NS/NAME: ERROR`.
    InOrder,
}

/// The error of a missing request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingRequest {
    /// `missing request for R on container C in pod NS/P`.
    OnContainer,
    /// `missing request for R`.
    Bare,
    /// `missing request for R in container C of Pod P`.
    InContainer,
}

/// The wording of errors and messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextRules {
    /// True if the error of a reconcile names the resource, container or external metric that
    /// failed.
    pub metric_is_named: bool,
    /// True if the event of a resource metric names the value that is unavailable.
    pub resource_is_named: bool,
    /// True if an error names the metrics API that returned nothing.
    pub metrics_api_is_named: bool,
    /// The name of a failed metric of pods.
    pub pods_metric: &'static str,
    /// The name of an unavailable value if the target is an average.
    pub average: &'static str,
    /// The missing part of a resource metric without a target.
    pub no_target: &'static str,
    /// The error if no counted pod has metrics, for a utilization.
    pub no_metrics: &'static str,
    /// The error if no counted pod has metrics, for an average.
    pub no_metrics_for_average: &'static str,
    /// The error of a missing request.
    pub missing_request: MissingRequest,
    /// The order of words in the error of an object's metric.
    pub object_error: ObjectError,
    /// The HPAs that the error about a shared selector names.
    pub ambiguous_hpas: AmbiguousHpas,
    /// True if the error of an unknown kind quotes it.
    pub unknown_kind_is_quoted: bool,
    /// The spelling of `successfully`.
    pub successfully: &'static str,
    /// True if too few replicas have their own message instead of the message of the upper limit.
    pub too_few_is_explained: bool,
    /// True if the utilization of a container is reported as container utilization.
    pub container_utilization_is_named: bool,
    /// True if the expressions of a selector are printed with their types.
    pub expressions_are_typed: bool,
    /// The format of the error of a selector with a wrong number of values.
    pub wrong_number_of_values: WrongNumberFormat,
    /// True if the condition of a failed selector uses the error as a format string without
    /// arguments.
    pub selector_messages_are_formats: bool,
    /// True if the condition of a failed metric uses the error as a format string without
    /// arguments.
    pub metric_messages_are_formats: bool,
}

impl TextRules {
    pub(crate) const OLDEST: TextRules = TextRules {
        metric_is_named: false,
        resource_is_named: false,
        metrics_api_is_named: false,
        pods_metric: "pods",
        average: "utilization",
        no_target: "neither a utilization target nor a value target was set",
        no_metrics: "did not receive metrics for any ready pods",
        no_metrics_for_average: "did not recieve metrics for any ready pods",
        missing_request: MissingRequest::OnContainer,
        object_error: ObjectError::Shifted,
        ambiguous_hpas: AmbiguousHpas::All,
        unknown_kind_is_quoted: false,
        successfully: "succesfully",
        too_few_is_explained: false,
        container_utilization_is_named: false,
        expressions_are_typed: false,
        wrong_number_of_values: WrongNumberFormat::Detail,
        selector_messages_are_formats: true,
        metric_messages_are_formats: false,
    };
}
