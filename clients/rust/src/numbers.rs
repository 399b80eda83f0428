//! Input numbers without gaps: the number of a refused input is used again, and inputs sent after
//! it are refused with it.

use purview::scene::Seq;

/// The counter of a session's inputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    last: Seq,
    /// Inputs in flight that were sent after a refused one: each causes a refusal of its own.
    void: u32,
}

impl Numbers {
    /// Continues after an input.
    pub(crate) fn after(last: Seq) -> Numbers {
        Numbers { last, void: 0 }
    }

    /// The number of the next input.
    pub(crate) fn next(self) -> Seq {
        self.last.next()
    }

    /// Takes the number for an input that is sent now.
    pub(crate) fn take(&mut self) -> Seq {
        self.last = self.last.next();
        self.last
    }

    /// The session has refused input `seq`, so the next input carries its number again.
    /// `out_of_order`: it was refused because of an earlier one, or because the number was not this
    /// counter's.
    pub(crate) fn refused(&mut self, seq: Seq, out_of_order: bool) {
        if self.void > 0 {
            self.void -= 1;
        } else if seq.0 > 0 && seq <= self.last && !out_of_order {
            self.void = self.last.0 - seq.0;
            self.last = Seq(seq.0 - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_numbered_from_one() {
        let mut n = Numbers::default();
        assert_eq!([n.take(), n.take()], [Seq(1), Seq(2)]);
        assert_eq!(n.next(), Seq(3));
    }

    #[test]
    fn a_refused_number_is_used_again_and_inputs_in_flight_after_it_are_void() {
        let mut n = Numbers::default();
        (0..4).for_each(|_| _ = n.take());
        // The server refuses 2, and therefore 3 and 4, while two new inputs go out in between.
        n.refused(Seq(2), false);
        assert_eq!(n.take(), Seq(2));
        n.refused(Seq(3), true);
        assert_eq!(n.take(), Seq(3));
        n.refused(Seq(4), true);
        assert_eq!(n.next(), Seq(4));
        n.refused(Seq(3), false);
        assert_eq!(n.next(), Seq(3), "a new input can be refused, too");
    }

    #[test]
    fn a_refusal_of_an_input_never_sent_changes_nothing() {
        let mut n = Numbers::default();
        n.take();
        n.refused(Seq(7), false);
        n.refused(Seq(0), false);
        n.refused(Seq(1), true);
        assert_eq!(n.next(), Seq(2));
    }
}
