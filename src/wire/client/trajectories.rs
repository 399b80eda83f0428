//! Trajectories of entities that a client has in view, as frames carry them: whole, or as what follows from the
//! trajectory before.

use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::movement::{EntityTrajectory, Going, skip_rest};
use crate::scene::messages::{Following, TrajectoryUpdate as Update};
use crate::scene::movement::{Move, ServerMs, Trajectory, Vector};
use crate::scene::pieces::{NEXT_FIELDS, WHOLE_FIELDS};
use crate::scene::{EntityId, Facing, Pos};

/// An entity in view goes on by another vector, from where the client shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextTrajectory {
    /// The entity.
    pub id: EntityId,
    /// How long before the frame's tick the vector starts, milliseconds.
    pub ago_ms: u32,
    /// From where the trajectory before leads at that time to where the vector starts: east, centimetres.
    pub dx: i32,
    /// See `dx`: height, centimetres.
    pub dy: i32,
    /// See `dx`: south, centimetres.
    pub dz: i32,
    /// Velocity to the east, millimetres per second.
    pub vx: i32,
    /// Velocity to the south, millimetres per second.
    pub vz: i32,
    /// Milliseconds after which it ends; nil: not before the next one.
    pub lasts_ms: Option<u32>,
    /// The way it faces.
    pub facing: Facing,
}

/// A new trajectory of an entity in view: an array of nine or more, or of three to eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrajectoryUpdate {
    /// Whatever the client was told before.
    Whole(EntityTrajectory),
    /// It follows from the trajectory or position that the client was told last.
    Next(NextTrajectory),
}

impl TrajectoryUpdate {
    /// The entity.
    pub fn id(&self) -> EntityId {
        match self {
            TrajectoryUpdate::Whole(whole) => whole.id,
            TrajectoryUpdate::Next(next) => next.id,
        }
    }

    /// The way it faces.
    pub fn facing(&self) -> Facing {
        match self {
            TrajectoryUpdate::Whole(whole) => whole.facing,
            TrajectoryUpdate::Next(next) => next.facing,
        }
    }

    /// The trajectory, over tiles with sides of `tile_cm`. `now` is the server's time of the frame's tick, and
    /// `before` gives where the trajectory or position that the client was told before leads at a server time.
    pub fn trajectory(
        &self,
        tile_cm: i32,
        now: ServerMs,
        before: impl FnOnce(ServerMs) -> Pos,
    ) -> Trajectory {
        match self {
            TrajectoryUpdate::Whole(whole) => whole.trajectory.on_tiles(tile_cm),
            TrajectoryUpdate::Next(next) => next.trajectory(now, before),
        }
    }
}

impl NextTrajectory {
    fn trajectory(&self, now: ServerMs, before: impl FnOnce(ServerMs) -> Pos) -> Trajectory {
        let start = ServerMs(now.0.saturating_sub(self.ago_ms.into()));
        let Pos { x, y, z } = before(start);
        let from = Pos {
            x: x.saturating_add(self.dx),
            y: y.saturating_add(self.dy),
            z: z.saturating_add(self.dz),
        };
        let vector = Vector { vx_mm_s: self.vx, vz_mm_s: self.vz, ..Vector::stand(from) };
        let lasts_ms = self.lasts_ms.unwrap_or(u32::MAX);
        Trajectory { motion: Move::Vector(vector), start, lasts_ms }
    }
}

impl From<&Update> for TrajectoryUpdate {
    fn from(update: &Update) -> TrajectoryUpdate {
        let Update { id, ref trajectory, facing, following } = *update;
        match (following, &trajectory.motion) {
            (Some(following), Move::Vector(v)) => {
                let Following { offset_cm: [dx, dy, dz], ago_ms } = following;
                let (vx, vz, lasts_ms) = (v.vx_mm_s, v.vz_mm_s, trajectory.ends_ms());
                let next = NextTrajectory { id, ago_ms, dx, dy, dz, vx, vz, lasts_ms, facing };
                TrajectoryUpdate::Next(next)
            }
            _ => {
                let trajectory = Going::from(trajectory);
                TrajectoryUpdate::Whole(EntityTrajectory { id, trajectory, facing })
            }
        }
    }
}

impl Serialize for TrajectoryUpdate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            TrajectoryUpdate::Whole(whole) => whole.serialize(to),
            TrajectoryUpdate::Next(next) => next.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for TrajectoryUpdate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<TrajectoryUpdate, D::Error> {
        from.deserialize_seq(UpdateVisitor)
    }
}

struct UpdateVisitor;

impl<'de> Visitor<'de> for UpdateVisitor {
    type Value = TrajectoryUpdate;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a trajectory: an array of three or of nine")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<TrajectoryUpdate, A::Error> {
        let fields = seq.size_hint().unwrap_or(0);
        let from = SeqAccessDeserializer::new(&mut seq);
        // A later version may have added fields at the end.
        let update = match fields {
            NEXT_FIELDS.. => NextTrajectory::deserialize(from).map(TrajectoryUpdate::Next),
            WHOLE_FIELDS.. => EntityTrajectory::deserialize(from).map(TrajectoryUpdate::Whole),
            _ => Err(de::Error::invalid_length(fields, &self)),
        }?;
        skip_rest(&mut seq)?;
        Ok(update)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::pieces::trajectory_update;

    fn turn(following: Option<Following>) -> Update {
        let start = Pos { x: 102_400, y: 900, z: 300_000 };
        let vector = Vector { vx_mm_s: 3_000, vz_mm_s: -4_000, ..Vector::stand(start) };
        Update {
            id: EntityId(300),
            trajectory: Trajectory {
                motion: Move::Vector(vector),
                start: ServerMs(3_600_050),
                lasts_ms: u32::MAX,
            },
            facing: Facing(16_384),
            following,
        }
    }

    fn bytes(told: &Update) -> Vec<u8> {
        let mut bytes = Vec::new();
        trajectory_update(&mut bytes, told);
        assert_eq!(bytes, rmp_serde::to_vec(&TrajectoryUpdate::from(told)).unwrap());
        bytes
    }

    #[test]
    fn a_turn_takes_less_than_half_of_the_bytes_of_a_whole_trajectory() {
        let straight = turn(Some(Following { offset_cm: [0; 3], ago_ms: 50 }));
        let off = turn(Some(Following { offset_cm: [-30, 0, 90], ago_ms: 150 }));
        assert_eq!([turn(None), straight, off].map(|told| bytes(&told).len()), [37, 18, 19]);
    }

    #[test]
    fn both_forms_give_the_same_trajectory() {
        let told = turn(Some(Following { offset_cm: [100, -3, -7], ago_ms: 150 }));
        let short: TrajectoryUpdate = rmp_serde::from_slice(&bytes(&told)).unwrap();
        let before = |at| {
            assert_eq!(at, ServerMs(3_600_050));
            Pos { x: 102_300, y: 903, z: 300_007 }
        };
        assert_eq!(short.trajectory(100, ServerMs(3_600_200), before), told.trajectory);
        let whole: TrajectoryUpdate = rmp_serde::from_slice(&bytes(&turn(None))).unwrap();
        let unknown = |_| unreachable!("a whole trajectory needs none before");
        assert_eq!(whole.trajectory(100, ServerMs(3_600_200), unknown), told.trajectory);
    }

    #[test]
    fn a_shorter_array_is_no_trajectory() {
        for fields in [0, 1, 2] {
            let bytes = rmp_serde::to_vec(&vec![1; fields]).unwrap();
            let read = rmp_serde::from_slice::<TrajectoryUpdate>(&bytes);
            assert!(read.is_err(), "{fields} fields: {read:?}");
        }
    }
}
