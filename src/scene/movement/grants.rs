//! How fast an entity may be: a speed of its own, and grants with an end.
//!
//! Both reach the client later than they were said: a burst begins late, and a speed that is taken away goes
//! on being used until the client has heard. A grant is therefore measured in walking and not by a
//! clock. A burst is so many milliseconds of walking at its speed, whenever they begin. What was taken away
//! ends an allowance of walking after the client's next word: had the answer to that word, which
//! comes after the news, not come by then, the client would stand (its leash).

use serde::{Deserialize, Serialize};

use super::{Reason, ServerMs};

/// Most grants that an entity has at a time.
pub const MAX_GRANTS: usize = 4;

/// How long after its time a grant that was not used up is forgotten, milliseconds: longer than news and
/// their answer take before a silent session is closed.
const LATE_MS: u64 = 30_000;

/// The end of a grant that is in use.
const IN_USE: ServerMs = ServerMs(u64::MAX);

/// Names a grant of an entity.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct GrantId(pub u32);

/// A grant as its client is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// Its name.
    pub id: GrantId,
    /// The speed, centimetres per second.
    pub speed_cm_s: u32,
    /// For how many more milliseconds of walking; `None`: until it is taken back.
    pub left_ms: Option<u32>,
}

/// There are [`MAX_GRANTS`] already. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an entity has at most {MAX_GRANTS} grants of speed at a time; revoke one first")]
pub struct TooManyGrants;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Grant {
    id: GrantId,
    speed_cm_s: u32,
    /// For how much more walking it is good, milliseconds; `None`: for as much as one likes.
    left_ms: Option<u32>,
    /// When it is forgotten; `None` while it was not taken away.
    ends: Option<ServerMs>,
    /// It was taken away: a client that knows uses it no more.
    taken: bool,
}

impl Grant {
    fn usable_ms(&self, now: ServerMs) -> u32 {
        match self.ends {
            Some(end) if end < now => 0,
            _ => self.left_ms.unwrap_or(u32::MAX),
        }
    }
}

/// How fast an entity may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Speeds {
    own_cm_s: u32,
    grants: [Option<Grant>; MAX_GRANTS],
    last: GrantId,
}

impl Speeds {
    pub fn new(own_cm_s: u32) -> Speeds {
        Speeds { own_cm_s, grants: [None; MAX_GRANTS], last: GrantId(0) }
    }

    /// Its own speed, centimetres per second.
    pub fn own_cm_s(&self) -> u32 {
        self.own_cm_s
    }

    /// Another speed of its own. A higher one may still be in use for a while.
    pub fn set_own(&mut self, now: ServerMs, speed_cm_s: u32) {
        let old_cm_s = std::mem::replace(&mut self.own_cm_s, speed_cm_s);
        if old_cm_s > speed_cm_s {
            let ends = Some(now.plus(LATE_MS));
            let (id, taken) = (GrantId(0), true);
            let old = Grant { id, speed_cm_s: old_cm_s, left_ms: None, ends, taken };
            // It needs a place; where there is none, the shortest grant gives way.
            let left = |g: &Grant| u64::from(g.usable_ms(now)) + 1;
            let place = self.grants.iter_mut().min_by_key(|g| g.as_ref().map_or(0, left));
            if let Some(place) = place {
                *place = Some(old);
            }
        }
    }

    /// Grants a speed: until it is revoked, or for `lasts_ms` of walking.
    pub fn grant(
        &mut self,
        now: ServerMs,
        speed_cm_s: u32,
        lasts_ms: Option<u32>,
    ) -> Result<GrantId, TooManyGrants> {
        let id = GrantId(self.last.0.wrapping_add(1).max(1));
        self.grant_as(now, id, speed_cm_s, lasts_ms)?;
        Ok(id)
    }

    /// As [`Speeds::grant`], under a name of the caller's; one of that name is replaced.
    pub fn grant_as(
        &mut self,
        now: ServerMs,
        id: GrantId,
        speed_cm_s: u32,
        lasts_ms: Option<u32>,
    ) -> Result<(), TooManyGrants> {
        self.tidy(now);
        let same = |g: &Option<Grant>| g.is_some_and(|g| g.id == id && id != GrantId(0));
        let place = match self.grants.iter().position(same) {
            Some(place) => place,
            None => self.grants.iter().position(Option::is_none).ok_or(TooManyGrants)?,
        };
        let ends = lasts_ms.map(|ms| now.plus(u64::from(ms) + LATE_MS));
        self.grants[place] = Some(Grant { id, speed_cm_s, left_ms: lasts_ms, ends, taken: false });
        self.last = self.last.max(id);
        Ok(())
    }

    /// The grants that were not taken away.
    pub fn granted(&self, now: ServerMs) -> [Option<Granted>; MAX_GRANTS] {
        self.grants.map(|g| {
            let g = g.filter(|g| !g.taken && g.usable_ms(now) > 0)?;
            let Grant { id, speed_cm_s, left_ms, .. } = g;
            Some(Granted { id, speed_cm_s, left_ms })
        })
    }

    /// Takes a grant back; it may still be in use for a while. Says whether there was one that had no end
    /// yet.
    pub fn revoke(&mut self, now: ServerMs, id: GrantId) -> bool {
        match self.grants.iter_mut().flatten().find(|g| g.id == id && g.ends.is_none()) {
            Some(grant) => (grant.ends, grant.taken) = (Some(now.plus(LATE_MS)), true),
            None => return false,
        }
        true
    }

    /// The client has said a word: what was taken away before it is good for `late_ms` more of walking.
    pub fn heard(&mut self, now: ServerMs, late_ms: u32) {
        let ending = self.grants.iter_mut().flatten().filter(|g| g.ends.is_some());
        ending.for_each(|g| g.left_ms = g.left_ms.or(Some(late_ms)));
        self.tidy(now);
    }

    /// The client begins to walk at a speed: the grants that it needs are not forgotten until it walks
    /// otherwise, however late it says so.
    pub fn begin(&mut self, now: ServerMs, speed_cm_s: u32) {
        let needed = speed_cm_s > self.own_cm_s;
        for grant in self.grants.iter_mut().flatten() {
            match &mut grant.ends {
                Some(end) if needed && grant.speed_cm_s >= speed_cm_s => *end = IN_USE,
                Some(end) if *end == IN_USE => *end = now.plus(LATE_MS),
                _ => {}
            }
        }
    }

    fn tidy(&mut self, now: ServerMs) {
        let over = |g: &Option<Grant>| g.is_some_and(|g| g.usable_ms(now) == 0);
        self.grants.iter_mut().filter(|g| over(g)).for_each(|g| *g = None);
    }

    /// The greatest speed, centimetres per second.
    pub fn top_cm_s(&self, now: ServerMs) -> u32 {
        let usable = self.grants.iter().flatten().filter(|g| g.usable_ms(now) > 0);
        usable.map(|g| g.speed_cm_s).fold(self.own_cm_s, u32::max)
    }

    /// For how much walking a speed is granted, milliseconds; `u32::MAX` for as much as one likes.
    pub fn lasts_ms(&self, now: ServerMs, speed_cm_s: u32) -> u32 {
        if speed_cm_s <= self.own_cm_s {
            return u32::MAX;
        }
        let fit = self.grants.iter().flatten().filter(|g| g.speed_cm_s >= speed_cm_s);
        fit.map(|g| g.usable_ms(now)).fold(0, u32::saturating_add)
    }

    /// Walks at a speed for `ms` milliseconds: at the cost of the least grant that is enough, then of the
    /// next.
    ///
    /// # Errors
    /// [`Reason::Overused`]: there were not enough. What there was is used up.
    pub fn spend(&mut self, now: ServerMs, speed_cm_s: u32, ms: u32) -> Result<(), Reason> {
        if speed_cm_s <= self.own_cm_s {
            return Ok(());
        }
        let mut order = [0, 1, 2, 3];
        order.sort_unstable_by_key(|i: &usize| self.grants[*i].map(|g| (g.speed_cm_s, g.id)));
        let mut over_ms = ms;
        for i in order {
            let Some(grant) = &mut self.grants[i] else { continue };
            if grant.speed_cm_s < speed_cm_s {
                continue;
            }
            let used = grant.usable_ms(now).min(over_ms);
            grant.left_ms = grant.left_ms.map(|left| left.saturating_sub(used));
            over_ms -= used;
        }
        match over_ms {
            0 => Ok(()),
            _ => Err(Reason::Overused { found_cm_s: speed_cm_s, over_ms }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: u32 = 1_000;
    const NOW: ServerMs = ServerMs(0);

    #[test]
    fn a_burst_is_used_up_once_whenever_it_begins() {
        let mut s = Speeds::new(500);
        s.grant(NOW, 2_000, Some(400)).unwrap();
        assert_eq!((s.top_cm_s(NOW), s.lasts_ms(NOW, 2_000)), (2_000, 400));
        assert_eq!(s.lasts_ms(NOW, 500), u32::MAX);
        let late = ServerMs(29_000);
        s.heard(late, LATE);
        assert_eq!(s.spend(late, 2_000, 300), Ok(()));
        s.heard(late, LATE);
        let over = Reason::Overused { found_cm_s: 2_000, over_ms: 50 };
        assert_eq!(s.spend(late, 2_000, 150), Err(over));
        s.heard(late, LATE);
        assert_eq!((s.top_cm_s(late), s.grants), (500, [None; MAX_GRANTS]));
    }

    #[test]
    fn a_burst_is_not_kept_for_later() {
        let mut s = Speeds::new(500);
        s.grant(NOW, 2_000, Some(400)).unwrap();
        assert_eq!(s.lasts_ms(ServerMs(30_400), 2_000), 400);
        assert_eq!(s.top_cm_s(ServerMs(30_401)), 500);
        s.heard(ServerMs(30_401), LATE);
        assert_eq!(s.grants, [None; MAX_GRANTS]);
    }

    #[test]
    fn a_burst_in_use_is_not_forgotten_until_it_is_accounted_for() {
        let mut s = Speeds::new(500);
        s.grant(NOW, 2_000, Some(400)).unwrap();
        s.begin(NOW, 2_000);
        let late = ServerMs(60_000);
        assert_eq!(s.spend(late, 2_000, 300), Ok(()));
        s.begin(late, 500);
        assert_eq!(s.lasts_ms(ServerMs(90_000), 2_000), 100);
        assert_eq!(s.lasts_ms(ServerMs(90_001), 2_000), 0);
    }

    #[test]
    fn what_is_taken_back_is_in_use_until_the_client_has_heard() {
        let mut s = Speeds::new(500);
        let mount = s.grant(NOW, 900, None).unwrap();
        s.heard(NOW, LATE);
        assert_eq!(s.spend(NOW, 900, 50_000), Ok(()));
        assert!(s.revoke(NOW, mount) && !s.revoke(NOW, mount) && !s.revoke(NOW, GrantId(77)));
        assert_eq!(s.spend(NOW, 900, 400), Ok(()));
        s.heard(NOW, LATE);
        assert_eq!(s.spend(NOW, 900, 400), Ok(()));
        assert_eq!(s.lasts_ms(NOW, 900), 600);
        assert!(s.spend(NOW, 900, 601).is_err());
        assert_eq!(s.top_cm_s(NOW), 500);
    }

    #[test]
    fn a_client_is_told_of_what_it_may_use_and_a_name_is_used_once() {
        let mut s = Speeds::new(500);
        let told = |s: &Speeds| -> Vec<Granted> { s.granted(NOW).into_iter().flatten().collect() };
        s.grant_as(NOW, GrantId(7), 900, None).unwrap();
        s.grant_as(NOW, GrantId(7), 800, Some(300)).unwrap();
        let dash = Granted { id: GrantId(7), speed_cm_s: 800, left_ms: Some(300) };
        assert_eq!(told(&s), [dash]);
        let mount = s.grant(NOW, 1_200, None).unwrap();
        assert_eq!((mount, told(&s).len()), (GrantId(8), 2));
        s.revoke(NOW, mount);
        s.set_own(NOW, 100);
        assert_eq!((told(&s), s.top_cm_s(NOW)), (vec![dash], 1_200));
    }

    #[test]
    fn a_lower_speed_of_its_own_counts_from_when_the_client_has_heard() {
        let mut s = Speeds::new(500);
        s.set_own(NOW, 200);
        s.heard(NOW, LATE);
        assert_eq!((s.top_cm_s(NOW), s.lasts_ms(NOW, 500), s.own_cm_s()), (500, 1_000, 200));
        s.set_own(NOW, 700);
        assert_eq!((s.top_cm_s(NOW), s.lasts_ms(NOW, 500)), (700, u32::MAX));
    }

    #[test]
    fn the_least_grant_that_is_enough_is_used_first() {
        let mut s = Speeds::new(500);
        s.grant(NOW, 2_000, Some(400)).unwrap();
        s.grant(NOW, 900, Some(100)).unwrap();
        assert_eq!(s.spend(NOW, 800, 300), Ok(()));
        assert_eq!((s.lasts_ms(NOW, 800), s.lasts_ms(NOW, 2_000)), (200, 200));
        assert_eq!(s.spend(NOW, 400, 300), Ok(()));
    }

    #[test]
    fn grants_are_bounded() {
        let mut s = Speeds::new(500);
        for speed in 0..MAX_GRANTS as u32 {
            s.grant(NOW, 600 + speed, Some(10 + speed)).unwrap();
        }
        assert_eq!(s.grant(NOW, 9_999, None), Err(TooManyGrants));
        // The old speed takes the place of the shortest.
        s.set_own(NOW, 100);
        assert_eq!((s.lasts_ms(NOW, 500), s.lasts_ms(NOW, 600)), (u32::MAX, 11 + 12 + 13));
        // Those that are over make room.
        assert!(s.grant(ServerMs(60_000), 9_999, None).is_ok());
    }
}
