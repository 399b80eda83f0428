//! The registers of one player, and the transitions of the YES/NO protocol.
//!
//! Region code feeds messages in and passes a closure that sends the answers. No transition may
//! exceed the cap or leave a pair in which both sides wait (see [`super`]).

mod peer;

pub use peer::{Addressee, Peer, YesIds};

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::{Key, PeerState, ViewMsgBody, ViewRules};
use crate::scene::{EntityId, Tick, TickStamp, ViewCap};

/// Numbers that a player keeps in reserve: more than it uses between two checks of how many are
/// left.
pub const NUMBERS_LEFT: u32 = 1 << 20;

/// What a received NO changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoEffect {
    /// A link or a request was lost: there may be room for another player.
    Lost,
    /// Nothing that makes room.
    NothingLost,
    /// A newer YES of the sender had overtaken the NO; that YES wants an answer now.
    Overtaken,
}

/// All registers of one player.
#[derive(Debug, Clone, Default)]
pub struct Registers {
    /// The player.
    pub me: EntityId,
    /// Most links, if fewer than the scene allows.
    cap: ViewCap,
    /// Number of the player's last request.
    pub counter: u32,
    /// One entry per peer, in no particular order.
    peers: Vec<Peer>,
    /// For each peer, in the same order.
    yes_ids: Vec<YesIds>,
    /// How many peers are asked or linked.
    said: u32,
    /// A link may have come or gone since the tick began.
    stirred: bool,
    /// The present tick.
    tick: TickStamp,
}

impl Registers {
    /// Registers in which nothing was said yet.
    pub fn new(me: EntityId) -> Registers {
        Registers { me, ..Registers::default() }
    }

    /// Registers restored from a handoff or a checkpoint, at tick `now`. Linked peers count as
    /// linked when the tick began. Distances are unknown; so are slots, and `slot` marks them as
    /// unknown.
    pub fn restored(
        me: EntityId,
        peers: &[PeerState],
        counter: u32,
        slot: u32,
        now: Tick,
    ) -> Registers {
        let mut registers = Registers { counter, stirred: true, ..Registers::new(me) };
        for s in peers {
            let ix = registers.push(s.id, slot);
            let (p, w) = (&mut registers.peers[ix], &mut registers.yes_ids[ix]);
            (w.my_yes, w.seen) = (s.my_yes, s.seen.max(s.their_yes));
            p.sent = TickStamp::received(s.sent, now);
            p.set_said(s.my_yes != 0);
            registers.said += u32::from(s.my_yes != 0);
            p.set_wanted(s.their_yes != 0);
            p.set_their_turn(s.their_turn);
            p.set_shown(s.shown);
            p.withheld = s.withheld;
            p.keep_link();
        }
        registers
    }

    /// The same of a player whose client has asked for a shorter list.
    pub fn capped(self, cap: ViewCap) -> Registers {
        Registers { cap, ..self }
    }

    /// Most links of the player.
    #[inline]
    pub fn cap(&self, rules: &ViewRules) -> usize {
        self.cap.within(rules.cap)
    }

    /// Starts tick `tick` unless it has started: the present links get the margin.
    #[inline]
    pub fn begin_tick(&mut self, tick: TickStamp) {
        if self.tick != tick {
            self.tick = tick;
            self.keep_links();
        }
    }

    /// Whether a link may have come or gone since the tick began.
    pub fn has_stirred(&self) -> bool {
        self.stirred
    }

    /// Marks the present links as links that existed when the tick began.
    pub fn keep_links(&mut self) {
        if std::mem::take(&mut self.stirred) {
            self.peers.iter_mut().for_each(Peer::keep_link);
        }
    }

    /// A copy in newly allocated memory, with room for a few more peers.
    pub fn moved(&self) -> Registers {
        let room = (self.peers.len() + 6).next_multiple_of(8);
        let mut peers = Vec::with_capacity(room);
        peers.extend_from_slice(&self.peers);
        let mut yes_ids = Vec::with_capacity(room);
        yes_ids.extend_from_slice(&self.yes_ids);
        Registers { peers, yes_ids, ..*self }
    }

    /// All peers.
    #[inline]
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// All peers, to update position and display state.
    #[inline]
    pub fn peers_mut(&mut self) -> &mut [Peer] {
        &mut self.peers
    }

    /// The numbers of each peer, in the order of [`Registers::peers`].
    #[inline]
    pub fn yes_ids(&self) -> &[YesIds] {
        &self.yes_ids
    }

    /// Each peer with its numbers.
    pub fn entries(&self) -> impl Iterator<Item = (&YesIds, &Peer)> {
        self.yes_ids.iter().zip(&self.peers)
    }

    /// Number of the standing YES of the peer at `ix`; 0 = none.
    pub fn their_yes(&self, ix: usize) -> u32 {
        if self.peers[ix].wanted() { self.yes_ids[ix].seen } else { 0 }
    }

    /// The registers of the peer at `ix` as they travel in tick `now`.
    pub fn state(&self, ix: usize, now: Tick) -> PeerState {
        let (p, w) = (&self.peers[ix], &self.yes_ids[ix]);
        PeerState {
            id: w.id,
            my_yes: w.my_yes,
            their_yes: self.their_yes(ix),
            seen: w.seen,
            their_turn: p.their_turn(),
            shown: p.shown(),
            sent: p.sent.near(now),
            epoch: crate::scene::Epoch(0),
            withheld: p.withheld,
        }
    }

    /// Adds a peer without any message so far; returns its index.
    pub fn push(&mut self, id: EntityId, slot: u32) -> usize {
        self.peers.push(Peer::new(slot));
        self.yes_ids.push(YesIds { id, my_yes: 0, seen: 0 });
        self.peers.len() - 1
    }

    /// Removes the peer at `ix`; the last peer takes its index.
    pub fn swap_remove(&mut self, ix: usize) -> (YesIds, Peer) {
        self.note_said(ix, false);
        (self.yes_ids.swap_remove(ix), self.peers.swap_remove(ix))
    }

    /// Removes all peers except those that `keep` selects.
    pub fn retain(&mut self, keep: impl Fn(&Peer) -> bool) {
        let mut ix = 0;
        while ix < self.peers.len() {
            if keep(&self.peers[ix]) {
                ix += 1;
            } else {
                self.swap_remove(ix);
            }
        }
    }

    /// The pair's key.
    #[inline]
    pub fn key(&self, rules: &ViewRules, ix: usize) -> Key {
        let p = &self.peers[ix];
        Key::of(rules.rank(p.class, p.dist_cm, p.kept()), self.me, self.yes_ids[ix].id)
    }

    /// Index of a peer.
    pub fn find(&self, id: EntityId) -> Option<usize> {
        self.yes_ids.iter().position(|w| w.id == id)
    }

    /// Index of the peer in `slot`, without reading the numbers, which are rarely in the cache.
    /// `moved`: slots may have been reassigned since this player's registers were last updated.
    /// `none` is the slot that stands for unknown.
    #[inline]
    pub fn find_at(&self, slot: u32, id: EntityId, moved: bool, none: u32) -> Option<usize> {
        let at = self.peers.iter().position(|p| p.slot == slot || p.slot == none);
        match at {
            Some(ix) if self.peers[ix].slot == slot => {
                // The slot may belong to another entity by now, which this side does not know yet.
                if self.yes_ids[ix].id == id { at } else { self.find(id) }
            }
            None if !moved => None,
            _ => self.find(id),
        }
    }

    /// Peers whose counters start at 1 again: resets the highest number seen from them.
    pub fn forget_numbers_of(&mut self, which: impl Fn(EntityId) -> bool) {
        self.yes_ids.iter_mut().filter(|w| which(w.id)).for_each(|w| w.seen = 0);
    }

    /// Number of links and requests.
    #[inline]
    pub fn standing(&self) -> usize {
        self.said as usize
    }

    /// Number of links.
    pub fn links(&self) -> usize {
        self.peers.iter().filter(|p| p.linked()).count()
    }

    /// Number of requests without an answer.
    pub fn pending(&self) -> usize {
        self.peers.iter().filter(|p| p.asked()).count()
    }

    /// The threshold: the key that a pair must beat. It is the key of the cap-th best of links and
    /// requests (a request reserves its place); [`Key::WORST`] while there is room.
    pub fn threshold(&self, rules: &ViewRules) -> Key {
        let cap = self.cap(rules);
        match self.standing().cmp(&cap) {
            Ordering::Less => Key::WORST,
            Ordering::Equal => self.worst(rules),
            Ordering::Greater => self.nth_best(rules, cap.saturating_sub(1)),
        }
    }

    /// The worst key of links and requests; there is at least one, or the cap is 0.
    fn worst(&self, rules: &ViewRules) -> Key {
        let (mut rank, mut at, mut alike) = (0, 0, 0);
        for (ix, p) in self.peers.iter().enumerate().filter(|(_, p)| p.said()) {
            let of_peer = rules.rank(p.class, p.dist_cm, p.kept());
            if of_peer > rank {
                (rank, at, alike) = (of_peer, ix, 1);
            } else {
                alike += usize::from(of_peer == rank);
            }
        }
        match alike {
            0 => Key::of(0, EntityId(0), EntityId(0)),
            1 => self.key(rules, at),
            // Ids decide between equal ranks.
            _ => self.nth_best(rules, self.standing() - 1),
        }
    }

    /// Records whether my YES to the peer at `ix` stands.
    #[inline]
    fn note_said(&mut self, ix: usize, said: bool) {
        let peer = &mut self.peers[ix];
        self.said = self.said + u32::from(said) - u32::from(peer.said());
        peer.set_said(said);
    }

    /// The key of the link or request with exactly `n` better ones; there are more than `n`.
    fn nth_best(&self, rules: &ViewRules, n: usize) -> Key {
        let rank = |p: &Peer| rules.rank(p.class, p.dist_cm, p.kept());
        let mut ranks: SmallVec<[u64; 96]> =
            self.peers.iter().filter(|p| p.said()).map(rank).collect();
        let nth = *ranks.select_nth_unstable(n).1;
        // Ids decide only between equal ranks.
        let before = ranks[..n].iter().filter(|r| **r < nth).count();
        let alike = self.peers.iter().enumerate().filter(|(_, p)| p.said() && rank(p) == nth);
        let mut keys: SmallVec<[Key; 4]> = alike.map(|(ix, _)| self.key(rules, ix)).collect();
        *keys.select_nth_unstable(n - before).1
    }

    /// Sends YES to the peer at `ix`, which must not be asked yet.
    pub fn ask(&mut self, ix: usize, mut say: impl FnMut(Addressee, ViewMsgBody)) {
        // 0 stands for no request. A region is restarted long before the numbers run out.
        self.counter = self.counter.checked_add(1).unwrap_or(1);
        self.stirred = true;
        self.note_said(ix, true);
        let (p, w) = (&mut self.peers[ix], &mut self.yes_ids[ix]);
        w.my_yes = self.counter;
        p.set_their_turn(false);
        say(Addressee { id: w.id, slot: p.slot }, ViewMsgBody::Yes(w.my_yes));
    }

    /// Sends NO to the peer at `ix`: this side owes the next YES.
    pub fn refuse(&mut self, ix: usize, mut say: impl FnMut(Addressee, ViewMsgBody)) {
        self.stirred = true;
        self.note_said(ix, false);
        let (p, w) = (&mut self.peers[ix], &mut self.yes_ids[ix]);
        w.my_yes = 0;
        p.set_wanted(false);
        p.set_their_turn(false);
        say(
            Addressee { id: w.id, slot: p.slot },
            ViewMsgBody::No { echo: w.seen, at: self.counter },
        );
    }

    /// Receives YES number `number` of the peer at `ix` and answers NO in any case.
    pub fn refuse_yes(&mut self, ix: usize, number: u32, say: impl FnMut(Addressee, ViewMsgBody)) {
        self.yes_ids[ix].seen = number;
        self.refuse(ix, say);
    }

    /// Clears the debt of the peer at `ix`, which said NO last but may not know that it did.
    pub fn forget_debt(&mut self, ix: usize) {
        self.peers[ix].set_their_turn(false);
    }

    /// Repeats the standing YES to the peer at `ix`. Changes nothing where nothing was lost.
    pub fn repeat(&self, ix: usize, mut say: impl FnMut(Addressee, ViewMsgBody)) {
        let (p, w) = (&self.peers[ix], &self.yes_ids[ix]);
        if p.said() {
            say(Addressee { id: w.id, slot: p.slot }, ViewMsgBody::Again(w.my_yes));
        }
    }

    /// Whether a message of the peer at `ix` needs an answer. A YES that was withdrawn since does
    /// not, nor one that stands already. A repeated YES that no longer stands does: the NO to it
    /// was lost.
    pub fn wants_answer(&self, ix: usize, say: ViewMsgBody) -> bool {
        let seen = self.yes_ids[ix].seen;
        match say {
            ViewMsgBody::Yes(number) => number > seen,
            ViewMsgBody::Again(number) => {
                number > seen || (number == seen && !self.peers[ix].wanted())
            }
            ViewMsgBody::No { .. } => false,
        }
    }

    /// Receives a YES of the peer at `ix`, first or repeated. The peer's distance and class must be
    /// current.
    pub fn handle_yes(
        &mut self,
        rules: &ViewRules,
        ix: usize,
        yes: ViewMsgBody,
        say: impl FnMut(Addressee, ViewMsgBody),
    ) {
        if let ViewMsgBody::Yes(number) | ViewMsgBody::Again(number) = yes
            && self.wants_answer(ix, yes)
        {
            self.answer(rules, ix, number, say);
        }
    }

    /// Answers the standing YES `number` of the peer at `ix`: the peer is wanted if fewer than
    /// `cap` of the other links and requests are better.
    pub fn answer(
        &mut self,
        rules: &ViewRules,
        ix: usize,
        number: u32,
        mut say: impl FnMut(Addressee, ViewMsgBody),
    ) {
        let cap = self.cap(rules);
        if self.standing() - usize::from(self.peers[ix].said()) < cap {
            return self.accept(ix, number, say);
        }
        let key = self.key(rules, ix);
        let (mut better, mut links, mut asked) = (0, 0, 0);
        // The worst rank of a link, the index of a peer that has it, and how many have it.
        let mut worst = (0, ix, 0);
        for (i, p) in self.peers.iter().enumerate().filter(|(i, p)| p.said() && *i != ix) {
            let rank = rules.rank(p.class, p.dist_cm, p.kept());
            let is_better = rank < key.rank || (rank == key.rank && self.key(rules, i) < key);
            better += usize::from(is_better);
            asked += usize::from(!p.wanted());
            if p.wanted() {
                links += 1;
                if rank > worst.0 {
                    worst = (rank, i, 1);
                } else if rank == worst.0 {
                    worst.2 += 1;
                }
            }
        }
        if better >= cap {
            self.note_wanted(ix, number);
            return self.refuse(ix, say);
        }
        if links >= cap {
            // Ids decide only between equal ranks.
            let (_, one, alike) = worst;
            let worst = if alike == 1 { Some(one) } else { self.worst_link(rules, ix) };
            if let Some(worst) = worst {
                self.refuse(worst, &mut say);
                links -= 1;
            }
        }
        self.accept(ix, number, &mut say);
        if asked > 0 && links + asked + 1 > cap {
            self.withdraw_hopeless(rules, ix, say);
        }
    }

    /// The standing YES `number` of the peer at `ix` is welcome: says YES unless that stands.
    fn accept(&mut self, ix: usize, number: u32, say: impl FnMut(Addressee, ViewMsgBody)) {
        // The peer asks with a new number although it is linked: its region lost track of this
        // player.
        let anew = self.peers[ix].linked() && self.yes_ids[ix].seen != number;
        self.note_wanted(ix, number);
        if !self.peers[ix].said() {
            self.ask(ix, say);
        } else if anew {
            self.repeat(ix, say);
        }
    }

    /// Records the standing YES `number` of the peer at `ix`.
    fn note_wanted(&mut self, ix: usize, number: u32) {
        self.yes_ids[ix].seen = number;
        self.peers[ix].set_wanted(true);
        self.peers[ix].set_their_turn(false);
        self.stirred = true;
    }

    /// Receives a NO of the peer at `ix` to YES number `echo`, sent when the peer's counter was
    /// `at`.
    pub fn handle_no(&mut self, ix: usize, echo: u32, at: u32) -> NoEffect {
        self.stirred = true;
        let their_yes = self.their_yes(ix);
        let was_linked = self.peers[ix].linked();
        let cancels = self.yes_ids[ix].my_yes != 0 && self.yes_ids[ix].my_yes == echo;
        if cancels {
            self.yes_ids[ix].my_yes = 0;
            self.note_said(ix, false);
        }
        let (p, w) = (&mut self.peers[ix], &mut self.yes_ids[ix]);
        if their_yes > at {
            return if cancels { NoEffect::Overtaken } else { NoEffect::NothingLost };
        }
        p.set_wanted(false);
        w.seen = w.seen.max(at);
        if cancels {
            p.set_their_turn(true);
        }
        if cancels || was_linked { NoEffect::Lost } else { NoEffect::NothingLost }
    }

    /// The worst link, not counting the peer at `keep`.
    fn worst_link(&self, rules: &ViewRules, keep: usize) -> Option<usize> {
        let others = self.peers.iter().enumerate().filter(|(i, p)| *i != keep && p.linked());
        others
            .max_by(|(a, p), (b, q)| {
                let rank = |p: &Peer| rules.rank(p.class, p.dist_cm, p.kept());
                let by_key = || self.key(rules, *a).cmp(&self.key(rules, *b));
                rank(p).cmp(&rank(q)).then_with(by_key)
            })
            .map(|(i, _)| i)
    }

    /// Withdraws requests that a new link with the peer at `keep` has made hopeless.
    fn withdraw_hopeless(
        &mut self,
        rules: &ViewRules,
        keep: usize,
        mut say: impl FnMut(Addressee, ViewMsgBody),
    ) {
        let threshold = self.threshold(rules);
        if threshold == Key::WORST {
            return;
        }
        for i in 0..self.peers.len() {
            if i != keep && self.peers[i].asked() && self.key(rules, i) > threshold {
                self.refuse(i, &mut say);
            }
        }
    }
}

#[cfg(test)]
mod tests;
