//! How fast an entity may move: its own top speed, and temporary grants of a higher one.
//!
//! [`Mover`](super::Mover) asks it for the speed limit of each command and charges what was walked.
//! A grant must never allow more walking than it names, and a revoked speed must never refuse a
//! client that cannot know of the revocation yet.
//!
//! The client learns of a change later than the server makes it. A burst therefore starts late, and
//! a revoked speed stays in use until the client learns of it. So a grant is measured in
//! milliseconds of walking and not by a clock. A burst is a number of milliseconds of walking at
//! its speed, whenever they start. A revoked speed ends one allowance of walking after the client's
//! next command: the acknowledgement of that command follows the revocation, and without it the
//! leash would have stopped the client.

use serde::{Deserialize, Serialize};

use super::{Reason, ServerMs};

/// Most grants that an entity holds at a time.
pub const MAX_GRANTS: usize = 4;

/// How long an unused grant is kept after its end, milliseconds: longer than a message and its
/// answer take before a silent session is closed.
const LATE_MS: u64 = 30_000;

/// End of a grant that the present walk uses.
const IN_USE: ServerMs = ServerMs(u64::MAX);

/// Identifies a grant of one entity.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct GrantId(pub u32);

/// A grant as its client is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The grant's id.
    pub id: GrantId,
    /// The speed, centimetres per second.
    pub speed_cm_s: u32,
    /// Milliseconds of walking left; `None`: until the grant is revoked.
    pub left_ms: Option<u32>,
}

/// The entity already holds [`MAX_GRANTS`] grants. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an entity has at most {MAX_GRANTS} grants of speed at a time; revoke one first")]
pub struct TooManyGrants;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct SpeedGrant {
    id: GrantId,
    speed_cm_s: u32,
    /// Milliseconds of walking left; `None`: unlimited.
    left_ms: Option<u32>,
    /// When the grant is dropped; `None` while it is not revoked and has no limit.
    ends: Option<ServerMs>,
    /// The grant is revoked: a client that knows of it no longer uses it.
    taken: bool,
}

impl SpeedGrant {
    fn usable_ms(&self, now: ServerMs) -> u32 {
        match self.ends {
            Some(end) if end < now => 0,
            _ => self.left_ms.unwrap_or(u32::MAX),
        }
    }
}

/// The speed limits of one entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Speeds {
    own_cm_s: u32,
    grants: [Option<SpeedGrant>; MAX_GRANTS],
    last: GrantId,
}

impl Speeds {
    pub fn new(own_cm_s: u32) -> Speeds {
        Speeds { own_cm_s, grants: [None; MAX_GRANTS], last: GrantId(0) }
    }

    /// The entity's own top speed, centimetres per second.
    pub fn own_cm_s(&self) -> u32 {
        self.own_cm_s
    }

    /// Sets the entity's own top speed. A higher old one stays usable until the client knows of it.
    pub fn set_own(&mut self, now: ServerMs, speed_cm_s: u32) {
        let old_cm_s = std::mem::replace(&mut self.own_cm_s, speed_cm_s);
        if old_cm_s > speed_cm_s {
            let ends = Some(now.plus(LATE_MS));
            let (id, taken) = (GrantId(0), true);
            let old = SpeedGrant { id, speed_cm_s: old_cm_s, left_ms: None, ends, taken };
            // The old speed needs a slot; if all are used, the grant with the least walking left
            // goes.
            let left = |g: &SpeedGrant| u64::from(g.usable_ms(now)) + 1;
            let place = self.grants.iter_mut().min_by_key(|g| g.as_ref().map_or(0, left));
            if let Some(place) = place {
                *place = Some(old);
            }
        }
    }

    /// Grants a speed until it is revoked, or for `lasts_ms` of walking.
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

    /// As [`Speeds::grant`], with an id chosen by the caller. A grant with that id is replaced.
    pub fn grant_as(
        &mut self,
        now: ServerMs,
        id: GrantId,
        speed_cm_s: u32,
        lasts_ms: Option<u32>,
    ) -> Result<(), TooManyGrants> {
        self.tidy(now);
        let same = |g: &Option<SpeedGrant>| g.is_some_and(|g| g.id == id && id != GrantId(0));
        let place = match self.grants.iter().position(same) {
            Some(place) => place,
            None => self.grants.iter().position(Option::is_none).ok_or(TooManyGrants)?,
        };
        let ends = lasts_ms.map(|ms| now.plus(u64::from(ms) + LATE_MS));
        self.grants[place] =
            Some(SpeedGrant { id, speed_cm_s, left_ms: lasts_ms, ends, taken: false });
        self.last = self.last.max(id);
        Ok(())
    }

    /// The grants that are not revoked.
    pub fn granted(&self, now: ServerMs) -> [Option<Granted>; MAX_GRANTS] {
        self.grants.map(|g| {
            let g = g.filter(|g| !g.taken && g.usable_ms(now) > 0)?;
            let SpeedGrant { id, speed_cm_s, left_ms, .. } = g;
            Some(Granted { id, speed_cm_s, left_ms })
        })
    }

    /// Revokes a grant; it stays usable until the client knows of it. Returns whether there was
    /// such a grant without an end.
    pub fn revoke(&mut self, now: ServerMs, id: GrantId) -> bool {
        match self.grants.iter_mut().flatten().find(|g| g.id == id && g.ends.is_none()) {
            Some(grant) => (grant.ends, grant.taken) = (Some(now.plus(LATE_MS)), true),
            None => return false,
        }
        true
    }

    /// A client's command arrived: each revoked speed is good for `late_ms` more of walking.
    pub fn command_received(&mut self, now: ServerMs, late_ms: u32) {
        let ending = self.grants.iter_mut().flatten().filter(|g| g.ends.is_some());
        ending.for_each(|g| g.left_ms = g.left_ms.or(Some(late_ms)));
        self.tidy(now);
    }

    /// The client starts to walk at a speed. Grants that the walk needs are kept until the client
    /// changes its movement, however late that command arrives.
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
        let over = |g: &Option<SpeedGrant>| g.is_some_and(|g| g.usable_ms(now) == 0);
        self.grants.iter_mut().filter(|g| over(g)).for_each(|g| *g = None);
    }

    /// The greatest usable speed, centimetres per second.
    pub fn top_cm_s(&self, now: ServerMs) -> u32 {
        let usable = self.grants.iter().flatten().filter(|g| g.usable_ms(now) > 0);
        usable.map(|g| g.speed_cm_s).fold(self.own_cm_s, u32::max)
    }

    /// For how much walking a speed is granted, milliseconds; `u32::MAX`: unlimited.
    pub fn lasts_ms(&self, now: ServerMs, speed_cm_s: u32) -> u32 {
        if speed_cm_s <= self.own_cm_s {
            return u32::MAX;
        }
        let fit = self.grants.iter().flatten().filter(|g| g.speed_cm_s >= speed_cm_s);
        fit.map(|g| g.usable_ms(now)).fold(0, u32::saturating_add)
    }

    /// Charges `ms` milliseconds of walking at a speed: first to the slowest grant that suffices,
    /// then to the next faster one.
    ///
    /// # Errors
    /// [`Reason::Overused`]: the grants do not cover it. What they held is used up.
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
    fn a_burst_is_spent_once_whenever_it_starts() {
        let mut s = Speeds::new(500);
        s.grant(NOW, 2_000, Some(400)).unwrap();
        assert_eq!((s.top_cm_s(NOW), s.lasts_ms(NOW, 2_000)), (2_000, 400));
        assert_eq!(s.lasts_ms(NOW, 500), u32::MAX);
        let late = ServerMs(29_000);
        s.command_received(late, LATE);
        assert_eq!(s.spend(late, 2_000, 300), Ok(()));
        s.command_received(late, LATE);
        let over = Reason::Overused { found_cm_s: 2_000, over_ms: 50 };
        assert_eq!(s.spend(late, 2_000, 150), Err(over));
        s.command_received(late, LATE);
        assert_eq!((s.top_cm_s(late), s.grants), (500, [None; MAX_GRANTS]));
    }

    #[test]
    fn an_unused_burst_expires() {
        let mut s = Speeds::new(500);
        s.grant(NOW, 2_000, Some(400)).unwrap();
        assert_eq!(s.lasts_ms(ServerMs(30_400), 2_000), 400);
        assert_eq!(s.top_cm_s(ServerMs(30_401)), 500);
        s.command_received(ServerMs(30_401), LATE);
        assert_eq!(s.grants, [None; MAX_GRANTS]);
    }

    #[test]
    fn a_burst_in_use_is_kept_until_it_is_charged() {
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
    fn a_revoked_speed_stays_usable_until_the_client_has_heard() {
        let mut s = Speeds::new(500);
        let mount = s.grant(NOW, 900, None).unwrap();
        s.command_received(NOW, LATE);
        assert_eq!(s.spend(NOW, 900, 50_000), Ok(()));
        assert!(s.revoke(NOW, mount) && !s.revoke(NOW, mount) && !s.revoke(NOW, GrantId(77)));
        assert_eq!(s.spend(NOW, 900, 400), Ok(()));
        s.command_received(NOW, LATE);
        assert_eq!(s.spend(NOW, 900, 400), Ok(()));
        assert_eq!(s.lasts_ms(NOW, 900), 600);
        assert!(s.spend(NOW, 900, 601).is_err());
        assert_eq!(s.top_cm_s(NOW), 500);
    }

    #[test]
    fn the_client_is_told_its_usable_grants_and_ids_are_not_reused() {
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
    fn a_lower_own_speed_applies_once_the_client_has_heard() {
        let mut s = Speeds::new(500);
        s.set_own(NOW, 200);
        s.command_received(NOW, LATE);
        assert_eq!((s.top_cm_s(NOW), s.lasts_ms(NOW, 500), s.own_cm_s()), (500, 1_000, 200));
        s.set_own(NOW, 700);
        assert_eq!((s.top_cm_s(NOW), s.lasts_ms(NOW, 500)), (700, u32::MAX));
    }

    #[test]
    fn the_slowest_sufficient_grant_is_charged_first() {
        let mut s = Speeds::new(500);
        s.grant(NOW, 2_000, Some(400)).unwrap();
        s.grant(NOW, 900, Some(100)).unwrap();
        assert_eq!(s.spend(NOW, 800, 300), Ok(()));
        assert_eq!((s.lasts_ms(NOW, 800), s.lasts_ms(NOW, 2_000)), (200, 200));
        assert_eq!(s.spend(NOW, 400, 300), Ok(()));
    }

    #[test]
    fn an_entity_holds_a_bounded_number_of_grants() {
        let mut s = Speeds::new(500);
        for speed in 0..MAX_GRANTS as u32 {
            s.grant(NOW, 600 + speed, Some(10 + speed)).unwrap();
        }
        assert_eq!(s.grant(NOW, 9_999, None), Err(TooManyGrants));
        // The old speed takes the slot of the grant with the least walking left.
        s.set_own(NOW, 100);
        assert_eq!((s.lasts_ms(NOW, 500), s.lasts_ms(NOW, 600)), (u32::MAX, 11 + 12 + 13));
        // Expired grants free their slots.
        assert!(s.grant(ServerMs(60_000), 9_999, None).is_ok());
    }
}
