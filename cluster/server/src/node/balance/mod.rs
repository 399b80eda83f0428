//! Balancing by load, the deciding half: a pure function. Loads per region and per land in; actions, refusals and
//! the reasons of both out. No clock, no IO, no actor.
//!
//! ```text
//!  Input: nodes, scenes, owners, reports, pins ──┐
//!  Settings ─────────────────────────────────────┼──► decide ──► Decision: actions, records, nodes wanted
//!  Memory: timers, cool-downs, tabu, budgets ◄──►┘
//!
//!  place   a region leaves a node that must not run it: drained, pins, labels, zone, reservations
//!  move    a hot node gives a region to another node
//!  shift   else a region of it gives rows of lands to a neighbour elsewhere
//!  split   else a heavy region is cut where both parts with their ghosts cost least
//!  gather  a border that cuts a crowd is shifted past it
//!  merge   light regions of one node become one
//! ```
//!
//! `gain` is by how much the busier of the nodes concerned has less to do, as predicted; `charge` is what the action
//! costs. An action needs a gain of [`Settings::min_gain`] of the mean that is more than its charge, so nothing is
//! done that is predicted to be worse than nothing. `cost` predicts the load of any rectangle with its ghosts.
//!
//! *Never here:* a layout that `Scene::with_layout` refuses; an action that breaks a pin, a budget or a limit of a
//! scene; an order of lists that changes the result. Tests in `properties` hold this.
//!
//! [`super::balancer`] calls [`decide`] once a second where a process leads, and carries the actions out. What it
//! does not carry out is decided again, after the cool-down.

mod cost;
mod gathers;
mod ground;
mod input;
mod memory;
mod merges;
mod moves;
#[cfg(test)]
mod properties;
mod record;
mod round;
mod settings;
mod shifts;
mod splits;
mod state;
#[cfg(test)]
mod tests;

pub use purview::scene::load::{LandReport, NeighbourReport, RegionReport};

pub use input::{Input, Limits, Reserved, SceneInput, Site};
pub use memory::Memory;
pub use record::{Action, Candidate, Decision, Record, Rejection, Rule, Subject};
pub use settings::Settings;

use cost::Window;
use purview::scene::layout::Plot;
use round::Round;
use state::State;

/// Most regions and nodes of which shifts and splits are weighed in a decision; others have their turn later.
const WEIGHED: usize = 8;

/// Decides what is to be done now. To be called once a second or less often.
pub fn decide(input: &Input, settings: &Settings, memory: &mut Memory) -> Decision {
    let state = State::new(input, settings);
    memory.observe(&state);
    let mut round = Round::new(&state, memory);
    if input.paused {
        round.refuse((Rule::Paused, Subject::Cluster), Vec::new(), Rejection::Paused);
    } else {
        moves::place(&mut round);
        relieve_nodes(&mut round);
        relieve_regions(&mut round);
        gathers::gather(&mut round);
        merges::merge(&mut round);
        if round.decision.records.is_empty() {
            let most = state.nodes.iter().map(|node| node.share).fold(0.0, f64::max);
            let inputs = vec![("busiest", most), ("mean", state.mean)];
            round.refuse((Rule::Even, Subject::Cluster), inputs, Rejection::None);
        }
    }
    let mut decision = round.decision;
    decision.nodes_wanted = memory.wanted(nodes_wanted(&state), settings, input.now_s);
    decision
}

/// The predicted load of each of these plots of a scene, microseconds per tick, if regions had this ground: by the lands
/// that present regions report.
pub fn predict_us(input: &Input, settings: &Settings, scene: &str, plots: &[Plot]) -> Vec<f64> {
    let state = State::new(input, settings);
    let scene = state.scenes.iter().find(|state| state.input.name == scene);
    let cost = |scene, plot| Window::new(plot, scene, &state.regions, settings.ghost).cost(plot);
    plots.iter().map(|plot| scene.map_or(0.0, |scene| cost(scene, plot))).collect()
}

/// Some of a list, others the next time.
fn turn(mut list: Vec<usize>, now: u64) -> Vec<usize> {
    if list.len() > WEIGHED {
        let turns = list.len().div_ceil(WEIGHED) as u64;
        list.rotate_left((now % turns) as usize * WEIGHED);
        list.truncate(WEIGHED);
    }
    list
}

/// Hot nodes give regions away, or lands, or cut a region that is too heavy to be given.
fn relieve_nodes(round: &mut Round<'_>) {
    let (state, settings, now) = (round.state, round.settings(), round.now());
    let mut hot = Vec::new();
    for (at, node) in state.nodes.iter().enumerate() {
        let inputs = || vec![("node", node.share), ("mean", state.mean)];
        match round.memory.hot_s(node.site.node, now) {
            Some(s) if s >= settings.hot_s => hot.push(at),
            Some(_) => {
                let about = (Rule::Move, Subject::Node(node.site.node));
                round.refuse(about, inputs(), Rejection::Brief);
            }
            None => {}
        }
    }
    let share = |at: &usize| state.nodes[*at].share;
    hot.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.cmp(b)));
    let is_stuck = |at: &usize| !moves::relieve(round, *at);
    let stuck: Vec<usize> = hot.into_iter().filter(is_stuck).collect();
    for at in turn(stuck, now) {
        if !shifts::relieve(round, at) {
            split_one_of(round, at);
        }
    }
}

/// Splits the heaviest region of a hot node that can be split.
fn split_one_of(round: &mut Round<'_>, node: usize) {
    let (state, settings) = (round.state, round.settings());
    // What a merge might make again is not cut.
    let least = |at: &usize| state.regions[*at].share > 1.2 * settings.light_together;
    let heavy = moves::heaviest(round, node, settings.heavy_by_mean * state.mean);
    for region in heavy.into_iter().filter(least) {
        if splits::relieve(round, region) {
            return;
        }
    }
}

/// Splits regions that alone take too much of a tick, and says which cannot be split.
fn relieve_regions(round: &mut Round<'_>) {
    let (state, settings, now) = (round.state, round.settings(), round.now());
    let is_heavy = |at: &usize| {
        let heavy = round.memory.heavy_s(state.regions[*at].id, now);
        heavy.is_some_and(|s| s >= settings.hot_s)
    };
    let mut heavy: Vec<usize> = (0..state.regions.len()).filter(is_heavy).collect();
    let share = |at: &usize| state.regions[*at].share;
    heavy.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.cmp(b)));
    for region in turn(heavy, now) {
        let subject = Subject::Region(state.regions[region].id);
        let has_record = |r: &Record| r.rule == Rule::Split && r.subject == subject;
        if !round.decision.records.iter().any(has_record) {
            splits::relieve(round, region);
        }
    }
}

/// How many nodes the loads and operators ask for now.
fn nodes_wanted(state: &State<'_>) -> u32 {
    let cores: f64 = state.nodes.iter().map(|node| node.site.cores.max(0.01)).sum();
    let each = if state.nodes.is_empty() { 1.0 } else { cores / state.nodes.len() as f64 };
    let by_load = (state.load / state.settings.wanted / each).ceil() as u32;
    let asked = state.scenes.iter().map(|scene| scene.input.limits.min_nodes).max();
    by_load.max(asked.unwrap_or(0)).max(1)
}
