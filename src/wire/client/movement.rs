//! Wire forms of moves, trajectories and the player's own movement (`docs/movement.md`).

use serde::de::{self, IgnoredAny, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::scene::movement::{
    Climb, Flags, GrantId, Granted, Move, Own, Path, Rules, ServerMs, Steps, Trajectory, Vector,
};
use crate::scene::{EntityId, Facing, Kind, Pos, Rect};

/// A move: `[0, start, steps, speed]` is a path, its speed in centimetres per second; `[1, start,
/// vx, vz, lasts]` is a vector in millimetres per second, which lasts for milliseconds, or (nil)
/// until the next move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Tile by tile.
    Path {
        /// Start position.
        start: Pos,
        /// The steps.
        steps: Steps,
        /// Speed, centimetres per second.
        speed_cm_s: u32,
    },
    /// Straight on.
    Vector(Vector),
}

impl Form {
    /// The move over tiles with sides of `tile_cm`.
    pub fn on_tiles(&self, tile_cm: i32) -> Move {
        match *self {
            Form::Path { start, steps, speed_cm_s } => {
                Path::new(start, steps, speed_cm_s, tile_cm).into()
            }
            Form::Vector(vector) => vector.into(),
        }
    }
}

impl From<&Move> for Form {
    fn from(motion: &Move) -> Form {
        match motion {
            Move::Path(p) => {
                let (start, steps, speed_cm_s) = (p.start(), *p.steps(), p.speed_cm_s());
                Form::Path { start, steps, speed_cm_s }
            }
            Move::Vector(v) => Form::Vector(*v),
        }
    }
}

impl Serialize for Form {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Form::Path { start, steps, speed_cm_s } => {
                let mut out = to.serialize_tuple(4)?;
                out.serialize_element(&0)?;
                out.serialize_element(start)?;
                out.serialize_element(steps)?;
                out.serialize_element(speed_cm_s)?;
                out.end()
            }
            Form::Vector(Vector { start, vx_mm_s, vz_mm_s, lasts_ms }) => {
                let mut out = to.serialize_tuple(5)?;
                out.serialize_element(&1)?;
                out.serialize_element(start)?;
                out.serialize_element(vx_mm_s)?;
                out.serialize_element(vz_mm_s)?;
                out.serialize_element(lasts_ms)?;
                out.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Form {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Form, D::Error> {
        from.deserialize_seq(FormVisitor)
    }
}

struct FormVisitor;

impl<'de> Visitor<'de> for FormVisitor {
    type Value = Form;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a move: [0, start, steps, speed] or [1, start, vx, vz, lasts]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Form, A::Error> {
        fn next<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(
            seq: &mut A,
            at: usize,
        ) -> Result<T, A::Error> {
            seq.next_element()?.ok_or_else(|| de::Error::invalid_length(at, &FormVisitor))
        }
        let form = match next::<u8, A>(&mut seq, 0)? {
            0 => Form::Path {
                start: next(&mut seq, 1)?,
                steps: next(&mut seq, 2)?,
                speed_cm_s: next(&mut seq, 3)?,
            },
            1 => Form::Vector(Vector {
                start: next(&mut seq, 1)?,
                vx_mm_s: next(&mut seq, 2)?,
                vz_mm_s: next(&mut seq, 3)?,
                lasts_ms: next(&mut seq, 4)?,
            }),
            n => return Err(de::Error::invalid_value(de::Unexpected::Unsigned(n.into()), &self)),
        };
        skip_rest(&mut seq)?;
        Ok(form)
    }
}

/// Passes over the values that a later version has added.
pub(super) fn skip_rest<'de, A: SeqAccess<'de>>(seq: &mut A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

/// A trajectory as viewers are told it; the entity's position at any time follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Going {
    /// When it started, milliseconds of the server's clock.
    pub start_ms: u64,
    /// Milliseconds after which it ends; nil: not before the next one.
    pub lasts_ms: Option<u32>,
    /// The move.
    pub form: Form,
}

impl Going {
    /// The trajectory over tiles with sides of `tile_cm`.
    pub fn on_tiles(&self, tile_cm: i32) -> Trajectory {
        let lasts_ms = self.lasts_ms.unwrap_or(u32::MAX);
        Trajectory { motion: self.form.on_tiles(tile_cm), start: ServerMs(self.start_ms), lasts_ms }
    }
}

impl From<&Trajectory> for Going {
    fn from(c: &Trajectory) -> Going {
        Going { start_ms: c.start.0, lasts_ms: c.ends_ms(), form: (&c.motion).into() }
    }
}

/// An entity in view has a new trajectory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntityTrajectory {
    /// The entity.
    pub id: EntityId,
    /// The trajectory.
    pub trajectory: Going,
    /// The way it faces.
    pub facing: Facing,
}

/// A granted speed beyond the player's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The grant's id.
    pub id: GrantId,
    /// Speed, centimetres per second.
    pub speed: u32,
    /// Milliseconds of walking left; nil: until the grant is revoked.
    pub left_ms: Option<u32>,
}

/// The player's own movement, by the server's account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnMove {
    /// Number of the last correction; if the client has not followed it yet, `trajectory` is what
    /// it orders.
    pub correction: u32,
    /// The trajectory that other clients are told.
    pub trajectory: Going,
    /// The player's own top speed, centimetres per second.
    pub speed: u32,
    /// What keeps the player from moving: a sum of 1 rooted, 2 dead, 4 cutscene; 0: nothing.
    pub flags: Flags,
    /// Granted speeds beyond the player's own.
    pub grants: Vec<Grant>,
}

impl From<&Own> for OwnMove {
    fn from(own: &Own) -> OwnMove {
        let grants = own.grants.iter().flatten().map(|g| {
            let Granted { id, speed_cm_s: speed, left_ms } = *g;
            Grant { id, speed, left_ms }
        });
        OwnMove {
            correction: own.correction,
            trajectory: (&own.trajectory).into(),
            speed: own.speed_cm_s,
            flags: own.flags,
            grants: grants.collect(),
        }
    }
}

/// The movement rules of a scene that judges moves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveRules {
    /// Milliseconds per tick.
    pub tick_ms: u32,
    /// Side of a tile, centimetres.
    pub tile_cm: i32,
    /// Upper limit of any speed or grant, centimetres per second.
    pub top_speed: u32,
    /// A walking client sends a command at least this often, milliseconds.
    pub command_ms: u32,
    /// How long beyond that an entity walks on without a command, milliseconds.
    pub grace_ms: u32,
    /// A client stops when it has walked this long since an unacknowledged command, milliseconds.
    pub leash_ms: u32,
    /// How much higher and lower the next tile may lie, `[up, down]` in centimetres; nil: heights
    /// block no move.
    pub climb: Option<[i32; 2]>,
    /// Kinds whose entities occupy tiles.
    pub blocks: Vec<Blocker>,
}

/// A kind that blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    /// The kind.
    pub kind: Kind,
    /// The sides of a body along x and z, centimetres; at least a tile's.
    pub size_cm: [i32; 2],
}

impl MoveRules {
    /// The rules on a map of this size (centimetres), for a client.
    pub fn rules(&self, [width, depth]: [i32; 2]) -> Rules {
        Rules {
            command_ms: self.command_ms,
            grace_ms: self.grace_ms,
            leash_ms: self.leash_ms,
            climb: self.climb.map(|[up_cm, down_cm]| Climb { up_cm, down_cm }),
            ..Rules::within(Rect { x0: 0, z0: 0, x1: width, z1: depth })
        }
    }
}
