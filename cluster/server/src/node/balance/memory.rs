//! What the balancer remembers from one decision to the next.
//!
//! Only the leader has one. The next leader begins with an empty memory: it decides nothing before loads have been
//! seen for as long as every rule asks, and forgets what was tabu.

use std::collections::{BTreeMap, VecDeque};

use purview::scene::RegionId;
use purview::scene::mutants::{self, Mutant};
use rustc_hash::FxHashMap;

use super::record::Action;
use super::settings::Settings;
use super::state::State;
use crate::storage::Incarnation;

#[derive(Debug, Clone, Default)]
pub struct Memory {
    hot: BTreeMap<Incarnation, u64>,
    regions: FxHashMap<RegionId, RegionMemory>,
    moves: VecDeque<(u64, [Incarnation; 2])>,
    /// When the layouts of scenes were changed last.
    layouts: BTreeMap<String, u64>,
    /// Numbers of nodes that were wanted, each more than those after it.
    wanted: VecDeque<(u64, u32)>,
}

#[derive(Debug, Clone, Default)]
struct RegionMemory {
    /// Since when it is heavy, light.
    heavy: Option<u64>,
    light: Option<u64>,
    /// Until when it stays where it is, and for how long that was.
    cools: Option<(u64, u64)>,
    left: Vec<(Incarnation, u64)>,
    /// The regions from which it got ground, and when.
    took: Vec<(RegionId, u64)>,
    /// When it was last split, merged.
    split: Option<u64>,
    merged: Option<u64>,
}

/// Keeps or begins a time while something is so.
fn since(at: &mut Option<u64>, is_so: bool, now: u64) {
    *at = is_so.then(|| at.unwrap_or(now));
}

impl Memory {
    /// Takes in the loads of a moment.
    pub(super) fn observe(&mut self, state: &State<'_>) {
        let (settings, now) = (state.settings, state.input.now_s);
        for node in &state.nodes {
            let by_mean =
                |times: f64| node.share > times * state.mean && node.share > settings.floor;
            match self.hot.contains_key(&node.site.node) {
                false if by_mean(settings.start) => _ = self.hot.insert(node.site.node, now),
                true if !by_mean(settings.stop) => _ = self.hot.remove(&node.site.node),
                _ => {}
            }
        }
        self.hot.retain(|node, _| state.nodes.iter().any(|n| n.site.node == *node));
        self.regions.retain(|id, _| state.at.contains_key(id));
        for region in &state.regions {
            let (heavy, light) = (region.p99 > settings.heavy, region.share < settings.light);
            let memory = self.regions.entry(region.id).or_default();
            since(&mut memory.heavy, heavy, now);
            since(&mut memory.light, light && region.report.is_some(), now);
            memory.left.retain(|(_, at)| now < at + settings.tabu_s);
            memory.took.retain(|(_, at)| now < at + settings.tabu_s);
        }
        self.moves.retain(|(at, _)| now < at + 60);
    }

    pub(super) fn hot_s(&self, node: Incarnation, now: u64) -> Option<u64> {
        let at = *self.hot.get(&node)?;
        Some(if mutants::has(Mutant::RelievedAtOnce) { u64::MAX } else { now.saturating_sub(at) })
    }

    fn region(&self, id: RegionId) -> Option<&RegionMemory> {
        self.regions.get(&id)
    }

    pub(super) fn heavy_s(&self, id: RegionId, now: u64) -> Option<u64> {
        self.region(id)?.heavy.map(|at| now.saturating_sub(at))
    }

    pub(super) fn light_s(&self, id: RegionId, now: u64) -> Option<u64> {
        self.region(id)?.light.map(|at| now.saturating_sub(at))
    }

    /// Whether a region has moved or changed its ground so lately that it stays.
    pub(super) fn cools(&self, id: RegionId, now: u64) -> bool {
        self.region(id).and_then(|r| r.cools).is_some_and(|(until, _)| now < until)
    }

    pub(super) fn has_left(&self, id: RegionId, node: Incarnation) -> bool {
        self.region(id).is_some_and(|r| r.left.iter().any(|(left, _)| *left == node))
    }

    /// Whether a region has taken ground from another one lately.
    pub(super) fn has_taken(&self, id: RegionId, from: RegionId) -> bool {
        self.region(id).is_some_and(|r| r.took.iter().any(|(took, _)| *took == from))
    }

    pub(super) fn was_split(&self, id: RegionId, now: u64, settings: &Settings) -> bool {
        self.region(id).and_then(|r| r.split).is_some_and(|at| now < at + settings.tabu_s)
    }

    pub(super) fn was_merged(&self, id: RegionId, now: u64, settings: &Settings) -> bool {
        self.region(id).and_then(|r| r.merged).is_some_and(|at| now < at + settings.tabu_s)
    }

    /// Whether a move between two nodes is within the budgets, among so many nodes.
    pub(super) fn may_move(
        &self,
        of: [Incarnation; 2],
        nodes: usize,
        s: &Settings,
        now: u64,
    ) -> bool {
        let rests = |(at, both): &(u64, [Incarnation; 2])| {
            now >= at + s.node_s || !both.iter().any(|node| of.contains(node))
        };
        let is_within = self.moves.len() < s.moves_per_min * nodes.div_ceil(8);
        (is_within || mutants::has(Mutant::MovesUnlimited)) && self.moves.iter().all(rests)
    }

    pub(super) fn may_change(&self, scene: &str, s: &Settings, now: u64) -> bool {
        self.layouts.get(scene).is_none_or(|at| now >= at + s.layout_s)
    }

    /// Remembers an action; `scene`: the one of its regions, and the id that a new region will have.
    pub(super) fn note(&mut self, action: Action, scene: (&str, RegionId), s: &Settings, now: u64) {
        if !matches!(action, Action::Move { .. }) {
            self.layouts.insert(scene.0.to_owned(), now);
        }
        match action {
            Action::Move { region: id, from, to } => {
                let memory = self.regions.entry(id).or_default();
                memory.left.push((from, now));
                memory.cool(s, now);
                self.moves.push_back((now, [from, to]));
            }
            Action::Shift { from, to, .. } => {
                self.regions.entry(to).or_default().took.push((from, now));
            }
            Action::Split { region: id, .. } => {
                for id in [id, scene.1] {
                    self.regions.entry(id).or_default().split = Some(now);
                }
            }
            Action::Merge { region: id, gone } => {
                self.regions.entry(id).or_default().merged = Some(now);
                self.regions.remove(&gone);
            }
        }
    }

    /// The greatest number of nodes that was wanted lately, with the present one.
    pub(super) fn wanted(&mut self, wanted: u32, s: &Settings, now: u64) -> u32 {
        self.wanted.retain(|(at, more)| now < at + s.wanted_s && *more > wanted);
        self.wanted.push_back((now, wanted));
        self.wanted.front().map_or(wanted, |(_, most)| *most)
    }
}

impl RegionMemory {
    /// Stays for a while; for twice as long as before if it was just done with that.
    fn cool(&mut self, s: &Settings, now: u64) {
        let again = self.cools.filter(|(until, _)| now < until + s.cool_s[0]);
        let for_s = again.map_or(s.cool_s[0], |(_, before)| (2 * before).min(s.cool_s[1]));
        self.cools = Some((now + for_s, for_s));
    }
}
