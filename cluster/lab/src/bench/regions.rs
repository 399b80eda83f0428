//! The regions of a scene in one thread, without sockets: each message arrives at once and in order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use anyhow::Context;
use purview::scene::messages::{Asker, Command, CommandId, Effect, Input, Notice, Spawn};
use purview::scene::{
    EntityId, Kind, Pos, Region, RegionId, Scene, SceneId, SceneSpec, SessionId, Tick,
};

pub(super) const LAND_CM: i32 = 51_200;

/// The sessions of the players. The number of a session is that of its player.
pub(super) trait Sessions {
    /// A session is told something. Gives what it then sends to a region.
    fn told(&mut self, session: SessionId, notice: Notice) -> Option<(RegionId, Input)>;
}

/// A scene of ten ticks per second.
pub(super) fn scene(spec: SceneSpec) -> anyhow::Result<Arc<Scene>> {
    let scene = Scene::new(SceneId(0), spec, 100, RegionId(0)).map_err(|errors| {
        let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("no such scene: {}", all.join("; "))
    })?;
    Ok(Arc::new(scene))
}

/// An entity at a place; a player's session has its number.
pub(crate) fn spawn(id: u64, kind: Kind, pos: Pos) -> Spawn {
    let session = (kind == Kind::PLAYER).then_some(SessionId(id));
    Spawn { session, ..Spawn::new(EntityId(id), kind, pos) }
}

/// A command of the game's logic, as a caller gives it.
pub(super) fn commanded(command: Command) -> Input {
    Input::command(CommandId { from: Asker::Process(0), number: 0 }, command)
}

/// All regions of a scene, and the messages under way.
pub(super) struct Regions<S> {
    pub(super) scene: Arc<Scene>,
    pub(super) sessions: S,
    pub(super) tick: Tick,
    /// Batches between regions: ghosts and border rounds.
    pub(super) batches: u64,
    pub(super) all: BTreeMap<RegionId, Region>,
    pub(super) under_way: VecDeque<(RegionId, Input)>,
    pub(super) fx: Vec<Effect>,
}

impl<S: Sessions> Regions<S> {
    pub(super) fn new(scene: Arc<Scene>, sessions: S) -> anyhow::Result<Regions<S>> {
        let region = |id| Some((id, Region::new(scene.clone(), id)?));
        let all = scene.map.regions.iter().map(|r| region(r.id)).collect::<Option<_>>();
        let all = all.context("the scene has no regions")?;
        let (under_way, fx) = Default::default();
        Ok(Regions { scene, sessions, tick: Tick(0), batches: 0, all, under_way, fx })
    }

    pub(super) fn send(&mut self, to: RegionId, input: Input) {
        self.under_way.push_back((to, input));
    }

    /// The regions tick, and all that follows arrives.
    pub(super) fn step(&mut self) {
        self.deliver();
        self.tick = self.tick.next();
        let ids: Vec<_> = self.all.keys().copied().collect();
        for id in ids {
            self.with(id, |region, tick, fx| region.tick(tick, fx));
        }
        self.deliver();
    }

    pub(super) fn with(
        &mut self,
        id: RegionId,
        act: impl FnOnce(&mut Region, Tick, &mut Vec<Effect>),
    ) {
        let Some(region) = self.all.get_mut(&id) else { return };
        act(region, self.tick, &mut self.fx);
        self.carry(id);
    }

    fn deliver(&mut self) {
        while let Some((to, input)) = self.under_way.pop_front() {
            self.with(to, |region, _, fx| region.handle(input, fx));
        }
    }

    pub(super) fn carry(&mut self, from: RegionId) {
        for effect in self.fx.drain(..) {
            let message = match effect {
                Effect::Depart(_) => unreachable!("no players are stored here"),
                Effect::Frames(batch) => {
                    if let Some(region) = self.all.get_mut(&from) {
                        region.recycle(batch);
                    }
                    None
                }
                Effect::Border(to, batch) => {
                    self.batches += 1;
                    Some((to, Input::Border(batch)))
                }
                Effect::BorderRound(to, batch) => {
                    self.batches += 1;
                    Some((to, Input::BorderRound(batch)))
                }
                Effect::View(to, msg) => Some((to, Input::View(msg))),
                Effect::Handoff(to, handoff) => Some((to, Input::Handoff(handoff))),
                Effect::Forward(to, input) => Some((to, *input)),
                Effect::Notice(session, notice) => self.sessions.told(session, notice),
                // There is no logic, and clients are not simulated.
                Effect::Answer(..)
                | Effect::TellGroup(..)
                | Effect::Scene(..)
                | Effect::Locate(_)
                | Effect::KeepBonds(..) => None,
            };
            self.under_way.extend(message);
        }
    }
}
