//! What regions tell each other: ghosts as levels, entities that move over, and steps of a layout
//! change.
//!
//! A batch of ghosts may be lost or repeated: the next full one heals the receiver. A [`Handoff`] must
//! arrive, once.

use serde::{Deserialize, Serialize};

use super::frame::InputRefused;
use super::heard::Heard;
use super::logic::{EnterCause, WatchState};
use super::logic_message::LogicMessage;
use super::order::{EntityAction, Spawn};
use crate::scene::contents::SavedContents;
use crate::scene::movement::{Mover, Trajectory};
use crate::scene::pace::Pace;
use crate::scene::properties::Properties;
use crate::scene::terrain::SavedDoors;
use crate::scene::views::{GroupRelation, PeerState, Ties, ViewMsg};
use crate::scene::{
    EntityId, Epoch, Facing, Kind, Plane, Pos, RegionId, SceneId, Seq, Tick, ViewCap,
};

/// Everything that a region knows of an entity which lives in another one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GhostState {
    /// The entity.
    pub id: EntityId,
    /// The entity's epoch: a message with a lower epoch than the known one is late.
    pub epoch: Epoch,
    /// Its kind.
    pub kind: Kind,
    /// Its plane.
    pub plane: Plane,
    /// Where it is.
    pub pos: Pos,
    /// Its trajectory, from which the receiver computes its place in every tick. `None`: it stands at `pos`.
    pub trajectory: Option<Trajectory>,
    /// The way it faces.
    pub facing: Facing,
    /// All of its properties that any viewer may see.
    pub properties: Properties,
    /// Its bonds and fights.
    pub ties: Ties,
    /// Rank of the worst entry of its full view list; `u64::MAX` while it has room.
    pub threshold: u64,
    /// Most players in its view list.
    pub cap: ViewCap,
}

/// A ghost's changing part, as levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GhostChange {
    /// The entity.
    pub id: EntityId,
    /// The entity's epoch.
    pub epoch: Epoch,
    /// Where it is.
    pub pos: Pos,
    /// The way it faces.
    pub facing: Facing,
    /// As [`GhostState::trajectory`].
    pub trajectory: Option<Trajectory>,
    /// As [`GhostState::threshold`].
    pub threshold: u64,
}

/// Properties of a ghost that changed, as levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GhostLevels {
    /// The entity.
    pub id: EntityId,
    /// The entity's epoch.
    pub epoch: Epoch,
    /// Those that changed.
    pub properties: Properties,
}

/// Links of a player that the sender owns and mirrors, as they stood before the tick. With these a region predicts the
/// lists of ghosts: a pair that is linked counts as nearer, by the margin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GhostLinks {
    /// The player.
    pub id: EntityId,
    /// Whether these are all of its links. Else it is what has changed since they were told.
    pub all: bool,
    /// Players that it is linked with.
    pub linked: Vec<EntityId>,
    /// Players that it is linked with no more.
    pub ended: Vec<EntityId>,
}

/// The sender no longer mirrors an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GhostLeave {
    /// The entity.
    pub id: EntityId,
    /// The entity's epoch under the sender.
    pub epoch: Epoch,
    /// The region that owns it from now on and mirrors it if it is still near; `None` when it is
    /// gone or too far away.
    pub next: Option<RegionId>,
}

/// What a region mirrors to one neighbour in a tick. One per neighbour and tick, even when empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BorderBatch {
    /// The sender.
    pub from: RegionId,
    /// The sender's region epoch; a batch with a lower epoch than the known one is late.
    pub epoch: Epoch,
    /// The sender's lineage: since this region epoch nothing of the region was lost. A lineage above the
    /// known one says that the region has died since, and was recovered.
    pub lineage: Epoch,
    /// The tick whose state this is.
    pub tick: Tick,
    /// The tick of the batch before this one. If the receiver's last batch is of another tick, a batch was
    /// lost, and only a full batch helps.
    pub prev: Tick,
    /// Whether `enters` is everything that the sender mirrors.
    pub full: bool,
    /// New ghosts.
    pub enters: Vec<GhostState>,
    /// Ghosts that changed.
    pub changes: Vec<GhostChange>,
    /// Ghosts whose properties changed.
    pub levels: Vec<GhostLevels>,
    /// Links of mirrored players: all of those that are new, and what has changed of the others. Links with players of
    /// the receiver are left out.
    pub links: Vec<GhostLinks>,
    /// Ghosts that are no longer mirrored.
    pub leaves: Vec<GhostLeave>,
    /// Actions of mirrored entities in this tick.
    pub acts: Vec<(EntityId, EntityAction)>,
    /// Actions in the ticks before, oldest first: of a full batch all that are remembered, else those of entities
    /// that have come to the sender since its last batch. The receiver takes those that it has missed.
    #[serde(default)]
    pub earlier: Vec<PastAction>,
    /// How groups stand to each other: of a full batch all that the sender knows, else what it has just learned from
    /// another region.
    #[serde(default)]
    pub relations: Vec<GroupRelation>,
}

/// An action that the receiver may have missed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastAction {
    /// The tick in which the entity acted.
    pub tick: Tick,
    /// The entity, which may live elsewhere by now.
    pub id: EntityId,
    /// The action.
    pub content: EntityAction,
    /// Regions that were to mirror the entity when it acted. In a [`BorderBatch`] there are none.
    #[serde(default)]
    pub to: Vec<RegionId>,
}

impl PastAction {
    /// The same for one of the neighbours that were to be told.
    pub fn for_neighbour(&self) -> PastAction {
        PastAction { to: Vec::new(), ..self.clone() }
    }
}

impl BorderBatch {
    /// A batch in which nothing has changed: of a region with its epoch and lineage, of a tick after
    /// another one.
    pub fn empty(
        (from, epoch, lineage): (RegionId, Epoch, Epoch),
        (tick, prev): (Tick, Tick),
    ) -> BorderBatch {
        BorderBatch { from, epoch, lineage, tick, prev, ..BorderBatch::default() }
    }

    /// Takes the actions out, as a batch of the same tick that has nothing else.
    pub(in crate::scene) fn take_acts(&mut self) -> BorderBatch {
        let acts = std::mem::take(&mut self.acts);
        let BorderBatch { from, epoch, lineage, tick, prev, .. } = *self;
        BorderBatch { acts, ..BorderBatch::empty((from, epoch, lineage), (tick, prev)) }
    }
}

/// What the players of a region say to the players of one neighbour in a border round of a tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BorderRoundBatch {
    /// The sender.
    pub from: RegionId,
    /// The sender's region epoch.
    pub epoch: Epoch,
    /// The tick to which the round belongs.
    pub tick: Tick,
    /// The round, from 0.
    pub round: u32,
    /// The sender makes its frames of the tick now: it takes no part in later rounds.
    pub done: bool,
    /// What they say.
    pub view_messages: Vec<ViewMsg>,
    /// Ranks that a pair must beat to interest them, where these have changed; as
    /// [`GhostState::threshold`].
    pub thresholds: Vec<(EntityId, u64)>,
    /// Whether any of these is higher than before: a player has room for others.
    pub recovers: bool,
}

/// An entity that a player sees and that is no player.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenState {
    /// The entity.
    pub id: EntityId,
    /// The tick of the last update that the client was sent.
    pub sent: Tick,
    /// Which of its properties the client misses: see [`PeerState::withheld`].
    pub withheld: u8,
}

/// An entity on its way to another region: its whole state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handoff {
    /// The region that it leaves.
    pub from: RegionId,
    /// That region's epoch.
    pub from_epoch: Epoch,
    /// What it is and where. Its bonds of kinds that the sender's scene does not have; all, where it goes to
    /// another scene.
    pub state: Spawn,
    /// Its bonds and fights.
    pub ties: Ties,
    /// Its epoch under the new owner.
    pub epoch: Epoch,
    /// The last input that was applied.
    pub last_applied: Seq,
    /// The last tick in which it lived at the sender.
    pub tick: Tick,
    /// Its registers of the view negotiation.
    pub peers: Vec<PeerState>,
    /// The counter that numbers its requests.
    pub view_counter: u32,
    /// What else it sees.
    pub seen: Vec<SeenState>,
    /// As of which tick its client knows the properties of what it sees, except those withheld.
    pub properties_told: Tick,
    /// Entities that its client was shown and must still be told have left.
    pub gone: Vec<EntityId>,
    /// Refused inputs that its client must still be told of.
    pub refused: Vec<InputRefused>,
    /// Messages that its client must still be told.
    pub told: Vec<LogicMessage>,
    /// The last messages for groups of their senders: it has received these and all before, as far as
    /// they were for it.
    pub heard: Heard,
    /// Messages for groups that were sent before this time are not for it, milliseconds of the cluster's
    /// clock: it has joined since, or its region has recovered; `u64::MAX`: those before it arrives.
    pub heard_since_ms: u64,
    /// The account of its movement, where moves are judged.
    pub mover: Option<Box<Mover>>,
    /// What it has in its radius, if it watches.
    pub watch: Option<Box<WatchState>>,
    /// Whether its client is held.
    pub held: bool,
    /// Whether its client must be told everything anew.
    pub resync: bool,
    /// Whether it comes by a teleport and not by walking, or its session has not been told of a
    /// teleport before.
    pub teleported: bool,
    /// Its client is gone; the tick in which its grace period ends.
    #[serde(default)]
    pub disconnected_until: Option<Tick>,
    /// One of the scene's contents that was removed: it is nowhere until this tick, in which it comes back.
    #[serde(default)]
    pub asleep_until: Option<Tick>,
    /// The sender's scene; `None`: an older release did not say.
    #[serde(default)]
    pub scene: Option<SceneId>,
    /// The layout has changed, and the entity stands on another region's ground: it continues there in the
    /// first tick of the new layout.
    #[serde(default)]
    pub by_map: bool,
    /// Since when its session has it: see [`Resume::since_ms`](super::session::Resume::since_ms).
    #[serde(default)]
    pub since_ms: u64,
    /// What its client has made it do of late.
    #[serde(default)]
    pub pace: Pace,
    /// Its own actions of late, which some of its viewers may have missed.
    #[serde(default)]
    pub acts: Vec<PastAction>,
    /// Entities in its view of whose actions its client may miss some.
    #[serde(default)]
    pub acts_due: Vec<ActionsDue>,
    /// Inputs after the first number and up to the second were applied by a region that has died since. Of actions
    /// among them not all viewers may have been told.
    #[serde(default)]
    pub unconfirmed: Option<(Seq, Seq)>,
    /// Without its client the entity stays at least until this tick, by the scene's linger time or by a hold of the
    /// game's logic.
    #[serde(default)]
    pub stays_until: Tick,
}

/// A player's client may miss actions of an entity: their owner was late where the player lived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionsDue {
    /// The entity.
    pub of: EntityId,
    /// Those after this tick.
    pub after: Tick,
    /// The tick in which the player left the region where they were late; this is forgotten some time later.
    pub came: Tick,
    /// The first frame that has told what was known; 0: none has. The client may not have received it.
    pub served: Tick,
}

impl Handoff {
    /// The tick in which a player without its client leaves; `None`: its client is there.
    pub fn leaves_at(&self) -> Option<Tick> {
        self.disconnected_until.map(|until| until.max(self.stays_until))
    }

    /// Why the entity lives with the receiver.
    pub fn entered_by(&self) -> EnterCause {
        match self.teleported {
            true => EnterCause::Teleported(self.from, self.tick),
            false => EnterCause::HandedOff(self.from, self.tick),
        }
    }

    /// The same without the entity's relations to others, and without what its client was told.
    pub fn alone(&self) -> Handoff {
        Handoff {
            peers: Vec::new(),
            seen: Vec::new(),
            properties_told: Tick(0),
            gone: Vec::new(),
            refused: Vec::new(),
            told: Vec::new(),
            heard: Heard::default(),
            heard_since_ms: u64::MAX,
            acts_due: Vec::new(),
            ..self.clone()
        }
    }
}

/// A region has died and continues from a checkpoint: what the checkpoint holds, so that other regions
/// report what they know better.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// The region.
    pub region: RegionId,
    /// Its epoch from now on; messages of an older epoch are late.
    pub epoch: Epoch,
    /// The version of its map. A region that is still changing over to that map answers once it has changed over.
    pub map: u64,
    /// The entities that live there by the checkpoint, and their epochs.
    pub holds: Vec<(EntityId, Epoch)>,
}

/// Where an entity lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The entity.
    pub id: EntityId,
    /// Its epoch; the highest one counts.
    pub epoch: Epoch,
    /// The region; the entity is gone if that region does not have it.
    pub region: RegionId,
}

/// What a region knows of entities that another region may believe to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The sender.
    pub from: RegionId,
    /// The epoch of the recovered region that asked; `None`: no region has asked.
    pub answer: Option<Epoch>,
    /// The sender's last closed tick.
    pub tick: Tick,
    /// Entities that live elsewhere.
    pub lives: Vec<Claim>,
    /// Entities that were recently handed to the recovered region, as they were then, without their
    /// relations to others.
    pub handed: Vec<Handoff>,
}

/// A step of a layout change that regions tell each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// The sender has sent everything that belongs to the old layout.
    Ended,
    /// The sender has handed over all entities on ground that is the receiver's by the new layout.
    Ceded {
        /// The doors as the sender knows them, for a region that is new.
        doors: Option<SavedDoors>,
        /// How groups stand to each other, for a region that is new.
        relations: Vec<GroupRelation>,
        /// What the sender knows of the scene's contents, if there are any.
        contents: Option<Box<SavedContents>>,
    },
}

/// A region's step in a layout change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapNews {
    /// The sender.
    pub from: RegionId,
    /// The version of the new layout.
    pub version: u64,
    /// The step.
    pub change: Change,
}
