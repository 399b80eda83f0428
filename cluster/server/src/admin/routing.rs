//! What the routes of the console's listener have in common.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use axum::routing::MethodRouter;

use super::page::CONTENT_SECURITY_POLICY;
use super::shared::Shared;

/// What a handler is given.
pub(super) type Console = State<Arc<Shared>>;

pub(super) type Route = (&'static str, MethodRouter<Arc<Shared>>);

/// Adds the security headers to every answer of the console.
pub(super) async fn harden(mut response: Response) -> Response {
    secure(&mut response, CONTENT_SECURITY_POLICY);
    response
}

/// Adds the security headers, with this policy of contents.
pub(crate) fn secure(response: &mut Response, policy: &str) {
    let all = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    for (name, value) in all {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
}

/// The address of the caller, an extension of the request.
#[derive(Debug, Clone, Copy)]
pub struct Caller(pub SocketAddr);
