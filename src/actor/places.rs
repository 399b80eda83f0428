//! Players' last places, to which they come when they join without a place of their own.
//!
//! Of two places of one player that of the later session counts, whatever the machines' clocks say; of two of
//! one session that of the later tick of the cluster.

use std::fmt::Debug;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::scene::{Plane, Pos};

/// Where a player was last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastPlace {
    /// The scene's name.
    pub scene: String,
    /// The plane.
    pub plane: Plane,
    /// The place.
    pub pos: Pos,
}

/// What was kept of a player when its session began.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// Where it was last; `None`: none is kept.
    pub place: Option<LastPlace>,
    /// The session's number among those of its player: above all from which a place is kept.
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

/// Why nobody can say where a player was. Nothing has changed; it may be asked again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("where the player was last cannot be read now ({why}): join again")]
pub struct NotFoundNow {
    /// What the store says.
    pub why: String,
}

/// Where last places are kept, by players' names, which are what their tokens name.
pub trait Places: Debug + Send + Sync {
    /// Between two times that a session tells where its player is; one that has ended tells at once.
    fn every(&self) -> Duration;

    /// Takes a place, at once: a session waits for it.
    fn keep(&self, name: &str, place: LastPlace, stamp: Stamp);

    /// What is kept of a player, within a few seconds: a client that joins waits for it.
    fn load(&self, name: &str) -> BoxFuture<'static, Result<Found, NotFoundNow>>;
}
