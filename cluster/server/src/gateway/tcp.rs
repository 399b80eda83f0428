//! The TCP carrier: each message after its length (`purview::wire::client::framing`).

use bytes::{Bytes, BytesMut};
use purview::wire::client::framing::{self, Framer, FramingError};
use purview::wire::{CloseCode, MAX_CLIENT_FRAME, MAX_SERVER_FRAME};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

use super::connection::{Broken, Inbound, Outbound, SocketEvent};
use super::socket::Socket;

/// Bytes that are collected before they are written.
const WRITE_BUFFER: usize = 16 * 1_024;

pub(super) struct TcpIn {
    socket: ReadHalf<Socket>,
    framer: Framer,
    /// Bytes that were read and not yet framed.
    unread: BytesMut,
}

pub(super) struct TcpOut {
    socket: WriteHalf<Socket>,
    unwritten: Vec<u8>,
}

pub(super) fn split(socket: Socket) -> (TcpIn, TcpOut) {
    let (read, write) = tokio::io::split(socket);
    let framer = Framer::new(MAX_CLIENT_FRAME);
    (
        TcpIn { socket: read, framer, unread: BytesMut::new() },
        TcpOut { socket: write, unwritten: Vec::new() },
    )
}

pub(super) fn socket(inbound: TcpIn, outbound: TcpOut) -> Option<Socket> {
    let is_whole = inbound.socket.is_pair_of(&outbound.socket);
    is_whole.then(|| inbound.socket.unsplit(outbound.socket))
}

impl TcpIn {
    fn cut(&mut self) -> Option<SocketEvent> {
        let mut rest = &self.unread[..];
        let cut = self.framer.next(&mut rest);
        let taken = self.unread.len() - rest.len();
        bytes::Buf::advance(&mut self.unread, taken);
        match cut {
            Ok(message) => message.map(|bytes| SocketEvent::Message(Bytes::from(bytes))),
            Err(FramingError::TooBig { .. }) => Some(SocketEvent::TooBig),
            Err(FramingError::Empty) => Some(SocketEvent::Unframed),
        }
    }
}

impl Inbound for TcpIn {
    async fn receive(&mut self) -> SocketEvent {
        loop {
            if let Some(received) = self.cut() {
                return received;
            }
            // This buffer holds one read only; the framer holds partial messages.
            self.unread.reserve(1_024);
            match self.socket.read_buf(&mut self.unread).await {
                Ok(0) | Err(_) => return SocketEvent::End,
                Ok(_) => {}
            }
        }
    }
}

impl TcpOut {
    fn append(&mut self, message: &[u8]) -> Result<(), Broken> {
        framing::write(message, MAX_SERVER_FRAME, &mut self.unwritten).map_err(|e| {
            purview::log_limited!(error, error = %e, "a message is too large for a frame");
            Broken
        })
    }
}

impl Outbound for TcpOut {
    fn put_now(&mut self, message: Bytes) -> Result<Option<Bytes>, Broken> {
        if self.unwritten.len() + message.len() > WRITE_BUFFER {
            return Ok(Some(message));
        }
        self.append(&message).map(|()| None)
    }

    async fn put(&mut self, message: Bytes) -> Result<(), Broken> {
        if self.unwritten.len() + message.len() > WRITE_BUFFER {
            self.flush().await?;
        }
        self.append(&message)
    }

    async fn flush(&mut self) -> Result<(), Broken> {
        let mut written = self.socket.write_all(&self.unwritten).await;
        if written.is_ok() {
            written = self.socket.flush().await;
        }
        self.unwritten.clear();
        // A large frame must not occupy its memory for the rest of the session.
        self.unwritten.shrink_to(WRITE_BUFFER);
        written.map_err(|_| Broken)
    }

    async fn goodbye(&mut self, _code: CloseCode, _why: &str) -> Result<(), Broken> {
        // TCP has no close frame: the closing message said everything.
        self.flush().await
    }
}
