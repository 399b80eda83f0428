//! The limit on open files of this process: raised to the maximum, and compared with the configured
//! numbers of sessions.

use std::sync::Once;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a process needs beside its clients' connections: links, stores, files, threads.
const OTHER_FILES: u64 = 256;

/// The limit on open files, after it was raised; `None`: there is none.
pub(crate) fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let now = current?;
    if maximum.is_none_or(|maximum| maximum > now) {
        // At most a million where the system does not say how many.
        let wanted = maximum.unwrap_or(1 << 20).max(now);
        match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
            Ok(()) => tracing::debug!(from = now, to = wanted, "the limit on open files is raised"),
            Err(error) => tracing::debug!(%error, now, "the limit on open files stays"),
        }
    }
    getrlimit(Resource::Nofile).current
}

/// Raises the limit, and warns once if it is too low for so many sessions and waiting connections.
pub(crate) fn provide(sessions: u64, waiting: u64) {
    static WARNED: Once = Once::new();
    let limit = raise();
    if let Some(warning) = limit.and_then(|limit| shortfall(limit, sessions, waiting)) {
        WARNED.call_once(|| tracing::warn!("{warning}"));
    }
}

/// The warning about a limit that is too low.
fn shortfall(limit: u64, sessions: u64, waiting: u64) -> Option<String> {
    let need = sessions.saturating_add(waiting).saturating_add(OTHER_FILES);
    let room = limit.saturating_sub(waiting + OTHER_FILES);
    (need > limit).then(|| {
        format!(
            "this process may open {limit} files (ulimit -n), and needs {need}: gateway.max_sessions = {sessions}, \
             gateway.unauthenticated = {waiting}, and {OTHER_FILES} beside them; there is room for {room} sessions. \
             Raise the limit (LimitNOFILE of systemd, ulimit -Hn) or lower gateway.max_sessions"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_too_low_is_told_with_figures() {
        assert_eq!(shortfall(22_256, 20_000, 2_000), None);
        let said = shortfall(4_096, 20_000, 2_000).unwrap();
        for figure in ["4096", "22256", "20000", "2000", "1840 sessions"] {
            assert!(said.contains(figure), "{figure}: {said}");
        }
        assert!(shortfall(300, u64::MAX, 2_000).unwrap().contains("room for 0 sessions"));
    }

    #[test]
    fn the_limit_is_raised_as_far_as_it_may_be() {
        let raised = raise();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert!(raised == current && (maximum.is_none() || current == maximum));
    }
}
