//! Why a command did not do what it should, and with which exit code it ends.

use purview_server::causes::causes;
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
    #[error("{}", causes(.0))]
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
