//! A client that applies the frames of its session, and fails on contradictions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use purview::scene::messages::{
    Crowd, FrameBatch, InputRefused, Moving, Order, SessionFrame, TrajectoryUpdate,
};
use purview::scene::movement::{Own, ServerMs, Trajectory};
use purview::scene::player::Player;
use purview::scene::{EntityHandle, EntityId, Epoch, Pos, RegionId, Seq, Tick};
use purview::wire::{self, Moved};

use super::told::Told;

/// The state of a client, as told by its frames.
#[derive(Debug, Default)]
pub struct Client {
    pub entity: EntityId,
    pub region: RegionId,
    pub epoch: Epoch,
    pub seq: Seq,
    pub ack: Seq,
    pub unacked: VecDeque<(Seq, Order)>,
    /// The entities in view: position, and the tick of the last update.
    pub shown: BTreeMap<EntityId, (Pos, Tick)>,
    /// The players in view, as decoded from the bytes of its frames, if frames are encoded.
    pub decoded: BTreeSet<EntityId>,
    /// The same as of each tick, if it is recorded.
    pub history: BTreeMap<Tick, BTreeSet<EntityId>>,
    pub frames: Vec<Tick>,
    pub acts: Vec<(Tick, EntityId, Bytes)>,
    /// Of which inputs it was told that a dead region had applied them.
    pub unconfirmed: Vec<(Seq, Seq)>,
    /// The trajectories of entities in view; none for an entity whose last update was a position.
    pub trajectories: BTreeMap<EntityId, Trajectory>,
    /// Its own movement, as told last.
    pub own: Option<Own>,
    /// Its refused inputs.
    pub refusals: Vec<InputRefused>,
    /// Number of trajectories of entities that were in view already.
    pub turns: u64,
    /// How many of these follow from the trajectories before.
    pub followed: usize,
    /// Number of moves and trajectories.
    pub updates: u64,
    /// The crowds that it was told of.
    pub crowds: Vec<(Tick, Crowd)>,
    /// Bytes of its frames, if frames are encoded.
    pub sizes: Vec<(Tick, usize)>,
    /// The facings and properties that it was told.
    pub told: Told,
    pub entered: Vec<(Tick, EntityId)>,
    pub left: Vec<(Tick, EntityId)>,
    pub refused: usize,
    /// Its session, in worlds with sessions.
    pub player: Option<Player>,
    /// Under which its player's region finds it, as the last frame says.
    pub handle: EntityHandle,
    /// Whether the logic has ended its session.
    pub kicked: bool,
    /// Number of resyncs.
    pub resyncs: u64,
    /// Number of resumes; the next field: whether it is about to resume.
    pub returns: u64,
    pub returning: bool,
    /// Its connection is broken, which its session does not know yet.
    pub deaf: bool,
    /// Its frames are lost on their way to its session.
    pub loses_frames: bool,
    /// It was told that its player is gone.
    pub forgotten: bool,
    /// It wants to leave, and repeats so until it is told that it has left.
    pub leaving: bool,
    pub gone: bool,
}

impl Client {
    /// Applies its part of a batch. Tiles are so large.
    pub fn apply(&mut self, batch: &FrameBatch, frame: &SessionFrame, tile_cm: i32) {
        let me = self.entity;
        let tick = batch.tick;
        assert!(self.frames.last().is_none_or(|t| *t < tick), "{me}: two frames of {tick}");
        let (ack, before) = (frame.ack, self.ack);
        assert!(ack >= before, "{me}: acknowledged {ack} after {before}");
        assert!(frame.epoch >= self.epoch || self.epoch == Epoch(0));
        self.frames.push(tick);
        (self.ack, self.handle) = (frame.ack, frame.handle);
        self.unacked.retain(|(seq, _)| *seq > frame.ack);
        if frame.resync {
            self.resyncs += 1;
            self.trajectories.clear();
            self.shown.clear();
        }
        for id in batch.leaves_of(frame) {
            assert!(self.shown.remove(id).is_some(), "{me}: {id} left but was not there");
            self.trajectories.remove(id);
            self.left.push((tick, *id));
        }
        self.told.frame(me, batch, frame);
        let [enters, moves, trajectories, _, acts, ..] = batch.refs_of(frame);
        for e in enters.iter().map(|i| &batch.entering[*i as usize]) {
            let twice = self.shown.insert(e.id, (e.pos, tick)).is_some();
            assert!(!twice, "{me}: {} entered twice", e.id);
            assert_ne!(e.id, me, "{me} is shown itself");
            // What logic creates has an id beyond a million and no appearance.
            let look = format!("look {}", e.id);
            let look = (e.id.0 < 1_000_000).then_some(look.as_bytes());
            assert_eq!(e.properties.appearance(), look);
            self.entered.push((tick, e.id));
            self.trajectories.extend(e.trajectory.map(|trajectory| (e.id, trajectory)));
        }
        for moving in moves.iter().map(|i| &batch.moving[*i as usize]) {
            let Moving { id, pos, .. } = *moving;
            let place = self.shown.get_mut(&id);
            *place.unwrap_or_else(|| panic!("{me}: {id} moved but is not shown")) = (pos, tick);
            self.trajectories.remove(&id);
            let goes = Moved::from(moving).trajectory(ServerMs(tick.0 * 100));
            self.trajectories.extend(goes.map(|trajectory| (id, trajectory)));
            self.updates += 1;
        }
        for update in trajectories.iter().map(|i| batch.trajectories[*i as usize]) {
            self.turn(tick, &update, tile_cm);
        }
        self.crowds.extend(batch.crowd_of(frame).map(|crowd| (tick, crowd.clone())));
        self.own = batch.own_of(frame).copied().or(self.own);
        self.refusals.extend(batch.refused_of(frame));
        for (id, payload, _) in acts.iter().map(|i| &batch.acting[*i as usize]) {
            assert!(self.shown.contains_key(id), "{me}: {id} acted but is not shown");
            self.acts.push((tick, *id, payload.clone()));
        }
        self.refused += frame.refused as usize;
    }

    /// An entity in view goes another way.
    fn turn(&mut self, tick: Tick, update: &TrajectoryUpdate, tile_cm: i32) {
        let TrajectoryUpdate { id, trajectory, .. } = *update;
        let me = self.entity;
        let place = self.shown.get_mut(&id);
        let place = place.unwrap_or_else(|| panic!("{me}: {id} turned but is not shown"));
        let known = self.trajectories.get(&id);
        let before = |at| known.map_or(place.0, |known| known.position(at));
        let now = ServerMs(tick.0 * 100);
        let told = wire::TrajectoryUpdate::from(update);
        self.followed += usize::from(update.following.is_some());
        assert_eq!(
            told.trajectory(tile_cm, now, before),
            trajectory,
            "{me} in tick {tick}: {id} does not go on as the client was told"
        );
        *place = (trajectory.position(now), tick);
        self.trajectories.insert(id, trajectory);
        self.turns += 1;
        self.updates += 1;
    }
}
