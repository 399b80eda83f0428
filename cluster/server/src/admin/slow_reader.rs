//! The stream of a caller that must read what it asked for: a caller that does not is disconnected.
//! `serve` uses it below TLS and HTTP.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// How long a caller may read nothing while there is something to read.
pub const STALL_LIMIT: Duration = Duration::from_secs(5);

/// How long a caller may take for everything that waits for it.
const DRAIN_LIMIT: Duration = Duration::from_secs(60);

type Timer = Option<Pin<Box<Sleep>>>;

/// A stream with time limits for writing.
#[derive(Debug)]
pub struct Hurried {
    stream: TcpStream,
    /// Since the last byte that could be written; none while nothing waits.
    stalled: Timer,
    /// Since something began to wait; none when everything is written.
    drained: Timer,
}

impl Hurried {
    pub fn new(stream: TcpStream) -> Hurried {
        Hurried { stream, stalled: None, drained: None }
    }

    /// The caller's buffers are full.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let mut is_over = |timer: &mut Timer, limit| {
            let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
            timer.as_mut().poll(cx).is_ready()
        };
        let stalled = is_over(&mut self.stalled, STALL_LIMIT);
        if is_over(&mut self.drained, DRAIN_LIMIT) || stalled {
            let error = io::Error::new(io::ErrorKind::TimedOut, "the caller reads too slowly");
            return Poll::Ready(error);
        }
        Poll::Pending
    }

    fn written(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_pending() {
            return self.wait(cx).map(Err);
        }
        self.stalled = None;
        written
    }
}

impl AsyncRead for Hurried {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Hurried {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.written(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // HTTP and TLS flush when they have written everything that they had.
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.drained = None;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
