//! One direction of the messages between two processes, sans IO: numbered, kept until acknowledged,
//! sent again after a lost connection, received once and in order. `dial` drives the sender,
//! `serve` the receiver.

use std::collections::VecDeque;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use purview::scene::mutants::{self, Mutant};

/// Most unacknowledged bytes of one channel: a node's whole traffic for one second. Beyond it
/// senders are told that the channel is full.
pub const CHANNEL_BYTES: usize = 32 << 20;

/// Longest frame with more than one message, in bytes.
pub const FRAME_BYTES: usize = 128 << 10;

/// Bytes before each message of a frame, in addition to the number of the first message.
const LENGTH: usize = 4;

/// Too much is unacknowledged; the message was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {CHANNEL_BYTES} bytes are unacknowledged by a peer")]
pub struct ChannelFull;

/// A frame that [`Sending`] cannot have made, or a frame after a gap. The stream must be closed and
/// reopened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    #[error("a frame ends in the middle of a message")]
    Torn,
    #[error("received message {got}, expected {want}")]
    Gap {
        want: u64,
        /// The first number of the frame.
        got: u64,
    },
}

#[derive(Debug)]
pub struct Sending {
    /// Unacknowledged messages; the first one has the number `first`.
    kept: VecDeque<Bytes>,
    first: u64,
    /// How many of them were sent on the current connection.
    sent: usize,
    bytes: usize,
    limit: usize,
}

impl Default for Sending {
    fn default() -> Self {
        Sending { kept: VecDeque::new(), first: 1, sent: 0, bytes: 0, limit: CHANNEL_BYTES }
    }
}

impl Sending {
    /// A channel with at most `limit` unacknowledged bytes.
    pub fn new(limit: usize) -> Sending {
        Sending { limit, ..Sending::default() }
    }

    /// Whether a message of any length is accepted now. One is always accepted when nothing is
    /// unacknowledged.
    pub fn has_room(&self) -> bool {
        self.bytes < self.limit
    }

    pub fn push(&mut self, message: Bytes) -> Result<(), ChannelFull> {
        if !self.has_room() {
            return Err(ChannelFull);
        }
        self.bytes += message.len() + LENGTH;
        self.kept.push_back(message);
        Ok(())
    }

    /// The next messages not yet sent on this connection, as one frame; `None` if there are none.
    pub fn next_frame(&mut self) -> Option<Bytes> {
        let mut len = 8;
        let mut count = 0;
        for message in self.kept.range(self.sent..) {
            len += LENGTH + message.len();
            if count > 0 && len > FRAME_BYTES {
                len -= LENGTH + message.len();
                break;
            }
            count += 1;
        }
        if count == 0 {
            return None;
        }
        let mut frame = BytesMut::with_capacity(len);
        frame.put_u64(self.first + self.sent as u64);
        for message in self.kept.range(self.sent..self.sent + count) {
            frame.put_u32(message.len() as u32);
            frame.put_slice(message);
        }
        self.sent += count;
        Some(frame.freeze())
    }

    /// Records that the other end has received everything up to `upto`. An old acknowledgement, or
    /// one of a message that was never sent, has no further effect.
    pub fn acknowledged(&mut self, upto: u64) {
        let count = upto.saturating_add(1).saturating_sub(self.first).min(self.sent as u64);
        for _ in 0..count {
            if let Some(message) = self.kept.pop_front() {
                self.bytes -= message.len() + LENGTH;
            }
        }
        self.first += count;
        self.sent -= count as usize;
    }

    /// Starts a new connection, on which the other end expects message `want`: earlier ones are
    /// released, later ones are sent again. Returns the number of messages to send again.
    pub fn reconnected(&mut self, want: u64) -> usize {
        let upto = match () {
            () if mutants::has(Mutant::SentOnce) => self.first + self.sent as u64,
            () if mutants::has(Mutant::ReceivedTwice) => 0,
            () => want,
        };
        self.acknowledged(upto.saturating_sub(1));
        std::mem::take(&mut self.sent)
    }

    pub fn waiting(&self) -> usize {
        self.kept.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Ends the channel because the other end is gone; returns all unacknowledged messages, oldest
    /// first.
    pub fn end(&mut self) -> Vec<Bytes> {
        (self.sent, self.bytes) = (0, 0);
        self.first += self.kept.len() as u64;
        self.kept.drain(..).collect()
    }
}

#[derive(Debug)]
pub struct Receiving {
    want: u64,
}

impl Default for Receiving {
    fn default() -> Self {
        Receiving { want: 1 }
    }
}

impl Receiving {
    /// The number of the next expected message.
    pub fn want(&self) -> u64 {
        self.want
    }

    /// Splits a frame into its messages, without those received before.
    ///
    /// # Errors
    /// [`ChannelError`]; nothing of the frame was accepted.
    pub fn take(&mut self, mut frame: Bytes) -> Result<Messages, ChannelError> {
        if frame.remaining() < 8 {
            return Err(ChannelError::Torn);
        }
        let first = frame.get_u64();
        if first > self.want {
            return Err(ChannelError::Gap { want: self.want, got: first });
        }
        let mut number = first;
        let mut rest = &frame[..];
        while let Some((length, message)) = rest.split_first_chunk::<LENGTH>() {
            rest = message.get(u32::from_be_bytes(*length) as usize..).ok_or(ChannelError::Torn)?;
            number += 1;
        }
        if !rest.is_empty() {
            return Err(ChannelError::Torn);
        }
        let known = if mutants::has(Mutant::ReceivedTwice) { 0 } else { self.want - first };
        self.want = self.want.max(number);
        Ok(Messages { frame, known })
    }
}

/// The messages of a frame in order, without those received before.
#[derive(Debug, PartialEq, Eq)]
pub struct Messages {
    frame: Bytes,
    /// How many messages at the beginning were received before.
    known: u64,
}

impl Iterator for Messages {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        while self.frame.has_remaining() {
            let len = self.frame.get_u32() as usize;
            let message = self.frame.split_to(len);
            match self.known {
                0 => return Some(message),
                _ => self.known -= 1,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Push(u8),
        Send,
        Arrive,
        Acknowledge,
        Cut,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0u8..60).prop_map(Step::Push),
            3 => Just(Step::Send),
            3 => Just(Step::Arrive),
            2 => Just(Step::Acknowledge),
            1 => Just(Step::Cut),
        ];
        prop::collection::vec(step, 1..200)
    }

    proptest! {
        #[test]
        fn every_message_is_received_once_and_in_order_whatever_connections_break(steps in steps()) {
            let (mut sending, mut receiving) = (Sending::new(200), Receiving::default());
            let (mut wire, mut said, mut received) = (VecDeque::new(), Vec::new(), Vec::new());
            let mut number = 0u32;
            for step in steps {
                match step {
                    Step::Push(len) => {
                        number += 1;
                        let mut message = number.to_be_bytes().to_vec();
                        message.resize(4 + usize::from(len), 7);
                        let room = sending.has_room();
                        let taken = sending.push(message.clone().into()).is_ok();
                        prop_assert_eq!(taken, room);
                        if taken {
                            said.push(Bytes::from(message));
                        }
                    }
                    Step::Send => wire.extend(sending.next_frame()),
                    Step::Arrive => {
                        if let Some(frame) = wire.pop_front() {
                            received.extend(receiving.take(frame).unwrap());
                        }
                    }
                    Step::Acknowledge => sending.acknowledged(receiving.want() - 1),
                    Step::Cut => {
                        wire.clear();
                        sending.reconnected(receiving.want());
                    }
                }
                prop_assert!(said.starts_with(&received));
            }
            wire.clear();
            sending.reconnected(receiving.want());
            while let Some(frame) = sending.next_frame() {
                received.extend(receiving.take(frame).unwrap());
            }
            prop_assert_eq!(&received, &said);
            sending.acknowledged(receiving.want() - 1);
            prop_assert_eq!((sending.waiting(), sending.bytes()), (0, 0));
        }
    }

    #[test]
    fn a_malformed_frame_is_refused_as_a_whole() {
        let mut receiving = Receiving::default();
        let frame = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
        assert_eq!(receiving.take(frame(&[0; 7])), Err(ChannelError::Torn));
        let mut torn = vec![0, 0, 0, 0, 0, 0, 0, 1];
        torn.extend([0, 0, 0, 1, b'a', 0, 0, 0, 9, b'b']);
        assert_eq!(receiving.take(frame(&torn)), Err(ChannelError::Torn));
        let mut late = vec![0, 0, 0, 0, 0, 0, 0, 5];
        late.extend([0, 0, 0, 1, b'a']);
        assert_eq!(receiving.take(frame(&late)), Err(ChannelError::Gap { want: 1, got: 5 }));
        assert_eq!(receiving.want(), 1);
    }

    #[test]
    fn an_acknowledgement_beyond_the_sent_messages_releases_only_sent_ones() {
        let mut sending = Sending::default();
        (0..3).for_each(|n| sending.push(vec![n; 9].into()).unwrap());
        assert!(sending.next_frame().is_some());
        sending.push(vec![9; 9].into()).unwrap();
        sending.acknowledged(u64::MAX);
        assert_eq!(sending.waiting(), 1, "what was not sent yet");
    }

    #[test]
    fn long_messages_travel_alone_and_small_ones_together() {
        let mut sending = Sending::default();
        for len in [10, FRAME_BYTES * 2, 20, 30] {
            sending.push(vec![1; len].into()).unwrap();
        }
        let mut receiving = Receiving::default();
        let mut frames = Vec::new();
        while let Some(frame) = sending.next_frame() {
            frames.push(receiving.take(frame).unwrap().count());
        }
        assert_eq!(frames, [1, 1, 2]);
    }

    #[test]
    fn repeated_messages_are_received_only_once() {
        let frame = |first: u64, messages: &[&'static [u8]]| {
            let mut frame = BytesMut::new();
            frame.put_u64(first);
            for message in messages {
                frame.put_u32(message.len() as u32);
                frame.put_slice(message);
            }
            frame.freeze()
        };
        let mut receiving = Receiving::default();
        let mut take = |frame: Bytes| receiving.take(frame).unwrap().collect::<Vec<_>>();
        assert_eq!(take(frame(1, &[b"a", b"bc"])), [&b"a"[..], b"bc"]);
        assert_eq!(take(frame(1, &[b"a", b"bc"])), [&b""[..]; 0]);
        assert_eq!(take(frame(2, &[b"bc", b"", b"d"])), [&b""[..], b"d"]);
        assert_eq!(receiving.want(), 5);
    }
}
