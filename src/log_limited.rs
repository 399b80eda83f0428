//! The macro by which errors are logged that can repeat with every message.

#[doc(hidden)]
pub use tracing;

/// Logs as `tracing::LEVEL!` does, at most once a second for each place in the code; the next line tells as
/// `held_back` how many were not logged.
///
/// ```
/// # let from = 7;
/// purview::log_limited!(warn, from, "a message was left out");
/// // Where there is no clock the time is given, in milliseconds:
/// purview::log_limited!(at 1_200; error, from, "a message was left out");
/// ```
#[macro_export]
macro_rules! log_limited {
    (at $now_ms:expr; $level:ident, $($line:tt)+) => {{
        static LIMIT: $crate::log_limit::LogLimit = $crate::log_limit::LogLimit::new();
        if let Some(held_back) = LIMIT.admit($now_ms) {
            let held_back = (held_back > 0).then_some(held_back);
            $crate::log_limited::tracing::$level!(held_back, $($line)+);
        }
    }};
    ($level:ident, $($line:tt)+) => {
        $crate::log_limited!(at $crate::clock::log_ms(); $level, $($line)+)
    };
}
