//! Players' last positions: a player that joins without a position appears at its last one, and has the
//! persistent properties that it had there.
//!
//! Of two places of one player, the place of the later session counts, whatever the machines' clocks say; of
//! two places of one session, the place of the later tick.

use std::fmt::Debug;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::scene::properties::{PropertyId, Value};
use crate::scene::{Plane, Pos};

/// Where a player was last, and what it had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastPosition {
    /// The scene's name.
    pub scene: String,
    /// The plane.
    pub plane: Plane,
    /// The place.
    pub pos: Pos,
    /// Its persistent properties.
    #[serde(default)]
    pub properties: Vec<KeptProperty>,
}

/// A persistent property of a player, as it was last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptProperty {
    /// The property.
    pub id: PropertyId,
    /// Its value.
    pub value: Value,
}

/// What was kept of a player when its session began.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// Where it was last; `None`: none is kept.
    pub place: Option<LastPosition>,
    /// When it was there, by the cluster's clock, milliseconds.
    pub left_ms: u64,
    /// The session's number among the sessions of its player: above every session whose place is kept.
    pub number: u64,
}

/// When a place was true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// The session's number, as [`Found`] has it.
    pub number: u64,
    /// The cluster's clock then, milliseconds: the tick that a region told of.
    pub clock_ms: u64,
}

/// Why a last position cannot be read now. Nothing has changed; the question may be repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("where the player was last cannot be read now ({why}): join again")]
pub struct NotFoundNow {
    /// What the store says.
    pub why: String,
}

/// Where last positions are kept, by players' names, which are what their tokens name.
pub trait LastPositions: Debug + Send + Sync {
    /// The time between two reports of a session; a session that ends reports at once.
    fn every(&self) -> Duration;

    /// Takes a place, at once: a session waits for it.
    fn keep(&self, name: &str, place: LastPosition, stamp: Stamp);

    /// What is kept of a player, within a few seconds: a client that joins waits for it.
    fn load(&self, name: &str) -> BoxFuture<'static, Result<Found, NotFoundNow>>;
}
