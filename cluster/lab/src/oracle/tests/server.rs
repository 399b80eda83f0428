//! A correct server for the tests: one process, brute force, greedy caps.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use purview::scene::{
    EntityId, Epoch, Facing, Heights, Kind, Plane, Pos, RangeSet, Seq, Tick, Visibility,
};
use purview::wire::client::Joined;
use purview::wire::client::frame::Acted;
use purview::wire::{Entered, Frame, JoinRules, Moved};

use crate::oracle::{ClientId, Event, Findings, Options, Oracle, Sent, digest};

pub struct Sim {
    pub id: EntityId,
    pub pos: Pos,
    /// The position one tick ago, which the other region knows; `None` for a new player.
    late: Option<Pos>,
    pub plane: Plane,
    pub seq: Seq,
    /// The entities that it is shown, with the last position and its tick.
    shown: BTreeMap<EntityId, (Pos, u64)>,
    acts: Vec<Vec<u8>>,
}

pub struct Server {
    pub rules: JoinRules,
    /// Odd and even ids belong to two regions; each hears of the other a tick late.
    pub two_regions: bool,
    pub tick: u64,
    pub players: BTreeMap<ClientId, Sim>,
    /// Pairs that came into range and have not gone out of it since.
    latched: BTreeSet<(EntityId, EntityId)>,
    pub events: Vec<Event>,
}

pub fn rules(visibility: Visibility, view_cap: u32) -> JoinRules {
    JoinRules {
        visibility,
        range: RangeSet::FULL,
        sight: RangeSet::FULL,
        patch_cm: [400; 2],
        patch_margin_cm: 0,
        height_cm: None,
        view_cap,
        view_margin_cm: 0,
        rates: [1, 3, 6],
        size_cm: [10_000, 10_000],
        movement: None,
        updates: None,
    }
}

pub fn joined(id: EntityId, tick: u64, (plane, pos): (Plane, Pos), rules: JoinRules) -> Joined {
    Joined {
        id,
        scene: "test".into(),
        plane,
        pos,
        facing: Default::default(),
        tick: Tick(tick),
        rules,
        own: None,
        ack: Seq(0),
        ticket: None,
    }
}

impl Server {
    pub fn new(rules: JoinRules) -> Server {
        Server {
            rules,
            two_regions: false,
            tick: 10,
            players: BTreeMap::new(),
            latched: BTreeSet::new(),
            events: Vec::new(),
        }
    }

    /// Takes effect at the next step.
    pub fn join(&mut self, client: ClientId, pos: Pos) {
        let id = EntityId(1_000 + u64::from(client));
        let plane = Plane(0);
        self.events.push(Event::Joining(client));
        let joined = joined(id, self.tick + 1, (plane, pos), self.rules.clone());
        self.events.push(Event::Joined(client, Box::new(joined)));
        let (shown, acts) = (BTreeMap::new(), Vec::new());
        self.players.insert(client, Sim { id, pos, late: None, plane, seq: Seq(0), shown, acts });
    }

    pub fn walk(&mut self, client: ClientId, pos: Pos) {
        let Some(p) = self.players.get_mut(&client) else { return };
        p.seq = p.seq.next();
        p.pos = pos;
        self.events.push(Event::Sent { client, seq: p.seq, what: Sent::Move(pos) });
    }

    pub fn teleport(&mut self, client: ClientId, plane: Plane, pos: Pos) {
        let Some(p) = self.players.get_mut(&client) else { return };
        p.seq = p.seq.next();
        let what = Sent::Teleport { scene: None, plane: Some(plane), pos };
        self.events.push(Event::Sent { client, seq: p.seq, what });
        if plane != p.plane {
            let joined = joined(p.id, self.tick + 1, (plane, pos), self.rules.clone());
            let joined = Joined { ack: p.seq, ..joined };
            self.events.push(Event::Joined(client, Box::new(joined)));
        }
        (p.pos, p.plane) = (pos, plane);
    }

    pub fn act(&mut self, client: ClientId, payload: &[u8]) {
        let Some(p) = self.players.get_mut(&client) else { return };
        p.seq = p.seq.next();
        p.acts.push(payload.to_vec());
        let what = Sent::Act(digest(payload));
        self.events.push(Event::Sent { client, seq: p.seq, what });
    }

    pub fn leave(&mut self, client: ClientId) {
        if let Some(p) = self.players.remove(&client) {
            self.latched.retain(|(a, b)| *a != p.id && *b != p.id);
            self.events.push(Event::Left(client, Tick(self.tick + 1)));
        }
    }

    /// Runs a tick. `spoil` may change a client's frame, or drop it by returning false.
    pub fn step(&mut self, mut spoil: impl FnMut(u64, ClientId, &mut Frame) -> bool) {
        self.tick += 1;
        let links = self.links();
        let truth: BTreeMap<EntityId, (Pos, Pos, Vec<Vec<u8>>)> = self
            .players
            .values_mut()
            .map(|p| (p.id, (p.pos, p.late.unwrap_or(p.pos), std::mem::take(&mut p.acts))))
            .collect();
        let (tick, rules, two) = (self.tick, &self.rules, self.two_regions);
        for (&client, me) in &mut self.players {
            let mut frame = empty_frame(tick, me.seq);
            let want = links.get(&me.id).cloned().unwrap_or_default();
            frame.leaves = me.shown.keys().filter(|id| !want.contains(id)).copied().collect();
            me.shown.retain(|id, _| want.contains(id));
            for id in want {
                let (pos, late, acts) = &truth[&id];
                let pos = if two && across(me.id, id) { late } else { pos };
                match me.shown.get(&id).copied() {
                    None => frame.enters.push(entered(id, *pos)),
                    Some((told, at)) if told != *pos && tick >= at + rate(rules, me.pos, *pos) => {
                        frame.moves.push(moved(id, *pos, 0));
                    }
                    Some(_) => {
                        frame.acts.extend(acts.iter().map(|a| acted(id, a)));
                        continue;
                    }
                }
                frame.acts.extend(acts.iter().map(|a| acted(id, a)));
                me.shown.insert(id, (*pos, tick));
            }
            if spoil(tick, client, &mut frame) {
                self.events.push(Event::Frame(client, Box::new(frame)));
            }
        }
        self.players.values_mut().for_each(|p| p.late = Some(p.pos));
    }

    /// Greedy: all pairs in range, by distance and ids, are linked while both have room.
    fn links(&mut self) -> BTreeMap<EntityId, BTreeSet<EntityId>> {
        let mut pairs = Vec::new();
        let all: Vec<&Sim> = self.players.values().collect();
        for (i, a) in all.iter().enumerate() {
            for b in &all[i + 1..] {
                let d2 = a.pos.dist2(b.pos);
                let name = (a.id.min(b.id), a.id.max(b.id));
                let was = self.latched.contains(&name);
                let in_range = |a: Pos, b: Pos| match self.rules.visibility {
                    Visibility::Patches if was => is_kept(&self.rules, a, b),
                    Visibility::Patches => ring(&self.rules, a, b) <= 2,
                    Visibility::Circle { enter_cm, leave_cm } => {
                        let limit = if was { leave_cm } else { enter_cm } as u64;
                        a.dist2(b) <= limit * limit
                    }
                    Visibility::All => true,
                };
                let heights = Heights::within(self.rules.height_cm);
                let in_range = |a: Pos, b: Pos| heights.hold(a.y, b.y, was) && in_range(a, b);
                let near = a.plane == b.plane
                    && match self.two_regions && across(a.id, b.id) {
                        true => {
                            in_range(a.pos, b.late.unwrap_or(b.pos))
                                && in_range(a.late.unwrap_or(a.pos), b.pos)
                        }
                        false => in_range(a.pos, b.pos),
                    };
                if near {
                    pairs.push((d2.isqrt(), name));
                    self.latched.insert(name);
                } else {
                    self.latched.remove(&name);
                }
            }
        }
        pairs.sort();
        let mut links: BTreeMap<EntityId, BTreeSet<EntityId>> = BTreeMap::new();
        let cap = self.rules.view_cap as usize;
        for (_, (a, b)) in pairs {
            let room = |id| links.get(&id).is_none_or(|l: &BTreeSet<_>| l.len() < cap);
            if room(a) && room(b) {
                links.entry(a).or_default().insert(b);
                links.entry(b).or_default().insert(a);
            }
        }
        links
    }
}

/// Players 1 and 2 join at one place and see each other. `each` may change the frames of a tick before they come.
pub fn play_two(
    joins: impl Fn(EntityId) -> Joined,
    ticks: Range<u64>,
    mut each: impl FnMut(&mut Oracle, &mut Frame, &mut Frame),
) -> Findings {
    let (mut oracle, ids) = (Oracle::new(Options::default()), [EntityId(1), EntityId(2)]);
    let mut start = Pos::default();
    for id in ids {
        let joined = joins(id);
        start = joined.pos;
        oracle.event(Event::Joining(id.0 as ClientId));
        oracle.event(Event::Joined(id.0 as ClientId, Box::new(joined)));
    }
    for tick in ticks.clone() {
        let [mut one, mut two] = [(); 2].map(|()| empty_frame(tick, Seq(0)));
        if tick == ticks.start {
            (one.enters, two.enters) = (vec![entered(ids[1], start)], vec![entered(ids[0], start)]);
        }
        each(&mut oracle, &mut one, &mut two);
        oracle.event(Event::Frame(1, Box::new(one)));
        oracle.event(Event::Frame(2, Box::new(two)));
    }
    oracle.finish()
}

pub fn empty_frame(tick: u64, ack: Seq) -> Frame {
    Frame::empty(Tick(tick), ack, Epoch(1))
}

pub fn entered(id: EntityId, pos: Pos) -> Entered {
    Entered {
        id,
        kind: Kind::PLAYER,
        x: pos.x,
        y: pos.y,
        z: pos.z,
        facing: Default::default(),
        properties: vec![],
        trajectory: None,
    }
}

pub fn moved(id: EntityId, pos: Pos, vx: i32) -> Moved {
    Moved { id, x: pos.x, y: pos.y, z: pos.z, vx, vz: 0, facing: Facing::EAST }
}

pub fn acted(id: EntityId, payload: &[u8]) -> Acted {
    Acted { id, payload: payload.to_vec().into(), logic: false }
}

fn across(a: EntityId, b: EntityId) -> bool {
    a.0 % 2 != b.0 % 2
}

fn ring(rules: &JoinRules, a: Pos, b: Pos) -> i32 {
    let [width, depth] = rules.patch_cm;
    let dx = a.x.div_euclid(width) - b.x.div_euclid(width);
    let dz = a.z.div_euclid(depth) - b.z.div_euclid(depth);
    dx.abs().max(dz.abs())
}

/// Whether a pair that is in range stays so: a few steps towards each other would bring it into range.
fn is_kept(rules: &JoinRules, a: Pos, b: Pos) -> bool {
    let steps = [-rules.patch_margin_cm, 0, rules.patch_margin_cm];
    let moved =
        |p: Pos| steps.into_iter().flat_map(move |x| steps.map(|z| Pos::ground(p.x + x, p.z + z)));
    moved(a).any(|a| moved(b).any(|b| ring(rules, a, b) <= 2))
}

fn rate(rules: &JoinRules, a: Pos, b: Pos) -> u64 {
    u64::from(rules.rates[ring(rules, a, b).min(2) as usize])
}
