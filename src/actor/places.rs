//! Players' last places, to which they come when they join without a place of their own.

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

/// Where last places are kept, by players' names, which are what their tokens name.
pub trait Places: Debug + Send + Sync {
    /// Between two times that a session tells where its player is; one that has ended tells at once.
    fn every(&self) -> Duration;

    /// Takes a place, at once: a session waits for it.
    fn keep(&self, name: &str, place: LastPlace);

    /// A player's last place, soon: a client that says hello waits for it. `None` where none is kept,
    /// and where nobody can say.
    fn load(&self, name: &str) -> BoxFuture<'static, Option<LastPlace>>;
}
