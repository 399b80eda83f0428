//! Brings the view lists to the positions of a tick: the matcher says what changes, and the registers of both sides
//! agree on it.
//!
//! [`ViewEngine::match_all`] is called once in a tick, when all registers are up to date. Each change is one legal step
//! of the protocol: lost links get their NO first, then each new pair asks and answers. Between two players of this
//! region the messages are handed over on the spot; what is for a ghost waits to be sent.

use super::plane_pairs::PlanePairs;
use super::prediction::{Horizon, Part, Players, Predictions};
use super::range_query::{self, Standing};
use super::{LocalMessage, ViewEngine};
use crate::scene::prefetch;
use crate::scene::region::entities::{EntityStore, NO_SLOT, Renumbering, TAG_BONDED};
use crate::scene::views::matcher::{ListWriter, Matcher, Pair};
use crate::scene::views::{Addressee, Key, Peer, Say};
use crate::scene::workers::{self, Workers};
use crate::scene::{Kind, Plane, RangeSet, Scene, Visibility};

/// The matcher of a region, and the slots of the players in it.
#[derive(Debug, Default)]
pub struct Matching {
    matcher: Matcher,
    /// The index of its plane, and the slot, of each player.
    players: Vec<(u32, u32)>,
    /// The slot of each player, by index.
    slots: Vec<u32>,
    /// The index of each player, by slot; valid for the players of the plane in hand.
    indices: Vec<u32>,
    /// How each player takes part.
    parts: Vec<Part>,
    predictions: Predictions,
    /// Whether each player knows peers, or some of its peers, of which no YES of its own stands.
    knows_others: Vec<bool>,
    companions: Vec<u32>,
    /// What was found in the registers, by parts of the players.
    found: Vec<FoundPart>,
}

/// Fewest players of a part that is worth a thread.
const LEAST: usize = if cfg!(test) { 2 } else { 64 };

/// What was found in the registers of some players beside their links.
#[derive(Debug, Default)]
struct FoundPart {
    /// Players that know peers of which no YES of their own stands.
    knows_others: Vec<u32>,
    /// Pairs that were displaced and may still be in range, with their ranks.
    displaced: Vec<(u32, u32, u64)>,
    /// Ghosts whose lists are predicted, and the players that they are linked with.
    of_ghosts: Vec<(u32, u32, u64)>,
}

/// The registers of the players of a plane.
struct Registered<'a> {
    views: &'a ViewEngine,
    entities: &'a EntityStore,
    slots: &'a [u32],
    indices: &'a [u32],
    parts: &'a [Part],
    /// Whether the list of any ghost is predicted.
    predicts: bool,
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
        let horizon = Horizon::new(entities, scene, &self.rules);
        let mut done = 0;
        while let Some((plane_ix, _)) = matching.players.get(done).copied() {
            done = matching.gather(plane_ix, (done, horizon), self, entities);
            if matching.slots.len() > 1 {
                matching.add_lists(plane_ix, self, entities, scene, workers);
                matching.run(plane_ix, self, entities, scene, workers);
                self.commit(&matching, entities, scene);
                matching.keep_predictions(plane_ix);
            }
        }
        matching.predictions.end_pass();
        self.matching = matching;
        for slot in std::mem::take(&mut self.queue.dirty) {
            // The lists are stable: there is nothing better for any player.
            if let Some(viewer) = self.of_mut(entities, slot) {
                viewer.dirty = false;
            }
        }
    }

    /// Makes the registers follow the matcher.
    fn commit(&mut self, matching: &Matching, entities: &mut EntityStore, scene: &Scene) {
        let (slots, rules) = (&matching.slots, self.rules);
        let of = |(a, b): &Pair| (slots[*a as usize], slots[*b as usize]);
        let (left, entered) = (matching.matcher.left(), matching.matcher.entered());
        for (i, pair) in left.iter().enumerate() {
            left.get(i + 2 * prefetch::PLAYERS)
                .inspect(|next| self.fetch_viewers(of(next), entities));
            left.get(i + prefetch::PLAYERS).inspect(|next| self.fetch(of(next), entities));
            if let Some((a, b)) = matching.player_first(*pair) {
                self.end_link(of(&(a, b)), entities);
            }
        }
        let vis = &scene.spec.visibility;
        for (i, pair) in entered.iter().enumerate() {
            entered
                .get(i + 2 * prefetch::PLAYERS)
                .inspect(|next| self.fetch_viewers(of(next), entities));
            entered.get(i + prefetch::PLAYERS).inspect(|next| self.fetch_ends(of(next), entities));
            let Some((a, b)) = matching.player_first(*pair) else { continue };
            let knows = |ix: u32| matching.knows_others[ix as usize];
            self.begin_link(of(&(a, b)), (knows(a), knows(b)), vis, entities);
        }
        self.deliver_local(entities, scene);
        for (ix, slot) in slots.iter().enumerate() {
            if matching.parts[ix] == Part::Predicted {
                let tied = matching.matcher.tied().contains(&(ix as u32));
                let threshold = matching.matcher.threshold(ix as u32).rank;
                self.assume(*slot, (threshold, tied), entities);
            }
            let Some(viewer) = self.of_mut(entities, *slot) else { continue };
            viewer.threshold = match viewer.registers.standing() > rules.cap {
                true => viewer.registers.threshold(&rules),
                false => matching.matcher.threshold(ix as u32),
            };
            viewer.expecting = viewer.expecting.map(|_| viewer.threshold);
            let rank = viewer.threshold.rank;
            entities.set_threshold(&self.rules, *slot, rank);
        }
    }

    /// Asks ahead of time for what says where the registers of a pair are.
    fn fetch_viewers(&self, (a, b): (u32, u32), entities: &EntityStore) {
        for viewer in [a, b].into_iter().filter_map(|slot| self.of(entities, slot)) {
            prefetch::fetch(std::slice::from_ref(&viewer.registers));
        }
    }

    /// The same for where the registers of a pair grow.
    fn fetch_ends(&self, (a, b): (u32, u32), entities: &EntityStore) {
        for viewer in [a, b].into_iter().filter_map(|slot| self.of(entities, slot)) {
            prefetch::fetch(viewer.registers.peers().last_chunk::<1>().map_or(&[], |last| last));
            prefetch::fetch(viewer.registers.yes_ids().last_chunk::<1>().map_or(&[], |last| last));
        }
    }

    /// Asks for the registers of a pair ahead of time.
    fn fetch(&self, (a, b): (u32, u32), entities: &EntityStore) {
        for viewer in [a, b].into_iter().filter_map(|slot| self.of(entities, slot)) {
            prefetch::fetch(viewer.registers.peers());
        }
    }

    /// The player at slot `a` says NO to the one at slot `b`.
    fn end_link(&mut self, (a, b): (u32, u32), entities: &EntityStore) {
        let (id_a, id_b) = (entities.body(a).id, entities.body(b).id);
        let moved = entities.have_moved();
        let Some(viewer) = self.of_mut(entities, a) else { return };
        let Some(at) = viewer.registers.find_at(b, id_b, moved, NO_SLOT) else { return };
        if !viewer.registers.peers()[at].said() {
            return;
        }
        let mut no = None;
        viewer.registers.refuse(at, |_, say| no = Some(say));
        let Some(Say::No { echo, at }) = no else { return };
        match self.of_mut(entities, b) {
            Some(other) => {
                if let Some(known) = other.registers.find_at(a, id_a, moved, NO_SLOT) {
                    other.registers.handle_no(known, echo, at);
                    if other.registers.peers()[known].is_blank() {
                        other.drop_peer(known);
                    }
                }
                self.figures.local += 1;
            }
            None => {
                let to = Addressee { id: id_b, slot: b };
                self.queue.outgoing.push(LocalMessage::new(a, to, Say::No { echo, at }));
            }
        }
    }

    /// The player at slot `a` says YES to the one at slot `b`, which says YES, too, if it lives here. A
    /// ghost that owes the next YES is likely to say it: the player keeps a place for it. `may_know`: whether each of the two may know the other already.
    fn begin_link(
        &mut self,
        (a, b): (u32, u32),
        may_know: (bool, bool),
        vis: &Visibility,
        entities: &EntityStore,
    ) {
        let Some(now) = range_query::of_slots(entities, vis, &self.rules, (a, b), true) else {
            return;
        };
        let rules = self.rules;
        let (id_a, id_b) = (entities.body(a).id, entities.body(b).id);
        let Some(at) = self.know((a, b), may_know.0, now, entities) else { return };
        let mut yes = None;
        let is_ghost = entities.body(b).viewer == u32::MAX;
        let Some(viewer) = self.of_mut(entities, a) else { return };
        if is_ghost && viewer.registers.peers()[at].their_turn() {
            viewer.expecting = Some(Key::WORST);
            return self.queue.expecting.push(a);
        }
        viewer.registers.ask(at, |_, say| yes = Some(say));
        let Some(yes) = yes else { return };
        let Some(other_at) = self.know((b, a), may_know.1, now, entities) else {
            let to = Addressee { id: id_b, slot: b };
            return self.queue.outgoing.push(LocalMessage::new(a, to, yes));
        };
        let ViewEngine { queue, viewers, figures, .. } = self;
        figures.local += 2;
        let mut answer = None;
        let Some(other) = viewers.get_mut(entities.body(b).viewer as usize) else { return };
        other.registers.handle_yes(&rules, other_at, yes, |to, say| match say {
            Say::Yes(_) if to.id == id_a => answer = Some(say),
            _ => queue.local.push_back(LocalMessage::new(b, to, say)),
        });
        let Some(viewer) = viewers.get_mut(entities.body(a).viewer as usize) else { return };
        if let Some(yes) = answer {
            viewer.registers.handle_yes(&rules, at, yes, |to, say| {
                queue.local.push_back(LocalMessage::new(a, to, say));
            });
        }
    }

    /// Makes the player at slot `of` know how it stands to the one at slot `to`. Gives the index of that peer; `None` if
    /// the player does not live here.
    fn know(
        &mut self,
        (of, to): (u32, u32),
        may_know: bool,
        now: Standing,
        entities: &EntityStore,
    ) -> Option<usize> {
        let id = entities.body(to).id;
        let registers = &mut self.of_mut(entities, of)?.registers;
        let find = || registers.find_at(to, id, entities.have_moved(), NO_SLOT);
        let known = if may_know { find() } else { None };
        let at = known.unwrap_or_else(|| registers.push(id, to));
        let peer = &mut registers.peers_mut()[at];
        peer.slot = to;
        (peer.dist_cm, peer.class, peer.ring) = (now.dist_cm, now.class, now.ring);
        Some(at)
    }
}

impl Registered<'_> {
    /// Reads the registers of a player: its links and requests into its list, others into `found`.
    #[inline]
    fn read(&self, ix: u32, found: &mut FoundPart, list: &mut ListWriter<'_>) {
        let Registered { views, entities, slots, indices, parts, predicts } = *self;
        if let Some(next) = slots.get(ix as usize + prefetch::PLAYERS) {
            views.of(entities, *next).inspect(|v| prefetch::fetch(v.registers.peers()));
        }
        let Some(viewer) = views.of(entities, slots[ix as usize]) else { return };
        let (rules, registers) = (&views.rules, &viewer.registers);
        let entry = |p: &Peer| (indices[p.slot as usize], rules.rank(p.class, p.dist_cm, p.kept()));
        let said = registers.peers().iter().filter(|p| p.said()).map(entry);
        if registers.standing() <= rules.cap {
            list.link(said);
        } else {
            // More were asked than there is room for.
            let mut all: Vec<_> = said.collect();
            all.sort_unstable_by_key(|(_, rank)| *rank);
            list.link(all.into_iter());
        }
        let predicted = |p: &Peer| parts[indices[p.slot as usize] as usize] == Part::Predicted;
        if predicts {
            let of_ghosts = registers.peers().iter().filter(|p| p.said() && predicted(p));
            found.of_ghosts.extend(of_ghosts.map(entry).map(|(ghost, rank)| (ghost, ix, rank)));
        }
        if registers.peers().len() > registers.standing() {
            found.knows_others.push(ix);
            // Peers that were displaced are still in range up to the leave radius.
            let displaced = registers.peers().iter().filter(|p| {
                let counts = (p.shown() || p.kept()) && !p.said();
                counts && (predicted(p) || !is_owed(p.their_turn(), p.slot, entities))
            });
            found.displaced.extend(displaced.map(entry).map(|(with, rank)| (ix, with, rank)));
        }
    }
}

impl Matching {
    /// Finds the players of all planes, plane by plane.
    fn sort_by_plane(&mut self, entities: &EntityStore) {
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

    /// Adds the players of a plane, of which `first` is the first one, to the matcher. Returns the
    /// first one of the next plane.
    fn gather(
        &mut self,
        plane_ix: u32,
        (first, horizon): (usize, Horizon),
        views: &ViewEngine,
        entities: &EntityStore,
    ) -> usize {
        self.matcher.begin(&views.rules);
        self.slots.clear();
        self.parts.clear();
        self.indices.resize(entities.slot_count() as usize, 0);
        let here = self.players[first..].iter().take_while(|(plane, _)| *plane == plane_ix);
        for (_, slot) in here {
            let (body, place) = (entities.body(*slot), entities.place(*slot));
            let ix = match views.get(body.viewer) {
                Some(viewer) => {
                    let blank = viewer.registers.peers().is_empty();
                    let searches = blank || viewer.threshold != Key::WORST;
                    self.parts.push(Part::Real);
                    self.matcher.add(body.id, (place.x, place.z), searches)
                }
                None if self.predictions.has_moved(*slot, (place.x, place.z))
                    && horizon.has(body) =>
                {
                    self.parts.push(Part::Predicted);
                    self.matcher.add(body.id, (place.x, place.z), true)
                }
                None => {
                    self.parts.push(Part::Ghost);
                    self.matcher.add_ghost(body.id, (place.x, place.z), body.threshold)
                }
            };
            self.indices[*slot as usize] = ix;
            self.slots.push(*slot);
        }
        first + self.slots.len()
    }

    /// Tells the matcher what stands, and the pairs that it would not find.
    fn add_lists(
        &mut self,
        plane_ix: u32,
        views: &ViewEngine,
        entities: &EntityStore,
        scene: &Scene,
        workers: &dyn Workers,
    ) {
        self.read_registers(views, entities, workers);
        self.tell_predictions(plane_ix, views, entities, scene);
        for ix in 0..self.slots.len() as u32 {
            if entities.place(self.slots[ix as usize]).tag & TAG_BONDED != 0 {
                self.propose_companions(ix, views, entities, &scene.spec.visibility);
            }
        }
    }

    /// Tells the matcher what the registers say, and of displaced peers.
    fn read_registers(
        &mut self,
        views: &ViewEngine,
        entities: &EntityStore,
        workers: &dyn Workers,
    ) {
        let Matching { matcher, slots, indices, parts, knows_others, found, .. } = self;
        found.resize_with(workers::parts(workers, slots.len(), LEAST), FoundPart::default);
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

    /// The players of the plane in hand.
    fn in_hand(&mut self, plane_ix: u32) -> (Players<'_>, &mut Predictions, &mut Matcher) {
        let Matching { matcher, slots, indices, parts, predictions, .. } = self;
        (Players { plane_ix, slots, indices, parts }, predictions, matcher)
    }

    fn tell_predictions(
        &mut self,
        plane_ix: u32,
        views: &ViewEngine,
        entities: &EntityStore,
        scene: &Scene,
    ) {
        let (players, predictions, matcher) = self.in_hand(plane_ix);
        predictions.tell(players, matcher, entities, scene, &views.rules);
    }

    fn keep_predictions(&mut self, plane_ix: u32) {
        let (players, predictions, matcher) = self.in_hand(plane_ix);
        predictions.keep(players, matcher);
    }

    /// Slots are numbered anew.
    pub(super) fn renumber(&mut self, new: &Renumbering) {
        self.predictions.renumber(new);
    }

    /// A pair with a player of this region first: of a player and a ghost, the player speaks. `None` for
    /// two ghosts.
    fn player_first(&self, (a, b): Pair) -> Option<Pair> {
        let is_real = |ix: u32| self.parts[ix as usize] == Part::Real;
        match (is_real(a), is_real(b)) {
            (true, _) => Some((a, b)),
            (false, true) => Some((b, a)),
            (false, false) => None,
        }
    }

    /// Proposes companions, who may see each other from farther.
    fn propose_companions(
        &mut self,
        ix: u32,
        views: &ViewEngine,
        entities: &EntityStore,
        vis: &Visibility,
    ) {
        let (rules, slot) = (&views.rules, self.slots[ix as usize]);
        let Some(viewer) = views.of(entities, slot) else { return };
        entities.companions(slot, &mut self.companions);
        for other in self.companions.iter().copied() {
            let (me, there) = (entities.place(slot), entities.place(other));
            let here = entities.body(other).kind == Kind::PLAYER && me.plane_ix == there.plane_ix;
            let id = entities.body(other).id;
            let known = viewer.registers.find_at(other, id, entities.have_moved(), NO_SLOT);
            let settled = known.map(|at| viewer.registers.peers()[at]);
            if !here
                || settled.is_some_and(|p| p.said() || is_owed(p.their_turn(), other, entities))
            {
                continue;
            }
            if let Some(now) = range_query::of_slots(entities, vis, rules, (slot, other), false) {
                let rank = rules.rank(now.class, now.dist_cm, false);
                self.matcher.propose(ix, self.indices[other as usize], rank);
            }
        }
    }

    fn run(
        &mut self,
        plane_ix: u32,
        views: &ViewEngine,
        entities: &EntityStore,
        scene: &Scene,
        workers: &dyn Workers,
    ) {
        let grids = &entities.plane_at(plane_ix).grids;
        let Some(Some(grid)) = grids.get(usize::from(Kind::PLAYER.0)) else { return };
        let vis = &scene.spec.visibility;
        let (viewers, rules, slots) = (&views.viewers[..], &views.rules, &self.slots[..]);
        let parts = &self.parts;
        let pairs = PlanePairs { entities, viewers, vis, rules, slots, parts, grid };
        self.matcher.run(rules, reach_cm(vis, grid.patch_cm()), &pairs, workers);
    }
}

/// Whether a peer is a ghost that owes the next YES: it is not asked. Of a player that lives here the threshold is known
/// exactly, so that asking it cannot be in vain.
fn is_owed(their_turn: bool, slot: u32, entities: &EntityStore) -> bool {
    their_turn && entities.body(slot).viewer == u32::MAX
}

/// The largest distance of two players who come into range of each other, centimetres.
fn reach_cm(vis: &Visibility, patch_cm: i32) -> Option<u32> {
    match *vis {
        Visibility::Patches => {
            let rings = u64::from(RangeSet::FULL.reach().unwrap_or(0).unsigned_abs()) + 1;
            let side = rings * u64::from(patch_cm.unsigned_abs());
            u32::try_from(side * 1_415 / 1_000 + 1).ok()
        }
        Visibility::Circle { enter_cm, .. } => Some(enter_cm.unsigned_abs()),
        Visibility::All => None,
    }
}
