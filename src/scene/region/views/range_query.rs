//! Range queries: which entities are in range of a player.
//!
//! Players see each other by the scene's range, which is the same for both ends of a pair. What is not a
//! player is seen by the viewer's own sight.

use crate::scene::geo::dist_cm;
use crate::scene::index::{Grid, IndexEntry};
use crate::scene::mutants::{self, Mutant};
use crate::scene::region::entities::{EntityStore, Location, NO_SLOT, TAG_BONDED, nearer_than};
use crate::scene::region::views::{Seen, Viewer};
use crate::scene::views::{Key, NO_BOND, Registers, ViewRules};
use crate::scene::{Kind, PatchRule, Plane, Pos, RangeSet, SceneSpec, TickStamp, Visibility};

/// Buffers that are used again for every player.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Per slot: the stamp of the viewer that knows it. Saves a set per viewer.
    marks: Vec<u32>,
    stamp: u32,
    /// Slots of entities that may share a bond with the viewer.
    companions: Vec<u32>,
    /// Ranks of these.
    ranks: Vec<u64>,
}

impl Scratch {
    pub fn begin(&mut self, slots: usize) {
        if self.marks.len() < slots {
            self.marks.resize(slots, 0);
        }
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.marks.fill(0);
            self.stamp = 1;
        }
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

/// The ring in which the player `other` is for the player `me`, if it is in range; `known` ones stay
/// in a circle until they are beyond its leave radius, and in patches by their margin. Planes are not
/// compared.
#[inline]
pub fn in_range(
    entities: &EntityStore,
    v: &Visibility,
    me: &Location,
    other: &Location,
    known: bool,
) -> Option<u32> {
    let ring = me.patch.ring(other.patch);
    let range = entities.range();
    let inside = v.in_range(ring, me.dist2(other), range, known)
        || (known && is_kept(v, (entities.patches_of(Kind::PLAYER), range), me, other));
    (inside && are_level(entities, me, other, known)).then_some(ring)
}

/// Whether two entities are near enough in height to see each other.
#[inline]
fn are_level(entities: &EntityStore, me: &Location, other: &Location, known: bool) -> bool {
    entities.are_level(me, other, known) || (known && mutants::has(Mutant::HeightForgotten))
}

/// Whether an entity that is seen stays in range by the margin of the patches.
fn is_kept(
    v: &Visibility,
    (patches, range): (&PatchRule, RangeSet),
    me: &Location,
    other: &Location,
) -> bool {
    matches!(v, Visibility::Patches)
        && patches.margin_cm > 0
        && patches.keeps(range, me.pos(), other.pos())
}

/// A ring's number as viewers keep it; from FAR on all are alike.
#[inline]
pub fn small_ring(ring: u32) -> u8 {
    ring.min(2) as u8
}

/// Whether two entities are of one plane, on which things are seen.
#[inline]
pub fn same_plane(entities: &EntityStore, a: &Location, b: &Location) -> bool {
    a.plane_ix == b.plane_ix && entities.plane_at(a.plane_ix).plane != Plane::LIMBO
}

/// How near two players are to each other.
#[derive(Debug, Clone, Copy)]
pub struct Proximity {
    pub dist_cm: u32,
    pub class: u8,
    pub ring: u8,
}

/// How near two players of one plane are to each other, if they are in range: as the visibility says, or
/// as companions. `known` ones stay in range for longer.
#[inline]
fn proximity(
    entities: &EntityStore,
    vis: &Visibility,
    rules: &ViewRules,
    (me_slot, me): (u32, &Location),
    (other_slot, other): (u32, &Location),
    known: bool,
) -> Option<Proximity> {
    let near = in_range(entities, vis, me, other, known);
    let bonded = me.tag & other.tag & TAG_BONDED != 0;
    if near.is_none() && !bonded {
        return None;
    }
    let dist_cm = dist_cm(me.dist2(other));
    let class =
        if bonded { entities.bond_class(rules, me_slot, other_slot, dist_cm) } else { NO_BOND };
    let exempt = || rules.exempt(class, dist_cm, known).then(|| me.patch.ring(other.patch));
    let ring = small_ring(near.or_else(exempt)?);
    Some(Proximity { dist_cm, class, ring })
}

/// How near two players of one plane are to each other, if they are in range; `known` ones stay in range
/// for longer.
#[inline]
pub fn of_slots(
    entities: &EntityStore,
    vis: &Visibility,
    rules: &ViewRules,
    (a, b): (u32, u32),
    known: bool,
) -> Option<Proximity> {
    proximity(entities, vis, rules, (a, entities.place(a)), (b, entities.place(b)), known)
}

/// Brings the peer's slot, distance, class and ring up to date. False when it is out of range or
/// gone.
#[inline]
pub fn refresh(
    entities: &EntityStore,
    vis: &Visibility,
    rules: &ViewRules,
    me_slot: u32,
    me: &Location,
    registers: &mut Registers,
    ix: usize,
) -> bool {
    let known = registers.peers()[ix].slot;
    if entities.is_free(known) {
        match entities.slot(registers.yes_ids()[ix].id) {
            Some(slot) => registers.peers_mut()[ix].slot = slot,
            None => return false,
        }
    }
    let peer = &mut registers.peers_mut()[ix];
    let other = entities.place(peer.slot);
    if !same_plane(entities, me, other) {
        return false;
    }
    let Some(now) = proximity(entities, vis, rules, (me_slot, me), (peer.slot, other), true) else {
        return false;
    };
    (peer.dist_cm, peer.class, peer.ring) = (now.dist_cm, now.class, now.ring);
    true
}

/// The rank of the last companion of the player at `slot` that counts as bonded; `None` when all of
/// them do.
pub fn bond_reach(
    entities: &EntityStore,
    vis: &Visibility,
    rules: &ViewRules,
    slot: u32,
    scratch: &mut Scratch,
) -> Option<u64> {
    let me = entities.place(slot);
    let Scratch { companions, ranks, .. } = scratch;
    entities.companions(slot, companions);
    if companions.len() <= rules.bond_cap {
        return None;
    }
    ranks.clear();
    ranks.extend(companions.iter().filter_map(|other_slot| {
        let other = entities.place(*other_slot);
        let class = entities.any_class(rules, slot, *other_slot);
        let dist_cm = dist_cm(me.dist2(other));
        let near = || {
            in_range(entities, vis, me, other, true).is_some() || rules.exempt(class, dist_cm, true)
        };
        let counts = class != NO_BOND && same_plane(entities, me, other) && near();
        counts.then(|| rules.rank(class, dist_cm, false))
    }));
    match rules.bond_cap {
        cap if ranks.len() <= cap => None,
        0 => Some(0),
        cap => Some(*ranks.select_nth_unstable(cap - 1).1),
    }
}

/// Collects into `interested` the players that live here, in range of the ghost at `slot`, for whom it beats their
/// threshold as they beat its: slot of the player, that of the ghost, and the rank of the two; some of them twice.
pub fn interested(
    entities: &EntityStore,
    vis: &Visibility,
    rules: &ViewRules,
    viewers: &[Viewer],
    slot: u32,
    (scratch, interested): (&mut Scratch, &mut Vec<(u32, u32, u64)>),
) {
    let companions = &mut scratch.companions;
    let (ghost, at) = (entities.body(slot), entities.place(slot));
    let index = entities.plane_at(at.plane_ix);
    let Some(grid) = &index.grids[usize::from(Kind::PLAYER.0)] else { return };
    let mut consider = |other_slot: u32| {
        let other = entities.body(other_slot);
        let Some(viewer) = viewers.get(other.viewer as usize) else { return };
        let (me, there) = ((slot, at), (other_slot, entities.place(other_slot)));
        let prefers = |now: Proximity, kept: bool| {
            let rank = rules.rank(now.class, now.dist_cm, kept);
            rank <= ghost.threshold && Key::of(rank, ghost.id, other.id) < viewer.threshold
        };
        // Most are too far even if they know the ghost.
        let at_best = proximity(entities, vis, rules, me, there, true);
        if !at_best.is_some_and(|now| prefers(now, true)) {
            return;
        }
        let known = viewer
            .registers
            .find_at(slot, ghost.id, entities.have_moved(), NO_SLOT)
            .map(|at| viewer.registers.peers()[at]);
        // A link, a request, and a pair of which the ghost owes the next YES are no news.
        if known.is_some_and(|p| p.said() || p.their_turn()) {
            return;
        }
        let (shown, kept) = known.map_or((false, false), |p| (p.shown(), p.kept()));
        let now = proximity(entities, vis, rules, me, there, shown);
        if let Some(now) = now.filter(|now| prefers(*now, kept)) {
            interested.push((other_slot, slot, rules.rank(now.class, now.dist_cm, kept)));
        }
    };
    // A player linked at the start of the tick may be farther by the margin.
    let limit2 = nearer_than(rules, ghost.threshold.saturating_add(rules.margin_cm.into()));
    let patches = (entities.patches_of(Kind::PLAYER), entities.range());
    leave_range(vis, patches, grid, at, limit2, |e| consider(e.slot));
    if at.tag & TAG_BONDED != 0 {
        entities.companions(slot, companions);
        let here = |s: &&u32| entities.place(**s).plane_ix == at.plane_ix;
        companions.iter().filter(here).for_each(|s| consider(*s));
    }
}

#[inline]
fn entry_in_range(vis: &Visibility, range: RangeSet, ring: u32, d2: u64) -> bool {
    match *vis {
        Visibility::Patches => range.has_ring(ring),
        Visibility::Circle { enter_cm, .. } => {
            d2 <= (i64::from(enter_cm) * i64::from(enter_cm)) as u64
        }
        Visibility::All => true,
    }
}

/// Visits entities that may be in range, no farther than `limit2`: ring, entry, squared distance.
#[inline]
fn neighbourhood(
    (vis, range): (&Visibility, RangeSet),
    grid: &Grid,
    me: &Location,
    limit2: u64,
    visit: impl FnMut(u32, &IndexEntry, u64),
) {
    let reach = match *vis {
        Visibility::Patches => match range.reach() {
            Some(reach) => Some(reach),
            None => return,
        },
        Visibility::Circle { enter_cm, .. } => Some(grid.rings_of_radius(enter_cm)),
        Visibility::All => None,
    };
    grid.near(me.pos(), reach, limit2, visit);
}

/// Visits the players, no farther than `limit2`, who are in range if they see the entity at `me`: for
/// such a pair the range is wider.
#[inline]
fn leave_range(
    vis: &Visibility,
    (patches, range): (&PatchRule, RangeSet),
    grid: &Grid,
    me: &Location,
    limit2: u64,
    mut visit: impl FnMut(&IndexEntry),
) {
    match *vis {
        Visibility::Patches => {
            let Some(reach) = range.reach() else { return };
            // Each of the two may count as in the next patch.
            let reach = reach + if patches.margin_cm > 0 { 2 } else { 0 };
            grid.near(me.pos(), Some(reach), limit2, |ring, e, d2| {
                let kept = || patches.keeps(range, me.pos(), Pos::ground(e.x, e.z));
                if entry_in_range(vis, range, ring, d2) || (patches.margin_cm > 0 && kept()) {
                    visit(e);
                }
            });
        }
        Visibility::Circle { leave_cm, .. } => {
            let within = Visibility::Circle { enter_cm: leave_cm, leave_cm };
            neighbourhood((&within, range), grid, me, limit2, |ring, e, d2| {
                if entry_in_range(&within, range, ring, d2) {
                    visit(e);
                }
            });
        }
        Visibility::All => grid.near(me.pos(), None, limit2, |_, e, _| visit(e)),
    }
}

/// Brings what the viewer sees beside players up to date: its own sight decides.
pub fn see_others(
    entities: &EntityStore,
    spec: &SceneSpec,
    viewer: &mut Viewer,
    scratch: &mut Scratch,
) {
    let me = entities.place(viewer.slot);
    let index = entities.plane_at(me.plane_ix);
    let others = index.grids.iter().enumerate().skip(1);
    let populated = |g: &Option<Grid>| g.as_ref().is_some_and(|g| !g.is_empty());
    if viewer.seen.is_empty() && !others.clone().any(|(_, g)| populated(g)) {
        return;
    }
    let limit = SightLimit::of(entities, viewer.slot);
    scratch.begin(entities.slot_count() as usize);
    let mut ix = 0;
    while ix < viewer.seen.len() {
        if still_seen(entities, (spec, limit), me, &mut viewer.seen[ix]) {
            scratch.mark(viewer.seen[ix].slot);
            ix += 1;
        } else {
            viewer.drop_seen(ix);
        }
    }
    if index.plane == Plane::LIMBO {
        return;
    }
    let here = others.filter_map(|(kind, g)| Some((kind, g.as_ref()?)));
    for (kind, grid) in here.filter(|(_, g)| !g.is_empty()) {
        let vis = &spec.visibility_of(Kind(kind as u8));
        neighbourhood((vis, me.rings()), grid, me, limit.enter2, |ring, e, d2| {
            let sees = entry_in_range(vis, me.rings(), ring, d2) && !scratch.known(e.slot);
            if sees && entities.are_level(me, entities.place(e.slot), false) {
                let id = entities.body(e.slot).id;
                let (ring, sent) = (small_ring(ring), TickStamp::default());
                viewer.seen.push(Seen { id, slot: e.slot, sent, ring, withheld: 0, shown: false });
            }
        });
    }
}

/// How far a player is shown what is no player, by its game's logic: squared centimetres.
#[derive(Debug, Clone, Copy)]
struct SightLimit {
    /// To come into view.
    enter2: u64,
    /// To stay in view.
    leave2: u64,
}

impl SightLimit {
    fn of(entities: &EntityStore, slot: u32) -> SightLimit {
        let watch = entities.real(slot).and_then(|real| real.watch.as_deref());
        match watch.and_then(|watch| watch.sight_cm) {
            Some(cm) => {
                let (enter, leave) = (u64::from(cm), u64::from(cm) + u64::from(cm / 8));
                let square = |cm: u64| cm.saturating_mul(cm);
                SightLimit { enter2: square(enter), leave2: square(leave) }
            }
            None => SightLimit { enter2: u64::MAX, leave2: u64::MAX },
        }
    }
}

fn still_seen(
    entities: &EntityStore,
    (spec, limit): (&SceneSpec, SightLimit),
    me: &Location,
    seen: &mut Seen,
) -> bool {
    if seen.slot == NO_SLOT || entities.body(seen.slot).id != seen.id {
        match entities.slot(seen.id) {
            Some(slot) => seen.slot = slot,
            None => return false,
        }
    }
    let (body, other) = (entities.body(seen.slot), entities.place(seen.slot));
    if !same_plane(entities, me, other) {
        return false;
    }
    let Some(grid) = &entities.plane_at(me.plane_ix).grids[usize::from(body.kind.0)] else {
        return false;
    };
    let ring = grid.patch_of(me.pos()).ring(other.patch);
    let vis = spec.visibility_of(body.kind);
    let inside = match vis {
        Visibility::Patches => {
            me.rings().has_ring(ring)
                || is_kept(&vis, (entities.patches_of(body.kind), me.rings()), me, other)
        }
        Visibility::Circle { leave_cm, .. } => {
            me.dist2(other) <= (i64::from(leave_cm) * i64::from(leave_cm)) as u64
        }
        Visibility::All => true,
    };
    seen.ring = small_ring(ring);
    inside && me.dist2(other) <= limit.leave2 && are_level(entities, me, other, true)
}
