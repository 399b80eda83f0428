//! The set of entities that the server shows to one client.
//!
//! Games apply every frame to one [`View`] and draw from it. A frame that contradicts the view must
//! change nothing.

use bytes::Bytes;
use purview::scene::movement::{Blend, Extrapolator, ServerMs, Trajectory};
use purview::scene::{EntityId, Epoch, Kind, Pos, Seq, Tick};
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
    /// How it goes on, if the server said so; its position follows from it.
    pub trajectory: Option<Box<Extrapolator>>,
    /// Its opaque appearance.
    pub appearance: Bytes,
}

impl Seen {
    /// Position at a server time, by the last message.
    pub fn position(&self, now: ServerMs) -> Pos {
        self.trajectory.as_ref().map_or(self.pos, |trajectory| trajectory.position(now))
    }

    /// Position to display at a server time: the same, blended after a change of trajectory.
    pub fn shown(&self, now: ServerMs) -> Pos {
        self.trajectory.as_ref().map_or(self.pos, |trajectory| trajectory.shown(now))
    }

    /// The entity follows a trajectory from now on.
    fn go(&mut self, now: ServerMs, trajectory: Trajectory, blend: Blend) {
        match &mut self.trajectory {
            Some(known) => known.told(now, trajectory),
            None => self.trajectory = Some(Box::new(Extrapolator::new(trajectory, blend))),
        }
    }
}

/// A frame contradicts those before it. The view is as it was before the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// An entity enters that is in view already.
    #[error("tick {tick}: entity {id} enters although it is in view already")]
    EnterTwice {
        /// The frame's tick.
        tick: Tick,
        /// The entity.
        id: EntityId,
    },
    /// An entity leaves that is not in view.
    #[error("tick {tick}: entity {id} leaves although it is not in view")]
    LeaveUnseen {
        /// The frame's tick.
        tick: Tick,
        /// The entity.
        id: EntityId,
    },
    /// An entity moves that is not in view.
    #[error("tick {tick}: entity {id} moves although it is not in view")]
    MoveUnseen {
        /// The frame's tick.
        tick: Tick,
        /// The entity.
        id: EntityId,
    },
    /// An entity acts that is not in view.
    #[error("tick {tick}: entity {id} acts although it is not in view")]
    ActUnseen {
        /// The frame's tick.
        tick: Tick,
        /// The entity.
        id: EntityId,
    },
    /// The frame's tick is not later than the last one.
    #[error("a frame for tick {tick} after one for {last}")]
    TickBack {
        /// The frame's tick.
        tick: Tick,
        /// The last frame's tick.
        last: Tick,
    },
}

/// The entities in view, updated frame by frame: leaves first, then enters, then moves.
///
/// A `Joined` after a teleport does not change it; the following frames do, by leaves or a resync.
#[derive(Debug, Clone, Default)]
pub struct View {
    seen: FxHashMap<EntityId, Seen>,
    tick: Option<Tick>,
    ack: Seq,
    epoch: Epoch,
    /// The scene's tile side (centimetres) and milliseconds per tick.
    tile_cm: i32,
    tick_ms: u32,
    blend: Blend,
    patch_cm: i32,
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
        if let Some(rules) = &joined.rules.movement {
            (self.tile_cm, self.tick_ms) = (rules.tile_cm, rules.tick_ms);
        }
    }

    /// Sets how changes of trajectory are blended: by default over 200 ms, below 5 m.
    pub fn set_blend(&mut self, blend: Blend) {
        self.blend = blend;
    }

    /// The server's time of a tick, if clients of the scene extrapolate.
    pub fn time_of(&self, tick: Tick) -> ServerMs {
        ServerMs(tick.0.saturating_mul(self.tick_ms.into()))
    }

    /// Applies a frame. Entities are displayed as of its tick.
    ///
    /// # Errors
    /// The first contradiction; the view is then unchanged.
    pub fn apply(&mut self, frame: &Frame) -> Result<(), ViewError> {
        self.apply_at(frame, self.time_of(frame.tick))
    }

    /// Applies a frame while entities are displayed as of server time `now`: blends start at that
    /// time.
    ///
    /// # Errors
    /// The first contradiction; the view is then unchanged.
    pub fn apply_at(&mut self, frame: &Frame, now: ServerMs) -> Result<(), ViewError> {
        self.check(frame)?;
        if frame.resync {
            self.seen.clear();
        }
        for id in &frame.leaves {
            self.seen.remove(id);
        }
        for e in &frame.enters {
            let pos = Pos { x: e.x, y: e.y, z: e.z };
            let appearance = Bytes::copy_from_slice(&e.appearance);
            let goes = |going| Box::new(Extrapolator::new(self.trajectory(&going), self.blend));
            let trajectory = e.trajectory.map(goes);
            self.seen.insert(e.id, Seen { kind: e.kind, pos, trajectory, appearance });
        }
        let told_at = self.time_of(frame.tick);
        for m in &frame.moves {
            let Some(seen) = self.seen.get_mut(&m.id) else { continue };
            seen.pos = Pos { x: m.x, y: m.y, z: m.z };
            match m.trajectory(told_at) {
                Some(trajectory) => seen.go(now, trajectory, self.blend),
                None => seen.trajectory = None,
            }
        }
        for c in &frame.trajectories {
            let (trajectory, blend) = (self.trajectory(&c.trajectory), self.blend);
            let Some(seen) = self.seen.get_mut(&c.id) else { continue };
            seen.go(now, trajectory, blend);
            seen.pos = trajectory.position(now);
        }
        if let Some(crowd) = &frame.crowd {
            self.crowd = Some(CrowdView::new(frame.tick, self.patch_cm, crowd.clone()));
        }
        self.tick = Some(frame.tick);
        self.ack = frame.ack;
        self.epoch = frame.epoch;
        Ok(())
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
            return Err(ViewError::TickBack { tick, last });
        }
        let before = |id: &EntityId| !frame.resync && self.seen.contains_key(id);
        let entering = |id: &EntityId| frame.enters.iter().any(|e| e.id == *id);
        for (i, &id) in frame.leaves.iter().enumerate() {
            if !before(&id) || frame.leaves[..i].contains(&id) {
                return Err(ViewError::LeaveUnseen { tick, id });
            }
        }
        for (i, e) in frame.enters.iter().enumerate() {
            let in_view = before(&e.id) && !frame.leaves.contains(&e.id);
            if in_view || frame.enters[..i].iter().any(|other| other.id == e.id) {
                return Err(ViewError::EnterTwice { tick, id: e.id });
            }
        }
        let after = |id: &EntityId| (before(id) && !frame.leaves.contains(id)) || entering(id);
        if let Some(m) = frame.moves.iter().find(|m| !after(&m.id)) {
            return Err(ViewError::MoveUnseen { tick, id: m.id });
        }
        if let Some(c) = frame.trajectories.iter().find(|c| !after(&c.id)) {
            return Err(ViewError::MoveUnseen { tick, id: c.id });
        }
        // An entity that acts and leaves in one tick is still in `before`.
        if let Some(a) = frame.acts.iter().find(|a| !before(&a.id) && !entering(&a.id)) {
            return Err(ViewError::ActUnseen { tick, id: a.id });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use purview::scene::movement::Vector;
    use purview::wire::client::frame::Acted;
    use purview::wire::{Entered, EntityTrajectory, Form, Moved};

    use super::*;

    fn frame(tick: u64) -> Frame {
        Frame::empty(Tick(tick), Seq(0), Epoch(1))
    }

    fn enter(id: u64) -> Entered {
        let appearance = vec![7].into();
        Entered {
            id: EntityId(id),
            kind: Kind::PLAYER,
            x: 1,
            y: 2,
            z: 3,
            appearance,
            trajectory: None,
        }
    }

    fn moved(id: u64) -> Moved {
        Moved { id: EntityId(id), x: 4, y: 5, z: 6, vx: 0, vz: 0 }
    }

    fn seeing(ids: &[u64]) -> View {
        let mut view = View::default();
        let enters = ids.iter().map(|&id| enter(id)).collect();
        view.apply(&Frame { enters, ..frame(1) }).unwrap();
        view
    }

    #[test]
    fn enters_moves_and_leaves_are_followed() {
        let mut view = seeing(&[1, 2]);
        view.apply(&Frame {
            leaves: vec![EntityId(1)],
            moves: vec![moved(2)],
            ack: Seq(9),
            epoch: Epoch(3),
            ..frame(2)
        })
        .unwrap();
        let pos = Pos { x: 4, y: 5, z: 6 };
        let appearance = Bytes::from_static(&[7]);
        let seen = Seen { kind: Kind::PLAYER, pos, trajectory: None, appearance };
        assert_eq!(view.iter().collect::<Vec<_>>(), [(EntityId(2), &seen)]);
        assert_eq!((view.tick(), view.ack(), view.epoch()), (Some(Tick(2)), Seq(9), Epoch(3)));
    }

    #[test]
    fn trajectories_go_on_until_a_position_or_another_trajectory_arrives() {
        let mut view = View { tick_ms: 100, tile_cm: 100, ..seeing(&[1, 2]) };
        let going = |vx_mm_s, start_ms| Going {
            start_ms,
            lasts_ms: Some(400),
            form: Form::Vector(Vector { vx_mm_s, ..Vector::stand(Pos::ground(0, 0)) }),
        };
        let entity_trajectory = |id, trajectory| EntityTrajectory { id: EntityId(id), trajectory };
        let trajectories = vec![entity_trajectory(1, going(5_000, 200))];
        view.apply(&Frame { trajectories, ..frame(2) }).unwrap();
        let at = |view: &View, id, ms| view.position(EntityId(id), ServerMs(ms)).unwrap().x;
        assert_eq!((at(&view, 1, 200), at(&view, 1, 500), at(&view, 1, 9_000)), (0, 150, 200));
        assert_eq!(at(&view, 2, 500), 1);
        let trajectories = vec![entity_trajectory(1, going(-5_000, 400))];
        view.apply(&Frame { trajectories, ..frame(4) }).unwrap();
        let shown = |view: &View, ms| view.get(EntityId(1)).unwrap().shown(ServerMs(ms)).x;
        assert_eq!((at(&view, 1, 500), shown(&view, 400), shown(&view, 500)), (-50, 100, 0));
        view.apply(&Frame { moves: vec![moved(1)], ..frame(5) }).unwrap();
        assert_eq!(at(&view, 1, 9_000), 4);
        let unseen = vec![entity_trajectory(9, going(1, 1))];
        let (tick, id) = (Tick(6), EntityId(9));
        let got = view.apply(&Frame { trajectories: unseen, ..frame(6) });
        assert_eq!(got, Err(ViewError::MoveUnseen { tick, id }));
    }

    #[test]
    fn a_position_with_a_velocity_goes_on_until_the_next_position() {
        let mut view = View { tick_ms: 100, ..seeing(&[1]) };
        let moves = vec![Moved { vx: 600, vz: -100, ..moved(1) }];
        view.apply(&Frame { moves, ..frame(2) }).unwrap();
        let at = |view: &View, ms| view.position(EntityId(1), ServerMs(ms)).unwrap();
        assert_eq!(at(&view, 200), Pos { x: 4, y: 5, z: 6 });
        assert_eq!(at(&view, 1_200), Pos { x: 604, y: 5, z: -94 });
        view.apply(&Frame { moves: vec![moved(1)], ..frame(12) }).unwrap();
        assert_eq!(at(&view, 9_000), Pos { x: 4, y: 5, z: 6 });
    }

    #[test]
    fn a_resync_forgets_all_other_entities() {
        let mut view = seeing(&[1, 2]);
        view.apply(&Frame { resync: true, enters: vec![enter(2), enter(3)], ..frame(2) }).unwrap();
        let mut ids: Vec<_> = view.iter().map(|(id, _)| id.0).collect();
        ids.sort();
        assert_eq!(ids, [2, 3]);
    }

    #[test]
    fn a_contradiction_is_named_and_changes_nothing() {
        let (tick, id) = (Tick(2), EntityId(1));
        let unseen = EntityId(5);
        let acted = Acted { id: unseen, payload: vec![].into() };
        let twice = vec![EntityId(1), EntityId(1)];
        for (bad, want) in [
            (Frame { enters: vec![enter(1)], ..frame(2) }, ViewError::EnterTwice { tick, id }),
            (
                Frame { enters: vec![enter(5), enter(5)], ..frame(2) },
                ViewError::EnterTwice { tick, id: unseen },
            ),
            (
                Frame { leaves: vec![unseen], ..frame(2) },
                ViewError::LeaveUnseen { tick, id: unseen },
            ),
            (Frame { leaves: twice, ..frame(2) }, ViewError::LeaveUnseen { tick, id }),
            (
                Frame { moves: vec![moved(5)], ..frame(2) },
                ViewError::MoveUnseen { tick, id: unseen },
            ),
            (
                Frame { leaves: vec![id], moves: vec![moved(1)], ..frame(2) },
                ViewError::MoveUnseen { tick, id },
            ),
            (
                Frame { resync: true, moves: vec![moved(1)], ..frame(2) },
                ViewError::MoveUnseen { tick, id },
            ),
            (Frame { acts: vec![acted], ..frame(2) }, ViewError::ActUnseen { tick, id: unseen }),
            (frame(1), ViewError::TickBack { tick: Tick(1), last: Tick(1) }),
        ] {
            let mut view = seeing(&[1]);
            assert_eq!(view.apply(&bad), Err(want));
            assert_eq!((view.len(), view.tick()), (1, Some(Tick(1))));
        }
    }

    #[test]
    fn an_action_and_a_leave_in_one_tick_are_accepted() {
        let mut view = seeing(&[1]);
        let acts = vec![Acted { id: EntityId(1), payload: vec![1].into() }];
        view.apply(&Frame { leaves: vec![EntityId(1)], acts, ..frame(2) }).unwrap();
        assert!(view.is_empty());
    }
}
