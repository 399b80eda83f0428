//! `purview-lab bench recovery`: for how long a region's death stops its players, and how that grows with their number.
//! The same for what else comes to a region at once: players that join, those of a region that is given up, and
//! entities that the game's logic creates.

mod world;

use anyhow::bail;
use clap::Args;
use purview::scene::messages::{Command, Order};
use purview::scene::{EntityId, Facing};
use serde::Serialize;

use self::world::{HERE, THERE, World};
use super::npcs::NPC;
use super::regions::spawn;
use super::{Shown, cpu_us};
use crate::shown::table;

/// The mean number of other players in range of a player.
const DENSITY: f64 = 60.0;

/// Ticks before each trial, in which what was long ago is forgotten.
const BEFORE_TICKS: u64 = 60;

/// The number of processes that have sent messages for groups.
const SENDERS: u64 = 200;

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Two regions and the sessions of their players run in one thread, without sockets, and messages \
    take no time. The pause of a death is the work from the checkpoint on until every player lives again: that of the \
    region, of its neighbour, and of the sessions. Growth is the time per player divided by that of the first number \
    of players.\n\n\
    Exit codes: 0 done, 1 failed, 2 invalid command line."
)]
pub struct BenchRecoveryArgs {
    /// The numbers of players, in ascending order.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1000,10000")]
    pub players: Vec<usize>,
    /// The number of runs of each, of which the one with the least CPU time counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub runs: u16,
}

#[derive(Debug, Clone, Serialize)]
pub struct Pause {
    pub event: &'static str,
    /// The number of players, or of entities.
    pub players: usize,
    /// Ticks until all of them lived in the region.
    pub ticks: u64,
    pub us_per_player: f64,
    /// The same, divided by that of the first number of players.
    pub growth: f64,
}

/// The pauses of each event, with ascending numbers of players.
#[derive(Debug, Clone, Serialize)]
pub struct RecoveryBench {
    pub pauses: Vec<Pause>,
}

impl Shown for RecoveryBench {
    fn text(&self) -> serde_json::Result<String> {
        table(&self.pauses)
    }
}

/// Ticks until all players live, and their CPU time, microseconds.
type Took = (u64, f64);

fn measured(act: impl FnOnce() -> anyhow::Result<u64>) -> anyhow::Result<Took> {
    let before = cpu_us();
    let ticks = act()?;
    Ok((ticks, cpu_us() - before))
}

/// A world in which processes have spoken, long ago by now.
fn world(players: usize, density: f64) -> anyhow::Result<World> {
    let mut world = World::side_by_side(players, density, 1)?;
    world.step();
    world.let_processes_speak(SENDERS);
    (0..BEFORE_TICKS).for_each(|_| world.step());
    world.let_processes_speak(1);
    Ok(world)
}

/// All players of a region join in one tick.
fn join(mut world: World, players: usize) -> anyhow::Result<Took> {
    (0..players).for_each(|i| world.enter(i as u64 + 1, HERE, world.place(HERE, i)));
    measured(|| world.step_until(|world| world.living(HERE) == players))
}

/// A region dies. A tenth of its players has come since the checkpoint, and as many have left before and since.
fn death(mut world: World, players: usize) -> anyhow::Result<Took> {
    let share = players.div_ceil(10);
    // Those that stay, those that leave before and after the checkpoint, and those that come after it.
    let leave = players - share..players;
    let leave_late = players..players + share;
    let come = players + share..players + 2 * share;
    for i in 0..players + 2 * share {
        let region = if come.contains(&i) { THERE } else { HERE };
        world.enter(i as u64 + 1, region, world.place(region, i % (2 * players)));
    }
    world.step();
    leave.for_each(|i| world.teleport(i as u64 + 1, HERE, i));
    (0..3).for_each(|_| world.step());
    let kept = world.checkpoint(HERE)?;
    leave_late.for_each(|i| world.teleport(i as u64 + 1, HERE, i));
    come.for_each(|i| world.teleport(i as u64 + 1, THERE, i % (2 * players)));
    (0..3).for_each(|_| world.step());
    if world.living(HERE) != players {
        bail!("{} of {players} players live in the region before its death", world.living(HERE));
    }
    measured(|| {
        world.die(HERE, &kept)?;
        let all = |world: &World| world.living(HERE) == players && world.unclaimed(HERE) == 0;
        world.step_until(all)
    })
}

/// A region is given the ground of its neighbour, with all players there.
fn merge(mut world: World, players: usize) -> anyhow::Result<Took> {
    (0..players).for_each(|i| world.enter(i as u64 + 1, THERE, world.place(THERE, i)));
    (0..3).for_each(|_| world.step());
    world.sessions.answers = true;
    measured(|| {
        world.merge(HERE, THERE)?;
        world.step_until(|world| world.living(HERE) == players)
    })
}

/// The game's logic creates entities in one tick, and orders each to turn.
fn create(mut world: World, players: usize) -> anyhow::Result<Took> {
    for i in 0..players {
        let spawn = spawn(i as u64 + 1, NPC, world.place(HERE, i));
        world.command(HERE, Command::Spawn(Box::new(spawn)));
        let turn = Order::Face(Facing(1 + i as u16 % 1_000));
        world.command(HERE, Command::Order(EntityId(i as u64 + 1), turn));
    }
    measured(|| world.step_until(|world| world.entities(HERE) == players))
}

type Event = fn(World, usize) -> anyhow::Result<Took>;

/// What comes to a region at once.
const EVENTS: [(&str, Event); 4] =
    [("join", join), ("death", death), ("merge", merge), ("spawn", create)];

pub fn bench_recovery(args: &BenchRecoveryArgs) -> anyhow::Result<RecoveryBench> {
    measure(&args.players, DENSITY, args.runs)
}

fn measure(numbers: &[usize], density: f64, runs: u16) -> anyhow::Result<RecoveryBench> {
    if numbers.is_empty() || numbers.contains(&0) || !numbers.is_sorted() {
        bail!("--players must be numbers above 0 in ascending order, for example 1000,10000");
    }
    let mut pauses: Vec<Pause> = Vec::new();
    for (event, trial) in EVENTS {
        let mut first = None;
        for players in numbers.iter().copied() {
            eprintln!("{event}, {players} players");
            let runs = (0..runs).map(|_| trial(world(players, density)?, players));
            let runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
            let least = runs.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
            let Some((ticks, us)) = least else { continue };
            let us_per_player = us / players as f64;
            let growth = us_per_player / *first.get_or_insert(us_per_player);
            pauses.push(Pause { event, players, ticks, us_per_player, growth });
        }
    }
    Ok(RecoveryBench { pauses })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few are in range of each other, so that a search among all that wait would be most of the work: it
    /// would take four times as long for each of eight times as many.
    #[test]
    fn no_event_takes_much_longer_for_each_of_eight_times_as_many() {
        let bench = measure(&[1_000, 8_000], 3.0, 3).unwrap();
        assert_eq!(bench.pauses.len(), 2 * EVENTS.len());
        for pause in &bench.pauses {
            assert!(pause.ticks <= 3 && pause.growth <= 2.0, "{pause:?}");
        }
    }

    #[test]
    fn numbers_of_players_that_cannot_be_compared_are_refused() {
        for players in [&[][..], &[0, 5], &[9, 5]] {
            let refused = measure(players, 3.0, 1).unwrap_err().to_string();
            assert!(refused.contains("ascending order"), "{refused}");
        }
    }
}
