//! One decision as it is made: what is known, and what earlier actions of the same decision have taken.

use std::collections::BTreeSet;

use purview::scene::RegionId;

use super::memory::Memory;
use super::record::{Action, Decision, Ranking, Record, Rejection, Rule, Subject};
use super::settings::Settings;
use super::state::{SceneState, State};

pub(super) struct Round<'a> {
    pub(super) state: &'a State<'a>,
    pub(super) memory: &'a mut Memory,
    pub(super) decision: Decision,
    /// Nodes, regions and scenes that actions concern: those of this decision, and moves that are under way.
    nodes: BTreeSet<usize>,
    regions: BTreeSet<RegionId>,
    moved: BTreeSet<usize>,
    changed: BTreeSet<usize>,
}

impl<'a> Round<'a> {
    pub(super) fn new(state: &'a State<'a>, memory: &'a mut Memory) -> Round<'a> {
        let (nodes, regions, moved) = Default::default();
        let (changed, decision) = Default::default();
        let mut round = Round { state, memory, decision, nodes, regions, moved, changed };
        for (region, to) in &state.input.moving {
            let to = state.nodes.iter().position(|node| node.site.node == *to);
            round.nodes.extend(to);
            if let Some(at) = state.at.get(region) {
                round.nodes.extend(state.regions[*at].node);
                round.take_region(*at);
            }
        }
        round
    }

    pub(super) fn now(&self) -> u64 {
        self.state.input.now_s
    }

    pub(super) fn settings(&self) -> &'a Settings {
        self.state.settings
    }

    pub(super) fn scene(&self, region: usize) -> &'a SceneState<'a> {
        &self.state.scenes[self.state.regions[region].scene]
    }

    fn take_region(&mut self, at: usize) {
        let region = &self.state.regions[at];
        self.regions.insert(region.id);
        let near = region.report.iter().flat_map(|report| &report.neighbours);
        self.regions.extend(near.map(|near| near.region));
    }

    pub(super) fn is_taken(&self, node: usize) -> bool {
        self.nodes.contains(&node)
    }

    /// Whether a region may move as far as other actions go.
    pub(super) fn may_move(&self, at: usize) -> Result<(), Rejection> {
        let region = &self.state.regions[at];
        let changes = self.scene(at).input.changing || self.changed.contains(&region.scene);
        if changes || self.regions.contains(&region.id) { Err(Rejection::Busy) } else { Ok(()) }
    }

    /// Whether the layout of a region's scene may change as far as other actions and budgets go.
    pub(super) fn may_change(&self, at: usize) -> Result<(), Rejection> {
        let (scene, of) = (self.scene(at), self.state.regions[at].scene);
        let moves = scene.moves || self.moved.contains(&of);
        if moves || scene.input.changing || self.changed.contains(&of) {
            return Err(Rejection::Busy);
        }
        let may = self.memory.may_change(&scene.input.name, self.settings(), self.now());
        if may { Ok(()) } else { Err(Rejection::LayoutBudget) }
    }

    /// Writes down what is decided of a subject, and remembers the action if there is one. Returns whether there is.
    pub(super) fn conclude(
        &mut self,
        ranking: Ranking,
        (rule, subject): (Rule, Subject),
        inputs: Vec<(&'static str, f64)>,
    ) -> bool {
        let record = ranking.record(rule, subject, inputs);
        let action = record.outcome;
        self.decision.records.push(record);
        action.is_ok_and(|action| self.take(action))
    }

    /// Writes down that nothing is done about a subject.
    pub(super) fn refuse(
        &mut self,
        (rule, subject): (Rule, Subject),
        inputs: Vec<(&'static str, f64)>,
        why: Rejection,
    ) {
        let (candidates, outcome) = (Vec::new(), Err(why));
        self.decision.records.push(Record { rule, subject, inputs, candidates, outcome });
    }

    fn take(&mut self, action: Action) -> bool {
        let of = match action {
            Action::Move { region, .. } | Action::Split { region, .. } => [region, region],
            Action::Shift { from, to, .. } => [from, to],
            Action::Merge { region, gone } => [region, gone],
        };
        let at = of.map(|id| self.state.at[&id]);
        let scene = self.state.regions[at[0]].scene;
        for at in at {
            self.nodes.extend(self.state.regions[at].node);
            self.take_region(at);
        }
        match action {
            Action::Move { to, .. } => {
                self.nodes.extend(self.state.nodes.iter().position(|n| n.site.node == to));
                self.moved.insert(scene);
            }
            _ => _ = self.changed.insert(scene),
        }
        let input = self.state.scenes[scene].input;
        let scene = (input.name.as_str(), input.layout.next);
        self.memory.note(action, scene, self.settings(), self.now());
        self.decision.actions.push(action);
        true
    }
}
