//! Where logic puts its commands. Each has a number, by which a refusal names it.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

#[cfg(doc)]
use crate::scene::account::SUBJECT_MAX;
#[cfg(doc)]
use crate::scene::messages::MAX_HOLD_MS;
use crate::scene::messages::{
    Asked, Command, EntityAction, Motion, Order, Recipients, SetProperty, Spawn,
};
use crate::scene::portals::Journey;
use crate::scene::properties::{Properties, PropertyId, Value};
use crate::scene::spec::WatchSpec;
#[cfg(doc)]
use crate::scene::views::MAX_BONDS;
use crate::scene::views::{NamedBond, Relation};
use crate::scene::{EntityId, Epoch, Facing, Kind, Plane, Pos, Tick};

/// Gives an id that no entity has had or will have; `None`: none is left.
pub type NewEntities = Box<dyn FnMut() -> Option<EntityId> + Send + Sync>;

/// On which terms a command is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// For which batch of a worker.
    pub asked: Option<Asked>,
    /// For an entity of another region it leaves only when the tick in which it was given is saved.
    pub held: bool,
    /// Only if the entity lives in this region under this epoch.
    pub epoch: Option<Epoch>,
    /// Together with the command before it, or not at all. Of such a row none is done when one names an epoch that does
    /// not hold, and none of those after one that is refused.
    pub together: bool,
}

/// A command as the logic gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// What is to be done.
    pub command: Command,
    /// On which terms.
    pub terms: Terms,
    /// The tick in which it was given.
    pub tick: Tick,
    /// The subject by which it was given, and its number then: its entry has another one.
    pub by_subject: Option<(Box<str>, u64)>,
}

/// How many numbers a tick has: more commands than these take numbers of the next ticks.
const NUMBERS: u32 = 20;

/// The commands of one call, in order.
#[derive(Default)]
pub struct Commands {
    commands: Vec<Given>,
    tick: Tick,
    /// The number of the first one.
    first: u64,
    /// `None`: these are of one part of the entities, and have neither numbers nor new ids so far.
    ids: Option<NewEntities>,
}

impl fmt::Debug for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Commands { commands, first, .. } = self;
        f.debug_struct("Commands").field("commands", commands).field("first", first).finish()
    }
}

impl Commands {
    pub(super) fn new(ids: NewEntities) -> Commands {
        Commands { ids: Some(ids), ..Commands::default() }
    }

    /// A call in this tick begins.
    pub(super) fn begin(&mut self, tick: Tick) {
        self.first = self.first.max(tick.0 << NUMBERS);
        self.tick = tick;
    }

    /// A number of this tick, for an entry that no call gives.
    pub(super) fn new_number(&mut self, tick: Tick) -> u64 {
        self.first = self.first.max(tick.0 << NUMBERS) + 1;
        self.first - 1
    }

    /// No commands yet, for a part of the entities.
    pub(super) fn part(&self) -> Commands {
        Commands { tick: self.tick, ..Commands::default() }
    }

    /// The commands of a part come next. New entities have ids from now on.
    pub(super) fn append(&mut self, mut part: Commands) {
        for given in &mut part.commands {
            if let Command::Spawn(spawn) = &mut given.command {
                spawn.id = self.new_id();
            }
        }
        self.commands.append(&mut part.commands);
    }

    fn new_id(&mut self) -> EntityId {
        self.ids.as_mut().and_then(|ids| ids()).unwrap_or(EntityId::NONE)
    }

    /// Takes all commands with their numbers.
    pub(super) fn drain(&mut self) -> Vec<(u64, Given)> {
        let first = self.first;
        self.first += self.commands.len() as u64;
        (first..).zip(self.commands.drain(..)).collect()
    }

    /// The commands that were given so far in this call, with their numbers.
    pub fn given(&self) -> impl Iterator<Item = (u64, &Command)> {
        (self.first..).zip(self.commands.iter().map(|given| &given.command))
    }

    /// For which batches of workers they were given.
    pub fn asked(&self) -> impl Iterator<Item = Asked> {
        self.commands.iter().filter_map(|given| given.terms.asked)
    }

    /// Gives a command; its number.
    pub fn give(&mut self, command: Command) -> u64 {
        self.give_on(command, Terms::default())
    }

    /// Gives a command that, for an entity of another region, leaves only when the death of no process can undo what
    /// is commanded in this call; its number.
    pub fn give_held(&mut self, command: Command) -> u64 {
        self.give_on(command, Terms { held: true, ..Terms::default() })
    }

    /// Gives a command on terms; its number.
    pub fn give_on(&mut self, command: Command, terms: Terms) -> u64 {
        self.commands.push(Given { command, terms, tick: self.tick, by_subject: None });
        self.ids.as_ref().map_or(0, |_| self.first + self.commands.len() as u64 - 1)
    }

    /// Creates an entity without a client; its id. Where no id is left the id is 0, and the command is refused.
    pub fn spawn(
        &mut self,
        kind: Kind,
        plane: Plane,
        pos: Pos,
        properties: Properties,
    ) -> EntityId {
        let id = self.new_id();
        let spawn = Spawn { plane, properties, ..Spawn::new(id, kind, pos) };
        self.give(Command::Spawn(Box::new(spawn)));
        id
    }

    /// Removes an entity.
    pub fn despawn(&mut self, id: EntityId) -> u64 {
        self.give(Command::Despawn(id))
    }

    /// Puts an entity elsewhere on its plane.
    pub fn place(&mut self, id: EntityId, pos: Pos) -> u64 {
        self.give(Command::Order(id, Order::Move(pos)))
    }

    /// Lets an entity walk, or sets its speed, where moves are judged.
    pub fn motion(&mut self, id: EntityId, motion: Motion) -> u64 {
        self.give(Command::Motion(id, motion))
    }

    /// Gives a property a value.
    pub fn set(&mut self, id: EntityId, property: PropertyId, value: Value) -> u64 {
        self.give(Command::Order(id, Order::Set(SetProperty { id: property, value })))
    }

    /// Turns an entity.
    pub fn face(&mut self, id: EntityId, facing: Facing) -> u64 {
        self.give(Command::Order(id, Order::Face(facing)))
    }

    /// Lets an entity act: all its viewers are told.
    pub fn act(&mut self, id: EntityId, payload: impl Into<Bytes>) -> u64 {
        self.give(Command::act(id, payload))
    }

    /// As [`Commands::act`], against a player: the two fight if they are in range of each other.
    pub fn act_at(&mut self, id: EntityId, payload: impl Into<Bytes>, aim: EntityId) -> u64 {
        let act = EntityAction { aim: Some(aim), ..EntityAction::new(payload) };
        self.give(Command::Order(id, Order::Act(act)))
    }

    /// Lets an entity watch by other rules than its kind, each of at most one rule; none: it watches nothing.
    pub fn watch(&mut self, id: EntityId, rules: Vec<WatchSpec>) -> u64 {
        self.give(Command::Watch(id, rules))
    }

    /// Limits how far a player is shown entities that are no players, to so many centimetres on the ground: for blindness
    /// or fog. An entity in view stays in view up to an eighth farther. `None`: no limit but the player's sight. The limit
    /// is lost where a region has died and only the session knows the player
    /// ([`Recovered`](crate::scene::messages::EnterCause::Recovered)).
    pub fn limit_sight(&mut self, id: EntityId, within_cm: Option<u32>) -> u64 {
        self.give(Command::Sight(id, within_cm))
    }

    /// Sets a player's bonds of the kinds that the scene has, at most [`MAX_BONDS`]. They stay with the player: over
    /// logins, scenes and the death of a region.
    pub fn bonds(&mut self, id: EntityId, bonds: Vec<NamedBond>) -> u64 {
        self.give(Command::Bonds(id, bonds))
    }

    /// As [`Commands::bonds`], for the player of a subject, wherever it plays, in any scene. If it does not play its
    /// bonds are kept for it. At most [`SUBJECT_MAX`] bytes of subject.
    pub fn bonds_of(&mut self, subject: &str, bonds: Vec<NamedBond>) -> u64 {
        let command = Command::Bonds(EntityId::NONE, bonds);
        self.give(Command::OfSubject(subject.into(), Box::new(command)))
    }

    /// Lets an entity teleport: to another place, plane or scene.
    pub fn teleport(&mut self, id: EntityId, to: Journey) -> u64 {
        self.give(Command::Order(id, Order::Travel(to)))
    }

    /// Tells a player's client something.
    pub fn tell(&mut self, id: EntityId, payload: impl Into<Bytes>) -> u64 {
        self.give(Command::Tell(id, payload.into()))
    }

    /// Tells the clients of all players of a group something, wherever they are.
    pub fn tell_bond(&mut self, bond: NamedBond, payload: impl Into<Bytes>) -> u64 {
        self.give(Command::TellGroup(Recipients::Bond(bond), payload.into()))
    }

    /// Tells the clients of all players of a plane of the region's scene something, or those of the scene.
    pub fn announce(&mut self, to: Recipients, payload: impl Into<Bytes>) -> u64 {
        self.give(Command::TellGroup(to, payload.into()))
    }

    /// Opens (true) or closes a door of the map in one plane.
    pub fn set_door(&mut self, plane: Plane, door: impl Into<String>, open: bool) -> u64 {
        self.give(Command::Door(plane, door.into(), open))
    }

    /// Puts a plane back to how the map and the configuration have it: its doors, and what it contains.
    pub fn reset_plane(&mut self, plane: Plane) -> u64 {
        self.give(Command::ResetPlane(plane))
    }

    /// Lets two groups of a kind of bonds be allies, neutral or enemies, in the whole scene. In view lists their players
    /// come before strangers, in the order of the scene's kinds of bonds `ally` and `enemy`.
    pub fn relate(&mut self, kind: impl Into<String>, groups: [u64; 2], to: Relation) -> u64 {
        self.give(Command::Relate(kind.into(), groups, to))
    }

    /// Lets a player stay for so many milliseconds from now, at most [`MAX_HOLD_MS`], even if its client leaves, breaks
    /// off or logs in anew: for a fight that is not over. A longer hold stays in force; 0 ends it.
    pub fn hold(&mut self, id: EntityId, ms: u32) -> u64 {
        self.give(Command::Hold(id, ms))
    }

    /// Ends a player's session. The player leaves at once, whatever holds it.
    pub fn kick(&mut self, id: EntityId) -> u64 {
        self.give(Command::Kick(id))
    }
}
