//! `purview-lab bench recovery`: for how long a region's death stops its players, and how that grows with their number.
//! The same for what else comes to a region at once: players that join, those of a region that is given up, and
//! entities that the game's logic creates.

mod world;

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use purview::scene::messages::{Command, Order};
use purview::scene::{EntityId, Facing, Kind};
use serde::Serialize;

use self::world::{HERE, THERE, World};
use super::cpu_us;
use crate::args::positive;

/// The kind `npc` of a scene that names no kinds.
const NPC: Kind = Kind(1);

/// Ticks before each trial, in which what was long ago is forgotten.
const BEFORE_TICKS: u64 = 60;

/// `purview-lab bench recovery`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview-lab bench recovery\n  \
    purview-lab bench recovery --players 1000,4000,16000 --runs 5\n  \
    purview-lab bench recovery --players 100 --json\n\n\
    Two regions and the sessions of their players run in one thread, without sockets, and messages take no time. The \
    pause of a death is the work from the checkpoint on until every player lives again: that of the region, of its \
    neighbour, and of the sessions. Growth is the time per player divided by that of the first number of players.\n\n\
    Exit codes: 0 done, 1 failed, 2 invalid command line.")]
pub struct BenchRecoveryArgs {
    /// The numbers of players, in ascending order.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1000,10000")]
    pub players: Vec<usize>,
    /// The mean number of other players in range of a player.
    #[arg(long, default_value_t = 60.0, value_parser = positive)]
    pub density: f64,
    /// The number of runs of each, of which the one with the least CPU time counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub runs: u16,
    /// The number of processes that have sent messages for groups.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub senders: u64,
    /// The seed of the players' places.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// What happens to a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// All its players join in one tick.
    Join,
    /// It dies. A tenth of its players has come since the checkpoint, and as many have left before and since.
    Death,
    /// It is given the ground of its neighbour, with all players there.
    Merge,
    /// The game's logic creates as many entities in one tick, and orders each to turn.
    Spawn,
}

impl Event {
    /// All of them.
    const ALL: [Event; 4] = [Event::Join, Event::Death, Event::Merge, Event::Spawn];

    fn name(self) -> &'static str {
        match self {
            Event::Join => "join",
            Event::Death => "death",
            Event::Merge => "merge",
            Event::Spawn => "spawn",
        }
    }
}

/// The pause of one event.
#[derive(Debug, Clone, Serialize)]
pub struct Pause {
    /// What happened.
    pub event: Event,
    /// The number of players, or of entities.
    pub players: usize,
    /// Ticks until all of them lived in the region.
    pub ticks: u64,
    /// Their CPU time, milliseconds.
    pub cpu_ms: f64,
    /// The same on the clock.
    pub wall_ms: f64,
    /// CPU microseconds per player.
    pub us_per_player: f64,
    /// The same, divided by that of the first number of players.
    pub growth: f64,
}

/// The result: the pauses of each event, with ascending numbers of players.
#[derive(Debug, Clone, Serialize)]
pub struct RecoveryBench {
    /// The pauses.
    pub pauses: Vec<Pause>,
}

/// What it took.
#[derive(Debug, Clone, Copy)]
struct Took {
    ticks: u64,
    cpu_us: f64,
    wall: Duration,
}

fn measured(act: impl FnOnce() -> anyhow::Result<u64>) -> anyhow::Result<Took> {
    let (began, before) = (Instant::now(), cpu_us());
    let ticks = act()?;
    Ok(Took { ticks, cpu_us: cpu_us() - before, wall: began.elapsed() })
}

/// A world in which processes have spoken, long ago by now.
fn world(args: &BenchRecoveryArgs, players: usize) -> anyhow::Result<World> {
    let mut world = World::new(players, args.density, args.seed)?;
    world.step();
    world.let_processes_speak(args.senders);
    (0..BEFORE_TICKS).for_each(|_| world.step());
    world.let_processes_speak(args.senders.min(1));
    Ok(world)
}

fn join(args: &BenchRecoveryArgs, players: usize) -> anyhow::Result<Took> {
    let mut world = world(args, players)?;
    (0..players).for_each(|i| world.enter(i as u64 + 1, HERE, world.place(HERE, i)));
    measured(|| world.step_until(|world| world.living(HERE) == players))
}

fn death(args: &BenchRecoveryArgs, players: usize) -> anyhow::Result<Took> {
    let mut world = world(args, players)?;
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

fn merge(args: &BenchRecoveryArgs, players: usize) -> anyhow::Result<Took> {
    let mut world = world(args, players)?;
    (0..players).for_each(|i| world.enter(i as u64 + 1, THERE, world.place(THERE, i)));
    (0..3).for_each(|_| world.step());
    world.let_sessions_speak();
    measured(|| {
        world.merge(HERE, THERE)?;
        world.step_until(|world| world.living(HERE) == players)
    })
}

fn spawn(args: &BenchRecoveryArgs, players: usize) -> anyhow::Result<Took> {
    let mut world = world(args, players)?;
    for i in 0..players {
        let spawn = world.spawn(i as u64 + 1, NPC, world.place(HERE, i));
        world.command(HERE, Command::Spawn(Box::new(spawn)));
        let turn = Order::Face(Facing(1 + i as u16 % 1_000));
        world.command(HERE, Command::Order(EntityId(i as u64 + 1), turn));
    }
    measured(|| world.step_until(|world| world.entities(HERE) == players))
}

/// Runs the benchmark.
///
/// # Errors
/// The arguments make no legal scene, or a region does not come to rest.
pub fn bench_recovery(
    args: &BenchRecoveryArgs,
    progress: &mut dyn FnMut(&str),
) -> anyhow::Result<RecoveryBench> {
    if args.players.is_empty() || args.players.contains(&0) || !args.players.is_sorted() {
        bail!("--players must be numbers above 0 in ascending order, for example 1000,10000");
    }
    let mut pauses: Vec<Pause> = Vec::new();
    for event in Event::ALL {
        let trial = match event {
            Event::Join => join,
            Event::Death => death,
            Event::Merge => merge,
            Event::Spawn => spawn,
        };
        let mut first = None;
        for players in args.players.iter().copied() {
            progress(&format!("{}, {players} players", event.name()));
            let runs = (0..args.runs).map(|_| trial(args, players));
            let runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
            let least = runs.into_iter().min_by(|a, b| a.cpu_us.total_cmp(&b.cpu_us));
            let Some(Took { ticks, cpu_us, wall }) = least else { continue };
            let us_per_player = cpu_us / players as f64;
            let growth = us_per_player / *first.get_or_insert(us_per_player);
            let (cpu_ms, wall_ms) = (cpu_us / 1e3, wall.as_secs_f64() * 1e3);
            pauses.push(Pause { event, players, ticks, cpu_ms, wall_ms, us_per_player, growth });
        }
    }
    Ok(RecoveryBench { pauses })
}

impl RecoveryBench {
    /// Prints the result as a table in Markdown.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn print(&self, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(
            out,
            "| what | players | ticks | CPU, ms | on the clock, ms | us per player | growth |"
        )?;
        writeln!(out, "|---|---|---|---|---|---|---|")?;
        for Pause { event, players, ticks, cpu_ms, wall_ms, us_per_player, growth } in &self.pauses
        {
            let what = event.name();
            write!(out, "| {what} | {players} | {ticks} | {cpu_ms:.1} | {wall_ms:.1} ")?;
            writeln!(out, "| {us_per_player:.1} | {growth:.2} |")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few are in range of each other, so that a search among all that wait would be most of the work: it
    /// would take four times as long for each of eight times as many.
    #[test]
    fn no_event_takes_much_longer_for_each_of_eight_times_as_many() {
        let (players, density, runs) = (vec![1_000, 8_000], 3.0, 3);
        let (senders, seed, json) = (200, 1, false);
        let args = BenchRecoveryArgs { players, density, runs, senders, seed, json };
        let bench = bench_recovery(&args, &mut |_| {}).unwrap();
        assert_eq!(bench.pauses.len(), 2 * Event::ALL.len());
        for pause in &bench.pauses {
            assert!(pause.ticks <= 3 && pause.growth <= 2.0, "{pause:?}");
        }
    }

    #[test]
    fn numbers_of_players_that_cannot_be_compared_are_refused() {
        for players in [vec![], vec![0, 5], vec![9, 5]] {
            let (density, runs, senders, seed, json) = (3.0, 1, 1, 1, false);
            let args = BenchRecoveryArgs { players, density, runs, senders, seed, json };
            let refused = bench_recovery(&args, &mut |_| {}).unwrap_err().to_string();
            assert!(refused.contains("ascending order"), "{refused}");
        }
    }
}
