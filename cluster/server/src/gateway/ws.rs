//! The WebSocket carrier: each message as one binary frame.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures::{Sink, StreamExt};
use purview::wire::{CloseCode, MAX_CLIENT_FRAME};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::connection::{Broken, Inbound, Outbound, SocketEvent};
use super::socket::Socket;
use super::upgrade::{self, NoUpgrade};

/// Longest reason in a close frame, in bytes (RFC 6455: 125 with the code).
const MAX_REASON: usize = 123;

/// Both halves are used by one task, so they need no lock.
type Shared = Rc<RefCell<WebSocketStream<Socket>>>;

pub(super) struct WsIn(Shared);

pub(super) struct WsOut(Shared);

/// Performs the WebSocket handshake.
pub(super) async fn accept(
    socket: Socket,
    origins: &[String],
) -> Result<(WsIn, WsOut), (Option<Socket>, NoUpgrade)> {
    // The library's default buffers suit a few large streams; here are many small ones.
    let config = WebSocketConfig::default()
        .read_buffer_size(MAX_CLIENT_FRAME)
        .write_buffer_size(16 * 1_024)
        .max_message_size(Some(MAX_CLIENT_FRAME))
        .max_frame_size(Some(MAX_CLIENT_FRAME));
    let socket = upgrade::accept(socket, origins, config).await?;
    let socket = Rc::new(RefCell::new(socket));
    Ok((WsIn(Rc::clone(&socket)), WsOut(socket)))
}

/// The socket of both halves.
pub(super) fn socket(inn: WsIn, out: WsOut) -> Option<Socket> {
    drop(inn);
    Rc::try_unwrap(out.0).ok().map(|socket| socket.into_inner().into_inner())
}

impl Inbound for WsIn {
    async fn receive(&mut self) -> SocketEvent {
        loop {
            let received = poll_fn(|cx| self.0.borrow_mut().poll_next_unpin(cx)).await;
            return match received {
                Some(Ok(Message::Binary(bytes))) => SocketEvent::Message(bytes),
                Some(Ok(Message::Text(_))) => SocketEvent::Unsupported,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => SocketEvent::Alive,
                // The library answers a close frame on the next read and then ends the stream.
                Some(Ok(Message::Close(_) | Message::Frame(_))) => continue,
                Some(Err(Error::Capacity(_))) => SocketEvent::TooBig,
                Some(Err(Error::Utf8(_))) => SocketEvent::Unsupported,
                Some(Err(e)) => {
                    tracing::debug!(error = %e, "the connection of a WebSocket client broke");
                    SocketEvent::End
                }
                None => SocketEvent::End,
            };
        }
    }
}

impl WsOut {
    /// Works on the stream as a sink of messages.
    fn poll(
        &self,
        work: impl FnOnce(Pin<&mut WebSocketStream<Socket>>) -> Poll<Result<(), Error>>,
    ) -> Poll<Result<(), Broken>> {
        work(Pin::new(&mut *self.0.borrow_mut())).map_err(|_| Broken)
    }

    fn start(&self, message: Message) -> Result<(), Broken> {
        Pin::new(&mut *self.0.borrow_mut()).start_send(message).map_err(|_| Broken)
    }

    async fn send(&self, message: Message) -> Result<(), Broken> {
        poll_fn(|cx| self.poll(|socket| socket.poll_ready(cx))).await?;
        self.start(message)
    }
}

impl Outbound for WsOut {
    fn put_now(&mut self, message: Bytes) -> Result<Option<Bytes>, Broken> {
        // Who has to wait asks again, with a waker that counts.
        let mut cx = Context::from_waker(Waker::noop());
        match self.poll(|socket| socket.poll_ready(&mut cx)) {
            Poll::Ready(ready) => ready.and_then(|()| self.start(Message::Binary(message)))?,
            Poll::Pending => return Ok(Some(message)),
        }
        Ok(None)
    }

    async fn put(&mut self, message: Bytes) -> Result<(), Broken> {
        self.send(Message::Binary(message)).await
    }

    async fn flush(&mut self) -> Result<(), Broken> {
        poll_fn(|cx| self.poll(|socket| socket.poll_flush(cx))).await
    }

    async fn goodbye(&mut self, code: CloseCode, why: &str) -> Result<(), Broken> {
        let frame =
            CloseFrame { code: coding::CloseCode::from(u16::from(code)), reason: cut(why).into() };
        self.send(Message::Close(Some(frame))).await?;
        self.flush().await
    }
}

/// The longest prefix that fits a close frame.
fn cut(why: &str) -> &str {
    let mut end = why.len().min(MAX_REASON);
    while !why.is_char_boundary(end) {
        end -= 1;
    }
    &why[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_at_a_character_boundary() {
        assert_eq!(cut("slow"), "slow");
        assert_eq!(cut(&"é".repeat(100)), "é".repeat(61));
    }
}
