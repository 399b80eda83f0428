//! Why a command did not do what it should, and with which exit code it ends.

use purview_server::config::ConfigErrors;

/// Why a command did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The configuration is wrong. Nothing was done.
    #[error("{0}")]
    Config(#[from] ConfigErrors),
    /// The command ran, and its own output has told already why it ends with this exit code.
    #[error("")]
    Told(u8),
    /// Something else went wrong on the way.
    #[error("{}", chain(.0))]
    Failed(#[from] anyhow::Error),
}

impl CliError {
    /// The exit code: 1 for what failed, or the command's own.
    pub fn code(&self) -> u8 {
        match self {
            CliError::Told(code) => *code,
            CliError::Config(_) | CliError::Failed(_) => 1,
        }
    }
}

/// An error and its causes, each that the text before does not end with already.
fn chain(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| {
        match text.ends_with(&cause) {
            true => text,
            false if text.is_empty() => cause,
            false => format!("{text}: {cause}"),
        }
    })
}
