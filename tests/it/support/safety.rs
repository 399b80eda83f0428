//! Invariants of views after every single step, whatever happens (DESIGN, "VIEWS"):
//!
//! - **V1** the two sides disagree on a link only while a message between them is in flight;
//! - **V2** no player ever has more links than the cap;
//! - **V3** a NO cancels only the YES that it names: no other YES is dropped, unless its own sender
//!   withdraws it with a message;
//! - **V4** a disagreement lasts at most until the messages that were in flight when it began, and
//!   their answers, have arrived.
//!
//! In addition every player has exactly one real. Where a region has crashed, and messages with it,
//! the news of the crash counts as in flight for [`NEWS_TICKS`].

use std::collections::{BTreeMap, BTreeSet};

use purview::scene::messages::Input;
use purview::scene::views::{PeerState, ViewMsg, ViewMsgBody};
use purview::scene::{EntityId, RegionId, Tick};

use super::brute::{Pair, pair};
use super::world::World;

/// Time within which a neighbour of a crashed region must notice: its patience, the expiry of
/// ghosts, and the search for ghosts without an owner.
pub const NEWS_TICKS: u64 = 60;

type Msg = (EntityId, EntityId, ViewMsgBody);

/// Where a player's registers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Residence {
    Region(RegionId),
    /// In a handoff in flight, sent by this region.
    OnItsWay(RegionId),
}

#[derive(Debug)]
struct Held {
    residence: Residence,
    peers: Vec<PeerState>,
}

impl Held {
    fn of(&self, other: EntityId) -> Option<&PeerState> {
        self.peers.iter().find(|p| p.id == other)
    }

    fn links(&self) -> impl Iterator<Item = EntityId> {
        self.peers.iter().filter(|p| p.my_yes != 0 && p.their_yes != 0).map(|p| p.id)
    }

    /// The numbers of the two YESes of a link.
    fn link(&self, other: EntityId) -> Option<(u32, u32)> {
        self.of(other)
            .map(|p| (p.my_yes, p.their_yes))
            .filter(|(my_yes, their_yes)| *my_yes != 0 && *their_yes != 0)
    }
}

/// A disagreement, and the messages that must end it.
#[derive(Debug)]
struct Odd {
    since: u64,
    /// The player that has the link, and the numbers of its two YESes.
    link: (EntityId, u32, u32),
    waits_for: Vec<Msg>,
    /// How often all these messages had arrived and the disagreement went on.
    received: u32,
}

/// The state as of the last step.
#[derive(Debug, Default)]
pub struct Safety {
    known: BTreeMap<EntityId, Held>,
    flight: Vec<Msg>,
    odd: BTreeMap<Pair, Odd>,
    /// Pairs that lost a message with a region, and until when they are excused.
    excused: BTreeMap<Pair, Tick>,
    /// Steps with a disagreement: to see that something was tested.
    pub odd_steps: u64,
}

impl Safety {
    /// Records that the region's actor ended, and messages of these pairs with it.
    pub fn crashed(&mut self, region: RegionId, tick: Tick, pairs: impl Iterator<Item = Pair>) {
        self.known.retain(|_, held| held.residence != Residence::Region(region));
        self.lost(tick, pairs);
    }

    /// Records that a player was lost on its way to a region.
    pub fn forget(&mut self, id: EntityId) {
        self.known.remove(&id);
    }

    /// Records that messages of these pairs were lost with a region.
    pub fn lost(&mut self, tick: Tick, pairs: impl Iterator<Item = Pair>) {
        self.excused.extend(pairs.map(|p| (p, Tick(tick.0 + NEWS_TICKS))));
    }

    /// Checks the state after the last step, which was a step of region `at`.
    pub fn check(&mut self, w: &World, at: RegionId) {
        self.excused.retain(|_, until| *until >= w.tick);
        let mut on_their_way = Vec::new();
        let mut flight: Vec<Msg> = Vec::new();
        let mut add = |m: &ViewMsg| flight.push((m.from, m.to, m.say));
        for ((from, _), queue) in &w.queues {
            for input in queue {
                match input {
                    Input::View(msg) => add(msg),
                    Input::BorderRound(batch) => batch.view_messages.iter().for_each(&mut add),
                    Input::Handoff(h) => {
                        on_their_way.push((h.state.id, *from, h.peers.clone()));
                    }
                    _ => {}
                }
            }
        }
        for region in &w.regions {
            region.inspect_view_queue().iter().for_each(&mut add);
        }
        let before = std::mem::replace(&mut self.flight, flight);
        let (mut old, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.known).into_iter().partition(|(_, h)| of(h.residence) == at);
        self.known = others;
        for (id, from, peers) in on_their_way {
            self.hold(w, id, Residence::OnItsWay(from), peers);
        }
        for (id, peers) in w.regions[at.0 as usize].inspect_registers() {
            old.extend(self.hold(w, id, Residence::Region(at), peers).map(|was| (id, was)));
        }
        for (id, was) in &old {
            self.no_cancels_only_what_it_names(w, *id, was, &before);
        }
        self.disagreements(w, at, &old);
    }

    /// Records where a player's registers are now; returns what they were elsewhere.
    fn hold(
        &mut self,
        w: &World,
        id: EntityId,
        residence: Residence,
        peers: Vec<PeerState>,
    ) -> Option<Held> {
        let links = peers.iter().filter(|p| p.my_yes != 0 && p.their_yes != 0).count();
        let cap = w.cap_of(id);
        assert!(links <= cap, "V2: {id} has {links} links and room for {cap}");
        let was = self.known.insert(id, Held { residence, peers });
        let elsewhere =
            was.as_ref().map(|was| was.residence).filter(|h| matches!(h, Residence::Region(_)));
        assert!(
            elsewhere.is_none_or(|h| h == residence),
            "{id} lives in {elsewhere:?} and {residence:?}"
        );
        was
    }

    fn no_cancels_only_what_it_names(&self, w: &World, id: EntityId, was: &Held, before: &[Msg]) {
        let Some(now) = self.known.get(&id) else { return };
        for peer in was.peers.iter().filter(|p| p.my_yes != 0) {
            let still = now.of(peer.id).is_some_and(|p| p.my_yes == peer.my_yes);
            let other = self.known.get(&peer.id);
            // Within a region a message is sent and received within one step.
            let apart = other.is_some_and(|o| of(o.residence) != of(now.residence));
            if still || !apart || self.is_excused(w, pair(id, peer.id)) {
                continue;
            }
            let named = |m: &&Msg| {
                (m.0, m.1) == (peer.id, id)
                    && matches!(m.2, ViewMsgBody::No { echo, .. } if echo == peer.my_yes)
            };
            let count = |msgs: &[Msg]| msgs.iter().filter(named).count();
            let cancelled = count(before) > count(&self.flight);
            let no =
                |m: &&Msg| (m.0, m.1) == (id, peer.id) && matches!(m.2, ViewMsgBody::No { .. });
            let taken_back =
                self.flight.iter().filter(no).count() > before.iter().filter(no).count();
            assert!(
                cancelled || taken_back,
                "V3: the YES {} of {id} to {} was dropped, and no NO named it",
                peer.my_yes,
                peer.id
            );
        }
    }

    fn disagreements(&mut self, w: &World, at: RegionId, old: &BTreeMap<EntityId, Held>) {
        let here = self.known.iter().filter(|(_, h)| of(h.residence) == at);
        let mut pairs: BTreeSet<Pair> = self.odd.keys().copied().collect();
        for (id, held) in here.chain(old) {
            pairs.extend(held.links().map(|other| pair(*id, other)));
        }
        for (a, b) in pairs {
            let link = match self.known.get(&a).zip(self.known.get(&b)) {
                Some((ha, hb)) => match (ha.link(b), hb.link(a)) {
                    (Some((my_yes, their_yes)), None) => Some((a, my_yes, their_yes)),
                    (None, Some((my_yes, their_yes))) => Some((b, my_yes, their_yes)),
                    _ => None,
                },
                None => None,
            };
            // Another link is another disagreement.
            let Some(link) = link else {
                self.odd.remove(&(a, b));
                continue;
            };
            if self.odd.get(&(a, b)).is_some_and(|odd| odd.link != link) {
                self.odd.remove(&(a, b));
            }
            self.odd_steps += 1;
            let in_flight = |m: &&Msg| pair(m.0, m.1) == (a, b);
            let now: Vec<Msg> = self.flight.iter().filter(in_flight).copied().collect();
            let excused = self.is_excused(w, (a, b));
            assert!(
                excused || !now.is_empty(),
                "V1: {a} and {b} disagree and no message is in flight"
            );
            let begun = Odd { since: w.steps, link, waits_for: now.clone(), received: 0 };
            let odd = self.odd.entry((a, b)).or_insert(begun);
            odd.waits_for.retain(|m| now.contains(m));
            if odd.waits_for.is_empty() {
                odd.received += 1;
                odd.waits_for = now;
            }
            assert!(
                excused || odd.received < 2,
                "V4: {a} and {b} disagree since step {}",
                odd.since
            );
        }
    }

    fn is_excused(&self, w: &World, pair: Pair) -> bool {
        self.excused.get(&pair).is_some_and(|until| *until >= w.tick)
    }

    /// At rest: nothing is left behind, of any player, in any region.
    pub fn nothing_is_left(&self, w: &World) {
        let alive: BTreeSet<EntityId> = w.truth.keys().copied().collect();
        // Regions keep messages for unknown players for a while.
        let speaking: Vec<&Msg> = self.flight.iter().filter(|m| alive.contains(&m.1)).collect();
        assert!(speaking.is_empty(), "messages are still in flight: {speaking:?}");
        let residence: BTreeMap<EntityId, RegionId> =
            self.known.iter().map(|(id, held)| (*id, of(held.residence))).collect();
        assert_eq!(residence.keys().copied().collect::<BTreeSet<_>>(), alive, "the owned players");
        for (id, held) in &self.known {
            for p in &held.peers {
                let what = format!("{id} has {p:?}");
                let Some(other) = self.known.get(&p.id) else {
                    panic!("an entry for an unknown player: {what}")
                };
                assert_eq!(p.my_yes != 0, p.their_yes != 0, "half a link: {what}");
                let back = other.of(*id);
                assert_eq!(
                    held.link(p.id).is_some(),
                    other.link(*id).is_some(),
                    "one-sided: {what}, {back:?}"
                );
                let their_turn = back.is_some_and(|b| b.their_turn);
                assert!(
                    !(p.their_turn && their_turn),
                    "each waits for the other: {what}, {back:?}"
                );
            }
        }
        for region in w.regions.iter().filter(|r| !w.down.contains_key(&r.id())) {
            assert!(region.is_closed(), "region {} still waits for a neighbour", region.id());
            for e in region.inspect(None).entities {
                let what = format!("region {} has {e:?}", region.id());
                assert_eq!(residence.get(&e.id), Some(&e.owner), "a ghost without a real: {what}");
                let t = &w.truth[&e.id];
                assert_eq!(
                    (e.pos, e.plane),
                    (t.pos, t.plane),
                    "a ghost at a wrong position: {what}"
                );
            }
        }
    }
}

fn of(residence: Residence) -> RegionId {
    match residence {
        Residence::Region(id) | Residence::OnItsWay(id) => id,
    }
}
