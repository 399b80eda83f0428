//! Borders that cut a crowd: a region gives rows of lands to its neighbour where both then have much less to do, and the
//! busier of them no more than before.
//!
//! A ghost costs more than its original, so a crowd on both sides of a border costs its two regions more than twice what
//! it costs one. A border may go back past a crowd at any time: it only goes where less is to be done, so that it does
//! not go to and fro.

use super::ground::Ground;
use super::record::{Action, Candidate, Ranking, Rejection, Rule, Subject};
use super::round::Round;
use super::shifts::{ROWS, may_shift};
use super::turn;

/// Shifts the border that costs the most, among those of the heaviest regions.
pub(super) fn gather(round: &mut Round<'_>) {
    let state = round.state;
    let share = |at: &usize| state.regions[*at].share;
    let mut heavy: Vec<usize> =
        (0..state.regions.len()).filter(|at| share(at) > state.settings.light).collect();
    heavy.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.cmp(b)));
    let mut ranking = Ranking::default();
    for a in turn(heavy, round.now()) {
        let near = state.regions[a].report.iter().flat_map(|report| &report.neighbours);
        for near in near.filter(|near| near.pairs > 0) {
            if let Some(b) = state.at.get(&near.region) {
                weigh(round, a, *b, &mut ranking);
            }
        }
    }
    if let Some(Action::Shift { from, .. }) = ranking.first().map(|candidate| candidate.action) {
        let inputs = vec![("mean", state.mean)];
        round.conclude(ranking, (Rule::Gather, Subject::Region(from)), inputs);
    }
}

/// Weighs what `a` may give to `b`.
fn weigh(round: &Round<'_>, a: usize, b: usize, ranking: &mut Ranking) {
    let state = round.state;
    let (gives, takes) = (&state.regions[a], &state.regions[b]);
    let (Some(h), Some(n)) = (gives.node, takes.node) else { return };
    let ground = Ground::new(round, &[a, b]);
    let before = [gives, takes].map(|region| ground.share(&region.plot));
    // What the nodes have to do beside these regions.
    let rest = |node: usize, its: f64| state.nodes[node].share - state.on(node, its);
    let busier = |[left, more]: [f64; 2]| {
        let node = if h == n {
            rest(h, gives.share + takes.share) + state.on(h, left + more)
        } else {
            (rest(h, gives.share) + state.on(h, left)).max(rest(n, takes.share) + state.on(n, more))
        };
        node.max(left).max(more)
    };
    for lands in 1..=ROWS {
        let Some((left, more)) = gives.plot.given(&takes.plot, lands) else { continue };
        let after = [left, more].map(|plot| ground.share(&plot));
        let saved = before[0] + before[1] - after[0] - after[1];
        let is_slower = busier(after) > busier(before);
        let handed = (ground.players(&gives.plot) - ground.players(&left)).max(0.0);
        let candidate = Candidate {
            action: Action::Shift { from: gives.id, to: takes.id, lands },
            gain: state.on(h, saved),
            charge: state.on(h, round.scene(a).share(state.settings.player_us * handed)),
            after,
            refusal: None,
        };
        // Nothing is said of borders that cost little.
        if candidate.gain < state.settings.gather * state.mean || candidate.score() <= 0.0 {
            continue;
        }
        let may = if is_slower { Err(Rejection::Heavy) } else { may_shift(round, [a, b], [h, n]) };
        let refusal = may.and_then(|()| ground.may_be(&[left, more])).err();
        ranking.weigh(Candidate { refusal, ..candidate });
    }
}
