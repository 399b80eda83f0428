//! The WebSocket handshake: reads the HTTP request that begins a connection, accepts it or answers
//! with an HTTP status. The connection task calls it within the handshake deadline.

use std::io;

use bytes::BytesMut;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{create_response, write_response};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::frames::{Counted, FrameCounter};
use super::socket::Socket;

/// Longest request head, in bytes.
const HEAD_MAX: usize = 8 * 1_024;

const HEADERS_MAX: usize = 64;

/// Why a request did not become a WebSocket.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoUpgrade {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("answered with {0}")]
    Answered(StatusCode),
}

/// Performs the handshake. With `origins`, web pages of other origins are refused.
pub(super) async fn accept(
    mut socket: Socket,
    origins: &[String],
    config: WebSocketConfig,
    mut counter: FrameCounter,
) -> Result<WebSocketStream<Counted>, (Option<Socket>, NoUpgrade)> {
    let mut unread = BytesMut::new();
    let request = match read(&mut socket, &mut unread).await {
        Ok(request) => request.and_then(|request| judge(&request, origins)),
        Err(error) => return Err((None, error.into())),
    };
    let (answer, refused) = match request {
        Ok(response) => (response.map(|()| String::new()), None),
        Err(UpgradeError(status, why)) => (refusal(status, why), Some(status)),
    };
    let mut text = Vec::new();
    if let Err(error) = write_response(&mut text, &answer) {
        return Err((None, io::Error::other(error).into()));
    }
    text.extend_from_slice(answer.body().as_bytes());
    let written = async {
        socket.write_all(&text).await?;
        socket.flush().await
    };
    match (written.await, refused) {
        (Err(error), _) => Err((None, error.into())),
        (Ok(()), Some(status)) => Err((Some(socket), NoUpgrade::Answered(status))),
        (Ok(()), None) => {
            if let Err(error) = counter.count(&unread) {
                return Err((None, io::Error::from(error).into()));
            }
            let (socket, unread) = (Counted::new(socket, counter), unread.to_vec());
            let server = Role::Server;
            Ok(WebSocketStream::from_partially_read(socket, unread, server, Some(config)).await)
        }
    }
}

/// The answer to a refused request: status and text.
struct UpgradeError(StatusCode, &'static str);

/// Reads a request's head; the bytes after it stay in `unread`.
async fn read(
    socket: &mut Socket,
    unread: &mut BytesMut,
) -> io::Result<Result<Request<()>, UpgradeError>> {
    loop {
        unread.reserve(1_024);
        if socket.read_buf(unread).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match parse(unread) {
            Ok(None) if unread.len() < HEAD_MAX => {}
            Ok(None) => {
                let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                return Ok(Err(UpgradeError(status, "the head of the request is too long")));
            }
            Ok(Some((len, request))) => {
                bytes::Buf::advance(unread, len);
                return Ok(Ok(request));
            }
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
}

/// The request and the length of its head, once the head is complete.
fn parse(text: &[u8]) -> Result<Option<(usize, Request<()>)>, UpgradeError> {
    const BAD: UpgradeError =
        UpgradeError(StatusCode::BAD_REQUEST, "this is not an HTTP/1.1 request");
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let len = match parsed.parse(text) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return Err(UpgradeError(status, "the request has too many headers"));
        }
        Err(_) => return Err(BAD),
    };
    let version = if parsed.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    let mut request = Request::builder()
        .method(parsed.method.unwrap_or_default())
        .uri(parsed.path.unwrap_or_default())
        .version(version);
    for header in parsed.headers.iter() {
        request = request.header(header.name, header.value);
    }
    request.body(()).map(|request| Some((len, request))).map_err(|_| BAD)
}

fn judge(request: &Request<()>, origins: &[String]) -> Result<Response<()>, UpgradeError> {
    let headers = request.headers();
    let upgrades = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"websocket");
    let is_websocket = headers.get(header::UPGRADE).is_some_and(upgrades);
    let version = headers.get(header::SEC_WEBSOCKET_VERSION);
    let speaks = version.is_none_or(|version| version == "13");
    if request.method() != Method::GET || !is_websocket || !speaks {
        let why = "this port expects WebSocket, version 13: connect with a Purview client";
        return Err(UpgradeError(StatusCode::UPGRADE_REQUIRED, why));
    }
    let is_allowed = |origin: &HeaderValue| {
        origins.iter().any(|allowed| origin.as_bytes().eq_ignore_ascii_case(allowed.as_bytes()))
    };
    // Programs other than browsers send no origin, and could send any.
    if !origins.is_empty() && !headers.get_all(header::ORIGIN).iter().all(is_allowed) {
        let why = "web pages of this origin may not connect (gateway.origins)";
        return Err(UpgradeError(StatusCode::FORBIDDEN, why));
    }
    create_response(request).map_err(|_| {
        UpgradeError(StatusCode::BAD_REQUEST, "this is not a valid WebSocket handshake")
    })
}

fn refusal(status: StatusCode, why: &str) -> Response<String> {
    let mut response = Response::new(format!("{why}\n"));
    *response.status_mut() = status;
    let length = HeaderValue::from(response.body().len());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CONTENT_LENGTH, length);
    let mut connection = "close";
    if status == StatusCode::UPGRADE_REQUIRED {
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        connection = "Upgrade, close";
    }
    headers.insert(header::CONNECTION, HeaderValue::from_static(connection));
    response
}
