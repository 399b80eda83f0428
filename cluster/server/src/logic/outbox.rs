//! Responses that wait for a worker, and those that it has not acknowledged: they are sent again on the next stream.
//!
//! ```text
//!            push                       acknowledge
//!   Open ───────────► Open                 ▲
//!    │ too much waits: all is dropped      │ of `Dropped`
//!    └────────────────► Dropped ───────────┘
//! ```
//!
//! While `Dropped` waits nothing is taken. *Absent on purpose:* streams, locks, time.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use purview::scene::mutants::{self, Mutant};

use super::proto::{Dropped, Response, response};

/// The responses of a session, encoded.
#[derive(Debug)]
pub struct Outbox {
    /// The responses from `first` on.
    kept: VecDeque<Bytes>,
    /// The number of the first response that is kept.
    first: u64,
    /// The number of the first response that is not sent.
    next: u64,
    bytes: usize,
    /// Most bytes that are kept.
    most: usize,
    /// The number of the `Dropped` that waits to be acknowledged.
    dropped: Option<u64>,
}

/// What an acknowledgement has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledged {
    /// Responses are forgotten.
    Kept,
    /// The worker knows that responses were dropped: it takes new ones.
    Reopened,
}

/// The worker acknowledges what it was never sent. Nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("received {received}, but the last response of the session is {last}")]
pub struct NeverSent {
    /// What the worker says.
    pub received: u64,
    /// The number of the last response that was sent.
    pub last: u64,
}

/// A response without its number.
pub fn encode(message: response::Message) -> Bytes {
    Response { sequence: 0, message: Some(message) }.encode_to_vec().into()
}

/// The same with its number. The order of fields does not matter to a reader.
fn number(sequence: u64, response: &[u8]) -> Bytes {
    let mut numbered = BytesMut::with_capacity(response.len() + 11);
    // Field 1, a varint.
    numbered.put_u8(1 << 3);
    prost::encoding::encode_varint(sequence, &mut numbered);
    numbered.put_slice(response);
    numbered.freeze()
}

impl Outbox {
    /// Without responses. `most`: bytes to keep.
    pub fn new(most: usize) -> Outbox {
        Outbox { kept: VecDeque::new(), first: 1, next: 1, bytes: 0, most, dropped: None }
    }

    /// The number of the last response.
    pub fn last(&self) -> u64 {
        self.first + self.kept.len() as u64 - 1
    }

    /// Bytes that wait or are not acknowledged.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing is taken until the worker acknowledges that responses were dropped.
    pub fn is_dropped(&self) -> bool {
        self.dropped.is_some()
    }

    /// Adds a response that [`encode`] made; false: it was dropped, and so was all that waited.
    #[must_use]
    pub fn push(&mut self, response: &[u8]) -> bool {
        if self.dropped.is_some() {
            return false;
        }
        if self.bytes + response.len() > self.most {
            self.drop_all();
            return false;
        }
        self.add(response);
        true
    }

    fn add(&mut self, response: &[u8]) {
        let numbered = number(self.last() + 1, response);
        self.bytes += numbered.len();
        self.kept.push_back(numbered);
    }

    fn drop_all(&mut self) {
        // Numbers of responses that were not sent are used again: the worker has never seen them.
        self.first = self.next;
        self.kept.clear();
        self.bytes = 0;
        if mutants::has(Mutant::DroppedUntold) {
            return;
        }
        self.add(&encode(response::Message::Dropped(Dropped {})));
        self.dropped = Some(self.last());
    }

    /// Whether a response is not sent.
    pub fn has_unsent(&self) -> bool {
        self.next <= self.last()
    }

    /// The first response that is not sent: it counts as sent from now on.
    pub fn take_unsent(&mut self) -> Option<Bytes> {
        let response = self.kept.get((self.next - self.first) as usize)?.clone();
        self.next += 1;
        Some(response)
    }

    /// The worker has handled the responses up to this one.
    ///
    /// # Errors
    /// [`NeverSent`].
    pub fn acknowledge(&mut self, received: u64) -> Result<Acknowledged, NeverSent> {
        if received >= self.next {
            return Err(NeverSent { received, last: self.next - 1 });
        }
        while self.first <= received {
            let Some(response) = self.kept.pop_front() else { break };
            self.bytes -= response.len();
            self.first += 1;
        }
        match self.dropped {
            Some(dropped) if dropped <= received => {
                self.dropped = None;
                Ok(Acknowledged::Reopened)
            }
            _ => Ok(Acknowledged::Kept),
        }
    }

    /// The worker has a new stream, and has handled the responses up to this one.
    ///
    /// # Errors
    /// [`NeverSent`].
    pub fn rewind(&mut self, received: u64) -> Result<Acknowledged, NeverSent> {
        let acknowledged = self.acknowledge(received)?;
        self.next = self.first.max(received + 1).min(self.last() + 1);
        Ok(acknowledged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(n: u64) -> Bytes {
        encode(response::Message::Durable(super::super::proto::Durable { region: 1, tick: n }))
    }

    fn read(bytes: &Bytes) -> (u64, Option<u64>) {
        let response = Response::decode(bytes.clone()).unwrap();
        let tick = match response.message {
            Some(response::Message::Durable(durable)) => Some(durable.tick),
            _ => None,
        };
        (response.sequence, tick)
    }

    fn send(outbox: &mut Outbox) -> Vec<(u64, Option<u64>)> {
        let mut sent = Vec::new();
        while let Some(next) = outbox.take_unsent() {
            sent.push(read(&next));
        }
        sent
    }

    #[test]
    fn responses_are_numbered_and_sent_again_on_a_new_stream() {
        let mut outbox = Outbox::new(1_000);
        (7..10).for_each(|n| assert!(outbox.push(&response(n))));
        assert_eq!(send(&mut outbox), [(1, Some(7)), (2, Some(8)), (3, Some(9))]);
        assert_eq!(outbox.rewind(1), Ok(Acknowledged::Kept));
        assert_eq!(send(&mut outbox), [(2, Some(8)), (3, Some(9))]);
        assert_eq!(outbox.acknowledge(4), Err(NeverSent { received: 4, last: 3 }));
        assert_eq!(outbox.acknowledge(3), Ok(Acknowledged::Kept));
        assert_eq!((outbox.bytes(), outbox.last()), (0, 3));
        // What was acknowledged is never sent again, whatever a new stream says.
        assert_eq!(outbox.rewind(0), Ok(Acknowledged::Kept));
        assert_eq!(send(&mut outbox), []);
    }

    #[test]
    fn a_worker_that_reads_nothing_is_told_that_responses_were_dropped_and_then_takes_new_ones() {
        let mut outbox = Outbox::new(60);
        assert!(outbox.push(&response(1)) && outbox.push(&response(2)));
        assert!(outbox.take_unsent().is_some());
        let mut pushed = 2;
        while outbox.push(&response(9)) {
            pushed += 1;
        }
        assert!(pushed < 20 && outbox.is_dropped() && !outbox.push(&response(10)));
        assert!(outbox.bytes() < 60);
        assert_eq!(send(&mut outbox), [(2, None)], "after the response that was sent");
        assert_eq!(outbox.acknowledge(1), Ok(Acknowledged::Kept));
        assert_eq!(outbox.acknowledge(2), Ok(Acknowledged::Reopened));
        assert!(outbox.push(&response(11)));
        assert_eq!(send(&mut outbox), [(3, Some(11))]);
    }
}
