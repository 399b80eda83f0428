//! The rules of the judge as pure functions of what was observed before and what is observed now.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;

use purview::scene::inspect::ActingPlayer;
use purview::scene::{EntityId, Epoch, Plane, Pos, RegionId, SceneId, Tick};

use super::{Acting, Authority};
use crate::sim::network::Host;

/// Which process may act for a region: one with a newer epoch than the last one, or the same process.
pub fn one_authority(
    before: Option<&Authority>,
    epoch: Epoch,
    process: (Host, u64),
) -> Result<(), String> {
    let Some(before) = before else { return Ok(()) };
    match epoch.cmp(&before.epoch) {
        Ordering::Greater => Ok(()),
        Ordering::Equal if process == before.process => Ok(()),
        _ => Err(format!(
            "{process:?} acts under epoch {epoch}; {:?} has acted under {} in tick {}",
            before.process, before.epoch, before.tick
        )),
    }
}

/// Which place may act for an entity: one with a newer epoch of the entity, then of the region, or the same place.
pub fn one_real(before: &Acting, now: &Acting) -> Result<(), String> {
    let same_region = now.region == before.region;
    let goes_on = match now.region_epoch.cmp(&before.region_epoch) {
        Ordering::Greater => same_region,
        Ordering::Equal => same_region && now.process == before.process,
        Ordering::Less => false,
    };
    let epoch = now.player.epoch.cmp(&before.player.epoch);
    if epoch == Ordering::Greater || (epoch == Ordering::Equal && goes_on) {
        return Ok(());
    }
    let place = |a: &Acting| {
        format!(
            "in region {} of {:?} under {} (region's {}), tick {}",
            a.region, a.process, a.player.epoch, a.region_epoch, a.tick
        )
    };
    Err(format!("{} acts {}, and acted {}", now.player.id, place(now), place(before)))
}

pub fn input_order(before: &ActingPlayer, now: &ActingPlayer) -> Result<(), String> {
    let born_anew = before.epoch.is_of_a_life_before(now.epoch);
    if born_anew || now.last_applied >= before.last_applied {
        return Ok(());
    }
    let (id, back) = (now.id, now.last_applied);
    Err(format!("{id} has applied input {back} after {}", before.last_applied))
}

/// The text of a violation: the age of a neighbour's ghosts, and the greatest legal age, ticks.
pub fn old_ghosts(
    (region, tick): (RegionId, Tick),
    (neighbour, age): (RegionId, u64),
    bound: u64,
) -> String {
    format!(
        "ghosts of region {neighbour} are {age} ticks old in region {region}, tick {tick}, at most {bound} are legal"
    )
}

/// How much of the time from `since` to `until` lies within these periods.
pub fn overlap(times: &[(Duration, Duration)], (since, until): (Duration, Duration)) -> Duration {
    let part =
        |(from, to): &(Duration, Duration)| (*to).min(until).saturating_sub((*from).max(since));
    times.iter().map(part).sum()
}

/// A client is shown the actions of a player in the order in which the player did them.
pub fn act_order(before: Option<u64>, now: u64) -> Result<(), String> {
    match before {
        Some(before) if now <= before => {
            Err(format!("action {now} is shown after action {before}"))
        }
        _ => Ok(()),
    }
}

/// A plane of a scene. Entities of other planes are not visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Floor {
    pub scene: SceneId,
    pub plane: Plane,
}

pub type PlacedAt = (Floor, Pos);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scope {
    /// An entity within this distance must be shown, centimetres.
    pub near_cm: i32,
    /// An entity beyond this distance must not be shown, centimetres.
    pub far_cm: i32,
    /// Entities no farther apart in height than the first must be shown, beyond the second they must not be,
    /// centimetres; `None`: heights do not count.
    pub height_cm: Option<(i32, i32)>,
    /// How much nearer an entity must be to replace another one, centimetres.
    pub margin_cm: i32,
    /// Whether more entities may be near than view lists have places: then the best pairs are shown.
    pub crowded: bool,
    /// Whether moves are judged: then the position follows from the last move command and the time.
    pub judged: bool,
}

fn within(cm: i32) -> u64 {
    u64::from(cm.unsigned_abs()).pow(2)
}

impl Scope {
    /// Whether two entities at these places of one plane must be shown to each other, if there is room.
    pub fn is_near(&self, a: Pos, b: Pos) -> bool {
        let level = self.height_cm.is_none_or(|(near, _)| (a.y - b.y).abs() <= near);
        level && a.dist2(b) <= within(self.near_cm)
    }

    /// Whether two entities at these places must not be shown to each other.
    fn is_far(&self, a: Pos, b: Pos) -> bool {
        let level = self.height_cm.is_none_or(|(_, far)| (a.y - b.y).abs() <= far);
        !level || a.dist2(b) > within(self.far_cm)
    }
}

/// An entity in a view is shown at its position and is at most `far_cm` away. Every entity within `near_cm` is shown,
/// if there is room for all.
pub fn shown_are_near(
    me: (EntityId, PlacedAt),
    shown: &BTreeMap<EntityId, Pos>,
    all: &BTreeMap<EntityId, PlacedAt>,
    scope: &Scope,
) -> Result<(), (EntityId, String)> {
    for (id, place) in all.iter().filter(|(id, _)| **id != me.0) {
        let (here, there) = (me.1.1, place.1);
        let apart = me.1.0 != place.0;
        let wrong = match shown.get(id) {
            None if !apart && scope.is_near(here, there) && !scope.crowded => {
                "is not shown a near entity"
            }
            Some(_) if apart => "is shown an entity on another plane or in another scene",
            Some(seen) if *seen != place.1 => "is shown a wrong position",
            Some(_) if scope.is_far(here, there) => "is shown a distant entity",
            _ => continue,
        };
        let (who, seen) = (me.0, shown.get(id));
        return Err((*id, format!("{who} {wrong}: {id} at {place:?}, shown at {seen:?}")));
    }
    match shown.keys().find(|id| !all.contains_key(id)) {
        Some(id) => Err((*id, format!("{} is shown {id}, which does not exist", me.0))),
        None => Ok(()),
    }
}

/// Views at rest, of lists with these caps, are symmetric and stable: no two entities would prefer each other to what
/// they see (`docs/contributing/views.md`). A pair that has a bond comes before all that have none.
pub fn views_are_stable(
    shown: &BTreeMap<EntityId, BTreeMap<EntityId, Pos>>,
    cap_of: impl Fn(EntityId) -> usize,
    is_bonded: impl Fn(&EntityId, &EntityId) -> bool,
    all: &BTreeMap<EntityId, PlacedAt>,
    scope: &Scope,
) -> Result<(), (EntityId, EntityId, String)> {
    let sees = |a: &EntityId, b: &EntityId| shown.get(a).is_some_and(|view| view.contains_key(b));
    let dist = |a: &PlacedAt, b: &PlacedAt| (a.1.dist2(b.1) as f64).sqrt() as i64;
    let would = |a: &EntityId, at: &PlacedAt, key: (bool, i64, EntityId, EntityId)| {
        let Some(view) = shown.get(a) else { return false };
        let worse = |(other, pos): (&EntityId, &Pos)| {
            let held = dist(at, &(at.0, *pos)) - i64::from(scope.margin_cm);
            (!is_bonded(a, other), held, *a.min(other), *a.max(other)) > key
        };
        view.len() < cap_of(*a) || view.iter().any(worse)
    };
    for (a, at) in all {
        for (b, other) in all.range(a..).skip(1) {
            match (sees(a, b), sees(b, a)) {
                (true, true) => continue,
                (true, false) => {
                    return Err((*a, *b, format!("{a} is shown {b}, but {b} is not shown {a}")));
                }
                (false, true) => {
                    return Err((*b, *a, format!("{b} is shown {a}, but {a} is not shown {b}")));
                }
                (false, false) => {}
            }
            let near = at.0 == other.0 && scope.is_near(at.1, other.1);
            let key = (!is_bonded(a, b), dist(at, other), *a, *b);
            if near && would(a, at, key) && would(b, other, key) {
                let text = format!(
                    "{a} at {at:?} and {b} at {other:?}, {} cm apart, are a blocking pair",
                    key.1
                );
                return Err((*a, *b, text));
            }
        }
    }
    Ok(())
}
