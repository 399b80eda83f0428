//! Borders that move: a region of a hot node gives rows of lands to its neighbour on another node.

use super::ground::{Ground, may_change};
use super::moves::heaviest;
use super::record::{Action, Candidate, Ranking, Rejection, Rule, Subject};
use super::round::Round;

/// Rows of lands that a region gives at most.
pub(super) const ROWS: i32 = 2;

/// Shifts a border of a region of a hot node. Returns whether it does.
pub(super) fn relieve(round: &mut Round<'_>, from: usize) -> bool {
    let state = round.state;
    let mut ranking = Ranking::default();
    for region in heaviest(round, from, state.settings.min_gain * state.mean) {
        let near = state.regions[region].report.iter().flat_map(|report| &report.neighbours);
        for near in near.filter_map(|near| state.at.get(&near.region)) {
            if let Some(to) = state.regions[*near].node.filter(|to| *to != from) {
                weigh(round, (region, from), (*near, to), &mut ranking);
            }
        }
    }
    let subject = Subject::Node(state.nodes[from].site.node);
    let inputs = vec![("node", state.nodes[from].share), ("mean", state.mean)];
    round.conclude(ranking, (Rule::Shift, subject), inputs)
}

/// Weighs all shifts of the border between two regions.
fn weigh(round: &Round<'_>, (a, h): (usize, usize), (b, n): (usize, usize), ranking: &mut Ranking) {
    let state = round.state;
    let (gives, takes) = (&state.regions[a], &state.regions[b]);
    if state.nodes[n].share >= state.mean || gives.plot.joins(&takes.plot).is_none() {
        return;
    }
    let ground = Ground::new(round, &[a, b]);
    for lands in 1..=ROWS {
        let Some((left, more)) = gives.plot.given(&takes.plot, lands) else { continue };
        let after = [left, more].map(|plot| ground.share(&plot));
        let change = [after[0] - ground.share(&gives.plot), after[1] - ground.share(&takes.plot)];
        let (hot, cold) = (&state.nodes[h], &state.nodes[n]);
        let on_cold = cold.share + state.on(n, change[1]);
        let gain = hot.share - on_cold.max(hot.share + state.on(h, change[0]));
        let handed = (ground.players(&gives.plot) - ground.players(&left)).max(0.0);
        let players = round.scene(a).share(state.settings.player_us * handed);
        let waste = state.settings.waste * (change[0] + change[1]).max(0.0);
        let candidate = Candidate {
            action: Action::Shift { from: gives.id, to: takes.id, lands },
            gain,
            charge: state.on(h, players + waste),
            after,
            refusal: None,
        };
        let plots = [left, more];
        let returns = round.memory.has_taken(gives.id, takes.id);
        let refusal = is_worth_it(round, &candidate, on_cold)
            .and(if returns { Err(Rejection::Tabu) } else { Ok(()) })
            .and_then(|()| may_shift(round, [a, b], [h, n]))
            .and_then(|()| ground.may_be(&plots));
        ranking.weigh(Candidate { refusal: refusal.err(), ..candidate });
    }
}

fn is_worth_it(round: &Round<'_>, of: &Candidate, on_cold: f64) -> Result<(), Rejection> {
    let settings = round.settings();
    if of.gain < settings.min_gain * round.state.mean {
        Err(Rejection::Gain)
    } else if of.score() <= 0.0 {
        Err(Rejection::Charge)
    } else if on_cold > settings.safety {
        Err(Rejection::Safety)
    } else {
        Ok(())
    }
}

pub(super) fn may_shift(
    round: &Round<'_>,
    both: [usize; 2],
    nodes: [usize; 2],
) -> Result<(), Rejection> {
    if nodes.iter().any(|node| round.is_taken(*node)) {
        return Err(Rejection::Busy);
    }
    if nodes.iter().any(|node| !round.state.nodes[*node].reported) {
        return Err(Rejection::Unreported);
    }
    may_change(round, &both)
}
