//! Messages over WebSocket, or over TCP with a length before each (`u32`, big-endian).
//! [`crate::Client`] opens connections here; a length from the server must not exceed
//! [`MAX_SERVER_FRAME`].

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::stream::{BoxStream, SplitSink, SplitStream};
use futures::{Sink, SinkExt, StreamExt};
use purview::wire::{CloseCode, DecodeError, MAX_SERVER_FRAME};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_util::either::Either;

use crate::{ClientError, Trust};

/// A connection, plain or encrypted.
type Socket = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// What arrives.
pub(crate) enum Incoming {
    /// The bytes of a message.
    Message(Bytes),
    /// The server has closed the connection, with a code if it gave one.
    Closed { code: Option<CloseCode>, detail: String },
}

/// A sink of messages for a server.
pub type Out = Pin<Box<dyn Sink<Bytes, Error = io::Error> + Send>>;

/// A connection that carries whole messages.
pub struct Messages {
    /// Messages to the server; an error means that the connection is broken.
    pub out: Out,
    /// Messages from the server; `None` means that the connection ended.
    pub come: BoxStream<'static, Bytes>,
}

/// A source of connections other than the machine's network: for tests, simulators, or a game's own
/// transport.
pub trait Network: Send + Sync {
    /// Opens a connection to an address.
    fn open(&self, url: &str) -> BoxFuture<'static, io::Result<Messages>>;

    /// A random number, for pauses.
    fn random(&self) -> u32;
}

pub(crate) enum Reader {
    Messages(BoxStream<'static, Bytes>),
    Ws(SplitStream<WebSocketStream<Socket>>),
    Tcp { half: ReadHalf<Socket>, buf: BytesMut },
}

pub(crate) enum Writer {
    /// `None` after a failure: a sink must not be used after its error.
    Messages(Option<Out>),
    Ws(SplitSink<WebSocketStream<Socket>, Message>),
    Tcp(WriteHalf<Socket>),
}

/// Opens a connection to `ws://host:port/...` or `tcp://host:port`; or to `wss://...` or
/// `tls://...`, whose certificate `trust` must verify.
pub(crate) async fn open(url: &str, trust: &Trust) -> Result<(Writer, Reader), ClientError> {
    let bad = || ClientError::BadUrl { url: url.into() };
    let (scheme, rest) = url.split_once("://").ok_or_else(bad)?;
    let (is_web, is_secure) = match scheme {
        "ws" => (true, false),
        "wss" => (true, true),
        "tcp" => (false, false),
        "tls" => (false, true),
        _ => return Err(bad()),
    };
    let address = rest.split(['/', '?']).next().unwrap_or(rest);
    let (host, _port) = address.rsplit_once(':').ok_or_else(bad)?;
    let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let stream = match is_secure {
        false => Either::Left(connect(address).await?),
        true => {
            let name = ServerName::try_from(name).map_err(|_| bad())?;
            let connector = TlsConnector::from(trust.config()?);
            let stream = connect(address).await?;
            Either::Right(Box::new(connector.connect(name, stream).await?))
        }
    };
    if !is_web {
        let (read, write) = tokio::io::split(stream);
        return Ok((Writer::Tcp(write), Reader::Tcp { half: read, buf: BytesMut::new() }));
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_SERVER_FRAME))
        .max_frame_size(Some(MAX_SERVER_FRAME))
        .read_buffer_size(16 * 1024);
    let (ws, _) = tokio_tungstenite::client_async_with_config(url, stream, Some(config)).await?;
    let (write, read) = ws.split();
    Ok((Writer::Ws(write), Reader::Ws(read)))
}

async fn connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // One small message per input: waiting to fill a segment would only add delay.
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl Writer {
    pub(crate) async fn send(&mut self, message: Vec<u8>) -> Result<(), ClientError> {
        match self {
            Writer::Messages(way) => {
                let out = way.as_mut().ok_or(io::ErrorKind::BrokenPipe).map_err(io::Error::from)?;
                if let Err(error) = out.send(message.into()).await {
                    *way = None;
                    return Err(error.into());
                }
            }
            Writer::Ws(ws) => ws.send(Message::Binary(message.into())).await?,
            Writer::Tcp(tcp) => {
                let mut out = Vec::with_capacity(message.len() + 4);
                out.extend_from_slice(&(message.len() as u32).to_be_bytes());
                out.extend_from_slice(&message);
                tcp.write_all(&out).await?;
            }
        }
        Ok(())
    }

    /// Closes the sending side in order.
    pub(crate) async fn close(&mut self) -> Result<(), ClientError> {
        match self {
            Writer::Messages(way) => {
                if let Some(mut out) = way.take() {
                    out.close().await?;
                }
            }
            Writer::Ws(ws) => ws.close().await?,
            Writer::Tcp(tcp) => tcp.shutdown().await?,
        }
        Ok(())
    }
}

impl Reader {
    /// The next message, or the end.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Incoming, ClientError>> {
        match self {
            Reader::Messages(come) => {
                let message = ready!(come.poll_next_unpin(cx));
                Poll::Ready(Ok(message.map_or_else(ended, Incoming::Message)))
            }
            Reader::Ws(ws) => poll_ws(ws, cx),
            Reader::Tcp { half, buf } => poll_tcp(half, buf, cx),
        }
    }
}

fn ended() -> Incoming {
    Incoming::Closed { code: None, detail: "the connection ended without a reason given".into() }
}

fn poll_ws(
    ws: &mut SplitStream<WebSocketStream<Socket>>,
    cx: &mut Context<'_>,
) -> Poll<Result<Incoming, ClientError>> {
    loop {
        return Poll::Ready(match ready!(ws.poll_next_unpin(cx)) {
            None => Ok(ended()),
            Some(Err(e)) => Err(e.into()),
            Some(Ok(Message::Binary(bytes))) => Ok(Incoming::Message(bytes)),
            Some(Ok(Message::Close(None))) => Ok(ended()),
            Some(Ok(Message::Close(Some(frame)))) => {
                let number = u16::from(frame.code);
                let code = CloseCode::try_from(number).ok();
                let detail = match code {
                    Some(_) => frame.reason.to_string(),
                    None => format!("close code {number}: {}", frame.reason),
                };
                Ok(Incoming::Closed { code, detail })
            }
            Some(Ok(Message::Text(text))) => Err(ClientError::Unexpected {
                want: "a binary message",
                got: format!("a text of {} bytes", text.len()),
            }),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
        });
    }
}

fn poll_tcp(
    half: &mut ReadHalf<Socket>,
    buf: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<Result<Incoming, ClientError>> {
    loop {
        if let Some(head) = buf.first_chunk::<4>() {
            let len = u32::from_be_bytes(*head) as usize;
            if len > MAX_SERVER_FRAME {
                return Poll::Ready(Err(DecodeError::TooBig { len, max: MAX_SERVER_FRAME }.into()));
            }
            if buf.len() >= 4 + len {
                buf.advance(4);
                return Poll::Ready(Ok(Incoming::Message(buf.split_to(len).freeze())));
            }
            buf.reserve(4 + len - buf.len());
        }
        // Cancel-safe: a read that is dropped loses nothing.
        if ready!(pin!(half.read_buf(buf)).poll(cx))? == 0 {
            return Poll::Ready(match buf.len() {
                0 => Ok(ended()),
                _ => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_failed_connection_is_not_used_again() {
        let refuse =
            |(), _: Bytes| async { Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe)) };
        let mut writer = Writer::Messages(Some(Box::pin(futures::sink::unfold((), refuse))));
        // The sink panics if it is used after its error.
        for _ in 0..3 {
            assert!(writer.send(vec![1]).await.is_err());
        }
        assert!(writer.close().await.is_ok());
    }
}
