//! Light regions of one node that become one.

use std::collections::BTreeMap;

use purview::scene::layout::{Axis, PlaneGroup};
use rustc_hash::FxHashMap;

use super::ground::{Ground, may_change};
use super::record::{Action, Candidate, Ranking, Rejection, Rule, Subject};
use super::round::Round;

/// Pairs whose layouts are judged, those first that save most.
const JUDGED: usize = 8;

/// Where a region begins, and how long its side there is.
type Side = (usize, PlaneGroup, Axis, i32, (i32, i32));

/// Merges at most one pair of regions in each scene.
pub(super) fn merge(round: &mut Round<'_>) {
    let mut pairs: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    for (a, b) in light_pairs(round) {
        pairs.entry(round.state.regions[a].scene).or_default().push((a, b));
    }
    for (_, pairs) in pairs {
        let mut saves: Vec<_> = pairs.into_iter().map(|(a, b)| candidate(round, a, b)).collect();
        saves.sort_by(|x, y| y.0.score().total_cmp(&x.0.score()).then(x.0.action.cmp(&y.0.action)));
        saves.truncate(JUDGED);
        let mut ranking = Ranking::default();
        let mut subject = Subject::Cluster;
        for (candidate, [stays, gone]) in saves {
            if ranking.best().is_ok() {
                break;
            }
            subject = Subject::Region(round.state.regions[stays].id);
            let refusal = may_merge(round, stays, gone, &candidate).err();
            ranking.weigh(Candidate { refusal, ..candidate });
        }
        round.conclude(ranking, (Rule::Merge, subject), Vec::new());
    }
}

/// Pairs of regions that follow each other on one node and have been light for long enough.
fn light_pairs(round: &Round<'_>) -> Vec<(usize, usize)> {
    let (state, now) = (round.state, round.now());
    let is_light = |at: usize| {
        let id = state.regions[at].id;
        round.memory.light_s(id, now).is_some_and(|s| s >= state.settings.light_s)
    };
    let side = |at: usize, axis: Axis, land: fn((i32, i32)) -> i32| -> Side {
        let region = &state.regions[at];
        let (along, across) = match axis {
            Axis::X => (region.plot.along(Axis::X), region.plot.along(Axis::Z)),
            Axis::Z => (region.plot.along(Axis::Z), region.plot.along(Axis::X)),
        };
        (region.scene, region.plot.group, axis, land(along), across)
    };
    let may = |scene: usize| {
        let scene = &state.scenes[scene];
        let changes = scene.input.changing || scene.moves;
        let least = scene.input.limits.min_regions.max(1) as usize;
        let may = round.memory.may_change(&scene.input.name, state.settings, now);
        may && !changes && scene.regions.len() > least
    };
    let scenes: Vec<bool> = (0..state.scenes.len()).map(may).collect();
    let mut pairs = Vec::new();
    for node in &state.nodes {
        let its = node.regions.iter().copied();
        let its: Vec<usize> =
            its.filter(|at| scenes[state.regions[*at].scene] && is_light(*at)).collect();
        for axis in [Axis::X, Axis::Z] {
            let begin = its.iter().map(|at| (side(*at, axis, |(from, _)| from), *at));
            let begin: FxHashMap<Side, usize> = begin.collect();
            let next = |at: &usize| Some((*at, *begin.get(&side(*at, axis, |(_, to)| to))?));
            pairs.extend(its.iter().filter_map(next));
        }
    }
    pairs
}

/// The merge of two regions: the one with more players stays.
fn candidate(round: &Round<'_>, a: usize, b: usize) -> (Candidate, [usize; 2]) {
    let regions = &round.state.regions;
    let more = |at: usize| (regions[at].players, std::cmp::Reverse(regions[at].id));
    let [stays, gone] = if more(b) > more(a) { [b, a] } else { [a, b] };
    let settings = round.settings();
    // What each pays for the other's ghosts, by what an entity costs it.
    let ghosts = |of: usize, other: usize| {
        let region = &regions[of];
        let near = region.report.iter().flat_map(|report| &report.neighbours);
        let of_it = near.filter(|near| near.region == regions[other].id);
        let ghosts: f64 = of_it.map(|near| settings.ghost * f64::from(near.ghosts)).sum();
        region.share * ghosts / (region.players + ghosts).max(1.0)
    };
    let saved = ghosts(a, b) + ghosts(b, a);
    let together = (regions[a].share + regions[b].share - saved).max(0.0);
    let node = regions[stays].node.unwrap_or_default();
    let candidate = Candidate {
        action: Action::Merge { region: regions[stays].id, gone: regions[gone].id },
        gain: round.state.on(node, saved),
        charge: 0.0,
        after: [together, 0.0],
        refusal: None,
    };
    (candidate, [stays, gone])
}

fn may_merge(
    round: &Round<'_>,
    stays: usize,
    gone: usize,
    candidate: &Candidate,
) -> Result<(), Rejection> {
    let (state, now) = (round.state, round.now());
    let both = [stays, gone];
    if candidate.after[0] > state.settings.light_together {
        return Err(Rejection::Heavy);
    }
    let split = |at: &usize| round.memory.was_split(state.regions[*at].id, now, state.settings);
    if both.iter().any(split) {
        return Err(Rejection::Tabu);
    }
    may_change(round, &both)?;
    let (a, b) = (state.regions[stays].plot, state.regions[gone].plot);
    let (x0, z0) = (a.x0.min(b.x0), a.z0.min(b.z0));
    let union =
        purview::scene::layout::Plot { x0, z0, x1: a.x1.max(b.x1), z1: a.z1.max(b.z1), ..a };
    Ground::new(round, &both).may_be(&[union])
}
