//! Numbers that grow for as long as a region runs and are kept in few bits: renewed before they can run out.
//!
//! | number | bits | what happens in time |
//! |---|---|---|
//! | a tick that something was done in ([`TickStamp`]) | 32 | every 2^28 ticks what is older than 2^29 becomes 2^29 old |
//! | a player's YES ([`Registers::counter`](crate::scene::views::Registers)) | 32 | near the end the player takes back what it has said and counts from 1 |

use rustc_hash::FxHashSet;

use super::ViewEngine;
use crate::scene::region::entities::EntityStore;
use crate::scene::views::NUMBERS_LEFT;
use crate::scene::{EntityId, Scene, Tick, TickStamp};

impl ViewEngine {
    /// Renews the stamps of what was done long ago, so that they stay comparable. Says whether it did.
    pub fn renew_stamps(&mut self, now: Tick, entities: &mut EntityStore) -> bool {
        if now.0 < self.renewed.0.saturating_add(TickStamp::RENEW_TICKS) {
            return false;
        }
        self.renewed = now;
        entities.renew_stamps(now);
        for viewer in &mut self.viewers {
            viewer.registers.peers_mut().iter_mut().for_each(|p| p.sent = p.sent.renewed(now));
            viewer.seen.iter_mut().for_each(|s| s.sent = s.sent.renewed(now));
            viewer.properties_told = viewer.properties_told.renewed(now);
        }
        true
    }

    /// Players that have nearly used up the numbers of their requests begin anew, with all their
    /// peers: local peers forget the old numbers at once, those of other regions when they receive
    /// NO.
    pub fn renew_numbers(&mut self, entities: &mut EntityStore, scene: &Scene) {
        let used_up = |left: u32| left < NUMBERS_LEFT;
        let ending: FxHashSet<EntityId> = self
            .viewers
            .iter()
            .filter(|v| used_up(u32::MAX - v.registers.counter))
            .map(|v| v.registers.me)
            .collect();
        if ending.is_empty() {
            return;
        }
        for ix in 0..self.viewers.len() {
            if ending.contains(&self.viewers[ix].registers.me) {
                self.begin_anew_where(ix, |_| true);
            }
        }
        self.deliver_local(entities, scene);
        for viewer in &mut self.viewers {
            viewer.registers.forget_numbers_of(|id| ending.contains(&id));
            if ending.contains(&viewer.registers.me) {
                viewer.registers.counter = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::messages::Effect;
    use crate::scene::region::fixtures;
    use crate::scene::{Pos, Region, SceneSpec};

    fn players(count: u64) -> Region {
        let spec = SceneSpec { region_lands_x: 4, region_lands_z: 4, ..SceneSpec::default() };
        let mut region = fixtures::region(spec, 0);
        (1..=count)
            .for_each(|n| fixtures::enter(&mut region, n, Pos::ground(1_000 * n as i32, 500)));
        region
    }

    fn links(region: &Region) -> Vec<usize> {
        region.views.viewers.iter().map(|v| v.registers.links()).collect()
    }

    #[test]
    fn players_whose_numbers_end_begin_anew_and_see_each_other_as_before() {
        let (mut region, mut fx) = (players(4), Vec::new());
        (1..=5).for_each(|tick| region.tick(Tick(tick), &mut fx));
        assert_eq!(links(&region), [3; 4]);
        for viewer in &mut region.views.viewers {
            viewer.registers.counter = u32::MAX - viewer.slot;
        }
        // A player comes, and all players ask.
        let mut gone = players(5);
        let newcomer = gone.inbox.pop().expect("the last one");
        region.handle(newcomer, &mut fx);
        (6..=40).for_each(|tick| region.tick(Tick(tick), &mut fx));
        assert_eq!(links(&region), [4; 5]);
        let most = region.views.viewers.iter().map(|v| v.registers.counter).max();
        assert!(most.is_some_and(|most| most < 1_000), "{most:?}");
    }

    /// A tick of 10 ms makes 2^31 in 248 days: a client is told no more of entities that have stood
    /// for so long.
    #[test]
    fn who_stands_for_longer_than_stamps_can_tell_apart_is_not_told_again() {
        let (mut region, mut fx) = (players(2), Vec::new());
        (1..=60).for_each(|tick| region.tick(Tick(tick), &mut fx));
        let mut moves = 0;
        for gap in 1..=20 {
            fx.clear();
            let from = 60 + gap * TickStamp::RENEW_TICKS;
            (0..50).for_each(|tick| region.tick(Tick(from + tick), &mut fx));
            for effect in &fx {
                if let Effect::Frames(batch) = effect {
                    moves += batch.moving.len() + batch.entering.len();
                }
            }
        }
        assert_eq!(moves, 0, "nobody has moved");
    }
}
