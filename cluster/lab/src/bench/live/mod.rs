//! `purview-lab bench live`: the whole cost of a player over real sockets.
//!
//! The server runs in this process, bots run in another one, each on cores of its own. Between two moments in
//! which all bots play, the CPU time of the server is read and divided: the *scene* (the regions' work in ticks
//! without the delivery of frames), the *delivery* (frames are encoded and given to sessions), the *kernel*
//! (system calls, above all writes to sockets), and the *sessions* (everything else: session actors, the
//! gateway's connections, the runtime).

mod result;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};
use purview::actor::player::Planes;
use purview_server::config::Config;
use purview_server::logins::Duplicate;
use purview_server::process::{Background, run_tokens};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use self::result::{BotsReport, Usage};
use crate::args::positive;
use crate::testbed::program::Spawned;

pub use self::result::LiveBench;

/// Bots that join in a second, at least, on a machine that is not overloaded.
const JOINS_PER_S: u64 = 100;

/// The lifetime of the bots' token: longer than any run.
const TOKEN_HOLDS: Duration = Duration::from_secs(24 * 60 * 60);

/// The map has so many regions in each direction.
const REGIONS: u64 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Carrier {
    /// WebSocket
    Ws,
    /// Length-prefixed frames over TCP
    Tcp,
}

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "The server runs in this process on the first cores, and the bots in another one on all others; where the server \
    has all cores, they share them. The \
    bots walk to random places all over the map: they gather in the middle, where four regions meet.\n\n\
    Exit codes: 0 every update was delivered and no view was wrong; 1 failed, or something was not delivered; 2 \
    invalid command line."
)]
pub struct BenchLiveArgs {
    /// The number of bots.
    #[arg(long, default_value_t = 2_000)]
    pub players: u32,
    /// The side of the square map, metres.
    #[arg(long, default_value_t = 924.0, value_parser = positive)]
    pub side: f64,
    /// The length of a tick, milliseconds.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(10..=1_000))]
    pub tick: u64,
    /// The carrier of the bots' connections.
    #[arg(long, value_enum, default_value_t = Carrier::Ws)]
    pub carrier: Carrier,
    /// The number of cores of the server, and of its threads for regions and sessions.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// The length of the measurement, seconds.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: u64,
    /// The time before it in which all bots play already, seconds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    pub warm_up: u64,
}

impl BenchLiveArgs {
    fn config(&self) -> anyhow::Result<Config> {
        // A land is a power of two of patches, of 40 m or less: the map may be a little larger than asked for.
        let region_cm = (self.side * 100.0 / REGIONS as f64).ceil() as u64;
        let patches = region_cm.div_ceil(4_000).next_power_of_two();
        let patch_cm = region_cm.div_ceil(patches);
        let land_cm = patch_cm * patches;
        let side_cm = land_cm * REGIONS;
        let threads = self.threads;
        let (tick, half) = (self.tick, self.players + self.players / 2 + 100);
        Ok(Config::parse(&format!(
            "tick = \"{tick}ms\"\n[server]\narbiters = {threads}\n\
             [gateway]\nws = \"127.0.0.1:0\"\ntcp = \"127.0.0.1:0\"\nmax_sessions = {half}\nunauthenticated = {half}\n\
             [gateway.limits]\nexempt = [\"127.0.0.1\"]\n\
             [console]\nlisten = \"off\"\n\
             [[scene]]\nteleports = \"clients\"\n\
             name = \"live\"\nwidth = \"{side_cm}cm\"\ndepth = \"{side_cm}cm\"\nland = \"{land_cm}cm\"\n\
             region = [1, 1]\npatch = \"{patch_cm}cm\"\nmoves = \"trusted\"\ntop_speed = \"20m/s\"\n"
        ))?)
    }

    fn joining(&self) -> Duration {
        Duration::from_secs(10 + u64::from(self.players) / JOINS_PER_S)
    }
}

/// The cores of the server and of the bots: the first `of_server` ones that this process may use, and all others. Where
/// there are no others both have the same.
fn cores(of_server: u16) -> anyhow::Result<[CpuSet; 2]> {
    let all = sched_getaffinity(None).context("the cores of this process are unknown")?;
    let (mut server, mut bots) = (CpuSet::new(), all);
    let known = (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core));
    for core in known.take(of_server.into()) {
        server.set(core);
        bots.unset(core);
    }
    Ok([server, if bots.count() == 0 { all } else { bots }])
}

/// Lets all threads of a process run on these cores only.
fn pin(pid: u32, cores: &CpuSet) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let thread = entry?.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw);
        sched_setaffinity(thread, cores).context("the cores of the bots")?;
    }
    Ok(())
}

pub fn bench_live(args: &BenchLiveArgs) -> anyhow::Result<LiveBench> {
    let [server_cores, bot_cores] = cores(args.threads)?;
    let mut config = args.config()?;
    config.token.duplicate = Some(Duplicate::Allow);
    // Threads that are started from here on have these cores.
    sched_setaffinity(None, &server_cores)?;
    let tokens = run_tokens(&config)?;
    let token = tokens.mint_for("bench", Some(TOKEN_HOLDS), &Planes::Any)?;
    let server = Background::start(config, tokens)?;
    let reach = server.reach();
    let url = match args.carrier {
        Carrier::Ws => reach.ws_url(),
        Carrier::Tcp => reach.tcp_url(),
    };
    let mut bots = Bots::start(args, &url.context("the server has no listener")?, &token)?;
    let bots_id = bots.process.0.id();
    pin(bots_id, &bot_cores)?;
    let until = Instant::now() + args.joining();
    while Usage::of(reach, bots_id)?.players < u64::from(args.players) {
        let ended = bots.process.0.try_wait()?;
        anyhow::ensure!(ended.is_none(), "the bots have ended before all had joined");
        anyhow::ensure!(Instant::now() < until, "not all bots have joined in {:?}", args.joining());
        std::thread::sleep(Duration::from_millis(200));
    }
    eprintln!("all bots play");
    std::thread::sleep(Duration::from_secs(args.warm_up));
    let before = Usage::of(reach, bots_id)?;
    std::thread::sleep(Duration::from_secs(args.seconds));
    let after = Usage::of(reach, bots_id)?;
    Ok(LiveBench::of(args, &before, &after, bots.report()?))
}

/// The process of the bots, and the folder of their token.
struct Bots {
    process: Spawned,
    _folder: tempfile::TempDir,
}

impl Bots {
    fn start(args: &BenchLiveArgs, url: &str, token: &str) -> anyhow::Result<Bots> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("token");
        std::fs::write(&file, token)?;
        let program = std::env::current_exe().context("the path of this program is unknown")?;
        let mut command = Command::new(program);
        command.stderr(Stdio::null()).stdin(Stdio::null()).stdout(Stdio::piped());
        command.args(["load", "walk", "--connect", url, "--scene", "live", "--json"]);
        command.arg("--token-file").arg(&file).args(["--count", &args.players.to_string()]);
        // They play as long as all of this may take.
        let length = args.joining().as_secs() + args.warm_up + args.seconds + 2;
        command.args(["--for", &format!("{length}s")]);
        let process = Spawned(command.spawn().context("cannot start the bots")?);
        Ok(Bots { process, _folder: folder })
    }

    /// Waits for the bots' end and reads what they report.
    fn report(&mut self) -> anyhow::Result<BotsReport> {
        let stdout = self.process.0.stdout.take().context("the bots' report was taken already")?;
        let text = std::io::read_to_string(stdout)?;
        self.process.0.wait()?;
        let line = text.lines().last().context("the bots have reported nothing")?;
        serde_json::from_str(line).with_context(|| format!("no report of the bots: {line:?}"))
    }
}
