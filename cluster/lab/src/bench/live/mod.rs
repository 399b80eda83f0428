//! `purview-lab bench live`: the whole cost of a player over real sockets.
//!
//! The server runs in this process, bots run in another one, each on cores of its own. Between two moments in
//! which all bots play, the CPU time of the server is read and divided: the *scene* (the regions' work in ticks
//! without the delivery of frames), the *delivery* (frames are encoded and given to sessions), the *kernel*
//! (system calls, above all writes to sockets), and the *sessions* (everything else: session actors, the
//! gateway's connections, the runtime).

mod cores;
mod result;
mod usage;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};
use purview::actor::player::Planes;
use purview_server::config::Config;
use purview_server::logins::Duplicate;
use purview_server::process::{Background, run_tokens};

use self::cores::Cores;
use self::result::{BotsReport, LiveResult};
use self::usage::Usage;
use crate::args::positive;

/// Bots that join in a second, at least, on a machine that is not overloaded.
const JOINS_PER_S: u64 = 100;

/// The lifetime of the bots' token: longer than any run.
const TOKEN_HOLDS: Duration = Duration::from_secs(24 * 60 * 60);

/// By which carrier the bots connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Carrier {
    /// WebSocket
    Ws,
    /// Length-prefixed frames over TCP
    Tcp,
}

/// Where the bots walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LivePattern {
    /// To random places all over the map: they gather in the middle, where the regions meet
    Walk,
    /// Around the centre of the map (sigma 20 m)
    Crowd,
}

impl LivePattern {
    fn name(self) -> &'static str {
        match self {
            LivePattern::Walk => "walk",
            LivePattern::Crowd => "crowd",
        }
    }
}

/// `purview-lab bench live`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview-lab bench live\n  \
    purview-lab bench live --tick 50\n  \
    purview-lab bench live --players 10000 --pattern crowd --side 400 --threads 2\n\n\
    The server runs in this process and the bots in another one. With --server-cores and --bot-cores each has \
    cores of its own; by default the server has the first core and the bots have all others.\n\n\
    Exit codes: 0 every update was delivered and no view was wrong; 1 failed, or something was not delivered; 2 \
    invalid command line.")]
pub struct BenchLiveArgs {
    /// The number of bots.
    #[arg(long, default_value_t = 2_000)]
    pub players: u32,
    /// The side of the square map, metres.
    #[arg(long, default_value_t = 924.0, value_parser = positive)]
    pub side: f64,
    /// Cut the map into this many regions in each direction.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub regions: u16,
    /// How the bots walk.
    #[arg(long, value_enum, default_value_t = LivePattern::Walk)]
    pub pattern: LivePattern,
    /// The length of a tick, milliseconds.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(10..=1_000))]
    pub tick: u64,
    /// The server's threads for regions and sessions.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// The carrier of the bots' connections.
    #[arg(long, value_enum, default_value_t = Carrier::Ws)]
    pub carrier: Carrier,
    /// The number of clients that try to send 10,000 messages a second each beside the bots.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub floods: u32,
    /// The length of the measurement, seconds.
    #[arg(long = "seconds", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: u64,
    /// The time before it in which all bots play already, seconds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    pub warm_up: u64,
    /// The server's cores, for example 0 or 0,1.
    #[arg(long, value_name = "CORES")]
    pub server_cores: Option<Cores>,
    /// The bots' cores.
    #[arg(long, value_name = "CORES")]
    pub bot_cores: Option<Cores>,
    /// The seed of the bots' movement.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl BenchLiveArgs {
    /// The server's configuration.
    ///
    /// # Errors
    /// No legal scene has this size and so many regions.
    fn config(&self) -> anyhow::Result<Config> {
        // A land is a power of two of patches, of 40 m or less: the map may be a little larger than asked for.
        let region_cm = (self.side * 100.0 / f64::from(self.regions)).ceil() as u64;
        let patches = region_cm.div_ceil(4_000).next_power_of_two();
        let patch_cm = region_cm.div_ceil(patches);
        let land_cm = patch_cm * patches;
        let side_cm = land_cm * u64::from(self.regions);
        let half = self.players + self.players / 2 + 100;
        Ok(Config::parse(&format!(
            "tick = \"{tick}ms\"\n[server]\narbiters = {threads}\n\
             [gateway]\nws = \"127.0.0.1:0\"\ntcp = \"127.0.0.1:0\"\nmax_sessions = {half}\nunauthenticated = {half}\n\
             [gateway.limits]\nexempt = [\"127.0.0.1\"]\n\
             [console]\nlisten = \"off\"\n\
             [[scene]]\nteleports = \"clients\"\n\
             name = \"live\"\nwidth = \"{side_cm}cm\"\ndepth = \"{side_cm}cm\"\nland = \"{land_cm}cm\"\n\
             region = [1, 1]\npatch = \"{patch_cm}cm\"\nmoves = \"trusted\"\ntop_speed = \"20m/s\"\n",
            tick = self.tick,
            threads = self.threads,
        ))?)
    }

    /// The longest time until all bots have joined.
    fn joining(&self) -> Duration {
        Duration::from_secs(10 + u64::from(self.players) / JOINS_PER_S)
    }

    /// Starts the clients that flood the server, if there are any.
    fn floods(&self, url: &str, token_file: PathBuf) -> anyhow::Result<Option<Running>> {
        if self.floods == 0 {
            return Ok(None);
        }
        let mut command = lab()?;
        command.args(["load", "flood", "--connect", url, "--scene", "live"]);
        command.arg("--token-file").arg(token_file);
        command.args(["--count", &self.floods.to_string()]);
        command.args(["--for", &format!("{}s", self.warm_up + self.seconds)]);
        // Beside the bots: the server has cores of its own.
        let process = command.stdout(Stdio::null()).spawn().context("cannot start the floods")?;
        Ok(Some(Running(process)))
    }

    /// How long the bots play: as long as all of this may take.
    fn playing(&self) -> Duration {
        self.joining() + Duration::from_secs(self.warm_up + self.seconds + 2)
    }
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// The server or the bots cannot be started, or not all bots have joined in time.
pub fn run(args: &BenchLiveArgs) -> anyhow::Result<u8> {
    let result = measure(args)?;
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string(&result)?)?,
        false => write!(out, "{result}")?,
    }
    Ok(u8::from(!result.is_exact()))
}

fn measure(args: &BenchLiveArgs) -> anyhow::Result<LiveResult> {
    let (server_cores, bot_cores) =
        Cores::divide(args.server_cores.clone(), args.bot_cores.clone())?;
    let mut config = args.config()?;
    config.token.duplicate = Some(Duplicate::Allow);
    // Threads that are started from here on have these cores.
    server_cores.pin_this_thread()?;
    let tokens = run_tokens(&config)?;
    let token = tokens.mint_for("bench", Some(TOKEN_HOLDS), &Planes::Any)?;
    let server = Background::start(config, tokens)?;
    let reach = server.reach();
    let url = match args.carrier {
        Carrier::Ws => reach.ws_url(),
        Carrier::Tcp => reach.tcp_url(),
    };
    let url = url.context("the server has no listener")?;
    let mut bots = Bots::start(args, &url, &token)?;
    let bots_id = bots.process.0.id();
    bot_cores.pin_process(bots_id)?;
    let until = Instant::now() + args.joining();
    let joined = |usage: &Usage| usage.players >= u64::from(args.players);
    while !joined(&Usage::of(reach, bots_id)?) {
        anyhow::ensure!(
            bots.process.0.try_wait()?.is_none(),
            "the bots have ended before all had joined"
        );
        anyhow::ensure!(Instant::now() < until, "not all bots have joined in {:?}", args.joining());
        std::thread::sleep(Duration::from_millis(200));
    }
    say("all bots play");
    let _floods = args.floods(&url, bots.token_file())?;
    std::thread::sleep(Duration::from_secs(args.warm_up));
    let before = Usage::of(reach, bots_id)?;
    std::thread::sleep(Duration::from_secs(args.seconds));
    let after = Usage::of(reach, bots_id)?;
    say("measured; the bots report");
    let report = bots.report()?;
    Ok(LiveResult::of(args, &before, &after, report))
}

fn say(what: &str) {
    if std::io::stderr().is_terminal() {
        eprintln!("bench: {what}");
    }
}

/// This program, to be started again.
fn lab() -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    let mut command = Command::new(program);
    command.stderr(Stdio::null()).stdin(Stdio::null());
    Ok(command)
}

/// A process that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Either fails when it has ended already.
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// The process of the bots.
struct Bots {
    process: Running,
    /// Has their token.
    folder: tempfile::TempDir,
}

impl Bots {
    fn start(args: &BenchLiveArgs, url: &str, token: &str) -> anyhow::Result<Bots> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("token");
        std::fs::write(&file, token)?;
        let mut command = lab()?;
        command.args(["load", "walk", "--connect", url, "--scene", "live", "--json"]);
        command.arg("--token-file").arg(&file);
        command.args(["--pattern", args.pattern.name()]);
        command.args(["--count", &args.players.to_string(), "--seed", &args.seed.to_string()]);
        command.args(["--for", &format!("{}s", args.playing().as_secs())]);
        let process = command.stdout(Stdio::piped()).spawn().context("cannot start the bots")?;
        Ok(Bots { process: Running(process), folder })
    }

    fn token_file(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    /// Waits for the bots' end and reads what they report.
    fn report(&mut self) -> anyhow::Result<BotsReport> {
        let Running(process) = &mut self.process;
        let stdout = process.stdout.take().context("the bots' report was taken already")?;
        let text = std::io::read_to_string(stdout)?;
        process.wait()?;
        let line = text.lines().last().context("the bots have reported nothing")?;
        serde_json::from_str(line).with_context(|| format!("no report of the bots: {line:?}"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: BenchLiveArgs,
    }

    fn args(line: &str) -> BenchLiveArgs {
        Line::parse_from(["live"].into_iter().chain(line.split_whitespace())).args
    }

    #[test]
    fn the_map_has_the_regions_that_were_asked_for() {
        for (line, regions) in [("", 4), ("--regions 1 --side 100", 1), ("--regions 3", 9)] {
            let scenes = args(line).config().unwrap().build_scenes().unwrap();
            assert_eq!(scenes[0].map.regions.len(), regions, "{line}");
            let asked = args(line).side * 100.0;
            let wide = f64::from(scenes[0].spec.width_cm);
            assert!((asked..asked * 1.02 + 100.0).contains(&wide), "{line}: {wide}");
        }
    }

    #[test]
    fn the_bots_play_until_the_measurement_is_over() {
        let args = args("--players 1000 --seconds 20 --warm-up 5");
        assert_eq!(args.joining().as_secs(), 20);
        assert_eq!(args.playing().as_secs(), 47);
    }
}
