//! Building clusters anew, from the positions of now and the pairs that are shown in a shell.
//!
//! Threads first find in which cells the entities are, each those of some clusters of before. Then each
//! builds the clusters of a range of cells, and at last pairs those of a stripe.

use std::ops::Range;

use super::pairing::STRIPES;
use super::sights::{Carried, Carry};
use super::{Cell, Classes, Cluster, Clusters, GROUP, NO_SEAT, NOBODY, Seat, Sights, Stripe};
use super::{State, View, each, each_bit, lanes, lanes::Lanes, share};
use crate::interest::world::share::share_range;
use crate::scene::Pos;
use crate::scene::workers;

/// Clusters, or loose entities, that are worth a thread: about 0.1 ms.
const LEAST: usize = 500;

/// Smallest side of a cell, centimetres.
const LEAST_SIDE_CM: i32 = 1_000;

/// An entity that gets a seat. Order: by cell, then class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Guest {
    key: u64,
    class: u16,
    slot: u32,
    x: i32,
    z: i32,
}

impl Guest {
    fn place(&self) -> (u64, u16) {
        (self.key, self.class)
    }
}

/// Entities by their cells.
#[derive(Debug, Default)]
struct Guests {
    /// Those that stayed in their cell, in its order, and the others: both sorted, apart from the
    /// order of the former within a cell and class.
    kept: Vec<Guest>,
    moved: Vec<Guest>,
}

/// The clusters of a range of cells.
#[derive(Debug, Default)]
struct Built {
    cells: Vec<Cell>,
    clusters: Vec<Cluster>,
    lanes: Vec<Lanes>,
}

impl Clusters {
    pub fn rebuild(&mut self, view: View) {
        let carried = self.gather(view);
        self.lay_out(view.classes);
        self.reached2 = 0;
        let is_much = view.population >= 2 * LEAST * GROUP;
        self.build_all((view, is_much));
        self.pair_all((view, is_much), carried);
    }

    /// Fits skin and cells to the usual leave radius. There must be no clusters, or new ones.
    pub fn lay_out(&mut self, classes: &Classes) {
        self.base_cm = classes.usual_cm();
        self.skin_cm = (self.base_cm / 8).max(16);
        let long = self.longest_side() / 65_535 + 1;
        self.side_cm = (self.base_cm + 2 * self.skin_cm + 2).max(LEAST_SIDE_CM).max(long);
    }

    fn longest_side(&self) -> i32 {
        let g = self.ground;
        g.x1.abs_diff(g.x0).max(g.z1.abs_diff(g.z0)) as i32
    }

    /// All pairs that are shown in the shell between the radii, in parts.
    fn gather(&mut self, view: View) -> Vec<Vec<Carried>> {
        let threads = (view.workers, self.is_much());
        let Clusters { stripes, lanes, clusters, loose, .. } = self;
        let mut parts = each(threads, stripes, |_, Stripe { duos, links, .. }| {
            let sights =
                Sights { links, lanes, clusters, states: view.states, classes: view.classes };
            lanes::run(Carry { sights, duos })
        });
        let is_inside = |observer: u32, subject: u32| {
            let (a, b) = (&view.states[observer as usize], &view.states[subject as usize]);
            let height = a.pos.y.abs_diff(b.pos.y);
            super::radii(view.classes, a.class, b.class)
                .is_some_and(|radii| radii.holds(a.pos.dist2(b.pos), height, false))
        };
        parts.extend(share((view.workers, LEAST), loose, |_, part| {
            let pairs = part.iter().flat_map(|one| {
                let sees = one.sees.iter().map(|subject| (one.slot, *subject));
                sees.chain(one.seen_by.iter().map(|observer| (*observer, one.slot)))
            });
            let in_shell = pairs.filter(|(observer, subject)| !is_inside(*observer, *subject));
            in_shell.map(|(observer, subject)| Carried::new(observer, subject, false)).collect()
        }));
        parts
    }

    /// Puts every entity into a cluster.
    fn build_all(&mut self, (view, is_much): (View, bool)) {
        let guests = self.guests(view);
        let mut ranges = self.ranges(&guests);
        let built = each((view.workers, is_much), &mut ranges, |_, keys| Built::of(&guests, keys));
        self.loose.clear();
        self.clusters.clear();
        self.lanes.clear();
        self.cells.clear();
        for mut part in built {
            let (cells, clusters) = (self.cells.len() as u32, self.clusters.len() as u32);
            part.cells.iter_mut().for_each(|cell| cell.first += clusters);
            part.clusters.iter_mut().for_each(|cluster| cluster.cell += cells);
            self.cells.append(&mut part.cells);
            self.clusters.append(&mut part.clusters);
            self.lanes.append(&mut part.lanes);
        }
        let is_wide =
            |cluster: &u32| self.is_wide(view.classes, self.clusters[*cluster as usize].class);
        let all = 0..self.clusters.len() as u32;
        let sees_far = view.classes.most_cm() > self.base_cm;
        self.wides = all.filter(|cluster| sees_far && is_wide(cluster)).collect();
        self.seat_all((view, is_much));
    }

    /// Finds the seats of all entities. Each thread has those of a range of slots.
    fn seat_all(&mut self, (view, is_much): (View, bool)) {
        let Clusters { seats, clusters, .. } = self;
        let mut parts = vec![(); if is_much { view.workers.threads().max(1) } else { 1 }];
        workers::share(view.workers, seats, &mut parts, |(), first, seats| {
            seats.fill(NO_SEAT);
            for (at, cluster) in clusters.iter().enumerate() {
                each_bit(cluster.live.into(), |lane| {
                    let slot = cluster.slots[lane as usize] as usize;
                    if let Some(seat) = seats.get_mut(slot.wrapping_sub(first)) {
                        let Pos { x, z, .. } = view.states[slot].pos;
                        *seat = Seat { x, z, lane: (at * GROUP) as u32 + lane };
                    }
                });
            }
        });
    }

    /// All entities, in parts.
    fn guests(&self, view: View) -> Vec<Guests> {
        let guest = |slot: u32, State { pos, class, plane }: State| Guest {
            key: self.key(plane, pos.x, pos.z),
            class,
            slot,
            x: pos.x,
            z: pos.z,
        };
        let mut parts = share_range((view.workers, LEAST), self.clusters.len(), |range| {
            let mut part = Guests::default();
            for cluster in &self.clusters[range] {
                let key = self.cells[cluster.cell as usize].key;
                each_bit(cluster.live.into(), |lane| {
                    let slot = cluster.slots[lane as usize];
                    let guest = guest(slot, view.states[slot as usize]);
                    if guest.key == key { &mut part.kept } else { &mut part.moved }.push(guest);
                });
            }
            part.moved.sort_unstable();
            part
        });
        parts.extend(share_range((view.workers, LEAST), self.loose.len(), |range| {
            let slots = self.loose[range].iter().map(|one| one.slot);
            let states = slots.map(|slot| (slot, view.states[slot as usize]));
            let present = states.filter(|(_, state)| state.class != NOBODY);
            let mut moved: Vec<_> = present.map(|(slot, state)| guest(slot, state)).collect();
            moved.sort_unstable();
            Guests { kept: Vec::new(), moved }
        }));
        parts
    }

    /// Ranges of the keys of cells with about as many entities each, in order.
    fn ranges(&self, guests: &[Guests]) -> Vec<Range<u64>> {
        let before = self.clusters.iter().map(|cluster| self.cells[cluster.cell as usize].key);
        let mut keys: Vec<u64> = before.collect();
        if keys.is_empty() {
            keys = guests.iter().flat_map(|part| &part.moved).map(|guest| guest.key).collect();
            keys.sort_unstable();
        }
        let step = keys.len().div_ceil(STRIPES).max(1);
        let mut starts: Vec<u64> = keys.into_iter().step_by(step).skip(1).collect();
        starts.dedup();
        let ends = starts.iter().copied().chain([u64::MAX]);
        let starts = [0].into_iter().chain(starts.iter().copied());
        starts.zip(ends).map(|(start, end)| start..end).collect()
    }
}

impl Built {
    fn of(parts: &[Guests], keys: &Range<u64>) -> Built {
        let here = |guests: &[Guest]| {
            let place = |key: u64| guests.partition_point(|guest| guest.key < key);
            place(keys.start)..place(keys.end)
        };
        let kept = parts.iter().flat_map(|part| &part.kept[here(&part.kept)]);
        let moved = parts.iter().flat_map(|part| &part.moved[here(&part.moved)]);
        let (kept, mut moved): (Vec<_>, Vec<_>) =
            (kept.copied().collect(), moved.copied().collect());
        moved.sort_unstable();
        let (mut kept, mut moved) = (&kept[..], &moved[..]);
        let (mut built, mut guests) = (Built::default(), Vec::new());
        // The two are sorted: take what is next in both.
        while let Some(place) =
            kept.first().into_iter().chain(moved.first()).map(Guest::place).min()
        {
            guests.clear();
            for list in [&mut kept, &mut moved] {
                let end = list.iter().take_while(|guest| guest.place() == place).count();
                guests.extend_from_slice(&list[..end]);
                *list = &list[end..];
            }
            if built.cells.last().is_none_or(|cell| cell.key != place.0) {
                built.cells.push(Cell { key: place.0, first: built.clusters.len() as u32 });
            }
            built.split(place.1, &mut guests);
        }
        built
    }

    /// Makes clusters of entities of one cell and class, by halves along the longer axis.
    fn split(&mut self, class: u16, guests: &mut [Guest]) {
        let bounds = bounds(guests);
        if guests.len() <= GROUP {
            self.make(class, guests, bounds);
            return;
        }
        let middle = guests.len().div_ceil(2 * GROUP) * GROUP;
        let [x0, z0, x1, z1] = bounds;
        if x1.abs_diff(x0) > z1.abs_diff(z0) {
            guests.select_nth_unstable_by_key(middle, |guest| guest.x);
        } else {
            guests.select_nth_unstable_by_key(middle, |guest| guest.z);
        }
        let (one, other) = guests.split_at_mut(middle);
        self.split(class, one);
        self.split(class, other);
    }

    fn make(&mut self, class: u16, guests: &[Guest], bounds: [i32; 4]) {
        let (mut lanes, mut slots) = (Lanes::default(), [guests[0].slot; GROUP]);
        for (lane, slot) in slots.iter_mut().enumerate() {
            // Lanes without an entity repeat the first one.
            let guest = guests.get(lane).unwrap_or(&guests[0]);
            *slot = guest.slot;
            lanes.set(lane, Pos::ground(guest.x, guest.z));
        }
        let live = ((1_u16 << guests.len()) - 1) as u8;
        let cell = (self.cells.len() - 1) as u32;
        self.clusters.push(Cluster { slots, class, live, cell, bounds });
        self.lanes.push(lanes);
    }
}

fn bounds(guests: &[Guest]) -> [i32; 4] {
    let none = [i32::MAX, i32::MAX, i32::MIN, i32::MIN];
    guests.iter().fold(none, |[x0, z0, x1, z1], guest| {
        [x0.min(guest.x), z0.min(guest.z), x1.max(guest.x), z1.max(guest.z)]
    })
}
