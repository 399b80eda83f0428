//! The compose file as it is, on a real engine: it comes up, two hundred bots find nothing wrong in what they are shown,
//! and it survives what machines do to it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::engine::Engine;
use super::missing::{Missing, run};

/// How long a state is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// How late an action may be told where a node dies, or a busy machine lets regions go on without each other: 30 s.
pub const LATE_TICKS: u32 = 300;

/// All processes of the cluster.
pub const PROCESSES: [&str; 5] = ["node-1", "node-2", "node-3", "gateway-1", "gateway-2"];

/// An engine with all images, where the project of the compose file runs.
pub struct World(pub Engine);

impl World {
    /// An engine with all images, or why there is none.
    pub fn new() -> Result<World, Missing> {
        let world = World(Engine::start()?);
        world.0.make_images()?;
        Ok(world)
    }

    /// Runs `docker compose`; its output.
    pub fn compose(&self, args: &[&str]) -> String {
        run(&mut self.0.compose(args)).unwrap_or_else(|said| panic!("{said}\n{}", self.logs()))
    }

    /// Brings everything up; returns when every process is ready.
    pub fn up(&self) {
        self.compose(&["up", "-d", "--wait", "--no-build", "--pull", "never"]);
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

    /// Lets two hundred bots walk for a while, and does something meanwhile. They find nothing wrong; actions may be told
    /// this many ticks late, where links are cut and nodes die.
    pub fn walk(&self, seconds: u32, late_ticks: u32, meanwhile: impl FnOnce(&World)) -> String {
        let (is_clean, report) = self.judged(seconds, late_ticks, meanwhile);
        assert!(is_clean, "{report}\n{}", self.logs());
        report
    }

    /// The same where gateways end: the oracle knows no gap, and counts what a client that resumes was not shown
    /// meanwhile. No client may see what is not there, stay away, or have an input refused.
    pub fn walk_through_resumes(&self, seconds: u32, meanwhile: impl FnOnce(&World)) -> String {
        let (_, report) = self.judged(seconds, LATE_TICKS, meanwhile);
        let has = |line: &str| report.lines().any(|found| words(found).eq(words(line)));
        for line in
            ["players 200 (0 not joined)", "extra 0", "asymmetric 0", "stale 0", "inputs refused 0"]
        {
            assert!(has(line), "{line}\n{report}\n{}", self.logs());
        }
        report
    }

    /// What the bots reported, and whether they found nothing wrong.
    fn judged(
        &self,
        seconds: u32,
        late_ticks: u32,
        meanwhile: impl FnOnce(&World),
    ) -> (bool, String) {
        let mut command =
            self.0.compose(&["--profile", "bots", "run", "--rm", "-T", "--no-deps", "bots"]);
        command.args([
            "load",
            "walk",
            "--connect=ws://haproxy:7711/",
            "--scene=wood",
            "--count=200",
        ]);
        command.args(["--token-file=/run/purview/bots.tokens", &format!("--for={seconds}s")]);
        if late_ticks > 0 {
            command.arg(format!("--late-ticks={late_ticks}"));
        }
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
    match World::new() {
        Ok(world) => work(&world),
        Err(missing) => missing.skips(test),
    }
}

#[test]
fn the_compose_file_comes_up_and_two_hundred_bots_see_nothing_wrong() {
    with_world("compose::the_compose_file_comes_up", |world| {
        let begin = Instant::now();
        world.up();
        println!("ready after {:.1} s", begin.elapsed().as_secs_f64());
        for process in PROCESSES {
            world.wait_whole(process);
        }
        println!("{}", world.walk(15, LATE_TICKS, |_| ()));
        let report = world.walk(20, LATE_TICKS, |world| {
            std::thread::sleep(Duration::from_secs(6));
            world.0.docker(&["kill", "purview-node-2-1"]).unwrap();
            world.compose(&["up", "-d", "--no-build", "--pull", "never", "node-2"]);
        });
        println!("after a kill of node-2\n{report}");
        // Prometheus hears every process, and the worker serves every region.
        let targets = "http://prometheus:9090/api/v1/query?query=count(up==1)";
        let asked =
            format!("import urllib.request as u; print(u.urlopen({targets:?}).read().decode())");
        world.wait_for("Prometheus hears of five processes", |world| {
            let told = world.exec("worker", &["python3", "-c", &asked]);
            told.is_ok_and(|told| told.contains("\"5\""))
        });
        // The console's token is where the page says.
        let token = world.exec("node-1", &["cat", "/run/purview/console.token"]).unwrap();
        assert!(token.trim().len() >= 32);
        let told = world.exec("node-1", &["purview", "ctl", "status"]).unwrap();
        assert!(told.contains("node-3"), "{told}");
        // It works the second time, and after its data are gone.
        world.compose(&["down"]);
        world.up();
        world.compose(&["down", "-v"]);
        world.up();
        world.wait_whole("gateway-1");
        let begin = Instant::now();
        world.compose(&["down", "-v"]);
        println!("down after {:.1} s", begin.elapsed().as_secs_f64());
    });
}

#[test]
fn the_image_needs_no_root_no_shell_and_no_writable_folder() {
    with_world("compose::the_image_needs_no_root", |world| {
        let hardened =
            ["run", "--rm", "--read-only", "--network=none", "--cap-drop=ALL", "purview"];
        let version = world.0.docker(&[&hardened[..], &["--version"]].concat()).unwrap();
        assert!(version.starts_with("purview "), "{version}");
        let user = world.0.docker(&["inspect", "--format", "{{.Config.User}}", "purview"]).unwrap();
        assert_eq!(user.trim(), "65532:65532");
        let shell = world.0.docker(&["inspect", "--format", "{{.Config.Entrypoint}}", "purview"]);
        assert_eq!(shell.unwrap().trim(), "[/usr/local/bin/purview]");
        let lab = world.0.docker(&[
            "run",
            "--rm",
            "--entrypoint",
            "/bin/ls",
            "purview",
            "/usr/local/bin",
        ]);
        assert_eq!(lab.unwrap().trim(), "purview", "the lab is no part of it");
    });
}

#[test]
fn hadolint_accepts_the_files_of_images() {
    let missing = Command::new("hadolint").arg("--version").output().is_err();
    if missing {
        return Missing("there is no program hadolint".into()).skips("compose::hadolint");
    }
    let root = super::missing::root();
    for file in ["Dockerfile", "Dockerfile.source", "compose/Dockerfile.worker"] {
        run(Command::new("hadolint").arg(root.join("deploy").join(file))).unwrap();
    }
}
