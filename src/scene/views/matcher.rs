//! The matcher: the stable view lists of all players of a plane, in one pass (DESIGN, "MATCHER").
//!
//! A region calls it once in a tick, over the positions of that tick. It starts from the links that
//! stand and repairs them: it looks only at pairs that could displace one, in ascending order of
//! their keys. The outcome equals the greedy assignment over all pairs in range, whatever the lists
//! were before, because the keys of a tick are fixed:
//!
//! - What is decided below the key in hand is final. A pair is taken if it beats the worst entry of
//!   both lists, or finds room there. A worst entry that gives way has a larger key, and comes up
//!   again when its own key is due.
//! - Each player has a *horizon*, a distance below which all pairs that its list does not have were
//!   looked at. For a full list that is the distance of its worst entry: no farther pair can enter.
//!   A player that loses an entry searches on from its horizon, ring by ring, when the pass has come
//!   that far.
//!
//! The matcher is pure: it knows neither registers nor regions. *Must never happen here:* a decision
//! that depends on the order in which players were added.

mod lists;
mod near;
mod pass;
mod repair;

pub use self::lists::ListWriter;
use self::lists::Lists;
pub use self::near::{Bounds, Pairs};
use self::near::{Near, Scan};
use self::pass::{Event, Pass};
use super::{Key, ViewRules};
use crate::scene::workers::{self, Workers};
use crate::scene::{EntityId, ViewCap};

/// Two players by their indices, in the order in which they were paired.
pub type Pair = (u32, u32);

/// A player, as the matcher sees it.
#[derive(Debug, Clone, Copy)]
struct Player {
    id: EntityId,
    /// The rank up to which a player of another region accepts a pair. Such a player has no list
    /// here.
    accepts: Option<u64>,
    /// A bound of the distances, in centimetres, below which every pair was looked at.
    horizon: u32,
    /// Its list was full when the last tick ended, or it has just come.
    searches: bool,
}

/// Computes view lists. What it keeps from tick to tick are buffers, and within a tick the lists, which can be
/// repaired.
#[derive(Debug, Default)]
pub struct Matcher {
    players: Vec<Player>,
    lists: Lists,
    near: Near,
    scan: Scan,
    /// The same of parts of the players.
    scans: Vec<Scan>,
    pass: Pass,
    entered: Vec<Pair>,
    left: Vec<Pair>,
    tied: Vec<u32>,
    /// Players whose lists were changed from outside since the last pass, and their thresholds before.
    changed: Vec<(u32, Key)>,
    /// Those of them that have come to this region since.
    arrived: Vec<u32>,
    /// Links that a repair has taken out of the first player's list without a word, with their ranks: they stand until
    /// a player of another region has answered, and go back where there is room again.
    standing: Vec<(Pair, u64)>,
    /// Pairs that are not found by positions.
    others: Vec<(u32, u64)>,
    /// The lists are stable but for what a repair has been told.
    repairs: bool,
    /// The distance below which all pairs in range are, centimetres.
    reach: u32,
    /// The rank of a pair without a bond at distance 0.
    base: u64,
}

impl Matcher {
    /// Forgets all players. `rules` hold for those that are added from here on.
    pub fn begin(&mut self, rules: &ViewRules) {
        self.players.clear();
        self.near.clear();
        self.lists.begin(rules.cap);
        self.repairs = false;
        self.base = rules.rank(super::NO_BOND, 0, false);
        self.begin_pass();
    }

    /// Nothing is to be decided yet, and nothing was.
    fn begin_pass(&mut self) {
        self.pass.begin(self.base);
        self.entered.clear();
        self.left.clear();
        self.tied.clear();
        self.changed.clear();
        self.arrived.clear();
        self.standing.clear();
    }

    /// Adds a player of this region at a position, in centimetres, with the cap of its list; returns its
    /// index. `searches`: its list was full in the last tick or it has just come, so that candidates are
    /// likely near.
    pub fn add(&mut self, (id, cap): (EntityId, ViewCap), at: (i32, i32), searches: bool) -> u32 {
        self.push(Player { id, accepts: None, horizon: 0, searches }, at, cap)
    }

    /// Adds a player of another region, which accepts pairs up to a rank; returns its index.
    pub fn add_ghost(
        &mut self,
        (id, cap): (EntityId, ViewCap),
        at: (i32, i32),
        accepts: u64,
    ) -> u32 {
        self.push(Player { id, accepts: Some(accepts), horizon: 0, searches: false }, at, cap)
    }

    fn push(&mut self, player: Player, at: (i32, i32), cap: ViewCap) -> u32 {
        self.lists.push(player.accepts.is_some(), cap);
        self.players.push(player);
        self.near.push(at)
    }

    /// Number of players.
    pub fn len(&self) -> usize {
        self.players.len()
    }

    /// Whether there are no players.
    pub fn is_empty(&self) -> bool {
        self.players.is_empty()
    }

    /// Adds what players of this region have links with, or have asked: `read` is called once for each
    /// player, with the state of its part. Where two players of this region are linked, each is told
    /// of the other.
    pub fn link_all<S: Send>(
        &mut self,
        workers: &dyn Workers,
        states: &mut [S],
        read: impl Fn(&mut S, u32, &mut ListWriter<'_>) + Sync,
    ) {
        self.lists.link_all(workers, states, read);
    }

    /// After [`Matcher::link_all`]: the list of a player has an entry of `with`, if it has room for one. For
    /// players whose lists are known by the entries of others.
    pub fn link_back(&mut self, of: u32, with: u32, rank: u64) {
        self.lists.link(of, (with, rank));
    }

    /// The same of two players whose lists have one another, if both have room.
    pub fn presume(&mut self, (a, b): Pair, rank: u64) {
        let has_list = |ix: u32| self.players[ix as usize].accepts.is_none();
        let lists = [(a, b), (b, a)].into_iter().filter(|(of, _)| has_list(*of));
        if lists.clone().all(|(of, _)| self.lists.takes_more(of)) {
            for (of, with) in lists {
                self.lists.link(of, (with, rank));
            }
        }
    }

    /// Whether the list of a player has another one.
    pub fn has(&self, ix: u32, with: u32) -> bool {
        self.lists.has(ix, with)
    }

    /// Number of entries in the list of a player.
    pub fn entries(&self, ix: u32) -> usize {
        self.lists.entries(ix)
    }

    /// The players in the list of a player.
    pub fn partners(&self, ix: u32) -> impl Iterator<Item = u32> {
        self.lists.partners(ix)
    }

    /// A pair without an entry in either list that [`Pairs::rank`] may not find in range: companions
    /// that see each other from farther, or a pair that is in range for longer.
    pub fn propose(&mut self, a: u32, b: u32, rank: u64) {
        self.pass.push(self.key(rank, a, b), (a, b), LinkState::No);
    }

    /// Computes the lists. `reach_cm`: no pair that [`Pairs::rank`] finds in range is farther; `None`
    /// without a limit.
    pub fn run(&mut self, reach_cm: Option<u32>, pairs: &impl Pairs, workers: &dyn Workers) {
        self.reach = self.near.begin(reach_cm);
        self.lists.finish(&self.players, workers);
        for (ix, player) in self.players.iter_mut().enumerate() {
            player.horizon = self.lists.horizon(ix, player, self.base).min(self.reach);
        }
        self.scan_all(pairs, workers);
        for ix in 0..self.players.len() as u32 {
            self.search_later(ix);
        }
        self.sweep(pairs);
    }

    /// Finds the pairs that could displace an entry.
    fn scan_all(&mut self, pairs: &impl Pairs, workers: &dyn Workers) {
        let Matcher { players, lists, near, scan, scans, pass, .. } = self;
        let scans = match workers::parts(workers, players.len(), workers::LEAST_PLAYERS) {
            1 => std::slice::from_mut(scan),
            count => {
                // Searches use it afterwards.
                scan.begin(players.len());
                scans.resize_with(count, Scan::default);
                &mut scans[..]
            }
        };
        near.scan_all((players, lists), pairs, scans, workers);
        for (rank, pair) in scans.iter_mut().flat_map(|scan| scan.found.drain(..)) {
            pass.push(key_of(players, rank, pair), pair, LinkState::No);
        }
    }

    /// New links, the better ones first.
    pub fn entered(&self) -> &[Pair] {
        &self.entered
    }

    /// Links and requests that have given way to better ones: the side that was told of the entry
    /// first. A pair that both sides were told of stands here once.
    pub fn left(&self) -> &[Pair] {
        &self.left
    }

    /// Players with full lists that have refused a pair of the rank of an entry, since ids decide between equal
    /// ranks; perhaps some more.
    pub fn tied(&self) -> &[u32] {
        &self.tied
    }

    /// The key that a further pair of this player must beat; [`Key::WORST`] while there is room.
    pub fn threshold(&self, ix: u32) -> Key {
        match self.lists.worst(ix) {
            Some((rank, other)) => self.key(rank, ix, other),
            None => Key::WORST,
        }
    }

    fn key(&self, rank: u64, a: u32, b: u32) -> Key {
        key_of(&self.players, rank, (a, b))
    }

    /// Whether a pair that is not nearer than the horizon of a player may be better than what its list has.
    #[inline]
    fn sees_too_little(&self, ix: u32) -> bool {
        let Player { accepts, horizon, .. } = self.players[ix as usize];
        let beyond = self.base + u64::from(horizon);
        let has_worse = || self.lists.worst(ix).is_none_or(|(worst, _)| worst >= beyond);
        accepts.is_none() && horizon < self.reach && has_worse()
    }

    /// A player with room, or with an entry beyond its horizon, searches on when the pass has come there.
    #[inline]
    fn search_later(&mut self, ix: u32) {
        if self.sees_too_little(ix) {
            let horizon = self.players[ix as usize].horizon;
            self.pass.push_search(self.base + u64::from(horizon), ix);
        }
    }

    /// Decides all pairs in ascending order of their keys.
    fn sweep(&mut self, pairs: &impl Pairs) {
        while let Some(event) = self.next_event() {
            let Event { key, pair, link } = event;
            if !event.is_search() {
                self.decide(key, pair, link, pairs);
                continue;
            }
            // A player that lost two entries may be here twice.
            let horizon = self.players[pair.0 as usize].horizon;
            if self.sees_too_little(pair.0) && key.rank == self.base + u64::from(horizon) {
                self.search(pair.0, pairs);
                self.search_later(pair.0);
            }
        }
    }

    /// The next event, those left out that no list has room for any more.
    #[inline]
    fn next_event(&mut self) -> Option<Event> {
        let Matcher { pass, players, lists, .. } = self;
        // Of equal ranks a better one may still go, and make room.
        let is_beyond = |ix: u32, rank: u64| match players[ix as usize].accepts {
            Some(accepts) => rank > accepts,
            None => lists.worst(ix).is_some_and(|(worst, _)| rank > worst),
        };
        let hopeless = |event: &Event| {
            let (rank, (a, b)) = (event.key.rank, event.pair);
            let is_new = event.link == LinkState::No && !event.is_search();
            is_new && (is_beyond(a, rank) || is_beyond(b, rank))
        };
        if let Some((a, b)) = pass.ahead() {
            lists.fetch(a);
            lists.fetch(b);
        }
        pass.pop(|rank, pair| key_of(players, rank, pair), hopeless)
    }

    /// Looks at the next ring of a player.
    fn search(&mut self, ix: u32, pairs: &impl Pairs) {
        let Matcher { players, lists, near, scan, pass, reach, .. } = self;
        let reach = *reach;
        let from = players[ix as usize].horizon;
        let to = reach.min(from.saturating_add((from / 6).max(RING_CM)));
        let all = near.search(ix, (from, to), (players, lists), pairs, scan);
        players[ix as usize].horizon = if all { reach } else { to };
        for (rank, pair) in scan.found.drain(..) {
            pass.push(key_of(players, rank, pair), pair, LinkState::No);
        }
    }

    fn decide(&mut self, key: Key, (a, b): Pair, link: LinkState, pairs: &impl Pairs) {
        if link == LinkState::Standing || (link == LinkState::No && self.stands((a, b))) {
            return self.put_back((a, b), key, pairs);
        }
        let both = link != LinkState::OneSided;
        let fits = |ix: u32| fits(&self.players, &self.lists, ix, key);
        if !fits(a) || (both && !fits(b)) {
            let ties = |ix: &u32| self.lists.worst(*ix).is_some_and(|(rank, _)| rank == key.rank);
            self.tied.extend([a, b].into_iter().filter(ties));
            if link != LinkState::No {
                self.left.push((a, b));
            }
            return;
        }
        if link == LinkState::No {
            if self.lists.has(a, b) || self.lists.has(b, a) {
                return;
            }
            self.entered.push((a, b));
        }
        self.insert((a, b), key, link, pairs);
        if both {
            self.insert((b, a), key, link, pairs);
        }
    }

    /// Whether a link stands that is missing in a list.
    fn stands(&self, (a, b): Pair) -> bool {
        self.standing.iter().any(|(pair, _)| [(a, b), (b, a)].contains(pair))
    }

    /// A link that stands goes back into the list from which it was taken, if there is room.
    fn put_back(&mut self, (a, b): Pair, key: Key, pairs: &impl Pairs) {
        for (of, with) in [(a, b), (b, a)] {
            let at = self.standing.iter().position(|(pair, _)| *pair == (of, with));
            if let Some(at) = at.filter(|_| fits(&self.players, &self.lists, of, key)) {
                self.standing.swap_remove(at);
                let one_sided = !self.lists.has(with, of);
                let link = if one_sided { LinkState::OneSided } else { LinkState::Yes };
                self.insert((of, with), key, link, pairs);
            }
        }
    }

    /// Puts `with` into the list of `of`. The worst entry gives way if the list is full.
    fn insert(&mut self, (of, with): Pair, key: Key, link: LinkState, pairs: &impl Pairs) {
        if self.players[of as usize].accepts.is_some() {
            return;
        }
        let one_sided = link == LinkState::OneSided;
        let Some(lost) = self.lists.insert(of, (with, key.rank, one_sided), &self.players) else {
            return;
        };
        if self.repairs && self.players[with as usize].accepts.is_some() {
            // It stands until the other region has said that it gives way.
            self.standing.push(((of, lost.with), lost.rank));
            return;
        }
        // A player that is predicted no more has no list.
        let one_sided = lost.one_sided || self.players[lost.with as usize].accepts.is_some();
        let link = if one_sided { LinkState::OneSided } else { LinkState::Yes };
        let key = self.key(lost.rank, of, lost.with);
        self.pass.push(key, (of, lost.with), link);
        if !one_sided {
            self.lose(lost.with, of, pairs);
        }
    }

    /// The player `of` loses the entry of `with`.
    #[inline]
    fn lose(&mut self, of: u32, with: u32, pairs: &impl Pairs) {
        let before = self.lists.worst(of).map_or(u64::MAX, |(rank, _)| rank);
        if self.lists.remove(of, with) {
            if self.repairs {
                self.look_back(of, before, pairs);
                for ((_, with), rank) in self.standing.iter().filter(|((one, _), _)| *one == of) {
                    let key = key_of(&self.players, *rank, (of, *with));
                    self.pass.push(key, (of, *with), LinkState::Standing);
                }
            }
            self.search_later(of);
        }
    }
}

/// Least width of a ring that a player searches, in centimetres.
const RING_CM: u32 = 40;

/// What stood between two players when the pass began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkState {
    /// Nothing.
    No,
    /// A link between two players of this region.
    Yes,
    /// A link that stands, and is missing in the list of the first player.
    Standing,
    /// An entry in the list of the first player only: the other lives in another region, or its
    /// answer is on its way.
    OneSided,
}

/// Whether a player takes a pair with this key.
#[inline]
fn fits(players: &[Player], lists: &Lists, ix: u32, key: Key) -> bool {
    if let Some(accepts) = players[ix as usize].accepts {
        // A tie is decided by the other region, which knows the whole key.
        return key.rank <= accepts;
    }
    match lists.worst(ix) {
        None => true,
        Some((rank, other)) if rank == key.rank => key < key_of(players, rank, (ix, other)),
        Some((rank, _)) => key.rank < rank,
    }
}

#[inline]
fn key_of(players: &[Player], rank: u64, (a, b): Pair) -> Key {
    Key::of(rank, players[a as usize].id, players[b as usize].id)
}

#[cfg(test)]
mod tests;
