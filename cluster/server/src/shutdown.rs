//! How long a process that is asked to end takes at most, step by step. The sum must fit into the time after which
//! the system that runs it kills it (`server.grace`).

pub mod signals;
use std::time::Duration;

use crate::gateway::GatewayConfig;

/// A node asks the store to give its regions to others.
pub(crate) const ORDER: Duration = Duration::from_secs(4);

/// The last positions of the players of a gateway are saved.
pub(crate) const FLUSH: Duration = Duration::from_secs(5);

/// Requests to the console that are under way end.
pub(crate) const CONSOLE: Duration = Duration::from_secs(2);

/// The last checkpoints of a node are saved, and its lease is given up.
pub(crate) const LEAVE: Duration = Duration::from_secs(10);

pub type Step = (&'static str, Duration);

/// What the configuration says of how long a process may take to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long regions may take to move to other processes.
    pub drain: Duration,
    /// How long clients are still admitted.
    pub lame_duck: Duration,
}

/// The steps in which a process of a cluster ends, in their order. It gives its regions to others, and closes the sessions
/// of its gateway one by one, at the same time: the longer of the two counts.
pub fn steps(Limits { drain, lame_duck }: Limits) -> [Step; 6] {
    [
        ("order", ORDER),
        if lame_duck > drain { ("lame duck", lame_duck) } else { ("drain", drain) },
        ("gateway", GatewayConfig::default().stop_limit()),
        ("flush", FLUSH),
        ("console", CONSOLE),
        ("leave", LEAVE),
    ]
}

pub fn total(limits: Limits) -> Duration {
    steps(limits).iter().map(|(_, time)| *time).sum()
}

/// All of them as text, for example `order 4 s + drain 30 s`.
pub fn text(limits: Limits) -> String {
    let parts = steps(limits).map(|(name, time)| format!("{name} {} s", time.as_secs_f64()));
    parts.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_of_what_is_told() {
        let seconds = Duration::from_secs;
        let limits = Limits { drain: seconds(30), lame_duck: seconds(10) };
        assert_eq!(total(limits), seconds(56));
        let parts = "order 4 s + drain 30 s + gateway 5 s + flush 5 s + console 2 s + leave 10 s";
        assert_eq!(text(limits), parts);
        let longer = Limits { lame_duck: seconds(300), ..limits };
        assert_eq!(total(longer), seconds(326));
        assert!(text(longer).contains("lame duck 300 s"), "{}", text(longer));
    }
}
