//! What a request passes before anything of it is read: by which name the console was called, which token is shown,
//! and, of a command, that it comes to an end. Commands are written down.

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
use super::hosts::{Hosts, Misdirected};
use super::serve::Caller;

/// Longest body of a command, bytes.
const BODY_MAX: usize = 64 << 10;

/// How long a body may take.
const BODY_LIMIT: Duration = Duration::from_secs(5);

/// Lets a request on that calls the console by one of its names.
pub async fn by_name(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    let Err(why) = hosts.check(request.uri(), request.headers()) else {
        return next.run(request).await;
    };
    let (status, expected) = match why {
        Misdirected::NoHost => (StatusCode::BAD_REQUEST, "one header Host"),
        Misdirected::Unknown(_) => (
            StatusCode::MISDIRECTED_REQUEST,
            "an IP address, localhost, or a name that [console] hosts lists",
        ),
    };
    ApiError::new(status, why.to_string(), expected).into_response()
}

/// Lets a request on that shows the token which it needs, and writes commands down.
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

/// Reads the body of a command to its end.
async fn whole(request: Request) -> Result<(Request, Bytes), ApiError> {
    let (head, body) = request.into_parts();
    let body = match tokio::time::timeout(BODY_LIMIT, to_bytes(body, BODY_MAX)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            let (error, expected) = ("the body is too long, or breaks off", "64 KiB at most");
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, error, expected));
        }
        Err(_) => {
            let error = format!("the body has not come within {} s", BODY_LIMIT.as_secs());
            return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, error, "a body at once"));
        }
    };
    Ok((Request::from_parts(head, Body::from(body.clone())), body))
}

fn denied(why: Denied) -> Response {
    let (status, expected) = match why {
        Denied::Unknown => (
            StatusCode::UNAUTHORIZED,
            "the header Authorization: Bearer TOKEN, with a token of this server's console ([console] token_file \
             or command_token_file, or the files that its log names)",
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
