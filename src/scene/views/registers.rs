//! The registers of one player and the rules by which they change.

use serde::{Deserialize, Serialize};

use super::{Say, Ties};
use crate::scene::spec::{BondSpec, FIGHT};
use crate::scene::{EntityId, Scene, Tick};

/// What decides between two pairs: smaller is better. The same seen from both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Bond class, then distance; see [`ViewRules::rank`].
    pub rank: u64,
    lo: EntityId,
    hi: EntityId,
}

impl Key {
    /// Worse than every pair.
    pub const WORST: Key = Key { rank: u64::MAX, lo: EntityId(u64::MAX), hi: EntityId(u64::MAX) };

    /// The key of the pair `a`, `b`, in either order.
    pub fn of(rank: u64, a: EntityId, b: EntityId) -> Key {
        Key { rank, lo: a.min(b), hi: a.max(b) }
    }
}

/// What a scene says of view lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewRules {
    /// Most links of a player.
    pub cap: usize,
    /// By how much a pair that was linked when the tick began counts as nearer than it is,
    /// centimetres.
    pub margin_cm: u32,
    /// Most companions who count as bonded to one player.
    pub bond_cap: usize,
    /// Companions are in range up to here whatever the visibility says; 0 = not.
    pub bond_enter_cm: u32,
    /// Companions who know each other are in range up to here.
    pub bond_leave_cm: u32,
    /// The class of a fight; [`NO_BOND`] where acts make none.
    pub fight: u8,
    /// How long a fight lasts after the last act.
    pub fight_ticks: u64,
}

/// Bond class of a pair without a bond.
pub const NO_BOND: u8 = 255;

/// Keeps a distance less a margin positive. Above every margin that a scene may have.
const RANK_BIAS: u64 = 1 << 20;

impl ViewRules {
    /// A cap and a margin in centimetres; bonds as they are by default, and no fights.
    pub fn new(cap: usize, margin_cm: u32) -> ViewRules {
        ViewRules {
            cap,
            margin_cm,
            bond_cap: BondSpec::default().cap,
            bond_enter_cm: 0,
            bond_leave_cm: 0,
            fight: NO_BOND,
            fight_ticks: 0,
        }
    }

    /// The rules of a scene.
    pub fn of(scene: &Scene) -> ViewRules {
        let (spec, bonds) = (&scene.spec, &scene.spec.bonds);
        let fight = bonds.class_of(FIGHT).filter(|_| bonds.fight_ms > 0);
        ViewRules {
            cap: spec.view_cap,
            margin_cm: spec.view_margin_cm.unsigned_abs(),
            bond_cap: bonds.cap,
            bond_enter_cm: bonds.enter_cm.unsigned_abs(),
            bond_leave_cm: bonds.leave_cm.unsigned_abs(),
            fight: fight.unwrap_or(NO_BOND),
            fight_ticks: u64::from(bonds.fight_ms.div_ceil(scene.tick_ms)),
        }
    }

    /// The class of two players, `dist_cm` apart: the strongest bond that they share at `now`,
    /// [`NO_BOND`] when none or when either has enough companions who go before.
    pub fn class(&self, a: (EntityId, &Ties), b: (EntityId, &Ties), dist_cm: u32, now: Tick) -> u8 {
        let class = self.any_class(a, b, now);
        if class == NO_BOND || (a.1.reach.is_none() && b.1.reach.is_none()) {
            return class;
        }
        let rank = self.rank(class, dist_cm, false);
        let counts = |ties: &Ties| ties.reach.is_none_or(|reach| rank <= reach);
        if counts(a.1) && counts(b.1) { class } else { NO_BOND }
    }

    /// The strongest bond that two share at `now`, however many companions they have.
    pub fn any_class(&self, a: (EntityId, &Ties), b: (EntityId, &Ties), now: Tick) -> u8 {
        a.1.class(a.0, b.0, b.1, now, self.fight)
    }

    /// Whether companions, `dist_cm` apart, are in range whatever the visibility says; `known` ones
    /// for longer.
    pub fn exempt(&self, class: u8, dist_cm: u32, known: bool) -> bool {
        let limit = if known { self.bond_leave_cm } else { self.bond_enter_cm };
        class != NO_BOND && limit > 0 && dist_cm <= limit
    }

    /// The rank of a pair: its bond class (0 strongest, 255 none), then its distance in centimetres
    /// less the margin if the two were linked when the tick began.
    #[inline]
    pub fn rank(&self, class: u8, dist_cm: u32, kept: bool) -> u64 {
        let margin = if kept { u64::from(self.margin_cm) } else { 0 };
        (u64::from(class) << 40) | (u64::from(dist_cm) + RANK_BIAS - margin)
    }
}

/// The registers of one pair, seen from one end, and what the end's client was told of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The other.
    pub id: EntityId,
    /// The other's slot in this region, as last known.
    pub slot: u32,
    /// Number of my standing YES; 0 = none.
    pub mine: u32,
    /// The last YES number seen of the other.
    pub seen: u32,
    /// Distance, centimetres, as of the last evaluation.
    pub dist_cm: u32,
    /// Tick of the last update that the client was sent of the other.
    pub sent: u32,
    /// Bond class of the pair, 255 none.
    pub class: u8,
    /// Ring in which the other was at the last evaluation.
    pub ring: u8,
    /// The other's YES, number `seen`, stands.
    pub wanted: bool,
    /// The other said NO last and owes the next YES.
    pub owed: bool,
    /// Whether the client is shown the other.
    pub shown: bool,
    /// The two were linked when the tick began. Unlike a link it stays through the tick, so that the
    /// keys of a tick do not change while they are compared.
    pub kept: bool,
}

impl Peer {
    /// A peer with whom nothing was said yet.
    pub fn new(id: EntityId, slot: u32) -> Peer {
        Peer {
            id,
            slot,
            mine: 0,
            seen: 0,
            dist_cm: 0,
            sent: 0,
            class: NO_BOND,
            ring: 0,
            wanted: false,
            owed: false,
            shown: false,
            kept: false,
        }
    }

    /// Both said YES: an entry of the view list.
    #[inline]
    pub fn linked(&self) -> bool {
        self.mine != 0 && self.wanted
    }

    /// Number of the other's standing YES; 0 = none.
    #[inline]
    pub fn his(&self) -> u32 {
        if self.wanted { self.seen } else { 0 }
    }

    /// Asked, no answer yet.
    #[inline]
    pub fn asked(&self) -> bool {
        self.mine != 0 && !self.wanted
    }

    /// Nothing here needs to be remembered.
    pub fn is_blank(&self) -> bool {
        self.mine == 0 && !self.wanted && !self.owed && !self.shown && !self.kept
    }
}

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

/// All registers of one player.
#[derive(Debug, Clone, Default)]
pub struct Registers {
    /// Whose they are.
    pub me: EntityId,
    /// One entry per peer, in no particular order.
    pub peers: Vec<Peer>,
    /// Numbers this player's requests.
    pub counter: u32,
    /// A link may have come or gone since the tick began.
    stirred: bool,
}

impl Registers {
    /// Registers in which nothing was said yet.
    pub fn new(me: EntityId) -> Registers {
        Registers { me, ..Registers::default() }
    }

    /// Registers as they have come from elsewhere.
    pub fn restored(me: EntityId, peers: Vec<Peer>, counter: u32) -> Registers {
        Registers { me, peers, counter, stirred: true }
    }

    /// A tick begins: those linked now are the ones to keep.
    pub fn begin_tick(&mut self) {
        if std::mem::take(&mut self.stirred) {
            self.peers.iter_mut().for_each(|p| p.kept = p.linked());
        }
    }

    /// The pair's key.
    #[inline]
    pub fn key(&self, rules: &ViewRules, p: &Peer) -> Key {
        Key::of(rules.rank(p.class, p.dist_cm, p.kept), self.me, p.id)
    }

    /// Where a peer's entry is.
    pub fn find(&self, id: EntityId) -> Option<usize> {
        self.peers.iter().position(|p| p.id == id)
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
        let rank = |p: &Peer| rules.rank(p.class, p.dist_cm, p.kept);
        let standing = || self.peers.iter().filter(|p| p.mine != 0);
        let (mut count, mut worst) = (0, 0);
        for p in standing() {
            count += 1;
            worst = worst.max(rank(p));
        }
        match count.cmp(&rules.cap) {
            std::cmp::Ordering::Less => Key::WORST,
            // Ids decide only between those of the worst rank.
            std::cmp::Ordering::Equal => {
                let last =
                    standing().filter(|p| rank(p) == worst).map(|p| self.key(rules, p)).max();
                last.unwrap_or(Key::WORST)
            }
            std::cmp::Ordering::Greater => {
                let mut keys: Vec<Key> = standing().map(|p| self.key(rules, p)).collect();
                *keys.select_nth_unstable(rules.cap - 1).1
            }
        }
    }

    /// Says YES to the peer at `ix`, who is not asked yet.
    pub fn ask(&mut self, ix: usize, mut say: impl FnMut(&Peer, Say)) {
        self.counter += 1;
        self.stirred = true;
        let p = &mut self.peers[ix];
        p.mine = self.counter;
        p.owed = false;
        say(p, Say::Yes(p.mine));
    }

    /// Says NO to the peer at `ix`: the next YES is this side's to say.
    pub fn refuse(&mut self, ix: usize, mut say: impl FnMut(&Peer, Say)) {
        self.stirred = true;
        let p = &mut self.peers[ix];
        p.mine = 0;
        p.wanted = false;
        p.owed = false;
        say(p, Say::No { echo: p.seen, at: self.counter });
    }

    /// Hears YES number `number` of the peer at `ix`, whose distance and class are up to date. One
    /// that the peer has withdrawn or repeated since changes nothing.
    pub fn hear_yes(
        &mut self,
        rules: &ViewRules,
        ix: usize,
        number: u32,
        say: impl FnMut(&Peer, Say),
    ) {
        if number <= self.peers[ix].seen {
            return;
        }
        self.answer(rules, ix, number, say);
    }

    /// Answers the standing YES `number` of the peer at `ix`.
    pub fn answer(
        &mut self,
        rules: &ViewRules,
        ix: usize,
        number: u32,
        mut say: impl FnMut(&Peer, Say),
    ) {
        let thr = self.thr(rules);
        let key = self.key(rules, &self.peers[ix]);
        let p = &mut self.peers[ix];
        let wanted = key < thr || (p.mine != 0 && key <= thr);
        (p.seen, p.wanted) = (number, true);
        p.owed = false;
        self.stirred = true;
        if !wanted {
            return self.refuse(ix, say);
        }
        self.make_room(rules, ix, &mut say);
        if self.peers[ix].mine == 0 {
            self.ask(ix, &mut say);
        }
        self.withdraw_hopeless(rules, ix, say);
    }

    /// Hears from the peer at `ix` NO to the YES number `echo`, said when its counter was `at`.
    pub fn hear_no(&mut self, ix: usize, echo: u32, at: u32) -> Heard {
        self.stirred = true;
        let p = &mut self.peers[ix];
        let cancels = p.mine != 0 && p.mine == echo;
        if p.his() > at {
            if !cancels {
                return Heard::NothingLost;
            }
            p.mine = 0;
            return Heard::Overtaken;
        }
        let was_linked = p.linked();
        p.wanted = false;
        p.seen = p.seen.max(at);
        if cancels {
            p.mine = 0;
            p.owed = true;
        }
        if cancels || was_linked { Heard::Lost } else { Heard::NothingLost }
    }

    /// Refuses the worst link other than `keep` while a link with `keep` would be one too many.
    fn make_room(&mut self, rules: &ViewRules, keep: usize, say: &mut impl FnMut(&Peer, Say)) {
        let others = |(i, p): &(usize, &Peer)| *i != keep && p.linked();
        while self.peers.iter().enumerate().filter(others).count() >= rules.cap {
            let worst = self
                .peers
                .iter()
                .enumerate()
                .filter(others)
                .max_by_key(|(_, p)| self.key(rules, p))
                .map(|(i, _)| i);
            let Some(worst) = worst else { return };
            self.refuse(worst, &mut *say);
        }
    }

    /// Takes back requests that a new link has made hopeless.
    fn withdraw_hopeless(
        &mut self,
        rules: &ViewRules,
        keep: usize,
        mut say: impl FnMut(&Peer, Say),
    ) {
        let thr = self.thr(rules);
        if thr == Key::WORST {
            return;
        }
        for i in 0..self.peers.len() {
            let p = &self.peers[i];
            if i != keep && p.asked() && self.key(rules, p) > thr {
                self.refuse(i, &mut say);
            }
        }
    }
}

#[cfg(test)]
mod tests;
