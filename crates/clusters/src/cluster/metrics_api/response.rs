//! Answers of the fake metrics API.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use serde::Serialize;

use kube_autoscaler_models::api::ApiError;
use kube_autoscaler_models::observation::ControllerAction;

/// The answer to a query, and its records.
pub(crate) struct Answer {
    pub response: Response,
    /// The summary in the query log.
    pub summary: String,
    /// The query as an action of the controller, with each namespace that it concerns.
    pub actions: Vec<(String, ControllerAction)>,
}

impl Answer {
    pub(crate) fn new(body: impl Serialize, summary: String) -> Answer {
        Answer { response: Json(body).into_response(), summary, actions: Vec::new() }
    }

    pub(crate) fn failed(error: &ApiError) -> Answer {
        let (response, summary) = (failure(error), error.message.to_string());
        Answer { response, summary, actions: Vec::new() }
    }

    pub(crate) fn with_action(self, namespace: &str, action: ControllerAction) -> Answer {
        Answer { actions: vec![(namespace.to_owned(), action)], ..self }
    }
}

pub(crate) fn error(code: u16, reason: &str, message: &str) -> ApiError {
    ApiError { code, reason: reason.to_owned(), message: message.into() }
}

pub(crate) fn not_found(message: &str) -> ApiError {
    error(404, "NotFound", message)
}

/// The response of an API server for an error.
pub(crate) fn failure(error: &ApiError) -> Response {
    let code = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let status = Status {
        status: Some("Failure".to_owned()),
        message: Some(error.message.to_string()),
        reason: Some(error.reason.clone()),
        code: Some(error.code.into()),
        ..Status::default()
    };
    (code, Json(status)).into_response()
}
