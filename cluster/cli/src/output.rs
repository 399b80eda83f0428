//! Writes the result of a command to standard output.

use std::io::{ErrorKind, Write};

use crate::error::CliError;

/// Writes to standard output. A reader that stops early (`| head`) is no error.
///
/// # Errors
/// Standard output cannot be written.
pub fn say(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(e).context("standard output cannot be written").into())
        }
        _ => Ok(()),
    }
}
