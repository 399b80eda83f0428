//! The TCP carrier: each message after its length (`purview::wire::client::framing`).

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use purview::actor::player::sink::WriteNow;
use purview::wire::client::framing::{self, Framer, FramingError};
use purview::wire::{CloseCode, MAX_CLIENT_FRAME, MAX_SERVER_FRAME};
use tokio::io::{AsyncReadExt, AsyncWrite, ReadHalf, WriteHalf};

use super::connection::{Broken, Buffered, Inbound, Outbound, SharedWriter, SocketEvent};
use super::metrics::GatewayMetrics;
use super::socket::Socket;

/// Bytes that are collected before they are written.
const WRITE_BUFFER: usize = 16 * 1_024;

pub(super) struct TcpIn {
    socket: ReadHalf<Socket>,
    framer: Framer,
    /// Bytes that were read and not yet framed.
    unread: BytesMut,
}

/// The session writes by it, too.
pub(super) struct TcpOut(Rc<RefCell<TcpWriter>>);

struct TcpWriter {
    socket: WriteHalf<Socket>,
    /// Messages that are not written whole.
    buffer: Vec<u8>,
    /// How many bytes of the buffer are written.
    written: usize,
}

pub(super) fn split(socket: Socket) -> (TcpIn, TcpOut) {
    let (read, write) = tokio::io::split(socket);
    let framer = Framer::new(MAX_CLIENT_FRAME);
    (
        TcpIn { socket: read, framer, unread: BytesMut::new() },
        TcpOut(Rc::new(RefCell::new(TcpWriter { socket: write, buffer: Vec::new(), written: 0 }))),
    )
}

pub(super) fn socket(inbound: TcpIn, outbound: TcpOut) -> Option<Socket> {
    let write = Rc::into_inner(outbound.0)?.into_inner().socket;
    inbound.socket.is_pair_of(&write).then(|| inbound.socket.unsplit(write))
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

impl TcpWriter {
    fn has_room(&self, message: &[u8]) -> bool {
        self.buffer.len() + message.len() <= WRITE_BUFFER
    }
}

impl Buffered for TcpWriter {
    fn buffer(&mut self, message: Bytes) -> Result<(), Broken> {
        framing::write(&message, MAX_SERVER_FRAME, &mut self.buffer).map_err(|e| {
            purview::log_limited!(error, error = %e, "a message is too large for a frame");
            Broken
        })
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        while let Some(rest) = self.buffer.get(self.written..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut self.socket).poll_write(cx, rest)) {
                Ok(0) | Err(_) => return Poll::Ready(Err(Broken)),
                Ok(more) => self.written += more,
            }
        }
        ready!(Pin::new(&mut self.socket).poll_flush(cx)).map_err(|_| Broken)?;
        self.written = 0;
        self.buffer.clear();
        // A large frame must not occupy its memory for the rest of the session.
        self.buffer.shrink_to(WRITE_BUFFER);
        Poll::Ready(Ok(()))
    }
}

impl Outbound for TcpOut {
    fn put_now(&mut self, message: Bytes) -> Result<Option<Bytes>, Broken> {
        let mut writer = self.0.borrow_mut();
        if !writer.has_room(&message) {
            return Ok(Some(message));
        }
        writer.buffer(message).map(|()| None)
    }

    async fn put(&mut self, message: Bytes) -> Result<(), Broken> {
        if !self.0.borrow().has_room(&message) {
            self.flush().await?;
        }
        self.0.borrow_mut().buffer(message)
    }

    async fn flush(&mut self) -> Result<(), Broken> {
        poll_fn(|cx| self.0.borrow_mut().poll_flush(cx)).await
    }

    fn writer(&self, metrics: &Arc<GatewayMetrics>) -> Option<Box<dyn WriteNow>> {
        let (carrier, metrics) = (Rc::downgrade(&self.0), Arc::clone(metrics));
        Some(Box::new(SharedWriter { carrier, metrics }))
    }

    async fn goodbye(&mut self, _code: CloseCode, _why: &str) -> Result<(), Broken> {
        // TCP has no close frame: the closing message said everything.
        self.flush().await
    }
}
