//! The frame: the one message per player and tick, and the pieces from which it is assembled.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::codes::ErrorCode;
use super::moves::{Coursed, Going, OwnMove};
use super::tight::{NIL, array, bin, sint, uint};
use crate::scene::frames::FrameBatch;
use crate::scene::movement::{Course, Move, Own, Path, Vector};
use crate::scene::{EntityId, Epoch, Kind, Pos, Seq, Tick};

/// Somebody comes into view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entered {
    /// Who.
    pub id: EntityId,
    /// Its kind.
    pub kind: Kind,
    /// Where it is, centimetres.
    pub x: i32,
    /// Height, centimetres.
    pub y: i32,
    /// Where it is, centimetres.
    pub z: i32,
    /// Its opaque appearance.
    pub look: ByteBuf,
    /// What it does; nil: it stands until it is told to be elsewhere.
    pub course: Option<Going>,
}

/// Somebody in view is elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Who.
    pub id: EntityId,
    /// Where it is, centimetres.
    pub x: i32,
    /// Height, centimetres.
    pub y: i32,
    /// Where it is, centimetres.
    pub z: i32,
}

/// Somebody in view did something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acted {
    /// Who.
    pub id: EntityId,
    /// What, opaque.
    pub payload: ByteBuf,
}

/// An input of the player's own that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputRefused {
    /// The input's number.
    pub seq: Seq,
    /// Why.
    pub code: ErrorCode,
}

/// What a player is told in a tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The tick whose state this is.
    pub tick: Tick,
    /// The last input of the player's that was applied.
    pub ack: Seq,
    /// Grows each time the player is handed to another region.
    pub epoch: Epoch,
    /// When true, forget everybody seen so far: `enters` is all that is in view (a resync).
    pub resync: bool,
    /// Who comes into view. Never one that is in view already.
    pub enters: Vec<Entered>,
    /// Who goes out of view. Always one that was in view.
    pub leaves: Vec<EntityId>,
    /// Who is elsewhere.
    pub moves: Vec<Moved>,
    /// Who moves otherwise.
    pub courses: Vec<Coursed>,
    /// Who did what, in order.
    pub acts: Vec<Acted>,
    /// Which of the player's own inputs were refused since the last frame.
    pub refused: Vec<InputRefused>,
    /// The player's own movement, when something of it has changed.
    pub own: Option<OwnMove>,
}

impl Frame {
    /// A frame in which nothing has changed.
    pub fn empty(tick: Tick, ack: Seq, epoch: Epoch) -> Frame {
        Frame {
            tick,
            ack,
            epoch,
            resync: false,
            enters: Vec::new(),
            leaves: Vec::new(),
            moves: Vec::new(),
            courses: Vec::new(),
            acts: Vec::new(),
            refused: Vec::new(),
            own: None,
        }
    }
}

/// Bytes of most entries of [`Frame::moves`], at most.
const MOVED: usize = 24;

/// Type number of a frame; see [`super::client::ServerMsg`].
pub const FRAME_TYPE: u8 = 66;

/// The bytes of all frames of a region and tick: every piece encoded once, and a way to assemble
/// each session's message from them. Reused from tick to tick.
#[derive(Debug, Clone, Default)]
pub struct EncodedBatch {
    batch: FrameBatch,
    bytes: Vec<u8>,
    // Where each piece starts; one entry more than there are pieces: the end of the last.
    entering: Vec<u32>,
    moving: Vec<u32>,
    coursing: Vec<u32>,
    acting: Vec<u32>,
}

impl EncodedBatch {
    /// Encodes every piece of `batch`.
    pub fn new(batch: FrameBatch) -> EncodedBatch {
        let mut out = EncodedBatch::default();
        out.replace(batch);
        out
    }

    /// Takes a new batch in place of the old one, which is given back for reuse.
    pub fn replace(&mut self, batch: FrameBatch) -> FrameBatch {
        let old = std::mem::replace(&mut self.batch, batch);
        let EncodedBatch { batch, bytes, entering, moving, coursing, acting } = self;
        bytes.clear();
        bytes.reserve(batch.moving.len() * MOVED);
        pieces(bytes, entering, &batch.entering, |out, e| {
            array(out, 7);
            uint(out, e.id.0);
            uint(out, e.kind.0.into());
            sint(out, e.pos.x.into());
            sint(out, e.pos.y.into());
            sint(out, e.pos.z.into());
            bin(out, &e.look);
            match &e.course {
                Some(c) => course(out, c),
                None => out.push(NIL),
            }
        });
        pieces(bytes, moving, &batch.moving, |out, (id, pos)| {
            array(out, 4);
            uint(out, id.0);
            sint(out, pos.x.into());
            sint(out, pos.y.into());
            sint(out, pos.z.into());
        });
        pieces(bytes, coursing, &batch.coursing, |out, (id, c)| {
            array(out, 2);
            uint(out, id.0);
            course(out, c);
        });
        pieces(bytes, acting, &batch.acting, |out, (id, payload)| {
            array(out, 2);
            uint(out, id.0);
            bin(out, payload);
        });
        old
    }

    /// The batch whose bytes these are.
    pub fn batch(&self) -> &FrameBatch {
        &self.batch
    }

    /// Appends the whole message for the session at `index` of [`FrameBatch::sessions`] to `out`.
    ///
    /// # Panics
    /// When `index` is not one of the batch's sessions.
    pub fn write_frame(&self, index: usize, out: &mut Vec<u8>) {
        let s = &self.batch.sessions[index];
        let [enters, moves, courses, acts] = self.batch.refs_of(s);
        out.extend_from_slice(&[0x92, FRAME_TYPE]);
        array(out, 11);
        uint(out, self.batch.tick.0);
        uint(out, s.ack.0.into());
        uint(out, s.epoch.0);
        out.push(if s.resync { 0xc3 } else { 0xc2 });
        self.list(out, &self.entering, enters);
        let leaves = self.batch.leaves_of(s);
        array(out, leaves.len());
        for id in leaves {
            uint(out, id.0);
        }
        self.list(out, &self.moving, moves);
        self.list(out, &self.coursing, courses);
        self.list(out, &self.acting, acts);
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
    }

    #[inline]
    fn list(&self, out: &mut Vec<u8>, starts: &[u32], refs: &[u32]) {
        array(out, refs.len());
        for &r in refs {
            let (from, to) = (starts[r as usize], starts[r as usize + 1]);
            out.extend_from_slice(&self.bytes[from as usize..to as usize]);
        }
    }
}

fn pieces<T>(
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

/// As [`Going`] is written.
fn course(out: &mut Vec<u8>, c: &Course) {
    array(out, 3);
    uint(out, c.start.0);
    maybe(out, (c.lasts_ms != u32::MAX).then_some(c.lasts_ms));
    match &c.course {
        Move::Path(p) => path(out, p),
        Move::Vector(v) => vector(out, v),
    }
}

fn path(out: &mut Vec<u8>, p: &Path) {
    array(out, 4);
    out.push(0);
    place(out, p.start());
    match p.steps().len() {
        len @ 0..=31 => out.push(0xa0 | len as u8),
        len => out.extend_from_slice(&[0xd9, len as u8]),
    }
    out.extend(p.steps().iter().map(|step| b'0' + step.number()));
    uint(out, p.speed_cm_s().into());
}

fn vector(out: &mut Vec<u8>, v: &Vector) {
    array(out, 5);
    out.push(1);
    place(out, v.start);
    sint(out, v.vx_mm_s.into());
    sint(out, v.vz_mm_s.into());
    maybe(out, v.lasts_ms);
}

/// As [`OwnMove`] is written.
fn own(out: &mut Vec<u8>, o: &Own) {
    array(out, 5);
    uint(out, o.ruling.into());
    course(out, &o.course);
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

fn place(out: &mut Vec<u8>, at: Pos) {
    array(out, 3);
    sint(out, at.x.into());
    sint(out, at.y.into());
    sint(out, at.z.into());
}

fn maybe(out: &mut Vec<u8>, n: Option<u32>) {
    match n {
        Some(n) => uint(out, n.into()),
        None => out.push(NIL),
    }
}
