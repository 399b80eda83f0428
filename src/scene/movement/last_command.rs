//! A client's clock, as its last move command told it.
//!
//! [`Mover`](super::Mover) checks each command's time against it. A refused command must not change
//! it.

use serde::{Deserialize, Serialize};

use super::walk::Walk;
use super::{ClientMs, Reason, ServerMs};

/// The estimate of the least delay decays by this fraction of the time that passes.
const FORGET_PART: u64 = 256;

/// The latest client time accepted, so that no sum overflows: 35,000 years.
const CLIENT_MS_MAX: u64 = 1 << 50;

/// How much further than the server's clock a client's clock may advance between two commands, even
/// if the entity stands, milliseconds. No session lives that long in silence.
const ADVANCE_MS_MAX: u64 = 60_000;

/// What the server knows of a client's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastCommand {
    /// Time of the client's last command, by the client's clock; `at` is the server's time then.
    sent_at: ClientMs,
    at: ServerMs,
    /// Server time minus client time, microseconds: the least seen, slowly decaying. The command
    /// with the shortest delay gives the best value.
    shift_us: i64,
}

impl LastCommand {
    /// A first command, sent at `at` and received at `now`.
    pub fn new(now: ServerMs, at: ClientMs) -> LastCommand {
        LastCommand { sent_at: at, at: now, shift_us: shift_us(now, at) }
    }

    /// Checks the time `at` of the next command, received at `now`.
    ///
    /// # Errors
    /// The client's clock went back, or too far ahead.
    pub fn check(&self, now: ServerMs, at: ClientMs) -> Result<(), Reason> {
        if at < self.sent_at {
            return Err(Reason::ClockBack { by_ms: self.sent_at.since(at) });
        }
        let (passed_ms, advance_ms) = (now.since(self.at), at.since(self.sent_at));
        if at.0 > CLIENT_MS_MAX || advance_ms > passed_ms.saturating_add(ADVANCE_MS_MAX) {
            let (ahead_ms, allowed_ms) = (advance_ms.saturating_sub(passed_ms), ADVANCE_MS_MAX);
            return Err(Reason::ClockAhead { ahead_ms, allowed_ms });
        }
        Ok(())
    }

    /// The clock after the next command. `spare_us`: how much more walking the client might owe,
    /// microseconds.
    pub fn next(&self, now: ServerMs, at: ClientMs, spare_us: u64) -> LastCommand {
        // Clamp: not in the server's future, and not so far in its past that time counts twice,
        // once as owed walking and once as walking shown beyond the client's last command.
        let latest = shift_us(now, at);
        let back_us = now.since(self.at).saturating_mul(1_000) / FORGET_PART;
        let forgotten = self.shift_us.saturating_add(back_us as i64);
        let shift_us = forgotten.clamp(latest - spare_us as i64, latest);
        LastCommand { sent_at: at, at: now, shift_us }
    }

    /// When the client's walk started, by the server's clock.
    pub fn at_server(&self, walk: &Walk) -> Option<ServerMs> {
        let since = walk.moment(0)?;
        let us = (since.0.min(CLIENT_MS_MAX) as i64 * 1_000).saturating_add(self.shift_us);
        Some(ServerMs(us.max(0) as u64 / 1_000))
    }
}

/// Lead of the server's clock over a client's, microseconds. Both are below 2^50.
fn shift_us(now: ServerMs, at: ClientMs) -> i64 {
    (now.0.min(CLIENT_MS_MAX) as i64 - at.0.min(CLIENT_MS_MAX) as i64) * 1_000
}
