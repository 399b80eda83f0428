//! Circles with hysteresis, by groups of eight.
//!
//! Now and then the entities are sorted into cells, and those of one class that stand together form
//! clusters of at most eight ([`build`]). An entity may move by the *skin* from where it was then, so
//! the boxes of two clusters, grown by it, bound the distances of their entities until the next time.
//! Pairs of clusters whose distances can cross a radius are kept, with a bit for each pair of
//! entities and direction: whether the one is shown to the other. A tick computes these bits anew, 64
//! pairs at a time ([`lanes`]); what differs is an event. Of all other pairs of clusters nothing can
//! change: a pair is shown if it is within the enter radius.
//!
//! Entities that come, go, leave their skin, or change plane or class are *loose* ([`loose`]): each
//! has lists of the entities that it sees and is seen by, and searches its neighbourhood in every
//! tick. When too many are loose, or near the end of their skin, all are sorted anew.
//!
//! Clusters are numbered by their places, and the pairs of each *stripe* of them are kept together: a
//! thread takes one stripe after the other, and none waits for another. Skin and cells fit the radii
//! of most observers. Few observers may see farther: their clusters are *wide* ([`near`]), and are
//! compared with more cells.

mod build;
mod lanes;
mod loose;
mod near;
mod pairing;
mod sights;

use self::lanes::Lanes;
use self::loose::Loose;
use self::sights::{Duo, Flip, Link, Sights};
use super::changes::{Change, Changes, Found, Room};
use super::classes::{Classes, NOBODY};
use super::rules::{Radii, Reach};
use super::share::{each, share};
use super::{State, View};
use crate::scene::{Pos, Rect};

/// In no cluster.
const LOOSE: u32 = u32::MAX;

/// Entities per cluster.
const GROUP: usize = 8;

/// Pairs of clusters that are worth several threads: about 0.2 ms.
const LEAST: usize = 20_000;

/// Where an entity is in the clusters.
#[derive(Debug, Clone, Copy)]
struct Seat {
    /// Where it was when they were built.
    x: i32,
    z: i32,
    /// Cluster times [`GROUP`] plus lane, or [`LOOSE`].
    lane: u32,
}

const NO_SEAT: Seat = Seat { x: 0, z: 0, lane: LOOSE };

/// A cluster, apart from its positions.
#[derive(Debug, Clone, Copy)]
struct Cluster {
    slots: [u32; GROUP],
    class: u16,
    /// A bit for each lane with an entity.
    live: u8,
    cell: u32,
    /// Bounds when it was built: least x, least z, largest x, largest z.
    bounds: [i32; 4],
}

fn radii(classes: &Classes, observer: u16, subject: u16) -> Option<Radii> {
    match classes.reach(observer, subject)? {
        Reach::Circle(radii) => Some(radii),
        Reach::Rings(_) | Reach::All => None,
    }
}

/// The clusters of a cell.
#[derive(Debug, Clone, Copy)]
struct Cell {
    /// Plane, row and column; these two are less than 65,535.
    key: u64,
    first: u32,
}

/// The kept pairs of some clusters with these and later ones.
#[derive(Debug, Clone, Default)]
struct Stripe {
    duos: Vec<Duo>,
    /// Where the pairs of each cluster end.
    ends: Vec<u32>,
    links: Vec<Link>,
}

impl Stripe {
    /// The number of the pair of its cluster `at` with `b`.
    fn find(&self, at: usize, b: u32) -> Option<usize> {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]) as usize;
        let duos = &self.duos[start..self.ends[at] as usize];
        Some(start + duos.binary_search_by_key(&b, |duo| duo.b).ok()?)
    }
}

#[derive(Debug, Clone, Default)]
pub struct Clusters {
    ground: Rect,
    /// Side of a cell, centimetres.
    side_cm: i32,
    skin_cm: i32,
    seats: Vec<Seat>,
    lanes: Vec<Lanes>,
    clusters: Vec<Cluster>,
    cells: Vec<Cell>,
    /// Clusters that see farther than the cells are long, ascending.
    wides: Vec<u32>,
    /// The longest leave radius of clusters that are not wide, centimetres.
    base_cm: i32,
    /// The kept pairs of clusters by the first one.
    stripes: Vec<Stripe>,
    /// Clusters per stripe.
    stripe_len: u32,
    /// Sorted by slot.
    loose: Vec<Loose>,
    /// Entities that become loose when the tick ends.
    leaving: Vec<u32>,
    /// Moves in this tick that ended near the end of a skin.
    far: usize,
    /// Square of the farthest that an entity was from its seat, square centimetres.
    reached2: i64,
    /// What becomes of the loose entities when the tick is committed.
    next: Vec<Loose>,
    /// Changes that the tick in hand has made in the bits of pairs.
    flipped: usize,
    /// No class sees another one: there are no clusters, and nobody is loose.
    rests: bool,
}

impl Clusters {
    pub fn new(ground: Rect) -> Clusters {
        Clusters { ground, side_cm: 1_000, skin_cm: 1, stripe_len: 1, ..Clusters::default() }
    }

    #[inline]
    pub fn moved(&mut self, slot: u32, pos: Pos) {
        let seat = self.seats[slot as usize];
        if seat.lane == LOOSE {
            return;
        }
        let (dx, dz) = (i64::from(pos.x) - i64::from(seat.x), i64::from(pos.z) - i64::from(seat.z));
        let (d2, skin) = (dx * dx + dz * dz, i64::from(self.skin_cm));
        if d2 > skin * skin {
            self.leaving.push(slot);
            return;
        }
        self.reached2 = self.reached2.max(d2);
        self.far += usize::from(4 * d2 > 3 * skin * skin);
        let lane = seat.lane as usize;
        self.lanes[lane / GROUP].set(lane % GROUP, pos);
    }

    pub fn touched(&mut self, slot: u32) {
        if slot as usize >= self.seats.len() {
            self.seats.resize(slot as usize + 1, NO_SEAT);
        }
        self.leaving.push(slot);
    }

    /// Finds what changes. [`Clusters::commit`] or [`Clusters::undo`] must follow.
    pub fn tick(&mut self, view: View, room: &Room, changes: &mut Changes) {
        if self.rests && !view.classes.have_reach() {
            return;
        }
        if std::mem::take(&mut self.rests) {
            // As if all had come.
            self.leaving = (0..view.states.len() as u32).collect();
        }
        if self.clusters.is_empty() {
            self.lay_out(view.classes);
        }
        self.loosen(view);
        self.flip(view, room, changes);
        self.flipped = changes.len();
        self.look_around(view, room, changes);
    }

    /// The tick has ended.
    pub fn commit(&mut self, view: View) {
        if !view.classes.have_reach() {
            // Nobody is shown any more, and nobody will be.
            if !self.rests {
                let seats = vec![NO_SEAT; self.seats.len()];
                *self = Clusters { seats, rests: true, ..Clusters::new(self.ground) };
            }
            self.leaving.clear();
            return;
        }
        self.loose = std::mem::take(&mut self.next);
        self.loose.retain(|one| view.states[one.slot as usize].class != NOBODY);
        let far = std::mem::take(&mut self.far);
        if far + self.loose.len() > 4 + view.population / 32 {
            self.rebuild(view);
        }
    }

    /// Nothing has changed: the bits of pairs become what they were.
    pub fn undo(&mut self, changes: &Changes) {
        self.next = Vec::new();
        for change in changes.iter().take(self.flipped) {
            let Some(((stripe, at), bit, is_there)) = self.bit_of(change) else { continue };
            let duo = &mut self.stripes[stripe].duos[at];
            let bits = if is_there { &mut duo.there } else { &mut duo.back };
            *bits ^= 1 << bit;
        }
    }

    /// The bit of a pair of entities in clusters: pair of clusters, bit, and whether the observer is
    /// in the first one.
    fn bit_of(&self, change: Change) -> Option<((usize, usize), u32, bool)> {
        let lane = |slot: u32| self.seats[slot as usize].lane;
        let (observer, subject) = (lane(change.observer()), lane(change.subject()));
        let (a, b) = (observer.min(subject), observer.max(subject));
        let group = GROUP as u32;
        let duo = self.duo(a / group, b / group)?;
        Some((duo, group * (b % group) + a % group, observer < subject))
    }

    /// The stripe of a kept pair of clusters, and its number there.
    fn duo(&self, a: u32, b: u32) -> Option<(usize, usize)> {
        let stripe = (a / self.stripe_len) as usize;
        let at = (a % self.stripe_len) as usize;
        Some((stripe, self.stripes.get(stripe)?.find(at, b)?))
    }

    /// Whether several threads are worth it for all kept pairs.
    fn is_much(&self) -> bool {
        self.stripes.iter().map(|stripe| stripe.duos.len()).sum::<usize>() >= LEAST
    }

    /// Computes the bits of all pairs of clusters that may have changed.
    fn flip(&mut self, view: View, room: &Room, changes: &mut Changes) {
        let threads = (view.workers, self.is_much());
        let Clusters { stripes, lanes, clusters, reached2, .. } = self;
        let reached_cm = reached2.isqrt();
        let parts = each(threads, stripes, |_, Stripe { duos, links, .. }| {
            let sights =
                Sights { links, lanes, clusters, states: view.states, classes: view.classes };
            lanes::run(Flip { sights, duos, reached_cm, found: Found::new(room) })
        });
        parts.into_iter().for_each(|part| changes.add(part));
    }

    fn key(&self, plane: i32, x: i32, z: i32) -> u64 {
        let along = |at: i32, from: i32| at.abs_diff(from) / self.side_cm.unsigned_abs();
        let (column, row) = (along(x, self.ground.x0), along(z, self.ground.z0));
        u64::from(plane as u32) << 32 | u64::from(row << 16 | column)
    }

    fn key_of(&self, state: &State) -> u64 {
        self.key(state.plane, state.pos.x, state.pos.z)
    }

    fn first_of(&self, cell: usize) -> u32 {
        self.cells.get(cell).map_or(self.clusters.len() as u32, |cell| cell.first)
    }
}

/// Calls `visit` with the number of each bit.
#[inline]
fn each_bit(mut bits: u64, mut visit: impl FnMut(u32)) {
    while bits != 0 {
        visit(bits.trailing_zeros());
        bits &= bits - 1;
    }
}
