//! The WebSocket carrier: each message as one binary frame.

use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use purview::wire::{CloseCode, MAX_CLIENT_FRAME};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::connection::{Broken, Inbound, Outbound, SocketEvent};
use super::frames::{Counted, FrameCounter, TooManyFrames};
use super::socket::Socket;
use super::upgrade::{self, NoUpgrade};

/// Longest reason in a close frame, in bytes (RFC 6455: 125 with the code).
const MAX_REASON: usize = 123;

type Stream = WebSocketStream<Counted>;

pub(super) struct WsIn(SplitStream<Stream>);

pub(super) struct WsOut(SplitSink<Stream, Message>);

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
    let (out, inn) = socket.split();
    Ok((WsIn(inn), WsOut(out)))
}

pub(super) fn socket(inn: WsIn, out: WsOut) -> Option<Socket> {
    out.0.reunite(inn.0).ok().map(|stream| stream.into_inner().into_inner())
}

impl Inbound for WsIn {
    async fn receive(&mut self) -> SocketEvent {
        loop {
            return match self.0.next().await {
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

impl Outbound for WsOut {
    async fn put(&mut self, message: Bytes) -> Result<(), Broken> {
        self.0.feed(Message::Binary(message)).await.map_err(|_| Broken)
    }

    async fn flush(&mut self) -> Result<(), Broken> {
        self.0.flush().await.map_err(|_| Broken)
    }

    async fn goodbye(&mut self, code: CloseCode, why: &str) -> Result<(), Broken> {
        let frame =
            CloseFrame { code: coding::CloseCode::from(u16::from(code)), reason: cut(why).into() };
        self.0.send(Message::Close(Some(frame))).await.map_err(|_| Broken)
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
