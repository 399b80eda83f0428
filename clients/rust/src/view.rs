//! The set of entities that the server shows to one client.
//!
//! Games apply every frame to one [`View`] and draw from it. A frame that contradicts the view must
//! change nothing.

use std::collections::BTreeMap;

use purview::scene::movement::{ServerMs, Trajectory};
use purview::scene::properties::{APPEARANCE, PropertyId, Value};
use purview::scene::{EntityId, Epoch, Facing, Kind, Pos, Seq, Tick};
use purview::wire::client::Joined;
use purview::wire::{Frame, Going};
use rustc_hash::FxHashMap;

use crate::crowd::CrowdView;

/// An entity in view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its kind.
    pub kind: Kind,
    /// Last position that the server sent, centimetres.
    pub pos: Pos,
    /// Its trajectory, if the server sent one; its position follows from it.
    pub trajectory: Option<Box<Trajectory>>,
    /// The way it faces.
    pub facing: Facing,
    /// Its properties, as far as the server told them.
    pub properties: BTreeMap<PropertyId, Value>,
}

impl Seen {
    /// Its appearance, if that is opaque bytes.
    pub fn appearance(&self) -> Option<&[u8]> {
        self.properties.get(&APPEARANCE)?.as_binary()
    }

    /// Position at a server time, by the last message.
    pub fn position(&self, now: ServerMs) -> Pos {
        self.trajectory.as_ref().map_or(self.pos, |trajectory| trajectory.position(now))
    }
}

/// A frame contradicts those before it: its tick, and the entity or the last frame's tick. The view is
/// as it was before the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// An entity enters that is in view already.
    #[error("tick {0}: entity {1} enters although it is in view already")]
    EnterTwice(Tick, EntityId),
    /// An entity leaves that is not in view.
    #[error("tick {0}: entity {1} leaves although it is not in view")]
    LeaveUnseen(Tick, EntityId),
    /// An entity moves that is not in view.
    #[error("tick {0}: entity {1} moves although it is not in view")]
    MoveUnseen(Tick, EntityId),
    /// An entity turns that is not in view.
    #[error("tick {0}: entity {1} turns although it is not in view")]
    TurnUnseen(Tick, EntityId),
    /// A property changes of an entity that is not in view.
    #[error("tick {0}: a property of entity {1} changes although it is not in view")]
    ChangeUnseen(Tick, EntityId),
    /// An entity acts that is not in view.
    #[error("tick {0}: entity {1} acts although it is not in view")]
    ActUnseen(Tick, EntityId),
    /// The frame's tick is not later than the last one.
    #[error("a frame for tick {0} after one for {1}")]
    TickBack(Tick, Tick),
}

/// What the server told of the player itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnState {
    /// The player's entity; `None` before it has joined.
    pub id: Option<EntityId>,
    /// The way it faces: as the server said last, which does not repeat what the client says.
    pub facing: Facing,
    /// Its properties that its client may see.
    pub properties: BTreeMap<PropertyId, Value>,
}

/// The entities in view, updated frame by frame: leaves first, then enters, then moves.
///
/// A `Joined` after a teleport does not change it; the following frames do, by leaves or a resync.
#[derive(Debug, Clone, Default)]
pub struct View {
    seen: FxHashMap<EntityId, Seen>,
    own: OwnState,
    tick: Option<Tick>,
    ack: Seq,
    epoch: Epoch,
    /// The scene's tile side (centimetres) and milliseconds per tick.
    tile_cm: i32,
    tick_ms: u32,
    patch_cm: [i32; 2],
    crowd: Option<CrowdView>,
}

impl View {
    /// An empty view of a player that has joined.
    pub fn of(joined: &Joined) -> View {
        let mut view = View::default();
        view.joined(joined);
        view
    }

    /// Switches to the rules of the scene that the player has teleported to; later frames refer to
    /// them.
    pub fn joined(&mut self, joined: &Joined) {
        (self.patch_cm, self.crowd) = (joined.rules.patch_cm, None);
        if let Some(rules) = &joined.rules.updates {
            self.tick_ms = rules.tick_ms;
        }
        (self.own.id, self.own.facing) = (Some(joined.id), joined.facing);
        if let Some(rules) = &joined.rules.movement {
            (self.tile_cm, self.tick_ms) = (rules.tile_cm, rules.tick_ms);
        }
    }

    /// The server's time of a tick, if clients of the scene extrapolate.
    pub fn time_of(&self, tick: Tick) -> ServerMs {
        ServerMs(tick.0.saturating_mul(self.tick_ms.into()))
    }

    /// Applies a frame.
    ///
    /// # Errors
    /// The first contradiction; the view is then unchanged.
    pub fn apply(&mut self, frame: &Frame) -> Result<(), ViewError> {
        self.check(frame)?;
        if frame.resync {
            self.seen.clear();
        }
        for id in &frame.leaves {
            self.seen.remove(id);
        }
        for e in &frame.enters {
            let pos = Pos { x: e.x, y: e.y, z: e.z };
            let properties = e.properties.iter().map(|p| (p.id, p.value.clone())).collect();
            let trajectory = e.trajectory.map(|going| Box::new(self.trajectory(&going)));
            let (kind, facing) = (e.kind, e.facing);
            self.seen.insert(e.id, Seen { kind, pos, trajectory, facing, properties });
        }
        let told_at = self.time_of(frame.tick);
        for m in &frame.moves {
            let Some(seen) = self.seen.get_mut(&m.id) else { continue };
            (seen.pos, seen.facing) = (Pos { x: m.x, y: m.y, z: m.z }, m.facing);
            seen.trajectory = m.trajectory(told_at).map(Box::new);
        }
        for update in &frame.trajectories {
            let Some(seen) = self.seen.get_mut(&update.id()) else { continue };
            let trajectory = update.trajectory(self.tile_cm, told_at, |at| seen.position(at));
            (seen.pos, seen.facing) = (trajectory.position(told_at), update.facing());
            seen.trajectory = Some(Box::new(trajectory));
        }
        if let Some(crowd) = &frame.crowd {
            self.crowd = Some(CrowdView::new(frame.tick, self.patch_cm, crowd.clone()));
        }
        self.apply_state(frame);
        self.tick = Some(frame.tick);
        self.ack = frame.ack;
        self.epoch = frame.epoch;
        Ok(())
    }

    /// Applies turns and properties.
    fn apply_state(&mut self, frame: &Frame) {
        for turned in &frame.turns {
            match self.seen.get_mut(&turned.id) {
                Some(seen) => seen.facing = turned.facing,
                None => self.own.facing = turned.facing,
            }
        }
        if frame.resync {
            self.own.properties.clear();
        }
        for changed in &frame.properties {
            let of = match self.seen.get_mut(&changed.entity) {
                Some(seen) => &mut seen.properties,
                None => &mut self.own.properties,
            };
            of.insert(changed.id, changed.value.clone());
        }
    }

    /// What the server told of the player itself.
    pub fn own(&self) -> &OwnState {
        &self.own
    }

    fn trajectory(&self, going: &Going) -> Trajectory {
        going.on_tiles(self.tile_cm)
    }

    /// The newest crowd around the player; `None` before the first one, and for clients that did not ask for it by
    /// [`Login::with_crowd`](crate::Login::with_crowd).
    pub fn crowd(&self) -> Option<&CrowdView> {
        self.crowd.as_ref()
    }

    /// The position of an entity in view at a server time.
    pub fn position(&self, id: EntityId, now: ServerMs) -> Option<Pos> {
        self.get(id).map(|seen| seen.position(now))
    }

    /// The trajectory that the server told last of an entity in view, if it told any since the last
    /// position at rest.
    pub fn told(&self, id: EntityId) -> Option<Trajectory> {
        self.get(id)?.trajectory.as_deref().copied()
    }

    /// An entity in view.
    pub fn get(&self, id: EntityId) -> Option<&Seen> {
        self.seen.get(&id)
    }

    /// All entities in view, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (EntityId, &Seen)> {
        self.seen.iter().map(|(id, seen)| (*id, seen))
    }

    /// Number of entities in view.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Whether no entity is in view.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// The tick of the last frame.
    pub fn tick(&self) -> Option<Tick> {
        self.tick
    }

    /// The player's last input that was applied.
    pub fn ack(&self) -> Seq {
        self.ack
    }

    /// The player's epoch; it grows with each handoff.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn check(&self, frame: &Frame) -> Result<(), ViewError> {
        let tick = frame.tick;
        if let Some(last) = self.tick
            && tick <= last
        {
            return Err(ViewError::TickBack(tick, last));
        }
        let before = |id: &EntityId| !frame.resync && self.seen.contains_key(id);
        let entering = |id: &EntityId| frame.enters.iter().any(|e| e.id == *id);
        for (i, &id) in frame.leaves.iter().enumerate() {
            if !before(&id) || frame.leaves[..i].contains(&id) {
                return Err(ViewError::LeaveUnseen(tick, id));
            }
        }
        for (i, e) in frame.enters.iter().enumerate() {
            let in_view = before(&e.id) && !frame.leaves.contains(&e.id);
            if in_view || frame.enters[..i].iter().any(|other| other.id == e.id) {
                return Err(ViewError::EnterTwice(tick, e.id));
            }
        }
        let after = |id: &EntityId| (before(id) && !frame.leaves.contains(id)) || entering(id);
        if let Some(m) = frame.moves.iter().find(|m| !after(&m.id)) {
            return Err(ViewError::MoveUnseen(tick, m.id));
        }
        if let Some(t) = frame.trajectories.iter().find(|t| !after(&t.id())) {
            return Err(ViewError::MoveUnseen(tick, t.id()));
        }
        let known = |id: &EntityId| after(id) || self.own.id == Some(*id);
        if let Some(t) = frame.turns.iter().find(|t| !known(&t.id)) {
            return Err(ViewError::TurnUnseen(tick, t.id));
        }
        if let Some(p) = frame.properties.iter().find(|p| !known(&p.entity)) {
            return Err(ViewError::ChangeUnseen(tick, p.entity));
        }
        // An entity that acts and leaves in one tick is still in `before`.
        if let Some(a) = frame.acts.iter().find(|a| !before(&a.id) && !entering(&a.id)) {
            return Err(ViewError::ActUnseen(tick, a.id));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
