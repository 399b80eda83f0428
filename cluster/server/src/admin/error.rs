//! Errors of the API: JSON that says what was wrong (`error`) and what would be right (`expected`).

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::audit::Outcome;

/// An answer that is not what was asked for.
#[derive(Debug, Serialize)]
pub struct ApiError {
    #[serde(skip)]
    status: StatusCode,
    error: String,
    expected: String,
}

impl ApiError {
    pub(crate) fn new(
        status: StatusCode,
        error: impl Into<String>,
        expected: impl Into<String>,
    ) -> ApiError {
        ApiError { status, error: error.into(), expected: expected.into() }
    }

    pub(crate) fn not_found(error: impl Into<String>, expected: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, error, expected)
    }

    /// The request is for a process of a cluster.
    pub(crate) fn no_cluster() -> ApiError {
        let expected = "a process of a cluster: purview node";
        ApiError::not_found("this server is not part of a cluster", expected)
    }

    pub(crate) fn unavailable(error: impl Into<String>, expected: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, error, expected)
    }

    pub(crate) fn bad(error: impl Into<String>, expected: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, error, expected)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let outcome = Outcome(self.error.clone());
        let mut response = (self.status, Json(self)).into_response();
        response.extensions_mut().insert(outcome);
        response
    }
}
