//! Moves, courses and what a player is told of its own movement, as they are on the wire.

use serde::de::{self, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::scene::movement::{
    Climb, Course, Flags, GrantId, Granted, Move, Own, Path, Rules, ServerMs, Steps, Vector,
};
use crate::scene::{EntityId, Pos, Rect};

/// A move: `[0, start, steps, speed]` a path, its speed in centimetres per second; `[1, start, vx, vz,
/// lasts]` a vector in millimetres per second, which lasts so many milliseconds or (nil) until another word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Tile by tile.
    Path {
        /// Where it begins.
        start: Pos,
        /// The steps.
        steps: Steps,
        /// Centimetres per second.
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
    fn from(course: &Move) -> Form {
        match course {
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
        match next::<u8, A>(&mut seq, 0)? {
            0 => Ok(Form::Path {
                start: next(&mut seq, 1)?,
                steps: next(&mut seq, 2)?,
                speed_cm_s: next(&mut seq, 3)?,
            }),
            1 => Ok(Form::Vector(Vector {
                start: next(&mut seq, 1)?,
                vx_mm_s: next(&mut seq, 2)?,
                vz_mm_s: next(&mut seq, 3)?,
                lasts_ms: next(&mut seq, 4)?,
            })),
            n => Err(de::Error::invalid_value(de::Unexpected::Unsigned(n.into()), &self)),
        }
    }
}

/// What an entity does, as those are told who see it: where it is at any time follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Going {
    /// When it began, milliseconds of the server's clock.
    pub start_ms: u64,
    /// Milliseconds after which it ends; nil: not before another is told.
    pub lasts_ms: Option<u32>,
    /// The move.
    pub form: Form,
}

impl Going {
    /// The course over tiles with sides of `tile_cm`.
    pub fn on_tiles(&self, tile_cm: i32) -> Course {
        let lasts_ms = self.lasts_ms.unwrap_or(u32::MAX);
        Course { course: self.form.on_tiles(tile_cm), start: ServerMs(self.start_ms), lasts_ms }
    }
}

impl From<&Course> for Going {
    fn from(c: &Course) -> Going {
        let lasts_ms = (c.lasts_ms != u32::MAX).then_some(c.lasts_ms);
        Going { start_ms: c.start.0, lasts_ms, form: (&c.course).into() }
    }
}

/// Somebody in view moves otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coursed {
    /// Who.
    pub id: EntityId,
    /// What it does from now on.
    pub course: Going,
}

/// A speed beyond the player's own that was granted to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its name.
    pub id: GrantId,
    /// Centimetres per second.
    pub speed: u32,
    /// For how many more milliseconds of walking; nil: until it is taken back.
    pub left_ms: Option<u32>,
}

/// The player's own movement, by the server's account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnMove {
    /// The number of the last ruling; one that the client has not followed yet is this course.
    pub ruling: u32,
    /// What others are told that the player does.
    pub course: Going,
    /// Its own top speed, centimetres per second.
    pub speed: u32,
    /// What keeps it from moving: a sum of 1 rooted, 2 dead, 4 cutscene; 0 nothing.
    pub flags: Flags,
    /// Speeds beyond its own.
    pub grants: Vec<Grant>,
}

impl From<&Own> for OwnMove {
    fn from(own: &Own) -> OwnMove {
        let grants = own.grants.iter().flatten().map(|g| {
            let Granted { id, speed_cm_s: speed, left_ms } = *g;
            Grant { id, speed, left_ms }
        });
        OwnMove {
            ruling: own.ruling,
            course: (&own.course).into(),
            speed: own.speed_cm_s,
            flags: own.flags,
            grants: grants.collect(),
        }
    }
}

/// The rules of movement of a scene in which moves are judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveRules {
    /// Milliseconds per tick.
    pub tick_ms: u32,
    /// Side of a tile, centimetres.
    pub tile_cm: i32,
    /// Most that any speed or grant can be, centimetres per second.
    pub top_speed: u32,
    /// A client that walks says a word at least this often, milliseconds.
    pub word_ms: u32,
    /// For how long beyond that an entity walks on without a word, milliseconds.
    pub grace_ms: u32,
    /// A client stops when it has walked for so long since a word that is not acknowledged, milliseconds.
    pub leash_ms: u32,
    /// How much higher and lower the next tile may lie, `[up, down]` in centimetres; nil: heights stop
    /// nobody.
    pub climb: Option<[i32; 2]>,
}

impl MoveRules {
    /// The rules on a map of so many centimetres, as a client goes by them.
    pub fn rules(&self, [width, depth]: [i32; 2]) -> Rules {
        Rules {
            word_ms: self.word_ms,
            grace_ms: self.grace_ms,
            leash_ms: self.leash_ms,
            climb: self.climb.map(|[up_cm, down_cm]| Climb { up_cm, down_cm }),
            ..Rules::within(Rect { x0: 0, z0: 0, x1: width, z1: depth })
        }
    }
}
