//! The numbered inputs of a client, from the client's message until a region has acknowledged them.
//!
//! Numbers count up from 1 without gaps. An input is kept until the region that owns the player
//! acknowledges it, so that it can be sent again to the next owner. Nothing is ever sent out of order.

use std::collections::VecDeque;

use crate::scene::Seq;
use crate::scene::messages::Order;
use crate::scene::mutants::{self, Mutant};

/// What became of an input that the client sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputOutcome {
    /// It waits to be sent.
    Yes,
    /// An earlier session of the client sent it, and it was applied: nothing is to be done.
    Known,
    /// The client skipped or repeated a number.
    OutOfOrder {
        /// The number that would be right.
        expected: Seq,
    },
}

/// Inputs that wait to be sent or acknowledged.
#[derive(Debug)]
pub(super) struct Inputs {
    /// The last number that counts as received from the client.
    last: Seq,
    /// Inputs from the first number to before the second were applied for an earlier session of the
    /// client, of which the client was not told when it came back: it sends them again.
    earlier: (Seq, Seq),
    unacknowledged: VecDeque<(Seq, Order)>,
    /// The first input that the present owner was not sent yet.
    next_send: Seq,
    /// When an acknowledgement came last, or the first waiting input.
    progress_ms: u64,
    /// The last input that was acknowledged and may have been an action.
    last_act: Seq,
    /// The client was told up to here which inputs a region had applied that has died.
    unconfirmed_told: Seq,
}

impl Inputs {
    /// No input was received yet.
    pub(super) fn new(now_ms: u64) -> Inputs {
        Inputs {
            last: Seq(0),
            earlier: (Seq(0), Seq(0)),
            unacknowledged: VecDeque::new(),
            next_send: Seq(1),
            progress_ms: now_ms,
            last_act: Seq(0),
            unconfirmed_told: Seq(0),
        }
    }

    /// The number of inputs that wait to be acknowledged.
    pub(super) fn waiting(&self) -> usize {
        self.unacknowledged.len()
    }

    /// Takes an input in.
    pub(super) fn take(&mut self, now_ms: u64, seq: Seq, order: Order) -> InputOutcome {
        let expected = Seq(self.last.0.saturating_add(1));
        if seq == self.earlier.0 && seq < self.earlier.1 {
            self.earlier.0 = seq.next();
            return InputOutcome::Known;
        }
        if seq != expected {
            return InputOutcome::OutOfOrder { expected };
        }
        if self.unacknowledged.is_empty() {
            self.progress_ms = now_ms;
        }
        self.last = seq;
        self.unacknowledged.push_back((seq, order));
        InputOutcome::Yes
    }

    /// Hands out every input that the present owner was not sent yet, in order.
    pub(super) fn send(&mut self, mut tell: impl FnMut(Seq, Order)) {
        let sent = self.unacknowledged.partition_point(|(seq, _)| *seq < self.next_send);
        for (seq, order) in self.unacknowledged.range(sent..) {
            self.next_send = Seq(seq.0.saturating_add(1));
            tell(*seq, order.clone());
        }
    }

    /// All inputs up to this one are acknowledged; `applied` is called for each that waited.
    pub(super) fn acknowledge(
        &mut self,
        now_ms: u64,
        upto: Seq,
        mut applied: impl FnMut(Seq, &Order),
    ) {
        let waiting = self.unacknowledged.len();
        while self.unacknowledged.front().is_some_and(|(seq, _)| *seq <= upto) {
            if let Some((seq, order)) = self.unacknowledged.pop_front() {
                if matches!(order, Order::Act(_)) {
                    self.last_act = seq;
                }
                applied(seq, &order);
            }
        }
        if self.unacknowledged.len() < waiting {
            self.progress_ms = now_ms;
        }
        if self.unacknowledged.is_empty() {
            // A burst's memory is not kept through a long session.
            self.unacknowledged.shrink_to(8);
        }
        self.next_send = self.next_send.max(Seq(upto.0.saturating_add(1)));
        // What a client's earlier session had under way counts, too.
        if upto > self.last {
            self.earlier = (self.last.next(), upto.next());
            self.last = upto;
        }
    }

    /// Another region owns the player, and has applied inputs up to this one: all later ones go there.
    pub(super) fn reroute(&mut self, now_ms: u64, last_applied: Seq) {
        if !mutants::has(Mutant::SaysOnce) {
            self.next_send = Seq(last_applied.0.saturating_add(1));
        }
        self.progress_ms = now_ms;
    }

    /// The client has come back for a player whose last applied input is this one. It knows of this one that it was
    /// applied.
    pub(super) fn resume(&mut self, now_ms: u64, last_applied: Seq, acked: Seq) {
        (self.last, self.next_send) = (last_applied, last_applied.next());
        self.progress_ms = now_ms;
        self.last_act = last_applied;
        // The acknowledgement of a later one would have come after it was told.
        self.unconfirmed_told = Seq(acked.0.saturating_sub(1));
    }

    /// A region has died that had applied the inputs after the first of these numbers and up to the second. Gives the
    /// first and the last one, unless the client was told or none was an action.
    pub(super) fn take_unconfirmed(&mut self, (after, upto): (Seq, Seq)) -> Option<(Seq, Seq)> {
        let is_new = upto > self.unconfirmed_told && self.last_act > after;
        self.unconfirmed_told = self.unconfirmed_told.max(upto);
        is_new.then(|| (after.next(), upto))
    }

    /// A region's mailbox took no input from this one on.
    pub(super) fn undelivered(&mut self, seq: Seq) {
        self.next_send = self.next_send.min(seq);
    }

    /// Sends everything again when nothing was acknowledged for so long.
    pub(super) fn resend_if_stalled(&mut self, now_ms: u64, after_ms: u64) {
        let waits = now_ms.saturating_sub(self.progress_ms) < after_ms;
        if waits || mutants::has(Mutant::SaysOnce) {
            return;
        }
        if let Some((oldest, _)) = self.unacknowledged.front() {
            self.next_send = *oldest;
            self.progress_ms = now_ms;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Pos;

    fn sent(inputs: &mut Inputs) -> Vec<u32> {
        let mut sent = Vec::new();
        inputs.send(|seq, _| sent.push(seq.0));
        sent
    }

    fn take(inputs: &mut Inputs, seq: u32) -> InputOutcome {
        inputs.take(0, Seq(seq), Order::Move(Pos::ground(0, 0)))
    }

    #[test]
    fn inputs_are_taken_in_order() {
        let mut inputs = Inputs::new(0);
        assert_eq!(take(&mut inputs, 2), InputOutcome::OutOfOrder { expected: Seq(1) });
        assert_eq!([1, 2, 3].map(|seq| take(&mut inputs, seq)), [InputOutcome::Yes; 3]);
        assert_eq!(inputs.waiting(), 3);
        assert_eq!(sent(&mut inputs), [1, 2, 3]);
        assert_eq!(sent(&mut inputs), [0_u32; 0], "each goes to an owner once");
    }

    #[test]
    fn a_new_owner_is_sent_what_it_has_not_applied() {
        let mut inputs = Inputs::new(0);
        (1..=3).for_each(|seq| assert_eq!(take(&mut inputs, seq), InputOutcome::Yes));
        sent(&mut inputs);
        let mut applied = Vec::new();
        inputs.acknowledge(5, Seq(1), |seq, _| applied.push(seq.0));
        inputs.reroute(5, Seq(1));
        assert_eq!((applied, sent(&mut inputs)), (vec![1], vec![2, 3]));
        inputs.undelivered(Seq(3));
        assert_eq!(sent(&mut inputs), [3]);
        inputs.resend_if_stalled(1_004, 1_000);
        assert_eq!(sent(&mut inputs), [0_u32; 0]);
        inputs.resend_if_stalled(1_005, 1_000);
        assert_eq!(sent(&mut inputs), [2, 3]);
    }

    #[test]
    fn what_an_earlier_session_had_under_way_is_passed_over_once() {
        let mut inputs = Inputs::new(0);
        inputs.resume(0, Seq(4), Seq(4));
        inputs.acknowledge(0, Seq(6), |_, _| {});
        assert_eq!(
            [5, 6, 7].map(|seq| take(&mut inputs, seq)),
            [InputOutcome::Known, InputOutcome::Known, InputOutcome::Yes]
        );
    }

    #[test]
    fn unconfirmed_inputs_are_told_once_and_again_after_a_resume() {
        let range = (Seq(3), Seq(6));
        let mut inputs = Inputs::new(0);
        assert_eq!(inputs.take_unconfirmed(range), None, "none was an action");
        let mut inputs = Inputs { last_act: Seq(4), ..Inputs::new(0) };
        assert_eq!(inputs.take_unconfirmed(range), Some((Seq(4), Seq(6))));
        assert_eq!(inputs.take_unconfirmed(range), None);
        let resumed = |acked| {
            let mut inputs = Inputs::new(0);
            inputs.resume(0, Seq(8), Seq(acked));
            inputs.take_unconfirmed(range)
        };
        assert_eq!(resumed(6), Some((Seq(4), Seq(6))), "it may have been lost with the gateway");
        assert_eq!(resumed(7), None, "it came before that acknowledgement");
    }
}
