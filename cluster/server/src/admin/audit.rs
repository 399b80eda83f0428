//! The audit log: one line per command, of the target `audit`, with caller, token, command and
//! outcome. The time is that of the log line. `guard` writes it. Every command must have a line;
//! refused ones are counted.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::StatusCode;
use purview::clock;
use purview::log_limit::LogLimit;

use super::access::Shown;

/// Commands are cut to this many characters.
const COMMAND_MAX: usize = 512;

pub struct Command<'a> {
    pub caller: SocketAddr,
    pub shown: Shown,
    /// The route, for example `/api/cluster/drain`.
    pub path: &'a str,
    pub body: &'a [u8],
}

/// The outcome of a command as text; an extension of the response.
#[derive(Debug, Clone)]
pub struct Outcome(pub String);

/// Writes the audit log. Clones share it. Any client can send commands without the command token, so most of these
/// are only counted.
#[derive(Debug, Clone, Default)]
pub struct Audit(Arc<LogLimit>);

impl Audit {
    pub fn done(&self, command: &Command<'_>, status: StatusCode, outcome: &str) {
        let Command { caller, shown, path, body } = command;
        let (token, order, status) = (shown.name(), text(body), status.as_u16());
        tracing::info!(target: "audit", %caller, token, command = path, order, status, result = outcome, "command");
    }

    /// Logs a command without the command token, at most once a second.
    pub fn denied(&self, command: &Command<'_>, status: StatusCode, outcome: &str) {
        let Some(more) = self.0.admit(clock::log_ms()) else { return };
        let Command { caller, shown, path, .. } = command;
        let (token, status) = (shown.name(), status.as_u16());
        tracing::warn!(target: "audit", %caller, token, command = path, status, result = outcome, more, "command");
    }
}

/// A body as one line, without control characters.
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
    fn a_command_is_one_line_whatever_its_body() {
        assert_eq!(text(b"{\"node\":\n \"a\\nb\"}"), "{\"node\":\"a\\nb\"}");
        assert_eq!(text(b"no\njson\x1b[2J"), "no\\u{a}json\\u{1b}[2J");
        assert_eq!(text("\u{9b}2J\u{7f}".as_bytes()), "\\u{9b}2J\\u{7f}");
        assert_eq!(text(&[b'x'; 600]).len(), COMMAND_MAX + 3);
    }
}
