//! How one watches the store: everything first, then every change in order.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;

use super::Result;
use super::keys::KeyReader;
use super::store::{Follower, StoreEvent};
use super::view::{Change, View};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Everything, at a revision higher than that of any event before: first, and again when the
    /// store no longer knows the changes in between.
    Snapshot(View),
    /// One step from the state before.
    Change(Change),
}

/// A stream that never goes back and never ends by itself. It outlives outages of the store: an
/// error is told once when one begins (or for each unreadable key), and the changes that were
/// missed follow when the store is back.
#[derive(Debug)]
pub struct Watch {
    told: Follower,
    reader: KeyReader,
    /// Events of what was told last that have not been taken.
    ready: VecDeque<Result<Event>>,
}

impl Watch {
    pub(super) fn new(told: Follower, epochs_above: u64) -> Watch {
        Watch { told, reader: KeyReader::new(epochs_above), ready: VecDeque::new() }
    }

    /// The next event. None: the engine was dropped.
    pub async fn next(&mut self) -> Option<Result<Event>> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event>>> {
        while self.ready.is_empty() {
            match ready!(self.told.poll_recv(cx)) {
                Some(told) => self.read(told),
                None => return Poll::Ready(None),
            }
        }
        Poll::Ready(self.ready.pop_front())
    }

    fn read(&mut self, told: Result<StoreEvent>) {
        let (event, errors) = match told {
            Ok(StoreEvent::All(listing)) => {
                let (view, errors) = self.reader.view(listing);
                (Ok(Event::Snapshot(view)), errors)
            }
            Ok(StoreEvent::Step(step)) => {
                let (change, errors) = self.reader.change(step);
                (Ok(Event::Change(change)), errors)
            }
            Err(e) => (Err(e), Vec::new()),
        };
        self.ready.extend(errors.into_iter().map(Err));
        self.ready.push_back(event);
    }
}

impl Stream for Watch {
    type Item = Result<Event>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_event(cx)
    }
}
