//! Nobody walks onto a tile that another entity occupies, except from a tile that the same entity occupies.

use std::collections::BTreeMap;

use purview::scene::{EntityId, Epoch, Plane, Region, RegionId, Tick, Tile};
use rustc_hash::FxHashMap;

use super::{Acting, Host};

/// Ticks after which an occupied tile must hold. A client may learn late that a tile is occupied, and its commands are up
/// to a second old.
const KNOWN_TICKS: u64 = 30;

/// The farthest that a player walks from a tick to the next one, centimetres: what goes farther was put there.
const STEP_CM: u32 = 150;

/// Since when, and until when, a region has known of entities on tiles, those that have left a while ago too.
#[derive(Debug)]
struct Held {
    of: ((Host, u64), Epoch),
    /// The last tick that was noted.
    at: Tick,
    spans: FxHashMap<(Plane, Tile, EntityId), (Tick, Tick)>,
}

/// The occupied tiles as each region knows them, neighbours' entities included.
#[derive(Debug, Default)]
pub(super) struct Walls {
    held: BTreeMap<RegionId, Held>,
}

impl Walls {
    pub fn note(&mut self, process: (Host, u64), region: &Region) {
        let (of, now) = ((process, region.epoch()), region.current_tick());
        let before = self.held.remove(&region.id()).filter(|held| held.of == of);
        let (at, mut spans) = before.map_or((now, FxHashMap::default()), |b| (b.at, b.spans));
        spans.retain(|_, (_, until)| now.0 <= until.0 + KNOWN_TICKS);
        for tile in region.occupied() {
            let span = spans.entry(tile).or_insert((now, now));
            let was_away = span.1 < at;
            *span = (if was_away { now } else { span.0 }, now);
        }
        self.held.insert(region.id(), Held { of, at: now, spans });
    }

    /// What must hold of a player from one tick to the next one.
    pub fn check(&self, before: &Acting, now: &Acting, tile_cm: i32) -> Result<(), String> {
        let whose = |acting: &Acting| (acting.region, acting.region_epoch, acting.process);
        let is_same = whose(before) == whose(now) && before.player.epoch == now.player.epoch;
        let (from, to) = (before.player.pos, now.player.pos);
        let walked = before.place().0 == now.place().0
            && from.x.abs_diff(to.x).max(from.z.abs_diff(to.z)) <= STEP_CM;
        let (left, entered) = (Tile::of(from, tile_cm), Tile::of(to, tile_cm));
        if !is_same || !walked || left == entered || now.tick != before.tick.next() {
            return Ok(());
        }
        let (id, plane) = (now.player.id, now.player.plane);
        let Some(held) = self.held.get(&now.region) else { return Ok(()) };
        let on_it = held.spans.iter().filter(|((on, tile, other), (_, until))| {
            let is_there = (*on, *tile, *until) == (plane, entered, held.at) && *other != id;
            // A body lets out what stands in it, and may have moved on since.
            is_there && !held.spans.contains_key(&(plane, left, *other))
        });
        match on_it.min_by_key(|(_, (since, _))| *since) {
            Some(((.., other), (since, _))) if now.tick.0 >= since.0 + KNOWN_TICKS => Err(format!(
                "{id} has walked from {from:?} to {to:?}, which {other} occupies since {since}"
            )),
            _ => Ok(()),
        }
    }
}
