//! Ticks in 32 bits. A region keeps one per entity and per view list entry, where a whole [`Tick`]
//! takes too much memory.
//!
//! At 10 ms per tick the count passes 2^31 after 248 days and 2^32 after 497. So stamps are
//! compared as serial numbers ([RFC 1982](https://www.rfc-editor.org/rfc/rfc1982)): the order of
//! two stamps less than 2^31 ticks apart is right even where the numbers wrap. A region must renew
//! older stamps ([`TickStamp::renewed`]) before they are 2^31 ticks old.

use serde::{Deserialize, Serialize};

use super::Tick;

/// The low 32 bits of a tick. Deliberately not `Ord`: [`TickStamp::is_after`] compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TickStamp(u32);

/// The greatest age of a stamp, ticks: a quarter of the range. Older stamps are renewed to this
/// age.
const OLDEST: u32 = 1 << 29;

/// How far ahead of the present tick a received stamp may be: another region may be a few ticks
/// ahead.
const AHEAD: u64 = 1_024;

impl TickStamp {
    /// Ticks after which a region renews its stamps, so that none gets older than 2^31.
    pub const RENEW_TICKS: u64 = 1 << 28;

    /// The stamp of a tick.
    #[inline]
    pub const fn of(tick: Tick) -> TickStamp {
        TickStamp(tick.0 as u32)
    }

    /// The stamp of a received tick, limited to what is plausible at `now`: a tick too far in the
    /// future becomes `now`, and one too old to compare gets the greatest age.
    pub fn received(tick: Tick, now: Tick) -> TickStamp {
        let latest = now.0.saturating_add(AHEAD);
        match tick.0 {
            ahead if ahead > latest => TickStamp::of(now),
            tick => TickStamp::of(Tick(tick.max(now.0.saturating_sub(OLDEST.into())))),
        }
    }

    /// Whether this tick is later than the other, which must be less than 2^31 ticks away.
    #[inline]
    pub const fn is_after(self, other: TickStamp) -> bool {
        (self.0.wrapping_sub(other.0) as i32) > 0
    }

    /// Ticks since an earlier stamp.
    #[inline]
    pub const fn ticks_since(self, earlier: TickStamp) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// The full tick of this stamp: the one closest to `now`.
    pub fn near(self, now: Tick) -> Tick {
        let ahead = self.0.wrapping_sub(now.0 as u32) as i32;
        Tick(now.0.saturating_add_signed(ahead.into()))
    }

    /// The same stamp, or the oldest legal one at `now`.
    #[must_use]
    pub fn renewed(self, now: Tick) -> TickStamp {
        TickStamp::received(self.near(now), now)
    }

    /// A stamp that is as much older as one may be.
    #[must_use]
    pub const fn long_before(self) -> TickStamp {
        TickStamp(self.0.wrapping_sub(OLDEST))
    }

    /// The low bits of the tick, for work that alternates by tick.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn stamps_are_ordered_as_their_ticks_wherever_the_numbers_wrap(
            around in prop::sample::select(vec![0u64, 1 << 31, 1 << 32, 3 << 31, 1 << 33, 1 << 62]),
            at in 0u64..1 << 20,
            apart in 0u64..1 << 31,
        ) {
            let tick = Tick((around + at).saturating_sub(1 << 19));
            let later = Tick(tick.0 + apart);
            let (a, b) = (TickStamp::of(tick), TickStamp::of(later));
            prop_assert_eq!(b.is_after(a), apart > 0);
            prop_assert!(!a.is_after(b));
            prop_assert_eq!(u64::from(b.ticks_since(a)), apart);
            prop_assert_eq!(a.near(later), tick);
            prop_assert_eq!(b.near(tick), later);
        }

        #[test]
        fn a_received_stamp_is_never_far_ahead_nor_too_old_to_compare(
            now in any::<u64>(),
            tick in any::<u64>(),
        ) {
            let stamp = TickStamp::received(Tick(tick), Tick(now));
            let received = stamp.near(Tick(now)).0;
            prop_assert!(received <= now.saturating_add(AHEAD));
            prop_assert!(received >= now.saturating_sub(OLDEST.into()));
            prop_assert_eq!(stamp.renewed(Tick(now)), stamp);
        }
    }

    #[test]
    fn an_old_stamp_is_renewed_and_stays_before_the_present() {
        let begin = Tick(u64::from(u32::MAX) - 5);
        let mut stamp = TickStamp::of(begin);
        for renewals in 1..40 {
            let now = Tick(begin.0 + renewals * TickStamp::RENEW_TICKS);
            stamp = stamp.renewed(now);
            assert!(TickStamp::of(now).is_after(stamp), "{now}");
        }
    }
}
