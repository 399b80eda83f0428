//! Regions that move to another node.

use super::record::{Action, Candidate, Ranking, Rejection, Rule, Subject};
use super::round::Round;
use super::state::{NodeState, RegionState};

/// Regions of a node that are weighed for a move, the heaviest ones.
pub(super) const HEAVIEST: usize = 32;

/// A region that leaves its node: what it gains, and what it costs.
struct Step<'a> {
    region: usize,
    from: &'a NodeState<'a>,
    to: &'a NodeState<'a>,
    candidate: Candidate,
}

impl<'a> Step<'a> {
    fn new(round: &Round<'a>, region: usize, (from, to): (usize, usize)) -> Step<'a> {
        let state = round.state;
        let (its, h, n) = (&state.regions[region], &state.nodes[from], &state.nodes[to]);
        let (less, more) = (state.on(from, its.share), state.on(to, its.share));
        let pairs = |node: usize| {
            let near = its.report.iter().flat_map(|report| &report.neighbours);
            let there = near.filter(|near| {
                state.at.get(&near.region).is_some_and(|at| state.regions[*at].node == Some(node))
            });
            there.map(|near| f64::from(near.pairs)).sum::<f64>()
        };
        let charge_us = state.settings.player_us * its.players
            + state.settings.pair_us * (pairs(from) - pairs(to));
        let candidate = Candidate {
            action: Action::Move { region: its.id, from: h.site.node, to: n.site.node },
            gain: h.share - (h.share - less).max(n.share + more),
            charge: state.on(from, round.scene(region).share(charge_us)),
            after: [h.share - less, n.share + more],
            refusal: None,
        };
        Step { region, from: h, to: n, candidate }
    }

    /// Why an operator's wish does not make it possible.
    fn is_possible(&self, round: &Round<'_>, to: usize) -> Result<(), Rejection> {
        if round.is_taken(to) || self.region_of(round).node.is_some_and(|at| round.is_taken(at)) {
            return Err(Rejection::Busy);
        }
        round.may_move(self.region)?;
        if self.to.reported {
            round.state.may_run(self.region, to)
        } else {
            Err(Rejection::Unreported)
        }
    }

    /// Why load alone does not justify it.
    fn is_worth_it(&self, round: &Round<'_>, to: usize) -> Result<(), Rejection> {
        let (settings, now) = (round.settings(), round.now());
        if self.candidate.gain < settings.min_gain * round.state.mean {
            return Err(Rejection::Gain);
        }
        self.is_possible(round, to)?;
        if self.to.site.waits {
            return Err(Rejection::Waits);
        }
        let (region, both) = (self.region_of(round), [self.from.site.node, self.to.site.node]);
        if round.memory.has_left(region.id, both[1]) {
            Err(Rejection::Tabu)
        } else if round.memory.cools(region.id, now) {
            Err(Rejection::Cools)
        } else if self.candidate.after[1] > settings.safety {
            Err(Rejection::Safety)
        } else if self.candidate.score() <= 0.0 {
            Err(Rejection::Charge)
        } else if !round.memory.may_move(both, round.state.nodes.len(), settings, now) {
            Err(Rejection::MoveBudget)
        } else {
            Ok(())
        }
    }

    fn region_of(&self, round: &Round<'a>) -> &'a RegionState<'a> {
        &round.state.regions[self.region]
    }
}

/// Moves a region from each node that must not run it, however even the loads are.
pub(super) fn place(round: &mut Round<'_>) {
    for from in 0..round.state.nodes.len() {
        let its = &round.state.nodes[from].regions;
        let wrong = |region: &&usize| round.state.may_run(**region, from).is_err();
        let mut wrong = its.iter().filter(wrong);
        let Some(region) = wrong.clone().find(|at| round.may_move(**at).is_ok()).or(wrong.next())
        else {
            continue;
        };
        let mut ranking = Ranking::default();
        for to in (0..round.state.nodes.len()).filter(|to| *to != from) {
            let step = Step::new(round, *region, (from, to));
            let refusal = step.is_possible(round, to).err();
            // What counts is the room that is left.
            let gain = 1.0 - step.candidate.after[1];
            ranking.weigh(Candidate { gain, refusal, ..step.candidate });
        }
        let subject = Subject::Region(round.state.regions[*region].id);
        let inputs = vec![("node", round.state.nodes[from].share)];
        round.conclude(ranking, (Rule::Misplaced, subject), inputs);
    }
}

pub(super) fn heaviest(round: &Round<'_>, node: usize, least: f64) -> Vec<usize> {
    let state = round.state;
    let share = |at: &usize| state.regions[*at].share;
    let its = state.nodes[node].regions.iter().copied();
    let mut its: Vec<usize> = its.filter(|at| state.on(node, share(at)) >= least).collect();
    its.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.cmp(b)));
    its.truncate(HEAVIEST);
    its
}

/// Moves a region from a hot node. Returns whether it does.
pub(super) fn relieve(round: &mut Round<'_>, from: usize) -> bool {
    let state = round.state;
    let mut ranking = Ranking::default();
    for region in heaviest(round, from, state.settings.min_gain * state.mean) {
        for to in (0..state.nodes.len()).filter(|to| *to != from) {
            let step = Step::new(round, region, (from, to));
            let refusal = step.is_worth_it(round, to).err();
            ranking.weigh(Candidate { refusal, ..step.candidate });
        }
    }
    let subject = Subject::Node(state.nodes[from].site.node);
    let inputs = vec![("node", state.nodes[from].share), ("mean", state.mean)];
    round.conclude(ranking, (Rule::Move, subject), inputs)
}
