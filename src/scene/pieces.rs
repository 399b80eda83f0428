//! The pieces of frames as clients get them: MessagePack, each number in its shortest form.
//!
//! `wire` writes each piece of a batch once, and the byte budget of a client ([`len`]) counts what is written: so the
//! form of a piece is said here alone. *Absent on purpose:* how a piece is read; `wire` has types for that.

use bytes::Bytes;

use super::messages::{
    Crowd, Entering, Following, Moving, PropertyUpdate, Speaker, TrajectoryUpdate,
};
use super::movement::{Move, Path, Trajectory, Vector};
use super::properties::Level;
use super::{EntityId, Facing, Pos};

/// Where bytes go.
pub trait Out {
    /// Takes a byte.
    fn byte(&mut self, byte: u8);

    /// Takes bytes.
    fn put(&mut self, bytes: &[u8]);
}

impl Out for Vec<u8> {
    #[inline]
    fn byte(&mut self, byte: u8) {
        self.push(byte);
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Counts bytes.
#[derive(Debug)]
pub struct Count(usize);

impl Out for Count {
    #[inline]
    fn byte(&mut self, _: u8) {
        self.0 += 1;
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

/// How many bytes are written.
#[inline]
pub fn len(write: impl FnOnce(&mut Count)) -> usize {
    let mut count = Count(0);
    write(&mut count);
    count.0
}

/// No value.
pub const NIL: u8 = 0xc0;

/// The head of an array.
#[inline]
pub fn array(out: &mut impl Out, len: usize) {
    match len {
        0..=15 => out.byte(0x90 | len as u8),
        _ => wide(out, [0xdc, 0xdd], len),
    }
}

/// A length of two or four bytes, by the markers of these.
pub fn wide(out: &mut impl Out, [two, four]: [u8; 2], len: usize) {
    match u16::try_from(len) {
        Ok(len) => marked_2(out, two, len.to_be_bytes()),
        Err(_) => marked_4(out, four, (len as u32).to_be_bytes()),
    }
}

// Each of these writes a marker and its bytes in one call, so that capacity is checked only once.

/// A marker and a byte.
#[inline]
pub fn marked_1(out: &mut impl Out, marker: u8, [a]: [u8; 1]) {
    out.put(&[marker, a]);
}

/// A marker and two bytes.
#[inline]
pub fn marked_2(out: &mut impl Out, marker: u8, [a, b]: [u8; 2]) {
    out.put(&[marker, a, b]);
}

/// A marker and four bytes.
#[inline]
pub fn marked_4(out: &mut impl Out, marker: u8, [a, b, c, d]: [u8; 4]) {
    out.put(&[marker, a, b, c, d]);
}

/// A marker and eight bytes.
#[inline]
pub fn marked_8(out: &mut impl Out, marker: u8, [a, b, c, d, e, f, g, h]: [u8; 8]) {
    out.put(&[marker, a, b, c, d, e, f, g, h]);
}

/// A number of at least 0.
#[inline]
pub fn uint(out: &mut impl Out, n: u64) {
    match n {
        0..=0x7f => out.byte(n as u8),
        0x80..=0xff => marked_1(out, 0xcc, [n as u8]),
        0x100..=0xffff => marked_2(out, 0xcd, (n as u16).to_be_bytes()),
        0x1_0000..=0xffff_ffff => marked_4(out, 0xce, (n as u32).to_be_bytes()),
        _ => marked_8(out, 0xcf, n.to_be_bytes()),
    }
}

/// A number.
#[inline]
pub fn sint(out: &mut impl Out, n: i64) {
    match n {
        0.. => uint(out, n as u64),
        -32..=-1 => out.byte(n as i8 as u8),
        -0x80..=-33 => marked_1(out, 0xd0, (n as i8).to_be_bytes()),
        -0x8000..=-0x81 => marked_2(out, 0xd1, (n as i16).to_be_bytes()),
        -0x8000_0000..=-0x8001 => marked_4(out, 0xd2, (n as i32).to_be_bytes()),
        _ => marked_8(out, 0xd3, n.to_be_bytes()),
    }
}

/// A number, or nil.
#[inline]
pub fn maybe(out: &mut impl Out, n: Option<u32>) {
    match n {
        Some(n) => uint(out, n.into()),
        None => out.byte(NIL),
    }
}

/// A byte string.
#[inline]
pub fn bin(out: &mut impl Out, bytes: &[u8]) {
    match u8::try_from(bytes.len()) {
        Ok(len) => marked_1(out, 0xc4, [len]),
        Err(_) => wide(out, [0xc5, 0xc6], bytes.len()),
    }
    out.put(bytes);
}

/// Yes or no.
#[inline]
pub fn flag(out: &mut impl Out, on: bool) {
    out.byte(if on { 0xc3 } else { 0xc2 });
}

/// An entity that comes into view.
pub fn entering(out: &mut impl Out, e: &Entering) {
    array(out, 8);
    uint(out, e.id.0);
    uint(out, e.kind.0.into());
    coordinates(out, e.pos);
    uint(out, e.facing.0.into());
    let levels = e.properties.levels();
    array(out, levels.len());
    for Level { id, version, value, .. } in levels {
        array(out, 3);
        uint(out, id.0.into());
        uint(out, (*version).into());
        bin(out, value.bytes());
    }
    match &e.trajectory {
        Some(t) => trajectory(out, t),
        None => out.byte(NIL),
    }
}

/// An entity's new position.
#[inline]
pub fn moving(out: &mut impl Out, m: &Moving) {
    array(out, 7);
    uint(out, m.id.0);
    coordinates(out, m.pos);
    sint(out, m.vx_cm_s.into());
    sint(out, m.vz_cm_s.into());
    uint(out, m.facing.0.into());
}

/// Number of fields of a trajectory that follows from the one before.
pub const NEXT_FIELDS: usize = 9;

/// Number of fields of a whole trajectory.
pub const WHOLE_FIELDS: usize = 3;

/// An entity's new trajectory: whole, or as what follows from the one before.
pub fn trajectory_update(out: &mut impl Out, update: &TrajectoryUpdate) {
    let TrajectoryUpdate { id, trajectory: t, facing, following } = update;
    match (following, &t.motion) {
        (Some(Following { offset_cm, ago_ms }), Move::Vector(v)) => {
            array(out, NEXT_FIELDS);
            uint(out, id.0);
            uint(out, (*ago_ms).into());
            offset_cm.iter().for_each(|v| sint(out, (*v).into()));
            sint(out, v.vx_mm_s.into());
            sint(out, v.vz_mm_s.into());
            maybe(out, t.ends_ms());
        }
        _ => {
            array(out, WHOLE_FIELDS);
            uint(out, id.0);
            trajectory(out, t);
        }
    }
    uint(out, facing.0.into());
}

/// A trajectory.
pub fn trajectory(out: &mut impl Out, t: &Trajectory) {
    array(out, 3);
    uint(out, t.start.0);
    maybe(out, t.ends_ms());
    match &t.motion {
        Move::Path(p) => path(out, p),
        Move::Vector(v) => vector(out, v),
    }
}

fn path(out: &mut impl Out, p: &Path) {
    array(out, 4);
    out.byte(0);
    place(out, p.start());
    match p.steps().len() {
        len @ 0..=31 => out.byte(0xa0 | len as u8),
        len => marked_1(out, 0xd9, [len as u8]),
    }
    p.steps().iter().for_each(|step| out.byte(b'0' + step.number()));
    uint(out, p.speed_cm_s().into());
}

fn vector(out: &mut impl Out, v: &Vector) {
    array(out, 5);
    out.byte(1);
    place(out, v.start);
    sint(out, v.vx_mm_s.into());
    sint(out, v.vz_mm_s.into());
    maybe(out, v.lasts_ms);
}

fn place(out: &mut impl Out, at: Pos) {
    array(out, 3);
    coordinates(out, at);
}

#[inline]
fn coordinates(out: &mut impl Out, at: Pos) {
    sint(out, at.x.into());
    sint(out, at.y.into());
    sint(out, at.z.into());
}

/// Which way an entity faces.
pub fn turning(out: &mut impl Out, (id, facing): &(EntityId, Facing)) {
    array(out, 2);
    uint(out, id.0);
    uint(out, facing.0.into());
}

/// What an entity has done.
pub fn acting(out: &mut impl Out, (id, payload, by): &(EntityId, Bytes, Speaker)) {
    array(out, 3);
    uint(out, id.0);
    bin(out, payload);
    flag(out, *by == Speaker::Logic);
}

/// A property that has changed.
pub fn property(out: &mut impl Out, update: &PropertyUpdate) {
    array(out, 4);
    uint(out, update.entity.0);
    uint(out, update.id.0.into());
    uint(out, update.version.into());
    bin(out, update.value.bytes());
}

/// The players around a patch.
pub fn crowd(out: &mut impl Out, crowd: &Crowd) {
    array(out, 3);
    sint(out, crowd.x.into());
    sint(out, crowd.z.into());
    bin(out, &crowd.dots);
}
