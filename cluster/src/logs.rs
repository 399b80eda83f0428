//! Log lines: to standard error, as text or as JSON, at the level that the configuration says.
//! Standard output is left to what a command has to say.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::config::{LogFormat, LogSettings};

/// Why logs cannot be set up. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The level is not one; a configuration that was loaded has none such.
    #[error("log.level = {level:?}: {source}")]
    Level {
        /// What the setting says.
        level: String,
        /// Where it goes wrong.
        source: ParseError,
    },
    /// Logs of this process are set up already.
    #[error("logs are set up already")]
    Twice,
}

/// Sets up the logs of this process, once.
///
/// # Errors
/// [`LogError`]; nothing has changed then.
pub fn init(settings: &LogSettings) -> Result<(), LogError> {
    let level = settings.level.clone();
    let filter = EnvFilter::try_new(&level).map_err(|source| LogError::Level { level, source })?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let done = match settings.format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    done.map_err(|_| LogError::Twice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_level_changes_nothing_and_a_second_setup_is_refused() {
        let settings = |level: &str| LogSettings { level: level.into(), format: LogFormat::Json };
        let wrong = init(&settings("info,=[")).unwrap_err();
        assert!(matches!(wrong, LogError::Level { .. }), "{wrong}");
        init(&settings("off")).unwrap();
        assert!(matches!(init(&settings("off")), Err(LogError::Twice)));
    }
}
