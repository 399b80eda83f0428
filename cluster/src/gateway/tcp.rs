//! Messages over TCP, each after its length as a big-endian `u32`.

use bytes::{BufMut, Bytes, BytesMut};
use purview::wire::{CloseCode, MAX_CLIENT_FRAME};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::link::{Broken, Heard, Inbound, Outbound};

/// Bytes that are gathered before they are written.
const WRITE_BUFFER: usize = 16 * 1_024;

pub(super) struct TcpIn(BufReader<OwnedReadHalf>);

pub(super) struct TcpOut {
    socket: OwnedWriteHalf,
    unwritten: BytesMut,
}

/// The two halves of a connection.
pub(super) fn split(socket: TcpStream) -> (TcpIn, TcpOut) {
    let (read, socket) = socket.into_split();
    let inbound = TcpIn(BufReader::with_capacity(MAX_CLIENT_FRAME, read));
    (inbound, TcpOut { socket, unwritten: BytesMut::new() })
}

/// The socket below.
pub(super) fn socket(inbound: TcpIn, outbound: TcpOut) -> Option<TcpStream> {
    inbound.0.into_inner().reunite(outbound.socket).ok()
}

impl TcpIn {
    async fn read(&mut self) -> std::io::Result<Heard> {
        let len = self.0.read_u32().await? as usize;
        if len > MAX_CLIENT_FRAME {
            return Ok(Heard::TooBig);
        }
        let mut message = vec![0; len];
        self.0.read_exact(&mut message).await?;
        Ok(Heard::Message(Bytes::from(message)))
    }
}

impl Inbound for TcpIn {
    async fn hear(&mut self) -> Heard {
        self.read().await.unwrap_or(Heard::End)
    }
}

impl Outbound for TcpOut {
    async fn put(&mut self, message: Bytes) -> Result<(), Broken> {
        if self.unwritten.len() + message.len() > WRITE_BUFFER {
            self.flush().await?;
        }
        self.unwritten.put_u32(u32::try_from(message.len()).map_err(|_| Broken)?);
        self.unwritten.extend_from_slice(&message);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Broken> {
        let written = self.socket.write_all(&self.unwritten).await;
        self.unwritten.clear();
        written.map_err(|_| Broken)
    }

    async fn goodbye(&mut self, _code: CloseCode, _why: &str) -> Result<(), Broken> {
        // The closing message has said it all.
        self.flush().await
    }
}
