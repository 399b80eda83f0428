//! Brute force over all pairs of a plane: which players must see each other.
//!
//! The key of a pair is (distance in whole centimetres, minus the margin if the pair is linked; the smaller id; the
//! larger id); smaller is better. A pair in range is *blocking* if each of the two has room or sees a player with a
//! worse key. Lists without blocking pairs are the unique stable assignment, which the greedy rule finds.

use purview::scene::{EntityId, Kind};
use rustc_hash::FxHashMap;

use super::findings::Fault;
use super::player::Player;
use super::rules::{self, Range, Reading};
use super::track::{Track, TrackPoint};
use super::{Oracle, SLACK_TICKS};

/// The ids of a pair, the smaller one first.
pub(super) type Pair = (EntityId, EntityId);

pub(super) fn pair(a: EntityId, b: EntityId) -> Pair {
    (a.min(b), a.max(b))
}

/// A pair that should see each other and does not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    /// Since when the two are near enough and both have room.
    pub since: Option<u64>,
    /// The number of ticks for which the pair has been blocking.
    ticks: u64,
    pub counted: bool,
    /// One of the two had a tick without a frame meanwhile. The leave range does not count then: a region that goes on
    /// after a death does not know which pairs were shown, and shows a pair from the enter range on.
    was_held: bool,
    at: u64,
}

/// The pairs that should see each other and do not.
pub(super) type Waiting = FxHashMap<Pair, Wait>;

/// A square table of bits: which slot sees which.
#[derive(Debug, Default)]
pub(super) struct Bits {
    words: usize,
    bits: Vec<u64>,
}

impl Bits {
    pub fn clear(&mut self, n: usize) {
        self.words = n.div_ceil(64);
        self.bits.clear();
        self.bits.resize(n * self.words, 0);
    }

    pub fn set(&mut self, row: usize, column: usize) {
        self.bits[row * self.words + column / 64] |= 1 << (column % 64);
    }

    #[inline]
    pub fn has(&self, row: usize, column: usize) -> bool {
        (self.bits[row * self.words + column / 64] >> (column % 64)) & 1 == 1
    }
}

/// The distance minus the margin, centimetres, then the ids.
type Key = (i64, Pair);

/// A player of the plane, laid out for the inner loop.
struct Stand {
    x: i32,
    z: i32,
    patch: (i32, i32),
    /// At this squared distance and beyond the player wants no other player.
    wanted2: u64,
    slot: u32,
}

pub(super) fn check(oracle: &mut Oracle, t: u64) {
    let mut planes: FxHashMap<TrackPoint, Vec<u32>> = FxHashMap::default();
    let mut worst: Vec<Option<Key>> = vec![None; oracle.players.len()];
    for (slot, player) in oracle.players.iter().enumerate() {
        let track = &oracle.tracks[slot];
        let (Some(player), Some(place)) = (player, track.place) else { continue };
        if player.is_live(t) {
            planes.entry(place).or_default().push(slot as u32);
            worst[slot] = worst_shown(player, track, &oracle.tracks);
        }
    }
    let mut found = Vec::new();
    for slots in planes.values() {
        unshown(oracle, slots, &worst, &mut found);
    }
    // In a fixed order, so that a run can be repeated exactly.
    found.sort_unstable();
    for (a, b) in found {
        consider(oracle, a as usize, b as usize, &worst, t);
    }
    oracle.waiting.retain(|_, wait| wait.at == t);
}

/// The worst key in a full list, with the best of the positions that the server may know; `None` if there is room.
fn worst_shown(player: &Player, me: &Track, tracks: &[Track]) -> Option<Key> {
    if me.has_room() {
        return None;
    }
    let margin = i64::from(me.rules.view_margin_cm);
    let keys = player.shown.iter().filter(|(_, e)| e.kind == Kind::PLAYER).map(|(id, entry)| {
        let other = tracks.get(entry.slot as usize).filter(|track| track.id == *id);
        let d2 = match other {
            Some(o) => me.pos.dist2(o.pos).min(me.pos.dist2(o.late)),
            None => me.pos.dist2(entry.pos),
        };
        (d2.isqrt() as i64 - margin, pair(me.id, *id))
    });
    keys.max()
}

/// Finds the pairs of a plane that are in range, do not see each other, and want each other.
fn unshown(oracle: &Oracle, slots: &[u32], worst: &[Option<Key>], found: &mut Vec<(u32, u32)>) {
    let Some(&first) = slots.first() else { return };
    let range = oracle.tracks[first as usize].range;
    let stands: Vec<Stand> = slots
        .iter()
        .map(|&slot| {
            let track = &oracle.tracks[slot as usize];
            let wanted2 = match worst[slot as usize] {
                None => u64::MAX,
                Some((cm, _)) if cm < 0 => 0,
                Some((cm, _)) => ((cm + 1) * (cm + 1)) as u64,
            };
            Stand { x: track.pos.x, z: track.pos.z, patch: track.patch, wanted2, slot }
        })
        .collect();
    for (i, a) in stands.iter().enumerate() {
        for b in &stands[i + 1..] {
            let d2 = purview::scene::geo::dist2(a.x, a.z, b.x, b.z);
            if d2 >= a.wanted2 || d2 >= b.wanted2 {
                continue;
            }
            // By the margin each of the two may count as in the next patch.
            if matches!(range, Range::Rings) && rules::ring(a.patch, b.patch) > 4 {
                continue;
            }
            let (sa, sb) = (a.slot as usize, b.slot as usize);
            if oracle.shows.has(sa, sb) && oracle.shows.has(sb, sa) {
                continue;
            }
            let (one, two) = (&oracle.tracks[sa], &oracle.tracks[sb]);
            let both = one.rules.range.and(two.rules.range);
            if range.may(both, &Reading::of(one.pos, two.pos, &one.rules)) {
                found.push((a.slot, b.slot));
            }
        }
    }
}

/// Counts a pair that is in range and does not see each other.
fn consider(oracle: &mut Oracle, a: usize, b: usize, worst: &[Option<Key>], t: u64) {
    let (one, two) = (&oracle.tracks[a], &oracle.tracks[b]);
    let name = pair(one.id, two.id);
    let known = oracle.waiting.get(&name).copied();
    if one.is_held(t) || two.is_held(t) {
        if let Some(wait) = oracle.waiting.get_mut(&name) {
            (wait.at, wait.was_held) = (t, true);
        }
        return;
    }
    let lasts = known.is_some_and(|wait| !wait.was_held);
    let must = one.must_see(two) || lasts || parted(oracle, a, b, t);
    if !must || !one.is_near(two) || !blocking(oracle, a, b, worst) {
        return;
    }
    let room = |x: usize, y: usize| oracle.tracks[x].has_room() || oracle.shows.has(x, y);
    let begins = Wait { since: None, ticks: 0, counted: false, was_held: false, at: t };
    let mut wait = known.unwrap_or(begins);
    if room(a, b) && room(b, a) {
        wait.since = wait.since.or(Some(t));
    }
    wait.at = t;
    wait.ticks += 1;
    if wait.ticks > SLACK_TICKS && !wait.counted {
        wait.counted = true;
        let sides = 2 - u64::from(oracle.shows.has(a, b)) - u64::from(oracle.shows.has(b, a));
        oracle.log.findings.updates.expected += sides;
        let cm = one.pos.dist2(two.pos).isqrt();
        let (listed, of) = ((one.listed, two.listed), (one.id, two.id));
        let frameless = [one.held_at, two.held_at].map(|at| match at {
            Some(at) => format!("{} ticks ago", t - at),
            None => "never".to_owned(),
        });
        oracle.log.fault(Fault::Missing, t, || {
            let [a, b] = &frameless;
            format!(
                "{} and {}, {cm} cm apart, lists of {} and {}; without a frame {a} and {b}",
                of.0, of.1, listed.0, listed.1
            )
        });
    }
    oracle.waiting.insert(name, wait);
}

/// Whether the two saw each other until this tick and were never out of range since. Then the leave range decides,
/// not the enter range.
fn parted(oracle: &Oracle, a: usize, b: usize, t: u64) -> bool {
    let (one, two) = (&oracle.tracks[a], &oracle.tracks[b]);
    let left = |x: usize, id: EntityId| {
        oracle.players[x]
            .as_ref()
            .is_some_and(|p| p.parted.iter().any(|p| p.id == id && p.at == t && p.calm))
    };
    let since = t.saturating_sub(SLACK_TICKS);
    (left(a, two.id) || left(b, one.id))
        && one.was_near(two, (since, t), oracle.options.mirror_ticks)
}

/// Whether the two want each other, with the worst of the positions that the server may know.
fn blocking(oracle: &Oracle, a: usize, b: usize, worst: &[Option<Key>]) -> bool {
    let (one, two) = (&oracle.tracks[a], &oracle.tracks[b]);
    let key: Key = (one.dist2_max(two).isqrt() as i64, pair(one.id, two.id));
    let wants =
        |x: usize, y: usize| oracle.shows.has(x, y) || worst[x].is_none_or(|worst| key < worst);
    wants(a, b) && wants(b, a)
}
