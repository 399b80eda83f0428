//! Configuration errors: where the setting came from, the key, the value, and what would be right.
//!
//! The readers in this folder fill them; the command line prints them before a process starts. A
//! secret must never appear in one.

use std::fmt;

use super::origin::Origin;

/// One problem of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The key's path, as `--set` names it; empty when the file as a whole is meant.
    pub key: String,
    /// The value as written.
    pub found: Option<String>,
    /// What is wrong with the value, and what would be right.
    pub rule: String,
    /// Where the value was set.
    pub origin: Origin,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.origin != Origin::Default {
            write!(f, "{}: ", self.origin)?;
        }
        if !self.key.is_empty() {
            write!(f, "{}", self.key)?;
            if let Some(found) = &self.found {
                write!(f, " = {found}")?;
            }
            write!(f, ": ")?;
        }
        write!(f, "{}", self.rule)
    }
}

/// All problems of a configuration, one per line, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
