//! A whole scene in one value, to embed in a server of your own: entities and inputs go in, views and
//! events come out.
//!
//! [`World`] runs one region that covers the map, without actors, sockets, threads or a clock: the
//! caller decides when a tick ends. The game's rules may run inside ([`World::set_logic`]), as they do in
//! a server's regions. A server that must spread one map over several machines uses the
//! crate `purview-server` instead.
//!
//! ```
//! use purview::scene::Pos;
//! use purview::world::{Entity, Event, World};
//!
//! let mut world = World::builder().size_m(1_024, 1_024).build()?;
//! let ann = world.add(Entity::player(Pos::ground(10_000, 10_000)))?;
//! let bob = world.add(Entity::player(Pos::ground(12_000, 10_000)))?;
//! let events = world.tick();
//! assert!(events.contains(&Event::Entered { viewer: ann, subject: bob }));
//! assert_eq!(world.view(bob).collect::<Vec<_>>(), [ann]);
//! # Ok::<_, purview::world::WorldError>(())
//! ```

mod entity;
mod error;
mod event;
mod logic;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;

use crate::scene::layout::lands_along;
use crate::scene::messages::{
    Asker, Bond, Command, CommandId, Effect, Input, KeptBonds, MAX_ACTION_BYTES, MAX_BONDS,
    MAX_MESSAGE_BYTES, NamedBond, Order, Recipients, SetProperty, Spawn,
};
use crate::scene::properties::{
    APPEARANCE, MAX_ENTITY_BYTES, Properties, PropertyId, PropertyRefusal, Schema, Value,
};
use crate::scene::spec::{MoveSpec, Moves};
use crate::scene::{
    EntityId, Facing, Kind, Plane, Pos, Region, RegionId, Scene, SceneId, SceneSpec, Seq,
    SessionId, Tick, ViewLimits, Visibility, inspect::InspectedEntity, workers::Workers,
};

pub use self::entity::Entity;
pub use self::error::WorldError;
pub use self::event::Event;

/// How a [`World`] is made.
#[derive(Debug, Clone)]
pub struct WorldBuilder {
    spec: SceneSpec,
    tick_ms: u32,
}

impl WorldBuilder {
    /// Size of the map along x and z, metres.
    pub fn size_m(mut self, width: u32, depth: u32) -> WorldBuilder {
        let side = |m: u32| i32::try_from(u64::from(m) * 100).unwrap_or(i32::MAX);
        (self.spec.width_cm, self.spec.depth_cm) = (side(width), side(depth));
        (self.spec.spawn_x_cm, self.spec.spawn_z_cm) = (0, 0);
        self
    }

    /// How entities come into view; patches unless set.
    pub fn visibility(mut self, visibility: Visibility) -> WorldBuilder {
        self.spec.visibility = visibility;
        self
    }

    /// Most players in one player's view; 60 unless set.
    pub fn view_cap(mut self, players: usize) -> WorldBuilder {
        self.spec.view_cap = players;
        self
    }

    /// Length of a tick, milliseconds; 100 unless set.
    pub fn tick_ms(mut self, ms: u32) -> WorldBuilder {
        self.tick_ms = ms;
        self
    }

    /// Everything else: `change` gets the scene's specification.
    pub fn spec(mut self, change: impl FnOnce(&mut SceneSpec)) -> WorldBuilder {
        change(&mut self.spec);
        self
    }

    /// Makes the world.
    ///
    /// # Errors
    /// [`WorldError::Scene`]: every rule that the scene breaks.
    pub fn build(mut self) -> Result<World, WorldError> {
        // One region covers the map.
        self.spec.region_lands_x = lands_along(self.spec.width_cm, self.spec.land_cm);
        self.spec.region_lands_z = lands_along(self.spec.depth_cm, self.spec.land_cm);
        let scene = Scene::new(SceneId(0), self.spec, self.tick_ms, RegionId(0));
        let scene = Arc::new(scene.map_err(WorldError::Scene)?);
        let region = Region::new(scene.clone(), RegionId(0));
        let mut region = region.ok_or_else(|| WorldError::Scene(Vec::new()))?;
        region.set_only_region();
        let (entities, effects) = (BTreeMap::new(), Vec::new());
        let (tick, last_id, sent, commanded) = (Tick(0), Arc::default(), 0, Vec::new());
        Ok(World { scene, region, tick, last_id, entities, effects, sent, commanded })
    }
}

/// A scene with its entities. See the module.
#[derive(Debug)]
pub struct World {
    scene: Arc<Scene>,
    region: Region,
    tick: Tick,
    /// The last id of an entity: logic takes ids, too.
    last_id: Arc<AtomicU64>,
    /// All entities but the scene's contents with their kinds, and of players the number of the last input of the
    /// client.
    entities: BTreeMap<EntityId, (Kind, Option<Seq>)>,
    effects: Vec<Effect>,
    /// Messages for groups, and orders for the scene, so far.
    sent: u64,
    /// The entities of the commands that were given for the next tick, in order.
    commanded: Vec<Option<EntityId>>,
}

impl World {
    /// A world of 2048 x 2048 m, ten ticks a second, with views by patches, unless the builder is told
    /// otherwise. Positions are trusted.
    pub fn builder() -> WorldBuilder {
        let moves = MoveSpec { mode: Moves::Trusted, ..MoveSpec::default() };
        let spec = SceneSpec { name: "world".into(), moves, ..SceneSpec::default() };
        WorldBuilder { spec, tick_ms: 100 }
    }

    /// The scene: its size, kinds and rules.
    pub fn scene(&self) -> &Scene {
        &self.scene
    }

    /// Lets ticks use the threads of `workers` from now on. Events stay the same.
    pub fn set_workers(&mut self, workers: Arc<dyn Workers>) {
        self.region.set_workers(workers);
    }

    /// The tick that was ended last; 0 before the first one.
    pub fn current_tick(&self) -> Tick {
        self.tick
    }

    /// Adds an entity. It is in the world from the end of the tick on.
    ///
    /// # Errors
    /// The kind or the position is not of the scene, a property is not of the kind or too long, or there
    /// are more than [`MAX_BONDS`] bonds.
    pub fn add(&mut self, entity: Entity) -> Result<EntityId, WorldError> {
        let Entity { kind, pos, plane, sight, view_cap, .. } = entity;
        let Entity { facing, appearance, mut properties, bonds, .. } = entity;
        let last = u8::try_from(self.scene.spec.kinds.len().saturating_sub(1)).unwrap_or(u8::MAX);
        if kind.0 > last {
            return Err(WorldError::UnknownKind { kind: kind.0, last });
        }
        self.check_pos(pos)?;
        self.own_bonds(&bonds)?;
        if !appearance.is_empty() {
            properties.begin_with(APPEARANCE, Value::binary(&appearance)?);
        }
        self.check_properties(kind, &properties)?;
        let id = EntityId(self.last_id.fetch_add(1, Relaxed) + 1);
        let player = kind == Kind::PLAYER;
        let rings = sight.unwrap_or(self.scene.spec.range);
        let sight = ViewLimits { rings, cap: view_cap };
        let session = player.then_some(SessionId(id.0));
        let bonds = KeptBonds { named: bonds, ..KeptBonds::default() };
        let new = Spawn::new(id, kind, pos);
        let spawn = Spawn { plane, sight, facing, properties, session, bonds, ..new };
        self.handle(Input::Enter(Box::new(spawn)));
        self.entities.insert(id, (kind, player.then_some(Seq(0))));
        Ok(id)
    }

    /// Removes an entity: its viewers are told at the end of the tick.
    ///
    /// # Errors
    /// There is no such entity.
    pub fn remove(&mut self, id: EntityId) -> Result<(), WorldError> {
        self.check_id(id)?;
        self.entities.remove(&id);
        self.handle(Input::Leave(id));
        Ok(())
    }

    /// Moves an entity to a position: a step, or a teleport of any distance.
    ///
    /// # Errors
    /// There is no such entity, or the position is outside the map.
    pub fn move_to(&mut self, id: EntityId, pos: Pos) -> Result<(), WorldError> {
        self.check_id(id)?;
        self.check_pos(pos)?;
        self.command(Command::Order(id, Order::Move(pos)));
        Ok(())
    }

    /// Lets an entity do something that all its viewers are told once, at the end of the tick.
    ///
    /// # Errors
    /// There is no such entity, or the payload is longer than [`MAX_ACTION_BYTES`].
    pub fn act(&mut self, id: EntityId, payload: impl Into<Bytes>) -> Result<(), WorldError> {
        self.check_id(id)?;
        let payload = payload.into();
        check_len("an action", &payload, MAX_ACTION_BYTES)?;
        self.command(Command::act(id, payload));
        Ok(())
    }

    /// Gives a property of an entity a value. Every client that may see it is told at the end of the tick.
    ///
    /// # Errors
    /// There is no such entity, or its kind has no such property, or none with such a value. An entity whose values
    /// would be too long together is told by [`Event::OrderRefused`].
    pub fn set(
        &mut self,
        id: EntityId,
        property: PropertyId,
        value: Value,
    ) -> Result<(), WorldError> {
        self.check_id(id)?;
        self.schema_of(id)?.check(property, &value)?;
        let order = Order::Set(SetProperty { id: property, value });
        self.command(Command::Order(id, order));
        Ok(())
    }

    /// Turns an entity.
    ///
    /// # Errors
    /// There is no such entity.
    pub fn face(&mut self, id: EntityId, facing: Facing) -> Result<(), WorldError> {
        self.check_id(id)?;
        self.command(Command::Order(id, Order::Face(facing)));
        Ok(())
    }

    /// Tells a player's client something, at the end of the tick.
    ///
    /// # Errors
    /// There is no such entity, or the message is longer than [`MAX_MESSAGE_BYTES`].
    pub fn tell(&mut self, id: EntityId, payload: impl Into<Bytes>) -> Result<(), WorldError> {
        self.check_id(id)?;
        let payload = payload.into();
        check_len("a message", &payload, MAX_MESSAGE_BYTES)?;
        self.handle(Input::Tell { id, payload });
        Ok(())
    }

    /// Tells the clients of all players that have a bond something, at the end of the tick.
    ///
    /// # Errors
    /// The scene has no such kind of bond, or the message is longer than [`MAX_MESSAGE_BYTES`].
    pub fn tell_bond(
        &mut self,
        bond: NamedBond,
        payload: impl Into<Bytes>,
    ) -> Result<(), WorldError> {
        self.own_bonds(std::slice::from_ref(&bond))?;
        self.tell_group(Recipients::Bond(bond), payload.into())
    }

    /// Tells the clients of all players something, or those of a plane, at the end of the tick.
    ///
    /// # Errors
    /// The message is longer than [`MAX_MESSAGE_BYTES`].
    pub fn announce(
        &mut self,
        plane: Option<Plane>,
        payload: impl Into<Bytes>,
    ) -> Result<(), WorldError> {
        let all = Recipients::Scene(self.scene.id);
        let to = plane.map_or(all, |plane| Recipients::Plane(self.scene.id, plane));
        self.tell_group(to, payload.into())
    }

    fn tell_group(&mut self, to: Recipients, payload: Bytes) -> Result<(), WorldError> {
        check_len("a message", &payload, MAX_MESSAGE_BYTES)?;
        self.send_group(to, payload);
        Ok(())
    }

    /// Sets all bonds of a player.
    ///
    /// # Errors
    /// There is no such entity, the scene has no such kind of bond, or there are more than [`MAX_BONDS`] bonds.
    pub fn set_bonds(&mut self, id: EntityId, bonds: Vec<NamedBond>) -> Result<(), WorldError> {
        self.check_id(id)?;
        let bonds = self.own_bonds(&bonds)?;
        self.handle(Input::Bonds { id, bonds });
        Ok(())
    }

    /// Applies a numbered input of a player's client. Numbers begin at 1 and have no gaps, so that an
    /// input that a client sends twice is applied once.
    ///
    /// # Errors
    /// There is no such player, or the input is not the next one. What the rules of the scene refuse
    /// comes back as [`Event::Refused`].
    pub fn input(&mut self, id: EntityId, seq: Seq, order: Order) -> Result<(), WorldError> {
        let last = self.entities.get_mut(&id).and_then(|(_, last)| last.as_mut());
        let last = last.ok_or(WorldError::UnknownEntity(id))?;
        let want = Seq(last.0.wrapping_add(1));
        if seq != want {
            return Err(WorldError::WrongSeq { id, got: seq.0, want: want.0 });
        }
        *last = seq;
        let (session, handle) = (SessionId(id.0), Default::default());
        self.handle(Input::Client { id, session, seq, order, handle });
        Ok(())
    }

    /// Ends a tick: applies what was asked for, calls the logic, and tells every player's changes, in the order of the
    /// players' ids, and what the logic has created and removed.
    pub fn tick(&mut self) -> Vec<Event> {
        self.tick = Tick(self.tick.0 + 1);
        self.region.tick(self.tick, &mut self.effects);
        let mut events = Vec::new();
        self.note_logic(&mut events);
        while !self.effects.is_empty() {
            let effects = std::mem::take(&mut self.effects);
            effects.into_iter().for_each(|effect| self.carry_out(effect, &mut events));
        }
        self.commanded.clear();
        events
    }

    /// The entities that a player sees: the players of its view list, the best first, then entities of
    /// other kinds. Empty for what is no player.
    pub fn view(&self, id: EntityId) -> impl Iterator<Item = EntityId> {
        let player = self.region.inspect_player(id);
        player.into_iter().flat_map(|player| {
            let listed: Vec<EntityId> =
                player.view.iter().filter(|entry| entry.linked).map(|entry| entry.id).collect();
            let others: Vec<EntityId> =
                player.seen.iter().copied().filter(|id| !listed.contains(id)).collect();
            listed.into_iter().chain(others)
        })
    }

    /// Where an entity is.
    pub fn pos(&self, id: EntityId) -> Option<Pos> {
        match self.region.inspect_entity(id)? {
            InspectedEntity::Player(player) => Some(player.pos),
            InspectedEntity::Other(entity) => Some(entity.pos),
        }
    }

    /// Gives a command. What the rules refuse at the tick comes back as an event.
    fn command(&mut self, command: Command) {
        let number = self.commanded.len() as u64;
        self.commanded.push(command.entity());
        let id = CommandId { from: Asker::Process(0), number };
        self.handle(Input::command(id, command));
    }

    fn handle(&mut self, input: Input) {
        self.region.handle(input, &mut self.effects);
    }

    fn check_id(&self, id: EntityId) -> Result<(), WorldError> {
        self.kind_of(id).map(drop).ok_or(WorldError::UnknownEntity(id))
    }

    fn schema_of(&self, id: EntityId) -> Result<&Schema, WorldError> {
        let kind = self.kind_of(id);
        kind.and_then(|kind| self.scene.schema(kind)).ok_or(WorldError::UnknownEntity(id))
    }

    fn kind_of(&self, id: EntityId) -> Option<Kind> {
        let content = || Some(self.region.known(id).filter(|_| id.content().is_some())?.kind);
        self.entities.get(&id).map(|(kind, _)| *kind).or_else(content)
    }

    fn check_properties(&self, kind: Kind, properties: &Properties) -> Result<(), WorldError> {
        if let Some(schema) = self.scene.schema(kind) {
            schema.check_all(properties)?;
        }
        let fits = properties.value_bytes() <= MAX_ENTITY_BYTES;
        if fits { Ok(()) } else { Err(PropertyRefusal::Full.into()) }
    }

    fn own_bonds(&self, bonds: &[NamedBond]) -> Result<Vec<Bond>, WorldError> {
        let (count, max) = (bonds.len(), MAX_BONDS);
        if count > max {
            return Err(WorldError::TooManyBonds { count, max });
        }
        let spec = &self.scene.spec.bonds;
        let unknown = |bond: &NamedBond| {
            let (kind, kinds) = (bond.kind.clone(), spec.kinds.clone());
            WorldError::UnknownBondKind { kind, kinds }
        };
        bonds.iter().map(|bond| spec.bond(bond).ok_or_else(|| unknown(bond))).collect()
    }

    fn check_pos(&self, pos: Pos) -> Result<(), WorldError> {
        let SceneSpec { width_cm, depth_cm, height_limit_cm, .. } = self.scene.spec;
        let outside = WorldError::OutOfBounds { pos, width_cm, depth_cm, height_limit_cm };
        self.scene.contains(pos).then_some(()).ok_or(outside)
    }
}

fn check_len(what: &'static str, bytes: &Bytes, max: usize) -> Result<(), WorldError> {
    let len = bytes.len();
    if len > max { Err(WorldError::TooLong { what, len, max }) } else { Ok(()) }
}
