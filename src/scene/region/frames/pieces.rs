//! The pieces of a tick's batch: each is added when the first frame needs it, and found again by the
//! slot of its entity.

use super::{
    ActPiece, Common, ENTER_BYTES, FramePart, FrameReader, NO_PIECE, PART_BYTES, TRAJECTORY,
    properties,
};
use crate::scene::TickStamp;
use crate::scene::messages::{Entering, Following, TrajectoryUpdate};
use crate::scene::movement::Trajectory;
use crate::scene::region::entities::{Body, EntityStore};

pub(super) fn trajectory_update(
    body: &Body,
    trajectory: Trajectory,
    following: Option<Following>,
) -> TrajectoryUpdate {
    TrajectoryUpdate { id: body.id, trajectory, facing: body.facing, following }
}

impl Common {
    /// How the trajectory of the entity at `slot` follows from the one that clients were told before.
    pub(super) fn following(&self, slot: u32, trajectory: &Trajectory) -> Option<Following> {
        self.histories.following(slot, trajectory, self.now)
    }
}

impl FramePart {
    /// The piece of an entity that enters.
    pub(super) fn entering(
        &mut self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        slot: u32,
    ) -> u32 {
        let (tick, told) = (reader.tick, &mut self.told[slot as usize].entering);
        if told.0 != tick || told.1 == NO_PIECE {
            *told = (tick, self.batch.entering.len() as u32);
            let Body { id, kind, pos, facing, .. } = *entities.body(slot);
            let properties = properties::for_all(reader.scene, entities, slot);
            let trajectory = entities.trajectory(slot);
            self.batch.entering.push(Entering { id, kind, pos, facing, trajectory, properties });
            self.slots.entering.push(slot);
        }
        told.1
    }

    /// Adds the piece of which way an entity faces.
    pub(super) fn turning(&mut self, tick: TickStamp, entities: &EntityStore, slot: u32) {
        let told = &mut self.told[slot as usize].turning;
        if told.0 != tick || told.1 == NO_PIECE {
            *told = (tick, self.batch.turning.len() as u32);
            let body = entities.body(slot);
            self.batch.turning.push((body.id, body.facing));
            self.slots.turning.push(slot);
        }
        self.turns.push(told.1);
    }

    /// Adds the piece of where an entity is, or of what it does. The shorter one, if there is one, if the client was
    /// told the trajectory before.
    #[inline]
    pub(super) fn moving(
        &mut self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        slot: u32,
        follows: bool,
    ) {
        if follows && let Some(piece) = self.following(reader, entities, slot) {
            self.trajectories.push(piece);
            return;
        }
        let mut told = self.told[slot as usize].moving;
        if told.0 != reader.tick || told.1 == NO_PIECE {
            told = (reader.tick, self.new_piece(reader.all, entities, slot));
            self.told[slot as usize].moving = told;
        }
        match told.1 & TRAJECTORY {
            0 => self.moves.push(told.1),
            _ => self.trajectories.push(told.1 & !TRAJECTORY),
        }
    }

    /// The piece of the trajectory of an entity for clients that were told the one before; `None`: they are told the
    /// whole.
    fn following(
        &mut self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        slot: u32,
    ) -> Option<u32> {
        let told = &mut self.told[slot as usize].following;
        if told.0 != reader.tick {
            *told = (reader.tick, NO_PIECE);
            let trajectory = entities.moving(slot)?.trajectory;
            let following = Some(reader.all.following(slot, &trajectory)?);
            told.1 = self.batch.trajectories.len() as u32 | TRAJECTORY;
            let update = trajectory_update(entities.body(slot), trajectory, following);
            self.batch.trajectories.push(update);
            self.slots.trajectories.push(slot);
        }
        (told.1 != NO_PIECE).then_some(told.1 & !TRAJECTORY)
    }

    fn new_piece(&mut self, all: &Common, entities: &EntityStore, slot: u32) -> u32 {
        let body = entities.body(slot);
        match entities.moving(slot) {
            Some(track) => {
                let update = trajectory_update(body, track.trajectory, None);
                self.batch.trajectories.push(update);
                self.slots.trajectories.push(slot);
                (self.batch.trajectories.len() - 1) as u32 | TRAJECTORY
            }
            None => {
                self.batch.moving.push(all.histories.moving(slot, body, all.now));
                self.slots.moving.push(slot);
                (self.batch.moving.len() - 1) as u32
            }
        }
    }

    /// Tells what an entity has done, but for what the viewer was told of where it lived before.
    pub(super) fn acts_of(&mut self, reader: FrameReader<'_>, slot: u32) {
        let acts = &reader.all.acts;
        let first = acts.partition_point(|act| act.slot < slot);
        let acts = acts[first..].iter().take_while(|act| act.slot == slot);
        let is_told = |act: &&ActPiece| match act.only {
            Some(viewer) => viewer == reader.slot,
            None => act.of >= reader.since,
        };
        for ActPiece { piece, .. } in acts.filter(is_told) {
            let bytes = ENTER_BYTES + self.batch.acting[*piece as usize].1.len();
            let fits = self.act_bytes + bytes <= PART_BYTES;
            if fits && self.act_bytes + self.property_bytes < self.room {
                self.act_bytes += bytes;
                self.act_refs.push(*piece);
            } else {
                self.acts_dropped += 1;
            }
        }
    }
}
