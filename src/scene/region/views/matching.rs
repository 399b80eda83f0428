//! Brings the view lists to the positions of a tick: the matcher says what changes, and the registers of both sides
//! agree on it (`commit`).
//!
//! [`ViewEngine::match_all`] is called once in a tick, when all registers are up to date. What it has found is kept until
//! the next tick, so that the lists can be repaired (`repair`) when other regions say what was not expected.

use super::ViewEngine;
use super::ghost_links::KnownLinks;
use super::plane_pairs::PlanePairs;
use super::prediction::{Part, Players, PredictionRange, Predictions};
use super::registered::{FoundPart, Registered};
use crate::scene::messages::GhostLinks;
use crate::scene::region::entities::{EntityStore, Renumbering};
use crate::scene::views::Key;
use crate::scene::views::matcher::{Matcher, Pair};
use crate::scene::workers::{self, Workers};
use crate::scene::{Kind, Plane, RangeSet, Scene, Visibility};

/// The matchers of a region, and the slots of the players in them.
#[derive(Debug, Default)]
pub struct Matching {
    /// Of the planes with more than one player, the first `in_use` ones. The others are kept for their memory.
    planes: Vec<PlaneMatching>,
    in_use: usize,
    /// The index of its plane, and the slot, of each player.
    players: Vec<(u32, u32)>,
    /// The index of each player among those of its plane, by slot.
    pub(super) indices: Vec<u32>,
    predictions: Predictions,
    /// The links between ghosts.
    links: KnownLinks,
    /// Companions of a player, with the ranks of their pairs.
    companions: Vec<(u32, u64)>,
    /// What was found in the registers, by parts of the players.
    found: Vec<FoundPart>,
    /// A list that was read again.
    pub(super) list: Vec<(u32, u64)>,
}

/// The matcher of a plane.
#[derive(Debug, Default)]
pub struct PlaneMatching {
    pub(super) plane_ix: u32,
    pub(super) matcher: Matcher,
    /// The slot of each player, by index.
    pub(super) slots: Vec<u32>,
    /// How each player takes part.
    pub(super) parts: Vec<Part>,
    /// Whether each player knows peers, or some of its peers, of which no YES of its own stands.
    pub(super) knows_others: Vec<bool>,
}

impl ViewEngine {
    /// Brings all view lists to the positions of this tick.
    pub(super) fn match_all(
        &mut self,
        entities: &mut EntityStore,
        scene: &Scene,
        workers: &dyn Workers,
    ) {
        let mut matching = std::mem::take(&mut self.matching);
        matching.sort_by_plane(entities);
        let range = PredictionRange::new(entities, scene, &self.rules);
        let vis = &scene.spec.visibility;
        let mut done = 0;
        while let Some((plane_ix, _)) = matching.players.get(done).copied() {
            let mut plane = matching.take_plane(plane_ix);
            done = matching.gather(&mut plane, (done, range), self, entities);
            if plane.slots.len() > 1 {
                matching.add_lists(&mut plane, self, entities, scene, workers);
                plane.with_pairs(&matching.indices, (&*self, &*entities), vis, |matcher, pairs| {
                    matcher.run(reach_cm(vis, pairs.patch_cm()), pairs, workers);
                });
                self.commit_pass(&plane, entities, scene);
                matching.keep_plane(plane);
            } else {
                matching.planes.push(plane);
            }
        }
        self.matching = matching;
        self.lists_are_stable(entities);
    }

    /// There is nothing better for any player.
    fn lists_are_stable(&mut self, entities: &EntityStore) {
        self.queue.forget_changes();
        for slot in std::mem::take(&mut self.queue.dirty) {
            if let Some(viewer) = self.of_mut(entities, slot) {
                viewer.dirty = false;
            }
        }
    }
}

impl Matching {
    /// Finds the players of all planes, plane by plane.
    fn sort_by_plane(&mut self, entities: &EntityStore) {
        self.in_use = 0;
        self.players.clear();
        let mut is_sorted = true;
        for slot in 0..entities.slot_count() {
            let place = entities.place(slot);
            if place.is_free() || entities.body(slot).kind != Kind::PLAYER {
                continue;
            }
            if entities.plane_at(place.plane_ix).plane != Plane::LIMBO {
                is_sorted &= self.players.last().is_none_or(|(plane, _)| *plane <= place.plane_ix);
                self.players.push((place.plane_ix, slot));
            }
        }
        if !is_sorted {
            self.players.sort_unstable();
        }
    }

    /// A matcher for a plane, taken from its place.
    fn take_plane(&mut self, plane_ix: u32) -> PlaneMatching {
        let is_at_hand = self.planes.len() > self.in_use;
        let plane = is_at_hand.then(|| self.planes.remove(self.in_use));
        PlaneMatching { plane_ix, ..plane.unwrap_or_default() }
    }

    /// The matcher of a plane is kept for repairs.
    fn keep_plane(&mut self, plane: PlaneMatching) {
        self.planes.insert(self.in_use, plane);
        self.in_use += 1;
    }

    /// The matchers of the planes of this tick.
    pub(super) fn take_planes(&mut self) -> Vec<PlaneMatching> {
        self.planes.drain(..self.in_use).collect()
    }

    /// Puts these matchers back.
    pub(super) fn put_back(&mut self, planes: Vec<PlaneMatching>) {
        self.planes.splice(0..0, planes);
    }

    /// Adds the players of a plane, of which `first` is the first one, to the matcher. Returns the
    /// first one of the next plane.
    fn gather(
        &mut self,
        plane: &mut PlaneMatching,
        (first, range): (usize, PredictionRange),
        views: &ViewEngine,
        entities: &EntityStore,
    ) -> usize {
        let PlaneMatching { plane_ix, matcher, slots, parts, .. } = plane;
        matcher.begin(&views.rules);
        slots.clear();
        parts.clear();
        self.indices.resize(entities.slot_count() as usize, 0);
        let here = self.players[first..].iter().take_while(|(at, _)| at == plane_ix);
        for (_, slot) in here {
            let (body, place) = (entities.body(*slot), entities.place(*slot));
            let ix = match views.get(body.viewer) {
                Some(viewer) => {
                    let blank = viewer.registers.peers().is_empty();
                    let searches = blank || viewer.threshold != Key::WORST;
                    parts.push(Part::Real);
                    matcher.add((body.id, place.cap()), (place.x, place.z), searches)
                }
                None if self.predictions.has_moved(*slot, body.pos) && range.has(body) => {
                    parts.push(Part::Predicted);
                    matcher.add((body.id, place.cap()), (place.x, place.z), true)
                }
                None => {
                    parts.push(Part::Ghost);
                    matcher.add_ghost((body.id, place.cap()), (place.x, place.z), body.threshold)
                }
            };
            self.indices[*slot as usize] = ix;
            slots.push(*slot);
        }
        first + slots.len()
    }

    /// Tells the matcher what stands, and the pairs that it would not find.
    fn add_lists(
        &mut self,
        plane: &mut PlaneMatching,
        views: &ViewEngine,
        entities: &EntityStore,
        scene: &Scene,
        workers: &dyn Workers,
    ) {
        self.read_registers(plane, views, entities, workers);
        let Matching { links, indices, companions, .. } = self;
        let PlaneMatching { matcher, slots, parts, .. } = plane;
        let players = Players { slots, indices, parts };
        links.tell(players, matcher, entities, scene, &views.rules);
        let reader = Registered { views, entities, slots, indices, parts, predicts: false };
        for ix in 0..slots.len() as u32 {
            reader.companions(ix, &scene.spec.visibility, companions);
            companions.drain(..).for_each(|(with, rank)| matcher.propose(ix, with, rank));
        }
    }

    /// Tells the matcher what the registers say, and of displaced peers.
    fn read_registers(
        &mut self,
        plane: &mut PlaneMatching,
        views: &ViewEngine,
        entities: &EntityStore,
        workers: &dyn Workers,
    ) {
        let Matching { indices, found, .. } = self;
        let PlaneMatching { matcher, slots, parts, knows_others, .. } = plane;
        found.resize_with(
            workers::parts(workers, slots.len(), workers::LEAST_PLAYERS),
            FoundPart::default,
        );
        let predicts = parts.contains(&Part::Predicted);
        let reader = Registered { views, entities, slots, indices, parts, predicts };
        matcher.link_all(workers, found, |part, ix, list| reader.read(ix, part, list));
        knows_others.clear();
        knows_others.resize(slots.len(), false);
        for part in found {
            part.knows_others.drain(..).for_each(|ix| knows_others[ix as usize] = true);
            for (ix, with, rank) in part.displaced.drain(..) {
                matcher.propose(ix, with, rank);
            }
            for (ghost, ix, rank) in part.of_ghosts.drain(..) {
                matcher.link_back(ghost, ix, rank);
            }
        }
    }

    /// A ghost's owner tells of its links.
    pub(super) fn note_links(&mut self, slot: u32, told: &GhostLinks, entities: &EntityStore) {
        self.links.note(slot, told, entities);
    }

    /// Slots are numbered anew.
    pub(super) fn renumber(&mut self, new: &Renumbering) {
        self.predictions.renumber(new);
        self.links.renumber(new);
    }
}

impl PlaneMatching {
    /// A pair with a player of this region first: of a player and a ghost, the player speaks. `None` for
    /// two ghosts.
    pub(super) fn player_first(&self, (a, b): Pair) -> Option<Pair> {
        let is_real = |ix: u32| self.parts[ix as usize] == Part::Real;
        match (is_real(a), is_real(b)) {
            (true, _) => Some((a, b)),
            (false, true) => Some((b, a)),
            (false, false) => None,
        }
    }

    /// Whether a pair that has left its lists is in one of them again. That happens where a prediction was wrong.
    pub(super) fn is_back(&self, pair: Pair) -> bool {
        self.has_ghost(pair) && self.is_listed(pair)
    }

    /// Whether a pair that has entered lists is in none of them any more.
    pub(super) fn is_gone(&self, pair: Pair) -> bool {
        self.has_ghost(pair) && !self.is_listed(pair)
    }

    fn has_ghost(&self, (a, b): Pair) -> bool {
        let is_real = |ix: u32| self.parts[ix as usize] == Part::Real;
        !is_real(a) || !is_real(b)
    }

    fn is_listed(&self, (a, b): Pair) -> bool {
        self.matcher.has(a, b) || self.matcher.has(b, a)
    }

    /// Lets the matcher work on the pairs of the plane, if it has any.
    pub(super) fn with_pairs(
        &mut self,
        indices: &[u32],
        (views, entities): (&ViewEngine, &EntityStore),
        vis: &Visibility,
        work: impl FnOnce(&mut Matcher, &PlanePairs<'_>),
    ) {
        let PlaneMatching { plane_ix, matcher, slots, parts, .. } = self;
        let players = Registered { views, entities, slots, indices, parts, predicts: false };
        if let Some(pairs) = PlanePairs::of(*plane_ix, players, vis) {
            work(matcher, &pairs);
        }
    }
}

/// The largest distance of two players who come into range of each other, centimetres.
fn reach_cm(vis: &Visibility, patch_cm: [i32; 2]) -> Option<u32> {
    match *vis {
        Visibility::Patches => {
            let rings = u64::from(RangeSet::FULL.reach().unwrap_or(0).unsigned_abs()) + 1;
            let [x, z] = patch_cm.map(|side| rings * u64::from(side.unsigned_abs()));
            u32::try_from((x * x + z * z).isqrt() + 1).ok()
        }
        Visibility::Circle { enter_cm, .. } => Some(enter_cm.unsigned_abs()),
        Visibility::All => None,
    }
}
