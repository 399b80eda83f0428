//! What the balancer decides and refuses, with its reasons.

use purview::scene::RegionId;
use purview::scene::layout::{Axis, Layout, LayoutError};
use serde::Serialize;

use crate::storage::Incarnation;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Action {
    Move {
        region: RegionId,
        from: Incarnation,
        to: Incarnation,
    },
    /// A region gives lands to its neighbour.
    Shift {
        from: RegionId,
        to: RegionId,
        /// Rows of lands along their common side.
        lands: i32,
    },
    /// A region is cut in two, both of which stay on its node.
    Split {
        region: RegionId,
        axis: Axis,
        /// The border, in lands from the map's western or northern edge.
        land: i32,
        /// Whether the western or northern part is the new region.
        first: bool,
    },
    /// Two regions of a node become one.
    Merge {
        region: RegionId,
        gone: RegionId,
    },
}

impl Action {
    /// The layout that it makes of a scene's present one; `None`: it changes no layout.
    ///
    /// # Errors
    /// The layout is not the one for which the action was decided.
    pub fn layout(&self, now: &Layout) -> Option<Result<Layout, LayoutError>> {
        match *self {
            Action::Move { .. } => None,
            Action::Shift { from, to, lands } => Some(now.shift(from, to, lands)),
            Action::Split { region, axis, land, first } => {
                Some(now.split_at(region, axis, land, first))
            }
            Action::Merge { region, gone } => Some(now.merge(region, gone)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Nothing is decided while an operator has paused it.
    Paused,
    /// A region is on a node that must not run it.
    Misplaced,
    /// A hot node gives a region to another node.
    Move,
    /// A region of a hot node gives lands to a region elsewhere.
    Shift,
    /// A heavy region is cut in two.
    Split,
    /// A border cuts a crowd: a region gives lands to another one, and both have less to do.
    Gather,
    /// Light regions become one.
    Merge,
    /// No node is hot and no region heavy.
    Even,
}

/// Why a candidate, or an action at all, is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rejection {
    Paused,
    /// It has not lasted for long enough.
    Brief,
    None,
    /// The region moves, or its layout changes, at the moment.
    Busy,
    /// A node does not know the load of one of its regions.
    Unreported,
    /// The region has moved or changed lately.
    Cools,
    /// It would go back to where it was.
    Tabu,
    /// There were enough moves in the last minute, or one of these nodes has just had one.
    MoveBudget,
    LayoutBudget,
    Pinned,
    /// The node gives its regions away.
    Drained,
    /// The node waits for the regions of one that will be drained: see `node::sharing`.
    Waits,
    /// The node lacks a label that the scene asks for.
    Labels,
    /// The node is in another zone than the scene asks for.
    Zone,
    /// The node or the ground is reserved.
    Reserved,
    MaxNodes,
    /// The receiver would have too much to do.
    Safety,
    Gain,
    /// The charge is higher than the gain.
    Charge,
    /// A region would be narrower than the mirrored band.
    Narrow,
    /// A region would have too many neighbours.
    Neighbours,
    /// The scene has as few regions as it may have.
    MinRegions,
    MaxRegions,
    /// The border would cut ground that must stay whole.
    Whole,
    /// One part would have nearly the whole load.
    LargePart,
    /// Both parts together would cost too much.
    Ghosts,
    /// Two regions would be too heavy as one.
    Heavy,
}

/// An action that was weighed. Gain and charge are shares of a node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Candidate {
    pub action: Action,
    /// By how much the busier of the nodes concerned has less to do.
    pub gain: f64,
    /// What the action costs, now and later.
    pub charge: f64,
    /// Loads of the two regions concerned, or of the two parts, afterwards, shares of a tick.
    pub after: [f64; 2],
    /// Why it is refused; `None`: it is legal.
    pub refusal: Option<Rejection>,
}

impl Candidate {
    /// Gain less charge.
    pub fn score(&self) -> f64 {
        self.gain - self.charge
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    Cluster,
    Node(Incarnation),
    Region(RegionId),
}

/// A decision or a refusal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    pub rule: Rule,
    pub subject: Subject,
    /// The figures by which it was decided; shares of a node or of a tick, or counts.
    pub inputs: Vec<(&'static str, f64)>,
    /// The best candidates, at most three; legal ones first.
    pub candidates: Vec<Candidate>,
    /// What is to be done, or why nothing is.
    pub outcome: Result<Action, Rejection>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Decision {
    /// What is to be done at once. No two actions share a node, a region, a neighbour or a changed scene.
    pub actions: Vec<Action>,
    pub records: Vec<Record>,
    /// The number of nodes that the loads need.
    pub nodes_wanted: u32,
}

/// Candidates as they are weighed: the best three, legal ones first.
#[derive(Debug, Default)]
pub(super) struct Ranking(Vec<Candidate>);

impl Ranking {
    pub(super) fn weigh(&mut self, candidate: Candidate) {
        let before = |a: &Candidate, b: &Candidate| {
            let legal = a.refusal.is_some().cmp(&b.refusal.is_some());
            let score = b.score().total_cmp(&a.score());
            legal.then(score).then(a.action.cmp(&b.action)).is_lt()
        };
        let at = self.0.iter().position(|other| before(&candidate, other));
        self.0.insert(at.unwrap_or(self.0.len()), candidate);
        self.0.truncate(3);
    }

    /// The best candidate, or why there is none.
    pub(super) fn best(&self) -> Result<Candidate, Rejection> {
        let first = self.first().ok_or(Rejection::None)?;
        first.refusal.map_or(Ok(*first), Err)
    }

    pub(super) fn first(&self) -> Option<&Candidate> {
        self.0.first()
    }

    pub(super) fn record(
        self,
        rule: Rule,
        subject: Subject,
        inputs: Vec<(&'static str, f64)>,
    ) -> Record {
        let outcome = self.best().map(|best| best.action);
        Record { rule, subject, inputs, candidates: self.0, outcome }
    }
}
