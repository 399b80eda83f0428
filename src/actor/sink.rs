//! The bounded queue between a session and its client's connection.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::channel::{mpsc, oneshot};
use futures::future::{FutureExt, Shared};
use futures::stream::{Stream, StreamExt};

use crate::wire::CloseCode;

/// What a connection is to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientOut {
    /// Write a message.
    Message(Bytes),
    /// Write the last message and end the connection. Nothing comes after it.
    Close(CloseCode, String),
}

/// The client's queue is full; the message was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client's queue is full or its connection is gone")]
pub struct QueueFull;

/// The session's end of the queue.
#[derive(Debug)]
pub struct ClientSink {
    messages: Option<mpsc::Sender<Bytes>>,
    close: Option<oneshot::Sender<(CloseCode, String)>>,
    queued: Arc<AtomicUsize>,
}

/// The connection's end of the queue: a stream that ends after [`ClientOut::Close`], or without one
/// when the session is no more.
#[derive(Debug)]
pub struct ClientQueue {
    messages: mpsc::Receiver<Bytes>,
    close: Shared<oneshot::Receiver<(CloseCode, String)>>,
    closed: bool,
    queued: Arc<AtomicUsize>,
}

impl ClientSink {
    /// A queue in which `capacity` messages may wait, and one more word: that it closes.
    pub fn channel(capacity: usize) -> (ClientSink, ClientQueue) {
        // The channel has a slot for its sender beside its buffer.
        let (messages, received) = mpsc::channel(capacity.saturating_sub(1));
        let (close, closing) = oneshot::channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let sink = ClientSink {
            messages: Some(messages),
            close: Some(close),
            queued: Arc::clone(&queued),
        };
        let close = closing.shared();
        (sink, ClientQueue { messages: received, close, closed: false, queued })
    }

    /// Messages that wait.
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Queues a message.
    ///
    /// # Errors
    /// When the queue is full, closed or its connection gone; nothing was queued.
    pub fn send(&mut self, message: Bytes) -> Result<(), QueueFull> {
        let messages = self.messages.as_mut().ok_or(QueueFull)?;
        // Counted first, so that the other end never takes away what was not yet added.
        self.queued.fetch_add(1, Ordering::Relaxed);
        messages.try_send(message).map_err(|_| {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            QueueFull
        })
    }

    /// Closes the queue; the connection writes what waits and then this. Only the first call counts.
    pub fn close(&mut self, code: CloseCode, why: String) {
        self.messages = None;
        if let Some(close) = self.close.take()
            && close.send((code, why)).is_err()
        {
            tracing::debug!(%code, "closed a session whose connection was gone");
        }
    }
}

impl ClientQueue {
    /// Resolves as soon as the session closes the queue, whatever still waits in it: with the code,
    /// or with `None` when the session is no more.
    pub fn closing(&self) -> impl Future<Output = Option<CloseCode>> + use<> {
        self.close.clone().map(|close| close.ok().map(|(code, _)| code))
    }

    /// A message that is there without waiting.
    pub fn take_ready(&mut self) -> Option<Bytes> {
        let message = self.messages.try_recv().ok()?;
        self.queued.fetch_sub(1, Ordering::Relaxed);
        Some(message)
    }
}

impl Stream for ClientQueue {
    type Item = ClientOut;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ClientOut>> {
        if self.closed {
            return Poll::Ready(None);
        }
        if let Some(message) = ready!(self.messages.poll_next_unpin(cx)) {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            return Poll::Ready(Some(ClientOut::Message(message)));
        }
        let close = ready!(self.close.poll_unpin(cx));
        self.closed = true;
        Poll::Ready(close.ok().map(|(code, why)| ClientOut::Close(code, why)))
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use futures::executor::block_on;

    use super::*;

    #[test]
    fn a_full_queue_takes_no_more_but_can_still_close() {
        let (mut sink, queue) = ClientSink::channel(2);
        assert_eq!(sink.send(Bytes::from_static(b"a")), Ok(()));
        assert_eq!(sink.send(Bytes::from_static(b"b")), Ok(()));
        assert_eq!(sink.send(Bytes::from_static(b"c")), Err(QueueFull));
        assert_eq!(sink.queued(), 2);
        let closing = queue.closing();
        assert!(closing.now_or_never().is_none());
        let closing = queue.closing();
        sink.close(CloseCode::Slow, "slow".into());
        assert_eq!(block_on(closing), Some(CloseCode::Slow));
        let all: Vec<ClientOut> = block_on(queue.collect());
        assert_eq!(
            all,
            [
                ClientOut::Message(Bytes::from_static(b"a")),
                ClientOut::Message(Bytes::from_static(b"b")),
                ClientOut::Close(CloseCode::Slow, "slow".into()),
            ]
        );
        assert_eq!(sink.queued(), 0);
    }

    #[test]
    fn a_session_that_is_no_more_ends_the_queue_without_a_word() {
        let (mut sink, mut queue) = ClientSink::channel(4);
        assert_eq!(sink.send(Bytes::from_static(b"a")), Ok(()));
        assert_eq!(queue.take_ready(), Some(Bytes::from_static(b"a")));
        assert_eq!(queue.take_ready(), None);
        drop(sink);
        assert_eq!(block_on(queue.next()), None);
    }
}
