//! Responses of the fake metrics API: bodies with a summary, and errors of the API.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use serde_json::Value;

use crate::engine::cluster::metrics_api::json as body;
use crate::model::api::ApiError;

/// What an answer says, in short; it goes along with the answer.
#[derive(Clone, Debug)]
pub(crate) struct InShort(pub(crate) String);

pub(crate) fn in_short(answer: Value, short: String) -> Response {
    let mut answer = Json(answer).into_response();
    answer.extensions_mut().insert(InShort(short));
    answer
}

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
