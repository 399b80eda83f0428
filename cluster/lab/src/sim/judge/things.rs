//! What players are shown that is no player: what is within their sights, which logic limits and frees.
//!
//! | when | what must hold |
//! |---|---|
//! | a region acts | a player has the limit that logic gave it last, wherever it has gone |
//! | the region of a player has died | it has one of its last limits; none, if it had come just before |
//! | a client is shown a frame | there is nothing that was beyond its sight in that tick, and all that was within for a few |
//! | at rest | the same, by the places where things live |
//!
//! What was within a sight is what the region knew when it made the frame, so that a late frame is judged like any other.
//! Where a store has broken its promise, two owners may differ: then only what is shown at rest is judged.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use purview::scene::inspect::ActingPlayer;
use purview::scene::region::Known;
use purview::scene::{EntityId, Epoch, Kind, Plane, Region, RegionId, SceneSpec, Tick, Visibility};
use rustc_hash::FxHashMap;

use super::quiescence::FRESH;
use super::rules::overlap;
use super::sessions::KEPT;
use super::{Inner, Invariant, Judge, Wrong};

/// How many limits and looks of a player are kept: more than any checkpoint or frame is late.
const REMEMBERED: usize = 100;

/// For how many ticks a thing is within a sight before it must be shown.
const DUE_TICKS: usize = 5;

/// How far things walk while what is known at rest may be old, centimetres.
const WALK_CM: i32 = 300;

/// Kinds that are no players, and the radii at which a player sees them and sees them no more, centimetres.
pub(super) type Circles = Vec<(Kind, (i32, i32))>;

/// A player's limit of sight, centimetres; `None`: none.
type Limit = Option<u32>;

/// The radii of the kinds of a scene, read without the rules that are judged.
pub(super) fn circles(spec: &SceneSpec) -> Circles {
    let usual = match spec.visibility {
        Visibility::Circle { enter_cm, leave_cm } => (enter_cm, leave_cm),
        Visibility::Patches | Visibility::All => return Vec::new(),
    };
    let kinds = (0..).map(Kind).zip(&spec.kinds).skip(1);
    kinds.map(|(kind, of)| (kind, of.circle_cm.unwrap_or(usual))).collect()
}

/// The radii at which a player with this limit sees, and sees no more.
fn limited((enter_cm, leave_cm): (i32, i32), limit: Limit) -> (i32, i32) {
    let Some(limit) = limit.and_then(|cm| i32::try_from(cm).ok()) else {
        return (enter_cm, leave_cm);
    };
    (enter_cm.min(limit), leave_cm.min(limit + limit / 8))
}

fn square(cm: i32) -> u64 {
    u64::from(cm.max(0).unsigned_abs()).pow(2)
}

/// The limits of a player's sight.
#[derive(Debug)]
struct Limited {
    epoch: Epoch,
    region: RegionId,
    /// When it came to that region, and when it was seen last.
    came: Duration,
    at: Duration,
    /// Its last limits, and since when it had each.
    limits: VecDeque<(Duration, Limit)>,
}

impl Limited {
    fn begins(now: Duration, region: RegionId, epoch: Epoch) -> Limited {
        Limited { epoch, region, came: now, at: now, limits: VecDeque::from([(now, None)]) }
    }

    fn last(&self) -> Limit {
        self.limits.back().and_then(|(_, limit)| *limit)
    }

    fn set(&mut self, now: Duration, limit: Limit) {
        if self.limits.len() == REMEMBERED {
            self.limits.pop_front();
        }
        self.limits.push_back((now, limit));
    }

    /// Whether the player may have a limit in its next life in region `here`, where checkpoints had all that is older than
    /// `since`. The checkpoint of the region to which it had just come, or was on its way, may not have the player at all.
    fn may_come_back_with(&self, limit: Limit, here: RegionId, since: Duration) -> bool {
        let ends = self.limits.iter().skip(1).map(|(began, _)| *began).chain([Duration::MAX]);
        let mut had = self.limits.iter().zip(ends).filter(|(_, end)| *end >= since);
        let has_come = self.came >= since || self.region != here;
        had.any(|((_, had), _)| *had == limit) || (limit.is_none() && has_come)
    }

    fn moves(&mut self, now: Duration, region: RegionId, epoch: Epoch) {
        if self.region != region {
            self.came = now;
        }
        (self.region, self.epoch, self.at) = (region, epoch, now);
    }
}

/// What a player sees in a tick, as its region knows the things: those that it must see, and those that it may.
#[derive(Debug)]
struct Look {
    of: (Epoch, Tick),
    must: BTreeSet<EntityId>,
    may: BTreeSet<EntityId>,
}

/// What is wrong with a view of things in this tick. Without a look of the tick nothing is known.
fn wrong_view(
    looks: &VecDeque<Look>,
    of: (Epoch, Tick),
    view: &BTreeSet<EntityId>,
) -> Option<(EntityId, &'static str)> {
    let at = looks.iter().rposition(|look| look.of == of)?;
    let look = &looks[at];
    if let Some(beyond) = view.difference(&look.may).next() {
        return Some((*beyond, "is shown a thing beyond its sight"));
    }
    let before = looks.range((at + 1).checked_sub(DUE_TICKS)?..at);
    let was_due = |id: &&EntityId| {
        before
            .clone()
            .all(|look| look.must.contains(id) && look.of.1.0 + 2 * DUE_TICKS as u64 > of.1.0)
    };
    let missing = look.must.difference(view).find(was_due)?;
    Some((*missing, "is not shown a thing within its sight"))
}

#[derive(Debug, Default)]
pub(super) struct Things {
    kinds: FxHashMap<EntityId, Kind>,
    limited: FxHashMap<EntityId, Limited>,
    looks: FxHashMap<EntityId, VecDeque<Look>>,
    shown: BTreeMap<EntityId, BTreeSet<EntityId>>,
}

impl Judge {
    /// The logic of a region limits the sight of a player that lives there, at once.
    pub fn limits(&self, region: &Region, player: &Known<'_>, limit: Option<u32>) {
        let (now, mut inner) = (self.journal.now(), self.inner());
        let limited = inner.things.limited.entry(player.id);
        let begins = || Limited::begins(now, region.id(), player.epoch);
        limited.or_insert_with(begins).set(now, limit);
    }

    /// A region acts: its players have the limits that logic gave them.
    pub(super) fn limits_last(&self, region: &Region) {
        let now = self.journal.now();
        for player in region.acting_players() {
            let limit = region.sight_limit(player.id);
            let lasts = self.inner().limit_lasts(now, region.id(), &player, limit);
            self.wrong_in(region, lasts);
        }
        let things = region.residents().filter(|known| known.kind != Kind::PLAYER);
        self.inner().things.kinds.extend(things.map(|known| (known.id, known.kind)));
    }

    /// A tick of a region is over: what its players see is what it knew when it looked.
    pub(super) fn looks(&self, region: &Region) {
        let players = region.acting_players().filter(|player| player.plane != Plane::LIMBO);
        for player in players {
            let limit = region.sight_limit(player.id);
            let of = (player.epoch, region.current_tick());
            let mut look = Look { of, must: BTreeSet::new(), may: BTreeSet::new() };
            for (kind, radii) in &self.circles {
                let (enter_cm, leave_cm) = limited(*radii, limit);
                for thing in region.within(player.plane, *kind, player.pos, leave_cm) {
                    look.may.insert(thing.id);
                    if thing.pos.dist2(player.pos) <= square(enter_cm) {
                        look.must.insert(thing.id);
                    }
                }
            }
            let mut inner = self.inner();
            let looks = inner.things.looks.entry(player.id).or_default();
            if looks.len() == REMEMBERED {
                looks.pop_front();
            }
            looks.push_back(look);
        }
    }

    /// A client was shown a frame, and these are the things in its view.
    pub fn things_shown(&self, id: EntityId, of: (Epoch, Tick), view: BTreeSet<EntityId>) {
        let mut inner = self.inner();
        let is_sound = inner.stores_keep_promises();
        let things = &mut inner.things;
        let looks = things.looks.get(&id).filter(|_| is_sound);
        let wrong = looks.and_then(|looks| wrong_view(looks, of, &view));
        things.shown.insert(id, view);
        drop(inner);
        if let Some((thing, how)) = wrong {
            let text = format!("{id} {how} in tick {}: {thing}", of.1);
            self.violated(Invariant::ThingsShown, vec![id, thing], text);
        }
    }
}

impl Inner {
    /// Notes the limit that a player has.
    fn limit_lasts(
        &mut self,
        now: Duration,
        here: RegionId,
        player: &ActingPlayer,
        limit: Limit,
    ) -> Result<(), Wrong> {
        let is_sound = self.stores_keep_promises();
        let Inner { things, without_checkpoints, .. } = self;
        let begins = || Limited::begins(now, here, player.epoch);
        let limited = things.limited.entry(player.id).or_insert_with(begins);
        let last = limited.last();
        let may_have = match limited.epoch.is_of_a_life_before(player.epoch) {
            true => {
                let since = limited.at.saturating_sub(KEPT);
                let unkept = overlap(without_checkpoints, (since, now));
                limited.may_come_back_with(limit, here, since.saturating_sub(unkept))
            }
            false => limit == last,
        };
        limited.moves(now, here, player.epoch);
        if limit != last {
            limited.set(now, limit);
        }
        if may_have || !is_sound {
            return Ok(());
        }
        let id = player.id;
        let text = format!("{id} has the limit of sight {limit:?}, and was given {last:?}");
        Err((Invariant::SightLasts, vec![id], text))
    }

    /// A client that is not shown a thing within its sight, or is shown one beyond.
    pub(super) fn things_not_at_rest(
        &self,
        circles: &Circles,
        now: Duration,
    ) -> Option<(Vec<EntityId>, String)> {
        let radii: BTreeMap<Kind, (i32, i32)> = circles.iter().copied().collect();
        let radii_of = |id| radii.get(self.things.kinds.get(id)?);
        let acts = |id| self.acting.get(id).filter(|a| now.saturating_sub(a.at) <= FRESH);
        let things = self.npcs.iter().filter_map(|id| Some((id, radii_of(id)?, acts(id)?.place())));
        let things: Vec<_> = things.collect();
        self.clients.keys().find_map(|id| {
            let (floor, pos) = acts(id)?.place();
            let limit = self.things.limited.get(id).and_then(Limited::last);
            let shown = self.things.shown.get(id);
            let has = |thing| shown.is_some_and(|shown| shown.contains(thing));
            things.iter().find_map(|(thing, radii, (on, at))| {
                let (enter_cm, leave_cm) = limited(**radii, limit);
                let (apart, dist2) = (*on != floor, pos.dist2(*at));
                let wrong = match has(*thing) {
                    true if apart || dist2 > square(leave_cm + WALK_CM) => "is shown",
                    false
                        if !apart && enter_cm > WALK_CM && dist2 <= square(enter_cm - WALK_CM) =>
                    {
                        "is not shown"
                    }
                    _ => return None,
                };
                let text = format!(
                    "{id} at {pos:?} with the limit {limit:?} {wrong} thing {thing} at {at:?}"
                );
                Some((vec![*id, **thing], text))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[u64]) -> BTreeSet<EntityId> {
        ids.iter().copied().map(EntityId).collect()
    }

    fn seconds(of: u64) -> Duration {
        Duration::from_secs(of)
    }

    #[test]
    fn a_limit_is_the_nearer_of_two_radii_and_an_eighth_more_to_leave() {
        assert_eq!(limited((900, 1_000), None), (900, 1_000));
        assert_eq!(limited((900, 1_000), Some(800)), (800, 900));
        assert_eq!(limited((900, 1_000), Some(950)), (900, 1_000));
        assert_eq!(limited((900, 1_000), Some(0)), (0, 0));
    }

    #[test]
    fn a_player_comes_back_with_a_limit_of_the_last_seconds() {
        let mut limited = Limited::begins(seconds(1), RegionId(0), Epoch(1));
        limited.set(seconds(10), Some(500));
        limited.set(seconds(20), Some(700));
        let may =
            |limited: &Limited, limit| limited.may_come_back_with(limit, RegionId(0), seconds(15));
        assert_eq!([Some(500), Some(700), None].map(|of| may(&limited, of)), [true, true, false]);
        assert!(limited.may_come_back_with(None, RegionId(1), seconds(15)), "it was on its way");
        limited.moves(seconds(16), RegionId(1), Epoch(2));
        assert!(may(&limited, None), "no checkpoint of its new region may have it");
        assert!(!may(&limited, Some(600)));
    }

    #[test]
    fn what_is_within_a_sight_is_shown_in_time_and_what_is_beyond_is_not() {
        let look = |tick, must: &[u64], may: &[u64]| Look {
            of: (Epoch(1), Tick(tick)),
            must: ids(must),
            may: ids(may),
        };
        let mut looks: VecDeque<Look> = (1..=4).map(|tick| look(tick, &[7], &[7, 8])).collect();
        looks.push_back(look(5, &[7, 9], &[7, 8, 9]));
        let wrong = |tick, view: &[u64]| {
            let found = wrong_view(&looks, (Epoch(1), Tick(tick)), &ids(view));
            found.map(|(id, _)| id.0)
        };
        assert_eq!([wrong(5, &[7]), wrong(5, &[7, 8]), wrong(4, &[])], [None; 3]);
        assert_eq!(wrong(5, &[8, 9]), Some(7), "it is due");
        assert_eq!(wrong(4, &[7, 9]), Some(9), "it is beyond");
        assert_eq!(wrong(6, &[1]), None, "nothing is known of that tick");
    }
}
