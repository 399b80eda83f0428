//! The project of the compose file on an engine of the test's own, and what tests do to it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::engine::Engine;
use super::missing::{Missing, root, run};

/// How long a state is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// How late an action may be told where a node dies, or a busy machine lets regions go on without each other: 30 s.
const LATE_TICKS: u32 = 300;

/// What the bots' report says, besides that all joined, where clients resume.
const THROUGH_RESUMES: [&str; 5] = [
    "not_joined 0",
    "violations.extra 0",
    "violations.asymmetric 0",
    "violations.stale 0",
    "refused 0",
];

/// Whether clients must resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    Stay,
    Resume,
}

/// All processes of the cluster.
pub const PROCESSES: [&str; 5] = ["node-1", "node-2", "node-3", "gateway-1", "gateway-2"];

/// The container of a service.
pub fn container(service: &str) -> String {
    format!("purview-{service}-1")
}

/// Lets this many seconds pass.
pub fn pause(seconds: u64) {
    std::thread::sleep(Duration::from_secs(seconds));
}

/// An engine with all images, where the project of the compose file runs.
pub struct World(pub Engine);

impl World {
    /// An engine with all images, or why there is none. The files change the project.
    fn new(files: &[&str]) -> Result<World, Missing> {
        let mut world = World(Engine::start()?);
        world.0.files.extend(files.iter().map(|file| root().join(file)));
        world.0.make_images()?;
        Ok(world)
    }

    /// Runs `docker compose`; its output.
    pub fn compose(&self, args: &[&str]) -> String {
        run(&mut self.0.compose(args)).unwrap_or_else(|said| panic!("{said}\n{}", self.logs()))
    }

    /// Runs `docker`; its output.
    pub fn docker(&self, args: &[&str]) -> String {
        self.0.docker(args).unwrap_or_else(|said| panic!("{said}\n{}", self.logs()))
    }

    /// Brings these services up, or all; returns when every process of them is ready.
    pub fn up(&self, services: &[&str]) {
        let all = ["up", "-d", "--wait", "--no-build", "--pull", "never"];
        self.compose(&[&all[..], services].concat());
    }

    /// Starts a container that has ended, if its restart policy does not.
    pub fn again(&self, service: &str) {
        self.compose(&["up", "-d", "--no-build", "--pull", "never", service]);
    }

    /// Replaces the container of a service; returns when it is ready. How long that took.
    pub fn replace(&self, service: &str) -> Duration {
        let begin = Instant::now();
        self.up(&["--no-deps", "--force-recreate", service]);
        begin.elapsed()
    }

    /// Runs a command in a container of its own, made as those of a service are; what it printed.
    pub fn run_as(&self, service: &str, options: &[&str], command: &[&str]) -> String {
        let once = ["run", "--rm", "-T", "--no-deps"];
        self.compose(&[&once[..], options, &[service], command].concat())
    }

    /// The last lines of every service.
    pub fn logs(&self) -> String {
        run(&mut self.0.compose(&["logs", "--no-color", "--tail", "30"]))
            .unwrap_or_else(|said| said)
    }

    /// Runs a command in a service; its output, if it ends well.
    pub fn exec(&self, service: &str, command: &[&str]) -> Result<String, String> {
        run(self.0.compose(&["exec", "-T", service]).args(command))
    }

    /// Waits until a condition holds.
    pub fn wait_for(&self, what: &str, mut holds: impl FnMut(&World) -> bool) -> Duration {
        let begin = Instant::now();
        while !holds(self) {
            assert!(begin.elapsed() < PATIENCE, "timed out: {what}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(250));
        }
        begin.elapsed()
    }

    /// Waits until a process reaches every region.
    pub fn wait_whole(&self, service: &str) -> Duration {
        let whole = ["purview", "ctl", "ready", "--whole"];
        self.wait_for("a whole cluster", |world| world.exec(service, &whole).is_ok())
    }

    /// Waits until so many players are in the scene.
    pub fn wait_players(&self, count: u32) {
        self.wait_for("players", |world| {
            let told = world.exec("node-1", &["purview", "ctl", "find", "--json"]);
            let told = serde_json::from_str::<serde_json::Value>(&told.unwrap_or_default());
            let players = told.ok().and_then(|told| Some(told["players"].as_array()?.len()));
            players == Some(count as usize)
        });
    }

    /// The epoch of each region's present owner, as some process says.
    pub fn owners(&self) -> BTreeMap<u64, u64> {
        let status = ["purview", "ctl", "status", "--json"];
        let told = self.exec("node-1", &status).or_else(|_| self.exec("gateway-1", &status));
        let told: serde_json::Value =
            serde_json::from_str(&told.unwrap_or_default()).unwrap_or_default();
        let regions = told["regions"].as_array().into_iter().flatten();
        regions.filter_map(|r| Some((r["region"].as_u64()?, r["epoch"].as_u64()?))).collect()
    }

    /// Where the engine keeps a volume of the project.
    pub fn volume(&self, name: &str) -> PathBuf {
        let format = ["volume", "inspect", "--format", "{{.Mountpoint}}"];
        let volume = format!("purview_{name}");
        self.docker(&[&format[..], &[&volume]].concat()).trim().into()
    }

    /// Lets two hundred bots walk for a while, and does something meanwhile. They find nothing wrong; actions may be told
    /// this many ticks late, where links are cut and nodes die.
    pub fn walk(&self, seconds: u32, meanwhile: impl FnOnce(&World)) -> String {
        let found = self.judge(200, seconds, Clients::Stay, meanwhile);
        found.unwrap_or_else(|found| panic!("{found}"))
    }

    /// The same with so many bots: their report, or what they found wrong. Where gateways end, the oracle knows no gap and counts what a
    /// client that resumes was not shown meanwhile: then no client may see what is not there, stay away, or have an input
    /// refused.
    ///
    /// # Errors
    /// The report with what is wrong in it, and the logs of all processes.
    pub fn judge(
        &self,
        count: u32,
        seconds: u32,
        clients: Clients,
        meanwhile: impl FnOnce(&World),
    ) -> Result<String, String> {
        let late = format!("--late-ticks={LATE_TICKS}");
        let (is_clean, report) = self.bots(count, seconds, &[&late], meanwhile);
        let players = format!("players {count}");
        let has = |line: &str| report.lines().any(|found| words(found).eq(words(line)));
        let is_kept = match clients {
            Clients::Stay => is_clean,
            Clients::Resume => has(&players) && THROUGH_RESUMES.iter().all(|line| has(line)),
        };
        if is_kept { Ok(report) } else { Err(format!("{report}\n{}", self.logs())) }
    }

    /// Lets bots walk for a while, and does something meanwhile. Whether they found nothing wrong, and their report.
    pub fn bots(
        &self,
        count: u32,
        seconds: u32,
        options: &[&str],
        meanwhile: impl FnOnce(&World),
    ) -> (bool, String) {
        let mut command =
            self.0.compose(&["--profile", "bots", "run", "--rm", "-T", "--no-deps", "bots"]);
        command.args(["load", "walk", "--connect=ws://haproxy:7711/", "--scene=wood"]);
        command.arg("--token-file=/run/purview/bots.tokens").args(options);
        command.args([format!("--count={count}"), format!("--for={seconds}s")]);
        let bots = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        meanwhile(self);
        let output = bots.wait_with_output().unwrap();
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), said(&output.stdout) + &said(&output.stderr))
    }
}

fn words(line: &str) -> std::str::SplitWhitespace<'_> {
    line.split_whitespace()
}

/// Runs a test with a world; skips it by its name where there can be none.
pub fn with_world(test: &str, work: impl FnOnce(&World)) {
    with_world_of(test, &[], work);
}

/// The same, with files of Compose that change the project; paths from the root.
pub fn with_world_of(test: &str, files: &[&str], work: impl FnOnce(&World)) {
    match World::new(files) {
        Ok(world) => work(&world),
        Err(missing) => missing.skips(test),
    }
}
