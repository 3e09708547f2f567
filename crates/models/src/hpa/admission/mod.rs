//! Admission of HPAs by the API server: defaults, validation, conversion and storage.

mod conversion;
pub(super) mod defaults;
mod field_error;
pub(super) mod metrics;
mod metrics_v2beta1;
mod names;
mod storage_v1;
mod validation;

pub use conversion::{
    ApiVersion, ROUND_TRIP_ANNOTATIONS, decode_spec, drop_zero_totals, from_v2beta1,
    metric_to_v2beta1, status_from_v2beta1,
};
pub use defaults::set_defaults;
pub use field_error::{FieldError, FieldErrorType};
pub use names::validate_container_resource_name;
pub(crate) use storage_v1::metrics_through_v1;
pub use storage_v1::spec_through_v1;
pub use validation::{ApiServer, admit, drop_disabled_fields, validate, validate_update};
