//! Fights: bonds that acts aimed at others make, and that fade.
//!
//! Every region that knows both of the two hears of the act in the same tick, by the border batch that
//! carries it, and begins the fight for both of them, real or ghost: so both ends agree on it before
//! they evaluate their views.

use std::collections::VecDeque;

use super::{Region, scan};
use crate::scene::views::NO_BOND;
use crate::scene::{EntityId, Kind, Tick};

/// When fights end, and whose they are; in order, save for those who came with theirs.
#[derive(Debug, Default)]
pub struct Fights {
    ends: VecDeque<(Tick, EntityId)>,
}

impl Region {
    /// Begins the fights of this tick's acts.
    pub(super) fn begin_fights(&mut self) {
        if self.rules.fight == NO_BOND {
            return;
        }
        let aimed = self.acts.iter().filter_map(|act| Some((act.id, act.deed.aim?)));
        let mut aimed: Vec<_> = aimed.map(|(a, b)| (a.min(b), a.max(b))).collect();
        // The order in which acts came differs between regions.
        aimed.sort_unstable();
        aimed.dedup();
        let until = Tick(self.tick.0.saturating_add(self.rules.fight_ticks));
        for (a, b) in aimed {
            if self.can_fight(a, b) {
                self.tie(a, b, until);
                self.tie(b, a, until);
            }
        }
    }

    /// Only players who are in range of each other fight.
    fn can_fight(&self, a: EntityId, b: EntityId) -> bool {
        let (Some(a), Some(b)) = (self.bodies.slot(a), self.bodies.slot(b)) else { return false };
        let is_player = |slot: u32| self.bodies.hot[slot as usize].kind == Kind::PLAYER;
        let players = is_player(a) && is_player(b) && a != b;
        let (a, b) = (&self.bodies.places[a as usize], &self.bodies.places[b as usize]);
        let vis = &self.scene.spec.visibility;
        players && scan::same_plane(&self.bodies, a, b) && scan::in_range(vis, a, b, true).is_some()
    }

    fn tie(&mut self, id: EntityId, with: EntityId, until: Tick) {
        let Some(slot) = self.bodies.slot(id) else { return };
        self.bodies.change_ties(slot, |ties| ties.fight(with, until));
        self.fights.ends.push_back((until, id));
        if let Some(real) = self.bodies.real_mut(slot) {
            // For neighbours that do not know the other one.
            real.restate = true;
        }
    }

    /// Expects the fights of somebody who has come with them to end.
    pub(super) fn expect_ends(&mut self, slot: u32) {
        let (body, cold) = (&self.bodies.hot[slot as usize], &self.bodies.cold[slot as usize]);
        self.fights.ends.extend(cold.ties.fights.iter().map(|f| (f.until, body.id)));
    }

    /// Expects all fights to end that anybody known here has.
    pub(super) fn expect_all_ends(&mut self) {
        let fights = |slot: u32| {
            let id = self.bodies.hot[slot as usize].id;
            let fights = &self.bodies.cold[slot as usize].ties.fights;
            fights.iter().map(move |f| (f.until, id))
        };
        let mut ends: Vec<_> = self.bodies.slots().flat_map(fights).collect();
        ends.sort_unstable();
        self.fights.ends = ends.into();
    }

    /// Ends the fights that are over at this tick. One that is overlooked for a while does not count
    /// any more either.
    pub(super) fn end_fights(&mut self) {
        while self.fights.ends.front().is_some_and(|(until, _)| *until <= self.tick) {
            let Some((_, id)) = self.fights.ends.pop_front() else { return };
            if let Some(slot) = self.bodies.slot(id) {
                self.bodies.change_ties(slot, |ties| ties.fade(self.tick));
            }
        }
    }
}
