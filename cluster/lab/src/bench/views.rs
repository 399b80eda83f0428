//! `purview-lab bench views`: how stable the view lists of a crowd are and what their negotiation costs, with several
//! margins, in one region and around the corner of four.
//!
//! Everything but the CPU time is virtual: it is the same on every machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use purview::scene::messages::{Input, Notice, Order};
use purview::scene::{
    EntityId, Kind, Plane, Pos, Region, RegionId, Scene, SceneSpec, Seq, SessionId, Visibility,
};
use serde::Serialize;

use super::interest::waypoint_walkers::WaypointWalkers;
use super::regions::{LAND_CM, Regions, Sessions, scene, spawn};
use super::{Shown, cpu_us};
use crate::args::positive;
use crate::shown::table;

/// The numbers of players that can be measured: every entry of every list is compared in every tick.
const PLAYERS: std::ops::RangeInclusive<usize> = 1..=100_000;

/// In a crowd of a greater deviation hardly any two players are in range.
const SIGMA_MAX_M: f64 = 1_000.0;

/// An entry has flickered if it comes back within so many ticks after it left: 2 s.
const FLICKER_TICKS: u64 = 20;

const CAP: usize = 60;

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview-lab bench views\n  \
    purview-lab bench views --players 300 --sigma 20 --margins 0,1,2,4 --json\n\n\
    All players walk at 1.4 m/s between places that are normally distributed around one point, 10 ticks per second.\n\n\
    Exit codes: 0 done, 1 failed, or a list is not symmetric, exceeds its cap, or was made for a wrong position, 2 \
    invalid command line.")]
pub struct BenchViewsArgs {
    /// The number of players.
    #[arg(long, default_value_t = 1_000)]
    pub players: usize,
    /// The deviations of the crowds along each axis, metres.
    #[arg(long, value_name = "METRES", value_delimiter = ',', default_value = "20,60", value_parser = positive)]
    pub sigma: Vec<f64>,
    /// The margins before a player in view is replaced, metres.
    #[arg(long, value_name = "METRES", value_delimiter = ',', default_value = "0,2")]
    pub margins: Vec<f64>,
    /// The measured virtual time, seconds.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// The warm-up, seconds of virtual time.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(..=86_400))]
    pub warm_up: u64,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct ViewsRow {
    /// The deviation along each axis, metres.
    pub sigma_m: f64,
    pub regions: usize,
    pub margin_m: f64,
    /// The mean length of a list.
    pub seen: f64,
    /// Entries that came into a list, per player and second.
    pub enters: f64,
    /// Of these, entries that had left the list within the last 2 s.
    pub flicker: f64,
    pub messages: f64,
    /// Of these, messages to another region.
    pub between_regions: f64,
    /// Batches between regions, per region and tick.
    pub batches: f64,
    /// CPU microseconds per player and tick.
    pub us: f64,
    /// Pairs that were one-sided for too long, lists above the cap, and players at a wrong position.
    pub faults: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct ViewsBench {
    pub rows: Vec<ViewsRow>,
}

impl Shown for ViewsBench {
    fn is_valid(&self) -> bool {
        self.rows.iter().all(|row| row.faults == 0)
    }

    fn text(&self) -> serde_json::Result<String> {
        table(&self.rows)
    }
}

pub fn bench_views(args: &BenchViewsArgs) -> anyhow::Result<ViewsBench> {
    if !PLAYERS.contains(&args.players) || args.sigma.iter().any(|m| *m > SIGMA_MAX_M) {
        bail!("--players must be in {PLAYERS:?}, and --sigma at most {SIGMA_MAX_M} m");
    }
    let mut rows = Vec::new();
    for &sigma_m in &args.sigma {
        for four in [false, true] {
            for &margin_m in &args.margins {
                let rules = Rules { sigma_m, four, margin_m, cap: CAP };
                let row = measure(rules, args.players, (args.warm_up, args.seconds))?;
                eprintln!("{row:?}");
                rows.push(row);
            }
        }
    }
    Ok(ViewsBench { rows })
}

/// What is measured: the deviation of a crowd, whether it stands at the corner of four regions, and the lists.
#[derive(Debug, Clone, Copy)]
struct Rules {
    sigma_m: f64,
    four: bool,
    margin_m: f64,
    cap: usize,
}

/// The region of each player, as its session was told.
impl Sessions for Vec<RegionId> {
    fn told(&mut self, session: SessionId, notice: Notice) -> Option<(RegionId, Input)> {
        if let Notice::Route(route) = notice {
            self[session.0 as usize - 1] = route.region;
        }
        None
    }
}

pub(super) struct Walk {
    walkers: WaypointWalkers,
    places: Vec<Pos>,
    pub(super) regions: Regions<Vec<RegionId>>,
    seq: Seq,
}

impl Walk {
    /// The crowd is around the centre of the map, which is a corner of four lands.
    fn new(rules: Rules, players: usize) -> anyhow::Result<Walk> {
        // Random numbers go no further than nine deviations.
        let lands = ((9.0 * rules.sigma_m * 100.0) / f64::from(LAND_CM)).ceil().max(1.0) as i32;
        let (map_cm, side) = (2 * lands * LAND_CM, if rules.four { lands } else { 2 * lands });
        let spec = SceneSpec {
            name: "bench".into(),
            width_cm: map_cm,
            depth_cm: map_cm,
            land_cm: LAND_CM,
            region_lands_x: side,
            region_lands_z: side,
            visibility: Visibility::Circle { enter_cm: 8_000, leave_cm: 8_500 },
            view_cap: rules.cap,
            view_margin_cm: (rules.margin_m * 100.0) as i32,
            spawn_x_cm: 0,
            spawn_z_cm: 0,
            ..SceneSpec::default()
        };
        let walkers = WaypointWalkers::gathered(players, rules.sigma_m * 100.0, map_cm);
        Walk::on(scene(spec)?, walkers)
    }

    pub(super) fn on(scene: Arc<Scene>, walkers: WaypointWalkers) -> anyhow::Result<Walk> {
        let places = walkers.places();
        let at = |pos: &Pos| scene.map.at(Plane(0), *pos).map(|region| region.id);
        let live_in = places.iter().map(at).collect::<Option<Vec<_>>>();
        let live_in = live_in.context("a player is outside of the map")?;
        let mut regions = Regions::new(scene.clone(), live_in.clone())?;
        for ((number, pos), region) in (1..).zip(&places).zip(live_in) {
            let spawn = spawn(number, Kind::PLAYER, *pos);
            regions.send(region, Input::Enter(Box::new(spawn)));
        }
        regions.step();
        Ok(Walk { walkers, places, regions, seq: Seq(0) })
    }

    /// All players walk for a tick. Gives the CPU time of the regions, microseconds.
    pub(super) fn step(&mut self) -> f64 {
        self.walkers.step();
        self.places = self.walkers.places();
        let from = cpu_us();
        self.seq = self.seq.next();
        for (number, pos) in (1..).zip(&self.places) {
            let input = Input::Client {
                id: EntityId(number),
                session: SessionId(number),
                seq: self.seq,
                order: Order::Move(*pos),
                handle: Default::default(),
            };
            self.regions.send(self.regions.sessions[number as usize - 1], input);
        }
        self.regions.step();
        cpu_us() - from
    }

    /// The list of each player; `None`: the player is not where it has walked to.
    fn lists(&self) -> Vec<Option<BTreeSet<u64>>> {
        let list = |(number, pos): (u64, &Pos)| {
            let region = self.regions.all.get(&self.regions.sessions[number as usize - 1])?;
            let player = region.inspect_player(EntityId(number)).filter(|p| p.pos == *pos)?;
            Some(player.view.iter().map(|entry| entry.id.0).collect())
        };
        (1..).zip(&self.places).map(list).collect()
    }

    /// Messages within regions and between them, and batches, since the start.
    fn sent(&self) -> [u64; 3] {
        let sum = |of: fn(&Region) -> u64| self.regions.all.values().map(of).sum();
        let within = sum(|region| region.counts().local_view_messages);
        [within, sum(|region| region.counts().view_messages), self.regions.batches]
    }
}

/// The lists of the last tick, and how they have changed.
#[derive(Default)]
struct Changes {
    tick: u64,
    lists: Vec<BTreeSet<u64>>,
    left: BTreeMap<(u64, u64), u64>,
    /// Pairs of which only the first one listed the other one.
    odd: BTreeSet<(u64, u64)>,
    entries: u64,
    enters: u64,
    flickers: u64,
    faults: u64,
}

impl Changes {
    fn see(&mut self, lists: Vec<Option<BTreeSet<u64>>>, rules: Rules) {
        self.tick += 1;
        self.faults += lists.iter().filter(|list| list.is_none()).count() as u64;
        let lists: Vec<BTreeSet<u64>> = lists.into_iter().map(Option::unwrap_or_default).collect();
        let listed = |me: u64, other: &u64| lists[*other as usize - 1].contains(&me);
        let mut odd = BTreeSet::new();
        for (me, list) in (1..).zip(&lists) {
            self.entries += list.len() as u64;
            self.faults += u64::from(list.len() > rules.cap);
            odd.extend(list.iter().filter(|other| !listed(me, other)).map(|other| (me, *other)));
            let Some(before) = self.lists.get(me as usize - 1) else { continue };
            for other in list.difference(before) {
                self.enters += 1;
                let left = self.left.remove(&(me, *other));
                self.flickers += u64::from(left.is_some_and(|at| at + FLICKER_TICKS >= self.tick));
            }
            self.left.extend(before.difference(list).map(|other| ((me, *other), self.tick)));
        }
        // A message to an entity in a handoff arrives in the next tick.
        let wrong = if rules.four { odd.intersection(&self.odd).count() } else { odd.len() };
        self.faults += wrong as u64;
        (self.lists, self.odd) = (lists, odd);
    }
}

/// Lets a crowd walk. Only making the lists is timed.
fn measure(rules: Rules, players: usize, seconds: (u64, u64)) -> anyhow::Result<ViewsRow> {
    let (mut walk, mut changes) = (Walk::new(rules, players)?, Changes::default());
    for _ in 0..(seconds.0 * 10).max(1) {
        walk.step();
        changes.see(walk.lists(), rules);
    }
    (changes.entries, changes.enters, changes.flickers) = (0, 0, 0);
    let (before, ticks, mut us) = (walk.sent(), seconds.1 * 10, 0.0);
    for _ in 0..ticks {
        us += walk.step();
        changes.see(walk.lists(), rules);
    }
    let sent = walk.sent();
    let [within, between, batches] = [0, 1, 2].map(|i| sent[i] - before[i]);
    let per = |count: u64, of: u64| count as f64 / of as f64;
    let (regions, player_s) = (walk.regions.all.len(), players as u64 * seconds.1);
    Ok(ViewsRow {
        sigma_m: rules.sigma_m,
        regions,
        margin_m: rules.margin_m,
        seen: per(changes.entries, players as u64 * ticks),
        enters: per(changes.enters, player_s),
        flicker: per(changes.flickers, player_s),
        messages: per(within + between, player_s),
        between_regions: per(between, player_s),
        batches: per(batches, regions as u64 * ticks),
        us: us / (players as u64 * ticks) as f64,
        faults: changes.faults,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(four: bool, margin_m: f64) -> Rules {
        Rules { sigma_m: 8.0, four, margin_m, cap: 20 }
    }

    #[test]
    fn a_margin_cuts_flicker_to_a_third_or_less_and_makes_no_list_wrong() {
        for four in [false, true] {
            let row = |margin_m| measure(rules(four, margin_m), 120, (3, 15)).unwrap();
            let (restless, calm) = (row(0.0), row(2.0));
            assert!(restless.flicker > 0.5 && 3.0 * calm.flicker <= restless.flicker, "{calm:?}");
            assert!(calm.enters < restless.enters && calm.messages < restless.messages);
            assert_eq!((restless.faults, calm.faults), (0, 0), "{restless:?} {calm:?}");
            assert_eq!(calm.between_regions > 0.0, four, "{calm:?}");
            assert!(calm.seen > 19.0, "{calm:?}");
        }
    }

    /// The lists of the greedy rule: the nearest pairs first, while both have room.
    fn greedy(places: &[Pos], cap: usize) -> Vec<Option<BTreeSet<u64>>> {
        let mut pairs = Vec::new();
        for (a, here) in (0..).zip(places) {
            let others = (0..).zip(places).skip(a + 1);
            pairs.extend(others.map(|(b, there)| (here.dist2(*there).isqrt(), a, b)));
        }
        pairs.sort_unstable();
        let mut lists = vec![BTreeSet::new(); places.len()];
        for (_, a, b) in pairs {
            if lists[a].len() < cap && lists[b].len() < cap {
                lists[a].insert(b as u64 + 1);
                lists[b].insert(a as u64 + 1);
            }
        }
        lists.into_iter().map(Some).collect()
    }

    #[test]
    fn one_region_and_four_find_the_one_stable_assignment() {
        for margin_m in [0.0, 1.5] {
            let walk = |four| {
                let mut walk = Walk::new(rules(four, margin_m), 120).unwrap();
                for _ in 0..40 {
                    walk.step();
                }
                walk
            };
            let (one, four) = (walk(false), walk(true));
            assert!(four.regions.all.values().all(|region| region.counts().handoffs > 0));
            assert_eq!(four.lists(), one.lists());
            if margin_m == 0.0 {
                assert_eq!(one.lists(), greedy(&one.places, 20));
            }
        }
    }
}
