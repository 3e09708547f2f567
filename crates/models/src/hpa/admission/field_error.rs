//! Errors of invalid fields, in upstream's format.
//!
//! Upstream: apimachinery, pkg/util/validation/field/errors.go.

use std::fmt;

use crate::quantity::Quantity;

/// The type of a field error: the words after the field's path.
///
/// Upstream: apimachinery, pkg/util/validation/field/errors.go, ErrorType
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldErrorType {
    /// A required value is missing.
    Required,
    /// The value is invalid.
    Invalid,
    /// The field is forbidden.
    Forbidden,
    /// The value is not one of the supported values.
    NotSupported,
    /// Another element of the list has the same value.
    Duplicate,
    /// The value does not refer to an existing element.
    NotFound,
}

/// An invalid field of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldError {
    /// The field's path: `spec.metrics[0].resource.name`.
    pub field: String,
    /// The type of the error.
    pub type_: FieldErrorType,
    /// The value as upstream prints it, if it is invalid.
    pub value: String,
    /// The reason of the error.
    pub detail: String,
    /// The value as older API servers print it, if they print it differently.
    pub(crate) go_syntax: Option<String>,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.field)?;
        match self.type_ {
            FieldErrorType::Required => f.write_str(": Required value")?,
            FieldErrorType::Forbidden => f.write_str(": Forbidden")?,
            FieldErrorType::Invalid => write!(f, ": Invalid value: {}", self.value)?,
            FieldErrorType::NotSupported => write!(f, ": Unsupported value: {}", self.value)?,
            FieldErrorType::Duplicate => write!(f, ": Duplicate value: {}", self.value)?,
            FieldErrorType::NotFound => write!(f, ": Not found: {}", self.value)?,
        }
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

impl std::error::Error for FieldError {}

impl FieldError {
    /// An error. `value` is as upstream prints it; it is only printed if the type has one.
    #[must_use]
    pub fn new(
        field: impl Into<String>,
        type_: FieldErrorType,
        value: impl fmt::Display,
        detail: &str,
    ) -> FieldError {
        FieldError { type_, value: value.to_string(), ..required(field, detail) }
    }
}

pub(super) fn required(field: impl Into<String>, detail: &str) -> FieldError {
    let (field, detail) = (field.into(), detail.to_owned());
    let value = String::new();
    FieldError { field, type_: FieldErrorType::Required, value, detail, go_syntax: None }
}

pub(super) fn forbidden(field: impl Into<String>, detail: &str) -> FieldError {
    FieldError { type_: FieldErrorType::Forbidden, ..required(field, detail) }
}

pub(super) fn invalid(
    field: impl Into<String>,
    value: impl fmt::Display,
    detail: &str,
) -> FieldError {
    FieldError::new(field, FieldErrorType::Invalid, value, detail)
}

/// The error of an invalid quantity.
pub(crate) fn invalid_quantity(field: String, value: &Quantity, detail: &str) -> FieldError {
    FieldError { go_syntax: Some(value.go_syntax()), ..invalid(field, quoted(value), detail) }
}

/// A quoted string, as upstream prints it.
pub(super) fn quoted(text: impl fmt::Display) -> String {
    format!("{:?}", text.to_string())
}

/// The message with which the API server rejects an HPA: all errors in one.
///
/// Upstream: apimachinery, pkg/api/errors, NewInvalid
#[must_use]
pub(crate) fn invalid_message(name: &str, errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let all = match texts.as_slice() {
        [single] => single.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    format!("HorizontalPodAutoscaler.autoscaling {} is invalid: {all}", quoted(name))
}
