//! The WebSocket carrier: each message as one binary frame.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use purview::actor::player::sink::WriteNow;
use purview::wire::{CloseCode, MAX_CLIENT_FRAME};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::connection::{Broken, Buffered, Inbound, Outbound, SharedWriter, SocketEvent};
use super::frames::{Counted, FrameCounter, TooManyFrames};
use super::metrics::GatewayMetrics;
use super::socket::Socket;
use super::upgrade::{self, NoUpgrade};

/// Longest reason in a close frame, in bytes (RFC 6455: 125 with the code).
const MAX_REASON: usize = 123;

type Stream = WebSocketStream<Counted>;

/// Both halves are one task's: each borrows the stream only while it is polled.
pub(super) struct WsIn(Rc<RefCell<Stream>>);

pub(super) struct WsOut(Rc<RefCell<Stream>>);

/// Performs the WebSocket handshake. Frames after it are counted.
pub(super) async fn accept(
    socket: Socket,
    origins: &[String],
    counter: FrameCounter,
) -> Result<(WsIn, WsOut), (Option<Socket>, NoUpgrade)> {
    // The library's default buffers suit a few large streams; here are many small ones.
    let config = WebSocketConfig::default()
        .read_buffer_size(MAX_CLIENT_FRAME)
        .write_buffer_size(16 * 1_024)
        .max_message_size(Some(MAX_CLIENT_FRAME))
        .max_frame_size(Some(MAX_CLIENT_FRAME));
    let socket = upgrade::accept(socket, origins, config, counter).await?;
    let stream = Rc::new(RefCell::new(socket));
    Ok((WsIn(Rc::clone(&stream)), WsOut(stream)))
}

pub(super) fn socket(inn: WsIn, out: WsOut) -> Option<Socket> {
    drop(inn);
    Rc::into_inner(out.0).map(|stream| stream.into_inner().into_inner().into_inner())
}

impl Inbound for WsIn {
    async fn receive(&mut self) -> SocketEvent {
        loop {
            return match poll_fn(|cx| self.0.borrow_mut().poll_next_unpin(cx)).await {
                Some(Ok(Message::Binary(bytes))) => SocketEvent::Message(bytes),
                Some(Ok(Message::Text(_))) => SocketEvent::Unsupported,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => SocketEvent::Alive,
                // The library answers a close frame on the next read and then ends the stream.
                Some(Ok(Message::Close(_) | Message::Frame(_))) => continue,
                Some(Err(Error::Capacity(_))) => SocketEvent::TooBig,
                Some(Err(Error::Utf8(_))) => SocketEvent::Unsupported,
                Some(Err(Error::Io(error))) if TooManyFrames::is(&error) => {
                    SocketEvent::TooManyFrames
                }
                Some(Err(e)) => {
                    tracing::debug!(error = %e, "the connection of a WebSocket client broke");
                    SocketEvent::End
                }
                None => SocketEvent::End,
            };
        }
    }
}

impl Buffered for Stream {
    fn buffer(&mut self, message: Bytes) -> Result<(), Broken> {
        self.start_send_unpin(Message::Binary(message)).map_err(|_| Broken)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        self.poll_flush_unpin(cx).map_err(|_| Broken)
    }
}

impl WsOut {
    /// Adds a frame to the write buffer.
    async fn send(&mut self, message: Message) -> Result<(), Broken> {
        poll_fn(|cx| self.0.borrow_mut().poll_ready_unpin(cx)).await.map_err(|_| Broken)?;
        self.0.borrow_mut().start_send_unpin(message).map_err(|_| Broken)
    }
}

impl Outbound for WsOut {
    async fn put(&mut self, message: Bytes) -> Result<(), Broken> {
        self.send(Message::Binary(message)).await
    }

    async fn flush(&mut self) -> Result<(), Broken> {
        poll_fn(|cx| self.0.borrow_mut().poll_flush(cx)).await
    }

    fn writer(&self, metrics: &Arc<GatewayMetrics>) -> Option<Box<dyn WriteNow>> {
        let (carrier, metrics) = (Rc::downgrade(&self.0), Arc::clone(metrics));
        Some(Box::new(SharedWriter { carrier, metrics }))
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
