//! Regions that are cut in two, where a cut costs least.
//!
//! A cut alone only adds ghosts. So it is weighed together with the move of the part with fewer players that may
//! follow it; that move is decided for itself, when the part has an owner. A region that cannot be cut well stays
//! whole, and the record has the cuts that were weighed.

use purview::scene::layout::{Axis, Plot};

use super::ground::{Ground, may_change};
use super::record::{Action, Candidate, Ranking, Rejection, Rule, Subject};
use super::round::Round;

/// Splits a region if it should. Returns whether it does.
pub(super) fn relieve(round: &mut Round<'_>, region: usize) -> bool {
    let state = round.state;
    let its = &state.regions[region];
    let Some(node) = its.node else { return false };
    let mut ranking = Ranking::default();
    let ground = Ground::new(round, &[region]);
    for axis in [Axis::X, Axis::Z] {
        let (from, to) = its.plot.along(axis);
        for land in from + 1..to {
            if let Some(parts) = its.plot.cut(axis, land) {
                ranking.weigh(weigh(&ground, round, (region, node), (axis, land), parts));
            }
        }
    }
    let inputs = vec![
        ("node", state.nodes[node].share),
        ("mean", state.mean),
        ("region", its.share),
        ("p99", its.p99),
        ("players", its.players),
    ];
    round.conclude(ranking, (Rule::Split, Subject::Region(its.id)), inputs)
}

fn weigh(
    ground: &Ground<'_>,
    round: &Round<'_>,
    (region, node): (usize, usize),
    (axis, land): (Axis, i32),
    (a, b): (Plot, Plot),
) -> Candidate {
    let (state, settings) = (round.state, round.settings());
    let its = &state.regions[region];
    let after = [a, b].map(|part| ground.share(&part));
    let players = [ground.players(&a), ground.players(&b)];
    // The part with fewer players gets the new id and may move.
    let first = (players[0], after[0]) < (players[1], after[1]);
    let [stays, goes] = if first { [after[1], after[0]] } else { after };
    let handed = players[0].min(players[1]);
    let waste = (after[0] + after[1] - its.share).max(0.0);
    let hot = &state.nodes[node];
    // What is the pace before and after: the node, or a region of it, which runs on one thread.
    let with = |change: f64| hot.share + state.on(node, change);
    let at_home = with(stays + goes - its.share).max(stays).max(goes);
    let elsewhere = (0..state.nodes.len()).filter(|to| {
        let may = *to != node && state.nodes[*to].reported && state.may_run(region, *to).is_ok();
        may && state.nodes[*to].share + state.on(*to, goes) <= settings.safety
    });
    let least = elsewhere
        .map(|to| (state.nodes[to].share + state.on(to, goes)).max(with(stays - its.share)))
        .map(|after| after.max(stays).max(goes))
        .fold(at_home, f64::min);
    let action = Action::Split { region: its.id, axis, land, first };
    let charge_us = round.scene(region).share(settings.player_us * handed);
    let candidate = Candidate {
        action,
        gain: hot.share.max(its.share) - least,
        charge: state.on(node, settings.waste * waste + charge_us),
        after,
        refusal: None,
    };
    let refusal = is_worth_it(round, region, &candidate)
        .and_then(|()| may_split(round, region, node))
        .and_then(|()| {
            ground.may_be(&[a, Plot { id: round.scene(region).input.layout.next, ..b }])
        });
    Candidate { refusal: refusal.err(), ..candidate }
}

fn is_worth_it(round: &Round<'_>, region: usize, of: &Candidate) -> Result<(), Rejection> {
    let (settings, its) = (round.settings(), &round.state.regions[region]);
    let emergency = usize::from(its.p99 > settings.emergency);
    let (largest, both) = (of.after[0].max(of.after[1]), of.after[0] + of.after[1]);
    if largest > settings.largest_part[emergency] * its.share {
        Err(Rejection::LargePart)
    } else if both > settings.both_parts[emergency] * its.share {
        Err(Rejection::Ghosts)
    } else if of.gain < settings.min_gain * round.state.mean {
        Err(Rejection::Gain)
    } else if of.score() <= 0.0 {
        Err(Rejection::Charge)
    } else {
        Ok(())
    }
}

fn may_split(round: &Round<'_>, region: usize, node: usize) -> Result<(), Rejection> {
    let (state, its) = (round.state, &round.state.regions[region]);
    let scene = round.scene(region);
    let most = scene.input.limits.max_regions as usize;
    if most > 0 && scene.regions.len() >= most {
        return Err(Rejection::MaxRegions);
    }
    if round.memory.was_merged(its.id, round.now(), state.settings) {
        return Err(Rejection::Tabu);
    }
    if round.is_taken(node) {
        return Err(Rejection::Busy);
    }
    may_change(round, &[region])
}
