//! What a process asks another about what lives there, for people who look after a cluster, and about the
//! lines that fill up.

use serde::{Deserialize, Serialize};

use crate::scene::{EntityId, Epoch, Kind, Plane, Pos, RegionId, SceneId, SessionId};

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// All players.
    Players,
    /// One entity.
    Entity(EntityId),
    /// How many joined each line by that process.
    Lines,
    /// What time it is by the cluster's clock.
    Clock,
    /// Which claims there stand against these of the asker.
    Claims(Vec<SubjectClaim>),
}

/// What is told.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Answer {
    /// Who lives there, of those asked for.
    pub lives: Vec<Resident>,
    /// Regions there that did not answer in time.
    pub late: Vec<RegionId>,
    /// Lines in which somebody is.
    #[serde(default)]
    pub lines: Vec<Fullness>,
    /// The cluster's time when the question was answered, nanoseconds.
    #[serde(default)]
    pub clock_ns: Option<u64>,
    /// Claims that stand against those asked about.
    #[serde(default)]
    pub claims: Vec<SubjectClaim>,
}

/// A session has a subject's player, or is about to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectClaim {
    /// Whom the session's token names.
    pub subject: String,
    /// Its place in the order of all claims.
    pub stamp: Stamp,
    /// The player.
    pub entity: EntityId,
}

/// The order of claims: by the cluster's clock, and after every claim that the process knew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamp {
    /// Milliseconds.
    pub at_ms: u64,
    /// Of two at the same time.
    pub session: SessionId,
}

/// How full a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fullness {
    /// Of which scene.
    pub scene: SceneId,
    /// Which plane.
    pub plane: Plane,
    /// Who joined it by that process and is still there.
    pub players: u32,
}

/// Somebody who lives in a region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// Who.
    pub id: EntityId,
    /// Of which kind.
    pub kind: Kind,
    /// In which scene.
    pub scene: SceneId,
    /// In which region.
    pub region: RegionId,
    /// Its epoch; 0 where that was not looked at. Of two who have it, since it is being handed over, the higher
    /// counts.
    pub epoch: Epoch,
    /// In which plane.
    pub plane: Plane,
    /// Where.
    pub pos: Pos,
}
