//! The registers of one player and the rules by which they change.

mod peer;

pub use peer::{Addressee, Peer, Words};

use smallvec::SmallVec;

use super::{Key, PeerState, Say, ViewRules};
use crate::scene::{EntityId, Tick, TickStamp};

/// How many numbers a player keeps in reserve: more than it makes requests between two looks at how many are left.
pub const NUMBERS_LEFT: u32 = 1 << 20;

/// What hearing a NO changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// A link or a request was lost: there may be room for others.
    Lost,
    /// Nothing that would make room.
    NothingLost,
    /// The NO was overtaken by a newer YES of the speaker's, which now wants an answer.
    Overtaken,
}

/// What there is of links and requests, counted peer by peer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Links.
    pub links: usize,
    /// Requests that wait for an answer.
    pub asked: usize,
    /// Neither, but shown or linked when the tick began.
    pub displaced: usize,
    /// The worst rank of links and requests, one that has it, and how many have.
    worst: (u64, usize, usize),
}

impl Tally {
    /// Counts the peer at `ix`.
    #[inline]
    pub fn add(&mut self, rules: &ViewRules, ix: usize, p: &Peer) {
        if !p.said() {
            self.displaced += usize::from(p.shown() || p.kept());
            return;
        }
        self.links += usize::from(p.wanted());
        self.asked += usize::from(!p.wanted());
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

/// All registers of one player.
#[derive(Debug, Clone, Default)]
pub struct Registers {
    /// Whose they are.
    pub me: EntityId,
    /// Numbers this player's requests.
    pub counter: u32,
    /// One entry per peer, in no particular order.
    peers: Vec<Peer>,
    /// Of each peer, in the same order.
    words: Vec<Words>,
    /// How many of them are asked or linked.
    said: u32,
    /// A link may have come or gone since the tick began.
    stirred: bool,
    /// The tick that has begun.
    tick: TickStamp,
}

impl Registers {
    /// Registers in which nothing was said yet.
    pub fn new(me: EntityId) -> Registers {
        Registers { me, ..Registers::default() }
    }

    /// Registers as they have come from elsewhere. Who is linked counts as linked when the tick began;
    /// distances are not known, nor are slots, for which `slot` stands. `now` is the tick.
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
            let (p, w) = (&mut registers.peers[ix], &mut registers.words[ix]);
            (w.mine, w.seen) = (s.mine, s.seen.max(s.his));
            p.sent = TickStamp::heard(s.sent, now);
            p.set_said(s.mine != 0);
            registers.said += u32::from(s.mine != 0);
            p.set_wanted(s.his != 0);
            p.set_owed(s.owed);
            p.set_shown(s.shown);
            p.keep_link();
        }
        registers
    }

    /// Tick `tick` begins, unless it has: those linked now are the ones to keep.
    #[inline]
    pub fn begin_tick(&mut self, tick: TickStamp) {
        if self.tick != tick {
            self.tick = tick;
            self.keep_links();
        }
    }

    /// Those linked now count as linked when the tick began.
    pub fn keep_links(&mut self) {
        if std::mem::take(&mut self.stirred) {
            self.peers.iter_mut().for_each(Peer::keep_link);
        }
    }

    /// A copy in memory that is taken now, with room for a few more peers.
    pub fn moved(&self) -> Registers {
        let room = (self.peers.len() + 6).next_multiple_of(8);
        let mut peers = Vec::with_capacity(room);
        peers.extend_from_slice(&self.peers);
        let mut words = Vec::with_capacity(room);
        words.extend_from_slice(&self.words);
        Registers { peers, words, ..*self }
    }

    /// All peers.
    #[inline]
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// All peers, to note what is known of where they are and what the client was told.
    #[inline]
    pub fn peers_mut(&mut self) -> &mut [Peer] {
        &mut self.peers
    }

    /// What was said with each peer, in the order of [`Registers::peers`].
    #[inline]
    pub fn words(&self) -> &[Words] {
        &self.words
    }

    /// Each peer with what was said.
    pub fn entries(&self) -> impl Iterator<Item = (&Words, &Peer)> {
        self.words.iter().zip(&self.peers)
    }

    /// Number of the standing YES of the peer at `ix`; 0 = none.
    pub fn his(&self, ix: usize) -> u32 {
        if self.peers[ix].wanted() { self.words[ix].seen } else { 0 }
    }

    /// The registers of the peer at `ix` as they travel in tick `now`.
    pub fn state(&self, ix: usize, now: Tick) -> PeerState {
        let (p, w) = (&self.peers[ix], &self.words[ix]);
        PeerState {
            id: w.id,
            mine: w.mine,
            his: self.his(ix),
            seen: w.seen,
            owed: p.owed(),
            shown: p.shown(),
            sent: p.sent.near(now),
            epoch: crate::scene::Epoch(0),
        }
    }

    /// Adds a peer with whom nothing was said yet, and tells where.
    pub fn push(&mut self, id: EntityId, slot: u32) -> usize {
        self.peers.push(Peer::new(slot));
        self.words.push(Words { id, mine: 0, seen: 0 });
        self.peers.len() - 1
    }

    /// Forgets the peer at `ix`, in whose place the last one comes.
    pub fn swap_remove(&mut self, ix: usize) -> (Words, Peer) {
        self.note_said(ix, false);
        (self.words.swap_remove(ix), self.peers.swap_remove(ix))
    }

    /// Forgets all peers but those that `keep` wants.
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
        Key::of(rules.rank(p.class, p.dist_cm, p.kept()), self.me, self.words[ix].id)
    }

    /// Where a peer's entry is.
    pub fn find(&self, id: EntityId) -> Option<usize> {
        self.words.iter().position(|w| w.id == id)
    }

    /// Where the entry is of a peer who is at `slot` now, without a look at the words, which are
    /// seldom in the cache. `moved`: somebody may have got another slot since it was looked at; who was
    /// there before is not there any more. `none` is the slot of those who have none.
    #[inline]
    pub fn find_at(&self, slot: u32, id: EntityId, moved: bool, none: u32) -> Option<usize> {
        let at = self.peers.iter().position(|p| p.slot == slot || p.slot == none);
        match at {
            Some(ix) if self.peers[ix].slot == slot => {
                // Somebody else may be there by now, of whom this side has not heard yet.
                if self.words[ix].id == id { at } else { self.find(id) }
            }
            None if !moved => None,
            _ => self.find(id),
        }
    }

    /// Peers that count from 1 again: what number they said last is forgotten.
    pub fn forget_numbers_of(&mut self, which: impl Fn(EntityId) -> bool) {
        self.words.iter_mut().filter(|w| which(w.id)).for_each(|w| w.seen = 0);
    }

    /// Counts links and requests.
    pub fn tally(&self, rules: &ViewRules) -> Tally {
        let mut tally = Tally::default();
        self.peers.iter().enumerate().for_each(|(ix, p)| tally.add(rules, ix, p));
        tally
    }

    /// How many links there are.
    pub fn links(&self) -> usize {
        self.peers.iter().filter(|p| p.linked()).count()
    }

    /// How many requests wait for an answer.
    pub fn pending(&self) -> usize {
        self.peers.iter().filter(|p| p.asked()).count()
    }

    /// The key that a pair must beat: that of the cap-th best of links and requests (a request
    /// reserves its place); [`Key::WORST`] while there is room.
    pub fn thr(&self, rules: &ViewRules) -> Key {
        if (self.said as usize) < rules.cap {
            return Key::WORST;
        }
        self.thr_of(rules, &self.tally(rules))
    }

    /// Notes whether my YES to the peer at `ix` stands.
    #[inline]
    fn note_said(&mut self, ix: usize, said: bool) {
        let peer = &mut self.peers[ix];
        self.said = self.said + u32::from(said) - u32::from(peer.said());
        peer.set_said(said);
    }

    /// The same, of those who are counted already.
    pub fn thr_of(&self, rules: &ViewRules, tally: &Tally) -> Key {
        let (_, ix, alike) = tally.worst;
        match tally.standing().cmp(&rules.cap) {
            std::cmp::Ordering::Less => Key::WORST,
            std::cmp::Ordering::Equal if alike == 1 => self.key(rules, ix),
            _ => self.nth_best(rules, rules.cap - 1),
        }
    }

    /// The key of the link or request before which `n` others come, of which there are more.
    fn nth_best(&self, rules: &ViewRules, n: usize) -> Key {
        let rank = |p: &Peer| rules.rank(p.class, p.dist_cm, p.kept());
        let mut ranks: SmallVec<[u64; 96]> =
            self.peers.iter().filter(|p| p.said()).map(rank).collect();
        let nth = *ranks.select_nth_unstable(n).1;
        // Ids decide only between those of one rank.
        let before = ranks[..n].iter().filter(|r| **r < nth).count();
        let alike = self.peers.iter().enumerate().filter(|(_, p)| p.said() && rank(p) == nth);
        let mut keys: SmallVec<[Key; 4]> = alike.map(|(ix, _)| self.key(rules, ix)).collect();
        *keys.select_nth_unstable(n - before).1
    }

    /// Says YES to the peer at `ix`, who is not asked yet.
    pub fn ask(&mut self, ix: usize, mut say: impl FnMut(Addressee, Say)) {
        // 0 stands for no request. A region begins anew long before the numbers end.
        self.counter = self.counter.checked_add(1).unwrap_or(1);
        self.stirred = true;
        self.note_said(ix, true);
        let (p, w) = (&mut self.peers[ix], &mut self.words[ix]);
        w.mine = self.counter;
        p.set_owed(false);
        say(Addressee { id: w.id, slot: p.slot }, Say::Yes(w.mine));
    }

    /// Says NO to the peer at `ix`: the next YES is this side's to say.
    pub fn refuse(&mut self, ix: usize, mut say: impl FnMut(Addressee, Say)) {
        self.stirred = true;
        self.note_said(ix, false);
        let (p, w) = (&mut self.peers[ix], &mut self.words[ix]);
        w.mine = 0;
        p.set_wanted(false);
        p.set_owed(false);
        say(Addressee { id: w.id, slot: p.slot }, Say::No { echo: w.seen, at: self.counter });
    }

    /// Hears YES number `number` of the peer at `ix` and says NO, whatever else there is.
    pub fn refuse_yes(&mut self, ix: usize, number: u32, say: impl FnMut(Addressee, Say)) {
        self.words[ix].seen = number;
        self.refuse(ix, say);
    }

    /// The peer at `ix` may be asked, though it said NO last: perhaps it does not know that it did.
    pub fn forget_debt(&mut self, ix: usize) {
        self.peers[ix].set_owed(false);
    }

    /// Says the standing YES to the peer at `ix` again: where nothing was lost, that changes nothing.
    pub fn repeat(&self, ix: usize, mut say: impl FnMut(Addressee, Say)) {
        let (p, w) = (&self.peers[ix], &self.words[ix]);
        if p.said() {
            say(Addressee { id: w.id, slot: p.slot }, Say::Again(w.mine));
        }
    }

    /// Whether a word of the peer at `ix` is to be answered: not a YES that it has withdrawn since, nor one that stands
    /// already. One that it says again though it stands no more was refused with a word that was lost.
    pub fn wants_answer(&self, ix: usize, say: Say) -> bool {
        let seen = self.words[ix].seen;
        match say {
            Say::Yes(number) => number > seen,
            Say::Again(number) => number > seen || (number == seen && !self.peers[ix].wanted()),
            Say::No { .. } => false,
        }
    }

    /// Hears a YES of the peer at `ix`, said for the first time or again, whose distance and class are up to date.
    pub fn hear_yes(
        &mut self,
        rules: &ViewRules,
        ix: usize,
        yes: Say,
        say: impl FnMut(Addressee, Say),
    ) {
        if let Say::Yes(number) | Say::Again(number) = yes
            && self.wants_answer(ix, yes)
        {
            self.answer(rules, ix, number, say);
        }
    }

    /// Answers the standing YES `number` of the peer at `ix`, who is wanted when fewer than the cap of
    /// the other links and requests are better.
    pub fn answer(
        &mut self,
        rules: &ViewRules,
        ix: usize,
        number: u32,
        mut say: impl FnMut(Addressee, Say),
    ) {
        let key = self.key(rules, ix);
        let (mut better, mut links, mut asked) = (0, 0, 0);
        // The worst rank of a link, one that has it, and how many have.
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
        // It has forgotten this side's YES, and its own before: its region has lost sight of this player.
        let anew = self.peers[ix].linked() && self.words[ix].seen != number;
        self.words[ix].seen = number;
        self.peers[ix].set_wanted(true);
        self.peers[ix].set_owed(false);
        self.stirred = true;
        if better >= rules.cap {
            return self.refuse(ix, say);
        }
        if links >= rules.cap {
            // Ids decide only between those of one rank.
            let (_, one, alike) = worst;
            let worst = if alike == 1 { Some(one) } else { self.worst_link(rules, ix) };
            if let Some(worst) = worst {
                self.refuse(worst, &mut say);
                links -= 1;
            }
        }
        if !self.peers[ix].said() {
            self.ask(ix, &mut say);
        } else if anew {
            self.repeat(ix, &mut say);
        }
        if asked > 0 && links + asked + 1 > rules.cap {
            self.withdraw_hopeless(rules, ix, say);
        }
    }

    /// Hears from the peer at `ix` NO to the YES number `echo`, said when its counter was `at`.
    pub fn hear_no(&mut self, ix: usize, echo: u32, at: u32) -> Heard {
        self.stirred = true;
        let his = self.his(ix);
        let was_linked = self.peers[ix].linked();
        let cancels = self.words[ix].mine != 0 && self.words[ix].mine == echo;
        if cancels {
            self.words[ix].mine = 0;
            self.note_said(ix, false);
        }
        let (p, w) = (&mut self.peers[ix], &mut self.words[ix]);
        if his > at {
            return if cancels { Heard::Overtaken } else { Heard::NothingLost };
        }
        p.set_wanted(false);
        w.seen = w.seen.max(at);
        if cancels {
            p.set_owed(true);
        }
        if cancels || was_linked { Heard::Lost } else { Heard::NothingLost }
    }

    /// The worst link other than that with the peer at `keep`.
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

    /// Takes back requests that a new link, with the peer at `keep`, has made hopeless.
    fn withdraw_hopeless(
        &mut self,
        rules: &ViewRules,
        keep: usize,
        mut say: impl FnMut(Addressee, Say),
    ) {
        let thr = self.thr(rules);
        if thr == Key::WORST {
            return;
        }
        for i in 0..self.peers.len() {
            if i != keep && self.peers[i].asked() && self.key(rules, i) > thr {
                self.refuse(i, &mut say);
            }
        }
    }
}

#[cfg(test)]
mod tests;
