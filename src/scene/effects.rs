//! What goes into a region and what comes out of it: closed sets, so that the one place that
//! delivers them is an exhaustive `match`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::border::{BorderBatch, Claim, Claims, Handoff, Recovered, SettleBatch};
use super::frames::FrameBatch;
use super::movement::{Flags, GrantId, Move, MoveOrder, Own};
use super::region::MapNews;
use super::terrain::DoorOrder;
use super::views::ViewMsg;
use super::{EntityId, Epoch, Kind, Plane, Pos, RangeSet, RegionId, SceneId, Seq, SessionId, Tick};

/// Where a jump goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    /// The scene.
    pub scene: SceneId,
    /// The region of that scene that owns the place.
    pub region: RegionId,
    /// The plane.
    pub plane: Plane,
    /// The place.
    pub pos: Pos,
}

/// What a player, or the server's logic on behalf of any entity, orders it to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Be elsewhere: for a client where places are trusted, for the server's logic anywhere.
    Move(Pos),
    /// A word about its movement, where moves are judged.
    Walk(MoveOrder),
    /// Teleport.
    Jump(Destination),
    /// Do something that all who see it are told.
    Act(Deed),
}

/// What the server's logic makes of an entity's movement, where moves are judged. An entity's client is
/// told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Motion {
    /// It walks, as far as its way is clear and for at most a minute, whatever its client wishes: a
    /// beast's walk, a knock-back. It begins where the entity is.
    Walk(Move),
    /// It stands where it is.
    Stop,
    /// What keeps it from moving; more than before stops it.
    Flags(Flags),
    /// Another top speed of its own, centimetres per second.
    Speed(u32),
    /// A speed beyond its own: a mount, a dash.
    Grant {
        /// Its name, above 0, by which it is taken back; a grant of that name is replaced.
        id: GrantId,
        /// Centimetres per second.
        speed_cm_s: u32,
        /// For how many milliseconds of walking; `None`: until it is taken back.
        lasts_ms: Option<u32>,
    },
    /// A grant without an end is taken back.
    Revoke(GrantId),
}

/// What somebody does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deed {
    /// What it is; opaque, at most 1,024 bytes.
    pub payload: Bytes,
    /// The player that it is aimed at: if that one is in range, the two fight for a while, which is
    /// a bond (see [`super::spec::BondSpec`]).
    pub aim: Option<EntityId>,
}

impl Deed {
    /// Something that is aimed at nobody.
    pub fn new(payload: impl Into<Bytes>) -> Deed {
        Deed { payload: payload.into(), aim: None }
    }
}

/// A shared group id that makes two players special to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Bond {
    /// The kind's place in the scene's order ([`super::spec::BondSpec::class_of`]): 0 is the
    /// strongest. Below 255.
    pub class: u8,
    /// The group.
    pub group: u64,
}

/// Most bonds that one player has.
pub const MAX_BONDS: usize = 8;

/// A new entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    /// Its name; not in use.
    pub id: EntityId,
    /// Its kind, one of the scene's.
    pub kind: Kind,
    /// Its plane.
    pub plane: Plane,
    /// Its place, on the region's ground.
    pub pos: Pos,
    /// Its range (Patches).
    pub range: RangeSet,
    /// Its opaque appearance.
    pub look: Bytes,
    /// The session of the player's client; `None` for what no client steers.
    pub session: Option<SessionId>,
    /// Its bonds, at most [`MAX_BONDS`].
    pub bonds: Vec<Bond>,
}

/// What a session knows of its player, for a region that may know less since it goes on from a
/// checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presented {
    /// The player.
    pub id: EntityId,
    /// Its session.
    pub session: SessionId,
    /// The region to which it is presented.
    pub to: RegionId,
    /// The highest epoch under which the session knows it.
    pub epoch: Epoch,
    /// Its last input that is known to have been applied.
    pub acked: Seq,
    /// Its plane.
    pub plane: Plane,
    /// Its place as of `placed_by`; where moves are judged `own` counts.
    pub pos: Pos,
    /// The last input that is known to have changed its place, or to have been applied before that was
    /// told.
    pub placed_by: Seq,
    /// Its movement as it was told last, and in which tick.
    pub own: Option<(Tick, Box<Own>)>,
    /// The last tick that the session has heard of.
    pub tick: Tick,
    /// Its range.
    pub range: RangeSet,
    /// Its opaque appearance.
    pub look: Bytes,
    /// A jump to another scene that was applied and from which it has not arrived.
    pub leap: Option<Destination>,
    /// Since when its session has it; of two that present it the later one counts. See [`Resume::since_ms`].
    #[serde(default)]
    pub since_ms: u64,
}

/// [`Resume::since_ms`] of the session by which a player has joined.
pub const FIRST_SESSION: u64 = 1;

/// A player's client has come back with another session after its connection broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The player.
    pub id: EntityId,
    /// The session that is its own from now on.
    pub session: SessionId,
    /// The last input that its client knows to have been applied.
    pub acked: Seq,
    /// The region that the session has asked, which may pass the question on.
    pub asked: RegionId,
    /// When the client came back, milliseconds by the server's clock. The region counts from there, or from one
    /// above the session before: so a player's sessions have an order, which no checkpoint undoes. The one by
    /// which it joined has [`FIRST_SESSION`]; 0: an older release does not say.
    #[serde(default)]
    pub since_ms: u64,
}

/// What a region is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Input {
    /// Add an entity. Takes effect at the end of the tick's moves.
    Enter(Box<Spawn>),
    /// Remove an entity.
    Leave(EntityId),
    /// A numbered input of a player's client. Applied only when it is the last one plus one; one
    /// that is older is dropped, one that is newer waits to be sent again.
    Client {
        /// The player's entity.
        id: EntityId,
        /// The input's number.
        seq: Seq,
        /// What to do.
        order: Order,
    },
    /// An order of the server's logic.
    Logic {
        /// The entity.
        id: EntityId,
        /// What to do.
        order: Order,
    },
    /// The server's logic on an entity's movement.
    Motion {
        /// The entity.
        id: EntityId,
        /// What becomes of it.
        motion: Motion,
    },
    /// Set a player's bonds (at most [`MAX_BONDS`]; the rest is ignored).
    Bonds {
        /// The player.
        id: EntityId,
        /// All its bonds.
        bonds: Vec<Bond>,
    },
    /// The client reads too slowly: send it no frames until [`Input::Release`]. What changes
    /// meanwhile is merged to the latest state.
    Hold(EntityId),
    /// The client has caught up.
    Release(EntityId),
    /// Frames were lost: the next one tells the client everything anew.
    Resync(EntityId),
    /// A neighbour's ghosts of a tick.
    Border(Box<BorderBatch>),
    /// A neighbour missed a batch of ours or may have: send it everything anew.
    BorderLost(RegionId),
    /// A neighbour's part of a round of settling a tick.
    Settle(Box<SettleBatch>),
    /// A message of the view negotiation from a player of another region, outside of settling.
    View(ViewMsg),
    /// An entity comes to live here.
    Handoff(Box<Handoff>),
    /// A session presents its player: its region goes on from a checkpoint. The shell puts the session's
    /// address beside it.
    Present(Box<Presented>),
    /// A player's session has ended without its word. It stays for so long, and others notice nothing; then it
    /// leaves.
    Absent {
        /// The player.
        id: EntityId,
        /// The session; once the player has another one nothing happens.
        session: SessionId,
        /// Milliseconds; 0: it leaves now.
        ms: u32,
    },
    /// A player's client has come back. The shell puts the session's address beside it.
    Resume(Resume),
    /// A session has heard that its player lives elsewhere, under a higher epoch than that under which it has presented it
    /// here: two regions between which it had walked have died, and cannot tell each other.
    Elsewhere(Claim),
    /// A region goes on from a checkpoint. Every region is told.
    Recovered(Box<Recovered>),
    /// Where entities live that this region may believe to have.
    Claims(Box<Claims>),
    /// Another region's word in a change of the region map.
    Map(Box<MapNews>),
    /// Open or close a door of the scene's map in one plane. Every region of the scene is told.
    Door(DoorOrder),
}

impl Input {
    /// The player that a session presents.
    pub fn presented(&self) -> Option<EntityId> {
        match self {
            Input::Present(presented) => Some(presented.id),
            _ => None,
        }
    }

    /// The entity that an input is for, where it is for one that may have moved on.
    pub fn entity(&self) -> Option<EntityId> {
        match self {
            Input::Leave(id) | Input::Hold(id) | Input::Release(id) | Input::Resync(id) => {
                Some(*id)
            }
            Input::Client { id, .. }
            | Input::Logic { id, .. }
            | Input::Motion { id, .. }
            | Input::Bonds { id, .. }
            | Input::Absent { id, .. }
            | Input::Resume(Resume { id, .. }) => Some(*id),
            Input::Enter(_)
            | Input::Border(_)
            | Input::BorderLost(_)
            | Input::Settle(_)
            | Input::View(_)
            | Input::Handoff(_)
            | Input::Present(_)
            | Input::Elsewhere(_)
            | Input::Recovered(_)
            | Input::Claims(_)
            | Input::Map(_)
            | Input::Door(_) => None,
        }
    }
}

/// What a region wants done.
#[derive(Debug)]
pub enum Effect {
    /// Frames for clients.
    Frames(FrameBatch),
    /// Ghosts for a neighbour: replaceable, the next batch after a lost one is a full one.
    Border(RegionId, Box<BorderBatch>),
    /// This region's part of a round of settling a tick; must arrive.
    Settle(RegionId, Box<SettleBatch>),
    /// For a player of another region; must arrive.
    View(RegionId, ViewMsg),
    /// An entity moves to another region; must arrive.
    Handoff(RegionId, Box<Handoff>),
    /// An input for an entity that has moved to another region; must arrive.
    Forward(RegionId, Box<Input>),
    /// News for a session.
    Notice(SessionId, Notice),
}

/// A player whose client has come back, as its new session has to know it. As [`Notice::Route`], with what
/// the session would know from the join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// The scene.
    pub scene: SceneId,
    /// The owner.
    pub region: RegionId,
    /// The entity's epoch.
    pub epoch: Epoch,
    /// The last input that was applied.
    pub last_applied: Seq,
    /// The tick from which this holds.
    pub tick: Tick,
    /// Its plane.
    pub plane: Plane,
    /// Its place.
    pub pos: Pos,
    /// Its movement; `None` where places are trusted.
    pub own: Option<Box<Own>>,
    /// Its range.
    pub range: RangeSet,
    /// Its opaque appearance.
    pub look: Bytes,
    /// Since when the session has it, as the region counts: see [`Resume::since_ms`].
    #[serde(default)]
    pub since_ms: u64,
}

impl Resumed {
    /// The same for a session that knows the rest already.
    pub fn as_route(self) -> Notice {
        let Resumed { scene, region, epoch, last_applied, tick, plane, pos, own, .. } = self;
        let arrived = false;
        Notice::Route { scene, region, epoch, last_applied, tick, plane, pos, own, arrived }
    }
}

/// What a session is told of its entity, beside frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// The entity lives in `region` from now on; send what was not yet applied there.
    Route {
        /// The scene.
        scene: SceneId,
        /// The owner.
        region: RegionId,
        /// The entity's epoch; a lower one is old news.
        epoch: Epoch,
        /// The last input that was applied.
        last_applied: Seq,
        /// The tick from which this holds.
        tick: Tick,
        /// Its plane.
        plane: Plane,
        /// Its place.
        pos: Pos,
        /// Its movement; `None` where places are trusted.
        own: Option<Box<Own>>,
        /// Whether it came here by entering or by a jump (and not by walking over a border).
        arrived: bool,
    },
    /// The entity is gone; from `tick` on nobody is shown it.
    Left {
        /// The first tick without it.
        tick: Tick,
        /// The entity's epoch; a lower one than that of its route is old news.
        epoch: Epoch,
    },
    /// The region goes on from a checkpoint, in which the entity lives under this epoch: present it.
    Present {
        /// The region.
        region: RegionId,
        /// The region's epoch.
        owner: Epoch,
        /// The entity's epoch there.
        epoch: Epoch,
    },
    /// The player of a client that came back: it lives here, and its session is this one from now on.
    Resumed(Box<Resumed>),
    /// It is not known here or where the question was passed on to.
    Nowhere {
        /// The region that was asked.
        asked: RegionId,
    },
    /// The player has another session from now on: its client has come back by another connection.
    Replaced,
    /// The entity could not be added.
    Refused(super::frames::Refusal),
}
