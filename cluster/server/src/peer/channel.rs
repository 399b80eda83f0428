//! One direction of what a process says to another, sans IO: numbered, kept until it is acknowledged,
//! sent again after the connection was lost, taken once and in order.

use std::collections::VecDeque;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use purview::scene::mutants::{self, Mutant};

/// Most bytes that may be under way or wait on one lane. A process that is cut off for a second at a
/// node's whole traffic fits; beyond it senders are told that it is full.
pub const LANE_BYTES: usize = 32 << 20;

/// A frame that carries several messages is not made longer than this, bytes.
pub const FRAME_BYTES: usize = 128 << 10;

/// Bytes before each message of a frame, beside the number before the first.
const LENGTH: usize = 4;

/// Too much is under way; the message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {LANE_BYTES} bytes are under way to a peer")]
pub struct LaneFull;

/// A frame that cannot have been made by [`Sending`], or one of a lane that has lost its place. The
/// stream is to be closed and opened anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    /// It ends within a message.
    #[error("a frame ends within a message")]
    Torn,
    /// What comes before it is missing.
    #[error("message {got} came where {want} was due")]
    Gap {
        /// The number due.
        want: u64,
        /// The first number of the frame.
        got: u64,
    },
}

/// The sender's end.
#[derive(Debug)]
pub struct Sending {
    /// Not acknowledged: the first is number `first`.
    kept: VecDeque<Bytes>,
    first: u64,
    /// How many of these were sent on the present connection.
    sent: usize,
    bytes: usize,
    limit: usize,
}

impl Default for Sending {
    fn default() -> Self {
        Sending { kept: VecDeque::new(), first: 1, sent: 0, bytes: 0, limit: LANE_BYTES }
    }
}

impl Sending {
    /// A lane on which at most `limit` bytes may be under way.
    pub fn new(limit: usize) -> Sending {
        Sending { limit, ..Sending::default() }
    }

    /// Whether a message of any length is taken now. One is always taken when nothing is under way.
    pub fn has_room(&self) -> bool {
        self.bytes < self.limit
    }

    /// Takes a message.
    ///
    /// # Errors
    /// When there is no room.
    pub fn push(&mut self, message: Bytes) -> Result<(), LaneFull> {
        if !self.has_room() {
            return Err(LaneFull);
        }
        self.bytes += message.len() + LENGTH;
        self.kept.push_back(message);
        Ok(())
    }

    /// The next messages that were not sent on this connection, as one frame; `None` when all were.
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

    /// Everything up to number `upto` has been taken by the other end. What is older news or was never
    /// sent changes nothing.
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

    /// A new connection, on which the other end wants message `want` next: what it has is forgotten,
    /// the rest is sent again. How many messages are sent again.
    pub fn reconnected(&mut self, want: u64) -> usize {
        let upto = match () {
            () if mutants::has(Mutant::SentOnce) => self.first + self.sent as u64,
            () if mutants::has(Mutant::TakenTwice) => 0,
            () => want,
        };
        self.acknowledged(upto.saturating_sub(1));
        std::mem::take(&mut self.sent)
    }

    /// Messages that are not acknowledged.
    pub fn waiting(&self) -> usize {
        self.kept.len()
    }

    /// Bytes that are not acknowledged.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Everything that was not acknowledged, oldest first: the other end is no more.
    pub fn end(&mut self) -> Vec<Bytes> {
        (self.sent, self.bytes) = (0, 0);
        self.first += self.kept.len() as u64;
        self.kept.drain(..).collect()
    }
}

/// The receiver's end.
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
    /// The number of the message that is due.
    pub fn want(&self) -> u64 {
        self.want
    }

    /// Cuts a frame into those of its messages that have not been taken before.
    ///
    /// # Errors
    /// [`LaneError`]; nothing of the frame is taken.
    pub fn take(&mut self, mut frame: Bytes) -> Result<Messages, LaneError> {
        if frame.remaining() < 8 {
            return Err(LaneError::Torn);
        }
        let first = frame.get_u64();
        if first > self.want {
            return Err(LaneError::Gap { want: self.want, got: first });
        }
        let mut number = first;
        let mut rest = &frame[..];
        while let Some((length, message)) = rest.split_first_chunk::<LENGTH>() {
            rest = message.get(u32::from_be_bytes(*length) as usize..).ok_or(LaneError::Torn)?;
            number += 1;
        }
        if !rest.is_empty() {
            return Err(LaneError::Torn);
        }
        let known = if mutants::has(Mutant::TakenTwice) { 0 } else { self.want - first };
        self.want = self.want.max(number);
        Ok(Messages { frame, known })
    }
}

/// The messages of a frame, in their order, but for those that were taken before.
#[derive(Debug, PartialEq, Eq)]
pub struct Messages {
    frame: Bytes,
    /// How many of the first ones were.
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

    /// What a run does, drawn at random.
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
        fn everything_is_taken_once_and_in_order_whatever_is_cut(steps in steps()) {
            let (mut sending, mut receiving) = (Sending::new(200), Receiving::default());
            let (mut wire, mut said, mut heard) = (VecDeque::new(), Vec::new(), Vec::new());
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
                            heard.extend(receiving.take(frame).unwrap());
                        }
                    }
                    Step::Acknowledge => sending.acknowledged(receiving.want() - 1),
                    Step::Cut => {
                        wire.clear();
                        sending.reconnected(receiving.want());
                    }
                }
                prop_assert!(said.starts_with(&heard));
            }
            wire.clear();
            sending.reconnected(receiving.want());
            while let Some(frame) = sending.next_frame() {
                heard.extend(receiving.take(frame).unwrap());
            }
            prop_assert_eq!(&heard, &said);
            sending.acknowledged(receiving.want() - 1);
            prop_assert_eq!((sending.waiting(), sending.bytes()), (0, 0));
        }
    }

    #[test]
    fn a_frame_that_is_no_frame_is_refused_and_nothing_of_it_is_taken() {
        let mut receiving = Receiving::default();
        let frame = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
        assert_eq!(receiving.take(frame(&[0; 7])), Err(LaneError::Torn));
        let mut torn = vec![0, 0, 0, 0, 0, 0, 0, 1];
        torn.extend([0, 0, 0, 1, b'a', 0, 0, 0, 9, b'b']);
        assert_eq!(receiving.take(frame(&torn)), Err(LaneError::Torn));
        let mut late = vec![0, 0, 0, 0, 0, 0, 0, 5];
        late.extend([0, 0, 0, 1, b'a']);
        assert_eq!(receiving.take(frame(&late)), Err(LaneError::Gap { want: 1, got: 5 }));
        assert_eq!(receiving.want(), 1);
    }

    #[test]
    fn an_acknowledgement_of_what_was_never_sent_takes_what_was_and_no_more() {
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
    fn of_what_comes_again_only_the_rest_is_taken() {
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
