//! Repairs of the lists of a pass, over the same positions: players have lost entries, or got others, and players of
//! other regions accept other pairs than before.
//!
//! A pair of two players of this region is decided at once. One with a player of another region is asked for: an entry
//! that it would displace leaves the list, but does not leave its partner's list until the answer has come, and its list
//! is told anew.
//!
//! A list that was complete below a distance is so still. A player that has lost an entry searches on from the worst
//! entry that it had. So a repair costs what the players that have changed, and those that they displace, cost in a pass.

use super::near::Pairs;
use super::{Key, Matcher};
use crate::scene::EntityId;

impl Matcher {
    /// Begins a repair of the lists of the last pass or repair.
    pub fn begin_repair(&mut self) {
        self.begin_pass();
        self.repairs = true;
    }

    /// The list of a player of this region has these entries now: partner and rank, at most one entry for each partner.
    /// Of more entries than the cap, which come in the order of their keys then, the last ones are left out. `least` is
    /// the least threshold that the player had since the last repair. To be called once for each player in a repair. A
    /// player that has lived in another region is one of this region from here on.
    pub fn relist(&mut self, ix: u32, least: Key, entries: impl Iterator<Item = (u32, u64)>) {
        let mut before = self.threshold(ix).min(least);
        if self.players[ix as usize].accepts.take().is_some() {
            // Whatever was the ghost's turn counts again.
            before = Key::of(0, EntityId(0), EntityId(0));
            self.arrived.push(ix);
        }
        self.changed.push((ix, before));
        self.lists.relist(ix, entries);
    }

    /// A player lives in another region, or its list is predicted no more, and accepts pairs up to a rank.
    pub fn accept_up_to(&mut self, ix: u32, rank: u64) {
        let player = &mut self.players[ix as usize];
        player.accepts = Some(rank);
        player.horizon = self.lists.horizon(ix as usize, player, self.base).min(self.reach);
        self.lists.end(ix);
    }

    /// Repairs the lists. Afterwards [`Matcher::entered`] and [`Matcher::left`] tell what the repair has changed.
    pub fn repair(&mut self, pairs: &impl Pairs) {
        let changed = std::mem::take(&mut self.changed);
        for (ix, _) in &changed {
            self.lists.finish_one(*ix, &self.players);
        }
        for arrived in std::mem::take(&mut self.arrived) {
            // The lists of its partners had it as one with a list elsewhere.
            let partners: Vec<_> = self.lists.partners(arrived).collect();
            partners.into_iter().for_each(|with| self.lists.finish_one(with, &self.players));
        }
        for (ix, before) in &changed {
            self.search_from(*ix, *before, pairs);
        }
        self.changed = changed;
        self.sweep(pairs);
    }

    /// A player whose list has become worse searches from its threshold before: of that rank, too, since ids decide
    /// between equal ranks.
    fn search_from(&mut self, ix: u32, before: Key, pairs: &impl Pairs) {
        if self.threshold(ix) > before {
            self.look_back(ix, before.rank, pairs);
            self.search_later(ix);
        }
    }

    /// A player that has lost an entry knows only what is better than its threshold was. Pairs of that rank count
    /// again, too, since ids decide between equal ranks.
    pub(super) fn look_back(&mut self, ix: u32, before: u64, pairs: &impl Pairs) {
        let cm = u32::try_from(before.saturating_sub(self.base)).unwrap_or(u32::MAX);
        let horizon = &mut self.players[ix as usize].horizon;
        *horizon = cm.min(*horizon);
        let mut others = std::mem::take(&mut self.others);
        pairs.others(ix, &mut others);
        others.drain(..).for_each(|(other, rank)| self.propose(ix, other, rank));
        self.others = others;
    }
}
