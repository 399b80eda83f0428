//! Puts the frames of parts of the viewers together, as if one part had made all of them.
//!
//! Pieces stand in a batch in the order in which frames first needed them. Each part has its own; where an earlier part
//! has a piece already, the later part's is left out. So the batch does not depend on how viewers were cut into parts.

use super::{FramePart, NO_PIECE, SlotNotes, TRAJECTORY};
use crate::scene::TickStamp;
use crate::scene::messages::{KIND_OF, KINDS, SessionFrame};

/// The slot of each piece of a batch.
#[derive(Debug, Default)]
pub(super) struct PieceSlots {
    pub(super) entering: Vec<u32>,
    pub(super) moving: Vec<u32>,
    pub(super) trajectories: Vec<u32>,
    pub(super) turning: Vec<u32>,
    /// Slot, index of the level, number of levels.
    pub(super) properties: Vec<(u32, u32, u32)>,
}

impl PieceSlots {
    pub(super) fn clear(&mut self) {
        self.entering.clear();
        self.moving.clear();
        self.trajectories.clear();
        self.turning.clear();
        self.properties.clear();
    }
}

/// The pieces of a kind in one batch, with their slots.
type Pieces<'a, T> = (&'a mut Vec<u32>, &'a mut Vec<T>);

/// Moves a later part's pieces of a kind to the end of a batch's, but for those that are there already. `noted` says
/// where that is noted; `mark` tells two kinds apart that are noted in one place. Gives the place of each.
fn move_pieces<T>(
    (slots, pieces): Pieces<'_, T>,
    (to_slots, to): Pieces<'_, T>,
    told: (&mut [SlotNotes], TickStamp, u32),
    noted: impl for<'a> Fn(&'a mut SlotNotes, &T) -> &'a mut (TickStamp, u32),
) -> Vec<u32> {
    let (told, tick, mark) = told;
    let places = slots.drain(..).zip(pieces.drain(..)).map(|(slot, piece)| {
        let note = noted(&mut told[slot as usize], &piece);
        if note.0 != tick || note.1 == NO_PIECE {
            *note = (tick, to.len() as u32 | mark);
            to_slots.push(slot);
            to.push(piece);
        }
        note.1 & !mark
    });
    places.collect()
}

impl FramePart {
    /// Adds the frames of the next part, which was made in the same tick.
    pub(super) fn append(&mut self, tick: TickStamp, later: &mut FramePart) {
        let places = self.take_pieces(tick, later);
        let crowds = std::mem::take(&mut later.batch.crowds);
        let crowds = self.crowds.append(&later.crowds, &mut self.batch.crowds, crowds);
        let (to, from) = (&mut self.batch, &mut later.batch);
        let first = SessionFrame {
            refs_at: to.refs.len() as u32,
            leaves_at: to.leaves.len() as u32,
            refused_at: to.refused.len() as u32,
            told_at: to.told.len() as u32,
            own_at: to.owns.len() as u32,
            ..SessionFrame::default()
        };
        for s in &from.sessions {
            for (list, kind) in from.refs_of(s).into_iter().zip(KIND_OF) {
                match &places[kind] {
                    Some(places) => to.refs.extend(list.iter().map(|r| places[*r as usize])),
                    None => to.refs.extend_from_slice(list),
                }
            }
            to.sessions.push(SessionFrame {
                refs_at: s.refs_at + first.refs_at,
                leaves_at: s.leaves_at + first.leaves_at,
                refused_at: s.refused_at + first.refused_at,
                told_at: s.told_at + first.told_at,
                own_at: s.own_at + first.own_at,
                crowd_at: if s.crowd > 0 { crowds[s.crowd_at as usize] } else { s.crowd_at },
                ..*s
            });
        }
        to.leaves.append(&mut from.leaves);
        to.refused.append(&mut from.refused);
        to.told.append(&mut from.told);
        to.owns.append(&mut from.owns);
    }

    /// The places in this batch of a later part's pieces, by their kinds; `None`: as they are. All parts have the same
    /// acts.
    fn take_pieces(&mut self, tick: TickStamp, later: &mut FramePart) -> [Option<Vec<u32>>; KINDS] {
        let properties = self.take_properties(tick, later);
        let FramePart { batch: to, slots, told, .. } = self;
        let (from, of) = (&mut later.batch, &mut later.slots);
        let entering = move_pieces(
            (&mut of.entering, &mut from.entering),
            (&mut slots.entering, &mut to.entering),
            (told, tick, 0),
            |notes, _| &mut notes.entering,
        );
        let moving = move_pieces(
            (&mut of.moving, &mut from.moving),
            (&mut slots.moving, &mut to.moving),
            (told, tick, 0),
            |notes, _| &mut notes.moving,
        );
        let trajectories = move_pieces(
            (&mut of.trajectories, &mut from.trajectories),
            (&mut slots.trajectories, &mut to.trajectories),
            (told, tick, TRAJECTORY),
            |notes, update| match update.following {
                Some(_) => &mut notes.following,
                None => &mut notes.moving,
            },
        );
        let turning = move_pieces(
            (&mut of.turning, &mut from.turning),
            (&mut slots.turning, &mut to.turning),
            (told, tick, 0),
            |notes, _| &mut notes.turning,
        );
        [Some(entering), Some(moving), Some(trajectories), Some(turning), None, Some(properties)]
    }

    fn take_properties(&mut self, tick: TickStamp, later: &mut FramePart) -> Vec<u32> {
        let FramePart { batch, slots, told, cells, .. } = self;
        let updates = later.batch.properties.drain(..);
        let places = later.slots.properties.drain(..).zip(updates).map(|(at, update)| {
            let (slot, ix, levels) = at;
            let noted = &mut told[slot as usize].properties;
            if noted.0 != tick || noted.1 == NO_PIECE {
                *noted = (tick, cells.len() as u32);
                cells.extend((0..levels).map(|_| NO_PIECE));
            }
            let cell = &mut cells[(noted.1 + ix) as usize];
            if *cell == NO_PIECE {
                *cell = batch.properties.len() as u32;
                batch.properties.push(update);
                slots.properties.push(at);
            }
            *cell
        });
        places.collect()
    }
}
