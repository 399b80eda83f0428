//! What clients are told to do together.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use purview::scene::Pos;

/// What clients are told to do together; by themselves they walk about, act, jump, leave and come.
#[derive(Debug, Default)]
pub struct Will {
    /// They stand still, and nobody comes or goes.
    stand: AtomicBool,
    some: Mutex<Orders>,
}

/// What some of them are to do.
#[derive(Debug, Default)]
struct Orders {
    /// Where these are to be, a hot spot.
    meet: Option<(Range<u32>, Pos)>,
    /// These are to leave, and not to come back before they are told to.
    out: Range<u32>,
}

impl Will {
    fn some(&self) -> MutexGuard<'_, Orders> {
        self.some.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All stand still, and nobody comes or goes, or no more.
    pub fn stand(&self, stand: bool) {
        self.stand.store(stand, Relaxed);
    }

    /// Whether all stand still.
    pub fn is_to_stand(&self) -> bool {
        self.stand.load(Relaxed)
    }

    /// These clients are to be in one place; `None`: where they like.
    pub fn meet(&self, who: Option<(Range<u32>, Pos)>) {
        self.some().meet = who;
    }

    /// Where a client is to be with others.
    pub fn meeting(&self, number: u32) -> Option<Pos> {
        let meet = &self.some().meet;
        meet.as_ref().filter(|(who, _)| who.contains(&number)).map(|(_, at)| *at)
    }

    /// These clients are to leave, and to come back all at once when nobody is to be out any more.
    pub fn send_out(&self, who: Range<u32>) {
        self.some().out = who;
    }

    /// Whether a client is to leave, or not to come yet.
    pub fn is_out(&self, number: u32) -> bool {
        self.some().out.contains(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_are_told_to_meet_or_to_leave_are_some() {
        let (will, at) = (Will::default(), Pos::ground(5, 6));
        assert_eq!((will.meeting(0), will.is_out(0)), (None, false));
        will.meet(Some((2..4, at)));
        will.send_out(3..5);
        let meeting = [1, 2, 3, 4].map(|number| will.meeting(number).is_some());
        assert_eq!(meeting, [false, true, true, false]);
        assert_eq!([2, 3, 4, 5].map(|number| will.is_out(number)), [false, true, true, false]);
        will.meet(None);
        will.send_out(0..0);
        assert_eq!((will.meeting(2), will.is_out(4)), (None, false));
    }
}
