//! The frame: one message per player and tick, assembled from pieces that are encoded once.
//!
//! Gateways encode each region's batch here, on the hot path: no piece may be encoded per session.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::codes::ErrorCode;
use super::logic_message::{Message, messages};
use super::movement::{Going, OwnMove};
use super::properties::{ChangedProperty, EnteredProperty, Turned};
use super::trajectories::TrajectoryUpdate;
use crate::scene::messages::{FrameBatch, KINDS, Moving};
use crate::scene::movement::{Move, Own, ServerMs, Trajectory, Vector};
use crate::scene::pieces::{self, NIL, array, flag, maybe, trajectory, uint};
use crate::scene::{EntityId, Epoch, Facing, Kind, Pos, Seq, Tick};

/// An entity comes into view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entered {
    /// The entity.
    pub id: EntityId,
    /// Its kind.
    pub kind: Kind,
    /// East, centimetres.
    pub x: i32,
    /// Height, centimetres.
    pub y: i32,
    /// South, centimetres.
    pub z: i32,
    /// The way it faces.
    pub facing: Facing,
    /// Those of its properties that every viewer may see.
    pub properties: Vec<EnteredProperty>,
    /// Its trajectory; nil: it stands until the next position.
    pub trajectory: Option<Going>,
}

/// An entity in view has a new position, and goes on from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The entity.
    pub id: EntityId,
    /// East, centimetres.
    pub x: i32,
    /// Height, centimetres.
    pub y: i32,
    /// South, centimetres.
    pub z: i32,
    /// Velocity to the east, centimetres per second, until the next position.
    pub vx: i32,
    /// Velocity to the south, centimetres per second.
    pub vz: i32,
    /// The way it faces.
    pub facing: Facing,
}

impl From<&Moving> for Moved {
    fn from(moving: &Moving) -> Moved {
        let Moving { id, pos: Pos { x, y, z }, vx_cm_s: vx, vz_cm_s: vz, facing } = *moving;
        Moved { id, x, y, z, vx, vz, facing }
    }
}

impl Moved {
    /// The trajectory from the server's time of the frame's tick on; `None` if the entity stands.
    pub fn trajectory(&self, now: ServerMs) -> Option<Trajectory> {
        let start = Pos { x: self.x, y: self.y, z: self.z };
        let [vx_mm_s, vz_mm_s] = [self.vx, self.vz].map(|v| v.saturating_mul(10));
        let motion = Move::Vector(Vector { start, vx_mm_s, vz_mm_s, lasts_ms: None });
        let moves = !motion.is_standing();
        moves.then_some(Trajectory { motion, start: now, lasts_ms: u32::MAX })
    }
}

/// An entity in view performed an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acted {
    /// The entity.
    pub id: EntityId,
    /// The opaque payload.
    pub payload: ByteBuf,
    /// True: the game's logic speaks; false: the entity's client.
    pub logic: bool,
}

/// An input of the player that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedInput {
    /// The input's number.
    pub seq: Seq,
    /// The reason.
    pub code: ErrorCode,
}

/// What a player is told in a tick.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The tick whose state the frame carries.
    pub tick: Tick,
    /// The player's last input that was applied.
    pub ack: Seq,
    /// Grows with each handoff of the player to another region.
    pub epoch: Epoch,
    /// If true, forget all entities in view: `enters` is the whole view (a resync).
    pub resync: bool,
    /// Entities that come into view; never one that is in view already.
    pub enters: Vec<Entered>,
    /// Entities that leave the view; always ones that were in view.
    pub leaves: Vec<EntityId>,
    /// New positions.
    pub moves: Vec<Moved>,
    /// New trajectories.
    pub trajectories: Vec<TrajectoryUpdate>,
    /// Entities that have turned and done no more; the player itself, too, if not its client has
    /// turned it.
    pub turns: Vec<Turned>,
    /// Actions, in order.
    pub acts: Vec<Acted>,
    /// Properties that have changed, of entities in view and of the player itself. All are told anew
    /// after a resync.
    pub properties: Vec<ChangedProperty>,
    /// Messages of the game's logic, in order.
    pub messages: Vec<Message>,
    /// Inputs of the player that were refused since the last frame.
    pub refused: Vec<RefusedInput>,
    /// The player's own movement, if it has changed.
    pub own: Option<OwnMove>,
    /// The players around, if the client has asked for its crowd and it is time.
    pub crowd: Option<Crowd>,
}

/// The players around a patch, as dots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crowd {
    /// Middle of the patch, centimetres to the east.
    pub x: i32,
    /// Middle of the patch, centimetres to the south.
    pub z: i32,
    /// Two bytes per player: cells of an eighth of a patch's sides.
    pub dots: ByteBuf,
}

impl Crowd {
    /// The middles of the dots' cells, centimetres along x and z, on patches with these sides along x and z.
    pub fn places(&self, [width, depth]: [i32; 2]) -> impl Iterator<Item = (i32, i32)> + '_ {
        let at = move |middle: i32, cell: u8, side: i32| {
            let off = (2 * i64::from(cell) - 255) * i64::from(side) / 16;
            (i64::from(middle) + off).clamp(i32::MIN.into(), i32::MAX.into()) as i32
        };
        let dots = self.dots.chunks_exact(2);
        dots.map(move |dot| (at(self.x, dot[0], width), at(self.z, dot[1], depth)))
    }
}

impl Frame {
    /// A frame in which nothing has changed.
    pub fn empty(tick: Tick, ack: Seq, epoch: Epoch) -> Frame {
        Frame { tick, ack, epoch, ..Frame::default() }
    }
}

/// Bytes of most entries of [`Frame::moves`], at most.
const MOVED: usize = 33;

/// Type number of a frame; see [`super::ServerMsg`].
pub const FRAME_TYPE: u8 = 66;

/// The encoded frames of a region and tick: every piece encoded once, and the indices from which
/// each session's message is assembled. Reused from tick to tick.
#[derive(Debug, Clone, Default)]
pub struct EncodedBatch {
    batch: FrameBatch,
    bytes: Vec<u8>,
    /// By the kinds of pieces: the offset of each piece; the last entry is the end of the last piece.
    starts: [Vec<u32>; KINDS],
    /// The same of crowds.
    crowds: Vec<u32>,
}

impl EncodedBatch {
    /// Encodes every piece of `batch`.
    pub fn new(batch: FrameBatch) -> EncodedBatch {
        let mut out = EncodedBatch::default();
        out.replace(batch);
        out
    }

    /// Replaces the batch and returns the old one for reuse.
    pub fn replace(&mut self, batch: FrameBatch) -> FrameBatch {
        let old = std::mem::replace(&mut self.batch, batch);
        let EncodedBatch { batch, bytes, starts, crowds } = self;
        let [entering, moving, trajectories, turning, acting, properties] = starts;
        bytes.clear();
        bytes.reserve(batch.moving.len() * MOVED);
        encode(bytes, entering, &batch.entering, pieces::entering);
        encode(bytes, moving, &batch.moving, pieces::moving);
        encode(bytes, trajectories, &batch.trajectories, pieces::trajectory_update);
        encode(bytes, turning, &batch.turning, pieces::turning);
        encode(bytes, acting, &batch.acting, pieces::acting);
        encode(bytes, properties, &batch.properties, pieces::property);
        encode(bytes, crowds, &batch.crowds, pieces::crowd);
        old
    }

    /// The batch that is encoded.
    pub fn batch(&self) -> &FrameBatch {
        &self.batch
    }

    /// Appends the complete message for the session at `index` of [`FrameBatch::sessions`] to
    /// `out`, with its crowd if the client `wants_crowd`.
    ///
    /// # Panics
    /// If `index` is not one of the batch's sessions.
    pub fn write_frame(&self, index: usize, wants_crowd: bool, out: &mut Vec<u8>) {
        let s = &self.batch.sessions[index];
        // The last list is the session's alone: its client may not see it.
        let [enters, others @ .., _] = self.batch.refs_of(s);
        let [entering, starts @ ..] = &self.starts;
        out.extend_from_slice(&[0x92, FRAME_TYPE]);
        array(out, 15);
        uint(out, self.batch.tick.0);
        uint(out, s.ack.0.into());
        uint(out, s.epoch.0);
        flag(out, s.resync);
        self.list(out, entering, enters);
        let leaves = self.batch.leaves_of(s);
        array(out, leaves.len());
        for id in leaves {
            uint(out, id.0);
        }
        // Moves, trajectories, turns, acts and properties.
        for (starts, refs) in starts.iter().zip(others) {
            self.list(out, starts, refs);
        }
        messages(out, self.batch.told_of(s));
        let refused = self.batch.refused_of(s);
        array(out, refused.len());
        for r in refused {
            array(out, 2);
            uint(out, r.seq.0.into());
            uint(out, u64::from(u16::from(ErrorCode::from(r.why))));
        }
        match self.batch.own_of(s) {
            Some(o) => own(out, o),
            None => out.push(NIL),
        }
        match s.crowd == 1 && wants_crowd {
            true => out.extend_from_slice(self.piece(&self.crowds, s.crowd_at)),
            false => out.push(NIL),
        }
    }

    #[inline]
    fn piece(&self, starts: &[u32], at: u32) -> &[u8] {
        &self.bytes[starts[at as usize] as usize..starts[at as usize + 1] as usize]
    }

    #[inline]
    fn list(&self, out: &mut Vec<u8>, starts: &[u32], refs: &[u32]) {
        array(out, refs.len());
        for &r in refs {
            out.extend_from_slice(self.piece(starts, r));
        }
    }
}

fn encode<T>(
    bytes: &mut Vec<u8>,
    starts: &mut Vec<u32>,
    items: &[T],
    write: impl Fn(&mut Vec<u8>, &T),
) {
    starts.clear();
    starts.reserve(items.len() + 1);
    starts.push(bytes.len() as u32);
    for item in items {
        write(bytes, item);
        starts.push(bytes.len() as u32);
    }
}

/// Writes the player's own movement in the form of [`OwnMove`].
fn own(out: &mut Vec<u8>, o: &Own) {
    array(out, 5);
    uint(out, o.correction.into());
    trajectory(out, &o.trajectory);
    uint(out, o.speed_cm_s.into());
    uint(out, o.flags.0.into());
    array(out, o.grants.iter().flatten().count());
    for grant in o.grants.iter().flatten() {
        array(out, 3);
        uint(out, grant.id.0.into());
        uint(out, grant.speed_cm_s.into());
        maybe(out, grant.left_ms);
    }
}
