//! Counts the WebSocket frames of a client as they arrive. A message may have any number of frames,
//! empty ones among them, and the library tells of messages only: without this a client keeps a core
//! busy with frames that belong to no message.
//!
//! The last frame of a message is the session's to count. A client may send twice as many others as messages: some
//! clients send a message in two frames, and there are pings. As a frame has at most the bytes of a message, this
//! bounds bytes, too.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use purview::clock;
use purview::scene::player::RateLimit;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::socket::Socket;

const FRAMES_PER_MESSAGE: u32 = 2;

/// Longest head of a frame, in bytes: two, eight of length, four of mask.
const HEAD_MAX: usize = 14;

/// A client sent more frames than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("far more WebSocket frames than messages are allowed")]
pub(super) struct TooManyFrames;

impl TooManyFrames {
    /// Whether this is why a read failed.
    pub(super) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|error| error.is::<TooManyFrames>())
    }
}

impl From<TooManyFrames> for io::Error {
    fn from(why: TooManyFrames) -> io::Error {
        io::Error::other(why)
    }
}

/// Finds the frames in a stream of bytes and counts them. What is no frame is left to the library,
/// which ends the connection.
#[derive(Debug)]
pub(super) struct FrameCounter {
    limit: RateLimit,
    began: Instant,
    head: [u8; HEAD_MAX],
    /// How many bytes of the head are there.
    len: usize,
    /// Bytes of the frame that are still to come.
    rest: u64,
}

impl FrameCounter {
    /// For a client that may send so many messages per second, and in a burst.
    pub(super) fn new(rate_limit: u32, burst: u32) -> FrameCounter {
        let frames = |messages: u32| messages.saturating_mul(FRAMES_PER_MESSAGE);
        let limit = RateLimit::new(0, frames(rate_limit), frames(burst));
        FrameCounter { limit, began: clock::now(), head: [0; HEAD_MAX], len: 0, rest: 0 }
    }

    /// Counts the frames that begin in these bytes, which follow those before.
    pub(super) fn count(&mut self, mut bytes: &[u8]) -> Result<(), TooManyFrames> {
        while let Some((first, rest)) = bytes.split_first() {
            if self.rest > 0 {
                let skipped = usize::try_from(self.rest).unwrap_or(usize::MAX).min(bytes.len());
                self.rest -= skipped as u64;
                bytes = &bytes[skipped..];
                continue;
            }
            self.head[self.len] = *first;
            self.len += 1;
            bytes = rest;
            if let Some(payload) = self.payload() {
                (self.len, self.rest) = (0, payload);
                let now_ms = self.began.elapsed().as_millis() as u64;
                if !self.ends_message() && !self.limit.take(now_ms) {
                    return Err(TooManyFrames);
                }
            }
        }
        Ok(())
    }

    /// Whether the frame is the last one of a message: it has the bit FIN, and is no control frame.
    fn ends_message(&self) -> bool {
        self.head[0] & 0x80 != 0 && self.head[0] & 0x08 == 0
    }

    /// The bytes after the head, once the head is complete.
    fn payload(&self) -> Option<u64> {
        let (short, is_masked) = (self.head[1] & 0x7f, self.head[1] & 0x80 != 0);
        let of_length = match short {
            127 => 8,
            126 => 2,
            _ => 0,
        };
        let head = 2 + of_length + if is_masked { 4 } else { 0 };
        if self.len < 2 || self.len < head {
            return None;
        }
        let long = self.head[2..2 + of_length].iter();
        let long = long.fold(0, |length, byte| length << 8 | u64::from(*byte));
        Some(if of_length == 0 { short.into() } else { long })
    }
}

#[derive(Debug)]
pub(super) struct Counted {
    socket: Socket,
    counter: FrameCounter,
}

impl Counted {
    pub(super) fn new(socket: Socket, counter: FrameCounter) -> Counted {
        Counted { socket, counter }
    }

    pub(super) fn into_inner(self) -> Socket {
        self.socket
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Counted { socket, counter } = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(socket).poll_read(cx, buf))?;
        let new = buf.filled().get(before..).unwrap_or_default();
        Poll::Ready(counter.count(new).map_err(io::Error::from))
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with a mask of zeros.
    fn frame(head: u8, payload: usize) -> Vec<u8> {
        let mut bytes = vec![head];
        match payload {
            0..126 => bytes.push(0x80 | payload as u8),
            126..65_536 => {
                bytes.push(0x80 | 126);
                bytes.extend((payload as u16).to_be_bytes());
            }
            _ => {
                bytes.push(0x80 | 127);
                bytes.extend((payload as u64).to_be_bytes());
            }
        }
        bytes.resize(bytes.len() + 4 + payload, 0);
        bytes
    }

    /// How many of these bytes are taken before there are too many frames.
    fn taken(bytes: &[u8], cut: usize) -> usize {
        let mut counter = FrameCounter::new(1, 5);
        bytes.chunks(cut).take_while(|part| counter.count(part).is_ok()).count() * cut
    }

    #[test]
    fn frames_of_any_length_count_once_however_they_are_cut() {
        let ten: Vec<u8> = [0, 1, 125, 126, 4_000, 65_536, 0, 0, 7, 0]
            .into_iter()
            .flat_map(|payload| frame(0x02, payload))
            .collect();
        let eleven = [&ten[..], &frame(0x00, 0)].concat();
        let messages = frame(0x82, 7).repeat(50);
        for cut in [1, 2, 3, 7, 1_000] {
            let whole = ten.len().next_multiple_of(cut);
            assert_eq!(taken(&ten, cut), whole, "{cut}");
            assert!(taken(&eleven, cut) < eleven.len(), "{cut}");
            assert!(taken(&messages, cut) >= messages.len(), "messages are the session's: {cut}");
        }
    }

    #[test]
    fn a_frame_that_announces_more_than_can_be_is_not_followed_by_another() {
        let mut counter = FrameCounter::new(1, 1);
        let mut bytes = vec![0x82, 0xff];
        bytes.extend(u64::MAX.to_be_bytes());
        bytes.resize(100_000, 0);
        assert_eq!(counter.count(&bytes), Ok(()));
    }
}
