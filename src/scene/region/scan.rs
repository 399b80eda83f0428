//! Who is in range of whom: the reading side of the index.

use super::bodies::{Bodies, Body, NO_SLOT, TAG_BONDED, tag_range};
use super::viewer::{Seen, Viewer};
use crate::scene::geo::{dist_cm, dist2};
use crate::scene::index::{Grid, Patch};
use crate::scene::views::{Key, NO_BOND, Peer, ViewRules};
use crate::scene::{Kind, Plane, Visibility};

/// A player in range that is neither linked nor asked.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    pub key: Key,
    pub slot: u32,
    pub dist_cm: u32,
    pub class: u8,
    pub ring: u8,
}

/// Buffers that are used again for every player.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Per slot: the stamp of the viewer that knows it. Saves a set per viewer.
    marks: Vec<u32>,
    stamp: u32,
    pub candidates: Vec<Candidate>,
    /// Viewers, by index.
    pub interested: Vec<u32>,
}

impl Scratch {
    fn begin(&mut self, slots: usize) {
        if self.marks.len() < slots {
            self.marks.resize(slots, 0);
        }
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.marks.fill(0);
            self.stamp = 1;
        }
        self.candidates.clear();
    }

    #[inline]
    fn mark(&mut self, slot: u32) {
        self.marks[slot as usize] = self.stamp;
    }

    #[inline]
    fn known(&self, slot: u32) -> bool {
        self.marks[slot as usize] == self.stamp
    }
}

/// The ring in which `other` is for `me`, if it is in range; `known` ones stay in a circle until they
/// are beyond its leave radius. Planes are not compared.
#[inline]
pub fn in_range(v: &Visibility, me: &Body, other: &Body, known: bool) -> Option<u32> {
    let ring = me.patch.ring(other.patch);
    let d2 = me.pos.dist2(other.pos);
    let inside = v.in_range(ring, d2, me.range().and(other.range()), known);
    inside.then_some(ring)
}

/// A ring's number as viewers keep it; from FAR on all are alike.
#[inline]
pub fn small_ring(ring: u32) -> u8 {
    ring.min(2) as u8
}

/// Whether two entities are of one plane, on which things are seen.
#[inline]
fn same_plane(bodies: &Bodies, a: &Body, b: &Body) -> bool {
    a.plane_ix == b.plane_ix && bodies.planes[a.plane_ix as usize].plane != Plane::LIMBO
}

/// Brings the peer's slot, distance, class and ring up to date. False when it is out of range or
/// gone.
#[inline]
pub fn refresh(
    bodies: &Bodies,
    vis: &Visibility,
    me_slot: u32,
    me: &Body,
    peer: &mut Peer,
) -> bool {
    if peer.slot == NO_SLOT || bodies.hot[peer.slot as usize].id != peer.id {
        match bodies.slot(peer.id) {
            Some(slot) => peer.slot = slot,
            None => return false,
        }
    }
    let other = &bodies.hot[peer.slot as usize];
    if !same_plane(bodies, me, other) {
        return false;
    }
    let Some(ring) = in_range(vis, me, other, true) else { return false };
    peer.ring = small_ring(ring);
    peer.dist_cm = dist_cm(me.pos.dist2(other.pos));
    if me.tag & other.tag & TAG_BONDED != 0 {
        peer.class = bodies.bond_class(me_slot, peer.slot);
    } else {
        peer.class = NO_BOND;
    }
    true
}

/// Collects into `scratch.candidates` the players in range that beat the viewer's threshold, and whose
/// own threshold the viewer beats. Those marked by [`mark_peers`] are left out.
pub fn candidates(
    bodies: &Bodies,
    vis: &Visibility,
    rules: &ViewRules,
    viewers: &[Viewer],
    ix: usize,
    scratch: &mut Scratch,
) {
    let Viewer { slot: me_slot, thr, .. } = viewers[ix];
    let me = &bodies.hot[me_slot as usize];
    let index = &bodies.planes[me.plane_ix as usize];
    if index.plane == Plane::LIMBO {
        return;
    }
    let Some(grid) = &index.grids[usize::from(Kind::PLAYER.0)] else { return };
    // A pair without a bond can only beat the threshold when it is nearer than this.
    let near2 = nearer_than(rules, thr);
    let consider = |slot: u32, tag: u32, d2: u64, ring: u32| {
        let other = &bodies.hot[slot as usize];
        let class = match me.tag & tag & TAG_BONDED {
            0 => NO_BOND,
            _ => bodies.bond_class(me_slot, slot),
        };
        let dist_cm = dist_cm(d2);
        let rank = rules.rank(class, dist_cm, false);
        let key = Key::of(rank, me.id, other.id);
        // The other's threshold is a whole key where it lives here, and a rank where it is a ghost.
        let theirs = || viewers.get(other.viewer as usize).is_none_or(|v| key < v.thr);
        let wanted = key < thr && (rank < other.thr || (rank == other.thr && theirs()));
        wanted.then_some(Candidate { key, slot, dist_cm, class, ring: small_ring(ring) })
    };
    let Scratch { marks, stamp, candidates, .. } = scratch;
    let known = |slot: u32| marks[slot as usize] == *stamp;
    neighbourhood(vis, grid, me, |ring, entries| {
        for e in entries {
            let d2 = dist2(me.pos.x, me.pos.z, e.x, e.z);
            if d2 > near2 && me.tag & e.tag & TAG_BONDED == 0 {
                continue;
            }
            if entry_in_range(vis, me, ring, d2, e.tag) && e.slot != me_slot && !known(e.slot) {
                candidates.extend(consider(e.slot, e.tag, d2, ring));
            }
        }
    });
    // Whoever was displaced since the last frame is still in range up to the leave radius.
    for p in viewers[ix].registers.peers.iter().filter(|p| p.shown && p.mine == 0) {
        let other = &bodies.hot[p.slot as usize];
        let d2 = me.pos.dist2(other.pos);
        let ring = me.patch.ring(other.patch);
        if !known(p.slot) && !entry_in_range(vis, me, ring, d2, other.tag) {
            candidates.extend(consider(p.slot, other.tag, d2, ring));
        }
    }
}

/// Marks the viewer's peers that are not to be candidates: whom it has asked, and ghosts that owe it
/// the next YES. Of a player that lives here the threshold is known exactly, so that asking it again
/// cannot be in vain, whoever said NO last.
pub fn mark_peers(bodies: &Bodies, viewer: &Viewer, scratch: &mut Scratch) {
    scratch.begin(bodies.hot.len());
    let is_ghost = |slot: u32| bodies.hot[slot as usize].viewer == u32::MAX;
    for p in viewer.registers.peers.iter().filter(|p| p.mine != 0 || (p.owed && is_ghost(p.slot))) {
        scratch.mark(p.slot);
    }
}

/// Collects into `scratch.interested` the players that live here, in range of the ghost at `slot`,
/// for whom it beats their threshold as they beat its.
pub fn interested(
    bodies: &Bodies,
    vis: &Visibility,
    rules: &ViewRules,
    viewers: &[Viewer],
    slot: u32,
    scratch: &mut Scratch,
) {
    let ghost = &bodies.hot[slot as usize];
    let index = &bodies.planes[ghost.plane_ix as usize];
    let Some(grid) = &index.grids[usize::from(Kind::PLAYER.0)] else { return };
    let within = match *vis {
        // Whoever is shown the ghost has it in range for longer.
        Visibility::Circle { leave_cm, .. } => Visibility::Circle { enter_cm: leave_cm, leave_cm },
        Visibility::Patches | Visibility::All => *vis,
    };
    neighbourhood(&within, grid, ghost, |ring, entries| {
        for e in entries {
            let other = &bodies.hot[e.slot as usize];
            let Some(viewer) = viewers.get(other.viewer as usize) else { continue };
            let d2 = dist2(ghost.pos.x, ghost.pos.z, e.x, e.z);
            let shown = || {
                viewer.registers.find(ghost.id).is_some_and(|at| viewer.registers.peers[at].shown)
            };
            let near = entry_in_range(vis, ghost, ring, d2, e.tag)
                || (entry_in_range(&within, ghost, ring, d2, e.tag) && shown());
            if !near {
                continue;
            }
            let class = match ghost.tag & e.tag & TAG_BONDED {
                0 => NO_BOND,
                _ => bodies.bond_class(slot, e.slot),
            };
            let rank = rules.rank(class, dist_cm(d2), false);
            if rank <= ghost.thr && Key::of(rank, ghost.id, other.id) < viewer.thr {
                scratch.interested.push(other.viewer);
            }
        }
    });
}

fn nearer_than(rules: &ViewRules, thr: Key) -> u64 {
    let no_bond_at_0 = rules.rank(NO_BOND, 0, false);
    match thr.rank.checked_sub(no_bond_at_0) {
        // A centimetre more, since distances are rounded down.
        Some(cm) if cm < 1 << 31 => (cm + 1) * (cm + 1),
        Some(_) => u64::MAX,
        // The worst entry has a bond, or is a link within the margin of no distance at all.
        None => 0,
    }
}

#[inline]
fn entry_in_range(vis: &Visibility, me: &Body, ring: u32, d2: u64, tag: u32) -> bool {
    match *vis {
        Visibility::Patches => me.range().and(tag_range(tag)).has_ring(ring),
        Visibility::Circle { enter_cm, .. } => {
            d2 <= (i64::from(enter_cm) * i64::from(enter_cm)) as u64
        }
        Visibility::All => true,
    }
}

#[inline]
fn neighbourhood(
    vis: &Visibility,
    grid: &Grid,
    me: &Body,
    mut visit: impl FnMut(u32, &[crate::scene::index::Entry]),
) {
    let center = grid.patch_of(me.pos);
    match *vis {
        Visibility::Patches => {
            let Some(reach) = me.range().reach() else { return };
            grid.rings(center, reach, visit);
        }
        Visibility::Circle { enter_cm, .. } => {
            grid.rings(center, grid.rings_of_radius(enter_cm), visit);
        }
        Visibility::All => grid.all(|at: Patch, entries| visit(center.ring(at), entries)),
    }
}

/// Brings what the viewer sees beside players up to date.
pub fn see_others(bodies: &Bodies, vis: &Visibility, viewer: &mut Viewer, scratch: &mut Scratch) {
    let me = &bodies.hot[viewer.slot as usize];
    let index = &bodies.planes[me.plane_ix as usize];
    let others = index.grids.iter().enumerate().skip(1);
    let populated = |g: &Option<Grid>| g.as_ref().is_some_and(|g| !g.is_empty());
    if viewer.seen.is_empty() && !others.clone().any(|(_, g)| populated(g)) {
        return;
    }
    scratch.begin(bodies.hot.len());
    let mut ix = 0;
    while ix < viewer.seen.len() {
        if still_seen(bodies, vis, me, &mut viewer.seen[ix]) {
            scratch.mark(viewer.seen[ix].slot);
            ix += 1;
        } else {
            viewer.drop_seen(ix);
        }
    }
    if index.plane == Plane::LIMBO {
        return;
    }
    for grid in others.filter_map(|(_, g)| g.as_ref()).filter(|g| !g.is_empty()) {
        neighbourhood(vis, grid, me, |ring, entries| {
            for e in entries {
                let d2 = dist2(me.pos.x, me.pos.z, e.x, e.z);
                if entry_in_range(vis, me, ring, d2, e.tag) && !scratch.known(e.slot) {
                    let id = bodies.hot[e.slot as usize].id;
                    let ring = small_ring(ring);
                    viewer.seen.push(Seen { id, slot: e.slot, sent: 0, ring, shown: false });
                }
            }
        });
    }
}

fn still_seen(bodies: &Bodies, vis: &Visibility, me: &Body, seen: &mut Seen) -> bool {
    if seen.slot == NO_SLOT || bodies.hot[seen.slot as usize].id != seen.id {
        match bodies.slot(seen.id) {
            Some(slot) => seen.slot = slot,
            None => return false,
        }
    }
    let other = &bodies.hot[seen.slot as usize];
    if !same_plane(bodies, me, other) {
        return false;
    }
    let Some(grid) = &bodies.planes[me.plane_ix as usize].grids[usize::from(other.kind.0)] else {
        return false;
    };
    let ring = grid.patch_of(me.pos).ring(other.patch);
    let inside = match *vis {
        Visibility::Patches => me.range().and(other.range()).has_ring(ring),
        Visibility::Circle { leave_cm, .. } => {
            me.pos.dist2(other.pos) <= (i64::from(leave_cm) * i64::from(leave_cm)) as u64
        }
        Visibility::All => true,
    };
    seen.ring = small_ring(ring);
    inside
}
