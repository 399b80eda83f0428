//! What a region and a player's session tell each other about the player, beside numbered inputs and
//! frames.
//!
//! The session machine (`scene::player`) and the region use these types. Each message says under which
//! epoch it holds, so that an old one never changes anything.

use serde::{Deserialize, Serialize};

use super::frame::Refusal;
use super::order::Destination;
use crate::scene::movement::Own;
use crate::scene::properties::Properties;
use crate::scene::views::{KeptBonds, NamedBond};
use crate::scene::{
    Account, EntityId, Epoch, Facing, Plane, Pos, RegionId, SceneId, Seq, SessionId, SubjectHash,
    Tick, ViewLimits,
};

/// What a session knows of its player, for a region that may know less because it continues from a
/// checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presented {
    /// The player.
    pub id: EntityId,
    /// Its session.
    pub session: SessionId,
    /// Whose the session is.
    pub subject: SubjectHash,
    /// The same for game logic.
    pub account: Account,
    /// The region to which it is presented.
    pub to: RegionId,
    /// The highest epoch of the player that the session knows.
    pub epoch: Epoch,
    /// Its last input that is known to have been applied.
    pub acked: Seq,
    /// Its plane.
    pub plane: Plane,
    /// Its place as of `placed_by`; where moves are judged `own` counts.
    pub pos: Pos,
    /// The last input that is known to have changed its place, or to have been applied before the place was
    /// told.
    pub placed_by: Seq,
    /// Its movement as it was told last, and in which tick.
    pub own: Option<(Tick, Box<Own>)>,
    /// The last tick that the session knows of.
    pub tick: Tick,
    /// Its sight.
    pub sight: ViewLimits,
    /// The way it faces.
    pub facing: Facing,
    /// Its properties as they were told last.
    pub properties: Properties,
    /// Its bonds as they were told last.
    pub bonds: KeptBonds,
    /// A teleport to another scene that was applied and from which it has not arrived.
    pub teleport: Option<Destination>,
    /// Since when the session has the player; of two sessions that present it the later one counts. See
    /// [`Resume::since_ms`].
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
    /// The player's session from now on.
    pub session: SessionId,
    /// Whose the session is: it gets a player of this subject only.
    pub subject: SubjectHash,
    /// The last input that its client knows to have been applied.
    pub acked: Seq,
    /// The region that the session has asked, which may forward the question.
    pub asked: RegionId,
    /// When the client came back, milliseconds by the server's clock. The region counts from there, or from
    /// one above the session before: so a player's sessions have an order, which no checkpoint undoes. The
    /// session by which the player joined has [`FIRST_SESSION`]; 0: an older release does not say.
    #[serde(default)]
    pub since_ms: u64,
    /// What for.
    pub purpose: ResumeFor,
}

/// A player whose client has come back, for its new session: a [`RouteNotice`], and what the session
/// would know from the join.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// Whose the player is.
    pub subject: SubjectHash,
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
    /// Its sight.
    pub sight: ViewLimits,
    /// The way it faces.
    pub facing: Facing,
    /// Its properties.
    pub properties: Properties,
    /// Since when the session has it, as the region counts: see [`Resume::since_ms`].
    #[serde(default)]
    pub since_ms: u64,
    /// See [`Handoff::unconfirmed`](super::Handoff::unconfirmed).
    #[serde(default)]
    pub unconfirmed: Option<(Seq, Seq)>,
}

impl Resumed {
    /// The same as a route, for a session that knows the rest.
    pub fn as_route(self) -> RouteNotice {
        let Resumed { subject, scene, region, epoch, last_applied, tick, .. } = self;
        let Resumed { plane, pos, facing, own, unconfirmed, .. } = self;
        RouteNotice {
            subject,
            scene,
            region,
            epoch,
            last_applied,
            tick,
            plane,
            pos,
            facing,
            own,
            arrived: false,
            unconfirmed,
        }
    }
}

/// A player that has left for good, as it was last. Its region keeps it until the state is stored; only
/// then its session is told that it has left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departed {
    /// The player.
    pub id: EntityId,
    /// Its session.
    pub session: Option<SessionId>,
    /// The first tick without it.
    pub tick: Tick,
    /// Its epoch.
    pub epoch: Epoch,
    /// The tick in which the state was true: an earlier one where the region goes on from a checkpoint.
    pub as_of: Tick,
    /// Its plane; [`Plane::LIMBO`]: between two scenes.
    pub plane: Plane,
    /// Its place.
    pub pos: Pos,
    /// Its properties.
    pub properties: Properties,
    /// Its bonds.
    pub bonds: Vec<NamedBond>,
}

impl Departed {
    /// What its session is told.
    pub fn notice(self) -> Option<(SessionId, Notice)> {
        let Departed { session, tick, epoch, properties, .. } = self;
        Some((session?, Notice::Left { tick, epoch, properties }))
    }
}

/// What a region that is asked for a player does with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ResumeFor {
    /// The player is the session's from now on.
    #[default]
    Play,
    /// The player's subject joins anew: the player leaves, or, while it has to stay, the session is told so
    /// ([`Notice::Stays`]) and resumes it.
    Leave,
}

/// Where a session's entity lives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteNotice {
    /// Whose the entity is: a session of another subject never has it.
    pub subject: SubjectHash,
    /// The scene.
    pub scene: SceneId,
    /// The owner.
    pub region: RegionId,
    /// The entity's epoch; a route with a lower epoch is late.
    pub epoch: Epoch,
    /// The last input that was applied.
    pub last_applied: Seq,
    /// The tick from which this holds.
    pub tick: Tick,
    /// Its plane.
    pub plane: Plane,
    /// Its place.
    pub pos: Pos,
    /// The way it faces.
    pub facing: Facing,
    /// Its movement; `None` where places are trusted.
    pub own: Option<Box<Own>>,
    /// Whether it came here by entering or by a teleport (and not by walking over a border).
    pub arrived: bool,
    /// See [`Handoff::unconfirmed`](super::Handoff::unconfirmed).
    #[serde(default)]
    pub unconfirmed: Option<(Seq, Seq)>,
}

/// What a session is told of its entity, beside frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// The entity lives in a region from now on; inputs that were not applied yet go there.
    Route(RouteNotice),
    /// The entity is gone; from `tick` on no client is shown it.
    Left {
        /// The first tick without it.
        tick: Tick,
        /// The entity's epoch; a notice with a lower epoch than the route's is late.
        epoch: Epoch,
        /// Its properties as they were last, as far as they are known.
        properties: Properties,
    },
    /// The player's bonds as they are from now on: they are kept with the player.
    Bonds {
        /// The player's epoch; a notice with a lower epoch than the route's is late.
        epoch: Epoch,
        /// All of them.
        bonds: KeptBonds,
    },
    /// The region continues from a checkpoint, in which the entity lives under this epoch: present it.
    Present {
        /// The region.
        region: RegionId,
        /// The region's epoch.
        owner: Epoch,
        /// The entity's epoch there.
        epoch: Epoch,
    },
    /// The player of a client that came back lives here, and has this session from now on.
    Resumed(Box<Resumed>),
    /// The player is not known here, nor where the question was forwarded to.
    Nowhere {
        /// The region that was asked.
        asked: RegionId,
    },
    /// The player's client is gone, or another session of its subject asks, and the player stays: the scene's
    /// linger time or the game's logic holds it.
    Stays {
        /// The player.
        id: EntityId,
        /// Its epoch; a notice with a lower epoch than the route's is late.
        epoch: Epoch,
        /// The first tick without it, unless its client comes back or the logic holds it longer.
        until: Tick,
        /// Until then, milliseconds.
        ms: u32,
    },
    /// The player that the session asked for, or presented, is another subject's. Nothing has changed.
    OtherSubject,
    /// The player has another session from now on: its client has come back by another connection.
    Replaced,
    /// The entity could not be added.
    Refused(Refusal),
    /// The game's logic ends the session.
    Kicked,
}
