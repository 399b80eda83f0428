//! Properties and facings that change all the while a history is played, and what every client must
//! know of them at its end.
//!
//! Each value names its audience and its entity, so that a value that a client may not see is found in
//! the bytes of its frames.

use std::collections::BTreeSet;

use purview::scene::inspect::EntityDetails;
use purview::scene::messages::{FrameBatch, Order, SetProperty};
use purview::scene::properties::{Audience, Detail, PropertyId, PropertySpec, Value, Writer};
use purview::scene::{EntityId, Facing, Kind, SceneSpec, SessionId};
use purview::wire::EncodedBatch;

use super::Rng;
use super::client::Client;
use super::commands::order_of;
use super::session::in_world;
use super::world::World;

/// The properties of players; other kinds have those that need no client.
pub fn with_properties(mut spec: SceneSpec) -> SceneSpec {
    let of = PropertySpec::new;
    let shared = || {
        vec![
            of(1, "hp"),
            PropertySpec { detail: Detail::Near, ..of(2, "near") },
            PropertySpec { audience: Audience::Server, ..of(5, "mind") },
        ]
    };
    spec.kinds.iter_mut().for_each(|kind| kind.properties = shared());
    spec.kinds[0].properties.extend([
        PropertySpec { audience: Audience::Owner, ..of(3, "gold") },
        PropertySpec { audience: Audience::Bonded, ..of(4, "target") },
        PropertySpec { writer: Writer::Owner, detail: Detail::Middle, ..of(6, "stance") },
    ]);
    spec
}

/// Changes of properties and facings, drawn from a seed.
#[derive(Debug)]
pub struct Touches {
    rng: Rng,
    /// Values so far.
    pub count: u64,
    /// Pairs that shared a bond once.
    bonded: BTreeSet<(EntityId, EntityId)>,
    stopped: bool,
}

impl Touches {
    pub fn new(seed: u64) -> Touches {
        Touches { rng: Rng::new(seed), count: 0, bonded: BTreeSet::new(), stopped: false }
    }

    /// Nothing changes any more.
    pub fn stop(&mut self) {
        self.stopped = true;
    }
}

fn audience(w: &World, kind: Kind, id: PropertyId) -> Audience {
    w.scene.schema(kind).unwrap().audience(id)
}

fn word(audience: Audience) -> &'static str {
    match audience {
        Audience::Viewers => "viewers",
        Audience::Owner => "owner",
        Audience::Bonded => "bonded",
        Audience::Server => "server",
    }
}

impl World {
    /// Some properties and facings change, if they do in this history.
    pub fn touch(&mut self) {
        let Some(mut touches) = self.touches.take() else { return };
        let truth: Vec<_> = self.truth.iter().map(|(id, t)| (*id, t.bonds.clone())).collect();
        for (a, bonds) in &truth {
            let shares = |(b, theirs): &&(EntityId, Vec<_>)| {
                a != b && bonds.iter().any(|bond| theirs.contains(bond))
            };
            touches.bonded.extend(truth.iter().filter(shares).map(|(b, _)| (*a, *b)));
        }
        if touches.stopped {
            self.touches = Some(touches);
            return;
        }
        for _ in 0..touches.rng.below(4) {
            let id = truth.get(touches.rng.below(truth.len().max(1))).map(|(id, _)| *id);
            let Some((id, at)) = id.and_then(|id| Some((id, self.home_id(id)?))) else { continue };
            let kind = self.truth[&id].kind;
            let ids: &[u8] = if kind == Kind::PLAYER { &[1, 2, 3, 4, 5] } else { &[1, 2, 5] };
            let property = PropertyId(ids[touches.rng.below(ids.len())]);
            let order = match touches.rng.below(4) {
                0 => Order::Face(Facing(touches.rng.next() as u16)),
                _ => self.new_value(&mut touches, id, kind, property),
            };
            self.tell(at, order_of(id, order));
        }
        if touches.rng.chance(20) {
            self.touch_own(&mut touches);
        }
        self.touches = Some(touches);
    }

    fn new_value(&self, t: &mut Touches, id: EntityId, kind: Kind, property: PropertyId) -> Order {
        t.count += 1;
        let value = format!("{}#{id}#{}", word(audience(self, kind, property)), t.count);
        Order::Set(SetProperty { id: property, value: Value::of(&value).unwrap() })
    }

    /// A client turns its player, or sets a property.
    fn touch_own(&mut self, touches: &mut Touches) {
        let there = |c: &Client| c.epoch.0 > 0 && in_world(c) && !c.leaving && !c.deaf;
        let all = self.clients.iter().filter(|(_, c)| there(c)).map(|(s, c)| (*s, c.entity));
        let all: Vec<(SessionId, EntityId)> = all.collect();
        let Some((session, id)) = all.get(touches.rng.below(all.len().max(1))).copied() else {
            return;
        };
        let order = match touches.rng.below(2) {
            0 => Order::Face(Facing(touches.rng.next() as u16)),
            _ => self.new_value(touches, id, Kind::PLAYER, PropertyId(6)),
        };
        self.order(session, order);
    }

    fn at_home(&self, id: EntityId) -> EntityDetails {
        assert!(self.acting_region(id).is_some(), "{id} lives nowhere");
        self.living(id).expect("it lives there")
    }

    /// No frame has a value that its client may not see.
    pub fn check_bytes(&self, batch: &FrameBatch) {
        let Some(touches) = &self.touches else { return };
        let encoded = EncodedBatch::new(batch.clone());
        for (index, part) in batch.sessions.iter().enumerate() {
            let Some(client) = self.clients.get(&part.session) else { continue };
            let me = client.entity;
            let mut bytes = Vec::new();
            encoded.write_frame(index, false, &mut bytes);
            let owners = |word: &str| owners(&bytes, word);
            assert_eq!(owners("server"), [], "{me} was sent what is for the server alone");
            assert!(owners("owner").iter().all(|id| *id == me), "{me} was sent another's gold");
            let may = |id: &EntityId| *id == me || touches.bonded.contains(&(me, *id));
            let bonded = owners("bonded");
            assert!(bonded.iter().all(may), "{me} was sent the target of one of {bonded:?}");
        }
    }

    /// At rest every client knows exactly the newest values that it may see.
    pub fn properties_are_right(&self) {
        let mut known = 0;
        for client in self.in_world() {
            let me = client.entity;
            let own = self.at_home(me);
            let told: BTreeSet<EntityId> =
                client.told.properties.keys().copied().filter(|id| *id != me).collect();
            let shown: BTreeSet<EntityId> = client.shown.keys().copied().collect();
            assert!(told.is_subset(&shown), "{me} was told of {told:?} and sees {shown:?}");
            for level in own.properties.levels() {
                let audience = audience(self, Kind::PLAYER, level.id);
                let want = (audience != Audience::Server).then_some(&level.value);
                assert_eq!(client.told.value(me, level.id.0), want, "{me}'s own {}", level.id);
                let session = client.player.as_ref().map(|p| p.properties().get(level.id));
                let session = session.map(|level| level.map(|level| level.value.clone()));
                let right = session.as_ref().is_none_or(|of| of.as_ref() == Some(&level.value));
                assert!(right, "{me}'s session has {session:?} for {level:?}");
            }
            for id in shown {
                known += self.is_known(client, &own, &self.at_home(id));
            }
        }
        assert!(known > 0, "no client knows anything");
    }

    /// What a client knows of an entity that it sees is right. Says how many properties it knows.
    fn is_known(&self, client: &Client, own: &EntityDetails, other: &EntityDetails) -> usize {
        let (me, id, told) = (client.entity, other.id, &client.told);
        assert_eq!(told.facings.get(&id), Some(&other.facing), "{me}: the facing of {id}");
        let schema = self.scene.schema(other.kind).unwrap();
        let patch = |e: &EntityDetails| (e.pos.x.div_euclid(400), e.pos.z.div_euclid(400));
        let (mine, theirs) = (patch(own), patch(other));
        let ring = (mine.0 - theirs.0).abs().max((mine.1 - theirs.1).abs()).min(2) as u8;
        let bonds = |id| self.truth.get(&id).map_or(&[][..], |t| &t.bonds);
        let is_bonded = bonds(me).iter().any(|bond| bonds(id).contains(bond));
        let mut known = 0;
        for level in other.properties.levels() {
            let got = told.value(id, level.id.0);
            let audience = schema.audience(level.id);
            let may = audience.admits_viewer(is_bonded);
            if may && schema.detail(level.id).reaches(ring) {
                assert_eq!(got, Some(&level.value), "{me}: property {} of {id}", level.id);
                known += 1;
            }
            let never = matches!(audience, Audience::Owner | Audience::Server);
            assert!(!never || got.is_none(), "{me} knows property {} of {id}", level.id);
        }
        known
    }
}

/// The entities whose values of an audience are in these bytes.
fn owners(bytes: &[u8], word: &str) -> Vec<EntityId> {
    let mark = format!("{word}#").into_bytes();
    let starts = bytes.windows(mark.len()).enumerate().filter(|(_, w)| *w == mark);
    let id = |(at, _): (usize, &[u8])| {
        let digits = bytes[at + mark.len()..].iter().take_while(|b| b.is_ascii_digit());
        EntityId(digits.fold(0, |n, digit| 10 * n + u64::from(digit - b'0')))
    };
    starts.map(id).collect()
}
