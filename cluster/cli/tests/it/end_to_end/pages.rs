//! The commands of the pages for a first hour, as they are written: in an empty folder, by a user that is not root,
//! on the ports that the pages name.
//!
//! Each page has a network of its own, so that the ports are free. A command `cargo run` runs what the tests have
//! built.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::foreign;

/// How long a test waits for what a command prints.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nobody.
const UID: &str = "65534";

/// What stands for `cargo` in the path.
const CARGO: &str = r#"#!/bin/bash -e
shift
program=purview
while [[ $# -gt 0 ]]; do
    case $1 in
        --release) shift ;;
        -p) shift 2 ;;
        --example) program=examples/$2; shift 2 ;;
        --) shift; break ;;
    esac
done
exec "$BUILT/$program" "$@"
"#;

fn blocks(page: &str) -> Vec<String> {
    let text = std::fs::read_to_string(foreign::root().join("docs").join(page)).unwrap();
    let after = text.split("\n```sh\n").skip(1);
    after.map(|block| block.split("\n```").next().unwrap().to_owned()).collect()
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout == b"0\n"
}

/// A newcomer: an empty folder, and a network without others.
struct Newcomer {
    folder: tempfile::TempDir,
    /// Keeps the network, and the sources where the newcomer can read them.
    room: Child,
}

impl Newcomer {
    /// `None`: this machine lets nobody create a network.
    fn new() -> Option<Newcomer> {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        for name in ["sources", "built", "bin", "work", "wheels"] {
            std::fs::create_dir(at.join(name)).unwrap();
        }
        std::fs::write(at.join("bin/cargo"), CARGO).unwrap();
        foreign::run(at, "chmod", &["755", ".", "bin/cargo"]);
        let as_root: &[&str] = if is_root() { &[] } else { &["--user", "--map-root-user"] };
        let program = Path::new(env!("CARGO_BIN_EXE_purview"));
        let script = format!(
            "ip link set lo up && mount --bind {} {at}/sources && mount --bind {} {at}/built && echo ready && \
             exec sleep 600",
            foreign::root().display(),
            program.parent().unwrap().display(),
            at = at.display(),
        );
        let mut room = Command::new("unshare");
        room.args(as_root).args(["--net", "--mount", "bash", "-c", &script]);
        let (said, told) = std::io::pipe().unwrap();
        let room = room.stdout(told).spawn().unwrap();
        let newcomer = Newcomer { folder, room };
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut line).unwrap();
        if line.is_empty() {
            eprintln!("skipped: no network can be created");
            return None;
        }
        newcomer.own(&["work", "wheels"]);
        Some(newcomer)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn own(&self, names: &[&str]) {
        if is_root() {
            let owner = format!("{UID}:{UID}");
            let args = [&["-R", owner.as_str()], names].concat();
            foreign::run(self.folder.path(), "chown", &args);
        }
    }

    /// Links to the sources, as a checkout that the newcomer owns.
    fn check_out(&self) {
        for entry in std::fs::read_dir(foreign::root()).unwrap() {
            let name = entry.unwrap().file_name();
            let link = self.path("work").join(&name);
            std::os::unix::fs::symlink(self.path("sources").join(&name), link).unwrap();
        }
    }

    /// Runs commands. What they print goes to a file.
    fn run(&self, block: &str, name: &str) -> Running {
        let log = self.path(name);
        let out = std::fs::File::create(&log).unwrap();
        let errors = out.try_clone().unwrap();
        let room = self.room.id().to_string();
        let mut command = Command::new("nsenter");
        command.args(["--target", &room, "--net", "--mount"]);
        match is_root() {
            true => {
                command.args(["setpriv", "--reuid", UID, "--regid", UID, "--clear-groups"]);
            }
            false => {
                command.args(["--user", "--preserve-credentials"]);
            }
        }
        let path = format!(
            "{}:{}:/usr/bin:/bin",
            self.path("bin").display(),
            self.path("built").display()
        );
        // The folder is not kept on the way into the room.
        command.args(["bash", "-e", "-c", &format!("cd \"$HOME\"\n{block}")]);
        command.env("PATH", path).env("BUILT", self.path("built")).env("HOME", self.path("work"));
        command.env("SOURCES", self.path("sources")).env("PIP_FIND_LINKS", self.path("wheels"));
        command.env("PIP_NO_INDEX", "1").env_remove("PURVIEW_CONFIG");
        command.stdin(Stdio::piped()).stdout(out).stderr(errors);
        let child = command.process_group(0).spawn().unwrap();
        Running { child, log }
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        drop(self.room.kill().and_then(|()| self.room.wait()));
    }
}

/// Commands that run. Dropping them ends their processes.
struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn until(&mut self, word: &str) -> String {
        let end = Instant::now() + PATIENCE;
        while !self.said().contains(word) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() || self.said().contains(word), "{ended:?}: {}", self.said());
            assert!(Instant::now() < end, "{word:?} is not printed: {}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.said()
    }

    fn end(mut self) -> String {
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.said());
        self.said()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        drop(Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status());
        drop(self.child.wait());
    }
}

/// The value behind a name at the begin of a line.
fn after<'a>(said: &'a str, name: &str) -> &'a str {
    let line = said.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name:?} in {said}")).trim()
}

#[test]
fn getting_started_starts() {
    let Some(newcomer) = Newcomer::new() else { return };
    newcomer.check_out();
    newcomer.own(&["work"]);
    let [dev, check, own, walk] = &blocks("guide/start.md")[..] else { panic!("four blocks") };
    let mut server = newcomer.run(dev, "dev.log");
    let said = server.until(" bots");
    let walk = walk.replace("TOKEN", after(&said, "token"));
    newcomer.run(&walk, "walk.log").until(" in view");
    drop(server);
    let said = newcomer.run(check, "check.log").end();
    assert!(said.contains("my.toml"), "{said}");
    newcomer.run(own, "own.log").until(" 50 bots");
}

#[test]
fn the_tutorial_runs() {
    let Some(newcomer) = Newcomer::new() else { return };
    newcomer.check_out();
    newcomer.own(&["work"]);
    let [hunt] = &blocks("first-game.md")[..] else { panic!("one block") };
    let mut server = newcomer.run(hunt, "hunt.log");
    let said = server.until(" token ");
    let line = said.lines().find(|line| line.contains(" token ")).unwrap();
    let words: Vec<&str> = line.split([' ', ',']).collect();
    let walk = format!("\"$BUILT/examples/walk\" {} wood {}", words[0], words[2]);
    newcomer.run(&walk, "walk.log").until(" in view");
}

#[test]
fn a_worker_in_python_attaches() {
    let Some(newcomer) = Newcomer::new() else { return };
    let list = foreign::root().join("examples/hunt/python/requirements.txt");
    let folder = newcomer.folder.path();
    foreign::run(folder, "/usr/bin/python3", &["-m", "venv", "loader"]);
    let load = ["download", "--quiet", "-d", "wheels", "-r", list.to_str().unwrap()];
    foreign::run(folder, folder.join("loader/bin/pip"), &load);
    let [server, worker] = &blocks("logic-workers.md")[..] else { panic!("two blocks") };
    let mut server = newcomer.run(server, "dev.log");
    server.until(" bots");
    let mut worker = newcomer.run(worker, "worker.log");
    worker.until("ready");
    let said = newcomer.run("purview ctl status workers", "ctl.log").end();
    assert!(said.contains("hunt"), "{said}");
}
