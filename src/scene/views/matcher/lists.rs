//! The lists of the matcher: which pairs each player has, and the worst of them.

use super::Player;
use crate::scene::prefetch;
use crate::scene::views::Key;

/// An entry of a player's list.
#[derive(Debug, Clone, Copy)]
struct Link {
    rank: u64,
    with: u32,
    /// The other player's list does not have this one.
    one_sided: bool,
}

/// An entry that gave way.
#[derive(Debug, Clone, Copy)]
pub struct Lost {
    pub with: u32,
    pub rank: u64,
    pub one_sided: bool,
}

/// The worst entry of a list, beside the others so that most questions need nothing else.
#[derive(Debug, Clone, Copy)]
struct Worst {
    /// Its rank; [`ROOM`] while the list is not full.
    rank: u64,
    with: u32,
    /// Its index.
    at: u32,
}

/// A rank that no pair has: the list has room.
const ROOM: u64 = u64::MAX;

/// All lists. Their memory is used again in the next tick.
#[derive(Debug, Default)]
pub struct Lists {
    cap: usize,
    lists: Vec<Vec<Link>>,
    worst: Vec<Worst>,
    /// Per player: a sum of the pairs of which one list has the other player. Pairs that both lists
    /// have cancel out.
    sums: Vec<u64>,
}

impl Lists {
    /// Forgets all lists.
    pub fn begin(&mut self, cap: usize) {
        self.cap = cap;
        self.worst.clear();
        self.sums.clear();
    }

    /// Adds an empty list.
    pub fn push(&mut self) {
        match self.lists.get_mut(self.worst.len()) {
            Some(links) => links.clear(),
            None => self.lists.push(Vec::new()),
        }
        // A cap of 0 has no entry: nothing beats it.
        let rank = if self.cap == 0 { 0 } else { ROOM };
        self.worst.push(Worst { rank, with: self.sums.len() as u32, at: 0 });
        self.sums.push(0);
    }

    /// Adds the entries of a list before the pass: partner, rank, and whether that is a ghost, whose
    /// list is not here.
    #[inline]
    pub fn link(&mut self, of: u32, entries: impl Iterator<Item = (u32, u64, bool)>) {
        let Lists { cap, lists, sums, .. } = self;
        let links = &mut lists[of as usize];
        let mut sum = 0;
        for (with, rank, ghost) in entries.take(*cap) {
            links.push(Link { rank, with, one_sided: ghost });
            if !ghost {
                let pair = u64::from(of.min(with)) << 32 | u64::from(of.max(with));
                let mixed = (pair ^ pair >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                sum ^= mixed ^ mixed >> 32;
                sums[with as usize] ^= mixed ^ mixed >> 32;
            }
        }
        sums[of as usize] ^= sum;
    }

    /// All entries are known: finds out which are one-sided, and the worst ones.
    pub fn finish(&mut self, players: &[Player]) {
        for of in 0..self.worst.len() {
            let all_are_mutual = self.sums[of] == 0;
            for at in 0..if all_are_mutual { 0 } else { self.lists[of].len() } {
                let Link { with, one_sided, .. } = self.lists[of][at];
                self.lists[of][at].one_sided = one_sided || !self.has(with, of as u32);
            }
            self.find_worst(of as u32, players);
        }
    }

    /// The distance below which all pairs that the list of `ix` does not have must be looked at
    /// before the pass, in centimetres.
    pub fn horizon(&self, ix: usize, player: &Player, base: u64) -> u32 {
        // Of the largest distance there may be more pairs, farther than it says.
        let cm = |rank: u64| match u32::try_from(rank - base) {
            Ok(cm) if cm < u32::MAX - 1 => cm + 1,
            _ => u32::MAX,
        };
        let within = |rank: u64| if rank < base { 0 } else { cm(rank) };
        if let Some(accepts) = player.accepts {
            return within(accepts);
        }
        let worst = self.worst(ix as u32);
        match worst {
            Some((rank, _)) => within(rank),
            None if !player.searches => u32::MAX,
            // All that is nearer than the farthest entry was likely looked at in the last tick.
            None => {
                let links = self.lists[ix].iter();
                within(links.map(|link| link.rank).max().unwrap_or(0))
            }
        }
    }

    /// Whether the list of `ix` is not full.
    #[inline]
    pub fn has_room(&self, ix: u32) -> bool {
        self.worst[ix as usize].rank == ROOM
    }

    /// Rank and partner of the worst entry of a full list.
    #[inline]
    pub fn worst(&self, ix: u32) -> Option<(u64, u32)> {
        let worst = self.worst[ix as usize];
        (worst.rank != ROOM).then_some((worst.rank, worst.with))
    }

    /// The memory of a list, to be asked for ahead.
    #[inline]
    pub fn fetch(&self, ix: u32) {
        prefetch::fetch(&self.lists[ix as usize]);
    }

    /// Whether the list of `of` has `with`.
    #[inline]
    pub fn has(&self, of: u32, with: u32) -> bool {
        self.lists[of as usize].iter().any(|link| link.with == with)
    }

    /// The partners in the list of `of`.
    #[inline]
    pub fn partners(&self, of: u32) -> impl Iterator<Item = u32> {
        self.lists[of as usize].iter().map(|link| link.with)
    }

    /// Puts an entry into the list of `of`. Returns the worst entry if the list is full, which the
    /// new one replaces.
    pub fn insert(
        &mut self,
        of: u32,
        (with, rank, one_sided): (u32, u64, bool),
        players: &[Player],
    ) -> Option<Lost> {
        let new = Link { rank, with, one_sided };
        let links = &mut self.lists[of as usize];
        if links.len() < self.cap {
            links.push(new);
            self.find_worst(of, players);
            return None;
        }
        let lost = std::mem::replace(&mut links[self.worst[of as usize].at as usize], new);
        self.find_worst(of, players);
        Some(Lost { with: lost.with, rank: lost.rank, one_sided: lost.one_sided })
    }

    /// Takes `with` from the list of `of`; false if the list does not have it.
    pub fn remove(&mut self, of: u32, with: u32) -> bool {
        let links = &mut self.lists[of as usize];
        let at = links.iter().position(|link| link.with == with);
        if let Some(at) = at {
            links.swap_remove(at);
            self.worst[of as usize].rank = ROOM;
        }
        at.is_some()
    }

    /// Finds the worst entry of a full list.
    fn find_worst(&mut self, of: u32, players: &[Player]) {
        let links = &self.lists[of as usize];
        if links.len() < self.cap || links.is_empty() {
            return;
        }
        let rank = links.iter().map(|link| link.rank).max().unwrap_or(0);
        let me = players[of as usize].id;
        let key = |at: usize| Key::of(rank, me, players[links[at].with as usize].id);
        let mut alike = links.iter().enumerate().filter(|(_, link)| link.rank == rank);
        let Some((mut worst, _)) = alike.next() else { return };
        // Ids decide between equal ranks.
        for (at, _) in alike {
            if key(at) > key(worst) {
                worst = at;
            }
        }
        let with = links[worst].with;
        self.worst[of as usize] = Worst { rank, with, at: worst as u32 };
    }
}
