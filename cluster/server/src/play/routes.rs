//! The HTTP routes of the page. Every error is JSON with `error` and `expected`, as the console's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use serde::{Deserialize, Serialize};

use super::PlayState;
use super::doorkeeper::Doorkeeper;
use super::page::{PAGE, assets};
use super::scenes::{ScenesShape, scenes};
use crate::admin::error::ApiError;
use crate::admin::hosts::Hosts;
use crate::admin::page::Asset;
use crate::admin::routing::secure;
use crate::admin::serve::Caller;
use crate::config::PlaySettings;

/// For how long a visitor's token is valid. The page renews it.
const TOKEN_HOLDS: Duration = Duration::from_secs(12 * 60 * 60);

/// Longest request for a token, bytes.
const BODY_MAX: usize = 4_096;

struct Shared {
    state: PlayState,
    doorkeeper: Doorkeeper,
    /// The configured address of the gateway.
    gateway: Option<String>,
    hosts: Hosts,
}

type Play = State<Arc<Shared>>;

pub fn router(state: PlayState, settings: &PlaySettings) -> Router {
    let doorkeeper = Doorkeeper::new(settings.tokens);
    let hosts = Hosts::new(&settings.hosts);
    let shared = Arc::new(Shared { state, doorkeeper, gateway: settings.gateway.clone(), hosts });
    Router::new()
        .route("/", get(async || Redirect::to("/play")))
        .route("/play", get(async || PAGE.response()))
        .route("/play/scenes", get(told_scenes))
        .route("/play/token", post(token))
        .route("/play/{*path}", get(file))
        .fallback(async |uri: Uri| not_found(uri.path()))
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(middleware::from_fn_with_state(shared.clone(), guard))
        .with_state(shared)
}

/// Passes a request on if its host name is one of the page's names, and adds the security headers.
async fn guard(State(shared): Play, request: Request, next: Next) -> Response {
    let url = gateway_url(&shared, request.headers());
    let mut response = match shared.hosts.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(why) => why.refusal("play").into_response(),
    };
    // The page may load and run only what this server serves, and connect to the gateway.
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         connect-src 'self' {}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        url.unwrap_or_default()
    );
    secure(&mut response, &policy);
    response
}

fn not_found(path: &str) -> ApiError {
    ApiError::not_found(format!("there is no {path}"), "/play")
}

async fn file(Path(path): Path<String>) -> Result<Response, ApiError> {
    let found = assets().find(|a| a.name == path).map(Asset::response);
    found.ok_or_else(|| not_found(&format!("/play/{path}")))
}

async fn told_scenes(State(shared): Play) -> Json<ScenesShape> {
    Json(scenes(&shared.state))
}

#[derive(Debug, Default, Deserialize)]
struct Asked {
    /// The token before; the visitor stays the same while it is valid.
    token: Option<String>,
}

#[derive(Debug, Serialize)]
struct Given {
    token: String,
    expires_s: u64,
    /// The WebSocket address of the gateway.
    gateway: String,
}

async fn token(
    State(shared): Play,
    Extension(Caller(from)): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Given>, ApiError> {
    if !is_own_page(&headers) {
        let error = "only the page of this server may ask for a token";
        return Err(ApiError::new(StatusCode::FORBIDDEN, error, "an Origin header of this page"));
    }
    let asked: Asked = match body.is_empty() {
        true => Asked::default(),
        false => serde_json::from_slice(&body)
            .map_err(|e| ApiError::bad(e.to_string(), "JSON such as {\"token\": null}"))?,
    };
    shared.doorkeeper.admit(from.ip(), Instant::now()).map_err(|wait| {
        let error = "your address has had its tokens of this minute (play.tokens)";
        let expected = format!("another try in {} s", wait.as_secs().max(1));
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, error, expected)
    })?;
    let gateway = gateway_url(&shared, &headers).ok_or_else(|| {
        ApiError::bad("the Host header does not name a host", "a host and a port")
    })?;
    let made = shared.state.tokens.visitor(asked.token.as_deref(), TOKEN_HOLDS);
    let made = made.map_err(|error| {
        let expected = "a server that can sign tokens; see its log";
        purview::log_limited!(error, %error, "a visitor's token cannot be signed");
        ApiError::unavailable("no token can be signed", expected)
    })?;
    Ok(Json(Given { token: made.token, expires_s: made.expires_s, gateway }))
}

/// Whether a request comes from a page of this server: the host of its origin is the host that it
/// asks.
fn is_own_page(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let origin = text(header::ORIGIN).and_then(|origin| origin.split_once("://"));
    let host = text(header::HOST);
    origin.zip(host).is_some_and(|((_, origin), host)| origin.eq_ignore_ascii_case(host))
}

/// The configured address of the gateway, else the host of the request with the port of this
/// process's gateway.
fn gateway_url(shared: &Shared, headers: &HeaderMap) -> Option<String> {
    if let Some(url) = &shared.gateway {
        return Some(url.clone());
    }
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let host: axum::http::uri::Authority = host.parse().ok()?;
    let (addr, secure) = shared.state.gateway;
    let scheme = if secure { "wss" } else { "ws" };
    Some(format!("{scheme}://{}:{}/", host.host(), addr.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(origin: &str, host: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if !origin.is_empty() {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_the_own_page_is_given_tokens() {
        let own = |origin, host| is_own_page(&headers(origin, host));
        assert!(own("http://127.0.0.1:7781", "127.0.0.1:7781"));
        assert!(own("https://play.example.net", "Play.example.net"));
        for origin in ["", "null", "http://evil.example", "http://127.0.0.1:7780"] {
            assert!(!own(origin, "127.0.0.1:7781"), "{origin:?}");
        }
    }
}
