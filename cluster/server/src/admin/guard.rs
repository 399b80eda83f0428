//! The checks of a request before a handler runs: host name, token, and for commands a complete
//! body and a line in the audit log. The router in `api` puts it in front of the routes.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::access::{Access, Denied, Scope};
use super::audit::{Audit, Command, Outcome};
use super::error::ApiError;
use super::hosts::Hosts;
use super::routing::Caller;

/// Largest body of a command, in bytes.
const BODY_MAX: usize = 64 << 10;

/// How long the body may take to arrive.
const BODY_LIMIT: Duration = Duration::from_secs(5);

/// Passes a request on if its host name is one of the console's names.
pub async fn by_name(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    match hosts.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(why) => why.refusal("console").into_response(),
    }
}

/// Passes a request on if it has the token that it needs; writes commands to the audit log.
pub async fn by_token(
    State((access, audit)): State<(Access, Audit)>,
    request: Request,
    next: Next,
) -> Response {
    let (scope, shown) = (Scope::of(request.method()), access.shown(request.headers()));
    let allowed = access.check(scope, shown);
    if scope == Scope::Read {
        return match allowed {
            Ok(()) => next.run(request).await,
            Err(why) => denied(why),
        };
    }
    let path = request.uri().path().to_owned();
    let caller = caller(&request);
    if let Err(why) = allowed {
        let (response, command) = (denied(why), Command { caller, shown, path: &path, body: b"" });
        audit.denied(&command, response.status(), &why.to_string());
        return response;
    }
    let (body, response) = match whole(request).await {
        Ok((request, body)) => (body, next.run(request).await),
        Err(error) => (Bytes::new(), error.into_response()),
    };
    let command = Command { caller, shown, path: &path, body: &body };
    let outcome = response.extensions().get::<Outcome>().map_or("accepted", |said| &said.0);
    audit.done(&command, response.status(), outcome);
    response
}

fn caller(request: &Request) -> SocketAddr {
    let unknown = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    request.extensions().get::<Caller>().map_or(unknown, |caller| caller.0)
}

async fn whole(request: Request) -> Result<(Request, Bytes), ApiError> {
    let (head, body) = request.into_parts();
    let body = match tokio::time::timeout(BODY_LIMIT, to_bytes(body, BODY_MAX)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            let (error, expected) = ("the body is too long or incomplete", "at most 64 KiB");
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, error, expected));
        }
        Err(_) => {
            let error = format!("the body did not arrive within {} s", BODY_LIMIT.as_secs());
            return Err(ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                error,
                "a body that is sent at once",
            ));
        }
    };
    Ok((Request::from_parts(head, Body::from(body.clone())), body))
}

fn denied(why: Denied) -> Response {
    let (status, expected) = match why {
        Denied::Unknown => (
            StatusCode::UNAUTHORIZED,
            "the header Authorization: Bearer TOKEN with a token of this console ([console] token_file \
             or command_token_file, or a file that the server's log names)",
        ),
        Denied::ReadOnly => (
            StatusCode::FORBIDDEN,
            "the command token ([console] command_token_file, or the file that the server's log names)",
        ),
    };
    let mut response = ApiError::new(status, why.to_string(), expected).into_response();
    if why == Denied::Unknown {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
