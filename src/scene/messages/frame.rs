//! What a region tells its clients in a tick: every changed entity once, and for each session which
//! of them it gets (DESIGN, "The scene": Frame). Typed; `wire` makes bytes of it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::logic_message::LogicMessage;
use super::order::Speaker;
use crate::scene::movement::{Own, Reason, Trajectory};
use crate::scene::properties::{Properties, PropertyId, PropertyRefusal, Value};
use crate::scene::{EntityHandle, EntityId, Epoch, Facing, Kind, Pos, Seq, SessionId, Tick};

/// Why an input was refused. The input changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The position lies outside the scene.
    OutOfBounds,
    /// The action's payload is longer than 1,024 bytes.
    TooLong,
    /// The region cannot do it now.
    Busy,
    /// A place in a scene that judges moves, or a move command in a scene that trusts places.
    WrongForm,
    /// The move was judged.
    Move(Reason),
    /// A property was not set.
    Property(PropertyRefusal),
    /// The player turns more often than it may.
    TooOften,
}

/// An input of a player's own that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputRefused {
    /// The input's number.
    pub seq: Seq,
    /// Why.
    pub why: Refusal,
}

/// An entity as a client is told that begins to see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entering {
    /// The entity.
    pub id: EntityId,
    /// Its kind.
    pub kind: Kind,
    /// Where it is.
    pub pos: Pos,
    /// The way it faces.
    pub facing: Facing,
    /// Its trajectory; `None`: it stands until another place is told.
    pub trajectory: Option<Trajectory>,
    /// Those of its properties that every viewer may see.
    pub properties: Properties,
}

/// Where an entity is, and how it goes on, as a client is told where positions are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moving {
    /// The entity.
    pub id: EntityId,
    /// Where it is.
    pub pos: Pos,
    /// Velocity to the east, centimetres per second, until another position is told.
    pub vx_cm_s: i32,
    /// Velocity to the south, centimetres per second.
    pub vz_cm_s: i32,
    /// The way it faces.
    pub facing: Facing,
}

impl Moving {
    /// An entity that stands until another position is told.
    pub fn standing(id: EntityId, pos: Pos, facing: Facing) -> Moving {
        Moving { id, pos, vx_cm_s: 0, vz_cm_s: 0, facing }
    }

    /// Whether it stands.
    pub fn is_standing(&self) -> bool {
        (self.vx_cm_s, self.vz_cm_s) == (0, 0)
    }
}

/// Where an entity goes, as a client is told where moves are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrajectoryUpdate {
    /// The entity.
    pub id: EntityId,
    /// Its trajectory from now on.
    pub trajectory: Trajectory,
    /// The way it faces.
    pub facing: Facing,
    /// How the trajectory follows from the one before, if the piece is for clients that were told that one.
    pub following: Option<Following>,
}

/// How a vector follows from the trajectory that clients were told before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Following {
    /// From where the trajectory before leads at the start of this one to where this one starts: along x, y
    /// and z, centimetres.
    pub offset_cm: [i32; 3],
    /// How long before the tick of the batch it starts, milliseconds.
    pub ago_ms: u32,
}

/// The players around a patch, as a client is told that asks for its crowd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crowd {
    /// The middle of the patch, centimetres.
    pub x: i32,
    /// See `x`.
    pub z: i32,
    /// Two bytes per player, the nearest first: cells along x and z, 32 to a patch side, of which 128 is
    /// the one that begins in the middle.
    pub dots: Bytes,
}

/// A property of an entity, as a client is told that sees the entity already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PropertyUpdate {
    /// The entity.
    pub entity: EntityId,
    /// The property.
    pub id: PropertyId,
    /// How often it was set.
    pub version: u32,
    /// Its value.
    pub value: Value,
}

/// The lists of pieces that a session's frame refers to: enters, moves, trajectories, turns, acts,
/// properties, and properties that the session keeps and its client is not told.
pub const LISTS: usize = 7;

/// Kinds of pieces: two of the lists refer to properties.
pub const KINDS: usize = 6;

/// The kind of piece of each list.
pub const KIND_OF: [usize; LISTS] = [0, 1, 2, 3, 4, 5, 5];

/// Where one session's part of a [`FrameBatch`] lies. Counts and starts, in entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionFrame {
    /// Whose frame this is.
    pub session: SessionId,
    /// Last input applied.
    pub ack: Seq,
    /// The entity's epoch.
    pub epoch: Epoch,
    /// Whether the client must forget what it saw.
    pub resync: bool,
    /// First entry in [`FrameBatch::refs`]: the indices of all its lists, one list after another.
    pub refs_at: u32,
    /// How many enters.
    pub enters: u32,
    /// How many moves.
    pub moves: u32,
    /// Number of trajectories.
    pub trajectories: u32,
    /// How many turns.
    pub turns: u32,
    /// How many acts.
    pub acts: u32,
    /// How many properties.
    pub properties: u32,
    /// How many properties of the player's own that its client may not see.
    pub kept: u32,
    /// First entry in [`FrameBatch::leaves`].
    pub leaves_at: u32,
    /// How many leaves.
    pub leaves: u32,
    /// First entry in [`FrameBatch::refused`].
    pub refused_at: u32,
    /// How many refused inputs.
    pub refused: u32,
    /// First entry in [`FrameBatch::told`].
    pub told_at: u32,
    /// How many messages.
    pub told: u32,
    /// Its entry in [`FrameBatch::owns`].
    pub own_at: u32,
    /// How many of these, at most 1: the client is told of its own movement.
    pub own: u32,
    /// Its entry in [`FrameBatch::crowds`].
    pub crowd_at: u32,
    /// How many of these, at most 1.
    pub crowd: u32,
    /// Under which the region finds the player of the session's inputs.
    #[serde(default)]
    pub handle: EntityHandle,
    /// With `resync`: the tick of the last frame before it that the client was sent, by [`Input::Resync`]. The frame also
    /// tells the actions that frames since then have told. 0: not known, and it tells none again.
    ///
    /// [`Input::Resync`]: super::Input::Resync
    #[serde(default)]
    pub after: Tick,
}

impl SessionFrame {
    /// The last frame that the client was sent, if this one of tick `tick` is lost.
    pub fn before(&self, tick: Tick) -> Tick {
        if self.resync { self.after } else { Tick(tick.0.saturating_sub(1)) }
    }

    /// The lengths of its lists, in their order.
    pub fn counts(&self) -> [u32; LISTS] {
        let SessionFrame { enters, moves, trajectories, turns, acts, properties, kept, .. } = *self;
        [enters, moves, trajectories, turns, acts, properties, kept]
    }
}

/// Frames of some sessions of a batch, and the memory for those of the next one.
#[derive(Debug, Default)]
pub struct Subset {
    batch: FrameBatch,
    /// Where each piece is in it, per kind of piece; `u32::MAX`: it is not.
    places: [Vec<u32>; KINDS],
    /// The same of the crowds.
    crowds: Vec<u32>,
}

impl Subset {
    /// See [`FrameBatch::subset`].
    pub fn of(&mut self, all: &FrameBatch, which: &[u32]) -> &FrameBatch {
        self.batch.clear(all.tick);
        all.copy_sessions(which, self);
        &self.batch
    }
}

/// All frames of a region and tick.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameBatch {
    /// The tick whose state this is.
    pub tick: Tick,
    /// Entities that a client begins to see, each once.
    pub entering: Vec<Entering>,
    /// Entities whose position a client is told, each once.
    pub moving: Vec<Moving>,
    /// Entities whose trajectory a client is told: each once, and once more if it follows from the one before.
    pub trajectories: Vec<TrajectoryUpdate>,
    /// Entities that a client is told to have turned, each once.
    pub turning: Vec<(EntityId, Facing)>,
    /// Actions, each once, and who speaks.
    pub acting: Vec<(EntityId, Bytes, Speaker)>,
    /// Properties that have changed, each once.
    pub properties: Vec<PropertyUpdate>,
    /// For each session in turn: indices of its pieces, list by list (see [`LISTS`]).
    pub refs: Vec<u32>,
    /// For each session in turn: the entities that left.
    pub leaves: Vec<EntityId>,
    /// For each session in turn: refused inputs.
    pub refused: Vec<InputRefused>,
    /// For each session in turn: messages of the game's logic.
    pub told: Vec<LogicMessage>,
    /// Of those sessions that are told of it: their own movement.
    pub owns: Vec<Own>,
    /// Crowds, each once.
    pub crowds: Vec<Crowd>,
    /// One entry per session.
    pub sessions: Vec<SessionFrame>,
}

impl FrameBatch {
    /// Empties the batch for another tick, keeping its memory.
    pub fn clear(&mut self, tick: Tick) {
        self.tick = tick;
        self.entering.clear();
        self.moving.clear();
        self.trajectories.clear();
        self.turning.clear();
        self.owns.clear();
        self.acting.clear();
        self.properties.clear();
        self.refs.clear();
        self.leaves.clear();
        self.refused.clear();
        self.crowds.clear();
        self.told.clear();
        self.sessions.clear();
    }

    /// The frames of the sessions at these places alone, with only what they tell.
    pub fn subset(&self, which: &[u32]) -> FrameBatch {
        let mut subset = Subset::default();
        subset.of(self, which);
        subset.batch
    }

    fn copy_sessions(&self, which: &[u32], Subset { batch: out, places, crowds }: &mut Subset) {
        crowds.clear();
        crowds.resize(self.crowds.len(), u32::MAX);
        for (places, len) in places.iter_mut().zip(self.lens()) {
            places.clear();
            places.resize(len, u32::MAX);
        }
        for s in which.iter().filter_map(|i| self.sessions.get(*i as usize)) {
            let refs_at = out.refs.len() as u32;
            for (refs, kind) in self.refs_of(s).into_iter().zip(KIND_OF) {
                for &r in refs {
                    let place = &mut places[kind][r as usize];
                    if *place == u32::MAX {
                        *place = self.copy_piece(kind, r as usize, out);
                    }
                    out.refs.push(*place);
                }
            }
            let (leaves_at, refused_at) = (out.leaves.len() as u32, out.refused.len() as u32);
            let (own_at, told_at) = (out.owns.len() as u32, out.told.len() as u32);
            out.told.extend_from_slice(self.told_of(s));
            out.leaves.extend(self.leaves_of(s));
            out.refused.extend(self.refused_of(s));
            out.owns.extend(self.own_of(s));
            let crowd_at = self.copy_crowd(s, crowds, out);
            out.sessions.push(SessionFrame {
                refs_at,
                leaves_at,
                refused_at,
                told_at,
                own_at,
                crowd_at,
                ..*s
            });
        }
    }

    /// Copies a session's crowd, unless it is there already, and says where it is.
    fn copy_crowd(&self, s: &SessionFrame, places: &mut [u32], out: &mut FrameBatch) -> u32 {
        let Some(crowd) = self.crowd_of(s) else { return 0 };
        let place = &mut places[s.crowd_at as usize];
        if *place == u32::MAX {
            out.crowds.push(crowd.clone());
            *place = out.crowds.len() as u32 - 1;
        }
        *place
    }

    /// Copies a piece to the end of the other batch's of its kind, and says where it is.
    fn copy_piece(&self, kind: usize, at: usize, out: &mut FrameBatch) -> u32 {
        match kind {
            0 => out.entering.push(self.entering[at].clone()),
            1 => out.moving.push(self.moving[at]),
            2 => out.trajectories.push(self.trajectories[at]),
            3 => out.turning.push(self.turning[at]),
            4 => out.acting.push(self.acting[at].clone()),
            _ => out.properties.push(self.properties[at].clone()),
        }
        out.lens()[kind] as u32 - 1
    }

    /// How many pieces of each kind there are.
    fn lens(&self) -> [usize; KINDS] {
        let (entering, moving) = (self.entering.len(), self.moving.len());
        let (trajectories, turning) = (self.trajectories.len(), self.turning.len());
        [entering, moving, trajectories, turning, self.acting.len(), self.properties.len()]
    }

    /// How many pieces there are that each list of a session may refer to.
    pub fn lens_of_lists(&self) -> [usize; LISTS] {
        let lens = self.lens();
        KIND_OF.map(|kind| lens[kind])
    }

    /// The lists of a session, as [`LISTS`] names them.
    pub fn refs_of(&self, s: &SessionFrame) -> [&[u32]; LISTS] {
        let mut rest = &self.refs[s.refs_at as usize..];
        s.counts().map(|count| {
            let (list, after) = rest.split_at(count as usize);
            rest = after;
            list
        })
    }

    /// A session's own movement, if it is told of that.
    pub fn own_of(&self, s: &SessionFrame) -> Option<&Own> {
        self.owns[s.own_at as usize..][..s.own as usize].first()
    }

    /// A session's crowd, if it is told of one.
    pub fn crowd_of(&self, s: &SessionFrame) -> Option<&Crowd> {
        self.crowds[s.crowd_at as usize..][..s.crowd as usize].first()
    }

    /// The entities that left, for a session.
    pub fn leaves_of(&self, s: &SessionFrame) -> &[EntityId] {
        &self.leaves[s.leaves_at as usize..][..s.leaves as usize]
    }

    /// Messages for a session.
    pub fn told_of(&self, s: &SessionFrame) -> &[LogicMessage] {
        &self.told[s.told_at as usize..][..s.told as usize]
    }

    /// Refused inputs of a session.
    pub fn refused_of(&self, s: &SessionFrame) -> &[InputRefused] {
        &self.refused[s.refused_at as usize..][..s.refused as usize]
    }
}
