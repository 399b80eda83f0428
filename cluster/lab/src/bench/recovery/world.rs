//! Two regions of a scene and the sessions of their players.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, bail};
use purview::scene::messages::{
    Command, Destination, FIRST_SESSION, GroupMessage, Input, MessageId, Notice, Order, Presented,
    Recipients, RouteNotice,
};
use purview::scene::region::{Recovery, RegionSnapshot};
use purview::scene::views::NamedBond;
use purview::scene::{
    EntityHandle, EntityId, Epoch, Kind, Plane, Pos, Region, RegionId, SceneId, SceneSpec, Seq,
    SessionId, Tick, Visibility,
};

use crate::bench::density::side_of;
use crate::bench::regions::{LAND_CM, Regions, Sessions, commanded, scene, spawn};
use crate::bench::straight_walkers::StraightWalkers;

pub(super) const HERE: RegionId = RegionId(0);

pub(super) const THERE: RegionId = RegionId(1);

/// For how many ticks players may be presented.
const GRACE_TICKS: u64 = 100;

#[derive(Debug, Clone, Copy)]
struct Known {
    pos: Pos,
    lives_in: RegionId,
    epoch: Epoch,
    tick: Tick,
    inputs: Seq,
}

pub(super) struct Players {
    all: BTreeMap<u64, Known>,
    /// Whether each session sends an input for every route that it is told.
    pub(super) answers: bool,
    /// Where they stand, in a region of this width.
    places: StraightWalkers,
    width_cm: i32,
}

impl Sessions for Players {
    fn told(&mut self, session: SessionId, notice: Notice) -> Option<(RegionId, Input)> {
        let known = self.all.get_mut(&session.0)?;
        match notice {
            Notice::Route(route) if route.epoch > known.epoch => {
                let RouteNotice { region, epoch, tick, pos, last_applied, .. } = route;
                *known = Known { pos, lives_in: region, epoch, tick, inputs: last_applied.next() };
                let (id, seq) = (EntityId(session.0), known.inputs);
                let (order, handle) = (Order::Move(pos), EntityHandle::default());
                let input = Input::Client { id, session, seq, order, handle };
                self.answers.then_some((region, input))
            }
            Notice::Present { region, epoch, .. } if epoch > known.epoch => {
                // It was handed there, and its session does not know of that.
                (known.lives_in, known.epoch) = (region, epoch);
                Some((region, presented(session.0, known)))
            }
            _ => None,
        }
    }
}

/// What a session presents to the region where its player lives.
fn presented(id: u64, known: &Known) -> Input {
    Input::Present(Box::new(Presented {
        id: EntityId(id),
        session: SessionId(id),
        to: known.lives_in,
        epoch: known.epoch,
        pos: known.pos,
        tick: known.tick,
        since_ms: FIRST_SESSION,
        ..Presented::default()
    }))
}

pub(super) type World = Regions<Players>;

impl World {
    /// Two regions side by side, each with room for so many players.
    pub(super) fn side_by_side(players: usize, density: f64, seed: u64) -> anyhow::Result<World> {
        let side = side_of(players as f64, density, Visibility::Patches);
        let lands = (side / f64::from(LAND_CM)).ceil().max(1.0) as i32;
        let width_cm = lands.saturating_mul(LAND_CM);
        let spec = SceneSpec {
            name: "bench".into(),
            width_cm: width_cm.saturating_mul(2),
            depth_cm: width_cm,
            region_lands_x: lands,
            region_lands_z: lands,
            visibility: Visibility::Patches,
            spawn_x_cm: 0,
            spawn_z_cm: 0,
            ..SceneSpec::default()
        };
        let places = StraightWalkers::new(2 * players, side, 0.0, seed);
        let players = Players { all: BTreeMap::new(), answers: false, places, width_cm };
        Regions::new(scene(spec)?, players)
    }

    /// The place of the `i`th of a region's players, which stand.
    pub(super) fn place(&self, region: RegionId, i: usize) -> Pos {
        let pos = self.sessions.places.pos(i);
        let x = if region == HERE { pos.x } else { 2 * self.sessions.width_cm - 1 - pos.x };
        Pos { x, ..pos }
    }

    /// A player enters in the next tick.
    pub(super) fn enter(&mut self, id: u64, region: RegionId, pos: Pos) {
        let (epoch, tick, inputs) = (Epoch(0), self.tick, Seq(0));
        let known = Known { pos, lives_in: region, epoch, tick, inputs };
        self.sessions.all.insert(id, known);
        self.send(region, Input::Enter(Box::new(spawn(id, Kind::PLAYER, pos))));
    }

    /// So many processes have each sent a message for a group that has no members.
    pub(super) fn let_processes_speak(&mut self, processes: u64) {
        let to = Recipients::Bond(NamedBond::new("party", 1));
        let sent_ms = self.tick.0 * 100;
        for sender in 1..=processes {
            let (id, payload) = (MessageId { sender, number: 0 }, Default::default());
            let message = GroupMessage { id, to: to.clone(), payload, sent_ms };
            for region in [HERE, THERE] {
                self.send(region, Input::Group(Box::new(message.clone())));
            }
        }
    }

    /// The game's logic gives a command.
    pub(super) fn command(&mut self, to: RegionId, command: Command) {
        self.send(to, commanded(command));
    }

    /// The `i`th place of the other region is where a player teleports to.
    pub(super) fn teleport(&mut self, id: u64, from: RegionId, i: usize) {
        let region = if from == HERE { THERE } else { HERE };
        let (scene, plane, pos) = (SceneId(0), Plane(0), self.place(region, i));
        let to = Destination { scene, region, plane, pos };
        self.command(from, Command::Order(EntityId(id), Order::Teleport(to)));
    }

    pub(super) fn checkpoint(&self, id: RegionId) -> anyhow::Result<Vec<u8>> {
        let snapshot = self.all.get(&id).and_then(Region::checkpoint);
        Ok(snapshot.context("the region's tick is open")?.encode()?)
    }

    /// A region dies; it goes on from what was kept of it, and the sessions that know of a player there present it.
    pub(super) fn die(&mut self, id: RegionId, kept: &[u8]) -> anyhow::Result<()> {
        let snapshot = RegionSnapshot::decode(kept)?;
        let ask = self.all.keys().copied().collect();
        let how = Recovery { ask, grace_ticks: GRACE_TICKS, owners: Vec::new() };
        let (scene, epoch) = (self.scene.clone(), Epoch(2));
        let region = Region::recover(scene, id, epoch, snapshot, how, &mut self.fx)?;
        self.all.insert(id, region);
        let there = self.sessions.all.iter().filter(|(_, known)| known.lives_in == id);
        let presented = there.map(|(session, known)| (id, presented(*session, known)));
        self.under_way.extend(presented);
        self.carry(id);
        Ok(())
    }

    /// `gone` is merged into `heir`.
    pub(super) fn merge(&mut self, heir: RegionId, gone: RegionId) -> anyhow::Result<()> {
        let layout = self.scene.map.layout().merge(heir, gone)?;
        let (scene, tick) = (Arc::new(self.scene.with_layout(&layout)?), self.tick);
        for region in self.all.values_mut() {
            region.propose(scene.clone(), tick)?;
        }
        // The one that gives its ground up hands its players over before the other one has changed over.
        for id in [gone, heir] {
            self.with(id, |region, _, fx| region.decide(layout.version, true, fx));
        }
        self.scene = scene;
        Ok(())
    }

    /// How many players live in a region by its own account.
    pub(super) fn living(&self, id: RegionId) -> usize {
        let Some(region) = self.all.get(&id) else { return 0 };
        let lives = |id: u64| region.find(EntityId(id)).is_some_and(|found| !found.ghost);
        self.sessions.all.keys().filter(|session| lives(**session)).count()
    }

    /// How many players of a region wait for their sessions.
    pub(super) fn unclaimed(&self, id: RegionId) -> usize {
        self.all.get(&id).map_or(0, |region| region.unclaimed_sessions().count())
    }

    pub(super) fn entities(&self, id: RegionId) -> usize {
        let counts = self.all.get(&id).map(Region::counts);
        counts.map_or(0, |counts| (counts.reals + counts.ghosts) as usize)
    }

    /// Ticks until something has come to pass.
    pub(super) fn step_until(&mut self, done: impl Fn(&World) -> bool) -> anyhow::Result<u64> {
        for ticks in 1..=GRACE_TICKS {
            self.step();
            if done(self) {
                return Ok(ticks);
            }
        }
        bail!("the regions do not come to rest within {GRACE_TICKS} ticks")
    }
}
