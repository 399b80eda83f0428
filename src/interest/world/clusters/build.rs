//! Building clusters anew, from the positions of now and the pairs that are shown in a shell.

use super::sights::{Carried, Carry};
use super::{Cell, Cluster, Clusters, GROUP, NO_SEAT, NOBODY, Seat, Sights};
use super::{State, View, each_bit, lanes, lanes::Lanes, share};

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

impl Clusters {
    pub fn rebuild(&mut self, view: View) {
        let carried = self.gather(view);
        self.lay_out(view.classes.most_cm());
        self.reached2 = 0;
        self.seat_all(view);
        self.pair_all(view, carried);
    }

    /// Fits skin and cells to the longest leave radius. There must be no clusters, or new ones.
    pub fn lay_out(&mut self, most_cm: i32) {
        self.skin_cm = (most_cm / 8).max(16);
        let long = self.longest_side() / 65_535 + 1;
        self.side_cm = (most_cm + 2 * self.skin_cm + 2).max(LEAST_SIDE_CM).max(long);
    }

    fn longest_side(&self) -> i32 {
        let g = self.ground;
        g.x1.abs_diff(g.x0).max(g.z1.abs_diff(g.z0)) as i32
    }

    /// All pairs that are shown in the shell between the radii.
    fn gather(&mut self, view: View) -> Vec<Carried> {
        let Clusters { duos, links, lanes, clusters, loose, .. } = self;
        let sights = Sights { links, lanes, clusters, states: view.states, classes: view.classes };
        let parts =
            share((view.workers, super::LEAST), duos, |_, duos| lanes::run(Carry { sights, duos }));
        let mut parts = parts.into_iter();
        let mut carried = parts.next().unwrap_or_default();
        parts.for_each(|part| carried.extend(part));
        let mut keep = |observer: u32, subject: u32| {
            let (a, b) = (&view.states[observer as usize], &view.states[subject as usize]);
            let height = a.pos.y.abs_diff(b.pos.y);
            let is_inside = super::radii(view.classes, a.class, b.class)
                .is_some_and(|radii| radii.holds(a.pos.dist2(b.pos), height, false));
            if !is_inside {
                carried.push(Carried::new(observer, subject, false));
            }
        };
        for one in loose.iter() {
            one.sees.iter().for_each(|subject| keep(one.slot, *subject));
            one.seen_by.iter().for_each(|observer| keep(*observer, one.slot));
        }
        carried
    }

    /// Puts every entity into a cluster.
    fn seat_all(&mut self, view: View) {
        let (kept, moved) = self.guests(view);
        self.loose.clear();
        self.seats.fill(NO_SEAT);
        self.clusters.clear();
        self.lanes.clear();
        self.cells.clear();
        let (mut kept, mut moved) = (&kept[..], &moved[..]);
        let mut guests = Vec::new();
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
            if self.cells.last().is_none_or(|cell| cell.key != place.0) {
                self.cells.push(Cell { key: place.0, first: self.clusters.len() as u32 });
            }
            self.split(place.1, &mut guests);
        }
    }

    /// All entities: those that stayed in their cell, and the others. Both lists are sorted, apart
    /// from the order within a cell and class.
    fn guests(&self, view: View) -> (Vec<Guest>, Vec<Guest>) {
        let guest = |slot: u32, State { pos, class, plane }: State| Guest {
            key: self.key(plane, pos.x, pos.z),
            class,
            slot,
            x: pos.x,
            z: pos.z,
        };
        let mut kept = Vec::with_capacity(self.clusters.len() * GROUP);
        let mut moved = Vec::with_capacity(self.loose.len());
        for cluster in &self.clusters {
            let key = self.cells[cluster.cell as usize].key;
            each_bit(cluster.live.into(), |lane| {
                let slot = cluster.slots[lane as usize];
                let guest = guest(slot, view.states[slot as usize]);
                if guest.key == key { &mut kept } else { &mut moved }.push(guest);
            });
        }
        for one in &self.loose {
            let state = view.states[one.slot as usize];
            if state.class != NOBODY {
                moved.push(guest(one.slot, state));
            }
        }
        moved.sort_unstable();
        (kept, moved)
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
        let first = (self.clusters.len() * GROUP) as u32;
        for (lane, slot) in slots.iter_mut().enumerate() {
            // Lanes without an entity repeat the first one.
            let guest = guests.get(lane).unwrap_or(&guests[0]);
            *slot = guest.slot;
            lanes.set(lane, crate::scene::Pos::ground(guest.x, guest.z));
            if lane < guests.len() {
                let seat = Seat { x: guest.x, z: guest.z, lane: first + lane as u32 };
                self.seats[guest.slot as usize] = seat;
            }
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
