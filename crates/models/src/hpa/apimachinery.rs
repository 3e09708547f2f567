//! Functions of apimachinery that the controller and the API server share.

use crate::api::ApiError;

/// Group and version of an apiVersion.
///
/// Upstream: apimachinery, pkg/runtime/schema, ParseGroupVersion
pub(crate) fn parse_group_version(text: &str) -> Result<(&str, &str), String> {
    // Searches bytes: each reconcile parses the text, and a search for a `char` takes longer.
    let is_slash = |byte: u8| byte == b'/';
    let Some(slash) = text.bytes().position(is_slash) else { return Ok(("", text)) };
    let (group, version) = (&text[..slash], &text[slash + 1..]);
    match version.bytes().any(is_slash) {
        true => Err(format!("unexpected GroupVersion string: {text}")),
        false => Ok((group, version)),
    }
}

/// Upstream: apimachinery, pkg/api/errors, IsConflict
pub(super) fn is_conflict(error: &ApiError) -> bool {
    const KNOWN: [&str; 18] = [
        "NotFound",
        "Unauthorized",
        "Forbidden",
        "AlreadyExists",
        "Gone",
        "Invalid",
        "ServerTimeout",
        "StoreReadError",
        "Timeout",
        "TooManyRequests",
        "BadRequest",
        "MethodNotAllowed",
        "NotAcceptable",
        "RequestEntityTooLarge",
        "UnsupportedMediaType",
        "InternalError",
        "Expired",
        "ServiceUnavailable",
    ];
    error.reason == "Conflict" || (error.code == 409 && !KNOWN.contains(&error.reason.as_str()))
}

/// The error of a write that conflicts with another one.
///
/// Upstream: apimachinery, pkg/api/errors, NewConflict
pub(super) fn conflict(resource: &str, name: &str, why: &str) -> ApiError {
    ApiError {
        code: 409,
        reason: "Conflict".to_owned(),
        message: format!("Operation cannot be fulfilled on {resource} {name:?}: {why}").into(),
    }
}

/// The error of a write of an object that has changed since it was read.
///
/// Upstream: apiserver, pkg/registry/generic/registry, OptimisticLockErrorMsg
pub(super) fn outdated(resource: &str, name: &str) -> ApiError {
    let why = "the object has been modified; please apply your changes to the latest version and \
               try again";
    conflict(resource, name, why)
}
