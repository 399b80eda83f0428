//! A child process that ends with its handle and with this process. `etcd` and `postgres` start
//! their programs here.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::{READY_LIMIT, READY_PAUSE, ServerError, find, system};

/// How long the program may take to end after a signal.
const END_LIMIT: Duration = Duration::from_secs(5);

/// Most bytes of its log in an error.
const LOG_MAX: usize = 2_000;

pub struct Running {
    program: &'static str,
    pid: Pid,
    log: PathBuf,
    end: Signal,
    crash: Signal,
    ended: Arc<Ended>,
}

#[derive(Default)]
struct Ended {
    status: Mutex<Option<ExitStatus>>,
    told: Condvar,
}

pub struct Run<'a> {
    pub program: &'static str,
    pub file: &'a Path,
    pub args: Vec<String>,
    /// What it says goes there, behind what is there.
    pub log: PathBuf,
    pub end: Signal,
    /// What ends it at once, with all that it started, and the name of that signal: also what the
    /// system sends when this process is gone.
    pub crash: (Signal, &'static str),
    /// Environment variables with this prefix are not passed on.
    pub hidden: &'static str,
    /// The user that runs the program, if not the current one.
    pub user: Option<&'static str>,
}

impl Run<'_> {
    /// The command, which the system ends when the thread ends that started it.
    pub fn command(&self) -> Result<Command, ServerError> {
        let mut command = Command::new(find::program("setpriv", "util-linux")?);
        command.args(["--pdeathsig", self.crash.1]);
        if let Some(user) = self.user {
            command.args([&format!("--reuid={user}"), &format!("--regid={user}"), "--init-groups"]);
        }
        command.arg("--").arg(self.file).args(&self.args).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with(self.hidden) {
                command.env_remove(&name);
            }
        }
        command.env("LC_ALL", "C").current_dir("/");
        Ok(command)
    }

    pub fn start(self) -> Result<Running, ServerError> {
        let file = File::options().create(true).append(true).open(&self.log);
        let file = file.map_err(system(self.log.display().to_string()))?;
        let also = file.try_clone().map_err(system(self.log.display().to_string()))?;
        let mut command = self.command()?;
        command.stdout(file).stderr(also);
        let ended = Arc::new(Ended::default());
        let (tell, told) = mpsc::channel();
        let monitor = ended.clone();
        std::thread::Builder::new()
            .name(self.program.into())
            .spawn(move || keep(command, &tell, &monitor))
            .map_err(system("a thread"))?;
        let started = told.recv().unwrap_or_else(|e| Err(std::io::Error::other(e)));
        let pid = started.map_err(system(format!("starting {}", self.file.display())))?;
        let (program, log, end, crash) = (self.program, self.log, self.end, self.crash.0);
        Ok(Running { program, pid, log, end, crash, ended })
    }
}

/// Starts the child and waits until it has ended: the system ends the child with this thread.
fn keep(mut command: Command, tell: &mpsc::Sender<std::io::Result<Pid>>, ended: &Ended) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            // The starter waits for this.
            let _there = tell.send(Err(e)).is_ok();
            return;
        }
    };
    let pid = Pid::from_child(&child);
    let _there = tell.send(Ok(pid)).is_ok();
    let left = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(pid), left), Err(rustix::io::Errno::INTR)) {}
    ended.reap(&mut child);
}

impl Ended {
    fn lock(&self) -> MutexGuard<'_, Option<ExitStatus>> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Call it under the lock, so that no signal goes to a reused process id.
    fn reap(&self, child: &mut Child) {
        let mut status = self.lock();
        *status = Some(child.wait().unwrap_or_default());
        self.told.notify_all();
    }

    fn wait(&self, limit: Duration) -> Option<ExitStatus> {
        let waited = self.told.wait_timeout_while(self.lock(), limit, |status| status.is_none());
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// How it has ended, if it has.
    pub fn ended(&self) -> Option<ExitStatus> {
        *self.ended.lock()
    }

    /// Sends a signal; one that has ended gets none.
    pub fn signal(&self, signal: Signal) {
        let status = self.ended.lock();
        if status.is_none()
            && let Err(e) = kill_process(self.pid, signal)
        {
            tracing::warn!(program = self.program, %e, "cannot be signalled");
        }
    }

    /// With what it has ended, if it has, and not by a signal.
    pub fn exit_code(&self) -> Option<i32> {
        self.ended.lock().and_then(|status| status.code())
    }

    pub fn wait_ready(&self, mut ready: impl FnMut() -> bool) -> Result<(), ServerError> {
        let begin = Instant::now();
        loop {
            if let Some(status) = *self.ended.lock() {
                return Err(self.not_up(status.to_string()));
            }
            if ready() {
                return Ok(());
            }
            if begin.elapsed() > READY_LIMIT {
                return Err(self.not_up(format!("not ready after {READY_LIMIT:?}")));
            }
            std::thread::sleep(READY_PAUSE);
        }
    }

    fn not_up(&self, cause: String) -> ServerError {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let last = &text[text.len().saturating_sub(LOG_MAX)..];
        let log = String::from_utf8_lossy(last).into_owned();
        ServerError::NotUp { program: self.program, cause, log }
    }

    /// Asks it to end, and ends it if it does not.
    pub fn end(&self) {
        self.signal(Signal::CONT);
        self.signal(self.end);
        if self.ended.wait(END_LIMIT).is_none() {
            self.crash();
        }
    }

    pub fn crash(&self) {
        self.signal(Signal::CONT);
        self.signal(self.crash);
        if self.ended.wait(END_LIMIT).is_none() {
            self.signal(Signal::KILL);
            self.ended.wait(END_LIMIT);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
