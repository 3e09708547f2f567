//! Functions of apimachinery that the controller and the API server share.

use crate::model::api::ApiError;

/// Group and version of an apiVersion.
///
/// Upstream: apimachinery, pkg/runtime/schema, ParseGroupVersion
pub(crate) fn parse_group_version(text: &str) -> Result<(&str, &str), String> {
    match text.split_once('/') {
        None => Ok(("", text)),
        Some((_, version)) if version.contains('/') => {
            Err(format!("unexpected GroupVersion string: {text}"))
        }
        Some(parts) => Ok(parts),
    }
}

/// Upstream: apimachinery, pkg/api/errors, IsConflict
pub(crate) fn is_conflict(error: &ApiError) -> bool {
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
