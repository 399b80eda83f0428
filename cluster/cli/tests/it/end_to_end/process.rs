//! The real command: servers and runs, each in its own process with free ports.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use serde_json::Value;

use crate::common::{PROGRAM, try_for};

/// The flags for free ports.
pub const FREE_PORTS: [&str; 8] = [
    "--set",
    "gateway.ws=127.0.0.1:0",
    "--set",
    "gateway.tcp=127.0.0.1:0",
    "--set",
    "console.listen=127.0.0.1:0",
    "--set",
    "play.listen=127.0.0.1:0",
];

/// `purview ARGS`, without the environment of the tests.
pub fn purview(args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(args)
        .env_remove("PURVIEW_CONFIG")
        .env_remove("PURVIEW_TOKEN")
        .stdin(Stdio::null());
    command
}

/// `purview-lab ARGS`, without the environment of the tests.
fn lab(args: &[&str]) -> Command {
    let program = Path::new(PROGRAM).with_file_name("purview-lab");
    assert!(program.is_file(), "{} is missing: cargo build -p purview-lab", program.display());
    let mut command = Command::new(program);
    command.args(args).env_remove("PURVIEW_CONFIG").stdin(Stdio::null());
    command
}

/// The end of a run.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    pub fn of(output: &Output) -> Done {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        Done { code: output.status.code(), stdout, stderr }
    }

    /// The report: the last line of standard output.
    pub fn report(&self) -> Value {
        let last = self.stdout.lines().next_back().unwrap_or_else(|| panic!("no output: {self:?}"));
        serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

/// Runs `purview ARGS` to its end.
pub fn run(args: &[&str]) -> Done {
    done(&mut purview(args))
}

/// As [`run`], of `purview-lab`.
pub fn run_lab(args: &[&str]) -> Done {
    done(&mut lab(args))
}

/// Replays a recording, and reports as JSON.
pub fn replay(file: &Path, more: &[&str]) -> Done {
    let file = file.to_str().expect("a path in UTF-8");
    run_lab(&[&["load", "replay", file, "--json"], more].concat())
}

pub fn done(command: &mut Command) -> Done {
    Done::of(&command.output().unwrap())
}

/// A figure of a report.
pub fn figure(report: &Value, pointer: &str) -> f64 {
    let value = report.pointer(pointer).and_then(Value::as_f64);
    value.unwrap_or_else(|| panic!("no figure {pointer} in {report}"))
}

/// Asserts that a run had no violation and that every due update was delivered.
pub fn assert_clean(done: &Done) -> Value {
    let report = done.report();
    for kind in ["missing", "extra", "asymmetric", "stale", "lost", "flicker_at_handoff"] {
        assert_eq!(report["violations"][kind], 0, "{kind}: {report}");
    }
    assert_eq!(report["not_joined"], 0, "{report}");
    assert_eq!(report["updates"]["delivered"], report["updates"]["expected"], "{report}");
    assert!(figure(&report, "/updates/expected") > 0.0, "{report}");
    assert_eq!(done.code, Some(0), "{done:?}");
    report
}

/// A server in its own process.
pub struct Served {
    child: Child,
    pub ws: String,
    pub tcp: String,
    /// `host:port` of the console.
    pub console: String,
    pub token: String,
}

impl Served {
    /// Starts `purview dev` without bots and waits until it listens.
    pub fn start(more: &[&str]) -> Served {
        Served::with_bots("0", more)
    }

    /// Starts `purview dev` with bots and waits until it listens.
    pub fn with_bots(count: &str, more: &[&str]) -> Served {
        Served::run(count, "warn", Stdio::inherit(), more)
    }

    /// Starts `purview dev` without bots, with its log in `log`, and waits until it listens.
    pub fn logging_to(level: &str, log: impl Into<Stdio>) -> Served {
        Served::run("0", level, log.into(), &[])
    }

    fn run(bots: &str, level: &str, log: Stdio, more: &[&str]) -> Served {
        let args = [&["dev", "--log", level, "--bots", bots], &FREE_PORTS[..], more].concat();
        let mut child = purview(&args).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut served = Served {
            child,
            ws: String::new(),
            tcp: String::new(),
            console: String::new(),
            token: String::new(),
        };
        for line in lines.by_ref().map_while(Result::ok) {
            let (name, value) = line.split_once(' ').unwrap_or_default();
            let value = value.trim().to_owned();
            match name {
                "console" => {
                    served.console =
                        value.trim_start_matches("http://").trim_end_matches('/').into();
                }
                "WebSocket" => served.ws = value,
                "TCP" => served.tcp = value,
                "token" => served.token = value,
                _ if line.contains(" regions, ") => break,
                _ => {}
            }
        }
        assert!(!served.ws.is_empty(), "the server did not come up");
        // Further output is read and dropped, so that the server never waits for a reader.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        served
    }

    /// Sends a signal, by its name.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap();
        assert!(sent.success(), "kill -{name} {pid}: {sent}");
    }

    /// Waits until the process has ended.
    pub fn ended(mut self) -> ExitStatus {
        try_for("the server's end", || self.child.try_wait().unwrap().ok_or("it runs"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // The process may have ended by itself, which is fine.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
