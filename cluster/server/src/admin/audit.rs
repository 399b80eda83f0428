//! The audit log: one line per command, of the target `audit`: who called, with which token, what was commanded,
//! and what became of it. The time is the line's own.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;

use super::access::Shown;

/// Longest command that is written down whole, characters.
const COMMAND_MAX: usize = 512;

/// Time between two lines about commands that were refused for want of a token.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// A command as it came.
pub struct Command<'a> {
    /// Where it came from.
    pub caller: SocketAddr,
    /// Which token it showed.
    pub shown: Shown,
    /// Its route, for example `/api/cluster/drain`.
    pub path: &'a str,
    /// Its body.
    pub body: &'a [u8],
}

/// The answer to a command, in words; an extension of the response.
#[derive(Debug, Clone)]
pub struct Outcome(pub String);

/// Writes commands down. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Audit(Arc<Mutex<Denials>>);

/// Commands without the right token: anybody may send them, so they are not written down one by one.
#[derive(Debug, Default)]
struct Denials {
    told: Option<Instant>,
    /// Since then.
    more: u64,
}

impl Denials {
    /// How many were left out before this one, if this one is to be told.
    fn next(&mut self, now: Instant) -> Option<u64> {
        if self.told.is_some_and(|told| now.duration_since(told) < SAY_EVERY) {
            self.more += 1;
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.more))
    }
}

impl Audit {
    /// A command was answered.
    pub fn done(&self, command: &Command<'_>, status: StatusCode, outcome: &str) {
        let Command { caller, shown, path, body } = command;
        let (token, order, status) = (shown.word(), text(body), status.as_u16());
        tracing::info!(target: "audit", %caller, token, command = path, order, status, result = outcome, "command");
    }

    /// A command was refused, since it does not show the command token. At most one a second is told.
    pub fn denied(&self, command: &Command<'_>, status: StatusCode, outcome: &str) {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).next(Instant::now());
        let Some(more) = next else { return };
        let Command { caller, shown, path, .. } = command;
        let (token, status) = (shown.word(), status.as_u16());
        tracing::warn!(target: "audit", %caller, token, command = path, status, result = outcome, more, "command");
    }
}

/// A body on one line, without characters that could write to a terminal.
fn text(body: &[u8]) -> String {
    let json = serde_json::from_slice::<serde_json::Value>(body).map(|json| json.to_string());
    let text = json.unwrap_or_else(|_| String::from_utf8_lossy(body).into_owned());
    let mut line = String::new();
    for (at, c) in text.chars().enumerate() {
        match c {
            _ if at == COMMAND_MAX => return line + "...",
            c if c.is_control() => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_one_line_whatever_it_says() {
        assert_eq!(text(b"{\"node\":\n \"a\\nb\"}"), "{\"node\":\"a\\nb\"}");
        assert_eq!(text(b"no\njson\x1b[2J"), "no\\u{a}json\\u{1b}[2J");
        assert_eq!(text("\u{9b}2J\u{7f}".as_bytes()), "\\u{9b}2J\\u{7f}");
        assert_eq!(text(&[b'x'; 600]).len(), COMMAND_MAX + 3);
    }

    #[test]
    fn denials_are_told_once_a_second_and_counted_between() {
        let (mut denials, begin) = (Denials::default(), Instant::now());
        assert_eq!(denials.next(begin), Some(0));
        assert_eq!(denials.next(begin + SAY_EVERY / 3), None);
        assert_eq!(denials.next(begin + SAY_EVERY / 2), None);
        assert_eq!(denials.next(begin + SAY_EVERY), Some(2));
        assert_eq!(denials.next(begin + SAY_EVERY * 3), Some(0));
    }
}
