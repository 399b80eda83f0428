//! Whether players may come: the game is asked before a player joins a scene, and before a client takes its player to
//! another place.
//!
//! The session of the player asks. Later messages of its client wait for the answer, and nothing else does.

use std::fmt::Debug;

use futures::future::BoxFuture;

use crate::scene::messages::Destination;
use crate::scene::{Account, EntityId, Plane, SceneId};

/// A player that wants to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visitor {
    /// Whose it is.
    pub account: Account,
    /// The player's entity.
    pub entity: EntityId,
    /// Where it wants to go.
    pub to: Destination,
    /// It is in a scene and wants to go elsewhere; otherwise it wants to join.
    pub jumps: bool,
}

/// Why a player may not come, for its client: at most [`LONGEST_REASON`] bytes.
pub type Reason = String;

/// Longest reason, bytes.
pub const LONGEST_REASON: usize = 128;

/// A decision that may take a while: the player may come, into the plane that the game names or the one of
/// [`Visitor::to`], or why it may not.
pub type PendingDecision = BoxFuture<'static, Result<Option<Plane>, Reason>>;

/// Decides whether players may come.
pub trait Admission: Debug + Send + Sync {
    /// Asks the game; `None`: nobody has to be asked, and the player may come. The decision must come within a time that
    /// the implementation bounds.
    fn ask(&self, visitor: Visitor) -> Option<PendingDecision>;

    /// Whether the game has opened a plane beside the scene's lines for this subject, whatever its token says.
    fn opens(&self, scene: SceneId, plane: Plane, subject: &str) -> bool;
}
