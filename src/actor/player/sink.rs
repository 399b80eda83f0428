//! The way of messages from a session to its client's connection: written at once where the socket takes them,
//! else by a bounded queue.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use futures::channel::oneshot;
use futures::future::{FutureExt, Shared};
use futures::stream::Stream;

use crate::wire::CloseCode;

/// What a connection is to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientOut {
    /// Write a message.
    Message(Bytes),
    /// Write what was written at once, and only in part.
    Rest,
    /// Write the last message and end the connection. Nothing comes after it.
    Close(CloseCode, String),
}

/// The client's queue is full; the message was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client's queue is full or its connection is gone")]
pub struct QueueFull;

/// How far a message was written at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenNow {
    /// The socket took all of it.
    Whole,
    /// The connection has buffered what the socket does not take yet.
    Partly,
    /// The connection is broken.
    Broken,
}

/// Writes to a connection from the thread that serves it, without waiting.
pub trait WriteNow {
    /// Writes a message, or as much of it as the socket takes.
    fn write_now(&self, message: Bytes) -> WrittenNow;
}

/// Between the two ends.
#[derive(Debug)]
struct SendQueue {
    messages: VecDeque<Bytes>,
    capacity: usize,
    /// Nothing more is queued.
    ended: bool,
    /// The connection's end is gone, or broken.
    unread: bool,
    /// The connection is writing: messages wait for their turn.
    is_writing: bool,
    /// The connection has buffered a part of a message that was written at once.
    has_rest: bool,
    reader: Option<Waker>,
}

impl SendQueue {
    fn wake(&self) {
        if let Some(reader) = &self.reader {
            reader.wake_by_ref();
        }
    }
}

/// The two ends share it.
#[derive(Debug, Clone)]
struct Line(Arc<Mutex<SendQueue>>);

impl Line {
    fn lock(&self) -> MutexGuard<'_, SendQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session's end of the queue.
#[derive(Debug)]
pub struct ClientSink {
    line: Line,
    close: Option<oneshot::Sender<(CloseCode, String)>>,
}

/// The connection's end of the queue: a stream that ends after [`ClientOut::Close`], or without one
/// when the session is no more or the connection is broken. Its reader asks for more only when all that it got
/// before is written.
#[derive(Debug)]
pub struct ClientQueue {
    line: Line,
    close: Shared<oneshot::Receiver<(CloseCode, String)>>,
    closed: bool,
}

impl ClientSink {
    /// A queue in which `capacity` messages may wait, at least one, and one more: the close.
    pub fn channel(capacity: usize) -> (ClientSink, ClientQueue) {
        let line = Line(Arc::new(Mutex::new(SendQueue {
            messages: VecDeque::new(),
            capacity: capacity.max(1),
            ended: false,
            unread: false,
            is_writing: false,
            has_rest: false,
            reader: None,
        })));
        let (close, closing) = oneshot::channel();
        let sink = ClientSink { line: line.clone(), close: Some(close) };
        (sink, ClientQueue { line, close: closing.shared(), closed: false })
    }

    /// Messages that wait.
    pub fn queued(&self) -> usize {
        self.line.lock().messages.len()
    }

    /// Writes a message by `writer` if none waits before it, else queues it.
    ///
    /// # Errors
    /// When the queue is full, closed or its connection gone; the message is dropped.
    pub fn send(&mut self, message: Bytes, writer: Option<&dyn WriteNow>) -> Result<(), QueueFull> {
        let mut line = self.line.lock();
        if line.ended || line.unread || line.messages.len() >= line.capacity {
            return Err(QueueFull);
        }
        match writer.filter(|_| !line.is_writing && line.messages.is_empty()) {
            None => line.messages.push_back(message),
            Some(writer) => match writer.write_now(message) {
                WrittenNow::Whole => return Ok(()),
                WrittenNow::Partly => (line.is_writing, line.has_rest) = (true, true),
                WrittenNow::Broken => line.unread = true,
            },
        }
        line.wake();
        Ok(())
    }

    /// Closes the queue; the connection writes what waits and then this. Only the first call counts.
    pub fn close(&mut self, code: CloseCode, why: String) {
        self.end();
        if let Some(close) = self.close.take()
            && close.send((code, why)).is_err()
        {
            tracing::debug!(%code, "closed a session whose connection was gone");
        }
    }

    fn end(&self) {
        let mut line = self.line.lock();
        line.ended = true;
        line.wake();
    }
}

impl Drop for ClientSink {
    fn drop(&mut self) {
        self.end();
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
        self.line.lock().messages.pop_front()
    }
}

impl Drop for ClientQueue {
    fn drop(&mut self) {
        let mut line = self.line.lock();
        line.unread = true;
        line.messages.clear();
    }
}

impl Stream for ClientQueue {
    type Item = ClientOut;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ClientOut>> {
        if self.closed {
            return Poll::Ready(None);
        }
        let mut line = self.line.lock();
        if line.unread {
            return Poll::Ready(None);
        }
        if std::mem::take(&mut line.has_rest) {
            return Poll::Ready(Some(ClientOut::Rest));
        }
        if let Some(message) = line.messages.pop_front() {
            line.is_writing = true;
            return Poll::Ready(Some(ClientOut::Message(message)));
        }
        line.is_writing = false;
        if !line.ended {
            match &mut line.reader {
                Some(reader) => reader.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        }
        drop(line);
        let close = ready!(self.close.poll_unpin(cx));
        self.closed = true;
        Poll::Ready(close.ok().map(|(code, why)| ClientOut::Close(code, why)))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use futures::StreamExt;
    use futures::executor::block_on;

    use super::*;

    #[test]
    fn a_full_queue_takes_no_more_but_can_still_close() {
        let (mut sink, queue) = ClientSink::channel(2);
        assert_eq!(sink.send(Bytes::from_static(b"a"), None), Ok(()));
        assert_eq!(sink.send(Bytes::from_static(b"b"), None), Ok(()));
        assert_eq!(sink.send(Bytes::from_static(b"c"), None), Err(QueueFull));
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
    fn a_session_that_has_ended_ends_the_queue_without_a_close() {
        let (mut sink, mut queue) = ClientSink::channel(4);
        assert_eq!(sink.send(Bytes::from_static(b"a"), None), Ok(()));
        assert_eq!(queue.take_ready(), Some(Bytes::from_static(b"a")));
        assert_eq!(queue.take_ready(), None);
        drop(sink);
        assert_eq!(block_on(queue.next()), None);
    }

    /// A socket that takes so many messages, and then a part of each.
    struct Socket {
        takes: Cell<usize>,
        taken: RefCell<Vec<Bytes>>,
    }

    impl WriteNow for Socket {
        fn write_now(&self, message: Bytes) -> WrittenNow {
            self.taken.borrow_mut().push(message);
            match self.takes.get() {
                0 => WrittenNow::Partly,
                more => {
                    self.takes.set(more - 1);
                    WrittenNow::Whole
                }
            }
        }
    }

    #[test]
    fn messages_are_written_at_once_until_the_socket_is_full_and_again_when_all_is_written() {
        let socket = Socket { takes: Cell::new(1), taken: RefCell::default() };
        let (mut sink, mut queue) = ClientSink::channel(4);
        let mut send = |text: &'static str| sink.send(Bytes::from(text), Some(&socket));
        let mut next = || queue.next().now_or_never().flatten();
        assert_eq!([send("a"), send("b"), send("c")], [Ok(()); 3]);
        assert_eq!(*socket.taken.borrow(), ["a", "b"]);
        assert_eq!(next(), Some(ClientOut::Rest));
        assert_eq!(send("d"), Ok(()), "b's rest may still be under way");
        assert_eq!(next(), Some(ClientOut::Message(Bytes::from("c"))));
        assert_eq!(next(), Some(ClientOut::Message(Bytes::from("d"))));
        assert_eq!(send("e"), Ok(()), "d is being written");
        assert_eq!(next(), Some(ClientOut::Message(Bytes::from("e"))));
        assert_eq!(next(), None);
        socket.takes.set(1);
        assert_eq!(send("f"), Ok(()));
        assert_eq!(*socket.taken.borrow(), ["a", "b", "f"]);
        assert_eq!(next(), None, "nothing is left of it");
    }

    #[test]
    fn a_connection_that_breaks_at_a_write_ends_its_queue_and_takes_nothing_more() {
        struct Broken;
        impl WriteNow for Broken {
            fn write_now(&self, _: Bytes) -> WrittenNow {
                WrittenNow::Broken
            }
        }
        let (mut sink, mut queue) = ClientSink::channel(4);
        assert_eq!(sink.send(Bytes::from_static(b"a"), Some(&Broken)), Ok(()));
        assert_eq!(queue.next().now_or_never(), Some(None));
        assert_eq!(sink.send(Bytes::from_static(b"b"), None), Err(QueueFull));
    }
}
