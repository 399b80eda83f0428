//! Log lines on standard error, as text or JSON, at the configured level. Standard output belongs
//! to the commands.
//!
//! A thread of its own writes the lines, so logging never blocks: when `LINES_MAX` lines wait
//! because standard error is not read, further lines are dropped and counted.

use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// A level, or levels by module: `info,crate::gateway=debug`.
    pub level: String,
    pub format: LogFormat,
}

impl Default for LogSettings {
    fn default() -> Self {
        LogSettings { level: "info".into(), format: LogFormat::Text }
    }
}

/// Most lines that wait to be written.
const LINES_MAX: usize = 16_384;

/// Counts the lines of this process that were dropped.
static DROPPED: OnceLock<ErrorCounter> = OnceLock::new();

/// Writes waiting lines when dropped, for at most a second: keep it until the process ends.
#[derive(Debug)]
#[must_use = "lines that wait when the process ends are lost without it"]
pub struct LogGuard {
    _writes: WorkerGuard,
}

/// Log lines of this process that were dropped since too many waited.
pub fn dropped() -> u64 {
    DROPPED.get().map_or(0, |counter| counter.dropped_lines() as u64)
}

/// Why logs cannot be set up. Nothing changed.
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
    #[error("logs are set up already")]
    Twice,
}

/// Sets up the logs of this process, once.
///
/// # Errors
/// [`LogError`]; nothing has changed then.
pub fn init(settings: &LogSettings) -> Result<LogGuard, LogError> {
    let level = settings.level.clone();
    // Commands are written down at every level but by `audit=off`; what comes later in the list
    // counts.
    let filter = EnvFilter::try_new(format!("audit=info,{level}"))
        .map_err(|source| LogError::Level { level, source })?;
    let (writer, guard) = writer_to(std::io::stderr());
    let counter = writer.error_counter();
    let colours = std::io::stderr().is_terminal();
    let writer = move || OneLine { to: writer.clone(), colours };
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_ansi(colours);
    let done = match settings.format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    done.map_err(|_| LogError::Twice)?;
    DROPPED.get_or_init(|| counter);
    Ok(LogGuard { _writes: guard })
}

fn writer_to(out: impl std::io::Write + Send + 'static) -> (NonBlocking, WorkerGuard) {
    let writer = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES_MAX);
    writer.thread_name("purview-log").finish(out)
}

/// Writes each event as one line: line breaks and control characters in a value, which may come from
/// outside, are escaped, so that no value can look like a line of the server.
struct OneLine<W> {
    to: W,
    /// Lines have colours, which begin with an escape character. Values are written without it.
    colours: bool,
}

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        let (line, end) = match event.split_last() {
            Some((b'\n', line)) => (line, &b"\n"[..]),
            _ => (event, &b""[..]),
        };
        let colours = self.colours;
        let is_plain =
            |byte: &u8| !byte.is_ascii_control() || *byte == b'\t' || (colours && *byte == 0x1b);
        if line.iter().all(is_plain) {
            self.to.write_all(event)?;
        } else {
            let mut escaped = Vec::with_capacity(line.len() + 16);
            for byte in line {
                match is_plain(byte) {
                    true => escaped.push(*byte),
                    false => escaped.extend(byte.escape_ascii()),
                }
            }
            escaped.extend_from_slice(end);
            self.to.write_all(&escaped)?;
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    /// Takes nothing before its channel is dropped.
    struct Stuck(std::sync::mpsc::Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
            let _dropped = self.0.recv();
            Ok(line.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_nobody_takes_are_dropped_and_counted() {
        let (open, stuck) = std::sync::mpsc::channel();
        let (mut writer, guard) = writer_to(Stuck(stuck));
        for _ in 0..LINES_MAX + 100 {
            writer.write_all(b"a line\n").unwrap();
        }
        // The thread has taken one or none.
        let dropped = writer.error_counter().dropped_lines();
        assert!((99..=100).contains(&dropped), "{dropped}");
        drop(open);
        drop(guard);
    }

    #[derive(Clone, Default)]
    struct Written(std::sync::Arc<parking_lot::Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_value_with_line_breaks_forges_no_line() {
        let written = Written::default();
        let lines = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || OneLine { to: lines.clone(), colours: false })
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let name = "w\n2026-01-01T00:00:00Z  INFO audit: forged\r\u{1b}[2J";
            tracing::info!(%name, "a worker came");
            tracing::info!("{name}");
        });
        let text = String::from_utf8(written.0.lock().clone()).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("w\\n2026") && !text.contains('\r'), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_wrong_level_changes_nothing_and_a_second_setup_is_refused() {
        let settings = |level: &str| LogSettings { level: level.into(), format: LogFormat::Json };
        let wrong = init(&settings("info,=[")).unwrap_err();
        assert!(matches!(wrong, LogError::Level { .. }), "{wrong}");
        let _writes = init(&settings("off")).unwrap();
        assert!(matches!(init(&settings("off")), Err(LogError::Twice)));
    }
}
