//! What an etcd and a PostgreSQL have in common: a process, its data directory, and a restart under the same ports.

use std::path::Path;

use rustix::process::Signal;

use super::child::Running;
use super::{DataFolder, STARTS_MAX, ServerError};

/// How one kind of server is started, again and again under the same ports.
pub trait Setup {
    fn place(&self) -> &DataFolder;

    /// Starts the process and does not wait for it.
    fn spawn(&self) -> Result<Running, ServerError>;

    fn is_ready(&self, running: &Running) -> bool;

    /// Starts the process and waits until it answers.
    fn start(&self) -> Result<Running, ServerError> {
        let running = self.spawn()?;
        running.wait_ready(|| self.is_ready(&running))?;
        Ok(running)
    }
}

/// A server on this machine. The process ends when this value is dropped.
pub struct Server<S> {
    pub(super) running: Running,
    pub(super) setup: S,
}

impl<S: Setup> Server<S> {
    /// Starts a server and does not wait for it: the members of a cluster wait for each other.
    pub(super) fn spawn(setup: S) -> Result<Server<S>, ServerError> {
        Ok(Server { running: setup.spawn()?, setup })
    }

    pub(super) fn wait_ready(&self) -> Result<(), ServerError> {
        self.running.wait_ready(|| self.setup.is_ready(&self.running))
    }

    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// The directory of the data and of the log.
    pub fn dir(&self) -> &Path {
        self.setup.place().path()
    }

    /// Asks the process to end and waits until it has ended; a process that does not end in time is killed.
    pub fn stop(&self) {
        self.running.end();
    }

    /// Ends the process at once, as a power cut would.
    pub fn kill(&self) {
        self.running.crash();
    }

    /// Stops the process without ending it. Open connections stay open and nothing is answered; of PostgreSQL only
    /// new connections: open ones have processes of their own, which go on.
    pub fn pause(&self) {
        self.running.signal(Signal::STOP);
    }

    pub fn resume(&self) {
        self.running.signal(Signal::CONT);
    }

    /// Ends the process if it runs, starts it again with the same ports and data, and waits until it is ready.
    pub fn restart(&mut self) -> Result<(), ServerError> {
        self.running.crash();
        self.running = self.setup.start()?;
        Ok(())
    }
}

/// Runs `start`, which chooses ports that are free, and repeats it a few times if the server does not come up:
/// another program may have taken a port in the meantime.
pub fn on_free_ports<T>(
    mut start: impl FnMut() -> Result<T, ServerError>,
) -> Result<T, ServerError> {
    let mut tries = 1;
    loop {
        match start() {
            Err(ServerError::NotUp { .. }) if tries < STARTS_MAX => tries += 1,
            other => return other,
        }
    }
}
