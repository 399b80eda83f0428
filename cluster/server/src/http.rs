//! An HTTP client for the console of a server, for short answers. Commands of the command line and
//! tests call it.

use std::error::Error;
use std::time::Duration;

use axum::http::uri::Scheme;
use axum::http::{Request, Uri, header};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use purview_client::{Trust, TrustError};
use tokio_rustls::rustls::ClientConfig;

/// Longest answer that is read, bytes: a hundred thousand players.
const ANSWER_MAX: usize = 16 << 20;

/// The variable of the environment that holds the token of consoles.
pub const TOKEN_VAR: &str = "PURVIEW_TOKEN";

const ANSWER_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("cannot ask {0:?}: write http://host:port or https://host:port")]
    BadUrl(String),
    /// There is nothing to judge the console's certificate by.
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error("{url} does not answer: {cause}")]
    NoAnswer { url: String, cause: String },
    #[error("{url} does not answer within {} s", ANSWER_LIMIT.as_secs())]
    Silent { url: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status, for example 200.
    pub status: u16,
    pub body: Bytes,
}

/// The caller: its token, and the authorities that it trusts for `https://`.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The console's token, if it asks for one. A token that cannot stand in a header is not sent.
    pub token: Option<String>,
    pub trust: Trust,
}

impl Caller {
    /// With this token, and the authorities of the machine.
    pub fn with_token(token: Option<&str>) -> Caller {
        Caller { token: token.map(str::to_owned), trust: Trust::platform() }
    }

    /// `GET` of `path`, which begins with a slash, below the address `base` of a console, which is
    /// `http://host:port` or `https://host:port` and may go on with a path of its own.
    ///
    /// # Errors
    /// [`HttpError`]. An answer of any status is none.
    pub async fn get(&self, base: &str, path: &str) -> Result<HttpResponse, HttpError> {
        self.ask(base, path, None).await
    }

    /// `POST` of JSON, as [`Caller::get`].
    pub async fn post(
        &self,
        base: &str,
        path: &str,
        json: Bytes,
    ) -> Result<HttpResponse, HttpError> {
        self.ask(base, path, Some(json)).await
    }

    async fn ask(
        &self,
        base: &str,
        path: &str,
        json: Option<Bytes>,
    ) -> Result<HttpResponse, HttpError> {
        let uri = uri(base, path).ok_or_else(|| HttpError::BadUrl(base.into()))?;
        // Only calls over TLS need authorities.
        let config = match uri.scheme() == Some(&Scheme::HTTPS) {
            true => Some((*self.trust.config()?).clone()),
            false => None,
        };
        let fetched = fetch(uri, json, self.token.as_deref(), config);
        match tokio::time::timeout(ANSWER_LIMIT, fetched).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(e)) => Err(HttpError::NoAnswer { url: base.into(), cause: bottom(&*e) }),
            Err(_) => Err(HttpError::Silent { url: base.into() }),
        }
    }
}

/// `GET` of `path` with the token that the environment names, if it does.
pub async fn get(base: &str, path: &str) -> Result<HttpResponse, HttpError> {
    get_as(base, path, std::env::var(TOKEN_VAR).ok().as_deref()).await
}

/// `GET` as [`Caller::get`], with the authorities of the machine.
pub async fn get_as(
    base: &str,
    path: &str,
    token: Option<&str>,
) -> Result<HttpResponse, HttpError> {
    Caller::with_token(token).get(base, path).await
}

/// `POST` of JSON, as [`get_as`].
pub async fn post_as(
    base: &str,
    path: &str,
    json: Bytes,
    token: Option<&str>,
) -> Result<HttpResponse, HttpError> {
    Caller::with_token(token).post(base, path, json).await
}

fn uri(base: &str, path: &str) -> Option<Uri> {
    let uri: Uri = format!("{}{path}", base.trim_end_matches('/')).parse().ok()?;
    let spoken = uri.scheme() == Some(&Scheme::HTTP) || uri.scheme() == Some(&Scheme::HTTPS);
    (spoken && !base.contains(['?', '#'])).then_some(uri)
}

async fn fetch(
    uri: Uri,
    json: Option<Bytes>,
    token: Option<&str>,
    tls: Option<ClientConfig>,
) -> Result<HttpResponse, Box<dyn Error + Send + Sync>> {
    let mut request = if json.is_some() { Request::post(uri) } else { Request::get(uri) };
    if json.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.body(Full::new(json.unwrap_or_default()))?;
    let client = Client::builder(TokioExecutor::new());
    let response = match tls {
        None => client.build_http::<Full<Bytes>>().request(request).await?,
        Some(config) => {
            let connector = HttpsConnectorBuilder::new().with_tls_config(config).https_only();
            client.build(connector.enable_http1().build()).request(request).await?
        }
    };
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await?.to_bytes();
    Ok(HttpResponse { status, body })
}

/// The first cause, which says what a person can act on.
fn bottom(mut error: &(dyn Error + 'static)) -> String {
    while let Some(cause) = error.source() {
        error = cause;
    }
    // What an error of the system carries is not among its sources.
    let carried = error.downcast_ref::<std::io::Error>().and_then(|e| e.get_ref());
    carried.map_or_else(|| error.to_string(), |inner| inner.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_may_stand_below_a_path() {
        let text = |base| uri(base, "/api/why?a=1").map(|uri| uri.to_string());
        let want = |text: &str| Some(text.to_owned());
        assert_eq!(text("http://h:1"), want("http://h:1/api/why?a=1"));
        assert_eq!(text("https://h:1/"), want("https://h:1/api/why?a=1"));
        assert_eq!(text("http://[::1]:1/"), want("http://[::1]:1/api/why?a=1"));
        assert_eq!(text("http://h/purview/"), want("http://h/purview/api/why?a=1"));
    }

    #[test]
    fn what_is_no_address_of_a_console_is_refused() {
        for base in ["", "h:1", "ftp://h:1", "ws://h:1", "http://", "http://h:1?x=1", "http://a b"]
        {
            assert_eq!(uri(base, "/api/stats"), None, "{base:?}");
        }
    }
}
