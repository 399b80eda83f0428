//! Which entities of two clusters are shown to each other: the bits of a pair of clusters.

use super::lanes::{self, Lanes, Test, Work};
use super::{Change, Classes, Cluster, Found, GROUP, Radii, State, each_bit, radii};

/// Pairs of clusters of which the due ones are found at a time.
const BLOCK: usize = 256;

/// How two classes see each other.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// How the first sees the second.
    pub there: Option<Radii>,
    /// How the second sees the first.
    pub back: Option<Radii>,
    /// The squares of these radii, enter and leave; -1: no distance is within.
    most: [[i32; 2]; 2],
    /// Both see alike.
    is_even: bool,
}

impl Link {
    pub fn of(classes: &Classes, a: u16, b: u16) -> Link {
        let (there, back) = (radii(classes, a, b), radii(classes, b, a));
        let squares = |radii: Radii| [radii.enter_cm, radii.leave_cm].map(lanes::square);
        let most = [there, back].map(|radii| radii.map_or([-1; 2], squares));
        Link { there, back, most, is_even: there == back }
    }
}

/// Two clusters whose pairs may change. Bit 8 j + i stands for lane `i` of `a` and lane `j` of `b`.
#[derive(Debug, Clone, Copy)]
pub struct Duo {
    /// Which of `b` are shown to which of `a`.
    pub there: u64,
    /// Which of `a` are shown to which of `b`.
    pub back: u64,
    pub a: u32,
    pub b: u32,
    pub link: u32,
    /// Nothing changes while every entity is nearer to its seat than this, centimetres.
    pub quiet_cm: u16,
    /// Distances may be too long for short numbers, or heights matter.
    pub exact: bool,
}

/// A pair that is shown although it is not within the enter radius: a change whose bit says that the
/// observer is shown to the subject, too.
pub type Carried = Change;

/// All that the bits of a pair of clusters follow from.
#[derive(Clone, Copy)]
pub struct Sights<'a> {
    pub links: &'a [Link],
    pub lanes: &'a [Lanes],
    pub clusters: &'a [Cluster],
    pub states: &'a [State],
    pub classes: &'a Classes,
}

impl Sights<'_> {
    #[inline(never)]
    fn rare_link(&self, duo: &Duo) -> Link {
        let class = |cluster: u32| self.clusters[cluster as usize].class;
        Link::of(self.classes, class(duo.a), class(duo.b))
    }

    /// The pairs of lanes that both have an entity, each pair within one cluster once.
    #[inline]
    fn live(&self, duo: &Duo) -> u64 {
        let (a, b) = (self.clusters[duo.a as usize].live, self.clusters[duo.b as usize].live);
        let all = lanes::product(a, b);
        if duo.a == duo.b { all & lanes::TRIANGLE } else { all }
    }

    /// For each direction, the pairs within the enter radius and those within the leave radius.
    #[inline(always)]
    pub fn both(&self, duo: &Duo, test: impl Test) -> [[u64; 2]; 2] {
        match self.links.get(duo.link as usize) {
            Some(link) => self.both_of(duo, link, test),
            None => self.both_of(duo, &self.rare_link(duo), test),
        }
    }

    #[inline(always)]
    fn both_of(&self, duo: &Duo, link: &Link, test: impl Test) -> [[u64; 2]; 2] {
        if duo.exact {
            return self.both_exact(duo, link);
        }
        let (a, b) = (&self.lanes[duo.a as usize], &self.lanes[duo.b as usize]);
        let there = test(a, b, link.most[0]);
        [there, if link.is_even { there } else { test(a, b, link.most[1]) }]
    }

    #[inline(never)]
    fn both_exact(&self, duo: &Duo, link: &Link) -> [[u64; 2]; 2] {
        [link.there, link.back]
            .map(|radii| radii.map_or([0; 2], |radii| self.within_exact(duo, radii)))
    }

    fn within_exact(&self, duo: &Duo, radii: Radii) -> [u64; 2] {
        let mut bits = [0; 2];
        each_bit(self.live(duo), |bit| {
            let (a, b) = self.pair(duo, bit);
            let (a, b) = (self.states[a as usize].pos, self.states[b as usize].pos);
            for (bits, known) in bits.iter_mut().zip([false, true]) {
                *bits |= u64::from(radii.holds(a.dist2(b), a.y.abs_diff(b.y), known)) << bit;
            }
        });
        bits
    }

    #[inline(never)]
    fn report(&self, duo: &Duo, was: (u64, u64), changes: &mut Found) {
        let live = self.live(duo);
        each_bit((was.0 ^ duo.there) & live, |bit| {
            let (observer, subject) = self.pair(duo, bit);
            changes.push(Change::new(observer, subject, duo.there >> bit & 1 == 1));
        });
        each_bit((was.1 ^ duo.back) & live, |bit| {
            let (subject, observer) = self.pair(duo, bit);
            changes.push(Change::new(observer, subject, duo.back >> bit & 1 == 1));
        });
    }

    /// The slots of a pair.
    #[inline]
    fn pair(&self, duo: &Duo, bit: u32) -> (u32, u32) {
        let (a, b) = (&self.clusters[duo.a as usize], &self.clusters[duo.b as usize]);
        (a.slots[bit as usize % GROUP], b.slots[bit as usize / GROUP])
    }

    #[inline(never)]
    fn carry(&self, duo: &Duo, there: u64, back: u64, carried: &mut Vec<Carried>) {
        let live = self.live(duo);
        let (there, back) = (there & live, back & live);
        each_bit(there | back, |bit| {
            let (mut observer, mut subject) = self.pair(duo, bit);
            let [sees, is_seen] = [there, back].map(|bits| bits >> bit & 1 == 1);
            if !sees {
                (observer, subject) = (subject, observer);
            }
            carried.push(Carried::new(observer, subject, sees && is_seen));
        });
    }
}

/// Computes the bits of pairs of clusters; what differs is a change.
pub struct Flip<'a, 'r> {
    pub sights: Sights<'a>,
    pub duos: &'a mut [Duo],
    /// The farthest that an entity was from its seat, centimetres.
    pub reached_cm: i64,
    /// What was found is added here.
    pub found: Found<'r>,
}

impl<'r> Work for Flip<'_, 'r> {
    type Output = Found<'r>;

    #[inline(always)]
    fn run(self, test: impl Test) -> Found<'r> {
        let (sights, mut changes) = (self.sights, self.found);
        let mut due = [0_u16; BLOCK];
        for block in self.duos.chunks_mut(BLOCK) {
            if changes.is_over() {
                break;
            }
            // Which are due follows no pattern: a list of them is faster than a branch.
            let mut count = 0;
            for (at, duo) in block.iter().enumerate() {
                due[count] = at as u16;
                count += usize::from(i64::from(duo.quiet_cm) <= self.reached_cm);
            }
            for at in &due[..count] {
                let duo = &mut block[*at as usize];
                let [there, back] = sights.both(duo, test);
                let was = (duo.there, duo.back);
                duo.there = there[0] | (there[1] & duo.there);
                duo.back = back[0] | (back[1] & duo.back);
                if (was.0 ^ duo.there) | (was.1 ^ duo.back) != 0 {
                    sights.report(duo, was, &mut changes);
                }
            }
        }
        changes
    }
}

/// Finds the pairs that are shown in the shell between the radii.
pub struct Carry<'a> {
    pub sights: Sights<'a>,
    pub duos: &'a [Duo],
}

impl Work for Carry<'_> {
    type Output = Vec<Carried>;

    #[inline(always)]
    fn run(self, test: impl Test) -> Vec<Carried> {
        let mut carried = Vec::new();
        for duo in self.duos {
            let [there, back] = self.sights.both(duo, test);
            let (there, back) = (duo.there & !there[0], duo.back & !back[0]);
            if there | back != 0 {
                self.sights.carry(duo, there, back, &mut carried);
            }
        }
        carried
    }
}
