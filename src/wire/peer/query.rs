//! Queries between processes about their entities, lines, clock and session claims: for the admin
//! console and the balance of lines. They travel in [`super::PeerMsg`]; they only read.

use serde::{Deserialize, Serialize};

use crate::scene::load::RegionReport;
use crate::scene::properties::Properties;
use crate::scene::{EntityId, Epoch, Facing, Kind, Plane, Pos, RegionId, SceneId, SessionId};

/// A query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// All players.
    Players,
    /// One entity.
    Entity(EntityId),
    /// How many players joined each line through that process.
    Lines,
    /// The cluster time.
    Clock,
    /// Claims that conflict with these claims of the asking process.
    Claims(Vec<SubjectClaim>),
    /// What the regions of that process have to do; of the leader, to balance it.
    Loads,
    /// What the leader decides of balancing; of another process, to show it.
    Balance,
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Answer {
    /// The requested entities that live there.
    pub lives: Vec<EntityLocation>,
    /// Regions of that process that did not answer in time.
    pub late: Vec<RegionId>,
    /// Lines with at least one player.
    #[serde(default)]
    pub lines: Vec<Fullness>,
    /// Cluster time when the query was answered, nanoseconds.
    #[serde(default)]
    pub clock_ns: Option<u64>,
    /// Claims that conflict with those in the query.
    #[serde(default)]
    pub claims: Vec<SubjectClaim>,
    /// What the regions of that process have to do, each once.
    #[serde(default)]
    pub loads: Vec<(RegionId, RegionReport)>,
    /// What `/api/balance` answers there, as JSON; empty: that process does not lead.
    #[serde(default)]
    pub balance: String,
}

/// A session's claim to the player of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectClaim {
    /// The subject that the session's token names.
    pub subject: String,
    /// The claim's place in the order of all claims.
    pub stamp: Stamp,
    /// The player.
    pub entity: EntityId,
}

/// The order of claims: by cluster time, and after every claim that the process knew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamp {
    /// Cluster time, milliseconds.
    pub at_ms: u64,
    /// Breaks ties between claims of the same time.
    pub session: SessionId,
}

/// Number of players on a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fullness {
    /// The scene.
    pub scene: SceneId,
    /// The plane.
    pub plane: Plane,
    /// Players that joined the line through that process and are still there.
    pub players: u32,
}

/// An entity and the region that owns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntityLocation {
    /// The entity.
    pub id: EntityId,
    /// Its kind.
    pub kind: Kind,
    /// Its scene.
    pub scene: SceneId,
    /// The region that owns it.
    pub region: RegionId,
    /// Its epoch; 0 if it was not looked up. If two regions report the entity during a handoff, the
    /// higher epoch wins.
    pub epoch: Epoch,
    /// Its plane.
    pub plane: Plane,
    /// Its position.
    pub pos: Pos,
    /// The way it faces.
    pub facing: Facing,
    /// Its properties; none if it was not looked up by itself.
    pub properties: Properties,
}
