//! The lists of the matcher: which pairs each player has, and the worst of them.

use super::Player;
use crate::scene::ViewCap;
use crate::scene::prefetch;
use crate::scene::views::Key;
use crate::scene::workers::{self, Workers, share};

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
pub struct ReplacedLink {
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

/// The worst entry of a list as far as ranks tell, kept while entries are added before the pass: so
/// the lists are not read again to find it.
#[derive(Debug, Clone, Copy, Default)]
struct Peak {
    rank: u64,
    with: u32,
    /// Its index.
    at: u32,
    /// Another entry has the same rank.
    is_shared: bool,
    /// Number of entries.
    len: u32,
}

impl Peak {
    /// Another entry is added.
    #[inline]
    fn add(&mut self, rank: u64, with: u32) {
        if rank > self.rank || self.len == 0 {
            (self.rank, self.with, self.at, self.is_shared) = (rank, with, self.len, false);
        } else {
            self.is_shared |= rank == self.rank;
        }
        self.len += 1;
    }
}

/// A rank that no pair has: the list has room.
const ROOM: u64 = u64::MAX;

/// A list. Its peak is valid before the pass.
#[derive(Debug, Default)]
struct List {
    links: Vec<Link>,
    peak: Peak,
    /// Most entries.
    cap: usize,
}

/// All lists. Their memory is used again in the next tick.
#[derive(Debug, Default)]
pub struct Lists {
    /// Most entries of a list that asks for no fewer.
    cap: usize,
    lists: Vec<List>,
    /// Whether each player lives in another region, where its list is.
    elsewhere: Vec<bool>,
    worst: Vec<Worst>,
    /// Per player: a sum of the pairs of which one list has the other player. Pairs that both lists
    /// have cancel out.
    sums: Vec<u64>,
    /// The same of the lists of one part of the players.
    part_sums: Vec<Vec<u64>>,
}

impl Lists {
    /// Forgets all lists.
    pub fn begin(&mut self, cap: usize) {
        self.cap = cap;
        self.elsewhere.clear();
        self.worst.clear();
        self.sums.clear();
    }

    /// Adds an empty list of at most so many entries. `elsewhere`: its player lives in another region.
    pub fn push(&mut self, elsewhere: bool, cap: ViewCap) {
        let cap = cap.within(self.cap);
        match self.lists.get_mut(self.worst.len()) {
            Some(list) => {
                list.links.clear();
                (list.peak, list.cap) = (Peak::default(), cap);
            }
            None => self.lists.push(List { cap, ..List::default() }),
        }
        // A cap of 0 has no entry: nothing beats it.
        let rank = if cap == 0 { 0 } else { ROOM };
        self.worst.push(Worst { rank, with: self.sums.len() as u32, at: 0 });
        self.sums.push(0);
        self.elsewhere.push(elsewhere);
    }

    /// Adds the entries of all lists before the pass: `read` is called once for each list.
    pub fn link_all<S: Send>(
        &mut self,
        workers: &dyn Workers,
        states: &mut [S],
        read: impl Fn(&mut S, u32, &mut ListWriter<'_>) + Sync,
    ) {
        let Lists { lists, sums, part_sums, elsewhere, .. } = self;
        let (count, elsewhere) = (elsewhere.len(), &elsewhere[..]);
        let lists = &mut lists[..count];
        let fill =
            |(state, sums): &mut (&mut S, &mut Vec<u64>), first: usize, part: &mut [List]| {
                for at in 0..part.len() {
                    if let Some(next) = part.get_mut(at + prefetch::PLAYERS) {
                        let (cap, room) = (next.cap, next.links.spare_capacity_mut());
                        prefetch::fetch(&room[..room.len().min(cap)]);
                    }
                    let (of, list) = ((first + at) as u32, &mut part[at]);
                    read(state, of, &mut ListWriter { of, list, sums, elsewhere });
                }
            };
        if let [state] = states {
            return fill(&mut (state, sums), 0, lists);
        }
        part_sums.resize_with(states.len(), Vec::new);
        for part in part_sums.iter_mut() {
            part.clear();
            part.resize(count, 0);
        }
        let mut parts: Vec<_> = states.iter_mut().zip(part_sums.iter_mut()).collect();
        share(workers, lists, &mut parts, fill);
        for part in part_sums {
            sums.iter_mut().zip(part).for_each(|(sum, of_part)| *sum ^= *of_part);
        }
    }

    /// Adds an entry to one list before the pass, if there is room for it.
    pub fn link(&mut self, of: u32, entry: (u32, u64)) {
        if self.takes_more(of) {
            let Lists { lists, sums, elsewhere, .. } = self;
            let list = &mut lists[of as usize];
            ListWriter { of, list, sums, elsewhere }.link(std::iter::once(entry));
        }
    }

    /// Whether the list of `of` is shorter than its cap, before the pass.
    pub fn takes_more(&self, of: u32) -> bool {
        let list = &self.lists[of as usize];
        list.links.len() < list.cap
    }

    /// All entries are known: finds out which are one-sided, and the worst ones.
    pub fn finish(&mut self, players: &[Player], workers: &dyn Workers) {
        for of in 0..self.worst.len() {
            let all_are_mutual = self.sums[of] == 0;
            for at in 0..if all_are_mutual { 0 } else { self.lists[of].links.len() } {
                let Link { with, one_sided, .. } = self.lists[of].links[at];
                self.lists[of].links[at].one_sided = one_sided || !self.has(with, of as u32);
            }
        }
        let Lists { lists, worst, .. } = self;
        let mut parts = vec![(); workers::parts(workers, worst.len(), workers::LEAST_PLAYERS)];
        share(workers, worst, &mut parts, |(), first, part| {
            for (of, worst) in (first..).zip(part) {
                *worst = lists[of].worst(of, players).unwrap_or(*worst);
            }
        });
    }

    /// After a pass: the list of a player has these entries and no others. What they lack is found out by
    /// [`Lists::finish_one`].
    pub fn relist(&mut self, of: u32, entries: impl Iterator<Item = (u32, u64)>) {
        let List { links, cap, .. } = &mut self.lists[of as usize];
        links.clear();
        let link = |(with, rank)| Link { rank, with, one_sided: false };
        links.extend(entries.take(*cap).map(link));
    }

    /// All lists that have changed were told of: finds out which entries of one are one-sided, and its worst one.
    pub fn finish_one(&mut self, of: u32, players: &[Player]) {
        for at in 0..self.lists[of as usize].links.len() {
            let with = self.lists[of as usize].links[at].with;
            let has_list = players[with as usize].accepts.is_none();
            self.lists[of as usize].links[at].one_sided = !has_list || !self.has(with, of);
        }
        if self.lists[of as usize].cap > 0 {
            self.worst[of as usize].rank = ROOM;
            self.find_worst(of, players);
        }
    }

    /// After a pass: a player has no list any more.
    pub fn end(&mut self, of: u32) {
        self.lists[of as usize].links.clear();
        self.worst[of as usize].rank = ROOM;
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
        match self.worst(ix as u32) {
            Some((rank, _)) => within(rank),
            None if !player.searches => u32::MAX,
            // All that is nearer than the farthest entry was likely looked at in the last tick.
            None => within(self.lists[ix].peak.rank),
        }
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
        prefetch::fetch(&self.lists[ix as usize].links);
    }

    /// Whether the list of `of` has `with`.
    #[inline]
    pub fn has(&self, of: u32, with: u32) -> bool {
        self.lists[of as usize].links.iter().any(|link| link.with == with)
    }

    /// Number of entries in the list of `of`.
    pub fn entries(&self, of: u32) -> usize {
        self.lists[of as usize].links.len()
    }

    /// The partners in the list of `of`.
    #[inline]
    pub fn partners(&self, of: u32) -> impl Iterator<Item = u32> {
        self.lists[of as usize].links.iter().map(|link| link.with)
    }

    /// Puts an entry into the list of `of`. Returns the worst entry if the list is full, which the
    /// new one replaces.
    pub fn insert(
        &mut self,
        of: u32,
        (with, rank, one_sided): (u32, u64, bool),
        players: &[Player],
    ) -> Option<ReplacedLink> {
        let new = Link { rank, with, one_sided };
        let List { links, cap, .. } = &mut self.lists[of as usize];
        if links.len() < *cap {
            links.push(new);
            self.find_worst(of, players);
            return None;
        }
        let lost = std::mem::replace(&mut links[self.worst[of as usize].at as usize], new);
        self.find_worst(of, players);
        Some(ReplacedLink { with: lost.with, rank: lost.rank, one_sided: lost.one_sided })
    }

    /// Takes `with` from the list of `of`; false if the list does not have it.
    pub fn remove(&mut self, of: u32, with: u32) -> bool {
        let links = &mut self.lists[of as usize].links;
        let at = links.iter().position(|link| link.with == with);
        if let Some(at) = at {
            links.swap_remove(at);
            self.worst[of as usize].rank = ROOM;
        }
        at.is_some()
    }

    /// Finds the worst entry of a full list.
    fn find_worst(&mut self, of: u32, players: &[Player]) {
        let of = of as usize;
        let List { links, cap, .. } = &self.lists[of];
        if let Some(worst) = worst_of(links, of, *cap, players) {
            self.worst[of] = worst;
        }
    }
}

impl List {
    /// The worst entry before the pass; `None` if the list is not full.
    #[inline]
    fn worst(&self, of: usize, players: &[Player]) -> Option<Worst> {
        let Peak { rank, with, at, is_shared, len } = self.peak;
        if (len as usize) < self.cap || len == 0 {
            return None;
        }
        if is_shared {
            return worst_of(&self.links, of, self.cap, players);
        }
        Some(Worst { rank, with, at })
    }
}

/// The worst entry of a list; `None` if the list is not full.
#[inline]
fn worst_of(links: &[Link], of: usize, cap: usize, players: &[Player]) -> Option<Worst> {
    if links.len() < cap {
        return None;
    }
    let rank = links.iter().map(|link| link.rank).max()?;
    let me = players[of].id;
    let key = |at: usize| Key::of(rank, me, players[links[at].with as usize].id);
    let mut alike = links.iter().enumerate().filter(|(_, link)| link.rank == rank);
    let (mut worst, _) = alike.next()?;
    // Ids decide between equal ranks.
    for (at, _) in alike {
        if key(at) > key(worst) {
            worst = at;
        }
    }
    Some(Worst { rank, with: links[worst].with, at: worst as u32 })
}

/// Fills one list before the pass.
#[derive(Debug)]
pub struct ListWriter<'a> {
    of: u32,
    list: &'a mut List,
    sums: &'a mut [u64],
    elsewhere: &'a [bool],
}

impl ListWriter<'_> {
    /// Adds links with, and requests to, other players: partner and rank, at most one entry for each
    /// partner. Of more entries than the cap the last ones are left out.
    #[inline]
    pub fn link(&mut self, entries: impl Iterator<Item = (u32, u64)>) {
        let (mut sum, mut peak) = (0, self.list.peak);
        for (with, rank) in entries.take(self.list.cap) {
            // A ghost's list is not here.
            let one_sided = self.elsewhere[with as usize];
            self.list.links.push(Link { rank, with, one_sided });
            peak.add(rank, with);
            if !one_sided {
                let pair = u64::from(self.of.min(with)) << 32 | u64::from(self.of.max(with));
                let mixed = (pair ^ pair >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                sum ^= mixed ^ mixed >> 32;
                self.sums[with as usize] ^= mixed ^ mixed >> 32;
            }
        }
        self.sums[self.of as usize] ^= sum;
        self.list.peak = peak;
    }
}
