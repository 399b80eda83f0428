//! What must hold of views after every single step, whatever happens (DESIGN, "VIEWS"):
//!
//! - **V1** the two sides disagree on a link only while a message between them is in flight;
//! - **V2** never more links than the cap, on either side, at any moment;
//! - **V3** a NO cancels only the YES that it names: no other YES falls, unless its own speaker takes
//!   it back and says so;
//! - **V4** a disagreement lasts at most until the messages that were in flight when it began have
//!   been heard, and those that were said in answer.
//!
//! And there is exactly one real of every player. Where a region has crashed, and messages with it,
//! the news of that counts as in flight for [`NEWS_TICKS`].

use std::collections::{BTreeMap, BTreeSet};

use purview::scene::messages::Input;
use purview::scene::views::{PeerState, Say, ViewMsg};
use purview::scene::{EntityId, RegionId, Tick};

use super::brute::{Pair, pair};
use super::world::World;

/// Until a neighbour of a crashed region must have noticed: its patience, the expiry of ghosts and
/// the search for those without an owner.
pub const NEWS_TICKS: u64 = 60;

type Msg = (EntityId, EntityId, Say);

/// Where a player's registers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    Region(RegionId),
    /// In a handoff that has not arrived, which this region sent.
    OnItsWay(RegionId),
}

#[derive(Debug)]
struct Held {
    home: Home,
    peers: Vec<PeerState>,
}

impl Held {
    fn of(&self, other: EntityId) -> Option<&PeerState> {
        self.peers.iter().find(|p| p.id == other)
    }

    fn links(&self) -> impl Iterator<Item = EntityId> {
        self.peers.iter().filter(|p| p.mine != 0 && p.his != 0).map(|p| p.id)
    }

    /// The numbers of the two YESes of a link.
    fn link(&self, other: EntityId) -> Option<(u32, u32)> {
        self.of(other).map(|p| (p.mine, p.his)).filter(|(mine, his)| *mine != 0 && *his != 0)
    }
}

/// A disagreement, and the messages of which one must end it.
#[derive(Debug)]
struct Odd {
    since: u64,
    /// Who has a link, and the numbers of the two YESes that it has.
    link: (EntityId, u32, u32),
    waits_for: Vec<Msg>,
    /// How often all of these were heard and it went on.
    heard: u32,
}

/// The state as of the last step.
#[derive(Debug, Default)]
pub struct Safety {
    known: BTreeMap<EntityId, Held>,
    flight: Vec<Msg>,
    odd: BTreeMap<Pair, Odd>,
    /// Pairs one of whose messages was lost with a region, until when.
    excused: BTreeMap<Pair, Tick>,
    /// Steps in which two disagreed: to see that something was tried.
    pub odd_steps: u64,
}

impl Safety {
    /// The region's actor ended, and messages of these pairs with it.
    pub fn crashed(&mut self, region: RegionId, tick: Tick, pairs: impl Iterator<Item = Pair>) {
        self.known.retain(|_, held| held.home != Home::Region(region));
        self.lost(tick, pairs);
    }

    /// A player was lost on its way to a region.
    pub fn forget(&mut self, id: EntityId) {
        self.known.remove(&id);
    }

    /// Messages of these pairs were lost with a region.
    pub fn lost(&mut self, tick: Tick, pairs: impl Iterator<Item = Pair>) {
        self.excused.extend(pairs.map(|p| (p, Tick(tick.0 + NEWS_TICKS))));
    }

    /// Judges what the last step, of the region `at`, has made of everything.
    pub fn look(&mut self, w: &World, at: RegionId) {
        self.excused.retain(|_, until| *until >= w.tick);
        let mut on_their_way = Vec::new();
        let mut flight: Vec<Msg> = Vec::new();
        let mut add = |m: &ViewMsg| flight.push((m.from, m.to, m.say));
        for ((from, _), queue) in &w.queues {
            for input in queue {
                match input {
                    Input::View(msg) => add(msg),
                    Input::Settle(batch) => batch.letters.iter().for_each(&mut add),
                    Input::Handoff(h) => {
                        on_their_way.push((h.state.id, *from, h.peers.clone()));
                    }
                    _ => {}
                }
            }
        }
        for region in &w.regions {
            region.inspect_mail().iter().for_each(&mut add);
        }
        let before = std::mem::replace(&mut self.flight, flight);
        let (mut old, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.known).into_iter().partition(|(_, h)| of(h.home) == at);
        self.known = others;
        for (id, from, peers) in on_their_way {
            self.hold(w, id, Home::OnItsWay(from), peers);
        }
        for (id, peers) in w.regions[at.0 as usize].inspect_registers() {
            old.extend(self.hold(w, id, Home::Region(at), peers).map(|was| (id, was)));
        }
        for (id, was) in &old {
            self.no_cancels_only_what_it_names(w, *id, was, &before);
        }
        self.disagreements(w, at, &old);
    }

    /// Notes where a player's registers are now; what they were elsewhere.
    fn hold(&mut self, w: &World, id: EntityId, home: Home, peers: Vec<PeerState>) -> Option<Held> {
        let links = peers.iter().filter(|p| p.mine != 0 && p.his != 0).count();
        let cap = w.scene.spec.view_cap;
        assert!(links <= cap, "V2: {id} has {links} links and room for {cap}");
        let was = self.known.insert(id, Held { home, peers });
        let elsewhere = was.as_ref().map(|was| was.home).filter(|h| matches!(h, Home::Region(_)));
        assert!(elsewhere.is_none_or(|h| h == home), "{id} lives in {elsewhere:?} and {home:?}");
        was
    }

    fn no_cancels_only_what_it_names(&self, w: &World, id: EntityId, was: &Held, before: &[Msg]) {
        let Some(now) = self.known.get(&id) else { return };
        for peer in was.peers.iter().filter(|p| p.mine != 0) {
            let still = now.of(peer.id).is_some_and(|p| p.mine == peer.mine);
            let other = self.known.get(&peer.id);
            // Within a region all is said and heard within a step.
            let apart = other.is_some_and(|o| of(o.home) != of(now.home));
            if still || !apart || self.is_excused(w, pair(id, peer.id)) {
                continue;
            }
            let named = |m: &&Msg| {
                (m.0, m.1) == (peer.id, id)
                    && matches!(m.2, Say::No { echo, .. } if echo == peer.mine)
            };
            let count = |msgs: &[Msg]| msgs.iter().filter(named).count();
            let cancelled = count(before) > count(&self.flight);
            let no = |m: &&Msg| (m.0, m.1) == (id, peer.id) && matches!(m.2, Say::No { .. });
            let taken_back =
                self.flight.iter().filter(no).count() > before.iter().filter(no).count();
            assert!(
                cancelled || taken_back,
                "V3: the YES {} of {id} to {} fell, and no NO named it",
                peer.mine,
                peer.id
            );
        }
    }

    fn disagreements(&mut self, w: &World, at: RegionId, old: &BTreeMap<EntityId, Held>) {
        let here = self.known.iter().filter(|(_, h)| of(h.home) == at);
        let mut pairs: BTreeSet<Pair> = self.odd.keys().copied().collect();
        for (id, held) in here.chain(old) {
            pairs.extend(held.links().map(|other| pair(*id, other)));
        }
        for (a, b) in pairs {
            let link = match self.known.get(&a).zip(self.known.get(&b)) {
                Some((ha, hb)) => match (ha.link(b), hb.link(a)) {
                    (Some((mine, his)), None) => Some((a, mine, his)),
                    (None, Some((mine, his))) => Some((b, mine, his)),
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
                "V1: {a} and {b} disagree and nothing is under way"
            );
            let begun = Odd { since: w.steps, link, waits_for: now.clone(), heard: 0 };
            let odd = self.odd.entry((a, b)).or_insert(begun);
            odd.waits_for.retain(|m| now.contains(m));
            if odd.waits_for.is_empty() {
                odd.heard += 1;
                odd.waits_for = now;
            }
            assert!(excused || odd.heard < 2, "V4: {a} and {b} disagree since step {}", odd.since);
        }
    }

    fn is_excused(&self, w: &World, pair: Pair) -> bool {
        self.excused.get(&pair).is_some_and(|until| *until >= w.tick)
    }

    /// Nobody moves or speaks any more: nothing is left behind, of anybody, anywhere.
    pub fn nothing_is_left(&self, w: &World) {
        let alive: BTreeSet<EntityId> = w.truth.keys().copied().collect();
        // Regions keep what is said to nobody for a while.
        let speaking: Vec<&Msg> = self.flight.iter().filter(|m| alive.contains(&m.1)).collect();
        assert!(speaking.is_empty(), "somebody is still speaking: {speaking:?}");
        let home: BTreeMap<EntityId, RegionId> =
            self.known.iter().map(|(id, held)| (*id, of(held.home))).collect();
        assert_eq!(home.keys().copied().collect::<BTreeSet<_>>(), alive, "who lives somewhere");
        for (id, held) in &self.known {
            for p in &held.peers {
                let what = format!("{id} has {p:?}");
                let Some(other) = self.known.get(&p.id) else { panic!("a ghost: {what}") };
                assert_eq!(p.mine != 0, p.his != 0, "half a link: {what}");
                let back = other.of(*id);
                assert_eq!(
                    held.link(p.id).is_some(),
                    other.link(*id).is_some(),
                    "one-sided: {what}, {back:?}"
                );
                let owed = back.is_some_and(|b| b.owed);
                assert!(!(p.owed && owed), "each waits for the other: {what}, {back:?}");
            }
        }
        for region in w.regions.iter().filter(|r| !w.down.contains_key(&r.id())) {
            assert!(region.is_closed(), "region {} still waits for a neighbour", region.id());
            for e in region.inspect(None).entities {
                let what = format!("region {} has {e:?}", region.id());
                assert_eq!(home.get(&e.id), Some(&e.owner), "a ghost of nobody: {what}");
                let t = &w.truth[&e.id];
                assert_eq!((e.pos, e.plane), (t.pos, t.plane), "elsewhere: {what}");
            }
        }
    }
}

fn of(home: Home) -> RegionId {
    match home {
        Home::Region(id) | Home::OnItsWay(id) => id,
    }
}
