//! Two regions of a scene and the sessions of their players, in one thread: each message arrives at once and in order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use anyhow::{Context, bail};
use purview::scene::messages::{
    Asker, Command, CommandId, Destination, Effect, FIRST_SESSION, GroupMessage, Input, MessageId,
    Notice, Order, Presented, Recipients, Spawn,
};
use purview::scene::region::{Recovery, RegionSnapshot};
use purview::scene::views::NamedBond;
use purview::scene::{
    EntityHandle, EntityId, Epoch, Facing, Kind, Plane, Pos, Region, RegionId, Scene, SceneId,
    SceneSpec, Seq, SessionId, Tick, ViewLimits, Visibility,
};

use super::super::crowd::Crowd;
use super::super::density::side_of;

/// The region that is measured.
pub(super) const HERE: RegionId = RegionId(0);

/// Its neighbour.
pub(super) const THERE: RegionId = RegionId(1);

/// The side of a land, centimetres.
const LAND_CM: i32 = 51_200;

/// For how many ticks players may be presented.
const GRACE_TICKS: u64 = 100;

/// What a session knows of its player.
#[derive(Debug, Clone, Copy)]
struct Known {
    pos: Pos,
    lives_in: RegionId,
    epoch: Epoch,
    tick: Tick,
    inputs: Seq,
}

/// The regions, and what is on its way.
#[derive(Debug)]
pub(super) struct World {
    scene: Arc<Scene>,
    regions: BTreeMap<RegionId, Region>,
    under_way: VecDeque<(RegionId, Input)>,
    /// The sessions by their numbers, which are those of their players.
    sessions: BTreeMap<u64, Known>,
    /// Whether each session sends an input for every route that it is told.
    answers: bool,
    tick: Tick,
    width_cm: i32,
    crowd: Crowd,
    fx: Vec<Effect>,
}

impl World {
    /// Two regions side by side, each with room for so many players.
    pub(super) fn new(players: usize, density: f64, seed: u64) -> anyhow::Result<World> {
        let visibility = Visibility::Patches;
        let side = side_of(players as f64, density, visibility);
        let lands = (side / f64::from(LAND_CM)).ceil().max(1.0) as i32;
        let width_cm = lands.saturating_mul(LAND_CM);
        let spec = SceneSpec {
            name: "bench".into(),
            width_cm: width_cm.saturating_mul(2),
            depth_cm: width_cm,
            region_lands_x: lands,
            region_lands_z: lands,
            visibility,
            spawn_x_cm: 0,
            spawn_z_cm: 0,
            ..SceneSpec::default()
        };
        let scene = Scene::new(SceneId(0), spec, 100, HERE).map_err(|errors| {
            let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
            anyhow::anyhow!("no such scene: {}", all.join("; "))
        })?;
        let scene = Arc::new(scene);
        let region = |id| Region::new(scene.clone(), id).context("the scene has no such region");
        let regions = BTreeMap::from([(HERE, region(HERE)?), (THERE, region(THERE)?)]);
        Ok(World {
            regions,
            under_way: VecDeque::new(),
            sessions: BTreeMap::new(),
            answers: false,
            tick: Tick(0),
            width_cm,
            crowd: Crowd::new(2 * players, side, 0.0, seed),
            fx: Vec::new(),
            scene,
        })
    }

    /// The place of the `i`th of a region's players, which stand.
    pub(super) fn place(&self, region: RegionId, i: usize) -> Pos {
        let pos = self.crowd.pos(i);
        let x = if region == HERE { pos.x } else { 2 * self.width_cm - 1 - pos.x };
        Pos { x, ..pos }
    }

    /// What begins at a place; a player's session has its number.
    pub(super) fn spawn(&self, id: u64, kind: Kind, pos: Pos) -> Spawn {
        Spawn {
            id: EntityId(id),
            kind,
            plane: Plane(0),
            pos,
            sight: ViewLimits::FULL,
            left_at: None,
            facing: Facing::EAST,
            properties: Default::default(),
            subject: Default::default(),
            account: Default::default(),
            session: (kind == Kind::PLAYER).then_some(SessionId(id)),
            bonds: Default::default(),
        }
    }

    /// A player enters in the next tick.
    pub(super) fn enter(&mut self, id: u64, region: RegionId, pos: Pos) {
        let (epoch, tick, inputs) = (Epoch(0), self.tick, Seq(0));
        self.sessions.insert(id, Known { pos, lives_in: region, epoch, tick, inputs });
        let spawn = self.spawn(id, Kind::PLAYER, pos);
        self.send(region, Input::Enter(Box::new(spawn)));
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

    /// From now on each session sends an input to where it learns that its player lives.
    pub(super) fn let_sessions_speak(&mut self) {
        self.answers = true;
    }

    /// A region is sent something.
    pub(super) fn send(&mut self, to: RegionId, input: Input) {
        self.under_way.push_back((to, input));
    }

    /// The game's logic gives a command.
    pub(super) fn command(&mut self, to: RegionId, command: Command) {
        let id = CommandId { from: Asker::Process(0), number: 0 };
        self.send(to, Input::command(id, command));
    }

    /// The `i`th place of the other region is where a player teleports to.
    pub(super) fn teleport(&mut self, id: u64, from: RegionId, i: usize) {
        let region = if from == HERE { THERE } else { HERE };
        let (scene, plane, pos) = (SceneId(0), Plane(0), self.place(region, i));
        let to = Destination { scene, region, plane, pos };
        self.command(from, Command::Order(EntityId(id), Order::Teleport(to)));
    }

    /// The regions tick, and all that follows arrives.
    pub(super) fn step(&mut self) {
        self.deliver();
        self.tick = self.tick.next();
        let ids: Vec<_> = self.regions.keys().copied().collect();
        for id in ids {
            self.with(id, |region, tick, fx| region.tick(tick, fx));
        }
        self.deliver();
    }

    fn with(&mut self, id: RegionId, act: impl FnOnce(&mut Region, Tick, &mut Vec<Effect>)) {
        let Some(region) = self.regions.get_mut(&id) else { return };
        act(region, self.tick, &mut self.fx);
        self.carry(id);
    }

    /// Lets all arrive that is under way.
    fn deliver(&mut self) {
        while let Some((to, input)) = self.under_way.pop_front() {
            self.with(to, |region, _, fx| region.handle(input, fx));
        }
    }

    fn carry(&mut self, from: RegionId) {
        for effect in std::mem::take(&mut self.fx) {
            match effect {
                Effect::Depart(_) => unreachable!("no players are stored here"),
                Effect::Frames(batch) => {
                    if let Some(region) = self.regions.get_mut(&from) {
                        region.recycle(batch);
                    }
                }
                Effect::Border(to, batch) => self.send(to, Input::Border(batch)),
                Effect::BorderRound(to, batch) => self.send(to, Input::BorderRound(batch)),
                Effect::View(to, msg) => self.send(to, Input::View(msg)),
                Effect::Handoff(to, handoff) => self.send(to, Input::Handoff(handoff)),
                Effect::Forward(to, input) => self.send(to, *input),
                Effect::Notice(session, notice) => self.notice(session, notice),
                Effect::Answer(..)
                | Effect::TellGroup(..)
                | Effect::Scene(..)
                | Effect::Locate(_)
                | Effect::KeepBonds(..) => {}
            }
        }
    }

    fn notice(&mut self, session: SessionId, notice: Notice) {
        let Some(known) = self.sessions.get_mut(&session.0) else { return };
        match notice {
            Notice::Route { region, epoch, tick, pos, last_applied, .. } if epoch > known.epoch => {
                *known = Known { pos, lives_in: region, epoch, tick, inputs: last_applied.next() };
                if self.answers {
                    let (id, seq) = (EntityId(session.0), known.inputs);
                    let (order, handle) = (Order::Move(pos), EntityHandle::default());
                    self.send(region, Input::Client { id, session, seq, order, handle });
                }
            }
            Notice::Present { region, epoch, .. } if epoch > known.epoch => {
                // It was handed there, and its session does not know of that.
                (known.lives_in, known.epoch) = (region, epoch);
                let presented = self.presented(session.0, region);
                self.under_way.extend(presented.map(|presented| (region, presented)));
            }
            _ => {}
        }
    }

    fn presented(&self, id: u64, to: RegionId) -> Option<Input> {
        let known = self.sessions.get(&id)?;
        Some(Input::Present(Box::new(Presented {
            id: EntityId(id),
            session: SessionId(id),
            subject: Default::default(),
            account: Default::default(),
            to,
            epoch: known.epoch,
            acked: Seq(0),
            plane: Plane(0),
            pos: known.pos,
            placed_by: Seq(0),
            own: None,
            tick: known.tick,
            sight: ViewLimits::FULL,
            facing: Facing::EAST,
            properties: Default::default(),
            bonds: Default::default(),
            teleport: None,
            since_ms: FIRST_SESSION,
        })))
    }

    /// What is to be kept of a region.
    ///
    /// # Errors
    /// Its tick is open, or it has too much.
    pub(super) fn checkpoint(&self, id: RegionId) -> anyhow::Result<Vec<u8>> {
        let snapshot = self.regions.get(&id).and_then(Region::checkpoint);
        Ok(snapshot.context("the region's tick is open")?.encode()?)
    }

    /// A region dies; it goes on from what was kept of it, and the sessions that know of a player there present it.
    ///
    /// # Errors
    /// What was kept is of no use.
    pub(super) fn die(&mut self, id: RegionId, kept: &[u8]) -> anyhow::Result<()> {
        let snapshot = RegionSnapshot::decode(kept)?;
        let ask = self.regions.keys().copied().collect();
        let how = Recovery { ask, grace_ticks: GRACE_TICKS, owners: Vec::new() };
        let (scene, epoch) = (self.scene.clone(), Epoch(2));
        let region = Region::recover(scene, id, epoch, snapshot, how, &mut self.fx)?;
        self.regions.insert(id, region);
        let there = self.sessions.iter().filter(|(_, known)| known.lives_in == id);
        let there: Vec<u64> = there.map(|(session, _)| *session).collect();
        let presented: Vec<_> = there.iter().filter_map(|s| self.presented(*s, id)).collect();
        self.under_way.extend(presented.into_iter().map(|presented| (id, presented)));
        self.carry(id);
        Ok(())
    }

    /// `gone` is merged into `heir`.
    ///
    /// # Errors
    /// The two cannot be merged.
    pub(super) fn merge(&mut self, heir: RegionId, gone: RegionId) -> anyhow::Result<()> {
        let layout = self.scene.map.layout().merge(heir, gone)?;
        let scene = Arc::new(self.scene.with_layout(&layout)?);
        for region in self.regions.values_mut() {
            region.propose(scene.clone(), self.tick)?;
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
        let Some(region) = self.regions.get(&id) else { return 0 };
        let lives = |id: u64| region.find(EntityId(id)).is_some_and(|found| !found.ghost);
        self.sessions.keys().filter(|session| lives(**session)).count()
    }

    /// How many players of a region wait for their sessions.
    pub(super) fn unclaimed(&self, id: RegionId) -> usize {
        self.regions.get(&id).map_or(0, |region| region.unclaimed_sessions().count())
    }

    /// How many entities a region knows.
    pub(super) fn entities(&self, id: RegionId) -> usize {
        let counts = self.regions.get(&id).map(Region::counts);
        counts.map_or(0, |counts| (counts.reals + counts.ghosts) as usize)
    }

    /// Ticks until something has come to pass.
    ///
    /// # Errors
    /// It does not.
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
