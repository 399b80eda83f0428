//! `purview-lab bench scene`: the cost of a player that walks, in one region on one core. A sink counts the frames.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use purview::scene::messages::{Command, Effect, Input, Order, SetProperty};
use purview::scene::properties::{PropertyId, PropertySpec, Value};
use purview::scene::spec::{MoveSpec, Moves, Rates, UpdateError};
use purview::scene::{
    EntityHandle, EntityId, Kind, Pos, Region, RegionId, SceneSpec, Seq, SessionId, Tick,
    Visibility,
};
use purview::wire::EncodedBatch;
use purview_server::workers::TickThreads;
use serde::Serialize;

use super::command_walkers::CommandWalkers;
use super::density::side_of;
use super::ledger::Ledger;
use super::npcs::Npcs;
use super::regions::{commanded, scene as scene_of, spawn};
use super::straight_walkers::StraightWalkers;
use super::watching::{let_monsters_watch, tell_of_players};
use super::{Shown, cpu_us_of_process as cpu_us};
use crate::args::positive;
use crate::load::report::DisplayedErrorCm;
use crate::usage::peak_rss_bytes;

const HIT_POINTS: PropertyId = PropertyId(1);

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "All players walk, 10 ticks per second. Times are CPU time of the threads that apply moves, update index and \
    views, and encode and assemble frames, unless they are said to be on the clock.\n\n\
    Exit codes: 0 done, 1 failed, or the delivered updates are not the due ones, 2 invalid command line."
)]
pub struct BenchSceneArgs {
    /// The number of players.
    #[arg(long, default_value_t = 10_000)]
    pub players: usize,
    /// The mean number of other players in range of a player.
    #[arg(long, default_value_t = 60.0)]
    pub density: f64,
    /// The side of the square on which all players walk, metres, instead of a density.
    #[arg(long, value_name = "METRES", conflicts_with = "density", value_parser = positive)]
    pub side: Option<f64>,
    /// The speed of the players, m/s.
    #[arg(long, value_name = "M_S", default_value_t = 5.0, value_parser = positive)]
    pub speed: f64,
    /// The number of measured ticks, after a warm-up of a tenth as many, at least 20.
    #[arg(long, default_value_t = 200)]
    pub ticks: u64,
    /// The range rule: `patches` (5 x 5 of 32 m) or `circle` (80 m in, 85 m out).
    #[arg(long, default_value = "patches", value_parser = ["patches", "circle"])]
    pub mode: String,
    /// The update rates: `default` (NEAR every tick, MIDDLE every second, FAR every fourth), `full` (all, every tick)
    /// or `error` (at once when the viewer would be too far off, otherwise NEAR every half second).
    #[arg(long, default_value = "default", value_parser = ["default", "full", "error"])]
    pub rates: String,
    /// The movement: `positions` (trusted, sent every tick) or `vector` (judged: a turn every 2 s, sent once).
    #[arg(long, default_value = "positions", value_parser = ["positions", "vector"])]
    pub moves: String,
    /// The number of NPCs on the same square, in addition to the players.
    #[arg(long, default_value_t = 0)]
    pub npcs: usize,
    /// The share of NPCs that stand; the others walk like players, moved by the game's logic.
    #[arg(long, default_value_t = 0.5)]
    pub npcs_standing: f64,
    /// The number of threads that work on a tick.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// Percentage of players whose hit points, a property that every viewer may see, change in each tick.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    pub changes: f64,
    /// The number of monsters among the NPCs that watch players (20 m in, 25 m out), for a game's logic.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub watching: usize,
    /// The seed of the movement.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Do not compare the frames with the rules (the comparison is outside the measured time).
    #[arg(long)]
    pub no_check: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct SceneBench {
    pub players: usize,
    pub ticks: u64,
    /// The mean number of entities in a view at the end; 0 if not checked.
    pub visible: f64,
    /// CPU microseconds per player and tick, in total.
    pub us_per_player_tick: f64,
    /// Milliseconds per tick, on the clock: the scene's part alone.
    pub ms_per_tick: f64,
    /// Of the CPU time, for moves, index and views.
    pub us_scene: f64,
    /// Of these, for encoding and assembling frames.
    pub us_frames: f64,
    /// Enters, leaves and moves delivered per CPU second.
    pub updates_per_cpu_s: f64,
    /// Positions or trajectories sent per player and second.
    pub moves_per_player_s: f64,
    /// Whether moves are due by the rates alone.
    pub by_rates: bool,
    /// Moves due by the rates; 0 if not checked, or if others are due too.
    pub expected: u64,
    pub delivered: u64,
    /// Frames that contradicted a client's view or the truth.
    pub faults: u64,
    /// How far off clients showed others, right before each frame; 0 if not checked.
    pub displayed_error_cm: DisplayedErrorCm,
    pub bytes_per_player_s: f64,
    /// The growth of the process's peak memory by the scene, bytes per player; 0 if unknown.
    pub peak_bytes_per_player: u64,
}

fn spec(args: &BenchSceneArgs) -> (SceneSpec, f64) {
    let visibility = match args.mode.as_str() {
        "circle" => Visibility::Circle { enter_cm: 8_000, leave_cm: 8_500 },
        _ => Visibility::Patches,
    };
    let of_density = || side_of(args.players as f64, args.density.max(0.1), visibility);
    let side = args.side.map_or_else(of_density, |metres| metres * 100.0);
    let lands = (side / 51_200.0).ceil().max(1.0) as i32;
    // The scene refuses a side that is too large.
    let map_cm = lands.saturating_mul(51_200);
    let rates = match args.rates.as_str() {
        "full" => Rates { near: 1, middle: 1, far: 1 },
        "error" => Rates { near: 5, ..SceneSpec::default().rates },
        _ => SceneSpec::default().rates,
    };
    let mut kinds = SceneSpec::default().kinds;
    kinds[0].properties = vec![PropertySpec::new(HIT_POINTS.0, "hp")];
    let spec = SceneSpec {
        name: "bench".into(),
        kinds,
        width_cm: map_cm,
        depth_cm: map_cm,
        region_lands_x: lands,
        region_lands_z: lands,
        visibility,
        rates,
        update_error: (args.rates == "error").then(UpdateError::default),
        moves: MoveSpec {
            mode: if args.moves == "vector" { Moves::Judged } else { Moves::Trusted },
            ..MoveSpec::default()
        },
        spawn_x_cm: 0,
        spawn_z_cm: 0,
        ..SceneSpec::default()
    };
    (spec, side)
}

/// How the players walk.
enum Walk {
    Positions(StraightWalkers),
    Vector(CommandWalkers),
}

impl Walk {
    /// The position of walker `i`, and the tick since when its viewers must know it.
    fn truth(&self, i: usize, now: Tick) -> (Pos, Tick) {
        match self {
            Walk::Positions(walkers) => (walkers.pos(i), now),
            Walk::Vector(walkers) => (walkers.pos(i), walkers.turned(i)),
        }
    }

    fn pos(&self, i: usize) -> Pos {
        self.truth(i, Tick(0)).0
    }
}

struct Run {
    region: Region,
    walk: Walk,
    npcs: Npcs,
    players: usize,
    tick: Tick,
    /// The inputs of each player so far, and those of the present tick.
    seqs: Vec<Seq>,
    /// Of each player, as its last frame says.
    handles: Vec<EntityHandle>,
    said: Vec<(usize, Order)>,
    moves: u64,
    /// Players of whom a property changes in a tick.
    changing: usize,
    encoded: EncodedBatch,
    fx: Vec<Effect>,
    frame: Vec<u8>,
    ledger: Option<Ledger>,
    us_scene: f64,
    us_frames: f64,
    in_ticks: Duration,
    bytes: u64,
}

impl Run {
    fn new(args: &BenchSceneArgs) -> anyhow::Result<Run> {
        let (mut spec, side) = spec(args);
        if args.watching > 0 {
            let_monsters_watch(&mut spec);
        }
        let scene = scene_of(spec)?;
        // A position may count as late for a tick.
        let slack_cm = if args.moves == "vector" { 0 } else { (args.speed * 12.5) as u64 };
        let ledger = (!args.no_check).then(|| Ledger::new(args.players, &scene.spec, slack_cm));
        let mut region = Region::new(scene, RegionId(0)).context("the scene has no region")?;
        region.set_workers(TickThreads::shared(args.threads.into()));
        if args.watching > 0 {
            tell_of_players(&mut region);
        }
        let npcs = (args.npcs.max(args.watching), args.watching);
        let npcs = Npcs::new(npcs, args.npcs_standing, (side, args.speed * 10.0), args.seed);
        Ok(Run {
            region,
            walk: match args.moves.as_str() {
                "vector" => Walk::Vector(CommandWalkers::new(
                    args.players,
                    side,
                    (args.speed * 100.0) as u32,
                    args.seed,
                )),
                _ => Walk::Positions(StraightWalkers::new(
                    args.players,
                    side,
                    args.speed * 10.0,
                    args.seed,
                )),
            },
            npcs,
            players: args.players,
            tick: Tick(0),
            seqs: vec![Seq(0); args.players],
            handles: vec![EntityHandle::default(); args.players],
            said: Vec::new(),
            moves: 0,
            changing: (args.players as f64 * args.changes.clamp(0.0, 100.0) / 100.0) as usize,
            encoded: EncodedBatch::default(),
            fx: Vec::new(),
            frame: Vec::new(),
            ledger,
            us_scene: 0.0,
            us_frames: 0.0,
            in_ticks: Duration::ZERO,
            bytes: 0,
        })
    }

    fn enter(&mut self) {
        for (i, number) in (0..self.players).zip(1..) {
            let spawn = spawn(number, Kind::PLAYER, self.walk.pos(i));
            self.region.handle(Input::Enter(Box::new(spawn)), &mut self.fx);
        }
        for spawn in self.npcs.spawns(self.players) {
            self.region.handle(Input::Enter(Box::new(spawn)), &mut self.fx);
        }
        self.finish_tick();
    }

    /// What was counted so far was the warm-up.
    fn measure(&mut self) {
        (self.us_scene, self.us_frames, self.bytes, self.moves) = (0.0, 0.0, 0, 0);
        self.in_ticks = Duration::ZERO;
    }

    fn step(&mut self) {
        let said = &mut self.said;
        match &mut self.walk {
            Walk::Positions(walkers) => {
                walkers.step();
                said.extend((0..self.players).map(|i| (i, Order::Move(walkers.pos(i)))));
            }
            Walk::Vector(walkers) => {
                walkers.step(self.tick.next(), |i, command| said.push((i, Order::Walk(command))));
            }
        }
        self.npcs.step();
        let t0 = cpu_us();
        for (id, pos) in self.npcs.moves(self.players) {
            let order = Command::Order(id, Order::Move(pos));
            self.region.handle(commanded(order), &mut self.fx);
        }
        for (i, order) in self.said.drain(..) {
            self.seqs[i] = self.seqs[i].next();
            let (id, seq, handle) = (EntityId(i as u64 + 1), self.seqs[i], self.handles[i]);
            let session = SessionId(id.0);
            self.region.handle(Input::Client { id, session, seq, order, handle }, &mut self.fx);
        }
        self.change_properties();
        self.us_scene += cpu_us() - t0;
        self.finish_tick();
    }

    /// The hit points of some players change, of others in every tick.
    fn change_properties(&mut self) {
        let first = self.tick.0 as usize * self.changing;
        for i in (first..first + self.changing).map(|i| i % self.players) {
            let id = EntityId(i as u64 + 1);
            let Ok(value) = Value::of(&(self.tick.0 % 1_000)) else { continue };
            let order = Order::Set(SetProperty { id: HIT_POINTS, value });
            self.region.handle(commanded(Command::Order(id, order)), &mut self.fx);
        }
    }

    fn finish_tick(&mut self) {
        let t0 = cpu_us();
        self.tick = self.tick.next();
        let began = Instant::now();
        self.region.tick(self.tick, &mut self.fx);
        self.in_ticks += began.elapsed();
        let t1 = cpu_us();
        self.us_scene += t1 - t0;
        for effect in self.fx.drain(..) {
            let Effect::Frames(batch) = effect else { continue };
            let t0 = cpu_us();
            batch.sessions.iter().for_each(|s| self.handles[s.session.0 as usize - 1] = s.handle);
            let old = self.encoded.replace(batch);
            for i in 0..self.encoded.batch().sessions.len() {
                self.frame.clear();
                self.encoded.write_frame(i, false, &mut self.frame);
                self.bytes += self.frame.len() as u64;
            }
            self.us_frames += cpu_us() - t0;
            let told = self.encoded.batch().sessions.iter().map(|s| s.moves + s.trajectories);
            self.moves += u64::from(told.sum::<u32>());
            self.region.recycle(old);
            if let Some(ledger) = &mut self.ledger {
                let (walk, npcs, players, now) = (&self.walk, &self.npcs, self.players, self.tick);
                let truth = |id: EntityId| match (id.0 as usize - 1).checked_sub(players) {
                    None => walk.truth(id.0 as usize - 1, now),
                    Some(npc) => npcs.truth(npc, now),
                };
                for (i, s) in self.encoded.batch().sessions.iter().enumerate() {
                    self.frame.clear();
                    self.encoded.write_frame(i, false, &mut self.frame);
                    let ix = s.session.0 as usize - 1;
                    ledger.book(ix, self.walk.pos(ix), &self.frame, truth);
                }
            }
        }
    }
}

pub fn bench_scene(args: &BenchSceneArgs) -> anyhow::Result<SceneBench> {
    if args.players == 0 || args.ticks == 0 {
        bail!("--players and --ticks must be at least 1");
    }
    let memory = peak_rss_bytes().unwrap_or(0);
    let mut run = Run::new(args)?;
    run.enter();
    // By then the memory order of the entities is that of a server that has run for a while.
    (0..(args.ticks / 10).max(20)).for_each(|_| run.step());
    run.measure();
    let before = run.region.counts().updates;
    (0..args.ticks).for_each(|_| run.step());
    let updates = run.region.counts().updates - before;
    let player_ticks = (args.players as u64 * args.ticks) as f64;
    let us = run.us_scene + run.us_frames;
    let grown = peak_rss_bytes().unwrap_or(0).saturating_sub(memory);
    let mut displayed_error_cm = DisplayedErrorCm::default();
    let (mut expected, mut delivered, mut faults, mut visible) = (0, 0, 0, 0.0);
    if let Some(ledger) = &run.ledger {
        (expected, delivered, faults) = (ledger.expected, ledger.delivered, ledger.faults);
        visible = ledger.mean_visible();
        displayed_error_cm = (&ledger.errors).into();
    }
    Ok(SceneBench {
        players: args.players,
        ticks: args.ticks,
        visible,
        us_per_player_tick: us / player_ticks,
        ms_per_tick: run.in_ticks.as_secs_f64() * 1e3 / args.ticks as f64,
        us_scene: run.us_scene / player_ticks,
        us_frames: run.us_frames / player_ticks,
        moves_per_player_s: run.moves as f64 / args.players as f64 / (args.ticks as f64 / 10.0),
        updates_per_cpu_s: updates as f64 / (us / 1e6),
        expected,
        delivered,
        faults,
        by_rates: args.rates != "error",
        displayed_error_cm,
        bytes_per_player_s: run.bytes as f64 / args.players as f64 / (args.ticks as f64 / 10.0),
        // The accounts would count as memory of the scene.
        peak_bytes_per_player: if args.no_check { grown / args.players as u64 } else { 0 },
    })
}

impl Shown for SceneBench {
    /// Whether exactly the due updates were delivered, and nothing was shown farther off than it may be.
    fn is_valid(&self) -> bool {
        (self.expected == self.delivered || !self.by_rates) && self.faults == 0
    }
}

/// What updates by error change against the rates alone: the figures of `benches/updates`, for fewer players.
#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: BenchSceneArgs,
    }

    fn figures(crowd: [&str; 2], moves: &str, rates: &str) -> SceneBench {
        let words =
            ["bench", "--players", "300", "--ticks", "120", "--moves", moves, "--rates", rates];
        let command = Command::parse_from(words.into_iter().chain(crowd));
        bench_scene(&command.args).expect("the arguments make a scene")
    }

    #[test]
    fn both_the_error_and_the_bytes_are_less_than_by_the_rates_alone() {
        for crowd in [["--density", "60"], ["--side", "39"]] {
            for moves in ["positions", "vector"] {
                let [rates, error] = ["default", "error"].map(|by| figures(crowd, moves, by));
                let text = format!("{crowd:?}, {moves}: {rates:?} and {error:?}");
                assert_eq!((rates.faults, error.faults), (0, 0), "{text}");
                assert!(error.bytes_per_player_s < rates.bytes_per_player_s, "{text}");
                let [rates, error] = [rates, error].map(|all| all.displayed_error_cm);
                assert!(error.middle.p99 < rates.middle.p99, "{text}");
                assert!(error.far.p99 <= rates.far.p99, "{text}");
            }
        }
    }
}
