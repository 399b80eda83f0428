//! View lists: they are evaluated over the positions of a tick, and negotiated between players.
//!
//! [`ViewEngine`] is the part. It reads the entity store and writes thresholds into it; it knows nothing of
//! custody or borders. Rules that need these, too, are in `delivery` (messages of other regions) and
//! `border_rounds` (the rounds of a tick).

mod border_rounds;
mod commit;
mod delivery;
mod engine;
mod eye;
mod fights;
mod ghost_links;
mod handles;
mod matching;
mod negotiation;
mod plane_pairs;
mod prediction;
mod queue;
mod range_query;
mod refresh;
mod registered;
mod renewal;
mod repair;
mod viewer;
mod viewers;

use self::fights::Fights;
use self::handles::Handles;
use self::matching::Matching;
pub use self::queue::SavedViewQueue;
use self::queue::{LocalMessage, ViewQueue};
use self::refresh::Refreshed;
pub use self::viewer::{Seen, Viewer};
use crate::scene::views::ViewRules;
use crate::scene::{Scene, Tick, TickStamp};

/// The view lists of the players that live here.
#[derive(Debug)]
pub struct ViewEngine {
    rules: ViewRules,
    viewers: Vec<Viewer>,
    handles: Handles,
    queue: ViewQueue,
    fights: Fights,
    /// The tick whose views were evaluated last.
    view_tick: TickStamp,
    /// When stamps of long ago were renewed last.
    renewed: Tick,
    /// Every entity is where it was when views were evaluated.
    still: bool,
    refreshed: Refreshed,
    /// The same of the parts of all players.
    parts: Vec<Refreshed>,
    matching: Matching,
    figures: ViewFigures,
}

/// Messages of the view negotiation since the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct ViewFigures {
    /// Between two players of this region.
    pub local: u64,
    /// Sent to other regions.
    pub sent: u64,
    /// Found no room.
    pub lost: u64,
}

impl ViewEngine {
    /// No viewers yet.
    pub fn new(scene: &Scene) -> ViewEngine {
        ViewEngine {
            rules: ViewRules::of(scene),
            viewers: Vec::new(),
            handles: Handles::default(),
            queue: ViewQueue::default(),
            fights: Fights::default(),
            view_tick: TickStamp::default(),
            renewed: Tick(0),
            still: false,
            refreshed: Refreshed::default(),
            parts: Vec::new(),
            matching: Matching::default(),
            figures: ViewFigures::default(),
        }
    }

    /// The rules by which pairs are ranked.
    #[inline]
    pub fn rules(&self) -> &ViewRules {
        &self.rules
    }

    /// Messages since the start.
    pub fn figures(&self) -> ViewFigures {
        self.figures
    }
}
