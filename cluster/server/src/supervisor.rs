//! What a process tells the system that runs it: systemd, by the socket of `Type=notify`. Without that socket nothing is
//! sent.
//!
//! Commands tell that a process is ready and that it stops; [`crate::process`] tells what it waits for, and how it is.

pub mod watchdog;

use std::time::Duration;

use sd_notify::NotifyState;

pub fn ready() {
    send(&[NotifyState::Ready]);
}

/// The process was asked to end, and takes at most so long.
pub fn stopping(limit: Duration) {
    send(&[NotifyState::Stopping, extend(limit)]);
}

/// What the process does, for `systemctl status`.
pub fn status(text: &str) {
    send(&[NotifyState::Status(text)]);
}

/// What the process waits for at its start. It may take so much longer.
pub fn waits(text: &str, longer: Duration) {
    send(&[NotifyState::Status(text), extend(longer)]);
}

fn extend(time: Duration) -> NotifyState<'static> {
    NotifyState::ExtendTimeoutUsec(u32::try_from(time.as_micros()).unwrap_or(u32::MAX))
}

fn send(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        purview::log_limited!(warn, %error, "the system that runs this process cannot be told its state");
    }
}
