//! The local state: a copy, taken before each decision.

use std::collections::{BTreeMap, BTreeSet};

use purview::scene::{Epoch, RegionId};

use crate::storage::{Incarnation, RegionKey};

/// Where a region is, as far as this process's routes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(in crate::node) enum Route {
    #[default]
    Nowhere,
    Here(Epoch),
    At(u64, Epoch),
}

impl Route {
    pub(in crate::node) fn epoch(self) -> Option<Epoch> {
        match self {
            Route::Nowhere => None,
            Route::Here(epoch) | Route::At(_, epoch) => Some(epoch),
        }
    }
}

/// A process whose machine reports that no process listens there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::node) struct Suspect {
    pub(in crate::node) process: u64,
    /// How many other processes have reported the same recently.
    pub(in crate::node) reporters: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::node) struct Running {
    pub(in crate::node) epoch: Epoch,
    /// Every process has seen its grant: when the store shows it no more, it has ended.
    pub(in crate::node) is_confirmed: bool,
    /// A change of its layout gave it up, and it has nothing to do any more.
    pub(in crate::node) is_over: bool,
}

/// A region that there is, or is about to be made, or was given up and has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::node) struct LocalRegion {
    pub(in crate::node) key: RegionKey,
    pub(in crate::node) has_ground: bool,
    pub(in crate::node) runs: Option<Running>,
    /// It is on its way here or away.
    pub(in crate::node) moves: bool,
    pub(in crate::node) route: Route,
    pub(in crate::node) known_epoch: Epoch,
    /// Its owner of this epoch has announced its move, and the store does not show it yet.
    pub(in crate::node) moved: Option<Epoch>,
    /// Since which owner it is as sessions here know it.
    pub(in crate::node) told: Option<Epoch>,
}

impl LocalRegion {
    pub(in crate::node) fn new(key: RegionKey, has_ground: bool) -> LocalRegion {
        LocalRegion {
            key,
            has_ground,
            runs: None,
            moves: false,
            route: Route::Nowhere,
            known_epoch: Epoch::default(),
            moved: None,
            told: None,
        }
    }

    pub(in crate::node) fn epoch_here(&self) -> Option<Epoch> {
        self.runs.map(|runs| runs.epoch)
    }
}

/// Everything that a decision depends on beside the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::node) struct Local {
    pub(in crate::node) me: Incarnation,
    pub(in crate::node) name: String,
    /// The lease is gone, or the process is asked to end.
    pub(in crate::node) shuts_down: bool,
    pub(in crate::node) leads: bool,
    /// Whether it may act by its clock.
    pub(in crate::node) clock_is_set: bool,
    /// The local state follows the layouts of this view.
    pub(in crate::node) follows_layouts: bool,
    /// Claims were made by this view.
    pub(in crate::node) has_claimed: bool,
    /// Other processes that are called: the number of each.
    pub(in crate::node) peers: BTreeMap<Incarnation, u64>,
    pub(in crate::node) suspects: Vec<Suspect>,
    pub(in crate::node) regions: BTreeMap<RegionId, LocalRegion>,
    pub(in crate::node) down: BTreeSet<RegionId>,
    /// Regions here whose checkpoints are overdue; `None`: none are kept.
    pub(in crate::node) overdue: Option<Vec<RegionId>>,
    /// How often a checkpoint was older than recovery assumes.
    pub(in crate::node) recovered_late: u64,
}

impl Local {
    pub(in crate::node) fn running(&self) -> impl Iterator<Item = (RegionId, Epoch)> + '_ {
        self.regions.iter().filter_map(|(id, region)| Some((*id, region.epoch_here()?)))
    }

    pub(in crate::node) fn runs(&self, id: RegionId) -> bool {
        self.regions.get(&id).is_some_and(|region| region.runs.is_some())
    }
}
