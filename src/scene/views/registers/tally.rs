//! Counts over the registers of one player.

use super::Peer;
use crate::scene::views::ViewRules;

/// Counts of links and requests, added peer by peer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Links.
    pub links: usize,
    /// Requests without an answer.
    pub asked: usize,
    /// Peers that are neither, but were shown or linked when the tick began.
    pub displaced: usize,
    /// The worst rank of links and requests, the index of a peer that has it, and how many peers
    /// have it.
    pub(super) worst: (u64, usize, usize),
    /// There is room for one more: no entry needs a rank.
    has_room: bool,
}

impl Tally {
    /// Nothing counted yet, of a player with so many links and requests, or fewer.
    pub fn of_at_most(standing: usize, rules: &ViewRules) -> Tally {
        Tally { has_room: standing < rules.cap, ..Tally::default() }
    }

    /// Counts the peer at `ix`.
    #[inline]
    pub fn add(&mut self, rules: &ViewRules, ix: usize, p: &Peer) {
        if !p.said() {
            self.displaced += usize::from(p.shown() || p.kept());
            return;
        }
        self.links += usize::from(p.wanted());
        self.asked += usize::from(!p.wanted());
        if self.has_room {
            return;
        }
        let rank = rules.rank(p.class, p.dist_cm, p.kept());
        if rank > self.worst.0 {
            self.worst = (rank, ix, 1);
        } else if rank == self.worst.0 {
            self.worst.2 += 1;
        }
    }

    /// Links and requests: a request reserves its place.
    #[inline]
    pub fn standing(&self) -> usize {
        self.links + self.asked
    }
}
