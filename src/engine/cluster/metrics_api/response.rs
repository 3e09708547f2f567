//! Responses of the metrics APIs that are failures, and the summary that goes along with each
//! response for the query log.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};

use crate::engine::cluster::metrics_api::json as body;
use crate::model::api::ApiError;

/// What an answer says, in short; it goes along with the answer.
#[derive(Clone, Debug)]
pub(crate) struct InShort(pub(crate) String);

pub(crate) fn error(code: u16, reason: &str, message: &str) -> ApiError {
    ApiError { code, reason: reason.to_owned(), message: message.into() }
}

pub(crate) fn not_found(message: &str) -> Response {
    failure(&error(404, "NotFound", message))
}

pub(crate) fn failure(error: &ApiError) -> Response {
    let code = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = (code, Json(body::status(error))).into_response();
    answer.extensions_mut().insert(InShort(error.message.to_string()));
    answer
}
